// SPDX-License-Identifier: Apache-2.0
// One port slice: everything of the transport that belongs to one MAC. Control (what goes next,
// windows, settling), transmit path (frames out), receive path (frames in, to memory), and the two
// wires between them: acks received go to control, acks due go out with priority.
// See docs/architecture.md.
//
// Control may run ahead of the wire by AheadBytes only: payload reads need some packets in flight
// to hide the memory's latency, but what has been handed over can no longer be overtaken by a
// resend.
`default_nettype none
`include "weft_assert.svh"
module weft_port
  import weft_pkg::*;
  import weft_wire_pkg::*;
  import weft_counters_pkg::*;
  import weft_tx_pkg::tx_cnt_t;
#(
    parameter int unsigned Port         = 0,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned NumRegions   = 64,
    parameter int unsigned NumSems      = 256,
    parameter int unsigned PoolDepth    = 1024,
    parameter int unsigned AheadBytes   = 32 * 1024
) (
    input wire clk_i,
    input wire rst_i,
    input wire cfg_t cfg_i,
    input wire [31:0] now_i,

    // Shared core.
    input  wire              avail_valid_i,
    output logic             avail_ready_o,
    input  wire conn_t       avail_conn_i,
    output logic             pull_valid_o,
    input  wire              pull_ready_i,
    output conn_t            pull_conn_o,
    input  wire              pull_rsp_valid_i,
    input  wire pull_rsp_t   pull_rsp_i,
    output logic             settle_valid_o,
    input  wire              settle_ready_i,
    output settle_t          settle_o,
    output logic             fail_valid_o,
    input  wire              fail_ready_i,
    output conn_fail_t       fail_o,
    output logic             commit_valid_o,
    input  wire              commit_ready_i,
    output rx_commit_t       commit_o,
    input  wire              verdict_valid_i,
    input  wire rx_verdict_t verdict_i,
    input  wire              rx_fail_valid_i,
    input  wire conn_fail_t  rx_fail_i,

    // Memory: payload reads, placement writes.
    output logic [63:0]      m_axi_tx_araddr,
    output logic [7:0]       m_axi_tx_arlen,
    output logic             m_axi_tx_arvalid,
    input  wire              m_axi_tx_arready,
    input  wire  [DataW-1:0] m_axi_tx_rdata,
    input  wire  [1:0]       m_axi_tx_rresp,
    input  wire              m_axi_tx_rlast,
    input  wire              m_axi_tx_rvalid,
    output logic             m_axi_tx_rready,
    output logic [63:0]      m_axi_rx_awaddr,
    output logic [7:0]       m_axi_rx_awlen,
    output logic             m_axi_rx_awvalid,
    input  wire              m_axi_rx_awready,
    output logic [DataW-1:0] m_axi_rx_wdata,
    output logic [KeepW-1:0] m_axi_rx_wstrb,
    output logic             m_axi_rx_wlast,
    output logic             m_axi_rx_wvalid,
    input  wire              m_axi_rx_wready,
    input  wire  [1:0]       m_axi_rx_bresp,
    input  wire              m_axi_rx_bvalid,
    output logic             m_axi_rx_bready,

    // MAC. The receiving side cannot be held back.
    output logic [DataW-1:0] m_axis_tdata,
    output logic [KeepW-1:0] m_axis_tkeep,
    output logic             m_axis_tlast,
    output logic             m_axis_tvalid,
    input  wire              m_axis_tready,
    input  wire  [DataW-1:0] s_axis_tdata,
    input  wire  [KeepW-1:0] s_axis_tkeep,
    input  wire              s_axis_tlast,
    input  wire              s_axis_tvalid,
    input  wire              s_axis_tuser,

    output cnt_port_t cnt_o,
    output logic      idle_o
);

  // ---- control ----------------------------------------------------------------------------------
  logic ctl_job_valid, ctl_job_ready, job_valid, job_ready;
  tx_job_t job;
  logic ackin_valid, ackin_ready, ackout_valid, ackout_ready;
  ack_t ackin, ackout;
  logic ctl_idle, rx_idle;
  // a payload could not be read: the packet has its number but never left, its connection must fail
  logic err_valid;
  conn_t err_conn;

  weft_tx_ctl #(
      .Port(Port),
      .NumPorts(NumPorts),
      .NumConns(NumConns),
      .PathsPerPort(PathsPerPort),
      .PoolDepth(PoolDepth)
  ) u_ctl (
      .clk_i,
      .rst_i,
      .cfg_i,
      .now_i,
      .avail_valid_i,
      .avail_ready_o,
      .avail_conn_i,
      .pull_valid_o,
      .pull_ready_i,
      .pull_conn_o,
      .pull_rsp_valid_i,
      .pull_rsp_i,
      .settle_valid_o,
      .settle_ready_i,
      .settle_o,
      .fail_valid_o,
      .fail_ready_i,
      .fail_o,
      .err_valid_i(err_valid),
      .err_conn_i(err_conn),
      .ack_valid_i(ackin_valid),
      .ack_ready_o(ackin_ready),
      .ack_i(ackin),
      .job_valid_o(ctl_job_valid),
      .job_ready_i(ctl_job_ready),
      .job_o(job),
      .cnt_o(cnt_o.ctl),
      .idle_o(ctl_idle)
  );

  // ---- how far control may run ahead ------------------------------------------------------------
  // The payload bytes of every job handed over wait in a queue until its frame has been built or
  // given up.
  localparam int unsigned AheadW = $clog2(AheadBytes + 2 * (MAX_PAYLOAD + WIN_OVERHEAD) + 1);
  logic [AheadW-1:0] ahead_q, ahead_add_q, ahead_sub_q;
  logic ahead_full_q, len_valid;
  plen_t len;
  tx_cnt_t tx_cnt;
  wire job_taken = job_valid && job_ready;
  wire built = tx_cnt.data || tx_cnt.probes || tx_cnt.mem_err;
  logic len_ready;
  assign job_valid = ctl_job_valid && !ahead_full_q && len_ready;
  assign ctl_job_ready = job_ready && !ahead_full_q && len_ready;

  weft_fifo #(
      .data_t  (plen_t),
      .Depth   (256),
      .BlockRam(1'b0)
  ) u_ahead (
      .clk_i,
      .rst_i,
      .s_valid_i(job_taken),
      .s_ready_o(len_ready),
      .s_data_i (job.len),
      .m_valid_o(len_valid),
      .m_ready_i(built),
      .m_data_o (len),
      .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      ahead_q <= '0;
      ahead_add_q <= '0;
      ahead_sub_q <= '0;
      ahead_full_q <= 1'b0;
    end else begin
      ahead_add_q <= job_taken ? AheadW'(job.len) + AheadW'(WIN_OVERHEAD) : '0;
      ahead_sub_q <= built ? AheadW'(len) + AheadW'(WIN_OVERHEAD) : '0;
      ahead_q <= ahead_q + ahead_add_q - ahead_sub_q;
      // Jobs cannot follow each other in consecutive cycles, so two more at most slip through.
      ahead_full_q <= ahead_q >= AheadW'(AheadBytes);
    end
  end
  `WEFT_IMPLIES(BuiltWasHandedOver, built, len_valid);
  `WEFT_ASSERT(AheadBounded, ahead_q <= AheadW'(AheadBytes + 2 * (MAX_PAYLOAD + WIN_OVERHEAD)));

  // ---- frames out -------------------------------------------------------------------------------
  weft_tx_path #(
      .Port(Port),
      .NumPorts(NumPorts),
      .NumConns(NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_tx (
      .clk_i,
      .rst_i,
      .cfg_i,
      .now_i,
      .job_valid_i(job_valid),
      .job_ready_o(job_ready),
      .job_i(job),
      .ack_valid_i(ackout_valid),
      .ack_ready_o(ackout_ready),
      .ack_i(ackout),
      .m_axi_araddr(m_axi_tx_araddr),
      .m_axi_arlen(m_axi_tx_arlen),
      .m_axi_arvalid(m_axi_tx_arvalid),
      .m_axi_arready(m_axi_tx_arready),
      .m_axi_rdata(m_axi_tx_rdata),
      .m_axi_rresp(m_axi_tx_rresp),
      .m_axi_rlast(m_axi_tx_rlast),
      .m_axi_rvalid(m_axi_tx_rvalid),
      .m_axi_rready(m_axi_tx_rready),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tlast,
      .m_axis_tvalid,
      .m_axis_tready,
      .err_valid_o(err_valid),
      .err_conn_o(err_conn),
      .cnt_o(tx_cnt)
  );
  assign cnt_o.tx = tx_cnt;

  // ---- frames in --------------------------------------------------------------------------------
  weft_rx_path #(
      .Port(Port),
      .NumPorts(NumPorts),
      .NumConns(NumConns),
      .PathsPerPort(PathsPerPort),
      .NumRegions(NumRegions),
      .NumSems(NumSems)
  ) u_rx (
      .clk_i,
      .rst_i,
      .cfg_i,
      .now_i,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tlast,
      .s_axis_tvalid,
      .s_axis_tuser,
      .m_axi_awaddr(m_axi_rx_awaddr),
      .m_axi_awlen(m_axi_rx_awlen),
      .m_axi_awvalid(m_axi_rx_awvalid),
      .m_axi_awready(m_axi_rx_awready),
      .m_axi_wdata(m_axi_rx_wdata),
      .m_axi_wstrb(m_axi_rx_wstrb),
      .m_axi_wlast(m_axi_rx_wlast),
      .m_axi_wvalid(m_axi_rx_wvalid),
      .m_axi_wready(m_axi_rx_wready),
      .m_axi_bresp(m_axi_rx_bresp),
      .m_axi_bvalid(m_axi_rx_bvalid),
      .m_axi_bready(m_axi_rx_bready),
      .commit_valid_o,
      .commit_ready_i,
      .commit_o,
      .verdict_valid_i,
      .verdict_i,
      .fail_valid_i(rx_fail_valid_i),
      .fail_i(rx_fail_i),
      .ack_valid_o(ackout_valid),
      .ack_ready_i(ackout_ready),
      .ack_o(ackout),
      .ackin_valid_o(ackin_valid),
      .ackin_ready_i(ackin_ready),
      .ackin_o(ackin),
      .drop_o(cnt_o.drop),
      .cnt_o(cnt_o.rx),
      .idle_o(rx_idle)
  );

  assign idle_o = ctl_idle && rx_idle && !len_valid && !m_axis_tvalid;
endmodule
`default_nettype wire
