// SPDX-License-Identifier: Apache-2.0
//
// Short requests of every class of lanes close behind each other: steps of one class must not meet those of
// another one anywhere, and no flag may go to a neighbour. So most requests raise nothing, or by one element.
#include <cstring>

#include "Vnmc_pairs.h"
#include "Vnmc_top.h"
#include "nmc_fixture.h"

using namespace weft;
using nmc::NmcRequest;
using nmc::NmcSettings;
using wire::Dtype;
using wire::Redop;
using enum wire::Dtype;
using enum wire::Redop;

namespace {

struct Kind {
  Dtype from, to;
  Redop op;
  bool exact = false;
};
constexpr Kind kKinds[] = {
    // integers and copies
    {UINT8, UINT8, SUM},
    {INT32, INT32, SUM},
    {INT32, INT8, SUM},
    {INT16, INT32, PREMUL_SUM},
    {UINT64, UINT64, PROD},
    {FLOAT16, FLOAT16, COPY},
    {MXFP4_E2M1, MXFP4_E2M1, COPY},
    // sums and products of floats
    {FLOAT32, FLOAT32, SUM},
    {FLOAT16, FLOAT16, SUM},
    {BFLOAT16, BFLOAT16, MAX},
    {FLOAT8_E4M3, FLOAT8_E4M3, SUM},
    {FLOAT8_E5M2, FLOAT8_E5M2, SUM},
    {FLOAT16, FLOAT32, SUM},
    {FLOAT32, BFLOAT16, SUM},
    {FLOAT32, FLOAT32, PROD},
    {FLOAT16, FLOAT16, PROD},
    {FLOAT32, FLOAT8_E5M2, PROD},
    // fp64
    {FLOAT64, FLOAT64, SUM},
    {FLOAT64, FLOAT16, SUM},
    {FLOAT8_E5M2, FLOAT64, SUM},
    {FLOAT64, FLOAT64, PROD},
    {FLOAT64, FLOAT64, AVG},
    {FLOAT64, FLOAT32, PREMUL_SUM},
    // blocks
    {MXFP8_E4M3, FLOAT32, SUM},
    {MXFP4_E2M1, FLOAT32, COPY},
    {MXFP8_E5M2, BFLOAT16, MAX},
    {MXFP8_E5M2, FLOAT16, SUM},
    {FLOAT32, MXFP8_E4M3, SUM},
    {BFLOAT16, MXFP4_E2M1, MAX},
    {FLOAT16, MXFP8_E5M2, SUM},
    {MXFP8_E4M3, MXFP8_E4M3, SUM},
    {MXFP4_E2M1, MXFP4_E2M1, SUM},
    // exact sums
    {FLOAT16, FLOAT16, SUM, true},
    {FLOAT8_E4M3, FLOAT8_E4M3, SUM, true},
    {BFLOAT16, BFLOAT16, SUM, true},
    // two arrays in a row
    {FLOAT32, FLOAT32, AVG},
    {FLOAT16, FLOAT16, AVG},
    {FLOAT32, FLOAT8_E4M3, AVG},
    {FLOAT32, FLOAT16, SUM},
    {FLOAT16, FLOAT8_E4M3, MAX},
    {FLOAT32, FLOAT32, PREMUL_SUM},
    {FLOAT16, FLOAT16, PREMUL_SUM},
    {FLOAT8_E4M3, FLOAT8_E4M3, PREMUL_SUM},
};

bool fp64(const Kind& k) {
  return k.from == FLOAT64 || k.to == FLOAT64;
}
bool integer(const Kind& k) {
  return num::kind_of(k.from) == num::Kind::Integer;
}
bool block(const Kind& k) {
  return num::kind_of(k.from) == num::Kind::Block || num::kind_of(k.to) == num::Kind::Block;
}

/// Sources that raise nothing: every element is the same small power of two, or 0 of integers.
template <class Dut>
void fill_quiet(test::Fixture<Dut>& f, const NmcRequest& r) {
  const uint64_t unit = num::kind_of(r.job.from) == num::Kind::Block
                            ? num::footprint(r.job.from, num::kMxElements)
                            : num::bytes_of(r.job.from);
  std::vector<uint8_t> one(unit);
  if (num::kind_of(r.job.from) == num::Kind::Float) {
    num::with_float(r.job.from, [&](auto type) {
      using Type = decltype(type);
      const auto x = test::make_float<Type>(0, Type::kBias - f.rng().below(2), 0);
      std::memcpy(one.data(), &x, sizeof x);
      return 0;
    });
  } else if (num::kind_of(r.job.from) == num::Kind::Block) {
    const uint8_t element = r.job.from == MXFP8_E4M3 ? 0x38 : r.job.from == MXFP8_E5M2 ? 0x3c : 0x22;  // 1
    std::fill(one.begin(), one.end(), element);
    one[0] = 127;
  }
  for (unsigned k = 0; k < r.nsrc; ++k) {
    for (uint64_t i = 0; i < r.source_len(); i += unit)
      std::memcpy(f.world().at(r.source(k) + i), one.data(), unit);
  }
}

/// Anything into one element of one source.
template <class Dut>
void spoil(test::Fixture<Dut>& f, const NmcRequest& r) {
  const uint64_t unit = num::bytes_of(r.job.from), count = r.source_len() / unit;
  const uint64_t i = f.rng().below(3) == 0 ? 0 : f.rng().below(2) ? count - 1 : f.rng().below(count);
  uint8_t* const at = f.world().at(r.source(static_cast<unsigned>(f.rng().below(r.nsrc))) + i * unit);
  for (uint64_t b = 0; b < unit; ++b) at[b] = static_cast<uint8_t>(f.rng()());
}

/// Mostly 1 to 3 steps.
template <class Dut>
NmcRequest short_one(test::Fixture<Dut>& f, const Kind& k) {
  auto& rng = f.rng();
  constexpr unsigned kSources[] = {1, 2, 2, 2, 3, 3, 5};
  const unsigned nsrc = k.op == COPY ? 1 : rng.below(60) == 0 ? 64 : kSources[rng.below(7)];
  const uint64_t most = rng.below(40) == 0 ? 1000 : 96;
  NmcRequest r =
      f.request(k.from, k.to, k.op, nsrc, block(k) ? 32 * rng.range(1, most / 32) : rng.range(1, most));
  r.job.exact = k.exact && nsrc != 1;
  r.job.propagate_nan = (k.op == MAX || k.op == MIN) && rng.chance(0.5);
  r.job.saturate = !block(k) && (integer(k) || num::bytes_of(k.to) == 1) && rng.chance(0.5);
  r.own = static_cast<unsigned>(rng.below(nsrc));
  const bool quiet = rng.chance(0.6);
  if (quiet) {
    r.job.scalar = integer(k) ? 1 : fp64(k) ? 0x3fe0000000000000 : 0x3f000000;  // 1, or a half
  } else {
    r.job.scalar = integer(k) ? rng()
                   : fp64(k)  ? test::any_factor<num::Float64>(rng)
                              : test::any_factor<num::Float32>(rng);
  }
  REQUIRE(num::check(r.job, r.nsrc, r.own) == wire::Err::OK);
  f.lay_out(r);
  if (quiet) {
    fill_quiet(f, r);
    if (rng.chance(0.3)) spoil(f, r);
  } else {
    f.fill_operands(r);
  }
  return r;
}

template <class Dut>
void short_requests() {
  for (const char* memory : {"answers in bursts", "answers late", "stalls", "writes slowly"}) {
    CAPTURE(memory);
    const bool bursts = std::strcmp(memory, "answers in bursts") == 0;
    NmcSettings s;
    s.size = 1 << 21;
    s.latency = 3;
    s.jitter = std::strcmp(memory, "answers late") == 0 ? 60 : 0;
    test::Fixture<Dut> f(s, std::strcmp(memory, "stalls") == 0 ? 0.5 : 0.0);
    if (std::strcmp(memory, "writes slowly") == 0) f.stall(test::Fixture<Dut>::World::kW, 0.7);
    for (int round = 0; round < 20; ++round) {
      f.clear();
      // Often of two kinds only, in turn.
      const Kind* const two[] = {&kKinds[f.rng().below(std::size(kKinds))],
                                 &kKinds[f.rng().below(std::size(kKinds))]};
      const bool few = f.rng().chance(0.4);
      std::vector<NmcRequest> all;
      for (int i = 0; i < 120; ++i) {
        all.push_back(short_one(f, few ? *two[f.rng().below(2)] : kKinds[f.rng().below(std::size(kKinds))]));
      }
      f.push(all);
      const uint64_t reset_at = f.rng().below(12) == 0 ? f.rng().below(1500) : ~uint64_t{0};
      bool reset = false;
      for (uint64_t cycle = 0; !f.world().idle(); ++cycle) {
        // Held back so long that passes wait in a row, then all at once.
        if (bursts && cycle % 256 == 0) {
          const double held = cycle % 512 == 0 ? 1.0 : 0.0;
          f.stall(test::Fixture<Dut>::World::kRA, held);
          f.stall(test::Fixture<Dut>::World::kRB, held);
          f.bench().progress();
        }
        f.step();
        reset = cycle == reset_at;
        if (reset) break;
      }
      if (reset) {
        f.start();
      } else {
        f.world().compare();
      }
    }
  }
}

}  // namespace

TEST_CASE("nmc: short requests of every class behind each other", "[nmc][random]") {
  short_requests<Vnmc_top>();
}

TEST_CASE("nmc: short requests of every class behind each other, with two multipliers a word",
          "[nmc][random]") {
  short_requests<Vnmc_pairs>();
}
