// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <vector>

#include "Vcommon_sdpram.h"
#include "weft_test.h"

TEST_CASE("sdpram: reads are a cycle late, hold, and see the old content", "[sdpram][random]") {
  constexpr uint32_t kDepth = 48;
  weft::test::Bench<Vcommon_sdpram> b;
  weft::test::Rng rng;
  std::vector<std::optional<uint32_t>> model(kDepth);
  std::optional<uint32_t> expected;
  for (int i = 0; i < 20000; ++i) {
    b->we_i = rng.chance(0.5);
    b->waddr_i = rng.below(kDepth);
    b->wdata_i = static_cast<uint32_t>(rng());
    b->re_i = rng.chance(0.7);
    b->raddr_i = rng.chance(0.5) ? b->waddr_i : rng.below(kDepth);
    if (b->re_i) expected = model[b->raddr_i];
    if (b->we_i) model[b->waddr_i] = b->wdata_i;
    b.tick();
    if (expected) REQUIRE(b->rdata_o == *expected);
    b.progress();
  }
}
