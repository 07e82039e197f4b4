// SPDX-License-Identifier: Apache-2.0
//
// The exact sum of many floats, rounded once: a fixed-point number wide enough for every float of the
// format, so that no order of the terms changes a bit. A fp16 or 8-bit format fits 64 bits, bf16 five
// words of 64.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "floats.h"

namespace weft::num {

template <IsFloat F>
class ExactSum {
 public:
  /// So many terms fit whatever they are.
  static constexpr uint64_t kMaxTerms = uint64_t{1} << 16;

  constexpr void add(typename F::bits_type x) {
    const bool negative = F::negative(x);
    if (!F::is_finite(x)) {
      nan_ |= F::is_nan(x);
      infinite_[negative] |= F::is_inf(x);
      return;
    }
    const uint64_t term = detail::significand<F>(x);
    const int shift = detail::exponent<F>(x) - F::kLow, word = shift / 64, low = shift % 64;
    const detail::U128 wide = static_cast<detail::U128>(term) << low;
    const uint64_t parts[2] = {static_cast<uint64_t>(wide), static_cast<uint64_t>(wide >> 64)};
    bool carry = negative;  // a negative term is added as its complement plus one
    for (int i = 0; i < kWords; ++i) {
      uint64_t part = i == word ? parts[0] : i == word + 1 ? parts[1] : 0;
      if (negative) part = ~part;
      const uint64_t once = sum_[i] + part, twice = once + carry;
      carry = once < part || twice < once;
      sum_[i] = twice;
    }
  }

  /// The sum in format To; of no terms, or exactly zero, it is +0.
  template <IsFloat To = F>
  constexpr typename To::bits_type result(Flags* flags = nullptr, bool saturate = false) const {
    if (nan_) return To::kNan;
    if (infinite_[0] && infinite_[1]) return detail::invalid<To>(flags);
    if (infinite_[0] || infinite_[1]) return detail::beyond<To>(infinite_[1], true, flags, saturate);
    const bool negative = (sum_[kWords - 1] >> 63) != 0;
    std::array<uint64_t, kWords> size = sum_;
    if (negative) {
      bool carry = true;
      for (uint64_t& word : size) {
        word = ~word + carry;
        carry = carry && word == 0;
      }
    }
    int top = kWords - 1;
    while (top > 0 && size[top] == 0) --top;
    if (size[top] == 0) return 0;
    // The upper kExactBits of the number, the rest as a set last bit.
    detail::U128 window = size[top];
    int exponent = F::kLow + 64 * top;
    bool below = false;
    if (top > 0) {
      window = window << 64 | size[top - 1];
      exponent -= 64;
      for (int i = 0; i < top - 1; ++i) below |= size[i] != 0;
    }
    const uint64_t high = static_cast<uint64_t>(window >> 64);
    const int width = high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                                : static_cast<int>(std::bit_width(static_cast<uint64_t>(window)));
    if (const int over = width - detail::kExactBits; over > 0) {
      below |= (window & ((detail::U128{1} << over) - 1)) != 0;
      window >>= over;
      exponent += over;
    }
    return detail::round<To>(negative, exponent, static_cast<uint64_t>(window) | below, flags, saturate);
  }

 private:
  static constexpr int kBits = F::kEmax + 1 - F::kLow + 16 + 1;  // terms, their number, the sign
  static constexpr int kWords = (kBits + 63) / 64;
  std::array<uint64_t, kWords> sum_{};  // two's complement, in units of 2^kLow
  bool nan_ = false, infinite_[2] = {false, false};
};

}  // namespace weft::num
