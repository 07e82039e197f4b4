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

#include "sw/ref/packet.h"
#include "tb/check/traffic.h"
#include "tb/comply/ref_body.h"

namespace weft::comply {
namespace {

constexpr std::size_t kBth = 42;  // Ethernet, IPv4 and UDP headers in front of it
constexpr std::size_t kMaxText = 8192;
constexpr std::uint32_t kTold = kControl | kCounters | kState | kJointAcks;  // abilities in lines of text
constexpr Ps kAnswer = 500 * kUs;                                            // half a second of the wall

Ps wall_now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t).count() * kNs / kUdpTimeScale;
}

// CRC over eight ff and the packet, whose last four bytes it is compared with or put into.
std::uint32_t short_icrc(wire::Bytes packet) {
  constexpr std::uint32_t kAfterEightOnes = 0xdebb20e3;
  std::array<std::uint8_t, 5> head;
  std::copy_n(packet.begin(), head.size(), head.begin());
  head[4] = 0xff;
  return ~wire::crc32_update(wire::crc32_update(kAfterEightOnes, head),
                             packet.subspan(5, packet.size() - 5 - wire::kIcrcBytes));
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
  struct Datagram {
    sockaddr_in from{};
    std::vector<std::uint8_t> bytes;
    int tos = 0;
  };
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

// A frame as the wire has it: what the other end left out is put in front.
wire::Frame whole_frame(const Socket::Datagram& d, std::uint32_t from, std::uint32_t to, std::uint32_t port) {
  const wire::Route route{tb::node_mac(from, port),
                          tb::node_mac(to, port),
                          tb::node_ip(from, port),
                          tb::node_ip(to, port),
                          0,
                          static_cast<std::uint8_t>(d.tos & 3)};
  wire::Frame f = wire::build_probe(route, {}, {});
  const std::uint32_t wrong =
      short_icrc(d.bytes) ^
      static_cast<std::uint32_t>(wire::detail::get_le<4>(d.bytes.data() + d.bytes.size() - 4));
  f.resize(kBth + d.bytes.size());
  std::copy(d.bytes.begin(), d.bytes.end(), f.begin() + kBth);
  wire::detail::put_be<2>(f.data() + 16, f.size() - 14);
  wire::detail::put_be<2>(f.data() + 38, f.size() - 34);
  wire::reseal(f);
  if (wrong != 0) f.back() ^= 1;
  return f;
}
std::vector<std::uint8_t> without_headers(wire::Bytes frame) {
  std::vector<std::uint8_t> d(frame.begin() + kBth, frame.end());
  const std::size_t covered = frame.size() - wire::kIcrcBytes;
  const bool good = wire::detail::get_le<4>(frame.data() + covered) == wire::icrc(frame.first(covered));
  wire::detail::put_le<4>(d.data() + d.size() - wire::kIcrcBytes, short_icrc(d) ^ (good ? 0 : 1));
  return d;
}

// "word key=number key=text ..."
struct Line {
  std::string word;
  std::map<std::string, std::string> args;
  std::uint64_t number(const char* key, std::uint64_t otherwise = 0) const {
    const auto it = args.find(key);
    if (it == args.end()) return otherwise;
    std::uint64_t v = 0;
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), v);
    return v;
  }
  std::string text(const char* key) const {
    const auto it = args.find(key);
    return it == args.end() ? "" : it->second;
  }
};
Line read_line(const std::vector<std::uint8_t>& bytes) {
  Line l;
  std::size_t i = 0;
  while (i < bytes.size()) {
    std::string w;
    while (i < bytes.size() && bytes[i] > ' ') w += static_cast<char>(bytes[i++]);
    while (i < bytes.size() && bytes[i] <= ' ') ++i;
    const std::size_t equals = w.find('=');
    if (equals == std::string::npos)
      l.word += (l.word.empty() ? "" : " ") + w;
    else
      l.args[w.substr(0, equals)] = w.substr(equals + 1);
  }
  return l;
}
std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string s;
  for (std::uint8_t b : bytes) s += fmt::format("{:02x}", b);
  return s;
}
std::vector<std::uint8_t> unhex(const std::string& s) {
  std::vector<std::uint8_t> b(s.size() / 2);
  for (std::size_t i = 0; i < b.size(); ++i)
    std::from_chars(s.data() + 2 * i, s.data() + 2 * i + 2, b[i], 16);
  return b;
}
constexpr std::size_t kChunk = 2048;  // bytes of memory in a line

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
      abilities_ = static_cast<std::uint32_t>(text->number("abilities", kControl)) & kTold;
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
    if (control_ &&
        !ask(fmt::format(
            "begin ports={} paths={} streams={} mtu={} distance={} rtt_init={} probe_min={} give_up={} "
            "packet_life={}",
            s.ports, s.paths, s.streams, s.mtu, s.distance, s.rtt_init, s.probe_min, s.give_up,
            s.packet_life)))
      return gone("begin");
    events_.clear();
    return hello(offer);
  }

  Ps now() const override { return wall_now(); }
  void send(std::uint32_t, wire::Bytes frame, bool) override {
    if (frame.size() < kBth + 9) return;
    const std::vector<std::uint8_t> d = without_headers(frame);
    socket_.send(peer_, d.data(), d.size(), frame[15] & 3);
  }
  Status run(Ps until, std::vector<Event>& out) override {
    take(out);
    while (out.empty() && wall_now() < until) {
      Socket::Datagram d;
      if (socket_.receive(until, &d)) came(d);
      take(out);
    }
    return {};
  }

  Result<Address> region(std::uint64_t bytes, std::uint8_t rights) override {
    const auto a = ask(fmt::format("region len={} rights={}", bytes, rights));
    if (!a) return gone("region");
    if (a->args.count("va") == 0) return Status::error(fmt::format("{}: region: {}", where_, a->word));
    return Address{a->number("va"), static_cast<std::uint32_t>(a->number("rkey"))};
  }
  Status write(std::uint64_t va, const std::vector<std::uint8_t>& bytes) override {
    for (std::size_t at = 0; at < bytes.size(); at += kChunk) {
      const std::vector<std::uint8_t> some(
          bytes.begin() + static_cast<std::ptrdiff_t>(at),
          bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at + kChunk, bytes.size())));
      if (!ask(fmt::format("fill va={} hex={}", va + at, hex(some)))) return gone("fill");
    }
    return {};
  }
  Result<std::vector<std::uint8_t>> read(std::uint64_t va, std::size_t count) override {
    std::vector<std::uint8_t> bytes;
    while (bytes.size() < count) {
      const std::size_t some = std::min(kChunk, count - bytes.size());
      const auto a = ask(fmt::format("show va={} len={}", va + bytes.size(), some));
      if (!a) return gone("show");
      const auto got = unhex(a->text("hex"));
      if (got.size() != some)
        return Status::error(fmt::format("{}: show: {} bytes, expected {}", where_, got.size(), some));
      bytes.insert(bytes.end(), got.begin(), got.end());
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
  Status close() override { return ask("close") ? Status() : gone("close"); }
  Status change_sport(std::uint32_t path) override {
    return ask(fmt::format("sport path={}", path)) ? Status() : gone("sport");
  }
  Result<std::vector<std::uint64_t>> drops() override {
    const auto a = ask("drops");
    if (!a) return gone("drops");
    std::vector<std::uint64_t> out(wire::kDropCount);
    for (unsigned i = 0; i < out.size(); ++i) out[i] = a->number(wire::name(static_cast<wire::Drop>(i)));
    return out;
  }
  Result<std::string> path_state(std::uint32_t path) override {
    const auto a = ask(fmt::format("state path={}", path));
    if (!a) return gone("state");
    return a->text("is");
  }

 private:
  Status gone(const char* what) const {
    return Status::error(fmt::format("{}: no answer to '{}'", where_, what));
  }
  void take(std::vector<Event>& out) {
    for (Event& e : events_) out.push_back(std::move(e));
    events_.clear();
  }
  void came(const Socket::Datagram& d) {
    Event e;
    e.time = wall_now();
    if (d.bytes.size() >= 24 && d.bytes[0] >= 0xc0) {
      e.port = d.bytes[12] / paths_;
      e.frame = whole_frame(d, kBodyNode, kTesterNode, e.port);
      events_.push_back(std::move(e));
      return;
    }
    const Line l = read_line(d.bytes);
    if (l.word == "completion") {
      e.is_frame = false;
      Completion& c = e.completion;
      c.what = static_cast<ref::Completed>(l.number("what"));
      c.id = l.number("id");
      c.status = static_cast<wire::Err>(l.number("status"));
      c.bytes = static_cast<std::uint32_t>(l.number("bytes"));
      c.stream = static_cast<std::uint16_t>(l.number("stream"));
      if (l.args.count("imm") != 0) c.imm = static_cast<std::uint32_t>(l.number("imm"));
      events_.push_back(std::move(e));
    } else if (l.args.count("seq") != 0 && l.number("seq") == seq_) {
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
      Socket::Datagram d;
      if (socket_.receive(until, &d)) came(d);
    }
    return answer_;
  }
  Result<wire::Err> answered(const std::string& text) {
    const auto a = ask(text);
    if (!a) return gone(text.substr(0, text.find(' ')).c_str());
    return static_cast<wire::Err>(a->number("status"));
  }
  Result<wire::Hello> hello(const wire::Hello& offer) {
    hello_.reset();
    std::uint8_t bytes[wire::Hello::kBytes];
    offer.pack(bytes);
    socket_.send(peer_, bytes, sizeof bytes, 0);
    const Ps until = wall_now() + kAnswer;
    while (!hello_ && wall_now() < until) {
      Socket::Datagram d;
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
};

// The peer of `serve`: the reference endpoint, one connection at a time.
class Server {
 public:
  explicit Server(const Socket& socket) : socket_(socket) { begin({}); }

  void run() {
    for (;;) {
      transmit();
      Socket::Datagram d;
      if (socket_.receive(std::min(endpoint_->next_timer(), wall_now() + 1000 * kUs), &d)) came(d);
      if (endpoint_->next_timer() <= wall_now()) endpoint_->on_timer(wall_now());
    }
  }

 private:
  void begin(const BodySetup& s) {
    setup_ = s;
    endpoint_.reset();
    host_ = std::make_unique<RefHost>();
    endpoint_ = std::make_unique<ref::Endpoint>(ref_config(s), *host_);
  }
  void came(const Socket::Datagram& d) {
    if (d.bytes[0] >= 0xc0 && d.bytes.size() >= 9) {
      const std::uint32_t port = d.bytes.size() > 12 ? d.bytes[12] / setup_.paths : 0;
      const wire::Frame f = whole_frame(d, kTesterNode, kBodyNode, port);
      wire::RxPort rx;
      rx.whole_protocol = true;
      const wire::ParseResult r = wire::parse(f, rx);
      if (!r || port >= setup_.ports) {
        endpoint_->on_drop(r ? wire::Drop::PATH : *r.drop);
      } else {
        endpoint_->on_packet(wall_now(), port, ref::decode(r.frame));
      }
      return;
    }
    tester_ = d.from;
    if (d.bytes[0] == 'W' && d.bytes.size() == wire::Hello::kBytes) {
      const wire::Hello mine = endpoint_->accept(wire::Hello::unpack(d.bytes.data()), {}, wall_now());
      conn_ = mine.conn;
      std::uint8_t bytes[wire::Hello::kBytes];
      mine.pack(bytes);
      socket_.send(tester_, bytes, sizeof bytes, 0);
      return;
    }
    const Line l = read_line(d.bytes);
    say(fmt::format("{} seq={}", obey(l), l.number("seq")));
  }
  void say(const std::string& text) const { socket_.send(tester_, text.data(), text.size(), 0); }

  std::string obey(const Line& l) {
    const auto u16 = [&](const char* key) { return static_cast<std::uint16_t>(l.number(key)); };
    const auto u32 = [&](const char* key) { return static_cast<std::uint32_t>(l.number(key)); };
    if (l.word == "weft-comply 1") return fmt::format("ok abilities={}", kTold);
    if (l.word == "begin") {
      BodySetup s;
      s.ports = u32("ports");
      s.paths = std::max(1u, u32("paths"));
      s.streams = u32("streams");
      s.mtu = u32("mtu");
      s.distance = u32("distance");
      s.rtt_init = static_cast<Ps>(l.number("rtt_init"));
      s.probe_min = static_cast<Ps>(l.number("probe_min"));
      s.give_up = static_cast<Ps>(l.number("give_up"));
      s.packet_life = static_cast<Ps>(l.number("packet_life"));
      if (!ref::Endpoint::possible(ref_config(s))) return "refused";
      begin(s);
      return "ok";
    }
    if (l.word == "region") {
      const auto r =
          host_->region(*endpoint_, l.number("len"), static_cast<std::uint8_t>(l.number("rights")));
      return r.ok() ? fmt::format("ok va={} rkey={}", r.value().va, r.value().rkey) : "refused";
    }
    if (l.word == "fill") {
      const auto bytes = unhex(l.text("hex"));
      return host_->write(l.number("va"), bytes.data(), static_cast<std::uint32_t>(bytes.size())) ? "ok"
                                                                                                  : "refused";
    }
    if (l.word == "show") {
      std::vector<std::uint8_t> bytes(std::min<std::uint64_t>(l.number("len"), kChunk));
      return host_->read(l.number("va"), bytes.data(), static_cast<std::uint32_t>(bytes.size()))
                 ? "ok hex=" + hex(bytes)
                 : "refused";
    }
    if (l.word == "wait") {
      host_->wait(u16("sem"), u32("value"), l.number("id"));
      return "ok status=0";
    }
    if (l.word == "post") {
      ref::WorkRequest r;
      r.op = static_cast<ref::WrOp>(l.number("op"));
      r.id = l.number("id");
      r.local_va = l.number("local");
      r.local_rkey = u32("local_key");
      r.length = u32("len");
      r.remote_va = l.number("to");
      r.rkey = u32("key");
      r.value = u32("value");
      r.sem = u16("sem");
      r.operand = l.number("operand");
      r.compare = l.number("compare");
      return status(endpoint_->post(conn_, u16("stream"), r, wall_now()));
    }
    if (l.word == "recv")
      return status(
          endpoint_->post_recv(conn_, u16("stream"), l.number("id"), l.number("va"), u32("len"), wall_now()));
    if (l.word == "close") {
      endpoint_->close(conn_, wall_now());
      return "ok";
    }
    if (l.word == "sport") {
      return endpoint_->change_sport(conn_, u32("path"), wall_now()) ? "ok" : "refused";
    }
    if (l.word == "drops") {
      std::string all = "ok";
      for (unsigned i = 0; i < wire::kDropCount; ++i)
        all += fmt::format(" {}={}", wire::name(static_cast<wire::Drop>(i)), endpoint_->counters().drop[i]);
      return all;
    }
    if (l.word == "state")
      return std::string("ok is=") + state_name(endpoint_->path_state(conn_, u32("path")));
    return "unknown";
  }
  static std::string status(wire::Err e) { return fmt::format("ok status={}", static_cast<unsigned>(e)); }

  void transmit() {
    for (std::uint32_t port = 0; port < setup_.ports; ++port) {
      ref::Packet p{};
      while (endpoint_->next_packet(wall_now(), port, p)) {
        std::vector<std::uint8_t> f(wire::kMaxFrameBytes);
        f.resize(ref::encode(f.data(), {}, p));
        const auto d = without_headers(f);
        socket_.send(tester_, d.data(), d.size(), f[15] & 3);
      }
    }
    for (const Completion& c : host_->take_completions())
      say(fmt::format("completion what={} id={} status={} bytes={} stream={}{}",
                      static_cast<unsigned>(c.what), c.id, static_cast<unsigned>(c.status), c.bytes, c.stream,
                      c.imm ? fmt::format(" imm={}", *c.imm) : ""));
  }

  const Socket& socket_;
  sockaddr_in tester_{};
  BodySetup setup_;
  std::unique_ptr<RefHost> host_;
  std::unique_ptr<ref::Endpoint> endpoint_;
  std::uint32_t conn_ = 0;
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
  Server(socket).run();
  return {};
}

}  // namespace weft::comply
