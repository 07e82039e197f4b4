// SPDX-License-Identifier: Apache-2.0
//
// One reducer of any build and its world, for the tests of whole requests: lays requests out in memory,
// fills their sources with numbers that meet the rules, runs them and compares every byte of memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nmc_cases.h"
#include "tb/nmc/world.h"

class Vnmc_plain;
class Vnmc_pairs;

namespace weft::test {

/// The parameters of the model.
template <class Dut>
inline constexpr num::Parts kParts{};
template <>
inline constexpr num::Parts kParts<Vnmc_plain>{.products = false, .blocks = false, .exact = 0};
template <>
inline constexpr num::Parts kParts<Vnmc_pairs>{.exact = 1, .multipliers = 2};

inline constexpr uint64_t kPage = nmc::kPageBytes;

inline constexpr wire::Dtype kFloats[] = {wire::Dtype::FLOAT32,     wire::Dtype::BFLOAT16,
                                          wire::Dtype::FLOAT16,     wire::Dtype::FLOAT8_E5M2,
                                          wire::Dtype::FLOAT8_E4M3, wire::Dtype::FLOAT64};
inline constexpr wire::Dtype kInts[] = {wire::Dtype::UINT8,  wire::Dtype::UINT16, wire::Dtype::UINT32,
                                        wire::Dtype::UINT64, wire::Dtype::INT8,   wire::Dtype::INT16,
                                        wire::Dtype::INT32,  wire::Dtype::INT64};

inline constexpr wire::Dtype kBlocks[] = {wire::Dtype::MXFP8_E4M3, wire::Dtype::MXFP8_E5M2,
                                          wire::Dtype::MXFP4_E2M1};
/// The floats that blocks are made of or become.
inline constexpr wire::Dtype kBesideBlocks[] = {wire::Dtype::FLOAT32, wire::Dtype::BFLOAT16,
                                                wire::Dtype::FLOAT16};

/// Regions of a round are laid out one behind the other with gaps, so that all else in memory is guard.
template <class Dut>
class Fixture {
 public:
  using World = nmc::World<Dut>;
  using Request = nmc::NmcRequest;

  explicit Fixture(nmc::NmcSettings settings = {}, double stall = 0.0)
      : bench_("weft_nmc"), settings_(std::move(settings)) {
    settings_.parts = kParts<Dut>;
    for (unsigned i = 0; i < 9; ++i) stalls_.emplace_back(stall, 20 + i);
    start();
  }
  Fixture(nmc::NmcSettings settings, Profile profile) : bench_("weft_nmc"), settings_(std::move(settings)) {
    settings_.parts = kParts<Dut>;
    for (unsigned i = 0; i < 9; ++i) stalls_.emplace_back(profile, 20 + i);
    start();
  }

  /// Holds back one stream (World::Stream) with another probability.
  void stall(unsigned which, double p) { stalls_[which] = Stall(p, 40 + which); }

  World& world() { return *world_; }
  Bench<Dut>& bench() { return bench_; }
  Rng& rng() { return rng_; }

  /// Resets the reducer, whatever it is doing, and puts it before a new memory.
  void start() {
    nmc::NmcSettings settings = settings_;
    settings.hold = [this](unsigned which) { return stalls_[which].stalled(); };
    settings.random = seed();
    world_ = std::make_unique<World>(bench_.dut(), std::move(settings));
    bench_.reset();
  }

  /// Starts a round: all of memory free and random.
  void clear() {
    for (size_t i = 0; i + 8 <= world_->memory().size(); i += 8) {
      const uint64_t r = rng_();
      std::memcpy(&world_->memory()[i], &r, 8);
    }
    world_->bad_reads[0].clear();
    world_->bad_reads[1].clear();
    world_->bad_writes.clear();
    free_ = world_->settings().base + kPage;
  }

  /// Room for `bytes` bytes whose address is `offset` modulo `modulus`, with a gap before it.
  uint64_t place(uint64_t bytes, uint64_t offset, uint64_t modulus = 128) {
    uint64_t at = free_ + 1 + rng_.below(200);
    at += (offset + modulus - at % modulus) % modulus;
    free_ = at + bytes;
    if (room_left() > world_->settings().size) throw std::logic_error("round does not fit into memory");
    return at;
  }
  uint64_t room_left() const { return world_->settings().size - (free_ - world_->settings().base); }

  /// A request of `count` elements without places.
  Request request(wire::Dtype from, wire::Dtype to, wire::Redop op, unsigned nsrc, uint64_t count) {
    Request r;
    r.tag = static_cast<uint8_t>(tag_++);
    r.job.from = from;
    r.job.to = to;
    r.job.op = op;
    r.nsrc = nsrc;
    r.len = static_cast<uint32_t>(count / num::elements_of(to, num::length_unit(to, to)) *
                                  num::length_unit(to, to));
    return r;
  }
  Request request(wire::Dtype type, wire::Redop op, unsigned nsrc, uint64_t count) {
    return request(type, type, op, nsrc, count);
  }

  /// Puts the sources and the destination somewhere: the own source, the first of the others and the
  /// destination at these offsets, the stride at its least and up to `gap` elements more.
  void lay_out(Request& r, uint64_t own_at, uint64_t others_at, uint64_t dst_at, uint64_t gap = 40) {
    const uint64_t bytes = r.source_len();
    r.src0 = place(bytes, own_at);
    r.stride = static_cast<uint32_t>(bytes + rng_.below(gap + 1) * num::bytes_of(r.job.from));
    r.src1 = r.nsrc > 1 ? place(uint64_t{r.stride} * (r.nsrc - 1) + bytes, others_at) : rng_();
    r.dst = place(r.result_len(), dst_at);
  }
  void lay_out(Request& r) {
    const uint64_t from = num::bytes_of(r.job.from), to = num::bytes_of(r.job.to);
    lay_out(r, rng_.below(128 / from) * from, rng_.below(128 / from) * from, rng_.below(128 / to) * to);
  }

  /// A legal request of up to `longest` elements with regions of its own.
  Request any_request(uint64_t longest, unsigned most_sources = 5);
  /// The same of this type of source and result, any operation that there is.
  Request any_of(wire::Dtype from, wire::Dtype to, unsigned nsrc, uint64_t count);

  /// A request of length 0 with any codes and places in its fields, most of them refused.
  Request any_fields();

  /// Numbers that meet the rules of the type into the sources of r.
  void fill_operands(const Request& r);

  /// Runs all requests of the round to the end and compares memory.
  void run(const std::vector<Request>& requests) {
    for (const auto& r : requests) fill_operands(r);
    push(requests);
    step_until_idle();
    world_->compare();
  }
  void push(const std::vector<Request>& requests) {
    world_->expect_as_is();
    for (const auto& r : requests) {
      bench_.event("request tag %llu from, to, op, sources %llx len %llu dst %llx", r.tag,
                   static_cast<uint64_t>(r.job.from) << 24 | static_cast<uint64_t>(r.job.to) << 16 |
                       static_cast<uint64_t>(r.job.op) << 8 | r.nsrc,
                   r.len, r.dst);
      world_->push(r);
    }
  }
  void step() {
    world_->drive();
    bench_.eval();
    world_->look();
    if (world_->moved()) bench_.progress();
    bench_.tick();
  }
  void step_until_idle() {
    while (!world_->idle()) step();
  }

 private:
  /// Makes the request one for an exact sum now and then, if it may be.
  void maybe_exact(Request& r);
  template <class Type>
  void fill_floats(const Request& r, bool tame);
  void fill_blocks(const Request& r, bool tame);

  Bench<Dut> bench_;
  Rng rng_{seed(), 5};
  std::vector<Stall> stalls_;
  nmc::NmcSettings settings_;
  std::unique_ptr<World> world_;
  uint64_t free_ = 0;
  unsigned tag_ = 0;
};

/// Of two sources pairs that meet the rules of sums; of more any numbers, or such near 1, so that a long
/// fold does not end in NaN or infinity at once.
template <class Dut>
template <class Type>
void Fixture<Dut>::fill_floats(const Request& r, bool tame) {
  using Bits = typename Type::bits_type;
  for (uint64_t i = 0; i < r.source_len(); i += sizeof(Bits)) {
    if (r.nsrc == 2 && !tame) {
      const auto [a, b] = pair_of<Type>(rng_);
      std::memcpy(world_->at(r.source(0) + i), &a, sizeof a);
      std::memcpy(world_->at(r.source(1) + i), &b, sizeof b);
      continue;
    }
    for (unsigned k = 0; k < r.nsrc; ++k) {
      Bits x = float_of<Type>(rng_);
      if (tame) x = make_float<Type>(rng_(), Type::kBias - 3 + rng_.below(5), fraction_of<Type>(rng_));
      std::memcpy(world_->at(r.source(k) + i), &x, sizeof x);
    }
  }
}

template <class Dut>
void Fixture<Dut>::fill_operands(const Request& r) {
  if (nmc::verdict(r, settings_.parts) != wire::Err::OK || r.copies()) return;
  const bool tame = rng_.chance(r.nsrc > 2 ? 0.7 : 0.1);
  switch (r.job.from) {
    case wire::Dtype::FLOAT32: return fill_floats<num::Float32>(r, tame);
    case wire::Dtype::BFLOAT16: return fill_floats<num::Bfloat16>(r, tame);
    case wire::Dtype::FLOAT16: return fill_floats<num::Float16>(r, tame);
    case wire::Dtype::FLOAT8_E5M2: return fill_floats<num::Float8E5m2>(r, tame);
    case wire::Dtype::FLOAT8_E4M3: return fill_floats<num::Float8E4m3>(r, tame);
    case wire::Dtype::FLOAT64: return fill_floats<num::Float64>(r, tame);
    case wire::Dtype::MXFP8_E4M3:
    case wire::Dtype::MXFP8_E5M2:
    case wire::Dtype::MXFP4_E2M1: return fill_blocks(r, tame);
    default: return;  // integers stay random
  }
}

/// Scales near each other, or anywhere; tame elements are numbers.
template <class Dut>
void Fixture<Dut>::fill_blocks(const Request& r, bool tame) {
  const uint64_t bytes = num::footprint(r.job.from, num::kMxElements);
  for (uint64_t i = 0; i < r.source_len(); i += bytes) {
    const uint64_t near = rng_.below(4) == 0 ? rng_.below(8) : rng_.below(248);
    for (unsigned k = 0; k < r.nsrc; ++k) {
      uint8_t* const block = world_->at(r.source(k) + i);
      block[0] = static_cast<uint8_t>(tame               ? 124 + rng_.below(7)
                                      : rng_.chance(0.1) ? rng_()
                                                         : near + rng_.below(8));
      if (!tame || r.job.from == wire::Dtype::MXFP4_E2M1) continue;
      for (uint8_t& x : std::span(block + 1, bytes - 1)) {
        if ((x & 0x7c) == 0x7c) x &= 0xbf;
      }
    }
  }
}

/// A factor that floats of any type meet: anything, or a number near 1.
template <class Type>
uint64_t any_factor(Rng& rng) {
  if (rng.chance(0.3)) return float_of<Type>(rng);
  return make_float<Type>(0, Type::kBias - rng.below(7), fraction_of<Type>(rng));
}

template <class Dut>
nmc::NmcRequest Fixture<Dut>::any_of(wire::Dtype from, wire::Dtype to, unsigned nsrc, uint64_t count) {
  using enum wire::Redop;
  constexpr wire::Redop kFloatOps[] = {SUM, MAX, MIN, PROD, PREMUL_SUM, AVG, COPY};
  constexpr wire::Redop kIntOps[] = {SUM, MAX, MIN, PROD, PREMUL_SUM, AVG, AND, OR, XOR, COPY};
  constexpr wire::Redop kBlockOps[] = {SUM, MAX, MIN, COPY};
  const bool fp = num::kind_of(from) == num::Kind::Float;
  const bool blocks = num::kind_of(from) == num::Kind::Block || num::kind_of(to) == num::Kind::Block;
  const std::span<const wire::Redop> ops = blocks ? std::span<const wire::Redop>(kBlockOps)
                                           : fp   ? std::span<const wire::Redop>(kFloatOps)
                                                  : kIntOps;
  Request r = request(from, to, ops[rng_.below(ops.size() - (nsrc != 1))], nsrc, count);
  r.own = static_cast<unsigned>(rng_.below(nsrc));
  r.job.propagate_nan = (r.job.op == MAX || r.job.op == MIN) && rng_.chance(0.5);
  r.job.saturate = !blocks && (!fp || num::bytes_of(to) == 1) && rng_.chance(0.5);
  const bool wide = from == wire::Dtype::FLOAT64 || to == wire::Dtype::FLOAT64;
  r.job.scalar = num::divides(r.job) ? rng_.range(1, num::kMaxSources)
                 : !fp               ? rng_() >> rng_.below(64)
                 : wide              ? any_factor<num::Float64>(rng_)
                                     : any_factor<num::Float32>(rng_);
  maybe_exact(r);
  return r;
}

template <class Dut>
void Fixture<Dut>::maybe_exact(Request& r) {
  r.job.exact = true;
  r.job.exact = num::check(r.job, r.nsrc, r.own) == wire::Err::OK && rng_.chance(0.3);
}

template <class Dut>
nmc::NmcRequest Fixture<Dut>::any_fields() {
  Request r;
  r.tag = static_cast<uint8_t>(tag_++);
  r.job.from = static_cast<wire::Dtype>(rng_.below(28));
  r.job.to = rng_.chance(0.5) ? r.job.from : static_cast<wire::Dtype>(rng_.below(28));
  r.job.op = static_cast<wire::Redop>(rng_.below(11));
  r.job.propagate_nan = rng_.chance(0.2);
  r.job.saturate = rng_.chance(0.2);
  r.job.exact = rng_.chance(0.1);
  r.job.scalar = rng_.chance(0.7) ? rng_.below(70) : rng_();
  r.nsrc = static_cast<unsigned>(rng_.chance(0.5) ? rng_.below(4) : rng_.below(256));
  r.own = static_cast<unsigned>(rng_.below(4));
  const auto any = [&] { return rng_() << rng_.below(4); };
  r.src0 = any(), r.src1 = any(), r.dst = any(), r.stride = static_cast<uint32_t>(any());
  return r;
}

template <class Dut>
nmc::NmcRequest Fixture<Dut>::any_request(uint64_t longest, unsigned most_sources) {
  using enum wire::Redop;
  constexpr wire::Redop kOrder[] = {SUM, MAX, MIN};
  const auto any_from = [&](std::span<const wire::Dtype> types) { return types[rng_.below(types.size())]; };
  const unsigned nsrc = static_cast<unsigned>(rng_.chance(0.4) ? 2 : rng_.range(1, most_sources));
  const uint64_t count = rng_.below(longest + 1);
  Request r;
  switch (rng_.below(8)) {
    case 7: {
      const wire::Dtype block = any_from(kBlocks), other = any_from(kBesideBlocks);
      const uint64_t whole = count / num::kMxElements * num::kMxElements;
      const uint64_t which = rng_.below(3);
      r = any_of(which == 0 ? other : block, which == 1 ? other : block, nsrc, whole);
      break;
    }
    case 0: r = any_of(any_from(kInts), any_from(kInts), nsrc, count); break;
    case 1: {
      const wire::Dtype type = any_from(kInts);
      r = any_of(type, type, nsrc, count);
      break;
    }
    case 2: r = any_of(any_from(kFloats), any_from(kFloats), nsrc, count); break;
    default: {
      const wire::Dtype type = any_from(kFloats);
      r = any_of(type, type, nsrc, count);
      if (rng_.chance(0.7)) r.job.op = kOrder[rng_.below(3)], r.job.propagate_nan = false;
      maybe_exact(r);
    }
  }
  r.own = static_cast<unsigned>(rng_.below(r.nsrc));
  const uint64_t unit = num::bytes_of(r.job.to);
  const auto any = [&] { return rng_.below(128 / unit) * unit; };
  const uint64_t bytes = r.result_len();
  if (r.job.from == r.job.to) {
    switch (rng_.below(5)) {
      case 0:  // in place
        r.stride = static_cast<uint32_t>(bytes + rng_.below(20) * unit);
        r.src1 = place(uint64_t{r.stride} * (r.nsrc - 1) + bytes, any());
        r.dst = r.src0 = place(bytes, any());
        return r;
      case 1: {  // the own source lies above the destination and overlaps
        if (r.nsrc > 2) break;
        const uint64_t up = rng_.below(300 / unit) * unit;
        r.src1 = place(bytes, any());
        r.dst = place(bytes + up, any());
        r.src0 = r.dst + up;
        if (r.nsrc == 2 && r.own == 0) r.stride = 0;
        return r;
      }
      case 2:  // every other source is the same
        r.src0 = place(bytes, any());
        r.src1 = place(bytes, any());
        r.dst = place(bytes, any());
        return r;
      default: break;
    }
  }
  lay_out(r);
  return r;
}

}  // namespace weft::test
