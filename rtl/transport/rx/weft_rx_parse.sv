// SPDX-License-Identifier: Apache-2.0
//
// Input register of the receive path: numbers the beats of a frame and collects its headers.
//
// A beat a cycle, never stalls (a MAC cannot wait). beat_o is the input one cycle later; head_o,
// len_o and mac_error_o are valid in the cycle of head_valid_o, two cycles after the last beat at
// the input (S1), and may change in the next. tkeep must be ones from byte 0 up, and full in every
// beat but the last. Judges nothing. docs/rx.md.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_parse
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
(
    input  wire               clk_i,
    input  wire               rst_i,
    // From the MAC; tuser in the last beat flags a bad frame.
    input  wire  [DataW-1:0]  s_axis_tdata,
    input  wire  [KeepW-1:0]  s_axis_tkeep,
    input  wire               s_axis_tvalid,
    input  wire               s_axis_tlast,
    input  wire               s_axis_tuser,
    // S0: every beat.
    output beat_t             beat_o,
    // S1: the frame whose last beat was in beat_o one cycle ago. Bytes it did not have are stale.
    output logic              head_valid_o,
    output head_t             head_o,
    output flen_t             len_o,
    output logic              mac_error_o
);

  // Beats of the longest frame; the number sticks one above, where every length is too long.
  localparam int unsigned MaxBeats = (MaxFrame + KeepW - 1) / KeepW;
  localparam int unsigned BeatW = $clog2(MaxBeats + 1);
  localparam int unsigned SecondBytes = HeadBytes - KeepW;  // header bytes in beat 1

  logic [BeatW-1:0] number_q, next_q;  // of the beat in the register, of the next one
  beat_t beat_q;
  logic user_q;
  logic head_valid_q, mac_error_q;
  head_t head_q;
  flen_t len_q;

  // A thermometer code of n ones counted with XOR alone: bit k of n is the parity of the ones at
  // places 2^k - 1, 2*2^k - 1, ...
  function automatic logic [6:0] count_keep(logic [63:0] keep);
    logic [6:0] n;
    n[0] = ^keep;
    n[1] = ^(keep & 64'haaaa_aaaa_aaaa_aaaa);
    n[2] = ^(keep & 64'h8888_8888_8888_8888);
    n[3] = ^(keep & 64'h8080_8080_8080_8080);
    n[4] = ^(keep & 64'h8000_8000_8000_8000);
    n[5] = ^(keep & 64'h8000_0000_8000_0000);
    n[6] = keep[63];
    return n;
  endfunction

  always_ff @(posedge clk_i) begin
    if (s_axis_tvalid) begin
      beat_q.data   <= s_axis_tdata;
      beat_q.keep   <= s_axis_tkeep;
      beat_q.first  <= next_q == '0;
      beat_q.second <= next_q == BeatW'(1);
      number_q      <= next_q;
      user_q        <= s_axis_tuser;
    end
    beat_q.valid <= s_axis_tvalid && !rst_i;
    beat_q.last  <= s_axis_tvalid && s_axis_tlast;
    if (rst_i) begin
      next_q <= '0;
    end else if (s_axis_tvalid) begin
      if (s_axis_tlast) next_q <= '0;
      else if (next_q != BeatW'(MaxBeats)) next_q <= next_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_q.valid && beat_q.first) begin
      for (int i = 0; i < int'(KeepW); i++) begin
        head_q[8*(int'(HeadBytes)-1-i)+:8] <= beat_q.data[8*i+:8];
      end
    end
    if (beat_q.valid && beat_q.second) begin
      for (int i = 0; i < int'(SecondBytes); i++) begin
        head_q[8*(int'(SecondBytes)-1-i)+:8] <= beat_q.data[8*i+:8];
      end
    end
    if (beat_q.last) begin
      len_q       <= flen_t'({number_q, 6'd0}) + flen_t'(count_keep(beat_q.keep));
      mac_error_q <= user_q;
    end
    head_valid_q <= beat_q.valid && beat_q.last && !rst_i;
  end

  assign beat_o       = beat_q;
  assign head_valid_o = head_valid_q;
  assign head_o       = head_q;
  assign len_o        = len_q;
  assign mac_error_o  = mac_error_q;

  `WEFT_IMPLIES(KeepFromZeroUp, s_axis_tvalid, (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == '0);
  `WEFT_IMPLIES(KeepFullBeforeLast, s_axis_tvalid && !s_axis_tlast, s_axis_tkeep == '1);

endmodule
`default_nettype wire
