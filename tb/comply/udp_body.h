// SPDX-License-Identifier: Apache-2.0
// Somebody else's endpoint behind a UDP socket, and a peer of that kind. A datagram is one of
//
//   BTH .. ICRC     a Weft packet without Ethernet, IP and UDP headers (first byte c0 or above). Its ICRC is
//                   that of eight bytes ff and the packet, byte 4 of the BTH taken as ff: an ordinary
//                   socket tells neither end the headers below. CE travels in the IP header's TOS.
//   "WEFT" ...      a set-up record (64 bytes); the answer is the other end's
//   small letters   a line of text: what the tester asks of the body (docs/compliance.md lists them). An end
//                   that answers none runs the scripts that need none.
//
// One microsecond of a script is one millisecond of the clock on the wall.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tb/comply/body.h"

namespace weft::comply {

inline constexpr std::int64_t kUdpTimeScale = 1000;

/// `where` is HOST:PORT, HOST an IPv4 address or a name. Fails when nobody answers a set-up record there.
Result<std::unique_ptr<Body>> make_udp_body(const std::string& where);

/// Answers at `port` of the loopback address (0: a free one) with the reference endpoint until a signal ends
/// the program. Prints the address once it listens.
Status serve(std::uint16_t port);

}  // namespace weft::comply
