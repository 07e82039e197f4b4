// SPDX-License-Identifier: Apache-2.0
// A workload: collectives that a set of ranks runs one after the other. Read from TOML; see
// docs/workloads.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sw/wccl/plan.h"
#include "sw/weft/result.h"

namespace weft::tb {

struct WorkloadOp {
  wccl::Op op;
  unsigned repeat = 1;
  double gap_us = 0;  // compute time before the operation
};

struct Workload {
  std::string file;
  std::string name;
  int ranks = 0;
  std::vector<WorkloadOp> ops;
};

// One line on error: "file: key = value: what was expected".
Result<Workload> load_workload(const std::string& path);

}  // namespace weft::tb
