// SPDX-License-Identifier: Apache-2.0
//
// ICRC of every frame that comes in, the received ICRC included: right if the register then holds
// the residue, moved on by the zeros behind the frame's end. A beat a cycle, never stalls.
//
// good_o tells in S3 about the frame whose len_i was given in S1 (two cycles before). Works for
// every length, a multiple of 4 or not: nothing is undone, the register is compared with one
// constant per place of the end. Knows IPv4 without options only (others are refused anyway).
// docs/rx.md.
`default_nettype none

module weft_rx_icrc
  import weft_crc32_pkg::*;
  import weft_rx_pkg::*;
(
    input  wire        clk_i,
    input  wire        rst_i,
    input  wire beat_t beat_i,  // S0
    input  wire flen_t len_i,   // S1
    output logic       good_o   // S3
);

  // What the RoCEv2 rule reads as ones: TOS, TTL, IP checksum, UDP checksum, BTH byte 4.
  function automatic logic [63:0] ones_bytes();
    logic [63:0] m = '0;
    m[15] = 1'b1;
    m[22] = 1'b1;
    m[24] = 1'b1;
    m[25] = 1'b1;
    m[40] = 1'b1;
    m[41] = 1'b1;
    m[46] = 1'b1;
    return m;
  endfunction
  localparam logic [63:0] OnesBytes = ones_bytes();
  localparam int unsigned EthBytes = 14;  // in front of what is covered

  // The state behind a right frame whose last beat held `held` bytes (0: 64).
  typedef logic [63:0][31:0] table_t;
  function automatic table_t residues();
    table_t t = '0;
    for (int held = 0; held < 64; held++) t[held] = residue_behind((64 - held) % 64);
    return t;
  endfunction
  localparam table_t Residues = residues();

  logic valid_q, first_q;
  logic [511:0] masked_q;
  crc_t want_q, want2_q, state;

  always_ff @(posedge clk_i) begin
    valid_q <= beat_i.valid && !rst_i;
    if (beat_i.valid) begin
      first_q <= beat_i.first;
      for (int i = 0; i < 64; i++) begin
        if (!beat_i.keep[i] || (beat_i.first && i < int'(EthBytes))) begin
          masked_q[8*i+:8] <= '0;
        end else if (beat_i.first && OnesBytes[i]) begin
          masked_q[8*i+:8] <= (i == int'(EthBytes) + 1) ? ~IcrcSeed[15:8] : '1;
        end else if (beat_i.first && i >= int'(EthBytes) && i < int'(EthBytes) + 4) begin
          masked_q[8*i+:8] <= beat_i.data[8*i+:8] ^ IcrcSeed[8*((i-int'(EthBytes))%4)+:8];
        end else begin
          masked_q[8*i+:8] <= beat_i.data[8*i+:8];
        end
      end
    end
    want_q  <= Residues[len_i[5:0]];  // S2
    want2_q <= want_q;  // S3
  end

  weft_crc32_beat u_crc (
      .clk_i,
      .rst_i,
      .valid_i(valid_q),
      .first_i(first_q),
      .data_i(masked_q),
      .state_valid_o(),  // S3 of the frame whose last beat it was, by construction
      .state_o(state)
  );

  assign good_o = state == want2_q;

endmodule
`default_nettype wire
