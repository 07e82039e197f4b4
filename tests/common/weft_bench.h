// SPDX-License-Identifier: Apache-2.0
//
// How a benchmark reports its figures to `make bench` (sw/tools/bench.py): one line of JSON each on
// standard output. Anything else it prints is shown as it is.
#pragma once

#include <cstdio>

namespace weft::bench {

/// Which side of the goal is good.
enum class Good { AtLeast, AtMost };

/// Reports one figure of merit, as in report("tx_cycles_64", 3, Good::AtMost, 3, "cycles").
inline void report(const char* name, double value, Good good, double goal, const char* unit) {
  const bool met = good == Good::AtLeast ? value >= goal : value <= goal;
  std::printf("{\"%s\": {\"value\": %.6g, \"goal\": %.6g, \"unit\": \"%s\", \"met\": %s}}\n", name, value,
              goal, unit, met ? "true" : "false");
  std::fflush(stdout);
}

}  // namespace weft::bench
