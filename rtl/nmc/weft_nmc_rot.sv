// SPDX-License-Identifier: Apache-2.0
//
// Turns the beats of one source to the alignment of the destination.
//
// A destination beat is made of two neighbouring source beats, both rotated by the same number of
// bytes: the lanes below `rot` come from the older one, the others from the newer one. With beats
// of 8 bytes, a source at offset 5 and a destination at offset 2, rot = 2 - 5 mod 8 = 5:
//
//   lane                76543210   76543210   76543210
//   source beats        cba.....   kjihgfed   .......l
//   rotated             ...cba..   hgfedkji   ..l.....
//   destination beats   hgfedcba.. (lanes 0..4 older, 5..7 newer: fed|cba.. , then ..l|kjihg)
//
// Two registered stages, no handshake: a step in cycle t shows its merged beat in cycle t+2.
// The last rotation and the merge are one 4:1 multiplexer, so merging costs no logic.
`default_nettype none

module weft_nmc_rot
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire              clk_i,
    // A step: push_i makes beat_i the newest beat, emit_i asks for a merged one, first_i marks the
    // first step of a job; rot_i holds from there to the job's last step.
    input  wire              push_i,
    input  wire              emit_i,
    input  wire              first_i,
    input  wire offs_t       rot_i,
    input  wire  [NmcW-1:0]  beat_i,
    output logic [NmcW-1:0]  beat_o
);

  typedef logic [NmcW-1:0] beat_t;

  // Rotations towards higher lanes, by n times 1, 4, 16 and 64 bytes. Written with constant slices:
  // a variable shift of 1024 bits is slow to simulate and maps to more than these multiplexers.
  function automatic beat_t rot_1(beat_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[NmcW-9:0], x[NmcW-1-:8]};
      2'd2: return {x[NmcW-17:0], x[NmcW-1-:16]};
      2'd3: return {x[NmcW-25:0], x[NmcW-1-:24]};
    endcase
  endfunction

  function automatic beat_t rot_4(beat_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[NmcW-33:0], x[NmcW-1-:32]};
      2'd2: return {x[NmcW-65:0], x[NmcW-1-:64]};
      2'd3: return {x[NmcW-97:0], x[NmcW-1-:96]};
    endcase
  endfunction

  function automatic beat_t rot_16(beat_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[NmcW-129:0], x[NmcW-1-:128]};
      2'd2: return {x[NmcW-257:0], x[NmcW-1-:256]};
      2'd3: return {x[NmcW-385:0], x[NmcW-1-:384]};
    endcase
  endfunction

  function automatic beat_t rot_64(beat_t x, logic n);
    return n ? {x[NmcW/2-1:0], x[NmcW-1:NmcW/2]} : x;
  endfunction

  // Ones in the lanes below n.
  function automatic beat_t lanes_below(offs_t n);
    beat_t mask;
    for (int unsigned i = 0; i < NmcBytes; i++) mask[8*i+:8] = {8{OffsW'(i) < n}};
    return mask;
  endfunction

  beat_t mid_q;  // newest beat, rotated by rot mod 16
  beat_t older_q;  // the beat before it, rotated by rot mod 64
  beat_t from_older_q;  // lanes that the older beat fills
  logic [OffsW-1:4] rot_q;
  logic push_q, emit_q;

  always_ff @(posedge clk_i) begin
    push_q <= push_i;
    emit_q <= emit_i;
    if (push_i) mid_q <= rot_4(rot_1(beat_i, rot_i[1:0]), rot_i[3:2]);
    if (first_i) begin
      rot_q        <= rot_i[OffsW-1:4];
      from_older_q <= lanes_below(rot_i);
    end

    if (push_q) older_q <= rot_16(mid_q, rot_q[5:4]);
    if (emit_q) begin
      beat_o <= (rot_64(older_q, rot_q[6]) & from_older_q) |
                (rot_64(rot_16(mid_q, rot_q[5:4]), rot_q[6]) & ~from_older_q);
    end
  end

endmodule

`default_nettype wire
