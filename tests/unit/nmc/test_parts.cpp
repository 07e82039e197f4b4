// SPDX-License-Identifier: Apache-2.0
//
// Reducers that were built without something: what they refuse, and that all else is as it is with it; and
// with two multipliers for each word.
#include <map>

#include "Vnmc_pairs.h"
#include "Vnmc_plain.h"
#include "nmc_fixture.h"

using namespace weft;
using nmc::NmcRequest;
using nmc::NmcSettings;
using wire::Dtype;
using wire::Err;
using wire::Redop;

namespace {

NmcSettings settings() {
  NmcSettings s;
  s.jitter = 60;
  return s;
}

// How often each status comes out of random requests, all of which a whole reducer serves.
template <class Dut>
std::map<Err, unsigned> sweep(test::Profile profile, int rounds) {
  test::Fixture<Dut> f(settings(), profile);
  for (int round = 0; round < rounds; ++round) {
    f.clear();
    std::vector<NmcRequest> requests;
    for (int i = 0; i < 40; ++i) requests.push_back(f.any_request(i % 8 == 0 ? 2000 : 200));
    f.run(requests);
  }
  std::map<Err, unsigned> count;
  for (const auto& done : f.world().completions()) {
    CHECK(nmc::verdict(done.request) == Err::OK);
    ++count[done.status];
  }
  return count;
}

struct Case {
  Dtype from, to;
  Redop op;
  unsigned nsrc;
  bool exact;
  Err plain, pairs;
};
constexpr Case kCases[] = {
    {Dtype::FLOAT32, Dtype::FLOAT32, Redop::PROD, 2, false, Err::BAD_REDOP, Err::OK},
    {Dtype::FLOAT32, Dtype::FLOAT32, Redop::PROD, 1, false, Err::OK, Err::OK},  // a copy
    {Dtype::FLOAT32, Dtype::BFLOAT16, Redop::PROD, 1, false, Err::BAD_REDOP, Err::OK},
    {Dtype::FLOAT64, Dtype::FLOAT64, Redop::PROD, 3, false, Err::BAD_REDOP, Err::OK},
    {Dtype::UINT8, Dtype::UINT8, Redop::PROD, 2, false, Err::BAD_REDOP, Err::OK},
    {Dtype::FLOAT16, Dtype::FLOAT16, Redop::AVG, 2, false, Err::BAD_REDOP, Err::OK},
    {Dtype::FLOAT16, Dtype::FLOAT16, Redop::AVG, 1, false, Err::BAD_REDOP, Err::OK},
    {Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E4M3, Redop::PREMUL_SUM, 1, false, Err::BAD_REDOP, Err::OK},
    {Dtype::INT64, Dtype::INT32, Redop::PREMUL_SUM, 5, false, Err::BAD_REDOP, Err::OK},
    {Dtype::MXFP8_E4M3, Dtype::MXFP8_E4M3, Redop::COPY, 1, false, Err::BAD_TYPE, Err::OK},
    {Dtype::MXFP4_E2M1, Dtype::MXFP4_E2M1, Redop::SUM, 2, false, Err::BAD_TYPE, Err::OK},
    {Dtype::MXFP8_E5M2, Dtype::FLOAT32, Redop::MAX, 3, false, Err::BAD_TYPE, Err::OK},
    {Dtype::BFLOAT16, Dtype::MXFP8_E4M3, Redop::SUM, 2, false, Err::BAD_TYPE, Err::OK},
    {Dtype::FLOAT16, Dtype::FLOAT16, Redop::SUM, 2, true, Err::BAD_FLAGS, Err::OK},
    {Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E4M3, Redop::SUM, 1, true, Err::BAD_FLAGS, Err::OK},
    {Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E5M2, Redop::SUM, 64, true, Err::BAD_FLAGS, Err::OK},
    {Dtype::BFLOAT16, Dtype::BFLOAT16, Redop::SUM, 2, true, Err::BAD_FLAGS, Err::BAD_FLAGS},
    {Dtype::FLOAT16, Dtype::FLOAT16, Redop::SUM, 64, false, Err::OK, Err::OK},
};

// Refused ones touch no memory, the others have the right bytes (run() compares them).
template <class Dut>
void run_cases(Err Case::*want) {
  for (const Case& c : kCases) {
    CAPTURE(wire::name(c.from), wire::name(c.to), wire::name(c.op), c.nsrc, c.exact);
    test::Fixture<Dut> f(settings());
    f.clear();
    NmcRequest r = f.request(c.from, c.to, c.op, c.nsrc, 64);
    r.job.exact = c.exact;
    r.job.scalar = num::kind_of(c.from) == num::Kind::Float ? 0x3f000000 : 7;
    f.lay_out(r);
    f.run({r});
    CHECK(f.world().completions().front().status == c.*want);
    CHECK(f.world().touched() == (c.*want == Err::OK));
  }
}

template <class Dut>
void any_fields() {
  test::Fixture<Dut> f(settings());
  f.clear();
  std::vector<NmcRequest> requests;
  for (int i = 0; i < 3000; ++i) requests.push_back(f.any_fields());
  f.run(requests);
  CHECK_FALSE(f.world().touched());
}

}  // namespace

TEST_CASE("nmc_parts: what a reducer was built without is refused by its name, and touches no memory",
          "[nmc]") {
  run_cases<Vnmc_plain>(&Case::plain);
  run_cases<Vnmc_pairs>(&Case::pairs);
}

TEST_CASE("nmc_parts: any code in any field is judged as the reference judges it", "[nmc][random]") {
  any_fields<Vnmc_plain>();
  any_fields<Vnmc_pairs>();
}

TEST_CASE("nmc_parts: without products, blocks and exact sums all else is reduced as ever", "[nmc][random]") {
  for (test::Profile profile : {test::Profile::None, test::Profile::Half, test::Profile::Changing}) {
    CAPTURE(test::name_of(profile));
    std::map<Err, unsigned> count = sweep<Vnmc_plain>(profile, 50);
    CHECK(count[Err::OK] > 800);
    for (Err refusal : {Err::BAD_TYPE, Err::BAD_REDOP, Err::BAD_FLAGS}) CHECK(count[refusal] > 40);
  }
}

TEST_CASE(
    "nmc_parts: with exact sums of float16 and 8 bits alone, and two multipliers, all is reduced as ever",
    "[nmc][random]") {
  for (test::Profile profile : {test::Profile::None, test::Profile::Half, test::Profile::Changing}) {
    CAPTURE(test::name_of(profile));
    std::map<Err, unsigned> count = sweep<Vnmc_pairs>(profile, 50);
    CHECK(count[Err::OK] > 1900);
    CHECK(count[Err::BAD_FLAGS] > 10);
    CHECK(count[Err::OK] + count[Err::BAD_FLAGS] == 2000);
  }
}

TEST_CASE("nmc_parts: with two multipliers, sums of scaled floats of every type to every type",
          "[nmc][random]") {
  constexpr Dtype kWords[] = {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::FLOAT16, Dtype::FLOAT8_E5M2,
                              Dtype::FLOAT8_E4M3};
  for (test::Profile profile : {test::Profile::None, test::Profile::Changing}) {
    NmcSettings s = settings();
    s.size = 1 << 22;
    test::Fixture<Vnmc_pairs> f(s, profile);
    for (Dtype from : kWords) {
      f.clear();
      std::vector<NmcRequest> requests;
      for (Dtype to : kWords) {
        for (unsigned nsrc : {2u, 2u, 3u, 5u, 17u, 64u}) {
          NmcRequest r =
              f.request(from, to, Redop::PREMUL_SUM, nsrc, f.rng().range(1, nsrc == 2 ? 6000 : 1500));
          r.job.scalar = test::any_factor<num::Float32>(f.rng());
          r.job.saturate = num::bytes_of(to) == 1 && f.rng().chance(0.5);
          r.own = static_cast<unsigned>(f.rng().below(nsrc));
          f.lay_out(r);
          requests.push_back(r);
        }
      }
      f.run(requests);
    }
  }
}
