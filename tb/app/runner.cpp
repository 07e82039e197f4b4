// SPDX-License-Identifier: Apache-2.0
#include "tb/app/runner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "sw/ref/numerics.h"
#include "sw/wccl/golden.h"
#include "tb/check/guard.h"
#include "tb/memory/memory.h"
#include "tb/node/rtl_node.h"
#include "weft_counters.h"
#include "weft_regs.h"

namespace weft::tb {
namespace {

// A node's memory, from its base: a page nobody uses, the communicator's arena, then the operation's buffers,
// each between guard zones.
constexpr uint64_t kPage = 4096;
constexpr uint64_t kRingsAndEntries = 1 << 20;
constexpr uint64_t kGuardBytes = 4096;

uint64_t hash(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

uint64_t up(uint64_t x, uint64_t to) {
  return (x + to - 1) / to * to;
}

// An element of format F that depends on `h` alone.
template <num::IsFloat F>
typename F::bits_type make_float(Inputs inputs, wccl::RedOp redop, uint64_t h) {
  using Bits = typename F::bits_type;
  if (inputs == Inputs::kRandom) {
    // Exponents around 0, few enough that rounding and cancellation happen.
    constexpr int kSpan = std::min(24, 1 << (F::kExp - 1));
    const auto field = static_cast<Bits>(F::kBias - kSpan / 2 + static_cast<int>((h >> 32) % kSpan));
    const auto rest = static_cast<Bits>(h & (F::kSign | (F::kHidden - 1)));
    return static_cast<Bits>(rest | static_cast<Bits>(field << F::kFrac));
  }
  // Whole numbers so small that sums of 16 of them are exact: 8 in bfloat16, 1 in the smallest types, which
  // holds in float8_e5m2 as long as most are 0. Of a product nothing may be 0.
  constexpr int kMost = F::kFrac >= 23 ? 2000 : F::kFrac >= 10 ? 128 : F::kFrac >= 7 ? 8 : 1;
  int v = static_cast<int>(h % (2 * kMost + 1)) - kMost;
  if (F::kFrac < 3 && (h >> 32) % 4 != 0) v = 0;
  if (redop == wccl::RedOp::kProd) v = (h & 1) != 0 ? 1 : (h & 2) != 0 ? -1 : 2;
  return num::convert<num::Float64, F>(std::bit_cast<uint64_t>(static_cast<double>(v)));
}

// Writes `count` elements that depend on the seed alone.
void make_inputs(uint8_t* to, uint64_t count, const wccl::Op& op, Inputs inputs, uint64_t seed) {
  const wire::Dtype type = wccl::wire_type(op.type);
  const size_t size = wccl::size_of(op.type);
  if (!wccl::is_float(op.type)) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t h = hash(seed + i);
      std::memcpy(to + size * i, &h, size);
    }
    return;
  }
  num::with_float(type, [&](auto format) {
    for (uint64_t i = 0; i < count; ++i) {
      const auto x = make_float<decltype(format)>(inputs, op.redop, hash(seed + i));
      std::memcpy(to + size * i, &x, size);
    }
  });
}

uint64_t size_of_op(const wccl::Op& op, int n) {
  const uint64_t one = op.count * wccl::size_of(op.type);
  switch (op.kind) {
    case wccl::Kind::kAllReduce:
    case wccl::Kind::kBroadcast: return one;
    case wccl::Kind::kReduceScatter:
    case wccl::Kind::kAllGather:
    case wccl::Kind::kAllToAll: return static_cast<uint64_t>(n) * one;
    case wccl::Kind::kAllToAllV: {
      uint64_t most = 0;  // the rank that sends or receives most decides
      for (int r = 0; r < n; ++r)
        most = std::max({most, wccl::sizes(op, r, n).send, wccl::sizes(op, r, n).recv});
      return most;
    }
    case wccl::Kind::kBarrier: return 0;
  }
  return 0;
}

double bus_factor(wccl::Kind kind, int n) {  // as nccl-tests has it
  switch (kind) {
    case wccl::Kind::kAllReduce: return 2.0 * (n - 1) / n;
    case wccl::Kind::kBroadcast: return 1;
    default: return static_cast<double>(n - 1) / n;
  }
}

}  // namespace

struct Runner::Layout {
  uint64_t send = 0, send_bytes = 0;
  uint64_t recv = 0, recv_bytes = 0;
  uint64_t buffer = 0, buffer_bytes = 0;  // in place: the one buffer that holds both
};

struct Runner::Rank {
  explicit Rank(Device d) : device(std::move(d)) {}
  Device device;
  std::optional<wccl::Communicator> comm;
  Layout layout;
  std::unique_ptr<MemoryGuard> guard;
  std::vector<uint8_t> input;
  int plan = -1;
};

Runner::Runner(Cluster& cluster, const Workload& workload, RunnerConfig config)
    : cluster_(cluster), workload_(workload), config_(std::move(config)) {}
Runner::~Runner() = default;

namespace {
uint64_t arena_bytes(const Workload& w) {
  uint64_t scratch = 64;
  for (const auto& o : w.ops) scratch = std::max(scratch, wccl::sizes(o.op, 0, w.ranks).scratch);
  return kRingsAndEntries + up(scratch, kPage);
}
uint64_t heap_bytes(const Workload& w) {
  uint64_t most = 0;
  for (const auto& o : w.ops)
    for (int r = 0; r < w.ranks; ++r) {
      const wccl::Sizes s = wccl::sizes(o.op, r, w.ranks);
      most = std::max(most, s.send + s.recv);
    }
  return up(most + 4 * kGuardBytes + 512, kPage);
}
}  // namespace

uint64_t Runner::memory_mib(const Workload& w) {
  return up(kPage + arena_bytes(w) + heap_bytes(w), 1 << 20) >> 20;
}

Status Runner::wait(const std::function<bool()>& done, const char* what) {
  const RunResult r = cluster_.run_until(done, static_cast<Ps>(config_.limit_us * 1e6));
  return r.ok() ? Status() : broken(r, what);
}

// One line: what happened, and the key that said how long it may take.
Status Runner::broken(const RunResult& r, const char* what) {
  if (state_.empty()) state_ = r.state;
  const double now_us = static_cast<double>(cluster_.now_ps()) / 1e6;
  if (r.end == RunEnd::kLimit)
    return Status::error(
        fmt::format("{}: at {:.3f} us: not done within run.limit_us = {:g}", what, now_us, config_.limit_us));
  if (r.end == RunEnd::kHang)
    return Status::error(fmt::format("{}: at {:.3f} us: nothing has moved for cluster.watchdog_us = {:g}",
                                     what, now_us, cluster_.scenario().watchdog_us));
  return Status::error(fmt::format("{}: {}", what, r.text));
}

Status Runner::setup() {
  const int n = workload_.ranks;
  std::vector<wccl::RankInfo> infos;
  for (int r = 0; r < n; ++r) {
    const auto node = static_cast<uint32_t>(r);
    auto device = Device::open(cluster_.hal(node));
    if (!device.ok()) return Status::error(fmt::format("node {}: {}", r, device.error()));
    ranks_.push_back(std::make_unique<Rank>(device.take()));
    Rank& rank = *ranks_.back();
    std::vector<PortAddress> ports;
    for (uint32_t p = 0; p < rank.device.caps().num_ports; ++p) {
      ports.push_back({Cluster::mac(node, p), Cluster::ip(node, p)});
      rank.device.set_port(p, ports.back());
    }
    if (Status s = rank.device.set_transport(config_.transport); !s.ok()) return s;
    wccl::CommConfig c;
    c.arena = cluster_.memory(node).base() + kPage;
    c.arena_bytes = arena_bytes(workload_);
    c.scratch_bytes = arena_bytes(workload_) - kRingsAndEntries;
    c.seed = config_.seed;
    c.start_psn = config_.start_psn;
    c.connection = config_.connection;
    c.watchdog_us = config_.watchdog_us;
    c.tell_us = config_.tell_us;
    auto comm = wccl::Communicator::create(rank.device, r, n, std::move(ports), c);
    if (!comm.ok()) return comm.status();
    rank.comm.emplace(comm.take());
    infos.push_back(rank.comm->info());
  }
  for (auto& rank : ranks_)
    if (Status s = rank->comm->connect(infos); !s.ok()) return s;
  // Last, so that the boots of all nodes overlap with the configuration still in the queues.
  for (auto& rank : ranks_)
    if (Status s = rank->device.load_firmware(config_.firmware); !s.ok()) return s;
  return {};
}

Runner::Layout Runner::lay_out(const wccl::Op& op, int rank) const {
  const wccl::Sizes s = wccl::sizes(op, rank, workload_.ranks);
  const uint64_t es = wccl::size_of(op.type);
  // Buffers start at any element, differently at every rank: nothing may depend on alignment.
  const uint64_t skew_a = hash(config_.seed * 31 + static_cast<uint64_t>(rank)) % (128 / es) * es;
  const uint64_t skew_b = hash(config_.seed * 37 + static_cast<uint64_t>(rank)) % (128 / es) * es;
  Layout l;
  l.send_bytes = s.send;
  l.recv_bytes = s.recv;
  const uint64_t first = heap(rank) + kGuardBytes + skew_a;
  if (op.in_place) {
    l.buffer = first;
    l.buffer_bytes = std::max(s.send, s.recv);
    l.send = l.recv = first;
    if (op.kind == wccl::Kind::kReduceScatter)
      l.recv += wccl::in_place_offset(op, rank);
    else
      l.send += wccl::in_place_offset(op, rank);
    return l;
  }
  l.send = first;
  l.recv = up(first + s.send + kGuardBytes, 128) + skew_b;
  return l;
}

void Runner::fill(const wccl::Op& op, size_t index, unsigned repeat) {
  for (int r = 0; r < workload_.ranks; ++r) {
    Rank& rank = *ranks_[static_cast<size_t>(r)];
    Memory& memory = cluster_.memory(static_cast<uint32_t>(r));
    const Layout& l = rank.layout;
    const uint64_t seed = hash(config_.seed ^ hash(index << 32 | repeat) ^ static_cast<uint64_t>(r) << 56);
    const uint64_t arena = memory.base() + kPage;
    rank.guard = std::make_unique<MemoryGuard>(memory, seed);
    rank.guard->fill(memory.base(), kPage);
    rank.guard->fill(arena + arena_bytes(workload_), memory.size() - kPage - arena_bytes(workload_));
    if (l.recv_bytes != 0) rank.guard->release(l.recv, l.recv_bytes);
    rank.input.resize(l.send_bytes);
    make_inputs(rank.input.data(), l.send_bytes / wccl::size_of(op.type), op, config_.inputs, seed);
    if (l.send_bytes == 0) continue;
    std::memcpy(memory.data(l.send), rank.input.data(), l.send_bytes);
    // Guard the input, but not the part of it that an in-place result replaces.
    if (!op.in_place) {
      rank.guard->release(l.send, l.send_bytes);
      rank.guard->keep(l.send, l.send_bytes);
    } else if (op.kind == wccl::Kind::kReduceScatter) {
      const uint64_t end = l.send + l.send_bytes, hole_end = l.recv + l.recv_bytes;
      rank.guard->release(l.send, l.send_bytes);
      if (l.recv > l.send) rank.guard->keep(l.send, l.recv - l.send);
      if (end > hole_end) rank.guard->keep(hole_end, end - hole_end);
    }
  }
}

// Bytes that are not what they must be, over all ranks; `first` tells where the first one is.
uint64_t Runner::check(const wccl::Op& op, std::string& first) {
  const int n = workload_.ranks;
  const uint64_t es = wccl::size_of(op.type);
  uint64_t wrong = 0;

  std::vector<uint8_t> folded;  // the whole reduced vector
  if (op.kind == wccl::Kind::kAllReduce || op.kind == wccl::Kind::kReduceScatter) {
    folded.resize(ranks_[0]->input.size());
    std::vector<std::span<const uint8_t>> parts(static_cast<size_t>(n));
    for (const auto& f : wccl::fold_order(op, n)) {
      for (size_t r = 0; r < parts.size(); ++r)
        parts[r] = std::span<const uint8_t>(ranks_[r]->input).subspan(f.first * es, f.count * es);
      wccl::golden_fold(op, f, {folded.data() + f.first * es, f.count * es}, parts);
    }
  }
  for (int r = 0; r < n; ++r) {
    Rank& rank = *ranks_[static_cast<size_t>(r)];
    Memory& memory = cluster_.memory(static_cast<uint32_t>(r));
    const Layout& l = rank.layout;
    uint64_t at = l.recv;
    auto expect = [&](const uint8_t* want, uint64_t bytes) {
      const uint8_t* got = memory.data(at);
      if (std::memcmp(got, want, bytes) != 0) {
        for (uint64_t i = 0; i < bytes; ++i) {
          if (got[i] == want[i]) continue;
          if (wrong == 0)
            first = fmt::format("rank {}: element {} of the result: byte {:#04x}, expected {:#04x}", r,
                                (at + i - l.recv) / es, got[i], want[i]);
          ++wrong;
        }
      }
      at += bytes;
    };
    auto input = [&](int s) { return ranks_[static_cast<size_t>(s)]->input.data(); };
    if (config_.corrupt_result != 0 && l.recv_bytes != 0)
      for (unsigned i = 0; i < config_.corrupt_result; ++i)
        *memory.data(l.recv + hash(i) % l.recv_bytes) ^= 1;
    switch (op.kind) {
      case wccl::Kind::kAllReduce: expect(folded.data(), l.recv_bytes); break;
      case wccl::Kind::kReduceScatter:
        expect(folded.data() + static_cast<uint64_t>(r) * l.recv_bytes, l.recv_bytes);
        break;
      case wccl::Kind::kAllGather:
        for (int s = 0; s < n; ++s) expect(input(s), op.count * es);
        break;
      case wccl::Kind::kAllToAll:
        for (int s = 0; s < n; ++s)
          expect(input(s) + static_cast<uint64_t>(r) * op.count * es, op.count * es);
        break;
      case wccl::Kind::kAllToAllV:
        for (int s = 0; s < n; ++s) {
          const auto& row = op.send_counts[static_cast<size_t>(s)];
          uint64_t skip = 0;
          for (int p = 0; p < r; ++p) skip += row[static_cast<size_t>(p)];
          expect(input(s) + skip * es, row[static_cast<size_t>(r)] * es);
        }
        break;
      case wccl::Kind::kBroadcast: expect(input(op.root), l.recv_bytes); break;
      case wccl::Kind::kBarrier: break;
    }
    // In front of the result, which a guard zone always is.
    for (unsigned i = 0; i < config_.corrupt_outside && l.recv_bytes != 0; ++i)
      *memory.data(l.recv - 1 - hash(i) % (kGuardBytes / 2)) ^= 1;
    const auto outside = rank.guard->check();
    if (outside.wrong_bytes != 0 && wrong == 0)
      first = fmt::format("rank {}: outside the result: {}", r, outside.text());
    wrong += outside.wrong_bytes;
  }
  return wrong;
}

Result<OpReport> Runner::run(size_t index) {
  const WorkloadOp& item = workload_.ops[index];
  const int n = workload_.ranks;
  OpReport report;
  report.op = item.op;
  report.bytes = size_of_op(item.op, n);

  std::vector<wccl::PlanInfo> infos;
  for (int r = 0; r < n; ++r) {
    Rank& rank = *ranks_[static_cast<size_t>(r)];
    rank.layout = lay_out(item.op, r);
    const Layout& l = rank.layout;
    const wccl::Buffer whole{l.buffer, l.buffer_bytes};
    auto info = item.op.in_place
                    ? rank.comm->describe(item.op, whole, whole)
                    : rank.comm->describe(item.op, {l.send, l.send_bytes}, {l.recv, l.recv_bytes});
    if (!info.ok()) return Status::error(fmt::format("rank {}: {}", r, info.error()));
    infos.push_back(info.take());
  }
  for (auto& rank : ranks_) {
    auto plan = rank->comm->prepare(item.op, infos);
    if (!plan.ok()) return plan.status();
    rank->plan = plan.value();
  }
  auto all = [&](auto in_state) {
    bool yes = true;
    for (auto& rank : ranks_) {
      rank->comm->progress();
      yes = yes && in_state(rank->comm->state(rank->plan));
    }
    return yes;
  };
  auto any_failed = [&] {
    for (auto& rank : ranks_)
      if (rank->comm->state(rank->plan) == wccl::State::kFailed) {
        if (report.failure.empty()) report.failure = rank->comm->failure(rank->plan);
        return true;
      }
    return false;
  };

  if (Status s = wait([&] { return all([](wccl::State st) { return st != wccl::State::kPreparing; }); },
                      "validation of the plans");
      !s.ok())
    return s;
  if (any_failed()) return report;

  auto add_traffic = [&](const TrafficCounts& before) {
    const TrafficCounts more = cluster_.traffic() - before;
    report.traffic.data_packets += more.data_packets;
    report.traffic.lost += more.lost;
    report.traffic.resent += more.resent;
    report.traffic.needless_resent += more.needless_resent;
  };
  double total_ns = 0;
  for (unsigned i = 0; i < item.repeat; ++i) {
    if (item.gap_us > 0)
      if (const RunResult r = cluster_.run_for(static_cast<Ps>(item.gap_us * 1e6)); !r.ok())
        return broken(r, "gap");
    fill(item.op, index, i);
    if (config_.before_run) config_.before_run(index, i);
    const TrafficCounts before = cluster_.traffic();
    const Ps start = cluster_.now_ps();
    for (auto& rank : ranks_)
      if (Status s = rank->comm->start(rank->plan); !s.ok()) return s;
    auto ended = [&] { return all([](wccl::State st) { return st != wccl::State::kRunning; }); };
    const Status end = wait([&] { return ended() || any_failed(); }, wccl::name(item.op.kind));
    if (!end.ok() || any_failed()) {
      // The others wait for what will never come: take their plans back.
      for (auto& rank : ranks_)
        if (rank->comm->state(rank->plan) == wccl::State::kRunning)
          if (Status s = rank->comm->abort(rank->plan); !s.ok()) return s;
      if (!end.ok() && report.failure.empty()) report.failure = end.text();
      add_traffic(before);
      if (Status s = wait(ended, "abort"); !s.ok()) report.failure += "; then " + s.text();
      return report;
    }
    uint64_t last = 0;
    for (auto& rank : ranks_) last = std::max(last, rank->comm->completed_cycles(rank->plan));
    // The node's clock starts when its reset ends.
    total_ns += (static_cast<double>(last + kResetCycles) * static_cast<double>(kClockPs) -
                 static_cast<double>(start)) /
                1000.0;
    add_traffic(before);
    std::string first;
    report.wrong += check(item.op, first);
    if (!first.empty() && report.failure.empty()) report.failure = first;
  }
  for (auto& rank : ranks_) rank->comm->release(rank->plan);
  report.finished = true;
  report.time_ns = total_ns / item.repeat;
  if (report.time_ns > 0) {
    report.algbw_gbps = static_cast<double>(report.bytes) / report.time_ns;
    report.busbw_gbps = report.algbw_gbps * bus_factor(item.op.kind, n);
    report.line_pct = 100 * report.busbw_gbps / (cluster_.scenario().fabric.rate_gbps / 8 * cluster_.ports());
  }
  return report;
}

wccl::Communicator& Runner::communicator(int rank) {
  return *ranks_[static_cast<size_t>(rank)]->comm;
}
Device& Runner::device(int rank) {
  return ranks_[static_cast<size_t>(rank)]->device;
}
uint64_t Runner::heap(int rank) const {
  return cluster_.memory(static_cast<uint32_t>(rank)).base() + kPage + arena_bytes(workload_);
}

Status Runner::settle() {
  const RunResult r = cluster_.settle(static_cast<Ps>(config_.limit_us * 1e6));
  return r.ok() ? Status() : broken(r, "coming to rest");
}

Status Runner::finish() {
  if (Status s = settle(); !s.ok()) return s;
  return cluster_.finish();
}

std::vector<std::pair<std::string, uint64_t>> Runner::counters(uint32_t node) {
  std::vector<std::pair<std::string, uint64_t>> out;
  if (!cluster_.status().ok() || node >= ranks_.size()) return out;
  Device& d = ranks_[node]->device;
  if (cluster_.hal(node).csr_read(regs::kId) == ~uint32_t{0}) return out;
  for (size_t i = 0; i < counters::kNodeCount; ++i)
    out.emplace_back(fmt::format("{}.{}", counters::kNodeInfo[i].block, counters::kNodeInfo[i].event),
                     d.counter(static_cast<unsigned>(i)));
  for (unsigned p = 0; p < d.caps().num_ports; ++p)
    for (size_t i = 0; i < counters::kPortCount; ++i)
      out.emplace_back(
          fmt::format("port{}.{}.{}", p, counters::kPortInfo[i].block, counters::kPortInfo[i].event),
          d.counter(counters::index(static_cast<counters::Port>(i), p)));
  return out;
}

}  // namespace weft::tb
