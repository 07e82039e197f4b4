// SPDX-License-Identifier: Apache-2.0
// A list of keys is a function visit_keys(data, visitor) that calls the visitor for each with section, name,
// place, lowest and highest value, and meaning. These visitors read the keys from TOML, and print them for
// the docs. A key may be an enum: its values are numbered from 0, and toml_choices(T) beside it names them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "tb/sim/toml_file.h"

namespace weft::tb {

inline std::string toml_range(const char* kind, double low, double high) {
  return fmt::format("{} from {:.12g} to {:.12g}", kind, low, high);
}

template <class T>
std::string toml_choice_list() {
  std::string all;
  for (const char* choice : toml_choices(T{})) all += (all.empty() ? "" : " or ") + std::string(choice);
  return all;
}

// False when `text` names none of them.
template <class T>
bool toml_choose(const std::string& text, T& value) {
  int i = 0;
  for (const char* choice : toml_choices(T{})) {
    if (text == choice) {
      value = static_cast<T>(i);
      return true;
    }
    ++i;
  }
  return false;
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
  template <class T>
  requires std::is_enum_v<T>
  void operator()(const char* section, const char* key, T& value, double, double, const char*) {
    std::string text;
    if (table(section).text(key, text) && !toml_choose(text, value))
      table(section).error(key, toml_choice_list<T>());
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
    else if constexpr (std::is_enum_v<T>)
      range = toml_choice_list<T>();
    else if constexpr (!std::is_same_v<T, std::string>)
      range = fmt::format("{:.12g} .. {:.12g}", low, high);
    const std::string name = toml_key_name(section, key);
    if constexpr (std::is_enum_v<T>)
      line(name, toml_choices(T{})[static_cast<size_t>(value)], range, what);
    else
      line(name, value, range, what);
  }

 private:
  template <class T>
  void line(const std::string& name, const T& value, const std::string& range, const char* what) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", name, value, range, what);
  }
};

}  // namespace weft::tb
