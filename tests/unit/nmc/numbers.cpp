// SPDX-License-Identifier: Apache-2.0
//
// The reference arithmetic as a shared library, for tests in Python: whole reductions, and a loop that
// compares two-element arithmetic with functions of the C library SoftFloat, handed over as pointers,
// at some ten million cases a second.
#include <cstdint>
#include <span>
#include <vector>

#include "nmc_cases.h"

using namespace weft;
using num::Flags;
using test::Broken;
using wire::Redop;

namespace {

num::Job job_of(uint8_t from, uint8_t to, uint8_t op, unsigned modes, uint64_t scalar) {
  return {.from = static_cast<wire::Dtype>(from),
          .to = static_cast<wire::Dtype>(to),
          .op = static_cast<Redop>(op),
          .propagate_nan = (modes & 1) != 0,
          .saturate = (modes & 2) != 0,
          .exact = (modes & 4) != 0,
          .scalar = scalar};
}

unsigned bits_of(const Flags& f) {
  return f.invalid | f.overflow << 1 | f.inexact << 2;
}

// SoftFloat's flags, of which ours are three.
constexpr uint8_t kSoftInexact = 1, kSoftOverflow = 4, kSoftInvalid = 16;

struct Soft {
  void* function;
  void* second;    // bfloat16: the conversion behind the binary32 sum; MAX, MIN: equal
  uint8_t* flags;  // softfloat_exceptionFlags
};

struct Fault {
  uint64_t a, b, got, want;
  uint32_t got_flags, want_flags;
};

template <class F>
constexpr bool is_signaling(typename F::bits_type x) {
  return F::is_nan(x) && (x & F::kHidden >> 1) == 0;
}

template <class F>
constexpr typename F::bits_type canonical(typename F::bits_type x) {
  return F::is_nan(x) ? F::kNan : x;
}

template <class F, class To>
typename To::bits_type call(void* function, typename F::bits_type x) {
  return reinterpret_cast<typename To::bits_type (*)(typename F::bits_type)>(function)(x);
}
template <class F>
typename F::bits_type call(void* function, typename F::bits_type a, typename F::bits_type b) {
  return reinterpret_cast<typename F::bits_type (*)(typename F::bits_type, typename F::bits_type)>(function)(
      a, b);
}
template <class F>
bool ask(void* function, typename F::bits_type a, typename F::bits_type b) {
  return reinterpret_cast<bool (*)(typename F::bits_type, typename F::bits_type)>(function)(a, b);
}

Flags flags_of(uint8_t soft, bool signaling) {
  // To us every NaN is quiet.
  return {(soft & kSoftInvalid) != 0 && !signaling, (soft & kSoftOverflow) != 0, (soft & kSoftInexact) != 0};
}

// What SoftFloat says of a op b.
template <class F>
typename F::bits_type expected(const Soft& soft, Redop op, typename F::bits_type a, typename F::bits_type b) {
  if (op == Redop::MAX || op == Redop::MIN) {
    if (F::is_nan(a) || F::is_nan(b)) return F::is_nan(a) ? canonical<F>(b) : a;
    const bool equal = ask<F>(soft.second, a, b), less = ask<F>(soft.function, a, b);
    const bool a_below = less || (equal && F::negative(a) && !F::negative(b));
    return a_below == (op == Redop::MAX) ? b : a;
  }
  if constexpr (std::is_same_v<F, num::Bfloat16>) {
    // By binary32, which rounds twice without harm: 24 bits are at least 2 x 8 + 2.
    const uint32_t wide = call<num::Float32>(soft.function, uint32_t{a} << 16, uint32_t{b} << 16);
    return canonical<F>(call<num::Float32, F>(soft.second, wide));
  } else {
    return canonical<F>(call<F>(soft.function, a, b));
  }
}

template <class F>
uint64_t compare_pairs(const Soft& soft, Redop op, uint64_t seed, uint64_t first, uint64_t count,
                       Broken broken, Fault* fault) {
  using Bits = typename F::bits_type;
  test::Rng rng(seed, 100 + static_cast<uint64_t>(op));
  uint64_t wrong = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    test::Pair<F> pair;
    if (seed == 0) {  // all pairs, in order
      pair = {static_cast<Bits>(i), static_cast<Bits>(i >> 4 * sizeof(Bits) >> 4 * sizeof(Bits))};
    } else {
      pair = op == Redop::PROD ? test::factors_of<F>(rng) : test::pair_of<F>(rng);
    }
    const auto [a, b] = pair;
    Flags got_flags;
    Bits got = 0;
    if (op == Redop::SUM) got = num::add<F>(a, b, &got_flags);
    if (op == Redop::PROD) got = num::mul<F>(a, b, &got_flags);
    if (op == Redop::MAX) got = num::maximum<F>(a, b);
    if (op == Redop::MIN) got = num::minimum<F>(a, b);
    if (broken != Broken::None) got = test::Mutant<F>::apply(broken, op, a, b);
    *soft.flags = 0;
    const Bits want = expected<F>(soft, op, a, b);
    const Flags want_flags = op == Redop::MAX || op == Redop::MIN
                                 ? Flags{}
                                 : flags_of(*soft.flags, is_signaling<F>(a) || is_signaling<F>(b));
    if (got == want && got_flags == want_flags) continue;
    if (wrong++ == 0) *fault = {a, b, got, want, bits_of(got_flags), bits_of(want_flags)};
  }
  return wrong;
}

template <class From, class To>
uint64_t compare_conversions(const Soft& soft, uint64_t seed, uint64_t first, uint64_t count, bool broken,
                             Fault* fault) {
  using Bits = typename From::bits_type;
  test::Rng rng(seed, 200);
  uint64_t wrong = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    const Bits x = seed == 0 ? static_cast<Bits>(i) : test::convertible_of<From, To>(rng);
    Flags got_flags;
    const auto got = num::convert<From, To>(broken ? static_cast<Bits>(x & ~Bits{1}) : x, &got_flags);
    *soft.flags = 0;
    const auto want = canonical<To>(call<From, To>(soft.function, x));
    const Flags want_flags = flags_of(*soft.flags, is_signaling<From>(x));
    if (got == want && got_flags == want_flags) continue;
    if (wrong++ == 0) *fault = {x, 0, got, want, bits_of(got_flags), bits_of(want_flags)};
  }
  return wrong;
}

}  // namespace

extern "C" {

/// num::check(); `modes`: propagate_nan 1, saturate 2, exact 4.
uint8_t numbers_check(uint8_t from, uint8_t to, uint8_t op, unsigned modes, unsigned nsrc, unsigned own,
                      bool has_exact) {
  return static_cast<uint8_t>(
      num::check(job_of(from, to, op, modes, 2), nsrc, own, num::Parts{.exact = has_exact ? 2u : 0u}));
}

/// num::reduce() of sources that lie one behind the other; returns invalid 1, overflow 2, inexact 4.
unsigned numbers_reduce(uint8_t from, uint8_t to, uint8_t op, unsigned modes, uint64_t scalar, unsigned nsrc,
                        const uint8_t* sources, size_t source_bytes, uint8_t* dst, size_t dst_bytes) {
  std::vector<std::span<const uint8_t>> spans;
  for (unsigned k = 0; k < nsrc; ++k) spans.emplace_back(sources + k * source_bytes, source_bytes);
  return bits_of(num::reduce(job_of(from, to, op, modes, scalar), {dst, dst_bytes}, spans));
}

/// Compares `count` cases of op with SoftFloat and returns how many differ, the first one in `fault`. seed 0:
/// all cases in order, from `first` on; else directed and random ones. `broken`: a test::Broken.
uint64_t numbers_compare(uint8_t type, uint8_t op, Soft soft, uint64_t seed, uint64_t first, uint64_t count,
                         unsigned broken, Fault* fault) {
  return num::with_float(static_cast<wire::Dtype>(type), [&](auto format) -> uint64_t {
    using F = decltype(format);
    return compare_pairs<F>(soft, static_cast<Redop>(op), seed, first, count, static_cast<Broken>(broken),
                            fault);
  });
}

/// The same for the conversion of a float type to another.
uint64_t numbers_convert(uint8_t from, uint8_t to, Soft soft, uint64_t seed, uint64_t first, uint64_t count,
                         bool broken, Fault* fault) {
  return num::with_float(static_cast<wire::Dtype>(from), [&](auto f) -> uint64_t {
    return num::with_float(static_cast<wire::Dtype>(to), [&](auto t) -> uint64_t {
      return compare_conversions<decltype(f), decltype(t)>(soft, seed, first, count, broken, fault);
    });
  });
}

}  // extern "C"
