// SPDX-License-Identifier: Apache-2.0
// The ideal bound against figures computed by hand for the fabrics of the scenarios.
#include <catch2/catch.hpp>

#include "tb/eval/bound.h"
#include "tb/eval/eval_config.h"

using namespace weft;
using namespace weft::eval;

namespace {

EvalConfig load(const char* name) {
  auto c = load_eval(std::string(WEFT_SOURCE_DIR) + "/sw/scenarios/eval/" + name + ".toml", {});
  INFO((c.ok() ? "" : c.error()));
  REQUIRE(c.ok());
  return c.take();
}

Ideal bound(const char* name, const Point& point = {}, uint32_t ack_wire = 64) {
  const EvalConfig c = load(name);
  const Setting s = at_point(c, point);
  return ideal(s.scenario, make_flows(s.traffic, s.scenario.nodes, s.scenario.planes, 1), s.packet, ack_wire);
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
  CHECK(bound("s3-long-flow", {{"loss", 0}}).max_us == Approx(8139).margin(1));
  // 90 % of the packets of an attempt arrive, so 1/0.9 as many are sent.
  CHECK(bound("s3-long-flow", {{"loss", 0.1}}).max_us == Approx(8125.3 / 0.9 + 14.0).margin(1));
  CHECK(bound("s2-permutation", {{"loss", 0}}).gbps == Approx(97.9).margin(0.3));
  CHECK(bound("s6-incast-32").max_us == Approx(32 * 81.3).margin(15));
  CHECK(bound("s6-incast-64").max_us == Approx(64 * 81.3).margin(15));
  // 63 flows of 266,304 bytes with headers at 400 Gb/s (without headers it would be 330), and the round trip
  // of a neighbour at the same switch.
  CHECK(bound("s4-all-to-all", {{"loss", 0}}).max_us == Approx(335.5 + 3.0).margin(0.2));
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
  const double us = bound("s5-ring", {{"loss", 0}}).max_us;
  CHECK(us > 2663);
  CHECK(us < 3049);
}
