// SPDX-License-Identifier: Apache-2.0
//
// Write engine of the reducer: result beats to AXI4 write bursts, strobes at both edges.
//
// Result beats come without back-pressure; who sends them holds one credit a beat, given back by
// credit_o when the beat has left. A burst runs to the end of a 4 KB page or of the job. Its
// address is offered when its first beat is here, and its data not before its address is offered,
// so a slow read never blocks the memory's write side with a half-told burst. One beat a cycle.
// From the first beat that carries a read error, or from a write error, to the end of its job the
// beats go out without strobes: bursts stay whole, nothing more is written.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_write
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Depth = 32  // beats in the write buffer
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    // Jobs of at least one beat, each here before its first beat.
    input  wire                  job_valid_i,
    output logic                 job_ready_o,
    input  wire nmc_write_job_t  job_i,
    // Result beats.
    input  wire                  beat_valid_i,
    input  wire      [NmcW-1:0]  beat_data_i,
    input  wire                  beat_err_i,
    input  wire float_flags_t    beat_flags_i,  // of the job, with its last beat
    output logic                 credit_o,
    // A write response of job idx was an error.
    input  wire                  b_err_i,
    input  wire      [JobW-1:0]  b_err_idx_i,
    // What has become known of job idx; 0 where nothing has.
    output nmc_note_t            note_o,
    output logic     [JobW-1:0]  note_idx_o,
    // AXI4 write master, without its response channel.
    output logic     [    63:0]  m_axi_awaddr,
    output logic     [     7:0]  m_axi_awlen,
    output logic                 m_axi_awvalid,
    input  wire                  m_axi_awready,
    output logic     [NmcW-1:0]  m_axi_wdata,
    output logic [NmcBytes-1:0]  m_axi_wstrb,
    output logic                 m_axi_wlast,
    output logic                 m_axi_wvalid,
    input  wire                  m_axi_wready
);

  typedef logic [NmcBytes-1:0] strb_t;

  typedef struct packed {
    beat_addr_t       addr;
    logic [PageW-1:0] len;  // beats - 1
  } aw_t;

  // ---- jobs: one at work, one prepared behind it, so that jobs follow without a gap -------------
  logic           job_valid, job_ready;
  nmc_write_job_t job;

  weft_fifo #(
      .data_t(nmc_write_job_t),
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

  function automatic strb_t strb_from(offs_t first);
    strb_t mask;
    for (int unsigned i = 0; i < NmcBytes; i++) mask[i] = OffsW'(i) >= first;
    return mask;
  endfunction

  function automatic strb_t strb_to(offs_t last);
    strb_t mask;
    for (int unsigned i = 0; i < NmcBytes; i++) mask[i] = OffsW'(i) <= last;
    return mask;
  endfunction

  logic                    next_valid_q, active_q;
  nmc_write_job_t          next_q;
  strb_t                   from_q, to_q;
  logic         [JobW-1:0] idx_q;
  beat_addr_t              addr_q;
  beats_t                  left_q;
  logic                    first_q, last_q;  // the next beat is the job's first, last one
  logic                    mute_q;  // an error has happened to this job

  wire ends = beat_valid_i && last_q;
  wire start = next_valid_q && (!active_q || ends);
  wire mute = mute_q || beat_err_i;

  assign job_ready = !next_valid_q || start;

  always_ff @(posedge clk_i) begin
    if (job_ready) next_q <= job;

    if (start) begin
      from_q  <= strb_from(next_q.first);
      to_q    <= strb_to(next_q.last);
      idx_q   <= next_q.idx;
      addr_q  <= next_q.addr;
      left_q  <= next_q.beats;
      first_q <= 1'b1;
      last_q  <= next_q.beats == beats_t'(1);
      mute_q  <= 1'b0;
    end else begin
      if (beat_valid_i) begin
        addr_q  <= addr_q + 1'b1;
        left_q  <= left_q - 1'b1;
        first_q <= 1'b0;
        last_q  <= left_q == beats_t'(2);
        mute_q  <= mute;
      end
      if (b_err_i && b_err_idx_i == idx_q) mute_q <= 1'b1;
    end

    if (rst_i) begin
      next_valid_q <= 1'b0;
      active_q     <= 1'b0;
    end else begin
      if (job_ready) next_valid_q <= job_valid;
      if (start) active_q <= 1'b1;
      else if (ends) active_q <= 1'b0;
    end
  end

  assign note_o.err   = beat_valid_i && beat_err_i;
  assign note_o.flags = beat_flags_i & {3{ends}};
  assign note_idx_o   = idx_q;

  // ---- write buffer -----------------------------------------------------------------------------
  strb_t strb;
  logic  w_valid, w_ready;

  assign strb = (first_q ? from_q : '1) & (last_q ? to_q : '1) & {NmcBytes{!mute}};
  wire page_end = addr_q[PageW-1:0] == '1;

  weft_nmc_buf #(
      .Width(1 + NmcBytes + NmcW),
      .Depth(Depth),
      .Style("distributed")
  ) u_w (
      .clk_i,
      .rst_i,
      .push_i (beat_valid_i),
      .data_i ({last_q || page_end, strb, beat_data_i}),
      .valid_o(w_valid),
      .ready_i(w_ready),
      .data_o ({m_axi_wlast, m_axi_wstrb, m_axi_wdata})
  );

  // ---- addresses: at most one a beat in the write buffer, and one whose data has left -----------
  aw_t aw_in, aw_out;
  logic aw_full_n;
  wire  aw_push = beat_valid_i && (first_q || addr_q[PageW-1:0] == '0);
  wire [PageW-1:0] to_page = ~addr_q[PageW-1:0];  // beats behind this one in its page

  assign aw_in.addr = addr_q;
  assign aw_in.len  = (left_q > beats_t'(to_page)) ? to_page : PageW'(left_q - 1'b1);

  weft_fifo #(
      .data_t(aw_t),
      .Depth (Depth + 2)
  ) u_aw (
      .clk_i,
      .rst_i,
      .s_valid_i(aw_push),
      .s_ready_o(aw_full_n),
      .s_data_i (aw_in),
      .m_valid_o(m_axi_awvalid),
      .m_ready_i(m_axi_awready),
      .m_data_o (aw_out),
      .count_o  ()
  );

  assign m_axi_awaddr = {aw_out.addr, OffsW'(0)};
  assign m_axi_awlen  = 8'(aw_out.len);

  // Addresses taken minus bursts whose data has left, plus 1: data may leave with an address taken
  // (2 and up), or along with the one on offer (1). AXI forbids waiting for it to be taken.
  localparam int unsigned LeadW = $clog2(Depth + 4);
  logic [LeadW-1:0] lead_q;

  wire w_ok = lead_q > LeadW'(1) || (lead_q == LeadW'(1) && m_axi_awvalid);
  wire w_done = m_axi_wvalid && m_axi_wready;
  wire aw_done = m_axi_awvalid && m_axi_awready;

  assign m_axi_wvalid = w_valid && w_ok;
  assign w_ready      = m_axi_wready && w_ok;
  assign credit_o     = w_done;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      lead_q <= LeadW'(1);
    end else begin
      // Data leaves late: it only enables the count, whose direction is the address's.
      if (aw_done != (w_done && m_axi_wlast)) lead_q <= aw_done ? lead_q + 1'b1 : lead_q - 1'b1;
    end
  end

  `WEFT_IMPLIES(BeatHasJob, beat_valid_i, active_q);
  `WEFT_IMPLIES(AddressHasRoom, beat_valid_i && aw_push, aw_full_n);
  `WEFT_IMPLIES(AwInsidePage, m_axi_awvalid,
                9'(m_axi_awaddr[11:OffsW]) + 9'(m_axi_awlen) < 9'(PageBeats));
  `WEFT_ASSERT(LeadInRange, lead_q <= LeadW'(Depth + 2));

endmodule

`default_nettype wire
