// SPDX-License-Identifier: Apache-2.0
// What the two ends of a `udp:` body send each other (udp_body.h): packets without headers, and lines of
// text. Both ends read what a stranger may have sent.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sw/wire/frame.h"

namespace weft::comply {

inline constexpr std::size_t kMaxText = 8192;  // bytes of a datagram that are read
inline constexpr std::size_t kChunk = 2048;    // bytes of memory in a line of text

struct Datagram {
  sockaddr_in from{};
  std::vector<std::uint8_t> bytes;
  int tos = 0;
};
bool same_end(const sockaddr_in& a, const sockaddr_in& b);

/// Begins as a packet does. A line begins with a small letter, a set-up record with 'W'.
inline bool is_packet(const Datagram& d) {
  return !d.bytes.empty() && d.bytes[0] >= 0xc0;
}
/// The least that can be given headers: a BTH and an ICRC. A path number behind the BTH is not in it.
inline constexpr std::size_t kLeastPacket = wire::Bth::kBytes + wire::kIcrcBytes;
/// The frame as a wire has it: what the other end left out is put in front. `d` has kLeastPacket bytes or
/// more.
wire::Frame whole_frame(const Datagram& d, std::uint32_t from, std::uint32_t to, std::uint32_t port);
/// The other way; nothing for a frame that is too short for it.
std::optional<std::vector<std::uint8_t>> without_headers(wire::Bytes frame);
/// Byte of a packet that names its path, 0 where it has none.
std::uint8_t path_byte(const Datagram& d);

/// "word word key=number key=text ..."
struct Line {
  std::string word;
  std::map<std::string, std::string> args;

  /// Nothing: the key is there and holds anything but a number of `least` to `most`. Absent: `otherwise`.
  std::optional<std::uint64_t> number(const std::string& key, std::uint64_t most, std::uint64_t otherwise = 0,
                                      std::uint64_t least = 0) const;
  std::string text(const std::string& key) const;
};
Line read_line(const std::vector<std::uint8_t>& bytes);

std::string hex(const std::vector<std::uint8_t>& bytes);
/// Nothing: no even number of digits.
std::optional<std::vector<std::uint8_t>> unhex(const std::string& s);

}  // namespace weft::comply
