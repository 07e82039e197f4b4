// SPDX-License-Identifier: Apache-2.0
// The communicator in front of nodes that only say yes: what it refuses, what it tells, what it leaves
// behind.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "fake_node.h"
#include "sw/wccl/communicator.h"
#include "weft_test.h"

using namespace wccl;
using weft::test::FakeNode;

namespace {

struct Rank {
  FakeNode node;
  std::optional<weft::Device> device;
  std::optional<Communicator> comm;
};

// A communicator of `n` ranks, each on a node of its own, connected.
struct Job {
  explicit Job(int n, std::uint64_t seed = 1, std::uint64_t arena_bytes = 256 << 10,
               std::uint64_t opened_at = 0) {
    for (int r = 0; r < n; ++r) {
      ranks.push_back(std::make_unique<Rank>());
      Rank& rank = *ranks.back();
      rank.node.memory.resize(std::max<std::uint64_t>(1 << 20, 8192 + arena_bytes));
      rank.node.regs[weft::regs::kCyclesLo] =
          static_cast<std::uint32_t>(opened_at != 0 ? opened_at : 1'000'000 * seed);
      rank.node.regs[weft::regs::kCyclesHi] = static_cast<std::uint32_t>(opened_at >> 32);
      auto device = weft::Device::open(rank.node);
      REQUIRE(device.ok());
      rank.device.emplace(device.take());
      const std::vector<weft::PortAddress> ports{{0x020000000000u + static_cast<unsigned>(r), 0},
                                                 {0x020001000000u + static_cast<unsigned>(r), 0}};
      for (unsigned p = 0; p < 2; ++p) rank.device->set_port(p, ports[p]);
      REQUIRE(rank.device->set_transport({}).ok());
      CommConfig config;
      config.arena = 4096;
      config.arena_bytes = arena_bytes;
      config.scratch_bytes = 64 << 10;
      config.seed = seed;
      auto comm = Communicator::create(*rank.device, r, n, ports, config);
      REQUIRE(comm.ok());
      rank.comm.emplace(comm.take());
      infos.push_back(rank.comm->info());
    }
    for (auto& rank : ranks) REQUIRE(rank->comm->connect(infos).ok());
  }

  Communicator& comm(int r) { return *ranks[static_cast<std::size_t>(r)]->comm; }
  FakeNode& node(int r) { return ranks[static_cast<std::size_t>(r)]->node; }
  int size() const { return static_cast<int>(ranks.size()); }

  std::vector<RankInfo> infos;  // as connected

  static constexpr Buffer kSend{512 << 10, 64 << 10}, kRecv{768 << 10, 64 << 10};

  // Prepares `op` at every rank; the plan's number at rank 0.
  int prepare(const Op& op, const Buffer& send = kSend, const Buffer& recv = kRecv) {
    std::vector<PlanInfo> all;
    for (int r = 0; r < size(); ++r) all.push_back(comm(r).describe(op, send, recv).take());
    int plan = -1;
    for (int r = size() - 1; r >= 0; --r) {
      auto p = comm(r).prepare(op, all);
      INFO(p.error());
      REQUIRE(p.ok());
      plan = p.value();
      comm(r).progress();
    }
    return plan;
  }
  // Doorbells of an operation that rank r's node has got for plans, not for notices.
  std::vector<weft::wire::Doorbell> rung(int r, weft::wire::DbOp op) {
    std::vector<weft::wire::Doorbell> out;
    for (const auto& d : node(r).doorbells)
      if (d.op == op && d.subgraph < 64 - size()) out.push_back(d);
    return out;
  }

  // Rank r calls ops[r]; answers what prepare() says to each.
  std::vector<std::string> call(const std::vector<Op>& ops) {
    std::vector<PlanInfo> infos;
    for (int r = 0; r < size(); ++r) {
      auto info = comm(r).describe(ops[static_cast<std::size_t>(r)], kSend, kRecv);
      if (!info.ok()) return {info.error()};
      infos.push_back(info.take());
    }
    std::vector<std::string> said;
    for (int r = 0; r < size(); ++r) {
      auto plan = comm(r).prepare(ops[static_cast<std::size_t>(r)], infos);
      said.push_back(plan.ok() ? "" : plan.error());
      if (plan.ok()) {
        comm(r).progress();
        CHECK(comm(r).state(plan.value()) == State::kReady);
        comm(r).release(plan.value());
        comm(r).progress();
      }
    }
    return said;
  }

  std::vector<std::unique_ptr<Rank>> ranks;
};

Op make(Kind kind, std::uint64_t count, Type type = Type::kInt32) {
  Op op;
  op.kind = kind;
  op.count = count;
  op.type = type;
  return op;
}

}  // namespace

TEST_CASE("case software 1: another count at one rank is told to every rank with both counts", "[wccl]") {
  for (Kind kind : {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kAllToAll}) {
    Job job(4);
    std::vector<Op> ops(4, make(kind, 100));
    ops[2].count = 101;
    const auto said = job.call(ops);
    const std::string verb = name(kind);
    CHECK(said[0] == "mismatch: rank 0 calls " + verb + " with count 100, rank 2 with 101");
    CHECK(said[1] == "mismatch: rank 1 calls " + verb + " with count 100, rank 2 with 101");
    CHECK(said[2] == "mismatch: rank 2 calls " + verb + " with count 101, rank 0 with 100");
    CHECK(said[3] == "mismatch: rank 3 calls " + verb + " with count 100, rank 2 with 101");
    for (int r = 0; r < 4; ++r) CHECK(job.node(r).doorbells.empty());
  }
}

TEST_CASE("case software 2: another operation, type, redop, root or algorithm is told to every rank",
          "[wccl]") {
  const auto one_differs = [](const Op& usual, const Op& other, const std::string& at_0,
                              const std::string& at_1) {
    Job job(3);
    const auto said = job.call({usual, other, usual});
    CHECK(said == std::vector<std::string>{"mismatch: rank 0 calls " + at_0, "mismatch: rank 1 calls " + at_1,
                                           "mismatch: rank 2 calls " + at_0});
    for (int r = 0; r < 3; ++r) CHECK(job.node(r).doorbells.empty());
  };
  const Op usual = make(Kind::kAllReduce, 64);
  Op other = make(Kind::kAllGather, 64);
  one_differs(usual, other, "all_reduce, rank 1 calls all_gather", "all_gather, rank 0 calls all_reduce");
  other = make(Kind::kAllReduce, 64, Type::kFloat32);
  one_differs(usual, other, "all_reduce with type int32, rank 1 with float32",
              "all_reduce with type float32, rank 0 with int32");
  other = usual;
  other.redop = RedOp::kMax;
  one_differs(usual, other, "all_reduce with redop sum, rank 1 with max",
              "all_reduce with redop max, rank 0 with sum");
  other = usual;
  other.algo = Algo::kRing;
  one_differs(usual, other, "all_reduce with algo auto, rank 1 with ring",
              "all_reduce with algo ring, rank 0 with auto");
  Op root_0 = make(Kind::kBroadcast, 64), root_2 = root_0;
  root_2.root = 2;
  one_differs(root_0, root_2, "broadcast with root 0, rank 1 with 2", "broadcast with root 2, rank 0 with 0");
  Op v = make(Kind::kAllToAllV, 0), w = v;
  v.send_counts = w.send_counts = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  w.send_counts[0][2] = 4;
  Job job(3);
  for (const std::string& text : job.call({v, w, v}))
    CHECK(text.find("give different send_counts") != std::string::npos);
}

TEST_CASE("wccl: a refused operation leaves no region behind", "[wccl]") {
  Job job(2);
  const unsigned before = job.node(0).valid_regions();
  for (int i = 0; i < 100; ++i) {  // more than the node has regions
    CAPTURE(i);
    CHECK(job.call({make(Kind::kAllReduce, 64), make(Kind::kAllReduce, 65)})[0] != "");
    CHECK(job.node(0).valid_regions() == before);
    CHECK(job.comm(0).describe(make(Kind::kAllGather, 64), Job::kSend, Job::kRecv).ok());  // and never used
    REQUIRE(job.call({make(Kind::kAllReduce, 64), make(Kind::kAllReduce, 64)})[0] == "");
    CHECK(job.node(0).valid_regions() == before);
  }
}

TEST_CASE("case software 6: null buffers will do for a count of 0", "[wccl]") {
  for (Kind kind : {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kAllToAll,
                    Kind::kAllToAllV, Kind::kBroadcast, Kind::kBarrier}) {
    CAPTURE(name(kind));
    Job job(3);
    Op op = make(kind, 0, Type::kFloat32);
    if (kind == Kind::kAllToAllV) op.send_counts.assign(3, std::vector<std::uint64_t>(3, 0));
    const unsigned before = job.node(1).valid_regions();
    std::vector<PlanInfo> infos;
    for (int r = 0; r < 3; ++r) {
      auto info = job.comm(r).describe(op, {}, {});
      REQUIRE(info.ok());
      infos.push_back(info.take());
    }
    CHECK(job.node(1).valid_regions() == before);
    for (int r = 0; r < 3; ++r) CHECK(job.comm(r).prepare(op, infos).ok());
  }
}

TEST_CASE("case software 15: buffers that overlap otherwise than in place are refused", "[wccl]") {
  Job job(2);
  const auto said = [&](const Op& op, const Buffer& send, const Buffer& recv) {
    auto info = job.comm(1).describe(op, send, recv);
    return info.ok() ? std::string() : info.error();
  };
  const Op reduce = make(Kind::kAllReduce, 100);
  const std::uint64_t at = 512 << 10;
  for (const std::int64_t apart : {-396, -4, 0, 4, 396})
    CHECK(said(reduce, {at, 400}, {at + static_cast<std::uint64_t>(apart), 400}) ==
          "send and recv overlap, but in_place is false");
  for (const std::int64_t apart : {-400, 400})
    CHECK(said(reduce, {at, 400}, {at + static_cast<std::uint64_t>(apart), 400}) == "");
  // What counts is what is used of a buffer, not how large it is.
  CHECK(said(reduce, {at, 4000}, {at + 400, 400}) == "");
  // The receive buffer of all_gather holds all ranks' parts.
  const Op gather = make(Kind::kAllGather, 100);
  CHECK(said(gather, {at + 796, 400}, {at, 800}) == "send and recv overlap, but in_place is false");
  CHECK(said(gather, {at + 800, 400}, {at, 800}) == "");
}

TEST_CASE("case software 24: wrong arguments are named before anything is posted", "[wccl]") {
  Job job(4);
  const auto said = [&](const Op& op, const Buffer& send, const Buffer& recv) {
    auto info = job.comm(1).describe(op, send, recv);
    CHECK(job.node(1).doorbells.empty());
    return info.ok() ? std::string() : info.error();
  };
  const Buffer in = Job::kSend, out = Job::kRecv;
  const Op reduce = make(Kind::kAllReduce, 100);
  CHECK(said(reduce, {}, out) == "send: 0 bytes, all_reduce needs 400");
  CHECK(said(reduce, in, {}) == "recv: 0 bytes, all_reduce needs 400");
  CHECK(said(make(Kind::kReduceScatter, 100), {in.addr, 1599}, out) ==
        "send: 1599 bytes, reduce_scatter needs 1600");
  CHECK(said(reduce, {in.addr + 2, 400}, out) ==
        "send or recv: address 0x80002 or 0xc0000 is no multiple of the element size 4");
  Op either = make(Kind::kAllReduce, 64, Type::kFloat64);
  either.redop = RedOp::kXor;
  CHECK(said(either, in, out) == "type: float64 has no xor, expected an integer type for xor");
  for (int root : {-1, 4}) {
    Op cast = make(Kind::kBroadcast, 1);
    cast.root = root;
    CHECK(said(cast, in, out) == "root: " + std::to_string(root) + ", expected 0 to 3");
  }
  Op op = reduce;
  auto good = job.comm(1).describe(op, in, out);
  REQUIRE(good.ok());
  CHECK(job.comm(1).prepare(op, std::vector<PlanInfo>(3, good.value())).error() ==
        "rank 1: 3 ranks answered, expected 4");

  FakeNode node;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  CommConfig config;
  config.arena_bytes = 256 << 10;
  const auto created = [&](int rank, int ranks) {
    return Communicator::create(device.value(), rank, ranks, std::vector<weft::PortAddress>(2), config)
        .error();
  };
  CHECK(created(4, 4) == "rank: 4, expected 0 to 3");
  CHECK(created(-1, 4) == "rank: -1, expected 0 to 3");
  CHECK(created(0, 0) == "ranks: 0, expected 1 to 16");
  FakeNode small;
  small.regs[weft::regs::kCaps1] = weft::regs::kCaps1NumRegions.put(64) | weft::regs::kCaps1NumSems.put(63);
  auto lacking = weft::Device::open(small);
  REQUIRE(lacking.ok());
  CHECK(Communicator::create(lacking.value(), 0, 4, std::vector<weft::PortAddress>(2), config).error() ==
        "the node has 63 semaphores, but a communicator needs 80");
}

TEST_CASE("wccl: a device serves one communicator, the second is refused and harms nothing", "[wccl]") {
  FakeNode node;
  auto device = weft::Device::open(node);
  REQUIRE(device.ok());
  CommConfig config;
  config.arena = 4096;
  const auto created = [&] {
    return Communicator::create(device.value(), 0, 2, std::vector<weft::PortAddress>(2), config).error();
  };
  // One that failed has taken nothing.
  config.arena_bytes = 100;
  CHECK(created().find("arena: 16384 bytes for the completion ring do not fit") != std::string::npos);
  config.arena_bytes = 16384 + 2 * 256;
  CHECK(created().find("arena: 64 bytes for scratch do not fit") != std::string::npos);
  CHECK(node.configs.empty());
  config.arena_bytes = 256 << 10;
  CHECK(created() == "");
  const std::size_t before = node.configs.size();
  CHECK(created().find("the device has a communicator already") == 0);
  CHECK(node.configs.size() == before);
  auto anew = weft::Device::open(node);
  REQUIRE(anew.ok());
  CHECK(Communicator::create(anew.value(), 0, 2, std::vector<weft::PortAddress>(2), config).error() == "");
}

TEST_CASE("wccl: numbers that are no plan's are told, not followed", "[wccl]") {
  Job job(2);
  Communicator& comm = job.comm(0);
  const auto is_gone = [&](int plan) {
    CAPTURE(plan);
    CHECK(comm.state(plan) == State::kGone);
    CHECK(comm.failure(plan) == "");
    CHECK(comm.completed_cycles(plan) == 0);
    CHECK(comm.entries(plan) == 0);
    const std::string number = std::to_string(plan);
    CHECK(comm.start(plan).text() == "rank 0: plan " + number + " is not ready");
    CHECK(comm.abort(plan).text() == "rank 0: there is no plan " + number);
    const std::size_t before = job.node(0).doorbells.size();
    comm.release(plan);
    CHECK(job.node(0).doorbells.size() == before);
  };
  for (int plan : {-1, 0, 1, 1 << 30}) is_gone(plan);
  const Op op = make(Kind::kAllReduce, 10);
  auto info = comm.describe(op, Job::kSend, Job::kRecv);
  REQUIRE(info.ok());
  std::vector<PlanInfo> infos(2, info.value());
  infos[1].rank = 1;
  auto plan = comm.prepare(op, infos);
  REQUIRE(plan.ok());
  CHECK(plan.value() == 0);
  comm.progress();
  CHECK(comm.state(0) == State::kReady);
  CHECK(comm.entries(0) > 0);
  comm.release(0);
  for (int gone : {0, 1}) is_gone(gone);  // no second UNREGISTER either
}

TEST_CASE("case rtl 23: an operation larger than buffers or scratch is refused before it starts", "[wccl]") {
  Job job(4);
  const auto said = [&](const Op& op, const Buffer& recv) {
    return job.comm(0).describe(op, {512 << 10, 256 << 10}, recv).error();
  };
  CHECK(said(make(Kind::kAllGather, 1000), {768 << 10, 15'999}) ==
        "recv: 15999 bytes, all_gather needs 16000");
  CHECK(said(make(Kind::kAllReduce, 20'000), {768 << 10, 80'000}) ==
        "scratch_bytes: 65536, but all_reduce of 20000 elements needs 80128");
  CHECK(job.node(0).doorbells.empty());
}

TEST_CASE("case software 23: a peer with fewer ports or paths is told at the connection", "[wccl]") {
  FakeNode node;
  CommConfig config;
  config.arena_bytes = 256 << 10;
  const auto connect = [&](std::size_t ports_of_peer, unsigned paths) {
    auto device = weft::Device::open(node);
    REQUIRE(device.ok());
    REQUIRE(device.value().set_transport({}).ok());
    config.connection.paths_per_port = paths;
    auto comm = Communicator::create(device.value(), 0, 2, std::vector<weft::PortAddress>(2), config);
    REQUIRE(comm.ok());
    RankInfo peer = comm.value().info();
    peer.rank = 1;
    peer.ports.resize(ports_of_peer);
    for (auto& psn : peer.psn) psn.resize(ports_of_peer);
    const std::vector<RankInfo> all{comm.value().info(), peer};
    return comm.value().connect(all).text();
  };
  CHECK(connect(1, 0) == "rank 0: rank 1 has 1 ports, this node 2: they must be as many");
  CHECK(connect(2, 9) == "rank 0, peer 1: connection 1: 9 paths a port, the node has 8");
  CHECK(connect(2, 8) == "");
}

TEST_CASE("a rank gives each peer the fewer paths the more peers it has", "[wccl]") {
  CHECK(paths_for(1, 8) == 8);
  CHECK(paths_for(2, 8) == 8);
  CHECK(paths_for(3, 8) == 8);
  CHECK(paths_for(4, 8) == 6);
  CHECK(paths_for(8, 8) == 3);
  CHECK(paths_for(9, 8) == 2);
  CHECK(paths_for(64, 8) == 2);
  CHECK(paths_for(64, 1) == 1);
}

TEST_CASE("case software 25: a peer that vanished is named with operation, rank and retries", "[wccl]") {
  Job job(3);
  const Op op = make(Kind::kAllReduce, 300);
  std::vector<PlanInfo> infos;
  for (int r = 0; r < 3; ++r) infos.push_back(job.comm(r).describe(op, Job::kSend, Job::kRecv).take());
  auto plan = job.comm(0).prepare(op, infos);
  REQUIRE(plan.ok());
  job.comm(0).progress();
  job.node(0).answer = [&](const weft::wire::Doorbell& d, weft::wire::Cqe& e) {
    if (d.op != weft::wire::DbOp::LAUNCH) return;
    e.status = weft::wire::Err::RETRY_LIMIT;
    e.entry = 1;
  };
  REQUIRE(job.comm(0).start(plan.value()).ok());
  job.comm(0).progress();
  CHECK(job.comm(0).state(plan.value()) == State::kFailed);
  CHECK(job.comm(0).failure(plan.value()) ==
        "rank 0: all_reduce: entry 1 (WRITE of 400 bytes to rank 1): RETRY_LIMIT (24 probes unanswered)");
}

TEST_CASE("case rtl 33: start PSNs, keys, incarnation and ports differ between connections and seeds",
          "[wccl]") {
  using weft::cfg::Conn, weft::cfg::Table;
  std::set<std::uint64_t> psns, keys, incarnations;
  for (std::uint64_t seed : {1, 2, 3}) {
    Job job(8, seed);
    for (int r = 0; r < 8; ++r)
      for (unsigned p = 0; p < 8; ++p) {
        if (static_cast<int>(p) == r) continue;
        for (unsigned port = 0; port < 2; ++port) {
          const auto here = job.node(r).last(Table::kConn, 2 * p + port);
          const auto there =
              job.node(static_cast<int>(p)).last(Table::kConn, 2 * static_cast<unsigned>(r) + port);
          psns.insert(FakeNode::field(here, Conn{.tx_psn = 0xffffff}));
          CHECK(FakeNode::field(here, Conn{.tx_psn = 0xffffff}) ==
                FakeNode::field(there, Conn{.rx_psn = 0xffffff}));
          CHECK(FakeNode::field(here, Conn{.rconn = 0xffffff}) == static_cast<unsigned>(r));
          if (r == 0 && p == 1) incarnations.insert(FakeNode::field(here, Conn{.incarnation = 0xffff}));
        }
      }
    for (int r = 0; r < 8; ++r) keys.insert(job.comm(r).info().scratch_key);
  }
  CHECK(psns.size() > 3 * 8 * 7 * 2 - 4);  // by chance two may be alike
  CHECK(incarnations.size() == 3);
  CHECK(keys.size() == 3 * 8);  // a write with another rank's key, or with one of before, does not fit
}

TEST_CASE("wccl: prepare takes the infos of all ranks by rank, its own as it was told", "[wccl]") {
  Job job(3);
  const Op op = make(Kind::kAllGather, 100);
  std::vector<PlanInfo> infos;
  const auto said = [&](int r, const std::function<void(std::vector<PlanInfo>&)>& change) {
    infos.clear();
    for (int k = 0; k < 3; ++k) infos.push_back(job.comm(k).describe(op, Job::kSend, Job::kRecv).take());
    change(infos);
    auto plan = job.comm(r).prepare(op, infos);
    return plan.ok() ? std::string() : plan.error();
  };
  CHECK(said(0, [](auto& all) { std::swap(all[1], all[2]); }) == "rank 0: entry 1 is of rank 2");
  CHECK(said(1, [](auto& all) { std::swap(all[1], all[2]); }) == "rank 1: entry 1 is of rank 2");
  CHECK(said(2, [](auto& all) { all[0] = all[2]; }) == "rank 2: entry 0 is of rank 2");
  CHECK(said(2, [](auto& all) { all[2].memory.recv += 64; }) ==
        "rank 2: entry 2 is not what this rank described last");
  CHECK(job.comm(2).prepare(op, infos).error() == "rank 2: entry 2 is not what this rank described last");
  for (int r = 0; r < 3; ++r) CHECK(job.node(r).doorbells.empty());
  CHECK(said(2, [](auto&) {}) == "");
}

TEST_CASE("wccl: connect refuses infos that do not fit, by name", "[wccl]") {
  const auto said = [](const std::function<void(std::vector<RankInfo>&)>& change) {
    Job job(3);
    auto next = job.comm(1).repair();
    REQUIRE(next.ok());
    std::vector<RankInfo> all = job.infos;
    all[1] = next.take();
    change(all);
    const std::size_t before = job.node(1).configs.size();
    const std::string text = job.comm(1).connect(all).text();
    if (!text.empty()) CHECK(job.node(1).configs.size() == before);
    return text;
  };
  CHECK(said([](auto&) {}) == "");
  CHECK(said([](auto& a) { a.pop_back(); }) == "rank 1: 2 ranks answered, expected 3");
  CHECK(said([](auto& a) { std::swap(a[0], a[2]); }) == "rank 1: entry 0 is of rank 2");
  CHECK(said([](auto& a) { a[2].ranks = 4; }) == "rank 1: rank 2 is one of 4 ranks, expected 3");
  CHECK(said([](auto& a) { a[0].psn.resize(1); }) == "rank 1: rank 0 tells PSNs for 1 ranks, expected 3");
  CHECK(said([](auto& a) { a[0].psn.clear(); }) == "rank 1: rank 0 tells PSNs for 0 ranks, expected 3");
  CHECK(said([](auto& a) { a[0].psn[1].resize(1); }) == "rank 1: rank 0 tells PSNs of 1 ports, expected 2");
  CHECK(said([](auto& a) { a[2].ports.resize(3); }) ==
        "rank 1: rank 2 has 3 ports, this node 2: they must be as many");
  CHECK(said([](auto& a) { ++a[1].life; }) == "rank 1: entry 1 is not what this rank told last");
  Job job(2);
  CHECK(job.comm(0).connect(job.infos).text() ==
        "rank 0: the communicator is connected; repair() begins a new life");
}

TEST_CASE("wccl: no incarnation and no start PSN is that of the life before, with the same seed", "[wccl]") {
  using weft::cfg::Conn, weft::cfg::Table;
  struct Life {
    std::vector<std::uint64_t> incarnations, psns;
  };
  // What rank r's node was told of its connections; both ends must have been told alike.
  const auto life = [](Job& job) {
    Life l;
    for (unsigned r = 0; r < 3; ++r)
      for (unsigned p = 0; p < 3; ++p) {
        if (p == r) continue;
        for (unsigned port = 0; port < 2; ++port) {
          const auto here = job.node(static_cast<int>(r)).last(Table::kConn, 2 * p + port);
          const auto there = job.node(static_cast<int>(p)).last(Table::kConn, 2 * r + port);
          l.incarnations.push_back(FakeNode::field(here, Conn{.incarnation = 0xffff}));
          l.psns.push_back(FakeNode::field(here, Conn{.tx_psn = 0xffffff}));
          CHECK(l.incarnations.back() != 0);
          CHECK(l.incarnations.back() == FakeNode::field(there, Conn{.incarnation = 0xffff}));
          CHECK(l.psns.back() == FakeNode::field(there, Conn{.rx_psn = 0xffffff}));
        }
      }
    return l;
  };
  const auto differ = [](const Life& a, const Life& b) {
    for (std::size_t i = 0; i < a.psns.size(); ++i) {
      CHECK(a.incarnations[i] != b.incarnations[i]);
      CHECK(a.psns[i] != b.psns[i]);
    }
  };
  // Opened anew 4096 cycles later, what the walk of a reset takes; and around where the bits of the clock
  // that count come again.
  for (std::uint64_t at : {1000ULL, 65535ULL * 1024 - 8000, (1ULL << 32) - 8000}) {
    std::vector<Life> lives;
    for (std::uint64_t k = 0; k < 4; ++k) {
      Job job(3, 1, 256 << 10, at + 4096 * k);
      lives.push_back(life(job));
      for (int repair = 0; repair < 2; ++repair) {
        std::vector<RankInfo> all;
        for (int r = 0; r < 3; ++r) all.push_back(job.comm(r).repair().take());
        for (int r = 0; r < 3; ++r) REQUIRE(job.comm(r).connect(all).ok());
        lives.push_back(life(job));
      }
    }
    for (std::size_t a = 0; a < lives.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (a % 3 == 0 || a - b < 3) differ(lives[a], lives[b]);
  }
}

TEST_CASE("wccl: a plan may be released while the node validates it, or runs it", "[wccl]") {
  Job job(2);
  FakeNode& node = job.node(0);
  Communicator& comm = job.comm(0);
  const unsigned before = node.valid_regions();
  const auto for_plans = [](const weft::wire::Doorbell& d) {
    return d.subgraph < 62 && (d.op == weft::wire::DbOp::REGISTER || d.op == weft::wire::DbOp::LAUNCH);
  };
  node.hold = for_plans;
  const int first = job.prepare(make(Kind::kAllReduce, 64));
  comm.release(first);
  CHECK(comm.state(first) == State::kGone);
  CHECK(node.valid_regions() == before + 2);  // the node may still look at them
  const int second = job.prepare(make(Kind::kAllReduce, 65));
  CHECK(second != first);
  CHECK(comm.state(second) == State::kPreparing);
  // The answer to the one that is gone is not taken for one to its successor.
  std::vector<weft::wire::Doorbell> later(node.held.begin() + 1, node.held.end());
  node.held.resize(1);
  node.let_go(weft::wire::DbOp::REGISTER);
  comm.progress();
  CHECK(comm.state(second) == State::kPreparing);
  CHECK(node.valid_regions() == before + 2);
  const int third = job.prepare(make(Kind::kAllReduce, 66));
  CHECK(third == first);  // its place is used again
  node.held = later;
  node.let_go(weft::wire::DbOp::REGISTER);
  comm.progress();
  CHECK(comm.state(second) == State::kReady);
  CHECK(comm.state(third) == State::kPreparing);

  REQUIRE(comm.start(second).ok());
  comm.release(second);
  CHECK(comm.state(second) == State::kGone);
  REQUIRE(job.rung(0, weft::wire::DbOp::ABORT).size() == 1);
  CHECK(node.valid_regions() == before + 4);  // it still runs
  node.let_go(weft::wire::DbOp::LAUNCH, weft::wire::Err::FLUSHED);
  comm.progress();
  CHECK(node.valid_regions() == before + 2);
  CHECK(comm.failed().find("aborted by the host") != std::string::npos);
}

TEST_CASE("wccl: an abort of what does not run is an error", "[wccl]") {
  Job job(2);
  job.node(0).hold = [](const weft::wire::Doorbell& d) { return d.op == weft::wire::DbOp::LAUNCH; };
  const int plan = job.prepare(make(Kind::kAllReduce, 64));
  CHECK(job.comm(0).abort(plan).text() == "rank 0: plan 0 does not run");
  CHECK(job.rung(0, weft::wire::DbOp::ABORT).empty());
  REQUIRE(job.comm(0).start(plan).ok());
  CHECK(job.comm(0).abort(plan).ok());
  CHECK(job.rung(0, weft::wire::DbOp::ABORT).size() == 1);
  // Had it ended just then, nothing would be lost.
  job.node(0).let_go(weft::wire::DbOp::LAUNCH);
  job.comm(0).progress();
  CHECK(job.comm(0).state(plan) == State::kReady);
  CHECK(job.comm(0).failed() == "");
  CHECK(job.comm(0).abort(plan).text() == "rank 0: plan 0 does not run");
}

TEST_CASE("wccl: a doorbell that is refused is told as that", "[wccl]") {
  for (auto op : {weft::wire::DbOp::REGISTER, weft::wire::DbOp::LAUNCH}) {
    Job job(2);
    job.node(0).answer = [op](const weft::wire::Doorbell& d, weft::wire::Cqe& e) {
      if (d.op == op && d.subgraph < 62) e.status = weft::wire::Err::BAD_SUBGRAPH;
    };
    const int plan = job.prepare(make(Kind::kAllReduce, 64));
    const bool launch = op == weft::wire::DbOp::LAUNCH;
    if (launch) REQUIRE(job.comm(0).start(plan).ok());
    job.comm(0).progress();
    CHECK(job.comm(0).state(plan) == State::kFailed);
    CHECK(job.comm(0).failure(plan) == "rank 0: all_reduce: the node refuses to " +
                                           std::string(launch ? "launch" : "register") +
                                           " subgraph 0: BAD_SUBGRAPH");
  }
}

TEST_CASE("wccl: a thousand plans live on a node of 64 subgraphs and 64 regions, and run in order",
          "[wccl]") {
  Job job(2, 1, 4 << 20);
  for (int r = 0; r < 2; ++r) REQUIRE(job.comm(r).add_memory({512 << 10, 512 << 10}).ok());
  FakeNode& node = job.node(0);
  const unsigned before = node.valid_regions();
  std::vector<int> plans;
  for (unsigned k = 0; k < 1000; ++k) {
    const std::uint64_t at = 256 * k;
    plans.push_back(job.prepare(make(Kind::kAllReduce, 8 + k % 7), {Job::kSend.addr + at, 64},
                                {Job::kSend.addr + at + 128, 64}));
    CHECK(job.comm(0).state(plans.back()) == State::kReady);
  }
  CHECK(std::set<int>(plans.begin(), plans.end()).size() == 1000);
  CHECK(node.valid_regions() == before);
  // Each node validates its plan when it is wanted, before it is launched, and starts keep their order.
  using weft::wire::DbOp;
  std::vector<std::uint64_t> has(64, 0);
  std::vector<std::uint64_t> launched;
  const std::size_t prepared = node.doorbells.size();
  weft::test::Rng rng;
  std::vector<std::uint64_t> wanted;
  for (unsigned k = 0; k < 3000; ++k) {
    const int plan = plans[k < 1000 ? k : rng.below(rng.chance(0.5) ? 20 : 1000)];
    while (job.comm(0).state(plan) == State::kRunning) job.comm(0).progress();
    REQUIRE(job.comm(0).start(plan).ok());
    wanted.push_back(static_cast<std::uint64_t>(plan));
    if (rng.chance(0.1)) job.comm(0).progress();
  }
  for (int k = 0; k < 10'000 && job.comm(0).state(static_cast<int>(wanted.back())) == State::kRunning; ++k)
    job.comm(0).progress();
  std::size_t validations = 0;
  for (const auto& d : node.doorbells) {
    if (d.subgraph >= 62) continue;  // for notices
    const std::uint64_t plan = d.cookie & 0xffffffff;
    if (d.op == DbOp::REGISTER) has[d.subgraph] = plan, ++validations;
    if (d.op != DbOp::LAUNCH) continue;
    REQUIRE(has[d.subgraph] == plan);
    CHECK(d.group == 1);
    launched.push_back(plan);
  }
  CHECK(launched == wanted);
  CHECK(validations > 2000);
  CHECK(validations < node.doorbells.size() - prepared);  // one that is still there is not validated again
  for (int plan : plans) CHECK(job.comm(0).state(plan) == State::kReady);

  // More started at once than there are subgraphs: none that has a launch outstanding is taken from its plan.
  node.hold = [&](const weft::wire::Doorbell& d) {
    if (d.op == DbOp::REGISTER)
      for (const auto& h : node.held) CHECK(h.subgraph != d.subgraph);
    return d.op == DbOp::LAUNCH;
  };
  for (unsigned k = 0; k < 200; ++k) REQUIRE(job.comm(0).start(plans[k]).ok());
  unsigned rounds = 0;
  while (job.comm(0).state(plans[199]) == State::kRunning && rounds < 1000) {
    for (int k = 0; k < 200; ++k) job.comm(0).progress();
    CHECK(node.held.size() <= 62);
    ++rounds;
    node.let_go(DbOp::LAUNCH);
    job.comm(0).progress();
  }
  CHECK(rounds >= 3);  // 62 at a time
  CHECK(rounds < 200);
  for (unsigned k = 0; k < 200; ++k) CHECK(job.comm(0).state(plans[k]) == State::kReady);
  for (int plan : plans) job.comm(0).release(plan);
  CHECK(node.valid_regions() == before);
}

TEST_CASE("wccl: plans of the same buffers share their regions", "[wccl]") {
  Job job(2);
  const unsigned before = job.node(0).valid_regions();
  std::vector<int> plans;
  for (int k = 0; k < 50; ++k) plans.push_back(job.prepare(make(Kind::kAllReduce, 64)));
  CHECK(job.node(0).valid_regions() == before + 2);
  for (int k = 1; k < 50; ++k) job.comm(0).release(plans[static_cast<std::size_t>(k)]);
  CHECK(job.node(0).valid_regions() == before + 2);
  job.comm(0).release(plans[0]);
  CHECK(job.node(0).valid_regions() == before);
}

TEST_CASE("wccl: a start takes its turn when the ring has no room for its completion", "[wccl]") {
  Job job(2);
  FakeNode& node = job.node(0);
  std::vector<int> plans;
  for (int k = 0; k < 60; ++k) plans.push_back(job.prepare(make(Kind::kAllReduce, 64)));
  node.hold = [](const weft::wire::Doorbell& d) { return d.op == weft::wire::DbOp::LAUNCH; };
  weft::Device& device = *job.ranks[0]->device;
  while (device.post_unregister(63, ~std::uint64_t{0}).ok()) {
  }  // refused or not: completions that nobody has read
  for (int plan : plans) REQUIRE(job.comm(0).start(plan).ok());
  CHECK(job.rung(0, weft::wire::DbOp::LAUNCH).empty());
  job.comm(0).progress();
  CHECK(job.rung(0, weft::wire::DbOp::LAUNCH).size() == 60);
  node.let_go(weft::wire::DbOp::LAUNCH);
  job.comm(0).progress();
  for (int plan : plans) CHECK(job.comm(0).state(plan) == State::kReady);
}

TEST_CASE("wccl: an operation that does not end is given up, named, and the communicator repaired",
          "[wccl]") {
  Job job(2);
  FakeNode& node = job.node(0);
  Communicator& comm = job.comm(0);
  const int plan = job.prepare(make(Kind::kAllReduce, 64)), other = job.prepare(make(Kind::kBarrier, 0));
  node.hold = [](const weft::wire::Doorbell& d) {
    return d.op == weft::wire::DbOp::LAUNCH && d.subgraph < 62;
  };
  REQUIRE(comm.start(plan).ok());
  REQUIRE(comm.start(other).ok());
  node.now += 9'999'999'000;  // 10 s is the default
  comm.progress();
  CHECK(job.rung(0, weft::wire::DbOp::ABORT).empty());
  node.now += 1000;
  comm.progress();
  REQUIRE(job.rung(0, weft::wire::DbOp::ABORT).size() == 1);
  // The engine names the oldest entry that is not done: the first WAIT for what rank 1 sends.
  std::uint32_t entry = 0;
  weft::wire::Wqe w;
  const std::uint64_t at = job.rung(0, weft::wire::DbOp::REGISTER)[0].addr;
  do {
    w = weft::wire::Wqe::unpack(&node.memory[at + 64 * ++entry]);
  } while (w.opcode != weft::wire::WqeOp::WAIT || w.sem / kMaxRanks != static_cast<int>(Sem::kReduce));
  const auto two = node.held;
  node.held.resize(1);
  node.let_go(weft::wire::DbOp::LAUNCH, weft::wire::Err::FLUSHED, entry);
  comm.progress();
  const std::string why = "rank 0: all_reduce: entry " + std::to_string(entry) +
                          " (WAIT for reduce of rank 1): FLUSHED, not done after 10000000 us";
  CHECK(comm.failure(plan) == why);
  CHECK(comm.failed() == why);
  // What was queued behind it is taken back as well.
  CHECK(job.rung(0, weft::wire::DbOp::ABORT).size() == 2);
  CHECK(comm.state(other) == State::kRunning);
  CHECK(comm.repair().error() == "rank 0: barrier (plan 2) still ends; repair it then");
  node.held = {two[1]};
  node.let_go(weft::wire::DbOp::LAUNCH, weft::wire::Err::FLUSHED);
  comm.progress();
  CHECK(comm.failure(other).find("FLUSHED, given up: " + why) != std::string::npos);
  CHECK(comm.start(other).text() == "rank 0: the communicator has failed, repair it: " + why);
  std::vector<RankInfo> all;
  for (int r = 0; r < 2; ++r) all.push_back(job.comm(r).repair().take());
  for (int r = 0; r < 2; ++r) REQUIRE(job.comm(r).connect(all).ok());
  CHECK(comm.failed() == "");
  CHECK(comm.state(plan) == State::kReady);
  REQUIRE(comm.start(other).ok());
  node.let_go(weft::wire::DbOp::LAUNCH);
  comm.progress();
  CHECK(comm.state(other) == State::kReady);

  // A node that does not answer the ABORT either.
  REQUIRE(comm.start(plan).ok());
  node.now += 10'000'000'000;
  comm.progress();
  node.now += 10'000'000'000;
  comm.progress();
  CHECK(comm.state(plan) == State::kFailed);
  CHECK(comm.failed() == "rank 0: all_reduce: the node does not answer an ABORT");
  CHECK(comm.repair().error() == "rank 0: the node does not answer: open it anew");
}

TEST_CASE("wccl: peers may write where they deliver, and no result that the node makes itself", "[wccl]") {
  for (const Kind kind :
       {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kAllToAll, Kind::kBroadcast})
    for (const bool in_place : {false, true}) {
      if (in_place && kind == Kind::kAllToAll) continue;
      CAPTURE(name(kind), in_place);
      Job job(3);
      Op op = make(kind, 64, Type::kFloat32);
      op.in_place = in_place;
      const auto info = job.comm(1).describe(op, Job::kSend, in_place ? Job::kSend : Job::kRecv);
      INFO(info.error());
      REQUIRE(info.ok());
      std::optional<bool> writable;
      for (const auto& c : job.node(1).configs)
        if (c.table == weft::cfg::Table::kRegion &&
            job.node(1).field(c, weft::cfg::Region{.key = ~0u}) == info.value().memory.recv_key)
          writable = job.node(1).field(c, weft::cfg::Region{.remote_write = true}) != 0;
      REQUIRE(writable.has_value());
      CHECK(*writable == (kind != Kind::kReduceScatter));
    }
}
