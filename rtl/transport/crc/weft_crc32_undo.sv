// SPDX-License-Identifier: Apache-2.0
//
// Takes the zeros behind the end of a frame out of its CRC and inverts it: the ICRC to send.
//
// valid_i comes with the state of weft_crc32_beat behind a last beat that holds 2 + 4*end_word_i
// covered bytes; crc_o follows 2 cycles later, with valid_o. One a cycle, never stalls. A receiver
// needs none of this: it compares with weft_crc32_pkg::residue_behind.
`default_nettype none

module weft_crc32_undo
  import weft_crc32_pkg::*;
(
    input  wire        clk_i,
    input  wire        rst_i,
    input  wire        valid_i,
    input  wire  [3:0] end_word_i,
    input  wire crc_t  state_i,
    output logic       valid_o,
    output crc_t       crc_o
);

  // 62 - 4*end_word bytes of zeros must go and EarlyBits are gone: what is left is A^32 and, for
  // the bits of ~end_word, A^-32, A^-64, A^-128, A^-256, each as dense as can be. For the 32nd root
  // of the state these are A^-1, A^-2, A^-4, A^-8, which hardly cost anything: root and power are
  // all there is to pay for.
  localparam map_t Root = power_map(27);
  localparam map_t Power = product(state_map(32), power_map(5));
  localparam map_t Back1 = state_map(-1);
  localparam map_t Back2 = state_map(-2);
  localparam map_t Back4 = state_map(-4);
  localparam map_t Back8 = state_map(-8);

  function automatic crc_t back_if(logic undo, map_t map, crc_t state);
    return undo ? apply(map, state) : state;
  endfunction

  logic valid_q, crc_valid_q;
  logic [3:2] end_word_q;
  crc_t half_q, crc_q;

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      half_q     <= back_if(!end_word_i[1], Back2, back_if(!end_word_i[0], Back1,
                                                           apply(Root, state_i)));
      end_word_q <= end_word_i[3:2];
    end
    if (valid_q) begin
      crc_q <= ~apply(Power, back_if(!end_word_q[3], Back8,
                                     back_if(!end_word_q[2], Back4, half_q)));
    end
    valid_q     <= valid_i && !rst_i;
    crc_valid_q <= valid_q && !rst_i;
  end

  assign valid_o = crc_valid_q;
  assign crc_o   = crc_q;

endmodule

`default_nettype wire
