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

#include "tb/sim/frame.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::tb {

using ProcessId = uint32_t;

struct Event {
  Ps time = 0;
  ProcessId source = 0;
  uint32_t tag = 0;  // meaning is between source and destination: port, kind
  uint64_t sequence = 0;
  FrameRef frame;
};

class Kernel;

class Process {
 public:
  virtual ~Process() = default;

  // An event whose time has come. Called in order, all events of a window before advance_to of that window.
  virtual void on_event(Event& event) = 0;
  // Simulate on your own up to, not including, `end`.
  virtual void advance_to(Ps end) { (void)end; }
  // Earliest time at which the process wants to run without an event; the kernel skips what nobody wants.
  virtual Ps wants_at() const { return kNever; }

  ProcessId id() const { return id_; }

 protected:
  // To another process: time >= end of the running window. To itself: time >= the event being handled.
  void post(ProcessId to, Ps time, uint32_t tag, FrameRef frame);
  // Stops the simulation at the end of the window; the first error of the lowest process wins.
  void fail(Status status);

 private:
  friend class Kernel;
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      if (a.time != b.time) return a.time > b.time;
      if (a.source != b.source) return a.source > b.source;
      return a.sequence > b.sequence;
    }
  };
  void push(Event event);
  void run_window(Ps end);
  Ps next_time();  // between windows only

  Kernel* kernel_ = nullptr;
  ProcessId id_ = 0;
  uint64_t sequence_ = 0;
  std::vector<Event> heap_;
  std::mutex inbox_mutex_;
  std::vector<Event> inbox_;
  std::vector<Event> arrived_;  // swapped with the inbox: keeps its capacity
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
  unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }
  uint64_t pending_events() const;  // between windows
  uint64_t windows() const { return windows_; }
  const Status& status() const { return status_; }

 private:
  friend class Process;
  void work();
  void worker();

  const Ps lookahead_;
  Ps now_ = 0;
  Ps window_end_ = 0;
  uint64_t windows_ = 0;
  uint64_t outside_sequence_ = 0;
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
