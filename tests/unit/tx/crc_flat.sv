// SPDX-License-Identifier: Apache-2.0
// The CRC of a sender and of a receiver side by side: beats in, CRC of the covered bytes and
// verdict
// on a frame that carries its CRC out.
`default_nettype none
module crc_flat
  import weft_crc32_pkg::*;
(
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire         valid_i,
    input  wire         first_i,
    input  wire         last_i,
    input  wire  [3:0]  end_word_i,   // 2 + 4*end_word_i bytes of the last beat count
    input  wire  [511:0] data_i,
    output logic        crc_valid_o,
    output logic [31:0] crc_o,        // 4 cycles after the last beat
    output logic        good_valid_o,
    output logic        good_o,       // 2 cycles after it
    output logic [31:0] seed_o
);

  function automatic logic [15:0][31:0] residues();
    logic [15:0][31:0] table_of;
    for (int unsigned w = 0; w < 16; w++) table_of[w] = residue_behind(62 - 4 * w);
    return table_of;
  endfunction
  localparam logic [15:0][31:0] Residues = residues();

  logic [2:1] last_q;
  logic [3:0] end_word1_q, end_word2_q;
  logic state_valid;
  crc_t state;

  always_ff @(posedge clk_i) begin
    last_q      <= rst_i ? '0 : {last_q[1], valid_i && last_i};
    end_word1_q <= end_word_i;
    end_word2_q <= end_word1_q;
  end

  weft_crc32_beat u_beat (
      .clk_i,
      .rst_i,
      .valid_i,
      .first_i,
      .data_i,
      .state_valid_o(state_valid),
      .state_o      (state)
  );
  weft_crc32_undo u_undo (
      .clk_i,
      .rst_i,
      .valid_i   (state_valid && last_q[2]),
      .end_word_i(end_word2_q),
      .state_i   (state),
      .valid_o   (crc_valid_o),
      .crc_o
  );
  assign good_valid_o = state_valid && last_q[2];
  assign good_o       = state == Residues[end_word2_q];
  assign seed_o       = IcrcSeed;

endmodule
`default_nettype wire
