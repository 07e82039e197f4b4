// SPDX-License-Identifier: Apache-2.0
//
// Floating-point lanes: fp32, fp16, bf16, e4m3 and e5m2; sum, maximum, minimum, product and
// conversion; round to nearest even, subnormals in full, one canonical quiet NaN. Builds:
//   Width 32   one element at the top of a 32-bit word: all five types. Convert adds to != from,
//              Mul products (2 DSPs a lane) and the result e2m1.
//   ... Half   the same, for sums of what other lanes have made
//   ... Sum=0  only products with the scalar to fp32 or, without Mul, only conversions of fp32
//   Width 8    8-bit types, to = from
//
// No handshake: operands with valid_i in cycle t, the result in t + FloatLatency, of a product in
// t + FloatMulLatency, one step a cycle. Two results must not meet: no other step may start exactly
// FloatMulLatency - FloatLatency cycles behind a product (asserted).
//
// A step:
//   Sum, Max, Min  a op b. Where float_needs_convert(from, to) says so, the last one of a fold is
//                  rounded to odd (`odd`, to_acc, to = from), and a Convert step behind it rounds
//                  to `to`: as good as rounding once.
//   Convert        a
//   Mul            a x b, or with `scalar` a x factor_i; factor and accumulator are a true fp32
// With to_acc the result is all 32 bits of res_o, rounded like an fp32: an operand for later steps.
// Its fields are those of an fp32 with the bias of that format: a fold in any format gives the bits
// of a fold in fp32, and to = FmtFp32 leaves a true fp32. With use_acc a is such a one under a
// `from` that was its `to`: in a_i if Width is 32 and Half is not set, else in acc_i.
// Without to_acc the result of format `to` is the top bits of the 32 and those below it are
// undefined.
//
// With late_i the step works on what other lanes have just made, with to_acc, in other_i:
//   Convert        other, of format `from`
//   Mul            other x factor_i (`scalar`)
//   Half builds    Sum in fp32: acc_i + other; without use_acc other alone
//
// Single path, no leading-zero counter; every normalising step is limited by the exponent that is
// left, so subnormal results need nothing else:
//   1  expand; compare the magnitudes
//   2  put the larger one first (max and min: the chosen one, and zero the other); exponent
//      difference. Products join here after the normaliser of the smaller factor and 2 DSPs.
//   3  right shift of the smaller one by 8s and by 2s; from here on the exponent of the result
//   4  ... by the last bit; add or subtract
//   5  left-normalise by whole groups of 8 bits, as far as the exponent allows
//   6  ... by pairs
//   7  ... by the last bit; decide the rounding; infinity and NaN enter here as constants
//   8  {exponent, fraction} + hidden bit + rounding in one carry chain; take the format's fields
// Only a sum can lose bits at the top, or a product of two subnormals that is not one itself. So
// products by an fp32 have no more than one pair to shift left, and conversions a bit.
// All lanes sit in one clocked block under shared valids, so that idle lanes cost nothing to
// simulate. The rules are sw/ref/numerics.h's; docs/nmc.md has figures.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_float
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Lanes   = 32,
    parameter int unsigned Width   = 32,
    parameter int unsigned Pitch   = Width,  // bits from one lane's operands to the next lane's
    parameter bit          Half    = 1'b0,
    parameter bit          Sum     = 1'b1,
    parameter bit          Convert = Width == 32,
    parameter bit          Mul     = Width == 32 && !Half
) (
    input  wire                      clk_i,
    input  wire                      rst_i,
    // A step. Lane i takes the low Width bits of its Pitch bits of a_i and b_i, and word i of the
    // others.
    input  wire                      valid_i,
    input  wire  float_cmd_t         cmd_i,
    input  wire                      late_i,
    input  wire  [      Lanes-1:0]   live_i,
    input  wire  [Lanes*Pitch-1:0]   a_i,
    input  wire  [Lanes*Pitch-1:0]   b_i,
    input  wire  [   Lanes*32-1:0]   acc_i,
    input  wire  [   Lanes*32-1:0]   other_i,
    input  wire  [           31:0]   factor_i,
    // Its result: word i of lane i.
    output logic                     valid_o,
    output logic [   Lanes*32-1:0]   res_o,
    // What any live lane raised, one cycle behind the result; 0 when there is none.
    output float_flags_t             flags_o
);

  localparam int unsigned FracW = 23;
  // An fp8 sum of 64 elements stays below 2^22: a 6-bit exponent field holds it.
  localparam int unsigned ExpW = Width == 8 ? 6 : 8;
  localparam int unsigned MagW = ExpW + FracW;
  // Fraction bits of the longest source. Below them b is 0, and so is a but from the accumulator.
  localparam int unsigned SrcW = Width == 8 ? 3 : FracW;
  localparam int unsigned LowW = FracW - SrcW;
  localparam int unsigned BelowW = LowW == 0 ? 1 : LowW;  // for slices
  localparam int unsigned AlnW = FracW + 3;  // smaller significand, guard and round bit
  localparam int unsigned SumW = FracW + 4;  // larger one, with room for the carry
  localparam int unsigned ProdExpW = ExpW + 2;
  localparam logic [ExpW-1:0] ExpMax = '1;

  if (Width != 32 && Width != 8) begin : gen_bad_width
    $error("weft_nmc_float: Width must be 32 or 8");
  end
  if ((Convert || Mul) && Width != 32) begin : gen_bad_convert
    $error("weft_nmc_float: Convert and Mul need Width = 32");
  end
  if (Mul && !Convert) begin : gen_bad_mul
    $error("weft_nmc_float: Mul needs Convert");
  end
  if (!Sum && (!Convert || Half)) begin : gen_bad_sum
    $error("weft_nmc_float: without Sum there must be Convert, and no Half");
  end
  if (Half && (Width != 32 || Mul)) begin : gen_bad_half
    $error("weft_nmc_float: Half needs Width = 32 and no Mul");
  end

  typedef logic [ExpW-1:0] exp_t;
  typedef logic [FracW:0] sig_t;  // with the hidden bit
  typedef logic [AlnW-1:0] aln_t;
  typedef logic [SumW-1:0] sum_t;
  typedef logic signed [ProdExpW-1:0] prod_exp_t;

  // The fields of an fp32, with the bias of its format; all ones in the exponent: infinity or NaN.
  typedef struct packed {
    logic             neg;
    exp_t             expo;
    logic [FracW-1:0] frac;
  } val_t;

  // ---- what the stages compute ------------------------------------------------------------------
  // A word that has the layout already.
  function automatic val_t fields(logic [31:0] x);
    return '{x[31], x[FracW+:ExpW], x[FracW-1:0]};
  endfunction

  // Where an operand comes from. By the width of its exponent, so that most bits are one LUT, and
  // worked out once for all lanes.
  typedef enum logic [1:0] {
    Exp8,
    Exp5,
    Exp4,
    Whole  // a word that has the layout already
  } width_e;

  typedef struct packed {
    width_e width;
    logic   clear_16;  // bits 15 to 0 of the fraction
    logic   clear_21;  // ... 20 to 16
    logic   clear_23;  // ... 22 and 21
  } source_t;

  // With `power` of a whole word only the exponent.
  function automatic source_t source_of(float_fmt_e fmt, logic whole, logic power);
    source_t x;
    x.width = Exp8;
    if (Width == 8 || float_exp5(fmt)) x.width = Exp5;
    if (fmt == FmtE4m3) x.width = Exp4;
    if (whole) x.width = Whole;
    x.clear_21 = power || (!whole && fmt == FmtE5m2);
    x.clear_16 = x.clear_21 || (!whole && fmt == FmtBf16);
    x.clear_23 = power;
    return x;
  endfunction

  // `top`: the element at the top of a word.
  function automatic val_t expand(logic [31:0] top, val_t whole, source_t from);
    logic inf5, nan4;
    val_t y;
    inf5 = top[30:26] == '1;
    nan4 = inf5 && top[25:24] == '1;
    unique case (from.width)
      Exp8:  y = '{top[31], exp_t'(top[30:23]), top[22:0]};
      Exp5:  y = '{top[31], exp_t'({{3{inf5}}, top[30:26]}), {top[25:16], 13'd0}};
      Exp4:  y = '{top[31], exp_t'({{4{nan4}}, top[30:27]}), {top[26:24], 20'd0}};
      Whole: y = whole;
    endcase
    if (from.clear_16) y.frac[15:0] = '0;
    if (from.clear_21) y.frac[20:16] = '0;
    if (from.clear_23) y.frac[22:21] = '0;
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

  // Whether a (else b) is the operand that survives: for a sum or product the larger magnitude, so
  // that NaN and infinity always do; for max and min the result itself, -0 below +0.
  function automatic logic take_a(float_op_e op, logic propagate_nan, order_t x);
    logic a_wins;
    a_wins = (x.a_neg != x.b_neg) ? x.a_neg ^ (op == FloatMax)
                                  : x.a_ge ^ x.a_neg ^ (op == FloatMin);
    if (op != FloatMax && op != FloatMin) return x.a_ge;
    if (propagate_nan) return x.a_nan || (!x.b_nan && a_wins);
    return x.b_nan || (!x.a_nan && a_wins);
  endfunction

  // Right shift that keeps what falls out as one sticky bit: {shifted, sticky}. What falls out is
  // looked at by groups, beside the exponent difference and not behind the shift.
  function automatic logic [AlnW:0] shift_coarse(aln_t x, exp_t diff);
    logic low8, low16, low24;
    low8  = x[7:0] != '0;
    low16 = low8 || x[15:8] != '0;
    low24 = low16 || x[23:16] != '0;
    if (diff[ExpW-1:5] != '0) return {aln_t'(0), x != '0};
    unique case (diff[4:3])
      2'd0: return {x, 1'b0};
      2'd1: return {x >> 8, low8};
      2'd2: return {x >> 16, low16};
      2'd3: return {x >> 24, low24};
    endcase
  endfunction

  function automatic logic [AlnW:0] shift_pairs(aln_t x, logic [1:0] steps);
    unique case (steps)
      2'd0: return {x, 1'b0};
      2'd1: return {x >> 2, x[1:0] != '0};
      2'd2: return {x >> 4, x[3:0] != '0};
      2'd3: return {x >> 6, x[5:0] != '0};
    endcase
  endfunction

  // Empty groups of 8 at the top, as many as the exponent allows: shift by 8 x this.
  function automatic logic [1:0] groups(sum_t x, logic [ExpW-1:3] left);
    if (x[26:19] != '0 || left == '0) return 2'd0;
    if (x[18:11] != '0 || left == (ExpW - 3)'(1)) return 2'd1;
    if (x[10:3] != '0 || left == (ExpW - 3)'(2)) return 2'd2;
    return 2'd3;
  endfunction

  // Empty pairs at the top, likewise. rest: at least 8 of the exponent are left; low: its low bits.
  function automatic logic [1:0] by_twos(logic [5:0] top, logic rest, logic [2:1] low);
    if (top[5:4] != '0 || (!rest && low == 2'd0)) return 2'd0;
    if (top[3:2] != '0 || (!rest && low == 2'd1)) return 2'd1;
    if (top[1:0] != '0 || (!rest && low == 2'd2)) return 2'd2;
    return 2'd3;
  endfunction

  // Left shift of a factor by whole groups of 8, then by pairs: {shifted, how many}.
  function automatic logic [FracW+2:0] shift_groups(sig_t x);
    logic [1:0] by8;
    by8 = x[23:16] != '0 ? 2'd0 : x[15:8] != '0 ? 2'd1 : 2'd2;
    return {sig_t'(x << {by8, 3'd0}), by8};
  endfunction

  function automatic logic [FracW+2:0] shift_pairs_up(sig_t x);
    logic [1:0] by2;
    by2 = x[23:22] != '0 ? 2'd0 : x[21:20] != '0 ? 2'd1 : x[19:18] != '0 ? 2'd2 : 2'd3;
    return {sig_t'(x << {by2, 1'b0}), by2};
  endfunction

  // {last bit kept, first bit dropped, anything dropped below it} for a rounding to a format.
  function automatic logic [2:0] cut(sum_t x, logic sticky, float_fmt_e fmt);
    float_fmt_e at;
    at = Width == 8 && fmt != FmtFp32 && fmt != FmtE4m3 ? FmtE5m2 : fmt;
    if (!Mul && fmt == FmtE2m1) at = FmtFp32;
    unique case (at)
      FmtE4m3: return {x[23:22], x[21:0] != '0 || sticky};
      FmtE5m2: return {x[24:23], x[22:0] != '0 || sticky};
      FmtFp16: return {x[16:15], x[14:0] != '0 || sticky};
      FmtBf16: return {x[19:18], x[17:0] != '0 || sticky};
      FmtE2m1: return {x[25:24], x[23:0] != '0 || sticky};
      default: return {x[3:2], x[1:0] != '0 || sticky};
    endcase
  endfunction

  // ---- valid and command ------------------------------------------------------------------------
  // One copy for all lanes; index = the stage whose registers they belong to. What the stages from
  // the coarse shift on need:
  typedef struct packed {
    float_fmt_e fmt;       // where to round
    logic [5:0] round;     // the same: bit float_fmt_e
    logic [7:3] delta;     // between the biases
    logic       odd;
    logic       saturate;
  } back_t;

  localparam int unsigned MulStages = FloatMulLatency - FloatLatency;

  logic                    v1_q;
  float_cmd_t              cmd1_q;
  logic [MulStages+1:2]    mul_q;   // of products until they join
  logic [FloatLatency-1:2] valid_q;
  back_t                   back_q  [2:FloatLatency-1];
  logic [7:0]              bias_to1_q;  // of a product's result, + 1
  logic [8:0]              bias_of1_q;  // of its factors, the sum
  prod_exp_t               bias2_q, bias3_q;
  back_t                   mul_back_q[2:MulStages+1];

  localparam bit OnlyMul = Mul && !Sum;
  localparam bit OnlyConvert = !Mul && !Sum;
  wire mul_in = Mul && (OnlyMul || cmd1_q.op == FloatMul);
  wire merges = Mul && mul_q[MulStages+1];
  wire join_in = (v1_q && !mul_in) || merges;
  wire merge = OnlyMul || merges;  // ... if any joins

  function automatic back_t back_of(float_cmd_t cmd);
    back_t x;
    x.fmt = cmd.to_acc ? FmtFp32 : cmd.to;
    x.round = 6'd1 << x.fmt;
    if (Width == 8) {x.round[FmtFp16], x.round[FmtBf16]} = '0;
    if (!Mul) x.round[FmtE2m1] = 1'b0;
    x.delta = Convert ? 5'((float_bias(cmd.to) - float_bias(cmd.from)) >> 3) : '0;
    if (Mul && cmd.op == FloatMul) x.delta = '0;
    x.odd      = cmd.odd && cmd.to_acc;
    x.saturate = cmd.saturate && !cmd.to_acc;
    return x;
  endfunction

  always_ff @(posedge clk_i) begin
    // Each only when there is something to take: idle lanes cost nothing to simulate.
    if (valid_i) begin
      cmd1_q     <= cmd_i;
      bias_to1_q <= float_bias(cmd_i.to) + 8'd1;
      bias_of1_q <= 9'(float_bias(cmd_i.use_acc ? FmtFp32 : cmd_i.from)) +
                    9'(float_bias(cmd_i.scalar ? FmtFp32 : cmd_i.from));
    end
    if (join_in) back_q[2] <= merge ? mul_back_q[MulStages+1] : back_of(cmd1_q);
    for (int unsigned i = 3; i < FloatLatency; i++) if (valid_q[i-1]) back_q[i] <= back_q[i-1];
    if (v1_q && mul_in) begin
      mul_back_q[2] <= back_of(cmd1_q);
      bias2_q <= prod_exp_t'(bias_to1_q) - prod_exp_t'(bias_of1_q);
    end
    for (int unsigned i = 3; i <= MulStages + 1; i++)
      if (mul_q[i-1]) mul_back_q[i] <= mul_back_q[i-1];
    if (mul_q[2]) bias3_q <= bias2_q;
    if (rst_i) begin
      v1_q    <= 1'b0;
      mul_q   <= '0;
      valid_q <= '0;
      valid_o <= 1'b0;
    end else begin
      v1_q    <= valid_i;
      mul_q   <= {mul_q[MulStages:2], v1_q && mul_in};
      valid_q <= {valid_q[FloatLatency-2:2], join_in};
      valid_o <= valid_q[FloatLatency-1];
    end
  end

  // ---- stage registers --------------------------------------------------------------------------
  val_t             a1_q     [Lanes];
  val_t             b1_q     [Lanes];
  logic             anz1_q   [Lanes];  // the exponent field is not 0
  logic             bnz1_q   [Lanes];
  logic             aspec1_q [Lanes];  // infinity or NaN
  logic             bspec1_q [Lanes];
  order_t           order1_q [Lanes];

  sig_t             big2_q   [Lanes];
  aln_t             sml2_q   [Lanes];
  logic             below2_q [Lanes];  // of a product: bits below sml2_q
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
  logic             last3_q  [Lanes];  // one bit more
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
  logic [1:0]       groups5_q[Lanes];
  logic             rest5_q  [Lanes];  // 8 or more of the exponent are left
  logic             sign5_q  [Lanes];
  logic             over5_q  [Lanes];  // infinity by overflow
  logic             spec5_q  [Lanes];
  logic             nan5_q   [Lanes];

  sum_t             sum6_q   [Lanes];
  logic             sticky6_q[Lanes];
  exp_t             exp6_q   [Lanes];
  logic [3:0]       shift6_q [Lanes];  // groups and pairs; with the last bit the whole distance
  logic             rest6_q  [Lanes];  // 1 or more of the exponent is left
  logic             sign6_q  [Lanes];
  logic             over6_q  [Lanes];
  logic             spec6_q  [Lanes];
  logic             nan6_q   [Lanes];

  logic [FracW-1:0] frac7_q  [Lanes];
  exp_t             exp7_q   [Lanes];
  logic             hidden7_q[Lanes];
  logic [5:0]       up7_q    [Lanes];  // round up there: bit float_fmt_e
  logic             lost7_q  [Lanes];  // rounded at all
  logic             sign7_q  [Lanes];
  logic [2:0]       top7_q   [Lanes];  // of fp16 and fp8 beyond range: bits 26 to 24
  logic             exact7_q [Lanes];  // infinity or NaN, and nothing else would be right

  logic [Lanes-1:0] over8_q, lost8_q;

  // Products: the factor with the smaller fields, the only one that has to be, is normalised.
  sig_t             mbig2_q  [Lanes];
  sig_t             msml2_q  [Lanes];
  prod_exp_t        mexp2_q  [Lanes];
  logic [2:0]       mkind2_q [Lanes];  // {sign, special, NaN}

  sig_t             mbig3_q  [Lanes];
  sig_t             msml3_q  [Lanes];
  logic [1:0]       mshift3_q[Lanes];
  prod_exp_t        mexp3_q  [Lanes];
  logic             mzero3_q [Lanes];  // the smaller factor is 0
  logic [2:0]       mkind3_q [Lanes];

  sig_t             mbig4_q  [Lanes];
  sig_t             msml4_q  [Lanes];
  logic [4:0]       mshift4_q[Lanes];
  prod_exp_t        mexp4_q  [Lanes];
  logic [3:0]       mkind4_q [Lanes];  // {invalid, sign, special, NaN}

  logic [40:0]      mlow5_q  [Lanes];
  sig_t             msml5_q  [Lanes];
  logic [6:0]       mbig5_q  [Lanes];
  prod_exp_t        mexp5_q  [Lanes];
  logic [3:0]       mkind5_q [Lanes];

  logic [40:0]      mlow6_q  [Lanes];
  logic [30:0]      mhigh6_q [Lanes];
  exp_t             mexp6_q  [Lanes];
  logic             mtiny6_q [Lanes];  // below the normal numbers
  logic             mover6_q [Lanes];  // beyond all
  logic [3:0]       mkind6_q [Lanes];

  // Beside the lanes, index = stage: marks of live ones, and what was invalid.
  logic [Lanes-1:0] live1_q;
  logic [Lanes-1:0] live_q     [2:FloatLatency];
  logic [Lanes-1:0] mul_live_q [2:MulStages+1];
  logic [FloatLatency:3] invalid_q;

  // Last stage first, with blocking assignments: each stage reads what the one before left at the
  // last edge, and nobody outside reads these arrays. So they are the registers that non-blocking
  // assignments would give, but the simulator keeps no second copy of them and loops stay loops.
  always_ff @(posedge clk_i) begin
    // Flags of what the last edge left, so before the stages below change it.
    if (rst_i) begin
      invalid_q <= '0;
      flags_o   <= '0;
    end else begin
      invalid_q <= {invalid_q[FloatLatency-1:3], valid_q[2] && (invalid2_q & live_q[2]) != '0};
      flags_o.invalid  <= invalid_q[FloatLatency];
      flags_o.overflow <= valid_o && (over8_q & live_q[FloatLatency]) != '0;
      flags_o.inexact  <= valid_o && ((over8_q | lost8_q) & live_q[FloatLatency]) != '0;
    end

    if (valid_q[7]) begin
      automatic logic [Lanes*32-1:0] res;
      automatic back_t back = back_q[7];
      automatic logic four = back.round[FmtE4m3];
      automatic logic two = back.round[FmtE2m1];
      automatic logic five = back.round[FmtE5m2] || back.round[FmtFp16];
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [MagW-1:0] addend = '0;
        automatic exp_t expo;
        automatic logic [FracW-1:0] frac;
        // Whether an fp16 or fp8 is beyond its range: known beside the carry chain, not behind it.
        // A number with a hidden bit has the exponent field exp7_q + 1.
        automatic logic over5 = exp7_q[i] > exp_t'(29) || (exp7_q[i] == exp_t'(29) &&
            ((up7_q[i][FmtFp16] && frac7_q[i][22:13] == '1) ||
             (up7_q[i][FmtE5m2] && frac7_q[i][22:21] == '1)));
        automatic logic over4 = exp7_q[i] > exp_t'(14) || (exp7_q[i] == exp_t'(14) &&
            frac7_q[i][22:21] == '1 && (frac7_q[i][20] || up7_q[i][FmtE4m3]));
        automatic logic over2 = exp7_q[i] > exp_t'(2) ||
            (exp7_q[i] == exp_t'(2) && frac7_q[i][22] && up7_q[i][FmtE2m1]);
        automatic logic over = (four && over4) || (five && over5) || (two && over2);
        automatic logic [31:0] word;
        // One up at the last place of the format; the hidden bit makes the exponent the field.
        addend[FracW] = hidden7_q[i];
        addend[22] = up7_q[i][FmtE2m1];
        addend[20] = up7_q[i][FmtE4m3];
        addend[21] = up7_q[i][FmtE5m2];
        addend[13] = up7_q[i][FmtFp16];
        addend[16] = up7_q[i][FmtBf16];
        addend[0] = up7_q[i][FmtFp32];
        {expo, frac} = addend + {exp7_q[i], frac7_q[i]};
        word = {sign7_q[i], 8'(expo), frac};
        if (four) word[30:24] = {expo[3:0], frac[22:20]};
        if (five) word[30:16] = {expo[4:0], frac[22:13]};
        if (two) word[30:28] = {expo[1:0], frac[22]};
        if (over) word[30:16] = {4'hf, top7_q[i], 8'd0};
        if (four && over && top7_q[i][0]) word[31] = 1'b0;  // the only NaN of e4m3
        res[i*32+:32] = word;
        over8_q[i] = (over || expo == ExpMax) && !exact7_q[i];
        lost8_q[i] = lost7_q[i];
      end
      res_o <= res;
    end

    if (valid_q[6]) begin
      automatic back_t back = back_q[6];
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic shift = !sum6_q[i][SumW-1] && rest6_q[i];
        automatic sum_t sum = shift ? sum6_q[i] << 1 : sum6_q[i];
        automatic logic hidden = sum[SumW-1];
        automatic logic odd, half, below;
        // Exponent - {shift6_q, shift}, the last bit as (missing) carry.
        automatic logic [ExpW:0] left =
            {exp6_q[i], 1'b1} + {(ExpW - 5)'('1), ~shift6_q[i], 1'b1, !shift};
        automatic logic fixed = over6_q[i] || spec6_q[i];
        automatic logic clamp = back.saturate && !nan6_q[i];
        {odd, half, below} = cut(sum, sticky6_q[i], back.fmt);
        lost7_q[i]   = (half || below) && !spec6_q[i];
        frac7_q[i]   = sum[SumW-2:3];
        if (back.odd && (half || below)) frac7_q[i][0] = 1'b1;
        if (fixed) frac7_q[i] = {nan6_q[i], {(FracW - 1) {1'b0}}};
        // Without a hidden bit the number is subnormal or zero, and no exponent is left.
        exp7_q[i]    = fixed ? ExpMax : left[ExpW:1];
        hidden7_q[i] = hidden && !fixed;
        up7_q[i]     = back.round & {6{half && (odd || below) && !back.odd && !fixed}};
        sign7_q[i]   = sign6_q[i] && !nan6_q[i];
        // e4m3: 7f, or 7e; others: infinity, NaN, or the largest e5m2. The largest e2m1 is what all
        // of them begin with.
        if (back.round[FmtE4m3]) top7_q[i] = {2'b11, !clamp};
        else top7_q[i] = clamp ? 3'b011 : {1'b1, nan6_q[i], 1'b0};
        exact7_q[i] = spec6_q[i] && (nan6_q[i] || !(back.saturate || back.round[FmtE4m3]));
      end
    end

    if (valid_q[5]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [1:0] steps = OnlyConvert ? 2'd0 :
            by_twos(sum5_q[i][SumW-1-:6], rest5_q[i], exp5_q[i][2:1]);
        if (OnlyMul) steps[1] = 1'b0;
        sum6_q[i]    = sum5_q[i] << {steps, 1'b0};
        shift6_q[i]  = {groups5_q[i], steps};
        rest6_q[i]   = rest5_q[i] || exp5_q[i][2:0] != {steps, 1'b0};
        exp6_q[i]    = exp5_q[i];
        sticky6_q[i] = sticky5_q[i];
        sign6_q[i]   = sign5_q[i];
        over6_q[i]   = over5_q[i];
        spec6_q[i]   = spec5_q[i];
        nan6_q[i]    = nan5_q[i];
      end
    end

    if (valid_q[4]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [1:0] steps = !Sum ? 2'd0 :
            groups(sum4_q[i], exp4_q[i][ExpW-1:3]);
        automatic logic zero = sum4_q[i] == '0;
        sum5_q[i]    = sum4_q[i] << {steps, 3'd0};
        groups5_q[i] = steps;
        rest5_q[i]   = exp4_q[i][ExpW-1:3] != (ExpW - 3)'(steps);
        exp5_q[i]    = exp4_q[i];
        sticky5_q[i] = sticky4_q[i];
        sign5_q[i]   = sign4_q[i] && !(sub4_q[i] && zero);  // x - x = +0
        // A product comes with the exponent of its highest bit, up to ExpMax.
        over5_q[i]   = exp4_q[i][ExpW-1:1] == '1 &&
                       (exp4_q[i][0] ? sum4_q[i][SumW-2] : sum4_q[i][SumW-1]);
        spec5_q[i]   = spec4_q[i];
        nan5_q[i]    = nan4_q[i];
        // A zero has the exponent of the smallest numbers.
        if (zero) begin
          exp5_q[i]    = '0;
          groups5_q[i] = '0;
          rest5_q[i]   = 1'b0;
        end
      end
    end

    if (valid_q[3]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        // The last bit of the shift, the complement and the sum are one LUT a bit.
        automatic aln_t sml = last3_q[i] ? sml3_q[i] >> 1 : sml3_q[i];
        automatic logic sticky = sticky3_q[i] || (last3_q[i] && sml3_q[i][0]);
        automatic logic [SumW:0] wide;
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
    end

    if (valid_q[2]) begin
      automatic exp_t delta = exp_t'({back_q[2].delta, 3'd0});
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic aln_t sml;
        automatic logic below8, below2;
        {sml, below8}        = shift_coarse(sml2_q[i], diff2_q[i]);
        {sml3_q[i], below2}  = shift_pairs(sml, diff2_q[i][2:1]);
        sticky3_q[i]         = below8 || below2 || (Mul && below2_q[i]);
        last3_q[i]           = diff2_q[i][0];
        big3_q[i]            = big2_q[i];
        exp3_q[i]            = exp2_q[i] + delta;
        sign3_q[i]           = sign2_q[i];
        sub3_q[i]            = sub2_q[i];
        spec3_q[i]           = spec2_q[i];
        nan3_q[i]            = nan2_q[i];
      end
    end

    if (join_in) begin
      automatic logic add = OnlyConvert || (cmd1_q.op != FloatMax && cmd1_q.op != FloatMin);
      automatic logic convert = OnlyConvert || (Convert && cmd1_q.op == FloatConvert);
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic order_t order = order1_q[i];
        automatic logic use_a = take_a(cmd1_q.op, cmd1_q.propagate_nan, order);
        automatic val_t big = use_a ? a1_q[i] : b1_q[i];
        automatic val_t sml = use_a ? b1_q[i] : a1_q[i];
        automatic logic bnz = use_a ? anz1_q[i] : bnz1_q[i];
        automatic logic snz = use_a ? bnz1_q[i] : anz1_q[i];
        // The zero that a conversion adds has an exponent, but no hidden bit.
        automatic logic bhidden = bnz && !(convert && !use_a);
        automatic logic shidden = snz && !(convert && use_a);
        automatic logic unlike = order.a_neg != order.b_neg;
        automatic logic invalid = cmd1_q.op == FloatSum && unlike && aspec1_q[i] && bspec1_q[i] &&
                                  !order.a_nan && !order.b_nan;
        automatic exp_t left = big.expo;
        automatic exp_t right = ~sml.expo;
        automatic logic carry = !(bnz && !snz);  // one less when only the smaller one is subnormal
        big2_q[i]     = {bhidden, big.frac};
        sml2_q[i]     = {{shidden, sml.frac} & {(FracW + 1) {add}}, 2'b00};
        below2_q[i]   = 1'b0;
        exp2_q[i]     = {big.expo[ExpW-1:1], big.expo[0] || !bnz};
        sign2_q[i]    = big.neg;
        sub2_q[i]     = cmd1_q.op == FloatSum && unlike;
        spec2_q[i]    = use_a ? aspec1_q[i] : bspec1_q[i];
        nan2_q[i]     = (use_a ? order.a_nan : order.b_nan) || invalid;
        invalid2_q[i] = invalid;
        if (LowW > 0) begin
          // Only a has these: a reset instead of a multiplexer.
          big2_q[i][BelowW-1:0] = a1_q[i].frac[BelowW-1:0];
          sml2_q[i][BelowW+1:2] = a1_q[i].frac[BelowW-1:0];
          if (!use_a) big2_q[i][BelowW-1:0] = '0;
          if (use_a || !add) sml2_q[i][BelowW+1:2] = '0;
        end
        // A product is the smaller one of itself and 0, shifted if it is below the normal numbers.
        if (merge) begin
          automatic logic [30:0] high = mhigh6_q[i] + 31'(mlow6_q[i][40:17]);
          left        = ~mexp6_q[i];
          right       = exp_t'(1);
          carry       = 1'b1;
          sml2_q[i]   = {high[30] || mover6_q[i], high[29:5]};
          below2_q[i] = {high[4:0], mlow6_q[i][16:0]} != '0;
          exp2_q[i]   = mexp6_q[i];
          {invalid2_q[i], sign2_q[i], spec2_q[i], nan2_q[i]} = mkind6_q[i];
          big2_q[i] = '0;
          sub2_q[i] = 1'b0;
        end
        diff2_q[i] = exp_t'(({1'b0, left, 1'b1} + {1'b0, right, carry}) >> 1);
        if (merge && !mtiny6_q[i]) diff2_q[i] = '0;
        if (merge && mtiny6_q[i]) exp2_q[i] = exp_t'(1);
      end
    end

    if (Mul && mul_q[5]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        mlow6_q[i]  = mlow5_q[i];
        mhigh6_q[i] = 31'(msml5_q[i]) * 31'(mbig5_q[i]);
        mexp6_q[i]  = mexp5_q[i][ExpW-1:0];
        mtiny6_q[i] = mexp5_q[i] < prod_exp_t'(1);
        mover6_q[i] = mexp5_q[i] > prod_exp_t'(ExpMax);
        mkind6_q[i] = mkind5_q[i];
        if (mexp5_q[i] < -prod_exp_t'(32)) mexp6_q[i] = -exp_t'(32);  // shifted out either way
        if (mover6_q[i]) mexp6_q[i] = ExpMax;
      end
    end

    if (Mul && mul_q[4]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        mlow5_q[i]  = 41'(msml4_q[i]) * 41'(mbig4_q[i][16:0]);
        msml5_q[i]  = msml4_q[i];
        mbig5_q[i]  = mbig4_q[i][23:17];
        mexp5_q[i]  = mexp4_q[i] - prod_exp_t'(mshift4_q[i]);
        mkind5_q[i] = mkind4_q[i];
      end
    end

    if (Mul && mul_q[3]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [FracW+2:0] up = shift_pairs_up(msml3_q[i]);
        automatic sig_t sml = up[FracW+2:2];
        automatic logic last = !sml[FracW];
        automatic logic invalid = mkind3_q[i][1] && !mkind3_q[i][0] && mzero3_q[i];
        mbig4_q[i]   = mbig3_q[i];
        msml4_q[i]   = last ? sml << 1 : sml;
        mshift4_q[i] = {mshift3_q[i], up[1:0], last};
        mexp4_q[i]   = mexp3_q[i] + bias3_q;
        mkind4_q[i]  = {invalid, mkind3_q[i][2:1], mkind3_q[i][0] || invalid};
      end
    end

    if (Mul && mul_q[2]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        {msml3_q[i], mshift3_q[i]} = shift_groups(msml2_q[i]);
        mbig3_q[i]  = mbig2_q[i];
        mzero3_q[i] = msml2_q[i] == '0;
        mexp3_q[i]  = mexp2_q[i];
        mkind3_q[i] = mkind2_q[i];
      end
    end

    if (v1_q && mul_in) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic order_t order = order1_q[i];
        automatic logic use_a = take_a(cmd1_q.op, cmd1_q.propagate_nan, order);
        automatic exp_t aexp = {a1_q[i].expo[ExpW-1:1], a1_q[i].expo[0] || !anz1_q[i]};
        automatic exp_t bexp = {b1_q[i].expo[ExpW-1:1], b1_q[i].expo[0] || !bnz1_q[i]};
        mbig2_q[i]  = use_a ? {anz1_q[i], a1_q[i].frac} : {bnz1_q[i], b1_q[i].frac};
        msml2_q[i]  = use_a ? {bnz1_q[i], b1_q[i].frac} : {anz1_q[i], a1_q[i].frac};
        mexp2_q[i]  = prod_exp_t'({1'b0, aexp}) + prod_exp_t'({1'b0, bexp});
        mkind2_q[i] = {order.a_neg != order.b_neg, use_a ? aspec1_q[i] : bspec1_q[i],
                       use_a ? order.a_nan : order.b_nan};
      end
    end

    if (valid_i) begin
      // A conversion adds a zero with the exponent of the smallest normal number of `to`: what is
      // smaller takes the way of the smaller operand, whose shifter makes it subnormal.
      automatic logic convert = OnlyConvert || (Convert && cmd_i.op[2]);  // FloatConvert alone
      automatic logic late = (Convert || Half) && late_i;
      automatic logic a_whole = (Width == 32 && !Half) ? late : cmd_i.use_acc;
      automatic logic no_a = Half && late && !cmd_i.use_acc;
      automatic source_t from_a = source_of(cmd_i.a_fmt, a_whole, 1'b0);
      automatic logic b_whole = convert || (Half ? late : Mul && cmd_i.scalar);
      automatic source_t from_b = source_of(cmd_i.from, b_whole, convert);
      automatic logic [7:0] lowest;
      unique case (cmd_i.floor)
        Floor0:   lowest = 8'd0;
        Floor9:   lowest = 8'd9;
        Floor113: lowest = 8'd113;
        Floor121: lowest = 8'd121;
      endcase
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic val_t whole_a = fields((Width == 32 && !Half) ? other_i[i*32+:32] :
                                                                  acc_i[i*32+:32]);
        automatic val_t whole_b = fields(Half ? other_i[i*32+:32] : factor_i);
        automatic val_t a, b;
        automatic logic aspec, bspec;
        if (convert) whole_b.expo = exp_t'(lowest);
        a = expand(32'(a_i[i*Pitch+:Width]) << (32 - Width), whole_a, from_a);
        b = expand(32'(b_i[i*Pitch+:Width]) << (32 - Width), whole_b, from_b);
        if (convert) b.neg = a.neg;
        aspec = a.expo == ExpMax;
        bspec = b.expo == ExpMax;
        a1_q[i]     = a;
        b1_q[i]     = b;
        anz1_q[i]   = a.expo != '0;
        bnz1_q[i]   = b.expo != '0;
        aspec1_q[i] = aspec;
        bspec1_q[i] = bspec;
        order1_q[i] = '{
            a_ge: {a.expo, a.frac[FracW-1:LowW]} >= {b.expo, b.frac[FracW-1:LowW]},
            a_neg: a.neg,
            b_neg: b.neg,
            a_nan: aspec && a.frac[FracW-1:LowW] != '0,
            b_nan: bspec && b.frac[FracW-1:LowW] != '0
        };
        // What -0 is added to stays what it is. All of this is resets, behind the comparison.
        if (no_a) begin
          a1_q[i]     = '{1'b1, '0, '0};
          anz1_q[i]   = 1'b0;
          aspec1_q[i] = 1'b0;
          order1_q[i].a_ge  = 1'b0;
          order1_q[i].a_neg = 1'b1;
          order1_q[i].a_nan = 1'b0;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) live1_q <= live_i;
    if (join_in) live_q[2] <= merge ? mul_live_q[MulStages+1] : live1_q;
    for (int unsigned i = 3; i <= FloatLatency; i++) if (valid_q[i-1]) live_q[i] <= live_q[i-1];
    if (v1_q && mul_in) mul_live_q[2] <= live1_q;
    for (int unsigned i = 3; i <= MulStages + 1; i++)
      if (mul_q[i-1]) mul_live_q[i] <= mul_live_q[i-1];
  end

  `WEFT_ASSERT(NoCollision, !(merges && v1_q && !mul_in));
  `WEFT_IMPLIES(ServedStep, valid_i,
                cmd_i.op == FloatMul ? Mul && (Sum || (cmd_i.scalar && cmd_i.to_acc)) :
                cmd_i.op == FloatConvert ? Convert && !OnlyMul && (Sum || cmd_i.from == FmtFp32) :
                Sum && cmd_i.op inside {FloatSum, FloatMax, FloatMin});
  `WEFT_IMPLIES(FloorFits, valid_i && cmd_i.op == FloatConvert,
                cmd_i.floor == float_floor(cmd_i.from, cmd_i.to));
  `WEFT_IMPLIES(ServedLate, valid_i && late_i, Half ?
                cmd_i.op == FloatSum && cmd_i.from == FmtFp32 : Convert &&
                (cmd_i.op == FloatConvert || (cmd_i.op == FloatMul && cmd_i.scalar)));

endmodule

`default_nettype wire
