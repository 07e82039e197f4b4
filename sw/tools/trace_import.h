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
  std::int64_t told_ranks = 0;        // ranks that the traces say there were; 0: they do not say
  std::vector<std::string> left_out;  // collectives that no workload can hold, with the reason
};

// One file a rank, sorted by the rank that each names; in the order given if none does. Of the collectives of
// all ranks each must hold the same sequence, and the counts of an alltoallv must agree between sender and
// receiver. What is of some ranks only (groups, sends) is left out. Errors name file, node and field.
Result<Imported> import_pytorch(const std::vector<std::string>& files);

// The workload as TOML; `name` and `source` go to its head.
std::string to_toml(const Imported& trace, const std::string& name, const std::string& source);

}  // namespace weft::tools
