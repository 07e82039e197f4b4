// SPDX-License-Identifier: Apache-2.0
// Model time: integer picoseconds. Nothing in the simulator uses floating-point time, so the same run gives
// the same bits.
#pragma once

#include <cstdint>
#include <limits>

namespace weft::tb {

using Ps = int64_t;

inline constexpr Ps kNever = std::numeric_limits<Ps>::max();
inline constexpr Ps kNs = 1'000;
inline constexpr Ps kUs = 1'000'000;
inline constexpr Ps kMs = 1'000'000'000;

// Node clock: 322.265625 MHz, the 512-bit clock of a 100G MAC, rounded to a picosecond.
inline constexpr Ps kClockPs = 3103;

}  // namespace weft::tb
