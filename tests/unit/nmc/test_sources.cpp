// SPDX-License-Identifier: Apache-2.0
//
// Alignment, many sources, memory errors and throughput of the whole reducer.
#include "Vnmc_pairs.h"
#include "Vnmc_top.h"
#include "nmc_fixture.h"

using namespace weft;
using nmc::NmcRequest;
using nmc::NmcSettings;
using Fixture = test::Fixture<Vnmc_top>;
using test::kPage;
using wire::Dtype;
using wire::Err;
using wire::Redop;

namespace {

// Each source in turn meets every offset of the destination; the other one is random.
void all_offsets(Dtype from, Dtype to, Redop op, unsigned nsrc, bool exact = false) {
  Fixture f;
  f.clear();
  std::vector<NmcRequest> round;
  const uint64_t ws = num::bytes_of(from), wd = num::bytes_of(to);
  for (uint64_t source = 0; source < 128; source += ws) {
    for (uint64_t target = 0; target < 128; target += wd) {
      NmcRequest r = f.request(from, to, op, nsrc, f.rng().below(300 / std::max(ws, wd)));
      r.own = static_cast<unsigned>(f.rng().below(nsrc));
      r.job.exact = exact;
      const bool second = (f.rng()() & 1) && nsrc > 1;
      const uint64_t other = f.rng().below(128 / ws) * ws;
      f.lay_out(r, second ? other : source, second ? source : other, target);
      round.push_back(r);
      if (f.room_left() < 8 * kPage) {
        f.run(round);
        round.clear();
        f.clear();
      }
    }
  }
  f.run(round);
}

}  // namespace

TEST_CASE("nmc: every pair of alignments, one type", "[nmc]") {
  all_offsets(Dtype::FLOAT32, Dtype::FLOAT32, Redop::SUM, 2);
  all_offsets(Dtype::INT32, Dtype::INT32, Redop::MAX, 2);
  all_offsets(Dtype::FLOAT16, Dtype::FLOAT16, Redop::MIN, 2);
  all_offsets(Dtype::BFLOAT16, Dtype::BFLOAT16, Redop::SUM, 3);
  all_offsets(Dtype::FLOAT64, Dtype::FLOAT64, Redop::SUM, 2);
  all_offsets(Dtype::INT64, Dtype::INT64, Redop::PROD, 2);
  all_offsets(Dtype::UINT16, Dtype::UINT16, Redop::XOR, 3);
}
TEST_CASE("nmc: every pair of alignments, bytes", "[nmc]") {
  all_offsets(Dtype::UINT8, Dtype::UINT8, Redop::COPY, 1);
  all_offsets(Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E5M2, Redop::SUM, 2);
  all_offsets(Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E4M3, Redop::PROD, 2);
  all_offsets(Dtype::INT8, Dtype::INT8, Redop::SUM, 2);
}
TEST_CASE("nmc: every pair of alignments, conversions", "[nmc]") {
  for (Dtype from : test::kFloats) {
    for (Dtype to : test::kFloats) {
      if (num::bytes_of(from) != num::bytes_of(to)) all_offsets(from, to, Redop::SUM, 2);
    }
  }
  for (Dtype from : {Dtype::UINT8, Dtype::INT16, Dtype::UINT32, Dtype::INT64}) {
    for (Dtype to : {Dtype::INT8, Dtype::UINT16, Dtype::INT32, Dtype::UINT64}) {
      if (num::bytes_of(from) != num::bytes_of(to)) all_offsets(from, to, Redop::SUM, 2);
    }
  }
}

TEST_CASE("nmc: every conversion, operation and number of sources", "[nmc][random]") {
  NmcSettings s;
  s.size = 4 << 20;
  Fixture f(s, 0.05);
  const auto all_pairs = [&](std::span<const Dtype> types) {
    for (Dtype from : types) {
      for (Dtype to : types) {
        f.clear();
        std::vector<NmcRequest> round;
        for (int i = 0; i < 60; ++i) {
          NmcRequest r = f.any_of(from, to, static_cast<unsigned>(1 + f.rng().below(i < 40 ? 4 : 9)),
                                  f.rng().below(i % 10 == 0 ? 3000 : 150));
          f.lay_out(r);
          round.push_back(r);
        }
        f.run(round);
      }
    }
  };
  all_pairs(test::kFloats);
  all_pairs(test::kInts);
}

TEST_CASE("nmc: 2 to 64 sources, the own one anywhere", "[nmc]") {
  NmcSettings s;
  s.size = 4 << 20;
  Fixture f(s, 0.05);
  for (unsigned nsrc = 2; nsrc <= 64; ++nsrc) {
    f.clear();
    std::vector<NmcRequest> round;
    std::vector<Dtype> types(std::begin(test::kFloats), std::end(test::kFloats));
    types.push_back(test::kInts[nsrc % std::size(test::kInts)]);
    for (Dtype type : types) {
      for (uint64_t bytes : {40u, 700u, nsrc < 10 ? 9000u : 4200u}) {
        NmcRequest r = f.request(type, f.rng().chance(0.7) ? Redop::SUM : Redop::MAX, nsrc,
                                 f.rng().below(bytes / num::bytes_of(type)));
        r.own = static_cast<unsigned>(f.rng().chance(0.2)   ? 0
                                      : f.rng().chance(0.3) ? nsrc - 1
                                                            : f.rng().below(nsrc));
        if (f.room_left() < (nsrc + 2) * (bytes + 500)) continue;
        f.lay_out(r);
        round.push_back(r);
      }
    }
    f.run(round);
  }
}

namespace {
constexpr Dtype kExactTypes[] = {Dtype::FLOAT16, Dtype::BFLOAT16, Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E4M3};
}

TEST_CASE("nmc: exact sums, every pair of alignments", "[nmc]") {
  for (Dtype type : kExactTypes)
    all_offsets(type, type, Redop::SUM, type == Dtype::FLOAT8_E4M3 ? 2 : 3, true);
}

TEST_CASE("nmc: exact sums of 2, 3, 8 and 64 sources", "[nmc][random]") {
  for (double stall : {0.0, 0.4}) {
    NmcSettings s;
    s.jitter = 20;
    s.size = 4 << 20;
    Fixture f(s, stall);
    for (unsigned nsrc : {2u, 3u, 8u, 64u}) {
      f.clear();
      std::vector<NmcRequest> round;
      for (Dtype type : kExactTypes) {
        // Up to more than one chunk of each type.
        for (uint64_t most : {30u, 800u, nsrc == 64 ? 1300u : 2600u}) {
          NmcRequest r = f.request(type, Redop::SUM, nsrc, f.rng().below(most));
          r.own = static_cast<unsigned>(f.rng().below(nsrc));
          r.job.exact = true;
          r.job.saturate = num::bytes_of(type) == 1 && f.rng().chance(0.5);
          f.lay_out(r);
          round.push_back(r);
          NmcRequest other = f.any_request(200, 4);  // of another class, that must not overtake
          round.push_back(other);
        }
      }
      f.run(round);
    }
  }
}

TEST_CASE("nmc: exact sums are the same in any order of the sources", "[nmc]") {
  constexpr unsigned kSources = 8, kCount = 3000;
  for (Dtype type : kExactTypes) {
    for (bool exact : {false, true}) {
      CAPTURE(static_cast<int>(type), exact);
      NmcSettings s;
      s.size = 4 << 20;
      Fixture f(s);
      f.clear();
      // Block k is source k, or with the first one as own and last source, source k - 1.
      NmcRequest first = f.request(type, Redop::SUM, kSources, kCount);
      first.job.exact = exact;
      f.lay_out(first, 0, 0, 0, 0);
      first.own = 0;
      first.src0 = first.src1;
      NmcRequest turned = first;
      turned.own = kSources - 1;
      turned.src1 = first.src1 + first.stride;
      turned.dst = f.place(first.len, 8);
      f.fill_operands(first);
      // The first elements: half a last place, a number, ..., and the smallest number, which decides the
      // tie unless it is added to the number before and lost.
      num::with_float(type, [&](auto format) {
        using F = decltype(format);
        using Bits = typename F::bits_type;
        const uint64_t field = F::kMax >> F::kFrac;
        for (unsigned k = 0; k < kSources; ++k) {
          const Bits x = k == 0   ? test::make_float<F>(0, field - F::kFrac - 1, 0)
                         : k == 1 ? test::make_float<F>(0, field, 0)
                                  : static_cast<Bits>(k + 1 == kSources);
          std::memcpy(f.world().at(first.source(k)), &x, sizeof x);
        }
      });
      f.push({first, turned});
      f.step_until_idle();
      f.world().compare();
      const bool same =
          std::equal(f.world().at(first.dst), f.world().at(first.dst) + first.len, f.world().at(turned.dst));
      // 64 numbers of e4m3 fit the 24 bits of the ordinary sum.
      CHECK(same == (exact || type == Dtype::FLOAT8_E4M3));
    }
  }
}

TEST_CASE("nmc: exact sums of 16 bits run at half the rate of others, of 8 at a quarter", "[nmc]") {
  constexpr uint32_t kLen = 32768, kBeats = kLen / 128;
  for (Dtype type : kExactTypes) {
    for (unsigned nsrc : {2u, 3u, 8u}) {
      CAPTURE(static_cast<int>(type), nsrc);
      NmcSettings s;
      s.size = 4 << 20;
      Fixture f(s);
      f.clear();
      std::vector<NmcRequest> requests;
      for (unsigned i = 0; i < 3; ++i) {
        NmcRequest r = f.request(type, Redop::SUM, nsrc, kLen / num::bytes_of(type));
        r.job.exact = true;
        f.lay_out(r, 0, 0, 0, 0);
        requests.push_back(r);
      }
      f.run(requests);
      const auto& done = f.world().completions();
      const double beat = static_cast<double>(done.back().cycle - done.front().cycle) / (2.0 * kBeats);
      // bf16: its eight lanes.
      const unsigned slower = type == Dtype::BFLOAT16 ? 8 : type == Dtype::FLOAT16 ? 2 : 4;
      CHECK(beat <= slower * (nsrc - 1) + 0.05);
      CHECK(beat >= slower * (nsrc - 1.1));
    }
  }
}

namespace {

template <class Dut>
void memory_errors() {
  for (double stall : {0.0, 0.4}) {
    NmcSettings s;
    s.jitter = 30;
    test::Fixture<Dut> f(s, stall);
    uint64_t failed = 0;
    for (int round = 0; round < 60; ++round) {
      f.clear();
      std::vector<NmcRequest> requests;
      for (int i = 0; i < 20; ++i) {
        NmcRequest r = f.any_request(1, 4);
        do r = f.any_request(i % 5 == 0 ? 2500 : 300, 4);
        while (r.len == 0 || r.dst == r.src0 || (r.dst < r.src0 && r.src0 < r.dst + r.len));
        // Any beat of a source, first and last ones as often as others; any page of the destination.
        if (f.rng().chance(0.3)) {
          const unsigned k = static_cast<unsigned>(f.rng().below(r.nsrc));
          const uint64_t pick = f.rng().below(3), len = r.source_len();
          const uint64_t byte = pick == 0 ? 0 : pick == 1 ? len - 1 : f.rng().below(len);
          f.world().bad_reads[r.port(k, test::kParts<Dut>)].insert((r.source(k) + byte) & ~uint64_t{127});
        } else if (f.rng().chance(0.15)) {
          f.world().bad_writes.insert((r.dst + f.rng().below(r.len)) & ~(kPage - 1));
        }
        requests.push_back(r);
      }
      f.run(requests);
      for (const auto& done : f.world().completions()) failed += done.status == Err::MEM_ERROR;
    }
    CHECK(failed > 20);
    CHECK(f.world().counters().errors > 20);
  }
}

// A product that raises what its sum does not, in one element of one source; all else raises nothing.
template <class Dut>
void flags_of_products() {
  struct Row {
    const char* raises;
    uint32_t scalar, element, others;
  };
  constexpr Row kRows[] = {{"invalid", 0x7f800000, 0, 0x3f800000},   // infinity x 0
                           {"overflow", 0x7f000000, 0x40800000, 0},  // 2^127 x 4
                           {"inexact", 0x3f800001, 0x3f800001, 0}};  // (1 + 2^-23)^2
  test::Fixture<Dut> f;
  for (Dtype to : {Dtype::FLOAT32, Dtype::FLOAT16}) {
    for (unsigned nsrc : {2u, 3u, 5u}) {
      for (unsigned k = 0; k < nsrc; ++k) {
        for (const Row& row : kRows) {
          CAPTURE(wire::name(to), nsrc, k, row.raises);
          f.clear();
          NmcRequest r = f.request(Dtype::FLOAT32, to, Redop::PREMUL_SUM, nsrc, 40);
          r.job.scalar = row.scalar;
          f.lay_out(r);
          for (unsigned source = 0; source < nsrc; ++source) {
            for (unsigned i = 0; i < 40; ++i) {
              const bool odd_one = source == k && i == 7;
              std::memcpy(f.world().at(r.source(source) + 4 * i), odd_one ? &row.element : &row.others, 4);
            }
          }
          f.push({r});
          f.step_until_idle();
          f.world().compare();
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("nmc: what the product of any source raises reaches the completion", "[nmc]") {
  flags_of_products<Vnmc_top>();
  flags_of_products<Vnmc_pairs>();
}

TEST_CASE("nmc: a memory error ends its request and no other", "[nmc][random]") {
  memory_errors<Vnmc_top>();
}

TEST_CASE("nmc: a memory error ends its request and no other, with two multipliers a word", "[nmc][random]") {
  memory_errors<Vnmc_pairs>();
}

TEST_CASE("nmc: nothing is written behind a read error", "[nmc]") {
  for (unsigned nsrc : {2u, 3u}) {
    Fixture f;
    f.clear();
    NmcRequest r = f.request(Dtype::FLOAT32, Redop::SUM, nsrc, 3 * 1024);
    r.src0 = f.place(r.len, 0, kPage);
    r.src1 = f.place((nsrc - 1) * r.len, 0, kPage) - r.len;
    r.stride = r.len;
    r.dst = f.place(r.len, 0, kPage);
    NmcRequest next = f.request(Dtype::FLOAT32, Redop::SUM, 2, 128);
    f.lay_out(next, 0, 0, 0);
    const uint64_t bad = 4096 + 10 * 128;
    f.world().bad_reads[1].insert(r.source(nsrc - 1) + bad);
    const std::vector<uint8_t> old(f.world().at(r.dst), f.world().at(r.dst) + r.len);
    f.run({r, next});
    REQUIRE(f.world().completions().size() == 2);
    CHECK(f.world().completions()[0].status == Err::MEM_ERROR);
    CHECK(f.world().completions()[1].status == Err::OK);
    uint64_t first_kept = 0;
    for (uint64_t i = 0; i < r.len; ++i) {
      if (f.world().at(r.dst)[i] != old[i]) first_kept = i + 1;
    }
    CHECK(first_kept > bad - 128);
    CHECK(first_kept <= bad);
    CHECK(f.world().bursts_written() == 4);  // the failed request's bursts are whole all the same
  }
}

TEST_CASE("nmc: 128 bytes a cycle at 40 and at 400 cycles of latency", "[nmc]") {
  constexpr unsigned kCount = 5;
  constexpr uint32_t kLen = 65536;
  for (unsigned latency : {40u, 400u}) {
    for (bool turned : {false, true}) {
      CAPTURE(latency, turned);
      NmcSettings s;
      s.latency = latency;
      s.size = 2 << 20;
      Fixture f(s);
      f.clear();
      std::vector<NmcRequest> requests;
      for (unsigned i = 0; i < kCount; ++i) {
        const Dtype type = test::kFloats[i];
        NmcRequest r = f.request(type, Redop::SUM, 2, kLen / num::bytes_of(type));
        f.lay_out(r, turned ? 100 : 0, turned ? 36 : 0, turned ? 64 : 0, 0);
        requests.push_back(r);
      }
      f.run(requests);
      const auto& done = f.world().completions();
      const double cycles = static_cast<double>(done.back().cycle - done.front().cycle);
      CHECK((kCount - 1) * kLen / cycles >= 126.0);
      CHECK(done.front().cycle < 2 * latency + kLen / 128 + 60);
    }
  }
}

TEST_CASE("nmc: K sources take K - 1 cycles a beat", "[nmc]") {
  constexpr uint32_t kLen = 32768, kBeats = kLen / 128;
  for (unsigned nsrc : {3u, 4u, 8u}) {
    for (bool turned : {false, true}) {
      CAPTURE(nsrc, turned);
      NmcSettings s;
      s.size = 4 << 20;
      Fixture f(s);
      f.clear();
      std::vector<NmcRequest> requests;
      for (unsigned i = 0; i < 3; ++i) {
        const Dtype type = test::kFloats[2 * i];
        NmcRequest r = f.request(type, Redop::SUM, nsrc, kLen / num::bytes_of(type));
        f.lay_out(r, turned ? 100 : 0, turned ? 36 : 0, turned ? 64 : 0, 0);
        requests.push_back(r);
      }
      f.run(requests);
      const auto& done = f.world().completions();
      const double beat = static_cast<double>(done.back().cycle - done.front().cycle) / (2.0 * kBeats);
      // A turned source costs one step a chunk of 32 more.
      CHECK(beat <= (nsrc - 1) * (turned ? 33.0 / 32 : 1.0) + 0.05);
      CHECK(beat >= nsrc - 1.1);
    }
  }
}
