// SPDX-License-Identifier: Apache-2.0
//
// Lanes that add floats exactly: a fixed-point accumulator that holds every sum of 64 of them, and
// one rounding, to nearest even, at the end. So the order of the sources changes no bit. Two
// builds:
//   Bf16 0   fp16, e5m2, e4m3: 47 bits an accumulator
//   Bf16 1   bf16: 268 bits
//
// No handshake: operands with valid_i in cycle t, the result in t + ExactLatency, one step a cycle.
// A step adds b to a, with cmd_i.use_acc to the accumulator at index_i; its result is rounded to
// the type of the operands, cmd_i.from, or with to_acc goes to the accumulator. A place that was
// written can be used ExactAgain cycles later. The accumulator is in here: ChunkSteps places of LUT
// RAM. Of the command op, to, propagate_nan, scalar and odd do not matter.
//
// Infinities and NaNs travel beside the sum, as three bits that say which there have been: a NaN
// raises nothing, +inf and -inf invalid, and only the rounding decides which. A zero is +0.
//
//   unit 2^(exponent of the smallest normal number - bits of its fraction - 1): a significand with
//   the exponent field e lies e bits up, and bit 0 is not there. e4m3 and e5m2 lie as the fp16 with
//   the same fields. Groups of 16 bits:
//
//        Top                   32 | 31     16 | 15      1
//        | sign |  64 sources  |  |  a significand, shifted by e mod 16, in two groups
//
//   1  expand
//   2  two's complement, shift by e mod 16; what each group adds: nothing, ones, or a half of that
//   3  add the lower groups to the accumulator or to what a adds
//   4  add the upper groups
//   5  the highest group with a digit; a group has one where a bit differs from the sign
//   6  a window of the sum: that group and what a result whose highest digit is there may keep
//   7  ... the highest four bits with a digit
//   8  ... the highest digit
//   9  round: up or not, beyond the range or not; constants for infinity and NaN
//   10 the increment; take the format's fields
//
// A negative sum is not made positive: its digits are complemented where they are looked at, and
// the 1 that belongs to the complement is part of the rounding. What is complemented is 1 short of
// the magnitude, so where the bits below the last place are all ones the magnitude has none.
// All lanes sit in one clocked block under shared valids, so that idle lanes cost nothing to
// simulate. The rules are sw/ref/num/exact.h's; docs/nmc_lanes.md has figures.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_exact
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Lanes = 32,
    parameter bit          Bf16  = 1'b0
) (
    input  wire                      clk_i,
    input  wire                      rst_i,
    // A step. Lane i takes an element at the top of its 16 bits of a_i and b_i.
    input  wire                      valid_i,
    input  wire  float_cmd_t         cmd_i,
    input  wire  [     ChunkW-1:0]   index_i,
    input  wire  [      Lanes-1:0]   live_i,
    input  wire  [   Lanes*16-1:0]   a_i,
    input  wire  [   Lanes*16-1:0]   b_i,
    // Its result, at the top of 16 bits; undefined with to_acc.
    output logic                     valid_o,
    output logic [   Lanes*16-1:0]   res_o,
    // What any live lane raised, one cycle behind the result; 0 when there is none.
    output float_flags_t             flags_o
);

  localparam int unsigned ExpW = Bf16 ? 8 : 5;
  localparam int unsigned FracW = Bf16 ? 7 : 10;
  localparam int unsigned SigW = FracW + 1;  // with the hidden bit
  localparam int unsigned MaxExp = (1 << ExpW) - 2;
  localparam int unsigned Top = SigW + MaxExp + 6;  // 64 = 2^6 sources
  localparam int unsigned Groups = Top / 16 + 1;
  localparam int unsigned LowGroups = (Groups + 1) / 2;
  localparam int unsigned Low = 16 * LowGroups;  // first bit of the upper groups
  localparam int unsigned PartW = SigW + 16;  // a significand, shifted
  localparam int unsigned Tens = 1 << (ExpW - 4);  // exponents without their lower four bits
  localparam int unsigned Quads = (Tens + 3) / 4;
  localparam int unsigned WinW = SigW + 16;  // highest digits of a group, and a bit to round by
  localparam int unsigned FourW = SigW + 4;  // the same of four bits
  localparam int unsigned BodyW = 15;  // exponent field and fraction

  typedef logic [ExpW-1:0] exp_t;
  typedef logic [FracW-1:0] frac_t;
  typedef logic [Top:1] sum_t;
  typedef logic [PartW-1:0] part_t;
  typedef logic [WinW-1:0] window_t;

  // Which there have been.
  typedef struct packed {
    logic nan;
    logic pos_inf;
    logic neg_inf;
  } special_t;

  typedef struct packed {
    special_t special;
    sum_t     sum;
  } acc_t;

  typedef struct packed {
    logic  neg;
    exp_t  expo;  // effective: 1 for subnormals
    logic [SigW-1:0] sig;
  } number_t;

  typedef enum logic [1:0] {
    AddNone = 2'd0,
    AddOnes = 2'd1,
    AddLow  = 2'd2,  // the lower 16 bits of the part
    AddHigh = 2'd3   // those above
  } add_e;
  typedef add_e [Groups-1:0] adds_t;

  // ---- what the stages compute ------------------------------------------------------------------
  function automatic number_t expand(logic [15:0] x, float_fmt_e fmt);
    exp_t  expo;
    frac_t frac;
    logic  normal;
    if (Bf16) begin
      expo = exp_t'(x[14:7]);
      frac = frac_t'(x[6:0]);
    end else begin
      expo = (fmt == FmtE4m3) ? exp_t'(x[14:11]) : exp_t'(x[14:10]);
      unique case (fmt)
        FmtE4m3: frac = frac_t'({x[10:8], 7'd0});
        FmtE5m2: frac = frac_t'({x[9:8], 8'd0});
        default: frac = frac_t'(x[9:0]);
      endcase
    end
    normal = expo != '0;
    return '{neg: x[15], expo: {expo[ExpW-1:1], expo[0] || !normal}, sig: {normal, frac}};
  endfunction

  function automatic special_t special_of(logic [15:0] x, float_fmt_e fmt);
    logic ends, inf;
    if (Bf16) begin
      ends = x[14:7] == '1;
      inf  = x[6:0] == '0;
    end else begin
      ends = (fmt == FmtE4m3) ? x[14:8] == '1 : x[14:10] == '1;
      inf  = (fmt == FmtE5m2) ? x[9:8] == '0 : (fmt == FmtFp16) && x[9:0] == '0;
    end
    return '{nan: ends && !inf, pos_inf: ends && inf && !x[15], neg_inf: ends && inf && x[15]};
  endfunction

  // Two's complement, by the lower bits of the exponent up.
  function automatic part_t part_of(number_t x);
    logic [SigW:0] value;
    part_t y;
    value = ({1'b0, x.sig} ^ {(SigW + 1) {x.neg}}) + (SigW + 1)'(x.neg);
    y     = {{(PartW - SigW - 1) {value[SigW]}}, value};
    y     = y << x.expo[1:0];
    return y << {x.expo[3:2], 2'd0};
  endfunction

  // `neg`: of the part, since -0 adds nothing.
  function automatic adds_t adds_of(exp_t expo, logic neg);
    adds_t y;
    logic [4:0] low;
    low = 5'(expo[ExpW-1:4]);  // the group that the part starts in
    for (int unsigned g = 0; g < Groups; g++) begin
      if (low == 5'(g)) y[g] = AddLow;
      else if (low + 5'd1 == 5'(g)) y[g] = AddHigh;
      else y[g] = (low < 5'(g) && neg) ? AddOnes : AddNone;
    end
    return y;
  endfunction

  function automatic sum_t place(part_t x, adds_t adds);
    logic [16*Groups-1:0] y;
    logic [31:0] wide;
    wide = {{(32 - PartW) {x[PartW-1]}}, x};
    for (int unsigned g = 0; g < Groups; g++) begin
      unique case (adds[g])
        AddNone: y[16*g+:16] = '0;
        AddOnes: y[16*g+:16] = '1;
        AddLow:  y[16*g+:16] = wide[15:0];
        AddHigh: y[16*g+:16] = wide[31:16];
      endcase
    end
    return y[Top:1];
  endfunction

  // Index of the highest one, 0 if there is none.
  function automatic logic [1:0] highest4(logic [3:1] x);
    return x[3] ? 2'd3 : x[2] ? 2'd2 : {1'b0, x[1]};
  endfunction

  function automatic logic [3:0] highest16(logic [15:1] x);
    logic [3:1] four;
    logic [1:0] high;
    logic [3:1] in;
    for (int unsigned i = 1; i < 4; i++) four[i] = x[4*i+:4] != '0;
    high = highest4(four);
    unique case (high)
      2'd0: in = x[3:1];
      2'd1: in = x[7:5];
      2'd2: in = x[11:9];
      2'd3: in = x[15:13];
    endcase
    return {high, highest4(in)};
  endfunction

  // Which groups of highest digits, from the second one up, have one.
  function automatic logic [15:1] digits_of(sum_t x);
    logic [15:1] y;
    y = '0;
    for (int unsigned i = 1; i < Tens; i++) y[i] = x[16*i+SigW-1+:16] != {16{x[Top]}};
    return y;
  endfunction

  // Of window i: the bits under it are zero. Windows start one below a multiple of 16.
  function automatic logic [Tens-1:0] zeros_of(sum_t x);
    logic [Tens-1:0] y;
    logic [Top+1:0] from0;
    from0 = {x, 2'b00};
    y[0]  = 1'b1;
    for (int unsigned i = 1; i < Tens; i++) y[i] = y[i-1] && from0[16*(i-1)+:16] == '0;
    return y;
  endfunction

  // The bits from Top down that a window cannot start in.
  function automatic logic beyond_windows(sum_t x);
    return x[Top:16*Tens+SigW-1] != {(Top - 16 * Tens - SigW + 2) {x[Top]}};
  endfunction

  function automatic window_t window_of(sum_t x, logic [3:0] at);
    logic [Top+1:0] from0;  // bit 0 and one below it
    window_t y, quad;
    from0 = {x, 2'b00};
    y     = '0;
    for (int unsigned i = 0; i < Quads; i++) begin
      quad = '0;
      for (int unsigned j = 0; j < 4; j++) begin
        if (4 * i + j < Tens && at[1:0] == 2'(j)) quad = from0[16*((4*i+j)%Tens)+:WinW];
      end
      if (at[3:2] == 2'(i)) y = quad;
    end
    return y;
  endfunction

  // {last bit kept, first bit dropped, nothing dropped below it}: of digits without the first one.
  function automatic logic [2:0] cut(logic [10:0] x, logic neg, logic zeros, float_fmt_e fmt);
    logic zeros7;
    zeros7 = zeros && x[6:0] == {7{neg}};
    if (Bf16) return {x[1:0], zeros};
    unique case (fmt)
      FmtE4m3: return {x[8:7], zeros7};
      FmtE5m2: return {x[9:8], zeros7 && x[7] == neg};
      default: return {x[1:0], zeros};
    endcase
  endfunction

  // The result is not below 2^(largest exponent + 1), or in e4m3 above its largest number.
  function automatic logic beyond(exp_t expo, logic [10:0] x, logic up, float_fmt_e fmt);
    logic ones8, ones;  // all bits kept
    ones8 = x[10:9] == '1;
    ones  = ones8 && (fmt == FmtE5m2 || x[8:1] == '1);
    if (Bf16) return expo[ExpW-1:1] == '1 && (expo[0] || (x[7:1] == '1 && up));
    if (fmt == FmtE4m3) return expo[4] || (expo[3:0] == '1 && ones8 && (x[8] || up));
    return expo[ExpW-1:1] == '1 && (expo[0] || (ones && up));
  endfunction

  // Instead of a number: NaN, else infinity or the largest number if `clamp`.
  function automatic logic [BodyW-1:0] constant_of(logic nan, logic clamp, float_fmt_e fmt);
    if (Bf16) return {8'hff, nan, 6'd0};
    if (fmt == FmtE4m3) return {5'd15, 2'b11, !clamp, 7'd0};
    return clamp ? {5'd30, 2'b11, 8'd0} : {5'd31, nan, 9'd0};
  endfunction

  // ---- valid and command ------------------------------------------------------------------------
  // One copy for all lanes; index = the stage whose registers they belong to.
  typedef struct packed {
    float_fmt_e fmt;
    logic       saturate;
  } back_t;

  logic [ExactLatency:1]   valid_q;
  logic [ExactLatency:1]   out_q;  // of these, what has a result to be rounded
  back_t                   back_q  [1:ExactLatency-1];
  logic [2:1]              use_acc_q;
  logic [4:1]              to_acc_q;
  logic [4:1][ChunkW-1:0]  index_q;
  logic [Lanes-1:0]        live_q  [1:ExactLatency];

  always_ff @(posedge clk_i) begin
    back_q[1]  <= '{cmd_i.from, cmd_i.saturate};
    index_q    <= {index_q[3:1], index_i};
    live_q[1]  <= live_i;
    use_acc_q  <= {use_acc_q[1], cmd_i.use_acc};
    to_acc_q   <= {to_acc_q[3:1], cmd_i.to_acc};
    for (int unsigned i = 2; i < ExactLatency; i++) back_q[i] <= back_q[i-1];
    for (int unsigned i = 2; i <= ExactLatency; i++) live_q[i] <= live_q[i-1];
    if (rst_i) begin
      valid_q <= '0;
      out_q   <= '0;
    end else begin
      valid_q <= {valid_q[ExactLatency-1:1], valid_i};
      out_q   <= {out_q[ExactLatency-1:1], valid_i && !cmd_i.to_acc};
    end
  end

  assign valid_o = valid_q[ExactLatency];

  // ---- stage registers --------------------------------------------------------------------------
  number_t         a1_q       [Lanes];
  number_t         b1_q       [Lanes];
  special_t        special1_q [Lanes];  // of a and b

  part_t           apart2_q   [Lanes];
  part_t           bpart2_q   [Lanes];
  adds_t           aadds2_q   [Lanes];
  adds_t           badds2_q   [Lanes];
  special_t        special2_q [Lanes];

  logic [Low-1:1]  low3_q     [Lanes];
  logic            carry3_q   [Lanes];
  logic [Top:Low]  high3_q    [Lanes];  // of the accumulator or a
  part_t           bpart3_q   [Lanes];
  adds_t           badds3_q   [Lanes];
  special_t        special3_q [Lanes];  // of the accumulator too

  acc_t [Lanes-1:0] acc4_q;

  sum_t            sum5_q     [Lanes];
  logic [3:0]      tens5_q    [Lanes];  // which window
  logic [Tens-1:0] zeros5_q   [Lanes];
  logic            over5_q    [Lanes];
  special_t        special5_q [Lanes];

  window_t         win6_q     [Lanes];  // digits, complemented if the sum is negative
  logic [3:0]      tens6_q    [Lanes];
  logic            neg6_q     [Lanes];
  logic            zeros6_q   [Lanes];  // the bits of the sum below are zero
  logic            over6_q    [Lanes];
  special_t        special6_q [Lanes];

  logic [FourW-1:0] four7_q   [Lanes];
  logic [5:0]      fours7_q   [Lanes];  // exponent without its two lower bits
  logic            neg7_q     [Lanes];
  logic            zeros7_q   [Lanes];
  logic            over7_q    [Lanes];
  special_t        special7_q [Lanes];

  logic [SigW-1:0] digits8_q  [Lanes];  // without the first one, and the bit to round by
  exp_t            expo8_q    [Lanes];  // the field
  logic            neg8_q     [Lanes];
  logic            zeros8_q   [Lanes];
  logic            over8_q    [Lanes];
  special_t        special8_q [Lanes];

  logic [BodyW-1:0] body9_q   [Lanes];
  logic            neg9_q     [Lanes];
  logic [2:0]      up9_q      [Lanes];  // at the last place of e4m3, e5m2, the others
  logic [Lanes-1:0] invalid9_q, overflow9_q, inexact9_q;

  logic [Lanes-1:0] invalid10_q, overflow10_q, inexact10_q;

  // ---- the accumulator --------------------------------------------------------------------------
  acc_t [Lanes-1:0] acc2;

  weft_sdpram #(
      .Width($bits(acc4_q)),
      .Depth(ChunkSteps),
      .Style("distributed")
  ) u_acc (
      .clk_i,
      .we_i   (valid_q[4] && to_acc_q[4]),
      .waddr_i(index_q[4]),
      .wdata_i(acc4_q),
      .re_i   (valid_q[1] && use_acc_q[1]),
      .raddr_i(index_q[1]),
      .rdata_o(acc2)
  );

  // ---- the lanes --------------------------------------------------------------------------------
  // Last stage first, with blocking assignments, as in weft_nmc_float; what is read outside of this
  // block is assigned once, for all lanes.
  always_ff @(posedge clk_i) begin
    // Flags of what the last edge left, so before the stages below change it.
    flags_o.invalid  <= out_q[10] && (invalid10_q & live_q[10]) != '0;
    flags_o.overflow <= out_q[10] && (overflow10_q & live_q[10]) != '0;
    flags_o.inexact  <= out_q[10] && (inexact10_q & live_q[10]) != '0;
    if (rst_i) flags_o <= '0;

    if (out_q[9]) begin
      automatic logic [Lanes*16-1:0] res;
      automatic logic four = !Bf16 && back_q[9].fmt == FmtE4m3;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [BodyW-1:0] body = body9_q[i] + {6'd0, up9_q[i][2:1], 6'd0, up9_q[i][0]};
        res[i*16+:16] = {neg9_q[i], four ? {body[BodyW-2:0], 1'b0} : body};
      end
      res_o        <= res;
      invalid10_q  = invalid9_q;
      overflow10_q = overflow9_q;
      inexact10_q  = inexact9_q;
    end

    if (out_q[8]) begin
      automatic float_fmt_e fmt = back_q[8].fmt;
      automatic logic four = !Bf16 && fmt == FmtE4m3;
      automatic logic five = !Bf16 && fmt == FmtE5m2;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic special_t special = special8_q[i];
        automatic logic both = special.pos_inf && special.neg_inf;
        automatic logic nan = special.nan || both;
        automatic logic inf = special.pos_inf || special.neg_inf;
        automatic logic clamp = !Bf16 && back_q[8].saturate && !nan;
        automatic logic neg = neg8_q[i];
        automatic logic odd, half, zeros, up, over, fixed, beyond_all;
        {odd, half, zeros} = cut(11'(digits8_q[i]), neg, zeros8_q[i], fmt);
        // Of a negative sum the bits dropped, and 1: up from a half on, even if they are that.
        up             = neg ? half || (zeros && odd) : half && (!zeros || odd);
        over           = over8_q[i] || beyond(expo8_q[i], 11'(digits8_q[i]), up, fmt);
        fixed          = nan || inf || over;
        beyond_all     = inf ? clamp : over;
        body9_q[i]     = {expo8_q[i], digits8_q[i][SigW-1:1]};
        if (fixed) body9_q[i] = constant_of(nan, clamp, fmt);
        up9_q[i]       = {five, four, !four && !five} & {3{up && !fixed}};
        neg9_q[i]      = inf ? special.neg_inf : neg;
        if (nan || (four && fixed && !clamp)) neg9_q[i] = 1'b0;
        invalid9_q[i]  = both && !special.nan;
        overflow9_q[i] = !nan && beyond_all;
        inexact9_q[i]  = !nan && (beyond_all || (!fixed && (half != neg || !zeros)));
      end
    end

    if (out_q[7]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        // A subnormal number has the exponent 1, but no digit there, and the field 0.
        automatic logic lowest = fours7_q[i] == '0;
        automatic logic [1:0] at = highest4({four7_q[i][FourW-1-:2],
                                             four7_q[i][FourW-3] || lowest});
        automatic logic [SigW:0] digits = (SigW + 1)'(four7_q[i] >> at);
        automatic logic [2:0] under = '0;  // dropped here
        for (int unsigned j = 0; j < 3; j++) begin
          under[j] = 2'(j) < at && four7_q[i][j] != neg7_q[i];
        end
        digits8_q[i]  = digits[SigW-1:0];
        expo8_q[i]    = exp_t'({fours7_q[i], at[1], at[0] && digits[SigW]});
        neg8_q[i]     = neg7_q[i];
        zeros8_q[i]   = zeros7_q[i] && under == '0;
        over8_q[i]    = over7_q[i];
        special8_q[i] = special7_q[i];
      end
    end

    if (out_q[6]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic window_t win = win6_q[i];
        automatic logic [1:0] at = highest4({win[SigW+12+:4] != '0, win[SigW+8+:4] != '0,
                                             win[SigW+4+:4] != '0});
        automatic logic [2:0] under = '0;
        for (int unsigned j = 0; j < 3; j++) begin
          under[j] = 2'(j) < at && win[4*j+:4] != {4{neg6_q[i]}};
        end
        four7_q[i]    = FourW'(win >> {at, 2'd0});
        fours7_q[i]   = {tens6_q[i], at};
        neg7_q[i]     = neg6_q[i];
        zeros7_q[i]   = zeros6_q[i] && under == '0;
        over7_q[i]    = over6_q[i];
        special7_q[i] = special6_q[i];
      end
    end

    if (out_q[5]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic neg = sum5_q[i][Top];
        win6_q[i]     = window_of(sum5_q[i], tens5_q[i]) ^ {WinW{neg}};
        tens6_q[i]    = tens5_q[i];
        neg6_q[i]     = neg;
        zeros6_q[i]   = zeros5_q[i][tens5_q[i][ExpW-5:0]];
        over6_q[i]    = over5_q[i];
        special6_q[i] = special5_q[i];
      end
    end

    if (out_q[4]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic sum_t sum = acc4_q[i].sum;
        sum5_q[i]     = sum;
        tens5_q[i]    = highest16(digits_of(sum));
        zeros5_q[i]   = zeros_of(sum);
        over5_q[i]    = beyond_windows(sum);
        special5_q[i] = acc4_q[i].special;
      end
    end

    if (valid_q[3]) begin
      automatic acc_t [Lanes-1:0] acc;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic sum_t b = place(bpart3_q[i], badds3_q[i]);
        automatic logic [Top-Low+1:0] high;
        high = {high3_q[i], 1'b1} + {b[Top:Low], carry3_q[i]};
        acc[i] = '{special3_q[i], {high[Top-Low+1:1], low3_q[i]}};
      end
      acc4_q <= acc;
    end

    if (valid_q[2]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic acc_t acc = acc2[i];
        automatic sum_t a = use_acc_q[2] ? acc.sum : place(apart2_q[i], aadds2_q[i]);
        automatic sum_t b = place(bpart2_q[i], badds2_q[i]);
        {carry3_q[i], low3_q[i]} = {1'b0, a[Low-1:1]} + {1'b0, b[Low-1:1]};
        high3_q[i]    = a[Top:Low];
        bpart3_q[i]   = bpart2_q[i];
        badds3_q[i]   = badds2_q[i];
        special3_q[i] = special2_q[i] | (use_acc_q[2] ? acc.special : '0);
      end
    end

    if (valid_q[1]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic part_t a = part_of(a1_q[i]);
        automatic part_t b = part_of(b1_q[i]);
        apart2_q[i]   = a;
        bpart2_q[i]   = b;
        aadds2_q[i]   = adds_of(a1_q[i].expo, a[PartW-1]);
        badds2_q[i]   = adds_of(b1_q[i].expo, b[PartW-1]);
        special2_q[i] = special1_q[i];
      end
    end

    if (valid_i) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [15:0] a = a_i[i*16+:16];
        automatic logic [15:0] b = b_i[i*16+:16];
        a1_q[i]       = expand(a, cmd_i.from);
        b1_q[i]       = expand(b, cmd_i.from);
        special1_q[i] = special_of(b, cmd_i.from);
        if (!cmd_i.use_acc) special1_q[i] |= special_of(a, cmd_i.from);
      end
    end
  end

  `WEFT_IMPLIES(ServedType, valid_i, Bf16 ? cmd_i.from == FmtBf16 :
                cmd_i.from inside {FmtFp16, FmtE5m2, FmtE4m3});
  `WEFT_IMPLIES(NoReadWhileWritten, valid_q[1] && use_acc_q[1] && valid_q[4] && to_acc_q[4],
                index_q[1] != index_q[4]);

endmodule

`default_nettype wire
