// SPDX-License-Identifier: Apache-2.0
// What no transport can beat: every host keeps its links busy with packets and headers, a lost packet is sent
// again at no other cost, nothing ever waits for anything else.
#pragma once

#include "tb/eval/body.h"
#include "tb/scenario.h"

namespace weft::eval {

struct Ideal {
  double mean_us = 0, max_us = 0;  // of completion at the sender
  double gbps = 0;                 // mean over flows, wire bytes
};

/// Time from the first bit that leaves `src` to the last that reaches `dst`, of a lone packet.
Ps one_way_ps(const tb::Scenario& scenario, uint32_t src, uint32_t dst, uint32_t wire_bytes);

/// `ack_wire`: bytes of an ack on the wire.
Ideal ideal(const tb::Scenario& scenario, const Flows& flows, const PacketSize& size, uint32_t ack_wire);

}  // namespace weft::eval
