// SPDX-License-Identifier: Apache-2.0
// Reads PyTorch execution traces (Chakra's host form: one JSON file a rank, nodes named record_param_comms)
// and keeps what they say of collectives: kind, type, counts. Names, tensors and times of the model are left
// behind.
#pragma once

#include <string>
#include <vector>

#include "sw/wccl/plan.h"
#include "sw/weft/result.h"

namespace weft::tools {

struct ImportedOp {
  wccl::Op op;
  std::string comment;  // what was changed or left out
};

struct Imported {
  int ranks = 0;
  std::vector<ImportedOp> ops;
  std::size_t waits = 0;              // nodes that move nothing
  std::vector<std::string> left_out;  // collectives that no workload can hold, with the reason
};

// One file a rank, in rank order. All must hold the same sequence of collectives, and the counts of an
// alltoallv must agree between sender and receiver. Errors name the file.
Result<Imported> import_pytorch(const std::vector<std::string>& files);

// The workload as TOML; `name` and `source` go to its head.
std::string to_toml(const Imported& trace, const std::string& name, const std::string& source);

}  // namespace weft::tools
