// SPDX-License-Identifier: Apache-2.0
// Whole runs of small clusters, both bodies.
#include <catch2/catch.hpp>

#include <regex>

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

// All there is to tell but times.
std::string told_by(const Machine& machine, const EvalConfig& config) {
  const auto results = run_all(
      {config}, 1, [](size_t, size_t) {}, machine);
  const std::string json = json_of(results, rows_of(results, 0), "");
  return std::regex_replace(json, std::regex("\"cpu_s\": [^,]*"), "\"cpu_s\": 0");
}

}  // namespace

TEST_CASE("run: one thread and two give the same figures", "[eval][run]") {
  const std::string one = told_by({1, nullptr}, busy()), two = told_by({2, nullptr}, busy());
  CHECK(std::regex_search(one, std::regex("\"unfinished\": \\{\\s+\"mean\": 0\\.0,")));
  CHECK((one == two));
  EvalConfig other = busy();
  other.seeds = {1, 3};
  CHECK_FALSE((told_by({2, nullptr}, other) == two));
}

TEST_CASE("run: two and three ranks give the figures of one program", "[eval][run]") {
  const std::string one = told_by({}, busy());
  for (const unsigned count : {2u, 3u}) {
    std::vector<std::string> told(count);
    tb::on_ranks(count, [&](tb::Ranks& rank) { told[rank.rank()] = told_by({1, &rank}, busy()); });
    for (const std::string& t : told) CHECK((t == one));
  }
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
  const std::vector<Row> rows = rows_of(one, 0.5);
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
