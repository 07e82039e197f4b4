// SPDX-License-Identifier: Apache-2.0
//
// Did the packets of a message cover it, each byte once (W-MSG-014)? A receiver that adds up bytes is
// content with a packet that came twice and another that never came. Beside the bytes it keeps
//
//   sum    of mix(end) - mix(start) over the packets of the message, modulo 2^32
//   first  the smallest start
//
// If they tile it, all that lies between cancels, and the sum is mix(first + length) - mix(first), in
// whatever order and pieces they came. If some bytes came twice and others never, what remains is a sum of
// values of mix() at other places, which is the same by chance only, once in 2^32. So mix() must be linear
// neither over addition nor over exclusive or: a test looks for sets of packets that it does not tell.
// weft_rx_cover.sv is the same in gates; a test holds the two equal.
#pragma once

#include <bit>
#include <cstdint>

namespace weft::ref {

/// Each line is one LUT of six inputs a bit, or one carry chain.
constexpr std::uint32_t cover_mix(std::uint32_t x) {
  x ^= 0x9e3779b9;
  x ^= std::rotl(x, 5) ^ std::rotl(x, 11) ^ std::rotl(x, 17) ^ std::rotl(x, 26);
  x += std::rotl(x, 13);
  x ^= std::rotl(x, 3) ^ std::rotl(x, 10) ^ std::rotl(x, 19) ^ std::rotl(x, 25);
  x += std::rotl(x, 7);
  x ^= std::rotl(x, 6) ^ std::rotl(x, 13) ^ std::rotl(x, 20) ^ std::rotl(x, 29);
  return x;
}

/// Of one message. Addresses count modulo 2^33, so that a message of 2^32 - 1 bytes has a first byte.
class Cover {
 public:
  void add(std::uint64_t va, std::uint32_t bytes) {
    const auto start = static_cast<std::uint32_t>(va);
    sum_ += cover_mix(start + bytes) - cover_mix(start);
    if (!any_ || (((va - first_) >> 32) & 1) != 0) first_ = va;
    any_ = true;
  }
  /// To be asked when the bytes add up to the length of the message.
  bool whole(std::uint32_t length) const {
    const auto start = static_cast<std::uint32_t>(first_);
    return sum_ == cover_mix(start + length) - cover_mix(start);
  }

 private:
  std::uint64_t first_ = 0;
  std::uint32_t sum_ = 0;
  bool any_ = false;
};

}  // namespace weft::ref
