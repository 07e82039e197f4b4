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

  // Cycles from operands to result: floats, their products, integers.
  localparam int unsigned FloatLatency = 8;
  localparam int unsigned FloatMulLatency = 13;
  localparam int unsigned IntLatency = 2;

  typedef logic [BeatAddrW-1:0] beat_addr_t;
  typedef logic [OffsW-1:0] offs_t;
  typedef logic [LenW-1:0] beats_t;

  typedef enum logic [1:0] {
    LaneSum  = 2'd0,
    LaneMax  = 2'd1,
    LaneMin  = 2'd2,
    LaneCopy = 2'd3
  } lane_op_e;

  // ---- floating-point lanes (weft_nmc_float) ----------------------------------------------------
  typedef enum logic [2:0] {
    FmtFp32 = 3'd0,
    FmtBf16 = 3'd1,
    FmtFp16 = 3'd2,
    FmtE5m2 = 3'd3,
    FmtE4m3 = 3'd4
  } float_fmt_e;

  typedef enum logic [2:0] {
    FloatSum     = 3'd0,
    FloatMax     = 3'd1,
    FloatMin     = 3'd2,
    FloatMul     = 3'd3,
    FloatConvert = 3'd4   // operand a alone
  } float_op_e;

  // One step; weft_nmc_float says which combinations there are.
  typedef struct packed {
    float_op_e  op;
    float_fmt_e from;           // of the sources, and the layout of the accumulator as operand
    float_fmt_e to;             // of the result; with to_acc the layout of the accumulator
    logic       propagate_nan;  // max, min: a NaN beats a number
    logic       saturate;       // to fp8: what is beyond the largest number, infinity too, becomes it
    logic       use_acc;        // operand a is the accumulator
    logic       scalar;         // product: operand b is the scalar, an fp32
    logic       to_acc;         // the result goes to the accumulator: rounded to 24 bits
    logic       odd;            // with to_acc: rounded to odd, so that a conversion behind it is exact
  } float_cmd_t;

  typedef struct packed {
    logic invalid;
    logic overflow;
    logic inexact;
  } float_flags_t;

  // Exponent fields: 8 bits, bias 127; 5 bits, bias 15; e4m3: 4 bits, bias 7.
  function automatic logic float_exp5(float_fmt_e fmt);
    return fmt == FmtFp16 || fmt == FmtE5m2;
  endfunction
  function automatic logic float_exp8(float_fmt_e fmt);
    return fmt == FmtFp32 || fmt == FmtBf16;
  endfunction
  function automatic logic [7:0] float_bias(float_fmt_e fmt);
    return fmt == FmtE4m3 ? 8'd7 : float_exp5(fmt) ? 8'd15 : 8'd127;
  endfunction

  // Whether the last step of a sum, maximum or minimum of `from` cannot round to `to`, whose exponents
  // reach less far: it goes to the accumulator (with odd), and a conversion follows.
  function automatic logic float_needs_convert(float_fmt_e from, float_fmt_e to);
    return (float_exp8(from) && !float_exp8(to)) || (float_exp5(from) && to == FmtE4m3);
  endfunction

  // What the lanes do with a pair of beats.
  typedef struct packed {
    lane_op_e op;
    logic     fp;    // floating-point lanes, else integer lanes (which copy too)
    logic     bf16;  // 64 bf16 elements, else 32 of fp32
  } lane_cmd_t;

  // One source to be read.
  typedef struct packed {
    beat_addr_t addr;
    beats_t     beats;
  } nmc_read_job_t;

  // How a source is turned to the destination's alignment.
  typedef struct packed {
    offs_t  rot;    // bytes to rotate towards higher addresses: destination - source offset
    logic   ahead;  // source offset above the destination's: the first beat is only history
    beats_t beats;
  } nmc_align_t;

  typedef struct packed {
    lane_cmd_t  cmd;
    logic       two;
    nmc_align_t a;
    nmc_align_t b;
    beats_t     beats;  // of the destination
  } nmc_seq_job_t;

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

  // Event pulses, one cycle each; the counters are folded outside.
  typedef struct packed {
    logic busy;         // a request is inside
    logic stall_read;   // the next step waits for read data
    logic stall_write;  // the next step waits for room on the write side
    logic beat;         // a result beat was handed to the write channel
    logic request;      // a request was taken
    logic done;         // a completion was handed over, with or without an error
    logic error;        // ... and it carried an error
  } nmc_cnt_t;
endpackage
`default_nettype wire
