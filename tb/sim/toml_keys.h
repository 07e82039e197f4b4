// SPDX-License-Identifier: Apache-2.0
// A list of keys is a function visit_keys(data, visitor) that calls the visitor for each with section, name,
// place, lowest and highest value, and meaning. These visitors read the keys from TOML, and print them for
// the docs.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "tb/sim/toml_file.h"

namespace weft::tb {

inline std::string toml_range(const char* kind, double low, double high) {
  return fmt::format("{} from {:.12g} to {:.12g}", kind, low, high);
}

struct ReadTomlKeys {
  TomlFile& file;
  void operator()(const char* section, const char* key, std::string& value, double, double, const char*) {
    table(section).text(key, value);
  }
  void operator()(const char* section, const char* key, double& value, double low, double high, const char*) {
    table(section).number(key, value, low, high, toml_range("a number", low, high).c_str());
  }
  void operator()(const char* section, const char* key, bool& value, double, double, const char*) {
    table(section).boolean(key, value);
  }
  template <class T>
  requires std::is_integral_v<T>
  void operator()(const char* section, const char* key, T& value, double low, double high, const char*) {
    table(section).integer(key, value, static_cast<T>(low), static_cast<T>(high),
                           toml_range("an integer", low, high).c_str());
  }
  TomlTable table(const char* section) { return *section ? file.root().table(section) : file.root(); }
};

inline std::string toml_key_name(const char* section, const char* key) {
  return *section ? fmt::format("{}.{}", section, key) : key;
}

struct PrintTomlKeys {
  std::string out = "| key | default | range | meaning |\n|---|---|---|---|\n";
  template <class T>
  void operator()(const char* section, const char* key, const T& value, double low, double high,
                  const char* what) {
    std::string range = "text";
    if constexpr (std::is_same_v<T, bool>)
      range = "true, false";
    else if constexpr (!std::is_same_v<T, std::string>)
      range = fmt::format("{:.12g} .. {:.12g}", low, high);
    out += fmt::format("| `{}` | {} | {} | {} |\n", toml_key_name(section, key), value, range, what);
  }
};

}  // namespace weft::tb
