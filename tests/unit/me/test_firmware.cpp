// SPDX-License-Identifier: Apache-2.0
//
// The real firmware on the real PicoRV32: every kind of bad entry is refused with the entry's number
// and the right code, and its closest good relative is accepted.
#include "bad_entries.h"
#include "engine.h"

using namespace me;
using weft::test::Profile;
using weft::test::Rng;

TEST_CASE("firmware: every kind of bad entry is refused by number and code", "[me][firmware]") {
  Engine e;
  e.set_up();
  for (const Bad& c : kCases) {
    // Alone behind neighbours that warm up what the firmware remembers, and cold.
    for (bool warm : {false, true}) {
      Graph g(8, nop());
      if (warm) {
        g[0] = good_write();
        g[1] = good_reduce();
        g[7] = good_reduce();
      }
      g[5] = good_write();
      c.make(g[5]);
      const Cqe cqe = e.add(3, g);
      CAPTURE(c.what, warm);
      CHECK(std::string(weft::wire::name(cqe.status)) == c.status);
      CHECK(cqe.entry == (cqe.status == Err::OK ? 8 : 5));
    }
  }
  CHECK(e.b->cpu_status_o >> 16 == 0x5701);
}

TEST_CASE("firmware: the first bad entry is the one named, wherever it stands", "[me][firmware]") {
  Engine e;
  e.set_up();
  for (uint32_t n : {1u, 2u, 15u, 16u, 17u, 33u, 100u}) {
    for (uint32_t bad : {0u, n / 2, n - 1}) {
      Graph g(n, nop());
      g[bad].resv0 = 1;
      g[n - 1].resv0 = 1;
      const Cqe cqe = e.add(1, g);
      CAPTURE(n, bad);
      CHECK(cqe.status == Err::BAD_FLAGS);
      CHECK(cqe.entry == bad);
    }
  }
  e.add_good(1, Graph(100, nop()));
}

TEST_CASE("firmware: subgraphs that are no subgraph are refused", "[me][firmware]") {
  Engine e;
  e.set_up();
  auto status = [&](uint32_t count, uint64_t addr) {
    return std::string(weft::wire::name(e.wait(e.ring(DbOp::REGISTER, 2, count, addr)).status));
  };
  CHECK(status(0, kGraphs) == "BAD_SUBGRAPH");
  CHECK(status(weft::wire::kMaxWqes + 1, kGraphs) == "BAD_SUBGRAPH");
  CHECK(status(0xffffffff, kGraphs) == "BAD_SUBGRAPH");
  CHECK(status(1, kGraphs + 32) == "BAD_ALIGN");
  CHECK(status(1, kGraphs + 1) == "BAD_ALIGN");
  CHECK(status(1, kGraphs) == "OK");  // zeros are a NOP
  e.bad_lines.insert((kGraphs >> 6) + 37);
  const Cqe cqe = e.wait(e.ring(DbOp::REGISTER, 2, 100, kGraphs));
  CHECK(cqe.status == Err::MEM_ERROR);
  CHECK(cqe.entry == 37);
  // A refused registration leaves the subgraph unregistered.
  CHECK(e.wait(e.ring(DbOp::LAUNCH, 2)).status == Err::BAD_SUBGRAPH);
}

TEST_CASE("firmware: entries anywhere in a page and across 4 GB are read right", "[me][firmware]") {
  Engine e;
  e.set_up();
  for (uint64_t addr :
       {uint64_t{0x1'0000'0000} - 64 * 20, kGraphs + 64 * 61, kGraphs + 64 * 15, kGraphs + 64 * 16}) {
    for (uint32_t bad : {0u, 19u, 20u, 39u}) {
      for (uint32_t i = 0; i < 40; ++i) {
        Wqe w = nop();
        w.indirect = i == bad;
        w.pack(e.line(addr + 64 * i).data());
      }
      const Cqe cqe = e.wait(e.ring(DbOp::REGISTER, 4, 40, addr));
      CAPTURE(addr, bad);
      CHECK(cqe.status == Err::BAD_FLAGS);
      CHECK(cqe.entry == bad);
    }
  }
}

TEST_CASE("firmware: regions and connections are those of the moment", "[me][firmware]") {
  Engine e;
  e.set_up();
  auto status = [&] { return std::string(weft::wire::name(e.add(0, {good_write(), good_write()}).status)); };
  CHECK(status() == "OK");
  weft::cfg::Region none;
  e.configure(weft::cfg::Table::kRegion, 0, none.words());
  e.steps(20);
  CHECK(status() == "BAD_ADDR");
  weft::cfg::Region other;
  other.valid = other.local_read = true;
  other.base = kReadBase;
  other.limit = kReadBase + 0x10000;
  e.configure(weft::cfg::Table::kRegion, 63, other.words());
  e.steps(20);
  CHECK(status() == "OK");
  weft::cfg::Conn gone;
  e.configure(weft::cfg::Table::kConn, 0, gone.words());
  e.steps(20);
  CHECK(status() == "BAD_CONN");
}

TEST_CASE("firmware: many registrations queue and a stopped CPU begins again where it was",
          "[me][firmware]") {
  Options options;
  options.stall = Profile::Half;
  Engine e(options);
  e.set_up();
  std::map<uint64_t, unsigned> bad;  // cookie -> the bad entry
  for (unsigned s = 0; s < kNumSubgraphs; ++s) {
    for (uint32_t i = 0; i < 20; ++i) {
      Wqe w = nop();
      w.indirect = i == s % 20;
      w.pack(e.line(Engine::address_of(s) + 64 * i).data());
    }
    bad[e.ring(DbOp::REGISTER, s, 20, Engine::address_of(s))] = s % 20;
  }
  Rng rng;
  while (!bad.empty()) {
    if (rng.chance(0.0005)) {
      e.b->cpu_run_i = 0;
      e.steps(rng.below(100));
      e.b->cpu_run_i = 1;
    }
    e.step();
    while (!e.cqes.empty()) {
      const Cqe cqe = e.cqes.front();
      e.cqes.pop_front();
      REQUIRE(bad.count(cqe.cookie) == 1);
      CHECK(cqe.status == Err::BAD_FLAGS);
      CHECK(cqe.entry == bad[cqe.cookie]);
      bad.erase(cqe.cookie);
    }
  }
}
