// SPDX-License-Identifier: Apache-2.0
//
// Completion tracker of the reducer: counts the write responses of the oldest request and reports
// each request once, in order, after its last response.
//
// Jobs and completions by valid/ready; write responses belong to the oldest job, because the write
// master keeps one order. A request takes at least 3 cycles here beyond its responses.
// Status: the decoder's error, else ErrMemError if a read or a write of the request failed.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_done
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire                 clk_i,
    input  wire                 rst_i,
    // Jobs; there are never more than NmcJobs between here and the completion, so an index is free
    // again when its job could come a second time.
    input  wire                 job_valid_i,
    output logic                job_ready_o,
    input  wire nmc_done_job_t  job_i,
    // What becomes known of a job's results, before its last write response.
    input  wire nmc_note_t      note_i,
    input  wire      [JobW-1:0] note_idx_i,
    // A write response of this job was an error.
    output logic                b_err_o,
    output logic     [JobW-1:0] b_err_idx_o,
    // AXI4 write responses.
    input  wire      [     1:0] m_axi_bresp,
    input  wire                 m_axi_bvalid,
    output logic                m_axi_bready,
    // Completions, and what the steps of the request raised.
    output logic                cpl_valid_o,
    input  wire                 cpl_ready_i,
    output cpl_t                cpl_o,
    output float_flags_t        flags_o,
    output logic                busy_o        // a job is here
);

  logic          job_valid, job_pop;
  nmc_done_job_t job;

  weft_fifo #(
      .data_t(nmc_done_job_t),
      .Depth (NmcJobs)
  ) u_jobs (
      .clk_i,
      .rst_i,
      .s_valid_i(job_valid_i),
      .s_ready_o(job_ready_o),
      .s_data_i (job_i),
      .m_valid_o(job_valid),
      .m_ready_i(job_pop),
      .m_data_o (job),
      .count_o  ()
  );

  typedef enum logic [1:0] {
    StIdle,
    StCount,  // waiting for write responses
    StJudge,  // all there: work out the status
    StReport
  } state_e;

  state_e               state_q, state_d;
  logic   [BurstsW-1:0] left_q;
  logic                 one_left_q;
  nmc_note_t            notes_q[NmcJobs];
  nmc_note_t            note;  // of the oldest job

  wire response = m_axi_bvalid && m_axi_bready;

  assign note         = notes_q[job.idx];
  assign m_axi_bready = state_q == StCount;
  assign b_err_o      = response && m_axi_bresp != 2'b00;
  assign b_err_idx_o  = job.idx;
  assign cpl_valid_o  = state_q == StReport;
  assign job_pop      = state_q == StJudge;
  assign busy_o       = job_valid || state_q != StIdle;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:   if (job_valid) state_d = (job.bursts == '0) ? StJudge : StCount;
      StCount:  if (response && one_left_q) state_d = StJudge;
      StJudge:  state_d = StReport;
      StReport: if (cpl_ready_i) state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      left_q     <= job.bursts;
      one_left_q <= job.bursts == BurstsW'(1);
    end else if (response) begin
      left_q     <= left_q - 1'b1;
      one_left_q <= left_q == BurstsW'(2);
    end
    if (state_q == StJudge) begin
      cpl_o.tag    <= job.tag;
      cpl_o.status <= (job.status == ErrOk && note.err) ? ErrMemError : job.status;
      flags_o      <= note.flags;
    end

    if (rst_i) begin
      state_q <= StIdle;
      notes_q <= '{default: '0};
    end else begin
      state_q <= state_d;
      if (note_i != '0) notes_q[note_idx_i] <= notes_q[note_idx_i] | note_i;
      if (b_err_o) notes_q[job.idx].err <= 1'b1;
      if (job_pop) notes_q[job.idx] <= '0;
    end
  end

  `WEFT_HOLD(CplHolds, cpl_valid_o, cpl_ready_i, cpl_o);
  `WEFT_IMPLIES(NoteInTime, note_i != '0, !(job_pop && note_idx_i == job.idx));

endmodule

`default_nettype wire
