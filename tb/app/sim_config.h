// SPDX-License-Identifier: Apache-2.0
// A scenario file as `weft sim` reads it: the cluster (tb/scenario.h) and, in sections of its own, how the
// nodes are set up.
//
//   [transport]   # per node; times in microseconds
//   mtu = 4096  retry_limit = 24  probe_min_us = 2  rtt_init_us = 5  ack_hold_us = 0.5
//   paths_per_port = 8  share = 1.0  init_cap_kib = 64  start_psn = 0xffff00
//   [run]
//   inputs = "exact"   # or "random"
//   limit_us = 100000  # model time an operation may take
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
};

Result<SimConfig> load_sim_config(const std::string& path);

}  // namespace weft::tb
