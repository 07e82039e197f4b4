// SPDX-License-Identifier: Apache-2.0
#include "tb/app/sim_config.h"

#include <bit>

#include "tb/sim/toml_keys.h"

namespace weft::tb {
namespace {

// The sections as they are written.
struct Keys {
  explicit Keys(const SimConfig& c)
      : mtu(c.transport.mtu),
        retry_limit(c.transport.retry_limit),
        paths_per_port(c.connection.paths_per_port),
        probe_min_us(c.transport.probe_min_us),
        rtt_init_us(c.transport.rtt_init_us),
        ack_hold_us(c.transport.ack_hold_us),
        share(c.connection.share),
        init_cap_kib(c.connection.init_cap_bytes / 1024),
        limit_us(c.limit_us),
        start_psn(c.start_psn),
        inputs(c.inputs == Inputs::kRandom ? "random" : "exact") {}
  void store(SimConfig& c) const {
    c.transport.mtu = mtu;
    c.transport.retry_limit = retry_limit;
    c.transport.probe_min_us = probe_min_us;
    c.transport.rtt_init_us = rtt_init_us;
    c.transport.ack_hold_us = ack_hold_us;
    c.connection.paths_per_port = paths_per_port;
    c.connection.share = share;
    c.connection.init_cap_bytes = init_cap_kib * 1024;
    c.start_psn = start_psn;
    c.inputs = inputs == "random" ? Inputs::kRandom : Inputs::kExact;
    c.limit_us = limit_us;
  }

  unsigned mtu, retry_limit, paths_per_port;
  double probe_min_us, rtt_init_us, ack_hold_us, share, init_cap_kib, limit_us;
  int start_psn;
  std::string inputs;
};

template <class K, class Visitor>
void visit_keys(K& k, Visitor&& v) {
  v("transport", "mtu", k.mtu, 256, 4096, "payload bytes of a full packet: 256, 512, 1024, 2048 or 4096");
  v("transport", "retry_limit", k.retry_limit, 1, 255,
    "unanswered probes of one path that fail its connection");
  v("transport", "probe_min_us", k.probe_min_us, 0.1, 1000, "shortest wait between probes");
  v("transport", "rtt_init_us", k.rtt_init_us, 0.1, 10'000, "round trip assumed before the first sample");
  v("transport", "ack_hold_us", k.ack_hold_us, 0, 1000,
    "an ack that nothing hurries may wait so long to coalesce");
  v("transport", "paths_per_port", k.paths_per_port, 0, 8,
    "paths of a connection on each port; 0: by the number of peers (docs/collectives.md)");
  v("transport", "share", k.share, 0.001, 1, "of a port's line rate, for a connection");
  v("transport", "init_cap_kib", k.init_cap_kib, 1, 8192, "in flight on a port before its first ack");
  v("transport", "start_psn", k.start_psn, -1, 0xffffff,
    "first packet number of every path; -1: drawn from the seed");
  v("run", "inputs", k.inputs, 0, 0, "exact or random, see workloads.md");
  v("run", "limit_us", k.limit_us, 1, 1e9, "model time an operation may take");
}

}  // namespace

Result<SimConfig> load_sim_config(const std::string& path) {
  SimConfig c;
  auto scenario = load_scenario(path, {"transport", "run"});
  if (!scenario.ok()) return Status::error(scenario.error());
  c.scenario = scenario.take();

  auto file = TomlFile::read(path);
  if (!file.ok()) return Status::error(file.error());
  TomlTable root = file.value().root();
  Keys keys(c);
  visit_keys(keys, ReadTomlKeys{file.value()});
  keys.store(c);
  TomlTable transport = root.table("transport"), run = root.table("run");
  if (std::popcount(keys.mtu) != 1) transport.error("mtu", "256, 512, 1024, 2048 or 4096");
  if (keys.inputs != "exact" && keys.inputs != "random") run.error("inputs", "exact or random");
  c.memory_given = root.table("memory").has("size_mib");
  // The rest of the file was read, and checked, by load_scenario.
  for (const char* key : {"name", "workload", "cluster", "fabric", "faults", "memory"}) root.skip(key);
  if (Status s = file.value().done(); !s.ok()) return s;
  return c;
}

std::string sim_key_table() {
  PrintTomlKeys print;
  const Keys defaults{SimConfig{}};
  visit_keys(defaults, print);
  return print.out;
}

}  // namespace weft::tb
