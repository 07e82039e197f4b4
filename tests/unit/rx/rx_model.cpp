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
    return bad(Drop::MSG, Err::REMOTE_OP);
  if (len == 0) return {};
  const Region& r = regions_[f.wdh.rkey % kNumRegions];
  if (!r.valid || r.key != f.wdh.rkey) return bad(Drop::KEY, Err::REMOTE_KEY);
  const std::uint64_t end = f.wdh.va + len;
  if (f.wdh.va < r.base || end < f.wdh.va || end > r.limit) return bad(Drop::BOUNDS, Err::REMOTE_BOUNDS);
  if (!r.remote_write) return bad(Drop::RIGHTS, Err::REMOTE_RIGHTS);
  return {};
}

Verdict Model::judge(wire::Bytes frame, bool mac_error, bool overflow, std::uint64_t cycle) {
  Verdict v;
  const auto drop = [this, &v](Drop reason) -> Verdict& {
    ++drops_[static_cast<std::size_t>(reason)];
    v.drop = reason;
    return v;
  };

  const wire::ParseResult r = wire::parse(frame, port_, mac_error);
  const wire::Parsed& f = r.frame;
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
  p.psn = f.bth.psn;
  p.timestamp = f.wth.timestamp;
  p.ce = f.ipv4.ecn == wire::kEcnCe;
  p.probe = probe;
  v.kind = probe ? Kind::Probe : Kind::Data;
  if (!probe) {
    const auto len = static_cast<std::uint16_t>(f.payload.size());
    p.commit = {static_cast<std::uint16_t>(conn),
                f.wdh.stream,
                f.wdh.msg_no,
                f.wdh.msg_len,
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
  settle(cycle);
  return v;
}

void Model::response(bool error, std::uint64_t cycle) {
  const auto it =
      std::find_if(pending_.begin(), pending_.end(), [](const Pending& p) { return p.responses != 0; });
  if (it == pending_.end()) fail_check("a write response that no packet waits for");
  it->failed |= error;
  --it->responses;
  settle(cycle);
}

// Packets whose turn it is and whose responses are all there become state that acks may show.
void Model::settle(std::uint64_t cycle) {
  while (!pending_.empty() && pending_.front().responses == 0) {
    const Pending p = pending_.front();
    pending_.pop_front();
    bytes_waiting_ -= p.commit.len;
    Path& path = paths_[p.conn][p.path];
    if (!conns_[p.conn].valid || conns_[p.conn].incarnation != p.incarnation) {
      late_.push_back(conns_[p.conn].valid ? Drop::INCARNATION : Drop::CONN);
      continue;
    }
    if (p.failed) {
      late_.push_back(Drop::MEM);
      fail(p.conn, static_cast<std::uint8_t>(Err::REMOTE_MEM), cycle);
      path.ack_wanted = true;
      continue;
    }
    ++accepted_;
    State s = path.states.back();
    const unsigned gap = (p.psn - s.base) & kPsnMask;
    s.hist = (s.hist << (gap + 1)).set(0);
    s.base = (p.psn + 1) & kPsnMask;
    if (!p.probe) {
      s.rx_bytes += p.commit.len + wire::kWinOverhead;
      if (p.ce) s.ce_bytes += p.commit.len + wire::kWinOverhead;
      ce_packets_ += p.ce;
      commits_.push_back(p.commit);
    }
    s.echo = p.timestamp;
    path.states.push_back(s);
  }
}

void Model::late_drop(Drop reason) {
  if (late_.empty() || late_.front() != reason) fail_check("unexpected drop behind a write:", int(reason));
  late_.pop_front();
  ++drops_[static_cast<std::size_t>(reason)];
}

void Model::commit(const Commit& got) {
  if (commits_.empty()) fail_check("committed before its write was answered, or twice: connection", got.conn);
  if (!(commits_.front() == got))
    fail_check("committed packet differs: connection", got.conn, commits_.front().conn);
  commits_.pop_front();
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
  if (got.incarnation != conns_[got.conn].incarnation) fail_check("ack of another life: connection", got.conn);
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
  if (!commits_.empty()) fail_check("committed packets not told:", commits_.size());
  if (!acks_.empty()) fail_check("received acks not handed on:", acks_.size());
  if (!late_.empty()) fail_check("packets that should have been dropped behind their write:", late_.size());
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
