// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the reducer: windows of two sources in, results out, one step a cycle, with the
// accumulator in which a result may stay for a later step.
//
//   wide    32 lanes of every float but fp64, one in each 32-bit word; products if Products
//   half    32 lanes of 16 and 8 bits, byte: 64 lanes of 8 bits; these two only in native steps
//   double  8 lanes of fp64, and of conversions from and to it, in the lower 64-bit words
//   exact   sums without rounding, by Exact: 32 lanes of fp16 and 8 bits, 8 of bf16, in the lower
//           64-bit words; with accumulators of their own
//   int     16 lanes of 64 bits: integers of every width, and copies of bits
//   blocks  if Blocks: windows that are blocks of OCP MX become 32 numbers for the wide lanes, and
//           reach them MxInLatency cycles later than others
//
// No handshake; latencies are lane_latency() of the step's class, and who feeds the lanes keeps
// results in the order of their steps (asserted) and off places of the accumulator that are still
// to be written. Results: tag_o tells where they go; those to the accumulator are already there.
// flags_o belongs to the result of the cycle before.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_lanes
  import weft_pkg::*;
  import weft_nmc_pkg::*;
  import weft_math_pkg::ExactNone, weft_math_pkg::ExactAll;
#(
    parameter  bit          Products = 1'b1,
    parameter  bit          Blocks   = 1'b1,
    parameter  int unsigned Exact    = ExactNone,
    localparam int unsigned Words    = NmcW / 32
) (
    input  wire                 clk_i,
    input  wire                 rst_i,
    // One cycle ahead of a step: its place in the accumulator.
    input  wire                 use_acc_i,
    input  wire                 use_kept_i,
    input  wire nmc_layout_t    layout_i,
    input  wire  [ChunkW-1:0]   index_i,
    // A step.
    input  wire                 valid_i,
    input  wire lane_cmd_t      cmd_i,
    input  wire lane_tag_t      tag_i,
    input  wire  [     63:0]    scalar_i,
    input  wire  [ Words-1:0]   wide_live_i,
    input  wire  [ Words-1:0]   half_live_i,
    input  wire  [2*Words-1:0]  byte_live_i,
    input  wire  [  NmcW-1:0]   a_i,
    input  wire  [  NmcW-1:0]   b_i,
    // Its result.
    output logic                valid_o,
    output lane_tag_t           tag_o,
    output logic [  NmcW-1:0]   wide_o,
    output logic [  NmcW-1:0]   half_o,
    output logic [2*NmcW-1:0]   byte_o,
    output float_flags_t        flags_o
);

  // ---- blocks -----------------------------------------------------------------------------------
  wire in_block = Blocks && valid_i && cmd_i.which inside {LaneBlock, LaneBlockOut};

  logic              block_valid, block_live, block_overflow;
  float_cmd_t        block_cmd;
  logic [NmcW-1:0]   block_a, block_b;
  logic              block_use_acc;
  logic [ChunkW-1:0] block_index;

  if (Blocks) begin : gen_blocks
    // Beside the conversion, and the read of the accumulator in the cycle ahead of it.
    typedef struct packed {
      float_cmd_t cmd;
      logic       live;  // of all lanes
    } beside_t;
    typedef struct packed {
      logic              use_acc;
      logic [ChunkW-1:0] index;
    } ahead_t;

    beside_t beside_q[MxInLatency];
    ahead_t  ahead_q [MxInLatency];
    logic    a_overflow, b_overflow, b_valid;

    // Results wider than their elements lie anywhere: element 0 goes to the lane where it lies.
    wire [4:0] turn = tag_i.layout.to_block ? '0 :
        (tag_i.layout.to == 2'd2) ? tag_i.place[6:2] : tag_i.place[5:1];

    weft_nmc_mx_in u_a (
        .clk_i,
        .rst_i,
        .valid_i   (in_block),
        .fmt_i     (tag_i.layout.mx),
        .turn_i    (turn),
        .block_i   (a_i[$bits(mx_block_t)-1:0]),
        .valid_o   (block_valid),
        .values_o  (block_a),
        .overflow_o(a_overflow)
    );

    weft_nmc_mx_in u_b (
        .clk_i,
        .rst_i,
        .valid_i   (in_block && cmd_i.flt.op != FloatConvert),
        .fmt_i     (tag_i.layout.mx),
        .turn_i    (turn),
        .block_i   (b_i[$bits(mx_block_t)-1:0]),
        .valid_o   (b_valid),
        .values_o  (block_b),
        .overflow_o(b_overflow)
    );

    always_ff @(posedge clk_i) begin
      if (in_block) beside_q[0] <= '{cmd: cmd_i.flt, live: wide_live_i[0]};
      ahead_q[0].index <= index_i;
      for (int unsigned i = 1; i < MxInLatency; i++) begin
        beside_q[i]      <= beside_q[i-1];
        ahead_q[i].index <= ahead_q[i-1].index;
      end
      for (int unsigned i = 0; i < MxInLatency; i++) begin
        ahead_q[i].use_acc <= !rst_i && (i == 0 ? use_acc_i && layout_i.from_block :
                                                  ahead_q[i-1].use_acc);
      end
    end

    assign block_cmd      = beside_q[MxInLatency-1].cmd;
    assign block_live     = beside_q[MxInLatency-1].live;
    assign block_overflow = block_valid && block_live &&
        ((a_overflow && !block_cmd.use_acc) || (b_overflow && b_valid));
    assign block_use_acc  = ahead_q[MxInLatency-1].use_acc;
    assign block_index    = ahead_q[MxInLatency-1].index;
  end else begin : gen_no_blocks
    assign block_valid    = 1'b0;
    assign block_live     = 1'b0;
    assign block_overflow = 1'b0;
    assign block_cmd      = cmd_i.flt;
    assign block_a        = '0;
    assign block_b        = '0;
    assign block_use_acc  = 1'b0;
    assign block_index    = '0;
  end

  // Flags are due a cycle behind the result.
  logic [FloatLatency+1:0] overflow_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) overflow_q <= '0;
    else overflow_q <= {overflow_q[FloatLatency:0], block_overflow};
  end

  // ---- operands ---------------------------------------------------------------------------------
  // Of a product with the scalar b is the scalar, in every word of the width that the lanes want.
  logic [NmcW-1:0] wide_acc, half_acc, kept;
  logic [2*NmcW-1:0] byte_acc;
  wire words64 = cmd_i.which inside {LaneDouble, LaneDoubleMul} ||
                 (cmd_i.which == LaneInt && (tag_i.layout.from == 2'd3 || tag_i.layout.to == 2'd3));
  wire [63:0] scalar = {words64 ? scalar_i[63:32] : scalar_i[31:0], scalar_i[31:0]};
  wire use_scalar = Products && ((cmd_i.which == LaneInt) ? cmd_i.num.scalar : cmd_i.flt.scalar);

  typedef enum logic [1:0] {
    FromWindow,
    FromBlock,
    FromAcc,    // of a; of b what is kept
    FromScalar
  } from_e;
  from_e a_from, b_from;

  always_comb begin
    a_from = block_valid ? (block_cmd.use_acc ? FromAcc : FromBlock) :
             cmd_i.use_acc ? FromAcc : FromWindow;
    b_from = block_valid ? FromBlock : use_scalar ? FromScalar :
             cmd_i.use_kept ? FromAcc : FromWindow;
  end

  wire plain = valid_i && !in_block;
  logic [NmcW-1:0] a_q, b_q;
  lane_cmd_t cmd_q;
  logic int_q, wide_q, half_q, byte_q, double_q;
  logic [Words-1:0] wide_live_q, half_live_q;
  logic [2*Words-1:0] byte_live_q;

  always_ff @(posedge clk_i) begin
    if (plain || block_valid) begin
      unique case (a_from)
        FromAcc:   a_q <= wide_acc;
        FromBlock: a_q <= block_a;
        default:   a_q <= spread(a_i, tag_i.layout);
      endcase
      unique case (b_from)
        FromScalar: b_q <= {NmcW / 64{scalar}};
        FromAcc:    b_q <= kept;
        FromBlock:  b_q <= block_b;
        default:    b_q <= spread(b_i, tag_i.layout);
      endcase
      cmd_q       <= cmd_i;
      if (block_valid) cmd_q.flt <= block_cmd;
      wide_live_q <= block_valid ? {Words{block_live}} : wide_live_i;
      half_live_q <= half_live_i;
      byte_live_q <= byte_live_i;
    end
    if (rst_i) begin
      {int_q, wide_q, half_q, byte_q, double_q} <= '0;
    end else begin
      int_q    <= valid_i && cmd_i.which == LaneInt;
      wide_q   <= block_valid || (valid_i && cmd_i.which inside {LaneFloat, LaneMul, LaneFloatOut});
      half_q   <= valid_i && tag_i.layout.parts;
      byte_q   <= valid_i && tag_i.layout.parts && tag_i.layout.from == 2'd0;
      double_q <= valid_i && cmd_i.which inside {LaneDouble, LaneDoubleMul};
    end
  end

  // ---- lanes ------------------------------------------------------------------------------------
  localparam int unsigned Doubles = 8;
  logic float_valid, half_valid, byte_valid, double_valid, int_valid, int_overflow;
  logic [NmcW-1:0] float_res, int_res;
  logic [64*Doubles-1:0] double_res;
  logic [Doubles-1:0] double_live;
  float_flags_t wide_flags, half_flags, byte_flags, double_flags, int_flags, block_flags;

  always_comb begin
    for (int unsigned i = 0; i < Doubles; i++) double_live[i] = wide_live_q[2*i];
  end

  weft_nmc_float #(
      .Lanes(Words),
      .Width(32),
      .Mul  (Products)
  ) u_wide (
      .clk_i,
      .rst_i,
      .valid_i (wide_q),
      .cmd_i   (cmd_q.flt),
      .live_i  (wide_live_q),
      .a_i     (a_q),
      .b_i     (b_q),
      .acc_i   (a_q),
      .valid_o (float_valid),
      .res_o   (float_res),
      .flags_o (wide_flags)
  );

  weft_nmc_float #(
      .Lanes(Words),
      .Width(16),
      .Pitch(32)
  ) u_half (
      .clk_i,
      .rst_i,
      .valid_i (half_q),
      .cmd_i   (cmd_q.flt),
      .live_i  (half_live_q),
      .a_i     (a_q),
      .b_i     (b_q),
      .acc_i   (half_acc),
      .valid_o (half_valid),
      .res_o   (half_o),
      .flags_o (half_flags)
  );

  weft_nmc_float #(
      .Lanes(2 * Words),
      .Width(8),
      .Pitch(16)
  ) u_byte (
      .clk_i,
      .rst_i,
      .valid_i (byte_q),
      .cmd_i   (cmd_q.flt),
      .live_i  (byte_live_q),
      .a_i     (a_q),
      .b_i     (b_q),
      .acc_i   (byte_acc),
      .valid_o (byte_valid),
      .res_o   (byte_o),
      .flags_o (byte_flags)
  );

  weft_nmc_double #(
      .Lanes(Doubles),
      .Mul  (Products)
  ) u_double (
      .clk_i,
      .rst_i,
      .valid_i (double_q),
      .cmd_i   (cmd_q.flt),
      .live_i  (double_live),
      .a_i     (a_q[64*Doubles-1:0]),
      .b_i     (b_q[64*Doubles-1:0]),
      .acc_i   (a_q[64*Doubles-1:0]),
      .valid_o (double_valid),
      .res_o   (double_res),
      .flags_o (double_flags)
  );

  weft_nmc_int #(
      .Lanes(Words / 2),
      .Mul  (Products)
  ) u_int (
      .clk_i,
      .rst_i,
      .valid_i   (int_q),
      .cmd_i     (cmd_q.num),
      .live_i    (wide_live_q),
      .a_i       (a_q),
      .b_i       (b_q),
      .acc_i     (a_q),
      .valid_o   (int_valid),
      .res_o     (int_res),
      .overflow_o(int_overflow)
  );

  // Exact sums of fp16 and 8 bits, in each 32-bit word, and of bf16, in the lower 64-bit words.
  localparam int unsigned Broads = 8;
  logic exact_valid, broad_valid;
  logic [16*Words-1:0] exact_res;
  logic [16*Broads-1:0] broad_res;
  float_flags_t exact_flags, broad_flags;

  if (Exact != ExactNone) begin : gen_exact
    logic [16*Words-1:0] a, b;  // spread over these lanes
    wire two = tag_i.layout.from[0];
    always_comb begin
      for (int unsigned i = 0; i < Words; i++) begin
        a[16*i+:16] = two ? a_i[16*i+:16] : {a_i[8*i+:8], 8'd0};
        b[16*i+:16] = two ? b_i[16*i+:16] : {b_i[8*i+:8], 8'd0};
      end
    end

    weft_nmc_exact #(
        .Lanes(Words)
    ) u_exact (
        .clk_i,
        .rst_i,
        .valid_i(valid_i && cmd_i.which == LaneExact && tag_i.layout.shape == Wide32),
        .cmd_i  (cmd_i.flt),
        .index_i(tag_i.index),
        .live_i (wide_live_i),
        .a_i    (a),
        .b_i    (b),
        .valid_o(exact_valid),
        .res_o  (exact_res),
        .flags_o(exact_flags)
    );
  end else begin : gen_no_exact
    assign {exact_valid, exact_res, exact_flags} = '0;
  end

  if (Exact == ExactAll) begin : gen_broad
    logic [Broads-1:0] live;
    always_comb begin
      for (int unsigned i = 0; i < Broads; i++) live[i] = wide_live_i[2*i];
    end

    weft_nmc_exact #(
        .Lanes(Broads),
        .Bf16 (1'b1)
    ) u_broad (
        .clk_i,
        .rst_i,
        .valid_i(valid_i && cmd_i.which == LaneExact && tag_i.layout.shape == Wide8),
        .cmd_i  (cmd_i.flt),
        .index_i(tag_i.index),
        .live_i (live),
        .a_i    (a_i[16*Broads-1:0]),
        .b_i    (b_i[16*Broads-1:0]),
        .valid_o(broad_valid),
        .res_o  (broad_res),
        .flags_o(broad_flags)
    );
  end else begin : gen_no_broad
    assign {broad_valid, broad_res, broad_flags} = '0;
  end

  assign valid_o = float_valid || double_valid || int_valid || exact_valid || broad_valid;
  assign int_flags = '{overflow: int_overflow, default: 1'b0};
  assign block_flags = '{
      overflow: overflow_q[FloatLatency+1],
      inexact: overflow_q[FloatLatency+1],
      default: 1'b0
  };
  assign flags_o = wide_flags | half_flags | byte_flags | double_flags | int_flags | block_flags |
                   exact_flags | broad_flags;

  always_comb begin
    wide_o = float_valid ? float_res : int_res;
    // What lies in eight words is shown twice, for the sake of gather.
    if (double_valid) wide_o = {2{double_res}};
    if (exact_valid) begin
      for (int unsigned i = 0; i < Words; i++) wide_o[32*i+16+:16] = exact_res[16*i+:16];
    end
    if (broad_valid) begin
      for (int unsigned i = 0; i < 2 * Broads; i++)
        wide_o[64*i+16+:16] = broad_res[16*(i%Broads)+:16];
    end
  end

  // Results leave in the order of the steps, so what travels beside them is a queue. Its head lies
  // in registers: the result that it belongs to has a long way to its beat.
  logic tag_here, tag_room, tag_next;
  lane_tag_t tag_ahead;
  wire tag_take = tag_next && (!tag_here || valid_o);

  weft_fifo #(
      .data_t(lane_tag_t),
      .Depth (32)
  ) u_tags (
      .clk_i,
      .rst_i,
      .s_valid_i(valid_i),
      .s_ready_o(tag_room),
      .s_data_i (tag_i),
      .m_valid_o(tag_next),
      .m_ready_i(tag_take),
      .m_data_o (tag_ahead),
      .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (tag_take) tag_o <= tag_ahead;
    if (rst_i) tag_here <= 1'b0;
    else tag_here <= tag_take || (tag_here && !valid_o);
  end

  weft_nmc_acc #(
      .Products(Products)
  ) u_acc (
      .clk_i,
      .rst_i,
      .use_acc_i((use_acc_i && !layout_i.from_block) || block_use_acc),
      .use_kept_i,
      .layout_i,
      .index_i(block_use_acc ? block_index : index_i),
      .wide_o (wide_acc),
      .half_o (half_acc),
      .byte_o (byte_acc),
      .kept_o (kept),
      .valid_i(valid_o),
      .tag_i  (tag_o),
      .wide_i (wide_o),
      .half_i (half_o),
      .byte_i (byte_o)
  );

  `WEFT_ASSERT(OneStepToTheLanes, !(plain && block_valid));
  `WEFT_ASSERT(NoCollision, $onehot0({float_valid, double_valid, int_valid, exact_valid,
               broad_valid}));
  `WEFT_IMPLIES(ResultHasTag, valid_o, tag_here);
  `WEFT_IMPLIES(TagHasRoom, valid_i, tag_room);
  `WEFT_IMPLIES(SmallOnesTogether, half_valid || byte_valid, float_valid);

endmodule

`default_nettype wire
