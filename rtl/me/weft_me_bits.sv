// SPDX-License-Identifier: Apache-2.0
//
// A table of single bits in LUT RAM, all 0 after reset.
//
// Sixteen rows whatever Size is, so a walk clears the table in the 16 cycles behind reset; ready_o
// is low in them and no write may come. One write a cycle, visible to a read of the next cycle. The
// read is combinational. Meant for what flip-flops are too many for: "written before", "valid".
`default_nettype none
`include "weft_assert.svh"

module weft_me_bits #(
    parameter  int unsigned Size   = 256,
    localparam int unsigned IndexW = (Size > 1) ? $clog2(Size) : 1
) (
    input  wire               clk_i,
    input  wire               rst_i,
    output logic              ready_o,
    input  wire               we_i,
    input  wire  [IndexW-1:0] windex_i,
    input  wire               wbit_i,
    input  wire  [IndexW-1:0] rindex_i,
    output logic              rbit_o
);

  localparam int unsigned Rows = 16;
  localparam int unsigned Cols = (Size + Rows - 1) / Rows;
  localparam int unsigned ColW = (Cols > 1) ? $clog2(Cols) : 1;

  // Index = {column, row}, so that a small table uses few columns.
  typedef logic [ColW+3:0] wide_t;
  wire wide_t windex = wide_t'(windex_i);
  wire wide_t rindex = wide_t'(rindex_i);

  (* ram_style = "distributed" *) logic [Cols-1:0] mem[Rows];
  logic [4:0] walk_q;  // rows cleared so far

  wire  [     3:0] row = ready_o ? windex[3:0] : walk_q[3:0];
  wire  [Cols-1:0] mask = Cols'(1) << windex[ColW+3:4];
  wire  [Cols-1:0] old = mem[row];
  wire  [Cols-1:0] shown = mem[rindex[3:0]];

  assign ready_o = walk_q[4];
  assign rbit_o  = shown[rindex[ColW+3:4]];

  always_ff @(posedge clk_i) begin
    if (!ready_o) mem[row] <= '0;
    else if (we_i) mem[row] <= wbit_i ? (old | mask) : (old & ~mask);

    if (rst_i) walk_q <= '0;
    else if (!ready_o) walk_q <= walk_q + 1'b1;
  end

  `WEFT_IMPLIES(NoWriteInWalk, we_i, ready_o);
  `WEFT_IMPLIES(IndexInRange, we_i, 32'(windex_i) < 32'(Size));

endmodule

`default_nettype wire
