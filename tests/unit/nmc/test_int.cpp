// SPDX-License-Identifier: Apache-2.0
//
// The integer lanes against the reference arithmetic: every pair of types, every operation, native and
// wide, with the accumulator as operand and as result, with flags.
#include <vector>

#include "Vnmc_int.h"
#include "lane_steps.h"
#include "nmc_cases.h"

using namespace weft;
using wire::Dtype;
using wire::Redop;

namespace {

constexpr unsigned kWords = 32, kBeatBits = 1024;
constexpr Dtype kInts[] = {Dtype::UINT8, Dtype::UINT16, Dtype::UINT32, Dtype::UINT64,
                           Dtype::INT8,  Dtype::INT16,  Dtype::INT32,  Dtype::INT64};
// Of int_op_e.
constexpr Redop kOps[] = {Redop::SUM, Redop::MAX, Redop::MIN,  Redop::AND,
                          Redop::OR,  Redop::XOR, Redop::COPY, Redop::PROD};

bool is_signed(Dtype type) {
  return (static_cast<unsigned>(type) & 4) != 0;
}
unsigned size_of(Dtype type) {
  return static_cast<unsigned>(type) & 3;
}
unsigned bits_in(Dtype type) {
  return 8u << size_of(type);
}

struct Command {
  Redop op = Redop::SUM;
  Dtype from = Dtype::INT32, to = Dtype::INT32;
  bool wide = false, saturate = false, use_acc = false, scalar = false, to_acc = false;

  uint32_t bits() const {
    unsigned code = 0;
    while (kOps[code] != op) ++code;
    return code << 12 | static_cast<unsigned>(from) << 9 | static_cast<unsigned>(to) << 6 | wide << 5 |
           saturate << 4 | use_acc << 3 | scalar << 2 | to_acc;
  }
  bool doubled() const { return size_of(from) == 3 || size_of(to) == 3; }
  unsigned word_bits() const { return doubled() ? 64 : 32; }
  unsigned elements() const { return wide ? kBeatBits / word_bits() : kBeatBits / bits_in(from); }
  /// Where element i of `type` lies.
  unsigned place(Dtype type, unsigned i) const {
    if (!wide) return i * bits_in(type);
    return i * word_bits() + (bits_in(type) == 64 ? 0 : 32 - bits_in(type));
  }
  /// The accumulator's type.
  Dtype wider() const {
    const unsigned size = size_of(to) > size_of(from) ? size_of(to) : size_of(from);
    return static_cast<Dtype>((static_cast<unsigned>(from) & 4) | size);
  }
};

/// Rules broken one at a time.
enum class Broken {
  None,
  SumClamps,      // sums do not wrap
  OrderUnsigned,  // maximum and minimum do not look at the sign
  ZeroExtends,    // negative sources are extended by zeros
  SignExtends,    // unsigned sources are extended by their highest bit
  ClampWraps,     // saturate does not do anything
  NegativeWraps,  // ... with negative numbers to unsigned
  ClampSilent,    // ... raises no flag
  WordOverflow,   // the accumulator does not wrap at its width, only the words
  ProductHalf,    // products are of the lower halves
  ScalarFirst,    // a is scaled, not the result
};

struct Outcome {
  uint64_t word;  // the result, in its low bits; with to_acc the whole word
  bool overflow;
};

template <num::IsInt From, num::IsInt To>
Outcome expected(const Command& c, uint64_t a, uint64_t b, uint64_t scalar, Broken fault) {
  using Value = typename From::value_type;
  constexpr bool kToWider = sizeof(typename To::bits_type) > sizeof(Value);
  // Extended to 64 bits, whatever the accumulator has: its low bits are the same.
  using Wide = std::conditional_t<std::is_signed_v<Value>, int64_t, uint64_t>;
  using Acc = num::Int<std::conditional_t<
      !kToWider, Value,
      std::conditional_t<std::is_signed_v<Value>, std::make_signed_t<typename To::bits_type>,
                         typename To::bits_type>>>;
  const auto extend = [&](uint64_t x) -> uint64_t {
    if (fault == Broken::ZeroExtends) return static_cast<typename From::bits_type>(x);
    if (fault == Broken::SignExtends) return static_cast<uint64_t>(static_cast<std::make_signed_t<Value>>(x));
    return static_cast<uint64_t>(static_cast<Wide>(static_cast<Value>(x)));
  };
  if (!c.use_acc) a = extend(a);
  b = extend(b);
  if (fault == Broken::ScalarFirst) a *= scalar;
  uint64_t x = a;
  switch (c.op) {
    case Redop::SUM: x = a + b; break;
    case Redop::PROD: x = a * b; break;
    case Redop::AND: x = a & b; break;
    case Redop::OR: x = a | b; break;
    case Redop::XOR: x = a ^ b; break;
    case Redop::MAX:
    case Redop::MIN: {
      using Order = std::conditional_t<std::is_signed_v<Value>, num::Int64, num::Uint64>;
      const bool unsigned_order = fault == Broken::OrderUnsigned;
      if (c.op == Redop::MAX) {
        x = unsigned_order ? num::maximum<num::Uint64>(a, b) : num::maximum<Order>(a, b);
      } else {
        x = unsigned_order ? num::minimum<num::Uint64>(a, b) : num::minimum<Order>(a, b);
      }
      break;
    }
    default: break;
  }
  if (c.scalar && fault != Broken::ScalarFirst) x *= scalar;
  if (fault == Broken::ProductHalf && (c.scalar || c.op == Redop::PROD)) {
    const uint64_t half = (uint64_t{1} << bits_in(c.wider()) / 2) - 1;
    x = c.scalar ? x & half : (a & half) * (b & half);
  }
  if (c.to_acc) return {x, false};
  num::Flags flags;
  auto acc = static_cast<typename Acc::bits_type>(x);
  if (fault == Broken::SumClamps && c.op == Redop::SUM) {
    acc = num::convert<std::conditional_t<std::is_signed_v<Value>, num::Int64, num::Uint64>, Acc>(x, nullptr,
                                                                                                  true);
  }
  bool saturate = c.saturate;
  if (fault == Broken::ClampWraps) saturate = false;
  if (fault == Broken::NegativeWraps && static_cast<typename Acc::value_type>(acc) < 0 &&
      !std::is_signed_v<typename To::value_type>) {
    saturate = false;
  }
  uint64_t word = num::convert<Acc, To>(acc, &flags, saturate);
  if (fault == Broken::WordOverflow && saturate) {
    word = num::convert<num::Int64, To>(c.doubled() ? x : static_cast<uint64_t>(static_cast<int32_t>(x)),
                                        &flags, true);
  }
  return {word, flags.overflow && fault != Broken::ClampSilent};
}

using Expected = Outcome (*)(const Command&, uint64_t, uint64_t, uint64_t, Broken);
Expected choose(const Command& c) {
  return num::with_int(c.from, [&](auto f) {
    return num::with_int(c.to, [](auto t) -> Expected { return &expected<decltype(f), decltype(t)>; });
  });
}

// Numbers near the ends of any width, and any.
uint64_t number(test::Rng& rng) {
  const uint64_t r = rng();
  switch (r & 7) {
    case 0: return (r >> 8 & 3) - 2;
    case 1: return (uint64_t{1} << (r >> 8 & 63)) + (r >> 16 & 3) - 2;
    case 2: return ~((uint64_t{1} << (r >> 8 & 63)) + (r >> 16 & 3) - 2);
    case 3: return rng() >> (r >> 8 & 63);
    case 4: return ~(rng() >> (r >> 8 & 63));
    default: return rng();
  }
}

uint32_t overflow_of(Vnmc_int& dut) {
  return dut.overflow_o;
}

class IntLanes : public test::Lanes<Vnmc_int, kWords, uint32_t (*)(Vnmc_int&)> {
 public:
  IntLanes() : Lanes("weft_nmc_int", &overflow_of) {}

  /// Runs steps of a command on random operands; how many elements or flags differ from the model.
  uint64_t differences(const Command& c, uint64_t steps, Broken fault = Broken::None) {
    return differences(c, steps, 0.2, fault, [&](Step& step, test::Rng& rng) {
      for (unsigned i = 0; i < c.elements(); ++i) {
        test::set_bits(step.a, c.place(c.from, i), bits_in(c.from), number(rng));
        test::set_bits(step.b, c.place(c.from, i), bits_in(c.from), number(rng));
        if (!c.use_acc) continue;
        uint64_t x = number(rng);
        if (c.op == Redop::MAX || c.op == Redop::MIN) {  // what such a fold leaves there
          x = num::with_int(c.from, [&](auto f) -> uint64_t { return num::detail::extend<decltype(f)>(x); });
        }
        const unsigned bits = c.wide ? c.word_bits() : bits_in(c.from);
        test::set_bits(step.a, i * bits, bits, x);
      }
    });
  }

  template <class Fill>
  uint64_t differences(const Command& c, uint64_t steps, double gaps, Broken fault, Fill fill) {
    test::Rng rng(test::seed(), c.bits());
    const Expected model = choose(c);
    uint64_t wrong = 0;
    bool silent = false;  // a flag that the broken model does not raise is a difference, no failure
    run(
        steps, gaps,
        [&](Step& step) {
          step.cmd = c.bits();
          step.scalar = number(rng);
          step.live = rng.chance(0.5) ? ~0u : static_cast<uint32_t>(rng());
          for (unsigned w = 0; w < kWords; ++w) {
            step.a[w] = static_cast<uint32_t>(rng());
            step.b[w] = static_cast<uint32_t>(rng());
          }
          fill(step, rng);
        },
        [&](const Step& step, const Step::Words& res) -> uint32_t {
          bool overflow = false, broken_overflow = false;
          for (unsigned i = 0; i < c.elements(); ++i) {
            const unsigned from_bits = bits_in(c.from), at = c.place(c.from, i);
            const unsigned acc_bits = c.wide ? c.word_bits() : from_bits;
            const uint64_t a = c.use_acc ? extend_acc(c, test::bits_of(step.a, i * acc_bits, acc_bits))
                                         : test::bits_of(step.a, at, from_bits);
            const uint64_t b = test::bits_of(step.b, at, from_bits);
            const Outcome want = model(c, a, b, step.scalar, fault);
            const bool live = (step.live >> (c.wide ? i * c.word_bits() / 32 : 0) & 1) != 0;
            broken_overflow |= live && want.overflow;
            overflow |=
                live && (fault == Broken::None ? want : model(c, a, b, step.scalar, Broken::None)).overflow;
            const unsigned bits = c.to_acc ? acc_bits : bits_in(c.to);
            const uint64_t got = test::bits_of(res, c.to_acc ? i * acc_bits : c.place(c.to, i), bits);
            const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
            if (got == (want.word & mask)) continue;
            if (wrong++ == 0) test::event("a %llx b %llx lanes %llx model %llx", a, b, got, want.word & mask);
          }
          silent |= overflow != broken_overflow;
          return overflow;
        });
    return wrong + silent;
  }

 private:
  // A word of the accumulator is read by the order of its type.
  static uint64_t extend_acc(const Command& c, uint64_t x) {
    const unsigned bits = c.wide ? c.word_bits() : bits_in(c.from);
    if (bits == 64 || !is_signed(c.from)) return x;
    return static_cast<uint64_t>(static_cast<int64_t>(x << (64 - bits)) >> (64 - bits));
  }
};

}  // namespace

TEST_CASE("int lanes: native steps of every type and operation", "[nmc][random]") {
  IntLanes lanes;
  for (Dtype type : kInts) {
    for (Redop op : kOps) {
      if (op == Redop::PROD) continue;
      for (bool use_acc : {false, true}) {
        const Command c{.op = op, .from = type, .to = type, .use_acc = use_acc};
        CAPTURE(wire::name(type), wire::name(op), use_acc);
        CHECK(lanes.differences(c, 1000) == 0);
      }
    }
  }
}

TEST_CASE("int lanes: wide steps between any two types", "[nmc][random]") {
  IntLanes lanes;
  for (Dtype from : kInts) {
    for (Dtype to : kInts) {
      for (Redop op : kOps) {
        for (unsigned mode = 0; mode < 16; ++mode) {
          const Command c{.op = op,
                          .from = from,
                          .to = to,
                          .wide = true,
                          .saturate = (mode & 1) != 0,
                          .use_acc = (mode & 2) != 0,
                          .scalar = (mode & 4) != 0,
                          .to_acc = (mode & 8) != 0};
          if (c.scalar && op == Redop::PROD) continue;
          CAPTURE(wire::name(from), wire::name(to), wire::name(op), mode);
          CHECK(lanes.differences(c, 100) == 0);
        }
      }
    }
  }
}

TEST_CASE("int lanes: all pairs of 8 bits", "[nmc]") {
  IntLanes lanes;
  for (Dtype from : {Dtype::INT8, Dtype::UINT8}) {
    for (Redop op : kOps) {
      for (bool wide : {false, true}) {
        if (op == Redop::PROD && !wide) continue;
        for (Dtype to : {Dtype::INT8, Dtype::UINT8, Dtype::INT16}) {
          const Command c{.op = op, .from = from, .to = wide ? to : from, .wide = wide, .saturate = wide};
          if (!wide && to != Dtype::INT8) continue;
          CAPTURE(wire::name(from), wire::name(op), wire::name(to), wide);
          unsigned next = 0;
          CHECK(lanes.differences(c, 65536 / c.elements(), 0.0, Broken::None,
                                  [&](IntLanes::Step& step, test::Rng&) {
                                    for (unsigned i = 0; i < c.elements(); ++i, ++next) {
                                      test::set_bits(step.a, c.place(from, i), 8, next >> 8);
                                      test::set_bits(step.b, c.place(from, i), 8, next & 255);
                                    }
                                  }) == 0);
          CHECK(next == 65536);
        }
      }
    }
  }
}

TEST_CASE("int lanes: folds through the accumulator are the reference's reductions", "[nmc][random]") {
  IntLanes lanes;
  test::Rng rng(test::seed(), 1);
  constexpr Redop kFolds[] = {Redop::SUM, Redop::MAX, Redop::MIN,  Redop::AND,
                              Redop::OR,  Redop::XOR, Redop::PROD, Redop::PREMUL_SUM};
  for (unsigned round = 0; round < 3000; ++round) {
    num::Job job;
    job.from = kInts[rng.below(8)];
    job.to = kInts[rng.below(8)];
    job.op = kFolds[rng.below(8)];
    job.saturate = rng.chance(0.5);
    job.scalar = number(rng);
    const bool premul = job.op == Redop::PREMUL_SUM;
    Command c{.op = premul ? Redop::SUM : job.op, .from = job.from, .to = job.to, .wide = true};
    const unsigned k = static_cast<unsigned>(rng.range(premul ? 1 : 2, 6)), count = c.elements();
    const unsigned from_bytes = bits_in(job.from) / 8, to_bytes = bits_in(job.to) / 8;
    std::vector<std::vector<uint8_t>> data(k, std::vector<uint8_t>(count * from_bytes));
    std::vector<std::span<const uint8_t>> sources;
    for (auto& source : data) {
      for (unsigned i = 0; i < count; ++i) {
        const uint64_t x = number(rng);
        std::memcpy(&source[i * from_bytes], &x, from_bytes);
      }
      sources.emplace_back(source);
    }
    std::vector<uint8_t> want(count * to_bytes), got(count * to_bytes);
    const num::Flags flags = num::reduce(job, want, sources);

    IntLanes::Step step;
    const auto load = [&](IntLanes::Step::Words& words, unsigned source) {
      for (unsigned i = 0; i < count; ++i) {
        uint64_t x = 0;
        std::memcpy(&x, &data[source][i * from_bytes], from_bytes);
        test::set_bits(words, c.place(job.from, i), bits_in(job.from), x);
      }
    };
    step.live = ~0u;
    step.scalar = job.scalar;
    load(step.a, 0);
    c.saturate = job.saturate;
    if (k == 1) c.op = Redop::COPY;
    IntLanes::Step::Words res{};
    for (unsigned source = k == 1 ? 0 : 1; source < k; ++source) {
      load(step.b, source);
      c.use_acc = source > 1;
      c.to_acc = source + 1 < k;
      c.scalar = premul && !c.to_acc;  // the last sum is scaled: products and sums wrap
      if (c.use_acc) step.a = res;
      step.cmd = c.bits();
      res = lanes.one(step);
    }
    for (unsigned i = 0; i < count; ++i) {
      const uint64_t x = test::bits_of(res, c.place(job.to, i), bits_in(job.to));
      std::memcpy(&got[i * to_bytes], &x, to_bytes);
    }
    CAPTURE(round, wire::name(job.from), wire::name(job.to), wire::name(job.op), k, job.saturate);
    REQUIRE(got == want);
    REQUIRE(lanes.take_seen() == flags.overflow);
  }
}

TEST_CASE("int lanes: a reference with a broken rule is found out", "[nmc][fault]") {
  IntLanes lanes;
  struct Case {
    Broken fault;
    Command c;
  };
  const Case kCases[] = {
      {Broken::SumClamps, {.op = Redop::SUM, .from = Dtype::INT8, .to = Dtype::INT8}},
      {Broken::SumClamps, {.op = Redop::SUM, .from = Dtype::UINT16, .to = Dtype::UINT8, .wide = true}},
      {Broken::OrderUnsigned, {.op = Redop::MAX, .from = Dtype::INT16, .to = Dtype::INT16}},
      {Broken::OrderUnsigned, {.op = Redop::MIN, .from = Dtype::INT64, .to = Dtype::INT8, .wide = true}},
      {Broken::ZeroExtends, {.op = Redop::COPY, .from = Dtype::INT8, .to = Dtype::INT64, .wide = true}},
      {Broken::ZeroExtends, {.op = Redop::PROD, .from = Dtype::INT16, .to = Dtype::UINT32, .wide = true}},
      {Broken::SignExtends, {.op = Redop::COPY, .from = Dtype::UINT32, .to = Dtype::INT64, .wide = true}},
      {Broken::SignExtends, {.op = Redop::SUM, .from = Dtype::UINT8, .to = Dtype::INT16, .wide = true}},
      {Broken::ClampWraps,
       {.op = Redop::COPY, .from = Dtype::INT64, .to = Dtype::INT8, .wide = true, .saturate = true}},
      {Broken::NegativeWraps,
       {.op = Redop::SUM, .from = Dtype::INT32, .to = Dtype::UINT32, .wide = true, .saturate = true}},
      {Broken::ClampSilent,
       {.op = Redop::COPY, .from = Dtype::UINT64, .to = Dtype::INT64, .wide = true, .saturate = true}},
      {Broken::WordOverflow,
       {.op = Redop::SUM, .from = Dtype::INT16, .to = Dtype::INT8, .wide = true, .saturate = true}},
      {Broken::ProductHalf, {.op = Redop::PROD, .from = Dtype::INT64, .to = Dtype::INT64, .wide = true}},
      {Broken::ProductHalf, {.op = Redop::PROD, .from = Dtype::UINT32, .to = Dtype::INT32, .wide = true}},
      {Broken::ProductHalf,
       {.op = Redop::MAX, .from = Dtype::INT16, .to = Dtype::UINT64, .wide = true, .scalar = true}},
      {Broken::ScalarFirst,
       {.op = Redop::SUM, .from = Dtype::INT8, .to = Dtype::INT32, .wide = true, .scalar = true}},
  };
  for (const Case& x : kCases) {
    CAPTURE(static_cast<int>(x.fault), wire::name(x.c.from), wire::name(x.c.to));
    CHECK(lanes.differences(x.c, 100) == 0);
    CHECK(lanes.differences(x.c, 100, x.fault) > 0);
  }
}

TEST_CASE("int lanes: a step that they do not serve is refused", "[nmc][fault]") {
  for (const Command& c :
       {Command{.op = Redop::PROD}, Command{.from = Dtype::INT8, .to = Dtype::INT16}, Command{.scalar = true},
        Command{.op = Redop::PROD, .wide = true, .scalar = true}}) {
    IntLanes lanes;
    lanes.bench().expect_assertion();
    IntLanes::Step step;
    step.cmd = c.bits();
    lanes.drive(step);
    lanes.bench().tick();
    CHECK(lanes.bench().assertion_fired());
  }
}
