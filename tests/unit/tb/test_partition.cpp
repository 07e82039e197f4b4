// SPDX-License-Identifier: Apache-2.0
// A simulation divided over ranks, which here are threads of one program.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "load_host.h"
#include "thread_ranks.h"
#include "weft_test.h"

using namespace weft::tb;

namespace {

struct Outcome {
  uint64_t hash = 0, got = 0, late = 0, events = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(const Scenario& s, Ranks* ranks) {
  LoadedFabric f(s, {}, {}, ranks);
  f.run_until(60 * kUs);
  Outcome o{f.hash(), f.got(), f.late(), f.kernel.events()};
  if (ranks) ranks->sum({&o.events, 1});
  return o;
}

class Failing final : public Process {
 public:
  void on_event(Event& event) override {
    if (event.time >= 5 * kUs)
      fail(Status::error("it breaks"));
    else
      post(event.time + kUs, 0);
  }
  void begin() { post(0, 0); }
};

}  // namespace

TEST_CASE("partition: however the nodes are divided, the bits are the same", "[tb][fabric][random]") {
  Scenario s = f100(48, 2);
  s.seed = weft::test::seed();
  s.faults.loss = 0.002;
  s.fabric.pods = {{0, 2, 3000}};
  SECTION("fat tree") {}
  SECTION("fat tree, packets sprayed") {
    s.fabric.spray = Spray::kPacket;
  }
  SECTION("fat tree with flow control") {
    s.fabric.pfc = true;
    s.fabric.pfc_xoff_bytes = 20'000;
    s.fabric.pfc_xon_bytes = 10'000;
  }
  SECTION("leaf-spine") {
    s.fabric.topology = Topology::kLeafSpine;
    s.fabric.pods.clear();
  }
  const Outcome one = outcome(s, nullptr);
  CHECK(one.got > 1000);
  for (const unsigned ranks : {2u, 3u}) {
    std::vector<Outcome> all(ranks);
    on_ranks(ranks, [&](Ranks& rank) { all[rank.rank()] = outcome(s, &rank); });
    for (const Outcome& o : all) CHECK(o == one);
  }
  s.threads = 2;
  std::vector<Outcome> threaded(2);
  on_ranks(2, [&](Ranks& rank) { threaded[rank.rank()] = outcome(s, &rank); });
  for (const Outcome& o : threaded) CHECK(o == one);
}

TEST_CASE("partition: the failure of one rank ends the others", "[tb][kernel]") {
  std::vector<std::string> text(3);
  std::vector<Ps> end(3);
  on_ranks(3, [&](Ranks& rank) {
    FramePool frames;
    Kernel kernel(kUs, 1, &rank, &frames);
    Failing process;
    kernel.add(rank.rank() == 1 ? &process : nullptr, 1);
    if (rank.rank() == 1) process.begin();
    while (kernel.status().ok() && kernel.now() < 100 * kUs) kernel.run_window(100 * kUs);
    text[rank.rank()] = kernel.status().text();
    end[rank.rank()] = kernel.now();
  });
  const std::string told = "another rank has failed: it breaks";
  CHECK(text == std::vector<std::string>{told, "it breaks", told});
  CHECK(end == std::vector<Ps>(3, 6 * kUs));
}
