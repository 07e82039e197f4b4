// SPDX-License-Identifier: Apache-2.0
// The host's side of a node without the node: registers that answer as a healthy one, memory, and a
// completion for every doorbell, at once or, of those held, when let go. For tests of what driver and library
// ask of the hardware.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "sw/weft/hal.h"
#include "weft_cfg.h"
#include "weft_regs.h"
#include "weft_wire.h"

namespace weft::test {

class FakeNode : public Hal {
 public:
  struct Config {
    cfg::Table table;
    unsigned index;
    cfg::Words words;
  };

  FakeNode() {
    regs[regs::kId] = regs::kIdValueReads;
    regs[regs::kVersion] = regs::kVersionMajor.put(regs::kVersionMajorReads);
    regs[regs::kInterface] = regs::kInterfaceHash;
    regs[regs::kCaps0] =
        regs::kCaps0NumPorts.put(2) | regs::kCaps0PathsPerPort.put(8) | regs::kCaps0NumConns.put(64);
    regs[regs::kCaps1] = regs::kCaps1NumRegions.put(64) | regs::kCaps1NumSems.put(256);
    regs[regs::kCaps2] = regs::kCaps2NumSubgraphs.put(64);
    regs[regs::kIdle] = regs::kIdleMe.put(1) | regs::kIdleHost.put(1) | regs::kIdleResetDone.put(1);
    regs[regs::kCpuStatus] = 0x57010000;
  }

  std::map<std::uint32_t, std::uint32_t> regs;  // what a read answers
  std::vector<Config> configs;                  // every configuration write, in order
  std::vector<wire::Doorbell> doorbells;        // every doorbell, in order
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1 << 20);
  // Status of a doorbell's completion, with the entry and cycle to report; absent: OK at once.
  std::function<void(const wire::Doorbell&, wire::Cqe&)> answer;
  std::function<bool(const wire::Doorbell&)> hold;  // whether it is not answered now
  std::vector<wire::Doorbell> held;                 // in order
  // Answers what is held, first to last, of this operation or all.
  void let_go(wire::DbOp op, wire::Err status = wire::Err::OK, std::uint32_t entry = 0) {
    std::vector<wire::Doorbell> rest;
    for (const wire::Doorbell& d : held)
      if (d.op == op)
        complete(d, status, entry);
      else
        rest.push_back(d);
    held = std::move(rest);
  }

  unsigned valid_regions() const {
    std::map<unsigned, bool> valid;
    for (const Config& c : configs)
      if (c.table == cfg::Table::kRegion) valid[c.index] = field(c, cfg::Region{.valid = true}) != 0;
    return static_cast<unsigned>(std::count_if(valid.begin(), valid.end(), [](auto& v) { return v.second; }));
  }
  // What was last written to an entry of a table; zeros if nothing was.
  Config last(cfg::Table table, unsigned index) const {
    for (auto c = configs.rbegin(); c != configs.rend(); ++c)
      if (c->table == table && c->index == index) return *c;
    return {table, index, {}};
  }
  // The field that is all ones in `ones`: field(c, cfg::Conn{.tx_psn = 0xffffff}).
  template <class Entry>
  static std::uint64_t field(const Config& c, const Entry& ones) {
    const cfg::Words mask = ones.words();
    std::uint64_t value = 0;
    unsigned at = 0;
    for (unsigned bit = 0; bit < 32 * mask.size(); ++bit)
      if (mask[bit / 32] >> bit % 32 & 1) value |= std::uint64_t{c.words[bit / 32] >> bit % 32 & 1} << at++;
    return value;
  }

  std::uint64_t now = 0;  // ns
  std::uint64_t now_ns() override { return now; }
  void csr_write(std::uint32_t addr, std::uint32_t value) override {
    if (addr >= regs::kCfgData && addr < regs::kCfgData + 4 * regs::kCfgDataCount) {
      data_[(addr - regs::kCfgData) / 4] = value;
    } else if (addr == regs::kCfgCmd) {
      configs.push_back(
          {static_cast<cfg::Table>(regs::kCfgCmdKind.get(value)), regs::kCfgCmdIndex.get(value), data_});
      if (configs.back().table == cfg::Table::kCq) {
        ring_ = field(configs.back(), cfg::Cq{.base = ~std::uint64_t{0}});
        ring_last_ = static_cast<std::uint32_t>(field(configs.back(), cfg::Cq{.last = ~std::uint32_t{0}}));
        seq_ = 0;
      }
    }
  }
  std::uint32_t csr_read(std::uint32_t addr) override {
    const auto r = regs.find(addr);
    return r == regs.end() ? 0 : r->second;
  }
  void doorbell(const void* bytes64) override {
    doorbells.push_back(wire::Doorbell::unpack(static_cast<const std::uint8_t*>(bytes64)));
    const wire::Doorbell d = doorbells.back();
    if (hold && hold(d))
      held.push_back(d);
    else
      complete(d, wire::Err::OK, 0);
  }
  void mem_write(std::uint64_t addr, const void* bytes, std::size_t count) override {
    std::memcpy(memory.data() + addr, bytes, count);
  }
  void mem_read(std::uint64_t addr, void* bytes, std::size_t count) override {
    std::memcpy(bytes, memory.data() + addr, count);
  }

 private:
  void complete(const wire::Doorbell& d, wire::Err status, std::uint32_t entry) {
    wire::Cqe e;
    e.cookie = d.cookie;
    e.subgraph = d.subgraph;
    e.op = d.op;
    e.status = status;
    e.entry = entry;
    e.seq = ++seq_;
    if (answer) answer(d, e);
    e.pack(&memory[ring_ + std::uint64_t{(e.seq - 1) & ring_last_} * wire::Cqe::kBytes]);
  }

  cfg::Words data_{};
  std::uint64_t ring_ = 0;
  std::uint32_t ring_last_ = 0, seq_ = 0;
};

}  // namespace weft::test
