// SPDX-License-Identifier: Apache-2.0
//
// The lanes against the reference arithmetic: 32 or 64 cases a cycle, with gaps.
#include <deque>

#include "Vnmc_lanes.h"
#include "nmc_cases.h"

using namespace weft;
using test::Broken;
using wire::Dtype;
using wire::Redop;

namespace {

constexpr unsigned kWords = 32;

// lane_cmd_t, most significant first: op (2), fp, bf16.
uint8_t command(Dtype type, Redop op) {
  const unsigned code = op == Redop::SUM ? 0 : op == Redop::MAX ? 1 : op == Redop::MIN ? 2 : 3;
  return static_cast<uint8_t>(code << 2 | (type != Dtype::INT32) << 1 | (type == Dtype::BFLOAT16));
}

struct Beat {
  uint32_t a[kWords], b[kWords];
  bool err;
};

template <class Type>
void fill(Beat& beat, test::Rng& rng) {
  constexpr unsigned kBits = sizeof(typename Type::bits_type) * 8;
  for (unsigned w = 0; w < kWords; ++w) {
    beat.a[w] = beat.b[w] = 0;
    for (unsigned low = 0; low < 32; low += kBits) {
      const auto [a, b] = test::pair_of(rng, Type{});
      beat.a[w] |= uint32_t{a} << low;
      beat.b[w] |= uint32_t{b} << low;
    }
  }
  beat.err = rng.chance(0.1);
}

// Runs `beats` beats and returns how many elements differ from `model(a, b)`.
template <class Type, class Model>
uint64_t run(Dtype type, Redop op, uint64_t beats, double gaps, Model model) {
  using Bits = typename Type::bits_type;
  constexpr unsigned kBits = sizeof(Bits) * 8;
  test::Bench<Vnmc_lanes> bench("weft_nmc_lanes");
  test::Rng rng(test::seed(), 10 + static_cast<uint64_t>(op));
  test::Stall gap(gaps, 1);
  std::deque<Beat> inside;
  uint64_t sent = 0, got = 0, wrong = 0;
  bench->valid_i = 0;
  bench.reset();
  while (got < beats) {
    Beat beat;
    bench->valid_i = sent < beats && gap.go();
    bench->cmd_i = command(type, op);
    if (bench->valid_i) {
      fill<Type>(beat, rng);
      for (unsigned w = 0; w < kWords; ++w) {
        bench->a_i[w] = beat.a[w];
        bench->b_i[w] = beat.b[w];
      }
      bench->err_i = beat.err;
      inside.push_back(beat);
      ++sent;
    }
    bench.eval();
    if (bench->valid_o) {
      bench.progress();
      REQUIRE_FALSE(inside.empty());
      const Beat& want = inside.front();
      if (bench->err_o != want.err) FAIL("the error mark left its beat");
      for (unsigned w = 0; w < kWords; ++w) {
        for (unsigned low = 0; low < 32; low += kBits) {
          const Bits a = static_cast<Bits>(want.a[w] >> low), b = static_cast<Bits>(want.b[w] >> low);
          const Bits out = static_cast<Bits>(bench->data_o[w] >> low), right = model(a, b);
          if (out == right) continue;
          if (wrong++ == 0) bench.event("a %llx b %llx lanes %llx model %llx", a, b, out, right);
        }
      }
      inside.pop_front();
      ++got;
    }
    bench.tick();
  }
  CHECK(inside.empty());
  return wrong;
}

template <class Type>
uint64_t differences(Dtype type, Redop op, uint64_t beats, double gaps = 0.2) {
  return run<Type>(type, op, beats, gaps, [op](auto a, auto b) { return test::reference<Type>(op, a, b); });
}

}  // namespace

TEST_CASE("lanes: fp32 sums are right in millions of cases", "[nmc][random]") {
  CHECK(differences<num::Float32>(Dtype::FLOAT32, Redop::SUM, 150'000) == 0);
}
TEST_CASE("lanes: bf16 sums are right in millions of cases", "[nmc][random]") {
  CHECK(differences<num::Bfloat16>(Dtype::BFLOAT16, Redop::SUM, 75'000) == 0);
}
TEST_CASE("lanes: maximum and minimum are right (case software 7)", "[nmc][random]") {
  for (Redop op : {Redop::MAX, Redop::MIN}) {
    CHECK(differences<num::Float32>(Dtype::FLOAT32, op, 40'000) == 0);
    CHECK(differences<num::Bfloat16>(Dtype::BFLOAT16, op, 20'000) == 0);
  }
}
TEST_CASE("lanes: int32 is right", "[nmc][random]") {
  for (Redop op : {Redop::SUM, Redop::MAX, Redop::MIN}) {
    CHECK(differences<num::Int32>(Dtype::INT32, op, 10'000) == 0);
  }
}
TEST_CASE("lanes: copy gives the first operand", "[nmc][random]") {
  CHECK(run<num::Int32>(Dtype::INT32, Redop::COPY, 10'000, 0.5, [](auto a, auto) { return a; }) == 0);
}

TEST_CASE("lanes: a reference with a broken rule is found out", "[nmc][fault]") {
  constexpr uint64_t kBeats = 4000;
  for (Broken fault : test::kSumFaults) {
    CAPTURE(static_cast<int>(fault));
    CHECK(run<num::Float32>(Dtype::FLOAT32, Redop::SUM, kBeats, 0.0, [&](auto a, auto b) {
            return test::Mutant<num::Float32>::apply(fault, Redop::SUM, a, b);
          }) > 0);
    CHECK(run<num::Bfloat16>(Dtype::BFLOAT16, Redop::SUM, kBeats, 0.0, [&](auto a, auto b) {
            return test::Mutant<num::Bfloat16>::apply(fault, Redop::SUM, a, b);
          }) > 0);
  }
  for (Broken fault : test::kOrderFaults) {
    CAPTURE(static_cast<int>(fault));
    CHECK(run<num::Float32>(Dtype::FLOAT32, Redop::MAX, kBeats, 0.0, [&](auto a, auto b) {
            return test::Mutant<num::Float32>::apply(fault, Redop::MAX, a, b);
          }) > 0);
    CHECK(run<num::Bfloat16>(Dtype::BFLOAT16, Redop::MIN, kBeats, 0.0, [&](auto a, auto b) {
            return test::Mutant<num::Bfloat16>::apply(fault, Redop::MIN, a, b);
          }) > 0);
  }
}

TEST_CASE("lanes: an integer beat close behind a floating-point one is refused", "[nmc][fault]") {
  test::Bench<Vnmc_lanes> bench("weft_nmc_lanes");
  bench->valid_i = 0;
  bench.reset();
  bench.expect_assertion();
  bench->valid_i = 1;
  bench->cmd_i = command(Dtype::FLOAT32, Redop::SUM);
  bench.tick();
  bench->valid_i = 0;
  bench.ticks(5);  // one more would do
  bench->valid_i = 1;
  bench->cmd_i = command(Dtype::INT32, Redop::SUM);
  bench.tick();
  bench->valid_i = 0;
  bench.ticks(10);
  CHECK(bench.assertion_fired());
}
