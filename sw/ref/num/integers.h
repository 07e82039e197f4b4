// SPDX-License-Identifier: Apache-2.0
//
// Integers: sums and products wrap; the order is that of the type. Conversion extends or cuts, or, if
// asked to saturate, takes the nearest number of the other type.
#pragma once

#include <cstdint>
#include <limits>

#include "formats.h"

namespace weft::num {

namespace detail {

// `x`, whose low bits are of format From, extended to 64 bits.
template <IsInt From>
constexpr uint64_t extend(uint64_t x) {
  return static_cast<uint64_t>(static_cast<typename From::value_type>(x));
}

// A 64-bit number, read as int64 or uint64, clamped to the numbers of `To`.
template <IsInt To>
constexpr uint64_t clamp(uint64_t x, bool is_signed, Flags* flags) {
  using Limits = std::numeric_limits<typename To::value_type>;
  constexpr uint64_t kMost = static_cast<uint64_t>(Limits::max()),
                     kLeast = static_cast<uint64_t>(Limits::min());
  const bool below = is_signed && static_cast<int64_t>(x) < static_cast<int64_t>(kLeast);
  const bool negative = is_signed && static_cast<int64_t>(x) < 0;
  const bool above = !negative && x > kMost;
  if (flags != nullptr && (below || above)) flags->overflow = true;
  return below ? kLeast : above ? kMost : x;
}

}  // namespace detail

template <IsInt From, IsInt To>
constexpr typename To::bits_type convert(typename From::bits_type x, Flags* flags = nullptr,
                                         bool saturate = false) {
  uint64_t wide = detail::extend<From>(x);
  if (saturate) wide = detail::clamp<To>(wide, std::is_signed_v<typename From::value_type>, flags);
  return static_cast<typename To::bits_type>(wide);
}

template <IsInt A>
constexpr typename A::bits_type add(typename A::bits_type a, typename A::bits_type b) {
  return static_cast<typename A::bits_type>(a + b);
}

template <IsInt A>
constexpr typename A::bits_type mul(typename A::bits_type a, typename A::bits_type b) {
  return static_cast<typename A::bits_type>(uint64_t{a} * b);  // uint16_t would be promoted to int
}

template <IsInt A>
constexpr typename A::bits_type maximum(typename A::bits_type a, typename A::bits_type b) {
  using Value = typename A::value_type;
  return static_cast<Value>(a) >= static_cast<Value>(b) ? a : b;
}

template <IsInt A>
constexpr typename A::bits_type minimum(typename A::bits_type a, typename A::bits_type b) {
  using Value = typename A::value_type;
  return static_cast<Value>(a) <= static_cast<Value>(b) ? a : b;
}

}  // namespace weft::num
