// SPDX-License-Identifier: Apache-2.0
// The event kernel and the frame pool.
#include <catch2/catch.hpp>

#include "tb/sim/frame.h"
#include "tb/sim/kernel.h"
#include "tb/sim/rng.h"
#include "weft_test.h"

using namespace weft::tb;

namespace {

constexpr Ps kLookahead = 1000;

// Passes events on at random times to random others and folds everything it saw, in order, into a hash.
class Gossip final : public Process {
 public:
  Gossip(uint64_t seed, unsigned processes, int work) : rng_(seed), processes_(processes), work_(work) {}

  void on_event(Event& e) override {
    check_order(e.time);
    fold(static_cast<uint64_t>(e.time));
    fold(e.source);
    fold(e.tag);
    // Uneven amounts of work, so that threads really overtake each other.
    for (uint64_t i = rng_.below(static_cast<uint64_t>(work_) + 1); i > 0; --i) fold(i);
    const auto to = static_cast<ProcessId>(rng_.below(processes_));
    // Times are coarse on purpose: many events fall on one picosecond and only source and number order them.
    const Ps delay = (to == id() ? 0 : kLookahead) + static_cast<Ps>(rng_.below(4)) * 500;
    post(to, e.time + delay, e.tag + 1, std::move(e.frame));
  }
  void advance_to(Ps end) override { now_ = end; }
  uint64_t hash() const { return hash_; }
  uint64_t seen() const { return seen_; }
  bool ordered() const { return ordered_; }

 private:
  void check_order(Ps time) {
    ordered_ = ordered_ && time >= last_ && time >= now_;
    last_ = time;
    ++seen_;
  }
  void fold(uint64_t x) { hash_ = mix64(hash_ ^ x) + 1; }
  Rng rng_;
  unsigned processes_;
  int work_;
  uint64_t hash_ = 0, seen_ = 0;
  Ps last_ = 0, now_ = 0;
  bool ordered_ = true;
};

std::pair<uint64_t, uint64_t> gossip(unsigned threads, uint64_t seed) {
  constexpr unsigned kProcesses = 7;
  FramePool frames;
  Kernel kernel(kLookahead, threads);
  std::vector<std::unique_ptr<Gossip>> all;
  for (unsigned i = 0; i < kProcesses; ++i) {
    all.push_back(std::make_unique<Gossip>(seed + i, kProcesses, static_cast<int>(i) * 400));
    kernel.add(*all.back());
  }
  for (uint32_t i = 0; i < 40; ++i) kernel.post(i % kProcesses, 0, i * 1000, frames.make(64));
  while (kernel.now() < 300 * kLookahead) kernel.run_window(300 * kLookahead);
  REQUIRE(kernel.status().ok());
  REQUIRE(kernel.pending_events() == 40);
  uint64_t hash = 0, seen = 0;
  for (auto& p : all) {
    CHECK(p->ordered());
    hash = mix64(hash ^ p->hash());
    seen += p->seen();
  }
  return {hash, seen};
}

class Failing final : public Process {
 public:
  void on_event(Event&) override { fail(Status::error("process " + std::to_string(id()) + " refuses")); }
};

class Idle final : public Process {
 public:
  explicit Idle(Ps wants) : wants_(wants) {}
  void on_event(Event&) override {}
  void advance_to(Ps end) override {
    if (wants_ < end) {
      ran.push_back(wants_);
      wants_ += 1'000'000;
    }
  }
  Ps wants_at() const override { return wants_; }
  std::vector<Ps> ran;

 private:
  Ps wants_;
};

}  // namespace

TEST_CASE("kernel: the number of threads does not change a bit", "[tb][kernel][random]") {
  const uint64_t seed = weft::test::seed();
  const auto one = gossip(1, seed);
  CHECK(one.second > 5000);
  CHECK(gossip(2, seed) == one);
  CHECK(gossip(3, seed) == one);
  CHECK(gossip(2, seed + 100) != one);  // the hash does depend on what happens
}

TEST_CASE("kernel: windows skip what nobody wants and never pass the limit", "[tb][kernel]") {
  Kernel kernel(kLookahead, 1);
  Idle a(5'000'000);
  kernel.add(a);
  CHECK(kernel.run_window(1'000'000) == 1'000'000);  // nothing before the limit
  CHECK(a.ran.empty());
  CHECK(kernel.run_window(20'000'000) == 5'000'000 + kLookahead);
  CHECK(a.ran == std::vector<Ps>{5'000'000});
  CHECK(kernel.run_window(5'000'000 + kLookahead + 10) == 5'000'000 + kLookahead + 10);
  CHECK(kernel.windows() == 3);
}

TEST_CASE("kernel: the failure of the lowest process stops the simulation", "[tb][kernel]") {
  for (unsigned threads : {1u, 2u}) {
    FramePool frames;
    Kernel kernel(kLookahead, threads);
    Failing p[4];
    for (Failing& f : p) kernel.add(f);
    for (uint32_t i : {3u, 1u, 2u}) kernel.post(i, 10, 0, frames.make(1));
    const Ps end = kernel.run_window(kNever);
    CHECK(kernel.status().text() == "process 1 refuses");
    CHECK(kernel.run_window(kNever) == end);
  }
}

TEST_CASE("kernel: frames are shared, copied on write and used again", "[tb][kernel]") {
  FramePool pool;
  FrameRef a = pool.make("0123456789", 10);
  FrameRef b = a;
  CHECK(a.get() == b.get());
  pool.writable(b);
  CHECK(a.get() != b.get());
  b->data()[0] = 'x';
  CHECK(a->data()[0] == '0');
  CHECK(b->data()[9] == '9');
  Frame* before = b.get();
  pool.writable(b);
  CHECK(b.get() == before);
  a.reset();
  b.reset();
  // However many frames come and go, only those alive at once are ever allocated.
  const uint64_t chunks = pool.allocations();
  for (int round = 0; round < 1000; ++round) {
    std::vector<FrameRef> held;
    for (int i = 0; i < 16; ++i) held.push_back(pool.make(i % 2 ? 100 : 4000));
  }
  CHECK(pool.allocations() <= chunks + 1);
}

TEST_CASE("kernel: frames freed on another thread come back", "[tb][kernel]") {
  FramePool pool;
  uint64_t after_warm_up = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<FrameRef> held;
    for (int i = 0; i < 64; ++i) held.push_back(pool.make(1000));
    std::thread([&held] { held.clear(); }).join();
    if (round == 20) after_warm_up = pool.allocations();
  }
  CHECK(pool.allocations() == after_warm_up);
}
