// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the reducer: windows of two sources in, results out, one step a cycle, with the
// accumulator in which a result may stay for a later step.
//
//   wide    32 lanes of every float but fp64, one in each 32-bit word; products if Products
//   half    32 lanes of 16 and 8 bits, byte: 64 lanes of 8 bits, in native steps; half also of
//           32-bit words, before or behind the wide lanes: sums that are then scaled or converted,
//           sums of products with the scalar
//   pairs   if Multipliers is 2: lanes for the products of a second source with the scalar, and for
//           conversions of sums of both, weft_nmc_pairs
//   double  8 lanes of fp64, and of conversions from and to it, in the lower 64-bit words
//   exact   sums without rounding, by Exact: 32 lanes of fp16 and 8 bits, 8 of bf16, in the lower
//           64-bit words; with accumulators of their own
//   int     16 lanes of 64 bits: integers of every width, and copies of bits
//   div     if Products: what these have left in the accumulator, divided; the quotient in the end
//           goes through them again
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
    parameter  int unsigned Multipliers = 1,
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
    output mx_scale_t           scale_o,  // of a result for a block
    output float_flags_t        flags_o
);

  // ---- blocks -----------------------------------------------------------------------------------
  wire in_block = Blocks && valid_i && class_from_block(cmd_i.which);

  logic              block_valid, block_sum, block_stays, block_live, block_overflow;
  float_cmd_t        block_cmd;
  logic [NmcW-1:0]   block_a, block_b;
  logic              block_use_acc;
  logic [ChunkW-1:0] block_index;

  if (Blocks) begin : gen_blocks
    // Beside the conversion, and the read of the accumulator in the cycle ahead of it.
    typedef struct packed {
      float_cmd_t cmd;
      logic       sum;   // class_sums_first
      logic       stays;
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

    logic [MxInLatency-1:1] beside_valid_q;
    always_ff @(posedge clk_i) begin
      if (in_block) begin
        beside_q[0] <= '{
            cmd: cmd_i.flt,
            sum: class_sums_first(cmd_i.which),
            stays: cmd_i.to_acc,
            live: wide_live_i[0]
        };
      end
      if (use_acc_i) ahead_q[0].index <= index_i;
      for (int unsigned i = 1; i < MxInLatency; i++) begin
        if (beside_valid_q[i]) beside_q[i] <= beside_q[i-1];
        if (ahead_q[i-1].use_acc) ahead_q[i].index <= ahead_q[i-1].index;
      end
      for (int unsigned i = 0; i < MxInLatency; i++) begin
        ahead_q[i].use_acc <= !rst_i && (i == 0 ? use_acc_i && layout_i.from_block :
                                                  ahead_q[i-1].use_acc);
      end
      if (rst_i) beside_valid_q <= '0;
      else beside_valid_q <= {beside_valid_q[MxInLatency-2:1], in_block};
    end

    assign block_cmd      = beside_q[MxInLatency-1].cmd;
    assign block_sum      = beside_q[MxInLatency-1].sum;
    assign block_stays    = beside_q[MxInLatency-1].stays;
    assign block_live     = beside_q[MxInLatency-1].live;
    assign block_overflow = block_valid && block_live &&
        ((a_overflow && !block_cmd.use_acc) || (b_overflow && b_valid));
    assign block_use_acc  = ahead_q[MxInLatency-1].use_acc;
    assign block_index    = ahead_q[MxInLatency-1].index;
  end else begin : gen_no_blocks
    assign block_valid    = 1'b0;
    assign block_sum      = 1'b0;
    assign block_stays    = 1'b0;
    assign block_live     = 1'b0;
    assign block_overflow = 1'b0;
    assign block_cmd      = cmd_i.flt;
    assign block_a        = '0;
    assign block_b        = '0;
    assign block_use_acc  = 1'b0;
    assign block_index    = '0;
  end

  // Flags are due a cycle behind the sum.
  logic [FloatLatency+1:0] overflow_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) overflow_q <= '0;
    else overflow_q <= {overflow_q[FloatLatency:0], block_overflow};
  end

  // ---- operands ---------------------------------------------------------------------------------
  // Of a product in fp64 with the scalar b is the scalar; other lanes have a port for it.
  logic [NmcW-1:0] wide_acc, half_acc;
  logic [NmcW/2-1:0] kept;
  logic [2*NmcW-1:0] byte_acc;
  localparam bit Pairs = Products && Multipliers == 2;
  localparam int unsigned DoubleW = NmcW / 2;
  wire use_scalar = Products && cmd_i.which == LaneDoubleMul && cmd_i.flt.scalar;

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
  wire stays = cmd_i.to_acc && class_keeps_sums(cmd_i.which);
  wire sums_first = (plain && class_sums_first(cmd_i.which)) || (block_valid && block_sum);
  wire muls_first = Products && plain && class_muls_first(cmd_i.which);
  // Of pairs, source b has lanes of its own, and the wide ones have only that of a first step.
  wire muls_wide = muls_first && !(Pairs && cmd_i.next.use_acc);
  wire parts = plain && tag_i.layout.parts;
  logic [NmcW-1:0] a_q, b_q;
  logic [Words-1:0][15:0] half_a_q, half_b_q;  // upper halves of the half lanes' words
  logic [63:0] scalar_q;
  lane_cmd_t cmd_q;
  float_cmd_t wide_cmd_q, half_cmd_q;
  logic int_q, div_q, wide_q, half_q, byte_q, double_q;
  logic half_first_q;  // the half lanes add the products of a first step
  logic [Words-1:0] wide_live_q, half_live_q;
  logic [2*Words-1:0] byte_live_q;
  // The next one that a first array has seen; see weft_nmc_chain.
  logic wide_next, half_next;
  float_cmd_t next_cmd, sum_cmd;
  logic [Words-1:0] next_live;

  always_ff @(posedge clk_i) begin
    if (plain || block_valid) begin
      automatic logic [NmcW-1:0] a, b;
      unique case (a_from)
        FromAcc:   a = wide_acc;
        FromBlock: a = block_a;
        default:   a = spread(a_i, tag_i.layout);
      endcase
      unique case (b_from)
        FromScalar: b = {b_i[NmcW-1:DoubleW], {DoubleW / 64{scalar_i}}};
        FromAcc:    b = {b_i[NmcW-1:DoubleW], kept};
        FromBlock:  b = block_b;
        default:    b = spread(b_i, tag_i.layout);
      endcase
      a_q         <= a;
      b_q         <= b;
      scalar_q    <= scalar_i;
      cmd_q       <= cmd_i;
      byte_live_q <= byte_live_i;
      // Of parts the half lanes have the lower half of each word.
      if (parts || sums_first) begin
        for (int unsigned i = 0; i < Words; i++) begin
          half_a_q[i] <= parts ? a_i[32*i+:16] : a[32*i+16+:16];
          half_b_q[i] <= parts ? b_i[32*i+:16] : b[32*i+16+:16];
        end
      end
    end
    if (plain || block_valid || wide_next) begin
      wide_cmd_q  <= wide_next ? next_cmd : block_valid ? block_cmd : cmd_i.flt;
      wide_live_q <= wide_next ? next_live : block_valid ? {Words{block_live}} : wide_live_i;
    end
    if (parts || sums_first || half_next) begin
      half_cmd_q  <= half_next ? sum_cmd : block_valid ? block_cmd : cmd_i.flt;
      half_live_q <= half_next ? next_live : block_valid ? {Words{block_live}} :
                     parts ? half_live_i : wide_live_i;
    end
    if (rst_i) begin
      {int_q, div_q, wide_q, half_q, byte_q, double_q, half_first_q} <= '0;
    end else begin
      int_q    <= plain && cmd_i.which == LaneInt;
      div_q    <= Products && plain && cmd_i.which == LaneDiv;
      wide_q   <= wide_next || (block_valid && !block_sum) || muls_wide ||
                  (plain && cmd_i.which inside {LaneFloat, LaneMul});
      half_q   <= half_next || parts || sums_first;
      byte_q   <= parts && tag_i.layout.from == 2'd0;
      double_q <= plain && cmd_i.which inside {LaneDouble, LaneDoubleMul};
      half_first_q <= Pairs && half_next && !next_cmd.use_acc;
    end
  end

  // ---- chains -----------------------------------------------------------------------------------
  chain_marks_t marks;
  logic wide_late, half_late, late_uses_acc, sum_converts, sum_stays;
  logic [31:0] late_factor;
  logic [NmcW-1:0] between;
  logic [ChunkW-1:0] late_index, stay_index;
  wire to_block = valid_o && tag_o.layout.to_block && !tag_o.to_acc;

  weft_nmc_chain #(
      .Blocks(Blocks),
      .Pairs (Pairs)
  ) u_chain (
      .clk_i,
      .rst_i,
      .valid_i,
      .cmd_i,
      .index_i     (tag_i.index),
      .live_i      (wide_live_i),
      .sums_i      (sums_first),
      .sums_stay_i (block_valid ? block_stays : stays),
      .muls_i      (muls_first),
      .half_i      (half_o),
      .wide_next_o (wide_next),
      .wide_late_o (wide_late),
      .half_next_o (half_next),
      .half_late_o (half_late),
      .cmd_o       (next_cmd),
      .live_o      (next_live),
      .factor_o    (late_factor),
      .between_o   (between),
      .uses_acc_o  (late_uses_acc),
      .index_o     (late_index),
      .convert_o   (sum_converts),
      .stay_o      (sum_stays),
      .stay_index_o(stay_index),
      .marks_o     (marks),
      .scale_take_i(to_block),
      .scale_o
  );

  // Of pairs the half lanes add two numbers that other lanes have made; what is then converted they
  // round to odd.
  always_comb begin
    sum_cmd = next_cmd;
    if (Pairs) sum_cmd.use_acc = 1'b1;
    if (sum_converts) {sum_cmd.to, sum_cmd.to_acc, sum_cmd.odd} = {FmtFp32, 1'b1, 1'b1};
  end

  // ---- lanes ------------------------------------------------------------------------------------
  localparam int unsigned Doubles = 8;
  logic float_valid, half_valid, byte_valid, double_valid, int_valid, int_overflow;
  logic converted_valid, late_valid;
  logic [NmcW-1:0] float_res, int_res, late_product, converted_res;
  logic [64*Doubles-1:0] double_res;
  logic [Doubles-1:0] double_live;
  float_flags_t wide_flags, half_flags, byte_flags, double_flags, int_flags, block_flags;
  float_flags_t pair_flags, converted_flags;

  logic [NmcW-1:0] half_a, half_b;
  always_comb begin
    for (int unsigned i = 0; i < Words; i++) begin
      half_a[32*i+:32] = {half_a_q[i], a_q[32*i+:16]};
      half_b[32*i+:32] = {half_b_q[i], b_q[32*i+:16]};
    end
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
      .cmd_i   (wide_cmd_q),
      .late_i  (wide_late),
      .live_i  (wide_live_q),
      .a_i     (a_q),
      .b_i     (b_q),
      .acc_i   ('0),
      .other_i (between),
      .factor_i(wide_late ? late_factor : scalar_q[31:0]),
      .valid_o (float_valid),
      .res_o   (float_res),
      .flags_o (wide_flags)
  );

  weft_nmc_float #(
      .Lanes(Words),
      .Width(32),
      .Half (1'b1)
  ) u_half (
      .clk_i,
      .rst_i,
      .valid_i (half_q),
      .cmd_i   (half_cmd_q),
      .late_i  (half_late),
      .live_i  (half_live_q),
      .a_i     (half_a),
      .b_i     (half_b),
      .acc_i   (half_first_q ? float_res : half_acc),
      .other_i (late_product),
      .factor_i('0),
      .valid_o (half_valid),
      .res_o   (half_o),
      .flags_o (half_flags)
  );

  if (Pairs) begin : gen_pairs
    weft_nmc_pairs u_pairs (
        .clk_i,
        .rst_i,
        .mul_i          (muls_first),
        .from_i         (wide_cmd_q.from),
        .live_i         (wide_live_q),
        .b_i            (b_q),
        .scalar_i       (scalar_q[31:0]),
        .product_valid_o(late_valid),
        .product_o      (late_product),
        .product_flags_o(pair_flags),
        .convert_i      (sum_converts),
        .to_i           (next_cmd.to),
        .saturate_i     (next_cmd.saturate),
        .convert_live_i (next_live),
        .sum_i          (half_o),
        .valid_o        (converted_valid),
        .res_o          (converted_res),
        .flags_o        (converted_flags)
    );
  end else begin : gen_no_pairs
    assign late_valid      = float_valid;
    assign late_product    = float_res;
    assign converted_valid = 1'b0;
    assign converted_res   = '0;
    assign pair_flags      = '0;
    assign converted_flags = '0;
  end

  weft_nmc_float #(
      .Lanes(2 * Words),
      .Width(8),
      .Pitch(16)
  ) u_byte (
      .clk_i,
      .rst_i,
      .valid_i (byte_q),
      .cmd_i   (cmd_q.flt),
      .late_i  (1'b0),
      .live_i  (byte_live_q),
      .a_i     (a_q),
      .b_i     (b_q),
      .acc_i   (byte_acc),
      .other_i ('0),
      .factor_i('0),
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
      .scalar_i  (scalar_q),
      .live_i    (wide_live_q),
      .a_i       (a_q),
      .b_i       (b_q),
      .valid_o   (int_valid),
      .res_o     (int_res),
      .overflow_o(int_overflow)
  );

  logic div_valid;
  logic [NmcW-1:0] div_res;
  logic [NmcW/2-1:0] div_kept;
  if (Products) begin : gen_div
    weft_nmc_div #(
        .Lanes(Words / 2)
    ) u_div (
        .clk_i,
        .rst_i,
        .valid_i  (div_q),
        .cmd_i    (cmd_q.div),
        .divisor_i(scalar_q[DivisorW-1:0]),
        .x_i      (a_q),
        .kept_i   (b_q[NmcW/2-1:0]),
        .valid_o  (div_valid),
        .x_o      (div_res),
        .kept_o   (div_kept)
    );
  end else begin : gen_no_div
    wire unused_div = div_q;
    assign {div_valid, div_res, div_kept} = '0;
  end

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

  wire wide_valid = float_valid && !marks.wide_goes_on;
  wire sum_valid = half_valid && marks.half_ends;
  assign valid_o = wide_valid || sum_valid || converted_valid || double_valid || int_valid ||
                   div_valid || exact_valid || broad_valid;
  assign int_flags = '{overflow: int_overflow, default: 1'b0};
  assign block_flags = '{
      overflow: overflow_q[FloatLatency+1],
      inexact: overflow_q[FloatLatency+1],
      default: 1'b0
  };

  // Clamping a number is no overflow of a block, an infinity in it is; see weft_nmc_mx_scale.
  logic      to_block_q, spill_q;
  mx_scale_t scale_q;
  float_flags_t of_wide, of_chains;
  always_comb begin
    of_wide = wide_flags;
    if (Blocks && to_block_q) begin
      of_wide.overflow = scale_q.infinite && !spill_q;
      of_wide.inexact  = scale_q.none ? scale_q.infinite && !spill_q : wide_flags.inexact;
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_o) begin
      scale_q <= scale_o;
      spill_q <= tag_o.spill;
    end
    if (rst_i) to_block_q <= 1'b0;
    else to_block_q <= to_block;
  end

  weft_nmc_flags u_flags (
      .clk_i,
      .rst_i,
      .marks_i    (marks),
      .wide_i     (wide_flags),
      .result_i   (of_wide),
      .half_i     (half_flags | block_flags),
      .pair_i     (pair_flags),
      .converted_i(converted_flags),
      .flags_o    (of_chains)
  );

  assign flags_o = of_chains | byte_flags | double_flags | int_flags | exact_flags | broad_flags;

  always_comb begin
    wide_o = float_valid ? float_res : int_res;
    if (Products && marks.half_ends) wide_o = half_o;
    if (converted_valid) wide_o = converted_res;
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
      .s_valid_i(valid_i && !stays),
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

  // Steps of blocks ask later than others, and fill words.
  nmc_layout_t acc_layout;
  always_comb begin
    acc_layout = layout_i;
    if (block_use_acc) {acc_layout.shape, acc_layout.parts} = {Wide32, 1'b0};
  end

  weft_nmc_acc #(
      .Products(Products)
  ) u_acc (
      .clk_i,
      .rst_i,
      .use_acc_i((use_acc_i && !layout_i.from_block) || block_use_acc),
      .use_kept_i,
      .layout_i(acc_layout),
      .index_i(block_use_acc ? block_index : index_i),
      .late_i (half_next && late_uses_acc),
      .late_index_i(late_index),
      .stay_i (sum_stays),
      .stay_index_i(stay_index),
      .wide_o (wide_acc),
      .half_o (half_acc),
      .byte_o (byte_acc),
      .kept_o (kept),
      .valid_i(valid_o),
      .tag_i  (tag_o),
      .wide_i (div_valid ? div_res : wide_o),  // quotients are never results
      .kept_i (div_valid ? div_kept : wide_o[NmcW/2-1:0]),
      .half_i (half_o),
      .byte_i (byte_o)
  );

  `WEFT_IMPLIES(ProductIsThere, half_late, late_valid && (!half_first_q || float_valid));
  `WEFT_ASSERT(OneStepToTheLanes, !(plain && block_valid));
  `WEFT_ASSERT(NoCollision, $onehot0({wide_valid, sum_valid, converted_valid, double_valid,
               int_valid, div_valid, exact_valid, broad_valid}));
  `WEFT_IMPLIES(QuotientStays, div_valid, tag_o.to_acc && tag_o.to_kept);
  `WEFT_ASSERT(OneStepToWide, !wide_next || !((block_valid && !block_sum) || muls_first ||
               (plain && cmd_i.which inside {LaneFloat, LaneMul})));
  `WEFT_ASSERT(OneStepToHalf, !(half_next && (parts || sums_first)));
  `WEFT_IMPLIES(ResultHasTag, valid_o, tag_here);
  `WEFT_IMPLIES(TagHasRoom, valid_i, tag_room);
  `WEFT_IMPLIES(SmallOnesTogether, byte_valid, half_valid && wide_valid);

endmodule

`default_nettype wire
