// SPDX-License-Identifier: Apache-2.0
//
// The reference arithmetic against the host's floating-point unit, which shares no code with it.
#include <cmath>
#include <vector>

#include "nmc_cases.h"

using namespace weft;
using test::Broken;
using wire::Dtype;
using wire::Redop;

namespace {

uint32_t bits(float x) {
  return std::isnan(x) ? num::Float32::kNan : std::bit_cast<uint32_t>(x);
}
float real(uint32_t x) {
  return std::bit_cast<float>(x);
}

// The host's answer. A bf16 sum goes through binary32 and is rounded a second time, which is exact:
// 24 bits are at least 2 x 8 + 2 (Figueroa, When is double rounding innocuous?, 1995).
uint32_t host(num::Float32, Redop op, uint32_t a, uint32_t b) {
  if (op == Redop::SUM) return bits(real(a) + real(b));
  const float x = real(a), y = real(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? bits(y) : a;
  const bool a_less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return a_less == (op == Redop::MAX) ? b : a;
}
uint16_t host(num::Bfloat16, Redop op, uint16_t a, uint16_t b) {
  uint32_t wide = host(num::Float32{}, op, uint32_t{a} << 16, uint32_t{b} << 16);
  if (!std::isnan(real(wide))) wide += 0x7fff + (wide >> 16 & 1);
  return static_cast<uint16_t>(wide >> 16);
}
uint32_t host(num::Int32, Redop op, uint32_t a, uint32_t b) {
  const int64_t x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  return static_cast<uint32_t>(op == Redop::SUM ? x + y : op == Redop::MAX ? std::max(x, y) : std::min(x, y));
}

template <class Type>
auto ours(Redop op, typename Type::bits_type a, typename Type::bits_type b) {
  return op == Redop::SUM ? Type::sum(a, b) : op == Redop::MAX ? Type::maximum(a, b) : Type::minimum(a, b);
}

template <class Type>
void compare(Redop op, uint64_t cases) {
  test::Rng rng(test::seed(), 1 + static_cast<uint64_t>(op));
  for (uint64_t i = 0; i < cases; ++i) {
    const auto [a, b] = test::pair_of(rng, Type{});
    const auto got = ours<Type>(op, a, b), want = host(Type{}, op, a, b);
    if (got != want) {
      CAPTURE(i, std::hex, uint32_t{a}, uint32_t{b}, uint32_t{got}, uint32_t{want});
      FAIL("differs from the host");
    }
  }
}

constexpr uint64_t kCases = 2'000'000;

}  // namespace

TEST_CASE("numerics: fp32 sums equal the host's", "[nmc][random]") {
  compare<num::Float32>(Redop::SUM, 2 * kCases);
}
TEST_CASE("numerics: fp32 maximum and minimum follow IEEE 754-2019", "[nmc][random]") {
  compare<num::Float32>(Redop::MAX, kCases);
  compare<num::Float32>(Redop::MIN, kCases);
}
TEST_CASE("numerics: bf16 sums are the exact sum rounded once", "[nmc][random]") {
  compare<num::Bfloat16>(Redop::SUM, 2 * kCases);
}
TEST_CASE("numerics: bf16 maximum and minimum follow IEEE 754-2019", "[nmc][random]") {
  compare<num::Bfloat16>(Redop::MAX, kCases);
  compare<num::Bfloat16>(Redop::MIN, kCases);
}
TEST_CASE("numerics: int32 wraps and compares signed (case software 11)", "[nmc][random]") {
  for (Redop op : {Redop::SUM, Redop::MAX, Redop::MIN}) compare<num::Int32>(op, kCases / 4);
}

TEST_CASE("numerics: every broken rule shows in the cases used", "[nmc][fault]") {
  const auto differences = [](auto type, auto mutant, Redop op, Broken fault) {
    using Type = decltype(type);
    test::Rng rng(test::seed(), 99);
    uint64_t n = 0;
    for (int i = 0; i < 200'000; ++i) {
      const auto [a, b] = test::pair_of(rng, Type{});
      n += decltype(mutant)::apply(fault, op, a, b) != ours<Type>(op, a, b);
    }
    return n;
  };
  using F = test::Mutant<num::Float32, 23>;
  using B = test::Mutant<num::Bfloat16, 7>;
  for (Broken fault : test::kSumFaults) {
    CAPTURE(static_cast<int>(fault));
    CHECK(differences(num::Float32{}, F{}, Redop::SUM, fault) > 20);
    CHECK(differences(num::Bfloat16{}, B{}, Redop::SUM, fault) > 20);
  }
  for (Broken fault : test::kOrderFaults) {
    for (Redop op : {Redop::MAX, Redop::MIN}) {
      CAPTURE(static_cast<int>(fault), static_cast<int>(op));
      CHECK(differences(num::Float32{}, F{}, op, fault) > 20);
      CHECK(differences(num::Bfloat16{}, B{}, op, fault) > 20);
    }
  }
  CHECK(differences(num::Float32{}, F{}, Redop::SUM, Broken::None) == 0);
}

TEST_CASE("numerics: a few sums by hand", "[nmc][smoke]") {
  using F = num::Float32;
  using B = num::Bfloat16;
  STATIC_REQUIRE(F::sum(0x3f800000, 0x33800000) == 0x3f800000);  // 1 + 2^-24: tie, to even
  STATIC_REQUIRE(F::sum(0x3f800001, 0x33800000) == 0x3f800002);  // one place up: tie, to even
  STATIC_REQUIRE(F::sum(0x3f800000, 0x33800001) == 0x3f800001);  // just above the tie
  STATIC_REQUIRE(F::sum(0x00000001, 0x00000001) == 0x00000002);
  STATIC_REQUIRE(F::sum(0x00800000, 0x80000001) == 0x007fffff);
  STATIC_REQUIRE(F::sum(0x7f7fffff, 0x73000000) == 0x7f800000);  // half a last place over the top
  STATIC_REQUIRE(F::sum(0x7f7fffff, 0x72ffffff) == 0x7f7fffff);
  STATIC_REQUIRE(F::sum(0x7f800000, 0xff800000) == 0x7fc00000);
  STATIC_REQUIRE(F::sum(0xffc01234, 0x3f800000) == 0x7fc00000);
  STATIC_REQUIRE(F::sum(0x3f800000, 0xbf800000) == 0x00000000);
  STATIC_REQUIRE(F::sum(0x80000000, 0x80000000) == 0x80000000);
  STATIC_REQUIRE(F::sum(0x00000000, 0x80000000) == 0x00000000);
  STATIC_REQUIRE(F::maximum(0x80000000, 0x00000000) == 0x00000000);
  STATIC_REQUIRE(F::minimum(0x00000000, 0x80000000) == 0x80000000);
  STATIC_REQUIRE(F::maximum(0x7f800001, 0xff800000) == 0xff800000);
  STATIC_REQUIRE(F::minimum(0xffc00000, 0x7fc00001) == 0x7fc00000);
  STATIC_REQUIRE(B::sum(0x3f80, 0x3b80) == 0x3f80);  // 1 + 2^-8
  STATIC_REQUIRE(B::sum(0x3f81, 0x3b80) == 0x3f82);
  STATIC_REQUIRE(B::sum(0x7f7f, 0x7b00) == 0x7f80);
  STATIC_REQUIRE(num::Int32::sum(0x7fffffff, 1) == 0x80000000);
  STATIC_REQUIRE(num::Int32::maximum(0x80000000, 0x7fffffff) == 0x7fffffff);
}
