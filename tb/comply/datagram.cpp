// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/datagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "tb/check/traffic.h"

namespace weft::comply {
namespace {

constexpr std::size_t kBth = 42;  // Ethernet, IPv4 and UDP headers in front of it

// CRC over eight ff and the packet, whose last four bytes it is compared with or put into.
std::uint32_t short_icrc(wire::Bytes packet) {
  constexpr std::uint32_t kAfterEightOnes = 0xdebb20e3;
  std::array<std::uint8_t, 5> head;
  std::copy_n(packet.begin(), head.size(), head.begin());
  head[4] = 0xff;
  return ~wire::crc32_update(wire::crc32_update(kAfterEightOnes, head),
                             packet.subspan(5, packet.size() - 5 - wire::kIcrcBytes));
}

}  // namespace

bool same_end(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_addr.s_addr == b.sin_addr.s_addr && a.sin_port == b.sin_port;
}

wire::Frame whole_frame(const Datagram& d, std::uint32_t from, std::uint32_t to, std::uint32_t port) {
  const wire::Route route{tb::node_mac(from, port),
                          tb::node_mac(to, port),
                          tb::node_ip(from, port),
                          tb::node_ip(to, port),
                          0,
                          static_cast<std::uint8_t>(d.tos & 3)};
  wire::Frame f = wire::build_probe(route, {}, {});
  const std::uint32_t wrong =
      short_icrc(d.bytes) ^
      static_cast<std::uint32_t>(wire::detail::get_le<4>(d.bytes.data() + d.bytes.size() - 4));
  f.resize(kBth + d.bytes.size());
  std::copy(d.bytes.begin(), d.bytes.end(), f.begin() + kBth);
  wire::detail::put_be<2>(f.data() + 16, f.size() - 14);
  wire::detail::put_be<2>(f.data() + 38, f.size() - 34);
  wire::reseal(f);
  if (wrong != 0) f.back() ^= 1;
  return f;
}

std::optional<std::vector<std::uint8_t>> without_headers(wire::Bytes frame) {
  if (frame.size() < kBth + kLeastPacket) return std::nullopt;
  std::vector<std::uint8_t> d(frame.begin() + kBth, frame.end());
  const std::size_t covered = frame.size() - wire::kIcrcBytes;
  const bool good = wire::detail::get_le<4>(frame.data() + covered) == wire::icrc(frame.first(covered));
  wire::detail::put_le<4>(d.data() + d.size() - wire::kIcrcBytes, short_icrc(d) ^ (good ? 0 : 1));
  return d;
}

std::uint8_t path_byte(const Datagram& d) {
  return d.bytes.size() > wire::Bth::kBytes ? d.bytes[wire::Bth::kBytes] : 0;
}

std::optional<std::uint64_t> Line::number(const std::string& key, std::uint64_t most, std::uint64_t otherwise,
                                          std::uint64_t least) const {
  const auto it = args.find(key);
  if (it == args.end()) return otherwise;
  const std::string& text = it->second;
  std::uint64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc{} || end != text.data() + text.size() || v < least || v > most) return std::nullopt;
  return v;
}

std::string Line::text(const std::string& key) const {
  const auto it = args.find(key);
  return it == args.end() ? "" : it->second;
}

Line read_line(const std::vector<std::uint8_t>& bytes) {
  Line l;
  std::size_t i = 0;
  while (i < bytes.size()) {
    std::string w;
    while (i < bytes.size() && bytes[i] > ' ') w += static_cast<char>(bytes[i++]);
    while (i < bytes.size() && bytes[i] <= ' ') ++i;
    const std::size_t equals = w.find('=');
    if (equals == std::string::npos)
      l.word += (l.word.empty() ? "" : " ") + w;
    else
      l.args[w.substr(0, equals)] = w.substr(equals + 1);
  }
  return l;
}

std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string s;
  for (std::uint8_t b : bytes) s += fmt::format("{:02x}", b);
  return s;
}

std::optional<std::vector<std::uint8_t>> unhex(const std::string& s) {
  std::vector<std::uint8_t> b(s.size() / 2);
  for (std::size_t i = 0; i < b.size(); ++i)
    if (std::from_chars(s.data() + 2 * i, s.data() + 2 * i + 2, b[i], 16).ptr != s.data() + 2 * i + 2)
      return std::nullopt;
  if (s.size() % 2 != 0) return std::nullopt;
  return b;
}

}  // namespace weft::comply
