// SPDX-License-Identifier: Apache-2.0
// The reference endpoint as the body of a host. A flow is one WRITE with signal, or several if it is longer
// than a request may be; their addresses name the flow, so what is written can be checked packet by packet:
// each is placed once, none twice, none missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sw/ref/endpoint.h"
#include "tb/eval/body.h"
#include "tb/sim/ranks.h"

namespace weft::eval {

/// Which packets of which flows are in place. One for all hosts of a run: a flow has words of its own, which
/// only the thread that runs its destination touches.
class Placement {
 public:
  Placement(const Flows& flows, uint32_t payload);
  /// Number of the packet that starts at `offset` of a flow.
  uint64_t packet(uint32_t flow, uint64_t offset) const { return first_[flow] + offset / payload_; }
  bool has(uint64_t packet) const { return (bits_[packet / 64] >> packet % 64 & 1) != 0; }
  void set(uint64_t packet) { bits_[packet / 64] |= uint64_t{1} << packet % 64; }

 private:
  uint32_t payload_;
  std::vector<uint64_t> first_;
  std::vector<uint64_t> bits_;
};

class WeftBody final : public Body, private ref::Env {
 public:
  /// `size`: what a packet of data costs on the wire.
  WeftBody(const ref::Config& config, const PacketSize& size, uint16_t self, const Flows& flows,
           Placement& placement, tb::FramePool& frames, Events& events);

  uint32_t parts(const Flow& flow) const override {
    return static_cast<uint32_t>(std::max<uint64_t>(1, (flow.bytes + slice_ - 1) / slice_));
  }
  void start(Ps now, const Flow& flow) override;
  void on_frame(Ps now, uint32_t port, const tb::Frame& frame) override;
  bool next(Ps now, uint32_t port, bool paused, tb::FrameRef& frame) override;
  uint32_t ready_ports() const override { return endpoint_.ready_ports(); }
  Ps next_timer() const override { return endpoint_.next_timer(); }
  void on_timer(Ps now) override;
  BodyCounts counts() const override;
  size_t state_bytes() const override { return endpoint_.bytes_per_connection(); }

  /// Opens the connections that the flows need, both ends, before time begins. With ranks, `bodies` is null
  /// for hosts of other ranks, `rank_of` tells which, and all ranks call it alike.
  static tb::Status connect(const std::vector<WeftBody*>& bodies, const Flows& flows,
                            tb::Ranks* ranks = nullptr, const std::vector<unsigned>& rank_of = {});

 private:
  bool read(std::uint64_t va, std::uint8_t* bytes, std::uint32_t count) override;
  bool write(std::uint64_t va, const std::uint8_t* bytes, std::uint32_t count) override;
  bool signal(std::uint16_t sem, std::uint32_t amount) override;
  void completed(const ref::Completion& c) override;

  static constexpr uint32_t kKey = 1, kNone = ~0u;
  // Flow n is at addresses from (n + 1) << kFlowShift.
  static constexpr uint32_t kFlowShift = 41;
  size_t slot(uint16_t peer, uint16_t lane) const { return size_t{peer} * flows_.lanes + lane; }

  const uint16_t self_;
  const PacketSize size_;
  const uint64_t slice_;  // bytes of a request: whole packets
  const Flows& flows_;
  Placement& placement_;
  tb::FramePool& frames_;
  Events& events_;
  std::vector<uint32_t> conn_of_;  // by slot()
  Ps now_ = 0;                     // of the call that is under way
  uint64_t copies_ = 0;            // of stale_data: made by the network
  ref::Endpoint endpoint_;
};

}  // namespace weft::eval
