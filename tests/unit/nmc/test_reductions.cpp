// SPDX-License-Identifier: Apache-2.0
//
// Whole reductions: exact sums and MX blocks against exact arithmetic (wide.h), arrays of any length, in
// place, and what others suffered. test_nmc_reductions.py compares every combination with a model
// in fractions.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "nmc_cases.h"

using namespace weft;
using num::Flags;
using num::Job;
using wire::Dtype;
using wire::Redop;

namespace {

using Bytes = std::vector<uint8_t>;

constexpr Dtype kFloats[] = {Dtype::FLOAT64,  Dtype::FLOAT32,     Dtype::FLOAT16,
                             Dtype::BFLOAT16, Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E5M2};

Flags reduce(const Job& job, Bytes& dst, const std::vector<Bytes>& sources) {
  REQUIRE(num::check(job, static_cast<unsigned>(sources.size()), 0) == wire::Err::OK);
  const std::vector<std::span<const uint8_t>> spans(sources.begin(), sources.end());
  return num::reduce(job, dst, spans);
}

template <class F>
Bytes array_of(const std::vector<typename F::bits_type>& elements) {
  Bytes bytes(elements.size() * sizeof elements[0]);
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}
template <class F>
typename F::bits_type element(const Bytes& bytes, size_t i) {
  typename F::bits_type x;
  std::memcpy(&x, &bytes[i * sizeof x], sizeof x);
  return x;
}

// `count` elements made for a purpose; of blocks, whole ones.
Bytes random_array(test::Rng& rng, Dtype type, size_t count) {
  Bytes bytes(num::footprint(type, count));
  rng.fill(bytes);
  if (num::kind_of(type) == num::Kind::Float) {
    num::with_float(type, [&](auto f) {
      using F = decltype(f);
      for (size_t i = 0; i < count; ++i) {
        const auto x = test::float_of<F>(rng);
        std::memcpy(&bytes[i * sizeof x], &x, sizeof x);
      }
    });
  }
  return bytes;
}

std::vector<Job> all_jobs() {
  std::vector<Job> jobs;
  for (unsigned from = 0; from < 32; ++from) {
    for (unsigned to = 0; to < 32; ++to) {
      for (unsigned op = 0; op <= static_cast<unsigned>(Redop::COPY); ++op) {
        const Job job{.from = static_cast<Dtype>(from),
                      .to = static_cast<Dtype>(to),
                      .op = static_cast<Redop>(op),
                      .scalar = 0x3f00'0000'3f00'0000};
        if (num::check(job, 1, 0) == wire::Err::OK) jobs.push_back(job);
      }
    }
  }
  return jobs;
}

// Sums of `k` random terms of F by `sum(terms, flags)`: how many of `cases` are wrong.
template <class F, class Fn>
uint64_t exact_faults(uint64_t cases, Fn sum_of) {
  using W = test::Wide<F>;
  test::Rng rng(test::seed(), 21);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < cases; ++i) {
    const size_t k = rng.below(4) == 0 ? 64 : rng.range(1, 8);
    const uint64_t near = rng.below(F::kMax >> F::kFrac);
    std::vector<typename F::bits_type> terms(k);
    // Finite, of a like size, so that they cancel; some of any size, to decide a tie from far below.
    for (auto& x : terms) {
      const uint64_t field = rng.below(8) == 0 ? rng.below(F::kMax >> F::kFrac)
                                               : std::min<uint64_t>(near + rng.below(rng.below(2) ? 3 : 12),
                                                                    F::kMax >> F::kFrac);
      x = test::make_float<F>(rng(), field, test::fraction_of<F>(rng));
      if (!F::is_finite(x)) x = F::kMax;
    }
    W exact;
    for (auto x : terms) exact = exact + W::template of<F>(x);
    Flags flags;
    const auto got = sum_of(terms, &flags);
    if (exact.zero()) {
      wrong += got != 0 || flags != Flags{};
    } else {
      wrong += test::fault_of<F>(exact, got, flags, false) != nullptr;
    }
  }
  return wrong;
}

// 2^e in binary32.
uint32_t power(int e) {
  return std::bit_cast<uint32_t>(std::ldexp(1.0f, e));
}

template <class Fn>
void for_blocks(Fn fn) {
  fn(num::Float8E4m3{}, "MXFP8_E4M3");
  fn(num::Float8E5m2{}, "MXFP8_E5M2");
  fn(num::Float4E2m1{}, "MXFP4_E2M1");
}

template <class E>
uint8_t code_of(std::span<const uint8_t> block, size_t i) {
  if (!num::Mx<E>::kHalfBytes) return block[1 + i];
  return i % 2 ? block[1 + i / 2] >> 4 : block[1 + i / 2] & 15;
}

// What is wrong with a block made of finite values by `quantise`, or nullptr.
template <class E, class Fn>
const char* block_fault(const std::array<uint32_t, 32>& values, Fn quantise) {
  using W = test::Wide<num::Float32>;
  std::array<uint8_t, num::Mx<E>::kBytes> block;
  Flags flags;
  quantise(values, block, &flags);
  float largest = 0;
  for (uint32_t v : values) largest = std::max(largest, std::fabs(std::bit_cast<float>(v)));
  int shared = -127;
  if (largest > 0) shared = std::max(-127, std::ilogb(largest) - E::kEmax);
  if (block[0] != shared + 127) return "scale";
  bool inexact = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t code = code_of<E>(block, i);
    if (E::negative(code) != num::Float32::negative(values[i])) return "sign";
    const W size = W::product(values[i], power(-shared)).size();
    const auto place = test::place_of<E>(size, E::magnitude(code));
    const bool clamped = test::overflows<E>(size);
    if (clamped ? E::magnitude(code) != E::kMax : !place.right) return "not the nearest";
    inexact |= !place.exact;
  }
  return flags == Flags{false, false, inexact} ? nullptr : "flags";
}

}  // namespace

TEST_CASE("reductions: exact sums are rounded once", "[nmc][random]") {
  const auto check = [](auto format, uint64_t cases) {
    using F = decltype(format);
    CHECK(exact_faults<F>(cases, [](const auto& terms, Flags* flags) {
            num::ExactSum<F> sum;
            for (auto x : terms) sum.add(x);
            return sum.result(flags);
          }) == 0);
    // A left fold in binary32 is something else, but for e4m3, whose 64 terms fit 24 bits.
    const uint64_t folded = exact_faults<F>(cases, [](const auto& terms, Flags* flags) {
      uint32_t sum = num::convert<F, num::Float32>(terms[0]);
      for (size_t k = 1; k < terms.size(); ++k) {
        sum = num::add<num::Float32>(sum, num::convert<F, num::Float32>(terms[k]), flags);
      }
      const auto x = num::convert<num::Float32, F>(sum, flags);
      return F::magnitude(x) == 0 ? typename F::bits_type{0} : x;
    });
    if (std::is_same_v<F, num::Float8E4m3>) CHECK(folded == 0);
    if (std::is_same_v<F, num::Bfloat16>) CHECK(folded > 100);
  };
  check(num::Float16{}, 100'000);
  check(num::Bfloat16{}, 100'000);
  check(num::Float8E4m3{}, 100'000);
  check(num::Float8E5m2{}, 400'000);
  check(num::Float32{}, 20'000);
}

TEST_CASE("reductions: infinities and NaN in an exact sum", "[nmc]") {
  const auto check = [](auto format) {
    using F = decltype(format);
    using Bits = typename F::bits_type;
    const Bits inf = F::kInf, minus_inf = F::kInf | F::kSign, nan = F::kNan | F::kSign;
    const Bits largest = F::kMax;
    const auto sum = [](std::vector<Bits> terms, Flags want, bool saturate = false) {
      Flags flags;
      num::ExactSum<F> s;
      for (Bits x : terms) s.add(x);
      const Bits got = s.result(&flags, saturate);
      CHECK(flags == want);
      return got;
    };
    constexpr Flags kNone{}, kInvalid{true, false, false}, kOver{false, true, true};
    for (const Bits x : {Bits{0}, Bits{1}, largest, static_cast<Bits>(largest | F::kSign)}) {
      CHECK(sum({inf, x}, kNone) == inf);
      CHECK(sum({x, minus_inf}, kNone) == minus_inf);
      CHECK(sum({minus_inf, x, minus_inf}, kNone) == minus_inf);
      CHECK(sum({inf, x, minus_inf}, kInvalid) == F::kNan);
      CHECK(sum({minus_inf, x, inf}, kInvalid) == F::kNan);
      CHECK(sum({x, nan}, kNone) == F::kNan);
      CHECK(sum({inf, nan, x, minus_inf}, kNone) == F::kNan);
      CHECK(sum({inf, x}, kOver, true) == largest);
      CHECK(sum({minus_inf, x}, kOver, true) == (largest | F::kSign));
    }
    CHECK(sum({largest, largest, largest}, kOver) == inf);
  };
  check(num::Float16{});
  check(num::Bfloat16{});
  check(num::Float8E5m2{});
}

TEST_CASE("reductions: the order of the sources matters to a sum, not to an exact one", "[nmc]") {
  const auto check = [](Dtype type) {
    num::with_float(type, [&](auto format) {
      using F = decltype(format);
      using Bits = typename F::bits_type;
      // `big`, half its last place, and the smallest number, which decides the tie unless binary32 lost it.
      const uint64_t field = F::kMax >> F::kFrac;
      const Bits big = test::make_float<F>(0, field, 0),
                 half = test::make_float<F>(0, field - F::kFrac - 1, 0);
      const Bits up = static_cast<Bits>(big + 1);
      const auto sum = [&](std::vector<Bits> terms, bool exact) {
        std::vector<Bytes> sources;
        for (Bits x : terms) sources.push_back(array_of<F>({x}));
        Bytes out(sizeof(Bits));
        reduce({.from = type, .to = type, .op = Redop::SUM, .exact = exact}, out, sources);
        return element<F>(out, 0);
      };
      CHECK(sum({big, half, 1}, false) == up);  // the last step is rounded once
      CHECK(sum({big, 1, half}, false) == big);
      std::vector<Bits> terms = {big, half, 1};
      std::sort(terms.begin(), terms.end());
      do CHECK(sum(terms, true) == up);
      while (std::next_permutation(terms.begin(), terms.end()));
    });
  };
  check(Dtype::FLOAT16);
  check(Dtype::BFLOAT16);
  check(Dtype::FLOAT8_E5M2);
}

TEST_CASE("reductions: exact sums take 2^16 terms, whatever they are", "[nmc]") {
  const auto check = [](auto format) {
    using F = decltype(format);
    num::ExactSum<F> sum;
    for (uint64_t i = 0; i < num::ExactSum<F>::kMaxTerms / 2 - 1; ++i) sum.add(F::kMax);
    for (uint64_t i = 0; i < num::ExactSum<F>::kMaxTerms / 2 - 1; ++i) {
      sum.add(static_cast<typename F::bits_type>(F::kMax | F::kSign));
    }
    CHECK(sum.result() == 0);
    sum.add(1);  // the smallest number there is
    CHECK(sum.result() == 1);
    sum.add(F::kMax);
    CHECK(sum.result() == F::kMax);
  };
  check(num::Float16{});
  check(num::Bfloat16{});
  check(num::Float8E4m3{});
  check(num::Float8E5m2{});
}

TEST_CASE("reductions: every element under every scale is dequantised", "[nmc]") {
  for_blocks([](auto format, const char* name) {
    using E = decltype(format);
    using W = test::Wide<num::Float32>;
    CAPTURE(name);
    constexpr unsigned kCodes = 2u << (E::kExp + E::kFrac);
    uint64_t wrong = 0;
    for (unsigned scale = 0; scale < 256; ++scale) {
      for (unsigned code = 0; code < kCodes; ++code) {
        std::array<uint8_t, num::Mx<E>::kBytes> block;
        block.fill(num::Mx<E>::kHalfBytes ? static_cast<uint8_t>(code * 17) : static_cast<uint8_t>(code));
        block[0] = static_cast<uint8_t>(scale);
        std::array<uint32_t, 32> values;
        Flags flags;
        num::Mx<E>::dequantise(block, values, &flags);
        const uint8_t x = static_cast<uint8_t>(code);
        uint32_t special = 0;
        bool is_special = true;
        if (scale == 255 || E::is_nan(x)) {
          special = num::Float32::kNan;
        } else if (E::is_inf(x)) {
          special = num::Float32::kInf;
        } else if (E::magnitude(x) != 0) {
          is_special = false;
        }
        if (!E::is_nan(x) && scale != 255 && E::negative(x)) special |= num::Float32::kSign;
        for (uint32_t v : values) {
          if (is_special) {
            wrong += v != special || flags != Flags{};
          } else {
            const W exact =
                W::product(num::convert<E, num::Float32>(x), power(static_cast<int>(scale) - 127));
            wrong += test::fault_of<num::Float32>(exact, v, flags, false) != nullptr;
          }
        }
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("reductions: every scale and element of a block follows the MX rule", "[nmc]") {
  for_blocks([](auto format, const char* name) {
    using E = decltype(format);
    CAPTURE(name);
    test::Rng rng(test::seed(), 31);
    const auto right = [](const auto& values, auto& block, Flags* flags) {
      num::Mx<E>::quantise(values, block, flags);
    };
    // The largest of each block has exponent field `top`; the others all fields down to where they are
    // zero, all upper fractions, with the rest 0, half a place or just beside.
    uint64_t blocks = 0, wrong = 0, wrong_scale = 0, wrong_tie = 0;
    for (uint32_t top = 0; top < 255; ++top) {
      std::array<uint32_t, 32> values{};
      size_t n = 1;
      const auto flush = [&] {
        constexpr uint32_t kEnds[] = {0, 0x7fffff};  // a power of two, and just below the next
        const uint64_t pick = rng.below(4);
        values[0] = top << 23 | (pick < 2 ? kEnds[pick] : static_cast<uint32_t>(rng()) & 0x7fffff);
        for (size_t i = 1; i < 32; ++i) {  // no larger than the first one
          if (num::Float32::magnitude(values[i]) > values[0]) values[i] = values[0];
        }
        std::swap(values[0], values[rng.below(32)]);
        ++blocks;
        wrong += block_fault<E>(values, right) != nullptr;
        wrong_scale += block_fault<E>(values, [&](const auto& v, auto& block, Flags* flags) {
                         right(v, block, flags);
                         block[0] += v[0] & 1;
                       }) != nullptr;
        wrong_tie += block_fault<E>(values, [&](auto v, auto& block, Flags* flags) {
                       for (auto& x : v) x &= ~uint32_t{0xff};  // loses what is just beside half
                       right(v, block, flags);
                     }) != nullptr;
        n = 1;
      };
      for (uint32_t down = 0; down <= E::kEmax + E::kBias + E::kFrac + 2u && down <= top; ++down) {
        for (uint32_t fraction = 0; fraction < 32; ++fraction) {
          for (uint32_t rest : {0u, 1u, 0x3ffffu}) {
            values[n++] = static_cast<uint32_t>(rng()) << 31 | (top - down) << 23 | fraction << 18 | rest;
            if (n == 32) flush();
          }
        }
      }
      flush();
    }
    CHECK(blocks > 5'000);
    CHECK(wrong == 0);
    CHECK(wrong_scale > 100);
    CHECK(wrong_tie > 100);
  });
}

TEST_CASE("reductions: NaN, infinity and zeros in a block", "[nmc]") {
  const auto make = [](auto format, uint32_t special, uint32_t other, Flags* flags) {
    using M = num::Mx<decltype(format)>;
    std::array<uint32_t, 32> values;
    values.fill(other);
    values[5] = special;
    std::array<uint8_t, M::kBytes> block;
    M::quantise(values, block, flags);
    return Bytes(block.begin(), block.end());
  };
  constexpr uint32_t kOne = 0x3f800000, kSign = num::Float32::kSign;
  const Flags none, clamped{false, true, true};
  Flags flags;
  Bytes b = make(num::Float8E4m3{}, num::Float32::kNan, kOne, &flags);
  CHECK((b[0] == 127 - 8 && b[1 + 5] == 0x7f && b[1] == 0x78 && flags == none));  // 1 = 256 x 2^-8
  b = make(num::Float8E4m3{}, num::Float32::kInf | kSign, kOne, &flags);
  CHECK((b[0] == 127 - 8 && b[1 + 5] == 0xfe && b[1] == 0x78 && flags == clamped));
  flags = {};
  b = make(num::Float8E5m2{}, num::Float32::kNan, kOne, &flags);
  CHECK((b[0] == 127 - 15 && b[1 + 5] == 0x7e && b[1] == 0x78 && flags == none));
  b = make(num::Float8E5m2{}, num::Float32::kInf, kOne, &flags);
  CHECK((b[0] == 127 - 15 && b[1 + 5] == 0x7b && flags == clamped));
  for (uint32_t special : {num::Float32::kNan, num::Float32::kInf}) {
    flags = {};
    b = make(num::Float4E2m1{}, special, kOne, &flags);
    CHECK((b[0] == 0xff && std::all_of(b.begin() + 1, b.end(), [](uint8_t x) { return x == 0; })));
    CHECK(flags == (special == num::Float32::kInf ? clamped : none));
  }
  flags = {};
  b = make(num::Float8E4m3{}, kSign, 0, &flags);
  CHECK((b[0] == 0 && b[1] == 0 && b[1 + 5] == 0x80 && flags == none));
}

TEST_CASE("reductions: any number of elements, each by itself, and in place", "[nmc][random]") {
  test::Rng rng(test::seed(), 41);
  for (const Job& job : all_jobs()) {
    CAPTURE(wire::name(job.from), wire::name(job.to), wire::name(job.op));
    const size_t unit = num::elements_of(job.to, num::length_unit(job.from, job.to));
    const size_t k = job.op == Redop::COPY ? 1 : rng.range(1, 4);
    const size_t count = unit * (unit > 1 ? rng.below(10) : rng.below(300));
    std::vector<Bytes> sources;
    for (size_t s = 0; s < k; ++s) sources.push_back(random_array(rng, job.from, count));
    Bytes whole(num::footprint(job.to, count)), parts;
    Flags flags, flags_of_parts;
    flags = reduce(job, whole, sources);
    for (size_t i = 0; i < count; i += unit) {
      std::vector<Bytes> one;
      const size_t from = num::footprint(job.from, i), to = num::footprint(job.from, i + unit);
      for (const Bytes& s : sources) one.emplace_back(s.begin() + from, s.begin() + to);
      Bytes part(num::footprint(job.to, unit));
      flags_of_parts |= reduce(job, part, one);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    CHECK(parts == whole);
    CHECK(flags_of_parts == flags);
    if (job.from != job.to) continue;
    for (size_t s = 0; s < k; ++s) {
      std::vector<Bytes> data = sources;
      const std::vector<std::span<const uint8_t>> spans(data.begin(), data.end());
      num::reduce(job, data[s], spans);
      CHECK(data[s] == whole);
    }
  }
}

TEST_CASE("case software 7: a NaN in any one source gives the same answer, by either rule", "[nmc]") {
  for (Dtype type : kFloats) {
    num::with_float(type, [&](auto format) {
      using F = decltype(format);
      const auto number = [](double x) { return num::convert<num::Float64, F>(std::bit_cast<uint64_t>(x)); };
      for (size_t k = 2; k <= 5; ++k) {
        for (size_t at = 0; at < k; ++at) {
          std::vector<Bytes> sources;
          for (size_t s = 0; s < k; ++s) {
            sources.push_back(array_of<F>({s == at ? F::kNan : number(1.0 + static_cast<double>(s))}));
          }
          Bytes out(sizeof(typename F::bits_type));
          const double least = at == 0 ? 2 : 1, most = static_cast<double>(at == k - 1 ? k - 1 : k);
          reduce({.from = type, .to = type, .op = Redop::MIN}, out, sources);
          CHECK(element<F>(out, 0) == number(least));
          reduce({.from = type, .to = type, .op = Redop::MAX}, out, sources);
          CHECK(element<F>(out, 0) == number(most));
          for (Redop op : {Redop::MIN, Redop::MAX}) {
            reduce({.from = type, .to = type, .op = op, .propagate_nan = true}, out, sources);
            CHECK(element<F>(out, 0) == F::kNan);
          }
        }
      }
    });
  }
}

TEST_CASE("case software 8: a bfloat16 sum of 64 is within half a place and the rounding of binary32",
          "[nmc][random]") {
  using B = num::Bfloat16;
  test::Rng rng(test::seed(), 51);
  const auto real = [](uint16_t x) { return double{std::bit_cast<float>(uint32_t{x} << 16)}; };
  double worst_by_step = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<Bytes> sources;
    double exact = 0, sizes = 0;  // 8 bits over some 20 exponents: a double holds it
    uint16_t by_step = 0;
    for (int k = 0; k < 64; ++k) {
      const uint16_t x = test::make_float<B>(rng(), 120 + rng.below(10), rng());
      sources.push_back(array_of<B>({x}));
      exact += real(x);
      sizes += std::fabs(real(x));
      by_step = num::add<B>(by_step, x);
    }
    Bytes out(2), exactly(2);
    reduce({.from = Dtype::BFLOAT16, .to = Dtype::BFLOAT16, .op = Redop::SUM}, out, sources);
    const double got = real(element<B>(out, 0)), half_place = std::ldexp(1.0, std::ilogb(got) - 8);
    CHECK(std::fabs(got - exact) <= half_place + 62 * sizes * 0x1p-24);
    worst_by_step = std::max(worst_by_step, std::fabs(real(by_step) - exact) / half_place);
    reduce({.from = Dtype::BFLOAT16, .to = Dtype::BFLOAT16, .op = Redop::SUM, .exact = true}, exactly,
           sources);
    CHECK(std::fabs(real(element<B>(exactly, 0)) - exact) <= half_place);
  }
  CHECK(worst_by_step > 4);  // what rounding to bfloat16 after every step would cost
}

TEST_CASE("case software 10: the same sources give the same bits", "[nmc]") {
  test::Rng rng(test::seed(), 61);
  for (Dtype type : kFloats) {
    std::vector<Bytes> sources;
    for (int k = 0; k < 7; ++k) sources.push_back(random_array(rng, type, 1000));
    Bytes first(num::footprint(type, 1000)), again(first.size());
    reduce({.from = type, .to = type, .op = Redop::SUM}, first, sources);
    for (int i = 0; i < 200; ++i) {
      reduce({.from = type, .to = type, .op = Redop::SUM}, again, sources);
      if (again != first) FAIL("another result in run " << i);
    }
  }
}

TEST_CASE("case software 11: int8 wraps, or is summed in a wider type, and an average is of that sum",
          "[nmc]") {
  const auto sum = [](Dtype to, bool saturate) {
    Bytes out(num::bytes_of(to));
    const Flags flags =
        reduce({.from = Dtype::INT8, .to = to, .op = Redop::SUM, .saturate = saturate}, out, {{120}, {100}});
    CHECK(flags == Flags{});
    return out;
  };
  CHECK(sum(Dtype::INT8, false) == Bytes{static_cast<uint8_t>(-36)});
  CHECK(sum(Dtype::INT8, true) == Bytes{static_cast<uint8_t>(-36)});  // the sum has wrapped before
  CHECK(sum(Dtype::INT16, false) == Bytes{220, 0});
  Bytes out(1);
  const Flags flags = reduce({.from = Dtype::INT16, .to = Dtype::INT8, .op = Redop::SUM, .saturate = true},
                             out, {{120, 0}, {100, 0}});
  CHECK(out == Bytes{127});
  CHECK(flags == Flags{false, true, false});
  const auto mean = [](Dtype from, Dtype to, uint64_t n, const std::vector<Bytes>& sources) {
    Bytes out(num::bytes_of(to));
    CHECK(reduce({.from = from, .to = to, .op = Redop::AVG, .scalar = n}, out, sources) == Flags{});
    return static_cast<int8_t>(out[0]);
  };
  CHECK(mean(Dtype::INT8, Dtype::INT8, 2, {{120}, {100}}) == -18);   // the sum has wrapped before
  CHECK(mean(Dtype::INT8, Dtype::INT16, 2, {{120}, {100}}) == 110);  // it has not
  CHECK(mean(Dtype::UINT8, Dtype::UINT8, 2, {{120}, {100}}) == 110);
  CHECK(mean(Dtype::INT8, Dtype::INT8, 2, {{3}, {0xfa}}) == -1);  // -3 / 2, towards zero
  CHECK(mean(Dtype::INT8, Dtype::INT8, 3, {{7}}) == 2);
  CHECK(mean(Dtype::INT8, Dtype::INT8, 1, {{0x80}}) == -128);
  CHECK(mean(Dtype::INT64, Dtype::INT8, 64, {{0, 0xe0, 255, 255, 255, 255, 255, 255}}) == -128);
  for (uint64_t n : {uint64_t{0}, uint64_t{65}, ~uint64_t{0}}) {
    const num::Job job{.from = Dtype::INT8, .to = Dtype::INT8, .op = Redop::AVG, .scalar = n};
    CHECK(num::check(job, 2, 0) == wire::Err::BAD_SOURCES);
  }
}

TEST_CASE("a mean that is finite comes out finite, though the sum is not", "[nmc]") {
  const auto mean = [](Dtype type, uint64_t half, uint64_t x) {
    const size_t size = num::bytes_of(type);
    Bytes one(size), out(size);
    std::memcpy(one.data(), &x, size);
    const Flags flags = reduce({.from = type, .to = type, .op = Redop::AVG, .scalar = half}, out, {one, one});
    CHECK(out == one);
    CHECK(flags == Flags{});
  };
  const uint32_t half = 0x3f000000;
  mean(Dtype::BFLOAT16, half, 0x7f7f);
  mean(Dtype::FLOAT32, half, 0x7f7fffff);
  mean(Dtype::FLOAT64, 0x3fe0000000000000, 0x7fefffffffffffff);
  mean(Dtype::FLOAT16, half, 0x7bff);
  mean(Dtype::FLOAT8_E4M3, half, 0x7e);
}

TEST_CASE("case software 12: fp8 sums write every element, and a NaN only beyond the range", "[nmc]") {
  // Every finite pair, 64 elements at a time.
  using F = num::Float8E4m3;
  unsigned beyond = 0;
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b0 = 0; b0 < 256; b0 += 64) {
      Bytes x(64, static_cast<uint8_t>(a)), y(64), out(64, 0x55), clamped(64, 0x55);
      for (unsigned i = 0; i < 64; ++i) y[i] = static_cast<uint8_t>(b0 + i);
      reduce({.from = Dtype::FLOAT8_E4M3, .to = Dtype::FLOAT8_E4M3, .op = Redop::SUM}, out, {x, y});
      reduce({.from = Dtype::FLOAT8_E4M3, .to = Dtype::FLOAT8_E4M3, .op = Redop::SUM, .saturate = true},
             clamped, {x, y});
      for (unsigned i = 0; i < 64; ++i) {
        if (!F::is_finite(x[i]) || !F::is_finite(y[i])) {
          CHECK((out[i] == F::kNan && clamped[i] == F::kNan));
          continue;
        }
        const auto real = [](uint8_t code) {
          return std::bit_cast<float>(num::convert<F, num::Float32>(code));
        };
        const float sum = real(x[i]) + real(y[i]);
        const bool fits = std::fabs(sum) <= 464;  // half-way to the next step beyond 448
        beyond += !fits;
        if (F::is_nan(out[i]) == fits || F::is_nan(clamped[i])) FAIL("a " << a << " b " << b0 + i);
        if (fits ? clamped[i] != out[i] : F::magnitude(clamped[i]) != F::kMax)
          FAIL("a " << a << " b " << b0 + i);
      }
    }
  }
  CHECK(beyond > 100);
}
