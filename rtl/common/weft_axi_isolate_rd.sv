// SPDX-License-Identifier: Apache-2.0
//
// Takes an AXI4 read master off its bus without breaking the bus: the handshakes of AR and R pass
// through here, addresses and data go past.
//
// While isolate_i is up, no further address leaves; one that memory has been shown stays until it
// is taken, and every beat that is still owed is taken here and not shown to the master. drained_o
// tells that memory owes nothing more: from then on the master may be reset. Until then the master
// must not be reset, since what it has raised is still its own. There is no bound on the wait: a
// beat given up would be taken for one of the next read.
// Adds no latency and one gate to each handshake; throughput 1. docs/registers.md, Soft reset.
`default_nettype none
`include "weft_assert.svh"

module weft_axi_isolate_rd #(
    parameter  int unsigned MaxReads = 256,  // bursts under way at most
    localparam int unsigned CountW   = $clog2(MaxReads + 1)
) (
    input  wire  clk_i,
    input  wire  rst_i,
    input  wire  isolate_i,
    output logic drained_o,
    // Master.
    input  wire  s_axi_arvalid,
    output logic s_axi_arready,
    output logic s_axi_rvalid,
    input  wire  s_axi_rready,
    // Memory.
    output logic m_axi_arvalid,
    input  wire  m_axi_arready,
    input  wire  m_axi_rvalid,
    input  wire  m_axi_rlast,
    output logic m_axi_rready
);

  logic open_q, cut_q;
  logic [CountW-1:0] owed_q;  // bursts whose last beat has not come

  assign m_axi_arvalid = s_axi_arvalid && open_q;
  assign s_axi_arready = m_axi_arready && open_q;
  assign s_axi_rvalid  = m_axi_rvalid && !cut_q;
  assign m_axi_rready  = s_axi_rready || cut_q;

  wire asked = m_axi_arvalid && m_axi_arready;
  wire answered = m_axi_rvalid && m_axi_rready && m_axi_rlast;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      open_q    <= 1'b1;
      cut_q     <= 1'b0;
      owed_q    <= '0;
      drained_o <= 1'b0;
    end else begin
      open_q    <= !isolate_i || (open_q && m_axi_arvalid && !m_axi_arready);
      cut_q     <= isolate_i;
      owed_q    <= owed_q + CountW'(asked) - CountW'(answered);
      drained_o <= isolate_i && cut_q && !open_q && owed_q == '0;
    end
  end

  `WEFT_IMPLIES(AnswerWasAsked, m_axi_rvalid, owed_q != '0);
  `WEFT_ASSERT(CountHolds, !asked || owed_q != CountW'(MaxReads));
  `WEFT_NEXT(AddressHolds, m_axi_arvalid && !m_axi_arready, m_axi_arvalid);
  `WEFT_IMPLIES(DrainedOwesNothing, drained_o && isolate_i, owed_q == '0 && !m_axi_arvalid);

endmodule

`default_nettype wire
