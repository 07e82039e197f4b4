// SPDX-License-Identifier: Apache-2.0
//
// Moves memory beats to their lanes in the frame: a byte rotator in three registered stages and the
// seam between two neighbouring beats.
//
// valid_i, rotate_i: a beat of the frame was dealt out; data_i is its memory beat in the next cycle
// (anything when it has none). Four cycles after valid_i, now_o is this memory beat and before_o
// the
// one of the frame's beat before, both rotated up by rotate_i lanes: the frame takes the lanes from
// rotate_i up of now_o and the others of before_o. One a cycle, never stalls, holds between beats.
`default_nettype none

module weft_tx_align
  import weft_pkg::*;
(
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire              valid_i,
    input  wire  [5:0]       rotate_i,
    input  wire  [DataW-1:0] data_i,
    output logic [DataW-1:0] now_o,
    output logic [DataW-1:0] before_o
);

  function automatic logic [DataW-1:0] up(logic [DataW-1:0] x, logic [1:0] steps,
                                          int unsigned size);
    unique case (steps)
      2'd0: return x;
      2'd1: return (x << (8 * size)) | (x >> (DataW - 8 * size));
      2'd2: return (x << (16 * size)) | (x >> (DataW - 16 * size));
      default: return (x << (24 * size)) | (x >> (DataW - 24 * size));
    endcase
  endfunction

  logic [4:1] valid_q;
  logic [5:0] rotate1_q;
  logic [3:0] rotate2_q;
  logic [1:0] rotate3_q;
  logic [DataW-1:0] by16_q, by4_q, by1_q, before_q;

  always_ff @(posedge clk_i) begin
    if (valid_i) rotate1_q <= rotate_i;
    if (valid_q[1]) begin
      by16_q    <= up(data_i, rotate1_q[5:4], 16);
      rotate2_q <= rotate1_q[3:0];
    end
    if (valid_q[2]) begin
      by4_q     <= up(by16_q, rotate2_q[3:2], 4);
      rotate3_q <= rotate2_q[1:0];
    end
    if (valid_q[3]) by1_q <= up(by4_q, rotate3_q, 1);
    if (valid_q[4]) before_q <= by1_q;
    valid_q <= rst_i ? '0 : {valid_q[3:1], valid_i};
  end

  assign now_o    = by1_q;
  assign before_o = before_q;

endmodule

`default_nettype wire
