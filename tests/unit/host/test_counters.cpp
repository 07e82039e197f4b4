// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <vector>

#include "Vhost_counters.h"
#include "weft_counters.h"
#include "weft_test.h"

using namespace weft::test;
namespace counters = weft::counters;

namespace {

constexpr unsigned kPorts = 2;
constexpr size_t kNum = counters::count(kPorts);
constexpr unsigned kPortBits = counters::kPortInfo[0].lsb + counters::kPortInfo[0].bits;

const counters::Info& info(size_t i) {
  return i < counters::kNodeCount ? counters::kNodeInfo[i]
                                  : counters::kPortInfo[(i - counters::kNodeCount) % counters::kPortCount];
}

// Puts `bits` bits at `lsb` into a port of any width.
template <class Port>
void put_bits(Port& port, unsigned lsb, unsigned bits, uint64_t value) {
  for (unsigned b = 0; b < bits; ++b) {
    if ((value >> b & 1) == 0) continue;
    if constexpr (std::is_integral_v<Port>) {
      port |= static_cast<Port>(uint64_t{1} << (lsb + b));
    } else {
      port[(lsb + b) / 32] |= 1U << (lsb + b) % 32;
    }
  }
}
template <class Port>
void clear(Port& port) {
  port = Port{};
}

// The block and what it should have counted, kept for the last cycles so that a read can be compared exactly.
class CounterBench {
 public:
  explicit CounterBench(uint64_t rng_stream)
      : rng(seed(), rng_stream), bench("weft_counters"), totals(kNum, 0) {
    clear(bench->node_i);
    clear(bench->port_i);
    bench->rd_valid_i = 0;
    bench->rd_index_i = 0;
    bench.reset();
  }

  // One cycle in which counter i grows by amounts[i].
  void cycle(const std::vector<uint32_t>& amounts) {
    clear(bench->node_i);
    clear(bench->port_i);
    for (size_t i = 0; i < kNum; ++i) {
      if (amounts[i] == 0) continue;
      if (i < counters::kNodeCount) {
        put_bits(bench->node_i, info(i).lsb, info(i).bits, amounts[i]);
      } else {
        const unsigned port = static_cast<unsigned>((i - counters::kNodeCount) / counters::kPortCount);
        put_bits(bench->port_i, port * kPortBits + info(i).lsb, info(i).bits, amounts[i]);
      }
      totals[i] += amounts[i];
    }
    step();
  }

  void quiet(unsigned cycles) {
    clear(bench->node_i);
    clear(bench->port_i);
    for (unsigned i = 0; i < cycles; ++i) step();
  }

  // The same inputs again.
  void step() {
    if (watched >= 0) history[now % kHistory] = totals[static_cast<size_t>(watched)];
    ++now;
    bench.eval();
    if (bench->rd_done_o) bench.progress();
    bench.tick();
    bench->rd_valid_i = 0;
  }

  void start_read(size_t index) {
    bench->rd_valid_i = 1;
    bench->rd_index_i = static_cast<uint16_t>(index);
    watched = static_cast<int>(index);
    history.assign(kHistory, totals[index]);
  }
  bool done() {
    bench.eval();
    return bench->rd_done_o;
  }
  // Total of the watched counter as it was when the read looked: kReadAge cycles before rd_done_o.
  uint64_t expected() const { return history[(now - kReadAge) % kHistory]; }

  uint64_t read(size_t index) {
    start_read(index);
    step();
    while (!done()) step();
    bench.progress();
    return bench->rd_value_o;
  }

  static constexpr unsigned kHistory = 64;
  static constexpr unsigned kReadAge = 6;
  Rng rng;
  Bench<Vhost_counters> bench;
  std::vector<uint64_t> totals;
  uint64_t now = kHistory;
  int watched = -1;
  std::vector<uint64_t> history = std::vector<uint64_t>(kHistory, 0);
};

uint32_t largest(size_t i) {
  return static_cast<uint32_t>((uint64_t{1} << info(i).bits) - 1);
}

}  // namespace

TEST_CASE("counters: random events and reads, each read exact to the cycle", "[host][random]") {
  CounterBench b(1);
  std::vector<uint32_t> amounts(kNum);
  unsigned reads = 0;
  bool reading = false;
  for (double density : {0.0, 0.02, 0.5, 1.0}) {
    for (int t = 0; t < 12000; ++t) {
      for (size_t i = 0; i < kNum; ++i) {
        amounts[i] = b.rng.chance(density) ? static_cast<uint32_t>(b.rng.range(1, largest(i))) : 0;
      }
      if (!reading && b.rng.chance(0.2)) {
        b.start_read(b.rng.below(kNum));
        reading = true;
      }
      b.cycle(amounts);
      if (reading && b.done()) {
        INFO("counter " << b.watched << " at cycle " << b.bench.cycle());
        REQUIRE(b.bench->rd_value_o == b.expected());
        b.bench.progress();
        reading = false;
        ++reads;
      }
    }
  }
  CHECK(reads > 500);
}

TEST_CASE("counters: the largest amount in every cycle on every counter is never lost, past 2^32",
          "[host][stress]") {
  CounterBench b(2);
  std::vector<uint32_t> amounts(kNum);
  for (size_t i = 0; i < kNum; ++i) amounts[i] = largest(i);
  b.cycle(amounts);
  // The inputs stay; reads follow each other as fast as they can, which is what delays the scan most.
  constexpr uint64_t kCycles = 600000;
  bool reading = false;
  for (uint64_t t = 1; t < kCycles; ++t) {
    for (size_t i = 0; i < kNum; ++i) b.totals[i] += amounts[i];
    if (!reading) {
      b.start_read(t % kNum);
      reading = true;
    }
    b.step();
    if (b.done()) reading = false;
  }
  b.quiet(64);
  bool past = false;
  for (size_t i = 0; i < kNum; ++i) {
    INFO(info(i).block << '.' << info(i).event);
    const uint64_t got = b.read(i);
    REQUIRE(got == kCycles * largest(i));
    past = past || got > 0xffffffff;
  }
  CHECK(past);
}

TEST_CASE("counters: each event moves its own counter and no other", "[host][smoke]") {
  CounterBench b(3);
  std::vector<uint32_t> amounts(kNum, 0);
  for (size_t i = 0; i < kNum; ++i) {
    amounts[i] = largest(i);
    b.cycle(amounts);
    amounts[i] = 0;
    b.quiet(8);
    const size_t other = (i + 1 + b.rng.below(kNum - 1)) % kNum;
    REQUIRE(b.read(i) == largest(i));
    REQUIRE(b.read(other) == b.totals[other]);
  }
  for (size_t i = 0; i < kNum; ++i) REQUIRE(b.read(i) == largest(i));
}

TEST_CASE("counters: drop reasons of wire.yaml stand in the order of their values", "[host][smoke]") {
  CounterBench b(4);
  clear(b.bench->port_i);
  // Bit 7 of the drop vector of port 1: the ICRC.
  put_bits(b.bench->port_i, kPortBits + 7, 1, 1);
  b.step();
  b.quiet(8);
  CHECK(b.read(counters::index(counters::Port::kDropIcrc, 1)) == 1);
  CHECK(b.read(counters::index(counters::Port::kDropIcrc, 0)) == 0);
}

TEST_CASE("counters: reset clears, an index beyond the last reads 0", "[host][smoke]") {
  CounterBench b(5);
  std::vector<uint32_t> amounts(kNum);
  for (size_t i = 0; i < kNum; ++i) amounts[i] = largest(i);
  for (int t = 0; t < 500; ++t) b.cycle(amounts);
  b.quiet(1);
  REQUIRE(b.read(0) > 0);
  b.bench.reset();
  b.totals.assign(kNum, 0);
  b.cycle(amounts);  // events of the first round count although the RAM still holds the old values
  b.quiet(3);
  for (size_t i = 0; i < kNum; ++i) REQUIRE(b.read(i) == largest(i));
  b.start_read(0);
  for (size_t index : {kNum, kNum + 1, size_t{0xffff}}) {
    while (!b.done()) b.step();
    b.bench->rd_valid_i = 1;
    b.bench->rd_index_i = static_cast<uint16_t>(index);
    b.step();
    while (!b.done()) b.step();
    REQUIRE(b.bench->rd_value_o == 0);
  }
}

TEST_CASE("counters: the comparison notices a single event that the model does not know", "[host][fault]") {
  CounterBench b(6);
  std::vector<uint32_t> amounts(kNum, 1);
  for (int t = 0; t < 300; ++t) b.cycle(amounts);
  amounts.assign(kNum, 0);
  amounts[17] = 1;
  b.cycle(amounts);
  --b.totals[17];  // as if the block had counted one event too much
  b.quiet(8);
  unsigned wrong = 0;
  for (size_t i = 0; i < kNum; ++i) wrong += b.read(i) != b.totals[i];
  CHECK(wrong == 1);
}
