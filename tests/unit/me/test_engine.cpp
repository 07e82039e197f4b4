// SPDX-License-Identifier: Apache-2.0
//
// The engine against what its entries say: order, completeness, errors, aborts, semaphores. Every
// subgraph goes through the real firmware first.
#include "engine.h"

using namespace me;
using weft::test::kProfiles;
using weft::test::name_of;
using weft::test::Profile;
using weft::test::Rng;

namespace {

std::string status_of(const Cqe& cqe) {
  return weft::wire::name(cqe.status);
}

// Semaphores of the random graphs: 0..15 are fed by signals of the bench and shared by all subgraphs,
// 200..215 hold a large value from the start, 16..199 belong to a SET and a later WAIT of one subgraph.
constexpr unsigned kSharedSems = 16, kPairSems = 16, kFullSems = 200;

struct Random {
  Graph graph;
  std::vector<std::pair<unsigned, uint32_t>> signals;  // what the bench must add for it to end
};

Random random_graph(Rng& rng, unsigned subgraph, uint32_t n, unsigned& next_pair_sem) {
  Random out;
  std::vector<std::pair<unsigned, uint32_t>> promised;  // SETs without their WAIT yet
  for (uint32_t i = 0; i < n; ++i) {
    Wqe w;
    const uint64_t kind = rng.below(100);
    if (kind < 30) {
      w = write(subgraph, i, static_cast<unsigned>(rng.below(kConnsUsed)));
    } else if (kind < 60) {
      w = reduce(subgraph, i);
    } else if (kind < 70) {
      w = nop();
    } else if (kind < 80 && next_pair_sem < kFullSems) {
      promised.emplace_back(next_pair_sem++, static_cast<uint32_t>(rng.range(1, 9)));
      w = set(promised.back().first, promised.back().second);
    } else if (kind < 88 && !promised.empty()) {
      const size_t k = rng.below(promised.size());
      w = wait(promised[k].first, promised[k].second, true);
      promised.erase(promised.begin() + static_cast<long>(k));
    } else if (kind < 92) {
      w = wait(kFullSems + static_cast<unsigned>(rng.below(16)), static_cast<uint32_t>(rng.below(1000)),
               false);
    } else {
      const unsigned sem = static_cast<unsigned>(rng.below(kSharedSems));
      const auto value = static_cast<uint32_t>(rng.range(1, 5));
      w = wait(sem, value, true);
      out.signals.emplace_back(sem, value);
    }
    if (i > 0) {
      const uint64_t deps = rng.below(3);
      for (uint64_t d = 0; d < deps; ++d) {
        after(w, static_cast<uint16_t>(i - 1 - rng.below(std::min<uint64_t>(i, rng.chance(0.8) ? 8 : 60))));
      }
      w.sync = rng.chance(0.02);
      w.rx_sync = rng.chance(0.05);
      w.fence = rng.chance(0.03);
    }
    out.graph.push_back(w);
  }
  // Values a SET left over would let a WAIT of the next run pass early: take them back.
  for (auto& [sem, value] : promised) out.graph.push_back(wait(sem, value, true));
  return out;
}

void fill_full_sems(Engine& e) {
  for (unsigned s = 0; s < 16; ++s) {
    weft::cfg::Sem sem;
    sem.value = 1000;
    e.configure(weft::cfg::Table::kSem, kFullSems + s, sem.words());
  }
}

/// Launches the graphs again and again, several at a time, until `total` ended.
void run_random(Engine& e, Rng& rng, const std::vector<Random>& graphs, unsigned total) {
  std::vector<uint64_t> cookies(graphs.size(), 0);
  unsigned launched = 0, ended = 0;
  while (ended < total) {
    const size_t k = rng.below(graphs.size());
    if (cookies[k] == 0 && launched < total && rng.chance(0.02)) {
      cookies[k] = e.launch(static_cast<unsigned>(k));
      ++launched;
      for (auto [sem, value] : graphs[k].signals) {
        if (value > 1 && rng.chance(0.5)) {
          e.signal(sem, value - 1);
          value = 1;
        }
        e.signal(sem, value);
      }
    }
    e.step();
    while (!e.cqes.empty()) {
      const Cqe cqe = e.cqes.front();
      e.cqes.pop_front();
      REQUIRE(status_of(cqe) == "OK");
      REQUIRE(cqe.cookie == cookies[cqe.subgraph]);
      cookies[cqe.subgraph] = 0;
      ++ended;
    }
  }
  e.drain();
}

enum Count {  // positions in me_cnt_t
  kDoorbell,
  kRefused,
  kRegisterOk,
  kRegisterBad,
  kLaunch,
  kFinishOk,
  kFinishBad,
  kFetched,
  kFetchError,
  kWindowStall,
  kIssueTx,
  kIssueNmc,
  kIssueLocal,
  kDone,
  kFailed,
  kFlushed,
  kWaitParked,
  kWaitWoken,
  kSemAdd,
  kSemSaturated,
  kSignalBad,
  kCqe,
  kCqeError,
  kCpuTrap
};

}  // namespace

TEST_CASE("me: random graphs issue in order and complete under all stalls", "[me][random]") {
  for (Profile profile : kProfiles) {
    CAPTURE(name_of(profile));
    Options options;
    options.stall = profile;
    options.memory = {40, profile == Profile::Light ? 400u : 60u};
    options.tx = {0, 300};
    options.nmc = {0, 200};
    const auto stream = static_cast<uint64_t>(profile) * 16;
    Engine e(options, stream);
    Rng rng(weft::test::seed(), 50 + stream);
    e.set_up();
    fill_full_sems(e);
    unsigned pair_sem = kPairSems;
    std::vector<Random> graphs;
    for (unsigned s = 0; s < 8; ++s) {
      graphs.push_back(
          random_graph(rng, s, static_cast<uint32_t>(rng.range(1, s == 0 ? 300 : 60)), pair_sem));
      e.add_good(s, graphs.back().graph);
    }
    run_random(e, rng, graphs, 60);
    uint64_t entries = e.counts[kFetched];
    CHECK(e.counts[kDone] == entries);
    CHECK(e.counts[kLaunch] == 60);
    CHECK(e.counts[kFinishOk] == 60);
    CHECK(e.counts[kDoorbell] == 68);
    CHECK(e.counts[kCqe] == 68);
    CHECK(e.counts[kFailed] + e.counts[kFlushed] + e.counts[kRefused] + e.counts[kCqeError] == 0);
    CHECK(e.counts[kWaitParked] > 0);
  }
}

TEST_CASE("me: the checker notices an engine that misses one dependency", "[me][fault]") {
  // The engine reads entries with one ordering bit cleared; the checker knows the true ones.
  for (unsigned bit : {8u, 9u, 10u, 11u, 12u}) {  // has_dep0, has_dep1, fence, rx_sync, sync
    CAPTURE(bit);
    Options options;
    options.nmc = {80, 80};
    Engine e(options);
    e.set_up();
    Graph g;
    if (bit == 11)
      g.push_back(wait(3, 1, true));
    else
      g.push_back(write(0, 0));
    g.push_back(reduce(0, 1));
    Wqe last = nop();
    if (bit == 8) after(last, 0);
    if (bit == 9) after(after(last, 0), 1);
    if (bit == 10) g[0].fence = true;
    if (bit == 11) last.rx_sync = true;
    if (bit == 12) last.sync = true;
    g.push_back(last);
    e.add_good(0, g);
    // Unaltered first: it passes.
    for (bool alter : {false, true}) {
      if (alter) {
        e.problem_expected = true;
        e.on_read = [bit](uint64_t, Line& line) {
          line[1] = static_cast<uint8_t>(line[1] & ~(1u << (bit - 8)));
        };
      }
      const uint64_t cookie = e.launch(0);
      e.steps(200);
      if (bit == 11) e.signal(3, 1);
      e.wait(cookie);
      CHECK(e.problem.empty() != alter);
    }
    CHECK(e.problem.find("before entry") != std::string::npos);
  }
}

TEST_CASE("me: a subgraph that sleeps does not keep others from running", "[me]") {
  // Three subgraphs fill all they can of the window with entries behind a WAIT; the fourth's SETs wake them.
  Engine e;
  e.set_up();
  for (unsigned s = 0; s < 3; ++s) {
    Graph g{wait(s, 1, true)};
    for (uint32_t i = 1; i < 60; ++i) {
      g.push_back(write(s, i, s));
      after(g.back(), 0);
    }
    e.add_good(s, g);
  }
  Graph waker;
  for (uint32_t i = 0; i < 40; ++i) waker.push_back(reduce(3, i));
  for (unsigned s = 0; s < 3; ++s) {
    waker.push_back(set(s, 1));
    waker.back().sync = true;
  }
  e.add_good(3, waker);
  std::vector<uint64_t> cookies;
  for (unsigned s = 0; s < 3; ++s) cookies.push_back(e.launch(s));
  e.steps(1000);
  REQUIRE(e.cqes.empty());
  CHECK(e.counts[kWindowStall] > 500);
  CHECK(status_of(e.wait(e.launch(3))) == "OK");
  for (uint64_t cookie : cookies) CHECK(status_of(e.wait(cookie)) == "OK");
}

TEST_CASE("me: a lone subgraph fills the window, but not with what may sleep", "[me]") {
  // It holds all 32 slots with transfers; then a WAIT enters, others come, and the last wakes them all.
  Engine e;
  e.set_up();
  for (unsigned s = 0; s < 3; ++s) {
    Graph g;
    for (uint32_t i = 0; i < 40; ++i) g.push_back(write(s, i, s));
    g.push_back(wait(s, 1, true));
    for (uint32_t i = 41; i < 120; ++i) {
      g.push_back(write(s, i, s));
      after(g.back(), 40);
    }
    e.add_good(s, g);
  }
  Graph waker;
  for (uint32_t i = 0; i < 40; ++i) waker.push_back(reduce(3, i));
  for (unsigned s = 0; s < 3; ++s) {
    waker.push_back(set(s, 1));
    waker.back().sync = true;
  }
  e.add_good(3, waker);
  for (bool others_first : {false, true}) {
    CAPTURE(others_first);
    const uint64_t fetched = e.counts[kFetched];
    std::vector<uint64_t> cookies;
    e.hold_tx = true;
    cookies.push_back(e.launch(0));
    e.steps(300);
    CHECK(e.counts[kFetched] - fetched == kWindow);
    if (others_first) {  // they come while nothing is free
      for (unsigned s = 1; s < 4; ++s) cookies.push_back(e.launch(s));
      e.steps(300);
      CHECK(e.counts[kFetched] - fetched == kWindow);
    }
    e.hold_tx = false;
    e.steps(500);
    if (!others_first) {
      // 40 transfers are done, and asleep stays what leaves two slots to each of the others.
      CHECK(e.counts[kFetched] - fetched == 40 + kWindow - 6);
      for (unsigned s = 1; s < 4; ++s) cookies.push_back(e.launch(s));
    }
    for (uint64_t cookie : cookies) CHECK(status_of(e.wait(cookie)) == "OK");
  }
}

TEST_CASE("me: more launches than contexts queue and all complete", "[me]") {
  Engine e;
  e.set_up();
  std::vector<uint64_t> cookies;
  for (unsigned s = 0; s < kNumSubgraphs; ++s) e.add_good(s, {wait(s, 1, true), write(s, 1, s % kConnsUsed)});
  for (unsigned s = 0; s < kNumSubgraphs; ++s) cookies.push_back(e.launch(s));
  e.steps(500);
  REQUIRE(e.cqes.empty());
  for (unsigned s = 0; s < kNumSubgraphs; ++s) e.signal(kNumSubgraphs - 1 - s, 1);
  for (uint64_t cookie : cookies) CHECK(status_of(e.wait(cookie)) == "OK");
}

TEST_CASE("me: launches and registrations out of turn are refused (case rtl 29)", "[me]") {
  Engine e;
  e.set_up();
  e.add_good(5, {wait(9, 1, true)});
  auto status = [&](DbOp op, unsigned subgraph) {
    return status_of(e.wait(e.ring(op, subgraph, 1, Engine::address_of(5))));
  };
  CHECK(status(DbOp::LAUNCH, 6) == "BAD_SUBGRAPH");
  CHECK(status(DbOp::LAUNCH, kNumSubgraphs + 5) == "BAD_SUBGRAPH");
  CHECK(status(DbOp::REGISTER, kNumSubgraphs + 5) == "BAD_SUBGRAPH");
  CHECK(status(DbOp::UNREGISTER, 6) == "BAD_SUBGRAPH");
  CHECK(status(DbOp::ABORT, 5) == "BAD_SUBGRAPH");
  const uint64_t running = e.launch(5);
  e.steps(200);
  CHECK(status(DbOp::LAUNCH, 5) == "BAD_SUBGRAPH");
  CHECK(status(DbOp::REGISTER, 5) == "BAD_SUBGRAPH");
  CHECK(status(DbOp::UNREGISTER, 5) == "BAD_SUBGRAPH");
  CHECK(status(static_cast<DbOp>(0), 5) == "BAD_OPCODE");
  CHECK(status(static_cast<DbOp>(200), 5) == "BAD_OPCODE");
  for (size_t byte : {size_t{0}, size_t{39}}) {
    Doorbell d;
    d.op = DbOp::LAUNCH;
    d.subgraph = 5;
    d.resv1[byte] = 0x80;
    CHECK(status_of(e.wait(e.ring(d))) == "BAD_FLAGS");
  }
  Doorbell d;
  d.op = DbOp::LAUNCH;
  d.subgraph = 5;
  d.group = weft::wire::kOrderGroups + 1;
  CHECK(status_of(e.wait(e.ring(d))) == "BAD_FLAGS");
  e.signal(9, 1);
  CHECK(status_of(e.wait(running)) == "OK");
  CHECK(status(DbOp::UNREGISTER, 5) == "OK");
  CHECK(status(DbOp::LAUNCH, 5) == "BAD_SUBGRAPH");
  CHECK(e.counts[kRefused] == 14);
}

TEST_CASE("me: launches of one group run one after another, groups beside each other", "[me][random]") {
  // Each subgraph waits for a semaphore of its own: a group goes on only when its first is let go, whatever
  // the order in which those behind it are, and the other groups do not mind.
  Engine e;
  e.set_up();
  constexpr unsigned kGroups = weft::wire::kOrderGroups, kEach = 5;
  for (unsigned s = 0; s < kGroups * kEach; ++s)
    e.add_good(s, {wait(s, 1, true), write(s, 1, s % kConnsUsed)});
  std::vector<std::vector<uint64_t>> cookies(kGroups);
  for (unsigned k = 0; k < kEach; ++k)
    for (unsigned g = 0; g < kGroups; ++g) cookies[g].push_back(e.launch(g * kEach + k, g + 1));
  e.steps(800);
  CHECK(e.counts[kLaunch] == kGroups);  // one of each has a context
  for (unsigned g = 0; g < kGroups; ++g)
    for (unsigned k = kEach - 1; k > 0; --k) e.signal(g * kEach + k, 1);
  e.steps(800);
  CHECK(e.cqes.empty());
  CHECK(e.counts[kLaunch] == kGroups);
  for (unsigned g = kGroups; g-- > 0;) {
    e.signal(g * kEach, 1);
    uint64_t last = 0;
    for (unsigned k = 0; k < kEach; ++k) {
      const Cqe c = e.wait(cookies[g][k]);
      CHECK(status_of(c) == "OK");
      CHECK(c.cycles > last);
      last = c.cycles;
    }
    CHECK(e.counts[kLaunch] == kGroups + (kGroups - g) * (kEach - 1));
  }
  // One that is given up while it waits for its group ends in its turn.
  const uint64_t first = e.launch(0, 1), second = e.launch(1, 1), third = e.launch(2, 1);
  e.steps(200);
  CHECK(status_of(e.wait(e.ring(DbOp::ABORT, 1))) == "OK");
  e.steps(200);
  CHECK(e.cqes.empty());
  e.signal(0, 1);
  e.signal(2, 1);
  CHECK(status_of(e.wait(first)) == "OK");
  CHECK(status_of(e.wait(second)) == "FLUSHED");
  CHECK(status_of(e.wait(third)) == "OK");
}

TEST_CASE("me: an entry that fails ends its subgraph, and only that", "[me][random]") {
  Rng rng(weft::test::seed(), 7);
  Options options;
  options.stall = Profile::Light;
  options.tx = {0, 300};
  options.nmc = {0, 200};
  Engine e(options);
  e.set_up();
  fill_full_sems(e);
  unsigned pair_sem = kPairSems;
  // Graphs of transfers alone: a dead subgraph must not leave values in semaphores.
  std::vector<Random> graphs;
  for (unsigned s = 0; s < 6; ++s) {
    Random r = random_graph(rng, s, 80, pair_sem);
    for (uint32_t i = 0; i < r.graph.size(); ++i) {
      if (r.graph[i].opcode == WqeOp::WAIT || r.graph[i].opcode == WqeOp::SET) {
        const Wqe old = r.graph[i];
        r.graph[i] = nop();
        r.graph[i].has_dep0 = old.has_dep0;
        r.graph[i].dep0 = old.dep0;
      }
    }
    graphs.push_back(r);
    e.add_good(s, r.graph);
  }
  double p = 0.02;
  e.status_of = [&](unsigned subgraph, uint32_t) {
    return subgraph < 4 && rng.chance(p) ? (rng.chance(0.5) ? Err::RETRY_LIMIT : Err::REMOTE_KEY) : Err::OK;
  };
  std::vector<uint64_t> cookies(graphs.size(), 0);
  unsigned ended = 0, failed = 0;
  while (ended < 150) {
    const auto k = static_cast<unsigned>(rng.below(graphs.size()));
    if (cookies[k] == 0 && rng.chance(0.05)) cookies[k] = e.launch(k);
    e.step();
    while (!e.cqes.empty()) {
      const Cqe cqe = e.cqes.front();
      e.cqes.pop_front();
      REQUIRE(cqe.cookie == cookies[cqe.subgraph]);
      cookies[cqe.subgraph] = 0;
      ++ended;
      failed += cqe.status != Err::OK;
      if (cqe.subgraph >= 4) CHECK(status_of(cqe) == "OK");
      if (cqe.status != Err::OK) {
        // The first entry that failed is the one reported, or one that failed within a few cycles of it.
        CHECK((cqe.status == Err::RETRY_LIMIT || cqe.status == Err::REMOTE_KEY));
      }
    }
  }
  p = 0;
  e.drain();
  CHECK(failed > 30);
  CHECK(failed < ended);
  CHECK(e.counts[kFailed] >= failed);
  CHECK(e.counts[kFlushed] > 0);
  CHECK(e.counts[kDone] == e.counts[kFetched]);
}

TEST_CASE("me: the failing entry, its status and its connection are reported", "[me]") {
  Engine e;
  e.set_up();
  Graph g;
  for (uint32_t i = 0; i < 10; ++i) {
    g.push_back(write(2, i, i % kConnsUsed));
    if (i > 0) after(g.back(), static_cast<uint16_t>(i - 1));
  }
  e.add_good(2, g);
  for (uint32_t bad : {0u, 6u, 9u}) {
    e.status_of = [bad](unsigned, uint32_t entry) { return entry == bad ? Err::REMOTE_BOUNDS : Err::OK; };
    const Cqe cqe = e.wait(e.launch(2));
    CHECK(status_of(cqe) == "REMOTE_BOUNDS");
    CHECK(cqe.entry == bad);
    CHECK(cqe.conn == bad % kConnsUsed);
  }
  e.status_of = nullptr;
  CHECK(status_of(e.wait(e.launch(2))) == "OK");
}

TEST_CASE("me: an abort ends a WAIT that is never met and names it", "[me]") {
  Engine e;
  e.set_up();
  Graph g{nop(), write(1, 1), wait(77, 5, true), reduce(1, 3), reduce(1, 4)};
  after(g[2], 1);
  after(g[3], 2);
  e.add_good(1, g);
  for (int round = 0; round < 3; ++round) {
    const uint64_t launch = e.launch(1);
    e.steps(400);
    const uint64_t abort = e.ring(DbOp::ABORT, 1);
    CHECK(status_of(e.wait(abort)) == "OK");
    const Cqe cqe = e.wait(launch);
    CHECK(status_of(cqe) == "FLUSHED");
    CHECK(cqe.entry == 2);
    CHECK(e.runs[1].good[4]);
    CHECK_FALSE(e.runs[1].issued[3]);
  }
  // The WAIT that was given up has taken nothing: 5 is enough for one run.
  e.signal(77, 5);
  CHECK(status_of(e.wait(e.launch(1))) == "OK");
}

TEST_CASE("me: an abort awaits what is outstanding and reaches a queued launch", "[me]") {
  Engine e;
  e.set_up();
  e.hold_tx = true;
  for (unsigned s = 0; s < 5; ++s) e.add_good(s, {write(s, 0, s), write(s, 1, s)});
  std::vector<uint64_t> launches;
  for (unsigned s = 0; s < 5; ++s) launches.push_back(e.launch(s));
  e.steps(300);  // 0..3 run, 4 is queued
  for (unsigned s : {1u, 4u}) CHECK(status_of(e.wait(e.ring(DbOp::ABORT, s))) == "OK");
  e.steps(500);
  CHECK(
      e.cqes.empty());  // no context is free before the transport answers, neither is the memory of the WRITE
  e.hold_tx = false;
  for (unsigned s = 0; s < 5; ++s) {
    const Cqe cqe = e.wait(launches[s]);
    CHECK(status_of(cqe) == (s == 1 || s == 4 ? "FLUSHED" : "OK"));
    CHECK(cqe.entry == (s == 1 || s == 4 ? 0 : 2));
  }
  CHECK_FALSE(e.runs[4].issued[0]);
  CHECK(status_of(e.wait(e.launch(4))) == "OK");
}

TEST_CASE("me: aborts at any time leave a clean engine", "[me][random]") {
  Rng rng(weft::test::seed(), 8);
  Options options;
  options.stall = Profile::Changing;
  options.tx = {0, 200};
  options.memory = {40, 200};
  Engine e(options);
  e.set_up();
  for (unsigned s = 0; s < 6; ++s) {
    Graph g;
    for (uint32_t i = 0; i < 40; ++i) {
      g.push_back(rng.chance(0.4) ? write(s, i, s) : rng.chance(0.5) ? reduce(s, i) : wait(100, 1, false));
      if (i > 0) after(g.back(), static_cast<uint16_t>(rng.below(i)));
    }
    e.add_good(s, g);
  }
  std::vector<uint64_t> launches(6, 0), aborts(6, 0);
  unsigned ended = 0, flushed = 0;
  while (ended < 150) {
    const auto k = static_cast<unsigned>(rng.below(6));
    if (launches[k] == 0 && aborts[k] == 0 && rng.chance(0.05))
      launches[k] = e.launch(k);
    else if (launches[k] != 0 && aborts[k] == 0 && rng.chance(0.01))
      aborts[k] = e.ring(DbOp::ABORT, k);
    if (rng.chance(0.001)) {  // now and then the WAITs are met for a while
      weft::cfg::Sem sem;
      sem.value = static_cast<uint32_t>(rng.below(2));
      e.configure(weft::cfg::Table::kSem, 100, sem.words());
    }
    e.step();
    while (!e.cqes.empty()) {
      const Cqe cqe = e.cqes.front();
      e.cqes.pop_front();
      if (cqe.op == DbOp::ABORT) {
        CHECK((status_of(cqe) == "OK" || status_of(cqe) == "BAD_SUBGRAPH"));
        aborts[cqe.subgraph] = 0;
      } else {
        CHECK((status_of(cqe) == "OK" || status_of(cqe) == "FLUSHED"));
        if (cqe.status == Err::FLUSHED) {
          ++flushed;
          const Run& run = e.runs[cqe.subgraph];
          for (uint32_t i = 0; i < cqe.entry; ++i) CHECK(run.good[i]);  // it names the oldest unfinished one
        }
        launches[cqe.subgraph] = 0;
        ++ended;
      }
    }
  }
  CHECK(flushed > 30);
  CHECK(flushed < ended);
  weft::cfg::Sem met;
  met.value = 1;
  e.configure(weft::cfg::Table::kSem, 100, met.words());
  e.drain();
  CHECK(e.counts[kDone] == e.counts[kFetched]);
  CHECK(e.counts[kFinishOk] + e.counts[kFinishBad] == e.counts[kLaunch]);
}

TEST_CASE("me: semaphores count exactly and never wrap", "[me]") {
  Engine e;
  e.set_up();
  auto level = [&](unsigned sem, uint32_t value) {  // semaphore == value: reaches it and not one more
    e.add_good(60, {wait(sem, value, false)});
    const bool reached = e.wait(e.launch(60)).status == Err::OK;
    if (value == 0xffffffff) return reached;
    e.add_good(61, {wait(sem, value + 1, false)});
    const uint64_t above = e.launch(61);
    e.steps(300);
    const bool stays = e.cqes.empty();
    if (stays) e.wait(e.ring(DbOp::ABORT, 61));
    e.wait(above);
    return reached && stays;
  };
  CHECK(level(255, 0));  // never written: 0
  for (int i = 0; i < 100; ++i) e.signal(7, 3);
  e.drain();
  CHECK(level(7, 300));
  e.add_good(0, {set(7, 5), wait(7, 100, true), set(7, 1), wait(7, 6, true)});
  CHECK(status_of(e.wait(e.launch(0))) == "OK");
  CHECK(level(7, 200));
  weft::cfg::Sem sem;
  sem.value = 0xfffffff0;
  e.configure(weft::cfg::Table::kSem, 8, sem.words());
  e.drain();
  e.signal(8, 15);
  e.drain();
  CHECK(level(8, 0xffffffff));
  CHECK(e.counts[kSemSaturated] == 0);
  e.signal(8, 1);
  e.signal(8, 0xffffffff);
  e.drain();
  CHECK(e.counts[kSemSaturated] == 2);
  CHECK(level(8, 0xffffffff));
  // A signal to a semaphore that does not exist changes nothing, also not the one its low bits name.
  e.signal(kNumSems + 7, 1000);
  e.drain();
  CHECK(e.counts[kSignalBad] == 1);
  CHECK(level(7, 200));
}

TEST_CASE("me: the oldest WAIT that is met takes the value", "[me]") {
  Engine e;
  e.set_up();
  e.keep_events = true;
  Graph g;
  for (int i = 0; i < 20; ++i) g.push_back(wait(30, 2, true));
  e.add_good(0, g);
  const uint64_t cookie = e.launch(0);
  e.steps(400);
  for (int i = 0; i < 20; ++i) {
    e.signal(30, 1);
    e.steps(150);
    e.signal(30, 1);
    e.steps(150);
  }
  CHECK(status_of(e.wait(cookie)) == "OK");
  uint32_t next = 0;
  for (const Event& event : e.events) {
    if (!event.issue) CHECK(event.entry == next++);
  }
  CHECK(next == 20);
  // Asleep, nothing is looked at: 20 first looks, and per update the sleepers of that moment.
  CHECK(e.counts[kWaitParked] + 20 == e.counts[kIssueLocal]);
}

TEST_CASE("me: entries changed behind the firmware's back cannot hang or confuse the engine", "[me]") {
  struct Case {
    const char* what;
    std::function<void(Wqe&)> change;
    const char* status;
  };
  const Case cases[] = {
      {"opcode", [](Wqe& w) { w.opcode = WqeOp::CALL; }, "BAD_OPCODE"},
      {"opcode 255", [](Wqe& w) { w.opcode = static_cast<WqeOp>(255); }, "BAD_OPCODE"},
      {"connection", [](Wqe& w) { w.conn = kNumConns; }, "BAD_CONN"},
      {"semaphore", [](Wqe& w) { w.opcode = WqeOp::SET, w.sem = kNumSems; }, "BAD_SEM"},
      {"length of a WRITE", [](Wqe& w) { w.length = weft::wire::kMaxWqeLength + 1; }, "BAD_LENGTH"},
      {"length of a REDUCE", [](Wqe& w) { w = reduce(0, 3), w.length = 0xfffffffc; }, "BAD_LENGTH"},
      {"the longest length", [](Wqe& w) { w.length = weft::wire::kMaxWqeLength; }, "OK"},
      {"dependency on itself", [](Wqe& w) { after(w, 3); }, "OK"},
      {"dependency on a later entry", [](Wqe& w) { after(w, 5); }, "OK"},
  };
  Engine e;
  e.set_up();
  Graph g;
  for (uint32_t i = 0; i < 8; ++i) g.push_back(write(0, i));
  e.add_good(0, g);
  for (const Case& c : cases) {
    CAPTURE(c.what);
    e.runs[0].graph = g;
    c.change(e.runs[0].graph[3]);  // the checker knows of it too
    const Wqe changed = e.runs[0].graph[3];
    // Those two dependencies are on nothing in the window, so on nothing.
    e.runs[0].graph[3].has_dep0 = false;
    changed.pack(e.line(Engine::address_of(0) + 3 * 64).data());
    const Cqe cqe = e.wait(e.launch(0));
    CHECK(status_of(cqe) == c.status);
    if (cqe.status != Err::OK) CHECK(cqe.entry == 3);
  }
}

TEST_CASE("me: a read that fails ends the subgraph at that entry", "[me]") {
  Engine e;
  e.set_up();
  Graph g;
  for (uint32_t i = 0; i < 40; ++i) g.push_back(nop());
  e.add_good(0, g);
  e.bad_lines.insert((Engine::address_of(0) >> 6) + 21);
  e.line(Engine::address_of(0) + 21 * 64).fill(0xff);
  const Cqe cqe = e.wait(e.launch(0));
  CHECK(status_of(cqe) == "MEM_ERROR");
  CHECK(cqe.entry == 21);
  CHECK(e.counts[kFetchError] == 1);
  e.bad_lines.clear();
  Wqe{}.pack(e.line(Engine::address_of(0) + 21 * 64).data());
  CHECK(status_of(e.wait(e.launch(0))) == "OK");
}

TEST_CASE("me: completions wait for a ring, start anew with another, and refused writes are counted",
          "[me]") {
  Engine e;
  e.set_up(false);
  const uint64_t early = e.ring(DbOp::UNREGISTER, 9);
  e.steps(500);
  CHECK(e.cqes_seen == 0);
  e.set_ring(kRing, kRingEntries);
  CHECK(status_of(e.wait(early)) == "BAD_SUBGRAPH");
  e.add_good(0, {nop()});
  for (uint64_t i = 0; i < 3 * kRingEntries; ++i)
    CHECK(status_of(e.wait(e.launch(0))) == "OK");  // around the ring
  // Another ring of another size, then the first one again, each with nothing under way.
  for (uint64_t entries : {16u, 128u}) {
    e.drain();
    e.set_ring(kRing + 0x10'0000 * entries, entries);
    for (uint64_t i = 0; i < 2 * entries + 3; ++i) CHECK(status_of(e.wait(e.launch(0))) == "OK");
    e.drain();
    e.set_ring(kRing, kRingEntries);
    CHECK(status_of(e.wait(e.launch(0))) == "OK");
  }
  e.drain();
  e.refuse_writes = true;
  e.wait(e.launch(0));
  e.drain();
  CHECK(e.counts[kCqeError] == 1);
}

TEST_CASE("me: a new ring in the midst of completions takes over at one of them", "[me][random]") {
  // Doorbells that the engine answers by itself keep completions coming as fast as the queue takes
  // them; which ring each belongs to, the checker knows to the cycle.
  Rng rng(weft::test::seed(), 9);
  for (Profile profile : {Profile::None, Profile::Changing}) {
    CAPTURE(name_of(profile));
    Options options;
    options.stall = profile;
    Engine e(options);
    e.set_up();
    for (uint64_t round = 1; round <= 60; ++round) {
      uint64_t last = 0;
      for (int i = 0; i < 12; ++i) last = e.ring(DbOp::UNREGISTER, 9);
      e.steps(rng.below(40));
      e.set_ring(kRing + 0x10'0000 * round, uint64_t{1} << rng.range(4, 7));
      e.wait(last);
      e.cqes.clear();
    }
    e.drain();
    CHECK(e.counts[kCqe] == e.counts[kDoorbell]);
    CHECK(e.cqes_seen == e.counts[kCqe]);
  }
}

TEST_CASE("me: graphs that begin anywhere in a page are read without crossing one", "[me]") {
  // Reads are cut at every KB; the bench complains of one across 4 KB. The CPU-M and the launch read alike.
  Engine e;
  e.set_up();
  for (uint32_t first : {1U, 15U, 37U, 63U}) {
    for (uint32_t count : {17U, 300U}) {
      CAPTURE(first, count);
      Graph g;
      for (uint32_t i = 0; i < count; ++i) g.push_back(write(0, i));
      const uint64_t at = Engine::address_of(0) + uint64_t{64} * first;
      for (uint32_t i = 0; i < count; ++i) g[i].pack(e.line(at + uint64_t{64} * i).data());
      e.runs[0].graph = g;
      REQUIRE(e.wait(e.ring(DbOp::REGISTER, 0, count, at)).status == Err::OK);
      CHECK(e.wait(e.launch(0)).status == Err::OK);
      CHECK(e.wait(e.ring(DbOp::UNREGISTER, 0)).status == Err::OK);
    }
  }
}

TEST_CASE("me: of four subgraphs none holds more of the window than its part", "[me]") {
  // Three would fill what the fourth, asleep, does not use.
  Options options;
  options.tx = {2000, 2000};
  Engine e(options);
  e.set_up();
  constexpr uint32_t kEntries = 40;
  std::vector<uint64_t> cookies;
  for (unsigned s = 0; s < 3; ++s) {
    Graph g;
    for (uint32_t i = 0; i < kEntries; ++i) g.push_back(write(s, i, s));
    e.add_good(s, g);
  }
  e.add_good(3, {wait(5, 1, true)});
  for (unsigned s = 0; s < 4; ++s) cookies.push_back(e.launch(s));
  // Transfers that entered while a subgraph was alone end within one latency.
  e.steps(2600);
  unsigned most = 0;
  for (int i = 0; i < 4000; ++i) {
    e.step();
    for (unsigned s = 0; s < 3; ++s) {
      unsigned held = 0;
      for (bool in_flight : e.runs[s].in_flight) held += in_flight;
      most = std::max(most, held);
    }
  }
  CHECK(most == 2 + (kWindow - 4 * 2) / 4);
  e.signal(5, 1);
  for (uint64_t cookie : cookies) CHECK(e.wait(cookie).status == Err::OK);
}

TEST_CASE("me: signals without end do not hold up what subgraphs do with semaphores", "[me]") {
  Engine e;
  e.set_up();
  Graph g;
  for (uint32_t i = 0; i < 100; ++i) g.push_back(set(17, 1));
  e.add_good(0, g);
  for (int i = 0; i < 4000; ++i) e.signal(18, 1);
  e.steps(100);  // they are under way, one a cycle
  const uint64_t begin = e.cycle();
  const Cqe cqe = e.wait(e.launch(0));
  CHECK(cqe.status == Err::OK);
  CHECK(e.cycle() - begin < 1500);  // long before the last signal
  e.drain();
}
