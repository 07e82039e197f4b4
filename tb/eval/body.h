// SPDX-License-Identifier: Apache-2.0
// The transport of one host in an evaluation, and what it is told. Packets carry no payload: their sizes are
// counted, their bytes are not there.
//
//     start()                         Events: placed, delivered, completed
//        |                                 ^
//     +--v---------------------------------+--+
//     |                 Body                  |
//     +--^----------------------------------+-+
//        | on_frame()                       | next(), when the port is free
#pragma once

#include <algorithm>
#include <cstdint>

#include "tb/eval/flow.h"
#include "tb/fabric/fabric.h"
#include "tb/sim/frame.h"
#include "tb/sim/status.h"

namespace weft::eval {

/// Bytes of packets on the wire, everything counted: preamble, headers, check sums and inter-frame gap.
struct PacketSize {
  uint32_t payload = 4086;
  uint32_t overhead = 64;
  bool padded = false;  // payload is filled up to words of 4 bytes
  uint32_t wire(uint32_t bytes) const {
    constexpr uint32_t kLeast = tb::kMinFrameBytes + tb::kWireOverheadBytes;
    return std::max((padded ? (bytes + 3) & ~3u : bytes) + overhead, kLeast);
  }
  uint64_t packets(uint64_t bytes) const { return bytes == 0 ? 1 : (bytes + payload - 1) / payload; }
  /// Payload of the last packet of a message, which is the only one that may not be full.
  uint32_t rest(uint64_t bytes) const {
    return bytes == 0 ? 0 : static_cast<uint32_t>((bytes - 1) % payload) + 1;
  }
  /// A whole message.
  uint64_t wire_bytes(uint64_t bytes) const {
    return (packets(bytes) - 1) * wire(payload) + wire(rest(bytes));
  }
};

/// Called from inside start(), on_frame() and on_timer() of a body.
class Events {
 public:
  virtual ~Events() = default;
  /// Bytes of a flow have reached their place at this host. Never twice the same bytes.
  virtual void placed(Ps now, uint32_t flow, uint32_t bytes) = 0;
  /// All of a part of the flow is at this host (Body::parts).
  virtual void delivered(Ps now, uint32_t flow) = 0;
  /// A part is acknowledged, at the source.
  virtual void completed(Ps now, uint32_t flow) = 0;
  /// A rule was broken: the run ends.
  virtual void broken(tb::Status why) = 0;
};

struct BodyCounts {
  uint64_t data_sent = 0;
  uint64_t resent = 0;
  // Resends of packets that the network had not lost, told where one of the two copies is dropped: Weft's
  // receiver drops the original, late and settled as lost; RoCEv2's the resend, for it has the original.
  // Copies that the network made are nobody's resends.
  uint64_t needless = 0;
  uint64_t discarded = 0;  // intact data that the receiver did not take
  uint64_t acks_sent = 0;
  uint64_t others_sent = 0;  // probes, fences, congestion notices
  uint64_t timeouts = 0;
  uint64_t paths_failed = 0;
};

class Body {
 public:
  virtual ~Body() = default;
  /// In how many parts it moves a flow.
  virtual uint32_t parts(const Flow& flow) const = 0;
  virtual void start(Ps now, const Flow& flow) = 0;
  /// A frame whose last bit has arrived.
  virtual void on_frame(Ps now, uint32_t port, const tb::Frame& frame) = 0;
  /// The next frame of a port that is free. `paused`: data may not leave now. False: nothing to send before
  /// the next on_frame, start or next_timer.
  virtual bool next(Ps now, uint32_t port, bool paused, tb::FrameRef& frame) = 0;
  /// Ports that may have something to send since next() last answered false; bit n is port n.
  virtual uint32_t ready_ports() const = 0;
  virtual Ps next_timer() const = 0;
  virtual void on_timer(Ps now) = 0;

  virtual BodyCounts counts() const = 0;
  virtual size_t state_bytes() const = 0;  // of one connection
};

}  // namespace weft::eval
