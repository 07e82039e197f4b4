// SPDX-License-Identifier: Apache-2.0
//
// The whole reducer in front of a memory that stalls, answers late and fails on demand: what a request
// may be, and what becomes of bad ones. Every byte of memory is compared with the reference.
#include "Vnmc_top.h"
#include "nmc_fixture.h"

using namespace weft;
using nmc::NmcRequest;
using nmc::NmcSettings;
using Fixture = test::Fixture<Vnmc_top>;
using test::kPage;
using wire::Dtype;
using wire::Err;
using wire::Redop;

TEST_CASE("nmc: one 64-byte int32 sum gives one output beat (case rtl 13)", "[nmc][smoke]") {
  Fixture f;
  f.clear();
  NmcRequest r = f.request(Dtype::INT32, Redop::SUM, 2, 16);
  f.lay_out(r, 0, 0, 0, 0);
  r.stride = 0;
  f.run({r});
  CHECK(f.world().beats_written() == 1);
  CHECK(f.world().bursts_written() == 1);
  CHECK(f.world().completions().size() == 1);
}

TEST_CASE("nmc: lengths from 0 to 300 bytes", "[nmc]") {
  NmcSettings s;
  s.size = 2 << 20;
  Fixture f(s, 0.1);
  using enum Redop;
  struct Kind {
    Dtype from, to;
    Redop op;
    unsigned nsrc;
  };
  std::vector<Kind> kinds = {{Dtype::UINT8, Dtype::UINT8, COPY, 1},
                             {Dtype::INT32, Dtype::INT32, SUM, 2},
                             {Dtype::INT32, Dtype::INT32, MIN, 3}};
  for (Dtype from : test::kInts) {
    for (Redop op : {SUM, MAX, PROD, PREMUL_SUM, AVG, AND, XOR}) kinds.push_back({from, from, op, 2});
    for (Dtype to : test::kInts) kinds.push_back({from, to, from < to ? COPY : OR, from < to ? 1u : 3u});
  }
  for (Dtype from : test::kFloats) {
    for (Redop op : {SUM, MAX, PROD, AVG, PREMUL_SUM}) kinds.push_back({from, from, op, 2});
    for (Dtype to : test::kFloats) {
      kinds.push_back({from, to, COPY, 1});
      kinds.push_back({from, to, SUM, static_cast<unsigned>(f.rng().range(2, 4))});
    }
  }
  for (const Kind& k : kinds) {
    std::vector<NmcRequest> round;
    f.clear();
    for (uint64_t count = 0; count <= 300 / num::bytes_of(k.to); ++count) {
      NmcRequest r = f.request(k.from, k.to, k.op, k.nsrc, count);
      r.own = static_cast<unsigned>(f.rng().below(k.nsrc));
      r.job.scalar =
          num::divides(r.job) ? f.rng().range(1, num::kMaxSources) : 0x3f000000 + f.rng().below(1 << 22);
      f.lay_out(r);
      round.push_back(r);
    }
    f.run(round);
  }
}

TEST_CASE("nmc: random requests under every stall profile", "[nmc][random]") {
  for (test::Profile profile : test::kProfiles) {
    CAPTURE(test::name_of(profile));
    NmcSettings s;
    s.jitter = 100;
    s.aw_waits_for_w = profile == test::Profile::Half;
    s.w_waits_for_aw = profile == test::Profile::Light || profile == test::Profile::Bursts;
    s.read_early = profile == test::Profile::Changing || profile == test::Profile::Light;
    Fixture f(s, profile);
    for (int round = 0; round < 20; ++round) {
      f.clear();
      std::vector<NmcRequest> requests;
      for (int i = 0; i < 40; ++i) requests.push_back(f.any_request(i % 8 == 0 ? 3000 : 200));
      f.run(requests);
    }
  }
}

TEST_CASE("nmc: random requests up to 1 MB", "[nmc][random]") {
  NmcSettings s;
  s.latency = 400;
  s.size = 24 << 20;
  Fixture f(s, 0.2);
  for (uint64_t longest : {1u << 14, 1u << 16, 1u << 18}) {
    f.clear();
    std::vector<NmcRequest> requests;
    for (int i = 0; i < 5; ++i) requests.push_back(f.any_request(longest, 3));
    f.run(requests);
  }
}

TEST_CASE("nmc: bad requests complete with their error and touch no memory", "[nmc]") {
  Fixture f;
  f.clear();
  std::vector<NmcRequest> requests;
  std::vector<Err> want;
  const auto add = [&](Err err, auto spoil) {
    NmcRequest r = f.request(Dtype::FLOAT32, Redop::SUM, 2, 64);
    r.src0 = f.world().settings().base + kPage;
    r.src1 = r.src0 + 1024;
    r.dst = r.src0 + 2048;
    spoil(r);
    requests.push_back(r);
    want.push_back(err);
  };
  const auto type = [](NmcRequest& r, unsigned code) { r.job.from = r.job.to = static_cast<Dtype>(code); };
  add(Err::BAD_TYPE, [&](auto& r) { type(r, 14); });
  add(Err::BAD_TYPE, [&](auto& r) { type(r, 255); });
  add(Err::BAD_TYPE, [&](auto& r) { type(r, 14), r.nsrc = 1; });  // known even where unused
  add(Err::BAD_TYPE, [&](auto& r) { type(r, 14), r.len = 0; });
  add(Err::BAD_TYPE, [](auto& r) { r.job.to = Dtype::INT32; });
  add(Err::BAD_TYPE, [&](auto& r) { type(r, 11), r.job.to = Dtype::INT64; });
  add(Err::BAD_TYPE, [](auto& r) { r.job.to = Dtype::MXFP4_E2M1, r.job.from = Dtype::FLOAT64; });
  add(Err::BAD_TYPE, [](auto& r) { r.job.to = Dtype::MXFP4_E2M1, r.job.from = Dtype::MXFP8_E4M3; });
  for (unsigned op : {6, 7, 8, 10, 200})
    add(Err::BAD_REDOP, [&](auto& r) { r.job.op = static_cast<Redop>(op); });
  add(Err::BAD_REDOP, [](auto& r) { r.job.op = static_cast<Redop>(200), r.nsrc = 1; });
  add(Err::BAD_FLAGS, [](auto& r) { r.job.propagate_nan = true; });
  add(Err::BAD_FLAGS, [](auto& r) { r.job.saturate = true; });
  add(Err::BAD_FLAGS, [](auto& r) { r.job.exact = true; });
  add(Err::BAD_FLAGS, [&](auto& r) { type(r, 6), r.job.exact = true; });
  add(Err::BAD_FLAGS, [&](auto& r) { type(r, 8), r.job.exact = true, r.job.op = Redop::MAX; });
  add(Err::BAD_FLAGS, [&](auto& r) { type(r, 8), r.job.exact = true, r.job.to = Dtype::FLOAT32; });
  add(Err::BAD_SOURCES, [](auto& r) { r.job.op = Redop::COPY; });
  for (unsigned n : {0u, 65u, 128u, 255u}) add(Err::BAD_SOURCES, [&](auto& r) { r.nsrc = n; });
  for (uint64_t n : {uint64_t{0}, uint64_t{65}, uint64_t{128}, uint64_t{1} << 32, ~uint64_t{0}})
    add(Err::BAD_SOURCES, [&](auto& r) { type(r, 6), r.job.op = Redop::AVG, r.job.scalar = n; });
  add(Err::BAD_SOURCES, [](auto& r) { r.own = 2; });
  add(Err::BAD_SOURCES, [](auto& r) { r.nsrc = 64, r.own = 64; });
  add(Err::BAD_SOURCES, [](auto& r) { r.nsrc = 1, r.own = 1; });
  for (uint64_t off : {1, 2, 3}) {
    for (unsigned code : {10u, 6u}) {
      add(Err::BAD_ALIGN, [&](auto& r) { r.src0 += off, type(r, code); });
      add(Err::BAD_ALIGN, [&](auto& r) { r.src1 += off, type(r, code); });
      add(Err::BAD_ALIGN, [&](auto& r) { r.dst += off, type(r, code); });
      add(Err::BAD_ALIGN, [&](auto& r) { r.stride += static_cast<uint32_t>(off), type(r, code); });
      add(Err::BAD_ALIGN, [&](auto& r) { r.len += static_cast<uint32_t>(off), type(r, code); });
    }
  }
  add(Err::BAD_ALIGN, [&](auto& r) { r.src0 += 1, type(r, 13); });
  add(Err::BAD_ALIGN, [&](auto& r) { r.src0 += 4, type(r, 11), r.nsrc = 1; });
  add(Err::BAD_ALIGN, [&](auto& r) { r.src0 += 1, r.nsrc = 1; });
  add(Err::BAD_ALIGN, [](auto& r) { r.src0 += 2, r.job.to = Dtype::FLOAT16; });
  add(Err::BAD_ALIGN, [](auto& r) { r.dst += 1, r.job.to = Dtype::FLOAT16; });
  add(Err::BAD_LENGTH, [](auto& r) { r.src0 = ~uint64_t{0} - 3; });
  add(Err::BAD_LENGTH, [](auto& r) { r.src1 = uint64_t{0} - 252; });
  add(Err::BAD_LENGTH, [](auto& r) { r.dst = uint64_t{0} - 252; });
  add(Err::BAD_LENGTH, [](auto& r) { r.src0 = uint64_t{0} - 4, r.len = 0xfffffffc; });
  // The highest source by address decides; the own one is not among those at src1.
  add(Err::BAD_LENGTH,
      [](auto& r) { r.nsrc = 64, r.stride = 0x10000, r.src1 = uint64_t{0} - 63 * 0x10000 - 252; });
  add(Err::BAD_LENGTH,
      [](auto& r) { r.nsrc = 64, r.stride = 0xfffffffc, r.src1 = uint64_t{0} - (uint64_t{63} << 32); });
  add(Err::BAD_LENGTH,
      [](auto& r) { r.nsrc = 3, r.own = 2, r.stride = 0x10000, r.src1 = uint64_t{0} - 0x10000 - 252; });
  // Sources of four times the result's length.
  add(Err::BAD_LENGTH, [](auto& r) { r.job.to = Dtype::FLOAT8_E5M2, r.src0 = uint64_t{0} - 1020; });
  add(Err::OK, [](auto& r) { r.len = 0; });
  add(Err::OK, [](auto& r) { r.len = 0, r.src0 = r.src1 = r.dst = uint64_t{0} - 4; });
  add(Err::OK, [](auto& r) { r.len = 0, r.nsrc = 1, r.src1 = 3, r.stride = 1; });
  f.run(requests);
  CHECK_FALSE(f.world().touched());
  REQUIRE(f.world().completions().size() == want.size());
  uint64_t errors = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CHECK(f.world().completions()[i].status == want[i]);
    errors += want[i] != Err::OK;
  }
  CHECK(f.world().counters().errors == errors);
  CHECK(f.world().counters().done == want.size());
  CHECK(f.world().counters().requests == want.size());
}

TEST_CASE("nmc: any code in any field is judged as the reference judges it", "[nmc][random]") {
  Fixture f;
  f.clear();
  std::vector<NmcRequest> requests;
  for (int i = 0; i < 3000; ++i) requests.push_back(f.any_fields());
  f.run(requests);
  CHECK_FALSE(f.world().touched());
}

TEST_CASE("nmc: a request may end at the end of the address space", "[nmc]") {
  NmcSettings s;
  s.size = 1 << 20;
  s.base = uint64_t{0} - s.size;
  Fixture f(s);
  f.clear();
  NmcRequest up = f.request(Dtype::FLOAT32, Redop::SUM, 2, 500);
  f.lay_out(up, 4, 8, 0);
  up.dst = uint64_t{0} - 2000;
  NmcRequest copy = f.request(Dtype::UINT8, Redop::COPY, 1, 555);
  f.lay_out(copy, 0, 0, 77);
  f.run({up, copy});
  NmcRequest down = f.request(Dtype::INT32, Redop::MIN, 2, 500);
  f.lay_out(down, 0, 16, 20);
  down.src0 = uint64_t{0} - 2000;
  NmcRequest strided = f.request(Dtype::BFLOAT16, Redop::SUM, 5, 300);
  f.lay_out(strided, 2, 0, 6);
  strided.own = 2;
  strided.stride = 640;
  strided.src1 = uint64_t{0} - 600 - 4 * 640;
  f.run({down, strided});
}

TEST_CASE("nmc: counters add up and tell which side is slow", "[nmc]") {
  for (bool slow_write : {false, true}) {
    CAPTURE(slow_write);
    Fixture f;
    for (unsigned which : {Fixture::World::kRA, Fixture::World::kRB}) f.stall(which, slow_write ? 0.0 : 0.8);
    f.stall(Fixture::World::kW, slow_write ? 0.8 : 0.0);
    f.clear();
    std::vector<NmcRequest> requests;
    for (int i = 0; i < 30; ++i) requests.push_back(f.any_request(700, 2));
    NmcRequest sum = f.request(Dtype::INT32, Redop::SUM, 2, 10000);
    f.lay_out(sum, 0, 4, 8);
    requests.push_back(sum);
    f.run(requests);
    const auto& c = f.world().counters();
    CHECK(c.requests == requests.size());
    CHECK(c.done == requests.size());
    CHECK(c.errors == 0);
    CHECK(c.beats == f.world().beats_written());
    CHECK(c.busy >= c.active);
    CHECK(c.active >= c.beats + c.stall_read + c.stall_write);
    // The slow side is four fifths of the time held back; the other one's share is starting up.
    if (slow_write) CHECK(c.stall_write > 2 * c.stall_read);
    if (!slow_write) CHECK(c.stall_read > 2 * c.stall_write);
    for (int i = 0; i < 20; ++i) f.step();
    const uint64_t busy = c.busy;
    for (int i = 0; i < 20; ++i) f.step();
    CHECK(c.busy == busy);  // idle is idle
  }
}

TEST_CASE("nmc: a second run equals the first (case rtl 11)", "[nmc]") {
  Fixture f;
  f.clear();
  f.run({});
  for (int i = 0; i < 10; ++i) f.step();
  uint64_t cycles[2];
  for (uint64_t& took : cycles) {
    f.clear();
    NmcRequest r = f.request(Dtype::BFLOAT16, Redop::MAX, 3, 5000);
    const uint64_t base = f.world().settings().base;
    r.src0 = base + 3 * kPage + 2;
    r.src1 = base + 9 * kPage + 6;
    r.stride = 10002;
    r.dst = base + 20 * kPage + 4;
    const uint64_t start = f.world().cycle();
    f.run({r});
    took = f.world().cycle() - start;
  }
  CHECK(cycles[0] == cycles[1]);
}

TEST_CASE("nmc: a reset in the middle of anything leaves nothing behind", "[nmc][random]") {
  NmcSettings s;
  s.jitter = 60;
  Fixture f(s, 0.2);
  for (int round = 0; round < 60; ++round) {
    f.clear();
    std::vector<NmcRequest> requests;
    for (int i = 0; i < 12; ++i) requests.push_back(f.any_request(400));
    for (const auto& r : requests) f.fill_operands(r);
    f.push(requests);
    for (uint64_t i = f.rng().below(600); i > 0 && !f.world().idle(); --i) f.step();
    f.start();
    f.clear();
    f.run({f.any_request(200), f.any_request(200), f.any_request(200)});
  }
}

TEST_CASE("nmc: a wrong byte anywhere is found", "[nmc][fault]") {
  for (int where = 0; where < 3; ++where) {
    CAPTURE(where);
    Fixture f;
    f.clear();
    NmcRequest r = f.request(Dtype::FLOAT32, Redop::SUM, 2, 100);
    f.lay_out(r, 4, 8, 12);
    f.run({r});
    // First byte, last byte, first guard byte behind the destination.
    f.world().expected()[r.dst - f.world().settings().base + (where == 0 ? 0 : where == 1 ? 399 : 400)] ^= 1;
    CHECK_THROWS(f.world().compare());
  }
}

TEST_CASE("nmc: more data than was asked for is caught", "[nmc][fault]") {
  Fixture f;
  f.bench().expect_assertion();
  const auto fill = [&] {
    f.bench()->m_axi_a_rvalid = 1;
    unsigned taken = 0;
    while (!f.bench().assertion_fired() && taken < 1000) {
      f.bench().tick();
      ++taken;
    }
    return taken;
  };
  SECTION("by an idle reducer at once, which may be asleep") {
    f.bench().ticks(100);
    CHECK(fill() == 1);
  }
  SECTION("by one that waits for another source when its buffer is full") {
    f.stall(Fixture::World::kRB, 1.0);
    f.clear();
    NmcRequest r = f.request(Dtype::INT32, Redop::SUM, 2, 16);
    f.lay_out(r, 0, 0, 0, 0);
    f.push({r});
    for (unsigned i = 0; i < 100; ++i) f.step();
    const unsigned taken = fill();
    CHECK(taken > 508);  // the buffer's room, but for what it was asked
    CHECK(taken < 520);
  }
}
