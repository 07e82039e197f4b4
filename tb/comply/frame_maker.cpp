// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/frame_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tb/check/traffic.h"

namespace weft::comply {
namespace {

constexpr std::size_t kIp = 14, kBth = 42;

wire::Route route_of(std::uint32_t port, std::uint8_t ecn) {
  wire::Route r;
  r.smac = tb::node_mac(kTesterNode, port);
  r.dmac = tb::node_mac(kBodyNode, port);
  r.sip = tb::node_ip(kTesterNode, port);
  r.dip = tb::node_ip(kBodyNode, port);
  r.sport = 0xd000;
  r.ecn = ecn;
  return r;
}

}  // namespace

std::uint32_t FrameMaker::line_share() const {
  return static_cast<std::uint32_t>(std::uint64_t{offer_.line} * 65536 / 8000);
}

std::pair<std::uint32_t, wire::Frame> FrameMaker::make(const Statement& s) {
  const wire::Opcode op = opcode_by_name(s.word);
  const wire::Layout layout = *wire::layout_of(static_cast<std::uint8_t>(op));
  const auto path = static_cast<std::uint8_t>(number(s, "path", 0));
  const auto port = static_cast<std::uint32_t>(number(s, "port", path / body_.stride(setup_)));
  wire::Route route = route_of(
      port, static_cast<std::uint8_t>(number(s, "ecn", layout == wire::Layout::ACK ? 0 : wire::kEcnEct0)));
  route.sport = static_cast<std::uint16_t>(number(s, "sport", route.sport + path));
  const auto epoch = static_cast<std::uint8_t>(number(s, "epoch", 0));
  const wire::Wth wth{
      path, epoch, static_cast<std::uint16_t>(number(s, "incarnation", hello_.incarnation)),
      static_cast<std::uint32_t>(number(s, "ts", static_cast<std::uint64_t>(body_.now() / kNs)))};
  wire::Bth bth = wire::make_bth(op, static_cast<std::uint32_t>(number(s, "conn", hello_.conn)), 0);
  if (const Value* v = s.arg("psn")) bth.psn = psn(v->lo, offer_.psn);
  wire::Frame f;
  if (layout == wire::Layout::DATA)
    f = make_data(s, route, bth, wth);
  else if (layout == wire::Layout::ACK)
    f = make_ack(s, route, bth, wth);
  else
    f = wire::build_probe(route, bth, wth);
  spoil(s, layout, f);
  return {port, std::move(f)};
}

wire::Frame FrameMaker::make_data(const Statement& s, const wire::Route& route, const wire::Bth& bth,
                                  const wire::Wth& wth) {
  const auto op = static_cast<wire::Opcode>(bth.opcode);
  wire::Wdh wdh{};
  wdh.more = number(s, "more", 0) != 0;
  wdh.retx = number(s, "retx", 0) != 0;
  wdh.stream = static_cast<std::uint16_t>(number(s, "stream", 0));
  wdh.va = number(s, "va", 0);
  wdh.rkey = static_cast<std::uint32_t>(number(s, "rkey", 0));
  wdh.msg_no = static_cast<std::uint16_t>(number(s, "msg", 0));
  wdh.sem = static_cast<std::uint16_t>(number(s, "sem", 0));
  wdh.value = static_cast<std::uint32_t>(number(s, "value", 0));
  std::vector<std::uint8_t> payload = payload_of(s, op);
  wdh.msg_len = static_cast<std::uint32_t>(
      number(s, "msg_len", op == wire::Opcode::READ ? length(s, 0) : payload.size()));
  return wire::build_data(route, bth, wth, wdh, payload);
}

wire::Frame FrameMaker::make_ack(const Statement& s, const wire::Route& route, wire::Bth bth,
                                 const wire::Wth& wth) const {
  wire::Wah wah{};
  std::array<std::uint32_t, wire::kHistWords> hist;
  hist.fill(0xffffffff);
  const std::string bits = word(s, "hist", "");
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i] == '0') hist[i / 32] &= ~(1u << (31 - i % 32));
  wah.hist_words = static_cast<std::uint8_t>((bits.size() + 31) / 32);
  wah.base = psn(s.arg("base")->lo, wth.epoch == 0 ? hello_.psn : 0);
  wah.ce_bytes = static_cast<std::uint32_t>(number(s, "ce_bytes", 0));
  wah.rx_bytes = static_cast<std::uint32_t>(number(s, "rx_bytes", 0));
  wah.echo = static_cast<std::uint32_t>(number(s, "echo", 0));
  wah.share = static_cast<std::uint32_t>(number(s, "share", line_share()));
  wah.credits = static_cast<std::uint16_t>(number(s, "credits", 0));
  wah.status = static_cast<std::uint8_t>(by_name<wire::Err>(word(s, "status", "OK")));
  bth.psn = static_cast<std::uint32_t>(number(s, "stream", 0));
  wire::Frame f(wire::kMaxAckFrameBytes);
  f.resize(wire::write_ack(f.data(), route, bth, wth, wah, hist, blocks_of(s)));
  return f;
}

// Blocks in the order in which the script names them.
std::vector<wire::Wab> FrameMaker::blocks_of(const Statement& s) const {
  std::vector<wire::Wab> out;
  for (const Arg& a : s.args) {
    const auto key = block_key(a.key);
    if (!key || key->second != "base") continue;
    const std::string of = fmt::format("p{}.", key->first);
    wire::Wab b{};
    b.path = static_cast<std::uint8_t>(number(s, (of + "path").c_str(), key->first));
    b.epoch = static_cast<std::uint8_t>(number(s, (of + "epoch").c_str(), 0));
    b.base = psn(a.value.lo, b.epoch == 0 ? hello_.psn : 0);
    b.ce_bytes = static_cast<std::uint32_t>(number(s, (of + "ce_bytes").c_str(), 0) & kMask24);
    b.hist = ~0u;
    const std::string bits = word(s, (of + "hist").c_str(), "");
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i] == '0') b.hist &= ~(1u << (31 - i));
    out.push_back(b);
  }
  return out;
}

std::vector<std::uint8_t> FrameMaker::payload_of(const Statement& s, wire::Opcode op) {
  if (op == wire::Opcode::READ) {
    wire::ReadRequest r{};
    r.va = number(s, "to", 0);
    r.rkey = static_cast<std::uint32_t>(number(s, "to_key", 0));
    std::vector<std::uint8_t> b(wire::ReadRequest::kBytes);
    r.pack(b.data());
    return b;
  }
  if (op == wire::Opcode::FETCH_ADD || op == wire::Opcode::COMPARE_SWAP) {
    wire::AtomicRequest r{};
    r.va = number(s, "to", 0);
    r.rkey = static_cast<std::uint32_t>(number(s, "to_key", 0));
    r.operand = number(s, "operand", 0);
    r.compare = number(s, "compare", 0);
    std::vector<std::uint8_t> b(wire::AtomicRequest::kBytes);
    r.pack(b.data());
    return b;
  }
  const std::uint64_t bytes = number(s, "len", 0);
  const Value* v = s.arg("bytes");
  return bytes_of(v == nullptr ? Value{} : *v, bytes);
}

// Makes a frame wrong. Unless the script says seal=no the checksums are right again afterwards, so that
// only the one thing is wrong.
void FrameMaker::spoil(const Statement& s, wire::Layout layout, wire::Frame& f) const {
  // A frame may end before the byte that is meant: a probe has no version, and what is cut no ICRC.
  const auto byte = [&](const char* key, std::size_t at) -> std::uint8_t& {
    if (at >= f.size())
      throw Failure{s.line, fmt::format("{}: the frame has {} bytes and none at {}", key, f.size(), at)};
    return f[at];
  };
  // Bits of a byte that a key names.
  const auto put = [&](const char* key, std::size_t at, std::uint8_t mask, unsigned shift) {
    const Value* v = s.arg(key);
    if (v == nullptr) return false;
    std::uint8_t& b = byte(key, at);
    b = static_cast<std::uint8_t>((b & ~mask) | (number(s, key, 0) << shift & mask));
    return true;
  };
  bool changed = put("opcode", kBth, 0xff, 0);
  changed |= put("pad", kBth + 1, 0x30, 4);
  changed |= put("tver", kBth + 1, 0x0f, 0);
  changed |= put("version", layout == wire::Layout::DATA ? wire::kHdrProbeBytes + 1 : wire::kHdrAckBytes - 1,
                 0xff, 0);
  changed |= put("words", wire::kHdrProbeBytes, 0xf0, 4);
  changed |= put("blocks", wire::kHdrProbeBytes, 0x0f, 0);
  if (const Value* v = s.arg("set")) {
    const std::size_t colon = v->text.find(':');
    const std::string digits = v->text.substr(0, colon);
    std::size_t at = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), at).ec != std::errc{}) at = f.size();
    const std::size_t bytes = (v->text.size() - colon - 1) / 2;
    if (at >= f.size() || bytes > f.size() - at)
      throw Failure{s.line, fmt::format("set = {}: the frame has {} bytes", v->text, f.size())};
    for (std::size_t i = 0; i < bytes; ++i)
      f[at + i] = static_cast<std::uint8_t>(std::stoul(v->text.substr(colon + 1 + 2 * i, 2), nullptr, 16));
    changed = true;
  }
  if (changed && word(s, "seal", "yes") == "yes") wire::reseal(f);
  f.resize(f.size() - std::min<std::size_t>(f.size(), number(s, "cut", 0)));
  f.resize(f.size() + number(s, "grow", 0));
  const std::string corrupt = word(s, "corrupt", "");
  if (corrupt == "icrc") byte("corrupt=icrc", f.size() - 1) ^= 1;
  if (corrupt == "payload") byte("corrupt=payload", wire::kHdrDataBytes) ^= 1;
  if (corrupt == "ip") byte("corrupt=ip", kIp + 10) ^= 1;
}

std::optional<wire::Frame> FrameMaker::acknowledge(const Seen& s) {
  const bool data = s.f.layout == wire::Layout::DATA;
  if ((!data && s.op != wire::Opcode::PROBE) || (auto_path_ && *auto_path_ != s.f.wth.path))
    return std::nullopt;
  RxPath& p = rx_[s.f.wth.path];
  if (!p.open || (s.f.wth.epoch != p.epoch)) {
    p = RxPath{};
    p.open = true;
    p.epoch = s.f.wth.epoch;
    p.base = p.epoch == 0 ? hello_.psn : 0;
    p.hist.fill(0xffffffff);
  }
  const auto ahead = static_cast<std::int32_t>((s.f.bth.psn - p.base) << 8) >> 8;
  if (ahead >= 0) {
    // Holes are settled as lost the moment they show.
    for (std::int32_t i = 0; i <= ahead; ++i) {
      for (std::size_t w = wire::kHistWords - 1; w > 0; --w) p.hist[w] = p.hist[w] >> 1 | p.hist[w - 1] << 31;
      p.hist[0] = p.hist[0] >> 1 | (i == ahead ? 1u << 31 : 0);
    }
    p.base = (s.f.bth.psn + 1) & kMask24;
    if (data) {
      const auto bytes = static_cast<std::uint32_t>(s.f.payload.size()) + wire::kWinOverhead;
      p.rx_bytes += bytes;
      if (s.f.ipv4.ecn == wire::kEcnCe) p.ce_bytes += bytes;
    }
    p.echo = s.f.wth.timestamp;
  }
  wire::Wah wah{};
  wah.hist_words = static_cast<std::uint8_t>((hist_bits(p.hist).size() + 31) / 32);
  wah.base = p.base;
  wah.ce_bytes = p.ce_bytes;
  wah.rx_bytes = p.rx_bytes;
  wah.echo = p.echo;
  wah.share = line_share();
  wah.credits = auto_credits_;
  const wire::Wth wth{s.f.wth.path, s.f.wth.epoch, hello_.incarnation, 0};
  return wire::build_ack(route_of(s.port, 0), wire::make_bth(wire::Opcode::ACK, hello_.conn, s.f.wdh.stream),
                         wth, wah, p.hist);
}

}  // namespace weft::comply
