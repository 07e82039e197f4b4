// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <span>

#include "engine_model.h"
#include "sw/ref/numerics.h"

using namespace wccl;
using weft::test::Rng;

namespace {

constexpr std::uint8_t kGuard = 0xa5;
constexpr std::uint64_t kScratchAt = 64;

// Runs `op` on a model cluster `times` over and compares every byte of every rank's memory. Answers what is
// wrong.
struct Harness {
  int n;
  std::uint64_t seed = weft::test::seed();
  int times = 2;
  bool late = true;
  int break_entry = -1;  // entry of rank 0 that loses its dependencies: the check must see it

  std::string run(const Op& op) const {
    if (std::string why = check(op, n); !why.empty()) return why;
    Rng rng(seed, 5);
    std::uint64_t scratch = 0, largest = 0;
    for (int r = 0; r < n; ++r) {
      const Sizes s = sizes(op, r, n);
      scratch = std::max(scratch, s.scratch);
      largest = std::max({largest, s.send, s.recv});
    }
    const std::uint64_t span = (largest + 191) / 64 * 64;  // with guard zones
    model::Cluster cluster(n, model::Bytes(kScratchAt + scratch + 64 + 2 * span + 128), seed);
    cluster.start_late = late;
    Target base;
    base.conn.resize(static_cast<std::size_t>(n));
    std::iota(base.conn.begin(), base.conn.end(), std::uint16_t{0});
    for (int r = 0; r < n; ++r) {
      RankMemory m;
      m.scratch = kScratchAt;
      const std::uint64_t skew = 4 * static_cast<std::uint64_t>(r % 5);  // buffers differ in alignment
      m.send = kScratchAt + scratch + 64 + skew;
      m.recv = m.send + span;
      if (op.in_place) {
        m.send = m.recv;
        if (op.kind == Kind::kAllGather) m.send = m.recv + in_place_offset(op, r);
        if (op.kind == Kind::kReduceScatter) m.recv = m.send + in_place_offset(op, r);
      }
      base.memory.push_back(m);
      auto& sems = cluster.ranks[static_cast<std::size_t>(r)].sems;
      for (int p = 0; p < n; ++p) sems[sem(Sem::kCredit, p)] = 1;
    }
    for (int t = 0; t < times; ++t) {
      // inputs, and what must be in memory afterwards
      std::vector<std::vector<std::int32_t>> in(static_cast<std::size_t>(n));
      std::vector<std::vector<std::uint8_t>> want(static_cast<std::size_t>(n));
      for (int r = 0; r < n; ++r) {
        auto& rank = cluster.ranks[static_cast<std::size_t>(r)];
        std::fill(rank.memory.begin() + kScratchAt + static_cast<long>(scratch), rank.memory.end(), kGuard);
        const Sizes s = sizes(op, r, n);
        auto& v = in[static_cast<std::size_t>(r)];
        v.resize(s.send / 4);
        for (auto& x : v) x = static_cast<std::int32_t>(rng());
        if (s.send != 0)
          std::memcpy(&rank.memory[base.memory[static_cast<std::size_t>(r)].send], v.data(), s.send);
      }
      for (int r = 0; r < n; ++r) {
        auto& rank = cluster.ranks[static_cast<std::size_t>(r)];
        auto w = rank.memory;
        const auto out = golden(op, r, in);
        if (!out.empty())
          std::memcpy(&w[base.memory[static_cast<std::size_t>(r)].recv], out.data(), out.size() * 4);
        want[static_cast<std::size_t>(r)] = std::move(w);
        auto plan = compile(op, r, n, base);
        if (!plan.ok()) return plan.error();
        std::vector<weft::wire::Wqe> entries = plan.take();
        if (r == 0 && break_entry >= 0 && break_entry < static_cast<int>(entries.size()))
          entries[static_cast<std::size_t>(break_entry)].has_dep0 =
              entries[static_cast<std::size_t>(break_entry)].has_dep1 = false;
        for (std::size_t i = 0; i < entries.size(); ++i) {
          const auto& e = entries[i];
          if ((e.has_dep0 && e.dep0 >= i) || (e.has_dep1 && e.dep1 >= i))
            return "dependency on a later entry";
        }
        rank.start(std::move(entries));
      }
      if (!cluster.run()) return cluster.fault;
      for (int r = 0; r < n; ++r) {
        const auto& rank = cluster.ranks[static_cast<std::size_t>(r)];
        const auto& w = want[static_cast<std::size_t>(r)];
        for (std::size_t a = kScratchAt + scratch; a < w.size(); ++a) {
          // reduce_scatter may not touch the rest of an in-place buffer, nor anything else: all bytes count
          if (rank.memory[a] != w[a])
            return "rank " + std::to_string(r) + " byte " + std::to_string(a) + " round " + std::to_string(t);
        }
        for (int p = 0; p < n; ++p)
          for (auto [purpose, value] :
               {std::pair{Sem::kReduce, 0U}, {Sem::kGather, 0U}, {Sem::kCredit, 1U}, {Sem::kReady, 0U}})
            if (rank.sems[sem(purpose, p)] != value) return "semaphore not returned";
      }
    }
    return {};
  }

  std::vector<std::int32_t> golden(const Op& op, int r,
                                   const std::vector<std::vector<std::int32_t>>& in) const {
    std::vector<std::int32_t> out;
    auto fold = [&](std::uint64_t i) {
      std::int32_t a = in[0][i];
      for (int k = 1; k < n; ++k) {
        const std::int32_t b = in[static_cast<std::size_t>(k)][i];
        if (op.redop == RedOp::kMax)
          a = std::max(a, b);
        else if (op.redop == RedOp::kMin)
          a = std::min(a, b);
        else
          a = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
      }
      return a;
    };
    const auto me = static_cast<std::uint64_t>(r);
    switch (op.kind) {
      case Kind::kAllReduce:
        for (std::uint64_t i = 0; i < op.count; ++i) out.push_back(fold(i));
        break;
      case Kind::kReduceScatter:
        for (std::uint64_t i = 0; i < op.count; ++i) out.push_back(fold(me * op.count + i));
        break;
      case Kind::kAllGather:
        for (int s = 0; s < n; ++s)
          out.insert(out.end(), in[static_cast<std::size_t>(s)].begin(),
                     in[static_cast<std::size_t>(s)].end());
        break;
      case Kind::kAllToAll:
        for (int s = 0; s < n; ++s)
          for (std::uint64_t i = 0; i < op.count; ++i)
            out.push_back(in[static_cast<std::size_t>(s)][me * op.count + i]);
        break;
      case Kind::kAllToAllV:
        for (int s = 0; s < n; ++s) {
          std::uint64_t at = 0;
          for (int p = 0; p < r; ++p)
            at += op.send_counts[static_cast<std::size_t>(s)][static_cast<std::size_t>(p)];
          for (std::uint64_t i = 0; i < op.send_counts[static_cast<std::size_t>(s)][me]; ++i)
            out.push_back(in[static_cast<std::size_t>(s)][at + i]);
        }
        break;
      case Kind::kBroadcast: out = in[static_cast<std::size_t>(op.root)]; break;
      case Kind::kBarrier: break;
    }
    return out;
  }
};

Op make(Kind kind, std::uint64_t count, int n, Rng& rng) {
  Op op;
  op.kind = kind;
  op.type = Type::kInt32;
  op.count = count;
  op.root = static_cast<int>(rng.below(static_cast<std::uint64_t>(n)));
  if (kind == Kind::kAllToAllV) {
    op.send_counts.assign(static_cast<std::size_t>(n),
                          std::vector<std::uint64_t>(static_cast<std::size_t>(n)));
    for (auto& row : op.send_counts)
      for (auto& v : row) v = rng.chance(0.3) ? 0 : rng.below(2 * count + 1);
  }
  return op;
}

constexpr Kind kAll[] = {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kAllToAll,
                         Kind::kAllToAllV, Kind::kBroadcast,     Kind::kBarrier};

}  // namespace

TEST_CASE("wccl: every collective is right for 1 to 16 ranks and any count (case software 21)",
          "[wccl][random]") {
  Rng rng;
  for (int n = 1; n <= kMaxRanks; ++n)
    for (Kind kind : kAll)
      for (std::uint64_t count : {0, 1, 3, 16, 257}) {
        Op op = make(kind, count, n, rng);
        op.redop = static_cast<RedOp>(rng.below(3));
        CAPTURE(n, name(kind), count);
        CHECK(Harness{n, rng()}.run(op) == "");
      }
}

TEST_CASE("wccl: the ring is right for 1 to 16 ranks", "[wccl][random]") {
  Rng rng;
  for (int n = 1; n <= kMaxRanks; ++n)
    for (std::uint64_t count : {1, 5, 16, 1000}) {
      Op op = make(Kind::kAllReduce, count, n, rng);
      op.algo = Algo::kRing;
      CAPTURE(n, count);
      CHECK(Harness{n, rng()}.run(op) == "");
    }
}

TEST_CASE("wccl: large counts are cut into slices and stay right", "[wccl][random]") {
  Rng rng;
  for (int n : {2, 3, 5, 8})
    for (Algo algo : {Algo::kDirect, Algo::kRing}) {
      Op op = make(Kind::kAllReduce, 50'000 + rng.below(20'000), n, rng);
      op.algo = algo;
      CAPTURE(n, name(algo), op.count);
      CHECK(Harness{n, rng(), 1}.run(op) == "");
    }
}

TEST_CASE("wccl: in place equals out of place (case software 14)", "[wccl][random]") {
  Rng rng;
  for (int n : {1, 2, 3, 7, 8, 16})
    for (Kind kind : {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kBroadcast})
      for (Algo algo : {Algo::kDirect, Algo::kRing}) {
        if (algo == Algo::kRing && kind != Kind::kAllReduce) continue;
        Op op = make(kind, 1 + rng.below(600), n, rng);
        op.in_place = true;
        op.algo = algo;
        CAPTURE(n, name(kind), name(algo), op.count);
        CHECK(Harness{n, rng()}.run(op) == "");
      }
}

TEST_CASE("case software 8: bfloat16 sums of 16 ranks stay within one rounding an addition",
          "[wccl][random]") {
  // Values between 1 and 2 with all 8 bits used: sums of more than two need more. Each addition rounds once,
  // by at most 2^-8 of its result (docs/nmc.md), and there are 15.
  constexpr int n = 16;
  constexpr std::uint64_t kCount = 1000;
  Rng rng(weft::test::seed(), 8);
  std::vector<std::vector<std::uint8_t>> in(n, std::vector<std::uint8_t>(2 * kCount));
  const auto number = [](const std::vector<std::uint8_t>& v, std::uint64_t i) {
    const auto bits = static_cast<std::uint32_t>(v[2 * i] << 16) | static_cast<std::uint32_t>(v[2 * i + 1])
                                                                       << 24;
    float f;
    std::memcpy(&f, &bits, 4);
    return static_cast<double>(f);
  };
  for (auto& v : in)
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const std::uint64_t bits = 0x3f80 | rng.below(128) | rng.below(2) << 15;
      v[2 * i] = static_cast<std::uint8_t>(bits);
      v[2 * i + 1] = static_cast<std::uint8_t>(bits >> 8);
    }
  for (Algo algo : {Algo::kDirect, Algo::kRing}) {
    Op op;
    op.kind = Kind::kAllReduce;
    op.type = Type::kBfloat16;
    op.count = kCount;
    op.algo = algo;
    CAPTURE(name(algo));
    std::uint64_t rounded = 0;
    double worst = 0;  // in roundings
    for (const Fold& f : fold_order(op, n)) {
      const auto part = [&](int r) {
        return std::span(in[static_cast<std::size_t>(r)]).subspan(2 * f.first, 2 * f.count);
      };
      std::vector<std::uint8_t> sum(part(f.order[0]).begin(), part(f.order[0]).end());
      for (std::size_t k = 1; k < f.order.size(); ++k)
        weft::num::reduce(weft::wire::Dtype::BFLOAT16, weft::wire::Redop::SUM, sum, sum, part(f.order[k]));
      for (std::uint64_t i = 0; i < f.count; ++i) {
        double exact = 0, size = 0;
        for (const auto& v : in) {
          exact += number(v, f.first + i);
          size += std::abs(number(v, f.first + i));
        }
        const double error = std::abs(number(sum, i) - exact);
        rounded += error != 0;
        worst = std::max(worst, error / (size / 256));
      }
    }
    CHECK(rounded > kCount / 4);
    CHECK(worst <= n - 1);
  }
}

TEST_CASE("wccl: the check sees an entry that ignores its dependencies", "[wccl]") {
  Rng rng;
  Op op = make(Kind::kAllReduce, 40'000, 4, rng);
  int seen = 0;
  auto plan = compile(op, 0, 4, Target{std::vector<RankMemory>(4), {0, 1, 2, 3}});
  REQUIRE(plan.ok());
  for (int i = 0; i < static_cast<int>(plan.value().size()); ++i)
    if (plan.value()[static_cast<std::size_t>(i)].has_dep0) seen += Harness{4, 3, 1, true, i}.run(op) != "";
  CHECK(seen > 10);
}

TEST_CASE("wccl: wrong arguments are refused by name", "[wccl]") {
  Op op;
  op.kind = Kind::kAllReduce;
  CHECK(check(op, 17) == "ranks: 17, expected 1 to 16");
  op.type = Type::kInt64;
  CHECK(check(op, 4) == "type: int64 cannot be reduced by all_reduce, expected float32, bfloat16 or int32");
  op = {};
  op.kind = Kind::kBroadcast;
  op.root = 4;
  CHECK(check(op, 4) == "root: 4, expected 0 to 3");
  op = {};
  op.kind = Kind::kAllToAllV;
  op.send_counts = {{1, 2}, {3}};
  CHECK(check(op, 2) == "send_counts[1]: 1 counts, expected one for each of 2 ranks");
  CHECK(check(op, 3) == "send_counts: 2 rows, expected one for each of 3 ranks");
  op = {};
  op.kind = Kind::kAllToAll;
  op.in_place = true;
  CHECK(check(op, 2) == "in_place: true, but all_to_all needs separate buffers");
  op.in_place = false;
  op.count = std::uint64_t{1} << 31;
  CHECK(check(op, 2) == "count: 2147483648 elements of 4 bytes, expected less than 4 GiB to one peer");
}
