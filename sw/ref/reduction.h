// SPDX-License-Identifier: Apache-2.0
//
// A REDUCE entry beyond its arithmetic (sw/ref/num/reduce.h): what memory it touches, and which
// addresses and lengths it may have. docs/me.md, checks 6 to 8 and 11.
#pragma once

#include <cstdint>

#include "sw/ref/numerics.h"
#include "weft_wire.h"

namespace weft::ref {

inline num::Job job_of(const wire::Wqe& w) {
  return {.from = w.dtype,
          .to = w.to,
          .op = w.redop,
          .propagate_nan = w.propagate_nan != 0,
          .saturate = w.saturate != 0,
          .exact = w.exact != 0,
          .scalar = w.scalar};
}

/// Address of source k.
inline std::uint64_t source_of(const wire::Wqe& w, unsigned k) {
  return k == w.own ? w.src0 : w.src1 + std::uint64_t{k} * w.stride;
}

/// Bytes that an entry whose types exist touches.
struct Extent {
  std::uint64_t elements = 0;
  std::uint64_t source = 0;  ///< of each source, scales included
  std::uint64_t others = 0;  ///< from src1 to the end of the last source beside own; 0 if there is none
  std::uint64_t result = 0;  ///< scales included
};
inline Extent extent_of(const wire::Wqe& w) {
  Extent e;
  e.elements = num::elements_of(w.to, w.length);
  e.source = num::footprint(w.dtype, e.elements);
  e.result = num::footprint(w.to, e.elements);
  if (w.nsrc > 1) e.others = std::uint64_t{w.stride} * (w.nsrc - 1u) + e.source;
  return e;
}

/// The first thing wrong with types, operation, flags, sources, then alignment, then length.
inline wire::Err check_reduction(const wire::Wqe& w, num::Parts parts = {}) {
  if (const wire::Err e = num::check(job_of(w), w.nsrc, w.own, parts); e != wire::Err::OK) return e;
  const std::uint64_t from = num::bytes_of(w.dtype), to = num::bytes_of(w.to);
  const std::uint64_t sources = w.src0 | (w.nsrc > 1 ? w.src1 | w.stride : 0);
  if (sources % from != 0 || w.dst % to != 0 || w.length % num::length_unit(w.dtype, w.to) != 0)
    return wire::Err::BAD_ALIGN;
  // Elements alone: scales may exceed the limit.
  const std::uint64_t elements = num::elements_of(w.to, w.length);
  const std::uint64_t source = w.dtype == wire::Dtype::MXFP4_E2M1 ? elements / 2 : elements * from;
  if (w.length > wire::kMaxWqeLength || source > wire::kMaxWqeLength) return wire::Err::BAD_LENGTH;
  return wire::Err::OK;
}

}  // namespace weft::ref
