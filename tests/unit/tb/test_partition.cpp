// SPDX-License-Identifier: Apache-2.0
// A simulation divided over ranks, which here are threads of one program: what MPI does not matter to.
#include <catch2/catch.hpp>

#include <algorithm>
#include <barrier>
#include <numeric>
#include <thread>
#include <vector>

#include "load_host.h"
#include "tb/sim/ranks.h"
#include "weft_test.h"

using namespace weft::tb;

namespace {

// Where the ranks meet: each leaves something, and looks at what the others left when all are there.
struct Meeting {
  explicit Meeting(unsigned count)
      : gate(static_cast<std::ptrdiff_t>(count)), least(count), sums(count), outgoing(count) {}
  std::barrier<> gate;
  std::vector<Ps> least;
  std::vector<std::vector<uint64_t>> sums;
  std::vector<std::vector<std::vector<uint8_t>>> outgoing;
};

class ThreadRank final : public Ranks {
 public:
  ThreadRank(Meeting& meeting, unsigned rank) : m_(meeting), rank_(rank) {}
  unsigned rank() const override { return rank_; }
  unsigned count() const override { return static_cast<unsigned>(m_.least.size()); }
  Ps minimum(Ps mine) override {
    m_.least[rank_] = mine;
    m_.gate.arrive_and_wait();
    mine = *std::min_element(m_.least.begin(), m_.least.end());
    m_.gate.arrive_and_wait();
    return mine;
  }
  void sum(std::span<uint64_t> values) override {
    m_.sums[rank_].assign(values.begin(), values.end());
    m_.gate.arrive_and_wait();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0;
      for (const auto& of_rank : m_.sums) values[i] += of_rank[i];
    }
    m_.gate.arrive_and_wait();
  }
  void exchange(const std::vector<std::vector<uint8_t>>& outgoing, std::vector<uint8_t>& incoming) override {
    m_.outgoing[rank_] = outgoing;
    m_.gate.arrive_and_wait();
    incoming.clear();
    for (const auto& of_rank : m_.outgoing)
      incoming.insert(incoming.end(), of_rank[rank_].begin(), of_rank[rank_].end());
    m_.gate.arrive_and_wait();
  }

 private:
  Meeting& m_;
  const unsigned rank_;
};

template <class Body>
void on_ranks(unsigned count, Body&& body) {
  Meeting meeting(count);
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < count; ++r) {
    threads.emplace_back([&, r] {
      ThreadRank rank(meeting, r);
      body(rank);
    });
  }
  for (auto& thread : threads) thread.join();
}

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
  CHECK(text == std::vector<std::string>{"another rank has failed", "it breaks", "another rank has failed"});
  CHECK(end == std::vector<Ps>(3, 6 * kUs));
}
