// SPDX-License-Identifier: Apache-2.0
//
// Collects results that lie at any byte of the destination into its beats: blocks of OCP MX, and
// windows of up to 128 bytes made of blocks.
//
// No handshake, one step a cycle. A step lies at byte place_i of a beat and, with whole_i,
// completes it; what reaches beyond the beat is the start of the next one and goes out with a later
// step that completes that. So a job whose last result straddles two beats ends with one more step,
// of any data, at the place behind it. Bytes of a beat that no step has given are undefined.
//
//   block   at byte 0 of block_i, any length up to 33: it is turned to its place, first by
//           place_i mod 16 within 48 bytes, then by 16s. Its beat 2 cycles behind.
//   window  already where it belongs, modulo a beat. Its beat 1 cycle behind; a window must not
//           come one cycle behind a block (asserted).
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_mx_pack
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire                clk_i,
    input  wire                rst_i,
    // A block.
    input  wire                block_valid_i,
    input  wire offs_t         block_place_i,
    input  wire                block_whole_i,
    input  wire mx_block_t     block_i,
    // A window.
    input  wire                window_valid_i,
    input  wire offs_t         window_place_i,
    input  wire                window_whole_i,
    input  wire   [NmcW-1:0]   window_i,
    // A beat.
    output logic               beat_valid_o,
    output logic  [NmcW-1:0]   beat_o
);

  localparam int unsigned Turned = 48;  // bytes: 33, moved up by 0 to 15
  localparam int unsigned GroupW = 8 * 16;
  localparam int unsigned Groups = NmcBytes / 16;
  typedef logic [8*Turned-1:0] turned_t;

  // By constant slices, which simulate fast. The distance is in Gray code: otherwise both halves of
  // a choice of four are the same but for their places, and a mapper that shares them needs two
  // smaller LUTs a bit instead of one.
  function automatic turned_t up_1(turned_t x, logic [1:0] n);
    unique case ({n[1], n[1] ^ n[0]})
      2'b00: return x;
      2'b01: return x << 8;
      2'b11: return x << 16;
      2'b10: return x << 24;
    endcase
  endfunction

  function automatic turned_t up_4(turned_t x, logic [1:0] n);
    unique case ({n[1], n[1] ^ n[0]})
      2'b00: return x;
      2'b01: return x << 32;
      2'b11: return x << 64;
      2'b10: return x << 96;
    endcase
  endfunction

  // Where the bytes of each group of 16 of a beat come from: one of the three groups of the turned
  // block, which start at group `first` of the beat and go around its end, or the window.
  typedef logic [Groups-1:0][1:0] which_t;
  localparam logic [1:0] Window = 2'd3;

  function automatic which_t which_of(logic [2:0] first);
    which_t x;
    for (int unsigned g = 0; g < Groups; g++) begin
      automatic logic [2:0] from = 3'(g) - first;
      x[g] = (from > 3'd2) ? 2'd2 : from[1:0];
    end
    return x;
  endfunction

  function automatic logic [NmcW-1:0] placed(which_t which, turned_t x, logic [NmcW-1:0] window);
    logic [NmcW-1:0] y;
    for (int unsigned g = 0; g < Groups; g++) begin
      unique case (which[g])
        2'd0: y[GroupW*g+:GroupW] = x[0+:GroupW];
        2'd1: y[GroupW*g+:GroupW] = x[GroupW+:GroupW];
        2'd2: y[GroupW*g+:GroupW] = x[2*GroupW+:GroupW];
        2'd3: y[GroupW*g+:GroupW] = window[GroupW*g+:GroupW];
      endcase
    end
    return y;
  endfunction

  function automatic logic [NmcBytes-1:0] from_place(offs_t place);
    logic [NmcBytes-1:0] on;
    for (int unsigned i = 0; i < NmcBytes; i++) on[i] = OffsW'(i) >= place;
    return on;
  endfunction

  logic    turned_valid_q, turned_whole_q;
  offs_t   turned_place_q;
  turned_t turned_q;
  which_t  which_q;  // Window whenever there is no block

  // A beat that is being filled, and the one that it will be next; they take turns. Of a step the
  // bytes from its place on belong to the former, and the others, if they are of the job at all, to
  // the latter. So a byte's data are the same for both, and only the enables differ.
  logic [1:0][NmcW-1:0] beats_q;
  logic                 now_q;  // the one that is being filled

  wire        valid = turned_valid_q || window_valid_i;
  wire        whole = turned_valid_q ? turned_whole_q : window_whole_i;
  wire offs_t place = turned_valid_q ? turned_place_q : window_place_i;

  always_ff @(posedge clk_i) begin
    if (block_valid_i) begin
      turned_q       <= up_4(up_1(turned_t'(block_i), block_place_i[1:0]), block_place_i[3:2]);
      turned_place_q <= block_place_i;
      turned_whole_q <= block_whole_i;
    end

    which_q <= block_valid_i ? which_of(block_place_i[6:4]) : {Groups{Window}};

    if (valid) begin
      automatic logic [NmcW-1:0] x = placed(which_q, turned_q, window_i);
      automatic logic [NmcBytes-1:0] now = from_place(place);
      for (int unsigned i = 0; i < NmcBytes; i++) begin
        if (now[i] == now_q) beats_q[1][8*i+:8] <= x[8*i+:8];
        else beats_q[0][8*i+:8] <= x[8*i+:8];
      end
    end

    if (rst_i) begin
      turned_valid_q <= 1'b0;
      now_q          <= 1'b0;
      beat_valid_o   <= 1'b0;
    end else begin
      turned_valid_q <= block_valid_i;
      now_q          <= now_q ^ (valid && whole);
      beat_valid_o   <= valid && whole;
    end
  end

  // The choice between two registers: who takes the beat has a LUT for it.
  assign beat_o = beats_q[!now_q];

  `WEFT_ASSERT(OneStep, !(turned_valid_q && window_valid_i));

endmodule

`default_nettype wire
