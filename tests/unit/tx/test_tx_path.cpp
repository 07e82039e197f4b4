// SPDX-License-Identifier: Apache-2.0
//
// weft_tx_path: every frame bit by bit under stalls, frame rate, order of acks and data, memory errors, and
// that the check of the frames can fail.
#include <algorithm>

#include "Vtx_flat.h"
#include "Vtx_small.h"
#include "tx_bench.h"
#include "weft_test.h"

namespace {

using namespace weft;
using weft::test::Bench;
using weft::test::Rng;
using weft::test::seed;
using weft::tx::Ack;
using weft::tx::Job;
using weft::tx::Stalls;
using TxBench = Bench<Vtx_flat>;
using Surroundings = weft::tx::Surroundings<TxBench>;

/// Random jobs and acks for `env` until the end of the test.
struct RandomWork {
  explicit RandomWork(auto& env, uint64_t stream = 0) : jobs(seed(), 31 + stream), acks(seed(), 32 + stream) {
    env.next_job = [this] { return std::optional(tx::random_job(jobs)); };
    env.next_ack = [this]() -> std::optional<Ack> {
      return acks.below(6) == 0 ? std::optional(tx::random_ack(acks)) : std::nullopt;
    };
  }
  Rng jobs, acks;
};

void check_clean(const auto& env) {
  INFO(env.errors());
  REQUIRE(env.wrong_frames() == 0);
}

/// Jobs of one kind without end.
void same_jobs(Surroundings& env, Rng& rng, bool probe, uint16_t len) {
  env.next_job = [&rng, probe, len] {
    Job j = tx::random_job(rng);
    j.probe = probe;
    j.len = len;
    j.laddr = tx::random_addr(rng, len);
    return std::optional(j);
  };
}

}  // namespace

TEST_CASE("tx: every bit of every frame is right whatever is held back (case rtl 9)", "[tx][random]") {
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    for (const unsigned latency : {1u, 40u, 400u}) {
      TxBench b("tx_path");
      Surroundings env(b, tx::all_stalls(p, latency), seed() * 16 + latency);
      RandomWork work(env);
      env.start();
      env.run(p > 0.8 ? 400 : 2000);
      env.drain();
      INFO("stall " << p << ", latency " << latency);
      check_clean(env);
      REQUIRE(env.seen().acks > 20);
      REQUIRE(env.seen().probes > 20);
    }
  }
}

TEST_CASE("tx: one stream held back alone", "[tx][random]") {
  const Stalls profiles[] = {{.job = 0.9},
                             {.ack = 0.9},
                             {.axi_addr = 0.9},
                             {.axi_data = 0.9},
                             {.mac = 0.9},
                             {.job = 0.5, .axi_data = 0.5, .latency = 200},
                             {.axi_addr = 0.5, .mac = 0.5}};
  for (const Stalls& stalls : profiles) {
    TxBench b("tx_path");
    Surroundings env(b, stalls, seed());
    RandomWork work(env, 2);
    env.start();
    env.run(500);
    env.drain();
    check_clean(env);
  }
}

TEST_CASE("tx: the smallest queues and buffers change nothing but speed (case rtl 2)", "[tx][random]") {
  for (const double p : {0.0, 0.5}) {
    Bench<Vtx_small> b("tx_path");
    weft::tx::Surroundings<Bench<Vtx_small>> env(b, tx::all_stalls(p, 100), seed());
    RandomWork work(env, 3);
    env.start();
    env.run(1000);
    env.drain();
    check_clean(env);
    REQUIRE(env.max_flight() <= 256);
  }
}

TEST_CASE("tx: every payload length and every alignment once (case transport 9)", "[tx]") {
  TxBench b("tx_path");
  Surroundings env(b, {}, seed());
  Rng rng(seed(), 5);
  unsigned next = 0;
  constexpr unsigned kShort = 200 * 64;
  env.next_job = [&]() -> std::optional<Job> {
    if (next == kShort + 4097) return std::nullopt;
    Job j = tx::random_job(rng);
    j.probe = false;
    if (next < kShort) {
      j.len = static_cast<uint16_t>(next / 64);
      j.laddr = (j.laddr & ~uint64_t{63}) + next % 64;
    } else {
      j.len = static_cast<uint16_t>(next - kShort);
    }
    ++next;
    return j;
  };
  env.start();
  env.run(kShort + 4097);
  env.drain();
  check_clean(env);
}

TEST_CASE("tx: more than 16 short frames wait behind a slow sink, each keeps its payload (case rtl 1)",
          "[tx][random]") {
  TxBench b("tx_path");
  Surroundings env(b, {.mac = 0.97, .latency = 40}, seed());
  Rng rng(seed(), 15);
  uint64_t asked = 0, waiting = 0;
  env.next_job = [&] {
    Job j = tx::random_job(rng);
    j.probe = false;
    j.len = static_cast<uint16_t>(rng.below(60));
    j.laddr = tx::random_addr(rng, j.len);
    waiting = std::max(waiting, asked++ - env.seen().frames);
    return std::optional(j);
  };
  env.start();
  env.run(300);
  env.drain();
  check_clean(env);
  REQUIRE(waiting > 16);
  REQUIRE(env.seen().frames == asked);
}

TEST_CASE("tx: a payload of 4096 bytes from the start of a page is one read (case rtl 5)", "[tx]") {
  TxBench b("tx_path");
  Surroundings env(b, {.latency = 40}, seed());
  Rng rng(seed(), 16);
  env.next_job = [&] {
    Job j = tx::random_job(rng);
    j.probe = false;
    j.len = 4096;
    j.laddr &= ~uint64_t{4095};
    return std::optional(j);
  };
  env.start();
  env.run(50);
  env.drain();
  check_clean(env);
  REQUIRE(env.counted().reads == env.seen().frames);
}

TEST_CASE("tx: beats of a frame are its cycles, at 40 and at 400 cycles of memory latency", "[tx][rate]") {
  struct {
    bool probe;
    uint16_t len;
    uint64_t cycles;
  } const cases[] = {{true, 0, 2},    {false, 0, 2},     {false, 64, 3},
                     {false, 256, 6}, {false, 1024, 18}, {false, 4096, 66}};
  for (const unsigned latency : {40u, 400u}) {
    for (const auto& c : cases) {
      TxBench b("tx_path");
      Surroundings env(b, {.latency = latency}, seed());
      Rng rng(seed(), 6);
      same_jobs(env, rng, c.probe, c.len);
      env.start();
      const uint64_t warm = 1000 / c.cycles + 2, frames = 4000 / c.cycles;
      env.run(warm);
      const uint64_t start = b.cycle();
      env.run(warm + frames);
      INFO("payload " << c.len << ", latency " << latency);
      REQUIRE(b.cycle() - start == c.cycles * frames);
      check_clean(env);
    }
  }
}

TEST_CASE("tx: IP checksum whose folded sum carries twice (case rtl 3)", "[tx]") {
  // verilog-ethernet #254, #264. The hardware adds up constants and source address, then that, length and
  // destination: both sums are made to be 0x1ffff, whose folding carries once more.
  constexpr uint32_t kLength = 20 + 8 + 12 + 8 + 28 + 64 + 4, kConstant = 0x4500 + 0x4000 + 0x4011;
  const uint32_t port_sums[] = {0x1ffff - kConstant, 0xfff0 - kConstant};
  for (const uint32_t port_sum : port_sums) {
    TxBench b("tx_path");
    Surroundings env(b, {}, seed());
    Rng rng(seed(), 8);
    const uint32_t low = std::min<uint32_t>(port_sum, 0xfff0);
    env.port().ip = (port_sum - low) << 16 | low;
    const uint32_t first = (kConstant + port_sum) % 0xffff + (kLength | wire::kEcnEct0);
    for (unsigned conn = 1; conn < tx::kNumConns; ++conn) {
      const uint32_t want = std::min<uint32_t>(0x1ffff - first, 0xffff);
      const uint32_t high = static_cast<uint32_t>(rng.below(want + 1));
      env.peer(conn).ip = high << 16 | (want - high);
    }
    env.peer(0).ip = 0xffffffff;  // broadcast
    same_jobs(env, rng, false, 64);
    env.start();
    env.run(200);
    env.drain();
    INFO("port sum " << port_sum);
    check_clean(env);
  }
}

TEST_CASE("tx: an ack overtakes data that waits for memory", "[tx]") {
  TxBench b("tx_path");
  Surroundings env(b, {}, seed());
  Rng rng(seed(), 9);
  same_jobs(env, rng, false, 4096);
  env.hold_memory(4000);
  unsigned acks = 0;
  env.next_ack = [&]() -> std::optional<Ack> {
    if (b.cycle() % 50 != 0 || b.cycle() < 1200 || b.cycle() > 3500) return std::nullopt;
    ++acks;
    return tx::random_ack(rng);
  };
  env.start();
  while (b.cycle() < 3700) env.step();
  check_clean(env);
  REQUIRE(acks > 40);
  REQUIRE(env.seen().acks == acks);
  REQUIRE(env.seen().data == 0);
  REQUIRE(env.max_ack_wait() <= 20);
  env.run(acks + 40);
  env.drain();
  check_clean(env);
}

TEST_CASE("tx: acks and data share the wire frame by frame", "[tx]") {
  TxBench b("tx_path");
  Surroundings env(b, {}, seed());
  Rng rng(seed(), 10);
  same_jobs(env, rng, false, 4096);
  env.next_ack = [&] { return std::optional(tx::random_ack(rng)); };
  env.start();
  env.run(400);
  check_clean(env);
  REQUIRE(env.seen().data >= 190);
  REQUIRE(env.seen().acks >= 190);
  // The frame under way and its own way through the pipeline.
  REQUIRE(env.max_ack_wait() <= 66 + 20);
}

TEST_CASE("tx: a timestamp is not older than what waits behind it on the way to the MAC", "[tx]") {
  for (const double p : {0.0, 0.5}) {
    TxBench b("tx_path");
    Surroundings env(b, {.mac = p, .latency = 400}, seed());
    RandomWork work(env, 4);
    env.start();
    env.run(1000);
    check_clean(env);
    if (p == 0.0) REQUIRE(env.max_age() <= 8);  // memory's 400 cycles are not part of an RTT
    if (p == 0.5) REQUIRE(env.max_age() <= 64 * 4);
  }
}

TEST_CASE("tx: a packet whose payload cannot be read is reported and not sent", "[tx][random]") {
  for (const double p : {0.0, 0.5}) {
    TxBench b("tx_path");
    Surroundings env(b, tx::all_stalls(p, 40), seed());
    env.memory.error_one_in = 50;
    RandomWork work(env, 5);
    env.start();
    env.run(1500);
    env.drain();
    check_clean(env);
    REQUIRE(env.counted().mem_errors > 50);
  }
}

TEST_CASE("tx: a connection is written again between frames", "[tx]") {
  TxBench b("tx_path");
  Surroundings env(b, {}, seed());
  RandomWork work(env, 6);
  env.start();
  for (unsigned round = 0; round < 8; ++round) {
    RandomWork more(env, 7 + round);
    env.run(env.seen().frames + 200);
    env.drain();
    check_clean(env);
    for (unsigned conn = round; conn < tx::kNumConns; conn += 8) {
      env.peer(conn) = {more.jobs() & 0xffffffffffff, static_cast<uint32_t>(more.jobs()),
                        static_cast<uint32_t>(more.jobs()) & 0xffffff, static_cast<uint16_t>(more.jobs()),
                        static_cast<uint16_t>(more.jobs())};
      env.configure(conn);
    }
  }
}

TEST_CASE("tx: no more is read ahead than the buffer holds, and that is enough", "[tx]") {
  TxBench b("tx_path");
  Surroundings env(b, {.mac = 0.9, .latency = 400}, seed());
  Rng rng(seed(), 12);
  same_jobs(env, rng, false, 4096);
  env.start();
  env.run(60);
  check_clean(env);
  REQUIRE(env.max_flight() > 400);
  REQUIRE(env.max_flight() <= 1024);
}

TEST_CASE("tx: the check notices one wrong bit anywhere in a frame", "[tx][fault]") {
  Rng rng(seed(), 13);
  for (unsigned round = 0; round < 60; ++round) {
    TxBench b("tx_path");
    Surroundings env(b, {}, seed() + round);
    RandomWork work(env, 20 + round);
    uint64_t at = 0;
    env.corrupt = [&](std::vector<uint8_t>& frame) {
      if (env.seen().frames != 10) return;
      // Timestamp excepted: its low bits may be a little off without anybody being able to tell.
      do at = rng.below(frame.size());
      while (at >= 60 && at < 62);
      if (round == 0) at = frame.size() - 1;
      if (round == 1) at = frame.size() - 4;
      frame[at] ^= static_cast<uint8_t>(1u << rng.below(8));
    };
    env.start();
    env.run(12);
    INFO("byte " << at);
    REQUIRE(env.wrong_frames() >= 1);
  }
}

TEST_CASE("tx: the check notices one wrong bit from memory", "[tx][fault]") {
  TxBench b("tx_path");
  Surroundings env(b, {}, seed());
  Rng rng(seed(), 14);
  same_jobs(env, rng, false, 300);
  env.start();
  env.run(3);
  check_clean(env);
  // The model of the memory changes behind the back of the hardware: what was read before is now wrong.
  env.memory.seed ^= 1;
  env.run(6);
  REQUIRE(env.wrong_frames() >= 1);
}
