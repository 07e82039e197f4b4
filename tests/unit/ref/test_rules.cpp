// SPDX-License-Identifier: Apache-2.0
// The corrections W1 to W11 of the protocol (docs/protocol.md): the schedule that breaks it without the
// correction, packet by packet. That each of these tests fails when its correction is taken out of the
// endpoint is shown by mutants.toml (`make mutants T=ref`).
//
// A is node 0 and sends, B is node 1; p0 and p1 are the two paths, each on a plane of its own.
#include <map>
#include <set>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using wire::Drop;
using wire::Opcode;

namespace {

bool is(const Sent& s, unsigned node, Opcode op, unsigned path) {
  return s.node == node && s.packet.opcode == op && s.packet.path == path;
}
bool data(const Sent& s, unsigned node, unsigned path) {
  return s.node == node && s.packet.is_data() && s.packet.path == path;
}

}  // namespace

TEST_CASE("ref: a fence needs nothing of the path that carries it (W1)", "[ref][rules]") {
  // The window of p1 is full, no ack comes back: the fence of p0 leaves on it at once all the same.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 64 * 256);
  bool silent = true;
  Ps fenced = 0;
  Ps last_data = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = silent && s.node == 1 && s.packet.opcode == Opcode::ACK;
    if (s.node == 0 && s.packet.is_data()) last_data = s.now;
    if (fenced == 0 && s.packet.opcode == Opcode::FENCE) {
      fenced = s.now;
      CHECK(s.port == 1);
    }
    return f;
  };
  w.post(8);
  net.run_for(30 * kUs);
  REQUIRE(last_data < 25 * kUs);
  net.end(0).change_sport(a, 0, net.now());
  const Ps asked = net.now();
  net.run_for(1 * kUs);
  CHECK(fenced != 0);
  CHECK(fenced - asked < 100 * kNs);  // a probe may be on the link
  silent = false;
  REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
  w.check();
}

TEST_CASE("ref: a fence whose carrier dies is carried by the next path (W1)", "[ref][rules]") {
  // 1. Data on p0 arrives, its acks are lost; p1 works: p0 is failed, although it works.
  // 2. The fence leaves on p1, and p1 dies with it. p0 is well now: over it the fence must go.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 8 * 256);
  bool fenced = false;
  unsigned over_closed = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.node == 0 && s.packet.opcode == Opcode::FENCE && s.packet.path == 0) {
      fenced = true;
      over_closed += s.port == 0 ? 1 : 0;
    }
    f.lost = fenced ? s.port == 1 : is(s, 1, Opcode::ACK, 0);
    return f;
  };
  w.post(4);
  REQUIRE(net.run_until([&] { return w.done(); }, 50 * kMs));
  CHECK(fenced);
  CHECK(over_closed >= 1);
  w.check();
}

TEST_CASE("ref: a lost fence answer is repeated from the closed epoch (W2)", "[ref][rules]") {
  // Data on p0 arrives, its acks are lost. A fails p0; B closes the epoch, and its answer is lost. The fence
  // comes again: B has to say the same again, not what its next epoch would say.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 8 * 256);
  std::vector<AckHeader> answers;
  bool fenced = false;
  net.fate = [&](const Sent& s) {
    Fate f;
    fenced |= s.packet.opcode == Opcode::FENCE;
    if (is(s, 1, Opcode::FENCE_ANSWER, 0)) {
      answers.push_back(s.packet.ack);
      f.lost = answers.size() == 1;
    }
    if (!fenced) f.lost = is(s, 1, Opcode::ACK, 0);
    return f;
  };
  w.post(4);
  REQUIRE(net.run_until([&] { return w.done(); }, 50 * kMs));
  REQUIRE(net.settle());
  w.check();
  REQUIRE(answers.size() >= 2);
  for (const AckHeader& h : answers) {
    CHECK(h.base == answers[0].base);
    CHECK(h.hist == answers[0].hist);
  }
  CHECK(net.end(0).counters().resent == 0);  // all of it had arrived
}

TEST_CASE("ref: the late answer of an earlier epoch is not taken (W2)", "[ref][rules]") {
  // 1. In epoch 1 A's data on p0 arrives, its acks are lost. A fails p0; of the two answers to its fence the
  //    first is late, the second opens epoch 2.
  // 2. In epoch 2 as much data is lost on p0; A fails p0 again, and its fences are lost.
  // 3. The late answer of epoch 1 comes. Taken for epoch 2 it would say that the lost data arrived.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 4 * 256);
  bool late_came = false, data1 = false, data2 = false, fence2 = false;
  unsigned answers = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    const unsigned epoch = s.packet.epoch;
    if (s.packet.path != 0) return f;
    if (data(s, 0, 0) && epoch == 1) data1 = true;
    if (data(s, 0, 0) && epoch == 2) data2 = f.lost = true;
    if (is(s, 1, Opcode::ACK, 0)) f.lost = epoch == 1 ? data1 : epoch == 2 && data2;
    if (is(s, 1, Opcode::FENCE_ANSWER, 0) && epoch == 1) f.held = answers++ == 0;
    if (is(s, 0, Opcode::FENCE, 0) && epoch == 2) {
      fence2 = true;
      f.lost = !late_came;
    }
    return f;
  };
  net.end(0).change_sport(a, 0, net.now());  // epochs 1 and 2 both begin at PSN 0
  REQUIRE(net.run_until(
      [&] {
        if (w.posted < 500 && w.posted - w.good < 8) w.post();
        return fence2;
      },
      50 * kMs));
  REQUIRE(net.held() == 1);
  REQUIRE(data2);
  const auto old = drops(net, 0, Drop::ACK_OLD);
  net.release(0);
  net.run_for(1 * kNs);
  CHECK(drops(net, 0, Drop::ACK_OLD) == old + 1);
  late_came = true;
  REQUIRE(net.run_until([&] { return w.done(); }, 100 * kMs));
  w.check();
}

TEST_CASE("ref: a repeated probe keeps its PSN, so a full window can always be probed (W3)", "[ref][rules]") {
  // Every ack is lost until the window of PSNs is full and probed many times.
  Config c = one_path();
  c.rtt_init = 40 * kUs;  // a first window of more than 250 packets
  Net net(c);
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 400 * 256);
  std::set<std::uint32_t> psns;
  unsigned probes = 0, data_out = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = s.node == 1 && net.now() < 10 * kMs;
    if (s.node == 0 && s.packet.is_data() && s.now < 10 * kMs) {
      ++data_out;
      psns.clear();
    }
    if (is(s, 0, Opcode::PROBE, 0) && s.now < 10 * kMs) {
      ++probes;
      psns.insert(s.packet.psn);
    }
    return f;
  };
  w.post();
  net.run_for(10 * kMs);
  CHECK(data_out == wire::kMaxUnsettled);
  CHECK(probes > 12);
  CHECK(psns.size() == 1);
  REQUIRE(net.run_until([&] { return w.done(); }, 5 * kMs));
  w.check();
  CHECK(net.end(0).counters().resent == 0);  // all of it had arrived
}

TEST_CASE("ref: epochs change at most 254 times in the life of a packet (W4)", "[ref][rules]") {
  // A path changes its source port as fast as fences are answered: without a bound, 256 changes later a late
  // packet has the number of the running epoch again.
  Config c = two_paths();
  Net net(c);
  net.delay = 100 * kNs;
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 256);
  std::vector<Ps> opened;
  net.fate = [&, last = 0u](const Sent& s) mutable {
    if (is(s, 0, Opcode::PROBE, 0) && s.packet.epoch != last) {
      last = s.packet.epoch;
      opened.push_back(s.now);
    }
    return Fate{};
  };
  while (net.now() < 5 * kMs) {
    if (net.end(0).path_state(a, 0) != PathState::kFencing) net.end(0).change_sport(a, 0, net.now());
    if (w.done() && w.posted < 2000) w.post();
    net.run_for(200 * kNs);
  }
  CHECK(opened.size() > 256);
  for (std::size_t i = 254; i < opened.size(); ++i) CHECK(opened[i] - opened[i - 254] > c.tuning.packet_life);
  REQUIRE(net.settle());
  w.check();
}

TEST_CASE("ref: a new epoch begins with a probe and no data before its ack (W5)", "[ref][rules]") {
  // The first packets of every later epoch are lost for a while: data among them would be lost with them,
  // and could go nowhere else.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 4 * 256);
  std::map<unsigned, unsigned> tries;
  std::map<unsigned, bool> confirmed;
  unsigned unconfirmed_data = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.packet.path != 0 || s.packet.epoch == 0) return f;
    if (is(s, 0, Opcode::PROBE, 0)) f.lost = tries[s.packet.epoch]++ < 3;
    if (is(s, 1, Opcode::ACK, 0)) confirmed[s.packet.epoch] = true;
    if (data(s, 0, 0)) {
      if (tries[s.packet.epoch] == 0 || !confirmed[s.packet.epoch]) ++unconfirmed_data;
      if (!confirmed[s.packet.epoch]) f.lost = true;
    }
    return f;
  };
  Ps next_change = 20 * kUs;
  while (net.now() < 3 * kMs) {
    if (net.now() >= next_change) {
      net.end(0).change_sport(a, 0, net.now());
      next_change = net.now() + 100 * kUs;
    }
    if (w.posted < 900 && w.done()) w.post();
    net.run_for(1 * kUs);
  }
  REQUIRE(net.run_until([&] { return w.done(); }, 50 * kMs));
  CHECK(confirmed.size() >= 3);
  CHECK(unconfirmed_data == 0);
  w.check();
}

TEST_CASE("ref: an epoch that nobody confirmed is not fenced (W5)", "[ref][rules]") {
  // 1. p0 is fenced and answered; all of its new epoch is lost, while p1 gives evidence against it.
  // 2. B, which has the old epoch closed, would not answer a fence of the new one. p1 dies, p0 works.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 4 * 256);
  bool turned = false;
  unsigned fences = 0, probes = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (is(s, 0, Opcode::FENCE, 0) && s.packet.epoch == 1 && !turned) ++fences;
    if (is(s, 0, Opcode::PROBE, 0) && s.packet.epoch == 1) ++probes;
    f.lost = turned ? s.port == 1 : s.port == 0 && s.packet.epoch == 1 && s.packet.path == 0;
    return f;
  };
  net.end(0).change_sport(a, 0, net.now());
  net.run_until(
      [&] {
        if (w.done()) w.post();
        return false;
      },
      1 * kMs);
  CHECK(fences == 0);
  CHECK(probes >= 3);
  turned = true;
  const bool all = net.run_until([&] { return w.done(); }, 100 * kMs);
  INFO(net.end(0).state(a));
  REQUIRE(all);
  w.check();
}

TEST_CASE("ref: each direction of a path has its own epoch and history (W6)", "[ref][rules]") {
  // 1. A's data on p0 is lost; A fails p0. B's data on p0 arrives at A in epoch 0, its acks are lost.
  // 2. A's fence of p0 is answered. Only A's direction is in epoch 1 now.
  // 3. A's probe opens epoch 1 at B. B's direction stays in epoch 0, and what B has unsettled there is not
  // sent
  //    again: A has it, and says so.
  Net net(two_paths());
  const auto [a, b] = net.open(0, 1);
  weft::test::Rng rng;
  rng.fill(net.host(0).memory);
  rng.fill(net.host(1).memory);
  const auto source0 = net.host(0).memory, source1 = net.host(1).memory;
  bool fenced = false, moved = false;  // moved: A has opened its epoch 1
  unsigned data_of_b = 0, fences_of_b = 0, late_epochs = 0;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.packet.opcode == Opcode::FENCE) (s.node == 0 ? fenced = true : ++fences_of_b);
    moved |= is(s, 0, Opcode::PROBE, 0) && s.packet.epoch == 1;
    if (data(s, 1, 0)) ++(s.packet.epoch == 0 ? data_of_b : late_epochs);
    f.lost = s.node == 0 && s.port == 0 && !moved;
    return f;
  };
  const auto post = [&](unsigned node, std::uint32_t conn) {
    for (unsigned i = 0; i < 4; ++i)
      REQUIRE(net.end(node).post(conn, 0, write_of(i, i * 1024, 0x40000 + i * 1024, 1024), net.now()) ==
              wire::Err::OK);
  };
  post(0, a);
  REQUIRE(net.run_until([&] { return fenced; }, 1 * kMs));
  post(1, b);  // only now, so that B has no doubts of its own
  REQUIRE(net.run_until([&] { return moved; }, 1 * kMs));
  REQUIRE(data_of_b >= 4);
  CHECK(net.completions(1) < 4);  // B has data unsettled when epoch 1 opens
  CHECK(net.run_until([&] { return net.completions(0) == 4 && net.completions(1) == 4; }, 50 * kMs));
  CHECK(fences_of_b == 0);
  CHECK(late_epochs == 0);
  CHECK(net.end(1).counters().resent == 0);
  CHECK(net.host(0).twice == 0);
  CHECK(net.host(1).twice == 0);
  CHECK(std::equal(source0.begin(), source0.begin() + 4096, net.host(1).memory.begin() + 0x40000));
  CHECK(std::equal(source1.begin(), source1.begin() + 4096, net.host(0).memory.begin() + 0x40000));
}

TEST_CASE("ref: both ends fail the same path at once", "[ref][rules]") {
  Net net(two_paths());
  const auto [a, b] = net.open(0, 1);
  weft::test::Rng rng;
  rng.fill(net.host(0).memory);
  rng.fill(net.host(1).memory);
  const auto source0 = net.host(0).memory, source1 = net.host(1).memory;
  unsigned fences[2] = {0, 0};
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.packet.opcode == Opcode::FENCE && s.packet.path == 0) ++fences[s.node];
    f.lost = s.port == 0 && s.now > 5 * kUs && s.now < 2 * kMs;
    return f;
  };
  for (unsigned i = 0; i < 64; ++i) {
    const std::uint64_t at = i * 2048;
    REQUIRE(net.end(1).post(b, 0, write_of(i, at, 0x40000 + at, 2048), net.now()) == wire::Err::OK);
    REQUIRE(net.end(0).post(a, 0, write_of(i, at, 0x40000 + at, 2048), net.now()) == wire::Err::OK);
  }
  REQUIRE(net.run_until([&] { return net.completions(0) == 64 && net.completions(1) == 64; }, 20 * kMs));
  CHECK(fences[0] >= 1);
  CHECK(fences[1] >= 1);
  for (unsigned n = 0; n < 2; ++n) CHECK(net.host(n).twice == 0);
  CHECK(std::equal(source0.begin(), source0.begin() + 0x20000, net.host(1).memory.begin() + 0x40000));
  CHECK(std::equal(source1.begin(), source1.begin() + 0x20000, net.host(0).memory.begin() + 0x40000));
  net.run_for(3 * kMs);
  for (unsigned n = 0; n < 2; ++n) CHECK(net.end(n).path_state(n == 0 ? a : b, 0) != PathState::kFencing);
}

TEST_CASE("ref: a packet is acked only when memory has it (W7)", "[ref][rules]") {
  // Acks may say "delivered" of no more data packets than memory has taken. One write is refused by memory:
  // that packet is never acked as delivered, and its message fails.
  Net net(two_paths());
  const std::uint32_t a = net.open(0, 1).first;
  Writes w(net, a, 8 * 256);
  std::map<std::uint32_t, bool> acked;  // by path and PSN
  std::map<std::uint32_t, std::uint64_t> at;
  unsigned wrong = 0;
  net.host(1).bad_from = Host::kBase + 3 * 2048 + 512;
  net.host(1).bad_to = net.host(1).bad_from + 1;
  net.fate = [&](const Sent& s) {
    const auto key = [](unsigned path, std::uint32_t psn) { return path << 24 | psn; };
    if (s.node == 0 && s.packet.is_data()) at[key(s.packet.path, s.packet.psn)] = s.packet.data.va;
    if (s.node == 1 && s.packet.opcode == Opcode::ACK) {
      const AckHeader& h = s.packet.ack;
      for (unsigned i = 0; i < wire::kHistBits; ++i) {
        const auto it = at.find(key(s.packet.path, (h.base - 1 - i) & 0xffffff));
        if (it == at.end() || (h.hist[i / 32] >> (31 - i % 32) & 1) == 0) continue;
        if (net.host(1).writes[it->second - Host::kBase] == 0) ++wrong;
      }
    }
    return Fate{};
  };
  w.post(6);
  REQUIRE(net.run_until([&] { return net.completions(0) == 6; }, 10 * kMs));
  REQUIRE(net.settle());
  CHECK(wrong == 0);
  CHECK(w.good == 3);
  CHECK(w.early == 0);
  CHECK(net.host(0).done[3].status == wire::Err::REMOTE_MEM);
  CHECK(net.host(0).done[4].status == wire::Err::FLUSHED);
  CHECK(drops(net, 1, Drop::MEM) >= 1);
}

TEST_CASE("ref: closing an epoch and taking its packets are one after the other (W7)", "[ref][rules]") {
  // Data of p0 and the fence of its epoch arrive at the same instant, in both orders. Behind the fence the
  // data is refused and sent elsewhere; before it, it is taken and the answer says so.
  for (const bool fence_first : {true, false}) {
    CAPTURE(fence_first);
    Net net(two_paths());
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 256);
    net.fate = [&](const Sent& s) {
      Fate f;
      if (s.node == 0 && s.packet.path == 0 && s.packet.epoch == 0) {
        f.held = s.packet.is_data() || (s.packet.opcode == Opcode::FENCE && net.held() == 1);
        f.lost = s.packet.opcode == Opcode::PROBE || (net.held() == 2 && !f.held);
      }
      return f;
    };
    w.post();
    net.run_for(5 * kUs);
    REQUIRE(net.held() == 1);
    net.end(0).change_sport(a, 0, net.now());
    net.run_for(1 * kUs);
    REQUIRE(net.held() == 2);
    net.fate = nullptr;
    net.release(fence_first ? 1 : 0);
    net.release(0);
    net.run_for(1 * kNs);
    CHECK(net.end(1).counters().data_taken == (fence_first ? 0 : 1));
    CHECK(drops(net, 1, Drop::EPOCH) == (fence_first ? 1 : 0));
    REQUIRE(net.run_until([&] { return w.done(); }, 10 * kMs));
    REQUIRE(net.settle());
    w.check();
    CHECK(net.end(0).counters().resent == (fence_first ? 1 : 0));
  }
}

TEST_CASE("ref: a failing connection sends no data, of no port", "[ref][rules]") {
  // Port 0 falls silent under a long transfer while port 1 works. Without FENCE the retry limit fails the
  // connection, with it a request whose memory cannot be read.
  for (const bool fence : {false, true}) {
    CAPTURE(fence);
    Config c = two_paths();
    c.tuning.retry_limit = 6;
    if (!fence) c.caps &= ~(1u << static_cast<unsigned>(wire::Cap::FENCE));
    Net net(c, 2, 1 << 23);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 3 << 20);  // one message: many would wait for its window
    Ps failed = 0, last = 0;
    unsigned after = 0, before = 0;
    net.fate = [&](const Sent& s) {
      if (s.node == 0 && s.packet.is_data()) {
        if (net.end(0).counters().conn_failed != 0) ++after;
        last = s.now;
        if (s.port == 1 && s.now > 30 * kUs) ++before;
      }
      Fate f;
      f.lost = s.port == 0 && s.now > 20 * kUs;
      return f;
    };
    w.post(2);
    if (fence) {
      net.host(0).bad_from = Host::kBase + (1 << 20);
      net.host(0).bad_to = Host::kBase + (1 << 20) + 4096;
    }
    REQUIRE(net.run_until([&] { return net.end(0).counters().conn_failed != 0; }, 50 * kMs));
    failed = net.now();
    CHECK(before > 10);  // the other port was at work
    REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 50 * kMs));
    const Ps told = net.now();
    net.run_for(10 * kMs);
    CHECK(after == 0);
    CHECK(last <= failed);
    if (!fence) CHECK(told - last >= c.tuning.packet_life);
    CHECK(net.completions(0) == 2);
    CHECK(w.good == 0);
  }
}

TEST_CASE("ref: errors wait for the fences, or for the life of the last packet (W8)", "[ref][rules]") {
  // A's data is late; nobody answers, and the connection fails. Once the error is told the buffer is the
  // application's again: nothing may be written then. In one run the network is dead for ever and the data
  // comes at the end of its life; in the other the fences arrive, and the data behind them.
  for (const bool fences_arrive : {false, true}) {
    CAPTURE(fences_arrive);
    Config c = two_paths();
    c.tuning.give_up = 5 * kMs;
    Net net(c);
    const std::uint32_t a = net.open(0, 1).first;
    Writes w(net, a, 256);
    bool failing = false;
    net.fate = [&](const Sent& s) {
      Fate f;
      if (s.packet.opcode == Opcode::FENCE) failing = true;
      if (s.node == 0 && s.packet.is_data()) {
        f.held = true;
      } else {
        f.lost = !fences_arrive || !failing;
      }
      return f;
    };
    w.post();
    REQUIRE(net.run_until([&] { return failing; }, 30 * kMs));
    REQUIRE(net.completions(0) == 0);
    REQUIRE(net.held() >= 1);
    if (!fences_arrive) {
      // The last packet has its life before it still, as far as A can know.
      net.run_for(c.tuning.packet_life - 1 * kUs);
      CHECK(net.completions(0) == 0);
      net.release(0, true);
      net.run_for(10 * kNs);
    }
    REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 10 * kMs));
    const auto writes = net.host(1).writes;
    if (fences_arrive) {
      net.release(0, true);
      net.run_for(10 * kNs);
      CHECK(drops(net, 1, Drop::EPOCH) >= 1);
    }
    net.run_for(20 * kMs);
    CHECK(net.host(1).writes == writes);
    REQUIRE(net.completions(0) == 1);
    CHECK(net.host(0).done[0].status == wire::Err::RETRY_LIMIT);
  }
}

TEST_CASE("ref: a restarted end takes nothing of its former life (W9)", "[ref][rules]") {
  // A's data on p0 is late. B restarts; A is told, ends the connection and opens it again: same numbers,
  // epoch 0, an empty history. The late packet comes.
  Net net(two_paths());
  const auto [a, b] = net.open(0, 1);
  Writes w(net, a, 256);
  net.fate = [&](const Sent& s) {
    Fate f;
    f.held = s.node == 0 && s.packet.is_data();
    return f;
  };
  w.post();
  net.run_for(2 * kUs);
  REQUIRE(net.held() >= 1);
  net.restart(1);
  net.end(0).close(a, net.now());
  REQUIRE(net.completions(0) == 1);
  CHECK(net.host(0).done[0].status == wire::Err::FLUSHED);
  const auto again = net.open(0, 1);
  REQUIRE(again.first == a);
  REQUIRE(again.second == b);
  // It comes with the PSN that B expects now, as it would by bad luck.
  Packet late = net.held_packet(0);
  late.payload = net.host(0).memory.data();
  for (std::uint32_t psn = 0; psn < (1u << 24); psn += 255) {
    late.psn = psn;
    net.end(1).on_packet(net.now(), 0, late);
  }
  CHECK(drops(net, 1, Drop::INCARNATION) >= (1u << 24) / 255);
  CHECK(std::all_of(net.host(1).writes.begin(), net.host(1).writes.end(), [](auto n) { return n == 0; }));
  // And the new life works.
  net.fate = nullptr;
  const auto size = net.host(0).done.size();
  REQUIRE(net.end(0).post(a, 0, write_of(9, 0, 0x4000, 512), net.now()) == wire::Err::OK);
  REQUIRE(net.settle());
  REQUIRE(net.host(0).done.size() == size + 1);
  CHECK(net.host(0).done.back().status == wire::Err::OK);
}

TEST_CASE("ref: a receiver that restarts costs a sender with old state an error and nothing else",
          "[ref][rules]") {
  // B restarts and knows nobody; A goes on sending, to no avail, and is told in the end. Meanwhile B's number
  // belongs to somebody else's connection, which does not notice.
  Config c = two_paths();
  c.tuning.give_up = 5 * kMs;
  Net net(c, 3);
  const auto [a, b] = net.open(0, 1);
  Writes w(net, a, 2048);
  w.post(4);
  net.run_for(1 * kUs);  // all of it is on its way
  net.restart(1);
  const auto [third, b2] = net.open(2, 1);
  REQUIRE(b2 == b);
  const auto before = net.host(1).writes;
  net.run_for(1 * kMs);
  CHECK(net.host(1).writes == before);
  CHECK(drops(net, 1, Drop::INCARNATION) > 0);
  for (unsigned i = 0; i < 20; ++i)
    REQUIRE(net.end(2).post(third, 0, write_of(i, 0, 0x40000 + i * 2048, 2048), net.now()) == wire::Err::OK);
  REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 50 * kMs));
  CHECK(net.completions(0) == w.posted);
  CHECK(net.completions(2) == 20);
  for (const Completion& d : net.host(2).done) CHECK(d.status == wire::Err::OK);
  CHECK(net.end(0).idle());
}

TEST_CASE("ref: an answer is refused only when its incarnation is before the offered one (W9)",
          "[ref][rules]") {
  // Half of the numbers apart neither is before the other. Two ends that begin at random meet there once in
  // 65536.
  const auto told = [](std::uint16_t ahead) {
    Net net(one_path());
    wire::Hello mine = net.end(0).offer();
    const wire::Hello answer = net.end(1).accept(mine, Peer{0}, 0);
    mine.incarnation = static_cast<std::uint16_t>(answer.incarnation + ahead);
    return net.end(0).connect(mine, answer, Peer{1}, 0);
  };
  for (const std::uint16_t ahead : {0, 0x8000, 0x8001, 0xffff}) CHECK(told(ahead) == wire::Refusal::NONE);
  for (const std::uint16_t ahead : {1, 0x7fff}) CHECK(told(ahead) == wire::Refusal::INCARNATION);
}

TEST_CASE("ref: a hole closes by count or by time, whichever is first (W10)", "[ref][rules]") {
  for (const std::uint32_t distance : {1u, 2u, 128u}) {
    for (const bool by_count : {true, false}) {
      CAPTURE(distance, by_count);
      Config c = one_path();
      c.distance = distance;
      c.rtt_init = 40 * kUs;
      c.tuning.hole_timeout = by_count ? 5 * kMs : 60 * kUs;
      Net net(c);
      const std::uint32_t a = net.open(0, 1).first;
      // Behind the lost packet come as many as the distance asks for, or too few with the tail's probe.
      const unsigned packets = by_count ? distance + 2 : std::max(1u, distance / 4);
      Writes w(net, a, packets * 256);
      Ps lost_at = 0, resent_at = 0;
      net.fate = [&](const Sent& s) {
        Fate f;
        if (!data(s, 0, 0)) return f;
        if (lost_at == 0) {
          lost_at = s.now + 1;
          f.lost = true;
        } else if (s.packet.data.retx && resent_at == 0) {
          resent_at = s.now + 1;
        }
        return f;
      };
      w.post();
      REQUIRE(net.run_until([&] { return w.done(); }, 20 * kMs));
      w.check();
      REQUIRE(resent_at != 0);
      CHECK(net.end(0).counters().resent == 1);
      if (by_count) {
        CHECK(resent_at - lost_at < 100 * kUs);
      } else if (distance > 1) {  // a probe alone closes a distance of 1
        CHECK(resent_at - lost_at >= 60 * kUs);
        CHECK(resent_at - lost_at < 60 * kUs + 200 * kUs);
      }
    }
  }
}

TEST_CASE("ref: a line too fast for the life of a packet is refused (W11)", "[ref][rules]") {
  // 2^23 of the smallest frames, 84 bytes with preamble and gap, within the life of a packet.
  Config c = two_paths();
  c.line_mbps = 400'000;
  c.tuning.packet_life = 1 * kMs;
  CHECK(Endpoint::possible(c));
  c.tuning.packet_life = 14 * kMs;  // 700 MB at 50 GB/s
  CHECK(Endpoint::possible(c));
  c.tuning.packet_life = 15 * kMs;
  CHECK_FALSE(Endpoint::possible(c));
  c.line_mbps = 100'000;
  CHECK(Endpoint::possible(c));
}
