// SPDX-License-Identifier: Apache-2.0
//
// Splits a job into passes: runs of steps of one operation, with what the read engines fetch for
// them.
//
// One or two sources are one pass over the whole request. More sources, and whatever else needs the
// accumulator, go by chunks of ChunkSteps steps, and each chunk by the index of the sources:
//
//   fold         s0 op s1,  acc op s2, ...  acc op s(K-1)
//   premul_sum   c x s0,  acc + c x s1,  acc + c x s2, ...                    (c: the scalar)
//   ... pairs    c x s0 + c x s1,  acc + c x s2, ...
//   ... in fp64  c x s0,  c x s1,  acc + kept,  c x s2,  acc + kept, ...
//
// What the last one of these makes is converted where it could not be rounded to the type, or
// becomes a block in the same step, by another array of lanes. In fp64, and for conversions behind
// premul_sum without pairs, there is one pass more: the accumulator alone. An average of floats is
// a premul_sum. A premul_sum of integers, which wrap, is a fold whose last step scales what comes
// out; behind an average of integers the accumulator is divided, a byte of it a pass, and one pass
// more takes the quotient from there.
//
// Where a chunk of full length would leave less than half of one, it is half as long: a short last
// chunk would wait for the lanes in every pass. A chunk of blocks counts as many bytes as they have
// with their scales. Where the last result straddles two beats, the last pass has one step more,
// which takes no window and only completes the second. A chunk starts with the beat that its first
// window starts in, which the chunk before may have read already: a source that is turned costs one
// beat and one filling step a chunk more. Jobs in by valid/ready; job_i has to hold from start_o to
// job_ready_o. A pass every 2 cycles; to the three takers in the same cycle, when all are ready.
// First pass 1 cycle behind job_valid_i, 3 with chunks, of which each takes 2 cycles more.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_pass
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire                  clk_i,
    input  wire                  rst_i,
    input  wire                  job_valid_i,
    output logic                 job_ready_o,
    input  wire nmc_job_t        job_i,
    // Passes; the reads of a source that a pass does not use are not given.
    output logic                 pass_valid_o,
    input  wire                  pass_ready_i,
    output nmc_pass_t            pass_o,
    output nmc_read_job_t        read_a_o,
    output nmc_read_job_t        read_b_o
);

  typedef enum logic [2:0] {
    PassOne,    // of one source: a copy, a conversion, a product with the scalar
    PassFirst,  // sources 0 and 1
    PassNext,   // accumulator and source k
    PassScale,  // scalar and source k, added to the accumulator but in fp64
    PassAdd,    // accumulator and the product kept by PassScale
    PassDivide, // a byte of the accumulator
    PassTail    // accumulator alone, or a quotient
  } kind_e;

  typedef enum logic {
    StAim,  // work out where the windows start
    StGive  // hand the pass out
  } state_e;

  state_e       state_q;
  logic         fresh_q;   // the job's first pass is still to come
  kind_e        kind_q;
  logic   [6:0] source_q;  // k
  logic         own_q;     // ... is `own`
  span_t        chunk_q;   // bytes of the windows before this chunk
  addr_t        offs_q;    // of source k behind at_next
  logic   [2:0] byte_q;    // of a division, from the highest one on

  // ---- what the job is made of ------------------------------------------------------------------
  wire nmc_recipe_t recipe = job_i.recipe;
  wire one = recipe.one;
  wire tail = recipe.tail;
  wire chunked = recipe.chunked;

  function automatic kind_e first_kind(logic is_one, logic premul);
    return is_one ? PassOne : premul ? PassScale : PassFirst;
  endfunction

  wire kind_e kind = fresh_q ? first_kind(one, recipe.premul) : kind_q;
  // k of the pass; at_next is the place of source 0 or, in a fold, of source 1.
  wire skips = !one && !recipe.premul;
  wire [6:0] source = fresh_q ? 7'(skips) : source_q;
  wire last_source = source == {1'b0, job_i.top};

  // ---- StAim ------------------------------------------------------------------------------------
  addr_t  at_a_q, at_b_q;    // first windows
  span_t  bytes_m1_q;        // of all windows of the pass, up to the end of the source, less one
  span_t  next_chunk_q;      // chunk_q of the next one
  logic   last_chunk_q;
  logic   ends_chunk_q;      // last pass of the chunk
  logic   folded_q;          // this pass, or an earlier one, ends the fold

  blocks_t blocks_m1_q;  // of the pass, less one
  blocks_t before_q;     // blocks before this chunk
  blocks_t next_before_q;
  offs_t place_q, next_place_q;  // where a chunk's result starts in its beat, but the first one's

  logic  left_ok_q, cut_q;  // left_m1_q is of this chunk, and so is what follows from it
  span_t left_m1_q;  // bytes from this chunk on, less one
  blocks_t left_blocks_m1_q;
  logic  head_q;  // it is the job's first chunk

  wire ready_to_aim = job_valid_i && (cut_q || !chunked);
  wire from_block = job_i.layout.from_block;
  wire to_block = job_i.layout.to_block;
  wire half_bytes = job_i.layout.mx == MxE2m1;  // elements of a block
  // Bytes of a chunk of blocks, of 17 or 33.
  localparam span_t Chunk17 = span_t'(ChunkSteps * 17);
  localparam span_t Chunk33 = span_t'(ChunkSteps * 33);
  wire span_t block_chunk = half_bytes ? Chunk17 : Chunk33;
  wire span_t full = from_block ? block_chunk : span_t'(ChunkSteps) << job_i.layout.window;
  wire span_t half = full >> 1;
  wire span_t both = !from_block ? full | half :
      half_bytes ? span_t'(ChunkSteps * 17 * 3 / 2) : span_t'(ChunkSteps * 33 * 3 / 2);
  logic  ends_q, halved;  // the chunk is the job's last, half as long as others
  wire last_chunk = !chunked || ends_q;
  wire span_t chunk_bytes = halved ? half : full;
  // Less one, without a carry chain: tables, and powers of two.
  wire span_t block_m1 = halved ? (half_bytes ? (Chunk17 >> 1) - 1'b1 : (Chunk33 >> 1) - 1'b1) :
                                  (half_bytes ? Chunk17 - 1'b1 : Chunk33 - 1'b1);
  wire span_t masks = ~(span_t'('1) << job_i.layout.window);
  wire span_t plain_m1 = halved ? {masks[SpanW-5:0], 4'hf} : {masks[SpanW-6:0], 5'h1f};
  wire span_t chunk_m1 = from_block ? block_m1 : plain_m1;
  // Chunks of blocks have so many bytes beyond whole beats: a scale a step. Others have none.
  wire offs_t place = head_q ? job_i.place : place_q;
  wire offs_t chunk_scales = !to_block ? '0 :
      halved ? offs_t'(ChunkSteps / 2) : offs_t'(ChunkSteps);
  wire takes_k = kind == PassNext || kind == PassFirst;  // source k is operand b
  wire own_first = job_i.own == 6'(skips);
  wire own_k = fresh_q ? own_first : own_q;
  wire addr_t base_k = own_k ? job_i.at0 : job_i.at_next + offs_q;
  wire own_0 = takes_k ? job_i.own == '0 : own_k;
  wire addr_t base_a = own_0 ? job_i.at0 : takes_k ? job_i.at1 : job_i.at_next + offs_q;
  wire folds = kind != PassTail && (kind != PassScale || !recipe.fp64);
  wire folded = kind inside {PassDivide, PassTail} || (folds && last_source);

  // ---- StGive: sizes ----------------------------------------------------------------------------
  wire offs_t lead = head_q ? job_i.lead : '0;
  wire offs_t step_mask = ~(offs_t'('1) << job_i.layout.window);  // bytes of a window - 1
  wire spills = job_i.spill && ends_chunk_q && last_chunk_q;
  wire single = !spills && (from_block ? blocks_m1_q == '0 :
                                         (bytes_m1_q & ~span_t'(step_mask)) == '0);
  wire offs_t last_byte = bytes_m1_q[OffsW-1:0] & step_mask;  // in the last window
  wire offs_t last_at = bytes_m1_q[OffsW-1:0] & ~step_mask;   // where that starts, modulo a beat

  // Whether the first byte of the source lies a beat behind the start of the first window.
  function automatic logic behind(offs_t at, offs_t skip);
    logic [OffsW:0] sum;
    sum = {1'b0, at} + {1'b0, skip};
    return sum[OffsW];
  endfunction

  // a + b is 0 modulo a beat; without adding.
  function automatic logic sums_to_zero(offs_t a, offs_t b);
    return (a ^ b) == ((a | b) << 1);
  endfunction

  // Of blocks whether the last one does so: if it ends in the beat's first bytes.
  function automatic logic last_block_takes(offs_t at);
    offs_t last;
    last = at + bytes_m1_q[OffsW-1:0];
    // Below 17, or 33; without a carry chain, there is one before it.
    return half_bytes ? last[OffsW-1:4] == '0 || last == offs_t'(16) :
                        last[OffsW-1:5] == '0 || last == offs_t'(32);
  endfunction

  function automatic nmc_turn_t turn_of(logic on, offs_t at);
    logic last;
    // The last window starts a beat, or ends behind the end of the one that it starts in.
    last = on && (from_block ? last_block_takes(at) : sums_to_zero(at, last_at) ||
                  (behind(at, bytes_m1_q[OffsW-1:0]) && !behind(at, last_at)));
    return '{
        on: on,
        fill: on && at != '0 && !behind(at, lead),
        first: single ? last : on && (from_block ? block_takes(at, job_i.layout.mx) :
                                                   window_takes(at, step_mask)),
        last: last && !spills,
        at: at
    };
  endfunction

  function automatic nmc_read_job_t read_of(addr_t at);
    span_t last;
    logic  skips_beat;
    last       = bytes_m1_q + span_t'(at[OffsW-1:0]);
    skips_beat = behind(at[OffsW-1:0], lead);
    return '{
        addr: at[63:OffsW] + beat_addr_t'(skips_beat),
        beats: last[SpanW-1:OffsW] + span_beats_t'(!skips_beat)
    };
  endfunction

  function automatic float_op_e float_op(kind_e what);
    if (what == PassScale || recipe.pairs) return FloatMul;
    if (what == PassOne) return recipe.premul ? FloatMul : FloatConvert;
    if (what == PassTail) return FloatConvert;
    unique case (recipe.fold)
      IntMul:  return FloatMul;
      IntMax:  return FloatMax;
      IntMin:  return FloatMin;
      default: return FloatSum;
    endcase
  endfunction

  // The accumulator has the layout of the sources, but that of the widest where products go in or
  // come.
  function automatic float_cmd_t float_cmd(kind_e what, logic emits, logic ends_fold);
    float_cmd_t x;
    float_fmt_e widest;
    logic scales, second;
    widest          = recipe.fp64 ? FmtFp64 : FmtFp32;
    scales          = ends_fold && to_block;
    second          = emits && recipe.second;
    x.op            = float_op(what);
    x.from          = recipe.from;
    if (what == PassAdd || (what == PassTail && recipe.premul)) x.from = widest;
    x.to            = recipe.to;
    if (!emits || second) x.to = (x.op == FloatMul || scales) ? widest : x.from;
    x.propagate_nan = recipe.propagate_nan;
    x.saturate      = recipe.saturate;
    // The accumulator of sums of products is the second array's operand.
    x.use_acc       = !recipe.pairs && what inside {PassNext, PassAdd, PassDivide, PassTail};
    x.scalar        = x.op == FloatMul && recipe.fold != IntMul;
    x.to_acc        = !emits || second;
    x.odd           = x.to_acc && ends_fold && !scales;
    if (recipe.pairs || (what == PassScale && !recipe.fp64))
      {x.to, x.to_acc, x.odd} = {FmtFp32, 1'b1, 1'b0};
    x.a_fmt         = x.use_acc ? FmtFp32 : x.from;
    x.floor         = float_floor(x.from, x.to);
    return x;
  endfunction

  // Of the arrays behind the first one: sums of products, or whatever becomes of a sum.
  function automatic float_cmd_t second_cmd(kind_e what, logic emits, logic ends_fold);
    float_cmd_t x;
    x               = '0;
    x.to            = recipe.to;
    x.saturate      = recipe.saturate || to_block;
    if (what == PassScale || recipe.pairs) begin
      x.op      = FloatSum;
      x.from    = FmtFp32;
      x.use_acc = recipe.pairs ? what == PassNext : source_q != '0;
      x.to_acc  = !emits;
      x.odd     = !emits && ends_fold;
      if (!emits) x.to = FmtFp32;
    end else begin
      x.op     = to_block ? FloatMul : FloatConvert;
      x.from   = to_block ? FmtFp32 : recipe.from;
      x.scalar = to_block;
    end
    x.floor = float_floor(recipe.from, recipe.to);
    return x;
  endfunction

  function automatic int_cmd_t int_cmd(kind_e what, logic emits);
    int_cmd_t x;
    x.op       = recipe.fold;
    if (what == PassOne) x.op = IntCopy;
    x.from     = recipe.int_from;
    x.to       = recipe.int_to;
    x.wide     = job_i.layout.shape != Native;
    x.saturate = recipe.saturate;
    x.use_acc  = what == PassNext || what == PassTail;
    x.scalar   = recipe.scale && emits;
    x.quotient = what == PassTail && recipe.divide;
    x.to_acc   = !emits;
    return x;
  endfunction

  wire [1:0] int_size = (recipe.int_from.size > recipe.int_to.size) ? recipe.int_from.size :
                                                                      recipe.int_to.size;
  wire last_byte_divided = byte_q == 3'((4'd1 << int_size) - 4'd1);

  function automatic div_cmd_t div_cmd();
    return '{size: int_size, is_signed: recipe.int_from.is_signed, first: byte_q == '0};
  endfunction

  // All steps of a job go the same way through the arrays, those to the accumulator a part of it.
  // Divisions alone take turns with others.
  function automatic lane_class_e class_of(kind_e what, float_op_e op);
    if (from_block)
      return !recipe.second ? LaneBlock : to_block ? LaneBlockOut : LaneBlockTo;
    if (what == PassDivide) return LaneDiv;
    if (recipe.copy || !recipe.fp) return LaneInt;
    if (recipe.exact) return LaneExact;
    if (recipe.pairs) return recipe.second ? LaneMulSumTo : LaneMulSum;
    if (recipe.second)
      return to_block ? LaneFloatOut : LaneSumTo;
    if (recipe.fp64) return (op == FloatMul) ? LaneDoubleMul : LaneDouble;
    if (what == PassScale) return LaneMulSum;
    return (op == FloatMul) ? LaneMul : LaneFloat;
  endfunction

  function automatic lane_cmd_t cmd_of(kind_e what, logic emits, logic ends_fold);
    lane_cmd_t x;
    x.flt      = float_cmd(what, emits, ends_fold);
    x.next     = second_cmd(what, emits, ends_fold);
    x.num      = int_cmd(what, emits);
    x.div      = div_cmd();
    x.which    = class_of(what, x.flt.op);
    x.use_acc  = x.flt.use_acc;
    x.use_kept = what == PassAdd || (what == PassDivide && !x.div.first) || x.num.quotient;
    x.to_kept  = (what == PassScale && recipe.fp64 && source_q != '0) || what == PassDivide;
    x.to_acc   = !emits && (!x.to_kept || what == PassDivide);
    return x;
  endfunction

  wire uses_a = kind_q == PassOne || kind_q == PassFirst || kind_q == PassScale;
  wire uses_b = kind_q == PassFirst || kind_q == PassNext;
  wire emits = folded_q && (kind_q == PassTail || !tail);

  wire steps_t steps_m1 = from_block ? steps_t'(blocks_m1_q) :
      steps_t'(bytes_m1_q >> job_i.layout.window);
  // One more, or two: in one carry chain.
  wire [$bits(steps_t):0] steps_sum = {steps_m1, 1'b1} + {steps_t'(spills), 1'b1};
  wire lane_cmd_t cmd = cmd_of(kind_q, emits, folded_q);

  assign pass_valid_o = state_q == StGive;
  assign read_a_o     = read_of(at_a_q);
  assign read_b_o     = read_of(at_b_q);
  assign pass_o = '{
      cmd: cmd,
      layout: job_i.layout,
      a: turn_of(uses_a, at_a_q[OffsW-1:0]),
      b: turn_of(uses_b, at_b_q[OffsW-1:0]),
      later: lane_later(cmd.which),
      late: class_is_late(cmd.which),
      acc_wait: emits ? '0 : lane_acc_wait(cmd.which, !folded_q),
      steps: steps_sum[$bits(steps_t):1],
      single: single,
      lo: lead,
      hi: from_block ? '1 : last_byte,
      place: place,
      spill: spills,
      ends: ends_chunk_q && last_chunk_q,
      scalar: job_i.scalar
  };

  // ---- the loop ---------------------------------------------------------------------------------
  kind_e next_kind;
  always_comb begin
    unique case (kind_q)
      PassScale: next_kind = (source_q == '0 || !recipe.fp64) ? PassScale : PassAdd;
      PassAdd:   next_kind = PassScale;
      default:   next_kind = PassNext;
    endcase
    if (folded_q) begin
      next_kind = PassTail;
      if (recipe.divide && (kind_q != PassDivide || !last_byte_divided)) next_kind = PassDivide;
    end
    if (ends_chunk_q) next_kind = first_kind(one, recipe.premul);
  end
  // In fp64 a product is added before the next source comes.
  wire moves_on = kind_q != PassDivide && (kind_q != PassScale || source_q == '0 || !recipe.fp64);
  wire give = pass_valid_o && pass_ready_i;

  assign job_ready_o = give && ends_chunk_q && last_chunk_q;

  always_ff @(posedge clk_i) begin
    left_m1_q        <= job_i.span_m1 - chunk_q;
    left_blocks_m1_q <= job_i.blocks_m1 - before_q;
    ends_q           <= left_m1_q < full;
    halved           <= left_m1_q < both;
    if (state_q == StAim && ready_to_aim) begin
      kind_q       <= kind;
      source_q     <= source;
      own_q        <= own_k;
      at_a_q       <= base_a + addr_t'(chunk_q);
      at_b_q       <= base_k + addr_t'(chunk_q);
      bytes_m1_q   <= !chunked ? job_i.span_m1 : last_chunk ? left_m1_q : chunk_m1;
      blocks_m1_q  <= !chunked ? job_i.blocks_m1 : last_chunk ? left_blocks_m1_q :
                      halved ? blocks_t'(ChunkSteps / 2 - 1) : blocks_t'(ChunkSteps - 1);
      next_chunk_q <= last_chunk ? '0 : chunk_q + chunk_bytes;
      next_place_q <= place + chunk_scales;
      next_before_q <= last_chunk ? '0 :
                       before_q + (halved ? blocks_t'(ChunkSteps / 2) : blocks_t'(ChunkSteps));
      last_chunk_q <= last_chunk;
      folded_q     <= folded;
      ends_chunk_q <= folded && (kind == PassTail || !tail);
    end
    if (give) begin
      kind_q <= next_kind;
      byte_q <= (kind_q == PassDivide) ? byte_q + 1'b1 : '0;
      if (ends_chunk_q) begin
        source_q <= 7'(skips);
        own_q    <= own_first;
        offs_q   <= '0;
      end else if (moves_on) begin
        source_q <= source_q + 1'b1;
        own_q    <= source_q + 1'b1 == {1'b0, job_i.own};
        offs_q   <= offs_q + addr_t'(job_i.stride);
      end
      if (ends_chunk_q) begin
        chunk_q <= next_chunk_q;
        before_q <= next_before_q;
        place_q <= next_place_q;
        head_q  <= last_chunk_q;
      end
    end

    if (rst_i) begin
      state_q <= StAim;
      fresh_q <= 1'b1;
      left_ok_q <= 1'b0;
      cut_q     <= 1'b0;
      chunk_q <= '0;
      before_q <= '0;
      head_q  <= 1'b1;
      offs_q  <= '0;
    end else begin
      left_ok_q <= job_valid_i && !(give && ends_chunk_q);
      cut_q     <= left_ok_q && job_valid_i && !(give && ends_chunk_q);
      if (state_q == StAim && ready_to_aim) begin
        state_q <= StGive;
        fresh_q <= 1'b0;
      end
      if (give) state_q <= StAim;
      if (job_ready_o) fresh_q <= 1'b1;
    end
  end

  `WEFT_HOLD(PassHolds, pass_valid_o, pass_ready_i, pass_o);
  `WEFT_IMPLIES(SourceInRange, pass_valid_o,
                source_q <= {1'b0, job_i.top} || kind_q inside {PassDivide, PassTail});

endmodule

`default_nettype wire
