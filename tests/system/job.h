// SPDX-License-Identifier: Apache-2.0
// An application on a cluster of nodes, played by the test: ranks may start when they like, buffers
// may lie anywhere, nodes may fail. (A workload, which checks itself, is harness.h's Trial.)
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness.h"
#include "tb/memory/memory.h"
#include "weft_counters.h"

namespace weft::test {

class Job {
 public:
  // Where an operation's buffers of a rank are: bytes from heap(rank).
  struct Buffers {
    std::uint64_t send = 0, recv = 0;
  };

  // `largest`: an operation whose buffers and scratch are at least those of every operation to come.
  Job(int ranks, const wccl::Op& largest, Trial trial = {}) : trial_(std::move(trial)) {
    trial_.workload.ranks = ranks;
    trial_.workload.ops.assign(1, tb::WorkloadOp{largest, 1, 0});
    trial_.scenario.nodes = static_cast<std::uint32_t>(ranks);
    trial_.scenario.memory.size_mib = tb::Runner::memory_mib(trial_.workload);
    auto made = tb::Cluster::create(trial_.scenario, tb::bodies(tb::make_verilated_node<Vnic100>),
                                    with_waves({}, trial_.scenario.nodes));
    REQUIRE(made.ok());
    cluster_ = made.take();
    setup(trial_.config.seed);
  }

  // Opens and connects all nodes, again if they were before: what they knew is forgotten.
  void setup(std::uint64_t seed) {
    trial_.config.seed = seed;
    runner_ = std::make_unique<tb::Runner>(*cluster_, trial_.workload, trial_.config);
    const Status s = runner_->setup();
    INFO(s.text());
    REQUIRE(s.ok());
  }

  int ranks() const { return trial_.workload.ranks; }
  tb::Cluster& cluster() { return *cluster_; }
  tb::Runner& runner() { return *runner_; }
  wccl::Communicator& comm(int rank) { return runner_->communicator(rank); }
  std::uint8_t* bytes(int rank, std::uint64_t at) {
    return cluster_->memory(static_cast<std::uint32_t>(rank)).data(runner_->heap(rank) + at);
  }
  template <class T>
  void put(int rank, std::uint64_t at, const std::vector<T>& values) {
    if (!values.empty()) std::memcpy(bytes(rank, at), values.data(), values.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> get(int rank, std::uint64_t at, std::uint64_t count) {
    std::vector<T> values(count);
    if (count != 0) std::memcpy(values.data(), bytes(rank, at), count * sizeof(T));
    return values;
  }

  // Prepares `op` on all ranks; plans are numbered alike everywhere. The one buffer of an operation in place
  // begins at Buffers::recv.
  int prepare(const wccl::Op& op, const std::vector<Buffers>& buffers) {
    std::vector<wccl::PlanInfo> infos;
    for (int r = 0; r < ranks(); ++r) {
      const wccl::Sizes s = wccl::sizes(op, r, ranks());
      const Buffers& b = buffers[static_cast<std::size_t>(r)];
      const std::uint64_t heap = runner_->heap(r);
      const wccl::Buffer whole{heap + b.recv, std::max(s.send, s.recv)};
      auto info = op.in_place ? comm(r).describe(op, whole, whole)
                              : comm(r).describe(op, {heap + b.send, s.send}, {heap + b.recv, s.recv});
      INFO("rank " << r << ": " << info.error());
      REQUIRE(info.ok());
      infos.push_back(info.take());
    }
    int plan = -1;
    for (int r = 0; r < ranks(); ++r) {
      auto p = comm(r).prepare(op, infos);
      INFO(p.error());
      REQUIRE(p.ok());
      REQUIRE((r == 0 || p.value() == plan));
      plan = p.value();
    }
    REQUIRE(until([&] { return none(plan, wccl::State::kPreparing); }) == "");
    for (int r = 0; r < ranks(); ++r) REQUIRE(comm(r).state(plan) == wccl::State::kReady);
    return plan;
  }
  int prepare(const wccl::Op& op, Buffers same) {
    return prepare(op, std::vector<Buffers>(static_cast<std::size_t>(ranks()), same));
  }

  // Starts `plan` on all ranks and waits for all. An empty text, or what failed.
  std::string run(int plan) {
    for (int r = 0; r < ranks(); ++r) REQUIRE(comm(r).start(plan).ok());
    if (std::string end = until([&] { return none(plan, wccl::State::kRunning); }); !end.empty()) return end;
    for (int r = 0; r < ranks(); ++r)
      if (comm(r).state(plan) != wccl::State::kReady) return comm(r).failure(plan);
    return {};
  }
  void release(int plan) {
    for (int r = 0; r < ranks(); ++r) comm(r).release(plan);
  }

  // Lets time pass until `done`; takes completions in meanwhile. An empty text, or why it was not to be.
  std::string until(const std::function<bool()>& done) {
    const tb::RunResult end = cluster_->run_until(
        [&] {
          for (int r = 0; r < ranks(); ++r) comm(r).progress();
          return done();
        },
        static_cast<tb::Ps>(trial_.config.limit_us * 1e6));
    note_time(*cluster_);
    return end.ok() ? std::string() : end.text;
  }
  bool none(int plan, wccl::State state) {
    for (int r = 0; r < ranks(); ++r)
      if (comm(r).state(plan) == state) return false;
    return true;
  }

  // What must hold at the end of every run; call it last.
  std::string finish() {
    const Status s = runner_->finish();
    return s.text();
  }

  // A counter ("core.msg_sent", "rx.frames"), summed over ports and ranks, or of one rank.
  std::uint64_t counter(const std::string& name, int only = -1) {
    namespace counters = weft::counters;
    std::uint64_t sum = 0;
    bool found = false;
    const auto named = [&](const counters::Info& info) {
      const bool is = std::string(info.block) + "." + info.event == name;
      found = found || is;
      return is;
    };
    for (int r = 0; r < ranks(); ++r) {
      if (only >= 0 && r != only) continue;
      Device& d = runner_->device(r);
      for (std::size_t i = 0; i < counters::kNodeCount; ++i)
        if (named(counters::kNodeInfo[i])) sum += d.counter(static_cast<unsigned>(i));
      for (std::size_t i = 0; i < counters::kPortCount; ++i)
        if (named(counters::kPortInfo[i]))
          for (unsigned port = 0; port < d.caps().num_ports; ++port)
            sum += d.counter(counters::index(static_cast<counters::Port>(i), port));
    }
    INFO("no counter " << name);
    REQUIRE(found);
    return sum;
  }

 private:
  Trial trial_;
  std::unique_ptr<tb::Cluster> cluster_;
  std::unique_ptr<tb::Runner> runner_;
};

}  // namespace weft::test
