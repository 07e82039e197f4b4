// SPDX-License-Identifier: Apache-2.0
// Credits are home at rest: once a block has been quiet for Rest cycles, everything that it lends
// out (room of its buffers, slots, bytes it may be ahead) is back. A credit that leaks a little
// each time something rare happens is seen at the next rest, long before the block stands still.
// Bound to blocks of a simulation by the home_*.sv beside it; drives nothing, in no list for
// synthesis.
`default_nettype none
`include "weft_assert.svh"
module weft_home #(
    parameter int unsigned Rest = 48  // fewer than what a node waits before it skips rest
) (
    input wire clk_i,
    input wire rst_i,
    input wire quiet_i,
    input wire home_i
);
  logic [$clog2(Rest+1)-1:0] rest_q;
  always_ff @(posedge clk_i) begin
    if (rst_i || !quiet_i) rest_q <= '0;
    else if (rest_q != ($clog2(Rest + 1))'(Rest)) rest_q <= rest_q + 1'b1;
  end
  `WEFT_IMPLIES(CreditsHome, rest_q == ($clog2(Rest + 1))'(Rest), home_i);
endmodule
`default_nettype wire
