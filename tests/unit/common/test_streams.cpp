// SPDX-License-Identifier: Apache-2.0
//
// weft_skid and weft_fifo against a plain queue: order, capacity, latency, full throughput, and the
// rule that an offer stands until it is taken, under every pair of stall profiles.
#include <deque>

#include "Vcommon_fifo_block.h"
#include "Vcommon_fifo_lut.h"
#include "Vcommon_leaky.h"
#include "Vcommon_skid.h"
#include "weft_test.h"

namespace {

using weft::test::Bench;
using weft::test::kProfiles;
using weft::test::name_of;
using weft::test::Profile;
using weft::test::Rng;
using weft::test::Stall;

template <class V>
constexpr bool kHasCount = requires(V& v) {
  v.count_o;
};

/// Sends `items` random words through and compares each; returns the cycles it took.
template <class V>
uint64_t stream(Bench<V>& b, Profile in, Profile out, uint64_t items, size_t capacity) {
  Rng data(weft::test::seed(), 1);
  Stall source(in, 2), sink(out, 3);
  std::deque<uint32_t> model;
  b->s_valid_i = 0;
  b->m_ready_i = 0;
  b.reset();
  uint64_t sent = 0, got = 0;
  const uint64_t start = b.cycle();
  while (got < items) {
    if (!b->s_valid_i && sent < items && source.go()) {
      b->s_valid_i = 1;
      b->s_data_i = static_cast<uint32_t>(data());
    }
    b->m_ready_i = sink.go();
    b.eval();
    if constexpr (kHasCount<V>) REQUIRE(b->count_o == model.size());
    REQUIRE(model.size() <= capacity);
    const bool push = b->s_valid_i && b->s_ready_o;
    if (b->m_valid_o && b->m_ready_i) {
      b.event("out %llx", b->m_data_o);
      REQUIRE(!model.empty());
      REQUIRE(b->m_data_o == model.front());
      model.pop_front();
      ++got;
      b.progress();
    }
    if (push) {
      b.event("in %llx", b->s_data_i);
      model.push_back(b->s_data_i);
      ++sent;
    }
    b.tick();
    if (push) b->s_valid_i = 0;
  }
  REQUIRE(model.empty());
  return b.cycle() - start;
}

template <class V>
void all_profiles(size_t capacity) {
  for (Profile in : kProfiles) {
    for (Profile out : kProfiles) {
      CAPTURE(name_of(in), name_of(out));
      Bench<V> b;
      stream(b, in, out, 2000, capacity);
    }
  }
}

/// Cycles from the push into an empty queue to the item being shown.
template <class V>
uint64_t latency(Bench<V>& b) {
  b->s_valid_i = 0;
  b->m_ready_i = 0;
  b.reset();
  b.ticks(2);
  b->s_valid_i = 1;
  b->s_data_i = 42;
  b.eval();
  REQUIRE(b->s_ready_o);
  const uint64_t start = b.cycle();
  b.tick();
  b->s_valid_i = 0;
  b.eval();
  while (!b->m_valid_o) b.tick();
  REQUIRE(b->m_data_o == 42);
  return b.cycle() - start;
}

/// Items taken while the output is stuck.
template <class V>
size_t filled(Bench<V>& b) {
  b->s_valid_i = 1;
  b->m_ready_i = 0;
  b.reset();
  size_t taken = 0;
  for (int i = 0; i < 200; ++i) {
    b.eval();
    taken += b->s_ready_o;
    b.tick();
  }
  return taken;
}

}  // namespace

TEST_CASE("skid: data and order under all stalls", "[skid][random]") {
  all_profiles<Vcommon_skid>(2);
}
TEST_CASE("fifo: data, order and count under all stalls in LUT RAM", "[fifo][random]") {
  all_profiles<Vcommon_fifo_lut>(5);
}
TEST_CASE("fifo: data, order and count under all stalls in block RAM", "[fifo][random]") {
  all_profiles<Vcommon_fifo_block>(70);
}

TEST_CASE("skid: one cycle of latency, one item a cycle, two deep", "[skid][smoke]") {
  Bench<Vcommon_skid> b;
  CHECK(latency(b) == 1);
  CHECK(filled(b) == 2);
  CHECK(stream(b, Profile::None, Profile::None, 1000, 2) == 1001);
}

TEST_CASE("fifo: latency, throughput and capacity are as the header says", "[fifo][smoke]") {
  Bench<Vcommon_fifo_lut> lut;
  CHECK(latency(lut) == 1);
  CHECK(filled(lut) == 5);
  CHECK(stream(lut, Profile::None, Profile::None, 1000, 5) <= 1002);
  Bench<Vcommon_fifo_block> block;
  CHECK(latency(block) == 2);
  CHECK(filled(block) == 70);
  CHECK(stream(block, Profile::None, Profile::None, 1000, 70) <= 1003);
}

TEST_CASE("skid: the checker notices a buffer that loses items", "[skid][!shouldfail]") {
  Bench<Vcommon_leaky> b;
  stream(b, Profile::None, Profile::Half, 200, 2);
}
