// SPDX-License-Identifier: Apache-2.0
// What the keys of a running script are: numbers out of names, held to their bounds and to what a script may
// cost.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tb/comply/body.h"
#include "tb/comply/script.h"
#include "tb/comply/seen.h"

namespace weft::comply {

/// Ends a script: what it holds the body to is not so, or what it says makes no sense.
struct Failure {
  int line;
  std::string text;
};

class Numbers {
 protected:
  explicit Numbers(Body& body) : body_(body) {}

  std::uint64_t number(const Expr& e) const {
    std::uint64_t sum = 0;
    for (const Expr::Term& t : e.terms) {
      std::uint64_t product = 1;
      for (const Expr::Factor& f : t.factors) product *= f.literal ? f.value : variable(f.name);
      sum = t.minus ? sum - product : sum + product;
    }
    return sum;
  }
  std::uint64_t variable(const std::string& name) const {
    if (name == "now") return static_cast<std::uint64_t>(body_.now() / kNs);
    const auto it = variables_.find(name);
    if (it != variables_.end()) return it->second;
    const std::size_t dot = name.find('.');
    const auto frame = frames_.find(name.substr(0, dot));
    if (dot != std::string::npos && frame != frames_.end()) {
      if (const auto v = field(frame->second, name.substr(dot + 1))) return *v;
      throw Failure{line_, fmt::format("{}: the frame has no such field", name)};
    }
    throw Failure{line_, fmt::format("{}: has no value here (its step was not run)", name)};
  }
  std::uint64_t number(const Statement& s, const char* key, std::uint64_t otherwise) const {
    const Value* v = s.arg(key);
    if (v == nullptr) return otherwise;
    const std::uint64_t value = number(v->lo);
    if (const Bounds* b = bounds_of(key)) within(key, *b, value);
    return value;
  }
  /// Of a request: what a field of the wire holds.
  std::uint32_t length(const Statement& s, std::uint64_t otherwise) const {
    const std::uint64_t bytes = number(s, "len", otherwise);
    within("len", {"len", 0, kMost32}, bytes);
    return static_cast<std::uint32_t>(bytes);
  }
  void within(const std::string& key, const Bounds& b, std::uint64_t value) const {
    if (value < b.least || value > b.most)
      throw Failure{line_,
                    fmt::format("{} = {}: expected a number of {} to {}", key, value, b.least, b.most)};
  }
  std::uint32_t psn(const Expr& e, std::uint64_t first) const {
    return static_cast<std::uint32_t>((number(e) + (e.relative ? first : 0)) & kMask24);
  }
  std::string word(const Statement& s, const char* key, const char* otherwise) const {
    const Value* v = s.arg(key);
    return v == nullptr ? otherwise : v->text;
  }

  void spend(std::uint64_t steps) {
    if (steps > kMostSteps - steps_)
      throw Failure{line_, fmt::format("the script takes more than {} steps (statements, frames either way, "
                                       "completions, microseconds)",
                                       kMostSteps)};
    steps_ += steps;
  }
  void hold(std::uint64_t bytes) {
    if (bytes > kMostBytes - bytes_)
      throw Failure{line_, fmt::format("the script takes more than {} MiB of frames, regions and memory "
                                       "filled or checked",
                                       kMostBytes >> 20)};
    bytes_ += bytes;
  }

  /// `count` bytes of a pattern, or zeros.
  std::vector<std::uint8_t> bytes_of(const Value& v, std::uint64_t count);

  Body& body_;
  int line_ = 1;  // that runs
  std::uint64_t steps_ = 0, bytes_ = 0;
  std::map<std::string, std::uint64_t> variables_;
  std::map<std::string, Seen> frames_;
};

}  // namespace weft::comply
