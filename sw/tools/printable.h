// SPDX-License-Identifier: Apache-2.0
// Text that came from outside (names, paths, values, what a peer says) as it may be shown: one line, and
// nothing in it that a terminal obeys.
#pragma once

#include <string>

#include <fmt/format.h>

namespace weft {

/// What is no printable ASCII as \xHH.
inline std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

/// As a shell would have to be given it; bash's $'...' for what is no printable ASCII.
inline std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  const bool odd = printable(word) != word;
  std::string out = odd ? "$'" : "'";
  for (const char c : word) {
    if (c == '\'')
      out += odd ? "\\'" : "'\\''";
    else if (c == '\\' && odd)
      out += "\\\\";
    else
      out += printable(std::string(1, c));
  }
  return out + "'";
}

}  // namespace weft
