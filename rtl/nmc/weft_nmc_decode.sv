// SPDX-License-Identifier: Apache-2.0
//
// First stage of the reducer: checks a request and works out once what the engines behind need.
//
// Valid/ready in and out, latency 2 cycles, 1 request a cycle. A request with an unknown type or
// operation, misaligned for its type, or running over the end of the address space leaves with its
// error and no work; so does one of length 0, without an error. Copies take any byte alignment.
// Does not know regions or rights: the engine has checked those before.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_decode
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire                   clk_i,
    input  wire                   rst_i,
    // Requests.
    input  wire                   req_valid_i,
    output logic                  req_ready_o,
    input  wire nmc_req_t         req_i,
    // Jobs, all five of one request in the same cycle; `work_o` tells whether there is anything to
    // do beyond `done_o`, `work_o && seq_o.two` whether the second source is read.
    output logic                  job_valid_o,
    input  wire                   job_ready_i,
    output logic                  work_o,
    output nmc_read_job_t         read_a_o,
    output nmc_read_job_t         read_b_o,
    output nmc_seq_job_t          seq_o,
    output nmc_write_job_t        write_o,
    output nmc_done_job_t         done_o,
    output logic                  busy_o   // a request is here
);

  // Stage 1 adds the length to addresses and offsets, stage 2 rounds the sums up to whole beats and
  // pages and judges.
  typedef struct packed {
    nmc_req_t    req;
    logic [64:0] stop0;   // first address behind src0, src1, dst; bit 64: past the address space
    logic [64:0] stop1;
    logic [64:0] stop;
    logic [32:0] bytes0;  // from the start of the first beat touched of src0, src1, dst ...
    logic [32:0] bytes1;
    logic [32:0] bytes;
    logic [32:0] page_bytes;  // ... and of the first 4 KB page of dst
  } sums_t;

  sums_t           sums_q;
  logic            sums_valid_q, valid_q;
  logic [JobW-1:0] idx_q;

  wire job_take = !valid_q || job_ready_i;
  assign job_valid_o = valid_q;
  assign busy_o      = sums_valid_q || valid_q;
  assign req_ready_o = !sums_valid_q || job_take;

  function automatic logic [32:0] bytes_from(logic [11:0] offs, logic [31:0] len);
    return 33'(len) + 33'(offs);
  endfunction

  function automatic sums_t sums_of(nmc_req_t req);
    return '{
        req: req,
        stop0: 65'(req.src0) + 65'(req.len),
        stop1: 65'(req.src1) + 65'(req.len),
        stop: 65'(req.dst) + 65'(req.len),
        bytes0: bytes_from(12'(req.src0[OffsW-1:0]), req.len),
        bytes1: bytes_from(12'(req.src1[OffsW-1:0]), req.len),
        bytes: bytes_from(12'(req.dst[OffsW-1:0]), req.len),
        page_bytes: bytes_from(req.dst[11:0], req.len)
    };
  endfunction

  // Rounded up; as bit slices, so that each is one carry chain.
  function automatic beats_t beats_of(logic [32:0] bytes);
    return beats_t'(bytes[32:OffsW]) + beats_t'(bytes[OffsW-1:0] != '0);
  endfunction

  function automatic logic [BurstsW-1:0] pages_of(logic [32:0] bytes);
    return bytes[32:12] + BurstsW'(bytes[11:0] != '0);
  endfunction

  function automatic nmc_align_t align_of(offs_t src, offs_t dst, logic [32:0] bytes);
    return '{rot: dst - src, ahead: src > dst, beats: beats_of(bytes)};
  endfunction

  function automatic lane_op_e lane_op(logic two, redop_e op);
    if (!two) return LaneCopy;
    unique case (op)
      RedMax:  return LaneMax;
      RedMin:  return LaneMin;
      default: return LaneSum;
    endcase
  endfunction

  // The end may be the end of the address space but not beyond. Meant for lengths above 0.
  function automatic logic wraps(logic [64:0] stop);
    return stop[64] && stop[63:0] != '0;
  endfunction

  wire nmc_req_t req = sums_q.req;
  wire           two = req.nsrc == 8'd2;
  // A copy has no second source and does not care about elements; with two sources every address
  // and the length must be a multiple of the element.
  wire           is_half = req.dtype == DtBfloat16;
  wire     [1:0] low_bits = req.src0[1:0] | req.src1[1:0] | req.dst[1:0] | req.len[1:0];
  wire offs_t    dst_offs = req.dst[OffsW-1:0];
  err_e          status;

  always_comb begin
    status = ErrOk;
    if (!(req.dtype inside {DtFloat32, DtBfloat16, DtInt32}) || req.to != req.dtype) status = ErrBadType;
    else if (!(req.redop inside {RedSum, RedMax, RedMin, RedCopy})) status = ErrBadRedop;
    else if (req.propagate_nan || req.saturate || req.exact) status = ErrBadFlags;
    else if (req.nsrc != 8'd1 && !two) status = ErrBadSources;
    else if (req.own != 8'd0 || (two && (req.redop == RedCopy || req.stride != '0))) status = ErrBadSources;
    else if (two && (low_bits[0] || (low_bits[1] && !is_half))) status = ErrBadAlign;
    else if (wraps(sums_q.stop0) || wraps(sums_q.stop)) status = ErrBadLength;
    else if (two && wraps(sums_q.stop1)) status = ErrBadLength;
  end

  wire work = status == ErrOk && req.len != '0;

  always_ff @(posedge clk_i) begin
    if (req_valid_i && req_ready_o) sums_q <= sums_of(req_i);

    if (sums_valid_q && job_take) begin
      work_o   <= work;
      read_a_o <= '{addr: req.src0[63:OffsW], beats: beats_of(sums_q.bytes0)};
      read_b_o <= '{addr: req.src1[63:OffsW], beats: beats_of(sums_q.bytes1)};
      seq_o <= '{
          cmd: '{
              op: lane_op(two, req.redop),
              fp: two && req.dtype != DtInt32,
              bf16: is_half
          },
          two: two,
          a: align_of(req.src0[OffsW-1:0], dst_offs, sums_q.bytes0),
          b: align_of(req.src1[OffsW-1:0], dst_offs, sums_q.bytes1),
          beats: beats_of(sums_q.bytes)
      };
      write_o <= '{
          idx: idx_q,
          addr: req.dst[63:OffsW],
          first: dst_offs,
          last: sums_q.bytes[OffsW-1:0] - 1'b1,
          beats: beats_of(sums_q.bytes)
      };
      done_o <= '{
          idx: idx_q,
          tag: req.tag,
          status: status,
          bursts: work ? pages_of(sums_q.page_bytes) : '0
      };
    end

    if (rst_i) begin
      sums_valid_q <= 1'b0;
      valid_q      <= 1'b0;
      idx_q        <= '0;
    end else begin
      if (req_ready_o) sums_valid_q <= req_valid_i;
      if (job_take) valid_q <= sums_valid_q;
      if (sums_valid_q && job_take) idx_q <= idx_q + 1'b1;
    end
  end

  `WEFT_HOLD(JobHolds, job_valid_o, job_ready_i, done_o);
  `WEFT_IMPLIES(WorkHasBursts, job_valid_o, work_o == (done_o.bursts != '0));

endmodule

`default_nettype wire
