// SPDX-License-Identifier: Apache-2.0
// Plans whose sizes cross 2^31 and 2^32 bytes, run without the memory they would take: which input ends
// where, and in which order it was folded, is followed for every byte.
#include <functional>
#include <numeric>

#include "symbols.h"

using namespace wccl;
using weft::test::Rng;

namespace {

constexpr Kind kAll[] = {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather,
                         Kind::kAllToAll,  Kind::kAllToAllV,     Kind::kBroadcast};

struct Place {
  std::uint64_t send, recv, scratch;
};
// Buffers of a rank, far apart and at odd elements; recv begins just below a multiple of 2^32.
Place place(int rank, std::uint64_t es) {
  const std::uint64_t base = std::uint64_t{1} << 50, r = static_cast<std::uint64_t>(rank);
  return {base + (r << 44) + 3 * es, base + (r << 44) + (std::uint64_t{1} << 42) - 5 * es,
          base + (r << 44) + (std::uint64_t{1} << 43)};
}

// What rank `r` must have in its receive buffer.
std::vector<model::Range> golden(const Op& op, int r, int n) {
  const std::uint64_t es = size_of(op.type), one = op.count * es, me = static_cast<std::uint64_t>(r);
  std::vector<model::Range> out;
  const auto count = [&](int s, int to) {
    return op.send_counts[static_cast<std::size_t>(s)][static_cast<std::size_t>(to)] * es;
  };
  switch (op.kind) {
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
      for (const Fold& f : fold_order(op, n)) {
        if (op.kind == Kind::kReduceScatter && f.first != me * op.count) continue;
        model::Range range{f.count * es, {}};
        for (int k : f.order) range.terms.push_back({k, f.first * es});
        out.push_back(std::move(range));
      }
      break;
    case Kind::kAllGather:
      for (int s = 0; s < n; ++s) out.push_back({one, {{s, 0}}});
      break;
    case Kind::kAllToAll:
      for (int s = 0; s < n; ++s) out.push_back({one, {{s, me * one}}});
      break;
    case Kind::kAllToAllV:
      for (int s = 0; s < n; ++s) {
        std::uint64_t at = 0;
        for (int p = 0; p < r; ++p) at += count(s, p);
        out.push_back({count(s, r), {{s, at}}});
      }
      break;
    case Kind::kBroadcast: out.push_back({one, {{op.root, 0}}}); break;
    case Kind::kBarrier: break;
  }
  return out;
}

// The ranges of `got` cover those of `want` with the same terms; they may be cut into smaller pieces.
std::string differ(const std::vector<model::Range>& got, const std::vector<model::Range>& want) {
  std::size_t g = 0;
  std::uint64_t used = 0, at = 0;
  for (const model::Range& w : want) {
    for (std::uint64_t done = 0; done < w.bytes;) {
      if (g == got.size()) return "too short";
      std::vector<model::Term> here = got[g].terms, there = w.terms;
      for (auto& t : here) t.offset += used;
      for (auto& t : there) t.offset += done;
      if (here != there) {
        std::string text = "byte " + std::to_string(at) + ":";
        for (const auto& t : here) text += " " + std::to_string(t.rank) + "+" + std::to_string(t.offset);
        return text;
      }
      const std::uint64_t step = std::min(got[g].bytes - used, w.bytes - done);
      done += step;
      at += step;
      used += step;
      if (used == got[g].bytes) ++g, used = 0;
    }
  }
  return {};
}

// Runs `op` on all ranks twice, out of step; what is wrong afterwards. `spoil` may change rank 0's entries.
std::string run(const Op& op, int n, std::uint64_t seed,
                const std::function<void(std::vector<weft::wire::Wqe>&)>& spoil = {}) {
  if (std::string why = check(op, n); !why.empty()) return why;
  model::Cluster<model::Symbols> cluster(n, {}, seed);
  cluster.start_late = true;
  Target target;
  target.conn.resize(static_cast<std::size_t>(n));
  std::iota(target.conn.begin(), target.conn.end(), std::uint16_t{0});
  for (int r = 0; r < n; ++r) {
    auto& rank = cluster.ranks[static_cast<std::size_t>(r)];
    const Place at = place(r, size_of(op.type));
    const Sizes s = sizes(op, r, n);
    rank.memory.allow(at.send, s.send);
    rank.memory.allow(at.recv, s.recv);
    rank.memory.allow(at.scratch, s.scratch);
    rank.memory.write(at.send, {{s.send, {{r, 0}}}});
    target.memory.push_back({at.send, at.recv, 0, at.scratch, 0});
    for (int p = 0; p < n; ++p) rank.sems[sem(Sem::kCredit, p)] = 1;
  }
  for (int round = 0; round < 2; ++round) {
    for (int r = 0; r < n; ++r) {
      auto plan = compile(op, r, n, target);
      if (!plan.ok()) return plan.error();
      auto entries = plan.take();
      if (r == 0 && spoil) spoil(entries);
      auto& rank = cluster.ranks[static_cast<std::size_t>(r)];
      const Sizes s = sizes(op, r, n);
      rank.memory.write(target.memory[static_cast<std::size_t>(r)].recv, {{s.recv, {}}});
      rank.start(std::move(entries));
    }
    if (!cluster.run()) return cluster.fault;
    for (int r = 0; r < n; ++r) {
      const auto& rank = cluster.ranks[static_cast<std::size_t>(r)];
      const Sizes s = sizes(op, r, n);
      const Place at = place(r, size_of(op.type));
      if (auto why = differ(rank.memory.read(at.recv, s.recv), golden(op, r, n)); !why.empty())
        return "rank " + std::to_string(r) + ": " + why;
      if (auto why = differ(rank.memory.read(at.send, s.send), {{s.send, {{r, 0}}}}); !why.empty())
        return "rank " + std::to_string(r) + ": input: " + why;
    }
  }
  return {};
}

Op make(Kind kind, Type type, std::uint64_t count, int n, Rng& rng) {
  Op op;
  op.kind = kind;
  op.type = type;
  op.count = count;
  op.root = static_cast<int>(rng.below(static_cast<std::uint64_t>(n)));
  if (kind == Kind::kAllToAllV) {
    op.send_counts.assign(static_cast<std::size_t>(n),
                          std::vector<std::uint64_t>(static_cast<std::size_t>(n)));
    for (auto& row : op.send_counts)
      for (auto& v : row) v = rng.chance(0.2) ? 0 : count - rng.below(count / 2 + 1);
  }
  return op;
}

}  // namespace

TEST_CASE("case software 13: sizes around 2^31 and 2^32 bytes, and larger over all ranks", "[wccl][random]") {
  Rng rng;
  constexpr std::uint64_t kMost = 0xffffffff;  // bytes to one peer
  for (int n : {2, 3, 8, 16})
    for (Kind kind : kAll)
      for (Type type : {Type::kInt32, Type::kBfloat16, Type::kInt64}) {
        const std::uint64_t es = size_of(type), half = (std::uint64_t{1} << 31) / es;
        for (std::uint64_t count :
             {half - 1, half, half + 1, kMost / es, half / static_cast<std::uint64_t>(n) + 1,
              2 * half / static_cast<std::uint64_t>(n) + 1}) {
          CAPTURE(n, name(kind), name(type), count);
          CHECK(run(make(kind, type, count, n, rng), n, rng()) == "");
          if (kind != Kind::kAllReduce) continue;
          Op ring = make(kind, type, count, n, rng);
          ring.algo = Algo::kRing;
          CHECK(run(ring, n, rng()) == "");
        }
        CHECK(run(make(kind, type, kMost / es + 1, n, rng), n, 1).find("expected less than 4 GiB") !=
              std::string::npos);
      }
}

TEST_CASE("case software 21: every collective on any number of ranks, counts large and odd",
          "[wccl][random]") {
  Rng rng(weft::test::seed(), 21);
  for (int n = 1; n <= kMaxRanks; ++n)
    for (Kind kind : kAll)
      for (std::uint64_t count : {std::uint64_t{1}, static_cast<std::uint64_t>(n) - 1,
                                  1'000'003 + rng.below(1000), rng.below(1 << 28)}) {
        CAPTURE(n, name(kind), count);
        CHECK(run(make(kind, Type::kFloat32, count, n, rng), n, rng()) == "");
        if (kind != Kind::kAllReduce) continue;
        Op ring = make(kind, Type::kFloat32, count, n, rng);
        ring.algo = Algo::kRing;
        CHECK(run(ring, n, rng()) == "");
      }
}

TEST_CASE("wccl: following inputs without memory sees any range that is one element off", "[wccl]") {
  Rng rng;
  for (Kind kind : kAll) {
    Op op = make(kind, Type::kInt32, 1 << 20, 4, rng);
    op.root = 0;
    const std::size_t entries =
        compile(op, 0, 4, Target{std::vector<RankMemory>(4), {0, 1, 2, 3}}).value().size();
    for (std::size_t i = 0; i < entries; ++i)
      for (int field = 0; field < 6; ++field) {
        bool moves_data = false;
        const std::string why = run(op, 4, i + 1, [&](auto& plan) {
          auto& e = plan[i];
          const bool strided = e.opcode == weft::wire::WqeOp::REDUCE && e.nsrc > 1;
          moves_data = e.length != 0 && (field < 3 || strided);
          if (!moves_data) return;
          if (field == 0) e.length -= 4;
          if (field == 1) e.src0 += 4;
          if (field == 2) e.dst += 4;
          if (field == 3) e.src1 += 4;
          if (field == 4) e.stride += 4;
          if (field == 5) e.own = e.own == 0 ? 1 : 0;
        });
        CAPTURE(name(kind), i, field);
        CHECK((why != "") == moves_data);
      }
  }
}
