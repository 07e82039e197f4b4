// SPDX-License-Identifier: Apache-2.0
#include "sw/wccl/communicator.h"

#include <fmt/format.h>

namespace wccl {
namespace {

using weft::Result;
using weft::Status;

constexpr unsigned kRingEntries = 256;
constexpr std::uint64_t kNobody = ~std::uint64_t{0};  // cookie of completions that nobody waits for

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace

Result<std::uint64_t> Communicator::take(std::uint64_t bytes, const char* what) {
  const std::uint64_t at = (arena_next_ + 63) / 64 * 64;
  if (bytes > arena_end_ - at || at > arena_end_)
    return Status::error(fmt::format("rank {}: arena: {} bytes for {} do not fit, {} are left", rank_, bytes,
                                     what, at > arena_end_ ? 0 : arena_end_ - at));
  arena_next_ = at + bytes;
  return at;
}

Result<Communicator> Communicator::create(weft::Device& device, int rank, int ranks,
                                          std::vector<weft::PortAddress> ports, const CommConfig& config) {
  if (ranks < 1 || ranks > kMaxRanks)
    return Status::error(fmt::format("ranks: {}, expected 1 to {}", ranks, kMaxRanks));
  if (rank < 0 || rank >= ranks)
    return Status::error(fmt::format("rank: {}, expected 0 to {}", rank, ranks - 1));
  if (static_cast<unsigned>(ranks) > device.caps().num_conns)
    return Status::error(
        fmt::format("ranks: {}, but the node has {} connections", ranks, device.caps().num_conns));
  if (device.caps().num_sems < static_cast<unsigned>(kSemsPerComm))
    return Status::error(fmt::format("the node has {} semaphores, but a communicator needs {}",
                                     device.caps().num_sems, kSemsPerComm));
  if (device.has_completion_ring())
    return Status::error(
        "the device has a communicator already, whose completion ring, connections and subgraphs these "
        "would be; open it anew");
  Communicator c(device, rank, ranks);
  c.config_ = config;
  c.arena_next_ = config.arena;
  c.arena_end_ = config.arena + config.arena_bytes;
  auto ring = c.take(std::uint64_t{kRingEntries} * weft::wire::Cqe::kBytes, "the completion ring");
  if (!ring.ok()) return ring.status();
  auto scratch = c.take(std::max<std::uint64_t>(config.scratch_bytes, 64), "scratch");
  if (!scratch.ok()) return scratch.status();
  auto region = device.add_region(scratch.value(), std::max<std::uint64_t>(config.scratch_bytes, 64),
                                  {.remote_write = true, .local_read = true, .local_write = true});
  if (!region.ok()) return region.status();
  c.scratch_ = region.value();
  // Last of what may fail: from here on the device is taken.
  if (Status s = device.set_completion_ring(ring.value(), kRingEntries); !s.ok()) {
    device.remove_region(c.scratch_);
    return s;
  }

  c.info_.rank = rank;
  c.info_.ports = std::move(ports);
  c.info_.incarnation = static_cast<std::uint16_t>(mix(config.seed) | 1);
  c.info_.scratch = scratch.value();
  c.info_.scratch_key = c.scratch_.key;
  c.info_.psn.resize(static_cast<std::size_t>(ranks));
  for (int p = 0; p < ranks; ++p)
    for (std::size_t port = 0; port < c.info_.ports.size(); ++port) {
      const std::uint64_t r = mix(mix(config.seed) ^ static_cast<std::uint64_t>(rank) << 40 ^
                                  static_cast<std::uint64_t>(p) << 20 ^ port);
      c.info_.psn[static_cast<std::size_t>(p)].push_back(
          static_cast<std::uint32_t>(config.start_psn >= 0 ? static_cast<std::uint64_t>(config.start_psn)
                                                           : r) &
          0xffffff);
    }
  for (int p = 0; p < ranks; ++p)
    for (Sem s : {Sem::kReduce, Sem::kGather, Sem::kCredit, Sem::kReady})
      device.set_semaphore(sem(s, p), s == Sem::kCredit ? 1 : 0);
  return c;
}

unsigned paths_for(int ranks, unsigned most) {
  const auto peers = static_cast<unsigned>(std::max(1, ranks - 1));
  return std::min(most, std::max(2U, (16 + peers - 1) / peers));
}

Status Communicator::connect(std::span<const RankInfo> all) {
  if (all.size() != static_cast<std::size_t>(ranks_))
    return Status::error(fmt::format("rank {}: {} ranks answered, expected {}", rank_, all.size(), ranks_));
  all_.assign(all.begin(), all.end());
  const auto me = static_cast<std::size_t>(rank_);
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (all[p].rank != static_cast<int>(p))
      return Status::error(fmt::format("rank {}: entry {} is of rank {}", rank_, p, all[p].rank));
    if (p == me) continue;
    // Connection p of this rank ends at connection `rank` of rank p.
    const weft::ConnectionEnd local{static_cast<std::uint16_t>(p), info_.incarnation, info_.ports,
                                    info_.psn[p]};
    const weft::ConnectionEnd remote{static_cast<std::uint16_t>(rank_), all[p].incarnation, all[p].ports,
                                     all[p].psn[me]};
    weft::ConnectionConfig config = config_.connection;
    if (config.paths_per_port == 0) config.paths_per_port = paths_for(ranks_, device_->caps().paths_per_port);
    config.sport =
        static_cast<std::uint16_t>(0xc000 | (mix(static_cast<std::uint64_t>(rank_) * 64 + p) & 0x3f) << 6);
    if (Status s = device_->connect(local, remote, config); !s.ok())
      return Status::error(fmt::format("rank {}, peer {}: {}", rank_, p, s.text()));
  }
  return {};
}

Result<PlanInfo> Communicator::describe(const Op& op, const Buffer& send, const Buffer& recv) {
  if (std::string why = check(op, ranks_); !why.empty()) return Status::error(std::move(why));
  const Sizes need = sizes(op, rank_, ranks_);
  if (need.scratch > config_.scratch_bytes)
    return Status::error(fmt::format("scratch_bytes: {}, but {} of {} elements needs {}",
                                     config_.scratch_bytes, name(op.kind), op.count, need.scratch));
  Buffer in = send, out = recv;
  if (op.in_place) {
    // The caller passes the whole buffer; the other one is a part of it.
    if (op.kind == Kind::kReduceScatter)
      out = {in.addr + in_place_offset(op, rank_), need.recv};
    else
      in = {out.addr + in_place_offset(op, rank_), need.send};
  }
  if (in.bytes < need.send)
    return Status::error(fmt::format("send: {} bytes, {} needs {}", in.bytes, name(op.kind), need.send));
  if (out.bytes < need.recv)
    return Status::error(fmt::format("recv: {} bytes, {} needs {}", out.bytes, name(op.kind), need.recv));
  const auto es = size_of(op.type);
  if (in.addr % es != 0 || out.addr % es != 0)
    return Status::error(fmt::format(
        "send or recv: address {:#x} or {:#x} is no multiple of the element size {}", in.addr, out.addr, es));
  const std::uint64_t overlap_end = std::min(in.addr + need.send, out.addr + need.recv);
  if (!op.in_place && need.send != 0 && need.recv != 0 && std::max(in.addr, out.addr) < overlap_end)
    return Status::error("send and recv overlap, but in_place is false");

  PlanInfo info{op, rank_, {in.addr, out.addr, 0, scratch_.base, scratch_.key}};
  remove(described_);  // of an operation that was described and not prepared
  auto add = [&](std::uint64_t addr, std::uint64_t bytes,
                 const weft::Rights& rights) -> Result<std::uint32_t> {
    if (bytes == 0) return std::uint32_t{0};
    auto r = device_->add_region(addr, bytes, rights);
    if (!r.ok()) {
      remove(described_);
      return r.status();
    }
    described_.push_back(r.value());
    return r.value().key;
  };
  if (op.in_place) {
    // One region, so that every range lies in a single one: reduce_scatter's results lie inside its input.
    const bool whole_in = op.kind == Kind::kReduceScatter;
    auto key =
        add(whole_in ? in.addr : out.addr, whole_in ? need.send : need.recv,
            {.remote_write = op.kind != Kind::kReduceScatter, .local_read = true, .local_write = true});
    if (!key.ok()) return key.status();
    info.memory.recv_key = key.value();
    return info;
  }
  if (auto key = add(in.addr, need.send, {.remote_write = false, .local_read = true, .local_write = false});
      !key.ok())
    return key.status();
  auto key = add(out.addr, need.recv,
                 {.remote_write = op.kind != Kind::kReduceScatter, .local_read = true, .local_write = true});
  if (!key.ok()) return key.status();
  info.memory.recv_key = key.value();
  return info;
}

void Communicator::remove(std::vector<weft::Region>& regions) {
  for (const auto& r : regions) device_->remove_region(r);
  regions.clear();
}

Result<int> Communicator::prepare(const Op& op, std::span<const PlanInfo> all) {
  auto plan = add_plan(op, all);
  if (!plan.ok()) remove(described_);
  return plan;
}

Result<int> Communicator::add_plan(const Op& op, std::span<const PlanInfo> all) {
  if (all.size() != static_cast<std::size_t>(ranks_))
    return Status::error(fmt::format("rank {}: {} ranks answered, expected {}", rank_, all.size(), ranks_));
  for (std::size_t p = 0; p < all.size(); ++p) {
    const Op& o = all[p].op;
    auto differ = [&](const char* what, auto mine, auto theirs) {
      return Status::error(fmt::format("mismatch: rank {} calls {} with {} {}, rank {} with {}", rank_,
                                       name(op.kind), what, mine, p, theirs));
    };
    if (o.kind != op.kind)
      return Status::error(
          fmt::format("mismatch: rank {} calls {}, rank {} calls {}", rank_, name(op.kind), p, name(o.kind)));
    if (o.type != op.type) return differ("type", name(op.type), name(o.type));
    if (o.count != op.count) return differ("count", op.count, o.count);
    if ((op.kind == Kind::kAllReduce || op.kind == Kind::kReduceScatter) && o.redop != op.redop)
      return differ("redop", name(op.redop), name(o.redop));
    if (op.redop == RedOp::kPremulSum && o.scalar != op.scalar)
      return differ("scalar", fmt::format("{:#x}", op.scalar), fmt::format("{:#x}", o.scalar));
    if (op.kind == Kind::kBroadcast && o.root != op.root) return differ("root", op.root, o.root);
    if (choose(o, ranks_) != choose(op, ranks_)) return differ("algo", name(op.algo), name(o.algo));
    if (o.send_counts != op.send_counts)
      return Status::error(fmt::format("mismatch: rank {} and rank {} give different send_counts", rank_, p));
  }
  Target t;
  for (std::size_t p = 0; p < all.size(); ++p) {
    t.memory.push_back(all[p].memory);
    t.conn.push_back(static_cast<std::uint16_t>(p));
  }
  auto wqes = compile(op, rank_, ranks_, t);
  if (!wqes.ok()) return wqes.status();

  std::size_t id = 0;
  while (id < plans_.size() && plans_[id].state != State::kGone) ++id;
  if (id >= device_->caps().num_subgraphs)
    return Status::error(fmt::format("plan: all {} subgraphs of the node are in use", id));
  if (id == plans_.size()) plans_.emplace_back();
  Plan& plan = plans_[id];
  const std::uint64_t bytes = wqes.value().size() * weft::wire::Wqe::kBytes;
  if (plan.room < wqes.value().size()) {  // a slot's room is used again when it is large enough
    auto addr = take(bytes, "the entries of a plan");
    if (!addr.ok()) return addr.status();
    plan.entries_addr = addr.value();
    plan.room = wqes.value().size();
  }
  std::vector<std::uint8_t> image(bytes);
  for (std::size_t i = 0; i < wqes.value().size(); ++i)
    wqes.value()[i].pack(&image[i * weft::wire::Wqe::kBytes]);
  device_->hal().mem_write(plan.entries_addr, image.data(), image.size());
  const std::size_t count = wqes.value().size();
  if (Status s = device_->post_register(static_cast<unsigned>(id), plan.entries_addr,
                                        static_cast<std::uint32_t>(count), id);
      !s.ok())
    return s;
  plan.op = op;
  plan.state = State::kPreparing;
  plan.failure.clear();
  plan.count = count;
  plan.wqes = wqes.take();
  plan.regions = std::move(described_);
  described_.clear();
  return static_cast<int>(id);
}

const Communicator::Plan& Communicator::look(int plan) const {
  static const Plan gone;
  // A negative number becomes one that is too large.
  const auto id = static_cast<std::size_t>(plan);
  return id < plans_.size() && plans_[id].state != State::kGone ? plans_[id] : gone;
}

Status Communicator::start(int plan) {
  if (look(plan).state != State::kReady)
    return Status::error(fmt::format("rank {}: plan {} is not ready", rank_, plan));
  Status s = device_->post_launch(static_cast<unsigned>(plan), static_cast<std::uint64_t>(plan));
  if (s.ok()) plans_[static_cast<std::size_t>(plan)].state = State::kRunning;
  return s;
}

Status Communicator::abort(int plan) {
  if (look(plan).state == State::kGone)
    return Status::error(fmt::format("rank {}: there is no plan {}", rank_, plan));
  return device_->post_abort(static_cast<unsigned>(plan), static_cast<std::uint64_t>(plan));
}

void Communicator::release(int plan) {
  if (look(plan).state == State::kGone) return;
  Plan& p = plans_[static_cast<std::size_t>(plan)];
  // Its entries may be overwritten from now on. The ring has room: a plan at rest has no completion
  // outstanding.
  (void)device_->post_unregister(static_cast<unsigned>(plan), kNobody).ok();
  remove(p.regions);
  p.wqes.clear();
  p.state = State::kGone;
}

void Communicator::explain(Plan& plan, const weft::wire::Cqe& cqe) {
  const char* known = weft::wire::name(cqe.status);
  std::string reason = known ? known : "unknown status";
  if (cqe.status == weft::wire::Err::RETRY_LIMIT)
    reason += fmt::format(" ({} probes unanswered)", device_->transport().retry_limit);
  std::string where = fmt::format("entry {}", cqe.entry);
  if (cqe.entry < plan.wqes.size()) {
    const auto& w = plan.wqes[cqe.entry];
    where += fmt::format(" ({}", weft::wire::name(w.opcode));
    if (w.opcode == weft::wire::WqeOp::WRITE)
      where += fmt::format(" of {} bytes to rank {}", w.length, w.conn);
    where += ")";
  }
  plan.failure = fmt::format("rank {}: {}: {}: {}", rank_, name(plan.op.kind), where, reason);
  plan.state = State::kFailed;
}

void Communicator::progress() {
  weft::wire::Cqe e;
  while (device_->poll(&e)) {
    if (e.cookie >= plans_.size()) continue;
    Plan& p = plans_[e.cookie];
    if (e.op == weft::wire::DbOp::REGISTER && p.state == State::kPreparing) {
      if (e.status == weft::wire::Err::OK)
        p.state = State::kReady;
      else
        explain(p, e);
    } else if (e.op == weft::wire::DbOp::LAUNCH && p.state == State::kRunning) {
      p.completed_cycles = e.cycles;
      if (e.status == weft::wire::Err::OK)
        p.state = State::kReady;
      else
        explain(p, e);
    }
  }
}

}  // namespace wccl
