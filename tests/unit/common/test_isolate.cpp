// SPDX-License-Identifier: Apache-2.0
// Masters and streams taken off their bus at every moment: the bus sees nothing broken, the master nothing of
// before.
#include <deque>
#include <vector>

#include "Vcommon_axis_gate.h"
#include "Vcommon_axis_isolate.h"
#include "Vcommon_isolate_rd.h"
#include "Vcommon_isolate_wr.h"
#include "weft_test.h"

using namespace weft::test;

namespace {

constexpr int kMoments = 300;  // cycles into traffic at which the isolation begins

}  // namespace

TEST_CASE("isolate: a read master may go at any moment", "[common][isolate]") {
  for (Profile profile : {Profile::None, Profile::Half, Profile::Heavy}) {
    Bench<Vcommon_isolate_rd> b("weft_axi_isolate_rd");
    Rng rng(seed(), 500 + static_cast<uint64_t>(profile));
    Stall want(profile, 1), ar(profile, 2), r(profile, 3), take(profile, 4);
    b->isolate_i = b->s_axi_arvalid = b->m_axi_rvalid = b->s_axi_rready = b->m_axi_arready = 0;
    b.reset();
    std::deque<unsigned> memory;  // beats owed, by burst
    unsigned expected = 0;        // beats that the master of this life waits for
    unsigned got = 0;
    bool held = false, offered = false, waited = false;
    unsigned cut_beats = 0;
    const auto cycle = [&](bool isolate, bool alive) {
      b->isolate_i = isolate;
      if (!b->s_axi_arvalid) b->s_axi_arvalid = alive && memory.size() < 50 && want.go();
      b->s_axi_rready = alive && take.go();
      b->m_axi_arready = ar.go();
      if (!offered && !memory.empty() && r.go()) offered = true;
      b->m_axi_rvalid = offered;
      b->m_axi_rlast = offered && memory.front() == 1;
      b.eval();
      if (held) REQUIRE(b->m_axi_arvalid == 1);  // what was shown stays
      held = b->m_axi_arvalid && !b->m_axi_arready;
      const bool asked = b->m_axi_arvalid && b->m_axi_arready;
      REQUIRE(asked == (b->s_axi_arvalid && b->s_axi_arready));
      const bool beat = offered && b->m_axi_rready;
      const bool seen = b->s_axi_rvalid && b->s_axi_rready;
      if (beat && !seen) ++cut_beats;
      if (seen) {
        REQUIRE(beat);
        REQUIRE(got < expected);  // nothing that another life asked for
        ++got;
      }
      b.tick();
      b.progress();
      if (beat) {
        offered = false;
        if (--memory.front() == 0) memory.pop_front();
      }
      if (asked) {
        b->s_axi_arvalid = 0;
        const auto beats = static_cast<unsigned>(1 + rng.below(16));
        memory.push_back(beats);
        expected += beats;
      }
    };
    for (int moment = 0; moment < kMoments; ++moment) {
      for (int i = 0; i < moment; ++i) cycle(false, true);
      int cycles = 0;
      do {
        cycle(true, true);
        REQUIRE(++cycles < 20000);
      } while (!b->drained_o);
      waited = waited || cycles > 10;
      REQUIRE(memory.empty());
      b->s_axi_arvalid = 0;  // the master is reset
      expected = got = 0;
      for (int i = 0; i < 4; ++i) {
        cycle(true, false);
        REQUIRE(b->m_axi_arvalid == 0);
        REQUIRE(b->drained_o == 1);
      }
    }
    CHECK(waited);
    CHECK(cut_beats > 100);
  }
}

TEST_CASE("isolate: a write master may go at any moment, with its data under way", "[common][isolate]") {
  for (Profile profile : {Profile::None, Profile::Half, Profile::Heavy}) {
    Bench<Vcommon_isolate_wr> b("weft_axi_isolate_wr");
    Rng rng(seed(), 600 + static_cast<uint64_t>(profile));
    Stall want(profile, 1), aw(profile, 2), w(profile, 3), data(profile, 4), resp(profile, 5),
        take(profile, 6);
    b->isolate_i = b->s_axi_awvalid = b->s_axi_wvalid = b->m_axi_bvalid = b->s_axi_bready = 0;
    b->m_axi_awready = b->m_axi_wready = 0;
    b.reset();
    // The master: addresses ahead of data, the first beat of data with its address at the earliest.
    std::deque<unsigned> to_send;     // beats left, of bursts whose address is up or taken
    unsigned answers = 0, asked = 0;  // of this life
    // Memory: lengths of addresses taken, of data bursts complete.
    std::deque<unsigned> lengths, bursts;
    unsigned partial = 0, owed = 0, blanks = 0;
    bool aw_held = false, w_held = false, w_held_last = false, w_held_blank = false, offered = false;
    const auto cycle = [&](bool isolate, bool alive) {
      b->isolate_i = isolate;
      if (alive && !b->s_axi_awvalid && to_send.size() < 6 && want.go()) {
        const auto beats = static_cast<unsigned>(1 + (rng.chance(0.5) ? 0 : rng.below(20)));
        b->s_axi_awvalid = 1;
        b->s_axi_awlen = static_cast<uint8_t>(beats - 1);
        to_send.push_back(beats);
      }
      if (alive && !b->s_axi_wvalid && !to_send.empty() && data.go()) b->s_axi_wvalid = 1;
      b->s_axi_wlast = !to_send.empty() && to_send.front() == 1;
      b->s_axi_bready = alive && take.go();
      b->m_axi_awready = aw.go();
      b->m_axi_wready = w.go();
      if (!offered && owed != 0 && resp.go()) offered = true;
      b->m_axi_bvalid = offered;
      b.eval();
      if (aw_held) REQUIRE(b->m_axi_awvalid == 1);
      if (w_held) {
        REQUIRE(b->m_axi_wvalid == 1);
        REQUIRE(b->m_axi_wlast == w_held_last);
        REQUIRE(b->blank_o == w_held_blank);  // a beat does not turn blank while it waits
      }
      aw_held = b->m_axi_awvalid && !b->m_axi_awready;
      w_held = b->m_axi_wvalid && !b->m_axi_wready;
      w_held_last = b->m_axi_wlast;
      w_held_blank = b->blank_o;
      const bool address = b->m_axi_awvalid && b->m_axi_awready;
      const bool beat = b->m_axi_wvalid && b->m_axi_wready;
      const bool last = b->m_axi_wlast;
      const bool mine = b->s_axi_wvalid && b->s_axi_wready;
      REQUIRE(address == (b->s_axi_awvalid && b->s_axi_awready));
      if (beat) REQUIRE(mine != static_cast<bool>(b->blank_o));
      const bool answered = offered && b->m_axi_bready;
      if (b->s_axi_bvalid && b->s_axi_bready) REQUIRE(++answers <= asked);
      const unsigned len = b->s_axi_awlen + 1u;
      b.tick();
      b.progress();
      if (address) {
        lengths.push_back(len);
        b->s_axi_awvalid = 0;
        ++asked;
      }
      if (beat) {
        blanks += !mine;
        ++partial;
        if (last) {
          bursts.push_back(partial);
          partial = 0;
        }
      }
      if (mine) {
        b->s_axi_wvalid = 0;
        if (--to_send.front() == 0) to_send.pop_front();
      }
      while (!bursts.empty() && !lengths.empty()) {
        REQUIRE(bursts.front() == lengths.front());  // each address gets its beats, and wlast in its place
        bursts.pop_front();
        lengths.pop_front();
        ++owed;
      }
      if (answered) {
        offered = false;
        --owed;
      }
    };
    for (int moment = 0; moment < kMoments; ++moment) {
      for (int i = 0; i < moment; ++i) cycle(false, true);
      int cycles = 0;
      do {
        cycle(true, true);
        REQUIRE(++cycles < 20000);
      } while (!b->drained_o);
      REQUIRE(lengths.empty());
      REQUIRE(bursts.empty());
      REQUIRE(partial == 0);
      REQUIRE(owed == 0);
      b->s_axi_awvalid = b->s_axi_wvalid = 0;  // the master is reset
      to_send.clear();
      answers = asked = 0;
      for (int i = 0; i < 4; ++i) {
        cycle(true, false);
        REQUIRE(b->m_axi_awvalid == 0);
        REQUIRE(b->m_axi_wvalid == 0);
        REQUIRE(b->drained_o == 1);
      }
    }
    CHECK(blanks > 100);
  }
}

TEST_CASE("isolate: a frame begun is ended, and none begins", "[common][isolate]") {
  for (Profile profile : {Profile::None, Profile::Half}) {
    Bench<Vcommon_axis_isolate> b("weft_axis_isolate");
    Rng rng(seed(), 700 + static_cast<uint64_t>(profile));
    Stall want(profile, 1), ready(profile, 2);
    b->isolate_i = b->s_axis_tvalid = b->s_axis_tlast = b->m_axis_tready = 0;
    b.reset();
    bool open = false;  // the sink is inside a frame
    unsigned left = 0, finished = 0;
    const auto cycle = [&](bool isolate, bool alive) {
      b->isolate_i = isolate;
      if (alive && !b->s_axis_tvalid && want.go()) {
        if (left == 0) left = static_cast<unsigned>(1 + rng.below(8));
        b->s_axis_tvalid = 1;
      }
      b->s_axis_tlast = left == 1;
      b->m_axis_tready = ready.go();
      b.eval();
      const bool beat = b->m_axis_tvalid && b->m_axis_tready;
      REQUIRE(beat == (b->s_axis_tvalid && b->s_axis_tready));
      b.tick();
      b.progress();
      if (!beat) return;
      open = left != 1;
      --left;
      b->s_axis_tvalid = 0;
      finished += isolate;
    };
    for (int moment = 0; moment < kMoments; ++moment) {
      for (int i = 0; i < moment; ++i) cycle(false, true);
      do cycle(true, true);
      while (!b->drained_o);
      REQUIRE_FALSE(open);
      b->s_axis_tvalid = 0;  // the source is reset
      left = 0;
      for (int i = 0; i < 4; ++i) {
        cycle(true, false);
        REQUIRE(b->m_axis_tvalid == 0);
      }
    }
    CHECK(finished > 100);  // beats of frames under way
  }
}

TEST_CASE("isolate: a gate opens between two frames and counts what it keeps out", "[common][isolate]") {
  Bench<Vcommon_axis_gate> b("weft_axis_gate");
  Rng rng(seed(), 800);
  b->shut_i = b->s_axis_tvalid = b->s_axis_tlast = 0;
  b.reset();
  unsigned left = 0, kept_out = 0, counted = 0, passed = 0;
  bool shut = false, whole = false;  // the sink has had the frame from its first beat
  for (int i = 0; i < 20000; ++i) {
    if (rng.chance(0.02)) {
      shut = !shut;
      if (shut) whole = false;  // the sink is reset
    }
    b->shut_i = shut;
    const bool first = left == 0;
    b->s_axis_tvalid = rng.chance(0.7);
    if (b->s_axis_tvalid && first) left = static_cast<unsigned>(1 + rng.below(6));
    b->s_axis_tlast = left == 1;
    b.eval();
    if (b->s_axis_tvalid) {
      const bool through = b->m_axis_tvalid;
      if (first) whole = through;
      if (through && !shut) REQUIRE(whole);
      if (left == 1) {
        kept_out += !through;
        passed += through;
      }
      --left;
    } else {
      REQUIRE(b->m_axis_tvalid == 0);
    }
    b.tick();
    b.progress();
    counted += b->dropped_o;
  }
  CHECK(kept_out > 100);
  CHECK(passed > 100);
  CHECK(counted == kept_out);
}
