// SPDX-License-Identifier: Apache-2.0
//
// Drives weft_nmc_float: steps in, results and flags compared with what each step is told to expect,
// in exactly the cycle in which they are due.
#pragma once

#include <array>
#include <cstdint>

#include "../../../sw/ref/numerics.h"
#include "weft_test.h"

namespace weft::test {

// The constants of weft_nmc_pkg.
inline constexpr unsigned kFloatLatency = 8, kMulLatency = 13;
enum class FloatOp : uint8_t { Sum, Max, Min, Mul, Convert };
enum class Fmt : uint8_t { Fp32, Bf16, Fp16, E5m2, E4m3, E2m1 };

template <class F>
inline constexpr Fmt kFmt = Fmt::Fp32;
template <>
inline constexpr Fmt kFmt<num::Bfloat16> = Fmt::Bf16;
template <>
inline constexpr Fmt kFmt<num::Float16> = Fmt::Fp16;
template <>
inline constexpr Fmt kFmt<num::Float8E5m2> = Fmt::E5m2;
template <>
inline constexpr Fmt kFmt<num::Float8E4m3> = Fmt::E4m3;
template <>
inline constexpr Fmt kFmt<num::Float4E2m1> = Fmt::E2m1;

/// An element at the top of a 32-bit word.
template <num::IsFloat F>
constexpr uint32_t at_top(typename F::bits_type x) {
  return static_cast<uint32_t>(x) << (32 - 8 * sizeof x);
}
template <num::IsFloat F>
constexpr typename F::bits_type from_top(uint32_t word) {
  return static_cast<typename F::bits_type>(word >> (32 - 8 * sizeof(typename F::bits_type)));
}

inline constexpr unsigned kLanes = 32;
using Words = std::array<uint32_t, kLanes>;

/// float_cmd_t.
struct FloatCmd {
  FloatOp op{};
  Fmt from{}, to{};
  bool propagate_nan = false, saturate = false, use_acc = false, scalar = false, to_acc = false, odd = false;

  /// float_floor_e.
  uint32_t floor() const {
    const auto exponent = [](Fmt x) { return x == Fmt::E4m3 ? 4 : x == Fmt::Fp16 || x == Fmt::E5m2 ? 5 : 8; };
    if (exponent(from) <= exponent(to)) return 0;
    return exponent(from) == 5 ? 1 : exponent(to) == 5 ? 2 : 3;
  }
  uint32_t bits() const {
    const Fmt a_fmt = use_acc ? Fmt::Fp32 : from;
    return static_cast<uint32_t>(unsigned{odd} | unsigned{to_acc} << 1 | unsigned{scalar} << 2 |
                                 unsigned{use_acc} << 3 | unsigned{saturate} << 4 |
                                 unsigned{propagate_nan} << 5 | static_cast<unsigned>(to) << 6 |
                                 static_cast<unsigned>(from) << 9 | static_cast<unsigned>(op) << 12 |
                                 static_cast<unsigned>(a_fmt) << 15 | floor() << 18);
  }
};

struct FloatStep {
  FloatCmd cmd;
  uint32_t live = ~0u;
  uint32_t scalar = 0;
  Words a{}, b{}, acc{};  // elements at the top of their words
  bool late = false;      // what other lanes have just made is `other`, the factor is `scalar`
  Words other{};
  // What is to come out: `want` where it has bits in `mask`, and the flags. `out` gets all of the result.
  Words want{};
  uint32_t mask = 0;
  num::Flags flags;
  bool check_flags = true;
  Words* out = nullptr;
};

/// A build of the lanes, elements of at most kWidth bits, behind a driver; with kHalf those that add up what
/// others have made.
template <class Model, unsigned kWidth, bool kHalf = false>
class FloatLanes {
 public:
  explicit FloatLanes(double gaps, uint64_t stream = 1) : gap_(gaps, stream) {
    bench_->valid_i = 0;
    bench_.reset();
  }

  /// Runs the step, after some cycles without one.
  void push(const FloatStep& step) {
    while (!gap_.go() || (step.cmd.op != FloatOp::Mul && collides())) idle();
    const unsigned latency = step.cmd.op == FloatOp::Mul ? kMulLatency : kFloatLatency;
    bench_->valid_i = 1;
    bench_->cmd_i = step.cmd.bits();
    bench_->live_i = step.live;
    bench_->late_i = step.late;
    bench_->factor_i = step.cmd.scalar ? step.scalar : 0;
    const bool acc_in_a = kWidth == 32 && !kHalf && step.cmd.use_acc;
    pack(bench_->a_i, acc_in_a ? step.acc : step.a);
    pack(bench_->b_i, step.b);
    for (unsigned i = 0; i < kLanes; ++i) {
      bench_->acc_i[i] = step.acc[i];
      bench_->other_i[i] = step.other[i];
    }
    due(cycle_ + latency) = {true, step.want, step.mask, step.flags, step.check_flags, step.out};
    mul_[cycle_ % kRing] = step.cmd.op == FloatOp::Mul;
    advance();
    bench_->valid_i = 0;
  }
  void idle() {
    mul_[cycle_ % kRing] = false;
    advance();
  }
  /// Until nothing is inside.
  void drain() {
    for (unsigned i = 0; i < kRing; ++i) idle();
  }
  /// Results and flags that were not as wanted.
  uint64_t wrong() const { return wrong_; }
  uint64_t wrong_flags() const { return wrong_flags_; }
  uint64_t elements() const { return elements_; }
  Bench<Model>& bench() { return bench_; }

 private:
  static constexpr unsigned kRing = 16;
  struct Due {
    bool valid;
    Words want;
    uint32_t mask;
    num::Flags flags;
    bool check_flags;
    Words* out;
  };

  Due& due(uint64_t cycle) { return due_[cycle % kRing]; }
  bool collides() const {
    constexpr unsigned kApart = kMulLatency - kFloatLatency;
    return cycle_ >= kApart && mul_[(cycle_ - kApart) % kRing];
  }
  template <class Port>
  static void pack(Port& port, const Words& words) {
    if constexpr (kWidth == 32) {
      for (unsigned i = 0; i < kLanes; ++i) port[i] = words[i];
    } else {
      constexpr unsigned kPer = 32 / kWidth;
      for (unsigned i = 0; i < kLanes / kPer; ++i) {
        uint32_t word = 0;
        for (unsigned j = 0; j < kPer; ++j) word |= words[i * kPer + j] >> (32 - kWidth) << (j * kWidth);
        port[i] = word;
      }
    }
  }

  void advance() {
    bench_.eval();
    Due& now = due(cycle_);
    if (bench_->valid_o != now.valid) FAIL("a result out of its cycle");
    if (now.valid) look(now);
    const num::Flags raised{.invalid = (bench_->flags_o & 4) != 0,
                            .overflow = (bench_->flags_o & 2) != 0,
                            .inexact = (bench_->flags_o & 1) != 0};
    if (check_flags_ && !(raised == flags_) && wrong_flags_++ == 0) {
      bench_.event("flags %llx, to be %llx", bench_->flags_o,
                   unsigned{flags_.invalid} << 2 | unsigned{flags_.overflow} << 1 | unsigned{flags_.inexact});
    }
    flags_ = now.valid ? now.flags : num::Flags{};
    check_flags_ = !now.valid || now.check_flags;
    now.valid = false;
    bench_.tick();
    ++cycle_;
  }
  void look(const Due& now) {
    bench_.progress();
    elements_ += kLanes;
    for (unsigned i = 0; i < kLanes; ++i) {
      const uint32_t got = bench_->res_o[i];
      if (now.out != nullptr) (*now.out)[i] = got;
      if (((got ^ now.want[i]) & now.mask) == 0) continue;
      if (wrong_++ == 0)
        bench_.event("lane %llu: %08llx, to be %08llx", i, got & now.mask, now.want[i] & now.mask);
    }
  }

  Bench<Model> bench_{"weft_nmc_float"};
  Stall gap_;
  std::array<Due, kRing> due_{};
  std::array<bool, kRing> mul_{};
  uint64_t cycle_ = 0;
  uint64_t wrong_ = 0, wrong_flags_ = 0, elements_ = 0;
  num::Flags flags_;  // of the result before
  bool check_flags_ = true;
};

}  // namespace weft::test
