// SPDX-License-Identifier: Apache-2.0
// What a fold of a collective gives, bit for bit, by the rules of sw/ref/numerics.h: for checkers.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "sw/ref/numerics.h"
#include "sw/wccl/plan.h"

namespace wccl {

// `inputs` of all ranks, the elements of this fold alone, each of the size of `out`.
inline void golden_fold(const Op& op, const Fold& fold, std::span<std::uint8_t> out,
                        std::span<const std::span<const std::uint8_t>> inputs) {
  const auto n = static_cast<unsigned>(inputs.size());
  weft::num::Job job;
  job.from = job.to = wire_type(op.type);
  job.op = wire_redop(op.redop);
  job.scalar = scalar_of(op, static_cast<int>(n));
  std::array<std::span<const std::uint8_t>, kMaxRanks> sources;
  for (unsigned k = 0; k < n; ++k) sources[k] = inputs[static_cast<std::size_t>(fold.order[k])];
  if (n == 1 && op.redop != RedOp::kPremulSum) job.op = weft::wire::Redop::COPY;
  if (fold.at_once) {
    weft::num::reduce(job, out, {sources.data(), n});
    return;
  }
  // Step by step: each source scaled by its own rank, if they are at all; the last step divides.
  const bool scales = weft::num::scales(job);
  std::vector<std::uint8_t> scaled(out.size());
  const auto source = [&](unsigned k) -> std::span<const std::uint8_t> {
    if (!scales) return sources[k];
    weft::num::reduce(job, scaled, {&sources[k], 1});
    return scaled;
  };
  std::memcpy(out.data(), source(0).data(), out.size());
  for (unsigned k = 1; k < n; ++k) {
    weft::num::Job step = job;
    if (scales || (op.redop == RedOp::kAvg && k + 1 < n)) step.op = weft::wire::Redop::SUM;
    const std::span<const std::uint8_t> two[] = {out, source(k)};
    weft::num::reduce(step, out, two);
  }
}

}  // namespace wccl
