// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;
using wire::Err;

TEST_CASE("ref: a WRITE of any length arrives whole and once", "[ref][smoke]") {
  for (const std::uint32_t length : {0u, 1u, 3u, 1023u, 1024u, 1025u, 4096u, 300'001u}) {
    Net net(eight_paths());
    Rng rng;
    rng.fill(net.host(0).memory);
    const std::uint32_t a = net.open(0, 1).first;
    const auto before = net.host(1).memory;
    REQUIRE(net.end(0).post(a, 1, write_of(7, 100, 5000, length), net.now()) == Err::OK);
    REQUIRE(net.settle());
    REQUIRE(net.completions(0) == 1);
    CHECK(net.host(0).done[0].id == 7);
    CHECK(net.host(0).done[0].status == Err::OK);
    CHECK(net.host(0).done[0].stream == 1);
    auto want = before;
    std::copy_n(net.host(0).memory.begin() + 100, length, want.begin() + 5000);
    CHECK(net.host(1).memory == want);
    CHECK(net.host(1).twice == 0);
    CHECK(net.end(0).counters().resent == 0);
  }
}

TEST_CASE("ref: every operation does what verbs say", "[ref][smoke]") {
  Net net(eight_paths());
  Rng rng;
  rng.fill(net.host(0).memory);
  rng.fill(net.host(1).memory);
  const auto [a, b] = net.open(0, 1);
  const auto source = net.host(0).memory;
  const auto theirs = net.host(1).memory;
  const std::uint64_t old = word(net.host(1), 64);

  const auto post = [&](const WorkRequest& w) { REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK); };
  REQUIRE(net.end(1).post_recv(b, 0, 100, Host::kBase + 0x8000, 4000, 0) == Err::OK);
  REQUIRE(net.end(1).post_recv(b, 0, 101, Host::kBase + 0xa000, 4000, 0) == Err::OK);
  REQUIRE(net.end(1).post_recv(b, 0, 102, 0, 0, 0) == Err::OK);
  post(work_of(WrOp::kSend, 1, 0, 0, 3000));
  WorkRequest w = work_of(WrOp::kSendImm, 2, 0, 0, 3000);
  w.value = 77;
  post(w);
  w = work_of(WrOp::kWriteImm, 3, 0x100, 0x4000, 2000);
  w.value = 78;
  post(w);
  w = work_of(WrOp::kWriteSignal, 4, 0x200, 0x5000, 2000);
  w.sem = 9;
  w.value = 5;
  post(w);
  post(work_of(WrOp::kRead, 5, 0x20000, 0x300, 5000));
  w = work_of(WrOp::kFetchAdd, 6, 0x30000, 64, 0);
  w.operand = 1000;
  post(w);
  w = work_of(WrOp::kCompareSwap, 7, 0x30008, 64, 0);
  w.compare = old + 1000;
  w.operand = 42;
  post(w);
  w.id = 8;  // the second one finds another value
  w.local_va += 8;
  w.operand = 43;
  post(w);
  REQUIRE(net.settle());

  REQUIRE(net.completions(0) == 8);
  for (unsigned i = 0; i < 8; ++i) {
    CHECK(net.host(0).done[i].id == i + 1);
    CHECK(net.host(0).done[i].status == Err::OK);
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
  CHECK(word(net.host(0), 0x30000) == old);
  CHECK(word(net.host(0), 0x30008) == old + 1000);
  CHECK(word(net.host(0), 0x30010) == 42);
  CHECK(word(net.host(1), 64) == 42);
}

TEST_CASE("ref: a stream of writes survives loss, reordering of paths and copies", "[ref][random]") {
  for (const double p : {0.01, 0.1, 0.3}) {
    Net net(eight_paths());
    Rng rng;
    rng.fill(net.host(0).memory);
    const std::uint32_t a = net.open(0, 1).first;
    const auto length = [](unsigned i) { return i % 2 != 0 ? 997u : 1000u; };
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
      REQUIRE(net.end(0).post(a, i % 2, write_of(i, i * 1000, i * 1000, length(i)), 0) == Err::OK);
    REQUIRE(net.settle(1000 * kMs));
    CHECK(net.completions(0) == 200);
    CHECK(net.host(1).twice == 0);
    for (unsigned i = 0; i < 200; ++i) {
      const auto from = net.host(0).memory.begin() + i * 1000;
      CHECK(std::equal(from, from + length(i), net.host(1).memory.begin() + i * 1000));
    }
  }
}

TEST_CASE("ref: bytes that add up while some came twice complete nothing", "[ref][messages]") {
  // What a sender does that sends a packet again before the first one is settled: of a message of 9 packets
  // some come in the place of others. Nothing but what covers the message may complete it.
  Rng rng(weft::test::seed(), 14);
  for (const WrOp op : {WrOp::kWriteSignal, WrOp::kWriteImm, WrOp::kSend, WrOp::kRead}) {
    for (unsigned turn = 0; turn < 60; ++turn) {
      Config c = eight_paths();
      c.mtu = 256;
      Net net(c, 2, 1 << 16, false);
      const auto [a, b] = net.open(0, 1);
      constexpr std::uint32_t kPackets = 9;
      const std::uint32_t length = kPackets * 256 - rng.below(200);
      // Packets of `from` come in the place of `to`; the last, shorter one stays what it is. Turn 0: honest.
      std::array<std::uint32_t, kPackets> place;
      for (std::uint32_t i = 0; i < kPackets; ++i) place[i] = i;
      unsigned moved = 0;
      for (unsigned n = turn == 0 ? 0 : 1 + rng.below(3); n != 0; --n) {
        const auto from = static_cast<std::uint32_t>(rng.below(kPackets - 1));
        place[from] = static_cast<std::uint32_t>(rng.below(kPackets - 1));
      }
      auto sorted = place;
      std::sort(sorted.begin(), sorted.end());
      for (std::uint32_t i = 0; i < kPackets; ++i) moved += sorted[i] != i ? 1 : 0;
      const std::uint64_t local = 0x100, remote = 0x4000;
      const std::uint64_t start = op == WrOp::kSend ? 0 : Host::kBase + (op == WrOp::kRead ? local : remote);
      net.forge = [&](const Sent& s, Packet& p) {
        if (!s.packet.is_data() || s.packet.payload_bytes == 0 || s.packet.opcode == wire::Opcode::READ)
          return;
        const auto i = static_cast<std::size_t>((s.packet.data.va - start) / 256);
        p.data.va = start + std::uint64_t{place[i]} * 256;
      };
      REQUIRE(net.end(1).post_recv(b, 0, 100, Host::kBase + 0x8000, 4000, 0) == Err::OK);
      WorkRequest w = work_of(op, 1, local, remote, length);
      w.sem = 3;
      w.value = 5;
      REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
      REQUIRE(net.run_until([&] { return net.completions(0) == 1; }, 20 * kMs));
      net.run_for(1 * kMs);
      INFO("operation " << static_cast<int>(op) << ", turn " << turn << ", out of place " << moved);
      const Err told = net.host(0).done[0].status;
      CHECK(told == (moved == 0 ? Err::OK : Err::BAD_LENGTH));
      const unsigned node = op == WrOp::kRead ? 0 : 1;  // the receiver of the data
      CHECK((net.end(node).counters().drop[static_cast<unsigned>(wire::Drop::MSG)] != 0) == (moved != 0));
      CHECK(net.host(1).signals.size() == (moved == 0 && op == WrOp::kWriteSignal ? 1 : 0));
      if (moved == 0) continue;
      for (const Completion& done : net.host(1).done) CHECK(done.status != Err::OK);
      if (op == WrOp::kSend || op == WrOp::kWriteImm) CHECK(net.completions(1, Completed::kRecv) == 1);
    }
  }
}
