// SPDX-License-Identifier: Apache-2.0
// Congestion control by the numbers: caps, windows, shares, turns.
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;
using wire::Opcode;

namespace {

/// An endpoint alone with one path: the test is its peer, and acks what and when it likes.
class Solo {
 public:
  explicit Solo(const Config& c) : host_(1 << 20), end_(c, host_), pkt_(c.mtu + c.overhead) {
    const wire::Hello mine = end_.offer();
    wire::Hello theirs = mine;
    conn_ = mine.conn;
    incarnation_ = mine.incarnation;
    base_ = mine.psn;
    REQUIRE(end_.connect(mine, theirs, Peer{1}, 0) == wire::Refusal::NONE);
    for (unsigned i = 0; i < 60; ++i)
      REQUIRE(end_.post(conn_, 0, write_of(i, 0, 0, 1 << 20), 0) == wire::Err::OK);
  }
  Ps now = 0;
  /// Sends until the endpoint has to stop; how many data packets that were.
  unsigned fill() {
    unsigned n = 0;
    Packet p;
    while (end_.next_packet(now, 0, p)) {
      n += p.is_data() ? 1 : 0;
      stamp_ = p.timestamp;
    }
    return n;
  }
  /// The next `packets` PSNs are acked `rtt` after they left, the last `lost` of them as lost, `marked` bytes
  /// of them with a mark.
  void ack(unsigned packets, Ps rtt, unsigned marked = 0, unsigned lost = 0) {
    now += rtt;
    base_ = (base_ + packets) & 0xffffff;
    ce_ += marked;
    Packet p{};
    p.opcode = Opcode::ACK;
    p.conn = conn_;
    p.incarnation = incarnation_;
    p.ack.base = base_;
    p.ack.ce_bytes = ce_;
    p.ack.echo = stamp_;
    p.ack.share = 0xffffffff;
    p.ack.hist.fill(~0u);
    if (lost != 0) p.ack.hist[0] = ~0u >> lost;
    end_.on_packet(now, 0, p);
  }
  unsigned number(const char* name) {
    const std::string text = end_.state(conn_);
    const auto at = text.find(name);
    REQUIRE(at != std::string::npos);
    return static_cast<unsigned>(std::stoul(text.substr(at + std::strlen(name))));
  }
  unsigned window() { return number("window "); }
  unsigned cap() { return number("cap "); }
  unsigned active() { return number("paths in use "); }
  unsigned pkt() const { return pkt_; }

 private:
  Host host_;
  Endpoint end_;
  unsigned pkt_;
  std::uint32_t conn_ = 0, base_ = 0, ce_ = 0, stamp_ = 0;
  std::uint16_t incarnation_ = 0;
};

/// One path, and no calm: that is a rule of its own.
Config alone() {
  Config c = one_path();
  c.tuning.calm_caps = 1e6;
  return c;
}

/// Everything to node 0 passes one queue as fast as one port, which marks above 64 KiB.
class Bottleneck {
 public:
  Fate operator()(const Sent& s) {
    Fate f;
    if (s.node == 0) return f;
    const auto time = static_cast<Ps>((static_cast<double>(frame_bytes(s.packet)) + 24) / 12.5 * kNs);
    free_ = std::max(free_, s.now) + time;
    f.late = free_ - s.now - time;
    queue = static_cast<double>(f.late) / kNs * 12.5;
    f.ce = queue > 65536;
    return f;
  }
  double queue = 0;  // bytes

 private:
  Ps free_ = 0;
};

/// What a receiver grants at one port, from the rules alone: rates in byte/ns.
class ShareModel {
 public:
  explicit ShareModel(const Config& c)
      : t_(c.tuning), line_(c.line_mbps / 8000.0), pkt_(c.mtu + c.overhead), rtt_(c.rtt_init) {}

  void data(Ps now, unsigned sender, std::uint32_t bytes, bool more, bool ce, std::uint32_t ts) {
    if (now >= window_end_) {
      const Ps length = std::max(rtt_, packets(static_cast<double>(senders_.size())));
      marked_ = now < window_end_ + length && bytes_ != 0 ? ce_bytes_ / bytes_ : 0;
      bytes_ = ce_bytes_ = 0;
      window_end_ = now + length;
    }
    bytes_ += bytes;
    if (ce) ce_bytes_ += bytes;
    Sender& s = join(now, sender, ts);
    s.bytes += bytes;
    if (static_cast<std::int32_t>(ts - s.ts) < 0) return;
    if (s.leaving && ts != s.ts) s.returned = true;
    if (s.leaving && more) s.slow = false, s.fresh = true;
    if (!s.leaving && !more) s.reserved = 0;
    s.leaving = !more;
    s.ts = ts;
  }
  /// A probe that shows that what came before it was lost.
  void probe(Ps now, unsigned sender) {
    const bool known = roll(now).count(sender) != 0;
    if (!known) join(now, sender, 0).bytes = 1;
  }
  void close(unsigned sender) { senders_.erase(sender); }
  double grant(unsigned sender) {
    const auto n = static_cast<double>(senders_.size());
    double limited = 0, reserved = 0;
    for (const auto& [i, s] : senders_) {
      limited += s.leaving || s.slow ? 1 : 0;
      reserved += s.reserved;
    }
    const double all = (t_.share_fill - t_.share_drain * std::max(0.0, marked_ - t_.share_ce)) * line_;
    double share = n == 1 ? line_ : all / n;
    const auto it = senders_.find(sender);
    const bool stays = it == senders_.end() || !it->second.leaving;
    if (n > 1 && stays && n > limited) share = std::max(share, (all - reserved) / (n - limited));
    share = std::clamp(share, 1 / 65536.0, line_);
    if (it != senders_.end()) it->second.granted = share;
    return share;
  }

 private:
  struct Sender {
    double bytes = 0, last = 0, granted = 0, reserved = 0;
    bool leaving = false, returned = false, slow = false, fresh = true;
    std::uint32_t ts = 0;
  };
  Ps packets(double n) const { return static_cast<Ps>(n * pkt_ / line_ * kNs); }
  Sender& join(Ps now, unsigned sender, std::uint32_t ts) {
    const auto [it, fresh] = roll(now).try_emplace(sender);
    if (fresh) it->second.ts = ts;
    return it->second;
  }
  std::map<unsigned, Sender>& roll(Ps now) {
    if (now < end_) return senders_;
    if (now > end_ + (end_ - start_)) senders_.clear();  // two rounds without anything
    const double length = static_cast<double>(now - start_) / kNs;
    for (auto it = senders_.begin(); it != senders_.end();) {
      Sender& s = it->second;
      if (s.bytes == 0 && (s.last == 0 || s.leaving)) {
        it = senders_.erase(it);
        continue;
      }
      const double use = s.bytes / length;
      s.slow = !s.leaving && !s.fresh && use < t_.share_used * s.granted;
      s.reserved = s.slow || (s.leaving && s.returned) ? std::min(s.granted, t_.share_reserve * use) : 0;
      s.last = std::exchange(s.bytes, 0);
      s.fresh = s.returned = false;
      ++it;
    }
    start_ = now;
    end_ = now + std::max(rtt_, packets(4.0 * static_cast<double>(senders_.size())));
    return senders_;
  }

  Tuning t_;
  double line_, pkt_;
  Ps rtt_;
  std::map<unsigned, Sender> senders_;
  Ps start_ = 0, end_ = 0, window_end_ = 0;
  double bytes_ = 0, ce_bytes_ = 0, marked_ = 0;
};

}  // namespace

TEST_CASE("ref: windows, caps and active paths follow the rules by the numbers", "[ref][control]") {
  // Caps and paths: 100 Gb/s are 12.5 byte/ns.
  for (const unsigned paths : {1u, 4u, 64u}) {
    Config c = alone();
    c.paths = paths;
    Solo s(c);
    CAPTURE(paths);
    CHECK(s.cap() == 31'250);  // half of 12.5 * 5000
    CHECK(s.active() == std::min(paths, 31'250 / (2 * s.pkt())));
    s.fill();
    if (paths != 1) continue;
    s.ack(1, 9 * kUs);
    CHECK(s.cap() == static_cast<unsigned>(2.75 * 12.5 * 9000) + s.pkt());
    s.ack(1, 1 * kUs);  // an older clock: a longer round trip does not count
    CHECK(s.cap() == static_cast<unsigned>(2.75 * 12.5 * 9000) + s.pkt());
    s.fill();
    s.ack(1, 3 * kUs);
    CHECK(s.cap() == static_cast<unsigned>(2.75 * 12.5 * 3000) + s.pkt());
  }
  // The window: all of the cap at first, by what was delivered in slow start, then by a packet a window.
  Solo s(alone());
  CHECK(s.fill() == 88);  // of 352 bytes
  CHECK(s.window() == 31'250);
  s.ack(10, 10 * kUs);
  CHECK(s.window() == 31'250 + 10 * 352);
  CHECK(s.fill() == 20);
  s.ack(10, 10 * kUs, 5 * 352);
  CHECK(s.window() == 31'250 + 10 * 352 - 5 * 352 / 4);
  s.fill();
  double model = s.window(), start = model;
  unsigned marks = 0;
  for (unsigned i = 0; i < 300; ++i) {
    const unsigned marked = i % 50 == 49 ? 352 : 0;
    marks += marked != 0 ? 1 : 0;
    s.ack(8, 10 * kUs, marked);
    model += 352.0 * (8 * 352 - marked) / model - 0.25 * marked;
    s.fill();
  }
  REQUIRE(marks == 6);
  CHECK(model > start + 10 * 352);
  // Whole packets, sums in units of 64 bytes: a packet or two behind the model at most.
  CHECK(s.window() <= model + 352);
  CHECK(s.window() + 3 * 352 >= model);
  // It ends at the cap, and at one packet.
  Solo most(alone());
  most.fill();
  for (unsigned i = 0; i < 40; ++i) {
    most.ack(20, 2 * kUs);
    most.fill();
    CHECK(most.window() <= most.cap());
  }
  CHECK(most.window() == most.cap());
  for (unsigned i = 0; i < 1000; ++i) {
    most.ack(1, 2 * kUs, 352);
    most.fill();
    CHECK(most.window() >= 352);
  }
  CHECK(most.window() == 352);
}

TEST_CASE("ref: loss alone shrinks no window, with a long round trip it does", "[ref][control]") {
  Solo s(alone());
  s.fill();
  s.ack(10, 5 * kUs);
  s.fill();
  const unsigned window = s.window();
  s.ack(1, 5 * kUs, 352);  // the end of slow start
  const unsigned before = s.window();
  CHECK(before == window - 88);
  for (unsigned i = 0; i < 10; ++i) {
    s.fill();
    s.ack(2, 5 * kUs, 0, 2);
    CHECK(s.window() == before);
  }
  s.fill();
  // Exactly three round trips are not above three.
  s.ack(4, 15 * kUs, 0, 4);
  CHECK(s.window() == before);
  s.fill();
  s.ack(4, 15 * kUs + 100 * kNs, 0, 4);
  CHECK(s.window() == before - 352);  // a quarter of four packets
  s.fill();
  s.ack(4, 15 * kUs + 100 * kNs, 2 * 352, 2);
  CHECK(s.window() == before - 2 * 352);  // of those marked and those lost
}

TEST_CASE("ref: marks that cannot be cut a window by what the ack settles at most", "[ref][control]") {
  for (const unsigned marked : {31'250u + 353, 1u << 20, 0xffffffu}) {
    CAPTURE(marked);
    Solo s(alone());
    s.fill();
    s.ack(1, 5 * kUs);
    s.fill();
    const unsigned before = s.window();
    s.ack(8, 5 * kUs, marked);
    CHECK(s.window() >= before - 8 * 352 / 4);
    CHECK(s.window() <= before);
  }
}

TEST_CASE("ref: a window that limits nothing does not grow", "[ref][control]") {
  // The cap is small beside the windows of two paths: first because few packets are to be sent at a time.
  Net net(one_path());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 4 * 256);
  unsigned window = 0, seen = 0;
  net.delay = 10 * kUs;  // room in the cap for more
  for (unsigned i = 0; i < 60; ++i) {
    w.post();
    net.run_for(500 * kNs);
    const std::string text = net.end(0).state(a);
    const auto at = text.find("window ");
    if (at != std::string::npos) {
      window = static_cast<unsigned>(std::stoul(text.substr(at + 7)));
      CHECK(window == 31'250);
      ++seen;
    }
    net.run_for(30 * kUs);
  }
  CHECK(seen == 60);
  REQUIRE(net.settle());
  w.check();
}

TEST_CASE("ref: the share in every ack is what the rules say", "[ref][control][random]") {
  // Four senders with habits that change: how fast, whether more follows, how much is marked, lost or late.
  constexpr unsigned kSenders = 4;
  Config c = one_path();
  c.tuning.ack_paths = 1;  // an ack for each packet
  Host host(4096);
  Endpoint end(c, host);
  end.add_region(Net::kKey, Host::kBase, 4096, kRemoteWrite);
  ShareModel model(c);
  Rng rng;
  struct Habit {
    Ps next = 0, every = 0;
    double leaves = 0, marked = 0, lost = 0;
  };
  std::array<Habit, kSenders> habits;
  std::array<Packet, kSenders> packets{};
  Ps now = 3000 * kMs;  // clocks in the upper half of their range
  const auto open = [&](unsigned i) {
    Config theirs = c;
    theirs.seed = rng();
    Host other(64);
    const wire::Hello offer = Endpoint(theirs, other).offer();
    const wire::Hello answer = end.accept(offer, Peer{static_cast<std::uint16_t>(i)}, now);
    REQUIRE(answer.refusal == wire::Refusal::NONE);
    Packet& p = packets[i];
    p = Packet{};
    p.conn = answer.conn;
    p.incarnation = answer.incarnation;
    p.psn = offer.psn;
    p.data.va = Host::kBase;
    p.data.rkey = Net::kKey;
    p.data.msg_len = 1u << 31;
  };
  for (unsigned i = 0; i < kSenders; ++i) open(i);
  unsigned shared = 0, alone = 0;
  for (unsigned n = 0; n < 40'000; ++n) {
    if (rng.chance(0.002)) now += rng.range(5, 40) * kUs;
    for (Habit& h : habits) {
      if (h.every != 0 && !rng.chance(0.005)) continue;
      constexpr Ps kEvery[] = {30 * kNs, 60 * kNs, 200 * kNs, 1 * kUs, 4 * kUs, 50 * kUs};
      h.every = kEvery[rng.below(6)];
      h.leaves = rng.chance(0.5) ? 0 : rng.chance(0.5) ? 0.05 : 1;
      h.marked = rng.chance(0.5) ? 0 : 0.7;
      h.lost = rng.chance(0.7) ? 0 : 0.3;
      h.next = now + h.every;
    }
    const auto* due = std::min_element(habits.begin(), habits.end(),
                                       [](const Habit& a, const Habit& b) { return a.next < b.next; });
    const auto i = static_cast<unsigned>(due - habits.begin());
    Habit& h = habits[i];
    now = std::max(now, h.next);
    h.next = now + h.every;
    if (rng.chance(0.002)) {
      end.close(packets[i].conn, now);
      model.close(i);
      open(i);
    }
    Packet p = packets[i];
    p.timestamp = static_cast<std::uint32_t>(now / kNs) - (rng.chance(0.1) ? rng.below(1000) : 0);
    const bool lost = rng.chance(h.lost), probe = lost || rng.chance(0.02);
    if (lost) p.psn = (p.psn + 1) & 0xffffff;
    packets[i].psn = (p.psn + 1) & 0xffffff;
    p.opcode = probe ? Opcode::PROBE : Opcode::WRITE;
    if (!probe) {
      p.payload_bytes = static_cast<std::uint16_t>(rng.range(1, 256));
      p.data.more = !rng.chance(h.leaves);
      p.ce = rng.chance(h.marked);
      model.data(now, i, p.payload_bytes + c.overhead, p.data.more, p.ce, p.timestamp);
    } else if (lost) {
      model.probe(now, i);
    }
    end.on_packet(now, 0, p);
    Packet ack;
    REQUIRE(end.next_packet(now, 0, ack));
    REQUIRE(ack.opcode == Opcode::ACK);
    CAPTURE(n, i, now, probe, lost);
    const double expected = model.grant(i) * 65536;
    REQUIRE(std::abs(ack.ack.share - expected) <= 2 + 1e-5 * expected);
    ++(expected == 819'200 ? alone : shared);
    while (end.next_packet(now, 0, ack)) REQUIRE(ack.opcode == Opcode::ACK);  // of a gap, twice
  }
  CHECK(alone > 100);
  CHECK(shared > 10'000);
}

TEST_CASE("ref: many senders share a port evenly and their first burst drains", "[ref][control]") {
  constexpr unsigned kSenders = 12;
  Config c = one_path();
  c.paths = 4;
  c.mtu = 1024;
  Net net(c, kSenders + 1, 1 << 20, false);
  Bottleneck port;
  double burst = 0, worst = 0;
  std::vector<std::uint64_t> sent(kSenders + 1);
  bool measure = false;
  net.fate = [&](const Sent& s) {
    const Fate f = port(s);
    (measure ? worst : burst) = std::max(measure ? worst : burst, port.queue);
    if (measure) {
      if (s.packet.is_data()) sent[s.node] += s.packet.payload_bytes;
    }
    return f;
  };
  std::vector<std::uint32_t> conns(kSenders + 1);
  for (unsigned n = 1; n <= kSenders; ++n) {
    conns[n] = net.open(n, 0).first;
    for (unsigned i = 0; i < 4; ++i)
      REQUIRE(net.end(n).post(conns[n], 0, write_of(i, 0, 0, 1 << 20), 0) == wire::Err::OK);
  }
  net.run_for(800 * kUs);  // the burst of the first round trip has drained
  measure = true;
  net.run_for(400 * kUs);
  const auto [least, most] = std::minmax_element(sent.begin() + 1, sent.end());
  CHECK(static_cast<double>(*least) > 0.9 * static_cast<double>(*most));
  std::uint64_t all = 0;
  for (const std::uint64_t n : sent) all += n;
  const double line = 400'000 * 12.5 * 1024 / (1024 + 122);  // payload of full frames
  CHECK(static_cast<double>(all) > 0.9 * line);
  CHECK(static_cast<double>(all) < line);
  CHECK(burst > 3 * 65536.0);
  CHECK(worst < 1.25 * 65536);  // about where it marks
  for (unsigned n = 1; n <= kSenders; ++n) {
    CHECK(net.end(n).share_of_line(conns[n], 0) > 0.9 / kSenders);
    CHECK(net.end(n).share_of_line(conns[n], 0) < 1.05 / kSenders);
  }
}

TEST_CASE("ref: a sender that fell silent gives its share back", "[ref][control]") {
  Config c = one_path();
  Net net(c, 3, 1 << 20, false);
  Bottleneck port;
  bool dead = false;
  net.fate = [&](const Sent& s) {
    Fate f = port(s);
    f.lost = dead && s.node == 2;
    return f;
  };
  const std::uint32_t one = net.open(1, 0).first, two = net.open(2, 0).first;
  for (unsigned i = 0; i < 8; ++i) {
    REQUIRE(net.end(1).post(one, 0, write_of(i, 0, 0, 1 << 20), 0) == wire::Err::OK);
    REQUIRE(net.end(2).post(two, 0, write_of(i, 0, 0, 1 << 20), 0) == wire::Err::OK);
  }
  net.run_for(100 * kUs);
  CHECK(net.end(1).share_of_line(one, 0) < 0.55);
  CHECK(net.end(2).share_of_line(two, 0) < 0.55);
  dead = true;
  // What is in the queue, two rounds of rtt_init and the one that runs, the way of an ack: half of this.
  net.run_for(50 * kUs);
  CHECK(net.end(1).share_of_line(one, 0) == 1);
}

TEST_CASE("ref: a sender that fell silent is forgotten after two rounds", "[ref][control]") {
  // Who leaves with each message has an equal part of the line beside those who stay, whatever they use; so
  // what it is granted tells how many the receiver remembers.
  Config c = one_path();
  Net net(c, 4, 1 << 20, false);
  Bottleneck port;
  bool dead = false;
  net.fate = [&](const Sent& s) {
    Fate f = port(s);
    f.lost = dead && s.node > 1;
    return f;
  };
  const std::uint32_t one = net.open(1, 0).first;
  for (const unsigned n : {2u, 3u}) {
    const std::uint32_t conn = net.open(n, 0).first;
    for (unsigned i = 0; i < 4; ++i)
      REQUIRE(net.end(n).post(conn, 0, write_of(i, 0, 0, 1 << 20), 0) == wire::Err::OK);
  }
  std::uint64_t id = 0;
  const auto share_for_a_packet = [&] {
    REQUIRE(net.end(1).post(one, 0, write_of(id++, 0, 0, 256), net.now()) == wire::Err::OK);
    REQUIRE(net.run_until([&] { return net.end(1).idle(); }, 1 * kMs));
    return net.end(1).share_of_line(one, 0);
  };
  net.run_for(100 * kUs);
  CHECK(share_for_a_packet() < 1 / 2.9);
  dead = true;
  net.run_for(static_cast<Ps>(port.queue / 12.5 * kNs) + net.delay);  // what is on its way still comes
  SECTION("nobody sends for longer than a round") {
    net.run_for(50 * kUs);
    CHECK(share_for_a_packet() == 1);
  }
  SECTION("another one sends in each round") {
    // The receiver counts by what comes: the first packet is in the round of their last bytes or ends it, and
    // of the next three the last two at least end rounds without any.
    double share = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const Ps begun = net.now();
      share = share_for_a_packet();
      if (i == 0) CHECK(share < 1 / 2.9);
      net.run_for(begun + c.rtt_init + 1 * kUs - net.now());
    }
    CHECK(share == 1);
  }
}

TEST_CASE("ref: who sent before a pause holds no share behind it", "[ref][control]") {
  // Two senders stop at one moment; one returns after a pause, the longer of which turns the order of clocks
  // round. Its first ack already grants all of the line.
  for (const Ps pause : {1 * kMs, 3'000 * kMs}) {
    CAPTURE(pause / kMs);
    Net net(one_path(), 3, 1 << 20, false);
    std::uint32_t least = ~0u;
    net.fate = [&](const Sent& s) {
      if (s.node == 0 && s.packet.peer == 1 && s.packet.opcode == Opcode::ACK)
        least = std::min(least, s.packet.ack.share);
      return Fate{};
    };
    const std::uint32_t one = net.open(1, 0).first, two = net.open(2, 0).first;
    REQUIRE(net.end(1).post(one, 0, write_of(0, 0, 0, 100'000), net.now()) == wire::Err::OK);
    REQUIRE(net.end(2).post(two, 0, write_of(0, 0, 0, 100'000), net.now()) == wire::Err::OK);
    REQUIRE(net.settle());
    const auto line = static_cast<std::uint32_t>(100'000 / 8000.0 * 65536);
    CHECK(least < 0.6 * line);
    net.run_for(pause);
    least = ~0u;
    REQUIRE(net.end(1).post(one, 0, write_of(1, 0, 0, 100'000), net.now()) == wire::Err::OK);
    REQUIRE(net.settle());
    CHECK(least == line);
  }
}

TEST_CASE("ref: acks, fences and probes pass a full window and an empty pacer", "[ref][control]") {
  // Node 0 may send no data: its cap is full of what nobody acks, or its share is next to nothing. What it
  // owes to node 1's data leaves at once all the same, and so do its probes.
  for (const bool pacer : {false, true}) {
    CAPTURE(pacer);
    Net net(two_paths(), 2, 1 << 20, false);
    const auto [a, b] = net.open(0, 1);
    bool stop = false;
    Ps last_data = 0;
    unsigned probes = 0, fences = 0;
    net.forge = [&](const Sent& s, Packet& p) {
      if (pacer && stop && s.node == 1 && p.opcode == Opcode::ACK) p.ack.share = 1;
    };
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = !pacer && stop && s.node == 1 && s.packet.opcode == Opcode::ACK;
      if (s.node == 0 && s.packet.is_data()) last_data = s.now;
      if (s.node == 0 && stop) {
        probes += s.packet.opcode == Opcode::PROBE ? 1 : 0;
        fences += s.packet.opcode == Opcode::FENCE ? 1 : 0;
      }
      return f;
    };
    REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0, 1 << 19), 0) == wire::Err::OK);
    net.run_for(10 * kUs);
    stop = true;
    net.run_for(60 * kUs);
    REQUIRE(last_data < net.now() - 30 * kUs);
    const Ps posted = net.now();
    REQUIRE(net.end(1).post(b, 0, write_of(1, 0, 0x80000, 20 * 256), posted) == wire::Err::OK);
    REQUIRE(net.run_until([&] { return net.completions(1) == 1; }, 1 * kMs));
    CHECK(net.now() - posted < 7 * kUs);  // a round trip of 4, links and probes on them
    if (!pacer) CHECK(probes >= 1);       // else nothing is unsettled that a probe could ask for
    net.end(0).change_sport(a, 0, net.now());
    net.run_for(500 * kNs);
    CHECK(fences == 1);
    CHECK(last_data < posted);
  }
}

TEST_CASE("ref: connections of one host take turns", "[ref][control]") {
  Config c = one_path();
  c.paths = 8;
  c.rtt_init = 100 * kUs;  // neither caps nor windows end a turn
  c.tuning.turn_bytes = 8192;
  Net net(c, 4, 1 << 20, false);
  std::vector<std::pair<unsigned, std::uint64_t>> turns;  // of whom, bytes
  net.fate = [&](const Sent& s) {
    if (s.node != 0 || !s.packet.is_data()) return Fate{};
    if (turns.empty() || turns.back().first != s.packet.peer) turns.emplace_back(s.packet.peer, 0);
    turns.back().second += s.packet.payload_bytes + c.overhead;
    return Fate{};
  };
  for (unsigned n = 1; n <= 3; ++n) {
    const std::uint32_t conn = net.open(0, n).first;
    REQUIRE(net.end(0).post(conn, 0, write_of(n, 0, 0, 300'000), 0) == wire::Err::OK);
  }
  net.run_for(60 * kUs);  // 750 KB: none is done, and no ack has changed a cap much
  REQUIRE(turns.size() > 60);
  for (std::size_t i = 0; i + 1 < turns.size(); ++i) {
    CAPTURE(i);
    CHECK(turns[i].second >= c.tuning.turn_bytes);
    CHECK(turns[i].second < c.tuning.turn_bytes + 352);
    if (i >= 3) CHECK(turns[i].first == turns[i - 3].first);  // round and round
  }
}
