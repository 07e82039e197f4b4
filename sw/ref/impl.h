// SPDX-License-Identifier: Apache-2.0
// Inside of the endpoint; one file a subject: endpoint.cpp (calls, connections), tx.cpp (what goes next),
// settle.cpp (acks, windows), path.cpp (probes, fences, failure), rx.cpp (packets in, messages), share.cpp.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sw/ref/state.h"

namespace weft::ref {

enum class Ctl : std::uint8_t { kAck, kProbe, kFence, kAnswer };

struct CtlEntry {
  std::uint32_t conn = 0;
  std::uint8_t path = 0;
  std::uint8_t carrier = 0;  // fences and answers: path whose port and source port they use
  Ctl kind = Ctl::kAck;
  std::uint8_t copies = 1;
};

enum class TimerKind : std::uint8_t { kPath, kPace, kLeft, kAck, kHole, kKeep, kFlush };

struct Timer {
  Ps at = 0;
  std::uint64_t order = 0;  // of those at one time: first set, first served
  std::uint32_t conn = 0;
  std::uint8_t index = 0;  // path or port
  TimerKind kind = TimerKind::kPath;
  std::uint16_t incarnation = 0;
  std::uint32_t psn = 0;  // kHole: of the hole
  bool operator>(const Timer& o) const { return at != o.at ? at > o.at : order > o.order; }
};

struct ReadyConn {
  std::uint64_t age = 0;
  std::uint32_t conn = 0;
  bool operator>(const ReadyConn& o) const { return age != o.age ? age > o.age : conn > o.conn; }
};

struct Port {
  Ring<CtlEntry> ctl;            // acks, probes, fences: before data
  std::vector<ReadyConn> ready;  // heap, oldest first
  double loss = 0;               // EWMA over settled packets, both directions
  // The share of what arrives here.
  std::vector<std::uint32_t> senders;  // connections
  std::uint32_t limited = 0;           // of them
  double reserved = 0;                 // byte/ns
  Ps epoch_start = 0, epoch_end = 0;
  std::uint64_t ce_now = 0, all_now = 0;  // bytes in the running base RTT
  double ce_fraction = 0;                 // in the last one
  Ps ce_end = 0;
};

struct Region {
  std::uint64_t va = 0, bytes = 0;
  std::uint8_t rights = 0;
};

struct Endpoint::Impl {
  Impl(const Config& config, Env& env);

  Config config;
  Env& env;
  Counters count{};
  std::vector<Port> ports;
  std::vector<Conn> conns;
  std::vector<std::uint32_t> free_conns;
  Pool<Desc> descs;
  Pool<TxMsg> msgs;
  Pool<RxMsg> rx_msgs;
  std::unordered_map<std::uint32_t, Region> regions;
  std::vector<Timer> timers;  // heap
  std::uint64_t timer_order = 0;
  std::uint64_t next_age = 0;
  std::uint32_t ready_ports = 0;
  Ps now = 0;  // of the running call
  std::uint64_t random = 0;
  std::vector<std::uint32_t> done_queues;  // scratch: streams whose oldest message may be done
  std::vector<std::uint8_t> staging;       // payload of the packet handed out last
  std::uint32_t per_path;                  // of port_of()
  double line;                             // byte/ns
  std::uint32_t line_share;                // line in the unit of shares
  std::uint32_t pkt;                       // full packet as windows count it
  std::uint32_t rtt_init_ns;

  static std::uint32_t clock(Ps now) { return static_cast<std::uint32_t>(now / kNs); }
  /// When a clock of the last 4 s was read. Kept for longer, a clock says nothing: it wraps.
  static Ps time_of(Ps now, std::uint32_t ts) { return (now / kNs - Ps{clock(now) - ts}) * kNs; }
  std::uint64_t draw();
  std::uint16_t draw_sport();
  // path / config.paths. Exact, for both are at most 256: with per_path = 65536 / paths rounded up the
  // product is too large by less than path * paths < 65536, and path / paths is at least 1 / paths below its
  // next whole.
  std::uint32_t port_of(std::uint32_t path) const { return path * per_path >> 16; }
  std::uint32_t index_of(std::uint32_t path) const { return path - port_of(path) * config.paths; }
  std::uint32_t num_paths() const { return config.ports * config.paths; }
  void drop(wire::Drop reason) { ++count.drop[static_cast<unsigned>(reason)]; }

  // endpoint.cpp
  std::uint32_t reserve_conn();
  void open(std::uint32_t conn, const wire::Hello& mine, const wire::Hello& theirs, Peer peer, Ps now);
  wire::Refusal judge(const wire::Hello& h) const;
  void release(std::uint32_t conn);
  void fail_connection(std::uint32_t conn, Ps now, wire::Err why);
  void flush(std::uint32_t conn, wire::Err first);
  void tell(std::uint32_t conn, const TxMsg& m, wire::Err status);

  // tx.cpp
  void push_ctl(std::uint32_t port, const CtlEntry& e);
  void make_ready(std::uint32_t conn);  // on every port, if it has data
  void queue_conn(std::uint32_t conn, std::uint32_t port);
  bool sendable(const Conn& c, std::uint32_t stream);
  void stream_ready(std::uint32_t conn, std::uint32_t stream);
  bool next_control(Ps now, std::uint32_t port, Packet& out);
  bool next_data(Ps now, std::uint32_t port, Packet& out);
  bool build_data(Ps now, std::uint32_t conn, std::uint32_t path, std::uint32_t desc, Packet& out);
  int pick_path(const Conn& c, std::uint32_t port, std::uint32_t bytes, std::uint32_t avoid) const;
  std::uint32_t next_stream(Conn& c);
  bool more_to_send(Conn& c);
  Ps paced_until(const TxPort& t) const;
  bool may_send(const Conn& c, std::uint32_t port, std::uint32_t bytes) const;
  bool lost_here_only(const Conn& c, std::uint32_t port, std::uint32_t desc);
  std::uint32_t pick_resend(std::uint32_t conn, std::uint32_t port, std::uint32_t& before);
  void unlink_resend(Conn& c, std::uint32_t before, std::uint32_t desc);
  void ran_dry(std::uint32_t conn);
  void probe_tails(std::uint32_t conn, std::uint32_t port, std::uint32_t first);
  std::uint32_t enqueue_message(std::uint32_t conn, std::uint32_t queue, const TxMsg& m);
  void drop_desc(std::uint32_t desc);
  void complete_stream(std::uint32_t conn, std::uint32_t queue);
  void fail_stream(std::uint32_t conn, std::uint32_t stream, std::uint16_t msg_no, wire::Err status);
  void to_resend(Conn& c, std::uint32_t desc, std::uint32_t path);
  void update_cap(std::uint32_t conn, std::uint32_t port);

  // settle.cpp
  void on_ack(Ps now, std::uint32_t conn, std::uint32_t port, const Packet& p);
  /// What an ack says of one path.
  struct PathNews {
    std::uint32_t path;
    std::uint8_t epoch;
    std::uint32_t reach;        // PSNs below base that the history tells of
    std::uint32_t ce_bytes;     // low 24 bits count
    const std::uint32_t* echo;  // null: not told
  };
  bool any_lost = false;  // scratch of on_ack
  bool stuck = false;     // scratch of settle(): data of a stream is lost for ever (W-ERR-013)
  bool take_news(std::uint32_t conn, std::uint32_t port, const PathNews& news, const AckHeader& history);
  void on_fence_answer(Ps now, std::uint32_t conn, const Packet& p);
  struct Settled {
    std::uint32_t packets = 0, bytes = 0, lost_packets = 0, lost_bytes = 0, delivered = 0;
  };
  Settled settle(std::uint32_t conn, std::uint32_t path, std::uint32_t base, const AckHeader& ack);
  void learn_credits(std::uint32_t conn, std::uint32_t stream, std::uint16_t posted);
  void sample_rtt(std::uint32_t conn, std::uint32_t port, std::uint32_t rtt_ns);

  // path.cpp
  std::uint32_t rto_ns(const Conn& c, std::uint32_t port, std::uint32_t doublings = 0) const;
  void arm(std::uint32_t conn, std::uint32_t path, Ps now, std::uint32_t after_ns);
  void push_timer(Timer t);
  void on_path_timer(Ps now, std::uint32_t conn, std::uint32_t path, Ps at);
  void queue_probe(std::uint32_t conn, std::uint32_t path, std::uint8_t copies, bool anyway = false);
  void on_keep_timer(Ps now, std::uint32_t conn);
  void judge_path(std::uint32_t conn, std::uint32_t path, Ps now, const Settled& s, bool answers);
  void set_state(std::uint32_t conn, std::uint32_t path, PathState state);
  std::uint32_t usable_paths(const Conn& c) const;
  std::uint32_t probes_to_fail(std::uint32_t port) const;
  bool count_change(Conn& c, TxPath& t, Ps now);
  bool fence(std::uint32_t conn, std::uint32_t path, Ps now);
  void queue_fence(std::uint32_t conn, std::uint32_t path);
  void send_scout(std::uint32_t conn, std::uint32_t path);
  void new_epoch(std::uint32_t conn, std::uint32_t path, Ps now);
  void on_fence(std::uint32_t conn, std::uint32_t port, const Packet& p);
  void answer_fence(std::uint32_t conn, std::uint32_t port, std::uint32_t path);

  // rx.cpp
  void on_sequenced(Ps now, std::uint32_t conn, std::uint32_t port, const Packet& p);
  wire::Err accept_data(std::uint32_t conn, const Packet& p);  // OK: placed
  wire::Err place(const Packet& p, std::uint64_t va, std::uint32_t rkey, std::uint8_t right);
  wire::Err check_region(std::uint32_t rkey, std::uint64_t va, std::uint64_t bytes, std::uint8_t right) const;
  wire::Err accept_reply(std::uint32_t conn, const Packet& p);
  wire::Err accept_request(std::uint32_t conn, const Packet& p);
  void complete_rx(std::uint32_t conn, std::uint32_t stream);
  bool act(std::uint32_t conn, std::uint32_t stream, const RxMsg& m);
  void stream_error(std::uint32_t conn, std::uint16_t stream, std::uint16_t msg_no, wire::Err status,
                    bool took_receive = false);
  void flush_recvs(std::uint32_t conn, std::uint32_t stream);
  void offer_credits(std::uint32_t conn, std::uint32_t stream);
  void ack_due(std::uint32_t conn, std::uint32_t path, bool gap, bool urgent);
  void queue_acks(std::uint32_t conn, std::uint32_t port);
  bool build_ack(std::uint32_t conn, std::uint32_t port, Packet& out);
  void fill_ack(std::uint32_t conn, std::uint32_t path, Packet& out);
  void on_hole_timer(Ps now, std::uint32_t conn, std::uint32_t path, std::uint32_t psn);

  // share.cpp
  void share_data(Ps now, std::uint32_t conn, std::uint32_t port, const Packet& p, std::uint32_t bytes);
  void share_touch(Ps now, std::uint32_t conn, std::uint32_t port);
  void share_roll(Ps now, Port& port, std::uint32_t number);
  void share_leave(Port& port, RxPort& r, bool leaving);
  void share_forget(std::uint32_t conn);
  std::uint32_t share_grant(std::uint32_t conn, std::uint32_t port);
};

}  // namespace weft::ref
