// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frames.h"

using namespace weft::wire;
using namespace weft::test;

namespace {

// CRC-32 one bit at a time: an oracle that shares nothing with the tables.
uint32_t crc32_bitwise(const std::vector<uint8_t>& bytes) {
  uint32_t s = ~0U;
  for (uint8_t b : bytes) {
    s ^= b;
    for (int i = 0; i < 8; ++i) s = s >> 1 ^ (s & 1 ? 0xedb88320U : 0);
  }
  return ~s;
}

// The ICRC as the standard writes it: eight bytes ff, then the packet with its variant fields set to ones.
uint32_t icrc_by_the_book(const Frame& frame) {
  std::vector<uint8_t> stream(8, 0xff);
  stream.insert(stream.end(), frame.begin() + 14, frame.end() - 4);
  for (size_t at : {1, 8, 10, 11, 26, 27, 32}) stream[8 + at] = 0xff;
  return crc32_bitwise(stream);
}

// Puts an Ethernet header in front of an IP packet.
Frame on_ethernet(std::string_view ip_packet) {
  Frame f = hex("020000000002 020000000001 0800");
  const auto ip = hex(ip_packet);
  f.insert(f.end(), ip.begin(), ip.end());
  return f;
}

std::vector<uint8_t> le32(uint32_t v) {
  std::vector<uint8_t> out(4);
  detail::put_le<4>(out.data(), v);
  return out;
}

}  // namespace

TEST_CASE("wire: CRC-32 gives the check value of its catalogue entry", "[wire][smoke]") {
  const std::string_view digits = "123456789";
  const std::vector<uint8_t> bytes(digits.begin(), digits.end());
  CHECK(~crc32_update(~0U, bytes) == 0xcbf43926);
  CHECK(~crc32_update(~0U, {}) == 0);
}

TEST_CASE("wire: CRC-32 by tables equals one bit at a time at every length and cut", "[wire][random]") {
  Rng rng;
  for (size_t n = 0; n < 200; ++n) {
    std::vector<uint8_t> bytes(n);
    rng.fill(bytes);
    const size_t cut = rng.below(n + 1);
    const Bytes all(bytes);
    const uint32_t got = ~crc32_update(crc32_update(~0U, all.first(cut)), all.subspan(cut));
    REQUIRE(got == crc32_bitwise(bytes));
  }
}

// Captured on a ConnectX-4 Lx (scapy's test suite), and two made with scapy 2.5 and confirmed by an
// independent routine.
TEST_CASE("wire: ICRC of packets that others sent", "[wire][smoke]") {
  struct Vector {
    const char *what, *packet, *icrc;
  };
  const Vector vectors[] = {
      {"ConnectX-4 Lx congestion notification",
       "45c2003c718c4000401191610a0011010a001201 000012b700280000 8100ffff4000011800000000"
       "00000000000000000000000000000000",
       "82fd002a"},
      {"UC SEND_ONLY with UDP checksum",
       "45010040047840004011b4d5c0a80007c0a80007 c00012b7002caca2 2460ffff000000d300cf1710"
       "4630818be28935d90e9a95505401be885e500000",
       "78f353f3"},
      {"RC WRITE_ONLY, 8 bytes",
       "4502004412344000401114710a0000010a000002 c12312b700300000 0a40ffff0012345680fffffe"
       "0000001122334400deadbeef00000008 0001020304050607",
       "7f5b5805"},
      {"the same from another UDP source port",
       "4502004412344000401114710a0000010a000002 c12412b700300000 0a40ffff0012345680fffffe"
       "0000001122334400deadbeef00000008 0001020304050607",
       "df9d520b"},
      {"RC WRITE_ONLY, 3 bytes and a pad",
       "4502004012344000401114750a0000010a000002 c12312b7002c0000 0a50ffff0012345680fffffe"
       "0000001122334400deadbeef00000003 61626300",
       "82fc32ca"},
  };
  for (const auto& v : vectors) {
    INFO(v.what);
    const Frame f = on_ethernet(v.packet);
    CHECK(le32(icrc(f)) == hex(v.icrc));
    CHECK(ipv4_checksum(Bytes(f).subspan(14, 20)) == 0);
  }
}

TEST_CASE("wire: ICRC ignores what a switch may change and nothing else (case transport 9)",
          "[wire][random]") {
  Rng rng;
  const Sample s = make_sample(rng, Opcode::WRITE, 21);
  const Bytes covered = Bytes(s.frame).first(s.frame.size() - 4);
  const uint32_t right = icrc(covered);
  for (size_t at = 0; at < covered.size(); ++at) {
    Frame f(covered.begin(), covered.end());
    f[at] ^= static_cast<uint8_t>(rng.range(1, 255));
    const bool free =
        at < 14 || at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 || at == 46;
    INFO("byte " << at);
    REQUIRE((icrc(f) == right) == free);
  }
}

// A header whose sum carries again when its carries are added back (verilog-ethernet #254 #264).
TEST_CASE("wire: IPv4 checksum folds the second carry (case rtl 3)", "[wire][smoke]") {
  auto h = hex("4500 ffff ffff 4000 4011 0000 ffff ffff ffff 3af3");
  uint32_t sum = 0;
  for (size_t i = 0; i < h.size(); i += 2) sum += static_cast<uint32_t>(h[i] << 8 | h[i + 1]);
  const uint32_t once = (sum & 0xffff) + (sum >> 16);
  REQUIRE(once > 0xffff);  // else the header does not test what it should
  const uint16_t c = ipv4_checksum(h);
  // RFC 1071 literally: end-around carry after every addition.
  uint32_t acc = 0;
  for (size_t i = 0; i < h.size(); i += 2) {
    acc += static_cast<uint32_t>(h[i] << 8 | h[i + 1]);
    if (acc > 0xffff) acc -= 0xffff;
  }
  CHECK(c == static_cast<uint16_t>(~acc));
  h[10] = static_cast<uint8_t>(c >> 8);
  h[11] = static_cast<uint8_t>(c);
  CHECK(ipv4_checksum(h) == 0);
}

TEST_CASE("wire: what is built is what is parsed", "[wire][random]") {
  Rng rng;
  for (int i = 0; i < 3000; ++i) {
    const Opcode op = kServed[rng.below(4)];
    const size_t bytes = i < 300 ? static_cast<size_t>(i) : rng.below(kMaxPayload + 1);
    const Sample s = make_sample(rng, op, bytes);
    REQUIRE(s.frame.size() >= kMinFrameBytes);
    REQUIRE(s.frame.size() <= kMaxFrameBytes);
    REQUIRE(le32(icrc_by_the_book(s.frame)) == std::vector<uint8_t>(s.frame.end() - 4, s.frame.end()));
    RxConn conn{true, s.wth.incarnation};
    std::vector<RxConn> conns(s.bth.dqpn % 64 + 1, conn);
    RxPort port{s.route.dmac, s.route.dip, std::nullopt, 0, 0};
    const ParseResult r = parse(s.frame, port);
    REQUIRE(r);
    const Parsed& f = r.frame;
    REQUIRE(f.layout == *layout_of(static_cast<uint8_t>(op)));
    REQUIRE(f.eth.src == s.route.smac);
    REQUIRE(f.ipv4.src == s.route.sip);
    REQUIRE(f.ipv4.ecn == s.route.ecn);
    REQUIRE(f.ipv4.id == s.route.id);
    REQUIRE(f.udp.sport == s.route.sport);
    REQUIRE(f.bth.opcode == s.bth.opcode);
    REQUIRE(f.bth.dqpn == s.bth.dqpn);
    REQUIRE(f.bth.psn == s.bth.psn);
    REQUIRE(f.wth.path == s.wth.path);
    REQUIRE(f.wth.epoch == s.wth.epoch);
    REQUIRE(f.wth.incarnation == s.wth.incarnation);
    REQUIRE(f.wth.timestamp == s.wth.timestamp);
    if (f.layout == Layout::DATA) {
      REQUIRE(std::ranges::equal(f.payload, s.payload));
      REQUIRE(f.wdh.more == s.wdh.more);
      REQUIRE(f.wdh.retx == s.wdh.retx);
      REQUIRE(f.wdh.stream == s.wdh.stream);
      REQUIRE(f.wdh.va == s.wdh.va);
      REQUIRE(f.wdh.rkey == s.wdh.rkey);
      REQUIRE(f.wdh.msg_no == s.wdh.msg_no);
      REQUIRE(f.wdh.sem == s.wdh.sem);
      REQUIRE(f.wdh.msg_len == s.wdh.msg_len);
      REQUIRE(f.wdh.value == s.wdh.value);
    } else if (f.layout == Layout::ACK) {
      REQUIRE(f.hist == s.hist);
      REQUIRE(f.wah.base == s.wah.base);
      REQUIRE(f.wah.ce_bytes == s.wah.ce_bytes);
      REQUIRE(f.wah.rx_bytes == s.wah.rx_bytes);
      REQUIRE(f.wah.echo == s.wah.echo);
      REQUIRE(f.wah.share == s.wah.share);
      REQUIRE(f.wah.credits == s.wah.credits);
      REQUIRE(f.wah.status == s.wah.status);
    }
  }
}

TEST_CASE("wire: a CE mark keeps checksum and ICRC right", "[wire][random]") {
  Rng rng;
  for (int i = 0; i < 200; ++i) {
    Sample s = make_sample(rng, Opcode::WRITE, rng.below(100));
    const uint8_t ecn = s.route.ecn;
    REQUIRE(mark_ce(s.frame) == (ecn != 0));
    const ParseResult r = parse(s.frame);
    REQUIRE(r);
    REQUIRE(r.frame.ipv4.ecn == (ecn == 0 ? 0 : kEcnCe));
  }
}

TEST_CASE("wire: each way to be malformed has its reason", "[wire][smoke]") {
  Rng rng;
  const Sample data = make_sample(rng, Opcode::WRITE, 61);
  const Sample probe = make_sample(rng, Opcode::PROBE, 0);
  Sample ack = make_sample(rng, Opcode::ACK, 0);
  ack.wah.hist_words = 2;
  ack.frame = build_ack(ack.route, ack.bth, ack.wth, ack.wah, ack.hist);

  enum Seal { kAsIs, kReseal };
  struct Case {
    const char* what;
    const Sample& from;
    std::vector<std::pair<size_t, uint8_t>> bytes;  // position, new value
    Seal seal;
    Drop expected;
  };
  const uint8_t len = static_cast<uint8_t>(data.frame.size() - 14);
  const Case cases[] = {
      {"IPv6", data, {{12, 0x86}, {13, 0xdd}}, kAsIs, Drop::ETHERTYPE},
      {"IP options", data, {{14, 0x46}}, kReseal, Drop::IP_HEADER},
      {"IP version", data, {{14, 0x65}}, kReseal, Drop::IP_HEADER},
      {"first fragment", data, {{20, 0x20}}, kReseal, Drop::IP_HEADER},
      {"later fragment", data, {{20, 0x00}, {21, 0x08}}, kReseal, Drop::IP_HEADER},
      {"IP checksum", data, {{24, static_cast<uint8_t>(data.frame[24] ^ 1)}}, kAsIs, Drop::IP_HEADER},
      {"TCP", data, {{23, 6}}, kReseal, Drop::PROTOCOL},
      {"another UDP port", data, {{37, 0xb8}}, kReseal, Drop::PROTOCOL},
      {"IP length too large", data, {{17, static_cast<uint8_t>(len + 4)}}, kReseal, Drop::LENGTH},
      {"UDP length too small", data, {{39, static_cast<uint8_t>(len - 24)}}, kReseal, Drop::LENGTH},
      {"payload bit", data, {{100, static_cast<uint8_t>(data.frame[100] ^ 0x10)}}, kAsIs, Drop::ICRC},
      {"BTH version", data, {{43, 0x31}}, kReseal, Drop::VERSION},
      {"unknown opcode", data, {{42, 0xff}}, kReseal, Drop::OPCODE},
      {"opcode of a stock NIC", data, {{42, 0x0a}}, kReseal, Drop::OPCODE},
      {"opcode not served", data, {{42, 0xc0}}, kReseal, Drop::OPCODE},
      {"probe called data", probe, {{42, 0xc2}}, kReseal, Drop::SHORT},
      {"probe called ack", probe, {{42, 0xd0}}, kReseal, Drop::SHORT},
      {"version of WDH", data, {{63, 2}}, kReseal, Drop::VERSION},
      {"version of WAH", ack, {{85, 0}}, kReseal, Drop::VERSION},
      {"pad of an ack", ack, {{43, 0x10}}, kReseal, Drop::PAD},
      {"pad of a probe", probe, {{43, 0x20}}, kReseal, Drop::PAD},
      {"nine history words", ack, {{62, 0x90}}, kReseal, Drop::ACK_BAD},
      {"fewer history words than sent", ack, {{62, 0x10}}, kReseal, Drop::ACK_BAD},
  };
  for (const auto& c : cases) {
    INFO(c.what);
    Frame f = c.from.frame;
    REQUIRE(parse(f));
    for (auto [at, value] : c.bytes) f[at] = value;
    if (c.seal == kReseal) reseal(f);
    const ParseResult r = parse(f);
    REQUIRE(r.drop);
    CHECK(std::string(name(*r.drop)) == name(c.expected));
  }
}

TEST_CASE("wire: frames cut or stretched at any byte are refused", "[wire][random]") {
  Rng rng;
  for (Opcode op : kServed) {
    const Sample s = make_sample(rng, op, rng.range(1, 300));
    for (size_t n = 0; n < s.frame.size(); ++n) {
      const ParseResult r = parse(Bytes(s.frame).first(n));
      REQUIRE(r.drop);
      REQUIRE(*r.drop == (n < kMinFrameBytes ? Drop::SHORT : Drop::LENGTH));
    }
    Frame longer = s.frame;
    longer.push_back(0);
    REQUIRE(parse(longer).drop == Drop::LENGTH);
    longer.resize(kMaxFrameBytes + 1);
    REQUIRE(parse(longer).drop == Drop::LONG);
  }
}

TEST_CASE("wire: lengths that agree but do not suit the opcode are refused", "[wire][random]") {
  Rng rng;
  // Moves the end of the frame by `bytes`, with lengths, checksum and ICRC right again.
  const auto resized = [](Frame f, int bytes) {
    f.resize(f.size() + static_cast<size_t>(bytes));
    detail::put_be<2>(f.data() + 16, f.size() - 14);
    detail::put_be<2>(f.data() + 38, f.size() - 34);
    reseal(f);
    return f;
  };
  const Sample data = make_sample(rng, Opcode::WRITE, 64);
  CHECK(parse(resized(data.frame, 1)).drop == Drop::PAD);
  CHECK(parse(resized(data.frame, 2)).drop == Drop::PAD);
  CHECK_FALSE(parse(resized(data.frame, 4)).drop);  // another good frame of 68 bytes payload
  CHECK(parse(resized(data.frame, -68)).drop == Drop::SHORT);
  const Sample tiny = make_sample(rng, Opcode::WRITE, 1);
  CHECK(parse(resized(tiny.frame, -4)).drop == Drop::PAD);  // pad 3 and nothing to pad
  CHECK(parse(resized(make_sample(rng, Opcode::PROBE, 0).frame, 4)).drop == Drop::PAD);
  CHECK(parse(resized(make_sample(rng, Opcode::ACK, 0).frame, 4)).drop == Drop::ACK_BAD);
}

TEST_CASE("wire: who does not serve blocks takes no ack that claims one", "[wire][smoke]") {
  // A count of 15 in the header and no block behind it, which fuzzing carried into an array of 4.
  Rng rng;
  Frame f = make_sample(rng, Opcode::ACK, 0).frame;
  f[62] |= 0x0f;
  reseal(f);
  CHECK(parse(f).drop == Drop::ACK_BAD);
  RxPort whole;
  whole.whole_protocol = true;
  CHECK(parse(f, whole).drop == Drop::ACK_BAD);
}

TEST_CASE("wire: a port takes what is for it, from the connection it knows, on its paths", "[wire][smoke]") {
  Rng rng;
  Sample s = make_sample(rng, Opcode::WRITE, 8);
  s.bth.dqpn = 3;
  s.wth.path = 17;  // of port 2 with 8 paths each
  s.frame = build_data(s.route, s.bth, s.wth, s.wdh, s.payload);
  std::vector<RxConn> conns(4);
  conns[3] = {true, s.wth.incarnation};
  const RxPort right{s.route.dmac, s.route.dip, conns, 2, 8};
  REQUIRE(parse(s.frame, right));
  CHECK(parse(s.frame, right, true).drop == Drop::MAC);
  RxPort p = right;
  p.mac = *p.mac ^ 1;
  CHECK(parse(s.frame, p).drop == Drop::DESTINATION);
  p = right;
  p.ip = *p.ip ^ 1;
  CHECK(parse(s.frame, p).drop == Drop::DESTINATION);
  p = right;
  p.conns = std::span<const RxConn>(conns).first(3);
  CHECK(parse(s.frame, p).drop == Drop::CONN);
  p = right;
  p.port = 1;
  CHECK(parse(s.frame, p).drop == Drop::PATH);
  ++conns[3].incarnation;
  CHECK(parse(s.frame, right).drop == Drop::INCARNATION);
  conns[3].valid = false;
  CHECK(parse(s.frame, right).drop == Drop::CONN);
}

TEST_CASE("wire: one flipped bit never passes for a good frame of the same sender", "[wire][random]") {
  Rng rng;
  for (Opcode op : kServed) {
    const Sample s = make_sample(rng, op, rng.below(80));
    const RxPort port{s.route.dmac, std::nullopt, std::nullopt, 0, 0};
    for (size_t bit = 0; bit < 8 * s.frame.size(); ++bit) {
      Frame f = s.frame;
      f[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
      const size_t at = bit / 8;
      // Not protected by anything: source MAC, UDP checksum (unused), BTH byte 4 (FECN, BECN).
      const bool open = (at >= 6 && at < 12) || at == 40 || at == 41 || at == 46;
      INFO("bit " << bit << " of " << name(op));
      REQUIRE(parse(f, port).drop.has_value() == !open);
    }
  }
}

TEST_CASE("wire: headers of any content are refused or describe what is there", "[wire][random]") {
  Rng rng;
  unsigned good = 0, reasons = 0;
  std::array<bool, kDropCount> seen{};
  for (int i = 0; i < 20000; ++i) {
    Frame f = make_sample(rng, kServed[rng.below(4)], rng.below(60)).frame;
    // Damage behind the UDP header, cut or grow, then make lengths and checksums right so that it is looked
    // at.
    for (uint64_t n = rng.below(3); n > 0; --n) f[rng.range(42, f.size() - 1)] = static_cast<uint8_t>(rng());
    if (rng.chance(0.3)) f.resize(rng.range(58, f.size() + 8));
    detail::put_be<2>(f.data() + 16, f.size() - 14);
    detail::put_be<2>(f.data() + 38, f.size() - 34);
    reseal(f);
    const ParseResult r = parse(f);
    if (r.drop) {
      seen[static_cast<size_t>(*r.drop)] = true;
      continue;
    }
    ++good;
    const Parsed& p = r.frame;
    REQUIRE(p.bth.tver == 0);
    REQUIRE(layout_of(p.bth.opcode) == p.layout);
    if (p.layout == Layout::DATA) {
      REQUIRE(p.payload.data() == f.data() + kHdrDataBytes);
      REQUIRE(kHdrDataBytes + p.payload.size() + p.bth.pad + kIcrcBytes == f.size());
    } else if (p.layout == Layout::ACK) {
      REQUIRE(p.wah.hist_words <= kHistWords);
    }
  }
  for (bool s : seen) reasons += s;
  CHECK(good > 1000);
  CHECK(reasons == 5);  // SHORT, VERSION, OPCODE, PAD, ACK_BAD
}
