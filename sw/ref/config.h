// SPDX-License-Identifier: Apache-2.0
// What an endpoint is configured with. docs/protocol.md has the same constants in its table of timers and
// constants, with their reasons; the defaults here are the ones it states.
#pragma once

#include <cstdint>

#include "weft_wire.h"

namespace weft::ref {

using Ps = std::int64_t;  // picoseconds of model time
inline constexpr Ps kNs = 1'000, kUs = 1'000'000, kMs = 1'000'000'000;
inline constexpr Ps kNever = INT64_MAX;

/// Rules of congestion control and failure detection. The same seed gives the same run of a
/// program; compilers may round the ratios differently.
struct Tuning {
  // Cap of a connection at a port.
  double cap_rtts = 2.75;       // cap = share * cap_rtts * smallest RTT + 1 packet
  double first_cap_bdp = 0.5;   // before the first ack, in line * rtt_init
  std::uint32_t path_pkts = 4;  // active paths = cap / path_pkts packets
  std::uint32_t first_path_pkts = 2;
  // Without a mark for calm_caps caps of bytes the connection uses fewer paths, until the next mark: a loss
  // shows with the next packet of its path, so fewer paths show it sooner.
  double calm_caps = 2;
  std::uint32_t calm_path_pkts = 16;
  // Path window.
  double decrease = 0.25;  // of the bytes marked
  double loss_rtts = 3;    // bytes lost count as marked above so many smallest RTTs
  // Receiver's share.
  bool share = true;
  double share_fill = 1.0;    // of the line, over all senders
  double share_drain = 0.25;  // less of it per CE fraction above share_ce
  double share_ce = 0.3;
  double share_used = 0.8;     // a sender below this part of its grant is limited by itself
  double share_reserve = 1.1;  // what it keeps: its use times this
  bool pacer = true;
  std::uint32_t pacer_pkts = 2;  // credit
  // Scheduler: bytes a connection may send before the next in age gets its turn.
  std::uint32_t turn_bytes = 524'288;
  // Acks and probes.
  std::uint32_t ack_paths = 4;      // paths that one ack reports, 1 to 5
  std::uint32_t ack_hold_pkts = 4;  // packet times that a path waits for others to share its ack
  double double_loss = 0.003;       // loss at the port from which gap acks and tail probes go out twice
  Ps probe_min = 2 * kUs;
  Ps hole_timeout = 100 * kUs;  // reorder distance > 0: a hole is open so long at most
  // Failure.
  std::uint32_t fail_probes = 3;  // unanswered, with evidence; and more where loss would explain so many:
  double fail_chance = 1e-8;      // as likely as that
  bool evidence = true;
  std::uint32_t backoff_after = 4;     // timeouts without evidence before the first doubling
  std::uint32_t backoff_max = 3;       // doublings then
  std::uint32_t dead_backoff_max = 6;  // doublings of the probes of a failed path
  std::uint32_t retry_limit = 24;      // unanswered probes of one path that fail a connection without fences
  Ps give_up = 10'000 * kMs;        // nothing heard of the peer, or no data delivered, for so long: it fails
  std::uint32_t stuck_losses = 64;  // and of the data so many packets were lost in a row
  Ps packet_life = 1 * kMs;         // longest time a packet may be in the network (T of the rules)
};

struct Config {
  std::uint32_t ports = 2;
  std::uint32_t paths = 64;   // of each port; ports * paths <= 256
  std::uint32_t streams = 1;  // per connection
  std::uint32_t line_mbps = 100'000;
  std::uint32_t mtu = 4096;                     // payload of a packet, bytes
  std::uint32_t overhead = wire::kWinOverhead;  // bytes a data packet counts beyond its payload
  std::uint32_t distance = 0;                   // reorder distance D of the receiver, packets, <= 128
  Ps rtt_init = 14 * kUs;                       // round trip assumed before the first sample
  std::uint32_t caps = 0x1ff;                   // what this end offers (enum cap)
  std::uint32_t needs = 0;                      // what it insists on
  bool payload = true;     // false: payloads are counted, not carried; Env::write gets no bytes
  std::uint64_t seed = 1;  // start PSNs and source ports
  Tuning tuning;
};

}  // namespace weft::ref
