// SPDX-License-Identifier: Apache-2.0
//
// Express window: an AXI4 write slave where one 64-byte write is a doorbell.
//
// A write of a single, fully strobed beat at a 64-byte boundary is handed on and answered OKAY once
// it is on its way into the queue towards the engine; a full queue holds the write channel. Any
// other shape (burst, partial, unaligned) is taken whole, answered SLVERR and counted: half a
// doorbell must not act.
// Order is kept. 1 doorbell in 3 cycles; 3 cycles from address and data to db_valid_o.
// Does not look into the doorbell.
`default_nettype none
`include "weft_assert.svh"

module weft_host_db #(
    parameter int unsigned Depth = 4
) (
    input  wire          clk_i,
    input  wire          rst_i,
    // Forget queued doorbells, take none.
    input  wire          flush_i,
    // Express window.
    input  wire  [ 63:0] s_axi_awaddr,
    input  wire  [  7:0] s_axi_awlen,
    input  wire          s_axi_awvalid,
    output logic         s_axi_awready,
    input  wire  [511:0] s_axi_wdata,
    input  wire  [ 63:0] s_axi_wstrb,
    input  wire          s_axi_wlast,
    input  wire          s_axi_wvalid,
    output logic         s_axi_wready,
    output logic [  1:0] s_axi_bresp,
    output logic         s_axi_bvalid,
    input  wire          s_axi_bready,
    // Doorbells; valid and data hold until ready.
    output logic         db_valid_o,
    input  wire          db_ready_i,
    output logic [511:0] db_o,
    output logic         idle_o,         // no doorbell inside
    output logic         taken_o,        // event: a doorbell
    output logic         refused_o       // event: another shape
);

  localparam logic [1:0] RespOkay = 2'b00, RespSlverr = 2'b10;

  // One write at a time: address, beats, response.
  typedef enum logic [1:0] {
    StAddr,  // waits for an address
    StData,  // takes beats to the last one
    StResp   // offers the response
  } state_e;

  state_e state_q;
  logic good_q;  // so far a doorbell
  logic [1:0] resp_q;
  logic push_q;
  logic [511:0] data_q;
  logic fifo_ready;
  logic [$clog2(Depth+1)-1:0] count;

  // push_q is a doorbell on its way into the queue: counts as inside.
  wire room = fifo_ready && !push_q && !flush_i;
  wire beat = s_axi_wvalid && s_axi_wready;
  wire good = good_q && s_axi_wlast && (&s_axi_wstrb);

  assign s_axi_awready = state_q == StAddr;
  assign s_axi_wready  = state_q == StData && room;
  assign s_axi_bvalid  = state_q == StResp;
  assign s_axi_bresp   = resp_q;

  always_ff @(posedge clk_i) begin
    if (beat) data_q <= s_axi_wdata;

    if (rst_i) begin
      state_q   <= StAddr;
      good_q    <= 1'b0;
      resp_q    <= RespOkay;
      push_q    <= 1'b0;
      taken_o   <= 1'b0;
      refused_o <= 1'b0;
    end else begin
      push_q    <= beat && good;
      taken_o   <= beat && good;
      refused_o <= beat && s_axi_wlast && !good;
      unique case (state_q)
        StAddr: begin
          good_q <= s_axi_awlen == '0 && s_axi_awaddr[5:0] == '0;
          if (s_axi_awvalid) state_q <= StData;
        end
        StData:
        if (beat) begin
          // A burst stays bad to its end, even if its last beat looks like a doorbell.
          good_q <= 1'b0;
          resp_q <= good ? RespOkay : RespSlverr;
          if (s_axi_wlast) state_q <= StResp;
        end
        StResp: if (s_axi_bready) state_q <= StAddr;
        default: state_q <= StAddr;
      endcase
    end
  end

  weft_fifo #(
      .Width(512),
      .Depth(Depth)
  ) u_fifo (
      .clk_i,
      .rst_i    (rst_i || flush_i),
      .s_valid_i(push_q),
      .s_ready_o(fifo_ready),
      .s_data_i (data_q),
      .m_valid_o(db_valid_o),
      .m_ready_i(db_ready_i),
      .m_data_o (db_o),
      .count_o  (count)
  );

  assign idle_o = count == '0 && !push_q && state_q != StData;

  `WEFT_IMPLIES(PushHasRoom, push_q && !flush_i, fifo_ready);

endmodule

`default_nettype wire
