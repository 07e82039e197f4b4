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
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tb/sim/event_queue.h"
#include "tb/sim/frame.h"
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

  // What others post in one window is taken in the next: nobody waits for anybody. One for each thread that
  // may post, twice: those being filled and those being emptied.
  struct alignas(64) Inbox {
    std::vector<EventItem> items;
    Ps first = kNever;
  };

  Kernel* kernel_ = nullptr;
  ProcessId id_ = 0;
  Runs runs_;
  bool has_mail_ = false;  // in the inboxes that the next window empties
  unsigned thread_ = 0;    // that runs it in this window
  uint64_t number_ = 0;
  uint64_t handled_ = 0;
  Ps next_ = kNever;
  EventQueue queue_;
  std::vector<Inbox> inboxes_;  // [parity][thread]
  Status failure_;
};

class Kernel {
 public:
  // `lookahead` > 0. `threads` >= 1 counts the caller.
  Kernel(Ps lookahead, unsigned threads);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Processes are started in the order of their numbers: add the expensive ones first. Not owned.
  ProcessId add(Process& process);
  // Called at the barrier, on the thread that runs the simulation, with the end of the window.
  void on_window_end(std::function<void(Ps end)> callback) { callbacks_.push_back(std::move(callback)); }

  // Runs one window and returns its end (== now()). The window starts where something happens first, and is
  // cut at `limit`; now() is `limit` afterwards if nothing happens before.
  Ps run_window(Ps limit);

  // For the caller of run_window, between windows: an event from outside. time >= now().
  void post(ProcessId to, Ps time, uint32_t tag, FrameRef frame);

  Ps now() const { return now_; }
  Ps lookahead() const { return lookahead_; }
  unsigned threads() const { return threads_; }
  uint64_t pending_events() const;  // between windows
  uint64_t pending_frames() const;  // of those, the ones that are not timers
  uint64_t windows() const { return windows_; }
  uint64_t events() const;  // handled so far
  const Status& status() const { return status_; }

 private:
  friend class Process;
  void work(unsigned thread);
  void worker(unsigned thread);

  const Ps lookahead_;
  const unsigned threads_;
  Ps now_ = 0;
  Ps window_end_ = 0;
  unsigned parity_ = 0;  // of the inboxes being filled
  uint64_t windows_ = 0;
  uint64_t outside_number_ = 0;
  std::vector<Process*> processes_;
  std::vector<std::function<void(Ps)>> callbacks_;
  Status status_;

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
