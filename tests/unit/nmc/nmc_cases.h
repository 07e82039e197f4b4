// SPDX-License-Identifier: Apache-2.0
//
// Operand pairs for the reducer's arithmetic, and models with one rule broken each.
//
// Random bits alone hardly ever meet a rounding tie, a deep cancellation or a subnormal sum, so most
// pairs are made for a purpose. That they do meet every rule is shown by the broken models: a test
// that compares against one of them must find differences.
#pragma once

#include <cstdint>

#include "../../../sw/ref/numerics.h"
#include "weft_test.h"

namespace weft::test {

template <class Type>
struct Pair {
  typename Type::bits_type a, b;
};

/// A pair of floats of `Type` (a num::Float with kFrac fraction bits).
template <class Type, int kFrac>
Pair<Type> float_pair(Rng& rng) {
  using Bits = typename Type::bits_type;
  const auto make = [](uint64_t sign, uint64_t exponent, uint64_t fraction) {
    return static_cast<Bits>((sign & 1) << (kFrac + 8) | (exponent & 0xff) << kFrac |
                             (fraction & (Type::kHidden - 1)));
  };
  // Fractions with long runs of equal bits make carries run and ties happen.
  const auto fraction = [&]() -> uint64_t {
    const uint64_t r = rng(), n = r % (kFrac + 1);
    switch ((r >> 8) & 7) {
      case 0: return 0;
      case 1: return Type::kHidden - 1;
      case 2: return (uint64_t{1} << n) - 1;
      case 3: return ~((uint64_t{1} << n) - 1);
      case 4: return uint64_t{1} << n;
      default: return r >> 16;
    }
  };
  const uint64_t r = rng();
  const uint64_t sign_a = r >> 60, sign_b = r >> 61;
  switch (r & 15) {
    case 0: return {static_cast<Bits>(rng()), static_cast<Bits>(rng())};
    case 1: {  // zeros of both signs; specials against anything
      if ((r >> 6 & 7) == 0) return {make(sign_a, 0, 0), make(sign_b, 0, 0)};
      constexpr Bits kSome[] = {0,
                                1,
                                Type::kHidden - 1,
                                Type::kHidden,
                                Type::kInf - 1,
                                Type::kInf,
                                Type::kInf + 1,
                                Type::kNan,
                                static_cast<Bits>(Type::kNan | 5)};
      constexpr uint64_t kCount = sizeof kSome / sizeof kSome[0];
      const Bits special = static_cast<Bits>(kSome[rng.below(kCount)] | ((sign_a & 1) << (kFrac + 8)));
      Bits other = static_cast<Bits>(rng());
      if (r & 0x10) other = static_cast<Bits>(kSome[rng.below(kCount)] | ((sign_b & 1) << (kFrac + 8)));
      return (r & 0x20) ? Pair<Type>{special, other} : Pair<Type>{other, special};
    }
    case 2:  // both small: subnormals and the smallest normals
    case 3: return {make(sign_a, rng.below(4), fraction()), make(sign_b, rng.below(4), fraction())};
    case 4:
      return {make(sign_a, 255 - rng.below(4), fraction()), make(sign_b, 255 - rng.below(4), fraction())};
    case 5: {  // differences that cancel down to few bits, at any exponent
      const Bits a = make(sign_a, rng.below(256), fraction());
      return {a, static_cast<Bits>((a ^ Type::kSign) + rng.below(17) - 8)};
    }
    case 6: {  // the overflow edge: largest finite plus about half its last place
      const uint64_t down = kFrac + rng.below(4) - 1;
      const Bits a = make(sign_a, 254, Type::kHidden - 1 - (rng.below(4) == 0));
      return {a, make(sign_a, 254 - down, rng.below(3) == 0 ? fraction() : 0)};
    }
    case 7: {  // ties: b is half a last place of a, or just beside
      const uint64_t exponent = rng.range(kFrac + 3, 254);
      const uint64_t f = rng.below(2) ? 0 : rng.below(3) == 0 ? 1 : fraction();
      return {make(sign_a, exponent, fraction()), make(sign_b, exponent - kFrac - rng.below(3), f)};
    }
    case 8: {  // same magnitude
      const Bits a = make(sign_a, rng.below(256), fraction());
      return {a, static_cast<Bits>((a & ~Type::kSign) | (sign_b & 1) << (kFrac + 8))};
    }
    case 9: {  // subtract across a power of two, one to three bits apart
      const uint64_t exponent = rng.range(1, 254);
      const uint64_t apart = rng.below(4);
      return {make(0, exponent, rng.below(2) ? 0 : fraction()),
              make(1, exponent > apart ? exponent - apart : 0, fraction())};
    }
    default: {  // exponents within reach of each other
      const uint64_t exponent = rng.below(256);
      const uint64_t other = exponent + rng.below(2 * kFrac + 10) - (kFrac + 5);
      return {make(sign_a, exponent, fraction()), make(sign_b, other > 255 ? exponent : other, fraction())};
    }
  }
}

inline Pair<num::Float32> pair_of(Rng& rng, num::Float32) {
  return float_pair<num::Float32, 23>(rng);
}
inline Pair<num::Bfloat16> pair_of(Rng& rng, num::Bfloat16) {
  return float_pair<num::Bfloat16, 7>(rng);
}
inline Pair<num::Int32> pair_of(Rng& rng, num::Int32) {
  const uint64_t r = rng();
  const auto edge = [&](uint64_t pick) {
    return static_cast<uint32_t>((pick & 1 ? 0x80000000u : 0u) + rng.below(5) - 2);
  };
  switch (r & 3) {
    case 0: return {edge(r >> 2), edge(r >> 3)};
    case 1: return {edge(r >> 2), static_cast<uint32_t>(rng())};
    default: return {static_cast<uint32_t>(rng()), static_cast<uint32_t>(rng())};
  }
}

/// Rules broken one at a time.
enum class Broken {
  None,
  TiesAway,        // rounds ties away from zero
  Truncates,       // never rounds up
  FlushesInputs,   // subnormal operands are zero
  FlushesResults,  // subnormal results are zero
  KeepsNan,        // a NaN operand comes out with its payload
  NanWins,         // maximum and minimum of a number and a NaN are the NaN
  ZeroSign,        // x - x is -0
  ZerosEqual,      // maximum and minimum take either zero
  Saturates,       // overflow gives the largest finite number
};
inline constexpr Broken kSumFaults[] = {Broken::TiesAway,       Broken::Truncates, Broken::FlushesInputs,
                                        Broken::FlushesResults, Broken::KeepsNan,  Broken::ZeroSign,
                                        Broken::Saturates};
inline constexpr Broken kOrderFaults[] = {Broken::KeepsNan, Broken::NanWins, Broken::ZerosEqual,
                                          Broken::FlushesInputs};

/// `Type` with one rule broken. Rounding faults look at the neighbours of the right result: the
/// wrong one is chosen where the exact sum, in long double, says that there was a tie or a rest.
template <class Type, int kFrac>
struct Mutant {
  using Bits = typename Type::bits_type;
  static bool subnormal(Bits x) { return Type::magnitude(x) != 0 && Type::magnitude(x) < Type::kHidden; }
  static Bits flushed(Bits x) { return subnormal(x) ? static_cast<Bits>(x & Type::kSign) : x; }
  static bool finite(Bits x) { return Type::magnitude(x) < Type::kInf; }
  static long double value(Bits x) {
    const uint32_t wide = static_cast<uint32_t>(x) << (23 - kFrac);
    return static_cast<long double>(std::bit_cast<float>(wide));
  }

  static Bits apply(Broken fault, wire::Redop op, Bits a, Bits b) {
    if (fault == Broken::FlushesInputs) a = flushed(a), b = flushed(b);
    const Bits right = op == wire::Redop::SUM   ? Type::sum(a, b)
                       : op == wire::Redop::MAX ? Type::maximum(a, b)
                                                : Type::minimum(a, b);
    const bool nan_in = Type::is_nan(a) || Type::is_nan(b);
    switch (fault) {
      case Broken::KeepsNan: return Type::is_nan(right) && nan_in ? (Type::is_nan(a) ? a : b) : right;
      case Broken::NanWins: return nan_in ? Type::kNan : right;
      case Broken::ZerosEqual: return Type::magnitude(a) == 0 && Type::magnitude(b) == 0 ? a : right;
      case Broken::FlushesResults: return flushed(right);
      case Broken::ZeroSign:
        return right == 0 && (Type::negative(a) != Type::negative(b)) ? static_cast<Bits>(Type::kSign)
                                                                      : right;
      case Broken::Saturates:
        return Type::is_inf(right) && finite(a) && finite(b) ? static_cast<Bits>(right - 1) : right;
      case Broken::TiesAway:
      case Broken::Truncates: {
        if (!finite(a) || !finite(b) || !finite(right)) return right;
        const long double exact = value(a) + value(b), got = value(right);
        const long double size = exact < 0 ? -exact : exact, got_size = got < 0 ? -got : got;
        if (fault == Broken::Truncates) return got_size > size ? static_cast<Bits>(right - 1) : right;
        const long double next = value(static_cast<Bits>(Type::magnitude(right) + 1));
        return finite(static_cast<Bits>(right + 1)) && size != got_size && size - got_size == next - size
                   ? static_cast<Bits>(right + 1)
                   : right;
      }
      default: return right;
    }
  }
};

}  // namespace weft::test
