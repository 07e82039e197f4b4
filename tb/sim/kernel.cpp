// SPDX-License-Identifier: Apache-2.0
#include "tb/sim/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tb/sim/interrupt.h"

namespace weft::tb {
namespace {

inline constexpr ProcessId kOutside = ~ProcessId{0};  // source of events posted between windows

// A window of RTL nodes lasts milliseconds, so a short spin catches the usual imbalance and a sleep the rest.
inline constexpr int kSpins = 200;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

void Process::push(Event event) {
  heap_.push_back(std::move(event));
  std::push_heap(heap_.begin(), heap_.end(), Later{});
}

void Process::post(ProcessId to, Ps time, uint32_t tag, FrameRef frame) {
  Event event{time, id_, tag, sequence_++, std::move(frame)};
  if (to == id_) {
    push(std::move(event));
    return;
  }
  if (time < kernel_->window_end_) {
    // Would be seen late or not depending on the threads: never go on.
    std::fprintf(stderr,
                 "simulator: process %u posts to %u at %lld ps, inside the window that ends at %lld ps\n",
                 id_, to, static_cast<long long>(time), static_cast<long long>(kernel_->window_end_));
    std::abort();
  }
  Process& destination = *kernel_->processes_[to];
  std::lock_guard lock(destination.inbox_mutex_);
  destination.inbox_.push_back(std::move(event));
}

void Process::fail(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
}

void Process::run_window(Ps end) {
  {
    std::lock_guard lock(inbox_mutex_);
    arrived_.swap(inbox_);
  }
  for (Event& event : arrived_) push(std::move(event));
  arrived_.clear();
  while (!heap_.empty() && heap_.front().time < end) {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    Event event = std::move(heap_.back());
    heap_.pop_back();
    on_event(event);
  }
  advance_to(end);
}

Ps Process::next_time() {
  Ps next = wants_at();
  if (!heap_.empty()) next = std::min(next, heap_.front().time);
  for (const Event& event : inbox_) next = std::min(next, event.time);
  return next;
}

Kernel::Kernel(Ps lookahead, unsigned threads) : lookahead_(lookahead) {
  for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
}

Kernel::~Kernel() {
  {
    std::lock_guard lock(mutex_);
    stop_.store(true);
    generation_.fetch_add(1);
  }
  start_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

ProcessId Kernel::add(Process& process) {
  process.kernel_ = this;
  process.id_ = static_cast<ProcessId>(processes_.size());
  processes_.push_back(&process);
  return process.id_;
}

void Kernel::post(ProcessId to, Ps time, uint32_t tag, FrameRef frame) {
  processes_[to]->push(Event{std::max(time, now_), kOutside, tag, outside_sequence_++, std::move(frame)});
}

uint64_t Kernel::pending_events() const {
  uint64_t count = 0;
  for (const Process* process : processes_) count += process->heap_.size() + process->inbox_.size();
  return count;
}

Ps Kernel::run_window(Ps limit) {
  if (!status_.ok() || limit <= now_) return now_;
  Ps first = limit;
  for (Process* process : processes_) first = std::min(first, process->next_time());
  first = std::max(first, now_);
  window_end_ = limit - first > lookahead_ ? first + lookahead_ : limit;

  next_process_.store(0, std::memory_order_relaxed);
  if (workers_.empty()) {
    work();
  } else {
    finished_.store(0, std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    start_.notify_all();
    work();
    for (int i = 0; i < kSpins && finished_.load(std::memory_order_acquire) != workers_.size(); ++i) pause();
    if (finished_.load(std::memory_order_acquire) != workers_.size()) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [this] { return finished_.load(std::memory_order_acquire) == workers_.size(); });
    }
  }
  now_ = window_end_;
  ++windows_;
  for (const Process* process : processes_) {
    if (!process->failure_.ok()) {
      status_ = process->failure_;
      break;
    }
  }
  if (const int signal = interrupted.load(std::memory_order_relaxed); signal != 0 && status_.ok())
    status_ = Status::error("stopped by signal " + std::to_string(signal));
  for (auto& callback : callbacks_) callback(now_);
  return now_;
}

void Kernel::work() {
  for (;;) {
    const size_t i = next_process_.fetch_add(1, std::memory_order_relaxed);
    if (i >= processes_.size()) return;
    processes_[i]->run_window(window_end_);
  }
}

void Kernel::worker() {
  uint64_t seen = 0;
  for (;;) {
    for (int i = 0; i < kSpins && generation_.load(std::memory_order_acquire) == seen; ++i) pause();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }
    if (stop_.load()) return;
    ++seen;
    work();
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_.size()) {
      std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }
}

}  // namespace weft::tb
