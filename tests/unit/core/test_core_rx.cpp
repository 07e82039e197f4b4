// SPDX-License-Identifier: Apache-2.0
//
// weft_core_rx: what it counts, what it refuses and when it says so, in what order signals act, and that a
// life leaves nothing to the next.
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "Vcore_rx1.h"
#include "Vcore_rx12.h"
#include "Vcore_rx2.h"
#include "Vcore_rx3.h"
#include "Vcore_rx4.h"
#include "Vcore_rx5.h"
#include "weft_test.h"
#include "weft_wire.h"

using namespace weft::test;
using weft::wire::Drop;
using weft::wire::Err;

namespace {

constexpr unsigned kConns = 8, kWindow = weft::wire::kMsgWindow;
constexpr int kCounted = -1;

/// Bits [at, at + width) of a port of the model, whatever type Verilator made of it.
template <class T>
void put(T& bus, unsigned at, unsigned width, std::uint64_t v) {
  if constexpr (std::is_integral_v<T>) {
    const std::uint64_t mask = (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1) << at;
    bus = static_cast<T>((bus & ~mask) | ((v << at) & mask));
  } else {
    for (unsigned i = 0; i < width; ++i) {
      const std::uint32_t bit = std::uint32_t{1} << (at + i) % 32;
      if (v >> i & 1)
        bus[(at + i) / 32] |= bit;
      else
        bus[(at + i) / 32] &= ~bit;
    }
  }
}

struct Packet {
  unsigned conn = 0, no = 0;
  std::uint32_t msg_len = 0;
  unsigned len = 0;
  std::uint64_t va = 0x1000;
  bool signal = true;
  unsigned sem = 0, value = 0, incarnation = 0;
  bool mem_error = false;
  unsigned id = 0;  // of the test
};

struct Verdict {
  Packet packet;
  int reason;  // kCounted or a Drop
  std::uint64_t cycle;
};

struct Signal {
  unsigned sem, value;
};

template <class V, unsigned Ports>
struct Receiver {
  Bench<V> b;
  std::deque<Packet> queue[Ports], told[Ports];
  std::uint64_t taken[Ports] = {};
  bool up[Ports] = {};
  std::vector<Verdict> verdicts;
  std::vector<Signal> signals;
  std::vector<std::pair<unsigned, Err>> failures;
  std::uint64_t messages = 0, bad = 0;
  std::vector<Stall> offer;
  Stall sink;

  explicit Receiver(std::uint64_t seed, Profile profile = Profile::None)
      : b("weft_core_rx", seed), sink(profile, 90, seed) {
    for (unsigned p = 0; p < Ports; ++p) offer.emplace_back(profile, 80 + p, seed);
    b->commit_valid_i = 0;
    b->cfg_conn_i = 0;
    b->sig_ready_i = 0;
    b.reset();
    run(kConns * kWindow + 8);
    for (unsigned c = 0; c < kConns; ++c) configure(c, 0);
    run(kConns * (kWindow + 8));
  }
  void cycle() {
    auto& d = b.dut();
    for (unsigned p = 0; p < Ports; ++p) {
      if (up[p] || queue[p].empty() || offer[p].stalled()) continue;
      up[p] = true;
      show(p, queue[p].front());
    }
    d.sig_ready_i = sink.go();
    b.eval();
    const unsigned took = d.commit_valid_i & d.commit_ready_o;
    REQUIRE((took & (took - 1)) == 0);
    if (d.fail_valid_o) failures.push_back({d.fail_conn_o, static_cast<Err>(d.fail_status_o)});
    REQUIRE((d.verdict_valid_o & (d.verdict_valid_o - 1)) == 0);
    for (unsigned p = 0; p < Ports; ++p) {
      if (!(d.verdict_valid_o >> p & 1)) continue;
      REQUIRE_FALSE(told[p].empty());
      verdicts.push_back(
          {told[p].front(), d.verdict_refused_o ? int(d.verdict_reason_o) : kCounted, b.cycle()});
      told[p].pop_front();
      b.progress();
    }
    if (d.sig_valid_o && d.sig_ready_i) signals.push_back({d.sig_sem_o, d.sig_value_o});
    messages += d.evt_msg_o;
    bad += d.evt_bad_o;
    b.tick();
    d.cfg_conn_i = 0;
    for (unsigned p = 0; p < Ports; ++p) {
      if (!(took >> p & 1)) continue;
      told[p].push_back(queue[p].front());
      queue[p].pop_front();
      withdraw(p);
      ++taken[p];
      b.progress();
    }
  }
  void run(std::uint64_t cycles) {
    for (std::uint64_t i = 0; i < cycles; ++i) cycle();
  }
  bool busy() const {
    for (unsigned p = 0; p < Ports; ++p)
      if (!queue[p].empty() || !told[p].empty()) return true;
    return false;
  }
  void rest() {
    while (busy()) cycle();
    run(200);
    REQUIRE(b->idle_o);
  }
  /// CfgConn of a port in the coming cycle.
  void configure(unsigned conn, unsigned incarnation, unsigned port = 0, bool valid = true) {
    b->cfg_conn_i = 1;
    b->cfg_valid_i = valid;
    b->cfg_index_i = static_cast<std::uint16_t>(conn * Ports + port);
    b->cfg_incarnation_i = static_cast<std::uint16_t>(incarnation);
    cycle();
  }
  /// A port takes back what it offers or would offer of a connection.
  void withdraw(unsigned p) {
    up[p] = false;
    put(b->commit_valid_i, p, 1, 0);
  }
  void show(unsigned p, const Packet& k) {
    auto& d = b.dut();
    put(d.commit_valid_i, p, 1, 1);
    put(d.commit_conn_i, 12 * p, 12, k.conn);
    put(d.commit_incarnation_i, 16 * p, 16, k.incarnation);
    put(d.commit_mem_error_i, p, 1, k.mem_error);
    put(d.commit_msg_no_i, 16 * p, 16, k.no);
    put(d.commit_msg_len_i, 32 * p, 32, k.msg_len);
    put(d.commit_va_i, 33 * p, 33, k.va);
    put(d.commit_len_i, 13 * p, 13, k.len);
    put(d.commit_signal_i, p, 1, k.signal);
    put(d.commit_sem_i, 16 * p, 16, k.sem);
    put(d.commit_value_i, 32 * p, 32, k.value);
  }
  int send(Packet k, unsigned port = 0) {
    queue[port].push_back(k);
    rest();
    return verdicts.back().reason;
  }
};
using Two = Receiver<Vcore_rx2, 2>;

Packet packet(unsigned conn, unsigned no, std::uint32_t msg_len, std::uint64_t va, unsigned len) {
  Packet k;
  k.conn = conn;
  k.no = no;
  k.msg_len = msg_len;
  k.va = va;
  k.len = len;
  k.sem = conn;
  k.value = no;
  return k;
}
constexpr std::uint64_t kVa = 0x12345000;

/// Messages of random cuts, in any order within the window, over all ports; the sender keeps its window by
/// the verdicts it has heard.
struct Sender {
  struct Message {
    std::vector<Packet> packets;
    std::size_t acked = 0;
  };
  std::map<unsigned, Message> open;  // by full number
  std::vector<Packet> pool;
  unsigned next = 0, oldest = 0;  // all below `oldest` are delivered
};

template <class V, unsigned Ports>
void stream(Profile profile, unsigned messages) {
  Receiver<V, Ports> r(seed() + static_cast<std::uint64_t>(profile), profile);
  Rng rng(seed(), 40 + static_cast<std::uint64_t>(profile));
  std::vector<Sender> senders(kConns);
  std::vector<std::deque<unsigned>> want(kConns);  // numbers of messages with a signal
  std::size_t heard = 0, seen = 0;
  std::uint64_t delivered = 0;
  const auto make = [&](unsigned c) {
    Sender& s = senders[c];
    while (s.next < messages && s.next < s.oldest + kWindow) {
      const unsigned no = s.next++;
      Sender::Message& m = s.open[no];
      const unsigned pieces = static_cast<unsigned>(rng.range(1, 5));
      const bool zero = rng.chance(0.2), signal = rng.chance(0.6);
      std::uint64_t va = rng() & 0x1ffffffff;
      if (rng.chance(0.2)) va = 0x1ffffffff - rng.below(9000);  // across the end of what is kept of it
      if (rng.chance(0.2)) va = 0xffffffff - rng.below(9000);
      Packet k = packet(c, no & 0xffff, 0, va, 0);
      k.signal = signal;
      k.id = no;
      for (unsigned i = 0; i < (zero ? 1 : pieces); ++i) {
        k.va = (va + k.msg_len) & 0x1ffffffff;
        k.len = zero ? 0 : static_cast<unsigned>(rng.range(1, 4096));
        k.msg_len += k.len;
        m.packets.push_back(k);
      }
      for (Packet& p : m.packets) {
        p.msg_len = k.msg_len;
        s.pool.push_back(p);
      }
      if (signal) want[c].push_back(no);
    }
  };
  const auto check_signals = [&] {
    for (; seen < r.signals.size(); ++seen) {
      const Signal& s = r.signals[seen];
      REQUIRE(s.sem < kConns);
      REQUIRE_FALSE(want[s.sem].empty());
      REQUIRE((want[s.sem].front() & 0xffff) == s.value);
      // every packet of it and of all messages before has been taken
      for (const Packet& p : senders[s.sem].pool) REQUIRE(p.id > want[s.sem].front());
      want[s.sem].pop_front();
    }
  };
  for (std::uint64_t t = 0;; ++t) {
    REQUIRE(t < 400'000);
    bool more = false;
    for (unsigned c = 0; c < kConns; ++c) {
      make(c);
      more |= !senders[c].pool.empty() || !senders[c].open.empty();
    }
    if (!more) break;
    for (unsigned p = 0; p < Ports; ++p) {
      const auto c = static_cast<unsigned>(rng.below(kConns));
      if (r.queue[p].size() > 1 || senders[c].pool.empty()) continue;
      std::vector<Packet>& pool = senders[c].pool;
      const std::size_t at = rng.below(pool.size());
      r.queue[p].push_back(pool[at]);
      pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(at));
    }
    r.cycle();
    for (; heard < r.verdicts.size(); ++heard) {
      const Verdict& v = r.verdicts[heard];
      INFO("connection " << v.packet.conn << " message " << v.packet.id);
      REQUIRE(v.reason == kCounted);
      Sender& s = senders[v.packet.conn];
      ++s.open[v.packet.id].acked;
      while (!s.open.empty() && s.open.begin()->second.acked == s.open.begin()->second.packets.size()) {
        s.open.erase(s.open.begin());
        ++s.oldest;
        ++delivered;
      }
    }
    // W-MSG-013: what is acked has its place behind it.
    REQUIRE(delivered <= r.messages);
    check_signals();
  }
  r.rest();
  check_signals();
  for (const auto& w : want) CHECK(w.empty());
  CHECK(r.messages == std::uint64_t{messages} * kConns);
  CHECK(r.bad == 0);
  CHECK(r.failures.empty());
}

/// Shares of ports that are always busy, one-packet messages.
template <class V, unsigned Ports>
void shares() {
  INFO(Ports << " ports");
  Receiver<V, Ports> r(seed());
  std::vector<unsigned> next(kConns, 0);
  const std::uint64_t cycles = 700 * Ports;
  for (std::uint64_t t = 0; t < cycles; ++t) {
    for (unsigned p = 0; p < Ports; ++p) {
      const unsigned c = p % kConns;
      if (r.queue[p].empty()) r.queue[p].push_back(packet(c, next[c]++ & 0xffff, 64, kVa, 64));
    }
    r.cycle();
  }
  const std::uint64_t least = *std::min_element(r.taken, r.taken + Ports),
                      most = *std::max_element(r.taken, r.taken + Ports);
  CAPTURE(least, most);
  CHECK(most - least <= 1);
  for (const Verdict& v : r.verdicts) REQUIRE(v.reason == kCounted);
}

}  // namespace

TEST_CASE("core_rx: signals act in message order, after all their data (case software 18)",
          "[core][random]") {
  for (Profile profile : kProfiles) {
    CAPTURE(name_of(profile));
    stream<Vcore_rx2, 2>(profile, 300);
  }
  stream<Vcore_rx1, 1>(Profile::Light, 200);
  stream<Vcore_rx5, 5>(Profile::Light, 200);
}

TEST_CASE("core_rx: ports that are always busy have equal shares, for any number of ports", "[core]") {
  shares<Vcore_rx2, 2>();
  shares<Vcore_rx3, 3>();
  shares<Vcore_rx4, 4>();
  shares<Vcore_rx5, 5>();
  shares<Vcore_rx12, 12>();
}

TEST_CASE("core_rx: a packet costs 4 cycles, and each message that completes 3 more", "[core]") {
  for (const unsigned pieces : {1U, 2U, 16U}) {
    CAPTURE(pieces);
    Two r(seed());
    const unsigned messages = 40;
    for (unsigned m = 0; m < messages; ++m) {
      for (unsigned i = 0; i < pieces; ++i)
        r.queue[i % 2].push_back(packet(m % 2, m / 2, pieces * 256, kVa + 256 * i, 256));
    }
    const std::uint64_t start = r.b.cycle();
    while (r.busy()) r.cycle();
    const std::uint64_t cycles = r.b.cycle() - start;
    CHECK(r.messages == messages);
    CHECK(cycles <= messages * (4 * pieces + 3) + 20);
  }
}

TEST_CASE("core_rx: what contradicts a message fails its connection, once, and no other", "[core]") {
  using Case = std::pair<const char*, std::vector<Packet>>;  // the last one must be refused
  const auto write = [](Packet k) {
    k.signal = false;
    return k;
  };
  const std::vector<Case> cases = {
      {"number ahead of the window", {packet(3, kWindow, 100, kVa, 100)}},
      {"number far ahead", {packet(3, 2 * kWindow + 1, 100, kVa, 100)}},
      {"number behind the window", {packet(3, 0xffff, 100, kVa, 100)}},
      {"number of a message complete before", {packet(3, 0, 100, kVa, 100), packet(3, 0, 100, kVa, 100)}},
      {"longer than its message", {packet(3, 0, 100, kVa, 200)}},
      {"together longer than it", {packet(3, 0, 100, kVa, 60), packet(3, 0, 100, kVa + 60, 60)}},
      {"another length than before", {packet(3, 0, 4096, kVa, 1024), packet(3, 0, 2048, kVa + 1024, 1024)}},
      {"a longer one than before", {packet(3, 0, 2048, kVa, 1024), packet(3, 0, 4096, kVa + 1024, 1024)}},
      {"another operation", {packet(3, 0, 2048, kVa, 1024), write(packet(3, 0, 2048, kVa + 1024, 1024))}},
      {"once more, complete and waiting", {packet(3, 1, 50, kVa, 50), packet(3, 1, 50, kVa, 50)}},
      {"empty, complete and waiting, once more", {packet(3, 1, 0, kVa, 0), packet(3, 1, 0, kVa, 0)}},
      {"empty, for one complete and waiting", {packet(3, 1, 50, kVa, 50), packet(3, 1, 50, kVa, 0)}},
      {"a hole, the first twice", {packet(3, 0, 2048, kVa, 1024), packet(3, 0, 2048, kVa, 1024)}},
      {"a hole, the last twice",
       {packet(3, 0, 2048, kVa + 1024, 1024), packet(3, 0, 2048, kVa + 1024, 1024)}},
      {"a hole in the middle",
       {packet(3, 0, 4096, kVa, 1024), packet(3, 0, 4096, kVa + 3072, 1024),
        packet(3, 0, 4096, kVa + 1024, 1024), packet(3, 0, 4096, kVa + 1024, 1024)}},
      {"pieces that lie apart", {packet(3, 0, 2048, kVa, 1024), packet(3, 0, 2048, kVa + 2048, 1024)}},
  };
  for (const auto& [what, packets] : cases) {
    INFO(what);
    Two r(seed());
    for (std::size_t i = 0; i + 1 < packets.size(); ++i) REQUIRE(r.send(packets[i], i % 2) == kCounted);
    const std::size_t signals = r.signals.size();
    CHECK(r.send(packets.back()) == int(Drop::MSG));
    CHECK(r.bad == 1);
    REQUIRE(r.failures.size() == 1);
    CHECK(r.failures[0] == std::pair(3U, Err::BAD_LENGTH));
    // Nothing of the connection counts any more: no message of it completes, not even an earlier one.
    for (unsigned no = 0; no < 3; ++no)
      CHECK(r.send(packet(3, no, 10, kVa, 10), no % 2) == int(Drop::STREAM));
    CHECK(r.failures.size() == 1);
    CHECK(r.signals.size() == signals);
    // Others do.
    CHECK(r.send(packet(2, 0, 10, kVa, 10)) == kCounted);
    CHECK(r.signals.size() == signals + 1);
    // And it does when it is configured again.
    r.configure(3, 0);
    r.run(100);
    CHECK(r.send(packet(3, 0, 10, kVa, 10)) == kCounted);
    CHECK(r.signals.size() == signals + 2);
  }
}

TEST_CASE("core_rx: a packet whose memory failed fails its connection", "[core]") {
  Two r(seed());
  Packet k = packet(5, 0, 10, kVa, 10);
  k.mem_error = true;
  CHECK(r.send(k) == int(Drop::MEM));
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0] == std::pair(5U, Err::REMOTE_MEM));
  CHECK(r.send(k, 1) == int(Drop::STREAM));
  CHECK(r.send(packet(5, 0, 10, kVa, 10), 1) == int(Drop::STREAM));
  CHECK(r.failures.size() == 1);
  CHECK(r.signals.empty());
}

TEST_CASE("core_rx: no message completes that its packets do not cover", "[core][random]") {
  // A message of n packets, of which some came twice and as many bytes never.
  Rng rng(seed(), 50);
  Two r(seed());
  const unsigned rounds = 400;
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned c = round % kConns, n = static_cast<unsigned>(rng.range(2, 12));
    const unsigned mtu = 1U << rng.range(6, 12);
    const std::uint64_t va = rng() & 0x1ffffffff;
    std::vector<unsigned> times(n, 1);
    const bool whole = rng.chance(0.3);
    while (!whole && std::count(times.begin(), times.end(), 1U) == n) {
      for (unsigned k = static_cast<unsigned>(rng.range(1, 3)); k != 0; --k) {
        const std::size_t more = rng.below(n), less = rng.below(n);
        if (times[less] == 0) continue;
        --times[less];
        ++times[more];
      }
    }
    std::vector<Packet> order;
    for (unsigned i = 0; i < n; ++i)
      for (unsigned k = 0; k < times[i]; ++k)
        order.push_back(packet(c, 0, n * mtu, (va + std::uint64_t{i} * mtu) & 0x1ffffffff, mtu));
    std::shuffle(order.begin(), order.end(), rng);
    for (std::size_t i = 0; i < order.size(); ++i) r.queue[i % 2].push_back(order[i]);
    const std::size_t before = r.verdicts.size();
    while (r.busy()) r.cycle();
    for (std::size_t i = before; i + 1 < r.verdicts.size(); ++i) REQUIRE(r.verdicts[i].reason == kCounted);
    INFO("round " << round);
    REQUIRE(r.verdicts.back().reason == (whole ? kCounted : int(Drop::MSG)));
    r.configure(c, 0);
    r.run(100);
  }
  CHECK(r.messages > rounds / 5);
  CHECK(r.messages + r.failures.size() == rounds);
}

TEST_CASE("core_rx: a message of more than 2 GiB has a first byte, whatever comes first", "[core]") {
  Two r(seed());
  const unsigned len = 8191;  // longer than any MTU, so that it takes fewer packets
  const unsigned packets = (1U << 31) / len + 3;
  Packet k = packet(0, 0, packets * len, 0x1f0000000, len);
  for (unsigned i = 0; i < packets; ++i) {
    k.va = (0x1f0000000 + std::uint64_t{i == 0 ? packets - 1 : i - 1} * len) & 0x1ffffffff;
    r.queue[i % 2].push_back(k);
    while (r.queue[i % 2].size() > 1) r.cycle();
  }
  r.rest();
  CHECK(r.bad == 0);
  CHECK(r.messages == 1);
}

TEST_CASE("core_rx: a packet of a life that has ended fails nothing in the next", "[core]") {
  // Held up by a signal nobody takes, it is judged when its port has long begun anew, with the same
  // incarnation.
  Two r(seed());
  r.sink = Stall(1.0, 94);
  r.queue[0].push_back(packet(2, 0, 10, kVa, 10));
  r.queue[0].push_back(packet(2, 1, 10, kVa, 10));
  r.queue[0].push_back(packet(2, 2, 10, kVa, 20));  // more than its message has
  r.run(100);
  REQUIRE(r.told[0].size() == 2);  // the second one's signal has no room
  r.configure(2, 0, 0);
  r.configure(2, 0, 1);
  r.run(200);
  r.sink = Stall(0.0, 95);
  r.rest();
  CHECK(r.verdicts.back().reason == int(Drop::INCARNATION));
  CHECK(r.failures.empty());
  CHECK(r.bad == 0);
  CHECK(r.send(packet(2, 0, 10, kVa, 10)) == kCounted);
}

TEST_CASE("core_rx: a CfgConn at any time ends the life: nothing of before is in the next one", "[core]") {
  // Port 0 sends the halves of messages and whole ones; then both rows are written, 64 cycles apart as the
  // host does or at once, while signals are held up; then the new life sends the other halves. Were anything
  // left of the old life, a half message would be complete.
  for (const unsigned apart : {1U, 3U, 64U}) {
    for (const bool same : {false, true}) {  // the incarnation
      for (unsigned offset = 0; offset < 150; ++offset) {
        CAPTURE(apart, same, offset);
        Two r(seed() + offset);
        Rng rng(seed(), offset);
        const unsigned c = static_cast<unsigned>(rng.below(kConns)), other = (c + 1) % kConns;
        for (unsigned no = 0; no < 8; ++no) {
          r.queue[0].push_back(packet(c, no, 128, kVa, 64));
          r.queue[0].push_back(packet(other, no, 64, kVa, 64));
          if (no < 2) r.queue[0].push_back(packet(c, no, 128, kVa + 64, 64));
        }
        r.sink = Stall(offset % 3 == 0 ? 0.97 : 0.0, 91);
        r.run(offset);
        const unsigned next = same ? 0 : 1;
        // The port takes back what it has of a connection that is configured.
        r.configure(c, next, 0);
        std::deque<Packet> kept;
        for (const Packet& k : r.queue[0])
          if (k.conn != c) kept.push_back(k);
        if (r.up[0] && r.queue[0].front().conn == c) r.withdraw(0);
        r.queue[0] = kept;
        r.run(apart - 1);
        r.configure(c, next, 1);
        r.run(40);  // a port needs longer to begin
        const std::size_t before = r.verdicts.size();
        for (unsigned no = 0; no < 8; ++no) {
          Packet k = packet(c, no, 128, kVa + 64, 64);
          k.incarnation = next;
          k.value = 100 + no;
          r.queue[no % 2].push_back(k);
        }
        while (r.busy()) r.cycle();
        r.run(400);
        for (std::size_t i = before; i < r.verdicts.size(); ++i) {
          // late ones of the old life (signals were held up) are refused as such
          const Verdict& v = r.verdicts[i];
          if (v.packet.value >= 100 || v.packet.conn != c)
            REQUIRE(v.reason == kCounted);
          else
            REQUIRE((v.reason == kCounted || v.reason == int(Drop::INCARNATION)));
        }
        for (const Signal& s : r.signals) REQUIRE((s.sem != c || s.value < 2));
        REQUIRE(r.failures.empty());
        // All of the new life's messages are open; their first halves complete them.
        const std::size_t signals = r.signals.size();
        for (unsigned no = 0; no < 8; ++no) {
          Packet k = packet(c, no, 128, kVa, 64);
          k.incarnation = next;
          REQUIRE(r.send(k) == kCounted);
        }
        r.run(400);
        REQUIRE(r.signals.size() == signals + 8);
      }
    }
  }
}

TEST_CASE("core_rx: rows written as fast as the bus can are all cleared", "[core]") {
  for (const unsigned gap : {0U, 1U, 15U, 63U}) {
    CAPTURE(gap);
    Two r(seed());
    r.sink = Stall(1.0, 92);  // and a signal nobody takes holds everything up
    r.queue[0].push_back(packet(0, 0, 10, kVa, 10));
    r.queue[0].push_back(packet(0, 1, 10, kVa, 10));
    for (unsigned c = 0; c < kConns; ++c) r.queue[0].push_back(packet(c, 3, 128, kVa, 64));
    r.b.patience(100'000);
    r.run(300);
    for (unsigned c = 0; c < kConns; ++c) {
      for (unsigned p = 0; p < 2; ++p) {
        r.configure(c, 7, p);
        r.run(gap);
      }
    }
    r.sink = Stall(0.0, 93);
    r.queue[0].clear();
    r.withdraw(0);
    r.run(kConns * 2 * 80);
    for (unsigned c = 0; c < kConns; ++c) {
      Packet k = packet(c, 3, 128, kVa, 64);
      k.incarnation = 7;
      CHECK(r.send(k) ==
            kCounted);  // the second time, if the row was not cleared: it would complete with a hole
      k.incarnation = 0;
      CHECK(r.send(k) == int(Drop::INCARNATION));
    }
    CHECK(r.failures.empty());
  }
}

TEST_CASE("core_rx: the row of a port that a connection does not use ends its life too, but names none",
          "[core]") {
  Two r(seed());
  CHECK(r.send(packet(1, 0, 128, kVa, 64)) == kCounted);
  r.configure(1, 5, 0);
  r.configure(1, 0, 1, false);
  r.run(200);
  Packet k = packet(1, 0, 128, kVa + 64, 64);
  k.incarnation = 5;
  CHECK(r.send(k) == kCounted);
  CHECK(r.signals.empty());  // half a message
  k.incarnation = 0;
  CHECK(r.send(k) == int(Drop::INCARNATION));
}

TEST_CASE("core_rx: a row number that is not there configures nobody", "[core]") {
  Two r(seed());
  CHECK(r.send(packet(0, 0, 128, kVa, 64)) == kCounted);
  r.configure(kConns, 9);  // would be connection 0 modulo their number
  r.configure(8 * kConns, 9);
  r.run(200);
  CHECK(r.send(packet(0, 0, 128, kVa + 64, 64)) == kCounted);
  CHECK(r.signals.size() == 1);
}
