// SPDX-License-Identifier: Apache-2.0
//
// Takes an AXI4 write master off its bus without breaking the bus: the handshakes of AW, W and B
// pass through here, addresses and data go past; only wlast and, by blank_o, the strobes change.
//
// While isolate_i is up, no further address leaves; an address or a beat that memory has been
// shown stays until it is taken. What is missing of bursts already begun is written by this module,
// beats without strobes (blank_o) that change no byte, so that the end does not depend on the
// master: a reducer's data may itself wait for reads that are cut off. Responses still owed are
// taken here. drained_o tells that nothing is under way: from then on the master may be reset, not
// before. There is no bound on the wait: a response given up would be taken for the next one's.
// Data waits until its address has been shown. With MaxOpen bursts whose data has not all gone, a
// further address waits.
// Adds no latency and one gate to each handshake; throughput 1. docs/registers.md, Soft reset.
`default_nettype none
`include "weft_assert.svh"

module weft_axi_isolate_wr #(
    parameter  int unsigned MaxWrites = 256,  // without a response, at most
    parameter  int unsigned MaxOpen   = 32,
    localparam int unsigned CountW    = $clog2(MaxWrites + 1)
) (
    input  wire        clk_i,
    input  wire        rst_i,
    input  wire        isolate_i,
    output logic       drained_o,
    output logic       blank_o,        // this beat has no strobe
    // Master.
    input  wire  [7:0] s_axi_awlen,
    input  wire        s_axi_awvalid,
    output logic       s_axi_awready,
    input  wire        s_axi_wlast,
    input  wire        s_axi_wvalid,
    output logic       s_axi_wready,
    output logic       s_axi_bvalid,
    input  wire        s_axi_bready,
    // Memory.
    output logic       m_axi_awvalid,
    input  wire        m_axi_awready,
    output logic       m_axi_wlast,
    output logic       m_axi_wvalid,
    input  wire        m_axi_wready,
    input  wire        m_axi_bvalid,
    output logic       m_axi_bready
);

  localparam int unsigned OpenW = $clog2(MaxOpen + 1);

  logic aw_open_q, w_open_q, cut_q;
  logic raised_q;  // the address shown now is in the list
  logic [CountW-1:0] owed_q;  // raised and not answered

  // Lengths of the bursts whose data has not all gone. A burst may end in the cycle its address is
  // raised, before its length is in the list: ended_q counts those still to be struck off.
  logic list_ready, list_valid;
  logic [7:0] list_len;
  logic [1:0] ended_q;
  logic [OpenW-1:0] open_q, open_d;  // bursts raised whose data has not all gone
  logic any_q;  // there are some
  logic [7:0] beat_q;  // beats of the burst under way that have gone

  wire raise = m_axi_awvalid && !raised_q;
  wire pass = w_open_q && (any_q || raise);  // never ahead of the address
  wire beat = m_axi_wvalid && m_axi_wready;
  wire ends = beat && m_axi_wlast;
  wire strike = list_valid && ended_q != '0;
  wire fill = !w_open_q && list_valid && ended_q == '0;
  wire answered = m_axi_bvalid && m_axi_bready;

  weft_fifo #(
      .Width(8),
      .Depth(MaxOpen)
  ) u_list (
      .clk_i,
      .rst_i,
      .s_valid_i(raise),
      .s_ready_o(list_ready),
      .s_data_i (s_axi_awlen),
      .m_valid_o(list_valid),
      .m_ready_i(strike),
      .m_data_o (list_len),
      .count_o  ()
  );

  assign m_axi_awvalid = s_axi_awvalid && aw_open_q && (raised_q || list_ready);
  assign s_axi_awready = m_axi_awready && aw_open_q && (raised_q || list_ready);
  assign m_axi_wvalid  = w_open_q ? s_axi_wvalid && pass : fill;
  assign m_axi_wlast   = w_open_q ? s_axi_wlast : beat_q == list_len;
  assign s_axi_wready  = m_axi_wready && pass;
  assign s_axi_bvalid  = m_axi_bvalid && !cut_q;
  assign m_axi_bready  = s_axi_bready || cut_q;
  assign blank_o       = !w_open_q;

  assign open_d = open_q + OpenW'(raise) - OpenW'(ends);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      open_q    <= '0;
      any_q     <= 1'b0;
      aw_open_q <= 1'b1;
      w_open_q  <= 1'b1;
      cut_q     <= 1'b0;
      raised_q  <= 1'b0;
      owed_q    <= '0;
      ended_q   <= '0;
      beat_q    <= '0;
      drained_o <= 1'b0;
    end else begin
      aw_open_q <= !isolate_i || (aw_open_q && m_axi_awvalid && !m_axi_awready);
      w_open_q  <= !isolate_i || (w_open_q && m_axi_wvalid && !m_axi_wready);
      open_q    <= open_d;
      any_q     <= open_d != '0;
      cut_q     <= isolate_i;
      raised_q  <= m_axi_awvalid && !m_axi_awready;
      owed_q    <= owed_q + CountW'(raise) - CountW'(answered);
      ended_q   <= ended_q + 2'(ends) - 2'(strike);
      if (beat) beat_q <= m_axi_wlast ? '0 : beat_q + 1'b1;
      drained_o <= isolate_i && cut_q && !aw_open_q && !w_open_q && !any_q && ended_q == '0
          && owed_q == '0;
    end
  end

  `WEFT_IMPLIES(AddressFirst, beat, any_q || raise);
  `WEFT_IMPLIES(AnswerWasOwed, m_axi_bvalid, owed_q != '0);
  `WEFT_ASSERT(CountHolds, !raise || owed_q != CountW'(MaxWrites));
  `WEFT_ASSERT(EndedHolds, !ends || ended_q != '1);
  `WEFT_NEXT(AddressHolds, m_axi_awvalid && !m_axi_awready, m_axi_awvalid);
  `WEFT_NEXT(BeatHolds, m_axi_wvalid && !m_axi_wready, m_axi_wvalid);
  `WEFT_IMPLIES(DrainedOwesNothing, drained_o && isolate_i,
                owed_q == '0 && !m_axi_awvalid && !m_axi_wvalid);

endmodule

`default_nettype wire
