// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ref/net.h"

using namespace weft;
using namespace weft::ref;
using weft::ref::test::Fate;
using weft::ref::test::Host;
using weft::ref::test::Net;
using weft::ref::test::Sent;
using weft::test::Rng;

namespace {

Config small() {
  Config c;
  c.ports = 2;
  c.paths = 4;
  c.streams = 2;
  c.mtu = 1024;
  c.rtt_init = 5 * kUs;
  return c;
}

WorkRequest write(std::uint64_t id, std::uint64_t from, std::uint64_t to, std::uint32_t length) {
  WorkRequest w;
  w.id = id;
  w.local_va = Host::kBase + from;
  w.remote_va = Host::kBase + to;
  w.rkey = Net::kKey;
  w.length = length;
  return w;
}

/// 64 writes of 16 KB, 1 MB in all.
void post_all(Net& net, std::uint32_t conn) {
  for (unsigned i = 0; i < 64; ++i)
    REQUIRE(net.end(0).post(conn, 0, write(i, i << 14, i << 14, 1 << 14), net.now()) == wire::Err::OK);
}

}  // namespace

TEST_CASE("ref: a plane that dies takes no request with it", "[ref][failover]") {
  Net net(small());
  Rng rng;
  rng.fill(net.host(0).memory);
  const auto [a, b] = net.open(0, 1);
  (void)b;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.port == 1 && s.now > 30 * kUs;
    return f;
  };
  post_all(net, a);
  const bool all = net.run_until([&] { return net.completions(0) == 64; }, 2 * kMs);
  INFO(net.end(0).state(a));
  REQUIRE(all);
  CHECK(net.host(0).done[63].status == wire::Err::OK);
  CHECK(net.host(1).twice == 0);
  CHECK(net.host(0).memory == net.host(1).memory);
  CHECK(net.end(0).counters().path_failed >= 1);
  for (unsigned p = 0; p < 4; ++p) CHECK(net.end(0).path_state(a, p) == PathState::kGood);
}

TEST_CASE("ref: a plane that returns is used again", "[ref][failover]") {
  Net net(small());
  const auto [a, b] = net.open(0, 1);
  (void)b;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.port == 1 && s.now > 30 * kUs && s.now < 1000 * kUs;
    return f;
  };
  unsigned posted = 0;
  const auto more = [&] {
    if (posted - net.completions(0) < 16 && net.now() < 5 * kMs) {
      const std::uint32_t at = posted % 64 << 14;
      REQUIRE(net.end(0).post(a, 0, write(posted++, at, at, 1 << 14), net.now()) == wire::Err::OK);
    }
    return false;
  };
  net.run_until(more, 6 * kMs);
  CHECK(net.end(0).counters().path_back >= 1);
  for (unsigned p = 0; p < 8; ++p) CHECK(net.end(0).path_state(a, p) == PathState::kGood);
  CHECK(net.completions(0) == posted);
  // The run keeps both lines busy but for the outage: 9 of 10 ms of line, 1024 of 1142 bytes of it payload.
  CHECK(posted * 16384.0 / 5e6 > 0.95 * 25.0 * 0.9 * 1024 / 1142);
}

TEST_CASE("ref: all planes down for 1 ms, then up: traffic flows within 200 us", "[ref][failover]") {
  Net net(small());
  Rng rng;
  rng.fill(net.host(0).memory);
  const auto [a, b] = net.open(0, 1);
  (void)b;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.now > 20 * kUs && s.now < 1020 * kUs;
    return f;
  };
  post_all(net, a);
  net.run_until([&] { return net.now() >= 1020 * kUs; }, 1020 * kUs);
  const auto taken = net.end(1).counters().data_taken;
  REQUIRE(net.run_until([&] { return net.end(1).counters().data_taken > taken; }, 200 * kUs));
  REQUIRE(net.settle());
  CHECK(net.completions(0) == 64);
  CHECK(net.host(1).twice == 0);
  CHECK(net.host(0).memory == net.host(1).memory);
}

TEST_CASE("ref: all planes down for ever: each request fails once, receives too", "[ref][failover]") {
  Config c = small();
  c.tuning.give_up = 20 * kMs;
  Net net(c);
  const auto [a, b] = net.open(0, 1);
  (void)b;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.now > 20 * kUs;
    return f;
  };
  for (unsigned i = 0; i < 3; ++i)
    REQUIRE(net.end(0).post_recv(a, 0, 500 + i, Host::kBase, 64, 0) == wire::Err::OK);
  post_all(net, a);
  REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 200 * kMs));
  net.run_for(100 * kMs);
  CHECK(net.completions(0) == 64);
  CHECK(net.completions(0, Completed::kRecv) == 3);
  CHECK(net.completions(0, Completed::kConnection) == 1);
  bool failed = false;
  std::vector<unsigned> seen(64);
  for (const Completion& d : net.host(0).done) {
    if (d.what != Completed::kRequest) continue;
    ++seen[d.id];
    if (!failed && d.status != wire::Err::OK) {
      failed = true;
      CHECK(d.status == wire::Err::RETRY_LIMIT);
    } else if (failed) {
      CHECK(d.status == wire::Err::FLUSHED);
    }
  }
  CHECK(failed);
  for (unsigned n : seen) CHECK(n == 1);
  CHECK(net.end(0).post(a, 0, write(1, 0, 0, 4), net.now()) == wire::Err::FLUSHED);
  CHECK(net.end(0).idle());
}

TEST_CASE("ref: a path whose source port changes loses and doubles nothing", "[ref][failover]") {
  Net net(small());
  Rng rng;
  rng.fill(net.host(0).memory);
  const auto [a, b] = net.open(0, 1);
  (void)b;
  post_all(net, a);
  unsigned changes = 0;
  Rng when(weft::test::seed(), 3);
  REQUIRE(net.run_until(
      [&] {
        if (net.now() > 10 * kUs && changes < 20 && when.chance(0.02)) {
          net.end(0).change_sport(a, static_cast<std::uint32_t>(when.below(8)), net.now());
          ++changes;
        }
        return net.completions(0) == 64;
      },
      5 * kMs));
  CHECK(changes > 3);
  REQUIRE(net.settle());
  CHECK(net.host(1).twice == 0);
  CHECK(net.host(0).memory == net.host(1).memory);
  CHECK(net.end(0).counters().fences_sent >= changes / 2);
}

TEST_CASE("ref: a wrong key fails one stream and nothing else", "[ref][errors]") {
  for (const unsigned bad : {4u, 5u}) {  // in each of the two streams
    CAPTURE(bad);
    Net net(small());
    Rng rng;
    rng.fill(net.host(0).memory);
    const auto [a, b] = net.open(0, 1);
    (void)b;
    const auto stream = [](std::uint64_t id) { return static_cast<std::uint16_t>(id % 2); };
    for (unsigned i = 0; i < 12; ++i) {
      WorkRequest w = write(i, i << 14, i << 14, 1 << 14);
      if (i == bad) w.rkey = 0x999;
      REQUIRE(net.end(0).post(a, stream(i), w, 0) == wire::Err::OK);
    }
    REQUIRE(net.settle());
    REQUIRE(net.completions(0) == 12);
    for (const Completion& d : net.host(0).done) {
      const bool failed = d.id > bad && stream(d.id) == stream(bad);
      CHECK(d.status == (d.id == bad ? wire::Err::REMOTE_KEY : failed ? wire::Err::FLUSHED : wire::Err::OK));
    }
    for (unsigned i = 0; i < 12; ++i) {
      if (i > bad && stream(i) == stream(bad)) continue;  // flushed: placed or not
      const bool same =
          std::equal(net.host(0).memory.begin() + (i << 14), net.host(0).memory.begin() + ((i + 1) << 14),
                     net.host(1).memory.begin() + (i << 14));
      CHECK(same == (i != bad));
    }
    CHECK(net.end(1).counters().drop[static_cast<int>(wire::Drop::KEY)] > 0);
    CHECK(net.end(0).post(a, stream(bad), write(99, 0, 0, 4), net.now()) == wire::Err::FLUSHED);
    CHECK(net.end(0).post(a, stream(bad + 1), write(99, 0, 0, 4), net.now()) == wire::Err::OK);
    REQUIRE(net.settle());
  }
}

TEST_CASE("ref: reorder inside a path costs nothing when the receiver allows for it", "[ref][reorder]") {
  for (const std::uint32_t distance : {0u, 16u}) {
    Config c = small();
    c.distance = distance;
    Net net(c);
    Rng rng;
    rng.fill(net.host(0).memory);
    const auto [a, b] = net.open(0, 1);
    (void)b;
    net.fate = [&](const Sent&) {
      Fate f;
      f.late = static_cast<Ps>(rng.below(400 * kNs));
      return f;
    };
    post_all(net, a);
    REQUIRE(net.settle());
    CHECK(net.completions(0) == 64);
    CHECK(net.host(1).twice == 0);
    CHECK(net.host(0).memory == net.host(1).memory);
    if (distance == 0)
      CHECK(net.end(0).counters().resent > 10);
    else
      CHECK(net.end(0).counters().resent == 0);
  }
}
