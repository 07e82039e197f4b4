// SPDX-License-Identifier: Apache-2.0
//
// Commit stage: accepted packets wait here for the responses of their writes, in order; then they
// are checked a second time (rule W7) and only now become part of the path's state, are told to the
// core, and may be acked. An empty packet or a probe has no write, but keeps its place in the
// order.
//
// A packet every second cycle. Room in the queue is announced ahead: with full_o low, 8 more
// packets are taken. A packet whose write failed is dropped (MEM) and fails its connection; one
// whose connection was configured anew meanwhile is dropped too. docs/rx.md.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_commit
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    parameter  int unsigned QueueDepth   = 512,
    localparam int unsigned ConnW        = $clog2(NumConns),
    localparam int unsigned PathW        = $clog2(PathsPerPort),
    localparam int unsigned IdxW         = ConnW + PathW
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    // From weft_rx_init
    input  wire  [NumConns-1:0]  conn_valid_i,
    input  wire                  info_we_i,
    input  wire  [ConnW-1:0]     info_idx_i,
    input  wire rx_conn_t        info_i,
    input  wire                  init_valid_i,
    output logic                 init_ready_o,
    input  wire  [IdxW-1:0]      init_idx_i,
    input  wire psn_t            init_psn_i,
    // Accepted packets
    input  wire                  valid_i,
    input  wire rx_pending_t     pending_i,
    output logic                 full_o,
    output logic                 waiting_o,  // a packet waits for memory, or for the core
    // AXI write responses, in order
    input  wire                  m_axi_bvalid,
    output logic                 m_axi_bready,
    input  wire  [1:0]           m_axi_bresp,
    // Data packets in memory
    output logic                 commit_valid_o,
    input  wire                  commit_ready_i,
    output rx_commit_t           commit_o,
    // Packets that failed after all; taken within a few cycles or no packet moves
    output logic                 drop_valid_o,
    input  wire                  drop_ready_i,
    output drop_e                drop_o,
    output logic                 mem_fail_o,
    output logic [ConnW-1:0]     mem_fail_conn_o,
    // The path owes an ack: now_o at once; again_o: one that is worth sending twice
    output logic                 due_valid_o,
    output logic                 due_now_o,
    output logic                 due_again_o,
    output logic [IdxW-1:0]      due_idx_o,
    // Acks read the state (weft_rx_state)
    input  wire                  read_i,
    output logic                 read_ready_o,
    input  wire  [IdxW-1:0]      read_idx_i,
    output rx_state_t            read_state_o,
    // Counters
    output logic                 evt_data_o,
    output logic                 evt_probe_o,
    output logic                 evt_ce_o,
    output logic                 evt_gap_o,
    output logic [7:0]           evt_lost_o,
    output plen_t                evt_bytes_o
);

  localparam int unsigned Margin = 8;
  localparam int unsigned OutDepth = 8;
  // Loss at this port, 1 = 2^24: moves by 1/256 a packet; from 0.3 % on, acks with news of a gap go
  // twice.
  localparam logic [23:0] LossTwice = 24'd50332;

  // ---- waiting for memory
  localparam int unsigned CountW = $clog2(QueueDepth + 1);
  logic queue_ready, head_valid, fire;
  rx_pending_t head;
  logic [CountW-1:0] queued;
  weft_fifo #(
      .data_t  (rx_pending_t),
      .Depth   (QueueDepth),
      .BlockRam(1'b1)
  ) u_pending (
      .clk_i,
      .rst_i,
      .s_valid_i(valid_i),
      .s_ready_o(queue_ready),
      .s_data_i (pending_i),
      .m_valid_o(head_valid),
      .m_ready_i(fire),
      .m_data_o (head),
      .count_o  (queued)
  );

  logic full_q;
  logic one_q;        // one of two responses has come
  logic failed_q;     // and was an error
  logic [1:0] missing;
  logic may_fire, take_b, failed;
  logic fired_q;
  logic [$clog2(OutDepth+1)-1:0] out_count;
  logic [2:0] drop_count;

  assign missing      = head.bursts - 2'(one_q);
  assign may_fire     = head_valid && !fired_q && out_count <= 4'(OutDepth / 2) && drop_count == '0;
  assign m_axi_bready = head_valid && (missing == 2'd2 || (missing == 2'd1 && may_fire));
  assign take_b       = m_axi_bvalid && m_axi_bready;
  assign fire         = may_fire && (missing == '0 || (missing == 2'd1 && m_axi_bvalid));
  assign failed       = failed_q || (take_b && m_axi_bresp != '0);

  always_ff @(posedge clk_i) begin
    full_q <= queued >= CountW'(QueueDepth - Margin);
    if (rst_i) begin
      fired_q  <= 1'b0;
      one_q    <= 1'b0;
      failed_q <= 1'b0;
    end else begin
      fired_q <= fire;
      if (fire) begin
        one_q    <= 1'b0;
        failed_q <= 1'b0;
      end else if (take_b) begin
        one_q    <= 1'b1;
        failed_q <= failed;
      end
    end
  end
  assign full_o = full_q;
  assign waiting_o = head_valid || commit_valid_o;

  // ---- C1: the connection as it is now
  rx_conn_t conn_info;
  weft_sdpram #(
      .data_t(rx_conn_t),
      .Depth (NumConns)
  ) u_conns (
      .clk_i,
      .we_i   (info_we_i),
      .waddr_i(info_idx_i),
      .wdata_i(info_i),
      .re_i   (fire),
      .raddr_i(head.conn[ConnW-1:0]),
      .rdata_o(conn_info)
  );

  logic v1_q, v2_q;
  rx_pending_t p1_q, p2_q, p3_q;
  logic failed1_q, failed2_q, failed3_q;
  logic known1_q, known2_q, known3_q;
  logic same1, same2_q, same3_q;
  assign same1 = conn_info.incarnation == p1_q.incarnation;

  always_ff @(posedge clk_i) begin
    v1_q <= fire && !rst_i;
    v2_q <= v1_q && !rst_i;
    if (fire) begin
      p1_q      <= head;
      failed1_q <= failed;
      known1_q  <= conn_valid_i[head.conn[ConnW-1:0]];
    end
    if (v1_q) begin
      p2_q      <= p1_q;
      failed2_q <= failed1_q;
      known2_q  <= known1_q;
      same2_q   <= same1;
    end
    if (v2_q) begin
      p3_q      <= p2_q;
      failed3_q <= failed2_q;
      known3_q  <= known2_q;
      same3_q   <= same2_q;
    end
  end

  logic done, fresh, other_epoch, behind, ce_change;
  logic [7:0] gap;
  weft_rx_state #(
      .NumPaths(NumConns * PathsPerPort)
  ) u_state (
      .clk_i,
      .rst_i,
      .init_valid_i,
      .init_ready_o,
      .init_idx_i,
      .init_psn_i,
      .commit_i     (fire),
      .idx_i        ({head.conn[ConnW-1:0], head.path[PathW-1:0]}),
      .psn_i        (head.psn),
      .epoch_i      (head.epoch),
      .timestamp_i  (head.timestamp),
      .ce_i         (head.ce),
      .bytes_i      (head.probe ? '0 : head.len + plen_t'(WIN_OVERHEAD)),
      .sound_i      (known1_q && same1 && !failed1_q),
      .done_o       (done),
      .fresh_o      (fresh),
      .other_epoch_o(other_epoch),
      .behind_o     (behind),
      .gap_o        (gap),
      .ce_change_o  (ce_change),
      .read_i,
      .read_ready_o,
      .read_idx_i,
      .read_state_o
  );

  // ---- C3
  logic sound;       // nothing but the memory may be to blame
  logic mem_failed;
  logic lost_some;
  assign sound      = known3_q && same3_q && !other_epoch && !behind;
  assign mem_failed = done && sound && failed3_q;
  assign lost_some  = gap != '0;

  logic out_ready, drop_in, drop_fifo_ready;
  drop_e reason;
  assign drop_in = done && !fresh;
  assign reason  = !known3_q ? DropConn : !same3_q ? DropIncarnation : other_epoch ? DropEpoch :
                   behind ? DropStale : DropMem;

  weft_fifo #(
      .data_t(rx_commit_t),
      .Depth (OutDepth)
  ) u_out (
      .clk_i,
      .rst_i,
      .s_valid_i(fresh && !p3_q.probe),
      .s_ready_o(out_ready),
      .s_data_i ('{p3_q.conn, p3_q.stream, p3_q.msg_no, p3_q.msg_len, p3_q.len, p3_q.signal,
                   p3_q.sem, p3_q.value}),
      .m_valid_o(commit_valid_o),
      .m_ready_i(commit_ready_i),
      .m_data_o (commit_o),
      .count_o  (out_count)
  );

  weft_fifo #(
      .data_t(drop_e),
      .Depth (4)
  ) u_drops (
      .clk_i,
      .rst_i,
      .s_valid_i(drop_in),
      .s_ready_o(drop_fifo_ready),
      .s_data_i (reason),
      .m_valid_o(drop_valid_o),
      .m_ready_i(drop_ready_i),
      .m_data_o (drop_o),
      .count_o  (drop_count)
  );

  // The measure before this packet counts: a lone loss is not yet a lossy port.
  logic [23:0] loss_q;
  logic [24:0] loss_sum;
  logic lossy_q;
  assign loss_sum = 25'(loss_q) - 25'(loss_q[23:8]) + {1'b0, gap, 16'd0};
  always_ff @(posedge clk_i) begin
    if (rst_i) loss_q <= '0;
    else if (fresh) loss_q <= loss_sum[24] ? '1 : loss_sum[23:0];
    lossy_q <= loss_q >= LossTwice;
  end

  assign mem_fail_o      = mem_failed;
  assign mem_fail_conn_o = p3_q.conn[ConnW-1:0];
  assign due_valid_o     = fresh || mem_failed;
  assign due_now_o       = p3_q.hurry || lost_some || ce_change || mem_failed;
  // A probe asks because nothing follows: losing its answer costs the sender a timeout.
  assign due_again_o     = fresh && (lost_some || p3_q.probe) && lossy_q;
  assign due_idx_o       = {p3_q.conn[ConnW-1:0], p3_q.path[PathW-1:0]};

  assign evt_data_o  = fresh && !p3_q.probe;
  assign evt_probe_o = fresh && p3_q.probe;
  assign evt_ce_o    = evt_data_o && p3_q.ce;
  assign evt_gap_o   = fresh && lost_some;
  assign evt_lost_o  = fresh ? gap : '0;
  assign evt_bytes_o = evt_data_o ? p3_q.len : '0;

  `WEFT_IMPLIES(QueueHasRoom, valid_i, queue_ready);
  `WEFT_IMPLIES(OutHasRoom, fresh && !p3_q.probe, out_ready);
  `WEFT_IMPLIES(DropsHaveRoom, drop_in, drop_fifo_ready);
  `WEFT_IMPLIES(ResponseIsWaitedFor, take_b, head.bursts != '0);

endmodule
`default_nettype wire
