// SPDX-License-Identifier: Apache-2.0
// The checker of credits: it looks only where the block has been quiet for long enough, and then it sees.
#include <catch2/catch.hpp>

#include "Vhome.h"
#include "weft_test.h"

using weft::test::Bench;

namespace {

constexpr unsigned kRest = 8;

struct Home : Bench<Vhome> {
  Home() : Bench("weft_home") {
    dut().quiet_i = 0;
    dut().home_i = 0;
    reset();
    expect_assertion();
  }
  bool fires(unsigned cycles) {
    ticks(cycles);
    return assertion_fired();
  }
};

}  // namespace

TEST_CASE("home: a credit that is out at rest is seen, and one out at work is not", "[watch][smoke]") {
  Home working;
  CHECK_FALSE(working.fires(50));
  Home short_rests;
  for (int i = 0; i < 5; ++i) {
    short_rests->quiet_i = 1;
    CHECK_FALSE(short_rests.fires(kRest - 1));
    short_rests->quiet_i = 0;
    CHECK_FALSE(short_rests.fires(1));
  }
  Home home;
  home->quiet_i = home->home_i = 1;
  CHECK_FALSE(home.fires(50));
  Home leaky;
  leaky->quiet_i = 1;
  CHECK(leaky.fires(kRest + 3));
}
