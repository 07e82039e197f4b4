// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/udp_body.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>

#include "tb/comply/datagram.h"
#include "tb/comply/script.h"
#include "tb/comply/server.h"

namespace weft::comply {
namespace {

constexpr std::uint32_t kTold = kControl | kCounters | kState | kJointAcks;  // abilities in lines of text
constexpr Ps kAnswer = 500 * kUs;                                            // half a second of the wall

Ps wall_now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t).count() * kNs / kUdpTimeScale;
}

class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  void send(const sockaddr_in& to, const void* bytes, std::size_t count, int tos) const {
    ::setsockopt(fd_, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    // A datagram that does not leave is a lost one.
    (void)::sendto(fd_, bytes, count, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  // Waits until `until` at most.
  bool receive(Ps until, Datagram* out) const {
    const Ps wait = std::max<Ps>(until - wall_now(), 0);
    pollfd p{fd_, POLLIN, 0};
    const timespec t{static_cast<time_t>(wait * kUdpTimeScale / (1000 * kMs)),
                     static_cast<long>(wait * kUdpTimeScale / kNs % 1'000'000'000)};
    if (::ppoll(&p, 1, &t, nullptr) <= 0) return false;
    out->bytes.resize(kMaxText);
    iovec io{out->bytes.data(), out->bytes.size()};
    alignas(cmsghdr) char control[64];
    msghdr m{};
    m.msg_name = &out->from;
    m.msg_namelen = sizeof out->from;
    m.msg_iov = &io;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(fd_, &m, 0);
    if (n <= 0) return false;
    out->bytes.resize(static_cast<std::size_t>(n));
    out->tos = 0;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c))
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) out->tos = *CMSG_DATA(c);
    return true;
  }

 private:
  int fd_;
};

class UdpBody final : public Body {
 public:
  UdpBody(std::string where, const sockaddr_in& peer) : where_(std::move(where)), peer_(peer) {}

  // Learns what is there. The connection of this offer is given up.
  Status find() {
    wire::Hello offer;
    offer.magic = 0x54464557;
    offer.version = wire::kWeftVersion;
    offer.incarnation = 1;
    offer.caps = 0xff;
    offer.ports = offer.paths = 1;
    offer.streams = 1;
    offer.mtu = 1024;
    offer.line = 100'000;
    const auto text = ask("weft-comply 1");
    if (text) {
      control_ = true;
      const auto told = text->number("abilities", ~std::uint32_t{0}, kControl);
      if (!told) return odd("weft-comply 1", *text);
      abilities_ = static_cast<std::uint32_t>(*told) & kTold;
    }
    auto answer = hello(offer);
    if (!answer.ok()) return answer.status();
    caps_ = answer.value().caps;
    return {};
  }

  std::uint32_t caps() const override { return caps_; }
  std::uint32_t abilities() const override { return kSetup | (control_ ? abilities_ : 0); }

  Result<wire::Hello> open(const BodySetup& s, const wire::Hello& offer) override {
    paths_ = s.paths;
    if (control_)
      if (Status told = done(fmt::format(
              "begin ports={} paths={} streams={} mtu={} distance={} rtt_init={} probe_min={} give_up={} "
              "packet_life={}",
              s.ports, s.paths, s.streams, s.mtu, s.distance, s.rtt_init, s.probe_min, s.give_up,
              s.packet_life));
          !told.ok())
        return told;
    events_.clear();
    return hello(offer);
  }

  Ps now() const override { return wall_now(); }
  void send(std::uint32_t, wire::Bytes frame, bool) override {
    if (const auto d = without_headers(frame)) socket_.send(peer_, d->data(), d->size(), frame[15] & 3);
  }
  Status run(Ps until, std::vector<Event>& out) override {
    take(out);
    while (out.empty() && wrong_.ok() && wall_now() < until) {
      Datagram d;
      if (socket_.receive(until, &d)) came(d);
      take(out);
    }
    return std::exchange(wrong_, Status());
  }

  Result<Address> region(std::uint64_t bytes, std::uint8_t rights) override {
    const auto a = answer(fmt::format("region len={} rights={}", bytes, rights));
    if (!a.ok()) return a.status();
    const auto va = a.value().number("va", kMost64), rkey = a.value().number("rkey", kMost32);
    if (!va || !rkey || a.value().args.count("va") == 0) return odd("region", a.value());
    return Address{*va, static_cast<std::uint32_t>(*rkey)};
  }
  Status write(std::uint64_t va, const std::vector<std::uint8_t>& bytes) override {
    for (std::size_t at = 0; at < bytes.size(); at += kChunk) {
      const std::vector<std::uint8_t> some(
          bytes.begin() + static_cast<std::ptrdiff_t>(at),
          bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at + kChunk, bytes.size())));
      if (Status s = done(fmt::format("fill va={} hex={}", va + at, hex(some))); !s.ok()) return s;
    }
    return {};
  }
  Result<std::vector<std::uint8_t>> read(std::uint64_t va, std::size_t count) override {
    std::vector<std::uint8_t> bytes;
    while (bytes.size() < count) {
      const std::size_t some = std::min(kChunk, count - bytes.size());
      const auto a = answer(fmt::format("show va={} len={}", va + bytes.size(), some));
      if (!a.ok()) return a.status();
      const auto got = unhex(a.value().text("hex"));
      if (!got || got->size() != some)
        return Status::error(
            fmt::format("{}: show: {} bytes, expected {}", where_, got ? got->size() : 0, some));
      bytes.insert(bytes.end(), got->begin(), got->end());
    }
    return bytes;
  }
  Result<wire::Err> post(const Post& p) override {
    const ref::WorkRequest& r = p.request;
    return answered(
        p.wait ? fmt::format("wait sem={} value={} id={}", r.sem, r.value, r.id)
               : fmt::format(
                     "post op={} stream={} id={} local={} local_key={} len={} to={} key={} value={} sem={} "
                     "operand={} compare={}",
                     static_cast<unsigned>(r.op), p.stream, r.id, r.local_va, r.local_rkey, r.length,
                     r.remote_va, r.rkey, r.value, r.sem, r.operand, r.compare));
  }
  Result<wire::Err> post_recv(std::uint16_t stream, std::uint64_t id, Address at,
                              std::uint32_t bytes) override {
    return answered(fmt::format("recv stream={} id={} va={} len={}", stream, id, at.va, bytes));
  }
  Status close() override { return done("close"); }
  Status change_sport(std::uint32_t path) override { return done(fmt::format("sport path={}", path)); }
  Result<std::vector<std::uint64_t>> drops() override {
    const auto a = answer("drops");
    if (!a.ok()) return a.status();
    std::vector<std::uint64_t> out(wire::kDropCount);
    for (unsigned i = 0; i < out.size(); ++i) {
      const auto n = a.value().number(wire::name(static_cast<wire::Drop>(i)), kMost64);
      if (!n) return odd("drops", a.value());
      out[i] = *n;
    }
    return out;
  }
  Result<std::string> path_state(std::uint32_t path) override {
    const auto a = answer(fmt::format("state path={}", path));
    if (!a.ok()) return a.status();
    return printable(a.value().text("is"));
  }

 private:
  Status gone(const std::string& what) const {
    return Status::error(fmt::format("{}: no answer to '{}'", where_, what));
  }
  /// An answer that is none of what may be answered.
  Status odd(const std::string& what, const Line& answer) const {
    std::string text = answer.word;
    for (const auto& [key, value] : answer.args)
      if (key != "seq") text += fmt::format(" {}={}", key, value);
    return Status::error(fmt::format("{}: '{}' is answered with '{}'", where_, what, printable(text)));
  }
  void take(std::vector<Event>& out) {
    for (Event& e : events_) out.push_back(std::move(e));
    events_.clear();
  }
  void came(const Datagram& d) {
    if (!same_end(d.from, peer_)) return;  // whoever that is, it is not the body
    Event e;
    e.time = wall_now();
    if (is_packet(d)) {
      if (d.bytes.size() < kLeastPacket) return;  // too short for a wire
      e.port = path_byte(d) / paths_;
      e.frame = whole_frame(d, kBodyNode, kTesterNode, e.port);
      events_.push_back(std::move(e));
      return;
    }
    const Line l = read_line(d.bytes);
    if (l.word == "completion") {
      const auto what = l.number("what", static_cast<unsigned>(ref::Completed::kConnection)),
                 id = l.number("id", kMost64), status = l.number("status", 0xff),
                 bytes = l.number("bytes", kMost32), stream = l.number("stream", 0xffff),
                 imm = l.number("imm", kMost32);
      if (!what || !id || !status || !bytes || !stream || !imm) {
        if (wrong_.ok()) wrong_ = odd("completion", l);
        return;
      }
      e.is_frame = false;
      Completion& c = e.completion;
      c.what = static_cast<ref::Completed>(*what);
      c.id = *id;
      c.status = static_cast<wire::Err>(*status);
      c.bytes = static_cast<std::uint32_t>(*bytes);
      c.stream = static_cast<std::uint16_t>(*stream);
      if (l.args.count("imm") != 0) c.imm = static_cast<std::uint32_t>(*imm);
      events_.push_back(std::move(e));
    } else if (l.args.count("seq") != 0 && l.number("seq", kMost64) == seq_) {
      answer_ = l;
    } else if (d.bytes.size() == wire::Hello::kBytes && d.bytes[0] == 'W') {
      hello_ = wire::Hello::unpack(d.bytes.data());
    }
  }
  std::optional<Line> ask(const std::string& text) {
    answer_.reset();
    const std::string line = fmt::format("{} seq={}", text, ++seq_);
    socket_.send(peer_, line.data(), line.size(), 0);
    const Ps until = wall_now() + kAnswer;
    while (!answer_ && wall_now() < until) {
      Datagram d;
      if (socket_.receive(until, &d)) came(d);
    }
    return answer_;
  }
  /// An answer that says ok. An end that refuses says why.
  Result<Line> answer(const std::string& text) {
    const std::string what = text.substr(0, text.find(' '));
    const auto a = ask(text);
    if (!a) return gone(what);
    if (a->word != "ok") return odd(what, *a);
    return *a;
  }
  Status done(const std::string& text) { return answer(text).status(); }
  Result<wire::Err> answered(const std::string& text) {
    const auto a = answer(text);
    if (!a.ok()) return a.status();
    const auto status = a.value().number("status", 0xff);
    if (!status || a.value().args.count("status") == 0) return odd(text.substr(0, text.find(' ')), a.value());
    return static_cast<wire::Err>(*status);
  }
  Result<wire::Hello> hello(const wire::Hello& offer) {
    hello_.reset();
    std::uint8_t bytes[wire::Hello::kBytes];
    offer.pack(bytes);
    socket_.send(peer_, bytes, sizeof bytes, 0);
    const Ps until = wall_now() + kAnswer;
    while (!hello_ && wall_now() < until) {
      Datagram d;
      if (socket_.receive(until, &d)) came(d);
    }
    if (!hello_) return gone("set-up record");
    return *hello_;
  }

  std::string where_;
  sockaddr_in peer_;
  Socket socket_;
  std::uint32_t caps_ = 0, abilities_ = 0, paths_ = 1;
  bool control_ = false;
  std::uint64_t seq_ = 0;
  std::optional<Line> answer_;
  std::optional<wire::Hello> hello_;
  std::vector<Event> events_;
  Status wrong_;  // what came and can be nothing
};

}  // namespace

Result<std::unique_ptr<Body>> make_udp_body(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  unsigned port = 0;
  if (colon != std::string::npos)
    std::from_chars(where.data() + colon + 1, where.data() + where.size(), port);
  const auto bad = [&](const std::string& expected) {
    return Status::error(fmt::format("--body = udp:{}: expected {}", where, expected));
  };
  if (port == 0 || port > 65535) return bad("udp:HOST:PORT with a port of 1 to 65535");
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(where.substr(0, colon).c_str(), nullptr, &hints, &found) != 0 || found == nullptr)
    return bad("a host with an IPv4 address");
  sockaddr_in peer;
  std::memcpy(&peer, found->ai_addr, sizeof peer);
  ::freeaddrinfo(found);
  peer.sin_port = htons(static_cast<std::uint16_t>(port));
  auto body = std::make_unique<UdpBody>("udp:" + where, peer);
  if (Status s = body->find(); !s.ok()) return Status::error("--body = " + s.text());
  return std::unique_ptr<Body>(std::move(body));
}

Status serve(std::uint16_t port) {
  const Socket socket;
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  here.sin_port = htons(port);
  socklen_t bytes = sizeof here;
  if (::bind(socket.fd(), reinterpret_cast<sockaddr*>(&here), bytes) != 0 ||
      ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&here), &bytes) != 0)
    return Status::error(fmt::format("--serve = {}: cannot listen there: {}", port, std::strerror(errno)));
  std::printf("listening on 127.0.0.1:%u\n", ntohs(here.sin_port));
  std::fflush(stdout);
  Server server([&](const sockaddr_in& to, const void* data, std::size_t count, int tos) {
    socket.send(to, data, count, tos);
  });
  for (;;) {
    server.advance(wall_now());
    Datagram d;
    if (socket.receive(std::min(server.next_timer(), wall_now() + 1000 * kUs), &d))
      server.came(d, wall_now());
  }
}

}  // namespace weft::comply
