// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/roce.h"

#include <algorithm>
#include <cmath>

#include "tb/fabric/fabric.h"
#include "tb/sim/rng.h"

namespace weft::eval {

using tb::FrameKind;
using tb::FrameMeta;
using tb::FrameRef;

void Dcqcn::on_cnp(Ps now) {
  catch_up(now);
  target_ = rate_;
  rate_ = std::max(rate_ * (1 - alpha_ / 2), c_->least * static_cast<double>(c_->line_bps));
  alpha_ = (1 - c_->g) * alpha_ + c_->g;
  limited_ = true;
  alpha_at_ = now + c_->alpha_interval;
  rate_at_ = now + c_->rate_interval;
  bytes_ = 0;
  timer_steps_ = byte_steps_ = 0;
}

void Dcqcn::on_sent(Ps now, uint32_t wire_bytes) {
  if (!limited_) return;
  catch_up(now);
  bytes_ += wire_bytes;
  if (bytes_ < c_->rate_bytes) return;
  bytes_ -= c_->rate_bytes;
  ++byte_steps_;
  increase();
}

void Dcqcn::catch_up(Ps now) {
  if (!limited_) return;
  while (limited_ && rate_at_ <= now) {
    rate_at_ += c_->rate_interval;
    ++timer_steps_;
    increase();
  }
  while (alpha_at_ <= now) {
    alpha_at_ += c_->alpha_interval;
    alpha_ *= 1 - c_->g;
  }
}

void Dcqcn::increase() {
  const double line = static_cast<double>(c_->line_bps);
  const uint32_t most = std::max(timer_steps_, byte_steps_), least = std::min(timer_steps_, byte_steps_);
  if (least > c_->fast_recovery)
    target_ += line * c_->hyper * (least - c_->fast_recovery);
  else if (most > c_->fast_recovery)
    target_ += line * c_->additive;
  target_ = std::min(target_, line);
  rate_ = (rate_ + target_) / 2;
  if (line - rate_ > line * 1e-3) return;
  rate_ = line;
  limited_ = false;
}

void RoceBody::Ring::push(uint32_t v) {
  if (count_ == items_.size()) {
    std::vector<uint32_t> larger(std::max<size_t>(16, 2 * items_.size()));
    for (size_t i = 0; i < count_; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
    items_.swap(larger);
    head_ = 0;
  }
  items_[(head_ + count_++) & (items_.size() - 1)] = v;
}

uint32_t RoceBody::Ring::pop() {
  const uint32_t v = items_[head_];
  head_ = (head_ + 1) & (items_.size() - 1);
  --count_;
  return v;
}

RoceBody::RoceBody(const RoceConfig& config, uint16_t self, uint32_t hosts, const Flows& flows,
                   tb::FramePool& frames, Events& events)
    : c_(config), self_(self), lanes_(flows.lanes), frames_(frames), events_(events) {
  index_.assign(size_t{hosts} * lanes_ * c_.ports, kNone);
  ports_.resize(c_.ports);
  for (const Flow& f : flows.list) {
    if (f.src != self && f.dst != self) continue;
    for (uint32_t p = 0; p < c_.ports; ++p) pair_of(f.src == self ? f.dst : f.src, f.lane, p);
  }
}

uint32_t RoceBody::pair_of(uint16_t peer, uint16_t lane, uint32_t port) {
  uint32_t& at = index_[(size_t{peer} * lanes_ + lane) * c_.ports + port];
  if (at != kNone) return at;
  at = static_cast<uint32_t>(pairs_.size());
  Pair& p = pairs_.emplace_back(c_);
  p.peer = peer;
  p.lane = lane;
  p.port = static_cast<uint8_t>(port);
  p.flow_hash =
      tb::mix64(tb::mix64(uint64_t{self_} << 48 | uint64_t{peer} << 32 | lane << 8 | port) ^ c_.seed);
  return at;
}

uint32_t RoceBody::parts(const Flow& flow) const {
  return static_cast<uint32_t>(std::clamp<uint64_t>(flow.bytes, 1, c_.ports));
}

void RoceBody::start(Ps now, const Flow& flow) {
  const uint32_t count = parts(flow);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t bytes = flow.bytes * (i + 1) / count - flow.bytes * i / count;
    const uint32_t index = pair_of(flow.dst, flow.lane, (flow.id + i) % c_.ports);
    Pair& p = pairs_[index];
    const auto packets = static_cast<uint32_t>(c_.size.packets(bytes));
    p.messages.push_back({flow.id, p.end_psn, packets, bytes});
    p.end_psn += packets;
    enlist(now, index);
  }
}

void RoceBody::enlist(Ps now, uint32_t index) {
  Pair& p = pairs_[index];
  if (p.queued || !may_send(p)) return;
  p.queued = true;
  Port& port = ports_[p.port];
  if (p.sends_at <= now) {
    port.ready.push(index);
  } else {
    port.waiting.push_back({p.sends_at, index});
    std::push_heap(port.waiting.begin(), port.waiting.end());
  }
}

void RoceBody::reply(uint32_t index) {
  Pair& p = pairs_[index];
  if (p.reply_listed) return;
  p.reply_listed = true;
  ports_[p.port].replies.push(index);
}

// Timers run from the last progress; a deadline that has moved is found out when the old one is due.
void RoceBody::arm(Ps now, uint32_t index) {
  Pair& p = pairs_[index];
  p.rto_at = p.acked == p.next_psn ? kNever : now + c_.rto;
  if (p.rto_at == kNever || p.rto_listed) return;
  p.rto_listed = true;
  timers_.push_back({p.rto_at, index});
  std::push_heap(timers_.begin(), timers_.end());
}

void RoceBody::acknowledge(Ps now, Pair& p, uint32_t psn) {
  if (psn <= p.acked) return;
  p.acked = psn;
  while (p.oldest < p.messages.size() &&
         p.messages[p.oldest].first_psn + p.messages[p.oldest].packets <= psn) {
    events_.completed(now, p.messages[p.oldest++].flow);
  }
  p.next_psn = std::max(p.next_psn, psn);  // it may have gone back before an ack of the first copies came
  if (p.oldest == p.messages.size()) {
    p.messages.clear();
    p.oldest = p.current = 0;
  }
}

void RoceBody::go_back(Pair& p, uint32_t psn) {
  p.next_psn = psn;
  p.current = p.oldest;
  p.since_request = 0;
}

void RoceBody::on_frame(Ps now, uint32_t port, const tb::Frame& frame) {
  const RocePacket& k = frame.packet<RocePacket>();
  const uint32_t index = pair_of(frame.meta.src_node, k.lane, port);
  Pair& p = pairs_[index];
  switch (k.kind) {
    case RocePacket::Kind::kData:
      if (frame.meta.ecn == tb::kEcnCe && c_.dcqcn && now - p.last_cnp >= c_.cnp_interval) {
        p.last_cnp = now;
        p.cnp_due = true;
        reply(index);
      }
      if (k.psn == p.expected) {
        ++p.expected;
        p.nak_sent = p.nak_due = false;
        events_.placed(now, k.flow, k.bytes);
        if (k.last) events_.delivered(now, k.flow);
        p.ack_due |= k.ack_request;
      } else if (k.psn > p.expected) {
        ++counts_.discarded;
        p.nak_due |= !p.nak_sent;
        p.nak_sent = true;
      } else {
        ++counts_.discarded;
        counts_.needless += (frame.flags & tb::kFrameCopy) == 0;
        p.ack_due |= k.ack_request;
      }
      if (p.ack_due || p.nak_due) reply(index);
      return;
    case RocePacket::Kind::kAck:
    case RocePacket::Kind::kNak: {
      const bool news = k.psn > p.acked;
      acknowledge(now, p, k.psn);
      // A NAK for what is acknowledged meanwhile is old.
      const bool back = k.kind == RocePacket::Kind::kNak && k.psn == p.acked && p.next_psn > k.psn;
      if (back) go_back(p, k.psn);
      if (news || back) arm(now, index);
      enlist(now, index);
      return;
    }
    case RocePacket::Kind::kCnp: p.rate.on_cnp(now); return;
  }
}

FrameRef RoceBody::make(const Pair& p, const RocePacket& packet, uint32_t bytes, FrameKind kind) {
  FrameMeta meta;
  meta.flow_hash = p.flow_hash;
  meta.wire_bytes = bytes;
  meta.src_node = self_;
  meta.dst_node = p.peer;
  meta.src_port = meta.dst_port = p.port;
  meta.kind = kind;
  meta.ecn = kind == FrameKind::kData ? tb::kEcnEct0 : tb::kEcnNone;
  return frames_.make_decoded(packet, meta);
}

bool RoceBody::next(Ps now, uint32_t number, bool paused, FrameRef& frame) {
  Port& port = ports_[number];
  if (!port.replies.empty()) {
    const uint32_t index = port.replies.pop();
    Pair& p = pairs_[index];
    p.reply_listed = false;
    RocePacket k{};
    k.lane = p.lane;
    if (p.cnp_due) {  // a notice of congestion goes first, on its own
      p.cnp_due = false;
      if (p.ack_due || p.nak_due) reply(index);
      k.kind = RocePacket::Kind::kCnp;
      ++counts_.others_sent;
      frame = make(p, k, kRoceCnpBytes, FrameKind::kAny);
      return true;
    }
    k.kind = p.nak_due ? RocePacket::Kind::kNak : RocePacket::Kind::kAck;
    k.psn = p.expected;
    p.ack_due = p.nak_due = false;
    ++counts_.acks_sent;
    frame = make(p, k, kRoceAckBytes, FrameKind::kAck);
    return true;
  }
  if (paused) return false;
  while (!port.ready.empty()) {
    const uint32_t index = port.ready.pop();
    Pair& p = pairs_[index];
    p.queued = false;
    if (!may_send(p)) continue;  // acknowledged since it was listed
    while (p.messages[p.current].first_psn + p.messages[p.current].packets <= p.next_psn) ++p.current;
    const Message& m = p.messages[p.current];
    const uint32_t at = p.next_psn - m.first_psn;
    RocePacket k{};
    k.kind = RocePacket::Kind::kData;
    k.lane = p.lane;
    k.psn = p.next_psn;
    k.flow = m.flow;
    k.last = at + 1 == m.packets;
    k.bytes =
        static_cast<uint32_t>(std::min<uint64_t>(c_.size.payload, m.bytes - uint64_t{at} * c_.size.payload));
    k.resent = k.psn < p.highest;
    k.ack_request = k.last || ++p.since_request >= c_.ack_every || now - p.last_sent > c_.rto / 4;
    p.last_sent = now;
    ++p.next_psn;
    k.ack_request |= !may_send(p);  // nothing else would bring the ack that it waits for
    if (k.ack_request) p.since_request = 0;
    p.highest = std::max(p.highest, p.next_psn);
    if (p.rto_at == kNever) arm(now, index);
    ++counts_.data_sent;
    counts_.resent += k.resent;
    const uint32_t wire = c_.size.wire(k.bytes);
    p.rate.on_sent(now, wire);
    if (p.rate.limited())
      p.sends_at =
          std::max(now, p.sends_at) + static_cast<Ps>(std::llround(wire * 8e12 / p.rate.rate_bps(now)));
    enlist(now, index);
    frame = make(p, k, wire - tb::kWireOverheadBytes, FrameKind::kData);
    return true;
  }
  return false;
}

uint32_t RoceBody::ready_ports() const {
  uint32_t ready = 0;
  for (uint32_t i = 0; i < c_.ports; ++i)
    if (!ports_[i].replies.empty() || !ports_[i].ready.empty()) ready |= 1u << i;
  return ready;
}

Ps RoceBody::next_timer() const {
  Ps next = timers_.empty() ? kNever : timers_.front().time;
  for (const Port& port : ports_)
    if (!port.waiting.empty()) next = std::min(next, port.waiting.front().time);
  return next;
}

void RoceBody::on_timer(Ps now) {
  for (Port& port : ports_) {
    while (!port.waiting.empty() && port.waiting.front().time <= now) {
      std::pop_heap(port.waiting.begin(), port.waiting.end());
      port.ready.push(port.waiting.back().pair);
      port.waiting.pop_back();
    }
  }
  while (!timers_.empty() && timers_.front().time <= now) {
    std::pop_heap(timers_.begin(), timers_.end());
    const uint32_t index = timers_.back().pair;
    timers_.pop_back();
    Pair& p = pairs_[index];
    p.rto_listed = false;
    if (p.rto_at == kNever) continue;
    if (p.rto_at > now) {  // there was progress since
      p.rto_listed = true;
      timers_.push_back({p.rto_at, index});
      std::push_heap(timers_.begin(), timers_.end());
      continue;
    }
    ++counts_.timeouts;
    go_back(p, p.acked);
    p.rto_at = kNever;  // armed again by the first packet sent
    enlist(now, index);
  }
}

}  // namespace weft::eval
