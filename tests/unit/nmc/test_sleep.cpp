// SPDX-License-Identifier: Apache-2.0
//
// The clock of an idle reducer stops in simulation (weft_clk_gate). Nobody may notice: beside the one
// that sleeps runs one that never does, on the same inputs, and their outputs are compared in every cycle.
// That it does stop is seen in the gate itself: two that never sleep would agree as well.
// The other one is also built with random values in what clocked blocks declare and do not initialise
// (sw/tools/verilate.py): whatever read one of those before writing it would make the two differ.
#include "Vnmc_awake.h"
#include "Vnmc_top.h"
#include "nmc_fixture.h"

using namespace weft;
using nmc::NmcRequest;
using Fixture = test::Fixture<Vnmc_top>;

namespace {

// Cycles behind its last answer after which an idle reducer is asleep for certain.
constexpr unsigned kFallsAsleep = 200;

class Twins {
 public:
  explicit Twins(double stall) : f_(settings(), stall), awake_("weft_nmc awake") { reset(); }

  Fixture& fixture() { return f_; }

  /// Whether the clock of the one that sleeps stands: the next edge does not reach its registers.
  bool asleep() { return f_.bench().dut().rootp->weft_nmc__DOT__u_clk__DOT__gen_gate__DOT__run_q == 0; }
  /// How often it was asleep and a request woke it.
  unsigned woken() const { return woken_; }

  void reset() {
    f_.start();
    copy_inputs();
    awake_.reset();
  }

  void step() {
    const bool slept = asleep();
    f_.world().drive();
    f_.bench().eval();
    copy_inputs();
    awake_.eval();
    compare();
    f_.world().look();
    if (f_.world().moved() || f_.world().idle()) {
      f_.bench().progress();
      awake_.progress();
    }
    f_.bench().tick();
    awake_.tick();
    woken_ += slept && !asleep();
  }

 private:
  static nmc::NmcSettings settings() {
    nmc::NmcSettings s;
    s.latency = 7;
    s.jitter = 40;
    return s;
  }

  void copy_inputs() {
    Vnmc_top& a = f_.bench().dut();
    Vnmc_awake& b = awake_.dut();
    b.req_valid_i = a.req_valid_i;
    b.req_i = a.req_i;
    b.cpl_ready_i = a.cpl_ready_i;
    b.m_axi_a_arready = a.m_axi_a_arready;
    b.m_axi_a_rvalid = a.m_axi_a_rvalid;
    b.m_axi_a_rdata = a.m_axi_a_rdata;
    b.m_axi_a_rresp = a.m_axi_a_rresp;
    b.m_axi_a_rlast = a.m_axi_a_rlast;
    b.m_axi_b_arready = a.m_axi_b_arready;
    b.m_axi_b_rvalid = a.m_axi_b_rvalid;
    b.m_axi_b_rdata = a.m_axi_b_rdata;
    b.m_axi_b_rresp = a.m_axi_b_rresp;
    b.m_axi_b_rlast = a.m_axi_b_rlast;
    b.m_axi_w_awready = a.m_axi_w_awready;
    b.m_axi_w_wready = a.m_axi_w_wready;
    b.m_axi_w_bvalid = a.m_axi_w_bvalid;
    b.m_axi_w_bresp = a.m_axi_w_bresp;
  }

  // What is not offered, and bytes that are not written, may be anything in both.
  void compare() {
    Vnmc_top& a = f_.bench().dut();
    Vnmc_awake& b = awake_.dut();
    same("cnt", a.cnt_o, b.cnt_o);
    same("req_ready", a.req_ready_o, b.req_ready_o);
    same("cpl_valid", a.cpl_valid_o, b.cpl_valid_o);
    same("arvalid a", a.m_axi_a_arvalid, b.m_axi_a_arvalid);
    same("rready a", a.m_axi_a_rready, b.m_axi_a_rready);
    same("arvalid b", a.m_axi_b_arvalid, b.m_axi_b_arvalid);
    same("rready b", a.m_axi_b_rready, b.m_axi_b_rready);
    same("awvalid", a.m_axi_w_awvalid, b.m_axi_w_awvalid);
    same("wvalid", a.m_axi_w_wvalid, b.m_axi_w_wvalid);
    same("bready", a.m_axi_w_bready, b.m_axi_w_bready);
    if (a.cpl_valid_o) {
      same("cpl", a.cpl_o, b.cpl_o);
      same("cpl_cycles", a.cpl_cycles_o, b.cpl_cycles_o);
    }
    if (a.m_axi_a_arvalid) {
      same("araddr a", a.m_axi_a_araddr, b.m_axi_a_araddr);
      same("arlen a", a.m_axi_a_arlen, b.m_axi_a_arlen);
    }
    if (a.m_axi_b_arvalid) {
      same("araddr b", a.m_axi_b_araddr, b.m_axi_b_araddr);
      same("arlen b", a.m_axi_b_arlen, b.m_axi_b_arlen);
    }
    if (a.m_axi_w_awvalid) {
      same("awaddr", a.m_axi_w_awaddr, b.m_axi_w_awaddr);
      same("awlen", a.m_axi_w_awlen, b.m_axi_w_awlen);
    }
    if (!a.m_axi_w_wvalid) return;
    same("wlast", a.m_axi_w_wlast, b.m_axi_w_wlast);
    for (unsigned i = 0; i < nmc::kBeatBytes; ++i) {
      const unsigned word = i / 32, bit = i % 32;
      same("wstrb", a.m_axi_w_wstrb[word] >> bit & 1, b.m_axi_w_wstrb[word] >> bit & 1);
      if (a.m_axi_w_wstrb[word] >> bit & 1)
        same("wdata", a.m_axi_w_wdata[i / 4] >> i % 4 * 8 & 0xff, b.m_axi_w_wdata[i / 4] >> i % 4 * 8 & 0xff);
    }
  }

  void same(const char* what, uint64_t sleeper, uint64_t awake) {
    if (sleeper == awake) return;
    INFO(what << " in cycle " << f_.world().cycle());
    REQUIRE(sleeper == awake);
  }

  Fixture f_;
  test::Bench<Vnmc_awake> awake_;
  unsigned woken_ = 0;
};

}  // namespace

TEST_CASE("nmc: an idle reducer whose clock stops does what one that runs does", "[nmc][random]") {
  for (double stall : {0.0, 0.5}) {
    Twins twins(stall);
    Fixture& f = twins.fixture();
    f.stall(Fixture::World::kReq, 0.98);  // requests alone, close and far apart
    for (unsigned round = 0; round < 60; ++round) {
      if (round % 8 == 7) {  // in the middle of something
        for (uint64_t i = f.rng().below(300); i != 0; --i) twins.step();
        twins.reset();
        f.stall(Fixture::World::kReq, 0.98);
      }
      f.clear();
      std::vector<NmcRequest> requests;
      for (unsigned i = 0; i < 6; ++i) requests.push_back(f.any_request(300));
      for (const auto& r : requests) f.fill_operands(r);
      f.push(requests);
      if (round % 8 == 6) continue;
      while (!f.world().idle()) twins.step();
      for (uint64_t i = f.rng().below(150); i != 0; --i) twins.step();
      f.world().compare();
      if (round % 8 == 3) {  // asleep
        for (unsigned i = 0; i < kFallsAsleep && !twins.asleep(); ++i) twins.step();
        REQUIRE(twins.asleep());
        twins.reset();
        f.stall(Fixture::World::kReq, 0.98);
      }
    }
    CHECK(twins.woken() >= 10);
  }
}
