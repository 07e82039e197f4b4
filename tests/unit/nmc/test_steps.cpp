// SPDX-License-Identifier: Apache-2.0
//
// The cycles that sw/ref/nmc_steps.h says of a request, against those that the reducer takes.
#include <algorithm>

#include "Vnmc_pairs.h"
#include "Vnmc_top.h"
#include "nmc_fixture.h"
#include "sw/ref/nmc_steps.h"

using namespace weft;
using nmc::NmcRequest;
using wire::Dtype;
using wire::Redop;

namespace {

struct Case {
  Dtype from, to;
  Redop op;
  unsigned nsrc;
  bool exact = false;
};

// Every operation of every class of types that a reducer serves, K = 1, 2, 3 and 7.
std::vector<Case> cases(num::Parts parts) {
  constexpr std::pair<Dtype, Dtype> kTypes[] = {{Dtype::FLOAT32, Dtype::FLOAT32},
                                                {Dtype::FLOAT16, Dtype::FLOAT16},
                                                {Dtype::BFLOAT16, Dtype::BFLOAT16},
                                                {Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E4M3},
                                                {Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E5M2},
                                                {Dtype::FLOAT64, Dtype::FLOAT64},
                                                {Dtype::FLOAT32, Dtype::BFLOAT16},
                                                {Dtype::BFLOAT16, Dtype::FLOAT32},
                                                {Dtype::FLOAT32, Dtype::FLOAT16},
                                                {Dtype::FLOAT16, Dtype::FLOAT8_E4M3},
                                                {Dtype::FLOAT8_E5M2, Dtype::FLOAT16},
                                                {Dtype::FLOAT64, Dtype::FLOAT32},
                                                {Dtype::FLOAT8_E4M3, Dtype::FLOAT64},
                                                {Dtype::UINT8, Dtype::UINT8},
                                                {Dtype::INT16, Dtype::INT16},
                                                {Dtype::INT32, Dtype::INT32},
                                                {Dtype::UINT64, Dtype::UINT64},
                                                {Dtype::INT8, Dtype::INT32},
                                                {Dtype::INT32, Dtype::UINT16},
                                                {Dtype::UINT16, Dtype::INT64},
                                                {Dtype::MXFP8_E4M3, Dtype::MXFP8_E4M3},
                                                {Dtype::MXFP4_E2M1, Dtype::MXFP4_E2M1},
                                                {Dtype::MXFP8_E5M2, Dtype::FLOAT32},
                                                {Dtype::MXFP4_E2M1, Dtype::FLOAT16},
                                                {Dtype::BFLOAT16, Dtype::MXFP8_E4M3},
                                                {Dtype::FLOAT32, Dtype::MXFP4_E2M1}};
  std::vector<Case> all;
  for (const auto& [from, to] : kTypes) {
    for (unsigned op = 0; op <= static_cast<unsigned>(Redop::COPY); ++op) {
      for (unsigned nsrc : {1u, 2u, 3u, 7u}) {
        for (bool exact : {false, true}) {
          const Case c{from, to, static_cast<Redop>(op), nsrc, exact};
          const num::Job job{.from = from, .to = to, .op = c.op, .exact = exact, .scalar = 3};
          if (num::check(job, nsrc, 0, parts) == wire::Err::OK) all.push_back(c);
        }
      }
    }
  }
  return all;
}

// `count` requests like the one returned, one behind the other, where nothing has to be turned.
template <class Dut>
NmcRequest run(test::Fixture<Dut>& f, const Case& c, unsigned count, uint64_t elements) {
  std::vector<NmcRequest> all;
  f.clear();
  for (unsigned i = 0; i < count; ++i) {
    NmcRequest r = f.request(c.from, c.to, c.op, c.nsrc, elements);
    r.job.exact = c.exact;
    r.job.scalar = 3;
    f.lay_out(r, 0, 0, 0, 0);
    all.push_back(r);
  }
  f.run(all);
  return all.front();
}

template <class Dut>
void many() {
  for (const Case& c : cases(test::kParts<Dut>)) {
    CAPTURE(wire::name(c.from), wire::name(c.to), wire::name(c.op), c.nsrc, c.exact);
    test::Fixture<Dut> f;
    const NmcRequest r = run(f, c, 3, 4096);
    const auto& done = f.world().completions();
    const double steps = static_cast<double>(nmc::busy_cycles(r.job, r.nsrc, r.len, test::kParts<Dut>));
    const double took = static_cast<double>(done.back().cycle - done.front().cycle) / 2;
    CHECK(took >= steps);
    CHECK(took <= 1.1 * steps);  // what a chunk takes beside its steps
  }
}

template <class Dut>
void one_alone() {
  for (const Case& c : cases(test::kParts<Dut>)) {
    for (uint64_t elements : {32, 96, 8 * 36}) {  // of fp64 the last one is a chunk cut in two
      CAPTURE(wire::name(c.from), wire::name(c.to), wire::name(c.op), c.nsrc, c.exact, elements);
      test::Fixture<Dut> f;
      const NmcRequest r = run(f, c, 1, elements);
      const uint64_t took = f.world().completions().front().took;
      // 12 cycles are the request's way to the lanes, and its response's back.
      const uint64_t least = nmc::busy_cycles(r.job, r.nsrc, r.len, test::kParts<Dut>) +
                             nmc::latency(r.job, r.nsrc, test::kParts<Dut>) +
                             2 * f.world().settings().latency + 12;
      CHECK(took >= least);
      const uint64_t chunks = nmc::windows(r.job, r.nsrc, r.len) > nmc::kChunkSteps ? 2 : 1;
      // To be cut; and in fp64 sums wait behind products of which they are not made.
      const bool turns = (c.from == Dtype::FLOAT64 || c.to == Dtype::FLOAT64) &&
                         (c.op == Redop::PREMUL_SUM || c.op == Redop::AVG);
      const uint64_t waits = turns ? 3 * nmc::passes(r.job, r.nsrc) : 0;
      CHECK(took <= least + chunks * (8 + waits));
    }
  }
}

}  // namespace

TEST_CASE("nmc: requests take the steps that nmc_steps.h says", "[nmc]") {
  CHECK(cases({}).size() > 400);
  many<Vnmc_top>();
  many<Vnmc_pairs>();
}

TEST_CASE("nmc: a request alone takes the cycles that nmc_steps.h says", "[nmc]") {
  one_alone<Vnmc_top>();
  one_alone<Vnmc_pairs>();
}
