// SPDX-License-Identifier: Apache-2.0
//
// Read engine of one source of the reducer: AXI4 reads, many in flight, into a buffer in order.
//
// Jobs in by valid/ready; beats out by valid/ready, at up to 1 a cycle. Bursts run to the end of a
// 4 KB page (32 beats at most) and are only asked for when the buffer has room for 32 more beats,
// so rready is always up. With Depth = 512 the stream is full-rate up to a latency of about 440
// cycles. A new burst starts every 2 cycles at best, a new job every 3.
// A beat that memory answered with an error leaves with `err` set; nothing is stopped for it.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_read
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Depth = 512  // beats in the buffer, at least two bursts
) (
    input  wire                 clk_i,
    input  wire                 rst_i,
    // Jobs of at least one beat; their beats come out in this order, back to back.
    input  wire                 job_valid_i,
    output logic                job_ready_o,
    input  wire nmc_read_job_t  job_i,
    // Beats.
    output logic                beat_valid_o,
    input  wire                 beat_ready_i,
    output logic     [NmcW-1:0] beat_data_o,
    output logic                beat_err_o,
    // AXI4 read master.
    output logic     [    63:0] m_axi_araddr,
    output logic     [     7:0] m_axi_arlen,
    output logic                m_axi_arvalid,
    input  wire                 m_axi_arready,
    input  wire      [NmcW-1:0] m_axi_rdata,
    input  wire      [     1:0] m_axi_rresp,
    input  wire                 m_axi_rlast,
    input  wire                 m_axi_rvalid,
    output logic                m_axi_rready
);

  localparam int unsigned RoomW = $clog2(Depth + 1);
  localparam int unsigned BurstW = PageW + 1;

  if (Depth < 2 * PageBeats) begin : gen_bad_depth
    $error("weft_nmc_read: Depth must hold two bursts");
  end

  // Jobs wait here, so that a short job does not idle the address channel.
  logic          job_valid, job_ready;
  nmc_read_job_t job;

  weft_fifo #(
      .data_t(nmc_read_job_t),
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

  // ---- bursts: size one, then ask for it as soon as there is room and the channel is free -------
  typedef enum logic [1:0] {
    StIdle,
    StSize,  // work out the next burst's length
    StAsk    // hand it to the address channel
  } state_e;

  state_e              state_q, state_d;
  beat_addr_t          addr_q;
  span_beats_t         left_q;
  logic   [BurstW-1:0] burst_q;
  logic                last_q;  // this burst ends the job
  logic   [ RoomW-1:0] room_q;  // beats of the buffer neither filled nor promised, two cycles ago
  logic                pop_q;   // whether one has left is known late
  logic                room_ok_q;  // a whole burst fits; late by a cycle, asks are two apart
  logic                ar_valid_q;
  logic   [BurstW-1:0] to_page;

  wire  ask = state_q == StAsk && room_ok_q && (!ar_valid_q || m_axi_arready);
  wire  pop = beat_valid_o && beat_ready_i;
  wire  ends_here = left_q <= span_beats_t'(to_page);

  assign to_page   = BurstW'(PageBeats) - BurstW'(addr_q[PageW-1:0]);
  assign job_ready = state_q == StIdle;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (job_valid) state_d = StSize;
      StSize:  state_d = StAsk;
      StAsk:   if (ask) state_d = last_q ? StIdle : StSize;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle && job_valid) begin
      addr_q <= job.addr;
      left_q <= job.beats;
    end
    if (state_q == StSize) begin
      burst_q <= ends_here ? BurstW'(left_q) : to_page;
      last_q  <= ends_here;
    end
    if (ask) begin
      m_axi_araddr <= {addr_q, OffsW'(0)};
      m_axi_arlen  <= 8'(burst_q - 1'b1);
      addr_q       <= addr_q + beat_addr_t'(burst_q);
      left_q       <= left_q - span_beats_t'(burst_q);
    end

    if (rst_i) begin
      state_q    <= StIdle;
      ar_valid_q <= 1'b0;
      room_q     <= RoomW'(Depth);
      room_ok_q  <= 1'b0;
      pop_q      <= 1'b0;
    end else begin
      state_q <= state_d;
      if (ask) ar_valid_q <= 1'b1;
      else if (m_axi_arready) ar_valid_q <= 1'b0;
      room_ok_q <= room_q >= RoomW'(PageBeats);
      pop_q     <= pop;
      room_q    <= room_q + RoomW'(pop_q) - (ask ? RoomW'(burst_q) : '0);
    end
  end

  assign m_axi_arvalid = ar_valid_q;

  // ---- buffer -----------------------------------------------------------------------------------
  weft_nmc_buf #(
      .Width(NmcW + 1),
      .Depth(Depth),
      .Style("block")
  ) u_buffer (
      .clk_i,
      .rst_i,
      .push_i (m_axi_rvalid),
      .data_i ({m_axi_rresp != 2'b00, m_axi_rdata}),
      .valid_o(beat_valid_o),
      .ready_i(beat_ready_i),
      .data_o ({beat_err_o, beat_data_o})
  );

  assign m_axi_rready = 1'b1;
  // Bursts are counted in beats; where one ends does not matter here.
  wire unused_rlast = m_axi_rlast;

  `WEFT_ASSERT(RoomInRange, room_q <= RoomW'(Depth));
  `WEFT_HOLD(ArHolds, m_axi_arvalid, m_axi_arready, {m_axi_araddr, m_axi_arlen});
  `WEFT_IMPLIES(ArInsidePage, m_axi_arvalid,
                9'(m_axi_araddr[11:OffsW]) + 9'(m_axi_arlen) < 9'(PageBeats));

endmodule

`default_nettype wire
