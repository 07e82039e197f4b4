// SPDX-License-Identifier: Apache-2.0
// What an evaluation moves: flows, and what became of each. All flows of a run are known before it starts;
// when one starts may depend on others, on what its own source host sees or is told.
#pragma once

#include <cstdint>
#include <vector>

#include "tb/sim/time.h"

namespace weft::eval {

using tb::kNever;
using tb::Ps;

inline constexpr uint32_t kNoFlow = ~0u;

/// `bytes` from host to host. Flows of one (src, dst, lane) share a connection and go in order.
struct Flow {
  uint32_t id = 0;  // its place in the list of flows
  uint16_t src = 0, dst = 0;
  uint16_t lane = 0;   // several connections between two hosts
  uint16_t group = 0;  // figures are told for each group apart
  uint64_t bytes = 0;
  Ps not_before = 0;
  // Starts when the source host has seen both: a flow it sent complete, a flow it gets delivered.
  uint32_t after_sent = kNoFlow, after_got = kNoFlow;
  // Starts when another host has sent that flow complete: the news takes one latency of a link.
  uint32_t after_told = kNoFlow;
  bool queued = false;  // one of the source's queue: so many run at a time, oldest first
};

/// The source writes `started`, `completed` and `parts_sent`, the destination the others: two hosts may run
/// on two threads.
struct FlowRecord {
  Ps started = kNever;
  Ps completed = kNever;  // at the source: all of it acknowledged
  uint32_t parts_sent = 0;
  uint32_t parts_got = 0;
  Ps delivered = kNever;               // at the destination: the last byte is in
  uint64_t placed = 0;                 // bytes
  std::vector<uint64_t> window_bytes;  // placed in each window of time, if anybody wants to know
};

struct Flows {
  std::vector<Flow> list;
  std::vector<FlowRecord> records;
  uint32_t at_a_time = 0;  // of the queued ones of a host
  uint32_t lanes = 1;
};

}  // namespace weft::eval
