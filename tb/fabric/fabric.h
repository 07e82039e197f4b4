// SPDX-License-Identifier: Apache-2.0
// The fabric: per plane a network of switches, leaf-spine or a fat tree of three tiers, as large as the nodes
// need. A switch takes a frame when its last bit has arrived, or, cut-through, its first; chooses the output
// (down where the destination is below, else ECMP by the flow hash), queues it if the queue's byte limit
// allows, marks CE by the queue it finds, and sends at the link's rate, never ahead of the bits that arrive.
//
//       leaf_spine                       fat_tree, radix r
//     spine    spine                core ...       core        r * r; core a*r .. a*r+r-1 to agg a of each
//     pod
//       |  \  /  |                   |    \       /   |
//       |  /  \  |                  agg   agg   agg   agg      r per pod
//     leaf      leaf                 |  X  |     |  X  |
//     |  |      |  |                tor   tor   tor   tor      r per pod, r hosts each
//
// A queue is not simulated frame by frame: at enqueue the departure is known (FIFO, fixed rate), so one event
// a hop is enough. Faults act where a network would show them: jitter, reorder and copies before the last
// output queue; loss, listed drops and corruption behind it, at the receiving host port; down times on the
// link a frame is on.
//
// With priority flow control a queue may have to stop, so it is simulated frame by frame, at the cost of
// another event a hop. What waits in a switch is counted by the input it came from; beyond xoff the sender of
// that input, switch or host, is told to stop, and at xon to go on. The frame on the wire is finished first.
//
// Event times: a frame reaches a switch with its last bit (cut-through: its first) and a host with its first
// or its last bit, as FabricUse says. A frame of b bytes occupies a link for (max(b, 60) + 24) bytes:
// preamble, FCS and inter-frame gap included.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tb/check/traffic.h"
#include "tb/cluster.h"
#include "tb/scenario.h"
#include "tb/sim/frame.h"
#include "tb/sim/kernel.h"
#include "tb/sim/rng.h"

namespace weft::tb {

inline constexpr uint32_t kWireOverheadBytes = 24;  // preamble 8, FCS 4, inter-frame gap 12
inline constexpr uint32_t kMinFrameBytes = 60;      // without FCS
inline constexpr uint32_t kFcsBytes = 4;

// Time on a link, rounded up to a picosecond (exact for rates that divide 8 Tb/s).
constexpr Ps wire_ps(uint32_t bytes, int64_t rate_mbps) {
  const int64_t wire_bits =
      (int64_t{bytes < kMinFrameBytes ? kMinFrameBytes : bytes} + kWireOverheadBytes) * 8;
  return (wire_bits * 1'000'000 + rate_mbps - 1) / rate_mbps;
}
int64_t to_mbps(double gbps);

// wire_ps() without the division, for rates at which a byte takes whole picoseconds.
class LinkRate {
 public:
  explicit LinkRate(int64_t mbps = 100'000)
      : mbps_(mbps), ps_per_byte_(8'000'000 % mbps == 0 ? 8'000'000 / mbps : 0) {}
  int64_t mbps() const { return mbps_; }
  Ps time(uint32_t bytes) const {
    if (ps_per_byte_ == 0) return wire_ps(bytes, mbps_);
    return (int64_t{bytes < kMinFrameBytes ? kMinFrameBytes : bytes} + kWireOverheadBytes) * ps_per_byte_;
  }

 private:
  int64_t mbps_;
  Ps ps_per_byte_;
};

struct LinkCounts {
  uint64_t frames = 0;  // that the link carried, lost ones included
  uint64_t bytes = 0;   // of those, without wire overhead
  uint64_t max_queue_bytes = 0;
  uint64_t ce_marked = 0;
  uint64_t drop_queue = 0;
  uint64_t drop_down = 0;
  uint64_t drop_loss = 0;
  uint64_t drop_listed = 0;
  uint64_t pauses = 0;  // times its sender was told to stop
  uint32_t plane = 0;
  int64_t rate_mbps = 0;
  std::string name;  // "plane 0: leaf 1 -> node 5 port 0"
};

// When a link is dead.
class Downtime {
 public:
  void add(Ps from, Ps to) { intervals_.emplace_back(from, to); }
  // Whether the link is dead at any time in [from, to].
  bool touches(Ps from, Ps to) const {
    for (const auto& [a, b] : intervals_) {
      if (from < b && to >= a) return true;
    }
    return false;
  }

 private:
  std::vector<std::pair<Ps, Ps>> intervals_;
};

// The link of a host port into the fabric. Owned and used by the host's process.
struct Uplink {
  ProcessId leaf = 0;
  uint32_t leaf_port = 0;
  LinkRate rate;
  Ps latency = 0;
  bool cut_through = false;  // the leaf sees a frame with its first bit
  bool paused = false;
  Downtime down;
  LinkCounts counts;
};

class Fabric;
class Switch;

// A process with ports: the base of every node. Nodes are the processes 0 .. nodes-1 of their kernel.
class FabricHost : public Process {
 public:
  // Gives it the links of a node; the fabric must live as long.
  void attach(Fabric& fabric, uint32_t node);

 protected:
  using Process::Process;

  virtual void on_frame(uint32_t port, Ps time, FrameRef frame) = 0;
  // post(time, tag) of its own.
  virtual void on_timer(Ps time, uint32_t tag) = 0;
  // Priority flow control: uplink(port).paused has changed. While it is set no data may be put on the link.
  virtual void on_pause(uint32_t port, Ps time) { (void)port, (void)time; }

  // Tells another host a number below 2^31, past all links; it hears at `time`, which is behind the window.
  void note(uint32_t node, Ps time, uint32_t number) { post(node, time, kNote | number, {}); }
  virtual void on_note(Ps time, uint32_t number) { (void)time, (void)number; }

  // Puts a frame with its meta set on the link of a port: first and last bit, gap included. `leaves`: when
  // a cut-through leaf may see it, first_bit if all of the frame is known then. False: the link is down.
  bool transmit(uint32_t port, Ps first_bit, Ps last_bit, Ps leaves, FrameRef frame);
  // The same at the rate of the link, and returns the last bit.
  Ps transmit(uint32_t port, Ps first_bit, FrameRef frame) {
    const Ps last_bit = first_bit + uplinks_[port].rate.time(frame->meta.wire_bytes);
    transmit(port, first_bit, last_bit, first_bit, std::move(frame));
    return last_bit;
  }
  const Uplink& uplink(uint32_t port) const { return uplinks_[port]; }

 private:
  void on_event(Event& event) final;

  static constexpr uint32_t kNote = 1u << 31;  // of an event without a frame

  Uplink* uplinks_ = nullptr;  // one per port
};

// The largest pfc_xoff_bytes with which no queue overflows: every other input of a switch leaves that much in
// it, what arrives while the pause travels, and the frames that each end has begun. Below 0: there is none.
int64_t pfc_most_xoff(const Scenario& scenario, uint32_t wire_bytes);

// Which of `ranks` runs a node, its leaf and its pod; spines and cores are dealt out in turn.
unsigned rank_of_node(const Scenario& scenario, uint32_t node, unsigned ranks);

struct FabricUse {
  bool log = false;             // keep WireLogs, for observers
  bool host_first_bit = false;  // hosts get a frame with its first bit; else with its last
};

class Fabric {
 public:
  // Adds its switches to the kernel, behind the hosts. With ranks, counts are of those that run here. `ports`
  // per node.
  Fabric(Kernel& kernel, FramePool& frames, const Scenario& scenario, uint32_t ports, FabricUse use = {});
  ~Fabric();

  Uplink& uplink(uint32_t node, uint32_t port) { return uplinks_[node * ports_ + port]; }

  // Between windows.
  std::vector<WireLog*> logs();
  // Of the switches: duplicated, corrupted, marks, drops, and what is in flight in no event (pfc).
  FabricCounts counts() const;
  std::vector<const LinkCounts*> links() const;
  std::vector<std::pair<std::string, uint64_t>> no_route() const;  // per switch

 private:
  friend class FabricBuilder;
  uint32_t ports_;
  std::vector<Uplink> uplinks_;
  // By node: which child of a switch of each tier holds it. By port of a node: its plane.
  std::vector<uint16_t> leaf_of_, tor_in_pod_, pod_of_;
  std::vector<uint8_t> plane_of_port_;
  std::vector<Ps> pod_distance_;  // [from * pods + to]; empty: none
  std::vector<std::unique_ptr<Switch>> switches_;
};

}  // namespace weft::tb
