// SPDX-License-Identifier: Apache-2.0
//
// Receive path of one port: frames in, to memory.
//
//   parse -> header, ICRC, claim, region -> verdict -> AXI write -> core's verdict -> ack due
//
// In: AXI-Stream without ready, a beat a cycle for ever, frames of any size back to back. Out: an
// AXI4 write master (aligned bursts within 4 KB, one ID), packets in memory for the core, acks to
// build for the transmit path, received acks for its control. Nothing of a frame refused here
// reaches memory; no ack covers a packet whose write is not answered or that the core did not
// count. Every frame ends in exactly one of: cnt_o.data, .probes, .acks, or one pulse of drop_o
// (one reason a cycle). What finds no room is dropped (OVERFLOW).
//
// NumConns, PathsPerPort, NumRegions and Words are powers of two, 2 or more. docs/rx.md.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_path
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter int unsigned Port         = 0,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned NumRegions   = 64,
    parameter int unsigned NumSems      = 256,
    parameter int unsigned Words        = 512,  // packet buffer, 64 bytes each
    parameter int unsigned QueueDepth   = 512   // packets waiting for their write's response
) (
    input  wire                   clk_i,
    input  wire                   rst_i,
    input  wire cfg_t             cfg_i,
    input  wire  [31:0]           now_i,
    // MAC: cannot be held; tuser in the last beat flags a bad frame
    input  wire  [DataW-1:0]      s_axis_tdata,
    input  wire  [KeepW-1:0]      s_axis_tkeep,
    input  wire                   s_axis_tvalid,
    input  wire                   s_axis_tlast,
    input  wire                   s_axis_tuser,
    // Memory
    output addr_t                 m_axi_awaddr,
    output logic [7:0]            m_axi_awlen,
    output logic                  m_axi_awvalid,
    input  wire                   m_axi_awready,
    output logic [DataW-1:0]      m_axi_wdata,
    output logic [KeepW-1:0]      m_axi_wstrb,
    output logic                  m_axi_wlast,
    output logic                  m_axi_wvalid,
    input  wire                   m_axi_wready,
    input  wire  [1:0]            m_axi_bresp,
    input  wire                   m_axi_bvalid,
    output logic                  m_axi_bready,
    // To the core: a data packet is in memory, or its write failed. In order of arrival; an offer
    // is taken back when its connection is configured anew.
    output logic                  commit_valid_o,
    input  wire                   commit_ready_i,
    output rx_commit_t            commit_o,
    // The core's verdicts, one for each packet it took, in order, later than that cycle; and a
    // pulse for a connection that it has failed, not later than the verdict that tells.
    input  wire                   verdict_valid_i,
    input  wire rx_verdict_t      verdict_i,
    input  wire                   fail_valid_i,
    input  wire conn_fail_t       fail_i,
    // To weft_tx_path: an ack to build
    output logic                  ack_valid_o,
    input  wire                   ack_ready_i,
    output ack_t                  ack_o,
    // To weft_tx_ctl: an ack that came; history filled up with ones
    output logic                  ackin_valid_o,
    input  wire                   ackin_ready_i,
    output ack_t                  ackin_o,
    // Counters: at most one drop a cycle; events
    output logic [DropCount-1:0]  drop_o,
    output rx_evt_t               cnt_o,
    output logic                  idle_o       // no frame inside, no ack owed, nothing changes
);

  localparam int unsigned ConnW = $clog2(NumConns);
  localparam int unsigned PathW = $clog2(PathsPerPort);
  localparam int unsigned IdxW = ConnW + PathW;
  localparam int unsigned PtrW = $clog2(Words) + 1;
  // acks of many peers come in bursts, faster than they can be settled
  localparam int unsigned AckDepth = 256;
  localparam int unsigned AckMargin = 8;

  if (NumConns < 2 || NumConns != 2 ** ConnW) begin : gen_bad_conns
    $error("weft_rx_path: NumConns must be a power of two, 2 or more");
  end
  if (PathsPerPort < 2 || PathsPerPort != 2 ** PathW) begin : gen_bad_paths
    $error("weft_rx_path: PathsPerPort must be a power of two, 2 or more");
  end
  if (NumRegions < 2 || NumRegions != 2 ** $clog2(NumRegions)) begin : gen_bad_regions
    $error("weft_rx_path: NumRegions must be a power of two, 2 or more");
  end

  // ---- configuration of connections
  logic [NumConns-1:0] conn_valid;
  logic info_we;
  logic [ConnW-1:0] info_idx;
  rx_conn_t info;
  logic claim_init, claim_init_ready, state_init, state_init_ready, due_init, due_init_ready;
  logic init_busy;
  logic [IdxW-1:0] init_idx;
  psn_t init_psn;
  weft_rx_init #(
      .Port        (Port),
      .NumPorts    (NumPorts),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_init (
      .clk_i,
      .rst_i,
      .cfg_i,
      .conn_valid_o (conn_valid),
      .info_we_o    (info_we),
      .info_idx_o   (info_idx),
      .info_o       (info),
      .claim_valid_o(claim_init),
      .claim_ready_i(claim_init_ready),
      .state_valid_o(state_init),
      .state_ready_i(state_init_ready),
      .due_valid_o  (due_init),
      .due_ready_i  (due_init_ready),
      .idx_o        (init_idx),
      .psn_o        (init_psn),
      .busy_o       (init_busy)
  );

  // ---- frames
  beat_t beat;
  logic head_valid, mac_error;
  head_t head;
  flen_t len;
  weft_rx_parse u_parse (
      .clk_i,
      .rst_i,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tlast,
      .s_axis_tuser,
      .beat_o      (beat),
      .head_valid_o(head_valid),
      .head_o      (head),
      .len_o       (len),
      .mac_error_o (mac_error)
  );

  logic icrc_good;
  weft_rx_icrc u_icrc (
      .clk_i,
      .rst_i,
      .beat_i(beat),
      .len_i (len),
      .good_o(icrc_good)
  );

  logic overflow, judged, to_read, re, last_word;
  logic [PtrW-1:0] start, stop, judged_end, raddr;
  logic [DataW-1:0] rdata;
  weft_rx_buffer #(
      .Words(Words)
  ) u_buffer (
      .clk_i,
      .rst_i,
      .beat_i      (beat),
      .overflow_o  (overflow),
      .start_o     (start),
      .end_o       (stop),
      .judged_i    (judged),
      .judged_end_i(judged_end),
      .to_read_i   (to_read),
      .re_i        (re),
      .raddr_i     (raddr),
      .last_i      (last_word),
      .rdata_o     (rdata)
  );

  // ---- verdict
  logic up, queue_full, pending_valid, acked, refused, mark;
  logic [ConnW-1:0] status_conn;
  err_e status;
  logic [IdxW-1:0] mark_idx;
  rx_pending_t pending;
  addr_t va;
  logic [PtrW-1:0] start5;
  ack_t ack_in;
  drop_e refusal;
  logic ack_full_q;
  weft_rx_check #(
      .Port        (Port),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort),
      .NumRegions  (NumRegions),
      .NumSems     (NumSems),
      .PtrW        (PtrW)
  ) u_check (
      .clk_i,
      .rst_i,
      .cfg_i,
      .conn_valid_i   (conn_valid),
      .info_we_i      (info_we),
      .info_idx_i     (info_idx),
      .info_i         (info),
      .init_valid_i   (claim_init),
      .init_ready_o   (claim_init_ready),
      .init_idx_i     (init_idx),
      .init_psn_i     (init_psn),
      .head_valid_i   (head_valid),
      .head_i         (head),
      .len_i          (len),
      .mac_error_i    (mac_error),
      .data_full_i    (overflow || queue_full || !up),
      .ack_full_i     (ack_full_q),
      .start_i        (start),
      .end_i          (stop),
      .icrc_good_i    (icrc_good),
      .done_o         (judged),
      .end_o          (judged_end),
      .pending_valid_o(pending_valid),
      .pending_o      (pending),
      .va_o           (va),
      .start_o        (start5),
      .ack_valid_o    (acked),
      .ack_o          (ack_in),
      .drop_valid_o   (refused),
      .drop_o         (refusal),
      .mark_valid_o   (mark),
      .mark_idx_o     (mark_idx),
      .fail_valid_i,
      .fail_i,
      .status_conn_i  (status_conn),
      .status_o       (status)
  );
  assign to_read = pending_valid && pending.bursts != '0;

  // ---- received acks
  logic ackin_fits;
  logic [$clog2(AckDepth+1)-1:0] ackin_count;
  weft_fifo #(
      .data_t(ack_t),
      .Depth (AckDepth)
  ) u_ackin (
      .clk_i,
      .rst_i,
      .s_valid_i(acked),
      .s_ready_o(ackin_fits),
      .s_data_i (ack_in),
      .m_valid_o(ackin_valid_o),
      .m_ready_i(ackin_ready_i),
      .m_data_o (ackin_o),
      .count_o  (ackin_count)
  );
  always_ff @(posedge clk_i) ack_full_q <= ackin_count >= $bits(ackin_count)'(AckDepth - AckMargin);

  // ---- to memory
  weft_rx_write #(
      .Words(Words)
  ) u_write (
      .clk_i,
      .rst_i,
      .valid_i (to_read),
      .va_i    (va),
      .len_i   (pending.len),
      .start_i (start5),
      .re_o    (re),
      .raddr_o (raddr),
      .last_o  (last_word),
      .rdata_i (rdata),
      .m_axi_awaddr,
      .m_axi_awlen,
      .m_axi_awvalid,
      .m_axi_awready,
      .m_axi_wdata,
      .m_axi_wstrb,
      .m_axi_wlast,
      .m_axi_wvalid,
      .m_axi_wready
  );

  // ---- commit and acks
  logic late_drop, due, due_now, due_again, read, read_ready;
  logic waiting, held;
  drop_e late_reason;
  logic [IdxW-1:0] due_idx, read_idx;
  rx_state_t read_state;
  logic evt_data, evt_probe, evt_ce, evt_gap, evt_sent, evt_again;
  logic [7:0] evt_lost;
  plen_t evt_bytes;
  weft_rx_commit #(
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort),
      .QueueDepth  (QueueDepth)
  ) u_commit (
      .clk_i,
      .rst_i,
      .conn_valid_i   (conn_valid),
      .info_we_i      (info_we),
      .info_idx_i     (info_idx),
      .info_i         (info),
      .init_valid_i   (state_init),
      .init_ready_o   (state_init_ready),
      .init_idx_i     (init_idx),
      .init_psn_i     (init_psn),
      .valid_i        (pending_valid),
      .pending_i      (pending),
      .full_o         (queue_full),
      .waiting_o      (waiting),
      .m_axi_bvalid,
      .m_axi_bready,
      .m_axi_bresp,
      .commit_valid_o,
      .commit_ready_i,
      .commit_o,
      .verdict_valid_i,
      .verdict_i,
      .drop_valid_o   (late_drop),
      .drop_ready_i   (!refused),
      .drop_o         (late_reason),
      .due_valid_o    (due),
      .due_now_o      (due_now),
      .due_again_o    (due_again),
      .due_idx_o      (due_idx),
      .read_i         (read),
      .read_ready_o   (read_ready),
      .read_idx_i     (read_idx),
      .read_state_o   (read_state),
      .evt_data_o     (evt_data),
      .evt_probe_o    (evt_probe),
      .evt_ce_o       (evt_ce),
      .evt_gap_o      (evt_gap),
      .evt_lost_o     (evt_lost),
      .evt_bytes_o    (evt_bytes)
  );

  logic owed, pop, pop_ready, popped, popped_again, popped_void, evt_void;
  logic [IdxW-1:0] owed_idx;
  weft_rx_due #(
      .NumPaths(NumConns * PathsPerPort)
  ) u_due (
      .clk_i,
      .rst_i,
      .cfg_i,
      .now_i,
      .up_o          (up),
      .commit_i      (due),
      .commit_now_i  (due_now),
      .commit_again_i(due_again),
      .commit_idx_i  (due_idx),
      .mark_i        (mark),
      .mark_idx_i    (mark_idx),
      .forget_i      (due_init),
      .forget_ready_o(due_init_ready),
      .forget_idx_i  (init_idx),
      .owed_o        (owed),
      .owed_idx_o    (owed_idx),
      .pop_i         (pop),
      .pop_ready_o   (pop_ready),
      .popped_o      (popped),
      .popped_again_o(popped_again),
      .popped_void_o (popped_void),
      .held_o        (held)
  );

  weft_rx_ack #(
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_ack (
      .clk_i,
      .rst_i,
      .conn_valid_i  (conn_valid),
      .info_we_i     (info_we),
      .info_idx_i    (info_idx),
      .info_i        (info),
      .owed_i        (owed),
      .owed_idx_i    (owed_idx),
      .pop_o         (pop),
      .pop_ready_i   (pop_ready),
      .popped_i      (popped),
      .popped_again_i(popped_again),
      .popped_void_i (popped_void),
      .read_o        (read),
      .read_ready_i  (read_ready),
      .read_idx_o    (read_idx),
      .read_state_i  (read_state),
      .status_conn_o (status_conn),
      .status_i      (status),
      .ack_valid_o,
      .ack_ready_i,
      .ack_o,
      .evt_sent_o    (evt_sent),
      .evt_again_o   (evt_again),
      .evt_void_o    (evt_void)
  );

  // ---- counters: the verdict's drop goes first, a late one waits for a cycle without
  logic [DropCount-1:0] drop_q;
  rx_evt_t cnt_q;
  always_ff @(posedge clk_i) begin
    drop_q <= '0;
    if (!rst_i && refused) drop_q[refusal] <= 1'b1;
    else if (!rst_i && late_drop) drop_q[late_reason] <= 1'b1;
    cnt_q.frames     <= judged;
    cnt_q.data       <= evt_data;
    cnt_q.probes     <= evt_probe;
    cnt_q.acks       <= acked;
    cnt_q.ce         <= evt_ce;
    cnt_q.gaps       <= evt_gap;
    cnt_q.lost       <= evt_lost;
    cnt_q.bytes      <= evt_bytes;
    cnt_q.acks_sent  <= evt_sent;
    cnt_q.acks_again <= evt_again;
    cnt_q.acks_void  <= evt_void;
    if (rst_i) cnt_q <= '0;
  end
  assign drop_o = drop_q;
  assign cnt_o  = cnt_q;

  // ---- rest: what takes its time has ended, and what takes a few cycles has had them
  localparam int unsigned SettleW = 6;  // longer than a frame's way through parser and verdict
  logic [SettleW-1:0] settle_q;
  always_ff @(posedge clk_i) begin
    if (rst_i || cfg_i.valid || s_axis_tvalid || init_busy || waiting || late_drop
        || held || owed || ack_valid_o || ackin_valid_o || !up) begin
      settle_q <= '0;
    end else if (settle_q != '1) begin
      settle_q <= settle_q + 1'b1;
    end
  end
  assign idle_o = settle_q == '1;

  `WEFT_IMPLIES(AckFits, acked, ackin_fits);
  `WEFT_ASSERT(OneDrop, $onehot0(drop_o));

endmodule
`default_nettype wire
