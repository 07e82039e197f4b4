// SPDX-License-Identifier: Apache-2.0
//
// Subgraphs for tests of the message engine, be it RTL or its model, and the set-up they assume.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft_wire.h"

namespace me {

using weft::wire::Cqe;
using weft::wire::DbOp;
using weft::wire::Doorbell;
using weft::wire::Dtype;
using weft::wire::Err;
using weft::wire::Redop;
using weft::wire::Wqe;
using weft::wire::WqeOp;
using Line = std::array<uint8_t, 64>;
using Graph = std::vector<Wqe>;

// Default parameters of weft_me.
inline constexpr unsigned kNumSems = 256, kNumSubgraphs = 64, kNumConns = 64, kNumPorts = 2, kWindow = 32;
// What the tests register: regions 0 (read), 1 (write), 2 (both); connections 0..7 (4 on port 1 only).
inline constexpr uint64_t kReadBase = 0x1'0000'0000, kWriteBase = 0x2'0000'0000, kBothBase = 0x3'ffff'0000;
inline constexpr uint64_t kRegionBytes = 0x1'0000'0000;  // of regions 0 and 1
inline constexpr uint64_t kBothBytes = 0x2'0000;         // crosses a multiple of 4 GB
inline constexpr unsigned kConnsUsed = 8;
inline constexpr uint64_t kRing = 0x9000'0000, kRingEntries = 64;
inline constexpr uint64_t kGraphs = 0x8000'0000,
                          kGraphBytes = 0x10'0000;  // subgraph s at kGraphs + s * kGraphBytes

// WRITE carries {subgraph, entry} in rkey, REDUCE in dst.
inline uint32_t id_of(unsigned subgraph, uint32_t entry) {
  return subgraph << 16 | entry;
}

/// Entry j of `graph` waits for the earlier entry i.
inline bool waits_for(const Graph& graph, uint32_t j, uint32_t i) {
  const Wqe& later = graph[j];
  const Wqe& earlier = graph[i];
  return later.sync || earlier.fence || (later.rx_sync && earlier.opcode == WqeOp::WAIT) ||
         (later.has_dep0 && later.dep0 == i) || (later.has_dep1 && later.dep1 == i);
}

/// Entries for tests; `subgraph` and `entry` make a WRITE or REDUCE recognisable.
inline Wqe nop() {
  return {};
}
inline Wqe write(unsigned subgraph, uint32_t entry, unsigned conn = 0) {
  Wqe w;
  w.opcode = WqeOp::WRITE;
  w.conn = static_cast<uint16_t>(conn);
  w.length = 64 + entry % 4096;
  w.src0 = kReadBase + entry * 3;
  w.dst = 0x7000'0000'0000 + entry;
  w.rkey = id_of(subgraph, entry);
  w.value = entry * 7 + 1;
  w.sem = static_cast<uint16_t>(entry);
  w.signal = entry % 2 != 0;
  return w;
}
inline Wqe reduce(unsigned subgraph, uint32_t entry) {
  Wqe w;
  w.opcode = WqeOp::REDUCE;
  w.nsrc = static_cast<uint8_t>(1 + entry % 2);
  constexpr Dtype kTypes[] = {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::INT32};
  constexpr Redop kOps[] = {Redop::SUM, Redop::MAX, Redop::MIN};
  w.dtype = w.to = kTypes[entry % 3];
  w.redop = entry % 2 != 0 ? kOps[entry / 2 % 3] : Redop::COPY;
  w.length = 4 * (entry % 1000);
  w.src0 = kReadBase + 64 * entry;
  w.src1 = kReadBase + 0x1000'0000 + 8 * entry;
  w.dst = kWriteBase + uint64_t{16} * id_of(subgraph, entry);
  return w;
}
inline Wqe wait(unsigned sem, uint32_t value, bool consume) {
  Wqe w;
  w.opcode = WqeOp::WAIT;
  w.sem = static_cast<uint16_t>(sem);
  w.value = value;
  w.consume = consume;
  return w;
}
inline Wqe set(unsigned sem, uint32_t value) {
  Wqe w;
  w.opcode = WqeOp::SET;
  w.sem = static_cast<uint16_t>(sem);
  w.value = value;
  return w;
}
/// Adds a dependency (two at most).
inline Wqe& after(Wqe& wqe, uint16_t dep) {
  if (!wqe.has_dep0) {
    wqe.has_dep0 = true;
    wqe.dep0 = dep;
  } else {
    wqe.has_dep1 = true;
    wqe.dep1 = dep;
  }
  return wqe;
}

}  // namespace me
