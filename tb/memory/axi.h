// SPDX-License-Identifier: Apache-2.0
// AXI4 slaves in front of a Memory, one a master, in order, full-width INCR bursts. The strictest memory that
// AXI allows: a read returns what memory held when its address was taken, and a write changes memory when its
// B is offered; so a read sees every write whose B was given, and a master that does not wait for B is
// caught.
//
// All slaves of a node share one bandwidth. Latency is drawn per burst; data and addresses stall at random.
// Addresses outside the memory answer DECERR, those of Memory::fail_at SLVERR. What AXI forbids (a burst
// across 4 KB, an unaligned address, wlast at the wrong beat, an address or beat that is withdrawn or changed
// before it is taken) is an error of the run, kept in Shared::error.
//
// A clock cycle has two halves: sample() looks at the pins before the rising edge, drive() sets the inputs
// after it. All outputs are registered: nothing here depends combinationally on the master.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tb/memory/memory.h"
#include "tb/sim/rng.h"
#include "tb/sim/status.h"

namespace weft::tb {

// Pins of a Verilated model, by address. Buses are little-endian words: byte 0 is bits [7:0].
struct AxiReadPins {
  const uint64_t* araddr = nullptr;
  const uint8_t* arlen = nullptr;
  const uint8_t* arvalid = nullptr;
  uint8_t* arready = nullptr;
  uint32_t* rdata = nullptr;
  uint8_t* rresp = nullptr;
  uint8_t* rlast = nullptr;
  uint8_t* rvalid = nullptr;
  const uint8_t* rready = nullptr;
};
struct AxiWritePins {
  const uint64_t* awaddr = nullptr;
  const uint8_t* awlen = nullptr;
  const uint8_t* awvalid = nullptr;
  uint8_t* awready = nullptr;
  const uint32_t* wdata = nullptr;
  const uint8_t* wstrb = nullptr;
  const uint8_t* wlast = nullptr;
  const uint8_t* wvalid = nullptr;
  uint8_t* wready = nullptr;
  uint8_t* bresp = nullptr;
  uint8_t* bvalid = nullptr;
  const uint8_t* bready = nullptr;
};

struct AxiTiming {
  uint32_t latency_min_cycles = 40;
  uint32_t latency_max_cycles = 80;
  uint32_t bytes_per_cycle = 1024;
  double stall = 0;
};

// What the slaves of a node have in common.
struct AxiShared {
  AxiShared(Memory& m, const AxiTiming& t) : memory(m), timing(t) {}
  Memory& memory;
  AxiTiming timing;
  int64_t tokens = 0;  // bytes that may still move in this cycle
  uint64_t cycle = 0;
  uint64_t activity = 0;  // beats moved, for the watchdog
  Status error;           // the first thing AXI forbids

  void next_cycle() {
    ++cycle;
    tokens = std::min<int64_t>(tokens + timing.bytes_per_cycle, timing.bytes_per_cycle);
  }
  // As many cycles in which nothing moves.
  void skip_cycles(uint64_t n) {
    cycle += n;
    tokens = timing.bytes_per_cycle;
  }
};

struct AxiCounts {
  uint64_t bursts = 0;
  uint64_t beats = 0;
  uint64_t bytes = 0;   // written: bytes whose strobe was set and that reached memory
  uint64_t errors = 0;  // bursts answered with SLVERR or DECERR
};

class AxiReadSlave {
 public:
  // `beat_bytes` 64 or 128; `name` for messages.
  AxiReadSlave(AxiShared& shared, const AxiReadPins& pins, uint32_t beat_bytes, std::string name,
               uint64_t seed);
  void sample() {
    if (waits_) still_offered();
    if (*pins_.arvalid) {
      if (*pins_.arready) {
        accept();
      } else {
        waits_ = true;
        held_addr_ = *pins_.araddr;
        held_len_ = *pins_.arlen;
      }
    }
    if (offered_ && *pins_.rready) taken();
  }
  void drive() {
    if (!open_ && *pins_.arready && !*pins_.rvalid && !stalls_) return;  // nothing asked, nothing pending
    drive_busy();
  }
  bool idle() const { return !open_; }
  const AxiCounts& counts() const { return counts_; }
  const std::string& name() const { return name_; }
  std::string state() const;

 private:
  struct Burst {
    uint64_t ready_cycle;
    uint32_t beats;
    uint8_t resp;
  };
  static constexpr uint32_t kBursts = 128;
  static constexpr uint32_t kBeats = 1024;
  void still_offered();
  void accept();
  void taken();
  void drive_busy();

  AxiShared& shared_;
  AxiReadPins pins_;
  uint32_t beat_bytes_;
  std::string name_;
  Rng rng_;
  bool stalls_;
  std::vector<uint8_t> data_;  // ring of beats, in the order they leave
  std::vector<Burst> bursts_;  // ring
  uint32_t first_beat_ = 0, beats_ = 0;
  uint32_t first_burst_ = 0, open_ = 0;
  uint32_t sent_ = 0;  // beats of the first burst that the master has taken
  bool offered_ = false;
  bool waits_ = false;  // an address was offered and not taken in the cycle before
  uint64_t held_addr_ = 0;
  uint8_t held_len_ = 0;
  AxiCounts counts_;
};

class AxiWriteSlave {
 public:
  AxiWriteSlave(AxiShared& shared, const AxiWritePins& pins, uint32_t beat_bytes, std::string name,
                uint64_t seed);
  void sample() {
    if (aw_waits_) address_still_offered();
    if (*pins_.awvalid) {
      if (*pins_.awready) {
        accept_address();
      } else {
        aw_waits_ = true;
        held_addr_ = *pins_.awaddr;
        held_len_ = *pins_.awlen;
      }
    }
    if (w_waits_) beat_still_offered();
    if (*pins_.wvalid) {
      if (*pins_.wready)
        accept_data();
      else
        hold_beat();
    }
    if (offered_ && *pins_.bready) taken();
  }
  void drive() {
    if (!open_ && !beats_ && *pins_.awready && *pins_.wready && !*pins_.bvalid && !stalls_) return;
    drive_busy();
  }
  bool idle() const { return !open_ && !beats_; }
  const AxiCounts& counts() const { return counts_; }
  const std::string& name() const { return name_; }
  std::string state() const;

 private:
  struct Burst {
    uint64_t addr;
    uint64_t ready_cycle;
    uint32_t beats;
  };
  static constexpr uint32_t kBursts = 128;
  static constexpr uint32_t kBeats = 1024;
  void address_still_offered();
  void beat_still_offered();
  void hold_beat();
  void accept_address();
  void accept_data();
  void taken();
  void drive_busy();
  void match();
  uint8_t apply(const Burst& burst);

  AxiShared& shared_;
  AxiWritePins pins_;
  uint32_t beat_bytes_;
  uint32_t strobe_bytes_;
  std::string name_;
  Rng rng_;
  bool stalls_;
  std::vector<uint8_t> data_, strobes_;  // rings of beats
  std::vector<Burst> bursts_;            // ring; the first `complete_` have all their data
  std::vector<uint32_t>
      lengths_;  // ring: beats of bursts whose data is complete but whose address is not there
  uint32_t first_beat_ = 0, beats_ = 0;
  uint32_t first_burst_ = 0, open_ = 0, complete_ = 0;
  uint32_t first_length_ = 0, waiting_lengths_ = 0;
  uint32_t partial_ = 0;  // beats of the burst whose wlast has not come
  bool offered_ = false;
  bool aw_waits_ = false, w_waits_ = false;  // offered and not taken in the cycle before
  uint64_t held_addr_ = 0;
  uint8_t held_len_ = 0, held_last_ = 0;
  std::vector<uint8_t> held_beat_;  // data, then strobes
  AxiCounts counts_;
};

}  // namespace weft::tb
