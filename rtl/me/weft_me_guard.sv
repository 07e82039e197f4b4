// SPDX-License-Identifier: Apache-2.0
//
// Says of every entry in the window whether the bytes it names lie in regions that grant the right.
// CPU-M has checked the same once, at REGISTER; but entries are read again at every launch, from
// memory that others may have written since. So each range is held against the card's own copy
// of the region table, after the entry was read and before it can issue. docs/me.md.
//
// A range is looked up where the last one of its kind (source of a WRITE; first source, other
// sources, result of a REDUCE) was found: one range a cycle. If it is not there, the four places
// are tried and then the table from its start, a region a cycle. Entries are judged in order, about
// 9 cycles after they are put if all is found at once. put_i at most every other cycle, and no more
// entries unjudged than Depth. Takes no notice of alignment, types or operation: who performs an
// entry refuses those.
`default_nettype none
`include "weft_assert.svh"

module weft_me_guard
  import weft_wire_pkg::*, weft_pkg::*;
#(
    parameter  int unsigned NumRegions = 64,
    parameter  int unsigned Depth      = 32,
    localparam int unsigned SlotW      = $clog2(Depth)
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    input  wire cfg_t            cfg_i,
    // An entry that touches memory; its length is not 0.
    input  wire                  put_i,
    input  wire      [SlotW-1:0] put_slot_i,
    input  wire                  put_reduce_i,  // else a WRITE
    input  wire nmc_req_t        put_entry_i,   // of a WRITE: src0 and len
    // Its verdict.
    output logic                 done_o,
    output logic     [SlotW-1:0] done_slot_o,
    output logic                 done_good_o
);

  localparam int unsigned RegionW = (NumRegions > 1) ? $clog2(NumRegions) : 1;
  localparam int unsigned TryW = $clog2(NumRegions + 4);

  typedef logic [RegionW-1:0] region_idx_t;
  typedef logic [SlotW-1:0] slot_t;
  typedef logic [37:0] bytes_t;  // 2^31 bytes of the result, sources 16 times as large, scales
  typedef logic [40:0] span_t;   // 254 strides of 32 bits and one source
  typedef logic [64:0] end_t;

  // ---- how many bytes: four steps behind put_i
  // Bits of an element as a power of two; unknown types are refused by the reducer.
  function automatic logic [2:0] log2_bits(dtype_e t);
    if (t == DtMxfp4E2m1) return 3'd2;
    return (t inside {DtMxfp8E4m3, DtMxfp8E5m2}) ? 3'd3 : 3'd3 + 3'(t[1:0]);
  endfunction
  // The scale of each block of 32 elements is a byte.
  function automatic bytes_t with_scales(dtype_e t, bytes_t bytes);
    if (t == DtMxfp4E2m1) return bytes + (bytes >> 4);
    if (t inside {DtMxfp8E4m3, DtMxfp8E5m2}) return bytes + (bytes >> 5);
    return bytes;
  endfunction

  typedef struct packed {
    slot_t slot;
    logic  reduce;
    addr_t src0;
    addr_t src1;
    addr_t dst;
  } where_t;
  typedef struct packed {
    logic   many;    // more than one source
    bytes_t source;
    bytes_t result;
    span_t  others;  // of the sources behind src1
  } size_t;

  // Elements of a source are so much larger than those of the result, as a power of two.
  typedef logic signed [3:0] growth_t;

  logic p0_valid_q, p1_valid_q, p2_valid_q, p3_valid_q;
  logic p0_many_q;
  dtype_e p0_from_q, p0_to_q;
  growth_t p0_growth_q;
  logic [31:0] p0_len_q, p0_stride_q;
  logic [7:0] p0_others_q;
  logic p1_many_q, p2_many_q;
  dtype_e p1_from_q, p1_to_q;
  bytes_t p1_source_q, p1_result_q, p2_source_q, p2_result_q;
  logic [39:0] p1_stride_q, p2_stride_q;
  size_t p3_q;

  always_ff @(posedge clk_i) begin
    p0_many_q <= put_entry_i.nsrc > 8'd1;
    p0_from_q <= put_reduce_i ? put_entry_i.dtype : DtUint8;
    p0_to_q <= put_reduce_i ? put_entry_i.to : DtUint8;
    p0_growth_q <= !put_reduce_i ? '0 : growth_t'({1'b0, log2_bits(put_entry_i.dtype)}) -
                                        growth_t'({1'b0, log2_bits(put_entry_i.to)});
    p0_len_q <= put_entry_i.len;
    p0_stride_q <= put_entry_i.stride;
    p0_others_q <= put_entry_i.nsrc - 8'd1;

    p1_many_q <= p0_many_q;
    p1_from_q <= p0_from_q;
    p1_to_q <= p0_to_q;
    p1_source_q <= p0_growth_q[3] ? bytes_t'(p0_len_q) >> 3'(-p0_growth_q) :
                                    bytes_t'(p0_len_q) << p0_growth_q[2:0];
    p1_result_q <= bytes_t'(p0_len_q);
    p1_stride_q <= 40'(p0_stride_q) * 40'(p0_others_q);

    p2_many_q <= p1_many_q;
    p2_source_q <= with_scales(p1_from_q, p1_source_q);
    p2_result_q <= with_scales(p1_to_q, p1_result_q);
    p2_stride_q <= p1_stride_q;

    p3_q <= '{
        many: p2_many_q,
        source: p2_source_q,
        result: p2_result_q,
        others: span_t'(p2_stride_q) + span_t'(p2_source_q)
    };

    p0_valid_q <= put_i && !rst_i;
    p1_valid_q <= p0_valid_q && !rst_i;
    p2_valid_q <= p1_valid_q && !rst_i;
    p3_valid_q <= p2_valid_q && !rst_i;
  end

  // ---- entries not yet judged: addresses at once, sizes when they are known
  logic where_ready, where_valid, size_ready, size_valid, head_pop;
  where_t where;
  size_t size;

  weft_fifo #(
      .data_t(where_t),
      .Depth (Depth)
  ) u_where (
      .clk_i,
      .rst_i,
      .s_valid_i(put_i),
      .s_ready_o(where_ready),
      .s_data_i ({put_slot_i, put_reduce_i, put_entry_i.src0, put_entry_i.src1, put_entry_i.dst}),
      .m_valid_o(where_valid),
      .m_ready_i(head_pop),
      .m_data_o (where),
      .count_o  ()
  );
  weft_fifo #(
      .data_t(size_t),
      .Depth (Depth)
  ) u_size (
      .clk_i,
      .rst_i,
      .s_valid_i(p3_valid_q),
      .s_ready_o(size_ready),
      .s_data_i (p3_q),
      .m_valid_o(size_valid),
      .m_ready_i(head_pop),
      .m_data_o (size),
      .count_o  ()
  );

  // ---- one range after the other
  typedef enum logic [1:0] {
    KWrite,   // source of a WRITE
    KSource,  // of a REDUCE: the source at src0
    KOthers,  // the others, from src1
    KResult
  } kind_e;
  typedef enum logic [1:0] {
    StRun,     // a range a cycle
    StSearch,  // the last one is looked for in the whole table
    StReload   // the region of the one behind it is read again
  } state_e;
  typedef struct packed {
    slot_t slot;
    kind_e kind;
    logic  last;  // of its entry
    addr_t from;
  } range_t;

  state_e state_q;
  kind_e kind_q, kind_d;  // of the head's next range
  logic fresh_q;  // the head's first range comes next
  kind_e kind;
  logic last;
  assign kind = !fresh_q ? kind_q : where.reduce ? KSource : KWrite;
  assign last = kind == KWrite || kind == KResult;
  assign kind_d = kind == KSource && size.many ? KOthers : KResult;

  logic s1_valid_q, s2_valid_q, s3_valid_q;
  range_t s1_q, s2_q, s3_q;
  span_t s1_bytes_q;
  end_t s2_end_q, s3_end_q;

  region_idx_t [3:0] found_q;  // where the last range of each kind was

  // What is read, in the next cycle compared, in the one after that judged.
  logic [TryW-1:0] try_q;
  logic tries_q;  // there is one more region to try
  logic read1_q, read2_q;  // of a search
  region_idx_t read_idx, idx1_q, idx2_q;
  logic hit_low_q, hit_high_q, hit_right_q;
  wire hit = hit_low_q && hit_high_q && hit_right_q;
  wire miss = state_q == StRun && s3_valid_q && !hit;
  wire found = state_q == StSearch && read2_q && hit;
  wire lost = state_q == StSearch && !found && !tries_q && !read1_q && !read2_q;
  wire move = state_q == StRun && !miss;
  wire take = move && size_valid && where_valid;
  assign head_pop = take && last;

  always_comb begin
    read_idx = found_q[s1_q.kind];
    if (state_q == StReload) read_idx = found_q[s2_q.kind];
    if (state_q == StSearch) begin
      read_idx = try_q < TryW'(4) ? found_q[try_q[1:0]] : region_idx_t'(try_q - TryW'(4));
    end
  end

  // ---- the card's copy of the table
  typedef struct packed {
    logic  local_write;
    logic  local_read;
    addr_t base;
    addr_t limit;
  } region_t;
  cfg_region_t cfg;
  region_t region;
  logic [NumRegions-1:0] valid_q;
  logic region_valid_q;
  logic here_q, here_valid_q;
  region_idx_t here_idx_q;
  assign cfg = cfg_i.data[$bits(cfg_region_t)-1:0];
  wire here = cfg_i.valid && cfg_i.kind == CfgRegion && 32'(cfg_i.index) < 32'(NumRegions);

  weft_sdpram #(
      .data_t(region_t),
      .Depth (NumRegions)
  ) u_regions (
      .clk_i,
      .we_i   (here),
      .waddr_i(cfg_i.index[RegionW-1:0]),
      .wdata_i({cfg.local_write, cfg.local_read, cfg.base, cfg.limit}),
      .re_i   (move ? s1_valid_q : 1'b1),
      .raddr_i(read_idx),
      .rdata_o(region)
  );

  wire searching = state_q == StSearch;
  range_t judged;
  end_t judged_end;
  assign judged     = searching ? s3_q : s2_q;
  assign judged_end = searching ? s3_end_q : s2_end_q;
  wire compare = searching ? read1_q : move && s2_valid_q;

  always_ff @(posedge clk_i) begin
    // A cycle behind the table, for the sake of levels; nobody looks up a region that just changes.
    here_valid_q <= cfg.valid;
    here_idx_q   <= cfg_i.index[RegionW-1:0];
    if (here_q) valid_q[here_idx_q] <= here_valid_q;
    region_valid_q <= valid_q[read_idx];
    idx1_q <= read_idx;
    idx2_q <= idx1_q;

    if (compare) begin
      hit_low_q   <= region.base <= judged.from;
      hit_high_q  <= judged_end <= {1'b0, region.limit};
      hit_right_q <= region_valid_q &&
          (judged.kind == KResult ? region.local_write : region.local_read);
    end

    if (take) begin
      s1_q <= '{
          slot: where.slot,
          kind: kind,
          last: last,
          from: kind == KOthers ? where.src1 : kind == KResult ? where.dst : where.src0
      };
      s1_bytes_q <= kind == KOthers ? size.others :
          kind == KResult ? span_t'(size.result) : span_t'(size.source);
      kind_q <= kind_d;
    end
    if (move) begin
      s2_q     <= s1_q;
      s2_end_q <= end_t'(s1_q.from) + end_t'(s1_bytes_q);
      if (s2_valid_q) begin
        s3_q     <= s2_q;
        s3_end_q <= s2_end_q;
      end
    end
    if (found) found_q[s3_q.kind] <= idx2_q;

    if (rst_i) begin
      state_q    <= StRun;
      fresh_q    <= 1'b1;
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      s3_valid_q <= 1'b0;
      read1_q    <= 1'b0;
      read2_q    <= 1'b0;
      try_q      <= '0;
      tries_q    <= 1'b0;
      found_q    <= '0;
      valid_q    <= '0;
      here_q     <= 1'b0;
    end else begin
      here_q <= here;
      if (take) fresh_q <= last;
      if (move) begin
        s1_valid_q <= take;
        s2_valid_q <= s1_valid_q;
        s3_valid_q <= s2_valid_q;
      end
      read1_q <= searching && tries_q && !found;
      read2_q <= read1_q && !found;
      unique case (state_q)
        StRun: begin
          try_q <= '0;
          if (miss) begin
            state_q <= StSearch;
            tries_q <= 1'b1;
          end
        end
        StSearch: begin
          try_q <= try_q + 1'b1;
          if (try_q == TryW'(NumRegions + 3)) tries_q <= 1'b0;
          if (found || lost) begin
            state_q    <= StReload;
            s3_valid_q <= 1'b0;
          end
        end
        StReload: begin
          state_q <= StRun;
          tries_q <= 1'b0;
        end
        default: state_q <= StRun;
      endcase
    end
  end

  // ---- verdict
  logic bad_q;  // a range of this entry was in no region
  wire judge = (state_q == StRun && s3_valid_q && hit) || found || lost;

  always_ff @(posedge clk_i) begin
    done_slot_o <= s3_q.slot;
    done_good_o <= !(bad_q || lost);
    if (rst_i) begin
      bad_q  <= 1'b0;
      done_o <= 1'b0;
    end else begin
      done_o <= judge && s3_q.last;
      if (judge) bad_q <= (bad_q || lost) && !s3_q.last;
    end
  end

  `WEFT_IMPLIES(PutsFit, put_i, where_ready);
  `WEFT_IMPLIES(SizesFit, p3_valid_q, size_ready);
  `WEFT_IMPLIES(PutsApart, put_i, !p0_valid_q);
  `WEFT_IMPLIES(GoodWasHit, done_o && done_good_o, $past(hit));

endmodule

`default_nettype wire
