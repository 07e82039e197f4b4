// SPDX-License-Identifier: Apache-2.0
// Single losses, and what the user sees when a plane dies.
#include <set>

#include "harness.h"

using namespace weft::test;
namespace tb = weft::tb;

TEST_CASE("system: any single packet may be lost (case rtl 10, case transport 1)", "[system]") {
  // Each frame of a short run is lost in turn: data, ack, probe, first and last of a
  // message.
  auto make = [] {
    Trial t;
    t.workload.ranks = 2;
    t.workload.ops.push_back(op(wccl::Kind::kAllReduce, 600));
    t.config.transport.mtu = 512;
    return t;
  };
  const Outcome clean = make().run();
  REQUIRE(clean.error == "");
  std::uint64_t losses = 0;
  double worst = 0;
  for (std::uint32_t node = 0; node < 2; ++node)
    for (std::uint32_t port = 0; port < 2; ++port)
      for (std::uint64_t n = 0;; ++n) {
        Trial t = make();
        t.scenario.faults.drop.push_back({node, port, tb::FrameKind::kAny, n});
        CAPTURE(node, port, n);
        const Outcome o = t.run();
        REQUIRE(o.error == "");
        if (o.fabric.drop_listed == 0) break;  // there is no n-th frame
        ++losses;
        CHECK(o.traffic.resent <= 1);
        worst = std::max(worst, o.ops[0].time_ns - clean.ops[0].time_ns);
      }
  CHECK(losses > 20);
  // One probe: 2 us or srtt + 4 rttvar behind the tail, and the round trip.
  CHECK(worst < 20'000);
}

TEST_CASE("system: a plane that dies is a clean error, told once", "[system]") {
  // Until failover exists the connection fails, and says so.
  Trial t;
  t.workload.ranks = 4;
  t.workload.ops.push_back(op(wccl::Kind::kAllReduce, 40'000));
  t.workload.ops.back().repeat = 50;
  tb::DownFault down;
  down.plane = 1;
  down.from_ps = 300 * tb::kUs;
  t.scenario.faults.down.push_back(down);
  t.config.transport.retry_limit = 6;
  const Outcome o = t.run();
  CAPTURE(o.error);
  CHECK(o.error.find("RETRY_LIMIT") != std::string::npos);
  CHECK(o.error.find("to rank") != std::string::npos);
}
