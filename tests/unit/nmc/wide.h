// SPDX-License-Identifier: Apache-2.0
//
// Exact arithmetic to judge the reducer's against: a number is a fixed-point integer wide enough for any
// sum of 64 values or product of two. Nothing is ever rounded here. Whether a result is the rounded one
// is decided from the definition, by comparing the exact number with the two midpoints around
// the result; no code is shared with sw/ref but the description of the formats.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "../../../sw/ref/numerics.h"

namespace weft::test {

/// Two's complement in units of 2^(2 x F::kLow - 1): holds products of two numbers of F, half of its
/// smallest one, and 64 times its largest squared.
template <num::IsFloat F>
class Wide {
 public:
  using Bits = typename F::bits_type;
  static constexpr int kUnit = 2 * F::kLow - 1;
  static constexpr int kWords = (2 * (F::kEmax + 1) + 8 - kUnit + 63) / 64;

  Wide() = default;
  /// The value of a finite x of any format whose numbers F has.
  template <num::IsFloat G>
  static Wide of(typename G::bits_type x) {
    Wide w = of_magnitude<G>(G::magnitude(x));
    return G::negative(x) ? -w : w;
  }
  /// The value of a code without sign, read as if no code were special: one beyond the largest number is
  /// the next one of an endless exponent.
  template <num::IsFloat G>
  static Wide of_magnitude(uint64_t code) {
    const uint64_t field = code >> G::kFrac, fraction = code & (G::kHidden - 1u);
    Wide w;
    const uint64_t digits = field == 0 ? fraction : fraction + G::kHidden;
    const int at = 1 - G::kBias - G::kFrac + static_cast<int>(field == 0 ? 0 : field - 1) - kUnit;
    for (int i = 0; i < 64; ++i) {
      if ((digits >> i & 1) != 0) w.set(at + i);
    }
    return w;
  }
  static Wide product(Bits a, Bits b) {
    // Shift and add, a bit of b at a time.
    const Wide x = of_magnitude<F>(F::magnitude(a));
    Wide sum;
    const Wide y = of_magnitude<F>(F::magnitude(b));
    for (int i = 0; i < kWords * 64; ++i) {
      if (y.words_[i / 64] == 0) {
        i |= 63;
      } else if (y.bit(i)) {
        sum = sum + x.shifted(i + kUnit);
      }
    }
    return F::negative(a) != F::negative(b) ? -sum : sum;
  }

  friend Wide operator+(const Wide& a, const Wide& b) {
    Wide r;
    unsigned carry = 0;
    for (int i = 0; i < kWords; ++i) {
      const U128 sum = static_cast<U128>(a.words_[i]) + b.words_[i] + carry;
      r.words_[i] = static_cast<uint64_t>(sum);
      carry = static_cast<unsigned>(sum >> 64);
    }
    return r;
  }
  Wide operator-() const {
    Wide r, one;
    for (int i = 0; i < kWords; ++i) r.words_[i] = ~words_[i];
    one.words_[0] = 1;
    return r + one;
  }
  bool negative() const { return words_[kWords - 1] >> 63 != 0; }
  bool zero() const { return *this == Wide{}; }
  Wide size() const { return negative() ? -*this : *this; }
  Wide twice() const { return *this + *this; }

  friend bool operator==(const Wide&, const Wide&) = default;
  /// Of numbers that are not negative.
  friend std::strong_ordering operator<=>(const Wide& a, const Wide& b) {
    for (int i = kWords - 1; i > 0; --i) {
      if (a.words_[i] != b.words_[i]) return a.words_[i] <=> b.words_[i];
    }
    return a.words_[0] <=> b.words_[0];
  }

 private:
  __extension__ using U128 = unsigned __int128;
  bool bit(int i) const { return (words_[i / 64] >> i % 64 & 1) != 0; }
  void set(int i) { words_[i / 64] |= uint64_t{1} << i % 64; }
  Wide shifted(int n) const {  // left, or without loss right
    Wide r;
    const int whole = (n >= 0 ? n : n - 63) / 64, rest = n - 64 * whole;
    for (int i = 0; i < kWords; ++i) {
      const int from = i - whole;
      if (from >= 0 && from < kWords) r.words_[i] = words_[from] << rest;
      if (rest != 0 && from > 0 && from <= kWords) r.words_[i] |= words_[from - 1] >> (64 - rest);
    }
    return r;
  }
  std::array<uint64_t, kWords> words_{};
};

/// Where an exact number lies, seen from a candidate for its rounded value.
struct Place {
  bool right = false;  ///< the candidate is the nearest, to even in a tie
  bool exact = false;  ///< it is the number itself
  bool tie = false;    ///< the number is half-way between the candidate and a neighbour
};

/// Is a number of `To` with this magnitude code the rounded value of a number of that size?
template <num::IsFloat To, num::IsFloat F>
Place place_of(const Wide<F>& size, uint64_t code) {
  using W = Wide<F>;
  const W here = W::template of_magnitude<To>(code), twice = size.twice();
  const W up = here + W::template of_magnitude<To>(code + 1);
  const W down = code == 0 ? W{} : here + W::template of_magnitude<To>(code - 1);
  Place place;
  place.exact = size == here;
  place.tie = twice == up || (code != 0 && twice == down);
  place.right = (twice > down || code == 0) && twice < up;
  if (place.tie && code % 2 == 0) place.right = true;
  return place;
}

/// Whether rounding the number leaves the range of `To`.
template <num::IsFloat To, num::IsFloat F>
bool overflows(const Wide<F>& size) {
  using W = Wide<F>;
  const W limit =
      W::template of_magnitude<To>(To::kMax) + W::template of_magnitude<To>(uint64_t{To::kMax} + 1);
  return size.twice() > limit || (size.twice() == limit && To::kMax % 2 != 0);
}

/// What is wrong with `got` and `flags` as the number rounded to `To`, or nullptr. The number is not zero.
template <num::IsFloat To, num::IsFloat F>
const char* fault_of(const Wide<F>& exact, typename To::bits_type got, num::Flags flags, bool saturate) {
  const Wide<F> size = exact.size();
  if (overflows<To>(size)) {
    const auto want = saturate ? To::kMax : To::kTop == num::Top::Ieee ? To::kInf : To::kNan;
    const bool is_nan = !saturate && To::kTop == num::Top::OneNan;
    if (To::magnitude(got) != want) return "beyond the range: wrong value";
    if (To::negative(got) != (!is_nan && exact.negative())) return "beyond the range: wrong sign";
    return flags == num::Flags{false, true, true} ? nullptr : "beyond the range: wrong flags";
  }
  if (!To::is_finite(got)) return "not finite";
  const Place place = place_of<To>(size, To::magnitude(got));
  if (!place.right) return "not the nearest";
  if (To::negative(got) != exact.negative()) return "wrong sign";
  return flags == num::Flags{false, false, !place.exact} ? nullptr : "wrong flags";
}

// The rules for two operands. `exact` is made when both are finite; what is wrong, or nullptr.
namespace detail {
template <num::IsFloat To>
const char* infinity_fault(bool negative, typename To::bits_type got, num::Flags flags, bool saturate) {
  const bool kept = To::kTop == num::Top::Ieee && !saturate;
  if (kept || saturate) {
    if (To::magnitude(got) != (kept ? To::kInf : To::kMax)) return "infinity: wrong value";
    if (To::negative(got) != negative) return "infinity: wrong sign";
  } else if (got != To::kNan) {
    return "infinity: not the NaN";
  }
  return flags == num::Flags{false, !kept, !kept} ? nullptr : "infinity: wrong flags";
}
template <num::IsFloat To>
const char* nan_fault(bool invalid, typename To::bits_type got, num::Flags flags) {
  if (got != To::kNan) return "not the canonical NaN";
  return flags == num::Flags{invalid, false, false} ? nullptr : "NaN: wrong flags";
}
template <num::IsFloat To>
const char* zero_fault(bool negative, typename To::bits_type got, num::Flags flags) {
  if (To::magnitude(got) != 0) return "not zero";
  if (To::negative(got) != negative) return "zero: wrong sign";
  return flags == num::Flags{} ? nullptr : "zero: wrong flags";
}
}  // namespace detail

/// What is wrong with `got` as a + b of format A in format To.
template <num::IsFloat A, num::IsFloat To>
const char* sum_fault(typename A::bits_type a, typename A::bits_type b, typename To::bits_type got,
                      num::Flags flags, bool saturate) {
  if (A::is_nan(a) || A::is_nan(b)) return detail::nan_fault<To>(false, got, flags);
  if (A::is_inf(a) && A::is_inf(b) && A::negative(a) != A::negative(b))
    return detail::nan_fault<To>(true, got, flags);
  if (A::is_inf(a)) return detail::infinity_fault<To>(A::negative(a), got, flags, saturate);
  if (A::is_inf(b)) return detail::infinity_fault<To>(A::negative(b), got, flags, saturate);
  const auto sum = Wide<A>::template of<A>(a) + Wide<A>::template of<A>(b);
  if (sum.zero()) return detail::zero_fault<To>(A::negative(a) && A::negative(b), got, flags);
  return fault_of<To>(sum, got, flags, saturate);
}

/// The same of a x b.
template <num::IsFloat A, num::IsFloat To>
const char* product_fault(typename A::bits_type a, typename A::bits_type b, typename To::bits_type got,
                          num::Flags flags, bool saturate) {
  const bool negative = A::negative(a) != A::negative(b);
  const bool zero = A::magnitude(a) == 0 || A::magnitude(b) == 0;
  if (A::is_nan(a) || A::is_nan(b)) return detail::nan_fault<To>(false, got, flags);
  if (A::is_inf(a) || A::is_inf(b)) {
    return zero ? detail::nan_fault<To>(true, got, flags)
                : detail::infinity_fault<To>(negative, got, flags, saturate);
  }
  if (zero) return detail::zero_fault<To>(negative, got, flags);
  return fault_of<To>(Wide<A>::product(a, b), got, flags, saturate);
}

/// The same of x as it is; `F` has the numbers of both formats.
template <num::IsFloat From, num::IsFloat To, num::IsFloat F>
const char* conversion_fault(typename From::bits_type x, typename To::bits_type got, num::Flags flags,
                             bool saturate) {
  if (From::is_nan(x)) return detail::nan_fault<To>(false, got, flags);
  if (From::is_inf(x)) return detail::infinity_fault<To>(From::negative(x), got, flags, saturate);
  if (From::magnitude(x) == 0) return detail::zero_fault<To>(From::negative(x), got, flags);
  return fault_of<To>(Wide<F>::template of<From>(x), got, flags, saturate);
}

}  // namespace weft::test
