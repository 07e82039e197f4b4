// SPDX-License-Identifier: Apache-2.0
//
// Blocks of OCP MX in hardware: numbers out of blocks, and how blocks and windows become beats, against the
// reference arithmetic and a plain array of bytes. Blocks out of numbers need the lanes: test_blocks.cpp.
#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "Vnmc_mx_in.h"
#include "Vnmc_mx_pack.h"
#include "nmc_cases.h"

using namespace weft;
using num::Float32;
using num::Float4E2m1;
using num::Float8E4m3;
using num::Float8E5m2;
using test::Rng;

namespace {

constexpr unsigned kCount = num::kMxElements;
constexpr unsigned kBeat = 128;
using Values = std::array<uint32_t, kCount>;
template <class E>
using Block = std::array<uint8_t, num::Mx<E>::kBytes>;

template <class E>
constexpr uint8_t kFormat = 0;  // of mx_fmt_e
template <>
constexpr uint8_t kFormat<Float8E5m2> = 1;
template <>
constexpr uint8_t kFormat<Float4E2m1> = 2;

template <class Port>
void set_bytes(Port& port, std::span<const uint8_t> bytes, Rng& rng) {
  for (unsigned w = 0; w < sizeof(port) / 4; ++w) port[w] = static_cast<uint32_t>(rng());
  for (unsigned i = 0; i < bytes.size(); ++i) {
    const unsigned at = i % 4 * 8;
    port[i / 4] = (port[i / 4] & ~(0xffu << at)) | uint32_t{bytes[i]} << at;
  }
}

template <class Port>
uint8_t byte_of(const Port& port, unsigned i) {
  return static_cast<uint8_t>(port[i / 4] >> i % 4 * 8);
}

/// Wants are due `latency` cycles behind their inputs, which come with gaps.
template <class Model, class Want>
class Converter {
 public:
  Converter(const char* module, unsigned latency) : bench_(module), latency_(latency) {
    bench_->valid_i = 0;
    bench_.reset();
  }
  Model& inputs() { return bench_.dut(); }
  /// Gives what inputs() have been set to; look(model, want) tells whether the result is right.
  template <class Look>
  void push(const Want& want, Look look) {
    while (gap_.stalled()) advance(look);
    bench_->valid_i = 1;
    due_.push_back({cycle_ + latency_, want});
    advance(look);
    bench_->valid_i = 0;
  }
  template <class Look>
  void drain(Look look) {
    while (!due_.empty()) advance(look);
  }
  uint64_t wrong() const { return wrong_; }

 private:
  struct Due {
    uint64_t cycle;
    Want want;
  };
  template <class Look>
  void advance(Look look) {
    bench_.eval();
    const bool now = !due_.empty() && due_.front().cycle == cycle_;
    if (bench_->valid_o != now) FAIL("a result out of its cycle");
    if (now) {
      bench_.progress();
      if (!look(bench_.dut(), due_.front().want)) ++wrong_;
      due_.pop_front();
    }
    bench_.tick();
    ++cycle_;
  }

  test::Bench<Model> bench_;
  test::Stall gap_{0.2, 1};
  unsigned latency_;
  uint64_t cycle_ = 0, wrong_ = 0;
  std::deque<Due> due_;
};

// ---- numbers out of blocks -----------------------------------------------------------------------

struct WantValues {
  Values values;
  num::Flags flags;
};

/// Rules of the reference broken one at a time.
enum class InFault { None, FlushesSubnormals, NoOverflow, ZeroBeatsNanScale, NotTurned, HighNibbleFirst };

template <class E>
uint64_t values_differ(InFault fault = InFault::None) {
  Converter<Vnmc_mx_in, WantValues> hardware("weft_nmc_mx_in", 3);
  Rng rng(test::seed(), kFormat<E>);
  const auto look = [](Vnmc_mx_in& dut, const WantValues& want) {
    if (dut.overflow_o != want.flags.overflow) {
      test::event("overflow %llu", dut.overflow_o);
      return false;
    }
    for (unsigned i = 0; i < kCount; ++i) {
      if (dut.values_o[i] == want.values[i]) continue;
      test::event("lane %llu: %08llx, to be %08llx", i, dut.values_o[i], want.values[i]);
      return false;
    }
    return true;
  };
  constexpr bool kHalf = num::Mx<E>::kHalfBytes;
  constexpr unsigned kCodes = kHalf ? 16 : 256;
  for (unsigned scale = 0; scale < 256; ++scale) {
    for (unsigned turn = 0; turn < kCount; ++turn) {
      for (unsigned first = 0; first < kCodes; first += kCount) {
        Block<E> block{};
        block[0] = static_cast<uint8_t>(scale);
        for (unsigned i = 0; i < kCount; ++i) {
          const unsigned code = (first + i * 5 + turn) % kCodes;  // 5 * 32 codes, each met in some block
          block[1 + (kHalf ? i / 2 : i)] |= static_cast<uint8_t>(code << (kHalf ? i % 2 * 4 : 0));
        }
        Block<E> given = block;
        if (fault == InFault::HighNibbleFirst) {
          for (auto& b : std::span(given).subspan(1)) b = static_cast<uint8_t>(b << 4 | b >> 4);
        }
        WantValues want;
        Values plain;
        num::Mx<E>::dequantise(given, plain, &want.flags);
        for (unsigned i = 0; i < kCount; ++i) {
          uint32_t& x = want.values[fault == InFault::NotTurned ? i : (i + turn) % kCount];
          x = plain[i];
          const uint32_t magnitude = Float32::magnitude(x);
          if (fault == InFault::FlushesSubnormals && magnitude < Float32::kHidden) x &= Float32::kSign;
          if (fault == InFault::NoOverflow && magnitude == Float32::kInf) --x;
          if (fault == InFault::ZeroBeatsNanScale && scale == 255 && block[1] == 0 && i == 0) x = 0;
        }
        auto& in = hardware.inputs();
        in.fmt_i = kFormat<E>;
        in.turn_i = static_cast<uint8_t>(turn);
        set_bytes(in.block_i, block, rng);
        hardware.push(want, look);
      }
    }
  }
  hardware.drain(look);
  return hardware.wrong();
}

// ---- beats ---------------------------------------------------------------------------------------

enum class PackFault { None, LosesOverlap, SkipsLastBeat };

/// Jobs of `steps` results of `size` bytes from byte `place` on, back to back, as the sequencer gives
/// them: a step completes the beat that it reaches the end of, and the last one its beat; if that one
/// straddles two beats, one step more completes the second.
class Packer {
 public:
  Packer() {
    bench_->block_valid_i = bench_->window_valid_i = 0;
    bench_.reset();
  }

  void job(unsigned size, unsigned place, unsigned steps, PackFault fault) {
    std::vector<uint8_t> bytes(size * steps);
    rng_.fill(bytes);
    const bool block = size <= 33;
    // The beats to come: bytes that the job has, and where.
    for (unsigned at = 0; at < place + bytes.size(); at += kBeat) {
      Beat beat;
      for (unsigned i = 0; i < kBeat; ++i) {
        beat.on[i] = at + i >= place && at + i < place + bytes.size();
        if (beat.on[i]) beat.bytes[i] = bytes[at + i - place];
      }
      if (fault == PackFault::LosesOverlap && at != 0) beat.bytes[0] ^= 1;
      if (fault == PackFault::SkipsLastBeat && at + kBeat >= place + bytes.size()) continue;
      due_.push_back(beat);
    }
    if (block != was_block_) drain();
    was_block_ = block;
    for (unsigned n = 0; n < steps; ++n) {
      const unsigned at = place + n * size;
      const bool last = n + 1 == steps;
      const bool over = at % kBeat + size > kBeat;
      step(block, at, last || at % kBeat + size >= kBeat, std::span(bytes).subspan(n * size, size));
      if (last && over) step(block, at + size, true, {});
    }
  }
  void drain() {
    for (unsigned i = 0; i < 4; ++i) advance();
  }
  uint64_t wrong() const { return wrong_ + due_.size(); }

 private:
  struct Beat {
    std::array<uint8_t, kBeat> bytes{};
    std::array<bool, kBeat> on{};
  };

  void step(bool block, unsigned at, bool whole, std::span<const uint8_t> bytes) {
    while (gap_.stalled()) advance();
    if (block) {
      bench_->block_valid_i = 1;
      bench_->block_place_i = at % kBeat;
      bench_->block_whole_i = whole;
      set_bytes(bench_->block_i, bytes, rng_);
    } else {
      // Windows come in their places: byte i of the job's bytes at (at + i) mod a beat.
      std::array<uint8_t, kBeat> window;
      rng_.fill(window);
      for (unsigned i = 0; i < bytes.size(); ++i) window[(at + i) % kBeat] = bytes[i];
      bench_->window_valid_i = 1;
      bench_->window_place_i = at % kBeat;
      bench_->window_whole_i = whole;
      set_bytes(bench_->window_i, window, rng_);
    }
    advance();
    bench_->block_valid_i = bench_->window_valid_i = 0;
  }

  void advance() {
    bench_.eval();
    if (bench_->beat_valid_o) {
      bench_.progress();
      if (due_.empty()) {
        ++wrong_;
      } else {
        const Beat& want = due_.front();
        bool same = true;
        for (unsigned i = 0; i < kBeat; ++i) {
          same &= !want.on[i] || byte_of(bench_->beat_o, i) == want.bytes[i];
        }
        if (!same && wrong_++ == 0) bench_.event("a wrong beat");
        due_.pop_front();
      }
    }
    bench_.tick();
  }

  test::Bench<Vnmc_mx_pack> bench_{"weft_nmc_mx_pack"};
  test::Stall gap_{0.2, 2};
  Rng rng_{test::seed(), 20};
  std::deque<Beat> due_;
  bool was_block_ = true;
  uint64_t wrong_ = 0;
};

uint64_t beats_differ(PackFault fault = PackFault::None) {
  Packer packer;
  Rng rng(test::seed(), 21);
  for (unsigned size : {33u, 17u, 128u, 64u}) {
    for (unsigned steps = 1; steps <= 10; ++steps) {
      for (unsigned place = 0; place < kBeat; ++place) packer.job(size, place, steps, fault);
    }
  }
  constexpr unsigned kSizes[] = {33, 17, 128, 64};
  for (unsigned n = 0; n < 2000; ++n) {
    packer.job(kSizes[rng.below(4)], static_cast<unsigned>(rng.below(kBeat)),
               1 + static_cast<unsigned>(rng.below(40)), fault);
  }
  packer.drain();
  return packer.wrong();
}

}  // namespace

TEST_CASE("mx: every element under every scale is the reference's, in every lane", "[nmc]") {
  CHECK(values_differ<Float8E4m3>() == 0);
  CHECK(values_differ<Float8E5m2>() == 0);
  CHECK(values_differ<Float4E2m1>() == 0);
}

TEST_CASE("mx: blocks and windows come out in their beats, from every byte on", "[nmc]") {
  CHECK(beats_differ() == 0);
}

TEST_CASE("mx: a reference with a broken rule is found out", "[nmc][fault]") {
  for (auto fault :
       {InFault::FlushesSubnormals, InFault::NoOverflow, InFault::ZeroBeatsNanScale, InFault::NotTurned}) {
    CAPTURE(static_cast<int>(fault));
    CHECK(values_differ<Float8E4m3>(fault) > 0);
  }
  CHECK(values_differ<Float4E2m1>(InFault::HighNibbleFirst) > 0);
  for (auto fault : {PackFault::LosesOverlap, PackFault::SkipsLastBeat}) {
    CAPTURE(static_cast<int>(fault));
    CHECK(beats_differ(fault) > 0);
  }
}
