// SPDX-License-Identifier: Apache-2.0
//
// Throughput of the reducer in front of a memory without stalls: requests of 64 KB one behind the
// other. The figure is the slowest of all types, alignments and latencies tried, from the first
// completion to the last. Prints as well what one request alone takes and how fast the model runs.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "tb/nmc/world.h"
#include "Vnmc_bench_top.h"
#include "verilated.h"
#include "weft_bench.h"

using namespace weft;
using nmc::NmcRequest;
using wire::Dtype;
using wire::Redop;

namespace {

constexpr uint32_t kLen = 65536;

class Reducer {
 public:
  explicit Reducer(unsigned latency) : dut_(std::make_unique<Vnmc_bench_top>(&context_)) {
    nmc::NmcSettings settings;
    settings.latency = latency;
    settings.size = 2 << 20;
    world_ = std::make_unique<nmc::World<Vnmc_bench_top>>(*dut_, settings);
    for (auto& byte : world_->memory()) byte = static_cast<uint8_t>(random_ = random_ * 1664525 + 1013904223);
    world_->expect_as_is();
    dut_->rst_i = 1;
    for (int i = 0; i < 4; ++i) edge();
    dut_->rst_i = 0;
  }
  ~Reducer() { dut_->final(); }

  nmc::World<Vnmc_bench_top>& world() { return *world_; }
  void step() {
    world_->drive();
    dut_->eval();
    world_->look();
    edge();
  }
  void edge() {
    dut_->clk_i = 1;
    dut_->eval();
    dut_->clk_i = 0;
    dut_->eval();
  }
  void finish() {
    while (!world_->idle()) step();
    world_->compare();
  }

 private:
  VerilatedContext context_;
  std::unique_ptr<Vnmc_bench_top> dut_;
  std::unique_ptr<nmc::World<Vnmc_bench_top>> world_;
  uint32_t random_ = 1;
};

NmcRequest request(Dtype type, bool two, bool turned, unsigned slot) {
  const uint64_t at = 0x7f00'0000'0000 + 4096 + slot * 4 * (kLen + 4096);
  NmcRequest r;
  r.tag = static_cast<uint8_t>(slot);
  r.dtype = static_cast<uint8_t>(type);
  r.redop = static_cast<uint8_t>(two ? Redop::SUM : Redop::COPY);
  r.two = two;
  r.src0 = at + (turned ? 100 : 0);
  r.src1 = at + kLen + 4096 + (turned ? 36 : 0);
  r.dst = at + 2 * (kLen + 4096) + (turned ? 64 : 0);
  r.len = kLen;
  return r;
}

struct Measured {
  double bytes_per_cycle;
  uint64_t alone;
};

Measured measure(Dtype type, bool two, bool turned, unsigned latency) {
  constexpr unsigned kCount = 5;
  Reducer dut(latency);
  for (unsigned slot = 0; slot < kCount; ++slot) dut.world().push(request(type, two, turned, slot));
  dut.finish();
  const auto& done = dut.world().completions();
  return {(kCount - 1.0) * kLen / static_cast<double>(done.back().cycle - done.front().cycle),
          done.front().cycle};
}

// Processor time, not wall time: other programs may share the machine.
double kcycles_per_s(uint64_t cycles, std::clock_t start) {
  return static_cast<double>(cycles) * CLOCKS_PER_SEC / static_cast<double>(std::clock() - start) / 1000;
}

void simulation_speed() {
  for (Dtype type : {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::INT32}) {
    Reducer dut(40);
    for (unsigned round = 0; round < 4; ++round) {  // warm
      for (unsigned slot = 0; slot < 6; ++slot) dut.world().push(request(type, true, true, slot));
      dut.finish();
    }
    const uint64_t first = dut.world().cycle();
    const auto start = std::clock();
    for (unsigned round = 0; round < 12; ++round) {
      for (unsigned slot = 0; slot < 6; ++slot) dut.world().push(request(type, true, true, slot));
      while (!dut.world().idle()) dut.step();
    }
    std::printf("%-9s busy, memory included:  %6.0f kcycles/s\n", wire::name(type),
                kcycles_per_s(dut.world().cycle() - first, start));
  }
  Reducer dut(40);
  dut.finish();
  const auto start = std::clock();
  constexpr uint64_t kIdle = 3'000'000;
  for (uint64_t i = 0; i < kIdle; ++i) dut.edge();
  std::printf("idle:                            %6.0f kcycles/s\n", kcycles_per_s(kIdle, start));
}

}  // namespace

int main() {
  try {
    double slowest = 1e9;
    std::printf("%-9s %-5s %-9s %8s  %14s  %s\n", "type", "op", "aligned", "latency", "bytes/cycle",
                "cycles of one 64 KB request");
    for (unsigned latency : {40u, 400u}) {
      for (bool turned : {false, true}) {
        for (Dtype type : {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::INT32}) {
          for (bool two : {true, false}) {
            if (!two && type != Dtype::INT32) continue;
            const Measured m = measure(type, two, turned, latency);
            std::printf("%-9s %-5s %-9s %8u  %14.2f  %llu\n", wire::name(type), two ? "sum" : "copy",
                        turned ? "no" : "yes", latency, m.bytes_per_cycle,
                        static_cast<unsigned long long>(m.alone));
            if (m.bytes_per_cycle < slowest) slowest = m.bytes_per_cycle;
          }
        }
      }
    }
    simulation_speed();
    bench::report("nmc_bytes_per_cycle", slowest, bench::Good::AtLeast, 126, "B/cycle");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_nmc: %s\n", error.what());
    return 1;
  }
  return 0;
}
