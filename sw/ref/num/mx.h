// SPDX-License-Identifier: Apache-2.0
//
// Blocks of OCP MX 1.0: 32 elements that share a scale, a power of two. In memory the scale's byte
// (e8m0: 2^(scale - 127), 255 = NaN) lies right in front of its elements:
//
//   MXFP8   | scale | 32 bytes |               33 bytes a block
//   MXFP4   | scale | 16 bytes |               17; element 2i in the low half of byte i
//
// The reducer calculates in binary32 between one block and the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "floats.h"

namespace weft::num {

inline constexpr size_t kMxElements = 32;

/// Blocks whose elements are of format E.
template <IsFloat E>
struct Mx {
  static constexpr bool kHalfBytes = E::kExp + E::kFrac == 3;
  static constexpr size_t kElementBytes = kHalfBytes ? kMxElements / 2 : kMxElements;
  static constexpr size_t kBytes = 1 + kElementBytes;
  static constexpr uint8_t kNanScale = 0xff;

  /// The 32 numbers of a block, in binary32: exact, but for overflow to infinity.
  static constexpr void dequantise(std::span<const uint8_t, kBytes> block,
                                   std::span<uint32_t, kMxElements> values, Flags* flags = nullptr) {
    for (size_t i = 0; i < kMxElements; ++i) {
      const uint8_t byte = block[1 + (kHalfBytes ? i / 2 : i)];
      const uint8_t x = kHalfBytes ? (i % 2 ? byte >> 4 : byte & 15) : byte;
      values[i] = scaled(x, block[0], flags);
    }
  }

  /// The block nearest to 32 numbers of binary32 by the rule of OCP MX 1.0: the scale lets the largest
  /// finite number have the element format's highest exponent; elements are rounded to nearest, ties
  /// to even, and clamped to the largest. MXFP8 keeps a NaN in its element and clamps infinity;
  /// in MXFP4, which has neither, either makes the scale NaN and the elements 0.
  static constexpr void quantise(std::span<const uint32_t, kMxElements> values,
                                 std::span<uint8_t, kBytes> block, Flags* flags = nullptr) {
    uint32_t largest = 0;
    bool special = false, infinite = false;
    for (uint32_t v : values) {
      if (Float32::is_finite(v)) {
        largest = std::max(largest, Float32::magnitude(v));
      } else {
        special = true;
        infinite |= Float32::is_inf(v);
      }
    }
    if (infinite) {
      detail::raise(flags, &Flags::overflow);
      detail::raise(flags, &Flags::inexact);
    }
    std::fill(block.begin(), block.end(), uint8_t{0});
    if (special && E::kTop == Top::Finite) {
      block[0] = kNanScale;
      return;
    }
    const int shared = shared_exponent(largest);
    block[0] = static_cast<uint8_t>(shared + kScaleBias);
    for (size_t i = 0; i < kMxElements; ++i) {
      const uint8_t x = element(values[i], shared, flags);
      block[1 + (kHalfBytes ? i / 2 : i)] |= static_cast<uint8_t>(kHalfBytes && i % 2 ? x << 4 : x);
    }
  }

 private:
  static constexpr int kScaleBias = 127;

  static constexpr uint32_t scaled(uint8_t x, uint8_t scale, Flags* flags) {
    if (scale == kNanScale || E::is_nan(x)) return Float32::kNan;
    if (E::is_inf(x)) return detail::with_sign<Float32>(Float32::kInf, E::negative(x));
    if (E::magnitude(x) == 0) return detail::with_sign<Float32>(0, E::negative(x));
    return detail::round<Float32>(E::negative(x), detail::exponent<E>(x) + scale - kScaleBias,
                                  detail::significand<E>(x), flags, false);
  }

  // Of a block whose largest finite magnitude is `largest`; the lowest there is for all zeros.
  static constexpr int shared_exponent(uint32_t largest) {
    if (largest == 0) return -kScaleBias;
    const int floor_log2 = detail::exponent<Float32>(largest) +
                           static_cast<int>(std::bit_width(detail::significand<Float32>(largest))) - 1;
    return std::clamp(floor_log2 - E::kEmax, -kScaleBias, kScaleBias);
  }

  static constexpr uint8_t element(uint32_t v, int shared, Flags* flags) {
    const bool negative = Float32::negative(v);
    if (Float32::is_nan(v)) return E::kNan;
    if (Float32::is_inf(v)) return detail::with_sign<E>(E::kMax, negative);
    if (Float32::magnitude(v) == 0) return detail::with_sign<E>(0, negative);
    Flags here;  // clamping a finite number is part of the format's rule, not an overflow
    const uint8_t x = detail::round<E>(negative, detail::exponent<Float32>(v) - shared,
                                       detail::significand<Float32>(v), &here, true);
    if (here.inexact) detail::raise(flags, &Flags::inexact);
    return x;
  }
};

}  // namespace weft::num
