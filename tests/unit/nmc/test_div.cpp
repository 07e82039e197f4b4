// SPDX-License-Identifier: Apache-2.0
//
// The lanes that divide, against C++'s own division: numbers of every size, every divisor, and what is
// kept from one byte to the next.
#include <deque>
#include <type_traits>
#include <vector>

#include "../../../sw/ref/numerics.h"
#include "Vnmc_div.h"
#include "weft_test.h"

using namespace weft;

namespace {

constexpr unsigned kLanes = 16;

struct Word {
  uint64_t x;
  uint32_t kept;
};

class Dividers {
 public:
  Dividers() {
    bench_->valid_i = 0;
    bench_.reset();
  }

  // Quotients of `numbers`, of 2^size bytes each, whatever stands above them in their words.
  std::vector<uint64_t> divide(unsigned size, bool is_signed, unsigned divisor,
                               const std::vector<uint64_t>& numbers) {
    std::vector<Word> words;
    for (uint64_t x : numbers) words.push_back({x, static_cast<uint32_t>(rng_())});  // not looked at yet
    words.resize((words.size() + kLanes - 1) / kLanes * kLanes);
    const unsigned bytes = 1u << size;
    for (unsigned byte = 0; byte < bytes; ++byte) pass(size, is_signed, byte == 0, divisor, words);
    const uint64_t mask = size == 3 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
    std::vector<uint64_t> out;
    for (size_t i = 0; i < numbers.size(); ++i) out.push_back((words[i].x + (words[i].kept & 1)) & mask);
    return out;
  }

 private:
  void pass(unsigned size, bool is_signed, bool first, unsigned divisor, std::vector<Word>& words) {
    size_t in = 0, out = 0;
    std::deque<uint64_t> due;  // cycles in which results have to come
    for (uint64_t cycle = 0; out < words.size(); ++cycle) {
      const bool go = in < words.size() && !rng_.chance(0.2);
      bench_->valid_i = go;
      // struct div_cmd_t; and not the command's business without a step.
      bench_->cmd_i = go ? size << 2 | unsigned{is_signed} << 1 | unsigned{first} : rng_() & 15;
      bench_->divisor_i = go ? divisor : 1;
      if (go) {
        for (unsigned i = 0; i < kLanes; ++i, ++in) {
          bench_->x_i[2 * i] = static_cast<uint32_t>(words[in].x);
          bench_->x_i[2 * i + 1] = static_cast<uint32_t>(words[in].x >> 32);
          bench_->kept_i[i] = words[in].kept;
        }
        due.push_back(cycle + 9);  // IntDivLatency
      }
      bench_.eval();
      const bool expected = !due.empty() && due.front() == cycle;
      REQUIRE(bool(bench_->valid_o) == expected);
      if (expected) {
        due.pop_front();
        bench_.progress();
        for (unsigned i = 0; i < kLanes; ++i, ++out) {
          words[out].x = bench_->x_o[2 * i] | uint64_t{bench_->x_o[2 * i + 1]} << 32;
          words[out].kept = bench_->kept_o[i];
        }
      }
      bench_.tick();
    }
  }

  test::Rng rng_{test::seed(), 7};
  test::Bench<Vnmc_div> bench_{"weft_nmc_div"};
};

template <class Value>
uint64_t quotient(uint64_t x, unsigned n) {
  using Broad = std::conditional_t<std::is_signed_v<Value>, int64_t, uint64_t>;
  return static_cast<std::make_unsigned_t<Value>>(Broad{static_cast<Value>(x)} / static_cast<Broad>(n));
}

using Quotient = uint64_t (*)(uint64_t, unsigned);
constexpr Quotient kQuotients[2][4] = {
    {quotient<uint8_t>, quotient<uint16_t>, quotient<uint32_t>, quotient<uint64_t>},
    {quotient<int8_t>, quotient<int16_t>, quotient<int32_t>, quotient<int64_t>}};

// How many are not what `model` says.
uint64_t differences(Dividers& lanes, unsigned size, bool is_signed, unsigned n,
                     const std::vector<uint64_t>& numbers, Quotient model) {
  const std::vector<uint64_t> got = lanes.divide(size, is_signed, n, numbers);
  uint64_t wrong = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (got[i] == model(numbers[i], n)) continue;
    if (wrong++ == 0) test::event("%llx / %u: %llx", numbers[i], n, got[i]);
  }
  return wrong;
}

}  // namespace

TEST_CASE("div: every number of 8 bits, and every one of 16, by every divisor", "[nmc]") {
  Dividers lanes;
  test::Rng rng(test::seed(), 8);
  for (unsigned size : {0u, 1u}) {
    std::vector<uint64_t> all;
    for (uint64_t x = 0; x < (uint64_t{1} << (8u << size)); ++x) all.push_back(rng() << 16 << 16 | x);
    for (bool is_signed : {false, true}) {
      // Of 16 bits a few divisors; the other ones in turn, by the seed.
      for (unsigned n = 1; n <= num::kMaxSources; ++n) {
        if (size == 1 && n > 3 && n != 63 && n != 64 && n % 8 != test::seed() % 8) continue;
        CAPTURE(size, is_signed, n);
        CHECK(differences(lanes, size, is_signed, n, all, kQuotients[is_signed][size]) == 0);
      }
    }
  }
}

TEST_CASE("div: long numbers, near the ends, near multiples and any, by every divisor", "[nmc][random]") {
  Dividers lanes;
  test::Rng rng(test::seed(), 9);
  for (unsigned size : {2u, 3u}) {
    for (bool is_signed : {false, true}) {
      for (unsigned n = 1; n <= num::kMaxSources; ++n) {
        std::vector<uint64_t> some;
        for (unsigned i = 0; i < 320; ++i) {
          const uint64_t r = rng();
          uint64_t x = rng() >> (r & 63);
          if ((r >> 8 & 3) == 0) x = x / n * n + (r >> 16 & 3) - 1;
          if ((r >> 8 & 3) == 1) x = (uint64_t{1} << (r >> 16 & 63)) + (r >> 24 & 3) - 2;
          some.push_back((r >> 32 & 1) != 0 ? ~x : x);
        }
        CAPTURE(size, is_signed, n);
        CHECK(differences(lanes, size, is_signed, n, some, kQuotients[is_signed][size]) == 0);
      }
    }
  }
}

TEST_CASE("div: a model that rounds down, or takes the sign for a digit, is found out", "[nmc]") {
  Dividers lanes;
  std::vector<uint64_t> all;
  for (uint64_t x = 0; x < 256; ++x) all.push_back(x);
  const Quotient down = [](uint64_t x, unsigned n) -> uint64_t {
    const int value = static_cast<int8_t>(x), d = static_cast<int>(n);
    return static_cast<uint8_t>(value / d - (value % d < 0));
  };
  CHECK(differences(lanes, 0, true, 7, all, down) > 0);
  CHECK(differences(lanes, 0, true, 7, all, quotient<uint8_t>) > 0);
  CHECK(differences(lanes, 0, false, 7, all, quotient<int8_t>) > 0);
}
