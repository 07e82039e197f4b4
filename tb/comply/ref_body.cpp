// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/ref_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <new>

#include "sw/ref/packet.h"
#include "tb/check/traffic.h"
#include "tb/fabric/fabric.h"

namespace weft::comply {
namespace {

constexpr std::uint64_t kMemoryBytes = 16 << 20;
constexpr std::uint64_t kAlign = 4096;
constexpr Ps kLatency = 500 * kNs;  // of a link, one way
constexpr std::int64_t kRate_mbps = 100'000;

class RefBody final : public Body {
 public:
  std::uint32_t caps() const override { return ref::Config{}.caps; }
  std::uint32_t abilities() const override {
    return kFrames | kControl | kCounters | kState | kStartPsn | kSetup | kJointAcks;
  }

  Result<wire::Hello> open(const BodySetup& setup, const wire::Hello& offer) override {
    endpoint_.reset();
    host_ = std::make_unique<RefHost>();
    ref::Config c = ref_config(setup);
    c.line_mbps = kRate_mbps;
    if (!ref::Endpoint::possible(c)) return Status::error("ref: setup: no endpoint can be that");
    endpoint_ = std::make_unique<ref::Endpoint>(c, *host_);
    ports_.assign(setup.ports, {});
    out_.clear();
    const ref::Peer peer{kTesterNode};
    if (!setup.psn) {
      hello_ = endpoint_->accept(offer, peer, now_);
      return hello_;
    }
    // A first PSN of the script's choice: the body is then the end that opens, whose record the caller holds.
    hello_ = endpoint_->offer();
    hello_.psn = *setup.psn;
    hello_.incarnation = offer.incarnation;
    hello_.refusal = endpoint_->connect(hello_, offer, peer, now_);
    return hello_;
  }

  Ps now() const override { return now_; }
  void send(std::uint32_t port, wire::Bytes frame, bool) override {
    wire::RxPort rx;
    rx.mac = tb::node_mac(kBodyNode, port);
    rx.ip = tb::node_ip(kBodyNode, port);
    rx.whole_protocol = true;
    const wire::Frame kept(frame.begin(), frame.end());
    const wire::ParseResult r = wire::parse(kept, rx);
    if (!r) {
      endpoint_->on_drop(*r.drop);
    } else {
      ref::Packet p = ref::decode(r.frame);
      p.peer = kTesterNode;
      endpoint_->on_packet(now_, port, p);
    }
    transmit();
  }

  Status run(Ps until, std::vector<Event>& out) override {
    for (;;) {
      transmit();
      for (const Completion& c : host_->take_completions()) {
        Event e;
        e.time = now_;
        e.is_frame = false;
        e.completion = c;
        out.push_back(std::move(e));
      }
      while (!out_.empty() && out_.front().time <= now_) {
        out.push_back(std::move(out_.front()));
        out_.pop_front();
      }
      if (!out.empty() || now_ >= until) return {};
      Ps next = std::min(until, endpoint_->next_timer());
      if (!out_.empty()) next = std::min(next, out_.front().time);
      for (std::uint32_t p = 0; p < ports_.size(); ++p)
        if ((endpoint_->ready_ports() >> p & 1) != 0) next = std::min(next, ports_[p].free);
      // A timer of the past must not hold time still: it is due now.
      now_ = std::max(now_, next);
      if (endpoint_->next_timer() <= now_) endpoint_->on_timer(now_);
    }
  }

  Result<Address> region(std::uint64_t bytes, std::uint8_t rights) override {
    return host_->region(*endpoint_, bytes, rights);
  }
  Status write(std::uint64_t va, const std::vector<std::uint8_t>& bytes) override {
    if (host_->write(va, bytes.data(), static_cast<std::uint32_t>(bytes.size()))) return {};
    return Status::error(fmt::format("ref: {} bytes at {:#x} are outside its memory", bytes.size(), va));
  }
  Result<std::vector<std::uint8_t>> read(std::uint64_t va, std::size_t count) override {
    std::vector<std::uint8_t> bytes(count);
    if (host_->read(va, bytes.data(), static_cast<std::uint32_t>(count))) return bytes;
    return Status::error(fmt::format("ref: {} bytes at {:#x} are outside its memory", count, va));
  }
  Result<wire::Err> post(const Post& post) override {
    if (post.wait) return host_->wait(post.request.sem, post.request.value, post.request.id);
    return endpoint_->post(hello_.conn, post.stream, post.request, now_);
  }
  Result<wire::Err> post_recv(std::uint16_t stream, std::uint64_t id, Address at,
                              std::uint32_t bytes) override {
    return endpoint_->post_recv(hello_.conn, stream, id, at.va, bytes, now_);
  }
  Status close() override {
    endpoint_->close(hello_.conn, now_);
    return {};
  }
  Status change_sport(std::uint32_t path) override {
    if (endpoint_->change_sport(hello_.conn, path, now_)) return {};
    return Status::error("ref: body sport: the path cannot change now");
  }
  Result<std::vector<std::uint64_t>> drops() override {
    const ref::Counters& c = endpoint_->counters();
    return std::vector<std::uint64_t>(c.drop, c.drop + wire::kDropCount);
  }
  Result<std::string> path_state(std::uint32_t path) override {
    return state_name(endpoint_->path_state(hello_.conn, path));
  }

 private:
  struct Port {
    Ps free = 0;
  };

  void transmit() {
    for (std::uint32_t port = 0; port < ports_.size(); ++port) {
      ref::Packet p{};
      while (ports_[port].free <= now_ && endpoint_->next_packet(now_, port, p)) {
        wire::Route route;
        route.smac = tb::node_mac(kBodyNode, port);
        route.dmac = tb::node_mac(kTesterNode, port);
        route.sip = tb::node_ip(kBodyNode, port);
        route.dip = tb::node_ip(kTesterNode, port);
        Event e;
        e.port = port;
        e.frame.resize(wire::kMaxFrameBytes);
        e.frame.resize(ref::encode(e.frame.data(), route, p));
        const Ps wire = tb::wire_ps(static_cast<std::uint32_t>(e.frame.size()), kRate_mbps);
        ports_[port].free = now_ + wire;
        e.time = now_ + wire + kLatency;
        const auto at = std::upper_bound(out_.begin(), out_.end(), e.time,
                                         [](Ps t, const Event& o) { return t < o.time; });
        out_.insert(at, std::move(e));
      }
    }
  }

  Ps now_ = 0;
  std::unique_ptr<RefHost> host_;
  std::unique_ptr<ref::Endpoint> endpoint_;
  wire::Hello hello_;
  std::vector<Port> ports_;
  std::deque<Event> out_;
};

}  // namespace

std::string state_name(ref::PathState state) {
  switch (state) {
    case ref::PathState::kGood: return "good";
    case ref::PathState::kSuspect: return "suspect";
    case ref::PathState::kFencing: return "fencing";
    case ref::PathState::kFailed: return "failed";
    case ref::PathState::kProbation: return "probation";
  }
  return "";
}

ref::Config ref_config(const BodySetup& setup) {
  ref::Config c;
  c.ports = setup.ports;
  c.paths = setup.paths;
  c.streams = setup.streams;
  c.mtu = setup.mtu;
  c.distance = setup.distance;
  c.rtt_init = setup.rtt_init;
  if (setup.caps) c.caps = *setup.caps;
  c.tuning.probe_min = setup.probe_min;
  c.tuning.give_up = setup.give_up;
  c.tuning.packet_life = setup.packet_life;
  return c;
}

RefHost::RefHost() : memory_(static_cast<std::uint8_t*>(std::calloc(kMemoryBytes, 1))), sems_(kSems) {
  if (memory_ == nullptr) throw std::bad_alloc();
}

bool RefHost::read(std::uint64_t va, std::uint8_t* bytes, std::uint32_t count) {
  if (va < kBase || va - kBase > kMemoryBytes || count > kMemoryBytes - (va - kBase)) return false;
  std::copy_n(memory_.get() + (va - kBase), count, bytes);
  return true;
}
bool RefHost::write(std::uint64_t va, const std::uint8_t* bytes, std::uint32_t count) {
  if (va < kBase || va - kBase > kMemoryBytes || count > kMemoryBytes - (va - kBase)) return false;
  std::copy_n(bytes, count, memory_.get() + (va - kBase));
  return true;
}
bool RefHost::signal(std::uint16_t sem, std::uint32_t amount) {
  if (sem >= sems_.size()) return false;
  sems_[sem] = std::min<std::uint64_t>(sems_[sem] + amount, ~std::uint32_t{0});  // W-MSG-012: it stops there
  look();
  return true;
}
wire::Err RefHost::wait(std::uint16_t sem, std::uint32_t value, std::uint64_t id) {
  if (sem >= sems_.size()) return wire::Err::BAD_SEM;
  waits_.push_back({sem, value, id});
  look();
  return wire::Err::OK;
}
void RefHost::look() {
  for (auto it = waits_.begin(); it != waits_.end();) {
    if (sems_[it->sem] < it->value) {
      ++it;
      continue;
    }
    Completion c;
    c.id = it->id;
    completions_.push_back(c);
    it = waits_.erase(it);
  }
}
void RefHost::completed(const ref::Completion& c) {
  Completion out;
  out.what = c.what;
  out.id = c.id;
  out.status = c.status;
  out.bytes = c.bytes;
  out.stream = c.stream;
  if (c.has_imm) out.imm = c.imm;
  completions_.push_back(out);
}
std::vector<Completion> RefHost::take_completions() {
  return std::exchange(completions_, {});
}
Result<Address> RefHost::region(ref::Endpoint& endpoint, std::uint64_t bytes, std::uint8_t rights) {
  const std::uint64_t at = next_ + kAlign;
  if (bytes > kMemoryBytes || at + bytes + 2 * kAlign > kBase + kMemoryBytes)
    return Status::error(
        fmt::format("region of {} bytes: the reference's memory has {}", bytes, kMemoryBytes));
  next_ = (at + bytes + kAlign - 1) / kAlign * kAlign;
  const Address a{at, next_key_++};
  endpoint.add_region(a.rkey, a.va, bytes, rights);
  return a;
}

std::unique_ptr<Body> make_ref_body() {
  return std::make_unique<RefBody>();
}

}  // namespace weft::comply
