// SPDX-License-Identifier: Apache-2.0
// A megabyte in 64 WRITEs while planes die and return, source ports change, keys are wrong, packets overtake
// each other.
#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;
using wire::Drop;
using wire::Err;

namespace {
constexpr std::uint32_t kWrite = 1 << 14, kWrites = 64;
}

TEST_CASE("ref: a plane that dies takes no request with it", "[ref][failover]") {
  Net net(eight_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, kWrite);
  net.fate = outage(30 * kUs, kNever, 1);
  w.post(kWrites);
  net.run_until([&] { return w.done(); }, 2 * kMs);
  w.check();
  CHECK(net.end(0).counters().path_failed >= 1);
  for (unsigned p = 0; p < 4; ++p) CHECK(net.end(0).path_state(a, p) == PathState::kGood);
}

TEST_CASE("ref: a plane that returns is used again", "[ref][failover]") {
  Net net(eight_paths());
  const std::uint32_t a = net.open(0, 1).first;
  net.fate = outage(30 * kUs, 1000 * kUs, 1);
  unsigned posted = 0;
  const auto more = [&] {
    if (posted - net.completions(0) < 16 && net.now() < 5 * kMs) {
      const std::uint32_t at = posted % kWrites * kWrite;
      REQUIRE(net.end(0).post(a, 0, write_of(posted++, at, at, kWrite), net.now()) == Err::OK);
    }
    return false;
  };
  net.run_until(more, 6 * kMs);
  CHECK(net.end(0).counters().path_back >= 1);
  for (unsigned p = 0; p < 8; ++p) CHECK(net.end(0).path_state(a, p) == PathState::kGood);
  CHECK(net.completions(0) == posted);
  // The run keeps both lines busy but for the outage: 9 of 10 ms of line, 1024 of 1142 bytes of it payload.
  CHECK(posted * double{kWrite} / 5e6 > 0.95 * 25.0 * 0.9 * 1024 / 1142);
}

TEST_CASE("ref: all planes down for 1 ms, then up: traffic flows within 200 us", "[ref][failover]") {
  Net net(eight_paths());
  Writes w(net, net.open(0, 1).first, kWrite);
  net.fate = outage(20 * kUs, 1020 * kUs);
  w.post(kWrites);
  net.run_for(1020 * kUs);
  const auto taken = net.end(1).counters().data_taken;
  REQUIRE(net.run_until([&] { return net.end(1).counters().data_taken > taken; }, 200 * kUs));
  REQUIRE(net.settle());
  w.check();
}

TEST_CASE("ref: all planes down for ever: each request fails once, receives too", "[ref][failover]") {
  Config c = eight_paths();
  c.tuning.give_up = 20 * kMs;
  Net net(c);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, kWrite);
  net.fate = outage(20 * kUs, kNever);
  for (unsigned i = 0; i < 3; ++i)
    REQUIRE(net.end(0).post_recv(a, 0, 500 + i, Host::kBase, 64, 0) == Err::OK);
  w.post(kWrites);
  REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 200 * kMs));
  net.run_for(100 * kMs);
  CHECK(net.completions(0) == kWrites);
  CHECK(net.completions(0, Completed::kRecv) == 3);
  CHECK(net.completions(0, Completed::kConnection) == 1);
  bool failed = false;
  std::vector<unsigned> seen(kWrites);
  for (const Completion& d : net.host(0).done) {
    if (d.what != Completed::kRequest) continue;
    ++seen[d.id];
    if (!failed && d.status != Err::OK) {
      failed = true;
      CHECK(d.status == Err::RETRY_LIMIT);
    } else if (failed) {
      CHECK(d.status == Err::FLUSHED);
    }
  }
  CHECK(failed);
  for (unsigned n : seen) CHECK(n == 1);
  CHECK(net.end(0).post(a, 0, write_of(1, 0, 0, 4), net.now()) == Err::FLUSHED);
  CHECK(net.end(0).idle());
}

TEST_CASE("ref: a path whose source port changes loses and doubles nothing", "[ref][failover]") {
  Net net(eight_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, kWrite);
  w.post(kWrites);
  unsigned changes = 0;
  Rng when(weft::test::seed(), 3);
  REQUIRE(net.run_until(
      [&] {
        if (net.now() > 10 * kUs && changes < 20 && when.chance(0.02))
          changes += net.end(0).change_sport(a, static_cast<std::uint32_t>(when.below(8)), net.now()) ? 1 : 0;
        return w.done();
      },
      5 * kMs));
  CHECK(changes > 3);
  REQUIRE(net.settle());
  w.check();
  CHECK(net.end(0).counters().fences_sent >= changes / 2);
}

TEST_CASE("ref: a wrong key fails one stream and nothing else", "[ref][errors]") {
  for (const unsigned bad : {4u, 5u}) {  // in each of the two streams
    CAPTURE(bad);
    Net net(eight_paths());
    const std::uint32_t a = net.open(0, 1).first;
    Rng rng;
    rng.fill(net.host(0).memory);
    const auto stream = [](std::uint64_t id) { return static_cast<std::uint16_t>(id % 2); };
    for (unsigned i = 0; i < 12; ++i) {
      WorkRequest w = write_of(i, i * kWrite, i * kWrite, kWrite);
      if (i == bad) w.rkey = 0x999;
      REQUIRE(net.end(0).post(a, stream(i), w, 0) == Err::OK);
    }
    REQUIRE(net.settle());
    REQUIRE(net.completions(0) == 12);
    for (const Completion& d : net.host(0).done) {
      const bool failed = d.id > bad && stream(d.id) == stream(bad);
      CHECK(d.status == (d.id == bad ? Err::REMOTE_KEY : failed ? Err::FLUSHED : Err::OK));
    }
    for (unsigned i = 0; i < 12; ++i) {
      if (i > bad && stream(i) == stream(bad)) continue;  // flushed: placed or not
      const auto from = net.host(0).memory.begin() + i * kWrite;
      CHECK(std::equal(from, from + kWrite, net.host(1).memory.begin() + i * kWrite) == (i != bad));
    }
    CHECK(drops(net, 1, Drop::KEY) > 0);
    CHECK(net.end(0).post(a, stream(bad), write_of(99, 0, 0, 4), net.now()) == Err::FLUSHED);
    CHECK(net.end(0).post(a, stream(bad + 1), write_of(99, 0, 0, 4), net.now()) == Err::OK);
    REQUIRE(net.settle());
  }
}

TEST_CASE("ref: reorder inside a path costs nothing when the receiver allows for it", "[ref][reorder]") {
  for (const std::uint32_t distance : {0u, 16u}) {
    CAPTURE(distance);
    Config c = eight_paths();
    c.distance = distance;
    Net net(c);
    Writes w(net, net.open(0, 1).first, kWrite);
    Rng rng;
    net.fate = [&](const Sent&) {
      Fate f;
      f.late = static_cast<Ps>(rng.below(400 * kNs));
      return f;
    };
    w.post(kWrites);
    REQUIRE(net.settle());
    w.check();
    CHECK((net.end(0).counters().resent > 10) == (distance == 0));
    if (distance != 0) CHECK(net.end(0).counters().resent == 0);
  }
}
