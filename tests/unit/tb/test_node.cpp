// SPDX-License-Identifier: Apache-2.0
// Verilated nodes in a cluster, with echo_node.sv in the place of the NIC: host access, MACs, memory,
// failures.
#include <catch2/catch.hpp>

#include <map>
#include <nlohmann/json.hpp>

#include "echo.h"
#include "tb/node/mac.h"
#include "weft_test.h"

using namespace weft::tb;
namespace wire = weft::wire;

namespace {

std::unique_ptr<Cluster> make(const Scenario& s, const NodeFactory& nodes = echo::nodes(),
                              const TraceConfig& traces = {}) {
  auto c = Cluster::create(s, nodes, traces);
  INFO(c.error());
  REQUIRE(c.ok());
  return c.take();
}

// Node 0 is Verilated, the others are not.
std::unique_ptr<Cluster> mixed(Scenario s) {
  return make(s, [rtl = echo::nodes()](const NodeEnv& env) -> std::unique_ptr<Endpoint> {
    if (env.node == 0) return rtl(env);
    return std::make_unique<SoftNode>(env, 2);
  });
}

// Puts frames into memory of node 0, page by page, and asks it to send them. Page k holds frame k.
void send_all(Cluster& c, const std::vector<std::vector<uint8_t>>& frames, uint32_t port) {
  weft::Hal& hal = c.hal(0);
  for (size_t i = 0; i < frames.size(); ++i) {
    const uint64_t addr = c.memory(0).base() + i * 8192;
    hal.mem_write(addr, frames[i].data(), frames[i].size());
    echo::send(hal, port, addr, static_cast<uint16_t>(frames[i].size()));
  }
}

// A sink for a MAC on its own.
struct Sink : FrameSink {
  struct Sent {
    uint32_t port;
    Ps first, last;
    FrameRef frame;
  };
  std::vector<Sent> sent;
  void send(uint32_t port, Ps first, Ps last, Ps known, FrameRef frame) override {
    CHECK(known <= last);
    sent.push_back({port, first, last, std::move(frame)});
  }
};

// Pins of the MACs of two ports.
struct MacRig {
  explicit MacRig(int64_t mbps = 100'000) {
    pins = {tx_data, tx_keep, &tx_valid, &tx_ready, &tx_last,
            rx_data, rx_keep, &rx_valid, &rx_last,  &rx_user};
    for (uint32_t p = 0; p < 2; ++p) mac.emplace_back(pins, p, mbps, frames, sink);
  }
  void step() {
    for (auto& m : mac) m.sample(now);
    now += kClockPs;
    for (auto& m : mac) m.drive(now);
  }
  void offer(uint32_t port, uint64_t keep, bool last, uint8_t fill) {
    std::memset(tx_data + port * 16, fill, 64);
    std::memcpy(tx_keep + port * 8, &keep, 8);
    tx_valid |= static_cast<uint8_t>(1u << port);
    tx_last = static_cast<uint8_t>(last ? tx_last | 1u << port : tx_last & ~(1u << port));
  }
  FramePool frames;
  Sink sink;
  Ps now = 0;
  uint32_t tx_data[32] = {}, rx_data[32] = {};
  uint8_t tx_keep[16] = {}, rx_keep[16] = {};
  uint8_t tx_valid = 0, tx_ready = 0, tx_last = 0, rx_valid = 0, rx_last = 0, rx_user = 0;
  MacPins pins{};
  std::vector<MacPort> mac;
};

}  // namespace

TEST_CASE("mac: transmit runs at line rate behind a FIFO of 16 KB", "[tb][mac]") {
  MacRig rig;
  rig.step();
  CHECK(rig.tx_ready == 3);
  // Port 1 offers 64-beat frames without a pause.
  uint64_t beats = 0, first_stall = 0;
  constexpr uint64_t kCycles = 20'000;
  for (uint64_t cycle = 0; cycle < kCycles; ++cycle) {
    rig.offer(1, ~uint64_t{0}, beats % 64 == 63, static_cast<uint8_t>(beats));
    const bool taken = rig.tx_ready >> 1 & 1;
    if (!taken && first_stall == 0) first_stall = beats * 64;
    rig.step();
    if (taken) ++beats;
  }
  // In: 64 B a cycle = 165 Gb/s; out: 100 Gb/s less 24 B a frame. The FIFO fills after 16 KB / (1 - 0.6) or
  // so.
  CHECK(first_stall > 16 * 1024);
  CHECK(first_stall < 16 * 1024 * 2.7);
  const double line_bytes = static_cast<double>(kCycles * kClockPs) / 80.0;
  const double frame_share = 4096.0 / 4120.0;
  CHECK(static_cast<double>(beats) * 64 < line_bytes * frame_share + 16 * 1024 + 64);
  CHECK(static_cast<double>(beats) * 64 > line_bytes * frame_share + 16 * 1024 - 256);
  REQUIRE(rig.sink.sent.size() > 100);
  for (size_t i = 1; i < rig.sink.sent.size(); ++i) {
    const auto& a = rig.sink.sent[i - 1];
    const auto& b = rig.sink.sent[i];
    CHECK(b.port == 1);
    CHECK(b.first == a.last);  // back to back on the wire
    CHECK(b.last - b.first == wire_ps(4096, 100'000));
    REQUIRE(b.frame->bytes == 4096);
    CHECK(b.frame->data()[0] == static_cast<uint8_t>(i * 64));
    CHECK(b.frame->data()[4095] == static_cast<uint8_t>(i * 64 + 63));
  }
  CHECK(rig.mac[1].error().ok());
  CHECK(rig.mac[0].counts().tx_frames == 0);
  CHECK(rig.mac[1].counts().tx_stall_cycles > 0);
}

TEST_CASE("mac: a node that cannot keep up underruns, and odd keeps are refused", "[tb][mac]") {
  MacRig slow;
  slow.step();
  // 64 B must follow every 5.12 ns, but for what the preamble gives.
  slow.offer(0, ~uint64_t{0}, false, 1);
  slow.step();
  slow.tx_valid = 0;
  slow.step();
  slow.step();
  slow.offer(0, ~uint64_t{0}, true, 2);
  slow.step();
  CHECK(slow.mac[0].counts().underruns == 1);
  CHECK(slow.mac[0].error().text().find("MAC port 0: underrun at ") == 0);

  for (uint64_t keep : {uint64_t{0}, uint64_t{0xff}, ~uint64_t{1}}) {
    MacRig rig;
    rig.step();
    rig.offer(0, keep, keep != 0xff, 1);  // nothing; partial before the last; not from byte 0
    rig.step();
    CHECK_FALSE(rig.mac[0].error().ok());
  }
}

TEST_CASE("mac: received beats keep the pace of the wire", "[tb][mac]") {
  MacRig rig;
  for (int i = 0; i < 10; ++i) rig.step();
  std::vector<uint8_t> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 3);
  const Ps first_bit = rig.now + 50'000;
  for (int i = 0; i < 20; ++i) {
    auto frame = rig.frames.make(bytes.data(), bytes.size());
    if (i == 7) frame->flags = kFrameMacError;
    rig.mac[1].receive(first_bit + i * wire_ps(1000, 100'000), std::move(frame));
  }
  uint32_t got = 0;
  size_t at = 0;
  Ps start = first_bit;
  while (got < 20) {
    REQUIRE(rig.now < first_bit + 40 * wire_ps(1000, 100'000));
    rig.step();
    REQUIRE((rig.rx_valid & 1) == 0);
    if ((rig.rx_valid >> 1 & 1) == 0) continue;
    // The beat is complete on the wire now, and was not a cycle ago.
    const size_t n = std::min<size_t>(64, 1000 - at);
    const Ps due = start + static_cast<Ps>(8 + at + n) * 80;
    CHECK(rig.now >= due);
    CHECK(rig.now < due + kClockPs);
    CHECK(std::memcmp(rig.rx_data + 16, &bytes[at], n) == 0);
    uint64_t keep;
    std::memcpy(&keep, rig.rx_keep + 8, 8);
    CHECK(keep == (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1));
    at += n;
    CHECK((rig.rx_last >> 1 & 1) == (at == 1000));
    CHECK((rig.rx_user >> 1 & 1) == (at == 1000 && got == 7));
    if (at == 1000) {
      at = 0;
      ++got;
      start += wire_ps(1000, 100'000);
    }
  }
  rig.step();
  CHECK(rig.rx_valid == 0);
  CHECK(rig.mac[1].counts().rx_frames == 20);
}

TEST_CASE("node: registers are written in order and read after everything earlier", "[tb][node]") {
  auto c = make(two_nodes());
  weft::Hal& hal = c->hal(1);
  CHECK(hal.csr_read(echo::kId) == 0x6563686f);
  for (uint32_t i = 0; i < 50; ++i) hal.csr_write(echo::kHasty, i);
  CHECK(hal.csr_read(echo::kHasty) == 49);
  CHECK(c->hal(0).csr_read(echo::kHasty) == 0);
  const uint32_t before = hal.csr_read(echo::kCycles);
  const Ps from = c->now_ps();
  REQUIRE(c->run_for(100 * kUs).ok());
  const uint32_t cycles = hal.csr_read(echo::kCycles) - before;
  CHECK(cycles > (c->now_ps() - from - 4 * kUs) / kClockPs);
  CHECK(cycles < (c->now_ps() - from + 4 * kUs) / kClockPs);
  CHECK(c->cycles(1) * kClockPs > static_cast<uint64_t>(c->now_ps()) - 2 * kClockPs);
  hal.csr_write(0x100, 1);  // answers SLVERR
  hal.csr_read(echo::kId);
  CHECK(c->stats()["nodes"][1]["host_errors"] == 1);
}

TEST_CASE("node: a frame goes from memory to memory, byte for byte, at any size", "[tb][node][random]") {
  Scenario s = two_nodes();
  s.memory.stall = 0.2;
  s.seed = weft::test::seed();
  auto c = make(s);
  weft::test::Rng rng;
  for (uint32_t port : {0u, 1u}) {
    std::vector<std::vector<uint8_t>> frames;
    for (size_t payload : {0u, 1u, 37u, 38u, 39u, 100u, 1024u, 4096u}) {
      frames.push_back(
          data_frame(route(0, 1, port), payload, {static_cast<uint32_t>(payload), 0, payload * 0x1000}));
    }
    for (int i = 0; i < 8; ++i)
      frames.push_back(data_frame(route(0, 1, port), rng() % 4097, {static_cast<uint32_t>(i), 1, 0}));
    const uint64_t rx_base = c->memory(1).base() + (1 << 20);
    c->hal(1).csr_write(echo::kRxBase, static_cast<uint32_t>(rx_base >> 12));
    c->hal(1).csr_read(echo::kId);
    const auto got_before = c->hal(1).csr_read(echo::kFrames);
    send_all(*c, frames, port);
    const RunResult r = c->settle(10 * kMs);
    INFO(r.text);
    REQUIRE(r.ok());
    CHECK(c->hal(1).csr_read(echo::kFrames) - got_before == frames.size());
    for (size_t i = 0; i < frames.size(); ++i) {
      std::vector<uint8_t> got(frames[i].size());
      c->hal(1).mem_read(rx_base + (uint64_t{port} << 19) + i * 8192, got.data(), got.size());
      CHECK(got == frames[i]);
    }
  }
  CHECK(c->fabric().delivered == 32);
  CHECK(c->fabric().balanced());
  // The stand-in writes whole frames, headers and all: more than the payload sent, which the checker must
  // see.
  CHECK(c->finish().text().find("payload was delivered twice") == 0);
}

TEST_CASE("node: what it sends crosses the fabric at the time the MAC says", "[tb][node]") {
  auto c = mixed(two_nodes());
  const auto frame = data_frame(route(0, 1, 0), 4096);
  send_all(*c, {frame, frame, frame}, 0);
  REQUIRE(c->settle(kMs).ok());
  const auto& got = soft(*c, 1).arrivals;
  REQUIRE(got.size() == 3);
  for (const Arrival& a : got) CHECK(a.bytes == frame);
  // The stand-in gathers a frame before it sends it, so frames are apart by more than their wire time.
  CHECK(got[1].first_bit - got[0].first_bit > wire_ps(4190, 100'000));
  const auto stats = c->stats();
  CHECK(stats["nodes"][0]["mac"][0]["tx_frames"] == 3);
  CHECK(stats["nodes"][0]["mac"][0]["underruns"] == 0);
  CHECK(stats["nodes"][0]["axi_read"]["tx0"]["bytes"] == 3 * 66 * 64);
}

TEST_CASE("node: a node that pauses inside a frame fails the run", "[tb][node]") {
  auto c = mixed(two_nodes());
  c->hal(0).csr_write(echo::kGap, 2);
  send_all(*c, {data_frame(route(0, 1, 0), 4096)}, 0);
  const RunResult r = c->settle(kMs);
  CHECK(r.end == RunEnd::kFailed);
  CHECK(r.text.find("node 0: MAC port 0: underrun") != std::string::npos);
}

TEST_CASE("node: memory shows the mistake of not waiting for a write response", "[tb][node]") {
  for (uint32_t hasty : {0u, 1u}) {
    auto c = make(two_nodes());
    weft::Hal& hal = c->hal(0);
    const uint64_t base = c->memory(0).base();
    const uint32_t value = 0xfeedbeef, old = 0x01010101;
    hal.mem_write(base, &value, 4);
    hal.mem_write(base + 4096, &old, 4);
    hal.csr_write(echo::kHasty, hasty);
    echo::copy(hal, base, base + 4096);
    REQUIRE(c->run_until([&] { return *c->memory(0).data(base + 8192) == 0x0d; }, kMs).ok());
    CHECK(hal.csr_read(echo::kReadBack) == (hasty ? old : value));
    uint32_t now = 0;
    hal.mem_read(base + 4096, &now, 4);
    CHECK(now == value);
  }
}

TEST_CASE("node: AXI errors reach the node, protocol errors end the run", "[tb][node]") {
  Scenario s = two_nodes();
  s.memory.error = {{0, (uint64_t{1} << 32) + 8192, 64}};
  auto c = make(s);
  const uint64_t base = c->memory(0).base();
  echo::copy(c->hal(0), base, base + 4096);
  CHECK(c->hal(0).csr_read(echo::kId) == 0x6563686f);
  REQUIRE(c->settle(kMs).ok());
  CHECK(c->hal(0).csr_read(echo::kResponse) == 2);
  CHECK(c->stats()["nodes"][0]["axi_write"]["me"]["errors"] == 1);

  auto d = make(two_nodes());
  echo::copy(d->hal(0), base, base + 64);  // 128-byte beats
  const RunResult unaligned = d->settle(kMs);
  CHECK(unaligned.end == RunEnd::kFailed);
  CHECK(unaligned.text.find("node 0: AXI master nmc_") != std::string::npos);
  CHECK(unaligned.text.find("is no multiple of the 128 bytes of a beat") != std::string::npos);
  CHECK_FALSE(d->finish().ok());
}

TEST_CASE("node: an assertion of the RTL ends the run with the node's name", "[tb][node]") {
  auto c = make(two_nodes());
  c->hal(1).csr_write(echo::kId, 0xdead);
  const RunResult r = c->run_for(10 * kUs);
  CHECK(r.end == RunEnd::kFailed);
  CHECK(r.text.find("node 1: an assertion of the RTL failed") != std::string::npos);
  CHECK(c->hal(0).csr_read(echo::kId) == 0xffffffff);  // a dead cluster answers like a dead device
  CHECK_FALSE(c->finish().ok());
}

TEST_CASE("node: silence is a hang, and the report names who waits for what", "[tb][node]") {
  Scenario s = two_nodes();
  s.watchdog_us = 50;
  auto c = make(s);
  REQUIRE(c->run_for(300 * kUs).ok());  // silence that was asked for
  const Ps from = c->now_ps();
  const RunResult r = c->run_until([] { return false; }, 10 * kMs);
  CHECK(r.end == RunEnd::kHang);
  CHECK(c->now_ps() - from < 55 * kUs);
  CHECK(r.text.find("nothing has moved since") != std::string::npos);
  CHECK(r.state.find("node 1: sent 0, received 0; cycle ") != std::string::npos);
  CHECK(r.text.find('\n') == std::string::npos);
  const RunResult limit = c->run_until([] { return false; }, 20 * kUs);
  CHECK(limit.end == RunEnd::kLimit);
}

TEST_CASE("node: the host outside of memory fails the run", "[tb][node]") {
  auto c = make(two_nodes());
  uint32_t x = 0;
  c->hal(0).mem_write(c->memory(1).base(), &x, 4);  // another node's address
  CHECK(c->status().text().find("node 0: the host accesses 4 bytes at 0x200000000") == 0);
}

TEST_CASE("node: an injected frame of any content reaches the pins", "[tb][node]") {
  auto c = make(two_nodes());
  const uint64_t rx_base = c->memory(0).base() + (1 << 20);
  c->hal(0).csr_write(echo::kRxBase, static_cast<uint32_t>(rx_base >> 12));
  c->hal(0).csr_read(echo::kId);
  std::vector<uint8_t> odd(301, 0xc3);
  c->inject(0, 0, odd.data(), odd.size());
  c->inject(0, 0, odd.data(), 1, true);
  REQUIRE(c->settle(kMs).ok());
  CHECK(c->hal(0).csr_read(echo::kFrames) == 2);
  std::vector<uint8_t> got(302);
  c->hal(0).mem_read(rx_base, got.data(), got.size());
  odd.push_back(0);
  CHECK(got == odd);
  CHECK(c->fabric().injected == 2);
  CHECK(c->fabric().balanced());
  CHECK(c->finish().ok());
}

TEST_CASE("node: one thread and two give the same bits", "[tb][node]") {
  const auto run = [](uint32_t threads) {
    Scenario s;
    s.nodes = 4;
    s.planes = 2;
    s.threads = threads;
    s.seed = weft::test::seed();
    s.faults.loss = 0.2;
    s.faults.jitter_ns = 300;
    s.memory.stall = 0.3;
    s.fabric.hosts_per_leaf = 2;
    auto c = make(s);
    std::vector<std::vector<uint8_t>> frames;
    for (uint32_t i = 0; i < 12; ++i)
      frames.push_back(data_frame(route(0, 1 + i % 3, i % 2), 300 * i, {i, 0, i * 0x1000}));
    for (uint32_t k = 1; k < 4; ++k)
      c->hal(k).csr_write(echo::kRxBase, static_cast<uint32_t>((c->memory(k).base() + (1 << 20)) >> 12));
    for (uint32_t k = 1; k < 4; ++k) c->hal(k).csr_read(echo::kId);
    for (size_t i = 0; i < frames.size(); ++i) {
      const uint64_t addr = c->memory(0).base() + i * 8192;
      c->hal(0).mem_write(addr, frames[i].data(), frames[i].size());
      echo::send(c->hal(0), i % 2, addr, static_cast<uint16_t>(frames[i].size()));
    }
    REQUIRE(c->settle(kMs).ok());
    uint64_t hash = static_cast<uint64_t>(c->now_ps());
    for (uint32_t k = 0; k < 4; ++k) {
      for (uint64_t i = 0; i < (2 << 20); i += 8) {
        uint64_t word;
        std::memcpy(&word, c->memory(k).data(c->memory(k).base() + i), 8);
        hash = mix64(hash ^ word) + 1;
      }
    }
    auto stats = c->stats();
    stats.erase("kernel");
    return std::make_pair(hash, stats.dump());
  };
  const auto one = run(1);
  CHECK(run(2) == one);
  const auto fabric = nlohmann::json::parse(one.second)["fabric"];
  CHECK(fabric["in"] == 12);
  CHECK(fabric["drop_loss"] > 0);
  CHECK(fabric["delivered"] > 0);
}

TEST_CASE("node: engine events reach the timeline's list", "[tb][node]") {
  Scenario s = two_nodes();
  FramePool frames;
  Sink sink;
  NodeEnv env;
  env.scenario = &s;
  env.frames = &frames;
  env.sink = &sink;
  env.engine_trace = true;
  auto node = echo::nodes()(env);
  std::array<uint8_t, 64> db{};
  const uint64_t from = node->memory()->base(), to = from + 4096;
  db[0] = 2;
  std::memcpy(&db[8], &from, 8);
  std::memcpy(&db[16], &to, 8);
  node->host()->doorbell(db.data());
  node->advance_to(5 * kUs);
  const auto& events = *node->engine_events();
  REQUIRE(events.size() == 2);
  for (const EngineEvent& e : events) {
    CHECK(e.subgraph == 0x1234);
    CHECK(e.entry == 0x89abcdef);
    CHECK(e.opcode == static_cast<uint8_t>(wire::WqeOp::REDUCE));
  }
  CHECK_FALSE(events[0].done);
  CHECK(events[1].done);
  CHECK(events[1].status == static_cast<uint8_t>(wire::Err::BAD_ALIGN));
  CHECK(events[1].time > events[0].time);
}

TEST_CASE("node: waves asked of a program without them are an error, not silence", "[tb][node]") {
  TraceConfig traces;
  traces.waves.file = "x.fst";
  const auto c = Cluster::create(two_nodes(), echo::nodes(), traces);
#if VM_TRACE_FST
  CHECK(c.ok());
#else
  CHECK(c.error() == "x.fst: this program is built without waves");
#endif
  traces.waves.node = 2;
  CHECK(Cluster::create(two_nodes(), echo::nodes(), traces).error() ==
        "x.fst: node 2: expected a node below 2");
}
