// SPDX-License-Identifier: Apache-2.0
//
// The reference arithmetic, two elements at a time, against exact arithmetic (wide.h), which decides
// whether a result is the rounded one from the definition, and against the host's floating-point
// unit. test_nmc_softfloat.py compares it with SoftFloat, test_reductions.cpp tests more sources.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "nmc_cases.h"

using namespace weft;
using num::Flags;
using test::Broken;
using wire::Redop;

namespace {

constexpr auto kNarrow = [](auto format) { return sizeof(typename decltype(format)::bits_type) == 1; };

// Calls fn with a value of every float format.
template <class Fn>
void for_floats(Fn fn) {
  fn(num::Float64{}, "float64");
  fn(num::Float32{}, "float32");
  fn(num::Float16{}, "float16");
  fn(num::Bfloat16{}, "bfloat16");
  fn(num::Float8E4m3{}, "float8_e4m3");
  fn(num::Float8E5m2{}, "float8_e5m2");
}

// Sums or products of A in format To: how many of `cases` pairs are wrong. Says which was the first.
template <class A, class To, class Fn>
uint64_t faults(Redop op, uint64_t cases, bool saturate, Fn calculate, uint64_t stream = 0) {
  test::Rng rng(test::seed(), 1 + static_cast<uint64_t>(op) + 16 * stream);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < cases; ++i) {
    const auto [a, b] = op == Redop::PROD ? test::factors_of<A>(rng) : test::pair_of<A>(rng);
    Flags flags;
    const typename To::bits_type got = calculate(a, b, &flags);
    const char* const fault = op == Redop::PROD ? test::product_fault<A, To>(a, b, got, flags, saturate)
                                                : test::sum_fault<A, To>(a, b, got, flags, saturate);
    if (fault == nullptr) continue;
    if (wrong++ == 0) test::event("first fault: a %llx b %llx got %llx", a, b, got);
  }
  return wrong;
}

template <class A, class To>
uint64_t faults_of_reference(Redop op, uint64_t cases, bool saturate = false) {
  return faults<A, To>(op, cases, saturate, [&](auto a, auto b, Flags* flags) {
    return op == Redop::PROD ? num::mul<A, To>(a, b, flags, saturate)
                             : num::add<A, To>(a, b, flags, saturate);
  });
}

template <class From, class To, class Fn>
uint64_t conversion_faults(uint64_t cases, bool every, bool saturate, Fn calculate) {
  using F = std::conditional_t<std::is_same_v<From, num::Float64> || std::is_same_v<To, num::Float64>,
                               num::Float64, num::Float32>;
  test::Rng rng(test::seed(), 7);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < cases; ++i) {
    const auto x = every ? static_cast<typename From::bits_type>(i) : test::convertible_of<From, To>(rng);
    Flags flags;
    const typename To::bits_type got = calculate(x, &flags);
    if (test::conversion_fault<From, To, F>(x, got, flags, saturate) == nullptr) continue;
    if (wrong++ == 0) test::event("first fault: x %llx got %llx", x, got);
  }
  return wrong;
}

}  // namespace

TEST_CASE("numerics: sums and products of every float format are rounded once", "[nmc][random]") {
  for_floats([](auto format, const char* name) {
    using A = decltype(format);
    CAPTURE(name);
    const uint64_t cases = sizeof(format.kNan) == 8 ? 100'000 : 500'000;
    CHECK(faults_of_reference<A, A>(Redop::SUM, cases) == 0);
    CHECK(faults_of_reference<A, A>(Redop::PROD, cases) == 0);
  });
}

TEST_CASE("numerics: sums and products of an accumulator are rounded once to every result", "[nmc][random]") {
  for_floats([](auto format, const char* name) {
    using To = decltype(format);
    CAPTURE(name);
    for (Redop op : {Redop::SUM, Redop::PROD}) {
      CHECK(faults_of_reference<num::Float64, To>(op, 50'000) == 0);
      if constexpr (!std::is_same_v<To, num::Float64>)
        CHECK(faults_of_reference<num::Float32, To>(op, 200'000) == 0);
      if constexpr (kNarrow(format)) {
        CHECK(faults_of_reference<num::Float64, To>(op, 50'000, true) == 0);
        CHECK(faults_of_reference<num::Float32, To>(op, 200'000, true) == 0);
      }
    }
  });
}

TEST_CASE("numerics: every pair of 8-bit floats, in their own format and by binary32", "[nmc]") {
  const auto all = [](auto format, bool saturate) {
    using F = decltype(format);
    for (Redop op : {Redop::SUM, Redop::PROD}) {
      uint64_t wrong = 0;
      for (unsigned i = 0; i < 65536; ++i) {
        const auto a = static_cast<uint8_t>(i), b = static_cast<uint8_t>(i >> 8);
        const uint32_t x = num::convert<F, num::Float32>(a), y = num::convert<F, num::Float32>(b);
        Flags own, wide;
        const bool sum = op == Redop::SUM;
        const uint8_t got = sum ? num::add<F>(a, b, &own, saturate) : num::mul<F>(a, b, &own, saturate);
        const uint8_t via = sum ? num::add<num::Float32, F>(x, y, &wide, saturate)
                                : num::mul<num::Float32, F>(x, y, &wide, saturate);
        const char* const fault = sum ? test::sum_fault<F, F>(a, b, got, own, saturate)
                                      : test::product_fault<F, F>(a, b, got, own, saturate);
        wrong += fault != nullptr || got != via || own != wide;
      }
      CHECK(wrong == 0);
    }
  };
  for (bool saturate : {false, true}) {
    all(num::Float8E4m3{}, saturate);
    all(num::Float8E5m2{}, saturate);
  }
}

TEST_CASE("numerics: every conversion of 16- and 8-bit floats, and many of wider ones", "[nmc]") {
  for_floats([](auto from, const char* from_name) {
    for_floats([&](auto to, const char* to_name) {
      using From = decltype(from);
      using To = decltype(to);
      CAPTURE(from_name, to_name);
      const bool every = sizeof(from.kNan) <= 2;
      const uint64_t cases = every ? uint64_t{1} << 8 * sizeof(from.kNan) : 100'000;
      for (bool saturate : {false, true}) {
        if (saturate && !kNarrow(to)) continue;
        CHECK(conversion_faults<From, To>(cases, every, saturate, [&](auto x, Flags* flags) {
                return num::convert<From, To>(x, flags, saturate);
              }) == 0);
      }
    });
  });
}

TEST_CASE("numerics: maximum and minimum follow IEEE 754-2019 (case software 7)", "[nmc][random]") {
  // By the host's comparison, which treats -0 and +0 as equal and every NaN as unordered.
  const auto check = [](auto format, auto real, uint64_t cases) {
    using F = decltype(format);
    using Bits = typename F::bits_type;
    test::Rng rng(test::seed(), 3);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < cases; ++i) {
      const auto [a, b] = test::pair_of<F>(rng);
      const auto x = real(a), y = real(b);
      for (bool propagate : {false, true}) {
        for (bool want_max : {false, true}) {
          Bits want;
          if (std::isnan(x) || std::isnan(y)) {
            want = propagate || (std::isnan(x) && std::isnan(y)) ? F::kNan : std::isnan(x) ? b : a;
          } else {
            const bool a_less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
            want = a_less == want_max ? b : a;
          }
          const auto f = [&](Bits p, Bits q) {
            return want_max ? num::maximum<F>(p, q, propagate) : num::minimum<F>(p, q, propagate);
          };
          wrong += f(a, b) != want || f(b, a) != want;
        }
      }
    }
    CHECK(wrong == 0);
  };
  check(
      num::Float64{}, [](uint64_t x) { return std::bit_cast<double>(x); }, 500'000);
  check(
      num::Float32{}, [](uint32_t x) { return std::bit_cast<float>(x); }, 500'000);
  check(
      num::Bfloat16{}, [](uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }, 500'000);
  const auto narrow = [](auto format) {
    return [](auto x) { return std::bit_cast<float>(num::convert<decltype(format), num::Float32>(x)); };
  };
  check(num::Float16{}, narrow(num::Float16{}), 500'000);
  check(num::Float8E4m3{}, narrow(num::Float8E4m3{}), 200'000);
  check(num::Float8E5m2{}, narrow(num::Float8E5m2{}), 200'000);
}

TEST_CASE("numerics: binary32 and binary64 equal the host's", "[nmc][random]") {
  test::Rng rng(test::seed(), 4);
  uint64_t wrong = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const auto same = [&](auto format, auto real, auto a, auto b, auto host) {
      using F = decltype(format);
      const auto want = std::bit_cast<typename F::bits_type>(host(real(a), real(b)));
      return F::is_nan(want) ? F::kNan : want;
    };
    const auto single = [](uint32_t x) { return std::bit_cast<float>(x); };
    const auto twice = [](uint64_t x) { return std::bit_cast<double>(x); };
    const auto p = test::pair_of<num::Float32>(rng), q = test::factors_of<num::Float32>(rng);
    const auto r = test::pair_of<num::Float64>(rng), s = test::factors_of<num::Float64>(rng);
    wrong += num::add<num::Float32>(p.a, p.b) != same(num::Float32{}, single, p.a, p.b, std::plus{});
    wrong += num::mul<num::Float32>(q.a, q.b) != same(num::Float32{}, single, q.a, q.b, std::multiplies{});
    wrong += num::add<num::Float64>(r.a, r.b) != same(num::Float64{}, twice, r.a, r.b, std::plus{});
    wrong += num::mul<num::Float64>(s.a, s.b) != same(num::Float64{}, twice, s.a, s.b, std::multiplies{});
  }
  CHECK(wrong == 0);
}

TEST_CASE("numerics: integers wrap and compare by their signedness (case software 11)", "[nmc][random]") {
  const auto check = [](auto format, bool every) {
    using F = decltype(format);
    using Bits = typename F::bits_type;
    using Value = typename F::value_type;
    __extension__ using S128 = __int128;
    test::Rng rng(test::seed(), 5);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < (every ? 65536 : 200'000); ++i) {
      auto [a, b] = test::pair_of<F>(rng);
      if (every) a = static_cast<Bits>(i), b = static_cast<Bits>(i >> 8);
      const S128 x = static_cast<Value>(a), y = static_cast<Value>(b);
      wrong += num::add<F>(a, b) != static_cast<Bits>(x + y);
      wrong += num::mul<F>(a, b) != static_cast<Bits>(x * y);
      wrong += num::maximum<F>(a, b) != static_cast<Bits>(x > y ? x : y);
      wrong += num::minimum<F>(a, b) != static_cast<Bits>(x > y ? y : x);
    }
    CHECK(wrong == 0);
  };
  check(num::Int8{}, true);
  check(num::Uint8{}, true);
  check(num::Int16{}, false);
  check(num::Uint16{}, false);
  check(num::Int32{}, false);
  check(num::Uint32{}, false);
  check(num::Int64{}, false);
  check(num::Uint64{}, false);
}

TEST_CASE("numerics: integers of another type keep their value, their low bits, or the nearest number",
          "[nmc][random]") {
  __extension__ using S128 = __int128;
  const auto check = [](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    using Limits = std::numeric_limits<typename To::value_type>;
    test::Rng rng(test::seed(), 6);
    const bool every = sizeof(typename From::bits_type) <= 2;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < (every ? 65536 : 20'000); ++i) {
      // Of wide types many near the ends of the narrow ones.
      const auto x = static_cast<typename From::bits_type>(every             ? i
                                                           : rng.chance(0.5) ? rng() >> rng.below(64)
                                                                             : ~(rng() >> rng.below(64)));
      const S128 value = static_cast<typename From::value_type>(x);
      const S128 nearest = std::clamp<S128>(value, Limits::min(), Limits::max());
      for (bool saturate : {false, true}) {
        Flags flags, want;
        const auto got = num::convert<From, To>(x, &flags, saturate);
        want.overflow = saturate && nearest != value;
        wrong += got != static_cast<typename To::bits_type>(saturate ? nearest : value) || flags != want;
      }
    }
    CHECK(wrong == 0);
  };
  const auto each = [](auto fn) {
    fn(num::Int8{}), fn(num::Int16{}), fn(num::Int32{}), fn(num::Int64{});
    fn(num::Uint8{}), fn(num::Uint16{}), fn(num::Uint32{}), fn(num::Uint64{});
  };
  each([&](auto from) { each([&](auto to) { check(from, to); }); });
}

TEST_CASE("numerics: every broken rule shows in the cases used", "[nmc][fault]") {
  constexpr uint64_t kCases = 20'000;
  for_floats([](auto format, const char* name) {
    using F = decltype(format);
    CAPTURE(name);
    for (Redop op : {Redop::SUM, Redop::PROD}) {
      for (Broken fault : test::kSumFaults) {
        CAPTURE(static_cast<int>(op), static_cast<int>(fault));
        // e4m3 has one NaN but for its sign, and its operands' sign is the payload then.
        CHECK(faults<F, F>(op, kCases, false, [&](auto a, auto b, Flags* flags) {
                op == Redop::PROD ? num::mul<F>(a, b, flags) : num::add<F>(a, b, flags);
                return test::Mutant<F>::apply(fault, op, a, b);
              }) > 10);
      }
      // Flags that are never raised, and one that always is.
      for (bool Flags::*flag : {&Flags::invalid, &Flags::overflow, &Flags::inexact}) {
        if (flag == &Flags::invalid && F::kTop != num::Top::Ieee)
          continue;  // nothing raises it without infinity
        for (bool value : {false, true}) {
          CHECK(faults<F, F>(op, kCases, false, [&](auto a, auto b, Flags* flags) {
                  const auto x = op == Redop::PROD ? num::mul<F>(a, b, flags) : num::add<F>(a, b, flags);
                  flags->*flag = value;
                  return x;
                }) > 10);
        }
      }
    }
    // A second rounding, of what binary32 has rounded before.
    if constexpr (!std::is_same_v<F, num::Float64> && !std::is_same_v<F, num::Float32>) {
      CHECK(faults<num::Float32, F>(Redop::SUM, 10 * kCases, false, [](auto a, auto b, Flags* flags) {
              return num::convert<num::Float32, F>(num::add<num::Float32>(a, b, flags), flags);
            }) > 0);
      CHECK(conversion_faults<num::Float32, F>(kCases, false, false, [](auto x, Flags* flags) {
              num::convert<num::Float32, F>(x, flags);
              return num::convert<num::Float32, F>(x & 0xffff'fffe);  // a bit lost on the way
            }) > 0);
    }
  });
}

TEST_CASE("numerics: a few results by hand", "[nmc][smoke]") {
  using F = num::Float32;
  using B = num::Bfloat16;
  constexpr auto sum = [](uint32_t a, uint32_t b) { return num::add<F>(a, b); };
  constexpr auto sum_b = [](uint16_t a, uint16_t b) { return num::add<B>(a, b); };
  STATIC_REQUIRE(sum(0x3f800000, 0x33800000) == 0x3f800000);  // 1 + 2^-24: tie, to even
  STATIC_REQUIRE(sum(0x3f800001, 0x33800000) == 0x3f800002);  // one place up: tie, to even
  STATIC_REQUIRE(sum(0x3f800000, 0x33800001) == 0x3f800001);  // just above the tie
  STATIC_REQUIRE(sum(0x00000001, 0x00000001) == 0x00000002);
  STATIC_REQUIRE(sum(0x00800000, 0x80000001) == 0x007fffff);
  STATIC_REQUIRE(sum(0x7f7fffff, 0x73000000) == 0x7f800000);  // half a last place over the top
  STATIC_REQUIRE(sum(0x7f7fffff, 0x72ffffff) == 0x7f7fffff);
  STATIC_REQUIRE(sum(0x7f800000, 0xff800000) == 0x7fc00000);
  STATIC_REQUIRE(sum(0xffc01234, 0x3f800000) == 0x7fc00000);
  STATIC_REQUIRE(sum(0x3f800000, 0xbf800000) == 0x00000000);
  STATIC_REQUIRE(sum(0x80000000, 0x80000000) == 0x80000000);
  STATIC_REQUIRE(sum(0x00000000, 0x80000000) == 0x00000000);
  STATIC_REQUIRE(num::maximum<F>(0x80000000, 0x00000000) == 0x00000000);
  STATIC_REQUIRE(num::minimum<F>(0x00000000, 0x80000000) == 0x80000000);
  STATIC_REQUIRE(num::maximum<F>(0x7f800001, 0xff800000) == 0xff800000);
  STATIC_REQUIRE(num::minimum<F>(0xffc00000, 0x7fc00001) == 0x7fc00000);
  STATIC_REQUIRE(num::maximum<F>(0x7f800001, 0xff800000, true) == 0x7fc00000);
  STATIC_REQUIRE(sum_b(0x3f80, 0x3b80) == 0x3f80);  // 1 + 2^-8
  STATIC_REQUIRE(sum_b(0x3f81, 0x3b80) == 0x3f82);
  STATIC_REQUIRE(sum_b(0x7f7f, 0x7b00) == 0x7f80);
  STATIC_REQUIRE(num::add<num::Int32>(0x7fffffff, 1) == 0x80000000);
  STATIC_REQUIRE(num::maximum<num::Int32>(0x80000000, 0x7fffffff) == 0x7fffffff);
  STATIC_REQUIRE(num::mul<num::Int16>(0x8000, 0xffff) == 0x8000);
  // e4m3: 448 + 16 is half-way to 480, which would be the NaN's code; 448 is even.
  STATIC_REQUIRE(num::add<num::Float8E4m3>(0x7e, 0x58) == 0x7e);
  STATIC_REQUIRE(num::add<num::Float8E4m3>(0x7e, 0x59) == 0x7f);
  STATIC_REQUIRE(num::add<num::Float8E4m3>(0xfe, 0xd9) == 0x7f);
  STATIC_REQUIRE(num::add<num::Float8E4m3>(0xfe, 0xd9, nullptr, true) == 0xfe);
  STATIC_REQUIRE(num::add<num::Float8E5m2>(0x7b, 0x7b) == 0x7c);
  STATIC_REQUIRE(num::add<num::Float8E5m2>(0x7b, 0x7b, nullptr, true) == 0x7b);
  STATIC_REQUIRE(num::convert<F, num::Float8E4m3>(F::kInf) == 0x7f);
  STATIC_REQUIRE(num::convert<F, num::Float8E5m2>(F::kInf | F::kSign, nullptr, true) == 0xfb);
  STATIC_REQUIRE(num::convert<num::Int32, num::Int8>(200) == 200);
  STATIC_REQUIRE(num::convert<num::Int32, num::Int8>(200, nullptr, true) == 127);
  STATIC_REQUIRE(num::convert<num::Int8, num::Uint32>(0xff, nullptr, true) == 0);
  STATIC_REQUIRE(num::convert<num::Uint64, num::Int64>(~uint64_t{0}, nullptr, true) == ~uint64_t{0} >> 1);
}
