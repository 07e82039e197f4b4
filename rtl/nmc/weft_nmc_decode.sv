// SPDX-License-Identifier: Apache-2.0
//
// First stage of the reducer: checks a request and works out once what the engines behind need.
//
// Valid/ready in and out, latency 4 cycles, 1 request a cycle. A request that weft_nmc_check
// refuses, or of which a source or the destination runs over the end of the address space, leaves
// with its error and no work; so does one of length 0, without an error. Does not know regions or
// rights: the engine has checked those before.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_decode
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_math_pkg::ExactNone;
  import weft_nmc_pkg::*;
#(
    parameter bit          Products = 1'b1,
    parameter bit          Blocks   = 1'b1,
    parameter int unsigned Exact    = ExactNone,
    parameter int unsigned Multipliers = 1
) (
    input  wire                   clk_i,
    input  wire                   rst_i,
    // Requests.
    input  wire                   req_valid_i,
    output logic                  req_ready_o,
    input  wire nmc_req_t         req_i,
    // Jobs, all three of one request in the same cycle; `work_o` tells whether there is anything to
    // do beyond `done_o`.
    output logic                  job_valid_o,
    input  wire                   job_ready_i,
    output logic                  work_o,
    output nmc_job_t              job_o,
    output nmc_write_job_t        write_o,
    output nmc_done_job_t         done_o,
    output logic                  busy_o   // a request is here
);

  // ---- stage 1: what kind of work it is ---------------------------------------------------------
  typedef struct packed {
    nmc_req_t    req;
    logic        copy;
    logic        same;        // no conversion, and an operation that every lane has
    logic        divide;      // an average of integers
    logic        fp64;        // from or to
    logic        from_block;  // MX; both 0 when bits are copied
    logic        to_block;
    logic        exact_bf16;
    blocks_t     blocks;      // of 32 elements; 0 if there is no MX type
    logic [2:0]  growth;      // log2 of the bytes of an element of a source less that of the result
    logic [31:0] len_m1;
    logic [5:0]  top_source;  // index of the highest source counted from src1
  } kind_t;

  // Of the types that there are.
  function automatic logic is_block(dtype_e t);
    return Blocks && t[4];
  endfunction

  // log2 of the bytes of an element, and one more.
  function automatic logic [2:0] size_of(dtype_e t);
    return (is_block(t) && t[3]) ? 3'd0 : 3'(t[1:0]) + 3'd1;
  endfunction

  function automatic blocks_t blocks_of(nmc_req_t req);
    if (!is_block(req.dtype) && !is_block(req.to)) return '0;
    if (req.to == DtMxfp4E2m1) return req.len[31:4];
    unique case (req.to[1:0])
      2'd0:    return blocks_t'(req.len[31:5]);
      2'd1:    return blocks_t'(req.len[31:6]);
      default: return blocks_t'(req.len[31:7]);
    endcase
  endfunction

  function automatic kind_t kind_of(nmc_req_t req);
    kind_t x;
    logic [5:0] last;
    last   = req.nsrc[5:0] - 6'd1;
    x.req  = req;
    x.copy = req.dtype == req.to && (req.redop == RedCopy || (req.nsrc == 8'd1 &&
             req.redop != RedAvg && req.redop != RedPremulSum));
    x.same       = req.dtype == req.to && !is_block(req.dtype) && !req.exact &&
                   !(req.redop inside {RedProd, RedAvg, RedPremulSum});
    x.divide     = req.redop == RedAvg && !req.dtype[3] && !is_block(req.dtype);
    x.fp64       = req.dtype == DtFloat64 || req.to == DtFloat64;
    x.from_block = is_block(req.dtype) && !x.copy;
    x.to_block   = is_block(req.to) && !x.copy;
    x.exact_bf16 = req.exact && req.dtype == DtBfloat16;
    x.blocks     = blocks_of(req);
    x.growth     = size_of(req.dtype) - size_of(req.to);
    x.len_m1     = req.len - 1'b1;
    x.top_source = (req.own[5:0] == last) ? req.nsrc[5:0] - 6'd2 : last;
    return x;
  endfunction

  // ---- stage 2: how it lies in windows, what is wrong with it -----------------------------------
  typedef struct packed {
    kind_t       kind;
    err_e        status;
    nmc_layout_t layout;
    offs_t       lead;      // bytes of a source that the first result window has before its start
    span_t       bytes_m1;  // bytes of a source - 1
    logic [32:0] result_m1; // bytes of the result - 1
    offs_t       unaligned; // bytes of a result that lies anywhere - 1
    logic [34:0] far_lo;    // stride times top_source, in two parts
    logic [34:0] far_hi;
  } form_t;

  function automatic shape_e shape_of(kind_t k);
    if (k.copy || (k.same && !k.fp64)) return Native;
    if (k.fp64 || k.exact_bf16) return Wide8;
    return (k.req.dtype[1:0] == 2'd3 || k.req.to[1:0] == 2'd3 || k.divide) ? Wide16 : Wide32;
  endfunction

  // log2 of the bytes of a step; as a table, which is one level.
  function automatic logic [2:0] step_bits(shape_e shape, logic [1:0] size);
    unique case ({shape, size})
      {Wide32, 2'd0}, {Wide16, 2'd1}, {Wide8, 2'd2}: return 3'd5;
      {Wide32, 2'd1}, {Wide16, 2'd2}, {Wide8, 2'd3}: return 3'd6;
      {Wide16, 2'd0}, {Wide8, 2'd1}:                 return 3'd4;
      {Wide8, 2'd0}:                                 return 3'd3;
      default:                                       return 3'(OffsW);
    endcase
  endfunction

  function automatic nmc_layout_t layout_of(kind_t k);
    nmc_layout_t x;
    logic native;
    x.shape  = shape_of(k);
    native   = x.shape == Native;
    x.parts  = native && !k.copy && k.req.dtype[3] && !k.req.to[1];
    x.from   = k.from_block ? 2'd2 : k.req.dtype[1:0];
    x.to     = k.to_block ? 2'd2 : k.req.to[1:0];
    x.window = step_bits(x.shape, x.from);
    x.result = step_bits(x.shape, x.to);
    x.from_block = k.from_block;
    x.to_block   = k.to_block;
    x.mx         = mx_fmt_e'(k.from_block ? k.req.dtype[3:2] : k.req.to[3:2]);
    return x;
  endfunction

  // Bytes of elements of a source that correspond to x + 1 of elements of the result, less one.
  function automatic span_t scaled_m1(logic [31:0] x, logic [2:0] growth);
    unique case (growth)
      3'd1:    return {{(SpanW - 33) {1'b0}}, x, 1'b1};
      3'd2:    return {{(SpanW - 34) {1'b0}}, x, 2'b11};
      3'd3:    return {{(SpanW - 35) {1'b0}}, x, 3'b111};
      -3'd1:   return {{(SpanW - 31) {1'b0}}, x[31:1]};
      -3'd2:   return {{(SpanW - 30) {1'b0}}, x[31:2]};
      -3'd3:   return {{(SpanW - 29) {1'b0}}, x[31:3]};
      default: return {{(SpanW - 32) {1'b0}}, x};
    endcase
  endfunction

  function automatic offs_t lead_of(offs_t dst, nmc_layout_t x);
    offs_t elements;
    elements = (dst & ~(offs_t'('1) << x.result)) >> x.to;
    return elements << x.from;
  endfunction

  function automatic logic [34:0] times(logic [31:0] x, logic [2:0] n);
    return (35'(x & {32{n[0]}}) + {2'd0, x & {32{n[1]}}, 1'b0}) + {1'd0, x & {32{n[2]}}, 2'd0};
  endfunction

  function automatic form_t form_of(kind_t k, err_e status);
    form_t x;
    logic blocks;
    blocks     = k.from_block || k.to_block;
    x.kind     = k;
    x.status   = status;
    x.layout   = layout_of(k);
    // Blocks are not cut: their first window starts with the source, wherever the result lies.
    x.lead     = blocks ? '0 : lead_of(k.req.dst[OffsW-1:0], x.layout);
    // A block has one byte more than its elements.
    x.bytes_m1 = scaled_m1(k.len_m1, k.growth) +
                 (is_block(k.req.dtype) ? span_t'(k.blocks) : '0);
    x.result_m1 = {1'b0, k.len_m1} + (is_block(k.req.to) ? 33'(k.blocks) : '0);
    x.unaligned = !blocks ? '0 : k.to_block ? offs_t'(mx_bytes(x.layout.mx) - 1'b1) :
                  ~(offs_t'('1) << x.layout.result);
    x.far_lo   = times(k.req.stride, k.top_source[2:0]);
    x.far_hi   = times(k.req.stride, k.top_source[5:3]);
    return x;
  endfunction

  // ---- stage 3: first windows, last bytes -------------------------------------------------------
  typedef struct packed {
    form_t       form;
    addr_t       at0;         // first windows at src0 and src1
    addr_t       at1;
    span_t       span_m1;
    logic [37:0] reach;       // how far the highest source at src1 lies behind the first one
    logic        over0;       // src0, dst run over the end
    logic        over;
    logic [64:0] last1;       // last byte of the source at src1
    logic [32:0] bytes;       // from the start of dst's first beat ...
    logic [32:0] page_bytes;  // ... and of its first 4 KB page
  } sums_t;

  function automatic logic over_end(addr_t first, logic [64:0] bytes_m1);
    logic [64:0] last;
    last = 65'(first) + bytes_m1;
    return last[64];
  endfunction

  // a + b + 1 in one carry chain.
  function automatic logic [32:0] plus_one(logic [32:0] a, logic [32:0] b);
    logic [33:0] sum;
    sum = {a, 1'b1} + {b, 1'b1};
    return sum[33:1];
  endfunction

  function automatic sums_t sums_of(form_t x);
    nmc_req_t r;
    r = x.kind.req;
    return '{
        form: x,
        at0: r.src0 - addr_t'(x.lead),
        at1: r.src1 - addr_t'(x.lead),
        span_m1: x.bytes_m1 + span_t'(x.lead),
        reach: 38'(x.far_lo) + {x.far_hi, 3'd0},
        over0: over_end(r.src0, 65'(x.bytes_m1)),
        over: over_end(r.dst, 65'(x.result_m1)),
        last1: 65'(r.src1) + 65'(x.bytes_m1),
        bytes: plus_one(x.result_m1, 33'(r.dst[OffsW-1:0])),
        page_bytes: plus_one(x.result_m1, 33'(r.dst[11:0]))
    };
  endfunction

  // ---- stage 4: judge, and hand out jobs --------------------------------------------------------
  // Rounded up; as bit slices, so that each is one carry chain.
  function automatic beats_t beats_of(logic [32:0] bytes);
    return beats_t'(bytes[32:OffsW]) + beats_t'(bytes[OffsW-1:0] != '0);
  endfunction

  function automatic logic [BurstsW-1:0] pages_of(logic [32:0] bytes);
    return bytes[32:12] + BurstsW'(bytes[11:0] != '0);
  endfunction

  function automatic int_op_e fold_of(redop_e op);
    unique case (op)
      RedMax:  return IntMax;
      RedMin:  return IntMin;
      RedProd: return IntMul;
      RedAnd:  return IntAnd;
      RedOr:   return IntOr;
      RedXor:  return IntXor;
      default: return IntSum;
    endcase
  endfunction

  function automatic float_fmt_e format_of(dtype_e t);
    unique case (t)
      DtBfloat16:   return FmtBf16;
      DtFloat16:    return FmtFp16;
      DtFloat8E5m2: return FmtE5m2;
      DtFloat8E4m3: return FmtE4m3;
      DtFloat64:    return FmtFp64;
      DtMxfp8E5m2:  return FmtE5m2;
      DtMxfp8E4m3:  return FmtE4m3;
      DtMxfp4E2m1:  return FmtE2m1;
      default:      return FmtFp32;
    endcase
  endfunction

  function automatic nmc_recipe_t recipe_of(kind_t k);
    nmc_recipe_t x;
    logic premul;
    logic converts;  // the last step of the fold cannot round to the result's type
    float_fmt_e acc;
    x.one           = k.req.nsrc == 8'd1;
    x.copy          = k.copy;
    x.fp            = k.req.dtype[3] || is_block(k.req.dtype);
    x.exact         = k.req.exact;
    x.fp64          = k.fp64;
    // Integers wrap, so their sum may as well be scaled once: in its last step. An average of
    // floats is a sum of what has been scaled before, since the sum itself may be too large.
    premul          = k.req.redop inside {RedPremulSum, RedAvg} && x.fp;
    x.pairs         = Multipliers == 2 && premul && !x.fp64 && !x.one;
    x.premul        = premul && !x.pairs;
    x.scale         = k.req.redop == RedPremulSum && !x.fp;
    x.divide        = k.divide;
    x.fold          = fold_of(k.req.redop);
    x.from          = is_block(k.req.dtype) ? FmtFp32 : format_of(k.req.dtype);
    x.to            = format_of(k.req.to);  // of its elements
    x.int_from      = int_type_t'(k.req.dtype[2:0]);
    x.int_to        = int_type_t'(k.req.to[2:0]);
    acc             = x.fp64 ? FmtFp64 : FmtFp32;
    converts        = x.fold != IntMul && float_needs_convert(premul ? acc : x.from, x.to);
    // Floats have another array behind the fold; fp64, and sums of products that go by one source,
    // go on from the accumulator.
    x.second        = x.fp && !x.fp64 &&
                      (k.to_block || (!x.one && !x.premul && converts));
    x.tail          = x.divide || (!x.one && x.fp && !x.second && converts);
    x.chunked       = x.divide || (!x.one && (k.req.nsrc != 8'd2 || x.tail || x.premul));
    x.propagate_nan = k.req.propagate_nan;
    x.saturate      = k.req.saturate;
    return x;
  endfunction

  kind_t           kind_q;
  form_t           form_q;
  sums_t           sums_q;
  logic            kind_valid_q, form_valid_q, sums_valid_q, valid_q;
  logic [JobW-1:0] idx_q;

  err_e check;
  weft_nmc_check #(
      .Products(Products),
      .Blocks  (Blocks),
      .Exact   (Exact)
  ) u_check (
      .req_i   (kind_q.req),
      .status_o(check)
  );

  wire job_take = !valid_q || job_ready_i;
  wire sums_take = !sums_valid_q || job_take;
  wire form_take = !form_valid_q || sums_take;
  assign req_ready_o = !kind_valid_q || form_take;
  assign job_valid_o = valid_q;
  assign busy_o      = kind_valid_q || form_valid_q || sums_valid_q || valid_q;

  wire form_t    form = sums_q.form;
  wire nmc_req_t req = form.kind.req;
  wire nmc_recipe_t recipe = recipe_of(form.kind);
  wire     many = req.nsrc != 8'd1;
  wire     empty = req.len == '0;
  wire [65:0] far_last = 66'(sums_q.last1) + 66'(sums_q.reach);
  wire     over = sums_q.over0 || sums_q.over || (many && far_last[65:64] != '0);
  wire     good = form.status == ErrOk && (empty || !over);
  wire     work = good && !empty;
  wire offs_t last_byte = sums_q.bytes[OffsW-1:0] - 1'b1;  // of the result, in its beat
  // Results of a step are aligned but for those of jobs with blocks.
  wire offs_t start_mask = (form.layout.from_block || form.layout.to_block) ? '0 :
      ~(offs_t'('1) << form.layout.result);
  // The first source that has no other one beside it in its pass is source 1, but with premul 0.
  wire     skips = !recipe.premul;

  always_ff @(posedge clk_i) begin
    if (req_valid_i && req_ready_o) kind_q <= kind_of(req_i);
    if (kind_valid_q && form_take) form_q <= form_of(kind_q, check);
    if (form_valid_q && sums_take) sums_q <= sums_of(form_q);

    if (sums_valid_q && job_take) begin
      work_o <= work;
      job_o <= '{
          recipe: recipe,
          layout: form.layout,
          top: req.nsrc[5:0] - 1'b1,
          own: req.own[5:0],
          at0: sums_q.at0,
          at1: sums_q.at1,
          at_next: sums_q.at1 + (skips ? addr_t'(req.stride) : '0),
          stride: req.stride,
          lead: form.lead,
          span_m1: sums_q.span_m1,
          blocks_m1: form.kind.blocks - 1'b1,
          place: req.dst[OffsW-1:0] & ~start_mask,
          spill: last_byte < form.unaligned,
          scalar: req.scalar
      };
      write_o <= '{
          idx: idx_q,
          addr: req.dst[63:OffsW],
          first: req.dst[OffsW-1:0],
          last: last_byte,
          beats: beats_of(sums_q.bytes)
      };
      done_o <= '{
          idx: idx_q,
          tag: req.tag,
          status: (form.status == ErrOk && !good) ? ErrBadLength : form.status,
          bursts: work ? pages_of(sums_q.page_bytes) : '0
      };
    end

    if (rst_i) begin
      kind_valid_q <= 1'b0;
      form_valid_q <= 1'b0;
      sums_valid_q <= 1'b0;
      valid_q      <= 1'b0;
      idx_q        <= '0;
    end else begin
      if (req_ready_o) kind_valid_q <= req_valid_i;
      if (form_take) form_valid_q <= kind_valid_q;
      if (sums_take) sums_valid_q <= form_valid_q;
      if (job_take) valid_q <= sums_valid_q;
      if (sums_valid_q && job_take) idx_q <= idx_q + 1'b1;
    end
  end

  `WEFT_HOLD(JobHolds, job_valid_o, job_ready_i, done_o);
  `WEFT_IMPLIES(WorkHasBursts, job_valid_o, work_o == (done_o.bursts != '0));

endmodule

`default_nettype wire
