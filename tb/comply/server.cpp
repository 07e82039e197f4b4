// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/server.h"

#include <fmt/format.h>

#include <limits>

#include "sw/ref/packet.h"
#include "tb/comply/script.h"

namespace weft::comply {
namespace {

constexpr std::uint32_t kTold = kControl | kCounters | kState | kJointAcks;  // abilities in lines of text
constexpr std::uint64_t kMostTime = 1'000'000'000'000'000;                   // ps, as in a script

std::string status_text(wire::Err e) {
  return fmt::format("ok status={}", static_cast<unsigned>(e));
}

}  // namespace

Server::Server(Send send) : send_(std::move(send)) {
  begin({});
}

void Server::begin(const BodySetup& s) {
  setup_ = s;
  connected_ = false;
  endpoint_.reset();
  host_ = std::make_unique<RefHost>();
  endpoint_ = std::make_unique<ref::Endpoint>(ref_config(s), *host_);
}

void Server::advance(Ps now) {
  now_ = std::max(now_, now);
  if (endpoint_->next_timer() <= now_) endpoint_->on_timer(now_);
  transmit();
}

void Server::came(const Datagram& d, Ps now) {
  now_ = std::max(now_, now);
  if (d.bytes.empty()) return;
  const bool known = tester_.sin_port == 0 || same_end(d.from, tester_);
  if (is_packet(d)) {
    if (known) packet(d);
    return;
  }
  if (d.bytes[0] == 'W' && d.bytes.size() == wire::Hello::kBytes) {
    tester_ = d.from;
    const wire::Hello mine = endpoint_->accept(wire::Hello::unpack(d.bytes.data()), {}, now_);
    if (mine.refusal == wire::Refusal::NONE) {
      conn_ = mine.conn;
      connected_ = true;
    }
    std::uint8_t bytes[wire::Hello::kBytes];
    mine.pack(bytes);
    send_(tester_, bytes, sizeof bytes, 0);
    return;
  }
  const Line l = read_line(d.bytes);
  if (l.word == "weft-comply 1" || l.word == "begin") tester_ = d.from;
  std::string answer;
  try {
    answer = tester_.sin_port == 0 || same_end(d.from, tester_) ? obey(l) : "refused why=not-begun";
  } catch (const Refused& r) {
    answer = "refused " + r.why;
  }
  // An answer carries the number of its question back, whatever it is.
  say(d.from, fmt::format("{} seq={}", answer, printable(l.text("seq"))));
}

void Server::packet(const Datagram& d) {
  if (d.bytes.size() < kLeastPacket) {
    endpoint_->on_drop(wire::Drop::SHORT);
    return;
  }
  const std::uint32_t port = path_byte(d) / setup_.paths;
  const wire::Frame f = whole_frame(d, kTesterNode, kBodyNode, port);
  wire::RxPort rx;
  rx.whole_protocol = true;
  const wire::ParseResult r = wire::parse(f, rx);
  if (!r || port >= setup_.ports)
    endpoint_->on_drop(r ? wire::Drop::PATH : *r.drop);
  else
    endpoint_->on_packet(now_, port, ref::decode(r.frame));
}

void Server::say(const sockaddr_in& to, const std::string& text) const {
  send_(to, text.data(), text.size(), 0);
}

std::uint64_t Server::number(const Line& l, const char* key, std::uint64_t most, std::uint64_t least) {
  const auto v = l.number(key, most, least, least);
  if (!v) throw Refused{fmt::format("{}={} least={} most={}", key, printable(l.text(key)), least, most)};
  return *v;
}
std::uint32_t Server::path(const Line& l) const {
  return static_cast<std::uint32_t>(number(l, "path", setup_.ports * setup_.paths - 1));
}
std::uint16_t Server::stream(const Line& l) const {
  return static_cast<std::uint16_t>(number(l, "stream", std::numeric_limits<std::uint16_t>::max()));
}

std::string Server::obey(const Line& l) {
  if (l.word == "weft-comply 1") return fmt::format("ok abilities={}", kTold);
  if (l.word == "begin") return obey_begin(l);
  if (l.word == "region") {
    const auto rights = number(l, "rights", ref::kRemoteRead | ref::kRemoteWrite | ref::kRemoteAtomic);
    const auto r = host_->region(*endpoint_, number(l, "len", kMost64), static_cast<std::uint8_t>(rights));
    return r.ok() ? fmt::format("ok va={} rkey={}", r.value().va, r.value().rkey) : "refused why=memory";
  }
  if (l.word == "fill") {
    const auto bytes = unhex(l.text("hex"));
    if (!bytes) return "refused why=hex";
    const std::uint64_t va = number(l, "va", kMost64);
    return host_->write(va, bytes->data(), static_cast<std::uint32_t>(bytes->size())) ? "ok"
                                                                                      : "refused why=memory";
  }
  if (l.word == "show") {
    std::vector<std::uint8_t> bytes(number(l, "len", kChunk));
    const std::uint64_t va = number(l, "va", kMost64);
    return host_->read(va, bytes.data(), static_cast<std::uint32_t>(bytes.size())) ? "ok hex=" + hex(bytes)
                                                                                   : "refused why=memory";
  }
  if (l.word == "wait") {
    const auto sem = number(l, "sem", RefHost::kSems - 1);
    const auto value = number(l, "value", kMost32);
    return status_text(host_->wait(static_cast<std::uint16_t>(sem), static_cast<std::uint32_t>(value),
                                   number(l, "id", kMost64)));
  }
  if (l.word == "drops") {
    std::string all = "ok";
    for (unsigned i = 0; i < wire::kDropCount; ++i)
      all += fmt::format(" {}={}", wire::name(static_cast<wire::Drop>(i)), endpoint_->counters().drop[i]);
    return all;
  }
  const bool needs_connection =
      l.word == "post" || l.word == "recv" || l.word == "close" || l.word == "sport" || l.word == "state";
  if (!needs_connection) return "unknown";
  if (!connected_) return "refused why=no-connection";
  if (l.word == "post") return obey_post(l);
  if (l.word == "recv") {
    const auto bytes = number(l, "len", kMost32);
    return status_text(endpoint_->post_recv(conn_, stream(l), number(l, "id", kMost64),
                                            number(l, "va", kMost64), static_cast<std::uint32_t>(bytes),
                                            now_));
  }
  if (l.word == "close") {
    endpoint_->close(conn_, now_);
    return "ok";
  }
  if (l.word == "sport") return endpoint_->change_sport(conn_, path(l), now_) ? "ok" : "refused why=path";
  return "ok is=" + state_name(endpoint_->path_state(conn_, path(l)));
}

std::string Server::obey_begin(const Line& l) {
  const auto u32 = [&](const char* key, std::uint64_t most, std::uint64_t least) {
    return static_cast<std::uint32_t>(number(l, key, most, least));
  };
  const auto time = [&](const char* key) { return static_cast<Ps>(number(l, key, kMostTime)); };
  BodySetup s;
  for (const Bounds& b : kSetupBounds) {
    if (b.key == std::string("ports")) s.ports = u32("ports", b.most, b.least);
    if (b.key == std::string("paths")) s.paths = u32("paths", b.most, b.least);
    if (b.key == std::string("streams")) s.streams = u32("streams", b.most, b.least);
    if (b.key == std::string("mtu")) s.mtu = u32("mtu", b.most, b.least);
    if (b.key == std::string("distance")) s.distance = u32("distance", b.most, b.least);
  }
  s.rtt_init = time("rtt_init");
  s.probe_min = time("probe_min");
  s.give_up = time("give_up");
  s.packet_life = time("packet_life");
  if (!ref::Endpoint::possible(ref_config(s))) return "refused why=setup";
  begin(s);
  return "ok";
}

std::string Server::obey_post(const Line& l) {
  const auto u32 = [&](const char* key) { return static_cast<std::uint32_t>(number(l, key, kMost32)); };
  ref::WorkRequest r;
  r.op = static_cast<ref::WrOp>(number(l, "op", static_cast<unsigned>(ref::WrOp::kCompareSwap)));
  r.id = number(l, "id", kMost64);
  r.local_va = number(l, "local", kMost64);
  r.local_rkey = u32("local_key");
  r.length = u32("len");
  r.remote_va = number(l, "to", kMost64);
  r.rkey = u32("key");
  r.value = u32("value");
  r.sem = static_cast<std::uint16_t>(number(l, "sem", std::numeric_limits<std::uint16_t>::max()));
  r.operand = number(l, "operand", kMost64);
  r.compare = number(l, "compare", kMost64);
  return status_text(endpoint_->post(conn_, stream(l), r, now_));
}

void Server::transmit() {
  for (std::uint32_t port = 0; port < setup_.ports; ++port) {
    ref::Packet p{};
    while (endpoint_->next_packet(now_, port, p)) {
      std::vector<std::uint8_t> f(wire::kMaxFrameBytes);
      f.resize(ref::encode(f.data(), {}, p));
      if (const auto d = without_headers(f)) send_(tester_, d->data(), d->size(), f[15] & 3);
    }
  }
  for (const Completion& c : host_->take_completions())
    say(tester_, fmt::format("completion what={} id={} status={} bytes={} stream={}{}",
                             static_cast<unsigned>(c.what), c.id, static_cast<unsigned>(c.status), c.bytes,
                             c.stream, c.imm ? fmt::format(" imm={}", *c.imm) : ""));
}

}  // namespace weft::comply
