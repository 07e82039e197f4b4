// SPDX-License-Identifier: Apache-2.0
// Deterministic random numbers (splitmix64): one generator per purpose, seeded by (seed, stream), so that
// switching one kind of fault on does not change the draws of another.
#pragma once

#include <cstdint>

namespace weft::tb {

// Bijective mixing of 64 bits.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Rng {
 public:
  explicit Rng(uint64_t seed = 1, uint64_t stream = 0)
      : state_(mix64(seed ^ mix64(stream + 0x9e3779b97f4a7c15u))) {}

  uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in [0, bound), bound > 0. The bias is below 2^-32 for bounds of 32 bits.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // True with probability p; no draw is made when p is 0, so a fault that is off costs nothing.
  bool chance(double p) { return p > 0 && unit() < p; }

 private:
  uint64_t state_;
};

}  // namespace weft::tb
