// SPDX-License-Identifier: Apache-2.0
//
// The fp64 lanes against the reference arithmetic: single steps in large numbers, and whole reductions
// of 1 to 6 sources between fp64 and every float, step by step as the sequencer makes them.
#include <vector>

#include "Vnmc_double.h"
#include "lane_steps.h"
#include "nmc_cases.h"

using namespace weft;
using num::Float64;
using test::Broken;
using wire::Dtype;
using wire::Redop;

namespace {

constexpr unsigned kWords = 16, kLanes = 8;
enum class Op : uint8_t { Sum, Max, Min, Mul, Convert };
constexpr Dtype kNarrow[] = {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::FLOAT16, Dtype::FLOAT8_E5M2,
                             Dtype::FLOAT8_E4M3};

// float_fmt_e
unsigned format_of(Dtype type) {
  for (unsigned i = 0; i < 5; ++i) {
    if (kNarrow[i] == type) return i;
  }
  return 6;
}

unsigned bits_in(Dtype type) {
  return 8u << (static_cast<unsigned>(type) & 3);
}

/// float_cmd_t.
struct Command {
  Op op = Op::Sum;
  Dtype from = Dtype::FLOAT64, to = Dtype::FLOAT64;
  bool propagate_nan = false, saturate = false, use_acc = false, scalar = false, to_acc = false, odd = false;

  uint32_t bits() const {
    return static_cast<unsigned>(op) << 12 | format_of(from) << 9 | format_of(to) << 6 | propagate_nan << 5 |
           saturate << 4 | use_acc << 3 | scalar << 2 | to_acc << 1 | odd;
  }
};

/// Where element i lies.
unsigned place(Dtype type, unsigned i) {
  return i * 64 + (bits_in(type) == 64 ? 0 : 32 - bits_in(type));
}

uint32_t flags_of(Vnmc_double& dut) {
  return dut.flags_o;
}
uint32_t as_bits(const num::Flags& flags) {
  return flags.invalid << 2 | flags.overflow << 1 | flags.inexact;
}

class DoubleLanes : public test::Lanes<Vnmc_double, kWords, uint32_t (*)(Vnmc_double&)> {
 public:
  DoubleLanes() : Lanes("weft_nmc_double", &flags_of) {}

  /// Steps of a command without accumulator. pair(rng) makes the operands, model(a, b, flags) the
  /// result; how many elements differ.
  template <class From, class To, class Pair, class Model>
  uint64_t differences(const Command& c, uint64_t steps, double gaps, Pair pair, Model model) {
    test::Rng rng(test::seed(), c.bits());
    uint64_t wrong = 0;
    run(
        steps, gaps,
        [&](Step& step) {
          step.cmd = c.bits();
          step.live = rng.chance(0.5) ? ~0u : static_cast<uint32_t>(rng());
          for (unsigned w = 0; w < kWords; ++w) {
            step.a[w] = static_cast<uint32_t>(rng());
            step.b[w] = static_cast<uint32_t>(rng());
          }
          for (unsigned i = 0; i < kLanes; ++i) {
            const auto [a, b] = pair(rng);
            test::set_bits(step.a, place(c.from, i), bits_in(c.from), a);
            test::set_bits(step.b, place(c.from, i), bits_in(c.from), b);
          }
        },
        [&](const Step& step, const Step::Words& res) -> uint32_t {
          num::Flags flags;
          for (unsigned i = 0; i < kLanes; ++i) {
            const auto a = static_cast<typename From::bits_type>(
                test::bits_of(step.a, place(c.from, i), bits_in(c.from)));
            const auto b = static_cast<typename From::bits_type>(
                test::bits_of(step.b, place(c.from, i), bits_in(c.from)));
            num::Flags here;
            const uint64_t want = model(a, b, here);
            if ((step.live >> i & 1) != 0) flags |= here;
            const uint64_t got = test::bits_of(res, place(c.to, i), bits_in(c.to));
            if (got == want) continue;
            if (wrong++ == 0) test::event("a %llx b %llx lanes %llx model %llx", a, b, got, want);
          }
          return as_bits(flags);
        });
    return wrong;
  }

  /// A whole reduction of eight elements, source by source.
  std::vector<uint8_t> reduce(const num::Job& job, const std::vector<std::vector<uint8_t>>& sources) {
    const size_t k = sources.size();
    // A step to a format with a smaller exponent range goes by the accumulator.
    const auto narrows = [](Dtype from, Dtype to) { return from == Dtype::FLOAT64 && to != from; };
    Step step;
    step.live = ~0u;
    Step::Words acc{};
    const auto load = [&](Step::Words& words, size_t source) {
      for (unsigned i = 0; i < kLanes; ++i) {
        uint64_t x = 0;
        std::memcpy(&x, &sources[source][i * bits_in(job.from) / 8], bits_in(job.from) / 8);
        test::set_bits(words, place(job.from, i), bits_in(job.from), x);
      }
    };
    const auto go = [&](Command c) {
      c.propagate_nan = job.propagate_nan;
      c.saturate = job.saturate;
      step.cmd = c.bits();
      if (c.use_acc) step.a = acc;
      for (unsigned i = 0; c.scalar && i < kLanes; ++i) test::set_bits(step.b, 64 * i, 64, job.scalar);
      acc = one(step);
    };
    // The last step of a fold, from operands of `from`.
    const auto finish = [&](Op op, Dtype from, bool use_acc) {
      if (op != Op::Mul && narrows(from, job.to)) {
        go({.op = op, .from = from, .to = from, .use_acc = use_acc, .to_acc = true, .odd = true});
        go({.op = Op::Convert, .from = from, .to = job.to, .use_acc = true});
      } else {
        go({.op = op, .from = from, .to = job.to, .use_acc = use_acc});
      }
    };
    const Op op = job.op == Redop::PROD  ? Op::Mul
                  : job.op == Redop::MAX ? Op::Max
                  : job.op == Redop::MIN ? Op::Min
                                         : Op::Sum;
    load(step.a, 0);
    if (job.op == Redop::PREMUL_SUM || job.op == Redop::AVG) {
      for (size_t source = 0; source < k; ++source) {
        const Step::Words sum = acc;
        load(step.a, source);
        go({.op = Op::Mul,
            .from = job.from,
            .to = k == 1 ? job.to : Dtype::FLOAT64,
            .scalar = true,
            .to_acc = k > 1});
        if (source == 0) continue;
        step.b = acc;  // the product is kept and comes back as operand b
        acc = sum;
        if (source + 1 == k) {
          finish(Op::Sum, Dtype::FLOAT64, true);
        } else {
          go({.use_acc = true, .to_acc = true});
        }
      }
    } else if (k == 1) {
      go({.op = Op::Convert, .from = job.from, .to = job.to});
    } else {
      for (size_t source = 1; source < k; ++source) {
        load(step.b, source);
        const bool last = source + 1 == k, use_acc = source > 1;
        if (last) {
          finish(op, job.from, use_acc);
        } else {  // a factor is a true fp64
          const Dtype to = op == Op::Mul ? Dtype::FLOAT64 : job.from;
          go({.op = op, .from = job.from, .to = to, .use_acc = use_acc, .to_acc = true});
        }
      }
    }
    std::vector<uint8_t> out(kLanes * bits_in(job.to) / 8);
    for (unsigned i = 0; i < kLanes; ++i) {
      const uint64_t x = test::bits_of(acc, place(job.to, i), bits_in(job.to));
      std::memcpy(&out[i * bits_in(job.to) / 8], &x, bits_in(job.to) / 8);
    }
    return out;
  }
};

/// An element of `type` for a reduction to `to`.
uint64_t element_of(test::Rng& rng, Dtype type, Dtype to) {
  return num::with_float(type, [&](auto f) {
    return num::with_float(
        to, [&](auto t) -> uint64_t { return test::convertible_of<decltype(f), decltype(t)>(rng); });
  });
}

uint64_t steps_differ(DoubleLanes& lanes, Redop op, uint64_t steps, Broken fault,
                      bool propagate_nan = false) {
  const Command c{.op = op == Redop::PROD  ? Op::Mul
                        : op == Redop::MAX ? Op::Max
                        : op == Redop::MIN ? Op::Min
                                           : Op::Sum,
                  .propagate_nan = propagate_nan};
  return lanes.differences<Float64, Float64>(
      c, steps, 0.2,
      [&](test::Rng& rng) {
        return op == Redop::PROD ? test::factors_of<Float64>(rng) : test::pair_of<Float64>(rng);
      },
      [&](uint64_t a, uint64_t b, num::Flags& flags) -> uint64_t {
        uint64_t right = 0;
        switch (op) {
          case Redop::PROD: right = num::mul<Float64>(a, b, &flags); break;
          case Redop::MAX: right = num::maximum<Float64>(a, b, propagate_nan); break;
          case Redop::MIN: right = num::minimum<Float64>(a, b, propagate_nan); break;
          default: right = num::add<Float64>(a, b, &flags); break;
        }
        return fault == Broken::None ? right : test::Mutant<Float64>::apply(fault, op, a, b);
      });
}

}  // namespace

TEST_CASE("fp64 lanes: sums and products are right", "[nmc][random]") {
  DoubleLanes lanes;
  CHECK(steps_differ(lanes, Redop::SUM, 200'000, Broken::None) == 0);
  CHECK(steps_differ(lanes, Redop::PROD, 200'000, Broken::None) == 0);
}

TEST_CASE("fp64 lanes: maximum and minimum are right", "[nmc][random]") {
  DoubleLanes lanes;
  for (Redop op : {Redop::MAX, Redop::MIN}) {
    for (bool propagate_nan : {false, true}) {
      CHECK(steps_differ(lanes, op, 20'000, Broken::None, propagate_nan) == 0);
    }
  }
}

TEST_CASE("fp64 lanes: conversions to narrower floats are right", "[nmc][random]") {
  DoubleLanes lanes;
  for (Dtype to : kNarrow) {
    for (bool saturate : {false, true}) {
      if (saturate && bits_in(to) != 8) continue;
      CAPTURE(wire::name(to), saturate);
      const Command c{.op = Op::Convert, .to = to, .saturate = saturate};
      num::with_float(to, [&](auto t) {
        using To = decltype(t);
        CHECK(lanes.differences<Float64, To>(
                  c, 20'000, 0.2,
                  [](test::Rng& rng) {
                    return test::Pair<Float64>{test::convertible_of<Float64, To>(rng), 0};
                  },
                  [&](uint64_t a, uint64_t, num::Flags& flags) -> uint64_t {
                    return num::convert<Float64, To>(a, &flags, saturate);
                  }) == 0);
      });
    }
  }
}

TEST_CASE("fp64 lanes: conversions from narrower floats are right, of 16 bits and less all", "[nmc]") {
  DoubleLanes lanes;
  for (Dtype from : kNarrow) {
    CAPTURE(wire::name(from));
    const Command c{.op = Op::Convert, .from = from};
    num::with_float(from, [&](auto f) {
      using From = decltype(f);
      uint64_t next = 0;
      const uint64_t count = bits_in(from) == 32 ? 100'000 : uint64_t{1} << bits_in(from);
      CHECK(lanes.differences<From, Float64>(
                c, count / kLanes, 0.0,
                [&](test::Rng& rng) {
                  const uint64_t x = bits_in(from) == 32 ? test::float_of<From>(rng) : next++;
                  return test::Pair<From>{static_cast<typename From::bits_type>(x), 0};
                },
                [](auto a, auto, num::Flags& flags) -> uint64_t {
                  return num::convert<From, Float64>(a, &flags);
                }) == 0);
    });
  }
}

TEST_CASE("fp64 lanes: whole reductions are the reference's", "[nmc][random]") {
  DoubleLanes lanes;
  test::Rng rng(test::seed(), 2);
  constexpr Redop kOps[] = {Redop::SUM, Redop::PROD, Redop::MAX, Redop::MIN, Redop::AVG, Redop::PREMUL_SUM};
  for (unsigned round = 0; round < 20'000; ++round) {
    num::Job job;
    const Dtype other = rng.below(6) == 0 ? Dtype::FLOAT64 : kNarrow[rng.below(5)];
    job.from = rng.chance(0.5) ? Dtype::FLOAT64 : other;
    job.to = job.from == Dtype::FLOAT64 ? other : Dtype::FLOAT64;
    job.op = kOps[rng.below(6)];
    const bool order = job.op == Redop::MAX || job.op == Redop::MIN;
    job.propagate_nan = order && rng.chance(0.5);
    job.saturate = bits_in(job.to) == 8 && rng.chance(0.5);
    job.scalar = rng.chance(0.5) ? test::float_of<Float64>(rng)
                                 : test::make_float<Float64>(rng(), 1023 + rng.below(9) - 4, rng());
    const size_t k = rng.range(1, 6);
    // The reference copies bits where nothing is to be done.
    if (k == 1 && job.from == job.to && job.op != Redop::AVG && job.op != Redop::PREMUL_SUM) continue;
    std::vector<std::vector<uint8_t>> data(k, std::vector<uint8_t>(kLanes * bits_in(job.from) / 8));
    std::vector<std::span<const uint8_t>> sources;
    const bool factors = job.op == Redop::PROD;
    for (unsigned i = 0; i < kLanes; ++i) {
      for (size_t source = 0; source < k; ++source) {
        const size_t bytes = bits_in(job.from) / 8;
        uint64_t x[2] = {element_of(rng, job.from, job.to), 0};
        if (source == 0 && k > 1 && rng.chance(0.5)) {
          num::with_float(job.from, [&](auto f) {
            const auto pair = factors ? test::factors_of<decltype(f)>(rng) : test::pair_of<decltype(f)>(rng);
            x[0] = pair.a;
            x[1] = pair.b;
          });
          std::memcpy(&data[1][i * bytes], &x[1], bytes);
        } else if (source == 1 && rng.chance(0.5)) {
          continue;  // as it is: 0 or what goes with source 0
        }
        std::memcpy(&data[source][i * bytes], &x[0], bytes);
      }
    }
    for (const auto& source : data) sources.emplace_back(source);
    std::vector<uint8_t> want(kLanes * bits_in(job.to) / 8);
    const num::Flags flags = num::reduce(job, want, sources);
    const std::vector<uint8_t> got = lanes.reduce(job, data);
    CAPTURE(round, wire::name(job.from), wire::name(job.to), wire::name(job.op), k, job.saturate, job.scalar);
    CAPTURE(data);
    REQUIRE(got == want);
    REQUIRE(lanes.take_seen() == as_bits(flags));
  }
}

TEST_CASE("fp64 lanes: a reference with a broken rule is found out", "[nmc][fault]") {
  DoubleLanes lanes;
  for (Broken fault : test::kSumFaults) {
    CAPTURE(static_cast<int>(fault));
    CHECK(steps_differ(lanes, Redop::SUM, 4000, fault) > 0);
    CHECK(steps_differ(lanes, Redop::PROD, 4000, fault) > 0);
  }
  for (Broken fault : test::kOrderFaults) {
    CAPTURE(static_cast<int>(fault));
    CHECK(steps_differ(lanes, Redop::MAX, 4000, fault) > 0);
    CHECK(steps_differ(lanes, Redop::MIN, 4000, fault) > 0);
  }
}

TEST_CASE("fp64 lanes: a step that would meet a product is refused", "[nmc][fault]") {
  for (bool meets : {true, false}) {
    DoubleLanes lanes;
    if (meets) lanes.bench().expect_assertion();
    DoubleLanes::Step step;
    step.cmd = Command{.op = Op::Mul}.bits();
    lanes.drive(step);
    lanes.bench().tick();
    lanes.bench()->valid_i = 0;
    lanes.bench().ticks(meets ? 5 : 6);  // DoubleMulLatency - DoubleLatency is 6
    step.cmd = Command{}.bits();
    lanes.drive(step);
    lanes.bench().tick();
    lanes.bench()->valid_i = 0;
    lanes.bench().ticks(12);
    CHECK(lanes.bench().assertion_fired() == meets);
  }
}
