// SPDX-License-Identifier: Apache-2.0
//
// State of every path as its acks report it: {epoch, base, 256-bit history, CE and byte counters,
// timestamp echo}. Committing a packet is one read-modify-write: a sound one moves the base behind
// it, shifts the history by the gap and one, and sets bit 0.
//
//   C0 address | C1 read, distance from base | C2 shift, add | C3 result; written to the RAM
//
// A sound packet was claimed (weft_rx_claim) in this life of its path, and packets come in the
// order of their claims; so it is of the path's epoch and not behind the base. That is not looked
// at again but asserted. A commit at most every second cycle. The latest result stays in a register
// and stands in for the RAM when the same path comes again, so there is no other forwarding. Acks
// read in the cycles between: data one cycle after the grant, as of the last write.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_state
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter  int unsigned NumPaths = 512,
    localparam int unsigned IdxW     = $clog2(NumPaths)
) (
    input  wire               clk_i,
    input  wire               rst_i,
    // A path starts; taken in a cycle with ready.
    input  wire               init_valid_i,
    output logic              init_ready_o,
    input  wire  [IdxW-1:0]   init_idx_i,
    input  wire psn_t         init_psn_i,
    // C0
    input  wire               commit_i,
    input  wire  [IdxW-1:0]   idx_i,
    input  wire psn_t         psn_i,
    input  wire  [7:0]        epoch_i,
    input  wire  [31:0]       timestamp_i,
    input  wire               ce_i,
    input  wire plen_t        bytes_i,      // that the packet counts
    // C1: the packet is of the connection's present life, and nobody has refused it
    input  wire               sound_i,
    // C3, in the third cycle after commit_i
    output logic              done_o,
    output logic              fresh_o,       // it was sound: state has moved
    output logic [7:0]        gap_o,         // PSNs passed over; 255: or more
    output logic              ce_change_o,
    // An ack reads
    input  wire               read_i,
    output logic              read_ready_o,
    input  wire  [IdxW-1:0]   read_idx_i,
    output rx_state_t         read_state_o
);

  rx_state_t found, init_state;
  logic write;
  logic [IdxW-1:0] write_idx;

  // C1
  logic v1_q, ce1_q;
  logic [IdxW-1:0] idx1_q;
  psn_t psn1_q;
  logic [7:0] epoch1_q;
  logic [31:0] timestamp1_q;
  plen_t bytes1_q;
  rx_state_t now1;
  // C2
  logic v2_q, ce2_q, sound2_q, same_epoch2_q;
  logic [IdxW-1:0] idx2_q;
  psn_t after2_q, distance2_q;
  logic [31:0] timestamp2_q, bytes2_q;
  rx_state_t now2_q;
  logic far2;
  // C3
  logic v3_q, fresh3_q, ce_change3_q;
  logic [7:0] gap3_q;
  // The latest result: in the RAM, or about to be
  logic last_valid_q;
  logic [IdxW-1:0] last_idx_q;
  rx_state_t last_q;

  always_comb begin
    init_state       = '0;
    init_state.base  = init_psn_i;
    init_state.hist  = '1;  // nothing below was ever missing: acks stay short
  end

  assign write        = fresh3_q || init_valid_i;
  assign write_idx    = fresh3_q ? last_idx_q : init_idx_i;
  assign init_ready_o = !fresh3_q;
  assign read_ready_o = !commit_i;

  weft_sdpram #(
      .data_t(rx_state_t),
      .Depth (NumPaths),
      .Style ("block")
  ) u_table (
      .clk_i,
      .we_i   (write),
      .waddr_i(write_idx),
      .wdata_i(fresh3_q ? last_q : init_state),
      .re_i   (commit_i || read_i),
      .raddr_i(commit_i ? idx_i : read_idx_i),
      .rdata_o(found)
  );
  assign read_state_o = found;

  assign now1   = (last_valid_q && last_idx_q == idx1_q) ? last_q : found;
  // Further than the history reaches: only behind packets that claimed their PSN and were refused.
  assign far2   = distance2_q[22:8] != '0;

  // Up by the gap, four places a step; what is shifted in was lost.
  function automatic logic [255:0] shifted(logic [255:0] hist, logic [7:0] gap);
    logic [255:0] a, b, c;
    unique case (gap[7:6])
      2'd0: a = hist;
      2'd1: a = {hist[191:0], 64'd0};
      2'd2: a = {hist[127:0], 128'd0};
      2'd3: a = {hist[63:0], 192'd0};
    endcase
    unique case (gap[5:4])
      2'd0: b = a;
      2'd1: b = {a[239:0], 16'd0};
      2'd2: b = {a[223:0], 32'd0};
      2'd3: b = {a[207:0], 48'd0};
    endcase
    unique case (gap[3:2])
      2'd0: c = b;
      2'd1: c = {b[251:0], 4'd0};
      2'd2: c = {b[247:0], 8'd0};
      2'd3: c = {b[243:0], 12'd0};
    endcase
    unique case (gap[1:0])
      2'd0: shifted = c;
      2'd1: shifted = {c[254:0], 1'd0};
      2'd2: shifted = {c[253:0], 2'd0};
      2'd3: shifted = {c[252:0], 3'd0};
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    v1_q <= commit_i && !rst_i;
    if (commit_i) begin
      idx1_q       <= idx_i;
      psn1_q       <= psn_i;
      epoch1_q     <= epoch_i;
      timestamp1_q <= timestamp_i;
      ce1_q        <= ce_i;
      bytes1_q     <= bytes_i;
    end

    v2_q <= v1_q && !rst_i;
    if (v1_q) begin
      idx2_q        <= idx1_q;
      now2_q        <= now1;
      distance2_q   <= psn1_q - now1.base;
      after2_q      <= psn1_q + 1'b1;
      same_epoch2_q <= epoch1_q == now1.epoch;
      timestamp2_q  <= timestamp1_q;
      ce2_q         <= ce1_q;
      bytes2_q      <= 32'(bytes1_q);
      sound2_q      <= sound_i;
    end

    v3_q     <= v2_q && !rst_i;
    fresh3_q <= v2_q && sound2_q && !rst_i;
    if (v2_q) begin
      gap3_q         <= far2 ? '1 : distance2_q[7:0];
      ce_change3_q   <= ce2_q != now2_q.ce;
      if (sound2_q) begin
        last_idx_q      <= idx2_q;
        last_q.epoch    <= now2_q.epoch;
        last_q.base     <= after2_q;
        if (far2) last_q.hist <= 256'd1;
        else last_q.hist <= shifted({now2_q.hist[254:0], 1'b0}, distance2_q[7:0]) | 256'd1;
        last_q.ce_bytes <= now2_q.ce_bytes + (ce2_q ? bytes2_q : '0);
        last_q.rx_bytes <= now2_q.rx_bytes + bytes2_q;
        last_q.echo     <= timestamp2_q;
        last_q.ce       <= ce2_q;
      end
    end
    if (rst_i) last_valid_q <= 1'b0;
    else if (v2_q && sound2_q) last_valid_q <= 1'b1;
    else if (init_valid_i && init_idx_i == last_idx_q) last_valid_q <= 1'b0;
  end

  assign done_o        = v3_q;
  assign fresh_o       = fresh3_q;
  assign gap_o         = gap3_q;
  assign ce_change_o   = ce_change3_q;

  `WEFT_IMPLIES(SoundIsFresh, v2_q && sound2_q, same_epoch2_q && !distance2_q[23]);
  `WEFT_NEXT(CommitsTwoApart, commit_i, !commit_i);

endmodule
`default_nettype wire
