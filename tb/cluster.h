// SPDX-License-Identifier: Apache-2.0
// A cluster in one object: nodes (Verilated, or any other Endpoint), the fabric between them, observers and
// traces.
//
//   auto scenario = load_scenario("x.toml");                       // or Scenario{} and set_key()
//   auto cluster = Cluster::create(scenario.value(), rtl_nodes(make_nic100_model), traces);
//   weft::Hal& hal = cluster.value()->hal(0);                      // give it to the driver
//   auto end = cluster.value()->run_until([&] { return all_done(); }, 50 * kMs);
//   if (!end.ok()) puts(end.text.c_str());
//   Status s = cluster.value()->finish();                          // closes traces, checks the invariants
//
// Time moves only inside run_for, run_until, settle and Hal::csr_read / Hal::relax, in windows of one link
// latency; what the host does between two windows happens at now_ps(). Predicates are evaluated between
// windows, on the calling thread. One thread may use a Cluster at a time; the worker threads are inside. The
// same scenario and the same calls give the same bits, whatever the number of threads.
//
// Numbering: node k is host k of every plane; its port p is in plane p mod planes. Addresses are computed:
// MAC 02:00:<p>:00:<k hi>:<k lo>, IPv4 10.<p>.<k hi>.<k lo>; memory of node k starts at (k + 1) << 32.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sw/weft/hal.h"
#include "tb/scenario.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::tb {

class Endpoint;  // tb/node/endpoint.h: a thing with ports
class Memory;    // tb/memory/memory.h
struct NodeEnv;  // tb/node/endpoint.h: what a node is given

// Makes node k. rtl_nodes() of tb/node/rtl_node.h returns one for Verilated nodes; mix bodies by looking at
// env.node.
using NodeFactory = std::function<std::unique_ptr<Endpoint>(const NodeEnv& env)>;

struct WaveConfig {
  std::string file;  // empty: no waves. ".fst"
  uint32_t node = 0;
  Ps from_ps = 0;
  Ps to_ps = kNever;
};

struct TraceConfig {
  std::string pcap_dir;  // empty: none. node<k>_port<p>.pcap
  std::string timeline;  // empty: none. Chrome/Perfetto JSON
  WaveConfig waves;
};

// Parses "F[:node[:from_us:to_us]]", the argument of --waves.
Result<WaveConfig> parse_waves(const std::string& argument, uint32_t nodes);

enum class RunEnd {
  kDone,   // the predicate became true
  kLimit,  // model time ran out
  kHang,   // nothing moved for scenario.watchdog_us
  kFailed  // a node, a checker or a trace file failed; the cluster is of no further use
};

struct RunResult {
  RunEnd end = RunEnd::kDone;
  std::string text;   // for all but kDone: what happened and when, one line
  std::string state;  // of the fabric and every node then, a line each, when something did not come
  bool ok() const { return end == RunEnd::kDone; }
};

// What observers saw on the wire, cumulative; subtract two of them for the figures of one operation.
struct TrafficCounts {
  uint64_t data_packets = 0;     // data packets sent, retransmissions included
  uint64_t data_bytes = 0;       // payload bytes of those
  uint64_t acks = 0;             // sent
  uint64_t probes = 0;           // sent
  uint64_t other = 0;            // sent, neither of them
  uint64_t lost = 0;             // data packets that the fabric lost or corrupted, whatever the reason
  uint64_t acks_lost = 0;        // and acks and probes
  uint64_t ce_marked = 0;        // data packets delivered with CE
  uint64_t resent = 0;           // data packets sent with the retx bit
  uint64_t needless_resent = 0;  // of those: an intact copy had already been delivered when it left
  uint64_t redelivered = 0;      // intact data packets that reached a port which had got that packet before
  uint64_t unique_payload_bytes = 0;   // payload of data packets sent without the retx bit
  uint64_t written_payload_bytes = 0;  // bytes that the receive masters of all nodes wrote to memory
  TrafficCounts operator-(const TrafficCounts& earlier) const;
};

// in + duplicated = delivered + every kind of drop + in_flight, always.
struct FabricCounts {
  uint64_t in = 0;             // frames that nodes put on their links
  uint64_t duplicated = 0;     // copies made by fault injection
  uint64_t injected = 0;       // frames put at a node's port by Cluster::inject
  uint64_t delivered = 0;      // to nodes, corrupted ones included
  uint64_t corrupted = 0;      // of the delivered
  uint64_t ce_marked = 0;      // times a switch set CE
  uint64_t drop_loss = 0;      // random loss
  uint64_t drop_listed = 0;    // faults.drop
  uint64_t drop_queue = 0;     // output queue full
  uint64_t drop_down = 0;      // link or plane down
  uint64_t drop_no_route = 0;  // not IPv4, or an address of no node
  uint64_t in_flight = 0;      // in queues and on links; counted, not derived
  bool balanced() const;
};

class Cluster {
 public:
  struct Impl;  // in cluster.cpp

  // Fails (bad scenario, unwritable trace file, a traced model asked for where there is none) with one line
  // of text.
  static Result<std::unique_ptr<Cluster>> create(const Scenario& scenario, const NodeFactory& make_node,
                                                 const TraceConfig& traces = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  uint32_t nodes() const;
  uint32_t ports() const;  // of each node
  uint32_t planes() const;
  const Scenario& scenario() const;

  static uint64_t mac(uint32_t node, uint32_t port);  // 48 bits, first byte on the wire = most significant
  static uint32_t ip(uint32_t node, uint32_t port);   // first byte on the wire = most significant

  // Host side of a Verilated node (they abort for a node without host side: has_host()).
  bool has_host(uint32_t node) const;
  Hal& hal(uint32_t node);
  Memory& memory(uint32_t node);  // base(), size(), data(addr): direct access, for filling and comparing
  Endpoint& node(uint32_t node);

  Ps now_ps() const;
  RunResult run_until(const std::function<bool()>& done, Ps limit_ps);  // limit counts from now
  RunResult run_for(Ps duration_ps);                                    // no watchdog: silence is legal here
  // Runs until nodes are idle and no frame is in flight (late acks, last probes).
  RunResult settle(Ps limit_ps);

  // Loss, reordering, duplication and corruption from now on, for frames that reach their last queue later.
  // The other faults stay as the scenario has them.
  void set_fault_rates(const FaultConfig& faults);

  // Puts a frame of any content at a node's port, as if its link had delivered it now; for tests of malformed
  // frames.
  void inject(uint32_t node, uint32_t port, const void* bytes, size_t count, bool mac_error = false);

  TrafficCounts traffic() const;
  FabricCounts fabric() const;
  uint64_t cycles(uint32_t node) const;  // clock cycles the node has run
  nlohmann::json stats() const;          // everything above, links, switches, planes, memories, MACs

  // Error of the first failure (RunEnd::kFailed), sticky.
  const Status& status() const;
  // Whether a capture or the timeline could not be written: the user's disk is at fault, not a node.
  bool trace_failed() const;

  // Closes the trace files and checks what must hold in every run: frames in = out + counted drops, no
  // protocol error on any AXI port, no MAC underrun, no payload written twice (written bytes <= unique
  // bytes). Call it once, after settle() or after a failure (the traces show it). Trace files of a Cluster
  // that is destroyed without it are removed, and so are all captures and the timeline when one of them could
  // not be written.
  Status finish();

 private:
  explicit Cluster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::tb
