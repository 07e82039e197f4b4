// SPDX-License-Identifier: Apache-2.0
// Several programs that run one simulation together, each a part of its processes. All of them make the same
// calls in the same order. tb/sim/mpi_ranks.h is the one that exists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tb/sim/time.h"

namespace weft::tb {

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual unsigned rank() const = 0;
  virtual unsigned count() const = 0;
  // The least that any rank gives.
  virtual Ps minimum(Ps mine) = 0;
  // Replaces each value by its sum over the ranks.
  virtual void sum(std::span<uint64_t> values) = 0;
  // Gives outgoing[r] to rank r, and returns in `incoming`, one after the other, what came from all of them.
  virtual void exchange(const std::vector<std::vector<uint8_t>>& outgoing,
                        std::vector<uint8_t>& incoming) = 0;
};

}  // namespace weft::tb
