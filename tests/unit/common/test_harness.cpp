// SPDX-License-Identifier: Apache-2.0
//
// The harness itself: its random numbers repeat, its throttles stall as often as they say, and a
// bench notices a broken rule of the RTL.
#include "Vcommon_probe.h"
#include "Vcommon_skid.h"
#include "verilated_syms.h"  // the scopes of a context
#include "weft_test.h"

using weft::test::Bench;
using weft::test::Profile;
using weft::test::Rng;
using weft::test::Stall;

TEST_CASE("harness: the same seed and stream give the same numbers", "[harness][smoke]") {
  Rng a(5, 1), b(5, 1), other(5, 2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a();
    CHECK(x == b());
    differs |= x != other();
  }
  CHECK(differs);
  CHECK(Rng(1)() == 0xb3f2af6d0fc710c5u);  // the sequence never changes
}

TEST_CASE("harness: stall profiles hold back as often as they say", "[harness][smoke]") {
  const std::pair<Profile, double> shares[] = {{Profile::None, 0.0},   {Profile::Light, 0.1},
                                               {Profile::Half, 0.5},   {Profile::Heavy, 0.9},
                                               {Profile::Bursts, 0.5}, {Profile::Changing, 0.45}};
  for (auto [profile, share] : shares) {
    Stall stall(profile, 7, 1);
    int held = 0;
    for (int i = 0; i < 100000; ++i) held += stall.stalled();
    CAPTURE(name_of(profile));
    CHECK(held / 100000.0 == Approx(share).margin(0.03));
  }
}

namespace {

/// The probe with every rule kept, after reset.
struct Probe : Bench<Vcommon_probe> {
  Probe() : Bench("weft_assert_probe") {
    dut().ok_i = 1;
    dut().a_i = dut().b_i = dut().before_i = dut().after_i = 0;
    dut().valid_i = dut().ready_i = dut().data_i = 0;
    reset();
    tick();
  }
  /// Whether an assertion fires within two cycles of `change`.
  template <class F>
  static bool fires(F change) {
    Probe probe;
    probe.expect_assertion();
    change(probe);
    probe.ticks(2);
    return probe.assertion_fired();
  }
};

}  // namespace

TEST_CASE("harness: each assertion macro fires when its rule is broken, and only then", "[harness][smoke]") {
  CHECK_FALSE(Probe::fires([](Probe&) {}));
  CHECK(Probe::fires([](Probe& p) { p->ok_i = 0; }));

  CHECK(Probe::fires([](Probe& p) { p->a_i = 1; }));
  CHECK_FALSE(Probe::fires([](Probe& p) { p->a_i = p->b_i = 1; }));
  CHECK_FALSE(Probe::fires([](Probe& p) { p->b_i = 1; }));

  CHECK(Probe::fires([](Probe& p) { p->before_i = 1; }));
  CHECK_FALSE(Probe::fires([](Probe& p) {
    p->before_i = 1;
    p.tick();
    p->before_i = 0;
    p->after_i = 1;
  }));

  CHECK(Probe::fires([](Probe& p) {  // the offer is withdrawn
    p->valid_i = 1;
    p.tick();
    p->valid_i = 0;
  }));
  CHECK(Probe::fires([](Probe& p) {  // the offer changes
    p->valid_i = 1;
    p.tick();
    p->data_i = 5;
  }));
  CHECK_FALSE(Probe::fires([](Probe& p) {  // taken, then another
    p->valid_i = p->ready_i = 1;
    p.tick();
    p->data_i = 5;
  }));
}

TEST_CASE("harness: nothing is checked in reset", "[harness][smoke]") {
  Bench<Vcommon_probe> b;
  b->ok_i = 0;
  b->a_i = 1;
  b->b_i = 0;
  b->rst_i = 1;
  b.ticks(10);
  CHECK_FALSE(b.assertion_fired());
}

TEST_CASE("harness: a broken rule of the RTL fails the test", "[harness][!shouldfail]") {
  Probe p;
  p->ok_i = 0;
  p.ticks(2);
}

TEST_CASE("harness: no progress fails the test", "[harness][!shouldfail]") {
  Probe p;
  p.patience(100);
  p.ticks(200);
}

TEST_CASE("harness: of two models the one that goes leaves the other its scopes", "[harness][smoke]") {
  // Each way round: the model made last is the thread's, whichever goes first.
  for (const bool last : {false, true}) {
    auto a = std::make_unique<Bench<Vcommon_skid>>("same_name");
    auto b = std::make_unique<Bench<Vcommon_skid>>("same_name");
    auto& goes = last ? b : a;
    auto& stays = last ? a : b;
    VerilatedContext& left = stays->context();
    REQUIRE(left.scopeNameMap() != nullptr);
    const size_t scopes = left.scopeNameMap()->size();
    REQUIRE(scopes > 0);
    const VerilatedContext* const gone = &goes->context();
    goes.reset();
    CHECK(left.scopeNameMap()->size() == scopes);
    CHECK(Verilated::threadContextp() != gone);
    stays->reset();
    stays->ticks(3);
  }
}
