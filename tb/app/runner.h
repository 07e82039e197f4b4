// SPDX-License-Identifier: Apache-2.0
// Runs a workload on a cluster through driver and collective library, as an application would, and checks
// every byte.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sw/wccl/communicator.h"
#include "sw/weft/device.h"
#include "tb/app/workload.h"
#include "tb/cluster.h"

namespace weft::tb {

enum class Inputs {
  kExact,  // small whole numbers: sums are exact in the type, so any order must give them
  kRandom  // any values; expected bits follow the plan's order of summation
};

struct RunnerConfig {
  Inputs inputs = Inputs::kExact;
  weft::TransportConfig transport;
  weft::ConnectionConfig connection;
  int start_psn = -1;
  uint64_t seed = 1;
  double limit_us = 100'000;  // model time an operation may take
  // Of the communicators (CommConfig). A rank tells the others later than the cluster calls silence a hang.
  double watchdog_us = 10e6, tell_us = 5000;
  std::vector<uint8_t> firmware;
  // Called before each run of an operation, repeats too: a test may change the weather there.
  std::function<void(size_t op, unsigned repeat)> before_run;
  // For the checker's own test: flips so many bytes of results, or of what lies around them, before the
  // check.
  unsigned corrupt_result = 0, corrupt_outside = 0;
};

struct OpReport {
  wccl::Op op;
  uint64_t bytes = 0;     // size as nccl-tests counts it
  double time_ns = 0;     // of one repeat, mean
  double algbw_gbps = 0;  // gigabytes a second
  double busbw_gbps = 0;
  double line_pct = 0;    // busbw of the line rate of all ports of a node
  TrafficCounts traffic;  // of all repeats
  uint64_t wrong = 0;     // bytes of results or of anything else that are not what they must be
  std::string failure;    // the collective failed: why
  bool finished = false;  // every repeat came to its end; else there are no times
};

class Runner {
 public:
  // Memory that a node needs for a workload, MiB.
  static uint64_t memory_mib(const Workload& workload);

  Runner(Cluster& cluster, const Workload& workload, RunnerConfig config);
  ~Runner();

  // Opens all devices, loads firmware, connects all ranks.
  Status setup();
  // Runs operation `index`; the report is complete even when the collective fails. An error is a broken
  // simulation.
  Result<OpReport> run(size_t index);
  // For an application other than a workload: a rank's end of the communicator, its driver, and memory that
  // nobody else uses: as much as the largest buffers of the workload take.
  wccl::Communicator& communicator(int rank);
  Device& device(int rank);
  uint64_t heap(int rank) const;
  // Lets the cluster come to rest.
  Status settle();
  // The same, and checks what must hold at the end of every run.
  Status finish();
  // Of every node, a line each, when what was waited for did not come; empty: it always came.
  const std::string& state() const { return state_; }
  // All counters of a node: "me.launch", "port0.tx.frames", ... None when the node does not answer.
  std::vector<std::pair<std::string, uint64_t>> counters(uint32_t node);

 private:
  struct Layout;
  struct Rank;
  Layout lay_out(const wccl::Op& op, int rank) const;
  void fill(const wccl::Op& op, size_t index, unsigned repeat);
  uint64_t check(const wccl::Op& op, std::string& first);
  Status wait(const std::function<bool()>& done, const char* what);
  Status broken(const RunResult& r, const char* what);

  Cluster& cluster_;
  const Workload& workload_;
  RunnerConfig config_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::string state_;
};

}  // namespace weft::tb
