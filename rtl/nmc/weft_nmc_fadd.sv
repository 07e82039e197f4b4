// SPDX-License-Identifier: Apache-2.0
//
// Floating-point lanes: sum, maximumNumber, minimumNumber (IEEE 754-2019), round to nearest even,
// subnormals in full, one canonical quiet NaN. 8 exponent bits, FracW fraction bits: 23 is fp32,
// 7 is bf16. With Narrow, a beat of cmd.bf16 takes only the upper half of each operand (a bf16 is
// the upper half of an fp32) and rounds there, once.
//
// No handshake: operands with valid_i in cycle t, result in cycle t+9, one a cycle.
//
// Single path, no leading-zero counter:
//   1  compare the magnitudes
//   2  put the larger one first (max and min: the chosen one, and zero the other)
//   3  exponent difference
//   4  coarse right shift of the smaller one
//   5  fine shift, add or subtract
//   6  left-normalise by whole groups of 8 bits, as far as the exponent allows
//   7  ... by pairs
//   8  ... by the last bit; decide the rounding; infinity and NaN enter here as constants
//   9  {exponent, fraction} + hidden bit + rounding in one carry chain
// Every normalising step is limited by the exponent that is left, so subnormal results need nothing
// else; the hidden bit added to the exponent field turns "exponent left" into the encoded field.
// All lanes sit in one clocked block under shared valids, so that idle lanes cost nothing to
// simulate. The rules are sw/ref/numerics.h's; docs/nmc.md has the table.
`default_nettype none

module weft_nmc_fadd
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter  int unsigned Lanes  = 32,
    parameter  int unsigned FracW  = 23,
    parameter  bit          Narrow = 1'b0,
    localparam int unsigned Width  = FracW + 9
) (
    input  wire                     clk_i,
    input  wire                     rst_i,
    // Operands: lane i takes the low Width bits of word i.
    input  wire                     valid_i,
    input  wire lane_cmd_t          cmd_i,
    input  wire  [   Lanes*32-1:0]  a_i,
    input  wire  [   Lanes*32-1:0]  b_i,
    // Results, side by side.
    output logic [Lanes*Width-1:0]  res_o
);

  localparam int unsigned Stages = FpLatency;
  localparam int unsigned MagW = FracW + 8;
  localparam int unsigned AlnW = FracW + 3;  // smaller significand, guard and round bit
  localparam int unsigned SumW = FracW + 4;  // larger one, with room for the carry
  localparam int unsigned CoarseW = (FracW > 12) ? 2 : 1;  // shifts of 8 bytes worth doing
  localparam logic [7:0] ExpMax = 8'hff;
  localparam int unsigned CutW = Narrow ? 16 : 0;  // bits of an fp32 below those of a bf16
  localparam logic [Width-1:0] UpperMask = ~Width'((64'd1 << CutW) - 64'd1);

  if (FracW != 23 && FracW != 7) begin : gen_bad_frac
    $error("weft_nmc_fadd: FracW must be 23 (fp32) or 7 (bf16)");
  end
  if (Narrow && FracW != 23) begin : gen_bad_narrow
    $error("weft_nmc_fadd: Narrow needs FracW = 23");
  end

  typedef logic [Width-1:0] val_t;
  typedef logic [MagW-1:0] mag_t;
  typedef logic [AlnW-1:0] aln_t;
  typedef logic [SumW-1:0] sum_t;

  // ---- what the stages compute ------------------------------------------------------------------
  function automatic logic is_nan(mag_t m);
    return m[MagW-1:FracW] == ExpMax && m[FracW-1:0] != '0;
  endfunction

  // What the choice between two operands depends on.
  typedef struct packed {
    logic a_ge;   // by magnitude
    logic a_neg;
    logic b_neg;
    logic a_nan;
    logic b_nan;
  } order_t;

  // Whether a (else b) is the operand that survives: for a sum the larger magnitude, so that NaN
  // and infinity always do; for max and min the result itself, a number before a NaN, -0 below +0.
  function automatic logic take_a(lane_op_e op, order_t x);
    if (op == LaneSum) return x.a_ge;
    if (x.b_nan) return 1'b1;
    if (x.a_nan) return 1'b0;
    if (x.a_neg != x.b_neg) return x.a_neg ^ (op == LaneMax);
    return x.a_ge ^ x.a_neg ^ (op == LaneMin);
  endfunction

  // Right shift that keeps what falls out as one sticky bit: {shifted, sticky}. What falls out is
  // looked at by groups, beside the exponent difference and not behind the shift.
  function automatic logic [AlnW:0] shift_coarse(aln_t x, logic [7:0] diff);
    logic [1:0] steps;
    logic far, low8, low16, low24;
    low8  = x[7:0] != '0;
    low16 = low8 || (x & aln_t'('h00ff00)) != '0;
    low24 = low16 || (x & aln_t'('hff0000)) != '0;
    far   = diff[7:3+CoarseW] != '0;
    steps = (CoarseW == 2) ? diff[4:3] : {1'b0, diff[3]};
    if (far) return {aln_t'(0), x != '0};
    unique case (steps)
      2'd0: return {x, 1'b0};
      2'd1: return {x >> 8, low8};
      2'd2: return {x >> 16, low16};
      2'd3: return {x >> 24, low24};
    endcase
  endfunction

  function automatic logic [AlnW:0] shift_fine(aln_t x, logic [2:0] steps);
    unique case (steps)
      3'd0: return {x, 1'b0};
      3'd1: return {x >> 1, x[0]};
      3'd2: return {x >> 2, x[1:0] != '0};
      3'd3: return {x >> 3, x[2:0] != '0};
      3'd4: return {x >> 4, x[3:0] != '0};
      3'd5: return {x >> 5, x[4:0] != '0};
      3'd6: return {x >> 6, x[5:0] != '0};
      3'd7: return {x >> 7, x[6:0] != '0};
    endcase
  endfunction

  // Empty groups of 8 at the top, as many as the exponent allows: shift by 8 x this.
  function automatic logic [1:0] groups(sum_t x, logic [7:0] expo);
    logic [26:0] top;
    top = 27'(x) << (27 - SumW);
    if (top[26:19] != '0 || expo[7:3] == 5'd0) return 2'd0;
    if (CoarseW == 1 || top[18:11] != '0 || expo[7:3] == 5'd1) return 2'd1;
    if (top[10:3] != '0 || expo[7:3] == 5'd2) return 2'd2;
    return 2'd3;
  endfunction

  // Empty pairs at the top, likewise. rest: at least 8 of the exponent are left; low: its low bits.
  function automatic logic [1:0] pairs(logic [5:0] top, logic rest, logic [2:1] low);
    if (top[5:4] != '0 || (!rest && low == 2'd0)) return 2'd0;
    if (top[3:2] != '0 || (!rest && low == 2'd1)) return 2'd1;
    if (top[1:0] != '0 || (!rest && low == 2'd2)) return 2'd2;
    return 2'd3;
  endfunction

  // ---- valid and command ------------------------------------------------------------------------
  // One copy for all lanes; index = the stage whose registers they belong to.
  logic [Stages-1:1] valid_q;
  logic [Stages-1:1] narrow_q;
  lane_op_e          op1_q;

  always_ff @(posedge clk_i) begin
    narrow_q <= {narrow_q[Stages-2:1], Narrow && cmd_i.bf16};
    op1_q    <= cmd_i.op;
    if (rst_i) valid_q <= '0;
    else valid_q <= {valid_q[Stages-2:1], valid_i};
  end

  // ---- stage registers --------------------------------------------------------------------------
  mag_t             a1_q     [Lanes];
  mag_t             b1_q     [Lanes];
  order_t           order1_q [Lanes];
  logic             anorm1_q [Lanes];  // hidden bits: the exponent is not 0
  logic             bnorm1_q [Lanes];

  mag_t             big2_q   [Lanes];
  mag_t             sml2_q   [Lanes];
  logic             bnorm2_q [Lanes];
  logic             snorm2_q [Lanes];
  logic             sign2_q  [Lanes];
  logic             sub2_q   [Lanes];

  logic [FracW:0]   big3_q   [Lanes];
  logic [FracW:0]   sml3_q   [Lanes];
  logic [7:0]       diff3_q  [Lanes];
  logic [7:0]       exp3_q   [Lanes];  // effective exponent: 1 for subnormals
  logic             sign3_q  [Lanes];
  logic             sub3_q   [Lanes];
  logic             spec3_q  [Lanes];  // result is an infinity or NaN
  logic             nan3_q   [Lanes];

  logic [FracW:0]   big4_q   [Lanes];
  aln_t             sml4_q   [Lanes];
  logic             sticky4_q[Lanes];
  logic [2:0]       fine4_q  [Lanes];
  logic [7:0]       exp4_q   [Lanes];
  logic             sign4_q  [Lanes];
  logic             sub4_q   [Lanes];
  logic             spec4_q  [Lanes];
  logic             nan4_q   [Lanes];

  sum_t             sum5_q   [Lanes];
  logic             sticky5_q[Lanes];
  logic [7:0]       exp5_q   [Lanes];
  logic             sign5_q  [Lanes];
  logic             sub5_q   [Lanes];
  logic             spec5_q  [Lanes];
  logic             nan5_q   [Lanes];

  sum_t             sum6_q   [Lanes];
  logic             sticky6_q[Lanes];
  logic [7:0]       exp6_q   [Lanes];  // still without the shifts
  logic [1:0]       groups6_q[Lanes];
  logic             rest6_q  [Lanes];  // 8 or more of the exponent are left
  logic             sign6_q  [Lanes];
  logic             spec6_q  [Lanes];
  logic             nan6_q   [Lanes];

  sum_t             sum7_q   [Lanes];
  logic             sticky7_q[Lanes];
  logic [7:0]       exp7_q   [Lanes];
  logic [3:0]       shift7_q [Lanes];  // groups and pairs; with the last bit the whole distance
  logic             rest7_q  [Lanes];  // 1 or more of the exponent is left
  logic             sign7_q  [Lanes];
  logic             spec7_q  [Lanes];
  logic             nan7_q   [Lanes];

  logic [FracW-1:0] frac8_q  [Lanes];
  logic [7:0]       exp8_q   [Lanes];
  logic             hidden8_q[Lanes];
  logic             inc8_q   [Lanes];  // round up at the last place
  logic             cut8_q   [Lanes];  // round up at bit CutW
  logic             sign8_q  [Lanes];

  // Last stage first, with blocking assignments: each stage reads what the one before left at the
  // last edge, and nobody outside reads these arrays. So they are the registers that non-blocking
  // assignments would give, but the simulator keeps no second copy of them and loops stay loops.
  always_ff @(posedge clk_i) begin
    if (valid_q[8]) begin
      automatic logic [Lanes*Width-1:0] res;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [MagW:0] addend = '0;
        automatic logic [MagW:0] wide;
        addend[FracW+1] = hidden8_q[i];
        if (Narrow) addend[CutW+1] = cut8_q[i];
        addend[0] = inc8_q[i];
        wide = {exp8_q[i], frac8_q[i], 1'b1} + addend;
        res[i*Width+:Width] = {sign8_q[i], wide[MagW:1]};
      end
      res_o <= res;
    end

    if (valid_q[7]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic shift = !sum7_q[i][SumW-1] && rest7_q[i];
        automatic sum_t sum = shift ? sum7_q[i] << 1 : sum7_q[i];
        automatic logic hidden = sum[SumW-1];
        automatic logic up = sum[2] && (sum[3] || sum[1] || sum[0] || sticky7_q[i]);
        automatic logic cut_up = 1'b0;
        // Exponent - {shift7_q, shift}, the last bit as (missing) carry.
        automatic logic [8:0] left = {exp7_q[i], 1'b1} + {3'b111, ~shift7_q[i], 1'b1, !shift};
        if (Narrow) begin
          cut_up = sum[CutW+2] && (sum[CutW+3] || sum[CutW+1:0] != '0 || sticky7_q[i]);
        end
        frac8_q[i]   = spec7_q[i] ? {nan7_q[i], {(FracW - 1) {1'b0}}} : sum[SumW-2:3];
        // Without a hidden bit the number is subnormal or zero: field 0.
        exp8_q[i]    = spec7_q[i] ? ExpMax : !hidden ? '0 : left[8:1];
        hidden8_q[i] = hidden && !spec7_q[i];
        inc8_q[i]    = up && !spec7_q[i] && !narrow_q[7];
        cut8_q[i]    = cut_up && !spec7_q[i] && narrow_q[7];
        sign8_q[i]   = sign7_q[i] && !nan7_q[i];
      end
    end

    if (valid_q[6]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [1:0] steps = pairs(sum6_q[i][SumW-1-:6], rest6_q[i], exp6_q[i][2:1]);
        sum7_q[i]    = sum6_q[i] << {steps, 1'b0};
        shift7_q[i]  = {groups6_q[i], steps};
        rest7_q[i]   = rest6_q[i] || exp6_q[i][2:0] != {steps, 1'b0};
        exp7_q[i]    = exp6_q[i];
        sticky7_q[i] = sticky6_q[i];
        sign7_q[i]   = sign6_q[i];
        spec7_q[i]   = spec6_q[i];
        nan7_q[i]    = nan6_q[i];
      end
    end

    if (valid_q[5]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [1:0] steps = groups(sum5_q[i], exp5_q[i]);
        sum6_q[i]    = sum5_q[i] << {steps, 3'd0};
        groups6_q[i] = steps;
        rest6_q[i]   = exp5_q[i][7:3] != 5'(steps);
        exp6_q[i]    = exp5_q[i];
        sticky6_q[i] = sticky5_q[i];
        sign6_q[i]   = sign5_q[i] && !(sub5_q[i] && sum5_q[i] == '0);  // x - x = +0
        spec6_q[i]   = spec5_q[i] || (exp5_q[i] == ExpMax - 1'b1 && sum5_q[i][SumW-1]);
        nan6_q[i]    = nan5_q[i];
      end
    end

    if (valid_q[4]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic aln_t sml;
        automatic logic sticky;
        automatic logic [SumW:0] wide;
        {sml, sticky} = shift_fine(sml4_q[i], fine4_q[i]);
        sticky |= sticky4_q[i];
        // What fell out belongs to the subtrahend: it takes the place of the + 1 of its complement.
        wide = {1'b0, big4_q[i], 2'b00, 1'b1} +
               {{1'b0, sml} ^ {SumW{sub4_q[i]}}, sub4_q[i] && !sticky};
        sum5_q[i]    = wide[SumW:1];
        sticky5_q[i] = sticky;
        exp5_q[i]    = exp4_q[i];
        sign5_q[i]   = sign4_q[i];
        sub5_q[i]    = sub4_q[i];
        spec5_q[i]   = spec4_q[i];
        nan5_q[i]    = nan4_q[i];
      end
    end

    if (valid_q[3]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        {sml4_q[i], sticky4_q[i]} = shift_coarse({sml3_q[i], 2'b00}, diff3_q[i]);
        fine4_q[i] = diff3_q[i][2:0];
        big4_q[i]  = big3_q[i];
        exp4_q[i]  = exp3_q[i];
        sign4_q[i] = sign3_q[i];
        sub4_q[i]  = sub3_q[i];
        spec4_q[i] = spec3_q[i];
        nan4_q[i]  = nan3_q[i];
      end
    end

    if (valid_q[2]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [7:0] big_exp = big2_q[i][MagW-1:FracW];
        automatic logic [7:0] sml_exp = sml2_q[i][MagW-1:FracW];
        automatic logic special = big_exp == ExpMax;
        // One less when only the smaller one is subnormal; one carry chain.
        diff3_q[i] = 8'(({1'b0, big_exp, 1'b1} +
                          {1'b0, ~sml_exp, !(bnorm2_q[i] && !snorm2_q[i])}) >> 1);
        big3_q[i]  = {bnorm2_q[i], big2_q[i][FracW-1:0]};
        sml3_q[i]  = {snorm2_q[i], sml2_q[i][FracW-1:0]};
        exp3_q[i]  = {big_exp[7:1], big_exp[0] || !bnorm2_q[i]};
        sign3_q[i] = sign2_q[i];
        sub3_q[i]  = sub2_q[i];
        spec3_q[i] = special;
        nan3_q[i]  = special && (big2_q[i][FracW-1:0] != '0 ||
                                  (sub2_q[i] && sml_exp == ExpMax));
      end
    end

    if (valid_q[1]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic use_a = take_a(op1_q, order1_q[i]);
        automatic logic add = op1_q == LaneSum;
        big2_q[i]   = use_a ? a1_q[i] : b1_q[i];
        bnorm2_q[i] = use_a ? anorm1_q[i] : bnorm1_q[i];
        sign2_q[i]  = use_a ? order1_q[i].a_neg : order1_q[i].b_neg;
        sml2_q[i]   = !add ? '0 : use_a ? b1_q[i] : a1_q[i];
        snorm2_q[i] = add && (use_a ? bnorm1_q[i] : anorm1_q[i]);
        sub2_q[i]   = add && order1_q[i].a_neg != order1_q[i].b_neg;
      end
    end

    if (valid_i) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic val_t a = a_i[i*32+:Width];
        automatic val_t b = b_i[i*32+:Width];
        if (Narrow && cmd_i.bf16) begin
          a &= UpperMask;
          b &= UpperMask;
        end
        a1_q[i]     = a[MagW-1:0];
        b1_q[i]     = b[MagW-1:0];
        anorm1_q[i] = a[MagW-1:FracW] != '0;
        bnorm1_q[i] = b[MagW-1:FracW] != '0;
        order1_q[i] = '{
            a_ge: a[MagW-1:0] >= b[MagW-1:0],
            a_neg: a[Width-1],
            b_neg: b[Width-1],
            a_nan: is_nan(a[MagW-1:0]),
            b_nan: is_nan(b[MagW-1:0])
        };
      end
    end
  end

endmodule

`default_nettype wire
