// SPDX-License-Identifier: Apache-2.0
// All runs of some scenarios, what follows from comparing them, and the ways to show it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tb/eval/eval_config.h"
#include "tb/eval/run.h"

namespace weft::eval {

/// One metric over the seeds.
struct Spread {
  double mean = 0, low = 0, high = 0;
};

struct BodyResult {
  BodyKind body = BodyKind::kWeft;
  std::vector<RunResult> runs;  // by seed: as many as EvalConfig::seeds_at says, from the first
  std::vector<Metrics> bounds;  // of each run
  std::vector<std::pair<std::string, Spread>> metrics, bound;
  std::string reason;    // why there are no figures; empty: there are
  bool stalled = false;  // some flows were not done at the limit
};

struct PointResult {
  Point point;
  std::vector<BodyResult> bodies;
};

struct ScenarioResult {
  EvalConfig config;
  std::vector<PointResult> points;
};

/// A line of the table of goals. NaN: not known.
struct Row {
  std::string scenario, name, unit;
  double bound = 0, rocev2 = 0, rocev2_pfc = 0, uet_htsim = 0, goal = 0;
  Spread value;      // of Weft
  size_t seeds = 0;  // that it is of
  bool at_least = true;
  bool judged = false, met = false;  // judged: there is a goal, and Weft ran
  std::string reason;                // why it has no value
  std::string uet_source;
};

/// A goal is met when the mean is beyond it and no seed misses it by more than this part of it.
inline constexpr double kSeedMiss = 0.02;

/// Runs everything, `at_a_time` runs at a time (one with ranks), each on `machine`; the results do not depend
/// on either. `progress` is told after each run, from any thread, one at a time. When machine.stop becomes
/// true the results are of the runs that have ended; what has none is left out.
std::vector<ScenarioResult> run_all(std::vector<EvalConfig> configs, unsigned at_a_time,
                                    const std::function<void(size_t done, size_t all)>& progress,
                                    const Machine& machine = {});

/// Text of a file, as a terminal may get it: nothing in it moves a cursor or begins another line.
std::string escaped(const std::string& text);

/// Peak memory so far, all runs together, of each rank's process.
std::vector<double> peak_gib(tb::Ranks* ranks);

/// `rss_gib`: what the row of that metric says.
std::vector<Row> rows_of(const std::vector<ScenarioResult>& results, double rss_gib);

/// How fast each scenario was simulated, and the memory of each rank.
std::string speed_of(const std::vector<ScenarioResult>& results, const std::vector<double>& peak_gib);

/// The first run that broke a rule or did not finish, in one line; empty: none. Bodies that may stall may.
std::string failure_of(const std::vector<ScenarioResult>& results);

std::string table_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows);
std::string csv_of(const std::vector<ScenarioResult>& results);
/// What a call was, for who finds its figures later.
struct Call {
  std::string command, version;
  std::string reason;  // why it failed or was ended; empty: neither
};

/// Only "cpu_s" and what is divided by it differs from call to call.
std::string json_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows,
                    const Call& call);

}  // namespace weft::eval
