// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/fault.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "sw/ref/packet.h"

namespace weft::comply {
namespace {

constexpr Fault kFaults[] = {
    {"silent", "sends no acks"},
    {"ack-early", "acknowledges one packet more than has come"},
    {"ack-late", "sends its acks 30 us late"},
    {"gap-late", "sends acks that show a loss 30 us late"},
    {"hides-loss", "reports every settled packet as delivered"},
    {"miscounts", "counts one byte too many in its acks"},
    {"no-echo", "echoes a timestamp of 0"},
    {"ce-blind", "does not see congestion marks"},
    {"epoch-blind", "takes every packet for one of epoch 0"},
    {"incarnation-blind", "takes every packet for one of this incarnation"},
    {"probe-deaf", "does not hear probes"},
    {"fence-deaf", "does not hear fences"},
    {"fence-dumb", "sends no fence"},
    {"no-resend", "never sends a lost packet again"},
    {"doubles", "sends every data packet twice"},
    {"reuses-psn", "sends a resend under the PSN before its own"},
    {"wrong-path", "names the path after the right one"},
    {"wrong-payload", "changes a byte of each payload"},
    {"bad-icrc", "sends frames with a wrong ICRC"},
    {"new-probe-psn", "takes a new PSN for a repeated probe"},
    {"no-probe", "sends no probes"},
    {"trusting", "places the payload of every data packet, whatever is wrong with it"},
    {"hasty", "completes a request when it is posted"},
    {"never-completes", "completes nothing"},
    {"always-ok", "completes everything with OK"},
    {"credit-blind", "sees all the credits it wants"},
    {"no-credits", "grants no credits"},
    {"no-counters", "counts no drops"},
    {"forgets-memory", "has zeros where data was placed"},
    {"agrees", "accepts every set-up record"},
    {"always-good", "calls every path good"},
    {"block-deaf", "does not hear the blocks of acks"},
    {"block-early", "acknowledges one packet more than has come in each block"},
    {"block-dumb", "sends acks without their blocks"},
    {"block-rash", "sends a block with every ack"},
    {"no-reply", "sends no data for READ, no replies and no messages of its own"},
};

constexpr Ps kLate = 30 * kUs;
constexpr std::size_t kBth = 42;

class WrongBody final : public Body {
 public:
  WrongBody(std::unique_ptr<Body> body, std::string fault)
      : body_(std::move(body)), fault_(std::move(fault)) {}

  std::uint32_t caps() const override { return body_->caps(); }
  std::uint32_t abilities() const override { return body_->abilities(); }
  std::uint32_t stride(const BodySetup& s) const override { return body_->stride(s); }
  Result<wire::Hello> open(const BodySetup& setup, const wire::Hello& offer) override {
    late_.clear();
    probe_ = 0;
    auto answer = body_->open(setup, offer);
    if (answer.ok()) incarnation_ = answer.value().incarnation;
    if (is("agrees") && answer.ok()) answer.value().refusal = wire::Refusal::NONE;
    return answer;
  }
  Ps now() const override { return body_->now(); }

  void send(std::uint32_t port, wire::Bytes frame, bool mac_error) override {
    wire::Frame f(frame.begin(), frame.end());
    const wire::ParseResult seen = wire::parse(frame, observer());
    const bool whole = f.size() >= wire::kMinFrameBytes;
    const auto op = static_cast<wire::Opcode>(whole ? f[kBth] : 0);
    if (is("probe-deaf") && op == wire::Opcode::PROBE) return;
    if (is("fence-deaf") && op == wire::Opcode::FENCE) return;
    if (is("trusting") && f.size() > wire::kHdrDataBytes + wire::kIcrcBytes && op < wire::Opcode::ACK)
      (void)body_->write(wire::Wdh::unpack(&f[wire::kHdrProbeBytes]).va,
                         {f.begin() + wire::kHdrDataBytes, f.end() - wire::kIcrcBytes});
    if (seen) {
      if (is("ce-blind") && (f[15] & 3) == wire::kEcnCe)
        f[15] = static_cast<std::uint8_t>((f[15] & ~3) | wire::kEcnEct0);
      if (is("epoch-blind")) f[kBth + wire::Bth::kBytes + 1] = 0;
      if (is("incarnation-blind")) {
        f[kBth + wire::Bth::kBytes + 2] = static_cast<std::uint8_t>(incarnation_ >> 8);
        f[kBth + wire::Bth::kBytes + 3] = static_cast<std::uint8_t>(incarnation_);
      }
      if (is("credit-blind") && op == wire::Opcode::ACK) f[62 + 20] = 0x7f;
      if (is("block-deaf") && op == wire::Opcode::ACK) tell(f, seen.frame, {});
      wire::reseal(f);
    }
    body_->send(port, f, mac_error);
  }

  Status run(Ps until, std::vector<Event>& out) override {
    std::vector<Event> events;
    const Ps next = late_.empty() ? until : std::min(until, std::max(late_.front().time, body_->now()));
    if (Status s = body_->run(next, events); !s.ok()) return s;
    for (Completion& c : early_) {
      Event e;
      e.time = body_->now();
      e.is_frame = false;
      e.completion = c;
      events.push_back(e);
    }
    early_.clear();
    while (!late_.empty() && late_.front().time <= body_->now()) {
      out.push_back(std::move(late_.front()));
      late_.erase(late_.begin());
    }
    for (Event& e : events) {
      if (e.is_frame)
        frame(e, out);
      else
        completion(e, out);
    }
    return {};
  }

  Result<Address> region(std::uint64_t bytes, std::uint8_t rights) override {
    return body_->region(bytes, rights);
  }
  Status write(std::uint64_t va, const std::vector<std::uint8_t>& bytes) override {
    return body_->write(va, bytes);
  }
  Result<std::vector<std::uint8_t>> read(std::uint64_t va, std::size_t count) override {
    auto r = body_->read(va, count);
    if (is("forgets-memory") && r.ok()) std::fill(r.value().begin(), r.value().end(), std::uint8_t{0});
    return r;
  }
  Status prepare(const Post& post) override { return body_->prepare(post); }
  Result<wire::Err> post(const Post& post) override {
    if (is("hasty")) early_.push_back(done(ref::Completed::kRequest, post.request.id, post.stream));
    return body_->post(post);
  }
  Result<wire::Err> post_recv(std::uint16_t stream, std::uint64_t id, Address at,
                              std::uint32_t bytes) override {
    if (is("hasty")) early_.push_back(done(ref::Completed::kRecv, id, stream));
    return body_->post_recv(stream, id, at, bytes);
  }
  Status close() override { return body_->close(); }
  Status change_sport(std::uint32_t path) override { return body_->change_sport(path); }
  Result<std::vector<std::uint64_t>> drops() override {
    auto r = body_->drops();
    if (is("no-counters") && r.ok()) std::fill(r.value().begin(), r.value().end(), 0);
    return r;
  }
  Result<std::string> path_state(std::uint32_t path) override {
    return is("always-good") ? Result<std::string>(std::string("good")) : body_->path_state(path);
  }

 private:
  bool is(const char* name) const { return fault_ == name; }
  static wire::RxPort observer() {
    wire::RxPort any;
    any.whole_protocol = true;
    return any;
  }
  /// The ack with these blocks instead of its own.
  static void tell(wire::Frame& f, const wire::Parsed& ack, std::span<const wire::Wab> blocks) {
    wire::Route r;
    r.dmac = ack.eth.dst;
    r.smac = ack.eth.src;
    r.sip = ack.ipv4.src;
    r.dip = ack.ipv4.dst;
    r.sport = ack.udp.sport;
    r.dscp = ack.ipv4.dscp;
    r.ecn = ack.ipv4.ecn;
    f.resize(wire::kMaxAckFrameBytes);
    f.resize(wire::write_ack(f.data(), r, ack.bth, ack.wth, ack.wah, ack.hist, blocks));
  }
  static Completion done(ref::Completed what, std::uint64_t id, std::uint16_t stream) {
    Completion c;
    c.what = what;
    c.id = id;
    c.stream = stream;
    return c;
  }

  void frame(Event& e, std::vector<Event>& out) {
    wire::Frame& f = e.frame;
    const wire::ParseResult seen = wire::parse(f, observer());
    if (!seen) {
      out.push_back(std::move(e));
      return;
    }
    const auto op = static_cast<wire::Opcode>(seen.frame.bth.opcode);
    const bool data = seen.frame.layout == wire::Layout::DATA, ack = op == wire::Opcode::ACK;
    const bool probe = op == wire::Opcode::PROBE;
    constexpr std::size_t kWah = 62, kHist = 86;
    const auto add = [&f](std::size_t at, std::size_t bytes, std::int64_t amount) {
      std::uint64_t v = 0;
      for (std::size_t i = 0; i < bytes; ++i) v = v << 8 | f[at + i];
      v += static_cast<std::uint64_t>(amount);
      for (std::size_t i = 0; i < bytes; ++i) f[at + i] = static_cast<std::uint8_t>(v >> 8 * (bytes - 1 - i));
    };
    bool lossy = false;
    for (std::uint32_t word : seen.frame.hist) lossy |= ack && word != 0xffffffff;

    if (is("silent") && ack) return;
    if (is("fence-dumb") && (op == wire::Opcode::FENCE || op == wire::Opcode::FENCE_ANSWER)) return;
    if (is("no-probe") && probe) return;
    if (is("no-resend") && data && seen.frame.wdh.retx) return;
    if (is("no-reply") && data && op >= wire::Opcode::READ_DATA) return;
    if (is("ack-early") && ack) add(kWah + 1, 3, 1);
    if (is("hides-loss") && ack)
      std::fill_n(f.begin() + kHist, 4 * seen.frame.wah.hist_words, std::uint8_t{0xff});
    if (is("miscounts") && ack) {
      add(kWah + 4, 4, 1);
      add(kWah + 8, 4, 1);
    }
    if (is("no-echo") && ack) std::fill_n(f.begin() + kWah + 12, 4, std::uint8_t{0});
    if (is("no-credits") && ack) std::fill_n(f.begin() + kWah + 20, 2, std::uint8_t{0});
    if (ack) blocks(f, seen.frame);
    if (is("reuses-psn") && data && seen.frame.wdh.retx) add(kBth + 9, 3, -1);
    if (is("wrong-path")) add(kBth + 12, 1, 1);
    if (is("wrong-payload") && !seen.frame.payload.empty()) f[wire::kHdrDataBytes] ^= 1;
    if (is("new-probe-psn") && probe) add(kBth + 9, 3, probe_++);
    wire::reseal(f);
    if (is("bad-icrc")) f.back() ^= 1;
    if ((is("ack-late") && ack) || (is("gap-late") && lossy)) {
      e.time = body_->now() + kLate;
      late_.push_back(std::move(e));
      return;
    }
    if (is("doubles") && data) out.push_back(e);
    out.push_back(std::move(e));
  }

  void blocks(wire::Frame& f, const wire::Parsed& ack) const {
    std::vector<wire::Wab> told(ack.blocks.begin(), ack.blocks.begin() + ack.wah.blocks);
    if (is("block-early"))
      for (wire::Wab& b : told) b.base = (b.base + 1) & 0xffffff;
    if (is("block-dumb")) told.clear();
    if (is("block-rash") && told.empty()) told.push_back({ack.wth.path, ack.wth.epoch, ack.wah.base, 0, ~0u});
    if (is("block-early") || is("block-dumb") || is("block-rash")) tell(f, ack, told);
  }

  void completion(Event& e, std::vector<Event>& out) {
    if (is("never-completes")) return;
    if (is("always-ok")) e.completion.status = wire::Err::OK;
    out.push_back(std::move(e));
  }

  std::unique_ptr<Body> body_;
  std::string fault_;
  std::uint16_t incarnation_ = 0;
  std::vector<Event> late_;
  std::vector<Completion> early_;
  std::int64_t probe_ = 0;
};

}  // namespace

const Fault* find_fault(const std::string& name) {
  const auto* it =
      std::find_if(std::begin(kFaults), std::end(kFaults), [&](const Fault& f) { return name == f.name; });
  return it == std::end(kFaults) ? nullptr : it;
}

std::string fault_names() {
  std::string out;
  for (const Fault& f : kFaults) out += (out.empty() ? "" : " ") + std::string(f.name);
  return out;
}

std::unique_ptr<Body> make_wrong(std::unique_ptr<Body> body, const std::string& fault) {
  return std::make_unique<WrongBody>(std::move(body), fault);
}

}  // namespace weft::comply
