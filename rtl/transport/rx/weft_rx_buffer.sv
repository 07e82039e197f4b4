// SPDX-License-Identifier: Apache-2.0
//
// Packet buffer: store and forward. Beats are turned to the alignment of their destination on the
// way IN, where nothing ever stalls, so a read delivers the words of the AXI write as they are.
//
//   payload byte 0 stands at byte 26 of beat 1 and belongs at byte a = va mod 64 of the first word:
//   rotate by r = (a - 26) mod 64, then   word j = lanes r.. of beat j, lanes below r of beat j-1.
//
//   beat 1   |hhhhhhhhhhPPPPPP|     a < 26: word 1 holds header bytes only, reading starts at 2
//   word 1   |....aaPPPP......|     a >= 26: bytes below a of word 1 are header, not strobed
//
// Every frame with a second beat takes (beats after the first) + 1 words, written one a cycle: the
// extra word falls into the cycle of the next frame's first beat, which is not stored. Room that a
// frame does not find makes it overflow: its words are given back at once. Words of frames that
// were judged return when the last accepted frame before them has been read. A frame's words may be
// read from two cycles after its verdict on. docs/rx.md.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_buffer
  import weft_wire_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter  int unsigned Words = 512,
    localparam int unsigned PtrW  = $clog2(Words) + 1  // one bit more than an address
) (
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire beat_t       beat_i,         // S0
    // S1: of the frame that ended in S0
    output logic             overflow_o,
    output logic [PtrW-1:0]  start_o,        // first word of the AXI write
    output logic [PtrW-1:0]  end_o,          // behind its last word
    // S5: frames judged, in order; to_read_i: the frame will be read and then given back
    input  wire              judged_i,
    input  wire  [PtrW-1:0]  judged_end_i,
    input  wire              to_read_i,
    // Read: data one cycle after re_i, held. last_i: that was the last word of the frame.
    input  wire              re_i,
    input  wire  [PtrW-1:0]  raddr_i,
    input  wire              last_i,
    output logic [511:0]     rdata_o
);

  localparam int unsigned AddrW = PtrW - 1;
  // words: the free count is late by a beat, a frame ends with two
  localparam int unsigned Margin = 4;
  localparam int unsigned PayloadAt = HDR_DATA_BYTES - 64;  // byte of beat 1
  localparam int unsigned VaLowAt = HDR_PROBE_BYTES + 11 - 64;  // byte of beat 1 with va[7:0]

  if (Words != 2 ** AddrW) begin : gen_bad_words
    $error("weft_rx_buffer: Words must be a power of two");
  end

  // ---- S0: where words go
  logic [PtrW-1:0] next_q;  // next word to be given out
  logic [PtrW-1:0] start_q, end_q;
  logic [PtrW-1:0] tail_q, used;
  logic room_q;
  logic overflow_q;  // the frame has not found room
  logic spill_q;     // the cycle after the last beat of a frame with words: its extra word
  logic store, late;
  logic [5:0] va_low;
  logic [PtrW-1:0] first_q, start_frame;  // first word of the frame at hand, to go back to

  assign start_frame = beat_i.second ? next_q : first_q;
  assign used   = next_q - tail_q;
  assign store  = beat_i.valid && !beat_i.first;
  assign late   = !room_q || (overflow_q && !beat_i.second);  // this frame overflows or has
  assign va_low = beat_i.data[8*VaLowAt+:6];

  always_ff @(posedge clk_i) begin
    if (beat_i.valid && beat_i.first) begin
      start_q <= next_q + PtrW'(spill_q);
      end_q   <= next_q + PtrW'(spill_q);
    end
    if (store) begin
      overflow_q <= late;
      end_q      <= late ? start_frame : next_q + PtrW'(2);
      if (beat_i.second) begin
        first_q <= next_q;
        start_q <= next_q + PtrW'(va_low < 6'(PayloadAt));
      end
    end else if (beat_i.valid) begin
      overflow_q <= 1'b0;
    end
    if (rst_i) begin
      next_q  <= '0;
      spill_q <= 1'b0;
      room_q  <= 1'b0;
    end else begin
      if (store) next_q <= late ? start_frame : next_q + 1'b1;
      else if (spill_q) next_q <= next_q + 1'b1;
      spill_q <= store && beat_i.last && !late;
      room_q  <= used <= PtrW'(Words - Margin);
    end
  end

  assign overflow_o = overflow_q;
  assign start_o    = start_q;
  assign end_o      = end_q;

  // ---- turning: one registered delay (r comes with the second beat), three stages of four
  // The constant part of the turn, 26 bytes back, is wiring.
  localparam int unsigned Turns = 3;
  logic [511:0] d_q, t1_q, t2_q, t3_q;
  logic [5:0] a_q, a1_q, a2_q;
  logic [5:0] r2_q;  // r of the frame in stage 2
  logic [63:0] mine_q;  // lanes that word j takes from beat j
  logic [Turns:0] we_q, beat_q;  // a word is written; it has a beat (no extra word)
  logic [Turns:0][AddrW-1:0] addr_q;

  always_ff @(posedge clk_i) begin
    if (store) d_q <= {beat_i.data[8*PayloadAt-1:0], beat_i.data[511:8*PayloadAt]};
    if (store && beat_i.second) a_q <= va_low;
    if (beat_q[0]) begin
      unique case (a_q[5:4])
        2'd0: t1_q <= d_q;
        2'd1: t1_q <= {d_q[383:0], d_q[511:384]};
        2'd2: t1_q <= {d_q[255:0], d_q[511:256]};
        2'd3: t1_q <= {d_q[127:0], d_q[511:128]};
      endcase
    end
    if (beat_q[1]) begin
      unique case (a1_q[3:2])
        2'd0: t2_q <= t1_q;
        2'd1: t2_q <= {t1_q[479:0], t1_q[511:480]};
        2'd2: t2_q <= {t1_q[447:0], t1_q[511:448]};
        2'd3: t2_q <= {t1_q[415:0], t1_q[511:416]};
      endcase
    end
    if (beat_q[2]) begin
      unique case (a2_q[1:0])
        2'd0: t3_q <= t2_q;
        2'd1: t3_q <= {t2_q[503:0], t2_q[511:504]};
        2'd2: t3_q <= {t2_q[495:0], t2_q[511:496]};
        2'd3: t3_q <= {t2_q[487:0], t2_q[511:488]};
      endcase
    end
    a1_q <= a_q;
    a2_q <= a1_q;
    r2_q   <= a1_q - 6'(PayloadAt);
    mine_q <= {64{1'b1}} << r2_q;
    beat_q <= {beat_q[Turns-1:0], store && !late};
    addr_q <= {addr_q[Turns-1:0], next_q[AddrW-1:0]};
    if (rst_i) we_q <= '0;
    else we_q <= {we_q[Turns-1:0], (store && !late) || spill_q};
  end

  logic [511:0] before_q, word_q;  // the beat before, turned; what is written
  logic we_word_q;
  logic [AddrW-1:0] addr_word_q;
  always_ff @(posedge clk_i) begin
    if (beat_q[Turns]) before_q <= t3_q;
    if (we_q[Turns]) begin
      for (int i = 0; i < 64; i++) word_q[8*i+:8] <= mine_q[i] ? t3_q[8*i+:8] : before_q[8*i+:8];
    end
    addr_word_q <= addr_q[Turns];
    we_word_q   <= we_q[Turns] && !rst_i;
  end

  weft_sdpram #(
      .Width(512),
      .Depth(Words),
      .Style("block")
  ) u_ram (
      .clk_i,
      .we_i   (we_word_q),
      .waddr_i(addr_word_q),
      .wdata_i(word_q),
      .re_i,
      .raddr_i(raddr_i[AddrW-1:0]),
      .rdata_o
  );

  // ---- giving back
  logic [PtrW-1:0] judged_q;   // behind the last frame judged
  logic [AddrW:0] to_read_q;   // frames judged that are still to be read
  logic idle_q;                // none is
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      judged_q  <= '0;
      tail_q    <= '0;
      to_read_q <= '0;
    end else begin
      if (judged_i) judged_q <= judged_end_i;
      to_read_q <= to_read_q + (AddrW + 1)'(judged_i && to_read_i) - (AddrW + 1)'(re_i && last_i);
      if (re_i && last_i) tail_q <= raddr_i + 1'b1;
      else if (idle_q && !(judged_i && to_read_i)) tail_q <= judged_q;
    end
    idle_q <= to_read_q == '0 && !(judged_i && to_read_i) && !rst_i;
  end

  `WEFT_ASSERT(NeverFuller, used <= PtrW'(Words));
  `WEFT_IMPLIES(ReadsWhatIsThere, re_i, to_read_q != '0);

endmodule
`default_nettype wire
