// SPDX-License-Identifier: Apache-2.0
#include "Vctl_small.h"
#include "ctl_world.h"

using namespace weft::test;
using namespace weft::test::ctl;
using W = World<Vctl_small>;

TEST_CASE("ctl: few descriptors and three paths: nothing leaks", "[ctl][random]") {
  Settings s;
  s.conns = 4;
  s.paths = s.num_paths = 3;
  s.ports = 1;
  s.port = 0;
  s.loss = s.ack_loss = 0.08;
  s.ack_copy = 0.1;
  s.skew = 700;
  s.pull_max = 12;
  s.stall = Profile::Light;
  s.retry_limit = 60;
  s.mtu_log2 = 10;
  W w(s, 500);
  for (unsigned c = 0; c < 4; ++c) w.configure(c);
  for (unsigned round = 0; round < 30; ++round) {
    for (unsigned c = 0; c < 4; ++c) w.post(c, 60, static_cast<uint32_t>(w.rng.below(1025)));
    const bool rest = w.finish();
    INFO(w.report());
    REQUIRE(rest);
  }
  w.check_end();
  INFO(w.report());
  REQUIRE(w.errors.empty());
}
