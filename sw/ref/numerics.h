// SPDX-License-Identifier: Apache-2.0
//
// The numbers of Weft: what sum, maximum and minimum of two elements are, bit for bit, for every
// type that the reducer serves. The RTL (rtl/nmc), the checkers and the golden models of the
// collectives all follow this file; docs/nmc.md has the rules as a table.
//
// Floats are IEEE 754 binary32 and bfloat16 (its upper half), subnormals included. A sum is the
// exact sum rounded once, to nearest, ties to even. maximum and minimum are maximumNumber and
// minimumNumber of IEEE 754-2019: a number beats a NaN, -0 is below +0. Every NaN that comes out is
// the one canonical quiet NaN. int32 sums wrap; its maximum and minimum are signed.
//
// Only integer arithmetic is used, so the result does not depend on the host's FPU, its rounding
// mode or the compiler's flags. Nothing here allocates or throws.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "weft_wire.h"

namespace weft::num {

/// A binary float with 8 exponent bits and `kFrac` fraction bits, held in `Bits`.
template <class Bits, int kFrac>
struct Float {
  using bits_type = Bits;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kFrac + 8));
  static constexpr Bits kInf = static_cast<Bits>(Bits{0xff} << kFrac);
  static constexpr Bits kNan = static_cast<Bits>(kInf | Bits{1} << (kFrac - 1));  // the canonical one
  static constexpr Bits kHidden = static_cast<Bits>(Bits{1} << kFrac);

  static constexpr Bits magnitude(Bits x) { return static_cast<Bits>(x & ~kSign); }
  static constexpr bool negative(Bits x) { return (x & kSign) != 0; }
  static constexpr bool is_nan(Bits x) { return magnitude(x) > kInf; }
  static constexpr bool is_inf(Bits x) { return magnitude(x) == kInf; }

  static constexpr Bits sum(Bits a, Bits b) {
    if (is_nan(a) || is_nan(b) || (is_inf(a) && is_inf(b) && a != b)) return kNan;
    if (is_inf(a)) return a;
    if (is_inf(b)) return b;

    // Both as significand x 2^exponent; a's exponent is not the smaller one.
    if (exponent(a) < exponent(b)) {
      const Bits other = a;
      a = b;
      b = other;
    }
    const int top = exponent(a), apart = top - exponent(b);
    // In units of 2^-kRoom of a's last place. What b has below a unit sets its last bit instead
    // (then a is normal, 2^kRoom units are one of its places, and only "not zero" matters there).
    const int64_t x = significand(a) << kRoom;
    int64_t y = significand(b);
    if (apart <= kRoom) {
      y <<= kRoom - apart;
    } else {
      const int down = apart - kRoom < 62 ? apart - kRoom : 62;
      y = (y >> down) | ((y & ((int64_t{1} << down) - 1)) != 0);
    }
    const int64_t exact = (negative(a) ? -x : x) + (negative(b) ? -y : y);
    if (exact == 0) return negative(a) && negative(b) ? kSign : Bits{0};  // x - x is +0
    return round(exact, top);
  }

  static constexpr Bits maximum(Bits a, Bits b) {
    if (is_nan(a)) return is_nan(b) ? kNan : b;
    if (is_nan(b)) return a;
    return order(a) >= order(b) ? a : b;
  }

  static constexpr Bits minimum(Bits a, Bits b) {
    if (is_nan(a)) return is_nan(b) ? kNan : b;
    if (is_nan(b)) return a;
    return order(a) <= order(b) ? a : b;
  }

 private:
  static constexpr int kRoom = 36;

  static constexpr int exponent(Bits x) {
    const int field = magnitude(x) >> kFrac;
    return field == 0 ? 1 : field;
  }
  static constexpr int64_t significand(Bits x) {
    const Bits fraction = static_cast<Bits>(x & (kHidden - 1));
    return magnitude(x) < kHidden ? fraction : fraction | kHidden;
  }
  // Numbers in their order, -0 just below +0.
  static constexpr int64_t order(Bits x) {
    return negative(x) ? -1 - int64_t{magnitude(x)} : int64_t{magnitude(x)};
  }
  // `exact` in units of 2^-kRoom of the last place of a number with exponent field `top`.
  static constexpr Bits round(int64_t exact, int top) {
    const uint64_t value =
        exact < 0 ? uint64_t{0} - static_cast<uint64_t>(exact) : static_cast<uint64_t>(exact);
    const int normal = static_cast<int>(std::bit_width(value)) - 1 - kFrac;  // bits to drop
    const int lowest = kRoom + 1 - top;  // no fewer: the last place of subnormals
    const int drop = normal > lowest ? normal : lowest;
    const uint64_t half = uint64_t{1} << (drop - 1), rest = value & (2 * half - 1);
    uint64_t kept = value >> drop;
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    // The hidden bit carries into the exponent field: 0 without it, one more on a rounding carry.
    const uint64_t packed = kept + (static_cast<uint64_t>(top + drop - kRoom - 1) << kFrac);
    return static_cast<Bits>((packed > kInf ? kInf : packed) | (exact < 0 ? kSign : Bits{0}));
  }
};

using Float32 = Float<uint32_t, 23>;
using Bfloat16 = Float<uint16_t, 7>;

/// Two's complement, wrapping.
struct Int32 {
  using bits_type = uint32_t;
  static constexpr uint32_t sum(uint32_t a, uint32_t b) { return a + b; }
  static constexpr uint32_t maximum(uint32_t a, uint32_t b) {
    return static_cast<int32_t>(a) >= static_cast<int32_t>(b) ? a : b;
  }
  static constexpr uint32_t minimum(uint32_t a, uint32_t b) {
    return static_cast<int32_t>(a) <= static_cast<int32_t>(b) ? a : b;
  }
};

/// Bytes of an element; 0 for a type that the reducer does not serve.
constexpr size_t bytes_of(wire::Dtype type) {
  switch (type) {
    case wire::Dtype::FLOAT32: return 4;
    case wire::Dtype::BFLOAT16: return 2;
    case wire::Dtype::INT32: return 4;
    default: return 0;
  }
  return 0;
}

namespace detail {
template <class Type>
void reduce_as(wire::Redop op, std::span<uint8_t> dst, std::span<const uint8_t> src0,
               std::span<const uint8_t> src1) {
  using Bits = typename Type::bits_type;
  for (size_t at = 0; at + sizeof(Bits) <= dst.size(); at += sizeof(Bits)) {
    Bits a, b;
    std::memcpy(&a, &src0[at], sizeof(Bits));
    std::memcpy(&b, &src1[at], sizeof(Bits));
    const Bits result = op == wire::Redop::SUM   ? Type::sum(a, b)
                        : op == wire::Redop::MAX ? Type::maximum(a, b)
                                                 : Type::minimum(a, b);
    std::memcpy(&dst[at], &result, sizeof(Bits));
  }
}
}  // namespace detail

/// dst = src0 op src1, element by element; op is SUM, MAX or MIN. Little-endian, any alignment, all
/// of the same size, a multiple of the element. dst may be src0 or src1.
inline void reduce(wire::Dtype type, wire::Redop op, std::span<uint8_t> dst, std::span<const uint8_t> src0,
                   std::span<const uint8_t> src1) {
  static_assert(std::endian::native == std::endian::little);
  assert(op != wire::Redop::COPY && src0.size() == dst.size() && src1.size() == dst.size());
  switch (type) {
    case wire::Dtype::FLOAT32: return detail::reduce_as<Float32>(op, dst, src0, src1);
    case wire::Dtype::BFLOAT16: return detail::reduce_as<Bfloat16>(op, dst, src0, src1);
    case wire::Dtype::INT32: return detail::reduce_as<Int32>(op, dst, src0, src1);
    default: assert(!"a type that the reducer does not serve");
  }
}

}  // namespace weft::num
