// SPDX-License-Identifier: Apache-2.0
//
// How long the reducer takes for a request (docs/nmc.md), by what it works on alone: its steps, what its
// passes wait for the lanes, and how late the lanes are. The model of the engine charges this, the
// benchmark prints it beside what it measures, and tests hold the RTL to it.
//
// Left out is what comes once for a pass over a chunk of 32 steps: the step more of a source that is turned,
// and up to 6 cycles behind products; what a request waits behind one of another class, up to 20 cycles; and
// memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sw/ref/numerics.h"

namespace weft::nmc {

inline constexpr std::uint64_t kBeatBytes = 128;  ///< of a source or result in a step, at most
inline constexpr std::uint64_t kChunkSteps = 32;  ///< of a source, before the next one's turn

namespace detail {

constexpr bool has(const num::Job& job, wire::Dtype type) {
  return job.from == type || job.to == type;
}
constexpr bool has(const num::Job& job, num::Kind kind) {
  return num::kind_of(job.from) == kind || num::kind_of(job.to) == kind;
}
constexpr bool fp64(const num::Job& job) {
  return has(job, wire::Dtype::FLOAT64);
}
/// Bytes of the integers that a job adds up.
constexpr unsigned int_bytes(const num::Job& job) {
  return static_cast<unsigned>(std::max(num::bytes_of(job.from), num::bytes_of(job.to)));
}

/// Whether the exponents of `to` reach less far than those of `from`, so that a sum in the layout of
/// `from` cannot be rounded to it. Blocks count as binary32.
constexpr bool needs_convert(wire::Dtype from, wire::Dtype to) {
  const auto exponent_bits = [](auto format) { return decltype(format)::kExp; };
  return num::with_float(from, exponent_bits) > num::with_float(to, exponent_bits);
}

/// Whether what a fold makes goes on to a second array of lanes: to be converted, or made a block of.
constexpr bool second(const num::Job& job, unsigned nsrc) {
  if (num::kind_of(job.from) == num::Kind::Integer || fp64(job) || num::copies(job, nsrc)) return false;
  if (num::kind_of(job.to) == num::Kind::Block) return true;
  return nsrc != 1 && !num::scales(job) && job.op != wire::Redop::PROD && needs_convert(job.from, job.to);
}

}  // namespace detail

/// Steps that each source of `length` bytes of result (scales not counted) is cut into. A native step takes
/// 128 bytes; else it takes 32 elements, 16 with an integer of 64 bits on either side and of averages of
/// integers, 8 with fp64 and of exact sums of bf16; where there are blocks, one.
constexpr std::uint64_t windows(const num::Job& job, unsigned nsrc, std::uint64_t length) {
  using enum wire::Dtype;
  const std::uint64_t elements = num::elements_of(job.to, length);
  const bool copies = num::copies(job, nsrc);
  const bool native = copies || (job.from == job.to && job.op != wire::Redop::PROD && !num::scales(job) &&
                                 !num::divides(job) && !job.exact && !detail::fp64(job) &&
                                 !detail::has(job, num::Kind::Block));
  const std::uint64_t size = native ? num::footprint(job.to, elements) : elements;
  const bool long_int = detail::has(job, INT64) || detail::has(job, UINT64);
  const std::uint64_t step = native                                                     ? kBeatBytes
                             : detail::fp64(job) || (job.exact && job.from == BFLOAT16) ? 8
                             : long_int || num::divides(job)                            ? 16
                                                                                        : 32;
  return (size + step - 1) / step;
}

/// Passes over these, each of as many steps:
///
///   K - 1            SUM, MAX, MIN, PROD, AND, OR, XOR; all of integers but AVG; K = 1: 1
///   K                PREMUL_SUM and AVG of floats, one more if fp32 cannot be rounded to the result; with
///   two
///                    multipliers a word K - 1
///   fp64 on either side: one more if a sum of the sources cannot be rounded to the result;
///     PREMUL_SUM and AVG 2 K - 1 and the one more
///   AVG of integers: K - 1 (K = 1: 1), one for each byte of what they are added up in, and 1
constexpr unsigned passes(const num::Job& job, unsigned nsrc, num::Parts parts = {}) {
  using enum wire::Redop;
  if (num::divides(job)) return std::max(nsrc - 1, 1u) + detail::int_bytes(job) + 1;
  if (nsrc == 1) return 1;
  const bool wide = detail::fp64(job);
  if (num::kind_of(job.from) == num::Kind::Integer) return nsrc - 1;
  if (num::scales(job) && (wide || parts.multipliers == 1)) {
    const wire::Dtype product = wide ? wire::Dtype::FLOAT64 : wire::Dtype::FLOAT32;
    return (wide ? 2 * nsrc - 1 : nsrc) + detail::needs_convert(product, job.to);
  }
  if (!wide) return nsrc - 1;
  return nsrc - 1 + (job.op != PROD && detail::needs_convert(job.from, job.to));
}

/// Steps of a request in all, one a cycle.
constexpr std::uint64_t steps(const num::Job& job, unsigned nsrc, std::uint64_t length,
                              num::Parts parts = {}) {
  return windows(job, nsrc, length) * passes(job, nsrc, parts);
}

/// The same with what the passes of a short request wait: a pass uses the results of the one before, so it
/// begins no earlier than the lanes have them.
constexpr std::uint64_t busy_cycles(const num::Job& job, unsigned nsrc, std::uint64_t length,
                                    num::Parts parts = {}) {
  const bool fp64 = detail::fp64(job), floats = num::kind_of(job.from) == num::Kind::Float;
  // From a step to one that uses its result; in PREMUL_SUM of fp64 products and sums take turns.
  std::uint64_t again = fp64 ? 13 : 11, other = again;
  if (floats && job.op == wire::Redop::PROD) again = other = fp64 ? 19 : 16;
  if (fp64 && num::scales(job)) other = 19;
  // Blocks come 3 cycles later, but what a second array goes on with is behind the first one as soon as ever.
  if (num::kind_of(job.from) == num::Kind::Block && !detail::second(job, nsrc)) again = other = 14;
  if (job.exact) again = other = 4;
  const std::uint64_t once = windows(job, nsrc, length);
  if (once == 0) return 0;
  // Two passes over all chunks. Of the last 33 to 48 windows one chunk is 16; see weft_nmc_pass.
  const auto twice = [&](std::uint64_t n) { return std::max(n, again) + std::max(n, other); };
  constexpr std::uint64_t kHalf = kChunkSteps / 2;
  const std::uint64_t full = once <= kChunkSteps + kHalf ? 0 : (once - kHalf - 1) / kChunkSteps;
  const std::uint64_t left = once - full * kChunkSteps;
  const auto in_chunks = [&](auto take) {
    return full * take(kChunkSteps) + (left > kChunkSteps ? take(kHalf) + take(left - kHalf) : take(left));
  };
  if (num::divides(job)) {
    const auto sum = [&](std::uint64_t n) { return std::max(n, again); };
    const auto divide = [](std::uint64_t n) { return std::max<std::uint64_t>(n, 12); };
    return std::max(nsrc - 1, 1u) * in_chunks(sum) + detail::int_bytes(job) * in_chunks(divide) + once;
  }
  const std::uint64_t all = (passes(job, nsrc, parts) - 1) * in_chunks(twice) / 2 + once;
  // The conversion behind a PREMUL_SUM waits in each chunk until the last of it is there.
  const bool converts = floats && passes(job, nsrc, parts) == nsrc + 1 && !fp64;
  return converts ? all + 13 * ((once + kChunkSteps - 1) / kChunkSteps) : all;
}

/// Cycles from the last step, when the beats it needs are there, to its result on the write channel.
constexpr unsigned latency(const num::Job& job, unsigned nsrc, num::Parts parts = {}) {
  using enum wire::Redop;
  using enum wire::Dtype;
  constexpr unsigned kSum = 14, kProduct = 19;
  // Behind a sum, on the way to a second array of lanes, lies the search for a block's scale.
  constexpr unsigned kBetween = 4, kLanes = 8, kMulLanes = 13, kBlockIn = 3, kBlockOut = 1;
  if (num::copies(job, nsrc) || num::kind_of(job.from) == num::Kind::Integer) return kSum;
  if (job.exact) return kSum + 1;
  const bool scales = num::scales(job), one = nsrc == 1;
  if (detail::fp64(job)) {
    const bool product = one ? scales : job.op == PROD;  // the last pass
    return product ? 22 : 16;
  }
  if (one ? scales : job.op == PROD) return kProduct;
  if (scales) {
    const bool converts = detail::needs_convert(FLOAT32, job.to);
    if (parts.multipliers == 2) return kProduct + kLanes + (converts ? kLanes : 0);
    return converts ? kSum : kProduct + kLanes;
  }
  const unsigned first = kSum + (num::kind_of(job.from) == num::Kind::Block ? kBlockIn : 0);
  if (num::kind_of(job.to) == num::Kind::Block) return first + kBetween + kMulLanes + kBlockOut;
  if (!detail::second(job, nsrc)) return first;
  return first + kBetween + kLanes;
}

}  // namespace weft::nmc
