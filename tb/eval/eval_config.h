// SPDX-License-Identifier: Apache-2.0
// A scenario file of `weft eval`: the cluster, fabric and faults of tb/scenario.h, and what is moved, by
// which bodies, over which values, with which goals. docs/evaluation.md's companion page
// docs/eval_scenarios.md lists the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sw/ref/config.h"
#include "tb/eval/body.h"
#include "tb/eval/bound.h"
#include "tb/eval/roce.h"
#include "tb/eval/workload.h"
#include "tb/scenario.h"

namespace weft::eval {

/// Of a file, a sweep or a flag: where nothing arrives there is nothing to compare, and no bound.
inline constexpr double kMostLoss = 0.999999;
inline constexpr uint64_t kMostBytes = uint64_t{1} << 40;  // of a flow
inline constexpr const char* kBytesRange = "integers from 0 to 2^40 (1 TiB)";
inline constexpr uint32_t kMostPaths = 64;  // of a connection at a port
inline constexpr const char* kPathsRange = "integers from 1 to 64";
inline constexpr const char* kLossRange = "probabilities from 0 to 0.999999: 0,0.01";

enum class BodyKind : uint8_t { kWeft, kRoce, kRocePfc };
const char* name_of(BodyKind kind);

/// What a run is made with, apart from its seed.
struct Setting {
  tb::Scenario scenario;
  Workload traffic;
  PacketSize packet;         // what a rate counts, the same for every body
  bool own_overhead = true;  // each body's packets have their own overhead on the wire; else that of `packet`
  ref::Config weft;
  RoceConfig roce;
  Ps window = 0;  // of the accounts over time; 0: none
  Ps limit = 0;   // model time; what is not done then never is
};

/// One value of each swept key, in the order of the file: {"loss", 0.01}.
using Point = std::vector<std::pair<std::string, double>>;

/// A row of the table of goals. With no goal it only stands beside the figure of uet-htsim.
struct Goal {
  std::string row;     // its name in the tables
  std::string metric;  // of Weft
  std::string unit;
  bool at_least = true;
  std::optional<double> value;
  Point where;                // of the sweep; keys left out stand for the file's own value
  std::optional<double> uet;  // what uet-htsim does, and who says so
  std::string uet_source;
  std::optional<double> bound;  // where no formula gives it
};

struct EvalConfig {
  std::string file;
  std::string title;
  Setting base;
  std::vector<BodyKind> bodies;
  std::vector<uint64_t> seeds;      // of Weft, where a goal is judged
  uint32_t few_seeds = ~0u;         // elsewhere so many of them
  std::vector<BodyKind> may_stall;  // bodies that need not finish
  bool measure_time = true;         // "retained" and "linear" compare max_us; else gbps
  std::vector<std::pair<std::string, std::vector<double>>> sweep;
  std::vector<Goal> goals;
  bool quick = true;  // part of `make eval`
};

/// What the flags of the command set, over the file.
struct Overrides {
  std::optional<std::vector<double>> loss, planes, paths, bytes;
  std::optional<std::vector<uint64_t>> seeds;
  std::optional<std::vector<BodyKind>> bodies;
};

/// Errors are one line: "file: key = value: expected ...".
tb::Result<EvalConfig> load_eval(const std::string& path, const Overrides& overrides);
tb::Result<BodyKind> parse_body(const std::string& text);

/// What the packets of a body cost on the wire.
Charge charge_of(const Setting& setting, BodyKind body);

/// With which of the seeds, from the first, a body runs at a point.
size_t seeds_at(const EvalConfig& config, const Point& point, BodyKind body);

/// All points of the sweep; one without keys when nothing is swept.
std::vector<Point> points_of(const EvalConfig& config);
Setting at_point(const EvalConfig& config, const Point& point);

/// The configuration of Weft's endpoint of a host, apart from its seed.
ref::Config endpoint_config(const Setting& setting, uint32_t host);

/// Bytes of memory that a run takes at most, about.
uint64_t memory_of(const Setting& setting);

}  // namespace weft::eval
