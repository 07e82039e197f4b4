// SPDX-License-Identifier: Apache-2.0
// Hosts that do nothing but load a fabric: each sends decoded packets to one other over many paths, as fast
// as its links and a window allow, and acknowledges every packet it gets. No cluster, no bytes, no resends.
// For tests of the fabric at scale, and for its benchmark.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "tb/fabric/fabric.h"
#include "tb/scenario.h"
#include "tb/sim/frame.h"
#include "tb/sim/kernel.h"
#include "tb/sim/ranks.h"
#include "tb/sim/rng.h"

namespace weft::tb {

struct Load {
  uint32_t data_bytes = 4126;     // 4150 on the link
  uint32_t ack_bytes = 60;        // 84 on the link
  uint32_t window_packets = 48;   // per port
  uint32_t paths = 64;            // per port
  uint64_t packets = UINT64_MAX;  // to send on each port
  bool obeys_pause = true;
};

struct LoadPacket {
  uint32_t number = 0;
  uint32_t path = 0;
};

class LoadHost final : public FabricHost {
 public:
  LoadHost(FramePool& frames, const Load& load, uint32_t node, uint32_t to, uint32_t ports)
      : FabricHost(Runs::kOnEvents), node(node), frames_(frames), load_(load), to_(to), ports_(ports) {}

  // Between windows, before the first.
  void start() {
    for (uint32_t p = 0; p < ports_.size(); ++p) post(0, p);
  }

  const uint32_t node;
  uint64_t got = 0, acked = 0, marked = 0, late = 0;  // late: of a path, behind a packet sent after it
  uint64_t hash = 0;                                  // of everything that came, in order
  Ps last = 0;                                        // when

 private:
  struct Port {
    Ps free_at = 0;
    uint32_t in_flight = 0;
    bool waiting = false;  // for the link: a timer runs
    uint64_t sent = 0;
    std::vector<uint32_t> newest;  // per path, of the data that came
  };

  void on_frame(uint32_t p, Ps now, FrameRef frame) override {
    Port& port = ports_[p];
    const FrameMeta& meta = frame->meta;
    const auto& packet = frame->packet<LoadPacket>();
    hash = mix64(hash ^ static_cast<uint64_t>(now)) + packet.number + meta.ecn;
    last = now;
    if (meta.kind == FrameKind::kAck) {
      ++acked;
      --port.in_flight;
      if (!port.waiting) send(p, now);
      return;
    }
    ++got;
    marked += meta.ecn == kEcnCe;
    if (port.newest.empty()) port.newest.resize(load_.paths);
    uint32_t& newest = port.newest[packet.path];
    late += packet.number < newest;
    newest = std::max(newest, packet.number);
    FrameMeta back;
    back.kind = FrameKind::kAck;
    back.wire_bytes = load_.ack_bytes;
    back.src_node = meta.dst_node;
    back.dst_node = meta.src_node;
    back.src_port = back.dst_port = static_cast<uint8_t>(p);
    back.flow_hash = mix64(meta.flow_hash);
    port.free_at = transmit(p, std::max(now, port.free_at), frames_.make_decoded(packet, back));
  }

  void on_timer(Ps now, uint32_t p) override {
    ports_[p].waiting = false;
    send(p, now);
  }

  void on_pause(uint32_t p, Ps now) override {
    if (!ports_[p].waiting) send(p, now);
  }

  void send(uint32_t p, Ps now) {
    Port& port = ports_[p];
    if (uplink(p).paused && load_.obeys_pause) return;
    if (port.in_flight == load_.window_packets || port.sent == load_.packets) return;
    if (port.free_at > now) {
      port.waiting = true;
      post(port.free_at, p);
      return;
    }
    const auto number = static_cast<uint32_t>(++port.sent);
    const LoadPacket packet{number, number % load_.paths};
    FrameMeta meta;
    meta.kind = FrameKind::kData;
    meta.ecn = kEcnEct0;
    meta.wire_bytes = load_.data_bytes;
    meta.src_node = static_cast<uint16_t>(node);
    meta.dst_node = static_cast<uint16_t>(to_);
    meta.src_port = meta.dst_port = static_cast<uint8_t>(p);
    meta.flow_hash = mix64(uint64_t{node} << 32 | p << 16 | packet.path);
    ++port.in_flight;
    port.free_at = transmit(p, now, frames_.make_decoded(packet, meta));
    port.waiting = true;
    post(port.free_at, p);
  }

  FramePool& frames_;
  const Load load_;
  const uint32_t to_;
  std::vector<Port> ports_;
};

// A fabric under load: host k sends to the k-th of a random permutation without fixed points. With ranks, the
// part of it that runs here; hash() and got() are of all.
class LoadedFabric {
 public:
  LoadedFabric(const Scenario& s, const Load& load, std::vector<uint32_t> to = {}, Ranks* ranks = nullptr)
      : scenario_(s),
        ranks_(ranks),
        kernel(std::llround(s.fabric.link_latency_ns * 1000), std::max(1u, s.threads), ranks, &frames) {
    if (to.empty()) to = permutation(s);
    for (uint32_t k = 0; k < s.nodes; ++k) {
      const unsigned rank = rank_of_node(s, k, kernel.ranks());
      hosts.push_back(rank == kernel.rank() ? std::make_unique<LoadHost>(frames, load, k, to[k], s.planes)
                                            : nullptr);
      kernel.add(hosts.back().get(), rank);
    }
    fabric = std::make_unique<Fabric>(kernel, frames, scenario_, s.planes);
    for (uint32_t k = 0; k < s.nodes; ++k) {
      if (!hosts[k]) continue;
      hosts[k]->attach(*fabric, k);
      if (to[k] != k) hosts[k]->start();
    }
  }

  // A single cycle through all nodes in random order.
  static std::vector<uint32_t> permutation(const Scenario& s) {
    std::vector<uint32_t> order(s.nodes), to(s.nodes);
    std::iota(order.begin(), order.end(), 0);
    Rng rng(s.seed, 77);
    for (uint32_t i = s.nodes - 1; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
    for (uint32_t i = 0; i < s.nodes; ++i) to[order[i]] = order[(i + 1) % s.nodes];
    return to;
  }

  void run_until(Ps end) {
    while (kernel.now() < end) kernel.run_window(end);
  }
  // Of all that came anywhere.
  uint64_t hash() const {
    return sum([](const LoadHost& host) { return mix64(host.hash + host.node); });
  }
  uint64_t got() const {
    return sum([](const LoadHost& host) { return host.got; });
  }
  uint64_t late() const {
    return sum([](const LoadHost& host) { return host.late; });
  }

 private:
  template <class Value>
  uint64_t sum(Value&& value) const {
    uint64_t total = 0;
    for (const auto& host : hosts) total += host ? value(*host) : 0;
    if (ranks_) ranks_->sum({&total, 1});
    return total;
  }

  const Scenario scenario_;
  Ranks* const ranks_;

 public:
  FramePool frames;  // before everything that holds frames
  Kernel kernel;
  std::vector<std::unique_ptr<LoadHost>> hosts;
  std::unique_ptr<Fabric> fabric;
};

// 128 hosts, 100 Gb/s, 1 us a link, three tiers without oversubscription.
inline Scenario f100(uint32_t nodes = 128, uint32_t planes = 1) {
  Scenario s;
  s.nodes = nodes;
  s.planes = planes;
  s.threads = 1;
  s.fabric.topology = Topology::kFatTree;
  return s;
}

// What a test over ranks runs on both sides: lossy, so that random draws are compared too.
inline Scenario ranked_scenario(uint32_t nodes, uint32_t planes, uint32_t threads) {
  Scenario s = f100(nodes, planes);
  s.threads = threads;
  s.faults.loss = 0.001;
  return s;
}

}  // namespace weft::tb
