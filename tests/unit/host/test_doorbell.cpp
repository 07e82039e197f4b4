// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <deque>

#include "Vhost_db.h"
#include "weft_test.h"

using namespace weft::test;

namespace {

using Beat = std::array<uint32_t, 16>;

struct Write {
  uint64_t addr;
  std::vector<Beat> beats;
  std::vector<uint64_t> strobes;
  bool good;
};

Write random_write(Rng& rng) {
  Write w{rng() & ~uint64_t{63}, {}, {}, true};
  const bool bad = rng.chance(0.3);
  size_t beats = 1;
  if (bad) {
    switch (rng.below(4)) {
      case 0: beats = rng.range(2, 5); break;
      case 1: beats = 256; break;
      case 2: w.addr |= rng.range(1, 63); break;
      default: break;  // strobes, below
    }
  }
  w.beats.resize(beats);
  w.strobes.assign(beats, ~uint64_t{0});
  for (auto& beat : w.beats) {
    for (auto& word : beat) word = static_cast<uint32_t>(rng());
  }
  if (bad && beats == 1 && (w.addr & 63) == 0) w.strobes[0] &= ~(uint64_t{1} << rng.below(64));
  w.good = beats == 1 && (w.addr & 63) == 0 && w.strobes[0] == ~uint64_t{0};
  return w;
}

struct Counts {
  unsigned good = 0, refused = 0, out = 0;
};

// Drives n writes with the given stalls; checks order, content, responses and events.
Counts run(Profile profile, unsigned n, uint64_t stream, bool corrupt = false) {
  Rng rng(seed(), stream);
  Stall aw_stall(profile, 10 * stream), w_stall(profile, 10 * stream + 1), b_stall(profile, 10 * stream + 2),
      db_stall(profile, 10 * stream + 3);
  Bench<Vhost_db> b("weft_host_db");
  b->flush_i = 0;
  b->s_axi_awvalid = b->s_axi_wvalid = b->s_axi_bready = b->db_ready_i = 0;
  b.reset();

  std::deque<Write> to_address, to_data;
  std::deque<bool> responses;
  std::deque<Beat> doorbells;
  Counts c;
  unsigned made = 0, answered = 0, taken = 0, refused = 0;
  size_t beat = 0;
  bool aw_up = false, w_up = false;
  while (answered < n || c.out < c.good || taken + refused < n) {
    if (to_address.empty() && made < n) {
      to_address.push_back(random_write(rng));
      ++made;
    }
    // An offer that was made stays.
    aw_up = aw_up || (!to_address.empty() && aw_stall.go());
    w_up = w_up || (!to_data.empty() && w_stall.go());
    b->s_axi_awvalid = aw_up;
    if (aw_up) {
      b->s_axi_awaddr = to_address.front().addr;
      b->s_axi_awlen = static_cast<uint8_t>(to_address.front().beats.size() - 1);
    }
    b->s_axi_wvalid = w_up;
    if (w_up) {
      const Write& w = to_data.front();
      for (size_t i = 0; i < 16; ++i) b->s_axi_wdata[i] = w.beats[beat][i];
      b->s_axi_wstrb = w.strobes[beat];
      b->s_axi_wlast = beat + 1 == w.beats.size();
    }
    b->s_axi_bready = b_stall.go();
    b->db_ready_i = db_stall.go();
    b.eval();
    const bool aw = aw_up && b->s_axi_awready, w = w_up && b->s_axi_wready;
    const bool bb = b->s_axi_bvalid && b->s_axi_bready, db = b->db_valid_o && b->db_ready_i;
    if (db) {
      REQUIRE_FALSE(doorbells.empty());
      Beat expected = doorbells.front();
      if (corrupt && c.out == 20) expected[7] ^= 0x100;
      for (size_t i = 0; i < 16; ++i) {
        if (b->db_o[i] != expected[i]) return c;  // the caller sees that not everything came out
      }
      doorbells.pop_front();
      ++c.out;
    }
    if (bb) {
      REQUIRE_FALSE(responses.empty());
      REQUIRE(b->s_axi_bresp == (responses.front() ? 0 : 2));
      responses.pop_front();
      ++answered;
    }
    taken += b->taken_o;
    refused += b->refused_o;
    if (aw) {
      to_data.push_back(to_address.front());
      to_address.pop_front();
      aw_up = false;
    }
    if (w && ++beat == to_data.front().beats.size()) {
      const Write& done = to_data.front();
      responses.push_back(done.good);
      if (done.good) doorbells.push_back(done.beats[0]);
      ++(done.good ? c.good : c.refused);
      to_data.pop_front();
      beat = 0;
    }
    if (w) w_up = false;
    if (aw || w || bb || db) b.progress();
    b.tick();
  }
  REQUIRE(taken == c.good);
  REQUIRE(refused == c.refused);
  b.ticks(3);
  b.eval();
  REQUIRE(b->idle_o);
  return c;
}

}  // namespace

TEST_CASE("doorbell: whole 64-byte writes come out in order, other shapes are refused", "[host][random]") {
  uint64_t stream = 1;
  for (Profile profile : kProfiles) {
    INFO(name_of(profile));
    const Counts c = run(profile, 300, stream++);
    CHECK(c.good > 100);
    CHECK(c.refused > 40);
    CHECK(c.out == c.good);
  }
}

TEST_CASE("doorbell: a changed bit of a doorbell is noticed by the comparison", "[host][fault]") {
  const Counts c = run(Profile::Half, 100, 50, true);
  CHECK(c.out == 20);
}

TEST_CASE("doorbell: a full queue holds the window and loses nothing", "[host][smoke]") {
  Bench<Vhost_db> b("weft_host_db");
  b->flush_i = 0;
  b->s_axi_awvalid = b->s_axi_wvalid = 0;
  b->s_axi_bready = 1;
  b->db_ready_i = 0;
  b.reset();
  b->s_axi_awvalid = b->s_axi_wvalid = 1;
  b->s_axi_awaddr = 0x1000;
  b->s_axi_awlen = 0;
  b->s_axi_wlast = 1;
  b->s_axi_wstrb = ~uint64_t{0};
  unsigned in = 0;
  for (int t = 0; t < 100; ++t) {
    for (size_t i = 0; i < 16; ++i) b->s_axi_wdata[i] = in;
    b.eval();
    in += b->s_axi_wvalid && b->s_axi_wready;
    b.tick();
  }
  CHECK(in == 4);  // the depth of the queue
  b->s_axi_awvalid = b->s_axi_wvalid = 0;
  b->db_ready_i = 1;
  for (unsigned out = 0; out < in; ++out) {
    b.eval();
    while (!b->db_valid_o) {
      b.tick();
      b.eval();
    }
    REQUIRE(b->db_o[3] == out);
    b.tick();
  }
}
