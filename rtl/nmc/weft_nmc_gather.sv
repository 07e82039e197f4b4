// SPDX-License-Identifier: Apache-2.0
//
// Puts the results of the lanes into result beats.
//
// No handshake: a result with valid_i in cycle t is in the beat in t+1; beat_valid_o with the one
// that completes it. A native step makes a whole beat: word w of it is word w of the fp32 or
// integer lanes; of 16 bits its upper half, over that of half lane w; of 8 bits {wide w, byte 2w+1,
// half w, byte 2w}, the top byte of each. A wide step makes 128 B or a power of two below, at place
// `place` of the beat, out of the top bytes of the 32-bit words, or of the lower halves of 64-bit
// words, that its elements were spread to; of eight 64-bit words (Wide8) the lanes have shown two
// copies. Flags come one cycle behind their result; a job's are those of all its steps, also of
// steps to the accumulator. Jobs with blocks are weft_nmc_mx's.
`default_nettype none

module weft_nmc_gather
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire                 clk_i,
    input  wire                 rst_i,
    // Results.
    input  wire                 valid_i,
    input  wire lane_tag_t      tag_i,
    input  wire  [  NmcW-1:0]   wide_i,
    input  wire  [  NmcW-1:0]   half_i,
    input  wire  [2*NmcW-1:0]   byte_i,
    input  wire float_flags_t   flags_i,
    // Beats; err: a source beat was bad. With the job's last one, ends_o, what its steps have
    // raised.
    // The results alone, in this cycle, valid or not: wherever in a beat they may lie.
    output logic [  NmcW-1:0]   window_o,
    // Beats.
    output logic                beat_valid_o,
    output logic [  NmcW-1:0]   beat_data_o,
    output logic                beat_err_o,
    output logic                ends_o,
    output float_flags_t        flags_o
);

  localparam int unsigned Words = NmcW / 32;
  localparam int unsigned Groups = NmcBytes / 8;
  typedef logic [NmcW-1:0] beat_t;

  // In two steps, each of at most four choices for a bit. First the parts of native words are put
  // together, or the lower halves of 64-bit words become words, in two copies.
  function automatic beat_t of_parts(beat_t wide, beat_t half, logic [2*NmcW-1:0] bytes,
                                     logic two);
    beat_t x;
    x = wide;
    for (int unsigned w = 0; w < Words; w++) begin
      x[32*w+8+:8] = half[32*w+24+:8];
      x[32*w+:8]   = two ? half[32*w+16+:8] : bytes[64*w+24+:8];
      if (!two) x[32*w+16+:8] = bytes[64*w+56+:8];
    end
    return x;
  endfunction

  function automatic beat_t lower_halves(beat_t x);
    beat_t y;
    for (int unsigned w = 0; w < Words; w++) y[32*w+:32] = x[64*(w%(Words/2))+:32];
    return y;
  endfunction

  function automatic beat_t words_of(nmc_layout_t layout, beat_t wide, beat_t half,
                                     logic [2*NmcW-1:0] bytes);
    if (layout.shape inside {Wide16, Wide8} && layout.to != 2'd3) return lower_halves(wide);
    return layout.parts ? of_parts(wide, half, bytes, layout.to[0]) : wide;
  endfunction

  // Then the tops of words whose results are smaller than that, again repeated.
  function automatic beat_t tops_of(beat_t x, logic two);
    beat_t y;
    for (int unsigned w = 0; w < Words; w++) begin
      if (two) y[16*w+:16] = x[32*w+16+:16];
      else y[8*w+:8] = x[32*w+24+:8];
    end
    return two ? {2{y[NmcW/2-1:0]}} : {4{y[NmcW/4-1:0]}};
  endfunction

  function automatic beat_t gather(nmc_layout_t layout, beat_t wide, beat_t half,
                                   logic [2*NmcW-1:0] bytes);
    beat_t x;
    x = words_of(layout, wide, half, bytes);
    return (layout.shape != Native && !layout.to[1]) ? tops_of(x, layout.to[0]) : x;
  endfunction

  // Groups of 8 bytes that a step of this size at this place makes.
  function automatic logic [Groups-1:0] groups_of(logic [2:0] result, offs_t place);
    logic [Groups-1:0] on;
    for (int unsigned g = 0; g < Groups; g++)
      on[g] = ((4'(g) ^ place[OffsW-1:3]) >> (result - 3'd3)) == '0;
    return on;
  endfunction

  assign window_o = gather(tag_i.layout, wide_i, half_i, byte_i);

  float_flags_t flags_q;
  wire stays = tag_i.to_acc || tag_i.to_kept;
  assign flags_o = flags_q | flags_i;

  always_ff @(posedge clk_i) begin
    if (valid_i && !stays) begin
      automatic logic [Groups-1:0] on = groups_of(tag_i.layout.result, tag_i.place);
      if (on == '1) beat_data_o <= window_o;
      else begin
        for (int unsigned g = 0; g < Groups; g++) begin
          if (on[g]) beat_data_o[64*g+:64] <= window_o[64*g+:64];
        end
      end
      beat_err_o <= tag_i.err;
    end

    if (rst_i) begin
      beat_valid_o <= 1'b0;
      ends_o       <= 1'b0;
      flags_q      <= '0;
    end else begin
      beat_valid_o <= valid_i && tag_i.whole;
      ends_o       <= valid_i && tag_i.ends;
      flags_q      <= ends_o ? '0 : flags_o;
    end
  end

endmodule

`default_nettype wire
