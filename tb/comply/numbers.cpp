// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/numbers.h"

namespace weft::comply {
namespace {

std::uint8_t pattern(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + at;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return static_cast<std::uint8_t>(x ^ x >> 31);
}

}  // namespace

std::vector<std::uint8_t> Numbers::bytes_of(const Value& v, std::uint64_t count) {
  hold(count);
  std::vector<std::uint8_t> b(count);
  if (v.kind != Value::Kind::kPattern) return b;
  const std::uint64_t seed = number(v.lo), at = number(v.hi);
  for (std::uint64_t i = 0; i < count; ++i) b[i] = pattern(seed, at + i);
  return b;
}

}  // namespace weft::comply
