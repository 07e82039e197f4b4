// SPDX-License-Identifier: Apache-2.0
// What hurt other transports (docs/cases.md), on the endpoint.
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

constexpr Ps kRoundTrip = 4 * kUs;  // of Net's delays, links left out

WorkRequest send_of(std::uint64_t id, std::uint64_t from, std::uint32_t length) {
  WorkRequest w = write_of(id, from, 0, length);
  w.op = WrOp::kSend;
  return w;
}

}  // namespace

TEST_CASE("ref: one packet lost costs one resend (case transport 1)", "[ref][cases]") {
  for (unsigned lost = 0; lost < 20; ++lost) {
    Net net(two_paths());
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 20 * 256);
    unsigned count = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = s.node == 0 && s.packet.is_data() && count++ == lost;
      return f;
    };
    w.post();
    REQUIRE(net.run_until([&] { return w.done(); }, 1 * kMs));
    REQUIRE(net.settle());
    w.check();
    CHECK(net.end(0).counters().resent == 1);
  }
}

TEST_CASE("ref: the last packet lost costs a round trip, not a timeout (case transport 2)", "[ref][cases]") {
  // Once it is the last of the message, once the last of a burst of resends.
  for (const bool resend : {false, true}) {
    CAPTURE(resend);
    Net net(one_path());
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 8 * 256);
    unsigned count = 0, resends = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (s.node != 0 || !s.packet.is_data()) return f;
      ++count;
      if (s.packet.data.retx)
        f.lost = resend && ++resends == 2;
      else
        f.lost = resend ? count > 6 : count == 8;
      return f;
    };
    w.post();
    REQUIRE(net.run_until([&] { return w.done(); }, 1 * kMs));
    // There and back for the loss, there and back for the resend, and once more if that is lost; the links.
    CHECK(net.now() < (resend ? 3 : 2) * kRoundTrip + 2 * kUs);
    w.check();
  }
}

TEST_CASE("ref: a lost resend is resent a round trip later each time (case transport 3)", "[ref][cases]") {
  Net net(one_path());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 40 * 256);
  unsigned tries = 0;
  std::uint64_t victim = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.node != 0 || !s.packet.is_data()) return f;
    if (victim == 0) victim = s.packet.data.va;
    f.lost = s.packet.data.va == victim && ++tries <= 5;
    return f;
  };
  w.post();
  REQUIRE(net.run_until([&] { return w.done(); }, 1 * kMs));
  CHECK(tries == 6);
  CHECK(net.now() < 7 * kRoundTrip + 3 * kUs);
  CHECK(net.end(0).counters().resent == 5);
  w.check();
}

TEST_CASE("ref: paths of any delay cost no resend (case transport 4)", "[ref][cases]") {
  Config c = two_paths();
  c.paths = 8;
  c.rtt_init = 20 * kUs;
  Net net(c);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 16 * 256);
  net.fate = [](const Sent& s) {
    Fate f;
    f.late = static_cast<Ps>((s.packet.path * 7) % 16) * 1 * kUs;
    return f;
  };
  w.post(150);
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  w.check();
  CHECK(net.end(0).counters().resent == 0);
  CHECK(net.end(0).counters().lost == 0);
}

TEST_CASE("ref: late packets of a closed epoch change nothing (case transport 5)", "[ref][cases]") {
  // Data of plane 1 is held in the network until its epoch is closed, its bytes came over plane 0, and the
  // target has been written anew by a later message.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 16 * 256);
  bool first = true;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.held = first && s.port == 1 && s.node == 0 && s.packet.is_data();
    f.lost = first && s.port == 1 && !f.held;
    return f;
  };
  w.post(4);
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  REQUIRE(net.held() > 2);
  w.check();
  first = false;
  net.host(0).on_done = nullptr;
  REQUIRE(net.end(0).post(a, 0, write_of(9, 0x80000, 0, 0x4000), net.now()) == wire::Err::OK);
  REQUIRE(net.run_until([&] { return net.completions(0) == 5; }, 20 * kMs));
  const auto memory = net.host(1).memory;
  const auto count = net.held();
  const auto old = drops(net, 1, Drop::EPOCH) + drops(net, 1, Drop::STALE);
  while (net.held() != 0) net.release(0);
  net.run_for(20 * kUs);
  CHECK(drops(net, 1, Drop::EPOCH) + drops(net, 1, Drop::STALE) == old + count);
  CHECK(net.host(1).memory == memory);
}

TEST_CASE("ref: an ack does not complete past an unanswered READ (case transport 8)", "[ref][cases]") {
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Rng rng;
  rng.fill(net.host(0).memory);
  rng.fill(net.host(1).memory);
  const auto theirs = net.host(1).memory;
  bool hold = true;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = hold && s.packet.opcode == Opcode::READ_DATA && s.packet.data.va % 1024 == 0;
    return f;
  };
  WorkRequest r = write_of(41, 0x8000, 0x4000, 4096);
  r.op = WrOp::kRead;
  REQUIRE(net.end(0).post(a, 0, r, net.now()) == wire::Err::OK);
  REQUIRE(net.end(0).post(a, 0, write_of(42, 0, 0x10000, 512), net.now()) == wire::Err::OK);
  net.run_for(100 * kUs);
  CHECK(net.host(1).writes[0x10000] == 1);  // the WRITE is done, but not told
  CHECK(net.completions(0) == 0);
  hold = false;
  REQUIRE(net.run_until([&] { return net.completions(0) == 2; }, 10 * kMs));
  CHECK(net.host(0).done[0].id == 41);
  CHECK(net.host(0).done[1].id == 42);
  CHECK(net.host(0).twice == 0);
  CHECK(std::equal(theirs.begin() + 0x4000, theirs.begin() + 0x5000, net.host(0).memory.begin() + 0x8000));
}

TEST_CASE("ref: keys and bounds beyond 4 GiB are exact (case transport 10)", "[ref][cases]") {
  // The host has no such memory and answers what passes the check with REMOTE_MEM.
  struct Try {
    std::uint64_t va, bytes, at;
    std::uint32_t length;
    wire::Err status;
  };
  constexpr std::uint64_t k4G = std::uint64_t{1} << 32, kTop = ~std::uint64_t{0};
  const Try tries[] = {
      {k4G - 0x1000, 2 * k4G, k4G - 4, 8, wire::Err::REMOTE_MEM},  // across 2^32
      {k4G - 0x1000, 2 * k4G, 3 * k4G - 0x1004, 4, wire::Err::REMOTE_MEM},
      {k4G - 0x1000, 2 * k4G, 3 * k4G - 0x1004, 5, wire::Err::REMOTE_BOUNDS},
      {k4G - 0x1000, 2 * k4G, k4G - 0x1001, 4, wire::Err::REMOTE_BOUNDS},
      {2 * k4G, 0x1000, 0, 4, wire::Err::REMOTE_BOUNDS},  // the same modulo 2^32
      {2 * k4G, 0x1000, k4G, 4, wire::Err::REMOTE_BOUNDS},
      {0x20000000, k4G + 8, 0x20000000 + 16, 4, wire::Err::REMOTE_MEM},  // not 8 bytes long
      {kTop - 0xfff, 0x1000, kTop - 3, 4, wire::Err::REMOTE_MEM},        // the last bytes there are
      {kTop - 0xfff, 0x1000, kTop - 3, 8, wire::Err::REMOTE_BOUNDS},     // and around to 0
  };
  for (const Try& t : tries) {
    CAPTURE(t.va, t.bytes, t.at, t.length);
    Net net(two_paths());
    const std::uint32_t a = net.open(0, 1).first;
    net.end(1).add_region(0x55, t.va, t.bytes, kRemoteWrite);
    WorkRequest w = write_of(1, 0, 0, t.length);
    w.remote_va = t.at;
    w.rkey = 0x55;
    REQUIRE(net.end(0).post(a, 0, w, net.now()) == wire::Err::OK);
    REQUIRE(net.run_until([&] { return net.completions(0) == 1; }, 1 * kMs));
    CHECK(net.host(0).done[0].status == t.status);
  }
}

TEST_CASE("ref: a SEND waits for its receive and leaves within a round trip of it (case transport 11)",
          "[ref][cases]") {
  Net net(two_paths());
  const auto [a, b] = net.open(0, 1);
  for (unsigned round = 0; round < 5; ++round) {
    REQUIRE(net.end(0).post(a, 0, send_of(round, 0, 600), net.now()) == wire::Err::OK);
    net.run_for(300 * kUs);
    CHECK(net.completions(1, Completed::kRecv) == round);
    REQUIRE(net.end(1).post_recv(b, 0, round, Host::kBase + 0x4000, 600, net.now()) == wire::Err::OK);
    const Ps posted = net.now();
    REQUIRE(net.run_until([&] { return net.completions(1, Completed::kRecv) == round + 1; }, 1 * kMs));
    CHECK(net.now() - posted < kRoundTrip + 2 * kUs);
  }
  REQUIRE(net.settle());
  CHECK(net.completions(0) == 5);
  CHECK(net.end(0).counters().resent == 0);
}

TEST_CASE("ref: data that arrives the moment the answer leaves is taken (case transport 12)",
          "[ref][cases]") {
  Net net(two_paths());
  net.delay = 0;
  const auto [a, b] = net.open(0, 1);
  REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0x1000, 700), net.now()) == wire::Err::OK);
  REQUIRE(net.end(0).post(a, 0, send_of(2, 0, 700), net.now()) == wire::Err::OK);
  net.run_for(50 * kUs);
  CHECK(net.completions(0) == 1);
  REQUIRE(net.end(1).post_recv(b, 0, 7, Host::kBase + 0x8000, 700, net.now()) == wire::Err::OK);
  REQUIRE(net.run_until([&] { return net.completions(0) == 2; }, 1 * kMs));
  CHECK(drops(net, 1, Drop::CONN) == 0);
  CHECK(drops(net, 1, Drop::MSG) == 0);
  CHECK(net.end(0).counters().resent == 0);
}

TEST_CASE("ref: sends take the receives of their number in any order of arrival (case transport 13)",
          "[ref][cases]") {
  // Each receive fits its own SEND only, and the planes race. Stream 1 goes on while stream 0 waits.
  Config c = two_paths();
  c.paths = 4;
  Net net(c);
  const auto [a, b] = net.open(0, 1);
  Rng rng;
  rng.fill(net.host(0).memory);
  net.fate = [&](const Sent&) {
    Fate f;
    f.late = static_cast<Ps>(rng.below(10 * kUs));
    f.lost = rng.chance(0.1);
    return f;
  };
  constexpr unsigned kSends = 40;
  const auto size = [](unsigned i) { return 20 + i * 37 % 700; };
  for (unsigned i = 0; i < kSends; ++i)
    REQUIRE(net.end(0).post(a, 0, send_of(i, i * 1024, size(i)), net.now()) == wire::Err::OK);
  for (unsigned i = 0; i < 10; ++i)
    REQUIRE(net.end(0).post(a, 1, write_of(100 + i, i * 1024, 0x40000 + i * 1024, 900), net.now()) ==
            wire::Err::OK);
  REQUIRE(net.run_until([&] { return net.completions(0) == 10; }, 10 * kMs));
  for (const Completion& d : net.host(0).done) CHECK(d.stream == 1);
  for (unsigned i = 0; i < kSends; ++i)
    REQUIRE(net.end(1).post_recv(b, 0, i, Host::kBase + 0x80000 + i * 1024, size(i), net.now()) ==
            wire::Err::OK);
  REQUIRE(net.run_until([&] { return net.completions(1, Completed::kRecv) == kSends; }, 20 * kMs));
  for (unsigned i = 0; i < kSends; ++i) {
    CHECK(net.host(1).done[i].id == i);
    CHECK(net.host(1).done[i].bytes == size(i));
    CHECK(std::equal(net.host(0).memory.begin() + i * 1024, net.host(0).memory.begin() + i * 1024 + size(i),
                     net.host(1).memory.begin() + 0x80000 + i * 1024));
  }
  CHECK(net.host(1).twice == 0);
}

TEST_CASE("ref: sustained loss to one peer fails that connection only, told once (case transport 14)",
          "[ref][cases]") {
  Config c = two_paths();
  c.tuning.give_up = 3 * kMs;
  Net net(c, 3);
  const auto [bad, b1] = net.open(0, 1);
  const auto [good, b2] = net.open(0, 2);
  (void)b1;
  (void)b2;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.now > 5 * kUs && (s.packet.peer == 1 || s.node == 1);
    return f;
  };
  for (unsigned i = 0; i < 30; ++i)
    REQUIRE(net.end(0).post(bad, i % 2, write_of(i, 0, 0x1000, 8000), net.now()) == wire::Err::OK);
  unsigned posted = 0;
  while (net.now() < 12 * kMs) {
    REQUIRE(net.end(0).post(good, 0, write_of(1000 + posted++, 0, 0x1000, 2000), net.now()) == wire::Err::OK);
    net.run_for(50 * kUs);
  }
  REQUIRE(net.settle());
  std::map<std::uint64_t, unsigned> told;
  unsigned failures = 0;
  for (const Completion& d : net.host(0).done) {
    if (d.what == Completed::kConnection) {
      ++failures;
      CHECK(d.conn == bad);
      continue;
    }
    ++told[d.id];
    if (d.conn == good) CHECK(d.status == wire::Err::OK);
  }
  CHECK(failures == 1);
  CHECK(told.size() == 30 + posted);
  for (const auto& [id, times] : told) CHECK(times == 1);
  CHECK(net.end(0).in_use() == 0);
}

TEST_CASE("ref: a plane that comes back after a second is used again by itself (case transport 15)",
          "[ref][cases]") {
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 16 * 256);
  const Ps down = 1 * kMs, up = down + 1000 * kMs;
  std::uint64_t on_plane = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.port == 1 && s.now >= down && s.now < up;
    if (s.port == 1 && s.packet.is_data() && s.now > up) ++on_plane;
    return f;
  };
  net.run_until([] { return false; }, down - 5 * kUs);
  w.post(10);
  REQUIRE(net.run_until([&] { return w.done(); }, 1 * kMs));  // moves over in less than 1 ms
  while (net.now() < up + 700 * kMs && w.posted < 200) {
    w.post();
    net.run_for(20 * kMs);
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
  w.check();
  // It was probed ever more seldom, 64 times the timeout apart at most.
  CHECK(net.end(0).path_state(a, 1) == PathState::kGood);
  CHECK(on_plane > 0);
  CHECK(net.end(0).counters().path_back >= 1);
  CHECK(net.completions(0, Completed::kConnection) == 0);
}

TEST_CASE("ref: a path that answers but drops stays in probation (case transport 16)", "[ref][cases]") {
  // Plane 1 passes everything but data, then is well again.
  Net net(two_paths(), 2, 1 << 23);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 2048);
  std::uint64_t data = 0;
  bool well = false;
  Ps good = 0;  // when it was taken for good last
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.port != 1 || s.node != 0 || !s.packet.is_data()) return f;
    ++data;
    f.lost = !well;
    return f;
  };
  while (net.now() < 20 * kMs) {
    w.post();
    net.run_for(6 * kUs);
    if (net.end(0).path_state(a, 1) == PathState::kGood) good = net.now();
  }
  CHECK(good < 1 * kMs);
  CHECK(data >= 8);
  CHECK(data < 300);  // a window or two, then tries of two packets, ever farther apart
  CHECK(w.good > 3000);
  well = true;
  while (net.now() < 60 * kMs && net.end(0).path_state(a, 1) != PathState::kGood) {
    if (w.posted < 4000 && w.done()) w.post();
    net.run_for(50 * kUs);
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  CHECK(net.end(0).path_state(a, 1) == PathState::kGood);
  w.check();
}

TEST_CASE("ref: every byte of a message is in exactly one packet, at every MTU (case transport 22)",
          "[ref][cases]") {
  for (const std::uint32_t mtu : {64u, 256u, 1024u, 2048u, 4096u}) {
    for (const double loss : {0.0, 0.1}) {
      Config c = two_paths();
      c.mtu = mtu;
      Net net(c);
      const std::uint32_t a = net.open(0, 1).first;
      Rng rng(weft::test::seed(), mtu);
      rng.fill(net.host(0).memory);
      std::map<std::uint64_t, std::uint32_t> packets;  // by address
      unsigned changed = 0, id = 0;
      net.fate = [&](const Sent& s) {
        Fate f;
        f.lost = rng.chance(loss);
        if (s.node == 0 && s.packet.is_data() && s.packet.payload_bytes != 0) {
          const auto [it, fresh] = packets.emplace(s.packet.data.va, s.packet.payload_bytes);
          if (!fresh && it->second != s.packet.payload_bytes) ++changed;
        }
        return f;
      };
      std::uint64_t bytes = 0, at = 0;
      for (std::uint32_t k = 0; k < 5; ++k) {
        for (const int around : {-1, 0, 1}) {
          if (k == 0 && around < 0) continue;
          const auto length = static_cast<std::uint32_t>(static_cast<int>(k * mtu) + around);
          REQUIRE(net.end(0).post(a, 0, write_of(id++, at, at, length), net.now()) == wire::Err::OK);
          bytes += length;
          at += 5 * 4096;
        }
      }
      REQUIRE(net.run_until([&] { return net.completions(0) == id; }, 20 * kMs));
      std::uint64_t once = 0, sent = 0;
      for (const auto n : net.host(1).writes) once += n == 1 ? 1 : 0;
      for (const auto& [va, n] : packets) sent += n;
      CHECK(once == bytes);
      CHECK(sent == bytes);
      CHECK(changed == 0);
      CHECK(net.host(1).twice == 0);
    }
  }
}

TEST_CASE("ref: a cap below one packet sends one at a time (case transport 23)", "[ref][cases]") {
  // The peer grants 1/200 of the line: in a round trip that is less than a packet.
  Config c = one_path();
  c.mtu = 4096;
  Net net(c);
  net.bytes = false;
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 10 * 4096);
  net.forge = [&](const Sent& s, Packet& p) {
    if (s.node == 1 && p.opcode == Opcode::ACK) p.ack.share = p.ack.share / 200;
  };
  w.post();
  REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
  w.post();
  const Ps start = net.now();
  unsigned flying = 0, most = 0;
  net.fate = [&](const Sent& s) {
    if (s.node == 0 && s.packet.is_data()) most = std::max(most, ++flying);
    if (s.node == 1 && s.packet.opcode == Opcode::ACK) flying = 0;
    return Fate{};
  };
  REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
  CHECK(most == 1);
  // 40 KB at 62.5 MB/s; two packets may leave ahead of the pacer.
  CHECK(net.now() - start > 8 * 4096 * kNs / 0.0625 * 0.9);
  w.check();
}

TEST_CASE("ref: a long run with loss on three hosts does not lock up (case transport 24)", "[ref][cases]") {
  Config c = two_paths();
  c.paths = 2;
  c.mtu = 1024;
  Net net(c, 3, 1 << 18, false);
  Rng rng;
  net.fate = [&](const Sent&) {
    Fate f;
    f.lost = rng.chance(0.02);
    f.ce = rng.chance(0.02);
    return f;
  };
  struct Way {
    unsigned from;
    std::uint32_t conn;
  };
  std::vector<Way> ways;
  for (unsigned from = 0; from < 3; ++from) {
    for (unsigned to = from + 1; to < 3; ++to) {
      const auto [a, b] = net.open(from, to);
      ways.push_back({from, a});
      ways.push_back({to, b});
    }
  }
  for (unsigned round = 0; round < 60; ++round) {
    for (const Way& w : ways)
      for (unsigned i = 0; i < 4; ++i)
        REQUIRE(net.end(w.from).post(w.conn, static_cast<std::uint16_t>(i % 2),
                                     write_of(round, 0, 0x10000, static_cast<std::uint32_t>(rng.below(9000))),
                                     net.now()) == wire::Err::OK);
    const unsigned each = (round + 1) * 8;
    REQUIRE(net.run_until(
        [&] {
          return net.completions(0) >= each && net.completions(1) >= each && net.completions(2) >= each;
        },
        50 * kMs));
    net.run_for(static_cast<Ps>(rng.below(2 * kMs)));
  }
  REQUIRE(net.settle());
  for (unsigned n = 0; n < 3; ++n) {
    CHECK(net.end(n).in_use() == 0);
    for (const Completion& d : net.host(n).done) CHECK(d.status == wire::Err::OK);
  }
}
