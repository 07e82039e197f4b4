// SPDX-License-Identifier: Apache-2.0
//
// Lanes for fp64: sum, maximum, minimum, product, and conversion from and to the narrower floats,
// round to nearest even, subnormals in full, one canonical quiet NaN.
//
// No handshake: operands with valid_i in cycle t, result in t + DoubleLatency, of a product in
// t + DoubleMulLatency, one step a cycle. Two results must not meet: no other step may start
// DoubleMulLatency - DoubleLatency cycles behind a product (asserted).
//
// Steps are those of weft_nmc_float, with the same commands and for the same reasons, where FmtFp64
// is the widest format: with to_acc a result is all 64 bits of its word, the fields of an fp64 with
// the bias of `to`; to = FmtFp64 leaves a true fp64, and only that may be a factor. An fp64 is
// 64-bit word l; a narrower element lies at the top of the LOWER half of word l, and so do narrower
// results. The upper half of such operands is not looked at, the bits below and above such results
// are undefined.
//
// What a lane with live_i = 0 computes raises no flag. The rules are sw/ref/numerics.h's;
// docs/nmc.md has the table.
//
//   0  expand                             5  left-normalise by 16s, as far as the exponent allows
//   1  compare the magnitudes             6  by 4s
//   2  larger one first, their distance,  7  by 1s
//      the other one to the right by 32
//   3  by 8s, and from 64 on              8  decide the rounding
//   4  by 2s and 1; add or subtract       9  round, pack
// A product leaves at stage 2, has its smaller factor normalised, and joins there again: as the
// smaller operand of a sum with 0, so that stages 3 and 4 make it subnormal where it has to be.
// What of this is as in weft_nmc_float is explained there.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_double
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Lanes = 8,
    parameter bit          Mul   = 1'b1
) (
    input  wire                      clk_i,
    input  wire                      rst_i,
    // A step. Lane i takes word i of a_i and b_i; with use_acc a is what to_acc left.
    input  wire                      valid_i,
    input  wire  float_cmd_t         cmd_i,
    input  wire  [      Lanes-1:0]   live_i,
    input  wire  [   Lanes*64-1:0]   a_i,
    input  wire  [   Lanes*64-1:0]   b_i,
    // Its result: word i of lane i.
    output logic                     valid_o,
    output logic [   Lanes*64-1:0]   res_o,
    // What any live lane raised, one cycle behind the result; 0 when there is none.
    output float_flags_t             flags_o
);

  localparam int unsigned ExpW = 11;
  localparam int unsigned FracW = 52;
  localparam int unsigned MagW = ExpW + FracW;
  localparam int unsigned AlnW = FracW + 3;  // smaller significand, guard and round bit
  localparam int unsigned SumW = FracW + 4;  // larger one, with room for the carry
  localparam int unsigned ProdExpW = ExpW + 2;
  localparam int unsigned Stages = DoubleLatency - 1;  // behind stage 0
  localparam int unsigned MulStages = DoubleMulLatency - DoubleLatency;
  localparam logic [ExpW-1:0] ExpMax = '1;

  typedef logic [ExpW-1:0] exp_t;
  typedef logic [FracW:0] sig_t;  // with the hidden bit
  typedef logic [AlnW-1:0] aln_t;
  typedef logic [SumW-1:0] sum_t;
  typedef logic signed [ProdExpW-1:0] prod_exp_t;

  // The fields of an fp64, with the bias of its format; all ones in the exponent: infinity or NaN.
  typedef struct packed {
    logic             neg;
    exp_t             expo;
    logic [FracW-1:0] frac;
  } val_t;

  // ---- what the stages compute ------------------------------------------------------------------
  function automatic exp_t bias_of(float_fmt_e fmt);
    return (fmt == FmtFp64) ? 11'd1023 : exp_t'(float_bias(fmt));
  endfunction

  // A format, one bit each.
  typedef struct packed {
    logic f64;
    logic f32;
    logic b16;
    logic f16;
    logic e5m2;
    logic e4m3;
  } format_t;

  function automatic format_t format_of(float_fmt_e fmt);
    return '{
        f64: fmt == FmtFp64,
        f32: fmt == FmtFp32,
        b16: fmt == FmtBf16,
        f16: fmt == FmtFp16,
        e5m2: fmt == FmtE5m2,
        e4m3: fmt == FmtE4m3
    };
  endfunction

  // Of an operand.
  typedef struct packed {
    logic normal;   // the exponent field is not 0
    logic special;  // infinity or NaN
    logic frac;     // the fraction is not 0
    logic low;      // ... in what a shift by 32 drops
  } sort_t;

  function automatic sort_t sort(val_t x);
    logic low;
    low = x.frac[29:0] != '0;
    return '{normal: x.expo != '0, special: x.expo == ExpMax, frac: low || x.frac[51:30] != '0,
             low: low};
  endfunction

  // How an operand becomes the fields above. By the width of its exponent, so that a bit is one
  // LUT; bits of the fraction that a format does not have are cleared by the registers.
  typedef enum logic [1:0] {
    Exp11,
    Exp8,
    Exp5,
    Exp4
  } width_e;

  typedef struct packed {
    width_e width;
    logic   narrow;   // nothing below bit 29
    logic   clear_8;  // ... bit 45
    logic   clear_5;  // ... bit 50
  } source_t;

  function automatic source_t source_of(float_fmt_e fmt);
    return '{
        width: (fmt == FmtFp64) ? Exp11 : float_exp8(fmt) ? Exp8 : float_exp5(fmt) ? Exp5 : Exp4,
        narrow: fmt != FmtFp64,
        clear_8: fmt == FmtBf16 || fmt == FmtE5m2,
        clear_5: fmt == FmtE5m2
    };
  endfunction

  function automatic val_t expand(logic [63:0] word, source_t from);
    logic [30:0] x;
    val_t y;
    x     = word[30:0];
    y.neg = from.narrow ? word[31] : word[63];
    unique case (from.width)
      Exp11: {y.expo, y.frac[51:29]} = word[62:29];
      Exp8:  {y.expo, y.frac[51:29]} = {{3{x[30:23] == '1}}, x};
      Exp5:  {y.expo, y.frac[51:29]} = {{6{x[30:26] == '1}}, x[30:16], 13'd0};
      Exp4:  {y.expo, y.frac[51:29]} = {{7{x[30:24] == '1}}, x[30:24], 20'd0};
    endcase
    y.frac[28:0] = word[28:0];
    if (from.narrow) y.frac[28:0] = '0;
    if (from.clear_8) y.frac[44:29] = '0;
    if (from.clear_5) y.frac[49:45] = '0;
    return y;
  endfunction

  // What the choice between two operands depends on.
  typedef struct packed {
    logic a_ge;   // by magnitude
    logic a_neg;
    logic b_neg;
    logic a_nan;
    logic b_nan;
  } order_t;

  // Whether a (else b) is the operand that survives.
  function automatic logic take_a(float_op_e op, logic propagate_nan, order_t x);
    logic a_wins;
    a_wins = (x.a_neg != x.b_neg) ? x.a_neg ^ (op == FloatMax) :
                                    x.a_ge ^ x.a_neg ^ (op == FloatMin);
    if (op != FloatMax && op != FloatMin) return x.a_ge;
    if (propagate_nan) return x.a_nan || (!x.b_nan && a_wins);
    return x.b_nan || (!x.a_nan && a_wins);
  endfunction

  // Right shifts that keep what falls out as one sticky bit: {shifted, sticky}. Here by 8s, and by
  // 64 and more.
  function automatic logic [AlnW:0] shift_8(aln_t x, exp_t diff);
    logic low8, low16, low24;
    low8  = x[7:0] != '0;
    low16 = low8 || x[15:8] != '0;
    low24 = low16 || x[23:16] != '0;
    if (diff[ExpW-1:6] != '0) return {aln_t'(0), x != '0};
    unique case (diff[4:3])
      2'd0: return {x, 1'b0};
      2'd1: return {x >> 8, low8};
      2'd2: return {x >> 16, low16};
      2'd3: return {x >> 24, low24};
    endcase
  endfunction

  function automatic logic [AlnW:0] shift_2(aln_t x, logic [1:0] steps);
    unique case (steps)
      2'd0: return {x, 1'b0};
      2'd1: return {x >> 2, x[1:0] != '0};
      2'd2: return {x >> 4, x[3:0] != '0};
      2'd3: return {x >> 6, x[5:0] != '0};
    endcase
  endfunction

  // Of four groups from the top, how many are empty before the first that is not, but no more than
  // `left` unless there is `rest` above it.
  function automatic logic [1:0] empty(logic [2:0] used, logic rest, logic [1:0] left);
    if (used[2] || (!rest && left == 2'd0)) return 2'd0;
    if (used[1] || (!rest && left == 2'd1)) return 2'd1;
    if (used[0] || (!rest && left == 2'd2)) return 2'd2;
    return 2'd3;
  endfunction

  // Left shifts by up to three units. The distance is in Gray code, so that no two choices of two
  // are alike but for their place: else a mapper may share them, and takes two LUTs a bit for one.
  function automatic sum_t left_16(sum_t x, logic [1:0] n);
    unique case ({n[1], n[1] ^ n[0]})
      2'b00: return x;
      2'b01: return x << 16;
      2'b11: return x << 32;
      2'b10: return x << 48;
    endcase
  endfunction

  function automatic sum_t left_4(sum_t x, logic [1:0] n);
    unique case ({n[1], n[1] ^ n[0]})
      2'b00: return x;
      2'b01: return x << 4;
      2'b11: return x << 8;
      2'b10: return x << 12;
    endcase
  endfunction

  function automatic sum_t left_1(sum_t x, logic [1:0] n);
    unique case ({n[1], n[1] ^ n[0]})
      2'b00: return x;
      2'b01: return x << 1;
      2'b11: return x << 2;
      2'b10: return x << 3;
    endcase
  endfunction

  // Left shifts of a factor, by 16s, then by 4s and 1s: {shifted, shift}.
  function automatic logic [FracW+2:0] normalise_16(sig_t x);
    logic [1:0] steps;
    steps = empty({x[52:37] != '0, x[36:21] != '0, x[20:5] != '0}, 1'b1, 2'd0);
    return {sig_t'(left_16(sum_t'(x), steps)), steps};
  endfunction

  function automatic logic [FracW+4:0] normalise_4_1(sig_t x);
    logic [1:0] by4, by1;
    sig_t y;
    by4 = empty({x[52:49] != '0, x[48:45] != '0, x[44:41] != '0}, 1'b1, 2'd0);
    y   = sig_t'(left_4(sum_t'(x), by4));
    by1 = empty(y[52:50], 1'b1, 2'd0);
    return {sig_t'(left_1(sum_t'(y), by1)), by4, by1};
  endfunction

  // {last bit kept, first bit dropped, anything dropped below it} for a rounding to `to`.
  function automatic logic [2:0] cut(sum_t x, logic sticky, format_t to);
    logic low2, low30, low43, low46, low50;
    low2  = sticky || x[1:0] != '0;
    low30 = low2 || x[30:2] != '0;
    low43 = low30 || x[43:31] != '0;
    low46 = low43 || x[46:44] != '0;
    low50 = low46 || x[50:47] != '0;
    return ({3{to.f64}} & {x[3:2], low2}) | ({3{to.f32}} & {x[32:31], low30}) |
           ({3{to.b16}} & {x[48:47], low46}) | ({3{to.f16}} & {x[45:44], low43}) |
           ({3{to.e5m2}} & {x[53:52], low50 || x[51]}) | ({3{to.e4m3}} & {x[52:51], low50});
  endfunction

  // Bit of the fraction that is the last of `to`.
  function automatic logic [FracW-1:0] last_place(format_t to);
    logic [FracW-1:0] place;
    place     = '0;
    place[0]  = to.f64;
    place[29] = to.f32;
    place[45] = to.b16;
    place[42] = to.f16;
    place[50] = to.e5m2;
    place[49] = to.e4m3;
    return place;
  endfunction

  // Whether a number, with the hidden bit still to be added to its exponent field, is beyond `to`
  // when it is rounded `up` or not. Looked at beside the rounding and not behind it. An exponent of
  // 2046 is beyond fp64 in any case and has been dealt with.
  function automatic logic beyond(exp_t expo, logic [FracW-1:0] frac, logic up, format_t to);
    logic ones2, ones7, ones10, ones23;
    ones2  = frac[51:50] == '1;
    ones7  = ones2 && frac[49:45] == '1;
    ones10 = ones7 && frac[44:42] == '1;
    ones23 = ones10 && frac[41:29] == '1;
    return (to.f64 && expo == 11'd2045 && frac == '1 && up) ||
           ((to.f32 || to.b16) && expo >= 11'd254) ||
           (expo == 11'd253 && up && ((to.f32 && ones23) || (to.b16 && ones7))) ||
           ((to.f16 || to.e5m2) && expo >= 11'd30) ||
           (expo == 11'd29 && up && ((to.f16 && ones10) || (to.e5m2 && ones2))) ||
           (to.e4m3 && (expo >= 11'd15 || (expo == 11'd14 && ones2 && (frac[49] || up))));
  endfunction

  // Exponent of the smallest normal number of `to`, as a field of an fp64.
  function automatic exp_t lowest_of(float_fmt_e to);
    unique case (to)
      FmtE4m3: return 11'd1017;
      FmtE5m2, FmtFp16: return 11'd1009;
      FmtBf16, FmtFp32: return 11'd897;
      default: return 11'd0;
    endcase
  endfunction

  // ---- valid and command ------------------------------------------------------------------------
  // One copy for all lanes; index = the stage whose registers they belong to. What the stages from
  // the first shift on need:
  typedef struct packed {
    format_t     round;     // where to round
    logic [10:3] delta;     // between the biases
    logic        odd;
    logic        saturate;
  } back_t;

  logic                 v0_q, v1_q;
  float_cmd_t           cmd0_q, cmd1_q;
  logic                 mul2_q;  // there are factors of a product in stage 2
  logic                 prod2_q;  // there is a product in stage 2
  logic [MulStages+1:3] mul_q;   // ... of stages 3 to 7 a product
  logic [Stages-1:2]    valid_q;
  back_t                back_q     [2:Stages-1];
  exp_t                 lowest0_q;   // of the zero that a conversion adds
  exp_t                 bias_to1_q;  // of a product's result, + 1
  logic [ExpW:0]        bias_of1_q;  // of its factors, the sum
  prod_exp_t            bias2_q, bias3_q;
  back_t                mul_back_q [2:MulStages+1];

  wire mul_in = Mul && cmd1_q.op == FloatMul;
  wire merge = Mul && mul_q[MulStages+1];

  function automatic back_t back_of(float_cmd_t cmd);
    back_t x;
    x.round    = format_of(cmd.to_acc ? FmtFp64 : cmd.to);
    x.delta    = (Mul && cmd.op == FloatMul) ? '0 : 8'((bias_of(cmd.to) - bias_of(cmd.from)) >> 3);
    x.odd      = cmd.odd;
    x.saturate = cmd.saturate && !cmd.to_acc;
    return x;
  endfunction

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      v0_q    <= 1'b0;
      v1_q    <= 1'b0;
      mul2_q  <= 1'b0;
      prod2_q <= 1'b0;
      mul_q   <= '0;
      valid_q <= '0;
      valid_o <= 1'b0;
    end else begin
      v0_q    <= valid_i;
      v1_q    <= v0_q;
      mul2_q  <= v1_q && mul_in;
      prod2_q <= merge;
      mul_q   <= {mul_q[MulStages:3], mul2_q};
      valid_q <= {valid_q[Stages-2:2], (v1_q && !mul_in) || merge};
      valid_o <= valid_q[Stages-1];
    end
  end

  // ---- stage registers --------------------------------------------------------------------------
  val_t             a0_q     [Lanes];
  val_t             b0_q     [Lanes];

  val_t             a1_q     [Lanes];
  val_t             b1_q     [Lanes];
  sort_t            asort1_q [Lanes];
  sort_t            bsort1_q [Lanes];
  logic             a_ge1_q  [Lanes];  // by magnitude

  sig_t             big2_q   [Lanes];  // also of the factors of a product
  aln_t             sml2_q   [Lanes];  // already shifted by 32
  logic             below2_q [Lanes];  // there are bits below it
  logic             low2_q   [Lanes];  // ... if diff2_q[5] says so: of a product
  exp_t             exp2_q   [Lanes];  // of the larger one, effective: 1 for subnormals
  exp_t             diff2_q  [Lanes];
  logic             sign2_q  [Lanes];
  logic             sub2_q   [Lanes];
  logic             spec2_q  [Lanes];  // an operand makes the result an infinity or NaN
  logic             nan2_q   [Lanes];
  logic [Lanes-1:0] invalid2_q;

  sig_t             big3_q   [Lanes];
  aln_t             sml3_q   [Lanes];
  logic             sticky3_q[Lanes];
  logic [2:0]       fine3_q  [Lanes];
  exp_t             exp3_q   [Lanes];  // from here on with the bias of the result
  logic             sign3_q  [Lanes];
  logic             sub3_q   [Lanes];
  logic             spec3_q  [Lanes];
  logic             nan3_q   [Lanes];

  sum_t             sum4_q   [Lanes];
  logic             sticky4_q[Lanes];
  exp_t             exp4_q   [Lanes];
  logic             sign4_q  [Lanes];
  logic             sub4_q   [Lanes];
  logic             spec4_q  [Lanes];
  logic             nan4_q   [Lanes];

  sum_t             sum5_q   [Lanes];
  logic             sticky5_q[Lanes];
  exp_t             exp5_q   [Lanes];  // still without the shifts
  logic [1:0]       by16_5_q [Lanes];
  logic             rest5_q  [Lanes];  // 16 or more of the exponent are left
  logic             sign5_q  [Lanes];
  logic             over5_q  [Lanes];  // infinity by overflow
  logic             spec5_q  [Lanes];
  logic             nan5_q   [Lanes];

  sum_t             sum6_q   [Lanes];
  logic             sticky6_q[Lanes];
  exp_t             exp6_q   [Lanes];
  logic [3:0]       shift6_q [Lanes];  // 16s and 4s
  logic             rest6_q  [Lanes];  // 4 or more of the exponent are left
  logic             sign6_q  [Lanes];
  logic             over6_q  [Lanes];
  logic             spec6_q  [Lanes];
  logic             nan6_q   [Lanes];

  sum_t             sum7_q   [Lanes];
  logic             sticky7_q[Lanes];
  exp_t             exp7_q   [Lanes];
  logic [5:0]       shift7_q [Lanes];
  logic             sign7_q  [Lanes];
  logic             over7_q  [Lanes];
  logic             spec7_q  [Lanes];
  logic             nan7_q   [Lanes];

  logic [FracW-1:0] frac8_q  [Lanes];
  exp_t             exp8_q   [Lanes];
  logic             hidden8_q[Lanes];
  logic             up8_q    [Lanes];  // round up
  logic             lost8_q  [Lanes];  // rounded at all
  logic             sign8_q  [Lanes];
  logic             fixed8_q [Lanes];  // infinity or NaN, no rounding
  logic             spec8_q  [Lanes];
  logic             nan8_q   [Lanes];

  logic [Lanes-1:0] over9_q, lost9_q;

  // Marks of live lanes, and whether one was invalid, beside the lanes; index = stage.
  logic [Lanes-1:0] live0_q, live1_q;
  logic [Lanes-1:0] live_q     [2:Stages];
  logic [Lanes-1:0] mul_live_q [2:MulStages+1];
  logic [Stages:3]  invalid_q;

  // Products, from their own registers of stage 2 to those above. Limbs: the larger factor in 26,
  // 26 and 1 bits, the smaller one in 17, 17, 17 and 2. Their products are pieces of 43 bits (28),
  // every other one of which joins another without overlap: so they are six rows and not nine.
  sig_t             msml2_q  [Lanes];
  exp_t             mexp2_q  [Lanes];
  exp_t             msexp2_q [Lanes];
  logic [2:0]       mkind2_q [Lanes];  // {sign, special, NaN}

  sig_t             mbig3_q  [Lanes];
  sig_t             msml3_q  [Lanes];
  logic [1:0]       mshift3_q[Lanes];
  prod_exp_t        mexp3_q  [Lanes];
  logic             mzero3_q [Lanes];  // the smaller factor is 0
  logic [2:0]       mkind3_q [Lanes];

  sig_t             mbig4_q  [Lanes];
  sig_t             msml4_q  [Lanes];
  logic [5:0]       mshift4_q[Lanes];
  prod_exp_t        mexp4_q  [Lanes];
  logic [3:0]       mkind4_q [Lanes];  // {invalid, sign, special, NaN}

  logic [42:0]      mlow5_q  [Lanes][4];  // a limb of the smaller factor times limb 0 of the larger
  logic [42:0]      mhigh5_q [Lanes][4];  // ... times limb 1
  sig_t             mtop5_q  [Lanes];     // the smaller factor, times limb 2
  prod_exp_t        mexp5_q  [Lanes];
  logic [3:0]       mkind5_q [Lanes];

  logic [102:0]     modd6_q  [Lanes];  // from bit 0 on
  logic [105:26]    meven6_q [Lanes];
  logic [79:51]     mrest6_q [Lanes];
  prod_exp_t        mexp6_q  [Lanes];
  logic [3:0]       mkind6_q [Lanes];

  logic [105:26]    mboth7_q [Lanes];  // the first two of these
  logic             below7_q [Lanes];  // ... are not 0 below
  logic [79:51]     mrest7_q [Lanes];
  prod_exp_t        mexp7_q  [Lanes];
  prod_exp_t        mdiff7_q [Lanes];  // 1 - exponent
  logic [3:0]       mkind7_q [Lanes];

  // Last stage first, with blocking assignments, as in weft_nmc_float.
  always_ff @(posedge clk_i) begin
    if (valid_q[8]) begin
      automatic logic [Lanes*64-1:0] res;
      automatic back_t back = back_q[8];
      automatic logic [FracW-1:0] place = last_place(back.round);
      automatic logic four = back.round.e4m3;
      automatic logic five = back.round.e5m2 || back.round.f16;
      automatic logic eight = back.round.b16 || back.round.f32;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [MagW:0] addend = {exp_t'(hidden8_q[i]), place & {FracW{up8_q[i]}}, 1'b1};
        automatic logic [MagW:0] wide = {exp8_q[i], frac8_q[i], 1'b0} + addend;
        automatic exp_t expo = wide[MagW:FracW+1];
        automatic logic [FracW-1:0] frac = wide[FracW:1];
        automatic logic nan = nan8_q[i];
        automatic logic over = fixed8_q[i] || beyond(exp8_q[i], frac8_q[i], up8_q[i], back.round);
        automatic logic clamp = back.saturate && !nan;
        automatic logic [63:0] word = {sign8_q[i], expo, frac};
        if (eight) begin
          word[31:0] = {sign8_q[i], expo[7:0] | {8{over}}, frac[51:29] & {23{!over}}};
          word[22] = over ? nan : frac[51];
        end else if (five) begin
          word[31:16] = {sign8_q[i], expo[4:0], frac[51:42]};
          if (over) word[30:16] = clamp ? 15'h7b00 : {5'h1f, nan, 9'd0};
        end else if (four) begin
          word[31:24] = {sign8_q[i], over ? {6'h3f, !clamp} : {expo[3:0], frac[51:49]}};
          if (over && !clamp) word[31] = 1'b0;
        end
        res[i*64+:64] = word;
        over9_q[i] <= over && (!spec8_q[i] || (!nan && (four || back.saturate)));
        lost9_q[i] <= lost8_q[i];
      end
      res_o <= res;
      live_q[9]    <= live_q[8];
      invalid_q[9] <= invalid_q[8];
    end

    if (valid_q[7]) begin
      automatic back_t back = back_q[7];
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic sum_t sum = sum7_q[i];
        automatic logic hidden = sum[SumW-1];
        automatic logic odd, half, below;
        automatic logic [ExpW:0] left = {exp7_q[i], 1'b1} + {5'h1f, ~shift7_q[i], 1'b1};
        automatic logic fixed = over7_q[i] || spec7_q[i];
        {odd, half, below} = cut(sum, sticky7_q[i], back.round);
        lost8_q[i] = (half || below) && !spec7_q[i];
        frac8_q[i] = sum[SumW-2:3];
        if (back.odd && (half || below)) frac8_q[i][0] = 1'b1;
        if (fixed) frac8_q[i] = {nan7_q[i], {(FracW - 1) {1'b0}}};
        // Without a hidden bit the number is subnormal or zero: field 0.
        exp8_q[i]    = fixed ? ExpMax : !hidden ? '0 : left[ExpW:1];
        hidden8_q[i] = hidden && !fixed;
        up8_q[i]     = half && (odd || below) && !back.odd && !fixed;
        sign8_q[i]   = sign7_q[i] && !nan7_q[i];
        fixed8_q[i]  = fixed;
        spec8_q[i]   = spec7_q[i];
        nan8_q[i]    = nan7_q[i];
      end
      back_q[8]    <= back_q[7];
      live_q[8]    <= live_q[7];
      invalid_q[8] <= invalid_q[7];
    end

    if (valid_q[6]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [1:0] steps = empty(sum6_q[i][SumW-1-:3], rest6_q[i], exp6_q[i][1:0]);
        sum7_q[i]    = left_1(sum6_q[i], steps);
        shift7_q[i]  = {shift6_q[i], steps};
        exp7_q[i]    = exp6_q[i];
        sticky7_q[i] = sticky6_q[i];
        sign7_q[i]   = sign6_q[i];
        over7_q[i]   = over6_q[i];
        spec7_q[i]   = spec6_q[i];
        nan7_q[i]    = nan6_q[i];
      end
      back_q[7]    <= back_q[6];
      live_q[7]    <= live_q[6];
      invalid_q[7] <= invalid_q[6];
    end

    if (valid_q[5]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic sum_t sum = sum5_q[i];
        automatic logic [2:0] used = {sum[55:52] != '0, sum[51:48] != '0, sum[47:44] != '0};
        automatic logic [1:0] steps = empty(used, rest5_q[i], exp5_q[i][3:2]);
        sum6_q[i]    = left_4(sum, steps);
        shift6_q[i]  = {by16_5_q[i], steps};
        rest6_q[i]   = rest5_q[i] || exp5_q[i][3:2] != steps;
        exp6_q[i]    = exp5_q[i];
        sticky6_q[i] = sticky5_q[i];
        sign6_q[i]   = sign5_q[i];
        over6_q[i]   = over5_q[i];
        spec6_q[i]   = spec5_q[i];
        nan6_q[i]    = nan5_q[i];
      end
      back_q[6]    <= back_q[5];
      live_q[6]    <= live_q[5];
      invalid_q[6] <= invalid_q[5];
    end

    if (valid_q[4]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic sum_t sum = sum4_q[i];
        automatic logic [1:0] steps = empty({sum[55:40] != '0, sum[39:24] != '0, sum[23:8] != '0},
                                            exp4_q[i][10:6] != '0, exp4_q[i][5:4]);
        sum5_q[i]    = left_16(sum, steps);
        by16_5_q[i]  = steps;
        rest5_q[i]   = exp4_q[i][10:6] != '0 || exp4_q[i][5:4] != steps;
        exp5_q[i]    = exp4_q[i];
        sticky5_q[i] = sticky4_q[i];
        sign5_q[i]   = sign4_q[i] && !(sub4_q[i] && sum == '0);  // x - x = +0
        // A product comes with the exponent of its highest bit, up to ExpMax.
        over5_q[i]   = exp4_q[i][ExpW-1:1] == '1 && (exp4_q[i][0] ? sum[SumW-2] : sum[SumW-1]);
        spec5_q[i]   = spec4_q[i];
        nan5_q[i]    = nan4_q[i];
      end
      back_q[5]    <= back_q[4];
      live_q[5]    <= live_q[4];
      invalid_q[5] <= invalid_q[4];
    end

    if (valid_q[3]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic aln_t sml;
        automatic logic sticky2, sticky1, sticky;
        automatic logic [SumW:0] wide;
        {sml, sticky2} = shift_2(sml3_q[i], fine3_q[i][2:1]);
        sticky1 = sml[0] && fine3_q[i][0];
        if (fine3_q[i][0]) sml = sml >> 1;  // in the LUT of the sum
        sticky = sticky3_q[i] || sticky2 || sticky1;
        // What fell out belongs to the subtrahend: it takes the place of the + 1 of its complement.
        wide = {1'b0, big3_q[i], 2'b00, 1'b1} +
               {{1'b0, sml} ^ {SumW{sub3_q[i]}}, sub3_q[i] && !sticky};
        sum4_q[i]    = wide[SumW:1];
        sticky4_q[i] = sticky;
        exp4_q[i]    = exp3_q[i];
        sign4_q[i]   = sign3_q[i];
        sub4_q[i]    = sub3_q[i];
        spec4_q[i]   = spec3_q[i];
        nan4_q[i]    = nan3_q[i];
      end
      back_q[4]    <= back_q[3];
      live_q[4]    <= live_q[3];
      invalid_q[4] <= invalid_q[3];
    end

    if (valid_q[2]) begin
      automatic exp_t delta = {back_q[2].delta, 3'd0};
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        {sml3_q[i], sticky3_q[i]} = shift_8(sml2_q[i], diff2_q[i]);
        sticky3_q[i] |= below2_q[i] || (low2_q[i] && diff2_q[i][5]);
        fine3_q[i] = diff2_q[i][2:0];
        big3_q[i]  = prod2_q ? '0 : big2_q[i];  // of a product that has just come in it is not
        exp3_q[i]  = exp2_q[i] + delta;
        sign3_q[i] = sign2_q[i];
        sub3_q[i]  = sub2_q[i];
        spec3_q[i] = spec2_q[i];
        nan3_q[i]  = nan2_q[i];
      end
      back_q[3]    <= back_q[2];
      live_q[3]    <= live_q[2];
      invalid_q[3] <= (invalid2_q & live_q[2]) != '0;
    end

    if (Mul && (mul2_q || mul_q[MulStages:3] != '0)) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        // Not blocking: what closes the circle reads these below.
        if (mul_q[6]) begin
          mboth7_q[i] <= 80'(modd6_q[i][102:26]) + meven6_q[i];
          below7_q[i] <= modd6_q[i][25:0] != '0;
          mrest7_q[i] <= mrest6_q[i];
          mexp7_q[i]  <= mexp6_q[i];
          mdiff7_q[i] <= prod_exp_t'(1) - mexp6_q[i];
          mkind7_q[i] <= mkind6_q[i];
        end
        if (mul_q[5]) begin
          // Piece r of limb 0 starts at bit 17 r, of limb 1 at 26 + 17 r; the smaller factor, times
          // limb 2, at bit 52.
          automatic logic [102:17] odd = 86'({mhigh5_q[i][1], mlow5_q[i][0][42:17]}) +
                                         {mhigh5_q[i][2], mlow5_q[i][1]};
          modd6_q[i]  = {odd, mlow5_q[i][0][16:0]};
          meven6_q[i] = {{1'b0, mtop5_q[i][52:17], mhigh5_q[i][0][42:8]} +
                        {1'b0, mhigh5_q[i][3][27:0], mlow5_q[i][2]}, mhigh5_q[i][0][7:0]};
          mrest6_q[i] = 29'(mlow5_q[i][3][27:0]) + {11'd0, mtop5_q[i][16:0], 1'b0};
          mexp6_q[i]  = mexp5_q[i];
          mkind6_q[i] = mkind5_q[i];
        end
        if (mul_q[4]) begin
          for (int unsigned r = 0; r < 4; r++) begin
            automatic logic [16:0] limb = 17'(msml4_q[i] >> (17 * r));
            mlow5_q[i][r]  = 43'(mbig4_q[i][25:0]) * 43'(limb);
            mhigh5_q[i][r] = 43'(mbig4_q[i][51:26]) * 43'(limb);
          end
          mtop5_q[i]  = msml4_q[i];
          if (!mbig4_q[i][52]) mtop5_q[i] = '0;
          mexp5_q[i]  = mexp4_q[i] - prod_exp_t'({1'b0, mshift4_q[i]});
          mkind5_q[i] = mkind4_q[i];
        end
        if (mul_q[3]) begin
          automatic logic [3:0] shift;
          automatic logic invalid = mkind3_q[i][1] && !mkind3_q[i][0] && mzero3_q[i];
          mbig4_q[i]   = mbig3_q[i];
          {msml4_q[i], shift} = normalise_4_1(msml3_q[i]);
          mshift4_q[i] = {mshift3_q[i], shift};
          mexp4_q[i]   = mexp3_q[i] + bias3_q;
          mkind4_q[i]  = {invalid, mkind3_q[i][2:1], mkind3_q[i][0] || invalid};
        end
        if (mul2_q) begin
          {msml3_q[i], mshift3_q[i]} = normalise_16(msml2_q[i]);
          mbig3_q[i]   = big2_q[i];
          mexp3_q[i]   = prod_exp_t'({1'b0, mexp2_q[i]}) + prod_exp_t'({1'b0, msexp2_q[i]});
          mzero3_q[i]  = msml2_q[i] == '0;
          mkind3_q[i]  = mkind2_q[i];
        end
      end
      bias3_q <= bias2_q;
      for (int unsigned i = 3; i <= MulStages + 1; i++) begin
        mul_back_q[i] <= mul_back_q[i-1];
        mul_live_q[i] <= mul_live_q[i-1];
      end
    end

    if (v1_q || merge) begin
      automatic logic add = cmd1_q.op != FloatMax && cmd1_q.op != FloatMin;
      automatic logic convert = cmd1_q.op == FloatConvert;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic sort_t asort = asort1_q[i];
        automatic sort_t bsort = bsort1_q[i];
        automatic order_t order = '{
            a_ge: a_ge1_q[i],
            a_neg: a1_q[i].neg,
            b_neg: b1_q[i].neg,
            a_nan: asort.special && asort.frac,
            b_nan: bsort.special && bsort.frac
        };
        automatic logic use_a = take_a(cmd1_q.op, cmd1_q.propagate_nan, order);
        automatic val_t big = use_a ? a1_q[i] : b1_q[i];
        automatic logic bnz = use_a ? asort.normal : bsort.normal;
        // Maximum and minimum have no smaller operand; for the rest the order is that of
        // magnitudes.
        automatic val_t high = order.a_ge ? a1_q[i] : b1_q[i];
        automatic val_t low = order.a_ge ? b1_q[i] : a1_q[i];
        automatic logic hnz = order.a_ge ? asort.normal : bsort.normal;
        automatic logic lnz = order.a_ge ? bsort.normal : asort.normal;
        // The zero that a conversion adds has no hidden bit whatever its exponent is.
        automatic logic bhidden = use_a ? asort.normal : bsort.normal && !convert;
        automatic logic lhidden = order.a_ge ? bsort.normal && !convert : asort.normal;
        automatic logic unlike = order.a_neg != order.b_neg;
        automatic logic invalid = cmd1_q.op == FloatSum && unlike && asort.special &&
                                  bsort.special && !asort.frac && !bsort.frac;
        automatic logic special = use_a ? asort.special : bsort.special;
        automatic logic nan = (use_a ? order.a_nan : order.b_nan) || invalid;
        automatic exp_t bexp = {big.expo[ExpW-1:1], big.expo[0] || !bnz};
        // One less when only the smaller one is subnormal; one carry chain.
        automatic exp_t diff = exp_t'(({1'b0, high.expo, 1'b1} +
                                       {1'b0, ~low.expo, !(hnz && !lnz)}) >> 1);
        automatic aln_t sml = {lhidden, low.frac, 2'b00};
        automatic logic below = add && diff[5] && (order.a_ge ? bsort.low : asort.low);
        big2_q[i] = {bhidden, big.frac};
        low2_q[i] = 1'b0;
        if (Mul) begin
          msml2_q[i]  = {lhidden, low.frac};
          mexp2_q[i]  = bexp;
          msexp2_q[i] = {low.expo[ExpW-1:1], low.expo[0] || !lnz};
          mkind2_q[i] = {unlike, special, nan};
        end
        exp2_q[i]  = bexp;
        sub2_q[i]  = cmd1_q.op == FloatSum && unlike;
        sign2_q[i] = big.neg;
        spec2_q[i] = special;
        nan2_q[i]  = nan;
        invalid2_q[i] <= invalid;
        if (merge) begin
          automatic logic [54:0] prod = mboth7_q[i][105:51] + 55'(mrest7_q[i]);
          automatic logic tiny = !mdiff7_q[i][ProdExpW-1];
          automatic logic over = !tiny && mexp7_q[i][ExpW];
          diff  = !tiny ? '0 : mdiff7_q[i][ExpW-1:0] | {ExpW{mdiff7_q[i][ExpW]}};
          sml   = {prod[54] || over, prod[53:0]};
          below = mboth7_q[i][50:26] != '0 || below7_q[i];
          low2_q[i] = prod[31:0] != '0;
          exp2_q[i] = tiny ? exp_t'(1) : mexp7_q[i][ExpW-1:0] | {ExpW{over}};
          sub2_q[i] = 1'b0;
          {sign2_q[i], spec2_q[i], nan2_q[i]} = mkind7_q[i][2:0];
          invalid2_q[i] <= mkind7_q[i][3];
        end
        sml2_q[i]   = diff[5] ? sml >> 32 : sml;
        if (!merge && !add) sml2_q[i] = '0;
        below2_q[i] = below;
        diff2_q[i]  = diff;
      end
      back_q[2] <= merge ? mul_back_q[MulStages+1] : back_of(cmd1_q);
      live_q[2] <= merge ? mul_live_q[MulStages+1] : live1_q;
      mul_back_q[2] <= back_of(cmd1_q);
      mul_live_q[2] <= live1_q;
      bias2_q <= prod_exp_t'({1'b0, bias_to1_q}) - prod_exp_t'(bias_of1_q);
    end

    if (v0_q) begin
      automatic logic convert = cmd0_q.op == FloatConvert;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic val_t a = a0_q[i];
        automatic val_t b = b0_q[i];
        a1_q[i]      = a;
        b1_q[i]      = convert ? '{a.neg, lowest0_q, '0} : b;
        asort1_q[i]  = sort(a);
        bsort1_q[i]  = convert ? '{normal: lowest0_q != '0, default: 1'b0} : sort(b);
        a_ge1_q[i]   = {a.expo, a.frac} >= {b.expo, b.frac};
        if (convert) a_ge1_q[i] = a.expo >= lowest0_q;
      end
      cmd1_q  <= cmd0_q;
      bias_to1_q <= bias_of(cmd0_q.to) + exp_t'(1);
      bias_of1_q <= {1'b0, bias_of(cmd0_q.use_acc ? FmtFp64 : cmd0_q.from)} +
                    {1'b0, bias_of(cmd0_q.scalar ? FmtFp64 : cmd0_q.from)};
      live1_q <= live0_q;
    end

    if (valid_i) begin
      automatic source_t from_a = source_of(cmd_i.use_acc ? FmtFp64 : cmd_i.from);
      automatic source_t from_b = source_of((Mul && cmd_i.scalar) ? FmtFp64 : cmd_i.from);
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        a0_q[i] = expand(a_i[i*64+:64], from_a);
        b0_q[i] = expand(b_i[i*64+:64], from_b);
      end
      // A conversion adds a zero with the exponent of the smallest normal number of `to`.
      lowest0_q <= (cmd_i.from == FmtFp64) ? lowest_of(cmd_i.to) : '0;
      cmd0_q  <= cmd_i;
      live0_q <= live_i;
    end
  end

  // ---- flags ------------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    flags_o.invalid  <= valid_o && invalid_q[Stages];
    flags_o.overflow <= valid_o && (over9_q & live_q[Stages]) != '0;
    flags_o.inexact  <= valid_o && ((over9_q | lost9_q) & live_q[Stages]) != '0;
  end

  `WEFT_ASSERT(NoCollision, !(merge && v1_q && !mul_in));
  `WEFT_IMPLIES(ServedStep, valid_i, cmd_i.op inside {FloatSum, FloatMax, FloatMin, FloatConvert} ||
                (Mul && cmd_i.op == FloatMul));

endmodule

`default_nettype wire
