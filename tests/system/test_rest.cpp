// SPDX-License-Identifier: Apache-2.0
// Nodes at rest: cycles that are counted instead of simulated must not change a bit of anything.
#include <cstring>
#include <map>

#include "harness.h"

using namespace weft::test;
namespace tb = weft::tb;

namespace {

// A node whose model can be looked at.
struct OpenNode : tb::VerilatedNode<Vnic100> {
  OpenNode(const std::string& name, std::uint64_t seed, std::vector<OpenNode*>& all)
      : VerilatedNode(name, seed, false) {
    all.push_back(this);
  }
  std::vector<std::uint8_t> state() {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(model().rootp);
    return {bytes, bytes + sizeof(*model().rootp)};
  }
  std::uint64_t time() {
    const auto* now = tb::node_time(*model().rootp);
    REQUIRE(now != nullptr);
    return *now;
  }
};

std::uint32_t word(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint32_t w = 0;
  std::memcpy(&w, bytes.data() + at, 4);
  return w;
}

}  // namespace

TEST_CASE("system: nothing changes in a node at rest but its time", "[system]") {
  std::vector<OpenNode*> nodes;
  Trial t;
  t.workload = everything(3, 50);
  t.scenario.faults.loss = 0.02;
  t.scenario.skip_rest = false;
  t.scenario.threads = 1;
  t.model = [&](const std::string& name, std::uint64_t seed, bool) {
    return std::make_unique<OpenNode>(name, seed, nodes);
  };
  t.at_end = [&](tb::Cluster& c, tb::Runner&) {
    REQUIRE(c.run_for(20 * tb::kUs).ok());
    std::vector<std::vector<std::uint8_t>> before;
    std::vector<std::uint64_t> then;
    for (OpenNode* n : nodes) {
      before.push_back(n->state());
      then.push_back(n->time());
    }
    REQUIRE(c.run_for(20 * tb::kUs).ok());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const auto after = nodes[k]->state();
      const auto passed = static_cast<std::uint32_t>(nodes[k]->time() - then[k]);
      CHECK(passed > 6000);
      std::vector<std::size_t> changed;  // offsets of words, but for those that hold the time
      for (std::size_t i = 0; i + 4 <= after.size(); i += 4) {
        const std::uint32_t was = word(before[k], i), is = word(after, i);
        if (is != was && is - was != passed) changed.push_back(i);
      }
      CAPTURE(k, after.size(), changed);
      CHECK(changed.empty());
    }
  };
  CHECK(t.run().error == "");
  CHECK(nodes.size() == 3);
}

TEST_CASE("system: counting cycles at rest instead of simulating them does not change a bit", "[system]") {
  struct Run {
    Outcome outcome;
    std::vector<std::pair<std::string, std::uint64_t>> counters;
    std::uint64_t cycles = 0;
  };
  std::vector<Run> runs;
  for (const bool skip : {true, false}) {
    Run& run = runs.emplace_back();
    Trial t;
    t.workload = everything(4, 100);
    for (std::size_t i = 0; i < t.workload.ops.size(); i += 2)
      t.workload.ops[i].gap_us = 3.0 + 7.5 * static_cast<double>(i);
    t.scenario.faults.loss = 0.03;
    t.scenario.skip_rest = skip;
    t.at_end = [&](tb::Cluster& c, tb::Runner& r) {
      for (std::uint32_t k = 0; k < c.nodes(); ++k) {
        const auto more = r.counters(k);
        run.counters.insert(run.counters.end(), more.begin(), more.end());
        run.cycles += c.cycles(k);
      }
    };
    run.outcome = t.run();
    CHECK(run.outcome.error == "");
  }
  REQUIRE(runs[0].outcome.ops.size() == runs[1].outcome.ops.size());
  for (std::size_t i = 0; i < runs[0].outcome.ops.size(); ++i)
    CHECK(runs[0].outcome.ops[i].time_ns == runs[1].outcome.ops[i].time_ns);
  CHECK(runs[0].cycles == runs[1].cycles);
  CHECK(runs[0].counters == runs[1].counters);
  CHECK(runs[0].outcome.traffic.acks == runs[1].outcome.traffic.acks);
  CHECK(runs[0].outcome.fabric.in == runs[1].outcome.fabric.in);
}

TEST_CASE("system: the nodes' counters agree with what was seen on the wire", "[system]") {
  std::map<std::string, std::uint64_t> sum;  // of all nodes and ports: "ctl.data", "me.launch"
  Trial t;
  t.workload = everything(3, 300);
  t.scenario.faults.loss = 0.05;
  t.at_end = [&](tb::Cluster& c, tb::Runner& r) {
    for (std::uint32_t k = 0; k < c.nodes(); ++k) {
      for (const auto& [name, value] : r.counters(k))
        sum[name.rfind("port", 0) == 0 ? name.substr(name.find('.') + 1) : name] += value;
    }
  };
  const Outcome o = t.run();
  REQUIRE(o.error == "");
  CHECK(o.traffic.resent > 0);
  CHECK(sum.at("ctl.data") == o.traffic.data_packets);
  CHECK(sum.at("ctl.data_bytes") == o.traffic.data_bytes);
  CHECK(sum.at("ctl.retx") == o.traffic.resent);
  CHECK(sum.at("tx.data") == o.traffic.data_packets);
  CHECK(sum.at("tx.acks") == o.traffic.acks);
  CHECK(sum.at("tx.probes") == o.traffic.probes);
  CHECK(sum.at("ctl.probe_copy") > 0);
  CHECK(sum.at("tx.probes") ==
        sum.at("ctl.probe_tail") + sum.at("ctl.probe_timer") + sum.at("ctl.probe_copy"));
  CHECK(sum.at("tx.frames") == o.traffic.data_packets + o.traffic.acks + o.traffic.probes);
  CHECK(sum.at("rx.frames") == o.fabric.delivered);
  CHECK(sum.at("rx.bytes") == o.traffic.written_payload_bytes);
  CHECK(sum.at("core.msg_sent") == sum.at("core.msg_received"));
}
