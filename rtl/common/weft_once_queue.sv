// SPDX-License-Identifier: Apache-2.0
//
// Queue of indices in which each waits at most once: a push of one that waits changes nothing. So
// it holds whatever fills it, how fast and how often; no depth has to be guessed. For work that is
// to be done for a row as it is then (a connection to be set up anew, say).
//
// An index is out of the queue with its pop; pushed in that cycle or later it waits again. Push to
// valid_o as weft_fifo: 1 cycle, or 2 with more than 64 indices.
`default_nettype none
`include "weft_assert.svh"

module weft_once_queue #(
    parameter  int unsigned NumIdx = 16,
    localparam int unsigned IdxW   = (NumIdx > 1) ? $clog2(NumIdx) : 1
) (
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire               push_i,
    input  wire  [  IdxW-1:0] push_idx_i,
    output logic              valid_o,
    output logic [  IdxW-1:0] idx_o,
    input  wire               pop_i,
    output logic [NumIdx-1:0] waits_o  // from the cycle behind its push to that of its pop
);

  logic [NumIdx-1:0] waits_q;
  logic pop, push, ready;
  assign pop  = valid_o && pop_i;
  // the one that leaves in this cycle may come back in it
  assign push = push_i && (!waits_q[push_idx_i] || (pop && idx_o == push_idx_i));

  weft_fifo #(
      .Width(IdxW),
      .Depth(NumIdx + 1)
  ) u_fifo (
      .clk_i,
      .rst_i,
      .s_valid_i(push),
      .s_ready_o(ready),
      .s_data_i (push_idx_i),
      .m_valid_o(valid_o),
      .m_ready_i(pop_i),
      .m_data_o (idx_o),
      .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      waits_q <= '0;
    end else begin
      if (pop) waits_q[idx_o] <= 1'b0;
      if (push_i) waits_q[push_idx_i] <= 1'b1;
    end
  end
  assign waits_o = waits_q;

  `WEFT_IMPLIES(HoldsAll, push, ready);

endmodule

`default_nettype wire
