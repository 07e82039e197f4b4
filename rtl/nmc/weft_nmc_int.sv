// SPDX-License-Identifier: Apache-2.0
//
// Integer lanes: 32-bit sum (wraps), signed maximum and minimum, and copy of the first operand.
//
// No handshake: operands with valid_i in cycle t, result in cycle t+2, one a cycle. One carry chain
// a lane is adder and comparator. The first operand is acc_i with use_acc, else a_i.
`default_nettype none

module weft_nmc_int
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Lanes = 32
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    input  wire                  valid_i,
    input  wire lane_cmd_t       cmd_i,
    input  wire  [Lanes*32-1:0]  a_i,
    input  wire  [Lanes*32-1:0]  b_i,
    input  wire  [Lanes*32-1:0]  acc_i,
    output logic                 valid_o,
    output logic [Lanes*32-1:0]  res_o
);

  logic        valid_q;
  lane_op_e    op_q;
  logic [31:0] a_q   [Lanes];
  logic [31:0] b_q   [Lanes];
  logic [31:0] sum_q [Lanes];  // a + b, or a - b for max and min

  // Last stage first, with blocking assignments to the arrays, for the reasons of weft_nmc_float.
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      valid_q <= 1'b0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= valid_i;
      valid_o <= valid_q;
    end

    if (valid_q) begin
      automatic logic [Lanes*32-1:0] res;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        // With unlike signs the difference may overflow, but then the signs decide.
        automatic logic a_less = (a_q[i][31] != b_q[i][31]) ? a_q[i][31] : sum_q[i][31];
        automatic logic use_a = op_q == LaneCopy || (a_less == (op_q == LaneMin));
        res[i*32+:32] = (op_q == LaneSum) ? sum_q[i] : use_a ? a_q[i] : b_q[i];
      end
      res_o <= res;
    end

    if (valid_i) begin
      op_q <= cmd_i.whole;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic        minus = cmd_i.whole != LaneSum;
        automatic logic [31:0] a = cmd_i.use_acc ? acc_i[i*32+:32] : a_i[i*32+:32];
        automatic logic [32:0] wide = {a, 1'b1} + {b_i[i*32+:32] ^ {32{minus}}, minus};
        a_q[i]   = a;
        b_q[i]   = b_i[i*32+:32];
        sum_q[i] = wide[32:1];
      end
    end
  end

endmodule

`default_nettype wire
