// SPDX-License-Identifier: Apache-2.0
// One run: a setting, a body, a seed; and what it showed. Runs share nothing, so many may go at once; one run
// may also take several threads, and be divided over ranks. Neither changes a figure but times.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "tb/eval/eval_config.h"
#include "tb/sim/ranks.h"

namespace weft::eval {

using Metrics = std::vector<std::pair<std::string, double>>;

struct RunResult {
  bool ran = false;  // to its end: nobody stopped it
  tb::Status status;
  Metrics metrics;                                  // the same for the same seed
  std::vector<double> completion_us;                // of each flow that completed, in the order of the flows
  std::vector<std::vector<double>> gbps_over_time;  // [flow][window], payload placed, when windows are wanted
  double cpu_s = 0;                                 // of all its threads on all ranks
  double real_s = 0;                                // by the clock on the wall
};

/// What a run runs on.
struct Machine {
  unsigned threads = 1;                     // of each rank
  tb::Ranks* ranks = nullptr;               // all of them run it alike, and all get the result
  const std::atomic<bool>* stop = nullptr;  // true: runs under way end, and no other begins; not with ranks
};

/// What one seed gives, whatever else the machine does.
RunResult run_one(const Setting& setting, BodyKind body, uint64_t seed, const Machine& machine = {});

/// Jain's index of fairness: 1 when all are equal, 1/n when one has everything. 0 when nobody has anything.
double jain(const std::vector<double>& values);

/// Value of a metric; none: NaN.
double value_of(const Metrics& metrics, const std::string& name);

}  // namespace weft::eval
