// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the reducer: one beat of operands in, one beat of results out, every cycle.
//
// 32 fp32 lanes, which also take the upper bf16 of each word, 32 bf16 lanes for the lower ones, and
// 32 integer lanes, which also copy. No handshake; latency 9 cycles for floats, 3 for integers.
// Who feeds the lanes must leave FloatLatency - IntLatency cycles between the last beat of a
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

  logic [Words*32-1:0] single, half, whole;
  logic [Words*16-1:0] low_a, low_b;
  float_cmd_t          float_cmd;

  wire in_fp = valid_i && cmd_i.fp;
  wire in_int = valid_i && !cmd_i.fp;

  always_comb begin
    float_cmd = '0;
    unique case (cmd_i.op)
      LaneMax: float_cmd.op = FloatMax;
      LaneMin: float_cmd.op = FloatMin;
      default: float_cmd.op = FloatSum;
    endcase
    float_cmd.from = cmd_i.bf16 ? FmtBf16 : FmtFp32;
    float_cmd.to   = float_cmd.from;
  end

  for (genvar i = 0; i < Words; i++) begin : gen_low
    assign low_a[16*i+:16] = a_i[32*i+:16];
    assign low_b[16*i+:16] = b_i[32*i+:16];
  end

  weft_nmc_float #(
      .Lanes  (Words),
      .Convert(1'b0),
      .Mul    (1'b0)
  ) u_single (
      .clk_i,
      .rst_i,
      .valid_i (in_fp),
      .cmd_i   (float_cmd),
      .live_i  ('1),
      .a_i,
      .b_i,
      .acc_i   ('0),
      .scalar_i('0),
      .valid_o (),
      .res_o   (single),
      .flags_o ()
  );

  weft_nmc_float #(
      .Lanes(Words),
      .Width(16)
  ) u_half (
      .clk_i,
      .rst_i,
      .valid_i (in_fp && cmd_i.bf16),
      .cmd_i   (float_cmd),
      .live_i  ('1),
      .a_i     (low_a),
      .b_i     (low_b),
      .acc_i   ('0),
      .scalar_i('0),
      .valid_o (),
      .res_o   (half),
      .flags_o ()
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
  logic [FloatLatency-1:0] fp_valid_q, fp_err_q, fp_half_q;
  logic [IntLatency-1:0] int_valid_q, int_err_q;

  wire fp_out = fp_valid_q[FloatLatency-1];
  wire int_out = int_valid_q[IntLatency-1];

  always_ff @(posedge clk_i) begin
    fp_err_q  <= {fp_err_q[FloatLatency-2:0], err_i};
    fp_half_q <= {fp_half_q[FloatLatency-2:0], cmd_i.bf16};
    int_err_q <= {int_err_q[IntLatency-2:0], err_i};

    if (fp_out) begin
      automatic logic [NmcW-1:0] res = single;
      if (fp_half_q[FloatLatency-1]) begin
        /* verilator unroll_disable */
        for (int unsigned i = 0; i < Words; i++) res[32*i+:16] = half[32*i+16+:16];
      end
      err_o  <= fp_err_q[FloatLatency-1];
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
      fp_valid_q  <= {fp_valid_q[FloatLatency-2:0], in_fp};
      int_valid_q <= {int_valid_q[IntLatency-2:0], in_int};
      valid_o     <= fp_out || int_out;
    end
  end

  `WEFT_ASSERT(NoCollision, !(fp_out && int_out));

endmodule

`default_nettype wire
