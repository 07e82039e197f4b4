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
  std::vector<RunResult> runs;  // by seed
  std::vector<std::pair<std::string, Spread>> metrics;
};

struct PointResult {
  Point point;
  Metrics bound;
  std::vector<BodyResult> bodies;
};

struct ScenarioResult {
  EvalConfig config;
  std::vector<PointResult> points;
};

/// A line of the table of goals. NaN: not known.
struct Row {
  std::string scenario, name, unit;
  double bound = 0, rocev2 = 0, rocev2_pfc = 0, uet_htsim = 0, value = 0, goal = 0;
  bool at_least = true;
  bool has_value = false, met = false;
  std::string uet_source;
};

/// Runs everything, `at_a_time` runs at a time (one with ranks), each on `machine`; the results do not depend
/// on either. `progress` is told after each run, from any thread, one at a time.
std::vector<ScenarioResult> run_all(std::vector<EvalConfig> configs, unsigned at_a_time,
                                    const std::function<void(size_t done, size_t all)>& progress,
                                    const Machine& machine = {});

/// Peak memory so far, all runs together, of each rank's process.
std::vector<double> peak_gib(tb::Ranks* ranks);

/// `rss_gib`: what the row of that metric says.
std::vector<Row> rows_of(const std::vector<ScenarioResult>& results, double rss_gib);

/// How fast each scenario was simulated, and the memory of each rank.
std::string speed_of(const std::vector<ScenarioResult>& results, const std::vector<double>& peak_gib);

/// The first run that broke a rule, in one line; empty: none.
std::string failure_of(const std::vector<ScenarioResult>& results);

std::string table_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows);
std::string csv_of(const std::vector<ScenarioResult>& results);
/// `command`: how it was called. Only "cpu_s" and what is divided by it differs from call to call.
std::string json_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows,
                    const std::string& command);

}  // namespace weft::eval
