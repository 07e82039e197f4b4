// SPDX-License-Identifier: Apache-2.0
// The pins of a node (rtl/node, flat ports) by address, so that everything which wiggles them is compiled
// once and the Verilated class appears in one place only (tb/node/verilated_model.h).
#pragma once

#include <cstdint>

#include "tb/memory/axi.h"

namespace weft::tb {

inline constexpr uint32_t kBeatBytes = 64;      // DataW / 8
inline constexpr uint32_t kNmcBeatBytes = 128;  // NmcW / 8

struct AxiLitePins {
  uint16_t* awaddr;
  uint8_t *awvalid, *awprot;
  const uint8_t* awready;
  uint32_t* wdata;
  uint8_t *wstrb, *wvalid;
  const uint8_t* wready;
  const uint8_t *bresp, *bvalid;
  uint8_t* bready;
  uint16_t* araddr;
  uint8_t *arvalid, *arprot;
  const uint8_t* arready;
  const uint32_t* rdata;
  const uint8_t *rresp, *rvalid;
  uint8_t* rready;
};

struct DoorbellPins {
  uint64_t* awaddr;
  uint8_t *awlen, *awvalid;
  const uint8_t* awready;
  uint32_t* wdata;
  uint8_t *wstrb, *wlast, *wvalid;
  const uint8_t* wready;
  const uint8_t *bresp, *bvalid;
  uint8_t* bready;
};

// All ports packed side by side: port p is bit p, word p*16 of data, byte p*8 of keep.
struct MacPins {
  const uint32_t* tx_data;
  const uint8_t* tx_keep;
  const uint8_t* tx_valid;
  uint8_t* tx_ready;
  const uint8_t* tx_last;
  uint32_t* rx_data;
  uint8_t* rx_keep;
  uint8_t* rx_valid;
  uint8_t* rx_last;
  uint8_t* rx_user;
};

struct NodePins {
  uint8_t* clk;
  uint8_t* rst;
  AxiLitePins csr;
  DoorbellPins doorbell;
  MacPins mac;
  AxiReadPins tx_read[2];    // m_axi_tx0, m_axi_tx1
  AxiWritePins rx_write[2];  // m_axi_rx0, m_axi_rx1
  AxiReadPins me_read;
  AxiWritePins me_write;
  AxiReadPins nmc_a, nmc_b;
  AxiWritePins nmc_w;
  const uint32_t* me_trace;  // me_trace_t of weft_pkg
  const uint8_t* idle;
};

// A Verilated node behind a table of pins. One thread at a time, not always the same.
class NodeModel {
 public:
  virtual ~NodeModel() = default;
  virtual NodePins& pins() = 0;
  virtual void enter() = 0;                // before a run of eval() on the calling thread
  virtual bool eval(int64_t time_ps) = 0;  // false: an assertion of the RTL has fired
  // Sets the node's time forward as that many cycles at rest would; false: the model cannot.
  virtual bool advance(uint64_t cycles) = 0;
  virtual bool can_trace() const = 0;             // built with waves
  virtual bool open_waves(const char* path) = 0;  // before the first eval
  virtual void dump_waves(int64_t time_ps) = 0;
  virtual bool close_waves() = 0;  // false: the file could not be written
};

}  // namespace weft::tb
