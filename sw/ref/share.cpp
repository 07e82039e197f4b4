// SPDX-License-Identifier: Apache-2.0
// The receiver's share: what each sender of a port may use, told in every ack. Active senders share the line,
// less while much of what arrives is marked; those that use less by themselves, and those about to leave, are
// counted at their use. Who sent nothing for two rounds is forgotten.
#include <algorithm>

#include "sw/ref/impl.h"

namespace weft::ref {

namespace {
constexpr double kPerNs = 65536;  // unit of shares
}

void Endpoint::Impl::share_roll(Ps now, Port& port, std::uint32_t number) {
  const double length = static_cast<double>(now - port.epoch_start) / kNs;
  std::size_t kept = 0;
  port.limited = 0;
  port.reserved = 0;
  // Nothing came for a round and more: all that is known is of another time.
  const bool stale = now > port.epoch_end + (port.epoch_end - port.epoch_start);
  for (const std::uint32_t conn : port.senders) {
    RxPort& r = conns[conn].rx_port[number];
    if (stale) r.bytes_now = r.bytes_last = 0;
    if (r.bytes_now == 0 && (r.bytes_last == 0 || r.leaving)) {
      r = RxPort{};
      continue;
    }
    const double use = r.bytes_now / length;
    const double grant = r.grant / kPerNs;
    r.limited = r.leaving || (!r.fresh && use < config.tuning.share_used * grant);
    r.reserve = !r.limited || (r.leaving && !r.returned)
                    ? 0.0F
                    : static_cast<float>(std::min(config.tuning.share_reserve * use, grant));
    r.bytes_last = r.bytes_now;
    r.bytes_now = 0;
    r.fresh = r.returned = false;
    port.limited += r.limited ? 1 : 0;
    port.reserved += r.reserve;
    port.senders[kept++] = conn;
  }
  port.senders.resize(kept);
  const double packets = 4.0 * static_cast<double>(kept) * pkt / line * kNs;
  port.epoch_start = now;
  port.epoch_end = now + std::max<Ps>(config.rtt_init, static_cast<Ps>(packets));
}

/// A sender that has no more to send keeps nothing for the future.
void Endpoint::Impl::share_leave(Port& port, RxPort& r, bool leaving) {
  if (r.leaving == leaving) return;
  r.leaving = leaving;
  if (leaving) {
    port.reserved -= r.reserve;
    r.reserve = 0;
    if (!r.limited) ++port.limited;
    r.limited = true;
  } else {
    --port.limited;
    r.limited = false;
    r.fresh = true;
  }
}

void Endpoint::Impl::share_data(Ps now, std::uint32_t conn, std::uint32_t number, const Packet& p,
                                std::uint32_t bytes) {
  Port& port = ports[number];
  RxPort& r = conns[conn].rx_port[number];
  if (now >= port.ce_end) {
    port.ce_fraction =
        port.all_now != 0 ? static_cast<double>(port.ce_now) / static_cast<double>(port.all_now) : 0;
    // Each sender hears of it once in its turn: with many senders that is longer than a round trip.
    const auto turns = static_cast<Ps>(static_cast<double>(port.senders.size()) * pkt / line * kNs);
    const Ps window = std::max(config.rtt_init, turns);
    if (now >= port.ce_end + window) port.ce_fraction = 0;  // nothing came for as long
    port.ce_now = port.all_now = 0;
    port.ce_end = now + window;
  }
  port.all_now += bytes;
  if (p.ce) port.ce_now += bytes;
  if (now >= port.epoch_end) share_roll(now, port, number);
  if (!r.active) {
    r.active = r.fresh = true;
    r.leave_ts = p.timestamp;
    port.senders.push_back(conn);
  }
  r.bytes_now += bytes;
  // Packets overtake each other on different paths: the newest clock decides.
  if (clock_diff(p.timestamp, r.leave_ts) >= 0) {
    r.returned |= r.leaving && p.timestamp != r.leave_ts;
    r.leave_ts = p.timestamp;
    share_leave(port, r, !p.data.more);
  }
}

/// All that came of a sender so far was lost: it counts from its first probe.
void Endpoint::Impl::share_touch(Ps now, std::uint32_t conn, std::uint32_t number) {
  Port& port = ports[number];
  RxPort& r = conns[conn].rx_port[number];
  if (now >= port.epoch_end) share_roll(now, port, number);
  if (r.active) return;
  r.active = r.fresh = true;
  r.bytes_now = 1;  // it used something
  port.senders.push_back(conn);
}

std::uint32_t Endpoint::Impl::share_grant(std::uint32_t conn, std::uint32_t number) {
  const Port& port = ports[number];
  RxPort& r = conns[conn].rx_port[number];
  const auto n = static_cast<double>(port.senders.size());
  std::uint32_t grant = line_share;
  if (config.tuning.share && n > 1) {
    const double fill = config.tuning.share_fill -
                        config.tuning.share_drain * std::max(0.0, port.ce_fraction - config.tuning.share_ce);
    const double all = fill * line;
    double each = all / n;
    // Who leaves may come back with a message as small: for it all others count in full.
    if (n > port.limited && !r.leaving) each = std::max(each, (all - port.reserved) / (n - port.limited));
    grant = static_cast<std::uint32_t>(std::clamp(each * kPerNs, 1.0, static_cast<double>(line_share)));
  }
  r.grant = grant;
  return grant;
}

void Endpoint::Impl::share_forget(std::uint32_t conn) {
  for (std::uint32_t p = 0; p < config.ports; ++p) {
    Port& port = ports[p];
    RxPort& r = conns[conn].rx_port[p];
    if (r.active) {
      port.senders.erase(std::find(port.senders.begin(), port.senders.end(), conn));
      port.limited -= r.limited ? 1 : 0;
      port.reserved -= r.reserve;
    }
    r = RxPort{};
  }
}

}  // namespace weft::ref
