// SPDX-License-Identifier: Apache-2.0
// Whole runs of small clusters, both bodies.
#include <catch2/catch.hpp>

#include "tb/eval/report.h"
#include "tb/eval/run.h"
#include "tb/eval/weft_body.h"

using namespace weft;
using namespace weft::eval;

namespace {

Setting small(double loss) {
  Setting s;
  s.scenario.nodes = 8;
  s.scenario.planes = 2;
  s.scenario.fabric.hosts_per_leaf = 4;
  s.scenario.faults.loss = loss;
  s.traffic.bytes = 300'000;
  s.limit = 100 * tb::kMs;
  s.weft.paths = 16;
  return s;
}

}  // namespace

TEST_CASE("run: every body moves every byte, with and without loss", "[eval][run]") {
  for (BodyKind body : {BodyKind::kWeft, BodyKind::kRoce}) {
    for (double loss : {0.0, 0.03}) {
      INFO(name_of(body) << " at loss " << loss);
      const RunResult r = run_one(small(loss), body, 3);
      INFO(r.status.text());
      CHECK(r.status.ok());
      CHECK(value_of(r.metrics, "unfinished") == 0);
      CHECK(r.completion_us.size() == 8);
      CHECK((value_of(r.metrics, "drop_loss") > 0) == (loss > 0));
      CHECK((value_of(r.metrics, "resent") > 0) == (loss > 0));
      CHECK(value_of(r.metrics, "data") >= 8 * 74);
    }
  }
}

TEST_CASE("run: a packet that is placed twice breaks the run", "[eval][run]") {
  // Two bodies and a wire between them; the account says that packet 1 of 3 is in place before anything is
  // sent.
  struct Told : Events {
    std::vector<std::string> broken_rules;
    void placed(Ps, uint32_t, uint32_t) override {}
    void delivered(Ps, uint32_t) override {}
    void completed(Ps, uint32_t) override {}
    void broken(tb::Status why) override { broken_rules.push_back(why.text()); }
  };
  for (bool before : {false, true}) {
    Flows flows;
    flows.list.resize(1);
    flows.list[0].dst = 1;
    flows.list[0].bytes = 3000;
    flows.records.resize(1);
    ref::Config c;
    c.ports = 1;
    c.paths = 4;
    c.mtu = 1000;
    c.payload = false;
    Placement placement(flows, c.mtu);
    if (before) placement.set(placement.packet(0, 1000));
    tb::FramePool frames;
    Told a_events, b_events;
    WeftBody a(c, 0, flows, placement, frames, a_events), b(c, 1, flows, placement, frames, b_events);
    std::vector<WeftBody*> bodies{&a, &b};
    REQUIRE(WeftBody::connect(bodies, flows).ok());
    a.start(0, flows.list[0]);
    for (Ps now = tb::kUs; now < 40 * tb::kUs; now += tb::kUs) {
      for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
        if (from->next_timer() <= now) from->on_timer(now);
        for (tb::FrameRef f; from->next(now, 0, false, f);) to->on_frame(now, 0, *f);
      }
    }
    CHECK(a_events.broken_rules.empty());
    CHECK(b_events.broken_rules ==
          (before ? std::vector<std::string>{"flow 0: the packet at byte 1000 was placed twice"}
                  : std::vector<std::string>{}));
  }
}

TEST_CASE("run: the same seed gives the same figures, another one others", "[eval][run]") {
  for (BodyKind body : {BodyKind::kWeft, BodyKind::kRoce}) {
    INFO(name_of(body));
    const RunResult a = run_one(small(0.02), body, 5), b = run_one(small(0.02), body, 5);
    CHECK(a.metrics == b.metrics);
    CHECK(a.completion_us == b.completion_us);
    CHECK(run_one(small(0.02), body, 6).completion_us != a.completion_us);
  }
}

TEST_CASE("run: how many go at once changes nothing", "[eval][run]") {
  EvalConfig c;
  c.base = small(0.01);
  c.base.scenario.name = "small";
  c.bodies = {BodyKind::kWeft, BodyKind::kRoce};
  c.seeds = {1, 2, 3};
  c.sweep = {{"loss", {0, 0.01}}};
  c.goals.push_back({"kept", "retained_pct", "%", true, 1, {{"loss", 0.01}}, 50, "made up", {}});
  const auto one = run_all({c}, 1, [](size_t, size_t) {});
  const auto two = run_all({c}, 2, [](size_t, size_t) {});
  CHECK(csv_of(one) == csv_of(two));
  const std::vector<Row> rows = rows_of(one);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].met);
  CHECK(rows[0].uet_htsim == 50);
  CHECK(rows[0].value > rows[0].rocev2);
  CHECK(rows[0].value < rows[0].bound + 0.5);
}

TEST_CASE("run: what does not finish is told, and has no completion time", "[eval][run]") {
  Setting s = small(0);
  s.limit = 5 * tb::kUs;
  EvalConfig c;
  c.base = s;
  c.bodies = {BodyKind::kWeft};
  c.seeds = {1};
  const auto r = run_all({c}, 1, [](size_t, size_t) {});
  const BodyResult& b = r[0].points[0].bodies[0];
  CHECK(value_of(b.runs[0].metrics, "unfinished") == 8);
  for (const auto& [name, spread] : b.metrics) CHECK(name != "mean_us");
}

TEST_CASE("run: Jain's index", "[eval][run]") {
  CHECK(jain({1, 1, 1, 1}) == 1);
  CHECK(jain({4, 0, 0, 0}) == 0.25);
  CHECK(jain({2, 1}) == Approx(0.9));
  CHECK(jain({0, 0}) == 0);
}
