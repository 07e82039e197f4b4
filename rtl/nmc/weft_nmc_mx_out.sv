// SPDX-License-Identifier: Apache-2.0
//
// Makes a block of OCP MX out of 32 numbers in fp32: the scale that gives the largest finite one
// the element format's highest exponent, and the numbers divided by it, rounded to nearest even
// and clamped.
//
// No handshake: numbers with valid_i in cycle t, their block in t + MxOutLatency, one a cycle. The
// bytes behind an MXFP4 block are undefined.
//
//   exponents                               numbers
//   0                                       infinity or NaN? They come through a multiplexer
//   1  the larger ones of neighbours        subnormal: left by 16 or 8
//   2  the largest ones of eights           ... by 4 and 2
//   3  the largest one                      ... by 1: all are now 1.ffff and a sticky bit
//   4  the scale, and the exponent of its lowest normal element
//   5  for each the difference to that: the element's exponent, and if it is below how far to
//      shift right
//   6  shift; decide the rounding
//   7  {exponent, fraction} + rounding in one carry chain
//   8  clamp; infinity and NaN
//
// An exponent field of 0 counts as 0 for the scale: such numbers are below what the lowest scale
// gives the highest exponent. The rules are sw/ref/num/mx.h's.
`default_nettype none

module weft_nmc_mx_out
  import weft_nmc_pkg::*;
(
    input  wire                       clk_i,
    input  wire                       rst_i,
    input  wire                       valid_i,
    input  wire  mx_fmt_e             fmt_i,
    input  wire  [MxElements*32-1:0]  values_i,
    output logic                      valid_o,
    output mx_block_t                 block_o,
    output float_flags_t              flags_o
);

  localparam int unsigned N = MxElements;
  localparam int unsigned Last = MxOutLatency - 1;  // behind stage 0

  typedef logic [7:0] exp_t;
  typedef logic signed [9:0] wide_exp_t;

  // A number that is not 0 as 1.ffff and whether there is more; h is then set.
  typedef struct packed {
    logic       h;
    logic [3:0] frac;
    logic       sticky;
  } sig_t;

  function automatic exp_t larger(exp_t a, exp_t b);
    return (a >= b) ? a : b;
  endfunction

  // Of four, by comparing each with each: two levels less than two rounds of larger().
  function automatic exp_t largest(exp_t a, exp_t b, exp_t c, exp_t d);
    logic ab, cd, left;
    ab   = a >= b;
    cd   = c >= d;
    left = ab ? (cd ? a >= c : a >= d) : (cd ? b >= c : b >= d);
    return left ? (ab ? a : b) : (cd ? c : d);
  endfunction

  function automatic exp_t highest(mx_fmt_e fmt);
    unique case (fmt)
      MxE4m3:  return 8'd8;
      MxE5m2:  return 8'd15;
      default: return 8'd2;
    endcase
  endfunction

  // Exponents of normal numbers: the lowest one, and how far it lies below the highest one.
  function automatic wide_exp_t lowest(mx_fmt_e fmt);
    unique case (fmt)
      MxE4m3:  return -10'sd6;
      MxE5m2:  return -10'sd14;
      default: return 10'sd0;
    endcase
  endfunction

  function automatic wide_exp_t reach(mx_fmt_e fmt);
    unique case (fmt)
      MxE4m3:  return 10'sd14;
      MxE5m2:  return 10'sd29;
      default: return 10'sd2;
    endcase
  endfunction

  function automatic logic [6:0] largest_code(mx_fmt_e fmt);
    unique case (fmt)
      MxE4m3:  return 7'h7e;
      MxE5m2:  return 7'h7b;
      default: return 7'h07;
    endcase
  endfunction

  function automatic logic [6:0] nan_code(mx_fmt_e fmt);
    return (fmt == MxE5m2) ? 7'h7e : 7'h7f;
  endfunction

  // The exponent field behind its fraction bits.
  function automatic logic [6:0] field(mx_fmt_e fmt, logic [4:0] x);
    unique case (fmt)
      MxE4m3:  return {x[3:0], 3'd0};
      MxE5m2:  return {x, 2'd0};
      default: return {4'd0, x[1:0], 1'b0};
    endcase
  endfunction

  // Whether a code without its sign is above the largest one.
  function automatic logic above(mx_fmt_e fmt, logic [7:0] x);
    unique case (fmt)
      MxE4m3:  return x[7] || x[6:0] == '1;
      MxE5m2:  return x[7] || x[6:2] == '1;
      default: return x[3];
    endcase
  endfunction

  // How far to shift 1.ffff so that of its upper four bits the lowest one is the element's last; of
  // an element that lies `up` exponents above the lowest normal one. From 5 on all bits are below
  // the rounding bit. Tables take one level less than sums.
  function automatic logic [2:0] distance(mx_fmt_e fmt, wide_exp_t up);
    logic [2:0] x;
    unique case ({fmt, up[2:0]})
      {MxE4m3, 3'd7}:                                 x = 3'd1;
      {MxE4m3, 3'd6}, {MxE5m2, 3'd7}:                 x = 3'd2;
      {MxE4m3, 3'd5}, {MxE5m2, 3'd6}, {MxE2m1, 3'd7}: x = 3'd3;
      {MxE4m3, 3'd4}, {MxE5m2, 3'd5}, {MxE2m1, 3'd6}: x = 3'd4;
      default:                                        x = 3'd5;
    endcase
    if (!up[9]) return {1'b0, fmt};  // three, two or one bits of fraction
    return (up[8:3] == '1) ? x : 3'd5;
  endfunction

  // {kept, first bit dropped, anything below}.
  function automatic logic [5:0] shift(sig_t x, logic [2:0] by);
    logic s;
    s = x.sticky;
    unique case (by)
      3'd0:    return {x.h, x.frac, s};
      3'd1:    return {1'd0, x.h, x.frac[3:1], x.frac[0] || s};
      3'd2:    return {2'd0, x.h, x.frac[3:2], x.frac[1:0] != '0 || s};
      3'd3:    return {3'd0, x.h, x.frac[3], x.frac[2:0] != '0 || s};
      3'd4:    return {4'd0, x.h, x.frac != '0 || s};
      default: return {5'd0, x.h || x.frac != '0 || s};
    endcase
  endfunction

  // One copy for all lanes; index = the stage whose registers they belong to.
  logic                 valid0_q;
  logic      [Last-1:1] valid_q;
  mx_fmt_e              fmt0_q;
  mx_fmt_e              fmt_q     [1:Last-1];
  logic                 special_q [2:Last-1];
  logic                 infinite_q[2:Last-1];
  exp_t                 scale_q   [4:Last-1];
  wide_exp_t            low4_q;  // the exponent of the scale's lowest normal element

  // Largest exponents of 2, 8 and 32 numbers.
  exp_t                 most1_q   [N/2];
  exp_t                 most2_q   [N/8];
  exp_t                 most3_q;

  // Numbers: sign, infinity and NaN, exponent, significand.
  logic      [32*N-1:0] values0_q;
  logic         [N-1:0] special0_q;
  logic         [N-1:0] sign_q    [1:Last-1];
  logic         [N-1:0] inf_q     [1:Last-1];
  logic         [N-1:0] nan_q     [1:Last-1];
  logic          [22:0] frac1_q   [N];
  logic           [4:3] left1_q   [N];
  logic                 sub1_q    [N];  // no hidden bit
  exp_t                 exp1_q    [N];
  logic          [22:0] frac2_q   [N];
  logic           [4:1] left2_q   [N];
  logic                 sub2_q    [N];
  exp_t                 exp2_q    [N];
  sig_t                 sig3_q    [N];
  wide_exp_t            exp3_q    [N];
  sig_t                 sig4_q    [N];
  wide_exp_t            exp4_q    [N];
  sig_t                 sig5_q    [N];
  logic           [2:0] by5_q     [N];
  logic           [4:0] exp5_q    [N];
  logic           [3:0] kept6_q   [N];
  logic                 up6_q     [N];
  logic           [6:0] base6_q   [N];
  logic         [N-1:0] lost6_q;
  logic           [7:0] sum7_q    [N];
  logic                 lost7_q;

  // Last stage first, with blocking assignments to the arrays, for the reasons of weft_nmc_float.
  always_ff @(posedge clk_i) begin
    if (valid_q[7]) begin
      automatic mx_fmt_e fmt = fmt_q[7];
      automatic logic half = fmt == MxE2m1;
      automatic logic none = half && special_q[7];
      automatic logic [8*N-1:0] codes, pairs;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic most = above(fmt, sum7_q[i]) || inf_q[7][i];
        automatic logic [6:0] code = most ? largest_code(fmt) : sum7_q[i][6:0];
        automatic logic nan = nan_q[7][i];
        codes[8*i+:8] = {sign_q[7][i] && !nan, nan ? nan_code(fmt) : code};
      end
      pairs = codes;
      for (int unsigned i = 0; i < N; i++) begin
        if (half) pairs[4*i+:4] = none ? '0 : {codes[8*i+7], codes[8*i+:3]};
      end
      block_o          <= {pairs, none ? 8'hff : scale_q[7]};
      flags_o.invalid  <= 1'b0;
      flags_o.overflow <= infinite_q[7];
      flags_o.inexact  <= infinite_q[7] || (!none && lost7_q);
    end

    if (valid_q[6]) begin
      lost7_q <= lost6_q != '0;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic [8:0] sum = {1'b0, base6_q[i], 1'b1} + {4'd0, kept6_q[i], up6_q[i]};
        sum7_q[i] = sum[8:1];
      end
    end

    if (valid_q[5]) begin
      automatic logic [N-1:0] lost;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic [5:0] x = shift(sig5_q[i], by5_q[i]);
        automatic logic over;
        kept6_q[i] = x[5:2];
        up6_q[i]   = x[1] && (x[0] || x[2]);
        base6_q[i] = field(fmt_q[5], exp5_q[i]);
        // In e4m3 the code above the largest one is not a number.
        over       = fmt_q[5] == MxE4m3 && exp5_q[i] == 5'd14 && x[5:2] == '1;
        lost[i]    = (x[1:0] != '0 || over) && !inf_q[5][i] && !nan_q[5][i];
      end
      lost6_q <= lost;
    end

    if (valid_q[4]) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic wide_exp_t up = exp4_q[i] - low4_q;
        sig5_q[i] = sig4_q[i];
        by5_q[i]  = distance(fmt_q[4], up);
        exp5_q[i] = up[9] ? '0 : up[4:0];
      end
    end

    if (valid_q[3]) begin
      automatic logic [8:0] scale = {1'b0, most3_q} - {1'b0, highest(fmt_q[3])};
      scale_q[4] <= scale[8] ? '0 : scale[7:0];
      low4_q     <= scale[8] ? lowest(fmt_q[3]) : wide_exp_t'({2'd0, most3_q}) - reach(fmt_q[3]);
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        sig4_q[i] = sig3_q[i];
        exp4_q[i] = exp3_q[i];
      end
    end

    if (valid_q[2]) begin
      most3_q <= largest(most2_q[0], most2_q[1], most2_q[2], most2_q[3]);
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic left = sub2_q[i] && !frac2_q[i][22];
        automatic logic [22:0] x = left ? frac2_q[i] << 1 : frac2_q[i];
        if (sub2_q[i]) begin
          // As field 1, in which the hidden bit is one place above the first one of the fraction.
          exp3_q[i] = -wide_exp_t'({5'd0, left2_q[i], left});
          sig3_q[i] = '{h: x[22], frac: x[21:18], sticky: x[17:0] != '0};
        end else begin
          exp3_q[i] = wide_exp_t'({2'd0, exp2_q[i]});
          sig3_q[i] = '{h: 1'b1, frac: x[22:19], sticky: x[18:0] != '0};
        end
      end
    end

    if (valid_q[1]) begin
      for (int unsigned i = 0; i < N / 8; i++) begin
        most2_q[i] <= largest(most1_q[4*i], most1_q[4*i+1], most1_q[4*i+2], most1_q[4*i+3]);
      end
      special_q[2]  <= (inf_q[1] | nan_q[1]) != '0;
      infinite_q[2] <= inf_q[1] != '0;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic [22:0] x = frac1_q[i];
        automatic logic by4 = sub1_q[i] && x[22:19] == '0;
        automatic logic by2;
        if (by4) x = x << 4;
        by2 = sub1_q[i] && x[22:21] == '0;
        if (by2) x = x << 2;
        frac2_q[i] = x;
        left2_q[i] = {left1_q[i], by4, by2};
        sub2_q[i]  = sub1_q[i];
        exp2_q[i]  = exp1_q[i];
      end
    end

    if (valid_i) begin
      values0_q <= values_i;
      for (int unsigned i = 0; i < N; i++)
        special0_q[i] <= values_i[32*i+23+:8] == '1;
      fmt0_q    <= fmt_i;
    end

    if (valid0_q) begin
      automatic exp_t finite[N];
      automatic logic [N-1:0] inf, nan, sign;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic [31:0] x = values0_q[32*i+:32];
        automatic logic special = special0_q[i];
        automatic logic sub = x[30:23] == '0;
        automatic logic by16 = sub && x[22:7] == '0;
        automatic logic by8 = sub && !by16 && x[22:15] == '0;
        sign[i]    = x[31];
        inf[i]     = special && x[22:0] == '0;
        nan[i]     = special && x[22:0] != '0;
        finite[i]  = special ? '0 : x[30:23];
        exp1_q[i]  = x[30:23];
        sub1_q[i]  = sub;
        left1_q[i] = {by16, by8};
        frac1_q[i] = by16 ? {x[6:0], 16'd0} : by8 ? {x[14:0], 8'd0} : x[22:0];
      end
      for (int unsigned i = 0; i < N / 2; i++) most1_q[i] <= larger(finite[2*i], finite[2*i+1]);
      inf_q[1]  <= inf;
      nan_q[1]  <= nan;
      sign_q[1] <= sign;
    end

    fmt_q[1] <= fmt0_q;
    for (int unsigned i = 2; i < Last; i++) begin
      fmt_q[i]  <= fmt_q[i-1];
      sign_q[i] <= sign_q[i-1];
      inf_q[i]  <= inf_q[i-1];
      nan_q[i]  <= nan_q[i-1];
    end
    for (int unsigned i = 3; i < Last; i++) begin
      special_q[i]  <= special_q[i-1];
      infinite_q[i] <= infinite_q[i-1];
    end
    for (int unsigned i = 5; i < Last; i++) scale_q[i] <= scale_q[i-1];

    if (rst_i) begin
      valid0_q <= 1'b0;
      valid_q  <= '0;
      valid_o  <= 1'b0;
    end else begin
      valid0_q <= valid_i;
      valid_q  <= {valid_q[Last-2:1], valid0_q};
      valid_o <= valid_q[Last-1];
    end
  end

endmodule

`default_nettype wire
