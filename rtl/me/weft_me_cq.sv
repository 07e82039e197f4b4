// SPDX-License-Identifier: Apache-2.0
//
// Completion queue: writes completion entries into the host's ring.
//
// CfgCq names the ring and restarts it: the next entry goes to index 0 with seq 1. Until there is a
// ring, entries wait (ready stays low). Each entry is one 64-byte beat, so seq, which the poller
// waits for, cannot become visible before the rest. Up to 15 writes are under way; with one AXI ID
// they are done in order. Latency 2 cycles to awvalid, an entry every 2 cycles.
// Knows no consumer index: the driver keeps no more doorbells without a read completion than the
// ring has entries, and since each doorbell makes one entry the ring cannot overflow (docs/me.md).
// A write that memory refuses is counted; there is nobody left to be told.
`default_nettype none
`include "weft_assert.svh"

module weft_me_cq
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
(
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire cfg_t        cfg_i,
    input  wire       [63:0] now_i,
    // In: taken in a cycle with valid and ready.
    input  wire              cqe_valid_i,
    output logic             cqe_ready_o,
    input  wire cqe_req_t    cqe_i,
    // Out: AXI4 write, single beats.
    output logic      [63:0] m_axi_awaddr,
    output logic      [ 7:0] m_axi_awlen,
    output logic             m_axi_awvalid,
    input  wire              m_axi_awready,
    output logic     [511:0] m_axi_wdata,
    output logic      [63:0] m_axi_wstrb,
    output logic             m_axi_wlast,
    output logic             m_axi_wvalid,
    input  wire              m_axi_wready,
    input  wire       [ 1:0] m_axi_bresp,
    input  wire              m_axi_bvalid,
    output logic             m_axi_bready,
    output logic             sent_o,
    output logic             error_o,
    output logic             idle_o
);

  typedef struct packed {
    logic [57:0] base;
    logic [31:0] mask;  // entries - 1
  } ring_t;

  logic ring_valid_q;
  ring_t ring_q;
  logic [31:0] seq_q, seq_next_q;  // of the last entry and of the one to come
  line_t line_q;                   // where the entry to come goes
  logic line_valid_q;

  logic aw_valid_q, w_valid_q;
  line_t aw_line_q;
  cqe_t w_q;
  logic [3:0] open_q;  // writes without a response

  wire cfg_here = cfg_i.valid && cfg_i.kind == CfgCq;
  wire take = cqe_valid_i && cqe_ready_o;
  wire answered = m_axi_bvalid && m_axi_bready;

  assign cqe_ready_o   = line_valid_q && !aw_valid_q && !w_valid_q && open_q != '1;

  assign m_axi_awaddr  = {aw_line_q, 6'b0};
  assign m_axi_awlen   = '0;
  assign m_axi_awvalid = aw_valid_q;
  assign m_axi_wdata   = w_q;
  assign m_axi_wstrb   = '1;
  assign m_axi_wlast   = 1'b1;
  assign m_axi_wvalid  = w_valid_q;
  assign m_axi_bready  = 1'b1;
  assign idle_o        = open_q == '0;

  always_ff @(posedge clk_i) begin
    if (take) begin
      aw_line_q <= line_q;
      w_q <= '{
          seq: seq_next_q,
          resv0: '0,
          conn: cqe_i.conn,
          cycles: now_i,
          entry: cqe_i.entry,
          status: cqe_i.status,
          op: cqe_i.op,
          subgraph: cqe_i.subgraph,
          cookie: cqe_i.cookie
      };
    end
    if (cfg_here) ring_q <= '{base: cfg_i.data[63:6], mask: cfg_i.data[95:64]};
    line_q <= ring_q.base + 58'(seq_q & ring_q.mask);
    seq_next_q <= seq_q + 1'b1;

    error_o <= answered && m_axi_bresp != 2'b00 && !rst_i;
    sent_o <= take && !rst_i;

    if (rst_i) begin
      ring_valid_q <= 1'b0;
      line_valid_q <= 1'b0;
      aw_valid_q   <= 1'b0;
      w_valid_q    <= 1'b0;
      open_q       <= '0;
      seq_q        <= '0;
    end else begin
      if (cfg_here) ring_valid_q <= 1'b1;
      // The place of the next entry is right one cycle after the ring or the number changed.
      line_valid_q <= ring_valid_q && !take && !cfg_here;
      if (take) begin
        aw_valid_q <= 1'b1;
        w_valid_q  <= 1'b1;
      end else begin
        if (m_axi_awready) aw_valid_q <= 1'b0;
        if (m_axi_wready) w_valid_q <= 1'b0;
      end
      open_q <= open_q + 4'(take) - 4'(answered);
      if (cfg_here) seq_q <= '0;
      else if (take) seq_q <= seq_next_q;
    end
  end

  `WEFT_HOLD(AwHolds, m_axi_awvalid, m_axi_awready, m_axi_awaddr);
  `WEFT_HOLD(WHolds, m_axi_wvalid, m_axi_wready, m_axi_wdata);
  `WEFT_IMPLIES(ResponseExpected, answered, open_q != '0);

endmodule

`default_nettype wire
