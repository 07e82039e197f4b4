// SPDX-License-Identifier: Apache-2.0
//
// Integer lanes of 64 bits: sum and product (both wrap), maximum, minimum, and, or, xor, copy, of
// elements of 8 to 64 bits, signed or not.
//
// No handshake: operands with valid_i in cycle t, result in t + IntLatency whatever the operation,
// one step a cycle.
//
// A native step (wide = 0) works on whole beats: elements side by side, to = from, every operation
// but a product. A wide step has one element in each 32-bit word, or in each 64-bit word if `from`
// or `to` has 64 bits:
//   8, 16, 32 bits in 32-bit words   at the top of word w
//   64 bits                          word l
//   8, 16, 32 bits in 64-bit words   at the top of the LOWER half of word l, as if that were all;
//                                    the upper half is not looked at
// Sources are extended to the word by the sign of `from`. A result is what the low bits hold, as
// many as the wider of `from` and `to` has, cut to `to` or, with `saturate`, clamped into it. It
// lies where a source of its size would; the bits below it are undefined.
//
// a is acc_i with use_acc, else a_i; with `scalar` b_i is whole words. With to_acc the result
// is whole words, to be fed back into acc_i as they are.
//
// overflow_o: a live lane was clamped, one cycle behind its result; 0 when there is none. live_i
// has a bit for each 32-bit word; in 64-bit words that of the lower half counts.
//
//   1     operands: accumulator or source, extended
//   2, 3  (products of limbs of 26 and 17 bits)
//   4     one chain with a link between bytes: adder, and comparator of every width
//   5     byte by byte, which operand is the maximum or minimum (a product takes the place of b)
//   6     sum, a, b, and, or, xor: one LUT a bit
//   7     does it fit `to`?
//   8     to its place, or clamped
// All lanes sit in one clocked block under shared valids, with blocking assignments, last stage
// first: see weft_nmc_float. The rules are sw/ref/numerics.h's; docs/nmc.md has the table.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_int
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Lanes = 16,
    parameter bit          Wide  = 1'b1,  // wide steps
    parameter bit          Mul   = Wide   // ... and products
) (
    input  wire                      clk_i,
    input  wire                      rst_i,
    // A step.
    input  wire                      valid_i,
    input  wire  int_cmd_t           cmd_i,
    input  wire  [    2*Lanes-1:0]   live_i,
    input  wire  [   Lanes*64-1:0]   a_i,
    input  wire  [   Lanes*64-1:0]   b_i,
    input  wire  [   Lanes*64-1:0]   acc_i,
    // Its result.
    output logic                     valid_o,
    output logic [   Lanes*64-1:0]   res_o,
    output logic                     overflow_o
);

  localparam int unsigned Stages = IntLatency;
  localparam int unsigned ChainW = 8 * 9 + 1;  // a link below each byte and one on top

  if (Mul && !Wide) begin : gen_bad_mul
    $error("weft_nmc_int: Mul needs Wide");
  end

  typedef logic [63:0] word_t;
  typedef logic [31:0] half_t;
  typedef logic [ChainW-1:0] chain_t;

  // ---- what the stages compute ------------------------------------------------------------------
  // Where the bits of an operand's half word come from.
  typedef enum logic [1:0] {
    TakeOther,  // accumulator, scalar
    TakeWord,
    TakeTop16,
    TakeTop8
  } take_e;

  function automatic half_t take(take_e from, half_t x, half_t other, logic sign);
    unique case (from)
      TakeOther: return other;
      TakeWord:  return x;
      TakeTop16: return {{16{sign}}, x[31:16]};
      TakeTop8:  return {{24{sign}}, x[31:24]};
    endcase
  endfunction

  // `fill`: a 64-bit word with a narrower element.
  function automatic word_t operand(word_t x, word_t other, take_e from, logic is_signed,
                                    logic fill);
    half_t high;
    logic sign_low, sign_high;
    sign_low  = is_signed && x[31];
    sign_high = is_signed && (fill ? x[31] : x[63]);
    high = take((fill && from != TakeOther) ? TakeTop8 : from, x[63:32], other[63:32], sign_high);
    if (fill && from != TakeOther) high[7:0] = {8{sign_high}};
    return {high, take(from, x[31:0], other[31:0], sign_low)};
  endfunction

  // Sum, or difference with `minus`, of elements of 2^size bytes. The link below a byte hands the
  // carry on inside an element; elsewhere it starts with `minus`, and the sum there is the carry
  // out of the byte below.
  function automatic chain_t chain(word_t a, word_t b, logic minus, logic [1:0] size);
    chain_t x, y;
    x = '0;
    y = '0;
    for (int unsigned i = 0; i < 8; i++) begin
      logic inside_element;
      inside_element = (i % 2 != 0 && size >= 2'd1) || (i % 4 != 0 && size >= 2'd2) ||
                       (i != 0 && size == 2'd3);
      x[9*i+:9] = {a[8*i+:8], minus || inside_element};
      y[9*i+:9] = {b[8*i+:8] ^ {8{minus}}, minus && !inside_element};
    end
    return x + y;
  endfunction

  // For each byte, what its element's highest byte has.
  function automatic logic [7:0] of_top(logic [7:0] x, logic [1:0] size);
    unique case (size)
      2'd0: return x;
      2'd1: return {{2{x[7]}}, {2{x[5]}}, {2{x[3]}}, {2{x[1]}}};
      2'd2: return {{4{x[7]}}, {4{x[3]}}};
      2'd3: return {8{x[7]}};
    endcase
  endfunction

  // What the operations have to be chosen from; a second bit chooses in each byte.
  typedef enum logic [1:0] {
    KindSum,
    KindEither,  // a, or b
    KindBits,    // and, or or
    KindXor
  } kind_e;

  function automatic kind_e kind_of(int_op_e op);
    unique case (op)
      IntSum:        return KindSum;
      IntAnd, IntOr: return KindBits;
      IntXor:        return KindXor;
      default:       return KindEither;
    endcase
  endfunction

  function automatic word_t choose(kind_e kind, word_t pick, word_t a, word_t b, word_t sum);
    unique case (kind)
      KindSum:    return sum;
      KindEither: return (a & ~pick) | (b & pick);
      KindBits:   return (a & b) | ((a | b) & pick);
      KindXor:    return a ^ b;
    endcase
  endfunction

  function automatic logic msb_of(half_t x, logic [1:0] size);
    return (size == 2'd0) ? x[7] : (size == 2'd1) ? x[15] : x[31];
  endfunction

  // Whether a number of 2^acc bytes has digits that 2^to bytes do not hold; size 3 looks like size
  // 2.
  function automatic logic spills(half_t x, logic sign, logic [1:0] acc, logic [1:0] to);
    return (to == 2'd0 && acc != 2'd0 && x[15:8] != {8{sign}}) ||
           (!to[1] && acc[1] && x[31:16] != {16{sign}});
  endfunction

  // Where the bits of a result's half word come from.
  typedef enum logic [1:0] {
    PutClamp,
    PutWord,
    PutTop16,
    PutTop8
  } put_e;

  function automatic half_t put(put_e how, half_t x, logic fill);
    unique case (how)
      PutClamp: return {32{fill}};
      PutWord:  return x;
      PutTop16: return {x[15:0], x[15:0]};
      PutTop8:  return {x[7:0], x[7:0], x[15:0]};
    endcase
  endfunction

  // ---- valid and command ------------------------------------------------------------------------
  // One copy for all lanes; index = the stage whose registers they belong to.
  typedef struct packed {
    int_op_e    op;
    logic       is_signed;  // the sources
    logic       to_signed;
    logic [1:0] acc;        // log2 of the bytes of the accumulator
    logic [1:0] to;
    logic       convert;    // the result is wide and no accumulator
    logic       saturate;
  } step_t;

  logic [Stages-1:1] valid_q;
  step_t             step_q [1:Stages-1];
  logic [2*Lanes-1:0] live_q [1:Stages];

  // 64-bit words, and those of them that hold narrower elements.
  wire wide64 = cmd_i.from.size == 2'd3 || cmd_i.to.size == 2'd3;
  wire fill = Wide && cmd_i.wide && wide64 && cmd_i.from.size != 2'd3;

  function automatic take_e take_of(int_cmd_t cmd, logic other);
    if (other) return TakeOther;
    if (!Wide || !cmd.wide || cmd.from.size[1]) return TakeWord;
    return cmd.from.size[0] ? TakeTop16 : TakeTop8;
  endfunction

  wire take_e take_a = take_of(cmd_i, cmd_i.use_acc);
  wire take_e take_b = take_of(cmd_i, Wide && cmd_i.scalar);

  always_ff @(posedge clk_i) begin
    step_q[1] <= '{
        op: cmd_i.op,
        is_signed: cmd_i.from.is_signed,
        to_signed: cmd_i.to.is_signed,
        acc: (cmd_i.from.size > cmd_i.to.size) ? cmd_i.from.size : cmd_i.to.size,
        to: cmd_i.to.size,
        convert: Wide && cmd_i.wide && !cmd_i.to_acc,
        saturate: cmd_i.saturate
    };
    live_q[1] <= live_i;
    for (int unsigned i = 2; i < Stages; i++) step_q[i] <= step_q[i-1];
    for (int unsigned i = 2; i <= Stages; i++) live_q[i] <= live_q[i-1];
    if (rst_i) begin
      valid_q <= '0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= {valid_q[Stages-2:1], valid_i};
      valid_o <= valid_q[Stages-1];
    end
  end

  // Element size of the chain: of the words in wide steps.
  logic [3:1] wide_q;
  logic [1:0] size4_q;
  wire  [1:0] size3 = wide_q[3] ? {1'b1, step_q[3].acc == 2'd3} : step_q[3].acc;

  always_ff @(posedge clk_i) begin
    wide_q  <= {wide_q[2:1], Wide && cmd_i.wide};
    size4_q <= size3;
  end

  // ---- stage registers --------------------------------------------------------------------------
  word_t            a1_q   [Lanes];
  word_t            b1_q   [Lanes];
  word_t            a2_q   [Lanes];
  word_t            b2_q   [Lanes];
  word_t            a3_q   [Lanes];
  word_t            b3_q   [Lanes];
  word_t            a4_q   [Lanes];
  word_t            b4_q   [Lanes];
  chain_t           sum4_q [Lanes];
  word_t            a5_q   [Lanes];
  word_t            b5_q   [Lanes];
  word_t            sum5_q [Lanes];
  logic [7:0]       pick5_q[Lanes];
  word_t            res6_q [Lanes];
  word_t            res7_q [Lanes];
  logic             neg7_q [Lanes][2];  // the half word, or with [0] the word, is below 0
  logic             over7_q[Lanes][2];  // ... and not in `to`
  logic [2*Lanes-1:0] over8_q;

  // Products of limbs: a in 26, 26 and 12 bits, b in 17, 17, 17 and 13; named by their numbers. Of
  // 32-bit words the lower one's product is the low half of the whole; the upper one has its own
  // limbs of 17 and 15 bits.
  typedef struct packed {
    logic [42:0] ab00;
    logic [42:0] ab01;
    logic [29:0] ab02;
    logic [12:0] ab03;
    logic [37:0] ab10;
    logic [20:0] ab11;
    logic [3:0]  ab12;
    logic [11:0] ab20;
    logic [31:0] up00;
    logic [14:0] up01;
    logic [14:0] up10;
  } limbs_t;

  limbs_t           limbs2_q[Lanes];
  limbs_t           limbs3_q[Lanes];
  word_t            rows4_q [Lanes];
  word_t            more4_q [Lanes];
  half_t            upper4_q[Lanes];

  function automatic limbs_t multiply(word_t a, word_t b);
    limbs_t x;
    x.ab00 = 43'(a[25:0]) * 43'(b[16:0]);
    x.ab01 = 43'(a[25:0]) * 43'(b[33:17]);
    x.ab02 = 30'(a[25:0]) * 30'(b[50:34]);
    x.ab03 = a[12:0] * b[63:51];
    x.ab10 = 38'(a[51:26]) * 38'(b[16:0]);
    x.ab11 = a[46:26] * 21'(b[33:17]);
    x.ab12 = a[29:26] * b[37:34];
    x.ab20 = a[63:52] * b[11:0];
    x.up00 = 32'(a[48:32]) * 32'(b[48:32]);
    x.up01 = a[46:32] * b[63:49];
    x.up10 = a[63:49] * b[46:32];
    return x;
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_q[7]) begin
      automatic step_t step = step_q[7];
      automatic logic doubled = step.acc == 2'd3;
      automatic put_e how = !step.convert || step.to[1] ? PutWord : step.to[0] ? PutTop16 : PutTop8;
      automatic logic clamp = Wide && step.convert && step.saturate;
      automatic logic [Lanes*64-1:0] res;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        for (int unsigned h = 0; h < 2; h++) begin
          // Both halves of a 64-bit result go by the verdict on the word.
          automatic int unsigned of = (h == 1 && !doubled) ? 1 : 0;
          automatic logic over = clamp && over7_q[i][of];
          automatic half_t x = put(over ? PutClamp : how, res7_q[i][32*h+:32], !neg7_q[i][of]);
          if (over && step.to_signed && !(h == 0 && step.to == 2'd3)) x[31] = neg7_q[i][of];
          res[i*64+h*32+:32] = x;
          over8_q[2*i+h] <= over && !(h == 1 && doubled);
        end
      end
      res_o <= res;
    end

    if (valid_q[6]) begin
      automatic step_t step = step_q[6];
      automatic logic doubled = step.acc == 2'd3;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic word_t x = res6_q[i];
        res7_q[i] = x;
        if (Wide) begin
          automatic logic neg1 = step.is_signed && msb_of(x[63:32], step.acc);
          automatic logic neg0 = doubled ? neg1 : step.is_signed && msb_of(x[31:0], step.acc);
          automatic logic spill1 = spills(x[63:32], neg1, step.acc, step.to);
          automatic logic spill0 = spills(x[31:0], neg0, step.acc, step.to);
          automatic logic top1 = msb_of(x[63:32], step.to);
          automatic logic top0 = (step.to == 2'd3) ? x[63] : msb_of(x[31:0], step.to);
          if (doubled && step.to != 2'd3) begin
            spill0 = spill0 || x[63:32] != {32{neg0}};
          end
          neg7_q[i]  = '{neg0, neg1};
          over7_q[i] = '{spill0 || (step.to_signed ? top0 != neg0 : neg0),
                         spill1 || (step.to_signed ? top1 != neg1 : neg1)};
        end
      end
    end

    if (valid_q[5]) begin
      automatic kind_e kind = kind_of(step_q[5].op);
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic word_t pick;
        for (int unsigned k = 0; k < 8; k++) pick[8*k+:8] = {8{pick5_q[i][k]}};
        res6_q[i] = choose(kind, pick, a5_q[i], b5_q[i], sum5_q[i]);
      end
    end

    if (valid_q[4]) begin
      automatic step_t step = step_q[4];
      automatic logic order = step.op == IntMax || step.op == IntMin;
      automatic logic fixed = step.op == IntOr || step.op == IntMul;
      automatic logic doubled = step.acc == 2'd3;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic logic [7:0] a_ge;
        for (int unsigned k = 0; k < 8; k++) begin
          automatic logic unlike = a4_q[i][8*k+7] != b4_q[i][8*k+7];
          a_ge[k] = sum4_q[i][9*k+9] ^ (step.is_signed && unlike);
          sum5_q[i][8*k+:8] = sum4_q[i][9*k+1+:8];
        end
        a_ge = of_top(a_ge, size4_q);
        pick5_q[i] = order ? a_ge ^ {8{step.op == IntMax}} : {8{fixed}};
        a5_q[i] = a4_q[i];
        b5_q[i] = b4_q[i];
        if (Mul) begin
          // b, or else the rows of a product: what is not wanted is zero. A link at bit 32 lets a
          // carry through only inside a 64-bit word.
          automatic word_t x = rows4_q[i] | {upper4_q[i], 32'd0} | b4_q[i];
          automatic word_t y = more4_q[i];
          automatic logic [64:0] sum = {x[63:32], doubled, x[31:0]} + {y[63:32], 1'b0, y[31:0]};
          b5_q[i] = {sum[64:33], sum[31:0]};
        end
      end
    end

    if (valid_q[3]) begin
      automatic step_t step = step_q[3];
      automatic logic mul = step.op == IntMul;
      automatic logic doubled = step.acc == 2'd3;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        sum4_q[i] = chain(a3_q[i], b3_q[i], step.op != IntSum, size3);
        a4_q[i]   = a3_q[i];
        b4_q[i]   = b3_q[i];
        if (Mul) begin
          automatic limbs_t x = limbs3_q[i];
          // The bit below keeps the mapper from joining two additions into a row of full adders.
          automatic logic [13:0] top = {x.ab03, 1'b0} + {x.ab20, 2'b00};
          automatic logic [15:0] inner = {x.up01, 1'b0} + {x.up10, 1'b0};
          automatic logic [29:0] mid = x.ab10[37:8] + x.ab02;
          rows4_q[i]  = {{x.ab11, x.ab00[42:17]} + {x.ab12, x.ab01}, x.ab00[16:0]};
          more4_q[i]  = {mid[29:17] + top[13:1], mid[16:0], x.ab10[7:0], 26'd0};
          upper4_q[i] = {x.up00[31:17] + inner[15:1], x.up00[16:0]};
          // One product a word, or two, or none.
          if (!mul) {rows4_q[i][31:0], more4_q[i][31:0]} = '0;
          if (!mul || !doubled) {rows4_q[i][63:32], more4_q[i][63:32]} = '0;
          if (!mul || doubled) upper4_q[i] = '0;
          if (mul) b4_q[i] = '0;
        end
      end
    end

    if (valid_q[2]) begin
      for (int unsigned i = 0; i < Lanes; i++) begin
        a3_q[i] = a2_q[i];
        b3_q[i] = b2_q[i];
        if (Mul) limbs3_q[i] = limbs2_q[i];
      end
    end

    if (valid_q[1]) begin
      for (int unsigned i = 0; i < Lanes; i++) begin
        a2_q[i] = a1_q[i];
        b2_q[i] = b1_q[i];
        if (Mul) limbs2_q[i] = multiply(a1_q[i], b1_q[i]);
      end
    end

    if (valid_i) begin
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        a1_q[i] = operand(a_i[i*64+:64], acc_i[i*64+:64], take_a, cmd_i.from.is_signed, fill);
        b1_q[i] = operand(b_i[i*64+:64], b_i[i*64+:64], take_b, cmd_i.from.is_signed,
                          fill);
      end
    end
  end

  always_ff @(posedge clk_i) overflow_o <= Wide && valid_o && (over8_q & live_q[Stages]) != '0;

  `WEFT_IMPLIES(ServedStep, valid_i, cmd_i.wide ? Wide && (Mul || cmd_i.op != IntMul)
                                                : cmd_i.from == cmd_i.to && cmd_i.op != IntMul);
  `WEFT_IMPLIES(ServedScalar, valid_i, !cmd_i.scalar || cmd_i.wide);

endmodule

`default_nettype wire
