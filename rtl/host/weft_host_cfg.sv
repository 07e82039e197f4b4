// SPDX-License-Identifier: Apache-2.0
//
// Configuration bus: turns a register command into one write that every block of the node sees.
//
// The bus has no back-pressure; instead writes keep their distance: Gap cycles, ConnGap after a
// connection (a block may walk all its paths). cmd_done_o rises for one cycle with the write; the
// register block holds the bus access back until then, so software needs no waiting of its own.
// hold_i keeps commands waiting (reset, tables being cleared). The data is not stored: data_i stays
// from cmd_valid_i to cmd_done_o.
`default_nettype none
`include "weft_assert.svh"

module weft_host_cfg
  import weft_pkg::*;
#(
    parameter int unsigned Gap     = 16,
    parameter int unsigned ConnGap = 80
) (
    input  wire                clk_i,
    input  wire                rst_i,
    input  wire                hold_i,
    // A command: cmd_valid_i for one cycle, the next not before cmd_done_o.
    input  wire                cmd_valid_i,
    input  wire        [  3:0] cmd_kind_i,
    input  wire        [ 15:0] cmd_index_i,
    input  wire        [511:0] data_i,
    output logic               cmd_done_o,
    output cfg_t               cfg_o
);

  localparam int unsigned GapW = $clog2((ConnGap > Gap ? ConnGap : Gap) + 1);

  logic [3:0] kind_q;
  logic [15:0] index_q;
  logic waiting_q, valid_q;
  logic [GapW-1:0] gap_q;  // cycles to the next write at the earliest

  wire fire = waiting_q && gap_q == '0 && !hold_i;

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i) begin
      kind_q  <= cmd_kind_i;
      index_q <= cmd_index_i;
    end

    if (rst_i) begin
      waiting_q <= 1'b0;
      valid_q   <= 1'b0;
      gap_q     <= '0;
    end else begin
      valid_q <= fire;
      if (cmd_valid_i) waiting_q <= 1'b1;
      else if (fire) waiting_q <= 1'b0;
      if (fire) gap_q <= kind_q == CfgConn ? GapW'(ConnGap - 1) : GapW'(Gap - 1);
      else if (gap_q != '0) gap_q <= gap_q - 1'b1;
    end
  end

  assign cmd_done_o  = valid_q;
  assign cfg_o.valid = valid_q;
  assign cfg_o.kind  = cfg_table_e'(kind_q);
  assign cfg_o.index = index_q;
  assign cfg_o.data  = data_i;

  `WEFT_IMPLIES(OneCommandAtATime, cmd_valid_i, !waiting_q && !valid_q);
  `WEFT_IMPLIES(DataStays, waiting_q && !$past(cmd_valid_i), $stable(data_i));

endmodule

`default_nettype wire
