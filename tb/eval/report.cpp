// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/report.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tb/eval/bound.h"

namespace weft::eval {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Job {
  size_t config, point, body, seed;
};

// Of an ack in the bound: the smallest that either body sends.
constexpr uint32_t kAckWire = kRoceAckBytes + 24;

Metrics bound_of(const EvalConfig& c, const Point& point) {
  const Setting s = at_point(c, point);
  Ideal sum;
  for (uint64_t seed : c.seeds) {
    const Flows flows = make_flows(s.traffic, s.scenario.nodes, s.scenario.planes, seed);
    const Ideal one = ideal(s.scenario, flows, s.packet, kAckWire);
    sum.mean_us += one.mean_us;
    sum.max_us += one.max_us;
    sum.gbps += one.gbps;
  }
  const auto n = static_cast<double>(c.seeds.size());
  return {{"mean_us", sum.mean_us / n},
          {"max_us", sum.max_us / n},
          {"last_us", sum.max_us / n},
          {"gbps", sum.gbps / n},
          {"jain_1", 1},
          {"jain_2", 1},
          {"jain_3", 1},
          {"jain_min_from_2", 1}};
}

double mean_of(const std::vector<std::pair<std::string, Spread>>& metrics, const std::string& name) {
  for (const auto& [n, s] : metrics)
    if (n == name) return s.mean;
  return kUnknown;
}

// The same point with `key` at another value; null when the sweep does not have it.
const PointResult* sibling(const ScenarioResult& r, const Point& point, const std::string& key,
                           double value) {
  Point wanted = point;
  bool swept = false;
  for (auto& [k, v] : wanted) {
    if (k != key) continue;
    v = value;
    swept = true;
  }
  if (!swept) return nullptr;
  for (const PointResult& p : r.points)
    if (p.point == wanted) return &p;
  return nullptr;
}

double swept_value(const Point& point, const std::string& key) {
  for (const auto& [k, v] : point)
    if (k == key) return v;
  return kUnknown;
}

// What a body's metrics at a point say beside those at another point of the sweep, and beside the bound.
// `get` reads a metric of the same body at a point.
template <class Get>
std::vector<std::pair<std::string, double>> compared(const ScenarioResult& r, const PointResult& p,
                                                     Get&& get) {
  std::vector<std::pair<std::string, double>> out;
  const bool time = r.config.measure_time;
  const char* const main = time ? "last_us" : "gbps";
  const auto add = [&](const char* name, double v) {
    if (std::isfinite(v)) out.emplace_back(name, v);
  };
  if (const PointResult* clean = sibling(r, p.point, "loss", 0); clean)
    add("retained_pct", 100 * (time ? get(*clean, main) / get(p, main) : get(p, main) / get(*clean, main)));
  if (const PointResult* one = sibling(r, p.point, "planes", 1); one)
    add("linear_pct", 100 * get(p, "gbps") / get(*one, "gbps") / swept_value(p.point, "planes"));
  if (const PointResult* healthy = sibling(r, p.point, "faults", 0); healthy)
    add("cost_us", get(p, "mean_us") - get(*healthy, "mean_us"));
  if (const PointResult* alone = sibling(r, p.point, "fan_in", 1); alone)
    add("victim_of_solo_pct", 100 * get(*alone, "victim.mean_us") / get(p, "victim.mean_us"));
  add("of_bound_pct",
      time ? 100 * value_of(p.bound, main) / get(p, main) : 100 * get(p, main) / value_of(p.bound, main));
  add("above_bound_ns", 1000 * (get(p, "mean_us") - value_of(p.bound, "mean_us")));
  return out;
}

void aggregate(BodyResult& b) {
  std::vector<std::string> names;
  for (const RunResult& run : b.runs)
    for (const auto& [name, value] : run.metrics)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (const std::string& name : names) {
    Spread s{0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    size_t n = 0;
    for (const RunResult& run : b.runs) {
      const double v = value_of(run.metrics, name);
      if (std::isnan(v)) continue;
      s.mean += v;
      s.low = std::min(s.low, v);
      s.high = std::max(s.high, v);
      ++n;
    }
    s.mean /= static_cast<double>(n);
    // A mean over those that finished would flatter.
    const bool whole = mean_of(b.metrics, "unfinished") == 0 || name == "unfinished";
    const bool of_flows = name.find("_us") != std::string::npos || name.find("gbps") != std::string::npos;
    if (whole || !of_flows) b.metrics.emplace_back(name, s);
  }
}

std::string shown(double v) {
  if (!std::isfinite(v)) return "-";
  const double a = std::abs(v);
  if (a >= 1e6) return fmt::format("{:.3g}M", v / 1e6);
  if (a >= 1000) return fmt::format("{:.0f}", v);
  if (a >= 100) return fmt::format("{:.1f}", v);
  if (a >= 10) return fmt::format("{:.2f}", v);
  return fmt::format("{:.3f}", v);
}

std::string text_of(const Point& point) {
  std::string out;
  for (const auto& [key, v] : point) out += fmt::format("{}{}={:.6g}", out.empty() ? "" : " ", key, v);
  return out;
}

const BodyResult* find_body(const PointResult& p, BodyKind kind) {
  for (const BodyResult& b : p.bodies)
    if (b.body == kind) return &b;
  return nullptr;
}

Json number(double v) {
  return std::isfinite(v) ? Json(v) : Json(nullptr);
}

double cpu_of(const BodyResult& b) {
  double cpu = 0;
  for (const RunResult& run : b.runs) cpu += run.cpu_s;
  return cpu;
}

}  // namespace

std::vector<double> peak_gib(tb::Ranks* ranks) {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  std::vector<uint64_t> kib(ranks != nullptr ? ranks->count() : 1);
  kib[ranks != nullptr ? ranks->rank() : 0] = static_cast<uint64_t>(usage.ru_maxrss);
  if (ranks != nullptr) ranks->sum(kib);
  std::vector<double> gib;
  for (uint64_t k : kib) gib.push_back(static_cast<double>(k) / (1 << 20));
  return gib;
}

std::vector<ScenarioResult> run_all(std::vector<EvalConfig> configs, unsigned at_a_time,
                                    const std::function<void(size_t, size_t)>& progress,
                                    const Machine& machine) {
  std::vector<ScenarioResult> results;
  std::vector<Job> jobs;
  for (EvalConfig& c : configs) {
    ScenarioResult& r = results.emplace_back();
    r.config = std::move(c);
    for (const Point& point : points_of(r.config)) {
      PointResult& p = r.points.emplace_back();
      p.point = point;
      for (BodyKind body : r.config.bodies) {
        p.bodies.push_back({body, std::vector<RunResult>(r.config.seeds.size()), {}});
        for (size_t seed = 0; seed < r.config.seeds.size(); ++seed)
          jobs.push_back({results.size() - 1, r.points.size() - 1, p.bodies.size() - 1, seed});
      }
    }
  }
  std::atomic<size_t> next{0};
  size_t done = 0;
  std::mutex telling;
  const auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++) {
      const Job& j = jobs[i];
      ScenarioResult& r = results[j.config];
      PointResult& p = r.points[j.point];
      p.bodies[j.body].runs[j.seed] =
          run_one(at_point(r.config, p.point), p.bodies[j.body].body, r.config.seeds[j.seed], machine);
      std::lock_guard lock(telling);
      progress(++done, jobs.size());
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < at_a_time; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();

  for (ScenarioResult& r : results) {
    for (PointResult& p : r.points) {
      p.bound = bound_of(r.config, p.point);
      for (BodyResult& b : p.bodies) aggregate(b);
    }
    std::vector<Metrics> of_bound;
    for (PointResult& p : r.points) {
      for (BodyResult& b : p.bodies) {
        const auto get = [&](const PointResult& at, const std::string& name) {
          const BodyResult* same = find_body(at, b.body);
          return same ? mean_of(same->metrics, name) : kUnknown;
        };
        for (const auto& [name, v] : compared(r, p, get)) b.metrics.emplace_back(name, Spread{v, v, v});
      }
      of_bound.push_back(compared(
          r, p, [](const PointResult& at, const std::string& name) { return value_of(at.bound, name); }));
    }
    for (size_t i = 0; i < r.points.size(); ++i)
      r.points[i].bound.insert(r.points[i].bound.end(), of_bound[i].begin(), of_bound[i].end());
  }
  return results;
}

std::vector<Row> rows_of(const std::vector<ScenarioResult>& results, double rss_gib) {
  std::vector<Row> rows;
  for (const ScenarioResult& r : results) {
    for (const Goal& g : r.config.goals) {
      Row row{r.config.base.scenario.name,
              g.row,
              g.unit,
              kUnknown,
              kUnknown,
              kUnknown,
              g.uet.value_or(kUnknown),
              kUnknown,
              g.value,
              g.at_least,
              false,
              false,
              g.uet_source};
      for (const PointResult& p : r.points) {
        const bool here = std::all_of(g.where.begin(), g.where.end(), [&](const auto& w) {
          return swept_value(p.point, w.first) == w.second;
        });
        if (!here) continue;
        row.bound = g.bound.value_or(value_of(p.bound, g.metric));
        for (const BodyResult& b : p.bodies) {
          double v = mean_of(b.metrics, g.metric);
          if (g.metric == "rss_gib") v = rss_gib;
          if (g.metric == "mevents_per_s") v = mean_of(b.metrics, "events") * b.runs.size() / cpu_of(b) / 1e6;
          (b.body == BodyKind::kWeft   ? row.value
           : b.body == BodyKind::kRoce ? row.rocev2
                                       : row.rocev2_pfc) = v;
        }
        break;
      }
      row.has_value = std::isfinite(row.value);
      row.met = row.has_value && (g.at_least ? row.value >= g.value : row.value <= g.value);
      rows.push_back(row);
    }
  }
  return rows;
}

std::string failure_of(const std::vector<ScenarioResult>& results) {
  for (const ScenarioResult& r : results)
    for (const PointResult& p : r.points)
      for (const BodyResult& b : p.bodies)
        for (size_t i = 0; i < b.runs.size(); ++i)
          if (!b.runs[i].status.ok())
            return fmt::format("{}: {} {} seed {}: {}", r.config.file, name_of(b.body), text_of(p.point),
                               r.config.seeds[i], b.runs[i].status.text());
  return "";
}

std::string table_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows) {
  std::string out;
  for (const ScenarioResult& r : results) {
    out += fmt::format("{}: {}\n", r.config.base.scenario.name, r.config.title);
    out += fmt::format("{:<24} {:<11} {:>9} {:>9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6}\n",
                       "", "body", "mean_us", "max_us", "bound_us", "Gb/s", "keeps%", "jain", "resent",
                       "needless", "dropped", "marked", "undone");
    for (const PointResult& p : r.points) {
      for (const BodyResult& b : p.bodies) {
        const auto get = [&](const char* name) { return mean_of(b.metrics, name); };
        const double drops = get("drop_queue") + get("drop_loss") + get("drop_down");
        out +=
            fmt::format("{:<24} {:<11} {:>9} {:>9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6}\n",
                        text_of(p.point), name_of(b.body), shown(get("mean_us")), shown(get("last_us")),
                        shown(value_of(p.bound, "last_us")), shown(get("gbps")), shown(get("retained_pct")),
                        shown(get("jain_min_from_2")), shown(get("resent")), shown(get("needless")),
                        shown(drops), shown(get("ce_marked")), shown(get("unfinished")));
      }
    }
    out += "\n";
  }
  if (rows.empty()) return out;
  out += fmt::format("{:<58} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:<6} {}\n", "goal", "bound", "rocev2",
                     "+pfc", "uet", "weft", "goal", "unit", "met");
  for (const Row& r : rows)
    out += fmt::format("{:<58} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:<6} {}\n", r.scenario + ": " + r.name,
                       shown(r.bound), shown(r.rocev2), shown(r.rocev2_pfc), shown(r.uet_htsim),
                       shown(r.value), (r.at_least ? ">=" : "<=") + shown(r.goal), r.unit,
                       r.has_value ? (r.met ? "yes" : "NO") : "-");
  return out;
}

std::string speed_of(const std::vector<ScenarioResult>& results, const std::vector<double>& peak_gib) {
  std::string out;
  for (const ScenarioResult& r : results) {
    double events = 0, cpu = 0, real = 0;
    for (const PointResult& p : r.points)
      for (const BodyResult& b : p.bodies)
        for (const RunResult& run : b.runs) {
          events += value_of(run.metrics, "events");
          cpu += run.cpu_s;
          real += run.real_s;
        }
    out += fmt::format(
        "{}: {} hosts, {:.2f} M events in {:.2f} s of processor time and {:.2f} s by the clock: {:.2f} and "
        "{:.2f} M/s\n",
        r.config.base.scenario.name, r.config.base.scenario.nodes, events / 1e6, cpu, real,
        events / cpu / 1e6, events / real / 1e6);
  }
  for (size_t rank = 0; rank < peak_gib.size(); ++rank)
    out += fmt::format("rank {}: peak memory {:.3f} GiB\n", rank, peak_gib[rank]);
  return out;
}

std::string csv_of(const std::vector<ScenarioResult>& results) {
  std::string out = "scenario,point,body,metric,mean,low,high\n";
  for (const ScenarioResult& r : results)
    for (const PointResult& p : r.points) {
      const std::string head = fmt::format("{},{}", r.config.base.scenario.name, text_of(p.point));
      for (const auto& [name, v] : p.bound) out += fmt::format("{},bound,{},{:.9g},,\n", head, name, v);
      for (const BodyResult& b : p.bodies)
        for (const auto& [name, s] : b.metrics)
          out += fmt::format("{},{},{},{:.9g},{:.9g},{:.9g}\n", head, name_of(b.body), name, s.mean, s.low,
                             s.high);
    }
  return out;
}

std::string json_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows,
                    const std::string& command) {
  Json out;
  out["command"] = command;
  out["rows"] = Json::array();
  for (const Row& r : rows)
    out["rows"].push_back({{"name", r.scenario + ": " + r.name},
                           {"unit", r.unit},
                           {"bound", number(r.bound)},
                           {"rocev2", number(r.rocev2)},
                           {"rocev2_pfc", number(r.rocev2_pfc)},
                           {"uet_htsim", number(r.uet_htsim)},
                           {"uet_source", r.uet_source},
                           {"value", number(r.value)},
                           {"goal", r.goal},
                           {"direction", r.at_least ? "at_least" : "at_most"},
                           {"met", r.has_value ? Json(r.met) : Json(nullptr)}});
  out["scenarios"] = Json::array();
  for (const ScenarioResult& r : results) {
    Json scenario;
    scenario["name"] = r.config.base.scenario.name;
    scenario["title"] = r.config.title;
    scenario["file"] = r.config.file;
    scenario["seeds"] = r.config.seeds;
    scenario["window_us"] = static_cast<double>(r.config.base.window) / 1e6;
    scenario["points"] = Json::array();
    for (const PointResult& p : r.points) {
      Json point;
      point["at"] = Json::object();
      for (const auto& [key, v] : p.point) point["at"][key] = v;
      point["bound"] = Json::object();
      for (const auto& [name, v] : p.bound) point["bound"][name] = number(v);
      point["bodies"] = Json::object();
      for (const BodyResult& b : p.bodies) {
        Json body;
        body["metrics"] = Json::object();
        for (const auto& [name, s] : b.metrics)
          body["metrics"][name] = {
              {"mean", number(s.mean)}, {"low", number(s.low)}, {"high", number(s.high)}};
        body["cpu_s"] = cpu_of(b);
        // Of one seed: enough for a distribution, and for curves over time.
        body["completion_us"] = b.runs.front().completion_us;
        if (r.config.base.window != 0) body["gbps_over_time"] = b.runs.front().gbps_over_time;
        point["bodies"][name_of(b.body)] = std::move(body);
      }
      scenario["points"].push_back(std::move(point));
    }
    out["scenarios"].push_back(std::move(scenario));
  }
  return out.dump(1) + "\n";
}

}  // namespace weft::eval
