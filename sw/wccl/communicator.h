// SPDX-License-Identifier: Apache-2.0
// One rank's end of a communicator: connections to every other rank, and collectives as persistent plans.
//
// What ranks must tell each other (RankInfo once, PlanInfo for every plan) travels out of band, by any means
// the caller has; nothing of it is needed while a plan runs. A plan is prepared once and may be started any
// number of times. Starts run one after another, in the order of the calls, without the host in between: each
// is one doorbell, and the host waits for one completion. All ranks must start the same plans in the same
// order; where they do not, no start ends, and all ranks name the two that differ.
//
// Nobody waits for ever: whatever ends badly at one rank ends at all, with the reason of the first. Then the
// communicator refuses starts until it is repaired (repair(), exchange, connect()), which keeps its plans.
//
// A device serves one communicator: it takes the completion ring, the subgraphs and first semaphores, and the
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
#include <deque>
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
  std::uint64_t seed = 1;           // start PSNs and incarnations, the same at every rank
  int start_psn = -1;               // >= 0: every path starts there (24 bits); for tests near the wrap
  // An operation that has not ended after so long is given up, at all ranks; 0: never.
  double watchdog_us = 10e6;
  // So often a rank whose operation does not end tells the others what it runs. It is how a start in another
  // order is named, and how a rank that only waits finds out that a peer is dead; 0: never.
  double tell_us = 1000;
  weft::ConnectionConfig connection;
};

inline constexpr std::uint32_t kIncarnations = 0xffff;  // 1 to this

struct RankInfo {
  int rank = 0;
  int ranks = 0;  // of the communicator
  std::vector<weft::PortAddress> ports;
  // Below kIncarnations, another one for each life; the incarnation of a connection is made of both ends'.
  std::uint16_t life = 0;
  std::vector<std::vector<std::uint32_t>> psn;  // [peer][port]: first PSN this rank sends to that peer
  std::uint64_t scratch = 0;
  std::uint32_t scratch_key = 0;  // of the notices too
  std::uint64_t notices = 0;      // where peer p writes what it has to tell, 256 bytes for each
};

struct PlanInfo {
  Op op;
  int rank = 0;
  std::uint64_t number = 0;  // the largest of all ranks' becomes the plan's
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
  kRunning,    // started, perhaps behind others
  kFailed,  // refused by the node, or its last run failed or was aborted: failure() tells why. One that the
            // node had accepted is kReady again when the communicator is repaired.
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
  // Begins a life of the communicator. All ranks must be connected before any starts a plan.
  weft::Status connect(std::span<const RankInfo> all);

  // One region for all plans whose buffers lie in it; else each pair of buffers takes regions of its own, of
  // which a node has few. Peers may write all of it for as long as the communicator lives.
  weft::Status add_memory(const Buffer& memory);
  // Registers the buffers of `op` for this rank, until prepare() takes them over or refuses, or the next
  // describe(). For an in-place operation pass the one buffer as both.
  weft::Result<PlanInfo> describe(const Op& op, const Buffer& send, const Buffer& recv);
  // Compiles the plan, writes its entries and has the node validate them; ends in kReady or kFailed. `all`
  // has the infos of all ranks, by rank; this rank's is what describe() answered last.
  weft::Result<int> prepare(const Op& op, std::span<const PlanInfo> all);
  // Runs the plan behind all that was started before.
  weft::Status start(int plan);
  // Gives up a plan that runs; with it the communicator fails, at all ranks.
  weft::Status abort(int plan);
  // Frees what the plan holds, once the node has done with it: one that runs is aborted, with what that means
  // for the communicator. Nothing to do for a plan that is gone.
  void release(int plan);

  // Takes completions and notices in, and gives up what takes too long.
  void progress();
  State state(int plan) const { return look(plan).state; }
  // Why a plan is kFailed: operation, entry, peer and reason. Empty otherwise.
  const std::string& failure(int plan) const { return look(plan).failure; }
  // Node clock, in cycles, when the plan's last run completed; 0 before the first.
  std::uint64_t completed_cycles(int plan) const { return look(plan).completed_cycles; }
  std::size_t entries(int plan) const { return look(plan).count; }

  // Why the communicator refuses starts; empty while it does not.
  const std::string& failed() const { return failed_; }
  // Once nothing runs any more, as after a failure: a new life, whose info must be exchanged like the first,
  // for a connect() at every rank. Plans stay prepared, save with a rank that has begun anew.
  weft::Result<RankInfo> repair();

 private:
  static constexpr int kNone = -1;
  struct Plan {
    Op op;
    State state = State::kGone;
    bool released = false;  // gone for the caller, the node is not done with it
    bool accepted = false;  // by the node
    std::string failure;
    std::uint64_t completed_cycles = 0;
    std::uint32_t number = 0;
    std::uint32_t generation = 0;  // of this place in plans_: old cookies do not fit
    std::uint64_t entries_addr = 0;
    std::size_t room = 0;               // entries that fit there
    std::size_t count = 0;              // entries
    int slot = kNone;                   // subgraph that has it, or is getting it
    bool loading = false;               // a REGISTER is under way
    bool wanted = false;                // waits for a subgraph, to be validated
    std::uint64_t used = 0;             // when it was started last, in starts
    std::vector<unsigned> regions;      // places in regions_
    std::vector<weft::wire::Wqe> wqes;  // kept for messages
  };
  struct Start {
    int plan;
    std::uint64_t number;   // of the starts since connect()
    bool posted = false;    // its doorbell was rung
    bool aborting = false;  // to be aborted; the doorbell of that ...
    bool aborted = false;   // ... was rung
  };
  struct Shared {  // a region, for one plan or many
    weft::Region region;
    unsigned users = 0;
    bool stays = false;  // add_memory()
  };
  struct Peer {
    std::uint32_t seen = 0;  // serial of its last notice
    weft::wire::Notice notice;
    bool loaded = false;      // the subgraph that tells it something is registered
    bool busy = false;        // ... or has a doorbell outstanding
    bool tell_again = false;  // something new was to be told meanwhile
  };

  // The plan of this number; one that is gone if there is none.
  const Plan& look(int plan) const;

  Communicator(weft::Device& device, int rank, int ranks) : device_(&device), rank_(rank), ranks_(ranks) {}
  weft::Result<std::uint64_t> take(std::uint64_t bytes, const char* what);
  void new_life(std::uint64_t life);
  weft::Result<int> add_plan(const Op& op, std::span<const PlanInfo> all);
  weft::Status differ(const Op& op, std::span<const PlanInfo> all) const;
  weft::Result<unsigned> use_region(std::uint64_t addr, std::uint64_t bytes, const weft::Rights& rights);
  void drop(std::vector<unsigned>& regions);
  void free(Plan& plan);

  std::uint64_t cookie(int plan) const;
  Plan* of_cookie(std::uint64_t cookie);
  bool is_started(int plan) const;
  bool load(int plan);
  int free_slot();
  void pump();
  void take_in(const weft::wire::Cqe& e);
  void ended(int plan, const weft::wire::Cqe& e);
  std::string explain(const Plan& plan, const weft::wire::Cqe& e) const;
  std::string entry_text(const weft::wire::Wqe& w) const;
  std::string status_text(weft::wire::Err status) const;
  std::string text(const Plan& plan) const;

  void fail(const std::string& why);
  void tell(weft::wire::NoticeState state, const std::string& text);
  void tell_peer(int peer);
  void read_notices();
  void compare();
  void watch();

  weft::Device* device_;
  int rank_, ranks_;
  CommConfig config_;
  RankInfo info_;
  std::uint64_t life_ = 0;
  weft::Region scratch_;
  std::vector<RankInfo> all_;
  bool connected_ = false;
  std::uint64_t arena_next_ = 0, arena_end_ = 0;
  std::vector<Shared> regions_;
  std::vector<unsigned> described_;  // regions of an operation that is described, not yet prepared
  PlanInfo described_info_;
  bool is_described_ = false;
  std::uint64_t next_number_ = 1;  // of plans
  std::vector<Plan> plans_;
  std::vector<int> slots_;  // of each subgraph the plan that it has, or kNone

  std::uint64_t starts_ever_ = 0;  // since connect()
  std::deque<Start> starts_;       // that have not ended, in order
  std::uint64_t since_ns_ = 0;     // since when the first of them is the first
  std::uint64_t told_ns_ = 0;      // when the others were told last
  bool timed_out_ = false;         // the first one was aborted by the watchdog
  bool dead_ = false;              // the node does not answer

  std::string failed_;
  std::vector<Peer> peers_;
  std::uint64_t outbox_ = 0, outbox_entries_ = 0;
  std::uint32_t serial_ = 0;
};

}  // namespace wccl
