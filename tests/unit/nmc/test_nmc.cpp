// SPDX-License-Identifier: Apache-2.0
//
// The whole reducer in front of a memory that stalls, answers late and fails on demand. Every byte
// of memory is compared with the reference after every round.
#include <memory>

#include "Vnmc_top.h"
#include "nmc_cases.h"
#include "tb/nmc/world.h"

using namespace weft;
using nmc::NmcRequest;
using nmc::NmcSettings;
using wire::Dtype;
using wire::Err;
using wire::Redop;

namespace {

constexpr uint64_t kPage = nmc::kPageBytes;

constexpr Dtype kTypes[] = {Dtype::FLOAT32, Dtype::BFLOAT16, Dtype::INT32};

uint64_t bytes_of(uint8_t dtype) {
  return num::bytes_of(static_cast<Dtype>(dtype));
}

// One reducer and its world. Regions of a round are laid out one behind the other with gaps, so that
// all else in memory is guard.
class Fixture {
 public:
  explicit Fixture(NmcSettings settings = {}, double stall = 0.0) : bench_("weft_nmc") {
    for (unsigned i = 0; i < 9; ++i) stalls_.emplace_back(stall, 20 + i);
    init(std::move(settings));
  }
  Fixture(NmcSettings settings, test::Profile profile) : bench_("weft_nmc") {
    for (unsigned i = 0; i < 9; ++i) stalls_.emplace_back(profile, 20 + i);
    init(std::move(settings));
  }

  /// Holds back one stream (World::Stream) with another probability.
  void stall(unsigned which, double p) { stalls_[which] = test::Stall(p, 40 + which); }

  nmc::World<Vnmc_top>& world() { return *world_; }
  test::Bench<Vnmc_top>& bench() { return bench_; }
  test::Rng& rng() { return rng_; }

  /// Starts a round: all of memory free and random.
  void clear() {
    for (size_t i = 0; i + 8 <= world_->memory().size(); i += 8) {
      const uint64_t r = rng_();
      std::memcpy(&world_->memory()[i], &r, 8);
    }
    world_->bad_reads[0].clear();
    world_->bad_reads[1].clear();
    world_->bad_writes.clear();
    free_ = world_->settings().base + kPage;
  }

  /// Room for `bytes` bytes whose address is `offset` modulo `modulus`, with a gap before it.
  uint64_t place(uint64_t bytes, uint64_t offset, uint64_t modulus = 128) {
    uint64_t at = free_ + 1 + rng_.below(200);
    at += (offset + modulus - at % modulus) % modulus;
    free_ = at + bytes;
    if (free_ - world_->settings().base > world_->settings().size)
      throw std::logic_error("round does not fit into memory");
    return at;
  }
  uint64_t room_left() const { return world_->settings().size - (free_ - world_->settings().base); }

  /// Operands that meet the rules of the type.
  void fill_operands(const NmcRequest& r) {
    if (!r.two || nmc::verdict(r) != Err::OK) return;
    const auto fill = [&](auto type) {
      using Bits = typename decltype(type)::bits_type;
      for (uint64_t i = 0; i < r.len; i += sizeof(Bits)) {
        const auto [a, b] = test::pair_of(rng_, type);
        std::memcpy(world_->at(r.src0 + i), &a, sizeof a);
        std::memcpy(world_->at(r.src1 + i), &b, sizeof b);
      }
    };
    const Dtype type = static_cast<Dtype>(r.dtype);
    if (type == Dtype::FLOAT32) fill(num::Float32{});
    if (type == Dtype::BFLOAT16) fill(num::Bfloat16{});
    if (type == Dtype::INT32) fill(num::Int32{});
  }

  /// Runs all requests of the round to the end and compares memory.
  void run(const std::vector<NmcRequest>& requests) {
    for (const auto& r : requests) fill_operands(r);
    world_->expect_as_is();
    for (const auto& r : requests) {
      bench_.event("request tag %llu dst %llx len %llu src0 %llx", r.tag, r.dst, r.len, r.src0);
      world_->push(r);
    }
    step_until_idle();
    world_->compare();
  }

  void step() {
    world_->drive();
    bench_.eval();
    world_->look();
    if (world_->moved()) bench_.progress();
    bench_.tick();
  }
  void step_until_idle() {
    while (!world_->idle()) step();
  }

  NmcRequest request(Dtype type, Redop op, bool two, uint32_t len) {
    NmcRequest r;
    r.tag = static_cast<uint8_t>(tag_++);
    r.dtype = static_cast<uint8_t>(type);
    r.redop = static_cast<uint8_t>(op);
    r.two = two;
    r.len = len;
    return r;
  }

  /// A legal request with regions of its own.
  NmcRequest any_request(uint32_t longest) {
    constexpr Redop kOps[] = {Redop::SUM, Redop::MAX, Redop::MIN};
    const bool two = rng_.chance(0.7);
    NmcRequest r = request(kTypes[rng_.below(3)], kOps[rng_.below(3)], two, 0);
    if (!two && rng_.chance(0.5)) r.redop = static_cast<uint8_t>(Redop::COPY);
    const uint64_t unit = two ? bytes_of(r.dtype) : 1;
    r.len = static_cast<uint32_t>(rng_.below(longest / unit + 1) * unit);
    const auto any = [&] { return rng_.below(128 / unit) * unit; };
    switch (rng_.below(two ? 6 : 4)) {
      case 0: r.dst = r.src0 = place(r.len, any()); break;
      case 1: {  // the source lies above the destination and overlaps
        const uint64_t up = rng_.below(300 / unit) * unit;
        r.dst = place(r.len + up, any());
        r.src0 = r.dst + up;
        break;
      }
      case 4:  // the second source is the destination
        r.src0 = place(r.len, any());
        r.src1 = r.dst = place(r.len, any());
        return r;
      case 5:  // one source twice
        r.src0 = r.src1 = place(r.len, any());
        r.dst = place(r.len, any());
        return r;
      default:
        r.src0 = place(r.len, any());
        r.dst = place(r.len, any());
        break;
    }
    r.src1 = two ? place(r.len, any()) : rng_();
    return r;
  }

 private:
  void init(NmcSettings settings) {
    settings.hold = [this](unsigned which) { return stalls_[which].stalled(); };
    settings.random = test::seed();
    world_ = std::make_unique<nmc::World<Vnmc_top>>(bench_.dut(), std::move(settings));
    bench_.reset();
  }

  test::Bench<Vnmc_top> bench_;
  test::Rng rng_{test::seed(), 5};
  std::vector<test::Stall> stalls_;
  std::unique_ptr<nmc::World<Vnmc_top>> world_;
  uint64_t free_ = 0;
  unsigned tag_ = 0;
};

void all_offsets(Fixture& f, Dtype type, Redop op, bool two, uint64_t unit, uint64_t skip) {
  std::vector<NmcRequest> round;
  f.clear();
  for (uint64_t source = 0; source < 128; source += unit) {
    for (uint64_t target = f.rng().below(skip) * unit; target < 128; target += unit * skip) {
      const auto len = static_cast<uint32_t>(f.rng().below(400 / unit) * unit);
      NmcRequest r = f.request(type, op, two, len);
      // Each source in turn meets every offset of the destination; the other one is random.
      const bool second = two && (f.rng()() & 1);
      const uint64_t other = f.rng().below(128 / unit) * unit;
      r.src0 = f.place(len, second ? other : source);
      if (two) r.src1 = f.place(len, second ? source : other);
      r.dst = f.place(len, target);
      round.push_back(r);
      if (f.room_left() < 8 * kPage) {
        f.run(round);
        round.clear();
        f.clear();
      }
    }
  }
  f.run(round);
}

}  // namespace

TEST_CASE("nmc: one 64-byte int32 sum gives one output beat (case rtl 13)", "[nmc][smoke]") {
  Fixture f;
  f.clear();
  NmcRequest r = f.request(Dtype::INT32, Redop::SUM, true, 64);
  r.src0 = f.place(64, 0);
  r.src1 = f.place(64, 0);
  r.dst = f.place(64, 0);
  f.run({r});
  CHECK(f.world().beats_written() == 1);
  CHECK(f.world().bursts_written() == 1);
  CHECK(f.world().completions().size() == 1);
}

TEST_CASE("nmc: every pair of alignments, fp32 and int32", "[nmc]") {
  Fixture f;
  all_offsets(f, Dtype::FLOAT32, Redop::SUM, true, 4, 1);
  all_offsets(f, Dtype::FLOAT32, Redop::SUM, true, 4, 1);
  all_offsets(f, Dtype::INT32, Redop::MAX, true, 4, 1);
}
TEST_CASE("nmc: every pair of alignments, bf16", "[nmc]") {
  Fixture f;
  all_offsets(f, Dtype::BFLOAT16, Redop::SUM, true, 2, 1);
}
TEST_CASE("nmc: every pair of alignments, copy by bytes", "[nmc]") {
  Fixture f;
  all_offsets(f, Dtype::FLOAT32, Redop::COPY, false, 1, 2);
}

TEST_CASE("nmc: lengths from 0 to 300 bytes", "[nmc]") {
  Fixture f({}, 0.1);
  for (Dtype type : kTypes) {
    for (Redop op : {Redop::SUM, Redop::MAX, Redop::MIN, Redop::COPY}) {
      const bool two = op != Redop::COPY;
      const uint64_t unit = two ? num::bytes_of(type) : 1;
      std::vector<NmcRequest> round;
      f.clear();
      for (uint32_t len = 0; len <= 300; len += static_cast<uint32_t>(unit)) {
        NmcRequest r = f.request(type, op, two, len);
        r.src0 = f.place(len, f.rng().below(128 / unit) * unit);
        r.src1 = two ? f.place(len, f.rng().below(128 / unit) * unit) : 0;
        r.dst = f.place(len, f.rng().below(128 / unit) * unit);
        round.push_back(r);
      }
      f.run(round);
    }
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
    for (int round = 0; round < 25; ++round) {
      f.clear();
      std::vector<NmcRequest> requests;
      for (int i = 0; i < 40; ++i) requests.push_back(f.any_request(i % 8 == 0 ? 9000 : 700));
      f.run(requests);
    }
  }
}

TEST_CASE("nmc: random requests up to 64 KB", "[nmc][random]") {
  NmcSettings s;
  s.latency = 200;
  s.size = 2 << 20;
  Fixture f(s, 0.3);
  for (int round = 0; round < 12; ++round) {
    f.clear();
    std::vector<NmcRequest> requests;
    for (int i = 0; i < 8; ++i) requests.push_back(f.any_request(65536));
    f.run(requests);
  }
}

TEST_CASE("nmc: bad requests complete with their error and touch no memory", "[nmc]") {
  Fixture f;
  f.clear();
  std::vector<NmcRequest> requests;
  std::vector<Err> want;
  const auto add = [&](Err err, auto spoil) {
    NmcRequest r = f.request(Dtype::FLOAT32, Redop::SUM, true, 256);
    r.src0 = f.world().settings().base + kPage;
    r.src1 = r.src0 + 1024;
    r.dst = r.src0 + 2048;
    spoil(r);
    requests.push_back(r);
    want.push_back(err);
  };
  add(Err::BAD_TYPE, [](auto& r) { r.dtype = 14; });
  add(Err::BAD_TYPE, [](auto& r) { r.dtype = 255; });
  add(Err::BAD_REDOP, [](auto& r) { r.redop = 10; });
  add(Err::BAD_SOURCES, [](auto& r) { r.redop = static_cast<uint8_t>(Redop::COPY); });
  add(Err::BAD_TYPE, [](auto& r) { r.dtype = 14, r.two = false; });  // known even where unused
  add(Err::BAD_REDOP, [](auto& r) { r.redop = 200, r.two = false; });
  add(Err::BAD_TYPE, [](auto& r) { r.dtype = 14, r.len = 0; });
  for (uint64_t off : {1, 2, 3}) {
    for (uint8_t type : {0x0a, 0x06}) {
      add(Err::BAD_ALIGN, [&](auto& r) { r.src0 += off, r.dtype = type; });
      add(Err::BAD_ALIGN, [&](auto& r) { r.src1 += off, r.dtype = type; });
      add(Err::BAD_ALIGN, [&](auto& r) { r.dst += off, r.dtype = type; });
      add(Err::BAD_ALIGN, [&](auto& r) { r.len += static_cast<uint32_t>(off), r.dtype = type; });
    }
  }
  add(Err::BAD_ALIGN, [](auto& r) { r.src0 += 1, r.dtype = 0x0d; });
  add(Err::BAD_ALIGN, [](auto& r) { r.src1 += 1, r.dtype = 0x0d; });
  add(Err::BAD_ALIGN, [](auto& r) { r.dst += 3, r.dtype = 0x0d; });
  add(Err::BAD_ALIGN, [](auto& r) { r.len += 1, r.dtype = 0x0d; });
  add(Err::BAD_LENGTH, [](auto& r) { r.src0 = ~uint64_t{0} - 3; });
  add(Err::BAD_LENGTH, [](auto& r) { r.src1 = uint64_t{0} - 252; });
  add(Err::BAD_LENGTH, [](auto& r) { r.dst = uint64_t{0} - 252; });
  add(Err::BAD_LENGTH, [](auto& r) { r.src0 = uint64_t{0} - 4, r.len = 0xfffffffc; });
  add(Err::OK, [](auto& r) { r.len = 0; });
  add(Err::OK, [](auto& r) { r.len = 0, r.src0 = r.src1 = r.dst = uint64_t{0} - 4; });
  add(Err::OK, [](auto& r) { r.len = 0, r.two = false, r.src1 = 3, r.dst += 1; });
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

TEST_CASE("nmc: a request may end at the end of the address space", "[nmc]") {
  NmcSettings s;
  s.size = 1 << 20;
  s.base = uint64_t{0} - s.size;
  Fixture f(s);
  f.clear();
  NmcRequest up = f.request(Dtype::FLOAT32, Redop::SUM, true, 2000);
  up.src0 = f.place(2000, 4);
  up.src1 = f.place(2000, 8);
  up.dst = uint64_t{0} - 2000;
  NmcRequest copy = f.request(Dtype::FLOAT32, Redop::COPY, false, 555);
  copy.src0 = f.place(555, 0);
  copy.dst = f.place(555, 77);
  f.run({up, copy});
  NmcRequest down = f.request(Dtype::INT32, Redop::MIN, true, 2000);
  down.src0 = uint64_t{0} - 2000;
  down.src1 = f.place(2000, 16);
  down.dst = f.place(2000, 20);
  f.run({down});
}

TEST_CASE("nmc: a memory error ends its request and no other", "[nmc][random]") {
  for (double stall : {0.0, 0.4}) {
    NmcSettings s;
    s.jitter = 30;
    Fixture f(s, stall);
    uint64_t failed = 0;
    for (int round = 0; round < 60; ++round) {
      f.clear();
      std::vector<NmcRequest> requests;
      for (int i = 0; i < 20; ++i) {
        NmcRequest r = f.request(kTypes[f.rng().below(3)], Redop::SUM, f.rng().chance(0.7), 0);
        r.len = static_cast<uint32_t>(4 + 4 * f.rng().below(i % 5 == 0 ? 2500 : 300));
        r.src0 = f.place(r.len, 4 * f.rng().below(32));
        r.src1 = f.place(r.len, 4 * f.rng().below(32));
        r.dst = f.place(r.len, 4 * f.rng().below(32));
        // Any beat of a source, first and last ones as often as others; any page of the destination.
        const auto spoil = [&](std::set<uint64_t>& beats, uint64_t at) {
          const uint64_t pick = f.rng().below(3);
          const uint64_t byte = pick == 0 ? 0 : pick == 1 ? r.len - 1 : f.rng().below(r.len);
          beats.insert((at + byte) & ~uint64_t{127});
        };
        switch (f.rng().below(8)) {
          case 0: spoil(f.world().bad_reads[0], r.src0); break;
          case 1: spoil(f.world().bad_reads[1], r.src1); break;
          case 2: f.world().bad_writes.insert((r.dst + f.rng().below(r.len)) & ~(kPage - 1)); break;
          default: break;
        }
        requests.push_back(r);
      }
      f.run(requests);
      for (const auto& done : f.world().completions()) failed += done.status == Err::MEM_ERROR;
    }
    CHECK(failed > 20);
    CHECK(f.world().counters().errors > 20);
  }
}

TEST_CASE("nmc: nothing is written behind a read error", "[nmc]") {
  Fixture f;
  f.clear();
  NmcRequest r = f.request(Dtype::FLOAT32, Redop::SUM, true, 3 * 4096);
  r.src0 = f.place(r.len, 0, kPage);
  r.src1 = f.place(r.len, 0, kPage);
  r.dst = f.place(r.len, 0, kPage);
  NmcRequest next = f.request(Dtype::FLOAT32, Redop::SUM, true, 512);
  next.src0 = f.place(512, 0);
  next.src1 = f.place(512, 0);
  next.dst = f.place(512, 0);
  f.world().bad_reads[1].insert(r.src1 + 10 * 128);
  const std::vector<uint8_t> old(f.world().at(r.dst), f.world().at(r.dst) + r.len);
  f.run({r, next});
  REQUIRE(f.world().completions().size() == 2);
  CHECK(f.world().completions()[0].status == Err::MEM_ERROR);
  CHECK(f.world().completions()[1].status == Err::OK);
  uint64_t first_kept = 0;
  for (uint64_t i = 0; i < r.len; ++i) {
    if (f.world().at(r.dst)[i] != old[i]) first_kept = i + 1;
  }
  CHECK(first_kept > 9 * 128);
  CHECK(first_kept <= 10 * 128);
  CHECK(f.world().bursts_written() == 4);  // the failed request's bursts are whole all the same
}

TEST_CASE("nmc: counters add up and tell which side is slow", "[nmc]") {
  using W = nmc::World<Vnmc_top>;
  for (bool slow_write : {false, true}) {
    CAPTURE(slow_write);
    Fixture f;
    for (unsigned which : {W::kRA, W::kRB}) f.stall(which, slow_write ? 0.0 : 0.8);
    f.stall(W::kW, slow_write ? 0.8 : 0.0);
    f.clear();
    std::vector<NmcRequest> requests;
    for (int i = 0; i < 30; ++i) requests.push_back(f.any_request(3000));
    NmcRequest sum = f.request(Dtype::INT32, Redop::SUM, true, 20000);
    sum.src0 = f.place(sum.len, 0);
    sum.src1 = f.place(sum.len, 4);
    sum.dst = f.place(sum.len, 8);
    requests.push_back(sum);
    f.run(requests);
    const auto& c = f.world().counters();
    CHECK(c.requests == requests.size());
    CHECK(c.done == requests.size());
    CHECK(c.errors == 0);
    CHECK(c.beats == f.world().beats_written());
    CHECK(c.busy >= c.beats + c.stall_read + c.stall_write);
    // The slow side is four fifths of the time held back; the other one's share is starting up.
    if (slow_write) CHECK(c.stall_write > 2 * c.stall_read);
    if (!slow_write) CHECK(c.stall_read > 2 * c.stall_write);
    for (int i = 0; i < 20; ++i) f.step();
    const uint64_t busy = c.busy;
    for (int i = 0; i < 20; ++i) f.step();
    CHECK(c.busy == busy);  // idle is idle
  }
}

TEST_CASE("nmc: 128 bytes a cycle at 40 and at 400 cycles of latency", "[nmc]") {
  constexpr unsigned kCount = 5;
  constexpr uint32_t kLen = 65536;
  for (unsigned latency : {40u, 400u}) {
    for (bool turned : {false, true}) {
      CAPTURE(latency, turned);
      NmcSettings s;
      s.latency = latency;
      s.size = 2 << 20;
      Fixture f(s);
      f.clear();
      std::vector<NmcRequest> requests;
      for (unsigned i = 0; i < kCount; ++i) {
        NmcRequest r = f.request(i % 2 ? Dtype::BFLOAT16 : Dtype::FLOAT32, Redop::SUM, true, kLen);
        r.src0 = f.place(kLen, turned ? 100 : 0);
        r.src1 = f.place(kLen, turned ? 36 : 0);
        r.dst = f.place(kLen, turned ? 64 : 0);
        requests.push_back(r);
      }
      f.run(requests);
      const auto& done = f.world().completions();
      const double cycles = static_cast<double>(done.back().cycle - done.front().cycle);
      CHECK((kCount - 1) * kLen / cycles >= 126.0);
      CHECK(done.front().cycle < 2 * latency + kLen / 128 + 60);
    }
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
    NmcRequest r = f.request(Dtype::BFLOAT16, Redop::MAX, true, 10000);
    const uint64_t base = f.world().settings().base;
    r.src0 = base + 3 * kPage + 2;
    r.src1 = base + 9 * kPage + 6;
    r.dst = base + 20 * kPage + 4;
    const uint64_t start = f.world().cycle();
    f.run({r});
    took = f.world().cycle() - start;
  }
  CHECK(cycles[0] == cycles[1]);
}

TEST_CASE("nmc: a wrong byte anywhere is found", "[nmc][fault]") {
  for (int where = 0; where < 3; ++where) {
    CAPTURE(where);
    Fixture f;
    f.clear();
    NmcRequest r = f.request(Dtype::FLOAT32, Redop::SUM, true, 400);
    r.src0 = f.place(400, 4);
    r.src1 = f.place(400, 8);
    r.dst = f.place(400, 12);
    f.run({r});
    // First byte, last byte, first guard byte behind the destination.
    f.world().expected()[r.dst - f.world().settings().base + (where == 0 ? 0 : where == 1 ? 399 : 400)] ^= 1;
    CHECK_THROWS(f.world().compare());
  }
}

TEST_CASE("nmc: more data than was asked for is caught", "[nmc][fault]") {
  Fixture f;
  f.bench().expect_assertion();
  f.bench().ticks(5);
  f.bench()->m_axi_a_rvalid = 1;
  unsigned taken = 0;
  while (!f.bench().assertion_fired() && taken < 1000) {
    f.bench().tick();
    ++taken;
  }
  CHECK(taken > 512);  // the buffer's room
  CHECK(taken < 520);
}
