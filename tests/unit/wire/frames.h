// SPDX-License-Identifier: Apache-2.0
// Random frames and hex dumps for the tests of this folder.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "frame.h"
#include "weft_test.h"

namespace weft::test {

/// Bytes of a hex dump; anything that is no hex digit separates.
inline std::vector<uint8_t> hex(std::string_view text) {
  std::vector<uint8_t> out;
  int high = -1;
  for (char c : text) {
    int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (v < 0) continue;
    if (high < 0) {
      high = v;
    } else {
      out.push_back(static_cast<uint8_t>(high << 4 | v));
      high = -1;
    }
  }
  REQUIRE(high < 0);
  return out;
}

struct Sample {
  wire::Route route;
  wire::Bth bth;
  wire::Wth wth;
  wire::Wdh wdh;
  wire::Wah wah;
  std::array<uint32_t, wire::kHistWords> hist{};
  std::vector<uint8_t> payload;
  wire::Frame frame;
};

/// A frame of `opcode` with everything random that may be; payload_bytes matters for data only.
inline Sample make_sample(Rng& rng, wire::Opcode opcode, size_t payload_bytes) {
  Sample s;
  s.route.smac = rng() >> 16;
  s.route.dmac = rng() >> 16;
  s.route.sip = static_cast<uint32_t>(rng());
  s.route.dip = static_cast<uint32_t>(rng());
  s.route.sport = static_cast<uint16_t>(rng());
  s.route.ecn = static_cast<uint8_t>(rng.below(4));
  s.route.dscp = static_cast<uint8_t>(rng.below(64));
  s.route.ttl = static_cast<uint8_t>(rng.range(1, 255));
  s.route.id = static_cast<uint16_t>(rng());
  s.bth = wire::make_bth(opcode, rng() & 0xffffff, rng() & 0xffffff);
  s.wth.path = static_cast<uint8_t>(rng());
  s.wth.epoch = static_cast<uint8_t>(rng());
  s.wth.incarnation = static_cast<uint16_t>(rng());
  s.wth.timestamp = static_cast<uint32_t>(rng());
  switch (*wire::layout_of(s.bth.opcode)) {
    case wire::Layout::DATA:
      s.wdh.more = rng.chance(0.5);
      s.wdh.retx = rng.chance(0.5);
      s.wdh.stream = static_cast<uint16_t>(rng());
      s.wdh.va = rng();
      s.wdh.rkey = static_cast<uint32_t>(rng());
      s.wdh.msg_no = static_cast<uint16_t>(rng());
      s.wdh.sem = static_cast<uint16_t>(rng());
      s.wdh.msg_len = static_cast<uint32_t>(rng());
      s.wdh.value = static_cast<uint32_t>(rng());
      s.payload.resize(payload_bytes);
      rng.fill(s.payload);
      s.frame = wire::build_data(s.route, s.bth, s.wth, s.wdh, s.payload);
      break;
    case wire::Layout::PROBE: s.frame = wire::build_probe(s.route, s.bth, s.wth); break;
    case wire::Layout::ACK:
      s.wah.hist_words = static_cast<uint8_t>(rng.below(wire::kHistWords + 1));
      s.wah.base = rng() & 0xffffff;
      s.wah.ce_bytes = static_cast<uint32_t>(rng());
      s.wah.rx_bytes = static_cast<uint32_t>(rng());
      s.wah.echo = static_cast<uint32_t>(rng());
      s.wah.share = static_cast<uint32_t>(rng());
      s.wah.credits = static_cast<uint16_t>(rng());
      s.wah.status = static_cast<uint8_t>(rng.below(wire::kErrCount));
      s.hist.fill(0xffffffff);
      for (unsigned i = 0; i < s.wah.hist_words; ++i) s.hist[i] = static_cast<uint32_t>(rng());
      s.frame = wire::build_ack(s.route, s.bth, s.wth, s.wah, s.hist);
      break;
  }
  return s;
}

inline constexpr wire::Opcode kServed[] = {wire::Opcode::WRITE, wire::Opcode::WRITE_SIGNAL,
                                           wire::Opcode::PROBE, wire::Opcode::ACK};

}  // namespace weft::test
