// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 register over 64-byte beats: a frame a beat at a time, no gap wanted between frames.
//
// The caller zeroes the bytes in front of the first covered byte and behind the last, and XORs
// weft_crc32_pkg::IcrcSeed into the first four covered bytes of the frame. state_o is the register
// EarlyBits early (see the package), two cycles after the beat: state_valid_o follows valid_i by 2.
// Never stalls. Does not tell the end of a frame: carry that beside it.
`default_nettype none

module weft_crc32_beat
  import weft_crc32_pkg::*;
(
    input  wire          clk_i,
    input  wire          rst_i,
    // A beat: byte i of the frame's beat in bits [8*i +: 8]; first_i starts a frame.
    input  wire          valid_i,
    input  wire          first_i,
    input  wire  [511:0] data_i,
    // Register behind the beat given two cycles ago; holds between beats.
    output logic         state_valid_o,
    output crc_t         state_o
);

  // The register between the two steps is where the sums are few and the levels balanced; and both
  // are what a simulator does best, shifts of wide words and parities of masked ones.
  localparam short_map_t ShortMap = short_map();
  localparam map_t StepMap = state_map(512);

  short_t short_q;
  logic valid_q, first_q, state_valid_q;
  crc_t state_q;

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      short_q <= shorten(data_i);
      first_q <= first_i;
    end
    if (valid_q) begin
      for (int r = 0; r < 32; r++) begin
        state_q[r] <= (^(ShortMap[r] & short_q)) ^ (^(StepMap[r] & state_q) & !first_q);
      end
    end
    valid_q       <= valid_i && !rst_i;
    state_valid_q <= valid_q && !rst_i;
  end

  assign state_valid_o = state_valid_q;
  assign state_o       = state_q;

endmodule

`default_nettype wire
