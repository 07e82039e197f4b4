// SPDX-License-Identifier: Apache-2.0
// The scenario: what cluster to build, over what fabric, with what faults. Read from a TOML file, every key
// optional, nothing unknown accepted; command-line flags set the same keys through set_key().
// docs/simulation.md lists the keys (printed by scenario_key_table()).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tb/sim/frame.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::tb {

// What the nodes of a cluster are made of.
enum class Body : uint8_t {
  kRtl,   // Verilated
  kRef,   // reference endpoint and engine model (tb/node/ref_node.h)
  kMixed  // nodes with an odd number are reference nodes
};

enum class Topology : uint8_t { kLeafSpine, kFatTree };
enum class Spray : uint8_t { kFlow, kPacket };
enum class SlowPlace : uint8_t { kSpread, kTogether };
std::span<const char* const> toml_choices(Topology);  // how scenario files call them
std::span<const char* const> toml_choices(Spray);
std::span<const char* const> toml_choices(SlowPlace);
std::span<const char* const> toml_choices(Body);

// A link of the fabric, both directions, or (plane alone) every link of a plane. Switches of a kind are
// numbered through the plane: ToR t of pod p is p * radix + t, so is aggregation switch a, which is joined to
// the cores a * radix .. a * radix + radix - 1.
struct LinkName {
  int plane = -1;
  int leaf = -1, spine = -1;          // leaf_spine, with plane
  int tor = -1, agg = -1, core = -1;  // fat_tree, with plane: tor and agg, or agg and core
  int node = -1, port = -1;           // host link
};

// A link, or a whole plane, is dead in [from, to). Nothing is routed around it: it swallows what it is given.
struct DownFault : LinkName {
  Ps from_ps = 0;
  Ps to_ps = kNever;
};

// A link that is not like the others of its kind.
struct LinkConfig : LinkName {
  double rate_factor = 1;
  double extra_latency_ns = 0;
};

// The links of nodes node .. last are not like those of the others.
struct HostConfig {
  uint32_t node = 0, last = 0;
  double rate_gbps = 0;  // 0: fabric.rate_gbps
  double extra_latency_ns = 0;
};

// Frames between two pods travel longer, in both directions.
struct PodDistance {
  uint32_t a = 0, b = 0;
  double extra_latency_ns = 0;
};

// The n-th frame (from 0) of a kind that would be delivered to a node's port is lost.
struct DropFault {
  uint32_t node = 0;
  uint32_t port = 0;
  FrameKind kind = FrameKind::kAny;
  uint64_t n = 0;
};

// Reads and writes that touch [addr, addr + bytes) of a node's memory answer SLVERR.
struct MemoryErrorFault {
  uint32_t node = 0;
  uint64_t addr = 0;
  uint64_t bytes = 64;
};

// Where the memory of a node starts.
inline uint64_t memory_base(uint32_t node) {
  return uint64_t{node + 1} << 32;
}

struct FabricConfig {
  Topology topology = Topology::kLeafSpine;
  uint32_t hosts_per_leaf = 4;  // leaf_spine
  uint32_t spines = 4;          // leaf_spine: per plane; unused when one leaf holds every node
  uint32_t radix = 4;           // fat_tree: hosts and uplinks per ToR, ToRs and aggregation switches per pod
  Spray spray = Spray::kFlow;   // what chooses the way up: the 5-tuple, or chance, anew for every frame
  double rate_gbps = 100;       // host links, and the MACs of the nodes
  double uplink_rate_gbps = 100;   // links between switches
  double link_latency_ns = 1000;   // of every link; it is the lookahead of the simulation too
  bool cut_through = false;        // switches; else store-and-forward
  double switch_latency_ns = 0;    // cut-through: first bit in -> first bit out; else last bit in -> queued
  uint64_t queue_bytes = 892'250;  // limit of each output queue
  uint64_t ecn_kmin_bytes = 37'350;
  uint64_t ecn_kmax_bytes = 145'250;
  double ecn_pmax = 1.0;  // marking probability just below kmax
  bool pfc = false;       // a switch stops a sender whose bytes wait in it, instead of dropping
  uint64_t pfc_xoff_bytes = 90'000;
  uint64_t pfc_xon_bytes = 70'000;
  uint32_t slow_core_links = 0;                    // fat_tree: so many aggregation-core links a plane
  double slow_core_factor = 0.25;                  // run at this part of their rate:
  SlowPlace slow_core_place = SlowPlace::kSpread;  // evenly over all, or those of the first switches
  std::vector<LinkConfig> link;
  std::vector<HostConfig> host;
  std::vector<PodDistance> pods;
};

struct FaultConfig {
  double loss = 0;  // per frame that reaches a host port, acks too
  double jitter_ns =
      0;               // uniform extra delay in [0, jitter] before the last link; order inside a path is kept
  double reorder = 0;  // per frame: probability of reorder_delay_ns extra, order not kept
  double reorder_delay_ns = 2000;
  double duplicate = 0;  // per frame: probability that a second copy follows
  double corrupt = 0;    // per frame: probability that 1 to 3 random bits are flipped
  std::vector<DownFault> down;
  std::vector<DropFault> drop;
};

struct MemoryConfig {
  uint64_t size_mib = 64;  // per node; pages are allocated when touched
  uint32_t latency_min_cycles = 40;
  uint32_t latency_max_cycles = 80;
  uint32_t bandwidth_bytes_per_cycle = 1024;  // shared by all masters of a node, both directions
  double stall = 0;  // probability that a channel that could move a beat in a cycle does not
  std::vector<MemoryErrorFault> error;
};

struct Scenario {
  std::string file;  // where it was read from, for messages; empty: defaults only
  std::string name = "default";
  std::string workload;  // path, relative to the scenario's folder unless absolute; for the caller

  uint32_t nodes = 8;
  uint32_t planes = 2;  // port p of a node is in plane p mod planes
  Body body = Body::kRtl;
  uint64_t seed = 1;
  uint32_t threads = 0;       // 0: one per core, never more than nodes
  bool skip_rest = true;      // cycles of a node at rest are counted, not simulated: the same bits, faster
  double watchdog_us = 2000;  // no frame and no engine activity for so long ends run_until as a hang

  FabricConfig fabric;
  FaultConfig faults;
  MemoryConfig memory;
};

// What follows from the numbers above.
uint32_t leaf_count(const Scenario& scenario);                   // leaf switches (fat_tree: ToRs) of a plane
uint32_t pod_count(const Scenario& scenario);                    // fat_tree; 1 for leaf_spine
double host_rate_gbps(const Scenario& scenario, uint32_t node);  // of its links, and of its MACs
inline bool is_reference(const Scenario& s, uint32_t node) {
  return s.body == Body::kRef || (s.body == Body::kMixed && node % 2 == 1);
}

// Reads `path` over the defaults. `own_sections` are top-level tables that the caller reads itself (with
// TomlFile); every other unknown key is an error. `most_loss` is for a caller that cannot do without any
// frame. The text of an error is "file: key = value: what was expected".
Result<Scenario> load_scenario(const std::string& path, const std::vector<std::string>& own_sections = {},
                               double most_loss = 1);

// Sets one key as a flag does; `flag` is how the user wrote it: "--loss = 1.5: expected ...".
Status set_key(Scenario& scenario, const std::string& key, const std::string& value, const std::string& flag);

// What no single key can tell: kmin > kmax, a fault that names a node that does not exist. Call it after the
// flags, and when the size of memory is settled (load_scenario leaves that part out: who reads the file may
// choose a size).
Status check_scenario(const Scenario& scenario);

// A fabric whose queues hold no full frame of `bytes` (FCS counted, preamble and gap not) delivers no data
// for ever, while what is small passes. `mtu` says in the message what makes the frame so long.
Status check_frame_fits(const Scenario& scenario, uint64_t bytes, const std::string& mtu);

// One line a key: name, default, range, meaning (markdown table).
std::string scenario_key_table();

}  // namespace weft::tb
