// SPDX-License-Identifier: Apache-2.0
//
// What PREMUL_SUM of floats needs to be as fast as SUM: lanes for the products of a second source
// with the scalar, beside those of weft_nmc_lanes, and lanes that convert sums of products.
//
//   product   mul_i, a cycle ahead of its operands; FloatMulLatency cycles behind them product_o
//   result    convert_i with what a sum is to become, FloatLatency + 1 cycles ahead of sum_i, which
//             is rounded to odd; FloatLatency behind it valid_o with the result
//
// No handshake. Flags one cycle behind product and result. Needs less than the whole of
// weft_nmc_float: constants of the commands leave out the rest.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_pairs
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    localparam int unsigned Words = NmcW / 32
) (
    input  wire                clk_i,
    input  wire                rst_i,
    // Products of elements of `from`, one in each word, of fp32 as results.
    input  wire                mul_i,
    input  wire float_fmt_e    from_i,
    input  wire  [  Words-1:0] live_i,
    input  wire  [   NmcW-1:0] b_i,
    input  wire  [       31:0] scalar_i,
    output logic               product_valid_o,
    output logic [   NmcW-1:0] product_o,
    output float_flags_t       product_flags_o,
    // Conversions.
    input  wire                convert_i,
    input  wire float_fmt_e    to_i,
    input  wire                saturate_i,
    input  wire  [  Words-1:0] convert_live_i,
    input  wire  [   NmcW-1:0] sum_i,
    output logic               valid_o,
    output logic [   NmcW-1:0] res_o,
    output float_flags_t       flags_o
);

  typedef struct packed {
    float_fmt_e       to;
    logic             saturate;
    logic [Words-1:0] live;
  } convert_t;

  logic                  mul_q;
  logic [FloatLatency:0] convert_q;  // up to the cycle with the sum
  convert_t              convert;
  logic                  convert_room, convert_here;
  float_cmd_t            mul_cmd, convert_cmd;
  wire                   sum_valid = convert_q[FloatLatency];

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      mul_q     <= 1'b0;
      convert_q <= '0;
    end else begin
      mul_q     <= mul_i;
      convert_q <= {convert_q[FloatLatency-1:0], convert_i};
    end
  end

  weft_fifo #(
      .data_t(convert_t),
      .Depth (16)
  ) u_converts (
      .clk_i,
      .rst_i,
      .s_valid_i(convert_i),
      .s_ready_o(convert_room),
      .s_data_i ('{to: to_i, saturate: saturate_i, live: convert_live_i}),
      .m_valid_o(convert_here),
      .m_ready_i(sum_valid),
      .m_data_o (convert),
      .count_o  ()
  );

  always_comb begin
    mul_cmd              = '0;
    mul_cmd.op           = FloatMul;
    mul_cmd.from         = from_i;
    mul_cmd.a_fmt        = from_i;
    mul_cmd.scalar       = 1'b1;
    mul_cmd.to_acc       = 1'b1;
    convert_cmd          = '0;
    convert_cmd.op       = FloatConvert;
    convert_cmd.to       = convert.to;
    convert_cmd.floor    = float_floor(FmtFp32, convert.to);
    convert_cmd.saturate = convert.saturate;
  end

  weft_nmc_float #(
      .Lanes(Words),
      .Width(32),
      .Sum  (1'b0)
  ) u_products (
      .clk_i,
      .rst_i,
      .valid_i (mul_q),
      .cmd_i   (mul_cmd),
      .late_i  (1'b0),
      .live_i,
      .a_i     (b_i),
      .b_i     ('0),
      .acc_i   ('0),
      .other_i ('0),
      .factor_i(scalar_i),
      .valid_o (product_valid_o),
      .res_o   (product_o),
      .flags_o (product_flags_o)
  );

  weft_nmc_float #(
      .Lanes(Words),
      .Width(32),
      .Sum  (1'b0),
      .Mul  (1'b0)
  ) u_conversions (
      .clk_i,
      .rst_i,
      .valid_i (sum_valid),
      .cmd_i   (convert_cmd),
      .late_i  (1'b1),
      .live_i  (convert.live),
      .a_i     ('0),
      .b_i     ('0),
      .acc_i   ('0),
      .other_i (sum_i),
      .factor_i('0),
      .valid_o,
      .res_o,
      .flags_o
  );

  `WEFT_IMPLIES(ConvertHasRoom, convert_i, convert_room);
  `WEFT_IMPLIES(ConvertIsHere, sum_valid, convert_here);

endmodule

`default_nettype wire
