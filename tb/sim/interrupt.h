// SPDX-License-Identifier: Apache-2.0
// How a program asks a running simulation to stop. The kernel looks between windows, so nothing is cut in the
// middle: the run fails as for any other reason, and files that are not complete are removed on the way out.
#pragma once

#include <atomic>

namespace weft::tb {

// The signal that asked, 0 while none did. Only a signal handler sets it.
inline std::atomic<int> interrupted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch nothing else");

}  // namespace weft::tb
