// SPDX-License-Identifier: Apache-2.0
//
// Builds and checks whole Weft frames: Ethernet .. ICRC. The bytes of the headers are those of weft_wire.h;
// here are the parts that span headers: lengths, IPv4 checksum, pad, ICRC, and the order in which a receiver
// refuses a frame. docs/wire.md draws the frames. Nothing here allocates except the functions that return a
// Frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft_wire.h"

namespace weft::wire {

using Frame = std::vector<std::uint8_t>;
using Bytes = std::span<const std::uint8_t>;

inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kHistWords = kHistBits / 32;
inline constexpr std::size_t kMinFrameBytes = kHdrProbeBytes + kIcrcBytes;
inline constexpr std::size_t kMaxFrameBytes = kHdrDataBytes + kMaxPayload + kIcrcBytes;
inline constexpr std::size_t kMaxAckFrameBytes =
    kHdrAckBytes + 4 * kHistWords + kMaxAckBlocks * Wab::kBytes + kIcrcBytes;

/// CRC-32 of Ethernet (reflected 0xedb88320) over `bytes`, continuing from register `state`: start with ~0,
/// invert the last state for the checksum. About one byte a cycle and better (8 bytes a step).
std::uint32_t crc32_update(std::uint32_t state, Bytes bytes);

/// ICRC of RoCEv2 over a frame whose last covered byte is the last of `frame` (so: without the ICRC itself),
/// starting with the Ethernet header. The fields a switch may change count as ones: IPv4 DSCP, ECN, TTL and
/// checksum, UDP checksum, BTH byte 4. `frame` holds at least Ethernet .. BTH and has no IPv4 options. Sent
/// least significant byte first.
std::uint32_t icrc(Bytes frame);

/// Internet checksum (RFC 1071) of an IPv4 header, the checksum field counted as it stands: 0 over a header
/// that is right; put it into a header whose field is 0. Value in host order.
std::uint16_t ipv4_checksum(Bytes header);

/// Where a frame goes and what the network sees of it.
struct Route {
  std::uint64_t smac{};
  std::uint64_t dmac{};
  std::uint32_t sip{};
  std::uint32_t dip{};
  std::uint16_t sport{};
  std::uint8_t ecn{};  // kEcnEct0 on data, 0 on everything else
  std::uint8_t dscp{};
  std::uint8_t ttl{64};
  std::uint16_t id{};
};

/// A BTH with every constant field set.
Bth make_bth(Opcode opcode, std::uint32_t dqpn, std::uint32_t psn);

/// The builders fill lengths, checksums, pad count and versions; everything else is the caller's. `out` has
/// room for kMaxFrameBytes; the number of bytes written is returned. payload.size() <= kMaxPayload.
std::size_t write_data(std::uint8_t* out, const Route& route, Bth bth, const Wth& wth, Wdh wdh,
                       Bytes payload);
std::size_t write_probe(std::uint8_t* out, const Route& route, Bth bth, const Wth& wth);
/// Bit 31 of hist[0] is PSN base-1. wah.hist_words words are sent (at most 8), then the blocks (at most
/// kMaxAckBlocks), which set wah.blocks.
std::size_t write_ack(std::uint8_t* out, const Route& route, Bth bth, const Wth& wth, Wah wah,
                      const std::array<std::uint32_t, kHistWords>& hist, std::span<const Wab> blocks = {});
Frame build_data(const Route& route, const Bth& bth, const Wth& wth, const Wdh& wdh, Bytes payload);
Frame build_probe(const Route& route, const Bth& bth, const Wth& wth);
Frame build_ack(const Route& route, const Bth& bth, const Wth& wth, const Wah& wah,
                const std::array<std::uint32_t, kHistWords>& hist);

/// Puts the right IPv4 checksum and ICRC into a frame whose header was edited (tests, middleboxes). The frame
/// holds at least Ethernet .. BTH and the ICRC.
void reseal(std::span<std::uint8_t> frame);

/// Sets CE as a switch does: ECN bits and IPv4 checksum change, the ICRC stays right. False: the frame was
/// not ECT.
bool mark_ce(std::span<std::uint8_t> frame);

struct Parsed {
  Layout layout{};
  Eth eth;
  Ipv4 ipv4;
  Udp udp;
  Bth bth;
  Wth wth;
  Wdh wdh;                                       // Layout::DATA only
  Wah wah;                                       // Layout::ACK only
  std::array<std::uint32_t, kHistWords> hist{};  // Layout::ACK only, words not sent are all ones
  std::array<Wab, kMaxAckBlocks> blocks{};       // Layout::ACK only, wah.blocks of them
  Bytes payload;                                 // Layout::DATA only, without pad; points into the frame
};

/// One connection as the receiving port knows it.
struct RxConn {
  bool valid{};
  std::uint16_t incarnation{};
};

/// What a receiving port compares a frame with. A left-out part is not checked, so an observer may see any
/// frame.
struct RxPort {
  std::optional<std::uint64_t> mac;
  std::optional<std::uint32_t> ip;
  std::optional<std::span<const RxConn>> conns;  // index = BTH DQPN
  unsigned port = 0;
  unsigned paths_per_port = 0;  // 0: path not checked
  bool whole_protocol = false;  // false: the opcodes of is_implemented only
};

/// Opcodes that the RTL nodes of this version serve; they refuse the others with Drop::OPCODE. The reference
/// endpoint serves all.
bool is_implemented(Opcode opcode);

struct ParseResult {
  std::optional<Drop> drop;  // nothing: the frame is good
  Parsed frame;              // complete if the frame is good, else as far as it was read
  explicit operator bool() const { return !drop; }
};

/// Checks a frame in the order of weft_rx_path and says the first reason to refuse it. Path state (epoch,
/// PSN) and memory (region, message) are the receiver's own. `mac_error` is the MAC's tuser.
ParseResult parse(Bytes frame, const RxPort& port = {}, bool mac_error = false);

}  // namespace weft::wire
