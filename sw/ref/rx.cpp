// SPDX-License-Identifier: Apache-2.0
// Packets in: path check, placement, messages in order, and the acks that are owed.
#include <algorithm>
#include <bit>
#include <utility>

#include "sw/ref/impl.h"

namespace weft::ref {

using wire::Drop;
using wire::Err;
using wire::Opcode;

namespace {

bool test(const std::array<std::uint64_t, 4>& h, std::uint32_t i) {
  return (h[i / 64] >> (i % 64) & 1) != 0;
}
void set(std::array<std::uint64_t, 4>& h, std::uint32_t i) {
  h[i / 64] |= std::uint64_t{1} << (i % 64);
}

/// How many of the youngest `n` <= 256 PSNs have arrived.
std::uint32_t ones(const std::array<std::uint64_t, 4>& h, std::uint32_t n) {
  int sum = 0;
  for (unsigned i = 0; i < 4 && i * 64 < n; ++i) {
    const std::uint32_t here = n - i * 64;
    sum += std::popcount(here >= 64 ? h[i] : h[i] & ((std::uint64_t{1} << here) - 1));
  }
  return static_cast<std::uint32_t>(sum);
}

/// Toward older PSNs by `n` <= 256, zeros coming in.
void shift(std::array<std::uint64_t, 4>& h, std::uint32_t n) {
  while (n >= 64) {
    h = {0, h[0], h[1], h[2]};
    n -= 64;
  }
  if (n == 0) return;
  h = {h[0] << n, h[1] << n | h[0] >> (64 - n), h[2] << n | h[1] >> (64 - n), h[3] << n | h[2] >> (64 - n)};
}

constexpr std::uint32_t reverse(std::uint32_t x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}

/// History anchored at base: what lies above it is not settled.
std::array<std::uint64_t, 4> settled_history(const RxPath& r) {
  std::array<std::uint64_t, 4> h = r.hist;
  for (std::uint32_t hold = r.hold; hold != 0;) {
    const std::uint32_t n = std::min(hold, 63u);
    for (unsigned i = 0; i < 4; ++i) h[i] = h[i] >> n | (i < 3 ? h[i + 1] : ~std::uint64_t{0}) << (64 - n);
    hold -= n;
  }
  return h;
}

}  // namespace

/// The path owes an ack. It goes at once when it says that something was lost, answers a probe or ends a
/// message, else with those of a few more paths.
void Endpoint::Impl::ack_due(std::uint32_t conn, std::uint32_t path, bool gap, bool urgent) {
  Conn& c = conns[conn];
  RxPath& r = c.rx[path];
  const std::uint32_t port = port_of(path);
  AckPort& a = c.ack_port[port];
  if (gap) r.gap = 1;
  if (!r.due && a.count < a.owed.size()) {
    r.due = 1;
    a.owed[a.count++] = static_cast<std::uint8_t>(path);
  }
  // With no place left in the frame that is about to leave, the path's turn comes behind it.
  if (!r.due) {
    r.due = 1;
    push_ctl(port, {conn, static_cast<std::uint8_t>(path), 1, Ctl::kAck, 1});
    return;
  }
  if (urgent || !a.urgent) a.main = static_cast<std::uint8_t>(path);
  a.urgent |= urgent;
  const std::uint32_t together = has_cap(c, wire::Cap::BLOCKS) ? config.tuning.ack_paths : 1;
  if (urgent || a.count >= together) {
    queue_acks(conn, port);
  } else if (!a.timer) {
    a.timer = true;
    const double hold = config.tuning.ack_hold_pkts * pkt / line * kNs;
    push_timer({now + static_cast<Ps>(hold), 0, conn, static_cast<std::uint8_t>(port), TimerKind::kAck,
                c.incarnation});
  }
}

void Endpoint::Impl::queue_acks(std::uint32_t conn, std::uint32_t port) {
  AckPort& a = conns[conn].ack_port[port];
  if (a.queued) return;
  a.queued = true;
  push_ctl(port, {conn, 0, 0, Ctl::kAck, 1});
}

bool Endpoint::Impl::build_ack(std::uint32_t conn, std::uint32_t port, Packet& out) {
  Conn& c = conns[conn];
  AckPort& a = c.ack_port[port];
  a.queued = false;
  if (a.count == 0) return false;
  const bool blocks = has_cap(c, wire::Cap::BLOCKS);
  const std::uint32_t main = blocks ? a.main : a.owed[0];
  const bool lossy = ports[port].loss >= config.tuning.double_loss;
  out.path = static_cast<std::uint8_t>(main);
  out.sport = c.tx[main].sport;
  fill_ack(conn, main, out);
  AckPort left;  // what goes with the next frame: the same again where a loss is reported and much is lost
  left.main = a.main;
  left.timer = a.timer;
  bool again = false;
  for (unsigned i = 0; i < a.count; ++i) {
    const std::uint32_t path = a.owed[i];
    RxPath& r = c.rx[path];
    const bool here = path == main || (blocks && out.ack.block_count < out.ack.blocks.size());
    if (here && path != main) {
      AckBlock& b = out.ack.blocks[out.ack.block_count++];
      b = {r.base(), r.ce_bytes & 0xffffff, reverse(static_cast<std::uint32_t>(settled_history(r)[0])),
           static_cast<std::uint8_t>(path), static_cast<std::uint8_t>(r.epoch)};
    }
    if (here && !(r.gap && lossy)) {
      r.due = r.gap = 0;
      continue;
    }
    again |= here;
    r.gap = 0;
    left.owed[left.count++] = static_cast<std::uint8_t>(path);
  }
  a = left;
  if (again) ++count.acks_doubled;
  if (a.count != 0) queue_acks(conn, port);
  return true;
}

void Endpoint::Impl::fill_ack(std::uint32_t conn, std::uint32_t path, Packet& out) {
  Conn& c = conns[conn];
  const RxPath& r = c.rx[path];
  AckHeader& a = out.ack;
  out.epoch = static_cast<std::uint8_t>(r.epoch);
  a.base = r.base();
  a.ce_bytes = r.ce_bytes;
  a.rx_bytes = r.rx_bytes;
  a.echo = r.echo;
  a.share = share_grant(conn, port_of(path));
  a.stream = r.stream;
  a.credits =
      r.stream + 1u < c.streams.size() ? static_cast<std::uint16_t>(c.streams[r.stream].recvs.posted()) : 0;
  a.status = static_cast<std::uint8_t>(c.told);
  a.block_count = 0;
  a.hist_words = 0;
  a.hist.fill(~std::uint32_t{0});
  const std::array<std::uint64_t, 4> h = settled_history(r);
  if ((h[0] & h[1] & h[2] & h[3]) == ~std::uint64_t{0}) return;  // nothing lost: no word of it travels
  for (unsigned w = 0; w < wire::kHistWords; ++w) {              // cut behind its last zero
    a.hist[w] = reverse(static_cast<std::uint32_t>(h[w / 2] >> (w % 2 * 32)));
    if (a.hist[w] != ~std::uint32_t{0}) a.hist_words = static_cast<std::uint8_t>(w + 1);
  }
}

void Endpoint::Impl::on_sequenced(Ps now, std::uint32_t conn, std::uint32_t port, const Packet& p) {
  Conn& c = conns[conn];
  RxPath& r = c.rx[p.path];
  const bool is_data = p.is_data();
  if (p.epoch != r.epoch || r.closed) {
    // W2: the next epoch opens when this one is closed, by its first packet.
    if (!r.closed || p.epoch != ((r.epoch + 1) & 0xff)) {
      // A probe of the closed epoch asks what its fence asks.
      if (r.closed && p.epoch == r.epoch && !is_data) {
        r.echo = p.timestamp;
        answer_fence(conn, port, p.path);
      }
      return drop(Drop::EPOCH);
    }
    // What waits to leave, and the timer, belong to the path and not to its epoch.
    const RxPath before = r;
    r = RxPath{};
    r.epoch = p.epoch;
    r.due = before.due;
    r.answering = before.answering;
    r.hole_timer = before.hole_timer;
    r.hist.fill(~std::uint64_t{0});
  }
  const std::int32_t ahead = psn_diff(p.psn, r.next);
  if (psn_diff(p.psn, r.base()) >= static_cast<std::int32_t>(wire::kHistBits)) return drop(Drop::FUTURE);
  if (ahead < 0) {
    const auto back = static_cast<std::uint32_t>(-ahead - 1);
    if (back >= r.hold || test(r.hist, back)) {
      drop(Drop::STALE);
      if (is_data) {
        ++count.stale_data;
      } else {                 // W3: dropped, but answered
        r.echo = p.timestamp;  // though older it may look: clocks wrap while a path is silent
        ack_due(conn, p.path, false, true);
      }
      return;
    }
  }
  c.heard = now;
  const std::uint32_t bytes = is_data ? p.payload_bytes + config.overhead : 0;
  if (is_data) {
    share_data(now, conn, port, p, bytes);
    r.stream = p.data.stream;
  }
  // Refused: it is settled as lost, so that its message can never look complete.
  const bool taken = !is_data || accept_data(conn, p) == Err::OK;
  std::uint32_t hold = r.hold;
  if (ahead >= 0) {
    shift(r.hist, static_cast<std::uint32_t>(ahead) + 1);
    r.next = (p.psn + 1) & kPsnMask;
    hold += static_cast<std::uint32_t>(ahead) + 1;
    if (taken) set(r.hist, 0);
  } else if (taken) {
    set(r.hist, static_cast<std::uint32_t>(-ahead - 1));
  }
  // The base moves over what arrived and over holes behind which `distance` packets have arrived. The lowest
  // hole has the most of them.
  bool gap = false;
  Port& pt = ports[port];
  std::uint32_t behind = hold > 1 ? ones(r.hist, hold) : 0;  // arrived, from base on
  while (hold != 0) {
    const bool there = test(r.hist, hold - 1);
    if (!there && behind < c.distance) break;
    behind -= there && behind != 0 ? 1 : 0;
    pt.loss += ((there ? 0.0 : 1.0) - pt.loss) * kLossGain;
    gap |= !there;
    --hold;
  }
  r.hold = static_cast<std::uint16_t>(hold & 0x1ff);
  if (hold != 0 && !r.hole_timer) {
    r.hole_timer = 1;
    push_timer(
        {now + config.tuning.hole_timeout, 0, conn, p.path, TimerKind::kHole, c.incarnation, r.base()});
  }
  if (gap && !is_data) share_touch(now, conn, port);
  if (is_data && taken) {
    r.rx_bytes += bytes;
    if (p.ce) r.ce_bytes += bytes;
    ++count.data_taken;
  } else if (!is_data) {
    ++count.probes_taken;
  }
  if (ahead >= 0 || clock_diff(p.timestamp, r.echo) > 0) r.echo = p.timestamp;
  ack_due(conn, p.path, gap, gap || !is_data || !p.data.more);
}

/// A hole has been open for long enough, or another one since.
void Endpoint::Impl::on_hole_timer(Ps now, std::uint32_t conn, std::uint32_t path, std::uint32_t psn) {
  Conn& c = conns[conn];
  RxPath& r = c.rx[path];
  r.hole_timer = 0;
  if (r.hold == 0) return;
  const bool old = psn == r.base();
  if (old) {
    while (r.hold != 0 && !test(r.hist, r.hold - 1u)) --r.hold;
    while (r.hold != 0 && test(r.hist, r.hold - 1u)) --r.hold;
  }
  if (r.hold != 0) {
    r.hole_timer = 1;
    push_timer({now + config.tuning.hole_timeout, 0, conn, static_cast<std::uint8_t>(path), TimerKind::kHole,
                c.incarnation, r.base()});
  }
  if (old) ack_due(conn, path, true, true);
}

Err Endpoint::Impl::check_region(std::uint32_t rkey, std::uint64_t va, std::uint64_t bytes,
                                 std::uint8_t right) const {
  if (bytes == 0) return Err::OK;  // touches nothing, needs no key
  const auto it = regions.find(rkey);
  if (it == regions.end() || rkey == 0) return Err::REMOTE_KEY;
  const Region& g = it->second;
  if (va < g.va || bytes > g.bytes || va - g.va > g.bytes - bytes) return Err::REMOTE_BOUNDS;
  return (g.rights & right) != 0 ? Err::OK : Err::REMOTE_RIGHTS;
}

namespace {
Drop drop_of(Err e) {
  switch (e) {
    case Err::REMOTE_KEY: return Drop::KEY;
    case Err::REMOTE_BOUNDS: return Drop::BOUNDS;
    case Err::REMOTE_RIGHTS: return Drop::RIGHTS;
    case Err::REMOTE_MEM: return Drop::MEM;
    default: return Drop::MSG;
  }
}

/// Whether the set-up agreed on what a request asks for.
bool served(const Conn& c, Opcode op) {
  const wire::Cap cap = op == Opcode::WRITE || op == Opcode::WRITE_SIGNAL       ? wire::Cap::WRITE
                        : op == Opcode::READ                                    ? wire::Cap::READ
                        : op == Opcode::FETCH_ADD || op == Opcode::COMPARE_SWAP ? wire::Cap::ATOMIC
                                                                                : wire::Cap::SEND;
  return (c.caps >> static_cast<unsigned>(cap) & 1) != 0;
}
}  // namespace

/// OK, or why the packet is refused; a refused packet has been counted and the peer will be told.
Err Endpoint::Impl::accept_data(std::uint32_t conn, const Packet& p) {
  Conn& c = conns[conn];
  const std::uint32_t s = p.data.stream;
  if (s + 1 >= c.streams.size()) {
    drop(Drop::STREAM);
    return Err::REMOTE_OP;
  }
  switch (p.opcode) {
    case Opcode::READ_DATA:
    case Opcode::ATOMIC_REPLY: return accept_reply(conn, p);
    case Opcode::STREAM_ERROR:
      if (p.data.value == 0 || p.data.value > 0xff) {
        drop(Drop::MSG);
        return Err::OK;
      }
      fail_stream(conn, s, p.data.msg_no, peers_error(p.data.value));
      return Err::OK;
    case Opcode::CREDIT: learn_credits(conn, s, static_cast<std::uint16_t>(p.data.value)); return Err::OK;
    default: return accept_request(conn, p);
  }
}

Err Endpoint::Impl::accept_reply(std::uint32_t conn, const Packet& p) {
  Stream& st = conns[conn].streams[p.data.stream];
  std::uint32_t i = st.oldest;
  while (i != kNil && msgs[i].msg_no != p.data.msg_no) i = msgs[i].next;
  Err refused = Err::OK;
  if (i == kNil || !msgs[i].waits || msgs[i].status != Err::OK) {
    drop(Drop::MSG);
    return Err::OK;  // of a request that has ended: there is nobody to tell
  }
  TxMsg& m = msgs[i];
  const bool atomic = m.op != Opcode::READ;
  const std::uint64_t offset = p.data.va - m.local_va;
  if (atomic != (p.opcode == Opcode::ATOMIC_REPLY) || p.data.rkey != m.local_rkey ||
      p.data.msg_len != m.answer || p.payload_bytes > conns[conn].mtu || offset > m.answer ||
      p.payload_bytes > m.answer - offset || p.payload_bytes > m.answer - m.answered ||
      (p.payload_bytes == 0 && m.answer != 0))
    refused = Err::REMOTE_BOUNDS;
  Cover cover = m.cover;
  cover.add(p.data.va, p.payload_bytes);
  if (refused == Err::OK && m.answered + p.payload_bytes == m.answer && !cover.whole(m.answer))
    refused = Err::BAD_LENGTH;
  if (refused == Err::OK) refused = check_region(p.data.rkey, p.data.va, p.payload_bytes, kRemoteWrite);
  if (refused == Err::OK && p.payload_bytes != 0 && !env.write(p.data.va, p.payload, p.payload_bytes))
    refused = Err::MEM_ERROR;
  if (refused != Err::OK) {
    drop(drop_of(refused));
    fail_stream(conn, p.data.stream, p.data.msg_no, refused);
    return Err::OK;  // the peer's reply is over, whatever became of it
  }
  m.answered += p.payload_bytes;
  m.cover = cover;
  if (m.answered == m.answer) {
    m.waits = false;
    complete_stream(conn, p.data.stream);
  }
  return Err::OK;
}

Err Endpoint::Impl::accept_request(std::uint32_t conn, const Packet& p) {
  Conn& c = conns[conn];
  const std::uint32_t s = p.data.stream;
  Stream& st = c.streams[s];
  const DataHeader& h = p.data;
  const bool takes_receive =
      p.opcode == Opcode::SEND || p.opcode == Opcode::SEND_IMM || p.opcode == Opcode::WRITE_IMM;
  const auto refuse = [&](Err e) {
    drop(drop_of(e));
    stream_error(conn, h.stream, h.msg_no, e, takes_receive);
    return e;
  };
  if (static_cast<std::uint16_t>(h.msg_no - st.rx_next) >= wire::kMsgWindow) {
    // Complete already, or beyond what a sender may: what it sends is not what it says.
    drop(Drop::MSG);
    stream_error(conn, h.stream, st.rx_next, Err::BAD_LENGTH);
    return Err::BAD_LENGTH;
  }
  if (st.rx_failed && static_cast<std::int16_t>(h.msg_no - st.rx_error) >= 0) {
    drop(Drop::STREAM);
    return Err::FLUSHED;
  }
  if (!served(c, p.opcode)) return refuse(Err::REMOTE_OP);
  if (p.payload_bytes > c.mtu) return refuse(Err::BAD_LENGTH);
  const bool read = p.opcode == Opcode::READ;
  const bool atomic = p.opcode == Opcode::FETCH_ADD || p.opcode == Opcode::COMPARE_SWAP;
  const bool send = p.opcode == Opcode::SEND || p.opcode == Opcode::SEND_IMM;
  std::uint32_t length = h.msg_len;
  if (read) length = wire::ReadRequest::kBytes;
  if (atomic) {
    if (h.msg_len != 8) return refuse(Err::BAD_LENGTH);
    length = wire::AtomicRequest::kBytes;
  }

  std::uint32_t i = st.rx_open;
  while (i != kNil && rx_msgs[i].msg_no != h.msg_no) i = rx_msgs[i].next;
  if (i != kNil) {
    const RxMsg& m = rx_msgs[i];
    if (m.op != p.opcode || m.length != length || m.whole || (send && m.rkey != h.rkey))
      return refuse(Err::BAD_LENGTH);
  }
  const std::uint32_t got = i != kNil ? rx_msgs[i].got : 0;
  if (p.payload_bytes > length - got || (p.payload_bytes == 0 && length != 0)) return refuse(Err::BAD_LENGTH);
  // A request is not cut into packets.
  if ((read || atomic) && (p.payload_bytes != length || p.payload == nullptr)) return refuse(Err::BAD_LENGTH);

  // Where it goes.
  std::uint64_t at = h.va;
  Err e = Err::OK;
  if (read) {
    e = check_region(h.rkey, h.va, h.msg_len, kRemoteRead);
  } else if (atomic) {
    if (h.va % 8 != 0) return refuse(Err::REMOTE_BOUNDS);
    e = check_region(h.rkey, h.va, 8, kRemoteAtomic);
  } else if (send) {
    if (!st.recvs.holds(h.rkey)) return refuse(Err::BAD_LENGTH);  // sent without credit
    const Recv& rv = st.recvs.at(h.rkey);
    if (length > rv.bytes) return refuse(Err::RECV_LENGTH);
    if (h.va > length || p.payload_bytes > length - h.va) return refuse(Err::BAD_LENGTH);
    at = rv.va + h.va;
  } else {
    e = check_region(h.rkey, h.va, p.payload_bytes, kRemoteWrite);
  }
  if (e != Err::OK) return refuse(e);
  Cover cover = i != kNil ? rx_msgs[i].cover : Cover{};
  cover.add(h.va, p.payload_bytes);
  // As many bytes as it should have, but some came twice and others never (W-MSG-014).
  if (!read && !atomic && got + p.payload_bytes == length && !cover.whole(length))
    return refuse(Err::BAD_LENGTH);
  if (!read && !atomic && p.payload_bytes != 0 && !env.write(at, p.payload, p.payload_bytes))
    return refuse(Err::REMOTE_MEM);

  if (i == kNil) {
    i = rx_msgs.take();
    RxMsg& m = rx_msgs[i];
    m = RxMsg{};
    m.length = length;
    m.msg_no = h.msg_no;
    m.op = p.opcode;
    m.next = st.rx_open;
    st.rx_open = i;
  }
  RxMsg& m = rx_msgs[i];
  m.got += p.payload_bytes;
  m.cover = cover;
  m.value = h.value;
  m.sem = h.sem;
  if (send) m.rkey = h.rkey;
  if (read) {
    const auto q = wire::ReadRequest::unpack(p.payload);
    m.va = h.va;
    m.rkey = h.rkey;
    m.value = h.msg_len;
    m.reply_va = q.va;
    m.reply_rkey = q.rkey;
  } else if (atomic) {
    const auto q = wire::AtomicRequest::unpack(p.payload);
    m.va = h.va;
    m.rkey = h.rkey;
    m.reply_va = q.va;
    m.reply_rkey = q.rkey;
    m.operand = q.operand;
    m.compare = q.compare;
  }
  m.whole = m.got == m.length;
  if (m.whole && h.msg_no == st.rx_next) complete_rx(conn, s);
  return Err::OK;
}

/// Messages act in the order of the stream: immediates, signals, reads, atomics.
void Endpoint::Impl::complete_rx(std::uint32_t conn, std::uint32_t stream) {
  for (;;) {
    Stream& st = conns[conn].streams[stream];
    std::uint32_t* link = &st.rx_open;
    while (*link != kNil && rx_msgs[*link].msg_no != st.rx_next) link = &rx_msgs[*link].next;
    if (*link == kNil || !rx_msgs[*link].whole) return;
    const std::uint32_t i = *link;
    const RxMsg m = rx_msgs[i];
    *link = m.next;
    rx_msgs.give(i);
    ++st.rx_next;
    if (!act(conn, stream, m)) return;
    flush_recvs(conn, stream);
  }
}

bool Endpoint::Impl::act(std::uint32_t conn, std::uint32_t stream, const RxMsg& m) {
  Conn& c = conns[conn];
  Stream& st = c.streams[stream];
  const auto wire_stream = static_cast<std::uint16_t>(stream);
  const auto fail = [&](Err e) {
    drop(drop_of(e));
    st.rx_next = m.msg_no;  // it has not happened
    stream_error(conn, wire_stream, m.msg_no, e);
    return false;
  };
  const auto received = [&](bool imm, std::uint32_t bytes) {
    const Recv rv = st.recvs.pop();
    Completion done;
    done.what = Completed::kRecv;
    done.conn = conn;
    done.stream = wire_stream;
    done.id = rv.id;
    done.has_imm = imm;
    done.imm = imm ? m.value : 0;
    done.bytes = bytes;
    env.completed(done);
    offer_credits(conn, stream);
  };
  const auto reply = [&](Opcode op, std::uint32_t length) {
    ++st.replies;
    TxMsg r{};
    r.op = op;
    r.internal = true;
    r.stream = wire_stream;
    r.msg_no = m.msg_no;
    r.length = length;
    r.remote_va = m.reply_va;
    r.rkey = m.reply_rkey;
    return r;
  };
  const auto replies = static_cast<std::uint32_t>(c.streams.size() - 1);
  const bool send = m.op == Opcode::SEND || m.op == Opcode::SEND_IMM;
  const bool answers = m.op == Opcode::READ || m.op == Opcode::FETCH_ADD || m.op == Opcode::COMPARE_SWAP;
  // The bytes lie in the receive that it named, which has to be the one whose turn it is.
  if (send && (st.recvs.empty() || m.rkey != st.recvs.first())) return fail(Err::BAD_LENGTH);
  // An answer of which nothing has left is an answer that its requester still waits for.
  if (answers && st.replies >= wire::kMsgWindow) return fail(Err::BAD_LENGTH);
  switch (m.op) {
    case Opcode::SEND: received(false, m.length); break;
    case Opcode::SEND_IMM: received(true, m.length); break;
    case Opcode::WRITE_IMM:
      if (st.recvs.empty()) return fail(Err::BAD_LENGTH);  // sent without credit
      received(true, m.length);
      break;
    case Opcode::WRITE_SIGNAL:
      if (!env.signal(m.sem, m.value)) return fail(Err::REMOTE_BOUNDS);
      break;
    case Opcode::READ: {
      TxMsg r = reply(Opcode::READ_DATA, m.value);
      r.local_va = m.va;
      enqueue_message(conn, replies, r);
      break;
    }
    case Opcode::FETCH_ADD:
    case Opcode::COMPARE_SWAP: {
      std::array<std::uint8_t, 8> bytes;
      if (!env.read(m.va, bytes.data(), 8)) return fail(Err::REMOTE_MEM);
      std::uint64_t old = 0;
      for (int i = 7; i >= 0; --i) old = old << 8 | bytes[i];
      const bool add = m.op == Opcode::FETCH_ADD;
      if (add || old == m.compare) {
        const std::uint64_t fresh = add ? old + m.operand : m.operand;
        for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(fresh >> 8 * i);
        if (!env.write(m.va, bytes.data(), 8)) return fail(Err::REMOTE_MEM);
      }
      TxMsg r = reply(Opcode::ATOMIC_REPLY, 8);
      r.operand = old;
      enqueue_message(conn, replies, r);
      break;
    }
    default: break;  // WRITE
  }
  return true;
}

/// Tells the sender that `msg_no` has failed; the earlier messages of the stream go on.
void Endpoint::Impl::stream_error(std::uint32_t conn, std::uint16_t stream, std::uint16_t msg_no, Err status,
                                  bool took_receive) {
  Conn& c = conns[conn];
  Stream& st = c.streams[stream];
  if (st.rx_failed && static_cast<std::int16_t>(msg_no - st.rx_error) >= 0) return;
  if (!st.rx_failed) ++count.stream_failed;
  st.rx_failed = true;
  st.rx_error = msg_no;
  st.rx_status = took_receive ? status : Err::FLUSHED;
  // Those behind it will never be whole.
  for (std::uint32_t* link = &st.rx_open; *link != kNil;) {
    const std::uint32_t i = *link;
    if (static_cast<std::int16_t>(rx_msgs[i].msg_no - msg_no) >= 0) {
      *link = rx_msgs[i].next;
      rx_msgs.give(i);
    } else {
      link = &rx_msgs[i].next;
    }
  }
  if (!has_cap(c, wire::Cap::STREAMS)) {
    // A peer that knows no STREAM_ERROR learns it from every ack from now on, and fails the connection.
    if (c.told == Err::OK) c.told = status;
    flush_recvs(conn, stream);
    return;
  }
  TxMsg m{};
  m.op = Opcode::STREAM_ERROR;
  m.internal = true;
  m.stream = stream;
  m.msg_no = msg_no;
  m.value = static_cast<std::uint32_t>(status);
  enqueue_message(conn, static_cast<std::uint32_t>(c.streams.size() - 1), m);
  flush_recvs(conn, stream);
}

/// When all before the failed message has completed, no receive of the stream will be taken any more.
void Endpoint::Impl::flush_recvs(std::uint32_t conn, std::uint32_t stream) {
  Stream& st = conns[conn].streams[stream];
  // A READ may fail while it is answered, when later messages have acted.
  if (!st.rx_failed || static_cast<std::int16_t>(st.rx_next - st.rx_error) < 0) return;
  while (!st.recvs.empty()) {
    Completion done;
    done.what = Completed::kRecv;
    done.status = std::exchange(st.rx_status, Err::FLUSHED);
    done.conn = conn;
    done.stream = static_cast<std::uint16_t>(stream);
    done.id = st.recvs.pop().id;
    env.completed(done);
  }
}

/// More receives than the peer is known to know of, and it may be waiting for them: tell it for certain.
/// Acks carry the same count, but an ack may be lost and nothing follow it.
void Endpoint::Impl::offer_credits(std::uint32_t conn, std::uint32_t stream) {
  Conn& c = conns[conn];
  Stream& st = c.streams[stream];
  if (st.credit_out || c.state != ConnState::kOpen || st.rx_failed) return;
  const std::uint32_t posted = st.recvs.posted();
  if (clock_diff(posted, st.credit_told) <= 0 || clock_diff(st.credit_told, st.recvs.first()) > 0) return;
  st.credit_out = true;
  TxMsg m{};
  m.op = Opcode::CREDIT;
  m.internal = true;
  m.stream = static_cast<std::uint16_t>(stream);
  m.value = posted;
  enqueue_message(conn, static_cast<std::uint32_t>(c.streams.size() - 1), m);
}

}  // namespace weft::ref
