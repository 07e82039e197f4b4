// SPDX-License-Identifier: Apache-2.0
// Whole runs of small clusters, both bodies.
#include <catch2/catch.hpp>

#include <regex>

#include "tb/eval/bound.h"
#include "tb/eval/report.h"
#include "tb/eval/run.h"
#include "tb/eval/weft_body.h"
#include "tests/unit/tb/thread_ranks.h"

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

// Loss, sprayed packets, accounts over time, an answer that waits for its question: whatever hosts tell each
// other.
EvalConfig busy() {
  EvalConfig c;
  c.base = small(0.02);
  c.base.scenario.name = "busy";
  c.base.scenario.nodes = 24;
  c.base.scenario.fabric.spray = tb::Spray::kPacket;
  c.base.traffic.pattern = Pattern::kRpc;
  c.base.traffic.bytes = 20'000;
  c.base.traffic.answer_bytes = 50'000;
  c.base.traffic.rounds = 3;
  c.base.window = 10 * tb::kUs;
  c.bodies = {BodyKind::kWeft, BodyKind::kRoce, BodyKind::kRocePfc};
  c.seeds = {1, 2};
  return c;
}

// Steps that start when another host has told that its own is complete.
EvalConfig ring() {
  EvalConfig c = busy();
  c.base.traffic = {};
  c.base.traffic.pattern = Pattern::kRing;
  c.base.traffic.bytes = 20'000;
  c.base.traffic.steps = 4;
  c.base.traffic.on_delivery = false;
  c.seeds = {1};
  return c;
}

// All there is to tell but times.
std::string told_by(const Machine& machine, const EvalConfig& config) {
  const auto results = run_all(
      {config}, 1, [](size_t, size_t) {}, machine);
  const std::string json = json_of(results, rows_of(results, 0), {});
  return std::regex_replace(json, std::regex("\"cpu_s\": [^,]*"), "\"cpu_s\": 0");
}

}  // namespace

TEST_CASE("run: one thread and two give the same figures", "[eval][run]") {
  const std::string one = told_by({1, nullptr}, busy()), two = told_by({2, nullptr}, busy());
  CHECK(std::regex_search(one, std::regex("\"unfinished\": \\{\\s+\"mean\": 0\\.0,")));
  CHECK((one == two));
  CHECK((told_by({1, nullptr}, ring()) == told_by({2, nullptr}, ring())));
  EvalConfig other = busy();
  other.seeds = {1, 3};
  CHECK_FALSE((told_by({2, nullptr}, other) == two));
}

TEST_CASE("run: two and three ranks give the figures of one program", "[eval][run]") {
  for (const EvalConfig& config : {busy(), ring()}) {
    const std::string one = told_by({}, config);
    for (const unsigned count : {2u, 3u}) {
      std::vector<std::string> told(count);
      tb::on_ranks(count, [&](tb::Ranks& rank) { told[rank.rank()] = told_by({1, &rank}, config); });
      for (const std::string& t : told) CHECK((t == one));
    }
  }
}

TEST_CASE("run: a step starts when its neighbour has told that the last is complete", "[eval][run]") {
  Setting s = small(0);
  s.scenario.planes = 1;
  s.scenario.fabric.hosts_per_leaf = 8;
  s.traffic.pattern = Pattern::kRing;
  s.traffic.bytes = 4086;
  s.traffic.steps = 5;
  const auto took = [&](bool on_delivery) {
    s.traffic.on_delivery = on_delivery;
    return value_of(run_one(s, BodyKind::kRoce, 1).metrics, "last_us");
  };
  // A step more costs there: two links and the packet twice; an ack back, and a link's time for the news.
  const double there = 2 + 2 * (4088 + 82) * 8e-5, back = 2 + 2 * 86 * 8e-5;
  CHECK(took(true) == Approx(5 * there + back).margin(0.1));
  CHECK(took(false) == Approx(5 * (there + back) + 4 * 1).margin(0.1));
}

TEST_CASE("run: an original that comes late makes its resend needless, where nothing is lost",
          "[eval][run]") {
  Setting s = small(0);
  s.scenario.planes = 1;
  s.scenario.fabric.spray = tb::Spray::kPacket;
  s.scenario.fabric.spines = 4;
  const auto percent = [&](uint32_t distance) {
    s.weft.distance = distance;
    const RunResult r = run_one(s, BodyKind::kWeft, 3);
    INFO(r.status.text());
    CHECK(r.status.ok());
    CHECK(value_of(r.metrics, "unfinished") == 0);
    CHECK(value_of(r.metrics, "drop_queue") + value_of(r.metrics, "drop_loss") == 0);
    CHECK(value_of(r.metrics, "needless") == value_of(r.metrics, "resent"));
    return value_of(r.metrics, "needless_pct");
  };
  CHECK(percent(0) > 0.1);
  CHECK(percent(32) == 0);
}

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
    WeftBody a(c, {c.mtu, 118}, 0, flows, placement, frames, a_events);
    WeftBody b(c, {c.mtu, 118}, 1, flows, placement, frames, b_events);
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
  const std::vector<Row> rows = rows_of(one, 0.5);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].met);
  CHECK(rows[0].uet_htsim == 50);
  CHECK(rows[0].value.mean > rows[0].rocev2);
  CHECK(rows[0].value.mean < rows[0].bound + 0.5);
  CHECK(rows[0].value.low < rows[0].value.high);
  CHECK(rows[0].seeds == 3);
}

TEST_CASE("run: what does not finish is told, and has no figures", "[eval][run]") {
  Setting s = small(0);
  s.limit = 25 * tb::kUs;
  s.traffic.pattern = Pattern::kFlows;
  for (uint32_t i = 0; i < 8; ++i)
    s.traffic.flow.push_back({i, (i + 1) % 8, i < 4 ? 2'000'000u : 2'000u, 1, 1, 0, ""});
  EvalConfig c;
  c.base = s;
  c.bodies = {BodyKind::kWeft};
  c.seeds = {1};
  const auto r = run_all({c}, 1, [](size_t, size_t) {});
  const BodyResult& b = r[0].points[0].bodies[0];
  CHECK(value_of(b.runs[0].metrics, "unfinished") == 4);
  CHECK(value_of(b.runs[0].metrics, "mean_us") > 0);  // of those that did
  REQUIRE(b.metrics.size() == 1);
  CHECK(b.metrics[0].first == "unfinished");
  CHECK(b.reason.find("4 flows not done by eval.limit_us = 25") != std::string::npos);
  CHECK_FALSE(failure_of(r).empty());
}

TEST_CASE("run: Jain's index", "[eval][run]") {
  CHECK(jain({1, 1, 1, 1}) == 1);
  CHECK(jain({4, 0, 0, 0}) == 0.25);
  CHECK(jain({2, 1}) == Approx(0.9));
  CHECK(jain({0, 0}) == 0);
}

TEST_CASE("run: copies that the network makes are nobody's needless resends", "[eval][run]") {
  Setting s = small(0);
  s.scenario.faults.duplicate = 0.2;
  for (BodyKind body : {BodyKind::kWeft, BodyKind::kRoce}) {
    INFO(name_of(body));
    const RunResult r = run_one(s, body, 3);
    CHECK(value_of(r.metrics, "unfinished") == 0);
    CHECK(value_of(r.metrics, "discarded") > 10);
    CHECK(value_of(r.metrics, "resent") == 0);
    CHECK(value_of(r.metrics, "needless") == 0);
  }
}

TEST_CASE("run: each body pays for its own headers, unless all pay the same", "[eval][run]") {
  Setting s = small(0);
  s.scenario.planes = 1;
  s.packet = {4096, 64};
  s.traffic.pattern = Pattern::kFlows;
  s.traffic.flow.push_back({0, 1, 4096 * 1000, 1, 1, 0, ""});
  const auto took = [&](BodyKind body) { return value_of(run_one(s, body, 1).metrics, "last_us"); };
  // 1000 packets at 100 Gb/s, and the way of the last; an ack of 114 or 86 bytes back.
  const auto line = [](double wire, double ack) {
    return 1000 * wire * 8e-5 + 2 + wire * 8e-5 + 2 + 2 * ack * 8e-5;
  };
  CHECK(took(BodyKind::kWeft) == Approx(line(4096 + 118, 114)).margin(0.1));
  CHECK(took(BodyKind::kRoce) == Approx(line(4096 + 82, 86)).margin(0.1));
  s.own_overhead = false;
  CHECK(took(BodyKind::kWeft) == Approx(line(4096 + 64, 114)).margin(0.1));
  CHECK(took(BodyKind::kRoce) == Approx(line(4096 + 64, 86)).margin(0.1));
}

TEST_CASE("run: RoCEv2's window is as large as its line needs", "[eval][run]") {
  Setting s = small(0);
  s.scenario.planes = 1;
  s.scenario.nodes = 16;
  s.scenario.fabric.topology = tb::Topology::kFatTree;
  s.scenario.fabric.radix = 2;
  s.traffic.pattern = Pattern::kFlows;
  s.traffic.flow.push_back({0, 15, 20'000'000, 1, 1, 0, ""});
  const Flows flows = make_flows(s.traffic, 16, 1, 1);
  const Ideal b = ideal(s.scenario, flows, charge_of(s, BodyKind::kRoce), s.packet);
  CHECK(value_of(run_one(s, BodyKind::kRoce, 1).metrics, "last_us") < 1.0005 * b.last_us);
}

TEST_CASE("run: flow control with room for what is under way drops nothing", "[eval][run]") {
  Setting s = small(0);
  s.scenario.planes = 1;
  s.traffic.pattern = Pattern::kIncast;
  s.traffic.fan_in = 14;
  s.traffic.bytes = 2'000'000;
  s.scenario.fabric.pfc_xoff_bytes = static_cast<uint64_t>(
      tb::pfc_most_xoff(s.scenario, charge_of(s, BodyKind::kRocePfc).data.wire(s.packet.payload)));
  s.scenario.fabric.pfc_xon_bytes = s.scenario.fabric.pfc_xoff_bytes / 2;
  const RunResult good = run_one(s, BodyKind::kRocePfc, 1);
  CHECK(value_of(good.metrics, "unfinished") == 0);
  CHECK(value_of(good.metrics, "drop_queue") == 0);
  s.scenario.fabric.pfc_xoff_bytes = 300'000;
  CHECK(value_of(run_one(s, BodyKind::kRocePfc, 1).metrics, "drop_queue") > 0);
}

TEST_CASE("run: a flow may be longer than a request", "[eval][run]") {
  Setting s = small(0);
  s.scenario.planes = 1;
  s.weft.paths = 4;
  s.limit = 1'000 * tb::kMs;
  s.traffic.pattern = Pattern::kFlows;
  s.traffic.flow.push_back({0, 1, 4'026'531'840, 1, 1, 0, ""});
  s.scenario.fabric.rate_gbps = s.scenario.fabric.uplink_rate_gbps = 400;
  const RunResult r = run_one(s, BodyKind::kWeft, 1);  // every packet of it is looked at
  INFO(r.status.text());
  CHECK(r.status.ok());
  CHECK(value_of(r.metrics, "unfinished") == 0);
  CHECK(value_of(r.metrics, "data") == 985'446);
}

TEST_CASE("run: a goal is met by the mean, if no seed is far from it", "[eval][run]") {
  ScenarioResult r;
  r.config.base.scenario.name = "s";
  Goal g;
  g.row = "g";
  g.metric = "last_us";
  g.at_least = false;
  const auto met = [&](double goal, Spread told) {
    r.config.goals = {g};
    r.config.goals[0].value = goal;
    r.points = {{}};
    BodyResult& b = r.points[0].bodies.emplace_back();
    b.runs.resize(2);
    b.runs[0].ran = b.runs[1].ran = true;
    b.metrics = {{"last_us", told}};
    return rows_of({r}, 0)[0].met;
  };
  CHECK(met(100, {99, 97, 101}));
  CHECK(met(100, {100, 98, 102}));
  CHECK_FALSE(met(100, {100, 97, 102.1}));
  CHECK_FALSE(met(100, {100.1, 100, 100.2}));
  g.at_least = true;
  CHECK(met(100, {100, 98, 102}));
  CHECK_FALSE(met(100, {101, 97.9, 104}));
  CHECK_FALSE(met(100, {99.9, 99.8, 100.1}));
}

TEST_CASE("run: only goals take all seeds", "[eval][run]") {
  EvalConfig c;
  c.seeds = {1, 2, 3, 4};
  c.few_seeds = 2;
  c.sweep = {{"loss", {0, 0.01, 0.1}}};
  Goal g;
  g.metric = "retained_pct";
  g.value = 90;
  g.where = {{"loss", 0.1}};
  c.goals = {g};
  const auto seeds = [&](double loss, BodyKind body) { return seeds_at(c, {{"loss", loss}}, body); };
  CHECK(seeds(0.1, BodyKind::kWeft) == 4);
  CHECK(seeds(0, BodyKind::kWeft) == 4);  // it is compared with that
  CHECK(seeds(0.01, BodyKind::kWeft) == 2);
  CHECK(seeds(0.1, BodyKind::kRoce) == 2);
}

TEST_CASE("run: a product and a sum are rounded one after the other", "[eval][run]") {
  // Fused, the product would keep its 2^-60: the same source would give other figures on other processors.
  volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30, c = -1;
  const double x = a, y = b, z = c;
  CHECK(x * y + z == 0);
}
