// SPDX-License-Identifier: Apache-2.0
#include "rx_model.h"

#include <algorithm>

namespace rx {

using wire::Drop;
using wire::Err;

namespace {

// Cycles after a failing frame's verdict within which acks may still show the old status: they were
// read before and wait, or are being built.
constexpr std::uint64_t kStatusGrace = 16;

// Cycles behind a CfgConn in which a packet may still be committed for the life before: the last
// comparison was made.
constexpr std::uint64_t kLifeGrace = 32;

// Cycles behind a CfgConn in which its connection may be out of service (some may wait for each other).
constexpr std::uint64_t kStartGrace = 400;

template <class... T>
[[noreturn]] void fail_check(const char* what, T... values) {
  std::string text = what;
  ((text += ' ' + std::to_string(values)), ...);
  throw CheckFailed(text);
}

unsigned bursts_of(std::uint64_t va, std::size_t len) {
  if (len == 0) return 0;
  return (va + len - 1) / 4096 - va / 4096 + 1;
}

}  // namespace

std::vector<std::uint8_t> blank_memory(std::size_t bytes) {
  std::vector<std::uint8_t> m(bytes);
  for (std::size_t i = 0; i < bytes; ++i) m[i] = static_cast<std::uint8_t>(i * 167 + (i >> 8) * 59 + 13);
  return m;
}

Model::Model(std::uint64_t mac, std::uint32_t ip, std::uint64_t memory_base, std::size_t memory_bytes)
    : memory_base_(memory_base), memory_(blank_memory(memory_bytes)) {
  port_.mac = mac;
  port_.ip = ip;
  port_.conns = std::span<const wire::RxConn>(rx_conns_);
  port_.port = kPort;
  port_.paths_per_port = kPathsPerPort;
}

void Model::configure(unsigned conn, const Conn& c) {
  conns_[conn] = c;
  judged_[conn] = life_[conn];
  rx_conns_[conn] = {c.valid, c.incarnation};
  status_[conn] = {};
  if (!c.valid) return;
  for (unsigned p = 0; p < kPathsPerPort; ++p) {
    claims_[conn][p] = {0, c.rx_psn};
    paths_[conn][p] = {};
    paths_[conn][p].states.push_back({c.rx_psn, Hist().set(), 0, 0, 0});
  }
}

void Model::fail(unsigned conn, std::uint8_t code, std::uint64_t cycle) {
  if (status_[conn].code == 0) status_[conn] = {code, cycle};
}

// What is wrong with what a data packet asks for; status: the error its connection fails with.
std::optional<Drop> Model::content(const wire::Parsed& f, unsigned conn, std::uint8_t& status) const {
  const auto bad = [&status](Drop drop, Err err) {
    status = static_cast<std::uint8_t>(err);
    return drop;
  };
  const std::size_t len = f.payload.size();
  if (status_[conn].code != 0 || f.wdh.stream != 0) return bad(Drop::STREAM, Err::REMOTE_OP);
  if (len > f.wdh.msg_len || (len == 0 && f.wdh.msg_len != 0) || len > mtu_)
    return bad(Drop::MSG, Err::BAD_LENGTH);
  const bool no_sem =
      f.bth.opcode == static_cast<std::uint8_t>(wire::Opcode::WRITE_SIGNAL) && f.wdh.sem >= kNumSems;
  if (len == 0) {
    if (no_sem) return bad(Drop::BOUNDS, Err::REMOTE_BOUNDS);
    return {};
  }
  const Region& r = regions_[f.wdh.rkey % kNumRegions];
  if (!r.valid || r.key != f.wdh.rkey) return bad(Drop::KEY, Err::REMOTE_KEY);
  const std::uint64_t end = f.wdh.va + len;
  if (f.wdh.va < r.base || end < f.wdh.va || end > r.limit) return bad(Drop::BOUNDS, Err::REMOTE_BOUNDS);
  if (!r.remote_write) return bad(Drop::RIGHTS, Err::REMOTE_RIGHTS);
  if (no_sem) return bad(Drop::BOUNDS, Err::REMOTE_BOUNDS);
  return {};
}

Verdict Model::judge(wire::Bytes frame, bool mac_error, bool overflow, bool out_of_service,
                     std::uint64_t cycle) {
  Verdict v;
  const auto drop = [this, &v](Drop reason) -> Verdict& {
    ++drops_[static_cast<std::size_t>(reason)];
    v.drop = reason;
    return v;
  };

  const wire::ParseResult r = wire::parse(frame, port_, mac_error);
  const wire::Parsed& f = r.frame;
  const bool starting =
      out_of_service && f.bth.dqpn < kNumConns && configured_lately(f.bth.dqpn, cycle, kStartGrace);
  if (starting && (!r.drop || r.drop == Drop::INCARNATION || r.drop == Drop::PATH || r.drop == Drop::OPCODE))
    return drop(Drop::CONN);
  bool unserved = false;  // refused for its operation, but its PSN is claimed
  if (r.drop) {
    unserved = r.drop == Drop::OPCODE && wire::layout_of(f.bth.opcode) == wire::Layout::DATA &&
               f.bth.dqpn < kNumConns && conns_[f.bth.dqpn].valid &&
               conns_[f.bth.dqpn].incarnation == f.wth.incarnation && f.wth.path / kPathsPerPort == kPort;
    if (!unserved) return drop(*r.drop);
  } else if (overflow) {
    return drop(Drop::OVERFLOW);
  }

  const unsigned conn = f.bth.dqpn;
  const unsigned path = f.wth.path % kPathsPerPort;
  if (!unserved && f.layout == wire::Layout::ACK) {
    v.kind = Kind::Ack;
    ++accepted_;
    Ack a{static_cast<std::uint16_t>(conn),
          f.wth.incarnation,
          static_cast<std::uint8_t>(path),
          f.wth.epoch,
          f.wah.base,
          f.wah.hist_words,
          {},
          f.wah.ce_bytes,
          f.wah.rx_bytes,
          f.wah.echo,
          f.wah.share,
          f.wah.credits,
          f.wah.status};
    for (unsigned i = 0; i < wire::kHistBits; ++i) a.hist[i] = f.hist[i / 32] >> (31 - i % 32) & 1;
    acks_.push_back(a);
    return v;
  }

  const bool probe = !unserved && f.layout == wire::Layout::PROBE;
  Claim& claim = claims_[conn][path];
  const std::uint32_t ahead = (f.bth.psn - claim.next) & kPsnMask;
  if (f.wth.epoch != claim.epoch) return drop(unserved ? Drop::OPCODE : Drop::EPOCH);
  if (ahead >= 1U << 23) {
    if (probe) paths_[conn][path].ack_wanted = true;
    return drop(unserved ? Drop::OPCODE : Drop::STALE);
  }
  if (ahead >= wire::kHistBits) return drop(unserved ? Drop::OPCODE : Drop::FUTURE);

  claim.next = (f.bth.psn + 1) & kPsnMask;
  std::uint8_t status = static_cast<std::uint8_t>(Err::REMOTE_OP);
  std::optional<Drop> bad;
  if (unserved)
    bad = Drop::OPCODE;
  else if (!probe)
    bad = content(f, conn, status);
  if (bad) {
    fail(conn, status, cycle);
    paths_[conn][path].ack_wanted = true;
    return drop(*bad);
  }

  Pending p;
  p.conn = conn;
  p.path = path;
  p.incarnation = f.wth.incarnation;
  p.life = judged_[conn];
  p.psn = f.bth.psn;
  p.timestamp = f.wth.timestamp;
  p.ce = f.ipv4.ecn == wire::kEcnCe;
  p.probe = probe;
  v.kind = probe ? Kind::Probe : Kind::Data;
  if (!probe) {
    const auto len = static_cast<std::uint16_t>(f.payload.size());
    p.commit = {static_cast<std::uint16_t>(conn),
                f.wth.incarnation,
                false,
                f.wdh.stream,
                f.wdh.msg_no,
                f.wdh.msg_len,
                f.wdh.va & 0x1ffffffff,
                len,
                f.bth.opcode == static_cast<std::uint8_t>(wire::Opcode::WRITE_SIGNAL),
                f.wdh.sem,
                f.wdh.value};
    p.responses = bursts_of(f.wdh.va, len);
    if (len != 0) {
      if (f.wdh.va < memory_base_ || f.wdh.va + len > memory_base_ + memory_.size()) {
        fail_check("test error: region outside the modelled memory", f.wdh.va);
      }
      std::copy(f.payload.begin(), f.payload.end(),
                memory_.begin() + static_cast<std::ptrdiff_t>(f.wdh.va - memory_base_));
    }
    bytes_waiting_ += len;
    payload_bytes_ += len;
  }
  pending_.push_back(p);
  return v;
}

void Model::response(bool error) {
  const auto it =
      std::find_if(pending_.begin(), pending_.end(), [](const Pending& p) { return p.responses != 0; });
  if (it == pending_.end()) fail_check("a write response that no packet waits for");
  it->commit.mem_error |= error;
  --it->responses;
}

CoreVerdict Model::commit(const Commit& got) {
  // The next one whose life goes on; those before it are dropped without the core.
  for (Pending& p : pending_) {
    if (p.probe || p.told) continue;
    if (p.life != life_[p.conn] && !(p.commit == got)) continue;
    if (p.responses != 0) fail_check("committed before its write was answered: connection", got.conn);
    if (!(p.commit == got)) fail_check("committed packet differs: connection", got.conn, p.conn);
    if (p.life != life_[p.conn]) fail_check("told the core of a life that has ended: connection", got.conn);
    p.told = true;
    if (got.mem_error) return {Drop::MEM};
    return {};
  }
  fail_check("committed packet that did not come, or twice: connection", got.conn);
}

void Model::answered(CoreVerdict verdict) {
  for (Pending& p : pending_) {
    if (!p.told || p.verdict) continue;
    p.verdict = verdict;
    return;
  }
  fail_check("test error: a verdict nobody asked for");
}

Model::Pending& Model::oldest() {
  if (pending_.empty()) fail_check("committed or dropped a packet that did not come");
  if (pending_.front().responses != 0) fail_check("committed or dropped before its write was answered");
  return pending_.front();
}

void Model::committed(bool probe, std::uint64_t cycle) {
  const Pending p = oldest();
  pending_.pop_front();
  bytes_waiting_ -= p.commit.len;
  if (probe != p.probe) fail_check("committed out of order: connection", p.conn);
  if (!probe && (!p.verdict || p.verdict->refused()))
    fail_check("committed without the core's consent: connection", p.conn);
  ++accepted_;
  if (!probe && p.ce) ++ce_packets_;
  if (p.life != life_[p.conn]) {
    if (!configured_lately(p.conn, cycle, kLifeGrace))
      fail_check("committed for a life that has ended: connection", p.conn);
    return;
  }
  Path& path = paths_[p.conn][p.path];
  State s = path.states.back();
  const unsigned gap = (p.psn - s.base) & kPsnMask;
  s.hist = (s.hist << (gap + 1)).set(0);
  s.base = (p.psn + 1) & kPsnMask;
  if (!p.probe) {
    s.rx_bytes += p.commit.len + wire::kWinOverhead;
    if (p.ce) s.ce_bytes += p.commit.len + wire::kWinOverhead;
  }
  s.echo = p.timestamp;
  path.states.push_back(s);
}

void Model::late_drop(Drop reason, std::uint64_t cycle) {
  const Pending p = oldest();
  pending_.pop_front();
  bytes_waiting_ -= p.commit.len;
  ++drops_[static_cast<std::size_t>(reason)];
  not_committed_ += p.commit.len;
  if (p.life != life_[p.conn]) {
    const bool starting = configured_lately(p.conn, cycle, kStartGrace);
    const bool gone = !conns_[p.conn].valid || starting;
    if (reason == Drop::CONN && gone) return;
    if (reason == Drop::INCARNATION && (conns_[p.conn].valid || starting)) return;
    // refused in the cycles in which its life ended
    if (!configured_lately(p.conn, cycle, kLifeGrace)) fail_check("packet of a former life:", int(reason));
  }
  if (!p.verdict || !p.verdict->refused() || p.verdict->reason != reason)
    fail_check("unexpected drop behind a write:", int(reason));
  if (p.life == life_[p.conn]) paths_[p.conn][p.path].ack_wanted = true;
}

void Model::ack_received(const Ack& got) {
  if (acks_.empty()) fail_check("an ack handed on that did not come: connection", got.conn);
  if (!(acks_.front() == got)) fail_check("ack handed on differs: connection, path", got.conn, got.path);
  acks_.pop_front();
}

void Model::ack_built(const Ack& got, std::uint64_t offered_cycle) {
  if (got.conn >= kNumConns || got.path >= kPathsPerPort) fail_check("ack for nobody: connection", got.conn);
  Path& path = paths_[got.conn][got.path];
  std::size_t k = path.acked;
  while (k < path.states.size() && path.states[k].base != got.base) ++k;
  if (k == path.states.size()) {
    fail_check("ack covers what is not committed, or goes back: connection, path, base", got.conn, got.path,
               got.base);
  }
  const State& s = path.states[k];
  if (got.incarnation != conns_[got.conn].incarnation)
    fail_check("ack of another life: connection", got.conn);
  if (s.hist != got.hist)
    fail_check("ack history wrong: connection, path, base", got.conn, got.path, got.base);
  if (s.ce_bytes != got.ce_bytes) fail_check("ack CE bytes wrong:", got.ce_bytes, s.ce_bytes);
  if (s.rx_bytes != got.rx_bytes) fail_check("ack bytes wrong:", got.rx_bytes, s.rx_bytes);
  if (s.echo != got.echo) fail_check("ack echo wrong:", got.echo, s.echo);
  if (got.epoch != claims_[got.conn][got.path].epoch) fail_check("ack epoch wrong:", got.epoch);
  if (got.share != conns_[got.conn].share || got.credits != 0) fail_check("ack share wrong:", got.share);
  unsigned words = 0;
  for (unsigned i = 0; i < wire::kHistBits; ++i) {
    if (!s.hist[i]) words = i / 32 + 1;
  }
  if (words != got.hist_words) fail_check("ack history words wrong:", got.hist_words, words);
  const Status& st = status_[got.conn];
  const bool before = st.code == 0 || offered_cycle < st.since + kStatusGrace;
  if (got.status != st.code && !(before && got.status == 0))
    fail_check("ack status wrong:", got.status, st.code);
  path.acked = k;
  if (got.status == st.code) path.ack_wanted = false;
  ++acks_checked_;
}

void Model::at_rest(const std::vector<std::uint8_t>& memory) const {
  if (!pending_.empty()) fail_check("accepted packets never answered:", pending_.size());
  if (!acks_.empty()) fail_check("received acks not handed on:", acks_.size());
  for (unsigned c = 0; c < kNumConns; ++c) {
    for (unsigned p = 0; p < kPathsPerPort; ++p) {
      const Path& path = paths_[c][p];
      if (!conns_[c].valid) continue;
      if (path.acked + 1 != path.states.size()) fail_check("never acked: connection, path", c, p);
      if (path.ack_wanted) fail_check("an ack that was called for did not come: connection, path", c, p);
    }
  }
  const auto [got, want] = std::mismatch(memory.begin(), memory.end(), memory_.begin());
  if (got != memory.end()) {
    fail_check("memory differs at offset, got, want:", got - memory.begin(), int(*got), int(*want));
  }
}

}  // namespace rx
