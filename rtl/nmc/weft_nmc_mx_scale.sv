// SPDX-License-Identifier: Apache-2.0
//
// The scale of a block of OCP MX that is to hold 32 numbers in fp32: the largest finite one gets
// the element format's highest exponent. A product with the factor, rounded to the format and
// clamped, then makes its elements.
//
// No handshake: numbers with valid_i in cycle t, the element format in the cycle ahead of the
// scale, that in t + MxScaleLatency, one block a cycle. An infinity has no fraction, a NaN the
// first bit of it; lanes leave no others.
//
//   1  the larger exponents of neighbours, without infinity and NaN
//   2  the largest ones of eights
//   3  the largest one
//   4  the scale
//
// An exponent field of 0 counts as 0: such numbers are below what the lowest scale gives the
// highest exponent. The rules are sw/ref/num/mx.h's.
`default_nettype none

module weft_nmc_mx_scale
  import weft_nmc_pkg::*;
(
    input  wire                       clk_i,
    input  wire                       rst_i,
    input  wire                       valid_i,
    input  wire  [MxElements*32-1:0]  values_i,
    input  wire  float_fmt_e          fmt_i,
    output mx_scale_t                 scale_o,
    output logic [              31:0] factor_o
);

  localparam int unsigned N = MxElements;
  typedef logic [7:0] exp_t;

  // Of four, by comparing each with each: two levels less than two rounds of larger().
  function automatic exp_t largest(exp_t a, exp_t b, exp_t c, exp_t d);
    logic ab, cd, left;
    ab   = a >= b;
    cd   = c >= d;
    left = ab ? (cd ? a >= c : a >= d) : (cd ? b >= c : b >= d);
    return left ? (ab ? a : b) : (cd ? c : d);
  endfunction

  function automatic exp_t highest(float_fmt_e fmt);
    unique case (fmt)
      FmtE4m3: return 8'd8;
      FmtE5m2: return 8'd15;
      default: return 8'd2;
    endcase
  endfunction

  logic [MxScaleLatency-1:1] valid_q;  // index: the stage that they are behind
  logic                      special_q [1:MxScaleLatency-1];
  logic                      infinite_q[1:MxScaleLatency-1];
  exp_t                      most1_q   [N/2];
  exp_t                      most2_q   [N/8];
  exp_t                      most3_q;

  always_ff @(posedge clk_i) begin
    if (valid_q[3]) begin
      automatic logic [8:0] scale = {1'b0, most3_q} - {1'b0, highest(fmt_i)};
      scale_o.infinite <= infinite_q[3];
      scale_o.none     <= fmt_i == FmtE2m1 && special_q[3];
      scale_o.scale    <= scale[8] ? '0 : scale[7:0];
      // 1 / 2^(scale - 127), in fp32.
      factor_o         <= {1'b0, 8'd254 - (scale[8] ? '0 : scale[7:0]), 23'd0};
    end

    if (valid_q[2]) most3_q <= largest(most2_q[0], most2_q[1], most2_q[2], most2_q[3]);

    if (valid_q[1]) begin
      for (int unsigned i = 0; i < N / 8; i++) begin
        most2_q[i] <= largest(most1_q[4*i], most1_q[4*i+1], most1_q[4*i+2], most1_q[4*i+3]);
      end
    end

    if (valid_i) begin
      automatic logic [N-1:0] special, infinite;
      for (int unsigned i = 0; i < N; i++) begin
        special[i]  = values_i[32*i+23+:8] == '1;
        infinite[i] = special[i] && !values_i[32*i+22];
      end
      // The comparison does not wait for what is none of the numbers.
      for (int unsigned i = 0; i < N / 2; i++) begin
        automatic exp_t a = values_i[64*i+23+:8], b = values_i[64*i+55+:8];
        most1_q[i] <= (!special[2*i] && (special[2*i+1] || a >= b)) ? a : b;
        if (special[2*i] && special[2*i+1]) most1_q[i] <= '0;
      end
      special_q[1]  <= special != '0;
      infinite_q[1] <= infinite != '0;
    end

    for (int unsigned i = 2; i < MxScaleLatency; i++) begin
      if (valid_q[i-1]) begin
        special_q[i]  <= special_q[i-1];
        infinite_q[i] <= infinite_q[i-1];
      end
    end

    if (rst_i) valid_q <= '0;
    else valid_q <= {valid_q[MxScaleLatency-2:1], valid_i};
  end

endmodule

`default_nettype wire
