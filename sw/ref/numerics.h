// SPDX-License-Identifier: Apache-2.0
//
// The numbers of Weft: what the reducer makes of its sources, bit for bit, for every type, operation
// and conversion. The RTL (rtl/nmc), the checkers, the tools and the golden models of the collectives
// all follow these files; docs/numerics.md has the rules as a table, each with its source.
//
//   num/formats.h    the formats of elements, and which wire::Dtype names which
//   num/floats.h     convert, add, mul, maximum, minimum of two floats
//   num/integers.h   the same of two integers
//   num/exact.h      a sum of many floats that is rounded once
//   num/mx.h         blocks of 32 elements with a common scale
//   num/reduce.h     which reductions there are, and whole reductions of 1 to 64 sources
//
// Only integer arithmetic is used. Nothing here allocates or throws.
#pragma once

#include "num/exact.h"
#include "num/floats.h"
#include "num/formats.h"
#include "num/integers.h"
#include "num/mx.h"
#include "num/reduce.h"
