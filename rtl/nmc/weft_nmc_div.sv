// SPDX-License-Identifier: Apache-2.0
//
// Division of integers in 64-bit words by a small number, for averages: a step divides a byte, so
// what has n bytes takes n steps, each of which goes on from what the one before has left in the
// accumulator and in `kept`.
//
// No handshake: words with valid_i in cycle t, result in t + IntDivLatency, one step a cycle.
//
// A number lies in the low bytes of its word, as many as cmd_i.size says; what is above them does
// not count. A step takes the highest of them away and puts a byte of the quotient in at the
// bottom, so behind the last step the quotient lies where the number did. Below zero everything
// goes by the complement: with y = -1 - x, x / n towards zero is -1 - y / n, and one more unless
// y / n leaves n - 1. That one is not added here but told, in bit 0 of `kept`, to whoever takes the
// quotient. Of each word `kept` has 32 bits:
//
//   31 .. 8: 0   7 .. 2: what is left   1: below zero   0: the quotient is to be one more
//
//   1       the byte; those below it wait in a RAM
//   2 - 9   a bit of the quotient each
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_div
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Lanes = 16
) (
    input  wire                    clk_i,
    input  wire                    rst_i,
    // A step; one divisor for all lanes, 1 to 64.
    input  wire                    valid_i,
    input  wire  div_cmd_t         cmd_i,
    input  wire  [   DivisorW-1:0] divisor_i,
    input  wire  [   Lanes*64-1:0] x_i,
    input  wire  [   Lanes*32-1:0] kept_i,  // not looked at in the first step
    // Its result.
    output logic                   valid_o,
    output logic [   Lanes*64-1:0] x_o,
    output logic [   Lanes*32-1:0] kept_o
);

  localparam int unsigned Stages = IntDivLatency;
  localparam int unsigned RestW = DivisorW - 1;
  if (Stages != 9) begin : gen_bad_latency
    $error("weft_nmc_div: IntDivLatency must be 9, a stage for each bit of a byte and one before");
  end

  typedef logic [DivisorW-1:0] divisor_t;

  // Of a word on its way.
  typedef struct packed {
    logic [7:0]       digit;   // bits of the byte that are left, then those of the quotient
    logic [RestW-1:0] rest;
    logic             minus;
  } word_t;

  function automatic logic [7:0] top_byte(logic [63:0] x, logic [1:0] size);
    unique case (size)
      2'd0: return x[7:0];
      2'd1: return x[15:8];
      2'd2: return x[31:24];
      2'd3: return x[63:56];
    endcase
  endfunction

  function automatic word_t load(logic [63:0] x, logic [31:0] kept, div_cmd_t cmd);
    word_t w;
    logic [7:0] digit;
    digit   = top_byte(x, cmd.size);
    w.minus = cmd.first ? cmd.is_signed && digit[7] : kept[1];
    w.digit = digit ^ {8{w.minus}};
    w.rest  = cmd.first ? '0 : kept[2+:RestW];
    return w;
  endfunction

  function automatic word_t next(word_t w, divisor_t divisor);
    logic [DivisorW:0] left;  // negative: the divisor is not in it
    word_t y;
    left    = {1'b0, w.rest, w.digit[7]} - {1'b0, divisor};
    y       = w;
    y.digit = {w.digit[6:0], !left[DivisorW] ^ w.minus};
    y.rest  = left[DivisorW] ? {w.rest[RestW-2:0], w.digit[7]} : left[RestW-1:0];
    return y;
  endfunction

  // The bytes below the one at work, of all lanes.
  localparam int unsigned Depth = 16;  // more than there are stages
  logic [$clog2(Depth)-1:0] in_q, out_q;
  logic [Lanes-1:0][55:0] below_in, below;
  logic [Stages-1:1] valid_q;
  weft_sdpram #(
      .Width(Lanes * 56),
      .Depth(Depth),
      .Style("distributed")
  ) u_below (
      .clk_i,
      .we_i   (valid_i),
      .waddr_i(in_q),
      .wdata_i(below_in),
      .re_i   (valid_q[Stages-2]),
      .raddr_i(out_q),
      .rdata_o(below)
  );

  always_comb for (int unsigned i = 0; i < Lanes; i++) below_in[i] = x_i[64*i+:56];

  divisor_t divisor_q[1:Stages-1];
  word_t word_q[1:Stages-1][Lanes];

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      valid_q <= '0;
      valid_o <= 1'b0;
      in_q    <= '0;
      out_q   <= '0;
    end else begin
      if (valid_i) in_q <= in_q + 1'b1;
      if (valid_q[Stages-2]) out_q <= out_q + 1'b1;
      valid_q <= {valid_q[Stages-2:1], valid_i};
      valid_o <= valid_q[Stages-1];
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_q[Stages-1]) begin
      automatic divisor_t divisor = divisor_q[Stages-1];
      automatic logic [RestW-1:0] highest = RestW'(divisor - 1'b1);
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic word_t w = next(word_q[Stages-1][i], divisor);
        x_o[64*i+:64]    <= {below[i], w.digit};
        kept_o[32*i+:32] <= 32'({w.rest, w.minus, w.minus && w.rest != highest});
      end
    end
    for (int unsigned s = Stages - 1; s > 1; s--) begin
      if (valid_q[s-1]) begin
        automatic divisor_t divisor = divisor_q[s-1];
        /* verilator unroll_disable */
        for (int unsigned i = 0; i < Lanes; i++) word_q[s][i] <= next(word_q[s-1][i], divisor);
        divisor_q[s] <= divisor;
      end
    end
    if (valid_i) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++)
        word_q[1][i] <= load(x_i[64*i+:64], kept_i[32*i+:32], cmd_i);
      divisor_q[1] <= divisor_i;
    end
  end

  `WEFT_IMPLIES(DivisorInRange, valid_i,
                divisor_i != '0 && (!divisor_i[RestW] || divisor_i[RestW-1:0] == '0));

endmodule

`default_nettype wire
