// SPDX-License-Identifier: Apache-2.0
//
// The floating-point lanes, each build in each type, against the reference arithmetic: steps of two
// sources, conversions and products, and whole reductions of up to 64 sources in which the bench is
// the accumulator.
#include <memory>
#include <span>
#include <vector>

#include "Vfloat_byte.h"
#include "Vfloat_convert.h"
#include "Vfloat_half.h"
#include "Vfloat_products.h"
#include "Vfloat_wide.h"
#include "float_lanes.h"
#include "nmc_cases.h"

using namespace weft;
using test::Broken;
using test::FloatCmd;
using test::FloatOp;
using test::FloatStep;
using test::Fmt;
using test::kFmt;
using test::kLanes;
using test::Rng;
using test::Words;
using wire::Redop;

namespace {

using Wide = test::FloatLanes<Vfloat_wide, 32>;
using Half = test::FloatLanes<Vfloat_half, 32, true>;
using Byte = test::FloatLanes<Vfloat_byte, 8>;
using Products = test::FloatLanes<Vfloat_products, 32>;  // with the scalar, nothing else
using Converts = test::FloatLanes<Vfloat_convert, 32>;   // the same, of fp32

template <class F>
constexpr uint32_t kMask = test::at_top<F>(static_cast<typename F::bits_type>(~0ull));
template <class F>
constexpr uint32_t kBelow = ~kMask<F>;  // of a word, below an element at its top
template <class F>
constexpr bool kEight = sizeof(typename F::bits_type) == 1;

/// Whether the last step of a sum of From has to leave the rounding to a conversion behind it.
template <class From, class To>
constexpr bool kNeedsConvert = To::kBias < From::kBias;

FloatOp op_of(Redop op) {
  return op == Redop::SUM   ? FloatOp::Sum
         : op == Redop::MAX ? FloatOp::Max
         : op == Redop::MIN ? FloatOp::Min
                            : FloatOp::Mul;
}

/// One step of two sources, as the reference says.
template <class From, class To>
typename To::bits_type step(const FloatCmd& cmd, typename From::bits_type a, typename From::bits_type b,
                            num::Flags* flags) {
  switch (cmd.op) {
    case FloatOp::Sum: return num::add<From, To>(a, b, flags, cmd.saturate);
    case FloatOp::Max:
      return num::convert<From, To>(num::maximum<From>(a, b, cmd.propagate_nan), flags, cmd.saturate);
    case FloatOp::Min:
      return num::convert<From, To>(num::minimum<From>(a, b, cmd.propagate_nan), flags, cmd.saturate);
    case FloatOp::Mul:
      return num::mul<num::Float32, To>(num::convert<From, num::Float32>(a),
                                        num::convert<From, num::Float32>(b), flags, cmd.saturate);
    case FloatOp::Convert: break;
  }
  return num::convert<From, To>(a, flags, cmd.saturate);
}

/// Runs `steps` steps of operands that next() gives; model(cmd, a, b, &flags) is the right result.
template <class From, class To, class Lanes, class Next, class Model>
void run(Lanes& lanes, const FloatCmd& fixed, uint64_t steps, Rng& rng, Next next, Model model) {
  FloatStep s;
  s.cmd = fixed;
  s.cmd.from = kFmt<From>;
  s.cmd.to = kFmt<To>;
  s.mask = kMask<To>;
  for (uint64_t n = 0; n < steps; ++n) {
    const uint64_t r = rng();
    s.flags = {};
    s.cmd.saturate = fixed.saturate && (r & 1);
    s.cmd.propagate_nan = fixed.propagate_nan && (r & 2);
    s.live = (r & 12) == 0 ? static_cast<uint32_t>(rng()) : ~0u;
    const uint32_t junk = static_cast<uint32_t>(r >> 32) & kBelow<From>;
    for (unsigned i = 0; i < kLanes; ++i) {
      const auto [a, b] = next();
      num::Flags flags;
      s.a[i] = test::at_top<From>(a) | junk;
      s.b[i] = test::at_top<From>(b) | junk;
      s.want[i] = test::at_top<To>(model(s.cmd, a, b, &flags));
      if ((s.live >> i & 1) != 0) s.flags |= flags;
    }
    lanes.push(s);
  }
}

/// What every correct run ends with.
template <class Lanes>
void check(Lanes& lanes) {
  lanes.drain();
  CHECK(lanes.wrong() == 0);
  CHECK(lanes.wrong_flags() == 0);
}

/// Sum, max and min of pairs made to meet their rules.
template <class From, class To, class Lanes>
void two_sources(Lanes& lanes, uint64_t steps) {
  Rng rng(test::seed(), 20 + static_cast<uint64_t>(kFmt<From>));
  for (FloatOp op : {FloatOp::Sum, FloatOp::Max, FloatOp::Min}) {
    const FloatCmd cmd{.op = op, .propagate_nan = op != FloatOp::Sum, .saturate = kEight<To>};
    run<From, To>(
        lanes, cmd, op == FloatOp::Sum ? steps : steps / 4, rng, [&] { return test::pair_of<From>(rng); },
        step<From, To>);
  }
}

/// Every pair of an 8-bit type.
template <class F, class Lanes>
void all_pairs(Lanes& lanes) {
  Rng rng(test::seed(), 30);
  for (FloatOp op : {FloatOp::Sum, FloatOp::Max, FloatOp::Min}) {
    for (bool flag : {false, true}) {
      uint32_t n = 0;
      // Set for all steps: run() draws flags it may set, so each pair is met with and without.
      const FloatCmd cmd{.op = op, .propagate_nan = flag && op != FloatOp::Sum, .saturate = flag};
      for (unsigned again = 0; again < (flag ? 3u : 1u); ++again) {
        run<F, F>(
            lanes, cmd, 65536 / kLanes, rng,
            [&] {
              const uint32_t x = n++;
              return test::Pair<F>{static_cast<uint8_t>(x), static_cast<uint8_t>(x >> 8)};
            },
            step<F, F>);
      }
    }
  }
}

template <class From, class To, class Lanes>
void conversions(Lanes& lanes, uint64_t steps) {
  Rng rng(test::seed(), 40);
  for (bool saturate : {false, true}) {
    if (saturate && !kEight<To>) break;
    const FloatCmd cmd{.op = FloatOp::Convert, .saturate = saturate};
    const auto junk = [&] { return static_cast<typename From::bits_type>(rng()); };  // b is not looked at
    if constexpr (sizeof(typename From::bits_type) <= 2) {
      constexpr uint32_t kAll = 1u << (8 * sizeof(typename From::bits_type));
      for (unsigned again = 0; again < (saturate ? 4u : 1u); ++again) {
        uint32_t n = 0;
        run<From, To>(
            lanes, cmd, kAll / kLanes, rng,
            [&] {
              return test::Pair<From>{static_cast<typename From::bits_type>(n++), junk()};
            },
            step<From, To>);
      }
    } else {
      run<From, To>(
          lanes, cmd, steps, rng,
          [&] {
            return test::Pair<From>{test::convertible_of<From, To>(rng), junk()};
          },
          step<From, To>);
    }
  }
}

template <class From, class To>
void products(Wide& lanes, uint64_t steps) {
  Rng rng(test::seed(), 50);
  run<From, To>(
      lanes, {.op = FloatOp::Mul, .saturate = kEight<To>}, steps, rng,
      [&] { return test::factors_of<From>(rng); }, step<From, To>);
}

/// Products with the scalar, on their way to a sum; many of them where numbers end, below and above.
template <class From, class Lanes>
void scaled(Lanes& lanes, uint64_t steps) {
  using num::Float32;
  Rng rng(test::seed(), 57);
  FloatStep s;
  s.cmd = {.op = FloatOp::Mul, .from = kFmt<From>, .to = Fmt::Fp32, .scalar = true, .to_acc = true};
  s.mask = kMask<Float32>;
  for (uint64_t n = 0; n < steps; ++n) {
    const uint64_t exponent = rng.below(3) == 0 ? rng.below(40) : rng.below(256);
    s.scalar = rng.below(4) == 0
                   ? test::float_of<Float32>(rng)
                   : test::make_float<Float32>(rng(), exponent, test::fraction_of<Float32>(rng));
    s.live = rng.below(4) == 0 ? static_cast<uint32_t>(rng()) : ~0u;
    s.flags = {};
    for (unsigned i = 0; i < kLanes; ++i) {
      auto x = test::float_of<From>(rng);
      if (rng.below(2)) {
        // So that the exponents add up to about that of the smallest normal number, or the largest one.
        const int64_t sum = rng.below(4) ? static_cast<int64_t>(rng.below(32)) - 27
                                         : 253 + static_cast<int64_t>(rng.below(4));
        const int64_t field = sum + From::kBias - static_cast<int64_t>(exponent);
        if (field >= 0 && field < (1 << From::kExp) - 1) {
          x = test::make_float<From>(rng(), static_cast<uint64_t>(field), test::fraction_of<From>(rng));
        }
      }
      num::Flags flags;
      s.a[i] = test::at_top<From>(x);
      s.b[i] = static_cast<uint32_t>(rng());  // not looked at
      s.want[i] = num::mul<Float32, Float32>(num::convert<From, Float32>(x), s.scalar, &flags);
      if ((s.live >> i & 1) != 0) s.flags |= flags;
    }
    lanes.push(s);
  }
}

/// Conversions of what is late.
template <class To, class Lanes>
void late_conversions(Lanes& lanes, uint64_t steps) {
  Rng rng(test::seed(), 58);
  FloatStep s;
  s.late = true;
  s.mask = kMask<To>;
  for (uint64_t n = 0; n < steps; ++n) {
    s.cmd = {
        .op = FloatOp::Convert, .from = Fmt::Fp32, .to = kFmt<To>, .saturate = kEight<To> && rng.below(2)};
    s.flags = {};
    for (unsigned i = 0; i < kLanes; ++i) {
      s.other[i] = test::convertible_of<num::Float32, To>(rng);
      s.a[i] = s.b[i] = static_cast<uint32_t>(rng());  // not looked at
      s.want[i] = test::at_top<To>(num::convert<num::Float32, To>(s.other[i], &s.flags, s.cmd.saturate));
    }
    lanes.push(s);
  }
}

/// Sums behind products: the accumulator and what is late, or that alone.
template <class To>
void late_sums(Half& lanes, uint64_t steps) {
  Rng rng(test::seed(), 55);
  FloatStep s;
  s.late = true;
  s.mask = kMask<To>;
  for (uint64_t n = 0; n < steps; ++n) {
    const bool use_acc = rng.below(2) != 0;
    s.cmd = {.op = FloatOp::Sum, .from = Fmt::Fp32, .to = kFmt<To>, .use_acc = use_acc};
    s.live = rng.below(4) == 0 ? static_cast<uint32_t>(rng()) : ~0u;
    s.flags = {};
    for (unsigned i = 0; i < kLanes; ++i) {
      const auto [a, b] = test::pair_of<num::Float32>(rng);
      s.a[i] = s.b[i] = static_cast<uint32_t>(rng());  // not looked at
      s.acc[i] = a;
      s.other[i] = b;
      num::Flags flags;
      s.want[i] = test::at_top<To>(use_acc ? num::add<num::Float32, To>(a, b, &flags)
                                           : num::convert<num::Float32, To>(b, &flags));
      if ((s.live >> i & 1) != 0) s.flags |= flags;
    }
    lanes.push(s);
  }
}

/// Products of what is late with a factor, finite ones, as the elements of blocks are made.
template <class To>
void late_products(Wide& lanes, uint64_t steps) {
  Rng rng(test::seed(), 56);
  FloatStep s;
  s.late = true;
  s.cmd = {.op = FloatOp::Mul, .from = Fmt::Fp32, .to = kFmt<To>, .saturate = true, .scalar = true};
  constexpr bool kFour = To::kExp + To::kFrac == 3;
  s.mask = kFour ? 0xf0000000 : kMask<To>;
  for (uint64_t n = 0; n < steps; ++n) {
    const uint64_t top = rng.below(255);  // the largest exponent there is
    const auto scale = static_cast<int>(std::max<int64_t>(0, static_cast<int64_t>(top) - To::kEmax));
    s.scalar = static_cast<uint32_t>(254 - scale) << 23;
    s.flags = {};
    for (unsigned i = 0; i < kLanes; ++i) {
      const uint64_t down = rng.below(24), exponent = top > down ? top - down : 0;
      uint64_t fraction = test::fraction_of<num::Float32>(rng);
      if (rng.below(2)) fraction = (rng() << 18) + rng.below(3) - 1;
      const uint32_t x = test::make_float<num::Float32>(rng(), exponent, fraction);
      s.a[i] = s.b[i] = static_cast<uint32_t>(rng());  // not looked at
      s.other[i] = x;
      const auto want = num::mul<num::Float32, To>(x, s.scalar, &s.flags, true);
      s.want[i] = kFour ? static_cast<uint32_t>(want) << 28 : test::at_top<To>(want);
    }
    lanes.push(s);
  }
}

/// fn(From{}, To{}) for every pair of formats.
template <class Fn>
void for_formats(Fn fn) {
  const auto with = [&](auto from) {
    fn(from, num::Float32{});
    fn(from, num::Bfloat16{});
    fn(from, num::Float16{});
    fn(from, num::Float8E5m2{});
    fn(from, num::Float8E4m3{});
  };
  with(num::Float32{});
  with(num::Bfloat16{});
  with(num::Float16{});
  with(num::Float8E5m2{});
  with(num::Float8E4m3{});
}

// ---- whole reductions -----------------------------------------------------------------------------

constexpr unsigned kChunk = 16;  // steps a source, more than a product takes

template <class F>
struct Source {
  std::array<std::array<typename F::bits_type, kLanes>, kChunk> x;
  std::span<const uint8_t> bytes() const { return {reinterpret_cast<const uint8_t*>(x.data()), sizeof x}; }
};

/// `count` sources whose folds round, cancel, overflow and meet specials.
template <class F>
std::vector<Source<F>> make_sources(unsigned count, bool factors, Rng& rng) {
  std::vector<Source<F>> sources(count);
  for (unsigned c = 0; c < kChunk; ++c) {
    for (unsigned i = 0; i < kLanes; ++i) {
      const bool tame = rng.below(4) != 0;  // no specials, or few sums would stay finite
      for (unsigned k = 0; k < count; ++k) {
        const auto [a, b] = factors ? test::factors_of<F>(rng) : test::pair_of<F>(rng);
        auto x = (k & 1) != 0 ? b : a;
        if (k == 1) x = b, sources[0].x[c][i] = a;
        if (tame && (!F::is_finite(x) || (factors && F::magnitude(x) == 0))) x = F::kHidden;
        // Now and then the end of a sum takes back its beginning.
        if (!factors && k > 1 && rng.below(8) == 0) {
          x = static_cast<typename F::bits_type>(sources[rng.below(k)].x[c][i] ^ F::kSign);
        }
        sources[k].x[c][i] = x;
      }
    }
  }
  return sources;
}

/// Runs steps of a chunk and keeps its accumulators.
template <class From, class To, class Lanes>
class Fold {
 public:
  Fold(Lanes& lanes, const num::Job& job, const std::vector<Source<From>>& sources, bool late)
      : lanes_(lanes), job_(job), sources_(sources), late_(late), acc_(kChunk), other_(kChunk) {}

  /// The result that num::reduce gives, and its flags over all steps.
  void run(const std::vector<std::array<typename To::bits_type, kLanes>>& want, bool break_odd) {
    const unsigned count = static_cast<unsigned>(sources_.size());
    want_ = &want;
    const bool convert = kNeedsConvert<From, To>;
    switch (job_.op) {
      case Redop::PROD:
        for (unsigned k = 1; k < count; ++k) {
          const bool last = k + 1 == count;
          steps({.op = FloatOp::Mul,
                 .from = kFmt<From>,
                 .to = last ? kFmt<To> : Fmt::Fp32,
                 .use_acc = k > 1,
                 .to_acc = !last},
                k == 1 ? &sources_[0] : nullptr, &sources_[k], last);
        }
        break;
      case Redop::AVG:
      case Redop::PREMUL_SUM:
        if (count == 1) {
          steps({.op = FloatOp::Mul, .from = kFmt<From>, .to = kFmt<To>, .scalar = true}, &sources_[0],
                nullptr, true);
          break;
        }
        for (unsigned k = 0; k < count; ++k) {
          std::swap(acc_, other_);  // the products go beside the sum
          steps({.op = FloatOp::Mul, .from = kFmt<From>, .to = Fmt::Fp32, .scalar = true, .to_acc = true},
                &sources_[k], nullptr, false);
          if (k == 0) continue;
          std::swap(acc_, other_);
          const bool last = k + 1 == count, odd = last && kNeedsConvert<num::Float32, To>;
          steps({.op = FloatOp::Sum,
                 .from = Fmt::Fp32,
                 .to = last && !odd ? kFmt<To> : Fmt::Fp32,
                 .use_acc = true,
                 .to_acc = !last || odd,
                 .odd = odd && !break_odd},
                nullptr, nullptr, last && !odd);
          if (odd) convert_acc(Fmt::Fp32);
        }
        break;
      default:
        for (unsigned k = 1; k < count; ++k) {
          const bool last = k + 1 == count, end = last && !convert;
          steps({.op = op_of(job_.op),
                 .from = kFmt<From>,
                 .to = end ? kFmt<To> : kFmt<From>,
                 .propagate_nan = job_.propagate_nan,
                 .use_acc = k > 1,
                 .to_acc = !end,
                 .odd = last && convert && !break_odd},
                k == 1 ? &sources_[0] : nullptr, &sources_[k], end);
        }
        if (convert) convert_acc(kFmt<From>);
    }
    lanes_.drain();
  }

 private:
  void convert_acc(Fmt from) {
    steps({.op = FloatOp::Convert, .from = from, .to = kFmt<To>, .use_acc = !late_}, nullptr, nullptr, true,
          late_);
  }

  // One step for each beat of the chunk. Without a source: a is the accumulator, b a product kept beside it.
  // `late`: what is to be worked on has just been made.
  void steps(FloatCmd cmd, const Source<From>* a, const Source<From>* b, bool last, bool late = false) {
    FloatStep s;
    s.late = late;
    s.cmd = cmd;
    s.cmd.saturate = last && job_.saturate;
    s.check_flags = false;
    s.scalar = static_cast<uint32_t>(job_.scalar);
    for (unsigned c = 0; c < kChunk; ++c) {
      for (unsigned i = 0; i < kLanes; ++i) {
        s.acc[i] = s.other[i] = acc_[c][i];
        if (a != nullptr) s.a[i] = test::at_top<From>(a->x[c][i]);
        s.b[i] = b != nullptr ? test::at_top<From>(b->x[c][i]) : other_[c][i];
        if (last) s.want[i] = test::at_top<To>((*want_)[c][i]);
      }
      s.mask = last ? kMask<To> : 0;
      s.out = last ? nullptr : &acc_[c];
      lanes_.push(s);
    }
  }

  Lanes& lanes_;
  const num::Job& job_;
  const std::vector<Source<From>>& sources_;
  bool late_;  // the last step works on what the one before has just made
  std::vector<Words> acc_, other_;
  const std::vector<std::array<typename To::bits_type, kLanes>>* want_ = nullptr;
};

template <class From>
wire::Dtype dtype_of() {
  using enum wire::Dtype;
  switch (kFmt<From>) {
    case Fmt::Bf16: return BFLOAT16;
    case Fmt::Fp16: return FLOAT16;
    case Fmt::E5m2: return FLOAT8_E5M2;
    case Fmt::E4m3: return FLOAT8_E4M3;
    default: break;
  }
  return FLOAT32;
}

/// `rounds` reductions; the reference gets `want_op` instead of `op` when a test breaks it.
template <class From, class To, class Lanes>
void folds(Lanes& lanes, Redop op, unsigned rounds, Rng& rng, bool break_odd = false) {
  for (unsigned n = 0; n < rounds; ++n) {
    num::Job job{.from = dtype_of<From>(), .to = dtype_of<To>(), .op = op};
    const bool scales = op == Redop::AVG || op == Redop::PREMUL_SUM;
    const unsigned fewest = scales ? 1 : 2;
    const unsigned count =
        static_cast<unsigned>(rng.below(8) == 0 ? rng.range(fewest, 64) : rng.range(fewest, 6));
    job.propagate_nan = (op == Redop::MAX || op == Redop::MIN) && rng.below(2);
    job.saturate = kEight<To> && rng.below(2);
    job.scalar = rng.below(2) ? test::float_of<num::Float32>(rng)
                              : std::bit_cast<uint32_t>(1.0f / static_cast<float>(count));
    const auto sources = make_sources<From>(count, op == Redop::PROD, rng);
    std::vector<std::span<const uint8_t>> spans;
    for (const auto& s : sources) spans.push_back(s.bytes());
    std::vector<std::array<typename To::bits_type, kLanes>> want(kChunk);
    num::reduce(job, {reinterpret_cast<uint8_t*>(want.data()), kChunk * sizeof want[0]}, spans);
    const bool late = std::is_same_v<Lanes, Wide> && rng.below(2) != 0;
    Fold<From, To, Lanes>(lanes, job, sources, late).run(want, break_odd);
  }
}

}  // namespace

TEST_CASE("float: sums, maxima and minima of two sources, 32-bit lanes (case software 7)", "[nmc][random]") {
  Wide lanes(0.1);
  two_sources<num::Float32, num::Float32>(lanes, 60'000);
  two_sources<num::Bfloat16, num::Bfloat16>(lanes, 15'000);
  two_sources<num::Float16, num::Float16>(lanes, 15'000);
  two_sources<num::Float8E5m2, num::Float8E5m2>(lanes, 5'000);
  two_sources<num::Float8E4m3, num::Float8E4m3>(lanes, 5'000);
  check(lanes);
}

TEST_CASE("float: sums, maxima and minima of two sources, half lanes", "[nmc][random]") {
  Half lanes(0.1);
  two_sources<num::Float32, num::Float32>(lanes, 60'000);
  two_sources<num::Bfloat16, num::Bfloat16>(lanes, 30'000);
  two_sources<num::Float16, num::Float16>(lanes, 30'000);
  two_sources<num::Float8E5m2, num::Float8E5m2>(lanes, 5'000);
  two_sources<num::Float8E4m3, num::Float8E4m3>(lanes, 5'000);
  for_formats([&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    if constexpr (!std::is_same_v<From, To> && !kNeedsConvert<From, To>) two_sources<From, To>(lanes, 500);
    if constexpr (!std::is_same_v<From, To>) conversions<From, To>(lanes, 1'000);
  });
  check(lanes);
}

TEST_CASE("float: sums behind products, products behind sums", "[nmc][random]") {
  Half half(0.1);
  late_sums<num::Float32>(half, 40'000);
  late_sums<num::Bfloat16>(half, 20'000);
  check(half);
  Wide wide(0.1);
  late_products<num::Float8E4m3>(wide, 20'000);
  late_products<num::Float8E5m2>(wide, 20'000);
  late_products<num::Float4E2m1>(wide, 20'000);
  check(wide);
}

TEST_CASE("float: all pairs of 8-bit types, every width of lane", "[nmc]") {
  Wide wide(0);
  all_pairs<num::Float8E5m2>(wide);
  all_pairs<num::Float8E4m3>(wide);
  check(wide);
  Half half(0.1);
  all_pairs<num::Float8E5m2>(half);
  all_pairs<num::Float8E4m3>(half);
  check(half);
  Byte byte(0.1);
  all_pairs<num::Float8E5m2>(byte);
  all_pairs<num::Float8E4m3>(byte);
  check(byte);
}

TEST_CASE("float: sums into a type that reaches as far", "[nmc][random]") {
  Wide lanes(0);
  for_formats([&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    if constexpr (!std::is_same_v<From, To> && !kNeedsConvert<From, To>) two_sources<From, To>(lanes, 1'000);
  });
  check(lanes);
}

TEST_CASE("float: conversions, every value of 16- and 8-bit types", "[nmc][random]") {
  Wide lanes(0);
  for_formats([&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    if constexpr (!std::is_same_v<From, To>) conversions<From, To>(lanes, 10'000);
  });
  check(lanes);
}

TEST_CASE("float: products", "[nmc][random]") {
  Wide lanes(0.1);
  products<num::Float32, num::Float32>(lanes, 40'000);
  for_formats([&](auto from, auto to) { products<decltype(from), decltype(to)>(lanes, 3'000); });
  check(lanes);
}

TEST_CASE("float: products with a scalar, and lanes of nothing else", "[nmc][random]") {
  Wide wide(0.1);
  Products lanes(0.1);
  const auto with = [&](auto from) {
    scaled<decltype(from)>(wide, 10'000);
    scaled<decltype(from)>(lanes, 10'000);
  };
  with(num::Float32{});
  with(num::Bfloat16{});
  with(num::Float16{});
  with(num::Float8E5m2{});
  with(num::Float8E4m3{});
  check(wide);
  check(lanes);
}

TEST_CASE("float: conversions of what is late, and lanes of nothing but conversions of float32",
          "[nmc][random]") {
  Wide wide(0.1);
  Converts lanes(0.1);
  const auto with = [&](auto to) {
    late_conversions<decltype(to)>(wide, 10'000);
    late_conversions<decltype(to)>(lanes, 20'000);
    conversions<num::Float32, decltype(to)>(lanes, 10'000);
  };
  with(num::Bfloat16{});
  with(num::Float16{});
  with(num::Float8E5m2{});
  with(num::Float8E4m3{});
  check(wide);
  check(lanes);
}

TEST_CASE("float: products and sums in any order do not meet", "[nmc][random]") {
  Wide lanes(0.3);
  Rng rng(test::seed(), 60);
  for (unsigned n = 0; n < 2'000; ++n) {
    const auto steps = rng.range(1, 9);
    const FloatOp op = rng.below(2) ? FloatOp::Mul : FloatOp::Sum;
    run<num::Float32, num::Float32>(
        lanes, {.op = op}, steps, rng, [&] { return test::pair_of<num::Float32>(rng); },
        step<num::Float32, num::Float32>);
  }
  check(lanes);
}

TEST_CASE("float: folds of 2 to 64 sources are left folds in fp32, half and byte lanes", "[nmc][random]") {
  Rng rng(test::seed(), 70);
  Half half(0);
  Byte byte(0);
  for (Redop op : {Redop::SUM, Redop::MAX, Redop::MIN}) {
    const unsigned rounds = op == Redop::SUM ? 150 : 30;
    folds<num::Bfloat16, num::Bfloat16>(half, op, rounds, rng);
    folds<num::Float16, num::Float16>(half, op, rounds, rng);
    folds<num::Float8E5m2, num::Float8E5m2>(half, op, rounds, rng);
    folds<num::Float8E4m3, num::Float8E4m3>(half, op, rounds, rng);
    folds<num::Float8E5m2, num::Float8E5m2>(byte, op, rounds, rng);
    folds<num::Float8E4m3, num::Float8E4m3>(byte, op, rounds, rng);
  }
  CHECK(half.wrong() == 0);
  CHECK(byte.wrong() == 0);
}

TEST_CASE("float: every reduction from every type to every type, 32-bit lanes", "[nmc][random]") {
  Rng rng(test::seed(), 80);
  Wide lanes(0);
  Half half(0);
  for (Redop op : {Redop::SUM, Redop::MAX, Redop::MIN, Redop::PROD, Redop::AVG, Redop::PREMUL_SUM}) {
    for_formats([&](auto from, auto to) {
      CAPTURE(op, kFmt<decltype(from)>, kFmt<decltype(to)>);
      folds<decltype(from), decltype(to)>(lanes, op, 12, rng);
      CHECK(lanes.wrong() == 0);
      if (op == Redop::PROD || op == Redop::AVG || op == Redop::PREMUL_SUM) return;
      folds<decltype(from), decltype(to)>(half, op, 6, rng);
      CHECK(half.wrong() == 0);
    });
  }
}

// ---- that all this can fail ------------------------------------------------------------------------
namespace {

template <class F, class Lanes>
void finds_broken_rules(Redop op, std::span<const Broken> faults) {
  Rng rng(test::seed(), 90);
  for (Broken fault : faults) {
    CAPTURE(static_cast<int>(fault), kFmt<F>);
    Lanes lanes(0);
    run<F, F>(
        lanes, {.op = op_of(op)}, 4'000, rng,
        [&] { return op == Redop::PROD ? test::factors_of<F>(rng) : test::pair_of<F>(rng); },
        [&](const FloatCmd&, auto a, auto b, num::Flags*) {
          return test::Mutant<F>::apply(fault, op, a, b);
        });
    lanes.drain();
    CHECK(lanes.wrong() > 0);
  }
}

template <class F, class Lanes>
void finds_broken_rules() {
  finds_broken_rules<F, Lanes>(Redop::SUM, test::kSumFaults);
  finds_broken_rules<F, Lanes>(Redop::MAX, test::kOrderFaults);
  finds_broken_rules<F, Lanes>(Redop::MIN, test::kOrderFaults);
}

}  // namespace

TEST_CASE("float: a reference with a broken rule is found out", "[nmc][fault]") {
  finds_broken_rules<num::Float32, Wide>();
  finds_broken_rules<num::Float16, Wide>();
  finds_broken_rules<num::Bfloat16, Half>();
  finds_broken_rules<num::Float16, Half>();
  finds_broken_rules<num::Float32, Wide>(Redop::PROD, test::kSumFaults);
  finds_broken_rules<num::Bfloat16, Wide>(Redop::PROD, test::kSumFaults);
}

TEST_CASE("float: without rounding to odd, rounding twice is found out", "[nmc][fault]") {
  Rng rng(test::seed(), 91);
  Wide lanes(0);
  folds<num::Float32, num::Float16>(lanes, Redop::SUM, 40, rng, true);
  CHECK(lanes.wrong() > 0);
}

TEST_CASE("float: a missing, a wrong and a dead lane's flag are found out", "[nmc][fault]") {
  const auto with = [](FloatOp op, auto change) {
    Rng rng(test::seed(), 92);
    Wide lanes(0);
    run<num::Float32, num::Float32>(
        lanes, {.op = op}, 2'000, rng, [&] { return test::pair_of<num::Float32>(rng); },
        [&](const FloatCmd& cmd, auto a, auto b, num::Flags* flags) {
          const auto x = step<num::Float32, num::Float32>(cmd, a, b, flags);
          change(*flags);
          return x;
        });
    lanes.drain();
    CHECK(lanes.wrong() == 0);
    CHECK(lanes.wrong_flags() > 0);
  };
  for (FloatOp op : {FloatOp::Sum, FloatOp::Mul}) {
    with(op, [](num::Flags& flags) { flags.invalid = false; });
    with(op, [](num::Flags& flags) { flags.overflow = false; });
    with(op, [](num::Flags& flags) { flags.inexact = false; });
    with(op, [](num::Flags& flags) { flags.overflow = flags.inexact; });
  }
}

TEST_CASE("float: a sum on the way of a product is refused", "[nmc][fault]") {
  Wide lanes(0);
  auto& bench = lanes.bench();
  bench.expect_assertion();
  for (unsigned cycle = 0; cycle < 16; ++cycle) {
    const unsigned apart = test::kMulLatency - test::kFloatLatency;
    bench->valid_i = cycle == 0 || cycle == apart;
    bench->cmd_i = FloatCmd{.op = cycle == 0 ? FloatOp::Mul : FloatOp::Sum}.bits();
    bench.tick();
  }
  CHECK(bench.assertion_fired());
}
