// SPDX-License-Identifier: Apache-2.0
//
// One assertion of each macro of weft_assert.svh over plain inputs, for tests that break each rule.
`default_nettype none
`include "weft_assert.svh"

module weft_assert_probe (
    input  wire       clk_i,
    input  wire       rst_i,
    input  wire       ok_i,
    input  wire       a_i,
    input  wire       b_i,
    input  wire       before_i,
    input  wire       after_i,
    input  wire       valid_i,
    input  wire       ready_i,
    input  wire [7:0] data_i
);

  `WEFT_ASSERT(Always, ok_i);
  `WEFT_IMPLIES(SameCycle, a_i, b_i);
  `WEFT_NEXT(NextCycle, before_i, after_i);
  `WEFT_HOLD(Holds, valid_i, ready_i, data_i);

endmodule

`default_nettype wire
