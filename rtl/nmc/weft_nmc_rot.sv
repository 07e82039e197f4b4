// SPDX-License-Identifier: Apache-2.0
//
// Makes the windows of one source out of its beats.
//
// A window at byte `at` of a beat is the older of two neighbouring beats from there up, followed by
// the newer one; at 0 it is the newer one whole. So both are rotated down by `at`, and the first
// `at` bytes of the beat come from the newer one. With beats of 8 bytes and at = 5:
//
//   byte                76543210   76543210
//   beats, older first  hgfedcba   ponmlkji
//   merged              hgfmlkji           bytes 0..4 of the newer, 5..7 of the older one
//   rotated down by 5   mlkjihgf           the window
//
// Two registered stages, no handshake: a step in cycle t shows its window in cycle t+2. A rotation
// by 64 and the merge are one 4:1 multiplexer, so merging costs no logic but its masks. These take
// as long as two multiplexers, so the merge has the first cycle for itself: rotations in the same
// cycle would be mapped twice, once for each beat, to keep the masks off the longest path.
`default_nettype none

module weft_nmc_rot
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire               clk_i,
    input  wire               rst_i,
    // A step: emit_i asks for the window at at_i of the beat before and beat_i, push_i then makes
    // beat_i the beat before.
    input  wire               push_i,
    input  wire               emit_i,
    input  wire offs_t        at_i,
    input  wire   [NmcW-1:0]  beat_i,
    output logic  [NmcW-1:0]  window_o
);

  localparam int unsigned HalfW = NmcW / 2;
  localparam int unsigned Words = NmcW / 32;
  typedef logic [NmcW-1:0] beat_t;

  // Rotations towards lower bytes, by n times 1, 4, 16 and 64 bytes. Written with constant slices:
  // a variable shift of 1024 bits is slow to simulate and maps to more than these multiplexers.
  function automatic beat_t down_1(beat_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[7:0], x[NmcW-1:8]};
      2'd2: return {x[15:0], x[NmcW-1:16]};
      2'd3: return {x[23:0], x[NmcW-1:24]};
    endcase
  endfunction

  function automatic beat_t down_4(beat_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[31:0], x[NmcW-1:32]};
      2'd2: return {x[63:0], x[NmcW-1:64]};
      2'd3: return {x[95:0], x[NmcW-1:96]};
    endcase
  endfunction

  function automatic beat_t down_16(beat_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[127:0], x[NmcW-1:128]};
      2'd2: return {x[255:0], x[NmcW-1:256]};
      2'd3: return {x[383:0], x[NmcW-1:384]};
    endcase
  endfunction

  function automatic beat_t down_64(beat_t x, logic n);
    return n ? {x[HalfW-1:0], x[NmcW-1:HalfW]} : x;
  endfunction

  // Bits of the merged beat, already rotated by 64, that come from the newer one. Word by word,
  // which shares the comparisons.
  function automatic beat_t newer(offs_t at);
    beat_t mask;
    logic [31:0] part;
    part = ~(32'hffff_ffff << {at[1:0], 3'b0});
    mask[NmcW-1:HalfW] = {HalfW{at[6] || at == '0}};
    for (int unsigned w = 0; w < Words / 2; w++) begin
      if (4'(w) < at[5:2] || at == '0) mask[32*w+:32] = '1;
      else mask[32*w+:32] = (4'(w) == at[5:2]) ? part : '0;
    end
    return mask;
  endfunction

  beat_t older_q;
  beat_t merged_q;  // and rotated by 64
  logic [5:0] at_q;
  logic emit_q;

  always_ff @(posedge clk_i) begin
    if (push_i) older_q <= beat_i;
    if (emit_i) begin
      automatic beat_t mask = newer(at_i);
      merged_q <= (down_64(beat_i, at_i[6]) & mask) | (down_64(older_q, at_i[6]) & ~mask);
      at_q     <= at_i[5:0];
    end
    if (emit_q) begin
      automatic beat_t turned = down_4(down_16(merged_q, at_q[5:4]), at_q[3:2]);
      window_o <= down_1(turned, at_q[1:0]);
    end
    if (rst_i) emit_q <= 1'b0;
    else emit_q <= emit_i;
  end

endmodule

`default_nettype wire
