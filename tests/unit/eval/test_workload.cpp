// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <set>

#include "tb/eval/workload.h"

using namespace weft::eval;

TEST_CASE("workload: a permutation gives everybody one to send to and one to hear from", "[eval]") {
  Workload w;
  w.bytes = 1000;
  for (uint64_t seed : {1, 2, 3}) {
    const Flows flows = make_flows(w, 128, 1, seed);
    std::set<uint32_t> from, to;
    for (const Flow& f : flows.list) {
      CHECK(f.src != f.dst);
      from.insert(f.src);
      to.insert(f.dst);
    }
    CHECK(from.size() == 128);
    CHECK(to.size() == 128);
  }
  CHECK(make_flows(w, 128, 1, 1).list[0].dst != make_flows(w, 128, 1, 2).list[0].dst);
  CHECK(make_flows(w, 128, 1, 7).list[5].dst == make_flows(w, 128, 1, 7).list[5].dst);
  w.per_plane = true;
  CHECK(make_flows(w, 8, 4, 1).list[0].bytes == 4000);
}

TEST_CASE("workload: all-to-all has every pair once", "[eval]") {
  Workload w;
  w.pattern = Pattern::kAllToAll;
  w.at_a_time = 3;
  const Flows flows = make_flows(w, 16, 1, 1);
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const Flow& f : flows.list) {
    CHECK(f.queued);
    pairs.insert({f.src, f.dst});
  }
  CHECK(flows.list.size() == 240);
  CHECK(pairs.size() == 240);
  CHECK(flows.at_a_time == 3);
}

TEST_CASE("workload: a step of the ring waits for what the host itself got", "[eval]") {
  Workload w;
  w.pattern = Pattern::kRing;
  w.steps = 5;
  for (bool on_delivery : {true, false}) {
    w.on_delivery = on_delivery;
    const Flows flows = make_flows(w, 6, 1, 1);
    REQUIRE(flows.list.size() == 30);
    for (const Flow& f : flows.list) {
      CHECK(f.dst == (f.src + 1) % 6);
      const uint32_t before = on_delivery ? f.after_got : f.after_told;
      CHECK((on_delivery ? f.after_told : f.after_got) == kNoFlow);
      CHECK(f.after_sent == kNoFlow);
      if (f.id < 6) {
        CHECK(before == kNoFlow);
        continue;
      }
      CHECK(flows.list[before].dst == f.src);
      CHECK(before / 6 + 1 == f.id / 6);
    }
  }
}

TEST_CASE("workload: an incast wider than the cluster takes several connections of a host", "[eval]") {
  Workload w;
  w.pattern = Pattern::kIncast;
  w.fan_in = 20;
  w.rounds = 2;
  w.victim_bytes = 5;
  const Flows flows = make_flows(w, 8, 1, 1);
  std::set<std::pair<uint32_t, uint32_t>> connections;
  size_t victims = 0;
  for (const Flow& f : flows.list) {
    victims += f.group == 1;
    if (f.group == 1) {
      CHECK(f.dst == 1);
      continue;
    }
    CHECK(f.dst == 0);
    CHECK((f.src != 1 && f.src != 7));  // the victim's hosts have nothing to do with it
    connections.insert({f.src, f.lane});
  }
  CHECK(victims == 1);
  CHECK(connections.size() == 20);
  CHECK(flows.list.size() == 41);
}

TEST_CASE("workload: an answer follows its request, the next request the answer", "[eval]") {
  Workload w;
  w.pattern = Pattern::kRpc;
  w.bytes = 100;
  w.answer_bytes = 200;
  w.rounds = 3;
  for (const Flow& f : make_flows(w, 5, 1, 1).list) {
    if (f.bytes == 200) CHECK(f.after_got == f.id - 1);
    if (f.bytes == 100 && f.after_got != kNoFlow) CHECK(f.after_got == f.id - 1);
  }
}
