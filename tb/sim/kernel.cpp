// SPDX-License-Identifier: Apache-2.0
#include "tb/sim/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tb/sim/interrupt.h"

namespace weft::tb {
namespace {

inline constexpr ProcessId kOutside = 0xffffff;  // source of events posted between windows: behind all others

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

Process::~Process() {
  const auto drop = [](const EventItem& item) { FrameRef(item.frame).reset(); };
  queue_.each(drop);
  for (const Inbox& inbox : inboxes_) {
    for (const EventItem& item : inbox.items) drop(item);
  }
}

void Process::post(ProcessId to, Ps time, uint32_t tag, FrameRef frame) {
  const EventItem item{time, next_order(), frame.release(), tag};
  if (to == id_) {
    queue_.push(item);
    return;
  }
  if (time < kernel_->window_end_) {
    // Would be seen late or not depending on the threads: never go on.
    std::fprintf(stderr,
                 "simulator: process %u posts to %u at %lld ps, inside the window that ends at %lld ps\n",
                 id_, to, static_cast<long long>(time), static_cast<long long>(kernel_->window_end_));
    std::abort();
  }
  Inbox& inbox = kernel_->processes_[to]->inboxes_[kernel_->parity_ * kernel_->threads_ + thread_];
  inbox.items.push_back(item);
  inbox.first = std::min(inbox.first, time);
}

void Process::fail(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
}

void Process::run_window(Ps end, unsigned thread) {
  thread_ = thread;
  Inbox* const arrived = &inboxes_[(kernel_->parity_ ^ 1) * kernel_->threads_];
  for (unsigned i = 0; i < kernel_->threads_; ++i) {
    for (const EventItem& item : arrived[i].items) queue_.add(item, end);
    arrived[i].items.clear();
    arrived[i].first = kNever;
  }
  queue_.open();
  for (EventItem item; queue_.take(end, item);) {
    Event event{item.time, item.tag, static_cast<ProcessId>(item.order >> kNumberBits), FrameRef(item.frame)};
    ++handled_;
    on_event(event);
  }
  if (runs_ == Runs::kEveryWindow) advance_to(end);
}

Ps Process::next_time() {
  next_ = queue_.first();
  if (runs_ == Runs::kEveryWindow) next_ = std::min(next_, wants_at());
  const Inbox* const filled = &inboxes_[kernel_->parity_ * kernel_->threads_];
  has_mail_ = false;
  for (unsigned i = 0; i < kernel_->threads_; ++i) {
    has_mail_ |= !filled[i].items.empty();
    next_ = std::min(next_, filled[i].first);
  }
  return next_;
}

Kernel::Kernel(Ps lookahead, unsigned threads) : lookahead_(lookahead), threads_(threads) {
  for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker(i); });
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
  if (process.id_ >= kOutside) std::abort();  // no room in the order of events
  process.inboxes_.resize(2 * size_t{threads_});
  processes_.push_back(&process);
  return process.id_;
}

void Kernel::post(ProcessId to, Ps time, uint32_t tag, FrameRef frame) {
  const uint64_t order = uint64_t{kOutside} << Process::kNumberBits | outside_number_++;
  processes_[to]->queue_.push({std::max(time, now_), order, frame.release(), tag});
}

uint64_t Kernel::pending_events() const {
  uint64_t count = 0;
  for (const Process* process : processes_) {
    count += process->queue_.size();
    for (const Process::Inbox& inbox : process->inboxes_) count += inbox.items.size();
  }
  return count;
}

uint64_t Kernel::pending_frames() const {
  uint64_t count = 0;
  const auto add = [&](const EventItem& item) { count += item.frame != nullptr; };
  for (const Process* process : processes_) {
    process->queue_.each(add);
    for (const Process::Inbox& inbox : process->inboxes_)
      std::for_each(inbox.items.begin(), inbox.items.end(), add);
  }
  return count;
}

uint64_t Kernel::events() const {
  uint64_t count = 0;
  for (const Process* process : processes_) count += process->handled_;
  return count;
}

Ps Kernel::run_window(Ps limit) {
  if (!status_.ok() || limit <= now_) return now_;
  Ps first = limit;
  for (Process* process : processes_) first = std::min(first, process->next_time());
  first = std::max(first, now_);
  window_end_ = limit - first > lookahead_ ? first + lookahead_ : limit;
  parity_ ^= 1;

  next_process_.store(0, std::memory_order_relaxed);
  if (workers_.empty()) {
    for (Process* process : processes_) {
      if (process->due(window_end_)) process->run_window(window_end_, 0);
    }
  } else {
    finished_.store(0, std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    start_.notify_all();
    work(0);
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

void Kernel::work(unsigned thread) {
  for (;;) {
    const size_t i = next_process_.fetch_add(1, std::memory_order_relaxed);
    if (i >= processes_.size()) return;
    if (processes_[i]->due(window_end_)) processes_[i]->run_window(window_end_, thread);
  }
}

void Kernel::worker(unsigned thread) {
  uint64_t seen = 0;
  for (;;) {
    for (int i = 0; i < kSpins && generation_.load(std::memory_order_acquire) == seen; ++i) pause();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }
    if (stop_.load()) return;
    ++seen;
    work(thread);
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_.size()) {
      std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }
}

}  // namespace weft::tb
