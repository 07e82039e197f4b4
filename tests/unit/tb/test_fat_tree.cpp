// SPDX-License-Identifier: Apache-2.0
// Fat trees, and links that differ: who reaches whom, how long it takes, which ways are taken. Frames are raw
// bytes through a Cluster where times matter, decoded packets of LoadHosts where load does.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "load_host.h"
#include "soft_node.h"
#include "weft_test.h"

using namespace weft::tb;

namespace {

std::unique_ptr<Cluster> make(const Scenario& s, uint32_t ports = 1) {
  auto c = Cluster::create(s, soft_nodes(ports), {});
  INFO(c.error());
  REQUIRE(c.ok());
  return c.take();
}

// Time from the first bit of a frame to its first bit at the other end, in an idle fabric.
Ps flight(const Scenario& s, uint32_t from, uint32_t to, const std::vector<uint8_t>& frame) {
  auto c = make(s);
  soft(*c, from).send_at(0, 0, frame);
  REQUIRE(c->settle(10 * kMs).ok());
  REQUIRE(soft(*c, to).arrivals.size() == 1);
  return soft(*c, to).arrivals[0].first_bit;
}
Ps flight(const Scenario& s, uint32_t from, uint32_t to) {
  return flight(s, from, to, data_frame(route(from, to, 0), 4000));
}

std::map<std::string, const LinkCounts*> by_name(const Fabric& fabric) {
  std::map<std::string, const LinkCounts*> all;
  for (const LinkCounts* l : fabric.links()) all[l->name] = l;
  return all;
}

}  // namespace

TEST_CASE("fat tree: two, four or six links, each a serialization and a latency", "[tb][fabric]") {
  Scenario s = f100();
  s.fabric.switch_latency_ns = 300;
  const auto frame = data_frame(route(0, 1, 0), 4000);
  const Ps wire = wire_ps(static_cast<uint32_t>(frame.size()), 100'000);
  const auto hops = [&](int links) { return (links - 1) * wire + links * kUs + (links - 1) * 300 * kNs; };
  CHECK(flight(s, 0, 3) == hops(2));  // same ToR
  CHECK(flight(s, 0, 4) == hops(4));  // same pod
  CHECK(flight(s, 0, 15) == hops(4));
  CHECK(flight(s, 0, 16) == hops(6));
  CHECK(flight(s, 127, 0) == hops(6));
}

TEST_CASE("fat tree: every node reaches every other, also where the last pod is not full", "[tb][fabric]") {
  Scenario s = f100(41, 2);
  s.fabric.radix = 3;  // five pods of nine, the last of five; no power of two anywhere
  auto c = make(s, 2);
  for (uint32_t from = 0; from < s.nodes; ++from) {
    for (uint32_t to = 0; to < s.nodes; ++to) {
      if (to == from) continue;
      for (uint32_t port : {0u, 1u}) {
        soft(*c, from).keep = false;
        soft(*c, from).send_at(0, port, data_frame(route(from, to, port), 64));
      }
    }
  }
  REQUIRE(c->settle(100 * kMs).ok());
  for (uint32_t k = 0; k < s.nodes; ++k) CHECK(soft(*c, k).count == 2 * (s.nodes - 1));
  CHECK(c->fabric().balanced());
  CHECK(c->fabric().delivered == uint64_t{2} * s.nodes * (s.nodes - 1));
}

TEST_CASE("fat tree: a flow keeps one way, and flows take all of them", "[tb][fabric]") {
  // Host 0 alone sends, to a host of another pod.
  std::vector<uint32_t> to(128);
  std::iota(to.begin(), to.end(), 0);
  to[0] = 100;
  Load load;
  load.paths = 1;
  load.packets = 200;
  LoadedFabric one(f100(), load, to);
  one.run_until(kMs);
  CHECK(one.got() == 200);
  std::set<uint64_t> on_up_links;
  for (const auto& [name, link] : by_name(*one.fabric)) {
    if (name.find("agg") != std::string::npos && name.find("-> core") != std::string::npos)
      on_up_links.insert(link->frames);
  }
  CHECK(on_up_links == std::set<uint64_t>{0, 200});  // data one way, acks another one way

  load.paths = 1600;
  load.packets = 1600;
  LoadedFabric many(f100(), load, to);
  many.run_until(kMs);
  CHECK(many.got() == 1600);
  CHECK(many.late() == 0);
  uint64_t ways = 0, frames = 0;
  for (const auto& [name, link] : by_name(*many.fabric)) {
    // Pod 6, aggregation switches 24 to 27, holds host 100: four cores come down to each.
    const size_t agg = name.find("-> agg ");
    if (name.find("core ") == std::string::npos || agg == std::string::npos) continue;
    if (const int number = std::stoi(name.substr(agg + 7)); number < 24 || number > 27) continue;
    ++ways;
    frames += link->frames;
    // 100 expected, standard deviation 10: the hashes of the two tiers do not follow each other.
    CHECK(link->frames > 50);
    CHECK(link->frames < 150);
  }
  CHECK(ways == 16);
  CHECK(frames == 1600);
}

TEST_CASE("fat tree: one, two and three threads deliver the same bits", "[tb][fabric]") {
  const auto run = [](unsigned threads, uint64_t seed) {
    Scenario s = f100(128, 2);
    s.seed = seed;
    s.threads = threads;
    s.faults.loss = 0.001;
    LoadedFabric f(s, {});
    f.run_until(100 * kUs);
    CHECK(f.got() > 128 * 2 * 100);
    CHECK(f.fabric->counts().drop_loss > 0);
    CHECK(f.fabric->counts().ce_marked > 0);
    return f.hash();
  };
  const uint64_t seed = weft::test::seed();
  const uint64_t one = run(1, seed);
  CHECK(run(2, seed) == one);
  CHECK(run(3, seed) == one);
  CHECK(run(1, seed + 1) != one);
}

TEST_CASE("fabric: spraying packets reorders inside a path, spraying flows does not", "[tb][fabric]") {
  Scenario s = f100();
  Load load;
  load.paths = 4;
  LoadedFabric flows(s, load);
  flows.run_until(200 * kUs);
  CHECK(flows.late() == 0);
  s.fabric.spray = Spray::kPacket;
  LoadedFabric packets(s, load);
  packets.run_until(200 * kUs);
  CHECK(packets.late() > packets.got() / 100);
}

TEST_CASE("fabric: decoded packets are marked like bytes, acks never", "[tb][fabric]") {
  Scenario s = f100(16);
  s.fabric.ecn_kmin_bytes = s.fabric.ecn_kmax_bytes =
      0;  // everything that may be marked is, at the first hop
  std::vector<uint32_t> to(16);
  std::iota(to.begin(), to.end(), 0);
  to[0] = 7;
  Load load;
  load.packets = 50;
  LoadedFabric f(s, load, to);
  f.run_until(kMs);
  CHECK(f.hosts[0]->acked == 50);
  CHECK(f.hosts[7]->marked == 50);
  CHECK(f.fabric->counts().ce_marked == 50);
}

TEST_CASE("fabric: links of their own rate and length", "[tb][fabric]") {
  const auto frame = data_frame(route(0, 1, 0), 4000);
  const auto n = static_cast<uint32_t>(frame.size());
  const Ps wire = wire_ps(n, 100'000);
  Scenario s = f100();
  const Ps two = flight(s, 0, 1), six = flight(s, 0, 127);

  HostConfig host;
  host.node = host.last = 1;
  host.rate_gbps = 25;
  host.extra_latency_ns = 7000;
  s.fabric.host = {host};
  CHECK(flight(s, 0, 1) ==
        two + 7 * kUs);  // the first bit does not wait for the slow link, the next frame would
  CHECK(flight(s, 1, 0, data_frame(route(1, 0, 0), 4000)) == two + 7 * kUs + wire_ps(n, 25'000) - wire);
  CHECK(flight(s, 2, 3, data_frame(route(2, 3, 0), 4000)) == two);

  s = f100();
  s.fabric.pods = {{0, 7, 100'000}};
  CHECK(flight(s, 0, 127) == six + 100 * kUs);
  CHECK(flight(s, 127, 0) == six + 100 * kUs);
  CHECK(flight(s, 0, 111) == six);
  CHECK(flight(s, 0, 1) == two);

  // All links of one core and one ToR: whatever the way, it takes one of those that differ.
  s = f100(16);
  const Ps four = flight(s, 0, 15);
  for (int agg = 0; agg < 4; ++agg) {
    LinkConfig& l = s.fabric.link.emplace_back();
    l.plane = 0;
    l.tor = 3;
    l.agg = agg;
    l.rate_factor = 0.25;
    l.extra_latency_ns = 500;
  }
  CHECK(flight(s, 0, 15) == four + 500 * kNs + wire_ps(n, 25'000) - wire);
  CHECK(flight(s, 15, 0) == four + 500 * kNs + wire_ps(n, 25'000) - wire);
  CHECK(flight(s, 0, 11) == four);
}

TEST_CASE("fabric: slow core links are as many as asked, and spread", "[tb][fabric]") {
  for (const uint32_t slow : {1u, 8u, 32u, 100u, 128u}) {
    Scenario s = f100();
    s.fabric.slow_core_links = slow;
    const LoadedFabric f(s, {});
    uint32_t up = 0, down = 0;
    std::map<std::string, uint32_t> per_agg, per_core;
    for (const auto& [name, link] : by_name(*f.fabric)) {
      if (link->rate_mbps == 100'000) continue;
      CHECK(link->rate_mbps == 25'000);
      const size_t arrow = name.find(" -> ");
      if (name.find("-> core") != std::string::npos) {
        ++up;
        ++per_agg[name.substr(0, arrow)];
        ++per_core[name.substr(arrow)];
      } else {
        ++down;
      }
    }
    INFO(slow);
    CHECK(up == slow);
    CHECK(down == slow);
    for (const auto& [name, count] : per_agg) CHECK(count <= (slow + 31) / 32);
    for (const auto& [name, count] : per_core) CHECK(count <= (slow + 15) / 16 + 1);
  }
}

TEST_CASE("fabric: slow core links may be those of the first aggregation switches", "[tb][fabric]") {
  for (const uint32_t slow : {1u, 8u, 30u}) {
    Scenario s = f100();
    s.fabric.slow_core_links = slow;
    s.fabric.slow_core_place = SlowPlace::kTogether;
    const LoadedFabric f(s, {});
    uint32_t found = 0;
    for (const auto& [name, link] : by_name(*f.fabric)) {
      unsigned agg = 0, core = 0;
      const int up = std::sscanf(name.c_str(), "plane 0: agg %u -> core %u", &agg, &core);
      if (up != 2 && std::sscanf(name.c_str(), "plane 0: core %u -> agg %u", &core, &agg) != 2) continue;
      INFO(name);
      CHECK((link->rate_mbps == 25'000) == (agg * 4 + core % 4 < slow));
      found += link->rate_mbps == 25'000;
    }
    CHECK(found == 2 * slow);
  }
}

TEST_CASE("fat tree: a dead link swallows the flows that take it, from then on until then", "[tb][fabric]") {
  const auto lost = [](auto&& fault) {
    Scenario s = f100();
    fault(s.faults.down.emplace_back());
    std::vector<uint32_t> to(128);
    std::iota(to.begin(), to.end(), 0);
    to[0] = 100;
    Load load;
    load.window_packets = 2000;
    load.packets = 1600;  // 531 us
    LoadedFabric f(s, load, to);
    f.run_until(kMs);
    const uint64_t gone = 1600 - f.got();
    CHECK(f.fabric->counts().drop_down == gone + (f.got() - f.hosts[0]->acked));
    return gone;
  };
  const auto near = [](uint64_t got, double share) {
    // Flows, not packets, fall to the links: 64 of them.
    return std::abs(static_cast<double>(got) / 1600 - share) < 4 * std::sqrt(share / 64);
  };
  CHECK(near(lost([](DownFault& d) { d.plane = 0, d.tor = 0, d.agg = 2; }), 1.0 / 4));
  CHECK(near(lost([](DownFault& d) { d.plane = 0, d.agg = 2, d.core = 9; }), 1.0 / 16));
  CHECK(lost([](DownFault& d) { d.plane = 0, d.tor = 1, d.agg = 2; }) == 0);
  CHECK(lost([](DownFault& d) { d.plane = 0; }) == 1600);
  const uint64_t part = lost([](DownFault& d) {
    d.node = 0, d.port = 0;
    d.from_ps = 100 * kUs;
    d.to_ps = 200 * kUs;
  });
  CHECK(part > 290);  // 100 us are 301 packets
  CHECK(part < 310);
}

TEST_CASE("fabric: flow control stops senders instead of dropping", "[tb][fabric]") {
  // Hosts 16 .. 47 of two pods send to host 0, and host 48 to host 1, which only shares switches with them.
  struct Outcome {
    FabricCounts counts;
    uint64_t got = 0, victim = 0, pauses = 0, deepest = 0, at_senders = 0;
  };
  const auto incast = [](bool pfc, bool obeys) {
    Scenario s = f100();
    s.fabric.pfc = pfc;
    s.fabric.queue_bytes = 2'000'000;
    s.fabric.pfc_xoff_bytes = 60'000;
    s.fabric.pfc_xon_bytes = 40'000;
    std::vector<uint32_t> to(128);
    std::iota(to.begin(), to.end(), 0);
    for (uint32_t k = 16; k < 48; ++k) to[k] = 0;
    to[48] = 1;
    Load load;
    load.packets = 100;
    load.window_packets = 100;
    load.obeys_pause = obeys;
    LoadedFabric f(s, load, to);
    f.run_until(10 * kMs);
    Outcome o;
    o.counts = f.fabric->counts();
    o.got = f.hosts[0]->got;
    o.victim = f.hosts[1]->got;
    for (const LinkCounts* l : f.fabric->links()) {
      o.pauses += l->pauses;
      o.deepest = std::max(o.deepest, l->max_queue_bytes);
      if (l->name.find(": tor 4 -> agg") != std::string::npos)
        o.at_senders = std::max(o.at_senders, l->max_queue_bytes);
    }
    CHECK(o.counts.in_flight == 0);
    CHECK(f.kernel.pending_events() == 0);
    return o;
  };
  const Outcome plain = incast(false, true);
  CHECK(plain.pauses == 0);
  CHECK(plain.counts.drop_queue > 1000);
  CHECK(plain.got + plain.victim + plain.counts.drop_queue == 3300);

  const Outcome lossless = incast(true, true);
  CHECK(lossless.counts.drop_queue == 0);
  CHECK(lossless.got == 3200);
  CHECK(lossless.victim == 100);
  CHECK(lossless.pauses > 100);
  // A queue holds at most what each of its seven other inputs may leave in a switch: xoff, and what is under
  // way meanwhile: a frame that has begun at either end, and the line for two latencies.
  CHECK(lossless.deepest < 7 * (60'000 + 2 * 4130 + 25'000));

  // Hosts that do not stop overrun their ToR.
  CHECK(incast(true, false).at_senders > lossless.at_senders);
}
