// SPDX-License-Identifier: Apache-2.0
// Random schedules of a small instance: two nodes, two paths, packets of 64 bytes, messages of 0 to 4
// packets, all operations, both ways, over a network that loses, doubles, delays and corrupts packets, while
// planes go down and paths change their source port. Held against what the application may expect:
//
//   - every byte is written once, and atomics, signals and receives happen once;
//   - requests and receives complete in the order of their stream;
//   - what has completed is in memory, and with a signal or receive all that came before it in its stream;
//   - all of it completes, in bounded time, and then nothing is remembered of it.
//
// A schedule is a list of calls and a list of packets with their fates. One that fails is cut down to what
// it needs and printed. SCHEDULES=1000000 in the environment runs so many; SCHEDULE=n only that one.
#include <cstdlib>
#include <set>
#include <sstream>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;

namespace {

constexpr unsigned kMaxMessages = 24;  // of a node
constexpr std::uint64_t kSource = 0, kTarget = 0x2000, kRecvs = 0x4000, kReads = 0x6000, kWord = 0x7800,
                        kOld = 0x7900, kMemory = 0x8000;
constexpr std::uint32_t kSlot = 256;

enum class Step : std::uint8_t { kPost, kRecv, kMove, kRun, kDown };
struct Act {
  Step step;
  std::uint8_t node;    // kDown: which direction, 2 for both
  std::uint8_t what;    // operation, path, plane
  std::uint8_t stream;  //
  std::uint32_t value;  // length, nanoseconds
};
enum class Blow : std::uint8_t { kLost, kLate, kTwice, kCorrupt, kMarked };
struct Strike {
  std::uint32_t packet;  // its number in the run
  Blow blow;
  std::uint32_t ns;
};
struct Schedule {
  std::uint64_t seed;
  std::uint32_t distance;
  Ps start;
  std::vector<Act> acts;
  std::vector<Strike> strikes;  // in order of packets
};

Schedule draw(std::uint64_t seed) {
  Rng rng(seed, 77);
  Schedule s;
  s.seed = seed;
  s.distance = rng.chance(0.25) ? static_cast<std::uint32_t>(rng.range(1, 3)) : 0;
  constexpr Ps kStarts[] = {0, (std::int64_t{1} << 32) * kNs - 20 * kUs,
                            (std::int64_t{1} << 31) * kNs - 20 * kUs};
  s.start = kStarts[rng.below(3)];
  unsigned posted[2] = {0, 0};
  const auto acts = rng.range(3, 30);
  for (std::uint64_t i = 0; i < acts; ++i) {
    Act a{};
    a.node = static_cast<std::uint8_t>(rng.below(2));
    a.stream = static_cast<std::uint8_t>(rng.below(2));
    switch (rng.below(8)) {
      case 0:
      case 1:
      case 2:
      case 3:
        if (posted[a.node]++ >= kMaxMessages) continue;
        a.step = Step::kPost;
        a.what = static_cast<std::uint8_t>(rng.below(8));
        a.value = rng.chance(0.2) ? static_cast<std::uint32_t>(rng.below(4) * 64)
                                  : static_cast<std::uint32_t>(rng.below(kSlot + 1));
        break;
      case 4: a.step = Step::kRecv; break;
      case 5:
        a.step = Step::kMove;
        a.what = static_cast<std::uint8_t>(rng.below(2));
        break;
      case 6:
        a.step = Step::kDown;
        a.node = static_cast<std::uint8_t>(rng.below(3));
        a.what = static_cast<std::uint8_t>(rng.below(2));
        a.value = static_cast<std::uint32_t>(rng.below(rng.chance(0.2) ? 400'000 : 60'000));
        break;
      default:
        a.step = Step::kRun;
        a.value = static_cast<std::uint32_t>(rng.below(rng.chance(0.3) ? 100'000 : 6'000));
    }
    s.acts.push_back(a);
  }
  const double rate = rng.chance(0.3) ? 0.3 : 0.08;
  for (std::uint32_t p = 0; p < 500; ++p) {
    if (!rng.chance(rate)) continue;
    s.strikes.push_back({p, static_cast<Blow>(rng.below(5)),
                         static_cast<std::uint32_t>(rng.below(rng.chance(0.3) ? 400'000 : 8'000))});
  }
  return s;
}

std::string text(const Schedule& s) {
  static constexpr const char* kOps[] = {"SEND",         "SEND_IMM", "WRITE",     "WRITE_IMM",
                                         "WRITE_SIGNAL", "READ",     "FETCH_ADD", "COMPARE_SWAP"};
  static constexpr const char* kBlows[] = {"lost", "late by", "twice, copy late by", "corrupt", "marked"};
  std::ostringstream out;
  out << "schedule " << s.seed << ": distance " << s.distance << ", clock starts at " << s.start / kNs
      << " ns\n";
  for (const Act& a : s.acts) {
    switch (a.step) {
      case Step::kPost:
        out << "  node " << +a.node << " stream " << +a.stream << ": " << kOps[a.what] << " of " << a.value
            << " bytes\n";
        break;
      case Step::kRecv: out << "  node " << +a.node << " stream " << +a.stream << ": receive\n"; break;
      case Step::kMove: out << "  node " << +a.node << " moves path " << +a.what << "\n"; break;
      case Step::kDown:
        out << "  plane " << +a.what << " is down "
            << (a.node == 2   ? "both ways"
                : a.node == 0 ? "from node 0"
                              : "from node 1")
            << " for " << a.value << " ns\n";
        break;
      case Step::kRun: out << "  run for " << a.value << " ns\n"; break;
    }
  }
  for (const Strike& k : s.strikes) {
    out << "  packet " << k.packet << " " << kBlows[static_cast<int>(k.blow)];
    if (k.blow == Blow::kLate || k.blow == Blow::kTwice) out << " " << k.ns << " ns";
    out << "\n";
  }
  return out.str();
}

/// A run of a schedule, and what the application expects of it.
class Run {
 public:
  explicit Run(const Schedule& s) : plan_(s), net_(config(s), 2, kMemory, false) {
    net_.start_at(s.start);
    Rng rng(s.seed, 5);
    for (unsigned n = 0; n < 2; ++n) {
      auto& memory = net_.host(n).memory;
      rng.fill({memory.data(), kTarget});
      source_[n].assign(memory.begin(), memory.begin() + kTarget);
      net_.host(n).on_done = [this, n](const Completion& c) { done(n, c); };
      net_.host(n).on_signal = [this, n](std::uint16_t sem, std::uint32_t amount) {
        signalled(n, sem, amount);
      };
    }
    const auto [a, b] = net_.open(0, 1);
    conn_[0] = a;
    conn_[1] = b;
    net_.fate = [this](const Sent& sent) { return fate(sent); };
  }

  /// Empty, or what went wrong.
  std::string go() {
    try {
      for (const Act& a : plan_.acts) act(a);
      for (unsigned n = 0; n < 2; ++n)  // whoever still waits for a receive gets it
        for (unsigned st = 0; st < 2; ++st)
          while (recvs_[n][st].size() < sends_[1 - n][st].size()) post_recv(n, st);
      const bool all = net_.run_until(
          [&] {
            return fault_.empty() && told_[0] == jobs_[0].size() && told_[1] == jobs_[1].size() &&
                   taken_[0][0] + taken_[0][1] + taken_[1][0] + taken_[1][1] == all_sends();
          },
          2000 * kMs);
      if (!all && fault_.empty())
        fault_ = "not all completes\n" + net_.end(0).state(conn_[0]) + "\n" + net_.end(1).state(conn_[1]);
      if (fault_.empty() && !net_.settle(2000 * kMs)) fault_ = "it does not come to rest";
      if (fault_.empty()) at_rest();
    } catch (const std::exception& e) {
      if (fault_.empty()) fault_ = e.what();
    }
    return fault_;
  }

 private:
  struct Job {
    WrOp op;
    std::uint16_t stream;
    std::uint32_t length;
    unsigned number;  // of the node's requests
    unsigned in_stream;
    unsigned take = 0;  // SEND, WRITE_IMM: number of the receive
    std::uint64_t add = 0;
  };

  static Config config(const Schedule& s) {
    Config c = two_paths();
    c.mtu = 64;
    c.distance = s.distance;
    c.rtt_init = 5 * kUs;
    c.line_mbps = 10'000;  // a window of some twenty packets
    c.seed = 2 + s.seed;
    return c;
  }
  std::size_t all_sends() const {
    std::size_t n = 0;
    for (const auto& node : sends_)
      for (const auto& stream : node) n += stream.size();
    return n;
  }
  void wrong(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }

  Fate fate(const Sent& s) {
    Fate f;
    const std::uint32_t number = packets_++;
    while (strike_ < plan_.strikes.size() && plan_.strikes[strike_].packet < number) ++strike_;
    if (strike_ < plan_.strikes.size() && plan_.strikes[strike_].packet == number) {
      const Strike& k = plan_.strikes[strike_];
      switch (k.blow) {
        case Blow::kLost: f.lost = true; break;
        case Blow::kLate: f.late = Ps{k.ns} * kNs; break;
        case Blow::kTwice:
          f.copies = 1;
          f.copy_late = Ps{k.ns} * kNs;
          break;
        case Blow::kCorrupt: f.corrupt = true; break;
        case Blow::kMarked: f.ce = s.packet.is_data(); break;
      }
    }
    if (s.now < down_until_[s.node][s.port]) f.lost = true;
    return f;
  }

  void act(const Act& a) {
    switch (a.step) {
      case Step::kPost: return post(a);
      case Step::kRecv: return post_recv(a.node, a.stream);
      case Step::kMove: net_.end(a.node).change_sport(conn_[a.node], a.what, net_.now()); return;
      case Step::kRun: return net_.run_for(Ps{a.value} * kNs);
      case Step::kDown:
        for (unsigned n = 0; n < 2; ++n)
          if (a.node == 2 || a.node == n) down_until_[n][a.what] = net_.now() + Ps{a.value} * kNs;
    }
  }

  void post_recv(unsigned n, unsigned stream) {
    if (recv_count_[n] >= 32) return;
    const unsigned slot = recv_count_[n]++;
    if (net_.end(n).post_recv(conn_[n], static_cast<std::uint16_t>(stream), slot,
                              Host::kBase + kRecvs + slot * kSlot, kSlot, net_.now()) != wire::Err::OK)
      return wrong("a receive is refused");
    recvs_[n][stream].push_back(slot);
  }

  void post(const Act& a) {
    const unsigned n = a.node;
    Job j{};
    j.op = static_cast<WrOp>(a.what);
    j.stream = a.stream;
    j.length = a.value;
    j.number = static_cast<unsigned>(jobs_[n].size());
    const bool takes = j.op == WrOp::kSend || j.op == WrOp::kSendImm || j.op == WrOp::kWriteImm;
    if (takes && (all_sends_of(n) >= 32)) return;
    WorkRequest w = write_of(j.number, kSource + j.number * kSlot, kTarget + j.number * kSlot, j.length);
    w.op = j.op;
    w.value = 1000 + j.number;
    w.sem = static_cast<std::uint16_t>(n);
    if (j.op == WrOp::kRead) {
      w.local_va = Host::kBase + kReads + j.number * kSlot;
      w.remote_va = Host::kBase + kSource + j.number * kSlot;
    } else if (j.op == WrOp::kFetchAdd || j.op == WrOp::kCompareSwap) {
      w.local_va = Host::kBase + kOld + j.number * 8;
      w.remote_va = Host::kBase + kWord;
      j.add = j.op == WrOp::kFetchAdd ? std::uint64_t{1} << j.number : 0;
      w.operand = j.add;
      w.compare = ~std::uint64_t{0};  // never what is there: nothing is stored
      added_[1 - n] += j.add;
    }
    j.in_stream = in_stream_[n][j.stream]++;
    if (takes) {
      j.take = static_cast<unsigned>(sends_[n][j.stream].size());
      sends_[n][j.stream].push_back(j.number);
    }
    jobs_[n].push_back(j);
    order_[n][j.stream].push_back(j.number);
    if (net_.end(n).post(conn_[n], j.stream, w, net_.now()) != wire::Err::OK) wrong("a request is refused");
  }
  std::size_t all_sends_of(unsigned n) const { return sends_[n][0].size() + sends_[n][1].size(); }

  bool same(unsigned n, std::uint64_t at, unsigned from, std::uint64_t offset, std::uint32_t bytes) {
    return std::equal(source_[from].begin() + static_cast<std::ptrdiff_t>(offset),
                      source_[from].begin() + static_cast<std::ptrdiff_t>(offset + bytes),
                      net_.host(n).memory.begin() + static_cast<std::ptrdiff_t>(at));
  }
  /// Whether what job j of node n does is in memory.
  bool in_place(unsigned n, const Job& j) {
    const std::uint64_t at = j.number * kSlot;
    switch (j.op) {
      case WrOp::kSend:
      case WrOp::kSendImm:
        return j.take < recvs_[1 - n][j.stream].size() &&
               same(1 - n, kRecvs + recvs_[1 - n][j.stream][j.take] * kSlot, n, at, j.length);
      case WrOp::kWrite:
      case WrOp::kWriteImm:
      case WrOp::kWriteSignal: return same(1 - n, kTarget + at, n, at, j.length);
      default: return true;
    }
  }
  /// All that node n posted on the stream before its job `number` has been done to memory.
  void before(unsigned n, std::uint16_t stream, unsigned number, const char* what) {
    for (const unsigned i : order_[n][stream]) {
      if (i > number) break;
      if (!in_place(n, jobs_[n][i])) wrong(std::string(what) + " overtakes its data");
    }
  }

  void done(unsigned n, const Completion& c) {
    if (c.status != wire::Err::OK) return wrong("status " + std::string(wire::name(c.status)));
    if (c.what == Completed::kRequest) {
      ++told_[n];
      auto& next = told_in_stream_[n][c.stream];
      if (next >= order_[n][c.stream].size() || order_[n][c.stream][next] != c.id)
        return wrong("requests complete out of order");
      ++next;
      const Job& j = jobs_[n][c.id];
      if (!in_place(n, j)) wrong("a request completes before its data is there");
      if (j.op == WrOp::kRead && !same(n, kReads + j.number * kSlot, 1 - n, j.number * kSlot, j.length))
        wrong("a READ completes without its data");
      if (j.op == WrOp::kFetchAdd || j.op == WrOp::kCompareSwap) {
        std::uint64_t old = 0;
        std::memcpy(&old, &net_.host(n).memory[kOld + j.number * 8], 8);
        if ((old & j.add) != 0) wrong("an atomic saw its own sum");
        if (j.add != 0 && !olds_[n].insert(old).second) wrong("two atomics saw the same value");
      }
      return;
    }
    auto& next = taken_[n][c.stream];
    if (next >= sends_[1 - n][c.stream].size() || recvs_[n][c.stream][next] != c.id)
      return wrong("receives complete out of order");
    const Job& j = jobs_[1 - n][sends_[1 - n][c.stream][next]];
    ++next;
    if (c.bytes != j.length) wrong("a receive has another length");
    if (c.has_imm != (j.op != WrOp::kSend) || (c.has_imm && c.imm != 1000 + j.number))
      wrong("a receive has another immediate");
    before(1 - n, c.stream, j.number, "a receive");
  }

  void signalled(unsigned n, std::uint16_t sem, std::uint32_t amount) {
    const unsigned number = amount - 1000;
    if (sem != 1 - n || number >= jobs_[1 - n].size() || jobs_[1 - n][number].op != WrOp::kWriteSignal)
      return wrong("a signal that nobody sent");
    if (!signals_[n].insert(number).second) wrong("a signal twice");
    before(1 - n, jobs_[1 - n][number].stream, number, "a signal");
  }

  void at_rest() {
    for (unsigned n = 0; n < 2; ++n) {
      const Host& h = net_.host(n);
      for (std::size_t i = 0; i < kWord; ++i)
        if (h.writes[i] > 1) return wrong("byte " + std::to_string(i) + " was written twice");
      std::uint64_t word = 0;
      std::memcpy(&word, &h.memory[kWord], 8);
      if (word != added_[n]) wrong("a sum of atomics is wrong");
      if (!std::equal(source_[n].begin(), source_[n].end(), h.memory.begin()))
        wrong("memory that nobody names was written");
      std::size_t signals = 0;
      for (const Job& j : jobs_[1 - n]) signals += j.op == WrOp::kWriteSignal ? 1 : 0;
      if (signals_[n].size() != signals) wrong("a signal is missing");
      if (net_.end(n).in_use() != 0)
        wrong(std::to_string(net_.end(n).in_use()) + " objects of node " + std::to_string(n) + " leak");
    }
  }

  const Schedule& plan_;
  Net net_;
  std::string fault_;
  std::uint32_t packets_ = 0;
  std::size_t strike_ = 0;
  std::uint32_t conn_[2] = {0, 0};
  Ps down_until_[2][2] = {};
  std::vector<std::uint8_t> source_[2];
  std::vector<Job> jobs_[2];
  std::vector<unsigned> order_[2][2], sends_[2][2], recvs_[2][2];
  unsigned in_stream_[2][2] = {}, told_in_stream_[2][2] = {}, taken_[2][2] = {}, recv_count_[2] = {};
  std::size_t told_[2] = {0, 0};
  std::uint64_t added_[2] = {0, 0};
  std::set<std::uint64_t> olds_[2];
  std::set<unsigned> signals_[2];
};

std::string run(const Schedule& s) {
  return Run(s).go();
}

/// Takes out of a failing schedule whatever it fails without.
Schedule shrink(Schedule s) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    const auto without = [&](auto& list, std::size_t i, std::size_t n) {
      Schedule less = s;
      auto& out = list(less);
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(i),
                out.begin() + static_cast<std::ptrdiff_t>(i + n));
      if (run(less).empty()) return false;
      s = std::move(less);
      return smaller = true;
    };
    const auto pass = [&](auto list) {
      for (std::size_t n = std::max<std::size_t>(1, list(s).size() / 2);; n /= 2) {
        for (std::size_t i = 0; i + n <= list(s).size();)
          if (!without(list, i, n)) i += n;
        if (n <= 1) break;
      }
    };
    pass([](Schedule & x) -> auto& { return x.strikes; });
    pass([](Schedule & x) -> auto& { return x.acts; });
  }
  return s;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("ref: random schedules of two nodes keep exactly once, order and progress", "[ref][random]") {
  const std::uint64_t count = from_environment("SCHEDULES", 10'000);
  const std::uint64_t only = from_environment("SCHEDULE", 0);
  const std::uint64_t first = only != 0 ? only : weft::test::seed() * 1'000'000;
  for (std::uint64_t i = 0; i < (only != 0 ? 1 : count); ++i) {
    const Schedule s = draw(first + i);
    if (run(s).empty()) continue;
    const Schedule less = shrink(s);
    FAIL(run(less) << "\n" << text(less) << "rerun: SCHEDULE=" << s.seed);
  }
  SUCCEED();
}
