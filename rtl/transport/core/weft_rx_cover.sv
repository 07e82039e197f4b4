// SPDX-License-Identifier: Apache-2.0
//
// Fingerprint of a packet's place, for the check that the packets of a message cover it (W-MSG-014;
// sw/ref/cover.h says what it is good for, and is the same in software). Of a packet at va, with
// mix() as below and all modulo 2^32:
//
//   delta  mix(va + len) - mix(va)        whole  mix(va + msg_len) - mix(va)
//
// One packet every 4 cycles: one mix() for its three addresses, one behind the other. delta_o and
// whole_o 10 cycles behind valid_i, in the cycle of valid_o. Cannot be held.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_cover (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire         valid_i,
    input  wire  [31:0] va_i,
    input  wire  [12:0] len_i,
    input  wire  [31:0] msg_len_i,
    output logic        valid_o,
    output logic [31:0] delta_o,
    output logic [31:0] whole_o
);

  typedef enum logic [1:0] {
    Nothing,
    Start,    // mix(va)
    End,      // mix(va + len)
    Whole     // mix(va + msg_len)
  } what_e;

  function automatic logic [31:0] rotl(logic [31:0] x, int unsigned by);
    return 32'({x, x} >> (32 - by));
  endfunction
  function automatic logic [31:0] spread1(logic [31:0] x);
    return x ^ rotl(x, 5) ^ rotl(x, 11) ^ rotl(x, 17) ^ rotl(x, 26);
  endfunction
  function automatic logic [31:0] spread2(logic [31:0] x);
    return x ^ rotl(x, 3) ^ rotl(x, 10) ^ rotl(x, 19) ^ rotl(x, 25);
  endfunction
  function automatic logic [31:0] spread3(logic [31:0] x);
    return x ^ rotl(x, 6) ^ rotl(x, 13) ^ rotl(x, 20) ^ rotl(x, 29);
  endfunction

  // ---- the packet's three addresses
  what_e       next_q;
  logic [31:0] va_q, msg_len_q, plus;
  logic [12:0] len_q;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      va_q      <= va_i;
      len_q     <= len_i;
      msg_len_q <= msg_len_i;
    end
    if (rst_i) next_q <= Nothing;
    else if (valid_i) next_q <= Start;
    else if (next_q != Nothing) next_q <= (next_q == Whole) ? Nothing : what_e'(next_q + 2'd1);
  end
  assign plus = (next_q == End) ? 32'(len_q) : (next_q == Whole) ? msg_len_q : '0;

  // ---- mix
  localparam int unsigned Stages = 6;
  logic [31:0] x_q[Stages];
  what_e what_q[Stages];
  always_ff @(posedge clk_i) begin
    x_q[0] <= va_q + plus;
    x_q[1] <= spread1(x_q[0] ^ 32'h9e37_79b9);
    x_q[2] <= x_q[1] + rotl(x_q[1], 13);
    x_q[3] <= spread2(x_q[2]);
    x_q[4] <= x_q[3] + rotl(x_q[3], 7);
    x_q[5] <= spread3(x_q[4]);
    for (int unsigned i = 0; i < Stages; i++) begin
      what_q[i] <= rst_i ? Nothing : (i == 0) ? next_q : what_q[(i == 0) ? 0 : i-1];
    end
  end

  // ---- differences
  logic [31:0] start_q, from_start;
  assign from_start = x_q[Stages-1] - start_q;
  always_ff @(posedge clk_i) begin
    if (what_q[Stages-1] == Start) start_q <= x_q[Stages-1];
    if (what_q[Stages-1] == End) delta_o <= from_start;
    if (what_q[Stages-1] == Whole) whole_o <= from_start;
    valid_o <= what_q[Stages-1] == Whole && !rst_i;
  end

  `WEFT_IMPLIES(FourApart, valid_i, next_q == Nothing);

endmodule

`default_nettype wire
