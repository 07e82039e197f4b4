// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "tb/fabric/fabric.h"

namespace weft::eval {
namespace {

double us(Ps t) {
  return static_cast<double>(t) / 1e6;
}

bool whole_plane(const tb::DownFault& d, uint32_t plane) {
  return d.plane == static_cast<int>(plane) && d.leaf < 0 && d.tor < 0 && d.agg < 0;
}

// When links of `lanes` planes, those that are alive, have been busy for `busy_us` of one link's time, from
// `from_us` on.
double passed(const tb::Scenario& s, double from_us, double busy_us, uint32_t lanes) {
  std::vector<double> edges{from_us};
  for (const tb::DownFault& d : s.faults.down) {
    if (d.plane < 0 || !whole_plane(d, static_cast<uint32_t>(d.plane))) continue;
    for (Ps t : {d.from_ps, d.to_ps})
      if (t != kNever && us(t) > from_us) edges.push_back(us(t));
  }
  std::sort(edges.begin(), edges.end());
  for (size_t i = 0; i < edges.size(); ++i) {
    uint32_t up = 0;
    for (uint32_t plane = 0; plane < s.planes; ++plane)
      up += std::none_of(s.faults.down.begin(), s.faults.down.end(), [&](const tb::DownFault& d) {
        return whole_plane(d, plane) && us(d.from_ps) <= edges[i] &&
               (d.to_ps == kNever || us(d.to_ps) > edges[i]);
      });
    const double links = std::min(up, lanes);
    const double here = i + 1 < edges.size() ? edges[i + 1] - edges[i] : HUGE_VAL;
    if (links > 0 && links * here >= busy_us) return edges[i] + busy_us / links;
    busy_us -= links > 0 ? links * here : 0;
  }
  return HUGE_VAL;
}

// One way to cut a message.
struct Cut {
  uint64_t wire_bytes;  // of all packets
  uint32_t least;       // of the smallest of them, on the wire
  uint32_t lanes;       // planes that it can use
};

Cut sprayed(const PacketSize& size, uint64_t bytes, uint32_t planes) {
  return {size.wire_bytes(bytes), size.wire(size.rest(bytes)),
          static_cast<uint32_t>(std::min<uint64_t>(planes, size.packets(bytes)))};
}

Cut in_parts(const PacketSize& size, uint64_t bytes, uint32_t planes) {
  const auto parts = static_cast<uint32_t>(std::clamp<uint64_t>(bytes, 1, planes));
  Cut c{0, ~0u, parts};
  for (uint32_t i = 0; i < parts; ++i) {
    const uint64_t part = bytes * (i + 1) / parts - bytes * i / parts;
    c.wire_bytes += size.wire_bytes(part);
    c.least = std::min(c.least, size.wire(size.rest(part)));
  }
  return c;
}

// What flows do, each alone but for those it waits for, and then what the links of hosts have to carry.
class Bound {
 public:
  Bound(const tb::Scenario& s, const Flows& flows, const Charge& charge, const PacketSize& counted)
      : s_(s), list_(flows.list), at_a_time_(flows.at_a_time), charge_(charge), counted_(counted) {
    const double lost = s.faults.loss * (1 - s.faults.duplicate * (1 - s.faults.loss));
    sent_more_ = 1 / (1 - lost);
    for (const Flow& f : list_) hosts_ = std::max({hosts_, f.src + 1u, f.dst + 1u});
    times_.resize(list_.size());
  }

  Ideal find() {
    for (const Flow& f : list_) alone(f);  // a flow comes after those it waits for
    Ideal out;
    double took[2] = {0, 0}, bps[2] = {0, 0};
    for (const bool sends : {true, false}) {
      std::vector<std::vector<const Flow*>> of_host(hosts_);
      for (const Flow& f : list_) of_host[sends ? f.src : f.dst].push_back(&f);
      for (const auto& flows : of_host)
        if (!flows.empty()) together(flows, sends, took[sends], bps[sends], out);
    }
    const auto n = static_cast<double>(std::max<size_t>(list_.size(), 1));
    out.mean_us = std::max(took[0], took[1]) / n;
    out.gbps = std::min(bps[0], bps[1]) / n / 1e3;
    return out;
  }

 private:
  struct Times {
    double started = 0, delivered = HUGE_VAL, completed = HUGE_VAL;
    double after_tx = HUGE_VAL;   // from its last bit's leaving the source to its completion
    double before_rx = HUGE_VAL;  // from its start to its first bit on the destination's link
    double back = 0;              // of the ack
    double took = HUGE_VAL;       // from its start to its completion
    double bits = 0;              // on the wire, resends included
  };

  double rate(uint32_t host) const { return tb::host_rate_gbps(s_, host) * 1e3; }  // bit/us
  double counted_bits(const Flow& f) const { return static_cast<double>(counted_.wire_bytes(f.bytes)) * 8; }

  void alone(const Flow& f) {
    Times& t = times_[f.id];
    t.started = us(f.not_before);
    if (f.after_sent != kNoFlow) t.started = std::max(t.started, times_[f.after_sent].completed);
    if (f.after_told != kNoFlow) t.started = std::max(t.started, times_[f.after_told].completed);
    if (f.after_got != kNoFlow) t.started = std::max(t.started, times_[f.after_got].delivered);
    t.back = us(one_way_ps(s_, f.dst, f.src, charge_.ack_wire));
    t.bits = HUGE_VAL;
    for (const Cut& c :
         {sprayed(charge_.data, f.bytes, s_.planes), in_parts(charge_.data, f.bytes, s_.planes)}) {
      const auto own = [&](uint32_t host) {
        return us(tb::wire_ps(c.least - tb::kWireOverheadBytes, tb::to_mbps(tb::host_rate_gbps(s_, host))));
      };
      const double way = us(one_way_ps(s_, f.src, f.dst, c.least));
      const double bits = static_cast<double>(c.wire_bytes) * 8 * sent_more_;
      const double before = way - own(f.dst), after = way - own(f.src);
      const double sent = passed(s_, t.started, bits / rate(f.src), c.lanes) + after;
      const double got = passed(s_, t.started + before, bits / rate(f.dst), c.lanes);
      t.delivered = std::min(t.delivered, std::max(sent, got));
      const double healthy =
          std::max(bits / (rate(f.src) * c.lanes) + after, before + bits / (rate(f.dst) * c.lanes));
      t.took = std::min(t.took, healthy + t.back);
      t.after_tx = std::min(t.after_tx, after + t.back);
      t.before_rx = std::min(t.before_rx, before);
      t.bits = std::min(t.bits, bits);
    }
    t.completed = t.delivered + t.back;
    // One that waits for others may start later than here, when planes that were dead are back.
    if (timed(f)) t.took = t.completed - t.started;
  }

  // Whether it starts by the clock alone.
  static bool timed(const Flow& f) {
    return !f.queued && f.after_sent == kNoFlow && f.after_got == kNoFlow && f.after_told == kNoFlow;
  }

  // All flows of a host in one direction. Whatever their order, when k of them are through, the link has
  // carried at least the k smallest.
  void together(const std::vector<const Flow*>& flows, bool sends, double& took, double& bps, Ideal& out) {
    const double line = rate(sends ? flows[0]->src : flows[0]->dst);
    double first = HUGE_VAL, before = HUGE_VAL, after = HUGE_VAL, all = 0;
    for (const Flow* f : flows) {
      const Times& t = times_[f->id];
      first = std::min(first, t.started);
      before = std::min(before, sends ? 0 : t.before_rx);
      after = std::min(after, sends ? t.after_tx : t.back);
      all += t.bits;
      out.last_us = std::max(out.last_us, t.completed);
      out.max_us = std::max(out.max_us, t.took);
    }
    const auto through = [&](double bits) {
      return passed(s_, first + before, bits / line, s_.planes) + after;
    };
    out.last_us = std::max(out.last_us, through(all));

    std::vector<double> bits, counted, queued;
    double queued_us = 0;
    double alone_us = 0, alone_bps = 0, started = 0, latest = 0, earliest = HUGE_VAL;
    for (const Flow* f : flows) {
      const Times& t = times_[f->id];
      if (!timed(*f)) {
        (sends && f->queued ? queued_us : took) += t.took;
        if (f->queued) queued.push_back(t.bits);
        bps += counted_bits(*f) / t.took;
        continue;
      }
      bits.push_back(t.bits);
      counted.push_back(counted_bits(*f));
      alone_us += t.took;
      alone_bps += counted.back() / t.took;
      started += t.started;
      latest = std::max(latest, t.started);
      earliest = std::min(earliest, t.started);
    }
    std::sort(bits.begin(), bits.end());
    std::sort(counted.begin(), counted.end(), std::greater<>());
    double sum = 0, shared_us = -started, shared_bps = 0, end = 0;
    for (size_t k = 0; k < bits.size(); ++k) {
      end = through(sum += bits[k]);
      shared_us += end;
      shared_bps += counted[k] / (end - latest);
    }
    out.max_us = std::max(out.max_us, bits.empty() ? 0 : end - latest);
    if (sends && !queued.empty()) took += std::max(queued_us, in_queue(queued, through));
    took += std::max(alone_us, shared_us);
    bps += latest == earliest ? std::min(alone_bps, shared_bps) : alone_bps;
  }

  // Of a host's queue one flow starts whenever another is complete, so all of their times together are the
  // ends of the last at_a_time_ of them. The queue starts at 0.
  template <class Through>
  double in_queue(std::vector<double>& bits, Through&& through) const {
    std::sort(bits.begin(), bits.end());
    double sum = 0, ends = 0;
    for (size_t k = 0; k < bits.size(); ++k) {
      sum += bits[k];
      if (k + at_a_time_ >= bits.size()) ends += through(sum);
    }
    return ends;
  }

  const tb::Scenario& s_;
  const std::vector<Flow>& list_;
  const uint32_t at_a_time_;
  const Charge& charge_;
  const PacketSize& counted_;
  double sent_more_ = 1;
  uint32_t hosts_ = 0;
  std::vector<Times> times_;
};

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
  const Ps between = switches > 1 ? at(f.uplink_rate_gbps) : 0;
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

Ideal ideal(const tb::Scenario& s, const Flows& flows, const Charge& charge, const PacketSize& counted) {
  return Bound(s, flows, charge, counted).find();
}

}  // namespace weft::eval
