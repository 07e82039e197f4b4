// SPDX-License-Identifier: Apache-2.0
//
// Floats, bit for bit: conversion, sum, product, maximum and minimum of two elements. Each result is
// the exact one rounded once, to nearest, ties to even, to a format that may differ from that of the
// operands. Only integer arithmetic is used, so nothing depends on the host's floating-point unit,
// its rounding mode or the compiler's flags.
#pragma once

#include <bit>
#include <cstdint>

#include "formats.h"

namespace weft::num {

namespace detail {

__extension__ using U128 = unsigned __int128;

// An exact result travels as sign, significand and the exponent of the significand's last bit; the
// significand has at most so many bits, and its last one is set if anything below was cut off.
inline constexpr int kExactBits = 62;

// Significand and exponent of a finite x: |x| = significand x 2^exponent.
template <IsFloat F>
constexpr uint64_t significand(typename F::bits_type x) {
  const uint64_t m = F::magnitude(x), fraction = m & (F::kHidden - 1u);
  return m < F::kHidden ? fraction : fraction | F::kHidden;
}
template <IsFloat F>
constexpr int exponent(typename F::bits_type x) {
  const int field = static_cast<int>(F::magnitude(x) >> F::kFrac);
  return F::kLow + (field == 0 ? 0 : field - 1);
}

template <IsFloat F>
constexpr typename F::bits_type with_sign(typename F::bits_type magnitude, bool negative) {
  return static_cast<typename F::bits_type>(negative ? magnitude | F::kSign : magnitude);
}

constexpr void raise(Flags* flags, bool Flags::*which) {
  if (flags != nullptr) flags->*which = true;
}

// An infinite result, `exact`, or one that rounding has put beyond the largest number.
template <IsFloat To>
constexpr typename To::bits_type beyond(bool negative, bool exact, Flags* flags, bool saturate) {
  if (exact && To::kTop == Top::Ieee && !saturate) return with_sign<To>(To::kInf, negative);
  raise(flags, &Flags::overflow);
  raise(flags, &Flags::inexact);
  if (saturate || To::kTop == Top::Finite) return with_sign<To>(To::kMax, negative);
  return To::kTop == Top::Ieee ? with_sign<To>(To::kInf, negative) : To::kNan;
}

template <IsFloat To>
constexpr typename To::bits_type invalid(Flags* flags) {
  raise(flags, &Flags::invalid);
  return To::kNan;
}

// significand x 2^exponent, rounded; significand > 0.
template <IsFloat To>
constexpr typename To::bits_type round(bool negative, int exponent, uint64_t significand, Flags* flags,
                                       bool saturate) {
  const int normal = static_cast<int>(std::bit_width(significand)) - 1 - To::kFrac;  // bits to drop
  const int fewest = To::kLow - exponent;  // down to the last place of subnormals
  const int drop = normal > fewest ? normal : fewest;
  const int field = exponent + drop - To::kLow;  // less one in a normal number: the hidden bit adds it
  if (field >= 1 << To::kExp) return beyond<To>(negative, false, flags, saturate);
  uint64_t kept = 0;
  bool rest = true;
  if (drop <= 0) {
    kept = significand << -drop;
    rest = false;
  } else if (drop <= kExactBits) {  // else all of it is below half a place
    const uint64_t half = uint64_t{1} << (drop - 1), below = significand & (2 * half - 1);
    kept = significand >> drop;
    kept += below > half || (below == half && (kept & 1) != 0);
    rest = below != 0;
  }
  const uint64_t packed = kept + (static_cast<uint64_t>(field) << To::kFrac);
  if (packed > To::kMax) return beyond<To>(negative, false, flags, saturate);
  if (rest) raise(flags, &Flags::inexact);
  return with_sign<To>(static_cast<typename To::bits_type>(packed), negative);
}

// Numbers in their order, -0 just below +0.
template <IsFloat F>
constexpr int64_t order(typename F::bits_type x) {
  const int64_t m = static_cast<int64_t>(F::magnitude(x));
  return F::negative(x) ? -1 - m : m;
}

template <IsFloat A>
constexpr typename A::bits_type extreme(typename A::bits_type a, typename A::bits_type b, bool want_max,
                                        bool propagate_nan) {
  if (A::is_nan(a) || A::is_nan(b)) {
    if (propagate_nan || (A::is_nan(a) && A::is_nan(b))) return A::kNan;
    return A::is_nan(a) ? b : a;
  }
  return (order<A>(a) >= order<A>(b)) == want_max ? a : b;
}

}  // namespace detail

/// x of format From in format To. `saturate`: what is beyond To, infinity too, becomes its largest number.
template <IsFloat From, IsFloat To>
constexpr typename To::bits_type convert(typename From::bits_type x, Flags* flags = nullptr,
                                         bool saturate = false) {
  const bool negative = From::negative(x);
  if (!From::is_finite(x)) {
    return From::is_nan(x) ? To::kNan : detail::beyond<To>(negative, true, flags, saturate);
  }
  if (From::magnitude(x) == 0) return detail::with_sign<To>(0, negative);
  return detail::round<To>(negative, detail::exponent<From>(x), detail::significand<From>(x), flags,
                           saturate);
}

/// a + b of format A, in format To.
template <IsFloat A, IsFloat To = A>
constexpr typename To::bits_type add(typename A::bits_type a, typename A::bits_type b, Flags* flags = nullptr,
                                     bool saturate = false) {
  // Room below the last place of the operand with the higher exponent. What the other one has still
  // further below only sets the last bit: then the first is normal and at most one bit cancels.
  constexpr int kRoom = detail::kExactBits - 1 - (A::kFrac + 1);
  static_assert(A::kFrac + kRoom >= To::kFrac + 4, "the last bit must stay below the rounding position");
  if (!A::is_finite(a) || !A::is_finite(b)) {
    if (A::is_nan(a) || A::is_nan(b)) return To::kNan;
    if (A::is_inf(a) && A::is_inf(b) && a != b) return detail::invalid<To>(flags);
    return detail::beyond<To>(A::negative(A::is_inf(a) ? a : b), true, flags, saturate);
  }
  if (detail::exponent<A>(a) < detail::exponent<A>(b)) {
    const typename A::bits_type other = a;
    a = b;
    b = other;
  }
  const int top = detail::exponent<A>(a), apart = top - detail::exponent<A>(b);
  const int64_t x = static_cast<int64_t>(detail::significand<A>(a) << kRoom);
  int64_t y = static_cast<int64_t>(detail::significand<A>(b));
  if (apart <= kRoom) {
    y <<= kRoom - apart;
  } else {
    const int down = apart - kRoom < 62 ? apart - kRoom : 62;
    y = (y >> down) | ((y & ((int64_t{1} << down) - 1)) != 0);
  }
  const int64_t sum = (A::negative(a) ? -x : x) + (A::negative(b) ? -y : y);
  if (sum == 0) return detail::with_sign<To>(0, A::negative(a) && A::negative(b));  // x - x is +0
  const uint64_t size = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  return detail::round<To>(sum < 0, top - kRoom, size, flags, saturate);
}

/// a x b of format A, in format To.
template <IsFloat A, IsFloat To = A>
constexpr typename To::bits_type mul(typename A::bits_type a, typename A::bits_type b, Flags* flags = nullptr,
                                     bool saturate = false) {
  const bool negative = A::negative(a) != A::negative(b);
  const bool zero = A::magnitude(a) == 0 || A::magnitude(b) == 0;
  if (!A::is_finite(a) || !A::is_finite(b)) {
    if (A::is_nan(a) || A::is_nan(b)) return To::kNan;
    return zero ? detail::invalid<To>(flags) : detail::beyond<To>(negative, true, flags, saturate);
  }
  if (zero) return detail::with_sign<To>(0, negative);
  int exponent = detail::exponent<A>(a) + detail::exponent<A>(b);
  const uint64_t x = detail::significand<A>(a), y = detail::significand<A>(b);
  if constexpr (2 * (A::kFrac + 1) <= detail::kExactBits) {
    return detail::round<To>(negative, exponent, x * y, flags, saturate);
  } else {
    detail::U128 product = static_cast<detail::U128>(x) * y;
    const uint64_t high = static_cast<uint64_t>(product >> 64);
    const int width = high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                                : static_cast<int>(std::bit_width(static_cast<uint64_t>(product)));
    if (const int over = width - detail::kExactBits; over > 0) {
      const detail::U128 below = product & ((detail::U128{1} << over) - 1);
      product = product >> over | (below != 0);
      exponent += over;
    }
    return detail::round<To>(negative, exponent, static_cast<uint64_t>(product), flags, saturate);
  }
}

/// maximumNumber of IEEE 754-2019: a number beats a NaN. With `propagate_nan` its maximum: a NaN beats
/// a number. -0 is below +0. The same whichever operand comes first.
template <IsFloat A>
constexpr typename A::bits_type maximum(typename A::bits_type a, typename A::bits_type b,
                                        bool propagate_nan = false) {
  return detail::extreme<A>(a, b, true, propagate_nan);
}

/// minimumNumber, or minimum.
template <IsFloat A>
constexpr typename A::bits_type minimum(typename A::bits_type a, typename A::bits_type b,
                                        bool propagate_nan = false) {
  return detail::extreme<A>(a, b, false, propagate_nan);
}

}  // namespace weft::num
