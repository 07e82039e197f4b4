// SPDX-License-Identifier: Apache-2.0
// Doorbells and registers of the stand-in node, echo_node.sv.
#pragma once

#include <array>
#include <cstring>

#include "Vtb_echo.h"
#include "soft_node.h"
#include "sw/weft/hal.h"
#include "tb/memory/memory.h"
#include "tb/node/rtl_node.h"
#include "tb/node/verilated_model.h"

namespace weft::tb::echo {

inline constexpr uint32_t kId = 0, kRxBase = 4, kGap = 8, kHasty = 12, kReadBack = 16, kFrames = 20,
                          kResponse = 24, kCycles = 28;

inline NodeFactory nodes() {
  return rtl_nodes(make_verilated_node<Vtb_echo>);
}

inline void send(Hal& hal, uint32_t port, uint64_t addr, uint16_t bytes) {
  std::array<uint8_t, 64> db{};
  db[0] = 1;
  db[1] = static_cast<uint8_t>(port);
  std::memcpy(&db[2], &bytes, 2);
  std::memcpy(&db[8], &addr, 8);
  hal.doorbell(db.data());
}

inline void copy(Hal& hal, uint64_t from, uint64_t to) {
  std::array<uint8_t, 64> db{};
  db[0] = 2;
  std::memcpy(&db[8], &from, 8);
  std::memcpy(&db[16], &to, 8);
  hal.doorbell(db.data());
}

}  // namespace weft::tb::echo
