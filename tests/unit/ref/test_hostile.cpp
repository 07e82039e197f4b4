// SPDX-License-Identifier: Apache-2.0
// What a hostile peer, an unlucky network or a slow caller can do to an endpoint. Where the peer lies the
// test plays it by hand; where the network is unlucky two endpoints talk.
#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using wire::Drop;
using wire::Err;
using wire::Opcode;

namespace {

Config config(std::uint32_t ports, std::uint32_t paths) {
  Config c = two_paths();
  c.ports = ports;
  c.paths = paths;
  c.streams = 4;
  return c;
}

WorkRequest request(WrOp op, std::uint64_t id, std::uint32_t length) {
  return work_of(op, id, 0, 0, length);
}

/// An endpoint whose peer is the test.
struct Victim {
  explicit Victim(const Config& c) : host(1 << 20), end(c, host), scratch(16), peer(c, scratch) {
    end.add_region(Net::kKey, Host::kBase, host.memory.size(), kRemoteRead | kRemoteWrite | kRemoteAtomic);
  }
  struct Link {
    std::uint32_t conn;  // at the victim
    std::uint16_t incarnation;
    std::vector<std::uint32_t> next;  // PSN of the peer's next packet on each path
    std::uint32_t first;              // the victim's first PSN
  };
  Link open(std::uint32_t caps = 0x1ff, std::uint16_t streams = 4) {
    wire::Hello mine = peer.offer();
    mine.caps = caps;
    mine.streams = streams;
    const wire::Hello answer = end.accept(mine, Peer{}, now);
    REQUIRE(answer.refusal == wire::Refusal::NONE);
    const std::size_t paths = std::size_t{mine.ports} * mine.paths;
    return {answer.conn, answer.incarnation, std::vector<std::uint32_t>(paths, mine.psn), answer.psn};
  }
  Packet packet(const Link& l, Opcode op, std::uint8_t path = 0) const {
    Packet p{};
    p.opcode = op;
    p.path = path;
    p.incarnation = l.incarnation;
    p.conn = l.conn;
    p.timestamp = static_cast<std::uint32_t>(now / kNs);
    return p;
  }
  /// Hands over a data packet with `payload` bytes, in memory of exactly that size.
  void data(Link& l, Opcode op, std::uint16_t msg_no, std::uint32_t msg_len, std::uint32_t payload,
            std::uint32_t rkey = Net::kKey, std::uint32_t value = 0, std::uint16_t stream = 0) {
    Packet p = packet(l, op);
    p.psn = l.next[0]++ & 0xffffff;
    p.data = DataHeader{};
    p.data.va = op == Opcode::SEND ? 0 : Host::kBase;
    p.data.rkey = rkey;
    p.data.msg_len = msg_len;
    p.data.msg_no = msg_no;
    p.data.value = value;
    p.data.stream = stream;
    const std::vector<std::uint8_t> bytes(payload);
    p.payload_bytes = static_cast<std::uint16_t>(payload);
    p.payload = payload != 0 ? bytes.data() : nullptr;
    give(p);
  }
  /// An ack of everything below `base` (PSNs from the victim's first one), all of it delivered.
  Packet ack(const Link& l, Opcode op, std::uint8_t path, std::uint32_t base) const {
    Packet p = packet(l, op, path);
    p.ack = AckHeader{};
    p.ack.base = (l.first + base) & 0xffffff;
    p.ack.hist.fill(~std::uint32_t{0});
    p.ack.echo = p.timestamp;
    p.ack.share = 1u << 30;
    return p;
  }
  void give(const Packet& p) {
    now += 100 * kNs;
    end.on_packet(now, p.path / end.config().paths, p);
  }
  /// All that it has to say now.
  std::vector<Packet> take() {
    std::vector<Packet> out;
    Packet p;
    for (std::uint32_t port = 0; port < end.config().ports; ++port)
      while (end.next_packet(now, port, p)) out.push_back(p);
    return out;
  }
  static std::size_t count(const std::vector<Packet>& packets, Opcode op) {
    return static_cast<std::size_t>(
        std::count_if(packets.begin(), packets.end(), [op](const Packet& p) { return p.opcode == op; }));
  }
  std::size_t completions(Completed what) const {
    return static_cast<std::size_t>(std::count_if(host.done.begin(), host.done.end(),
                                                  [what](const Completion& c) { return c.what == what; }));
  }
  std::uint64_t drops(Drop why) const { return end.counters().drop[static_cast<unsigned>(why)]; }

  Ps now = 10 * kUs;
  Host host;
  Endpoint end;
  Host scratch;
  Endpoint peer;
};

}  // namespace

// ---- A peer that lies.

TEST_CASE("ref: SENDs that all claim one receive complete no receive that was not posted", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  for (std::uint64_t id = 1; id <= 2; ++id)
    REQUIRE(v.end.post_recv(l.conn, 0, id, Host::kBase, 64, v.now) == Err::OK);
  for (const std::uint16_t n : {1, 2, 3}) v.data(l, Opcode::SEND, n, 4, 4, 1);
  v.data(l, Opcode::SEND, 0, 4, 4, 0);
  REQUIRE(v.completions(Completed::kRecv) == 2);
  CHECK(v.host.done[0].id == 1);
  CHECK(v.host.done[1].id == 2);
  CHECK(v.drops(Drop::MSG) == 1);  // number 2; the rest went with it
  v.end.close(l.conn, v.now);
  CHECK(v.completions(Completed::kRecv) == 2);
}

TEST_CASE("ref: the packets of a SEND name one receive", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  for (std::uint64_t id = 1; id <= 2; ++id)
    REQUIRE(v.end.post_recv(l.conn, 0, id, Host::kBase + 64 * id, 64, v.now) == Err::OK);
  v.data(l, Opcode::SEND, 0, 8, 4, 0);
  v.data(l, Opcode::SEND, 0, 8, 4, 1);
  CHECK(v.drops(Drop::MSG) == 1);
  CHECK(v.host.writes[128] == 0);
}

TEST_CASE("ref: a READ or an atomic that is cut short is refused", "[ref][hostile]") {
  for (const Opcode op : {Opcode::READ, Opcode::FETCH_ADD, Opcode::COMPARE_SWAP}) {
    Victim v(config(1, 1));
    auto l = v.open();
    v.data(l, op, 0, 8, 4);  // under ASan, reading the rest of the request is an error as well
    v.data(l, op, 0, 8, 12);
    CHECK(v.drops(Drop::MSG) == 1);
    CHECK(v.drops(Drop::STREAM) == 1);
    const auto said = v.take();
    CHECK(Victim::count(said, Opcode::READ_DATA) + Victim::count(said, Opcode::ATOMIC_REPLY) == 0);
    CHECK(Victim::count(said, Opcode::STREAM_ERROR) == 1);
  }
}

TEST_CASE("ref: a peer that goes on asking with 64 reads unanswered fails its stream", "[ref][hostile]") {
  for (const std::uint32_t length : {0u, 4096u}) {
    Victim v(config(1, 1));
    auto l = v.open();
    for (std::uint16_t n = 0; n < 2000; ++n) v.data(l, Opcode::READ, n, length, 16);
    CHECK(v.end.in_use() < 200);
    CHECK(v.drops(Drop::MSG) > 0);
    CHECK(v.end.counters().stream_failed == 1);
  }
}

TEST_CASE("ref: packets larger than the MTU cost one error a stream", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  REQUIRE(v.end.post_recv(l.conn, 0, 1, Host::kBase, 64, v.now) == Err::OK);
  for (unsigned n = 0; n < 2000; ++n) v.data(l, Opcode::WRITE, static_cast<std::uint16_t>(0u - n), 512, 512);
  CHECK(v.end.in_use() < 100);
  CHECK(v.completions(Completed::kRecv) == 1);
}

TEST_CASE("ref: fences without end are answered once a port", "[ref][hostile]") {
  Victim v(config(2, 2));
  const auto l = v.open();
  for (unsigned n = 0; n < 1000; ++n) {
    Packet p = v.packet(l, Opcode::FENCE);
    p.psn = l.next[0];
    v.end.on_packet(v.now, n % 2, p);
  }
  CHECK(Victim::count(v.take(), Opcode::FENCE_ANSWER) == 2);
  Packet again = v.packet(l, Opcode::FENCE);
  again.psn = l.next[0];
  v.give(again);
  CHECK(Victim::count(v.take(), Opcode::FENCE_ANSWER) == 1);
}

TEST_CASE("ref: an operation that the set-up did not agree on is not served", "[ref][hostile]") {
  const auto without = [](wire::Cap cap) { return 0x1ffu & ~(1u << static_cast<unsigned>(cap)); };
  {
    Victim v(config(1, 1));
    auto l = v.open(without(wire::Cap::ATOMIC));
    v.data(l, Opcode::FETCH_ADD, 0, 8, 32);
    CHECK(v.drops(Drop::MSG) == 1);
    CHECK(v.host.writes[0] == 0);
  }
  {
    Victim v(config(1, 1));
    auto l = v.open(without(wire::Cap::FENCE));
    Packet p = v.packet(l, Opcode::FENCE);
    p.psn = l.next[0];
    v.give(p);
    CHECK(Victim::count(v.take(), Opcode::FENCE_ANSWER) == 0);
  }
}

TEST_CASE("ref: a status in the ack of a last packet spoils nobody else's requests", "[ref][hostile]") {
  Victim v(config(1, 2));
  auto x = v.open(0x1ffu & ~(1u << static_cast<unsigned>(wire::Cap::STREAMS)));
  auto y = v.open(0x1ff, 1);  // has fewer streams
  REQUIRE(v.end.post(x.conn, 3, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
  REQUIRE(v.end.post(y.conn, 0, request(WrOp::kWrite, 2, 64), v.now) == Err::OK);
  std::uint8_t path_x = 0, path_y = 0;
  for (const Packet& p : v.take())
    if (p.opcode == Opcode::WRITE)
      (p.incarnation == x.incarnation && p.data.stream == 3 ? path_x : path_y) = p.path;
  Packet a = v.ack(x, Opcode::ACK, path_x, 1);
  a.ack.status = static_cast<std::uint8_t>(Err::REMOTE_KEY);
  v.give(a);
  REQUIRE(v.host.done.size() == 1);  // it was delivered
  CHECK(v.host.done[0].id == 1);
  CHECK(v.host.done[0].status == Err::OK);
  v.give(v.ack(y, Opcode::ACK, path_y, 1));
  REQUIRE(v.host.done.size() == 2);
  CHECK(v.host.done[1].id == 2);
}

TEST_CASE("ref: a peer's error that is none of its own to tell is an unknown operation", "[ref][hostile]") {
  const std::pair<unsigned, Err> told[] = {
      {static_cast<unsigned>(Err::REMOTE_KEY), Err::REMOTE_KEY},
      {static_cast<unsigned>(Err::RECV_LENGTH), Err::RECV_LENGTH},
      {static_cast<unsigned>(Err::FLUSHED), Err::REMOTE_OP},
      {static_cast<unsigned>(Err::RETRY_LIMIT), Err::REMOTE_OP},
      {static_cast<unsigned>(Err::MEM_ERROR), Err::REMOTE_OP},
      {255, Err::REMOTE_OP},
  };
  for (const auto& [code, status] : told) {
    CAPTURE(code);
    Victim v(config(1, 1));
    auto l = v.open();
    REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
    v.data(l, Opcode::STREAM_ERROR, 0, 0, 0, 0, code);
    REQUIRE(v.host.done.size() == 1);
    CHECK(v.host.done[0].status == status);
  }
}

TEST_CASE("ref: a peer that closes every epoch turns no more of them than a life allows (W4)",
          "[ref][hostile]") {
  Victim v(config(1, 1));
  const auto l = v.open();
  const Ps from = v.now;
  unsigned epoch = 0;  // the last one that the victim opened
  REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
  // Each epoch is confirmed at once, its data is never delivered, and each probe is told that the epoch is
  // closed: for the life of a packet and a half.
  const auto turn = [&] {
    v.end.on_timer(v.now);
    for (const Packet& p : v.take()) {
      const bool opens = p.opcode == Opcode::PROBE && p.epoch != 0 && p.psn == 0;
      if (p.opcode != Opcode::PROBE && p.opcode != Opcode::FENCE) continue;
      if (opens) ++epoch;
      Packet a = v.ack(l, opens ? Opcode::ACK : Opcode::FENCE_ANSWER, 0, 0);
      a.epoch = p.epoch;
      if (p.epoch != 0) a.ack.base = 1;
      a.ack.echo = p.timestamp;
      v.give(a);
    }
    v.now += 100 * kNs;
  };
  while (v.now < from + 1 * kMs) turn();
  CHECK(epoch > 100);
  CHECK(epoch <= 254 / 2);
  const unsigned before = epoch;
  while (v.now < from + 1'500 * kUs) turn();
  CHECK(epoch > before);
}

TEST_CASE("ref: a fence answer that nobody asked for changes nothing", "[ref][hostile]") {
  Victim v(config(2, 1));
  const auto l = v.open();
  const auto forged = [&](std::uint32_t base) {
    v.give(v.ack(l, Opcode::FENCE_ANSWER, 0, base));
    CHECK(v.end.path_state(l.conn, 0) == PathState::kGood);
    CHECK(Victim::count(v.take(), Opcode::FENCE) == 0);
  };
  forged(0);  // nothing was ever sent
  CHECK(v.drops(Drop::ACK_OLD) == 1);
  // With data out, and no probe yet.
  REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
  Packet sent;
  REQUIRE(v.end.next_packet(v.now, 0, sent));
  REQUIRE(sent.opcode == Opcode::WRITE);
  v.give(v.ack(l, Opcode::FENCE_ANSWER, 0, 0));
  v.give(v.ack(l, Opcode::FENCE_ANSWER, 0, 1));
  CHECK(v.drops(Drop::ACK_OLD) == 3);
  CHECK(v.host.done.empty());
  CHECK(v.end.path_state(l.conn, 0) == PathState::kGood);
  // With its probe out: an echo from before it, or of a time to come.
  const auto probes = v.take();
  REQUIRE(Victim::count(probes, Opcode::PROBE) == 1);
  for (const std::uint32_t off : {~0u, 0u - 1000u, 10'000u}) {
    Packet p = v.ack(l, Opcode::FENCE_ANSWER, 0, 0);
    p.ack.echo = probes[0].timestamp + off;
    v.give(p);
  }
  CHECK(v.drops(Drop::ACK_OLD) == 6);
  CHECK(v.end.path_state(l.conn, 0) == PathState::kGood);
  // One that echoes the probe may be true, and is believed when a fence is answered the same: not by this.
  Packet p = v.ack(l, Opcode::FENCE_ANSWER, 0, 1);
  p.ack.echo = probes[0].timestamp;
  v.give(p);
  CHECK(v.host.done.empty());
  CHECK(v.end.path_state(l.conn, 0) == PathState::kFencing);
  v.give(p);  // the fence has not left
  CHECK(v.host.done.empty());
  const auto fences = v.take();
  REQUIRE(Victim::count(fences, Opcode::FENCE) == 1);
  CHECK(fences[0].epoch == 0);
  CHECK(fences[0].psn == ((l.first + 2) & 0xffffff));  // of its own path, whatever carries it
  v.give(p);                                           // and this echoes the probe, not the fence
  CHECK(v.host.done.empty());
  CHECK(v.end.path_state(l.conn, 0) == PathState::kFencing);
  v.give(v.ack(l, Opcode::FENCE_ANSWER, 0, 1));
  REQUIRE(v.completions(Completed::kRequest) == 1);
  CHECK(v.host.done[0].status == Err::OK);
}

TEST_CASE("ref: an epoch that is closed before its first ack is fenced, and opened if it was not",
          "[ref][hostile]") {
  // Somebody forges, of an epoch that nothing has confirmed, a fence (its first probe arrived, the ack was
  // lost) or an answer to that probe (which was lost). There is no other path.
  for (const bool answer : {false, true}) {
    CAPTURE(answer);
    Config c = config(1, 1);
    c.tuning.give_up = 50 * kMs;
    Net net(c, 2, 1 << 20, false);
    const auto [a, b] = net.open(0, 1);
    Writes w(net, a, 256);
    bool forged = false;
    net.fate = [&](const Sent& s) {
      Fate f;
      const bool first = s.packet.epoch == 1 && !forged;
      if (first && s.packet.opcode == Opcode::ACK) f.lost = true;
      if (!first || s.packet.opcode != Opcode::PROBE) return f;
      f.lost = answer;
      forged = answer || s.now > 60 * kUs;
      if (!forged) return f;
      Packet p = s.packet;
      p.opcode = answer ? Opcode::FENCE_ANSWER : Opcode::FENCE;
      p.conn = answer ? a : b;
      p.psn = 1;
      p.ack = AckHeader{};
      p.ack.base = 1;
      p.ack.hist.fill(~0u);
      p.ack.echo = s.packet.timestamp;
      net.inject(answer ? 0 : 1, 0, p, 1 * kUs);
      return f;
    };
    w.post(2);
    REQUIRE(net.run_until([&] { return w.done(); }, 1 * kMs));
    REQUIRE(net.end(0).change_sport(a, 0, net.now()));
    net.run_for(300 * kUs);
    REQUIRE(forged);
    w.post(20);
    const bool done = net.run_until([&] { return w.done(); }, 10 * kMs);
    INFO(net.end(0).state(a));
    REQUIRE(done);
    w.check();
    CHECK(net.completions(0, Completed::kConnection) == 0);
  }
}

TEST_CASE("ref: who forges fences and their answers costs failovers and nothing else", "[ref][hostile]") {
  // The forger knows everything but what is read from the wire at this moment: it speaks before it hears.
  for (const std::uint32_t paths : {1u, 2u}) {
    for (const bool fences : {false, true}) {
      CAPTURE(paths, fences);
      Config c = two_paths();
      c.ports = 1;
      c.paths = paths;
      c.tuning.give_up = 20 * kMs;
      Net net(c, 2, 1 << 20, false);
      const auto [a, b] = net.open(0, 1);
      Writes w(net, a, 16 * 256);
      weft::test::Rng rng(weft::test::seed(), paths);
      Packet last{};
      net.fate = [&](const Sent& s) {
        if (s.node == 0 && s.packet.is_data()) last = s.packet;
        Fate f;
        f.lost = rng.chance(0.02);
        return f;
      };
      for (unsigned i = 0; i < 400; ++i) {
        if (w.posted < 200) w.post();
        net.run_for(static_cast<Ps>(rng.below(6'000)) * kNs);
        if (last.conn != b) continue;
        Packet p = last;
        p.payload = nullptr;
        p.payload_bytes = 0;
        p.timestamp = static_cast<std::uint32_t>(net.now() / kNs);
        if (fences) {
          p.opcode = Opcode::FENCE;
          p.psn = (p.psn + 1) & 0xffffff;
          net.inject(1, 0, p);
        } else {
          p.opcode = Opcode::FENCE_ANSWER;
          p.conn = a;
          p.ack = AckHeader{};
          p.ack.base = p.psn;
          p.ack.hist.fill(rng.chance(0.5) ? ~0u : 0u);
          p.ack.echo = p.timestamp;
          // While a fence is out it would have to guess the time since: that is told in the table.
          if (net.end(0).path_state(a, p.path) != PathState::kFencing) net.inject(0, 0, p);
        }
      }
      REQUIRE(net.run_until([&] { return w.done(); }, 200 * kMs));
      w.check();
      CHECK(net.end(0).counters().fences_sent > (fences ? 20u : 0u));
    }
  }
}

TEST_CASE("ref: a hole waits for packets that arrive, however far ahead they lie", "[ref][hostile]") {
  Config c = config(1, 1);
  c.distance = 4;
  Victim v(c);
  auto l = v.open();
  const std::uint32_t first = l.next[0];
  const auto arrives = [&](std::uint32_t psn) {
    l.next[0] = first + psn;
    v.data(l, Opcode::WRITE, static_cast<std::uint16_t>(std::min(psn, 63u)), 0, 0);
    v.now += 2 * kUs;
    v.end.on_timer(v.now);  // no ack is held back
    const auto said = v.take();
    REQUIRE(Victim::count(said, Opcode::ACK) != 0);  // of a loss perhaps two
    return (said.back().ack.base - first) & 0xffffff;
  };
  CHECK(arrives(0) == 1);
  CHECK(arrives(6) == 1);
  CHECK(arrives(1) == 2);
  CHECK(arrives(60) == 2);
  CHECK(arrives(9) == 2);
  CHECK(arrives(4) == 5);   // the fourth behind 2 and 3: 4, 6, 9 and 60
  CHECK(arrives(61) == 7);  // 6, 9, 60 and 61 behind 5
  CHECK(v.drops(Drop::STALE) == 0);
  // A window full of holes: what is 255 ahead is taken, and the base goes as far as D packets allow.
  CHECK(arrives(7 + 255) == 10);  // 9, 60, 61 and 262 behind 7 and 8
}

TEST_CASE("ref: a responder holds 64 answers of a stream, and refuses the next request", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  for (std::uint16_t n = 0; n < 64; ++n) v.data(l, Opcode::READ, n, 8, wire::ReadRequest::kBytes);
  CHECK(v.drops(Drop::MSG) == 0);
  const auto held = v.end.in_use();
  for (std::uint16_t n = 64; n < 80; ++n) v.data(l, Opcode::READ, n, 8, wire::ReadRequest::kBytes);
  CHECK(v.drops(Drop::MSG) == 1);
  CHECK(v.drops(Drop::STREAM) == 15);  // the stream has failed
  CHECK(v.end.in_use() == held + 1);   // the error
}

TEST_CASE("ref: a message that has half arrived when a later one fails completes", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  const std::vector<std::uint8_t> bytes(64);
  const auto half = [&](std::uint64_t offset) {
    Packet p = v.packet(l, Opcode::WRITE_SIGNAL);
    p.psn = l.next[0]++ & 0xffffff;
    p.data = DataHeader{};
    p.data.va = Host::kBase + offset;
    p.data.rkey = Net::kKey;
    p.data.msg_len = 128;
    p.data.sem = 3;
    p.data.value = 1;
    p.payload_bytes = 64;
    p.payload = bytes.data();
    v.give(p);
  };
  half(0);
  v.data(l, Opcode::WRITE, 1, 64, 64, 0xbad);
  CHECK(v.drops(Drop::KEY) == 1);
  half(64);
  CHECK(v.host.signals.size() == 1);
}

TEST_CASE("ref: a block of another port's path is none", "[ref][hostile]") {
  Victim v(config(2, 1));
  const auto l = v.open();
  REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 512), v.now) == Err::OK);
  Packet sent;
  for (const std::uint32_t port : {1u, 0u}) {
    REQUIRE(v.end.next_packet(v.now, port, sent));
    REQUIRE(sent.opcode == Opcode::WRITE);
  }
  Packet p = v.ack(l, Opcode::ACK, 0, 1);
  p.ack.block_count = 1;
  p.ack.blocks[0] = {(l.first + 1) & 0xffffff, 0, ~0u, 1, 0};
  v.give(p);
  CHECK(v.drops(Drop::ACK_BAD) == 1);
  CHECK(v.host.done.empty());
  v.give(v.ack(l, Opcode::ACK, 1, 1));
  CHECK(v.completions(Completed::kRequest) == 1);
}

// ---- Ends that owe the application something.

TEST_CASE("ref: a request whose own memory fails is told so, all others are flushed", "[ref][hostile]") {
  Victim v(config(1, 1));
  const auto l = v.open();
  for (std::uint64_t id = 0; id < 6; ++id) {
    WorkRequest w = request(WrOp::kWrite, id, 64);
    if (id == 3) w.local_va = 0;  // in stream 1, behind number 2
    REQUIRE(v.end.post(l.conn, static_cast<std::uint16_t>(id / 2), w, v.now) == Err::OK);
  }
  v.take();
  while (v.completions(Completed::kConnection) == 0 && v.now < 100 * kMs) {
    v.now = v.end.next_timer();
    v.end.on_timer(v.now);
    v.take();
  }
  REQUIRE(v.completions(Completed::kRequest) == 6);
  for (const Completion& c : v.host.done) {
    CAPTURE(c.id);
    if (c.what == Completed::kRequest) CHECK(c.status == (c.id == 3 ? Err::MEM_ERROR : Err::FLUSHED));
  }
  CHECK(v.host.done.back().what == Completed::kConnection);
  CHECK(v.host.done.back().status == Err::MEM_ERROR);
}

TEST_CASE("ref: a stream that fails with many requests posted completes them all", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  const unsigned posted = 70'000;  // message numbers wrap
  for (unsigned i = 0; i < posted; ++i)
    REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, i, 0), v.now) == Err::OK);
  v.data(l, Opcode::STREAM_ERROR, 0, 0, 0, 0, static_cast<std::uint32_t>(Err::REMOTE_KEY));
  REQUIRE(v.completions(Completed::kRequest) == posted);
  CHECK(v.host.done[0].status == Err::REMOTE_KEY);
  CHECK(v.host.done[posted - 1].status == Err::FLUSHED);
}

TEST_CASE("ref: a READ that fails in the responder's memory leaves no receive posted", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  REQUIRE(v.end.post_recv(l.conn, 0, 7, Host::kBase, 64, v.now) == Err::OK);
  v.host.bad_from = Host::kBase;
  v.host.bad_to = Host::kBase + 64;
  v.data(l, Opcode::READ, 0, 64, 16);
  const auto said = v.take();
  CHECK(Victim::count(said, Opcode::STREAM_ERROR) == 1);
  REQUIRE(v.completions(Completed::kRecv) == 1);
  CHECK(v.host.done[0].status == Err::FLUSHED);
}

TEST_CASE("ref: closing with packets of a failed stream under way leaves nothing behind", "[ref][hostile]") {
  Victim v(config(1, 1));
  auto l = v.open();
  for (unsigned i = 0; i < 2; ++i)
    REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, i, 700), v.now) == Err::OK);
  REQUIRE(Victim::count(v.take(), Opcode::WRITE) >= 2);
  v.data(l, Opcode::STREAM_ERROR, 0, 0, 0, 0, static_cast<std::uint32_t>(Err::REMOTE_KEY));
  REQUIRE(v.completions(Completed::kRequest) == 2);
  v.end.close(l.conn, v.now);
  CHECK(v.end.in_use() == 0);
}

TEST_CASE("ref: the answer for an idle path does not stand for that of a busy one (W8)", "[ref][hostile]") {
  Victim v(config(1, 2));
  auto l = v.open();
  REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
  const auto sent = v.take();
  REQUIRE(Victim::count(sent, Opcode::WRITE) == 1);
  const std::uint8_t busy = sent[0].path, idle = busy ^ 1;
  v.end.change_sport(l.conn, idle, v.now);
  CHECK(Victim::count(v.take(), Opcode::FENCE) == 1);
  // Now the connection fails: nothing more of it can be read.
  WorkRequest bad = request(WrOp::kWrite, 2, 64);
  bad.local_va = 0;
  REQUIRE(v.end.post(l.conn, 0, bad, v.now) == Err::OK);
  CHECK(Victim::count(v.take(), Opcode::FENCE) == 1);
  v.give(v.ack(l, Opcode::FENCE_ANSWER, idle, 0));
  v.end.on_timer(v.now);
  CHECK(v.host.done.empty());
  v.give(v.ack(l, Opcode::FENCE_ANSWER, busy, 0));
  v.end.on_timer(v.now);
  CHECK(v.completions(Completed::kRequest) == 2);
  CHECK(v.completions(Completed::kConnection) == 1);
}

// ---- Paths, planes and clocks.

TEST_CASE("ref: a port that is down collects one fence a path", "[ref][hostile]") {
  Victim v(config(2, 2));
  const auto l = v.open();
  REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 1024), v.now) == Err::OK);
  REQUIRE(Victim::count(v.take(), Opcode::WRITE) == 4);
  for (std::uint32_t path = 0; path < 4; ++path) v.end.change_sport(l.conn, path, v.now);
  // Neither MAC asks for anything for long.
  for (const Ps until = v.now + 50 * kMs; v.now < until; v.now = std::max(v.now + 1, v.end.next_timer()))
    v.end.on_timer(v.now);
  const auto said = v.take();
  CHECK(Victim::count(said, Opcode::FENCE) >= 4);
  CHECK(Victim::count(said, Opcode::FENCE) <= 4 * 2);
  // And the next repetitions leave as ever.
  std::size_t fences = 0;
  for (const Ps until = v.now + 5 * kMs; v.now < until; v.now = std::max(v.now + 1, v.end.next_timer())) {
    v.end.on_timer(v.now);
    fences += Victim::count(v.take(), Opcode::FENCE);
  }
  CHECK(fences > 8);
}

TEST_CASE("ref: a change of source port that cannot be is refused to the caller", "[ref][hostile]") {
  Victim v(config(1, 2));
  const auto l = v.open();
  CHECK_FALSE(v.end.change_sport(l.conn + 1, 0, v.now));
  CHECK_FALSE(v.end.change_sport(l.conn, 2, v.now));
  const std::uint16_t sport = v.end.path_sport(l.conn, 0);
  REQUIRE(v.end.change_sport(l.conn, 0, v.now));
  CHECK(v.end.change_sport(l.conn, 0, v.now));  // it is under way
  v.take();
  v.give(v.ack(l, Opcode::FENCE_ANSWER, 0, 0));
  CHECK_FALSE(v.end.change_sport(l.conn, 0, v.now));  // its epoch is not confirmed
  const std::uint16_t moved = v.end.path_sport(l.conn, 0);
  CHECK(moved != sport);
  // As often as it may in the life of a packet; what was refused does not happen later by itself.
  unsigned changes = 0;
  bool more = true;
  for (unsigned epoch = 1; epoch < 300 && more; ++epoch) {
    v.take();
    Packet a = v.ack(l, Opcode::ACK, 0, 0);
    a.epoch = static_cast<std::uint8_t>(epoch);
    a.ack.base = 1;
    v.give(a);
    more = v.end.change_sport(l.conn, 0, v.now);
    changes += more ? 1 : 0;
    a = v.ack(l, Opcode::FENCE_ANSWER, 0, 0);
    a.epoch = static_cast<std::uint8_t>(epoch);
    a.ack.base = 1;
    v.take();
    if (more) v.give(a);
  }
  CHECK_FALSE(more);
  CHECK(changes > 100);
  CHECK(Victim::count(v.take(), Opcode::FENCE) == 0);
}

TEST_CASE("ref: no wait is longer than clocks can tell, and none shorter than a long round trip",
          "[ref][hostile]") {
  {
    Config c = config(1, 1);
    c.rtt_init = 1000 * kMs;
    c.tuning.dead_backoff_max = c.tuning.backoff_max = 16;
    Victim v(c);
    const auto l = v.open();
    REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
    std::vector<Ps> probes;
    for (const Ps until = v.now + 9'000 * kMs; v.now < until;
         v.now = std::max(v.now + 1, v.end.next_timer())) {
      v.end.on_timer(v.now);
      if (Victim::count(v.take(), Opcode::PROBE) != 0) probes.push_back(v.now);
    }
    REQUIRE(probes.size() >= 8);
    for (std::size_t i = 1; i < probes.size(); ++i) CHECK(probes[i] - probes[i - 1] <= 1000 * kMs);
  }
  Config c = config(1, 1);
  c.rtt_init = 40 * kMs;
  Net net(c);
  net.delay = 20 * kMs;
  const std::uint32_t a = net.open(0, 1).first;
  for (unsigned i = 1; i <= 4; ++i) {
    REQUIRE(net.end(0).post(a, 0, request(WrOp::kWrite, i, 64), net.now()) == Err::OK);
    REQUIRE(net.settle(1000 * kMs));
    CHECK(net.end(0).counters().probes_sent == i);  // the one behind the tail
  }
}

TEST_CASE("ref: resends of a stream that failed are nothing more to send", "[ref][hostile]") {
  Config c = config(1, 1);
  c.tuning.double_loss = 1;  // the probe once
  Victim v(c);
  auto l = v.open();
  REQUIRE(v.end.post(l.conn, 1, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
  REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 2, 64), v.now) == Err::OK);
  REQUIRE(Victim::count(v.take(), Opcode::WRITE) == 2);
  Packet both = v.ack(l, Opcode::ACK, 0, 3);  // lost, the probe behind them is not
  both.ack.hist[0] = ~(3u << 29);
  v.give(both);
  v.data(l, Opcode::STREAM_ERROR, 0, 0, 0, 0, static_cast<std::uint32_t>(Err::REMOTE_KEY));
  unsigned resends = 0, probes = 0;
  for (const Packet& p : v.take()) {
    probes += p.opcode == Opcode::PROBE ? 1 : 0;
    if (p.opcode != Opcode::WRITE) continue;
    ++resends;
    CHECK(p.data.stream == 1);
    CHECK_FALSE(p.data.more);
  }
  CHECK(resends == 1);
  CHECK(probes == 1);  // at once
}

TEST_CASE("ref: a fence that was lost for long still goes round all paths (W1)", "[ref][hostile]") {
  Net net(config(2, 4));
  const std::uint32_t a = net.open(0, 1).first;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.now > 5 * kUs && (s.port == 1 || (s.packet.opcode == Opcode::FENCE && s.now < 400 * kMs));
    return f;
  };
  for (unsigned i = 0; i < 64; ++i)
    REQUIRE(net.end(0).post(a, 0, request(WrOp::kWrite, i, 4096), net.now()) == Err::OK);
  net.run_for(400 * kMs);
  REQUIRE(net.end(0).counters().fences_sent > 4 * 256);
  REQUIRE(net.completions(0) < 64);
  const bool all = net.run_until([&] { return net.completions(0) == 64; }, 50 * kMs);
  INFO(net.end(0).state(a));
  CHECK(all);
}

TEST_CASE("ref: who waits for a receive beside a dead plane is not failed", "[ref][hostile]") {
  Config c = config(2, 4);
  c.tuning.give_up = 20 * kMs;
  Net net(c);
  const auto [a, b] = net.open(0, 1);
  net.fate = outage(5 * kUs, kNever, 1);
  REQUIRE(net.end(0).post(a, 0, request(WrOp::kWrite, 1, 100'000), net.now()) == Err::OK);
  net.run_for(50 * kMs);
  REQUIRE(net.completions(0) == 1);
  REQUIRE(net.end(0).counters().path_failed > 0);
  REQUIRE(net.end(0).post(a, 0, request(WrOp::kSend, 2, 64), net.now()) == Err::OK);
  net.run_for(100 * kMs);
  REQUIRE(net.end(1).post_recv(b, 0, 1, Host::kBase, 64, net.now()) == Err::OK);
  net.run_for(10 * kMs);
  CHECK(net.completions(0, Completed::kConnection) == 0);
  REQUIRE(net.completions(0) == 2);
  CHECK(net.host(0).done[1].status == Err::OK);
}

TEST_CASE("ref: the only path in use dies: those that were never used take over", "[ref][hostile]") {
  Config c = config(1, 4);
  c.mtu = 1024;
  c.line_mbps = 25'000;
  c.rtt_init = 2 * kUs;  // cap of about one packet: one path
  Net net(c);
  net.delay = 500 * kNs;
  const std::uint32_t a = net.open(0, 1).first;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost =
        s.packet.path == 0 && s.packet.opcode != Opcode::FENCE && s.packet.opcode != Opcode::FENCE_ANSWER;
    return f;
  };
  REQUIRE(net.end(0).post(a, 0, request(WrOp::kWrite, 1, 20'000), net.now()) == Err::OK);
  const bool done = net.run_until([&] { return net.completions(0) == 1; }, 5 * kMs);
  INFO(net.end(0).state(a));
  CHECK(done);
}

TEST_CASE("ref: a path in probation can be a scout", "[ref][hostile]") {
  Net net(config(2, 1));
  const std::uint32_t a = net.open(0, 1).first;
  net.fate = outage(0, kNever, 1);
  net.end(0).change_sport(a, 0, 0);  // so that the packet goes by the other one, which is dead
  REQUIRE(net.end(0).post(a, 0, request(WrOp::kWrite, 1, 64), 0) == Err::OK);
  const bool done = net.run_until([&] { return net.completions(0) == 1; }, 5 * kMs);
  INFO(net.end(0).state(a));
  CHECK(done);
}

TEST_CASE("ref: a probe repeated after an outage of any length is answered with its own clock",
          "[ref][hostile]") {
  for (const Ps outage : {1 * kMs, 2'500 * kMs, 3'500 * kMs, 5'000 * kMs}) {
    Net net(config(1, 1));
    const std::uint32_t a = net.open(0, 1).first;
    // Packet and tail probe arrive; what is said of them does not, and then nothing.
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = s.now < outage && (s.node == 1 || s.now > 1 * kUs);
      return f;
    };
    REQUIRE(net.end(0).post(a, 0, request(WrOp::kWrite, 1, 64), net.now()) == Err::OK);
    net.run_for(outage);
    REQUIRE(net.end(1).counters().probes_taken == 1);
    const bool done = net.run_until([&] { return net.completions(0) == 1; }, 50 * kMs);
    INFO("outage of " << outage / kMs << " ms, " << net.end(0).state(a));
    CHECK(done);
  }
}

TEST_CASE("ref: a caller that comes seconds late stops no path's timer", "[ref][hostile]") {
  for (const Ps late : {1'000 * kMs, 2'300 * kMs}) {
    Victim v(config(1, 1));
    auto l = v.open();
    REQUIRE(v.end.post(l.conn, 0, request(WrOp::kWrite, 1, 64), v.now) == Err::OK);
    const auto first = v.take();
    REQUIRE(Victim::count(first, Opcode::PROBE) == 1);
    v.now += late;
    const Ps until = v.now + 100 * kMs;
    std::size_t probes = 0;
    while (v.now < until) {
      v.end.on_timer(v.now);
      probes += Victim::count(v.take(), Opcode::PROBE);
      v.now = std::max(v.now + 1, v.end.next_timer());
    }
    CHECK(probes > 10);
  }
}
