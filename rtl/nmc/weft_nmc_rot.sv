// SPDX-License-Identifier: Apache-2.0
//
// Makes the windows of one source out of its beats, and spreads their elements over the lanes.
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
// by 64 and the merge are one 4:1 multiplexer, so merging costs no logic.
//
// Spread: native windows and those of elements as wide as their lanes stay as they are. Element i
// of the others goes to the top bytes of lane i, which is a 32-bit word (Wide32) or the lower half
// of a 64-bit word (Wide16, Wide8). What is beside it there is undefined.
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
    // One cycle later.
    input  wire nmc_layout_t  layout_i,
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

  // Bits of the merged beat, already rotated by 64, that come from the newer one.
  function automatic beat_t newer(offs_t at);
    logic [HalfW-1:0] low;
    for (int unsigned i = 0; i < NmcBytes / 2; i++) low[8*i+:8] = {8{6'(i) < at[5:0]}};
    return (at == '0) ? '1 : {{HalfW{at[6]}}, low};
  endfunction

  // ---- spread -----------------------------------------------------------------------------------
  function automatic beat_t spread_32(beat_t x, logic [1:0] size);
    beat_t y;
    y = x;
    for (int unsigned i = 0; i < Words; i++) begin
      if (size == 2'd1) y[32*i+16+:16] = x[16*i+:16];
      if (size == 2'd0) y[32*i+24+:8] = x[8*i+:8];
    end
    return y;
  endfunction

  function automatic beat_t spread_64(beat_t x, logic [1:0] size);
    beat_t y;
    y = x;
    for (int unsigned i = 0; i < Words / 2; i++) begin
      if (size == 2'd2) y[64*i+:32] = x[32*i+:32];
      if (size == 2'd1) y[64*i+16+:16] = x[16*i+:16];
      if (size == 2'd0) y[64*i+24+:8] = x[8*i+:8];
    end
    return y;
  endfunction

  function automatic beat_t spread(beat_t x, nmc_layout_t layout);
    unique case (layout.shape)
      Native:  return x;
      Wide32:  return spread_32(x, layout.from);
      default: return spread_64(x, layout.from);
    endcase
  endfunction

  beat_t older_q, turned_q;
  logic [3:0] at_q;
  logic emit_q;

  always_ff @(posedge clk_i) begin
    if (push_i) older_q <= beat_i;
    if (emit_i) begin
      automatic beat_t mask = newer(at_i);
      automatic beat_t merged = (down_64(beat_i, at_i[6]) & mask) |
                                (down_64(older_q, at_i[6]) & ~mask);
      turned_q <= down_16(merged, at_i[5:4]);
      at_q     <= at_i[3:0];
    end
    if (emit_q) window_o <= spread(down_1(down_4(turned_q, at_q[3:2]), at_q[1:0]), layout_i);
    if (rst_i) emit_q <= 1'b0;
    else emit_q <= emit_i;
  end

endmodule

`default_nettype wire
