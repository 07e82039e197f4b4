// SPDX-License-Identifier: Apache-2.0
//
// Types inside the reducer: what its decoder hands to the read engines, the sequencer, the write
// engine and the completion tracker. A beat is NmcW bits (128 bytes), aligned. See docs/nmc.md.
`default_nettype none
package weft_nmc_pkg;
  import weft_wire_pkg::*;
  import weft_pkg::*;

  localparam int unsigned NmcBytes = NmcW / 8;
  localparam int unsigned OffsW = $clog2(NmcBytes);  // byte within a beat
  localparam int unsigned BeatAddrW = 64 - OffsW;  // address of a beat
  localparam int unsigned PageW = 12 - OffsW;  // beat within a 4 KB page
  localparam int unsigned PageBeats = 1 << PageW;
  localparam int unsigned LenW = 33 - OffsW;  // beats touched by a request of up to 2^32-1 bytes
  localparam int unsigned BurstsW = 21;  // 4 KB pages touched by such a request
  localparam int unsigned NmcJobs = 32;  // requests between decoder and completion
  localparam int unsigned JobW = $clog2(NmcJobs);

  typedef logic [BeatAddrW-1:0] beat_addr_t;
  typedef logic [OffsW-1:0] offs_t;
  typedef logic [LenW-1:0] beats_t;

  // ---- floating-point lanes (weft_nmc_float, weft_nmc_double) -----------------------------------
  typedef enum logic [2:0] {
    FmtFp32 = 3'd0,
    FmtBf16 = 3'd1,
    FmtFp16 = 3'd2,
    FmtE5m2 = 3'd3,
    FmtE4m3 = 3'd4,
    FmtE2m1 = 3'd5,  // of blocks: only the result of a product, with saturate
    FmtFp64 = 3'd6   // only in weft_nmc_double
  } float_fmt_e;

  typedef enum logic [2:0] {
    FloatSum     = 3'd0,
    FloatMax     = 3'd1,
    FloatMin     = 3'd2,
    FloatMul     = 3'd3,
    FloatConvert = 3'd4   // operand a alone
  } float_op_e;

  // Where the normal numbers of a conversion's result begin: the exponent field in the operand's
  // layout, if its exponents reach further.
  typedef enum logic [1:0] {
    Floor0   = 2'd0,  // they do not
    Floor9   = 2'd1,
    Floor113 = 2'd2,
    Floor121 = 2'd3
  } float_floor_e;

  // One step; weft_nmc_float says which combinations there are. Where it says 24 bits and fp32, it
  // is 53 and fp64 in weft_nmc_double.
  typedef struct packed {
    float_floor_e floor;        // of `from` and `to`; not in fp64
    float_fmt_e a_fmt;          // how a lies in its word: `from`, of accumulators fp32; not in fp64
    float_op_e  op;
    float_fmt_e from;           // of the sources, and the layout of the accumulator as operand
    float_fmt_e to;             // of the result; with to_acc the layout of the accumulator
    logic       propagate_nan;  // max, min: a NaN beats a number
    logic       saturate;       // to fp8: what is beyond the largest number becomes it
    logic       use_acc;        // operand a is the accumulator
    logic       scalar;         // product: by an fp32, the scalar; in fp64 that is operand b
    logic       to_acc;         // the result goes to the accumulator: rounded to 24 bits
    logic       odd;            // with to_acc: rounded to odd, for a conversion behind it
  } float_cmd_t;

  typedef struct packed {
    logic invalid;
    logic overflow;
    logic inexact;
  } float_flags_t;

  // Cycles from operands to result: products, and everything else.
  localparam int unsigned FloatLatency = 8;
  localparam int unsigned FloatMulLatency = 13;
  localparam int unsigned DoubleLatency = 10;
  localparam int unsigned DoubleMulLatency = 16;

  // Exponent fields: 8 bits, bias 127; 5 bits, bias 15; e4m3: 4 bits, bias 7; e2m1: 2 bits, bias 1.
  function automatic logic float_exp5(float_fmt_e fmt);
    return fmt == FmtFp16 || fmt == FmtE5m2;
  endfunction
  function automatic logic float_exp8(float_fmt_e fmt);
    return fmt == FmtFp32 || fmt == FmtBf16;
  endfunction
  function automatic logic [7:0] float_bias(float_fmt_e fmt);
    return fmt == FmtE2m1 ? 8'd1 : fmt == FmtE4m3 ? 8'd7 : float_exp5(fmt) ? 8'd15 : 8'd127;
  endfunction

  // Whether the last step of a sum, maximum or minimum of `from` cannot round to `to`, whose
  // exponents reach less far: it is rounded to odd, and a conversion follows.
  function automatic logic float_needs_convert(float_fmt_e from, float_fmt_e to);
    if (to == FmtFp64) return 1'b0;
    return from == FmtFp64 || (float_exp8(from) && !float_exp8(to)) ||
           (float_exp5(from) && to == FmtE4m3);
  endfunction

  function automatic float_floor_e float_floor(float_fmt_e from, float_fmt_e to);
    if (!float_needs_convert(from, to)) return Floor0;
    return float_exp5(from) ? Floor9 : to == FmtE4m3 ? Floor121 : Floor113;
  endfunction

  // ---- integer lanes (weft_nmc_int) -------------------------------------------------------------
  localparam int unsigned IntLatency = 8;
  localparam int unsigned IntDivLatency = 9;  // weft_nmc_div

  typedef enum logic [2:0] {
    IntSum  = 3'd0,
    IntMax  = 3'd1,
    IntMin  = 3'd2,
    IntAnd  = 3'd3,
    IntOr   = 3'd4,
    IntXor  = 3'd5,
    IntCopy = 3'd6,  // of operand a
    IntMul  = 3'd7
  } int_op_e;

  // The low bits of an integer dtype's code.
  typedef struct packed {
    logic       is_signed;
    logic [1:0] size;       // log2 of the bytes
  } int_type_t;

  // One step; weft_nmc_int says which combinations there are.
  typedef struct packed {
    int_op_e   op;
    int_type_t from;      // of the sources
    int_type_t to;        // of the result
    logic      wide;      // an element in each 32- or 64-bit word; else whole beats, to = from
    logic      saturate;  // clamp what `to` does not have
    logic      use_acc;   // operand a is the accumulator
    logic      scalar;    // what comes out is multiplied by the scalar (not with IntMul)
    logic      quotient;  // with use_acc and IntSum: it, or one more by bit 0 of its word of b
    logic      to_acc;    // the result goes to the accumulator: not converted
  } int_cmd_t;

  // ---- blocks of OCP MX -------------------------------------------------------------------------
  // 32 elements behind the byte of their scale, e8m0.
  localparam int unsigned MxElements = 32;
  localparam int unsigned MxMaxBytes = 1 + MxElements;
  typedef logic [8*MxMaxBytes-1:0] mx_block_t;  // byte i is byte i in memory

  typedef enum logic [1:0] {  // bits 3:2 of their dtypes
    MxE4m3 = 2'd0,
    MxE5m2 = 2'd1,
    MxE2m1 = 2'd2
  } mx_fmt_e;

  localparam int unsigned MxInLatency = 3;    // of weft_nmc_mx_in
  localparam int unsigned MxScaleLatency = 4;  // of weft_nmc_mx_scale
  localparam int unsigned MxPackLatency = 2;  // of weft_nmc_mx_pack, for blocks

  // What the numbers of a block are divided by, and what else they tell.
  typedef struct packed {
    logic       infinite;  // there is an infinity
    logic       none;      // MXFP4 that must be all NaN
    logic [7:0] scale;
  } mx_scale_t;

  function automatic logic [7:0] mx_bytes(mx_fmt_e fmt);
    return (fmt == MxE2m1) ? 8'd17 : 8'd33;
  endfunction

  // ---- exact sums (weft_nmc_exact) --------------------------------------------------------------
  // Cycles from operands to result, and to a step that may use what was accumulated.
  localparam int unsigned ExactLatency = 10;
  localparam int unsigned ExactAgain = 4;

  // ---- steps ------------------------------------------------------------------------------------
  // A step takes one window of each operand through the lanes. A native step works on a whole beat
  // with every lane; a wide one on 32, 16 or 8 elements that change their size on the way, or that
  // only the widest lanes can serve.
  localparam int unsigned ChunkSteps = 32;  // of a source, before the next source's turn
  localparam int unsigned ChunkW = $clog2(ChunkSteps);

  typedef enum logic [1:0] {
    Native    = 2'd0,
    Wide32    = 2'd1,  // an element in each 32-bit word
    Wide16    = 2'd2,  // an element in each 64-bit word
    Wide8     = 2'd3   // an element in each of the lower eight 64-bit words
  } shape_e;

  typedef struct packed {
    shape_e     shape;
    logic       parts;   // native: of each word the half and byte lanes have a part
    logic [1:0] from;    // log2 of the bytes of an element of the sources ...
    logic [1:0] to;      // ... and of the result
    logic [2:0] window;  // log2 of the bytes that a step takes of a source ...
    logic [2:0] result;  // ... and makes of the result
    // Blocks, one a step: as numbers they are fp32, and `from` or `to` says so. Windows of the
    // result lie at any byte if either side is blocks.
    logic       from_block;
    logic       to_block;
    mx_fmt_e    mx;
  } nmc_layout_t;

  // Where a window's elements go before the lanes take it: native ones, and those as wide as their
  // lanes, stay where they are. Element i of the others goes to the top of word i of 32 bits
  // (Wide32), or of the lower half of word i of 64 bits (Wide16, Wide8). What is beside it there is
  // undefined. First to words of 32 bits:
  function automatic logic [NmcW-1:0] spread_32(logic [NmcW-1:0] x, logic two);
    logic [NmcW-1:0] y;
    y = x;
    for (int unsigned i = 0; i < NmcW / 32; i++) begin
      y[32*i+24+:8] = two ? x[16*i+8+:8] : x[8*i+:8];
      y[32*i+16+:8] = x[16*i+:8];
    end
    return y;
  endfunction

  // ... then these to the lower halves of words of 64.
  function automatic logic [NmcW-1:0] spread_64(logic [NmcW-1:0] x);
    logic [NmcW-1:0] y;
    y = x;
    for (int unsigned i = 0; i < NmcW / 64; i++) y[64*i+:32] = x[32*i+:32];
    return y;
  endfunction

  function automatic logic [NmcW-1:0] spread(logic [NmcW-1:0] x, nmc_layout_t layout);
    logic to_32, to_64;
    logic [NmcW-1:0] y;
    to_32 = layout.shape != Native && !layout.from[1];
    to_64 = layout.shape inside {Wide16, Wide8} && layout.from != 2'd3;
    y = to_32 ? spread_32(x, layout.from[0]) : x;
    return to_64 ? spread_64(y) : y;
  endfunction

  // Whether the part of the result at `place` of its beat reaches the end of the beat ...
  function automatic logic fills(offs_t place, nmc_layout_t x);
    offs_t mask;
    mask = ~(offs_t'('1) << x.result);
    if (x.to_block) return 32'(place) >= NmcBytes - 32'(mx_bytes(x.mx));
    return (place | mask) == '1;
  endfunction

  // ... and whether the part behind it does; without adding.
  function automatic logic next_fills(offs_t place, nmc_layout_t x);
    offs_t mask, step;
    mask = ~(offs_t'('1) << x.result);
    step = offs_t'(8'd1 << x.result);
    if (x.to_block)
      return 32'(place) >= NmcBytes - 2 * 32'(mx_bytes(x.mx)) && !fills(place, x);
    return ((place | mask) ^ step) == '1;
  endfunction

  // A step of a division, of 64-bit words; see weft_nmc_div.
  localparam int unsigned DivisorW = 7;  // 1 to MaxSources
  typedef struct packed {
    logic [1:0] size;       // log2 of the bytes of what is divided
    logic       is_signed;
    logic       first;      // of the steps that divide it
  } div_cmd_t;

  // Which lanes take a step, with what latency. The last six are chains of two or three arrays of
  // float lanes, one behind the other.
  typedef enum logic [3:0] {
    LaneInt       = 4'd0,  // integers, and copies of bits
    LaneFloat     = 4'd1,
    LaneMul       = 4'd2,  // products of floats
    LaneDouble    = 4'd3,  // fp64 from or to
    LaneDoubleMul = 4'd4,
    LaneBlock     = 4'd5,  // blocks to floats
    LaneExact     = 4'd6,  // sums of floats without rounding
    LaneDiv       = 4'd7,  // integers in the accumulator, divided by the scalar a byte further
    LaneMulSum    = 4'd8,  // a product with the scalar, then a sum
    LaneSumTo     = 4'd9,  // whatever is no product, then a conversion
    LaneFloatOut  = 4'd10, // ... then a product by the scale of a block: floats to blocks
    LaneBlockTo   = 4'd11, // like LaneSumTo, of blocks
    LaneBlockOut  = 4'd12, // like LaneFloatOut, of blocks
    LaneMulSumTo  = 4'd13  // like LaneMulSum, then a conversion
  } lane_class_e;
  localparam int unsigned NumClasses = 1 << $bits(lane_class_e);

  // Their operands come MxInLatency cycles later than others.
  function automatic logic class_from_block(lane_class_e which);
    return which inside {LaneBlock, LaneBlockTo, LaneBlockOut};
  endfunction

  // Sums first, products and conversions behind them.
  function automatic logic class_sums_first(lane_class_e which);
    return which inside {LaneSumTo, LaneFloatOut, LaneBlockTo, LaneBlockOut};
  endfunction

  // Products with the scalar first, sums behind them.
  function automatic logic class_muls_first(lane_class_e which);
    return which inside {LaneMulSum, LaneMulSumTo};
  endfunction

  // Sums of its chunks stay in the half bank, and are no results: the class has a last array that
  // they do not go through.
  function automatic logic class_keeps_sums(lane_class_e which);
    return class_sums_first(which) || which == LaneMulSumTo;
  endfunction

  // Behind these another class must wait until they are out: they use lanes late.
  function automatic logic class_is_late(lane_class_e which);
    return which == LaneBlock || class_muls_first(which) || class_sums_first(which);
  endfunction

  // Cycles from the first array's operands to the second one's. Between a sum and its product lies
  // the search for the scale of a block, whether it is wanted or not.
  localparam int unsigned SumFirst = FloatLatency + MxScaleLatency;
  localparam int unsigned MulFirst = FloatMulLatency;

  // What the arrays of float lanes show, of chained steps.
  typedef struct packed {
    logic wide_goes_on;     // the wide lanes: no result, but products on their way
    logic half_ends;        // the half lanes: results
    // A cycle behind, as the flags are:
    logic sum_goes_on;      // sums to the wide lanes ...
    logic sum_to;           // ... that convert them, else multiply
    logic sum_stayed;       // sums that stay in the accumulator
    logic mul_goes_on;      // products to the half lanes
    logic mul_sum_goes_on;  // their sums to a conversion
    logic mul_sum_stayed;   // ... that stay in the accumulator
  } chain_marks_t;

  typedef logic [4:0] lane_wait_t;  // cycles
  localparam lane_wait_t LaneFirst = lane_wait_t'(1 + FloatLatency);  // the shortest latency
  // One cycle to choose the operands, then the lanes themselves; exact sums have no choice.
  function automatic lane_wait_t lane_latency(lane_class_e which);
    unique case (which)
      LaneFloat:     return lane_wait_t'(1 + FloatLatency);
      LaneMul:       return lane_wait_t'(1 + FloatMulLatency);
      LaneDouble:    return lane_wait_t'(1 + DoubleLatency);
      LaneDoubleMul: return lane_wait_t'(1 + DoubleMulLatency);
      LaneBlock:     return lane_wait_t'(1 + MxInLatency + FloatLatency);
      LaneExact:     return lane_wait_t'(ExactLatency);
      LaneDiv:       return lane_wait_t'(1 + IntDivLatency);
      LaneMulSum:    return lane_wait_t'(1 + MulFirst + FloatLatency);
      LaneMulSumTo:  return lane_wait_t'(1 + MulFirst + 2 * FloatLatency);
      LaneSumTo:     return lane_wait_t'(1 + SumFirst + FloatLatency);
      LaneFloatOut:  return lane_wait_t'(1 + SumFirst + FloatMulLatency);
      LaneBlockTo:   return lane_wait_t'(1 + MxInLatency + SumFirst + FloatLatency);
      LaneBlockOut:  return lane_wait_t'(1 + MxInLatency + SumFirst + FloatMulLatency);
      default:       return lane_wait_t'(1 + IntLatency);
    endcase
  endfunction

  // Tables of constants by class. How much later than the fastest lanes it shows a result; how late
  // its beats are, less what all beats take behind the lanes; and how long after a step another one
  // may read its result: two cycles behind the one in which the lanes show it, ExactAgain for exact
  // sums. What the first array of a chain leaves in the accumulator is there sooner; and sums of
  // products read it late, when they come `again`.
  function automatic lane_wait_t lane_later(lane_class_e which);
    lane_wait_t x;
    x = '0;
    for (int unsigned i = 0; i < NumClasses; i++)
      if (which == lane_class_e'(i)) x = lane_latency(lane_class_e'(i)) - LaneFirst;
    return x;
  endfunction

  function automatic lane_wait_t lane_beats_later(lane_class_e which);
    lane_wait_t x;
    x = lane_later(which);
    for (int unsigned i = 0; i < NumClasses; i++)
      if (which == lane_class_e'(i) && lane_class_e'(i) inside {LaneFloatOut, LaneBlockOut})
        x = lane_later(lane_class_e'(i)) + lane_wait_t'(MxPackLatency - 1);
    return x;
  endfunction

  function automatic lane_wait_t lane_acc_wait(lane_class_e which, logic again);
    lane_wait_t x;
    x = '0;
    // Classes that keep their sums: below. Latency and 2 may be more than there are bits for.
    for (int unsigned i = 0; i < NumClasses; i++)
      if (which == lane_class_e'(i) && !class_keeps_sums(lane_class_e'(i)))
        x = lane_latency(lane_class_e'(i)) + lane_wait_t'(2);
    if (which == LaneExact) x = lane_wait_t'(ExactAgain);
    if (class_keeps_sums(which) || (which == LaneMulSum && again))
      x = LaneFirst + lane_wait_t'(2);
    return x;
  endfunction

  // What the lanes do with the windows of a step. The accumulator holds a chunk of results, `kept`
  // a chunk of products in fp64. Operand a of a step is the window of a or the accumulator, operand
  // b the window of b or a kept product; behind products the accumulator is the sum's operand.
  typedef struct packed {
    lane_class_e which;
    int_cmd_t    num;       // of LaneInt
    div_cmd_t    div;       // of LaneDiv
    float_cmd_t  flt;       // of the others
    float_cmd_t  next;      // of chains: what the arrays behind the first one do
    logic        use_acc;
    logic        use_kept;
    logic        to_acc;    // where the result goes, of LaneDiv to both; with neither: out
    logic        to_kept;
  } lane_cmd_t;

  // What travels from a step to its result.
  typedef struct packed {
    nmc_layout_t       layout;
    logic              to_acc;
    logic              to_kept;
    logic [ChunkW-1:0] index;  // step within its chunk: place in the accumulator
    offs_t             place;  // of its result in the result beat
    logic              whole;  // it completes a result beat
    logic              spill;  // ... and makes nothing: a result before it reached into that beat
    logic              ends;   // the last step of its job
    logic              err;    // a source beat of the job so far came with an error
  } lane_tag_t;

  // ---- jobs -------------------------------------------------------------------------------------
  localparam int unsigned SpanW = 37;  // bytes of a source: up to 2^32 elements of 8
  typedef logic [SpanW-1:0] span_t;
  typedef logic [SpanW-OffsW-1:0] span_beats_t;
  typedef logic [29:0] steps_t;  // of a pass
  typedef logic [27:0] blocks_t;

  // A stretch of beats to be read.
  typedef struct packed {
    beat_addr_t  addr;
    span_beats_t beats;
  } nmc_read_job_t;

  // What a request asks of the lanes, decoded.
  typedef struct packed {
    logic        one;      // source: a copy, a conversion, a product with the scalar
    logic        chunked;  // goes by chunks, through the accumulator
    logic        copy;     // of bits
    logic        fp;       // floats, else integers
    logic        fp64;     // ... with fp64 for accumulator, else fp32
    logic        exact;    // ... or one that nothing is rounded in: a sum of them
    logic        premul;   // each source times the scalar first: a pass a source ...
    logic        pairs;    // ... or, instead, passes as of a fold
    logic        scale;    // integers: the sum times the scalar, in its last step
    logic        divide;   // ... or divided by it: passes of their own
    logic        second;   // the sum converted to, by another array of lanes ...
    logic        tail;     // ... or in a pass of its own, from the accumulator
    int_op_e     fold;     // also of floats
    float_fmt_e  from;
    float_fmt_e  to;
    int_type_t   int_from;
    int_type_t   int_to;
    logic        propagate_nan;
    logic        saturate;
  } nmc_recipe_t;

  // A request as weft_nmc_pass takes it. Windows of a source start `lead` bytes below it, so that
  // the windows of the result are aligned.
  typedef struct packed {
    nmc_recipe_t recipe;
    nmc_layout_t layout;
    logic [5:0]  top;     // index of the last source
    logic [5:0]  own;
    addr_t       at0;     // first window of source `own` ...
    addr_t       at1;     // ... of source 0, if another one is `own` ...
    addr_t       at_next; // ... and of the first source that is not read beside another one
    logic [31:0] stride;
    offs_t       lead;
    span_t       span_m1; // bytes from there to the last one of a source
    blocks_t     blocks_m1;  // if there are blocks
    offs_t       place;   // of the first step's result in its beat
    logic        spill;   // the last result straddles two beats
    logic [63:0] scalar;
  } nmc_job_t;

  // How the beats of a source become windows. A window at byte `at` of a beat takes the beat
  // before, unless `at` is 0, and the newest beat, unless it ends before that.
  typedef struct packed {
    logic  on;    // the source is read
    logic  fill;  // one beat is taken before the first step
    logic  first; // the first step takes a beat
    logic  last;  // the last step takes a beat
    offs_t at;    // where the first window starts in its beat
  } nmc_turn_t;

  // Whether the window at `at` takes the newest beat: the first window of a beat if windows do not
  // straddle beats, else the last one. `mask`: bytes of a window - 1.
  function automatic logic window_takes(offs_t at, offs_t mask);
    return (at & mask) == '0 ? (at & ~mask) == '0 : (at | mask) == '1;
  endfunction

  // The same of a block, and of the block behind the one at `at`.
  function automatic logic block_takes(offs_t at, mx_fmt_e fmt);
    return at == '0 || at > ((fmt == MxE2m1) ? 7'd111 : 7'd95);
  endfunction
  function automatic logic next_block_takes(offs_t at, mx_fmt_e fmt);
    return (fmt == MxE2m1) ? at >= 7'd95 && at <= 7'd111 : at >= 7'd63 && at <= 7'd95;
  endfunction

  // A run of steps: of one operation over a chunk, or over the whole request if it has no other.
  typedef struct packed {
    lane_cmd_t   cmd;
    nmc_layout_t layout;
    nmc_turn_t   a;
    nmc_turn_t   b;
    lane_wait_t  later;   // of its class: lane_later(), class_is_late()
    logic        late;
    lane_wait_t  acc_wait;  // how long after one of its steps the next pass may read the result
    steps_t      steps;
    logic        single;  // only one
    offs_t       lo;      // first byte of the first window that belongs to the source ...
    offs_t       hi;      // ... and last one of the last window
    offs_t       place;   // of the first step's result in its beat
    logic        spill;   // the last step takes no window: see lane_tag_t
    logic        ends;    // the last pass of its job
    logic [63:0] scalar;
  } nmc_pass_t;

  typedef struct packed {
    logic [JobW-1:0] idx;
    beat_addr_t      addr;
    offs_t           first;  // byte of the first beat where the destination starts
    offs_t           last;   // byte of the last beat where it ends, included
    beats_t          beats;
  } nmc_write_job_t;

  typedef struct packed {
    logic [JobW-1:0]    idx;
    tag_t               tag;
    err_e               status;  // what the decoder found
    logic [BurstsW-1:0] bursts;  // write responses to wait for
  } nmc_done_job_t;

  // What a job's results may tell: a source beat was bad; its steps raised flags.
  typedef struct packed {
    logic         err;
    float_flags_t flags;
  } nmc_note_t;

  // Event pulses, one cycle each; the counters are folded outside.
  typedef struct packed {
    logic busy;         // a request is inside
    logic active;       // ... and its sources are being reduced: from its first step to its last
    logic stall_read;   // the next step waits for read data
    logic stall_write;  // the next step waits for room on the write side
    logic beat;         // a result beat was handed to the write channel
    logic request;      // a request was taken
    logic done;         // a completion was handed over, with or without an error
    logic error;        // ... and it carried an error
    logic invalid;      // ... a step of it made a NaN out of numbers
    logic overflow;     // ... a step of it went beyond the largest number
    logic inexact;      // ... a step of it rounded
  } nmc_cnt_t;
endpackage
`default_nettype wire
