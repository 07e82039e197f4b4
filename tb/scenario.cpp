// SPDX-License-Identifier: Apache-2.0
#include "tb/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>
#include <type_traits>
#include <utility>

#include "tb/sim/toml_keys.h"

namespace weft::tb {

std::span<const char* const> toml_choices(Topology) {
  static constexpr const char* kNames[] = {"leaf_spine", "fat_tree"};
  return kNames;
}
std::span<const char* const> toml_choices(Spray) {
  static constexpr const char* kNames[] = {"flow", "packet"};
  return kNames;
}
std::span<const char* const> toml_choices(SlowPlace) {
  static constexpr const char* kNames[] = {"spread", "together"};
  return kNames;
}
std::span<const char* const> toml_choices(Body) {
  static constexpr const char* kNames[] = {"rtl", "ref", "mixed"};
  return kNames;
}

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
  v("cluster", "body", s.body, 0, 0, "of the nodes: Verilated, reference, or every second one reference");
  v("cluster", "seed", s.seed, 0, 9e18, "seed of everything random");
  v("cluster", "threads", s.threads, 0, 256, "threads of the simulator; 0: one per core");
  v("cluster", "skip_rest", s.skip_rest, 0, 1,
    "count the cycles of a node at rest instead of simulating them");
  v("cluster", "watchdog_us", s.watchdog_us, 1, kMaxUs, "silence that counts as a hang, us of model time");
  v("fabric", "topology", f.topology, 0, 0, "of each plane");
  v("fabric", "hosts_per_leaf", f.hosts_per_leaf, 1, 4096, "leaf_spine: nodes behind one leaf switch");
  v("fabric", "spines", f.spines, 1, 256,
    "leaf_spine: spine switches per plane (unused when one leaf is enough)");
  v("fabric", "radix", f.radix, 1, 64,
    "fat_tree: hosts and uplinks per ToR, ToRs and aggregation switches per pod, uplinks of each of those");
  v("fabric", "spray", f.spray, 0, 0,
    "what chooses the way up: the 5-tuple, or chance, anew for every frame");
  v("fabric", "rate_gbps", f.rate_gbps, 1, 1600, "rate of host links and MACs");
  v("fabric", "uplink_rate_gbps", f.uplink_rate_gbps, 1, 12800, "rate of links between switches");
  v("fabric", "link_latency_ns", f.link_latency_ns, 1, 1e6, "of every link; also the step of the simulation");
  v("fabric", "cut_through", f.cut_through, 0, 1, "switches pass a frame on while it arrives");
  v("fabric", "switch_latency_ns", f.switch_latency_ns, 0, 1e6,
    "from last bit in (cut-through: first bit in) to output queue");
  v("fabric", "queue_bytes", f.queue_bytes, 2048, 1e9, "limit of each output queue; a full frame must fit");
  v("fabric", "ecn_kmin_bytes", f.ecn_kmin_bytes, 0, 1e9, "queue at which marking begins");
  v("fabric", "ecn_kmax_bytes", f.ecn_kmax_bytes, 0, 1e9, "queue from which everything is marked");
  v("fabric", "ecn_pmax", f.ecn_pmax, 0, 1, "marking probability just below ecn_kmax_bytes");
  v("fabric", "pfc", f.pfc, 0, 1, "priority flow control: full switches stop who sends to them");
  v("fabric", "pfc_xoff_bytes", f.pfc_xoff_bytes, 2048, 1e9,
    "bytes of one input waiting in a switch that stop its sender");
  v("fabric", "pfc_xon_bytes", f.pfc_xon_bytes, 0, 1e9, "and those at which it may go on");
  v("fabric", "slow_core_links", f.slow_core_links, 0, 1e6,
    "fat_tree: so many aggregation-core links of each plane are slow");
  v("fabric", "slow_core_factor", f.slow_core_factor, 0.001, 1, "their part of uplink_rate_gbps");
  v("fabric", "slow_core_place", f.slow_core_place, 0, 0,
    "which: evenly spread over all, or those of the first aggregation switches");
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
  requires std::is_enum_v<T>
  void operator()(const char* section, const char* key, T& value, double, double, const char*) {
    if (mine(section, key) && !toml_choose(text, value)) refuse(toml_choice_list<T>());
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

// Of a fault in a list, what has no sensible default must stand there: else it would strike somewhere else.
void require(TomlTable& t, std::initializer_list<std::pair<const char*, const char*>> keys) {
  for (const auto& [key, what] : keys)
    if (!t.has(key)) t.error(key, what);
}

void read_link_name(TomlTable& t, LinkName& l) {
  t.integer("plane", l.plane, 0, 15);
  t.integer("leaf", l.leaf, 0, 4095);
  t.integer("spine", l.spine, 0, 255);
  t.integer("tor", l.tor, 0, 4095);
  t.integer("agg", l.agg, 0, 4095);
  t.integer("core", l.core, 0, 4095);
  t.integer("node", l.node, 0, 4095);
  t.integer("port", l.port, 0, 255);
  const auto given = [&](bool plane, bool leaf, bool spine, bool tor, bool agg, bool core, bool host) {
    return (l.plane >= 0) == plane && (l.leaf >= 0) == leaf && (l.spine >= 0) == spine &&
           (l.tor >= 0) == tor && (l.agg >= 0) == agg && (l.core >= 0) == core && (l.node >= 0) == host &&
           (l.port >= 0) == host;
  };
  if (!given(true, false, false, false, false, false, false) &&
      !given(true, true, true, false, false, false, false) &&
      !given(true, false, false, true, true, false, false) &&
      !given(true, false, false, false, true, true, false) &&
      !given(false, false, false, false, false, false, true)) {
    t.error("plane",
            "one of: plane; plane, leaf and spine; plane, tor and agg; plane, agg and core; node and port");
  }
}

void read_down(TomlTable t, DownFault& d) {
  read_times(t, d);
  read_link_name(t, d);
}

void read_link(TomlTable t, LinkConfig& l) {
  read_link_name(t, l);
  t.number("rate_factor", l.rate_factor, 0.001, 1);
  t.number("extra_latency_ns", l.extra_latency_ns, 0, 1e9);
}

void read_host(TomlTable t, HostConfig& h) {
  require(t, {{"node", "the first node it is about"}});
  t.integer("node", h.node, 0, 4095);
  h.last = h.node;
  t.integer("last", h.last, 0, 4095);
  t.number("rate_gbps", h.rate_gbps, 1, 1600);
  t.number("extra_latency_ns", h.extra_latency_ns, 0, 1e9);
  if (h.last < h.node) t.error("last", "a node not below node");
}

void read_pods(TomlTable t, PodDistance& d) {
  require(t, {{"a", "a pod"}, {"b", "another pod"}, {"extra_latency_ns", "a time"}});
  t.integer("a", d.a, 0, 4095);
  t.integer("b", d.b, 0, 4095);
  t.number("extra_latency_ns", d.extra_latency_ns, 0, 1e9);
  if (d.a == d.b) t.error("b", "another pod than a");
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

// What is wrong with the name of a link, as key and text; an empty key: nothing.
struct Wrong {
  std::string key, value, expected;
};

Wrong check_link(const Scenario& s, const LinkName& l) {
  const auto below = [](const char* key, int value, uint32_t limit, const char* limit_is) -> Wrong {
    if (value < static_cast<int>(limit)) return {};
    return {key, std::to_string(value), fmt::format("below {}{}", limit_is, limit)};
  };
  std::vector<Wrong> all = {below("plane", l.plane, s.planes, "planes = "),
                            below("node", l.node, s.nodes, "nodes = ")};
  const auto absent = [&](const char* key, int value, const char* why) {
    if (value >= 0) all.push_back({key, std::to_string(value), why});
  };
  if (s.fabric.topology == Topology::kLeafSpine) {
    for (const auto& [key, value] : {std::pair{"tor", l.tor}, {"agg", l.agg}, {"core", l.core}})
      absent(key, value, "nothing: a leaf_spine fabric has no such switch");
    if (leaf_count(s) == 1) absent("leaf", l.leaf, "no such link: one leaf holds every node");
    all.push_back(below("leaf", l.leaf, leaf_count(s), "the number of leaves, "));
    all.push_back(below("spine", l.spine, s.fabric.spines, "spines = "));
  } else {
    for (const auto& [key, value] : {std::pair{"leaf", l.leaf}, {"spine", l.spine}})
      absent(key, value, "nothing: a fat_tree fabric has no such switch");
    const uint32_t radix = s.fabric.radix, tors = leaf_count(s);
    all.push_back(below("tor", l.tor, tors, "the number of ToRs, "));
    all.push_back(below("agg", l.agg, tors, "the number of aggregation switches, "));
    if (pod_count(s) == 1) absent("core", l.core, "nothing: one pod holds every node, there are no cores");
    all.push_back(below("core", l.core, radix * radix, "the number of cores, "));
    const auto agg = static_cast<uint32_t>(l.agg);
    if (l.tor >= 0 && agg / radix != static_cast<uint32_t>(l.tor) / radix)
      absent("agg", l.agg, "an aggregation switch of the pod of the ToR");
    if (l.core >= 0 && agg % radix != static_cast<uint32_t>(l.core) / radix)
      absent("core", l.core, "a core that is joined to the aggregation switch");
  }
  for (const Wrong& w : all) {
    if (!w.key.empty()) return w;
  }
  return {};
}

Status check(const Scenario& s, bool size_is_final) {
  const std::string where = s.file.empty() ? "scenario" : s.file;
  const auto bad = [&](const std::string& key, auto value, const std::string& what) {
    return Status::error(fmt::format("{}: {} = {}: expected {}", where, key, value, what));
  };
  const FabricConfig& f = s.fabric;
  if (f.ecn_kmax_bytes < f.ecn_kmin_bytes) {
    return bad("fabric.ecn_kmax_bytes", f.ecn_kmax_bytes,
               fmt::format("at least ecn_kmin_bytes = {}", f.ecn_kmin_bytes));
  }
  if (s.memory.latency_max_cycles < s.memory.latency_min_cycles) {
    return bad("memory.latency_max_cycles", s.memory.latency_max_cycles,
               fmt::format("at least latency_min_cycles = {}", s.memory.latency_min_cycles));
  }
  if (f.pfc_xon_bytes >= f.pfc_xoff_bytes) {
    return bad("fabric.pfc_xon_bytes", f.pfc_xon_bytes,
               fmt::format("less than pfc_xoff_bytes = {}", f.pfc_xoff_bytes));
  }
  if (f.pfc && f.cut_through) return bad("fabric.pfc", "true", "false with cut_through");
  const bool fat_tree = f.topology == Topology::kFatTree;
  const uint32_t core_links = pod_count(s) > 1 ? leaf_count(s) * f.radix : 0;
  if (f.slow_core_links > (fat_tree ? core_links : 0)) {
    return bad("fabric.slow_core_links", f.slow_core_links,
               fat_tree ? fmt::format("at most {}, the aggregation-core links of a plane", core_links)
                        : "fabric.topology = fat_tree");
  }
  for (size_t i = 0; i < f.link.size(); ++i) {
    if (const Wrong w = check_link(s, f.link[i]); !w.key.empty())
      return bad(fmt::format("fabric.link[{}].{}", i, w.key), w.value, w.expected);
  }
  for (size_t i = 0; i < f.host.size(); ++i) {
    if (f.host[i].last >= s.nodes)
      return bad(fmt::format("fabric.host[{}].last", i), f.host[i].last,
                 fmt::format("below nodes = {}", s.nodes));
  }
  for (size_t i = 0; i < f.pods.size(); ++i) {
    const auto key = [&](const char* name) { return fmt::format("fabric.pods[{}].{}", i, name); };
    for (const auto& [name, pod] : {std::pair{"a", f.pods[i].a}, {"b", f.pods[i].b}}) {
      if (!fat_tree) return bad(key(name), pod, "fabric.topology = fat_tree");
      if (pod >= pod_count(s))
        return bad(key(name), pod, fmt::format("below {}, the number of pods", pod_count(s)));
    }
  }
  for (size_t i = 0; i < s.faults.down.size(); ++i) {
    if (const Wrong w = check_link(s, s.faults.down[i]); !w.key.empty())
      return bad(fmt::format("faults.down[{}].{}", i, w.key), w.value, w.expected);
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

uint32_t leaf_count(const Scenario& s) {
  if (s.fabric.topology == Topology::kFatTree) return pod_count(s) * s.fabric.radix;
  return (s.nodes + s.fabric.hosts_per_leaf - 1) / s.fabric.hosts_per_leaf;
}

uint32_t pod_count(const Scenario& s) {
  if (s.fabric.topology != Topology::kFatTree) return 1;
  const uint32_t per_pod = s.fabric.radix * s.fabric.radix;
  return (s.nodes + per_pod - 1) / per_pod;
}

double host_rate_gbps(const Scenario& s, uint32_t node) {
  double rate = s.fabric.rate_gbps;
  for (const HostConfig& h : s.fabric.host) {
    if (node >= h.node && node <= h.last && h.rate_gbps > 0) rate = h.rate_gbps;
  }
  return rate;
}

Result<Scenario> load_scenario(const std::string& path, const std::vector<std::string>& own_sections,
                               double most_loss) {
  Result<TomlFile> read = TomlFile::read(path);
  if (!read.ok()) return Status::error(read.error());
  TomlFile& file = read.value();
  Scenario s;
  s.file = path;
  ReadTomlKeys keys{file};
  visit_keys(
      s, [&](const char* section, const char* key, auto& value, double low, double high, const char* what) {
        const bool loss = toml_key_name(section, key) == "faults.loss";
        keys(section, key, value, low, loss ? std::min(high, most_loss) : high, what);
      });
  TomlTable fabric = file.root().table("fabric");
  for (TomlTable t : fabric.tables("link")) read_link(t, s.fabric.link.emplace_back());
  for (TomlTable t : fabric.tables("host")) read_host(t, s.fabric.host.emplace_back());
  for (TomlTable t : fabric.tables("pods")) read_pods(t, s.fabric.pods.emplace_back());
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

Status check_frame_fits(const Scenario& s, uint64_t bytes, const std::string& mtu) {
  if (s.fabric.queue_bytes >= bytes) return {};
  return Status::error(fmt::format("{}: fabric.queue_bytes = {}: expected at least {}, a full frame of {}",
                                   s.file, s.fabric.queue_bytes, bytes, mtu));
}

std::string scenario_key_table() {
  PrintTomlKeys print;
  const Scenario defaults;
  visit_keys(defaults, print);
  return print.out;
}

}  // namespace weft::tb
