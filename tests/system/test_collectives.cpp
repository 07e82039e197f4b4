// SPDX-License-Identifier: Apache-2.0
// Collectives on clusters of Verilated nodes, over fabrics that lose, reorder, duplicate and corrupt.
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

// Every kind of collective for 1 to 9 ranks; under faults other than loss, for some of those numbers.
void all_sizes(double loss, const char* fault = "", double rate = 0) {
  for (int n = 1; n <= 9; ++n) {
    if (*fault != '\0' && n != 2 && n != 5 && n != 8) continue;
    Trial t;
    t.workload = everything(n, 60);
    // A lost frame costs microseconds of waiting: where many are lost, one operation of each kind has to do.
    if (loss >= 0.1) once_each(t.workload);
    t.scenario.faults.loss = loss;
    const std::string f = fault;
    if (f == "reorder") {
      t.scenario.faults.reorder = rate;
      t.resends_may_be_needless = true;
    }
    if (f == "duplicate") t.scenario.faults.duplicate = rate;
    if (f == "corrupt") t.scenario.faults.corrupt = rate;
    if (f == "jitter") t.scenario.faults.jitter_ns = rate;
    if (f == "stall") t.scenario.memory.stall = rate;
    CAPTURE(n, loss, fault, rate);
    const Outcome o = t.run();
    CHECK(o.error == "");
    if (loss == 0 && f != "reorder" && f != "corrupt") CHECK(o.traffic.resent == 0);
    if (loss >= 0.1 && n > 2) CHECK(o.traffic.resent > 0);
  }
}

}  // namespace

TEST_CASE("system: every collective on 1 to 9 nodes without loss", "[system]") {
  all_sizes(0);
}
TEST_CASE("system: every collective on 1 to 9 nodes at 1 % loss", "[system][random]") {
  all_sizes(0.01);
}
TEST_CASE("system: every collective on 1 to 9 nodes at 10 % loss", "[system][random]") {
  all_sizes(0.1);
}
TEST_CASE("system: every collective while frames of a path overtake each other", "[system][random]") {
  all_sizes(0, "reorder", 0.05);
}
TEST_CASE("system: every collective while paths differ by microseconds causes no resend",
          "[system][random]") {
  all_sizes(0, "jitter", 4000);
}
TEST_CASE("system: every collective while frames are duplicated", "[system][random]") {
  all_sizes(0, "duplicate", 0.1);
}
TEST_CASE("system: every collective while frames are corrupted", "[system][random]") {
  all_sizes(0, "corrupt", 0.05);
}
TEST_CASE("system: every collective while memory stalls", "[system][random]") {
  all_sizes(0.01, "stall", 0.5);
}

TEST_CASE("system: 16 ranks", "[system]") {
  Trial t;
  t.workload = everything(16, 40);
  once_each(t.workload);
  t.scenario.faults.loss = 0.01;
  CHECK(t.run().error == "");
}

TEST_CASE("system: random values give the bits of the plan's order", "[system][random]") {
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

TEST_CASE("system: PSNs that wrap change nothing", "[system]") {
  for (int psn : {0xfffffe, 0xffffff, 0xfffff0}) {
    Trial t;
    t.workload = everything(3, 200);
    t.config.start_psn = psn;
    t.scenario.faults.loss = 0.02;
    CAPTURE(psn);
    CHECK(t.run().error == "");
  }
}

TEST_CASE("system: running a plan again gives the same", "[system]") {
  // Coyote #33, #120; nccl 1497: every repeat is checked, and so is what the first left behind.
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
