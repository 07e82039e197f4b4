// SPDX-License-Identifier: Apache-2.0
#include "frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weft::wire {
namespace {

constexpr std::size_t kIp = Eth::kBytes;
constexpr std::size_t kUdp = kIp + Ipv4::kBytes;
constexpr std::size_t kBth = kUdp + Udp::kBytes;
constexpr std::size_t kWth = kBth + Bth::kBytes;
constexpr std::size_t kExt = kWth + Wth::kBytes;  // WDH or WAH
static_assert(kExt == kHdrProbeBytes && kExt + Wdh::kBytes == kHdrDataBytes &&
              kExt + Wah::kBytes == kHdrAckBytes);

constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint8_t kVerIhl = 0x45;
constexpr std::uint8_t kProtoUdp = 17;
constexpr std::uint16_t kDontFragment = 0x4000;

// Slicing by 8 (Intel, Kounavis and Berry): table[k][b] is the state of byte b followed by k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t s = b;
    for (int i = 0; i < 8; ++i) s = s >> 1 ^ (s & 1 ? 0xedb88320U : 0);
    t[0][b] = s;
  }
  for (std::uint32_t b = 0; b < 256; ++b) {
    for (std::size_t k = 1; k < 8; ++k) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 0xff];
  }
  return t;
}
constexpr Tables kCrc = make_tables();

constexpr std::uint32_t kCrcAfterLrh =
    0xdebb20e3;  // register after the 8 bytes ff that stand for a masked LRH

std::uint64_t load_le64(const std::uint8_t* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  return v;
}

// Ethernet .. BTH, with the total length known.
void write_front(std::uint8_t* out, const Route& r, const Bth& bth, std::size_t frame_bytes) {
  Eth{r.dmac, r.smac, kIpv4}.pack(out);
  Ipv4 ip{};
  ip.ver_ihl = kVerIhl;
  ip.dscp = r.dscp;
  ip.ecn = r.ecn;
  ip.len = static_cast<std::uint16_t>(frame_bytes - kIp);
  ip.id = r.id;
  ip.frag = kDontFragment;
  ip.ttl = r.ttl;
  ip.proto = kProtoUdp;
  ip.src = r.sip;
  ip.dst = r.dip;
  ip.pack(out + kIp);
  ip.csum = ipv4_checksum({out + kIp, Ipv4::kBytes});
  ip.pack(out + kIp);
  Udp udp{};
  udp.sport = r.sport;
  udp.dport = kUdpDport;
  udp.len = static_cast<std::uint16_t>(frame_bytes - kUdp);
  udp.pack(out + kUdp);
  bth.pack(out + kBth);
}

void write_icrc(std::span<std::uint8_t> frame) {
  const std::size_t covered = frame.size() - kIcrcBytes;
  detail::put_le<4>(frame.data() + covered, icrc(frame.first(covered)));
}

}  // namespace

std::uint32_t crc32_update(std::uint32_t state, Bytes bytes) {
  const std::uint8_t* p = bytes.data();
  std::size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) {
    const std::uint64_t v = load_le64(p) ^ state;
    state = kCrc[7][v & 0xff] ^ kCrc[6][v >> 8 & 0xff] ^ kCrc[5][v >> 16 & 0xff] ^ kCrc[4][v >> 24 & 0xff] ^
            kCrc[3][v >> 32 & 0xff] ^ kCrc[2][v >> 40 & 0xff] ^ kCrc[1][v >> 48 & 0xff] ^ kCrc[0][v >> 56];
  }
  for (; n > 0; --n, ++p) state = state >> 8 ^ kCrc[0][(state ^ *p) & 0xff];
  return state;
}

std::uint32_t icrc(Bytes frame) {
  std::array<std::uint8_t, kWth - kIp> head;  // IPv4 .. BTH, masked
  std::copy_n(frame.data() + kIp, head.size(), head.data());
  constexpr std::array<std::size_t, 7> kMasked = {kIp + 1,  kIp + 8,  kIp + 10, kIp + 11,
                                                  kUdp + 6, kUdp + 7, kBth + 4};
  for (std::size_t at : kMasked) head[at - kIp] = 0xff;
  return ~crc32_update(crc32_update(kCrcAfterLrh, head), frame.subspan(kWth));
}

std::uint16_t ipv4_checksum(Bytes header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2)
    sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  // Twice: the first fold can carry out of 16 bits again.
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

Bth make_bth(Opcode opcode, std::uint32_t dqpn, std::uint32_t psn) {
  Bth bth{};
  bth.opcode = static_cast<std::uint8_t>(opcode);
  bth.pkey = kPkey;
  bth.dqpn = dqpn;
  bth.psn = psn;
  return bth;
}

std::size_t write_data(std::uint8_t* out, const Route& route, Bth bth, const Wth& wth, Wdh wdh,
                       Bytes payload) {
  bth.pad = static_cast<std::uint8_t>(-payload.size() & 3);
  wdh.version = kWeftVersion;
  const std::size_t bytes = kHdrDataBytes + payload.size() + bth.pad + kIcrcBytes;
  write_front(out, route, bth, bytes);
  wth.pack(out + kWth);
  wdh.pack(out + kExt);
  std::uint8_t* end = std::copy(payload.begin(), payload.end(), out + kHdrDataBytes);
  std::fill_n(end, bth.pad, std::uint8_t{0});
  write_icrc({out, bytes});
  return bytes;
}

std::size_t write_probe(std::uint8_t* out, const Route& route, Bth bth, const Wth& wth) {
  bth.pad = 0;
  write_front(out, route, bth, kMinFrameBytes);
  wth.pack(out + kWth);
  write_icrc({out, kMinFrameBytes});
  return kMinFrameBytes;
}

std::size_t write_ack(std::uint8_t* out, const Route& route, Bth bth, const Wth& wth, Wah wah,
                      const std::array<std::uint32_t, kHistWords>& hist, std::span<const Wab> blocks) {
  bth.pad = 0;
  wah.version = kWeftVersion;
  const std::size_t words = std::min<std::size_t>(wah.hist_words, kHistWords);
  const std::size_t count = std::min<std::size_t>(blocks.size(), kMaxAckBlocks);
  wah.blocks = static_cast<std::uint8_t>(count);
  const std::size_t bytes = kHdrAckBytes + 4 * words + count * Wab::kBytes + kIcrcBytes;
  write_front(out, route, bth, bytes);
  wth.pack(out + kWth);
  wah.pack(out + kExt);
  for (std::size_t i = 0; i < words; ++i) detail::put_be<4>(out + kHdrAckBytes + 4 * i, hist[i]);
  for (std::size_t i = 0; i < count; ++i) blocks[i].pack(out + kHdrAckBytes + 4 * words + i * Wab::kBytes);
  write_icrc({out, bytes});
  return bytes;
}

Frame build_data(const Route& route, const Bth& bth, const Wth& wth, const Wdh& wdh, Bytes payload) {
  Frame f(kHdrDataBytes + payload.size() + (-payload.size() & 3) + kIcrcBytes);
  write_data(f.data(), route, bth, wth, wdh, payload);
  return f;
}

Frame build_probe(const Route& route, const Bth& bth, const Wth& wth) {
  Frame f(kMinFrameBytes);
  write_probe(f.data(), route, bth, wth);
  return f;
}

Frame build_ack(const Route& route, const Bth& bth, const Wth& wth, const Wah& wah,
                const std::array<std::uint32_t, kHistWords>& hist) {
  Frame f(kMaxAckFrameBytes);
  f.resize(write_ack(f.data(), route, bth, wth, wah, hist));
  return f;
}

void reseal(std::span<std::uint8_t> frame) {
  const auto ip = frame.subspan(kIp, Ipv4::kBytes);
  detail::put_be<2>(ip.data() + 10, 0);
  detail::put_be<2>(ip.data() + 10, ipv4_checksum(ip));
  write_icrc(frame);
}

bool mark_ce(std::span<std::uint8_t> frame) {
  std::uint8_t& tos = frame[kIp + 1];
  if ((tos & 3) == 0) return false;
  tos |= kEcnCe;
  const auto ip = frame.subspan(kIp, Ipv4::kBytes);
  detail::put_be<2>(ip.data() + 10, 0);
  detail::put_be<2>(ip.data() + 10, ipv4_checksum(ip));
  return true;
}

bool is_implemented(Opcode opcode) {
  switch (opcode) {
    case Opcode::WRITE:
    case Opcode::WRITE_SIGNAL:
    case Opcode::ACK:
    case Opcode::PROBE: return true;
    default: return false;
  }
}

ParseResult parse(Bytes frame, const RxPort& port, bool mac_error) {
  ParseResult r;
  Parsed& f = r.frame;
  const auto refuse = [&r](Drop reason) -> ParseResult& {
    r.drop = reason;
    return r;
  };

  if (mac_error) return refuse(Drop::MAC);
  if (frame.size() < kMinFrameBytes) return refuse(Drop::SHORT);
  if (frame.size() > kMaxFrameBytes) return refuse(Drop::LONG);

  f.eth = Eth::unpack(frame.data());
  if (f.eth.ethertype != kIpv4) return refuse(Drop::ETHERTYPE);
  f.ipv4 = Ipv4::unpack(frame.data() + kIp);
  if (f.ipv4.ver_ihl != kVerIhl || (f.ipv4.frag & ~kDontFragment) != 0 ||
      ipv4_checksum(frame.subspan(kIp, Ipv4::kBytes)) != 0) {
    return refuse(Drop::IP_HEADER);
  }
  f.udp = Udp::unpack(frame.data() + kUdp);
  if (f.ipv4.proto != kProtoUdp || f.udp.dport != kUdpDport) return refuse(Drop::PROTOCOL);
  if (f.ipv4.len + kIp != frame.size() || f.udp.len + kUdp != frame.size()) return refuse(Drop::LENGTH);
  if ((port.mac && f.eth.dst != *port.mac) || (port.ip && f.ipv4.dst != *port.ip))
    return refuse(Drop::DESTINATION);

  const std::size_t covered = frame.size() - kIcrcBytes;
  if (detail::get_le<4>(frame.data() + covered) != icrc(frame.first(covered))) return refuse(Drop::ICRC);

  f.bth = Bth::unpack(frame.data() + kBth);
  f.wth = Wth::unpack(frame.data() + kWth);
  if (f.bth.tver != 0) return refuse(Drop::VERSION);
  const auto layout = layout_of(f.bth.opcode);
  if (!layout || !(port.whole_protocol || is_implemented(static_cast<Opcode>(f.bth.opcode))))
    return refuse(Drop::OPCODE);
  f.layout = *layout;

  // The extension header must be there before its version can be read.
  const std::size_t head = f.layout == Layout::DATA  ? kHdrDataBytes
                           : f.layout == Layout::ACK ? kHdrAckBytes
                                                     : kExt;
  if (covered < head) return refuse(Drop::SHORT);
  const std::size_t body = covered - head;  // payload and pad, or history
  if (f.layout == Layout::DATA) {
    f.wdh = Wdh::unpack(frame.data() + kExt);
    if (f.wdh.version != kWeftVersion) return refuse(Drop::VERSION);
    if (body % 4 != 0 || f.bth.pad > body) return refuse(Drop::PAD);
    f.payload = frame.subspan(head, body - f.bth.pad);
  } else if (f.layout == Layout::ACK) {
    f.wah = Wah::unpack(frame.data() + kExt);
    if (f.wah.version != kWeftVersion) return refuse(Drop::VERSION);
    if (f.bth.pad != 0) return refuse(Drop::PAD);
    // Nodes without the capability take none.
    const std::size_t blocks = f.wah.blocks, most = port.whole_protocol ? kMaxAckBlocks : 0;
    if (f.wah.hist_words > kHistWords || blocks > most ||
        body != 4U * f.wah.hist_words + blocks * Wab::kBytes)
      return refuse(Drop::ACK_BAD);
    f.hist.fill(0xffffffff);
    for (std::size_t i = 0; i < f.wah.hist_words; ++i) {
      f.hist[i] = static_cast<std::uint32_t>(detail::get_be<4>(frame.data() + head + 4 * i));
    }
    for (std::size_t i = 0; i < blocks; ++i)
      f.blocks[i] = Wab::unpack(frame.data() + head + 4 * f.wah.hist_words + i * Wab::kBytes);
  } else {
    if (body != 0 || f.bth.pad != 0) return refuse(Drop::PAD);
  }

  if (port.conns) {
    if (f.bth.dqpn >= port.conns->size() || !(*port.conns)[f.bth.dqpn].valid) return refuse(Drop::CONN);
    if ((*port.conns)[f.bth.dqpn].incarnation != f.wth.incarnation) return refuse(Drop::INCARNATION);
  }
  // Fences and their answers name a path and travel on any.
  const auto opcode = static_cast<Opcode>(f.bth.opcode);
  const bool on_its_path = opcode != Opcode::FENCE && opcode != Opcode::FENCE_ANSWER;
  if (port.paths_per_port != 0 && on_its_path && f.wth.path / port.paths_per_port != port.port)
    return refuse(Drop::PATH);
  return r;
}

}  // namespace weft::wire
