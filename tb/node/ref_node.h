// SPDX-License-Identifier: Apache-2.0
// A node that is not made of RTL: the reference endpoint (sw/ref/endpoint.h) as its transport, the model of
// the message engine (sw/ref/engine.h), registers, memory and two MACs. The same driver runs it, and it talks
// to Verilated nodes.
//
//   HostAccess -> RefHost --doorbells--> ref::Engine --WRITEs--> ref::Endpoint <--frames--> ports
//                    \--configuration------^-----------signals, completions--/
//
// A connection is what its CfgConn rows say, one row a port. The endpoint has numbers of its own for
// connections, paths and first PSNs; frames are translated where they come in and go out:
//
//                 endpoint                      on the wire
//   connection    dense, by offer()             index of CfgConn
//   path          port * num_paths + k          port * paths_per_port + k
//   PSN, epoch 0  the same on all ports         tx_psn, rx_psn of the port
//
// A peer that is Verilated has the capability WRITE alone; another reference node has all
// (docs/simulation.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sw/ref/endpoint.h"
#include "sw/ref/engine.h"
#include "sw/wire/frame.h"
#include "tb/memory/memory.h"
#include "tb/node/endpoint.h"
#include "tb/node/ref_host.h"
#include "tb/node/rtl_node.h"
#include "weft_cfg.h"

namespace weft::tb {

// Time from a frame's last bit to what it causes: receive path, a write to memory, its answer.
inline constexpr Ps kRefReceive = 250 * kNs;

NodeFactory ref_nodes();
// What Scenario::body says of each node.
NodeFactory bodies(ModelFactory make_model);

class RefNode final : public Endpoint, private RefHostTarget {
 public:
  explicit RefNode(const NodeEnv& env);
  ~RefNode() override;

  uint32_t ports() const override { return size_.ports; }
  void on_frame(uint32_t port, Ps first_bit, FrameRef frame) override;
  void advance_to(Ps end) override;
  Ps wants_at() const override { return next_event(); }
  bool idle() const override;
  uint64_t cycles() const override { return clock(now_); }
  uint64_t activity() const override;
  uint64_t rx_bytes_written() const override { return rx_bytes_written_; }
  Status status() const override { return error_; }
  std::string state() const override;
  nlohmann::json stats() const override;
  HostAccess* host() override { return &host_; }
  Memory* memory() override { return &memory_; }
  std::vector<EngineEvent>* engine_events() override { return env_.engine_trace ? &events_ : nullptr; }

  uint32_t semaphore(uint32_t index) const { return engine_.semaphore(index); }
  // The endpoint's view of a path of the connection, for tests. The connection is open.
  ref::PathState path_state(uint32_t conn, uint32_t port, uint32_t index) const;

 private:
  struct TransportEnv;
  struct EngineIo;
  struct Link {  // a connection
    std::vector<cfg::Conn> rows;
    uint32_t written = 0;  // rows written since it was opened last, one bit a port
    bool open = false;
    uint32_t number = 0;  // at the endpoint
  };
  struct Arrival {
    Ps at;  // taken then
    FrameRef frame;
  };
  struct Mac {
    cfg::Port address;
    std::vector<Arrival> rx;  // ring
    size_t rx_head = 0, rx_count = 0;
    Ps wire_free = 0;
    std::vector<uint64_t> counts;  // by counters::Port
  };
  struct Pending {  // what the endpoint reported during a call
    bool signal;
    wire::Err status;
    uint16_t sem;
    uint32_t amount;
    uint64_t tag;
  };

  // RefHostTarget
  void configure(Ps now, cfg::Table table, uint32_t index, const cfg::Words& words) override;
  void doorbell(Ps now, const wire::Doorbell& d) override;
  void soft_reset(Ps now) override;
  void run_cpu(Ps now, bool run) override;
  uint32_t cpu_status() const override;
  uint32_t idle_bits() const override;
  uint64_t counter(uint32_t index) const override;
  uint64_t clock(Ps now) const override;

  void configure_link(Ps now, uint32_t conn, uint32_t port, const cfg::Conn& row);
  void open_link(Ps now, uint32_t conn);
  void make_transport(uint32_t paths);
  wire::Err post_write(Ps now, uint64_t tag, const wire::Wqe& entry);
  Ps next_event() const;
  void run(Ps now);
  void receive(Ps now, uint32_t port, const Frame& frame);
  void transmit(Ps now, uint32_t port);
  void settle(Ps now);  // hands the engine what the endpoint reported
  // Counts what the endpoint has counted since the last call for a port.
  void attribute(uint32_t port);
  uint64_t& count(uint32_t port, uint32_t event) { return ports_[port].counts[event]; }

  NodeEnv env_;
  const RefSize size_{{.exact_sums = false}};  // as a Verilated node is built
  int64_t rate_mbps_;
  Memory memory_;
  RefHost host_;
  std::unique_ptr<EngineIo> engine_io_;
  ref::Engine engine_;
  std::unique_ptr<TransportEnv> transport_env_;
  std::unique_ptr<ref::Endpoint> transport_;  // from the first connection on
  cfg::Global global_;
  std::vector<cfg::Region> regions_;
  std::vector<Link> links_;
  std::vector<wire::RxConn> rx_conns_;  // for parse()
  std::vector<uint32_t> conn_of_;       // CfgConn index of an endpoint's connection
  std::vector<Mac> ports_;
  std::vector<Pending> pending_;
  ref::Counters seen_{};  // of the endpoint, attributed to ports
  uint64_t messages_sent_ = 0, messages_failed_ = 0;
  uint64_t frames_ = 0;  // both ways
  uint64_t rx_bytes_written_ = 0;
  Ps now_ = 0;
  bool cpu_run_ = false;
  std::vector<EngineEvent> events_;
  Status error_;
};

}  // namespace weft::tb
