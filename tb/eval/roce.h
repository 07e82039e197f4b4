// SPDX-License-Identifier: Apache-2.0
// The baseline: RoCEv2 reliable connection with DCQCN, as network cards do it.
//
// Reliability. A queue pair numbers its packets. The receiver takes the one it expects; ahead of it, it
// answers one NAK for the gap and drops silently until the expected one comes; behind it, the packet is a
// duplicate and is acknowledged again. A NAK acknowledges what is before it and the sender goes back to it.
// What the NAK does not cure (it, or the first resend, is lost) costs a timeout. The sender asks for an ack
// every `ack_every` packets, with the last of a message, and when it has been slow.
//
// A queue pair has one UDP source port, so one way through the fabric. With several planes a flow is cut
// into one equal part for each, on a queue pair of its own: so libraries that use several rails do it.
//
// DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015: section 5 has the
// constants, but for the step of hyper increase, which is ten times the additive one as in the drivers'
// defaults (rpg_hai_rate 50, rpg_ai_rate 5 Mb/s). The paper's additive step of 40 Mb/s is for 40 Gb/s; here
// it is the same part of the line.
//
// A queue pair has at most a bandwidth-delay product in flight. Cards have no such limit, but without one the
// baseline does worse: a sender that missed a NAK fills the fabric until its timeout.
#pragma once

#include <cstdint>
#include <vector>

#include "tb/eval/body.h"

namespace weft::eval {

struct RoceConfig {
  uint32_t ports = 1;
  uint64_t line_bps = 100'000'000'000;
  PacketSize size;
  uint64_t seed = 1;  // of the source ports
  uint32_t ack_every = 4;
  Ps rto = 0;                   // 0: the longest base round trip and every queue on the way full
  uint32_t window_packets = 0;  // in flight on a queue pair; 0: line rate times the longest base round trip
  bool dcqcn = true;
  Ps cnp_interval = 50 * tb::kUs;  // of a queue pair
  double g = 1.0 / 256;
  Ps alpha_interval = 55 * tb::kUs;
  Ps rate_interval = 55 * tb::kUs;
  uint64_t rate_bytes = 10'000'000;
  uint32_t fast_recovery = 5;
  double additive = 0.001, hyper = 0.01;  // of the line
  double least = 0.001;
};

/// Rate of a queue pair. Time is caught up with when somebody asks, which gives the same as timers.
class Dcqcn {
 public:
  explicit Dcqcn(const RoceConfig& config)
      : c_(&config), target_(static_cast<double>(config.line_bps)), rate_(target_) {}
  void on_cnp(Ps now);
  void on_sent(Ps now, uint32_t wire_bytes);
  double rate_bps(Ps now) {
    catch_up(now);
    return rate_;
  }
  double alpha() const { return alpha_; }
  /// Whether the line's rate is reached again: nothing then to be paced.
  bool limited() const { return limited_; }

 private:
  void catch_up(Ps now);
  void increase();

  const RoceConfig* c_;
  double target_, rate_;
  double alpha_ = 1;
  bool limited_ = false;  // had a CNP since it was last at line rate
  Ps alpha_at_ = kNever, rate_at_ = kNever;
  uint64_t bytes_ = 0;
  uint32_t timer_steps_ = 0, byte_steps_ = 0;
};

struct RocePacket {
  enum class Kind : uint8_t { kData, kAck, kNak, kCnp };
  Kind kind;
  bool ack_request;  // data
  bool last;         // data: of its message
  bool resent;       // data
  uint16_t lane;     // with the hosts and the port: names the queue pair
  uint32_t psn;      // 32 bits, so that no run wraps; the wire has 24
  uint32_t flow;
  uint32_t bytes;  // of payload
};

/// Frame lengths without preamble, FCS, gap and payload: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, and
/// AETH 4 of an ack, 16 reserved bytes of a CNP. The RETH of a message's first packet is left out, to
/// RoCEv2's favour.
inline constexpr uint32_t kRoceDataBytes = 58, kRoceAckBytes = 62, kRoceCnpBytes = 74;

class RoceBody final : public Body {
 public:
  /// Host number `self` of `hosts`. Flows are looked up in `flows`.
  RoceBody(const RoceConfig& config, uint16_t self, uint32_t hosts, const Flows& flows, tb::FramePool& frames,
           Events& events);
  uint32_t parts(const Flow& flow) const override;
  void start(Ps now, const Flow& flow) override;
  void on_frame(Ps now, uint32_t port, const tb::Frame& frame) override;
  bool next(Ps now, uint32_t port, bool paused, tb::FrameRef& frame) override;
  uint32_t ready_ports() const override;
  Ps next_timer() const override;
  void on_timer(Ps now) override;
  BodyCounts counts() const override { return counts_; }
  size_t state_bytes() const override { return c_.ports * sizeof(Pair); }

 private:
  static constexpr uint32_t kNone = ~0u;
  struct Message {
    uint32_t flow;
    uint32_t first_psn;
    uint32_t packets;
    uint64_t bytes;
  };
  // Both directions between this host and another, over one port, in one lane.
  struct Pair {
    explicit Pair(const RoceConfig& config) : rate(config) {}
    uint16_t peer = 0;
    uint16_t lane = 0;
    uint8_t port = 0;
    uint64_t flow_hash = 0;
    // Sender.
    std::vector<Message> messages;
    size_t oldest = 0, current = 0;                 // of messages: not all acknowledged; next to send from
    uint32_t acked = 0, next_psn = 0, end_psn = 0;  // [acked, next) in flight, [next, end) to be sent
    uint32_t highest = 0;                           // below: sent before
    uint32_t since_request = 0;
    Ps last_sent = 0;
    Ps sends_at = 0;  // not before: its rate
    Ps rto_at = kNever;
    bool rto_listed = false;
    bool queued = false;  // in `ready` or `waiting` of its port
    Dcqcn rate;
    // Receiver.
    uint32_t expected = 0;
    bool nak_sent = false;  // for the gap that is open
    bool ack_due = false, nak_due = false, cnp_due = false;
    bool reply_listed = false;
    Ps last_cnp = -kNever / 2;
  };
  struct Timed {
    Ps time;
    uint32_t pair;
    bool operator<(const Timed& o) const { return time != o.time ? time > o.time : pair > o.pair; }
  };
  // A queue that keeps its memory.
  class Ring {
   public:
    bool empty() const { return count_ == 0; }
    void push(uint32_t v);
    uint32_t pop();

   private:
    std::vector<uint32_t> items_;
    size_t head_ = 0, count_ = 0;
  };
  struct Port {
    Ring replies;                // pairs with an ack, NAK or CNP to send
    Ring ready;                  // pairs that may send data now
    std::vector<Timed> waiting;  // heap: pairs that may later
  };

  uint32_t pair_of(uint16_t peer, uint16_t lane, uint32_t port);
  bool may_send(const Pair& pair) const {
    return pair.next_psn != pair.end_psn && pair.next_psn - pair.acked < c_.window_packets;
  }
  void enlist(Ps now, uint32_t pair);
  void reply(uint32_t pair);
  void acknowledge(Ps now, Pair& pair, uint32_t psn);
  void go_back(Pair& pair, uint32_t psn);
  void arm(Ps now, uint32_t index);
  tb::FrameRef make(const Pair& pair, const RocePacket& packet, uint32_t bytes, tb::FrameKind kind);

  RoceConfig c_;
  uint16_t self_;
  uint32_t lanes_;
  tb::FramePool& frames_;
  Events& events_;
  std::vector<uint32_t> index_;  // [(peer * lanes + lane) * ports + port] -> pair
  std::vector<Pair> pairs_;
  std::vector<Port> ports_;
  std::vector<Timed> timers_;  // heap
  BodyCounts counts_;
};

}  // namespace weft::eval
