// SPDX-License-Identifier: Apache-2.0
//
// Which reductions there are: the one rule in hardware over the types, operation, flags and sources
// of a REDUCE, used by the reducer and by CPU-M, which both refuse the rest. The same rule for
// software is num::check() (sw/ref/num/reduce.h); tests/unit/me compares the two over all fields.
`default_nettype none
package weft_math_pkg;
  import weft_wire_pkg::*;

  typedef enum logic [1:0] {
    KindNone,
    KindInt,
    KindFloat,
    KindBlock   // MX
  } kind_e;

  // Of which types a reducer has exact sums: values of the parameter Exact.
  localparam int unsigned ExactNone = 0;
  localparam int unsigned ExactSmall = 1;  // fp16 and 8 bits
  localparam int unsigned ExactAll = 2;    // bf16 too

  // What a reducer may be built without.
  typedef struct packed {
    logic       products;  // PROD, AVG, PREMUL_SUM, but where they copy
    logic       blocks;    // MX types
    logic [1:0] exact;     // exact sums
  } math_parts_t;
  localparam math_parts_t MathAll = '{products: 1'b1, blocks: 1'b1, exact: 2'(ExactAll)};

  typedef struct packed {
    dtype_e      dtype;
    dtype_e      to;
    redop_e      redop;
    logic        propagate_nan;
    logic        saturate;
    logic        exact;
    logic [7:0]  nsrc;
    logic [7:0]  own;
    logic        divisor_ok;  // divisor_ok(scalar)
  } math_t;

  localparam int unsigned MaxSources = 64;

  // Whether a sum of integers can be divided by the scalar: 1 to MaxSources.
  function automatic logic divisor_ok(logic [63:0] scalar);
    return (scalar[63:7] == '0 && scalar[6] && scalar[5:0] == '0) ||
           (scalar[63:6] == '0 && scalar[5:0] != '0);
  endfunction

  function automatic kind_e kind_of(dtype_e t);
    unique case (t)
      DtUint8, DtUint16, DtUint32, DtUint64, DtInt8, DtInt16, DtInt32, DtInt64: return KindInt;
      DtFloat8E4m3, DtFloat8E5m2, DtFloat16, DtBfloat16, DtFloat32, DtFloat64:  return KindFloat;
      DtMxfp8E4m3, DtMxfp8E5m2, DtMxfp4E2m1:                                    return KindBlock;
      default:                                                                  return KindNone;
    endcase
  endfunction

  // The floats that blocks are made of or become.
  function automatic logic beside_block(dtype_e t);
    return t inside {DtFloat16, DtBfloat16, DtFloat32};
  endfunction

  function automatic logic type_ok(math_t m, math_parts_t parts);
    kind_e from, to;
    from = kind_of(m.dtype);
    to   = kind_of(m.to);
    if (!parts.blocks && (from == KindBlock || to == KindBlock)) return 1'b0;
    unique case (from)
      KindInt:   return to == KindInt;
      KindFloat: return to == KindFloat || (to == KindBlock && beside_block(m.dtype));
      KindBlock: return m.to == m.dtype || beside_block(m.to);
      default:   return 1'b0;
    endcase
  endfunction

  // Whether the result is the bits of the one source.
  function automatic logic copies(math_t m);
    return m.dtype == m.to && (m.redop == RedCopy ||
        (m.nsrc == 8'd1 && !(m.redop inside {RedAvg, RedPremulSum})));
  endfunction

  function automatic logic redop_ok(math_t m, math_parts_t parts);
    kind_e rules;
    rules = (kind_of(m.to) == KindBlock) ? KindBlock : kind_of(m.dtype);
    if (m.redop inside {RedSum, RedMax, RedMin, RedCopy}) return 1'b1;
    if (m.redop inside {RedProd, RedPremulSum, RedAvg} && !parts.products && !copies(m))
      return 1'b0;
    unique case (rules)
      KindInt:   return m.redop inside {RedProd, RedPremulSum, RedAvg, RedAnd, RedOr, RedXor};
      KindFloat: return m.redop inside {RedProd, RedPremulSum, RedAvg};
      default:   return 1'b0;
    endcase
  endfunction

  // Bits 1:0 of a type are the logarithm of its bytes.
  function automatic logic saturates(dtype_e to);
    return kind_of(to) == KindInt || (kind_of(to) == KindFloat && to[1:0] == 2'd0);
  endfunction

  function automatic logic sums_exactly(math_t m, logic [1:0] exact);
    if (m.redop != RedSum || m.to != m.dtype || kind_of(m.to) != KindFloat || m.to[1]) return 1'b0;
    return exact == 2'(ExactAll) || (exact == 2'(ExactSmall) && m.to != DtBfloat16);
  endfunction

  function automatic logic flags_ok(math_t m, math_parts_t parts);
    if (m.exact && !sums_exactly(m, parts.exact)) return 1'b0;
    if (m.saturate && !saturates(m.to)) return 1'b0;
    return !m.propagate_nan || m.redop inside {RedMax, RedMin};
  endfunction

  function automatic logic sources_ok(math_t m);
    return m.nsrc != '0 && m.nsrc <= 8'(MaxSources) && m.own < m.nsrc &&
           (m.redop != RedCopy || m.nsrc == 8'd1) &&
           (m.redop != RedAvg || kind_of(m.dtype) != KindInt || m.divisor_ok);
  endfunction

  // The first thing wrong, in this order, or ErrOk.
  function automatic err_e math_error(math_t m, math_parts_t parts);
    if (!type_ok(m, parts)) return ErrBadType;
    if (!redop_ok(m, parts)) return ErrBadRedop;
    if (!flags_ok(m, parts)) return ErrBadFlags;
    if (!sources_ok(m)) return ErrBadSources;
    return ErrOk;
  endfunction

  // What rtl/nmc serves, and so what CPU-M lets pass; both have to have the same Exact.
  function automatic math_parts_t served_with(int unsigned exact);
    return '{products: 1'b1, blocks: 1'b1, exact: 2'(exact)};
  endfunction

  // Of an entry without that error: every address and the length have to be multiples of the same,
  // a power of two of which this is the mask. Not so (answer 8'hff) if sources and result differ in
  // size or are blocks.
  function automatic logic [7:0] common_align(math_t m);
    if (kind_of(m.dtype) == KindBlock || kind_of(m.to) == KindBlock || m.dtype[1:0] != m.to[1:0])
      return 8'hff;
    return (8'd1 << m.to[1:0]) - 8'd1;
  endfunction
endpackage
`default_nettype wire
