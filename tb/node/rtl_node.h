// SPDX-License-Identifier: Apache-2.0
// A Verilated node as an Endpoint: clock and reset, MACs, host queue, memory behind its AXI masters, waves.
//
// At rest nothing in a node changes but its time, so cycles at rest are not simulated: time is set forward.
// The RTL's idle_o says when; tests compare every bit of the model at rest, and whole runs with and without.
//
// One clock cycle is: sample all pins, rising edge (old inputs), drive new inputs, falling edge (settles what
// depends on inputs). What has nothing valid costs a test of a byte.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tb/check/watch.h"
#include "tb/memory/axi.h"
#include "tb/memory/memory.h"
#include "tb/node/endpoint.h"
#include "tb/node/host_queue.h"
#include "tb/node/mac.h"
#include "tb/node/pins.h"

namespace weft::tb {

// make_verilated_node<V...> of tb/node/verilated_model.h is one.
using ModelFactory =
    std::function<std::unique_ptr<NodeModel>(const std::string& name, uint64_t seed, bool traced)>;

NodeFactory rtl_nodes(ModelFactory make_model);

class RtlNode final : public Endpoint {
 public:
  static constexpr uint32_t kPorts = 2;
  // At rest, until the last event has been counted, and clocks of idle blocks have stopped (weft_clk_gate).
  static constexpr uint32_t kSettleCycles = 64;

  RtlNode(const NodeEnv& env, const ModelFactory& make_model);
  ~RtlNode() override;

  uint32_t ports() const override { return kPorts; }
  void on_frame(uint32_t port, Ps first_bit, FrameRef frame) override;
  void advance_to(Ps end) override;
  Ps wants_at() const override { return next_edge_; }
  bool idle() const override;
  uint64_t cycles() const override { return cycle_; }
  uint64_t activity() const override;
  uint64_t rx_bytes_written() const override;
  Status status() const override;
  std::string state() const override;
  nlohmann::json stats() const override;
  HostAccess* host() override { return &host_; }
  Memory* memory() override { return &memory_; }
  std::vector<EngineEvent>* engine_events() override { return env_.engine_trace ? &events_ : nullptr; }
  const Watch* watch() const override { return watch_.get(); }
  Status finish() override;

 private:
  void sample(Ps now);
  void drive(Ps next_edge);
  void trace_engine(Ps now);
  bool at_rest() const;

  NodeEnv env_;
  std::unique_ptr<Watch> watch_;  // outlives the model, which calls it
  std::unique_ptr<NodeModel> model_;
  NodePins& pins_;
  Memory memory_;
  AxiShared axi_;
  HostQueue host_;
  std::vector<MacPort> macs_;
  std::vector<AxiReadSlave> reads_;
  std::vector<AxiWriteSlave> writes_;  // the first kPorts are those of the receive side
  uint64_t cycle_ = 0;
  Ps next_edge_ = 0;
  bool rtl_failed_ = false;
  bool waves_ = false;
  Status wave_error_;
  uint64_t engine_activity_ = 0;
  bool may_skip_ = false;
  uint32_t rested_ = 0;  // cycles in a row that found everything idle
  std::vector<EngineEvent> events_;
};

}  // namespace weft::tb
