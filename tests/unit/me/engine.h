// SPDX-License-Identifier: Apache-2.0
//
// A message engine on the bench: memory, transport, reducer and host around the verilated weft_me,
// and a checker that knows what an entry must wait for. The checker takes issues and completions of
// WRITE and REDUCE from the request and completion streams, and only what no stream shows (WAIT, SET,
// NOP) from the trace port; that both tell the same is checked too.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "Vme_bench.h"
#include "graphs.h"
#include "weft_cfg.h"
#include "weft_test.h"
#include "weft_wire.h"

namespace me {

struct Range {
  uint64_t low, high;
};

struct Options {
  weft::test::Profile stall = weft::test::Profile::None;
  Range memory{40, 40};  // cycles to the first beat of a read; to the answer of a write
  Range tx{20, 20};      // cycles from request to completion
  Range nmc{20, 20};
};

/// What an entry of a running subgraph has come to, as seen by the checker.
struct Run {
  Graph graph;
  bool active = false;
  bool killed = false;  // an entry failed or the host gave it up: nothing may issue after `kill_cycle`
  uint64_t kill_cycle = 0;
  bool abort_rung = false;         // an ABORT doorbell is on its way or taken
  uint64_t cookie = 0;             // of its LAUNCH
  std::vector<bool> issued, done;  // done: ended with OK, an error, or flushed
  std::vector<bool> good;          // ... with OK
  std::vector<bool> in_flight;     // handed to transport or reducer, no completion yet
  std::vector<bool> traced;        // the trace showed its end
  std::map<uint32_t, Err> failures;
};

/// An event of the trace port with its cycle.
struct Event {
  uint64_t cycle;
  bool issue;
  uint16_t subgraph;
  uint32_t entry;
};

class Engine {
 public:
  explicit Engine(const Options& options = {}, uint64_t stream = 0);

  weft::test::Bench<Vme_bench> b;

  // ---- host
  /// Loads the firmware, starts CPU-M, registers regions, connections and (unless told not to) the
  /// completion ring.
  void set_up(bool with_ring = true);
  /// CfgCq: completions taken from then on go there, from index 0 and seq 1.
  void set_ring(uint64_t base, uint64_t entries);
  void configure(weft::cfg::Table table, unsigned index, const weft::cfg::Words& words);
  /// Rings; returns the cookie. The doorbell goes out in the order of the calls.
  uint64_t ring(DbOp op, unsigned subgraph, uint32_t count = 0, uint64_t addr = 0);
  uint64_t ring(const Doorbell& doorbell);
  /// Steps until the completion of `cookie` and takes it.
  Cqe wait(uint64_t cookie);
  /// Writes the graph to memory and registers it; the completion of the REGISTER.
  Cqe add(unsigned subgraph, const Graph& graph);
  /// As add(), for graphs that must pass.
  void add_good(unsigned subgraph, const Graph& graph);
  uint64_t launch(unsigned subgraph, unsigned group = 0);
  void signal(unsigned sem, uint32_t value);
  static uint64_t address_of(unsigned subgraph) { return kGraphs + subgraph * kGraphBytes; }

  // ---- time
  void step();
  void steps(uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) step();
  }
  /// Until the engine says idle and nothing is queued here.
  void drain();
  uint64_t cycle() const { return b.cycle(); }

  // ---- memory
  Line& line(uint64_t addr) { return memory_[addr >> 6]; }
  std::set<uint64_t> bad_lines;                       // addr >> 6 of lines whose read fails
  std::function<void(uint64_t addr, Line&)> on_read;  // may alter what the engine gets
  bool refuse_writes = false;

  // ---- what the targets answer; default OK
  std::function<Err(unsigned subgraph, uint32_t entry)> status_of;
  bool hold_tx = false, hold_nmc = false;  // no completions while set

  // ---- findings
  std::string problem;  // first thing the checker found wrong
  bool problem_expected = false;
  std::vector<Event> events;  // kept while keep_events
  bool keep_events = false;
  std::array<uint64_t, 24> counts{};  // of me_cnt_t, in its order
  std::map<unsigned, Run> runs;       // by subgraph
  std::deque<Cqe> cqes;               // not yet taken by wait()
  uint64_t cqes_seen = 0;
  uint64_t last_completion = 0;  // cycle in which one was taken
  uint64_t first_request = 0;    // cycle in which the first request of the transport since 0 was seen

 private:
  struct Pending {
    unsigned subgraph;
    uint32_t entry;
    uint8_t tag;
    uint64_t due;
  };
  struct Burst {
    uint64_t addr;
    unsigned beats, done;
    uint64_t due;
  };
  struct Setting {
    unsigned kind, index;
    weft::cfg::Words words;
  };
  struct CqRing {
    uint64_t base, entries;
    uint64_t from;  // completions the engine took before it
  };

  struct Granted {
    uint64_t base, limit;
    bool read, write;
  };

  void complain(const std::string& what);
  void check_touched(const char* what, bool to_write, uint64_t addr, uint64_t bytes);
  uint64_t draw(const Range& range) {
    return range.low == range.high ? range.low : rng_.range(range.low, range.high);
  }
  void drive();    // inputs of the cycle
  void observe();  // transfers of the cycle
  void release();  // inputs that were taken
  void take_request(uint32_t id, uint8_t tag, bool tx);
  void take_completion(uint8_t tag, Err status);
  void take_trace();
  void take_cqe(uint64_t addr, const Line& data);
  void check_issue(unsigned subgraph, uint32_t entry);
  void entry_done(unsigned subgraph, uint32_t entry, Err status);
  void kill(Run& run, uint64_t now);
  std::string where(unsigned subgraph, uint32_t entry) const;

  Options options_;
  weft::test::Rng rng_;
  weft::test::Stall db_stall_, ar_stall_, r_stall_, aw_stall_, w_stall_, tx_stall_, nmc_stall_, cpl_stall_,
      sig_stall_;
  std::map<uint64_t, Line> memory_;
  std::deque<Doorbell> doorbells_;
  std::deque<std::pair<uint16_t, uint32_t>> signals_;
  std::deque<Setting> settings_;
  std::vector<Granted> granted_;  // by regions, now or before
  uint64_t setting_cycle_ = 0;
  std::deque<Burst> reads_;
  std::deque<uint64_t> write_addrs_;
  std::deque<Line> write_lines_;
  std::deque<uint64_t> write_due_;
  std::map<unsigned, std::deque<Pending>> tx_;  // by connection
  std::deque<Pending> nmc_;
  std::map<uint8_t, Pending> open_tags_;
  std::map<uint64_t, Doorbell> asked_;      // by cookie, not yet completed
  std::map<unsigned, uint64_t> sem_limit_;  // no semaphore can be higher than this
  struct {
    bool db, sig, cpl, nmc_cpl, r, b;
  } took_{};
  uint64_t cookie_ = 0;
  std::deque<CqRing> new_rings_;  // named by set_ring(), oldest first
  uint64_t new_ring_cycle_ = 0;   // 0, or when the count of completions tells where the oldest begins
  std::deque<CqRing> rings_;      // the one in use, and those that come after what is under way
};

}  // namespace me
