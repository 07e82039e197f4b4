// SPDX-License-Identifier: Apache-2.0
// An endpoint made of nothing but a list of frames to send and a list of frames that came, and frames to give
// it.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "sw/wire/frame.h"
#include "tb/check/traffic.h"
#include "tb/cluster.h"
#include "tb/fabric/fabric.h"
#include "tb/node/endpoint.h"

namespace weft::tb {

struct Arrival {
  Ps first_bit;
  uint32_t port;
  std::vector<uint8_t> bytes;
  uint8_t flags;
};

class SoftNode final : public Endpoint {
 public:
  SoftNode(const NodeEnv& env, uint32_t ports)
      : node(env.node),
        env_(env),
        ports_(ports),
        wire_free_(ports, 0),
        rate_mbps_(to_mbps(host_rate_gbps(*env.scenario, env.node))) {}

  // Sends at `when`, or when the link is free; call it between windows with when >= now.
  void send_at(Ps when, uint32_t port, std::vector<uint8_t> bytes) {
    const Ps start = std::max(when, wire_free_[port]);
    wire_free_[port] = start + wire_ps(static_cast<uint32_t>(bytes.size()), rate_mbps_);
    to_send_.emplace(start, Outgoing{port, std::move(bytes)});
  }

  std::vector<Arrival> arrivals;
  uint64_t count = 0;  // arrivals, kept or not
  bool keep = true;
  // For tests of what must be found out: flags of the frames it sends, payload it says it wrote.
  uint8_t send_flags = 0;
  uint64_t written = 0;
  const uint32_t node;

  uint32_t ports() const override { return ports_; }
  void on_frame(uint32_t port, Ps first_bit, FrameRef frame) override {
    ++count;
    if (keep)
      arrivals.push_back({first_bit, port, {frame->data(), frame->data() + frame->bytes}, frame->flags});
  }
  void advance_to(Ps end) override {
    while (!to_send_.empty() && to_send_.begin()->first < end) {
      auto it = to_send_.begin();
      const Outgoing& o = it->second;
      FrameRef frame = env_.frames->make(o.bytes.data(), o.bytes.size());
      frame->flags = send_flags;
      env_.sink->send(o.port, it->first,
                      it->first + wire_ps(static_cast<uint32_t>(o.bytes.size()), rate_mbps_), it->first,
                      std::move(frame));
      to_send_.erase(it);
    }
  }
  Ps wants_at() const override { return to_send_.empty() ? kNever : to_send_.begin()->first; }
  bool idle() const override { return to_send_.empty(); }
  uint64_t rx_bytes_written() const override { return written; }

 private:
  struct Outgoing {
    uint32_t port;
    std::vector<uint8_t> bytes;
  };
  NodeEnv env_;
  uint32_t ports_;
  std::vector<Ps> wire_free_;
  int64_t rate_mbps_;
  std::multimap<Ps, Outgoing> to_send_;
};

inline NodeFactory soft_nodes(uint32_t ports) {
  return [ports](const NodeEnv& env) { return std::make_unique<SoftNode>(env, ports); };
}

inline SoftNode& soft(Cluster& cluster, uint32_t node) {
  return static_cast<SoftNode&>(cluster.node(node));
}

inline wire::Route route(uint32_t from, uint32_t to, uint32_t port, uint16_t sport = 0xc000) {
  wire::Route r;
  r.smac = node_mac(from, port);
  r.dmac = node_mac(to, port);
  r.sip = node_ip(from, port);
  r.dip = node_ip(to, port);
  r.sport = sport;
  r.ecn = wire::kEcnEct0;
  return r;
}

struct DataFields {
  uint32_t psn = 0;
  uint16_t msg_no = 0;
  uint64_t va = 0x1000;
  bool retx = false;
};

inline std::vector<uint8_t> data_frame(const wire::Route& r, size_t payload_bytes, const DataFields& f = {}) {
  std::vector<uint8_t> payload(payload_bytes);
  for (size_t i = 0; i < payload_bytes; ++i) payload[i] = static_cast<uint8_t>(i * 7 + f.psn);
  wire::Wth wth;
  wire::Wdh wdh;
  wdh.va = f.va;
  wdh.msg_no = f.msg_no;
  wdh.retx = f.retx;
  wdh.msg_len = static_cast<uint32_t>(payload_bytes);
  return wire::build_data(r, wire::make_bth(wire::Opcode::WRITE, 3, f.psn), wth, wdh, payload);
}

inline std::vector<uint8_t> ack_frame(wire::Route r) {
  r.ecn = 0;
  return wire::build_ack(r, wire::make_bth(wire::Opcode::ACK, 3, 0), {}, {}, {});
}

// A scenario of quiet links: two nodes, one plane, one leaf, 100 Gb/s, 1 us a link.
inline Scenario two_nodes() {
  Scenario s;
  s.nodes = 2;
  s.planes = 1;
  s.threads = 1;
  return s;
}

}  // namespace weft::tb
