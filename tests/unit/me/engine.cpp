// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <fstream>

#include "sw/ref/reduction.h"

namespace me {

namespace {

using weft::test::Stall;
namespace cfg = weft::cfg;

template <class Words>
void to_words(const Line& line, Words& words) {
  for (int i = 0; i < 16; ++i) {
    words[i] = line[4 * i] | line[4 * i + 1] << 8 | line[4 * i + 2] << 16 |
               static_cast<uint32_t>(line[4 * i + 3]) << 24;
  }
}

template <class Words>
Line to_line(const Words& words) {
  Line line;
  for (int i = 0; i < 64; ++i) line[i] = static_cast<uint8_t>(words[i / 4] >> 8 * (i % 4));
  return line;
}

std::vector<uint32_t> firmware() {
  const std::string path = std::string(WEFT_BUILD_DIR) + "/firmware/cpu_m.bin";
  std::ifstream file(path, std::ios::binary);
  INFO("firmware image " << path);
  REQUIRE(file.good());
  std::vector<uint32_t> words;
  std::array<char, 4> bytes{};
  while (file.read(bytes.data(), 4) || file.gcount() != 0) {
    uint32_t word = 0;
    for (int i = 0; i < file.gcount(); ++i)
      word |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << 8 * i;
    words.push_back(word);
  }
  return words;
}

// A trace shows an issue a few cycles behind the decision, and a failure takes two to reach it; before, it
// may wait behind results of the semaphore unit, which go first, as many as its queue holds.
constexpr uint64_t kKillLatency = 6 + 4;

constexpr size_t kCqePosition = 21;  // of `cqe` in me_cnt_t

bool open_to_streams(const Wqe& w) {
  return w.opcode == WqeOp::WRITE || w.opcode == WqeOp::REDUCE;
}

}  // namespace

Engine::Engine(const Options& options, uint64_t stream)
    : b("weft_me"),
      options_(options),
      rng_(weft::test::seed(), 100 + stream),
      db_stall_(options.stall, stream + 1),
      ar_stall_(options.stall, stream + 2),
      r_stall_(options.stall, stream + 3),
      aw_stall_(options.stall, stream + 4),
      w_stall_(options.stall, stream + 5),
      tx_stall_(options.stall, stream + 6),
      nmc_stall_(options.stall, stream + 7),
      cpl_stall_(options.stall, stream + 8),
      sig_stall_(options.stall, stream + 9) {
  b->cfg_valid = 0;
  b->db_valid_i = 0;
  b->req_ready_i = 0;
  b->cpl_valid_i = 0;
  b->sig_valid_i = 0;
  b->nmc_req_ready_i = 0;
  b->nmc_cpl_valid_i = 0;
  b->fw_we_i = 0;
  b->cpu_run_i = 0;
  b->m_axi_arready = 0;
  b->m_axi_rvalid = 0;
  b->m_axi_awready = 0;
  b->m_axi_wready = 0;
  b->m_axi_bvalid = 0;
  b.reset();
}

void Engine::complain(const std::string& what) {
  if (problem.empty()) problem = what;
}

std::string Engine::where(unsigned subgraph, uint32_t entry) const {
  return "subgraph " + std::to_string(subgraph) + " entry " + std::to_string(entry) + " at cycle " +
         std::to_string(cycle());
}

// ---- host

void Engine::configure(cfg::Table table, unsigned index, const cfg::Words& words) {
  settings_.push_back({static_cast<unsigned>(table), index, words});
  if (table == cfg::Table::kRegion) {
    // Only what no region grants at any time is certainly astray.
    const cfg::Region r = cfg::Region::from_words(words);
    if (r.valid) granted_.push_back({r.base, r.limit, r.local_read, r.local_write});
  }
  // An upper bound: a WAIT may have been met before a lower value arrives.
  if (table == cfg::Table::kSem && index < kNumSems)
    sem_limit_[index] = std::max<uint64_t>(sem_limit_[index], words[0]);
}

void Engine::set_ring(uint64_t base, uint64_t entries) {
  cfg::Cq ring;
  ring.base = base;
  ring.last = static_cast<uint32_t>(entries - 1);
  configure(cfg::Table::kCq, 0, ring.words());
  new_rings_.push_back({base, entries, 0});
}

void Engine::set_up(bool with_ring) {
  const auto image = firmware();
  b->fw_we_i = 1;
  for (size_t i = 0; i < image.size(); ++i) {
    b->fw_addr_i = static_cast<uint16_t>(i);
    b->fw_data_i = image[i];
    step();
  }
  b->fw_we_i = 0;
  b->cpu_run_i = 1;
  cfg::Region region;
  region.valid = true;
  region.base = kReadBase;
  region.limit = kReadBase + kRegionBytes;
  region.local_read = true;
  configure(cfg::Table::kRegion, 0, region.words());
  region.base = kWriteBase;
  region.limit = kWriteBase + kRegionBytes;
  region.local_read = false;
  region.local_write = true;
  configure(cfg::Table::kRegion, 1, region.words());
  region.base = kBothBase;
  region.limit = kBothBase + kBothBytes;
  region.local_read = true;
  configure(cfg::Table::kRegion, 2, region.words());
  for (unsigned c = 0; c < kConnsUsed; ++c) {
    cfg::Conn conn;
    conn.valid = true;
    configure(cfg::Table::kConn, c * kNumPorts + (c == 4 ? 1 : 0), conn.words());
  }
  if (with_ring) set_ring(kRing, kRingEntries);
  while (!settings_.empty()) step();
}

uint64_t Engine::ring(const Doorbell& doorbell) {
  Doorbell out = doorbell;
  out.cookie = 0xc00c'0000'0000'0000 + ++cookie_;
  asked_[out.cookie] = out;
  doorbells_.push_back(out);
  return out.cookie;
}

uint64_t Engine::ring(DbOp op, unsigned subgraph, uint32_t count, uint64_t addr) {
  Doorbell d;
  d.op = op;
  d.subgraph = static_cast<uint16_t>(subgraph);
  d.count = count;
  d.addr = addr;
  return ring(d);
}

Cqe Engine::wait(uint64_t cookie) {
  for (;;) {
    for (auto it = cqes.begin(); it != cqes.end(); ++it) {
      if (it->cookie != cookie) continue;
      const Cqe cqe = *it;
      cqes.erase(it);
      return cqe;
    }
    step();
  }
}

Cqe Engine::add(unsigned subgraph, const Graph& graph) {
  for (size_t i = 0; i < graph.size(); ++i) graph[i].pack(line(address_of(subgraph) + 64 * i).data());
  runs[subgraph].graph = graph;
  return wait(ring(DbOp::REGISTER, subgraph, static_cast<uint32_t>(graph.size()), address_of(subgraph)));
}

void Engine::add_good(unsigned subgraph, const Graph& graph) {
  const Cqe cqe = add(subgraph, graph);
  INFO("subgraph " << subgraph << " entry " << cqe.entry);
  REQUIRE(std::string(weft::wire::name(cqe.status)) == "OK");
  REQUIRE(cqe.entry == graph.size());
}

uint64_t Engine::launch(unsigned subgraph, unsigned group) {
  Run& run = runs[subgraph];
  const size_t n = run.graph.size();
  run.active = true;
  run.killed = run.abort_rung = false;
  run.failures.clear();
  for (auto* flags : {&run.issued, &run.done, &run.good, &run.in_flight, &run.traced})
    flags->assign(n, false);
  Doorbell d;
  d.op = DbOp::LAUNCH;
  d.subgraph = static_cast<uint16_t>(subgraph);
  d.group = static_cast<uint8_t>(group);
  return run.cookie = ring(d);
}

void Engine::signal(unsigned sem, uint32_t value) {
  signals_.emplace_back(static_cast<uint16_t>(sem), value);
}

void Engine::drain() {
  do {
    step();
  } while (!b->idle_o || !doorbells_.empty() || !signals_.empty() || !settings_.empty() || b->sig_valid_i ||
           b->db_valid_i);
}

// ---- a cycle

void Engine::step() {
  drive();
  b.eval();
  observe();
  b.tick();
  release();
  if (!problem.empty() && !problem_expected) FAIL(problem);
}

void Engine::drive() {
  const uint64_t now = cycle();
  b->now_i = now;

  b->cfg_valid = 0;
  if (!settings_.empty() && now >= setting_cycle_) {
    const Setting& s = settings_.front();
    b->cfg_valid = 1;
    b->cfg_kind = s.kind;
    b->cfg_index = s.index;
    for (int i = 0; i < 16; ++i) b->cfg_data[i] = s.words[i];
    if (s.kind == static_cast<unsigned>(cfg::Table::kCq)) new_ring_cycle_ = now + 1;
    settings_.pop_front();
    setting_cycle_ = now + 16;
  }
  if (!b->db_valid_i && !doorbells_.empty() && db_stall_.go()) {
    Line line;
    doorbells_.front().pack(line.data());
    if (doorbells_.front().op == DbOp::ABORT) runs[doorbells_.front().subgraph].abort_rung = true;
    to_words(line, b->db_i);
    doorbells_.pop_front();
    b->db_valid_i = 1;
  }
  if (!b->sig_valid_i && !signals_.empty() && sig_stall_.go()) {
    b->sig_sem = signals_.front().first;
    b->sig_value = signals_.front().second;
    signals_.pop_front();
    b->sig_valid_i = 1;
    if (b->sig_sem < kNumSems) sem_limit_[b->sig_sem] += b->sig_value;
  }
  b->req_ready_i = tx_stall_.go();
  b->nmc_req_ready_i = nmc_stall_.go();

  if (!b->cpl_valid_i && !hold_tx && cpl_stall_.go()) {
    // The connections complete independently; each in the order of its requests.
    for (auto& [conn, queue] : tx_) {
      if (queue.empty() || queue.front().due > now) continue;
      const Pending& p = queue.front();
      b->cpl_valid_i = 1;
      b->cpl_tag = p.tag;
      b->cpl_status = static_cast<uint8_t>(status_of ? status_of(p.subgraph, p.entry) : Err::OK);
      queue.pop_front();
      break;
    }
  }
  if (!b->nmc_cpl_valid_i && !hold_nmc && !nmc_.empty() && nmc_.front().due <= now && cpl_stall_.go()) {
    const Pending& p = nmc_.front();
    b->nmc_cpl_valid_i = 1;
    b->nmc_cpl_tag = p.tag;
    b->nmc_cpl_status = static_cast<uint8_t>(status_of ? status_of(p.subgraph, p.entry) : Err::OK);
    nmc_.pop_front();
  }

  b->m_axi_arready = ar_stall_.go();
  if (!b->m_axi_rvalid && !reads_.empty() && reads_.front().due <= now && r_stall_.go()) {
    const Burst& burst = reads_.front();
    const uint64_t addr = burst.addr + 64 * burst.done;
    Line data{};
    if (auto it = memory_.find(addr >> 6); it != memory_.end()) data = it->second;
    if (on_read) on_read(addr, data);
    to_words(data, b->m_axi_rdata);
    b->m_axi_rresp = bad_lines.count(addr >> 6) != 0 ? 2 : 0;
    b->m_axi_rlast = burst.done + 1 == burst.beats;
    b->m_axi_rvalid = 1;
  }
  b->m_axi_awready = aw_stall_.go();
  b->m_axi_wready = w_stall_.go();
  if (!b->m_axi_bvalid && !write_due_.empty() && write_due_.front() <= now) {
    b->m_axi_bvalid = 1;
    b->m_axi_bresp = refuse_writes ? 2 : 0;
    write_due_.pop_front();
  }
}

void Engine::check_issue(unsigned subgraph, uint32_t entry) {
  Run& run = runs[subgraph];
  for (uint32_t i = 0; i < entry; ++i) {
    if (!run.done[i] && waits_for(run.graph, entry, i)) {
      return complain("issued before entry " + std::to_string(i) + " was done: " + where(subgraph, entry));
    }
    if (run.done[i] && !run.good[i] && waits_for(run.graph, entry, i)) {
      return complain("issued although entry " + std::to_string(i) + " failed: " + where(subgraph, entry));
    }
  }
}

void Engine::kill(Run& run, uint64_t now) {
  if (run.killed) return;
  run.killed = true;
  run.kill_cycle = now;
}

void Engine::entry_done(unsigned subgraph, uint32_t entry, Err status) {
  Run& run = runs[subgraph];
  if (run.done[entry]) return complain("done twice: " + where(subgraph, entry));
  run.done[entry] = true;
  run.good[entry] = status == Err::OK;
  if (status != Err::OK) {
    run.failures[entry] = status;
    kill(run, cycle());
  }
}

// The rule that no entry may break, whatever it says: no byte outside of the regions.
void Engine::check_touched(const char* what, bool to_write, uint64_t addr, uint64_t bytes) {
  for (const Granted& g : granted_) {
    if ((to_write ? g.write : g.read) && addr >= g.base && bytes <= g.limit - g.base &&
        addr - g.base <= g.limit - g.base - bytes)
      return;
  }
  complain(std::string(what) + ": bytes that no region grants");
}

void Engine::take_request(uint32_t id, uint8_t tag, bool tx) {
  const unsigned subgraph = id >> 16;
  const uint32_t entry = id & 0xffff;
  Run& run = runs[subgraph];
  if (!run.active || entry >= run.graph.size())
    return complain("request of what does not run: " + where(subgraph, entry));
  if (!run.issued[entry] || run.in_flight[entry] || run.done[entry]) {
    complain("request that the trace did not show, or a second one: " + where(subgraph, entry));
  }
  if (tag >= kWindow || open_tags_.count(tag) != 0) complain("tag in use: " + where(subgraph, entry));
  check_issue(subgraph, entry);
  const Wqe& w = run.graph[entry];
  if (tx) {
    if (w.opcode != WqeOp::WRITE || b->req_conn != w.conn || b->req_signal != w.signal ||
        b->req_sem != w.sem || b->req_value != w.value || b->req_laddr != w.src0 || b->req_raddr != w.dst ||
        b->req_len != w.length) {
      complain("WRITE with other fields than its entry: " + where(subgraph, entry));
    }
    if (w.length != 0) check_touched("WRITE", false, w.src0, w.length);
  } else {
    if (w.opcode != WqeOp::REDUCE || b->nmc_dtype != static_cast<unsigned>(w.dtype) ||
        b->nmc_to != static_cast<unsigned>(w.to) || b->nmc_redop != static_cast<unsigned>(w.redop) ||
        b->nmc_flags != (w.propagate_nan << 2 | w.saturate << 1 | w.exact) || b->nmc_nsrc != w.nsrc ||
        b->nmc_own != w.own || b->nmc_src0 != w.src0 || b->nmc_src1 != w.src1 || b->nmc_stride != w.stride ||
        b->nmc_dst != w.dst || b->nmc_len != w.length || b->nmc_scalar != w.scalar) {
      complain("REDUCE with other fields than its entry: " + where(subgraph, entry));
    }
    // What the reducer refuses touches nothing.
    if (w.length != 0 && weft::ref::check_reduction(w, {.exact = 0}) == Err::OK) {
      const weft::ref::Extent extent = weft::ref::extent_of(w);
      check_touched("REDUCE, source", false, w.src0, extent.source);
      if (w.nsrc > 1) check_touched("REDUCE, other sources", false, w.src1, extent.others);
      check_touched("REDUCE, result", true, w.dst, extent.result);
    }
  }
  run.in_flight[entry] = true;
  const Pending pending{subgraph, entry, tag, cycle() + draw(tx ? options_.tx : options_.nmc)};
  open_tags_[tag] = pending;
  (tx ? tx_[w.conn] : nmc_).push_back(pending);
  b.progress();
}

void Engine::take_completion(uint8_t tag, Err status) {
  const Pending p = open_tags_.at(tag);
  open_tags_.erase(tag);
  runs[p.subgraph].in_flight[p.entry] = false;
  entry_done(p.subgraph, p.entry, status);
}

void Engine::take_trace() {
  const uint64_t now = cycle();
  if (b->trace_issue) {
    const unsigned subgraph = b->trace_subgraph;
    const uint32_t entry = b->trace_entry;
    b.event("issue subgraph %llu entry %llu", subgraph, entry);
    Run& run = runs[subgraph];
    if (!run.active || entry >= run.graph.size())
      return complain("issue of what does not run: " + where(subgraph, entry));
    check_issue(subgraph, entry);
    if (run.issued[entry]) complain("issued twice: " + where(subgraph, entry));
    if (run.killed && now > run.kill_cycle + kKillLatency)
      complain("issued after the end: " + where(subgraph, entry));
    if (b->trace_opcode != static_cast<unsigned>(run.graph[entry].opcode)) {
      complain("trace shows another opcode: " + where(subgraph, entry));
    }
    run.issued[entry] = true;
    if (run.graph[entry].opcode == WqeOp::SET) sem_limit_[run.graph[entry].sem] += run.graph[entry].value;
    if (keep_events) events.push_back({now, true, static_cast<uint16_t>(subgraph), entry});
  }
  if (b->trace_done) {
    const unsigned subgraph = b->trace_done_subgraph;
    const uint32_t entry = b->trace_done_entry;
    const auto status = static_cast<Err>(b->trace_status);
    b.event("done subgraph %llu entry %llu status %llu", subgraph, entry, b->trace_status);
    Run& run = runs[subgraph];
    if (!run.active || entry >= run.graph.size())
      return complain("done but does not run: " + where(subgraph, entry));
    if (run.traced[entry]) return complain("traced as done twice: " + where(subgraph, entry));
    run.traced[entry] = true;
    const Wqe& w = run.graph[entry];
    if (!run.issued[entry]) {  // only what a dead subgraph left behind leaves without an issue
      if (status != Err::FLUSHED || !(run.killed || run.abort_rung))
        complain("done without an issue: " + where(subgraph, entry));
      entry_done(subgraph, entry, status);
    } else if (open_to_streams(w) && status != Err::BAD_CONN && status != Err::BAD_TYPE &&
               status != Err::BAD_LENGTH && status != Err::BAD_ADDR) {
      const auto failure = run.failures.find(entry);
      const Err told = failure == run.failures.end() ? Err::OK : failure->second;
      if (!run.done[entry] || told != status)
        complain("trace and stream disagree: " + where(subgraph, entry));
    } else {
      if (status == Err::FLUSHED && !(run.killed || run.abort_rung))
        complain("flushed while it runs: " + where(subgraph, entry));
      if (w.opcode == WqeOp::WAIT && status == Err::OK) {
        if (sem_limit_[w.sem] < w.value) complain("WAIT done too early: " + where(subgraph, entry));
        if (w.consume) sem_limit_[w.sem] -= std::min<uint64_t>(w.value, sem_limit_[w.sem]);
      }
      entry_done(subgraph, entry, status);
    }
    if (keep_events) events.push_back({now, false, static_cast<uint16_t>(subgraph), entry});
    b.progress();
  }
}

void Engine::take_cqe(uint64_t addr, const Line& data) {
  const Cqe cqe = Cqe::unpack(data.data());
  b.event("cqe op %llu subgraph %llu status %llu entry %llu", static_cast<unsigned>(cqe.op), cqe.subgraph,
          static_cast<unsigned>(cqe.status), cqe.entry);
  while (rings_.size() > 1 && cqes_seen >= rings_[1].from) rings_.pop_front();
  if (rings_.empty()) return complain("CQE without a ring");
  const uint64_t index = cqes_seen - rings_.front().from;
  if (addr != rings_.front().base + 64 * (index % rings_.front().entries))
    complain("CQE in another place of the ring");
  if (cqe.seq != static_cast<uint32_t>(index + 1)) complain("CQE out of sequence");
  for (uint8_t byte : cqe.resv0) {
    if (byte != 0) complain("CQE with reserved bytes set");
  }
  const auto it = asked_.find(cqe.cookie);
  if (it == asked_.end()) return complain("CQE nobody asked for, or a second one");
  if (cqe.op != it->second.op || cqe.subgraph != it->second.subgraph) complain("CQE names another doorbell");
  if (cqe.cycles > cycle()) complain("CQE from the future");
  asked_.erase(it);
  Run& run = runs[cqe.subgraph];
  if (cqe.op == DbOp::ABORT && cqe.status == Err::OK) {
    if (run.active) kill(run, cycle());
  }
  if (cqe.cookie == run.cookie && run.active) {
    const std::string what = " of " + where(cqe.subgraph, cqe.entry);
    for (uint32_t i = 0; i < run.graph.size(); ++i) {
      if (run.in_flight[i]) complain("completion with entry " + std::to_string(i) + " outstanding" + what);
      if (run.issued[i] && !run.traced[i])
        complain("completion with entry " + std::to_string(i) + " open" + what);
      if (cqe.status == Err::OK && !run.good[i])
        complain("good completion without entry " + std::to_string(i) + what);
    }
    if (cqe.status == Err::OK && cqe.entry != run.graph.size()) complain("wrong number of entries" + what);
    if (cqe.status != Err::OK && cqe.status != Err::FLUSHED) {
      const auto failure = run.failures.find(cqe.entry);
      if (failure == run.failures.end() || failure->second != cqe.status)
        complain("reports no failed entry" + what);
      const Wqe& w = run.graph[cqe.entry];
      if (cqe.conn != (w.opcode == WqeOp::WRITE ? w.conn : 0)) complain("reports another connection" + what);
    }
    run.active = false;
  }
  cqes.push_back(cqe);
  ++cqes_seen;
  b.progress();
}

void Engine::observe() {
  const uint64_t now = cycle();
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += b->cnt_o >> (counts.size() - 1 - i) & 1;
  // A completion counts one cycle after it was taken; its write comes then or later.
  if (new_ring_cycle_ != 0 && cycle() == new_ring_cycle_) {
    rings_.push_back({new_rings_.front().base, new_rings_.front().entries, counts[kCqePosition]});
    new_rings_.pop_front();
    new_ring_cycle_ = 0;
  }

  took_ = {};
  took_.db = b->db_valid_i && b->db_ready_o;
  took_.sig = b->sig_valid_i && b->sig_ready_o;
  took_.cpl = b->cpl_valid_i && b->cpl_ready_o;
  took_.nmc_cpl = b->nmc_cpl_valid_i && b->nmc_cpl_ready_o;
  took_.r = b->m_axi_rvalid && b->m_axi_rready;
  took_.b = b->m_axi_bvalid && b->m_axi_bready;
  if (took_.db || took_.sig || took_.r) b.progress();

  if (took_.cpl) {
    take_completion(b->cpl_tag, static_cast<Err>(b->cpl_status));
    last_completion = now;
  }
  if (took_.nmc_cpl) {
    take_completion(b->nmc_cpl_tag, static_cast<Err>(b->nmc_cpl_status));
    last_completion = now;
  }
  take_trace();
  if (b->req_valid_o && first_request == 0) first_request = now;
  if (b->req_valid_o && b->req_ready_i) take_request(b->req_rkey, b->req_tag, true);
  if (b->nmc_req_valid_o && b->nmc_req_ready_i) {
    take_request(static_cast<uint32_t>((b->nmc_dst - kWriteBase) / 16), b->nmc_tag, false);
  }

  if (b->m_axi_arvalid && b->m_axi_arready) {
    const uint64_t addr = b->m_axi_araddr, bytes = 64 * (b->m_axi_arlen + 1u);
    if (addr % 64 != 0 || addr / 4096 != (addr + bytes - 1) / 4096)
      complain("read across 4 KB or off its bus");
    reads_.push_back({addr, b->m_axi_arlen + 1u, 0, now + draw(options_.memory)});
  }
  if (took_.r && ++reads_.front().done == reads_.front().beats) reads_.pop_front();
  if (b->m_axi_awvalid && b->m_axi_awready) {
    if (b->m_axi_awlen != 0 || b->m_axi_awaddr % 64 != 0) complain("write that is not one aligned beat");
    write_addrs_.push_back(b->m_axi_awaddr);
  }
  if (b->m_axi_wvalid && b->m_axi_wready) {
    if (!b->m_axi_wlast || b->m_axi_wstrb != ~uint64_t{0})
      complain("write without its last beat or all strobes");
    write_lines_.push_back(to_line(b->m_axi_wdata));
  }
  while (!write_addrs_.empty() && !write_lines_.empty()) {
    memory_[write_addrs_.front() >> 6] = write_lines_.front();
    take_cqe(write_addrs_.front(), write_lines_.front());
    write_addrs_.pop_front();
    write_lines_.pop_front();
    write_due_.push_back(now + draw(options_.memory));
  }
}

void Engine::release() {
  if (took_.db) b->db_valid_i = 0;
  if (took_.sig) b->sig_valid_i = 0;
  if (took_.cpl) b->cpl_valid_i = 0;
  if (took_.nmc_cpl) b->nmc_cpl_valid_i = 0;
  if (took_.r) b->m_axi_rvalid = 0;
  if (took_.b) b->m_axi_bvalid = 0;
}

}  // namespace me
