// SPDX-License-Identifier: Apache-2.0
// The judge at a node's borders: it is content with an honest node, and each thing that must not happen is
// seen. Two watches see both ends of a connection; the wire between them is this file.
#include <catch2/catch.hpp>

#include <vector>

#include "tb/check/ledger.h"
#include "tb/check/watch.h"
#include "weft_test.h"

using namespace weft::tb;
namespace wire = weft::wire;
using Frame = std::vector<uint8_t>;

namespace {

constexpr uint32_t kPorts = 2, kConns = 8, kPaths = 4, kSems = 16, kConn = 3;
constexpr uint32_t kMtu = 1024;
constexpr uint64_t kVa = 0x10000;
constexpr uint8_t kOk = 0, kRetryLimit = static_cast<uint8_t>(wire::Err::RETRY_LIMIT);

uint32_t ip(uint32_t node, uint32_t port) {
  return 10u << 24 | port << 16 | node;
}

struct End {
  explicit End(uint32_t node) : node(node), watch(kPorts, kConns, kPaths, kSems) {
    watch.rules() = {true, true};
    for (uint32_t p = 0; p < kPorts; ++p) watch.configure_port(p, ip(node, p));
    configure(7);
  }
  // A life of the connection to the other node of the two.
  void configure(uint16_t incarnation, bool valid = true) {
    for (uint32_t p = 0; p < kPorts; ++p) {
      watch.configure_conn(p, kConn, valid, ip(1 - node, p), kConn, incarnation, 0);
    }
  }
  bool pass(bool out, uint32_t port, const Frame& frame, bool mac_error = false) {
    bool good = true;
    for (size_t at = 0; at < frame.size(); at += 64) {
      const size_t n = std::min<size_t>(64, frame.size() - at);
      std::array<uint8_t, 64> beat{};
      std::copy_n(frame.data() + at, n, beat.data());
      const uint64_t keep = n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
      const bool last = at + n == frame.size();
      good = (out ? watch.beat_out(port, beat.data(), keep, last)
                  : watch.beat_in(port, beat.data(), keep, last, mac_error && last)) &&
             good;
    }
    return good;
  }
  const uint32_t node;
  Watch watch;
};

wire::Route route(uint32_t from, uint32_t port) {
  wire::Route r;
  r.sip = ip(from, port);
  r.dip = ip(1 - from, port);
  return r;
}

struct Data {
  uint32_t psn = 0, offset = 0, bytes = kMtu, msg_len = kMtu;
  uint16_t msg_no = 0, sem = 1, incarnation = 7;
  uint8_t path = 0;
  bool signal = true, retx = false;
};

Frame data(const Data& d) {
  wire::Wth wth;
  wth.path = d.path;
  wth.incarnation = d.incarnation;
  wire::Wdh wdh;
  wdh.va = kVa + d.msg_no * 0x1'0000ull + d.offset;
  wdh.msg_no = d.msg_no;
  wdh.msg_len = d.msg_len;
  wdh.sem = d.sem;
  wdh.retx = d.retx;
  wdh.value = 1;
  const auto op = d.signal ? wire::Opcode::WRITE_SIGNAL : wire::Opcode::WRITE;
  return wire::build_data(route(0, d.path / kPaths), wire::make_bth(op, kConn, d.psn), wth, wdh,
                          std::vector<uint8_t>(d.bytes, 0x5a));
}

// All below `base` delivered but those that `lost` says, bit 31 = base - 1.
Frame ack(uint32_t base, uint32_t lost = 0, uint8_t path = 0, uint16_t incarnation = 7) {
  wire::Wth wth;
  wth.path = path;
  wth.incarnation = incarnation;
  wire::Wah wah;
  wah.base = base;
  wah.hist_words = lost != 0 ? 1 : 0;
  return wire::build_ack(route(1, path / kPaths), wire::make_bth(wire::Opcode::ACK, kConn, 0), wth, wah,
                         {~lost});
}

struct Pair {
  End a{0}, b{1};
  bool post(uint16_t msg_no, uint32_t bytes, uint8_t tag) {
    return a.watch.request(kConn, tag, kVa + msg_no * 0x1'0000ull, bytes);
  }
  bool send(const Data& d) {
    const Frame f = data(d);
    return a.pass(true, d.path / kPaths, f) && b.pass(false, d.path / kPaths, f);
  }
  bool answer(uint32_t base, uint32_t lost = 0, uint8_t path = 0) {
    const Frame f = ack(base, lost, path);
    const bool told = b.pass(true, path / kPaths, f);
    return a.pass(false, path / kPaths, f) && told;
  }
  bool raise() { return b.watch.signal(1, 1, 0) && b.watch.received(); }
  weft::tb::Status ends() { return compare_ends({&a.watch, &b.watch}); }
};

}  // namespace

TEST_CASE("watch: messages of many packets over two ports, some lost and sent again, are right",
          "[watch][smoke]") {
  Pair p;
  for (uint16_t m = 0; m < 300; ++m) {
    const uint32_t first = m * 2u;
    REQUIRE(p.post(m, 3 * kMtu, static_cast<uint8_t>(m)));
    REQUIRE(p.send({.psn = first, .msg_len = 3 * kMtu, .msg_no = m}));
    REQUIRE(p.send({.psn = m, .offset = kMtu, .msg_len = 3 * kMtu, .msg_no = m, .path = kPaths}));
    // The last is lost on its way: only the sender's side sees it.
    const Data last{.psn = first + 1, .offset = 2 * kMtu, .msg_len = 3 * kMtu, .msg_no = m};
    REQUIRE(p.a.pass(true, 0, data(last)));
    Data again = last;
    again.psn = m;
    again.path = 1;
    again.retx = true;
    REQUIRE(p.answer(first + 2, 1u << 31));
    REQUIRE(p.send(again));
    REQUIRE(p.raise());
    REQUIRE(p.answer(m + 1u, 0, kPaths));
    REQUIRE(p.answer(m + 1u, 0, 1));
    REQUIRE(p.a.watch.completion(static_cast<uint8_t>(m), kOk));
    REQUIRE(p.b.watch.at_rest());
  }
  CHECK(p.ends().ok());
}

TEST_CASE("watch: a message without bytes is one packet", "[watch]") {
  Pair p;
  REQUIRE(p.post(0, 0, 1));
  REQUIRE(p.send({.bytes = 0, .msg_len = 0}));
  REQUIRE(p.raise());
  REQUIRE(p.answer(1));
  REQUIRE(p.a.watch.completion(1, kOk));
  CHECK(p.ends().ok());
}

TEST_CASE("watch: a signal over a hole is seen", "[watch]") {
  Pair p;
  p.send({.msg_len = 2 * kMtu});
  p.send({.psn = 1, .msg_len = 2 * kMtu});  // the same bytes again
  CHECK_FALSE(p.b.watch.signal(1, 1, 0));
  CHECK(p.b.watch.fault().find("packets cover no message") != std::string::npos);
}

TEST_CASE("watch: a signal twice, or of a message whose turn has not come, is seen", "[watch]") {
  Pair twice;
  twice.send({});
  CHECK(twice.raise());
  CHECK_FALSE(twice.b.watch.signal(1, 1, 0));
  CHECK_FALSE(twice.b.watch.received());
  Pair early;
  early.send({.msg_no = 1});
  CHECK_FALSE(early.b.watch.signal(1, 1, 0));
}

TEST_CASE("watch: what the former life got raises nothing in the new one", "[watch]") {
  Pair p;
  p.send({});
  p.b.configure(8);
  CHECK(p.b.watch.signal(1, 1, 10));  // decided before
  p.b.configure(9);
  CHECK_FALSE(p.b.watch.signal(1, 1, 20));
  Pair late;
  late.send({});
  late.b.configure(8);
  CHECK_FALSE(late.b.watch.signal(1, 1, 100));
}

TEST_CASE("watch: frames of another life, and those the MAC calls bad, cover nothing", "[watch]") {
  Pair p;
  p.b.pass(false, 0, data({.incarnation = 6}));
  p.b.pass(false, 0, data({}), true);
  Frame broken = data({});
  broken[100] ^= 1;
  p.b.pass(false, 0, broken);
  CHECK_FALSE(p.b.watch.signal(1, 1, 0));
}

TEST_CASE("watch: a completion that no ack of this life bears out is seen", "[watch]") {
  const auto sent = [](Pair& p) {
    p.post(0, 2 * kMtu, 1);
    p.send({.msg_len = 2 * kMtu});
    p.send({.psn = 1, .offset = kMtu, .msg_len = 2 * kMtu});
  };
  Pair none;
  sent(none);
  CHECK_FALSE(none.a.watch.completion(1, kOk));
  Pair half;
  sent(half);
  half.answer(2, 1u << 31);
  CHECK_FALSE(half.a.watch.completion(1, kOk));
  Pair old;
  sent(old);
  old.a.pass(false, 0, ack(2, 0, 0, 6));
  CHECK_FALSE(old.a.watch.completion(1, kOk));
  Pair right;
  sent(right);
  right.answer(2);
  CHECK(right.a.watch.completion(1, kOk));
  CHECK_FALSE(right.a.watch.completion(1, kOk));
}

TEST_CASE("watch: messages complete in the order of their requests", "[watch]") {
  Pair p;
  p.post(0, kMtu, 1);
  p.post(1, kMtu, 2);
  p.send({});
  p.send({.psn = 1, .msg_no = 1});
  p.answer(2);
  CHECK_FALSE(p.a.watch.completion(2, kOk));
}

TEST_CASE("watch: data behind the error completion is seen", "[watch]") {
  Pair p;
  p.post(0, 4 * kMtu, 1);
  CHECK(p.send({.msg_len = 4 * kMtu}));
  CHECK(p.a.watch.completion(1, kRetryLimit));
  CHECK_FALSE(p.send({.psn = 1, .offset = kMtu, .msg_len = 4 * kMtu}));
  // A new life may send.
  Pair again;
  again.post(0, kMtu, 1);
  again.a.watch.completion(1, kRetryLimit);
  again.a.configure(8);
  CHECK(again.a.pass(true, 0, data({.incarnation = 8})));
}

TEST_CASE("watch: what is sent again before an ack has told it lost is seen", "[watch]") {
  Pair p;
  p.post(0, kMtu, 1);
  CHECK(p.send({}));
  CHECK_FALSE(p.send({.path = kPaths, .retx = true}));
}

TEST_CASE("watch: data of a life configured away leaves no more once the port is empty of it", "[watch]") {
  Pair p;
  p.a.configure(8);
  CHECK(p.a.pass(true, 0, data({})));
  for (uint32_t i = 0; i < 20; ++i) CHECK(p.a.pass(true, 0, data({.psn = i, .incarnation = 8})));
  CHECK_FALSE(p.a.pass(true, 0, data({.psn = 1})));
}

TEST_CASE("watch: an ack that tells delivered what fits no message is seen", "[watch]") {
  Pair window;
  window.send({.msg_no = 64});
  CHECK_FALSE(window.answer(1));
  Pair length;
  length.send({.msg_len = 4 * kMtu, .signal = false});
  CHECK(length.answer(1));
  length.send({.psn = 1, .offset = kMtu, .msg_len = 2 * kMtu, .signal = false});
  CHECK_FALSE(length.answer(2));
  Pair semaphore;
  semaphore.send({.sem = kSems});
  CHECK_FALSE(semaphore.answer(1));
  Pair refused;  // settled as lost
  refused.send({.sem = kSems});
  CHECK(refused.answer(1, 1u << 31));
}

TEST_CASE("watch: what is told delivered and never received is seen at rest", "[watch]") {
  Pair p;
  p.send({.signal = false});
  CHECK(p.b.watch.at_rest());
  CHECK(p.answer(1));
  CHECK_FALSE(p.b.watch.at_rest());
}

TEST_CASE("watch: the ends are compared, former lives too", "[watch]") {
  Pair p;
  p.post(0, kMtu, 1);
  p.a.pass(true, 0, data({}));
  p.a.pass(false, 0, ack(1));  // of nobody: the other end has seen nothing
  CHECK(p.a.watch.completion(1, kOk));
  CHECK_FALSE(p.ends().ok());
  p.a.configure(8);
  p.b.configure(8);
  CHECK_FALSE(p.ends().ok());
  p.a.watch.reset();
  CHECK_FALSE(p.ends().ok());
  CHECK(compare_ends({&p.a.watch, nullptr}).ok());
}
