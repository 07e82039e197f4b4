// SPDX-License-Identifier: Apache-2.0
//
// Operands for the reducer's arithmetic, and models with one rule broken each.
//
// Random bits alone hardly ever meet a rounding tie, a deep cancellation or a subnormal sum, so most
// pairs are made for a purpose. That they do meet every rule is shown by the broken models: a test
// that compares against one of them must find differences.
#pragma once

#include <cstdint>

#include "../../../sw/ref/numerics.h"
#include "weft_test.h"
#include "wide.h"

namespace weft::test {

template <class Type>
struct Pair {
  typename Type::bits_type a, b;
};

/// A fraction. Long runs of equal bits make carries run and ties happen.
template <num::IsFloat Type>
uint64_t fraction_of(Rng& rng) {
  const uint64_t r = rng(), n = r % (Type::kFrac + 1);
  switch ((r >> 8) & 7) {
    case 0: return 0;
    case 1: return Type::kHidden - 1u;
    case 2: return (uint64_t{1} << n) - 1;
    case 3: return ~((uint64_t{1} << n) - 1);
    case 4: return uint64_t{1} << n;
    default: return rng();
  }
}

/// A float from its parts, of which surplus bits are cut off.
template <num::IsFloat Type>
typename Type::bits_type make_float(uint64_t sign, uint64_t exponent, uint64_t fraction) {
  constexpr uint64_t kFields = (uint64_t{1} << Type::kExp) - 1;
  return static_cast<typename Type::bits_type>((sign & 1) << (Type::kExp + Type::kFrac) |
                                               (exponent & kFields) << Type::kFrac |
                                               (fraction & (Type::kHidden - 1u)));
}

/// Zeros, the ends of the subnormals and of the range, infinities, NaNs quiet and not.
template <num::IsFloat Type>
typename Type::bits_type special_of(Rng& rng) {
  using Bits = typename Type::bits_type;
  constexpr uint64_t kSome[] = {0,
                                1,
                                Type::kHidden - 1u,
                                Type::kHidden,
                                Type::kMax,
                                Type::kInf,
                                Type::kInf + 1u,
                                Type::kNan,
                                Type::kNan | 5u,
                                Type::kSign - 1u};
  const uint64_t code = kSome[rng.below(std::size(kSome))];
  return static_cast<Bits>((code & (Type::kSign - 1u)) | (rng() & Type::kSign));
}

/// One float made for a purpose.
template <num::IsFloat Type>
typename Type::bits_type float_of(Rng& rng) {
  using Bits = typename Type::bits_type;
  constexpr uint64_t kFields = uint64_t{1} << Type::kExp;
  switch (rng.below(8)) {
    case 0: return special_of<Type>(rng);
    case 1: return make_float<Type>(rng(), rng.below(3), fraction_of<Type>(rng));
    case 2: return make_float<Type>(rng(), kFields - 1 - rng.below(3), fraction_of<Type>(rng));
    case 3: return make_float<Type>(rng(), Type::kBias + rng.below(5) - 2, fraction_of<Type>(rng));
    case 4: return make_float<Type>(rng(), rng.below(kFields), fraction_of<Type>(rng));
    default: return static_cast<Bits>(rng() & (Type::kSign | (Type::kSign - 1u)));
  }
}

/// A float to be converted to `To`: often half-way between two of its numbers, or just beside.
template <num::IsFloat Type, num::IsFloat To>
typename Type::bits_type convertible_of(Rng& rng) {
  using Bits = typename Type::bits_type;
  if constexpr (Type::kFrac > To::kFrac) {
    if (rng.below(2)) {
      const Bits near = num::convert<To, Type>(float_of<To>(rng));
      const Bits half =
          static_cast<Bits>(Bits{1} << (Type::kFrac - To::kFrac - 1 + rng.below(To::kFrac + 1)));
      return static_cast<Bits>(near + half + rng.below(3) - 1);
    }
  }
  return float_of<Type>(rng);
}

/// Two floats whose sum, maximum or minimum meets a rule.
template <num::IsFloat Type>
Pair<Type> pair_of(Rng& rng, Type = {}) {
  using Bits = typename Type::bits_type;
  constexpr uint64_t kFrac = Type::kFrac, kFields = uint64_t{1} << Type::kExp;
  constexpr uint64_t kTopField = Type::kMax >> Type::kFrac;  // of the largest number
  const auto make = make_float<Type>;
  const auto fraction = [&] { return fraction_of<Type>(rng); };
  const auto any = [&] { return static_cast<Bits>(rng() & (Type::kSign | (Type::kSign - 1u))); };
  const uint64_t r = rng(), sign_a = r >> 60, sign_b = r >> 61;
  switch (r & 15) {
    case 0: return {any(), any()};
    case 1: {  // zeros of both signs; specials against anything
      if ((r >> 6 & 7) == 0) return {make(sign_a, 0, 0), make(sign_b, 0, 0)};
      if ((r >> 6 & 7) == 1) return {make(sign_a, kFields - 1, 0), make(sign_b, kFields - 1, 0)};
      const Bits special = special_of<Type>(rng), other = (r & 0x10) ? special_of<Type>(rng) : any();
      return (r & 0x20) ? Pair<Type>{special, other} : Pair<Type>{other, special};
    }
    case 2:  // both small: subnormals and the smallest normals
    case 3: return {make(sign_a, rng.below(4), fraction()), make(sign_b, rng.below(4), fraction())};
    case 4:  // both large
      return {make(sign_a, kFields - 1 - rng.below(4), fraction()),
              make(sign_b, kFields - 1 - rng.below(4), fraction())};
    case 5: {  // differences that cancel down to few bits, at any exponent
      const Bits a = make(sign_a, rng.below(kFields), fraction());
      return {
          a, static_cast<Bits>(((a ^ Type::kSign) + rng.below(17) - 8) & (Type::kSign | (Type::kSign - 1u)))};
    }
    case 6: {  // the overflow edge: largest finite plus about half its last place
      const uint64_t down = kFrac + rng.below(4) - 1;
      const Bits a =
          static_cast<Bits>((Type::kMax - (rng.below(4) == 0)) | (sign_a & 1) << (Type::kExp + Type::kFrac));
      return {a, make(sign_a, kTopField > down ? kTopField - down : 0, rng.below(3) == 0 ? fraction() : 0)};
    }
    case 7: {  // ties: b is half a last place of a, or just beside
      const uint64_t exponent = kFields > kFrac + 4 ? rng.range(kFrac + 3, kFields - 2) : kFields - 2;
      const uint64_t f = rng.below(2) ? 0 : rng.below(3) == 0 ? 1 : fraction(), apart = kFrac + rng.below(3);
      return {make(sign_a, exponent, fraction()), make(sign_b, exponent > apart ? exponent - apart : 0, f)};
    }
    case 8: {  // same magnitude
      const Bits a = make(sign_a, rng.below(kFields), fraction());
      return {a, static_cast<Bits>(Type::magnitude(a) | (sign_b & 1) << (Type::kExp + Type::kFrac))};
    }
    case 9: {  // subtract across a power of two, one to three bits apart
      const uint64_t exponent = rng.range(1, kFields - 2), apart = rng.below(4);
      return {make(0, exponent, rng.below(2) ? 0 : fraction()),
              make(1, exponent > apart ? exponent - apart : 0, fraction())};
    }
    default: {  // exponents within reach of each other
      const uint64_t exponent = rng.below(kFields),
                     other = exponent + rng.below(2 * kFrac + 10) - (kFrac + 5);
      return {make(sign_a, exponent, fraction()),
              make(sign_b, other >= kFields ? exponent : other, fraction())};
    }
  }
}

/// Two floats whose product meets a rule.
template <num::IsFloat Type>
Pair<Type> factors_of(Rng& rng, Type = {}) {
  using Bits = typename Type::bits_type;
  constexpr int64_t kFrac = Type::kFrac, kFields = int64_t{1} << Type::kExp, kBias = Type::kBias;
  const auto fraction = [&] { return fraction_of<Type>(rng); };
  // A pair whose exponent fields add up to `sum`.
  const auto adding_up = [&](int64_t sum) -> Pair<Type> {
    const int64_t low = sum > kFields - 2 ? sum - (kFields - 2) : 0,
                  high = sum < kFields - 2 ? sum : kFields - 2;
    const int64_t a =
        low <= high ? low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1))) : 0;
    return {make_float<Type>(rng(), static_cast<uint64_t>(a), fraction()),
            make_float<Type>(rng(), static_cast<uint64_t>(sum - a), fraction())};
  };
  const int64_t near = static_cast<int64_t>(rng.below(6)) - 3;
  switch (rng.below(8)) {
    case 0: return {float_of<Type>(rng), float_of<Type>(rng)};
    case 1: {
      if (rng.below(8) == 0) {  // zero times what is infinity in most formats
        return {make_float<Type>(rng(), 0, 0),
                make_float<Type>(rng(), static_cast<uint64_t>(kFields - 1), 0)};
      }
      const Bits special = special_of<Type>(rng);
      const Bits other = rng.below(2) ? special_of<Type>(rng) : float_of<Type>(rng);
      return rng.below(2) ? Pair<Type>{special, other} : Pair<Type>{other, special};
    }
    case 2: return adding_up(kBias + near);  // the smallest normal numbers
    case 3: return adding_up(kBias - static_cast<int64_t>(rng.below(kFrac + 3)));  // subnormals
    case 4: return adding_up(3 * kBias + near);                                    // the overflow edge
    case 5: {  // a subnormal times anything
      const Bits small = make_float<Type>(rng(), 0, fraction());
      return {small, float_of<Type>(rng)};
    }
    case 6: {  // few bits each, so that ties happen
      const uint64_t half = uint64_t{1} << (kFrac / 2 + 1);
      const auto some = [&] { return rng.below(half) << (kFrac - kFrac / 2 - 1); };
      return {make_float<Type>(rng(), static_cast<uint64_t>(kBias + near), some()),
              make_float<Type>(rng(), static_cast<uint64_t>(kBias), some())};
    }
    default:
      return {make_float<Type>(rng(), rng.below(static_cast<uint64_t>(kFields)), fraction()),
              make_float<Type>(rng(), rng.below(static_cast<uint64_t>(kFields)), fraction())};
  }
}

template <num::IsInt Type>
Pair<Type> pair_of(Rng& rng, Type = {}) {
  using Bits = typename Type::bits_type;
  constexpr uint64_t kHalf = uint64_t{1} << (sizeof(Bits) * 8 - 1);
  const uint64_t r = rng();
  const auto edge = [&](uint64_t pick) {
    return static_cast<Bits>((pick & 1 ? kHalf : 0) + rng.below(5) - 2);
  };
  switch (r & 3) {
    case 0: return {edge(r >> 2), edge(r >> 3)};
    case 1: return {edge(r >> 2), static_cast<Bits>(rng())};
    default: return {static_cast<Bits>(rng()), static_cast<Bits>(rng())};
  }
}

/// The reference: a op b of one type, op SUM, PROD, MAX or MIN.
template <class Type>
typename Type::bits_type reference(wire::Redop op, typename Type::bits_type a, typename Type::bits_type b) {
  switch (op) {
    case wire::Redop::PROD: return num::mul<Type>(a, b);
    case wire::Redop::MAX: return num::maximum<Type>(a, b);
    case wire::Redop::MIN: return num::minimum<Type>(a, b);
    default: return num::add<Type>(a, b);
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
  ZeroSign,        // a zero out of operands of both signs has the other sign
  ZerosEqual,      // maximum and minimum take either zero
  Saturates,       // overflow gives the largest finite number
};
inline constexpr Broken kSumFaults[] = {Broken::TiesAway,       Broken::Truncates, Broken::FlushesInputs,
                                        Broken::FlushesResults, Broken::KeepsNan,  Broken::ZeroSign,
                                        Broken::Saturates};
inline constexpr Broken kOrderFaults[] = {Broken::KeepsNan, Broken::NanWins, Broken::ZerosEqual,
                                          Broken::FlushesInputs};

/// `Type` with one rule broken. Rounding faults look at the neighbours of the right result: the
/// wrong one is chosen where the exact sum or product lies that way.
template <num::IsFloat Type>
struct Mutant {
  using Bits = typename Type::bits_type;
  static bool subnormal(Bits x) { return Type::magnitude(x) != 0 && Type::magnitude(x) < Type::kHidden; }
  static Bits flushed(Bits x) { return subnormal(x) ? static_cast<Bits>(x & Type::kSign) : x; }

  static Bits apply(Broken fault, wire::Redop op, Bits a, Bits b) {
    if (fault == Broken::FlushesInputs) a = flushed(a), b = flushed(b);
    const Bits right = reference<Type>(op, a, b);
    const bool nan_in = Type::is_nan(a) || Type::is_nan(b);
    const bool finite_in = Type::is_finite(a) && Type::is_finite(b);
    switch (fault) {
      case Broken::KeepsNan: return Type::is_nan(right) && nan_in ? (Type::is_nan(a) ? a : b) : right;
      case Broken::NanWins: return nan_in ? Type::kNan : right;
      case Broken::ZerosEqual: return Type::magnitude(a) == 0 && Type::magnitude(b) == 0 ? a : right;
      case Broken::FlushesResults: return flushed(right);
      case Broken::ZeroSign:
        return Type::magnitude(right) == 0 && Type::negative(a) != Type::negative(b)
                   ? static_cast<Bits>(right ^ Type::kSign)
                   : right;
      case Broken::Saturates:
        return !Type::is_finite(right) && finite_in
                   ? static_cast<Bits>(Type::kMax | (Type::negative(a) ? Type::kSign : Bits{0}))
                   : right;
      case Broken::TiesAway:
      case Broken::Truncates: {
        if (!finite_in || !Type::is_finite(right)) return right;
        using W = Wide<Type>;
        const W size =
            (op == wire::Redop::PROD ? W::product(a, b) : W::template of<Type>(a) + W::template of<Type>(b))
                .size();
        const W here = W::template of_magnitude<Type>(Type::magnitude(right));
        if (fault == Broken::Truncates) return here > size ? static_cast<Bits>(right - 1) : right;
        const bool tie = place_of<Type>(size, Type::magnitude(right)).tie;
        return tie && here < size && Type::magnitude(right) < Type::kMax ? static_cast<Bits>(right + 1)
                                                                         : right;
      }
      default: return right;
    }
  }
};

}  // namespace weft::test
