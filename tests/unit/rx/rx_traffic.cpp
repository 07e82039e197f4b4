// SPDX-License-Identifier: Apache-2.0
#include "rx_traffic.h"

#include <algorithm>

namespace rx {

using wire::Frame;
using wire::Opcode;

namespace {

constexpr std::size_t kIpAt = 14, kUdpAt = 34, kBthAt = 42, kWthAt = 54, kExtAt = 62;

}  // namespace

std::vector<Region> test_regions() {
  const std::uint64_t m = kMemoryBase;
  return {
      {true, 0xc0ffee00, true, m + 13, m + 100003},
      {true, 0x12345641, true, m + 0x1a000, m + 0x2e000},
      {true, 0xdeadbe82, true, m + 0x30fff, m + 0x31001},
      {true, 0x5a5a5a43, false, m + 0x32000, m + 0x3a000},
      {false, 0x77777744, true, m + 0x32000, m + 0x3a000},
      {true, 0x0badca85, true, 0xffffffffffff0000, 0xffffffffffffffff},
  };
}

Traffic::Traffic(const Model& model, Mix mix, std::uint64_t stream)
    : rng(weft::test::seed(), 0x7a0 + stream), model_(model), mix_(mix) {}

std::uint32_t Traffic::take_psn(unsigned conn, unsigned path) {
  std::uint32_t& psn = psn_[conn][path];
  const std::uint32_t next = model_.next_psn(conn, path);
  const std::uint32_t ahead = (psn - next) & kPsnMask;
  // Frames under way make it run ahead a little; anything else means that some were refused.
  if (!started_[conn][path] || (follow && ahead > 100)) psn = next;
  started_[conn][path] = true;
  if (rng.chance(mix_.gap))
    psn += static_cast<std::uint32_t>(rng.chance(0.1) ? rng.range(1, 250) : rng.range(1, 4));
  const std::uint32_t mine = psn & kPsnMask;
  psn = (psn + 1) & kPsnMask;
  return mine;
}

wire::Route Traffic::route() {
  wire::Route r;
  r.smac = rng() & 0xffffffffffff;
  r.dmac = kMac;
  r.sip = static_cast<std::uint32_t>(rng());
  r.dip = kIp;
  r.sport = static_cast<std::uint16_t>(rng());
  r.ecn = rng.chance(mix_.ce) ? wire::kEcnCe : wire::kEcnEct0;
  r.dscp = static_cast<std::uint8_t>(rng.below(64));
  r.ttl = static_cast<std::uint8_t>(rng());
  r.id = static_cast<std::uint16_t>(rng());
  return r;
}

wire::Wth Traffic::wth(unsigned conn, unsigned path) {
  return {static_cast<std::uint8_t>(kPort * kPathsPerPort + path), 0, conns[conn].incarnation,
          static_cast<std::uint32_t>(rng())};
}

Frame Traffic::data(unsigned conn, unsigned path, std::uint64_t va, std::size_t len, std::uint32_t rkey,
                    bool more) {
  wire::Wdh wdh;
  wdh.more = more;
  wdh.retx = rng.chance(0.1);
  wdh.va = va;
  wdh.rkey = rkey;
  wdh.msg_no = static_cast<std::uint16_t>(rng());
  wdh.sem = static_cast<std::uint16_t>(rng.below(kNumSems));
  wdh.msg_len = static_cast<std::uint32_t>(len == 0 ? 0 : len + (rng.chance(0.5) ? rng.below(1U << 20) : 0));
  wdh.value = static_cast<std::uint32_t>(rng());
  std::vector<std::uint8_t> payload(len);
  rng.fill(payload);
  const Opcode op = rng.chance(0.5) ? Opcode::WRITE : Opcode::WRITE_SIGNAL;
  return wire::build_data(route(), wire::make_bth(op, conn, take_psn(conn, path)), wth(conn, path), wdh,
                          payload);
}

std::size_t Traffic::random_len() {
  std::size_t len = 0;
  switch (rng.below(8)) {
    case 0: len = 0; break;
    case 1: len = rng.range(1, 3); break;
    case 2:
    case 3: len = rng.range(1, 128); break;
    case 4: len = rng.range(30, 40); break;
    case 5: len = rng.range(1, 1024); break;
    case 6: len = rng.range(1, 4096); break;
    default: len = 1U << rng.range(6, 12); break;
  }
  return std::min<std::size_t>(len, mix_.max_len);
}

Frame Traffic::random_data(unsigned conn) {
  static const std::vector<Region> kRegions = test_regions();
  const Region& r = kRegions[rng.chance(0.03) ? 2 : rng.below(2)];
  const std::size_t len = std::min<std::size_t>(random_len(), r.limit - r.base);
  std::uint64_t va = rng.range(r.base, r.limit - len);
  const auto where = rng.below(16);
  if (where == 0) va = r.base;
  if (where == 1) va = r.limit - len;
  if (where == 2 && len > 1)
    va = std::clamp((va | 4095) + 1 - rng.below(len), r.base, r.limit - len);  // across a page
  return data(conn, static_cast<unsigned>(rng.below(rng.chance(0.5) ? 2 : kPathsPerPort)), va, len, r.key,
              rng.chance(0.7));
}

Frame Traffic::probe(unsigned conn, unsigned path) {
  return wire::build_probe(route(), wire::make_bth(Opcode::PROBE, conn, take_psn(conn, path)),
                           wth(conn, path));
}

Frame Traffic::ack(unsigned conn, unsigned path, unsigned words) {
  wire::Wah wah;
  wah.hist_words = static_cast<std::uint8_t>(words);
  wah.base = static_cast<std::uint32_t>(rng()) & kPsnMask;
  wah.ce_bytes = static_cast<std::uint32_t>(rng());
  wah.rx_bytes = static_cast<std::uint32_t>(rng());
  wah.echo = static_cast<std::uint32_t>(rng());
  wah.share = static_cast<std::uint32_t>(rng());
  wah.credits = static_cast<std::uint16_t>(rng());
  wah.status = static_cast<std::uint8_t>(rng.below(20));
  std::array<std::uint32_t, wire::kHistWords> hist;
  for (auto& w : hist) w = static_cast<std::uint32_t>(rng());
  wire::Wth w = wth(conn, path);
  w.epoch = static_cast<std::uint8_t>(rng());  // of the other direction: none of the receiver's business
  return wire::build_ack(route(), wire::make_bth(Opcode::ACK, conn, 0), w, wah, hist);
}

// A frame with something wrong in it, resealed or not.
Frame Traffic::malformed() {
  const auto conn = static_cast<unsigned>(rng.below(mix_.conns));
  const auto path = static_cast<unsigned>(rng.below(kPathsPerPort));
  Frame f = rng.chance(0.6)   ? random_data(conn)
            : rng.chance(0.5) ? ack(conn, path, static_cast<unsigned>(rng.below(9)))
                              : probe(conn, path);
  const auto flip = [this, &f](std::size_t at, std::size_t bytes) {
    f[at + rng.below(bytes)] ^= static_cast<std::uint8_t>(1U << rng.below(8));
  };
  bool reseal = true;
  switch (rng.below(28)) {
    case 0:
      f.resize(rng.range(1, f.size() - 1));
      reseal = false;
      break;  // cut short
    case 1:
      f.resize(f.size() + rng.range(1, 70), 0x5a);
      reseal = false;
      break;  // run on
    case 2:
      f.resize(rng.range(1, 65));
      reseal = false;
      break;
    case 3:
      f.resize(rng.range(wire::kMaxFrameBytes, wire::kMaxFrameBytes + 10));
      reseal = false;
      break;
    case 4:
      f.resize(rng.range(wire::kMaxFrameBytes, 10000));
      reseal = false;
      break;
    case 5:
      flip(0, f.size());
      reseal = false;
      break;
    case 6:
      flip(0, std::min<std::size_t>(90, f.size()));
      reseal = false;
      break;
    case 7:
      flip(f.size() - 4, 4);
      reseal = false;
      break;                             // ICRC
    case 8: flip(12, 2); break;          // ethertype
    case 9: flip(kIpAt, 1); break;       // version, length
    case 10: flip(kIpAt + 6, 2); break;  // fragment
    case 11:
      flip(kIpAt + 10, 2);
      reseal = false;
      break;                                                                       // checksum
    case 12: flip(kIpAt + 9, 1); break;                                            // protocol
    case 13: flip(kUdpAt + 2, 2); break;                                           // port
    case 14: flip(kIpAt + 2, 2); break;                                            // IP length
    case 15: flip(kUdpAt + 4, 2); break;                                           // UDP length
    case 16: flip(0, 6); break;                                                    // MAC
    case 17: flip(kIpAt + 16, 4); break;                                           // IP address
    case 18: f[kBthAt + 1] ^= static_cast<std::uint8_t>(rng.range(1, 15)); break;  // tver
    case 19: f[kBthAt] = static_cast<std::uint8_t>(rng()); break;  // opcode; may fail the connection
    case 20:
      f[kExtAt + 1] ^= static_cast<std::uint8_t>(rng.range(1, 255));
      break;  // WDH version, or base of an ack
    case 21: f[kBthAt + 1] ^= static_cast<std::uint8_t>(rng.range(1, 3) << 4); break;  // pad
    case 22: flip(kBthAt + 5, 3); break;                                               // connection
    case 23: flip(kWthAt + 2, 2); break;                                               // incarnation
    case 24: flip(kWthAt, 1); break;                                                   // path
    case 25: flip(kWthAt + 1, 1); break;                                               // epoch
    case 26: f[kExtAt] ^= static_cast<std::uint8_t>(rng.range(1, 15) << 4); break;  // history words, or flags
    case 27:                                                                        // PSN
      if (rng.chance(0.5))
        flip(kBthAt + 9, 3);
      else {
        const std::uint32_t psn =
            model_.next_psn(conn, path) + static_cast<std::uint32_t>(rng.range(250, 262));
        for (std::size_t i = 0; i < 3; ++i)
          f[kBthAt + 9 + i] = static_cast<std::uint8_t>(psn >> (16 - 8 * i));
        f[kWthAt] = static_cast<std::uint8_t>(kPort * kPathsPerPort + path);
      }
      break;
    default: break;
  }
  if (reseal && f.size() >= wire::kMinFrameBytes) wire::reseal(f);
  return f;
}

// A packet in order that asks for what it must not; afterwards its connection has failed.
Frame Traffic::forbidden() {
  static const std::vector<Region> kRegions = test_regions();
  const bool again = rng.chance(0.3) && victim_ + 1 < kNumConns;  // what failed before tries again
  if (!again && victim_ > 8) --victim_;
  const unsigned conn = victim_;
  if (again && rng.chance(0.3)) return probe(conn, 0);
  const Region& r = kRegions[rng.below(2)];
  const std::size_t len = rng.range(1, std::min(mix_.max_len, 1500U));
  const std::uint64_t va = rng.range(r.base, r.limit - len);
  Frame f;
  switch (rng.below(11)) {
    case 0: f = data(conn, 0, va, len, r.key ^ 1U << rng.range(6, 31)); break;  // key of the right region
    case 1: f = data(conn, 0, va, len, static_cast<std::uint32_t>(rng())); break;
    case 2: f = data(conn, 0, va, len, kRegions[kInvalidRegion].key); break;
    case 3: f = data(conn, 0, r.base - 1, len, r.key); break;
    case 4: f = data(conn, 0, r.limit - len + 1, len, r.key); break;
    case 5:
      f = data(conn, 0, 0xffffffffffffffff - rng.below(len), len, kRegions[kTopRegion].key);
      break;  // wraps
    case 6: f = data(conn, 0, kRegions[kReadOnlyRegion].base, len, kRegions[kReadOnlyRegion].key); break;
    case 7:  // stream
      f = data(conn, 0, va, len, r.key);
      f[kExtAt + 3] = static_cast<std::uint8_t>(rng.range(1, 255));
      break;
    case 9:  // a semaphore that is not there
      f = data(conn, 0, va, rng.chance(0.3) ? 0 : len, r.key);
      f[kBthAt] = static_cast<std::uint8_t>(Opcode::WRITE_SIGNAL);
      f[kExtAt + 18] = static_cast<std::uint8_t>(rng.range(kNumSems >> 8, 255));
      break;
    case 8:  // longer than its message
      f = data(conn, 0, va, len, r.key);
      for (std::size_t i = 0; i < 4; ++i)
        f[kExtAt + 20 + i] = static_cast<std::uint8_t>((len - 1) >> (24 - 8 * i));
      break;
    default:  // nothing of a message that is not empty
      f = data(conn, 0, va, 0, r.key);
      f[kExtAt + 23] = 1;
      break;
  }
  wire::reseal(f);
  return f;
}

Frame Traffic::garbage() {
  Frame f(rng.chance(0.5) ? rng.range(1, 200) : rng.range(1, 5000));
  rng.fill(f);
  return f;
}

Sent Traffic::next() {
  unsigned pick = static_cast<unsigned>(rng.below(mix_.data + mix_.probe + mix_.ack + mix_.repeat +
                                                  mix_.malformed + mix_.garbage + mix_.forbidden));
  const auto is = [&pick](unsigned weight) {
    if (pick < weight) return true;
    pick -= weight;
    return false;
  };
  const auto conn = static_cast<unsigned>(rng.below(mix_.conns));
  Sent s;
  if (is(mix_.data))
    s.frame = random_data(conn);
  else if (is(mix_.probe))
    s.frame = probe(conn, static_cast<unsigned>(rng.below(kPathsPerPort)));
  else if (is(mix_.ack))
    s.frame = ack(conn, static_cast<unsigned>(rng.below(kPathsPerPort)), static_cast<unsigned>(rng.below(9)));
  else if (is(mix_.repeat) && !recent_.empty())
    s.frame = recent_[rng.below(recent_.size())];  // duplicate, out of order
  else if (is(mix_.malformed))
    s.frame = malformed();
  else if (is(mix_.garbage))
    s.frame = garbage();
  else
    s.frame = forbidden();
  s.mac_error = mix_.malformed != 0 && rng.chance(0.01);
  recent_.push_back(s.frame);
  if (recent_.size() > 64) recent_.pop_front();
  return s;
}

}  // namespace rx
