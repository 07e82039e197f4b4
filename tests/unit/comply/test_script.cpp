// SPDX-License-Identifier: Apache-2.0
// The text form and the tester, against a body that says what the test puts into its mouth.
#include <deque>
#include <span>

#include "tb/check/traffic.h"
#include "tb/comply/fault.h"
#include "tb/comply/tester.h"
#include "weft_test.h"

using namespace weft;
using namespace weft::comply;

namespace {

const std::string kHead = "# a test\n";

std::string refusal(const std::string& body) {
  const auto s = parse_script("x.script", kHead + body);
  return s.ok() ? "" : s.error();
}

// Frames of the body leave at the times the test gave; what the tester sends is kept.
class Puppet final : public Body {
 public:
  std::deque<Event> says;
  std::vector<wire::Frame> heard;
  std::uint32_t can = kFrames | kControl | kCounters | kState | kSetup;
  wire::Refusal refusal = wire::Refusal::NONE;
  std::vector<std::uint64_t> dropped = std::vector<std::uint64_t>(wire::kDropCount);
  bool opens = true, breaks = false;  // at what takes time, and when it is to close

  void data(Ps at, std::uint32_t psn, std::uint64_t va, std::uint32_t conn = 5, std::uint8_t path = 0) {
    wire::Route r;
    r.smac = tb::node_mac(kBodyNode, 0);
    r.dmac = tb::node_mac(kTesterNode, 0);
    r.sip = tb::node_ip(kBodyNode, 0);
    r.dip = tb::node_ip(kTesterNode, 0);
    r.ecn = wire::kEcnEct0;
    wire::Wth wth{path, 0, 7, 42};
    wire::Wdh wdh{};
    wdh.va = va;
    const std::vector<std::uint8_t> payload(8);
    Event e;
    e.time = at;
    e.frame = wire::build_data(r, wire::make_bth(wire::Opcode::WRITE, conn, 0x2000 + psn), wth, wdh, payload);
    says.push_back(std::move(e));
  }
  void ack(Ps at, std::uint8_t path, const wire::Wah& wah,
           const std::array<std::uint32_t, wire::kHistWords>& hist, std::span<const wire::Wab> blocks) {
    wire::Route r;
    r.smac = tb::node_mac(kBodyNode, 0);
    r.dmac = tb::node_mac(kTesterNode, 0);
    r.sip = tb::node_ip(kBodyNode, 0);
    r.dip = tb::node_ip(kTesterNode, 0);
    Event e;
    e.time = at;
    e.frame.resize(wire::kMaxAckFrameBytes);
    e.frame.resize(wire::write_ack(e.frame.data(), r, wire::make_bth(wire::Opcode::ACK, 5, 0),
                                   wire::Wth{path, 0, 7, 42}, wah, hist, blocks));
    says.push_back(std::move(e));
  }
  void completes(Ps at, std::uint64_t id, wire::Err status = wire::Err::OK) {
    Event e;
    e.time = at;
    e.is_frame = false;
    e.completion.id = id;
    e.completion.status = status;
    says.push_back(std::move(e));
  }

  std::uint32_t caps() const override { return 1; }
  std::uint32_t abilities() const override { return can; }
  Result<wire::Hello> open(const BodySetup&, const wire::Hello& offer) override {
    if (!opens) return Status::error("it broke");
    wire::Hello h = offer;
    h.conn = 3;
    h.psn = 0x2000;
    h.refusal = refusal;
    return h;
  }
  Ps now() const override { return now_; }
  void send(std::uint32_t, wire::Bytes frame, bool) override {
    heard.emplace_back(frame.begin(), frame.end());
  }
  Status run(Ps until, std::vector<Event>& out) override {
    if (breaks && until > now_ + kNs) return Status::error("it broke");
    if (!says.empty() && says.front().time <= until) {
      now_ = std::max(now_, says.front().time);
      out.push_back(std::move(says.front()));
      says.pop_front();
    } else {
      now_ = until;
    }
    return {};
  }
  Result<Address> region(std::uint64_t, std::uint8_t) override { return Address{0x1000, 0x77}; }
  Status write(std::uint64_t va, const std::vector<std::uint8_t>& bytes) override {
    memory_.resize(std::max(memory_.size(), va + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + static_cast<std::ptrdiff_t>(va));
    return {};
  }
  Result<std::vector<std::uint8_t>> read(std::uint64_t va, std::size_t count) override {
    const auto at = memory_.begin() + static_cast<std::ptrdiff_t>(va);
    return std::vector<std::uint8_t>(at, at + static_cast<std::ptrdiff_t>(count));
  }
  Result<wire::Err> post(const Post&) override { return wire::Err::OK; }
  Result<wire::Err> post_recv(std::uint16_t, std::uint64_t, Address, std::uint32_t) override {
    return wire::Err::OK;
  }
  Status close() override { return breaks ? Status::error("it broke") : Status(); }
  Status change_sport(std::uint32_t) override { return {}; }
  Result<std::vector<std::uint64_t>> drops() override { return dropped; }
  Result<std::string> path_state(std::uint32_t) override { return std::string("good"); }

 private:
  Ps now_ = 0;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(0x4000);
};

Outcome play(Puppet& body, const std::string& text) {
  const auto s = parse_script("x.script", kHead + text);
  INFO(s.error());
  REQUIRE(s.ok());
  return run_script(body, s.value());
}
std::string says_wrong(Puppet& body, const std::string& text) {
  const Outcome out = play(body, text);
  CHECK(out.verdict == Verdict::kFail);
  return out.text.substr(0, out.text.find('\n'));
}

}  // namespace

TEST_CASE("comply: a script that makes no sense is refused with file, line and what was expected",
          "[comply][smoke]") {
  const std::pair<const char*, const char*> cases[] = {
      {"jump\n", "x.script:2: jump: no such statement, expected of: at auto"},
      {"wait\n", "x.script:2: wait: ends, expected a time"},
      {"wait 5\n", "x.script:2: 5: expected a time such as 20us"},
      {"wait -5us\n", "expected a time"},
      {"wait 5us 6us\n", "x.script:2: 6us: not understood here"},
      {"send write va=1\n", "x.script:2: send write: psn is missing"},
      {"send ack\n", "send ack: base is missing"},
      {"send data psn=1\n", "send data: expected the operation"},
      {"send wire psn=1\n", "wire: no such frame"},
      {"send write psn=1 colour=2\n", "colour: no such key here, expected of: "},
      {"send write psn=1 psn=2\n", "psn: given twice"},
      {"send write psn=\n", "psn = '': a value is missing"},
      {"send write psn=?\n", "psn: a frame that is sent needs one value"},
      {"send write psn=1..2\n", "psn: a frame that is sent needs one value"},
      {"send write psn=0xzz\n", "0xzz: not a number"},
      {"send write psn=99999999999999999999\n", "99999999999999999999: not a number"},
      {"send write psn=0 va=r9\n", "r9: no number, and nothing before this line has that name"},
      {"send write psn=0 va=+3\n", "+3: a sign in front is for PSNs only"},
      {"send write psn=0 va=1+\n", "'': no number"},
      {"send ack base=0 hist=102\n", "hist = 102: expected up to 256 of 0 and 1"},
      {"send ack base=0 hist=1*999\n", "expected a number of 1 to 256 behind '*'"},
      {"send ack base=0 status=FINE\n", "status = FINE: expected a status of enum err"},
      {"send write psn=0 set=12\n", "set = 12: expected BYTE:HEX"},
      {"send write psn=0 corrupt=all\n", "corrupt = all: expected one of: icrc payload ip"},
      {"send hex 123\n", "send hex: expected an even number of digits"},
      {"expect write psn=d.psn\n", "d.psn: no number"},
      {"expect no data\n", "expect no: expected 'for' and a time"},
      {"expect completion as x\n", "as: a completion has no name"},
      {"unordered\n expect write\n", "x.script:2: unordered: never closed, expected a line 'end'"},
      {"repeat 3\n wait 1us\n", "repeat: never closed"},
      {"end\n", "end: nothing is open here"},
      {"body dance\n", "body dance: expected post, recv, wait, close or sport"},
      {"body post jump id=1\n", "body post jump: expected one of: "},
      {"body post write len=3\n", "body post: id is missing"},
      {"region r0\n", "region: len is missing"},
      {"region 0r len=3\n", "0r: not a name"},
      {"region r len=3\nregion r len=4\n", "x.script:3: r: already a name in line 2, expected another"},
      {"region r len=3\nlet r=4\n", "x.script:3: r: already a name in line 2"},
      {"let r=4\nregion r len=3\n", "x.script:3: r: already a name in line 2"},
      {"region r len=3\nexpect ack as r\n", "x.script:3: r: already a name in line 2"},
      {"expect ack as d\nrepeat 3 as d\nend\n", "x.script:3: d: already a name in line 2"},
      {"let now=4\n", "now: is a name of every script, expected another"},
      {"expect ack as body\n", "body: is a name of every script"},
      {"region r len=3 rights=8\n", "rights = 8: expected a number of 0 to 7"},
      {"region r len=3 rights=0x102\n", "rights = 258: expected a number of 0 to 7"},
      {"rules R3 Q7\nwait 1us\n", "x.script:2: rules Q7: no such rule, expected R1 to R11 or W1 to W11"},
      {"rules R12\nwait 1us\n", "rules R12: no such rule"},
      {"rules R01\nwait 1us\n", "rules R01: no such rule"},
      {"rules W\nwait 1us\n", "rules W: no such rule"},
      {"repeat 100001\nend\n", "repeat = 100001: expected a number of 0 to 100000"},
      // Nothing is cut to the bits of its field.
      {"body wait sem=65536 value=1 id=1\n", "sem = 65536: expected a number of 0 to 65535"},
      {"body wait sem=1 value=4294967296 id=1\n", "value = 4294967296: expected a number of 0 to 4294967295"},
      {"body post write id=1 stream=65536\n", "stream = 65536: expected a number of 0 to 65535"},
      {"body recv id=1 stream=65536\n", "stream = 65536: expected a number of 0 to 65535"},
      {"body sport path=300\n", "path = 300: expected a number of 0 to 255"},
      {"state path=300 good\n", "path = 300: expected a number of 0 to 255"},
      {"auto ack credits=65536\n", "credits = 65536: expected a number of 0 to 65535"},
      {"send probe psn=0 epoch=256\n", "epoch = 256: expected a number of 0 to 255"},
      {"send probe psn=0 conn=16777216\n", "conn = 16777216: expected a number of 0 to 16777215"},
      {"send probe psn=0 port=8\n", "port = 8: expected a number of 0 to 7"},
      {"send write psn=0 sem=65536\n", "sem = 65536: expected a number of 0 to 65535"},
      {"send write psn=0 msg=65536\n", "msg = 65536: expected a number of 0 to 65535"},
      {"send ack base=0 p3.base=0 p3.epoch=256\n", "p3.epoch = 256: expected a number of 0 to 255"},
      {"send ack base=0 p3.base=0 p3.ce_bytes=16777216\n", "p3.ce_bytes = 16777216: expected a number"},
      {"expect ack path=256\n", "path = 256: expected a number of 0 to 255"},
      {"expect ack path=0..256\n", "path = 256: expected a number of 0 to 255"},
      {"expect ack path=!256\n", "path = 256: expected a number of 0 to 255"},
      {"setup streams=65536\nwait 1us\n", "streams = 65536: expected a number of 1 to 65535"},
      {"setup incarnation=65536\nwait 1us\n", "incarnation = 65536: expected a number of 0 to 65535"},
      {"setup mtu=65536\nwait 1us\n", "mtu = 65536: expected a number of 1 to 65535"},
      {"jump\x1b[31m\xc3\xa4\n", "x.script:2: jump\\x1b[31m\\xc3\\xa4: no such statement"},
      {"send write psn=0 p1.base=0\n", "p1.base: no such key here"},
      {"send ack base=0 p256.base=0\n", "p256.base: no such key here"},
      {"send ack base=0 pN.base=0\n", "pN.base: no such key here"},
      {"send ack base=0 p1.hist=1\n", "p1.base is missing"},
      {"send ack base=0 p1.base=0 p1.hist=1*33\n", "expected up to 32 of 0 and 1"},
      {"send ack base=0 p1.base=0 p2.base=0 p3.base=0 p4.base=0 p5.base=0\n",
       "blocks of 5 paths, expected at most 4"},
      {"expect ack p1.path=0\n", "p1.path: no such key here"},
      {"state path=0 happy\n", "state happy: expected good, suspect, fencing, failed or probation"},
      {"counters LUCK=1\n", "LUCK: no such key here"},
      {"needs WINGS\nwait 1us\n", "needs WINGS: no such capability"},
      {"catches nothing\nwait 1us\n", "catches nothing: no such wrong body"},
      {"wait 1us\nsetup mtu=256\n", "x.script:3: setup: expected before the first step"},
      {"setup caps=WRITE+FLY\nwait 1us\n", "caps = WRITE+FLY: FLY is no capability"},
      {"refuse MAYBE\n", "refuse MAYBE: expected a reason of enum refusal"},
      {"", "x.script:0: no step: expected at least one"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string got = refusal(text);
    INFO(text << " -> " << got);
    CHECK(got.find(expected) != std::string::npos);
    CHECK(got.find('\n') == std::string::npos);
  }
  CHECK(parse_script("x", "# \x1b[2J\nwait 1us\n").value().title == "\\x1b[2J");
  CHECK(parse_script("x", "wait 1us\n").error() ==
        "x:0: no title: expected a comment that says what the exchange shows");
}

TEST_CASE("comply: what a script does tells what it needs", "[comply][smoke]") {
  const auto needs = [](const char* text) { return parse_script("x", kHead + text).value().abilities; };
  CHECK(needs("wait 1us\n") == 0);
  CHECK(needs("counters\n") == kCounters);
  CHECK(needs("body close\n") == kControl);
  CHECK(needs("state path=0 good\n") == kState);
  CHECK(needs("send write psn=0 set=12:0806\n") == kFrames);
  CHECK(needs("send write psn=0 mac_error=1\n") == kMac);
  CHECK(needs("setup body_psn=3\nwait 1us\n") == kStartPsn);
  Puppet body;
  body.can = 0;
  const Outcome out = play(body, "needs SEND\ncounters\n");
  CHECK(out.verdict == Verdict::kNotYet);
  CHECK(out.text == "SEND COUNTERS");
}

TEST_CASE("comply: frames are compared field by field, from the first PSN of their sender",
          "[comply][smoke]") {
  const auto with = [](const char* text) {
    Puppet body;
    body.data(kUs, 1, 0x50);
    return play(body, text);
  };
  CHECK(with("expect write psn=+1 va=0x50 len=8 ts=42 within 2us\n").verdict == Verdict::kPass);
  CHECK(with("expect data op=write psn=0x2001 va=!0 len=1..9 path=?\n").verdict == Verdict::kPass);
  CHECK(with("expect write psn=body.psn+1 as d\nexpect no data va=d.va for 1us\n").verdict == Verdict::kPass);
  for (const char* wrong :
       {"expect write psn=+2\n", "expect write va=0x51\n", "expect send psn=+1\n", "expect write len=9..20\n",
        "expect write va=!0x50\n", "expect write bytes=3\n", "expect write within 500ns\n", "wait 3us\n",
        "expect no data for 2us\n", "expect ack within 5us\n"})
    CHECK(with(wrong).verdict == Verdict::kFail);
  Puppet body;
  body.data(kUs, 1, 0x50);
  CHECK(says_wrong(body, "expect write psn=+2 va=0x50\n") ==
        "x.script:2: the next write of the body: psn is 0x2001, expected 0x2002");
}

TEST_CASE("comply: every frame of a body is held to what holds for all", "[comply][smoke]") {
  Puppet conn, icrc, late;
  conn.data(kUs, 0, 0, 6);
  CHECK(says_wrong(conn, "expect write\n") == "x.script:2: a frame for connection 6, expected 5");
  icrc.data(kUs, 0, 0);
  icrc.says[0].frame.back() ^= 1;
  CHECK(says_wrong(icrc, "expect write\n") == "x.script:2: a frame of the body is malformed: ICRC");
  late.data(kUs, 0, 0);
  late.data(2 * kUs, 1, 8);
  CHECK(says_wrong(late, "expect write\nwait 5us\n") ==
        "x.script:3: at the end: 1 data packet that nothing expected, the first a write");
}

TEST_CASE("comply: an unordered group takes its frames in any order and nothing else", "[comply][smoke]") {
  const char* group = "unordered\nexpect write va=8 as a\nexpect write va=16\nend\nexpect write va=a.va+16\n";
  Puppet right, wrong, less;
  right.data(1, 0, 16);
  right.data(2, 1, 8);
  right.data(3, 2, 24);
  CHECK(play(right, group).verdict == Verdict::kPass);
  wrong.data(1, 0, 16);
  wrong.data(2, 1, 16);
  CHECK(
      says_wrong(wrong, group).find("fits nothing of this group; against line 3: va is 0x10, expected 0x8") !=
      std::string::npos);
  less.data(1, 0, 8);
  CHECK(says_wrong(less, group) == "x.script:4: no such write within 100 us");
}

TEST_CASE("comply: completions, counters, memory and states are checked", "[comply][smoke]") {
  Puppet done;
  done.completes(kUs, 4, wire::Err::FLUSHED);
  CHECK(play(done, "expect completion id=4 status=FLUSHED kind=request\n").verdict == Verdict::kPass);
  for (const char* wrong :
       {"expect completion id=5 status=FLUSHED\n", "expect completion id=4\n",
        "expect completion kind=recv status=FLUSHED\n", "expect no completion for 5us\n", "wait 5us\n"}) {
    Puppet body;
    body.completes(kUs, 4, wire::Err::FLUSHED);
    CHECK(play(body, wrong).verdict == Verdict::kFail);
  }
  Puppet body;
  CHECK(play(body, "counters\n").verdict == Verdict::kPass);
  CHECK(says_wrong(body, "counters STALE=1\n") == "x.script:2: STALE grew by 0, expected 1");
  CHECK(play(body,
             "region r len=64\nfill r+8 len=8 bytes=3\ncheck r len=8 bytes=zero\ncheck r+8 len=4 bytes=3\n"
             "check r+12 len=4 bytes=3@4\n")
            .verdict == Verdict::kPass);
  CHECK(says_wrong(body, "region r len=64\nfill r len=8 bytes=3\ncheck r len=8 bytes=4\n")
            .find("byte 0 of 8") != std::string::npos);
  CHECK(says_wrong(body, "region r len=8\nfill r+8 len=1 bytes=3\n").find("behind region r") !=
        std::string::npos);
  CHECK(play(body, "state path=0 good\n").verdict == Verdict::kPass);
  CHECK(says_wrong(body, "state path=0 failed within 3us\n") ==
        "x.script:2: path 0 is good, expected failed");
}

TEST_CASE("comply: the tester acknowledges by itself only when told, as a receiver must", "[comply][smoke]") {
  Puppet quiet, body;
  quiet.data(1, 0, 0);
  CHECK(play(quiet, "expect write\n").verdict == Verdict::kPass);
  CHECK(quiet.heard.empty());
  body.data(1, 0, 0);
  body.data(2, 2, 0);
  CHECK(play(body, "auto ack credits=9\nexpect write\nexpect write\n").verdict == Verdict::kPass);
  REQUIRE(body.heard.size() == 2);
  wire::RxPort port;
  port.whole_protocol = true;
  const auto ack = wire::parse(body.heard[1], port);
  REQUIRE(ack);
  CHECK(ack.frame.wah.base == 0x2003);
  CHECK(ack.frame.hist[0] == 0xbfffffff);
  CHECK(ack.frame.wah.rx_bytes == 2 * (8 + wire::kWinOverhead));
  CHECK(ack.frame.wah.credits == 9);
  CHECK(ack.frame.bth.dqpn == 3);
}

TEST_CASE("comply: frames are made wrong in one way and right in every other", "[comply][smoke]") {
  const auto reason = [](const std::string& how) {
    Puppet body;
    CHECK(play(body, "send write psn=+0 len=64 " + how + "\n").verdict == Verdict::kPass);
    wire::RxPort port;
    port.whole_protocol = true;
    const auto r = wire::parse(body.heard.at(0), port);
    return r ? std::string("good") : std::string(wire::name(*r.drop));
  };
  CHECK(reason("") == "good");
  CHECK(reason("ecn=3") == "good");
  CHECK(reason("opcode=7") == "OPCODE");
  CHECK(reason("tver=1") == "VERSION");
  CHECK(reason("version=9") == "VERSION");
  CHECK(reason("set=12:0806") == "ETHERTYPE");
  CHECK(reason("set=34:0001") == "good");
  CHECK(reason("set=34:0001 seal=no") == "ICRC");
  CHECK(reason("corrupt=icrc") == "ICRC");
  CHECK(reason("corrupt=payload") == "ICRC");
  CHECK(reason("corrupt=ip") == "IP_HEADER");
  CHECK(reason("cut=4") == "LENGTH");
  CHECK(reason("cut=120") == "SHORT");
  CHECK(reason("grow=4") == "LENGTH");
}

TEST_CASE("comply: blocks of acks are sent and compared path by path", "[comply][smoke]") {
  // The tester's own: what it sends is what comes back out of the mouth of the body.
  const char* send =
      "send ack path=1 base=+3 hist=101 p0.base=+4 p0.hist=1*3,0 p0.ce_bytes=9 p2.path=3 p2.base=7 "
      "p2.epoch=1\n";
  const std::string setup = "needs WRITE\nsetup paths=4 caps=WRITE+BLOCKS\n";
  const auto with = [&](const std::string& expected, const std::string& head, unsigned times = 1) {
    Puppet body;
    CHECK(play(body, setup + send).verdict == Verdict::kPass);
    wire::RxPort any;
    any.whole_protocol = true;
    const auto sent = wire::parse(body.heard.at(0), any);
    REQUIRE(sent);
    REQUIRE(sent.frame.wah.blocks == 2);
    for (unsigned i = 0; i < times; ++i)
      body.ack(kUs, sent.frame.wth.path, sent.frame.wah, sent.frame.hist,
               {sent.frame.blocks.data(), sent.frame.wah.blocks});
    return play(body, head + expected);
  };
  // PSNs of the sender's first are 0x2000, of the receiver's 0x100.
  CHECK(with("expect ack path=1 blocks=2 p0.base=0x2004 p0.hist=1110 p0.ce_bytes=9 p0.epoch=0 p1.base=0x2003 "
             "p1.hist=10 p3.base=7 p3.epoch=1 p3.hist=1 as a\nlet x=a.p3.base\n",
             setup)
            .verdict == Verdict::kPass);
  CHECK(with("expect ack p0.base=+0..+0xfffffe\n", setup).verdict == Verdict::kPass);
  for (const char* wrong :
       {"expect next ack blocks=1\n", "expect next ack p0.base=0x2005\n", "expect next ack p0.hist=1\n",
        "expect next ack p0.ce_bytes=8\n", "expect next ack p2.base=7\n", "expect next ack p2.hist=1\n",
        "expect next ack p3.epoch=0\n"})
    CHECK(with(wrong, setup).verdict == Verdict::kFail);
  CHECK(with("expect next ack p2.base=7\n", setup).text.find("it tells nothing of path 2") !=
        std::string::npos);
  // What holds for every ack with blocks.
  CHECK(with("expect ack\n", "setup paths=4\n")
            .text.find("x.script:3: an ack with 2 blocks, and BLOCKS is no "
                       "capability of both ends") == 0);
  CHECK(with("expect ack\n", "setup ports=2 paths=2 caps=WRITE+BLOCKS\n")
            .text.find("x.script:3: an ack at port 0 with a block of path 3") == 0);
}

TEST_CASE("comply: what a script may cost is bounded, whatever it computes", "[comply][smoke]") {
  const std::pair<const char*, const char*> cases[] = {
      // Each repeat may go so often, one in the other not.
      {"repeat 1000\nrepeat 1000 as i\nend\nend\n", "x.script:3: the script takes more than 100000 steps"},
      {"repeat 100000\nwait 1ns\nend\n", "x.script:2: the script takes more than 100000 steps"},
      {"let n=mtu*mtu\nrepeat n\nend\n", "x.script:3: the script takes more than 100000 steps"},
      {"wait 1s\n", "x.script:2: the script takes more than 100000 steps"},
      {"repeat 10\nwait 99ms\nend\n", "x.script:3: the script takes more than 100000 steps"},
      {"let n=mtu*99\nsend probe psn=0 copies=n\n",
       "x.script:3: copies = 101376: expected a number of 0 to 100000"},
      {"let n=mtu*90\nrepeat 2\nsend probe psn=0 copies=n\nend\n",
       "x.script:4: the script takes more than 100000"},
      {"let n=mtu*mtu\nsend write psn=0 grow=n\n",
       "x.script:3: grow = 1048576: expected a number of 0 to 65535"},
      {"send write psn=0 len=mtu*mtu*100\n", "x.script:2: the script takes more than 64 MiB of frames"},
      {"repeat 99\nsend write psn=0 len=1000000\nend\n", "x.script:3: the script takes more than 64 MiB"},
      {"region r len=mtu*mtu*99\n", "x.script:2: the script takes more than 64 MiB of frames, regions"},
      {"region r len=0xffffffffffffffff\n", "x.script:2: the script takes more than 64 MiB"},
      {"fill 0x1000 len=mtu*mtu*99 bytes=1\n", "x.script:2: the script takes more than 64 MiB"},
      {"send probe psn=0 path=mtu\n", "x.script:2: path = 1024: expected a number of 0 to 255"},
      {"region r len=4 rights=mtu\n", "x.script:2: rights = 1024: expected a number of 0 to 7"},
      {"body wait sem=mtu*64 value=1 id=1\n", "x.script:2: sem = 65536: expected a number of 0 to 65535"},
      {"body post write id=1 len=mtu*mtu*mtu*mtu\n", "x.script:2: len = 1099511627776: expected a number"},
      {"send write psn=0 epoch=mtu\n", "x.script:2: epoch = 1024: expected a number of 0 to 255"},
      {"send probe psn=0 port=1\n", "x.script:2: port = 1: expected one of the 1 ports of the set-up"},
      // Nothing is written behind the end of a frame.
      {"send probe psn=0 version=2\n", "x.script:2: version: the frame has 66 bytes and none at 85"},
      {"send probe psn=0 corrupt=payload\n", "x.script:2: corrupt=payload: the frame has 66 bytes"},
      {"send probe psn=0 cut=65535 corrupt=icrc\n", "x.script:2: corrupt=icrc: the frame has 0 bytes"},
      {"send probe psn=0 cut=50 corrupt=ip\n", "x.script:2: corrupt=ip: the frame has 16 bytes"},
      {"send probe psn=0 set=99999999999999999999:ff\n",
       "x.script:2: set = 99999999999999999999:ff: the frame"},
      {"send probe psn=0 set=18446744073709551615:ff\n",
       "x.script:2: set = 18446744073709551615:ff: the frame"},
      {"refuse MTU mtu=mtu*64\n", "x.script:2: mtu = 65536: expected a number of 0 to 65535"},
      {"setup paths=now\nwait 1us\n", "x.script:2: paths = 0: expected a number of 1 to 255"},
  };
  for (const auto& [text, expected] : cases) {
    Puppet body;
    const std::string got = says_wrong(body, text);
    INFO(text << " -> " << got);
    CHECK(got.find(expected) == 0);
  }
  Puppet chatty;
  for (unsigned i = 0; i < kMostSteps; ++i) chatty.data(1, i, 0);
  CHECK(says_wrong(chatty, "ignore data\nwait 1us\n").find("x.script:3: the script takes more than 100000") ==
        0);
  // As much as may be, and a round more: two steps a round, one each for repeat and region, 49 us.
  Puppet last, beyond;
  CHECK(play(last, "repeat 49974\nwait 1ns\nend\nregion r len=0x4000000\n").verdict == Verdict::kPass);
  CHECK(says_wrong(beyond, "repeat 49975\nwait 1ns\nend\nregion r len=0x4000000\n").find("x.script:5: ") ==
        0);
}

TEST_CASE("comply: a refused or broken body is told apart from a wrong one", "[comply][smoke]") {
  Puppet refuses;
  refuses.refusal = wire::Refusal::RESOURCES;
  CHECK(says_wrong(refuses, "setup mtu=256\nwait 1us\n") ==
        "x.script:2: the body refuses the connection: RESOURCES");
  CHECK(play(refuses, "refuse RESOURCES\n").verdict == Verdict::kPass);
  CHECK(says_wrong(refuses, "refuse MTU mtu=3\n") == "x.script:2: the body answers RESOURCES, expected MTU");
  Puppet breaks;
  breaks.breaks = true;
  for (const char* text : {"wait 1ns\nexpect ack\n", "region r len=4\nbody close\n"}) {
    const Outcome out = play(breaks, text);
    CHECK(out.verdict == Verdict::kBroken);
    CHECK(out.text == "x.script:3: it broke");
  }
  breaks.opens = false;
  CHECK(play(breaks, "wait 1ns\n").text == "x.script:1: it broke");
  CHECK(play(breaks, "setup mtu=256\nwait 1ns\n").text == "x.script:2: it broke");
}
