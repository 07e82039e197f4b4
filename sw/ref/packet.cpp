// SPDX-License-Identifier: Apache-2.0
#include "sw/ref/packet.h"

namespace weft::ref {

std::size_t frame_bytes(const Packet& p) {
  if (p.is_data()) return wire::kHdrDataBytes + ((p.payload_bytes + 3u) & ~3u) + wire::kIcrcBytes;
  if (p.is_ack())
    return wire::kHdrAckBytes + 4u * p.ack.hist_words + wire::Wab::kBytes * p.ack.block_count +
           wire::kIcrcBytes;
  return wire::kHdrProbeBytes + wire::kIcrcBytes;
}

std::size_t encode(std::uint8_t* out, wire::Route route, const Packet& p) {
  route.sport = p.sport;
  route.ecn = p.is_data() ? wire::kEcnEct0 : 0;  // only data is marked: the counters are of data
  const wire::Wth wth{p.path, p.epoch, p.incarnation, p.timestamp};
  if (p.is_data()) {
    wire::Wdh wdh;
    wdh.more = p.data.more;
    wdh.retx = p.data.retx;
    wdh.stream = p.data.stream;
    wdh.va = p.data.va;
    wdh.rkey = p.data.rkey;
    wdh.msg_no = p.data.msg_no;
    wdh.sem = p.data.sem;
    wdh.msg_len = p.data.msg_len;
    wdh.value = p.data.value;
    return wire::write_data(out, route, wire::make_bth(p.opcode, p.conn, p.psn), wth, wdh,
                            wire::Bytes(p.payload, p.payload_bytes));
  }
  if (p.is_ack()) {
    wire::Wah wah;
    wah.hist_words = p.ack.hist_words;
    wah.base = p.ack.base;
    wah.ce_bytes = p.ack.ce_bytes;
    wah.rx_bytes = p.ack.rx_bytes;
    wah.echo = p.ack.echo;
    wah.share = p.ack.share;
    wah.credits = p.ack.credits;
    wah.status = p.ack.status;
    std::array<wire::Wab, wire::kMaxAckBlocks> blocks;
    for (unsigned i = 0; i < p.ack.block_count; ++i) {
      const AckBlock& b = p.ack.blocks[i];
      blocks[i].path = b.path;
      blocks[i].epoch = b.epoch;
      blocks[i].base = b.base;
      blocks[i].ce_bytes = b.ce_bytes;
      blocks[i].hist = b.hist;
    }
    return wire::write_ack(out, route, wire::make_bth(p.opcode, p.conn, p.ack.stream), wth, wah, p.ack.hist,
                           std::span<const wire::Wab>(blocks.data(), p.ack.block_count));
  }
  return wire::write_probe(out, route, wire::make_bth(p.opcode, p.conn, p.psn), wth);
}

Packet decode(const wire::Parsed& f) {
  Packet p{};
  p.opcode = static_cast<wire::Opcode>(f.bth.opcode);
  p.ce = f.ipv4.ecn == wire::kEcnCe;
  p.path = f.wth.path;
  p.epoch = f.wth.epoch;
  p.incarnation = f.wth.incarnation;
  p.sport = f.udp.sport;
  p.conn = f.bth.dqpn;
  p.psn = f.bth.psn;
  p.timestamp = f.wth.timestamp;
  if (p.is_data()) {
    p.payload_bytes = static_cast<std::uint16_t>(f.payload.size());
    p.payload = f.payload.empty() ? nullptr : f.payload.data();
    p.data.va = f.wdh.va;
    p.data.rkey = f.wdh.rkey;
    p.data.msg_len = f.wdh.msg_len;
    p.data.value = f.wdh.value;
    p.data.stream = f.wdh.stream;
    p.data.msg_no = f.wdh.msg_no;
    p.data.sem = f.wdh.sem;
    p.data.more = f.wdh.more;
    p.data.retx = f.wdh.retx;
  } else if (p.is_ack()) {
    p.ack.base = f.wah.base;
    p.ack.ce_bytes = f.wah.ce_bytes;
    p.ack.rx_bytes = f.wah.rx_bytes;
    p.ack.echo = f.wah.echo;
    p.ack.share = f.wah.share;
    p.ack.credits = f.wah.credits;
    p.ack.stream = static_cast<std::uint16_t>(f.bth.psn);
    p.ack.status = static_cast<std::uint8_t>(f.wah.status);
    p.ack.hist_words = f.wah.hist_words;
    p.ack.hist = f.hist;
    p.ack.block_count = f.wah.blocks;
    for (unsigned i = 0; i < f.wah.blocks; ++i) {
      const wire::Wab& b = f.blocks[i];
      p.ack.blocks[i] = {b.base, b.ce_bytes, b.hist, b.path, b.epoch};
    }
  }
  return p;
}

}  // namespace weft::ref
