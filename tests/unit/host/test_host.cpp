// SPDX-License-Identifier: Apache-2.0
// weft_host through its two buses, as the driver uses it.
#include <deque>
#include <functional>

#include "Vhost_top.h"
#include "weft_cfg.h"
#include "weft_counters.h"
#include "weft_regs.h"
#include "weft_test.h"

using namespace weft::test;
namespace regs = weft::regs;
namespace cfg = weft::cfg;
namespace counters = weft::counters;

namespace {

constexpr unsigned kPorts = 3;
constexpr unsigned kRestCycles = 32;  // of all blocks, behind a reset
constexpr unsigned kConnGap = 80;

struct Answer {
  uint32_t data;
  unsigned resp;
};

struct CfgWrite {
  unsigned kind, index;
  std::array<uint32_t, 16> data;
  uint64_t cycle;
};

class HostBench {
 public:
  HostBench(Profile profile, uint64_t stream)
      : rng(seed(), stream),
        bench("weft_host"),
        aw_(profile, 20 * stream),
        w_(profile, 20 * stream + 1),
        b_(profile, 20 * stream + 2),
        ar_(profile, 20 * stream + 3),
        r_(profile, 20 * stream + 4),
        db_(profile, 20 * stream + 5) {
    auto& d = *bench.operator->();
    d.s_axil_awvalid = d.s_axil_wvalid = d.s_axil_bready = d.s_axil_arvalid = d.s_axil_rready = 0;
    d.s_axi_db_awvalid = d.s_axi_db_wvalid = d.s_axi_db_bready = 0;
    d.db_ready_i = 0;
    d.cpu_status_i = 0;
    d.cnt_me_i = 0;
    d.cnt_nmc_i = 0;
    d.cnt_core_i = 0;
    d.cnt_port_i = {};
    d.idle_me_i = d.idle_core_i = 1;
    d.idle_ports_i = 7;
    d.drained_i = 0;
    bench.reset();
  }

  void step() {
    bench->db_ready_i = engine_takes && db_.go();
    bench.eval();
    if (bench->cfg_o[16] >> 20 & 1) {  // valid is the top bit of cfg_t: 1 + 4 + 16 + 512 bits
      CfgWrite w{bench->cfg_o[16] >> 16 & 15, bench->cfg_o[16] & 0xffff, {}, bench.cycle()};
      for (size_t i = 0; i < 16; ++i) w.data[i] = bench->cfg_o[i];
      cfg_seen.push_back(w);
    }
    if (bench->fw_we_o) fw_seen.push_back({bench->fw_addr_o, bench->fw_data_o});
    if (bench->db_valid_o && bench->db_ready_i) doorbells.push_back(bench->db_o[0]);
    soft_cycles += bench->soft_rst_o;
    // The masters of a node: drained `drain_cycles` after they were isolated, and until they are let go.
    isolated = bench->isolate_o ? isolated + 1 : 0;
    bench.tick();
    bench->drained_i = isolated > drain_cycles;
    // Blocks walk their tables behind a reset, each as long as it takes.
    if (bench->soft_rst_o)
      walk = walk_cycles;
    else if (walk != 0)
      --walk;
    if (walk_cycles == 0) return;
    if (slow_port)
      bench->idle_ports_i = walk == 0 ? 7 : 5;
    else
      bench->idle_core_i = walk == 0;
  }

  unsigned write(uint32_t addr, uint32_t data, unsigned strobe = 15) {
    bool aw = false, w = false, aw_done = false, w_done = false;
    bench->s_axil_awaddr = static_cast<uint16_t>(addr);
    bench->s_axil_wdata = data;
    bench->s_axil_wstrb = static_cast<uint8_t>(strobe);
    while (true) {
      aw = aw || (!aw_done && aw_.go());
      w = w || (!w_done && w_.go());
      bench->s_axil_awvalid = aw;
      bench->s_axil_wvalid = w;
      bench->s_axil_bready = b_.go();
      bench.eval();
      if (aw && bench->s_axil_awready) {
        aw_done = true;
        aw = false;
      }
      if (w && bench->s_axil_wready) {
        w_done = true;
        w = false;
      }
      const bool answered = bench->s_axil_bvalid && bench->s_axil_bready;
      const unsigned resp = bench->s_axil_bresp;
      step();
      bench->s_axil_awvalid = bench->s_axil_wvalid = 0;
      if (answered) {
        REQUIRE((aw_done && w_done));
        bench->s_axil_bready = 0;
        bench.progress();
        return resp;
      }
    }
  }

  Answer read(uint32_t addr) {
    bool ar = false, ar_done = false;
    bench->s_axil_araddr = static_cast<uint16_t>(addr);
    while (true) {
      ar = ar || (!ar_done && ar_.go());
      bench->s_axil_arvalid = ar;
      bench->s_axil_rready = r_.go();
      bench.eval();
      if (ar && bench->s_axil_arready) {
        ar_done = true;
        ar = false;
      }
      const bool answered = bench->s_axil_rvalid && bench->s_axil_rready;
      const Answer a{bench->s_axil_rdata, bench->s_axil_rresp};
      step();
      bench->s_axil_arvalid = 0;
      if (answered) {
        bench->s_axil_rready = 0;
        bench.progress();
        return a;
      }
    }
  }
  uint32_t get(uint32_t addr) {
    const Answer a = read(addr);
    REQUIRE(a.resp == 0);
    return a.data;
  }
  void put(uint32_t addr, uint32_t data) { REQUIRE(write(addr, data) == 0); }

  uint64_t counter(uint32_t index) {
    put(regs::kCntSel, index);
    const uint64_t low = get(regs::kCntLo);
    return low | static_cast<uint64_t>(get(regs::kCntHi)) << 32;
  }

  template <class T>
  void configure(const T& table, unsigned index) {
    const cfg::Words words = table.words();
    for (unsigned i = 0; i < 16; ++i) put(regs::kCfgData + 4 * i, words[i]);
    put(regs::kCfgCmd,
        regs::kCfgCmdKind.put(static_cast<uint32_t>(T::kTable)) | regs::kCfgCmdIndex.put(index));
  }

  // A doorbell whose first word is `word`; true: answered OKAY.
  bool doorbell(uint32_t word, uint64_t strobe = ~uint64_t{0}) {
    bool aw = true, w = true;
    bench->s_axi_db_awaddr = 0x40;
    bench->s_axi_db_awlen = 0;
    bench->s_axi_db_wdata[0] = word;
    bench->s_axi_db_wstrb = strobe;
    bench->s_axi_db_wlast = 1;
    bench->s_axi_db_bready = 1;
    while (true) {
      bench->s_axi_db_awvalid = aw;
      bench->s_axi_db_wvalid = w;
      bench.eval();
      if (bench->s_axi_db_awready) aw = false;
      if (bench->s_axi_db_wready) w = false;
      const bool answered = bench->s_axi_db_bvalid;
      const bool okay = bench->s_axi_db_bresp == 0;
      step();
      bench->s_axi_db_awvalid = bench->s_axi_db_wvalid = 0;
      if (answered) {
        bench->s_axi_db_bready = 0;
        bench.progress();
        return okay;
      }
    }
  }

  Rng rng;
  Bench<Vhost_top> bench;
  std::vector<CfgWrite> cfg_seen;
  std::vector<std::pair<unsigned, uint32_t>> fw_seen;
  std::vector<uint32_t> doorbells;
  unsigned soft_cycles = 0;
  unsigned isolated = 0, drain_cycles = 2;  // the masters
  unsigned walk = 0, walk_cycles = 0;       // of one block behind a reset
  bool slow_port = false;                   // that block is a port, else the core
  bool engine_takes = true;                 // doorbells

 private:
  Stall aw_, w_, b_, ar_, r_, db_;
};

}  // namespace

TEST_CASE("host: a node says what it is", "[host][smoke]") {
  HostBench h(Profile::None, 1);
  CHECK(h.get(regs::kId) == 0x57454654);
  CHECK(regs::kVersionMajor.get(h.get(regs::kVersion)) == regs::kVersionMajorReads);
  CHECK(h.get(regs::kInterface) == regs::kInterfaceHash);
  const uint32_t caps0 = h.get(regs::kCaps0), caps1 = h.get(regs::kCaps1), caps2 = h.get(regs::kCaps2);
  CHECK(regs::kCaps0NumPorts.get(caps0) == kPorts);
  CHECK(regs::kCaps0PathsPerPort.get(caps0) == 8);
  CHECK(regs::kCaps0NumConns.get(caps0) == 64);
  CHECK(regs::kCaps1NumRegions.get(caps1) == 64);
  CHECK(regs::kCaps1NumSems.get(caps1) == 256);
  CHECK(regs::kCaps2NumSubgraphs.get(caps2) == 64);
  CHECK(regs::kCaps2NumMsgs.get(caps2) == 256);
  CHECK(regs::kCaps3NumCounters.get(h.get(regs::kCaps3)) == counters::count(kPorts));
  CHECK(regs::kCaps3ExactSums.get(h.get(regs::kCaps3)) == 2);
}

TEST_CASE("host: accesses that make no sense answer SLVERR and change nothing", "[host][smoke]") {
  HostBench h(Profile::Half, 2);
  CHECK(h.read(0x00c).resp == 2);
  CHECK(h.read(0x0c0).resp == 2);
  CHECK(h.read(0xfffc).resp == 2);
  CHECK(h.write(0x7fc, 1) == 2);
  CHECK(h.write(regs::kId, 1) == 2);
  CHECK(h.read(regs::kCfgCmd).resp == 2);
  CHECK(h.write(regs::kCntLo, 1) == 2);
  CHECK(h.get(regs::kId) == 0x57454654);
  CHECK(h.cfg_seen.empty());
  CHECK(h.fw_seen.empty());
}

TEST_CASE("host: configuration writes arrive whole and keep their distance", "[host][random]") {
  uint64_t stream = 10;
  for (Profile profile : kProfiles) {
    INFO(name_of(profile));
    HostBench h(profile, stream++);
    std::vector<CfgWrite> sent;
    std::array<uint32_t, 16> data{};
    for (int n = 0; n < 60; ++n) {
      // Rewriting one word is enough to make a new command, and the fastest software can be.
      const unsigned words = h.rng.chance(0.5) ? 1 : 16;
      for (unsigned i = 0; i < words; ++i) {
        data[i] = static_cast<uint32_t>(h.rng());
        h.put(regs::kCfgData + 4 * i, data[i]);
      }
      const unsigned kind = static_cast<unsigned>(h.rng.below(6)), index = h.rng() & 0xffff;
      h.put(regs::kCfgCmd, regs::kCfgCmdKind.put(kind) | regs::kCfgCmdIndex.put(index));
      sent.push_back({kind, index, data, 0});
      REQUIRE(h.cfg_seen.size() == sent.size());  // the answer comes after the write
    }
    for (size_t i = 0; i < sent.size(); ++i) {
      const CfgWrite& got = h.cfg_seen[i];
      REQUIRE(got.kind == sent[i].kind);
      REQUIRE(got.index == sent[i].index);
      REQUIRE(got.data == sent[i].data);
      if (i > 0) {
        const uint64_t gap = got.cycle - h.cfg_seen[i - 1].cycle;
        REQUIRE(gap >= (sent[i - 1].kind == 1 ? kConnGap : 16U));
      } else {
        REQUIRE(got.cycle >= kRestCycles);
      }
    }
    CHECK(h.counter(counters::index(counters::Node::kHostCfgWrites)) == sent.size());
  }
}

TEST_CASE("host: back-to-back commands are exactly as far apart as promised", "[host][smoke]") {
  HostBench h(Profile::None, 3);
  for (unsigned kind : {0U, 0U, 1U, 1U, 2U}) h.put(regs::kCfgCmd, regs::kCfgCmdKind.put(kind));
  REQUIRE(h.cfg_seen.size() == 5);
  std::vector<uint64_t> gaps;
  for (size_t i = 1; i < 5; ++i) gaps.push_back(h.cfg_seen[i].cycle - h.cfg_seen[i - 1].cycle);
  CHECK(gaps == std::vector<uint64_t>{16, 16, kConnGap, kConnGap});
}

TEST_CASE("host: firmware words land at counting addresses", "[host][random]") {
  HostBench h(Profile::Changing, 4);
  std::vector<std::pair<unsigned, uint32_t>> sent;
  for (int block = 0; block < 4; ++block) {
    unsigned addr = block == 3 ? 0xfffe : h.rng() & 0xffff;
    h.put(regs::kFwAddr, addr);
    for (int i = 0; i < 20; ++i) {
      const uint32_t word = static_cast<uint32_t>(h.rng());
      h.put(regs::kFwData, word);
      sent.push_back({addr, word});
      addr = (addr + 1) & 0xffff;
    }
    CHECK(h.get(regs::kFwAddr) == addr);
  }
  CHECK(h.fw_seen == sent);
  CHECK(h.counter(counters::index(counters::Node::kHostFwWrites)) == sent.size());
}

TEST_CASE("host: doorbells pass in order, halves are refused, both are counted", "[host][random]") {
  HostBench h(Profile::Half, 5);
  std::vector<uint32_t> sent;
  unsigned refused = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    if (h.rng.chance(0.2)) {
      REQUIRE_FALSE(h.doorbell(i, 0xffffffff));
      ++refused;
    } else {
      REQUIRE(h.doorbell(i));
      sent.push_back(i);
    }
  }
  while (regs::kIdleHost.get(h.get(regs::kIdle)) == 0) {}
  CHECK(h.doorbells == sent);
  CHECK(h.counter(counters::index(counters::Node::kHostDoorbells)) == sent.size());
  CHECK(h.counter(counters::index(counters::Node::kHostDoorbellsRefused)) == refused);
}

TEST_CASE("host: events of every block reach the counter of their name", "[host][smoke]") {
  HostBench h(Profile::None, 6);
  h.bench->cnt_nmc_i = 1;           // lowest bit: nmc.inexact
  h.bench->cnt_core_i = 1;          // core.msg_sent
  h.bench->cnt_me_i = 1U << 23;     // highest bit: me.doorbell
  h.bench->cnt_port_i[0] = 1 << 3;  // drop.ethertype of port 0
  h.step();
  h.step();
  h.bench->cnt_nmc_i = 0;
  h.bench->cnt_core_i = 0;
  h.bench->cnt_me_i = 0;
  h.bench->cnt_port_i = {};
  using counters::Node;
  using counters::Port;
  CHECK(h.counter(counters::index(Node::kNmcInexact)) == 2);
  CHECK(h.counter(counters::index(Node::kCoreMsgSent)) == 2);
  CHECK(h.counter(counters::index(Node::kMeDoorbell)) == 2);
  CHECK(h.counter(counters::index(Port::kDropEthertype, 0)) == 2);
  CHECK(h.counter(counters::index(Port::kDropEthertype, 1)) == 0);
  CHECK(h.counter(0xffff) == 0);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < counters::count(kPorts); ++i) sum += h.counter(i);
  CHECK(sum == 8);
}

TEST_CASE("host: status, control and cycle counter", "[host][smoke]") {
  HostBench h(Profile::Light, 7);
  CHECK(h.bench->cpu_run_o == 0);
  h.put(regs::kCtrl, regs::kCtrlCpuRun.put(1));
  CHECK(h.bench->cpu_run_o == 0);  // not while tables are walked
  while (regs::kIdleResetDone.get(h.get(regs::kIdle)) == 0) {}
  CHECK(h.bench->cpu_run_o == 1);
  h.bench->cpu_status_i = 0xc0ffee01;
  h.bench->idle_me_i = 0;
  h.bench->idle_ports_i = 5;
  h.step();
  CHECK(h.get(regs::kCpuStatus) == 0xc0ffee01);
  const uint32_t idle = h.get(regs::kIdle);
  CHECK(regs::kIdleMe.get(idle) == 0);
  CHECK(regs::kIdleCore.get(idle) == 1);
  CHECK(regs::kIdlePorts.get(idle) == 5);
  const uint64_t before = h.bench->now_o;
  const uint32_t low = h.get(regs::kCyclesLo);
  CHECK(low >= before);
  CHECK(low <= h.bench->now_o);
  CHECK(h.get(regs::kCyclesHi) == 0);
}

TEST_CASE("host: soft reset waits for the masters, then for every block's tables", "[host][smoke]") {
  for (unsigned drain : {2U, 500U})
    for (unsigned walk : {3U, 900U, 5000U})
      for (bool port : {false, true}) {
        CAPTURE(drain, walk, port);
        HostBench h(Profile::None, 8);
        h.drain_cycles = drain;
        h.walk_cycles = walk;
        h.slow_port = port;
        h.put(regs::kCfgCmd, 0);
        h.put(regs::kCtrl, regs::kCtrlCpuRun.put(1) | regs::kCtrlSoftReset.put(1));
        const uint64_t started = h.bench.cycle();
        CHECK(h.get(regs::kCtrl) == regs::kCtrlCpuRun.put(1));  // soft_reset reads 0
        CHECK(h.bench->cpu_run_o == 0);                         // no firmware before the tables are there
        if (drain == 500) {
          while (h.bench.cycle() < started + 300) {
            const uint32_t idle = h.get(regs::kIdle);
            REQUIRE(regs::kIdleResetDone.get(idle) == 0);
            REQUIRE(regs::kIdleDraining.get(idle) == 1);
            REQUIRE(h.soft_cycles == 0);  // not before the masters owe nothing
          }
        }
        h.put(regs::kCfgCmd, regs::kCfgCmdKind.put(2));
        REQUIRE(h.cfg_seen.size() == 2);
        CHECK(h.cfg_seen[1].cycle >= started + drain + walk + kRestCycles);
        CHECK(h.cfg_seen[1].cycle <= started + drain + walk + kRestCycles + 60);
        CHECK(h.soft_cycles == 16);
        const uint32_t idle = h.get(regs::kIdle);
        CHECK(regs::kIdleResetDone.get(idle) == 1);
        CHECK(regs::kIdleDraining.get(idle) == 0);
        CHECK(h.bench->cpu_run_o == 1);
        CHECK(h.counter(counters::index(counters::Node::kHostCfgWrites)) == 2);
        CHECK(h.doorbell(77));
        while (h.doorbells.empty()) h.step();
        CHECK(h.doorbells == std::vector<uint32_t>{77});
      }
}

TEST_CASE("host: a soft reset while one is under way, or its tables are walked", "[host]") {
  HostBench h(Profile::None, 9);
  h.drain_cycles = 100;
  h.walk_cycles = 400;
  for (unsigned n = 1; n <= 2; ++n) {
    h.put(regs::kCtrl, regs::kCtrlSoftReset.put(1));
    h.put(regs::kCtrl, regs::kCtrlSoftReset.put(1));  // drains already: the same reset
    while (h.soft_cycles != 16 * n) h.step();
    for (int i = 0; i < 50; ++i) h.step();  // tables are walked: one more
  }
  while (regs::kIdleResetDone.get(h.get(regs::kIdle)) == 0) {}
  CHECK(h.soft_cycles == 32);
}

TEST_CASE("host: doorbells that the engine has not taken are forgotten by a soft reset", "[host]") {
  HostBench h(Profile::None, 10);
  h.engine_takes = false;
  for (uint32_t n = 1; n <= 4; ++n) CHECK(h.doorbell(n));  // as many as the queue holds
  h.put(regs::kCtrl, regs::kCtrlSoftReset.put(1));
  while (regs::kIdleResetDone.get(h.get(regs::kIdle)) == 0) {}
  CHECK(regs::kIdleHost.get(h.get(regs::kIdle)) == 1);
  h.engine_takes = true;
  for (int i = 0; i < 100; ++i) h.step();
  CHECK(h.doorbells.empty());
  CHECK(h.doorbell(99));
  while (h.doorbells.empty()) h.step();
  CHECK(h.doorbells == std::vector<uint32_t>{99});
}

TEST_CASE("host: CYCLES_HI belongs to the moment CYCLES_LO was read", "[host]") {
  HostBench h(Profile::None, 11);
  auto& now = h.bench->rootp->weft_host__DOT__now_q;
  now = 0x0000'0007'ffff'fff0;
  const uint32_t low = h.get(regs::kCyclesLo);
  REQUIRE(low >= 0xffff'fff0);  // before the wrap
  while (now < 0x0000'0008'0000'0010) h.step();
  CHECK(h.get(regs::kCyclesHi) == 7);
  CHECK(h.get(regs::kCyclesLo) < 0x1000);
  CHECK(h.get(regs::kCyclesHi) == 8);
}

TEST_CASE("host: reads and writes at the same time do not disturb each other", "[host][random]") {
  for (Profile profile : {Profile::None, Profile::Half, Profile::Changing}) {
    INFO(name_of(profile));
    HostBench h(profile, 30 + static_cast<uint64_t>(profile));
    // Two streams with no order between them: one writes CFG_DATA[3] and commands, the other reads counters
    // and the identification. Both registers hold the bus, so each keeps meeting a pending access of the
    // other.
    Stall aw(profile, 91), w(profile, 92), b(profile, 93), ar(profile, 94), r(profile, 95);
    struct Op {
      uint32_t addr, data;
    };
    std::vector<Op> writes;
    std::vector<uint32_t> words, reads;
    for (int i = 0; i < 60; ++i) {
      words.push_back(static_cast<uint32_t>(h.rng()));
      writes.push_back({regs::kCfgData + 12, words.back()});
      writes.push_back({regs::kCfgCmd, regs::kCfgCmdKind.put(0)});
    }
    for (int i = 0; i < 150; ++i)
      reads.push_back(i % 3 == 0 ? regs::kId : i % 3 == 1 ? regs::kCntLo : regs::kCntHi);
    h.put(regs::kCntSel, counters::index(counters::Node::kHostCfgWrites));
    size_t aw_next = 0, w_next = 0, b_next = 0, ar_next = 0, r_next = 0;
    bool aw_up = false, w_up = false, ar_up = false;
    uint32_t last = 0;
    auto& d = *h.bench.operator->();
    while (b_next < writes.size() || r_next < reads.size()) {
      // A write starts when the one before is answered: a command must find the data it was written for.
      aw_up = aw_up || (aw_next == b_next && aw_next < writes.size() && aw.go());
      w_up = w_up || (w_next == b_next && w_next < writes.size() && w.go());
      ar_up = ar_up || (ar_next == r_next && ar_next < reads.size() && ar.go());
      d.s_axil_awvalid = aw_up;
      d.s_axil_wvalid = w_up;
      d.s_axil_arvalid = ar_up;
      if (aw_up) d.s_axil_awaddr = static_cast<uint16_t>(writes[aw_next].addr);
      if (w_up) d.s_axil_wdata = writes[w_next].data;
      d.s_axil_wstrb = 15;
      if (ar_up) d.s_axil_araddr = static_cast<uint16_t>(reads[ar_next]);
      d.s_axil_bready = b.go();
      d.s_axil_rready = r.go();
      h.bench.eval();
      if (aw_up && d.s_axil_awready) {
        aw_up = false;
        ++aw_next;
      }
      if (w_up && d.s_axil_wready) {
        w_up = false;
        ++w_next;
      }
      if (ar_up && d.s_axil_arready) {
        ar_up = false;
        ++ar_next;
      }
      if (d.s_axil_bvalid && d.s_axil_bready) {
        REQUIRE(d.s_axil_bresp == 0);
        ++b_next;
        h.bench.progress();
      }
      if (d.s_axil_rvalid && d.s_axil_rready) {
        REQUIRE(d.s_axil_rresp == 0);
        const uint32_t got = d.s_axil_rdata;
        if (reads[r_next] == regs::kId) REQUIRE(got == 0x57454654);
        if (reads[r_next] == regs::kCntHi) REQUIRE(got == 0);
        if (reads[r_next] == regs::kCntLo) {
          REQUIRE(got >= last);
          REQUIRE(got <= h.cfg_seen.size());
          last = got;
        }
        ++r_next;
        h.bench.progress();
      }
      h.step();
    }
    d.s_axil_awvalid = d.s_axil_wvalid = d.s_axil_arvalid = 0;
    REQUIRE(h.cfg_seen.size() == words.size());
    for (size_t i = 0; i < words.size(); ++i) REQUIRE(h.cfg_seen[i].data[3] == words[i]);
  }
}
