// SPDX-License-Identifier: Apache-2.0
//
// Claim table: per path the epoch and the next PSN that no frame has claimed yet. With reorder
// distance D = 0 a PSN is fresh when it is this one or at most 255 ahead of it (a sender has at
// most 256 PSNs unsettled, so more is not from this stream of frames); behind it is stale.
//
// Look up in S1, answer in S4, claim in S4: a frame sees every claim made by frames two or more
// cycles ahead. Frames that may claim have at least two beats, so this is all of them. Decides
// nothing about memory: the commit stage checks again behind the write (rule W7). docs/rx.md.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_claim
  import weft_wire_pkg::*;
  import weft_pkg::*;
#(
    parameter  int unsigned NumPaths = 512,
    localparam int unsigned IdxW     = $clog2(NumPaths)
) (
    input  wire             clk_i,
    input  wire             rst_i,
    // A path starts: taken in a cycle with ready (no claim is written in it).
    input  wire             init_valid_i,
    output logic            init_ready_o,
    input  wire  [IdxW-1:0] init_idx_i,
    input  wire psn_t       init_psn_i,
    // S1
    input  wire             look_i,
    input  wire  [IdxW-1:0] look_idx_i,
    // S3: the same frame
    input  wire  [IdxW-1:0] idx_i,
    input  wire psn_t       psn_i,
    input  wire  [7:0]      epoch_i,
    // S4: the same frame
    output logic            same_epoch_o,
    output logic            fresh_o,
    output logic            stale_o,
    input  wire             claim_i
);

  typedef struct packed {
    logic [7:0] epoch;
    psn_t       next;
  } entry_t;

  entry_t found, found_q;
  logic write;
  logic [IdxW-1:0] write_idx;
  entry_t write_entry;

  // S4
  logic [IdxW-1:0] idx4_q;
  psn_t after4_q;     // PSN behind the frame's
  logic [7:0] epoch4_q;
  psn_t distance_q;   // of the PSN from the next unclaimed
  logic same_epoch_q;

  // The latest claim: the RAM may not show it yet to a frame that looked before it was written.
  logic last_valid_q;
  logic [IdxW-1:0] last_idx_q;
  psn_t last_next_q;

  weft_sdpram #(
      .data_t(entry_t),
      .Depth (NumPaths)
  ) u_table (
      .clk_i,
      .we_i   (write),
      .waddr_i(write_idx),
      .wdata_i(write_entry),
      .re_i   (look_i),
      .raddr_i(look_idx_i),
      .rdata_o(found)
  );

  always_ff @(posedge clk_i) begin
    // S2 -> S3
    found_q <= found;
    // S3 -> S4
    distance_q <= psn_i - ((last_valid_q && last_idx_q == idx_i) ? last_next_q : found_q.next);
    same_epoch_q <= epoch_i == found_q.epoch;
    idx4_q   <= idx_i;
    after4_q <= psn_i + 1'b1;
    epoch4_q <= epoch_i;
    // S4 ->
    if (claim_i) begin
      last_idx_q  <= idx4_q;
      last_next_q <= after4_q;
    end
    if (rst_i) last_valid_q <= 1'b0;
    else if (claim_i) last_valid_q <= 1'b1;
    else if (init_valid_i && init_idx_i == last_idx_q) last_valid_q <= 1'b0;
  end

  assign write        = claim_i || init_valid_i;
  assign write_idx    = claim_i ? idx4_q : init_idx_i;
  assign write_entry  = claim_i ? '{epoch4_q, after4_q} : '{8'd0, init_psn_i};
  assign init_ready_o = !claim_i;

  assign same_epoch_o = same_epoch_q;
  assign fresh_o      = distance_q[23:8] == '0;
  assign stale_o      = distance_q[23];

  `WEFT_IMPLIES(ClaimOnlyFresh, claim_i, fresh_o && same_epoch_o);
  `WEFT_NEXT(ClaimsTwoApart, claim_i, !claim_i);

endmodule
`default_nettype wire
