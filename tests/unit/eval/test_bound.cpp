// SPDX-License-Identifier: Apache-2.0
// The ideal bound against figures computed by hand for the fabrics of the scenarios.
#include <catch2/catch.hpp>

#include <cstdlib>

#include <fmt/format.h>

#include "tb/eval/bound.h"
#include "tb/eval/eval_config.h"
#include "tb/eval/run.h"
#include "tb/sim/rng.h"

using namespace weft;
using namespace weft::eval;

namespace {

EvalConfig load(const char* name) {
  auto c = load_eval(std::string(WEFT_SOURCE_DIR) + "/sw/scenarios/eval/" + name + ".toml", {});
  INFO((c.ok() ? "" : c.error()));
  REQUIRE(c.ok());
  return c.take();
}

// Of packets of 4150 bytes and acks of 64.
Ideal bound(const char* name, const Point& point = {}) {
  const EvalConfig c = load(name);
  const Setting s = at_point(c, point);
  return ideal(s.scenario, make_flows(s.traffic, s.scenario.nodes, s.scenario.planes, 1), {s.packet, 64},
               s.packet);
}

}  // namespace

TEST_CASE("bound: base round trips of F100 and F400", "[eval][bound]") {
  const tb::Scenario f100 = load("s3-long-flow").base.scenario;
  // 12 links of 1 us, 6 packets of 332 ns; an ack of 84 bytes, 6.7 ns six times.
  CHECK(one_way_ps(f100, 0, 127, 4150) == 6'000'000 + 6 * 332'000);
  CHECK(one_way_ps(f100, 127, 0, 84) == 6'000'000 + 6 * 6'720);
  CHECK(one_way_ps(f100, 0, 1, 4150) == 2'000'000 + 2 * 332'000);
  CHECK(one_way_ps(f100, 0, 5, 4150) == 4'000'000 + 4 * 332'000);
  const tb::Scenario f400 = load("s4-all-to-all").base.scenario;
  CHECK(one_way_ps(f400, 0, 63, 4150) == 6 * 500'000 + 5 * 500'000 + 6 * 83'000);
}

TEST_CASE("bound: the figures of the goals", "[eval][bound]") {
  // 24474 packets, the last one short, 14.03 us of round trip.
  CHECK(bound("s3-long-flow", {{"loss", 0}}).last_us == Approx(8139).margin(1));
  // 90 % of the packets of an attempt arrive, so 1/0.9 as many are sent.
  CHECK(bound("s3-long-flow", {{"loss", 0.1}}).last_us == Approx(8125.3 / 0.9 + 14.0).margin(1));
  CHECK(bound("s2-permutation", {{"loss", 0}}).gbps == Approx(97.9).margin(0.3));
  CHECK(bound("s6-incast-32").last_us == Approx(32 * 81.3).margin(15));
  CHECK(bound("s6-incast-64").last_us == Approx(64 * 81.3).margin(15));
  // 63 flows of 266,304 bytes with headers at 400 Gb/s (without headers it would be 330), and the round trip
  // of a neighbour at the same switch.
  CHECK(bound("s4-all-to-all", {{"loss", 0}}).last_us == Approx(335.5 + 3.0).margin(0.2));
  // A quarter of the planes gone at 200 us: what is left takes 4/3 as long.
  const double healthy = bound("s8-plane-dead", {{"faults", 0}}).mean_us;
  const double dead = bound("s8-plane-dead", {{"faults", 1}}).mean_us;
  CHECK(dead == Approx(200 + (healthy - 200) * 4 / 3).margin(6));
  CHECK(bound("s8-plane-flap", {{"faults", 1}}).mean_us - healthy == Approx(25).margin(0.1));
  // Both planes gone for 1 ms.
  CHECK(bound("all-planes-down").mean_us == Approx(1000 + 2604e3 / 2000 + 13).margin(5));
}

TEST_CASE("bound: a ring takes the time of its chain of steps", "[eval][bound]") {
  // A step cannot start before the one before has come from the neighbour: serialisation and way, 127 times.
  const double us = bound("s5-ring", {{"loss", 0}}).last_us;
  CHECK(us > 2663);
  CHECK(us < 3049);
}

TEST_CASE("bound: flows that share a link take turns in the mean, too", "[eval][bound]") {
  // Whatever the order, the k-th to end has k of them before it: (1 + ... + 32) / 32 = 16.5 times one.
  const Ideal b = bound("s6-incast-32");
  CHECK(b.mean_us == Approx(16.5 * 81.3).margin(15));
  CHECK(b.max_us == Approx(b.last_us));
  // 8 of a host's 63 flows at a time: each has an eighth of the link.
  CHECK(bound("s4-all-to-all", {{"loss", 0}}).mean_us == Approx(8 * 335.5 / 63).margin(4));
  // Two flows that start apart: the time each takes, and the clock.
  Flows flows;
  flows.list.resize(2);
  flows.list[1].id = 1;
  flows.list[1].not_before = 500 * tb::kUs;
  for (Flow& f : flows.list) f.dst = 127, f.bytes = 4086;
  const Ideal apart = ideal(load("s3-long-flow").base.scenario, flows, {{}, 84}, {});
  CHECK(apart.max_us == Approx(6 + 6 * 0.332 + 6 + 6 * 0.00672));
  CHECK(apart.last_us == Approx(500 + apart.max_us));
  CHECK(apart.mean_us == Approx(apart.max_us));
}

TEST_CASE("bound: a slow receiver takes what came, not the last packet twice", "[eval][bound]") {
  tb::Scenario s = load("mixed-rates").base.scenario;
  Flows flows;
  flows.list.resize(1);
  flows.list[0].dst = 127;
  flows.list[0].bytes = 2 * 4086;
  // Two packets of 4150 bytes at 25 Gb/s behind the way of the first, and the ack.
  CHECK(ideal(s, flows, {{}, 84}, {}).last_us ==
        Approx(6 + 5 * 0.332 + 2 * 1.328 + 6 + 5 * 0.00672 + 0.02688));
}

namespace {

// Small clusters of every shape, with flows of every size that start whenever.
Setting any(tb::Rng& rng) {
  const auto one_of = [&](auto... values) {
    const double all[] = {static_cast<double>(values)...};
    return all[rng.below(sizeof...(values))];
  };
  Setting s;
  tb::Scenario& c = s.scenario;
  c.nodes = static_cast<uint32_t>(2 + rng.below(11));
  c.planes = static_cast<uint32_t>(1 + rng.below(4));
  c.fabric.topology = rng.chance(0.5) ? tb::Topology::kFatTree : tb::Topology::kLeafSpine;
  c.fabric.radix = static_cast<uint32_t>(1 + rng.below(3));
  c.fabric.hosts_per_leaf = static_cast<uint32_t>(1 + rng.below(12));
  c.fabric.spines = static_cast<uint32_t>(1 + rng.below(4));
  c.fabric.rate_gbps = one_of(10, 25, 100, 400);
  c.fabric.uplink_rate_gbps = one_of(10, 100, 800);
  c.fabric.link_latency_ns = one_of(100, 1000, 3333);
  c.fabric.switch_latency_ns = one_of(0, 0, 300);
  c.fabric.cut_through = rng.chance(0.5);
  if (rng.chance(0.3)) c.fabric.spray = tb::Spray::kPacket;
  if (rng.chance(0.3))
    c.fabric.host.push_back(
        {0, static_cast<uint32_t>(rng.below(c.nodes)), one_of(1, 25, 200), one_of(0, 2000)});
  if (rng.chance(0.2)) c.faults.duplicate = 0.2;
  if (rng.chance(0.3)) {
    tb::DownFault& d = c.faults.down.emplace_back();
    d.plane = static_cast<int>(rng.below(c.planes));
    d.from_ps = static_cast<Ps>(rng.below(20)) * tb::kUs;
    d.to_ps = d.from_ps + static_cast<Ps>(1 + rng.below(50)) * tb::kUs;
  }
  s.packet.payload = static_cast<uint32_t>(one_of(64, 1000, 4086, 4096));
  s.packet.overhead = static_cast<uint32_t>(24 + rng.below(200));
  s.own_overhead = rng.chance(0.5);
  s.weft.paths = static_cast<uint32_t>(one_of(1, 4, 16));
  s.traffic.pattern = Pattern::kFlows;
  s.limit = 20 * tb::kMs;
  if (rng.chance(0.2)) {
    s.traffic.pattern = Pattern::kAllToAll;
    s.traffic.at_a_time = static_cast<uint32_t>(1 + rng.below(4));
    s.traffic.bytes = rng.below(static_cast<uint64_t>(one_of(100, 5000, 20'000)));
    return s;
  }
  const uint64_t flows = 1 + rng.below(6);
  for (uint64_t i = 0; i < flows; ++i) {
    FlowSpec& f = s.traffic.flow.emplace_back();
    f.src = static_cast<uint32_t>(rng.below(rng.chance(0.5) ? 2 : c.nodes));
    f.dst = static_cast<uint32_t>((f.src + 1 + rng.below(c.nodes - 1)) % c.nodes);
    f.bytes = rng.below(static_cast<uint64_t>(one_of(2, 100, 5000, 20'000, 300'000)));
    f.count = static_cast<uint32_t>(1 + rng.below(4));
    f.depth = static_cast<uint32_t>(1 + rng.below(2));
    f.start_us = rng.chance(0.5) ? 0 : static_cast<double>(rng.below(30));
  }
  return s;
}

}  // namespace

// SEARCH=n looks at so many clusters.
TEST_CASE("bound: no body beats it", "[eval][bound]") {
  const char* const more = std::getenv("SEARCH");
  const uint64_t searched = more != nullptr ? std::strtoull(more, nullptr, 10) : 400;
  uint64_t compared = 0;
  for (uint64_t seed = 1; seed <= searched; ++seed) {
    tb::Rng rng(seed, 0xb0);
    const Setting s = any(rng);
    for (BodyKind body : {BodyKind::kWeft, BodyKind::kRoce, BodyKind::kRocePfc}) {
      if (body == BodyKind::kRocePfc && s.scenario.fabric.cut_through) continue;
      const RunResult run = run_one(s, body, seed);
      INFO(fmt::format("cluster {}, {}: {}", seed, name_of(body), run.status.text()));
      if (!run.status.ok() || value_of(run.metrics, "unfinished") != 0) continue;  // RoCEv2 on a dead plane
      const Flows flows = make_flows(s.traffic, s.scenario.nodes, s.scenario.planes, seed);
      const Ideal b = ideal(s.scenario, flows, charge_of(s, body), s.packet);
      constexpr double kRounding = 1e-6;  // of picoseconds
      CHECK(value_of(run.metrics, "mean_us") >= b.mean_us * (1 - kRounding));
      CHECK(value_of(run.metrics, "max_us") >= b.max_us * (1 - kRounding));
      CHECK(value_of(run.metrics, "last_us") >= b.last_us * (1 - kRounding));
      CHECK(value_of(run.metrics, "gbps") <= b.gbps * (1 + kRounding));
      ++compared;
    }
  }
  CHECK(compared > searched);
}

TEST_CASE("bound: with loss, the mean of many runs does not beat it", "[eval][bound]") {
  Setting s;
  s.scenario.nodes = 4;
  s.scenario.planes = 1;
  s.scenario.faults.loss = 0.2;
  s.weft.paths = 4;
  s.traffic.pattern = Pattern::kFlows;
  s.traffic.flow.push_back({0, 1, 400'000, 1, 1, 0, ""});
  s.limit = 20 * tb::kMs;
  constexpr uint64_t kRuns = 40;
  double sum = 0;
  const Ideal b = ideal(s.scenario, make_flows(s.traffic, 4, 1, 1), charge_of(s, BodyKind::kWeft), s.packet);
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const RunResult run = run_one(s, BodyKind::kWeft, seed);
    REQUIRE(value_of(run.metrics, "unfinished") == 0);
    sum += value_of(run.metrics, "last_us");
  }
  CHECK(sum / kRuns >= b.last_us);
  s.scenario.faults.loss = 0;
  CHECK(
      b.last_us >
      1.2 *
          ideal(s.scenario, make_flows(s.traffic, 4, 1, 1), charge_of(s, BodyKind::kWeft), s.packet).last_us);
}
