// SPDX-License-Identifier: Apache-2.0
// What the host asked of a node and the node has not done yet: register accesses over AXI4-Lite and doorbells
// over the express window, one at a time, in the order of the calls.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "tb/node/pins.h"

namespace weft::tb {

class HostQueue {
 public:
  HostQueue(const AxiLitePins& csr, const DoorbellPins& doorbell);

  // Host side, between windows.
  void write(uint32_t addr, uint32_t value);
  void doorbell(const void* bytes64);
  void read(uint32_t addr);  // its answer becomes last_read() when reads_answered() has grown
  uint64_t reads_answered() const { return reads_answered_; }
  uint32_t last_read() const { return last_read_; }
  bool empty() const { return state_ == State::kIdle && ops_.empty(); }
  uint64_t done() const { return done_; }
  uint64_t errors() const { return errors_; }  // answers other than OKAY
  std::string state() const;

  // Clock side.
  void sample() {
    if (state_ != State::kIdle) sample_busy();
  }
  void drive() {
    if (state_ != State::kIdle || !ops_.empty()) drive_busy();
  }

 private:
  enum class Kind : uint8_t { kWrite, kRead, kDoorbell };
  struct Op {
    Kind kind;
    uint32_t addr;
    uint32_t value;
    std::array<uint8_t, 64> bytes;
  };
  enum class State : uint8_t { kIdle, kWrite, kRead, kDoorbell };
  void sample_busy();
  void drive_busy();
  void finish(bool ok);

  AxiLitePins csr_;
  DoorbellPins db_;
  std::deque<Op> ops_;
  State state_ = State::kIdle;
  bool address_taken_ = false, data_taken_ = false;
  uint64_t done_ = 0, reads_answered_ = 0, errors_ = 0;
  uint32_t last_read_ = 0;
};

}  // namespace weft::tb
