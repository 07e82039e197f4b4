// SPDX-License-Identifier: Apache-2.0
#include "sw/ref/engine.h"

#include <algorithm>

#include "sw/ref/nmc_steps.h"
#include "sw/ref/reduction.h"

namespace weft::ref {

using wire::DbOp;
using wire::Err;
using wire::Redop;
using wire::Wqe;
using wire::WqeOp;

Engine::Engine(const EngineSize& size, EngineEnv& env) : size_(size), env_(env) {
  reset();
}

void Engine::reset() {
  regions_.assign(size_.regions, {});
  links_.assign(size_.conns, 0);
  sems_.assign(size_.sems, 0);
  subgraphs_.assign(size_.subgraphs, {});
  cpu_run_ = false;
  served_ = 0;
  mail_.clear();
  launches_.clear();
  verdict_at_ = kNever;
  for (Context& c : contexts_) {
    c.active = false;
    c.used = 0;
  }
  issue_at_ = 0;
  work_at_ = kNever;
  reducer_.clear();
  reducer_free_ = 0;
  ring_ = false;
  held_.clear();
}

void Engine::set_region(std::uint32_t index, const EngineRegion& region) {
  if (index < size_.regions) regions_[index] = region;
}

void Engine::set_link(std::uint32_t conn, std::uint32_t port, bool valid) {
  if (conn >= size_.conns || port >= size_.ports) return;
  const std::uint32_t bit = 1u << port;
  links_[conn] = valid ? links_[conn] | bit : links_[conn] & ~bit;
}

void Engine::set_semaphore(Ps now, std::uint32_t index, std::uint32_t value) {
  if (index >= size_.sems) return;
  sems_[index] = value;
  plan(now);
}

void Engine::set_ring(Ps now, std::uint64_t base, std::uint32_t last) {
  ring_ = true;
  ring_base_ = base;
  ring_last_ = last;
  ring_seq_ = 0;
  std::deque<wire::Cqe> held;
  held.swap(held_);
  for (const wire::Cqe& e : held) complete(now, e.cookie, e.subgraph, e.op, e.status, e.entry, e.conn);
}

// ---- CPU-M

// A subgraph stays in the mailbox until its verdict is taken, so a CPU that is stopped begins again with it.
void Engine::run_cpu(Ps now, bool run) {
  if (run == cpu_run_) return;
  cpu_run_ = run;
  served_ = 0;
  next_mail(now);
}

void Engine::next_mail(Ps now) {
  verdict_at_ = kNever;
  if (!cpu_run_ || mail_.empty()) return;
  const std::uint32_t count = std::min(subgraphs_[mail_.front()].count, wire::kMaxWqes);
  verdict_at_ = now + Ps{count + 1} * kEngineCheck;
}

Err Engine::check_range(bool to_write, std::uint64_t addr, std::uint64_t length) const {
  const std::uint64_t end = addr + length;
  if (end < addr) return Err::BAD_LENGTH;
  const bool found = std::any_of(regions_.begin(), regions_.end(), [&](const EngineRegion& r) {
    return r.valid && (to_write ? r.local_write : r.local_read) && addr >= r.base && end <= r.limit;
  });
  return found ? Err::OK : Err::BAD_ADDR;
}

Err Engine::check_extent(const Wqe& w) const {
  const Extent extent = extent_of(w);
  if (const Err e = check_range(false, w.src0, extent.source); e != Err::OK) return e;
  if (w.nsrc > 1)
    if (const Err e = check_range(false, w.src1, extent.others); e != Err::OK) return e;
  return check_range(true, w.dst, extent.result);
}

// Checks 2 to 12 of docs/me.md, in their order.
Err Engine::check(const Wqe& w, std::uint32_t index) const {
  if (w.resv0 != 0) return Err::BAD_FLAGS;
  switch (w.opcode) {
    case WqeOp::NOP:
    case WqeOp::WRITE:
    case WqeOp::REDUCE:
    case WqeOp::WAIT:
    case WqeOp::SET: break;
    default: return Err::BAD_OPCODE;
  }
  if (w.indirect || (w.signal && w.opcode != WqeOp::WRITE) || (w.consume && w.opcode != WqeOp::WAIT))
    return Err::BAD_FLAGS;
  if ((w.has_dep0 && w.dep0 >= index) || (w.has_dep1 && w.dep1 >= index)) return Err::BAD_DEP;

  if (w.opcode == WqeOp::REDUCE) {
    if (const Err e = check_reduction(w, size_.parts()); e != Err::OK) return e;
    if (w.length == 0) return Err::OK;  // touches nothing
    return check_extent(w);
  }
  if (w.opcode == WqeOp::WRITE) {
    if (w.length > wire::kMaxWqeLength) return Err::BAD_LENGTH;
    if (w.conn >= size_.conns || links_[w.conn] == 0) return Err::BAD_CONN;
    if (w.dst + w.length < w.dst) return Err::BAD_LENGTH;
    if (w.length == 0) return Err::OK;
    return check_range(false, w.src0, w.length);
  }
  if ((w.opcode == WqeOp::WAIT || w.opcode == WqeOp::SET) && w.sem >= size_.sems) return Err::BAD_SEM;
  return Err::OK;
}

Engine::Verdict Engine::verdict(const Subgraph& s) {
  if (s.count == 0 || s.count > wire::kMaxWqes) return {Err::BAD_SUBGRAPH, 0};
  if (s.addr % Wqe::kBytes != 0) return {Err::BAD_ALIGN, 0};
  for (std::uint32_t i = 0; i < s.count; ++i) {
    std::uint8_t line[Wqe::kBytes];
    if (!env_.read(s.addr + std::uint64_t{i} * Wqe::kBytes, line, Wqe::kBytes)) return {Err::MEM_ERROR, i};
    if (const Err e = check(Wqe::unpack(line), i); e != Err::OK) return {e, i};
  }
  return {Err::OK, s.count};
}

// ---- doorbells and completions

void Engine::complete(Ps now, std::uint64_t cookie, std::uint16_t subgraph, DbOp op, Err status,
                      std::uint32_t entry, std::uint16_t conn) {
  wire::Cqe e;
  e.cookie = cookie;
  e.subgraph = subgraph;
  e.op = op;
  e.status = status;
  e.entry = entry;
  e.conn = conn;
  if (!ring_) {
    held_.push_back(e);
    return;
  }
  e.cycles = env_.clock(now);
  e.seq = ++ring_seq_;
  std::uint8_t line[wire::Cqe::kBytes];
  e.pack(line);
  ++counters_.cqe;
  if (!env_.write(ring_base_ + std::uint64_t{(e.seq - 1) & ring_last_} * sizeof line, line, sizeof line))
    ++counters_.cqe_error;
}

void Engine::doorbell(Ps now, const wire::Doorbell& d) {
  ++counters_.doorbell;
  Err answer = Err::BAD_SUBGRAPH;
  const bool exists = d.subgraph < size_.subgraphs;
  Subgraph none;
  Subgraph& s = exists ? subgraphs_[d.subgraph] : none;
  const bool dirty = (d.op == DbOp::LAUNCH && d.group > wire::kOrderGroups) ||
                     std::any_of(d.resv1.begin(), d.resv1.end(), [](auto b) { return b != 0; });
  if (dirty) {
    answer = Err::BAD_FLAGS;
  } else {
    switch (d.op) {
      case DbOp::LAUNCH:
        if (!exists || s.life != Life::kReady) break;
        s.life = Life::kQueued;
        s.cookie = d.cookie;
        s.group = d.group;
        launches_.push_back(d.subgraph);
        start(now);
        plan(now);
        return;
      case DbOp::REGISTER:
        if (!exists || (s.life != Life::kEmpty && s.life != Life::kReady)) break;
        s = {Life::kRegistering, d.addr, d.count, d.cookie, 0};
        mail_.push_back(d.subgraph);
        if (mail_.size() == 1) next_mail(now);
        return;
      case DbOp::UNREGISTER:
        if (!exists || s.life != Life::kReady) break;
        s.life = Life::kEmpty;
        answer = Err::OK;
        break;
      case DbOp::ABORT:
        if (!exists || (s.life != Life::kQueued && s.life != Life::kGivenUp && s.life != Life::kRunning))
          break;
        answer = Err::OK;
        if (s.life == Life::kQueued) s.life = Life::kGivenUp;
        break;
      default: answer = Err::BAD_OPCODE;
    }
  }
  if (answer != Err::OK) ++counters_.refused;
  complete(now, d.cookie, d.subgraph, d.op, answer, 0, 0);
  if (answer != Err::OK || d.op != DbOp::ABORT || s.life != Life::kRunning) return;
  for (Context& c : contexts_) {
    if (!c.active || c.subgraph != d.subgraph || c.killed) continue;
    c.killed = c.by_host = true;
    c.status = Err::FLUSHED;
    c.blame = c.next;
    c.conn = 0;
    kill(now, c);
    end_if_done(now, c);
  }
  plan(now);
}

// ---- contexts

void Engine::start(Ps now) {
  // In order, but for those of a group of which one runs.
  const auto may = [&](std::uint16_t launch) {
    const std::uint8_t group = subgraphs_[launch].group;
    return group == 0 || std::none_of(contexts_.begin(), contexts_.end(), [&](const Context& c) {
             return c.active && subgraphs_[c.subgraph].group == group;
           });
  };
  for (;;) {
    const auto free =
        std::find_if(contexts_.begin(), contexts_.end(), [](const Context& c) { return !c.active; });
    if (free == contexts_.end()) return;
    const auto next = std::find_if(launches_.begin(), launches_.end(), may);
    if (next == launches_.end()) return;
    Subgraph& s = subgraphs_[*next];
    Context& c = *free;
    c.active = true;
    c.killed = c.by_host = s.life == Life::kGivenUp;
    c.subgraph = *next;
    c.conn = 0;
    c.status = c.killed ? Err::FLUSHED : Err::OK;
    c.addr = s.addr;
    c.count = s.count;
    c.next = c.blame = c.oldest = c.used = 0;
    c.from = now + kEngineStart;
    c.done.assign((s.count + 63) / 64, 0);
    launches_.erase(next);
    s.life = Life::kRunning;
    ++counters_.launch;
    end_if_done(now, c);
  }
}

// Takes entries into the window. They are read again: what the host changed since its REGISTER is looked at
// for what would lead out of the model's tables or out of its regions, as the RTL does.
void Engine::fill(Context& c) {
  while (c.used < kEngineWindow && c.next < c.count && !c.killed) {
    Slot& slot = c.slots[c.used++];
    slot = {};
    slot.entry = c.next++;
    slot.age = age_++;
    ++counters_.fetched;
    std::uint8_t line[Wqe::kBytes];
    if (!env_.read(c.addr + std::uint64_t{slot.entry} * Wqe::kBytes, line, Wqe::kBytes)) {
      ++counters_.fetch_error;
      slot.error = Err::MEM_ERROR;
      continue;
    }
    Wqe& w = slot.wqe = Wqe::unpack(line);
    switch (w.opcode) {
      case WqeOp::NOP: break;
      case WqeOp::WRITE:
        if (w.length > wire::kMaxWqeLength)
          slot.error = Err::BAD_LENGTH;
        else if (w.conn >= size_.conns)
          slot.error = Err::BAD_CONN;
        else if (w.length != 0 && check_range(false, w.src0, w.length) != Err::OK)
          slot.error = Err::BAD_ADDR;
        break;
      case WqeOp::REDUCE:
        if (w.length > wire::kMaxWqeLength)
          slot.error = Err::BAD_LENGTH;
        else if (check_reduction(w, size_.parts()) == Err::OK && w.length != 0 && check_extent(w) != Err::OK)
          slot.error = Err::BAD_ADDR;
        break;
      case WqeOp::WAIT:
      case WqeOp::SET:
        if (w.sem >= size_.sems) slot.error = Err::BAD_SEM;
        break;
      default: slot.error = Err::BAD_OPCODE;
    }
    // A dependency on this or a later entry is none.
    if (w.dep0 >= slot.entry) w.has_dep0 = false;
    if (w.dep1 >= slot.entry) w.has_dep1 = false;
  }
}

// Finds the oldest entry that may issue, and when.
void Engine::plan(Ps now) {
  work_at_ = kNever;
  std::uint64_t oldest = ~std::uint64_t{0};
  for (std::uint32_t k = 0; k < kEngineContexts; ++k) {
    Context& c = contexts_[k];
    if (!c.active || c.killed) continue;
    if (now < c.from) {
      // Its first entries enter then; slot `used` stands for "look again".
      if (oldest == ~std::uint64_t{0} && c.from < work_at_) {
        work_at_ = c.from;
        work_context_ = k;
        work_slot_ = kEngineWindow;
      }
      continue;
    }
    fill(c);
    bool wait_before = false;
    for (std::uint32_t i = 0; i < c.used; ++i) {
      Slot& s = c.slots[i];
      const Wqe& w = s.wqe;
      const bool may = !s.issued && (!w.has_dep0 || is_done(c, w.dep0)) &&
                       (!w.has_dep1 || is_done(c, w.dep1)) && !(w.rx_sync && wait_before) &&
                       !(w.sync && i != 0);
      // To observers a WAIT is under way once it waits for its semaphore alone, as in the RTL.
      if (may && w.opcode == WqeOp::WAIT && !s.waiting) {
        s.waiting = true;
        env_.trace(now, false, c.subgraph, s.entry, w.opcode, Err::OK);
      }
      if (may && s.age < oldest &&
          (w.opcode != WqeOp::WAIT || s.error != Err::OK || sems_[w.sem] >= w.value)) {
        oldest = s.age;
        work_at_ = std::max(now, issue_at_);
        work_context_ = k;
        work_slot_ = i;
        break;
      }
      if (w.fence) break;  // nothing behind it before it is done
      wait_before = wait_before || (w.opcode == WqeOp::WAIT && s.error == Err::OK);
    }
  }
}

Ps Engine::next_timer() const {
  Ps next = std::min(verdict_at_, work_at_);
  if (!reducer_.empty()) next = std::min(next, reducer_.front().done);
  return next;
}

void Engine::on_timer(Ps now) {
  if (now >= verdict_at_) {
    const std::uint16_t number = mail_.front();
    mail_.pop_front();
    Subgraph& s = subgraphs_[number];
    const Verdict v = verdict(s);
    ++served_;
    ++(v.status == Err::OK ? counters_.register_ok : counters_.register_bad);
    s.life = v.status == Err::OK ? Life::kReady : Life::kEmpty;
    complete(now, s.cookie, number, DbOp::REGISTER, v.status, v.entry, 0);
    next_mail(now);
  }
  bool retired = false;
  while (!reducer_.empty() && reducer_.front().done <= now) {
    const Reduction r = reducer_.front();
    reducer_.pop_front();
    retired = true;
    Context& c = contexts_[r.context];
    const auto slot = std::find_if(c.slots.begin(), c.slots.begin() + c.used,
                                   [&](const Slot& s) { return s.entry == r.entry; });
    const Err status = reduce(slot->wqe);
    ++counters_.nmc_done;
    if (status != Err::OK) ++counters_.nmc_error;
    retire(now, r.context, r.entry, status);
  }
  if (retired) plan(now);  // slots have moved
  if (now >= work_at_ && work_slot_ < kEngineWindow) {
    issue_at_ = now + kEngineEntry;
    issue(now, work_context_, work_slot_);
  }
  plan(now);
}

void Engine::issue(Ps now, std::uint32_t context, std::uint32_t slot) {
  Context& c = contexts_[context];
  Slot& s = c.slots[slot];
  const Wqe w = s.wqe;
  s.issued = true;
  if (!s.waiting) env_.trace(now, false, c.subgraph, s.entry, w.opcode, Err::OK);
  if (s.error != Err::OK || (w.opcode != WqeOp::WRITE && w.opcode != WqeOp::REDUCE)) {
    ++counters_.issue_local;
    if (s.error == Err::OK && w.opcode == WqeOp::SET) add(w.sem, w.value);
    if (s.error == Err::OK && w.opcode == WqeOp::WAIT && w.consume) sems_[w.sem] -= w.value;
    retire(now, context, s.entry, s.error);
    return;
  }
  if (w.opcode == WqeOp::WRITE) {
    ++counters_.issue_tx;
    const std::uint64_t tag = std::uint64_t{context} << 32 | s.entry;
    if (const Err e = env_.post_write(now, tag, w); e != Err::OK) retire(now, context, s.entry, e);
    return;
  }
  ++counters_.issue_nmc;
  counters_.nmc_beat += (std::uint64_t{w.length} + nmc::kBeatBytes - 1) / nmc::kBeatBytes;
  reducer_free_ = std::max(now, reducer_free_);
  Ps done = reducer_free_;
  if (check_reduction(w, size_.parts()) == Err::OK) {  // else reduce() refuses it, and no memory is touched
    const num::Job job = job_of(w);
    const auto cycles = [](std::uint64_t n) { return static_cast<Ps>(n) * kEngineCycle; };
    reducer_free_ += cycles(nmc::busy_cycles(job, w.nsrc, w.length, size_.parts()));
    done = reducer_free_ + kReducerMemory + cycles(nmc::latency(job, w.nsrc, size_.parts()));
  }
  if (!reducer_.empty()) done = std::max(done, reducer_.back().done);  // they complete in order
  reducer_.push_back({done, context, s.entry});
}

void Engine::written(Ps now, std::uint64_t tag, Err status) {
  retire(now, static_cast<std::uint32_t>(tag >> 32), static_cast<std::uint32_t>(tag), status);
  plan(now);
}

void Engine::retire(Ps now, std::uint32_t context, std::uint32_t entry, Err status) {
  Context& c = contexts_[context];
  std::uint32_t i = 0;
  while (c.slots[i].entry != entry) ++i;
  remove(now, c, i, status);
  if (status != Err::OK) {
    ++counters_.failed;
    if (!c.killed) kill(now, c);
  }
  end_if_done(now, c);
}

// Takes an entry that has ended out of the window.
void Engine::remove(Ps now, Context& c, std::uint32_t slot, Err status) {
  const Slot& s = c.slots[slot];
  const std::uint16_t conn = s.wqe.opcode == WqeOp::WRITE ? s.wqe.conn : 0;
  env_.trace(now, true, c.subgraph, s.entry, s.wqe.opcode, status);
  ++counters_.done;
  if (c.killed && c.by_host) {
    // The host's ABORT is answered with the oldest entry that had not ended.
    if (s.entry < c.blame) {
      c.blame = s.entry;
      c.conn = conn;
    }
  } else if (!c.killed && status != Err::OK) {
    c.status = status;
    c.blame = s.entry;
    c.conn = conn;
  }
  c.done[s.entry / 64] |= std::uint64_t{1} << s.entry % 64;
  std::move(c.slots.begin() + slot + 1, c.slots.begin() + c.used, c.slots.begin() + slot);
  --c.used;
  c.oldest = c.used != 0 ? c.slots[0].entry : c.next;
}

// Nothing more of the subgraph issues; what has not issued is dropped.
void Engine::kill(Ps now, Context& c) {
  c.killed = true;
  for (std::uint32_t i = c.used; i-- > 0;) {
    if (c.slots[i].issued) continue;
    ++counters_.flushed;
    remove(now, c, i, Err::FLUSHED);
  }
}

void Engine::end_if_done(Ps now, Context& c) {
  if (c.used != 0 || (!c.killed && c.next != c.count)) return;
  c.active = false;
  Subgraph& s = subgraphs_[c.subgraph];
  s.life = Life::kReady;
  ++(c.killed ? counters_.finish_bad : counters_.finish_ok);
  complete(now, s.cookie, c.subgraph, DbOp::LAUNCH, c.killed ? c.status : Err::OK,
           c.killed ? c.blame : c.count, c.killed ? c.conn : 0);
  start(now);
}

// ---- semaphores and reducer

void Engine::add(std::uint32_t sem, std::uint32_t amount) {
  ++counters_.sem_add;
  const std::uint64_t sum = std::uint64_t{sems_[sem]} + amount;
  if (sum > ~std::uint32_t{0}) ++counters_.sem_saturated;
  sems_[sem] = static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, ~std::uint32_t{0}));
}

void Engine::signal(Ps now, std::uint32_t sem, std::uint32_t amount) {
  if (sem >= size_.sems) {
    ++counters_.signal_bad;
    return;
  }
  add(sem, amount);
  plan(now);
}

// From the lowest address up, so that a source may lie above dst and overlap it.
Err Engine::reduce(const Wqe& w) {
  if (const Err e = check_reduction(w, size_.parts()); e != Err::OK) return e;
  const Extent all = extent_of(w);
  const auto wraps = [&](std::uint64_t addr, std::uint64_t bytes) {
    return addr + bytes != 0 && addr + bytes < addr;
  };
  if (wraps(w.src0, all.source) || wraps(w.dst, all.result) || (w.nsrc > 1 && wraps(w.src1, all.others)))
    return Err::BAD_LENGTH;
  constexpr std::uint64_t kElements = 512;  // a time; whole blocks
  const std::size_t room = num::footprint(w.dtype, kElements);
  sources_.resize(w.nsrc * room);
  result_.resize(num::footprint(w.to, kElements));
  std::array<std::span<const std::uint8_t>, num::kMaxSources> sources;
  for (std::uint64_t first = 0; first < all.elements; first += kElements) {
    const std::uint64_t elements = std::min(all.elements - first, kElements);
    const auto count = static_cast<std::uint32_t>(num::footprint(w.dtype, elements));
    for (unsigned k = 0; k < w.nsrc; ++k) {
      std::uint8_t* const to = &sources_[k * room];
      if (!env_.read(source_of(w, k) + num::footprint(w.dtype, first), to, count)) return Err::MEM_ERROR;
      sources[k] = {to, count};
    }
    const auto out = static_cast<std::uint32_t>(num::footprint(w.to, elements));
    num::reduce(job_of(w), {result_.data(), out}, {sources.data(), w.nsrc});
    if (!env_.write(w.dst + num::footprint(w.to, first), result_.data(), out)) return Err::MEM_ERROR;
  }
  return Err::OK;
}

// ---- to look at

bool Engine::idle() const {
  return mail_.empty() && launches_.empty() && held_.empty() &&
         std::none_of(contexts_.begin(), contexts_.end(), [](const Context& c) { return c.active; });
}

std::string Engine::state() const {
  std::string text;
  if (!mail_.empty()) text += std::to_string(mail_.size()) + " subgraphs to validate ";
  if (!launches_.empty()) text += std::to_string(launches_.size()) + " launches queued ";
  for (const Context& c : contexts_)
    if (c.active)
      text += "subgraph " + std::to_string(c.subgraph) + " at entry " + std::to_string(c.oldest) + " of " +
              std::to_string(c.count) + " ";
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace weft::ref
