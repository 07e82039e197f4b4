// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/seen.h"

#include <fmt/format.h>

#include <cctype>

#include "tb/comply/script.h"
#include "tb/comply/tester.h"

namespace weft::comply {
namespace {

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

}  // namespace

wire::Opcode opcode_by_name(const std::string& small) {
  for (unsigned n = 0; n < 256; ++n)
    if (const char* is = wire::name(static_cast<wire::Opcode>(n)); is != nullptr && small == lower(is))
      return static_cast<wire::Opcode>(n);
  return wire::Opcode::WRITE;  // "data": the parser has looked
}
std::string name_of(wire::Opcode op) {
  const char* n = wire::name(op);
  return n == nullptr ? fmt::format("opcode {:#x}", static_cast<unsigned>(op)) : lower(n);
}

std::string err_name(wire::Err e) {
  const char* n = wire::name(e);
  return n == nullptr ? fmt::format("error {}", static_cast<unsigned>(e)) : n;
}
std::string err_name(std::uint8_t e) {
  return err_name(static_cast<wire::Err>(e));
}

std::string cut(std::string bits) {
  bits.resize(bits.find_last_of('0') + 1);
  return bits;
}
std::string hist_bits(std::span<const std::uint32_t> hist) {
  std::string bits;
  for (std::uint32_t word : hist)
    for (int i = 31; i >= 0; --i) bits += (word >> i & 1) != 0 ? '1' : '0';
  return cut(bits);
}

std::optional<Told> told(const Seen& s, std::uint8_t path) {
  if (path == s.f.wth.path)
    return Told{s.f.wth.epoch, s.f.wah.base, static_cast<std::uint32_t>(s.f.wah.ce_bytes & kMask24),
                hist_bits(s.f.hist)};
  for (unsigned i = 0; i < s.f.wah.blocks; ++i)
    if (const wire::Wab& b = s.f.blocks[i]; b.path == path)
      return Told{b.epoch, b.base, b.ce_bytes, hist_bits({&b.hist, 1})};
  return std::nullopt;
}

std::optional<std::uint64_t> field(const Seen& s, const std::string& key) {
  const wire::Parsed& f = s.f;
  if (key == "path") return f.wth.path;
  if (key == "epoch") return f.wth.epoch;
  if (key == "incarnation") return f.wth.incarnation;
  if (key == "ts") return f.wth.timestamp;
  if (key == "conn") return f.bth.dqpn;
  if (key == "port") return s.port;
  if (key == "sport") return f.udp.sport;
  if (key == "ecn") return f.ipv4.ecn;
  if (f.layout == wire::Layout::ACK) {
    if (key == "base") return f.wah.base;
    if (key == "words") return f.wah.hist_words;
    if (key == "blocks") return f.wah.blocks;
    if (const auto of = block_key(key)) {
      const auto path = told(s, of->first);
      if (!path) return std::nullopt;
      if (of->second == "base") return path->base;
      if (of->second == "epoch") return path->epoch;
      if (of->second == "ce_bytes") return path->ce_bytes;
    }
    if (key == "ce_bytes") return f.wah.ce_bytes;
    if (key == "rx_bytes") return f.wah.rx_bytes;
    if (key == "echo") return f.wah.echo;
    if (key == "share") return f.wah.share;
    if (key == "credits") return f.wah.credits;
    if (key == "stream") return f.bth.psn;
    return std::nullopt;
  }
  if (key == "psn") return f.bth.psn;
  if (f.layout != wire::Layout::DATA) return std::nullopt;
  if (key == "stream") return f.wdh.stream;
  if (key == "va") return f.wdh.va;
  if (key == "rkey") return f.wdh.rkey;
  if (key == "msg") return f.wdh.msg_no;
  if (key == "msg_len") return f.wdh.msg_len;
  if (key == "value") return f.wdh.value;
  if (key == "sem") return f.wdh.sem;
  if (key == "more") return f.wdh.more;
  if (key == "retx") return f.wdh.retx;
  if (key == "len") return f.payload.size();
  const wire::Opcode op = s.op;
  if (op == wire::Opcode::READ && f.payload.size() == wire::ReadRequest::kBytes) {
    const auto r = wire::ReadRequest::unpack(f.payload.data());
    if (key == "to") return r.va;
    if (key == "to_key") return r.rkey;
  }
  if ((op == wire::Opcode::FETCH_ADD || op == wire::Opcode::COMPARE_SWAP) &&
      f.payload.size() == wire::AtomicRequest::kBytes) {
    const auto r = wire::AtomicRequest::unpack(f.payload.data());
    if (key == "to") return r.va;
    if (key == "to_key") return r.rkey;
    if (key == "operand") return r.operand;
    if (key == "compare") return r.compare;
  }
  return std::nullopt;
}
std::uint64_t width(const std::string& name) {
  const auto block = block_key(name);
  const std::string& key = block ? block->second : name;
  if (key == "psn" || key == "base") return kMask24;
  if (key == "ts" || key == "echo" || key == "len") return kMost32;
  const Bounds* b = bounds_of(name);
  return b == nullptr ? kMost64 : b->most;
}

std::string describe(wire::Bytes frame) {
  wire::RxPort any;
  any.whole_protocol = true;
  const wire::ParseResult r = wire::parse(frame, any);
  const wire::Parsed& f = r.frame;
  if (!r) return fmt::format("{} bytes, malformed: {}", frame.size(), wire::name(*r.drop));
  std::string text = fmt::format("{} path {} epoch {}", name_of(static_cast<wire::Opcode>(f.bth.opcode)),
                                 f.wth.path, f.wth.epoch);
  if (f.layout == wire::Layout::ACK) {
    text += fmt::format(" base {:#x} hist '{}' rx {} ce {} echo {} credits {} status {}", f.wah.base,
                        hist_bits(f.hist), f.wah.rx_bytes, f.wah.ce_bytes, f.wah.echo, f.wah.credits,
                        err_name(f.wah.status));
    for (unsigned i = 0; i < f.wah.blocks; ++i)
      text += fmt::format(" p{} epoch {} base {:#x} hist '{}' ce {}", f.blocks[i].path, f.blocks[i].epoch,
                          f.blocks[i].base, hist_bits({&f.blocks[i].hist, 1}), f.blocks[i].ce_bytes);
  } else {
    text += fmt::format(" psn {:#x} ts {}", f.bth.psn, f.wth.timestamp);
    if (f.layout == wire::Layout::DATA)
      text +=
          fmt::format(" stream {} msg {} va {:#x} len {} of {}{}{}", f.wdh.stream, f.wdh.msg_no, f.wdh.va,
                      f.payload.size(), f.wdh.msg_len, f.wdh.more ? " more" : "", f.wdh.retx ? " retx" : "");
  }
  if (f.ipv4.ecn == wire::kEcnCe) text += " CE";
  return text;
}

}  // namespace weft::comply
