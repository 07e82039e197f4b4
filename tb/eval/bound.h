// SPDX-License-Identifier: Apache-2.0
// What no body can beat: every host keeps its links busy with packets and headers, a lost packet is sent
// again at no other cost, nothing ever waits for anything else. With loss it bounds the mean over many runs:
// a lucky one loses less than its share.
//
// A message is cut into full packets and a rest, either as a whole (Weft) or one part for each plane
// (RoCEv2); the bound takes the better. Overhead and acks are those of one body, so each has a bound of its
// own.
#pragma once

#include "tb/eval/body.h"
#include "tb/scenario.h"

namespace weft::eval {

struct Ideal {
  double mean_us = 0, max_us = 0;  // from start to completion at the sender
  double last_us = 0;              // on the clock
  double gbps = 0;                 // mean over flows, of the bytes that a rate counts
};

/// What the packets of a body are charged on the wire.
struct Charge {
  PacketSize data;
  uint32_t ack_wire = 0;  // bytes of its smallest ack on the wire
};

/// Time from the first bit that leaves `src` to the last that reaches `dst`, of a lone packet.
Ps one_way_ps(const tb::Scenario& scenario, uint32_t src, uint32_t dst, uint32_t wire_bytes);

/// `counted`: the bytes of a packet that a rate counts, the same for every body.
Ideal ideal(const tb::Scenario& scenario, const Flows& flows, const Charge& charge,
            const PacketSize& counted);

}  // namespace weft::eval
