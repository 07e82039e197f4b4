// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/host.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace weft::eval {

Host::Host(uint16_t self, Flows& flows, Ps window, Ps news)
    : FabricHost(Runs::kOnEvents), self_(self), flows_(flows), window_(window), news_(news) {
  for (const Flow& f : flows.list) {
    if (f.after_told != kNoFlow && flows.list[f.after_told].src == self)
      told_.push_back({f.after_told, f.id});
    unfinished_ += (f.src == self) + (f.dst == self);
    if (f.src != self) continue;
    for (uint32_t other : {f.after_sent, f.after_got})
      if (other != kNoFlow) waiters_.push_back({other, f.id});
    if (f.queued)
      queue_.push_back(f.id);
    else if (f.after_sent == kNoFlow && f.after_got == kNoFlow && f.after_told == kNoFlow)
      timed_.push_back(f.id);
  }
  std::sort(waiters_.begin(), waiters_.end());
  std::sort(told_.begin(), told_.end());
  std::stable_sort(timed_.begin(), timed_.end(), [&](uint32_t a, uint32_t b) {
    return flows.list[a].not_before < flows.list[b].not_before;
  });
}

void Host::begin() {
  if (!queue_.empty())
    post(0, kStart);
  else if (!timed_.empty())
    post(flows_.list[timed_.front()].not_before, kStart);
}

void Host::on_frame(uint32_t port, Ps now, tb::FrameRef frame) {
  if ((frame->flags & tb::kFrameCorrupt) != 0)
    ++refused_;  // the check sum tells
  else
    body_->on_frame(now, port, *frame);
  frame.reset();
  go_on(now);
}

void Host::on_timer(Ps now, uint32_t tag) {
  ++timers_;
  if (tag == kTimer) {
    if (now == timer_at_) timer_at_ = kNever;
    if (body_->next_timer() <= now) body_->on_timer(now);
  } else if (tag == kStart) {
    start_due(now);
  } else {
    busy_ &= ~(1u << (tag - kFree));
  }
  go_on(now);
}

// What every event ends with.
void Host::go_on(Ps now) {
  for (size_t i = 0; i < to_start_.size(); ++i) {  // one that starts may complete at once and start another
    flows_.records[to_start_[i]].started = now;
    body_->start(now, flows_.list[to_start_[i]]);
  }
  to_start_.clear();
  serve(now);
  const Ps next = body_->next_timer();
  if (next < timer_at_) {
    timer_at_ = std::max(next, now);
    post(timer_at_, kTimer);
  }
}

void Host::serve(Ps now) {
  for (uint32_t free = body_->ready_ports() & ~busy_; free != 0; free &= free - 1) {
    const auto port = static_cast<uint32_t>(std::countr_zero(free));
    tb::FrameRef frame;
    if (!body_->next(now, port, uplink(port).paused, frame)) continue;
    busy_ |= 1u << port;
    post(transmit(port, now, std::move(frame)), kFree + port);
  }
}

void Host::start_due(Ps now) {
  fill_queue();
  while (next_timed_ < timed_.size() && flows_.list[timed_[next_timed_]].not_before <= now)
    to_start_.push_back(timed_[next_timed_++]);
  if (next_timed_ < timed_.size()) post(flows_.list[timed_[next_timed_]].not_before, kStart);
}

void Host::fill_queue() {
  for (; running_ < flows_.at_a_time && next_queued_ < queue_.size(); ++running_)
    to_start_.push_back(queue_[next_queued_++]);
}

void Host::ask(uint32_t flow) {
  const Flow& f = flows_.list[flow];
  if (f.after_sent != kNoFlow && flows_.records[f.after_sent].completed == kNever) return;
  if (f.after_got != kNoFlow && flows_.records[f.after_got].delivered == kNever) return;
  to_start_.push_back(flow);
}

void Host::release(uint32_t flow) {
  for (auto w = std::lower_bound(waiters_.begin(), waiters_.end(), Waiter{flow, 0});
       w != waiters_.end() && w->for_flow == flow; ++w)
    ask(w->flow);
}

void Host::placed(Ps now, uint32_t flow, uint32_t bytes) {
  FlowRecord& r = flows_.records[flow];
  r.placed += bytes;
  if (window_ == 0) return;
  const auto w = static_cast<size_t>(now / window_);
  if (r.window_bytes.size() <= w) r.window_bytes.resize(w + 1);
  r.window_bytes[w] += bytes;
}

void Host::delivered(Ps now, uint32_t flow) {
  FlowRecord& r = flows_.records[flow];
  const Flow& f = flows_.list[flow];
  if (++r.parts_got != body_->parts(f)) return;
  if (r.placed != f.bytes)
    fail(tb::Status::error(
        fmt::format("flow {}: delivered with {} of {} bytes in place", flow, r.placed, f.bytes)));
  r.delivered = now;
  --unfinished_;
  release(flow);
}

void Host::completed(Ps now, uint32_t flow) {
  FlowRecord& r = flows_.records[flow];
  const Flow& f = flows_.list[flow];
  if (++r.parts_sent != body_->parts(f)) return;
  r.completed = now;
  --unfinished_;
  if (f.queued) {
    --running_;
    fill_queue();
  }
  release(flow);
  for (auto w = std::lower_bound(told_.begin(), told_.end(), Waiter{flow, 0});
       w != told_.end() && w->for_flow == flow; ++w)
    note(flows_.list[w->flow].src, now + news_, w->flow);
}

}  // namespace weft::eval
