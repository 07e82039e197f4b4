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

  // Cycles from operands to result.
  localparam int unsigned FpLatency = 9;
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
