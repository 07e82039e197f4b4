// SPDX-License-Identifier: Apache-2.0
// Acks: what they settle, and what windows, caps and shares learn from them.
#include <algorithm>

#include "sw/ref/impl.h"

namespace weft::ref {

using wire::Drop;

namespace {

// After so many data packets lost in a row no tail probe follows, for so many that are delivered.
inline constexpr unsigned kWary = 4;
inline constexpr unsigned kWaryFor = 64;

/// History bit of the PSN `back` + 1 below the base.
bool arrived(const AckHeader& a, std::uint32_t back) {
  return back < wire::kHistBits && (a.hist[back / 32] >> (31 - back % 32) & 1) != 0;
}

}  // namespace

Endpoint::Impl::Settled Endpoint::Impl::settle(std::uint32_t conn, std::uint32_t path, std::uint32_t base,
                                               const AckHeader& ack) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[path];
  Settled s;
  const std::uint32_t port = port_of(path);
  TxPort& tp = c.tx_port[port];
  double& loss = ports[port].loss;
  // Bytes on a suspect or fenced path have been taken out of the port's account already.
  const auto state = static_cast<PathState>(t.state);
  const bool counted = !apart(state);
  for (std::uint32_t psn = t.base; psn != base; psn = (psn + 1) & kPsnMask) {
    const std::uint32_t back = (base - 1 - psn) & kPsnMask;
    const bool there = arrived(ack, back);
    ++s.packets;
    // What a fence finds missing tells of the path's death, not of the network's loss.
    if (state != PathState::kFencing) loss += ((there ? 0.0 : 1.0) - loss) * kLossGain;
    const std::uint32_t d = t.head;
    if (d == kNil || descs[d].psn != (psn & 0xff)) continue;  // a probe
    t.head = descs[d].next;
    if (t.head == kNil) t.tail = kNil;
    const std::uint32_t bytes = descs[d].bytes + config.overhead;
    s.bytes += bytes;
    c.inflight[path] -= bytes;
    if (counted) tp.inflight -= bytes;
    const std::uint32_t mi = descs[d].msg;
    TxMsg& m = msgs[mi];
    Stream& st = c.streams[m.queue];
    if (!there) {
      s.lost_bytes += bytes;
      ++s.lost_packets;
      ++count.lost;
      if (m.status != wire::Err::OK) {
        drop_desc(d);
      } else {
        to_resend(c, d, path);
        if (st.lost_row == 0) st.stuck_since = now;
        if (++st.lost_row == 0) --st.lost_row;
        stuck |= st.lost_row >= config.tuning.stuck_losses && now - st.stuck_since >= config.tuning.give_up;
      }
      if (t.lost_row != 0xff) ++t.lost_row;
      if (t.lost_row >= kWary) t.wary = kWaryFor;
      continue;
    }
    ++count.delivered;
    ++s.delivered;
    t.lost_row = 0;
    if (t.wary != 0) t.wary = t.wary - 1;
    st.lost_row = 0;
    --m.refs;
    --m.left;
    descs.give(d);
    if (m.completed) {
      if (m.refs == 0) msgs.give(mi);
    } else if (m.left == 0 && m.packets == 0 && (done_queues.empty() || done_queues.back() != m.queue)) {
      done_queues.push_back(m.queue);
    }
  }
  c.unsettled -= s.packets;
  t.base = base;
  if (t.unsettled() == 0) {
    tp.tails &= ~(std::uint64_t{1} << index_of(path));
    t.probe_out = 0;
  }
  return s;
}

void Endpoint::Impl::sample_rtt(std::uint32_t conn, std::uint32_t port, std::uint32_t rtt) {
  TxPort& t = conns[conn].tx_port[port];
  rtt = std::clamp(rtt, 1u, kMaxWaitNs);
  if (t.srtt == 0) {
    t.srtt = rtt;
    t.rttvar = rtt / 2;
  } else {
    const auto error = static_cast<std::int64_t>(rtt) - t.srtt;
    t.srtt = static_cast<std::uint32_t>(t.srtt + error / 8);
    t.rttvar = static_cast<std::uint32_t>(t.rttvar + ((error < 0 ? -error : error) - t.rttvar) / 4);
  }
  if (t.min_rtt == 0 || rtt < t.min_rtt) {
    t.min_rtt = rtt;
    update_cap(conn, port);
  }
}

void Endpoint::Impl::learn_credits(std::uint32_t conn, std::uint32_t stream, std::uint16_t posted) {
  Conn& c = conns[conn];
  if (!has_cap(c, wire::Cap::SEND) || stream + 1 >= c.streams.size()) return;
  Stream& st = c.streams[stream];
  // The low 16 bits of a count that only grows, and never by half of them between two looks.
  const auto more = static_cast<std::int16_t>(posted - static_cast<std::uint16_t>(st.credit));
  if (more <= 0) return;
  st.credit += static_cast<std::uint32_t>(more);
  stream_ready(conn, stream);
}

/// Settles a path and moves its window. False: the news is old, or no news.
bool Endpoint::Impl::take_news(std::uint32_t conn, std::uint32_t port, const PathNews& news,
                               const AckHeader& a) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[news.path];
  TxPort& tp = c.tx_port[port];
  const auto refuse = [&](Drop reason) {
    drop(reason);
    return false;
  };
  if (news.epoch != t.epoch || static_cast<PathState>(t.state) == PathState::kFencing)
    return refuse(Drop::ACK_OLD);
  const std::int32_t ahead = psn_diff(a.base, t.base);
  if (ahead < 0) return refuse(Drop::ACK_OLD);
  if (psn_diff(a.base, t.next) > 0) return refuse(Drop::ACK_BAD);
  // A block without a clock answers a probe when it tells that just that one arrived.
  const bool answers =
      t.probe_out && (news.echo != nullptr ? clock_diff(*news.echo, t.probe_ts) >= 0
                                           : t.last_probe && a.base == t.next && arrived(a, 0));
  if (ahead == 0 && !answers) return refuse(Drop::ACK_OLD);
  if (static_cast<std::uint32_t>(ahead) > news.reach) {
    // It does not tell enough: a probe is answered in full.
    queue_probe(conn, news.path, 1);
    return refuse(Drop::ACK_OLD);
  }
  const std::int32_t rtt =
      news.echo != nullptr ? clock_diff(clock(now), *news.echo) : static_cast<std::int32_t>(tp.srtt);
  if (rtt < 0) return refuse(Drop::ACK_BAD);  // echoes what was never sent

  const bool limited = c.inflight[news.path] + pkt > c.cwnd[news.path];
  const std::uint32_t flying = c.inflight[news.path];
  const bool waited = t.probe_out;
  const Settled s = settle(conn, news.path, a.base, a);
  if (news.echo != nullptr) sample_rtt(conn, port, static_cast<std::uint32_t>(rtt));

  // The counters only grow, and by no more than what was on its way.
  std::uint32_t marked = (news.ce_bytes - t.ce_seen) & 0xffffff;
  t.ce_seen = news.ce_bytes & 0xffffff;
  const bool lies = marked > flying;
  if (lies) {
    ++count.refused_counters;
    marked = 0;
  }
  count.marked_bytes += marked;
  const std::uint32_t delivered = s.bytes - s.lost_bytes;
  const std::uint32_t unmarked = !lies && delivered > marked ? delivered - marked : 0;
  if (s.lost_bytes != 0 && rtt > config.tuning.loss_rtts * tp.min_rtt) marked += s.lost_bytes;

  // Calm: nothing marked for a while, so few paths do.
  if (marked != 0) {
    tp.calm_bytes = 0;
    if (tp.calm) {
      tp.calm = false;
      update_cap(conn, port);
    }
  } else if (!tp.calm && (tp.calm_bytes += delivered) > config.tuning.calm_caps * tp.cap) {
    tp.calm = true;
    update_cap(conn, port);
  }

  std::uint32_t& window = c.cwnd[news.path];
  if (marked != 0) {
    t.slow_start = 0;
    const auto cut = static_cast<std::uint32_t>(config.tuning.decrease * marked);
    window = window > cut ? window - cut : 0;
  }
  if (unmarked != 0 && limited) {
    if (t.slow_start) {
      window += unmarked;
    } else {
      const std::uint32_t grown = t.growth * 64u + unmarked;
      if (grown >= window) {
        window += pkt;
        t.growth = 0;
      } else {
        t.growth = static_cast<std::uint16_t>(std::min(grown / 64, 0xffffu));
      }
    }
  }
  window = std::clamp(window, pkt, std::max(pkt, tp.cap));

  // A path that answers is alive.
  if (answers || news.echo == nullptr) t.probe_out = 0;
  t.unanswered = 0;
  t.timeouts = 0;
  t.confirmed = 1;
  judge_path(conn, news.path, now, s, answers);
  if (waited && !t.probe_out && t.unsettled() != 0) arm(conn, news.path, now, tp.srtt * 3 / 2);
  any_lost |= s.lost_packets != 0;
  return true;
}

void Endpoint::Impl::on_ack(Ps now_, std::uint32_t conn, std::uint32_t port, const Packet& p) {
  Conn& c = conns[conn];
  TxPort& tp = c.tx_port[port];
  const AckHeader& a = p.ack;
  if (a.block_count != 0 && !has_cap(c, wire::Cap::BLOCKS)) return drop(Drop::ACK_BAD);
  any_lost = stuck = false;
  bool news = false;
  auto why = wire::Err::OK;
  if (take_news(conn, port, {p.path, p.epoch, wire::kHistBits, a.ce_bytes & 0xffffff, &a.echo}, a)) {
    news = true;
    c.acked = std::max(c.acked, time_of(now_, a.echo));
    if (has_cap(c, wire::Cap::SHARE) && config.tuning.share) {
      std::uint32_t share = a.share;
      if (share > line_share || share == 0) {  // no receiver grants that
        ++count.refused_share;
        share = share == 0 ? tp.share : line_share;
      }
      if (share != tp.share) {
        if (tp.share == line_share) {
          // Many may learn at one time that they are many: each begins somewhere within its first turn.
          const double turn = pkt / (share / 65536.0) * kNs;
          const double part = 1 + static_cast<double>(draw() >> 11) * 0x1p-53;
          tp.pace_at = now_ + static_cast<Ps>(turn * part);
        }
        tp.share = share;
        update_cap(conn, port);
      }
    }
    if (!has_cap(c, wire::Cap::STREAMS)) why = peers_error(a.status);
    learn_credits(conn, a.stream, a.credits);
  }
  for (unsigned i = 0; i < a.block_count; ++i) {
    const AckBlock& b = a.blocks[i];
    if (b.path >= num_paths() || port_of(b.path) != port) {
      drop(Drop::ACK_BAD);
      continue;
    }
    AckHeader h;
    h.base = b.base;
    h.hist.fill(~std::uint32_t{0});
    h.hist[0] = b.hist;
    news |= take_news(conn, port, {b.path, b.epoch, 32, b.ce_bytes, nullptr}, h);
  }
  if (!news) return;
  ++count.acks_taken;
  c.heard = now_;
  while (!done_queues.empty()) {
    const std::uint32_t q = done_queues.back();
    done_queues.pop_back();
    complete_stream(conn, q);
  }
  if (why == wire::Err::OK && stuck) why = wire::Err::RETRY_LIMIT;
  if (why != wire::Err::OK) return fail_connection(conn, now_, why);
  if (c.state != ConnState::kOpen || !c.has_data()) return;
  if (any_lost)
    make_ready(conn);
  else
    queue_conn(conn, port);
}

void Endpoint::Impl::on_fence_answer(Ps now, std::uint32_t conn, const Packet& p) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[p.path];
  const AckHeader& a = p.ack;
  if (!has_cap(c, wire::Cap::FENCE)) return drop(Drop::OPCODE);
  if (p.epoch != t.epoch) return drop(Drop::ACK_OLD);
  if (psn_diff(a.base, t.base) < 0 || psn_diff(a.base, t.next) > 0) return drop(Drop::ACK_BAD);
  // Whether the fence that is out, or the probe, asked for it: an answer echoes the clock of its question.
  const bool asked =
      t.probe_out && clock_diff(a.echo, t.probe_ts) >= 0 && clock_diff(clock(now), a.echo) >= 0;
  if (!asked) return drop(Drop::ACK_OLD);
  if (static_cast<PathState>(t.state) != PathState::kFencing) {
    // To a probe: the receiver has closed the epoch, for a fence that somebody forged. It settles nothing
    // before it answers a fence of our own, for it may be forged as well, and the epoch open.
    if (c.state != ConnState::kOpen || !fence(conn, p.path, now)) drop(Drop::ACK_OLD);
    return;
  }
  ++count.acks_taken;
  c.heard = now;
  stuck = false;
  settle(conn, p.path, a.base, a);
  // What the receiver had not got when it closed the epoch it will never take.
  AckHeader nothing{};
  nothing.hist.fill(0);
  settle(conn, p.path, t.next, nothing);
  new_epoch(conn, p.path, now);
  while (!done_queues.empty()) {
    const std::uint32_t q = done_queues.back();
    done_queues.pop_back();
    complete_stream(conn, q);
  }
  if (stuck) return fail_connection(conn, now, wire::Err::RETRY_LIMIT);
  if (c.state == ConnState::kOpen) make_ready(conn);
}

}  // namespace weft::ref
