// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 register over 64-byte beats: a frame a beat at a time, no gap wanted between frames.
//
// The caller zeroes the bytes in front of the first covered byte and behind the last, and XORs
// weft_crc32_pkg::IcrcSeed into the first four covered bytes of the frame. state_o is the register
// two bytes early (see the package), two cycles after the beat: state_valid_o follows valid_i by 2.
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

  // Cutting the 512-input parities into eight slices with a register behind makes two short stages,
  // and is what a simulator does best: one AND and one parity of a machine word.
  localparam int unsigned Slices = 8;
  localparam int unsigned SliceW = 512 / Slices;
  localparam beat_map_t BeatMap = beat_map();
  localparam map_t StepMap = state_map(512);

  logic [31:0][Slices-1:0] parts_q;
  logic valid_q, first_q, state_valid_q;
  crc_t state_q;

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      for (int r = 0; r < 32; r++) begin
        for (int s = 0; s < int'(Slices); s++) begin
          parts_q[r][s] <= ^(data_i[s*SliceW+:SliceW] & BeatMap[r][s*SliceW+:SliceW]);
        end
      end
      first_q <= first_i;
    end
    if (valid_q) begin
      for (int r = 0; r < 32; r++) begin
        state_q[r] <= (^parts_q[r]) ^ (^(StepMap[r] & state_q) & !first_q);
      end
    end
    valid_q       <= valid_i && !rst_i;
    state_valid_q <= valid_q && !rst_i;
  end

  assign state_valid_o = state_valid_q;
  assign state_o       = state_q;

endmodule

`default_nettype wire
