// SPDX-License-Identifier: Apache-2.0
// What the hosts of an evaluation send each other: a few patterns, made into a list of flows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tb/eval/flow.h"
#include "tb/sim/status.h"

namespace weft::eval {

enum class Pattern : uint8_t { kFlows, kPermutation, kAllToAll, kRing, kIncast, kRpc, kMany };

/// A stream of messages: `count` of them, `depth` under way at a time.
struct FlowSpec {
  uint32_t src = 0, dst = 0;
  uint64_t bytes = 0;
  uint32_t count = 1;
  uint32_t depth = 1;
  double start_us = 0;
  std::string group;
};

struct Workload {
  Pattern pattern = Pattern::kPermutation;
  uint64_t bytes = 0;         // of a flow; rpc: of a request
  uint32_t at_a_time = 8;     // all_to_all: flows of a host under way
  uint32_t steps = 1;         // ring
  bool on_delivery = true;    // ring: a step starts when the neighbour's last one is delivered; else, when it
                              // is complete at the neighbour
  uint32_t fan_in = 1;        // incast: flows into host 0, all at t = 0
  uint32_t rounds = 1;        // incast, rpc: messages of each, one behind the other
  uint64_t victim_bytes = 0;  // incast: a flow to host 1, if not 0
  uint64_t answer_bytes = 0;  // rpc
  uint32_t connections = 1;   // many: from host 0, spread over all others
  bool per_plane = false;     // `bytes` is for each plane
  std::vector<FlowSpec> flow;  // flows
};

/// Names of the groups of a workload, in the order of Flow::group; at least one.
std::vector<std::string> groups_of(const Workload& workload);

/// What the pattern needs of the cluster; the text names key and value, the caller the file.
tb::Status check_workload(const Workload& workload, uint32_t hosts);

/// The same seed gives the same flows.
Flows make_flows(const Workload& workload, uint32_t hosts, uint32_t planes, uint64_t seed);

}  // namespace weft::eval
