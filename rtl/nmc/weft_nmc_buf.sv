// SPDX-License-Identifier: Apache-2.0
//
// Beat buffer of the reducer: a queue that cannot refuse, for streams whose room is promised ahead.
//
// Whoever pushes holds a credit for it (see weft_nmc_read, weft_nmc_seq), so there is no ready on
// that side and no full flag; a push without room is caught by an assertion. Out by valid/ready,
// data from the RAM's output register. Latency 2 cycles, throughput 1 beat a cycle.
// weft_fifo would do as well; at 1025 bits and more its check that the output holds costs the
// simulation of an idle reducer half its speed, so the benches watch the outputs instead.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_buf #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 32,  // a power of two
    parameter              Style = "block"
) (
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire              push_i,
    input  wire  [Width-1:0] data_i,
    output logic             valid_o,
    input  wire              ready_i,
    output logic [Width-1:0] data_o
);

  localparam int unsigned AddrW = $clog2(Depth);

  if (Depth < 2 || 2 ** AddrW != Depth) begin : gen_bad_depth
    $error("weft_nmc_buf: Depth must be a power of two");
  end

  logic [AddrW-1:0] wr_addr_q, rd_addr_q;
  logic [AddrW:0] inside_q;  // beats in the RAM, the shown one not included
  logic written_q;  // inside_q is not 0
  logic valid_q;

  wire fetch = written_q && (!valid_q || ready_i);

  weft_sdpram #(
      .Width(Width),
      .Depth(Depth),
      .Style(Style)
  ) u_ram (
      .clk_i,
      .we_i   (push_i),
      .waddr_i(wr_addr_q),
      .wdata_i(data_i),
      .re_i   (fetch),
      .raddr_i(rd_addr_q),
      .rdata_o(data_o)
  );

  assign valid_o = valid_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wr_addr_q <= '0;
      rd_addr_q <= '0;
      inside_q  <= '0;
      written_q <= 1'b0;
      valid_q   <= 1'b0;
    end else begin
      if (push_i) wr_addr_q <= wr_addr_q + 1'b1;
      if (fetch) rd_addr_q <= rd_addr_q + 1'b1;
      if (push_i != fetch) inside_q <= push_i ? inside_q + 1'b1 : inside_q - 1'b1;
      written_q <= push_i || !(inside_q == '0 || (inside_q == (AddrW + 1)'(1) && fetch));
      valid_q   <= fetch || (valid_q && !ready_i);
    end
  end

  `WEFT_IMPLIES(PromisedRoomIsThere, push_i, inside_q < (AddrW + 1)'(Depth));
  `WEFT_ASSERT(FlagAgrees, written_q == (inside_q != '0));
  `WEFT_NEXT(ValidHolds, valid_o && !ready_i, valid_o);

endmodule

`default_nettype wire
