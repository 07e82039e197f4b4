// SPDX-License-Identifier: Apache-2.0
// The fabric: per plane a two-level leaf-spine network of switches (one leaf alone when it holds every node).
// A switch takes a frame when its last bit has arrived, or, cut-through, its first; chooses the output (ECMP
// over the spines by a hash of the 5-tuple), queues it if the queue's byte limit allows, marks CE by the
// queue it finds, and sends at the link's rate, never ahead of the bits that arrive.
//
// A queue is not simulated frame by frame: at enqueue the departure is known (FIFO, fixed rate), so one event
// a hop is enough. Faults act where a network would show them: jitter, reorder and copies before the last
// output queue; loss, listed drops and corruption behind it, at the receiving host port; down times on the
// link a frame is on.
//
// Event times: a frame reaches a switch with its last bit (cut-through: its first) and a host with its first
// bit (hosts pace beats themselves). A frame of b bytes occupies a link for (max(b, 60) + 24) bytes:
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

struct LinkCounts {
  std::string name;  // "plane 0: leaf 1 -> node 5 port 0"
  uint32_t plane = 0;
  uint64_t frames = 0;  // that the link carried, lost ones included
  uint64_t bytes = 0;   // of those, without wire overhead
  uint64_t ce_marked = 0;
  uint64_t drop_queue = 0;
  uint64_t drop_down = 0;
  uint64_t drop_loss = 0;
  uint64_t drop_listed = 0;
  uint64_t max_queue_bytes = 0;
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
  Ps latency = 0;
  bool cut_through = false;  // the leaf sees a frame with its first bit
  Downtime down;
  LinkCounts counts;
};

class Switch;

class Fabric {
 public:
  // Adds its switches to the kernel. Hosts must have the process numbers 0 .. nodes-1; an event for host k
  // has the port as its tag. `ports` per node.
  Fabric(Kernel& kernel, FramePool& frames, const Scenario& scenario, uint32_t ports);
  ~Fabric();

  Uplink& uplink(uint32_t node, uint32_t port) { return uplinks_[node * ports_ + port]; }

  // Between windows.
  std::vector<WireLog*> logs();
  FabricCounts counts() const;  // of the switches: duplicated, corrupted, marks, drops
  std::vector<const LinkCounts*> links() const;
  std::vector<std::pair<std::string, uint64_t>> no_route() const;  // per switch

 private:
  uint32_t ports_;
  std::vector<Uplink> uplinks_;
  std::vector<std::unique_ptr<Switch>> switches_;
};

}  // namespace weft::tb
