// SPDX-License-Identifier: Apache-2.0
// Two endpoints, each with two ports of two paths, and the packets between them. The bytes of an input are
// calls, steps of time, fates of packets, and forged packets: one seen before with fields changed, sent
// through encode() and parse() so that it is one that a wire can carry. In the end the connection is closed.
// Whatever was said: each request and receive completes once, nothing is remembered, and no call makes
// another due at the same instant for ever. Memory errors are the sanitizers' to find.
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sw/ref/endpoint.h"
#include "tests/fuzz/targets.h"

namespace weft::fuzz {
namespace {

using namespace weft::ref;

constexpr std::uint64_t kBase = 0x1000;
constexpr std::uint32_t kKey = 7;
constexpr unsigned kBusy = 4000;  // calls at one instant

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : *at_++; }
  std::uint16_t word() { return static_cast<std::uint16_t>(byte() | byte() << 8); }
  std::uint32_t number() { return word() | static_cast<std::uint32_t>(word()) << 16; }

 private:
  const std::uint8_t *at_, *end_;
};

class Memory final : public Env {
 public:
  std::array<std::uint8_t, 4096> bytes{};
  std::uint64_t completed_requests = 0, completed_recvs = 0, failures = 0;
  bool read(std::uint64_t va, std::uint8_t* out, std::uint32_t count) override {
    if (!inside(va, count)) return false;
    if (count != 0) std::memcpy(out, &bytes[va - kBase], count);
    return true;
  }
  bool write(std::uint64_t va, const std::uint8_t* in, std::uint32_t count) override {
    if (!inside(va, count)) return false;
    if (count != 0) std::memcpy(&bytes[va - kBase], in, count);
    return true;
  }
  bool signal(std::uint16_t sem, std::uint32_t) override { return sem < 4; }
  void completed(const Completion& c) override {
    switch (c.what) {
      case Completed::kRequest: ++completed_requests; break;
      case Completed::kRecv: ++completed_recvs; break;
      case Completed::kConnection:
        if (++failures > 1) std::abort();
        break;
    }
  }

 private:
  static bool inside(std::uint64_t va, std::uint32_t count) {
    return va >= kBase && va - kBase <= 4096 && count <= 4096 - (va - kBase);
  }
};

struct Flying {
  Packet packet;
  std::vector<std::uint8_t> payload;
  unsigned to, port;
};

struct Node {
  Memory memory;
  Endpoint end;
  std::uint32_t conn = 0;
  std::uint64_t requests = 0, recvs = 0;
  explicit Node(const Config& c) : end(c, memory) {
    end.add_region(kKey, kBase, 4096, kRemoteRead | kRemoteWrite | kRemoteAtomic);
  }
};

class World {
 public:
  explicit World(Input& in) : in_(in), nodes_{Node(config(in.byte(), 1)), Node(config(0, 2))} {
    const wire::Hello mine = nodes_[0].end.offer();
    const wire::Hello answer = nodes_[1].end.accept(mine, Peer{0}, now_);
    if (nodes_[0].end.connect(mine, answer, Peer{1}, now_) != wire::Refusal::NONE) std::abort();
    nodes_[0].conn = mine.conn;
    nodes_[1].conn = answer.conn;
  }

  void run() {
    while (!in_.empty()) step();
    for (unsigned i = 0; i < 200; ++i) honest(5 * kUs);
    for (Node& n : nodes_) {
      n.end.close(n.conn, now_);
      if (n.memory.completed_requests != n.requests || n.memory.completed_recvs != n.recvs) std::abort();
      if (n.end.in_use() != 0) std::abort();
    }
  }

 private:
  static Config config(std::uint8_t choice, std::uint64_t seed) {
    Config c;
    c.ports = 2;
    c.paths = 2;  // of a port, so that acks have blocks
    c.streams = 2;
    c.mtu = 64;
    c.rtt_init = 5 * kUs;
    c.distance = choice % 4 == 3 ? 4 : 0;
    c.seed = seed;
    c.tuning.give_up = 2 * kMs;
    return c;
  }

  void step() {
    const std::uint8_t op = in_.byte();
    Node& n = nodes_[op & 1];
    switch (op >> 1 & 7) {
      case 0: {
        WorkRequest w;
        w.op = static_cast<WrOp>(in_.byte() & 7);
        w.length = in_.byte();
        w.local_va = kBase + 8u * in_.byte();
        w.local_rkey = w.rkey = kKey;
        w.remote_va = kBase + 8u * in_.byte();
        w.sem = 1;
        w.operand = 3;
        if (n.end.post(n.conn, op >> 4 & 1, w, now_) == wire::Err::OK) ++n.requests;
        break;
      }
      case 1:
        if (n.end.post_recv(n.conn, op >> 4 & 1, n.recvs, kBase + 8u * in_.byte(), in_.byte(), now_) ==
            wire::Err::OK)
          ++n.recvs;
        break;
      case 2: n.end.change_sport(n.conn, op >> 4 & 1, now_); break;
      case 3: honest(Ps{in_.word()} * kNs); break;
      case 4:  // time passes, nothing arrives
        now_ += Ps{in_.word()} * (op & 0x10 ? kUs : kNs) / 16;
        collect();
        break;
      case 5:  // one of those under way is lost, doubled or overtakes
        if (!flying_.empty()) {
          const std::size_t i = in_.byte() % flying_.size();
          if ((op & 0x10) != 0)
            flying_.push_back(flying_[i]);
          else
            flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(i));
          if (flying_.size() > 256) flying_.resize(256);
        }
        break;
      default: forge(op); break;
    }
  }

  /// Everything that is due leaves and, of its timers, fires.
  void collect() {
    for (unsigned i = 0; i < 2; ++i) {
      Endpoint& e = nodes_[i].end;
      unsigned calls = 0;
      while (e.next_timer() <= now_ || e.ready_ports() != 0) {
        if (++calls > kBusy) std::abort();
        if (e.next_timer() <= now_) e.on_timer(now_);
        for (unsigned p = 0; p < 2; ++p) {
          Packet out;
          if ((e.ready_ports() >> p & 1) == 0 || !e.next_packet(now_, p, out)) continue;
          Flying f{out, {}, 1 - i, p};
          if (out.payload != nullptr) f.payload.assign(out.payload, out.payload + out.payload_bytes);
          if (seen_.size() < 16)
            seen_.push_back(f);
          else
            seen_[sent_ % 16] = f;
          ++sent_;
          if (flying_.size() < 256) flying_.push_back(std::move(f));
        }
      }
    }
  }

  void deliver(const Flying& f) {
    Packet p = f.packet;
    p.payload = f.payload.empty() ? nullptr : f.payload.data();
    nodes_[f.to].end.on_packet(now_, f.port, p);
  }

  void honest(Ps time) {
    now_ += time;
    collect();
    std::vector<Flying> arriving;
    arriving.swap(flying_);
    for (const Flying& f : arriving) deliver(f);
    collect();
  }

  /// A packet that was seen before, with fields changed.
  void forge(std::uint8_t op) {
    if (seen_.empty()) return;
    Flying f = seen_[in_.byte() % seen_.size()];
    Packet& p = f.packet;
    for (unsigned edits = 1 + (op >> 4 & 3); edits != 0; --edits) {
      const std::uint8_t what = in_.byte();
      const std::uint32_t value = (what & 0x40) != 0 ? in_.number() : in_.byte();
      switch (what & 31) {
        case 0: p.psn = (p.psn + value) & 0xffffff; break;
        case 1: p.psn = (p.psn - value) & 0xffffff; break;
        case 2: p.epoch = static_cast<std::uint8_t>(p.epoch + value); break;
        case 3: p.path = static_cast<std::uint8_t>(value); break;
        case 4: f.port = value & 1; break;
        case 5: p.timestamp += value; break;
        case 6: p.timestamp -= value; break;
        case 7: p.ce = !p.ce; break;
        case 8: retype(f, static_cast<wire::Opcode>(0xc0 + value % 40)); break;
        case 9: p.incarnation = static_cast<std::uint16_t>(p.incarnation + value); break;
        case 10: p.conn = value & 0xffffff; break;
        case 11: f.to ^= 1; break;
        default:
          if (p.is_data())
            edit_data(f, what & 31, value);
          else if (p.is_ack())
            edit_ack(p.ack, what & 31, value);
      }
    }
    std::array<std::uint8_t, wire::kMaxFrameBytes> frame;
    p.payload = f.payload.data();
    p.payload_bytes = static_cast<std::uint16_t>(p.is_data() ? f.payload.size() : 0);
    const std::size_t bytes = encode(frame.data(), {}, p);
    if (p.ce && p.is_data()) wire::mark_ce({frame.data(), bytes});
    wire::RxPort port;
    port.whole_protocol = true;
    const wire::ParseResult r = wire::parse({frame.data(), bytes}, port);
    if (!r) return nodes_[f.to].end.on_drop(*r.drop);
    nodes_[f.to].end.on_packet(now_, f.port, decode(r.frame));
    collect();
  }

  static void retype(Flying& f, wire::Opcode op) {
    Packet& p = f.packet;
    const bool was_data = p.is_data(), was_ack = p.is_ack();
    p.opcode = op;
    if (p.is_data() && !was_data) p.data = {};
    if (p.is_ack() && !was_ack) p.ack = {};
    if (!p.is_data()) f.payload.clear();
  }

  static void edit_data(Flying& f, unsigned what, std::uint32_t value) {
    DataHeader& d = f.packet.data;
    switch (what) {
      case 12: d.va += static_cast<std::int32_t>(value); break;
      case 13: d.va = value; break;
      case 14: d.rkey = value; break;
      case 15: d.msg_len = value; break;
      case 16: d.msg_no = static_cast<std::uint16_t>(d.msg_no + value); break;
      case 17: d.stream = static_cast<std::uint16_t>(value); break;
      case 18: d.value = value; break;
      case 19: d.sem = static_cast<std::uint16_t>(value); break;
      case 20: d.more = !d.more; break;
      case 21: f.payload.resize(value % 80, 0x5a); break;
      case 22: f.payload.resize(value % (wire::kMaxPayload + 1), 0xa5); break;
      default: d.retx = !d.retx; break;
    }
  }

  static void edit_ack(AckHeader& a, unsigned what, std::uint32_t value) {
    switch (what) {
      case 12: a.base = (a.base + value) & 0xffffff; break;
      case 13: a.base = (a.base - value) & 0xffffff; break;
      case 14:
        a.hist_words = wire::kHistWords;
        a.hist[value % wire::kHistWords] ^= value;
        break;
      case 15: a.ce_bytes += value; break;
      case 16: a.rx_bytes = value; break;
      case 17: a.echo += value; break;
      case 18: a.echo -= value; break;
      case 19: a.share = value; break;
      case 20: a.credits = static_cast<std::uint16_t>(a.credits + value); break;
      case 21: a.stream = static_cast<std::uint16_t>(value); break;
      case 22: a.status = static_cast<std::uint8_t>(value); break;
      default:
        a.block_count = static_cast<std::uint8_t>(1 + value % wire::kMaxAckBlocks);
        for (unsigned i = 0; i < a.block_count; ++i)
          a.blocks[i] = {(a.base + (value >> 8)) & 0xffffff, value, ~value,
                         static_cast<std::uint8_t>(value >> 4 & 3),
                         static_cast<std::uint8_t>(value >> 6 & 1)};
        break;
    }
  }

  Input& in_;
  std::array<Node, 2> nodes_;
  Ps now_ = 0;
  std::uint64_t sent_ = 0;
  std::vector<Flying> flying_, seen_;
};

}  // namespace

void endpoint(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  World(in).run();
}

}  // namespace weft::fuzz
