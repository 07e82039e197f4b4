// SPDX-License-Identifier: Apache-2.0
//
// Drives lanes that take steps of whole words (weft_nmc_int, weft_nmc_double): random gaps between the
// steps, each result compared when it comes out, flags a cycle later.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <utility>

#include "weft_test.h"

namespace weft::test {

/// A step; kWords is the number of 32-bit words of an operand.
template <unsigned kWords>
struct LaneStep {
  using Words = std::array<uint32_t, kWords>;
  uint32_t cmd = 0, live = 0;
  uint64_t scalar = 0;  // of lanes with a port for it
  Words a{}, b{};
};

/// Bits [at, at + bits) of the words, which do not cross a 64-bit word.
template <size_t kWords>
uint64_t bits_of(const std::array<uint32_t, kWords>& words, unsigned at, unsigned bits) {
  const unsigned w = at / 64 * 2;
  const uint64_t word = words[w] | uint64_t{words[w + 1]} << 32;
  return word >> (at % 64) & (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
}
template <size_t kWords>
void set_bits(std::array<uint32_t, kWords>& words, unsigned at, unsigned bits, uint64_t value) {
  const unsigned w = at / 64 * 2;
  const uint64_t mask = (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << (at % 64);
  uint64_t word = words[w] | uint64_t{words[w + 1]} << 32;
  word = (word & ~mask) | (value << (at % 64) & mask);
  words[w] = static_cast<uint32_t>(word);
  words[w + 1] = static_cast<uint32_t>(word >> 32);
}

/// The lanes `V`; flags_of(dut) reads their flags as a number.
template <class V, unsigned kWords, class FlagsOf>
class Lanes {
 public:
  using Step = LaneStep<kWords>;
  using Words = typename Step::Words;

  Lanes(const char* module, FlagsOf flags_of) : bench_(module), flags_of_(flags_of) {
    bench_->valid_i = 0;
    bench_.reset();
  }
  Bench<V>& bench() { return bench_; }

  static constexpr uint32_t kAnyFlags = ~0u;

  /// Takes make(step) to check(step, result) `steps` times. check returns the flags to be expected.
  template <class Make, class Check>
  void run(uint64_t steps, double gaps, Make make, Check check) {
    Stall gap(gaps, 1);
    std::deque<Step> inside;
    bool due = false;  // flags of the result of the cycle before
    uint32_t flags = 0;
    for (uint64_t sent = 0, got = 0; got < steps || due;) {
      if (const bool go = sent < steps && gap.go(); go) {
        inside.emplace_back();
        make(inside.back());
        drive(inside.back());
        ++sent;
      } else {
        bench_->valid_i = 0;
      }
      bench_.eval();
      const uint32_t seen = flags_of_(*bench_.operator->());
      seen_ |= seen;
      if (flags != kAnyFlags && seen != flags) {
        FAIL_CHECK("flags " << seen << " instead of " << flags);
        return;
      }
      due = false;
      flags = 0;
      if (bench_->valid_o) {
        bench_.progress();
        REQUIRE_FALSE(inside.empty());
        flags = check(inside.front(), result());
        due = true;
        inside.pop_front();
        ++got;
      }
      bench_.tick();
    }
    bench_->valid_i = 0;
  }

  /// One step alone, whatever its flags.
  Words one(const Step& step) {
    Words out{};
    run(
        1, 0.0, [&](Step& s) { s = step; },
        [&](const Step&, const Words& res) {
          out = res;
          return kAnyFlags;
        });
    return out;
  }
  /// All flags seen since the last call.
  uint32_t take_seen() { return std::exchange(seen_, 0); }

  void drive(const Step& step) {
    bench_->valid_i = 1;
    bench_->cmd_i = static_cast<std::remove_reference_t<decltype(bench_->cmd_i)>>(step.cmd);
    bench_->live_i = static_cast<std::remove_reference_t<decltype(bench_->live_i)>>(step.live);
    for (unsigned w = 0; w < kWords; ++w) {
      bench_->a_i[w] = step.a[w];
      bench_->b_i[w] = step.b[w];
    }
    if constexpr (requires(V & dut) { dut.scalar_i; }) bench_->scalar_i = step.scalar;
  }

 private:
  Words result() {
    Words out;
    for (unsigned w = 0; w < kWords; ++w) out[w] = bench_->res_o[w];
    return out;
  }

  Bench<V> bench_;
  FlagsOf flags_of_;
  uint32_t seen_ = 0;
};

}  // namespace weft::test
