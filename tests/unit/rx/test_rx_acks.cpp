// SPDX-License-Identifier: Apache-2.0
//
// When weft_rx_path acks: at once, held, together, twice.
#include "rx_bench.h"

namespace {

using namespace rx;

struct AckBench {
  Bench bench;
  Traffic traffic;
  Region r = test_regions()[1];
  std::vector<Ack> acks;
  std::vector<std::uint64_t> at;  // cycle offered

  explicit AckBench(unsigned hold, Stalls stalls = {}) : bench(stalls), traffic(bench.model, quiet(), 30) {
    traffic.conns[0] = {true, 77, 0xfffffd, 1234};
    bench.connect(0, traffic.conns[0]);
    bench.global(12, hold);
    bench.on_ack = [this](const Ack& a, std::uint64_t cycle) {
      acks.push_back(a);
      at.push_back(cycle);
    };
  }
  static Mix quiet() {
    Mix m;
    m.gap = 0;
    m.ce = 0;
    return m;
  }
  /// A full packet with more to come: nothing hurries its ack.
  wire::Frame lazy(unsigned path = 0) { return traffic.data(0, path, r.base, 4096, r.key, true); }
  void done() {
    bench.drain(3000);
    bench.at_rest();
  }
};

// From a response to the ack that covers it.
constexpr std::uint64_t kSoon = 20;

}  // namespace

TEST_CASE("rx acks: a full packet alone is acked when its hold is over, each time", "[rx]") {
  AckBench t(500);
  for (unsigned i = 0; i < 3; ++i) {
    t.bench.send(t.lazy());
    while (t.bench.model.waiting() == 0) t.bench.cycle();
    while (t.bench.model.waiting() != 0) t.bench.cycle();
    const std::uint64_t start = t.bench.now();
    t.done();
    REQUIRE(t.acks.size() == i + 1);
    CHECK(t.at[i] - start > 480);
    CHECK(t.at[i] - start < 540);
  }
}

TEST_CASE("rx acks: the second packet, an end of message, a gap, a CE change and a probe are acked at once",
          "[rx]") {
  const auto delay = [](auto&& send) {
    AckBench t(100000);
    send(t);
    while (t.bench.queued() != 0 || t.bench.model.waiting() == 0) t.bench.cycle();
    while (t.bench.model.waiting() != 0) t.bench.cycle();
    const std::uint64_t start = t.bench.now();
    t.bench.run(200);
    REQUIRE(t.acks.size() == 1);
    return t.at[0] - start;
  };
  CHECK(delay([](AckBench& t) {
          t.bench.send(t.lazy());
          t.bench.send(t.lazy());
        }) < kSoon);
  CHECK(delay([](AckBench& t) { t.bench.send(t.traffic.data(0, 0, t.r.base, 4095, t.r.key, true)); }) <
        kSoon);
  CHECK(delay([](AckBench& t) { t.bench.send(t.traffic.data(0, 0, t.r.base, 4096, t.r.key, false)); }) <
        kSoon);
  CHECK(delay([](AckBench& t) {
          (void)t.traffic.probe(0, 0);  // a PSN that gets lost
          t.bench.send(t.lazy());
        }) < kSoon);
  CHECK(delay([](AckBench& t) {
          wire::Frame f = t.lazy();
          wire::mark_ce(f);
          t.bench.send(f);
        }) < kSoon);
  // A probe needs no memory, so put a packet in front of it that does.
  CHECK(delay([](AckBench& t) {
          t.bench.send(t.lazy(1));
          t.bench.send(t.traffic.probe(0, 0));
        }) < kSoon);
}

TEST_CASE("rx acks: a repeated probe is dropped as stale but answered", "[rx]") {
  AckBench t(100000);
  const wire::Frame probe = t.traffic.probe(0, 3);
  t.bench.send(probe);
  t.bench.drain(100);
  REQUIRE(t.acks.size() == 1);
  t.bench.send(probe);
  t.bench.drain(100);
  REQUIRE(t.acks.size() == 2);
  CHECK(t.acks[0] == t.acks[1]);
  CHECK(t.bench.model.drops()[static_cast<std::size_t>(wire::Drop::STALE)] == 1);
  t.done();
}

TEST_CASE("rx acks: acks that wait for the wire are merged and leave with the latest state", "[rx]") {
  Stalls s;
  s.ack = weft::test::Profile::Heavy;
  AckBench t(200, s);
  const unsigned frames = 400;
  for (unsigned i = 0; i < frames; ++i) t.bench.send(t.traffic.probe(0, i % 2));
  t.done();
  CHECK(t.acks.size() < frames / 4);
  CHECK(t.acks.back().base == ((0xfffffd + frames / 2) & kPsnMask));
}

TEST_CASE("rx acks: history says which PSNs were lost, also across the wrap of the PSN (case transport 6)",
          "[rx]") {
  AckBench t(200);
  for (unsigned i = 0; i < 300; ++i) {
    const wire::Frame f = t.traffic.probe(0, 0);
    if (i % 7 != 3) t.bench.send(f);
    t.bench.run(4);
  }
  t.done();
  const Ack& a = t.acks.back();
  REQUIRE(a.base == ((0xfffffd + 300) & kPsnMask));
  for (unsigned k = 0; k < wire::kHistBits; ++k) CHECK(a.hist[k] == ((299 - k) % 7 != 3));
  CHECK(a.hist_words == 8);
}

TEST_CASE("rx acks: a gap goes twice when the port is lossy, once when it is not", "[rx]") {
  AckBench t(200);
  const auto gap = [&t] {
    (void)t.traffic.probe(0, 0);
    t.bench.send(t.traffic.probe(0, 0));
    t.bench.drain(100);
  };
  gap();
  CHECK(t.bench.acks_again() == 0);  // the first loss does not make a lossy port
  gap();
  CHECK(t.bench.acks_again() == 1);
  for (int i = 0; i < 3000; ++i) t.bench.send(t.traffic.probe(0, 1));
  t.bench.drain(100);
  const auto before = t.bench.acks_again();
  gap();
  CHECK(t.bench.acks_again() == before);
  t.done();
}

TEST_CASE("rx acks: the status of a failed connection is in every later ack", "[rx]") {
  AckBench t(200);
  t.bench.send(t.traffic.data(0, 0, t.r.base, 64, t.r.key ^ 0x40000000));
  t.bench.drain(100);
  REQUIRE(t.acks.size() == 1);  // called for by the refusal
  t.bench.send(t.traffic.probe(0, 5));
  t.bench.send(t.traffic.data(0, 6, t.r.base, 64, t.r.key));
  t.bench.drain(100);
  REQUIRE(t.acks.size() == 3);
  for (const Ack& a : t.acks) CHECK(a.status == static_cast<std::uint8_t>(wire::Err::REMOTE_KEY));
  t.done();
}
