// SPDX-License-Identifier: Apache-2.0
// Conservative parallel discrete-event simulation.
//
// Processes (nodes, switches) own their state and talk by events only. An event for another process must lie
// at least the lookahead ahead, so all processes may run a window of that length without hearing of each
// other:
//
//     window n                     window n+1
//   | A: events, then advance_to | ...            one barrier per window; callbacks of on_window_end run
//   there, alone | B: events, then advance_to | ...
//
// A process sees its events in the order (time, source process, number within the source). Neither the number
// of threads nor who runs which process can change that order, so the same seed gives the same bits.
//
// The processes may also be spread over ranks, programs that run the same simulation together. Windows begin
// and end alike on all of them; what is posted to a process of another rank goes there at the end of the
// window.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tb/sim/event_queue.h"
#include "tb/sim/frame.h"
#include "tb/sim/ranks.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::tb {

using ProcessId = uint32_t;

struct Event {
  Ps time = 0;
  uint32_t tag = 0;  // meaning is between source and destination: port, kind
  ProcessId source = 0;
  FrameRef frame;  // or none: a timer
};

class Kernel;

class Process {
 public:
  virtual ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // An event whose time has come. Called in order, all events of a window before advance_to of that window.
  virtual void on_event(Event& event) = 0;
  // Simulate on your own up to, not including, `end`.
  virtual void advance_to(Ps end) { (void)end; }
  // Asks the processor for the state that the coming window needs; others run meanwhile. Changes nothing.
  virtual void prefetch() const {}
  // Earliest time at which the process wants to run without an event; the kernel skips what nobody wants.
  virtual Ps wants_at() const { return kNever; }

  ProcessId id() const { return id_; }

 protected:
  // What a process needs of the kernel. One that lives by events alone is left out of windows that have none
  // for it, and neither advance_to nor wants_at is asked.
  enum class Runs : uint8_t { kEveryWindow, kOnEvents };
  explicit Process(Runs runs = Runs::kEveryWindow) : runs_(runs) {}

  // To another process: time >= end of the running window. To itself: time >= the event being handled.
  void post(ProcessId to, Ps time, uint32_t tag, FrameRef frame);
  // A timer of its own: the event comes without a frame.
  void post(Ps time, uint32_t tag) { queue_.push({time, next_order(), nullptr, tag}); }
  // Stops the simulation at the end of the window; the first error of the lowest process wins.
  void fail(Status status);

 private:
  friend class Kernel;
  // Order of events of one time: source, then number.
  static constexpr unsigned kNumberBits = 40;
  uint64_t next_order() { return uint64_t{id_} << kNumberBits | number_++; }
  bool due(Ps end) const { return runs_ == Runs::kEveryWindow || has_mail_ || next_ < end; }
  void run_window(Ps end, unsigned thread);
  Ps next_time();  // between windows only; kept in next_

  Kernel* kernel_ = nullptr;
  ProcessId id_ = 0;
  Runs runs_;
  bool has_mail_ = false;  // in the inboxes that the next window empties
  unsigned thread_ = 0;    // that runs it in this window
  uint64_t number_ = 0;
  uint64_t handled_ = 0;
  Ps next_ = kNever;
  EventQueue queue_;
  Status failure_;
};

// What others post to a process in one window is taken in the next, so nobody waits for anybody. There is one
// for each process and each thread that may post, twice: those being filled and those being emptied.
class Inbox {
 public:
  void add(const EventItem& item) {
    if (count_ == capacity_) grow();
    items_[count_++] = item;
    first_ = std::min(first_, item.time);
  }
  void clear() {
    count_ = 0;
    first_ = kNever;
  }
  const EventItem* begin() const { return items_.get(); }
  const EventItem* end() const { return items_.get() + count_; }
  uint32_t size() const { return count_; }
  Ps first() const { return first_; }

 private:
  void grow();
  std::unique_ptr<EventItem[]> items_;  // not a vector: half the size, and all of them are looked at often
  Ps first_ = kNever;
  uint32_t count_ = 0, capacity_ = 0;
};

class Kernel {
 public:
  // `lookahead` > 0. `threads` >= 1 counts the caller. As one of several ranks: frames from others are made
  // in `frames`; what a caller asks or posts concerns its own part; on_window_end is called on every rank.
  Kernel(Ps lookahead, unsigned threads, Ranks* ranks = nullptr, FramePool* frames = nullptr);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Processes are started in the order of their numbers: add the expensive ones first. Not owned.
  ProcessId add(Process& process);
  // The same, for every rank: gives it its number, but only `rank` runs it. Elsewhere it may be null.
  ProcessId add(Process* process, unsigned rank);
  // Called at the barrier, on the thread that runs the simulation, with the end of the window.
  void on_window_end(std::function<void(Ps end)> callback) { callbacks_.push_back(std::move(callback)); }

  // Runs one window and returns its end (== now()). The window starts where something happens first, and is
  // cut at `limit`; now() is `limit` afterwards if nothing happens before.
  Ps run_window(Ps limit);

  // For the caller of run_window, between windows: an event from outside. time >= now(). With ranks, to a
  // process of the caller's.
  void post(ProcessId to, Ps time, uint32_t tag, FrameRef frame);

  Ps now() const { return now_; }
  Ps lookahead() const { return lookahead_; }
  unsigned threads() const { return threads_; }
  unsigned rank() const { return ranks_ ? ranks_->rank() : 0; }
  unsigned ranks() const { return ranks_ ? ranks_->count() : 1; }
  uint64_t pending_events() const;  // between windows
  uint64_t pending_frames() const;  // of those, the ones that are not timers
  uint64_t windows() const { return windows_; }
  uint64_t events() const;  // handled so far
  double worker_cpu_s();    // processor time of the threads beside the caller's
  const Status& status() const { return status_; }

 private:
  friend class Process;
  Inbox& inbox(unsigned parity, unsigned thread, ProcessId process) {
    return inboxes_[(size_t{parity} * threads_ + thread) * rank_of_.size() + process];
  }
  void prefetch(Process& process);
  void run_processes(size_t from, size_t to, unsigned thread);
  void exchange();
  void work(unsigned thread);
  void worker(unsigned thread);

  const Ps lookahead_;
  const unsigned threads_;
  Ps now_ = 0;
  Ps window_end_ = 0;
  unsigned parity_ = 0;  // of the inboxes being filled
  uint64_t windows_ = 0;
  uint64_t outside_number_ = 0;
  Ranks* const ranks_;
  FramePool* const frames_;
  std::vector<unsigned> rank_of_;    // by process number
  std::vector<Process*> by_number_;  // null where another rank runs it
  std::vector<Process*> processes_;  // that run here
  std::vector<Inbox> inboxes_;       // [parity][thread][process]
  std::vector<std::function<void(Ps)>> callbacks_;
  Status status_;

  struct alignas(64) Scratch {
    EventBatch batch;
  };
  std::vector<Scratch> scratch_;                // by thread
  std::vector<std::vector<uint8_t>> outgoing_;  // by rank
  std::vector<uint8_t> incoming_;

  std::vector<std::thread> workers_;
  std::atomic<size_t> next_process_{0};
  std::atomic<uint64_t> generation_{0};  // windows started
  std::atomic<size_t> finished_{0};      // workers done with the current one
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
};

}  // namespace weft::tb
