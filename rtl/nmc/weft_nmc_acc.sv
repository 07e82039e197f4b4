// SPDX-License-Identifier: Apache-2.0
//
// The accumulator of the reducer: what a chunk of steps has come to so far, 32 bits for every
// element, and what else steps of a chunk keep: products in fp64 that wait to be added, and what
// divisions have left.
//
// No handshake, read latency 1 cycle, of `half` and `byte` 2, a result can be read in the cycle
// behind the one that writes it. Four banks, each as wide as the lanes it serves; only native steps
// of small types use `byte`. Steps of 32-bit words use `half` too, for what the half lanes add up
// before or behind others: sums of products ask for it by late_i, and sums that stay come by
// stay_i, not in the order of results. LUT RAM: 4096 + 512 bits by ChunkSteps.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_acc
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter bit Products = 1'b1
) (
    input  wire                 clk_i,
    input  wire                 rst_i,
    // Read; of an index that nothing writes in the same cycle.
    input  wire                 use_acc_i,
    input  wire                 use_kept_i,
    input  wire nmc_layout_t    layout_i,
    input  wire  [ChunkW-1:0]   index_i,
    input  wire                 late_i,   // of `half`, read latency 1; not one cycle behind a step
    input  wire  [ChunkW-1:0]   late_index_i,  // that uses it
    output logic [  NmcW-1:0]   wide_o,
    output logic [  NmcW-1:0]   half_o,
    output logic [2*NmcW-1:0]   byte_o,
    output logic [NmcW/2-1:0]   kept_o,
    // Write.
    input  wire                 valid_i,
    input  wire lane_tag_t      tag_i,
    input  wire  [  NmcW-1:0]   wide_i,
    input  wire  [NmcW/2-1:0]   kept_i,
    input  wire  [  NmcW-1:0]   half_i,
    input  wire                 stay_i,        // of half_i alone; never with a result that is
    input  wire  [ChunkW-1:0]   stay_index_i,  // written
    input  wire  [2*NmcW-1:0]   byte_i
);

  function automatic logic has_byte(nmc_layout_t x);
    return x.parts && x.from == 2'd0;
  endfunction

  function automatic logic has_half(nmc_layout_t x);
    return x.parts || x.shape == Wide32;
  endfunction

  wire write = valid_i && tag_i.to_acc;

  // The other lanes choose their operand a cycle earlier.
  logic [ChunkW-1:0] part_index_q;
  logic half_q, byte_q;

  always_ff @(posedge clk_i) begin
    if (use_acc_i) part_index_q <= index_i;
    if (rst_i) {half_q, byte_q} <= '0;
    else begin
      half_q <= use_acc_i && has_half(layout_i);
      byte_q <= use_acc_i && has_byte(layout_i);
    end
  end

  weft_sdpram #(
      .Width(NmcW),
      .Depth(ChunkSteps),
      .Style("distributed")
  ) u_wide (
      .clk_i,
      .we_i   (write),
      .waddr_i(tag_i.index),
      .wdata_i(wide_i),
      .re_i   (use_acc_i),
      .raddr_i(index_i),
      .rdata_o(wide_o)
  );

  weft_sdpram #(
      .Width(NmcW),
      .Depth(ChunkSteps),
      .Style("distributed")
  ) u_half (
      .clk_i,
      .we_i   ((write && has_half(tag_i.layout)) || stay_i),
      .waddr_i(stay_i ? stay_index_i : tag_i.index),
      .wdata_i(half_i),
      .re_i   (half_q || late_i),
      .raddr_i(late_i ? late_index_i : part_index_q),
      .rdata_o(half_o)
  );

  weft_sdpram #(
      .Width(2 * NmcW),
      .Depth(ChunkSteps),
      .Style("distributed")
  ) u_byte (
      .clk_i,
      .we_i   (write && has_byte(tag_i.layout)),
      .waddr_i(tag_i.index),
      .wdata_i(byte_i),
      .re_i   (byte_q),
      .raddr_i(part_index_q),
      .rdata_o(byte_o)
  );

  if (Products) begin : gen_kept
    weft_sdpram #(
        .Width(NmcW / 2),
        .Depth(ChunkSteps),
        .Style("distributed")
    ) u_kept (
        .clk_i,
        .we_i   (valid_i && tag_i.to_kept),
        .waddr_i(tag_i.index),
        .wdata_i(kept_i),
        .re_i   (use_kept_i),
        .raddr_i(index_i),
        .rdata_o(kept_o)
    );
  end else begin : gen_no_kept
    wire unused_kept = &{1'b0, use_kept_i, kept_i};
    assign kept_o = '0;
  end

  `WEFT_ASSERT(OneToHalf, !(stay_i && write && has_half(tag_i.layout)));
  `WEFT_ASSERT(OneFromHalf, !(late_i && half_q));

endmodule

`default_nettype wire
