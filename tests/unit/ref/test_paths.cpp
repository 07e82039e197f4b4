// SPDX-License-Identifier: Apache-2.0
// Paths: their PSNs, source ports and marks, probes and evidence, fences, and connections that nobody
// answers.
#include <map>
#include <set>
#include <tuple>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;
using wire::Drop;
using wire::Err;
using wire::Opcode;

namespace {

bool data(const Sent& s, unsigned node, unsigned path) {
  return s.node == node && s.packet.is_data() && s.packet.path == path;
}
bool probe(const Sent& s, unsigned node, unsigned path) {
  return s.node == node && s.packet.opcode == Opcode::PROBE && s.packet.path == path;
}

/// Four paths, two in each of two planes.
Config four_paths() {
  Config c = two_paths();
  c.paths = 2;
  c.rtt_init = 20 * kUs;
  return c;
}

}  // namespace

TEST_CASE("ref: a fence and its answer are taken at any port, other packets at their own", "[ref][paths]") {
  Net net(two_paths(), 2, 1 << 16, false);
  const auto [a, b] = net.open(0, 1);
  std::map<Opcode, Packet> seen;  // of path 0
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.packet.path == 0) {
      seen.emplace(s.packet.opcode, s.packet);
      f.lost = s.packet.opcode == Opcode::FENCE || s.packet.opcode == Opcode::PROBE || s.packet.is_data() ||
               s.packet.opcode == Opcode::ACK;
    }
    return f;
  };
  REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 0), 0) == Err::OK);
  net.run_for(10 * kUs);
  net.end(0).change_sport(a, 0, net.now());
  net.run_for(100 * kNs);
  for (const Opcode op : {Opcode::WRITE, Opcode::PROBE, Opcode::FENCE}) REQUIRE(seen.count(op) == 1);
  // At the other port: data and probe are not its own.
  net.end(1).on_packet(net.now(), 1, seen[Opcode::WRITE]);
  net.end(1).on_packet(net.now(), 1, seen[Opcode::PROBE]);
  CHECK(drops(net, 1, Drop::PATH) == 2);
  CHECK(net.end(1).counters().data_taken + net.end(1).counters().probes_taken == 0);
  net.end(1).on_packet(net.now(), 0, seen[Opcode::WRITE]);
  CHECK(net.end(1).counters().data_taken == 1);
  // A fence comes at both, and is answered where it came.
  for (const unsigned port : {1u, 0u}) {
    std::optional<unsigned> answered;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (s.packet.opcode == Opcode::FENCE_ANSWER) answered = s.port;
      if (s.packet.opcode == Opcode::FENCE_ANSWER) seen[Opcode::FENCE_ANSWER] = s.packet;
      f.lost = s.packet.path == 0;
      return f;
    };
    net.end(1).on_packet(net.now(), port, seen[Opcode::FENCE]);
    net.run_for(100 * kNs);
    REQUIRE(answered);
    CHECK(*answered == port);
  }
  // So does the answer; an ack does not.
  CHECK(net.completions(0) == 0);
  Packet ack = seen[Opcode::FENCE_ANSWER];
  ack.opcode = Opcode::ACK;
  net.end(0).on_packet(net.now(), 1, ack);
  CHECK(drops(net, 0, Drop::PATH) == 1);
  net.end(0).on_packet(net.now(), 1, seen[Opcode::FENCE_ANSWER]);
  CHECK(net.completions(0) == 1);
  (void)b;
}

TEST_CASE("ref: a path keeps its source port for a whole epoch, probes use it too", "[ref][paths]") {
  Net net(four_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 20 * 256);
  std::map<std::pair<unsigned, unsigned>, std::set<std::uint16_t>> ports;  // by path and epoch
  std::map<std::pair<unsigned, unsigned>, unsigned> probes;
  Rng rng;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = rng.chance(0.05);
    if (s.node != 0 || !(s.packet.is_data() || s.packet.opcode == Opcode::PROBE)) return f;
    ports[{s.packet.path, s.packet.epoch}].insert(s.packet.sport);
    probes[{s.packet.path, s.packet.epoch}] += s.packet.opcode == Opcode::PROBE ? 1 : 0;
    return f;
  };
  for (unsigned i = 0; i < 40; ++i) {
    w.post();
    net.run_for(20 * kUs);
    if (i % 5 == 4) net.end(0).change_sport(a, i / 5 % 4, net.now());
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  w.check();
  std::set<std::uint16_t> first;
  unsigned changes = 0;
  for (const auto& [key, set] : ports) {
    CAPTURE(key.first, key.second);
    CHECK(set.size() == 1);
    CHECK(*set.begin() >= 0xc000);
    CHECK(probes[key] >= 1);
    if (key.second == 0) first.insert(*set.begin());
    const auto before = ports.find({key.first, key.second - 1});
    if (before != ports.end()) changes += *before->second.begin() != *set.begin() ? 1 : 0;
  }
  CHECK(first.size() == 4);
  CHECK(changes >= 4);
}

TEST_CASE("ref: data leaves as ECT and everything else does not, marks count on data only", "[ref][paths]") {
  // What leaves: the ECN field of the frame.
  std::uint8_t frame[wire::kMaxFrameBytes];
  std::uint8_t bytes[8] = {};
  for (const Opcode op : {Opcode::SEND, Opcode::SEND_IMM, Opcode::WRITE, Opcode::WRITE_IMM,
                          Opcode::WRITE_SIGNAL, Opcode::READ_DATA, Opcode::ATOMIC_REPLY, Opcode::STREAM_ERROR,
                          Opcode::CREDIT, Opcode::ACK, Opcode::PROBE, Opcode::FENCE, Opcode::FENCE_ANSWER}) {
    Packet p{};
    p.opcode = op;
    if (p.is_data() && op != Opcode::STREAM_ERROR && op != Opcode::CREDIT) {
      p.payload = bytes;
      p.payload_bytes = sizeof bytes;
    }
    encode(frame, wire::Route{}, p);
    CAPTURE(wire::name(op));
    CHECK((frame[15] & 3) == (p.is_data() ? 2 : 0));  // the TOS byte behind 14 bytes of Ethernet
  }
  // What counts: every packet comes with a mark; the counters have the bytes of the data.
  Net net(one_path(), 2, 1 << 16, false);
  const std::uint32_t a = net.open(0, 1).first;
  std::uint32_t ce = 0, all = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.ce = true;
    if (s.node == 1 && s.packet.opcode == Opcode::ACK) {
      ce = s.packet.ack.ce_bytes;
      all = s.packet.ack.rx_bytes;
    }
    return f;
  };
  REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 10 * 256), 0) == Err::OK);
  REQUIRE(net.settle());
  CHECK(net.end(0).counters().probes_sent >= 1);
  CHECK(ce == 10 * (256 + wire::kWinOverhead));
  CHECK(all == ce);
}

TEST_CASE("ref: no PSN is used twice in an epoch, whatever is lost", "[ref][paths]") {
  for (const double loss : {0.0, 0.05, 0.4}) {
    CAPTURE(loss);
    Net net(four_paths());
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 24 * 256);
    Rng rng;
    std::map<std::tuple<unsigned, unsigned>, std::map<std::uint32_t, std::pair<bool, unsigned>>> used;
    unsigned twice = 0, skipped = 0;
    std::map<std::tuple<unsigned, unsigned>, std::uint32_t> last;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = rng.chance(loss);
      const bool is_data = s.packet.is_data();
      if (s.node != 0 || !(is_data || s.packet.opcode == Opcode::PROBE)) return f;
      const auto key = std::tuple{unsigned{s.packet.path}, unsigned{s.packet.epoch}};
      const auto [it, fresh] = used[key].try_emplace(s.packet.psn, is_data, 1);
      if (!fresh && (is_data || it->second.first)) ++twice;  // only a probe comes again
      if (fresh && last.count(key) != 0 && s.packet.psn != ((last[key] + 1) & 0xffffff)) ++skipped;
      if (!fresh && s.packet.psn != last[key]) ++twice;  // and only while nothing was sent behind it
      last[key] = s.packet.psn;
      return f;
    };
    for (unsigned i = 0; i < 20; ++i) {
      w.post(2);
      if (i % 4 == 3) net.end(0).change_sport(a, i / 4 % 4, net.now());
      net.run_for(20 * kUs);
    }
    REQUIRE(net.run_until([&] { return w.done(); }, 200 * kMs));
    w.check();
    CHECK(twice == 0);
    CHECK(skipped == 0);
    CHECK(used.size() >= 5);
  }
}

TEST_CASE("ref: what was lost goes before what is new", "[ref][paths]") {
  // From the ack that tells of a loss until its resend has left, no new packet leaves at that port.
  Net net(one_path());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 2048);
  unsigned sent = 0, lost = 0, resent = 0, pending = 0, jumped = 0;
  std::uint64_t known = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (!data(s, 0, 0)) return f;
    const std::uint64_t told = net.end(0).counters().lost;  // by acks taken so far
    pending += static_cast<unsigned>(told - known);
    known = told;
    if (s.packet.data.retx) {
      ++resent;
      --pending;
    } else if (pending != 0) {
      ++jumped;
    }
    if (++sent % 11 == 5) {
      f.lost = true;
      ++lost;
    }
    return f;
  };
  w.post(40);
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  w.check();
  CHECK(resent == lost);
  CHECK(lost > 20);
  CHECK(jumped == 0);
}

TEST_CASE("ref: a silent path is probed after one and a half round trips and the timer never stands still",
          "[ref][paths]") {
  // In the middle of a transfer all of one path is lost, acks too; the other path goes on. A probe follows
  // one and a half round trips behind its last packet, then one every rto.
  Net net(two_paths(), 2, 1 << 22);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 8192);
  bool cut = false;
  Ps last_data = 0;
  std::vector<Ps> probes;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = cut && s.port == 0;
    if (data(s, 0, 0) && probes.empty()) last_data = s.now;
    if (cut && probe(s, 0, 0) && s.packet.epoch == 0) probes.push_back(s.now);
    return f;
  };
  const auto feed = [&] {
    if (w.posted - w.good < 60 && w.posted < 500) w.post();
    return false;
  };
  net.run_until(feed, 40 * kUs);
  cut = true;
  net.run_until(feed, 60 * kUs);
  REQUIRE(probes.size() >= 2);
  const std::string state = net.end(0).state(a);
  const Ps srtt = std::stol(state.substr(state.find("rtt ", state.find("port 0: ")) + 4)) * kNs;
  CHECK(probes[0] - last_data >= srtt * 14 / 10);
  CHECK(probes[0] - last_data <= srtt * 17 / 10);
  for (std::size_t i = 1; i < probes.size(); ++i) {
    CHECK(probes[i] - probes[i - 1] >= 2 * kUs);
    CHECK(probes[i] - probes[i - 1] <= 30 * kUs);
  }
  // A timer whose probe cannot leave (the port is held, its MAC paused) is set for later, not for now.
  Net held(one_path());
  const auto c = held.open(0, 1).first;
  REQUIRE(held.end(0).post(c, 0, write_of(1, 0, 0, 256), 0) == Err::OK);
  Packet out;
  REQUIRE(held.end(0).next_packet(0, 0, out));
  Ps now = 0;
  for (unsigned i = 0; i < 200; ++i) {
    const Ps next = held.end(0).next_timer();
    REQUIRE(next > now);
    now = next;
    held.end(0).on_timer(now);
  }
}

TEST_CASE("ref: a peer that dies while a reply or credits are awaited is noticed", "[ref][paths]") {
  for (const bool reply : {true, false}) {
    CAPTURE(reply);
    Config c = two_paths();
    c.tuning.give_up = 4 * kMs;
    c.tuning.stuck_losses = 65535;  // the peer must not fail for the answers that it cannot bring over
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    bool dead = false;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = dead || (s.node == 1 && s.packet.is_data());  // the request is acked, its answer is not sent
      return f;
    };
    WorkRequest w = write_of(1, 0, 0, 256);
    w.op = reply ? WrOp::kRead : WrOp::kSend;
    REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
    net.run_for(100 * kUs);
    REQUIRE(net.completions(0) == 0);
    // While the peer is there, nothing fails, however long it takes.
    net.run_for(12 * kMs);
    CHECK(net.completions(0) == 0);
    CHECK(net.completions(0, Completed::kConnection) == 0);
    dead = true;
    const Ps from = net.now();
    REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 30 * kMs));
    CHECK(net.now() - from > 2 * kMs);
    CHECK(net.now() - from < 8 * kMs);
    REQUIRE(net.completions(0) == 1);
    CHECK(net.host(0).done[0].status == Err::RETRY_LIMIT);
  }
}

TEST_CASE("ref: a network that loses much of everything fails no good path", "[ref][paths]") {
  Config c = eight_paths();
  Net net(c, 2, 1 << 22);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 4096);
  Rng rng(weft::test::seed(), 10);
  Ps dead = kNever;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = rng.chance(0.15) || (s.port == 1 && s.now >= dead);
    return f;
  };
  // Many small transfers: each has tails whose probes are lost.
  for (unsigned i = 0; i < 900; ++i) {
    w.post();
    REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  }
  CHECK(net.end(0).counters().timer_probes + net.end(0).counters().probes_sent > 5000);
  CHECK(net.end(0).counters().path_failed == 0);
  // Yet a plane that dies is noticed: no request waits for it for long.
  dead = net.now();
  w.post(30);
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  CHECK(net.end(0).counters().path_failed >= 1);
  w.check();
}

TEST_CASE("ref: half of all data lost takes no path out of use", "[ref][paths]") {
  Net net(eight_paths(), 2, 1 << 22);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 16 * 1024);
  Rng rng(weft::test::seed(), 11);
  net.fate = [&](const Sent& s) {  // probes pass, so that no path falls silent
    Fate f;
    f.lost = s.packet.payload_bytes != 0 && rng.chance(0.5);
    return f;
  };
  w.post(200);
  REQUIRE(net.run_until([&] { return w.done(); }, 200 * kMs));
  w.check();
  CHECK(net.end(0).counters().lost > 2000);
  CHECK(net.end(0).counters().path_failed == 0);
}

TEST_CASE("ref: what a dead plane took with it does not slow its next failure", "[ref][paths]") {
  // Each path in use has packets under way that its fence finds missing: more than half of all that the port
  // sends. That is no loss at which more unanswered probes are to be expected.
  Config c = two_paths();
  c.paths = 4;
  Net net(c, 2, 1 << 23);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 1 << 14);
  Ps dead = kNever;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.port == 1 && s.now >= dead;
    return f;
  };
  std::array<Ps, 3> took{};
  for (Ps& t : took) {
    w.post(100);
    net.run_for(30 * kUs);
    dead = net.now();
    const auto failed = [&] {
      for (std::uint32_t path = 4; path < 8; ++path)
        if (net.end(0).path_state(a, path) != PathState::kFailed) return false;
      return true;
    };
    REQUIRE(net.run_until(failed, 5 * kMs));
    t = net.now() - dead;
    REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
    dead = kNever;
    const auto well = [&] {
      for (std::uint32_t path = 4; path < 8; ++path)
        if (net.end(0).path_state(a, path) == PathState::kFailed) return false;
      return true;
    };
    REQUIRE(net.run_until(well, 20 * kMs));
  }
  INFO("us: " << took[0] / kUs << " " << took[1] / kUs << " " << took[2] / kUs);
  CHECK(took[1] < 2 * took[0]);
  CHECK(took[2] < 2 * took[0]);
  w.check();
}

TEST_CASE("ref: probes that overtake their data fail no path and hold up nothing", "[ref][paths]") {
  // Switches that spray the packets of a path, and a receiver that was told of no reorder distance: what is
  // small takes a shorter queue.
  Net net(eight_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 1024);
  net.fate = [](const Sent& s) {
    Fate f;
    if (s.packet.payload_bytes != 0) f.late = 3 * kUs;
    return f;
  };
  for (unsigned i = 0; i < 400; ++i) {
    w.post();
    net.run_for(4 * kUs);
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  w.check();
  CHECK(net.end(0).counters().path_failed == 0);
  CHECK(net.end(0).counters().resent < 200);
}

TEST_CASE("ref: data that never arrives while probes do fails the connection by name", "[ref][paths]") {
  // Full frames fit no queue, or no link: whatever is small passes. Another stream, whose messages are small,
  // goes on all the while.
  for (const bool fence : {true, false}) {
    for (const bool read : {false, true}) {
      CAPTURE(fence, read);
      Config c = two_paths();
      c.paths = 2;
      c.tuning.give_up = 4 * kMs;
      if (!fence) c.caps &= ~(1u << static_cast<unsigned>(wire::Cap::FENCE));
      Net net(c);
      const std::uint32_t a = net.open(0, 1).first;
      net.fate = [](const Sent& s) {
        Fate f;
        f.lost = s.packet.payload_bytes > 200;
        return f;
      };
      // One packet: the small ones wait behind all resends (W-TX-004).
      WorkRequest w = write_of(1, 0, 0, 256);
      w.op = read ? WrOp::kRead : WrOp::kWrite;
      REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
      unsigned small = 0;
      const auto failed = [&] { return net.completions(0, Completed::kConnection) == 1; };
      while (!failed() && net.now() < 40 * kMs) {
        if (net.end(0).post(a, 1, write_of(100 + small, 0x1000, 0x1000, 64), net.now()) == Err::OK) ++small;
        net.run_until(failed, 50 * kUs);
      }
      REQUIRE(failed());
      CHECK(small > 40);
      CHECK(net.now() > 4 * kMs);
      // The answer of a READ is the peer's to give up; then nobody is there.
      CHECK(net.now() < (read ? 14 : 8) * kMs);
      unsigned told = 0;
      for (const Completion& done : net.host(0).done) {
        if (done.what != Completed::kRequest || done.id != 1) continue;
        ++told;
        CHECK(done.status == Err::RETRY_LIMIT);
      }
      CHECK(told == 1);
      net.run_for(10 * kMs);
      CHECK(net.end(0).in_use() == 0);
      CHECK(net.completions(0, Completed::kConnection) == 1);
    }
  }
}

TEST_CASE("ref: much loss, an outage or a wait for credits is no want of progress", "[ref][paths]") {
  Config c = two_paths();
  c.tuning.give_up = 2 * kMs;
  SECTION("half of all packets lost, for many times give_up") {
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 16 * 256);
    Rng rng(weft::test::seed(), 50);
    net.fate = [&](const Sent&) {
      Fate f;
      f.lost = rng.chance(0.5);
      return f;
    };
    while (net.now() < 30 * kMs) {
      if (w.posted < 250 && w.posted - w.good < 8) w.post();
      net.run_for(20 * kUs);
    }
    REQUIRE(net.run_until([&] { return w.done(); }, 30 * kMs));
    w.check();
    CHECK(net.completions(0, Completed::kConnection) == 0);
  }
  SECTION("data alone lost for less than give_up") {
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 16 * 256);
    net.fate = [](const Sent& s) {
      Fate f;
      f.lost = s.packet.payload_bytes != 0 && s.now < 1'800 * kUs;
      return f;
    };
    w.post(20);
    REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
    w.check();
    CHECK(net.end(0).counters().lost > 64);
  }
  SECTION("a path that drops data beside one that does not") {
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 16 * 256);
    net.fate = [](const Sent& s) {
      Fate f;
      f.lost = s.packet.payload_bytes != 0 && s.port == 0;
      return f;
    };
    while (net.now() < 20 * kMs) {
      if (w.posted < 200 && w.posted - w.good < 4) w.post();
      net.run_for(100 * kUs);
    }
    REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
    w.check();
    CHECK(net.completions(0, Completed::kConnection) == 0);
  }
  SECTION("no receive is posted for long, and packets are lost") {
    Net net(c);
    const auto [a, b] = net.open(0, 1);
    Rng rng(weft::test::seed(), 51);
    net.fate = [&](const Sent&) {
      Fate f;
      f.lost = rng.chance(0.3);
      return f;
    };
    WorkRequest w = write_of(1, 0, 0, 2000);
    w.op = WrOp::kSend;
    REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
    net.run_for(20 * kMs);
    REQUIRE(net.host(0).done.empty());
    REQUIRE(net.end(1).post_recv(b, 0, 1, Host::kBase, 4000, net.now()) == Err::OK);
    REQUIRE(net.run_until([&] { return net.completions(0) == 1; }, 10 * kMs));
    CHECK(net.host(0).done[0].status == Err::OK);
  }
}

TEST_CASE("ref: a path that drops data but passes probes holds nothing up", "[ref][paths]") {
  // One of two paths loses every data packet of one size. All messages complete at nearly the pace of the
  // other path, and what was lost there never goes there again at once.
  for (const std::uint32_t paths : {1u, 2u}) {  // the other one in another plane, or in the same
    CAPTURE(paths);
    Config c = paths == 1 ? two_paths() : one_path();
    c.paths = paths;
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 2048);
    std::map<std::uint64_t, unsigned> lost;
    unsigned worst = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = data(s, 0, 0);
      if (f.lost) worst = std::max(worst, ++lost[s.packet.data.va]);
      return f;
    };
    // First so few that it is no black hole yet: only the choice of another path helps.
    w.post(1);
    REQUIRE(net.run_until([&] { return w.done(); }, 100 * kUs));
    CHECK(worst == 1);
    w.post(199);
    REQUIRE(net.run_until([&] { return w.done(); }, 2 * kMs));
    w.check();
    CHECK(net.end(0).path_state(a, 0) != PathState::kGood);
    CHECK(net.end(0).counters().path_failed == 1);
    CHECK(lost.size() < 100);
    if (paths == 2) CHECK(worst == 1);
  }
}

TEST_CASE("ref: a loss goes to another port, but not to one that does not take it", "[ref][paths]") {
  // One path a port. Now and then path 0 loses a packet: port 1 sends it again, if its MAC lives. If not,
  // port 0 has to, and soon.
  for (const bool held : {false, true}) {
    CAPTURE(held);
    Net net(two_paths());
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 2048);
    if (held) net[0].free_at[1] = kNever;
    std::set<std::uint64_t> lost;
    unsigned back = 0, away = 0, sent = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (s.node != 0 || !s.packet.is_data()) return f;
      if (lost.count(s.packet.data.va) != 0) ++(s.port == 0 ? back : away);
      if (s.port == 0 && !s.packet.data.retx && ++sent % 9 == 5) {
        f.lost = true;
        lost.insert(s.packet.data.va);
      }
      return f;
    };
    for (unsigned i = 0; i < 80; ++i) {
      w.post();
      net.run_for(1 * kUs);
    }
    REQUIRE(net.run_until([&] { return w.done(); }, 300 * kUs));
    w.check();
    REQUIRE(lost.size() > 20);
    if (held)
      CHECK(back >= lost.size());
    else
      CHECK(back * 10 <= away);  // only where port 1 has no room
  }
}

TEST_CASE("ref: a PSN far ahead of an open hole is refused", "[ref][paths]") {
  Config c = one_path();
  c.distance = 128;
  Net net(c, 2, 1 << 16, false);
  const std::uint32_t a = net.open(0, 1).first;
  std::optional<Packet> first;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = true;
    if (s.node == 0 && s.packet.is_data() && !first) first = s.packet;
    return f;
  };
  REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 0), 0) == Err::OK);
  net.run_for(1 * kUs);
  REQUIRE(first);
  const auto put = [&](std::uint32_t ahead) {
    Packet p = *first;
    p.opcode = Opcode::PROBE;
    p.psn = (first->psn + ahead) & 0xffffff;
    net.end(1).on_packet(net.now(), 0, p);
  };
  put(1);  // the hole: base stays
  for (const std::uint32_t far : {256u, 257u, 1000u, 0x7fffffu}) put(far);
  CHECK(drops(net, 1, Drop::FUTURE) == 4);
  CHECK(net.end(1).counters().probes_taken == 1);
  net.end(1).on_packet(net.now(), 0, *first);  // the hole was not touched
  CHECK(net.end(1).counters().data_taken == 1);
  put(257);  // base is 2 by now, so it is 255 ahead, the last that may be
  CHECK(net.end(1).counters().probes_taken == 2);
  CHECK(drops(net, 1, Drop::FUTURE) == 4);
}

TEST_CASE("ref: bytes of a suspect path do not count in the cap", "[ref][paths]") {
  // Of two paths in one plane one is cut in the middle of a long message, with much of the cap on it. The
  // other one carries the rest while nothing is known of what the first one had: its fences are lost.
  Config c = one_path();
  c.paths = 2;
  Net net(c, 2, 1 << 21, false);
  const std::uint32_t a = net.open(0, 1).first;
  bool cut = false;
  unsigned before = 0, behind = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = (cut && s.packet.path == 0) || s.packet.opcode == Opcode::FENCE;
    const bool apart = cut && net.end(0).path_state(a, 0) != PathState::kGood;
    if (cut && data(s, 0, 1)) ++(apart ? behind : before);
    return f;
  };
  REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 1 << 20), 0) == Err::OK);
  net.run_for(10 * kUs);
  cut = true;
  net.run_for(500 * kUs);
  REQUIRE(net.end(0).path_state(a, 0) != PathState::kGood);
  CHECK(before + behind > 3000);  // nearly all of the 4096
  CHECK(behind > 2000);
  // Everything on the good path is settled; the account of the port is empty though the dead one's is not.
  const std::string text = net.end(0).state(a);
  unsigned cap = 0, flying = 1;
  REQUIRE(std::sscanf(text.c_str() + text.find("cap "), "cap %u, in flight %u", &cap, &flying) == 2);
  CHECK(flying == 0);
  CHECK(net.completions(0) == 0);
}

TEST_CASE("ref: the cap of a port is free of a path's bytes from the first doubt on", "[ref][paths]") {
  // As above, but the path is only suspected all the while.
  Config c = one_path();
  c.paths = 2;
  c.tuning.fail_probes = 31;
  Net net(c, 2, 1 << 21, false);
  const std::uint32_t a = net.open(0, 1).first;
  bool cut = false;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = cut && s.packet.path == 0;
    return f;
  };
  REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 1 << 18), 0) == Err::OK);
  net.run_for(10 * kUs);
  cut = true;
  net.run_for(70 * kUs);
  REQUIRE(net.end(0).path_state(a, 0) == PathState::kSuspect);
  const std::string text = net.end(0).state(a);
  INFO(text);
  CHECK(text.find("in flight 0, rtt") != std::string::npos);
  CHECK(net.completions(0) == 0);
}

TEST_CASE("ref: a full path that is suspected again and again takes no more data", "[ref][paths]") {
  // What a receiver with D > 0 may say: it answers probes, and its base does not move. The sender suspects
  // the path while no answer comes, and takes it for good with the next one. It stays full all the while.
  Config c = two_paths();
  c.line_mbps = 10'000;
  c.rtt_init = 300 * kUs;  // a first window for more than 250 packets
  Net net(c, 2, 1 << 20, false);
  net.delay = 40 * kUs;
  const std::uint32_t a = net.open(0, 1, 0).first;
  net.forge = [&](const Sent& s, Packet& p) {
    if (s.node != 1 || p.opcode != Opcode::ACK || p.path != 0) return;
    p.ack.base = 0;
    p.ack.hist.fill(~0u);
  };
  std::uint32_t next_data = 0, next = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    const bool suspect = net.end(0).path_state(a, 0) == PathState::kSuspect;
    f.lost = s.node == 1 && s.packet.opcode == Opcode::ACK && s.packet.path == 0 && !suspect;
    if (data(s, 0, 0)) next_data = std::max(next_data, s.packet.psn + 1);
    if (data(s, 0, 0) || probe(s, 0, 0)) next = std::max(next, s.packet.psn + 1);
    return f;
  };
  for (unsigned i = 0; i < 60; ++i) REQUIRE(net.end(0).post(a, 0, write_of(i, 0, 0, 1 << 20), 0) == Err::OK);
  unsigned turns = 0;
  bool before = false;
  net.run_until(
      [&] {
        const bool suspect = net.end(0).path_state(a, 0) == PathState::kSuspect;
        turns += before && !suspect ? 1 : 0;
        before = suspect;
        return false;
      },
      20 * kMs);
  CHECK(turns >= 8);
  CHECK(net.end(0).path_state(a, 1) == PathState::kGood);
  CHECK(next_data == wire::kMaxUnsettled);
  CHECK(next <= wire::kHistBits);
}

TEST_CASE("ref: a path with a short round trip beside a long one fails in time", "[ref][paths]") {
  // The dead path's rto is far shorter than the other one's round trip: every repetition of its probe is
  // younger than anything that has been acked.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 512);
  bool cut = false;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = cut && s.port == 0;
    f.late = s.port == 1 ? 30 * kUs : 0;
    return f;
  };
  const auto feed = [&] {
    if (w.posted < 1900 && w.posted - w.good < 30) w.post();
    return net.end(0).path_state(a, 0) != PathState::kGood &&
           net.end(0).path_state(a, 0) != PathState::kSuspect;
  };
  REQUIRE_FALSE(net.run_until(feed, 400 * kUs));
  cut = true;
  CHECK(net.run_until(feed, 600 * kUs));
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  w.check();
}

TEST_CASE("ref: a late ack of a repeated probe fails no path", "[ref][paths]") {
  // Now and then both paths are slow by many times their rto, path 0 a little more. Each repetition of its
  // probe is late, and so is each scout: an ack that comes now tells of what left long ago.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 256);
  bool slow = false;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (slow) f.late = s.packet.path == 0 ? 40 * kUs : 39'500 * kNs;
    return f;
  };
  for (unsigned round = 0; round < 5; ++round) {
    slow = false;
    for (unsigned i = 0; i < 60; ++i) {
      w.post(2);
      net.run_for(20 * kUs);
    }
    slow = true;
    w.post(1);  // on one path: the other one is the scouts'
    net.run_for(150 * kUs);
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  w.check();
  CHECK(net.end(0).counters().scouts > 4);
  CHECK(net.end(0).counters().path_failed == 0);
  CHECK(net.end(0).counters().fences_sent == 0);
}

TEST_CASE("ref: no path fails without evidence", "[ref][paths]") {
  // All is silent for much longer than it takes to fail a path, again and again: nothing is acked, so nothing
  // says that the network delivers.
  Net net(four_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 256);  // few: what a black hole is has a rule of its own
  bool silent = false;
  net.fate = [&](const Sent&) {
    Fate f;
    f.lost = silent;
    return f;
  };
  unsigned not_good = 0;
  for (unsigned i = 0; i < 6; ++i) {
    w.post(8);
    net.run_for(20 * kUs);
    w.post(4);
    silent = true;
    net.run_for(4 * kMs);
    for (unsigned p = 0; p < 4; ++p) not_good += net.end(0).path_state(a, p) != PathState::kGood ? 1 : 0;
    silent = false;
    REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  }
  w.check();
  CHECK(not_good == 0);
  CHECK(net.end(0).counters().path_failed == 0);
}

TEST_CASE("ref: a dead path at the end of a transfer gets its evidence from a scout", "[ref][paths]") {
  // One message of one packet on path 0, which is dead; nothing else is to be sent.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 256);
  unsigned on_other = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.port == 0;
    on_other += probe(s, 0, 1) ? 1 : 0;
    return f;
  };
  w.post();
  REQUIRE(net.run_until([&] { return w.done(); }, 1 * kMs));
  w.check();
  CHECK(on_other >= 3);
  CHECK(net.end(0).counters().scouts >= 3);
  CHECK(net.end(0).counters().path_failed == 1);
}

TEST_CASE("ref: probes without evidence back off from the fourth timeout on", "[ref][paths]") {
  Net net(one_path());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 256);
  bool silent = false;
  std::vector<Ps> probes;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = silent;
    if (silent && probe(s, 0, 0)) probes.push_back(s.now);
    return f;
  };
  w.post(8);
  REQUIRE(net.settle());
  silent = true;
  w.post(1);
  net.run_for(5 * kMs);
  REQUIRE(probes.size() >= 14);
  const Ps rto = probes[1] - probes[0];
  // The fifth timeout in a row is the first that doubles; three doublings are the most.
  for (std::size_t i = 1; i + 1 < probes.size(); ++i) {
    CAPTURE(i);
    const std::size_t timeouts = i;
    const unsigned doublings =
        static_cast<unsigned>(std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(timeouts) - 4, 0, 3));
    const Ps wait = probes[i + 1] - probes[i];
    CHECK(wait > (rto << doublings) - 100 * kNs);
    CHECK(wait < (rto << doublings) + 100 * kNs);
  }
  silent = false;
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
}

TEST_CASE("ref: nothing moves to another path before the fence is answered", "[ref][paths]") {
  // Path 0 dies with data on it. Its packets leave again when the answer has come, and not before; what had
  // arrived there never.
  for (const bool acks_only : {false, true}) {
    CAPTURE(acks_only);
    Net net(two_paths());
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 2048);
    bool cut = false, answers = false;
    std::set<std::uint64_t> on_dead;
    unsigned moved_early = 0, moved = 0;
    Ps answered = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (cut && s.port == 0) f.lost = acks_only ? s.node == 1 : true;
      if (s.packet.opcode == Opcode::FENCE_ANSWER && s.port == 1) {
        f.lost = !answers;
        if (answers && answered == 0) answered = s.now;
      }
      if (cut && data(s, 0, 0) && s.packet.epoch == 0) on_dead.insert(s.packet.data.va);
      if (data(s, 0, 1) && on_dead.count(s.packet.data.va) != 0) {
        ++moved;
        if (answered == 0 || s.now < answered + net.delay) ++moved_early;
      }
      return f;
    };
    w.post(20);
    net.run_for(500 * kNs);
    cut = true;
    net.run_for(1 * kMs);
    REQUIRE(net.end(0).path_state(a, 0) == PathState::kFencing);
    REQUIRE(on_dead.size() >= 4);
    answers = true;
    REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
    w.check();
    CHECK(moved_early == 0);
    if (acks_only)
      CHECK(moved == 0);
    else
      CHECK(moved >= on_dead.size());
  }
}

TEST_CASE("ref: a forged fence costs one failover, with a single path too", "[ref][paths]") {
  for (const bool single : {true, false}) {
    CAPTURE(single);
    Net net(single ? one_path() : two_paths(), 2, 1 << 20, false);
    const auto [a, b] = net.open(0, 1);
    Writes w(net, a, 2048);
    std::optional<Packet> model;
    unsigned answers = 0;
    net.fate = [&](const Sent& s) {
      if (data(s, 0, 0)) model = s.packet;
      Fate f;  // the answer that the fence itself gets is lost: the probe's must do
      f.lost = s.packet.opcode == Opcode::FENCE_ANSWER && answers++ == 0;
      return f;
    };
    w.post(300);
    net.run_for(15 * kUs);
    REQUIRE(model);
    REQUIRE_FALSE(w.done());
    Packet fence{};
    fence.opcode = Opcode::FENCE;
    fence.conn = b;
    fence.incarnation = model->incarnation;
    fence.path = 0;
    fence.epoch = 0;
    fence.psn = model->psn;
    net.inject(1, 0, fence);
    const Ps from = net.now();
    REQUIRE(net.run_until([&] { return w.done(); }, 3 * kMs));
    CHECK(net.now() - from < 1 * kMs);
    REQUIRE(net.settle());
    w.check();
    CHECK(net.end(0).path_state(a, 0) == PathState::kGood);
    CHECK(net.end(0).counters().path_back + net.end(0).counters().path_failed <= 2);
    CHECK(net.end(1).counters().answers_sent >= 1);
    // The path is in epoch 1 now, no further.
    std::set<unsigned> epochs;
    net.fate = [&](const Sent& s) {
      if (data(s, 0, 0)) epochs.insert(s.packet.epoch);
      return Fate{};
    };
    w.post(4);
    REQUIRE(net.settle());
    CHECK(epochs == std::set<unsigned>{1});
  }
}

TEST_CASE("ref: an idle connection with a dead plane lives on past give_up", "[ref][paths]") {
  Config c = two_paths();
  c.tuning.give_up = 2 * kMs;
  Net net(c);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 2048);
  bool dead = false;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = dead && s.port == 0;
    return f;
  };
  w.post(20);
  net.run_for(500 * kNs);
  dead = true;
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  REQUIRE(net.end(0).path_state(a, 0) == PathState::kFailed);
  const auto probes = net.end(0).counters().probes_sent;
  net.run_for(40 * kMs);
  CHECK(net.end(0).counters().probes_sent > probes);  // it goes on asking
  CHECK(net.completions(0, Completed::kConnection) == 0);
  w.post(20);
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  dead = false;
  net.run_for(10 * kMs);
  w.post(20);
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  w.check();
  CHECK(net.completions(0, Completed::kConnection) == 0);
}

TEST_CASE("ref: a silent peer fails the connection after give_up and not before", "[ref][paths]") {
  for (const Ps outage : {9 * kMs, 60 * kMs}) {
    CAPTURE(outage);
    Config c = two_paths();
    c.tuning.give_up = 10 * kMs;
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 2048);
    Ps from = kNever;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = s.now >= from && s.now < from + outage;
      return f;
    };
    // Idle for long: that silence does not count.
    w.post(2);
    REQUIRE(net.settle());
    net.run_for(50 * kMs);
    from = net.now();
    w.post(3);
    const bool failed =
        net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 30 * kMs);
    CHECK(failed == (outage > 10 * kMs));
    if (failed) {
      CHECK(net.now() - from >= 10 * kMs);
      CHECK(net.now() - from < 14 * kMs);  // a backed-off probe and the life of a packet later
      CHECK(net.completions(0) == 5);
      CHECK(net.host(0).done[2].status == Err::RETRY_LIMIT);
      CHECK(net.host(0).done[3].status == Err::FLUSHED);
    } else {
      REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
      w.check();
    }
  }
}

TEST_CASE("ref: without FENCE a path that stays silent fails the connection", "[ref][paths]") {
  // With it the other path takes over; without it nothing may move.
  for (const bool fence : {false, true}) {
    CAPTURE(fence);
    Config c = two_paths();
    if (!fence) c.caps &= ~(1u << static_cast<unsigned>(wire::Cap::FENCE));
    c.tuning.retry_limit = 7;
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 2048);
    bool dead = false;
    unsigned probes = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = dead && s.port == 0;
      probes += dead && probe(s, 0, 0) ? 1 : 0;
      return f;
    };
    w.post(20);
    net.run_for(500 * kNs);
    dead = true;
    if (fence) {
      REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
      w.check();
      continue;
    }
    REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 20 * kMs));
    CHECK(probes == 7);
    CHECK(net.end(0).counters().fences_sent == 0);
    CHECK(net.completions(0) == 20);
    unsigned wrong = 0, limit = 0;
    for (const Completion& d : net.host(0).done) {
      if (d.what != Completed::kRequest) continue;
      limit += d.status == Err::RETRY_LIMIT ? 1 : 0;
      if (d.status == Err::OK && !w.there(d.id)) ++wrong;
    }
    CHECK(wrong == 0);
    CHECK(limit == 1);
    CHECK(net.host(0).done.back().what == Completed::kConnection);
  }
}

TEST_CASE("ref: a suspect path that has delivered nothing in its epoch is no good one", "[ref][paths]") {
  // Plane 1 dies and answers probes again; it is silent when data is to go over it, and answers once more.
  Net net(two_paths(), 2, 1 << 22);
  const auto [a, b] = net.open(0, 1);
  (void)b;
  Writes w(net, a, 1024);
  enum { kDead, kDropsData } plane = kDead;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.port == 1 && (plane == kDead || s.packet.is_data());
    return f;
  };
  const auto until = [&](PathState state) {
    for (unsigned i = 0; i < 20'000 && net.end(0).path_state(a, 1) != state; ++i) {
      if (w.posted - w.good < 20) w.post(10);
      net.run_for(100 * kNs);
    }
    return net.end(0).path_state(a, 1) == state;
  };
  REQUIRE(until(PathState::kFailed));
  plane = kDropsData;
  REQUIRE(until(PathState::kProbation));
  plane = kDead;
  REQUIRE(until(PathState::kSuspect));
  plane = kDropsData;
  bool tried = false;
  for (unsigned i = 0; i < 5000; ++i) {
    if (w.posted - w.good < 20 && w.posted < 3000) w.post(10);
    net.run_for(100 * kNs);
    const PathState state = net.end(0).path_state(a, 1);
    REQUIRE(state != PathState::kGood);
    tried |= state == PathState::kProbation;
  }
  CHECK(tried);
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  w.check();
}

TEST_CASE("ref: a path whose hole waits for later packets is not suspected", "[ref][paths]") {
  // Probes behind the hole are answered, though their acks settle nothing before it closes.
  Config c = two_paths();
  c.distance = 64;
  Net net(c, 2, 1 << 22);
  const auto [a, b] = net.open(0, 1);
  (void)b;
  Writes w(net, a, 256);
  unsigned on_path_0 = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.node == 0 && s.port == 0 && s.packet.is_data() && on_path_0++ == 0;
    return f;
  };
  while (on_path_0 == 0) {
    w.post();
    net.run_for(100 * kNs);
  }
  // Path 1 becomes another one, and the ack of its new epoch is evidence against all that is silent.
  net.end(0).change_sport(a, 1, net.now());
  for (unsigned i = 0; i < 90; ++i) {
    net.run_for(1 * kUs);
    REQUIRE(net.end(0).path_state(a, 0) == PathState::kGood);
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  w.check();
  CHECK(net.end(0).counters().path_failed == 0);
}
