// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/run.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "tb/eval/bound.h"
#include "tb/eval/host.h"
#include "tb/eval/weft_body.h"
#include "tb/fabric/fabric.h"

namespace weft::eval {
namespace {

double us(Ps t) {
  return static_cast<double>(t) / 1e6;
}

// Processor time of this thread: other work on the machine does not count.
double cpu_s() {
  struct timespec t {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Sorted values; q from 0 to 1.
double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  return sorted[static_cast<size_t>(std::llround(q * static_cast<double>(sorted.size() - 1)))];
}

class World {
 public:
  World(const Setting& setting, BodyKind kind, uint64_t seed, const Machine& machine)
      : s_(setting), kind_(kind), ranks_(machine.ranks), stop_(machine.stop) {
    s_.scenario.seed = seed;
    s_.scenario.fabric.pfc = kind == BodyKind::kRocePfc;
    flows_ = make_flows(s_.traffic, s_.scenario.nodes, s_.scenario.planes, seed);
    kernel_ = std::make_unique<tb::Kernel>(std::llround(s_.scenario.fabric.link_latency_ns * 1000),
                                           machine.threads, ranks_, &frames_);
    const uint32_t hosts = s_.scenario.nodes;
    for (uint32_t i = 0; i < hosts; ++i) {
      rank_of_.push_back(tb::rank_of_node(s_.scenario, i, kernel_->ranks()));
      hosts_.push_back(
          here(i) ? std::make_unique<Host>(static_cast<uint16_t>(i), flows_, s_.window, kernel_->lookahead())
                  : nullptr);
      kernel_->add(hosts_.back().get(), rank_of_.back());
    }
    fabric_ = std::make_unique<tb::Fabric>(*kernel_, frames_, s_.scenario, s_.scenario.planes);
    for (uint32_t i = 0; i < hosts; ++i)
      if (here(i)) hosts_[i]->attach(*fabric_, i);
    if (kind == BodyKind::kWeft)
      make_weft(seed);
    else
      make_roce(seed);
    for (const auto& host : hosts_)
      if (host) host->begin();
  }

  tb::Status run() {
    if (!status_.ok()) return status_;
    while (kernel_->now() < s_.limit && kernel_->status().ok()) {
      if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) {
        stopped_ = true;
        break;
      }
      kernel_->run_window(s_.limit);
      bool done = true;
      for (const auto& host : hosts_) done = done && (!host || host->unfinished() == 0);
      if (ranks_ != nullptr) done = ranks_->minimum(done ? 1 : 0) != 0;
      if (done) break;
    }
    return kernel_->status();
  }

  // Everything that is counted, of all ranks, and their flows' records. Once, behind run().
  void collect();
  void tell(RunResult& out) const;
  bool stopped() const { return stopped_; }
  double worker_cpu_s() { return kernel_->worker_cpu_s(); }
  // From the end of the first down time that has one to the end of the first window in which so much of the
  // rate before that down time was placed, and at least a byte; NaN: there is none.
  double recovery_us(double part) const {
    Ps up = kNever, down = 0;
    for (const tb::DownFault& d : s_.scenario.faults.down)
      if (d.to_ps < up) std::tie(up, down) = std::pair(d.to_ps, d.from_ps);
    if (up == kNever) return std::numeric_limits<double>::quiet_NaN();
    std::vector<uint64_t> placed;  // by window, of all flows
    for (const FlowRecord& r : flows_.records) {
      placed.resize(std::max(placed.size(), r.window_bytes.size()));
      for (size_t w = 0; w < r.window_bytes.size(); ++w) placed[w] += r.window_bytes[w];
    }
    uint64_t before = 0;  // the best window that lies whole before it
    for (size_t w = 0; w < std::min(placed.size(), static_cast<size_t>(down / s_.window)); ++w)
      before = std::max(before, placed[w]);
    const double wanted = std::max(1.0, part * static_cast<double>(before));
    for (auto w = static_cast<size_t>((up + s_.window - 1) / s_.window); w < placed.size(); ++w)
      if (static_cast<double>(placed[w]) >= wanted) return us(static_cast<Ps>(w + 1) * s_.window - up);
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  bool here(uint32_t host) const { return rank_of_[host] == kernel_->rank(); }
  void collect_records();

  void make_roce(uint64_t seed) {
    const Charge charge = charge_of(s_, BodyKind::kRoce);
    const uint32_t full = charge.data.wire(charge.data.payload);
    Ps rtt = 0;
    double bdp = 0;  // bytes
    for (const Flow& f : flows_.list) {
      const Ps way = one_way_ps(s_.scenario, f.src, f.dst, full) +
                     one_way_ps(s_.scenario, f.dst, f.src, charge.ack_wire);
      rtt = std::max(rtt, way);
      bdp = std::max(bdp, tb::host_rate_gbps(s_.scenario, f.src) * 1e-3 * static_cast<double>(way) / 8);
    }
    const Ps queue = tb::wire_ps(static_cast<uint32_t>(s_.scenario.fabric.queue_bytes),
                                 tb::to_mbps(s_.scenario.fabric.rate_gbps));
    const uint32_t queues = s_.scenario.fabric.topology == tb::Topology::kFatTree ? 6 : 4;
    for (uint32_t i = 0; i < s_.scenario.nodes; ++i) {
      if (!here(i)) continue;
      RoceConfig c = s_.roce;
      c.ports = s_.scenario.planes;
      c.line_bps = static_cast<uint64_t>(tb::to_mbps(tb::host_rate_gbps(s_.scenario, i))) * 1'000'000;
      c.size = charge.data;
      c.seed = seed;
      // Beyond what is on its way, what the receiver has not acknowledged because it was not asked yet.
      if (c.window_packets == 0)
        c.window_packets = static_cast<uint32_t>(std::ceil(bdp / full)) + c.ack_every;
      if (c.rto == 0) c.rto = rtt + queues * queue;
      hosts_[i]->use(std::make_unique<RoceBody>(c, static_cast<uint16_t>(i), s_.scenario.nodes, flows_,
                                                frames_, hosts_[i]->events()));
    }
  }
  void make_weft(uint64_t seed) {
    placement_ = std::make_unique<Placement>(flows_, s_.packet.payload);
    std::vector<WeftBody*> bodies(s_.scenario.nodes);
    for (uint32_t i = 0; i < s_.scenario.nodes; ++i) {
      if (!here(i)) continue;
      ref::Config c = endpoint_config(s_, i);
      c.seed = seed * s_.scenario.nodes + i;
      auto body = std::make_unique<WeftBody>(c, charge_of(s_, BodyKind::kWeft).data, static_cast<uint16_t>(i),
                                             flows_, *placement_, frames_, hosts_[i]->events());
      bodies[i] = body.get();
      hosts_[i]->use(std::move(body));
    }
    if (status_.ok()) status_ = WeftBody::connect(bodies, flows_, ranks_, rank_of_);
  }

  struct Counted {
    BodyCounts bodies;
    uint64_t timers = 0, hops = 0;
    uint64_t drop_queue = 0, drop_loss = 0, drop_down = 0, ce_marked = 0;
    uint64_t state_bytes = 0;  // the most of any host
  };

  Setting s_;
  const BodyKind kind_;
  tb::Ranks* const ranks_;
  const std::atomic<bool>* const stop_;
  bool stopped_ = false;
  std::vector<unsigned> rank_of_;  // by host
  Counted counted_;
  tb::FramePool frames_;  // before everything that holds frames
  Flows flows_;
  std::unique_ptr<Placement> placement_;  // of Weft's
  std::unique_ptr<tb::Kernel> kernel_;
  std::vector<std::unique_ptr<Host>> hosts_;  // null: another rank runs it
  std::unique_ptr<tb::Fabric> fabric_;
  tb::Status status_;
};

void World::collect() {
  Counted& c = counted_;
  for (const auto& host : hosts_) {
    if (!host) continue;
    const BodyCounts b = host->body().counts();
    c.bodies.data_sent += b.data_sent;
    c.bodies.resent += b.resent;
    c.bodies.needless += b.needless;
    c.bodies.discarded += b.discarded;
    c.bodies.acks_sent += b.acks_sent;
    c.bodies.others_sent += b.others_sent;
    c.bodies.timeouts += b.timeouts;
    c.bodies.paths_failed += b.paths_failed;
    c.timers += host->timers();
    c.state_bytes = std::max<uint64_t>(c.state_bytes, host->body().state_bytes());
  }
  const tb::FabricCounts f = fabric_->counts();  // what other ranks run has counted nothing here
  c.drop_queue = f.drop_queue;
  c.drop_loss = f.drop_loss;
  c.drop_down = f.drop_down;
  c.ce_marked = f.ce_marked;
  for (const tb::LinkCounts* link : fabric_->links()) c.hops += link->frames;
  if (ranks_ == nullptr) return;

  uint64_t* const sums[] = {&c.bodies.data_sent, &c.bodies.resent,
                            &c.bodies.needless,  &c.bodies.discarded,
                            &c.bodies.acks_sent, &c.bodies.others_sent,
                            &c.bodies.timeouts,  &c.bodies.paths_failed,
                            &c.timers,           &c.hops,
                            &c.drop_queue,       &c.drop_loss,
                            &c.drop_down,        &c.ce_marked};
  std::vector<uint64_t> values;
  for (const uint64_t* v : sums) values.push_back(*v);
  ranks_->sum(values);
  for (size_t i = 0; i < values.size(); ++i) *sums[i] = values[i];
  c.state_bytes = static_cast<uint64_t>(-ranks_->minimum(-static_cast<Ps>(c.state_bytes)));
  collect_records();
}

// A source's and a destination's half of a record may come from two ranks.
void World::collect_records() {
  struct Half {
    uint32_t flow, parts, windows;
    bool source;
    Ps first, second;  // source: started, completed; destination: delivered
    uint64_t placed;
  };
  std::vector<uint8_t> mine, all;
  const auto append = [&](const void* from, size_t bytes) {
    const auto* p = static_cast<const uint8_t*>(from);
    mine.insert(mine.end(), p, p + bytes);
  };
  for (const Flow& f : flows_.list) {
    const FlowRecord& r = flows_.records[f.id];
    if (here(f.src)) {
      const Half h{f.id, r.parts_sent, 0, true, r.started, r.completed, 0};
      append(&h, sizeof h);
    }
    if (here(f.dst)) {
      const Half h{f.id, r.parts_got, static_cast<uint32_t>(r.window_bytes.size()), false, r.delivered,
                   0,    r.placed};
      append(&h, sizeof h);
      append(r.window_bytes.data(), r.window_bytes.size() * sizeof(uint64_t));
    }
  }
  ranks_->exchange(std::vector<std::vector<uint8_t>>(ranks_->count(), mine), all);
  for (size_t at = 0; at < all.size();) {
    Half h;
    std::memcpy(&h, &all[at], sizeof h);
    at += sizeof h;
    FlowRecord& r = flows_.records[h.flow];
    if (h.source) {
      r.parts_sent = h.parts;
      r.started = h.first;
      r.completed = h.second;
      continue;
    }
    r.parts_got = h.parts;
    r.delivered = h.first;
    r.placed = h.placed;
    r.window_bytes.resize(h.windows);
    if (h.windows != 0) std::memcpy(r.window_bytes.data(), &all[at], h.windows * sizeof(uint64_t));
    at += h.windows * sizeof(uint64_t);
  }
}

void World::tell(RunResult& out) const {
  Metrics& m = out.metrics;
  const std::vector<std::string> groups = groups_of(s_.traffic);
  const PacketSize own = charge_of(s_, kind_).data;
  uint64_t unfinished = 0;
  for (const FlowRecord& r : flows_.records) unfinished += r.completed == kNever || r.delivered == kNever;
  m.emplace_back("unfinished", unfinished);
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::string prefix = groups[g].empty() ? "" : groups[g] + ".";
    std::vector<double> took;
    double sum = 0, gbps = 0, first = HUGE_VAL, last = 0, begin = HUGE_VAL, bits = 0, own_bits = 0;
    Ps all_active = kNever;  // until the first flow is in
    for (const Flow& f : flows_.list) {
      const FlowRecord& r = flows_.records[f.id];
      if (f.group != g) continue;
      all_active = std::min(all_active, r.delivered);
      if (r.completed == kNever) continue;
      const double t = us(r.completed - r.started),
                   wire = static_cast<double>(s_.packet.wire_bytes(f.bytes)) * 8e-3;
      took.push_back(t);
      sum += t;
      bits += wire;
      own_bits += static_cast<double>(own.wire_bytes(f.bytes)) * 8e-3;
      gbps += wire / t;
      begin = std::min(begin, us(r.started));
      first = std::min(first, us(r.completed));
      last = std::max(last, us(r.completed));
    }
    out.completion_us.insert(out.completion_us.end(), took.begin(), took.end());
    if (took.empty()) continue;
    const auto n = static_cast<double>(took.size());
    std::sort(took.begin(), took.end());
    m.emplace_back(prefix + "mean_us", sum / n);
    m.emplace_back(prefix + "p50_us", quantile(took, 0.5));
    m.emplace_back(prefix + "p99_us", quantile(took, 0.99));
    m.emplace_back(prefix + "max_us", took.back());
    m.emplace_back(prefix + "first_us", first);
    m.emplace_back(prefix + "last_us", last);
    m.emplace_back(prefix + "gbps", gbps / n);
    m.emplace_back(prefix + "total_gbps", bits / (last - begin));
    m.emplace_back(prefix + "line_pct",
                   100 * own_bits / (last - begin) / s_.scenario.fabric.rate_gbps / s_.scenario.planes);
    if (s_.window == 0) continue;
    // Windows in which every flow still had something to send.
    const auto windows = static_cast<size_t>(all_active == kNever ? 0 : all_active / s_.window);
    double lowest = 1;
    for (size_t w = 0; w < windows; ++w) {
      std::vector<double> placed;
      for (const Flow& f : flows_.list) {
        const std::vector<uint64_t>& bytes = flows_.records[f.id].window_bytes;
        if (f.group == g) placed.push_back(w < bytes.size() ? static_cast<double>(bytes[w]) : 0);
      }
      const double j = jain(placed);
      if (w < 3) m.emplace_back(fmt::format("{}jain_{}", prefix, w + 1), j);
      if (w >= 1) lowest = std::min(lowest, j);
    }
    if (windows >= 2) m.emplace_back(prefix + "jain_min_from_2", lowest);
  }
  if (groups.size() > 1) {
    double low = HUGE_VAL, high = 0;
    for (const std::string& g : groups) {
      low = std::min(low, value_of(m, g + ".mean_us"));
      high = std::max(high, value_of(m, g + ".mean_us"));
    }
    m.emplace_back("groups_apart_pct", 100 * (high - low) / low);
    double last = 0;
    for (const std::string& g : groups) last = std::max(last, value_of(m, g + ".last_us"));
    m.emplace_back("last_us", last);
  }
  if (s_.window != 0) {
    if (const double back = recovery_us(0); std::isfinite(back)) m.emplace_back("recovery_us", back);
    if (const double back = recovery_us(0.9); std::isfinite(back)) m.emplace_back("rate_recovery_us", back);
    for (const FlowRecord& r : flows_.records) {
      std::vector<double>& line = out.gbps_over_time.emplace_back();
      for (uint64_t bytes : r.window_bytes) line.push_back(static_cast<double>(bytes) * 8e-3 / us(s_.window));
    }
  }
  const BodyCounts& c = counted_.bodies;
  const std::pair<const char*, uint64_t> counts[] = {{"data", c.data_sent},
                                                     {"resent", c.resent},
                                                     {"needless", c.needless},
                                                     {"discarded", c.discarded},
                                                     {"acks", c.acks_sent},
                                                     {"others", c.others_sent},
                                                     {"timeouts", c.timeouts},
                                                     {"paths_failed", c.paths_failed},
                                                     {"drop_queue", counted_.drop_queue},
                                                     {"drop_loss", counted_.drop_loss},
                                                     {"drop_down", counted_.drop_down},
                                                     {"ce_marked", counted_.ce_marked},
                                                     {"events", counted_.hops + counted_.timers},
                                                     {"host_state_bytes", counted_.state_bytes}};
  for (const auto& [name, value] : counts) m.emplace_back(name, static_cast<double>(value));
  m.emplace_back("needless_pct", 100 * static_cast<double>(c.needless) /
                                     static_cast<double>(std::max<uint64_t>(c.data_sent, 1)));
}

}  // namespace

RunResult run_one(const Setting& setting, BodyKind body, uint64_t seed, const Machine& machine) {
  RunResult out;
  const double cpu0 = cpu_s();
  const auto start = std::chrono::steady_clock::now();
  World world(setting, body, seed, machine);
  out.status = world.run();
  if (world.stopped()) return out;
  out.ran = true;
  world.collect();
  world.tell(out);
  out.cpu_s = cpu_s() - cpu0 + world.worker_cpu_s();
  out.real_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (machine.ranks != nullptr) {
    auto ns = static_cast<uint64_t>(out.cpu_s * 1e9);
    machine.ranks->sum({&ns, 1});
    out.cpu_s = static_cast<double>(ns) * 1e-9;
  }
  return out;
}

double jain(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (double v : values) {
    sum += v;
    squares += v * v;
  }
  return squares == 0 ? 0 : sum * sum / (squares * static_cast<double>(values.size()));
}

double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [n, v] : metrics)
    if (n == name) return v;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace weft::eval
