// SPDX-License-Identifier: Apache-2.0
//
// Makes the 32 numbers of a block of OCP MX out of its bytes: each element times the block's scale,
// in fp32. Exact but for overflow to infinity; a NaN scale makes all 32 NaN.
//
// No handshake: a block with valid_i in cycle t, its numbers in t + MxInLatency, one a cycle.
// Element e comes out in lane (turn_i + e) mod 32. They are turned while they still are bytes, so
// that results wider than their elements need no turning.
//
//   1  e2m1 to e4m3, which has its numbers; turn
//   2  split into 1.fff x 2^exp; add the scale: the exponent field of the result, 16 too high
//   3  below 17 it is subnormal in fp32: the four bits move down
//
// The rules are sw/ref/num/mx.h's.
`default_nettype none

module weft_nmc_mx_in
  import weft_nmc_pkg::*;
(
    input  wire                       clk_i,
    input  wire                       rst_i,
    input  wire                       valid_i,
    input  wire  mx_fmt_e             fmt_i,
    input  wire  [               4:0] turn_i,
    input  wire  mx_block_t           block_i,   // of MXFP4 bytes 0 to 16
    output logic                      valid_o,
    output logic [MxElements*32-1:0]  values_o,
    output logic                      overflow_o  // of any of them
);

  localparam int unsigned N = MxElements;
  typedef logic [8*N-1:0] bytes_t;

  typedef enum logic [1:0] {
    KindNumber,
    KindZero,
    KindInf,
    KindNan
  } kind_e;

  // An element as 1.fff x 2^exp, but for the bias of its format.
  typedef struct packed {
    kind_e      kind;
    logic [5:0] exp;   // signed: of subnormals 0 or below
    logic [2:0] frac;
  } parts_t;

  // Exponent fields 0 (of 0.5), 1, 2, 3 become 6, 7, 8, 9.
  function automatic logic [7:0] e4m3_of(logic [3:0] x);
    logic low;
    low = !x[2] && x[1:0] != '0;
    return {x[3], x[2], low, low, x[1], x[0] && x[2:1] != '0, 2'd0};
  endfunction

  function automatic bytes_t elements_of(mx_block_t block, logic half);
    bytes_t y;
    y = block[8+:8*N];
    for (int unsigned i = 0; i < N; i++) begin
      if (half) y[8*i+:8] = e4m3_of(block[8+4*i+:4]);
    end
    return y;
  endfunction

  // Rotations towards higher lanes, by constant slices, which simulate fast.
  function automatic bytes_t up_8(bytes_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[8*24-1:0], x[8*N-1:8*24]};
      2'd2: return {x[8*16-1:0], x[8*N-1:8*16]};
      2'd3: return {x[8*8-1:0], x[8*N-1:8*8]};
    endcase
  endfunction

  function automatic bytes_t up_2(bytes_t x, logic [1:0] n);
    unique case (n)
      2'd0: return x;
      2'd1: return {x[8*30-1:0], x[8*N-1:8*30]};
      2'd2: return {x[8*28-1:0], x[8*N-1:8*28]};
      2'd3: return {x[8*26-1:0], x[8*N-1:8*26]};
    endcase
  endfunction

  function automatic bytes_t up_1(bytes_t x, logic n);
    return n ? {x[8*31-1:0], x[8*N-1:8*31]} : x;
  endfunction

  function automatic parts_t of_e4m3(logic [6:0] x);
    parts_t y;
    y.kind = (x == '1) ? KindNan : (x == '0) ? KindZero : KindNumber;
    y.exp  = {2'd0, x[6:3]};
    y.frac = x[2:0];
    if (x[6:3] == '0) begin
      y.exp  = x[2] ? 6'd0 : x[1] ? -6'd1 : -6'd2;
      y.frac = x[2] ? {x[1:0], 1'b0} : {x[1] && x[0], 2'd0};
    end
    return y;
  endfunction

  function automatic parts_t of_e5m2(logic [6:0] x);
    parts_t y;
    y.kind = (x == '0) ? KindZero : (x[6:2] != '1) ? KindNumber :
             (x[1:0] == '0) ? KindInf : KindNan;
    y.exp  = {1'b0, x[6:2]};
    y.frac = {x[1:0], 1'b0};
    if (x[6:2] == '0) begin
      y.exp  = x[1] ? 6'd0 : -6'd1;
      y.frac = {x[1] && x[0], 2'd0};
    end
    return y;
  endfunction

  // x - 1, without a carry chain.
  function automatic logic [3:0] less_one(logic [3:0] x);
    return x ^ {x[2:0] == '0, x[1:0] == '0, !x[0], 1'b1};
  endfunction

  // 1.fff, down by 17 - exp places behind the point of a number without a hidden bit.
  function automatic logic [22:0] subnormal(logic [4:0] exp, logic [2:0] frac);
    logic [6:0] x;
    x = {3'd0, 1'b1, frac} << exp[1:0];
    return exp[4] ? {x[3:0], 19'd0} : 23'({x, 3'd0}) << {exp[3:2], 2'd0};
  endfunction

  logic       valid1_q, valid2_q;
  logic       e5m2_q;
  logic [8:0] base_q;   // scale, less the bias, 16 too high
  logic       nan_q;    // the scale is NaN
  bytes_t     turned_q;
  kind_e      kind_q[N];
  logic [8:0] exp_q [N];
  logic [2:0] frac_q[N];
  logic       sign_q[N];

  // Last stage first, with blocking assignments to the arrays, for the reasons of weft_nmc_float.
  always_ff @(posedge clk_i) begin
    if (valid2_q) begin
      automatic logic [32*N-1:0] values;
      automatic logic [   N-1:0] over;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic [8:0] exp = exp_q[i];
        // 271 and up is above the largest fp32, 16 and down below the normal ones.
        automatic logic beyond = exp[8] && (exp[7:4] != '0 || exp[3:0] == '1);
        automatic logic below = exp[8:5] == '0 && (!exp[4] || exp[3:0] == '0);
        automatic logic inf = kind_q[i] == KindInf || beyond;
        automatic logic [30:0] x = {less_one(exp[7:4]), exp[3:0], frac_q[i], 20'd0};
        if (below) x = {8'd0, subnormal(exp[4:0], frac_q[i])};
        if (inf) x = {8'hff, 23'd0};
        if (kind_q[i] == KindZero) x = '0;
        if (kind_q[i] == KindNan) x = {8'hff, 1'b1, 22'd0};
        values[32*i+:32] = {sign_q[i] && kind_q[i] != KindNan, x};
        over[i] = beyond && kind_q[i] == KindNumber;
      end
      values_o   <= values;
      overflow_o <= over != '0;
    end

    if (valid1_q) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < N; i++) begin
        automatic logic [7:0] x = turned_q[8*i+:8];
        automatic parts_t parts = e5m2_q ? of_e5m2(x[6:0]) : of_e4m3(x[6:0]);
        sign_q[i] = x[7];
        exp_q[i]  = base_q + {{3{parts.exp[5]}}, parts.exp};
        frac_q[i] = parts.frac;
        kind_q[i] = nan_q ? KindNan : parts.kind;
      end
    end

    if (valid_i) begin
      turned_q <= up_1(up_2(up_8(elements_of(block_i, fmt_i == MxE2m1), turn_i[4:3]), turn_i[2:1]),
                       turn_i[0]);
      e5m2_q   <= fmt_i == MxE5m2;
      base_q   <= {1'b0, block_i[7:0]} + ((fmt_i == MxE5m2) ? 9'd1 : 9'd9);
      nan_q    <= block_i[7:0] == '1;
    end

    if (rst_i) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      valid_o  <= 1'b0;
    end else begin
      valid1_q <= valid_i;
      valid2_q <= valid1_q;
      valid_o  <= valid2_q;
    end
  end

endmodule

`default_nettype wire
