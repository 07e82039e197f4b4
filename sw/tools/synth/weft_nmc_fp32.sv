// SPDX-License-Identifier: Apache-2.0
//
// One lane of weft_nmc_float that only ever gets fp32, for the meter: what the other formats cost
// is the difference to the lane as it is built. No part of any design.
`default_nettype none

module weft_nmc_fp32
  import weft_nmc_pkg::*;
(
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire               valid_i,
    input  wire float_op_e    op_i,  // a sum, maximum or minimum
    input  wire               propagate_nan_i,
    input  wire               live_i,
    input  wire  [31:0]       a_i,
    input  wire  [31:0]       b_i,
    output logic              valid_o,
    output logic [31:0]       res_o,
    output float_flags_t      flags_o
);

  float_cmd_t cmd;
  always_comb begin
    cmd               = '0;
    cmd.op            = op_i;
    cmd.propagate_nan = propagate_nan_i;
  end

  weft_nmc_float #(
      .Lanes  (1),
      .Convert(1'b0),
      .Mul    (1'b0)
  ) u_lane (
      .clk_i,
      .rst_i,
      .valid_i,
      .cmd_i   (cmd),
      .late_i  (1'b0),
      .live_i,
      .a_i,
      .b_i,
      .acc_i   ('0),
      .other_i ('0),
      .factor_i('0),
      .valid_o,
      .res_o,
      .flags_o
  );

endmodule

`default_nettype wire
