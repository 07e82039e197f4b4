// SPDX-License-Identifier: Apache-2.0
//
// The way of chained steps from one array of float lanes to the next: weft_nmc_lanes has the
// arrays, docs/nmc.md the classes. What a step needs for its second array waits in a queue; marks
// run beside the arrays, one line for each order of them: index i is set in the cycle i + 1 behind
// the step's turn to choose its operands. A chained step of another class begins when those before
// are in their last array (weft_nmc_seq), so the newest one's class is that of all in the queue.
//
// Sums that stay in the accumulator go no further: where they lie waits in a queue of its own.
//
// No handshake. In the cycle of wide_next_o or half_next_o, cmd_o and live_o are the second
// array's, which starts in the next cycle, on between_o or on what the first array shows then.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_chain
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter  bit          Blocks = 1'b1,
    parameter  bit          Pairs  = 1'b0,
    localparam int unsigned Words  = NmcW / 32
) (
    input  wire                 clk_i,
    input  wire                 rst_i,
    // A step.
    input  wire                 valid_i,
    input  wire lane_cmd_t      cmd_i,
    input  wire  [ChunkW-1:0]   index_i,
    input  wire  [ Words-1:0]   live_i,
    // Its turn to choose operands for the first array, later if they are blocks.
    input  wire                 sums_i,       // sums first ...
    input  wire                 sums_stay_i,  // ... that stay
    input  wire                 muls_i,       // products first
    // Sums, as the half lanes show them.
    input  wire  [  NmcW-1:0]   half_i,
    // The second array.
    output logic                wide_next_o,
    output logic                wide_late_o,  // it starts
    output logic                half_next_o,
    output logic                half_late_o,
    output float_cmd_t          cmd_o,
    output logic [ Words-1:0]   live_o,
    output logic [      31:0]   factor_o,   // with wide_late_o
    output logic [  NmcW-1:0]   between_o,  // the same
    output logic                uses_acc_o,  // with half_next_o: it adds to the accumulator
    output logic [ChunkW-1:0]   index_o,
    // With half_next_o: its sum, rounded to odd, is to be converted to `to` of cmd_o.
    output logic                convert_o,
    // A sum of half_i that stays.
    output logic                stay_o,
    output logic [ChunkW-1:0]   stay_index_o,
    output chain_marks_t        marks_o,
    // Scales of blocks, in order.
    input  wire                 scale_take_i,
    output mx_scale_t           scale_o
);

  typedef struct packed {
    float_cmd_t        cmd;
    logic [Words-1:0]  live;
    logic [ChunkW-1:0] index;
  } late_t;

  wire keeps = class_keeps_sums(cmd_i.which) && cmd_i.to_acc;
  wire chained = valid_i && (class_muls_first(cmd_i.which) ||
                             (class_sums_first(cmd_i.which) && !keeps));
  lane_class_e which_q;  // of the newest one

  // Sums first; sums that stay; products first, and beside their second array what becomes of it.
  logic [SumFirst:0] sums_q;
  logic [FloatLatency+1:0] stays_q;
  logic [MulFirst+FloatLatency+1:0] muls_q;
  logic [FloatLatency+1:0] muls_stay_q, muls_convert_q;

  late_t late;
  logic late_room, late_here, stay_room, stay_here;
  wire take = wide_next_o || half_next_o;
  wire sum_stays = half_next_o && which_q == LaneMulSumTo && late.cmd.to_acc;

  weft_fifo #(
      .data_t(late_t),
      .Depth (32)
  ) u_late (
      .clk_i,
      .rst_i,
      .s_valid_i(chained),
      .s_ready_o(late_room),
      .s_data_i ('{cmd: cmd_i.next, live: live_i, index: index_i}),
      .m_valid_o(late_here),
      .m_ready_i(take),
      .m_data_o (late),
      .count_o  ()
  );

  weft_fifo #(
      .data_t(logic [ChunkW-1:0]),
      .Depth (Pairs ? 32 : 16)
  ) u_stays (
      .clk_i,
      .rst_i,
      .s_valid_i(valid_i && keeps),
      .s_ready_o(stay_room),
      .s_data_i (index_i),
      .m_valid_o(stay_here),
      .m_ready_i(stay_o),
      .m_data_o (stay_index_o),
      .count_o  ()
  );

  assign wide_next_o = sums_q[SumFirst-1];
  assign wide_late_o = sums_q[SumFirst];
  assign half_next_o = muls_q[MulFirst-1];
  assign half_late_o = muls_q[MulFirst];
  assign live_o      = late.live;
  assign index_o     = late.index;
  assign uses_acc_o  = late.cmd.use_acc;
  assign convert_o   = Pairs && half_next_o && which_q == LaneMulSumTo && !late.cmd.to_acc;
  assign cmd_o       = late.cmd;
  assign stay_o      = stays_q[FloatLatency] || (Pairs && muls_stay_q[FloatLatency]);

  assign marks_o = '{
      wide_goes_on: muls_q[MulFirst],
      half_ends: muls_q[MulFirst+FloatLatency] && !muls_stay_q[FloatLatency] &&
                 !muls_convert_q[FloatLatency],
      sum_goes_on: sums_q[FloatLatency+1],
      sum_to: which_q inside {LaneSumTo, LaneBlockTo},
      sum_stayed: stays_q[FloatLatency+1],
      mul_goes_on: muls_q[MulFirst+1],
      mul_sum_goes_on: muls_convert_q[FloatLatency+1],
      mul_sum_stayed: muls_stay_q[FloatLatency+1]
  };

  // Sums on their way to the wide lanes, as long as the search for the scale of a block takes.
  logic [31:0] block_factor;
  logic [NmcW-1:0] between_q[MxScaleLatency];
  assign between_o = between_q[MxScaleLatency-1];
  assign factor_o  = block_factor;

  always_ff @(posedge clk_i) begin
    if (chained || (valid_i && keeps)) which_q <= cmd_i.which;
    for (int unsigned i = MxScaleLatency - 1; i > 0; i--)
      if (sums_q[FloatLatency+i]) between_q[i] <= between_q[i-1];
    if (sums_q[FloatLatency]) between_q[0] <= half_i;
    if (rst_i) begin
      sums_q         <= '0;
      stays_q        <= '0;
      muls_q         <= '0;
      muls_stay_q    <= '0;
      muls_convert_q <= '0;
    end else begin
      sums_q         <= {sums_q[SumFirst-1:0], sums_i && !sums_stay_i};
      stays_q        <= {stays_q[FloatLatency:0], sums_i && sums_stay_i};
      muls_q         <= {muls_q[MulFirst+FloatLatency:0], muls_i};
      muls_stay_q    <= {muls_stay_q[FloatLatency:0], Pairs && sum_stays};
      muls_convert_q <= {muls_convert_q[FloatLatency:0], convert_o};
    end
  end

  if (Blocks) begin : gen_scale
    wire to_blocks = which_q inside {LaneFloatOut, LaneBlockOut};
    mx_scale_t scale, scale_ahead;
    logic      scale_room, scale_next, scale_here_q;
    // The oldest one lies in registers: from there it is a long way to its place in a beat.
    wire       scale_load = scale_next && (!scale_here_q || scale_take_i);

    weft_nmc_mx_scale u_scale (
        .clk_i,
        .rst_i,
        .valid_i (sums_q[FloatLatency] && to_blocks),
        .fmt_i   (late.cmd.to),
        .values_i(half_i),
        .scale_o (scale),
        .factor_o(block_factor)
    );

    weft_fifo #(
        .data_t(mx_scale_t),
        .Depth (16)
    ) u_scales (
        .clk_i,
        .rst_i,
        .s_valid_i(wide_late_o && to_blocks),
        .s_ready_o(scale_room),
        .s_data_i (scale),
        .m_valid_o(scale_next),
        .m_ready_i(scale_load),
        .m_data_o (scale_ahead),
        .count_o  ()
    );

    always_ff @(posedge clk_i) begin
      if (scale_load) scale_o <= scale_ahead;
      if (rst_i) scale_here_q <= 1'b0;
      else scale_here_q <= scale_load || (scale_here_q && !scale_take_i);
    end

    `WEFT_IMPLIES(ScaleHasRoom, wide_late_o && to_blocks, scale_room);
    `WEFT_IMPLIES(BlockHasScale, scale_take_i, scale_here_q);
  end else begin : gen_no_scale
    wire unused_take = scale_take_i;
    assign block_factor = '0;
    assign scale_o      = '0;
  end

  `WEFT_IMPLIES(LateHasRoom, chained, late_room);
  `WEFT_IMPLIES(LateIsHere, take, late_here);
  `WEFT_IMPLIES(StayHasRoom, valid_i && keeps, stay_room);
  `WEFT_IMPLIES(StayIsHere, stay_o, stay_here);

endmodule

`default_nettype wire
