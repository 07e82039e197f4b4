// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/tester.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "tb/check/traffic.h"
#include "tb/comply/frame_maker.h"

namespace weft::comply {
namespace {

constexpr std::uint32_t kMagic = 0x54464557;
constexpr std::size_t kShownFrames = 12;
constexpr std::size_t kGuard = 64;  // bytes around a region that nothing may touch

struct Broken {  // in the line that runs
  std::string text;
};

class Run : private FrameMaker {
 public:
  Run(Body& body, const Script& script, const TestOptions& options)
      : FrameMaker(body), script_(script), options_(options) {}

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
  // -- set-up
  // ---------------------------------------------------------------------------------------------------

  std::uint64_t setup_number(const char* key, std::uint64_t otherwise) const {
    for (const Arg& a : script_.setup) {
      if (a.key != key) continue;
      const std::uint64_t value = number(a.value.lo);
      for (const Bounds& b : kSetupBounds)
        if (a.key == b.key) within(a.key, b, value);
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
                                       {at == nullptr ? 0 : number(at->lo), 0}, length(s, 0));
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
    r.length = length(s, r.op == ref::WrOp::kFetchAdd || r.op == ref::WrOp::kCompareSwap ? 8 : 0);
    r.remote_va = number(s, "to", 0);
    r.rkey = static_cast<std::uint32_t>(number(s, "key", 0));
    r.value = static_cast<std::uint32_t>(number(s, "value", 0));
    r.sem = static_cast<std::uint16_t>(number(s, "sem", 0));
    r.operand = number(s, "operand", 0);
    r.compare = number(s, "compare", 0);
    return p;
  }

  void send(const Statement& s) {
    const auto [port, frame] = make(s);
    const std::uint64_t copies = number(s, "copies", 1);
    for (std::uint64_t i = 0; i < copies; ++i) out(port, frame, number(s, "mac_error", 0) != 0);
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
    if (port >= setup_.ports)
      throw Failure{line_, fmt::format("port = {}: expected one of the {} ports of the set-up (0 first)",
                                       port, setup_.ports)};
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
    if (e.port >= setup_.ports)
      throw Failure{line_, fmt::format("a frame of path {}, expected of one of the {} ports",
                                       r.frame.wth.path, setup_.ports)};
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
    if (auto_ack_)
      if (const auto ack = acknowledge(seen)) out(seen.port, *ack, false);
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

  // -- what is expected
  // -----------------------------------------------------------------------------------------

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
    const auto value = [&](const Expr& e) {
      const std::uint64_t v = number(e) + (e.relative ? first : 0);
      if (const Bounds* b = bounds_of(a.key)) within(a.key, *b, v);
      return v & mask;
    };
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
      const Value* v = s.arg(key);
      if (v == nullptr || v->kind == Value::Kind::kWord) return;
      const std::uint64_t value = number(v->lo);
      within(key, {key, 0, std::numeric_limits<Member>::max()}, value);
      member = static_cast<Member>(value);
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

  const Script& script_;
  const TestOptions& options_;
  bool connected_ = false;
  Ps start_ = 0;
  Ps spent_to_ = 0;  // of the body's time
  std::array<std::deque<Seen>, kKlasses> queue_;
  std::deque<Event> completions_;
  std::vector<std::uint64_t> counted_;
  std::vector<Placed> placed_;
  bool auto_ack_ = false, ignore_data_ = false, ignore_completions_ = false;
  std::deque<std::string> shown_;
  std::vector<std::string> log_;
};

}  // namespace

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
