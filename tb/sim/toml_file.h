// SPDX-License-Identifier: Apache-2.0
// Strict reading of TOML: every key is asked for by name with its type and range; what nobody asked for is an
// error, and so is a wrong type or a value out of range. Errors are one line: "file: key = value: expected
// ...".
//
//   auto file = TomlFile::read("w.toml");               if (!file.ok()) ...
//   TomlTable t = file.value().root();
//   t.number("count", count, 0, 1e12, "elements per rank");
//   for (TomlTable op : t.tables("op")) op.text("kind", kind);
//   Status s = file.value().done();                     // the first error, or the first key that nobody
//   asked for
//
// The functions return whether the key was there and good; errors stick in the file, so a reader may go on
// and ask once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tb/sim/status.h"

namespace weft::tb {

class TomlFile;

class TomlTable {
 public:
  // "expected <what>" is part of the message; when empty, the range itself is named.
  bool number(const char* key, double& value, double low, double high, const char* what = "");
  bool integer(const char* key, int64_t& value, int64_t low, int64_t high, const char* what = "");
  bool integer(const char* key, uint64_t& value, uint64_t low, uint64_t high, const char* what = "");
  bool integer(const char* key, uint32_t& value, uint32_t low, uint32_t high, const char* what = "");
  bool integer(const char* key, int& value, int low, int high, const char* what = "");
  bool boolean(const char* key, bool& value);
  bool text(const char* key, std::string& value);
  // Arrays: of integers, of numbers, of strings, of arrays of integers.
  bool integers(const char* key, std::vector<int64_t>& values, int64_t low, int64_t high,
                const char* what = "");
  bool numbers(const char* key, std::vector<double>& values, double low, double high, const char* what = "");
  bool texts(const char* key, std::vector<std::string>& values);
  bool matrix(const char* key, std::vector<std::vector<int64_t>>& rows, int64_t low, int64_t high,
              const char* what = "");

  bool has(const char* key) const;
  TomlTable table(const char* key);                // empty when absent
  std::vector<TomlTable> tables(const char* key);  // [[key]]; empty when absent
  // Accepts the whole table `key` unread: it belongs to another reader.
  void skip(const char* key);
  // An error of the caller's own about one key: "file: key = value: expected <expected>". `key` need not
  // exist.
  void error(const char* key, const std::string& expected);
  // As error(), where nothing is expected in its place: "file: key = value: <why>".
  void refuse(const char* key, const std::string& why);
  const std::string& path() const { return path_; }  // "faults.drop[2]", empty for the root

 private:
  friend class TomlFile;
  struct Access;
  TomlTable(TomlFile* file, void* table, std::string path)
      : file_(file), table_(table), path_(std::move(path)) {}
  TomlFile* file_;
  void* table_;  // toml::table, or null: an absent table
  std::string path_;
};

class TomlFile {
 public:
  static Result<TomlFile> read(const std::string& path);
  // As read(), from memory; `path` for messages.
  static Result<TomlFile> parse(const std::string& text, const std::string& path);
  ~TomlFile();
  TomlFile(TomlFile&&) noexcept;
  TomlFile& operator=(TomlFile&&) noexcept;

  TomlTable root();
  Status done();

 private:
  friend class TomlTable;
  struct Impl;
  explicit TomlFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::tb
