// SPDX-License-Identifier: Apache-2.0
//
// weft_rx_path against its model: verdicts, bytes in memory, committed packets, received acks.
#include <set>

#include "rx_bench.h"

namespace {

using namespace rx;
using weft::test::Profile;
using weft::test::Rng;
using wire::Drop;

Conn test_conn(Rng& rng, bool near_wrap) {
  Conn c;
  c.valid = true;
  c.incarnation = static_cast<std::uint16_t>(rng());
  c.rx_psn = static_cast<std::uint32_t>(near_wrap ? 0xffffff - rng.below(64) : rng()) & kPsnMask;
  c.share = static_cast<std::uint16_t>(rng());
  return c;
}

void connect_all(Bench& bench, Traffic& traffic, unsigned conns, bool victims) {
  for (unsigned c = 0; c < kNumConns; ++c) {
    if (c >= conns && (!victims || c < 8)) continue;
    traffic.conns[c] = test_conn(traffic.rng, c % 2 == 0);
    bench.connect(c, traffic.conns[c]);
  }
}

/// Random traffic; `held` keeps the sender from outrunning a slow memory.
void random_run(const Stalls& stalls, Mix mix, unsigned frames, bool held, std::uint64_t stream,
                std::array<std::uint64_t, wire::kDropCount>* drops = nullptr, Lie lie = Lie::None) {
  Bench bench(stalls, stream);
  Traffic traffic(bench.model, mix, stream);
  traffic.follow = true;
  connect_all(bench, traffic, mix.conns, mix.forbidden != 0);
  bench.lie = lie;
  // Refused frames stay in the packet buffer until the accepted ones before them are written, so all bytes
  // count.
  std::size_t under_way = 0;
  for (unsigned i = 0; i < frames;) {
    if (bench.quiet()) under_way = 0;
    if (bench.queued() == 0 && (!held || under_way < 8000)) {
      Sent s = traffic.next();
      under_way += s.frame.size() + 64;
      bench.send(std::move(s));
      ++i;
    }
    bench.cycle();
  }
  bench.drain();
  bench.at_rest();
  if (held) CHECK(bench.overflows() == 0);
  if (drops) {
    for (std::size_t i = 0; i < drops->size(); ++i) (*drops)[i] += bench.model.drops()[i];
  }
}

}  // namespace

TEST_CASE("rx: random frames, good and bad, without stalls", "[rx][random]") {
  std::array<std::uint64_t, wire::kDropCount> drops{};
  random_run({}, {}, 12000, true, 1, &drops);
  // Every reason a frame alone can give was reached.
  const std::set<Drop> elsewhere = {Drop::OVERFLOW, Drop::ACK_OLD, Drop::MEM};
  for (std::size_t i = 0; i < wire::kDropCount; ++i) {
    CAPTURE(wire::name(static_cast<Drop>(i)));
    if (!elsewhere.count(static_cast<Drop>(i))) CHECK(drops[i] > 0);
  }
}

TEST_CASE("rx: random frames under every stall profile of memory, core and acks", "[rx][random]") {
  std::uint64_t stream = 100;
  for (const Profile p : weft::test::kProfiles) {
    for (const Profile q : weft::test::kProfiles) {
      CAPTURE(name_of(p), name_of(q));
      Stalls s;
      s.mac = q == Profile::None ? Profile::Light : Profile::None;
      s.aw = p;
      s.w = q;
      s.b = p;
      s.commit = q;
      s.ack = p;
      s.ackin = q == Profile::Heavy ? Profile::Half : q;
      s.b_max = 400;
      random_run(s, {}, 500, true, stream++);
    }
  }
}

TEST_CASE("rx: more than memory can take is dropped and counted, the rest is right (case rtl 2)",
          "[rx][random]") {
  std::uint64_t stream = 200;
  std::array<std::uint64_t, wire::kDropCount> drops{};
  for (const Profile p : {Profile::Half, Profile::Heavy, Profile::Bursts, Profile::Changing}) {
    CAPTURE(name_of(p));
    Stalls s;
    s.aw = s.w = s.b = s.commit = s.ack = s.ackin = p;
    s.b_max = 400;
    random_run(s, {}, 1500, false, stream++, &drops);
    Mix small;
    small.max_len = 40;
    small.malformed = small.garbage = 0;
    random_run(s, small, 3000, false, stream++, &drops);
  }
  CHECK(drops[static_cast<std::size_t>(Drop::OVERFLOW)] > 100);
}

TEST_CASE(
    "rx: every alignment, lengths around every edge, guard bytes untouched (case transport 9, case transport "
    "10)",
    "[rx]") {
  Bench bench;
  Traffic traffic(bench.model, {}, 2);
  connect_all(bench, traffic, 2, false);
  const Region r = test_regions()[1];
  const std::vector<std::size_t> lens = {1,  2,   3,   4,   5,   31,  37,  38,  39,   63,  64,
                                         65, 101, 102, 103, 127, 128, 129, 200, 4095, 4096};
  for (std::uint64_t a = 0; a < 64; ++a) {
    for (const std::size_t len : lens) {
      if (len > 1000 && a % 7 != 0) continue;
      // Both a page's middle and its end.
      bench.send(traffic.data(0, 0, r.base + 0x1000 + a, len, r.key));
      bench.send(traffic.data(1, 1, r.base + 0x5000 - len / 2 - 64 + a, len, r.key));
    }
    while (bench.queued() > 4) bench.cycle();
  }
  bench.drain();
  bench.at_rest();
  CHECK(bench.overflows() == 0);
}

TEST_CASE("rx: takes frames of any size back to back at 64 bytes a cycle", "[rx]") {
  for (const int len : {-1, 0, 1, 34, 35, 64, 98, 99, 256, 1024, 4096}) {  // -1: probes, 66 bytes
    CAPTURE(len);
    Stalls s;
    s.b_min = s.b_max = 400;
    Bench bench(s);
    Mix mix;
    mix.gap = 0;
    Traffic traffic(bench.model, mix, 3);
    connect_all(bench, traffic, 3, false);
    const Region r = test_regions()[1];
    const unsigned frames = len < 200 ? 2000 : 200;
    std::uint64_t beats = 0;
    for (unsigned i = 0; i < frames; ++i) {
      // One path (state comes back to itself), then many.
      const unsigned path = i < frames / 2 ? 0 : static_cast<unsigned>(traffic.rng.below(8));
      const unsigned conn = i < frames / 2 ? 0 : static_cast<unsigned>(traffic.rng.below(3));
      const wire::Frame f =
          len < 0 ? traffic.probe(conn, path)
                  : traffic.data(conn, path, traffic.rng.range(r.base, r.limit - static_cast<unsigned>(len)),
                                 static_cast<std::size_t>(len), r.key, true);
      beats += (f.size() + 63) / 64;
      bench.send(f);
    }
    const std::uint64_t start = bench.now();
    while (bench.queued() > 0) bench.cycle();
    CHECK(bench.now() - start == beats);
    bench.drain();
    bench.at_rest();
    CHECK(bench.overflows() == 0);
    if (len == 64) CHECK(bench.max_outstanding() > 64);
  }
}

TEST_CASE("rx: frames of one beat back to back are dropped and counted each", "[rx]") {
  Bench bench;
  Traffic traffic(bench.model, {}, 4);
  connect_all(bench, traffic, 1, false);
  for (int i = 0; i < 300; ++i) {
    wire::Frame f(static_cast<std::size_t>(traffic.rng.range(1, 64)));
    traffic.rng.fill(f);
    bench.send({f, traffic.rng.chance(0.3)});
    if (i % 10 == 0) bench.send(traffic.random_data(0));
  }
  bench.drain();
  bench.at_rest();
  CHECK(bench.model.drops()[static_cast<std::size_t>(Drop::SHORT)] > 150);
}

TEST_CASE("rx: each bit of the headers flipped in turn is refused, or masked and harmless (case transport 9)",
          "[rx]") {
  Bench bench;
  Mix mix;
  mix.gap = 0;
  Traffic traffic(bench.model, mix, 5);
  traffic.follow = true;
  connect_all(bench, traffic, 1, false);
  const Region r = test_regions()[1];
  std::uint64_t flips = 0;
  const auto each_bit = [&](std::size_t header, auto&& make) {
    for (std::size_t bit = 0; bit < 8 * header; ++bit) {
      wire::Frame f = make();
      f[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      bench.send(f);
      ++flips;
      while (bench.queued() > 2) bench.cycle();
      bench.run(20);  // the next PSN follows the verdict
    }
  };
  each_bit(94, [&] { return traffic.data(0, 0, r.base + 100, 4, r.key); });
  each_bit(wire::kHdrProbeBytes + 4, [&] { return traffic.probe(0, 1); });
  each_bit(wire::kHdrAckBytes + 8, [&] { return traffic.ack(0, 2, 1); });
  bench.drain();
  bench.at_rest();
  // Not covered: source MAC (48 bits); masked: UDP checksum (16), BTH byte 4 (8). All else is refused.
  CHECK(bench.model.accepted() == 3 * (48 + 16 + 8));
  CHECK(flips == 8 * (94 + 66 + 94));
}

TEST_CASE("rx: a full queue of received acks holds up neither data nor probes", "[rx]") {
  const Region r = test_regions()[1];
  // The bench takes one ack in ten cycles; three acks a data packet overrun it.
  Stalls s;
  s.ackin = Profile::Heavy;
  Bench slow(s);
  Traffic more(slow.model, {}, 7);
  connect_all(slow, more, 1, false);
  unsigned data = 0;
  for (int i = 0; i < 400; ++i) {
    for (int k = 0; k < 3; ++k) slow.send(more.ack(0, 0, 8));
    slow.send(more.data(0, 0, r.base, 20, r.key));
    ++data;
  }
  slow.drain(8000);  // 256 acks wait, one is taken in ten cycles
  slow.at_rest();
  CHECK(slow.overflows() > 100);
  CHECK(slow.model.payload_bytes() == 20 * data);
}

TEST_CASE("rx: a write that memory refuses fails its connection alone", "[rx]") {
  for (const std::uint64_t refused : {2, 3}) {
    CAPTURE(refused);
    Bench bench;
    Mix mix;
    mix.gap = 0;
    Traffic traffic(bench.model, mix, 8);
    connect_all(bench, traffic, 2, false);
    const Region r = test_regions()[1];
    bench.response_error = [refused](std::uint64_t burst) { return burst == refused; };
    // Bursts 2 and 3 belong to one packet: it crosses a page. An error in either counts as one.
    bench.send(traffic.data(0, 0, r.base, 64, r.key));
    bench.send(traffic.data(0, 0, r.base, 64, r.key));
    bench.send(traffic.data(1, 0, r.base + 0x0fc0, 128, r.key));
    bench.send(traffic.data(0, 0, r.base + 64, 64, r.key));
    bench.drain();
    bench.at_rest();
    CHECK(bench.model.drops()[static_cast<std::size_t>(Drop::MEM)] == 1);
    CHECK(bench.model.status(1) == static_cast<std::uint8_t>(wire::Err::REMOTE_MEM));
    bench.send(traffic.data(1, 0, r.base, 64, r.key));
    bench.send(traffic.data(0, 0, r.base, 64, r.key));
    bench.drain();
    bench.at_rest();
    CHECK(bench.model.drops()[static_cast<std::size_t>(Drop::STREAM)] == 1);
    // Configured anew it serves again.
    traffic.conns[1].incarnation ^= 1;
    bench.connect(1, traffic.conns[1]);
    bench.send(traffic.data(1, 0, r.base, 64, r.key));
    bench.drain();
    bench.at_rest();
    CHECK(bench.model.status(1) == 0);
  }
}

TEST_CASE("rx: a packet whose connection is configured anew while it waits for memory is not committed",
          "[rx]") {
  Stalls s;
  s.b_min = s.b_max = 400;
  for (const bool gone : {false, true}) {
    Bench bench(s);
    Traffic traffic(bench.model, {}, 9);
    connect_all(bench, traffic, 2, false);
    const Region r = test_regions()[1];
    bench.send(traffic.data(0, 0, r.base, 100, r.key));
    bench.send(traffic.data(1, 0, r.base + 200, 100, r.key));
    bench.run(60);
    REQUIRE(bench.model.waiting() == 2);
    traffic.conns[0].incarnation ^= 0x8000;
    traffic.conns[0].valid = !gone;
    bench.connect(0, traffic.conns[0]);
    bench.drain();
    bench.at_rest();
    CHECK(bench.model.drops()[static_cast<std::size_t>(gone ? Drop::CONN : Drop::INCARNATION)] == 1);
  }
}

TEST_CASE(
    "rx: a connection configured anew starts at its new PSN on every path, whatever came last (case rtl 28)",
    "[rx]") {
  Bench bench;
  Mix mix;
  mix.gap = 0;
  Traffic traffic(bench.model, mix, 12);
  traffic.follow = true;
  connect_all(bench, traffic, 1, false);
  const Region r = test_regions()[1];
  for (unsigned path = 0; path < kPathsPerPort; ++path) {
    bench.send(traffic.data(0, path, r.base, 64, r.key));  // the latest of both tables is this path
    bench.drain();
    traffic.conns[0].incarnation ^= 1;
    traffic.conns[0].rx_psn = (traffic.conns[0].rx_psn + 5000) & kPsnMask;
    bench.connect(0, traffic.conns[0]);
    bench.send(traffic.data(0, path, r.base, 64, r.key));
    bench.drain();
    bench.at_rest();
    CHECK(bench.model.accepted() == 2 * (path + 1));
  }
}

TEST_CASE("rx: an IP checksum whose sum carries twice is right (case rtl 3)", "[rx]") {
  Bench bench;
  Mix mix;
  mix.gap = 0;
  Traffic traffic(bench.model, mix, 15);
  connect_all(bench, traffic, 1, false);
  const Region r = test_regions()[1];
  unsigned twice = 0;
  while (twice < 20) {
    // Of all addresses of a source a few in a million carry twice: search one that does.
    wire::Frame f = traffic.data(0, 0, r.base, 8, r.key);
    for (bool carries = false; !carries;) {
      for (std::size_t i = 26; i < 30; ++i) f[i] = static_cast<std::uint8_t>(traffic.rng());
      std::uint32_t sum = 0;
      for (std::size_t i = 14; i < 34; i += 2) {
        if (i != 24) sum += static_cast<std::uint32_t>(f[i] << 8 | f[i + 1]);
      }
      carries = (sum & 0xffff) + (sum >> 16) > 0xffff;
    }
    wire::reseal(f);
    bench.send(f);
    ++twice;
  }
  bench.drain();
  bench.at_rest();
  CHECK(bench.model.accepted() == twice);
}

TEST_CASE("rx: a region of more than 4 GiB is guarded at its ends, not modulo 2^32 (case transport 10)",
          "[rx]") {
  Bench bench;
  Mix mix;
  mix.gap = 0;
  Traffic traffic(bench.model, mix, 16);
  traffic.follow = true;
  const std::uint64_t four_gib = std::uint64_t{1} << 32;
  const Region r{true, 0x600dca06, true, kMemoryBase - 5 * four_gib, kMemoryBase + 0x1000};
  bench.region(6, r);
  connect_all(bench, traffic, 4, false);
  const auto bounds = [&] { return bench.model.drops()[static_cast<std::size_t>(Drop::BOUNDS)]; };
  bench.send(traffic.data(0, 0, kMemoryBase, 64, r.key));
  bench.send(traffic.data(0, 0, r.limit - 64, 64, r.key));
  bench.drain();
  bench.at_rest();
  CHECK(bench.model.accepted() == 2);
  CHECK(bounds() == 0);
  unsigned conn = 1;  // a refusal fails the connection
  for (const std::uint64_t addr : {r.limit - 63, r.base - 1, kMemoryBase + four_gib}) {
    bench.send(traffic.data(conn, 0, addr, 64, r.key));
    bench.drain();
    bench.at_rest();
    CHECK(bounds() == conn++);
  }
  CHECK(bench.model.accepted() == 2);
}

TEST_CASE("rx: a smaller MTU refuses longer packets", "[rx]") {
  Bench bench;
  Traffic traffic(bench.model, {}, 10);
  connect_all(bench, traffic, 2, false);
  bench.global(8, 200);
  const Region r = test_regions()[1];
  bench.send(traffic.data(0, 0, r.base, 256, r.key));
  bench.send(traffic.data(1, 0, r.base, 257, r.key));
  bench.drain();
  bench.at_rest();
  CHECK(bench.model.drops()[static_cast<std::size_t>(Drop::MSG)] == 1);
}

TEST_CASE("rx: latencies are those of the document", "[rx]") {
  Bench bench;
  Traffic traffic(bench.model, {}, 11);
  connect_all(bench, traffic, 1, false);
  const Region r = test_regions()[1];
  // Cycles from the one with the last beat at the input until `seen`.
  const auto latency = [&](wire::Frame f, auto&& seen) {
    bench.send(std::move(f));
    while (bench.queued() != 0) bench.cycle();
    unsigned cycles = 1;
    for (; !seen(); ++cycles) bench.cycle();
    bench.drain();
    return cycles;
  };
  CHECK(latency(wire::Frame(64), [&] { return bench.b->drop_o != 0; }) == 7);
  CHECK(latency(traffic.random_data(7), [&] { return bench.b->drop_o != 0; }) == 7);  // not configured
  CHECK(latency(traffic.data(0, 0, r.base + 5, 64, r.key), [&] { return bench.b->m_axi_wvalid != 0; }) == 13);
  bench.send(traffic.data(0, 0, r.base + 5, 64, r.key));
  while (!bench.b->m_axi_bvalid) bench.cycle();
  const std::uint64_t response = bench.now();
  while (!bench.b->commit_valid_o) bench.cycle();
  CHECK(bench.now() + 1 - response == 2);
  while (!bench.b->verdict_valid_i) bench.cycle();
  const std::uint64_t verdict = bench.now();
  while (!(bench.b->ack_valid_o & 1)) bench.cycle();
  CHECK(bench.now() + 1 - verdict == 14);
  bench.drain();
  bench.at_rest();
}

TEST_CASE("rx: the checks of this bench find a receiver that lies", "[rx]") {
  for (const Lie lie :
       {Lie::Strobe, Lie::WordBit, Lie::EarlyAck, Lie::LostCommit, Lie::Verdict, Lie::HistoryBit}) {
    CAPTURE(static_cast<int>(lie));
    CHECK_THROWS_AS(random_run({}, {}, 1500, true, 20, nullptr, lie), CheckFailed);
  }
}

TEST_CASE("rx: what the core refuses is settled as lost, counted by reason and told in every ack",
          "[rx][random]") {
  // Random traffic, one packet in fifty refused; the verdicts take their time.
  std::uint64_t stream = 300;
  std::array<std::uint64_t, wire::kDropCount> drops{};
  for (const Profile p : weft::test::kProfiles) {
    CAPTURE(name_of(p));
    Stalls s;
    s.commit = s.b = p;
    s.verdict_max = 60;
    s.refuse = 0.02;
    random_run(s, {}, 600, true, stream++, &drops);
  }
  CHECK(drops[static_cast<std::size_t>(Drop::MSG)] > 10);

  Stalls s;
  s.verdict_min = s.verdict_max = 100;
  Bench bench(s);
  Mix mix;
  mix.gap = 0;
  Traffic traffic(bench.model, mix, 17);
  connect_all(bench, traffic, 2, false);
  std::vector<Ack> acks;
  std::uint64_t told = 0;
  bench.on_ack = [&](const Ack& a, std::uint64_t cycle) {
    if (acks.empty()) told = cycle;
    acks.push_back(a);
  };
  const Region r = test_regions()[1];
  bench.refuse_next = true;
  bench.send(traffic.data(0, 0, r.base, 64, r.key));
  while (!bench.b->commit_valid_o) bench.cycle();
  const std::uint64_t offered = bench.now();
  bench.drain(300);
  // No ack before the verdict, then one that does not cover the packet.
  REQUIRE(acks.size() == 1);
  CHECK(told >= offered + 100);
  CHECK(acks[0].base == traffic.conns[0].rx_psn);
  CHECK(acks[0].status == static_cast<std::uint8_t>(wire::Err::BAD_LENGTH));
  bench.send(traffic.probe(0, 0));
  bench.send(traffic.data(1, 0, r.base, 64, r.key));
  bench.drain(300);
  REQUIRE(acks.size() == 3);
  CHECK(acks[1].status == static_cast<std::uint8_t>(wire::Err::BAD_LENGTH));
  CHECK(!acks[1].hist[1]);
  CHECK(acks[2].status == 0);
  // The core's failure of a connection is told by a port that it never came to.
  bench.core_fails(1, wire::Err::BAD_LENGTH);
  bench.send(traffic.probe(1, 3));
  bench.drain(300);
  bench.at_rest();
  CHECK(acks.back().status == static_cast<std::uint8_t>(wire::Err::BAD_LENGTH));
}

TEST_CASE("rx: a semaphore that is not there is refused before anything is written", "[rx]") {
  for (const unsigned sem : {kNumSems - 1, kNumSems, 0xffffU}) {
    for (const std::size_t len : {std::size_t{0}, std::size_t{64}}) {
      CAPTURE(sem, len);
      Bench bench;
      Mix mix;
      mix.gap = 0;
      Traffic traffic(bench.model, mix, 18);
      connect_all(bench, traffic, 1, false);
      const Region r = test_regions()[1];
      wire::Frame f = traffic.data(0, 0, r.base, len, r.key);
      f[42] = static_cast<std::uint8_t>(wire::Opcode::WRITE_SIGNAL);
      f[62 + 18] = static_cast<std::uint8_t>(sem >> 8);
      f[62 + 19] = static_cast<std::uint8_t>(sem);
      wire::reseal(f);
      bench.send(f);
      bench.drain();
      bench.at_rest();
      const bool bad = sem >= kNumSems;
      CHECK(bench.model.drops()[static_cast<std::size_t>(Drop::BOUNDS)] == (bad ? 1 : 0));
      CHECK(bench.model.status(0) == (bad ? static_cast<std::uint8_t>(wire::Err::REMOTE_BOUNDS) : 0));
    }
  }
}

TEST_CASE("rx: a connection configured anew at any time: nothing of its life before is in the next",
          "[rx][random]") {
  // Traffic of two connections, memory, core and wire slow; one of them is configured at every offset, with
  // another incarnation or the same, at a start PSN that old packets are behind or just ahead of, once or
  // several times as fast as the bus can. The model knows which life every packet and ack belongs to.
  std::uint64_t late = 0, void_acks = 0, gone = 0;
  for (unsigned offset = 0; offset < 260; ++offset) {
    CAPTURE(offset);
    Stalls s;
    s.b_max = 120;
    s.verdict_max = 40;
    s.b = s.commit = offset % 3 == 0 ? Profile::Half : Profile::None;
    s.ack = offset % 4 == 0 ? Profile::Heavy : Profile::None;
    Bench bench(s, 500 + offset);
    Mix mix;
    mix.gap = 0;
    Traffic traffic(bench.model, mix, 400 + offset);
    connect_all(bench, traffic, 2, false);
    const Region r = test_regions()[1];
    const auto some = [&](unsigned frames) {
      for (unsigned i = 0; i < frames; ++i) {
        const unsigned conn = i % 3 == 2 ? 1 : 0, path = static_cast<unsigned>(traffic.rng.below(3));
        if (i % 5 == 4)
          bench.send(traffic.probe(conn, path));
        else
          bench.send(traffic.data(conn, path, r.base, traffic.rng.range(1, 300), r.key, true));
      }
    };
    some(24);
    bench.run(offset);
    for (unsigned times = 1 + offset % 3; times != 0; --times) {
      Conn& c = traffic.conns[0];
      c.valid = offset % 7 != 6 || times > 1;
      if (offset % 2 == 0) c.incarnation = static_cast<std::uint16_t>(c.incarnation + 1);
      // Old packets would be stale, or accepted.
      c.rx_psn = (c.rx_psn + (offset % 4 < 2 ? 100 : 0xffffff - 20)) & kPsnMask;
      bench.reconnect(0, c);
    }
    gone += !traffic.conns[0].valid;
    bench.run(traffic.rng.below(200));
    some(24);
    bench.drain();
    bench.at_rest();
    late += bench.model.drops()[static_cast<std::size_t>(Drop::INCARNATION)];
    void_acks += bench.acks_void();
  }
  CHECK(late > 300);
  CHECK(void_acks > 20);
  CHECK(gone > 20);
}

TEST_CASE("rx: rows written as fast as the bus can all start, whatever is being started", "[rx]") {
  for (const unsigned gap : {0U, 1U, 15U, 63U}) {
    CAPTURE(gap);
    Bench bench;
    Mix mix;
    mix.gap = 0;
    Traffic traffic(bench.model, mix, 19);
    for (unsigned round = 0; round < 2; ++round) {
      for (unsigned c = 0; c < kNumConns; ++c) {
        traffic.conns[c] = test_conn(traffic.rng, false);
        bench.reconnect(c, traffic.conns[c]);
        bench.run(gap);
      }
    }
    bench.run(kNumConns * (kPathsPerPort * 3 + 16));
    const Region r = test_regions()[1];
    for (unsigned c = 0; c < kNumConns; ++c)
      bench.send(traffic.data(c, c % kPathsPerPort, r.base, 64, r.key));
    bench.drain();
    bench.at_rest();
    CHECK(bench.model.accepted() == kNumConns);
  }
}
