// SPDX-License-Identifier: Apache-2.0
// Observers of the wire. Every process that handles frames keeps a WireLog of what it saw in the running
// window; at the barrier the logs are merged by time and counted: packets, losses, resends, resends that
// nobody needed.
#pragma once

#include <cstdint>
#include <vector>

#include "tb/cluster.h"
#include "tb/sim/frame.h"
#include "tb/sim/time.h"

namespace weft::tb {

// Addresses of the cluster, see tb/cluster.h.
constexpr uint64_t node_mac(uint32_t node, uint32_t port) {
  return 0x0200'0000'0000u | static_cast<uint64_t>(port & 0xff) << 24 | (node & 0xffff);
}
constexpr uint32_t node_ip(uint32_t node, uint32_t port) {
  return 10u << 24 | (port & 0xff) << 16 | (node & 0xffff);
}

enum class WireWhat : uint8_t { kTx, kRx, kLost };
enum class LossReason : uint8_t { kNone, kRandom, kListed, kQueue, kDown, kNoRoute, kCorrupt };
const char* name(LossReason reason);

struct FrameInfo {
  FrameKind kind = FrameKind::kAny;  // kAny: not a Weft frame
  bool ipv4 = false;
  bool retx = false;
  uint8_t ecn = 0;  // of the IP header
  uint8_t path = 0;
  uint16_t payload_bytes = 0;
  uint16_t msg_no = 0;
  uint8_t protocol = 0;  // of the IP header
  uint32_t src_ip = 0, dst_ip = 0;
  uint32_t dqpn = 0;
  uint32_t psn = 0;
  uint64_t key =
      0;  // data packets: hash of source and destination node, connection, incarnation, message, address
};
// Reads what it needs and trusts nothing: any bytes are legal.
FrameInfo inspect(const uint8_t* bytes, size_t count);
// The same of any frame; a decoded one tells only what stands in its meta.
FrameInfo inspect(const Frame& frame);
// What switches need to know of a frame of raw bytes.
FrameMeta describe(const uint8_t* bytes, size_t count);
// Of a frame that enters the simulation: sets its meta, unless who made it did (kFrameDecoded).
inline void describe(Frame& frame) {
  if ((frame.flags & kFrameDecoded) == 0) frame.meta = describe(frame.data(), frame.bytes);
}

struct WireRecord {
  Ps time = 0;   // last bit
  Ps start = 0;  // first bit
  FrameInfo info;
  uint32_t node = 0;   // sender of kTx, receiver of kRx and kLost
  uint32_t bytes = 0;  // on the wire
  uint8_t port = 0;
  uint8_t flags = 0;  // FrameFlag
  WireWhat what = WireWhat::kTx;
  LossReason reason = LossReason::kNone;
};
using WireLog = std::vector<WireRecord>;

// Set of packet identities, open addressing, grows by doubling.
class PacketTable {
 public:
  PacketTable();
  uint32_t& count(uint64_t key);  // deliveries; 0 for a new key
  size_t size() const { return used_; }

 private:
  struct Slot {
    uint64_t key = 0;  // 0: free
    uint32_t count = 0;
  };
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

class TrafficChecker {
 public:
  // Takes one window's records, ordered by time.
  void record(const WireRecord& r);
  const TrafficCounts& counts() const { return counts_; }

 private:
  TrafficCounts counts_;
  PacketTable delivered_;
};

}  // namespace weft::tb
