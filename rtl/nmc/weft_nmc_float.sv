// SPDX-License-Identifier: Apache-2.0
//
// Floating-point lanes: fp32, fp16, bf16, e4m3 and e5m2; sum, maximum, minimum, product, conversion,
// round to nearest even, subnormals in full, one canonical quiet NaN. One source, three builds:
//   Width 32   one element at the top of a 32-bit word: all five types. Convert adds to != from,
//              Mul products.
//   Width 16   one at the top of a 16-bit word: 16- and 8-bit types, to = from
//   Width 8    8-bit types, to = from
//
// No handshake: operands with valid_i in cycle t, result and flags in t + FloatLatency, of a product in
// t + FloatMulLatency, one step a cycle. Two results must not meet: no other step may start
// FloatMulLatency - FloatLatency cycles behind a product (asserted).
//
// A step:
//   Sum, Max, Min  a op b. `to` must not have a smaller exponent range than `from`: where
//                  float_needs_convert says so, the step goes to the accumulator with `odd`, and a
//                  Convert step from there rounds once more, which then is rounding once.
//   Convert        a
//   Mul            a x b; b is scalar_i with `scalar`. The accumulator as operand is a true fp32.
// a is acc_i with use_acc, else a_i. With to_acc the result is all of its 32 bits of res_o, rounded
// like an fp32, and to be fed back into acc_i as it is, under a `from` that was its `to`: the fields of an
// fp32 with the bias of that format. So a fold in any format gives the bits of a fold in fp32, and
// to = FmtFp32 leaves a true fp32. Without to_acc the result of format `to` is the top bits of the 32
// and the bits below it are undefined.
//
// What a lane with live_i = 0 computes raises no flag. The rules are sw/ref/numerics.h's; docs/nmc.md
// has the table.
`default_nettype none

module weft_nmc_float
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Lanes   = 32,
    parameter int unsigned Width   = 32,
    parameter bit          Convert = Width == 32,
    parameter bit          Mul     = Width == 32
) (
    input  wire                      clk_i,
    input  wire                      rst_i,
    // A step. Lane i takes its Width bits of a_i and b_i, and word i of acc_i.
    input  wire                      valid_i,
    input  wire  float_cmd_t         cmd_i,
    input  wire  [      Lanes-1:0]   live_i,
    input  wire  [Lanes*Width-1:0]   a_i,
    input  wire  [Lanes*Width-1:0]   b_i,
    input  wire  [   Lanes*32-1:0]   acc_i,
    input  wire  [           31:0]   scalar_i,
    // Its result: word i of lane i, and what any live lane raised.
    output logic                     valid_o,
    output logic [   Lanes*32-1:0]   res_o,
    output float_flags_t             flags_o
);
endmodule

`default_nettype wire
