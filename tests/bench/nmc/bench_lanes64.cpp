// SPDX-License-Identifier: Apache-2.0
//
// How fast the models of the 64-bit lanes run by themselves: elements a second of processor time, one
// step a cycle on operands that change, and cycles a second when idle.
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "Vnmc_double.h"
#include "Vnmc_int.h"
#include "tb/sim/owned_model.h"
#include "weft_bench.h"

namespace {

template <class V>
class Model {
 public:
  explicit Model(unsigned words) : words_(words) {
    dut_->rst_i = 1;
    dut_->valid_i = 0;
    for (int i = 0; i < 4; ++i) edge();
    dut_->rst_i = 0;
  }

  /// Millions of cycles a second; `cmd` in each cycle, or idle.
  double speed(bool busy, unsigned cmd, uint64_t cycles) {
    dut_->valid_i = busy;
    dut_->cmd_i = static_cast<uint16_t>(cmd);
    const auto start = std::clock();
    for (uint64_t i = 0; i < cycles; ++i) {
      if (busy) {
        for (unsigned w = 0; w < words_; ++w) {
          dut_->a_i[w] = next();
          dut_->b_i[w] = next();
        }
      }
      edge();
    }
    return static_cast<double>(cycles) * CLOCKS_PER_SEC / static_cast<double>(std::clock() - start) / 1e6;
  }

 private:
  uint32_t next() { return random_ = random_ * 1664525 + 1013904223; }
  void edge() {
    dut_->clk_i = 1;
    dut_->eval();
    dut_->clk_i = 0;
    dut_->eval();
  }

  weft::tb::OwnedModel<V> dut_;
  unsigned words_;
  uint32_t random_ = 1;
};

struct Kind {
  const char* name;
  unsigned cmd, elements;  // a step's command and elements
};

}  // namespace

int main() {
  constexpr uint64_t kBusy = 300'000, kIdle = 5'000'000;
  double slowest = 1e9, idle;
  const auto show = [&](const Kind& kind, double mcycles) {
    const double cases = mcycles * kind.elements;
    std::printf("%-22s %8.1f M elements/s, %6.3f M cycles/s\n", kind.name, cases, mcycles);
    if (cases < slowest) slowest = cases;
  };
  {
    // int_cmd_t: op << 12 | from << 9 | to << 6 | wide << 5
    Model<Vnmc_int> ints(32);
    for (const Kind& kind : {Kind{"int8 sum", 0 << 12 | 4 << 9 | 4 << 6, 128},
                             Kind{"int32 maximum", 1 << 12 | 6 << 9 | 6 << 6, 32},
                             Kind{"int64 product", 7 << 12 | 7 << 9 | 7 << 6 | 1 << 5, 16}}) {
      show(kind, ints.speed(true, kind.cmd, kBusy));
    }
    ints.speed(false, 0, 20);  // empty
    idle = ints.speed(false, 0, kIdle);
    std::printf("%-22s %36.3f M cycles/s\n", "integer lanes, idle", idle);
  }
  {
    // float_cmd_t: op << 12 | from << 9 | to << 6
    Model<Vnmc_double> doubles(16);
    for (const Kind& kind : {Kind{"fp64 sum", 0 << 12 | 5 << 9 | 5 << 6, 8},
                             Kind{"fp64 product", 3 << 12 | 5 << 9 | 5 << 6, 8}}) {
      show(kind, doubles.speed(true, kind.cmd, kBusy));
      doubles.speed(false, 0, 20);
    }
    const double speed = doubles.speed(false, 0, kIdle);
    std::printf("%-22s %36.3f M cycles/s\n", "fp64 lanes, idle", speed);
    if (speed < idle) idle = speed;
  }
  weft::bench::report("nmc_lanes64_melements", slowest, weft::bench::Good::AtLeast, 5, "M elements/s");
  weft::bench::report("nmc_lanes64_idle", idle, weft::bench::Good::AtLeast, 5, "M cycles/s");
  return 0;
}
