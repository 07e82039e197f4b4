// SPDX-License-Identifier: Apache-2.0
//
// Commit stage: accepted packets wait here for the responses of their writes, in order; then they
// are told to the core, and wait for its verdict; only then do they become part of the path's state
// and may be acked. A probe has no write and needs no verdict, but keeps its place in the order.
//
//   queue: responses -> A: configuration read -> B: offered to the core -> queue: verdict
//     -> C0 .. C3: configuration once more, path state
//
// Twice (rule W7), in B and in C1, a packet is compared with its connection as it is then: one of a
// life that has ended is not offered, or not committed. A CfgConn in the cycles between the first
// comparison and the core's taking it reaches it in A and B, so the core hears nothing of a life
// that it has been told is over.
//
// A packet every second cycle. Room in the queue is announced ahead: with full_o low, 8 more
// packets are taken. A packet that the core refuses is dropped for the core's reason. docs/rx.md.
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
    // Data packets in memory, or whose write failed; taken back while the connection is configured
    output logic                 commit_valid_o,
    input  wire                  commit_ready_i,
    output rx_commit_t           commit_o,
    // The core's verdict on each that it took, in order, later than that cycle
    input  wire                  verdict_valid_i,
    input  wire rx_verdict_t     verdict_i,
    // Packets that failed after all; taken within a few cycles or no packet moves
    output logic                 drop_valid_o,
    input  wire                  drop_ready_i,
    output drop_e                drop_o,
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
  localparam int unsigned Waiting = 16;  // packets without a verdict
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
  logic a_valid_q, a_moves;

  assign missing      = head.bursts - 2'(one_q);
  assign may_fire     = head_valid && (!a_valid_q || a_moves);
  assign m_axi_bready = head_valid && (missing == 2'd2 || (missing == 2'd1 && may_fire));
  assign take_b       = m_axi_bvalid && m_axi_bready;
  assign fire         = may_fire && (missing == '0 || (missing == 2'd1 && m_axi_bvalid));
  assign failed       = failed_q || (take_b && m_axi_bresp != '0);

  always_ff @(posedge clk_i) begin
    full_q <= queued >= CountW'(QueueDepth - Margin);
    if (rst_i) begin
      one_q    <= 1'b0;
      failed_q <= 1'b0;
    end else begin
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

  // ---- A: the connection as it is; B: offered. Configured meanwhile, it is over. ----------------
  function automatic logic ends(logic we, logic [ConnW-1:0] idx, conn_t conn);
    return we && idx == conn[ConnW-1:0];
  endfunction

  rx_conn_t a_info;
  weft_sdpram #(
      .data_t(rx_conn_t),
      .Depth (NumConns)
  ) u_conns_a (
      .clk_i,
      .we_i   (info_we_i),
      .waddr_i(info_idx_i),
      .wdata_i(info_i),
      .re_i   (fire),
      .raddr_i(head.conn[ConnW-1:0]),
      .rdata_o(a_info)
  );

  rx_pending_t a_q, b_q;
  logic a_failed_q, a_over_q, b_valid_q, b_failed_q, b_over_q, b_probe_q, b_moves;
  logic offers, wait_ready;
  assign a_moves = !b_valid_q || b_moves;
  // what is over needs no verdict, only its place
  assign offers  = b_valid_q && !b_probe_q && !b_over_q;
  assign b_moves = wait_ready && (!offers || commit_ready_i);

  always_ff @(posedge clk_i) begin
    if (fire) begin
      a_q        <= head;
      a_failed_q <= failed;
      a_over_q   <= !conn_valid_i[head.conn[ConnW-1:0]] || ends(info_we_i, info_idx_i, head.conn);
    end else if (ends(info_we_i, info_idx_i, a_q.conn)) begin
      a_over_q <= 1'b1;
    end
    if (a_valid_q && a_moves) begin
      b_q        <= a_q;
      b_probe_q  <= a_q.probe;
      b_failed_q <= a_failed_q;
      b_over_q   <= a_over_q || a_info.incarnation != a_q.incarnation || a_info.life != a_q.life ||
                    ends(info_we_i, info_idx_i, a_q.conn);
    end else if (ends(info_we_i, info_idx_i, b_q.conn)) begin
      b_over_q <= 1'b1;
    end
    if (rst_i) begin
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      a_valid_q <= fire || (a_valid_q && !a_moves);
      b_valid_q <= a_valid_q || (b_valid_q && !b_moves);
    end
  end

  assign commit_valid_o = offers && wait_ready;
  assign commit_o = '{
          conn: b_q.conn,
          incarnation: b_q.incarnation,
          mem_error: b_failed_q,
          stream: b_q.stream,
          msg_no: b_q.msg_no,
          msg_len: b_q.msg_len,
          va: b_q.va,
          len: b_q.len,
          signal: b_q.signal,
          sem: b_q.sem,
          value: b_q.value
      };

  // ---- waiting for the verdict ------------------------------------------------------------------
  typedef struct packed {  // what the path's state wants to know of a packet
    logic        judged;   // a verdict comes
    logic        probe;
    logic        ce;
    logic        hurry;
    conn_t       conn;
    path_t       path;
    logic [7:0]  epoch;
    logic [15:0] incarnation;
    life_t       life;
    psn_t        psn;
    logic [31:0] timestamp;
    plen_t       len;
  } wait_t;

  wait_t wait_in, w;
  logic w_valid, commit, verdict_there, verdict_room;
  rx_verdict_t verdict;
  logic committed_q;
  logic [$clog2(5)-1:0] drop_count;
  assign wait_in = '{
          judged: offers,
          probe: b_q.probe,
          ce: b_q.ce,
          hurry: b_q.hurry,
          conn: b_q.conn,
          path: b_q.path,
          epoch: b_q.epoch,
          incarnation: b_q.incarnation,
          life: b_q.life,
          psn: b_q.psn,
          timestamp: b_q.timestamp,
          len: b_q.len
      };
  weft_fifo #(
      .data_t(wait_t),
      .Depth (Waiting)
  ) u_wait (
      .clk_i,
      .rst_i,
      .s_valid_i(b_valid_q && b_moves),
      .s_ready_o(wait_ready),
      .s_data_i (wait_in),
      .m_valid_o(w_valid),
      .m_ready_i(commit),
      .m_data_o (w),
      .count_o  ()
  );
  weft_fifo #(
      .data_t(rx_verdict_t),
      .Depth (Waiting)
  ) u_verdicts (
      .clk_i,
      .rst_i,
      .s_valid_i(verdict_valid_i),
      .s_ready_o(verdict_room),
      .s_data_i (verdict_i),
      .m_valid_o(verdict_there),
      .m_ready_i(commit && w.judged),
      .m_data_o (verdict),
      .count_o  ()
  );
  assign commit = w_valid && (!w.judged || verdict_there) && !committed_q && drop_count == '0;
  assign waiting_o = head_valid || a_valid_q || b_valid_q || w_valid;
  always_ff @(posedge clk_i) committed_q <= commit && !rst_i;

  // ---- C1: the connection as it is now ----------------------------------------------------------
  rx_conn_t conn_info;
  weft_sdpram #(
      .data_t(rx_conn_t),
      .Depth (NumConns)
  ) u_conns_c (
      .clk_i,
      .we_i   (info_we_i),
      .waddr_i(info_idx_i),
      .wdata_i(info_i),
      .re_i   (commit),
      .raddr_i(w.conn[ConnW-1:0]),
      .rdata_o(conn_info)
  );

  logic v1_q, v2_q;
  wait_t p1_q, p2_q, p3_q;
  logic refused1_q, refused2_q, refused3_q;
  drop_e reason1_q, reason2_q, reason3_q;
  logic known1_q, known2_q, known3_q;
  logic same1, same2_q, same3_q;
  assign same1 = conn_info.incarnation == p1_q.incarnation && conn_info.life == p1_q.life;

  always_ff @(posedge clk_i) begin
    v1_q <= commit && !rst_i;
    v2_q <= v1_q && !rst_i;
    if (commit) begin
      p1_q       <= w;
      refused1_q <= w.judged && verdict.refused;
      reason1_q  <= verdict.reason;
      known1_q   <= conn_valid_i[w.conn[ConnW-1:0]];
    end
    if (v1_q) begin
      p2_q       <= p1_q;
      refused2_q <= refused1_q;
      reason2_q  <= reason1_q;
      known2_q   <= known1_q;
      same2_q    <= same1;
    end
    if (v2_q) begin
      p3_q       <= p2_q;
      refused3_q <= refused2_q;
      reason3_q  <= reason2_q;
      known3_q   <= known2_q;
      same3_q    <= same2_q;
    end
  end

  logic done, fresh, ce_change;
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
      .commit_i     (commit),
      .idx_i        ({w.conn[ConnW-1:0], w.path[PathW-1:0]}),
      .psn_i        (w.psn),
      .epoch_i      (w.epoch),
      .timestamp_i  (w.timestamp),
      .ce_i         (w.ce),
      .bytes_i      (w.probe ? '0 : w.len + plen_t'(WIN_OVERHEAD)),
      .sound_i      (known1_q && same1 && !refused1_q),
      .done_o       (done),
      .fresh_o      (fresh),
      .gap_o        (gap),
      .ce_change_o  (ce_change),
      .read_i,
      .read_ready_o,
      .read_idx_i,
      .read_state_o
  );

  // ---- C3 ---------------------------------------------------------------------------------------
  logic alive;      // the packet's life goes on
  logic refused;    // by the core: its connection has failed, which the ack is to tell
  logic lost_some;
  assign alive     = known3_q && same3_q;
  assign refused   = done && alive && refused3_q;
  assign lost_some = gap != '0;

  logic drop_in, drop_fifo_ready;
  drop_e reason;
  assign drop_in = done && !fresh;
  assign reason  = !known3_q ? DropConn : !same3_q ? DropIncarnation : reason3_q;

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

  assign due_valid_o     = fresh || refused;
  assign due_now_o       = p3_q.hurry || lost_some || ce_change || refused;
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
  `WEFT_IMPLIES(VerdictHasRoom, verdict_valid_i, verdict_room);
  logic [$clog2(Waiting+1)-1:0] unjudged_q;  // packets that the core has and has not answered
  always_ff @(posedge clk_i) begin
    if (rst_i) unjudged_q <= '0;
    else
      unjudged_q <= unjudged_q + $bits(unjudged_q)'(commit_valid_o && commit_ready_i) -
                    $bits(unjudged_q)'(verdict_valid_i);
  end
  `WEFT_IMPLIES(VerdictWasAskedFor, verdict_valid_i, unjudged_q != '0);
  `WEFT_IMPLIES(DropsHaveRoom, drop_in, drop_fifo_ready);
  `WEFT_IMPLIES(ResponseIsWaitedFor, take_b, head.bursts != '0);

endmodule
`default_nettype wire
