// SPDX-License-Identifier: Apache-2.0
// A scenario file as `weft sim` reads it: the cluster (tb/scenario.h) and, in sections of its own, how the
// nodes are set up: [transport] and [run], whose keys docs/simulation.md lists (printed by sim_key_table()).
#pragma once

#include <string>

#include "tb/app/runner.h"
#include "tb/scenario.h"

namespace weft::tb {

struct SimConfig {
  Scenario scenario;
  TransportConfig transport;
  ConnectionConfig connection;
  int start_psn = -1;
  Inputs inputs = Inputs::kExact;
  double limit_us = 100'000;
  bool memory_given = false;  // memory.size_mib stands in the file: else the workload decides
};

Result<SimConfig> load_sim_config(const std::string& path);

// As scenario_key_table(), of the sections of its own.
std::string sim_key_table();

}  // namespace weft::tb
