// SPDX-License-Identifier: Apache-2.0
//
// Sequencer of the reducer: pairs the beats of the sources and sends them through rotators and
// lanes, one destination beat a cycle, job after job without a gap.
//
// Jobs and source beats in by valid/ready. Nothing behind it can be stalled: a step is taken only
// with a credit for one beat of the write buffer (credit_i gives one back). A job whose source sits
// higher in its beat than the destination costs one extra step, which only fills the rotators; a
// job for the integer lanes waits until the last floating-point beat is ahead of it.
// A read error is carried from the step that takes the beat to the job's last beat.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_seq
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Credits = 32
) (
    input  wire                 clk_i,
    input  wire                 rst_i,
    // Jobs of at least one beat.
    input  wire                 job_valid_i,
    output logic                job_ready_o,
    input  wire nmc_seq_job_t   job_i,
    // Source beats; the data itself goes to the rotators.
    input  wire                 a_valid_i,
    output logic                a_ready_o,
    input  wire                 a_err_i,
    input  wire                 b_valid_i,
    output logic                b_ready_o,
    input  wire                 b_err_i,
    // One place of the write buffer has become free.
    input  wire                 credit_i,
    // To the rotators, in the cycle of the step. push is ready && valid.
    output logic                first_o,
    output logic                emit_o,
    output offs_t               rot_a_o,
    output offs_t               rot_b_o,
    // To the lanes, when the rotators show the beat.
    output logic                lane_valid_o,
    output lane_cmd_t           lane_cmd_o,
    output logic                lane_err_o,
    // Why no step is taken; both low when there is no job.
    output logic                stall_read_o,
    output logic                stall_write_o
);

  localparam int unsigned CreditW = $clog2(Credits + 1);
  // Steps that must lie between a floating-point beat and an integer beat.
  localparam int unsigned Skew = FloatLatency - IntLatency;

  logic          job_valid, job_ready;
  nmc_seq_job_t  job;

  weft_fifo #(
      .data_t(nmc_seq_job_t),
      .Depth (NmcJobs)
  ) u_jobs (
      .clk_i,
      .rst_i,
      .s_valid_i(job_valid_i),
      .s_ready_o(job_ready_o),
      .s_data_i (job_i),
      .m_valid_o(job_valid),
      .m_ready_i(job_ready),
      .m_data_o (job),
      .count_o  ()
  );

  // ---- the job at work --------------------------------------------------------------------------
  logic      active_q;
  lane_cmd_t cmd_q;
  logic      two_q;
  offs_t     rot_a_q, rot_b_q;
  beats_t    left_a_q, left_b_q, left_q;
  logic      first_q;  // no step taken yet
  logic      fill_q;   // the next step only fills the rotators
  logic      need_a_q, need_b_q;  // the next step takes a beat of this source
  logic      last_q;   // the next step is the job's last one
  logic      err_q;    // a beat taken for this job carried an error

  logic [CreditW-1:0] credits_q;
  logic               credit_q;  // there is one
  logic [   Skew-1:0] fp_steps_q;  // floating-point beats of the last Skew cycles
  logic               fp_recent_q;

  wire data_ok = (a_valid_i || !need_a_q) && (b_valid_i || !need_b_q);
  wire out_ok = fill_q || (credit_q && (cmd_q.fp || !fp_recent_q));
  wire step = active_q && data_ok && out_ok;
  wire emit = step && !fill_q;
  wire load = job_valid && (!active_q || (step && last_q));
  wire err_now = err_q || (need_a_q && a_err_i) || (need_b_q && b_err_i);
  wire job_fills = job.a.ahead || (job.two && job.b.ahead);
  wire fp_emit = emit && cmd_q.fp;

  assign job_ready     = load;
  assign a_ready_o     = step && need_a_q;
  assign b_ready_o     = step && need_b_q;
  assign first_o       = step && first_q;
  assign emit_o        = emit;
  assign rot_a_o       = rot_a_q;
  assign rot_b_o       = rot_b_q;
  assign stall_read_o  = active_q && !data_ok;
  assign stall_write_o = active_q && data_ok && !fill_q && !credit_q;

  always_ff @(posedge clk_i) begin
    if (load) begin
      cmd_q    <= job.cmd;
      two_q    <= job.two;
      rot_a_q  <= job.a.rot;
      rot_b_q  <= job.b.rot;
      left_a_q <= job.a.beats;
      left_b_q <= job.b.beats;
      left_q   <= job.beats;
      first_q  <= 1'b1;
      fill_q   <= job_fills;
      need_a_q <= job.a.ahead || !job_fills;
      need_b_q <= job.two && (job.b.ahead || !job_fills);
      last_q   <= !job_fills && job.beats == beats_t'(1);
      err_q    <= 1'b0;
    end else if (step) begin
      first_q <= 1'b0;
      fill_q  <= 1'b0;
      err_q   <= err_now;
      if (need_a_q) left_a_q <= left_a_q - 1'b1;
      if (need_b_q) left_b_q <= left_b_q - 1'b1;
      if (emit) left_q <= left_q - 1'b1;
      need_a_q <= left_a_q != beats_t'(need_a_q);
      need_b_q <= two_q && left_b_q != beats_t'(need_b_q);
      last_q   <= left_q == (fill_q ? beats_t'(1) : beats_t'(2));
    end

    if (rst_i) begin
      active_q    <= 1'b0;
      credits_q   <= CreditW'(Credits);
      credit_q    <= 1'b0;
      fp_steps_q  <= '0;
      fp_recent_q <= 1'b0;
    end else begin
      if (load) active_q <= 1'b1;
      else if (step && last_q) active_q <= 1'b0;
      // A step is known late: it enables the count, and the flag looks at the count as it is.
      if (credit_i != emit) credits_q <= emit ? credits_q - 1'b1 : credits_q + 1'b1;
      credit_q    <= credit_i || !(credits_q == '0 || (credits_q == CreditW'(1) && emit));
      fp_steps_q  <= {fp_steps_q[Skew-2:0], fp_emit};
      fp_recent_q <= fp_emit || fp_steps_q[Skew-2:0] != '0;
    end
  end

  // ---- beside the rotators ----------------------------------------------------------------------
  logic emit1_q, emit2_q, err1_q, err2_q;
  lane_cmd_t cmd1_q, cmd2_q;

  always_ff @(posedge clk_i) begin
    cmd1_q <= cmd_q;
    cmd2_q <= cmd1_q;
    err1_q <= err_now;
    err2_q <= err1_q;
    if (rst_i) begin
      emit1_q <= 1'b0;
      emit2_q <= 1'b0;
    end else begin
      emit1_q <= emit;
      emit2_q <= emit1_q;
    end
  end

  assign lane_valid_o = emit2_q;
  assign lane_cmd_o   = cmd2_q;
  assign lane_err_o   = err2_q;

  `WEFT_ASSERT(CreditsInRange, credits_q <= CreditW'(Credits));
  `WEFT_NEXT(CreditIsOne, 1'b1, credit_q == (credits_q != '0));
  `WEFT_IMPLIES(SourcesEndWithTheJob, step && last_q,
                left_a_q == beats_t'(need_a_q) && (!two_q || left_b_q == beats_t'(need_b_q)));

endmodule

`default_nettype wire
