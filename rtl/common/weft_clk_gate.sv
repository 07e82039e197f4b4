// SPDX-License-Identifier: Apache-2.0
//
// Stops the clock of a block that has nothing to do, so that simulating it costs nothing: the
// simulator evaluates a block, idle or not, at each edge of its clock. In synthesis clk_o is clk_i.
//
// The block must be at rest behind `Tail` cycles without busy_i: no register changes any more, and
// no input but those that busy_i tells of has an effect. So results and cycles are those without
// the gate (`Enable` = 0), which is for the tests of the block to show. busy_i has to be known half
// a cycle ahead of an edge that the block must not miss: it comes from registers of clk_i, not from
// ports that a bench drives right before the edge. Such a reset has to last two cycles, and so
// has the first one of all.
`default_nettype none

module weft_clk_gate #(
    parameter bit          Enable = 1'b1,
    parameter int unsigned Tail   = 63
) (
    input  wire  clk_i,
    input  wire  rst_i,
    input  wire  busy_i,
    output logic clk_o
);

`ifdef VERILATOR
  if (Enable) begin : gen_gate
    localparam int unsigned TailW = $clog2(Tail + 1);
    logic [TailW-1:0] tail_q;
    logic             run_q  /* verilator public_flat_rd */;  // a test sees that it does stop

    always_ff @(posedge clk_i) begin
      if (rst_i || busy_i) tail_q <= TailW'(Tail);
      else if (tail_q != '0) tail_q <= tail_q - 1'b1;
    end

    // Changes while clk_i is low, so clk_o has whole pulses only.
    always_ff @(negedge clk_i) run_q <= rst_i || busy_i || tail_q != '0;
    assign clk_o = clk_i && run_q;
  end else begin : gen_free
    assign clk_o = clk_i;
  end
`else
  assign clk_o = clk_i;
`endif

endmodule

`default_nettype wire
