// SPDX-License-Identifier: Apache-2.0
// Acks: state, never an event. Lost, late, old, of closed epochs, with blocks, with echoes that make no
// sense.
#include <map>
#include <set>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;
using wire::Drop;
using wire::Opcode;

namespace {

bool ack(const Sent& s, unsigned node) {
  return s.node == node && s.packet.opcode == Opcode::ACK;
}

/// What state() tells of the round trip at port 0: smoothed and smallest, in ns.
std::pair<unsigned, unsigned> round_trip(Net& net, std::uint32_t conn) {
  const std::string text = net.end(0).state(conn);
  std::pair<unsigned, unsigned> out{};
  REQUIRE(std::sscanf(text.c_str() + text.find("rtt "), "rtt %u ns (min %u)", &out.first, &out.second) == 2);
  return out;
}

Config one_plane(std::uint32_t paths) {
  Config c = one_path();
  c.paths = paths;
  c.rtt_init = 20 * kUs;
  return c;
}

}  // namespace

TEST_CASE("ref: any acks may be lost, the next one tells all", "[ref][acks]") {
  // The first n acks are lost, or each with a chance, or all that the first full windows of both paths could
  // bring, so that one ack tells of more than 32 packets; besides, some data is. What was lost is resent,
  // once a loss, and nothing else.
  for (unsigned n = 0; n <= 24; ++n) {
    CAPTURE(n);
    Rng rng(weft::test::seed(), n);
    Net net(one_plane(2));
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 40 * 256);
    unsigned acks = 0, lost = 0, sent = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (ack(s, 1)) f.lost = n == 24 ? s.now < 40 * kUs : n < 12 ? acks++ < n : rng.chance(0.8);
      if (s.node == 0 && s.packet.is_data() && ++sent % 7 == 3) {
        f.lost = true;
        ++lost;
      }
      return f;
    };
    w.post(3);
    REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
    REQUIRE(net.settle());
    w.check();
    CHECK(net.end(0).counters().resent == lost);
    CHECK(drops(net, 1, Drop::STALE) <= net.end(0).counters().probes_sent);
    CHECK(net.end(1).counters().data_taken == 120);
  }
}

TEST_CASE("ref: old acks change nothing, in any order", "[ref][acks]") {
  for (unsigned round = 0; round < 20; ++round) {
    CAPTURE(round);
    Rng rng(weft::test::seed(), round);
    Net net(one_plane(2));
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 256);
    bool holding = true;
    unsigned sent = 0, lost = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.held = holding && ack(s, 1);
      if (holding && s.node == 0 && s.packet.is_data() && ++sent % 9 == 4) {
        f.lost = true;
        ++lost;
      }
      return f;
    };
    w.post(60);
    net.run_for(12 * kUs);
    REQUIRE(net.held() >= 6);
    holding = false;
    // Each comes twice, in any order; from then on the exchange goes on as ever.
    while (net.held() != 0) {
      const std::size_t i = rng.below(net.held());
      net.release(i, rng.chance(0.5));
      net.run_for(1 * kNs);
    }
    REQUIRE(net.settle());
    w.check();
    CHECK(net.end(0).counters().resent == lost);
    CHECK(drops(net, 0, Drop::ACK_OLD) >= 3);
    CHECK(drops(net, 0, Drop::ACK_BAD) == 0);
  }
}

TEST_CASE("ref: acks of a path that is being closed settle nothing", "[ref][acks]") {
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 256);
  bool fences = false;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.held = ack(s, 1) && s.port == 0 && s.packet.epoch == 0;
    f.lost = !fences && s.packet.opcode == Opcode::FENCE;
    return f;
  };
  w.post(1);  // on path 0
  net.run_for(8 * kUs);
  REQUIRE(net.held() >= 1);
  REQUIRE(w.there(0));
  net.end(0).change_sport(a, 0, net.now());
  REQUIRE(net.end(0).path_state(a, 0) == PathState::kFencing);
  const auto old = drops(net, 0, Drop::ACK_OLD);
  const auto held = net.held();
  for (std::size_t i = 0; i < held; ++i) net.release(0);
  net.run_for(1 * kNs);
  CHECK(w.good == 0);
  CHECK(drops(net, 0, Drop::ACK_OLD) == old + held);
  CHECK(net.end(0).path_state(a, 0) == PathState::kFencing);
  fences = true;
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  w.check();
  CHECK(net.end(0).counters().resent == 0);
}

TEST_CASE("ref: acks carry blocks only when both ends can", "[ref][acks]") {
  for (const unsigned lacking : {0u, 1u, 2u}) {  // 2: nobody
    CAPTURE(lacking);
    const Config c = one_plane(8);
    Net net(c);
    if (lacking < 2) {
      Config less = c;
      less.caps &= ~(1u << static_cast<unsigned>(wire::Cap::BLOCKS));
      net[lacking].end.emplace(less, net.host(lacking));
      net.end(lacking).add_region(Net::kKey, Host::kBase, 1 << 20, kRemoteWrite);
    }
    const auto [a, b] = net.open(0, 1);
    unsigned blocks[2] = {0, 0};
    net.fate = [&](const Sent& s) {
      if (s.packet.opcode == Opcode::ACK) blocks[s.node] += s.packet.ack.block_count;
      return Fate{};
    };
    REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 200 * 256), 0) == wire::Err::OK);
    REQUIRE(net.end(1).post(b, 0, write_of(1, 0x80000, 0x80000, 200 * 256), 0) == wire::Err::OK);
    REQUIRE(net.settle());
    for (const unsigned n : blocks) CHECK((n != 0) == (lacking == 2));
    CHECK(net.end(0).counters().resent == 0);
  }
}

TEST_CASE("ref: an ack with blocks that nobody agreed on is no ack", "[ref][acks]") {
  Config c = one_plane(2);
  c.caps &= ~(1u << static_cast<unsigned>(wire::Cap::BLOCKS));
  Net net(c, 2, 1 << 20, false);
  const auto [a, b] = net.open(0, 1);
  (void)b;
  Writes w(net, a, 256);
  bool liar = true;
  net.forge = [&](const Sent& s, Packet& p) {
    if (!liar || !ack(s, 1)) return;
    p.ack.block_count = 1;
    p.ack.blocks[0] = {p.ack.base, 0, ~0u, static_cast<std::uint8_t>(1 - p.path), p.epoch};
  };
  w.post(8);
  net.run_for(20 * kUs);
  CHECK(w.good == 0);
  CHECK(drops(net, 0, Drop::ACK_BAD) == net.end(1).counters().acks_sent);
  liar = false;
  REQUIRE(net.settle());
  w.check();
  CHECK(net.end(0).counters().resent == 0);
}

TEST_CASE("ref: a block that tells too little settles nothing", "[ref][acks]") {
  // 40 packets of path 1 are unsettled, eight of the oldest never came. A block reaches back 32: by the base
  // alone the eight would count as delivered.
  Net net(one_plane(2), 2, 1 << 20, false);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 512);
  std::uint32_t next = 0, sent = 0;
  std::uint16_t incarnation = 0;
  std::set<std::uint64_t> lost;
  bool silent = true;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = silent && s.node == 1;
    if (s.node == 0 && s.packet.path == 1 && (s.packet.is_data() || s.packet.opcode == Opcode::PROBE)) {
      next = s.packet.psn + 1;
      if (s.packet.is_data() && silent && sent++ < 8) {
        f.lost = true;
        lost.insert(s.packet.data.va);
      }
      incarnation = s.packet.incarnation;
    }
    return f;
  };
  w.post(100);
  net.run_for(8 * kUs);
  REQUIRE(sent >= 40);
  Packet p{};
  p.opcode = Opcode::ACK;
  p.conn = a;
  p.incarnation = incarnation;
  p.path = 0;
  p.ack.base = 0;  // of path 0: old or bad, whichever; the block is judged by itself
  p.ack.hist.fill(~0u);
  p.ack.block_count = 1;
  p.ack.blocks[0] = {next & 0xffffff, 0, ~0u, 1, 0};
  const auto probes = net.end(0).counters().probes_sent;
  net.end(0).on_packet(net.now(), 0, p);
  CHECK(net.end(0).counters().delivered == 0);
  CHECK(drops(net, 0, Drop::ACK_OLD) >= 1);
  net.run_for(100 * kNs);
  CHECK(net.end(0).counters().probes_sent > probes);
  silent = false;
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  w.check();
  CHECK(net.end(0).counters().resent == lost.size());
}

TEST_CASE("ref: an ack that completes a message leaves when its place is free", "[ref][acks]") {
  // One-packet messages on paths of very different delay, the window of messages full all the time: as soon
  // as an ack tells the oldest delivered, its sender uses the place of it.
  Config c = one_plane(4);
  c.rtt_init = 60 * kUs;
  Net net(c);
  const std::uint32_t a = net.open(0, 1).first;
  unsigned ahead = 0;
  std::uint16_t acted = 0;
  net.host(1).on_signal = [&](std::uint16_t, std::uint32_t amount) {
    CHECK(amount == acted);
    ++acted;
  };
  net.fate = [&](const Sent& s) {
    Fate f;
    f.late = s.node == 0 ? Ps{s.packet.path} * 5 * kUs : 0;
    if (s.node == 0 && s.packet.is_data())
      ahead = std::max<unsigned>(ahead, static_cast<std::uint16_t>(s.packet.data.msg_no - acted));
    return f;
  };
  for (unsigned i = 0; i < 2000; ++i) {
    WorkRequest w = write_of(i, 0, (i % 256) * 64, 8);
    w.op = WrOp::kWriteSignal;
    w.value = i;
    REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  }
  REQUIRE(net.settle());
  CHECK(acted == 2000);
  CHECK(ahead == 63);  // the window was used to its end and never beyond what the receiver had freed
  CHECK(drops(net, 1, Drop::MSG) == 0);
  CHECK(net.completions(0) == 2000);
}

TEST_CASE("ref: repeated and future echoes make no round-trip sample", "[ref][acks]") {
  Net net(one_path(), 2, 1 << 20, false);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 2048);
  std::optional<Packet> last;
  net.fate = [&](const Sent& s) {
    if (ack(s, 1)) last = s.packet;
    return Fate{};
  };
  w.post(4);
  REQUIRE(net.settle());
  net.run_for(50 * kUs);
  const auto before = round_trip(net, a);
  CHECK(before.second >= 4000);
  CHECK(before.first < 10000);
  REQUIRE(last);
  // The last ack again, a long time later; then with other echoes, also of clocks to come.
  net.run_for(1 * kMs);
  const auto now_ns = static_cast<std::uint32_t>(net.now() / kNs);
  Packet p = *last;
  for (const std::uint32_t echo : {p.ack.echo, now_ns - 1, now_ns, now_ns + 1, now_ns + 1000000}) {
    p.ack.echo = echo;
    net.end(0).on_packet(net.now(), 0, p);
    CHECK(round_trip(net, a) == before);
  }
  // It settles, but its echo lies ahead: as a whole it is not believed.
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.node == 1;
    return f;
  };
  w.post(1);
  net.run_for(4 * kUs);
  p.ack.base = (p.ack.base + 1) & 0xffffff;
  p.ack.echo = static_cast<std::uint32_t>(net.now() / kNs) + 1;
  const auto bad = drops(net, 0, Drop::ACK_BAD);
  const auto delivered = net.end(0).counters().delivered;
  net.end(0).on_packet(net.now(), 0, p);
  CHECK(drops(net, 0, Drop::ACK_BAD) == bad + 1);
  CHECK(net.end(0).counters().delivered == delivered);
  CHECK(round_trip(net, a) == before);
  p.ack.echo -= 1;  // now: that may be
  net.end(0).on_packet(net.now(), 0, p);
  CHECK(net.end(0).counters().delivered == delivered + 1);
  net.fate = nullptr;
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  w.check();
}

TEST_CASE("ref: an ack echoes the packet that it answers after a pause of any length", "[ref][acks]") {
  // After more than half of a clock the next packet in order looks older than the one before.
  for (const Ps pause : {1 * kUs, 1000 * kMs, 2200 * kMs, 3000 * kMs, 4290 * kMs, 5000 * kMs}) {
    CAPTURE(pause);
    Net net(one_path());
    const auto [a, b] = net.open(0, 1);
    (void)b;
    Writes w(net, a, 64);
    std::set<std::uint32_t> clocks;
    bool known = true;
    net.fate = [&](const Sent& s) {
      if (s.node == 0) clocks.insert(s.packet.timestamp);
      if (ack(s, 1)) known &= clocks.count(s.packet.ack.echo) == 1;
      return Fate{};
    };
    w.post();
    REQUIRE(net.settle());
    net.run_for(pause);
    clocks.clear();
    w.post();
    REQUIRE(net.settle());
    w.check();
    CHECK(known);
  }
}
