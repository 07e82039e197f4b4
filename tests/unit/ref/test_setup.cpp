// SPDX-License-Identifier: Apache-2.0
// Set-up and tear-down: hello records that are refused, what the two records agree on, lives of a connection.
#include <cmath>
#include <set>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using wire::Drop;
using wire::Opcode;
using wire::Refusal;

namespace {

constexpr std::uint32_t bit(wire::Cap c) {
  return 1u << static_cast<unsigned>(c);
}

/// A node of the net becomes another endpoint, of its own configuration.
void configure(Net& net, unsigned node, const Config& c) {
  net[node].end.emplace(c, net.host(node));
  net.end(node).add_region(Net::kKey, Host::kBase, net.host(node).memory.size(),
                           kRemoteRead | kRemoteWrite | kRemoteAtomic);
}

Refusal answer_to(Endpoint& end, const wire::Hello& hello) {
  return end.accept(hello, Peer{0}, 0).refusal;
}

WorkRequest request(WrOp op, std::uint64_t id) {
  WorkRequest w = write_of(id, 0, 0x4000, op >= WrOp::kFetchAdd ? 0 : 100);
  w.op = op;
  return w;
}

}  // namespace

TEST_CASE("ref: a hello that is wrong in several ways is refused for the first of them", "[ref][setup]") {
  const Config c = two_paths();
  Host host(4096);
  Endpoint a(c, host), b(c, host);
  const wire::Hello good = a.offer();
  wire::Hello h = good;
  h.magic ^= 1;
  h.version = 9;
  h.caps |= 1u << 20;
  h.mtu = 63;
  h.ports = 3;
  h.streams = 0;
  h.distance = 129;
  h.resv3 = 1;
  // Each is put right in its turn, and the next one in the order is told.
  CHECK(answer_to(b, h) == Refusal::MAGIC);
  h.magic = good.magic;
  CHECK(answer_to(b, h) == Refusal::VERSION);
  h.version = good.version;
  CHECK(answer_to(b, h) == Refusal::CAPS);
  h.caps = good.caps;
  CHECK(answer_to(b, h) == Refusal::MTU);
  h.mtu = 4097;
  CHECK(answer_to(b, h) == Refusal::MTU);
  h.mtu = good.mtu;
  CHECK(answer_to(b, h) == Refusal::PATHS);
  h.ports = good.ports;
  h.paths = good.paths + 1;
  CHECK(answer_to(b, h) == Refusal::PATHS);
  h.paths = good.paths;
  CHECK(answer_to(b, h) == Refusal::STREAMS);
  h.streams = c.streams + 1;
  CHECK(answer_to(b, h) == Refusal::STREAMS);
  h.streams = good.streams;
  CHECK(answer_to(b, h) == Refusal::DISTANCE);
  h.distance = 128;
  CHECK(answer_to(b, h) == Refusal::RESERVED);
  h.resv3 = 0;
  for (std::uint64_t wire::Hello::*r : {&wire::Hello::resv4, &wire::Hello::resv5}) {
    wire::Hello bad = h;
    bad.*r = std::uint64_t{1} << 63;
    CHECK(answer_to(b, bad) == Refusal::RESERVED);
  }
  // Nothing was kept of those that were refused: the good one gets the first number.
  const wire::Hello answer = b.accept(h, Peer{0}, 0);
  CHECK(answer.refusal == Refusal::NONE);
  CHECK(answer.conn == 0);
  // The opening end judges the answer in the same order, its incarnation last.
  const auto judged = [&](const std::function<void(wire::Hello&)>& spoil) {
    const wire::Hello mine = a.offer();
    wire::Hello theirs = answer;
    theirs.incarnation = mine.incarnation;
    spoil(theirs);
    return a.connect(mine, theirs, Peer{1}, 0);
  };
  CHECK(judged([](wire::Hello& t) { t.version = 2, t.incarnation -= 1; }) == Refusal::VERSION);
  CHECK(judged([](wire::Hello& t) { t.paths += 1, t.incarnation -= 1; }) == Refusal::PATHS);
  CHECK(judged([](wire::Hello& t) { t.incarnation -= 1; }) == Refusal::INCARNATION);
  CHECK(judged([](wire::Hello&) {}) == Refusal::NONE);
}

TEST_CASE("ref: what an endpoint would divide by, wait for or overflow with is not possible",
          "[ref][setup]") {
  REQUIRE(Endpoint::possible(Config{}));
  using Change = void (*)(Config&);
  const Change bad[] = {
      [](Config& c) { c.ports = 0; },
      [](Config& c) { c.paths = 65; },
      [](Config& c) { c.ports = 5, c.paths = 64; },
      [](Config& c) { c.streams = 0; },
      [](Config& c) { c.streams = 65536; },
      [](Config& c) { c.mtu = 63; },
      [](Config& c) { c.mtu = 4097; },
      [](Config& c) { c.overhead = 40'000; },
      [](Config& c) { c.distance = 129; },
      [](Config& c) { c.line_mbps = 0; },
      [](Config& c) { c.rtt_init = 0; },
      [](Config& c) { c.rtt_init = 1'001 * kMs; },
      [](Config& c) { c.tuning.probe_min = 0; },
      [](Config& c) { c.tuning.probe_min = 1'001 * kMs; },
      [](Config& c) { c.tuning.give_up = 3; },
      [](Config& c) { c.tuning.packet_life = 0; },
      [](Config& c) { c.tuning.hole_timeout = 0; },
      [](Config& c) { c.tuning.path_pkts = 0; },
      [](Config& c) { c.tuning.first_path_pkts = 0; },
      [](Config& c) { c.tuning.calm_path_pkts = 0; },
      [](Config& c) { c.tuning.pacer_pkts = 0; },
      [](Config& c) { c.tuning.ack_paths = 0; },
      [](Config& c) { c.tuning.ack_paths = 6; },
      [](Config& c) { c.tuning.fail_probes = 32; },  // five bits count them
      [](Config& c) { c.tuning.retry_limit = 256; },
      [](Config& c) { c.tuning.backoff_max = 17; },
      [](Config& c) { c.tuning.dead_backoff_max = 17; },
      [](Config& c) { c.tuning.decrease = 1.5; },
      [](Config& c) { c.tuning.cap_rtts = -1; },
      [](Config& c) { c.tuning.share_fill = std::nan(""); },
  };
  for (std::size_t i = 0; i < std::size(bad); ++i) {
    CAPTURE(i);
    Config c;
    bad[i](c);
    CHECK_FALSE(Endpoint::possible(c));
  }
  Config edge;
  edge.ports = 4;
  edge.streams = 65535;
  edge.rtt_init = edge.tuning.probe_min = 1'000 * kMs;
  edge.tuning.fail_probes = 31;
  CHECK(Endpoint::possible(edge));
}

TEST_CASE("ref: an unknown version or capability is refused by name", "[ref][setup]") {
  const Config c = two_paths();
  Host host(4096);
  Endpoint a(c, host);
  const wire::Hello good = a.offer();
  const auto offered_to = [&](const Config& config, const std::function<void(wire::Hello&)>& change) {
    Endpoint end(config, host);
    wire::Hello h = good;
    change(h);
    return answer_to(end, h);
  };
  for (const unsigned version : {0u, 2u, 255u})
    CHECK(offered_to(c, [&](wire::Hello& h) { h.version = static_cast<std::uint8_t>(version); }) ==
          Refusal::VERSION);
  for (unsigned n = 0; n < 32; ++n) {
    CAPTURE(n);
    const bool known = n <= static_cast<unsigned>(wire::Cap::BLOCKS);
    CHECK(offered_to(c, [&](wire::Hello& h) { h.caps |= 1u << n; }) ==
          (known ? Refusal::NONE : Refusal::CAPS));
    CHECK(offered_to(c, [&](wire::Hello& h) { h.needs = 1u << n; }) ==
          (known ? Refusal::NONE : Refusal::CAPS));
    if (!known) continue;
    // It is needed by one end and lacking at the other.
    Config lacks = c;
    lacks.caps &= ~(1u << n);
    CHECK(offered_to(lacks, [&](wire::Hello& h) { h.needs = 1u << n; }) == Refusal::CAPS);
    Config needs = c;
    needs.needs = 1u << n;
    CHECK(offered_to(needs, [&](wire::Hello& h) { h.caps &= ~(1u << n); }) == Refusal::CAPS);
    CHECK(offered_to(needs, [](wire::Hello&) {}) == Refusal::NONE);
  }
}

TEST_CASE("ref: what only one end can do is not used", "[ref][setup]") {
  // Operations: refused to the caller at both ends, whichever of them lacks the capability.
  const std::vector<std::pair<WrOp, wire::Cap>> ops = {
      {WrOp::kSend, wire::Cap::SEND},         {WrOp::kSendImm, wire::Cap::SEND},
      {WrOp::kWriteImm, wire::Cap::SEND},     {WrOp::kWrite, wire::Cap::WRITE},
      {WrOp::kWriteSignal, wire::Cap::WRITE}, {WrOp::kRead, wire::Cap::READ},
      {WrOp::kFetchAdd, wire::Cap::ATOMIC},   {WrOp::kCompareSwap, wire::Cap::ATOMIC}};
  for (const wire::Cap lacking : {wire::Cap::WRITE, wire::Cap::SEND, wire::Cap::READ, wire::Cap::ATOMIC}) {
    for (const unsigned who : {0u, 1u}) {
      CAPTURE(wire::name(lacking), who);
      const Config all = two_paths();
      Config less = all;
      less.caps &= ~bit(lacking);
      Net net(all);
      configure(net, who, less);
      const auto [a, b] = net.open(0, 1);
      for (unsigned n = 0; n < 2; ++n) {
        for (const auto& [op, cap] : ops)
          CHECK(net.end(n).post(n == 0 ? a : b, 0, request(op, 1), 0) ==
                (cap == lacking ? wire::Err::BAD_OPCODE : wire::Err::OK));
        CHECK(net.end(n).post_recv(n == 0 ? a : b, 0, 1, Host::kBase, 100, 0) ==
              (lacking == wire::Cap::SEND ? wire::Err::BAD_OPCODE : wire::Err::OK));
      }
    }
  }
  // A fence: the source port stays. A share: it is not looked at, though two senders fill the port.
  for (const wire::Cap lacking : {wire::Cap::BLOCKS, wire::Cap::FENCE, wire::Cap::SHARE}) {
    for (const unsigned who : {0u, 1u}) {
      CAPTURE(wire::name(lacking), who);
      Config less = two_paths();
      less.caps &= ~bit(lacking);
      Net net(two_paths(), 3);
      if (who == 0) configure(net, 2, less);
      configure(net, who, less);
      const auto first = net.open(0, 1), second = net.open(2, 1);
      const std::uint16_t sport = net.end(0).path_sport(first.first, 0);
      unsigned fences = 0;
      double least = 1;
      net.fate = [&](const Sent& s) {
        fences += s.packet.opcode == Opcode::FENCE ? 1 : 0;
        least = std::min(least, net.end(0).share_of_line(first.first, 0));
        return Fate{};
      };
      for (unsigned i = 0; i < 8; ++i) {
        net.end(0).post(first.first, 0, write_of(i, 0, i * 16384, 16384), 0);
        net.end(2).post(second.first, 0, write_of(i, 0, 0x40000 + i * 16384, 16384), 0);
      }
      net.run_for(10 * kUs);
      net.end(0).change_sport(first.first, 0, net.now());
      REQUIRE(net.run_until([&] { return net.completions(0) == 8 && net.completions(2) == 8; }, 20 * kMs));
      net.run_for(50 * kUs);
      CHECK((fences == 0) == (lacking == wire::Cap::FENCE));
      CHECK((net.end(0).path_sport(first.first, 0) == sport) == (lacking == wire::Cap::FENCE));
      CHECK((least == 1) == (lacking == wire::Cap::SHARE));
    }
  }
}

TEST_CASE("ref: first PSNs are random over all 24 bits and differ between connections and seeds",
          "[ref][setup]") {
  constexpr unsigned kMany = 4096;
  const auto psns = [](std::uint64_t seed) {
    Config c = one_path();
    c.seed = seed;
    Host host(64);
    Endpoint end(c, host);
    std::vector<std::uint32_t> out;
    for (unsigned i = 0; i < kMany; ++i) out.push_back(end.offer().psn);
    return out;
  };
  const auto first = psns(1), other = psns(2);
  for (unsigned b = 0; b < 24; ++b) {
    const auto ones =
        std::count_if(first.begin(), first.end(), [&](std::uint32_t p) { return (p >> b & 1) != 0; });
    CAPTURE(b);
    CHECK(ones > kMany / 2 - 256);  // eight deviations
    CHECK(ones < kMany / 2 + 256);
  }
  CHECK(std::all_of(first.begin(), first.end(), [](std::uint32_t p) { return p < 1u << 24; }));
  CHECK(std::set<std::uint32_t>(first.begin(), first.end()).size() > kMany - 16);
  unsigned same = 0;
  for (unsigned i = 0; i < kMany; ++i) same += first[i] == other[i] ? 1 : 0;
  CHECK(same < 4);
  CHECK(psns(1) == first);
  // What is said is what is sent, in each direction.
  Net net(one_path());
  const wire::Hello mine = net.end(0).offer();
  const wire::Hello answer = net.end(1).accept(mine, Peer{0}, 0);
  REQUIRE(net.end(0).connect(mine, answer, Peer{1}, 0) == Refusal::NONE);
  CHECK(mine.psn != answer.psn);
  std::uint32_t sent[2] = {1u << 24, 1u << 24};
  net.fate = [&](const Sent& s) {
    if (s.packet.is_data() && sent[s.node] == 1u << 24) sent[s.node] = s.packet.psn;
    return Fate{};
  };
  REQUIRE(net.end(0).post(mine.conn, 0, write_of(1, 0, 0, 64), 0) == wire::Err::OK);
  REQUIRE(net.end(1).post(answer.conn, 0, write_of(1, 0, 0, 64), 0) == wire::Err::OK);
  REQUIRE(net.settle());
  CHECK(sent[0] == mine.psn);
  CHECK(sent[1] == answer.psn);
}

TEST_CASE("ref: the incarnation of the last life is refused, the next one is later", "[ref][setup]") {
  // Either end opens; now and then the offer is far ahead of what the other end would have taken, so that
  // the number wraps.
  Net net(one_path());
  const auto later = [](std::uint16_t a, std::uint16_t b) { return static_cast<std::int16_t>(a - b) > 0; };
  std::uint16_t last = 0;
  unsigned wraps = 0;
  for (unsigned life = 0; life < 200; ++life) {
    Endpoint& a = net.end(life % 2);
    Endpoint& b = net.end(1 - life % 2);
    wire::Hello mine = a.offer();
    if (life != 0) CHECK(later(mine.incarnation, last));
    if (life % 20 == 7) mine.incarnation = static_cast<std::uint16_t>(mine.incarnation + 0x3000);
    const wire::Hello answer = b.accept(mine, Peer{0}, 0);
    REQUIRE(answer.refusal == Refusal::NONE);
    CHECK(!later(mine.incarnation, answer.incarnation));
    if (life != 0) CHECK(later(answer.incarnation, last));
    if (life % 10 == 3) {
      // The answer of the last life once more.
      wire::Hello old = answer;
      old.incarnation = last;
      CHECK(a.connect(mine, old, Peer{0}, 0) == Refusal::INCARNATION);
      CHECK(a.post(mine.conn, 0, write_of(1, 0, 0, 64), 0) == wire::Err::BAD_CONN);
    } else {
      REQUIRE(a.connect(mine, answer, Peer{0}, 0) == Refusal::NONE);
      wraps += answer.incarnation < last ? 1 : 0;
      last = answer.incarnation;
      a.close(mine.conn, 0);
    }
    b.close(answer.conn, 0);
  }
  CHECK(wraps >= 1);
}

TEST_CASE("ref: an end without memory begins with a random incarnation", "[ref][setup]") {
  std::set<std::uint16_t> seen;
  std::uint16_t ones = 0, zeros = 0;
  for (std::uint64_t seed = 1; seed <= 64; ++seed) {
    Config c = one_path();
    c.seed = seed;
    Host host(64);
    Endpoint end(c, host);
    const std::uint16_t i = end.offer().incarnation;
    seen.insert(i);
    ones |= i;
    zeros |= static_cast<std::uint16_t>(~i);
  }
  CHECK(seen.size() >= 62);
  CHECK(ones == 0xffff);
  CHECK(zeros == 0xffff);
}

TEST_CASE("ref: MTU is the smaller of both, other ports or paths are refused", "[ref][setup]") {
  for (const unsigned small : {0u, 1u}) {
    CAPTURE(small);
    Config c = two_paths();
    c.mtu = 1024;
    Net net(c);
    Config less = c;
    less.mtu = 256;
    configure(net, small, less);
    const auto [a, b] = net.open(0, 1);
    unsigned largest[2] = {0, 0};
    net.fate = [&](const Sent& s) {
      if (s.packet.is_data()) largest[s.node] = std::max<unsigned>(largest[s.node], s.packet.payload_bytes);
      return Fate{};
    };
    REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 5000), 0) == wire::Err::OK);
    REQUIRE(net.end(1).post(b, 0, write_of(1, 0, 0, 5000), 0) == wire::Err::OK);
    REQUIRE(net.settle());
    CHECK(largest[0] == 256);
    CHECK(largest[1] == 256);
    CHECK((net.completions(0) == 1 && net.completions(1) == 1));
  }
  // Ports and paths are the same, or there is no connection; the answer says which they are.
  Host host(64);
  const Config c = two_paths();
  Endpoint a(c, host);
  for (const auto& [ports, paths] : {std::pair{2u, 2u}, {1u, 1u}, {1u, 2u}, {4u, 1u}}) {
    Config other = c;
    other.ports = ports;
    other.paths = paths;
    Endpoint b(other, host);
    CHECK(answer_to(b, a.offer()) == Refusal::PATHS);
    const wire::Hello mine = a.offer();
    CHECK(a.connect(mine, b.offer(), Peer{1}, 0) == Refusal::PATHS);
  }
  // Fewer streams are taken, more are refused.
  Config wide = c;
  wide.streams = 4;
  Net net(wide);
  configure(net, 0, c);
  const auto [n0, n1] = net.open(0, 1);
  CHECK(net.end(1).post(n1, 1, write_of(1, 0, 0, 64), 0) == wire::Err::OK);
  CHECK(net.end(1).post(n1, 2, write_of(1, 0, 0, 64), 0) == wire::Err::BAD_CONN);
  CHECK(net.end(0).post(n0, 2, write_of(1, 0, 0, 64), 0) == wire::Err::BAD_CONN);
  const wire::Hello answer = net.end(1).accept(net.end(0).offer(), Peer{0}, 0);
  CHECK((answer.ports == c.ports && answer.paths == c.paths && answer.streams == c.streams));
  CHECK(answer_to(net.end(0), net.end(1).offer()) == Refusal::STREAMS);
}

TEST_CASE("ref: a reorder distance needs both ends", "[ref][setup]") {
  // A packet is overtaken by two others of its path. Who waits for it gets it; who may not wait has told the
  // sender that it was lost.
  for (const unsigned lacking : {0u, 1u, 2u}) {  // 2: nobody
    CAPTURE(lacking);
    Config c = one_path();
    c.distance = 4;
    Net net(c);
    Config less = c;
    less.caps &= ~bit(wire::Cap::REORDER);
    if (lacking < 2) configure(net, lacking, less);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 16 * 256);
    unsigned count = 0;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (s.node == 0 && s.packet.is_data() && count++ == 3) f.late = 70 * kNs;
      return f;
    };
    w.post();
    REQUIRE(net.settle());
    w.check();
    CHECK(net.end(0).counters().resent == (lacking == 2 ? 0 : 1));
    CHECK((drops(net, 1, Drop::STALE) != 0) == (lacking != 2));
  }
}

TEST_CASE("ref: closing completes all once and later packets change nothing", "[ref][setup]") {
  Net net(two_paths());
  const auto [a, b] = net.open(0, 1);
  weft::test::Rng rng;
  rng.fill(net.host(0).memory);
  for (unsigned i = 0; i < 5; ++i) {
    REQUIRE(net.end(1).post_recv(b, 0, 100 + i, Host::kBase + 0x8000 + i * 1024, 1024, 0) == wire::Err::OK);
    REQUIRE(net.end(0).post_recv(a, 1, 200 + i, Host::kBase + 0x8000 + i * 1024, 1024, 0) == wire::Err::OK);
  }
  net.run_for(20 * kUs);  // the receives are known
  net.fate = [&](const Sent& s) {
    Fate f;
    f.held = s.node == 0;
    return f;
  };
  const WrOp ops[] = {WrOp::kSend,     WrOp::kSendImm, WrOp::kWrite,    WrOp::kWriteSignal,
                      WrOp::kWriteImm, WrOp::kRead,    WrOp::kFetchAdd, WrOp::kCompareSwap};
  for (unsigned i = 0; i < 8; ++i)
    REQUIRE(net.end(0).post(a, 0, request(ops[i], i), net.now()) == wire::Err::OK);
  REQUIRE(net.end(1).post(b, 1, request(WrOp::kWrite, 9), net.now()) == wire::Err::OK);
  net.run_for(3 * kUs);
  REQUIRE(net.held() >= 8);
  net.end(1).close(b, net.now());
  net.end(0).close(a, net.now());
  const auto done0 = net.host(0).done, done1 = net.host(1).done;
  REQUIRE(done0.size() == 8 + 5);
  REQUIRE(done1.size() == 1 + 5);
  unsigned request_id = 0, recv_id = 200;
  for (const Completion& d : done0) {
    CHECK(d.status == wire::Err::FLUSHED);
    CHECK(d.id == (d.what == Completed::kRequest ? request_id++ : recv_id++));
  }
  for (const Completion& d : done1) CHECK(d.status == wire::Err::FLUSHED);
  CHECK(net.end(0).in_use() == 0);
  CHECK(net.end(1).in_use() == 0);
  const auto writes0 = net.host(0).writes, writes1 = net.host(1).writes;
  const auto held = net.held();
  while (net.held() != 0) net.release(0);
  net.run_for(20 * kMs);
  CHECK(net.host(0).writes == writes0);
  CHECK(net.host(1).writes == writes1);
  CHECK(net.host(1).signals.empty());
  CHECK(net.host(0).done.size() == done0.size());
  CHECK(net.host(1).done.size() == done1.size());
  CHECK(drops(net, 1, Drop::CONN) == held);
  CHECK(net.end(0).post(a, 0, request(WrOp::kWrite, 1), net.now()) == wire::Err::BAD_CONN);
  for (const std::uint32_t nobody : {a + 1, 1u << 24, ~0u}) {
    CHECK(net.end(0).post(nobody, 0, request(WrOp::kWrite, 1), net.now()) == wire::Err::BAD_CONN);
    CHECK(net.end(0).post_recv(nobody, 0, 1, Host::kBase, 64, net.now()) == wire::Err::BAD_CONN);
  }
  // Closing what is closed gives no number away twice.
  net.end(0).close(a, net.now());
  CHECK(net.end(0).offer().conn != net.end(0).offer().conn);
}
