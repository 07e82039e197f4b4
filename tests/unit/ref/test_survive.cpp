// SPDX-License-Identifier: Apache-2.0
// What the protocol has to survive: lost acks, any fate of any one packet, numbers that wrap, fences without
// answers, planes that go and return, and peers that lie.
#include <set>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;
using wire::Drop;
using wire::Opcode;

TEST_CASE("ref: every ack lost for ten round trips resends nothing (case transport 21)", "[ref][survive]") {
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 64 * 256);
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.packet.opcode == Opcode::ACK && s.now > 10 * kUs && s.now < 10 * kUs + 50 * kUs;
    return f;
  };
  w.post(40);
  REQUIRE(net.run_until([&] { return w.done(); }, 2 * kMs));
  w.check();
  CHECK(net.now() > 60 * kUs);
  CHECK(net.end(0).counters().resent == 0);
  CHECK(net.end(0).counters().fences_sent == 0);
}

TEST_CASE("ref: any one packet lost, doubled, late or corrupt costs no byte, with a failover under way",
          "[ref][survive]") {
  // One message of 20 packets, and plane 1 dies under it. Every packet of the run in turn gets every fate;
  // late means beyond the failover.
  enum What { kNothing, kLost, kTwice, kLate, kCorrupt, kWhats };
  const auto run = [](unsigned number, What what) {
    Net net(two_paths(), 2, 1 << 14);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 20 * 256);
    unsigned sent = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (sent++ == number) {
        f.lost = what == kLost;
        f.corrupt = what == kCorrupt;
        if (what == kLate) f.late = 500 * kUs;
        if (what == kTwice) {
          f.copies = 1;
          f.copy_late = 500 * kUs;
        }
      }
      if (s.port == 1 && s.now > 1 * kUs && s.now < 300 * kUs) f.lost = true;
      return f;
    };
    w.post();
    INFO("packet " << number << ", fate " << what);
    REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
    CHECK(net.end(0).counters().path_failed >= 1);
    net.run_for(1 * kMs);
    REQUIRE(net.settle());
    CHECK(net.end(0).in_use() + net.end(1).in_use() == 0);
    w.check();
    return sent;
  };
  const unsigned packets = run(0, kNothing);
  REQUIRE(packets > 40);
  for (unsigned i = 0; i < packets; ++i)
    for (int what = kLost; what < kWhats; ++what) run(i, static_cast<What>(what));
}

TEST_CASE("ref: PSNs wrap in data, probes, acks and fences (case transport 6, case transport 7)",
          "[ref][survive]") {
  // The first PSN lies so far below 2^24 that the wrap meets data, tail, probes or the failover; one is
  // given with more than 24 bits.
  for (const std::uint32_t below : {1u, 2u, 3u, 8u, 20u, 60u, 250u}) {
    for (const std::uint32_t above : {0u, 0x1000000u}) {
      CAPTURE(below, above);
      Net net(two_paths());
      const std::uint32_t a = net.open(0, 1, 0x1000000u - below + above).first;
      Writes w(net, a, 4 * 256);
      Rng rng(weft::test::seed(), below);
      net.fate = [&](const Sent& s) {
        Fate f;
        f.lost = rng.chance(0.1) || (s.port == 1 && s.now > 8 * kUs && s.now < 500 * kUs);
        return f;
      };
      w.post(100);
      REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
      REQUIRE(net.settle());
      w.check();
      // Nothing is taken for lost that is not: each loss costs its resend, and a fence what was under way.
      CHECK(net.end(0).counters().resent <= net.lost);
    }
  }
}

TEST_CASE("ref: clocks that wrap, under way and after a pause of any length (case transport 7)",
          "[ref][survive]") {
  // The packets' clocks count nanoseconds in 32 bits: they wrap after 4.3 s and change sign after 2.1 s.
  constexpr Ps kWrap = (std::int64_t{1} << 32) * kNs;
  for (const Ps start : {Ps{0}, kWrap - 30 * kUs, kWrap / 2 - 30 * kUs}) {
    for (const Ps pause : {1000 * kMs, 2200 * kMs, 3000 * kMs, 4200 * kMs, 5000 * kMs, 10'000 * kMs}) {
      CAPTURE(start / kUs, pause / kMs);
      Net net(two_paths());
      net.start_at(start);
      const std::uint32_t a = net.open(0, 1).first;
      Writes w(net, a, 8 * 256);
      Rng rng(weft::test::seed(), 9);
      net.fate = [&](const Sent&) {
        Fate f;
        f.lost = rng.chance(0.05);
        return f;
      };
      w.post(60);
      REQUIRE(net.run_until([&] { return w.done(); }, 3 * kMs));
      net.run_for(pause);
      // First everything is late alike: no evidence, so no path may fail.
      const auto fences = net.end(0).counters().fences_sent;
      const Ps again = net.now();
      net.fate = [&](const Sent& s) {
        Fate f;
        f.lost = s.now < again + 300 * kUs;
        return f;
      };
      w.post(20);
      REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
      CHECK(net.end(0).counters().fences_sent == fences);
      // Then a plane dies, and that must be noticed.
      net.run_for(pause);
      const Ps dead = net.now();
      net.fate = [&](const Sent& s) {
        Fate f;
        f.lost = s.port == 1 && s.now >= dead;
        return f;
      };
      w.post(20);
      const bool all = net.run_until([&] { return w.done(); }, 3 * kMs);
      INFO(net.end(0).state(a));
      REQUIRE(all);
      CHECK(net.end(0).counters().fences_sent > fences);
      w.check();
    }
  }
}

TEST_CASE("ref: epochs wrap more than twice", "[ref][survive]") {
  // 600 changes of a path's source port, slower than the life of a packet allows for, with loss, copies and
  // traffic: 0 follows 255.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 4 * 256);
  std::set<unsigned> epochs;
  Rng rng(weft::test::seed(), 4);
  net.fate = [&](const Sent& s) {
    if (s.packet.path == 0 && s.packet.opcode == Opcode::FENCE_ANSWER) epochs.insert(s.packet.epoch);
    Fate f;
    f.lost = rng.chance(0.02);
    f.copies = rng.chance(0.05) ? 1 : 0;
    f.copy_late = static_cast<Ps>(rng.below(300 * kUs));
    return f;
  };
  for (unsigned i = 0; i < 600; ++i) {
    if (net.end(0).path_state(a, 0) != PathState::kFencing) net.end(0).change_sport(a, 0, net.now());
    if (w.posted < 1000 && w.posted - w.good < 4) w.post();
    net.run_for(60 * kUs);
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 100 * kMs));
  CHECK(epochs.size() == 256);
  w.check();
}

TEST_CASE("ref: fences and their answers may be lost", "[ref][survive]") {
  for (const Opcode lost : {Opcode::FENCE, Opcode::FENCE_ANSWER}) {
    Net net(two_paths());
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 16 * 256);
    unsigned count = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = (s.packet.opcode == lost && ++count <= 7) || (s.port == 1 && s.now > 3 * kUs);
      return f;
    };
    w.post(16);
    REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
    CHECK(count >= 8);
    w.check();
  }
}

TEST_CASE("ref: all planes down for 1 ms, 1 s and for ever (case transport 17)", "[ref][survive]") {
  for (const Ps down : {1 * kMs, 1000 * kMs, kNever}) {
    CAPTURE(down / kMs);
    Config c = two_paths();
    c.tuning.give_up = 3000 * kMs;
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 16 * 256);
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = s.now > 10 * kUs && s.now - 10 * kUs < down;
      return f;
    };
    w.post(60);
    if (down == kNever) {
      REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 9000 * kMs));
      CHECK(net.now() > 2900 * kMs);  // not before it has given up
      net.run_for(1000 * kMs);
      CHECK(net.completions(0) == 60);
      CHECK(net.completions(0, Completed::kConnection) == 1);
      CHECK(net.end(0).in_use() == 0);
      continue;
    }
    net.run_until([] { return false; }, 10 * kUs + down);
    const auto taken = net.end(1).counters().data_taken;
    CHECK(net.run_until([&] { return net.end(1).counters().data_taken > taken; }, 200 * kUs));
    REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
    w.check();
  }
}

namespace {

/// A real connection and the means to speak in B's name: what a peer that lies can say.
struct Liar {
  Liar() : net(config(), 2), writes(net, (open(), conn), 16 * 256) {
    net.fate = [this](const Sent& s) {
      if (s.node == 1 && s.packet.opcode == Opcode::ACK) ack = s.packet;
      if (s.node == 0 && s.packet.is_data()) sent = s.packet;
      return Fate{};
    };
    writes.post(20);
    net.run_for(12 * kUs);
  }
  static Config config() {
    Config c = two_paths();
    c.tuning.give_up = 20 * kMs;
    return c;
  }
  void open() {
    const auto [a, b] = net.open(0, 1);
    conn = a;
    other = b;
  }
  void say(Packet p) {
    p.conn = conn;
    p.timestamp = static_cast<std::uint32_t>(net.now() / kNs);
    net.end(0).on_packet(net.now(), p.path, p);
  }
  /// A data packet of B's, next in the sequence of its path as nothing came yet of B.
  Packet data_of(Opcode op) {
    Packet p = sent;
    p.opcode = op;
    p.path = 0;
    p.epoch = 0;
    p.payload = nullptr;
    p.payload_bytes = 0;
    p.data = {};
    return p;
  }
  std::uint64_t drop(Drop why) { return drops(net, 0, why); }
  void still_works() {
    REQUIRE(net.run_until([&] { return writes.done(); }, 20 * kMs));
    REQUIRE(net.settle());
    writes.check();
  }
  std::uint32_t conn = 0, other = 0;
  Packet ack{}, sent{};
  Net net;
  Writes writes;
};

}  // namespace

TEST_CASE("ref: acks that lie are counted and settle nothing", "[ref][lies]") {
  SECTION("of what was never sent") {
    Liar l;
    for (const std::uint32_t far : {300u, 0x10000u, 0x7fff00u}) {
      Packet p = l.ack;
      p.ack.base = (p.ack.base + far) & 0xffffff;
      p.ack.hist.fill(~0u);
      l.say(p);
      p.opcode = Opcode::FENCE_ANSWER;
      l.say(p);
    }
    CHECK(l.drop(Drop::ACK_BAD) == 6);
    Packet p = l.ack;
    p.opcode = Opcode::FENCE_ANSWER;  // of less than it has acked
    p.ack.base = (p.ack.base - 200) & 0xffffff;
    l.say(p);
    CHECK(l.drop(Drop::ACK_BAD) == 7);
    l.still_works();
    CHECK(l.net.end(0).counters().resent == 0);
  }
  SECTION("of another epoch") {
    Liar l;
    const auto old = l.drop(Drop::ACK_OLD);
    for (const unsigned epoch : {1u, 2u, 128u, 255u}) {
      Packet p = l.ack;
      p.epoch = static_cast<std::uint8_t>(epoch);
      l.say(p);
      p.opcode = Opcode::FENCE_ANSWER;
      l.say(p);
    }
    CHECK(l.drop(Drop::ACK_OLD) == old + 8);
    l.still_works();
  }
  SECTION("against what they said before") {
    Liar l;
    const auto resent = l.net.end(0).counters().resent;
    Packet p = l.ack;
    p.ack.hist.fill(0);
    p.ack.hist_words = 8;
    for (int i = 0; i < 5; ++i) {
      p.ack.base = (l.ack.ack.base - static_cast<std::uint32_t>(i)) & 0xffffff;
      l.say(p);
    }
    l.still_works();
    CHECK(l.net.end(0).counters().resent == resent);
  }
  SECTION("of a path or connection that is not there") {
    Liar l;
    Packet p = l.ack;
    p.path = 2;
    l.net.end(0).on_packet(l.net.now(), 0, p);
    CHECK(l.drop(Drop::PATH) == 1);
    p = l.ack;
    p.conn = 77;
    l.net.end(0).on_packet(l.net.now(), 0, p);
    CHECK(l.drop(Drop::CONN) == 1);
    p = l.ack;
    p.ack.block_count = wire::kMaxAckBlocks;
    for (unsigned i = 0; i < wire::kMaxAckBlocks; ++i)
      p.ack.blocks[i] = {0, 0, 0, static_cast<std::uint8_t>(200 + i), 0};
    l.say(p);
    CHECK(l.drop(Drop::ACK_BAD) == wire::kMaxAckBlocks);
    l.still_works();
  }
}

TEST_CASE("ref: shares, counters and credits that lie are bounded", "[ref][lies]") {
  enum Lie { kNoShare, kTenLines, kAllMarked, kBackwards, kCreditsBack };
  for (const Lie lie : {kNoShare, kTenLines, kAllMarked, kBackwards, kCreditsBack}) {
    CAPTURE(lie);
    Net net(two_paths());
    net.bytes = false;
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 16 * 256);
    // The network is the liar's: it changes what B's acks say.
    net.forge = [&](const Sent& s, Packet& p) {
      if (s.node != 1 || p.opcode != Opcode::ACK) return;
      switch (lie) {
        case kNoShare: p.ack.share = 0; break;
        case kTenLines: p.ack.share = 0xffffffff; break;
        case kAllMarked: p.ack.ce_bytes = p.ack.rx_bytes + 0x100000; break;
        case kBackwards: p.ack.ce_bytes = 0u - p.ack.rx_bytes; break;
        case kCreditsBack: p.ack.credits = static_cast<std::uint16_t>(0u - p.ack.base); break;
      }
    };
    w.post(40);
    const bool all = net.run_until([&] { return w.done(); }, 2000 * kMs);
    INFO(net.end(0).state(a));
    REQUIRE(all);
    w.check();
    const Counters& n = net.end(0).counters();
    if (lie == kNoShare || lie == kTenLines) CHECK(n.refused_share > 0);
    if (lie == kAllMarked || lie == kBackwards) CHECK(n.refused_counters > 0);
    for (unsigned p = 0; p < 2; ++p) CHECK(net.end(0).share_of_line(a, p) <= 1.0);
  }
}

TEST_CASE("ref: messages nobody asked for are counted and change nothing", "[ref][lies]") {
  Liar l;
  const auto memory = l.net.host(0).memory;
  // B posts one WRITE so that A has seen a PSN of B's path 0.
  Packet real{};
  l.net.fate = [&](const Sent& s) {
    if (s.node == 1 && s.port == 0 && (s.packet.is_data() || s.packet.opcode == Opcode::PROBE))
      real = s.packet;
    return Fate{};
  };
  REQUIRE(l.net.end(1).post(l.other, 0, write_of(1, 0, 0x40000, 8), l.net.now()) == wire::Err::OK);
  l.net.run_for(20 * kUs);
  REQUIRE(real.conn == l.conn);
  std::uint32_t psn = real.psn;
  const auto say = [&](Opcode op, std::uint16_t stream, std::uint16_t msg_no, std::uint32_t value,
                       std::uint32_t rkey = Net::kKey) {
    Packet p = l.data_of(op);
    p.incarnation = real.incarnation;
    p.psn = ++psn & 0xffffff;
    p.data.stream = stream;
    p.data.msg_no = msg_no;
    p.data.value = value;
    p.data.rkey = rkey;
    p.data.va = Host::kBase;
    p.data.msg_len = 4;
    static const std::uint8_t bytes[4] = {0xde, 0xad, 0xbe, 0xef};
    p.payload = bytes;
    p.payload_bytes = op == Opcode::STREAM_ERROR || op == Opcode::CREDIT ? 0 : 4;
    if (p.payload_bytes == 0) {
      p.payload = nullptr;
      p.data.msg_len = 0;
    }
    l.say(p);
  };
  const auto msg = l.drop(Drop::MSG);
  say(Opcode::READ_DATA, 0, 3, 0);     // nobody asked
  say(Opcode::ATOMIC_REPLY, 1, 0, 0);  // nobody asked
  CHECK(l.drop(Drop::MSG) == msg + 2);
  say(Opcode::STREAM_ERROR, 0, 5000, 7);    // of a message that never was
  say(Opcode::STREAM_ERROR, 0, 3, 0);       // without an error
  say(Opcode::STREAM_ERROR, 0, 3, 0x1234);  // with one that is none
  CHECK(l.drop(Drop::MSG) == msg + 4);
  say(Opcode::WRITE, 0, 40000, 0);  // far outside of the window of messages
  CHECK(l.drop(Drop::MSG) == msg + 5);
  say(Opcode::WRITE, 777, 0, 0);  // no such stream
  CHECK(l.drop(Drop::STREAM) == 1);
  say(Opcode::CREDIT, 0, 0, 0x8000);
  CHECK(std::equal(memory.begin(), memory.begin() + 0x10000, l.net.host(0).memory.begin()));
  l.still_works();
}

TEST_CASE("ref: a peer that lies at random never breaks anything", "[ref][lies]") {
  // Node 0 talks to an honest node 2 while everything plausible comes in the name of node 1: packets of the
  // real ones with fields changed. The honest connection does not notice, and what node 0 asked of the liar
  // completes once each.
  Config c = two_paths();
  c.tuning.give_up = 5 * kMs;
  Net net(c, 3);
  net.bytes = false;
  const auto [a, b] = net.open(0, 1);
  const auto [good, g2] = net.open(0, 2);
  (void)b;
  (void)g2;
  Rng rng(weft::test::seed(), 12);
  std::vector<Packet> seen;
  std::vector<std::uint8_t> bytes(4096, 0xee);
  net.fate = [&](const Sent& s) {
    if (s.node == 1) {
      if (seen.size() < 64)
        seen.push_back(s.packet);
      else
        seen[rng.below(64)] = s.packet;
    }
    return Fate{};
  };
  std::set<std::uint64_t> told;
  unsigned twice = 0, honest = 0, bad_honest = 0;
  net.host(0).on_done = [&](const Completion& d) {
    if (d.what != Completed::kRequest) return;
    if (d.conn == good) {
      ++honest;
      bad_honest += d.status != wire::Err::OK ? 1 : 0;
    } else if (!told.insert(d.id).second) {
      ++twice;
    }
  };
  unsigned posted = 0, posted_honest = 0;
  unsigned life = 0;
  std::uint32_t conn = a;
  for (unsigned i = 0; i < 100'000; ++i) {
    if (i % 16 == 0) net.run_for(static_cast<Ps>(rng.below(3 * kUs)));
    if (i % 64 == 0) {
      WorkRequest w = write_of(posted, 0x80000, 0x10000 + rng.below(8) * 4096, 3000);
      w.op = static_cast<WrOp>(rng.below(8));
      if (net.end(0).post(conn, static_cast<std::uint16_t>(rng.below(2)), w, net.now()) == wire::Err::OK)
        ++posted;
      if (net.end(0).post(good, 0, write_of(i, 0x80000, 0x20000, 1000), net.now()) == wire::Err::OK)
        ++posted_honest;
    }
    if (i % 5000 == 4999) {  // a stream or the connection may have failed: another one
      net.end(0).close(conn, net.now());
      net.end(1).close(conn == a ? b : 0, net.now());
      conn = net.open(0, 1).first;
      seen.clear();
      ++life;
    }
    if (seen.empty()) continue;
    Packet p = seen[rng.below(seen.size())];
    p.peer = 0;
    p.conn = conn;
    const auto near = [&](std::uint32_t x) {
      return rng.chance(0.3) ? static_cast<std::uint32_t>(rng())
                             : x + static_cast<std::uint32_t>(rng.below(9)) - 4;
    };
    if (rng.chance(0.3)) p.path = static_cast<std::uint8_t>(rng.below(3));
    if (rng.chance(0.2)) p.epoch = static_cast<std::uint8_t>(near(p.epoch));
    if (rng.chance(0.1)) p.timestamp = near(p.timestamp);
    p.ce = rng.chance(0.2);
    if (rng.chance(0.4)) {
      constexpr Opcode kOps[] = {Opcode::SEND,         Opcode::SEND_IMM,     Opcode::WRITE,
                                 Opcode::WRITE_IMM,    Opcode::WRITE_SIGNAL, Opcode::READ,
                                 Opcode::FETCH_ADD,    Opcode::COMPARE_SWAP, Opcode::READ_DATA,
                                 Opcode::ATOMIC_REPLY, Opcode::STREAM_ERROR, Opcode::CREDIT};
      if (!p.is_data()) p.data = {};
      p.opcode = kOps[rng.below(std::size(kOps))];
      p.psn = (p.psn + static_cast<std::uint32_t>(rng.below(40))) & 0xffffff;
      p.payload_bytes = static_cast<std::uint16_t>(rng.chance(0.3) ? rng.below(4097) : rng.below(300));
      p.data.va = rng.chance(0.5) ? Host::kBase + 0x10000 + rng.below(0x8000) : rng();
      p.data.rkey = rng.chance(0.8) ? Net::kKey : near(0);
      p.data.msg_len = rng.chance(0.5) ? p.payload_bytes : near(p.payload_bytes);
      p.data.msg_no = static_cast<std::uint16_t>(rng.chance(0.9) ? rng.below(70) : rng());
      p.data.stream = static_cast<std::uint16_t>(rng.below(4));
      p.data.value = near(7);
      p.data.sem = static_cast<std::uint16_t>(rng.below(100));
    } else if (p.is_data()) {
      p.psn = near(p.psn) & 0xffffff;
    } else if (p.is_ack()) {
      if (rng.chance(0.2)) p.opcode = Opcode::FENCE_ANSWER;
      p.ack.base = (p.ack.base + static_cast<std::uint32_t>(rng.below(6))) & 0xffffff;
      if (rng.chance(0.3)) p.ack.base = near(p.ack.base) & 0xffffff;
      if (rng.chance(0.3)) p.ack.hist[rng.below(8)] = static_cast<std::uint32_t>(rng());
      if (rng.chance(0.3)) p.ack.ce_bytes = near(p.ack.ce_bytes);
      if (rng.chance(0.3)) p.ack.share = static_cast<std::uint32_t>(rng());
      if (rng.chance(0.3)) p.ack.credits = static_cast<std::uint16_t>(near(p.ack.credits));
      if (rng.chance(0.3)) p.ack.echo = near(p.ack.echo);
      if (rng.chance(0.2)) p.ack.stream = static_cast<std::uint16_t>(rng.below(4));
      if (rng.chance(0.2)) {
        p.ack.block_count = static_cast<std::uint8_t>(rng.below(wire::kMaxAckBlocks + 1));
        for (unsigned k = 0; k < p.ack.block_count; ++k)
          p.ack.blocks[k] = {near(p.ack.base) & 0xffffff, 0, static_cast<std::uint32_t>(rng()),
                             static_cast<std::uint8_t>(rng.below(3)), p.epoch};
      }
    } else if (rng.chance(0.1)) {
      p.opcode = Opcode::FENCE;
      p.psn = near(p.psn) & 0xffffff;
    }
    p.payload = p.is_data() && p.payload_bytes != 0 ? bytes.data() : nullptr;
    net.end(0).on_packet(net.now(), p.path % 2, p);
  }
  net.end(0).close(conn, net.now());
  REQUIRE(net.run_until([&] { return honest == posted_honest; }, 500 * kMs));
  CHECK(life >= 19);
  CHECK(bad_honest == 0);
  CHECK(twice == 0);
  CHECK(told.size() == posted);
  CHECK(posted > 200);
}

TEST_CASE("ref: bytes of state a connection stay what they are", "[ref][size]") {
  // rtl.md budgets 48 + 48 bytes a path, 64 a connection and 32 a stream in hardware. The endpoint keeps
  // what a program wants besides (vectors, lists). The limits are what it takes today: growth fails here, and
  // whoever means it raises the figure.
  const auto bytes = [](unsigned ports, unsigned paths, unsigned streams) {
    Config c;
    c.ports = ports;
    c.paths = paths;
    c.streams = streams;
    Net net(c, 2, 64);
    net.open(0, 1);
    return net.end(0).bytes_per_connection();
  };
  const std::size_t path = (bytes(1, 64, 1) - bytes(1, 32, 1)) / 32;
  const std::size_t stream = bytes(1, 1, 2) - bytes(1, 1, 1);
  const std::size_t port = bytes(2, 1, 1) - bytes(1, 1, 1) - path;
  const std::size_t rest = bytes(1, 1, 1) - path - 2 * stream - port;
  WARN("bytes (budget of the hardware): path " << path << " (96), stream " << stream << " (32), port " << port
                                               << ", connection " << rest << " (64)");
  CHECK(path <= 112);
  CHECK(stream <= 96);
  CHECK(port <= 102);
  CHECK(rest <= 344);
}
