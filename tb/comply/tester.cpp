// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/tester.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <span>

#include "sw/ref/packet.h"
#include "tb/check/traffic.h"

namespace weft::comply {
namespace {

constexpr std::uint32_t kMagic = 0x54464557;
constexpr std::size_t kIp = 14, kBth = 42;
constexpr std::uint64_t kMask24 = 0xffffff;
constexpr std::size_t kShownFrames = 12;
constexpr std::size_t kGuard = 64;  // bytes around a region that nothing may touch

std::uint8_t pattern(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + at;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return static_cast<std::uint8_t>(x ^ x >> 31);
}

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

template <class Enum>
Enum by_name(const std::string& text) {
  for (unsigned n = 0; n < 256; ++n)
    if (const char* is = wire::name(static_cast<Enum>(n)); is != nullptr && text == is)
      return static_cast<Enum>(n);
  return static_cast<Enum>(0);  // the parser has looked
}
wire::Opcode opcode_by_name(const std::string& small) {
  for (unsigned n = 0; n < 256; ++n)
    if (const char* is = wire::name(static_cast<wire::Opcode>(n)); is != nullptr && small == lower(is))
      return static_cast<wire::Opcode>(n);
  return wire::Opcode::WRITE;  // "data": the parser has looked
}
std::string name_of(wire::Opcode op) {
  const char* n = wire::name(op);
  return n == nullptr ? fmt::format("opcode {:#x}", static_cast<unsigned>(op)) : lower(n);
}

std::string err_name(wire::Err e) {
  const char* n = wire::name(e);
  return n == nullptr ? fmt::format("error {}", static_cast<unsigned>(e)) : n;
}
std::string err_name(std::uint8_t e) {
  return err_name(static_cast<wire::Err>(e));
}

// History bits, newest first, without the ones behind the last 0.
std::string cut(std::string bits) {
  bits.resize(bits.find_last_of('0') + 1);
  return bits;
}
std::string hist_bits(std::span<const std::uint32_t> hist) {
  std::string bits;
  for (std::uint32_t word : hist)
    for (int i = 31; i >= 0; --i) bits += (word >> i & 1) != 0 ? '1' : '0';
  return cut(bits);
}

struct Failure {
  int line;
  std::string text;
};
struct Broken {  // in the line that runs
  std::string text;
};

struct Seen {  // a frame of the body
  Ps time = 0;
  std::uint32_t port = 0;
  wire::Frame bytes;
  wire::Parsed f;  // its payload points into bytes
  wire::Opcode op{};
};

// The tester as a receiver, for `auto ack`: what a path with reorder distance 0 must say.
struct RxPath {
  std::uint32_t base = 0;
  std::array<std::uint32_t, wire::kHistWords> hist{};
  std::uint32_t ce_bytes = 0, rx_bytes = 0, echo = 0;
  std::uint8_t epoch = 0;
  bool open = false;
};

class Run {
 public:
  Run(Body& body, const Script& script, const TestOptions& options)
      : body_(body), script_(script), options_(options) {}

  Outcome go() {
    Outcome out;
    try {
      begin();
      steps(script_.steps);
      finish();
    } catch (const Failure& f) {
      out.verdict = Verdict::kFail;
      out.text = fmt::format("{}:{}: {}", script_.file, f.line, f.text);
      if (!options_.log)
        for (const std::string& line : shown_) out.text += "\n    " + line;
    } catch (const Broken& b) {
      out.verdict = Verdict::kBroken;
      out.text = fmt::format("{}:{}: {}", script_.file, line_, b.text);
    }
    if (options_.log)
      for (const std::string& line : log_) out.text += "\n    " + line;
    out.took = body_.now() - start_;
    return out;
  }

 private:
  // -- numbers
  // ------------------------------------------------------------------------------------------------

  std::uint64_t number(const Expr& e) const {
    std::uint64_t sum = 0;
    for (const Expr::Term& t : e.terms) {
      std::uint64_t product = 1;
      for (const Expr::Factor& f : t.factors) product *= f.literal ? f.value : variable(f.name);
      sum = t.minus ? sum - product : sum + product;
    }
    return sum;
  }
  std::uint64_t variable(const std::string& name) const {
    if (name == "now") return static_cast<std::uint64_t>(body_.now() / kNs);
    const auto it = variables_.find(name);
    if (it != variables_.end()) return it->second;
    const std::size_t dot = name.find('.');
    const auto frame = frames_.find(name.substr(0, dot));
    if (dot != std::string::npos && frame != frames_.end()) {
      if (const auto v = field(frame->second, name.substr(dot + 1))) return *v;
      throw Failure{line_, fmt::format("{}: the frame has no such field", name)};
    }
    throw Failure{line_, fmt::format("{}: has no value here (its step was not run)", name)};
  }
  std::uint64_t number(const Statement& s, const char* key, std::uint64_t otherwise) const {
    const Value* v = s.arg(key);
    if (v == nullptr) return otherwise;
    const std::uint64_t value = number(v->lo);
    for (const Bounds& b : kBounds)
      if (std::strcmp(key, b.key) == 0) within(b, value);
    return value;
  }
  void within(const Bounds& b, std::uint64_t value) const {
    if (value < b.least || value > b.most)
      throw Failure{line_,
                    fmt::format("{} = {}: expected a number of {} to {}", b.key, value, b.least, b.most)};
  }
  std::uint32_t psn(const Expr& e, std::uint64_t first) const {
    return static_cast<std::uint32_t>((number(e) + (e.relative ? first : 0)) & kMask24);
  }
  std::string word(const Statement& s, const char* key, const char* otherwise) const {
    const Value* v = s.arg(key);
    return v == nullptr ? otherwise : v->text;
  }

  // -- what it costs
  // -----------------------------------------------------------------------------------------

  void spend(std::uint64_t steps) {
    if (steps > kMostSteps - steps_)
      throw Failure{line_, fmt::format("the script takes more than {} steps (statements, frames either way, "
                                       "completions, microseconds)",
                                       kMostSteps)};
    steps_ += steps;
  }
  void hold(std::uint64_t bytes) {
    if (bytes > kMostBytes - bytes_)
      throw Failure{line_, fmt::format("the script takes more than {} MiB of frames, regions and memory "
                                       "filled or checked",
                                       kMostBytes >> 20)};
    bytes_ += bytes;
  }

  // -- set-up
  // ---------------------------------------------------------------------------------------------------

  std::uint64_t setup_number(const char* key, std::uint64_t otherwise) const {
    for (const Arg& a : script_.setup) {
      if (a.key != key) continue;
      const std::uint64_t value = number(a.value.lo);
      for (const Bounds& b : kSetupBounds)
        if (a.key == b.key) within(b, value);
      return value;
    }
    return otherwise;
  }
  Ps setup_time(const char* key, Ps otherwise) const {
    for (const Arg& a : script_.setup)
      if (a.key == key) {
        Ps t = 0;
        if (!parse_time(a.value.text, &t))
          throw Failure{script_.setup_line, fmt::format("setup {}: expected a time such as 20us", key)};
        return t;
      }
    return otherwise;
  }
  std::uint32_t setup_caps(std::uint32_t otherwise) const {
    for (const Arg& a : script_.setup) {
      if (a.key != "caps") continue;
      std::uint32_t caps = 0;
      std::size_t at = 0;
      while (at <= a.value.text.size()) {
        const std::size_t end = std::min(a.value.text.find('+', at), a.value.text.size());
        const std::string one = a.value.text.substr(at, end - at);
        if (one != "none") caps |= 1u << static_cast<unsigned>(by_name<wire::Cap>(one));
        at = end + 1;
      }
      return caps;
    }
    return otherwise;
  }

  void begin() {
    line_ = script_.setup_line;
    start_ = spent_to_ = body_.now();
    setup_.ports = static_cast<std::uint32_t>(setup_number("ports", 1));
    setup_.paths = static_cast<std::uint32_t>(setup_number("paths", 1));
    setup_.streams = static_cast<std::uint32_t>(setup_number("streams", 1));
    setup_.mtu = static_cast<std::uint32_t>(setup_number("mtu", 1024));
    setup_.distance = static_cast<std::uint32_t>(setup_number("distance", 0));
    setup_.rtt_init = setup_time("rtt_init", setup_.rtt_init);
    setup_.probe_min = setup_time("probe_min", setup_.probe_min);
    setup_.give_up = setup_time("give_up", setup_.give_up);
    setup_.packet_life = setup_time("packet_life", setup_.packet_life);
    setup_.retries = static_cast<std::uint32_t>(setup_number("retries", setup_.retries));
    for (const Arg& a : script_.setup)
      if (a.key == "body_psn") setup_.psn = static_cast<std::uint32_t>(number(a.value.lo) & kMask24);

    offer_ = wire::Hello{};
    offer_.magic = kMagic;
    offer_.version = wire::kWeftVersion;
    offer_.incarnation = static_cast<std::uint16_t>(setup_number("incarnation", 7));
    offer_.caps = setup_caps(0xff);
    offer_.conn = static_cast<std::uint32_t>(setup_number("conn", 5));
    offer_.psn = static_cast<std::uint32_t>(setup_number("psn", 0x100) & kMask24);
    offer_.ports = static_cast<std::uint8_t>(setup_.ports);
    offer_.paths = static_cast<std::uint8_t>(setup_.paths);
    offer_.streams = static_cast<std::uint16_t>(setup_.streams);
    offer_.mtu = static_cast<std::uint16_t>(setup_.mtu);
    offer_.line = static_cast<std::uint32_t>(setup_number("line", 100'000));
    variables_ = {{"peer.psn", offer_.psn}, {"peer.conn", offer_.conn}, {"mtu", setup_.mtu}};

    const bool refusals = !script_.steps.empty() && script_.steps.front().what == Do::kRefuse;
    if (refusals) return;
    auto answer = body_.open(setup_, offer_);
    if (!answer.ok()) throw Broken{answer.error()};
    hello_ = answer.value();
    if (hello_.refusal != wire::Refusal::NONE)
      throw Failure{script_.setup_line,
                    fmt::format("the body refuses the connection: {}", refusal_text(hello_.refusal))};
    // Both directions use one incarnation, the larger of the two.
    if (static_cast<std::int16_t>(hello_.incarnation - offer_.incarnation) < 0)
      throw Failure{script_.setup_line,
                    fmt::format("the body answers with incarnation {}, expected {} or a later one",
                                hello_.incarnation, offer_.incarnation)};
    variables_["incarnation"] = hello_.incarnation;
    variables_["port1"] = body_.stride(setup_);
    variables_["body.psn"] = hello_.psn;
    variables_["body.conn"] = hello_.conn;
    connected_ = true;
    if ((script_.abilities & kCounters) != 0) counted_ = drops();
    // Regions and requests first: making them may take a body time, which then is not the script's.
    regions(script_.steps);
    prepare(script_.steps);
    start_ = spent_to_ = body_.now();
  }
  static std::string refusal_text(wire::Refusal r) {
    const char* n = wire::name(r);
    return n == nullptr ? fmt::format("reason {}", static_cast<unsigned>(r)) : n;
  }

  void regions(const std::vector<Statement>& all) {
    for (const Statement& s : all) {
      if (s.what != Do::kRegion) continue;
      line_ = s.line;
      const std::uint64_t bytes = number(s, "len", 0);
      hold(bytes);
      const auto rights = static_cast<std::uint8_t>(
          number(s, "rights", ref::kRemoteRead | ref::kRemoteWrite | ref::kRemoteAtomic));
      auto r = body_.region(bytes, rights);
      if (!r.ok()) throw Broken{r.error()};
      variables_[s.word] = r.value().va;
      variables_[s.word + ".key"] = r.value().rkey;
      placed_.push_back({s.word, r.value().va, bytes});
      const std::vector<std::uint8_t> guard(kGuard, kGuardByte);
      check(body_.write(r.value().va - kGuard, guard));
      check(body_.write(r.value().va + bytes, guard));
    }
  }
  void prepare(const std::vector<Statement>& all) {
    for (const Statement& s : all) {
      if (s.what == Do::kPost || s.what == Do::kBodyWait) {
        line_ = s.line;
        if (Status st = body_.prepare(post_of(s)); !st.ok()) throw Broken{st.text()};
      } else if (s.what == Do::kUnordered) {
        prepare(s.inner);
      } else if (s.what == Do::kRepeat && posts(s.inner)) {
        repeat(s, [this](const Statement& r) { prepare(r.inner); });
      }
    }
  }
  static bool posts(const std::vector<Statement>& all) {
    return std::any_of(all.begin(), all.end(), [](const Statement& s) {
      return s.what == Do::kPost || s.what == Do::kBodyWait || posts(s.inner);
    });
  }
  template <class Fn>
  void repeat(const Statement& s, Fn&& once) {
    const std::uint64_t times = number(s.where);
    for (std::uint64_t i = 0; i < times; ++i) {
      line_ = s.line;
      spend(1);
      if (!s.word.empty()) variables_[s.word] = i;
      once(s);
    }
  }

  // -- steps
  // ----------------------------------------------------------------------------------------------------

  void steps(const std::vector<Statement>& all) {
    for (const Statement& s : all) {
      line_ = s.line;
      spend(1);
      step(s);
    }
  }

  void step(const Statement& s) {
    switch (s.what) {
      case Do::kRegion: break;  // made at the start
      case Do::kFill: fill(s); break;
      case Do::kCheck: check_memory(s); break;
      case Do::kLet: variables_[s.word] = number(s.where); break;
      case Do::kWait: pass(body_.now() + s.time); break;
      case Do::kAt: pass(start_ + s.time); break;
      case Do::kSend: send(s); break;
      case Do::kSendHex: out(static_cast<std::uint32_t>(number(s, "port", 0)), s.bytes, false); break;
      case Do::kExpect: expect(s); break;
      case Do::kExpectNone: expect_none(s); break;
      case Do::kExpectCompletion: expect_completion(s); break;
      case Do::kUnordered: unordered(s); break;
      case Do::kRepeat: repeat(s, [this](const Statement& r) { steps(r.inner); }); break;
      case Do::kAuto:
        auto_ack_ = s.word == "ack";
        auto_credits_ = static_cast<std::uint16_t>(number(s, "credits", 0));
        auto_path_ =
            s.arg("path") == nullptr ? std::nullopt : std::optional<std::uint64_t>(number(s, "path", 0));
        break;
      case Do::kPost:
      case Do::kBodyWait: {
        const auto r = body_.post(post_of(s));
        if (!r.ok()) throw Broken{r.error()};
        gives(s, r.value());
        note(fmt::format("{} body posts {} id {}", stamp(body_.now()), s.what == Do::kPost ? s.word : "wait",
                         number(s, "id", 0)));
        break;
      }
      case Do::kRecv: {
        const Value* at = s.arg("at");
        const auto r = body_.post_recv(static_cast<std::uint16_t>(number(s, "stream", 0)), number(s, "id", 0),
                                       {at == nullptr ? 0 : number(at->lo), 0},
                                       static_cast<std::uint32_t>(number(s, "len", 0)));
        if (!r.ok()) throw Broken{r.error()};
        gives(s, r.value());
        break;
      }
      case Do::kClose: check(body_.close()); break;
      case Do::kSport: check(body_.change_sport(path_of(s))); break;
      case Do::kState: state(s); break;
      case Do::kCounters: counters(s); break;
      case Do::kRefuse: refuse(s); break;
      case Do::kIgnore: (s.word == "data" ? ignore_data_ : ignore_completions_) = true; break;
    }
  }
  void gives(const Statement& s, wire::Err got) const {
    const std::string want = word(s, "gives", "OK");
    if (want != err_name(got))
      throw Failure{s.line, fmt::format("the body answers {}, expected {}", err_name(got), want)};
  }
  void check(const Status& s) const {
    if (!s.ok()) throw Broken{s.text()};
  }

  Post post_of(const Statement& s) const {
    Post p;
    p.stream = static_cast<std::uint16_t>(number(s, "stream", 0));
    p.wait = s.what == Do::kBodyWait;
    ref::WorkRequest& r = p.request;
    static const std::map<std::string, ref::WrOp> kOps = {{"send", ref::WrOp::kSend},
                                                          {"send_imm", ref::WrOp::kSendImm},
                                                          {"write", ref::WrOp::kWrite},
                                                          {"write_imm", ref::WrOp::kWriteImm},
                                                          {"write_signal", ref::WrOp::kWriteSignal},
                                                          {"read", ref::WrOp::kRead},
                                                          {"fetch_add", ref::WrOp::kFetchAdd},
                                                          {"compare_swap", ref::WrOp::kCompareSwap}};
    if (!p.wait) r.op = kOps.at(s.word);
    r.id = number(s, "id", 0);
    r.local_va = number(s, "local", 0);
    r.local_rkey = static_cast<std::uint32_t>(number(s, "local_key", 0));
    r.length = static_cast<std::uint32_t>(
        number(s, "len", r.op == ref::WrOp::kFetchAdd || r.op == ref::WrOp::kCompareSwap ? 8 : 0));
    r.remote_va = number(s, "to", 0);
    r.rkey = static_cast<std::uint32_t>(number(s, "key", 0));
    r.value = static_cast<std::uint32_t>(number(s, "value", 0));
    r.sem = static_cast<std::uint16_t>(number(s, "sem", 0));
    r.operand = number(s, "operand", 0);
    r.compare = number(s, "compare", 0);
    return p;
  }

  std::vector<std::uint8_t> bytes_of(const Value& v, std::uint64_t count) {
    hold(count);
    std::vector<std::uint8_t> b(count);
    if (v.kind != Value::Kind::kPattern) return b;
    const std::uint64_t seed = number(v.lo), at = number(v.hi);
    for (std::uint64_t i = 0; i < count; ++i) b[i] = pattern(seed, at + i);
    return b;
  }
  void fill(const Statement& s) {
    check(body_.write(number(s.where), bytes_of(*s.arg("bytes"), number(s, "len", 0))));
  }
  void check_memory(const Statement& s) {
    const std::uint64_t at = number(s.where);
    const auto want = bytes_of(*s.arg("bytes"), number(s, "len", 0));
    compare(s.line, at, want, "as the script says");
  }
  void compare(int line, std::uint64_t at, const std::vector<std::uint8_t>& want, const char* why) {
    auto got = body_.read(at, want.size());
    if (!got.ok()) throw Broken{got.error()};
    for (std::size_t i = 0; i < want.size(); ++i)
      if (got.value()[i] != want[i])
        throw Failure{line, fmt::format("memory at {:#x}, byte {} of {}: {:#04x}, expected {:#04x} {}", at, i,
                                        want.size(), got.value()[i], want[i], why)};
  }

  // -- time and frames
  // ------------------------------------------------------------------------------------------

  std::string stamp(Ps t) const { return fmt::format("{:9.3f} us", static_cast<double>(t - start_) / 1e6); }
  void note(std::string line) {
    if (options_.log) log_.push_back(line);
    shown_.push_back(std::move(line));
    if (shown_.size() > kShownFrames) shown_.pop_front();
  }

  // Lets time pass to `until` or the first event, and no further than the script may.
  void pump(Ps until) {
    std::vector<Event> events;
    const Ps end = spent_to_ + static_cast<Ps>(kMostSteps - steps_ + 1) * kUs;
    if (Status s = body_.run(std::min(until, end), events); !s.ok()) throw Broken{s.text()};
    const Ps passed = (body_.now() - spent_to_) / kUs;
    spent_to_ += passed * kUs;
    spend(static_cast<std::uint64_t>(passed));
    for (Event& e : events) {
      spend(1);
      hold(e.frame.size());
      if (e.is_frame)
        came(e);
      else
        completed(e);
    }
  }
  void pass(Ps until) {
    while (body_.now() < until) pump(until);
  }
  void out(std::uint32_t port, const wire::Frame& frame, bool mac_error) {
    spend(1);
    hold(frame.size());
    note(fmt::format("{} --> {}", stamp(body_.now()), describe(frame)));
    body_.send(port, frame, mac_error);
  }

  void completed(const Event& e) {
    const Completion& c = e.completion;
    note(fmt::format("{} body completes {}", stamp(e.time), text_of(c)));
    completions_.push_back(e);
  }
  static const char* kind_of(ref::Completed c) {
    return c == ref::Completed::kRequest ? "request" : c == ref::Completed::kRecv ? "recv" : "connection";
  }
  static std::string text_of(const Completion& c) {
    return fmt::format("{} id {} {}{}", kind_of(c.what), c.id, err_name(c.status),
                       c.imm ? fmt::format(" imm {:#x}", *c.imm) : "");
  }

  // What holds for every frame, whatever the script says.
  void came(Event& e) {
    note(fmt::format("{} <-- {}", stamp(e.time), describe(e.frame)));
    wire::RxPort port;
    port.mac = tb::node_mac(kTesterNode, e.port);
    port.ip = tb::node_ip(kTesterNode, e.port);
    port.whole_protocol = true;
    Seen seen;
    seen.time = e.time;
    seen.port = e.port;
    seen.bytes = std::move(e.frame);
    const wire::ParseResult r = wire::parse(seen.bytes, port);
    if (!r) throw Failure{line_, fmt::format("a frame of the body is malformed: {}", wire::name(*r.drop))};
    seen.f = r.frame;
    seen.op = static_cast<wire::Opcode>(r.frame.bth.opcode);
    if (connected_ && seen.f.bth.dqpn != offer_.conn)
      throw Failure{line_,
                    fmt::format("a frame for connection {}, expected {}", seen.f.bth.dqpn, offer_.conn)};
    if (connected_ && seen.f.wth.incarnation != hello_.incarnation)
      throw Failure{line_, fmt::format("a frame of incarnation {}, expected {}", seen.f.wth.incarnation,
                                       hello_.incarnation)};
    if (seen.f.payload.size() > setup_.mtu)
      throw Failure{line_,
                    fmt::format("a payload of {} bytes, the MTU is {}", seen.f.payload.size(), setup_.mtu)};
    if (seen.f.layout == wire::Layout::ACK) look_at_blocks(seen);
    if (auto_ack_) acknowledge(seen);
    const auto c = klass(seen.op);
    queue_[c].push_back(std::move(seen));
  }
  // Blocks only where both ends know them, each of another path of the port.
  void look_at_blocks(const Seen& s) const {
    if (s.f.wah.blocks == 0 || !connected_) return;
    constexpr std::uint32_t kBlocks = 1u << static_cast<unsigned>(wire::Cap::BLOCKS);
    if ((offer_.caps & hello_.caps & kBlocks) == 0)
      throw Failure{line_, fmt::format("an ack with {} blocks, and BLOCKS is no capability of both ends",
                                       s.f.wah.blocks)};
    std::set<std::uint8_t> told{s.f.wth.path};
    for (unsigned i = 0; i < s.f.wah.blocks; ++i) {
      const std::uint8_t path = s.f.blocks[i].path;
      if (path / body_.stride(setup_) != s.port)
        throw Failure{line_, fmt::format("an ack at port {} with a block of path {}", s.port, path)};
      if (!told.insert(path).second)
        throw Failure{line_, fmt::format("an ack that tells of path {} twice", path)};
    }
  }
  enum Klass { kData, kProbe, kAck, kFence, kAnswer, kKlasses };
  static Klass klass(wire::Opcode op) {
    switch (op) {
      case wire::Opcode::PROBE: return kProbe;
      case wire::Opcode::ACK: return kAck;
      case wire::Opcode::FENCE: return kFence;
      case wire::Opcode::FENCE_ANSWER: return kAnswer;
      default: return kData;
    }
  }

  void acknowledge(const Seen& s) {
    const Klass k = klass(s.op);
    if ((k != kData && k != kProbe) || (auto_path_ && *auto_path_ != s.f.wth.path)) return;
    RxPath& p = rx_[s.f.wth.path];
    if (!p.open || (s.f.wth.epoch != p.epoch)) {
      p = RxPath{};
      p.open = true;
      p.epoch = s.f.wth.epoch;
      p.base = p.epoch == 0 ? hello_.psn : 0;
      p.hist.fill(0xffffffff);
    }
    const auto ahead = static_cast<std::int32_t>((s.f.bth.psn - p.base) << 8) >> 8;
    if (ahead >= 0) {
      // Holes are settled as lost the moment they show.
      for (std::int32_t i = 0; i <= ahead; ++i) {
        for (std::size_t w = wire::kHistWords - 1; w > 0; --w)
          p.hist[w] = p.hist[w] >> 1 | p.hist[w - 1] << 31;
        p.hist[0] = p.hist[0] >> 1 | (i == ahead ? 1u << 31 : 0);
      }
      p.base = (s.f.bth.psn + 1) & kMask24;
      if (k == kData) {
        const auto bytes = static_cast<std::uint32_t>(s.f.payload.size()) + wire::kWinOverhead;
        p.rx_bytes += bytes;
        if (s.f.ipv4.ecn == wire::kEcnCe) p.ce_bytes += bytes;
      }
      p.echo = s.f.wth.timestamp;
    }
    wire::Wah wah{};
    wah.hist_words = static_cast<std::uint8_t>((hist_bits(p.hist).size() + 31) / 32);
    wah.base = p.base;
    wah.ce_bytes = p.ce_bytes;
    wah.rx_bytes = p.rx_bytes;
    wah.echo = p.echo;
    wah.share = line_share();
    wah.credits = auto_credits_;
    const wire::Wth wth{s.f.wth.path, s.f.wth.epoch, hello_.incarnation, 0};
    wire::Route route = route_of(s.port, 0);
    out(s.port,
        wire::build_ack(route, wire::make_bth(wire::Opcode::ACK, hello_.conn, s.f.wdh.stream), wth, wah,
                        p.hist),
        false);
  }
  std::uint32_t line_share() const {
    return static_cast<std::uint32_t>(std::uint64_t{offer_.line} * 65536 / 8000);
  }

  static wire::Route route_of(std::uint32_t port, std::uint8_t ecn) {
    wire::Route r;
    r.smac = tb::node_mac(kTesterNode, port);
    r.dmac = tb::node_mac(kBodyNode, port);
    r.sip = tb::node_ip(kTesterNode, port);
    r.dip = tb::node_ip(kBodyNode, port);
    r.sport = 0xd000;
    r.ecn = ecn;
    return r;
  }

  void send(const Statement& s) {
    const wire::Opcode op = opcode_by_name(s.word);
    const wire::Layout layout = *wire::layout_of(static_cast<std::uint8_t>(op));
    const auto path = static_cast<std::uint8_t>(number(s, "path", 0));
    const auto port = static_cast<std::uint32_t>(number(s, "port", path / body_.stride(setup_)));
    wire::Route route = route_of(
        port, static_cast<std::uint8_t>(number(s, "ecn", layout == wire::Layout::ACK ? 0 : wire::kEcnEct0)));
    route.sport = static_cast<std::uint16_t>(number(s, "sport", route.sport + path));
    const auto epoch = static_cast<std::uint8_t>(number(s, "epoch", 0));
    const wire::Wth wth{
        path, epoch, static_cast<std::uint16_t>(number(s, "incarnation", hello_.incarnation)),
        static_cast<std::uint32_t>(number(s, "ts", static_cast<std::uint64_t>(body_.now() / kNs)))};
    wire::Bth bth = wire::make_bth(op, static_cast<std::uint32_t>(number(s, "conn", hello_.conn)), 0);
    if (const Value* v = s.arg("psn")) bth.psn = psn(v->lo, offer_.psn);
    wire::Frame f;
    if (layout == wire::Layout::DATA) {
      wire::Wdh wdh{};
      wdh.more = number(s, "more", 0) != 0;
      wdh.retx = number(s, "retx", 0) != 0;
      wdh.stream = static_cast<std::uint16_t>(number(s, "stream", 0));
      wdh.va = number(s, "va", 0);
      wdh.rkey = static_cast<std::uint32_t>(number(s, "rkey", 0));
      wdh.msg_no = static_cast<std::uint16_t>(number(s, "msg", 0));
      wdh.sem = static_cast<std::uint16_t>(number(s, "sem", 0));
      wdh.value = static_cast<std::uint32_t>(number(s, "value", 0));
      std::vector<std::uint8_t> payload = payload_of(s, op);
      wdh.msg_len = static_cast<std::uint32_t>(
          number(s, "msg_len", op == wire::Opcode::READ ? number(s, "len", 0) : payload.size()));
      f = wire::build_data(route, bth, wth, wdh, payload);
    } else if (layout == wire::Layout::ACK) {
      wire::Wah wah{};
      std::array<std::uint32_t, wire::kHistWords> hist;
      hist.fill(0xffffffff);
      const std::string bits = word(s, "hist", "");
      for (std::size_t i = 0; i < bits.size(); ++i)
        if (bits[i] == '0') hist[i / 32] &= ~(1u << (31 - i % 32));
      wah.hist_words = static_cast<std::uint8_t>((bits.size() + 31) / 32);
      wah.base = psn(s.arg("base")->lo, epoch == 0 ? hello_.psn : 0);
      wah.ce_bytes = static_cast<std::uint32_t>(number(s, "ce_bytes", 0));
      wah.rx_bytes = static_cast<std::uint32_t>(number(s, "rx_bytes", 0));
      wah.echo = static_cast<std::uint32_t>(number(s, "echo", 0));
      wah.share = static_cast<std::uint32_t>(number(s, "share", line_share()));
      wah.credits = static_cast<std::uint16_t>(number(s, "credits", 0));
      wah.status = static_cast<std::uint8_t>(by_name<wire::Err>(word(s, "status", "OK")));
      bth.psn = static_cast<std::uint32_t>(number(s, "stream", 0));
      f.resize(wire::kMaxAckFrameBytes);
      f.resize(wire::write_ack(f.data(), route, bth, wth, wah, hist, blocks_of(s)));
    } else {
      f = wire::build_probe(route, bth, wth);
    }
    spoil(s, layout, f);
    const std::uint64_t copies = number(s, "copies", 1);
    for (std::uint64_t i = 0; i < copies; ++i) out(port, f, number(s, "mac_error", 0) != 0);
  }

  // Blocks in the order in which the script names them.
  std::vector<wire::Wab> blocks_of(const Statement& s) const {
    std::vector<wire::Wab> out;
    for (const Arg& a : s.args) {
      const auto key = block_key(a.key);
      if (!key || key->second != "base") continue;
      const std::string of = fmt::format("p{}.", key->first);
      wire::Wab b{};
      b.path = static_cast<std::uint8_t>(number(s, (of + "path").c_str(), key->first));
      b.epoch = static_cast<std::uint8_t>(number(s, (of + "epoch").c_str(), 0));
      b.base = psn(a.value.lo, b.epoch == 0 ? hello_.psn : 0);
      b.ce_bytes = static_cast<std::uint32_t>(number(s, (of + "ce_bytes").c_str(), 0) & kMask24);
      b.hist = ~0u;
      const std::string bits = word(s, (of + "hist").c_str(), "");
      for (std::size_t i = 0; i < bits.size(); ++i)
        if (bits[i] == '0') b.hist &= ~(1u << (31 - i));
      out.push_back(b);
    }
    return out;
  }

  std::vector<std::uint8_t> payload_of(const Statement& s, wire::Opcode op) {
    if (op == wire::Opcode::READ) {
      wire::ReadRequest r{};
      r.va = number(s, "to", 0);
      r.rkey = static_cast<std::uint32_t>(number(s, "to_key", 0));
      std::vector<std::uint8_t> b(wire::ReadRequest::kBytes);
      r.pack(b.data());
      return b;
    }
    if (op == wire::Opcode::FETCH_ADD || op == wire::Opcode::COMPARE_SWAP) {
      wire::AtomicRequest r{};
      r.va = number(s, "to", 0);
      r.rkey = static_cast<std::uint32_t>(number(s, "to_key", 0));
      r.operand = number(s, "operand", 0);
      r.compare = number(s, "compare", 0);
      std::vector<std::uint8_t> b(wire::AtomicRequest::kBytes);
      r.pack(b.data());
      return b;
    }
    const std::uint64_t bytes = number(s, "len", 0);
    const Value* v = s.arg("bytes");
    return bytes_of(v == nullptr ? Value{} : *v, bytes);
  }

  // Makes a frame wrong. Unless the script says seal=no the checksums are right again afterwards, so that
  // only the one thing is wrong.
  void spoil(const Statement& s, wire::Layout layout, wire::Frame& f) const {
    bool changed = false;
    if (const Value* v = s.arg("opcode")) f[kBth] = static_cast<std::uint8_t>(number(v->lo)), changed = true;
    if (const Value* v = s.arg("pad")) {
      f[kBth + 1] = static_cast<std::uint8_t>((f[kBth + 1] & ~0x30u) | (number(v->lo) & 3) << 4);
      changed = true;
    }
    if (const Value* v = s.arg("tver")) {
      f[kBth + 1] = static_cast<std::uint8_t>((f[kBth + 1] & 0xf0u) | (number(v->lo) & 15));
      changed = true;
    }
    if (const Value* v = s.arg("version")) {
      f[layout == wire::Layout::DATA ? wire::kHdrProbeBytes + 1 : wire::kHdrAckBytes - 1] =
          static_cast<std::uint8_t>(number(v->lo));
      changed = true;
    }
    if (const Value* v = s.arg("words")) {
      f[wire::kHdrProbeBytes] =
          static_cast<std::uint8_t>((f[wire::kHdrProbeBytes] & 0x0fu) | (number(v->lo) & 15) << 4);
      changed = true;
    }
    if (const Value* v = s.arg("blocks")) {
      f[wire::kHdrProbeBytes] =
          static_cast<std::uint8_t>((f[wire::kHdrProbeBytes] & 0xf0u) | (number(v->lo) & 15));
      changed = true;
    }
    if (const Value* v = s.arg("set")) {
      const std::size_t colon = v->text.find(':');
      const std::size_t at = std::stoul(v->text.substr(0, colon));
      const std::size_t bytes = (v->text.size() - colon - 1) / 2;
      if (at + bytes > f.size())
        throw Failure{s.line, fmt::format("set = {}: the frame has {} bytes", v->text, f.size())};
      for (std::size_t i = 0; i < bytes; ++i)
        f[at + i] = static_cast<std::uint8_t>(std::stoul(v->text.substr(colon + 1 + 2 * i, 2), nullptr, 16));
      changed = true;
    }
    if (changed && word(s, "seal", "yes") == "yes") wire::reseal(f);
    f.resize(f.size() - std::min<std::size_t>(f.size(), number(s, "cut", 0)));
    f.resize(f.size() + number(s, "grow", 0));
    const std::string corrupt = word(s, "corrupt", "");
    if (corrupt == "icrc") f.back() ^= 1;
    if (corrupt == "payload") f[wire::kHdrDataBytes] ^= 1;
    if (corrupt == "ip") f[kIp + 10] ^= 1;
  }

  // -- what is expected
  // -----------------------------------------------------------------------------------------

  // What an ack tells of a path, as its own or in a block.
  struct Told {
    std::uint8_t epoch;
    std::uint32_t base, ce_bytes;
    std::string hist;
  };
  static std::optional<Told> told(const Seen& s, std::uint8_t path) {
    if (path == s.f.wth.path)
      return Told{s.f.wth.epoch, s.f.wah.base, static_cast<std::uint32_t>(s.f.wah.ce_bytes & kMask24),
                  hist_bits(s.f.hist)};
    for (unsigned i = 0; i < s.f.wah.blocks; ++i)
      if (const wire::Wab& b = s.f.blocks[i]; b.path == path)
        return Told{b.epoch, b.base, b.ce_bytes, hist_bits({&b.hist, 1})};
    return std::nullopt;
  }

  std::optional<std::uint64_t> field(const Seen& s, const std::string& key) const {
    const wire::Parsed& f = s.f;
    if (key == "path") return f.wth.path;
    if (key == "epoch") return f.wth.epoch;
    if (key == "incarnation") return f.wth.incarnation;
    if (key == "ts") return f.wth.timestamp;
    if (key == "conn") return f.bth.dqpn;
    if (key == "port") return s.port;
    if (key == "sport") return f.udp.sport;
    if (key == "ecn") return f.ipv4.ecn;
    if (f.layout == wire::Layout::ACK) {
      if (key == "base") return f.wah.base;
      if (key == "words") return f.wah.hist_words;
      if (key == "blocks") return f.wah.blocks;
      if (const auto of = block_key(key)) {
        const auto path = told(s, of->first);
        if (!path) return std::nullopt;
        if (of->second == "base") return path->base;
        if (of->second == "epoch") return path->epoch;
        if (of->second == "ce_bytes") return path->ce_bytes;
      }
      if (key == "ce_bytes") return f.wah.ce_bytes;
      if (key == "rx_bytes") return f.wah.rx_bytes;
      if (key == "echo") return f.wah.echo;
      if (key == "share") return f.wah.share;
      if (key == "credits") return f.wah.credits;
      if (key == "stream") return f.bth.psn;
      return std::nullopt;
    }
    if (key == "psn") return f.bth.psn;
    if (f.layout != wire::Layout::DATA) return std::nullopt;
    if (key == "stream") return f.wdh.stream;
    if (key == "va") return f.wdh.va;
    if (key == "rkey") return f.wdh.rkey;
    if (key == "msg") return f.wdh.msg_no;
    if (key == "msg_len") return f.wdh.msg_len;
    if (key == "value") return f.wdh.value;
    if (key == "sem") return f.wdh.sem;
    if (key == "more") return f.wdh.more;
    if (key == "retx") return f.wdh.retx;
    if (key == "len") return f.payload.size();
    const wire::Opcode op = s.op;
    if (op == wire::Opcode::READ && f.payload.size() == wire::ReadRequest::kBytes) {
      const auto r = wire::ReadRequest::unpack(f.payload.data());
      if (key == "to") return r.va;
      if (key == "to_key") return r.rkey;
    }
    if ((op == wire::Opcode::FETCH_ADD || op == wire::Opcode::COMPARE_SWAP) &&
        f.payload.size() == wire::AtomicRequest::kBytes) {
      const auto r = wire::AtomicRequest::unpack(f.payload.data());
      if (key == "to") return r.va;
      if (key == "to_key") return r.rkey;
      if (key == "operand") return r.operand;
      if (key == "compare") return r.compare;
    }
    return std::nullopt;
  }
  static std::uint64_t width(const std::string& name) {
    const auto block = block_key(name);
    const std::string& key = block ? block->second : name;
    if (block && key == "ce_bytes") return kMask24;
    if (key == "psn" || key == "base" || key == "conn") return kMask24;
    if (key == "path" || key == "epoch") return 0xff;
    if (key == "incarnation" || key == "msg" || key == "credits" || key == "stream" || key == "sem" ||
        key == "sport")
      return 0xffff;
    if (key == "va" || key == "to" || key == "operand" || key == "compare") return ~std::uint64_t{0};
    return 0xffffffff;
  }

  // Empty: the frame is what the statement says; else the first thing that is not.
  std::string differs(const Statement& s, const Seen& seen) {
    if (s.word != "data" && seen.op != opcode_by_name(s.word))
      return fmt::format("it is a {}, expected {}", name_of(seen.op), s.word);
    for (const Arg& a : s.args) {
      if (a.value.kind == Value::Kind::kAny) continue;
      if (a.key == "op") {
        if (name_of(seen.op) != a.value.text)
          return fmt::format("op is {}, expected {}", name_of(seen.op), a.value.text);
      } else if (a.key == "status") {
        if (a.value.text != err_name(seen.f.wah.status))
          return fmt::format("status is {}, expected {}", err_name(seen.f.wah.status), a.value.text);
      } else if (a.key == "hist") {
        const std::string want = cut(a.value.text);
        if (hist_bits(seen.f.hist) != want)
          return fmt::format("hist is '{}', expected '{}' (ones behind it left out)", hist_bits(seen.f.hist),
                             want);
      } else if (const auto of = block_key(a.key); of && of->second == "hist") {
        const auto path = told(seen, of->first);
        if (!path) return fmt::format("it tells nothing of path {}", of->first);
        if (path->hist != cut(a.value.text))
          return fmt::format("{} is '{}', expected '{}' (ones behind it left out)", a.key, path->hist,
                             cut(a.value.text));
      } else if (a.key == "bytes") {
        const auto want = bytes_of(a.value, seen.f.payload.size());
        for (std::size_t i = 0; i < want.size(); ++i)
          if (seen.f.payload[i] != want[i])
            return fmt::format("byte {} of the payload is {:#04x}, expected {:#04x}", i, seen.f.payload[i],
                               want[i]);
      } else if (std::string why = number_differs(a, seen); !why.empty()) {
        return why;
      }
    }
    return {};
  }
  std::string number_differs(const Arg& a, const Seen& seen) const {
    const std::uint64_t mask = width(a.key);
    // A body counts its PSNs from its own first, and acks count the tester's.
    const auto of = block_key(a.key);
    const std::uint64_t first = a.key == "base" || of ? offer_.psn : hello_.psn;
    const auto value = [&](const Expr& e) { return (number(e) + (e.relative ? first : 0)) & mask; };
    const auto got = field(seen, a.key);
    if (!got) return of ? fmt::format("it tells nothing of path {}", of->first) : "it has no " + a.key;
    const std::uint64_t lo = value(a.value.lo);
    const auto shown = [&](std::uint64_t v) {
      return mask >= 0xffffff ? fmt::format("{:#x}", v) : fmt::format("{}", v);
    };
    switch (a.value.kind) {
      case Value::Kind::kNot:
        return *got != lo ? "" : fmt::format("{} is {}, expected any other", a.key, shown(*got));
      case Value::Kind::kRange: {
        const std::uint64_t hi = value(a.value.hi);  // may have wrapped
        if (((*got - lo) & mask) <= ((hi - lo) & mask)) return {};
        return fmt::format("{} is {}, expected {} to {}", a.key, shown(*got), shown(lo), shown(hi));
      }
      default: return *got == lo ? "" : fmt::format("{} is {}, expected {}", a.key, shown(*got), shown(lo));
    }
  }

  // Data packets come in order and each is expected; of the others, those that do not fit are passed over
  // unless the script says "next", since acks and probes may be more than the least.
  void expect(const Statement& s) {
    std::deque<Seen>& q = queue_[s.word == "data" ? kData : klass(opcode_by_name(s.word))];
    const bool strict = s.strict || &q == &queue_[kData];
    const Ps until = body_.now() + s.time;
    std::string last;
    for (;;) {
      while (!q.empty()) {
        Seen seen = std::move(q.front());
        q.pop_front();
        const std::string why = seen.time <= until ? differs(s, seen) : "it came too late";
        if (why.empty()) {
          keep(s, std::move(seen));
          return;
        }
        if (strict) throw Failure{s.line, fmt::format("the next {} of the body: {}", s.word, why)};
        last = why;
      }
      if (body_.now() >= until)
        throw Failure{s.line, fmt::format("no such {} within {}{}", s.word, time_text(s.time),
                                          last.empty() ? "" : fmt::format(" (the last one: {})", last))};
      pump(until);
    }
  }
  void keep(const Statement& s, Seen&& seen) {
    if (s.as.empty()) return;
    Seen& kept = frames_[s.as];
    kept = std::move(seen);
  }
  static std::string time_text(Ps t) { return fmt::format("{} us", static_cast<double>(t) / 1e6); }

  void unordered(const Statement& s) {
    std::vector<const Statement*> left;
    for (const Statement& e : s.inner) {
      if (e.what != Do::kExpect) throw Failure{e.line, "unordered: only frames can be expected in here"};
      left.push_back(&e);
    }
    Ps longest = 0;
    for (const Statement* e : left) longest = std::max(longest, e->time);
    const Ps begun = body_.now(), until = begun + longest;
    while (!left.empty()) {
      bool found = false;
      for (auto& q : queue_) {
        while (!q.empty()) {
          Seen seen = std::move(q.front());
          q.pop_front();
          std::string why;
          const auto it = std::find_if(left.begin(), left.end(), [&](const Statement* e) {
            line_ = e->line;
            why = seen.time <= begun + e->time ? differs(*e, seen) : "it came too late";
            return why.empty();
          });
          if (it == left.end()) {
            if (&q == &queue_[kData])
              throw Failure{
                  s.line,
                  fmt::format("a data packet of the body fits nothing of this group; against line {}: {}",
                              line_, why)};
            continue;
          }
          keep(**it, std::move(seen));
          left.erase(it);
          found = true;
          if (left.empty()) return;
        }
      }
      if (found) continue;
      if (body_.now() >= until)
        throw Failure{left.front()->line,
                      fmt::format("no such {} within {}", left.front()->word, time_text(longest))};
      pump(until);
    }
  }

  void expect_none(const Statement& s) {
    // Acks and probes that came before are not meant; data and completions are, since each must be expected.
    for (int k = 0; k < kKlasses; ++k)
      if (k != kData) queue_[k].clear();
    pass(body_.now() + s.time);
    if (s.word == "completion") {
      if (!completions_.empty())
        throw Failure{s.line, fmt::format("a completion: {}", text_of(completions_.front().completion))};
      return;
    }
    for (const auto& q : queue_)
      for (const Seen& seen : q)
        if ((s.word == "frame" || klass(seen.op) == klass(opcode_by_name(s.word))) &&
            (s.word == "frame" || differs(s, seen).empty()))
          throw Failure{s.line, fmt::format("a {}, expected none", name_of(seen.op))};
  }

  void expect_completion(const Statement& s) {
    const Ps until = body_.now() + s.time;
    while (completions_.empty()) {
      if (body_.now() >= until)
        throw Failure{s.line, fmt::format("no completion within {}", time_text(s.time))};
      pump(until);
    }
    const Completion c = completions_.front().completion;
    completions_.pop_front();
    const auto is = [&](const char* key, std::uint64_t got) {
      if (const Value* v = s.arg(key); v != nullptr && number(v->lo) != got)
        throw Failure{s.line, fmt::format("the next completion ({}): {} is {}, expected {}", text_of(c), key,
                                          got, number(v->lo))};
    };
    const std::string kind = word(s, "kind", "");
    if (!kind.empty() && kind != kind_of(c.what))
      throw Failure{s.line, fmt::format("the next completion ({}): expected kind {}", text_of(c), kind)};
    is("id", c.id);
    const std::string status = word(s, "status", "OK");
    if (status != err_name(c.status))
      throw Failure{s.line, fmt::format("the next completion ({}): expected status {}", text_of(c), status)};
    is("bytes_in", c.bytes);
    is("stream", c.stream);
    if (const Value* v = s.arg("imm"); v != nullptr && (!c.imm || *c.imm != number(v->lo)))
      throw Failure{s.line,
                    fmt::format("the next completion ({}): expected imm {:#x}", text_of(c), number(v->lo))};
  }

  // A path that the body can be asked about.
  std::uint32_t path_of(const Statement& s) const {
    const std::uint64_t path = number(s, "path", 0), stride = body_.stride(setup_);
    if (path / stride >= setup_.ports || path % stride >= setup_.paths)
      throw Failure{s.line, fmt::format("path = {}: expected one of the {} paths of {} ports", path,
                                        setup_.paths, setup_.ports)};
    return static_cast<std::uint32_t>(path);
  }

  void state(const Statement& s) {
    const auto path = path_of(s);
    const Ps until = body_.now() + s.time;
    for (;;) {
      const auto got = body_.path_state(path);
      if (!got.ok()) throw Broken{got.error()};
      if (got.value() == s.word) return;
      if (body_.now() >= until)
        throw Failure{s.line, fmt::format("path {} is {}, expected {}", path, got.value(), s.word)};
      pump(std::min(until, body_.now() + kUs));
    }
  }

  std::vector<std::uint64_t> drops() {
    auto r = body_.drops();
    if (!r.ok()) throw Broken{r.error()};
    return r.take();
  }
  void counters(const Statement& s) {
    std::vector<std::uint64_t> want = counted_;
    for (const Arg& a : s.args) want[static_cast<unsigned>(by_name<wire::Drop>(a.key))] += number(a.value.lo);
    const std::vector<std::uint64_t> got = drops();
    std::string wrong;
    for (std::size_t i = 0; i < want.size(); ++i)
      if (got[i] != want[i])
        wrong +=
            fmt::format("{}{} grew by {}, expected {}", wrong.empty() ? "" : "; ",
                        wire::name(static_cast<wire::Drop>(i)), got[i] - counted_[i], want[i] - counted_[i]);
    if (!wrong.empty()) throw Failure{s.line, wrong};
    counted_ = got;
  }

  void refuse(const Statement& s) {
    wire::Hello h = offer_;
    const auto set = [&](const char* key, auto& member) {
      using Member = std::remove_reference_t<decltype(member)>;
      if (const Value* v = s.arg(key); v != nullptr && v->kind != Value::Kind::kWord)
        member = static_cast<Member>(number(v->lo));
    };
    set("magic", h.magic);
    set("version", h.version);
    set("cap_bits", h.caps);
    set("needs", h.needs);
    set("mtu", h.mtu);
    set("ports", h.ports);
    set("paths", h.paths);
    set("streams", h.streams);
    set("distance", h.distance);
    set("incarnation", h.incarnation);
    set("resv0", h.resv0);
    set("resv1", h.resv1);
    set("resv2", h.resv2);
    const auto answer = body_.open(setup_, h);
    if (!answer.ok()) throw Broken{answer.error()};
    const std::string got = refusal_text(answer.value().refusal);
    if (got != s.word) throw Failure{s.line, fmt::format("the body answers {}, expected {}", got, s.word)};
  }

  void finish() {
    line_ = script_.steps.back().line;  // the parser wants one at least
    if (!queue_[kData].empty() && !ignore_data_)
      throw Failure{line_, fmt::format("at the end: {} data packet{} that nothing expected, the first a {}",
                                       queue_[kData].size(), queue_[kData].size() == 1 ? "" : "s",
                                       name_of(queue_[kData].front().op))};
    if (!completions_.empty() && !ignore_completions_)
      throw Failure{line_, fmt::format("at the end: a completion that nothing expected: {}",
                                       text_of(completions_.front().completion))};
    const std::vector<std::uint8_t> guard(kGuard, kGuardByte);
    for (const Placed& p : placed_) {
      compare(line_, p.va - kGuard, guard, "in front of region " + p.name);
      compare(line_, p.va + p.bytes, guard, "behind region " + p.name);
    }
  }
  void compare(int line, std::uint64_t at, const std::vector<std::uint8_t>& want, const std::string& why) {
    compare(line, at, want, why.c_str());
  }

  static constexpr std::uint8_t kGuardByte = 0xa5;
  struct Placed {
    std::string name;
    std::uint64_t va, bytes;
  };

  Body& body_;
  const Script& script_;
  const TestOptions& options_;
  BodySetup setup_;
  wire::Hello offer_, hello_;
  bool connected_ = false;
  Ps start_ = 0;
  int line_ = 1;
  std::uint64_t steps_ = 0, bytes_ = 0;
  Ps spent_to_ = 0;  // of the body's time
  std::map<std::string, std::uint64_t> variables_;
  std::map<std::string, Seen> frames_;
  std::array<std::deque<Seen>, kKlasses> queue_;
  std::deque<Event> completions_;
  std::vector<std::uint64_t> counted_;
  std::vector<Placed> placed_;
  std::map<std::uint8_t, RxPath> rx_;
  bool auto_ack_ = false, ignore_data_ = false, ignore_completions_ = false;
  std::uint16_t auto_credits_ = 0;
  std::optional<std::uint64_t> auto_path_;  // nothing: all
  std::deque<std::string> shown_;
  std::vector<std::string> log_;
};

}  // namespace

std::string describe(wire::Bytes frame) {
  wire::RxPort any;
  any.whole_protocol = true;
  const wire::ParseResult r = wire::parse(frame, any);
  const wire::Parsed& f = r.frame;
  if (!r) return fmt::format("{} bytes, malformed: {}", frame.size(), wire::name(*r.drop));
  std::string text = fmt::format("{} path {} epoch {}", name_of(static_cast<wire::Opcode>(f.bth.opcode)),
                                 f.wth.path, f.wth.epoch);
  if (f.layout == wire::Layout::ACK) {
    text += fmt::format(" base {:#x} hist '{}' rx {} ce {} echo {} credits {} status {}", f.wah.base,
                        hist_bits(f.hist), f.wah.rx_bytes, f.wah.ce_bytes, f.wah.echo, f.wah.credits,
                        err_name(f.wah.status));
    for (unsigned i = 0; i < f.wah.blocks; ++i)
      text += fmt::format(" p{} epoch {} base {:#x} hist '{}' ce {}", f.blocks[i].path, f.blocks[i].epoch,
                          f.blocks[i].base, hist_bits({&f.blocks[i].hist, 1}), f.blocks[i].ce_bytes);
  } else {
    text += fmt::format(" psn {:#x} ts {}", f.bth.psn, f.wth.timestamp);
    if (f.layout == wire::Layout::DATA)
      text +=
          fmt::format(" stream {} msg {} va {:#x} len {} of {}{}{}", f.wdh.stream, f.wdh.msg_no, f.wdh.va,
                      f.payload.size(), f.wdh.msg_len, f.wdh.more ? " more" : "", f.wdh.retx ? " retx" : "");
  }
  if (f.ipv4.ecn == wire::kEcnCe) text += " CE";
  return text;
}

Outcome run_script(Body& body, const Script& script, const TestOptions& options) {
  static const std::pair<std::uint32_t, const char*> kAbilities[] = {
      {kFrames, "FRAMES"}, {kControl, "CONTROL"}, {kCounters, "COUNTERS"}, {kState, "STATE"},
      {kStartPsn, "PSN"},  {kSetup, "SETUP"},     {kMac, "MAC_ERROR"},     {kJointAcks, "JOINT_ACKS"}};
  std::string missing;
  for (unsigned n = 0; n < 32; ++n)
    if ((script.caps & ~body.caps()) >> n & 1)
      missing += std::string(missing.empty() ? "" : " ") + wire::name(static_cast<wire::Cap>(n));
  for (const auto& [bit, name] : kAbilities)
    if ((script.abilities & ~body.abilities() & bit) != 0)
      missing += std::string(missing.empty() ? "" : " ") + name;
  if (!missing.empty()) return {Verdict::kNotYet, missing, 0};
  return Run(body, script, options).go();
}

}  // namespace weft::comply
