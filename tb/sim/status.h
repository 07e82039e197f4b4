// SPDX-License-Identifier: Apache-2.0
// Errors as values, the same as everywhere else.
#pragma once

#include "sw/weft/result.h"

namespace weft::tb {

using weft::Result;
using weft::Status;

}  // namespace weft::tb
