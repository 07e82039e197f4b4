// SPDX-License-Identifier: Apache-2.0
// Both ends of every connection of a cluster, compared when it is at its end: a message that completed OK at
// its sender has been received. The reverse cannot be asked: the ack that would have told the sender may be
// what was lost.
#pragma once

#include <vector>

#include "tb/check/watch.h"
#include "tb/sim/status.h"

namespace weft::tb {

// By node; null where a node has no watch: its connections are not compared.
Status compare_ends(const std::vector<const Watch*>& nodes);

}  // namespace weft::tb
