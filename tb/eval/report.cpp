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

Metrics bound_of(const Setting& s, BodyKind body, uint64_t seed) {
  const Flows flows = make_flows(s.traffic, s.scenario.nodes, s.scenario.planes, seed);
  const Ideal ideal_run = ideal(s.scenario, flows, charge_of(s, body), s.packet);
  return {{"mean_us", ideal_run.mean_us},
          {"max_us", ideal_run.max_us},
          {"last_us", ideal_run.last_us},
          {"gbps", ideal_run.gbps},
          {"jain_1", 1},
          {"jain_2", 1},
          {"jain_3", 1},
          {"jain_min_from_2", 1}};
}

Spread spread_of(const std::vector<std::pair<std::string, Spread>>& metrics, const std::string& name) {
  for (const auto& [n, s] : metrics)
    if (n == name) return s;
  return {kUnknown, kUnknown, kUnknown};
}

double mean_of(const std::vector<std::pair<std::string, Spread>>& metrics, const std::string& name) {
  return spread_of(metrics, name).mean;
}

// Text of a cell of a CSV file.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
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

const BodyResult* find_body(const PointResult& p, BodyKind kind) {
  for (const BodyResult& b : p.bodies)
    if (b.body == kind) return &b;
  return nullptr;
}

// What a body's figures with a seed say beside those at other points of the sweep, and beside the bound. `of`
// chooses the figures of a run, or of its bound.
template <class Of>
Metrics compared(const ScenarioResult& r, const PointResult& p, const BodyResult& b, size_t seed, Of&& of) {
  Metrics out;
  const bool time = r.config.measure_time;
  const char* const main = time ? "last_us" : "gbps";
  const auto get = [&](const PointResult& at, const std::string& name) {
    const BodyResult* same = find_body(at, b.body);
    return same != nullptr && seed < same->runs.size() && same->runs[seed].ran ? value_of(of(*same), name)
                                                                               : kUnknown;
  };
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
  const double bound = value_of(b.bounds[seed], main);
  add("of_bound_pct", time ? 100 * bound / get(p, main) : 100 * get(p, main) / bound);
  add("above_bound_ns", 1000 * (get(p, "mean_us") - value_of(b.bounds[seed], "mean_us")));
  return out;
}

// Of what every one of them tells: a mean over those that finished, or that recovered, would flatter.
std::vector<std::pair<std::string, Spread>> spreads(const std::vector<const Metrics*>& all) {
  std::vector<std::pair<std::string, Spread>> out;
  if (all.empty()) return out;
  for (const auto& [name, first] : *all[0]) {
    Spread s{0, first, first};
    for (const Metrics* m : all) {
      const double v = value_of(*m, name);
      s.mean += v / static_cast<double>(all.size());
      s.low = std::min(s.low, v);
      s.high = std::max(s.high, v);
    }
    if (std::isfinite(s.mean)) out.emplace_back(name, s);
  }
  return out;
}

void aggregate(const ScenarioResult& r, BodyResult& b) {
  std::vector<const Metrics*> metrics, bounds;
  for (size_t i = 0; i < b.runs.size(); ++i) {
    const RunResult& run = b.runs[i];
    if (!run.ran) continue;
    metrics.push_back(&run.metrics);
    bounds.push_back(&b.bounds[i]);
    if (!b.reason.empty()) continue;
    if (!run.status.ok()) {
      b.reason = fmt::format("seed {}: {}", r.config.seeds[i], run.status.text());
    } else if (const double undone = value_of(run.metrics, "unfinished"); undone != 0) {
      b.stalled = true;
      b.reason = fmt::format("seed {}: {:.0f} flows not done by eval.limit_us = {}", r.config.seeds[i],
                             undone, static_cast<double>(r.config.base.limit) / 1e6);
    }
  }
  b.bound = spreads(bounds);
  b.metrics = spreads(metrics);
  if (b.reason.empty()) return;
  std::erase_if(b.metrics, [](const auto& m) { return m.first != "unfinished"; });
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

Json number(double v) {
  return std::isfinite(v) ? Json(v) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

double cpu_of(const BodyResult& b) {
  double cpu = 0;
  for (const RunResult& run : b.runs) cpu += run.cpu_s;
  return cpu;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool c1 = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else if (c1)  // U+0080 .. U+009f
      out += fmt::format("\\u00{:02x}", static_cast<unsigned char>(text[++i]));
    else
      out += text[i];
  }
  return out;
}

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
        BodyResult& b = p.bodies.emplace_back();
        b.body = body;
        b.runs.resize(seeds_at(r.config, point, body));
        b.bounds.resize(b.runs.size());
        for (size_t seed = 0; seed < b.runs.size(); ++seed)
          jobs.push_back({results.size() - 1, r.points.size() - 1, p.bodies.size() - 1, seed});
      }
    }
  }
  std::atomic<size_t> next{0};
  size_t done = 0;
  std::mutex telling;
  const auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++) {
      if (machine.stop != nullptr && machine.stop->load(std::memory_order_relaxed)) return;
      const Job& j = jobs[i];
      ScenarioResult& r = results[j.config];
      PointResult& p = r.points[j.point];
      BodyResult& b = p.bodies[j.body];
      const Setting setting = at_point(r.config, p.point);
      b.runs[j.seed] = run_one(setting, b.body, r.config.seeds[j.seed], machine);
      if (!b.runs[j.seed].ran) return;
      b.bounds[j.seed] = bound_of(setting, b.body, r.config.seeds[j.seed]);
      std::lock_guard lock(telling);
      progress(++done, jobs.size());
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < at_a_time; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();

  const auto append = [](Metrics& to, const Metrics& more) { to.insert(to.end(), more.begin(), more.end()); };
  for (ScenarioResult& r : results) {
    // Figures of other points are read, so nothing is added before all are compared.
    std::vector<std::pair<Metrics*, Metrics>> added;
    for (PointResult& p : r.points)
      for (BodyResult& b : p.bodies)
        for (size_t i = 0; i < b.runs.size(); ++i) {
          if (!b.runs[i].ran) continue;
          added.emplace_back(&b.runs[i].metrics,
                             compared(r, p, b, i, [&](const BodyResult& at) -> const Metrics& {
                               return at.runs[i].metrics;
                             }));
          added.emplace_back(&b.bounds[i], compared(r, p, b, i, [&](const BodyResult& at) -> const Metrics& {
            return at.bounds[i];
          }));
        }
    for (auto& [to, more] : added) append(*to, more);
    for (PointResult& p : r.points) {
      for (BodyResult& b : p.bodies) aggregate(r, b);
      std::erase_if(p.bodies, [](const BodyResult& b) {
        return std::none_of(b.runs.begin(), b.runs.end(), [](const RunResult& run) { return run.ran; });
      });
    }
    std::erase_if(r.points, [](const PointResult& p) { return p.bodies.empty(); });
  }
  std::erase_if(results, [](const ScenarioResult& r) { return r.points.empty(); });
  return results;
}

std::vector<Row> rows_of(const std::vector<ScenarioResult>& results, double rss_gib) {
  std::vector<Row> rows;
  for (const ScenarioResult& r : results) {
    for (const Goal& g : r.config.goals) {
      Row row;
      row.scenario = r.config.base.scenario.name;
      row.name = g.row;
      row.unit = g.unit;
      row.uet_htsim = g.uet.value_or(kUnknown);
      row.uet_source = g.uet_source;
      row.goal = g.value.value_or(kUnknown);
      row.at_least = g.at_least;
      row.bound = row.rocev2 = row.rocev2_pfc = kUnknown;
      row.value = {kUnknown, kUnknown, kUnknown};
      for (const PointResult& p : r.points) {
        const bool here = std::all_of(g.where.begin(), g.where.end(), [&](const auto& w) {
          return swept_value(p.point, w.first) == w.second;
        });
        if (!here) continue;
        for (const BodyResult& b : p.bodies) {
          Spread v = spread_of(b.metrics, g.metric);
          const double n = static_cast<double>(
              std::count_if(b.runs.begin(), b.runs.end(), [](const RunResult& run) { return run.ran; }));
          if (g.metric == "rss_gib") v = {rss_gib, rss_gib, rss_gib};
          if (g.metric == "mevents_per_s") {
            const double speed = mean_of(b.metrics, "events") * n / cpu_of(b) / 1e6;
            v = {speed, speed, speed};
          }
          if (b.body == BodyKind::kWeft) {
            row.bound = g.bound.value_or(mean_of(b.bound, g.metric));
            row.value = v;
            row.seeds = static_cast<size_t>(n);
            row.reason = b.reason;
            row.judged = g.value.has_value();
            if (row.reason.empty() && !std::isfinite(v.mean)) row.reason = "not told with every seed";
          } else {
            (b.body == BodyKind::kRoce ? row.rocev2 : row.rocev2_pfc) = v.mean;
          }
        }
        break;
      }
      // A comparison with what is not there is false.
      const double miss = kSeedMiss * std::abs(row.goal);
      row.met = g.at_least ? row.value.mean >= row.goal && row.value.low >= row.goal - miss
                           : row.value.mean <= row.goal && row.value.high <= row.goal + miss;
      rows.push_back(row);
    }
  }
  return rows;
}

std::string failure_of(const std::vector<ScenarioResult>& results) {
  for (const ScenarioResult& r : results)
    for (const PointResult& p : r.points)
      for (const BodyResult& b : p.bodies) {
        const auto& may = r.config.may_stall;
        const bool allowed = b.stalled && std::count(may.begin(), may.end(), b.body) != 0;
        if (!b.reason.empty() && !allowed)
          return fmt::format("{}: {}{}: {}", escaped(r.config.file), name_of(b.body),
                             p.point.empty() ? "" : " " + text_of(p.point), b.reason);
      }
  return "";
}

std::string table_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows) {
  std::string out;
  constexpr const char* kLine =
      "{:<24} {:<11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8}\n";
  for (const ScenarioResult& r : results) {
    out += fmt::format("{}: {}\n", r.config.base.scenario.name, escaped(r.config.title));
    out += fmt::format(fmt::runtime(kLine), "", "body", "mean_us", "bound", "max_us", "bound", "last_us",
                       "bound", "Gb/s", "keeps%", "jain", "resent", "needless", "dropped", "marked");
    for (const PointResult& p : r.points) {
      for (const BodyResult& b : p.bodies) {
        if (!b.reason.empty()) {
          out += fmt::format("{:<24} {:<11} {}\n", text_of(p.point), name_of(b.body), b.reason);
          continue;
        }
        const auto get = [&](const char* name) { return shown(mean_of(b.metrics, name)); };
        const auto bound = [&](const char* name) { return shown(mean_of(b.bound, name)); };
        const double drops = mean_of(b.metrics, "drop_queue") + mean_of(b.metrics, "drop_loss") +
                             mean_of(b.metrics, "drop_down");
        out += fmt::format(fmt::runtime(kLine), text_of(p.point), name_of(b.body), get("mean_us"),
                           bound("mean_us"), get("max_us"), bound("max_us"), get("last_us"), bound("last_us"),
                           get("gbps"), get("retained_pct"), get("jain_min_from_2"), get("resent"),
                           get("needless"), shown(drops), get("ce_marked"));
      }
    }
    out += "\n";
  }
  if (rows.empty()) return out;
  constexpr const char* kRow = "{:<58} {:>9} {:>9} {:>9} {:>9} {:>9} {:>19} {:>5} {:>10} {:<6} {}\n";
  out += fmt::format(fmt::runtime(kRow), "goal, and what Weft's reference endpoint has", "bound", "rocev2",
                     "+pfc", "uet", "mean", "range", "seeds", "goal", "unit", "met");
  for (const Row& r : rows)
    out += fmt::format(fmt::runtime(kRow), r.scenario + ": " + escaped(r.name), shown(r.bound),
                       shown(r.rocev2), shown(r.rocev2_pfc), shown(r.uet_htsim), shown(r.value.mean),
                       r.seeds > 1 ? shown(r.value.low) + " .. " + shown(r.value.high) : "", r.seeds,
                       std::isfinite(r.goal) ? (r.at_least ? ">=" : "<=") + shown(r.goal) : "",
                       escaped(r.unit), r.judged ? (r.met ? "yes" : "NO") : "-");
  return out;
}

std::string speed_of(const std::vector<ScenarioResult>& results, const std::vector<double>& peak_gib) {
  std::string out;
  for (const ScenarioResult& r : results) {
    double events = 0, cpu = 0, real = 0;
    for (const PointResult& p : r.points)
      for (const BodyResult& b : p.bodies)
        for (const RunResult& run : b.runs) {
          if (!run.ran) continue;
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
    for (const PointResult& p : r.points)
      for (const BodyResult& b : p.bodies) {
        const std::string head = fmt::format("{},{}", r.config.base.scenario.name, text_of(p.point));
        for (const auto& [suffix, metrics] : {std::pair{"", &b.metrics}, {" bound", &b.bound}})
          for (const auto& [name, s] : *metrics)
            out += fmt::format("{},{}{},{},{:.9g},{:.9g},{:.9g}\n", head, name_of(b.body), suffix, cell(name),
                               s.mean, s.low, s.high);
      }
  return out;
}

std::string json_of(const std::vector<ScenarioResult>& results, const std::vector<Row>& rows,
                    const Call& call) {
  Json out;
  out["command"] = call.command;
  out["version"] = call.version;
  out["reason"] = text_or_null(call.reason);
  out["rows"] = Json::array();
  for (const Row& r : rows)
    out["rows"].push_back({{"name", r.scenario + ": " + r.name},
                           {"scenario", r.scenario},
                           {"body", "weft"},
                           {"endpoint", "reference"},
                           {"unit", r.unit},
                           {"bound", number(r.bound)},
                           {"rocev2", number(r.rocev2)},
                           {"rocev2_pfc", number(r.rocev2_pfc)},
                           {"uet_htsim", number(r.uet_htsim)},
                           {"uet_source", r.uet_source},
                           {"value", number(r.value.mean)},
                           {"low", number(r.value.low)},
                           {"high", number(r.value.high)},
                           {"seeds", r.seeds},
                           {"reason", text_or_null(r.reason)},
                           {"goal", number(r.goal)},
                           {"direction", r.at_least ? "at_least" : "at_most"},
                           {"met", r.judged ? Json(r.met) : Json(nullptr)}});
  out["scenarios"] = Json::array();
  const auto spread = [](const auto& metrics) {
    Json all = Json::object();
    for (const auto& [name, s] : metrics)
      all[name] = {{"mean", number(s.mean)}, {"low", number(s.low)}, {"high", number(s.high)}};
    return all;
  };
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
      point["bodies"] = Json::object();
      for (const BodyResult& b : p.bodies) {
        Json body;
        body["seeds"] = Json::array();
        for (size_t i = 0; i < b.runs.size(); ++i)
          if (b.runs[i].ran) body["seeds"].push_back(r.config.seeds[i]);
        body["reason"] = text_or_null(b.reason);
        body["metrics"] = spread(b.metrics);
        body["bound"] = spread(b.bound);
        body["cpu_s"] = cpu_of(b);
        if (b.reason.empty()) {  // of one seed: enough for a distribution, and for curves over time
          const RunResult& run =
              *std::find_if(b.runs.begin(), b.runs.end(), [](const RunResult& x) { return x.ran; });
          body["completion_us"] = run.completion_us;
          if (r.config.base.window != 0) body["gbps_over_time"] = run.gbps_over_time;
        }
        point["bodies"][name_of(b.body)] = std::move(body);
      }
      scenario["points"].push_back(std::move(point));
    }
    out["scenarios"].push_back(std::move(scenario));
  }
  // Names of files are bytes of any kind.
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::eval
