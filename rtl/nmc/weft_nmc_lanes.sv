// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the reducer: one beat of operands in, one beat of results out, every cycle.
//
// 32 fp32 lanes, which also take the upper bf16 of each word, 32 bf16 lanes for the lower ones, and
// 32 integer lanes, which also copy. No handshake; latency 10 cycles for floats, 3 for integers.
// Who feeds the lanes must leave FpLatency - IntLatency cycles between the last beat of a
// floating-point job and the first beat of an integer job or copy (asserted here).
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_lanes
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire              valid_i,
    input  wire lane_cmd_t   cmd_i,
    input  wire              err_i,     // travels with the beat
    input  wire  [NmcW-1:0]  a_i,
    input  wire  [NmcW-1:0]  b_i,
    output logic             valid_o,
    output logic             err_o,
    output logic [NmcW-1:0]  data_o
);

  localparam int unsigned Words = NmcW / 32;

  logic [Words*32-1:0] single, whole;
  logic [Words*16-1:0] half;

  wire in_fp = valid_i && cmd_i.fp;
  wire in_int = valid_i && !cmd_i.fp;

  weft_nmc_fadd #(
      .Lanes (Words),
      .FracW (23),
      .Narrow(1'b1)
  ) u_single (
      .clk_i,
      .rst_i,
      .valid_i(in_fp),
      .cmd_i,
      .a_i,
      .b_i,
      .res_o  (single)
  );

  weft_nmc_fadd #(
      .Lanes(Words),
      .FracW(7)
  ) u_half (
      .clk_i,
      .rst_i,
      .valid_i(in_fp && cmd_i.bf16),
      .cmd_i,
      .a_i,
      .b_i,
      .res_o  (half)
  );

  weft_nmc_int #(
      .Lanes(Words)
  ) u_int (
      .clk_i,
      .rst_i,
      .valid_i(in_int),
      .cmd_i,
      .a_i,
      .b_i,
      .res_o  (whole)
  );

  // What travels beside the beats; bit n = cycle n + 1 behind the operands.
  logic [FpLatency-1:0] fp_valid_q, fp_err_q, fp_half_q;
  logic [IntLatency-1:0] int_valid_q, int_err_q;

  wire fp_out = fp_valid_q[FpLatency-1];
  wire int_out = int_valid_q[IntLatency-1];

  always_ff @(posedge clk_i) begin
    fp_err_q  <= {fp_err_q[FpLatency-2:0], err_i};
    fp_half_q <= {fp_half_q[FpLatency-2:0], cmd_i.bf16};
    int_err_q <= {int_err_q[IntLatency-2:0], err_i};

    if (fp_out) begin
      automatic logic [NmcW-1:0] res = single;
      if (fp_half_q[FpLatency-1]) begin
        /* verilator unroll_disable */
        for (int unsigned i = 0; i < Words; i++) res[32*i+:16] = half[16*i+:16];
      end
      err_o  <= fp_err_q[FpLatency-1];
      data_o <= res;
    end else if (int_out) begin
      err_o  <= int_err_q[IntLatency-1];
      data_o <= whole;
    end

    if (rst_i) begin
      fp_valid_q  <= '0;
      int_valid_q <= '0;
      valid_o     <= 1'b0;
    end else begin
      fp_valid_q  <= {fp_valid_q[FpLatency-2:0], in_fp};
      int_valid_q <= {int_valid_q[IntLatency-2:0], in_int};
      valid_o     <= fp_out || int_out;
    end
  end

  `WEFT_ASSERT(NoCollision, !(fp_out && int_out));

endmodule

`default_nettype wire
