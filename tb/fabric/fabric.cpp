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

constexpr size_t kOrderBuckets = 1024;  // of 5-tuples, per host port; two paths in one bucket keep order, too

// Whether the words of a scenario mean this link.
bool means(const LinkName& words, const LinkName& link) {
  if (words.node >= 0) return words.node == link.node && words.port == link.port;
  if (words.plane != link.plane) return false;
  const bool whole_plane = words.leaf < 0 && words.agg < 0;
  return whole_plane || (words.leaf == link.leaf && words.spine == link.spine && words.tor == link.tor &&
                         words.agg == link.agg && words.core == link.core);
}

}  // namespace

// A queue and the link behind it.
struct alignas(64) OutPort {  // what every frame needs stands first
  ProcessId to = 0;
  uint32_t to_port = 0;  // of the switch or node there
  bool host = false;
  LinkRate rate;
  Ps latency = 0;
  Ps free_at = 0;

  // The queue: frames whose last bit has not left, oldest first.
  struct Waiting {
    Ps leaves;
    uint32_t bytes;
  };
  std::vector<Waiting> ring;  // size is a power of two, grows when full
  size_t head = 0, waiting = 0;
  uint64_t queued_bytes = 0;

  Downtime down;
  Rng loss, mark;
  LinkCounts counts;  // those of every frame first

  // Priority flow control: the queue itself, and what came in by the other direction of the link.
  Frame *oldest = nullptr, *newest = nullptr;       // linked by Frame::next
  uint32_t sending_bytes = 0, sending_in_port = 0;  // the frame on the wire; 0 bytes: none
  bool paused = false;                              // by who is at the other end
  bool pausing = false;                             // who is at the other end
  uint64_t ingress_bytes = 0;                       // waiting in any queue here

  Rng corrupt, jitter, reorder, duplicate;  // one each: faults do not disturb each other
  std::vector<Ps> last_in_order;            // per bucket of 5-tuples; empty: no jitter
  uint64_t seen[4] = {};                    // frames by FrameKind, for the drop list
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

// Where a switch stands, and how it finds its way.
struct SwitchPlace {
  std::string name;
  uint32_t plane = 0;
  uint64_t salt = 0;                    // of its ECMP hash
  uint32_t first_node = 0, nodes = 0;   // below it
  const uint16_t* child_of = nullptr;   // by node: output towards it; null: its nodes are its own
  uint32_t first_up = 0, up_ports = 0;  // outputs to the tier above
};

class Switch final : public Process {
 public:
  Switch(const Scenario& scenario, FramePool& frames, FabricUse use, uint32_t node_ports,
         const uint8_t* plane_of_port, const std::vector<Ps>& pod_distance, const uint16_t* pod_of,
         SwitchPlace place)
      : Process(Runs::kOnEvents),
        s_(scenario),
        frames_(frames),
        use_(use),
        place_(std::move(place)),
        node_ports_(node_ports),
        plane_of_port_(plane_of_port),
        pod_distance_(pod_distance),
        pod_of_(pod_of),
        pods_(pod_count(scenario)),
        spray_(scenario.seed, place_.salt) {
    latency_ = std::llround(s_.fabric.switch_latency_ns * 1000);
    jitter_ps_ = std::llround(s_.faults.jitter_ns * 1000);
    reorder_ps_ = std::llround(s_.faults.reorder_delay_ns * 1000);
    spray_packets_ = s_.fabric.spray == Spray::kPacket;
    if (!place_.child_of) host_out.assign(size_t{place_.nodes} * node_ports_, 0);
  }

  ~Switch() override {
    for (OutPort& o : out) {
      while (o.oldest) FrameRef(std::exchange(o.oldest, o.oldest->next)).reset();
    }
  }

  std::vector<OutPort> out;        // down, then up; input i is the other direction of the same link
  std::vector<uint32_t> host_out;  // leaf: [(node - first_node) * ports + port] -> out
  WireLog log;
  FabricCounts counts;
  SwitchPlace& place() { return place_; }
  const SwitchPlace& place() const { return place_; }

  void prefetch() const override {
    for (const OutPort& o : out) {
      const char* line = reinterpret_cast<const char*>(&o);
      __builtin_prefetch(line);
      __builtin_prefetch(line + 64);
      __builtin_prefetch(line + 128);
    }
  }

  void on_event(Event& event) override {
    if (event.source == id()) {
      if (event.frame)
        enqueue(out[event.tag], event.time, std::move(event.frame));
      else
        sent(out[event.tag], event.time);
      return;
    }
    if (!event.frame) {
      OutPort& port = out[event.tag >> 1];
      port.paused = (event.tag & 1) != 0;
      port.counts.pauses += port.paused;
      if (!port.paused && port.sending_bytes == 0) send_next(port, event.time);
      return;
    }
    const Ps now = event.time + latency_;
    event.frame->in_port = event.tag;
    OutPort* port = route(event.frame->meta);
    if (!port) {
      ++counts.drop_no_route;
      lost(event.frame, now, LossReason::kNoRoute);
    } else if (port->host && (jitter_ps_ > 0 || s_.faults.reorder > 0 || s_.faults.duplicate > 0)) {
      delay(*port, now, std::move(event.frame));
    } else if (s_.fabric.pfc && latency_ > 0) {
      // It must not stand in the queue before its time: whatever leaves there would draw it after itself.
      post(id(), now, number(*port), std::move(event.frame));
    } else {
      enqueue(*port, now, std::move(event.frame));
    }
  }

 private:
  OutPort* route(const FrameMeta& meta) {
    const uint32_t node = meta.dst_node;
    if (node >= s_.nodes || meta.dst_port >= node_ports_ || plane_of_port_[meta.dst_port] != place_.plane)
      return nullptr;
    const uint32_t below = node - place_.first_node;
    if (below < place_.nodes) {
      return &out[place_.child_of ? place_.child_of[node] : host_out[below * node_ports_ + meta.dst_port]];
    }
    const uint64_t hash = spray_packets_ ? spray_.next() : mix64(meta.flow_hash ^ place_.salt);
    const uint64_t ups = place_.up_ports;
    return &out[place_.first_up + ((ups & (ups - 1)) == 0 ? hash & (ups - 1) : hash % ups)];
  }

  // Before the last queue: frames take their time, overtake each other, become two.
  void delay(OutPort& port, Ps now, FrameRef frame) {
    const uint32_t tag = number(port);
    Ps at = now;
    if (jitter_ps_ > 0) {
      at += static_cast<Ps>(port.jitter.below(static_cast<uint64_t>(jitter_ps_) + 1));
      Ps& last = port.last_in_order[mix64(frame->meta.flow_hash) % kOrderBuckets];
      at = std::max(at, last);
      last = at;
    }
    if (port.reorder.chance(s_.faults.reorder)) at += reorder_ps_;
    if (port.duplicate.chance(s_.faults.duplicate)) {
      FrameRef copy = frame;
      frames_.writable(copy);
      copy->flags |= kFrameCopy;
      ++counts.duplicated;
      post(id(), at + static_cast<Ps>(port.duplicate.below(static_cast<uint64_t>(port.latency) + 1)), tag,
           std::move(copy));
    }
    post(id(), at, tag, std::move(frame));
  }

  void enqueue(OutPort& port, Ps now, FrameRef frame) {
    port.forget_sent(now);  // of an empty ring with pfc
    const uint32_t wire_bytes = frame->meta.wire_bytes;
    const uint32_t bytes = wire_bytes + kFcsBytes;
    if (port.queued_bytes + bytes > s_.fabric.queue_bytes) {
      ++port.counts.drop_queue;
      ++counts.drop_queue;
      lost(frame, now, LossReason::kQueue);
      return;
    }
    if (marks(port)) mark(port, frame);
    if (s_.fabric.pfc) {
      wait(port, now, bytes, std::move(frame));
      return;
    }
    const Ps time = port.rate.time(wire_bytes);
    Ps start = std::max(now, port.free_at);
    if (s_.fabric.cut_through) {  // the last bit cannot leave before it has come
      start = std::max(start, now + out[frame->in_port].rate.time(wire_bytes) - time);
    }
    const Ps end = start + time;
    port.free_at = end;
    port.append(end, bytes);
    port.counts.max_queue_bytes = std::max(port.counts.max_queue_bytes, port.queued_bytes);
    put_on_link(port, start, end, std::move(frame));
  }

  void put_on_link(OutPort& port, Ps start, Ps end, FrameRef frame) {
    ++port.counts.frames;
    port.counts.bytes += frame->meta.wire_bytes;
    if (port.down.touches(start, end + port.latency)) {
      ++port.counts.drop_down;
      ++counts.drop_down;
      lost(frame, start, LossReason::kDown);
      return;
    }
    if (port.host) {
      if (!survives(port, frame, end + port.latency)) return;
      post(port.to, (use_.host_first_bit ? start : end) + port.latency, port.to_port, std::move(frame));
    } else {
      Ps arrives = (s_.fabric.cut_through ? start : end) + port.latency;
      // Between two pods there is one core; the detour is on its way down.
      if (!pod_distance_.empty() && place_.child_of == pod_of_)
        arrives += pod_distance_[pod_of_[frame->meta.src_node] * pods_ + pod_of_[frame->meta.dst_node]];
      post(port.to, arrives, port.to_port, std::move(frame));
    }
  }

  // Priority flow control: a frame joins the queue, and its sender may be told to stop.
  void wait(OutPort& port, Ps now, uint32_t bytes, FrameRef frame) {
    port.queued_bytes += bytes;
    port.counts.max_queue_bytes = std::max(port.counts.max_queue_bytes, port.queued_bytes);
    OutPort& from = out[frame->in_port];
    from.ingress_bytes += bytes;
    if (!from.pausing && from.ingress_bytes > s_.fabric.pfc_xoff_bytes) pause(from, now, true);
    Frame* const last = frame.release();
    last->next = nullptr;
    (port.oldest ? port.newest->next : port.oldest) = last;
    port.newest = last;
    ++counts.in_flight;
    if (port.sending_bytes == 0 && !port.paused) send_next(port, now);
  }

  void send_next(OutPort& port, Ps now) {
    if (!port.oldest) return;
    FrameRef frame(std::exchange(port.oldest, port.oldest->next));
    --counts.in_flight;
    port.sending_bytes = frame->meta.wire_bytes + kFcsBytes;
    port.sending_in_port = frame->in_port;
    const Ps end = now + port.rate.time(frame->meta.wire_bytes);
    post(end, number(port));
    put_on_link(port, now, end, std::move(frame));
  }

  void sent(OutPort& port, Ps now) {
    port.queued_bytes -= port.sending_bytes;
    OutPort& from = out[port.sending_in_port];
    from.ingress_bytes -= port.sending_bytes;
    if (from.pausing && from.ingress_bytes <= s_.fabric.pfc_xon_bytes) pause(from, now, false);
    port.sending_bytes = 0;
    if (!port.paused) send_next(port, now);
  }

  // Pause frames take no room on a link: a real one is 64 bytes, and rare.
  void pause(OutPort& link, Ps now, bool stop) {
    link.pausing = stop;
    post(link.to, now + link.latency, link.to_port << 1 | (stop ? 1 : 0), {});
  }

  uint32_t number(const OutPort& port) const { return static_cast<uint32_t>(&port - out.data()); }

  bool marks(OutPort& port) const {
    const FabricConfig& f = s_.fabric;
    if (port.queued_bytes >= f.ecn_kmax_bytes) return true;
    if (port.queued_bytes <= f.ecn_kmin_bytes) return false;
    return port.mark.chance(f.ecn_pmax * static_cast<double>(port.queued_bytes - f.ecn_kmin_bytes) /
                            static_cast<double>(f.ecn_kmax_bytes - f.ecn_kmin_bytes));
  }

  void mark(OutPort& port, FrameRef& frame) {
    if (frame->meta.kind != FrameKind::kData || frame->meta.ecn == kEcnNone || frame->meta.ecn == kEcnCe)
      return;
    frames_.writable(frame);
    frame->meta.ecn = kEcnCe;
    if ((frame->flags & kFrameDecoded) == 0) wire::mark_ce(std::span<uint8_t>(frame->data(), frame->bytes));
    ++port.counts.ce_marked;
    ++counts.ce_marked;
  }

  // What befalls a frame at the receiving host port.
  bool survives(OutPort& port, FrameRef& frame, Ps arrives) {
    if (!port.drop_list.empty() && listed(port, frame->meta.kind)) {
      port.loss.chance(s_.faults.loss);  // the draws of the frames behind it stay the same
      ++port.counts.drop_listed;
      ++counts.drop_listed;
      lost(frame, arrives, LossReason::kListed);
      return false;
    }
    if (port.loss.chance(s_.faults.loss)) {
      ++port.counts.drop_loss;
      ++counts.drop_loss;
      lost(frame, arrives, LossReason::kRandom);
      return false;
    }
    if (port.corrupt.chance(s_.faults.corrupt)) corrupt(port, frame, arrives);
    return true;
  }

  static bool listed(OutPort& port, FrameKind kind) {
    bool listed = false;
    for (const auto& [wanted, n] : port.drop_list) {
      if (wanted == FrameKind::kAny || wanted == kind) listed |= n == port.seen[static_cast<size_t>(wanted)];
    }
    ++port.seen[static_cast<size_t>(FrameKind::kAny)];
    if (kind != FrameKind::kAny) ++port.seen[static_cast<size_t>(kind)];
    return listed;
  }

  // The frame is delivered, for the node to refuse. Of a decoded one no bits can flip: the flag tells.
  void corrupt(OutPort& port, FrameRef& frame, Ps arrives) {
    frames_.writable(frame);
    frame->flags |= kFrameCorrupt;
    ++counts.corrupted;
    lost(frame, arrives, LossReason::kCorrupt);
    if ((frame->flags & kFrameDecoded) != 0) return;
    const uint64_t bits = uint64_t{frame->bytes} * 8;
    const auto flip = [&](uint64_t bit) { frame->data()[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8); };
    const uint64_t first = port.corrupt.below(bits);
    flip(first);
    // The others never hit the first again, so the frame does differ.
    for (uint64_t more = port.corrupt.below(3); more > 0; --more)
      flip((first + 1 + port.corrupt.below(bits - 1)) % bits);
  }

  void lost(const FrameRef& frame, Ps time, LossReason reason) {
    if (!use_.log) return;
    WireRecord r;
    r.time = r.start = time;
    r.info = inspect(*frame);
    r.node = r.info.ipv4 ? r.info.dst_ip & 0xffff : ~0u;
    r.port = static_cast<uint8_t>(r.info.dst_ip >> 16);
    r.bytes = frame->meta.wire_bytes;
    r.flags = frame->flags;
    r.what = WireWhat::kLost;
    r.reason = reason;
    log.push_back(r);
  }

  const Scenario& s_;
  FramePool& frames_;
  const FabricUse use_;
  SwitchPlace place_;
  const uint32_t node_ports_;
  const uint8_t* const plane_of_port_;
  const std::vector<Ps>& pod_distance_;
  const uint16_t* const pod_of_;
  const uint32_t pods_;
  Ps latency_ = 0, jitter_ps_ = 0, reorder_ps_ = 0;
  bool spray_packets_ = false;
  Rng spray_;
};

void FabricHost::attach(Fabric& fabric, uint32_t node) {
  uplinks_ = &fabric.uplink(node, 0);
}

bool FabricHost::transmit(uint32_t port, Ps first_bit, Ps last_bit, Ps leaves, FrameRef frame) {
  Uplink& up = uplinks_[port];
  ++up.counts.frames;
  up.counts.bytes += frame->meta.wire_bytes;
  if (up.down.touches(first_bit, last_bit + up.latency)) {
    ++up.counts.drop_down;
    return false;
  }
  post(up.leaf, (up.cut_through ? leaves : last_bit) + up.latency, up.leaf_port, std::move(frame));
  return true;
}

void FabricHost::on_event(Event& event) {
  if (event.frame) {
    on_frame(event.tag, event.time, std::move(event.frame));
  } else if (event.source == id()) {
    on_timer(event.time, event.tag);
  } else if ((event.tag & kNote) != 0) {
    on_note(event.time, event.tag & ~kNote);
  } else {
    const uint32_t port = event.tag >> 1;
    uplinks_[port].paused = (event.tag & 1) != 0;
    uplinks_[port].counts.pauses += uplinks_[port].paused;
    on_pause(port, event.time);
  }
}

int64_t pfc_most_xoff(const Scenario& s, uint32_t wire_bytes) {
  const FabricConfig& f = s.fabric;
  const bool fat_tree = f.topology == Topology::kFatTree;
  const uint32_t below = fat_tree ? f.radix : f.hosts_per_leaf;
  const uint32_t leaf = below + (fat_tree ? f.radix : leaf_count(s) > 1 ? f.spines : 0);
  const uint32_t top = fat_tree ? pod_count(s) : leaf_count(s);
  double gbps = std::max(f.rate_gbps, f.uplink_rate_gbps), longer_ns = 0;
  for (const HostConfig& h : f.host) {
    gbps = std::max(gbps, h.rate_gbps);
    longer_ns = std::max(longer_ns, h.extra_latency_ns);
  }
  for (const LinkConfig& l : f.link) longer_ns = std::max(longer_ns, l.extra_latency_ns);
  const double flying = 2 * (f.link_latency_ns + longer_ns + f.switch_latency_ns) * gbps / 8;  // bytes
  const auto others = static_cast<double>(std::max(leaf, top) - 1);
  return static_cast<int64_t>(std::floor(static_cast<double>(f.queue_bytes) / others - flying)) -
         2 * wire_bytes;
}

unsigned rank_of_node(const Scenario& s, uint32_t node, unsigned ranks) {
  const bool fat_tree = s.fabric.topology == Topology::kFatTree;
  const uint64_t groups = fat_tree ? pod_count(s) : leaf_count(s);
  const uint32_t group = node / (fat_tree ? s.fabric.radix * s.fabric.radix : s.fabric.hosts_per_leaf);
  return static_cast<unsigned>(group * uint64_t{ranks} / groups);
}

// Makes the switches of a fabric and the links between them.
class FabricBuilder {
 public:
  FabricBuilder(Fabric& fabric, Kernel& kernel, FramePool& frames, const Scenario& s, FabricUse use)
      : f_(fabric), kernel_(kernel), frames_(frames), s_(s), use_(use) {
    latency_ = std::llround(s.fabric.link_latency_ns * 1000);
  }

  void leaf_spine(uint32_t plane) {
    const uint32_t per_leaf = s_.fabric.hosts_per_leaf, leaves = leaf_count(s_);
    const uint32_t spines = leaves > 1 ? s_.fabric.spines : 0;
    std::vector<Switch*> leaf, spine;
    for (uint32_t l = 0; l < leaves; ++l) {
      SwitchPlace p = place(plane, fmt::format("leaf {}", l), l + 1, l * per_leaf, per_leaf);
      leaf.push_back(&add(std::move(p), rank_of_node(s_, l * per_leaf, kernel_.ranks())));
    }
    for (uint32_t i = 0; i < spines; ++i) {
      SwitchPlace p = place(plane, fmt::format("spine {}", i), 0, 0, s_.nodes);
      p.child_of = f_.leaf_of_.data();
      spine.push_back(&add(std::move(p), i % kernel_.ranks()));
    }
    for (uint32_t l = 0; l < leaves; ++l) {
      hosts(*leaf[l]);
      up(*leaf[l], spines);
    }
    for (uint32_t i = 0; i < spines; ++i) {
      for (uint32_t l = 0; l < leaves; ++l) {
        LinkName link;
        link.plane = static_cast<int>(plane);
        link.leaf = static_cast<int>(l);
        link.spine = static_cast<int>(i);
        spine[i]->out.emplace_back();
        join(*leaf[l], leaf[l]->place().first_up + i, *spine[i], l, link, 1, stream(2, plane, l, i),
             stream(3, plane, l, i));
      }
    }
  }

  void fat_tree(uint32_t plane) {
    const uint32_t r = s_.fabric.radix, pods = pod_count(s_);
    const uint32_t cores = pods > 1 ? r * r : 0;  // nothing crosses them when one pod holds every node
    std::vector<Switch*> tor, agg, core;
    for (uint32_t t = 0; t < pods * r; ++t) {
      SwitchPlace p = place(plane, fmt::format("tor {}", t), 1 << 16 | t, t * r, r);
      tor.push_back(&add(std::move(p), rank_of_node(s_, t * r, kernel_.ranks())));
    }
    for (uint32_t a = 0; a < pods * r; ++a) {
      SwitchPlace p = place(plane, fmt::format("agg {}", a), 2 << 16 | a, a / r * r * r, r * r);
      p.child_of = f_.tor_in_pod_.data();
      agg.push_back(&add(std::move(p), rank_of_node(s_, a / r * r * r, kernel_.ranks())));
    }
    for (uint32_t c = 0; c < cores; ++c) {
      SwitchPlace p = place(plane, fmt::format("core {}", c), 3 << 16 | c, 0, s_.nodes);
      p.child_of = f_.pod_of_.data();
      core.push_back(&add(std::move(p), c % kernel_.ranks()));
    }
    for (uint32_t t = 0; t < pods * r; ++t) {
      hosts(*tor[t]);
      up(*tor[t], r);
    }
    for (uint32_t a = 0; a < pods * r; ++a) {
      for (uint32_t i = 0; i < r; ++i) {
        const uint32_t t = a / r * r + i;
        LinkName link;
        link.plane = static_cast<int>(plane);
        link.tor = static_cast<int>(t);
        link.agg = static_cast<int>(a);
        agg[a]->out.emplace_back();
        join(*tor[t], tor[t]->place().first_up + a % r, *agg[a], i, link, 1, stream(4, plane, t, a),
             stream(5, plane, t, a));
      }
      up(*agg[a], cores / r);
    }
    // Slow links are spread over pods and aggregation switches, and in each pod over other cores; or they are
    // those of the first aggregation switches.
    const bool spread = s_.fabric.slow_core_place == SlowPlace::kSpread;
    const uint64_t links = uint64_t{pods} * r * r, slow = s_.fabric.slow_core_links;
    for (uint32_t c = 0; c < cores; ++c) {
      for (uint32_t pod = 0; pod < pods; ++pod) {
        const uint32_t a = pod * r + c / r;
        LinkName link;
        link.plane = static_cast<int>(plane);
        link.agg = static_cast<int>(a);
        link.core = static_cast<int>(c);
        const uint64_t place = uint64_t{a} * r + (spread ? c + pod : c) % r;
        const bool is_slow = spread ? place * slow % links < slow : place < slow;
        const double factor = is_slow ? s_.fabric.slow_core_factor : 1;
        core[c]->out.emplace_back();
        join(*agg[a], agg[a]->place().first_up + c % r, *core[c], pod, link, factor, stream(6, plane, a, c),
             stream(7, plane, a, c));
      }
    }
  }

 private:
  static uint64_t stream(uint64_t kind, uint32_t plane, uint32_t a, uint32_t b) {
    return kind << 40 | uint64_t{plane} << 32 | uint64_t{a} << 16 | b;
  }

  SwitchPlace place(uint32_t plane, const std::string& name, uint32_t number, uint32_t first_node,
                    uint32_t nodes) const {
    SwitchPlace p;
    p.name = name;
    p.plane = plane;
    p.salt = mix64(s_.seed ^ mix64(uint64_t{plane} << 32 | number));
    p.first_node = first_node;
    p.nodes = first_node < s_.nodes ? std::min(nodes, s_.nodes - first_node) : 0;
    return p;
  }

  // Those of other ranks are there as well, for their numbers and names; nobody runs them.
  Switch& add(SwitchPlace place, unsigned rank) {
    f_.switches_.push_back(std::make_unique<Switch>(s_, frames_, use_, f_.ports_, f_.plane_of_port_.data(),
                                                    f_.pod_distance_, f_.pod_of_.data(), std::move(place)));
    kernel_.add(f_.switches_.back().get(), rank);
    return *f_.switches_.back();
  }

  static void up(Switch& sw, uint32_t ports) {
    sw.place().first_up = static_cast<uint32_t>(sw.out.size());
    sw.place().up_ports = ports;
    sw.out.resize(sw.out.size() + ports);
  }

  // What all links have in common; rate and latency beyond that of every link stand in `o` already.
  void fill(OutPort& o, const LinkName& link, const std::string& name, uint64_t stream) {
    o.counts.name = fmt::format("plane {}: {}", link.plane, name);
    o.counts.plane = static_cast<uint32_t>(link.plane);
    o.latency += latency_;
    for (const LinkConfig& l : s_.fabric.link) {
      if (!means(l, link)) continue;
      o.rate = LinkRate(to_mbps(static_cast<double>(o.rate.mbps()) / 1000 * l.rate_factor));
      o.latency += std::llround(l.extra_latency_ns * 1000);
    }
    o.counts.rate_mbps = o.rate.mbps();
    for (const DownFault& d : s_.faults.down) {
      if (means(d, link)) o.down.add(d.from_ps, d.to_ps);
    }
    const uint64_t seed = mix64(s_.seed ^ mix64(stream));
    o.mark = Rng(seed, 1);
    o.loss = Rng(seed, 2);
    o.corrupt = Rng(seed, 3);
    o.jitter = Rng(seed, 4);
    o.reorder = Rng(seed, 5);
    o.duplicate = Rng(seed, 6);
  }

  // Both directions of a link between two switches whose outputs exist.
  void join(Switch& low, uint32_t low_port, Switch& high, uint32_t high_port, const LinkName& link,
            double rate_factor, uint64_t up_stream, uint64_t down_stream) {
    const auto direct = [&](Switch& from, uint32_t from_port, Switch& to, uint32_t to_port, uint64_t stream) {
      OutPort& o = from.out[from_port];
      o.to = to.id();
      o.to_port = to_port;
      o.rate = LinkRate(to_mbps(s_.fabric.uplink_rate_gbps * rate_factor));
      fill(o, link, fmt::format("{} -> {}", from.place().name, to.place().name), stream);
    };
    direct(low, low_port, high, high_port, up_stream);
    direct(high, high_port, low, low_port, down_stream);
  }

  // The links of a leaf to its nodes, both directions.
  void hosts(Switch& leaf) {
    const SwitchPlace& p = leaf.place();
    for (uint32_t node = p.first_node; node < p.first_node + p.nodes; ++node) {
      for (uint32_t port = p.plane; port < f_.ports_; port += s_.planes) {
        const auto number = static_cast<uint32_t>(leaf.out.size());
        leaf.host_out[(node - p.first_node) * f_.ports_ + port] = number;
        OutPort& o = leaf.out.emplace_back();
        o.to = node;
        o.to_port = port;
        o.host = true;
        o.rate = LinkRate(to_mbps(host_rate_gbps(s_, node)));
        for (const HostConfig& h : s_.fabric.host) {
          if (node >= h.node && node <= h.last) o.latency += std::llround(h.extra_latency_ns * 1000);
        }
        LinkName link;
        link.plane = static_cast<int>(p.plane);
        link.node = static_cast<int>(node);
        link.port = static_cast<int>(port);
        fill(o, link, fmt::format("{} -> node {} port {}", p.name, node, port),
             stream(1, 0, 0, 0) | node << 8 | port);
        if (s_.faults.jitter_ns > 0) o.last_in_order.assign(kOrderBuckets, 0);
        for (const DropFault& d : s_.faults.drop) {
          if (d.node == node && d.port == port) o.drop_list.emplace_back(d.kind, d.n);
        }
        Uplink& up = f_.uplink(node, port);
        up.leaf = leaf.id();
        up.leaf_port = number;
        up.rate = o.rate;
        up.latency = o.latency;
        up.cut_through = s_.fabric.cut_through;
        up.down = o.down;
        up.counts.plane = p.plane;
        up.counts.rate_mbps = o.rate.mbps();
        up.counts.name = fmt::format("plane {}: node {} port {} -> {}", p.plane, node, port, p.name);
      }
    }
  }

  Fabric& f_;
  Kernel& kernel_;
  FramePool& frames_;
  const Scenario& s_;
  const FabricUse use_;
  Ps latency_ = 0;
};

Fabric::Fabric(Kernel& kernel, FramePool& frames, const Scenario& s, uint32_t ports, FabricUse use)
    : ports_(ports) {
  uplinks_.resize(size_t{s.nodes} * ports);
  const uint32_t radix = s.fabric.radix, pods = pod_count(s);
  for (uint32_t node = 0; node < s.nodes; ++node) {
    leaf_of_.push_back(static_cast<uint16_t>(node / s.fabric.hosts_per_leaf));
    tor_in_pod_.push_back(static_cast<uint16_t>(node / radix % radix));
    pod_of_.push_back(static_cast<uint16_t>(node / (radix * radix)));
  }
  for (uint32_t port = 0; port < ports; ++port)
    plane_of_port_.push_back(static_cast<uint8_t>(port % s.planes));
  if (!s.fabric.pods.empty()) pod_distance_.assign(size_t{pods} * pods, 0);
  for (const PodDistance& d : s.fabric.pods) {
    const Ps extra = std::llround(d.extra_latency_ns * 1000);
    pod_distance_[d.a * pods + d.b] += extra;
    pod_distance_[d.b * pods + d.a] += extra;
  }
  FabricBuilder build(*this, kernel, frames, s, use);
  for (uint32_t plane = 0; plane < s.planes; ++plane) {
    if (s.fabric.topology == Topology::kFatTree)
      build.fat_tree(plane);
    else
      build.leaf_spine(plane);
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
    sum.in_flight += sw->counts.in_flight;
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
  for (const auto& sw : switches_) {
    all.emplace_back(fmt::format("plane {} {}", sw->place().plane, sw->place().name),
                     sw->counts.drop_no_route);
  }
  return all;
}

bool FabricCounts::balanced() const {
  return in + duplicated + injected ==
         delivered + drop_loss + drop_listed + drop_queue + drop_down + drop_no_route + in_flight;
}

}  // namespace weft::tb
