// SPDX-License-Identifier: Apache-2.0
// What the host asked of a node and the node has not done yet: register accesses over AXI4-Lite and doorbells
// over the express window, one at a time, in the order of the calls.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "tb/node/host_access.h"
#include "tb/node/pins.h"

namespace weft::tb {

class HostQueue final : public HostAccess {
 public:
  HostQueue(const AxiLitePins& csr, const DoorbellPins& doorbell);

  // Host side, between windows.
  void write(uint32_t addr, uint32_t value) override;
  void doorbell(const void* bytes64) override;
  void read(uint32_t addr) override;
  bool empty() const { return state_ == State::kIdle && ops_.empty(); }
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

  AxiLitePins csr_;
  DoorbellPins db_;
  std::deque<Op> ops_;
  State state_ = State::kIdle;
  bool address_taken_ = false, data_taken_ = false;
};

}  // namespace weft::tb
