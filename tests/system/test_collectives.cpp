// SPDX-License-Identifier: Apache-2.0
// Collectives on clusters of Verilated nodes, over fabrics that lose, reorder, duplicate and corrupt.
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "harness.h"
#include "tb/memory/memory.h"

using namespace weft::test;
namespace tb = weft::tb;

namespace {

void once_each(tb::Workload& w) {
  std::set<wccl::Kind> seen;
  std::vector<tb::WorkloadOp> kept;
  for (auto& o : w.ops)
    if (o.op.count != 0 || o.op.kind == wccl::Kind::kBarrier || o.op.kind == wccl::Kind::kAllToAllV)
      if (seen.insert(o.op.kind).second) kept.push_back(o);
  w.ops = kept;
}

struct Weather {
  double loss;
  const char* fault;
  tb::FaultConfig rates;
};

// Every loss together with every other fault.
std::vector<Weather> weathers() {
  std::vector<Weather> all;
  for (double loss : {0.0, 0.01, 0.1}) {
    tb::FaultConfig f;
    f.loss = loss;
    all.push_back({loss, "none", f});
    f.reorder = 0.05;
    all.push_back({loss, "reorder", f});
    f.reorder = 0;
    f.duplicate = 0.1;
    all.push_back({loss, "duplicate", f});
    f.duplicate = 0;
    f.corrupt = 0.05;
    all.push_back({loss, "corrupt", f});
  }
  return all;
}

// Every kind of collective on `n` nodes in every weather. The cluster stays up and a plan is prepared once:
// starting nodes would take longer than all the rest.
void every_weather(int n) {
  Trial t;
  t.workload = everything(n, 30);
  once_each(t.workload);
  t.workload.ops.push_back(
      op(wccl::Kind::kAllReduce, 150, wccl::Type::kInt32, wccl::RedOp::kMin, n % 2 == 1));
  t.workload.ops.back().op.algo = wccl::Algo::kRing;
  // Short ways, and soon a probe for a lost tail: waiting would be most of the time. Nine nodes have two
  // leaves.
  t.config.transport.probe_min_us = 0.5;
  t.config.transport.rtt_init_us = 2;
  t.scenario.fabric.hosts_per_leaf = n < 9 ? 16 : 8;
  t.scenario.fabric.link_latency_ns = 200;
  t.scenario.fabric.switch_latency_ns = 100;
  t.scenario.faults.reorder_delay_ns = 1000;
  t.resends_may_be_needless = true;  // when frames overtake each other; looked at below otherwise
  const std::vector<Weather> sky = weathers();
  for (auto& o : t.workload.ops) o.repeat = static_cast<unsigned>(sky.size());

  struct Seen {
    std::uint64_t sent = 0, lost = 0, resent = 0, needless = 0, copies = 0, corrupted = 0;
  };
  std::vector<Seen> seen(sky.size());
  std::size_t now = sky.size();  // weather of the run before
  tb::TrafficCounts traffic;
  tb::FabricCounts fabric;
  t.before_run = [&](tb::Cluster& c, std::size_t, unsigned repeat) {
    if (now < sky.size()) {
      const tb::TrafficCounts more = c.traffic() - traffic;
      Seen& s = seen[now];
      s.sent += more.data_packets;
      s.lost += more.lost;
      s.resent += more.resent;
      s.needless += more.needless_resent;
      s.copies += c.fabric().duplicated - fabric.duplicated;
      s.corrupted += c.fabric().corrupted - fabric.corrupted;
    }
    now = repeat;
    traffic = c.traffic();
    fabric = c.fabric();
    c.set_fault_rates(sky[repeat].rates);
  };
  const Outcome o = t.run();
  CAPTURE(n);
  CHECK(o.error == "");
  for (std::size_t i = 0; i < sky.size(); ++i) {
    const Seen& s = seen[i];
    const std::string fault = sky[i].fault;
    CAPTURE(sky[i].loss, fault, s.sent);
    if (fault != "reorder") {
      CHECK(s.needless == 0);
      // A copy may stand in for its lost original, and a flipped bit of the source's MAC hurts nobody.
      CHECK(s.resent <= s.lost);
      if (fault == "none") CHECK(s.resent == s.lost);
    }
    // Where so many packets were sent that chance does not excuse it, the fault must have struck.
    const double expected = static_cast<double>(s.sent) * (sky[i].loss + sky[i].rates.corrupt);
    if (expected == 0) CHECK(s.lost == 0);
    if (expected > 20) CHECK(s.lost > 0);
    if (s.sent > 200) CHECK((s.copies > 0) == (fault == "duplicate"));
    if (s.sent > 400) CHECK((s.corrupted > 0) == (fault == "corrupt"));
  }
}

void some_sizes(const std::function<void(Trial&)>& change) {
  for (int n : {2, 7}) {
    Trial t;
    t.workload = everything(n, 60);
    change(t);
    CAPTURE(n);
    const Outcome o = t.run();
    CHECK(o.error == "");
    if (t.scenario.faults.loss == 0) CHECK(o.traffic.resent == 0);
  }
}

}  // namespace

// Loss of 0, 1 and 10 %, each alone and with reordering, with copies and with corruption.
TEST_CASE("system: every collective on 1 to 5 nodes in every weather", "[system][random]") {
  for (int n = 1; n <= 5; ++n) every_weather(n);
}
TEST_CASE("system: every collective on 6 and 7 nodes in every weather", "[system][random]") {
  for (int n : {6, 7}) every_weather(n);
}
TEST_CASE("system: every collective on 8 nodes in every weather", "[system][random]") {
  every_weather(8);
}
TEST_CASE("system: every collective on 9 nodes in every weather", "[system][random]") {
  every_weather(9);
}

TEST_CASE(
    "system: every collective, of every type, while paths differ by microseconds: no resend "
    "(case transport 4, case software 18)",
    "[system][random]") {
  some_sizes([](Trial& t) { t.scenario.faults.jitter_ns = 4000; });
}
TEST_CASE("system: every collective, of every type, while memory stalls", "[system][random]") {
  some_sizes([](Trial& t) {
    t.scenario.faults.loss = 0.01;
    t.scenario.memory.stall = 0.5;
  });
}

TEST_CASE("system: 16 ranks (case rtl 26)", "[system]") {
  Trial t;
  t.workload = everything(16, 40);
  once_each(t.workload);
  t.scenario.faults.loss = 0.01;
  CHECK(t.run().error == "");
}

TEST_CASE("system: random values give the bits of the plan's order on all ranks (case software 9)",
          "[system][random]") {
  for (auto algo : {wccl::Algo::kDirect, wccl::Algo::kRing})
    for (auto type : {wccl::Type::kFloat32, wccl::Type::kBfloat16}) {
      Trial t;
      t.workload.ranks = 5;
      t.workload.ops.push_back(op(wccl::Kind::kAllReduce, 4001, type));
      t.workload.ops.back().op.algo = algo;
      t.workload.ops.back().repeat = 2;
      t.config.inputs = tb::Inputs::kRandom;
      t.scenario.faults.loss = 0.02;
      CAPTURE(wccl::name(algo), wccl::name(type));
      CHECK(t.run().error == "");
    }
}

TEST_CASE("system: every type by every operation that it has, bit for bit", "[system][random]") {
  Trial t;
  t.workload.ranks = 3;
  t.config.inputs = tb::Inputs::kRandom;
  t.scenario.faults.loss = 0.01;
  for (wccl::Type type : wccl::all_types())
    for (wccl::RedOp redop : wccl::all_redops()) {
      const std::size_t i = t.workload.ops.size();
      tb::WorkloadOp o = op(i % 2 == 0 ? wccl::Kind::kAllReduce : wccl::Kind::kReduceScatter, 500 + i, type,
                            redop, i % 3 == 0);
      if (redop == wccl::RedOp::kPremulSum)
        o.op.scalar = wccl::scalar_bits(type, wccl::check_scalar(type, -3).empty() ? -3 : 3);
      if (i % 4 == 0 && redop != wccl::RedOp::kPremulSum) o.op.algo = wccl::Algo::kRing;
      if (wccl::check(o.op, t.workload.ranks).empty()) t.workload.ops.push_back(o);
    }
  CHECK(t.workload.ops.size() == 6 * 6 + 8 * 9);  // six float types, eight of integers
  CHECK(t.run().error == "");
}

TEST_CASE("system: PSNs that wrap change nothing (case transport 6)", "[system]") {
  for (int psn : {0xfffffe, 0xffffff, 0xfffff0}) {
    Trial t;
    t.workload = everything(3, 200);
    t.config.start_psn = psn;
    t.scenario.faults.loss = 0.02;
    CAPTURE(psn);
    CHECK(t.run().error == "");
  }
}

TEST_CASE("system: running a plan again gives the same (case rtl 7, case rtl 11)", "[system]") {
  // Every repeat is checked, and so is what the first left behind.
  Trial t;
  t.workload.ranks = 4;
  t.workload.ops.push_back(op(wccl::Kind::kAllReduce, 3000));
  t.workload.ops.back().repeat = 20;
  t.workload.ops.push_back(op(wccl::Kind::kBarrier, 0));
  t.workload.ops.back().repeat = 20;
  t.scenario.faults.loss = 0.02;
  CHECK(t.run().error == "");
}

TEST_CASE("system: the check of results can fail", "[system]") {
  Trial t;
  t.workload.ranks = 2;
  t.workload.ops.push_back(op(wccl::Kind::kAllReduce, 500));
  t.config.corrupt_result = 1;
  const Outcome o = t.run();
  REQUIRE(o.ops.size() == 1);
  CHECK(o.ops[0].wrong == 2);  // one byte at each rank
}

TEST_CASE("system: same seed, same bits, with one thread and with two", "[system]") {
  // All that a run leaves: every frame with its time, every byte of the nodes' memories (results, completion
  // rings with their cycles), every counter.
  struct Run {
    Outcome outcome;
    std::map<std::string, std::string> pcap;
    std::vector<std::vector<std::uint8_t>> memory;
    std::vector<std::pair<std::string, std::uint64_t>> counters;
  };
  const auto run = [](unsigned threads, std::uint64_t fabric_seed) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(WEFT_BUILD_DIR) / "tests" / ("same_seed_" + std::to_string(getpid()));
    fs::create_directories(folder);
    Run run;
    Trial t;
    t.workload = everything(5, 100);
    t.scenario.threads = threads;
    t.scenario.seed = fabric_seed;
    t.scenario.faults.loss = 0.05;
    t.scenario.faults.jitter_ns = 1000;
    t.traces.pcap_dir = folder;
    t.at_end = [&](tb::Cluster& c, tb::Runner& r) {
      for (std::uint32_t k = 0; k < c.nodes(); ++k) {
        const auto more = r.counters(k);
        run.counters.insert(run.counters.end(), more.begin(), more.end());
        tb::Memory& m = c.memory(k);
        run.memory.emplace_back(m.data(m.base()), m.data(m.base()) + m.size());
      }
    };
    run.outcome = t.run();
    CHECK(run.outcome.error == "");
    for (const auto& file : fs::directory_iterator(folder)) {
      std::ifstream in(file.path(), std::ios::binary);
      run.pcap[file.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
    }
    fs::remove_all(folder);
    return run;
  };
  const Run one = run(1, seed()), two = run(2, seed());
  REQUIRE(one.outcome.ops.size() == two.outcome.ops.size());
  for (std::size_t i = 0; i < one.outcome.ops.size(); ++i) {
    CHECK(one.outcome.ops[i].time_ns == two.outcome.ops[i].time_ns);
    CHECK(one.outcome.ops[i].traffic.data_packets == two.outcome.ops[i].traffic.data_packets);
  }
  CHECK(one.outcome.fabric.in == two.outcome.fabric.in);
  CHECK(one.outcome.traffic.acks == two.outcome.traffic.acks);
  REQUIRE(one.pcap.size() == 10);  // two ports of five nodes
  for (const auto& [name, bytes] : one.pcap) {
    CAPTURE(name);
    CHECK(bytes.size() > 1000);
    CHECK((two.pcap.count(name) == 1 && two.pcap.at(name) == bytes));
  }
  REQUIRE(one.memory.size() == 5);
  for (std::size_t k = 0; k < 5; ++k) CHECK((one.memory[k] == two.memory[k]));
  CHECK(one.counters == two.counters);

  // Another weather over the same work: what was compared does tell runs apart.
  const Run other = run(1, seed() + 1);
  CHECK((other.pcap != one.pcap));
  CHECK((other.memory != one.memory));  // the cycles in the completions
  CHECK((other.counters != one.counters));
}
