// SPDX-License-Identifier: Apache-2.0
// Paths that fall silent: probes, evidence, fences, new epochs; and connections that nobody answers.
#include <algorithm>
#include <functional>

#include "sw/ref/impl.h"

namespace weft::ref {

using wire::Drop;

namespace {
// Changes of a path's epoch in a packet's life. Two such counts touch any stretch as long, and W4 allows 254.
inline constexpr std::uint32_t kMaxChanges = 120;
// Data packets lost in a row that make a path a black hole for data. So many, because where switches spray
// packets probes overtake them, and a network that loses half of everything is no reason either.
inline constexpr std::uint32_t kBlackHole = 32;
inline constexpr std::uint32_t kMostProbes = 31;  // TxPath::unanswered
}  // namespace

std::uint32_t Endpoint::Impl::rto_ns(const Conn& c, std::uint32_t port, std::uint32_t doublings) const {
  const TxPort& t = c.tx_port[port];
  const auto least = static_cast<std::uint64_t>(config.tuning.probe_min / kNs);
  const std::uint64_t rto =
      t.srtt == 0 ? std::uint64_t{3} * rtt_init_ns : std::max(t.srtt + std::uint64_t{4} * t.rttvar, least);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rto << doublings, kMaxWaitNs));
}

void Endpoint::Impl::push_timer(Timer t) {
  t.order = timer_order++;
  timers.push_back(t);
  std::push_heap(timers.begin(), timers.end(), std::greater<>{});
}

/// The path is looked at when nothing is heard of it for so long. A later time costs nothing: the timer that
/// is set finds out.
void Endpoint::Impl::arm(std::uint32_t conn, std::uint32_t path, Ps now, std::uint32_t after_ns) {
  TxPath& t = conns[conn].tx[path];
  t.deadline = clock(now) + after_ns;
  if (t.in_timer && clock_diff(t.deadline, t.armed) >= 0) return;
  t.in_timer = 1;
  t.armed = t.deadline;
  push_timer({now + Ps{after_ns} * kNs, 0, conn, static_cast<std::uint8_t>(path), TimerKind::kPath,
              conns[conn].incarnation});
}

void Endpoint::Impl::queue_probe(std::uint32_t conn, std::uint32_t path, std::uint8_t copies, bool anyway) {
  TxPath& t = conns[conn].tx[path];
  if (t.probe_due) return;
  t.probe_due = 1;
  push_ctl(port_of(path), {conn, static_cast<std::uint8_t>(path), anyway ? std::uint8_t{1} : std::uint8_t{0},
                           Ctl::kProbe, copies});
}

/// What an ack says of a path. It was lost data only, for a while: then it passes probes and no data, and
/// must not take more than a try now and then.
void Endpoint::Impl::judge_path(std::uint32_t conn, std::uint32_t path, Ps now, const Settled& s,
                                bool answers) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[path];
  const auto back_off = [&] {
    set_state(conn, path, PathState::kFailed);
    if (t.setbacks != 0xff) ++t.setbacks;
    t.lost_row = 0;
    t.proven = 0;
    t.probe_out = 0;
    arm(conn, path, now,
        rto_ns(c, port_of(path), std::min<std::uint32_t>(t.setbacks, config.tuning.dead_backoff_max)));
  };
  switch (static_cast<PathState>(t.state)) {
    case PathState::kSuspect:
      if (s.delivered != 0) t.proven = 1;
      set_state(conn, path, t.proven ? PathState::kGood : PathState::kProbation);
      break;
    case PathState::kFailed:
      if (!answers) break;
      c.cwnd[path] = 2 * pkt;
      t.slow_start = 1;
      set_state(conn, path, PathState::kProbation);
      break;
    case PathState::kProbation:
      if (s.delivered != 0) {
        ++count.path_back;
        t.setbacks = 0;
        t.proven = 1;
        set_state(conn, path, PathState::kGood);
      } else if (s.lost_packets != 0) {
        back_off();
      }
      break;
    case PathState::kGood:
      if (t.lost_row >= kBlackHole && usable_paths(c) > 1) {
        ++count.path_failed;
        back_off();
      }
      break;
    default: break;
  }
  const auto state = static_cast<PathState>(t.state);
  if (t.unsettled() < wire::kMaxUnsettled && (state == PathState::kGood || state == PathState::kProbation))
    c.tx_port[port_of(path)].blocked &= ~(std::uint64_t{1} << index_of(path));
}

void Endpoint::Impl::set_state(std::uint32_t conn, std::uint32_t path, PathState state) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[path];
  TxPort& tp = c.tx_port[port_of(path)];
  const auto old = static_cast<PathState>(t.state);
  if (apart(old) && !apart(state)) tp.inflight += c.inflight[path];
  if (!apart(old) && apart(state)) tp.inflight -= c.inflight[path];
  t.state = static_cast<std::uint32_t>(state);
  const std::uint64_t mask = std::uint64_t{1} << index_of(path);
  if (state == PathState::kGood || state == PathState::kProbation) {
    if (t.unsettled() < wire::kMaxUnsettled) tp.blocked &= ~mask;
  } else {
    tp.blocked |= mask;
    tp.tails &= ~mask;
  }
  if (c.state == ConnState::kOpen && c.has_data()) queue_conn(conn, port_of(path));
}

std::uint32_t Endpoint::Impl::usable_paths(const Conn& c) const {
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < c.tx.size(); ++i) {
    const auto s = static_cast<PathState>(c.tx[i].state);
    n += (s != PathState::kFencing && s != PathState::kFailed) ? 1 : 0;
  }
  return n;
}

/// So many unanswered probes in a row are no accident at the loss that acks tell of: a probe or its ack is
/// lost, so each goes unanswered with twice that.
std::uint32_t Endpoint::Impl::probes_to_fail(std::uint32_t port) const {
  const double one = 2 * ports[port].loss;
  double all = one;
  std::uint32_t n = 1;
  for (; n < kMostProbes && all > config.tuning.fail_chance; ++n) all *= one;
  return std::max(n, config.tuning.fail_probes);
}

/// The timer set for `at`. The caller may come late, by more than half of a 32-bit clock too.
void Endpoint::Impl::on_path_timer(Ps now, std::uint32_t conn, std::uint32_t path, Ps at) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[path];
  if (!t.in_timer || clock(at) != t.armed) return;  // set for an earlier time since
  t.in_timer = 0;
  const auto state = static_cast<PathState>(t.state);
  if (t.unsettled() == 0 && state != PathState::kFencing && state != PathState::kFailed) return;
  const Ps wait = at / kNs + clock_diff(t.deadline, t.armed) - now / kNs;  // ns
  if (wait > 0) return arm(conn, path, now, static_cast<std::uint32_t>(wait));
  if (c.state == ConnState::kOpen && c.open_msgs != 0 && now - c.heard > config.tuning.give_up)
    return fail_connection(conn, now, wire::Err::RETRY_LIMIT);

  if (state == PathState::kFencing) {
    if (t.timeouts != 0xff) ++t.timeouts;
    queue_fence(conn, path);
    // Fenced for an answer to its first probe: if that was forged, the receiver has yet to open the epoch.
    if (!t.confirmed) queue_probe(conn, path, 1, true);
    return arm(conn, path, now,
               rto_ns(c, port_of(path), std::min<std::uint32_t>(t.timeouts / 4, config.tuning.backoff_max)));
  }
  if (t.probe_due) return arm(conn, path, now, rto_ns(c, port_of(path)));  // it has not left yet
  const bool waiting_to_return = state == PathState::kFailed && t.head == kNil;
  if (!t.probe_out) {
    ++count.timer_probes;
    return queue_probe(conn, path, 1, state == PathState::kFailed);
  }
  // A probe was not answered.
  if (waiting_to_return) {  // nobody expected it
    if (t.timeouts != 0xff) ++t.timeouts;
    return queue_probe(conn, path, 1, true);
  }
  if (!has_cap(c, wire::Cap::FENCE)) {
    // Nothing can be taken off a path: the connection lives as long as each of them.
    if (t.timeouts != 0xff) ++t.timeouts;
    if (t.timeouts >= config.tuning.retry_limit) return fail_connection(conn, now, wire::Err::RETRY_LIMIT);
    return queue_probe(conn, path, 1);
  }
  // It counts when something that was sent a good while later has been acked: then the network delivers and
  // this path does not. Each further one that counts needs something sent later still. Scouts leave together
  // with the repetition of a probe, so they speak of the probes before it.
  const std::uint32_t quarter = c.tx_port[port_of(path)].srtt / 4;
  const auto acked_after = [&](std::uint32_t ts) { return c.acked > time_of(now, ts) + Ps{quarter} * kNs; };
  if (!config.tuning.evidence || acked_after(t.judged_ts)) {
    if (t.unanswered < kMostProbes) t.unanswered = t.unanswered + 1;
    if (t.judged_ts == t.probe_ts || acked_after(t.probe_ts)) t.probe_out = 0;  // the next one is judged
    t.judged_ts = t.probe_ts;
    if (state != PathState::kSuspect && state != PathState::kFailed)
      set_state(conn, path, PathState::kSuspect);
    if (t.unanswered >= probes_to_fail(port_of(path)) && t.confirmed &&
        (usable_paths(c) > 1 || state == PathState::kFailed) && fence(conn, path, now)) {
      ++count.path_failed;
      return;
    }
  } else if (t.timeouts != 0xff) {
    ++t.timeouts;
  }
  if (!acked_after(t.probe_ts)) send_scout(conn, path);
  queue_probe(conn, path, 1);
}

/// Requests wait for answers or credits and nothing comes: only a probe can tell whether anybody is there.
/// The probes of a dead path are unsettled all the while and tell nothing.
void Endpoint::Impl::on_keep_timer(Ps now, std::uint32_t conn) {
  Conn& c = conns[conn];
  c.keep_timer = false;
  if (c.state != ConnState::kOpen || c.open_msgs == 0) return;
  if (now - c.heard > config.tuning.give_up) return fail_connection(conn, now, wire::Err::RETRY_LIMIT);
  if (now - c.heard >= config.tuning.give_up / 4) send_scout(conn, kNil);
  c.keep_timer = true;
  push_timer({now + config.tuning.give_up / 4, 0, conn, 0, TimerKind::kKeep, c.incarnation});
}

/// A probe on a path that is not waiting for one already, on another port if there is one: its answer tells
/// a dead path from a slow network.
void Endpoint::Impl::send_scout(std::uint32_t conn, std::uint32_t path) {
  Conn& c = conns[conn];
  const std::uint32_t n = num_paths();
  // At last, one that is not in use: where nothing else is alive, it is all there is.
  for (int pass = config.ports > 1 && path != kNil ? 0 : 1; pass < 3; ++pass) {
    for (std::uint32_t k = 0; k < n; ++k) {
      const std::uint32_t i = (c.scout + k) % n;
      TxPath& t = c.tx[i];
      const auto state = static_cast<PathState>(t.state);
      const bool alive = state == PathState::kGood || state == PathState::kProbation;
      if (i == path || !alive || t.probe_out || t.probe_due) continue;
      if (pass == 0 && port_of(i) == port_of(path)) continue;
      if (pass < 2 && t.unsettled() == 0 && index_of(i) >= c.tx_port[port_of(i)].active) continue;
      c.scout = (i + 1) % n;
      ++count.scouts;
      return queue_probe(conn, i, 1, true);
    }
  }
}

/// Counts a change of epoch. False: there were too many in a packet's life (W4), this one has to wait.
bool Endpoint::Impl::count_change(Conn& c, TxPath& t, Ps now) {
  if (now - c.life_start > config.tuning.packet_life) {
    c.life_start = now;
    for (TxPath& other : c.tx) other.changes = 0;
  }
  if (t.changes >= kMaxChanges) return false;
  ++t.changes;
  return true;
}

/// Asks the receiver to close the epoch of a path. Until it answers, nothing of the path is resent. False:
/// its epoch may not change now.
bool Endpoint::Impl::fence(std::uint32_t conn, std::uint32_t path, Ps now) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[path];
  if (!count_change(c, t, now)) return false;
  set_state(conn, path, PathState::kFencing);
  t.timeouts = 0;
  t.fences = 0;
  t.probe_out = 0;
  queue_fence(conn, path);
  arm(conn, path, now, rto_ns(c, port_of(path)));
  return true;
}

/// Over a good path, of another port first; repeated over all in turn, the closed one too (W1). One that
/// still waits at the port will do: it says what is true when it leaves, and a port that is down must not
/// collect them.
void Endpoint::Impl::queue_fence(std::uint32_t conn, std::uint32_t path) {
  Conn& c = conns[conn];
  const std::uint32_t n = num_paths();
  const std::uint32_t tries = c.tx[path].fences++;  // not the timeouts: those stop counting
  std::uint32_t carrier = path;
  if (tries % 2 == 0) {
    const std::uint32_t from = (path + config.paths + tries) % n;
    bool found = false;
    for (int pass = 0; pass < 2 && !found; ++pass) {
      for (std::uint32_t k = 0; k < n && !found; ++k) {
        const std::uint32_t i = (from + k) % n;
        if (i == path || static_cast<PathState>(c.tx[i].state) != PathState::kGood) continue;
        if (pass == 0 && config.ports > 1 && port_of(i) == port_of(path)) continue;
        carrier = i;
        found = true;
      }
    }
  } else {
    carrier = (path + tries / 2) % n;
  }
  if (c.fence_at.empty()) c.fence_at.resize(n);
  const std::uint32_t port = port_of(carrier);
  if ((c.fence_at[path] >> port & 1) != 0) return;
  c.fence_at[path] |= 1u << port;
  push_ctl(port, {conn, static_cast<std::uint8_t>(path), static_cast<std::uint8_t>(carrier), Ctl::kFence, 1});
}

void Endpoint::Impl::new_epoch(std::uint32_t conn, std::uint32_t path, Ps now) {
  Conn& c = conns[conn];
  TxPath& t = c.tx[path];
  set_state(conn, path, PathState::kFailed);
  t.epoch = (t.epoch + 1) & 0xff;
  t.next = t.base = 0;
  t.ce_seen = 0;
  t.proven = 0;
  t.confirmed = 0;  // W5: a probe opens the epoch, data waits for its ack
  t.slow_start = 1;
  t.last_probe = 0;
  t.probe_out = 0;
  t.unanswered = 0;
  t.lost_row = 0;
  t.timeouts = 0;
  t.growth = 0;
  if (t.move) {
    t.move = 0;
    t.sport = draw_sport();
  }
  if (c.state == ConnState::kFailing) {
    // Those fenced before it failed, perhaps with nothing unsettled, are waited for like the others.
    const bool waits = std::any_of(c.tx.begin(), c.tx.end(), [](const TxPath& other) {
      return static_cast<PathState>(other.state) == PathState::kFencing;
    });
    if (!waits) {
      c.flush_at = now;
      push_timer({now, 0, conn, 0, TimerKind::kFlush, c.incarnation});
    }
    return;
  }
  queue_probe(conn, path, 1, true);
}

bool Endpoint::change_sport(std::uint32_t conn, std::uint32_t path, Ps now) {
  Impl& e = *impl_;
  if (conn >= e.conns.size()) return false;
  Conn& c = e.conns[conn];
  if (c.state != ConnState::kOpen || !has_cap(c, wire::Cap::FENCE) || path >= e.num_paths()) return false;
  TxPath& t = c.tx[path];
  if (!t.confirmed) return false;
  if (static_cast<PathState>(t.state) != PathState::kFencing && !e.fence(conn, path, now)) return false;
  t.move = 1;
  return true;
}

/// Closes the epoch, or says again how it was closed (W2). Only the running epoch can be meant: what is
/// older was answered, what is newer was never opened.
void Endpoint::Impl::on_fence(std::uint32_t conn, std::uint32_t port, const Packet& p) {
  Conn& c = conns[conn];
  RxPath& r = c.rx[p.path];
  if (!has_cap(c, wire::Cap::FENCE)) return drop(Drop::OPCODE);
  // Who does not know the path's PSNs cannot close it.
  const std::int32_t ahead = psn_diff(p.psn, r.base());
  if (p.epoch != r.epoch) return drop(Drop::EPOCH);
  if (ahead < 0 || ahead > static_cast<std::int32_t>(wire::kHistBits)) return drop(Drop::FUTURE);
  r.closed = 1;
  r.hold = 0;  // open holes are lost now
  r.echo = p.timestamp;
  answer_fence(conn, port, p.path);
}

/// Back the way the question came: any path of that port will do. An answer that waits there answers all
/// questions that came before it leaves, or questions without end would fill the queue.
void Endpoint::Impl::answer_fence(std::uint32_t conn, std::uint32_t port, std::uint32_t path) {
  RxPath& r = conns[conn].rx[path];
  if ((r.answering >> port & 1) != 0) return;
  r.answering |= 1u << port;
  const std::uint32_t carrier = port * config.paths + index_of(path);
  push_ctl(port,
           {conn, static_cast<std::uint8_t>(path), static_cast<std::uint8_t>(carrier), Ctl::kAnswer, 1});
}

/// Nobody has answered for too long. Errors are told when nothing of the connection can arrive any more:
/// when all fences are answered, or a packet's life after the last one left (W8).
void Endpoint::Impl::fail_connection(std::uint32_t conn, Ps now, wire::Err why) {
  Conn& c = conns[conn];
  if (c.state != ConnState::kOpen) return;
  c.state = ConnState::kFailing;
  c.why = why;
  ++count.conn_failed;
  for (std::uint32_t i = 0; i < c.tx.size(); ++i) {
    TxPath& t = c.tx[i];
    if (t.unsettled() == 0 || !t.confirmed) continue;
    if (!has_cap(c, wire::Cap::FENCE)) continue;
    if (static_cast<PathState>(t.state) == PathState::kFencing) continue;
    set_state(conn, i, PathState::kFencing);
    t.timeouts = 0;
    t.fences = 0;
    t.probe_out = 0;
    queue_fence(conn, i);
    arm(conn, i, now, rto_ns(c, port_of(i)));
  }
  c.flush_at = now + config.tuning.packet_life;
  push_timer({c.flush_at, 0, conn, 0, TimerKind::kFlush, c.incarnation});
}

}  // namespace weft::ref
