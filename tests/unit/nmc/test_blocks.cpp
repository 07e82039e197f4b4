// SPDX-License-Identifier: Apache-2.0
//
// Blocks of OCP MX through the whole reducer: as sources, as result and as both, at any byte.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "Vnmc_top.h"
#include "nmc_cases.h"
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

constexpr uint64_t kEach = num::kMxElements;

struct Types {
  Dtype from, to;
};

/// Every pair of types of which one or both are blocks.
std::vector<Types> block_types() {
  std::vector<Types> all;
  for (Dtype block : test::kBlocks) {
    all.push_back({block, block});
    for (Dtype other : test::kBesideBlocks) {
      all.push_back({block, other});
      all.push_back({other, block});
    }
  }
  return all;
}

// ---- blocks out of numbers -----------------------------------------------------------------------

using num::Float32;
using Values = std::array<uint32_t, kEach>;

/// Rules of the reference broken one at a time.
enum class OutFault {
  None,
  ScaleUp,        // the shared exponent is that of the next power of two
  ScaleOfAll,     // infinities count for the scale
  ScaleWraps,     // nothing holds the scale at 2^-127
  TiesAway,       // a half is rounded up
  Truncates,      // everything is rounded towards zero
  FlushesInputs,  // subnormal numbers count as zero
  KeepsSpecial,   // a NaN in a block of MXFP4 leaves the other elements
};
constexpr OutFault kOutFaults[] = {OutFault::None,          OutFault::ScaleUp,     OutFault::ScaleOfAll,
                                   OutFault::ScaleWraps,    OutFault::TiesAway,    OutFault::Truncates,
                                   OutFault::FlushesInputs, OutFault::KeepsSpecial};

/// 32 numbers made for a purpose: of like size around a random exponent, at the ends of the range, with
/// few bits so that there are ties, with some that are none, or all zero.
Values values_of(test::Rng& rng) {
  Values v;
  const uint64_t kind = rng.below(16), reach = rng.below(3) == 0 ? 40 : 8;
  const uint64_t top = kind == 0   ? 0
                       : kind < 5  ? rng.below(24)
                       : kind == 5 ? 254 - rng.below(3)
                                   : rng.below(255);
  for (auto& x : v) {
    const uint64_t down = rng.below(reach), exponent = top > down ? top - down : 0;
    uint64_t fraction = test::fraction_of<Float32>(rng);
    switch (rng.below(4)) {
      case 0: fraction = rng() << 18; break;
      case 1: fraction = (rng() << 18) + rng.below(3) - 1; break;
      case 2: fraction >>= exponent == 0 ? rng.below(24) : 0; break;
      default: break;
    }
    x = test::make_float<Float32>(rng(), exponent, fraction);
    if (kind == 6 && rng.below(16) == 0) x = test::special_of<Float32>(rng);
    if (kind == 7 && rng.below(32) == 0) x = Float32::kNan | static_cast<uint32_t>(rng() & 0x803fffff);
    if (kind == 8 && rng.below(8) != 0) x &= Float32::kSign;
    if (kind == 9) x &= Float32::kSign;
    if (kind == 10) x = static_cast<uint32_t>(rng());
  }
  return v;
}

/// The block that a reference with this fault makes of them.
template <class E>
std::array<uint8_t, num::Mx<E>::kBytes> quantised(Values given, OutFault fault) {
  std::array<uint8_t, num::Mx<E>::kBytes> block;
  const auto quantise = [&] { num::Mx<E>::quantise(given, block); };
  quantise();
  switch (fault) {
    case OutFault::None: return block;
    case OutFault::ScaleUp: block[0] += block[0] != 0; return block;
    case OutFault::ScaleWraps: block[0] = block[0] == 0 ? 255 : block[0]; return block;
    case OutFault::ScaleOfAll:
      if (std::ranges::any_of(given, [](uint32_t x) { return !Float32::is_finite(x); }))
        given[0] = Float32::kMax;
      break;
    case OutFault::TiesAway:
    case OutFault::Truncates:
      for (auto& x : given) {
        if (!Float32::is_finite(x) || Float32::magnitude(x) == 0) continue;
        if (fault == OutFault::TiesAway) ++x;
        if (fault == OutFault::Truncates) x &= ~0xfffffu;
      }
      break;
    case OutFault::FlushesInputs:
      for (auto& x : given) {
        if (Float32::magnitude(x) < Float32::kHidden) x &= Float32::kSign;
      }
      break;
    case OutFault::KeepsSpecial:
      for (auto& x : given) {
        if (!Float32::is_finite(x)) x = 0;
      }
      break;
  }
  quantise();
  return block;
}

/// Copies numbers to blocks, in requests of `blocks` blocks, until there have been `count`. What the reducer
/// makes is compared with the rules; returns in how many blocks a reference with each fault differs from it.
template <class E>
std::map<OutFault, uint64_t> quantise_all(Dtype type, uint64_t count, uint64_t blocks) {
  NmcSettings s;
  s.size = 4 << 20;
  Fixture f(s, 0.0);
  std::map<OutFault, uint64_t> differ;
  for (uint64_t done = 0; done < count; done += blocks) {
    f.clear();
    NmcRequest r = f.request(Dtype::FLOAT32, type, Redop::COPY, 1, kEach * blocks);
    f.lay_out(r);
    std::vector<Values> all(blocks);
    for (auto& values : all) values = values_of(f.rng());
    std::memcpy(f.world().at(r.src0), all.data(), r.source_len());
    f.push({r});
    f.step_until_idle();
    f.world().compare();
    for (uint64_t i = 0; i < blocks; ++i) {
      const uint8_t* const got = f.world().at(r.dst) + i * num::Mx<E>::kBytes;
      for (OutFault fault : kOutFaults) {
        const auto want = quantised<E>(all[i], fault);
        differ[fault] += std::memcmp(got, want.data(), want.size()) != 0;
      }
    }
  }
  return differ;
}

}  // namespace

TEST_CASE("nmc: blocks of 32 numbers are the reference's", "[nmc][blocks][random][fault]") {
  const auto check = [](const std::map<OutFault, uint64_t>& differ, bool half) {
    for (const auto& [fault, blocks] : differ) {
      CAPTURE(static_cast<int>(fault), blocks);
      // MXFP8 has no other rule for blocks that are not all numbers, MXFP4 none for infinities in them.
      if (fault == OutFault::None)
        CHECK(blocks == 0);
      else if (fault == (half ? OutFault::ScaleOfAll : OutFault::KeepsSpecial))
        continue;
      else
        CHECK(blocks > 0);
    }
  };
  check(quantise_all<num::Float8E4m3>(Dtype::MXFP8_E4M3, 60'000, 6'000), false);
  check(quantise_all<num::Float8E5m2>(Dtype::MXFP8_E5M2, 60'000, 6'000), false);
  check(quantise_all<num::Float4E2m1>(Dtype::MXFP4_E2M1, 60'000, 6'000), true);
}

// Few enough in a request that every block's flags are seen.
TEST_CASE("nmc: what a block of numbers raises", "[nmc][blocks][random]") {
  CHECK(quantise_all<num::Float8E4m3>(Dtype::MXFP8_E4M3, 300, 1)[OutFault::None] == 0);
  CHECK(quantise_all<num::Float8E5m2>(Dtype::MXFP8_E5M2, 300, 1)[OutFault::None] == 0);
  CHECK(quantise_all<num::Float4E2m1>(Dtype::MXFP4_E2M1, 300, 1)[OutFault::None] == 0);
}

TEST_CASE("nmc: blocks to and from every byte of a beat", "[nmc][blocks]") {
  Fixture f;
  for (const auto [from, to] : block_types()) {
    f.clear();
    std::vector<NmcRequest> round;
    const uint64_t wd = num::bytes_of(to), ws = num::bytes_of(from);
    const auto any = [&] { return f.rng().below(128 / ws) * ws; };
    for (uint64_t target = 0; target < 128; target += wd) {
      for (unsigned nsrc : {1u, 2u, 3u}) {
        NmcRequest r =
            f.request(from, to, nsrc == 1 ? Redop::COPY : Redop::SUM, nsrc, kEach * (1 + f.rng().below(9)));
        r.own = static_cast<unsigned>(f.rng().below(nsrc));
        f.lay_out(r, any(), any(), target);
        round.push_back(r);
        if (f.room_left() < 16 * kPage) {
          f.run(round);
          round.clear();
          f.clear();
        }
      }
    }
    for (uint64_t source = 0; source < 128; source += ws) {
      NmcRequest r = f.request(from, to, Redop::MAX, 2, kEach * (1 + f.rng().below(9)));
      f.lay_out(r, source, any(), f.rng().below(128 / wd) * wd);
      round.push_back(r);
    }
    f.run(round);
  }
}

TEST_CASE("nmc: every operation of blocks, 1 to 64 sources", "[nmc][blocks][random]") {
  NmcSettings s;
  s.size = 4 << 20;
  s.jitter = 60;
  for (test::Profile profile : {test::Profile::None, test::Profile::Light, test::Profile::Changing}) {
    Fixture f(s, profile);
    for (const auto [from, to] : block_types()) {
      f.clear();
      std::vector<NmcRequest> round;
      for (unsigned nsrc : {1u, 1u, 1u, 2u, 2u, 2u, 2u, 3u, 3u, 4u, 5u, 8u, 17u, 64u}) {
        for (uint64_t blocks : {uint64_t{1}, 1 + f.rng().below(20), 1 + f.rng().below(nsrc < 9 ? 130 : 50)}) {
          NmcRequest r = f.any_of(from, to, nsrc, kEach * blocks);
          if (f.room_left() < (nsrc + 2) * (r.source_len() + 500) + r.result_len()) continue;
          f.lay_out(r);
          round.push_back(r);
        }
      }
      f.run(round);
    }
  }
}

TEST_CASE("nmc: up to 64 KB of blocks", "[nmc][blocks][random]") {
  NmcSettings s;
  s.size = 16 << 20;
  Fixture f(s, 0.02);
  for (const auto [from, to] : block_types()) {
    f.clear();
    std::vector<NmcRequest> round;
    for (unsigned nsrc : {1u, 2u, 3u}) {
      NmcRequest r = f.any_of(from, to, nsrc, 0);
      const uint64_t unit = num::length_unit(from, to);
      r.len = static_cast<uint32_t>((65536 / unit - f.rng().below(40)) * unit);
      f.lay_out(r);
      round.push_back(r);
    }
    f.run(round);
  }
}

TEST_CASE("nmc: jobs with blocks and others behind each other", "[nmc][blocks][random]") {
  NmcSettings s;
  s.size = 1 << 20;
  Fixture f(s, 0.0);
  const auto types = block_types();
  for (int n = 0; n < 30; ++n) {
    f.clear();
    std::vector<NmcRequest> round;
    for (int i = 0; i < 60; ++i) {
      const unsigned nsrc = static_cast<unsigned>(1 + f.rng().below(4));
      NmcRequest r;
      if (f.rng().chance(0.5)) {
        const auto [from, to] = types[f.rng().below(types.size())];
        r = f.any_of(from, to, nsrc, kEach * f.rng().below(6));
      } else {
        r = f.any_of(test::kFloats[f.rng().below(6)], test::kFloats[f.rng().below(6)], nsrc,
                     f.rng().below(200));
      }
      f.lay_out(r);
      round.push_back(r);
    }
    f.run(round);
  }
}

TEST_CASE("nmc: the length of blocks is a multiple of 32 elements", "[nmc][blocks]") {
  Fixture f;
  f.clear();
  std::vector<NmcRequest> requests;
  std::vector<Err> want;
  const uint64_t base = f.world().settings().base;
  for (const auto [from, to] : block_types()) {
    const uint64_t unit = num::length_unit(from, to);
    const auto add = [&](Err err, uint64_t len, auto spoil) {
      NmcRequest r = f.request(from, to, Redop::SUM, 2, 0);
      r.src0 = base + kPage, r.src1 = r.src0 + kPage, r.dst = r.src0 + 2 * kPage;
      r.len = static_cast<uint32_t>(len);
      spoil(r);
      requests.push_back(r);
      want.push_back(err);
    };
    for (uint64_t off = num::bytes_of(to); off < unit; off *= 2)
      add(Err::BAD_ALIGN, 3 * unit + off, [](auto&) {});
    add(Err::OK, 0, [](auto&) {});
    // The last byte of a footprint is the last one there is, or one too many.
    const uint64_t result = num::footprint(to, kEach), source = num::footprint(from, kEach);
    const uint64_t wd = num::bytes_of(to), ws = num::bytes_of(from);
    add(Err::BAD_LENGTH, unit, [&](auto& r) { r.dst = uint64_t{0} - result + wd; });
    add(Err::BAD_LENGTH, unit, [&](auto& r) { r.src0 = uint64_t{0} - source + ws; });
    add(Err::BAD_LENGTH, unit, [&](auto& r) { r.src1 = uint64_t{0} - source + ws; });
    if (ws != 1) add(Err::BAD_ALIGN, unit, [](auto& r) { r.src0 += 1; });
    if (wd != 1) add(Err::BAD_ALIGN, unit, [](auto& r) { r.dst += 1; });
  }
  f.run(requests);
  CHECK_FALSE(f.world().touched());
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CHECK(f.world().completions()[i].status == want[i]);
  }
}

TEST_CASE("nmc: blocks at the end of the address space", "[nmc][blocks]") {
  NmcSettings s;
  s.size = 1 << 20;
  s.base = uint64_t{0} - s.size;
  Fixture f(s);
  for (const auto [from, to] : block_types()) {
    f.clear();
    NmcRequest up = f.request(from, to, Redop::SUM, 2, 4 * kEach);
    f.lay_out(up);
    up.dst = uint64_t{0} - up.result_len();
    f.run({up});
    f.clear();
    NmcRequest down = f.request(from, to, Redop::MIN, 2, 4 * kEach);
    f.lay_out(down);
    down.src0 = uint64_t{0} - down.source_len();
    f.run({down});
  }
}

TEST_CASE("nmc: a memory error in a block", "[nmc][blocks][random]") {
  NmcSettings s;
  s.size = 1 << 20;
  Fixture f(s, 0.05);
  const auto types = block_types();
  for (int n = 0; n < 40; ++n) {
    f.clear();
    std::vector<NmcRequest> round;
    for (int i = 0; i < 8; ++i) {
      const auto [from, to] = types[f.rng().below(types.size())];
      const unsigned nsrc = static_cast<unsigned>(1 + f.rng().below(3));
      NmcRequest r = f.any_of(from, to, nsrc, kEach * (1 + f.rng().below(70)));
      f.lay_out(r);
      const unsigned k = static_cast<unsigned>(f.rng().below(nsrc));
      if (i % 2) {
        f.world().bad_reads[r.port(k)].insert((r.source(k) + f.rng().below(r.source_len())) & ~uint64_t{127});
      } else if (i % 4 == 2) {
        f.world().bad_writes.insert((r.dst + f.rng().below(r.result_len())) & ~(kPage - 1));
      }
      round.push_back(r);
    }
    f.run(round);
  }
}

TEST_CASE("nmc: a block a cycle", "[nmc][blocks]") {
  for (const auto [from, to] : block_types()) {
    for (uint64_t at : {0, 76}) {
      NmcSettings s;
      s.size = 1 << 20;
      s.latency = 40;
      Fixture f(s);
      f.clear();
      NmcRequest r = f.request(from, to, Redop::MAX, 2, 0);
      constexpr uint64_t kBlocksOf = 1000;
      r.len = static_cast<uint32_t>(kBlocksOf * num::length_unit(from, to));
      f.lay_out(r, at, at / 19 * 9, at);  // multiples of 4
      f.run({r});
      // As many steps as blocks.
      const uint64_t active =
          f.world().counters().active - f.world().counters().stall_read - f.world().counters().stall_write;
      CAPTURE(static_cast<int>(from), static_cast<int>(to), at, active);
      CHECK(active >= kBlocksOf);
      CHECK(active <= kBlocksOf + 3);
    }
  }
}

// One element of one block of one source is beyond the range of fp32; another source's wins the maximum, so
// that only the conversion raises a flag.
TEST_CASE("nmc: what one block raises reaches its completion", "[nmc][blocks]") {
  NmcSettings s;
  s.size = 256 << 10;
  Fixture f(s);
  constexpr uint8_t kOne = 0x38;
  const uint64_t bytes = num::footprint(Dtype::MXFP8_E4M3, kEach);
  for (unsigned nsrc : {2u, 3u}) {
    for (unsigned blocks : {1u, 5u, 110u}) {
      f.clear();
      NmcRequest r = f.request(Dtype::MXFP8_E4M3, Redop::MAX, nsrc, kEach * blocks);
      f.lay_out(r, 0, 0, 96 + blocks % 4);
      for (unsigned k = 0; k < nsrc; ++k) std::memset(f.world().at(r.source(k)), kOne, r.source_len());
      for (unsigned k = 0; k < nsrc; ++k) {
        for (unsigned i = 0; i < blocks; ++i) {
          uint8_t* const block = f.world().at(r.source(k) + i * bytes);
          block[0] = 254;
          block[1 + i % kEach] = 0xfe;  // -448 x 2^127
          f.push({r});
          f.step_until_idle();
          f.world().compare();
          std::memset(f.world().at(r.source(k) + i * bytes), kOne, bytes);
        }
      }
    }
  }
}
