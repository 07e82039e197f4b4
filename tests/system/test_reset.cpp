// SPDX-License-Identifier: Apache-2.0
// Soft reset in the middle of traffic of every master, with memory that stalls as it likes: no burst and no
// frame is broken, and what runs afterwards is right to the bit. RESETS=n: as many moments (default 10).
#include <cstring>

#include "job.h"
#include "weft_regs.h"

using namespace weft::test;
namespace regs = weft::regs;
namespace tb = weft::tb;

namespace {

unsigned resets() {
  const char* wanted = std::getenv("RESETS");
  return wanted == nullptr ? 10 : static_cast<unsigned>(std::strtoul(wanted, nullptr, 10));
}

// The reset as the driver does it, at every node at once. Returns the largest number of reads of IDLE that
// told of a drain.
unsigned reset_all(Job& job) {
  unsigned drains = 0;
  for (int r = 0; r < job.ranks(); ++r)
    job.runner().device(r).hal().csr_write(regs::kCtrl, regs::kCtrlSoftReset.put(1));
  for (int r = 0; r < job.ranks(); ++r) {
    unsigned here = 0;
    for (int i = 0;; ++i) {
      const std::uint32_t idle = job.runner().device(r).hal().csr_read(regs::kIdle);
      if (regs::kIdleResetDone.get(idle) != 0) break;
      here += regs::kIdleDraining.get(idle);
      REQUIRE(i < 20000);
    }
    drains = std::max(drains, here);
  }
  return drains;
}

}  // namespace

TEST_CASE("reset: at any moment of traffic no burst breaks and the next run is right", "[reset][random]") {
  constexpr int kRanks = 2;
  constexpr std::uint64_t kCount = 6000;
  wccl::Op all_reduce;
  all_reduce.kind = wccl::Kind::kAllReduce;
  all_reduce.type = wccl::Type::kInt32;
  all_reduce.count = kCount;
  Trial trial;
  trial.scenario.memory.stall = 0.3;
  trial.scenario.memory.latency_min_cycles = 20;
  trial.scenario.memory.latency_max_cycles = 200;
  Job job(kRanks, all_reduce, trial);
  Rng rng(seed(), 77);
  unsigned drains = 0;
  for (unsigned n = 0; n < resets(); ++n) {
    const int broken = job.prepare(all_reduce, {0, 64 * 1024});
    for (int r = 0; r < kRanks; ++r) REQUIRE(job.comm(r).start(broken).ok());
    const std::uint64_t cycles = 30 + rng.below(3000);
    CAPTURE(n, cycles);
    REQUIRE(job.cluster().run_for(static_cast<tb::Ps>(cycles) * kPeriod_ps).ok());
    drains += reset_all(job);
    {
      INFO(job.cluster().status().text());
      REQUIRE(job.cluster().status().ok());
    }
    job.setup(seed() + n + 1);
    if (n % 3 != 2 && n + 1 != resets()) continue;
    const int plan = job.prepare(all_reduce, {0, 64 * 1024});
    std::vector<std::int32_t> sum(kCount);
    for (int r = 0; r < kRanks; ++r) {
      std::vector<std::int32_t> mine(kCount);
      for (auto& v : mine) v = static_cast<std::int32_t>(rng());
      for (std::size_t i = 0; i < kCount; ++i)
        sum[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[i]) +
                                           static_cast<std::uint32_t>(mine[i]));
      job.put(r, 0, mine);
    }
    REQUIRE(job.run(plan) == "");
    for (int r = 0; r < kRanks; ++r) REQUIRE(job.get<std::int32_t>(r, 64 * 1024, kCount) == sum);
  }
  CHECK(drains > 0);  // at some of the moments something was owed
  INFO(job.cluster().status().text());
  CHECK(job.cluster().status().ok());
}
