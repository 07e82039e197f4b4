// SPDX-License-Identifier: Apache-2.0
#include "tb/check/watch.h"

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <span>

namespace weft::tb {
namespace {

// What nodes are held to. `ended` wants failures of two phases (nothing leaves behind the completion),
// `refused` a watch that knows which frames the node dropped (the core has the last word before the ack).
constexpr WatchRules kRules{.ended = false, .refused = false};

// Places in the first beat of a frame, docs/wire.md.
constexpr uint32_t kDip = 30, kOpcode = 42, kDqpn = 47, kIncarnation = 56;

uint32_t be(const uint8_t* p, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; ++i) v = v << 8 | p[i];
  return v;
}

bool is_write(wire::Opcode op) {
  return op == wire::Opcode::WRITE || op == wire::Opcode::WRITE_SIGNAL;
}

// How far `psn` is ahead of `base`, negative if behind.
int32_t ahead(uint32_t psn, uint32_t base) {
  return static_cast<int32_t>((psn - base) << 8) >> 8;
}

}  // namespace

void Cover::add(uint64_t first, uint64_t bytes) {
  Piece whole{first, first + bytes};
  auto at = std::lower_bound(pieces_.begin(), pieces_.end(), whole,
                             [](const Piece& a, const Piece& b) { return a.last < b.first; });
  auto end = at;
  for (; end != pieces_.end() && end->first <= whole.last; ++end) {
    whole.first = std::min(whole.first, end->first);
    whole.last = std::max(whole.last, end->last);
  }
  if (at == end) {
    pieces_.insert(at, whole);
  } else {
    *at = whole;
    pieces_.erase(at + 1, end);
  }
}

bool Cover::whole(uint64_t bytes) const {
  return pieces_.size() == 1 && pieces_[0].last - pieces_[0].first == bytes;
}

Watch::Watch(uint32_t ports, uint32_t conns, uint32_t paths_per_port, uint32_t sems)
    : ports_(ports),
      conns_(conns),
      paths_per_port_(paths_per_port),
      sems_(sems),
      rules_(kRules),
      rows_(ports * conns),
      ips_(ports),
      state_(conns),
      out_(ports),
      in_(ports),
      beats_(ports) {
  for (uint32_t c = 0; c < conns; ++c) {
    state_[c].life.conn = c;
    state_[c].in.resize(ports * paths_per_port);
    state_[c].out.resize(ports * paths_per_port);
  }
}

void Watch::reset() {
  const WatchRules rules = rules_;
  const std::vector<uint32_t> ips = ips_;
  std::vector<Life> ended = lives();
  for (Life& life : ended) life.current = false;
  *this = Watch(ports_, conns_, paths_per_port_, sems_);
  rules_ = rules;
  ips_ = ips;
  ended_ = std::move(ended);
}

std::vector<Watch::Life> Watch::lives() const {
  std::vector<Life> all = ended_;
  for (const Conn& conn : state_) {
    if (conn.number == 0) continue;
    all.push_back(conn.life);
    all.back().sent_open = static_cast<uint32_t>(conn.tags.size());
  }
  return all;
}

bool Watch::bad(const char* format, ...) {
  if (fault_.empty()) {
    char text[320];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fault_ = text;
    std::fprintf(stderr, "check: %s\n", text);
  }
  return false;
}

Watch::Path& Watch::path(std::vector<std::unique_ptr<Path>>& paths, uint8_t path) {
  if (!paths[path]) paths[path] = std::make_unique<Path>();
  return *paths[path];
}

int32_t Watch::conn_of(uint32_t port, uint32_t dip, uint32_t dqpn) {
  for (uint32_t c = 0; c < conns_; ++c) {
    const Row& r = row(port, c);
    if (r.valid && r.rip == dip && r.rconn == dqpn) return static_cast<int32_t>(c);
  }
  return -1;
}

// ---- configuration --------------------------------------------------------------------------------------
void Watch::configure_port(uint32_t port, uint32_t ip) {
  if (port < ports_) ips_[port] = ip;
}

void Watch::configure_conn(uint32_t port, uint32_t conn, bool valid, uint32_t rip, uint32_t rconn,
                           uint16_t incarnation, uint32_t cycle) {
  if (port >= ports_ || conn >= conns_) return;
  Conn& c = state_[conn];
  if (c.number != 0) {
    ended_.push_back(c.life);
    ended_.back().current = false;
    ended_.back().sent_open = static_cast<uint32_t>(c.tags.size());
    // One life is written in several rows, and only that of its end tells anything.
    const Life& l = ended_.back();
    if (l.sent_ok + l.sent_failed + l.sent_open + l.received == 0) ended_.pop_back();
  }
  row(port, conn) = {valid, rip, rconn, incarnation, beats_[port]};
  c.life = Life{conn, rip, rconn, incarnation};
  ++c.number;
  c.ended = false;
  c.posted = c.next = c.told = 0;
  for (auto& of : c.messages) {
    for (Message& m : of) m.open = false;
  }
  for (Message& m : c.acked) m.open = false;
  for (uint32_t i = 0; i < paths_per_port_; ++i) {
    c.in[port * paths_per_port_ + i].reset();
    c.out[port * paths_per_port_ + i].reset();
  }
  for (Signal& s : signals_) {
    if (s.conn == conn && !s.late) s.late = true, s.until = cycle + kDecided;
  }
}

// ---- the engine's side ----------------------------------------------------------------------------------
bool Watch::request(uint32_t conn, uint8_t tag, uint64_t raddr, uint32_t bytes) {
  Sending& s = sending_[tag];
  if (conn >= conns_) return true;
  if (s.open) return bad("once: tag %u is asked for while it is under way", tag);
  s.open = true;
  s.seen = false;
  s.msg_no = state_[conn].posted++;
  s.conn = conn;
  s.bytes = bytes;
  s.raddr = raddr;
  s.life = state_[conn].number;
  s.delivered.clear();
  state_[conn].tags.push_back(tag);
  return true;
}

bool Watch::completion(uint8_t tag, uint8_t status) {
  Sending& s = sending_[tag];
  if (!s.open) return bad("once: tag %u completes, and is not under way", tag);
  Conn& c = state_[s.conn];
  const bool oldest = c.tags.front() == tag;
  s.open = false;
  auto behind = c.tags.erase(std::find(c.tags.begin(), c.tags.end(), tag));
  if (status != 0) {
    if (s.life != c.number) return true;
    ++c.life.sent_failed;
    if (status != static_cast<uint8_t>(wire::Err::FLUSHED)) {
      c.ended = true;
    } else if (!s.seen) {
      // It came about the time of the CfgConn, and was the last of the life before: it has no number in this
      // one.
      --c.posted;
      for (; behind != c.tags.end(); ++behind) --sending_[*behind].msg_no;
    }
    return true;
  }
  if (!oldest) return bad("told: tag %u of connection %u completes before an older message", tag, s.conn);
  ++c.life.sent_ok;
  if (!s.delivered.whole(s.bytes)) {
    return bad(
        "told: message %u of connection %u (incarnation %u) completes OK, but no acks of this life tell all "
        "of its %u bytes delivered",
        s.msg_no, s.conn, c.life.incarnation, s.bytes);
  }
  return true;
}

bool Watch::signal(uint16_t sem, uint32_t value, uint32_t cycle) {
  std::erase_if(signals_,
                [&](const Signal& s) { return s.late && static_cast<int32_t>(cycle - s.until) > 0; });
  auto it = std::find_if(signals_.begin(), signals_.end(),
                         [&](const Signal& s) { return s.sem == sem && s.value == value; });
  if (it == signals_.end()) {
    return bad(
        "once: semaphore %u is raised by %u, but packets cover no message of a present life that says so",
        sem, value);
  }
  signals_.erase(it);
  return true;
}

bool Watch::received() {
  if (++received_ > covered_) {
    return bad("once: %llu messages received, packets cover %llu", static_cast<unsigned long long>(received_),
               static_cast<unsigned long long>(covered_));
  }
  return true;
}

bool Watch::at_rest() {
  if (rules_.refused && acked_ > received_) {
    return bad("refused: acks told %llu messages delivered whole, %llu are received",
               static_cast<unsigned long long>(acked_), static_cast<unsigned long long>(received_));
  }
  return true;
}

// ---- frames ---------------------------------------------------------------------------------------------
bool Watch::begins(uint32_t port, const uint8_t* beat, bool* wrong) {
  *wrong = false;
  if (!is_write(static_cast<wire::Opcode>(beat[kOpcode]))) return true;
  const uint32_t dip = be(beat + kDip, 4), dqpn = be(beat + kDqpn, 3);
  const auto incarnation = static_cast<uint16_t>(be(beat + kIncarnation, 2));
  const int32_t c = conn_of(port, dip, dqpn);
  const bool present = c >= 0 && row(port, static_cast<uint32_t>(c)).incarnation == incarnation;
  *wrong = !present || state_[static_cast<uint32_t>(c)].ended;
  if (!rules_.ended || !*wrong) return true;
  if (present) {
    return bad("ended: data of connection %d leaves port %u behind its error completion", c, port);
  }
  // Beats built before the write may still be inside.
  for (uint32_t k = 0; k < conns_; ++k) {
    if (beats_[port] - row(port, k).beats < kInside) return true;
  }
  return bad("ended: data of incarnation %u to connection %u of the peer leaves port %u: no such life",
             incarnation, dqpn, port);
}

bool Watch::beat_out(uint32_t port, const uint8_t* data, uint64_t keep, bool last) {
  Assembly& a = out_[port];
  bool good = true;
  if (a.count == 0) good = begins(port, data, &a.wrong);
  ++beats_[port];
  const auto bytes = static_cast<uint32_t>(std::popcount(keep));
  if (a.count + bytes <= a.bytes.size()) std::memcpy(a.bytes.data() + a.count, data, bytes);
  a.count += bytes;
  if (!last) return good;
  const wire::Bytes frame(a.bytes.data(), std::min<size_t>(a.count, a.bytes.size()));
  a.count = 0;
  const wire::ParseResult r = wire::parse(frame);
  if (!r) return bad("a frame that no receiver takes leaves port %u: %s", port, wire::name(*r.drop));
  if (r.frame.layout == wire::Layout::DATA) good = data_out(port, r.frame) && good;
  if (r.frame.layout == wire::Layout::ACK) good = ack_out(port, r.frame) && good;
  return good;
}

bool Watch::beat_in(uint32_t port, const uint8_t* data, uint64_t keep, bool last, bool mac_error) {
  Assembly& a = in_[port];
  const auto bytes = static_cast<uint32_t>(std::popcount(keep));
  if (a.count + bytes <= a.bytes.size()) std::memcpy(a.bytes.data() + a.count, data, bytes);
  a.count = std::min<uint32_t>(a.count + bytes, 1u << 20);
  if (!last) return true;
  const bool fits = a.count <= a.bytes.size();
  const wire::Bytes frame(a.bytes.data(), std::min<size_t>(a.count, a.bytes.size()));
  a.count = 0;
  if (!fits) return true;
  const wire::ParseResult r = wire::parse(frame, {}, mac_error);
  if (!r || r.frame.bth.dqpn >= conns_) return true;
  const Row& known = row(port, r.frame.bth.dqpn);
  if (!known.valid || known.incarnation != r.frame.wth.incarnation) return true;
  if (r.frame.wth.path / paths_per_port_ != port) return true;
  if (r.frame.layout == wire::Layout::DATA) data_in(port, r.frame);
  if (r.frame.layout == wire::Layout::ACK) ack_in(port, r.frame);
  return true;
}

bool Watch::data_out(uint32_t port, const wire::Parsed& f) {
  const int32_t found = conn_of(port, f.ipv4.dst, f.bth.dqpn);
  if (found < 0 || f.wth.path >= ports_ * paths_per_port_) return true;
  const auto conn = static_cast<uint32_t>(found);
  if (row(port, conn).incarnation != f.wth.incarnation) return true;
  Conn& c = state_[conn];
  for (uint8_t tag : c.tags) {
    if (sending_[tag].msg_no == f.wdh.msg_no) sending_[tag].seen = true;
  }
  bool good = true;
  for (uint32_t other = 0; rules_.ended && f.wdh.retx && other < c.out.size(); ++other) {
    for (const Packet& old :
         c.out[other] ? std::span<const Packet>(c.out[other]->packets) : std::span<const Packet>()) {
      if (!old.there || old.msg_no != f.wdh.msg_no || old.va != f.wdh.va) continue;
      good =
          bad("ended: message %u of connection %u: PSN %u of path %u is sent again on path %u, and nobody "
              "told it lost",
              f.wdh.msg_no, conn, old.psn, other, f.wth.path);
    }
  }
  Path& p = path(c.out, f.wth.path);
  if (!p.any || p.epoch != f.wth.epoch) {
    p.any = true;
    p.epoch = f.wth.epoch;
    p.base = f.bth.psn;
  }
  p.packets[f.bth.psn % kRing] = {
      true,          f.wth.epoch, false, f.wdh.msg_no, 0, f.bth.psn, static_cast<uint32_t>(f.payload.size()),
      f.wdh.msg_len, f.wdh.va};
  return good;
}

void Watch::data_in(uint32_t port, const wire::Parsed& f) {
  if (!is_write(static_cast<wire::Opcode>(f.bth.opcode))) return;
  Conn& c = state_[f.bth.dqpn];
  Path& p = path(c.in, f.wth.path);
  if (!p.any || p.epoch != f.wth.epoch) {
    p.any = true;
    p.epoch = f.wth.epoch;
    p.base = (f.bth.psn - wire::kHistBits) & 0xff'ffff;
  }
  const auto bytes = static_cast<uint32_t>(f.payload.size());
  const bool with_signal = static_cast<wire::Opcode>(f.bth.opcode) == wire::Opcode::WRITE_SIGNAL;
  Packet& packet = p.packets[f.bth.psn % kRing];
  // Of two with one PSN the node takes the first.
  if (!packet.there || packet.psn != f.bth.psn || packet.epoch != f.wth.epoch) {
    packet = {true,      f.wth.epoch, with_signal,   f.wdh.msg_no, f.wdh.sem,
              f.bth.psn, bytes,       f.wdh.msg_len, f.wdh.va};
  }
  (void)port;
  if (static_cast<uint16_t>(f.wdh.msg_no - c.next) >= kWindow) return;
  auto& both = c.messages[f.wdh.msg_no % kWindow];
  Message& m = both[0].open && both[0].bytes != f.wdh.msg_len ? both[1] : both[0];
  if (!m.open || m.bytes != f.wdh.msg_len) {
    m.open = true;
    m.bytes = f.wdh.msg_len;
    m.cover.clear();
  }
  m.signal = with_signal;
  m.sem = f.wdh.sem;
  m.value = f.wdh.value;
  m.cover.add(f.wdh.va, bytes);
  advance(c);
}

void Watch::advance(Conn& c) {
  for (;;) {
    auto& both = c.messages[c.next % kWindow];
    auto whole = std::find_if(both.begin(), both.end(),
                              [](const Message& m) { return m.open && m.cover.whole(m.bytes); });
    if (whole == both.end()) return;
    ++covered_;
    ++c.life.received;
    if (whole->signal) signals_.push_back({c.life.conn, whole->value, 0, whole->sem, false});
    for (Message& m : both) m.open = false;
    ++c.next;
  }
}

// Calls each(packet) for every packet that this ack is the first to tell delivered.
template <class Each>
bool Watch::settle(Path& p, const wire::Parsed& ack, const Each& each) {
  if (!p.any || ack.wth.epoch != p.epoch || ahead(ack.wah.base, p.base) <= 0) return true;
  bool good = true;
  const uint32_t news =
      std::min<uint32_t>(static_cast<uint32_t>(ahead(ack.wah.base, p.base)), wire::kHistBits);
  for (uint32_t i = news; i-- > 0;) {
    const uint32_t psn = (ack.wah.base - 1 - i) & 0xff'ffff;
    Packet& packet = p.packets[psn % kRing];
    if (!packet.there || packet.psn != psn || packet.epoch != p.epoch) continue;
    if ((ack.hist[i / 32] >> (31 - i % 32) & 1) != 0) good = each(packet) && good;
    packet.there = false;
  }
  p.base = ack.wah.base;
  return good;
}

void Watch::ack_in(uint32_t port, const wire::Parsed& f) {
  (void)port;
  Conn& c = state_[f.bth.dqpn];
  if (!c.out[f.wth.path]) return;
  settle(*c.out[f.wth.path], f, [&](const Packet& packet) {
    for (uint8_t tag : c.tags) {
      Sending& s = sending_[tag];
      if (s.msg_no == packet.msg_no) s.delivered.add(packet.va, packet.bytes);
    }
    return true;
  });
}

bool Watch::ack_out(uint32_t port, const wire::Parsed& f) {
  const int32_t found = conn_of(port, f.ipv4.dst, f.bth.dqpn);
  if (found < 0 || row(port, static_cast<uint32_t>(found)).incarnation != f.wth.incarnation) return true;
  Conn& c = state_[static_cast<uint32_t>(found)];
  if (f.wth.path >= c.in.size() || !c.in[f.wth.path]) return true;
  return settle(*c.in[f.wth.path], f, [&](const Packet& packet) { return told(c, packet); });
}

bool Watch::told(Conn& c, const Packet& packet) {
  const auto from_next = static_cast<uint16_t>(packet.msg_no - c.next);
  if (from_next >= kWindow && from_next < 0x8000) {
    return !rules_.refused ||
           bad("refused: an ack of connection %u tells message %u delivered, the window begins at %u",
               c.life.conn, packet.msg_no, c.next);
  }
  if (packet.signal && packet.sem >= sems_) {
    return !rules_.refused ||
           bad("refused: an ack of connection %u tells message %u delivered, whose semaphore is %u",
               c.life.conn, packet.msg_no, packet.sem);
  }
  if (static_cast<uint16_t>(packet.msg_no - c.told) >= kAcked) return true;
  Message& m = c.acked[packet.msg_no % kAcked];
  if (!m.open) {
    m.open = true;
    m.bytes = packet.msg_len;
    m.cover.clear();
  } else if (m.bytes != packet.msg_len) {
    return !rules_.refused ||
           bad("refused: acks of connection %u tell packets of message %u delivered that say %u and "
               "%u bytes",
               c.life.conn, packet.msg_no, m.bytes, packet.msg_len);
  }
  m.cover.add(packet.va, packet.bytes);
  for (Message* next; (next = &c.acked[c.told % kAcked])->open && next->cover.whole(next->bytes); ++c.told) {
    next->open = false;
    ++acked_;
  }
  return true;
}

// ---- the model's side -----------------------------------------------------------------------------------
namespace {
// Models are built on the thread that then takes their watch. One that nobody takes lives as long as that.
thread_local std::vector<std::unique_ptr<Watch>> made;
}  // namespace

std::unique_ptr<Watch> take_watch() {
  if (made.empty()) return nullptr;
  std::unique_ptr<Watch> watch = std::move(made.back());
  made.pop_back();
  return watch;
}

}  // namespace weft::tb

// Called by weft_watch.sv, in the types that its standard gives to bit and bit vectors. Each answers whether
// all is well.
extern "C" {
using weft::tb::Watch;
using svBit = unsigned char;
using svBitVecVal = uint32_t;

static Watch& watch_of(void* handle) {
  return *static_cast<Watch*>(handle);
}
static const uint8_t* bytes_of(const svBitVecVal* data) {
  return reinterpret_cast<const uint8_t*>(data);
}
static uint64_t keep_of(const svBitVecVal* keep) {
  return uint64_t{keep[1]} << 32 | keep[0];
}

void* weft_watch_new(int ports, int conns, int paths, int sems) {
  weft::tb::made.push_back(std::make_unique<Watch>(ports, conns, paths, sems));
  return weft::tb::made.back().get();
}
void weft_watch_reset(void* w) {
  watch_of(w).reset();
}
void weft_watch_port(void* w, int port, unsigned ip) {
  watch_of(w).configure_port(port, ip);
}
void weft_watch_conn(void* w, int port, int conn, svBit valid, unsigned rip, unsigned rconn,
                     unsigned incarnation, unsigned cycle) {
  watch_of(w).configure_conn(port, conn, valid != 0, rip, rconn, static_cast<uint16_t>(incarnation), cycle);
}
svBit weft_watch_request(void* w, int conn, int tag, unsigned long long raddr, unsigned bytes) {
  return watch_of(w).request(conn, static_cast<uint8_t>(tag), raddr, bytes);
}
svBit weft_watch_completion(void* w, int tag, int status) {
  return watch_of(w).completion(static_cast<uint8_t>(tag), static_cast<uint8_t>(status));
}
svBit weft_watch_signal(void* w, int sem, unsigned value, unsigned cycle) {
  return watch_of(w).signal(static_cast<uint16_t>(sem), value, cycle);
}
svBit weft_watch_received(void* w) {
  return watch_of(w).received();
}
svBit weft_watch_out(void* w, int port, const svBitVecVal* data, const svBitVecVal* keep, svBit last) {
  return watch_of(w).beat_out(port, bytes_of(data), keep_of(keep), last != 0);
}
svBit weft_watch_in(void* w, int port, const svBitVecVal* data, const svBitVecVal* keep, svBit last,
                    svBit error) {
  return watch_of(w).beat_in(port, bytes_of(data), keep_of(keep), last != 0, error != 0);
}
svBit weft_watch_rest(void* w) {
  return watch_of(w).at_rest();
}
}
