// SPDX-License-Identifier: Apache-2.0
//
// Near-memory reducer: dst = source 0 op source 1 op ..., 1 to 64 sources, on 1024-bit beats.
//
// One beat (128 bytes) of result a cycle for two sources of one type, K - 1 cycles for K, whatever
// the alignments; weft_math_pkg and weft_nmc_check say which types and operations are served.
// Requests and completions by valid/ready; completions come in order, after the last write
// response. Requests overlap: the reads of the next ones run while the previous drains, so a
// request must not read what an uncompleted one writes (the engine's dependencies see to that). A
// source may equal dst, or lie above it and overlap. A memory error ends the request with
// ErrMemError; its bursts are finished, without strobes from the error on. Checks no regions.
// Docs: docs/nmc.md.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_nmc_pkg::*;
  import weft_math_pkg::ExactNone, weft_math_pkg::ExactAll;
#(
    parameter int unsigned ReadDepth = 512,  // beats a source may have in flight and waiting
    parameter int unsigned WriteDepth = 32,  // beats between lanes and write channel
    parameter int unsigned QueueDepth = 8,   // requests waiting in front
    parameter bit          Products   = 1'b1,  // PROD, AVG and PREMUL_SUM
    parameter bit          Blocks     = 1'b1,  // MX types
    parameter int unsigned Exact      = ExactNone,  // weft_math_pkg: exact sums
    // Of floats, for each 32-bit word, 1 or 2: with 2 PREMUL_SUM is as fast as SUM.
    parameter int unsigned Multipliers = 1,
    parameter bit          Sleep      = 1'b1   // see weft_clk_gate: faster simulation, else nothing
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    input  wire                  req_valid_i,
    output logic                 req_ready_o,
    input  wire nmc_req_t        req_i,
    output logic                 cpl_valid_o,
    input  wire                  cpl_ready_i,
    output cpl_t                 cpl_o,
    output logic     [    31:0]  cpl_cycles_o,  // that the request took
    // Source 0.
    output logic     [    63:0]  m_axi_a_araddr,
    output logic     [     7:0]  m_axi_a_arlen,
    output logic                 m_axi_a_arvalid,
    input  wire                  m_axi_a_arready,
    input  wire      [NmcW-1:0]  m_axi_a_rdata,
    input  wire      [     1:0]  m_axi_a_rresp,
    input  wire                  m_axi_a_rlast,
    input  wire                  m_axi_a_rvalid,
    output logic                 m_axi_a_rready,
    // Source 1.
    output logic     [    63:0]  m_axi_b_araddr,
    output logic     [     7:0]  m_axi_b_arlen,
    output logic                 m_axi_b_arvalid,
    input  wire                  m_axi_b_arready,
    input  wire      [NmcW-1:0]  m_axi_b_rdata,
    input  wire      [     1:0]  m_axi_b_rresp,
    input  wire                  m_axi_b_rlast,
    input  wire                  m_axi_b_rvalid,
    output logic                 m_axi_b_rready,
    // Destination.
    output logic     [    63:0]  m_axi_w_awaddr,
    output logic     [     7:0]  m_axi_w_awlen,
    output logic                 m_axi_w_awvalid,
    input  wire                  m_axi_w_awready,
    output logic     [NmcW-1:0]  m_axi_w_wdata,
    output logic [NmcBytes-1:0]  m_axi_w_wstrb,
    output logic                 m_axi_w_wlast,
    output logic                 m_axi_w_wvalid,
    input  wire                  m_axi_w_wready,
    input  wire      [     1:0]  m_axi_w_bresp,
    input  wire                  m_axi_w_bvalid,
    output logic                 m_axi_w_bready,
    // Event pulses.
    output nmc_cnt_t             cnt_o
);

  if (Exact > ExactAll) begin : gen_bad_exact
    $error("weft_nmc: Exact must be 0, 1 or 2");
  end
  if (Multipliers != 1 && Multipliers != 2) begin : gen_bad_multipliers
    $error("weft_nmc: Multipliers must be 1 or 2");
  end
  if (Blocks && !Products) begin : gen_bad_blocks
    $error("weft_nmc: Blocks needs Products");
  end

  // ---- requests ---------------------------------------------------------------------------------
  // Only what is below this queue sleeps; a request wakes it the cycle before it is taken.
  logic clk;

  weft_clk_gate #(
      .Enable(Sleep)
  ) u_clk (
      .clk_i,
      .rst_i,
      .busy_i(cnt_o.busy),
      .clk_o (clk)
  );

  logic     req_valid, req_ready;
  nmc_req_t req;

  weft_fifo #(
      .data_t(nmc_req_t),
      .Depth (QueueDepth)
  ) u_requests (
      .clk_i,
      .rst_i,
      .s_valid_i(req_valid_i),
      .s_ready_o(req_ready_o),
      .s_data_i (req_i),
      .m_valid_o(req_valid),
      .m_ready_i(req_ready),
      .m_data_o (req),
      .count_o  ()
  );

  logic           job_valid, job_ready, job_work, decode_busy;
  nmc_job_t       job;
  nmc_write_job_t job_write;
  nmc_done_job_t  job_done;

  weft_nmc_decode #(
      .Products(Products),
      .Blocks  (Blocks),
      .Exact   (Exact),
      .Multipliers(Multipliers)
  ) u_decode (
      .clk_i(clk),
      .rst_i,
      .req_valid_i(req_valid),
      .req_ready_o(req_ready),
      .req_i      (req),
      .job_valid_o(job_valid),
      .job_ready_i(job_ready),
      .work_o     (job_work),
      .job_o      (job),
      .write_o    (job_write),
      .done_o     (job_done),
      .busy_o     (decode_busy)
  );

  // A job is known to the write engine and the tracker before its first pass, and stays in the
  // decoder up to its last one.
  logic done_ready, write_ready, split_done;
  logic known_q;
  wire  give = job_valid && !known_q && done_ready;
  wire  give_work = give && job_work;

  assign job_ready = job_work ? split_done : give;

  always_ff @(posedge clk_i) begin
    if (rst_i) known_q <= 1'b0;
    else known_q <= (known_q || give_work) && !job_ready;
  end

  logic          pass_valid;
  nmc_pass_t     pass;
  nmc_read_job_t pass_read_a, pass_read_b;
  logic [2:0]    takers_ready;
  wire           pass_give = pass_valid && takers_ready == '1;

  weft_nmc_pass u_pass (
      .clk_i(clk),
      .rst_i,
      .job_valid_i (job_valid && job_work && (known_q || done_ready)),
      .job_ready_o (split_done),
      .job_i       (job),
      .pass_valid_o(pass_valid),
      .pass_ready_i(takers_ready == '1),
      .pass_o      (pass),
      .read_a_o    (pass_read_a),
      .read_b_o    (pass_read_b)
  );

  // ---- sources ----------------------------------------------------------------------------------
  logic            a_valid, a_ready, a_err, b_valid, b_ready, b_err;
  logic [NmcW-1:0] a_beat, b_beat, a_window, b_window;

  weft_nmc_read #(
      .Depth(ReadDepth)
  ) u_read_a (
      .clk_i(clk),
      .rst_i,
      .job_valid_i  (pass_give && pass.a.on),
      .job_ready_o  (takers_ready[0]),
      .job_i        (pass_read_a),
      .beat_valid_o (a_valid),
      .beat_ready_i (a_ready),
      .beat_data_o  (a_beat),
      .beat_err_o   (a_err),
      .m_axi_araddr (m_axi_a_araddr),
      .m_axi_arlen  (m_axi_a_arlen),
      .m_axi_arvalid(m_axi_a_arvalid),
      .m_axi_arready(m_axi_a_arready),
      .m_axi_rdata  (m_axi_a_rdata),
      .m_axi_rresp  (m_axi_a_rresp),
      .m_axi_rlast  (m_axi_a_rlast),
      .m_axi_rvalid (m_axi_a_rvalid),
      .m_axi_rready (m_axi_a_rready)
  );

  weft_nmc_read #(
      .Depth(ReadDepth)
  ) u_read_b (
      .clk_i(clk),
      .rst_i,
      .job_valid_i  (pass_give && pass.b.on),
      .job_ready_o  (takers_ready[1]),
      .job_i        (pass_read_b),
      .beat_valid_o (b_valid),
      .beat_ready_i (b_ready),
      .beat_data_o  (b_beat),
      .beat_err_o   (b_err),
      .m_axi_araddr (m_axi_b_araddr),
      .m_axi_arlen  (m_axi_b_arlen),
      .m_axi_arvalid(m_axi_b_arvalid),
      .m_axi_arready(m_axi_b_arready),
      .m_axi_rdata  (m_axi_b_rdata),
      .m_axi_rresp  (m_axi_b_rresp),
      .m_axi_rlast  (m_axi_b_rlast),
      .m_axi_rvalid (m_axi_b_rvalid),
      .m_axi_rready (m_axi_b_rready)
  );

  // ---- datapath: sequencer -> rotators (2 cycles) -> lanes -> gather ----------------------------
  logic              emit_a, emit_b, use_acc, use_kept, at_edge, lane_valid, credit;
  offs_t             at_a, at_b, lo, hi;
  nmc_layout_t       layout;
  logic [ChunkW-1:0] acc_index;
  logic              look;  // a step was taken one cycle ago
  lane_cmd_t         lane_cmd;
  lane_tag_t         lane_tag, result_tag;
  logic [63:0]       lane_scalar;

  localparam int unsigned Words = NmcW / 32;
  logic [Words-1:0]   wide_live, half_live;
  logic [2*Words-1:0] byte_live;
  logic               result_valid, beat_valid, beat_err, beat_ends;
  logic [NmcW-1:0]    wide, half, beat_data;
  logic [2*NmcW-1:0]  bytes;
  mx_scale_t          scale;
  logic [NmcW-1:0]    window;
  float_flags_t       result_flags, job_flags, cpl_flags;
  logic               plain_valid, plain_err, plain_ends, mx_valid, mx_err, mx_ends;
  logic [NmcW-1:0]    plain_data, mx_data;
  float_flags_t       plain_flags, mx_flags;

  weft_nmc_seq #(
      .Credits(WriteDepth)
  ) u_seq (
      .clk_i(clk),
      .rst_i,
      .pass_valid_i (pass_give),
      .pass_ready_o (takers_ready[2]),
      .pass_i       (pass),
      .a_valid_i    (a_valid),
      .a_ready_o    (a_ready),
      .a_err_i      (a_err),
      .b_valid_i    (b_valid),
      .b_ready_o    (b_ready),
      .b_err_i      (b_err),
      .credit_i     (credit),
      .emit_a_o     (emit_a),
      .emit_b_o     (emit_b),
      .at_a_o       (at_a),
      .at_b_o       (at_b),
      .look_o       (look),
      .layout_o     (layout),
      .acc_index_o  (acc_index),
      .use_acc_o    (use_acc),
      .use_kept_o   (use_kept),
      .edge_o       (at_edge),
      .lo_o         (lo),
      .hi_o         (hi),
      .lane_valid_o (lane_valid),
      .lane_cmd_o   (lane_cmd),
      .lane_tag_o   (lane_tag),
      .lane_scalar_o(lane_scalar),
      .active_o     (cnt_o.active),
      .stall_read_o (cnt_o.stall_read),
      .stall_write_o(cnt_o.stall_write)
  );

  weft_nmc_rot u_rot_a (
      .clk_i(clk),
      .rst_i,
      .push_i  (a_ready),
      .emit_i  (emit_a),
      .at_i    (at_a),
      .beat_i  (a_beat),
      .window_o(a_window)
  );

  weft_nmc_rot u_rot_b (
      .clk_i(clk),
      .rst_i,
      .push_i  (b_ready),
      .emit_i  (emit_b),
      .at_i    (at_b),
      .beat_i  (b_beat),
      .window_o(b_window)
  );

  weft_nmc_live u_live (
      .clk_i(clk),
      .valid_i (look),
      .layout_i(layout),
      .edge_i  (at_edge),
      .lo_i    (lo),
      .hi_i    (hi),
      .wide_o  (wide_live),
      .half_o  (half_live),
      .byte_o  (byte_live)
  );

  weft_nmc_lanes #(
      .Products(Products),
      .Blocks  (Blocks),
      .Exact   (Exact),
      .Multipliers(Multipliers)
  ) u_lanes (
      .clk_i(clk),
      .rst_i,
      .use_acc_i  (use_acc),
      .use_kept_i (use_kept),
      .layout_i   (layout),
      .index_i    (acc_index),
      .valid_i    (lane_valid),
      .cmd_i      (lane_cmd),
      .tag_i      (lane_tag),
      .scalar_i   (lane_scalar),
      .wide_live_i(wide_live),
      .half_live_i(half_live),
      .byte_live_i(byte_live),
      .a_i        (a_window),
      .b_i        (b_window),
      .valid_o    (result_valid),
      .tag_o      (result_tag),
      .wide_o     (wide),
      .half_o     (half),
      .byte_o     (bytes),
      .scale_o    (scale),
      .flags_o    (result_flags)
  );

  // Results of jobs with blocks go their own way to the same beats, in order; see weft_nmc_seq.
  wire mx_result = result_valid && (result_tag.layout.from_block || result_tag.layout.to_block);
  logic mx_result_q;  // the flags now are of such a one
  always_ff @(posedge clk_i) mx_result_q <= mx_result;

  weft_nmc_gather u_gather (
      .clk_i(clk),
      .rst_i,
      .valid_i     (result_valid && !mx_result),
      .tag_i       (result_tag),
      .wide_i      (wide),
      .half_i      (half),
      .byte_i      (bytes),
      .flags_i     (mx_result_q ? '0 : result_flags),
      .window_o    (window),
      .beat_valid_o(plain_valid),
      .beat_data_o (plain_data),
      .beat_err_o  (plain_err),
      .ends_o      (plain_ends),
      .flags_o     (plain_flags)
  );

  if (Blocks) begin : gen_mx
    weft_nmc_mx u_mx (
        .clk_i(clk),
        .rst_i,
        .valid_i     (mx_result),
        .tag_i       (result_tag),
        .wide_i      (wide),
        .window_i    (window),
        .scale_i     (scale),
        .flags_i     (result_flags),
        .beat_valid_o(mx_valid),
        .beat_data_o (mx_data),
        .beat_err_o  (mx_err),
        .ends_o      (mx_ends),
        .flags_o     (mx_flags)
    );
  end else begin : gen_no_mx
    wire unused_mx = &{1'b0, scale, window};
    assign {mx_valid, mx_err, mx_ends} = '0;
    assign mx_data  = '0;
    assign mx_flags = '0;
  end

  assign beat_valid = plain_valid || mx_valid;
  assign beat_data  = mx_valid ? mx_data : plain_data;
  assign beat_err   = mx_valid ? mx_err : plain_err;
  assign beat_ends  = plain_ends || mx_ends;
  assign job_flags  = mx_valid ? mx_flags : plain_flags;

  // ---- destination ------------------------------------------------------------------------------
  logic            b_bad, done_busy;
  logic [JobW-1:0] b_bad_idx, note_idx;
  nmc_note_t       note;

  weft_nmc_write #(
      .Depth(WriteDepth)
  ) u_write (
      .clk_i(clk),
      .rst_i,
      .job_valid_i   (give_work),
      .job_ready_o   (write_ready),
      .job_i         (job_write),
      .beat_valid_i  (beat_valid),
      .beat_data_i   (beat_data),
      .beat_err_i    (beat_err),
      .beat_flags_i  (job_flags),
      .credit_o      (credit),
      .b_err_i       (b_bad),
      .b_err_idx_i   (b_bad_idx),
      .note_o        (note),
      .note_idx_o    (note_idx),
      .m_axi_awaddr  (m_axi_w_awaddr),
      .m_axi_awlen   (m_axi_w_awlen),
      .m_axi_awvalid (m_axi_w_awvalid),
      .m_axi_awready (m_axi_w_awready),
      .m_axi_wdata   (m_axi_w_wdata),
      .m_axi_wstrb   (m_axi_w_wstrb),
      .m_axi_wlast   (m_axi_w_wlast),
      .m_axi_wvalid  (m_axi_w_wvalid),
      .m_axi_wready  (m_axi_w_wready)
  );

  weft_nmc_done u_done (
      .clk_i(clk),
      .rst_i,
      .job_valid_i   (job_valid && !known_q),
      .job_ready_o   (done_ready),
      .job_i         (job_done),
      .note_i        (note),
      .note_idx_i    (note_idx),
      .b_err_o       (b_bad),
      .b_err_idx_o   (b_bad_idx),
      .m_axi_bresp   (m_axi_w_bresp),
      .m_axi_bvalid  (m_axi_w_bvalid),
      .m_axi_bready  (m_axi_w_bready),
      .cpl_valid_o,
      .cpl_ready_i,
      .cpl_o,
      .flags_o       (cpl_flags),
      .busy_o        (done_busy)
  );

  // From the later of the request itself and the completion before it to the offer of its own; with
  // the cycles on offer they sum up to `busy`. Stays at 2^32 - 1.
  logic [31:0] cycles_q;
  assign cpl_cycles_o = cycles_q;

  always_ff @(posedge clk_i) begin
    if (rst_i || cnt_o.done) cycles_q <= '0;
    else if (cnt_o.busy && !cpl_valid_o && cycles_q != '1) cycles_q <= cycles_q + 1'b1;
  end

  assign cnt_o.busy    = req_valid || decode_busy || done_busy;
  assign cnt_o.beat    = credit;
  assign cnt_o.request = req_valid_i && req_ready_o;
  assign cnt_o.done    = cpl_valid_o && cpl_ready_i;
  assign cnt_o.error   = cnt_o.done && cpl_o.status != ErrOk;
  assign {cnt_o.invalid, cnt_o.overflow, cnt_o.inexact} = cpl_flags & {3{cnt_o.done}};

  // The write engine has room for every job that the tracker lets in.
  `WEFT_IMPLIES(WriteTakesJobs, give_work, write_ready);
  // Memory has nothing to say to a reducer without requests, which may be asleep.
  `WEFT_IMPLIES(AnswersAreExpected, m_axi_a_rvalid || m_axi_b_rvalid || m_axi_w_bvalid, cnt_o.busy);
  `WEFT_ASSERT(BeatsApart, !(plain_valid && mx_valid));
  `WEFT_IMPLIES(EndsWithBeat, beat_ends, beat_valid);

endmodule

`default_nettype wire
