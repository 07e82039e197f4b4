// SPDX-License-Identifier: Apache-2.0
// A host of an evaluation: ports that serialise frames at the line's rate, a body that says what goes next,
// and the account of what the body says it moved. It starts the flows whose time has come.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tb/eval/body.h"
#include "tb/fabric/fabric.h"
#include "tb/sim/kernel.h"

namespace weft::eval {

class Host final : public tb::FabricHost, private Events {
 public:
  /// `window` > 0: bytes placed are also counted for each such stretch of time. `news`: how long a host takes
  /// to tell another, at least the kernel's lookahead.
  Host(uint16_t self, Flows& flows, Ps window, Ps news);
  /// Makes the body's Events reachable before the body exists.
  Events& events() { return *this; }
  void use(std::unique_ptr<Body> body) { body_ = std::move(body); }
  /// Sets the clock for the first flow. The kernel must know the host.
  void begin();

  /// Flows that are not complete here as a source, or not delivered here as a destination.
  uint32_t unfinished() const { return unfinished_; }
  const Body& body() const { return *body_; }
  uint64_t timers() const { return timers_; }    // events without a frame
  uint64_t refused() const { return refused_; }  // arrived with flipped bits

 private:
  // Tags of its own events; kFree with the port.
  static constexpr uint32_t kStart = 1u << 16, kTimer = 2u << 16, kFree = 3u << 16;
  void on_frame(uint32_t port, Ps now, tb::FrameRef frame) override;
  void on_timer(Ps now, uint32_t tag) override;
  void on_pause(uint32_t, Ps now) override { serve(now); }
  void on_note(Ps now, uint32_t flow) override {
    to_start_.push_back(flow);
    go_on(now);
  }
  void placed(Ps now, uint32_t flow, uint32_t bytes) override;
  void delivered(Ps now, uint32_t flow) override;
  void completed(Ps now, uint32_t flow) override;
  void broken(tb::Status why) override { fail(std::move(why)); }

  void go_on(Ps now);
  void ask(uint32_t flow);
  void release(uint32_t flow);
  void start_due(Ps now);
  void fill_queue();
  void serve(Ps now);

  struct Waiter {
    uint32_t for_flow, flow;
    bool operator<(const Waiter& o) const {
      return for_flow != o.for_flow ? for_flow < o.for_flow : flow < o.flow;
    }
  };

  const uint16_t self_;
  Flows& flows_;
  const Ps window_, news_;
  std::unique_ptr<Body> body_;

  std::vector<uint32_t> timed_;  // flows that start by the clock, soonest first
  size_t next_timed_ = 0;
  std::vector<uint32_t> queue_;  // flows of which so many run at a time
  size_t next_queued_ = 0;
  uint32_t running_ = 0;            // of those
  std::vector<Waiter> waiters_;     // sorted
  std::vector<Waiter> told_;        // of other hosts, for flows of this one; sorted
  std::vector<uint32_t> to_start_;  // told by the body's own call, so started behind it
  uint32_t unfinished_ = 0;

  uint32_t busy_ = 0;     // ports that send; bit n is port n
  Ps timer_at_ = kNever;  // of the earliest timer event that is under way
  uint64_t timers_ = 0, refused_ = 0;
};

}  // namespace weft::eval
