// SPDX-License-Identifier: Apache-2.0
// The AXI slaves, driven pin by pin: order, visibility, strobes, bandwidth, errors, and what AXI forbids.
#include <catch2/catch.hpp>

#include <cstring>
#include <deque>
#include <map>

#include "tb/check/guard.h"
#include "tb/memory/axi.h"
#include "weft_test.h"

using namespace weft::tb;

namespace {

constexpr uint64_t kBase = 0x1'0000'0000;

// Registers that stand for the pins of a master of `Bytes` a beat.
template <uint32_t Bytes>
struct ReadMaster {
  uint64_t araddr = 0;
  uint8_t arlen = 0, arvalid = 0, arready = 0, rresp = 0, rlast = 0, rvalid = 0, rready = 0;
  uint32_t rdata[Bytes / 4] = {};
  AxiReadPins pins() {
    return {&araddr, &arlen, &arvalid, &arready, rdata, &rresp, &rlast, &rvalid, &rready};
  }
};
template <uint32_t Bytes>
struct WriteMaster {
  uint64_t awaddr = 0;
  uint8_t awlen = 0, awvalid = 0, awready = 0, wlast = 0, wvalid = 0, wready = 0, bresp = 0, bvalid = 0,
          bready = 0;
  uint32_t wdata[Bytes / 4] = {};
  uint8_t wstrb[Bytes / 8] = {};
  AxiWritePins pins() {
    return {&awaddr, &awlen,  &awvalid, &awready, wdata,   wstrb,
            &wlast,  &wvalid, &wready,  &bresp,   &bvalid, &bready};
  }
};

struct Rig {
  explicit Rig(const AxiTiming& timing = {}, uint64_t seed = 1)
      : memory(kBase, 1 << 20),
        shared(memory, timing),
        read(shared, r.pins(), 64, "r", seed),
        write(shared, w.pins(), 64, "w", seed + 1) {
    // As out of reset, with everything ready.
    step();
    step();
  }
  // One clock: the slaves look at the pins, then drive.
  void step() {
    read.sample();
    write.sample();
    shared.next_cycle();
    read.drive();
    write.drive();
    ++cycle;
  }
  void step_until(const uint8_t& pin, uint64_t limit = 5000) {
    for (; pin == 0; step()) REQUIRE(limit-- > 0);
  }
  // Whole single-beat accesses; they return the response.
  uint8_t read_beat(uint64_t addr, uint8_t* bytes) {
    r.araddr = addr;
    r.arlen = 0;
    r.arvalid = 1;
    step_until(r.arready);
    step();
    r.arvalid = 0;
    r.rready = 1;
    step_until(r.rvalid);
    std::memcpy(bytes, r.rdata, 64);
    CHECK(r.rlast == 1);
    const uint8_t resp = r.rresp;
    step();
    r.rready = 0;
    return resp;
  }
  void send_write(uint64_t addr, uint8_t fill, uint64_t strobe = ~uint64_t{0}) {
    w.awaddr = addr;
    w.awlen = 0;
    w.awvalid = 1;
    std::memset(w.wdata, fill, 64);
    std::memcpy(w.wstrb, &strobe, 8);
    w.wlast = 1;
    w.wvalid = 1;
    while (w.awvalid || w.wvalid) {
      const bool a = w.awready, d = w.wready;
      step();
      if (a) w.awvalid = 0;
      if (d) w.wvalid = 0;
    }
  }
  uint8_t write_beat(uint64_t addr, uint8_t fill, uint64_t strobe = ~uint64_t{0}) {
    send_write(addr, fill, strobe);
    w.bready = 1;
    step_until(w.bvalid);
    const uint8_t resp = w.bresp;
    step();
    w.bready = 0;
    return resp;
  }

  ReadMaster<64> r;
  WriteMaster<64> w;
  Memory memory;
  AxiShared shared;
  AxiReadSlave read;
  AxiWriteSlave write;
  uint64_t cycle = 0;
};

}  // namespace

TEST_CASE("memory: latency is exact and within its bounds", "[tb][memory]") {
  Rig rig({.latency_min_cycles = 17, .latency_max_cycles = 17});
  rig.r.araddr = kBase;
  rig.r.arvalid = 1;
  rig.step();
  rig.r.arvalid = 0;
  const uint64_t asked = rig.cycle;
  rig.step_until(rig.r.rvalid);
  CHECK(rig.cycle - asked == 17 - 1);  // offered with the 17th edge after the one that took the address
  Rig spread({.latency_min_cycles = 10, .latency_max_cycles = 30});
  uint64_t low = ~0ull, high = 0;
  for (int i = 0; i < 400; ++i) {
    uint8_t beat[64];
    const uint64_t from = spread.cycle;
    spread.read_beat(kBase, beat);
    low = std::min(low, spread.cycle - from);
    high = std::max(high, spread.cycle - from);
  }
  CHECK(high - low == 20);
}

TEST_CASE("memory: a write is seen by every read behind its B, and by none before", "[tb][memory]") {
  Rig rig({.latency_min_cycles = 20, .latency_max_cycles = 20});
  uint8_t beat[64];
  REQUIRE(rig.write_beat(kBase + 64, 0x11) == 0);
  REQUIRE(rig.read_beat(kBase + 64, beat) == 0);
  CHECK(beat[0] == 0x11);
  // Data handed over, B not yet given: memory still holds the old value, for the host and for a read.
  rig.send_write(kBase + 64, 0x22);
  CHECK(*rig.memory.data(kBase + 64) == 0x11);
  rig.r.araddr = kBase + 64;
  rig.r.arvalid = 1;
  rig.step_until(rig.r.arready);
  rig.step();
  rig.r.arvalid = 0;
  rig.r.rready = 1;
  rig.w.bready = 1;
  bool b_given = false;
  for (int i = 0; !rig.r.rvalid; ++i) {
    REQUIRE(i < 100);
    b_given |= rig.w.bvalid;
    rig.step();
  }
  CHECK(b_given);                          // B came while the read was open,
  CHECK((rig.r.rdata[0] & 0xff) == 0x11);  // yet the read, asked before, is as old as memory may make it
  rig.step();
  REQUIRE(rig.read_beat(kBase + 64, beat) == 0);
  CHECK(beat[0] == 0x22);
}

TEST_CASE("memory: strobes choose bytes", "[tb][memory]") {
  Rig rig;
  std::memset(rig.memory.data(kBase), 0xaa, 128);
  rig.write_beat(kBase, 0x55, 0x8000'0000'0000'0005);
  for (uint64_t i = 0; i < 128; ++i) {
    const bool written = i == 0 || i == 2 || i == 63;
    CHECK(*rig.memory.data(kBase + i) == (written ? 0x55 : 0xaa));
  }
  CHECK(rig.write.counts().bytes == 3);
}

TEST_CASE("memory: random bursts of two masters against a plain array", "[tb][memory][random]") {
  weft::test::Rng rng(weft::test::seed(), 77);
  for (int profile = 0; profile < 4; ++profile) {
    Rig rig({.latency_min_cycles = 1,
             .latency_max_cycles = 1 + 60u * static_cast<uint32_t>(profile % 2),
             .bytes_per_cycle = 4096,
             .stall = 0.3 * profile},
            weft::test::seed() + static_cast<uint64_t>(profile));
    // The reader stays below 256 KB, which nobody writes; the writer above.
    for (uint64_t i = 0; i < 256 * 1024; ++i) *rig.memory.data(kBase + i) = MemoryGuard::pattern(5, i);
    std::vector<uint8_t> model(256 * 1024, 0);
    struct ReadBurst {
      uint64_t addr;
      uint32_t beats;
    };
    struct WriteBurst {
      uint64_t addr;
      uint32_t beats;
    };
    std::deque<ReadBurst> reads;
    std::deque<WriteBurst> addresses;  // for AW
    std::deque<std::array<uint8_t, 64>> data;
    std::deque<std::pair<uint64_t, bool>> strobes;
    int reads_done = 0, writes_done = 0, writes_asked = 0, reads_asked = 0;
    uint32_t beat = 0;
    uint64_t watchdog = 0;
    const int kCount = 300;
    while (reads_done < kCount || writes_done < kCount) {
      REQUIRE(++watchdog < 400'000);
      // New offers; nothing offered is taken back.
      if (!rig.r.arvalid && reads_asked < kCount && rng() % 3 == 0) {
        const uint32_t beats = 1 + static_cast<uint32_t>(rng() % 64);
        const uint64_t page = rng() % 64;
        rig.r.araddr = kBase + page * 4096 + (rng() % (65 - beats)) * 64;
        rig.r.arlen = static_cast<uint8_t>(beats - 1);
        rig.r.arvalid = 1;
        ++reads_asked;
      }
      if (!rig.w.awvalid && addresses.empty() && writes_asked < kCount && rng() % 3 == 0) {
        const uint32_t beats = 1 + static_cast<uint32_t>(rng() % 64);
        const uint64_t addr = (rng() % 64) * 4096 + (rng() % (65 - beats)) * 64;
        addresses.push_back({addr, beats});
        for (uint32_t i = 0; i < beats; ++i) {
          std::array<uint8_t, 64> bytes;
          const uint64_t strobe = rng() % 4 ? ~uint64_t{0} : rng();
          for (size_t b = 0; b < 64; ++b) {
            bytes[b] = static_cast<uint8_t>(rng());
            if (strobe >> b & 1) model[addr + i * 64 + b] = bytes[b];
          }
          data.push_back(bytes);
          strobes.emplace_back(strobe, i + 1 == beats);
        }
        ++writes_asked;
      }
      if (!rig.w.awvalid && !addresses.empty() && rng() % 2) {
        rig.w.awaddr = kBase + 256 * 1024 + addresses.front().addr;
        rig.w.awlen = static_cast<uint8_t>(addresses.front().beats - 1);
        rig.w.awvalid = 1;
        addresses.pop_front();
      }
      // Data may run ahead of its address.
      if (!rig.w.wvalid && !data.empty() && rng() % 4) {
        std::memcpy(rig.w.wdata, data.front().data(), 64);
        std::memcpy(rig.w.wstrb, &strobes.front().first, 8);
        rig.w.wlast = strobes.front().second;
        rig.w.wvalid = 1;
        data.pop_front();
        strobes.pop_front();
      }
      rig.r.rready = rng() % 4 != 0;
      rig.w.bready = rng() % 4 != 0;
      // What the coming edge transfers.
      const bool ar = rig.r.arvalid && rig.r.arready;
      const bool aw = rig.w.awvalid && rig.w.awready;
      const bool wd = rig.w.wvalid && rig.w.wready;
      if (ar) reads.push_back({rig.r.araddr, uint32_t{rig.r.arlen} + 1});
      if (rig.r.rvalid && rig.r.rready) {
        REQUIRE(!reads.empty());
        uint8_t expected[64];
        for (uint64_t b = 0; b < 64; ++b) {
          expected[b] = MemoryGuard::pattern(5, reads.front().addr - kBase + beat * 64 + b);
        }
        REQUIRE(std::memcmp(rig.r.rdata, expected, 64) == 0);
        REQUIRE(rig.r.rresp == 0);
        REQUIRE((rig.r.rlast != 0) == (beat + 1 == reads.front().beats));
        if (++beat == reads.front().beats) {
          beat = 0;
          reads.pop_front();
          ++reads_done;
        }
      }
      if (rig.w.bvalid && rig.w.bready) {
        REQUIRE(rig.w.bresp == 0);
        ++writes_done;
      }
      rig.step();
      if (ar) rig.r.arvalid = 0;
      if (aw) rig.w.awvalid = 0;
      if (wd) rig.w.wvalid = 0;
    }
    REQUIRE(rig.shared.error.ok());
    CHECK(std::memcmp(rig.memory.data(kBase + 256 * 1024), model.data(), model.size()) == 0);
    CHECK(rig.read.idle());
    CHECK(rig.write.idle());
  }
}

TEST_CASE("memory: all masters together get the bandwidth and no more, none starves", "[tb][memory]") {
  Memory memory(kBase, 1 << 20);
  AxiShared shared(memory, {.latency_min_cycles = 5, .latency_max_cycles = 5, .bytes_per_cycle = 128});
  ReadMaster<64> pins[4];
  std::vector<AxiReadSlave> slaves;
  for (uint64_t i = 0; i < 4; ++i) slaves.emplace_back(shared, pins[i].pins(), 64, "r", i);
  for (auto& p : pins) {
    p.araddr = kBase;
    p.arlen = 63;
    p.arvalid = 1;
    p.rready = 1;
  }
  for (int cycle = 0; cycle < 4000; ++cycle) {
    for (auto& s : slaves) s.sample();
    shared.next_cycle();
    for (size_t k = 0; k < 4; ++k) slaves[(k + shared.cycle) % 4].drive();
  }
  uint64_t total = 0;
  for (auto& s : slaves) {
    total += s.counts().bytes;
    CHECK(s.counts().beats > 1900);  // a quarter of two beats a cycle
  }
  CHECK(total <= 4000 * 128);
  CHECK(total > 3900 * 128);
}

TEST_CASE("memory: errors at an address and outside, nothing changes", "[tb][memory]") {
  Rig rig;
  uint8_t beat[64];
  rig.memory.fail_at(kBase + 4096 + 100, 8);
  CHECK(rig.read_beat(kBase + 4096 + 64, beat) == 2);
  CHECK(rig.read_beat(kBase + 4096, beat) == 0);
  CHECK(rig.write_beat(kBase + 4096 + 64, 0x77) == 2);
  CHECK(*rig.memory.data(kBase + 4096 + 64) == 0);
  CHECK(rig.read_beat(kBase + (1 << 20), beat) == 3);
  CHECK(rig.read_beat(kBase - 64, beat) == 3);
  CHECK(rig.write_beat(0, 1) == 3);
  CHECK(rig.write_beat(~uint64_t{0} - 63, 1) == 3);
  CHECK(rig.read.counts().errors == 3);
  CHECK(rig.write.counts().errors == 3);
  CHECK(rig.shared.error.ok());  // an error answer is not a broken protocol
}

TEST_CASE("memory: what AXI forbids is an error of the run", "[tb][memory]") {
  const auto error = [](auto&& act) {
    Rig rig;
    act(rig);
    return rig.shared.error.text();
  };
  uint8_t beat[64];
  CHECK(error([&](Rig& rig) { rig.read_beat(kBase + 32, beat); }).find("is no multiple of the 64 bytes") !=
        std::string::npos);
  CHECK(error([&](Rig& rig) {
          rig.r.araddr = kBase + 4096 - 64;
          rig.r.arlen = 1;
          rig.r.arvalid = 1;
          rig.step();
        }).find("AXI master r, cycle 2: burst of 128 bytes at 0x100000fc0 crosses a 4 KB boundary") !=
        std::string::npos);
  CHECK(error([&](Rig& rig) {
          rig.w.awlen = 1;
          rig.w.awaddr = kBase;
          rig.w.awvalid = rig.w.wvalid = rig.w.wlast = 1;
          rig.step();
        }).find("wlast after 1 beats of a burst of 2") != std::string::npos);
}

TEST_CASE("memory: guards see one changed byte, and only outside what was released", "[tb][check]") {
  Memory memory(kBase, 1 << 16);
  MemoryGuard guard(memory, 3);
  for (uint64_t i = 0; i < 1000; ++i) *memory.data(kBase + 5000 + i) = static_cast<uint8_t>(i);
  guard.keep(kBase + 5000, 1000);
  guard.fill_rest();
  CHECK(guard.check().wrong_bytes == 0);
  guard.release(kBase + 8001, 333);
  guard.release(kBase + 5500, 10);
  std::memset(memory.data(kBase + 8001), 0, 333);
  std::memset(memory.data(kBase + 5500), 0xff, 10);
  CHECK(guard.check().text() == "");
  for (uint64_t at : {kBase, kBase + 8000, kBase + 8334, kBase + 5499, kBase + 5510, kBase + (1 << 16) - 1}) {
    *memory.data(at) ^= 0x40;
    const auto report = guard.check();
    CHECK(report.wrong_bytes == 1);
    CHECK(report.first == at);
    CHECK(report.got == (report.expected ^ 0x40));
    *memory.data(at) ^= 0x40;
  }
  // A block that lands elsewhere does not look right by chance.
  std::memcpy(memory.data(kBase + 20000), memory.data(kBase + 24096), 64);
  CHECK(guard.check().wrong_bytes > 50);
}
