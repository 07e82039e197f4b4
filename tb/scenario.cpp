// SPDX-License-Identifier: Apache-2.0
#include "tb/scenario.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "tb/sim/toml_keys.h"

namespace weft::tb {
namespace {

constexpr double kMaxUs = 60e6;  // no scenario runs for more than a minute of model time

// The one list of keys: section, name, where it is, range, meaning. Visitors read TOML, set flags and print
// the table.
template <class S, class Visitor>
void visit_keys(S& s, Visitor&& v) {
  auto& f = s.fabric;
  auto& x = s.faults;
  auto& m = s.memory;
  v("", "name", s.name, 0, 0, "shown in reports");
  v("", "workload", s.workload, 0, 0, "workload file, relative to the scenario's folder");
  v("cluster", "nodes", s.nodes, 1, 4096, "number of nodes");
  v("cluster", "planes", s.planes, 1, 16, "planes of the fabric; port p of a node is in plane p mod planes");
  v("cluster", "seed", s.seed, 0, 9e18, "seed of everything random");
  v("cluster", "threads", s.threads, 0, 256, "threads of the simulator; 0: one per core");
  v("cluster", "skip_rest", s.skip_rest, 0, 1,
    "count the cycles of a node at rest instead of simulating them");
  v("cluster", "watchdog_us", s.watchdog_us, 1, kMaxUs, "silence that counts as a hang, us of model time");
  v("fabric", "hosts_per_leaf", f.hosts_per_leaf, 1, 4096, "nodes behind one leaf switch");
  v("fabric", "spines", f.spines, 1, 256, "spine switches per plane (unused when one leaf is enough)");
  v("fabric", "rate_gbps", f.rate_gbps, 1, 1600, "rate of host links and MACs");
  v("fabric", "uplink_rate_gbps", f.uplink_rate_gbps, 1, 12800, "rate of leaf-spine links");
  v("fabric", "link_latency_ns", f.link_latency_ns, 1, 1e6, "of every link; also the step of the simulation");
  v("fabric", "cut_through", f.cut_through, 0, 1, "switches pass a frame on while it arrives");
  v("fabric", "switch_latency_ns", f.switch_latency_ns, 0, 1e6,
    "from last bit in (cut-through: first bit in) to output queue");
  v("fabric", "queue_bytes", f.queue_bytes, 2048, 1e9, "limit of each output queue");
  v("fabric", "ecn_kmin_bytes", f.ecn_kmin_bytes, 0, 1e9, "queue at which marking begins");
  v("fabric", "ecn_kmax_bytes", f.ecn_kmax_bytes, 0, 1e9, "queue from which everything is marked");
  v("fabric", "ecn_pmax", f.ecn_pmax, 0, 1, "marking probability just below ecn_kmax_bytes");
  v("faults", "loss", x.loss, 0, 1, "probability that a frame is lost at the receiving host port, acks too");
  v("faults", "jitter_ns", x.jitter_ns, 0, 1e7,
    "random extra delay in [0, jitter], order inside a path kept");
  v("faults", "reorder", x.reorder, 0, 1, "probability of reorder_delay_ns extra, order not kept");
  v("faults", "reorder_delay_ns", x.reorder_delay_ns, 0, 1e7, "extra delay of a reordered frame");
  v("faults", "duplicate", x.duplicate, 0, 1, "probability that a copy of a frame follows");
  v("faults", "corrupt", x.corrupt, 0, 1, "probability that 1 to 3 bits of a frame flip");
  v("memory", "size_mib", m.size_mib, 1, 65536, "memory of a node");
  v("memory", "latency_min_cycles", m.latency_min_cycles, 1, 10000, "shortest answer, clock cycles");
  v("memory", "latency_max_cycles", m.latency_max_cycles, 1, 10000, "longest answer, clock cycles");
  v("memory", "bandwidth_bytes_per_cycle", m.bandwidth_bytes_per_cycle, 64, 65536,
    "shared by all masters of a node");
  v("memory", "stall", m.stall, 0, 0.95, "probability that a channel that could move a beat does not");
}

struct SetOne {
  const std::string& wanted;
  const std::string& text;
  const std::string& flag;
  bool found = false;
  Status status;

  void refuse(const std::string& what) {
    status = Status::error(fmt::format("{} = {}: expected {}", flag, text, what));
  }
  bool mine(const char* section, const char* key) {
    if (toml_key_name(section, key) != wanted) return false;
    return found = true;
  }
  void operator()(const char* section, const char* key, std::string& value, double, double, const char*) {
    if (mine(section, key)) value = text;
  }
  void operator()(const char* section, const char* key, double& value, double low, double high, const char*) {
    if (!mine(section, key)) return;
    char* end = nullptr;
    const double got = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(got >= low && got <= high))
      return refuse(toml_range("a number", low, high));
    value = got;
  }
  void operator()(const char* section, const char* key, bool& value, double, double, const char*) {
    if (!mine(section, key)) return;
    if (text != "true" && text != "false") return refuse("true or false");
    value = text == "true";
  }
  template <class T>
  requires std::is_integral_v<T>
  void operator()(const char* section, const char* key, T& value, double low, double high, const char*) {
    if (!mine(section, key)) return;
    T got = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), got);
    if (error != std::errc{} || end != text.data() + text.size() || static_cast<double>(got) < low ||
        static_cast<double>(got) > high) {
      return refuse(toml_range("an integer", low, high));
    }
    value = got;
  }
};

Ps us_to_ps(double us) {
  return static_cast<Ps>(std::llround(us * 1e6));
}

void read_times(TomlTable& t, DownFault& d) {
  double us = 0;
  if (t.number("from_us", us, 0, kMaxUs)) d.from_ps = us_to_ps(us);
  if (t.number("to_us", us, 0, kMaxUs)) d.to_ps = us_to_ps(us);
  if (d.to_ps <= d.from_ps) t.error("to_us", "a time after from_us");
}

void read_down(TomlTable t, DownFault& d) {
  t.integer("plane", d.plane, 0, 15);
  t.integer("leaf", d.leaf, 0, 4095);
  t.integer("spine", d.spine, 0, 255);
  t.integer("node", d.node, 0, 4095);
  t.integer("port", d.port, 0, 255);
  read_times(t, d);
  const bool plane = d.plane >= 0 && d.leaf < 0 && d.spine < 0 && d.node < 0 && d.port < 0;
  const bool link = d.plane >= 0 && d.leaf >= 0 && d.spine >= 0 && d.node < 0 && d.port < 0;
  const bool host = d.node >= 0 && d.port >= 0 && d.plane < 0 && d.leaf < 0 && d.spine < 0;
  if (!plane && !link && !host) {
    t.error("plane", "one of: plane; plane, leaf and spine; node and port");
  }
}

// Of a fault in a list, what has no sensible default must stand there: else it would strike somewhere else.
void require(TomlTable& t, std::initializer_list<std::pair<const char*, const char*>> keys) {
  for (const auto& [key, what] : keys)
    if (!t.has(key)) t.error(key, what);
}

void read_drop(TomlTable t, DropFault& d) {
  require(t, {{"node", "the node that does not get the frame"},
              {"port", "a port of the node"},
              {"n", "the number of a frame, from 0"}});
  t.integer("node", d.node, 0, 4095);
  t.integer("port", d.port, 0, 255);
  t.integer("n", d.n, 0, INT64_MAX, "the number of a frame, from 0");
  std::string kind = "any";
  t.text("kind", kind);
  if (kind == "any")
    d.kind = FrameKind::kAny;
  else if (kind == "data")
    d.kind = FrameKind::kData;
  else if (kind == "ack")
    d.kind = FrameKind::kAck;
  else if (kind == "probe")
    d.kind = FrameKind::kProbe;
  else
    t.error("kind", "any, data, ack or probe");
}

void read_memory_error(TomlTable t, MemoryErrorFault& e) {
  require(t,
          {{"node", "the node whose memory it is"}, {"addr", "an address"}, {"bytes", "a number of bytes"}});
  t.integer("node", e.node, 0, 4095);
  t.integer("addr", e.addr, 0, INT64_MAX, "an address");
  t.integer("bytes", e.bytes, 1, INT64_MAX, "a number of bytes");
}

Status check(const Scenario& s, bool size_is_final) {
  const std::string where = s.file.empty() ? "scenario" : s.file;
  const auto bad = [&](const std::string& key, auto value, const std::string& what) {
    return Status::error(fmt::format("{}: {} = {}: expected {}", where, key, value, what));
  };
  if (s.fabric.ecn_kmax_bytes < s.fabric.ecn_kmin_bytes) {
    return bad("fabric.ecn_kmax_bytes", s.fabric.ecn_kmax_bytes,
               fmt::format("at least ecn_kmin_bytes = {}", s.fabric.ecn_kmin_bytes));
  }
  if (s.memory.latency_max_cycles < s.memory.latency_min_cycles) {
    return bad("memory.latency_max_cycles", s.memory.latency_max_cycles,
               fmt::format("at least latency_min_cycles = {}", s.memory.latency_min_cycles));
  }
  const uint32_t leaves = (s.nodes + s.fabric.hosts_per_leaf - 1) / s.fabric.hosts_per_leaf;
  for (size_t i = 0; i < s.faults.down.size(); ++i) {
    const DownFault& d = s.faults.down[i];
    const auto key = [&](const char* name) { return fmt::format("faults.down[{}].{}", i, name); };
    if (d.plane >= static_cast<int>(s.planes))
      return bad(key("plane"), d.plane, fmt::format("below planes = {}", s.planes));
    if (d.node >= static_cast<int>(s.nodes))
      return bad(key("node"), d.node, fmt::format("below nodes = {}", s.nodes));
    if (d.leaf >= 0 && leaves == 1)
      return bad(key("leaf"), d.leaf, "no such link: one leaf holds every node");
    if (d.leaf >= static_cast<int>(leaves))
      return bad(key("leaf"), d.leaf, fmt::format("below {}, the number of leaves", leaves));
    if (d.spine >= static_cast<int>(s.fabric.spines)) {
      return bad(key("spine"), d.spine, fmt::format("below spines = {}", s.fabric.spines));
    }
  }
  for (size_t i = 0; i < s.faults.drop.size(); ++i) {
    const DropFault& d = s.faults.drop[i];
    if (d.node >= s.nodes) {
      return bad(fmt::format("faults.drop[{}].node", i), d.node, fmt::format("below nodes = {}", s.nodes));
    }
  }
  for (size_t i = 0; i < s.memory.error.size(); ++i) {
    const MemoryErrorFault& e = s.memory.error[i];
    if (e.node >= s.nodes) {
      return bad(fmt::format("memory.error[{}].node", i), e.node, fmt::format("below nodes = {}", s.nodes));
    }
    if (!size_is_final) continue;
    const uint64_t base = memory_base(e.node), size = s.memory.size_mib << 20;
    if (e.addr < base || e.addr - base >= size)
      return bad(
          fmt::format("memory.error[{}].addr", i), fmt::format("{:#x}", e.addr),
          fmt::format("an address in the {} MiB at {:#x} of node {}", s.memory.size_mib, base, e.node));
    if (e.bytes > size - (e.addr - base))
      return bad(fmt::format("memory.error[{}].bytes", i), e.bytes,
                 fmt::format("at most the {} to the end of the memory", size - (e.addr - base)));
  }
  return {};
}

}  // namespace

Result<Scenario> load_scenario(const std::string& path, const std::vector<std::string>& own_sections) {
  Result<TomlFile> read = TomlFile::read(path);
  if (!read.ok()) return Status::error(read.error());
  TomlFile& file = read.value();
  Scenario s;
  s.file = path;
  visit_keys(s, ReadTomlKeys{file});
  TomlTable faults = file.root().table("faults");
  for (TomlTable t : faults.tables("down")) read_down(t, s.faults.down.emplace_back());
  for (TomlTable t : faults.tables("drop")) read_drop(t, s.faults.drop.emplace_back());
  for (TomlTable t : file.root().table("memory").tables("error"))
    read_memory_error(t, s.memory.error.emplace_back());
  for (const std::string& section : own_sections) file.root().skip(section.c_str());
  if (Status status = file.done(); !status.ok()) return status;
  if (Status status = check(s, false); !status.ok()) return status;
  return s;
}

Status set_key(Scenario& scenario, const std::string& key, const std::string& value,
               const std::string& flag) {
  SetOne set{key, value, flag, false, {}};
  visit_keys(scenario, set);
  if (!set.found) return Status::error(fmt::format("{} = {}: unknown key {}", flag, value, key));
  return set.status;
}

Status check_scenario(const Scenario& s) {
  return check(s, true);
}

std::string scenario_key_table() {
  PrintTomlKeys print;
  const Scenario defaults;
  visit_keys(defaults, print);
  return print.out;
}

}  // namespace weft::tb
