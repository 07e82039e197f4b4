// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ref/net.h"

using namespace weft;
using namespace weft::ref;
using weft::ref::test::Fate;
using weft::ref::test::Host;
using weft::ref::test::Net;
using weft::ref::test::Sent;
using weft::test::Rng;

namespace {

Config small() {
  Config c;
  c.ports = 2;
  c.paths = 4;
  c.streams = 4;
  c.mtu = 1024;
  c.rtt_init = 5 * kUs;
  return c;
}

WorkRequest write(std::uint64_t id, std::uint64_t from, std::uint64_t to, std::uint32_t length) {
  WorkRequest w;
  w.op = WrOp::kWrite;
  w.id = id;
  w.local_va = Host::kBase + from;
  w.remote_va = Host::kBase + to;
  w.rkey = Net::kKey;
  w.length = length;
  return w;
}

}  // namespace

TEST_CASE("ref: a WRITE of any length arrives whole and once", "[ref][smoke]") {
  for (const std::uint32_t length : {0u, 1u, 3u, 1023u, 1024u, 1025u, 4096u, 300'001u}) {
    Net net(small());
    Rng rng;
    rng.fill(net.host(0).memory);
    const auto [a, b] = net.open(0, 1);
    (void)b;
    const auto before = net.host(1).memory;
    REQUIRE(net.end(0).post(a, 1, write(7, 100, 5000, length), net.now()) == wire::Err::OK);
    REQUIRE(net.settle());
    REQUIRE(net.completions(0) == 1);
    CHECK(net.host(0).done[0].id == 7);
    CHECK(net.host(0).done[0].status == wire::Err::OK);
    CHECK(net.host(0).done[0].stream == 1);
    auto want = before;
    std::copy_n(net.host(0).memory.begin() + 100, length, want.begin() + 5000);
    CHECK(net.host(1).memory == want);
    CHECK(net.host(1).twice == 0);
    CHECK(net.end(0).counters().resent == 0);
  }
}

TEST_CASE("ref: every operation does what verbs say", "[ref][smoke]") {
  Net net(small());
  Rng rng;
  rng.fill(net.host(0).memory);
  rng.fill(net.host(1).memory);
  const auto [a, b] = net.open(0, 1);
  const auto source = net.host(0).memory;
  const auto theirs = net.host(1).memory;
  std::uint64_t old = 0;
  std::memcpy(&old, &net.host(1).memory[64], 8);

  REQUIRE(net.end(1).post_recv(b, 0, 100, Host::kBase + 0x8000, 4000, 0) == wire::Err::OK);
  REQUIRE(net.end(1).post_recv(b, 0, 101, Host::kBase + 0xa000, 4000, 0) == wire::Err::OK);
  REQUIRE(net.end(1).post_recv(b, 0, 102, 0, 0, 0) == wire::Err::OK);
  WorkRequest w = write(1, 0, 0, 3000);
  w.op = WrOp::kSend;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  w.op = WrOp::kSendImm;
  w.id = 2;
  w.value = 77;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  w = write(3, 0x100, 0x4000, 2000);
  w.op = WrOp::kWriteImm;
  w.value = 78;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  w = write(4, 0x200, 0x5000, 2000);
  w.op = WrOp::kWriteSignal;
  w.sem = 9;
  w.value = 5;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  w = write(5, 0x20000, 0x300, 5000);
  w.op = WrOp::kRead;
  w.local_rkey = Net::kKey;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  w = write(6, 0x30000, 64, 0);
  w.op = WrOp::kFetchAdd;
  w.local_rkey = Net::kKey;
  w.operand = 1000;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  w.op = WrOp::kCompareSwap;
  w.id = 7;
  w.local_va += 8;
  w.compare = old + 1000;
  w.operand = 42;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  w.id = 8;  // the second one finds another value
  w.local_va += 8;
  w.operand = 43;
  REQUIRE(net.end(0).post(a, 0, w, 0) == wire::Err::OK);
  REQUIRE(net.settle());

  REQUIRE(net.completions(0) == 8);
  for (unsigned i = 0; i < 8; ++i) {
    CHECK(net.host(0).done[i].id == i + 1);
    CHECK(net.host(0).done[i].status == wire::Err::OK);
  }
  const auto& got = net.host(1).done;
  REQUIRE(got.size() == 3);
  CHECK((got[0].id == 100 && !got[0].has_imm && got[0].bytes == 3000));
  CHECK((got[1].id == 101 && got[1].has_imm && got[1].imm == 77));
  CHECK((got[2].id == 102 && got[2].has_imm && got[2].imm == 78 && got[2].bytes == 2000));
  CHECK(net.host(1).signals == std::vector<std::pair<std::uint16_t, std::uint32_t>>{{9, 5}});
  const auto same = [&](const auto& x, std::size_t at, const auto& y, std::size_t from, std::size_t n) {
    return std::equal(x.begin() + at, x.begin() + at + n, y.begin() + from);
  };
  CHECK(same(net.host(1).memory, 0x8000, source, 0, 3000));
  CHECK(same(net.host(1).memory, 0xa000, source, 0, 3000));
  CHECK(same(net.host(1).memory, 0x4000, source, 0x100, 2000));
  CHECK(same(net.host(1).memory, 0x5000, source, 0x200, 2000));
  CHECK(same(net.host(0).memory, 0x20000, theirs, 0x300, 5000));
  std::uint64_t value = 0;
  std::memcpy(&value, &net.host(0).memory[0x30000], 8);
  CHECK(value == old);
  std::memcpy(&value, &net.host(0).memory[0x30008], 8);
  CHECK(value == old + 1000);
  std::memcpy(&value, &net.host(0).memory[0x30010], 8);
  CHECK(value == 42);
  std::memcpy(&value, &net.host(1).memory[64], 8);
  CHECK(value == 42);
}

TEST_CASE("ref: a stream of writes survives loss, reordering of paths and copies", "[ref][random]") {
  for (const double p : {0.01, 0.1, 0.3}) {
    Net net(small());
    Rng rng;
    rng.fill(net.host(0).memory);
    const auto [a, b] = net.open(0, 1);
    (void)b;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.lost = rng.chance(p);
      f.late = static_cast<Ps>((s.packet.path * 7919) % 13) * 300 * kNs;
      if (rng.chance(0.05)) {
        f.copies = 1;
        f.copy_late = static_cast<Ps>(rng.below(20 * kUs));
      }
      f.ce = rng.chance(0.05);
      f.corrupt = rng.chance(0.02);
      return f;
    };
    for (unsigned i = 0; i < 200; ++i)
      REQUIRE(net.end(0).post(a, i % 4, write(i, i * 1000, i * 1000, 1000 + i % 2 * -1000 + i % 2 * 997),
                              0) == wire::Err::OK);
    REQUIRE(net.settle(1000 * kMs));
    CHECK(net.completions(0) == 200);
    CHECK(net.host(1).twice == 0);
    for (unsigned i = 0; i < 200; ++i) {
      const std::size_t n = i % 2 ? 997 : 1000;
      CHECK(std::equal(net.host(0).memory.begin() + i * 1000, net.host(0).memory.begin() + i * 1000 + n,
                       net.host(1).memory.begin() + i * 1000));
    }
  }
}
