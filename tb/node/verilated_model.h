// SPDX-License-Identifier: Apache-2.0
// Turns a Verilated top with the ports of weft_nic100 into a NodeModel:
//
//   #include "Vnic100.h"
//   #include "tb/node/verilated_model.h"
//   auto factory = rtl_nodes(make_verilated_node<Vnic100>);
//
// Any number of instances; each has a context of its own, so they may run on different threads. Waves exist
// in programs linked with the tracing twin of the model (<name>_fst, which defines VM_TRACE_FST).
#pragma once

#include <verilated.h>
#if defined(VM_TRACE_FST) && VM_TRACE_FST
#include <verilated_fst_c.h>
#endif

#include <sys/stat.h>

#include <memory>
#include <string>

#include "tb/node/pins.h"
#include "tb/sim/owned_model.h"

namespace weft::tb {

// Buses of up to 64 bits are integers, wider ones arrays of 32-bit words; both are little-endian words.
inline uint32_t* pin_words(QData& q) {
  return reinterpret_cast<uint32_t*>(&q);
}
inline uint32_t* pin_words(IData& i) {
  return &i;
}
template <std::size_t N>
uint32_t* pin_words(VlWide<N>& w) {
  return w.data();
}
template <class T>
uint8_t* pin_bytes(T& bus) {
  return reinterpret_cast<uint8_t*>(pin_words(bus));
}

// The one register that changes in a node at rest.
template <class Root>
uint64_t* node_time(Root& root) {
  if constexpr (requires { root.weft_nic100__DOT__u_node__DOT__u_host__DOT__now_q; }) {
    return &root.weft_nic100__DOT__u_node__DOT__u_host__DOT__now_q;
  } else {
    return nullptr;
  }
}

template <class Model>
class VerilatedNode : public NodeModel {
 public:
  VerilatedNode(const std::string& name, uint64_t seed, bool traced)
      : model_(name, [&](VerilatedContext& context) {
          context.randReset(2);
          context.randSeed(static_cast<int>(seed % 0x7fff'fffe) + 1);
          context.fatalOnError(false);  // a failed assertion ends the run with a message, not the program
          if (traced) context.traceEverOn(true);
        }) {
    bind();
  }
  Model& model() { return *model_; }

  NodePins& pins() override { return pins_; }
  void enter() override { Verilated::threadContextp(&model_.context()); }
  bool eval(int64_t time_ps) override {
    model_.context().time(static_cast<uint64_t>(time_ps));
    model_->eval();
    return !model_.context().gotError();
  }
  bool advance(uint64_t cycles) override {
    uint64_t* const now = node_time(*model_->rootp);
    if (now) *now += cycles;
    return now != nullptr;
  }
  bool can_trace() const override { return Model::traceCapable; }
#if defined(VM_TRACE_FST) && VM_TRACE_FST
  bool open_waves(const char* path) override {
    path_ = path;
    waves_ = std::make_unique<VerilatedFstC>();
    model_->trace(waves_.get(), 99);
    waves_->open(path);
    return waves_->isOpen();
  }
  void dump_waves(int64_t time_ps) override {
    waves_->dump(static_cast<uint64_t>(time_ps));
  }
  bool close_waves() override {
    waves_->close();
    waves_.reset();
    struct stat s {};
    return ::stat(path_.c_str(), &s) == 0 && s.st_size > 0;
  }
#else
  bool open_waves(const char*) override {
    return false;
  }
  void dump_waves(int64_t) override {}
  bool close_waves() override {
    return true;
  }
#endif

 private:
#define WEFT_BIND_READ(target, prefix) \
  target = {                           \
    &m.prefix##_araddr,                \
    &m.prefix##_arlen,                 \
    &m.prefix##_arvalid,               \
    &m.prefix##_arready,               \
    pin_words(m.prefix##_rdata),       \
    &m.prefix##_rresp,                 \
    &m.prefix##_rlast,                 \
    &m.prefix##_rvalid,                \
    &m.prefix##_rready                 \
  }
#define WEFT_BIND_WRITE(target, prefix)                                                    \
  target = {&m.prefix##_awaddr,  &m.prefix##_awlen,           &m.prefix##_awvalid,         \
            &m.prefix##_awready, pin_words(m.prefix##_wdata), pin_bytes(m.prefix##_wstrb), \
            &m.prefix##_wlast,   &m.prefix##_wvalid,          &m.prefix##_wready,          \
            &m.prefix##_bresp,   &m.prefix##_bvalid,          &m.prefix##_bready}
  void bind() {
    Model& m = *model_;
    pins_.clk = &m.clk_i;
    pins_.rst = &m.rst_i;
    pins_.csr = {&m.s_axil_awaddr, &m.s_axil_awvalid, &m.s_axil_awprot,  &m.s_axil_awready, &m.s_axil_wdata,
                 &m.s_axil_wstrb,  &m.s_axil_wvalid,  &m.s_axil_wready,  &m.s_axil_bresp,   &m.s_axil_bvalid,
                 &m.s_axil_bready, &m.s_axil_araddr,  &m.s_axil_arvalid, &m.s_axil_arprot,  &m.s_axil_arready,
                 &m.s_axil_rdata,  &m.s_axil_rresp,   &m.s_axil_rvalid,  &m.s_axil_rready};
    pins_.doorbell = {&m.s_axi_db_awaddr,  &m.s_axi_db_awlen,           &m.s_axi_db_awvalid,
                      &m.s_axi_db_awready, pin_words(m.s_axi_db_wdata), pin_bytes(m.s_axi_db_wstrb),
                      &m.s_axi_db_wlast,   &m.s_axi_db_wvalid,          &m.s_axi_db_wready,
                      &m.s_axi_db_bresp,   &m.s_axi_db_bvalid,          &m.s_axi_db_bready};
    pins_.mac = {pin_words(m.m_axis_tx_tdata), pin_bytes(m.m_axis_tx_tkeep),
                 &m.m_axis_tx_tvalid,          &m.m_axis_tx_tready,
                 &m.m_axis_tx_tlast,           pin_words(m.s_axis_rx_tdata),
                 pin_bytes(m.s_axis_rx_tkeep), &m.s_axis_rx_tvalid,
                 &m.s_axis_rx_tlast,           &m.s_axis_rx_tuser};
    WEFT_BIND_READ(pins_.tx_read[0], m_axi_tx0);
    WEFT_BIND_READ(pins_.tx_read[1], m_axi_tx1);
    WEFT_BIND_WRITE(pins_.rx_write[0], m_axi_rx0);
    WEFT_BIND_WRITE(pins_.rx_write[1], m_axi_rx1);
    WEFT_BIND_READ(pins_.me_read, m_axi_me);
    WEFT_BIND_WRITE(pins_.me_write, m_axi_me);
    WEFT_BIND_READ(pins_.nmc_a, m_axi_nmc_a);
    WEFT_BIND_READ(pins_.nmc_b, m_axi_nmc_b);
    WEFT_BIND_WRITE(pins_.nmc_w, m_axi_nmc_w);
    pins_.me_trace = pin_words(m.me_trace_o);
    pins_.idle = &m.idle_o;
  }
#undef WEFT_BIND_READ
#undef WEFT_BIND_WRITE

  OwnedModel<Model> model_;
  NodePins pins_{};
#if defined(VM_TRACE_FST) && VM_TRACE_FST
  std::unique_ptr<VerilatedFstC> waves_;
  std::string path_;
#endif
};

template <class Model>
std::unique_ptr<NodeModel> make_verilated_node(const std::string& name, uint64_t seed, bool traced) {
  return std::make_unique<VerilatedNode<Model>>(name, seed, traced);
}

}  // namespace weft::tb
