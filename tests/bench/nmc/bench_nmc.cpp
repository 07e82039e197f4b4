// SPDX-License-Identifier: Apache-2.0
//
// Throughput of the reducer in front of a memory without stalls: requests of 64 KB one behind the
// other. The figure is the slowest of all types, alignments and latencies tried with two sources, from
// the first completion to the last. Prints as well the steps that nmc_steps.h says, what more sources,
// conversions and products cost, what one request alone takes and how fast the model runs; and PREMUL_SUM
// of a reducer with two multipliers for each word.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "Vnmc_bench_pairs.h"
#include "Vnmc_bench_top.h"
#include "sw/ref/nmc_steps.h"
#include "tb/nmc/world.h"
#include "tb/sim/owned_model.h"
#include "weft_bench.h"

using namespace weft;
using nmc::NmcRequest;
using wire::Dtype;
using wire::Redop;

namespace {

constexpr uint32_t kLen = 65536;

/// The parameters of the model, as far as they change its time.
template <class Dut>
constexpr num::Parts kParts{};
template <>
constexpr num::Parts kParts<Vnmc_bench_pairs>{.multipliers = 2};

template <class Dut = Vnmc_bench_top>
class Reducer {
 public:
  explicit Reducer(unsigned latency, unsigned regions = 40) {
    nmc::NmcSettings settings;
    settings.latency = latency;
    settings.size = (kLen + 4096) * uint64_t{regions} + 4096;
    world_ = std::make_unique<nmc::World<Dut>>(*dut_, settings);
    for (auto& byte : world_->memory()) byte = static_cast<uint8_t>(random_ = random_ * 1664525 + 1013904223);
    world_->expect_as_is();
    dut_->rst_i = 1;
    for (int i = 0; i < 4; ++i) edge();
    dut_->rst_i = 0;
  }

  nmc::World<Dut>& world() { return *world_; }
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
  tb::OwnedModel<Dut> dut_;
  std::unique_ptr<nmc::World<Dut>> world_;
  uint32_t random_ = 1;
};

struct Kind {
  Dtype from, to;
  Redop op;
  unsigned nsrc;
};

NmcRequest request(const Kind& kind, bool turned, unsigned slot) {
  const uint64_t room = kLen + 4096;
  const uint64_t at = 0x7f00'0000'0000 + 4096 + slot * (kind.nsrc * num::bytes_of(kind.from) + 1) * room;
  NmcRequest r;
  r.tag = static_cast<uint8_t>(slot);
  r.job.from = kind.from;
  r.job.to = kind.to;
  r.job.op = kind.op;
  r.job.scalar = num::divides(r.job) ? 7 : 0x3f000000;
  r.nsrc = kind.nsrc;
  r.len = kLen;
  r.stride = static_cast<uint32_t>(num::bytes_of(kind.from) * room);
  r.dst = at + (turned ? 64 : 0);
  r.src0 = at + room + (turned ? 8 : 0);
  r.src1 = at + room + (turned ? 40 : 0);
  return r;
}

struct Measured {
  double bytes_per_cycle;
  uint64_t alone;
  double stalled;  // part of the cycles in which the next step waited for read data
};

template <class Dut>
Measured measure(const Kind& kind, bool turned, unsigned latency) {
  constexpr unsigned kCount = 3;
  Reducer<Dut> dut(latency, kCount * (kind.nsrc * num::bytes_of(kind.from) + 1) + 1);
  for (unsigned slot = 0; slot < kCount; ++slot) dut.world().push(request(kind, turned, slot));
  dut.finish();
  const auto& done = dut.world().completions();
  const double cycles = static_cast<double>(done.back().cycle - done.front().cycle);
  return {(kCount - 1.0) * kLen / cycles, done.front().cycle,
          static_cast<double>(dut.world().counters().stall_read) / static_cast<double>(dut.world().cycle())};
}

template <class Dut = Vnmc_bench_top>
Measured print(const Kind& kind, bool turned, unsigned latency) {
  const Measured m = measure<Dut>(kind, turned, latency);
  const std::string types =
      wire::name(kind.from) +
      (kind.from == kind.to ? std::string() : std::string(" to ") + wire::name(kind.to));
  const NmcRequest r = request(kind, turned, 0);
  std::printf("%-26s %-10s %3u %-5s %6u %10.2f %12.3f %8.3f %8llu %8.3f\n", types.c_str(),
              wire::name(kind.op), kind.nsrc, turned ? "no" : "yes", latency, m.bytes_per_cycle,
              128 / m.bytes_per_cycle,
              static_cast<double>(nmc::steps(r.job, r.nsrc, kLen, kParts<Dut>)) * 128 / kLen,
              static_cast<unsigned long long>(m.alone), m.stalled);
  return m;
}

// Processor time, not wall time: other programs may share the machine.
double kcycles_per_s(uint64_t cycles, std::clock_t start) {
  return static_cast<double>(cycles) * CLOCKS_PER_SEC / static_cast<double>(std::clock() - start) / 1000;
}

void simulation_speed() {
  double slowest = 1e9;
  for (Dtype type : {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::FLOAT8_E4M3, Dtype::INT32, Dtype::FLOAT64}) {
    Reducer<> dut(40, 110);
    const Kind kind = {type, type, Redop::SUM, 2};
    const auto round = [&] {
      for (unsigned slot = 0; slot < 6; ++slot) dut.world().push(request(kind, true, slot));
      while (!dut.world().idle()) dut.step();
    };
    round();  // warm
    const uint64_t first = dut.world().cycle();
    const auto start = std::clock();
    for (unsigned i = 0; i < 4; ++i) round();
    const double busy = kcycles_per_s(dut.world().cycle() - first, start);
    std::printf("%-11s busy, memory included:  %6.0f kcycles/s\n", wire::name(type), busy);
    slowest = std::min(slowest, busy);
  }
  // Long enough behind the requests that it sleeps, as in a node (weft_clk_gate).
  Reducer<> dut(40);
  dut.finish();
  for (unsigned i = 0; i < 100; ++i) dut.edge();
  const auto start = std::clock();
  constexpr uint64_t kIdle = 10'000'000;
  for (uint64_t i = 0; i < kIdle; ++i) dut.edge();
  const double idle = kcycles_per_s(kIdle, start);
  std::printf("idle:                              %6.0f kcycles/s\n", idle);
  bench::report("nmc_model_busy", slowest, bench::Good::AtLeast, 100, "kcycles/s");
  bench::report("nmc_model_idle", idle / 1000, bench::Good::AtLeast, 5, "M cycles/s");
}

// Two sources of these go at a beat a cycle.
constexpr Kind kFullRate[] = {{Dtype::FLOAT32, Dtype::FLOAT32, Redop::SUM, 2},
                              {Dtype::BFLOAT16, Dtype::BFLOAT16, Redop::SUM, 2},
                              {Dtype::FLOAT16, Dtype::FLOAT16, Redop::MAX, 2},
                              {Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E5M2, Redop::SUM, 2},
                              {Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E4M3, Redop::MIN, 2},
                              {Dtype::UINT8, Dtype::UINT8, Redop::SUM, 2},
                              {Dtype::UINT16, Dtype::UINT16, Redop::MAX, 2},
                              {Dtype::UINT32, Dtype::UINT32, Redop::XOR, 2},
                              {Dtype::UINT64, Dtype::UINT64, Redop::SUM, 2},
                              {Dtype::INT8, Dtype::INT8, Redop::MIN, 2},
                              {Dtype::INT16, Dtype::INT16, Redop::SUM, 2},
                              {Dtype::INT32, Dtype::INT32, Redop::SUM, 2},
                              {Dtype::INT64, Dtype::INT64, Redop::MAX, 2},
                              {Dtype::FLOAT64, Dtype::FLOAT64, Redop::COPY, 1},
                              {Dtype::UINT8, Dtype::UINT8, Redop::COPY, 1}};

}  // namespace

int main() {
  try {
    double slowest = 1e9;
    std::printf("%-26s %-10s %3s %-5s %6s %10s %12s %8s %8s %8s\n", "type", "operation", "K", "alig.", "lat.",
                "B/cycle", "cycles/128 B", "steps", "1 alone", "starved");
    for (unsigned latency : {40u, 400u}) {
      for (bool turned : {false, true}) {
        for (const Kind& kind : kFullRate)
          slowest = std::min(slowest, print(kind, turned, latency).bytes_per_cycle);
      }
    }
    for (bool turned : {false, true}) {
      for (unsigned nsrc : {3u, 4u, 8u, 64u})
        print({Dtype::BFLOAT16, Dtype::BFLOAT16, Redop::SUM, nsrc}, turned, 40);
      for (unsigned nsrc : {2u, 4u}) {
        for (Redop op : {Redop::SUM, Redop::PROD, Redop::AVG})
          print({Dtype::FLOAT64, Dtype::FLOAT64, op, nsrc}, turned, 40);
        for (Dtype type : {Dtype::INT8, Dtype::INT16, Dtype::INT32, Dtype::INT64}) {
          for (Redop op : {Redop::PROD, Redop::PREMUL_SUM, Redop::AVG})
            print({type, type, op, nsrc}, turned, 40);
        }
      }
      for (Dtype type : {Dtype::FLOAT32, Dtype::FLOAT16, Dtype::FLOAT8_E4M3}) {
        for (unsigned nsrc : {2u, 4u}) {
          for (Redop op : {Redop::PROD, Redop::AVG, Redop::PREMUL_SUM})
            print({type, type, op, nsrc}, turned, 40);
        }
      }
      print({Dtype::FLOAT32, Dtype::BFLOAT16, Redop::SUM, 2}, turned, 40);
      print({Dtype::BFLOAT16, Dtype::FLOAT32, Redop::SUM, 2}, turned, 40);
      print({Dtype::FLOAT32, Dtype::FLOAT8_E4M3, Redop::COPY, 1}, turned, 40);
      print({Dtype::FLOAT8_E4M3, Dtype::FLOAT32, Redop::COPY, 1}, turned, 40);
      // Bytes of elements: a block a cycle is 32 of 8 bits, 16 of 4.
      for (Dtype type : {Dtype::MXFP8_E4M3, Dtype::MXFP4_E2M1}) {
        for (unsigned nsrc : {2u, 3u, 8u}) print({type, type, Redop::SUM, nsrc}, turned, 40);
      }
      print({Dtype::MXFP8_E4M3, Dtype::FLOAT32, Redop::COPY, 1}, turned, 40);
      print({Dtype::FLOAT32, Dtype::MXFP8_E4M3, Redop::COPY, 1}, turned, 40);
    }
    std::printf("with two multipliers for each word:\n");
    for (bool turned : {false, true}) {
      for (Dtype type : {Dtype::FLOAT32, Dtype::FLOAT16, Dtype::FLOAT8_E4M3}) {
        for (unsigned nsrc : {2u, 4u})
          print<Vnmc_bench_pairs>({type, type, Redop::PREMUL_SUM, nsrc}, turned, 40);
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
