// SPDX-License-Identifier: Apache-2.0
// Reference nodes alone, and reference and Verilated nodes together: every collective bit for bit, WRITEs of
// every shape in both directions, and what a wrong key or address comes to.
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "harness.h"
#include "tb/memory/memory.h"
#include "weft_counters.h"
#include "weft_regs.h"

using namespace weft::test;
namespace tb = weft::tb;
namespace wire = weft::wire;
using weft::Device;
using weft::Status;

namespace {

// Each kind of collective, random values (so that the bits must be those of the plan's order of summation,
// whatever the bodies), at every loss, with copies and with corruption.
void every_collective(tb::Body body, int n) {
  Trial t;
  t.scenario.body = body;
  t.workload = everything(n, 30);
  std::set<wccl::Kind> seen;
  std::erase_if(t.workload.ops, [&](const tb::WorkloadOp& o) {
    const bool empty = o.op.count == 0 && o.op.kind == wccl::Kind::kAllReduce;
    return empty || !seen.insert(o.op.kind).second;
  });
  t.config.inputs = tb::Inputs::kRandom;
  t.config.transport.probe_min_us = 0.5;
  t.config.transport.rtt_init_us = 2;
  t.scenario.fabric.link_latency_ns = 200;
  t.scenario.fabric.switch_latency_ns = 100;
  std::vector<tb::FaultConfig> weather(5);
  weather[1].loss = 0.01;
  weather[2].loss = 0.1;
  weather[3].duplicate = 0.1;
  weather[4].corrupt = 0.05;
  for (auto& o : t.workload.ops) o.repeat = static_cast<unsigned>(weather.size());
  t.before_run = [&](tb::Cluster& c, std::size_t, unsigned repeat) { c.set_fault_rates(weather[repeat]); };
  CAPTURE(n);
  const Outcome o = t.run();
  CHECK(o.error == "");
  CHECK(o.ops.size() == t.workload.ops.size());
  CHECK(o.traffic.lost > 0);
  CHECK(o.traffic.written_payload_bytes == o.traffic.unique_payload_bytes);
}

// Two nodes with a connection, driven entry by entry. Node 0 is Verilated, node 1 a reference node.
class Pair {
 public:
  static constexpr std::uint64_t kEntries = 0x1000, kRoom = 0x10000, kSpan = 0x8000;

  Pair() {
    trial_.scenario.body = tb::Body::kMixed;
    trial_.scenario.nodes = 2;
    trial_.workload.ranks = 2;
    trial_.workload.ops = {op(wccl::Kind::kAllReduce, 1 << 16)};  // for its memory
    trial_.scenario.memory.size_mib = tb::Runner::memory_mib(trial_.workload);
    auto made = tb::Cluster::create(trial_.scenario, tb::bodies(tb::make_verilated_node<Vnic100>));
    REQUIRE(made.ok());
    cluster = made.take();
    runner = std::make_unique<tb::Runner>(*cluster, trial_.workload, trial_.config);
    const Status s = runner->setup();
    INFO(s.text());
    REQUIRE(s.ok());
    for (int r = 0; r < 2; ++r) {
      auto region = runner->device(r).add_region(
          at(r, 0), kSpan, {.remote_write = true, .local_read = true, .local_write = true});
      REQUIRE(region.ok());
      regions[r] = region.value();
    }
  }

  // An address in the room of a rank that both may use.
  std::uint64_t at(int rank, std::uint64_t offset) { return runner->heap(rank) + kRoom + offset; }
  std::uint8_t* bytes(int rank, std::uint64_t offset) {
    return cluster->memory(static_cast<std::uint32_t>(rank)).data(at(rank, offset));
  }
  wire::Wqe write(int from, std::uint64_t src, std::uint64_t dst, std::uint32_t length) {
    wire::Wqe w;
    w.opcode = wire::WqeOp::WRITE;
    w.conn = static_cast<std::uint16_t>(1 - from);
    w.src0 = at(from, src);
    w.dst = at(1 - from, dst);
    w.length = length;
    w.rkey = regions[1 - from].key;
    return w;
  }
  // Registers and launches the entries on a rank; the completion of the launch.
  wire::Cqe run(int rank, const std::vector<wire::Wqe>& entries) {
    const std::uint64_t addr = runner->heap(rank) + kEntries;
    for (std::size_t i = 0; i < entries.size(); ++i)
      entries[i].pack(cluster->memory(static_cast<std::uint32_t>(rank)).data(addr + i * wire::Wqe::kBytes));
    Device& d = runner->device(rank);
    REQUIRE(d.post_register(kSubgraph, addr, static_cast<std::uint32_t>(entries.size()), 1).ok());
    wire::Cqe e = wait(rank);
    if (e.status != wire::Err::OK) return e;
    REQUIRE(d.post_launch(kSubgraph, 2).ok());
    e = wait(rank);
    REQUIRE(d.post_unregister(kSubgraph, 3).ok());
    CHECK(wait(rank).status == wire::Err::OK);
    return e;
  }
  wire::Cqe wait(int rank) {
    wire::Cqe e;
    const tb::RunResult end = cluster->run_until([&] { return runner->device(rank).poll(&e); }, 20 * tb::kMs);
    INFO(end.text);
    REQUIRE(end.ok());
    return e;
  }
  void finish() {
    const Status s = runner->finish();
    CHECK(s.text() == "");
  }

  std::unique_ptr<tb::Cluster> cluster;
  std::unique_ptr<tb::Runner> runner;
  weft::Region regions[2];

 private:
  static constexpr unsigned kSubgraph = 40;
  Trial trial_;
};

}  // namespace

TEST_CASE("bodies: every collective on reference nodes in every weather", "[bodies][random]") {
  for (int n : {2, 5, 8}) every_collective(tb::Body::kRef, n);
}
TEST_CASE("bodies: every collective on 2 and 5 nodes of both kinds in every weather", "[bodies][random]") {
  for (int n : {2, 5}) every_collective(tb::Body::kMixed, n);
}
TEST_CASE("bodies: every collective on 8 nodes of both kinds in every weather", "[bodies][random]") {
  every_collective(tb::Body::kMixed, 8);
}

TEST_CASE("bodies: a reference node has the registers of a Verilated one", "[bodies]") {
  Pair p;
  for (std::uint32_t reg : {weft::regs::kId, weft::regs::kVersion, weft::regs::kInterface, weft::regs::kCaps0,
                            weft::regs::kCaps1, weft::regs::kCaps2, weft::regs::kCaps3, weft::regs::kCtrl}) {
    CAPTURE(reg);
    CHECK(p.cluster->hal(0).csr_read(reg) == p.cluster->hal(1).csr_read(reg));
  }
  CHECK(p.cluster->hal(0).csr_read(weft::regs::kCpuStatus) >> 16 ==
        p.cluster->hal(1).csr_read(weft::regs::kCpuStatus) >> 16);
  const tb::RunResult end = p.cluster->settle(tb::kMs);
  CHECK(end.ok());
  CHECK(p.cluster->hal(0).csr_read(weft::regs::kIdle) == p.cluster->hal(1).csr_read(weft::regs::kIdle));
  p.finish();
}

TEST_CASE("bodies: WRITEs of every size and alignment arrive both ways, and nothing beside them",
          "[bodies][random]") {
  Pair p;
  Rng rng(seed(), 77);
  for (int from : {0, 1}) {
    const int to = 1 - from;
    for (std::uint32_t length : {0u, 1u, 3u, 4u, 63u, 64u, 65u, 255u, 256u, 257u, 1000u, 4096u, 9999u}) {
      for (int round = 0; round < 3; ++round) {
        const std::uint64_t src = rng.below(200), dst = 64 + rng.below(200);
        std::vector<std::uint8_t> data(length), before(Pair::kSpan), after;
        rng.fill(data);
        if (length != 0) std::memcpy(p.bytes(from, src), data.data(), length);
        rng.fill(before);
        std::memcpy(p.bytes(to, 0), before.data(), before.size());
        wire::Wqe w = p.write(from, src, dst, length);
        w.signal = true;
        w.sem = 200;
        w.value = 3;
        CAPTURE(from, length, src, dst);
        const wire::Cqe e = p.run(from, {w});
        REQUIRE(e.status == wire::Err::OK);
        // The signal is there with the data: a WAIT on the other side is done at once.
        wire::Wqe wait;
        wait.opcode = wire::WqeOp::WAIT;
        wait.sem = 200;
        wait.value = 3;
        wait.consume = true;
        REQUIRE(p.run(to, {wait}).status == wire::Err::OK);
        if (length != 0) std::memcpy(&before[dst], data.data(), length);
        after.assign(p.bytes(to, 0), p.bytes(to, 0) + Pair::kSpan);
        REQUIRE((after == before));
      }
    }
  }
  p.finish();
}

TEST_CASE("bodies: a wrong key or address fails the WRITE with the same code both ways", "[bodies]") {
  struct Wrong {
    const char* what;
    std::function<void(wire::Wqe&)> make;
    const char* status;
    weft::counters::Port drop;
  };
  const Wrong wrongs[] = {
      {"key", [](wire::Wqe& w) { w.rkey ^= 0x10000; }, "REMOTE_KEY", weft::counters::Port::kDropKey},
      {"bounds", [](wire::Wqe& w) { w.dst += Pair::kSpan; }, "REMOTE_BOUNDS",
       weft::counters::Port::kDropBounds}};
  for (int from : {0, 1}) {
    for (const Wrong& wrong : wrongs) {
      Pair p;
      wire::Wqe bad = p.write(from, 0, 0, 100);
      wrong.make(bad);
      CAPTURE(from, wrong.what);
      const wire::Cqe e = p.run(from, {p.write(from, 0, 0, 64), bad});
      CHECK(std::string(wire::name(e.status)) == wrong.status);
      CHECK(e.entry == 1);
      CHECK(e.conn == 1 - from);
      std::uint64_t drops = 0;
      for (unsigned port = 0; port < 2; ++port)
        drops += p.runner->device(1 - from).counter(weft::counters::index(wrong.drop, port));
      CHECK(drops >= 1);
      p.finish();
    }
  }
}

TEST_CASE("bodies: same seed, same bits, with one thread and with two", "[bodies]") {
  for (tb::Body body : {tb::Body::kRef, tb::Body::kMixed}) {
    std::string first;
    for (std::uint32_t threads : {1u, 2u, 1u}) {
      Trial t;
      t.scenario.body = body;
      t.scenario.threads = threads;
      t.scenario.faults.loss = 0.02;
      t.workload.ranks = 4;
      t.workload.ops = {op(wccl::Kind::kAllReduce, 3000)};
      t.config.inputs = tb::Inputs::kRandom;
      std::string all;
      t.at_end = [&](tb::Cluster& c, tb::Runner&) {
        nlohmann::json s = c.stats();
        s.erase("kernel");  // says how many threads there were
        all = s.dump();
      };
      const Outcome o = t.run();
      CHECK(o.error == "");
      CHECK(!all.empty());
      if (first.empty()) first = all;
      CHECK((all == first));
    }
  }
}

TEST_CASE("bodies: reference nodes outlive a plane that dies", "[bodies]") {
  Trial t;
  t.scenario.body = tb::Body::kRef;
  t.workload.ranks = 4;
  t.workload.ops = {op(wccl::Kind::kAllReduce, 60'000)};
  t.config.transport.mtu = 4096;
  tb::DownFault down;
  down.plane = 1;
  down.from_ps = 60 * tb::kUs;
  t.scenario.faults.down = {down};
  const Outcome o = t.run();
  CHECK(o.error == "");
  CHECK(o.traffic.lost > 0);  // it died under way
}

TEST_CASE("bodies: full frames that fit no queue end a plan by name, and an ABORT of it", "[bodies]") {
  // Probes and acks pass, so that by every sign the peer lives; data never arrives.
  Trial t;
  t.scenario.body = tb::Body::kRef;
  t.workload.ranks = 2;
  t.workload.ops = {op(wccl::Kind::kBroadcast, 8192)};
  t.config.transport.mtu = 4096;
  t.config.transport.rtt_init_us = 3;
  t.scenario.fabric.queue_bytes = 2048;
  const Outcome o = t.run();
  CAPTURE(o.error);
  CHECK(o.error.find("RETRY_LIMIT") != std::string::npos);
  CHECK(o.error.find("to rank 1") != std::string::npos);
  CHECK(o.error.find("gave up after") == std::string::npos);
}
