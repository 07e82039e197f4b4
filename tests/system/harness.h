// SPDX-License-Identifier: Apache-2.0
// One workload on one cluster of Verilated or reference nodes, start to finish, with every check on.
#pragma once

#include <cstdlib>
#include <fstream>
#include <functional>

#include "Vnic100.h"
#include "tb/app/runner.h"
#include "tb/node/ref_node.h"
#include "tb/node/verilated_model.h"
#include "weft_test.h"

namespace weft::test {

inline std::vector<std::uint8_t> firmware() {
  std::ifstream in(std::string(WEFT_BUILD_DIR) + "/firmware/cpu_m.bin", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// WAVES=1: the waves of a node (WAVE_NODE, else 0), in the program that is linked with the tracing twin.
inline tb::TraceConfig with_waves(tb::TraceConfig traces, std::uint32_t nodes) {
  if (!waves_wanted() || !Vnic100::traceCapable || !traces.waves.file.empty()) return traces;
  const char* node = std::getenv("WAVE_NODE");
  traces.waves.node = node == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(node, nullptr, 10));
  if (traces.waves.node >= nodes) traces.waves.node = nodes - 1;
  traces.waves.file = next_wave_path();
  std::fprintf(stderr, "waves: %s\n", traces.waves.file.c_str());
  return traces;
}

// Where a failure that is found now is shown in the waves.
inline void note_time(const tb::Cluster& cluster) {
  note_cycle("the cluster", static_cast<std::uint64_t>(cluster.now_ps()) / kPeriod_ps);
}

// At the end of a run whose operations all succeeded every plan has returned its semaphores: one credit from
// each peer, nothing else (docs/collectives.md). The host cannot read semaphores, so `value` looks into the
// node. Empty, or the first that is not at rest.
inline std::string semaphores_at_rest(const std::function<std::uint32_t(unsigned)>& value, int ranks) {
  for (const auto& [purpose, name] : {std::pair{wccl::Sem::kReduce, "reduce"},
                                      {wccl::Sem::kGather, "gather"},
                                      {wccl::Sem::kCredit, "credit"},
                                      {wccl::Sem::kStart, "start"},
                                      {wccl::Sem::kCheck, "check"}})
    for (int peer = 0; peer < ranks; ++peer) {
      const std::uint32_t is = value(wccl::sem(purpose, peer));
      const std::uint32_t rest = purpose == wccl::Sem::kCredit ? 1 : 0;
      if (is != rest)
        return "semaphore " + std::string(name) + "[" + std::to_string(peer) + "] is " + std::to_string(is) +
               " at the end, expected " + std::to_string(rest);
    }
  return {};
}

struct Outcome {
  std::string error;  // empty: every check passed
  std::vector<tb::OpReport> ops;
  tb::TrafficCounts traffic;
  tb::FabricCounts fabric;
};

struct Trial {
  tb::Scenario scenario;
  tb::Workload workload;
  tb::RunnerConfig config;
  tb::TraceConfig traces;
  bool resends_may_be_needless = false;  // packets of one path overtake each other
  tb::ModelFactory model = tb::make_verilated_node<Vnic100>;
  std::function<void(tb::Cluster&, tb::Runner&)> at_end;  // every operation done, every node idle
  std::function<void(tb::Cluster&, tb::Runner&)>
      at_failure;  // something failed; every node idle if it can be
  // Before each run of an operation; with the last operation's number plus one, after the last.
  std::function<void(tb::Cluster&, std::size_t op, unsigned repeat)> before_run;

  Trial() {
    scenario.fabric.link_latency_ns = 300;
    scenario.fabric.switch_latency_ns = 300;
    scenario.seed = seed();
    scenario.threads = 1;  // test programs run side by side; threads change no bit
    config.seed = seed();
    config.transport.mtu = 256;
    config.limit_us = 20'000;
    config.firmware = firmware();
  }

  Outcome run() {
    Outcome out;
    scenario.nodes = static_cast<std::uint32_t>(workload.ranks);
    scenario.memory.size_mib = tb::Runner::memory_mib(workload);
    std::vector<tb::VerilatedNode<Vnic100>*> verilated;
    const tb::ModelFactory noted = [&](const std::string& name, std::uint64_t node_seed, bool traced) {
      auto made = model(name, node_seed, traced);
      verilated.push_back(dynamic_cast<tb::VerilatedNode<Vnic100>*>(made.get()));
      REQUIRE(verilated.back() != nullptr);
      return made;
    };
    auto cluster = tb::Cluster::create(scenario, tb::bodies(noted), with_waves(traces, scenario.nodes));
    if (!cluster.ok()) {
      out.error = cluster.error();
      return out;
    }
    tb::Cluster& c = *cluster.value();
    if (before_run) config.before_run = [&](std::size_t i, unsigned repeat) { before_run(c, i, repeat); };
    tb::Runner runner(c, workload, config);
    if (Status s = runner.setup(); !s.ok()) {
      out.error = s.text();
      return out;
    }
    for (std::size_t i = 0; i < workload.ops.size() && out.error.empty(); ++i) {
      auto r = runner.run(i);
      note_time(c);
      if (!r.ok()) {
        out.error = r.error();
        break;
      }
      out.ops.push_back(r.take());
      const auto& o = out.ops.back();
      if (!o.failure.empty())
        out.error = o.failure;
      else if (o.wrong != 0)
        out.error = std::to_string(o.wrong) + " wrong bytes";
      else if (o.traffic.needless_resent != 0 && !resends_may_be_needless)
        out.error = "needless resend";
    }
    if (before_run) before_run(c, workload.ops.size(), 0);
    if (Status s = runner.finish(); out.error.empty() && !s.ok()) out.error = s.text();
    std::size_t next = 0;  // of the Verilated ones
    for (std::uint32_t k = 0; k < scenario.nodes && out.error.empty(); ++k) {
      std::function<std::uint32_t(unsigned)> value;
      if (tb::is_reference(scenario, k)) {
        value = [&](unsigned i) { return dynamic_cast<tb::RefNode&>(c.node(k)).semaphore(i); };
      } else {
        auto* root = verilated[next++]->model().rootp;
        value = [root](unsigned i) {
          return root->weft_nic100__DOT__u_node__DOT__u_me__DOT__u_core__DOT__u_sem__DOT__mem[i];
        };
      }
      if (const std::string s = semaphores_at_rest(value, workload.ranks); !s.empty())
        out.error = "node " + std::to_string(k) + ": " + s;
    }
    if (out.error.empty() && at_end) at_end(c, runner);
    if (!out.error.empty() && at_failure) at_failure(c, runner);
    out.traffic = c.traffic();
    out.fabric = c.fabric();
    if (out.error.empty() && !out.fabric.balanced())
      out.error = "frames in do not equal frames out and drops";
    return out;
  }
};

inline tb::WorkloadOp op(wccl::Kind kind, std::uint64_t count, wccl::Type type = wccl::Type::kFloat32,
                         wccl::RedOp redop = wccl::RedOp::kSum, bool in_place = false) {
  tb::WorkloadOp o;
  o.op.kind = kind;
  o.op.count = count;
  o.op.type = type;
  o.op.redop = redop;
  o.op.in_place = in_place;
  return o;
}

// Every collective once or more, of sizes around the packet size, for `n` ranks.
inline tb::Workload everything(int n, std::uint64_t scale) {
  using wccl::Kind, wccl::Type, wccl::RedOp;
  tb::Workload w;
  w.name = "everything";
  w.ranks = n;
  Rng rng(seed(), 1234 + static_cast<std::uint64_t>(n));
  w.ops.push_back(op(Kind::kBarrier, 0));
  w.ops.push_back(op(Kind::kAllReduce, 7 * scale + rng.below(64)));
  w.ops.push_back(op(Kind::kAllReduce, 3 * scale + 1, Type::kBfloat16, RedOp::kMax, true));
  w.ops.push_back(op(Kind::kAllReduce, 3 * scale + rng.below(9), Type::kInt32));
  w.ops.back().op.algo = wccl::Algo::kRing;
  w.ops.push_back(op(Kind::kReduceScatter, scale + rng.below(9), Type::kInt32, RedOp::kMin));
  w.ops.push_back(op(Kind::kReduceScatter, scale + 3, Type::kBfloat16, RedOp::kSum, true));
  w.ops.push_back(op(Kind::kAllGather, scale + rng.below(9), Type::kInt64));
  w.ops.push_back(op(Kind::kAllGather, scale + 5, Type::kFloat32, RedOp::kSum, true));
  w.ops.push_back(op(Kind::kAllToAll, scale / 2 + rng.below(9), Type::kBfloat16));
  w.ops.push_back(op(Kind::kBroadcast, 5 * scale + rng.below(9), Type::kInt64));
  w.ops.back().op.root = n - 1;
  w.ops.push_back(op(Kind::kAllReduce, 0));
  tb::WorkloadOp v = op(Kind::kAllToAllV, 0, Type::kInt32);
  v.op.send_counts.assign(static_cast<std::size_t>(n),
                          std::vector<std::uint64_t>(static_cast<std::size_t>(n)));
  for (auto& row : v.op.send_counts)
    for (auto& c : row) c = rng.chance(0.3) ? 0 : rng.below(2 * scale);
  w.ops.push_back(v);
  w.ops.push_back(op(Kind::kBarrier, 0));
  return w;
}

}  // namespace weft::test
