// SPDX-License-Identifier: Apache-2.0
// Figures of the whole node: how fast it is simulated, and how near to the line a large all_reduce comes,
// with and without loss. Every run checks every byte; a run that fails a check reports no figure and ends the
// program with status 1.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "Vnic100.h"
#include "tb/app/runner.h"
#include "tb/app/sim_config.h"
#include "tb/node/rtl_node.h"
#include "tb/node/verilated_model.h"
#include "weft_bench.h"

using namespace weft::tb;
using weft::bench::Good;
using weft::bench::report;

namespace {

struct Measured {
  OpReport op;
  double kcycles_per_s = 0;       // of one node on one core, during the operation
  double idle_kcycles_per_s = 0;  // and with nothing to do
};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "bench_system: %s\n", what.c_str());
  std::exit(1);
}

// Processor time, so that other work on the machine does not count; meant for runs on one thread.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Fabric, faults and transport of the default scenario: the figures are those of `make sim`.
SimConfig default_config() {
  auto config = load_sim_config(WEFT_SOURCE_DIR "/sw/scenarios/default.toml");
  if (!config.ok()) give_up(config.error());
  return config.take();
}

Workload all_reduce(int ranks, std::uint64_t count) {
  Workload w;
  w.name = "all_reduce";
  w.ranks = ranks;
  w.ops.emplace_back();
  w.ops[0].op.kind = wccl::Kind::kAllReduce;
  w.ops[0].op.count = count;
  return w;
}

// Runs the only operation of `workload`; with `idle_us`, lets the nodes rest for so long first.
Measured run(SimConfig config, const Workload& workload, double idle_us = 0) {
  config.scenario.nodes = static_cast<std::uint32_t>(workload.ranks);
  config.scenario.memory.size_mib = Runner::memory_mib(workload);
  auto cluster = Cluster::create(config.scenario, rtl_nodes(make_verilated_node<Vnic100>));
  if (!cluster.ok()) give_up(cluster.error());
  Cluster& c = *cluster.value();
  RunnerConfig rc;
  rc.transport = config.transport;
  rc.connection = config.connection;
  rc.limit_us = config.limit_us;
  rc.seed = config.scenario.seed;
  std::ifstream image(WEFT_BUILD_DIR "/firmware/cpu_m.bin", std::ios::binary);
  rc.firmware.assign(std::istreambuf_iterator<char>(image), {});
  Runner runner(c, workload, rc);
  if (auto s = runner.setup(); !s.ok()) give_up(s.text());

  const auto cycles = [&] {
    std::uint64_t sum = 0;
    for (std::uint32_t k = 0; k < c.nodes(); ++k) sum += c.cycles(k);
    return static_cast<double>(sum);
  };
  Measured m;
  if (idle_us > 0) {
    const double before = cycles();
    const auto start = std::clock();
    if (const RunResult r = c.run_for(static_cast<Ps>(idle_us * 1e6)); !r.ok()) give_up(r.text);
    m.idle_kcycles_per_s = (cycles() - before) / seconds_since(start) / 1000;
  }
  const double before = cycles();
  const auto start = std::clock();
  auto result = runner.run(0);
  m.kcycles_per_s = (cycles() - before) / seconds_since(start) / 1000;
  if (!result.ok()) give_up(result.error());
  m.op = result.take();
  if (!m.op.failure.empty() || m.op.wrong != 0) give_up("all_reduce: " + m.op.failure);
  if (auto s = runner.finish(); !s.ok()) give_up(s.text());
  return m;
}

}  // namespace

int main() {
  constexpr std::uint64_t kLarge = 393'216;  // float32 elements: 1.5 MiB

  SimConfig config = default_config();
  config.scenario.faults.loss = 0;
  SimConfig one = config;  // one core: the figure is per core
  one.scenario.threads = 1;
  const Measured speed = run(one, all_reduce(2, 65'536), 300);
  report("node_kcycles_per_s", speed.kcycles_per_s, Good::AtLeast, 50, "kcycles/s");
  report("node_idle_kcycles_per_s", speed.idle_kcycles_per_s, Good::AtLeast, 200, "kcycles/s");
  // The same when no cycle is skipped: what the bare model does.
  one.scenario.skip_rest = false;
  report("node_idle_unskipped_kcycles_per_s", run(one, all_reduce(2, 1'024), 300).idle_kcycles_per_s,
         Good::AtLeast, 200, "kcycles/s");

  const auto mean_line_pct = [&](double loss) {
    constexpr int kSeeds = 3;
    double sum = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SimConfig x = config;
      x.scenario.faults.loss = loss;
      x.scenario.seed = static_cast<std::uint64_t>(seed);
      sum += run(x, all_reduce(8, kLarge)).op.line_pct;
    }
    return sum / kSeeds;
  };
  const double whole = mean_line_pct(0);
  report("allreduce_line_pct", whole, Good::AtLeast, 90, "% of line");
  report("allreduce_loss1_retention_pct", 100 * mean_line_pct(0.01) / whole, Good::AtLeast, 90,
         "% of no loss");

  // Paths overtake each other by about one, and by several, round trips; inside a path, order is kept.
  double needless = 0;
  for (const double jitter_ns : {4'000.0, 20'000.0})
    for (const std::uint64_t seed : {1, 2, 3}) {
      SimConfig jitter = config;
      jitter.scenario.faults.jitter_ns = jitter_ns;
      jitter.scenario.seed = seed;
      const Measured shaken = run(jitter, all_reduce(4, 131'072));
      // Nothing is lost, so every resend is needless, also one that left before the first copy had arrived.
      needless += static_cast<double>(shaken.op.traffic.resent) - static_cast<double>(shaken.op.traffic.lost);
    }
  report("needless_resends", needless, Good::AtMost, 0, "packets");
  return 0;
}
