// SPDX-License-Identifier: Apache-2.0
//
// The lanes of exact sums, both builds in each of their types, against num::ExactSum: all pairs of
// 8-bit floats, and sums of 2 to 64 sources that cancel, tie, overflow, end subnormal or meet
// infinities and NaNs, added in chunks through the accumulator, in more than one order.
#include <algorithm>
#include <array>
#include <vector>

#include "Vexact_bf16.h"
#include "Vexact_narrow.h"
#include "float_lanes.h"
#include "nmc_cases.h"

using namespace weft;
using test::FloatCmd;
using test::Fmt;
using test::kFmt;
using test::Rng;

namespace {

// The constants of weft_nmc_pkg.
constexpr unsigned kExactLatency = 10, kExactAgain = 4, kChunkSteps = 32;

/// An element at the top of 16 bits.
template <num::IsFloat F>
constexpr uint16_t at_top16(typename F::bits_type x) {
  return static_cast<uint16_t>(test::at_top<F>(x) >> 16);
}

template <class Model, unsigned kWidth>
class ExactLanes {
 public:
  static constexpr unsigned kLanes = kWidth;
  using Elements = std::array<uint16_t, kLanes>;  // at the top of 16 bits each

  struct Step {
    FloatCmd cmd;
    unsigned index = 0;
    uint32_t live = ~0u;
    Elements a{}, b{};
    Elements want{};  // without to_acc; at the top
    uint16_t mask = 0;
    num::Flags flags;
  };

  explicit ExactLanes(double gaps, uint64_t stream = 1) : gap_(gaps, stream) {
    bench_->valid_i = 0;
    bench_.reset();
  }

  void push(const Step& step) {
    while (gap_.stalled()) advance();
    bench_->valid_i = 1;
    bench_->cmd_i = step.cmd.bits();
    bench_->index_i = static_cast<uint8_t>(step.index);
    bench_->live_i = static_cast<std::remove_reference_t<decltype(bench_->live_i)>>(step.live & kAll);
    for (unsigned i = 0; i < kLanes; i += 2) {
      bench_->a_i[i / 2] = step.a[i] | uint32_t{step.a[i + 1]} << 16;
      bench_->b_i[i / 2] = step.b[i] | uint32_t{step.b[i + 1]} << 16;
    }
    due_[(cycle_ + kExactLatency) % kRing] = {true, step.cmd.to_acc, step.want, step.mask, step.flags};
    advance();
    bench_->valid_i = 0;
  }
  void drain() {
    for (unsigned i = 0; i < kRing; ++i) advance();
  }
  uint64_t wrong() const { return wrong_; }
  uint64_t wrong_flags() const { return wrong_flags_; }
  uint64_t sums() const { return sums_; }
  test::Bench<Model>& bench() { return bench_; }

 private:
  static constexpr unsigned kRing = 16;
  static constexpr uint32_t kAll = static_cast<uint32_t>((uint64_t{1} << kLanes) - 1);
  struct Due {
    bool valid, to_acc;
    Elements want;
    uint16_t mask;
    num::Flags flags;
  };

  void advance() {
    bench_.eval();
    Due& now = due_[cycle_ % kRing];
    if (bench_->valid_o != now.valid) FAIL("a result out of its cycle");
    const num::Flags raised{.invalid = (bench_->flags_o & 4) != 0,
                            .overflow = (bench_->flags_o & 2) != 0,
                            .inexact = (bench_->flags_o & 1) != 0};
    if (!(raised == flags_) && wrong_flags_++ == 0) {
      bench_.event("flags %llx, to be %llx", bench_->flags_o,
                   unsigned{flags_.invalid} << 2 | unsigned{flags_.overflow} << 1 | unsigned{flags_.inexact});
    }
    flags_ = {};
    if (now.valid) {
      bench_.progress();
      if (!now.to_acc) look(now);
    }
    now.valid = false;
    bench_.tick();
    ++cycle_;
  }
  void look(const Due& now) {
    flags_ = now.flags;
    sums_ += kLanes;
    for (unsigned i = 0; i < kLanes; ++i) {
      const uint16_t got = static_cast<uint16_t>(bench_->res_o[i / 2] >> 16 * (i % 2));
      if (((got ^ now.want[i]) & now.mask) == 0) continue;
      if (wrong_++ == 0)
        bench_.event("lane %llu: %04llx, to be %04llx", i, got & now.mask, now.want[i] & now.mask);
    }
  }

  test::Bench<Model> bench_{"weft_nmc_exact"};
  test::Stall gap_;
  std::array<Due, kRing> due_{};
  uint64_t cycle_ = 0, wrong_ = 0, wrong_flags_ = 0, sums_ = 0;
  num::Flags flags_;  // of the result before
};

using Narrow = ExactLanes<Vexact_narrow, 32>;
using Broad = ExactLanes<Vexact_bf16, 8>;

template <class Lanes>
void check(Lanes& lanes) {
  lanes.drain();
  CHECK(lanes.wrong() == 0);
  CHECK(lanes.wrong_flags() == 0);
}

/// The right sum.
template <class F>
typename F::bits_type exact_sum(const std::vector<typename F::bits_type>& terms, num::Flags* flags,
                                bool saturate) {
  num::ExactSum<F> sum;
  for (auto x : terms) sum.add(x);
  return sum.result(flags, saturate);
}

/// `count` terms of a sum made to meet a rule.
template <class F>
std::vector<typename F::bits_type> terms_of(unsigned count, Rng& rng) {
  using Bits = typename F::bits_type;
  constexpr uint64_t kTopField = F::kMax >> F::kFrac;
  const auto finite = [](Bits x) { return F::is_finite(x) ? x : F::kMax; };
  const auto make = [&](uint64_t sign, uint64_t field) {
    return finite(test::make_float<F>(sign, field, test::fraction_of<F>(rng)));
  };
  std::vector<Bits> terms(count);
  const uint64_t kind = rng.below(8), near = rng.below(kTopField + 1), sign = rng();
  size_t made = 0;
  const auto put = [&](Bits x) {
    if (made < count) terms[made++] = x;
  };
  switch (kind) {
    case 0:  // anything, specials too
      while (made < count) put(test::float_of<F>(rng));
      break;
    case 1:  // mostly numbers, one or two specials among them
      put(test::special_of<F>(rng));
      if (rng.below(2)) put(test::special_of<F>(rng));
      break;
    case 2: {  // a number and half its last place, or what lies just beside the tie
      const uint64_t field = rng.range(0, kTopField);
      const uint64_t down = F::kFrac + 1;
      const Bits big = make(sign, field);
      put(big);
      if (field > down) put(test::make_float<F>(sign, field - down, 0));
      if (rng.below(2)) put(static_cast<Bits>(1 | (rng.below(2) ? F::kSign : 0)));
      while (made + 1 < count && rng.below(8) != 0) {  // pairs that cancel
        const Bits x = make(rng(), rng.below(kTopField + 1));
        put(x), put(static_cast<Bits>(x ^ F::kSign));
      }
      while (made < count) put(static_cast<Bits>(rng.below(2) ? F::kSign : 0));
      break;
    }
    case 3: {  // the end of the range, and what rounds to it
      const uint64_t down = F::kFrac + rng.below(4) - 1;
      put(static_cast<Bits>((F::kMax - rng.below(2)) | (sign & 1 ? F::kSign : 0)));
      put(test::make_float<F>(sign, kTopField > down ? kTopField - down : 0, rng.below(3)));
      if (rng.below(2)) put(static_cast<Bits>(1 | (rng.below(2) ? F::kSign : 0)));
      if (rng.below(4) == 0) {
        while (made < count) put(static_cast<Bits>(F::kMax | (sign & 1 ? F::kSign : 0)));
      }
      while (made < count) put(static_cast<Bits>(rng.below(2) ? F::kSign : 0));
      break;
    }
    case 4:
      if (rng.below(8) == 0) {  // zeros, of one sign or of both
        while (made < count) put(static_cast<Bits>((sign & 2 ? sign : rng()) & 1 ? F::kSign : 0));
      }
      // Subnormals and little more.
      while (made < count) put(make(rng(), rng.below(4)));
      break;
    default: break;
  }
  // The rest: numbers of a like size, all of one sign or of both, so that they cancel.
  const bool both = rng.below(4) != 0;
  while (made < count) {
    put(make(both ? rng() : sign, std::min<uint64_t>(near + rng.below(rng.below(2) ? 3 : 12), kTopField)));
  }
  for (size_t i = count; i > 1; --i) std::swap(terms[i - 1], terms[rng.below(i)]);
  return terms;
}

/// A chunk of sums of `count` sources: `orders` times with the sources in another order. `model(terms,
/// &flags, saturate)` is the right sum.
template <class F, class Lanes, class Model>
void chunk(Lanes& lanes, unsigned count, unsigned steps, unsigned orders, Rng& rng, Model model) {
  constexpr unsigned kLanes = Lanes::kLanes;
  using Bits = typename F::bits_type;
  const bool saturate = sizeof(Bits) == 1 && rng.below(2);
  std::vector<std::vector<Bits>> terms(steps * kLanes);
  for (auto& t : terms) t = terms_of<F>(count, rng);
  std::vector<unsigned> order(count), places(kChunkSteps);
  for (unsigned k = 0; k < count; ++k) order[k] = k;
  for (unsigned n = 0; n < kChunkSteps; ++n) places[n] = n;
  const auto shuffle = [&](auto& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[rng.below(i)]);
  };
  for (unsigned again = 0; again < orders; ++again) {
    shuffle(places);
    for (unsigned k = 1; k < count; ++k) {
      for (unsigned n = 0; n < steps; ++n) {
        typename Lanes::Step s;
        s.cmd = {.from = kFmt<F>, .to = kFmt<F>, .use_acc = k > 1, .to_acc = k + 1 < count};
        s.cmd.saturate = saturate;
        s.index = places[n];
        s.live = rng.below(4) == 0 ? static_cast<uint32_t>(rng()) : ~0u;
        s.mask = at_top16<F>(static_cast<Bits>(~0u));
        const uint16_t junk = static_cast<uint16_t>(rng() & static_cast<uint16_t>(~s.mask));
        for (unsigned i = 0; i < kLanes; ++i) {
          const auto& t = terms[n * kLanes + i];
          // Where the accumulator is an operand, a does not matter.
          s.a[i] = k == 1 ? at_top16<F>(t[order[0]]) | junk : static_cast<uint16_t>(rng());
          s.b[i] = at_top16<F>(t[order[k]]) | junk;
          if (k + 1 < count) continue;
          num::Flags flags;
          s.want[i] = at_top16<F>(model(t, &flags, saturate));
          if ((s.live >> i & 1) != 0) s.flags |= flags;
        }
        lanes.push(s);
      }
    }
    shuffle(order);
  }
}

template <class F, class Lanes, class Model>
void chunks(Lanes& lanes, unsigned rounds, Rng& rng, Model model) {
  for (unsigned n = 0; n < rounds; ++n) {
    const unsigned count = static_cast<unsigned>(rng.below(8) == 0   ? rng.range(2, 64)
                                                 : rng.below(4) == 0 ? 64
                                                                     : rng.range(2, 9));
    chunk<F>(lanes, count, static_cast<unsigned>(rng.range(kExactAgain, kChunkSteps)), 2, rng, model);
  }
}

template <class F, class Lanes>
void chunks(Lanes& lanes, unsigned rounds, Rng& rng) {
  chunks<F>(lanes, rounds, rng, exact_sum<F>);
}

/// Sums of two, next() after next().
template <class F, class Lanes, class Next>
void pairs(Lanes& lanes, uint64_t steps, bool saturate, Rng& rng, Next next) {
  using Bits = typename F::bits_type;
  typename Lanes::Step s;
  s.cmd = {.from = kFmt<F>, .to = kFmt<F>, .saturate = saturate};
  s.mask = at_top16<F>(static_cast<Bits>(~0u));
  for (uint64_t n = 0; n < steps; ++n) {
    s.flags = {};
    s.live = rng.below(4) == 0 ? static_cast<uint32_t>(rng()) : ~0u;
    for (unsigned i = 0; i < Lanes::kLanes; ++i) {
      const auto [a, b] = next();
      num::Flags flags;
      num::ExactSum<F> sum;
      sum.add(a);
      sum.add(b);
      s.a[i] = at_top16<F>(a);
      s.b[i] = at_top16<F>(b);
      s.want[i] = at_top16<F>(sum.result(&flags, saturate));
      if ((s.live >> i & 1) != 0) s.flags |= flags;
    }
    lanes.push(s);
  }
}

template <class F>
void all_pairs(Narrow& lanes, Rng& rng) {
  for (bool saturate : {false, true}) {
    uint32_t n = 0;
    pairs<F>(lanes, 65536 / Narrow::kLanes, saturate, rng, [&] {
      const uint32_t x = n++;
      return test::Pair<F>{static_cast<uint8_t>(x), static_cast<uint8_t>(x >> 8)};
    });
  }
}

}  // namespace

TEST_CASE("exact: all pairs of 8-bit floats", "[nmc]") {
  Rng rng(test::seed(), 100);
  Narrow lanes(0.1);
  all_pairs<num::Float8E4m3>(lanes, rng);
  all_pairs<num::Float8E5m2>(lanes, rng);
  check(lanes);
}

TEST_CASE("exact: sums of two sources", "[nmc][random]") {
  Rng rng(test::seed(), 101);
  Narrow narrow(0.1);
  pairs<num::Float16>(narrow, 30'000, false, rng, [&] { return test::pair_of<num::Float16>(rng); });
  check(narrow);
  Broad broad(0.1);
  pairs<num::Bfloat16>(broad, 30'000, false, rng, [&] { return test::pair_of<num::Bfloat16>(rng); });
  check(broad);
}

TEST_CASE("exact: sums of 2 to 64 sources, fp16 and 8-bit floats (case software 7)", "[nmc][random]") {
  Rng rng(test::seed(), 102);
  Narrow lanes(0);
  chunks<num::Float16>(lanes, 300, rng);
  chunks<num::Float8E5m2>(lanes, 150, rng);
  chunks<num::Float8E4m3>(lanes, 150, rng);
  check(lanes);
  Narrow stalled(0.3);
  chunks<num::Float16>(stalled, 40, rng);
  check(stalled);
}

TEST_CASE("exact: sums of 2 to 64 sources, bf16", "[nmc][random]") {
  Rng rng(test::seed(), 103);
  Broad lanes(0);
  chunks<num::Bfloat16>(lanes, 1'200, rng);
  check(lanes);
  Broad stalled(0.3);
  chunks<num::Bfloat16>(stalled, 100, rng);
  check(stalled);
}

TEST_CASE("exact: types in turn share the accumulator", "[nmc][random]") {
  Rng rng(test::seed(), 104);
  Narrow lanes(0.1);
  for (unsigned n = 0; n < 40; ++n) {
    chunks<num::Float16>(lanes, 1, rng);
    chunks<num::Float8E5m2>(lanes, 1, rng);
    chunks<num::Float8E4m3>(lanes, 1, rng);
  }
  check(lanes);
}

// ---- that all this can fail ------------------------------------------------------------------------
namespace {

/// The cases find out that `model` is wrong.
template <class F, class Lanes, class Model>
void finds_out(Model model) {
  Rng rng(test::seed(), 110);
  Lanes lanes(0);
  chunks<F>(lanes, 30, rng, model);
  lanes.drain();
  CHECK(lanes.wrong() + lanes.wrong_flags() > 0);
}

/// The sum of the terms, from the first one on, in fp32, rounded at the end.
template <class F>
typename F::bits_type folded(const std::vector<typename F::bits_type>& terms, num::Flags* flags,
                             bool saturate) {
  uint32_t sum = num::convert<F, num::Float32>(terms[0]);
  for (size_t k = 1; k < terms.size(); ++k) {
    sum = num::add<num::Float32>(sum, num::convert<F, num::Float32>(terms[k]));
  }
  exact_sum<F>(terms, flags, saturate);
  const auto x = num::convert<num::Float32, F>(sum, nullptr, saturate);
  return F::magnitude(x) == 0 ? typename F::bits_type{0} : x;
}

template <class F, class Lanes>
void finds_broken_rules() {
  using Bits = typename F::bits_type;
  CAPTURE(kFmt<F>);
  const auto with = [](auto change) {
    finds_out<F, Lanes>([change](const auto& terms, num::Flags* flags, bool saturate) {
      const Bits x = exact_sum<F>(terms, flags, saturate);
      return change(terms, x, *flags);
    });
  };
  with([](const auto&, Bits x, num::Flags& f) { return f.invalid = false, x; });
  with([](const auto&, Bits x, num::Flags& f) { return f.overflow = false, x; });
  with([](const auto&, Bits x, num::Flags& f) { return f.inexact = false, x; });
  with([](const auto&, Bits x, num::Flags& f) { return f.overflow = f.inexact, x; });
  with([](const auto& terms, Bits x, num::Flags&) {  // -0 of nothing but -0
    const bool all = std::all_of(terms.begin(), terms.end(), [](Bits t) { return t == F::kSign; });
    return all ? F::kSign : x;
  });
  with([](const auto& terms, Bits x, num::Flags& f) {  // a NaN does not hide that infinities met
    const auto has = [&](Bits t) { return std::find(terms.begin(), terms.end(), t) != terms.end(); };
    f.invalid |= F::kTop == num::Top::Ieee && has(F::kInf) && has(static_cast<Bits>(F::kInf | F::kSign));
    if (F::kTop != num::Top::Ieee) x = static_cast<Bits>(x ^ 1);  // e4m3 has none: any change will do
    return x;
  });
  // e4m3 folds exactly: 24 bits hold every sum of 64.
  if (F::kTop == num::Top::Ieee) finds_out<F, Lanes>(folded<F>);
}

}  // namespace

TEST_CASE("exact: a reference with a broken rule is found out", "[nmc][fault]") {
  finds_broken_rules<num::Float16, Narrow>();
  finds_broken_rules<num::Float8E5m2, Narrow>();
  finds_broken_rules<num::Bfloat16, Broad>();
}

TEST_CASE("exact: a type that the lanes do not have is refused", "[nmc][fault]") {
  const auto refused = [](auto& lanes, Fmt fmt) {
    auto& bench = lanes.bench();
    bench.expect_assertion();
    bench->valid_i = 1;
    bench->cmd_i = FloatCmd{.from = fmt, .to = fmt}.bits();
    bench.tick();
    bench.tick();
    CHECK(bench.assertion_fired());
  };
  Narrow narrow(0);
  refused(narrow, Fmt::Bf16);
  Broad broad(0);
  refused(broad, Fmt::Fp16);
}

TEST_CASE("exact: a place that is being written is not read", "[nmc][fault]") {
  Narrow lanes(0);
  auto& bench = lanes.bench();
  bench.expect_assertion();
  for (unsigned cycle = 0; cycle < 8; ++cycle) {
    bench->valid_i = cycle == 0 || cycle == kExactAgain - 1;
    bench->cmd_i =
        FloatCmd{.from = Fmt::Fp16, .to = Fmt::Fp16, .use_acc = cycle != 0, .to_acc = cycle == 0}.bits();
    bench.tick();
  }
  CHECK(bench.assertion_fired());
}
