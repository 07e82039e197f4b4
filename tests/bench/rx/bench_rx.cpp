// SPDX-License-Identifier: Apache-2.0
//
// Figures of weft_rx_path alone: simulated cycles a second with the MAC busy in every cycle, and idle. The
// surroundings are as thin as can be (memory always ready, a response a burst); correctness is tests/unit/rx.
#include <cstring>
#include <ctime>
#include <vector>

#include "Vrx_flat.h"
#include "frame.h"
#include "tb/sim/owned_model.h"
#include "weft_bench.h"
#include "weft_cfg.h"

namespace {

using namespace weft;

constexpr std::uint64_t kMac = 0x02005e10a1b2;
constexpr std::uint32_t kIp = 0x0a010203, kKey = 0x12345601;
constexpr unsigned kPort = 1, kPaths = 8;

class Alone {
 public:
  Alone() {
    dut_->rst_i = 1;
    for (int i = 0; i < 4; ++i) edge();
    dut_->rst_i = 0;
    dut_->m_axi_awready = dut_->m_axi_wready = dut_->commit_ready_i = 1;
    dut_->ack_ready_i = 3;
    for (int i = 0; i < 520; ++i) edge();
    configure(cfg::Port{kMac, kIp}.words(), cfg::Table::kPort, kPort);
    cfg::Region region;
    region.valid = region.remote_write = true;
    region.key = kKey;
    region.limit = 1 << 20;
    configure(region.words(), cfg::Table::kRegion, kKey % 64);
    cfg::Conn conn;
    conn.valid = true;
    configure(conn.words(), cfg::Table::kConn, kPort);
  }

  void beat(const std::uint8_t* bytes, std::size_t n, bool last) {
    dut_->s_axis_tvalid = 1;
    dut_->s_axis_tlast = last;
    dut_->s_axis_tkeep = n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
    std::memcpy(&dut_->s_axis_tdata[0], bytes, n);
    edge();
  }
  void idle() {
    dut_->s_axis_tvalid = 0;
    edge();
  }
  std::uint64_t committed() const { return committed_; }

 private:
  void edge() {
    dut_->m_axi_bvalid = responses_ != 0;
    dut_->verdict_valid_i = told_;  // all is counted, at once
    dut_->verdict_refused_i = 0;
    dut_->fail_valid_i = 0;
    dut_->eval();
    told_ = dut_->commit_valid_o && dut_->commit_ready_i;
    if (dut_->m_axi_bvalid && dut_->m_axi_bready) --responses_;
    if (dut_->m_axi_wvalid && dut_->m_axi_wlast) ++responses_;
    committed_ += dut_->evt_data_o;
    dut_->clk_i = 1;
    dut_->eval();
    dut_->clk_i = 0;
    ++dut_->now_i;
  }
  void configure(const cfg::Words& words, cfg::Table table, unsigned index) {
    dut_->cfg_valid_i = 1;
    dut_->cfg_kind_i = static_cast<std::uint8_t>(table);
    dut_->cfg_index_i = static_cast<std::uint16_t>(index);
    for (unsigned i = 0; i < words.size(); ++i) dut_->cfg_data_i[i] = words[i];
    edge();
    dut_->cfg_valid_i = 0;
    for (int i = 0; i < 64; ++i) edge();
  }

  tb::OwnedModel<Vrx_flat> dut_{"rx_path"};
  std::uint64_t responses_ = 0, committed_ = 0;
  bool told_ = false;
};

double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

int main() {
  Alone rx;
  // Frames of every size, spread over the paths, made before the clock runs.
  const std::size_t lens[] = {0, 64, 1024, 4096, 200, 30};
  std::vector<wire::Frame> frames;
  std::vector<std::uint8_t> payload(4096, 0x5a);
  for (std::uint32_t i = 0; i < 2400; ++i) {
    const std::size_t len = lens[i % 6];
    wire::Wdh wdh;
    wdh.va = 64 + i * 37 % 4096;
    wdh.rkey = kKey;
    wdh.msg_len = static_cast<std::uint32_t>(len);
    wdh.more = true;
    const wire::Wth wth{static_cast<std::uint8_t>(kPort * kPaths + i % kPaths), 0, 0, i};
    wire::Route route;
    route.dmac = kMac;
    route.dip = kIp;
    frames.push_back(wire::build_data(route, wire::make_bth(wire::Opcode::WRITE, 0, i / kPaths), wth, wdh,
                                      {payload.data(), len}));
  }
  std::uint64_t beats = 0;
  double start = cpu_s();
  for (const wire::Frame& f : frames) {
    for (std::size_t at = 0; at < f.size(); at += 64, ++beats) {
      const std::size_t n = std::min<std::size_t>(64, f.size() - at);
      rx.beat(f.data() + at, n, at + n == f.size());
    }
  }
  const double busy = static_cast<double>(beats) / (cpu_s() - start) / 1e3;
  for (int i = 0; i < 1000; ++i) rx.idle();
  start = cpu_s();
  constexpr std::uint64_t kIdle = 300000;
  for (std::uint64_t i = 0; i < kIdle; ++i) rx.idle();
  const double idle = kIdle / (cpu_s() - start) / 1e3;

  using bench::Good;
  bench::report("rx_frames_lost_at_line_rate", static_cast<double>(frames.size() - rx.committed()),
                Good::AtMost, 0, "frames");
  bench::report("rx_kcycles_per_s", busy, Good::AtLeast, 500, "kcycles/s");
  bench::report("rx_idle_kcycles_per_s", idle, Good::AtLeast, 500, "kcycles/s");
  return rx.committed() == frames.size() ? 0 : 1;
}
