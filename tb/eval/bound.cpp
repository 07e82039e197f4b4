// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tb/fabric/fabric.h"

namespace weft::eval {
namespace {

double us(Ps t) {
  return static_cast<double>(t) / 1e6;
}

// When `busy_us` of all planes' time have passed since `from_us`, with some of the planes dead now and then.
double passed(const tb::Scenario& s, double from_us, double busy_us) {
  std::vector<double> edges{from_us};
  for (const tb::DownFault& d : s.faults.down) {
    if (d.plane < 0 || d.leaf >= 0 || d.tor >= 0 || d.agg >= 0) continue;
    for (Ps t : {d.from_ps, d.to_ps})
      if (t != kNever && us(t) > from_us) edges.push_back(us(t));
  }
  std::sort(edges.begin(), edges.end());
  for (size_t i = 0; i < edges.size(); ++i) {
    uint32_t up = 0;
    for (uint32_t plane = 0; plane < s.planes; ++plane) {
      bool dead = false;
      for (const tb::DownFault& d : s.faults.down)
        dead |= d.plane == static_cast<int>(plane) && d.leaf < 0 && d.tor < 0 && d.agg < 0 &&
                us(d.from_ps) <= edges[i] && (d.to_ps == kNever || us(d.to_ps) > edges[i]);
      up += !dead;
    }
    const double part = static_cast<double>(up) / s.planes;
    const double here = i + 1 < edges.size() ? edges[i + 1] - edges[i] : HUGE_VAL;
    if (part * here >= busy_us) return edges[i] + busy_us / part;
    busy_us -= part > 0 ? part * here : 0;
  }
  return HUGE_VAL;
}

}  // namespace

Ps one_way_ps(const tb::Scenario& s, uint32_t src, uint32_t dst, uint32_t wire_bytes) {
  const tb::FabricConfig& f = s.fabric;
  uint32_t switches = 1;
  if (f.topology == tb::Topology::kFatTree) {
    const uint32_t pod = f.radix * f.radix;
    switches = src / f.radix == dst / f.radix ? 1 : src / pod == dst / pod ? 3 : 5;
  } else if (src / f.hosts_per_leaf != dst / f.hosts_per_leaf) {
    switches = 3;
  }
  const auto at = [&](double gbps) {
    return tb::wire_ps(wire_bytes - tb::kWireOverheadBytes, tb::to_mbps(gbps));
  };
  const auto ns = [](double v) { return static_cast<Ps>(std::llround(v * 1000)); };
  const Ps first = at(tb::host_rate_gbps(s, src)), last = at(tb::host_rate_gbps(s, dst));
  const Ps between = at(f.uplink_rate_gbps);
  Ps extra = 0;
  for (const tb::HostConfig& h : f.host)
    for (uint32_t node : {src, dst})
      if (node >= h.node && node <= h.last) extra += ns(h.extra_latency_ns);
  if (f.topology == tb::Topology::kFatTree) {
    const uint32_t pod = f.radix * f.radix;
    for (const tb::PodDistance& d : f.pods)
      if ((src / pod == d.a && dst / pod == d.b) || (src / pod == d.b && dst / pod == d.a))
        extra += ns(d.extra_latency_ns);
  }
  const Ps serial =
      f.cut_through ? std::max({first, last, between}) : first + last + between * (switches - 1);
  return serial + ns(f.link_latency_ns) * (switches + 1) + ns(f.switch_latency_ns) * switches + extra;
}

Ideal ideal(const tb::Scenario& s, const Flows& flows, const PacketSize& size, uint32_t ack_wire) {
  const double sent_more = 1 / (1 - s.faults.loss);
  const auto rate = [&](uint32_t host) { return tb::host_rate_gbps(s, host) * s.planes * 1e3; };  // bit/us
  const auto wire_bits = [&](const Flow& f) { return static_cast<double>(size.wire_bytes(f.bytes)) * 8; };
  const auto serial = [&](const Flow& f) {
    return wire_bits(f) * sent_more / std::min(rate(f.src), rate(f.dst));
  };
  // From the start of the last packet's way to its ack's arrival; its serialisation at the source is counted
  // with the flow.
  const auto tail = [&](const Flow& f) {
    const auto last = static_cast<uint32_t>(f.bytes == 0 ? 0 : (f.bytes - 1) % size.payload + 1);
    const Ps there = one_way_ps(s, f.src, f.dst, std::max(size.wire(last), 84u));
    const Ps own =
        tb::wire_ps(size.wire(last) - tb::kWireOverheadBytes, tb::to_mbps(tb::host_rate_gbps(s, f.src)));
    return us(there - own);
  };
  const auto back = [&](const Flow& f) { return us(one_way_ps(s, f.dst, f.src, ack_wire)); };

  // Times of each flow as if it were alone but for the flows that it waits for and the share of the hosts'
  // links: a host that is source of several flows at once needs at least the sum for the last of them.
  std::vector<double> completed(flows.list.size()), delivered(flows.list.size()), started(flows.list.size());
  std::vector<double> tx_free, rx_load, tx_load;
  uint32_t hosts = 0;
  for (const Flow& f : flows.list) hosts = std::max({hosts, f.src + 1u, f.dst + 1u});
  rx_load.assign(hosts, 0);
  tx_load.assign(hosts, 0);
  Ideal out;
  double bps = 0;
  for (const Flow& f : flows.list) {  // a flow comes after those it waits for
    double start = us(f.not_before);
    if (f.after_sent != kNoFlow) start = std::max(start, completed[f.after_sent]);
    if (f.after_got != kNoFlow) start = std::max(start, delivered[f.after_got]);
    started[f.id] = start;
    delivered[f.id] = passed(s, start, serial(f)) + tail(f);
    completed[f.id] = delivered[f.id] + back(f);
    tx_load[f.src] += wire_bits(f) * sent_more / rate(f.src);
    rx_load[f.dst] += wire_bits(f) * sent_more / rate(f.dst);
    out.mean_us += completed[f.id] - start;
    out.max_us = std::max(out.max_us, completed[f.id]);
    bps += wire_bits(f) / (completed[f.id] - start);
  }
  const auto n = static_cast<double>(std::max<size_t>(flows.list.size(), 1));
  out.mean_us /= n;
  out.gbps = bps / n / 1e3;
  double first = HUGE_VAL, shortest = HUGE_VAL;
  for (const Flow& f : flows.list) {
    first = std::min(first, started[f.id]);
    shortest = std::min(shortest, tail(f) + back(f));
  }
  for (uint32_t h = 0; h < hosts; ++h)
    out.max_us = std::max(out.max_us, passed(s, first, std::max(tx_load[h], rx_load[h])) + shortest);
  return out;
}

}  // namespace weft::eval
