// SPDX-License-Identifier: Apache-2.0
// The first byte of an input says what is done to the rest: bit 0 writes the right ICRC at its end, so that
// what lies behind that check is reached too; bit 1 lets only what RTL nodes serve pass.
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sw/ref/packet.h"
#include "tests/fuzz/targets.h"

namespace weft::fuzz {

void parser(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  std::vector<std::uint8_t> frame(data + 1, data + size);  // of its own: reading beyond it is seen
  if ((data[0] & 1) != 0 && frame.size() >= wire::kHdrProbeBytes + wire::kIcrcBytes) {
    const std::uint32_t crc = wire::icrc({frame.data(), frame.size() - wire::kIcrcBytes});
    for (unsigned i = 0; i < wire::kIcrcBytes; ++i)
      frame[frame.size() - wire::kIcrcBytes + i] = static_cast<std::uint8_t>(crc >> 8 * i);
  }
  wire::RxPort port;
  port.whole_protocol = (data[0] & 2) == 0;
  const wire::ParseResult first = wire::parse(frame, port);
  if (!first) return;
  // Encoded again it is a frame of the same meaning; reserved bits and what switches change may differ.
  const ref::Packet packet = ref::decode(first.frame);
  if (packet.payload_bytes > wire::kMaxPayload) std::abort();
  if (packet.is_ack() && packet.ack.block_count > wire::kMaxAckBlocks) std::abort();
  std::array<std::uint8_t, wire::kMaxFrameBytes> out;
  const std::size_t bytes = ref::encode(out.data(), {}, packet);
  if (bytes != ref::frame_bytes(packet) || bytes > out.size()) std::abort();
  const wire::ParseResult second = wire::parse({out.data(), bytes}, port);
  if (!second) std::abort();
  const ref::Packet again = ref::decode(second.frame);
  if (again.opcode != packet.opcode || again.conn != packet.conn || again.path != packet.path ||
      again.epoch != packet.epoch || again.timestamp != packet.timestamp ||
      again.incarnation != packet.incarnation || again.payload_bytes != packet.payload_bytes)
    std::abort();
  if (packet.payload_bytes != 0 && std::memcmp(again.payload, packet.payload, packet.payload_bytes) != 0)
    std::abort();
  if (packet.is_ack()) {
    const ref::AckHeader &x = packet.ack, &y = again.ack;
    if (x.base != y.base || x.hist != y.hist || x.echo != y.echo || x.share != y.share ||
        x.credits != y.credits || x.stream != y.stream || x.block_count != y.block_count)
      std::abort();
  }
}

}  // namespace weft::fuzz
