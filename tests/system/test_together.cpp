// SPDX-License-Identifier: Apache-2.0
// Operations of one communicator in flight together, and what becomes of all ranks when one of them starts
// others, or none, or is gone. On reference and on Verilated nodes.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "job.h"

using namespace weft::test;
namespace tb = weft::tb;
using wccl::Kind;
using wccl::Op;
using wccl::State;

namespace {

constexpr tb::Body kBoth[] = {tb::Body::kRef, tb::Body::kRtl};
const char* text(tb::Body body) {
  return body == tb::Body::kRef ? "reference" : "rtl";
}

Op make(Kind kind, std::uint64_t count, int root = 0) {
  Op op;
  op.kind = kind;
  op.type = wccl::Type::kInt32;
  op.count = count;
  op.root = root;
  return op;
}

// A job whose heap holds plans of `words` words a rank altogether, and whose scratch those of any of them.
std::unique_ptr<Job> make_job(tb::Body body, int n, std::uint64_t words,
                              const std::function<void(Trial&)>& change = {}) {
  Trial t;
  t.scenario.body = body;
  t.config.transport.mtu = 4096;
  t.config.tell_us = 50;
  if (change) change(t);
  return std::make_unique<Job>(
      n,
      make(Kind::kReduceScatter, (words + static_cast<std::uint64_t>(n) - 1) / static_cast<std::uint64_t>(n)),
      std::move(t));
}

// What a plan of int32 must give, worked out here: no table of the library takes part.
std::vector<std::uint32_t> expected(const Op& op, int rank,
                                    const std::vector<std::vector<std::uint32_t>>& in) {
  const auto n = in.size(), me = static_cast<std::size_t>(rank);
  std::vector<std::uint32_t> out;
  const auto sum = [&](std::size_t first) {
    for (std::size_t i = first; i < first + op.count; ++i) {
      std::uint32_t s = 0;
      for (const auto& v : in) s += v[i];
      out.push_back(s);
    }
  };
  const auto part = [&](const std::vector<std::uint32_t>& v, std::size_t first) {
    out.insert(out.end(), v.begin() + static_cast<std::ptrdiff_t>(first),
               v.begin() + static_cast<std::ptrdiff_t>(first + op.count));
  };
  switch (op.kind) {
    case Kind::kAllReduce: sum(0); break;
    case Kind::kReduceScatter: sum(me * op.count); break;
    case Kind::kAllGather:
      for (std::size_t s = 0; s < n; ++s) part(in[s], 0);
      break;
    case Kind::kAllToAll:
      for (std::size_t s = 0; s < n; ++s) part(in[s], me * op.count);
      break;
    case Kind::kBroadcast: part(in[static_cast<std::size_t>(op.root)], 0); break;
    default: break;
  }
  return out;
}

// Plans with buffers of their own, their inputs, and what they gave.
class Plans {
 public:
  Plans(Job& job, std::uint64_t seed) : job_(job), seed_(seed) {}

  std::size_t size() const { return plans_.size(); }
  int plan(std::size_t k) const { return plans_[k].plan; }
  const Op& op(std::size_t k) const { return plans_[k].op; }

  // `words`: of the heap that all plans together may take; false if this one does not fit.
  bool add(const Op& op, std::uint64_t words) {
    std::uint64_t send = 0, recv = 0;
    for (int r = 0; r < job_.ranks(); ++r) {
      const wccl::Sizes s = wccl::sizes(op, r, job_.ranks());
      send = std::max(send, s.send);
      recv = std::max(recv, s.recv);
    }
    const Job::Buffers at{next_, next_ + (send + 127) / 64 * 64};
    const std::uint64_t end = at.recv + (recv + 127) / 64 * 64;
    if (end > 4 * words) return false;
    next_ = end;
    plans_.push_back({op, at, job_.prepare(op, at), {}});
    return true;
  }
  // New inputs for the plan; nothing of the results of before is left.
  void fill(std::size_t k, std::uint64_t run) {
    Plan& p = plans_[k];
    p.in.clear();
    for (int r = 0; r < job_.ranks(); ++r) {
      const wccl::Sizes s = wccl::sizes(p.op, r, job_.ranks());
      std::vector<std::uint32_t> v(s.send / 4);
      Rng rng(seed_ + run, static_cast<std::uint64_t>(k) << 8 | static_cast<unsigned>(r));
      for (auto& x : v) x = static_cast<std::uint32_t>(rng());
      job_.put(r, p.at.send, v);
      job_.put(r, p.at.recv, std::vector<std::uint32_t>(s.recv / 4, 0xdeadbeef));
      p.in.push_back(std::move(v));
    }
  }
  // Words of all ranks' results that are not what they must be.
  std::uint64_t wrong(std::size_t k) {
    std::uint64_t n = 0;
    for (int r = 0; r < job_.ranks(); ++r) {
      const auto want = expected(plans_[k].op, r, plans_[k].in);
      const auto got = job_.get<std::uint32_t>(r, plans_[k].at.recv, want.size());
      for (std::size_t i = 0; i < want.size(); ++i) n += got[i] != want[i];
    }
    return n;
  }
  void release() {
    for (const Plan& p : plans_) job_.release(p.plan);
    plans_.clear();
    next_ = 0;
  }

 private:
  struct Plan {
    Op op;
    Job::Buffers at;
    int plan;
    std::vector<std::vector<std::uint32_t>> in;
  };
  Job& job_;
  std::uint64_t seed_, next_ = 0;
  std::vector<Plan> plans_;
};

Op any_op(int n, std::uint64_t most, Rng& rng) {
  constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather,
                             Kind::kAllToAll,  Kind::kBroadcast,     Kind::kBarrier};
  const Kind kind = kKinds[rng.below(std::size(kKinds))];
  const std::uint64_t count = rng.chance(0.3) ? 1 + rng.below(most) : rng.below(64);
  Op op =
      make(kind, kind == Kind::kBarrier ? 0 : count, static_cast<int>(rng.below(static_cast<unsigned>(n))));
  if (kind == Kind::kAllReduce && rng.chance(0.4)) op.algo = wccl::Algo::kRing;
  return op;
}

// Rank r starts plans[order[r][0]], plans[order[r][1]] ..., each when the dice say so, but never waits for
// one to end unless it is to start it again.
struct Skewed {
  Job& job;
  const Plans& plans;
  std::vector<std::vector<std::size_t>> order;
  Rng& rng;
  std::vector<std::size_t> next;

  std::string run() {
    next.assign(order.size(), 0);
    std::string refused;
    const std::string end = job.until([&] {
      bool all = true;
      for (int r = 0; r < job.ranks(); ++r) {
        auto& k = next[static_cast<std::size_t>(r)];
        const auto& mine = order[static_cast<std::size_t>(r)];
        while (k < mine.size() && rng.chance(0.6)) {
          const int plan = plans.plan(mine[k]);
          if (job.comm(r).state(plan) == State::kRunning) break;
          if (!job.comm(r).failed().empty()) {
            k = mine.size();
            break;
          }
          if (weft::Status s = job.comm(r).start(plan); !s.ok() && refused.empty()) refused = s.text();
          ++k;
        }
        all = all && k == mine.size();
      }
      for (std::size_t k = 0; k < plans.size() && all; ++k) all = job.none(plans.plan(k), State::kRunning);
      return all || !refused.empty();
    });
    return end.empty() ? refused : end;
  }
};

// Clusters with random plans; `runs` sequences of 2 to 8 of them, every rank in the same order.
void same_order(tb::Body body, unsigned runs, std::uint64_t words) {
  Rng rng(seed(), 501);
  unsigned done = 0;
  std::uint64_t starts = 0;
  while (done < runs) {
    const int n = 2 + static_cast<int>(rng.below(body == tb::Body::kRtl ? 2 : 4));
    auto job = make_job(body, n, words, [&](Trial& t) {
      if (rng.chance(0.3)) t.scenario.faults.loss = 0.01;
    });
    for (unsigned k = 0; k < 50 && done < runs; ++k, ++done) {
      Plans plans(*job, rng());
      const std::uint64_t wanted = 2 + rng.below(7);
      for (int tries = 0; plans.size() < wanted && tries < 100; ++tries)
        plans.add(any_op(n, words / 16, rng), words);
      REQUIRE(plans.size() >= 2);
      for (std::size_t p = 0; p < plans.size(); ++p) plans.fill(p, k);
      // Each once, in an order of chance; what is started twice has the same inputs again.
      std::vector<std::size_t> order(plans.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      for (std::size_t p = order.size(); p-- > 1;) std::swap(order[p], order[rng.below(p + 1)]);
      if (rng.chance(0.5)) order.push_back(rng.below(plans.size()));
      CAPTURE(text(body), n, done);
      Skewed run{
          *job, plans, std::vector<std::vector<std::size_t>>(static_cast<std::size_t>(n), order), rng, {}};
      REQUIRE(run.run() == "");
      starts += order.size();
      for (std::size_t p = 0; p < plans.size(); ++p) {
        for (int r = 0; r < n; ++r) REQUIRE(job->comm(r).state(plans.plan(p)) == State::kReady);
        REQUIRE(plans.wrong(p) == 0);
      }
      plans.release();
    }
    CHECK(job->finish() == "");
  }
  std::printf("together, %s: %u sequences, %llu starts\n", text(body), done,
              static_cast<unsigned long long>(starts));
}

// One rank starts two of the plans the other way round.
void another_order(tb::Body body, unsigned runs, std::uint64_t words) {
  Rng rng(seed(), 502);
  for (unsigned done = 0; done < runs; ++done) {
    const int n = 2 + static_cast<int>(rng.below(body == tb::Body::kRtl ? 2 : 4));
    auto job = make_job(body, n, words);
    Plans plans(*job, rng());
    const bool alike = rng.chance(0.4);  // equal shape: only the buffers differ
    const Op first = any_op(n, words / 16, rng);
    const std::uint64_t wanted = 2 + rng.below(5);
    for (int tries = 0; plans.size() < wanted && tries < 50; ++tries)
      plans.add(alike ? first : any_op(n, words / 16, rng), words);
    while (plans.size() < 2) REQUIRE(plans.add(make(Kind::kBarrier, 0), words));
    for (std::size_t p = 0; p < plans.size(); ++p) plans.fill(p, done);
    std::vector<std::size_t> order(plans.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::vector<std::size_t>> orders(static_cast<std::size_t>(n), order);
    const auto odd = static_cast<std::size_t>(rng.below(static_cast<unsigned>(n)));
    const std::size_t at = rng.below(order.size() - 1);
    std::swap(orders[odd][at], orders[odd][at + 1]);
    CAPTURE(text(body), n, done, odd, at);
    Skewed run{*job, plans, orders, rng, {}};
    REQUIRE(run.run() == "");
    const std::string where = "mismatch: start " + std::to_string(at + 1) + ": ";
    for (int r = 0; r < n; ++r) {
      // Both sides are named: a rank, and the odd one; each with its plan.
      const std::string& why = job->comm(r).failed();
      CAPTURE(r, why);
      CHECK(why.find(where) != std::string::npos);
      CHECK(why.find("rank " + std::to_string(odd)) != std::string::npos);
      for (std::size_t k : {at, at + 1})
        CHECK(why.find("(plan " + std::to_string(k + 1) + ")") != std::string::npos);
      // What was in the agreed order is right; of the rest nothing is said to be good.
      for (std::size_t k = 0; k < plans.size(); ++k) {
        const State state = job->comm(r).state(plans.plan(k));
        if (k >= at)
          CHECK((state == State::kFailed ||
                 (k > at + 1 && state == State::kReady && run.next[static_cast<std::size_t>(r)] != 0)));
        else
          CHECK((state == State::kReady || state == State::kFailed));
      }
      CHECK(job->comm(r).start(plans.plan(0)).text().find("has failed, repair it") != std::string::npos);
    }
  }
}

// As many as the environment asks for: RUNS=10000 of reference nodes, RTL_RUNS of Verilated ones.
unsigned asked(const char* name, unsigned usual) {
  const char* runs = std::getenv(name);
  return runs == nullptr ? usual : static_cast<unsigned>(std::strtoul(runs, nullptr, 10));
}

// A life after the failure: all ranks repair, and the same plans give what they should.
void repaired(Job& job, Plans& plans) {
  std::vector<wccl::RankInfo> infos;
  const std::string rest = job.until([&] {
    infos.clear();
    for (int r = 0; r < job.ranks(); ++r) {
      auto info = job.comm(r).repair();
      if (!info.ok()) return false;
      infos.push_back(info.take());
    }
    return true;
  });
  REQUIRE(rest == "");
  for (int r = 0; r < job.ranks(); ++r) {
    const weft::Status s = job.comm(r).connect(infos);
    INFO(s.text());
    REQUIRE(s.ok());
  }
  // Nobody starts before all are connected, which takes a node some time.
  REQUIRE(job.cluster().run_for(20 * tb::kUs).ok());
  for (std::size_t k = 0; k < plans.size(); ++k) {
    plans.fill(k, 77);
    for (int r = 0; r < job.ranks(); ++r) CHECK(job.comm(r).state(plans.plan(k)) == State::kReady);
    REQUIRE(job.run(plans.plan(k)) == "");
    CHECK(plans.wrong(k) == 0);
  }
}

}  // namespace

TEST_CASE("together: 1 MB and 256 bytes, started back to back", "[together]") {
  for (tb::Body body : kBoth) {
    constexpr std::uint64_t kWords = 3 << 18;
    auto job = make_job(body, 2, kWords);
    Plans plans(*job, seed());
    REQUIRE(plans.add(make(Kind::kAllReduce, 1 << 18), kWords));
    REQUIRE(plans.add(make(Kind::kAllReduce, 64), kWords));
    plans.fill(0, 0);
    plans.fill(1, 0);
    Rng rng;
    CAPTURE(text(body));
    for (std::size_t k : {0, 1})
      for (int r = 0; r < 2; ++r) REQUIRE(job->comm(r).start(plans.plan(k)).ok());
    REQUIRE(job->until([&] {
      return job->none(plans.plan(0), State::kRunning) && job->none(plans.plan(1), State::kRunning);
    }) == "");
    CHECK(plans.wrong(0) == 0);
    CHECK(plans.wrong(1) == 0);
    // One after the other, without the host between: the second ended after the first, and soon.
    for (int r = 0; r < 2; ++r) {
      const std::uint64_t first = job->comm(r).completed_cycles(plans.plan(0)),
                          second = job->comm(r).completed_cycles(plans.plan(1));
      CHECK(second > first);
      CHECK(second - first < 5000);
    }
    CHECK(job->finish() == "");
  }
}

TEST_CASE(
    "together: plans one after another, every rank as fast as it can, give what they give alone "
    "(case software 20)",
    "[together][random]") {
  same_order(tb::Body::kRef, asked("RUNS", 150), 1 << 18);
  same_order(tb::Body::kRtl, asked("RTL_RUNS", 8), 1 << 15);
}

TEST_CASE("together: plans in another order at one rank are named at every rank", "[together][random]") {
  another_order(tb::Body::kRef, asked("RUNS", 60), 1 << 16);
  another_order(tb::Body::kRtl, asked("RTL_RUNS", 3), 1 << 14);
}

TEST_CASE("together: a rank that never comes is waited for no longer than the watchdog says", "[together]") {
  for (tb::Body body : kBoth) {
    constexpr std::uint64_t kWords = 1 << 14;
    auto job = make_job(body, 3, kWords, [](Trial& t) { t.config.watchdog_us = 300; });
    Plans plans(*job, seed());
    REQUIRE(plans.add(make(Kind::kAllReduce, 1000), kWords));
    REQUIRE(plans.add(make(Kind::kBarrier, 0), kWords));
    plans.fill(0, 0);
    CAPTURE(text(body));
    for (int r : {0, 2})
      for (std::size_t k : {0, 1}) REQUIRE(job->comm(r).start(plans.plan(k)).ok());
    const tb::Ps begin = job->cluster().now_ps();
    REQUIRE(job->until([&] {
      return job->none(plans.plan(0), State::kRunning) && job->none(plans.plan(1), State::kRunning) &&
             !job->comm(1).failed().empty();
    }) == "");
    CHECK(job->cluster().now_ps() - begin < 2 * 300 * tb::kUs);
    // Who found it first told the others: rank, operation, entry, and the peer that is missing.
    for (int r = 0; r < 3; ++r) {
      const std::string& why = job->comm(r).failed();
      CAPTURE(r, why);
      CHECK(why.find(": all_reduce: entry ") != std::string::npos);
      CHECK(why.find(" of rank 1): FLUSHED, not done after 300 us") != std::string::npos);
    }
    CHECK(job->comm(0).failure(plans.plan(1)).find("given up: ") != std::string::npos);
    CHECK(job->comm(0).start(plans.plan(0)).text().find("has failed, repair it") != std::string::npos);
    repaired(*job, plans);
    CHECK(job->finish() == "");
  }
}

TEST_CASE("together: a rank that is gone in the midst of it, or aborts, ends all (case software 17)",
          "[together]") {
  for (tb::Body body : kBoth)
    for (const bool aborts : {true, false}) {
      constexpr std::uint64_t kWords = 1 << 17;
      auto job = make_job(body, 3, kWords, [&](Trial& t) {
        t.config.watchdog_us = aborts ? 0 : 400;
        t.config.tell_us = 20;
      });
      Plans plans(*job, seed());
      REQUIRE(plans.add(make(Kind::kAllReduce, 20'000), kWords));
      REQUIRE(plans.add(make(Kind::kAllGather, 3), kWords));
      plans.fill(0, 0);
      CAPTURE(text(body), aborts);
      for (int r = 0; r < 3; ++r) REQUIRE(job->comm(r).start(plans.plan(0)).ok());
      REQUIRE(job->cluster().run_for(2 * tb::kUs).ok());
      if (aborts) {
        REQUIRE(job->comm(1).abort(plans.plan(0)).ok());
      } else {
        // Its program is gone: nobody starts the next operation there, or reads what the others tell.
        for (int r : {0, 2}) REQUIRE(job->comm(r).start(plans.plan(1)).ok());
      }
      const auto ended = [&] {
        for (int r = 0; r < 3; ++r)
          if (job->comm(r).failed().empty()) return false;
        return job->none(plans.plan(0), State::kRunning) && job->none(plans.plan(1), State::kRunning);
      };
      REQUIRE(job->until(ended) == "");
      for (int r = 0; r < 3; ++r) {
        const std::string& why = job->comm(r).failed();
        CAPTURE(r, why);
        CHECK(why.find(aborts ? "rank 1: all_reduce: entry" : "of rank 1): FLUSHED, not done after") !=
              std::string::npos);
      }
      repaired(*job, plans);
      CHECK(job->finish() == "");
    }
}

TEST_CASE("together: a rank whose links fail is found by those that send and those that only wait",
          "[together]") {
  // Two reference nodes would look for another way much longer: they fail no connection by its probes.
  for (tb::Body body : {tb::Body::kRtl, tb::Body::kMixed}) {
    constexpr std::uint64_t kWords = 1 << 17;
    constexpr tb::Ps kFrom = 800 * tb::kUs, kTo = 30 * tb::kMs;
    auto job = make_job(body, 3, kWords, [&](Trial& t) {
      t.config.tell_us = 50;
      t.config.transport.retry_limit = 5;
      for (int port : {0, 1}) {
        tb::DownFault down;
        down.node = 2;
        down.port = port;
        down.from_ps = kFrom;
        down.to_ps = kTo;
        t.scenario.faults.down.push_back(down);
      }
    });
    Plans plans(*job, seed());
    REQUIRE(plans.add(make(Kind::kBroadcast, 20'000, 0), kWords));
    plans.fill(0, 0);
    const char* const name = body == tb::Body::kRtl ? "rtl" : "mixed";
    CAPTURE(name);
    REQUIRE(job->cluster().now_ps() < kFrom);
    REQUIRE(job->run(plans.plan(0)) == "");
    REQUIRE(job->cluster().run_for(kFrom + tb::kUs - job->cluster().now_ps()).ok());
    for (int r = 0; r < 3; ++r) REQUIRE(job->comm(r).start(plans.plan(0)).ok());
    tb::Ps first = 0;
    const tb::Ps begin = job->cluster().now_ps();
    REQUIRE(job->until([&] {
      bool all = true;
      for (int r = 0; r < 3; ++r) {
        const bool ended = job->comm(r).state(plans.plan(0)) == State::kFailed;
        if (ended && first == 0) first = job->cluster().now_ps();
        all = all && ended;
      }
      return all;
    }) == "");
    const tb::Ps last = job->cluster().now_ps();
    std::printf("together, %s: a node without links is found after %.0f us, all have ended after %.0f us\n",
                name, static_cast<double>(first - begin) / tb::kUs,
                static_cast<double>(last - begin) / tb::kUs);
    // A reference node tells of a failed connection only when its packets have left the network.
    const tb::Ps life = body == tb::Body::kMixed ? tb::kMs : 0;
    CHECK(last - begin < 2 * (first - begin + life));
    for (int r = 0; r < 3; ++r) {
      const std::string& why = job->comm(r).failed();
      CAPTURE(r, why);
      CHECK(why.find("RETRY_LIMIT (5 probes unanswered)") != std::string::npos);
      CHECK(why.find("rank 2") != std::string::npos);
    }
    if (job->cluster().now_ps() < kTo) REQUIRE(job->cluster().run_for(kTo - job->cluster().now_ps()).ok());
    repaired(*job, plans);
    CHECK(job->finish() == "");
  }
}
