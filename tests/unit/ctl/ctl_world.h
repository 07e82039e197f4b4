// SPDX-License-Identifier: Apache-2.0
//
// Everything around the transmit control of a port: the core (packets to send, lost ones first), the
// frame builder and a network of FIFO paths with loss, delay and jitter, the receiver's path states
// (reorder distance 0), and the acks' way back with loss, copies and reordering. It checks as it goes
// and notes what is wrong in `errors`, so that a test can also expect an error.
//
//   accepted at the receiver    each packet exactly once
//   sent                        each packet once, and once more for every time the network lost it
//   settled                     after every transmission, with the receiver's own verdict
//   PSNs                        in order per path; only a probe repeats, and only its own, the last one
//   windows                     unsettled data <= 250 a path, PSNs <= 256, bytes <= the connection's cap
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "weft_test.h"

namespace weft::test::ctl {

inline constexpr uint32_t kPsnMask = 0xffffff;
inline constexpr uint32_t kOverhead = 96;  // WIN_OVERHEAD
inline uint32_t psn_add(uint32_t psn, int64_t n) {
  return static_cast<uint32_t>(psn + n) & kPsnMask;
}
/// a - b as a signed 24-bit number.
inline int32_t psn_diff(uint32_t a, uint32_t b) {
  return static_cast<int32_t>((a - b) << 8) >> 8;
}

struct Settings {
  unsigned conns = 64, paths = 8, ports = 2, port = 1;  // of the model
  unsigned mtu_log2 = 12;
  unsigned num_paths = 8;
  uint32_t psn = 0x123456;
  uint32_t init_cap = 200000;
  uint32_t share = 9933;  // 38.8 B a cycle
  uint32_t retry_limit = 20, probe_min = 600, rtt_init = 2000;
  uint32_t now = 0x1000;

  double loss = 0, ack_loss = 0, ack_copy = 0, mark = 0, put_off = 0;
  unsigned delay = 700, jitter = 0, skew = 0;  // of data: per packet (order kept), per path
  unsigned ack_delay = 700, ack_jitter = 0;    // jitter reorders acks
  unsigned ack_hold = 100;
  unsigned pull_min = 3, pull_max = 3;
  double bytes_per_cycle = 0;  // of the frame builder, 0: no limit
  Profile stall = Profile::None;
};

struct Packet {
  uint32_t conn, len;
  bool out = false;      // at the port or in the network
  bool former = false;   // of a life of its connection that is over
  bool arrived = false;  // what the receiver did with the last transmission
  unsigned sent = 0, lost = 0, accepted = 0, delivered = 0;
};

struct Frame {
  uint64_t time = 0;  // of arrival
  uint32_t conn = 0, path = 0, psn = 0, id = 0, len = 0, stamp = 0;
  bool probe = false, retx = false, more = false, mark = false;
};

struct Ack {
  uint32_t conn = 0, path = 0, epoch = 0, base = 0, ce = 0, rx = 0, echo = 0, status = 0;
  std::array<uint32_t, 8> hist{};
};

struct Counts {
  uint64_t data = 0, retx = 0, probe_tail = 0, probe_timer = 0, probe_again = 0, probe_copy = 0, taken = 0,
           old = 0, bad = 0;
  uint64_t delivered = 0, lost = 0, cut = 0, none = 0, put_off = 0, fail = 0;
};

template <class V>
class World {
 public:
  struct Sent {
    uint32_t psn, bytes;
  };
  struct Sender {  // of a path, as the jobs show it
    uint32_t next = 0, base = 0;
    bool last_probe = false;
    std::deque<Sent> unsettled;
  };
  struct Receiver {
    uint32_t next = 0, ce = 0, rx = 0, echo = 0, pending = 0;
    bool last_mark = false, due = false;
    std::bitset<256> hist;
    uint64_t last_arrival = 0;
  };
  struct Conn {
    bool live = false, failed = false;
    std::deque<uint32_t> fresh, resend;
    uint64_t inflight = 0;
    uint32_t status = 0;  // the receiver's verdict on the stream
    unsigned left = 0;    // packets not delivered
    unsigned starts = 0;  // the port said that it serves what was configured
    unsigned fails = 0;
    uint32_t fail_status = 0;
  };

  explicit World(const Settings& settings, uint64_t stream = 0)
      : s(settings),
        bench("ctl"),
        rng(seed(), 100 + stream),
        pull_stall_(s.stall, 1 + stream),
        settle_stall_(s.stall, 2 + stream),
        job_stall_(s.stall, 3 + stream),
        ack_stall_(s.stall, 4 + stream),
        fail_stall_(s.stall, 5 + stream),
        avail_stall_(s.stall, 6 + stream) {
    conns.resize(s.conns);
    senders.resize(s.conns * s.paths);
    receivers.resize(s.conns * s.paths);
    path_delay_.resize(s.conns * s.paths);
    for (auto& d : path_delay_) d = s.delay + (s.skew ? static_cast<unsigned>(rng.below(s.skew)) : 0);
    V& d = bench.dut();
    d.cfg_valid_i = 0;
    d.avail_valid_i = d.rsp_valid_i = d.ack_valid_i = d.err_valid_i = 0;
    d.pull_ready_i = d.settle_ready_i = d.fail_ready_i = d.job_ready_i = 0;
    d.now_i = s.now;
    bench.reset();
    bench.patience(2000000);
    bench.ticks(s.conns * 8 + 8);  // the tables are cleared
    configure_global();
  }

  // ---- what a test does ------------------------------------------------------------------------------
  void configure_global() {
    V& d = bench.dut();
    d.mtu_log2_i = s.mtu_log2;
    d.retry_limit_i = s.retry_limit;
    d.probe_min_i = s.probe_min;
    d.rtt_init_i = s.rtt_init;
    write_cfg(5, 0);
  }
  void configure(uint32_t conn, bool valid = true) {
    V& d = bench.dut();
    d.conn_valid_i = valid;
    d.conn_paths_i = s.num_paths;
    d.conn_psn_i = s.psn;
    d.conn_share_i = s.share;
    d.conn_cap_i = s.init_cap;
    for (Packet& p : packets) p.former |= p.conn == conn;
    Conn& c = conns[conn];
    c = Conn{};
    c.live = valid;
    for (unsigned p = 0; p < s.paths; ++p) {
      senders[conn * s.paths + p] = Sender{s.psn, s.psn, false, {}};
      Receiver r;
      r.next = s.psn;
      r.hist.set();
      receivers[conn * s.paths + p] = r;
    }
    write_cfg(1, conn * s.ports + s.port);
  }
  /// Packets of these lengths are posted to the connection.
  void post(uint32_t conn, const std::vector<uint32_t>& lens) {
    Conn& c = conns[conn];
    const bool had = has_work(conn);
    for (uint32_t len : lens) {
      c.fresh.push_back(static_cast<uint32_t>(packets.size()));
      packets.push_back(Packet{conn, len});
      ++c.left;
    }
    if (!had && !lens.empty()) raise(conn);
  }
  void post(uint32_t conn, unsigned count, uint32_t len) { post(conn, std::vector<uint32_t>(count, len)); }
  void inject(const Ack& a) { acks_in_.push_back(a); }
  /// State of a path as its next ack would tell it.
  Ack ack_of(uint32_t conn, uint32_t path) const {
    const Receiver& r = receivers[conn * s.paths + path];
    Ack a;
    a.conn = conn;
    a.path = path;
    a.base = r.next;
    a.ce = r.ce;
    a.rx = r.rx;
    a.echo = r.echo;
    a.status = conns[conn].status;
    for (unsigned i = 0; i < 256; ++i)
      if (r.hist[i]) a.hist[i / 32] |= 1u << (i % 32);
    return a;
  }

  bool all_done() const {
    for (const Conn& c : conns)
      if (c.left && !c.failed) return false;
    return true;
  }
  /// Runs until everything is delivered and the port idle; false when that takes too long.
  bool finish(uint64_t limit = 3000000) {
    for (uint64_t i = 0; i < limit; ++i) {
      if (all_done() && bench->idle_o && acks_in_.empty() && events_.empty()) return true;
      cycle();
      if (errors.size() > 20) return false;
    }
    error("does not come to rest");
    return false;
  }
  void run(uint64_t cycles) {
    for (uint64_t i = 0; i < cycles; ++i) cycle();
  }
  /// At the end of a run: everything sent once and once more per loss, accepted once, nothing left.
  void check_end() {
    for (size_t i = 0; i < packets.size(); ++i) {
      const Packet& p = packets[i];
      if (p.out) error("packet " + std::to_string(i) + " is out");
      if (p.former || conns[p.conn].failed) continue;
      if (p.accepted != 1)
        error("packet " + std::to_string(i) + " accepted " + std::to_string(p.accepted) + " times");
      if (p.sent != 1 + p.lost)
        error("packet " + std::to_string(i) + " sent " + std::to_string(p.sent) + " times, lost " +
              std::to_string(p.lost));
      if (p.delivered != 1) error("packet " + std::to_string(i) + " not settled as delivered once");
    }
    for (size_t i = 0; i < conns.size(); ++i)
      if (!conns[i].failed && conns[i].inflight) error("bytes in flight of " + std::to_string(i));
    if (!bench->idle_o) error("not idle");
  }
  std::string report() const {
    std::string text;
    for (size_t i = 0; i < errors.size() && i < 8; ++i) text += errors[i] + "\n";
    return text;
  }
  uint64_t now() const { return bench.cycle(); }

  Settings s;
  Bench<V> bench;
  Rng rng;
  std::vector<Conn> conns;
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  std::vector<Packet> packets;
  std::vector<std::string> errors;
  Counts counts;
  uint64_t frames = 0, frames_lost = 0, acks_sent = 0;
  uint64_t last_data_job = 0;
  bool check_cap = false;
  /// True: this frame is lost (asked before the random loss).
  std::function<bool(const Frame&)> drop;
  std::function<bool(const Ack&)> drop_ack;
  /// Sees every frame the builder takes and every ack as it is made, which it may spoil.
  std::function<void(const Frame&)> on_job;
  std::function<void(Ack&)> spoil_ack;

  void error(const std::string& text) { errors.push_back("cycle " + std::to_string(now()) + ": " + text); }

  void cycle() {
    V& d = bench.dut();
    const uint64_t t = now();
    d.now_i = static_cast<uint32_t>(s.now + t);
    arrivals(t);

    d.pull_ready_i = pull_stall_.go();
    d.settle_ready_i = settle_stall_.go();
    d.fail_ready_i = fail_stall_.go();
    d.job_ready_i = job_stall_.go() && static_cast<double>(t) >= builder_free_;
    if (!d.ack_valid_i && !acks_in_.empty() && ack_stall_.go()) {
      const Ack& a = acks_in_.front();
      d.ack_valid_i = 1;
      d.ack_conn_i = a.conn;
      d.ack_path_i = a.path;
      d.ack_epoch_i = a.epoch;
      d.ack_base_i = a.base;
      d.ack_ce_i = a.ce;
      d.ack_rx_i = a.rx;
      d.ack_echo_i = a.echo;
      d.ack_status_i = a.status;
      for (unsigned i = 0; i < 8; ++i) d.ack_hist_i[i] = a.hist[i];
    }
    if (!d.avail_valid_i && !avail_.empty() && avail_stall_.go()) {
      d.avail_valid_i = 1;
      d.avail_conn_i = avail_.front();
    }
    d.rsp_valid_i = 0;
    if (pull_out_ && t >= pull_time_) answer();
    bench.eval();

    if (d.ack_valid_i && d.ack_ready_o) {
      take_ack(acks_in_.front());
      acks_in_.pop_front();
    }
    const bool ack_done = d.ack_valid_i && d.ack_ready_o;
    const bool avail_done = d.avail_valid_i && d.avail_ready_o;
    if (avail_done) avail_.pop_front();
    if (d.rsp_valid_i) pull_out_ = false;
    if (d.pull_valid_o && d.pull_ready_i) pull(t);
    if (d.settle_valid_o && d.settle_ready_i) settle();
    if (d.fail_valid_o && d.fail_ready_i) failed();
    if (d.job_valid_o && d.job_ready_i) job(t);
    count();
    bench.tick();
    if (ack_done) d.ack_valid_i = 0;
    if (avail_done) d.avail_valid_i = 0;
  }

 private:
  struct Event {
    uint64_t time, order;
    bool is_ack, is_hold;
    Frame frame;
    Ack ack;
    bool operator>(const Event& e) const { return time != e.time ? time > e.time : order > e.order; }
  };

  void write_cfg(unsigned kind, unsigned index) {
    V& d = bench.dut();
    d.cfg_valid_i = 1;
    d.cfg_kind_i = kind;
    d.cfg_index_i = index;
    cycle();
    d.cfg_valid_i = 0;
    run(63);
  }

  // ---- core ---------------------------------------------------------------------------------------------
  bool has_work(uint32_t conn) const { return !conns[conn].fresh.empty() || !conns[conn].resend.empty(); }
  void raise(uint32_t conn) { avail_.push_back(conn); }
  void pull(uint64_t t) {
    V& d = bench.dut();
    if (pull_out_) error("two pulls outstanding");
    pull_out_ = true;
    pull_time_ = t + rng.range(s.pull_min, s.pull_max);
    answer_kind_ = 0;
    const uint32_t conn = d.pull_conn_o;
    Conn& c = conns[conn];
    if (!has_work(conn)) return;
    if (rng.chance(s.put_off)) {
      answer_kind_ = 1;
      return;
    }
    auto& from = c.resend.empty() ? c.fresh : c.resend;
    answer_kind_ = 2;
    answer_retx_ = !c.resend.empty();
    answer_id_ = from.front();
    from.pop_front();
    answer_more_ = has_work(conn);
  }
  void answer() {
    V& d = bench.dut();
    d.rsp_valid_i = 1;
    d.rsp_kind_i = answer_kind_;
    if (answer_kind_ != 2) return;
    const Packet& p = packets[answer_id_];
    d.rsp_msg_i = (answer_id_ * 7) & 1023;
    d.rsp_pkt_i = answer_id_ & 0xffffff;
    d.rsp_len_i = p.len;
    d.rsp_retx_i = answer_retx_;
    d.rsp_more_i = answer_more_;
    d.rsp_tag_i = answer_id_ * 2654435761u + 1;
    Frame f;
    f.conn = p.conn;
    f.id = answer_id_;
    f.len = p.len;
    f.retx = answer_retx_;
    f.more = answer_more_;
    answered_.push_back(f);
  }
  void settle() {
    V& d = bench.dut();
    const uint32_t id = d.settle_pkt_o;
    if (id >= packets.size()) return error("settled a packet that never was");
    Packet& p = packets[id];
    Conn& c = conns[p.conn];
    event("settle id %llu lost %llu", id, d.settle_lost_o);
    if (d.settle_conn_o != p.conn || d.settle_msg_o != ((id * 7) & 1023) || d.settle_len_o != p.len)
      error("settled with another description");
    if (!p.out) return error("settled twice");
    if (c.failed) return error("settled after the failure was reported");
    p.out = false;
    if (p.former) {
      if (c.starts) error("settled after the new life was reported");
      return;
    }
    if (c.status == 0 && !dying_ && d.settle_lost_o == p.arrived)
      error("settled wrong: packet " + std::to_string(id));
    if (d.settle_lost_o) {
      const bool had = has_work(p.conn);
      c.resend.push_back(id);
      if (!had) raise(p.conn);
    } else {
      ++p.delivered;
      --c.left;
    }
    bench.progress();
  }
  void failed() {
    V& d = bench.dut();
    Conn& c = conns[d.fail_conn_o];
    event("fail conn %llu status %llu", d.fail_conn_o, d.fail_status_o);
    if (d.fail_status_o == 0) {  // the last CfgConn holds
      if (++c.starts > 1) error("started twice");
      for (const Packet& p : packets)
        if (p.conn == d.fail_conn_o && p.former && p.out) error("new life reported with packets out");
      return;
    }
    ++c.fails;
    c.fail_status = d.fail_status_o;
    if (c.failed) error("failed twice");
    c.failed = true;
    c.fresh.clear();
    c.resend.clear();
    for (const Packet& p : packets)
      if (p.conn == d.fail_conn_o && p.out) error("failure reported with packets out");
  }

  // ---- frame builder and network --------------------------------------------------------------------------
  void job(uint64_t t) {
    V& d = bench.dut();
    Frame f;
    f.conn = d.job_conn_o;
    f.path = d.job_path_o;
    f.psn = d.job_psn_o;
    f.probe = d.job_probe_o;
    f.stamp = static_cast<uint32_t>(s.now + t);
    if (f.conn >= s.conns || f.path >= s.num_paths) return error("job for a path that is not there");
    Sender& tx = senders[f.conn * s.paths + f.path];
    Conn& c = conns[f.conn];
    if (d.job_epoch_o != 0) error("job of another epoch");
    event(f.probe ? "probe conn %llu path %llu psn %llx" : "data conn %llu path %llu psn %llx", f.conn,
          f.path, f.psn);
    if (!c.starts) return former_job(f);
    if (!c.live || c.failed) error("job of a connection that is down");
    if (f.probe) {
      const bool repeat = f.psn == psn_add(tx.next, -1) && tx.last_probe;
      if (!repeat && f.psn != tx.next) error("probe out of order");
      if (d.job_len_o) error("probe with a payload");
      if (!repeat) tx.next = psn_add(tx.next, 1);
      tx.last_probe = true;
    } else {
      if (answered_.empty()) return error("job without an answered pull");
      const Frame want = answered_.front();
      answered_.pop_front();
      f.id = want.id;
      f.len = want.len;
      f.retx = want.retx;
      f.more = want.more;
      if (f.conn != want.conn || d.job_len_o != want.len || d.job_retx_o != want.retx ||
          d.job_more_o != want.more || d.job_tag_o != want.id * 2654435761u + 1)
        error("job is not the packet pulled");
      if (f.psn != tx.next) error("PSN out of order");
      tx.next = psn_add(tx.next, 1);
      tx.last_probe = false;
      tx.unsettled.push_back({f.psn, f.len + kOverhead});
      c.inflight += f.len + kOverhead;
      Packet& p = packets[f.id];
      if (p.out) error("sent while out");
      p.out = true;
      p.arrived = false;
      ++p.sent;
      if (tx.unsettled.size() > 250) error("more than 250 unsettled packets on a path");
      if (check_cap && c.inflight > cap_bound_) error("more bytes in flight than the cap");
      last_data_job = t;
    }
    if (psn_diff(tx.next, tx.base) > 256) error("more than 256 unsettled PSNs on a path");
    if (s.bytes_per_cycle > 0)  // headers, ICRC, preamble, gap
      builder_free_ = std::max(builder_free_, static_cast<double>(t)) +
                      (f.len + (f.probe ? 90 : 118)) / s.bytes_per_cycle;
    ++frames;
    if (on_job) on_job(f);
    f.mark = !f.probe && rng.chance(s.mark);
    if ((drop && drop(f)) || rng.chance(s.loss)) {
      ++frames_lost;
      if (!f.probe) ++packets[f.id].lost;
      return;
    }
    Receiver& rx = receivers[f.conn * s.paths + f.path];
    const uint64_t at = static_cast<uint64_t>(std::max(builder_free_, static_cast<double>(t))) +
                        path_delay_[f.conn * s.paths + f.path] + (s.jitter ? rng.below(s.jitter) : 0);
    f.time = rx.last_arrival = std::max(at, rx.last_arrival + 1);
    events_.push(Event{f.time, order_++, false, false, f, {}});
  }
  /// What was pulled or due before a configuration was read may still leave; it is given back like the rest.
  void former_job(const Frame& f) {
    if (f.probe) return;
    if (answered_.empty()) return error("job without an answered pull");
    Packet& p = packets[answered_.front().id];
    answered_.pop_front();
    if (p.conn != f.conn || !p.former) return error("job of a connection that is not configured");
    p.out = true;
  }
  void arrivals(uint64_t t) {
    while (!events_.empty() && events_.top().time <= t) {
      const Event e = events_.top();
      events_.pop();
      if (e.is_hold) {
        Receiver& rx = receivers[e.frame.conn * s.paths + e.frame.path];
        if (rx.pending && rx.next == e.frame.psn) send_ack(e.frame.conn, e.frame.path, t, false);
      } else if (e.is_ack) {
        acks_in_.push_back(e.ack);
      } else {
        receive(e.frame, t);
      }
    }
  }
  void receive(const Frame& f, uint64_t t) {
    Conn& c = conns[f.conn];
    if (!c.live || c.failed) return;
    Receiver& rx = receivers[f.conn * s.paths + f.path];
    const int32_t ahead = psn_diff(f.psn, rx.next);
    if (ahead < 0) {
      if (!f.probe) error("a data packet came late");
      rx.echo = f.stamp;
      send_ack(f.conn, f.path, t, false);
      return;
    }
    rx.hist <<= static_cast<size_t>(ahead) + 1;
    rx.hist[0] = true;
    rx.next = psn_add(f.psn, 1);
    rx.echo = f.stamp;
    bool now = ahead > 0 || f.probe;
    if (!f.probe) {
      rx.rx += f.len + kOverhead;
      if (f.mark) rx.ce += f.len + kOverhead;
      now = now || f.mark != rx.last_mark || !f.more || f.len < (1u << s.mtu_log2);
      rx.last_mark = f.mark;
      if (c.status == 0) {
        Packet& p = packets[f.id];
        if (++p.accepted != 1) error("packet " + std::to_string(f.id) + " accepted twice");
        p.arrived = true;
      }
    }
    ++rx.pending;
    if (now || rx.pending >= 2) {
      send_ack(f.conn, f.path, t, ahead > 0 && s.loss >= 0.003);
    } else {
      Frame h = f;
      h.psn = rx.next;
      events_.push(Event{t + s.ack_hold, order_++, false, true, h, {}});
    }
  }
  void send_ack(uint32_t conn, uint32_t path, uint64_t t, bool twice) {
    receivers[conn * s.paths + path].pending = 0;
    Ack a = ack_of(conn, path);
    if (spoil_ack) spoil_ack(a);
    const unsigned copies = (twice ? 2 : 1) + (rng.chance(s.ack_copy) ? 1 : 0);
    for (unsigned i = 0; i < copies; ++i) {
      ++acks_sent;
      if ((drop_ack && drop_ack(a)) || rng.chance(s.ack_loss)) continue;
      events_.push(Event{
          t + s.ack_delay + (s.ack_jitter ? rng.below(s.ack_jitter) : 0), order_++, true, false, {}, a});
    }
  }
  /// What the port may know from now on.
  void take_ack(const Ack& a) {
    if (a.conn >= s.conns || a.path >= s.paths || a.epoch != 0) return;
    Sender& tx = senders[a.conn * s.paths + a.path];
    if (psn_diff(a.base, tx.base) <= 0 || psn_diff(a.base, tx.next) > 0) return;
    tx.base = a.base;
    while (!tx.unsettled.empty() && psn_diff(tx.unsettled.front().psn, tx.base) < 0) {
      conns[a.conn].inflight -= tx.unsettled.front().bytes;
      tx.unsettled.pop_front();
    }
  }
  void count() {
    const uint32_t e = bench->events_o;
    if (!e) return;
    uint64_t* fields[] = {&counts.data,        &counts.retx,       &counts.probe_tail, &counts.probe_timer,
                          &counts.probe_again, &counts.probe_copy, &counts.taken,      &counts.old,
                          &counts.bad,         &counts.delivered,  &counts.lost,       &counts.cut,
                          &counts.none,        &counts.put_off,    &counts.fail};
    for (unsigned i = 0; i < 15; ++i) *fields[i] += (e >> i) & 1;
  }

 public:
  bool dying_ = false;  // a connection is about to fail: its packets come back whatever they became
  uint64_t cap_bound_ = ~0ull;

 private:
  Stall pull_stall_, settle_stall_, job_stall_, ack_stall_, fail_stall_, avail_stall_;
  std::vector<uint64_t> path_delay_;
  std::deque<Ack> acks_in_;
  std::deque<uint32_t> avail_;
  std::deque<Frame> answered_;
  bool pull_out_ = false, answer_retx_ = false, answer_more_ = false;
  uint64_t pull_time_ = 0;
  uint32_t answer_id_ = 0;
  unsigned answer_kind_ = 0;
  double builder_free_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t order_ = 0;
};

}  // namespace weft::test::ctl
