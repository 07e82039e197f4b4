// SPDX-License-Identifier: Apache-2.0
// Errors as values: a text of one line that names the offending thing, or nothing. Exceptions do not leave a
// library.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace weft {

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status error(std::string text) {
    Status s;
    s.text_ = std::move(text);
    s.failed_ = true;
    return s;
  }
  bool ok() const { return !failed_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool failed_ = false;
};

// A value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by intent
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by intent
  bool ok() const { return value_.has_value(); }
  const std::string& error() const { return status_.text(); }
  Status status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace weft
