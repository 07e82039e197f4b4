// SPDX-License-Identifier: Apache-2.0
//
// weft_rr_arb: who always asks is served equally often, for any number of requesters; who holds a
// request is served within as many grants as there are requesters, whatever the others do.
#include <array>

#include "Vcommon_arb1.h"
#include "Vcommon_arb12.h"
#include "Vcommon_arb3.h"
#include "Vcommon_arb4.h"
#include "Vcommon_arb5.h"
#include "weft_test.h"

namespace {

using weft::test::Bench;
using weft::test::Rng;

template <class V>
void fairness(const char* name, unsigned requesters) {
  INFO(name);
  Bench<V> b(name);
  b->req_i = 0;
  b->take_i = 0;
  b.reset();
  Rng rng(weft::test::seed(), requesters);
  for (const double busy : {1.0, 0.7, 0.2}) {
    std::array<unsigned, 16> served{}, waited{};
    std::uint32_t held = 0;
    for (unsigned cycle = 0; cycle < 2000 * requesters; ++cycle) {
      for (unsigned i = 0; i < requesters; ++i) {
        if (rng.chance(busy)) held |= 1U << i;  // held until served
      }
      b->req_i = static_cast<std::uint16_t>(held);
      b->take_i = held != 0 && (busy == 1.0 || rng.chance(0.8));
      b.eval();
      const std::uint32_t grant = b->gnt_o;
      REQUIRE((grant != 0) == (held != 0));
      REQUIRE((grant & (grant - 1)) == 0);
      REQUIRE((grant & ~held) == 0);
      if (grant != 0) REQUIRE(grant == 1U << b->idx_o);
      if (b->take_i) {
        for (unsigned i = 0; i < requesters; ++i) {
          if (grant >> i & 1) {
            ++served[i];
            waited[i] = 0;
            held &= ~(1U << i);
          } else if (held >> i & 1) {
            REQUIRE(++waited[i] < requesters);
          }
        }
        b.progress();
      }
      b.tick();
    }
    if (busy == 1.0) {
      for (unsigned i = 0; i < requesters; ++i) CHECK(served[i] == 2000);
    }
  }
}

TEST_CASE("arbiter: requesters that always ask have equal shares and no one waits long", "[common][random]") {
  fairness<Vcommon_arb1>("weft_rr_arb of 1", 1);
  fairness<Vcommon_arb3>("weft_rr_arb of 3", 3);
  fairness<Vcommon_arb4>("weft_rr_arb of 4", 4);
  fairness<Vcommon_arb5>("weft_rr_arb of 5", 5);
  fairness<Vcommon_arb12>("weft_rr_arb of 12", 12);
}

}  // namespace
