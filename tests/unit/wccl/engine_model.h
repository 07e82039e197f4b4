// SPDX-License-Identifier: Apache-2.0
// Plain model of a cluster of message engines: a window of 32 entries filled in order, issue as soon as
// dependencies are met (oldest first per unit), random times for everything else. Messages of one connection
// are delivered in posting order, as the transport promises; those of different connections in any order.
//
// What a rank's memory is, is up to the test: bytes (here), or what is known about ranges too large to hold
// (symbols.h). The model asks a memory for inside(), copy() and reduce() only.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sw/ref/reduction.h"
#include "sw/wccl/plan.h"
#include "weft_test.h"

namespace wccl::model {

using weft::test::Rng;
using weft::wire::Redop;
using weft::wire::Wqe;
using weft::wire::WqeOp;

using Bytes = std::vector<std::uint8_t>;

inline bool inside(const Bytes& m, std::uint64_t addr, std::uint64_t bytes) {
  return addr <= m.size() && bytes <= m.size() - addr;
}
inline void copy(Bytes& to, std::uint64_t dst, const Bytes& from, std::uint64_t src, std::uint64_t bytes) {
  std::memmove(&to[dst], &from[src], bytes);
}
// An empty text, or what is wrong with the entry.
inline std::string reduce(Bytes& m, const Wqe& w) {
  if (weft::ref::check_reduction(w) != weft::wire::Err::OK) return "a reduction that there is not";
  std::vector<std::span<const std::uint8_t>> sources;
  for (unsigned k = 0; k < w.nsrc; ++k) sources.emplace_back(&m[weft::ref::source_of(w, k)], w.length);
  Bytes out(w.length);
  weft::num::reduce(weft::ref::job_of(w), out, sources);
  std::copy(out.begin(), out.end(), m.begin() + static_cast<std::ptrdiff_t>(w.dst));
  return {};
}

template <class Memory>
struct Rank {
  Memory memory;
  std::vector<std::uint32_t> sems = std::vector<std::uint32_t>(256, 0);
  std::vector<Wqe> entries;
  enum State : std::uint8_t { kWaiting, kIssued, kDone };
  std::vector<State> state;
  std::size_t fetched = 0, finished = 0, in_window = 0;

  void start(std::vector<Wqe> w) {
    entries = std::move(w);
    state.assign(entries.size(), kWaiting);
    fetched = finished = in_window = 0;
  }
  bool done() const { return finished == entries.size(); }
};

struct Message {
  int from;
  std::size_t entry;
  std::uint64_t src, dst, bytes;
  std::uint16_t sem;
  std::uint32_t value;
};

template <class Memory>
class Cluster {
 public:
  static constexpr std::size_t kWindow = 32;
  using Rank = model::Rank<Memory>;

  // Every rank begins with a copy of `memory`.
  Cluster(int ranks, const Memory& memory, std::uint64_t seed)
      : ranks(static_cast<std::size_t>(ranks)), rng(seed, 77) {
    for (auto& r : this->ranks) r.memory = memory;
  }

  std::vector<Rank> ranks;
  bool start_late = false;  // ranks start at random times
  std::string fault;        // what went wrong: an address outside memory, or no progress
  // A rank is done: true if it was started again, ahead of the others. Without it no rank is.
  std::function<bool(int)> next;

  // Runs until every rank is done; false when nothing can move any more.
  bool run() {
    std::vector<bool> started(ranks.size(), !start_late);
    for (;;) {
      bool all = true, moved = false;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (!started[r]) {
          started[r] = rng.chance(0.05);
          moved = true;
          all = false;
          continue;
        }
        moved |= step(static_cast<int>(r));
        if (ranks[r].done() && next && next(static_cast<int>(r))) moved = true;
        all &= ranks[r].done();
      }
      moved |= deliver();
      if (!fault.empty()) return false;
      if (all && messages() == 0) return true;
      if (!moved && ++idle > 200) {
        fault = "deadlock";
        return false;
      }
      if (moved) idle = 0;
    }
  }

 private:
  Rng rng;
  int idle = 0;
  std::map<std::pair<int, int>, std::deque<Message>> wire;  // (from, to), in order
  std::map<int, std::deque<std::size_t>> reducer;           // entries of a rank in its reducer, in order

  std::size_t messages() const {
    std::size_t n = 0;
    for (const auto& [k, q] : wire) n += q.size();
    return n;
  }

  // Issued once its dependencies, and with rx_sync all earlier WAITs, are done.
  static bool met(const Rank& r, std::size_t i) {
    const Wqe& w = r.entries[i];
    if (w.rx_sync)
      for (std::size_t e = 0; e < i; ++e)
        if (r.entries[e].opcode == WqeOp::WAIT && r.state[e] != Rank::kDone) return false;
    return (!w.has_dep0 || r.state[w.dep0] == Rank::kDone) && (!w.has_dep1 || r.state[w.dep1] == Rank::kDone);
  }
  void finish(Rank& r, std::size_t i) {
    r.state[i] = Rank::kDone;
    ++r.finished;
    --r.in_window;
  }
  bool usable(const Rank& r, std::uint64_t a, std::uint64_t n) {
    if (inside(r.memory, a, n)) return true;
    fault = "address outside memory";
    return false;
  }

  bool step(int me) {
    Rank& r = ranks[static_cast<std::size_t>(me)];
    bool moved = false;
    while (r.fetched < r.entries.size() && r.in_window < kWindow) {
      ++r.fetched;
      ++r.in_window;
      moved = true;
    }
    for (std::size_t i = 0; i < r.fetched; ++i) {
      const Wqe& w = r.entries[i];
      if (w.length > weft::wire::kMaxWqeLength) fault = "an entry that is too long";
      if (r.state[i] != Rank::kWaiting || !met(r, i)) continue;
      switch (w.opcode) {
        case WqeOp::NOP:
          finish(r, i);
          moved = true;
          break;
        case WqeOp::WAIT:
          if (r.sems[w.sem] >= w.value && rng.chance(0.5)) {
            if (w.consume) r.sems[w.sem] -= w.value;
            finish(r, i);
            moved = true;
          }
          break;
        case WqeOp::REDUCE:
          reducer[me].push_back(i);
          r.state[i] = Rank::kIssued;
          moved = true;
          break;
        case WqeOp::WRITE:
          wire[{me, w.conn}].push_back({me, i, w.src0, w.dst, w.length, w.sem, w.value});
          r.state[i] = Rank::kIssued;
          moved = true;
          break;
        default: fault = "operation that no plan should have"; return true;
      }
    }
    auto& q = reducer[me];
    if (!q.empty()) {
      moved = true;
      if (rng.chance(0.4)) {
        fold(r, r.entries[q.front()]);
        finish(r, q.front());
        q.pop_front();
      }
    }
    return moved;
  }

  void fold(Rank& r, const Wqe& w) {
    if (!usable(r, w.dst, w.length)) return;
    for (unsigned k = 0; k < w.nsrc; ++k)
      if (!usable(r, weft::ref::source_of(w, k), w.length)) return;
    if (w.redop == Redop::COPY)
      copy(r.memory, w.dst, r.memory, w.src0, w.length);
    else
      fault = reduce(r.memory, w);
  }

  // Bytes arrive when the message does, or earlier in part: a random prefix may be written ahead of time, as
  // packets do.
  bool deliver() {
    bool moved = false;
    for (auto& [key, q] : wire) {
      if (q.empty()) continue;
      moved = true;
      Rank& to = ranks[static_cast<std::size_t>(key.second)];
      Rank& from = ranks[static_cast<std::size_t>(key.first)];
      const std::size_t ahead = rng.below(q.size());
      const Message& early = q[ahead];
      if (early.bytes != 0 && usable(to, early.dst, early.bytes) && usable(from, early.src, early.bytes))
        copy(to.memory, early.dst, from.memory, early.src, rng.below(early.bytes + 1));
      if (!fault.empty()) return true;
      if (!rng.chance(0.3)) continue;
      const Message m = q.front();
      q.pop_front();
      if (m.bytes != 0) copy(to.memory, m.dst, from.memory, m.src, m.bytes);
      to.sems[m.sem] += m.value;
      finish(from, m.entry);
    }
    return moved;
  }
};

}  // namespace wccl::model
