// SPDX-License-Identifier: Apache-2.0
// A thing with ports: all that the fabric knows of a node. Verilated nodes and reference endpoints are two
// bodies of it.
//
// An endpoint runs on one thread at a time, but not always the same one. Within a window it is given all
// frames whose first bit arrives in it (on_frame, in order of time), then advance_to(end of the window).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "tb/cluster.h"
#include "tb/sim/frame.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft {
struct Hal;
}

namespace weft::tb {

class Memory;
class HostAccess;
class Watch;  // tb/check/watch.h

// Every node is in reset for so many cycles; its cycle counter starts behind it.
inline constexpr uint32_t kResetCycles = 16;

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Puts a frame on the link of a port. `first_bit` may lie in the past, `last_bit` (inter-frame gap
  // included) may not; `known` is when all of its bytes were, in the running window. Frames of a port do
  // not overlap.
  virtual void send(uint32_t port, Ps first_bit, Ps last_bit, Ps known, FrameRef frame) = 0;
};

struct NodeEnv {
  uint32_t node = 0;
  uint64_t seed = 1;  // the node's own
  const Scenario* scenario = nullptr;
  FramePool* frames = nullptr;
  FrameSink* sink = nullptr;
  WaveConfig waves;           // file empty: none for this node
  bool engine_trace = false;  // keep EngineEvents for a timeline
};

// Issue or completion of a work-queue entry.
struct EngineEvent {
  Ps time = 0;
  bool done = false;
  uint16_t subgraph = 0;
  uint32_t entry = 0;
  uint8_t opcode = 0;
  uint8_t status = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual uint32_t ports() const = 0;
  virtual void on_frame(uint32_t port, Ps first_bit, FrameRef frame) = 0;
  virtual void advance_to(Ps end) = 0;
  // Earliest time at which it wants to run without a frame; a clocked node always wants to.
  virtual Ps wants_at() const = 0;

  // The rest is read between windows.
  virtual bool idle() const = 0;  // nothing unsettled, nothing to do
  virtual uint64_t cycles() const { return 0; }
  virtual uint64_t activity() const { return 0; }  // grows with every useful event inside, for the watchdog
  virtual uint64_t rx_bytes_written() const { return 0; }  // payload that the receive side wrote to memory
  virtual Status status() const { return {}; }             // the first thing that must never happen
  virtual std::string state() const { return ""; }         // for the report of a hang
  virtual nlohmann::json stats() const;
  virtual HostAccess* host() { return nullptr; }
  virtual Memory* memory() { return nullptr; }
  virtual std::vector<EngineEvent>* engine_events() { return nullptr; }
  virtual const Watch* watch() const { return nullptr; }
  virtual Status finish() { return {}; }  // closes files
};

}  // namespace weft::tb
