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

TEST_CASE("rx acks: the end of CE is acked at once, as its beginning is", "[rx]") {
  AckBench t(100000);
  for (unsigned i = 0; i < 4; ++i) {  // marked, not, marked, not
    wire::Frame f = t.lazy();
    if (i % 2 == 0) wire::mark_ce(f);
    t.bench.send(f);
    t.bench.drain(100);
    CHECK(t.acks.size() == i + 1);
  }
}

TEST_CASE("rx acks: an ack that is to go twice does so whatever comes before it leaves", "[rx]") {
  AckBench t(200);
  const auto gap = [&t] {
    (void)t.traffic.probe(0, 0);
    t.bench.send(t.lazy());
    t.bench.drain(60);
  };
  gap();
  gap();
  const auto before = t.bench.acks_again();
  t.bench.hold_acks = true;
  t.bench.send(t.lazy(1));  // stands at the wire
  t.bench.send(t.lazy(1));
  t.bench.drain(60);
  gap();                   // waits behind it: to go twice
  t.bench.send(t.lazy());  // and this is nothing new
  t.bench.drain(60);
  t.bench.hold_acks = false;
  t.bench.drain(100);
  CHECK(t.bench.acks_again() == before + 1);
  t.done();
}

TEST_CASE("rx acks: a hold that ends while its path waits for the wire is begun again", "[rx]") {
  AckBench t(300);
  t.bench.hold_acks = true;
  t.bench.send(t.lazy(1));  // stands at the wire
  t.bench.send(t.lazy(1));
  t.bench.send(t.lazy(0));  // held
  t.bench.drain(60);
  t.bench.send(t.lazy(0));  // owed now; the hold goes on
  t.bench.drain(600);       // and is over
  t.bench.hold_acks = false;
  t.bench.drain(100);
  const std::size_t before = t.acks.size();
  t.bench.send(t.lazy(0));  // alone: nothing but its own hold makes its ack leave
  t.bench.drain(500);
  CHECK(t.acks.size() == before + 1);
  t.done();
}

TEST_CASE("rx acks: the loss that makes a port lossy decays by 1/256 a packet, exactly", "[rx]") {
  // One gap of one PSN is 2^16; below 50332 the port is not lossy any more.
  unsigned packets = 0;
  for (std::uint32_t loss = 1U << 16; loss >= 50332; loss -= loss >> 8) ++packets;
  for (const bool lossy : {true, false}) {
    AckBench t(200);
    const auto gap = [&t] {
      (void)t.traffic.probe(0, 0);
      t.bench.send(t.lazy());
      t.bench.drain(100);
    };
    gap();
    for (unsigned i = 0; i < packets - lossy; ++i) {
      t.bench.send(t.lazy(1));
      t.bench.drain(100);
    }
    const auto before = t.bench.acks_again();
    gap();
    CHECK(t.bench.acks_again() - before == (lossy ? 1 : 0));
    t.done();
  }
}

TEST_CASE("rx acks: an ack that names blocks is refused, whether they are there or not", "[rx]") {
  AckBench t(200);
  unsigned refused = 0;
  for (unsigned blocks = 0; blocks < 16; ++blocks) {
    for (const bool there : {false, true}) {
      for (const unsigned words : {0U, 1U, 8U}) {
        wire::Frame f = t.traffic.ack(0, 0, words);
        f[62] = static_cast<std::uint8_t>((f[62] & 0xf0) | blocks);
        if (there) f.insert(f.end() - 4, std::size_t{12} * blocks, 0);
        const std::size_t ip = f.size() - 14 - 4, udp = f.size() - 34 - 4;
        f[16] = static_cast<std::uint8_t>((ip + 4) >> 8);
        f[17] = static_cast<std::uint8_t>(ip + 4);
        f[38] = static_cast<std::uint8_t>((udp + 4) >> 8);
        f[39] = static_cast<std::uint8_t>(udp + 4);
        wire::reseal(f);
        t.bench.send(f);
        refused += blocks != 0;
      }
    }
  }
  t.done();
  CHECK(t.bench.model.drops()[static_cast<std::size_t>(wire::Drop::ACK_BAD)] == refused);
}

TEST_CASE("rx acks: what a connection owes when it is configured away or anew is not sent", "[rx]") {
  for (const bool gone : {true, false}) {
    // at every step of an ack: held, owed, popped, being built, offered
    for (unsigned wait = 0; wait < 60; ++wait) {
      CAPTURE(gone, wait);
      AckBench t(40);
      t.bench.hold_acks = wait % 2 == 0;
      t.bench.send(t.lazy(0));
      t.bench.send(t.lazy(1));
      t.bench.send(t.traffic.probe(0, 2));
      while (t.bench.queued() != 0 || t.bench.model.waiting() == 0) t.bench.cycle();
      while (t.bench.model.waiting() != 0) t.bench.cycle();
      t.bench.run(wait);
      t.traffic.conns[0].valid = !gone;
      t.traffic.conns[0].incarnation ^= 1;
      const std::uint64_t configured = t.bench.now();
      t.bench.connect(0, t.traffic.conns[0]);
      t.bench.hold_acks = false;
      t.bench.run(600);
      for (const std::uint64_t at : t.at) CHECK(at <= configured);
      // configured anew, what was only held is forgotten without having been owed
      CHECK(t.bench.acks_void() + t.acks.size() <= 3);
      if (gone && wait > 10) CHECK(t.bench.acks_void() + t.acks.size() == 3);
      t.done();
    }
  }
}
