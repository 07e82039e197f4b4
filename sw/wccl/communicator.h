// SPDX-License-Identifier: Apache-2.0
// One rank's end of a communicator: connections to every other rank, and collectives as persistent plans.
//
// What ranks must tell each other (RankInfo once, PlanInfo for every plan) travels out of band, by any means
// the caller has; nothing of it is needed while a plan runs. A plan is prepared once and may be started any
// number of times: each start is one doorbell, and the host waits for one completion.
//
// A device serves one communicator: it takes the completion ring, the first subgraphs and semaphores, and the
// connections numbered like the ranks. To make another, open the device anew.
//
// clang-format off
//   comm.connect(all_infos);                       // infos gathered from all ranks
//   auto info = comm.describe(op, send, recv);     // gather these too
//   auto plan = comm.prepare(op, all_plan_infos);  // calls that do not match are refused, both sides named
//   while (comm.state(plan.value()) == State::kPreparing) comm.progress();
//   comm.start(plan.value());                      // as often as wanted
//   while (comm.state(plan.value()) == State::kRunning) comm.progress();
// clang-format on
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sw/wccl/plan.h"
#include "sw/weft/device.h"

namespace wccl {

struct CommConfig {
  std::uint64_t arena = 0;  // node memory for rings, entries and scratch: address, multiple of 64
  std::uint64_t arena_bytes = 0;
  std::uint64_t scratch_bytes = 0;  // of it: the largest Sizes::scratch of any plan
  std::uint64_t seed = 1;           // start PSNs, the same at every rank
  int start_psn = -1;               // >= 0: every path starts there (24 bits); for tests near the wrap
  weft::ConnectionConfig connection;
};

struct RankInfo {
  int rank = 0;
  std::vector<weft::PortAddress> ports;
  std::uint16_t incarnation = 0;
  std::vector<std::vector<std::uint32_t>> psn;  // [peer][port]: first PSN this rank sends to that peer
  std::uint64_t scratch = 0;
  std::uint32_t scratch_key = 0;
};

struct PlanInfo {
  Op op;
  int rank = 0;
  RankMemory memory;
};

// Buffer of the caller in node memory: address and bytes.
struct Buffer {
  std::uint64_t addr = 0;
  std::uint64_t bytes = 0;
};

// Of a plan. All changes but those of prepare(), start() and release() happen in progress().
enum class State {
  kPreparing,  // the node validates it
  kReady,      // may be started; its last run, if any, was a success
  kRunning,
  kFailed,  // refused by the node, or its last run failed or was aborted: failure() tells why; never starts
            // again
  kGone     // released, or no plan ever had this number
};

// Paths of each connection at a port when ConnectionConfig leaves the choice (0), of `most` that the node
// has. A path shows a loss with its next packet, so a rank with many peers gives each fewer: about 16 in all,
// two at least.
unsigned paths_for(int ranks, unsigned most);

class Communicator {
 public:
  // The device must have its ports and transport set up, and no communicator yet; `ports` are this node's
  // addresses. Its firmware must run before the first prepare().
  static weft::Result<Communicator> create(weft::Device& device, int rank, int ranks,
                                           std::vector<weft::PortAddress> ports, const CommConfig& config);

  const RankInfo& info() const { return info_; }
  weft::Status connect(std::span<const RankInfo> all);

  // Registers the buffers of `op` for this rank, until prepare() takes them over or refuses, or the next
  // describe(). For an in-place operation pass the one buffer as both.
  weft::Result<PlanInfo> describe(const Op& op, const Buffer& send, const Buffer& recv);
  // Compiles the plan, writes its entries and has the node validate them; ends in kReady or kFailed.
  weft::Result<int> prepare(const Op& op, std::span<const PlanInfo> all);
  weft::Status start(int plan);
  weft::Status abort(int plan);
  // Frees what the plan holds; it must not be running. Nothing to do for a plan that is gone.
  void release(int plan);

  // Takes completions in.
  void progress();
  State state(int plan) const { return look(plan).state; }
  // Why a plan is kFailed: operation, entry, peer and reason. Empty otherwise.
  const std::string& failure(int plan) const { return look(plan).failure; }
  // Node clock, in cycles, when the plan's last run completed; 0 before the first.
  std::uint64_t completed_cycles(int plan) const { return look(plan).completed_cycles; }
  std::size_t entries(int plan) const { return look(plan).count; }

 private:
  struct Plan {
    Op op;
    State state = State::kGone;
    std::string failure;
    std::uint64_t completed_cycles = 0;
    std::uint64_t entries_addr = 0;
    std::size_t room = 0;   // entries that fit there
    std::size_t count = 0;  // entries
    std::vector<weft::Region> regions;
    std::vector<weft::wire::Wqe> wqes;  // kept for messages
  };

  // The plan of this number; one that is gone if there is none.
  const Plan& look(int plan) const;

  Communicator(weft::Device& device, int rank, int ranks) : device_(&device), rank_(rank), ranks_(ranks) {}
  weft::Result<std::uint64_t> take(std::uint64_t bytes, const char* what);
  weft::Result<int> add_plan(const Op& op, std::span<const PlanInfo> all);
  void remove(std::vector<weft::Region>& regions);
  void explain(Plan& plan, const weft::wire::Cqe& cqe);

  weft::Device* device_;
  int rank_, ranks_;
  CommConfig config_;
  RankInfo info_;
  weft::Region scratch_;
  std::vector<RankInfo> all_;
  std::uint64_t arena_next_ = 0, arena_end_ = 0;
  std::vector<weft::Region> described_;  // regions of an operation that is described, not yet prepared
  std::vector<Plan> plans_;
};

}  // namespace wccl
