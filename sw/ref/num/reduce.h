// SPDX-License-Identifier: Apache-2.0
//
// Whole reductions: what an entry of the reducer makes of 1 to 64 arrays of elements.
//
// Floats are converted to the accumulator A, binary32, or binary64 if the sources or the result are,
// which is exact. A sum or product is the left fold by index; each step is rounded to A, but the exact
// result of the last one is rounded once, to the type of the result. docs/numerics.md has all rules.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "exact.h"
#include "floats.h"
#include "integers.h"
#include "mx.h"

namespace weft::num {

inline constexpr unsigned kMaxSources = 64;

/// A reduction but for its data.
struct Job {
  wire::Dtype from{}, to{};  ///< types of the sources and of the result
  wire::Redop op{};
  bool propagate_nan = false;  ///< MAX, MIN: any NaN among the sources gives NaN
  bool saturate = false;       ///< a result out of range becomes the largest finite number
  bool exact = false;          ///< SUM of 16- and 8-bit floats: one rounding in all
  /// Factor of each source in AVG and PREMUL_SUM: a float of A, or an integer, in the low bits. Of AVG of
  /// integers what their sum is divided by, 1 to kMaxSources.
  uint64_t scalar = 0;
};

/// Whether the result is the bits of the one source.
constexpr bool copies(const Job& job, unsigned nsrc) {
  const bool scales = job.op == wire::Redop::AVG || job.op == wire::Redop::PREMUL_SUM;
  return job.from == job.to && nsrc == 1 && !scales;
}

/// Whether it is an average of integers: their sum, which wraps, divided by the scalar.
constexpr bool divides(const Job& job) {
  return job.op == wire::Redop::AVG && kind_of(job.from) == Kind::Integer;
}

/// Whether each source is multiplied by the scalar.
constexpr bool scales(const Job& job) {
  return job.op == wire::Redop::PREMUL_SUM || (job.op == wire::Redop::AVG && !divides(job));
}

/// What a reducer is built with: the parameters of weft_nmc. What it was built without is refused, but for
/// multipliers: with 2 for each 32-bit word sums of products with the scalar are as fast as sums.
struct Parts {
  bool products = true;  ///< PROD, AVG, PREMUL_SUM, but where they copy
  bool blocks = true;    ///< MX types
  unsigned exact = 2;    ///< exact sums: 0 none, 1 of float16 and 8-bit floats, 2 of bfloat16 too
  unsigned multipliers = 1;
};

/// Which reductions there are: the first thing wrong with one, looked for in this order, or OK.
/// Unknown codes may be asked about.
constexpr wire::Err check(const Job& job, unsigned nsrc, unsigned own, Parts parts = {}) {
  using wire::Err;
  using enum wire::Redop;
  const auto bit = [](wire::Redop op) { return 1u << static_cast<unsigned>(op); };
  const unsigned both = bit(SUM) | bit(MAX) | bit(MIN) | bit(COPY);
  const unsigned ops_of[] = {
      0,
      both | bit(PROD) | bit(PREMUL_SUM) | bit(AVG) | bit(AND) | bit(OR) | bit(XOR),  // Integer
      both | bit(PROD) | bit(PREMUL_SUM) | bit(AVG),                                  // Float
      both,                                                                           // Block
  };
  const Kind from = kind_of(job.from), to = kind_of(job.to);
  const bool narrow_float = to == Kind::Float && bytes_of(job.to) <= 2;

  // What blocks may become, and come from, beside themselves: float32, float16, bfloat16.
  const auto beside_block = [](Kind kind, wire::Dtype type) {
    return kind == Kind::Float && (bytes_of(type) == 2 || bytes_of(type) == 4);
  };
  const bool convertible = job.from == job.to || (from == to && from != Kind::Block) ||
                           (from == Kind::Block && beside_block(to, job.to)) ||
                           (to == Kind::Block && beside_block(from, job.from));
  if (from == Kind::Unknown || to == Kind::Unknown || !convertible) return Err::BAD_TYPE;
  if (!parts.blocks && (from == Kind::Block || to == Kind::Block)) return Err::BAD_TYPE;

  const Kind rules = to == Kind::Block ? to : from;
  if (job.op > COPY || (ops_of[static_cast<unsigned>(rules)] & bit(job.op)) == 0) return Err::BAD_REDOP;
  const bool product = job.op == PROD || job.op == AVG || job.op == PREMUL_SUM;
  if (product && !parts.products && !copies(job, nsrc)) return Err::BAD_REDOP;

  if (job.propagate_nan && job.op != MAX && job.op != MIN) return Err::BAD_FLAGS;
  if (job.saturate && to != Kind::Integer && !(narrow_float && bytes_of(job.to) == 1)) return Err::BAD_FLAGS;
  const bool has_exact = job.from == wire::Dtype::BFLOAT16 ? parts.exact > 1 : parts.exact > 0;
  if (job.exact && !(has_exact && job.op == SUM && narrow_float && job.from == job.to)) return Err::BAD_FLAGS;

  if (nsrc < 1 || nsrc > kMaxSources || own >= nsrc || (job.op == COPY && nsrc != 1)) return Err::BAD_SOURCES;
  if (divides(job) && (job.scalar < 1 || job.scalar > kMaxSources)) return Err::BAD_SOURCES;
  return Err::OK;
}

/// Bytes of memory of `count` elements; of MX types whole blocks, scales included.
constexpr size_t footprint(wire::Dtype type, size_t count) {
  switch (type) {
    case wire::Dtype::MXFP8_E4M3:
    case wire::Dtype::MXFP8_E5M2: return count / kMxElements * Mx<Float8E4m3>::kBytes;
    case wire::Dtype::MXFP4_E2M1: return count / kMxElements * Mx<Float4E2m1>::kBytes;
    default: return count * bytes_of(type);
  }
}

/// The length of an entry counts the bytes of the result's elements without scales. It has to be a multiple
/// of this: an element, or what 32 elements take if the sources or the result are blocks.
constexpr size_t length_unit(wire::Dtype from, wire::Dtype to) {
  if (to == wire::Dtype::MXFP4_E2M1) return Mx<Float4E2m1>::kElementBytes;
  const bool blocks = kind_of(from) == Kind::Block || kind_of(to) == Kind::Block;
  return bytes_of(to) * (blocks ? kMxElements : 1);
}

/// Elements in `length` bytes of a result.
constexpr size_t elements_of(wire::Dtype to, size_t length) {
  return to == wire::Dtype::MXFP4_E2M1 ? 2 * length : length / bytes_of(to);
}

namespace detail {

inline constexpr size_t kChunk = 4 * kMxElements;  // elements worked on at a time

// ---- floats: sources are loaded into arrays of A, folded there, and the last step writes the result

template <IsFloat A>
struct Loaded {
  typename A::bits_type x[kChunk];
};

template <IsFloat F>
typename F::bits_type element(const uint8_t* data, size_t i) {
  typename F::bits_type x;
  std::memcpy(&x, data + i * sizeof x, sizeof x);
  return x;
}

template <IsFloat A, IsFloat From>
void load(Loaded<A>& out, const uint8_t* data, size_t count, Flags&) {
  for (size_t i = 0; i < count; ++i) out.x[i] = convert<From, A>(element<From>(data, i));
}

template <IsFloat E>
void load_blocks(Loaded<Float32>& out, const uint8_t* data, size_t count, Flags& flags) {
  for (size_t i = 0; i < count; i += kMxElements, data += Mx<E>::kBytes) {
    Mx<E>::dequantise(std::span<const uint8_t, Mx<E>::kBytes>(data, Mx<E>::kBytes),
                      std::span<uint32_t, kMxElements>(out.x + i, kMxElements), &flags);
  }
}

// One step of the fold, in A.
enum class Step { Sum, Product, Max, Min, MaxNan, MinNan };

template <IsFloat A, Step kStep>
void fold(Loaded<A>& acc, const Loaded<A>& next, size_t count, Flags& flags) {
  Flags here;
  for (size_t i = 0; i < count; ++i) {
    const auto a = acc.x[i], b = next.x[i];
    if constexpr (kStep == Step::Sum) acc.x[i] = add<A>(a, b, &here);
    if constexpr (kStep == Step::Product) acc.x[i] = mul<A>(a, b, &here);
    if constexpr (kStep == Step::Max) acc.x[i] = maximum<A>(a, b);
    if constexpr (kStep == Step::Min) acc.x[i] = minimum<A>(a, b);
    if constexpr (kStep == Step::MaxNan) acc.x[i] = maximum<A>(a, b, true);
    if constexpr (kStep == Step::MinNan) acc.x[i] = minimum<A>(a, b, true);
  }
  flags |= here;
}

// The last step, rounded to the type of the result.
enum class Last { Sum, Product, Convert };

template <IsFloat A, IsFloat To, Last kLast, bool kSaturate>
void finish(uint8_t* data, const Loaded<A>& a, const Loaded<A>& b, size_t count, Flags& flags) {
  Flags here;
  for (size_t i = 0; i < count; ++i) {
    typename To::bits_type x;
    if constexpr (kLast == Last::Sum) x = add<A, To>(a.x[i], b.x[i], &here, kSaturate);
    if constexpr (kLast == Last::Product) x = mul<A, To>(a.x[i], b.x[i], &here, kSaturate);
    if constexpr (kLast == Last::Convert) x = convert<A, To>(a.x[i], &here, kSaturate);
    std::memcpy(data + i * sizeof x, &x, sizeof x);
  }
  flags |= here;
}

template <IsFloat E>
void finish_blocks(uint8_t* data, const Loaded<Float32>& a, const Loaded<Float32>&, size_t count,
                   Flags& flags) {
  for (size_t i = 0; i < count; i += kMxElements, data += Mx<E>::kBytes) {
    Mx<E>::quantise(std::span<const uint32_t, kMxElements>(a.x + i, kMxElements),
                    std::span<uint8_t, Mx<E>::kBytes>(data, Mx<E>::kBytes), &flags);
  }
}

// The functions of a reduction, chosen once.
template <IsFloat A>
struct FloatSteps {
  void (*load)(Loaded<A>&, const uint8_t*, size_t, Flags&);
  void (*fold)(Loaded<A>&, const Loaded<A>&, size_t, Flags&);
  void (*finish)(uint8_t*, const Loaded<A>&, const Loaded<A>&, size_t, Flags&);
};

template <IsFloat A>
auto choose_load(wire::Dtype from) -> decltype(FloatSteps<A>::load) {
  if constexpr (std::is_same_v<A, Float32>) {
    if (kind_of(from) == Kind::Block) {
      return with_block(from, [](auto e) { return &load_blocks<decltype(e)>; });
    }
  }
  return with_float(from, [](auto f) -> decltype(FloatSteps<A>::load) { return &load<A, decltype(f)>; });
}

template <IsFloat A>
auto choose_fold(const Job& job) -> decltype(FloatSteps<A>::fold) {
  switch (job.op) {
    case wire::Redop::PROD: return &fold<A, Step::Product>;
    case wire::Redop::MAX: return job.propagate_nan ? &fold<A, Step::MaxNan> : &fold<A, Step::Max>;
    case wire::Redop::MIN: return job.propagate_nan ? &fold<A, Step::MinNan> : &fold<A, Step::Min>;
    default: return &fold<A, Step::Sum>;
  }
}

template <IsFloat A, Last kLast>
auto choose_finish_of(const Job& job) -> decltype(FloatSteps<A>::finish) {
  return with_float(job.to, [&](auto f) -> decltype(FloatSteps<A>::finish) {
    using To = decltype(f);
    if constexpr (sizeof(typename To::bits_type) == 1) {
      if (job.saturate) return &finish<A, To, kLast, true>;
    }
    return &finish<A, To, kLast, false>;
  });
}

template <IsFloat A>
auto choose_finish(const Job& job, Last last) -> decltype(FloatSteps<A>::finish) {
  if constexpr (std::is_same_v<A, Float32>) {
    if (kind_of(job.to) == Kind::Block) {
      return with_block(job.to, [](auto e) { return &finish_blocks<decltype(e)>; });
    }
  }
  switch (last) {
    case Last::Sum: return choose_finish_of<A, Last::Sum>(job);
    case Last::Product: return choose_finish_of<A, Last::Product>(job);
    case Last::Convert: break;
  }
  return choose_finish_of<A, Last::Convert>(job);
}

template <IsFloat A>
Flags reduce_floats(const Job& job, uint8_t* dst, size_t count,
                    std::span<const std::span<const uint8_t>> sources) {
  const size_t n = sources.size();
  const bool scale_each = scales(job) && n > 1, scale_last = scales(job) && n == 1;
  // What the last step does. The numbers of a block are rounded to binary32 first.
  const bool folds_last = n > 1 && kind_of(job.to) != Kind::Block &&
                          (job.op == wire::Redop::SUM || job.op == wire::Redop::PROD || scales(job));
  const Last last = scale_last || (folds_last && job.op == wire::Redop::PROD) ? Last::Product
                    : folds_last                                              ? Last::Sum
                                                                              : Last::Convert;
  const FloatSteps<A> steps = {choose_load<A>(job.from), choose_fold<A>(job), choose_finish<A>(job, last)};
  Loaded<A> acc, next, scalar;
  if (scale_each || scale_last) std::fill_n(scalar.x, kChunk, static_cast<typename A::bits_type>(job.scalar));

  Flags flags;
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t some = count - first < kChunk ? count - first : kChunk;
    const size_t at = footprint(job.from, first);
    steps.load(acc, &sources[0][at], some, flags);
    if (scale_each) fold<A, Step::Product>(acc, scalar, some, flags);
    for (size_t k = 1; k < n; ++k) {
      steps.load(next, &sources[k][at], some, flags);
      if (scale_each) fold<A, Step::Product>(next, scalar, some, flags);
      if (k + 1 < n || !folds_last) steps.fold(acc, next, some, flags);
    }
    steps.finish(dst + footprint(job.to, first), acc,
                 scale_last   ? scalar
                 : folds_last ? next
                              : acc,
                 some, flags);
  }
  return flags;
}

template <IsFloat F>
Flags exact_sums(const Job& job, uint8_t* dst, size_t count,
                 std::span<const std::span<const uint8_t>> sources) {
  Flags flags;
  for (size_t i = 0; i < count; ++i) {
    ExactSum<F> sum;
    for (const auto& source : sources) sum.add(element<F>(source.data(), i));
    const typename F::bits_type x = sum.result(&flags, job.saturate);
    std::memcpy(dst + i * sizeof x, &x, sizeof x);
  }
  return flags;
}

// ---- integers: 64 bits whatever the type, since wrapping keeps the low bits right

template <IsInt F>
void load_ints(uint64_t* out, const uint8_t* data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    typename F::bits_type x;
    std::memcpy(&x, data + i * sizeof x, sizeof x);
    out[i] = extend<F>(x);
  }
}

// acc (of format A, in its low bits) by n, towards zero.
template <IsInt A>
void divide_ints(uint64_t* acc, size_t count, uint64_t n) {
  using Value = typename A::value_type;
  // Of 64 bits at least: there an int that is promoted, or a number below zero, divides as it should.
  using Broad = std::conditional_t<std::is_signed_v<Value>, int64_t, uint64_t>;
  for (size_t i = 0; i < count; ++i) {
    acc[i] = static_cast<uint64_t>(Broad{static_cast<Value>(acc[i])} / static_cast<Broad>(n));
  }
}

// acc (of format A, in its low bits) to the result's type.
template <IsInt A, IsInt To>
void finish_ints(uint8_t* data, const uint64_t* acc, size_t count, bool saturate, Flags& flags) {
  for (size_t i = 0; i < count; ++i) {
    const auto x = convert<A, To>(static_cast<typename A::bits_type>(acc[i]), &flags, saturate);
    std::memcpy(data + i * sizeof x, &x, sizeof x);
  }
}

inline void fold_ints(wire::Redop op, bool is_signed, uint64_t* acc, const uint64_t* next, size_t count) {
  const auto each = [&](auto step) {
    for (size_t i = 0; i < count; ++i) acc[i] = step(acc[i], next[i]);
  };
  using enum wire::Redop;
  switch (op) {
    case PROD: return each(mul<Uint64>);
    case AND: return each([](uint64_t a, uint64_t b) { return a & b; });
    case OR: return each([](uint64_t a, uint64_t b) { return a | b; });
    case XOR: return each([](uint64_t a, uint64_t b) { return a ^ b; });
    case MAX: return is_signed ? each(maximum<Int64>) : each(maximum<Uint64>);
    case MIN: return is_signed ? each(minimum<Int64>) : each(minimum<Uint64>);
    default: return each(add<Uint64>);
  }
}

inline Flags reduce_ints(const Job& job, uint8_t* dst, size_t count,
                         std::span<const std::span<const uint8_t>> sources) {
  const auto load = with_int(job.from, [](auto f) { return &load_ints<decltype(f)>; });
  const bool is_signed =
      with_int(job.from, [](auto f) { return std::is_signed_v<typename decltype(f)::value_type>; });
  // The accumulator: as wide as the wider type, with the signedness of the sources.
  const unsigned from = static_cast<unsigned>(job.from), wider = static_cast<unsigned>(job.to) & 3;
  const auto width = static_cast<wire::Dtype>((from & ~3u) | (wider > (from & 3) ? wider : from & 3));
  const auto divide = with_int(width, [](auto a) { return &divide_ints<decltype(a)>; });
  const auto finish = with_int(width, [&](auto a) {
    return with_int(job.to, [](auto t) { return &finish_ints<decltype(a), decltype(t)>; });
  });
  Flags flags;
  uint64_t acc[kChunk], next[kChunk];
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t some = count - first < kChunk ? count - first : kChunk, at = first * bytes_of(job.from);
    for (size_t k = 0; k < sources.size(); ++k) {
      uint64_t* const to = k == 0 ? acc : next;
      load(to, &sources[k][at], some);
      if (job.op == wire::Redop::PREMUL_SUM) {
        for (size_t i = 0; i < some; ++i) to[i] *= job.scalar;
      }
      if (k > 0) fold_ints(job.op, is_signed, acc, next, some);
    }
    if (divides(job)) divide(acc, some, job.scalar);
    finish(dst + first * bytes_of(job.to), acc, some, job.saturate, flags);
  }
  return flags;
}

}  // namespace detail

/// dst = the reduction of `sources` by index; check() has to have said OK. Little-endian, any alignment;
/// dst is a multiple of length_unit(), scales added, and each source has as many elements. dst may be
/// a source of the same type, but not overlap one otherwise. Returns what any element raised.
inline Flags reduce(const Job& job, std::span<uint8_t> dst,
                    std::span<const std::span<const uint8_t>> sources) {
  static_assert(std::endian::native == std::endian::little);
  assert(check(job, static_cast<unsigned>(sources.size()), 0) == wire::Err::OK);
  if (dst.empty()) return {};
  if (copies(job, static_cast<unsigned>(sources.size()))) {  // NaNs too
    std::memmove(dst.data(), sources[0].data(), dst.size());
    return {};
  }
  // Elements: those of the sources, since a destination's size includes scales.
  size_t count = sources[0].size();
  switch (kind_of(job.from)) {
    case Kind::Block: count = count / footprint(job.from, kMxElements) * kMxElements; break;
    default: count /= bytes_of(job.from);
  }
  assert(footprint(job.to, count) == dst.size());
  for ([[maybe_unused]] const auto& s : sources) assert(s.size() == sources[0].size());

  if (kind_of(job.from) == Kind::Integer) return detail::reduce_ints(job, dst.data(), count, sources);
  if (job.exact) {
    switch (job.to) {
      case wire::Dtype::FLOAT16: return detail::exact_sums<Float16>(job, dst.data(), count, sources);
      case wire::Dtype::BFLOAT16: return detail::exact_sums<Bfloat16>(job, dst.data(), count, sources);
      case wire::Dtype::FLOAT8_E4M3: return detail::exact_sums<Float8E4m3>(job, dst.data(), count, sources);
      default: return detail::exact_sums<Float8E5m2>(job, dst.data(), count, sources);
    }
  }
  if (job.from == wire::Dtype::FLOAT64 || job.to == wire::Dtype::FLOAT64) {
    return detail::reduce_floats<Float64>(job, dst.data(), count, sources);
  }
  return detail::reduce_floats<Float32>(job, dst.data(), count, sources);
}

/// dst = src0 op src1 of one type, SUM, MAX or MIN.
inline Flags reduce(wire::Dtype type, wire::Redop op, std::span<uint8_t> dst, std::span<const uint8_t> src0,
                    std::span<const uint8_t> src1) {
  const std::array<std::span<const uint8_t>, 2> sources = {src0, src1};
  return reduce(Job{.from = type, .to = type, .op = op}, dst, sources);
}

}  // namespace weft::num
