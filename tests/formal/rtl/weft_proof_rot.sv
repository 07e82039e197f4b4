// SPDX-License-Identifier: Apache-2.0
//
// What weft_nmc_rot promises: two cycles behind a step it shows the bytes from the step's place on,
// of the beat before followed by the present one. Of full width, for any order of pushes and steps
// and any place. Which place and which beats the sequencer asks for is weft_proof_windows.
`default_nettype none
`include "weft_assert.svh"

module weft_proof_rot
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input wire               clk_i,
    // All free.
    input wire               push_i,
    input wire               emit_i,
    input wire offs_t        at_i,
    input wire   [NmcW-1:0]  beat_i
);

  typedef logic [NmcW-1:0] beat_t;

  logic started_q = 1'b0;
  wire  rst_i = !started_q;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  beat_t window;
  weft_nmc_rot u_rot (
      .clk_i,
      .rst_i,
      .push_i,
      .emit_i,
      .at_i,
      .beat_i,
      .window_o(window)
  );

  // ---- the model --------------------------------------------------------------------------------
  beat_t before_q;          // the beat before; nothing is known of it until the first push
  logic  pushed_q;
  beat_t bytes_q, taken_q;  // the window of the step one and two cycles ago
  logic  step1_q, step2_q;  // there was one, with a beat before it

  wire whole = at_i == '0;  // the window is the present beat, the one before does not matter

  always_ff @(posedge clk_i) begin
    if (push_i) before_q <= beat_i;
    bytes_q  <= whole ? beat_i : beat_t'({beat_i, before_q} >> {at_i, 3'b0});
    taken_q  <= bytes_q;
    pushed_q <= !rst_i && (pushed_q || push_i);
    step1_q  <= !rst_i && emit_i && (pushed_q || whole);
    step2_q  <= !rst_i && step1_q;
  end

  // Bytes are moved whole, so each of their bits is a proof of its own, of an eighth of the size.
  typedef logic [NmcBytes-1:0] bits_t;
  function automatic bits_t bits_of(beat_t x, int unsigned which);
    bits_t y;
    for (int unsigned i = 0; i < NmcBytes; i++) y[i] = x[8*i+which];
    return y;
  endfunction

  for (genvar b = 0; b < 8; b++) begin : gen_bit
    `WEFT_IMPLIES(WindowIsItsBytes, step2_q, bits_of(window, b) == bits_of(taken_q, b));

    // Inside, what makes the above inductive, itself proved.
    `WEFT_IMPLIES(BeatBefore, pushed_q, bits_of(u_rot.older_q, b) == bits_of(before_q, b));
    wire bits_t merged = bits_of(u_rot.merged_q, b);
    `WEFT_IMPLIES(Merged, step1_q,
                  bits_t'({merged, merged} >> u_rot.at_q) == bits_of(bytes_q, b));
  end
  `WEFT_IMPLIES(StepIsKnown, step1_q, u_rot.emit_q);

endmodule

`default_nettype wire
