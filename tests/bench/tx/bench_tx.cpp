// SPDX-License-Identifier: Apache-2.0
//
// Figures of merit of weft_tx_path: cycles a frame with jobs always waiting, frames that were wrong under
// stalls, and simulated cycles a second of the model alone.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <string>

#include "Vtx_flat.h"
#include "tb/sim/owned_model.h"
#include "tx_bench.h"
#include "weft_bench.h"

namespace {

using namespace weft;
using weft::bench::Good;
using weft::bench::report;

/// What Surroundings needs of a bench, without a test framework around it.
class PlainBench {
 public:
  Vtx_flat* operator->() { return &*dut_; }
  uint64_t cycle() const { return cycle_; }
  void eval() { dut_->eval(); }
  void tick() {
    dut_->eval();
    edge();
  }
  /// tick() for a caller that has not looked at outputs since it set inputs.
  void edge() {
    dut_->clk_i = 1;
    dut_->eval();
    dut_->clk_i = 0;
    dut_->eval();
    ++cycle_;
  }
  void reset() {
    dut_->rst_i = 1;
    for (unsigned i = 0; i < 4; ++i) tick();
    dut_->rst_i = 0;
    eval();
  }
  void progress() {}

 private:
  tb::OwnedModel<Vtx_flat> dut_{"tx_path"};
  uint64_t cycle_ = 0;
};

using Surroundings = tx::Surroundings<PlainBench>;

/// Steady state with jobs always waiting, payload from any byte address.
double cycles_per_frame(uint16_t len, unsigned latency) {
  PlainBench b;
  Surroundings env(b, {.latency = latency}, 1);
  test::Rng rng(1, 6);
  env.next_job = [&] {
    tx::Job j = tx::random_job(rng);
    j.probe = false;
    j.len = len;
    j.laddr = tx::random_addr(rng, len);
    return std::optional(j);
  };
  env.start();
  const uint64_t warm = 2000 / (2 + len / 64) + 2, frames = 20000 / (2 + len / 64);
  env.run(warm);
  const uint64_t start = b.cycle();
  env.run(warm + frames);
  if (env.wrong_frames()) std::printf("payload %u: %s", len, env.errors().c_str());
  return static_cast<double>(b.cycle() - start) / static_cast<double>(frames);
}

struct Wrong {
  uint64_t frames, wrong;
};

/// Everything held back `p` of the time: data of all lengths and alignments, probes, acks.
Wrong wrong_frames(double p, uint64_t frames) {
  PlainBench b;
  Surroundings env(b, tx::all_stalls(p, 100), 2);
  test::Rng jobs(2, 7), acks(2, 8);
  env.next_job = [&] { return std::optional(tx::random_job(jobs)); };
  env.next_ack = [&] { return std::optional(tx::random_ack(acks)); };
  env.start();
  env.run(frames);
  env.drain();
  if (env.wrong_frames()) std::printf("stall %.0f %%: %s", p * 100, env.errors().c_str());
  return {env.seen().frames, env.wrong_frames()};
}

/// Speed of the model alone, busy with 4 KB packets: constant payload, nothing checked.
double kcycles_per_second() {
  PlainBench b;
  Surroundings env(b, {}, 3);
  env.start();
  b->job_len_i = 4096;
  b->job_laddr_i = 7;
  b->job_valid_i = b->m_axi_arready = b->m_axis_tready = 1;
  for (unsigned i = 0; i < 16; ++i) b->m_axi_rdata[i] = i * 0x9e3779b9u;
  std::deque<unsigned> bursts;
  unsigned done = 0;
  uint64_t frames = 0;
  constexpr uint64_t kCycles = 400000;
  const std::clock_t start = std::clock();  // of this process: others may be busy too
  for (uint64_t i = 0; i < kCycles; ++i) {
    b->m_axi_rvalid = !bursts.empty();
    b->m_axi_rlast = !bursts.empty() && done + 1 == bursts.front();
    b.edge();  // the ready inputs never change, so what is seen behind the edge is taken at the next
    if (b->m_axi_rvalid && ++done == bursts.front()) {
      bursts.pop_front();
      done = 0;
    }
    if (b->m_axi_arvalid) bursts.push_back(b->m_axi_arlen + 1u);
    frames += b->m_axis_tvalid && b->m_axis_tlast;
  }
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (frames < kCycles / 67)
    std::printf("speed: only %llu frames\n", static_cast<unsigned long long>(frames));
  return static_cast<double>(kCycles) / took / 1e3;
}

}  // namespace

int main() {
  const struct {
    uint16_t len;
    double goal;
  } sizes[] = {{0, 2}, {64, 3}, {256, 6}, {1024, 18}, {4096, 66}};
  for (const auto& size : sizes) {
    const double cycles = std::max(cycles_per_frame(size.len, 40), cycles_per_frame(size.len, 400));
    report(("tx_cycles_" + std::to_string(size.len)).c_str(), cycles, Good::AtMost, size.goal, "cycles");
  }
  Wrong all{};
  for (const double p : {0.1, 0.5, 0.9}) {
    const Wrong some = wrong_frames(p, p > 0.8 ? 4000 : 20000);
    all.frames += some.frames;
    all.wrong += some.wrong;
  }
  report("tx_wrong_frames", static_cast<double>(all.wrong), Good::AtMost, 0, "frames");
  report("tx_checked_frames", static_cast<double>(all.frames), Good::AtLeast, 40000, "frames");
  report("tx_kcycles_per_s", kcycles_per_second(), Good::AtLeast, 500, "kcycles/s");
}
