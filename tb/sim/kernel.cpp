// SPDX-License-Identifier: Apache-2.0
#include "tb/sim/kernel.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tb/sim/interrupt.h"

namespace weft::tb {
namespace {

inline constexpr ProcessId kOutside = 0xffffff;  // source of events posted between windows: behind all others

// A window of RTL nodes lasts milliseconds, so a short spin catches the usual imbalance and a sleep the rest.
inline constexpr int kSpins = 200;

// An event on its way to another rank; the bytes of its frame follow. To kOutside: the rank has failed; the
// text follows.
struct Travelling {
  Ps time;
  uint64_t order;
  ProcessId to;
  uint32_t tag;
  FrameMeta meta;
  uint16_t bytes;
  uint8_t flags;
  bool has_frame;
};

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

Process::~Process() {
  queue_.each([](const EventItem& item) { FrameRef(item.frame).reset(); });
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
  kernel_->inbox(kernel_->parity_, thread_, to).add(item);
}

void Inbox::grow() {
  const uint32_t capacity = std::max(16u, 2 * capacity_);
  auto larger = std::make_unique<EventItem[]>(capacity);
  std::copy(begin(), end(), larger.get());
  items_ = std::move(larger);
  capacity_ = capacity;
}

void Process::fail(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
}

void Process::run_window(Ps end, unsigned thread) {
  thread_ = thread;
  EventBatch& batch = kernel_->scratch_[thread].batch;
  batch.clear();
  for (unsigned i = 0; i < kernel_->threads_; ++i) {
    Inbox& arrived = kernel_->inbox(kernel_->parity_ ^ 1, i, id_);
    for (const EventItem& item : arrived) {
      if (item.time < end)
        batch.add(item);
      else
        queue_.push(item);
    }
    arrived.clear();
  }
  batch.sort();
  for (EventItem item; queue_.take(batch, end, item);) {
    Event event{item.time, item.tag, static_cast<ProcessId>(item.order >> kNumberBits), FrameRef(item.frame)};
    ++handled_;
    on_event(event);
  }
  if (runs_ == Runs::kEveryWindow) advance_to(end);
}

Ps Process::next_time() {
  next_ = queue_.first();
  if (runs_ == Runs::kEveryWindow) next_ = std::min(next_, wants_at());
  has_mail_ = false;
  for (unsigned i = 0; i < kernel_->threads_; ++i) {
    const Inbox& filled = kernel_->inbox(kernel_->parity_, i, id_);
    has_mail_ |= filled.size() != 0;
    next_ = std::min(next_, filled.first());
  }
  return next_;
}

Kernel::Kernel(Ps lookahead, unsigned threads, Ranks* ranks, FramePool* frames)
    : lookahead_(lookahead), threads_(threads), ranks_(ranks), frames_(frames) {
  scratch_.resize(threads);
  outgoing_.resize(ranks ? ranks->count() : 0);
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
  for (const Inbox& inbox : inboxes_) {
    for (const EventItem& item : inbox) FrameRef(item.frame).reset();
  }
}

ProcessId Kernel::add(Process& process) {
  return add(&process, rank());
}

ProcessId Kernel::add(Process* process, unsigned rank) {
  const auto id = static_cast<ProcessId>(rank_of_.size());
  if (id >= kOutside) std::abort();  // no room in the order of events
  rank_of_.push_back(rank);
  inboxes_.resize(2 * size_t{threads_} * rank_of_.size());  // all are empty: nothing has run
  if (process) {
    process->kernel_ = this;
    process->id_ = id;
  }
  const bool mine = rank == this->rank();
  by_number_.push_back(mine ? process : nullptr);
  if (mine) processes_.push_back(process);
  return id;
}

void Kernel::post(ProcessId to, Ps time, uint32_t tag, FrameRef frame) {
  const uint64_t order = uint64_t{kOutside} << Process::kNumberBits | outside_number_++;
  by_number_[to]->queue_.push({std::max(time, now_), order, frame.release(), tag});
}

uint64_t Kernel::pending_events() const {
  uint64_t count = 0;
  for (const Process* process : processes_) count += process->queue_.size();
  for (const Inbox& inbox : inboxes_) count += inbox.size();
  return count;
}

uint64_t Kernel::pending_frames() const {
  uint64_t count = 0;
  const auto add = [&](const EventItem& item) { count += item.frame != nullptr; };
  for (const Process* process : processes_) process->queue_.each(add);
  for (const Inbox& inbox : inboxes_) std::for_each(inbox.begin(), inbox.end(), add);
  return count;
}

uint64_t Kernel::events() const {
  uint64_t count = 0;
  for (const Process* process : processes_) count += process->handled_;
  return count;
}

double Kernel::worker_cpu_s() {
  double sum = 0;
  for (std::thread& thread : workers_) {
    clockid_t clock;
    struct timespec t {};
    if (::pthread_getcpuclockid(thread.native_handle(), &clock) != 0) continue;
    ::clock_gettime(clock, &t);
    sum += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
  return sum;
}

Ps Kernel::run_window(Ps limit) {
  if (!status_.ok() || limit <= now_) return now_;
  Ps first = limit;
  for (Process* process : processes_) first = std::min(first, process->next_time());
  if (ranks_) first = ranks_->minimum(first);
  first = std::max(first, now_);
  window_end_ = limit - first > lookahead_ ? first + lookahead_ : limit;
  parity_ ^= 1;

  next_process_.store(0, std::memory_order_relaxed);
  if (workers_.empty()) {
    run_processes(0, processes_.size(), 0);
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
  if (ranks_) exchange();
  for (auto& callback : callbacks_) callback(now_);
  return now_;
}

// What was posted in this window to processes of other ranks goes there, and a failure to all of them.
void Kernel::exchange() {
  const auto append = [&](unsigned rank, const void* bytes, size_t count) {
    const auto* from = static_cast<const uint8_t*>(bytes);
    outgoing_[rank].insert(outgoing_[rank].end(), from, from + count);
  };
  for (auto& bytes : outgoing_) bytes.clear();
  for (ProcessId to = 0; to < rank_of_.size(); ++to) {
    if (rank_of_[to] == ranks_->rank()) continue;
    for (unsigned thread = 0; thread < threads_; ++thread) {
      Inbox& posted = inbox(parity_, thread, to);
      for (const EventItem& item : posted) {
        const FrameRef frame(item.frame);
        Travelling t{item.time, item.order, to, item.tag, {}, 0, 0, false};
        if (frame) {
          t.meta = frame->meta;
          t.bytes = frame->bytes;
          t.flags = frame->flags;
          t.has_frame = true;
        }
        append(rank_of_[to], &t, sizeof t);
        if (frame) append(rank_of_[to], frame->data(), frame->bytes);
      }
      posted.clear();
    }
  }
  if (!status_.ok()) {
    const std::string& text = status_.text();
    const auto bytes = static_cast<uint16_t>(std::min<size_t>(text.size(), UINT16_MAX));
    const Travelling failure{0, 0, kOutside, 0, {}, bytes, 0, false};
    for (unsigned rank = 0; rank < ranks_->count(); ++rank) {
      append(rank, &failure, sizeof failure);
      append(rank, text.data(), bytes);
    }
  }
  ranks_->exchange(outgoing_, incoming_);
  for (size_t at = 0; at < incoming_.size();) {
    Travelling t;
    std::memcpy(&t, &incoming_[at], sizeof t);
    at += sizeof t;
    if (t.to == kOutside) {
      if (status_.ok())
        status_ = Status::error("another rank has failed: " +
                                std::string(reinterpret_cast<const char*>(incoming_.data()) + at, t.bytes));
      at += t.bytes;
      continue;
    }
    FrameRef frame;
    if (t.has_frame) {
      frame = frames_->make(&incoming_[at], t.bytes);
      frame->meta = t.meta;
      frame->flags = t.flags;
      at += t.bytes;
    }
    inbox(parity_, 0, t.to).add({t.time, t.order, frame.release(), t.tag});
  }
}

void Kernel::prefetch(Process& process) {
  process.queue_.prefetch();
  process.prefetch();
  const auto* line = reinterpret_cast<const char*>(inbox(parity_ ^ 1, 0, process.id_).begin());
  __builtin_prefetch(line);
  __builtin_prefetch(line + 64);
}

// A thousand hosts do not fit into the cache: what comes next is asked for while one runs.
void Kernel::run_processes(size_t from, size_t to, unsigned thread) {
  for (size_t i = from; i < to; ++i) {
    if (i + 2 < to) __builtin_prefetch(processes_[i + 2]);
    if (i + 1 < to) prefetch(*processes_[i + 1]);
    if (processes_[i]->due(window_end_)) processes_[i]->run_window(window_end_, thread);
  }
}

void Kernel::work(unsigned thread) {
  // By the piece, lest threads get in each other's way, but nodes that take milliseconds one by one.
  const size_t piece = std::clamp<size_t>(processes_.size() / (16 * threads_), 1, 8);
  for (;;) {
    const size_t i = next_process_.fetch_add(piece, std::memory_order_relaxed);
    if (i >= processes_.size()) return;
    run_processes(i, std::min(i + piece, processes_.size()), thread);
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
