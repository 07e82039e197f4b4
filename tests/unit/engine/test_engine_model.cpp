// SPDX-License-Identifier: Apache-2.0
//
// The model of the message engine (sw/ref/engine.h) against docs/me.md: the table of checks that the firmware
// is held to, the life of subgraphs, the order of entries, errors, aborts, semaphores, arithmetic.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "bad_entries.h"
#include "sw/ref/engine.h"
#include "sw/ref/reduction.h"
#include "weft_test.h"

using namespace me;
using weft::ref::EngineCounters;
using weft::ref::kNever;
using weft::ref::kNs;
using weft::ref::kUs;
using weft::ref::Ps;
using weft::test::Rng;

namespace {

// Memory of lines, a transport that answers when it is told to, and a checker of order.
class World : public weft::ref::EngineEnv {
 public:
  World() {
    engine.set_region(0, {true, true, false, kReadBase, kReadBase + kRegionBytes});
    engine.set_region(1, {true, false, true, kWriteBase, kWriteBase + kRegionBytes});
    engine.set_region(2, {true, true, true, kBothBase, kBothBase + kBothBytes});
    for (unsigned c = 0; c < kConnsUsed; ++c) engine.set_link(c, c == 4 ? 1 : 0, true);
    engine.run_cpu(0, true);
  }
  void set_ring() { engine.set_ring(now, kRing, kRingEntries - 1); }

  bool read(uint64_t va, uint8_t* bytes, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      if (bad_lines.count((va + i) >> 6) != 0) return false;
      bytes[i] = memory[(va + i) >> 6][(va + i) % 64];
    }
    return true;
  }
  bool write(uint64_t va, const uint8_t* bytes, uint32_t count) override {
    if (refuse_writes) return false;
    for (uint32_t i = 0; i < count; ++i) memory[(va + i) >> 6][(va + i) % 64] = bytes[i];
    if (va >= kRing && va < kRing + kRingEntries * Cqe::kBytes) {
      cqes.push_back(Cqe::unpack(bytes));
      if (cqes.back().seq != ++seq) problem = "completion out of sequence";
      if (va != kRing + (seq - 1) % kRingEntries * Cqe::kBytes) problem = "completion in the wrong place";
    }
    return true;
  }
  Err post_write(Ps, uint64_t tag, const Wqe& w) override {
    if (refuse_post) return Err::BAD_CONN;
    posted.push_back({tag, w});
    return Err::OK;
  }
  uint64_t clock(Ps t) override { return static_cast<uint64_t>(t / kNs); }
  void trace(Ps, bool done, uint16_t subgraph, uint32_t entry, WqeOp, Err status) override {
    Seen& s = seen[subgraph];
    if (done) {
      if (!s.done.insert(entry).second) problem = "done twice";
      if (status == Err::OK)
        s.good.insert(entry);
      else
        s.dead = true;
      return;
    }
    if (!s.issued.insert(entry).second) problem = "issued twice";
    if (s.dead) problem = "issued behind a failure";
    for (uint32_t i = 0; s.graph != nullptr && i < entry; ++i)
      if (waits_for(*s.graph, entry, i) && s.good.count(i) == 0)
        problem = "entry " + std::to_string(entry) + " issued before " + std::to_string(i) + " was done";
  }

  struct Posted {
    uint64_t tag;
    Wqe w;
  };
  struct Seen {
    const Graph* graph = nullptr;
    std::set<uint32_t> issued, done, good;
    bool dead = false;
  };

  static uint64_t address_of(unsigned subgraph) { return kGraphs + subgraph * kGraphBytes; }
  void put_entry(unsigned subgraph, uint32_t entry, const Wqe& w) {
    w.pack(memory[(address_of(subgraph) >> 6) + entry].data());
  }
  void ring(DbOp op, unsigned subgraph, uint32_t count = 0, uint64_t addr = 0, uint64_t cookie = 7) {
    Doorbell d;
    d.op = op;
    d.subgraph = static_cast<uint16_t>(subgraph);
    d.count = count;
    d.addr = addr;
    d.cookie = cookie;
    engine.doorbell(now, d);
  }
  void launch(unsigned subgraph, uint64_t cookie = 7) {
    seen[subgraph] = {seen[subgraph].graph, {}, {}, {}, false};
    ring(DbOp::LAUNCH, subgraph, 0, 0, cookie);
  }
  // Runs what happens by itself.
  void run() {
    for (Ps t; (t = engine.next_timer()) != kNever;) {
      REQUIRE(t >= now);
      now = t;
      engine.on_timer(now);
    }
  }
  void answer(size_t k, Err status = Err::OK) {
    const Posted p = posted[k];
    posted.erase(posted.begin() + static_cast<long>(k));
    now += 1 * kUs;
    engine.written(now, p.tag, status);
  }
  void run_all() {
    for (run(); !posted.empty(); run()) answer(0);
  }
  Cqe take() {
    run();
    REQUIRE(!cqes.empty());
    const Cqe e = cqes.front();
    cqes.pop_front();
    return e;
  }
  Cqe add(unsigned subgraph, const Graph& graph) {
    for (uint32_t i = 0; i < graph.size(); ++i) put_entry(subgraph, i, graph[i]);
    ring(DbOp::REGISTER, subgraph, static_cast<uint32_t>(graph.size()), address_of(subgraph));
    return take();
  }
  void add_good(unsigned subgraph, const Graph& graph) { REQUIRE(add(subgraph, graph).status == Err::OK); }

  Ps now = 0;
  std::map<uint64_t, Line> memory;
  std::set<uint64_t> bad_lines;
  bool refuse_writes = false, refuse_post = false;
  std::deque<Posted> posted;
  std::deque<Cqe> cqes;
  uint32_t seq = 0;
  std::map<unsigned, Seen> seen;
  std::string problem;
  weft::ref::Engine engine{{}, *this};
};

// What the counters tell of every engine at rest.
void check_rest(const World& w) {
  const EngineCounters& c = w.engine.counters();
  CHECK(c.fetched == c.done);
  CHECK(c.launch == c.finish_ok + c.finish_bad);
  CHECK(c.doorbell == c.cqe);
  CHECK(w.engine.idle());
  CHECK(w.engine.state() == "");
  CHECK(w.problem == "");
}

std::string name_of(const Cqe& e) {
  return weft::wire::name(e.status);
}

}  // namespace

TEST_CASE("engine: every kind of bad entry is refused by number and code", "[engine]") {
  World w;
  w.set_ring();
  for (const Bad& c : kCases) {
    Graph g(8, nop());
    g[5] = good_write();
    c.make(g[5]);
    const Cqe e = w.add(3, g);
    CAPTURE(c.what);
    CHECK(name_of(e) == c.status);
    CHECK(e.entry == (e.status == Err::OK ? 8 : 5));
    CHECK(e.op == DbOp::REGISTER);
  }
  check_rest(w);
}

TEST_CASE("engine: subgraphs that are no subgraph are refused", "[engine]") {
  World w;
  w.set_ring();
  const auto status = [&](uint32_t count, uint64_t addr) {
    w.ring(DbOp::REGISTER, 2, count, addr);
    return name_of(w.take());
  };
  CHECK(status(0, kGraphs) == "BAD_SUBGRAPH");
  CHECK(status(weft::wire::kMaxWqes + 1, kGraphs) == "BAD_SUBGRAPH");
  CHECK(status(1, kGraphs + 32) == "BAD_ALIGN");
  CHECK(status(1, kGraphs) == "OK");  // zeros are a NOP
  w.bad_lines.insert((kGraphs >> 6) + 37);
  w.ring(DbOp::REGISTER, 2, 100, kGraphs);
  const Cqe e = w.take();
  CHECK(name_of(e) == "MEM_ERROR");
  CHECK(e.entry == 37);
  w.launch(2);
  CHECK(name_of(w.take()) == "BAD_SUBGRAPH");  // what was refused is not registered
  check_rest(w);
}

TEST_CASE("engine: doorbells out of turn are refused", "[engine]") {
  World w;
  w.set_ring();
  const auto status = [&](DbOp op, unsigned subgraph) {
    w.ring(op, subgraph, 1, World::address_of(1), 0x1234);
    const Cqe e = w.take();
    CHECK(e.cookie == 0x1234);
    CHECK(e.op == op);
    return name_of(e);
  };
  for (DbOp op : {DbOp::LAUNCH, DbOp::UNREGISTER, DbOp::ABORT}) CHECK(status(op, 1) == "BAD_SUBGRAPH");
  CHECK(status(DbOp::REGISTER, kNumSubgraphs) == "BAD_SUBGRAPH");
  CHECK(status(static_cast<DbOp>(9), 1) == "BAD_OPCODE");
  w.add_good(1, {wait(0, 1, true)});
  CHECK(status(DbOp::ABORT, 1) == "BAD_SUBGRAPH");
  w.launch(1);
  w.run();
  for (DbOp op : {DbOp::LAUNCH, DbOp::REGISTER, DbOp::UNREGISTER}) CHECK(status(op, 1) == "BAD_SUBGRAPH");
  w.engine.signal(w.now, 0, 1);
  CHECK(name_of(w.take()) == "OK");
  CHECK(status(DbOp::UNREGISTER, 1) == "OK");
  CHECK(status(DbOp::LAUNCH, 1) == "BAD_SUBGRAPH");
  Doorbell dirty;
  dirty.op = DbOp::REGISTER;
  dirty.resv1[39] = 1;
  w.engine.doorbell(w.now, dirty);
  CHECK(name_of(w.take()) == "BAD_FLAGS");
  Doorbell group;
  group.op = DbOp::LAUNCH;
  group.group = weft::wire::kOrderGroups + 1;
  w.engine.doorbell(w.now, group);
  CHECK(name_of(w.take()) == "BAD_FLAGS");
  check_rest(w);
}

TEST_CASE("engine: launches of one group run one after another, groups beside each other", "[engine]") {
  World w;
  w.set_ring();
  for (unsigned s = 0; s < 6; ++s) w.add_good(s, {wait(s, 1, true)});
  const auto launch = [&](unsigned s, unsigned group) {
    Doorbell d;
    d.op = DbOp::LAUNCH;
    d.subgraph = static_cast<uint16_t>(s);
    d.group = static_cast<uint8_t>(group);
    d.cookie = s;
    w.engine.doorbell(w.now, d);
    w.run();
  };
  // Three of group 1, then of others: those do not wait behind the three.
  for (unsigned s : {0, 1, 2}) launch(s, 1);
  for (unsigned s : {3, 4}) launch(s, s);
  launch(5, 0);
  for (unsigned s : {1, 2, 3, 4, 5}) {
    w.engine.signal(w.now, s, 1);
    w.run();
  }
  for (unsigned s : {3, 4, 5}) CHECK(w.take().cookie == s);
  CHECK(w.cqes.empty());
  w.engine.signal(w.now, 0, 1);
  w.run();
  for (unsigned s : {0, 1, 2}) CHECK(w.take().cookie == s);
  check_rest(w);
}

TEST_CASE("engine: random graphs issue in order and complete", "[engine][random]") {
  Rng rng;
  for (int round = 0; round < 200; ++round) {
    World w;
    w.set_ring();
    Graph g;
    const auto n = static_cast<uint32_t>(1 + rng.below(120));
    for (uint32_t i = 0; i < n; ++i) {
      Wqe e;
      switch (rng.below(5)) {
        case 0: e = write(0, i, static_cast<unsigned>(rng.below(kConnsUsed))); break;
        case 1: e = reduce(0, i); break;
        case 2: e = set(10, 1); break;
        case 3: e = wait(static_cast<unsigned>(20 + rng.below(4)), 1, true); break;
        default: e = nop();
      }
      for (uint64_t d = rng.below(3); i > 0 && d > 0; --d)
        after(e, static_cast<uint16_t>(i - 1 - rng.below(std::min<uint64_t>(i, 40))));
      e.sync = rng.chance(0.03);
      e.rx_sync = rng.chance(0.05);
      e.fence = rng.chance(0.03);
      g.push_back(e);
    }
    w.add_good(0, g);
    w.seen[0].graph = &g;
    w.launch(0, 0xabc);
    while (w.cqes.empty()) {
      w.run();
      if (!w.posted.empty() && rng.chance(0.7))
        w.answer(rng.below(w.posted.size()));
      else
        w.engine.signal(w.now, static_cast<uint32_t>(20 + rng.below(4)), 1);
      REQUIRE(w.problem == "");
    }
    CAPTURE(round, n);
    const Cqe e = w.take();
    CHECK(e.status == Err::OK);
    CHECK(e.entry == n);
    CHECK(e.cookie == 0xabc);
    CHECK(w.seen[0].done.size() == n);
    check_rest(w);
  }
}

TEST_CASE("engine: the checker of order notices a dependency that is not kept", "[engine][fault]") {
  World w;
  w.set_ring();
  Graph meant{me::write(0, 0), nop()};
  w.add_good(0, meant);
  after(meant[1], 0);
  w.seen[0].graph = &meant;
  w.launch(0);
  w.run_all();
  CHECK(w.problem == "entry 1 issued before 0 was done");
}

TEST_CASE("engine: an entry that fails ends its subgraph, and only that", "[engine]") {
  World w;
  w.set_ring();
  Graph g{me::write(1, 0, 2), me::write(1, 1, 3), nop()};
  g[2].sync = true;
  w.add_good(1, g);
  w.add_good(2, {wait(5, 1, true)});
  w.launch(1, 11);
  w.launch(2, 22);
  w.run();
  REQUIRE(w.posted.size() == 2);
  w.answer(1, Err::REMOTE_KEY);
  w.run();
  CHECK(w.cqes.empty());  // one is still outstanding
  w.answer(0);
  const Cqe e = w.take();
  CHECK(e.cookie == 11);
  CHECK(name_of(e) == "REMOTE_KEY");
  CHECK(e.entry == 1);
  CHECK(e.conn == 3);
  CHECK(w.engine.counters().flushed == 1);
  w.engine.signal(w.now, 5, 1);
  CHECK(w.take().cookie == 22);
  w.refuse_post = true;
  w.launch(1, 33);
  CHECK(name_of(w.take()) == "BAD_CONN");
  check_rest(w);
}

TEST_CASE("engine: an abort names the oldest unfinished entry and awaits what is outstanding", "[engine]") {
  World w;
  w.set_ring();
  w.add_good(1, {nop(), write(1, 1, 6), wait(3, 9, false), nop()});
  w.launch(1, 11);
  w.run();
  w.ring(DbOp::ABORT, 1, 0, 0, 99);
  const Cqe answer = w.take();
  CHECK(answer.cookie == 99);
  CHECK(answer.op == DbOp::ABORT);
  CHECK(name_of(answer) == "OK");
  CHECK(w.cqes.empty());
  w.answer(0);
  const Cqe e = w.take();
  CHECK(e.cookie == 11);
  CHECK(name_of(e) == "FLUSHED");
  CHECK(e.entry == 1);
  CHECK(e.conn == 6);
  check_rest(w);

  // One that waits for a context ends as soon as it gets one.
  for (unsigned s = 10; s < 15; ++s) {
    w.add_good(s, {wait(s, 1, true)});
    w.launch(s, s);
  }
  w.ring(DbOp::ABORT, 14, 0, 0, 99);
  CHECK(w.take().cookie == 99);
  w.engine.signal(w.now, 10, 1);
  CHECK(w.take().cookie == 10);
  const Cqe gone = w.take();
  CHECK(gone.cookie == 14);
  CHECK(name_of(gone) == "FLUSHED");
  CHECK(gone.entry == 0);
  for (unsigned s = 11; s < 14; ++s) w.engine.signal(w.now, s, 1);
  w.run();
  CHECK(w.cqes.size() == 3);
  check_rest(w);
}

TEST_CASE("engine: semaphores count exactly, never wrap, and serve the oldest", "[engine]") {
  World w;
  w.set_ring();
  w.add_good(1, {wait(7, 3, true)});
  w.add_good(2, {wait(7, 2, true)});
  w.launch(1, 1);
  w.run();
  w.launch(2, 2);
  w.run();
  w.engine.signal(w.now, 7, 2);
  CHECK(w.take().cookie == 2);  // the older one wants more
  w.engine.signal(w.now, 7, 3);
  CHECK(w.take().cookie == 1);
  CHECK(w.engine.semaphore(7) == 0);
  w.launch(1, 1);
  w.run();
  w.launch(2, 2);
  w.run();
  w.engine.signal(w.now, 7, 4);
  CHECK(w.take().cookie == 1);
  CHECK(w.engine.semaphore(7) == 1);  // the oldest took 3, the other has too little
  w.engine.set_semaphore(w.now, 7, ~uint32_t{0} - 1);
  CHECK(w.take().cookie == 2);
  w.engine.signal(w.now, 7, 9);
  CHECK(w.engine.semaphore(7) == ~uint32_t{0});
  CHECK(w.engine.counters().sem_saturated == 1);
  w.engine.signal(w.now, kNumSems, 1);
  CHECK(w.engine.counters().signal_bad == 1);
  check_rest(w);
}

TEST_CASE("engine: entries changed behind the checks end with the error of docs/me.md", "[engine]") {
  const struct {
    const char* what;
    std::function<void(Wqe&)> make;
    const char* status;
  } cases[] = {
      {"opcode", [](Wqe& e) { e.opcode = WqeOp::READ; }, "BAD_OPCODE"},
      {"connection", [](Wqe& e) { e = write(0, 1, kNumConns); }, "BAD_CONN"},
      {"length", [](Wqe& e) { e = write(0, 1), e.length = weft::wire::kMaxWqeLength + 1; }, "BAD_LENGTH"},
      {"type", [](Wqe& e) { e = good_reduce(), e.dtype = static_cast<Dtype>(14); }, "BAD_TYPE"},
      {"semaphore", [](Wqe& e) { e = wait(kNumSems, 1, true); }, "BAD_SEM"},
      {"misaligned", [](Wqe& e) { e = good_reduce(), e.src0 += 1; }, "BAD_ALIGN"},
      {"wrap", [](Wqe& e) { e = good_reduce(), e.dst = ~uint64_t{0} - 127; }, "BAD_ADDR"},
      {"dependency", [](Wqe& e) { e.has_dep0 = true, e.dep0 = 2; }, "OK"},
  };
  for (const auto& c : cases) {
    World w;
    w.set_ring();
    w.add_good(0, {nop(), nop(), nop()});
    Wqe changed = nop();
    c.make(changed);
    w.put_entry(0, 1, changed);
    w.launch(0);
    w.run_all();
    const Cqe e = w.take();
    CAPTURE(c.what);
    CHECK(name_of(e) == c.status);
    CHECK(e.entry == (e.status == Err::OK ? 3 : 1));
    check_rest(w);
  }
  World w;
  w.set_ring();
  w.add_good(0, {nop(), nop(), nop()});
  w.bad_lines.insert((World::address_of(0) >> 6) + 2);
  w.launch(0);
  const Cqe e = w.take();
  CHECK(name_of(e) == "MEM_ERROR");
  CHECK(e.entry == 2);
  CHECK(w.engine.counters().fetch_error == 1);
  check_rest(w);
}

TEST_CASE("engine: completions wait for a ring, and one that memory refuses is counted", "[engine]") {
  World w;
  w.ring(DbOp::LAUNCH, 1, 0, 0, 1);
  w.ring(DbOp::LAUNCH, 2, 0, 0, 2);
  CHECK(w.cqes.empty());
  CHECK(!w.engine.idle());
  w.set_ring();
  CHECK(w.take().cookie == 1);
  CHECK(w.take().cookie == 2);
  w.refuse_writes = true;
  w.ring(DbOp::LAUNCH, 3);
  CHECK(w.engine.counters().cqe_error == 1);
  CHECK(w.cqes.empty());
  check_rest(w);
}

TEST_CASE("engine: a stopped CPU-M begins again with the subgraph it had", "[engine]") {
  World w;
  w.set_ring();
  w.engine.run_cpu(w.now, false);
  w.put_entry(0, 0, nop());
  w.ring(DbOp::REGISTER, 0, 1, World::address_of(0));
  w.ring(DbOp::REGISTER, 1, 1, World::address_of(0));
  w.run();
  CHECK(w.cqes.empty());
  w.engine.run_cpu(w.now, true);
  CHECK(w.take().subgraph == 0);
  CHECK(w.take().subgraph == 1);
  CHECK(w.engine.served() == 2);
  check_rest(w);
}

TEST_CASE("engine: sources, strides, conversions and limits of a REDUCE", "[engine]") {
  const auto many = [](unsigned n, uint32_t stride) {
    Wqe w = good_reduce();
    w.nsrc = static_cast<uint8_t>(n);
    w.stride = stride;
    return w;
  };
  const auto convert = [](Dtype from, Dtype to, uint32_t length) {
    Wqe w = good_reduce();
    w.dtype = from;
    w.to = to;
    w.length = length;
    return w;
  };
  const struct {
    const char* what;
    Wqe w;
    std::function<void(Wqe&)> change;
    const char* status;
  } cases[] = {
      {"64 sources", many(64, 256), [](Wqe& w) { w.own = 63; }, "OK"},
      {"stride off", many(3, 258), [](Wqe&) {}, "BAD_ALIGN"},
      {"stride off, one source", many(1, 258), [](Wqe&) {}, "OK"},
      {"others to the end", many(4, 512), [](Wqe& w) { w.src1 = kReadEnd - 3 * 512 - w.length; }, "OK"},
      {"others past the end", many(4, 512), [](Wqe& w) { w.src1 = kReadEnd - 3 * 512 - w.length + 4; },
       "BAD_ADDR"},
      {"others wrap", many(64, 0xfffffffc), [](Wqe& w) { w.src1 = kMax - (uint64_t{63} << 32) + 1; },
       "BAD_LENGTH"},
      {"others in no region by far", many(3, 0xfffffffc), [](Wqe&) {}, "BAD_ADDR"},
      {"int8 to int64", convert(Dtype::INT8, Dtype::INT64, 256), [](Wqe& w) { w.src0 += 1; }, "OK"},
      {"int8 to int64, dst off", convert(Dtype::INT8, Dtype::INT64, 256), [](Wqe& w) { w.dst += 4; },
       "BAD_ALIGN"},
      {"int64 to int8, src1 off", convert(Dtype::INT64, Dtype::INT8, 256), [](Wqe& w) { w.src1 += 4; },
       "BAD_ALIGN"},
      {"int64 to int8, any dst", convert(Dtype::INT64, Dtype::INT8, 255), [](Wqe& w) { w.dst += 1; }, "OK"},
      {"int64 to int8, 2 GiB of sources", convert(Dtype::INT64, Dtype::INT8, weft::wire::kMaxWqeLength / 8),
       [](Wqe& w) { w.src0 = w.src1 = kReadBase; }, "OK"},
      {"int64 to int8, more", convert(Dtype::INT64, Dtype::INT8, weft::wire::kMaxWqeLength / 8 + 1),
       [](Wqe& w) { w.src0 = w.src1 = kReadBase; }, "BAD_LENGTH"},
      {"sources longer than the result, past the end", convert(Dtype::FLOAT32, Dtype::FLOAT16, 256),
       [](Wqe& w) { w.src0 = kReadEnd - 508; }, "BAD_ADDR"},
      {"MX anywhere", convert(Dtype::MXFP4_E2M1, Dtype::MXFP4_E2M1, 16 * 5), [](Wqe& w) { w.src0 += 1; },
       "OK"},
      {"MX, part of a block", convert(Dtype::MXFP4_E2M1, Dtype::MXFP4_E2M1, 16 * 5 + 8), [](Wqe&) {},
       "BAD_ALIGN"},
      {"MX to float32, scales to the end", convert(Dtype::MXFP8_E4M3, Dtype::FLOAT32, 256),
       [](Wqe& w) { w.src0 = kReadEnd - 66; }, "OK"},
      {"MX to float32, scales past the end", convert(Dtype::MXFP8_E4M3, Dtype::FLOAT32, 256),
       [](Wqe& w) { w.src0 = kReadEnd - 65; }, "BAD_ADDR"},
      {"float to int", convert(Dtype::FLOAT32, Dtype::INT32, 256), [](Wqe&) {}, "BAD_TYPE"},
      {"xor of floats", good_reduce(), [](Wqe& w) { w.redop = Redop::XOR; }, "BAD_REDOP"},
      {"avg of integers by 0", convert(Dtype::INT32, Dtype::INT32, 256), [](Wqe& w) { w.redop = Redop::AVG; },
       "BAD_SOURCES"},
      {"avg of integers by 65", convert(Dtype::INT32, Dtype::INT32, 256),
       [](Wqe& w) { w.redop = Redop::AVG, w.scalar = 65; }, "BAD_SOURCES"},
      {"avg of integers by 64", convert(Dtype::INT32, Dtype::INT32, 256),
       [](Wqe& w) { w.redop = Redop::AVG, w.scalar = 64; }, "OK"},
      {"propagating sum", good_reduce(), [](Wqe& w) { w.propagate_nan = true; }, "BAD_FLAGS"},
      {"saturating fp32", good_reduce(), [](Wqe& w) { w.saturate = true; }, "BAD_FLAGS"},
      {"exact bf16", convert(Dtype::BFLOAT16, Dtype::BFLOAT16, 256), [](Wqe& w) { w.exact = true; }, "OK"},
  };
  World w;
  w.set_ring();
  for (const auto& c : cases) {
    Wqe entry = c.w;
    c.change(entry);
    CAPTURE(c.what);
    CHECK(name_of(w.add(3, {entry})) == c.status);
  }
  // A reducer without exact sums says so.
  weft::ref::Engine without({.exact_sums = false}, w);
  without.set_region(0, {true, true, true, kReadBase, kWriteBase + kRegionBytes});
  Wqe exact = convert(Dtype::BFLOAT16, Dtype::BFLOAT16, 256);
  CHECK(without.check(exact, 0) == Err::OK);
  exact.exact = true;
  CHECK(without.check(exact, 0) == Err::BAD_FLAGS);
  check_rest(w);
}

TEST_CASE("engine: strided sources are reduced in order of their index", "[engine][random]") {
  Rng rng;
  struct Case {
    Dtype from, to;
    Redop op;
    unsigned sources, own;
    uint32_t elements;
    uint64_t cycles;  // of the reducer's lanes, and their latency
    bool exact = false;
  };
  // Windows x passes + latency, by the tables of docs/nmc.md.
  const Case cases[] = {
      // Whole beats.
      {Dtype::FLOAT32, Dtype::FLOAT32, Redop::SUM, 5, 3, 1000, 32 * 4 + 14},
      {Dtype::BFLOAT16, Dtype::BFLOAT16, Redop::MAX, 2, 0, 1000, 16 * 1 + 14},
      {Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E5M2, Redop::MIN, 9, 0, 4096, 32 * 8 + 14},
      {Dtype::INT64, Dtype::INT64, Redop::XOR, 2, 1, 16, 1 + 14},
      {Dtype::UINT8, Dtype::UINT8, Redop::SUM, 2, 1, 129, 2 + 14},
      {Dtype::FLOAT64, Dtype::FLOAT64, Redop::COPY, 1, 0, 520, 33 + 14},
      {Dtype::FLOAT32, Dtype::FLOAT32, Redop::PROD, 1, 0, 33, 2 + 14},  // a copy
      // 32 elements.
      {Dtype::FLOAT16, Dtype::FLOAT16, Redop::PROD, 3, 2, 4096, 128 * 2 + 19},
      {Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E4M3, Redop::PROD, 2, 0, 4096, 128 + 19},
      {Dtype::BFLOAT16, Dtype::FLOAT32, Redop::SUM, 3, 0, 1000, 32 * 2 + 14},
      {Dtype::FLOAT32, Dtype::FLOAT16, Redop::SUM, 3, 0, 1000, 32 * 2 + 26},
      {Dtype::FLOAT16, Dtype::FLOAT8_E4M3, Redop::MAX, 2, 0, 1000, 32 + 26},
      {Dtype::FLOAT32, Dtype::FLOAT16, Redop::COPY, 1, 0, 1000, 32 + 14},
      {Dtype::FLOAT16, Dtype::FLOAT16, Redop::AVG, 8, 7, 1000, 32 * 9 + 13 + 14},
      {Dtype::FLOAT32, Dtype::FLOAT32, Redop::AVG, 8, 7, 1000, 32 * 8 + 27},
      {Dtype::FLOAT16, Dtype::FLOAT16, Redop::AVG, 1, 0, 1000, 32 + 19},
      {Dtype::FLOAT32, Dtype::FLOAT32, Redop::PREMUL_SUM, 4, 1, 1024, 32 * 4 + 27},
      {Dtype::FLOAT32, Dtype::BFLOAT16, Redop::PREMUL_SUM, 4, 1, 1024, 32 * 4 + 27},
      {Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E5M2, Redop::PREMUL_SUM, 2, 1, 4096, 128 * 3 + 4 * 13 + 14},
      {Dtype::FLOAT8_E5M2, Dtype::FLOAT8_E5M2, Redop::PREMUL_SUM, 1, 0, 4096, 128 + 19},
      {Dtype::INT16, Dtype::INT8, Redop::COPY, 1, 0, 3000, 94 + 14},
      {Dtype::INT32, Dtype::INT32, Redop::PROD, 3, 0, 1024, 32 * 2 + 14},
      {Dtype::INT8, Dtype::INT8, Redop::PREMUL_SUM, 3, 0, 1024, 32 * 2 + 14},
      {Dtype::INT8, Dtype::INT8, Redop::AVG, 3, 0, 512, 32 * 4 + 14},
      {Dtype::INT8, Dtype::INT32, Redop::AVG, 1, 0, 512, 32 * 6 + 14},
      {Dtype::UINT64, Dtype::UINT64, Redop::AVG, 2, 0, 512, 32 * 10 + 14},
      {Dtype::INT16, Dtype::INT16, Redop::AVG, 2, 0, 32, 11 + 2 * 12 + 2 + 14},
      // 16 with a long integer, 8 with fp64, whose 65 steps are chunks of 32, 16 and 17: results take 13
      // cycles,
      // of products 19.
      {Dtype::UINT8, Dtype::UINT64, Redop::SUM, 64, 40, 700, 44 * 63 + 14},
      {Dtype::INT64, Dtype::INT32, Redop::MIN, 3, 0, 256, 16 * 2 + 14},
      {Dtype::UINT64, Dtype::UINT64, Redop::PREMUL_SUM, 2, 0, 700, 44 + 14},
      {Dtype::FLOAT64, Dtype::FLOAT64, Redop::SUM, 4, 1, 520, 65 * 3 + 16},
      {Dtype::FLOAT64, Dtype::FLOAT64, Redop::PROD, 4, 1, 520, (32 + 19 + 19) * 2 + 65 + 22},
      {Dtype::FLOAT64, Dtype::FLOAT32, Redop::SUM, 4, 1, 520, 65 * 4 + 16},
      {Dtype::FLOAT64, Dtype::FLOAT32, Redop::PROD, 4, 1, 520, (32 + 19 + 19) * 2 + 65 + 22},
      {Dtype::FLOAT32, Dtype::FLOAT64, Redop::SUM, 4, 1, 520, 65 * 3 + 16},
      {Dtype::FLOAT64, Dtype::FLOAT64, Redop::AVG, 4, 1, 520, (65 + 32 + 19 + 19) * 3 + 65 + 16},
      {Dtype::FLOAT64, Dtype::FLOAT64, Redop::PREMUL_SUM, 4, 1, 520, (65 + 32 + 19 + 19) * 3 + 65 + 16},
      {Dtype::FLOAT64, Dtype::FLOAT16, Redop::PREMUL_SUM, 4, 1, 520, (65 + 32 + 19 + 19) * 7 / 2 + 65 + 16},
      // Blocks: one a step; copies are bytes, 33 a block.
      {Dtype::MXFP8_E4M3, Dtype::MXFP8_E4M3, Redop::SUM, 3, 1, 1024, 32 * 2 + 35},
      {Dtype::MXFP4_E2M1, Dtype::FLOAT32, Redop::MAX, 3, 1, 1024, 32 * 2 + 17},
      {Dtype::MXFP4_E2M1, Dtype::FLOAT16, Redop::SUM, 3, 1, 1024, 32 * 2 + 29},
      {Dtype::BFLOAT16, Dtype::MXFP8_E5M2, Redop::SUM, 2, 1, 1024, 32 + 32},
      {Dtype::MXFP8_E4M3, Dtype::MXFP8_E4M3, Redop::COPY, 1, 0, 1024, 9 + 14},
      // Exact sums.
      {Dtype::FLOAT16, Dtype::FLOAT16, Redop::SUM, 5, 1, 1024, 32 * 4 + 15, true},
      {Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E4M3, Redop::SUM, 2, 1, 1024, 32 + 15, true},
      {Dtype::BFLOAT16, Dtype::BFLOAT16, Redop::SUM, 5, 1, 1024, 128 * 4 + 15, true},
      // Short ones: each pass but the last waits for its results.
      {Dtype::FLOAT32, Dtype::FLOAT32, Redop::SUM, 64, 1, 32, 62 * 11 + 1 + 14},
      {Dtype::FLOAT32, Dtype::FLOAT32, Redop::PROD, 5, 1, 64, 3 * 16 + 2 + 19},
      {Dtype::FLOAT64, Dtype::FLOAT64, Redop::SUM, 5, 1, 24, 3 * 13 + 3 + 16},
      {Dtype::FLOAT64, Dtype::FLOAT64, Redop::PROD, 5, 1, 24, 3 * 19 + 3 + 22},
      {Dtype::MXFP8_E4M3, Dtype::FLOAT32, Redop::SUM, 3, 1, 64, 14 + 2 + 17},
      {Dtype::FLOAT16, Dtype::FLOAT16, Redop::SUM, 5, 1, 32, 3 * 4 + 1 + 15, true},
      {Dtype::FLOAT32, Dtype::FLOAT32, Redop::PREMUL_SUM, 5, 1, 32, 4 * 11 + 1 + 27},
      {Dtype::FLOAT16, Dtype::FLOAT16, Redop::PREMUL_SUM, 3, 1, 32, 2 * 11 + 24 + 1 + 14},
  };
  for (const Case& c : cases) {
    World w;
    w.set_ring();
    Wqe e = good_reduce();
    e.dtype = c.from;
    e.to = c.to;
    e.redop = c.op;
    e.nsrc = static_cast<uint8_t>(c.sources);
    e.own = static_cast<uint8_t>(c.own);
    e.exact = c.exact;
    const bool divides = weft::num::kind_of(c.from) == weft::num::Kind::Integer && c.op == Redop::AVG;
    e.scalar = divides ? 7 : 0x3e000000;  // 0.125, and no power of two as an integer
    e.length = static_cast<uint32_t>(c.to == Dtype::MXFP4_E2M1 ? c.elements / 2
                                                               : c.elements * weft::num::bytes_of(c.to));
    e.stride = 0x10000;
    e.src0 = kReadBase + 8;
    e.src1 = kReadBase + 0x100000;
    e.dst = kWriteBase + 16;
    const size_t bytes = weft::num::footprint(c.from, c.elements);
    std::vector<std::vector<uint8_t>> data(c.sources, std::vector<uint8_t>(bytes));
    std::vector<std::span<const uint8_t>> sources;
    for (unsigned k = 0; k < c.sources; ++k) {
      rng.fill(data[k]);
      w.write(weft::ref::source_of(e, k), data[k].data(), static_cast<uint32_t>(bytes));
      sources.emplace_back(data[k]);
    }
    std::vector<uint8_t> want(weft::num::footprint(c.to, c.elements)), got(want.size() + 8);
    weft::num::reduce(weft::ref::job_of(e), want, sources);
    w.add_good(0, {e});
    const Ps start = w.now;
    w.launch(0);
    CAPTURE(weft::wire::name(c.from), weft::wire::name(c.to), weft::wire::name(c.op), c.sources);
    REQUIRE(w.take().status == Err::OK);
    w.read(e.dst, got.data(), static_cast<uint32_t>(got.size()));
    CHECK(std::equal(want.begin(), want.end(), got.begin()));
    CHECK(std::all_of(got.end() - 8, got.end(), [](uint8_t b) { return b == 0; }));
    const Ps busy = w.now - start - weft::ref::kEngineStart - weft::ref::kReducerMemory;
    CHECK(busy == static_cast<Ps>(c.cycles) * weft::ref::kEngineCycle);
    check_rest(w);
  }
}

TEST_CASE("engine: reductions are those of numerics.h at every length", "[engine][random]") {
  Rng rng;
  for (uint32_t bytes : {4u, 128u, 4092u, 4096u, 4100u, 20000u}) {
    for (Dtype type : {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::INT32}) {
      for (Redop op : {Redop::SUM, Redop::MAX, Redop::MIN, Redop::COPY}) {
        World w;
        w.set_ring();
        std::vector<uint8_t> a(bytes), b(bytes), got(bytes);
        rng.fill(a);
        rng.fill(b);
        w.write(kReadBase + 4, a.data(), bytes);
        w.write(kReadBase + 0x10000, b.data(), bytes);
        Wqe e = good_reduce();
        e.dtype = e.to = type;
        e.redop = op;
        e.nsrc = op == Redop::COPY ? 1 : 2;
        e.length = bytes;
        e.src0 = kReadBase + 4;
        e.src1 = kReadBase + 0x10000;
        e.dst = kWriteBase + 12;
        w.add_good(0, {e});
        const Ps start = w.now;
        w.launch(0);
        REQUIRE(w.take().status == Err::OK);
        CHECK(w.now - start >= Ps{(bytes + 127) / 128} * weft::ref::kEngineCycle);
        std::vector<uint8_t> want = a;
        if (op != Redop::COPY) weft::num::reduce(type, op, want, a, b);
        w.read(kWriteBase + 12, got.data(), bytes);
        CHECK(got == want);
        CHECK(w.engine.counters().nmc_beat == (bytes + 127) / 128);
        check_rest(w);
      }
    }
  }
}
