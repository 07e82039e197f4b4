// SPDX-License-Identifier: Apache-2.0
// What goes next. Control before data; of the data the oldest connection that may send, its resends before
// new packets, its streams in turn, on the active path with the most free window.
#include <algorithm>
#include <bit>
#include <functional>

#include "sw/ref/impl.h"

namespace weft::ref {

using wire::Opcode;

namespace {
inline constexpr std::uint8_t kCopy = 0xff;     // CtlEntry::copies of the second of two
inline constexpr unsigned kResendsLooked = 16;  // for one that may leave at a port
}  // namespace

void Endpoint::Impl::push_ctl(std::uint32_t port, const CtlEntry& e) {
  ports[port].ctl.push(e);
  ready_ports |= 1u << port;
}

void Endpoint::Impl::queue_conn(std::uint32_t conn, std::uint32_t port) {
  Conn& c = conns[conn];
  ready_ports |= 1u << port;
  if (c.tx_port[port].queued) return;
  c.tx_port[port].queued = true;
  ports[port].ready.push_back({c.age, conn});
  std::push_heap(ports[port].ready.begin(), ports[port].ready.end(), std::greater<>{});
}

void Endpoint::Impl::make_ready(std::uint32_t conn) {
  if (!conns[conn].has_data()) return;
  for (std::uint32_t p = 0; p < config.ports; ++p) queue_conn(conn, p);
}

bool Endpoint::Impl::sendable(const Conn& c, std::uint32_t stream) {
  const Stream& st = c.streams[stream];
  if (st.cursor == kNil) return false;
  if (stream + 1 == c.streams.size()) return true;  // replies: as many as the peer's windows ask for
  const TxMsg& m = msgs[st.cursor];
  // The receiver keeps counters of so many open messages; those below the oldest unacked one are done.
  if (static_cast<std::uint16_t>(m.msg_no - msgs[st.oldest].msg_no) >= wire::kMsgWindow) return false;
  const bool takes_receive = m.op == Opcode::SEND || m.op == Opcode::SEND_IMM || m.op == Opcode::WRITE_IMM;
  return !takes_receive || clock_diff(m.send_no, st.credit) < 0;
}

void Endpoint::Impl::stream_ready(std::uint32_t conn, std::uint32_t stream) {
  Conn& c = conns[conn];
  Stream& st = c.streams[stream];
  if (st.ready || c.state != ConnState::kOpen || !sendable(c, stream)) return;
  const bool had_data = c.has_data();
  st.ready = true;
  st.next_ready = kNil;
  if (c.ready_tail == kNil)
    c.ready_head = stream;
  else
    c.streams[c.ready_tail].next_ready = stream;
  c.ready_tail = stream;
  if (!had_data) {
    c.age = ++next_age;
    c.turn = 0;
  }
  make_ready(conn);
}

std::uint32_t Endpoint::Impl::enqueue_message(std::uint32_t conn, std::uint32_t queue, const TxMsg& message) {
  Conn& c = conns[conn];
  const std::uint32_t i = msgs.take();
  TxMsg& m = msgs[i];
  m = message;
  Stream& st = c.streams[queue];
  if (c.open_msgs++ == 0) c.heard = now;  // the silence before does not count
  if (!c.keep_timer) {
    c.keep_timer = true;
    push_timer({now + config.tuning.give_up / 4, 0, conn, 0, TimerKind::kKeep, c.incarnation});
  }
  m.conn = conn;
  m.queue = static_cast<std::uint16_t>(queue);
  m.next = kNil;
  m.sent = m.refs = m.answered = 0;
  m.packets = m.left = std::max(1u, m.length / c.mtu + (m.length % c.mtu != 0 ? 1 : 0));
  m.status = wire::Err::OK;
  m.completed = false;
  if (!m.internal) {
    m.msg_no = st.next_msg++;
    if (m.op == Opcode::SEND || m.op == Opcode::SEND_IMM || m.op == Opcode::WRITE_IMM)
      m.send_no = st.send_no++;
  }
  if (st.newest == kNil)
    st.oldest = i;
  else
    msgs[st.newest].next = i;
  st.newest = i;
  if (st.cursor == kNil) st.cursor = i;
  stream_ready(conn, queue);
  return i;
}

void Endpoint::Impl::update_cap(std::uint32_t conn, std::uint32_t port) {
  Conn& c = conns[conn];
  TxPort& t = c.tx_port[port];
  std::uint64_t cap;
  std::uint32_t per_path;
  if (t.min_rtt == 0) {
    cap = static_cast<std::uint64_t>(config.tuning.first_cap_bdp * line * rtt_init_ns);
    per_path = config.tuning.first_path_pkts;
  } else {
    const double rate = t.share / 65536.0;
    cap = static_cast<std::uint64_t>(config.tuning.cap_rtts * rate * t.min_rtt) + pkt;
    per_path = t.calm ? config.tuning.calm_path_pkts : config.tuning.path_pkts;
  }
  t.cap = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(cap, pkt, 1u << 30));
  const std::uint32_t active = std::clamp(t.cap / (per_path * pkt), 1u, config.paths);
  for (std::uint32_t i = t.active; i < active; ++i) {
    std::uint32_t& w = c.cwnd[port * config.paths + i];
    if (w == 0) w = std::max(pkt, t.cap / active);
  }
  if (active < t.active) {
    // Nothing will follow on the paths that leave, and only what follows shows a loss.
    probe_tails(conn, port, active);
    // The few carry what the many did.
    for (std::uint32_t i = 0; i < active; ++i) {
      std::uint32_t& w = c.cwnd[port * config.paths + i];
      w = std::max(w, t.calm ? t.cap / active : 0);
    }
  }
  t.active = static_cast<std::uint16_t>(active);
}

/// The active path with the most free window; `avoid` only when no other has room.
int Endpoint::Impl::pick_path(const Conn& c, std::uint32_t port, std::uint32_t bytes,
                              std::uint32_t avoid) const {
  const TxPort& t = c.tx_port[port];
  const std::uint32_t* window = &c.cwnd[port * config.paths];
  const std::uint32_t* flying = &c.inflight[port * config.paths];
  int best = -1;
  std::int64_t best_room = -1;
  const auto look = [&](std::uint32_t i) {
    if ((t.blocked >> i & 1) != 0 || i == avoid) return;
    const std::int64_t room = std::int64_t{window[i]} - flying[i];
    if (room > best_room) {
      best_room = room;
      best = static_cast<int>(i);
    }
  };
  for (std::uint32_t i = 0; i < t.active; ++i) look(i);
  if (best < 0) {  // every active path has failed: the others take their place
    for (std::uint32_t i = t.active; i < config.paths; ++i) look(i);
  }
  if (best >= 0 && (best_room >= bytes || flying[best] == 0)) return best;
  return avoid < config.paths ? pick_path(c, port, bytes, config.paths) : -1;
}

/// The stream whose turn it is, or kNil. Those that failed since they were queued leave.
std::uint32_t Endpoint::Impl::next_stream(Conn& c) {
  while (c.ready_head != kNil && !sendable(c, c.ready_head)) {
    Stream& st = c.streams[c.ready_head];
    st.ready = false;
    c.ready_head = st.next_ready;
    if (c.ready_head == kNil) c.ready_tail = kNil;
  }
  return c.ready_head;
}

/// Whether a data packet waits, new or lost. Those of messages that failed since do not count.
bool Endpoint::Impl::more_to_send(Conn& c) {
  while (c.resend_head != kNil && msgs[descs[c.resend_head].msg].status != wire::Err::OK) {
    const std::uint32_t d = c.resend_head;
    unlink_resend(c, kNil, d);
    drop_desc(d);
  }
  return c.resend_head != kNil || next_stream(c) != kNil;
}

/// When the pacer lets the next packet go; 0 if there is none.
Ps Endpoint::Impl::paced_until(const TxPort& t) const {
  if (!config.tuning.pacer || t.share >= line_share) return 0;
  const Ps packet = static_cast<Ps>(pkt / (t.share / 65536.0) * kNs);
  return t.pace_at - packet * (static_cast<Ps>(config.tuning.pacer_pkts) - 1);
}

/// Whether a port would send a packet of the connection, if its MAC asked now.
bool Endpoint::Impl::may_send(const Conn& c, std::uint32_t port, std::uint32_t bytes) const {
  const TxPort& t = c.tx_port[port];
  return (t.inflight == 0 || t.inflight + bytes <= t.cap) && paced_until(t) <= now &&
         pick_path(c, port, bytes, config.paths) >= 0;
}

/// Whether the path that lost a packet is all that `port` could send it on.
bool Endpoint::Impl::lost_here_only(const Conn& c, std::uint32_t port, std::uint32_t desc) {
  const std::uint32_t path = descs[desc].lost_on;
  if (port_of(path) != port) return false;
  const std::uint64_t others =
      ~std::uint64_t{0} >> (64 - config.paths) & ~(std::uint64_t{1} << index_of(path));
  return (others & ~c.tx_port[port].blocked) == 0;
}

/// The first of the resends that `port` should send, and the one `before` it; kNil: none now. A packet does
/// not go where it was lost while another port may take it. That port has a round trip for it: what keeps its
/// MAC is not known here, and nothing may wait for ever.
std::uint32_t Endpoint::Impl::pick_resend(std::uint32_t conn, std::uint32_t port, std::uint32_t& before) {
  Conn& c = conns[conn];
  std::uint32_t d = c.resend_head;
  if (d == kNil || config.ports == 1 || !lost_here_only(c, port, d)) return d;
  std::uint32_t others = 0;
  for (std::uint32_t p = 0; p < config.ports; ++p)
    if (p != port && (c.held >> p & 1) == 0 && may_send(c, p, descs[d].bytes + config.overhead))
      others |= 1u << p;
  if (others == 0) return d;
  if (c.left != d) {
    const std::uint32_t srtt = c.tx_port[port].srtt;
    c.left = d;
    c.left_until = now + Ps{srtt != 0 ? srtt : rtt_init_ns} * kNs;
    push_timer({c.left_until, 0, conn, static_cast<std::uint8_t>(port), TimerKind::kLeft, c.incarnation});
    for (std::uint32_t p = 0; p < config.ports; ++p)
      if ((others >> p & 1) != 0) queue_conn(conn, p);
  }
  if (now >= c.left_until) {
    c.held |= others;
    return d;
  }
  for (unsigned looked = 0; looked < kResendsLooked; ++looked) {
    before = d;
    d = descs[d].next;
    if (d == kNil || (msgs[descs[d].msg].status == wire::Err::OK && !lost_here_only(c, port, d))) return d;
  }
  return kNil;
}

void Endpoint::Impl::unlink_resend(Conn& c, std::uint32_t before, std::uint32_t desc) {
  const std::uint32_t next = descs[desc].next;
  (before == kNil ? c.resend_head : descs[before].next) = next;
  if (next == kNil) c.resend_tail = before;
  if (c.left == desc) c.left = kNil;
}

bool Endpoint::Impl::next_data(Ps now, std::uint32_t port, Packet& out) {
  Port& p = ports[port];
  while (!p.ready.empty()) {
    const ReadyConn top = p.ready.front();
    Conn& c = conns[top.conn];
    TxPort& t = c.tx_port[port];
    const auto leave = [&] {
      std::pop_heap(p.ready.begin(), p.ready.end(), std::greater<>{});
      p.ready.pop_back();
      t.queued = false;
    };
    if (c.state != ConnState::kOpen) {
      leave();
      continue;
    }
    if (top.age != c.age) {  // it has had its turn
      leave();
      queue_conn(top.conn, port);
      continue;
    }
    // What it would send.
    if (!more_to_send(c)) {
      leave();
      ran_dry(top.conn);
      continue;
    }
    std::uint32_t before = kNil;
    const std::uint32_t resend = pick_resend(top.conn, port, before);
    std::uint32_t payload = 0;
    if (resend != kNil) {
      payload = descs[resend].bytes;
    } else if (next_stream(c) != kNil) {
      const TxMsg& m = msgs[c.streams[c.ready_head].cursor];
      payload = std::min(c.mtu, m.length - m.sent);
    } else {  // what there is leaves at another port
      leave();
      continue;
    }
    const std::uint32_t bytes = payload + config.overhead;
    // Whether it may.
    if (t.inflight != 0 && t.inflight + bytes > t.cap) {
      leave();
      continue;
    }
    if (const Ps at = paced_until(t); at > now) {
      leave();
      if (!t.pace_timer) {
        t.pace_timer = true;
        push_timer({at, 0, top.conn, static_cast<std::uint8_t>(port), TimerKind::kPace, c.incarnation});
      }
      continue;
    }
    // A path that passes probes and loses data would ask for its losses for ever.
    const bool elsewhere = resend != kNil && port_of(descs[resend].lost_on) == port;
    const int index = pick_path(c, port, bytes, elsewhere ? index_of(descs[resend].lost_on) : config.paths);
    if (index < 0) {
      leave();
      continue;
    }
    // It does.
    std::uint32_t d = resend;
    if (d != kNil) {
      unlink_resend(c, before, d);
    } else {
      const std::uint32_t s = c.ready_head;
      Stream& st = c.streams[s];
      const std::uint32_t mi = st.cursor;
      d = descs.take();
      TxMsg& m = msgs[mi];
      descs[d] = Desc{kNil, mi, m.sent, static_cast<std::uint16_t>(payload & 0x7fff), 0, 0, 0};
      m.sent += payload;
      ++m.refs;
      if (--m.packets == 0) {
        st.cursor = m.next;
        if (m.op == Opcode::READ_DATA || m.op == Opcode::ATOMIC_REPLY) --c.streams[m.stream].replies;
      }
      // The streams of a connection take turns, packet by packet.
      c.ready_head = st.next_ready;
      if (c.ready_head == kNil) c.ready_tail = kNil;
      st.ready = false;
      if (sendable(c, s)) {
        st.ready = true;
        st.next_ready = kNil;
        if (c.ready_tail == kNil)
          c.ready_head = s;
        else
          c.streams[c.ready_tail].next_ready = s;
        c.ready_tail = s;
      }
    }
    const std::uint32_t path = port * config.paths + static_cast<std::uint32_t>(index);
    if (!build_data(now, top.conn, path, d, out)) continue;  // its memory failed; there may be others
    if (config.tuning.pacer && t.share < line_share) {
      const Ps packet = static_cast<Ps>(bytes / (t.share / 65536.0) * kNs);
      t.pace_at = std::max(t.pace_at, now) + packet;
    }
    c.turn += bytes;
    if (c.turn >= config.tuning.turn_bytes) {
      c.turn = 0;
      if (p.ready.size() > 1) c.age = ++next_age;
    }
    if (!c.has_data()) ran_dry(top.conn);
    return true;
  }
  return false;
}

bool Endpoint::Impl::build_data(Ps now, std::uint32_t conn, std::uint32_t path, std::uint32_t desc,
                                Packet& out) {
  Conn& c = conns[conn];
  Desc& d = descs[desc];
  const TxMsg& m = msgs[d.msg];
  out.opcode = m.op;
  out.payload_bytes = d.bytes;
  out.payload = d.bytes != 0 ? staging.data() : nullptr;
  bool read = true;
  switch (m.op) {
    case Opcode::READ: {
      wire::ReadRequest r;
      r.va = m.local_va;
      r.rkey = m.local_rkey;
      r.pack(staging.data());
      break;
    }
    case Opcode::FETCH_ADD:
    case Opcode::COMPARE_SWAP: {
      wire::AtomicRequest r;
      r.va = m.local_va;
      r.rkey = m.local_rkey;
      r.operand = m.operand;
      r.compare = m.compare;
      r.pack(staging.data());
      break;
    }
    case Opcode::ATOMIC_REPLY:
      for (int i = 0; i < 8; ++i) staging[i] = static_cast<std::uint8_t>(m.operand >> 8 * i);
      break;
    default:
      if (!config.payload)
        out.payload = nullptr;
      else if (d.bytes != 0)
        read = env.read(m.local_va + d.offset, staging.data(), d.bytes);
  }
  if (!read) {
    // Nothing can be sent in its place: the message fails, and with it its stream.
    const std::uint16_t stream = m.stream, msg_no = m.msg_no;
    const bool reply = m.op == Opcode::READ_DATA;
    if (reply) msgs[d.msg].status = wire::Err::MEM_ERROR;
    msgs[d.msg].unreadable = true;
    if (reply && msgs[d.msg].packets != 0) {  // the rest of it is not tried
      Stream& st = c.streams[m.queue];
      msgs[d.msg].packets = 0;
      --c.streams[stream].replies;
      if (st.cursor == d.msg) st.cursor = m.next;
    }
    const std::uint32_t queue = m.queue;
    drop_desc(desc);
    if (reply) {
      stream_error(conn, stream, msg_no, wire::Err::REMOTE_MEM);
      complete_stream(conn, queue);
    } else {
      // No frame tells the peer that a message will never be whole.
      c.own_memory = true;
      fail_connection(conn, now, wire::Err::MEM_ERROR);
    }
    return false;
  }
  TxPath& t = c.tx[path];
  const std::uint32_t port = port_of(path);
  TxPort& tp = c.tx_port[port];
  const std::uint32_t bytes = d.bytes + config.overhead;
  out.ce = false;
  out.path = static_cast<std::uint8_t>(path);
  out.epoch = static_cast<std::uint8_t>(t.epoch);
  out.incarnation = c.incarnation;
  out.sport = t.sport;
  out.conn = c.peer_conn;
  out.peer = c.peer.id;
  out.psn = t.next;
  out.timestamp = clock(now);
  DataHeader& h = out.data;
  h.msg_len = m.answers ? m.answer : m.length;
  h.value = m.value;
  h.stream = m.stream;
  h.msg_no = m.msg_no;
  h.sem = m.sem;
  h.retx = d.retx != 0;
  h.more = more_to_send(c);
  switch (m.op) {
    case Opcode::SEND:
    case Opcode::SEND_IMM:
      h.va = d.offset;
      h.rkey = m.send_no;
      break;
    default: h.va = m.remote_va + d.offset; h.rkey = m.rkey;
  }
  if (m.op == Opcode::CREDIT) h.value = msgs[d.msg].value = c.streams[m.stream].recvs.posted();

  d.psn = static_cast<std::uint8_t>(t.next);
  d.next = kNil;
  if (t.tail == kNil)
    t.head = desc;
  else
    descs[t.tail].next = desc;
  t.tail = desc;
  ++c.unsettled;
  t.next = (t.next + 1) & kPsnMask;
  t.last_probe = 0;
  if (t.unsettled() >= wire::kMaxUnsettled) tp.blocked |= std::uint64_t{1} << index_of(path);
  c.held &= ~(1u << port);
  c.inflight[path] += bytes;
  tp.inflight += bytes;
  tp.tails |= std::uint64_t{1} << index_of(path);
  if (!t.probe_out) arm(conn, path, now, (tp.srtt != 0 ? tp.srtt : rtt_init_ns) * 3 / 2);
  ++count.data_sent;
  count.data_bytes += d.bytes;
  if (d.retx != 0) ++count.resent;
  return true;
}

void Endpoint::Impl::ran_dry(std::uint32_t conn) {
  for (std::uint32_t p = 0; p < config.ports; ++p) probe_tails(conn, p, 0);
}

/// A probe behind the last packet of each path from `first` on.
void Endpoint::Impl::probe_tails(std::uint32_t conn, std::uint32_t port, std::uint32_t first) {
  TxPort& t = conns[conn].tx_port[port];
  std::uint64_t tails = t.tails >> first << first;
  t.tails ^= tails;
  const std::uint8_t copies = ports[port].loss >= config.tuning.double_loss ? 2 : 1;
  while (tails != 0) {
    const auto i = static_cast<std::uint32_t>(std::countr_zero(tails));
    tails &= tails - 1;
    // A probe right behind the data that overtakes it each time would lose it each time: silence asks later.
    if (conns[conn].tx[port * config.paths + i].wary != 0) continue;
    ++count.tail_probes;
    queue_probe(conn, port * config.paths + i, copies);
  }
}

bool Endpoint::Impl::next_control(Ps now, std::uint32_t port, Packet& out) {
  Port& p = ports[port];
  while (!p.ctl.empty()) {
    CtlEntry e = p.ctl.pop();
    Conn& c = conns[e.conn];
    if (c.state != ConnState::kOpen && c.state != ConnState::kFailing) continue;
    TxPath& t = c.tx[e.path];
    RxPath& r = c.rx[e.path];
    out.ce = false;
    out.path = e.path;
    out.incarnation = c.incarnation;
    out.conn = c.peer_conn;
    out.peer = c.peer.id;
    out.timestamp = clock(now);
    out.payload = nullptr;
    out.payload_bytes = 0;
    out.psn = 0;
    switch (e.kind) {
      case Ctl::kAck:
        out.opcode = Opcode::ACK;
        if (e.carrier == 0) {
          if (!build_ack(e.conn, port, out)) break;
        } else {
          out.sport = t.sport;
          fill_ack(e.conn, e.path, out);
          r.due = r.gap = 0;
        }
        ++count.acks_sent;
        return true;
      case Ctl::kProbe: {
        const auto state = static_cast<PathState>(t.state);
        const bool anyway = e.carrier != 0;  // to make evidence, or to open an epoch
        const bool fenced = state == PathState::kFencing;
        if ((fenced && t.confirmed) || (t.unsettled() == 0 && !anyway)) {
          t.probe_due = 0;
          break;
        }
        const bool copy = e.copies == kCopy;  // of one that has just left: its answer counts for both
        if (t.unsettled() == 0 || !t.last_probe) {
          ++c.unsettled;
          t.next = (t.next + 1) & kPsnMask;
        }  // else nothing was sent behind the last one: the same PSN (W3)
        t.last_probe = 1;
        if (!fenced) {  // else that is the fence's
          if (!copy) t.probe_ts = clock(now);
          if (!t.probe_out) t.judged_ts = t.probe_ts;
          t.probe_out = 1;
        }
        c.tx_port[port].tails &= ~(std::uint64_t{1} << index_of(e.path));
        out.opcode = Opcode::PROBE;
        out.sport = t.sport;
        out.epoch = static_cast<std::uint8_t>(t.epoch);
        out.psn = (t.next - 1) & kPsnMask;
        if (e.copies == 2) {
          e.copies = kCopy;
          p.ctl.push(e);
        } else {
          t.probe_due = 0;
        }
        if (!fenced) {
          const bool dead = state == PathState::kFailed;
          const std::uint32_t after = config.tuning.backoff_after;
          const std::uint32_t doublings =
              dead ? std::min<std::uint32_t>(std::max(t.timeouts, t.setbacks), config.tuning.dead_backoff_max)
                   : std::min(t.timeouts > after ? t.timeouts - after : 0u, config.tuning.backoff_max);
          arm(e.conn, e.path, now, rto_ns(c, port, doublings));
        }
        ++count.probes_sent;
        return true;
      }
      case Ctl::kFence:
        // An entry of the number's former life finds nothing noted.
        if (!c.fence_at.empty()) c.fence_at[e.path] &= ~(1u << port);
        if (static_cast<PathState>(t.state) != PathState::kFencing) break;
        out.opcode = Opcode::FENCE;
        out.epoch = static_cast<std::uint8_t>(t.epoch);
        out.psn = t.next;  // proof that it knows the path's state
        // Of the first one; but clocks wrap, and no answer takes that long.
        if (!t.probe_out || clock(now) - t.probe_ts > kMaxWaitNs) t.probe_ts = clock(now);
        t.probe_out = 1;
        out.sport = c.tx[e.carrier].sport;
        ++count.fences_sent;
        return true;
      case Ctl::kAnswer:
        r.answering &= ~(1u << port);
        if (!r.closed) break;
        out.opcode = Opcode::FENCE_ANSWER;
        out.sport = c.tx[e.carrier].sport;
        fill_ack(e.conn, e.path, out);
        ++count.answers_sent;
        return true;
    }
  }
  return false;
}

/// A packet of a message that nobody waits for any more.
void Endpoint::Impl::drop_desc(std::uint32_t desc) {
  const std::uint32_t mi = descs[desc].msg;
  descs.give(desc);
  TxMsg& m = msgs[mi];
  if (--m.refs == 0 && m.completed) msgs.give(mi);
}

void Endpoint::Impl::to_resend(Conn& c, std::uint32_t desc, std::uint32_t path) {
  descs[desc].next = kNil;
  descs[desc].retx = 1;
  descs[desc].lost_on = static_cast<std::uint8_t>(path);
  if (c.resend_tail == kNil)
    c.resend_head = desc;
  else
    descs[c.resend_tail].next = desc;
  c.resend_tail = desc;
}

/// Completes the messages at the head of a stream that are done, in order.
void Endpoint::Impl::complete_stream(std::uint32_t conn, std::uint32_t queue) {
  for (;;) {
    Conn& c = conns[conn];
    Stream& st = c.streams[queue];
    const std::uint32_t i = st.oldest;
    if (i == kNil) break;
    TxMsg& m = msgs[i];
    if (m.status == wire::Err::OK && (m.packets != 0 || m.left != 0 || m.waits)) break;
    st.oldest = m.next;
    if (st.oldest == kNil) st.newest = kNil;
    if (st.cursor == i) st.cursor = m.next;
    m.completed = true;
    --c.open_msgs;
    const TxMsg done = m;
    if (m.refs == 0) msgs.give(i);
    if (!done.internal) {
      tell(conn, done, done.status);
    } else if (done.op == Opcode::CREDIT) {
      Stream& s = conns[conn].streams[done.stream];
      s.credit_out = false;
      s.credit_told = done.value;
      offer_credits(conn, done.stream);
    }
  }
  stream_ready(conn, queue);
}

/// `msg_no` has failed with `status`: it and what follows it in the stream.
void Endpoint::Impl::fail_stream(std::uint32_t conn, std::uint32_t stream, std::uint16_t msg_no,
                                 wire::Err status) {
  Conn& c = conns[conn];
  Stream& st = c.streams[stream];
  bool found = false;
  for (std::uint32_t i = st.oldest; i != kNil; i = msgs[i].next) {
    TxMsg& m = msgs[i];
    // Numbers are compared among the first ones only: more may be posted than can be told apart.
    if (!found) {
      const auto after = static_cast<std::int16_t>(m.msg_no - msg_no);
      if (after < 0) continue;
      if (after > 0) return;  // names a message that has completed or never was
      found = true;
      m.status = status;
    }
    if (m.status == wire::Err::OK) m.status = wire::Err::FLUSHED;
    m.packets = 0;
    if (st.cursor == i) st.cursor = kNil;
  }
  if (!found) return;
  if (!st.failed) ++count.stream_failed;
  st.failed = true;
  complete_stream(conn, stream);
  // Its resends are dropped when their turn comes.
  make_ready(conn);
}

}  // namespace weft::ref
