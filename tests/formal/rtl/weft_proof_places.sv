// SPDX-License-Identifier: Apache-2.0
//
// Where elements go: from their window to the lanes (spread), which lanes work on elements of the
// request (weft_nmc_live), and from the lanes into the result beat (weft_nmc_gather). Of full
// width, for every layout without blocks that the decoder makes, any data, any order of results.
//
// The lanes have to give element i of a wide step where spread would put it; native results as
// native_ok tells. That a step changes its own bytes of the beat and no others makes the beat of
// any number of steps whole.
`default_nettype none
`include "weft_assert.svh"

module weft_proof_places
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input wire                 clk_i,
    // All free.
    input wire      [NmcW-1:0] window_i,
    input wire nmc_layout_t    layout_i,
    input wire                 edge_i,
    input wire offs_t          lo_i,
    input wire offs_t          hi_i,
    input wire                 valid_i,
    input wire lane_tag_t      tag_i,
    input wire      [NmcW-1:0] wide_i,
    input wire      [NmcW-1:0] half_i,
    input wire    [2*NmcW-1:0] byte_i,
    input wire float_flags_t   flags_i
);

  typedef logic [NmcW-1:0] beat_t;
  localparam int unsigned Words = NmcBytes / 4;

  logic started_q = 1'b0;
  wire  rst_i = !started_q;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // ---- layouts ----------------------------------------------------------------------------------
  // Elements of a wide step, log2.
  function automatic logic [2:0] log_count(shape_e shape);
    return shape == Wide32 ? 3'd5 : shape == Wide16 ? 3'd4 : 3'd3;
  endfunction

  function automatic logic layout_ok(nmc_layout_t x);
    if (x.from_block || x.to_block) return 1'b0;
    if (x.shape == Native) return x.to == x.from && x.window == 3'd7 && x.result == 3'd7 &&
                                  (!x.parts || x.to < 2'd2);
    return !x.parts && (x.shape != Wide32 || (x.from != 2'd3 && x.to != 2'd3)) &&
           x.window == log_count(x.shape) + 3'(x.from) && x.result == log_count(x.shape) + 3'(x.to);
  endfunction

  LayoutIsMade : assume property (@(posedge clk_i) layout_ok(layout_i) && layout_ok(tag_i.layout));

  // ---- live lanes -------------------------------------------------------------------------------
  logic [Words-1:0]   wide_live, half_live;
  logic [2*Words-1:0] byte_live;
  weft_nmc_live u_live (
      .clk_i,
      .valid_i,
      .layout_i,
      .edge_i,
      .lo_i,
      .hi_i,
      .wide_o(wide_live),
      .half_o(half_live),
      .byte_o(byte_live)
  );

  nmc_layout_t live_layout_q;
  logic        looked_q;
  offs_t       lo_q, hi_q;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      live_layout_q <= layout_i;
      lo_q          <= edge_i ? lo_i : '0;
      hi_q          <= edge_i ? hi_i : '1;
    end
    looked_q <= !rst_i && (looked_q || valid_i);
  end

  // In native steps a lane takes the element with a certain byte of its word, in wide ones element
  // i goes to word i. Edges are those of elements, so one byte tells for all of its element.
  function automatic logic inside_edges(int unsigned at);
    return at >= 32'(lo_q) && at <= 32'(hi_q);
  endfunction

  logic native_live_ok, words_live_ok, doubles_live_ok;
  always_comb begin
    native_live_ok  = 1'b1;
    words_live_ok   = 1'b1;
    doubles_live_ok = 1'b1;
    for (int unsigned w = 0; w < Words; w++) begin
      native_live_ok &= {wide_live[w], byte_live[2*w+1], half_live[w], byte_live[2*w]} ==
                        {inside_edges(4*w+3), inside_edges(4*w+2), inside_edges(4*w+1),
                         inside_edges(4*w)};
      words_live_ok &= wide_live[w] == inside_edges(w << live_layout_q.from);
      if (w < (1 << log_count(live_layout_q.shape)))
        doubles_live_ok &= wide_live[2*w%Words+:2] == {2{inside_edges(w << live_layout_q.from)}};
    end
  end
  `WEFT_IMPLIES(NativeLive, looked_q && live_layout_q.shape == Native, native_live_ok);
  `WEFT_IMPLIES(WordsLive, looked_q && live_layout_q.shape == Wide32 && live_layout_q.from != 2'd3,
                words_live_ok);
  `WEFT_IMPLIES(DoublesLive, looked_q && live_layout_q.shape inside {Wide16, Wide8},
                doubles_live_ok);

  // ---- gather -----------------------------------------------------------------------------------
  logic         beat_valid, beat_err, ends;
  beat_t        beat;
  float_flags_t flags;
  weft_nmc_gather u_gather (
      .clk_i,
      .rst_i,
      .valid_i,
      .tag_i,
      .wide_i,
      .half_i,
      .byte_i,
      .flags_i,
      .beat_valid_o(beat_valid),
      .beat_data_o (beat),
      .beat_err_o  (beat_err),
      .ends_o      (ends),
      .flags_o     (flags)
  );

  function automatic logic place_ok(lane_tag_t x);
    return (x.place & ~(offs_t'('1) << x.layout.result)) == '0;
  endfunction
  PlaceIsAligned : assume property (@(posedge clk_i) place_ok(tag_i));
  // The lanes of eight words show their results twice.
  TwiceTheSame : assume property (@(posedge clk_i)
      tag_i.layout.shape != Wide8 || wide_i[NmcW-1:NmcW/2] == wide_i[NmcW/2-1:0]);

  // What was there in the cycle before.
  logic              came_q, stayed_q;
  lane_tag_t         tag_q;
  beat_t             wide_q, half_q, beat_q;
  logic [2*NmcW-1:0] byte_q;
  always_ff @(posedge clk_i) begin
    came_q   <= !rst_i && valid_i;
    stayed_q <= !rst_i;
    tag_q    <= tag_i;
    wide_q   <= wide_i;
    half_q   <= half_i;
    byte_q   <= byte_i;
    beat_q   <= beat;
  end
  wire stays = tag_q.to_acc || tag_q.to_kept;
  wire made = came_q && !stays;

  function automatic logic native_ok(beat_t got, beat_t wide, beat_t half, logic [2*NmcW-1:0] bytes,
                                     logic two);
    logic ok;
    ok = 1'b1;
    for (int unsigned w = 0; w < Words; w++)
      ok &= got[32*w+:32] == (two ? {wide[32*w+16+:16], half[32*w+16+:16]} :
                                    {wide[32*w+24+:8], bytes[64*w+56+:8],
                                     half[32*w+24+:8], bytes[64*w+24+:8]});
    return ok;
  endfunction

  // Bytes that are not of the step's place.
  function automatic logic others_ok(beat_t got, beat_t old, nmc_layout_t layout,
                                     offs_t place);
    logic ok;
    ok = 1'b1;
    for (int unsigned i = 0; i < NmcBytes; i++)
      if (offs_t'(i) >> layout.result != place >> layout.result) ok &= got[8*i+:8] == old[8*i+:8];
    return ok;
  endfunction

  wire nmc_layout_t layout = tag_q.layout;
  `WEFT_IMPLIES(WholeWords, made && layout.shape == Native && !layout.parts, beat == wide_q);
  `WEFT_IMPLIES(PartsOfWords, made && layout.parts,
                native_ok(beat, wide_q, half_q, byte_q, layout.to[0]));
  `WEFT_IMPLIES(OthersStay, made, others_ok(beat, beat_q, layout, tag_q.place));
  `WEFT_IMPLIES(NothingMade, stayed_q && !made, beat == beat_q);
  `WEFT_IMPLIES(ValidAndEnds, stayed_q,
                beat_valid == (came_q && tag_q.whole) && ends == (came_q && tag_q.ends));
  `WEFT_IMPLIES(ErrorIsItsOwn, made, beat_err == tag_q.err);

  // ---- wide steps: elements of 2**Size bytes, a word of 2**LogWord bytes each -------------------
  wire beat_t spread_out = spread(window_i, layout_i);
  `WEFT_IMPLIES(NativeStays, layout_i.shape == Native, spread_out == window_i);

  for (genvar shape = 1; shape < 4; shape++) begin : gen_shape
    localparam int unsigned Count = 64 >> shape;
    localparam int unsigned LogWord = shape == 1 ? 2 : 3;
    for (genvar size = 0; size < (shape == 1 ? 3 : 4); size++) begin : gen_size
      localparam int unsigned Size = 1 << size;
      localparam int unsigned Top = size == 3 ? 7 : 3;  // of its word the element's last byte
      logic spread_ok, gather_ok;
      always_comb begin
        spread_ok = 1'b1;
        gather_ok = 1'b1;
        for (int unsigned i = 0; i < Count; i++) begin
          for (int unsigned k = 0; k < Size; k++) begin
            spread_ok &= spread_out[8*((i<<LogWord)+Top-k)+:8] == window_i[8*(Size*(i+1)-1-k)+:8];
            for (int unsigned p = 0; p < NmcBytes / (Count * Size); p++)
              if (32'(tag_q.place) == p * Count * Size)
                gather_ok &= beat[8*(Size*(Count*p+i+1)-1-k)+:8] ==
                             wide_q[8*((i<<LogWord)+Top-k)+:8];
          end
        end
      end
      `WEFT_IMPLIES(Spread, layout_i.shape == shape && layout_i.from == size, spread_ok);
      `WEFT_IMPLIES(Gather, made && layout.shape == shape && layout.to == size, gather_ok);
    end
  end

  // Inside, what makes the above inductive, itself proved.
  `WEFT_IMPLIES(LayoutWasMade, came_q, layout_ok(layout) && place_ok(tag_q));
  `WEFT_IMPLIES(LiveLayoutWasMade, looked_q, layout_ok(live_layout_q));
  `WEFT_IMPLIES(WereTheSame, came_q && layout.shape == Wide8,
                wide_q[NmcW-1:NmcW/2] == wide_q[NmcW/2-1:0]);

endmodule

`default_nettype wire
