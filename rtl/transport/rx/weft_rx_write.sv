// SPDX-License-Identifier: Apache-2.0
//
// AXI writes of accepted packets: one burst a packet, two where it crosses a 4 KB boundary. Data
// comes aligned from the packet buffer, so this adds addresses and strobes only. One word a cycle,
// no gap between packets; addresses run ahead of data; any number of responses may be outstanding
// (the commit stage takes them, in order).
//
// A job is taken whenever it is offered: the buffer cannot hold more packets than Jobs.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_write
  import weft_pkg::*;
#(
    parameter  int unsigned Words = 512,             // of the packet buffer
    localparam int unsigned PtrW  = $clog2(Words) + 1
) (
    input  wire              clk_i,
    input  wire              rst_i,
    // A packet of 1..4096 bytes to write; its words are in the buffer from start_i on.
    input  wire              valid_i,
    input  wire addr_t       va_i,
    input  wire plen_t       len_i,
    input  wire  [PtrW-1:0]  start_i,
    // Packet buffer, read latency 1
    output logic             re_o,
    output logic [PtrW-1:0]  raddr_o,
    output logic             last_o,
    input  wire  [511:0]     rdata_i,
    // AXI write address and data
    output addr_t            m_axi_awaddr,
    output logic [7:0]       m_axi_awlen,
    output logic             m_axi_awvalid,
    input  wire              m_axi_awready,
    output logic [511:0]     m_axi_wdata,
    output logic [63:0]      m_axi_wstrb,
    output logic             m_axi_wlast,
    output logic             m_axi_wvalid,
    input  wire              m_axi_wready
);

  localparam int unsigned Jobs = Words / 2;  // a packet with payload takes two words at least

  typedef struct packed {
    addr_t           va;
    plen_t           len;
    logic [PtrW-1:0] start;
  } job_t;

  typedef struct packed {
    logic [51:0] page;
    logic [5:0]  word;   // in the page
    logic [5:0]  beats;  // less one
  } address_t;

  typedef struct packed {
    logic [PtrW-1:0] ptr;
    logic [5:0]      beats;  // less one
    logic            first;  // burst of its packet
    logic            last;
    logic [5:0]      from;   // first byte of the packet in its first word
    logic [5:0]      upto;   // byte behind its last in its last word, 0: all
  } burst_t;

  logic job_ready, job_valid, job_take;
  job_t job;
  weft_fifo #(
      .data_t  (job_t),
      .Depth   (Jobs),
      .BlockRam(1'b1)
  ) u_jobs (
      .clk_i,
      .rst_i,
      .s_valid_i(valid_i),
      .s_ready_o(job_ready),
      .s_data_i ('{va_i, len_i, start_i}),
      .m_valid_o(job_valid),
      .m_ready_i(job_take),
      .m_data_o (job),
      .count_o  ()
  );

  // ---- cut into bursts: one stage to copy, one to count, then a burst a cycle
  logic v1_q, v2_q;
  job_t job1_q, job2_q;
  logic [12:0] span;  // bytes from the start of the first word
  logic [6:0] words2_q, room2_q;  // of the packet; from its first word to the end of the page
  logic [5:0] upto2_q;
  logic two2_q, second_q;
  logic push, done2, take1;
  logic aw_ready, burst_ready;

  assign span     = 13'(job1_q.va[5:0]) + job1_q.len;
  assign push     = v2_q && aw_ready && burst_ready;
  assign done2    = push && (second_q || !two2_q);
  assign take1    = v1_q && (!v2_q || done2);
  assign job_take = job_valid && (!v1_q || take1);

  logic [6:0] words1, room1;
  assign words1 = 7'((span + 13'd63) >> 6);
  assign room1  = 7'd64 - 7'(job1_q.va[11:6]);

  always_ff @(posedge clk_i) begin
    if (job_take) job1_q <= job;
    if (take1) begin
      job2_q   <= job1_q;
      words2_q <= words1;
      room2_q  <= room1;
      upto2_q  <= span[5:0];
      two2_q   <= words1 > room1;
    end
    if (rst_i) begin
      v1_q     <= 1'b0;
      v2_q     <= 1'b0;
      second_q <= 1'b0;
    end else begin
      if (job_take) v1_q <= 1'b1;
      else if (take1) v1_q <= 1'b0;
      if (take1) v2_q <= 1'b1;
      else if (done2) v2_q <= 1'b0;
      if (push) second_q <= two2_q && !second_q;
    end
  end

  address_t address;
  burst_t burst;
  always_comb begin
    address.page  = job2_q.va[63:12] + 52'(second_q);
    address.word  = second_q ? '0 : job2_q.va[11:6];
    address.beats = 6'((second_q ? words2_q - room2_q : two2_q ? room2_q : words2_q) - 7'd1);
    burst.ptr     = job2_q.start + (second_q ? PtrW'(room2_q) : '0);
    burst.beats   = address.beats;
    burst.first   = !second_q;
    burst.last    = second_q || !two2_q;
    burst.from    = job2_q.va[5:0];
    burst.upto    = upto2_q;
  end

  address_t aw;
  weft_fifo #(
      .data_t(address_t),
      .Depth (16)
  ) u_addresses (
      .clk_i,
      .rst_i,
      .s_valid_i(v2_q && burst_ready),
      .s_ready_o(aw_ready),
      .s_data_i (address),
      .m_valid_o(m_axi_awvalid),
      .m_ready_i(m_axi_awready),
      .m_data_o (aw),
      .count_o  ()
  );
  assign m_axi_awaddr = {aw.page, aw.word, 6'd0};
  assign m_axi_awlen  = 8'(aw.beats);

  logic next_valid, next_take;
  burst_t next;
  weft_fifo #(
      .data_t(burst_t),
      .Depth (16)
  ) u_bursts (
      .clk_i,
      .rst_i,
      .s_valid_i(v2_q && aw_ready),
      .s_ready_o(burst_ready),
      .s_data_i (burst),
      .m_valid_o(next_valid),
      .m_ready_i(next_take),
      .m_data_o (next),
      .count_o  ()
  );

  // ---- words: the RAM's output register is the W channel's
  logic active_q, start_q;  // a burst is being read; none of its words has been
  burst_t burst_q;
  logic w_valid_q, w_last_q;
  logic [63:0] w_strb_q;
  logic step, end_word;

  assign step      = active_q && (!w_valid_q || m_axi_wready);
  assign end_word  = burst_q.beats == '0;
  assign next_take = next_valid && (!active_q || (step && end_word));

  always_ff @(posedge clk_i) begin
    if (next_take) begin
      burst_q <= next;
      start_q <= next.first;
    end else if (step) begin
      burst_q.ptr   <= burst_q.ptr + 1'b1;
      burst_q.beats <= burst_q.beats - 1'b1;
      start_q       <= 1'b0;
    end
    if (step) begin
      w_last_q <= end_word;
      w_strb_q <= (start_q ? {64{1'b1}} << burst_q.from : '1) &
          ((burst_q.last && end_word && burst_q.upto != '0) ? ~({64{1'b1}} << burst_q.upto) : '1);
    end
    if (rst_i) begin
      active_q  <= 1'b0;
      w_valid_q <= 1'b0;
    end else begin
      if (next_take) active_q <= 1'b1;
      else if (step && end_word) active_q <= 1'b0;
      if (step) w_valid_q <= 1'b1;
      else if (m_axi_wready) w_valid_q <= 1'b0;
    end
  end

  assign re_o         = step;
  assign raddr_o      = burst_q.ptr;
  assign last_o       = burst_q.last && end_word;
  assign m_axi_wdata  = rdata_i;
  assign m_axi_wstrb  = w_strb_q;
  assign m_axi_wlast  = w_last_q;
  assign m_axi_wvalid = w_valid_q;

  `WEFT_IMPLIES(JobsFit, valid_i, job_ready);
  `WEFT_HOLD(AwHolds, m_axi_awvalid, m_axi_awready, {m_axi_awaddr, m_axi_awlen});
  `WEFT_HOLD(WHolds, m_axi_wvalid, m_axi_wready, {m_axi_wdata, m_axi_wstrb, m_axi_wlast});

endmodule
`default_nettype wire
