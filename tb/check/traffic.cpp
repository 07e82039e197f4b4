// SPDX-License-Identifier: Apache-2.0
#include "tb/check/traffic.h"

#include "tb/sim/rng.h"
#include "weft_wire.h"

namespace weft::tb {
namespace {

constexpr size_t kIpAt = wire::Eth::kBytes;
constexpr size_t kUdpAt = kIpAt + wire::Ipv4::kBytes;
constexpr size_t kBthAt = kUdpAt + wire::Udp::kBytes;
constexpr size_t kWthAt = kBthAt + wire::Bth::kBytes;
constexpr size_t kWdhAt = kWthAt + wire::Wth::kBytes;
constexpr size_t kIcrc = 4;

}  // namespace

const char* name(LossReason reason) {
  switch (reason) {
    case LossReason::kNone: return "none";
    case LossReason::kRandom: return "random";
    case LossReason::kListed: return "listed";
    case LossReason::kQueue: return "queue full";
    case LossReason::kDown: return "link down";
    case LossReason::kNoRoute: return "no route";
    case LossReason::kCorrupt: return "corrupt";
  }
  return "?";
}

FrameInfo inspect(const uint8_t* bytes, size_t count) {
  FrameInfo info;
  if (count < kUdpAt) return info;
  const auto eth = wire::Eth::unpack(bytes);
  if (eth.ethertype != 0x0800) return info;
  const auto ip = wire::Ipv4::unpack(bytes + kIpAt);
  if (ip.ver_ihl != 0x45) return info;
  info.ipv4 = true;
  info.src_ip = ip.src;
  info.dst_ip = ip.dst;
  info.ecn = static_cast<uint8_t>(ip.ecn);
  info.protocol = static_cast<uint8_t>(ip.proto);
  if (ip.proto != 17 || count < wire::kHdrProbeBytes + kIcrc) return info;
  if (wire::Udp::unpack(bytes + kUdpAt).dport != wire::kUdpDport) return info;
  const auto bth = wire::Bth::unpack(bytes + kBthAt);
  const auto wth = wire::Wth::unpack(bytes + kWthAt);
  info.dqpn = bth.dqpn;
  info.psn = bth.psn;
  info.path = wth.path;
  switch (static_cast<wire::Opcode>(bth.opcode)) {
    case wire::Opcode::ACK:
    case wire::Opcode::FENCE_ANSWER: info.kind = FrameKind::kAck; return info;
    case wire::Opcode::PROBE:
    case wire::Opcode::FENCE: info.kind = FrameKind::kProbe; return info;
    default: break;
  }
  if (!wire::name(static_cast<wire::Opcode>(bth.opcode)) || count < wire::kHdrDataBytes + kIcrc) return info;
  const auto wdh = wire::Wdh::unpack(bytes + kWdhAt);
  info.kind = FrameKind::kData;
  info.retx = wdh.retx;
  info.msg_no = wdh.msg_no;
  const size_t body = count - wire::kHdrDataBytes - kIcrc;
  info.payload_bytes = static_cast<uint16_t>(body >= bth.pad ? body - bth.pad : 0);
  // A resend may leave by another port: the node identifies the sender, not its address.
  uint64_t h = mix64((uint64_t{ip.src & 0xffff} << 48) | (uint64_t{ip.dst & 0xffff} << 32) | bth.dqpn);
  h = mix64(h ^ (uint64_t{wth.incarnation} << 32 | uint64_t{wdh.stream} << 16 | wdh.msg_no));
  info.key = mix64(h ^ wdh.va) | 1;
  return info;
}

FrameInfo inspect(const Frame& frame) {
  if ((frame.flags & kFrameDecoded) == 0) return inspect(frame.data(), frame.bytes);
  FrameInfo info;
  info.kind = frame.meta.kind;
  info.ecn = frame.meta.ecn;
  info.ipv4 = frame.meta.dst_node != kNoNode;
  info.src_ip = node_ip(frame.meta.src_node, frame.meta.src_port);
  info.dst_ip = node_ip(frame.meta.dst_node, frame.meta.dst_port);
  return info;
}

FrameMeta describe(const uint8_t* bytes, size_t count) {
  const FrameInfo info = inspect(bytes, count);
  FrameMeta meta;
  meta.wire_bytes = static_cast<uint32_t>(count);
  meta.kind = info.kind;
  if (!info.ipv4) return meta;
  const auto address = [](uint32_t ip, uint16_t& node, uint8_t& port) {
    if (ip >> 24 != node_ip(0, 0) >> 24) return;
    node = static_cast<uint16_t>(ip);
    port = static_cast<uint8_t>(ip >> 16);
  };
  address(info.src_ip, meta.src_node, meta.src_port);
  address(info.dst_ip, meta.dst_node, meta.dst_port);
  meta.ecn = info.ecn;
  uint64_t ports = 0;
  if (count >= kUdpAt + 4) {
    for (size_t i = 0; i < 4; ++i) ports = ports << 8 | bytes[kUdpAt + i];
  }
  meta.flow_hash = mix64(uint64_t{info.src_ip} << 32 | info.dst_ip) ^ (ports << 8 | info.protocol);
  return meta;
}

PacketTable::PacketTable() : slots_(1024) {}

uint32_t& PacketTable::count(uint64_t key) {
  if (2 * used_ >= slots_.size()) {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key == 0) continue;
      size_t i = (slot.key >> 1) & (slots_.size() - 1);
      while (slots_[i].key != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }
  size_t i = (key >> 1) & (slots_.size() - 1);
  for (; slots_[i].key != 0; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].key == key) return slots_[i].count;
  }
  slots_[i].key = key;
  ++used_;
  return slots_[i].count;
}

void TrafficChecker::record(const WireRecord& r) {
  const bool data = r.info.kind == FrameKind::kData;
  switch (r.what) {
    case WireWhat::kTx:
      if (data) {
        ++counts_.data_packets;
        counts_.data_bytes += r.info.payload_bytes;
        if (r.info.key == 0) break;  // a decoded frame: its packets have no identity here
        uint32_t& delivered = delivered_.count(r.info.key);
        if (r.info.retx) {
          ++counts_.resent;
          if (delivered != 0) ++counts_.needless_resent;
        } else {
          // Message numbers wrap and addresses are used again: a first transmission starts a new life.
          delivered = 0;
          counts_.unique_payload_bytes += r.info.payload_bytes;
        }
      } else if (r.info.kind == FrameKind::kAck) {
        ++counts_.acks;
      } else if (r.info.kind == FrameKind::kProbe) {
        ++counts_.probes;
      } else {
        ++counts_.other;
      }
      break;
    case WireWhat::kRx:
      if (!data || (r.flags & (kFrameCorrupt | kFrameMacError | kFrameInjected)) != 0) break;
      if (r.info.ecn == kEcnCe) ++counts_.ce_marked;
      // A copy made by the fabric is not the sender's doing. Nor does it stand for its original: when that
      // was lost, the copy may come behind a later packet of its path, and then the loss has been told.
      if ((r.flags & kFrameCopy) != 0 || r.info.key == 0) break;
      if (uint32_t& delivered = delivered_.count(r.info.key); delivered++ != 0) ++counts_.redelivered;
      break;
    case WireWhat::kLost:
      if ((r.flags & kFrameCopy) != 0) break;  // the original is counted on its own
      if (data)
        ++counts_.lost;
      else if (r.info.kind != FrameKind::kAny)
        ++counts_.acks_lost;
      break;
  }
}

TrafficCounts TrafficCounts::operator-(const TrafficCounts& e) const {
  TrafficCounts d = *this;
  d.data_packets -= e.data_packets;
  d.data_bytes -= e.data_bytes;
  d.acks -= e.acks;
  d.probes -= e.probes;
  d.other -= e.other;
  d.lost -= e.lost;
  d.acks_lost -= e.acks_lost;
  d.ce_marked -= e.ce_marked;
  d.resent -= e.resent;
  d.needless_resent -= e.needless_resent;
  d.redelivered -= e.redelivered;
  d.unique_payload_bytes -= e.unique_payload_bytes;
  d.written_payload_bytes -= e.written_payload_bytes;
  return d;
}

}  // namespace weft::tb
