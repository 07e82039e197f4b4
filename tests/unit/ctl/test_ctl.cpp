// SPDX-License-Identifier: Apache-2.0
#include "Vctl_flat.h"
#include "ctl_world.h"

using namespace weft::test;
using namespace weft::test::ctl;
using W = World<Vctl_flat>;

TEST_CASE("ctl: every packet arrives once over loss, stalls and reordered acks", "[ctl][random]") {
  struct Case {
    double loss;
    Profile stall;
    unsigned conns;
    unsigned count;
  };
  const Case cases[] = {{0, Profile::None, 3, 2000},       {0.01, Profile::Light, 8, 600}, {0.1, Profile::Half, 8, 400},
                        {0.3, Profile::Changing, 20, 120}, {0.02, Profile::Heavy, 5, 250}, {0.05, Profile::Bursts, 64, 60}};
  uint64_t stream = 0;
  for (const Case& k : cases) {
    Settings s;
    s.loss = k.loss;
    s.ack_loss = k.loss;
    s.ack_copy = 0.1;
    s.mark = 0.05;
    s.put_off = 0.02;
    s.jitter = 60;
    s.skew = 900;
    s.ack_jitter = 400;
    s.pull_max = 20;
    s.stall = k.stall;
    s.retry_limit = 60;
    W w(s, ++stream * 10);
    for (unsigned c = 0; c < k.conns; ++c) w.configure(c);
    for (unsigned c = 0; c < k.conns; ++c) {
      std::vector<uint32_t> lens;
      for (unsigned i = 0; i < k.count; ++i)
        lens.push_back(w.rng.chance(0.5) ? 4096 : static_cast<uint32_t>(w.rng.below(4097)) * w.rng.below(2));
      // In bursts, so that connections run dry and start again.
      size_t at = 0;
      while (at < lens.size()) {
        const size_t n = std::min<size_t>(1 + w.rng.below(80), lens.size() - at);
        w.post(c, std::vector<uint32_t>(lens.begin() + at, lens.begin() + at + n));
        at += n;
        if (w.rng.chance(0.3)) w.run(w.rng.below(3000));
      }
    }
    const bool rest = w.finish();
    if (rest) w.check_end();
    INFO("loss " << k.loss << ", " << w.frames << " frames, " << w.frames_lost << " lost\n" << w.report());
    REQUIRE(w.errors.empty());
    CHECK(w.counts.bad == 0);
    CHECK(w.counts.fail == 0);
    CHECK(w.counts.data == w.counts.delivered + w.counts.lost);
    CHECK(w.counts.retx == w.counts.lost);
    if (k.loss == 0) CHECK(w.counts.retx == 0);
  }
}
