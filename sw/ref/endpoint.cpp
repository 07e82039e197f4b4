// SPDX-License-Identifier: Apache-2.0
#include "sw/ref/endpoint.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "sw/ref/impl.h"

namespace weft::ref {
namespace {

inline constexpr std::uint32_t kMagic = 0x54464557;  // "WEFT"
inline constexpr std::uint32_t kKnownCaps = 0x1ff;
inline constexpr std::uint32_t kMaxDistance = 128;
inline constexpr double kMinFrame = 84;               // bytes that the smallest frame takes of a link
inline constexpr std::uint32_t kFirstSport = 0xc000;  // dynamic ports
inline constexpr std::uint32_t kMaxRecvs = 0x7fff;    // posted on a stream: credits are 16 bits wide

constexpr std::uint32_t bit(wire::Cap c) {
  return 1u << static_cast<unsigned>(c);
}

std::uint32_t needed_cap(WrOp op) {
  switch (op) {
    case WrOp::kSend:
    case WrOp::kSendImm:
    case WrOp::kWriteImm: return bit(wire::Cap::SEND);
    case WrOp::kWrite:
    case WrOp::kWriteSignal: return bit(wire::Cap::WRITE);
    case WrOp::kRead: return bit(wire::Cap::READ);
    default: return bit(wire::Cap::ATOMIC);
  }
}

wire::Opcode opcode_of(WrOp op) {
  switch (op) {
    case WrOp::kSend: return wire::Opcode::SEND;
    case WrOp::kSendImm: return wire::Opcode::SEND_IMM;
    case WrOp::kWrite: return wire::Opcode::WRITE;
    case WrOp::kWriteImm: return wire::Opcode::WRITE_IMM;
    case WrOp::kWriteSignal: return wire::Opcode::WRITE_SIGNAL;
    case WrOp::kRead: return wire::Opcode::READ;
    case WrOp::kFetchAdd: return wire::Opcode::FETCH_ADD;
    default: return wire::Opcode::COMPARE_SWAP;
  }
}

}  // namespace

Endpoint::Impl::Impl(const Config& c, Env& e) : config(c), env(e), random(c.seed) {
  if (!possible(c)) std::abort();
  ports.resize(c.ports);
  per_path = (65536 + c.paths - 1) / c.paths;
  line = c.line_mbps / 8000.0;
  line_share = static_cast<std::uint32_t>(line * 65536);
  pkt = c.mtu + c.overhead;
  rtt_init_ns = static_cast<std::uint32_t>(c.rtt_init / kNs);
  staging.resize(wire::kMaxPayload);
}

bool Endpoint::possible(const Config& c) {
  const auto in = [](auto x, auto least, auto most) { return x >= least && x <= most; };  // a NaN is not
  const Tuning& t = c.tuning;
  // Numbers and sizes of state.
  if (!in(c.ports, 1u, 32u) || !in(c.paths, 1u, 64u) || c.ports * c.paths > 256 ||
      !in(c.streams, 1u, 65535u) || !in(c.mtu, 64u, wire::kMaxPayload) || c.overhead > wire::kMaxPayload ||
      c.distance > kMaxDistance || c.line_mbps == 0)
    return false;
  // Times. Of waits that repeat none may be 0, or time would stand still; the clocks of paths bound the rest.
  if (!in(c.rtt_init, kNs, kMaxWaitNs * kNs) || !in(t.probe_min, kNs, kMaxWaitNs * kNs) ||
      t.hole_timeout < kNs || t.packet_life < kNs || t.give_up < kUs)
    return false;
  // What is divided by, or counted in few bits.
  if (t.path_pkts == 0 || t.first_path_pkts == 0 || t.calm_path_pkts == 0 || t.pacer_pkts == 0 ||
      !in(t.ack_paths, 1u, 1 + wire::kMaxAckBlocks) || !in(t.fail_probes, 1u, 31u) ||
      !in(t.retry_limit, 1u, 255u) || t.backoff_after > 255 || t.backoff_max > 16 || t.dead_backoff_max > 16)
    return false;
  // Ratios: no window, cap or share may be negative or beyond its bits.
  if (!in(t.cap_rtts, 0.0, 1000.0) || !in(t.first_cap_bdp, 0.0, 1000.0) || !in(t.calm_caps, 0.0, 1e9) ||
      !in(t.decrease, 0.0, 1.0) || !in(t.loss_rtts, 0.0, 1e9) || !in(t.share_fill, 0.0, 1.0) ||
      !in(t.share_drain, 0.0, 1.0) || !in(t.share_ce, 0.0, 1.0) || !in(t.share_used, 0.0, 1.0) ||
      !in(t.share_reserve, 0.0, 1000.0) || !in(t.double_loss, 0.0, 1.0) || !in(t.fail_chance, 0.0, 1.0))
    return false;
  const double frames = c.line_mbps / 8000.0 * (static_cast<double>(c.tuning.packet_life) / kNs) / kMinFrame;
  return frames < double{1 << 23};
}

std::uint64_t Endpoint::Impl::draw() {  // splitmix64
  std::uint64_t x = random += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint16_t Endpoint::Impl::draw_sport() {
  return static_cast<std::uint16_t>(kFirstSport + draw() % (0x10000 - kFirstSport));
}

std::uint32_t Endpoint::Impl::reserve_conn() {
  std::uint32_t i;
  if (free_conns.empty()) {
    i = static_cast<std::uint32_t>(conns.size());
    conns.emplace_back();
    conns[i].incarnation = static_cast<std::uint16_t>(draw());
  } else {
    i = free_conns.back();
    free_conns.pop_back();
  }
  Conn& c = conns[i];
  c.state = ConnState::kOffered;
  c.start_psn = static_cast<std::uint32_t>(draw()) & kPsnMask;
  ++c.incarnation;
  return i;
}

wire::Refusal Endpoint::Impl::judge(const wire::Hello& h) const {
  using wire::Refusal;
  if (h.magic != kMagic) return Refusal::MAGIC;
  if (h.version != wire::kWeftVersion) return Refusal::VERSION;
  if ((h.caps & ~kKnownCaps) != 0 || (h.needs & ~config.caps) != 0 || (config.needs & ~h.caps) != 0)
    return Refusal::CAPS;
  if (h.mtu < 64 || h.mtu > wire::kMaxPayload) return Refusal::MTU;
  if (h.ports != config.ports || h.paths != config.paths) return Refusal::PATHS;
  if (h.streams == 0 || h.streams > config.streams) return Refusal::STREAMS;
  if (h.distance > kMaxDistance) return Refusal::DISTANCE;
  if ((h.resv0 | h.resv1 | h.resv2 | h.resv3 | h.resv4 | h.resv5) != 0) return Refusal::RESERVED;
  return Refusal::NONE;
}

wire::Hello Endpoint::offer() {
  Impl& e = *impl_;
  const std::uint32_t conn = e.reserve_conn();
  wire::Hello h;
  h.magic = kMagic;
  h.version = wire::kWeftVersion;
  h.incarnation = e.conns[conn].incarnation;
  h.caps = e.config.caps;
  h.needs = e.config.needs;
  h.conn = conn;
  h.distance = static_cast<std::uint8_t>(e.config.distance);
  h.psn = e.conns[conn].start_psn;
  h.ports = static_cast<std::uint8_t>(e.config.ports);
  h.paths = static_cast<std::uint8_t>(e.config.paths);
  h.streams = static_cast<std::uint16_t>(e.config.streams);
  h.mtu = static_cast<std::uint16_t>(e.config.mtu);
  h.line = e.config.line_mbps;
  return h;
}

wire::Hello Endpoint::accept(const wire::Hello& offered, Peer peer, Ps now) {
  Impl& e = *impl_;
  wire::Hello answer = offer();
  const wire::Refusal why = e.judge(offered);
  if (why != wire::Refusal::NONE) {
    e.release(answer.conn);
    answer.refusal = why;
    return answer;
  }
  // One incarnation serves both directions: the larger, so that it is new to both ends.
  Conn& c = e.conns[answer.conn];
  if (static_cast<std::int16_t>(offered.incarnation - c.incarnation) > 0) c.incarnation = offered.incarnation;
  answer.incarnation = c.incarnation;
  answer.streams = std::min(answer.streams, offered.streams);
  e.open(answer.conn, answer, offered, peer, now);
  return answer;
}

wire::Refusal Endpoint::connect(const wire::Hello& mine, const wire::Hello& answer, Peer peer, Ps now) {
  Impl& e = *impl_;
  if (mine.conn >= e.conns.size() || e.conns[mine.conn].state != ConnState::kOffered)
    return wire::Refusal::RESOURCES;
  wire::Refusal why = answer.refusal != wire::Refusal::NONE ? answer.refusal : e.judge(answer);
  if (why == wire::Refusal::NONE && static_cast<std::int16_t>(mine.incarnation - answer.incarnation) > 0)
    why = wire::Refusal::INCARNATION;
  if (why != wire::Refusal::NONE) {
    e.release(mine.conn);
    return why;
  }
  e.conns[mine.conn].incarnation = answer.incarnation;
  e.open(mine.conn, mine, answer, peer, now);
  return why;
}

void Endpoint::Impl::open(std::uint32_t conn, const wire::Hello& mine, const wire::Hello& theirs, Peer peer,
                          Ps now) {
  Conn& c = conns[conn];
  c.state = ConnState::kOpen;
  c.peer = peer;
  c.peer_conn = theirs.conn;
  c.caps = mine.caps & theirs.caps;
  c.mtu = std::min(mine.mtu, theirs.mtu);
  c.distance = (c.caps & bit(wire::Cap::REORDER)) != 0 ? config.distance : 0;
  c.resend_head = c.resend_tail = c.ready_head = c.ready_tail = c.left = kNil;
  c.unsettled = c.open_msgs = c.turn = c.held = 0;
  c.own_memory = false;
  c.fence_at.clear();
  c.acked = -1;
  c.keep_timer = false;
  c.told = wire::Err::OK;
  c.heard = c.life_start = now;
  c.flush_at = kNever;
  const std::uint32_t n = num_paths();
  c.tx.assign(n, TxPath{});
  c.rx.assign(n, RxPath{});
  c.cwnd.assign(n, 0);
  c.inflight.assign(n, 0);
  c.tx_port.assign(config.ports, TxPort{});
  c.rx_port.assign(config.ports, RxPort{});
  c.ack_port.assign(config.ports, AckPort{});
  c.streams.clear();
  c.streams.resize(std::min(mine.streams, theirs.streams) + 1u);
  c.scout = static_cast<std::uint32_t>(draw() % n);
  for (std::uint32_t i = 0; i < n; ++i) {
    TxPath& t = c.tx[i];
    t.next = t.base = mine.psn;
    t.head = t.tail = kNil;
    t.confirmed = t.proven = 1;  // the set-up confirmed epoch 0
    t.slow_start = 1;
    t.sport = draw_sport();
    RxPath& r = c.rx[i];
    r.next = theirs.psn & kPsnMask;
    r.hist.fill(~std::uint64_t{0});
  }
  for (std::uint32_t p = 0; p < config.ports; ++p) {
    c.tx_port[p].share = line_share;
    update_cap(conn, p);
  }
}

void Endpoint::Impl::release(std::uint32_t conn) {
  Conn& c = conns[conn];
  c.state = ConnState::kClosed;
  free_conns.insert(free_conns.begin(), conn);  // the longest unused number first
}

/// A request's end, told to the application.
void Endpoint::Impl::tell(std::uint32_t conn, const TxMsg& m, wire::Err status) {
  Completion done;
  done.status = status;
  done.conn = conn;
  done.stream = m.stream;
  done.id = m.id;
  env.completed(done);
}

/// Everything of a connection that will send no more: requests and receives complete once, with errors.
/// `first` is for the request that is to blame, or else for the oldest of each stream.
void Endpoint::Impl::flush(std::uint32_t conn, wire::Err first) {
  Conn& c = conns[conn];
  for (TxPath& t : c.tx) {
    while (t.head != kNil) {
      const std::uint32_t d = t.head;
      t.head = descs[d].next;
      drop_desc(d);
    }
    t.tail = kNil;
  }
  while (c.resend_head != kNil) {
    const std::uint32_t d = c.resend_head;
    unlink_resend(c, kNil, d);
    drop_desc(d);
  }
  c.ready_head = c.ready_tail = kNil;
  c.unsettled = c.open_msgs = 0;
  std::fill(c.inflight.begin(), c.inflight.end(), 0);
  share_forget(conn);
  for (std::uint32_t s = 0; s < c.streams.size(); ++s) {
    Stream& st = c.streams[s];
    wire::Err status = c.own_memory ? wire::Err::FLUSHED : first;
    st.failed = true;
    for (std::uint32_t m = st.oldest; m != kNil;) {
      const std::uint32_t next = msgs[m].next;
      if (!msgs[m].completed && !msgs[m].internal) {
        const TxMsg& x = msgs[m];
        tell(conn, x, x.status != wire::Err::OK ? x.status : x.unreadable ? first : status);
        status = wire::Err::FLUSHED;
      }
      msgs.give(m);
      m = next;
    }
    st.oldest = st.newest = st.cursor = kNil;
    for (std::uint32_t m = st.rx_open; m != kNil;) {
      const std::uint32_t next = rx_msgs[m].next;
      rx_msgs.give(m);
      m = next;
    }
    st.rx_open = kNil;
    while (!st.recvs.empty()) {
      const Recv r = st.recvs.pop();
      Completion done;
      done.what = Completed::kRecv;
      done.status = wire::Err::FLUSHED;
      done.conn = conn;
      done.stream = static_cast<std::uint16_t>(s);
      done.id = r.id;
      env.completed(done);
    }
  }
}

void Endpoint::close(std::uint32_t conn, Ps) {
  Impl& e = *impl_;
  if (conn >= e.conns.size() || e.conns[conn].state == ConnState::kClosed) return;
  if (e.conns[conn].state != ConnState::kOffered) {
    e.conns[conn].state = ConnState::kFailed;  // posts out of completed() are refused
    e.flush(conn, wire::Err::FLUSHED);
  }
  e.release(conn);
}

Endpoint::Endpoint(const Config& config, Env& env) : impl_(std::make_unique<Impl>(config, env)) {}
Endpoint::~Endpoint() = default;
Endpoint::Endpoint(Endpoint&&) noexcept = default;

void Endpoint::add_region(std::uint32_t rkey, std::uint64_t va, std::uint64_t bytes, std::uint8_t rights) {
  impl_->regions[rkey] = {va, bytes, rights};
}
void Endpoint::remove_region(std::uint32_t rkey) {
  impl_->regions.erase(rkey);
}

wire::Err Endpoint::post(std::uint32_t conn, std::uint16_t stream, const WorkRequest& w, Ps now) {
  Impl& e = *impl_;
  using wire::Err;
  if (conn >= e.conns.size()) return Err::BAD_CONN;
  Conn& c = e.conns[conn];
  if (c.state == ConnState::kFailing || c.state == ConnState::kFailed) return Err::FLUSHED;
  if (c.state != ConnState::kOpen || stream + 1u >= c.streams.size()) return Err::BAD_CONN;
  if ((c.caps & needed_cap(w.op)) == 0) return Err::BAD_OPCODE;
  if (w.length > wire::kMaxWqeLength) return Err::BAD_LENGTH;
  if (c.streams[stream].failed) return Err::FLUSHED;
  TxMsg m{};
  m.op = opcode_of(w.op);
  m.stream = stream;
  m.id = w.id;
  m.length = w.length;
  m.local_va = w.local_va;
  m.local_rkey = w.local_rkey;
  m.remote_va = w.remote_va;
  m.rkey = w.rkey;
  m.value = w.value;
  m.sem = w.sem;
  if (w.op == WrOp::kRead) {
    m.answer = w.length;
    m.answers = m.waits = true;
    m.length = wire::ReadRequest::kBytes;
  } else if (w.op == WrOp::kFetchAdd || w.op == WrOp::kCompareSwap) {
    if (w.remote_va % 8 != 0) return Err::BAD_ALIGN;
    m.operand = w.operand;
    m.compare = w.compare;
    m.answer = 8;
    m.answers = m.waits = true;
    m.length = wire::AtomicRequest::kBytes;
  }
  e.now = now;
  e.enqueue_message(conn, stream, m);
  return Err::OK;
}

wire::Err Endpoint::post_recv(std::uint32_t conn, std::uint16_t stream, std::uint64_t id, std::uint64_t va,
                              std::uint32_t bytes, Ps now) {
  Impl& e = *impl_;
  using wire::Err;
  if (conn >= e.conns.size()) return Err::BAD_CONN;
  Conn& c = e.conns[conn];
  if (c.state == ConnState::kFailing || c.state == ConnState::kFailed) return Err::FLUSHED;
  if (c.state != ConnState::kOpen || stream + 1u >= c.streams.size()) return Err::BAD_CONN;
  if ((c.caps & bit(wire::Cap::SEND)) == 0) return Err::BAD_OPCODE;
  Stream& st = c.streams[stream];
  if (st.rx_failed) return Err::FLUSHED;
  if (st.recvs.posted() - st.recvs.first() >= kMaxRecvs) return Err::BAD_LENGTH;
  st.recvs.push({id, va, bytes});
  e.now = now;
  e.offer_credits(conn, stream);
  return Err::OK;
}

void Endpoint::on_drop(wire::Drop reason) {
  impl_->drop(reason);
}

void Endpoint::on_packet(Ps now, std::uint32_t port, const Packet& p) {
  Impl& e = *impl_;
  using wire::Drop;
  using wire::Opcode;
  e.now = now;
  if (p.conn >= e.conns.size()) return e.drop(Drop::CONN);
  Conn& c = e.conns[p.conn];
  if (c.state != ConnState::kOpen && c.state != ConnState::kFailing) return e.drop(Drop::CONN);
  if (p.incarnation != c.incarnation) return e.drop(Drop::INCARNATION);
  if (p.path >= e.num_paths()) return e.drop(Drop::PATH);
  // Fences and their answers come over any path.
  if (p.opcode == Opcode::FENCE) return e.on_fence(p.conn, port, p);
  if (p.opcode == Opcode::FENCE_ANSWER) return e.on_fence_answer(now, p.conn, p);
  if (e.port_of(p.path) != port) return e.drop(Drop::PATH);
  if (p.opcode == Opcode::ACK) return e.on_ack(now, p.conn, port, p);
  e.on_sequenced(now, p.conn, port, p);
}

bool Endpoint::next_packet(Ps now, std::uint32_t port, Packet& out) {
  Impl& e = *impl_;
  e.now = now;
  // Looking for data may end in a probe or a fence: it must not wait for the port's next occasion.
  if (e.next_control(now, port, out) || e.next_data(now, port, out) || e.next_control(now, port, out))
    return true;
  e.ready_ports &= ~(1u << port);
  return false;
}

std::uint32_t Endpoint::ready_ports() const {
  return impl_->ready_ports;
}

Ps Endpoint::next_timer() const {
  return impl_->timers.empty() ? kNever : impl_->timers.front().at;
}

void Endpoint::on_timer(Ps now) {
  Impl& e = *impl_;
  e.now = now;
  while (!e.timers.empty() && e.timers.front().at <= now) {
    std::pop_heap(e.timers.begin(), e.timers.end(), std::greater<>{});
    const Timer t = e.timers.back();
    e.timers.pop_back();
    Conn& c = e.conns[t.conn];
    if (c.incarnation != t.incarnation || (c.state != ConnState::kOpen && c.state != ConnState::kFailing))
      continue;
    switch (t.kind) {
      case TimerKind::kPath: e.on_path_timer(now, t.conn, t.index, t.at); break;
      case TimerKind::kPace:
        c.tx_port[t.index].pace_timer = false;
        if (c.has_data()) e.queue_conn(t.conn, t.index);
        break;
      case TimerKind::kLeft:
        if (c.has_data()) e.queue_conn(t.conn, t.index);
        break;
      case TimerKind::kAck:
        c.ack_port[t.index].timer = false;
        if (c.ack_port[t.index].count != 0) e.queue_acks(t.conn, t.index);
        break;
      case TimerKind::kHole: e.on_hole_timer(now, t.conn, t.index, t.psn); break;
      case TimerKind::kKeep: e.on_keep_timer(now, t.conn); break;
      case TimerKind::kFlush:
        if (c.state == ConnState::kFailing && now >= c.flush_at) {
          c.state = ConnState::kFailed;
          e.flush(t.conn, c.why);
          Completion done;
          done.what = Completed::kConnection;
          done.status = e.conns[t.conn].why;
          done.conn = t.conn;
          e.env.completed(done);
        }
        break;
    }
  }
}

const Counters& Endpoint::counters() const {
  return impl_->count;
}
const Config& Endpoint::config() const {
  return impl_->config;
}

bool Endpoint::idle() const {
  for (const Conn& c : impl_->conns) {
    if (c.state == ConnState::kFailing) return false;
    if (c.state != ConnState::kOpen) continue;
    if (c.has_data()) return false;
    // Probes of a failed path go on until it comes back: they are nothing that ends.
    for (const TxPath& t : c.tx)
      if (t.unsettled() != 0 && (t.head != kNil || static_cast<PathState>(t.state) != PathState::kFailed))
        return false;
  }
  return true;
}

std::size_t Endpoint::in_use() const {
  return impl_->descs.used() + impl_->msgs.used() + impl_->rx_msgs.used();
}

PathState Endpoint::path_state(std::uint32_t conn, std::uint32_t path) const {
  return static_cast<PathState>(impl_->conns[conn].tx[path].state);
}
std::uint16_t Endpoint::path_sport(std::uint32_t conn, std::uint32_t path) const {
  return impl_->conns[conn].tx[path].sport;
}
double Endpoint::share_of_line(std::uint32_t conn, std::uint32_t port) const {
  return static_cast<double>(impl_->conns[conn].tx_port[port].share) / impl_->line_share;
}

std::size_t Endpoint::bytes_per_connection() const {
  const Impl& e = *impl_;
  return sizeof(Conn) + e.num_paths() * (sizeof(TxPath) + 2 * sizeof(std::uint32_t) + sizeof(RxPath)) +
         e.config.ports * (sizeof(TxPort) + sizeof(RxPort) + sizeof(AckPort)) +
         (e.config.streams + 1) * sizeof(Stream);
}

std::string Endpoint::state(std::uint32_t conn) const {
  static constexpr const char* kPath[] = {"good", "suspect", "fencing", "failed", "probation"};
  static constexpr const char* kConn[] = {"closed", "offered", "open", "failing", "failed"};
  const Impl& e = *impl_;
  const Conn& c = e.conns[conn];
  std::string text = "connection " + std::to_string(conn) + ": " + kConn[static_cast<int>(c.state)] + ", " +
                     std::to_string(c.unsettled) + " packets unsettled" +
                     (c.resend_head != kNil ? ", some to resend" : "") +
                     (c.ready_head != kNil ? ", more to send" : "");
  for (std::uint32_t p = 0; p < c.tx_port.size(); ++p) {
    const TxPort& t = c.tx_port[p];
    text += "\n  port " + std::to_string(p) + ": cap " + std::to_string(t.cap) + ", in flight " +
            std::to_string(t.inflight) + ", rtt " + std::to_string(t.srtt) + " ns (min " +
            std::to_string(t.min_rtt) + "), paths in use " + std::to_string(t.active) + ", share " +
            std::to_string(share_of_line(conn, p));
  }
  for (std::uint32_t i = 0; i < c.tx.size(); ++i) {
    const TxPath& t = c.tx[i];
    if (t.unsettled() == 0 && static_cast<PathState>(t.state) == PathState::kGood) continue;
    text += "\n  path " + std::to_string(i) + ": " + kPath[t.state] + ", epoch " + std::to_string(t.epoch) +
            ", base " + std::to_string(t.base) + ", next " + std::to_string(t.next) + ", window " +
            std::to_string(c.cwnd[i]) + ", in flight " + std::to_string(c.inflight[i]) +
            (t.probe_out ? ", probing" : "");
  }
  return text;
}

}  // namespace weft::ref
