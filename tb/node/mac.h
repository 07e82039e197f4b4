// SPDX-License-Identifier: Apache-2.0
// One port of a MAC between a node's AXI-Stream pins and a link.
//
// Transmit: beats go into a FIFO of 16 KB that drains at line rate; a frame starts on the wire with its first
// beat, as in a cut-through MAC, so a node that cannot keep up underruns: that is an error of the run. tready
// falls when the FIFO is full. Receive: a frame's beats are offered as their bytes arrive; there is no tready
// and nothing waits for the node.
//
// Called like the AXI slaves: sample() before the rising edge at `now`, drive() after it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tb/node/endpoint.h"
#include "tb/node/pins.h"
#include "tb/sim/frame.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::tb {

inline constexpr uint32_t kMacFifoBytes = 16 * 1024;
inline constexpr uint32_t kPreambleBytes = 8;

struct MacCounts {
  uint64_t tx_frames = 0, tx_bytes = 0;
  uint64_t rx_frames = 0, rx_bytes = 0;
  uint64_t tx_stall_cycles = 0;  // tvalid without tready
  uint64_t underruns = 0;
};

class MacPort {
 public:
  MacPort(const MacPins& pins, uint32_t port, int64_t rate_mbps, FramePool& frames, FrameSink& sink);

  // First bit at `first_bit`; frames come in order of time.
  void receive(Ps first_bit, FrameRef frame);

  void sample(Ps now) {
    if ((*pins_.tx_valid >> port_ & 1) == 0) return;
    if (*pins_.tx_ready >> port_ & 1) {
      beat(now);
    } else {
      ++counts_.tx_stall_cycles;
    }
  }
  // `next_edge`: when the node will look at what is driven.
  void drive(Ps next_edge) {
    if (backlog_until_ > next_edge)
      drive_ready(next_edge);
    else if (!ready_)
      set_ready(true);
    if (rx_count_ != 0 || rx_offered_) drive_rx(next_edge);
  }

  // Idle, and nothing of its own will change its pins.
  bool at_rest() const { return idle() && ready_; }
  bool idle() const { return rx_count_ == 0 && !rx_offered_ && tx_bytes_ == 0; }
  const MacCounts& counts() const { return counts_; }
  const Status& error() const { return error_; }
  std::string state() const;

 private:
  struct Arriving {
    Ps first_bit;
    FrameRef frame;
  };
  void beat(Ps now);
  void drive_ready(Ps next_edge);
  void set_ready(bool ready);
  void drive_rx(Ps next_edge);
  Ps bytes_ps(uint64_t bytes) const {
    return static_cast<Ps>(bytes * 8'000'000 / static_cast<uint64_t>(rate_mbps_));
  }
  void refuse(const std::string& what);

  MacPins pins_;
  uint32_t port_;
  int64_t rate_mbps_;
  Ps fifo_ps_;  // line time of a full FIFO
  FramePool& frames_;
  FrameSink& sink_;

  FrameRef tx_frame_;  // being collected
  uint32_t tx_bytes_ = 0;
  Ps tx_start_ = 0;  // on the wire
  Ps wire_free_ = 0;
  Ps backlog_until_ = 0;  // when the FIFO would be empty
  bool ready_ = false;

  std::vector<Arriving> rx_;  // ring
  size_t rx_head_ = 0, rx_count_ = 0;
  uint32_t rx_at_ = 0;  // bytes of the first frame offered so far
  Ps rx_start_ = -1;    // its first bit; -1: not begun
  Ps rx_free_ = 0;
  bool rx_offered_ = false;

  MacCounts counts_;
  Status error_;
};

}  // namespace weft::tb
