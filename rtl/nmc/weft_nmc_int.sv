// SPDX-License-Identifier: Apache-2.0
//
// Integer lanes of 64 bits: sum and product (both wrap), maximum, minimum, and, or, xor, copy, and
// any of these but a product times a scalar; of elements of 8 to 64 bits, signed or not; and what
// divisions end with.
//
// No handshake: operands with valid_i in cycle t, result in t + IntLatency whatever the operation,
// one step a cycle.
//
// A native step (wide = 0) works on whole beats: elements side by side, to = from, every operation
// but products. A wide step has one element in each 32-bit word, or in each 64-bit word if `from`
// or `to` has 64 bits:
//   8, 16, 32 bits in 32-bit words   at the top of word w
//   64 bits                          word l
//   8, 16, 32 bits in 64-bit words   at the top of the LOWER half of word l, as if that were all;
//                                    the upper half is not looked at
// Sources are extended to the word by the sign of `from`. A result is what the low bits hold, as
// many as the wider of `from` and `to` has, cut to `to` or, with `saturate`, clamped into it. It
// lies where a source of its size would; the bits below it are undefined.
//
// With use_acc a is whole words, what a step with to_acc has left as its result. With `scalar` the
// result is multiplied by scalar_i, whose lower half counts in 32-bit words, before it is cut.
// With `quotient` it is a, or one more by bit 0 of b's 32-bit word l for word l of 64 bits, whose
// lower half counts where `from` and `to` have fewer: a step with `wide`, use_acc and IntSum.
//
// overflow_o: a live lane was clamped, one cycle behind its result; 0 when there is none. live_i
// has a bit for each 32-bit word; in 64-bit words that of the lower half counts.
//
//   1     operands, extended
//   2     one chain with a link between bytes is adder, and comparator of every width; by that, for
//         each byte, sum, a, b, and, or, xor: one LUT a bit
//   3     factors: this, and b, the scalar, or 1
//   4     products of limbs of 26 and 17 bits
//   5, 6  their sum
//   7     does it fit `to`?
//   8     to its place, or clamped
// What is no product is multiplied by 1: that takes no choice behind the multipliers, and so no
// registers beside them.
//
// Two choices by one bit for many are made by reset and set inputs of registers, which takes no
// LUTs: factor b is cleared and then set to the scalar, bit by bit, and a result that does not fit
// is cleared and then set to the largest number.
//
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
    // A step; one scalar for all lanes.
    input  wire                      valid_i,
    input  wire  int_cmd_t           cmd_i,
    input  wire  [          63:0]    scalar_i,
    input  wire  [    2*Lanes-1:0]   live_i,
    input  wire  [   Lanes*64-1:0]   a_i,
    input  wire  [   Lanes*64-1:0]   b_i,
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
    TakeWord,
    TakeTop16,
    TakeTop8,
    TakeSign   // of the lower half
  } take_e;

  typedef struct packed {
    take_e high;
    take_e low;
  } takes_t;

  function automatic takes_t takes_of(int_cmd_t cmd, logic words, logic is_doubled);
    take_e low;
    if (!Wide || !cmd.wide || words) return '{TakeWord, TakeWord};
    low = cmd.from.size[1] ? TakeWord : cmd.from.size[0] ? TakeTop16 : TakeTop8;
    return '{(is_doubled && cmd.from.size != 2'd3) ? TakeSign : low, low};
  endfunction

  function automatic half_t take(take_e from, half_t x, logic sign, logic sign_low);
    unique case (from)
      TakeWord:  return x;
      TakeTop16: return {{16{sign}}, x[31:16]};
      TakeTop8:  return {{24{sign}}, x[31:24]};
      TakeSign:  return {32{sign_low}};
    endcase
  endfunction

  function automatic word_t operand(word_t x, takes_t from, logic is_signed);
    logic low;
    low = is_signed && x[31];
    return {take(from.high, x[63:32], is_signed && x[63], low), take(from.low, x[31:0], low, low)};
  endfunction

  // Of elements of 2^size bytes, whether byte i is not the first.
  function automatic logic inside_element(int unsigned i, logic [1:0] size);
    return (i % 2 != 0 && size >= 2'd1) || (i % 4 != 0 && size >= 2'd2) ||
           (i % 8 != 0 && size == 2'd3);
  endfunction

  // Sum, or difference with `minus`, of such elements. The link below a byte hands the carry on
  // inside an element; elsewhere it starts with `minus`, and the sum there is the carry out of the
  // byte below: whether a >= b, as signed numbers where the highest bits are turned over, which
  // does not change their sum. What depends on the command alone is worked out a stage ahead, once
  // for all lanes: that leaves one LUT in front of the chain.
  //
  // It is written as a difference, since the mapper may swap what is added: the operand that is not
  // inverted has a second way into the chain, which then takes no LUTs. A difference brings a 1
  // with it, which makes the carry out of the lowest link.
  typedef struct packed {
    logic       minus;
    logic [7:0] hand_on;  // of the link below each byte, the one operand ...
    logic [7:0] start;    // ... and the other
    logic [7:0] flip;     // the highest bits of a byte
  } links_t;

  function automatic links_t links_of(logic minus, logic is_signed, logic [1:0] size);
    links_t x;
    x.minus = minus;
    for (int unsigned i = 0; i < 8; i++) begin
      x.hand_on[i] = minus || inside_element(i, size);
      x.start[i]   = i != 0 && minus && !inside_element(i, size);
      x.flip[i]    = minus && is_signed && !inside_element(i + 1, size);
    end
    return x;
  endfunction

  function automatic chain_t chain(word_t a, word_t b, links_t links, logic one_more);
    chain_t x, y;
    x = '0;
    y = '0;
    for (int unsigned i = 0; i < 8; i++) begin
      x[9*i+:9] = {a[8*i+7] ^ links.flip[i], a[8*i+:7], links.hand_on[i]};
      y[9*i+:9] = {b[8*i+7] ^ links.minus ^ links.flip[i], b[8*i+:7] ^ {7{links.minus}},
                   links.start[i]};
    end
    y[0] = links.start[0] || one_more;
    return x - ~y;
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

  // A bit of a half word, or 0.
  typedef enum logic [1:0] {
    BitNone,
    Bit7,
    Bit15,
    Bit31
  } bit_e;

  function automatic bit_e msb_of(logic [1:0] size, logic on);
    if (!on) return BitNone;
    return (size == 2'd0) ? Bit7 : (size == 2'd1) ? Bit15 : Bit31;
  endfunction

  function automatic logic bit_of(half_t x, bit_e which);
    unique case (which)
      BitNone: return 1'b0;
      Bit7:    return x[7];
      Bit15:   return x[15];
      Bit31:   return x[31];
    endcase
  endfunction

  // Which bits a result has to have as its sign to fit `to`; nothing, if it is not to be clamped.
  typedef struct packed {
    bit_e sign_high;  // the accumulator's: of the upper half, or of 64-bit words
    bit_e sign_low;
    bit_e top_high;   // the highest ones of `to`
    bit_e top_low;
    logic high_16;    // bits 31..16, 15..8 and 7..0 of the upper half
    logic high_8;
    logic high_0;
    logic low_16;     // bits 31..16 and 15..8 of the lower half
    logic low_8;
  } fit_t;

  function automatic fit_t fit_of(logic is_signed, logic to_signed, logic [1:0] acc, logic [1:0] to,
                                  logic clamp, logic low_only);
    logic is_doubled, on, high, cut_16, cut_8, cut_32;
    is_doubled = acc == 2'd3;
    on         = clamp && (is_signed != to_signed || acc != to);
    high       = on && (is_doubled || !low_only);
    cut_32     = on && is_doubled && to != 2'd3;
    cut_16     = on && acc[1] && !to[1];
    cut_8      = on && acc != 2'd0 && to == 2'd0;
    return '{
        sign_high: msb_of(acc, high && is_signed),
        sign_low: msb_of(acc, on && is_signed && !is_doubled),
        // Of a 64-bit word that becomes less all bits are compared.
        top_high: msb_of(is_doubled ? 2'd3 : to, high && (to_signed || cut_32)),
        top_low: msb_of(to, on && to_signed && to != 2'd3),
        high_16: cut_32 || (cut_16 && high),
        high_8: cut_32 || (cut_8 && high),
        high_0: cut_32,
        low_16: cut_16,
        low_8: cut_8
    };
  endfunction

  // Ors of what is not as the sign, by a carry chain, which takes no LUTs beyond the terms.
  function automatic logic [8:0] unlike(half_t x, logic sign, bit_e top, logic bits_16,
                                        logic bits_8, logic bits_0);
    logic [8:0] y;
    for (int unsigned k = 0; k < 4; k++) begin
      y[k+4] = bits_16 && x[16+4*k+:4] != {4{sign}};
      y[k]   = (k < 2 ? bits_0 : bits_8) && x[4*k+:4] != {4{sign}};
    end
    y[8] = bit_of(x, top) != sign;
    return y;
  endfunction

  function automatic logic any_of(logic [9:0] x);
    logic [10:0] borrow;
    borrow = 11'd0 - {1'b0, x};
    return borrow[10];
  endfunction

  // A result's half word at its place.
  function automatic half_t put(half_t x, logic [1:0] size);
    unique case (size)
      2'd0:    return {x[7:0], x[7:0], x[15:0]};
      2'd1:    return {x[15:0], x[15:0]};
      default: return x;
    endcase
  endfunction

  // ---- valid and command ------------------------------------------------------------------------
  // One copy for all lanes; index = the stage whose registers they belong to. Up to the factors:
  typedef struct packed {
    kind_e      kind;
    links_t     links;
    logic       order;   // a maximum or minimum: choose by a >= b,
    logic       invert;  // ... and by the contrary; else what is chosen for all bytes
    logic [1:0] size;    // of the chain's elements: of words in wide steps
    logic       b;       // the factor is b
  } front_t;

  // Behind them:
  typedef struct packed {
    logic       single;      // one product in 64 bits
    logic       doubled;     // 64-bit words
    fit_t       fit;
    logic       to_signed;
    logic       low_signed;  // the lower half has a sign of its own
    logic [1:0] put;         // log2 of the bytes of a result that lies at the top of its half word
  } back_t;

  logic [Stages-1:1]  valid_q;
  front_t             front1_q;
  word_t              factor1_q, factor2_q;  // 0 where the factor is b
  back_t              back_q [1:Stages-1];
  logic [2*Lanes-1:0] live_q [1:Stages];

  wire wide = Wide && cmd_i.wide;
  wire [1:0] acc = (cmd_i.from.size > cmd_i.to.size) ? cmd_i.from.size : cmd_i.to.size;
  wire doubled = acc == 2'd3;  // 64-bit words
  wire single = !wide || doubled;
  wire convert = wide && !cmd_i.to_acc;
  wire half_t scalar_high = doubled ? scalar_i[63:32] : scalar_i[31:0];

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      valid_q <= '0;
      valid_o <= 1'b0;
    end else begin
      valid_q <= {valid_q[Stages-2:1], valid_i};
      valid_o <= valid_q[Stages-1];
    end
  end

  // ---- stage registers --------------------------------------------------------------------------
  word_t a1_q  [Lanes];
  word_t b1_q  [Lanes];
  logic [Lanes-1:0] more1_q;   // one more
  word_t res2_q[Lanes];
  word_t b2_q  [Lanes];
  word_t res3_q[Lanes];
  word_t b3_q  [Lanes];
  word_t res4_q[Lanes];  // these two without products
  word_t res5_q[Lanes];
  word_t res6_q[Lanes];
  word_t res7_q[Lanes];  // 0 if it does not fit
  logic  over7_q [Lanes][2];  // the half word, or with [0] the word, does not fit
  logic  ones7_q [Lanes][2];  // ... it becomes the largest number, all ones but for a sign
  logic  top7_q  [Lanes][2];  // ... its highest bit becomes 1
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

  limbs_t limbs4_q[Lanes];
  word_t  rows5_q [Lanes];
  word_t  more5_q [Lanes];
  half_t  upper5_q[Lanes];

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
      automatic back_t back = back_q[7];
      automatic logic [Lanes*64-1:0] res;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        for (int unsigned h = 0; h < 2; h++) begin
          automatic half_t x = put(res7_q[i][32*h+:32], back.put);
          if (Wide) begin
            x[31] = x[31] || top7_q[i][h];
            if (ones7_q[i][h]) x[30:0] = '1;
            over8_q[2*i+h] <= over7_q[i][h];
          end
          res[i*64+h*32+:32] = x;
        end
      end
      res_o     <= res;
      live_q[8] <= live_q[7];
    end

    if (valid_q[6]) begin
      automatic back_t back = back_q[6];
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic word_t x = res6_q[i];
        if (!Wide) begin
          res7_q[i] = x;
        end else begin
          automatic fit_t fit = back.fit;
          automatic logic neg1 = bit_of(x[63:32], fit.sign_high);
          automatic logic neg0 = back.doubled ? neg1 : bit_of(x[31:0], fit.sign_low);
          automatic logic over1 = any_of({1'b0, unlike(x[63:32], neg1, fit.top_high, fit.high_16,
                                                       fit.high_8, fit.high_0)});
          automatic logic over0 = any_of({back.doubled && over1,
                                          unlike(x[31:0], neg0, fit.top_low, fit.low_16,
                                                 fit.low_8, 1'b0)});
          res7_q[i]  = {over1 ? half_t'(0) : x[63:32], over0 ? half_t'(0) : x[31:0]};
          over7_q[i] = '{over0, over1 && !back.doubled};
          ones7_q[i] = '{over0 && !neg0, over1 && !neg1};
          top7_q[i]  = '{over0 && neg0 == back.low_signed, over1 && neg1 == back.to_signed};
        end
      end
      back_q[7] <= back;
      live_q[7] <= live_q[6];
    end

    if (valid_q[5]) begin
      automatic back_t back = back_q[5];
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        if (Mul) begin
          // What is not wanted is zero. A link at bit 32 lets a carry through only in one product.
          automatic word_t x = rows5_q[i] | {upper5_q[i], 32'd0};
          automatic word_t y = more5_q[i];
          automatic logic [64:0] sum = {x[63:32], back.single, x[31:0]} +
                                       {y[63:32], 1'b0, y[31:0]};
          res6_q[i] = {sum[64:33], sum[31:0]};
        end else begin
          res6_q[i] = res5_q[i];
        end
      end
      back_q[6] <= back;
      live_q[6] <= live_q[5];
    end

    if (valid_q[4]) begin
      automatic back_t back = back_q[4];
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        if (Mul) begin
          automatic limbs_t x = limbs4_q[i];
          // The bit below keeps the mapper from joining two additions into a row of full adders.
          automatic logic [13:0] top = {x.ab03, 1'b0} + {x.ab20, 2'b00};
          automatic logic [15:0] inner = {x.up01, 1'b0} + {x.up10, 1'b0};
          automatic logic [29:0] mid = x.ab10[37:8] + x.ab02;
          rows5_q[i]  = {{x.ab11, x.ab00[42:17]} + {x.ab12, x.ab01}, x.ab00[16:0]};
          more5_q[i]  = {mid[29:17] + top[13:1], mid[16:0], x.ab10[7:0], 26'd0};
          upper5_q[i] = {x.up00[31:17] + inner[15:1], x.up00[16:0]};
          if (back.single) upper5_q[i] = '0;
          else {rows5_q[i][63:32], more5_q[i][63:32]} = '0;
        end else begin
          res5_q[i] = res4_q[i];
        end
      end
      back_q[5] <= back;
      live_q[5] <= live_q[4];
    end

    if (valid_q[3]) begin
      for (int unsigned i = 0; i < Lanes; i++) begin
        if (Mul) limbs4_q[i] = multiply(res3_q[i], b3_q[i]);
        else res4_q[i] = res3_q[i];
      end
      back_q[4] <= back_q[3];
      live_q[4] <= live_q[3];
    end

    if (valid_q[2]) begin
      for (int unsigned i = 0; i < Lanes; i++) begin
        res3_q[i] = res2_q[i];
        if (Mul) begin
          b3_q[i] = b2_q[i];
          for (int unsigned k = 0; k < 64; k++) if (factor2_q[k]) b3_q[i][k] = 1'b1;
        end
      end
      back_q[3] <= back_q[2];
      live_q[3] <= live_q[2];
    end

    if (valid_q[1]) begin
      automatic front_t front = front1_q;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        automatic chain_t sum = chain(a1_q[i], b1_q[i], front.links, more1_q[i]);
        automatic logic [7:0] a_ge, picks;
        automatic word_t pick, plain;
        for (int unsigned k = 0; k < 8; k++) a_ge[k] = sum[9*k+9];
        picks = (of_top(a_ge, front.size) & {8{front.order}}) ^ {8{front.invert}};
        for (int unsigned k = 0; k < 8; k++) begin
          pick[8*k+:8]  = {8{picks[k]}};
          plain[8*k+:8] = sum[9*k+1+:8];
        end
        res2_q[i] = choose(front.kind, pick, a1_q[i], b1_q[i], plain);
        if (Mul) begin
          b2_q[i] = b1_q[i];
          if (!front.b) b2_q[i] = '0;
        end
      end
      factor2_q <= factor1_q;
      back_q[2] <= back_q[1];
      live_q[2] <= live_q[1];
    end

    if (valid_i) begin
      automatic takes_t takes_a = takes_of(cmd_i, cmd_i.use_acc, doubled);
      automatic takes_t takes_b = takes_of(cmd_i, 1'b0, doubled);
      automatic logic order = cmd_i.op == IntMax || cmd_i.op == IntMin;
      automatic logic [1:0] size = wide ? {1'b1, doubled} : cmd_i.from.size;
      /* verilator unroll_disable */
      for (int unsigned i = 0; i < Lanes; i++) begin
        a1_q[i] = operand(a_i[i*64+:64], takes_a, cmd_i.from.is_signed);
        b1_q[i] = cmd_i.quotient ? '0 : operand(b_i[i*64+:64], takes_b, cmd_i.from.is_signed);
        more1_q[i] = cmd_i.quotient && b_i[i*32];
      end
      front1_q <= '{
          kind: kind_of(cmd_i.op),
          links: links_of(order, cmd_i.from.is_signed, size),
          order: order,
          invert: cmd_i.op == IntMax || cmd_i.op == IntOr,
          size: size,
          b: cmd_i.op == IntMul
      };
      factor1_q <= (cmd_i.op == IntMul) ? '0 : cmd_i.scalar ? {scalar_high, scalar_i[31:0]} :
                                                              {31'd0, !single, 32'd1};
      back_q[1] <= '{
          single: single,
          doubled: doubled,
          fit: fit_of(cmd_i.from.is_signed, cmd_i.to.is_signed, acc, cmd_i.to.size,
                      convert && cmd_i.saturate, cmd_i.quotient),
          to_signed: cmd_i.to.is_signed,
          low_signed: cmd_i.to.is_signed && cmd_i.to.size != 2'd3,
          put: convert ? cmd_i.to.size : 2'd2
      };
      live_q[1] <= live_i;
    end
  end

  always_ff @(posedge clk_i) overflow_o <= Wide && valid_o && (over8_q & live_q[Stages]) != '0;

  `WEFT_IMPLIES(ServedStep, valid_i, cmd_i.wide ? Wide && (Mul || cmd_i.op != IntMul)
                                                : cmd_i.from == cmd_i.to && cmd_i.op != IntMul);
  `WEFT_IMPLIES(ServedQuotient, valid_i,
                !cmd_i.quotient || (Wide && cmd_i.wide && cmd_i.use_acc && cmd_i.op == IntSum));
  `WEFT_IMPLIES(ServedScalar, valid_i, !cmd_i.scalar || (Mul && cmd_i.wide && cmd_i.op != IntMul));

endmodule

`default_nettype wire
