// SPDX-License-Identifier: Apache-2.0
// The RoCEv2 baseline: packet by packet between two bodies, and the curve of its rate.
#include <catch2/catch.hpp>

#include <cmath>
#include <deque>
#include <memory>
#include <vector>

#include "tb/eval/roce.h"
#include "tb/eval/run.h"

using namespace weft;
using namespace weft::eval;
using tb::kUs;

namespace {

struct Seen : Events {
  std::vector<uint32_t> delivered_flows, completed_flows;
  uint64_t bytes = 0;
  void placed(Ps, uint32_t, uint32_t n) override { bytes += n; }
  void delivered(Ps, uint32_t flow) override { delivered_flows.push_back(flow); }
  void completed(Ps, uint32_t flow) override { completed_flows.push_back(flow); }
  void broken(tb::Status why) override { FAIL(why.text()); }
};

// Host 0 sends flow 0, `packets` full packets, to host 1; the test carries every frame itself.
struct Pair {
  explicit Pair(uint32_t packets, uint32_t ack_every = 4, uint32_t window = 1000) {
    Flow f;
    f.src = 0;
    f.dst = 1;
    f.bytes = uint64_t{packets} * 1000;
    flows.list.push_back(f);
    flows.records.resize(1);
    config.size = {1000, 100};
    config.ack_every = ack_every;
    config.window_packets = window;
    config.rto = 100 * kUs;
    a = std::make_unique<RoceBody>(config, 0, 2, flows, frames, sender);
    b = std::make_unique<RoceBody>(config, 1, 2, flows, frames, receiver);
    a->start(0, flows.list[0]);
  }
  // PSNs that the sender sends now.
  std::vector<uint32_t> send(Ps now, size_t most = 1000) {
    std::vector<uint32_t> psns;
    for (tb::FrameRef f; psns.size() < most && a->next(now, 0, false, f);) {
      psns.push_back(f->packet<RocePacket>().psn);
      in_flight.push_back(f);
    }
    return psns;
  }
  void arrive(Ps now, bool marked = false) {
    tb::FrameRef f = in_flight.front();
    in_flight.pop_front();
    if (marked) f->meta.ecn = tb::kEcnCe;
    b->on_frame(now, 0, *f);
  }
  void lose() { in_flight.pop_front(); }
  struct Reply {
    RocePacket::Kind kind;
    uint32_t psn;
    bool operator==(const Reply& o) const { return kind == o.kind && psn == o.psn; }
  };
  // What the receiver sends now; `reaches` the sender or is lost.
  std::vector<Reply> reply(Ps now, bool reaches = true) {
    std::vector<Reply> out;
    for (tb::FrameRef f; b->next(now, 0, false, f);) {
      out.push_back({f->packet<RocePacket>().kind, f->packet<RocePacket>().psn});
      if (reaches) a->on_frame(now, 0, *f);
    }
    return out;
  }

  tb::FramePool frames;
  Flows flows;
  RoceConfig config;
  Seen sender, receiver;
  std::unique_ptr<RoceBody> a, b;
  std::deque<tb::FrameRef> in_flight;
};

using Kind = RocePacket::Kind;
using Psns = std::vector<uint32_t>;
using Replies = std::vector<Pair::Reply>;

}  // namespace

TEST_CASE("roce: a loss costs everything behind it, and one NAK", "[eval][roce]") {
  Pair p(8);
  CHECK(p.send(0) == Psns{0, 1, 2, 3, 4, 5, 6, 7});
  p.arrive(1);
  p.lose();
  p.arrive(1);
  CHECK(p.reply(1, false) == Replies{{Kind::kNak, 1}});
  for (int i = 3; i < 8; ++i) p.arrive(2);
  CHECK(p.reply(2).empty());  // latched: the same gap is not told again
  CHECK(p.receiver.bytes == 1000);

  SECTION("the NAK arrives") {
    tb::FrameRef nak;
    Pair q(8);
    q.send(0);
    q.arrive(1);
    q.lose();
    q.arrive(1);
    CHECK(q.reply(1) == Replies{{Kind::kNak, 1}});
    q.in_flight.clear();
    CHECK(q.send(2) == Psns{1, 2, 3, 4, 5, 6, 7});
    for (int i = 1; i < 8; ++i) q.arrive(3);
    CHECK(q.reply(3) == Replies{{Kind::kAck, 8}});
    CHECK(q.sender.completed_flows == Psns{0});
    CHECK(q.receiver.delivered_flows == Psns{0});
    CHECK(q.receiver.bytes == 8000);
    CHECK(q.a->counts().resent == 7);
  }
  SECTION("the NAK is lost: only the timeout helps") {
    CHECK(p.send(50 * kUs).empty());
    CHECK(p.a->next_timer() == 100 * kUs);
    p.a->on_timer(100 * kUs);
    CHECK(p.a->counts().timeouts == 1);
    CHECK(p.send(100 * kUs) == Psns{0, 1, 2, 3, 4, 5, 6, 7});
    p.arrive(101 * kUs);
    CHECK(p.b->counts().needless == 1);
    for (int i = 1; i < 8; ++i) p.arrive(101 * kUs);
    CHECK(p.reply(101 * kUs) == Replies{{Kind::kAck, 8}});
    CHECK(p.receiver.bytes == 8000);
    CHECK(p.sender.completed_flows == Psns{0});
  }
}

TEST_CASE("roce: a lost first resend is not told again", "[eval][roce]") {
  Pair p(4);
  p.send(0);
  p.lose();
  p.arrive(1);
  CHECK(p.reply(1) == Replies{{Kind::kNak, 0}});
  p.in_flight.clear();
  CHECK(p.send(2) == Psns{0, 1, 2, 3});
  p.lose();
  for (int i = 1; i < 4; ++i) p.arrive(3);
  CHECK(p.reply(3).empty());
  CHECK(p.send(3).empty());
  p.a->on_timer(100 * kUs);
  CHECK(p.a->counts().timeouts == 0);  // the time runs from the resend
  CHECK(p.a->next_timer() == 100 * kUs + 2);
}

TEST_CASE("roce: acks are asked for every few packets, at the end and at a full window", "[eval][roce]") {
  Pair p(10, 4);
  p.send(0);
  std::vector<uint32_t> acked;
  for (int i = 0; i < 10; ++i) {
    p.arrive(1);
    for (const auto& r : p.reply(1)) acked.push_back(r.psn);
  }
  CHECK(acked == Psns{4, 8, 10});

  Pair narrow(10, 100, 3);
  CHECK(narrow.send(0) == Psns{0, 1, 2});
  for (int i = 0; i < 3; ++i) narrow.arrive(1);
  CHECK(narrow.reply(1) == Replies{{Kind::kAck, 3}});
  CHECK(narrow.send(2) == Psns{3, 4, 5});
}

TEST_CASE("roce: at most one congestion notice in 50 us", "[eval][roce]") {
  Pair p(20);
  p.send(0);
  size_t notices = 0;
  for (int i = 0; i < 20; ++i) {
    p.arrive(i * 10 * kUs, true);
    for (const auto& r : p.reply(i * 10 * kUs)) notices += r.kind == Kind::kCnp;
  }
  CHECK(notices == 4);  // at 0, 50, 100 and 150 us
}

TEST_CASE("dcqcn: cut by alpha / 2, five halvings back, then additive steps", "[eval][roce]") {
  RoceConfig c;
  Dcqcn d(c);
  const double line = 100e9;
  CHECK(d.rate_bps(0) == line);
  CHECK_FALSE(d.limited());
  d.on_cnp(0);
  CHECK(d.rate_bps(0) == line / 2);  // alpha is 1 at first
  CHECK(d.alpha() == Approx(1));
  d.on_cnp(10 * kUs);
  CHECK(d.rate_bps(10 * kUs) == line / 4);
  // Fast recovery towards the rate before the cut, a step every 55 us.
  double expected = line / 4;
  for (int step = 1; step <= 5; ++step) {
    expected = (expected + line / 2) / 2;
    CHECK(d.rate_bps((10 + 55 * step) * kUs) == Approx(expected));
  }
  CHECK(d.alpha() == Approx(std::pow(1 - 1.0 / 256, 5)));
  // Additive: the target itself rises by a thousandth of the line.
  expected = (expected + line / 2 + line / 1000) / 2;
  CHECK(d.rate_bps((10 + 55 * 6) * kUs) == Approx(expected));
  // Bytes count as time does: when both are past fast recovery, the increase is the larger one.
  Ps now = (10 + 55 * 6) * kUs;
  for (int i = 0; i < 6; ++i) d.on_sent(now, 10'000'000);
  const double before = d.rate_bps(now);
  d.on_sent(now, 10'000'000);
  CHECK(d.rate_bps(now) > before + line * 0.002);
  // It ends at the line's rate.
  CHECK(d.rate_bps(100'000 * kUs) == line);
  CHECK_FALSE(d.limited());
}
