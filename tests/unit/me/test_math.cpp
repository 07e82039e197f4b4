// SPDX-License-Identifier: Apache-2.0
//
// Which reductions there are is said twice, in hardware (weft_math_pkg) and in software (num::check()),
// and acted on by CPU-M, the reducer and the engine's model. All must say the same.
#include <algorithm>
#include <string>

#include "Vmath_probe.h"
#include "engine.h"
#include "sw/ref/engine.h"
#include "sw/ref/reduction.h"
#include "tb/nmc/world.h"
#include "tb/sim/owned_model.h"

using namespace me;
using weft::num::Job;
using weft::num::Kind;
using weft::num::kind_of;
using weft::test::Rng;

namespace {

constexpr Dtype kTypes[] = {
    Dtype::UINT8,   Dtype::UINT16,  Dtype::UINT32,      Dtype::UINT64,      Dtype::INT8,      Dtype::INT16,
    Dtype::INT32,   Dtype::INT64,   Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E5M2, Dtype::FLOAT16,   Dtype::BFLOAT16,
    Dtype::FLOAT32, Dtype::FLOAT64, Dtype::MXFP8_E4M3,  Dtype::MXFP8_E5M2,  Dtype::MXFP4_E2M1};

struct Fields {
  unsigned dtype, to, redop, flags, nsrc, own;
  uint64_t scalar = 2;
};

class Probe {
 public:
  // What rtl/nmc says of an entry.
  Err served(const Wqe& w) {
    look({static_cast<unsigned>(w.dtype), static_cast<unsigned>(w.to), static_cast<unsigned>(w.redop),
          w.propagate_nan | 2u * w.saturate | 4u * w.exact, w.nsrc, w.own, w.scalar});
    return static_cast<Err>(probe_->served_o);
  }
  // An empty text, or how hardware and software differ.
  std::string compare(const Fields& f) {
    look(f);
    ++compared;
    const Job job{.from = static_cast<Dtype>(f.dtype),
                  .to = static_cast<Dtype>(f.to),
                  .op = static_cast<Redop>(f.redop),
                  .propagate_nan = (f.flags & 1) != 0,
                  .saturate = (f.flags & 2) != 0,
                  .exact = (f.flags & 4) != 0,
                  .scalar = f.scalar};
    const Err all = weft::num::check(job, f.nsrc, f.own);
    const bool block = kind_of(job.from) == Kind::Block || kind_of(job.to) == Kind::Block;
    good += all == Err::OK;
    std::string why;
    const auto expect = [&](const char* what, unsigned got, Err want) {
      if (got == static_cast<unsigned>(want) || !why.empty()) return;
      why = std::string(what) + ": dtype " + std::to_string(f.dtype) + " to " + std::to_string(f.to) +
            " redop " + std::to_string(f.redop) + " flags " + std::to_string(f.flags) + " nsrc " +
            std::to_string(f.nsrc) + " own " + std::to_string(f.own) + " scalar " + std::to_string(f.scalar) +
            ": " + std::to_string(got) + ", not " + weft::wire::name(want);
    };
    expect("whole", probe_->all_o, all);
    expect("without exact sums", probe_->no_exact_o, weft::num::check(job, f.nsrc, f.own, {.exact = 0}));
    expect("exact sums but of bf16", probe_->small_exact_o,
           weft::num::check(job, f.nsrc, f.own, {.exact = 1}));
    expect("without blocks", probe_->no_blocks_o, weft::num::check(job, f.nsrc, f.own, {.blocks = false}));
    expect("without products", probe_->no_products_o,
           weft::num::check(job, f.nsrc, f.own, {.products = false}));
    weft::nmc::NmcRequest request;
    request.job = job;
    request.nsrc = f.nsrc;
    request.own = f.own;
    expect("served", probe_->served_o, weft::nmc::served(request, {.exact = 0}));
    expect("served with exact sums", probe_->served_exact_o, weft::nmc::served(request, {}));
    if (all == Err::OK && why.empty()) {
      const size_t from = weft::num::bytes_of(job.from), to = weft::num::bytes_of(job.to);
      const size_t align = block || from != to ? 0xff : to - 1;
      if (probe_->align_o != align) why = "common_align of dtype " + std::to_string(f.dtype);
    }
    return why;
  }
  uint64_t compared = 0, good = 0;

 private:
  void look(const Fields& f) {
    probe_->dtype_i = static_cast<uint8_t>(f.dtype);
    probe_->to_i = static_cast<uint8_t>(f.to);
    probe_->redop_i = static_cast<uint8_t>(f.redop);
    probe_->flags_i = static_cast<uint8_t>(f.flags);
    probe_->nsrc_i = static_cast<uint8_t>(f.nsrc);
    probe_->own_i = static_cast<uint8_t>(f.own);
    probe_->scalar_i = f.scalar;
    probe_->eval();
  }
  weft::tb::OwnedModel<Vmath_probe> probe_;
};

}  // namespace

TEST_CASE("math: hardware and software agree on every field of a REDUCE", "[me][math]") {
  Probe probe;
  std::string why;
  const auto all = [&](const Fields& f) {
    if (why.empty()) why = probe.compare(f);
  };
  // Every pair of types, known or not; one operation behind those that exist.
  for (unsigned dtype = 0; dtype < 256; ++dtype)
    for (unsigned to = 0; to < 256; ++to)
      for (unsigned redop = 0; redop <= 10; ++redop)
        for (unsigned flags : {0u, 1u, 2u, 4u}) all({dtype, to, redop, flags, 2u - (redop == 9), 0});
  // Every operation and combination of flags of types that exist.
  for (Dtype dtype : kTypes)
    for (Dtype to : kTypes)
      for (unsigned redop = 0; redop < 256; ++redop)
        for (unsigned flags = 0; flags < 8; ++flags)
          for (unsigned nsrc : {1u, 2u, 3u})
            all({static_cast<unsigned>(dtype), static_cast<unsigned>(to), redop, flags, nsrc, 0});
  // Every number of sources and own one.
  for (Dtype dtype : {Dtype::FLOAT32, Dtype::INT8, Dtype::MXFP8_E4M3})
    for (Redop redop : {Redop::SUM, Redop::COPY})
      for (unsigned nsrc = 0; nsrc < 256; ++nsrc)
        for (unsigned own = 0; own < 256; ++own)
          all({static_cast<unsigned>(dtype), static_cast<unsigned>(dtype), static_cast<unsigned>(redop), 0,
               nsrc, own});
  // What sums of integers can be divided by, and what does not matter elsewhere.
  for (Dtype dtype : kTypes)
    for (Redop redop : {Redop::AVG, Redop::PREMUL_SUM})
      for (unsigned bit = 0; bit < 64; ++bit)
        for (uint64_t low = 0; low < 130; ++low)
          all({static_cast<unsigned>(dtype), static_cast<unsigned>(dtype), static_cast<unsigned>(redop), 0, 2,
               0, low | uint64_t{bit != 0} << bit});
  CHECK(why == "");
  CHECK(probe.compared > 4'000'000);
  CHECK(probe.good > 3'000);
}

TEST_CASE("math: firmware and the engine's model agree on random REDUCEs", "[me][math][random]") {
  // Near the rules: types that exist, sources and addresses at the ends of regions, lengths at the limit.
  struct NoMemory : weft::ref::EngineEnv {
    bool read(uint64_t, uint8_t*, uint32_t) override { return false; }
    bool write(uint64_t, const uint8_t*, uint32_t) override { return false; }
    Err post_write(weft::ref::Ps, uint64_t, const Wqe&) override { return Err::BAD_CONN; }
    uint64_t clock(weft::ref::Ps) override { return 0; }
  } none;
  weft::ref::Engine model({}, none);
  model.set_region(0, {true, true, false, kReadBase, kReadBase + kRegionBytes});
  model.set_region(1, {true, false, true, kWriteBase, kWriteBase + kRegionBytes});
  model.set_region(2, {true, true, true, kBothBase, kBothBase + kBothBytes});
  Engine e;
  e.set_up();
  e.b.patience(1'000'000);
  Probe probe;
  Rng rng;
  const auto near = [&](uint64_t x) {
    return x + 4 * (rng.below(5) - 2) + rng.below(8) * (rng.below(6) == 0);
  };
  const auto address = [&](uint64_t base, uint64_t bytes) {
    switch (rng.below(6)) {
      case 0: return near(base);
      case 1: return near(base + kRegionBytes - bytes);
      case 2: return near(kBothBase + kBothBytes - bytes);
      case 3: return near(rng.below(3) == 0 ? uint64_t{0} - bytes : kBothBase);
      default: return base + 4096 + 8 * rng.below(1000);
    }
  };
  std::array<unsigned, 256> met{};
  for (unsigned round = 0; round < 3000; ++round) {
    Wqe w;
    w.opcode = WqeOp::REDUCE;
    const auto type = [&] { return kTypes[rng.below(std::size(kTypes))]; };
    w.dtype = rng.chance(0.5) ? Dtype::FLOAT32 : type();
    w.to = rng.chance(0.7) ? w.dtype : type();
    w.redop = rng.chance(0.7) ? Redop::SUM : static_cast<Redop>(rng.below(11));
    w.propagate_nan = rng.chance(0.05);
    w.saturate = rng.chance(0.05);
    w.exact = rng.chance(0.05);
    w.scalar = rng.chance(0.5) ? 1 + rng.below(64) : rng.chance(0.5) ? rng.below(70) : rng();
    w.nsrc = static_cast<uint8_t>(rng.chance(0.9) ? 1 + rng.below(3) : rng.below(70));
    w.own = static_cast<uint8_t>(rng.chance(0.8) || w.nsrc == 0 ? 0 : rng.below(w.nsrc + 1u));
    switch (rng.below(8)) {
      case 0: w.length = static_cast<uint32_t>(rng.below(3)) * 64; break;
      case 1: w.length = weft::wire::kMaxWqeLength >> rng.below(4); break;
      case 2: w.length = weft::wire::kMaxWqeLength + 256; break;
      case 3: w.length = static_cast<uint32_t>(rng.below(1000)); break;
      default: w.length = static_cast<uint32_t>(32 * rng.below(1000));
    }
    w.stride = rng.chance(0.6)
                   ? 0
                   : static_cast<uint32_t>(rng() >> (32 + rng.below(28))) & (rng.chance(0.1) ? ~0u : ~7u);
    const weft::ref::Extent extent =
        weft::num::kind_of(w.to) == Kind::Unknown ? weft::ref::Extent{} : weft::ref::extent_of(w);
    w.src0 = address(kReadBase, extent.source);
    w.src1 = address(kReadBase, extent.others);
    w.dst = address(kWriteBase, extent.result);
    // The model serves everything; what the reducer behind the firmware does not is refused first.
    const Err served = probe.served(w);
    const Err want = served != Err::OK ? served : model.check(w, 0);
    const Cqe cqe = e.add(0, {w});
    ++met[static_cast<unsigned>(want)];
    CAPTURE(round, unsigned(w.dtype), unsigned(w.to), unsigned(w.redop), w.nsrc, w.own, w.length, w.stride,
            w.src0, w.src1, w.dst);
    REQUIRE(std::string(weft::wire::name(cqe.status)) == weft::wire::name(want));
  }
  for (Err each : {Err::OK, Err::BAD_TYPE, Err::BAD_REDOP, Err::BAD_FLAGS, Err::BAD_SOURCES, Err::BAD_ALIGN,
                   Err::BAD_LENGTH, Err::BAD_ADDR}) {
    CAPTURE(weft::wire::name(each));
    CHECK(met[static_cast<unsigned>(each)] > 20);
  }
}
