// SPDX-License-Identifier: Apache-2.0
// The fabric between endpoints of a few lines: times, rates, paths, marks, every kind of fault, and the
// books.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "soft_node.h"
#include "weft_test.h"

using namespace weft::tb;
namespace wire = weft::wire;

namespace {

std::unique_ptr<Cluster> make(const Scenario& s, uint32_t ports = 1, const TraceConfig& traces = {}) {
  auto c = Cluster::create(s, soft_nodes(ports), traces);
  INFO(c.error());
  REQUIRE(c.ok());
  return c.take();
}

void drain(Cluster& c) {
  const RunResult r = c.settle(100 * kMs);
  INFO(r.text);
  REQUIRE(r.ok());
  const FabricCounts f = c.fabric();
  CHECK(f.balanced());
  CHECK(f.in_flight == 0);
}

// Frames of both directions and several sizes between all nodes; returns a hash of every arrival.
uint64_t storm(Scenario s, uint32_t threads, FabricCounts* counts = nullptr,
               TrafficCounts* traffic = nullptr) {
  s.threads = threads;
  auto c = make(s, 2);
  weft::test::Rng rng(weft::test::seed(), 5);
  uint32_t psn = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto from = static_cast<uint32_t>(rng() % s.nodes);
    const auto to = static_cast<uint32_t>((from + 1 + rng() % (s.nodes - 1)) % s.nodes);
    const auto port = static_cast<uint32_t>(rng() % 2);
    const auto r = route(from, to, port, static_cast<uint16_t>(0xc000 + rng() % 16));
    if (rng() % 4 == 0) {
      soft(*c, from).send_at(0, port, ack_frame(r));
    } else {
      DataFields f;
      f.psn = ++psn;
      f.va = psn * 0x2000;
      soft(*c, from).send_at(0, port, data_frame(r, rng() % 4097, f));
    }
  }
  drain(*c);
  uint64_t hash = 0;
  for (uint32_t k = 0; k < s.nodes; ++k) {
    for (const Arrival& a : soft(*c, k).arrivals) {
      hash = mix64(hash ^ static_cast<uint64_t>(a.first_bit)) + a.port + a.flags;
      for (uint8_t b : a.bytes) hash = hash * 0x100000001b3u ^ b;
    }
  }
  if (counts) *counts = c->fabric();
  if (traffic) *traffic = c->traffic();
  return hash;
}

Scenario lossy() {
  Scenario s;
  s.nodes = 6;
  s.planes = 2;
  s.fabric.hosts_per_leaf = 2;
  s.fabric.spines = 3;
  s.fabric.queue_bytes = 60'000;
  s.fabric.ecn_kmin_bytes = 10'000;
  s.fabric.ecn_kmax_bytes = 30'000;
  s.faults.loss = 0.03;
  s.faults.jitter_ns = 700;
  s.faults.reorder = 0.05;
  s.faults.duplicate = 0.02;
  s.faults.corrupt = 0.02;
  s.faults.down.push_back({});
  s.faults.down.back().plane = 1;
  s.faults.down.back().from_ps = 40 * kUs;
  s.faults.down.back().to_ps = 60 * kUs;
  s.seed = weft::test::seed();
  return s;
}

}  // namespace

TEST_CASE("fabric: a frame takes exactly its serialization and the links' latency", "[tb][fabric]") {
  // 100 Gb/s: 80 ps a byte. A frame of b bytes: (b + 24) x 80 ps on each link.
  CHECK(wire_ps(100, 100'000) == 124 * 80);
  CHECK(wire_ps(10, 100'000) == 84 * 80);  // the shortest Ethernet frame
  CHECK(wire_ps(4190, 400'000) == 4214 * 20);
  CHECK(wire_ps(1, 3) == (84 * 8 * 1'000'000) / 3);

  Scenario s = two_nodes();
  s.fabric.switch_latency_ns = 450;
  auto c = make(s);
  const auto frame = data_frame(route(0, 1, 0), 1000);
  soft(*c, 0).send_at(12'345, 0, frame);
  drain(*c);
  const auto& got = soft(*c, 1).arrivals;
  REQUIRE(got.size() == 1);
  const Ps wire = wire_ps(static_cast<uint32_t>(frame.size()), 100'000);
  CHECK(got[0].first_bit == 12'345 + wire + kUs + 450 * kNs + kUs);
  CHECK(got[0].bytes == frame);
  CHECK(soft(*c, 0).arrivals.empty());
}

TEST_CASE("fabric: through a spine a frame is serialized four times, each link at its own rate",
          "[tb][fabric]") {
  Scenario s;
  s.nodes = 4;
  s.planes = 1;
  s.fabric.hosts_per_leaf = 2;
  s.fabric.spines = 2;
  s.fabric.uplink_rate_gbps = 400;
  s.fabric.link_latency_ns = 500;
  auto c = make(s);
  const auto frame = data_frame(route(0, 3, 0), 4096);
  soft(*c, 0).send_at(0, 0, frame);
  drain(*c);
  REQUIRE(soft(*c, 3).arrivals.size() == 1);
  const auto n = static_cast<uint32_t>(frame.size());
  CHECK(soft(*c, 3).arrivals[0].first_bit == wire_ps(n, 100'000) + 2 * wire_ps(n, 400'000) + 4 * 500 * kNs);
}

TEST_CASE("fabric: cut-through passes a frame on while it arrives, but not faster than it arrives",
          "[tb][fabric]") {
  Scenario s;
  s.nodes = 4;
  s.planes = 1;
  s.fabric.hosts_per_leaf = 2;
  s.fabric.spines = 2;
  s.fabric.link_latency_ns = 500;
  s.fabric.switch_latency_ns = 450;
  s.fabric.cut_through = true;
  const auto frame = data_frame(route(0, 3, 0), 4096);
  const auto n = static_cast<uint32_t>(frame.size());
  constexpr Ps kHops = 4 * 500 * kNs + 3 * 450 * kNs;
  const auto first_bit = [&](double uplink_gbps) {
    s.fabric.uplink_rate_gbps = uplink_gbps;
    auto c = make(s);
    soft(*c, 0).send_at(12'345, 0, frame);
    drain(*c);
    REQUIRE(soft(*c, 3).arrivals.size() == 1);
    return soft(*c, 3).arrivals[0].first_bit - 12'345;
  };
  CHECK(first_bit(100) == kHops);
  // A faster link must wait for the frame's end, a slower one then gets all of it at once.
  CHECK(first_bit(400) == kHops + wire_ps(n, 100'000) - wire_ps(n, 400'000));
  // From a slower link to a faster one: the last bit of either link leaves together.
  CHECK(first_bit(25) == kHops + wire_ps(n, 25'000) - wire_ps(n, 100'000));
}

TEST_CASE("fabric: two senders share an output at line rate, back to back", "[tb][fabric]") {
  const bool cut_through = GENERATE(false, true);
  CAPTURE(cut_through);
  Scenario s;
  s.nodes = 3;
  s.planes = 1;
  s.fabric.cut_through = cut_through;
  s.fabric.ecn_kmin_bytes = s.fabric.ecn_kmax_bytes = 900'000;
  auto c = make(s);
  for (uint32_t i = 0; i < 50; ++i) {
    for (uint32_t from : {0u, 1u}) {
      DataFields f;
      f.psn = i;
      f.va = (from * 100 + i) * 0x1000;
      soft(*c, from).send_at(0, 0, data_frame(route(from, 2, 0), 4096, f));
    }
  }
  drain(*c);
  const auto& got = soft(*c, 2).arrivals;
  REQUIRE(got.size() == 100);
  const Ps wire = wire_ps(4190, 100'000);
  CHECK(got[0].first_bit == 2 * kUs + (cut_through ? 0 : wire));
  for (size_t i = 1; i < got.size(); ++i) CHECK(got[i].first_bit - got[i - 1].first_bit == wire);
  CHECK(c->traffic().data_packets == 100);
  CHECK(c->traffic().lost == 0);
}

TEST_CASE("fabric: the queue limit and the ECN thresholds hold to the byte", "[tb][fabric]") {
  Scenario s;
  s.nodes = 3;
  s.planes = 1;
  constexpr uint64_t kFrame = 4190 + kFcsBytes;
  s.fabric.ecn_kmin_bytes = 10 * kFrame;
  s.fabric.ecn_kmax_bytes = 10 * kFrame + 1;  // a step: nothing at 10 queued frames, everything from there on
  s.fabric.queue_bytes = 20 * kFrame;
  auto c = make(s);
  // Two senders in step: every pair leaves one frame more in the queue.
  for (uint32_t i = 0; i < 60; ++i) {
    for (uint32_t from : {0u, 1u})
      soft(*c, from).send_at(0, 0, data_frame(route(from, 2, 0), 4096, {i, 0, i * 0x1000}));
  }
  // Not ECT: never marked.
  for (uint32_t i = 0; i < 60; ++i) {
    auto r = route(1, 2, 0);
    r.ecn = 0;
    soft(*c, 1).send_at(0, 0, data_frame(r, 4096, {i + 100, 1, i * 0x1000}));
  }
  drain(*c);
  // What an independent queue says: frame k of the two senders arrives at slot k/2 (both at once, node 0
  // first); one leaves a slot.
  uint64_t queue = 0, marked = 0, dropped = 0;
  for (int slot = 0; slot < 60; ++slot) {
    if (queue > 0) --queue;
    for (int from = 0; from < 2; ++from) {
      if (queue + 1 > 20) {
        ++dropped;
        continue;
      }
      if (queue > 10) ++marked;
      ++queue;
    }
  }
  CHECK(c->fabric().drop_queue == dropped);
  CHECK(c->fabric().ce_marked == marked);
  CHECK(c->traffic().ce_marked == marked);
  CHECK(c->traffic().lost == dropped);
  uint64_t ce = 0, plain = 0;
  for (const Arrival& a : soft(*c, 2).arrivals) {
    const auto parsed = wire::parse(a.bytes);
    REQUIRE(parsed);  // IP checksum and ICRC are right after marking
    if (parsed.frame.ipv4.ecn == wire::kEcnCe) ++ce;
    if (parsed.frame.ipv4.ecn == 0) ++plain;
  }
  CHECK(ce == marked);
  CHECK(plain == 60);
}

TEST_CASE("fabric: between the thresholds marks follow the line", "[tb][fabric][random]") {
  Scenario s;
  s.nodes = 5;
  s.planes = 1;
  s.fabric.hosts_per_leaf = 8;
  constexpr uint64_t kFrame = 1094 + kFcsBytes;
  s.fabric.ecn_kmin_bytes = 0;
  s.fabric.ecn_kmax_bytes = 2000 * kFrame;
  s.fabric.queue_bytes = 4000 * kFrame;
  s.fabric.ecn_pmax = 0.5;
  s.seed = weft::test::seed();
  auto c = make(s);
  // Four senders at once: the queue grows by three frames per slot, so frame n of 4000 finds about 3/4 n
  // queued.
  for (uint32_t i = 0; i < 500; ++i) {
    for (uint32_t from = 0; from < 4; ++from) {
      soft(*c, from).send_at(0, 0, data_frame(route(from, 4, 0), 1000, {i, 0, i * 0x1000}));
    }
  }
  drain(*c);
  double expected = 0, variance = 0;
  double queue = 0;
  for (int slot = 0; slot < 500; ++slot) {
    if (queue > 0) --queue;
    for (int from = 0; from < 4; ++from) {
      const double p = 0.5 * queue / 2000;
      expected += p;
      variance += p * (1 - p);
      ++queue;
    }
  }
  CHECK(c->fabric().drop_queue == 0);
  CHECK(std::abs(static_cast<double>(c->fabric().ce_marked) - expected) < 5 * std::sqrt(variance));
}

TEST_CASE("fabric: ECMP keeps a path on one spine and spreads paths over all", "[tb][fabric]") {
  Scenario s;
  s.nodes = 2;
  s.planes = 1;
  s.fabric.hosts_per_leaf = 1;
  s.fabric.spines = 4;
  auto c = make(s);
  constexpr uint32_t kPaths = 256;
  for (uint32_t i = 0; i < kPaths; ++i) {
    for (uint32_t repeat = 0; repeat < 2; ++repeat) {
      soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0, static_cast<uint16_t>(0x8000 + i)), 64));
    }
  }
  drain(*c);
  const auto stats = c->stats();
  uint64_t spines = 0;
  for (const auto& link : stats["links"]) {
    const std::string name = link["link"];
    if (name.find("leaf 0 -> spine") == std::string::npos) continue;
    ++spines;
    const uint64_t frames = link["frames"];
    CHECK(frames % 2 == 0);  // both frames of a path took the same way
    // 64 paths expected, standard deviation 7.
    CHECK(frames / 2 > 64 - 35);
    CHECK(frames / 2 < 64 + 35);
  }
  CHECK(spines == 4);
}

TEST_CASE("fabric: a path keeps its order whatever the jitter", "[tb][fabric][random]") {
  Scenario s = two_nodes();
  s.faults.jitter_ns = 5000;
  s.seed = weft::test::seed();
  auto c = make(s);
  for (uint32_t i = 0; i < 2000; ++i) {
    soft(*c, 0).send_at(
        0, 0, data_frame(route(0, 1, 0, static_cast<uint16_t>(0xc000 + i % 8)), 100, {i, 0, i * 0x1000}));
  }
  drain(*c);
  std::map<uint16_t, uint32_t> last;
  uint32_t highest = 0, overtaken = 0;
  for (const Arrival& a : soft(*c, 1).arrivals) {
    const auto p = wire::parse(a.bytes);
    REQUIRE(p);
    const uint32_t psn = p.frame.bth.psn;
    if (last.count(p.frame.udp.sport)) CHECK(psn > last[p.frame.udp.sport]);
    last[p.frame.udp.sport] = psn;
    if (psn < highest) ++overtaken;
    highest = std::max(highest, psn);
  }
  CHECK(soft(*c, 1).arrivals.size() == 2000);
  CHECK(overtaken > 100);  // paths do overtake each other
}

TEST_CASE("fabric: reordering delays the asked share inside a path", "[tb][fabric][random]") {
  Scenario s = two_nodes();
  s.faults.reorder = 0.1;
  s.faults.reorder_delay_ns = 1000;
  s.seed = weft::test::seed();
  auto c = make(s);
  for (uint32_t i = 0; i < 4000; ++i)
    soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 100, {i, 0, i * 0x1000}));
  drain(*c);
  uint32_t highest = 0, late = 0;
  for (const Arrival& a : soft(*c, 1).arrivals) {
    const uint32_t psn = wire::parse(a.bytes).frame.bth.psn;
    if (psn < highest) ++late;
    highest = std::max(highest, psn);
  }
  CHECK(soft(*c, 1).arrivals.size() == 4000);
  CHECK(late > 400 - 5 * 19);
  CHECK(late < 400 + 5 * 19);
}

TEST_CASE("fabric: loss takes its share of data and acks alike, independently", "[tb][fabric][random]") {
  Scenario s = two_nodes();
  s.faults.loss = 0.05;
  s.seed = weft::test::seed();
  auto c = make(s);
  constexpr uint32_t kFrames = 20'000;
  soft(*c, 1).keep = true;
  for (uint32_t i = 0; i < kFrames; ++i) {
    soft(*c, 0).send_at(0, 0,
                        i % 2 ? ack_frame(route(0, 1, 0)) : data_frame(route(0, 1, 0), 64, {i, 0, i * 64}));
  }
  drain(*c);
  const double sigma = std::sqrt(kFrames / 2 * 0.05 * 0.95);
  const TrafficCounts t = c->traffic();
  CHECK(std::abs(static_cast<double>(t.lost) - kFrames / 2 * 0.05) < 5 * sigma);
  CHECK(std::abs(static_cast<double>(t.acks_lost) - kFrames / 2 * 0.05) < 5 * sigma);
  CHECK(c->fabric().drop_loss == t.lost + t.acks_lost);
  CHECK(soft(*c, 1).arrivals.size() == kFrames - t.lost - t.acks_lost);
  // Losses come one by one: runs of two are as frequent as chance makes them.
  std::set<uint32_t> got;
  for (const Arrival& a : soft(*c, 1).arrivals) {
    const auto p = wire::parse(a.bytes);
    if (p.frame.layout == wire::Layout::DATA) got.insert(p.frame.bth.psn);
  }
  uint32_t pairs = 0;
  for (uint32_t i = 0; i + 2 < kFrames; i += 2) pairs += !got.count(i) && !got.count(i + 2);
  CHECK(pairs > 25 - 25);
  CHECK(pairs < 25 + 25);
}

TEST_CASE("fabric: every kind of fault at once, and the books balance on one and two threads alike",
          "[tb][fabric][random]") {
  const Scenario s = lossy();
  FabricCounts one, two;
  TrafficCounts t1, t2;
  const uint64_t hash = storm(s, 1, &one, &t1);
  CHECK(storm(s, 2, &two, &t2) == hash);
  CHECK(one.in == 3000);
  CHECK(one.drop_loss > 0);
  CHECK(one.drop_queue > 0);
  CHECK(one.drop_down > 0);
  CHECK(one.duplicated > 0);
  CHECK(one.corrupted > 0);
  CHECK(one.ce_marked > 0);
  CHECK(one.delivered == two.delivered);
  CHECK(t1.lost == t2.lost);
  CHECK(t1.redelivered == 0);
  Scenario other = s;
  other.seed += 1;
  CHECK(storm(other, 1) != hash);
}

TEST_CASE("fabric: switching one fault on does not move the draws of another", "[tb][fabric]") {
  Scenario s = two_nodes();
  s.faults.loss = 0.1;
  const auto lost = [&](double corrupt) {
    Scenario with = s;
    with.faults.corrupt = corrupt;
    auto c = make(with);
    std::vector<uint32_t> got;
    for (uint32_t i = 0; i < 500; ++i)
      soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 1000, {i, 0, i * 0x1000}));
    drain(*c);
    for (const Arrival& a : soft(*c, 1).arrivals) {
      got.push_back(static_cast<uint32_t>(a.first_bit / wire_ps(1094, 100'000)));
    }
    return got;
  };
  CHECK(lost(0) == lost(0.5));
}

TEST_CASE("fabric: corrupt frames differ in one to three bits and are reported as such",
          "[tb][fabric][random]") {
  Scenario s = two_nodes();
  s.faults.corrupt = 1;
  s.seed = weft::test::seed();
  auto c = make(s);
  const auto frame = data_frame(route(0, 1, 0), 500);
  for (int i = 0; i < 200; ++i) soft(*c, 0).send_at(0, 0, frame);
  drain(*c);
  REQUIRE(soft(*c, 1).arrivals.size() == 200);
  for (const Arrival& a : soft(*c, 1).arrivals) {
    CHECK((a.flags & kFrameCorrupt) != 0);
    int bits = 0;
    for (size_t i = 0; i < frame.size(); ++i) bits += __builtin_popcount(frame[i] ^ a.bytes[i]);
    CHECK(bits >= 1);
    CHECK(bits <= 3);
  }
  CHECK(c->fabric().corrupted == 200);
  CHECK(c->fabric().delivered == 200);
  CHECK(c->traffic().lost == 200);
  CHECK(c->traffic().redelivered == 0);
}

TEST_CASE("fabric: the drop list takes exactly the named frame of its kind", "[tb][fabric]") {
  Scenario s = two_nodes();
  s.faults.drop = {{1, 0, FrameKind::kData, 3}, {1, 0, FrameKind::kAck, 0}, {1, 0, FrameKind::kAny, 9}};
  auto c = make(s);
  // ack, data 0, ack, data 1, ...
  for (uint32_t i = 0; i < 10; ++i) {
    soft(*c, 0).send_at(0, 0, ack_frame(route(0, 1, 0)));
    soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 64, {i, 0, i * 64}));
  }
  drain(*c);
  std::set<uint32_t> psns;
  uint32_t acks = 0;
  for (const Arrival& a : soft(*c, 1).arrivals) {
    const auto p = wire::parse(a.bytes);
    if (p.frame.layout == wire::Layout::DATA)
      psns.insert(p.frame.bth.psn);
    else
      ++acks;
  }
  // Frame 9 of all (from 0) is data 4.
  CHECK(psns == std::set<uint32_t>{0, 1, 2, 5, 6, 7, 8, 9});
  CHECK(acks == 9);
  CHECK(c->fabric().drop_listed == 3);
}

TEST_CASE("fabric: a dead plane, link or host link swallows what is on it, and only then", "[tb][fabric]") {
  Scenario s;
  s.nodes = 4;
  s.planes = 2;
  s.fabric.hosts_per_leaf = 2;
  s.fabric.spines = 1;
  DownFault plane, link, host;
  plane.plane = 1;
  plane.from_ps = 100 * kUs;
  plane.to_ps = 200 * kUs;
  link.plane = 0;
  link.leaf = 1;
  link.spine = 0;
  link.from_ps = 300 * kUs;
  link.to_ps = 400 * kUs;
  host.node = 3;
  host.port = 0;
  host.from_ps = 500 * kUs;
  s.faults.down = {plane, link, host};
  auto c = make(s, 2);
  const auto got = [&](Ps at, uint32_t from, uint32_t to, uint32_t port) {
    c->run_for(at - c->now_ps());
    const uint64_t before = soft(*c, to).count;
    soft(*c, from).send_at(at, port, data_frame(route(from, to, port), 64));
    REQUIRE(c->run_for(20 * kUs).ok());
    return soft(*c, to).count - before;
  };
  CHECK(got(10 * kUs, 0, 3, 1) == 1);
  CHECK(got(110 * kUs, 0, 3, 1) == 0);  // plane 1 is dead,
  CHECK(got(140 * kUs, 0, 3, 0) == 1);  // plane 0 is not,
  CHECK(got(200 * kUs, 0, 3, 1) == 1);  // and plane 1 is back
  CHECK(got(310 * kUs, 0, 3, 0) == 0);  // leaf 1 - spine 0,
  CHECK(got(335 * kUs, 3, 0, 0) == 0);  // in both directions,
  CHECK(got(360 * kUs, 3, 2, 0) == 1);  // but not inside the leaf
  CHECK(got(510 * kUs, 0, 3, 0) == 0);  // host link of node 3,
  CHECK(got(540 * kUs, 3, 0, 0) == 0);  // in both directions,
  CHECK(got(570 * kUs, 0, 2, 0) == 1);  // and of nobody else
  CHECK(c->fabric().drop_down == 5);
  CHECK(c->fabric().balanced());
  // A frame that is on the link when it dies is lost, too.
  Scenario cut = two_nodes();
  host.node = 1;
  host.from_ps = 2 * kUs;  // the frame is between the leaf and node 1 from 1.01 to 2.03 us
  host.to_ps = 2 * kUs + 1;
  cut.faults.down = {host};
  auto d = make(cut);
  soft(*d, 0).send_at(0, 0, data_frame(route(0, 1, 0), 64));
  drain(*d);
  CHECK(d->fabric().drop_down == 1);
  // And on the way up: it has left node 0 at 0.01 us and reaches the leaf at 1.01 us.
  host.node = 0;
  host.from_ps = 500 * kNs;
  host.to_ps = 500 * kNs + 1;
  cut.faults.down = {host};
  auto e = make(cut);
  soft(*e, 0).send_at(0, 0, data_frame(route(0, 1, 0), 64));
  drain(*e);
  CHECK(e->fabric().drop_down == 1);
  CHECK(soft(*e, 1).arrivals.empty());
}

TEST_CASE("fabric: a listed drop leaves the random losses behind it where they are", "[tb][fabric]") {
  const auto lost = [](bool listed) {
    Scenario s = two_nodes();
    s.faults.loss = 0.3;
    s.seed = weft::test::seed();
    if (listed) s.faults.drop = {{1, 0, FrameKind::kData, 0}, {1, 0, FrameKind::kData, 7}};
    auto c = make(s);
    for (uint32_t i = 0; i < 200; ++i)
      soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 64, {i, 0, i * 64}));
    drain(*c);
    std::set<uint32_t> psns;
    for (const Arrival& a : soft(*c, 1).arrivals) psns.insert(wire::parse(a.bytes).frame.bth.psn);
    psns.erase(0);
    psns.erase(7);
    return psns;
  };
  CHECK(lost(false).size() > 100);
  CHECK(lost(true) == lost(false));
}

TEST_CASE("fabric: what has no address in the cluster is dropped and counted", "[tb][fabric]") {
  auto c = make(two_nodes());
  std::vector<std::vector<uint8_t>> strange;
  strange.push_back(data_frame(route(0, 1, 0), 64));
  strange.back()[12] = 0x86;                          // not IPv4
  strange.push_back(data_frame(route(0, 7, 0), 64));  // no such node
  strange.push_back(data_frame(route(0, 1, 3), 64));  // no such port
  strange.push_back(std::vector<uint8_t>(20, 0xff));
  strange.push_back(std::vector<uint8_t>(1, 0));
  for (const auto& f : strange) soft(*c, 0).send_at(0, 0, f);
  drain(*c);
  CHECK(c->fabric().drop_no_route == strange.size());
  CHECK(soft(*c, 1).count == 0);
}

TEST_CASE("fabric: copies arrive as such and are nobody's needless resend", "[tb][fabric][random]") {
  Scenario s = two_nodes();
  s.faults.duplicate = 0.5;
  s.seed = weft::test::seed();
  auto c = make(s);
  for (uint32_t i = 0; i < 400; ++i)
    soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 64, {i, 0, i * 64}));
  drain(*c);
  const FabricCounts f = c->fabric();
  CHECK(f.duplicated > 150);
  CHECK(f.duplicated < 250);
  CHECK(f.delivered == 400 + f.duplicated);
  CHECK(c->traffic().redelivered == 0);
  CHECK(c->traffic().lost == 0);
}

TEST_CASE("fabric: the rates of faults may change while it runs", "[tb][fabric]") {
  Scenario s = two_nodes();
  auto c = make(s);
  FaultConfig all, none;
  all.loss = 1;
  uint32_t psn = 0;
  const auto send = [&](const FaultConfig& rates) {
    c->set_fault_rates(rates);
    const FabricCounts before = c->fabric();
    for (uint32_t i = 0; i < 20; ++i, ++psn)
      soft(*c, 0).send_at(c->now_ps(), 0, data_frame(route(0, 1, 0), 64, {psn, 0, psn * 64}));
    drain(*c);
    const FabricCounts after = c->fabric();
    CHECK(after.balanced());
    return std::array<uint64_t, 4>{after.delivered - before.delivered, after.drop_loss - before.drop_loss,
                                   after.duplicated - before.duplicated, after.corrupted - before.corrupted};
  };
  CHECK(send(none) == std::array<uint64_t, 4>{20, 0, 0, 0});
  CHECK(send(all) == std::array<uint64_t, 4>{0, 20, 0, 0});
  FaultConfig copies, flips, late;
  copies.duplicate = 1;
  CHECK(send(copies) == std::array<uint64_t, 4>{40, 0, 20, 0});
  flips.corrupt = 1;
  CHECK(send(flips) == std::array<uint64_t, 4>{20, 0, 0, 20});
  late.reorder = 1;
  const Ps start = c->now_ps();
  c->set_fault_rates(late);
  soft(*c, 0).send_at(c->now_ps(), 0, data_frame(route(0, 1, 0), 64, {psn, 0, psn * 64}));
  drain(*c);
  CHECK(c->now_ps() - start > std::llround(s.faults.reorder_delay_ns * 1000));
  CHECK(send(none) == std::array<uint64_t, 4>{20, 0, 0, 0});
}
