// SPDX-License-Identifier: Apache-2.0
// Two (or more) reference endpoints on a network made of delays: every port of every node is a plane of its
// own, a packet takes `delay` behind its time on the link. What befalls a packet is decided by a hook, so
// that a test can lose, double, hold back or forge exactly what it means to. Packets cross as frames with
// their ICRC when `bytes` is set, else decoded. An endpoint that asks for work at one instant without end
// (a timer that does not move, a port that is always ready) is an error of the run.
//
// Memory is checked byte by byte: each write is noted, and a byte written twice is kept in `twice` (the
// protocol's exactly-once, as seen from memory).
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

#include "sw/ref/endpoint.h"
#include "tests/common/weft_test.h"

namespace weft::ref::test {

struct Fate {
  bool lost = false;
  Ps late = 0;          // extra delay of this packet
  bool held = false;    // kept in Net::held until release()
  unsigned copies = 0;  // more of it
  Ps copy_late = 0;     // extra delay of the copies
  bool corrupt = false;
  bool ce = false;
};

struct Sent {
  Ps now;
  unsigned node, port;  // of the sender
  const Packet& packet;
};

class Host final : public Env {
 public:
  static constexpr std::uint64_t kBase = 0x10000;
  explicit Host(std::size_t bytes) : memory(bytes), writes(bytes) {}
  std::vector<std::uint8_t> memory;
  std::vector<std::uint8_t> writes;  // how often each byte was written
  std::vector<Completion> done;
  std::vector<std::pair<std::uint16_t, std::uint32_t>> signals;
  std::function<void(const Completion&)> on_done;
  std::function<void(std::uint16_t sem, std::uint32_t amount)> on_signal;
  std::uint64_t bad_from = 0, bad_to = 0;  // addresses that answer with an error
  std::uint64_t twice = 0;

  bool read(std::uint64_t va, std::uint8_t* bytes, std::uint32_t count) override {
    if (!inside(va, count)) return false;
    if (bytes) std::memcpy(bytes, &memory[va - kBase], count);
    return true;
  }
  bool write(std::uint64_t va, const std::uint8_t* bytes, std::uint32_t count) override {
    if (!inside(va, count)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (writes[va - kBase + i] != 0) ++twice;
      if (writes[va - kBase + i] != 255) ++writes[va - kBase + i];
    }
    if (bytes) std::memcpy(&memory[va - kBase], bytes, count);
    return true;
  }
  bool signal(std::uint16_t sem, std::uint32_t amount) override {
    signals.emplace_back(sem, amount);
    if (on_signal) on_signal(sem, amount);
    return sem < 64;
  }
  void completed(const Completion& c) override {
    done.push_back(c);
    if (on_done) on_done(c);
  }

 private:
  bool inside(std::uint64_t va, std::uint32_t count) const {
    if (va < kBase || va - kBase + count > memory.size()) return false;
    return va + count <= bad_from || va >= bad_to || count == 0;
  }
};

class Net {
 public:
  struct Node {
    explicit Node(const Config& config, std::size_t bytes) : host(bytes) {
      end.emplace(config, host);
      free_at.resize(config.ports);
    }
    Host host;
    std::optional<Endpoint> end;
    std::vector<Ps> free_at;
  };

  Net(const Config& config, unsigned nodes = 2, std::size_t memory = 1 << 20, bool frames = true)
      : bytes(frames), config_(config) {
    for (unsigned i = 0; i < nodes; ++i) {
      Config c = config;
      c.seed = weft::test::seed() * 1000 + i + (config.seed - 1) * 1'000'003;
      nodes_.push_back(std::make_unique<Node>(c, memory));
      nodes_.back()->end->add_region(kKey, Host::kBase, memory, kRemoteRead | kRemoteWrite | kRemoteAtomic);
    }
    line_ = config.line_mbps / 8000.0;
  }

  static constexpr std::uint32_t kKey = 0x1234;
  Ps delay = 2 * kUs;
  bool bytes;
  std::function<Fate(const Sent&)> fate;
  std::function<void(const Sent&, Packet&)> forge;  // changes what a packet says; needs `bytes` false
  std::uint64_t packets = 0, lost = 0, unknown = 0;

  Node& operator[](unsigned i) { return *nodes_[i]; }
  Endpoint& end(unsigned i) { return *nodes_[i]->end; }
  Host& host(unsigned i) { return nodes_[i]->host; }
  Ps now() const { return now_; }
  /// Model time of the first call; before anything has happened.
  void start_at(Ps time) { now_ = time; }

  /// The node loses its memory of the protocol: a new endpoint in the same host, on another seed.
  void restart(unsigned node) {
    Config c = end(node).config();
    c.seed ^= 0x5eed0000;
    nodes_[node]->end.emplace(c, host(node));
    end(node).add_region(kKey, Host::kBase, host(node).memory.size(),
                         kRemoteRead | kRemoteWrite | kRemoteAtomic);
  }

  /// Opens a connection from a to b; the number at a, and at b. `psn`: a's first PSN.
  std::pair<std::uint32_t, std::uint32_t> open(unsigned a, unsigned b,
                                               std::optional<std::uint32_t> psn = std::nullopt) {
    wire::Hello mine = end(a).offer();
    if (psn) mine.psn = *psn;
    const wire::Hello answer = end(b).accept(mine, Peer{static_cast<std::uint16_t>(a)}, now_);
    const wire::Refusal r = end(a).connect(mine, answer, Peer{static_cast<std::uint16_t>(b)}, now_);
    if (r != wire::Refusal::NONE) throw std::runtime_error(std::string("refused: ") + wire::name(r));
    return {mine.conn, answer.conn};
  }

  /// Puts a packet at a node's port, out of nowhere.
  void inject(unsigned node, unsigned port, const Packet& p, Ps after = 0) {
    Arrival a{now_ + after, order_++, node, port, p, {}};
    if (p.payload != nullptr) a.payload.assign(p.payload, p.payload + p.payload_bytes);
    arrivals_.push(std::move(a));
  }

  /// What the network keeps back (Fate::held), oldest first; release() lets number `i` of it arrive, a copy
  /// of it when `keep` is set.
  std::size_t held() const { return held_.size(); }
  const Packet& held_packet(std::size_t i) const { return held_[i].packet; }
  void release(std::size_t i, bool keep = false) {
    Arrival a = held_[i];
    a.at = now_;
    a.order = order_++;
    arrivals_.push(std::move(a));
    if (!keep) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  bool run_until(const std::function<bool()>& done, Ps limit) {
    const Ps end_at = now_ + limit;
    unsigned rounds = 0;
    for (;;) {
      pump();
      if (done()) return true;
      Ps next = kNever;
      if (!arrivals_.empty()) next = arrivals_.top().at;
      for (auto& n : nodes_) {
        next = std::min(next, n->end->next_timer());
        for (unsigned p = 0; p < config_.ports; ++p)
          if ((n->end->ready_ports() >> p & 1) != 0) next = std::min(next, std::max(now_, n->free_at[p]));
      }
      if (next > end_at) {
        now_ = end_at;
        return done();
      }
      if (next > now_) rounds = 0;
      if (++rounds > kMaxRounds) throw std::runtime_error("an endpoint does not let time pass");
      now_ = std::max(now_, next);
      while (!arrivals_.empty() && arrivals_.top().at <= now_) {
        const Arrival a = arrivals_.top();
        arrivals_.pop();
        Packet p = a.packet;
        p.payload = a.payload.empty() ? nullptr : a.payload.data();
        if (a.drop)
          end(a.node).on_drop(*a.drop);
        else
          end(a.node).on_packet(now_, a.port, p);
      }
      for (auto& n : nodes_)
        if (n->end->next_timer() <= now_) n->end->on_timer(now_);
    }
  }
  void run_for(Ps time) {
    run_until([] { return false; }, time);
  }
  bool settle(Ps limit = 100 * kMs) {
    return run_until(
        [this] {
          return arrivals_.empty() &&
                 std::all_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n->end->idle(); });
        },
        limit);
  }
  /// Completions of a kind at a node.
  unsigned completions(unsigned node, Completed what = Completed::kRequest) const {
    unsigned n = 0;
    for (const Completion& c : nodes_[node]->host.done) n += c.what == what ? 1 : 0;
    return n;
  }

 private:
  struct Arrival {
    Ps at;
    std::uint64_t order;
    unsigned node, port;
    Packet packet;
    std::vector<std::uint8_t> payload;
    std::optional<wire::Drop> drop{};
    bool operator>(const Arrival& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  void pump() {
    for (unsigned i = 0; i < nodes_.size(); ++i) {
      Node& n = *nodes_[i];
      for (unsigned p = 0; p < config_.ports; ++p) {
        while ((n.end->ready_ports() >> p & 1) != 0 && n.free_at[p] <= now_) {
          Packet out;
          if (!n.end->next_packet(now_, p, out)) break;
          send(i, p, out);
        }
      }
    }
  }

  void send(unsigned node, unsigned port, const Packet& p) {
    Node& n = *nodes_[node];
    const double wire_bytes = static_cast<double>(frame_bytes(p)) + 24;
    n.free_at[port] = now_ + static_cast<Ps>(wire_bytes / line_ * kNs);
    ++packets;
    const Fate f = fate ? fate({now_, node, port, p}) : Fate{};
    const unsigned to = p.peer;
    if (f.lost) ++lost;
    for (unsigned copy = f.lost ? 1 : 0; copy <= f.copies; ++copy) {
      const Ps late = copy == 0 ? f.late : f.copy_late;
      Arrival a{n.free_at[port] + delay + late, order_++, to, port, p, {}};
      if (bytes) {
        std::uint8_t frame[wire::kMaxFrameBytes];
        wire::Route route;
        route.sip = 0x0a000001 + node;
        route.dip = 0x0a000001 + to;
        std::size_t size = encode(frame, route, p);
        if (f.ce) wire::mark_ce({frame, size});
        if (f.corrupt) frame[size / 2] ^= 0x10;
        wire::RxPort rx;
        rx.whole_protocol = true;
        const wire::ParseResult r = wire::parse({frame, size}, rx);
        if (r) {
          a.packet = decode(r.frame);
          a.payload.assign(r.frame.payload.begin(), r.frame.payload.end());
        } else {
          a.drop = r.drop;
        }
      } else {
        a.packet.ce = f.ce;
        if (forge) forge({now_, node, port, p}, a.packet);
        if (f.corrupt) a.drop = wire::Drop::ICRC;
        if (p.payload != nullptr) a.payload.assign(p.payload, p.payload + p.payload_bytes);
      }
      if (f.held)
        held_.push_back(std::move(a));
      else
        arrivals_.push(std::move(a));
    }
  }

  static constexpr unsigned kMaxRounds = 10'000;  // at one instant; a busy one needs some dozen
  Config config_;
  double line_;
  Ps now_ = 0;
  std::uint64_t order_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<Arrival> held_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

}  // namespace weft::ref::test
