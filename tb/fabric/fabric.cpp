// SPDX-License-Identifier: Apache-2.0
#include "tb/fabric/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "sw/wire/frame.h"
#include "weft_wire.h"

namespace weft::tb {

int64_t to_mbps(double gbps) {
  return std::llround(gbps * 1000);
}

namespace {

constexpr uint32_t kDelayed = 1u << 31;   // tag of a switch's event to itself: the rest is the output port
constexpr uint32_t kFromHost = 1u << 30;  // with kDelayed: the frame came over a host link
constexpr size_t kOrderBuckets = 1024;  // of 5-tuples, per host port; two paths in one bucket keep order, too

uint64_t flow_hash(const uint8_t* frame, size_t bytes, const FrameInfo& info, uint64_t salt) {
  uint64_t ports = 0;
  constexpr size_t kUdpAt = wire::Eth::kBytes + wire::Ipv4::kBytes;
  if (bytes >= kUdpAt + 4) {
    for (size_t i = 0; i < 4; ++i) ports = ports << 8 | frame[kUdpAt + i];
  }
  const uint64_t protocol = frame[wire::Eth::kBytes + 9];
  return mix64(mix64(uint64_t{info.src_ip} << 32 | info.dst_ip) ^ (ports << 8 | protocol) ^ salt);
}

}  // namespace

// A queue and the link behind it.
struct OutPort {
  ProcessId to = 0;
  bool host = false;
  uint32_t node = 0, port = 0;  // host ports
  int64_t rate_mbps = 0;
  Ps latency = 0;
  Downtime down;
  LinkCounts counts;

  // The queue: frames whose last bit has not left, oldest first.
  struct Waiting {
    Ps leaves;
    uint32_t bytes;
  };
  std::vector<Waiting> ring;  // size is a power of two, grows when full
  size_t head = 0, waiting = 0;
  uint64_t queued_bytes = 0;
  Ps free_at = 0;

  Rng mark, loss, corrupt, jitter, reorder, duplicate;  // one each: faults do not disturb each other
  std::vector<Ps> last_in_order;                        // per bucket of 5-tuples; empty: no jitter
  uint64_t seen[4] = {};                                // frames by FrameKind, for the drop list
  std::vector<std::pair<FrameKind, uint64_t>> drop_list;

  void forget_sent(Ps now) {
    while (waiting != 0 && ring[head].leaves <= now) {
      queued_bytes -= ring[head].bytes;
      head = (head + 1) & (ring.size() - 1);
      --waiting;
    }
  }
  void append(Ps leaves, uint32_t bytes) {
    if (waiting == ring.size()) {
      std::vector<Waiting> larger(std::max<size_t>(64, 2 * ring.size()));
      for (size_t i = 0; i < waiting; ++i) larger[i] = ring[(head + i) & (ring.size() - 1)];
      ring.swap(larger);
      head = 0;
    }
    ring[(head + waiting) & (ring.size() - 1)] = {leaves, bytes};
    ++waiting;
    queued_bytes += bytes;
  }
};

class Switch : public Process {
 public:
  Switch(const Scenario& scenario, FramePool& frames, std::string name, uint32_t plane, int leaf,
         uint32_t ports)
      : s_(scenario),
        frames_(frames),
        name_(std::move(name)),
        plane_(plane),
        leaf_(leaf),
        node_ports_(ports) {
    latency_ = std::llround(s_.fabric.switch_latency_ns * 1000);
    jitter_ps_ = std::llround(s_.faults.jitter_ns * 1000);
    reorder_ps_ = std::llround(s_.faults.reorder_delay_ns * 1000);
    salt_ = mix64(s_.seed ^ mix64(uint64_t{plane} << 32 | static_cast<uint32_t>(leaf + 1)));
    host_mbps_ = to_mbps(s_.fabric.rate_gbps);
    up_mbps_ = to_mbps(s_.fabric.uplink_rate_gbps);
  }

  std::vector<OutPort> out;   // leaf: host ports, then spines; spine: leaves
  std::vector<int> host_out;  // leaf: [node * ports + port] -> out, -1: not here
  size_t first_spine = 0;
  WireLog log;
  FabricCounts counts;
  uint64_t no_route = 0;
  const std::string& name() const { return name_; }
  uint32_t plane() const { return plane_; }

  void on_event(Event& event) override {
    const FrameInfo info = inspect(event.frame->data(), event.frame->bytes);
    if ((event.tag & kDelayed) != 0) {
      const bool from_host = (event.tag & kFromHost) != 0;
      enqueue(out[event.tag & ~(kDelayed | kFromHost)], event.time, from_host, std::move(event.frame), info);
      return;
    }
    const bool from_host = event.source < s_.nodes;
    const Ps now = event.time + latency_;
    OutPort* port = route(*event.frame, info);
    if (!port) {
      ++no_route;
      ++counts.drop_no_route;
      lost(event.frame, info, now, LossReason::kNoRoute);
    } else if (port->host && (jitter_ps_ > 0 || s_.faults.reorder > 0 || s_.faults.duplicate > 0)) {
      delay(*port, now, from_host, std::move(event.frame), info);
    } else {
      enqueue(*port, now, from_host, std::move(event.frame), info);
    }
  }

 private:
  OutPort* route(const Frame& frame, const FrameInfo& info) {
    if (!info.ipv4) return nullptr;
    const uint32_t node = info.dst_ip & 0xffff;
    const uint32_t port = info.dst_ip >> 16 & 0xff;
    if (node >= s_.nodes || port >= node_ports_ || info.dst_ip != node_ip(node, port) ||
        port % s_.planes != plane_) {
      return nullptr;
    }
    const uint32_t leaf = node / s_.fabric.hosts_per_leaf;
    if (leaf_ < 0) return &out[leaf];
    if (leaf == static_cast<uint32_t>(leaf_))
      return &out[static_cast<size_t>(host_out[node * node_ports_ + port])];
    const uint64_t hash = flow_hash(frame.data(), frame.bytes, info, salt_);
    return &out[first_spine + hash % s_.fabric.spines];
  }

  // Before the last queue: frames take their time, overtake each other, become two.
  void delay(OutPort& port, Ps now, bool from_host, FrameRef frame, const FrameInfo& info) {
    const uint32_t tag = kDelayed | (from_host ? kFromHost : 0) | static_cast<uint32_t>(&port - out.data());
    Ps at = now;
    if (jitter_ps_ > 0) {
      at += static_cast<Ps>(port.jitter.below(static_cast<uint64_t>(jitter_ps_) + 1));
      const uint64_t bucket = flow_hash(frame->data(), frame->bytes, info, 0) % kOrderBuckets;
      at = std::max(at, port.last_in_order[bucket]);
      port.last_in_order[bucket] = at;
    }
    if (port.reorder.chance(s_.faults.reorder)) at += reorder_ps_;
    if (port.duplicate.chance(s_.faults.duplicate)) {
      FrameRef copy = frames_.make(frame->data(), frame->bytes);
      copy->flags = frame->flags | kFrameCopy;
      ++counts.duplicated;
      post(id(), at + static_cast<Ps>(port.duplicate.below(static_cast<uint64_t>(port.latency) + 1)), tag,
           std::move(copy));
    }
    post(id(), at, tag, std::move(frame));
  }

  void enqueue(OutPort& port, Ps now, bool from_host, FrameRef frame, const FrameInfo& info) {
    port.forget_sent(now);
    const uint32_t bytes = frame->bytes + kFcsBytes;
    if (port.queued_bytes + bytes > s_.fabric.queue_bytes) {
      ++port.counts.drop_queue;
      ++counts.drop_queue;
      lost(frame, info, now, LossReason::kQueue);
      return;
    }
    if (marks(port)) mark(port, frame);
    const Ps time = wire_ps(frame->bytes, port.rate_mbps);
    Ps start = std::max(now, port.free_at);
    if (s_.fabric.cut_through) {  // the last bit cannot leave before it has come
      start = std::max(start, now + wire_ps(frame->bytes, from_host ? host_mbps_ : up_mbps_) - time);
    }
    const Ps end = start + time;
    port.free_at = end;
    port.append(end, bytes);
    port.counts.max_queue_bytes = std::max(port.counts.max_queue_bytes, port.queued_bytes);
    ++port.counts.frames;
    port.counts.bytes += frame->bytes;
    if (port.down.touches(start, end + port.latency)) {
      ++port.counts.drop_down;
      ++counts.drop_down;
      lost(frame, info, start, LossReason::kDown);
      return;
    }
    if (port.host) {
      if (!survives(port, frame, info, end + port.latency)) return;
      post(port.to, start + port.latency, port.port, std::move(frame));
    } else {
      post(port.to, (s_.fabric.cut_through ? start : end) + port.latency, 0, std::move(frame));
    }
  }

  bool marks(OutPort& port) const {
    const FabricConfig& f = s_.fabric;
    if (port.queued_bytes >= f.ecn_kmax_bytes) return true;
    if (port.queued_bytes <= f.ecn_kmin_bytes) return false;
    return port.mark.chance(f.ecn_pmax * static_cast<double>(port.queued_bytes - f.ecn_kmin_bytes) /
                            static_cast<double>(f.ecn_kmax_bytes - f.ecn_kmin_bytes));
  }

  void mark(OutPort& port, FrameRef& frame) {
    const uint8_t ecn = frame->data()[wire::Eth::kBytes + 1] & 3;
    if (ecn == 0 || ecn == wire::kEcnCe) return;
    frames_.writable(frame);
    wire::mark_ce(std::span<uint8_t>(frame->data(), frame->bytes));
    ++port.counts.ce_marked;
    ++counts.ce_marked;
  }

  // What befalls a frame at the receiving host port.
  bool survives(OutPort& port, FrameRef& frame, const FrameInfo& info, Ps arrives) {
    bool listed = false;
    for (const auto& [kind, n] : port.drop_list) {
      if (kind == FrameKind::kAny || kind == info.kind) listed |= n == port.seen[static_cast<size_t>(kind)];
    }
    ++port.seen[static_cast<size_t>(FrameKind::kAny)];
    if (info.kind != FrameKind::kAny) ++port.seen[static_cast<size_t>(info.kind)];
    const bool unlucky = port.loss.chance(s_.faults.loss);
    if (listed) {
      ++port.counts.drop_listed;
      ++counts.drop_listed;
      lost(frame, info, arrives, LossReason::kListed);
      return false;
    }
    if (unlucky) {
      ++port.counts.drop_loss;
      ++counts.drop_loss;
      lost(frame, info, arrives, LossReason::kRandom);
      return false;
    }
    if (port.corrupt.chance(s_.faults.corrupt)) {
      frames_.writable(frame);
      const uint64_t bits = uint64_t{frame->bytes} * 8;
      const auto flip = [&](uint64_t bit) { frame->data()[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8); };
      const uint64_t first = port.corrupt.below(bits);
      flip(first);
      // The others never hit the first again, so the frame does differ.
      for (uint64_t more = port.corrupt.below(3); more > 0; --more)
        flip((first + 1 + port.corrupt.below(bits - 1)) % bits);
      frame->flags |= kFrameCorrupt;
      ++counts.corrupted;
      lost(frame, info, arrives,
           LossReason::kCorrupt);  // the frame itself is delivered, for the node to refuse
    }
    return true;
  }

  void lost(const FrameRef& frame, const FrameInfo& info, Ps time, LossReason reason) {
    WireRecord r;
    r.time = r.start = time;
    r.info = info;
    r.node = info.ipv4 ? info.dst_ip & 0xffff : ~0u;
    r.port = static_cast<uint8_t>(info.dst_ip >> 16);
    r.bytes = frame->bytes;
    r.flags = frame->flags;
    r.what = WireWhat::kLost;
    r.reason = reason;
    log.push_back(r);
  }

  const Scenario& s_;
  FramePool& frames_;
  const std::string name_;
  const uint32_t plane_;
  const int leaf_;  // -1: a spine
  const uint32_t node_ports_;
  Ps latency_ = 0, jitter_ps_ = 0, reorder_ps_ = 0;
  int64_t host_mbps_ = 0, up_mbps_ = 0;
  uint64_t salt_ = 0;
};

Fabric::Fabric(Kernel& kernel, FramePool& frames, const Scenario& s, uint32_t ports) : ports_(ports) {
  const uint32_t per_leaf = s.fabric.hosts_per_leaf;
  const uint32_t leaves = (s.nodes + per_leaf - 1) / per_leaf;
  const uint32_t spines = leaves > 1 ? s.fabric.spines : 0;
  const Ps latency = std::llround(s.fabric.link_latency_ns * 1000);
  const int64_t host_mbps = to_mbps(s.fabric.rate_gbps);
  const int64_t up_mbps = to_mbps(s.fabric.uplink_rate_gbps);
  uplinks_.resize(size_t{s.nodes} * ports);

  const auto fill = [&](OutPort& o, uint32_t plane, std::string name, uint64_t stream) {
    o.latency = latency;
    o.counts.name = std::move(name);
    o.counts.plane = plane;
    const uint64_t seed = mix64(s.seed ^ mix64(stream));
    o.mark = Rng(seed, 1);
    o.loss = Rng(seed, 2);
    o.corrupt = Rng(seed, 3);
    o.jitter = Rng(seed, 4);
    o.reorder = Rng(seed, 5);
    o.duplicate = Rng(seed, 6);
  };
  const auto dead = [&](Downtime& down, auto&& mine) {
    for (const DownFault& d : s.faults.down) {
      if (mine(d)) down.add(d.from_ps, d.to_ps);
    }
  };
  const auto plane_fault = [](const DownFault& d, uint32_t plane) {
    return d.plane == static_cast<int>(plane) && d.leaf < 0;
  };
  const auto core_fault = [](const DownFault& d, uint32_t plane, uint32_t leaf, uint32_t spine) {
    return d.plane == static_cast<int>(plane) && d.leaf == static_cast<int>(leaf) &&
           d.spine == static_cast<int>(spine);
  };
  const auto host_fault = [](const DownFault& d, uint32_t node, uint32_t port) {
    return d.node == static_cast<int>(node) && d.port == static_cast<int>(port);
  };

  for (uint32_t plane = 0; plane < s.planes; ++plane) {
    std::vector<Switch*> leaf_of(leaves), spine_of(spines);
    for (uint32_t l = 0; l < leaves; ++l) {
      auto sw = std::make_unique<Switch>(s, frames, fmt::format("plane {} leaf {}", plane, l), plane,
                                         static_cast<int>(l), ports);
      kernel.add(*sw);
      leaf_of[l] = sw.get();
      switches_.push_back(std::move(sw));
    }
    for (uint32_t i = 0; i < spines; ++i) {
      auto sw =
          std::make_unique<Switch>(s, frames, fmt::format("plane {} spine {}", plane, i), plane, -1, ports);
      kernel.add(*sw);
      spine_of[i] = sw.get();
      switches_.push_back(std::move(sw));
    }
    for (uint32_t l = 0; l < leaves; ++l) {
      Switch& leaf = *leaf_of[l];
      leaf.host_out.assign(size_t{s.nodes} * ports, -1);
      for (uint32_t node = l * per_leaf; node < std::min(s.nodes, (l + 1) * per_leaf); ++node) {
        for (uint32_t port = plane; port < ports; port += s.planes) {
          leaf.host_out[node * ports + port] = static_cast<int>(leaf.out.size());
          OutPort& o = leaf.out.emplace_back();
          fill(o, plane, fmt::format("plane {}: leaf {} -> node {} port {}", plane, l, node, port),
               uint64_t{1} << 40 | uint64_t{node} << 8 | port);
          o.to = node;
          o.host = true;
          o.node = node;
          o.port = port;
          o.rate_mbps = host_mbps;
          if (s.faults.jitter_ns > 0) o.last_in_order.assign(kOrderBuckets, 0);
          for (const DropFault& d : s.faults.drop) {
            if (d.node == node && d.port == port) o.drop_list.emplace_back(d.kind, d.n);
          }
          dead(o.down,
               [&](const DownFault& d) { return plane_fault(d, plane) || host_fault(d, node, port); });
          Uplink& up = uplink(node, port);
          up.leaf = leaf.id();
          up.latency = latency;
          up.cut_through = s.fabric.cut_through;
          up.down = o.down;
          up.counts.plane = plane;
          up.counts.name = fmt::format("plane {}: node {} port {} -> leaf {}", plane, node, port, l);
        }
      }
      leaf.first_spine = leaf.out.size();
      for (uint32_t i = 0; i < spines; ++i) {
        OutPort& o = leaf.out.emplace_back();
        fill(o, plane, fmt::format("plane {}: leaf {} -> spine {}", plane, l, i),
             uint64_t{2} << 40 | uint64_t{plane} << 32 | uint64_t{l} << 16 | i);
        o.to = spine_of[i]->id();
        o.rate_mbps = up_mbps;
        dead(o.down, [&](const DownFault& d) { return plane_fault(d, plane) || core_fault(d, plane, l, i); });
      }
    }
    for (uint32_t i = 0; i < spines; ++i) {
      for (uint32_t l = 0; l < leaves; ++l) {
        OutPort& o = spine_of[i]->out.emplace_back();
        fill(o, plane, fmt::format("plane {}: spine {} -> leaf {}", plane, i, l),
             uint64_t{3} << 40 | uint64_t{plane} << 32 | uint64_t{l} << 16 | i);
        o.to = leaf_of[l]->id();
        o.rate_mbps = up_mbps;
        dead(o.down, [&](const DownFault& d) { return plane_fault(d, plane) || core_fault(d, plane, l, i); });
      }
    }
  }
}

Fabric::~Fabric() = default;

std::vector<WireLog*> Fabric::logs() {
  std::vector<WireLog*> all;
  for (auto& sw : switches_) all.push_back(&sw->log);
  return all;
}

FabricCounts Fabric::counts() const {
  FabricCounts sum;
  for (const auto& sw : switches_) {
    sum.duplicated += sw->counts.duplicated;
    sum.corrupted += sw->counts.corrupted;
    sum.ce_marked += sw->counts.ce_marked;
    sum.drop_loss += sw->counts.drop_loss;
    sum.drop_listed += sw->counts.drop_listed;
    sum.drop_queue += sw->counts.drop_queue;
    sum.drop_down += sw->counts.drop_down;
    sum.drop_no_route += sw->counts.drop_no_route;
  }
  for (const Uplink& up : uplinks_) sum.drop_down += up.counts.drop_down;
  return sum;
}

std::vector<const LinkCounts*> Fabric::links() const {
  std::vector<const LinkCounts*> all;
  for (const Uplink& up : uplinks_) all.push_back(&up.counts);
  for (const auto& sw : switches_) {
    for (const OutPort& o : sw->out) all.push_back(&o.counts);
  }
  return all;
}

std::vector<std::pair<std::string, uint64_t>> Fabric::no_route() const {
  std::vector<std::pair<std::string, uint64_t>> all;
  for (const auto& sw : switches_) all.emplace_back(sw->name(), sw->no_route);
  return all;
}

bool FabricCounts::balanced() const {
  return in + duplicated + injected ==
         delivered + drop_loss + drop_listed + drop_queue + drop_down + drop_no_route + in_flight;
}

}  // namespace weft::tb
