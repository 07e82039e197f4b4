// SPDX-License-Identifier: Apache-2.0
#include "sw/wccl/communicator.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace wccl {
namespace {

using weft::Result;
using weft::Status;
using weft::wire::DbOp;
using weft::wire::Err;
using weft::wire::Notice;
using weft::wire::NoticeState;
using weft::wire::Wqe;

constexpr unsigned kRingEntries = 256;
constexpr unsigned kGroup = 1;  // order group of the starts: a device serves one communicator
// Cookies: of a plan its place and the generation of that place; of what is told to a peer this and the peer.
constexpr std::uint64_t kNobody = ~std::uint64_t{0};  // of completions that nobody waits for
constexpr std::uint32_t kTold = 0x8000'0000;
// A node that works ends what is aborted as soon as the transport has given up what is under way of it.
constexpr std::uint64_t kAnswerNs = 1'000'000'000;

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

bool reduces(Kind k) {
  return k == Kind::kAllReduce || k == Kind::kReduceScatter;
}

std::uint64_t ns(double us) {
  return static_cast<std::uint64_t>(us * 1000);
}

bool same(const RankMemory& a, const RankMemory& b) {
  return a.send == b.send && a.recv == b.recv && a.recv_key == b.recv_key && a.scratch == b.scratch &&
         a.scratch_key == b.scratch_key;
}

}  // namespace

Result<std::uint64_t> Communicator::take(std::uint64_t bytes, const char* what) {
  const std::uint64_t at = (arena_next_ + 63) / 64 * 64;
  if (at > arena_end_ || bytes > arena_end_ - at)
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
  if (device.caps().num_subgraphs <= static_cast<unsigned>(ranks))
    return Status::error(fmt::format("ranks: {}, but the node has {} subgraphs, expected more than ranks",
                                     ranks, device.caps().num_subgraphs));
  if (ports.size() != device.caps().num_ports)
    return Status::error(
        fmt::format("ports: {} addresses, but the node has {} ports", ports.size(), device.caps().num_ports));
  if (!(config.watchdog_us >= 0 && config.watchdog_us <= 1e12) ||
      !(config.tell_us >= 0 && config.tell_us <= 1e12))
    return Status::error(fmt::format("watchdog_us or tell_us: {} or {}, expected 0 (never) to 1e12",
                                     config.watchdog_us, config.tell_us));
  if (device.has_completion_ring())
    return Status::error(
        "the device has a communicator already, whose completion ring, connections and subgraphs these "
        "would be; open it anew");
  Communicator c(device, rank, ranks);
  c.config_ = config;
  c.arena_next_ = config.arena;
  c.arena_end_ = config.arena + config.arena_bytes;
  const auto n = static_cast<std::uint64_t>(ranks);
  auto ring = c.take(std::uint64_t{kRingEntries} * weft::wire::Cqe::kBytes, "the completion ring");
  if (!ring.ok()) return ring.status();
  // What peers write: their notices, then their contributions. What they are told lies behind, unreachable.
  const std::uint64_t scratch_bytes = std::max<std::uint64_t>(config.scratch_bytes, 64);
  auto notices = c.take(n * Notice::kBytes, "the notices of the peers");
  if (!notices.ok()) return notices.status();
  auto scratch = c.take(scratch_bytes, "scratch");
  if (!scratch.ok()) return scratch.status();
  auto outbox = c.take(Notice::kBytes + n * Wqe::kBytes, "notices");
  if (!outbox.ok()) return outbox.status();
  c.outbox_ = outbox.value();
  c.outbox_entries_ = c.outbox_ + Notice::kBytes;
  auto told = device.add_region(c.outbox_, Notice::kBytes, {.local_read = true});
  if (!told.ok()) return told.status();
  auto region = device.add_region(notices.value(), scratch.value() + scratch_bytes - notices.value(),
                                  {.remote_write = true, .local_read = true, .local_write = true});
  // The completion ring is last of what may fail: from then on the device is taken.
  Status s = region.status();
  if (region.ok()) {
    c.scratch_ = region.value();
    s = device.set_completion_ring(ring.value(), kRingEntries);
    if (!s.ok()) device.remove_region(c.scratch_);
  }
  if (!s.ok()) {
    device.remove_region(told.value());
    return s;
  }

  c.info_.rank = rank;
  c.info_.ranks = ranks;
  c.info_.ports = std::move(ports);
  c.info_.notices = notices.value();
  c.info_.scratch = scratch.value();
  c.info_.scratch_key = c.scratch_.key;
  c.slots_.assign(device.caps().num_subgraphs - static_cast<unsigned>(ranks), kNone);
  c.peers_.resize(static_cast<std::size_t>(ranks));
  // The clock of the node goes on when the node is opened anew, at least by what a reset takes.
  c.new_life(device.opened_at() >> 10);
  return c;
}

// PSNs and incarnations are others in each life, until incarnations come again: after a tenth of a second,
// which no packet of the former life survives.
void Communicator::new_life(std::uint64_t life) {
  life_ = life;
  info_.life = static_cast<std::uint16_t>(life % kIncarnations);
  info_.psn.assign(static_cast<std::size_t>(ranks_), {});
  for (int p = 0; p < ranks_; ++p)
    for (std::size_t port = 0; port < info_.ports.size(); ++port) {
      const std::uint64_t r = mix(mix(config_.seed) ^ static_cast<std::uint64_t>(rank_) << 40 ^
                                  static_cast<std::uint64_t>(p) << 20 ^ port);
      const std::uint64_t psn = config_.start_psn >= 0 ? static_cast<std::uint64_t>(config_.start_psn)
                                                       : r + life * 0x9e3779b1u;  // odd
      info_.psn[static_cast<std::size_t>(p)].push_back(static_cast<std::uint32_t>(psn & 0xffffff));
    }
}

unsigned paths_for(int ranks, unsigned most) {
  const auto peers = static_cast<unsigned>(std::max(1, ranks - 1));
  return std::min(most, std::max(2U, (16 + peers - 1) / peers));
}

Status Communicator::connect(std::span<const RankInfo> all) {
  if (all.size() != static_cast<std::size_t>(ranks_))
    return Status::error(fmt::format("rank {}: {} ranks answered, expected {}", rank_, all.size(), ranks_));
  if (connected_)
    return Status::error(
        fmt::format("rank {}: the communicator is connected; repair() begins a new life", rank_));
  const auto me = static_cast<std::size_t>(rank_);
  const std::size_t ports = info_.ports.size();
  for (std::size_t p = 0; p < all.size(); ++p) {
    const RankInfo& a = all[p];
    if (a.rank != static_cast<int>(p))
      return Status::error(fmt::format("rank {}: entry {} is of rank {}", rank_, p, a.rank));
    if (a.ranks != ranks_)
      return Status::error(
          fmt::format("rank {}: rank {} is one of {} ranks, expected {}", rank_, p, a.ranks, ranks_));
    if (a.ports.size() != ports)
      return Status::error(fmt::format("rank {}: rank {} has {} ports, this node {}: they must be as many",
                                       rank_, p, a.ports.size(), ports));
    if (a.psn.size() != all.size())
      return Status::error(fmt::format("rank {}: rank {} tells PSNs for {} ranks, expected {}", rank_, p,
                                       a.psn.size(), ranks_));
    for (const auto& psn : a.psn)
      if (psn.size() != ports)
        return Status::error(
            fmt::format("rank {}: rank {} tells PSNs of {} ports, expected {}", rank_, p, psn.size(), ports));
  }
  if (all[me].life != info_.life || all[me].psn != info_.psn || all[me].scratch_key != info_.scratch_key)
    return Status::error(fmt::format("rank {}: entry {} is not what this rank told last", rank_, rank_));
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (p == me) continue;
    // The two ends must agree, and differ from their last life whichever of them has a new one.
    const auto incarnation = static_cast<std::uint16_t>(
        1 + (mix(config_.seed) % kIncarnations + all[p].life + all[me].life) % kIncarnations);
    // Connection p of this rank ends at connection `rank` of rank p.
    const weft::ConnectionEnd local{static_cast<std::uint16_t>(p), incarnation, info_.ports, info_.psn[p]};
    const weft::ConnectionEnd remote{static_cast<std::uint16_t>(rank_), incarnation, all[p].ports,
                                     all[p].psn[me]};
    weft::ConnectionConfig config = config_.connection;
    if (config.paths_per_port == 0) config.paths_per_port = paths_for(ranks_, device_->caps().paths_per_port);
    config.sport =
        static_cast<std::uint16_t>(0xc000 | (mix(static_cast<std::uint64_t>(rank_) * 64 + p) & 0x3f) << 6);
    if (Status s = device_->connect(local, remote, config); !s.ok())
      return Status::error(fmt::format("rank {}, peer {}: {}", rank_, p, s.text()));
  }
  // Behind the connections: what is still under way of a former life can raise no semaphore any more.
  for (int p = 0; p < ranks_; ++p)
    for (Sem s : {Sem::kReduce, Sem::kGather, Sem::kCredit, Sem::kStart, Sem::kCheck})
      device_->set_semaphore(sem(s, p), s == Sem::kCredit ? 1 : 0);
  std::string anew;  // of a rank whose memory is not what the plans know
  for (std::size_t p = 0; p < all_.size(); ++p)
    if (all_[p].scratch_key != all[p].scratch_key || all_[p].scratch != all[p].scratch)
      anew = fmt::format("rank {}: rank {} has begun anew: prepare this plan again", rank_, p);
  for (Plan& plan : plans_) {
    if (plan.state == State::kGone || plan.released) continue;
    if (!anew.empty()) {
      plan.accepted = false;
      plan.state = State::kFailed;
      plan.failure = anew;
    } else if (plan.state == State::kFailed && plan.accepted) {
      plan.state = State::kReady;
      plan.failure.clear();
    }
  }
  const std::vector<std::uint8_t> nothing(static_cast<std::size_t>(ranks_) * Notice::kBytes);
  device_->hal().mem_write(info_.notices, nothing.data(), nothing.size());
  all_.assign(all.begin(), all.end());
  for (int p = 0; p < ranks_; ++p) {
    peers_[static_cast<std::size_t>(p)] = {};
    Wqe w;
    w.opcode = weft::wire::WqeOp::WRITE;
    w.conn = static_cast<std::uint16_t>(p);
    w.src0 = outbox_;
    w.dst = all_[static_cast<std::size_t>(p)].notices + static_cast<std::uint64_t>(rank_) * Notice::kBytes;
    w.rkey = all_[static_cast<std::size_t>(p)].scratch_key;
    w.length = Notice::kBytes;
    std::uint8_t bytes[Wqe::kBytes];
    w.pack(bytes);
    device_->hal().mem_write(outbox_entries_ + static_cast<std::uint64_t>(p) * Wqe::kBytes, bytes,
                             sizeof bytes);
  }
  starts_ever_ = 0;
  failed_.clear();
  timed_out_ = false;
  connected_ = true;
  return {};
}

Result<RankInfo> Communicator::repair() {
  if (dead_) return Status::error(fmt::format("rank {}: the node does not answer: open it anew", rank_));
  for (const Start& s : starts_)
    return Status::error(fmt::format("rank {}: {} still ends; repair it then", rank_,
                                     text(plans_[static_cast<std::size_t>(s.plan)])));
  for (int p = 0; p < ranks_; ++p)
    if (peers_[static_cast<std::size_t>(p)].busy)
      return Status::error(fmt::format("rank {}: what rank {} is told still ends; repair it then", rank_, p));
  connected_ = false;
  new_life(life_ + 1);
  return info_;
}

// ---- memory and plans

Status Communicator::add_memory(const Buffer& memory) {
  auto region = device_->add_region(memory.addr, memory.bytes,
                                    {.remote_write = true, .local_read = true, .local_write = true});
  if (!region.ok()) return region.status();
  regions_.push_back({region.value(), 0, true});
  return {};
}

Result<unsigned> Communicator::use_region(std::uint64_t addr, std::uint64_t bytes,
                                          const weft::Rights& rights) {
  unsigned unused = static_cast<unsigned>(regions_.size());
  for (unsigned i = 0; i < regions_.size(); ++i) {
    Shared& s = regions_[i];
    if (s.users == 0 && !s.stays) {
      unused = i;
      continue;
    }
    const bool inside = addr >= s.region.base && addr + bytes <= s.region.base + s.region.size;
    const bool alike = addr == s.region.base && bytes == s.region.size && s.region.rights == rights;
    if (!(s.stays ? inside : alike)) continue;
    ++s.users;
    return i;
  }
  auto made = device_->add_region(addr, bytes, rights);
  if (!made.ok()) return made.status();
  if (unused == regions_.size()) regions_.emplace_back();
  regions_[unused] = {made.value(), 1, false};
  return unused;
}

void Communicator::drop(std::vector<unsigned>& regions) {
  for (unsigned i : regions)
    if (--regions_[i].users == 0 && !regions_[i].stays) device_->remove_region(regions_[i].region);
  regions.clear();
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

  PlanInfo info{op, rank_, next_number_, {in.addr, out.addr, 0, info_.scratch, scratch_.key}};
  drop(described_);  // of an operation that was described and not prepared
  is_described_ = false;
  auto add = [&](std::uint64_t addr, std::uint64_t bytes,
                 const weft::Rights& rights) -> Result<std::uint32_t> {
    if (bytes == 0) return std::uint32_t{0};
    auto r = use_region(addr, bytes, rights);
    if (!r.ok()) {
      drop(described_);
      return r.status();
    }
    described_.push_back(r.value());
    return regions_[r.value()].region.key;
  };
  if (op.in_place) {
    // One region, so that every range lies in a single one: reduce_scatter's results lie inside its input.
    const bool whole_in = op.kind == Kind::kReduceScatter;
    auto key =
        add(whole_in ? in.addr : out.addr, whole_in ? need.send : need.recv,
            {.remote_write = op.kind != Kind::kReduceScatter, .local_read = true, .local_write = true});
    if (!key.ok()) return key.status();
    info.memory.recv_key = key.value();
  } else {
    if (auto key = add(in.addr, need.send, {.remote_write = false, .local_read = true, .local_write = false});
        !key.ok())
      return key.status();
    auto key =
        add(out.addr, need.recv,
            {.remote_write = op.kind != Kind::kReduceScatter, .local_read = true, .local_write = true});
    if (!key.ok()) return key.status();
    info.memory.recv_key = key.value();
  }
  described_info_ = info;
  is_described_ = true;
  return info;
}

Result<int> Communicator::prepare(const Op& op, std::span<const PlanInfo> all) {
  auto plan = add_plan(op, all);
  if (!plan.ok()) drop(described_);
  is_described_ = false;
  return plan;
}

// Whether the ranks call different operations.
Status Communicator::differ(const Op& op, std::span<const PlanInfo> all) const {
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
    if (reduces(op.kind) && o.redop != op.redop) return differ("redop", name(op.redop), name(o.redop));
    if (reduces(op.kind) && op.redop == RedOp::kPremulSum && o.scalar != op.scalar)
      return differ("scalar", fmt::format("{:#x}", op.scalar), fmt::format("{:#x}", o.scalar));
    if (op.kind == Kind::kBroadcast && o.root != op.root) return differ("root", op.root, o.root);
    if (choose(o, ranks_) != choose(op, ranks_)) return differ("algo", name(op.algo), name(o.algo));
    if (o.send_counts != op.send_counts)
      return Status::error(fmt::format("mismatch: rank {} and rank {} give different send_counts", rank_, p));
  }
  return {};
}

Result<int> Communicator::add_plan(const Op& op, std::span<const PlanInfo> all) {
  if (!connected_) return Status::error(fmt::format("rank {}: prepare before connect", rank_));
  if (all.size() != static_cast<std::size_t>(ranks_))
    return Status::error(fmt::format("rank {}: {} ranks answered, expected {}", rank_, all.size(), ranks_));
  for (std::size_t p = 0; p < all.size(); ++p)
    if (all[p].rank != static_cast<int>(p))
      return Status::error(fmt::format("rank {}: entry {} is of rank {}", rank_, p, all[p].rank));
  if (Status s = differ(op, all); !s.ok()) return s;
  const PlanInfo& mine = all[static_cast<std::size_t>(rank_)];
  if (!is_described_ || mine.number != described_info_.number || !same(mine.memory, described_info_.memory))
    return Status::error(fmt::format("rank {}: entry {} is not what this rank described last", rank_, rank_));
  Target t;
  std::uint64_t number = 0;
  for (std::size_t p = 0; p < all.size(); ++p) {
    t.memory.push_back(all[p].memory);
    t.conn.push_back(static_cast<std::uint16_t>(p));
    number = std::max(number, all[p].number);
  }
  if (number >= kPlanNumbers)
    return Status::error(
        fmt::format("plan: number {}, expected below {}: open the devices anew", number, kPlanNumbers));
  t.number = static_cast<std::uint32_t>(number);
  auto wqes = compile(op, rank_, ranks_, t);
  if (!wqes.ok()) return wqes.status();

  std::size_t id = 0;
  while (id < plans_.size() && plans_[id].state != State::kGone) ++id;
  if (id == plans_.size()) plans_.emplace_back();
  Plan& plan = plans_[id];
  const std::size_t count = wqes.value().size();
  if (plan.room < count) {  // a place's room is used again when it is large enough
    auto addr = take(count * Wqe::kBytes, "the entries of a plan");
    if (!addr.ok()) return addr.status();
    plan.entries_addr = addr.value();
    plan.room = count;
  }
  std::vector<std::uint8_t> image(count * Wqe::kBytes);
  for (std::size_t i = 0; i < count; ++i) wqes.value()[i].pack(&image[i * Wqe::kBytes]);
  device_->hal().mem_write(plan.entries_addr, image.data(), image.size());
  next_number_ = number + 1;  // the same at all ranks, and above all that any of them has used
  ++plan.generation;
  plan.op = op;
  plan.state = State::kPreparing;
  plan.failure.clear();
  plan.completed_cycles = 0;
  plan.number = t.number;
  plan.count = count;
  plan.wqes = wqes.take();
  plan.regions = std::move(described_);
  plan.accepted = false;
  plan.wanted = true;
  plan.used = starts_ever_;
  described_.clear();
  pump();
  return static_cast<int>(id);
}

const Communicator::Plan& Communicator::look(int plan) const {
  static const Plan gone;
  // A negative number becomes one that is too large.
  const auto id = static_cast<std::size_t>(plan);
  return id < plans_.size() && plans_[id].state != State::kGone && !plans_[id].released ? plans_[id] : gone;
}

Status Communicator::start(int plan) {
  const Plan& p = look(plan);
  if (!failed_.empty())
    return Status::error(fmt::format("rank {}: the communicator has failed, repair it: {}", rank_, failed_));
  if (p.state != State::kReady)
    return Status::error(fmt::format("rank {}: plan {} is not ready", rank_, plan));
  if (starts_.empty()) since_ns_ = told_ns_ = device_->hal().now_ns();
  plans_[static_cast<std::size_t>(plan)].state = State::kRunning;
  plans_[static_cast<std::size_t>(plan)].used = ++starts_ever_;
  starts_.push_back({plan, starts_ever_});
  pump();
  return {};
}

Status Communicator::abort(int plan) {
  const Plan& p = look(plan);
  if (p.state == State::kGone) return Status::error(fmt::format("rank {}: there is no plan {}", rank_, plan));
  if (p.state != State::kRunning)
    return Status::error(fmt::format("rank {}: plan {} does not run", rank_, plan));
  for (Start& s : starts_)
    if (s.plan == plan) s.aborting = true;
  pump();
  return {};
}

void Communicator::release(int plan) {
  if (look(plan).state == State::kGone) return;
  Plan& p = plans_[static_cast<std::size_t>(plan)];
  p.released = true;
  p.wanted = false;
  if (p.state == State::kRunning) {
    for (Start& s : starts_)
      if (s.plan == plan) s.aborting = true;
    pump();
    return;
  }
  if (!p.loading) free(p);
}

// The node has done with it.
void Communicator::free(Plan& plan) {
  if (plan.slot != kNone) {
    // Without room for the completion it stays registered, which harms nobody: nothing starts it, and the
    // next plan that takes the subgraph registers over it.
    (void)device_->post_unregister(static_cast<unsigned>(plan.slot), kNobody).ok();
    slots_[static_cast<std::size_t>(plan.slot)] = kNone;
  }
  plan.slot = kNone;
  drop(plan.regions);
  plan.wqes.clear();
  plan.state = State::kGone;
  plan.released = plan.accepted = plan.loading = plan.wanted = false;
}

// ---- doorbells

std::uint64_t Communicator::cookie(int plan) const {
  return std::uint64_t{plans_[static_cast<std::size_t>(plan)].generation} << 32 |
         static_cast<std::uint32_t>(plan);
}

Communicator::Plan* Communicator::of_cookie(std::uint64_t cookie) {
  const auto id = static_cast<std::uint32_t>(cookie);
  if (id >= plans_.size() || plans_[id].generation != cookie >> 32) return nullptr;
  return plans_[id].state == State::kGone ? nullptr : &plans_[id];
}

bool Communicator::is_started(int plan) const {
  return std::any_of(starts_.begin(), starts_.end(), [&](const Start& s) { return s.plan == plan; });
}

// A subgraph for another plan: one that has none, else that of the plan that has not run for longest.
int Communicator::free_slot() {
  int best = kNone;
  std::uint64_t oldest = ~std::uint64_t{0};
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s] == kNone) return static_cast<int>(s);
    const Plan& p = plans_[static_cast<std::size_t>(slots_[s])];
    if (p.loading || p.used >= oldest || is_started(slots_[s])) continue;
    oldest = p.used;
    best = static_cast<int>(s);
  }
  return best;
}

// Has the node validate the plan and keep it; whether the doorbell was rung.
bool Communicator::load(int plan) {
  const int slot = free_slot();
  if (slot == kNone) return false;
  Plan& p = plans_[static_cast<std::size_t>(plan)];
  if (!device_
           ->post_register(static_cast<unsigned>(slot), p.entries_addr, static_cast<std::uint32_t>(p.count),
                           cookie(plan))
           .ok())
    return false;
  int& holder = slots_[static_cast<std::size_t>(slot)];
  if (holder != kNone) plans_[static_cast<std::size_t>(holder)].slot = kNone;
  holder = plan;
  p.slot = slot;
  p.loading = true;
  p.wanted = false;
  return true;
}

// Rings whatever may be rung. A doorbell for whose completion the ring has no room now is rung later.
void Communicator::pump() {
  if (!connected_ || dead_) return;
  for (int p = 0; p < ranks_ && !plans_.empty(); ++p) {  // the firmware runs when there is a plan
    Peer& peer = peers_[static_cast<std::size_t>(p)];
    if (p == rank_ || peer.loaded || peer.busy) continue;
    const std::uint64_t at = outbox_entries_ + static_cast<std::uint64_t>(p) * Wqe::kBytes;
    peer.busy = device_
                    ->post_register(static_cast<unsigned>(slots_.size()) + static_cast<unsigned>(p), at, 1,
                                    std::uint64_t{kTold | static_cast<std::uint32_t>(p)})
                    .ok();
  }
  // Aborts come before all that could keep them from the ring.
  for (Start& s : starts_) {
    if (!s.aborting || s.aborted || !s.posted) continue;
    const Plan& p = plans_[static_cast<std::size_t>(s.plan)];
    s.aborted = device_->post_abort(static_cast<unsigned>(p.slot), kNobody).ok();
  }
  // What was to be aborted and had not begun fails here; all behind it do, too.
  const auto halted =
      std::find_if(starts_.begin(), starts_.end(), [](const Start& s) { return s.aborting && !s.posted; });
  if (halted != starts_.end() && failed_.empty())
    return fail(fmt::format("rank {}: {}: aborted before it began", rank_,
                            text(plans_[static_cast<std::size_t>(halted->plan)])));
  for (std::size_t id = 0; id < plans_.size(); ++id)
    if (plans_[id].wanted && !load(static_cast<int>(id))) break;
  if (!failed_.empty()) return;
  for (Start& s : starts_) {
    if (s.posted) continue;
    const Plan& p = plans_[static_cast<std::size_t>(s.plan)];
    if (p.loading) break;
    if (p.slot == kNone) {
      load(s.plan);
      break;  // those behind it wait: the order is what all ranks have agreed on
    }
    s.posted = device_->post_launch(static_cast<unsigned>(p.slot), cookie(s.plan), kGroup).ok();
    if (!s.posted) break;
  }
}

// ---- completions

std::string Communicator::text(const Plan& plan) const {
  const Op& op = plan.op;
  std::string t = name(op.kind);
  if (op.kind == Kind::kAllToAllV)
    t += fmt::format(" of {}", name(op.type));
  else if (op.kind != Kind::kBarrier)
    t += fmt::format(" of {} {}", op.count, name(op.type));
  if (reduces(op.kind)) t += fmt::format(", {}", name(op.redop));
  if (op.kind == Kind::kBroadcast) t += fmt::format(" from rank {}", op.root);
  return t + fmt::format(" (plan {})", plan.number);
}

std::string Communicator::status_text(Err status) const {
  const char* known = weft::wire::name(status);
  std::string t = known ? known : fmt::format("status {}", static_cast<unsigned>(status));
  if (status == Err::RETRY_LIMIT)
    t += fmt::format(" ({} probes unanswered)", device_->transport().retry_limit);
  return t;
}

std::string Communicator::entry_text(const Wqe& w) const {
  using weft::wire::WqeOp;
  std::string t = weft::wire::name(w.opcode) ? weft::wire::name(w.opcode) : "?";
  if (w.opcode == WqeOp::WRITE)
    t += fmt::format(" of {} bytes to rank {}", w.length, w.conn);
  else if (w.opcode == WqeOp::WAIT)
    t += fmt::format(" for {} of rank {}", name(static_cast<Sem>(w.sem / kMaxRanks)), w.sem % kMaxRanks);
  else if (w.opcode == WqeOp::REDUCE)
    t += fmt::format(" of {} bytes", w.length);
  return t;
}

std::string Communicator::explain(const Plan& plan, const weft::wire::Cqe& e) const {
  const std::string who = fmt::format("rank {}: {}", rank_, name(plan.op.kind));
  // Of the doorbell itself, not of an entry: BAD_FLAGS of an entry is found at its REGISTER.
  if (e.status == Err::BAD_SUBGRAPH || (e.op == DbOp::LAUNCH && e.status == Err::BAD_FLAGS))
    return fmt::format("{}: the node refuses to {} subgraph {}: {}", who,
                       e.op == DbOp::LAUNCH ? "launch" : "register", e.subgraph, status_text(e.status));
  std::string where = fmt::format("entry {}", e.entry);
  if (e.entry < plan.wqes.size()) where += fmt::format(" ({})", entry_text(plan.wqes[e.entry]));
  return fmt::format("{}: {}: {}", who, where, status_text(e.status));
}

void Communicator::take_in(const weft::wire::Cqe& e) {
  if (e.cookie == kNobody) return;
  const auto low = static_cast<std::uint32_t>(e.cookie);
  if ((low & kTold) != 0) {
    const auto p = static_cast<int>(low & ~kTold);
    if (p >= ranks_) return;
    Peer& peer = peers_[static_cast<std::size_t>(p)];
    peer.busy = false;
    if (e.op == DbOp::REGISTER) peer.loaded = true;  // if it was refused, its launches tell
    if (e.op == DbOp::LAUNCH && e.status != Err::OK) {
      peer.tell_again = false;
      fail(fmt::format("rank {}: rank {} cannot be told anything: {}", rank_, p, status_text(e.status)));
    } else if (peer.tell_again) {
      tell_peer(p);
    }
    return;
  }
  Plan* plan = of_cookie(e.cookie);
  if (plan == nullptr) return;
  if (e.op == DbOp::LAUNCH) return ended(static_cast<int>(low), e);
  if (e.op != DbOp::REGISTER || !plan->loading) return;
  plan->loading = false;
  if (e.status != Err::OK) {
    plan->failure = explain(*plan, e);
    slots_[static_cast<std::size_t>(plan->slot)] = kNone;
    plan->slot = kNone;
    plan->accepted = false;
    if (plan->state == State::kRunning) {  // it had been accepted before
      const auto s = std::find_if(starts_.begin(), starts_.end(),
                                  [&](const Start& x) { return x.plan == static_cast<int>(low); });
      if (s != starts_.end()) starts_.erase(s);
      plan->state = State::kFailed;
      fail(plan->failure);
    }
    plan->state = State::kFailed;
  } else {
    plan->accepted = true;
    if (plan->state == State::kPreparing) plan->state = State::kReady;
  }
  if (plan->released && plan->state != State::kRunning) free(*plan);
}

// A LAUNCH has ended.
void Communicator::ended(int id, const weft::wire::Cqe& e) {
  const auto at =
      std::find_if(starts_.begin(), starts_.end(), [&](const Start& s) { return s.plan == id && s.posted; });
  if (at == starts_.end()) return;
  const bool aborting = at->aborting, front = at == starts_.begin();
  starts_.erase(at);
  if (front) since_ns_ = told_ns_ = device_->hal().now_ns();
  Plan& plan = plans_[static_cast<std::size_t>(id)];
  plan.completed_cycles = e.cycles;
  plan.state = State::kReady;
  if (e.status != Err::OK) {
    plan.state = State::kFailed;
    plan.failure = explain(plan, e);
    const bool given_up = e.status == Err::FLUSHED && aborting;
    if (given_up && timed_out_ && front)
      plan.failure += fmt::format(", not done after {:.0f} us", config_.watchdog_us);
    else if (given_up && !failed_.empty())
      plan.failure += ", given up: " + failed_;
    else if (given_up)
      plan.failure += ", aborted by the host";
    fail(plan.failure);
  } else if (!failed_.empty()) {
    // The others have given up, or had other plans in mind: what this one gave cannot be relied on.
    plan.state = State::kFailed;
    plan.failure = fmt::format("rank {}: {}: ended, but given up: {}", rank_, name(plan.op.kind), failed_);
  }
  if (front) timed_out_ = false;
  if (plan.released) free(plan);
}

// ---- failure

// The communicator is of no use any more: takes back what runs here, and tells the others.
void Communicator::fail(const std::string& why) {
  if (!failed_.empty()) return;
  failed_ = why;
  since_ns_ = device_->hal().now_ns();
  std::deque<Start> running;
  for (Start& s : starts_) {
    s.aborting = true;
    if (s.posted) {
      running.push_back(s);
      continue;
    }
    Plan& plan = plans_[static_cast<std::size_t>(s.plan)];
    plan.state = State::kFailed;
    plan.failure = fmt::format("rank {}: {}: not begun, given up: {}", rank_, name(plan.op.kind), why);
    if (plan.released && !plan.loading) free(plan);
  }
  starts_ = std::move(running);
  tell(NoticeState::FAILED, why);
  pump();
}

void Communicator::tell(NoticeState state, const std::string& what) {
  told_ns_ = device_->hal().now_ns();
  Notice n;
  n.serial = n.again = ++serial_;
  n.state = state;
  if (!starts_.empty()) {
    n.start = starts_.front().number;
    n.plan = plans_[static_cast<std::size_t>(starts_.front().plan)].number;
  }
  n.length = static_cast<std::uint16_t>(std::min(what.size(), n.text.size()));
  std::copy_n(what.begin(), n.length, n.text.begin());
  std::uint8_t bytes[Notice::kBytes];
  n.pack(bytes);
  device_->hal().mem_write(outbox_, bytes, sizeof bytes);
  for (int p = 0; p < ranks_; ++p)
    if (p != rank_) tell_peer(p);
}

void Communicator::tell_peer(int p) {
  Peer& peer = peers_[static_cast<std::size_t>(p)];
  peer.tell_again = true;
  if (peer.busy || !peer.loaded) return;
  peer.busy = device_
                  ->post_launch(static_cast<unsigned>(slots_.size()) + static_cast<unsigned>(p),
                                std::uint64_t{kTold | static_cast<std::uint32_t>(p)})
                  .ok();
  peer.tell_again = !peer.busy;
}

void Communicator::read_notices() {
  for (int p = 0; p < ranks_; ++p) {
    if (p == rank_) continue;
    Peer& peer = peers_[static_cast<std::size_t>(p)];
    std::uint8_t bytes[Notice::kBytes];
    const std::uint64_t at = info_.notices + static_cast<std::uint64_t>(p) * Notice::kBytes;
    device_->hal().mem_read(at, bytes, 4);
    std::uint32_t serial = 0;
    for (int i = 3; i >= 0; --i) serial = serial << 8 | bytes[i];
    if (serial == peer.seen) continue;
    device_->hal().mem_read(at, bytes, sizeof bytes);
    const Notice n = Notice::unpack(bytes);
    if (n.serial != n.again || n.length > n.text.size()) continue;  // not whole yet
    peer.seen = n.serial;
    peer.notice = n;
    if (n.state == NoticeState::FAILED)
      fail(fmt::format("rank {} has failed: {}", p, std::string(n.text.begin(), n.text.begin() + n.length)));
  }
}

// Whether a peer runs another plan than this rank in the same place of their order.
void Communicator::compare() {
  if (starts_.empty() || !failed_.empty()) return;
  const Start& s = starts_.front();
  const Plan& mine = plans_[static_cast<std::size_t>(s.plan)];
  for (int p = 0; p < ranks_; ++p) {
    const Notice& n = peers_[static_cast<std::size_t>(p)].notice;
    if (n.state != NoticeState::RUNS || n.start != s.number || n.plan == mine.number) continue;
    return fail(fmt::format("mismatch: start {}: rank {} runs {}, rank {} {}", s.number, rank_, text(mine), p,
                            std::string(n.text.begin(), n.text.begin() + n.length)));
  }
}

void Communicator::watch() {
  if (starts_.empty()) return;
  const std::uint64_t now = device_->hal().now_ns(), limit = ns(config_.watchdog_us);
  Start& s = starts_.front();
  const Plan& plan = plans_[static_cast<std::size_t>(s.plan)];
  const bool giving_up = !failed_.empty() || timed_out_;
  if (limit != 0 && now - since_ns_ >= (giving_up ? std::max(limit, kAnswerNs) : limit)) {
    if (!giving_up) {
      timed_out_ = s.aborting = true;  // the completion tells at which entry it stood
      since_ns_ = now;
      if (!s.posted)
        fail(fmt::format("rank {}: {}: not registered after {:.0f} us", rank_, name(plan.op.kind),
                         config_.watchdog_us));
      return pump();
    }
    // It does not answer the ABORT either.
    dead_ = true;
    fail(fmt::format("rank {}: {}: the node does not answer an ABORT", rank_, name(plan.op.kind)));
    for (const Start& left : starts_) {
      Plan& p = plans_[static_cast<std::size_t>(left.plan)];
      p.state = State::kFailed;
      p.failure =
          fmt::format("rank {}: {}: the node does not answer an ABORT: {}", rank_, name(p.op.kind), failed_);
    }
    starts_.clear();
    return;
  }
  if (failed_.empty() && config_.tell_us > 0 && now - told_ns_ >= ns(config_.tell_us))
    tell(NoticeState::RUNS, text(plan));
}

void Communicator::progress() {
  weft::wire::Cqe e;
  while (device_->poll(&e)) take_in(e);
  if (!connected_) return;
  read_notices();
  compare();
  watch();
  for (int p = 0; p < ranks_; ++p)
    if (peers_[static_cast<std::size_t>(p)].tell_again) tell_peer(p);
  pump();
}

}  // namespace wccl
