// SPDX-License-Identifier: Apache-2.0
// A Weft packet with its headers decoded: what the reference endpoint takes and gives. Simulations at scale
// hand it over as it is; encode() and decode() are the way to and from the bytes of a frame.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "sw/wire/frame.h"

namespace weft::ref {

struct DataHeader {  // WDH
  std::uint64_t va;
  std::uint32_t rkey;
  std::uint32_t msg_len;
  std::uint32_t value;
  std::uint16_t stream;
  std::uint16_t msg_no;
  std::uint16_t sem;
  bool more;
  bool retx;
};

struct AckBlock {  // WAB: one more path
  std::uint32_t base;
  std::uint32_t ce_bytes;  // low 24 bits
  std::uint32_t hist;
  std::uint8_t path;
  std::uint8_t epoch;
};

struct AckHeader {  // WAH and BTH.PSN; history as in wire::Parsed: bit 31 of word 0 is PSN base-1
  std::uint32_t base;
  std::uint32_t ce_bytes;
  std::uint32_t rx_bytes;
  std::uint32_t echo;
  std::uint32_t share;
  std::uint16_t credits;
  std::uint16_t stream;
  std::uint8_t status;
  std::uint8_t hist_words;  // words on the wire; the others of `hist` are all ones
  std::uint8_t block_count;
  std::array<std::uint32_t, wire::kHistWords> hist;
  std::array<AckBlock, wire::kMaxAckBlocks> blocks;
};

struct Packet {
  wire::Opcode opcode;
  bool ce;  // received: congestion experienced
  std::uint8_t path;
  std::uint8_t epoch;
  std::uint16_t incarnation;
  std::uint16_t sport;  // UDP source port: chooses the route
  std::uint32_t conn;   // BTH.DQPN: connection number at the receiver
  std::uint32_t psn;    // data and probes
  std::uint32_t timestamp;
  std::uint16_t payload_bytes;
  std::uint16_t peer;           // given to Endpoint::open: whom the packet goes to; not on the wire
  const std::uint8_t* payload;  // null: zero bytes, or a simulation without payload
  union {
    DataHeader data;  // layout data
    AckHeader ack;    // layout ack
  };

  bool is_data() const { return opcode < wire::Opcode::ACK; }
  bool is_ack() const { return opcode == wire::Opcode::ACK || opcode == wire::Opcode::FENCE_ANSWER; }
};
static_assert(std::is_trivially_copyable_v<Packet> && sizeof(Packet) <= 168);

/// Bytes from Ethernet to the ICRC that encode() writes for `p`.
std::size_t frame_bytes(const Packet& p);

/// Writes the frame; `out` has room for wire::kMaxFrameBytes. `route` needs addresses and, if not 0, DSCP and
/// TTL; source port and ECN are the packet's.
std::size_t encode(std::uint8_t* out, wire::Route route, const Packet& p);

/// The packet in a frame that wire::parse found good. The payload points into the frame.
Packet decode(const wire::Parsed& parsed);

}  // namespace weft::ref
