// SPDX-License-Identifier: Apache-2.0
//
// How fast the floating-point lanes are tried in simulation: cases a second on one core, with the
// operands made for a purpose and compared with the reference, and what lanes without work cost.
#include <cstdio>
#include <ctime>

#include "../../unit/nmc/nmc_cases.h"
#include "Vfloat_byte.h"
#include "Vfloat_half.h"
#include "Vfloat_wide.h"
#include "tb/sim/owned_model.h"
#include "weft_bench.h"

using namespace weft;

namespace {

constexpr unsigned kLanes = 32;

// Processor time, not wall time: other programs may share the machine.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// A build of the lanes. kWidth: bits of a source; kLatency: cycles from operands to result.
template <class Model, unsigned kWidth, unsigned kLatency>
class Lanes {
 public:
  Lanes() {
    dut_->valid_i = 0;
    dut_->live_i = ~0u;
    dut_->rst_i = 1;
    for (unsigned i = 0; i < 4; ++i) edge();
    dut_->rst_i = 0;
  }

  void edge() {
    dut_->clk_i = 1;
    dut_->eval();
    dut_->clk_i = 0;
    dut_->eval();
  }
  double idle_kcycles_per_s() {
    constexpr unsigned kCycles = 2'000'000;
    for (unsigned i = 0; i < 2 * kLatency; ++i) edge();
    const auto start = std::clock();
    for (unsigned i = 0; i < kCycles; ++i) edge();
    return kCycles / seconds_since(start) / 1000;
  }

  /// Cases a second of F; op: float_op_e, fmt: float_fmt_e. Ends the program at the first difference.
  template <num::IsFloat F, class Next, class Model2>
  double run(const char* name, unsigned op, unsigned fmt, unsigned cycles, Next next, Model2 model) {
    using Bits = typename F::bits_type;
    constexpr unsigned kPer = 32 / kWidth, kTop = 32 - 8 * sizeof(Bits);
    constexpr unsigned kUp = kWidth - 8 * sizeof(Bits);
    dut_->cmd_i = fmt << 15 | op << 12 | fmt << 9 | fmt << 6;
    Bits want[2 * 8][kLanes];
    static_assert(kLatency < 16);
    test::Rng rng(1, 100);
    const auto start = std::clock();
    for (unsigned cycle = 0; cycle < cycles + kLatency; ++cycle) {
      if (dut_->valid_o) {
        const auto& right = want[(cycle - kLatency) % 16];
        for (unsigned i = 0; i < kLanes; ++i) {
          if (static_cast<Bits>(dut_->res_o[i] >> kTop) == right[i]) continue;
          std::fprintf(stderr, "bench_float: %s: lane %u of cycle %u is wrong\n", name, i, cycle);
          std::exit(1);
        }
      }
      dut_->valid_i = cycle < cycles;
      if (cycle < cycles) {
        for (unsigned word = 0; word < kLanes / kPer; ++word) {
          uint32_t a = 0, b = 0;
          for (unsigned j = 0; j < kPer; ++j) {
            const test::Pair<F> pair = next(rng);
            want[cycle % 16][word * kPer + j] = model(pair.a, pair.b);
            a |= uint32_t{pair.a} << (kUp + j * kWidth);
            b |= uint32_t{pair.b} << (kUp + j * kWidth);
          }
          dut_->a_i[word] = a;
          dut_->b_i[word] = b;
        }
      }
      edge();
    }
    const double rate = double{kLanes} * cycles / seconds_since(start);
    std::printf("%-16s %6.1f M cases/s\n", name, rate / 1e6);
    return rate;
  }

  /// Sums of F.
  template <num::IsFloat F>
  double sums(const char* name, unsigned fmt) {
    constexpr unsigned kCycles = 200'000;
    return run<F>(
        name, 0, fmt, kCycles, [](test::Rng& rng) { return test::pair_of<F>(rng); },
        [](auto a, auto b) { return num::add<F>(a, b); });
  }

 private:
  tb::OwnedModel<Model> dut_;
};

}  // namespace

int main() {
  double slowest = 1e12;
  const auto note = [&](double rate) {
    if (rate < slowest) slowest = rate;
  };
  Lanes<Vfloat_wide, 32, 8> wide;
  Lanes<Vfloat_half, 32, 8> half;
  Lanes<Vfloat_byte, 8, 8> byte;
  note(wide.sums<num::Float32>("32, fp32 sum", 0));
  note(wide.sums<num::Float16>("32, fp16 sum", 2));
  note(half.sums<num::Bfloat16>("16, bf16 sum", 1));
  note(half.sums<num::Float16>("16, fp16 sum", 2));
  note(byte.sums<num::Float8E5m2>("8, e5m2 sum", 3));
  note(byte.sums<num::Float8E4m3>("8, e4m3 sum", 4));
  Lanes<Vfloat_wide, 32, 13> product;
  note(product.run<num::Float32>(
      "32, fp32 product", 3, 0, 100'000, [](test::Rng& rng) { return test::factors_of<num::Float32>(rng); },
      [](auto a, auto b) { return num::mul<num::Float32>(a, b); }));
  std::printf("idle: 32-bit %.0f, 16-bit %.0f, 8-bit %.0f kcycles/s\n", wide.idle_kcycles_per_s(),
              half.idle_kcycles_per_s(), byte.idle_kcycles_per_s());
  bench::report("nmc_float_cases", slowest / 1e6, bench::Good::AtLeast, 5, "M cases/s");
  return 0;
}
