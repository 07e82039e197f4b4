// SPDX-License-Identifier: Apache-2.0
// The script player and the peer behind a socket. An even first byte: the rest picks words, keys and numbers
// of a script, which the reference endpoint then plays. An odd one: the rest is datagrams to the peer, bytes
// as they are, set-up records and lines of text. Numbers lie at the edges of what a field holds, and beyond.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <vector>

#include "tb/comply/ref_body.h"
#include "tb/comply/script.h"
#include "tb/comply/server.h"
#include "tb/comply/tester.h"
#include "tests/fuzz/targets.h"

namespace weft::fuzz {
namespace {

// Takes an input apart; 0 behind its end.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool more() const { return at_ < size_; }
  std::uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  template <class Array>
  auto of(const Array& all) {
    return all[byte() % std::size(all)];
  }
  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> out;
    while (count-- > 0 && more()) out.push_back(byte());
    return out;
  }
  std::string number() {
    static const char* const kNumbers[] = {
        "0",          "1",          "2",        "3",    "7",     "8",     "64",
        "255",        "256",        "300",      "1024", "65535", "65536", "16777215",
        "4294967295", "4294967296", "1e9",      "-1",   "0x",    "",      "18446744073709551615",
        "4096",       "1000000",    "100000000"};
    return of(kNumbers);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

void script(Choices& c) {
  static const char* const kSteps[] = {
      "region r len=@",
      "fill r len=@ bytes=@",
      "check r+@ len=@ bytes=zero",
      "wait @ns",
      "send write psn=+@ path=@ len=@ va=r rkey=r.key msg_len=@",
      "send write_signal psn=+@ sem=@ value=@ stream=@ epoch=@",
      "send probe psn=+@ path=@ port=@ copies=@",
      "send ack base=+@ path=@ credits=@ p1.base=@ p1.epoch=@",
      "send fence psn=+@ path=@ epoch=@",
      "send write psn=@ words=@ blocks=@ version=@ opcode=@",
      "send write psn=@ set=@:ffff cut=@ grow=@",
      "send probe psn=@ version=@ words=@ blocks=@",
      "send probe psn=@ corrupt=payload",
      "send ack base=@ cut=@ corrupt=icrc",
      "send fence psn=@ cut=@ corrupt=ip",
      "send hex c2@@",
      "expect ack path=@ within 3us",
      "expect no data psn=@ for 1us",
      "expect completion id=@ within 2us",
      "body post write id=@ stream=@ local=r local_key=r.key len=@ to=@ key=@ sem=@",
      "body post send id=@ stream=@ len=@",
      "body recv id=@ stream=@ at=r len=@",
      "body wait sem=@ value=@ id=@",
      "body close",
      "body sport path=@",
      "state path=@ good within 1us",
      "counters SHORT=@ LONG=@",
      "refuse MTU mtu=@ ports=@ paths=@ streams=@ distance=@",
      "auto ack path=@ credits=@",
      "ignore data",
      "ignore completions",
      "unordered\nexpect ack path=@\nexpect probe psn=@\nend",
      "repeat @ as i\nsend probe psn=+i path=i\nbody wait sem=i value=@ id=i\nend"};
  // Lines that nobody understands are refused, and left out so that the others run.
  std::string text = "# t\n";
  const auto add = [&](const char* line) {
    std::string more;
    for (; *line != '\0'; ++line) more += *line == '@' ? c.number() : std::string(1, *line);
    const auto with = weft::comply::parse_script("x", text + more + "\nwait 1ns\n");
    if (with.ok()) text += more + "\n";
  };
  if ((c.byte() & 1) != 0) add("setup ports=@ paths=@ streams=@ mtu=@ distance=@ psn=@ conn=@ incarnation=@");
  add("region r len=4096");
  while (c.more() && text.size() < 1000) add(c.of(kSteps));
  const auto parsed = weft::comply::parse_script("x", text);
  if (!parsed.ok()) return;
  const auto body = weft::comply::make_ref_body();
  (void)weft::comply::run_script(*body, parsed.value(), {});
}

void server(Choices& c) {
  static const char* const kLines[] = {
      "begin ports=@ paths=@ streams=@ mtu=@ distance=@ rtt_init=@ probe_min=@ give_up=@ packet_life=@",
      "begin ports=2 paths=4 streams=2 mtu=1024 distance=0 rtt_init=4000000 probe_min=2000000 "
      "give_up=1000000000 packet_life=1000000",
      "region len=@ rights=@",
      "fill va=@ hex=00f",
      "fill va=68719480832 hex=00ff",
      "show va=68719480832 len=@",
      "wait sem=@ value=@ id=@",
      "post op=@ stream=@ id=@ local=@ local_key=@ len=@ to=@ key=@ value=@ sem=@",
      "recv stream=@ id=@ va=@ len=@",
      "close",
      "sport path=@",
      "drops",
      "state path=@",
      "weft-comply 1",
      "@ =@ x==@"};
  weft::comply::Server peer([](const sockaddr_in&, const void*, std::size_t, int) {});
  weft::comply::Ps now = 0;
  weft::comply::Datagram d;
  d.from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (c.more()) {
    const std::uint8_t what = c.byte();
    d.from.sin_port = htons(what < 250 ? 1 : 2);
    d.bytes.clear();
    if (what % 4 == 0) {
      d.bytes = c.bytes(c.byte() % 120);
    } else if (what % 4 == 1) {
      wire::Hello h{};
      h.magic = 0x54464557;
      h.version = wire::kWeftVersion;
      h.incarnation = c.byte();
      h.caps = c.byte();
      h.conn = c.byte();
      h.ports = static_cast<std::uint8_t>(what & 128 ? c.byte() : 2);
      h.paths = static_cast<std::uint8_t>(what & 128 ? c.byte() : 4);
      h.streams = static_cast<std::uint16_t>(what & 64 ? c.byte() : 1);
      h.mtu = 1024;
      h.line = 100'000;
      d.bytes.resize(wire::Hello::kBytes);
      h.pack(d.bytes.data());
    } else {
      std::string text;
      for (const char* line = c.of(kLines); *line != '\0'; ++line)
        text += *line == '@' ? c.number() : std::string(1, *line);
      d.bytes.assign(text.begin(), text.end());
    }
    peer.came(d, now);
    now += (what & 7) * weft::comply::kUs;
    peer.advance(now);
  }
}

}  // namespace

void comply(const std::uint8_t* data, std::size_t size) {
  Choices c(data, size);
  if ((c.byte() & 1) == 0)
    script(c);
  else
    server(c);
}

}  // namespace weft::fuzz
