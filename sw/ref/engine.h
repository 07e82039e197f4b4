// SPDX-License-Identifier: Apache-2.0
// The message engine as a model: what docs/me.md says of doorbells, subgraphs, entries, semaphores and
// completions, without I/O. No thread, no clock: doorbells, signals and answers of the transport come in by
// calls, WRITEs and completion entries go out by calls.
//
//     doorbell()   signal()   written()                        EngineEnv
//         |           |          |
//     +---v-----------v----------v----------------------+
//     | life of subgraphs -> CPU-M's checks             |----> read(), write(): entries, CQEs, REDUCE
//     | 4 contexts -> window of entries, oldest first   |----> post_write(): the transport
//     | semaphores, reducer                             |----> trace(): observers
//     +-------------------------------------------------+
//
// The same outcomes as the RTL and its firmware, in the same order where docs/me.md defines one; not the same
// cycles: time is the few constants below. After every call the caller asks next_timer() when on_timer() is
// wanted. Nothing is allocated per entry once tables have grown to what the run needs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sw/ref/config.h"
#include "sw/ref/numerics.h"
#include "weft_wire.h"

namespace weft::ref {

// The time model, after the figures of docs/me.md and docs/nmc.md at 322 MHz.
inline constexpr Ps kEngineCycle = 3'103;      // of the reducer; nmc_steps.h says how many
inline constexpr Ps kEngineEntry = 6 * kNs;    // between two entries that issue
inline constexpr Ps kEngineStart = 190 * kNs;  // LAUNCH to its first entry
inline constexpr Ps kEngineCheck = 10 * kNs;   // an entry of a REGISTER; CPU-M takes 74 to 294 cycles
// Of the reducer beside its steps and the latency of its lanes: memory there and back. A sum, 14 cycles
// behind its beats, is there after 300 ns.
inline constexpr Ps kReducerMemory = 300 * kNs - 14 * kEngineCycle;
inline constexpr std::uint32_t kEngineContexts = 4;  // subgraphs that run at a time
inline constexpr std::uint32_t kEngineWindow = 32;   // entries of a subgraph looked at

struct EngineSize {
  std::uint32_t ports = 2, conns = 64, regions = 64, sems = 256, subgraphs = 64;
  bool exact_sums = true;  // of the reducer; without them Exact = 0
  num::Parts parts() const { return {.exact = exact_sums ? 2u : 0u}; }
};

struct EngineRegion {
  bool valid = false, local_read = false, local_write = false;
  std::uint64_t base = 0, limit = 0;  // limit: first byte behind
};

/// Names are those of counters.yaml, block me and nmc. What counts how the RTL works inside (stalls, looks at
/// a WAIT) has no counterpart here.
struct EngineCounters {
  std::uint64_t doorbell, refused, register_ok, register_bad, launch, finish_ok, finish_bad, fetched,
      fetch_error, issue_tx, issue_nmc, issue_local, done, failed, flushed, sem_add, sem_saturated,
      signal_bad, cqe, cqe_error, nmc_beat, nmc_done, nmc_error;
};

class EngineEnv {
 public:
  virtual ~EngineEnv() = default;
  /// Memory. False: it answered with an error.
  virtual bool read(std::uint64_t va, std::uint8_t* bytes, std::uint32_t count) = 0;
  virtual bool write(std::uint64_t va, const std::uint8_t* bytes, std::uint32_t count) = 0;
  /// A WRITE for the transport. OK: Engine::written() will be called with the tag, exactly once and not from
  /// inside; an error is the entry's.
  virtual wire::Err post_write(Ps now, std::uint64_t tag, const wire::Wqe& entry) = 0;
  virtual std::uint64_t clock(Ps now) = 0;  // Cqe::cycles
  virtual void trace(Ps now, bool done, std::uint16_t subgraph, std::uint32_t entry, wire::WqeOp opcode,
                     wire::Err status) {
    (void)now, (void)done, (void)subgraph, (void)entry, (void)opcode, (void)status;
  }
};

class Engine {
 public:
  Engine(const EngineSize& size, EngineEnv& env);

  /// As soft reset: nothing registered, running, queued or waiting; tables empty, CPU-M stopped. Counters go
  /// on.
  void reset();

  // Tables. An index out of range does nothing.
  void set_region(std::uint32_t index, const EngineRegion& region);
  void set_link(std::uint32_t conn, std::uint32_t port, bool valid);
  void set_semaphore(Ps now, std::uint32_t index, std::uint32_t value);
  void set_ring(Ps now, std::uint64_t base, std::uint32_t last);  // last: entries - 1
  void run_cpu(Ps now, bool run);

  void doorbell(Ps now, const wire::Doorbell& d);
  void signal(Ps now, std::uint32_t sem, std::uint32_t amount);
  void written(Ps now, std::uint64_t tag, wire::Err status);

  Ps next_timer() const;
  void on_timer(Ps now);

  bool idle() const;  // no doorbell without its completion
  std::uint32_t semaphore(std::uint32_t index) const { return sems_[index]; }
  std::uint32_t served() const { return served_; }  // subgraphs CPU-M has looked at since it runs
  const EngineCounters& counters() const { return counters_; }
  std::string state() const;  // what is under way; empty at rest

  /// What CPU-M says of one entry (number `index` of its subgraph), its line read without an error.
  wire::Err check(const wire::Wqe& entry, std::uint32_t index) const;

 private:
  enum class Life : std::uint8_t { kEmpty, kRegistering, kReady, kQueued, kGivenUp, kRunning };
  struct Subgraph {
    Life life = Life::kEmpty;
    std::uint64_t addr = 0;
    std::uint32_t count = 0;
    std::uint64_t cookie = 0;  // of the REGISTER or LAUNCH under way
    std::uint8_t group = 0;    // of the LAUNCH
  };
  struct Slot {
    std::uint32_t entry = 0;
    bool issued = false;
    bool waiting = false;             // a WAIT that observers have been told of
    wire::Err error = wire::Err::OK;  // it cannot be run: what it completes with
    std::uint64_t age = 0;            // order of entering, over all contexts
    wire::Wqe wqe;
  };
  struct Context {
    bool active = false, killed = false, by_host = false;
    std::uint16_t subgraph = 0;
    std::uint16_t conn = 0;  // of the entry that is to blame
    wire::Err status = wire::Err::OK;
    std::uint64_t addr = 0;
    std::uint32_t count = 0, next = 0;  // next entry to enter
    std::uint32_t blame = 0;            // entry of the completion, once killed
    std::uint32_t oldest = 0;           // all entries below are done
    Ps from = 0;
    std::uint32_t used = 0;
    std::array<Slot, kEngineWindow> slots;  // the first `used`, in order of entry
    std::vector<std::uint64_t> done;        // a bit an entry
  };
  struct Reduction {
    Ps done;
    std::uint32_t context, entry;
  };
  struct Verdict {
    wire::Err status;
    std::uint32_t entry;
  };

  wire::Err check_range(bool to_write, std::uint64_t addr, std::uint64_t length) const;
  wire::Err check_extent(const wire::Wqe& reduce) const;
  Verdict verdict(const Subgraph& s);
  wire::Err reduce(const wire::Wqe& w);
  void complete(Ps now, std::uint64_t cookie, std::uint16_t subgraph, wire::DbOp op, wire::Err status,
                std::uint32_t entry, std::uint16_t conn);
  void next_mail(Ps now);
  void start(Ps now);
  void fill(Context& c);
  void issue(Ps now, std::uint32_t context, std::uint32_t slot);
  void retire(Ps now, std::uint32_t context, std::uint32_t entry, wire::Err status);
  void remove(Ps now, Context& c, std::uint32_t slot, wire::Err status);
  void kill(Ps now, Context& c);
  void end_if_done(Ps now, Context& c);
  void add(std::uint32_t sem, std::uint32_t amount);
  bool is_done(const Context& c, std::uint32_t entry) const {
    return entry < c.oldest || (c.done[entry / 64] >> entry % 64 & 1) != 0;
  }
  void plan(Ps now);  // work_at_ and what it will be

  const EngineSize size_;
  EngineEnv& env_;
  std::vector<EngineRegion> regions_;
  std::vector<std::uint32_t> links_;  // bits: ports that serve the connection
  std::vector<std::uint32_t> sems_;
  std::vector<Subgraph> subgraphs_;
  bool cpu_run_ = false;
  std::uint32_t served_ = 0;
  std::deque<std::uint16_t> mail_;      // to be validated; the first is being looked at
  std::deque<std::uint16_t> launches_;  // that wait for a context, or for another of their group
  Ps verdict_at_ = kNever;
  std::array<Context, kEngineContexts> contexts_;
  std::uint64_t age_ = 0;
  Ps issue_at_ = 0;  // not before
  Ps work_at_ = kNever;
  std::uint32_t work_context_ = 0, work_slot_ = 0;  // what issues then; used: nothing yet, look again
  std::deque<Reduction> reducer_;
  Ps reducer_free_ = 0;
  std::vector<std::uint8_t> sources_, result_;  // of the part of a REDUCE that is worked on
  bool ring_ = false;
  std::uint64_t ring_base_ = 0;
  std::uint32_t ring_last_ = 0, ring_seq_ = 0;
  std::deque<wire::Cqe> held_;  // completions before the first ring
  EngineCounters counters_{};
};

}  // namespace weft::ref
