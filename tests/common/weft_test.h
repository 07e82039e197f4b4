// SPDX-License-Identifier: Apache-2.0
//
// What every Weft test shares: one seed, random numbers, stall throttles, a log of the last events,
// and Bench<V>, which owns a verilated module with its clock, reset, watchdog and wave file.
//
//   SEED=7     the seed of everything random in the run (default 1, printed when a test fails)
//   WAVES=1    write waves, where the program is linked with a tracing model
//
// A cycle of a bench: set inputs, eval(), look at outputs, tick(). Outputs looked at between eval()
// and tick() are those the coming clock edge sees, so `valid && ready` there is a transfer.
//
//   Bench<Vweft_fifo> b;
//   b.reset();
//   while (got < n) {
//     b->s_valid_i = source.go();
//     b->m_ready_i = !stall.stalled();
//     b.eval();
//     if (b->m_valid_o && b->m_ready_i) { b.progress(); ... }
//     b.tick();
//   }
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

namespace weft::test {

/// Seed of the run: environment variable SEED, else 1.
uint64_t seed();

/// Directory of wave files (environment WEFT_WAVES_DIR, else build/waves), made if absent.
/// Returns the path for the running test: <dir>/<test name>.fst, then <test name>_2.fst and so on.
std::string next_wave_path();

/// Whether the environment asks for waves.
bool waves_wanted();

/// Notes what a bench is doing, for the report of a failure. Cheap: nothing is formatted until a
/// test fails. `format` must be a string literal with at most four integer conversions, written
/// for unsigned long long (%llu, %llx). The last 32 are kept.
void event(const char* format, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0);

/// Clock period of every bench: 322 MHz, as the datapath for 100G.
inline constexpr uint64_t kPeriod_ps = 3104;

/// Clock cycle and module of the bench now running, shown when a test fails.
void note_cycle(const char* module, uint64_t cycle);

/// Deterministic generator (xoshiro256**), the same on every machine. Satisfies
/// UniformRandomBitGenerator. Give each purpose its own, by a `stream` number.
class Rng {
 public:
  using result_type = uint64_t;
  explicit Rng(uint64_t seed_value = seed(), uint64_t stream = 0) {
    uint64_t x = seed_value + stream * 0x9e3779b97f4a7c15u;
    for (auto& word : state_) {  // splitmix64
      x += 0x9e3779b97f4a7c15u;
      uint64_t z = x;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() {
    const uint64_t result = rotl(state_[1] * 5, 7) * 9, t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }
  /// Uniform in [0, n); n > 0.
  uint64_t below(uint64_t n) { return static_cast<uint64_t>((static_cast<U128>((*this)()) * n) >> 64); }
  /// Uniform in [low, high], both included.
  uint64_t range(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  /// True with probability p.
  bool chance(double p) { return static_cast<double>((*this)() >> 11) * 0x1p-53 < p; }
  void fill(std::span<uint8_t> bytes) {
    for (auto& byte : bytes) byte = static_cast<uint8_t>((*this)());
  }

 private:
  __extension__ using U128 = unsigned __int128;
  static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<uint64_t, 4> state_{};
};

/// How often a stream is held back.
enum class Profile { None, Light, Half, Heavy, Bursts, Changing };
inline constexpr Profile kProfiles[] = {Profile::None,  Profile::Light,  Profile::Half,
                                        Profile::Heavy, Profile::Bursts, Profile::Changing};
const char* name_of(Profile profile);

/// Decides each cycle whether a stream is held back. Use one per valid and one per ready, each
/// with its own stream number. None 0 %, Light 10 %, Half 50 %, Heavy 90 %; Bursts alternates runs
/// of 1..40 cycles; Changing draws a new probability from 0 to 90 % every 64 cycles.
class Stall {
 public:
  Stall(Profile profile, uint64_t stream, uint64_t seed_value = seed())
      : rng_(seed_value, 0x57a11 + stream), profile_(profile) {
    switch (profile) {
      case Profile::Light: p_ = 0.1; break;
      case Profile::Half: p_ = 0.5; break;
      case Profile::Heavy: p_ = 0.9; break;
      default: break;
    }
  }
  /// A fixed probability, 0 to 0.9.
  Stall(double p, uint64_t stream, uint64_t seed_value = seed())
      : rng_(seed_value, 0x57a11 + stream), profile_(Profile::Half), p_(p) {}
  /// Call once a cycle.
  bool stalled() {
    if (profile_ == Profile::None || p_ == 0.0) {
      if (profile_ != Profile::Bursts && profile_ != Profile::Changing) return false;
    }
    if (profile_ == Profile::Bursts) {
      if (left_-- == 0) {
        left_ = rng_.range(0, 39);
        held_ = !held_;
      }
      return held_;
    }
    if (profile_ == Profile::Changing && left_-- == 0) {
      left_ = 63;
      p_ = 0.1 * static_cast<double>(rng_.below(10));
    }
    return rng_.chance(p_);
  }
  bool go() { return !stalled(); }

 private:
  Rng rng_;
  Profile profile_;
  double p_ = 0.0;
  uint64_t left_ = 0;
  bool held_ = true;
};

}  // namespace weft::test

// The rest needs a verilated model; a program without one may include this header too.
#if __has_include(<verilated.h>)
#include "tb/sim/owned_model.h"
#if defined(WEFT_TRACE) && WEFT_TRACE
#include <verilated_fst_c.h>
#endif

namespace weft::test {

/// A verilated module V whose clock is clk_i and whose reset, if it has one, is rst_i.
template <class V>
class Bench {
 public:
  /// `module` names it in messages. The model starts with random register values.
  explicit Bench(const char* module = "dut", uint64_t seed_value = seed())
      : module_(module), dut_(module, [&](VerilatedContext& context) {
          context.randReset(2);
          context.randSeed(static_cast<int>(seed_value % 0x7fffffff) + 1);
          context.fatalOnError(false);  // a failed assertion ends the test, not the program
#if defined(WEFT_TRACE) && WEFT_TRACE
          if (waves_wanted()) context.traceEverOn(true);
#endif
        }) {
#if defined(WEFT_TRACE) && WEFT_TRACE
    if (waves_wanted()) {
      wave_ = std::make_unique<VerilatedFstC>();
      dut_->trace(wave_.get(), 99);
      const std::string path = next_wave_path();
      wave_->open(path.c_str());
      std::fprintf(stderr, "waves: %s\n", path.c_str());
    }
#endif
    dut_->clk_i = 0;
    set_reset(1);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
#if defined(WEFT_TRACE) && WEFT_TRACE
    if (wave_) {  // what the bench looked at last is on the screen too
      dump();
      context().timeInc(kPeriod_ps);
      dump();
      wave_->close();
    }
#endif
  }

  V& dut() {
    return *dut_;
  }
  V* operator->() {
    return dut_.operator->();
  }
  VerilatedContext& context() {
    return dut_.context();
  }

  /// Clock cycles since the start, reset included.
  uint64_t cycle() const {
    return cycle_;
  }

  /// Holds reset for `cycles` edges. Inputs keep what they were set to.
  void reset(unsigned cycles = 4) {
    set_reset(1);
    for (unsigned i = 0; i < cycles; ++i) tick();
    set_reset(0);
    eval();
    progress();
  }

  /// Settles the combinational logic after inputs changed.
  void eval() {
    dut_->eval();
  }

  /// One clock cycle. Fails the test if an assertion of the RTL fired or nothing made progress.
  void tick() {
    note_cycle(module_, cycle_);
    dut_->eval();
    dump();
    dut_.context().timeInc(kPeriod_ps / 2);
    dut_->clk_i = 1;
    dut_->eval();
    dump();
    dut_.context().timeInc(kPeriod_ps - kPeriod_ps / 2);
    dut_->clk_i = 0;
    dut_->eval();
    ++cycle_;
    if (dut_.context().gotError() && !assertion_expected_) {
      dump();
      FAIL(module_ << ": an assertion of the RTL failed at cycle " << cycle_ - 1);
    }
    if (cycle_ - progress_cycle_ > patience_) {
      FAIL(module_ << ": no progress for " << patience_ << " cycles, now at cycle " << cycle_);
    }
  }
  void ticks(uint64_t cycles) {
    for (uint64_t i = 0; i < cycles; ++i) tick();
  }

  /// Tells the watchdog that something useful happened.
  void progress() {
    progress_cycle_ = cycle_;
  }
  /// Cycles without progress() after which the test fails (default 20000).
  void patience(uint64_t cycles) {
    patience_ = cycles;
  }

  /// For tests that inject a fault: a failed assertion of the RTL no longer fails the test.
  void expect_assertion() {
    assertion_expected_ = true;
  }
  bool assertion_fired() const {
    return dut_.context().gotError();
  }

  /// Notes an event with the cycle in front; see weft::test::event.
  void event(const char* format, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0) {
    note_cycle(module_, cycle_);
    weft::test::event(format, a, b, c, d);
  }

 private:
  void set_reset(uint8_t value) {
    if constexpr (requires(V & v) { v.rst_i; }) dut_->rst_i = value;
  }

  void dump() {
#if defined(WEFT_TRACE) && WEFT_TRACE
    if (wave_) wave_->dump(dut_.context().time());
#endif
  }

  const char* module_;
  tb::OwnedModel<V> dut_;
#if defined(WEFT_TRACE) && WEFT_TRACE
  std::unique_ptr<VerilatedFstC> wave_;
#endif
  uint64_t cycle_ = 0;
  uint64_t progress_cycle_ = 0;
  uint64_t patience_ = 20000;
  bool assertion_expected_ = false;
};

}  // namespace weft::test
#endif
