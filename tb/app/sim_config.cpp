// SPDX-License-Identifier: Apache-2.0
#include "tb/app/sim_config.h"

#include "tb/sim/toml_file.h"

namespace weft::tb {

Result<SimConfig> load_sim_config(const std::string& path) {
  SimConfig c;
  auto scenario = load_scenario(path, {"transport", "run"});
  if (!scenario.ok()) return Status::error(scenario.error());
  c.scenario = scenario.take();

  auto file = TomlFile::read(path);
  if (!file.ok()) return Status::error(file.error());
  TomlTable root = file.value().root();
  TomlTable t = root.table("transport");
  t.integer("mtu", c.transport.mtu, 256U, 4096U, "256, 512, 1024, 2048 or 4096");
  if ((c.transport.mtu & (c.transport.mtu - 1)) != 0) t.error("mtu", "256, 512, 1024, 2048 or 4096");
  t.integer("retry_limit", c.transport.retry_limit, 1U, 255U);
  t.number("probe_min_us", c.transport.probe_min_us, 0.1, 1000);
  t.number("rtt_init_us", c.transport.rtt_init_us, 0.1, 10'000);
  t.number("ack_hold_us", c.transport.ack_hold_us, 0, 1000);
  t.integer("paths_per_port", c.connection.paths_per_port, 1U, 8U);
  t.number("share", c.connection.share, 0.001, 1);
  double cap_kib = c.connection.init_cap_bytes / 1024;
  t.number("init_cap_kib", cap_kib, 1, 8192);
  c.connection.init_cap_bytes = cap_kib * 1024;
  t.integer("start_psn", c.start_psn, 0, 0xffffff);
  TomlTable run = root.table("run");
  std::string inputs = "exact";
  run.text("inputs", inputs);
  if (inputs != "exact" && inputs != "random") run.error("inputs", "exact or random");
  c.inputs = inputs == "random" ? Inputs::kRandom : Inputs::kExact;
  run.number("limit_us", c.limit_us, 1, 1e9);
  // The rest of the file was read, and checked, by load_scenario.
  for (const char* key : {"name", "workload", "cluster", "fabric", "faults", "memory"}) root.skip(key);
  if (Status s = file.value().done(); !s.ok()) return s;
  return c;
}

}  // namespace weft::tb
