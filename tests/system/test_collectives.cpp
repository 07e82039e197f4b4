// SPDX-License-Identifier: Apache-2.0
// Collectives on clusters of Verilated nodes, over fabrics that lose, reorder, duplicate and corrupt.
#include <functional>
#include <set>

#include "harness.h"

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
  std::vector<Outcome> runs;
  for (unsigned threads : {1U, 2U}) {
    Trial t;
    t.workload = everything(5, 100);
    t.scenario.threads = threads;
    t.scenario.faults.loss = 0.05;
    t.scenario.faults.jitter_ns = 1000;
    runs.push_back(t.run());
    CHECK(runs.back().error == "");
  }
  REQUIRE(runs[0].ops.size() == runs[1].ops.size());
  for (std::size_t i = 0; i < runs[0].ops.size(); ++i) {
    CHECK(runs[0].ops[i].time_ns == runs[1].ops[i].time_ns);
    CHECK(runs[0].ops[i].traffic.data_packets == runs[1].ops[i].traffic.data_packets);
  }
  CHECK(runs[0].fabric.in == runs[1].fabric.in);
  CHECK(runs[0].traffic.acks == runs[1].traffic.acks);
}
