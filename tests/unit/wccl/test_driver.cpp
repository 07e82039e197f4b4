// SPDX-License-Identifier: Apache-2.0
// The driver in front of a node that only answers registers: whom it accepts, what it writes there.
#include <fmt/format.h>

#include "fake_node.h"
#include "sw/weft/device.h"
#include "weft_test.h"

using weft::test::FakeNode;
namespace cfg = weft::cfg;
namespace regs = weft::regs;

namespace {

std::string opened(FakeNode& node) {
  auto device = weft::Device::open(node);
  return device.ok() ? std::string() : device.error();
}

weft::ConnectionEnd end(std::uint16_t conn, std::uint32_t psn) {
  return {conn, 7, std::vector<weft::PortAddress>(2), {psn, psn + 1}};
}

}  // namespace

TEST_CASE("case rtl 19: a node of another build is refused by its version or interface", "[driver]") {
  FakeNode node;
  CHECK(opened(node) == "");
  node.regs[regs::kVersion] = regs::kVersionMajor.put(regs::kVersionMajorReads + 1);
  CHECK(opened(node) == "VERSION register: 2, this driver knows 1");
  node = {};
  node.regs[regs::kInterface] ^= 0x100;
  CHECK(opened(node).find("node and driver are of different builds") != std::string::npos);
  node = {};
  node.regs[regs::kId] = 0x57454655;
  CHECK(opened(node) == "ID register: 0x57454655, expected 0x57454654: no Weft node there");
}

TEST_CASE("case rtl 15: a node that reads as all ones is an error, not a node", "[driver]") {
  // A PCIe function that is gone, at once or while it is set up.
  struct Gone : FakeNode {
    unsigned reads_left = 0;
    std::uint32_t csr_read(std::uint32_t addr) override {
      if (reads_left == 0) return 0xffffffff;
      --reads_left;
      return FakeNode::csr_read(addr);
    }
  } node;
  CHECK(opened(node) == "ID register: 0xffffffff, expected 0x57454654: no Weft node there");
  std::string text = "?";
  unsigned reads = 1;
  for (; !text.empty() && reads < 50; ++reads) {
    node.reads_left = reads;
    text = opened(node);
  }
  CHECK(reads - 1 == 13);  // as many as there are: it was accepted only because it answered all
  node.reads_left = 1000;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  const std::uint8_t image[4] = {};
  CHECK(device.value().load_firmware(image).ok());
  node.reads_left = 0;
  CHECK(device.value().load_firmware(image).text() ==
        "CPU_STATUS: 0xffffffff: the node does not answer any more");
}

TEST_CASE("driver: firmware that traps, stays silent or is another's does not count as running", "[driver]") {
  // The status comes a few reads after the start, as that of a CPU that boots.
  struct Booting : FakeNode {
    unsigned silent = 0;
    std::uint32_t csr_read(std::uint32_t addr) override {
      if (addr == regs::kCpuStatus && silent != 0) return --silent, 0;
      return FakeNode::csr_read(addr);
    }
  } node;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  const std::uint8_t image[8] = {};
  const auto loaded = [&](std::uint32_t status) {
    node.silent = 3;
    node.regs[regs::kCpuStatus] = status;
    return device.value().load_firmware(image).text();
  };
  CHECK(loaded(0x57010000) == "");
  CHECK(loaded(0x5701ffff) == "");  // it counts requests there
  const std::string trap = ": CPU-M trapped, on an illegal instruction or access of the firmware";
  CHECK(loaded(0xee000000) == "CPU_STATUS: 0xee000000" + trap);
  CHECK(loaded(0xee010007) == "CPU_STATUS: 0xee010007" + trap);  // after it had reported
  CHECK(loaded(0) == "CPU_STATUS: 0 after 100000 reads, the firmware does not start");
  for (std::uint32_t other : {0x00000001U, 0x57020000U, 0x57000000U, 0x00005701U})
    CHECK(loaded(other).find(": not what this driver's firmware reports") != std::string::npos);
  CHECK(device.value().load_firmware({image, 7}).text() ==
        "firmware image: 7 bytes, expected a multiple of 4");
}

TEST_CASE("driver: a reset that does not end is told", "[driver]") {
  FakeNode node;
  node.regs[regs::kIdle] = regs::kIdleMe.put(1) | regs::kIdleHost.put(1);
  CHECK(opened(node) == "IDLE.reset_done: 0 after 100000 reads, the soft reset does not end");
  node.regs[regs::kIdle] |= regs::kIdleDraining.put(1);
  CHECK(opened(node) ==
        "IDLE.draining: 1 after 100000 reads, the soft reset waits: memory owes an answer to a read or write "
        "of before, or a MAC does not take the rest of a frame");
}

TEST_CASE("driver: a node that works for someone is reset only if asked to", "[driver]") {
  // A node that still works for the program before: IDLE reads as `states` tell, one after the other, and
  // from then on as the last. Not asked to, the driver
  // must not reset before two reads in a row told of rest.
  struct Busy : FakeNode {
    std::vector<std::uint32_t> states;
    std::size_t idle_reads = 0, reads_at_reset = 0;
    unsigned resets = 0;
    std::uint32_t csr_read(std::uint32_t addr) override {
      if (addr != regs::kIdle) return FakeNode::csr_read(addr);
      return states[std::min(idle_reads++, states.size() - 1)] | regs::kIdleResetDone.put(1);
    }
    void csr_write(std::uint32_t addr, std::uint32_t value) override {
      if (addr == regs::kCtrl && regs::kCtrlSoftReset.get(value) != 0) {
        reads_at_reset = idle_reads;
        ++resets;
      }
      FakeNode::csr_write(addr, value);
    }
  };
  constexpr std::uint32_t me = regs::kIdleMe.put(1), host = regs::kIdleHost.put(1);
  Busy slow;
  slow.states = {0, host, me, me | host, 0, me | host, host, me, me | host, me | host};
  CHECK(opened(slow) == "");
  CHECK(slow.reads_at_reset == slow.states.size());
  CHECK(slow.doorbells.empty());

  for (std::uint32_t never : {0U, me, host}) {
    Busy stuck;
    stuck.states = {never};
    CHECK(opened(stuck) ==
          fmt::format("IDLE: {:#010x} after 100000 reads, bits me and host are not both 1: the "
                      "node still works for whoever had it before",
                      never | regs::kIdleResetDone.put(1)));
    CHECK(stuck.resets == 0);
    CHECK(stuck.doorbells.empty());
  }

  Busy taken;
  taken.states = {0};
  auto device = weft::Device::open(taken, weft::IfBusy::kReset);
  REQUIRE(device.ok());
  CHECK(taken.resets == 1);
  CHECK(taken.reads_at_reset == 0);  // at once
  CHECK(taken.idle_reads == 1);
  CHECK(taken.doorbells.empty());
}

TEST_CASE("case transport 7: a start PSN of more than 24 bits is masked, at both ends alike", "[driver]") {
  FakeNode node;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  REQUIRE(device.value().set_transport({}).ok());
  REQUIRE(device.value().connect(end(3, 0x1ffffffe), end(5, 0xabcdef0f), {}).ok());
  for (unsigned port = 0; port < 2; ++port) {
    const auto c = node.last(cfg::Table::kConn, 3 * 2 + port);
    CHECK(FakeNode::field(c, cfg::Conn{.tx_psn = 0xffffff}) == 0xfffffe + port);
    CHECK(FakeNode::field(c, cfg::Conn{.rx_psn = 0xffffff}) == 0xcdef0f + port);
    // What does not fit must not spill into its neighbours.
    CHECK(FakeNode::field(c, cfg::Conn{.num_paths = 0xff}) == 8);
    CHECK(FakeNode::field(c, cfg::Conn{.rconn = 0xffffff}) == 5);
    CHECK(FakeNode::field(c, cfg::Conn{.share = 0xffff}) == 9930);  // 100 Gb/s at 322 MHz
  }
}

TEST_CASE("case transport 10: regions beyond 4 GiB are kept whole, what does not fit is refused",
          "[driver]") {
  FakeNode node;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  REQUIRE(device.value().set_transport({}).ok());
  const std::uint64_t base = 0x1234'5678'9abc'0040, size = 0x5'0000'0003;
  auto region = device.value().add_region(base, size, {.remote_write = true});
  REQUIRE(region.ok());
  const auto c = node.last(cfg::Table::kRegion, region.value().index);
  CHECK(FakeNode::field(c, cfg::Region{.base = ~std::uint64_t{0}}) == base);
  CHECK(FakeNode::field(c, cfg::Region{.limit = ~std::uint64_t{0}}) == base + size);
  CHECK(FakeNode::field(c, cfg::Region{.local_read = true}) == 0);
  const std::size_t before = node.configs.size();
  CHECK(device.value().add_region(~std::uint64_t{0} - 9, 11, {}).error().find("no wrap") !=
        std::string::npos);
  CHECK(!device.value().add_region(base, 0, {}).ok());
  for (double bytes : {-1.0, 16777216.0}) {
    weft::ConnectionConfig config;
    config.init_cap_bytes = bytes;
    CHECK(device.value().connect(end(3, 0), end(5, 0), config).text().find("expected 0 to 16777215") !=
          std::string::npos);
  }
  CHECK(node.configs.size() == before);
}

TEST_CASE("driver: all regions can be used, one more is refused, a removed one comes back with another key",
          "[driver]") {
  FakeNode node;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  std::vector<weft::Region> regions;
  for (unsigned i = 0; i < device.value().caps().num_regions; ++i) {
    auto r = device.value().add_region(4096 * (i + 1), 4096, {.local_read = true});
    REQUIRE(r.ok());
    CHECK(r.value().key % 64 == r.value().index);
    regions.push_back(r.value());
  }
  CHECK(node.valid_regions() == 64);
  CHECK(device.value().add_region(0, 1, {}).error() == "region: all 64 of the node are in use");
  device.value().remove_region(regions[17]);
  CHECK(node.valid_regions() == 63);
  auto again = device.value().add_region(regions[17].base, 4096, {});
  REQUIRE(again.ok());
  CHECK(again.value().index == 17);
  CHECK(again.value().key != regions[17].key);
}

TEST_CASE("driver: no more doorbells than the ring has room for completions", "[driver]") {
  FakeNode node;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  REQUIRE(device.value().set_completion_ring(4096, 8).ok());
  weft::wire::Cqe e;
  for (unsigned round = 0, cookie = 0; round < 5; ++round) {
    const unsigned first = cookie;
    while (device.value().post_launch(round, cookie).ok()) ++cookie;
    CHECK(cookie - first == 8);
    for (unsigned k = first; k < cookie; ++k) {
      REQUIRE(device.value().poll(&e));
      CHECK(e.cookie == k);
      CHECK(e.subgraph == round);
    }
    CHECK(!device.value().poll(&e));
  }
  CHECK(node.doorbells.size() == 40);
}

TEST_CASE("driver: a completion of the round before is not taken for one of this", "[driver]") {
  // A ring of 256: the place that comes next holds a number that differs in the ninth bit only.
  FakeNode node;
  auto opened = weft::Device::open(node);
  REQUIRE(opened.ok());
  weft::Device& device = opened.value();
  constexpr unsigned kEntries = 256;
  REQUIRE(device.set_completion_ring(0x10000, kEntries).ok());
  weft::wire::Cqe cqe;
  for (std::uint64_t n = 0; n < 3 * kEntries; ++n) {
    CAPTURE(n);
    REQUIRE_FALSE(device.poll(&cqe));  // nothing has been asked
    REQUIRE(device.post_unregister(1, 0x1000 + n).ok());
    REQUIRE(device.poll(&cqe));
    REQUIRE(cqe.cookie == 0x1000 + n);
    REQUIRE(cqe.seq == n + 1);
  }
}
