// SPDX-License-Identifier: Apache-2.0
//
// Message engine: runs compiled subgraphs of work-queue entries without the host.
//
// weft_me_core does the per-entry work, weft_cpu_m validates subgraphs before they may run. What
// the streams promise is said in the two. Semantics of entries, doorbells and completions:
// docs/me.md.
`default_nettype none

module weft_me
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
#(
    parameter int unsigned NumSems      = 256,
    parameter int unsigned NumSubgraphs = 64,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumRegions   = 64,
    parameter int unsigned WindowDepth  = 32,
    parameter int unsigned NumCtx       = 4,
    parameter int unsigned RingDepth    = 128,
    parameter int unsigned Exact        = weft_math_pkg::ExactNone  // of the reducer
) (
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire cfg_t         cfg_i,
    input  wire       [ 63:0] now_i,
    // Doorbells.
    input  wire               db_valid_i,
    output logic              db_ready_o,
    input  wire       [511:0] db_i,
    // Transport.
    output logic              req_valid_o,
    input  wire               req_ready_i,
    output tx_req_t           req_o,
    input  wire               cpl_valid_i,
    output logic              cpl_ready_o,
    input  wire cpl_t         cpl_i,
    input  wire               sig_valid_i,
    output logic              sig_ready_o,
    input  wire signal_t      sig_i,
    // Reducer.
    output logic              nmc_req_valid_o,
    input  wire               nmc_req_ready_i,
    output nmc_req_t          nmc_req_o,
    input  wire               nmc_cpl_valid_i,
    output logic              nmc_cpl_ready_o,
    input  wire cpl_t         nmc_cpl_i,
    // CPU-M: firmware is loaded while cpu_run_i = 0.
    input  wire               fw_we_i,
    input  wire       [ 15:0] fw_addr_i,
    input  wire       [ 31:0] fw_data_i,
    input  wire               cpu_run_i,
    output logic      [ 31:0] cpu_status_o,
    // Memory: AXI4, 512 bits.
    output logic      [ 63:0] m_axi_araddr,
    output logic      [  7:0] m_axi_arlen,
    output logic              m_axi_arvalid,
    input  wire               m_axi_arready,
    input  wire       [511:0] m_axi_rdata,
    input  wire       [  1:0] m_axi_rresp,
    input  wire               m_axi_rlast,
    input  wire               m_axi_rvalid,
    output logic              m_axi_rready,
    output logic      [ 63:0] m_axi_awaddr,
    output logic      [  7:0] m_axi_awlen,
    output logic              m_axi_awvalid,
    input  wire               m_axi_awready,
    output logic      [511:0] m_axi_wdata,
    output logic      [ 63:0] m_axi_wstrb,
    output logic              m_axi_wlast,
    output logic              m_axi_wvalid,
    input  wire               m_axi_wready,
    input  wire       [  1:0] m_axi_bresp,
    input  wire               m_axi_bvalid,
    output logic              m_axi_bready,
    // Observers.
    output me_trace_t         trace_o,
    output me_cnt_t           cnt_o,
    output logic              idle_o
);

  logic mbox_valid, verdict_valid, verdict_ready;
  mbox_t mbox;
  verdict_t verdict;
  logic cpu_valid, cpu_ready, cpu_rvalid, cpu_rlast, cpu_rbad, cpu_trap;
  logic core_idle, cpu_idle;
  line_t cpu_line;
  logic [3:0] cpu_len;
  logic [511:0] cpu_rdata;
  me_cnt_t core_cnt;

  always_comb begin
    cnt_o          = core_cnt;
    cnt_o.cpu_trap = cpu_trap;
  end
  assign idle_o = core_idle && cpu_idle;

  weft_me_core #(
      .NumSems     (NumSems),
      .NumSubgraphs(NumSubgraphs),
      .NumConns    (NumConns),
      .NumRegions  (NumRegions),
      .WindowDepth (WindowDepth),
      .NumCtx      (NumCtx),
      .RingDepth   (RingDepth)
  ) u_core (
      .clk_i,
      .rst_i,
      .cfg_i,
      .now_i,
      .db_valid_i,
      .db_ready_o,
      .db_i,
      .req_valid_o,
      .req_ready_i,
      .req_o,
      .cpl_valid_i,
      .cpl_ready_o,
      .cpl_i,
      .sig_valid_i,
      .sig_ready_o,
      .sig_i,
      .nmc_req_valid_o,
      .nmc_req_ready_i,
      .nmc_req_o,
      .nmc_cpl_valid_i,
      .nmc_cpl_ready_o,
      .nmc_cpl_i,
      .mbox_valid_o   (mbox_valid),
      .mbox_o         (mbox),
      .verdict_valid_i(verdict_valid),
      .verdict_ready_o(verdict_ready),
      .verdict_i      (verdict),
      .cpu_valid_i    (cpu_valid),
      .cpu_ready_o    (cpu_ready),
      .cpu_line_i     (cpu_line),
      .cpu_len_i      (cpu_len),
      .cpu_rvalid_o   (cpu_rvalid),
      .cpu_rlast_o    (cpu_rlast),
      .cpu_rbad_o     (cpu_rbad),
      .cpu_rdata_o    (cpu_rdata),
      .m_axi_araddr,
      .m_axi_arlen,
      .m_axi_arvalid,
      .m_axi_arready,
      .m_axi_rdata,
      .m_axi_rresp,
      .m_axi_rlast,
      .m_axi_rvalid,
      .m_axi_rready,
      .m_axi_awaddr,
      .m_axi_awlen,
      .m_axi_awvalid,
      .m_axi_awready,
      .m_axi_wdata,
      .m_axi_wstrb,
      .m_axi_wlast,
      .m_axi_wvalid,
      .m_axi_wready,
      .m_axi_bresp,
      .m_axi_bvalid,
      .m_axi_bready,
      .trace_o,
      .cnt_o          (core_cnt),
      .idle_o         (core_idle)
  );

  weft_cpu_m #(
      .NumSems   (NumSems),
      .NumConns  (NumConns),
      .NumPorts  (NumPorts),
      .NumRegions(NumRegions),
      .Exact     (Exact)
  ) u_cpu_m (
      .clk_i,
      .rst_i,
      .cfg_i,
      .fw_we_i,
      .fw_addr_i,
      .fw_data_i,
      .cpu_run_i,
      .status_o       (cpu_status_o),
      .trap_o         (cpu_trap),
      .idle_o         (cpu_idle),
      .mbox_valid_i   (mbox_valid),
      .mbox_i         (mbox),
      .verdict_valid_o(verdict_valid),
      .verdict_ready_i(verdict_ready),
      .verdict_o      (verdict),
      .fetch_valid_o  (cpu_valid),
      .fetch_ready_i  (cpu_ready),
      .fetch_line_o   (cpu_line),
      .fetch_len_o    (cpu_len),
      .fetch_rvalid_i (cpu_rvalid),
      .fetch_rlast_i  (cpu_rlast),
      .fetch_rbad_i   (cpu_rbad),
      .fetch_rdata_i  (cpu_rdata)
  );

endmodule

`default_nettype wire
