// SPDX-License-Identifier: Apache-2.0
// The registers of a node that is not made of RTL: the map of weft_regs.h and the behaviour of
// docs/registers.md, so that the driver finds what it finds on a card. One access at a time, in order.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "sw/ref/engine.h"
#include "tb/node/host_access.h"
#include "tb/sim/time.h"
#include "weft_cfg.h"
#include "weft_wire.h"

namespace weft::tb {

inline constexpr Ps kHostAccess = 6 * kClockPs;  // of a register or doorbell

// What the CAPS registers say: the sizes of weft_nic100.
struct RefSize : ref::EngineSize {
  uint32_t paths_per_port = 8;
  uint32_t messages = 256;
};

// What the registers act on.
class RefHostTarget {
 public:
  virtual ~RefHostTarget() = default;
  virtual void configure(Ps now, cfg::Table table, uint32_t index, const cfg::Words& words) = 0;
  virtual void doorbell(Ps now, const wire::Doorbell& d) = 0;
  virtual void soft_reset(Ps now) = 0;
  virtual void run_cpu(Ps now, bool run) = 0;
  virtual uint32_t cpu_status() const = 0;
  virtual uint32_t idle_bits() const = 0;              // IDLE without reset_done
  virtual uint64_t counter(uint32_t index) const = 0;  // of weft_counters.h, block host left out
  virtual uint64_t clock(Ps now) const = 0;            // cycles since reset
};

class RefHost final : public HostAccess {
 public:
  RefHost(const RefSize& size, RefHostTarget& target);

  void write(uint32_t addr, uint32_t value) override;
  void doorbell(const void* bytes64) override;
  void read(uint32_t addr) override;

  bool empty() const { return ops_.empty(); }
  // When the next access is due, kNever if none waits; `now`: the node's time.
  Ps next(Ps now) const { return ops_.empty() ? kNever : now < free_ ? free_ : now; }
  void step(Ps now);  // carries it out
  std::string state() const;

 private:
  enum class Kind : uint8_t { kWrite, kRead, kDoorbell };
  struct Op {
    Kind kind;
    uint32_t addr;
    uint32_t value;
    std::array<uint8_t, wire::Doorbell::kBytes> bytes;
  };
  bool write_register(Ps now, uint32_t addr, uint32_t value);
  bool read_register(Ps now, uint32_t addr, uint32_t& value);

  const RefSize size_;
  RefHostTarget& target_;
  std::deque<Op> ops_;
  Ps free_ = 0;
  Ps reset_until_;
  // Registers that hold something.
  bool cpu_run_ = false;
  uint32_t counter_ = 0, counter_hi_ = 0, cycles_hi_ = 0;
  uint32_t fw_addr_ = 0;
  cfg::Words data_{};
  uint64_t doorbells_ = 0, cfg_writes_ = 0, fw_writes_ = 0;
};

}  // namespace weft::tb
