// SPDX-License-Identifier: Apache-2.0
//
// Near-memory reducer: dst = src0 op src1, or a copy of src0, on 1024-bit beats.
//
// Types fp32, bf16, int32; operations sum, max, min of two sources, copy of one. One beat (128
// bytes) of result a cycle, whatever the alignments. Requests and completions by valid/ready;
// completions come in order, after the last write response. Requests overlap: the reads of the next
// ones run while the previous drains, so a request must not read what an uncompleted one writes
// (the engine's dependencies see to that). src0 or src1 may equal dst, or lie above it and overlap.
// A memory error ends the request with ErrMemError; its bursts are finished, without strobes from
// the error on. Checks no regions. Docs: docs/nmc.md.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter int unsigned ReadDepth = 512,  // beats a source may have in flight and waiting
    parameter int unsigned WriteDepth = 32,  // beats between lanes and write channel
    parameter int unsigned QueueDepth = 8    // requests waiting in front
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    input  wire                  req_valid_i,
    output logic                 req_ready_o,
    input  wire nmc_req_t        req_i,
    output logic                 cpl_valid_o,
    input  wire                  cpl_ready_i,
    output cpl_t                 cpl_o,
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

  // ---- requests ---------------------------------------------------------------------------------
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
  nmc_read_job_t  job_read_a, job_read_b;
  nmc_seq_job_t   job_seq;
  nmc_write_job_t job_write;
  nmc_done_job_t  job_done;
  logic [3:0]     jobs_ready;  // of the engines; never full while the tracker takes a job

  weft_nmc_decode u_decode (
      .clk_i,
      .rst_i,
      .req_valid_i(req_valid),
      .req_ready_o(req_ready),
      .req_i      (req),
      .job_valid_o(job_valid),
      .job_ready_i(job_ready),
      .work_o     (job_work),
      .read_a_o   (job_read_a),
      .read_b_o   (job_read_b),
      .seq_o      (job_seq),
      .write_o    (job_write),
      .done_o     (job_done),
      .busy_o     (decode_busy)
  );

  wire give = job_valid && job_ready;
  wire give_work = give && job_work;

  // ---- sources ----------------------------------------------------------------------------------
  logic            a_valid, a_ready, a_err, b_valid, b_ready, b_err;
  logic [NmcW-1:0] a_beat, b_beat, a_turned, b_turned;

  weft_nmc_read #(
      .Depth(ReadDepth)
  ) u_read_a (
      .clk_i,
      .rst_i,
      .job_valid_i  (give_work),
      .job_ready_o  (jobs_ready[0]),
      .job_i        (job_read_a),
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
      .clk_i,
      .rst_i,
      .job_valid_i  (give_work && job_seq.two),
      .job_ready_o  (jobs_ready[1]),
      .job_i        (job_read_b),
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

  // ---- datapath: sequencer -> rotators (2 cycles) -> lanes --------------------------------------
  logic            step_first, step_emit, lane_valid, lane_err, credit;
  logic            out_valid, out_err;
  logic [NmcW-1:0] out_data;
  offs_t           rot_a, rot_b;
  lane_cmd_t       lane_cmd;

  weft_nmc_seq #(
      .Credits(WriteDepth)
  ) u_seq (
      .clk_i,
      .rst_i,
      .job_valid_i  (give_work),
      .job_ready_o  (jobs_ready[2]),
      .job_i        (job_seq),
      .a_valid_i    (a_valid),
      .a_ready_o    (a_ready),
      .a_err_i      (a_err),
      .b_valid_i    (b_valid),
      .b_ready_o    (b_ready),
      .b_err_i      (b_err),
      .credit_i     (credit),
      .first_o      (step_first),
      .emit_o       (step_emit),
      .rot_a_o      (rot_a),
      .rot_b_o      (rot_b),
      .lane_valid_o (lane_valid),
      .lane_cmd_o   (lane_cmd),
      .lane_err_o   (lane_err),
      .stall_read_o (cnt_o.stall_read),
      .stall_write_o(cnt_o.stall_write)
  );

  weft_nmc_rot u_rot_a (
      .clk_i,
      .push_i (a_ready),
      .emit_i (step_emit),
      .first_i(step_first),
      .rot_i  (rot_a),
      .beat_i (a_beat),
      .beat_o (a_turned)
  );

  weft_nmc_rot u_rot_b (
      .clk_i,
      .push_i (b_ready),
      .emit_i (step_emit),
      .first_i(step_first),
      .rot_i  (rot_b),
      .beat_i (b_beat),
      .beat_o (b_turned)
  );

  weft_nmc_lanes u_lanes (
      .clk_i,
      .rst_i,
      .valid_i(lane_valid),
      .cmd_i  (lane_cmd),
      .err_i  (lane_err),
      .a_i    (a_turned),
      .b_i    (b_turned),
      .valid_o(out_valid),
      .err_o  (out_err),
      .data_o (out_data)
  );

  // ---- destination ------------------------------------------------------------------------------
  logic            b_bad, read_bad, done_busy;
  logic [JobW-1:0] b_bad_idx, read_bad_idx;

  weft_nmc_write #(
      .Depth(WriteDepth)
  ) u_write (
      .clk_i,
      .rst_i,
      .job_valid_i   (give_work),
      .job_ready_o   (jobs_ready[3]),
      .job_i         (job_write),
      .beat_valid_i  (out_valid),
      .beat_data_i   (out_data),
      .beat_err_i    (out_err),
      .credit_o      (credit),
      .b_err_i       (b_bad),
      .b_err_idx_i   (b_bad_idx),
      .read_err_o    (read_bad),
      .read_err_idx_o(read_bad_idx),
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
      .clk_i,
      .rst_i,
      .job_valid_i   (job_valid),
      .job_ready_o   (job_ready),
      .job_i         (job_done),
      .read_err_i    (read_bad),
      .read_err_idx_i(read_bad_idx),
      .b_err_o       (b_bad),
      .b_err_idx_o   (b_bad_idx),
      .m_axi_bresp   (m_axi_w_bresp),
      .m_axi_bvalid  (m_axi_w_bvalid),
      .m_axi_bready  (m_axi_w_bready),
      .cpl_valid_o,
      .cpl_ready_i,
      .cpl_o,
      .busy_o        (done_busy)
  );

  assign cnt_o.busy    = req_valid || decode_busy || done_busy;
  assign cnt_o.beat    = credit;
  assign cnt_o.request = req_valid_i && req_ready_o;
  assign cnt_o.done    = cpl_valid_o && cpl_ready_i;
  assign cnt_o.error   = cnt_o.done && cpl_o.status != ErrOk;

  `WEFT_IMPLIES(EnginesTakeJobs, give_work, jobs_ready == '1);

endmodule

`default_nettype wire
