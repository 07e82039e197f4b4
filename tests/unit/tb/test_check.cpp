// SPDX-License-Identifier: Apache-2.0
// The observers of the wire: what they count, and that they do see what must not happen.
#include <catch2/catch.hpp>

#include "soft_node.h"
#include "weft_test.h"

using namespace weft::tb;
namespace wire = weft::wire;

namespace {

std::unique_ptr<Cluster> make(const Scenario& s) {
  auto c = Cluster::create(s, soft_nodes(2));
  INFO(c.error());
  REQUIRE(c.ok());
  return c.take();
}

}  // namespace

TEST_CASE("check: inspect reads frames and survives anything", "[tb][check][random]") {
  const auto frame = data_frame(route(2, 5, 1), 1001, {77, 12, 0xabcd000, true});
  const FrameInfo i = inspect(frame.data(), frame.size());
  CHECK(i.kind == FrameKind::kData);
  CHECK(i.retx);
  CHECK(i.psn == 77);
  CHECK(i.msg_no == 12);
  CHECK(i.payload_bytes == 1001);
  CHECK(i.dqpn == 3);
  CHECK(i.src_ip == Cluster::ip(2, 1));
  CHECK(i.dst_ip == Cluster::ip(5, 1));
  const auto ack = ack_frame(route(2, 5, 1));
  CHECK(inspect(ack.data(), ack.size()).kind == FrameKind::kAck);
  const auto probe = wire::build_probe(route(2, 5, 1), wire::make_bth(wire::Opcode::PROBE, 3, 5), {});
  CHECK(inspect(probe.data(), probe.size()).kind == FrameKind::kProbe);
  // The identity of a packet: not its port, path, PSN or resend bit, but everything else.
  const auto key = [](const std::vector<uint8_t>& f) { return inspect(f.data(), f.size()).key; };
  CHECK(key(data_frame(route(2, 5, 0, 0xd000), 1001, {99, 12, 0xabcd000, false})) == i.key);
  CHECK(key(data_frame(route(2, 5, 1), 1001, {77, 13, 0xabcd000, true})) != i.key);
  CHECK(key(data_frame(route(2, 5, 1), 1001, {77, 12, 0xabcd001, true})) != i.key);
  CHECK(key(data_frame(route(2, 4, 1), 1001, {77, 12, 0xabcd000, true})) != i.key);
  CHECK(key(data_frame(route(5, 2, 1), 1001, {77, 12, 0xabcd000, true})) != i.key);
  for (size_t n = 0; n < frame.size(); ++n)
    inspect(std::vector<uint8_t>(frame.begin(), frame.begin() + static_cast<long>(n)).data(), n);
  weft::test::Rng rng;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> noise(rng() % 120);
    for (auto& b : noise) b = static_cast<uint8_t>(rng());
    if (rng() % 2 && noise.size() > 24) std::copy(frame.begin(), frame.begin() + 24, noise.begin());
    inspect(noise.data(), noise.size());
  }
}

TEST_CASE("check: a resend of what was lost is needed, of what had arrived is not", "[tb][check]") {
  Scenario s = two_nodes();
  s.faults.drop = {{1, 0, FrameKind::kData, 1}};
  auto c = make(s);
  const auto send = [&](uint32_t psn, uint64_t va, bool retx, uint32_t port = 0) {
    soft(*c, 0).send_at(c->now_ps(), port, data_frame(route(0, 1, port), 256, {psn, 7, va, retx}));
    REQUIRE(c->run_for(10 * kUs).ok());
  };
  send(0, 0x1000, false);
  send(1, 0x2000, false);  // lost
  send(2, 0x2000, true);   // needed
  CHECK(c->traffic().lost == 1);
  CHECK(c->traffic().resent == 1);
  CHECK(c->traffic().needless_resent == 0);
  CHECK(c->traffic().redelivered == 0);
  send(3, 0x1000, true, 1);  // nobody needs it, whatever port it takes
  CHECK(c->traffic().needless_resent == 1);
  CHECK(c->traffic().redelivered == 1);
  send(4, 0x2000, true);
  CHECK(c->traffic().needless_resent == 2);
  // Message numbers and addresses are used again: a first transmission starts afresh.
  send(5, 0x1000, false);
  CHECK(c->traffic().redelivered == 2);
  CHECK(c->traffic().unique_payload_bytes == 3 * 256);
  CHECK(c->traffic().data_packets == 6);
  const TrafficCounts before = c->traffic();
  send(6, 0x9000, false);
  CHECK((c->traffic() - before).data_packets == 1);
  CHECK((c->traffic() - before).resent == 0);
}

TEST_CASE("check: a resend that leaves while the original is still under way is not yet needless",
          "[tb][check]") {
  Scenario s = two_nodes();
  auto c = make(s);
  soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 256, {0, 7, 0x1000, false}));
  soft(*c, 0).send_at(kUs, 0, data_frame(route(0, 1, 0), 256, {1, 7, 0x1000, true}));
  REQUIRE(c->settle(kMs).ok());
  CHECK(c->traffic().needless_resent == 0);
  CHECK(c->traffic().redelivered == 1);  // but the receiver did get it twice
}

TEST_CASE("check: a copy does not make the resend of its lost original needless", "[tb][check]") {
  Scenario s = two_nodes();
  s.faults.duplicate = 1;
  s.faults.drop = {{1, 0, FrameKind::kData, 0}};
  auto c = make(s);
  soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 256, {0, 7, 0x1000, false}));
  REQUIRE(c->settle(kMs).ok());
  CHECK(c->traffic().lost == 1);
  CHECK(c->fabric().delivered == 1);  // the copy
  soft(*c, 0).send_at(c->now_ps(), 0, data_frame(route(0, 1, 0), 256, {1, 7, 0x1000, true}));
  REQUIRE(c->settle(kMs).ok());
  CHECK(c->traffic().needless_resent == 0);
  CHECK(c->traffic().redelivered == 0);
  soft(*c, 0).send_at(c->now_ps(), 0, data_frame(route(0, 1, 0), 256, {2, 7, 0x1000, true}));
  REQUIRE(c->settle(kMs).ok());
  CHECK(c->traffic().needless_resent == 1);
}

TEST_CASE("check: a corrupt packet counts as lost, not as delivered", "[tb][check]") {
  Scenario s = two_nodes();
  s.faults.corrupt = 1;
  auto c = make(s);
  soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 256, {0, 7, 0x1000, false}));
  REQUIRE(c->settle(kMs).ok());
  soft(*c, 0).send_at(c->now_ps(), 0, data_frame(route(0, 1, 0), 256, {1, 7, 0x1000, true}));
  REQUIRE(c->settle(kMs).ok());
  CHECK(c->traffic().lost == 2);
  CHECK(c->traffic().needless_resent == 0);
}

TEST_CASE("check: a frame that the MAC flags, or that a test put there, is no delivery", "[tb][check]") {
  auto c = make(two_nodes());
  const auto frame = data_frame(route(0, 1, 0), 256, {0, 7, 0x1000, false});
  for (const bool mac_error : {false, true}) {
    c->inject(1, 0, frame.data(), frame.size(), mac_error);
    REQUIRE(c->run_for(10 * kUs).ok());
  }
  soft(*c, 0).send_at(c->now_ps(), 0, data_frame(route(0, 1, 0), 256, {1, 7, 0x1000, true}));
  REQUIRE(c->run_for(10 * kUs).ok());
  CHECK(c->traffic().redelivered == 0);
  CHECK(c->traffic().needless_resent == 0);
  CHECK(c->fabric().injected == 2);
}

TEST_CASE("check: a frame longer than a MAC takes comes cut", "[tb][check]") {
  auto c = make(two_nodes());
  auto frame = data_frame(route(0, 1, 0), 4096);
  frame.resize(3 * kMaxFrameBytes);
  c->inject(1, 0, frame.data(), frame.size());
  REQUIRE(c->run_for(10 * kUs).ok());
  REQUIRE(soft(*c, 1).arrivals.size() == 1);
  CHECK(soft(*c, 1).arrivals[0].bytes.size() == kMaxFrameBytes);
}

TEST_CASE("check: a run whose frames do not add up does not end well", "[tb][check]") {
  for (const bool wrong : {false, true}) {
    auto c = make(two_nodes());
    if (wrong) soft(*c, 0).send_flags = kFrameInjected;  // counted where it arrives, and it did leave a node
    soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 256));
    REQUIRE(c->settle(100 * kUs).ok());
    const weft::Status end = c->finish();
    CHECK(end.ok() != wrong);
    if (wrong) CHECK(end.text().find("frames do not add up: in 1 ") != std::string::npos);
  }
}

TEST_CASE("check: a run that writes more payload than was sent does not end well", "[tb][check]") {
  for (const uint64_t more : {0, 1}) {
    auto c = make(two_nodes());
    soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 256));
    REQUIRE(c->settle(100 * kUs).ok());
    soft(*c, 1).written = 256 + more;
    const weft::Status end = c->finish();
    CHECK(end.ok() == (more == 0));
    if (more != 0)
      CHECK(end.text() == "payload was delivered twice: 257 bytes written to memory, 256 bytes sent once");
  }
}

TEST_CASE("check: the packet table grows and keeps what it holds", "[tb][check]") {
  PacketTable table;
  for (uint64_t i = 1; i <= 20'000; ++i) table.count(mix64(i) | 1) = static_cast<uint32_t>(i);
  size_t wrong = 0;
  for (uint64_t i = 1; i <= 20'000; ++i) wrong += table.count(mix64(i) | 1) != static_cast<uint32_t>(i);
  CHECK(wrong == 0);
  CHECK(table.size() <= 20'000);
}

TEST_CASE("check: a balance that does not add up is seen", "[tb][check]") {
  FabricCounts f;
  f.in = 10;
  f.delivered = 8;
  f.drop_loss = 1;
  f.in_flight = 1;
  CHECK(f.balanced());
  f.delivered = 9;
  CHECK_FALSE(f.balanced());
}
