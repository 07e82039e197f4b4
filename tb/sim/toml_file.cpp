// SPDX-License-Identifier: Apache-2.0
#include "tb/sim/toml_file.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>

// Some of what toml++ asserts depends on the text ("[[["): that is bad input and no reason to abort.
#define TOML_ASSERT(expr) ((expr) ? void() : throw std::logic_error(#expr))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"  // accessors that are noexcept still abort, as they should
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include "sw/tools/place.h"

namespace weft::tb {

struct TomlFile::Impl {
  std::string path;
  toml::table root;
  std::set<const toml::node*> used;
  Status first_error;

  // The first key, in the order of the file, that was not asked for.
  void find_unused(const toml::table& table, const std::string& prefix, const toml::node** found,
                   std::string& name) {
    for (auto&& [key, node] : table) {
      const std::string here =
          prefix.empty() ? std::string(key.str()) : fmt::format("{}.{}", prefix, key.str());
      if (used.count(&node) == 0) {
        if (*found == nullptr || node.source().begin.line < (*found)->source().begin.line) {
          *found = &node;
          name = here;
        }
        continue;
      }
      if (const toml::table* inner = node.as_table()) find_unused(*inner, here, found, name);
      if (const toml::array* array = node.as_array()) {
        size_t i = 0;
        for (const toml::node& element : *array) {
          if (const toml::table* inner = element.as_table()) {
            if (used.count(&element) != 0) find_unused(*inner, fmt::format("{}[{}]", here, i), found, name);
          }
          ++i;
        }
      }
    }
  }
};

namespace {

std::string shown(const toml::node& node) {
  if (node.is_table()) return "{...}";
  if (const auto* f = node.as_floating_point())
    return fmt::format("{}", f->get());  // as written: 0.1, not 0.1000...01
  std::ostringstream out;
  node.visit([&](auto&& n) { out << n; });
  std::string text = out.str();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string range(auto low, auto high, const char* kind) {
  return fmt::format("{} from {} to {}", kind, low, high);
}

}  // namespace

struct TomlTable::Access {
  static TomlFile::Impl& file(const TomlTable& t) { return *t.file_->impl_; }
  static toml::table* table(const TomlTable& t) { return static_cast<toml::table*>(t.table_); }
  static toml::node* find(const TomlTable& t, const char* key) {
    toml::node* node = table(t) ? table(t)->get(key) : nullptr;
    if (node) file(t).used.insert(node);
    return node;
  }
  static std::string name(const TomlTable& t, const char* key) {
    return t.path_.empty() ? key : t.path_ + "." + key;
  }
  static bool refuse(const TomlTable& t, const std::string& name, const toml::node* node,
                     const std::string& expected) {
    return error(t, name, node, "expected " + expected);
  }
  static bool error(const TomlTable& t, const std::string& name, const toml::node* node,
                    const std::string& why) {
    TomlFile::Impl& f = file(t);
    if (!f.first_error.ok()) return false;
    const std::string value = node ? " = " + shown(*node) : "";
    const std::string line = node ? fmt::format(":{}", static_cast<unsigned>(node->source().begin.line)) : "";
    f.first_error = Status::error(fmt::format("{}{}: {}{}: {}", f.path, line, name, value, why));
    return false;
  }
  // Integers between int64 limits; `low` and `high` come as int64 too.
  static bool integer(TomlTable& t, const char* key, int64_t& value, int64_t low, int64_t high,
                      const char* what) {
    toml::node* node = find(t, key);
    if (!node) return false;
    const std::string expected = *what ? what : range(low, high, "an integer");
    const auto* n = node->as_integer();
    if (!n || n->get() < low || n->get() > high) return refuse(t, name(t, key), node, expected);
    value = n->get();
    return true;
  }
};

bool TomlTable::number(const char* key, double& value, double low, double high, const char* what) {
  toml::node* node = Access::find(*this, key);
  if (!node) return false;
  const std::string expected = *what ? what : range(low, high, "a number");
  double got = 0;
  if (const auto* f = node->as_floating_point()) {
    got = f->get();
  } else if (const auto* i = node->as_integer()) {
    got = static_cast<double>(i->get());
  } else {
    return Access::refuse(*this, Access::name(*this, key), node, expected);
  }
  if (!(got >= low && got <= high)) return Access::refuse(*this, Access::name(*this, key), node, expected);
  value = got;
  return true;
}

bool TomlTable::integer(const char* key, int64_t& value, int64_t low, int64_t high, const char* what) {
  return Access::integer(*this, key, value, low, high, what);
}
bool TomlTable::integer(const char* key, uint64_t& value, uint64_t low, uint64_t high, const char* what) {
  const uint64_t top = static_cast<uint64_t>(INT64_MAX);
  int64_t got = 0;
  if (!Access::integer(*this, key, got, static_cast<int64_t>(std::min(low, top)),
                       static_cast<int64_t>(std::min(high, top)), what)) {
    return false;
  }
  value = static_cast<uint64_t>(got);
  return true;
}
bool TomlTable::integer(const char* key, uint32_t& value, uint32_t low, uint32_t high, const char* what) {
  int64_t got = 0;
  if (!Access::integer(*this, key, got, low, high, what)) return false;
  value = static_cast<uint32_t>(got);
  return true;
}
bool TomlTable::integer(const char* key, int& value, int low, int high, const char* what) {
  int64_t got = 0;
  if (!Access::integer(*this, key, got, low, high, what)) return false;
  value = static_cast<int>(got);
  return true;
}

bool TomlTable::boolean(const char* key, bool& value) {
  toml::node* node = Access::find(*this, key);
  if (!node) return false;
  const auto* b = node->as_boolean();
  if (!b) return Access::refuse(*this, Access::name(*this, key), node, "true or false");
  value = b->get();
  return true;
}

bool TomlTable::text(const char* key, std::string& value) {
  toml::node* node = Access::find(*this, key);
  if (!node) return false;
  const auto* s = node->as_string();
  if (!s) return Access::refuse(*this, Access::name(*this, key), node, "a string");
  value = s->get();
  return true;
}

namespace {

// On failure `bad` is the offending element, number values.size() of the array.
bool read_integers(const toml::array& array, std::vector<int64_t>& values, int64_t low, int64_t high,
                   const toml::node** bad) {
  values.clear();
  values.reserve(array.size());
  for (const toml::node& element : array) {
    const auto* n = element.as_integer();
    if (!n || n->get() < low || n->get() > high) {
      *bad = &element;
      return false;
    }
    values.push_back(n->get());
  }
  return true;
}

}  // namespace

bool TomlTable::integers(const char* key, std::vector<int64_t>& values, int64_t low, int64_t high,
                         const char* what) {
  toml::node* node = Access::find(*this, key);
  if (!node) return false;
  const std::string expected = *what ? what : range(low, high, "integers");
  const toml::array* array = node->as_array();
  const toml::node* bad = node;
  if (!array) return Access::refuse(*this, Access::name(*this, key), node, expected);
  if (!read_integers(*array, values, low, high, &bad))
    return Access::refuse(*this, fmt::format("{}[{}]", Access::name(*this, key), values.size()), bad,
                          expected);
  return true;
}

bool TomlTable::numbers(const char* key, std::vector<double>& values, double low, double high,
                        const char* what) {
  toml::node* node = Access::find(*this, key);
  if (!node) return false;
  const std::string expected = *what ? what : range(low, high, "numbers");
  const toml::array* array = node->as_array();
  if (!array) return Access::refuse(*this, Access::name(*this, key), node, expected);
  values.clear();
  for (const toml::node& element : *array) {
    const std::optional<double> got = element.value<double>();
    if (element.is_string() || !got || !(*got >= low && *got <= high))
      return Access::refuse(*this, fmt::format("{}[{}]", Access::name(*this, key), values.size()), &element,
                            expected);
    values.push_back(*got);
  }
  return true;
}

bool TomlTable::texts(const char* key, std::vector<std::string>& values) {
  toml::node* node = Access::find(*this, key);
  if (!node) return false;
  const toml::array* array = node->as_array();
  if (!array) return Access::refuse(*this, Access::name(*this, key), node, "an array of strings");
  values.clear();
  for (const toml::node& element : *array) {
    const auto* s = element.as_string();
    if (!s)
      return Access::refuse(*this, fmt::format("{}[{}]", Access::name(*this, key), values.size()), &element,
                            "a string");
    values.push_back(s->get());
  }
  return true;
}

bool TomlTable::matrix(const char* key, std::vector<std::vector<int64_t>>& rows, int64_t low, int64_t high,
                       const char* what) {
  toml::node* node = Access::find(*this, key);
  if (!node) return false;
  const std::string expected = *what ? what : range(low, high, "rows of integers");
  const toml::array* array = node->as_array();
  if (!array) return Access::refuse(*this, Access::name(*this, key), node, expected);
  rows.clear();
  for (const toml::node& row : *array) {
    const toml::array* inner = row.as_array();
    const toml::node* bad = &row;
    const std::string name = fmt::format("{}[{}]", Access::name(*this, key), rows.size());
    if (!inner) return Access::refuse(*this, name, &row, expected);
    rows.emplace_back();
    if (!read_integers(*inner, rows.back(), low, high, &bad))
      return Access::refuse(*this, fmt::format("{}[{}]", name, rows.back().size()), bad, expected);
  }
  return true;
}

bool TomlTable::has(const char* key) const {
  return table_ && Access::table(*this)->contains(key);
}

TomlTable TomlTable::table(const char* key) {
  toml::node* node = Access::find(*this, key);
  if (node && !node->is_table()) {
    Access::refuse(*this, Access::name(*this, key), node, "a table");
    node = nullptr;
  }
  return TomlTable(file_, node ? node->as_table() : nullptr, Access::name(*this, key));
}

std::vector<TomlTable> TomlTable::tables(const char* key) {
  std::vector<TomlTable> result;
  toml::node* node = Access::find(*this, key);
  if (!node) return result;
  toml::array* array = node->as_array();
  if (!array) {
    Access::refuse(*this, Access::name(*this, key), node, "an array of tables: [[...]]");
    return result;
  }
  for (toml::node& element : *array) {
    Access::file(*this).used.insert(&element);
    std::string name = fmt::format("{}[{}]", Access::name(*this, key), result.size());
    if (!element.is_table()) {
      Access::refuse(*this, name, &element, "a table");
      return result;
    }
    result.push_back(TomlTable(file_, element.as_table(), std::move(name)));
  }
  return result;
}

void TomlTable::skip(const char* key) {
  toml::node* node = Access::find(*this, key);
  if (!node) return;
  struct Mark {
    std::set<const toml::node*>& used;
    void all(toml::node& n) {
      used.insert(&n);
      if (toml::table* t = n.as_table()) {
        for (auto&& [k, v] : *t) all(v);
      }
      if (toml::array* a = n.as_array()) {
        for (toml::node& v : *a) all(v);
      }
    }
  };
  Mark{Access::file(*this).used}.all(*node);
}

void TomlTable::error(const char* key, const std::string& expected) {
  const toml::node* node = table_ ? Access::table(*this)->get(key) : nullptr;
  Access::refuse(*this, Access::name(*this, key), node, expected);
}

void TomlTable::refuse(const char* key, const std::string& why) {
  const toml::node* node = table_ ? Access::table(*this)->get(key) : nullptr;
  Access::error(*this, Access::name(*this, key), node, why);
}

TomlFile::TomlFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TomlFile::~TomlFile() = default;
TomlFile::TomlFile(TomlFile&&) noexcept = default;
TomlFile& TomlFile::operator=(TomlFile&&) noexcept = default;

Result<TomlFile> TomlFile::read(const std::string& path) {
  auto text = tools::read_file(path);
  if (!text.ok()) return text.status();
  return parse(text.value(), path);
}

Result<TomlFile> TomlFile::parse(const std::string& text, const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  try {
    impl->root = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    std::string what(e.description());
    for (char& c : what) {
      if (c == '\n') c = ' ';
    }
    return Status::error(
        fmt::format("{}:{}: not TOML: {}", path, static_cast<unsigned>(e.source().begin.line), what));
  } catch (const std::logic_error&) {
    return Status::error(fmt::format("{}: not TOML: the parser can make nothing of it", path));
  }
  return TomlFile(std::move(impl));
}

TomlTable TomlFile::root() {
  return TomlTable(this, &impl_->root, "");
}

Status TomlFile::done() {
  if (!impl_->first_error.ok()) return impl_->first_error;
  const toml::node* node = nullptr;
  std::string name;
  impl_->find_unused(impl_->root, "", &node, name);
  if (!node) return {};
  return Status::error(fmt::format("{}:{}: {} = {}: unknown key", impl_->path,
                                   static_cast<unsigned>(node->source().begin.line), name, shown(*node)));
}

}  // namespace weft::tb
