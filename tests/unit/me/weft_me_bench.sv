// SPDX-License-Identifier: Apache-2.0
//
// weft_me with its structs taken apart, so that a C++ bench can name every field.
`default_nettype none

module weft_me_bench
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_i,
    input  wire          cfg_valid,
    input  wire  [  3:0] cfg_kind,
    input  wire  [ 15:0] cfg_index,
    input  wire  [511:0] cfg_data,
    input  wire  [ 63:0] now_i,
    input  wire          db_valid_i,
    output logic         db_ready_o,
    input  wire  [511:0] db_i,
    output logic         req_valid_o,
    input  wire          req_ready_i,
    output logic [ 11:0] req_conn,
    output logic [  7:0] req_tag,
    output logic         req_signal,
    output logic [ 15:0] req_sem,
    output logic [ 31:0] req_value,
    output logic [ 63:0] req_laddr,
    output logic [ 63:0] req_raddr,
    output logic [ 31:0] req_rkey,
    output logic [ 31:0] req_len,
    input  wire          cpl_valid_i,
    output logic         cpl_ready_o,
    input  wire  [  7:0] cpl_tag,
    input  wire  [  7:0] cpl_status,
    input  wire          sig_valid_i,
    output logic         sig_ready_o,
    input  wire  [ 15:0] sig_sem,
    input  wire  [ 31:0] sig_value,
    output logic         nmc_req_valid_o,
    input  wire          nmc_req_ready_i,
    output logic [  7:0] nmc_tag,
    output logic [  7:0] nmc_dtype,
    output logic [  7:0] nmc_to,
    output logic [  7:0] nmc_redop,
    output logic [  2:0] nmc_flags,  // propagate_nan, saturate, exact
    output logic [  7:0] nmc_nsrc,
    output logic [  7:0] nmc_own,
    output logic [ 63:0] nmc_src0,
    output logic [ 63:0] nmc_src1,
    output logic [ 31:0] nmc_stride,
    output logic [ 63:0] nmc_dst,
    output logic [ 31:0] nmc_len,
    output logic [ 63:0] nmc_scalar,
    input  wire          nmc_cpl_valid_i,
    output logic         nmc_cpl_ready_o,
    input  wire  [  7:0] nmc_cpl_tag,
    input  wire  [  7:0] nmc_cpl_status,
    input  wire          fw_we_i,
    input  wire  [ 15:0] fw_addr_i,
    input  wire  [ 31:0] fw_data_i,
    input  wire          cpu_run_i,
    output logic [ 31:0] cpu_status_o,
    output logic [ 63:0] m_axi_araddr,
    output logic [  7:0] m_axi_arlen,
    output logic         m_axi_arvalid,
    input  wire          m_axi_arready,
    input  wire  [511:0] m_axi_rdata,
    input  wire  [  1:0] m_axi_rresp,
    input  wire          m_axi_rlast,
    input  wire          m_axi_rvalid,
    output logic         m_axi_rready,
    output logic [ 63:0] m_axi_awaddr,
    output logic [  7:0] m_axi_awlen,
    output logic         m_axi_awvalid,
    input  wire          m_axi_awready,
    output logic [511:0] m_axi_wdata,
    output logic [ 63:0] m_axi_wstrb,
    output logic         m_axi_wlast,
    output logic         m_axi_wvalid,
    input  wire          m_axi_wready,
    input  wire  [  1:0] m_axi_bresp,
    input  wire          m_axi_bvalid,
    output logic         m_axi_bready,
    output logic         trace_issue,
    output logic         trace_done,
    output logic [ 15:0] trace_subgraph,
    output logic [ 31:0] trace_entry,
    output logic [  7:0] trace_opcode,
    output logic [  7:0] trace_status,
    output logic [ 15:0] trace_done_subgraph,
    output logic [ 31:0] trace_done_entry,
    output logic [  7:0] trace_done_opcode,
    output logic [ 23:0] cnt_o,  // me_cnt_t, its first field in bit 23
    output logic         idle_o
);

  cfg_t cfg;
  tx_req_t req;
  cpl_t cpl, nmc_cpl;
  signal_t sig;
  nmc_req_t nmc;
  me_trace_t trace;
  assign cfg = '{valid: cfg_valid, kind: cfg_table_e'(cfg_kind), index: cfg_index, data: cfg_data};
  assign cpl = '{tag: cpl_tag, status: err_e'(cpl_status)};
  assign nmc_cpl = '{tag: nmc_cpl_tag, status: err_e'(nmc_cpl_status)};
  assign sig = '{sem: sig_sem, value: sig_value};
  assign {req_conn, req_tag, req_signal} = {req.conn, req.tag, req.signal};
  assign {req_sem, req_value} = {req.sem, req.value};
  assign {req_laddr, req_raddr, req_rkey, req_len} = {req.laddr, req.raddr, req.rkey, req.len};
  assign {nmc_tag, nmc_dtype, nmc_to, nmc_redop} = {nmc.tag, nmc.dtype, nmc.to, nmc.redop};
  assign {nmc_flags, nmc_nsrc, nmc_own} =
      {nmc.propagate_nan, nmc.saturate, nmc.exact, nmc.nsrc, nmc.own};
  assign {nmc_src0, nmc_src1, nmc_stride} = {nmc.src0, nmc.src1, nmc.stride};
  assign {nmc_dst, nmc_len, nmc_scalar} = {nmc.dst, nmc.len, nmc.scalar};
  assign {trace_issue, trace_subgraph, trace_entry, trace_opcode} =
      {trace.issue, trace.subgraph, trace.entry, trace.opcode};
  assign {trace_done, trace_status, trace_done_subgraph, trace_done_entry, trace_done_opcode} =
      {trace.done, trace.status, trace.done_subgraph, trace.done_entry, trace.done_opcode};

  weft_me u_me (
      .clk_i,
      .rst_i,
      .cfg_i    (cfg),
      .now_i,
      .db_valid_i,
      .db_ready_o,
      .db_i,
      .req_valid_o,
      .req_ready_i,
      .req_o    (req),
      .cpl_valid_i,
      .cpl_ready_o,
      .cpl_i    (cpl),
      .sig_valid_i,
      .sig_ready_o,
      .sig_i    (sig),
      .nmc_req_valid_o,
      .nmc_req_ready_i,
      .nmc_req_o(nmc),
      .nmc_cpl_valid_i,
      .nmc_cpl_ready_o,
      .nmc_cpl_i(nmc_cpl),
      .fw_we_i,
      .fw_addr_i,
      .fw_data_i,
      .cpu_run_i,
      .cpu_status_o,
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
      .trace_o  (trace),
      .cnt_o    (cnt_o),
      .idle_o
  );

endmodule

`default_nettype wire
