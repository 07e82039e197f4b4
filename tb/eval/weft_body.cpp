// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/weft_body.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "tb/fabric/fabric.h"
#include "tb/sim/rng.h"

namespace weft::eval {

using tb::FrameKind;
using tb::Status;

Placement::Placement(const Flows& flows, uint32_t payload) : payload_(payload) {
  uint64_t packets = 0;
  for (const Flow& f : flows.list) {
    first_.push_back(packets);
    packets += ((f.bytes + payload - 1) / payload + 63) & ~uint64_t{63};
  }
  bits_.assign(packets / 64, 0);
}

WeftBody::WeftBody(const ref::Config& config, const PacketSize& size, uint16_t self, const Flows& flows,
                   Placement& placement, tb::FramePool& frames, Events& events)
    : self_(self),
      size_(size),
      slice_(wire::kMaxWqeLength / size.payload * size.payload),
      flows_(flows),
      placement_(placement),
      frames_(frames),
      events_(events),
      endpoint_(config, *this) {
  endpoint_.add_region(kKey, uint64_t{1} << kFlowShift, flows.list.size() << kFlowShift, ref::kRemoteWrite);
  uint32_t hosts = 0;
  for (const Flow& f : flows.list) hosts = std::max({hosts, f.src + 1u, f.dst + 1u});
  conn_of_.assign(size_t{hosts} * flows.lanes, kNone);
}

namespace {

// Gives what one end says to the other. With ranks, all of them hear it.
wire::Hello told(const wire::Hello& mine, tb::Ranks* ranks, unsigned from) {
  if (ranks == nullptr) return mine;
  std::vector<std::vector<uint8_t>> outgoing(ranks->count());
  if (ranks->rank() == from) {
    std::vector<uint8_t> bytes(wire::Hello::kBytes);
    mine.pack(bytes.data());
    outgoing.assign(ranks->count(), bytes);
  }
  std::vector<uint8_t> incoming;
  ranks->exchange(outgoing, incoming);
  return wire::Hello::unpack(incoming.data());
}

}  // namespace

Status WeftBody::connect(const std::vector<WeftBody*>& bodies, const Flows& flows, tb::Ranks* ranks,
                         const std::vector<unsigned>& rank_of) {
  // Connections are opened one after the other, on ranks as well: an endpoint numbers them in this order.
  std::unordered_set<uint64_t> open;
  Status failed;
  for (const Flow& f : flows.list) {
    const auto [low, high] = std::minmax(f.src, f.dst);
    if (!open.insert(uint64_t{low} << 32 | uint64_t{high} << 16 | f.lane).second) continue;
    WeftBody *const a = bodies[f.src], *const b = bodies[f.dst];
    const auto rank = [&](uint16_t host) { return ranks == nullptr ? 0 : rank_of[host]; };
    wire::Hello offer{}, answer{};
    if (a != nullptr) offer = a->endpoint_.offer();
    offer = told(offer, ranks, rank(f.src));
    if (b != nullptr) answer = b->endpoint_.accept(offer, ref::Peer{f.src}, 0);
    answer = told(answer, ranks, rank(f.dst));
    wire::Refusal refusal = answer.refusal;
    if (refusal == wire::Refusal::NONE && a != nullptr)
      refusal = a->endpoint_.connect(offer, answer, ref::Peer{f.dst}, 0);
    if (refusal != wire::Refusal::NONE) {  // other ranks may not know yet
      if (failed.ok())
        failed = Status::error(fmt::format("connection of hosts {} and {} refused: reason {}", f.src, f.dst,
                                           static_cast<unsigned>(refusal)));
      continue;
    }
    if (a != nullptr) a->conn_of_[a->slot(f.dst, f.lane)] = offer.conn;
    if (b != nullptr) b->conn_of_[b->slot(f.src, f.lane)] = answer.conn;
  }
  if (ranks != nullptr && ranks->minimum(failed.ok() ? 1 : 0) == 0 && failed.ok())
    failed = Status::error("another rank could not connect its hosts");
  return failed;
}

void WeftBody::start(Ps now, const Flow& flow) {
  now_ = now;
  const uint32_t count = parts(flow);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = i * slice_;
    ref::WorkRequest w;
    w.op = ref::WrOp::kWriteSignal;
    w.id = flow.id;
    w.length = static_cast<uint32_t>(std::min(slice_, flow.bytes - offset));
    w.remote_va = ((uint64_t{flow.id} + 1) << kFlowShift) + offset;
    w.rkey = kKey;
    w.value = flow.id;
    const wire::Err e = endpoint_.post(conn_of_[slot(flow.dst, flow.lane)], 0, w, now);
    if (e == wire::Err::OK) continue;
    events_.broken(
        Status::error(fmt::format("flow {}: refused with error {}", flow.id, static_cast<unsigned>(e))));
    return;
  }
}

void WeftBody::on_frame(Ps now, uint32_t port, const tb::Frame& frame) {
  now_ = now;
  ref::Packet packet = frame.packet<ref::Packet>();
  packet.ce = frame.meta.ecn == tb::kEcnCe;
  const uint64_t stale = endpoint_.counters().stale_data;
  endpoint_.on_packet(now, port, packet);
  if ((frame.flags & tb::kFrameCopy) != 0) copies_ += endpoint_.counters().stale_data - stale;
}

bool WeftBody::next(Ps now, uint32_t port, bool paused, tb::FrameRef& frame) {
  if (paused) return false;
  now_ = now;
  ref::Packet packet;
  if (!endpoint_.next_packet(now, port, packet)) return false;
  tb::FrameMeta meta;
  meta.flow_hash = tb::mix64(uint64_t{self_} << 48 | uint64_t{packet.peer} << 32 | port << 16 | packet.sport);
  meta.src_node = self_;
  meta.dst_node = packet.peer;
  meta.src_port = meta.dst_port = static_cast<uint8_t>(port);
  if (packet.is_data()) {
    meta.kind = FrameKind::kData;
    meta.ecn = tb::kEcnEct0;
    meta.wire_bytes = size_.wire(packet.payload_bytes) - tb::kWireOverheadBytes;
  } else {
    meta.kind = packet.is_ack() ? FrameKind::kAck : FrameKind::kProbe;
    meta.wire_bytes = static_cast<uint32_t>(ref::frame_bytes(packet));
  }
  frame = frames_.make_decoded(packet, meta);
  return true;
}

void WeftBody::on_timer(Ps now) {
  now_ = now;
  endpoint_.on_timer(now);
}

bool WeftBody::read(std::uint64_t, std::uint8_t*, std::uint32_t) {
  return true;
}

bool WeftBody::write(std::uint64_t va, const std::uint8_t*, std::uint32_t count) {
  const auto flow = static_cast<uint32_t>((va >> kFlowShift) - 1);
  const uint64_t offset = va & ((uint64_t{1} << kFlowShift) - 1);
  const bool known = flow < flows_.list.size() && flows_.list[flow].dst == self_;
  if (!known || offset % size_.payload != 0 ||
      count != std::min<uint64_t>(size_.payload,
                                  flows_.list[flow].bytes - std::min(offset, flows_.list[flow].bytes))) {
    events_.broken(
        Status::error(fmt::format("host {}: {} bytes at {:#x} belong to no packet", self_, count, va)));
    return true;
  }
  if (count == 0) return true;
  const uint64_t packet = placement_.packet(flow, offset);
  if (placement_.has(packet))
    events_.broken(
        Status::error(fmt::format("flow {}: the packet at byte {} was placed twice", flow, offset)));
  placement_.set(packet);
  events_.placed(now_, flow, count);
  return true;
}

bool WeftBody::signal(std::uint16_t, std::uint32_t amount) {
  events_.delivered(now_, amount);
  return true;
}

void WeftBody::completed(const ref::Completion& c) {
  if (c.what == ref::Completed::kRequest && c.status == wire::Err::OK)
    events_.completed(now_, static_cast<uint32_t>(c.id));
  else
    events_.broken(Status::error(
        fmt::format("host {}: flow {} ended with error {}", self_, c.id, static_cast<unsigned>(c.status))));
}

BodyCounts WeftBody::counts() const {
  const ref::Counters& e = endpoint_.counters();
  BodyCounts c;
  c.data_sent = e.data_sent;
  c.resent = e.resent;
  c.needless = e.stale_data - copies_;
  c.discarded =
      e.drop[static_cast<size_t>(wire::Drop::STALE)] + e.drop[static_cast<size_t>(wire::Drop::EPOCH)];
  c.acks_sent = e.acks_sent;
  c.others_sent = e.probes_sent + e.fences_sent + e.answers_sent;
  c.timeouts = e.timer_probes;
  c.paths_failed = e.path_failed;
  return c;
}

}  // namespace weft::eval
