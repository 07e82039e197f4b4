// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/eval_config.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sw/ref/endpoint.h"
#include "tb/fabric/fabric.h"
#include "tb/sim/toml_file.h"
#include "weft_wire.h"

namespace weft::eval {

using tb::Result;
using tb::Status;
using tb::TomlFile;
using tb::TomlTable;

namespace {

constexpr double kMaxUs = 3600e6;
constexpr double kLeastWindowUs = 0.1;

constexpr const char* kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

struct Sweepable {
  const char* key;
  double low, high;
  bool integer;
  const char* what;
};
constexpr Sweepable kSweepable[] = {
    {"loss", 0, kMostLoss, false, kLossRange},
    {"planes", 1, 16, true, "integers from 1 to 16"},
    {"paths", 1, kMostPaths, true, kPathsRange},
    {"fan_in", 1, 65535, true, "integers from 1 to 65535"},
    {"bytes", 0, static_cast<double>(kMostBytes), true, kBytesRange},
    {"slow_core_links", 0, 65536, true, "integers from 0 to 65536"},
    {"faults", 0, 1, true, "0: without the down times of the file, 1: with them"},
};

template <class T>
bool given_twice(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

bool need(TomlTable& t, const char* key, const char* what) {
  if (t.has(key)) return true;
  t.error(key, std::string(what) + " (the key is missing)");
  return false;
}

void read_packet(TomlTable t, PacketSize& p, bool& own) {
  need(t, "payload", "bytes of payload in a full packet");
  need(t, "overhead", "bytes of a packet on the wire beyond its payload");
  t.integer("payload", p.payload, 64u, wire::kMaxPayload);
  t.integer("overhead", p.overhead, 24u, 512u);
  std::string text = "own";
  if (t.text("charge", text) && text != "own" && text != "same")
    t.error("charge", "own (each body's headers) or same (packet.overhead for every body)");
  own = text == "own";
}

void read_flow(TomlTable t, FlowSpec& f) {
  need(t, "src", "a host");
  need(t, "dst", "a host");
  need(t, "bytes", "a number of bytes");
  t.integer("src", f.src, 0u, 65535u);
  t.integer("dst", f.dst, 0u, 65535u);
  t.integer("bytes", f.bytes, uint64_t{0}, kMostBytes);
  t.integer("count", f.count, 1u, 1'000'000u);
  t.integer("depth", f.depth, 1u, 64u);
  t.number("start_us", f.start_us, 0, kMaxUs);
  t.text("group", f.group);
}

void read_traffic(TomlTable t, Workload& w) {
  constexpr std::pair<const char*, Pattern> kPatterns[] = {
      {"flows", Pattern::kFlows}, {"permutation", Pattern::kPermutation}, {"all_to_all", Pattern::kAllToAll},
      {"ring", Pattern::kRing},   {"incast", Pattern::kIncast},           {"rpc", Pattern::kRpc},
      {"many", Pattern::kMany}};
  const char* const expected = "flows, permutation, all_to_all, ring, incast, rpc or many";
  std::string text;
  if (!need(t, "pattern", expected) || !t.text("pattern", text)) return;
  const auto* found = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                   [&](const auto& p) { return text == p.first; });
  if (found == std::end(kPatterns)) return t.error("pattern", expected);
  w.pattern = found->second;
  if (w.pattern == Pattern::kFlows) {
    for (TomlTable f : t.tables("flow")) read_flow(f, w.flow.emplace_back());
    if (w.flow.empty()) t.error("flow", "[[traffic.flow]] with src, dst and bytes");
    return;
  }
  need(t, "bytes", "bytes of a flow");
  t.integer("bytes", w.bytes, uint64_t{0}, kMostBytes);
  switch (w.pattern) {
    case Pattern::kPermutation: t.boolean("per_plane", w.per_plane); break;
    case Pattern::kAllToAll: t.integer("at_a_time", w.at_a_time, 1u, 65535u); break;
    case Pattern::kRing:
      need(t, "steps", "a number of steps");
      t.integer("steps", w.steps, 1u, 100'000u);
      text = "delivery";
      if (t.text("start", text) && text != "delivery" && text != "completion")
        t.error("start", "delivery or completion");
      w.on_delivery = text == "delivery";
      break;
    case Pattern::kIncast:
      need(t, "fan_in", "a number of flows");
      t.integer("fan_in", w.fan_in, 1u, 65535u);
      t.integer("rounds", w.rounds, 1u, 1'000'000u);
      t.integer("victim_bytes", w.victim_bytes, uint64_t{0}, kMostBytes);
      break;
    case Pattern::kRpc:
      need(t, "answer_bytes", "bytes of an answer");
      t.integer("answer_bytes", w.answer_bytes, uint64_t{0}, kMostBytes);
      t.integer("rounds", w.rounds, 1u, 1'000'000u);
      break;
    case Pattern::kMany:
      need(t, "connections", "a number of connections");
      t.integer("connections", w.connections, 1u, 65535u);
      break;
    case Pattern::kFlows: break;
  }
}

void read_weft(TomlTable t, ref::Config& c) {
  t.integer("paths", c.paths, 1u, kMostPaths);
  t.integer("distance", c.distance, 0u, 128u);
  t.boolean("share", c.tuning.share);
  t.boolean("pacer", c.tuning.pacer);
  t.boolean("evidence", c.tuning.evidence);
  t.number("cap_rtts", c.tuning.cap_rtts, 0.1, 100);
  t.number("share_fill", c.tuning.share_fill, 0.1, 1);
  t.integer("turn_bytes", c.tuning.turn_bytes, 4096u, 1u << 30);
}

void read_roce(TomlTable t, RoceConfig& c) {
  double us = 0;
  t.integer("ack_every", c.ack_every, 1u, 1024u);
  if (t.number("rto_us", us, 1, kMaxUs)) c.rto = static_cast<Ps>(std::llround(us * 1e6));
  t.integer("window_packets", c.window_packets, 0u, 1u << 20);
  t.boolean("dcqcn", c.dcqcn);
}

// Every figure that run.cpp or report.cpp may tell, those of flows once for each group. A goal that names
// another would never be judged.
constexpr const char* kOfFlows[] = {"mean_us", "p50_us", "p99_us",         "max_us",   "first_us",
                                    "last_us", "gbps",   "total_gbps",     "line_pct", "jain_1",
                                    "jain_2",  "jain_3", "jain_min_from_2"};
constexpr const char* kOfRuns[] = {
    "unfinished",   "groups_apart_pct", "last_us",          "recovery_us",    "data",
    "resent",       "needless",         "needless_pct",     "discarded",      "acks",
    "others",       "timeouts",         "drop_queue",       "drop_loss",      "drop_down",
    "paths_failed", "ce_marked",        "rate_recovery_us", "events",         "cost_us",
    "retained_pct", "linear_pct",       "of_bound_pct",     "above_bound_ns", "victim_of_solo_pct",
    "rss_gib",      "mevents_per_s",    "host_state_bytes"};

bool is_metric(const std::string& name, const Workload& traffic) {
  const auto among = [](const auto& list, const std::string& n) {
    return std::find(std::begin(list), std::end(list), n) != std::end(list);
  };
  if (among(kOfRuns, name)) return true;
  for (const std::string& group : groups_of(traffic)) {
    const std::string prefix = group.empty() ? "" : group + ".";
    if (name.starts_with(prefix) && among(kOfFlows, name.substr(prefix.size()))) return true;
  }
  return false;
}

void read_goal(TomlTable t, const EvalConfig& config, Goal& g) {
  need(t, "row", "the name of the row");
  need(t, "metric", "a metric");
  t.text("row", g.row);
  if (t.text("metric", g.metric) && !is_metric(g.metric, config.base.traffic))
    t.error("metric", "a figure of docs/eval_scenarios.md, behind its group and a dot if flows have groups");
  t.text("unit", g.unit);
  double goal = 0;
  const bool least = t.number("at_least", goal, -1e18, 1e18), most = t.has("at_most");
  t.number("at_most", goal, -1e18, 1e18);
  if (least && most) t.error("at_most", "one of at_least and at_most");
  if (!least && !most && !t.has("uet_htsim"))
    t.error("at_least", "at_least or at_most, or uet_htsim to stand beside");
  if (least || most) g.value = goal;
  g.at_least = least;
  for (const auto& [key, values] : config.sweep) {
    double v = 0;
    if (!t.number(key.c_str(), v, -1e18, 1e18)) continue;
    if (std::count(values.begin(), values.end(), v) == 0) t.error(key.c_str(), "a value of the sweep");
    g.where.emplace_back(key, v);
  }
  double v = 0;
  if (t.number("bound", v, -1e18, 1e18)) g.bound = v;
  if (t.number("uet_htsim", v, -1e18, 1e18)) {
    g.uet = v;
    need(t, "uet_source", "where the figure of uet-htsim comes from");
  }
  t.text("uet_source", g.uet_source);
}

// Bytes the machine has, or 2^62.
uint64_t machine_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || size <= 0) return uint64_t{1} << 62;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(size);
}

void replace(EvalConfig& c, const char* key, const std::optional<std::vector<double>>& values) {
  if (!values) return;
  for (auto& [k, v] : c.sweep) {
    if (k != key) continue;
    v = *values;
    return;
  }
  c.sweep.emplace_back(key, *values);
}

uint64_t flow_count(const Setting& s) {
  const uint64_t hosts = s.scenario.nodes;
  const Workload& w = s.traffic;
  uint64_t flows = 0;
  switch (w.pattern) {
    case Pattern::kFlows:
      for (const FlowSpec& f : w.flow) flows += f.count;
      break;
    case Pattern::kPermutation: flows = hosts; break;
    case Pattern::kAllToAll: flows = hosts * (hosts - 1); break;
    case Pattern::kRing: flows = hosts * w.steps; break;
    case Pattern::kIncast: flows = uint64_t{w.fan_in} * w.rounds + 1; break;
    case Pattern::kRpc: flows = 2 * hosts * w.rounds; break;
    case Pattern::kMany: flows = w.connections; break;
  }
  return flows;
}

// Of all flows, at most.
double packet_count(const Setting& s) {
  const Workload& w = s.traffic;
  double bytes = 0;
  for (const FlowSpec& f : w.flow) bytes += static_cast<double>(f.bytes) * f.count;
  if (w.pattern != Pattern::kFlows)
    bytes = static_cast<double>(std::max(w.bytes, w.answer_bytes)) * (w.per_plane ? s.scenario.planes : 1) *
                static_cast<double>(flow_count(s)) +
            static_cast<double>(w.victim_bytes);
  return bytes / s.packet.payload + static_cast<double>(flow_count(s)) * s.scenario.planes;
}

Status check(const EvalConfig& c) {
  const auto bad = [&](const std::string& key, auto value, const std::string& what) {
    return Status::error(fmt::format("{}: {} = {}: expected {}", c.file, key, value, what));
  };
  for (const Point& point : points_of(c)) {
    const Setting s = at_point(c, point);
    for (size_t i = 0; i < s.traffic.flow.size(); ++i)
      if (const double us = s.traffic.flow[i].start_us; us * 1e6 >= static_cast<double>(s.limit))
        return bad(
            fmt::format("traffic.flow[{}].start_us", i), us,
            fmt::format("below eval.limit_us = {}, or it never starts", static_cast<double>(s.limit) / 1e6));
    if (Status status = check_scenario(s.scenario); !status.ok()) return status;
    const uint64_t frame = s.packet.wire(s.packet.payload) - tb::kWireOverheadBytes + tb::kFcsBytes;
    if (Status status =
            tb::check_frame_fits(s.scenario, frame, fmt::format("packet.payload = {}", s.packet.payload));
        !status.ok())
      return status;
    if (Status status = check_workload(s.traffic, s.scenario.nodes); !status.ok())
      return Status::error(fmt::format("{}: {}", c.file, status.text()));
    if (s.weft.paths * s.scenario.planes > 256)
      return bad("weft.paths", s.weft.paths,
                 fmt::format("at most 256 / cluster.planes = {}", 256 / s.scenario.planes));
    for (uint32_t host = 0; host < s.scenario.nodes; ++host)
      if (ref::Config e = endpoint_config(s, host); !ref::Endpoint::possible(e))
        return bad("weft", fmt::format("{} Gb/s at host {}", e.line_mbps / 1000.0, host),
                   "what the reference endpoint can be (sw/ref/config.h)");
    if (std::count(c.bodies.begin(), c.bodies.end(), BodyKind::kRocePfc) != 0) {
      const int64_t most =
          tb::pfc_most_xoff(s.scenario, charge_of(s, BodyKind::kRocePfc).data.wire(s.packet.payload));
      if (static_cast<int64_t>(s.scenario.fabric.pfc_xoff_bytes) > most)
        return bad("fabric.pfc_xoff_bytes", s.scenario.fabric.pfc_xoff_bytes,
                   fmt::format("at most {}, so that fabric.queue_bytes = {} holds what all inputs may send "
                               "(docs/simulation.md, Flow control)",
                               std::max<int64_t>(most, 0), s.scenario.fabric.queue_bytes));
    }
    // RoCEv2's packets have numbers of 32 bits here, so that no run wraps.
    if (const double packets = packet_count(s); packets >= 0x1p32)
      return bad("packet.payload", s.packet.payload,
                 fmt::format("a run of fewer than 2^32 packets, this one has {:.0f}", packets));
    const uint64_t have = machine_bytes(), want = memory_of(s);
    if (want > have)
      return bad("cluster.nodes", s.scenario.nodes,
                 fmt::format("a run that fits into the {} MiB of this machine, this one takes about {} MiB",
                             have >> 20, want >> 20));
  }
  return {};
}

}  // namespace

const char* name_of(BodyKind kind) {
  switch (kind) {
    case BodyKind::kWeft: return "weft";
    case BodyKind::kRoce: return "rocev2";
    case BodyKind::kRocePfc: return "rocev2_pfc";
  }
  return "";
}

Result<BodyKind> parse_body(const std::string& text) {
  for (BodyKind kind : {BodyKind::kWeft, BodyKind::kRoce, BodyKind::kRocePfc})
    if (text == name_of(kind)) return kind;
  return Status::error("weft, rocev2 or rocev2_pfc");
}

Result<EvalConfig> load_eval(const std::string& path, const Overrides& overrides) {
  EvalConfig c;
  c.file = path;
  auto scenario =
      tb::load_scenario(path, {"eval", "packet", "traffic", "weft", "roce", "sweep", "goal"}, kMostLoss);
  if (!scenario.ok()) return Status::error(scenario.error());
  Setting& base = c.base;
  base.scenario = scenario.take();
  auto read = TomlFile::read(path);
  if (!read.ok()) return Status::error(read.error());
  TomlFile& file = read.value();
  // Plots are files of that name.
  const std::string& name = base.scenario.name;
  if (!file.root().has("name"))
    file.root().error("name", "a name of the scenario (the key is missing)");
  else if (name.empty() || name[0] == '.' || name.find_first_not_of(kNameLetters) != std::string::npos)
    file.root().error("name", "letters, digits, '-', '_' and '.', no '.' in front");
  for (const char* other : {"name", "cluster", "fabric", "faults"}) file.root().skip(other);

  for (const char* section : {"eval", "packet", "traffic"})
    if (!file.root().has(section)) file.root().error(section, "the table (the key is missing)");
  TomlTable t = file.root().table("eval");
  need(t, "title", "a line for the report");
  need(t, "bodies", "some of weft, rocev2, rocev2_pfc");
  need(t, "seeds", "at least one seed");
  need(t, "limit_us", "the model time at which a run is given up, us");
  t.text("title", c.title);
  std::vector<std::string> names;
  t.texts("bodies", names);
  if (given_twice(names)) t.error("bodies", "each body once");
  for (const std::string& n : names) {
    auto body = parse_body(n);
    if (!body.ok()) {
      t.error("bodies", "some of " + body.error());
      break;
    }
    c.bodies.push_back(body.value());
  }
  names.clear();
  t.texts("may_stall", names);
  for (const std::string& n : names) {
    auto body = parse_body(n);
    if (!body.ok()) {
      t.error("may_stall", "some of " + body.error());
      break;
    }
    c.may_stall.push_back(body.value());
  }
  std::vector<int64_t> seeds;
  t.integers("seeds", seeds, 0, INT64_MAX, "seeds from 0");
  if (given_twice(seeds)) t.error("seeds", "each seed once");
  c.seeds.assign(seeds.begin(), seeds.end());
  if (c.seeds.empty()) t.error("seeds", "at least one seed");
  if (c.bodies.empty()) t.error("bodies", "at least one body");
  c.few_seeds = static_cast<uint32_t>(c.seeds.size());
  t.integer("few_seeds", c.few_seeds, 1u, 1'000'000u);
  double us = 0;
  if (t.number("limit_us", us, 1, kMaxUs)) base.limit = static_cast<Ps>(std::llround(us * 1e6));
  us = 0;
  // Accounts cost memory and time for each window of each flow.
  if (t.number("window_us", us, 0, kMaxUs) && us != 0 && us < kLeastWindowUs)
    t.error("window_us", fmt::format("0 or at least {}", kLeastWindowUs));
  base.window = static_cast<Ps>(std::llround(us * 1e6));
  std::string measure = "time";
  if (t.text("measure", measure) && measure != "time" && measure != "rate")
    t.error("measure", "time or rate");
  c.measure_time = measure == "time";
  t.boolean("quick", c.quick);

  read_packet(file.root().table("packet"), base.packet, base.own_overhead);
  read_traffic(file.root().table("traffic"), base.traffic);
  read_weft(file.root().table("weft"), base.weft);
  read_roce(file.root().table("roce"), base.roce);
  TomlTable sweep = file.root().table("sweep");
  for (const Sweepable& s : kSweepable) {
    std::vector<double> values;
    if (!sweep.numbers(s.key, values, s.low, s.high, s.what)) continue;
    if (values.empty()) sweep.error(s.key, "at least one value");
    if (given_twice(values)) sweep.error(s.key, "each value once");
    c.sweep.emplace_back(s.key, values);
  }
  for (TomlTable g : file.root().tables("goal")) read_goal(g, c, c.goals.emplace_back());
  if (Status status = file.done(); !status.ok()) return status;

  replace(c, "loss", overrides.loss);
  replace(c, "planes", overrides.planes);
  replace(c, "paths", overrides.paths);
  replace(c, "bytes", overrides.bytes);
  if (overrides.seeds) {
    c.seeds = *overrides.seeds;
    c.few_seeds = static_cast<uint32_t>(c.seeds.size());
  }
  if (overrides.bodies) c.bodies = *overrides.bodies;
  if (Status status = check(c); !status.ok()) return status;
  return c;
}

ref::Config endpoint_config(const Setting& s, uint32_t host) {
  ref::Config c = s.weft;
  c.ports = s.scenario.planes;
  c.line_mbps = static_cast<uint32_t>(tb::to_mbps(tb::host_rate_gbps(s.scenario, host)));
  c.mtu = s.packet.payload;
  if (!s.own_overhead) c.overhead = s.packet.overhead;
  c.payload = false;
  return c;
}

Charge charge_of(const Setting& s, BodyKind body) {
  const bool weft = body == BodyKind::kWeft;
  const size_t ack = weft ? wire::kHdrAckBytes + wire::kIcrcBytes : kRoceAckBytes;
  Charge c{s.packet, tb::kWireOverheadBytes + static_cast<uint32_t>(ack)};
  if (!s.own_overhead) return c;
  const size_t headers = weft ? wire::kHdrDataBytes + wire::kIcrcBytes : kRoceDataBytes;
  c.data.overhead = tb::kWireOverheadBytes + static_cast<uint32_t>(headers);
  c.data.padded = true;
  return c;
}

namespace {

// Points of a sweep that figures are compared with: no loss, one plane, no faults, one sender.
bool compared_with(const Point& point, const Point& of) {
  for (size_t i = 0; i < point.size(); ++i) {
    const auto& [key, v] = point[i];
    if (v == of[i].second) continue;
    const bool base =
        key == "planes" || key == "fan_in" ? v == 1 : (key == "loss" || key == "faults") && v == 0;
    if (!base) return false;
  }
  return true;
}

}  // namespace

size_t seeds_at(const EvalConfig& c, const Point& point, BodyKind body) {
  const size_t few = std::min<size_t>(c.few_seeds, c.seeds.size());
  if (body != BodyKind::kWeft) return few;
  for (const Goal& g : c.goals) {
    if (!g.value) continue;
    Point at = point;  // the point of the goal that differs least from this one
    for (auto& [key, v] : at)
      for (const auto& [k, wanted] : g.where)
        if (k == key) v = wanted;
    if (compared_with(point, at)) return c.seeds.size();
  }
  return few;
}

std::vector<Point> points_of(const EvalConfig& c) {
  std::vector<Point> points{{}};
  for (const auto& [key, values] : c.sweep) {
    std::vector<Point> longer;
    for (const Point& p : points) {
      for (double v : values) {
        longer.push_back(p);
        longer.back().emplace_back(key, v);
      }
    }
    points.swap(longer);
  }
  return points;
}

Setting at_point(const EvalConfig& c, const Point& point) {
  Setting s = c.base;
  for (const auto& [key, v] : point) {
    const auto whole = static_cast<uint32_t>(v);
    if (key == "loss") s.scenario.faults.loss = v;
    if (key == "planes") s.scenario.planes = whole;
    if (key == "paths") s.weft.paths = whole;
    if (key == "fan_in") s.traffic.fan_in = whole;
    if (key == "slow_core_links") s.scenario.fabric.slow_core_links = whole;
    if (key == "faults" && v == 0) s.scenario.faults.down.clear();
    if (key == "bytes") {
      s.traffic.bytes = static_cast<uint64_t>(v);
      for (FlowSpec& f : s.traffic.flow) f.bytes = static_cast<uint64_t>(v);
    }
  }
  return s;
}

uint64_t memory_of(const Setting& s) {
  // A frame in the pool is 320 bytes; no link and no queue holds more packets than its bytes allow.
  const uint64_t hosts = s.scenario.nodes, links = hosts * s.scenario.planes * 6;
  const uint64_t packets_queued = s.scenario.fabric.queue_bytes / s.packet.wire(s.packet.payload) / 8 + 16;
  const uint64_t flows = flow_count(s);
  const Workload& w = s.traffic;
  uint64_t pairs = flows;
  if (w.pattern == Pattern::kRing) pairs = hosts;
  if (w.pattern == Pattern::kIncast) pairs = w.fan_in + 1;
  if (w.pattern == Pattern::kRpc) pairs = 2 * hosts;
  if (w.pattern == Pattern::kFlows) pairs = w.flow.size();
  const uint64_t state =
      uint64_t{s.weft.paths} * s.scenario.planes * 256 + 4096;  // of a connection, each end
  // The account of what is placed has a bit for each packet.
  const auto placed = static_cast<uint64_t>(std::min(packet_count(s) / 8, 1e18));
  return links * packets_queued * 320 + pairs * 2 * state + flows * 128 + placed;
}

}  // namespace weft::eval
