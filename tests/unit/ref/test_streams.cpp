// SPDX-License-Identifier: Apache-2.0
// Messages of streams: numbers, windows, order of what acts, READ and atomics, receives, errors.
#include <map>
#include <tuple>

#include "tests/unit/ref/kit.h"

using namespace weft;
using namespace weft::ref;
using namespace weft::ref::test;
using weft::test::Rng;
using wire::Drop;
using wire::Err;
using wire::Opcode;

namespace {

/// Four paths in each plane, each of its own delay: everything overtakes everything.
Config racing() {
  Config c = two_paths();
  c.paths = 4;
  c.rtt_init = 20 * kUs;
  return c;
}
Ps race(const Sent& s) {
  return Ps{(s.packet.path * 5u) % 8u} * 1500 * kNs;
}

}  // namespace

TEST_CASE("ref: message numbers wrap in every stream", "[ref][streams]") {
  // More than 2^16 messages in each of two streams, in both directions, with some loss; each signal once and
  // in order.
  Net net(racing(), 2, 1 << 16, false);
  const auto [a, b] = net.open(0, 1);
  constexpr unsigned kMessages = 66'000;
  Rng rng;
  net.fate = [&](const Sent&) {
    Fate f;
    f.lost = rng.chance(0.001);
    return f;
  };
  std::uint32_t next[2][2] = {};
  unsigned wrong = 0;
  for (unsigned n = 0; n < 2; ++n)
    net.host(n).on_signal = [&, n](std::uint16_t sem, std::uint32_t amount) {
      wrong += amount != next[n][sem] ? 1 : 0;
      next[n][sem] = amount + 1;
    };
  std::uint32_t posted = 0;
  const auto post = [&] {
    for (; posted < kMessages && posted - std::min(next[1][0], next[0][1]) < 300; ++posted)
      for (std::uint16_t s = 0; s < 2; ++s)
        for (unsigned n = 0; n < 2; ++n) {
          WorkRequest w = work_of(WrOp::kWriteSignal, posted, 0, 0, 0);
          w.sem = s;
          w.value = posted;
          REQUIRE(net.end(n).post(n == 0 ? a : b, s, w, net.now()) == Err::OK);
        }
  };
  REQUIRE(net.run_until(
      [&] {
        post();
        return next[0][0] == kMessages && next[0][1] == kMessages && next[1][0] == kMessages &&
               next[1][1] == kMessages;
      },
      2000 * kMs));
  REQUIRE(net.settle());
  CHECK(wrong == 0);
  CHECK(net.completions(0) == 2 * kMessages);
  CHECK(net.completions(1) == 2 * kMessages);
  CHECK(drops(net, 0, Drop::MSG) + drops(net, 1, Drop::MSG) == 0);
}

TEST_CASE("ref: flags, immediates, atomics and reads act in order however paths race", "[ref][streams]") {
  // Rounds of: WRITE of a block, then, in turn, a signal, a SEND, an immediate, an atomic and a READ of it.
  // Whatever acts must find the block of its round in memory, and the round before it done.
  for (const double loss : {0.0, 0.05}) {
    CAPTURE(loss);
    Net net(racing());
    Rng rng;
    rng.fill(net.host(0).memory);
    const auto [a, b] = net.open(0, 1);
    net.fate = [&](const Sent& s) {
      Fate f;
      f.late = race(s);
      f.lost = rng.chance(loss);
      return f;
    };
    constexpr unsigned kRounds = 40, kBlock = 2048;
    const auto block = [](unsigned round) { return 0x1000 + round * kBlock; };
    unsigned early = 0;
    std::vector<unsigned> order;  // what acted, seen at the target
    const auto acted = [&](unsigned round, unsigned kind) {
      const auto at = static_cast<std::ptrdiff_t>(block(round));
      if (!std::equal(net.host(0).memory.begin() + at, net.host(0).memory.begin() + at + kBlock,
                      net.host(1).memory.begin() + at))
        ++early;
      order.push_back(round * 8 + kind);
    };
    net.host(1).on_signal = [&](std::uint16_t, std::uint32_t round) { acted(round, 0); };
    net.host(1).on_done = [&](const Completion& d) {
      if (d.what == Completed::kRecv) acted(static_cast<unsigned>(d.id / 2), d.has_imm ? 2 : 1);
    };
    for (unsigned r = 0; r < kRounds; ++r) {
      REQUIRE(net.end(1).post_recv(b, 0, 2 * r, Host::kBase + 0xe0000, 64, 0) == Err::OK);
      REQUIRE(net.end(1).post_recv(b, 0, 2 * r + 1, Host::kBase + 0xe0000, 64, 0) == Err::OK);
    }
    for (unsigned r = 0; r < kRounds; ++r) {
      REQUIRE(net.end(0).post(a, 0, work_of(WrOp::kWrite, r, block(r), block(r), kBlock), 0) == Err::OK);
      WorkRequest w = work_of(WrOp::kWriteSignal, r, 0, 0, 0);
      w.value = r;
      REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
      REQUIRE(net.end(0).post(a, 0, work_of(WrOp::kSend, r, 0, 0, 64), 0) == Err::OK);
      REQUIRE(net.end(0).post(a, 0, work_of(WrOp::kWriteImm, r, 0, 0xe1000, 8), 0) == Err::OK);
      w = work_of(WrOp::kFetchAdd, r, 0xf0000 + r * 8, 0xf0000, 8);
      w.operand = 1;
      REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
      REQUIRE(net.end(0).post(a, 0, work_of(WrOp::kRead, r, 0x80000 + r * kBlock, block(r), kBlock), 0) ==
              Err::OK);
    }
    REQUIRE(net.run_until([&] { return net.completions(0) == 6 * kRounds; }, 200 * kMs));
    CHECK(early == 0);
    REQUIRE(order.size() == 3 * kRounds);
    CHECK(std::is_sorted(order.begin(), order.end()));
    const std::uint64_t first = word(net.host(0), 0xf0000);
    unsigned wrong = 0;
    for (unsigned r = 0; r < kRounds; ++r) {
      wrong += word(net.host(0), 0xf0000 + r * 8) != first + r ? 1 : 0;
      wrong += std::memcmp(&net.host(0).memory[0x80000 + r * kBlock], &net.host(0).memory[block(r)], kBlock)
                   ? 1
                   : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("ref: at most 64 open messages a stream", "[ref][streams]") {
  // The oldest message of stream 0 never arrives for a while: 63 more of that stream leave, and no packet
  // of the one behind. Stream 1 has a window of its own.
  Config c = racing();
  c.rtt_init = 100 * kUs;  // window and cap for all of it
  Net net(c);
  const std::uint32_t a = net.open(0, 1).first;
  bool stuck = true;
  std::map<unsigned, unsigned> highest;
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.node != 0 || !s.packet.is_data()) return f;
    f.lost = stuck && s.packet.data.stream == 0 && s.packet.data.msg_no == 0;
    highest[s.packet.data.stream] = std::max<unsigned>(highest[s.packet.data.stream], s.packet.data.msg_no);
    return f;
  };
  for (unsigned i = 0; i < 200; ++i)
    REQUIRE(net.end(0).post(a, 0, write_of(i, i * 64, i * 64, 64), 0) == Err::OK);
  for (unsigned i = 0; i < 100; ++i)
    REQUIRE(net.end(0).post(a, 1, write_of(1000 + i, 0x8000 + i * 64, 0x8000 + i * 64, 64), 0) == Err::OK);
  net.run_for(500 * kUs);
  CHECK(highest[0] == wire::kMsgWindow - 1);
  CHECK(highest[1] == 99);
  CHECK(net.completions(0) == 100);
  stuck = false;
  REQUIRE(net.run_until([&] { return net.completions(0) == 300; }, 20 * kMs));
  CHECK(drops(net, 1, Drop::MSG) == 0);
  CHECK(highest[0] == 199);
}

TEST_CASE("ref: READ of every length and alignment", "[ref][streams]") {
  Net net(racing());
  Rng rng;
  rng.fill(net.host(1).memory);
  rng.fill(net.host(0).memory);
  const std::uint32_t a = net.open(0, 1).first;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.late = race(s);
    f.lost = rng.chance(0.02);
    return f;
  };
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t n = 0; n <= 20; ++n) lengths.push_back(n);
  for (const std::uint32_t n : {255u, 256u, 257u, 511u, 512u, 513u, 5000u, 40'001u}) lengths.push_back(n);
  auto want = net.host(0).memory;
  const auto source = net.host(1).memory;
  unsigned reads = 0;
  for (const std::uint32_t n : lengths) {
    for (unsigned from = 0; from < 4; ++from) {
      const unsigned to = (from * 3 + n) % 5;
      std::copy_n(source.begin() + 0x2000 + from, n, want.begin() + 0x3000 + to);
      REQUIRE(net.end(0).post(a, 0, work_of(WrOp::kRead, reads++, 0x3000 + to, 0x2000 + from, n),
                              net.now()) == Err::OK);
      REQUIRE(net.run_until([&] { return net.completions(0) == reads; }, 20 * kMs));
      REQUIRE(net.host(0).done.back().status == Err::OK);
      REQUIRE(net.host(0).memory == want);  // the bytes asked for, and no other
    }
  }
  CHECK(net.host(1).memory == source);
}

TEST_CASE("ref: an atomic acts once whatever is lost", "[ref][streams]") {
  // Every packet of every kind is lost, doubled or late with a chance; both ends add to the same word.
  for (const double p : {0.02, 0.2}) {
    CAPTURE(p);
    Net net(racing());
    const std::uint32_t a = net.open(0, 1).first;
    Rng rng;
    net.fate = [&](const Sent& s) {
      Fate f;
      f.late = race(s);
      f.lost = rng.chance(p);
      if (rng.chance(p)) {
        f.copies = 1;
        f.copy_late = static_cast<Ps>(rng.below(30 * kUs));
      }
      return f;
    };
    constexpr unsigned kAdds = 400;
    for (unsigned i = 0; i < kAdds; ++i) {
      WorkRequest w = work_of(WrOp::kFetchAdd, i, 0x100 + i * 8, 0x40, 8);
      w.operand = (std::uint64_t{1} << 32) + 1;
      REQUIRE(net.end(0).post(a, i % 2, w, 0) == Err::OK);
    }
    REQUIRE(net.run_until([&] { return net.completions(0) == kAdds; }, 1000 * kMs));
    CHECK(word(net.host(1), 0x40) == kAdds * ((std::uint64_t{1} << 32) + 1));
    std::vector<std::uint64_t> olds;
    for (unsigned i = 0; i < kAdds; ++i) olds.push_back(word(net.host(0), 0x100 + i * 8) >> 32);
    std::sort(olds.begin(), olds.end());
    unsigned wrong = 0;
    for (unsigned i = 0; i < kAdds; ++i) wrong += olds[i] != i ? 1 : 0;
    CHECK(wrong == 0);
    // A swap happens only where the old value is the one named.
    WorkRequest w = work_of(WrOp::kCompareSwap, kAdds, 0x4000, 0x40, 8);
    w.compare = kAdds;
    w.operand = 7;
    REQUIRE(net.end(0).post(a, 0, w, net.now()) == Err::OK);
    w.compare = word(net.host(1), 0x40);
    REQUIRE(net.end(0).post(a, 0, w, net.now()) == Err::OK);
    w.local_va += 8;  // answers are placed as they come
    REQUIRE(net.end(0).post(a, 0, w, net.now()) == Err::OK);
    REQUIRE(net.run_until([&] { return net.completions(0) == kAdds + 3; }, 1000 * kMs));
    CHECK(word(net.host(1), 0x40) == 7);
    CHECK(word(net.host(0), 0x4008) == 7);  // what the last one found
  }
}

TEST_CASE("ref: at most 64 reads and atomics of a stream unanswered", "[ref][streams]") {
  // Requests are delivered and acked, answers are held back: the 65th may not leave, of each stream.
  Config c = racing();
  c.rtt_init = 100 * kUs;
  Net net(c);
  const std::uint32_t a = net.open(0, 1).first;
  bool held_back = true;
  unsigned requests[2] = {};
  net.fate = [&](const Sent& s) {
    Fate f;
    if (s.node == 0 && (s.packet.opcode == Opcode::READ || s.packet.opcode == Opcode::FETCH_ADD))
      ++requests[s.packet.data.stream];
    f.lost = held_back && s.node == 1 && s.packet.is_data();
    return f;
  };
  for (unsigned i = 0; i < 200; ++i)
    REQUIRE(net.end(0).post(a, i % 2,
                            work_of(i % 3 == 0 ? WrOp::kFetchAdd : WrOp::kRead, i, 0x4000 + i * 8, 0x40, 8),
                            0) == Err::OK);
  net.run_for(1 * kMs);
  CHECK(requests[0] == 64);
  CHECK(requests[1] == 64);
  CHECK(net.completions(0) == 0);
  held_back = false;
  REQUIRE(net.run_until([&] { return net.completions(0) == 200; }, 100 * kMs));
  for (const Completion& d : net.host(0).done) CHECK(d.status == Err::OK);
}

TEST_CASE("ref: at most 32767 receives of a stream ahead", "[ref][streams]") {
  Net net(two_paths(), 2, 1 << 16, false);
  const auto [a, b] = net.open(0, 1);
  const auto recv = [&](std::uint64_t id, std::uint16_t stream = 0) {
    return net.end(1).post_recv(b, stream, id, Host::kBase, 64, net.now());
  };
  std::uint64_t id = 0;
  for (; id < 32767; ++id) REQUIRE(recv(id) == Err::OK);
  CHECK(recv(id) == Err::BAD_LENGTH);
  CHECK(recv(0, 1) == Err::OK);  // another stream has its own
  // The sender sees all of them, and one more can be posted for each that is taken, beyond 2^16 in all.
  unsigned sent = 0;
  while (id < 70'000) {
    REQUIRE(net.end(0).post(a, 0, work_of(WrOp::kSend, sent, 0, 0, 0), net.now()) == Err::OK);
    ++sent;
    if (sent % 500 != 0) continue;
    REQUIRE(net.run_until([&] { return net.host(1).done.size() == sent; }, 100 * kMs));
    for (unsigned k = 0; k < 500; ++k) REQUIRE(recv(id++) == Err::OK);
    CHECK(recv(id) == Err::BAD_LENGTH);
  }
  unsigned wrong = 0;
  for (std::size_t i = 0; i < net.host(1).done.size(); ++i) wrong += net.host(1).done[i].id != i ? 1 : 0;
  CHECK(wrong == 0);
}

namespace {

/// Eleven WRITEs on a stream, number 5 with a wrong key, the earlier ones late or lost at first.
struct Failing {
  Net net{racing()};
  std::uint32_t a = 0, b = 0;
  Failing() {
    std::tie(a, b) = net.open(0, 1);
    Rng rng;
    rng.fill(net.host(0).memory);
  }
  void run(unsigned lost_of_early) {
    net.fate = [this, lost_of_early, n = 0u](const Sent& s) mutable {
      Fate f;
      if (s.node == 0 && s.packet.is_data() && s.packet.data.msg_no < 5) {
        f.late = s.packet.data.retx ? 0 : 20 * kUs;  // its path overtakes it: lost, and sent again
        f.lost = n++ < lost_of_early;
      }
      return f;
    };
    for (unsigned i = 0; i < 11; ++i) {
      WorkRequest w = write_of(i, i * 1024, i * 1024, 1024);
      if (i == 5) w.rkey = Net::kKey + 1;
      REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
      w = write_of(100 + i, 0x8000 + i * 1024, 0x8000 + i * 1024, 1024);
      REQUIRE(net.end(0).post(a, 1, w, 0) == Err::OK);
    }
    REQUIRE(net.run_until([&] { return net.completions(0) == 22; }, 20 * kMs));
    REQUIRE(net.settle());
  }
};

}  // namespace

TEST_CASE("ref: earlier messages of a failed stream complete, later ones are flushed", "[ref][streams]") {
  for (const unsigned lost : {0u, 3u, 12u}) {
    CAPTURE(lost);
    Failing f;
    f.run(lost);
    std::uint64_t next[2] = {0, 100};
    for (const Completion& d : f.net.host(0).done) {
      CHECK(d.id == next[d.stream]++);
      const Err want = d.stream == 1 || d.id < 5 ? Err::OK : d.id == 5 ? Err::REMOTE_KEY : Err::FLUSHED;
      CHECK(d.status == want);
      if (d.status != Err::OK) continue;
      const auto at = static_cast<std::ptrdiff_t>(d.stream == 0 ? d.id * 1024 : 0x8000 + (d.id - 100) * 1024);
      CHECK(std::equal(f.net.host(0).memory.begin() + at, f.net.host(0).memory.begin() + at + 1024,
                       f.net.host(1).memory.begin() + at));
    }
    CHECK(f.net.end(0).post(f.a, 0, write_of(50, 0, 0, 64), f.net.now()) == Err::FLUSHED);
    CHECK(f.net.end(1).post(f.b, 0, write_of(51, 0, 0, 64), f.net.now()) == Err::OK);  // its own direction
    CHECK(f.net.end(0).counters().stream_failed == 1);
    CHECK(f.net.end(1).counters().stream_failed == 1);
    // Told once, though many packets were refused.
    CHECK(drops(f.net, 1, Drop::KEY) == 1);
    REQUIRE(f.net.settle());
    CHECK(f.net.end(0).in_use() == 0);
    CHECK(f.net.end(1).in_use() == 0);
  }
}

TEST_CASE("ref: receives of a failed stream complete in order with their status", "[ref][streams]") {
  // Number 2 of five SENDs is longer than its receive; number 1 is late, so the error comes before it.
  Net net(racing());
  const auto [a, b] = net.open(0, 1);
  for (unsigned i = 0; i < 6; ++i)
    REQUIRE(net.end(1).post_recv(b, 0, i, Host::kBase + i * 1024, i == 2 ? 500 : 600, 0) == Err::OK);
  net.fate = [](const Sent& s) {
    Fate f;
    if (s.node == 0 && s.packet.is_data() && s.packet.data.msg_no == 1 && !s.packet.data.retx)
      f.late = 20 * kUs;
    return f;
  };
  net.run_for(20 * kUs);
  for (unsigned i = 0; i < 5; ++i)
    REQUIRE(net.end(0).post(a, 0, work_of(WrOp::kSend, i, i * 600, 0, 600), net.now()) == Err::OK);
  REQUIRE(net.run_until([&] { return net.completions(0) == 5 && net.host(1).done.size() == 6; }, 20 * kMs));
  const Err at_sender[] = {Err::OK, Err::OK, Err::RECV_LENGTH, Err::FLUSHED, Err::FLUSHED};
  const Err at_receiver[] = {Err::OK, Err::OK, Err::RECV_LENGTH, Err::FLUSHED, Err::FLUSHED, Err::FLUSHED};
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(net.host(0).done[i].id == i);
    CHECK(net.host(0).done[i].status == at_sender[i]);
  }
  for (unsigned i = 0; i < 6; ++i) {
    CHECK(net.host(1).done[i].id == i);
    CHECK(net.host(1).done[i].what == Completed::kRecv);
    CHECK(net.host(1).done[i].status == at_receiver[i]);
    CHECK(net.host(1).done[i].bytes == (i < 2 ? 600 : 0));
  }
  CHECK(net.end(1).post_recv(b, 0, 9, Host::kBase, 64, net.now()) == Err::FLUSHED);
}

TEST_CASE("ref: a message that takes no receive leaves them all flushed when it fails", "[ref][streams]") {
  // The peer learns of it by STREAM_ERROR, or without that capability by the status of acks.
  for (const bool streams : {true, false}) {
    CAPTURE(streams);
    Config c = racing();
    if (!streams) c.caps &= ~(1u << static_cast<unsigned>(wire::Cap::STREAMS));
    Net net(c);
    const auto [a, b] = net.open(0, 1);
    for (unsigned i = 0; i < 3; ++i)
      REQUIRE(net.end(1).post_recv(b, 0, i, Host::kBase + i * 1024, 600, 0) == Err::OK);
    net.run_for(20 * kUs);
    WorkRequest w = work_of(WrOp::kWrite, 1, 0, 0, 600);
    w.rkey = Net::kKey + 1;
    REQUIRE(net.end(0).post(a, 0, w, net.now()) == Err::OK);
    REQUIRE(net.run_until([&] { return net.completions(0) == 1 && net.host(1).done.size() == 3; }, 20 * kMs));
    CHECK(net.host(0).done[0].status == Err::REMOTE_KEY);
    for (unsigned i = 0; i < 3; ++i) {
      CHECK(net.host(1).done[i].id == i);
      CHECK(net.host(1).done[i].status == Err::FLUSHED);
    }
  }
}

TEST_CASE("ref: a connection knows nothing of the error that ended the last one of its number",
          "[ref][streams]") {
  // Without STREAM_ERROR a receiver has its error in every ack, for good: of that connection.
  Config c = two_paths();
  c.caps &= ~(1u << static_cast<unsigned>(wire::Cap::STREAMS));
  Net net(c);
  const auto [a, b] = net.open(0, 1);
  WorkRequest w = write_of(1, 0, 0, 256);
  w.rkey = Net::kKey + 1;
  REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
  REQUIRE(net.run_until([&] { return net.completions(0, Completed::kConnection) == 1; }, 20 * kMs));
  net.end(0).close(a, net.now());
  net.end(1).close(b, net.now());
  REQUIRE(net.open(0, 1) == std::pair{a, b});
  Writes writes(net, a, 1000);
  writes.post(20);
  REQUIRE(net.settle());
  writes.check();
  CHECK(net.completions(0, Completed::kConnection) == 1);
  CHECK(net.end(0).counters().conn_failed == 1);
}

TEST_CASE("ref: a reply that goes elsewhere than its request said fails it and is placed nowhere",
          "[ref][streams]") {
  constexpr std::uint32_t kReadOnly = Net::kKey + 1;
  struct Lie {
    Drop counted;
    Err told;
    std::uint32_t local_key;
    std::function<void(DataHeader&)> change;
  };
  const Lie lies[] = {
      {Drop::BOUNDS, Err::REMOTE_BOUNDS, Net::kKey, [](DataHeader& h) { h.va -= 1; }},
      {Drop::BOUNDS, Err::REMOTE_BOUNDS, Net::kKey, [](DataHeader& h) { h.va += 1; }},
      {Drop::BOUNDS, Err::REMOTE_BOUNDS, Net::kKey, [](DataHeader& h) { h.rkey = kReadOnly; }},
      {Drop::BOUNDS, Err::REMOTE_BOUNDS, Net::kKey, [](DataHeader& h) { ++h.msg_len; }},
      {Drop::RIGHTS, Err::REMOTE_RIGHTS, kReadOnly, [](DataHeader&) {}},
      {Drop::KEY, Err::REMOTE_KEY, kReadOnly + 1, [](DataHeader&) {}},
  };
  for (const Lie& lie : lies) {
    CAPTURE(&lie - lies);
    Net net(two_paths(), 2, 1 << 16, false);
    const auto [a, b] = net.open(0, 1);
    (void)b;
    net.end(0).add_region(kReadOnly, Host::kBase, 1 << 16, kRemoteRead);
    net.forge = [&](const Sent& s, Packet& p) {
      if (s.node == 1 && p.opcode == Opcode::READ_DATA) lie.change(p.data);
    };
    const auto memory = net.host(0).memory;
    WorkRequest w = work_of(WrOp::kRead, 1, 0x1000, 0x2000, 64);
    w.local_rkey = lie.local_key;
    REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
    REQUIRE(net.settle());
    REQUIRE(net.host(0).done.size() == 1);
    CHECK(net.host(0).done[0].status == lie.told);
    CHECK(drops(net, 0, lie.counted) == 1);
    CHECK(net.host(0).memory == memory);
    CHECK(net.end(1).counters().resent == 0);
  }
}

TEST_CASE("ref: nothing of a refused packet reaches memory", "[ref][streams]") {
  // An honest packet is taken. The same with one thing wrong is not, and memory stays as it was.
  Config c = two_paths();
  Net net(c, 2, 1 << 16, false);
  const auto [a, b] = net.open(0, 1);
  std::optional<Packet> good;
  net.fate = [&](const Sent& s) {
    Fate f;
    f.lost = true;
    if (s.node == 0 && s.packet.is_data() && !good) good = s.packet;
    return f;
  };
  REQUIRE(net.end(0).post(a, 0, write_of(1, 0, 0x1000, 256), 0) == Err::OK);
  net.run_for(1 * kUs);
  REQUIRE(good);
  std::vector<std::uint8_t> bytes(256, 0xa5);
  good->payload = bytes.data();
  const std::vector<std::pair<Drop, std::function<void(Packet&)>>> wrong = {
      {Drop::CONN, [](Packet& p) { p.conn = 77; }},
      {Drop::INCARNATION, [](Packet& p) { ++p.incarnation; }},
      {Drop::PATH, [](Packet& p) { p.path = 1; }},
      {Drop::PATH, [](Packet& p) { p.path = 2; }},
      {Drop::EPOCH, [](Packet& p) { p.epoch = 1; }},
      {Drop::EPOCH, [](Packet& p) { p.epoch = 255; }},
      {Drop::STALE, [](Packet& p) { p.psn = (p.psn - 1) & 0xffffff; }},
      {Drop::STALE, [](Packet& p) { p.psn ^= 0x800000; }},
      {Drop::FUTURE, [](Packet& p) { p.psn = (p.psn + 256) & 0xffffff; }},
      {Drop::STREAM, [](Packet& p) { p.data.stream = 2; }},
      {Drop::KEY, [](Packet& p) { p.data.rkey = 0; }},
      {Drop::KEY, [](Packet& p) { p.data.rkey ^= 1u << 31; }},
      {Drop::RIGHTS, [](Packet& p) { p.data.rkey = 0x77; }},
      {Drop::BOUNDS, [](Packet& p) { p.data.rkey = 0x78; }},
      {Drop::BOUNDS, [](Packet& p) { p.data.rkey = 0x79; }},
      {Drop::BOUNDS, [](Packet& p) { p.data.va = ~std::uint64_t{0} - 100; }},
      {Drop::MSG, [](Packet& p) { p.data.msg_len = 255; }},
      {Drop::MSG, [](Packet& p) { p.data.msg_no = 64; }},
      {Drop::MSG, [](Packet& p) { p.data.msg_no = 0xffff; }}};
  for (const auto& [why, change] : wrong) {
    // Each time a new pair, so that an earlier refusal stops nothing.
    Packet p = *good;
    change(p);
    Net fresh(c, 2, 1 << 16, false);
    const auto [n0, n1] = fresh.open(0, 1);
    REQUIRE((n0 == a && n1 == b));
    fresh.end(1).add_region(0x77, Host::kBase + 0x1000, 256, kRemoteRead | kRemoteAtomic);
    fresh.end(1).add_region(0x78, Host::kBase + 0x1001, 4096, kRemoteWrite);
    fresh.end(1).add_region(0x79, Host::kBase + 0x1000, 255, kRemoteWrite);
    CAPTURE(wire::name(why));
    fresh.end(1).on_packet(0, 0, p);
    CHECK(drops(fresh, 1, why) == 1);
    CHECK(
        std::all_of(fresh.host(1).writes.begin(), fresh.host(1).writes.end(), [](auto n) { return n == 0; }));
    CHECK(fresh.end(1).counters().data_taken == 0);
  }
  net.end(1).on_packet(net.now(), 0, *good);
  CHECK(std::equal(bytes.begin(), bytes.end(), net.host(1).memory.begin() + 0x1000));
}

TEST_CASE("ref: a refused packet is settled as lost and its message never completes", "[ref][streams]") {
  // One packet of a message of eight is refused, for each reason: the ack says that it was lost, and neither
  // signal nor completion with OK comes.
  for (const Err reason : {Err::REMOTE_KEY, Err::REMOTE_BOUNDS, Err::REMOTE_RIGHTS, Err::REMOTE_MEM}) {
    CAPTURE(wire::name(reason));
    Net net(one_path(), 2, 1 << 16, false);
    const std::uint32_t a = net.open(0, 1).first;
    net.end(1).add_region(0x99, Host::kBase, 1 << 16, kRemoteRead);
    if (reason == Err::REMOTE_MEM) {
      net.host(1).bad_from = Host::kBase + 0x1000 + 3 * 256 + 255;
      net.host(1).bad_to = net.host(1).bad_from + 1;
    }
    std::uint32_t refused = 0, first = 1u << 24;
    bool told = false, delivered = false;
    net.forge = [&](const Sent& s, Packet& p) {
      if (s.node != 0 || !p.is_data()) return;
      if (first == 1u << 24) first = p.psn;
      if (p.data.va != Host::kBase + 0x1000 + 3 * 256) return;
      if (refused == 0) refused = p.psn;  // its resends are refused too, until the sender hears of it
      if (reason == Err::REMOTE_KEY) p.data.rkey ^= 1;
      if (reason == Err::REMOTE_BOUNDS) p.data.va = Host::kBase - 1;
      if (reason == Err::REMOTE_RIGHTS) p.data.rkey = 0x99;
    };
    net.fate = [&](const Sent& s) {
      if (s.node != 1 || s.packet.opcode != Opcode::ACK) return Fate{};
      const auto back = (s.packet.ack.base - 1 - (first + 3)) & 0xffffff;
      if (back >= wire::kHistBits) return Fate{};
      told = true;
      delivered |= (s.packet.ack.hist[back / 32] >> (31 - back % 32) & 1) != 0;
      return Fate{};
    };
    WorkRequest w = work_of(WrOp::kWriteSignal, 1, 0, 0x1000, 8 * 256);
    w.value = 1;
    REQUIRE(net.end(0).post(a, 0, w, 0) == Err::OK);
    REQUIRE(net.run_until([&] { return net.completions(0) == 1; }, 20 * kMs));
    REQUIRE(net.settle());
    CHECK(told);
    CHECK_FALSE(delivered);
    CHECK(refused == ((first + 3) & 0xffffff));
    CHECK(net.host(1).signals.empty());
    CHECK(net.host(0).done[0].status == reason);
  }
}
