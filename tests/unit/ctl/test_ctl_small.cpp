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

TEST_CASE("ctl: a descriptor that was used before is no packet until it is filled again", "[ctl]") {
  // Connection 1 leaves 40 neighbouring PSNs in the pool. Connection 0 sends one packet at a time: a
  // descriptor of these is linked behind it, and every fortieth time its old PSN is that of the probe.
  Settings s;
  s.conns = 4;
  s.paths = s.num_paths = 3;
  s.ports = 1;
  s.port = 0;
  s.mtu_log2 = 8;
  s.delay = s.ack_delay = 50;
  s.ack_hold = 20;
  W w(s, 510);
  w.s.num_paths = 1;
  for (unsigned psn = 0; psn < 256; psn += 7) {
    INFO("PSN " << psn);
    w.s.psn = psn;
    w.configure(1);
    w.post(1, 40, 256);
    REQUIRE(w.finish(20000));
    for (unsigned i = 0; i < 8; ++i) {
      w.s.psn = psn + static_cast<uint32_t>(w.rng.below(40));
      w.configure(0);
      w.post(0, 1, 256);
      REQUIRE(w.finish(20000));
    }
  }
  w.check_end();
  INFO(w.report());
  REQUIRE(w.errors.empty());
}
