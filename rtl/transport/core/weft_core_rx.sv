// SPDX-License-Identifier: Apache-2.0
// Receiver's side of the shared core: judges every packet against its message, counts the bytes of
// the open messages, and lets signals act in message order, so that a flag never overtakes the data
// of an earlier message whatever path brought it. 64 open messages a stream.
//
//   take, one port after the other -> weft_rx_cover -> read | count | judge -> verdict
//                                                              `-> signal, next message ...
//
// One packet every 4 cycles, and 3 more for every message that completes in order behind it. Each
// packet gets one verdict, in the order of its port; that of a packet which completes messages
// comes when their places are free (W-MSG-013). A packet that contradicts its message, whose memory
// failed, or that would complete a message which its packets do not cover fails its connection:
// fail_o tells all ports once, and nothing of it is counted until it is configured again.
// A CfgConn of any port ends a connection's life: what was taken before is refused, the rows are
// cleared, and what carries another incarnation than the last valid CfgConn is refused from then.
// Does not: look at keys (weft_rx_path did), acknowledge. See docs/core.md.
`default_nettype none
`include "weft_assert.svh"
module weft_core_rx
  import weft_pkg::*;
  import weft_wire_pkg::*;
#(
    parameter int unsigned NumPorts = 2,
    parameter int unsigned NumConns = 64
) (
    input wire  clk_i,
    input wire  rst_i,
    input cfg_t cfg_i,

    // Packets whose bytes are ordered in memory. ready depends on valid.
    input  wire        [NumPorts-1:0] commit_valid_i,
    output logic       [NumPorts-1:0] commit_ready_o,
    input  rx_commit_t [NumPorts-1:0] commit_i,

    // Verdict on the oldest packet of a port that has none yet. Cannot be held.
    output logic        [NumPorts-1:0] verdict_valid_o,
    output rx_verdict_t                verdict_o,

    // A connection has failed here: a pulse to all ports, not later than the verdict that tells.
    output logic       fail_valid_o,
    output conn_fail_t fail_o,

    // Signals of completed messages, in stream order.
    output logic    sig_valid_o,
    input  wire     sig_ready_i,
    output signal_t sig_o,

    // Pulses: a message completed in order; a packet was refused, not for a life that has ended.
    output logic evt_msg_o,
    output logic evt_bad_o,

    output logic idle_o  // no packet being counted, tables walked since reset
);
  localparam int unsigned ConnW = (NumConns > 1) ? $clog2(NumConns) : 1;
  localparam int unsigned WinW = $clog2(MSG_WINDOW);
  localparam int unsigned PortW = (NumPorts > 1) ? $clog2(NumPorts) : 1;
  localparam int unsigned Ahead = 4;  // packets between a port and the counting, 12 cycles
  typedef logic [ConnW-1:0] cidx_t;
  typedef logic [PortW-1:0] pidx_t;

  if (NumPorts < 1) begin : gen_bad_ports
    $error("weft_core_rx: NumPorts must be 1 or more");
  end
  if (NumConns < 1 || NumConns > 2 ** $bits(conn_t)) begin : gen_bad_conns
    $error("weft_core_rx: NumConns must be 1 to 4096");
  end

  typedef struct packed {  // an open message; all zero: none of its packets has come
    logic        busy;
    logic        done;
    logic        signal;
    sem_t        sem;
    logic [31:0] value;
    logic [31:0] msg_len;
    logic [31:0] bytes;
    logic [32:0] first;    // its lowest address
    logic [31:0] sum;      // of its packets' delta (weft_rx_cover)
    logic [31:0] whole;    // what that must be, of the packet at `first`
  } open_t;

  typedef struct packed {
    logic        failed;
    logic [15:0] head;     // oldest message not yet complete
  } conn_row_t;

  typedef struct packed {  // between a port and the counting
    pidx_t      port;
    rx_commit_t pkt;
  } taken_t;

  typedef struct packed {
    logic [31:0] delta;
    logic [31:0] whole;
  } cover_t;

  typedef enum logic [2:0] {
    StClear,      // entries of one connection (after reset: of all) are cleared
    StIdle,
    StRead,       // entry and head are read
    StCount,      // the packet's bytes are added
    StJudge,      // does it fit, is the message complete, is it the oldest?
    StDrain,      // the head message is complete: signal, clear its entry, move on
    StDrainRead,  // the next entry is read
    StDrainTest   // and completes too if it is done
  } state_e;

  state_e                      state_q;
  logic                        all_q;  // StClear covers every connection
  logic       [ConnW+WinW-1:0] clear_q;

  // ---- configuration: connections whose rows are to be cleared ----------------------------------
  // A connection waits here at most once, so nothing is lost however fast they come.
  cfg_conn_t cfg;
  logic [15:0] cfg_index;
  assign cfg       = cfg_i.data[$bits(cfg_conn_t)-1:0];
  assign cfg_index = cfg_i.index / 16'(NumPorts);
  logic cfg_q, cfg_valid_q, cfg_wait, cfg_take;
  cidx_t cfg_conn_q, cfg_conn;
  logic [15:0] cfg_incarnation_q;
  logic [NumConns-1:0] ended;  // its life is over, its rows are not cleared yet
  always_ff @(posedge clk_i) begin
    cfg_q <= cfg_i.valid && cfg_i.kind == CfgConn && cfg_index < 16'(NumConns) && !rst_i;
    cfg_conn_q <= cidx_t'(cfg_index);
    cfg_valid_q <= cfg.valid;  // not: a port that the connection does not use, or its end
    cfg_incarnation_q <= cfg.incarnation;
  end
  weft_once_queue #(
      .NumIdx(NumConns)
  ) u_cfg (
      .clk_i,
      .rst_i,
      .push_i    (cfg_q),
      .push_idx_i(cfg_conn_q),
      .valid_o   (cfg_wait),
      .idx_o     (cfg_conn),
      .pop_i     (cfg_take),
      .waits_o   (ended)
  );

  // ---- take: a packet every 4 cycles, none while a life ends ------------------------------------
  // So what stands between here and the counting then is of lives before, as far as it is of that
  // connection: a port needs longer to begin a new one.
  logic [NumPorts-1:0] grant;
  pidx_t port;
  logic [1:0] turn_q;  // cycles until the next may be taken
  logic ahead_room, take;
  weft_rr_arb #(
      .NumReq(NumPorts)
  ) u_arb (
      .clk_i,
      .rst_i,
      .req_i (commit_valid_i),
      .take_i(take),
      .gnt_o (grant),
      .idx_o (port)
  );
  assign take = turn_q == '0 && ahead_room && !cfg_wait && state_q != StClear && |commit_valid_i;
  assign commit_ready_o = take ? grant : '0;
  always_ff @(posedge clk_i) begin
    if (rst_i) turn_q <= '0;
    else if (take) turn_q <= 2'd3;
    else if (turn_q != '0) turn_q <= turn_q - 1'b1;
  end

  taken_t taken, in;
  logic in_valid, cover_in, cover_valid, in_take;
  logic [$clog2(Ahead+1)-1:0] in_count;
  cover_t cover_made, placed;
  assign taken = '{port: port, pkt: commit_i[port]};
  weft_fifo #(
      .data_t(taken_t),
      .Depth (Ahead)
  ) u_taken (
      .clk_i,
      .rst_i,
      .s_valid_i(take),
      .s_ready_o(ahead_room),
      .s_data_i (taken),
      .m_valid_o(in_valid),
      .m_ready_i(in_take),
      .m_data_o (in),
      .count_o  (in_count)
  );
  weft_rx_cover u_cover (
      .clk_i,
      .rst_i,
      .valid_i  (take),
      .va_i     (taken.pkt.va[31:0]),
      .len_i    (taken.pkt.len),
      .msg_len_i(taken.pkt.msg_len),
      .valid_o  (cover_in),
      .delta_o  (cover_made.delta),
      .whole_o  (cover_made.whole)
  );
  logic cover_room;
  weft_fifo #(
      .data_t(cover_t),
      .Depth (Ahead)
  ) u_covers (
      .clk_i,
      .rst_i,
      .s_valid_i(cover_in),
      .s_ready_o(cover_room),
      .s_data_i (cover_made),
      .m_valid_o(cover_valid),
      .m_ready_i(in_take),
      .m_data_o (placed),
      .count_o  ()
  );
  `WEFT_IMPLIES(CoverHasRoom, cover_in, cover_room);

  wire begin_packet = state_q == StIdle && in_valid && cover_valid;
  assign in_take  = begin_packet;
  assign cfg_take = state_q == StIdle && cfg_wait && in_count == '0;

  // ---- tables -----------------------------------------------------------------------------------
  rx_commit_t pkt_q;
  cover_t cover_q;
  pidx_t port_q;
  (* ram_style = "block" *) open_t open_mem[NumConns*MSG_WINDOW];
  // as read; nothing else loads open_q, so that it is the RAM's output register
  open_t open_q, open_d;
  open_t drain_q;  // the message that completes
  logic  open_we;
  logic [ConnW+WinW-1:0] open_wa, open_ra;
  conn_row_t row_mem[NumConns];
  conn_row_t row_q, row_d;
  logic row_we;
  logic [15:0] life_mem[NumConns];  // incarnation of the last valid CfgConn
  logic [15:0] life_q;
  wire cidx_t c = cidx_t'(pkt_q.conn);

  // ---- count ------------------------------------------------------------------------------------
  wire [15:0] ahead = pkt_q.msg_no - row_q.head;
  wire [32:0] from_first = pkt_q.va - open_q.first;
  logic ended_q, oldest_q, contradicts_q, lowest_q;
  logic [31:0] bytes_q, sum_q;
  logic [32:0] left_q;  // bytes of the message still to come; negative: more than it has
  always_ff @(posedge clk_i) begin
    if (state_q == StCount) begin
      ended_q <= ended[c] || life_q != pkt_q.incarnation;
      oldest_q <= pkt_q.msg_no == row_q.head;
      contradicts_q <= |ahead[15:WinW] || open_q.done ||
          (open_q.busy && (open_q.msg_len != pkt_q.msg_len || open_q.signal != pkt_q.signal));
      lowest_q <= !open_q.busy || from_first[32];
      bytes_q <= open_q.bytes + 32'(pkt_q.len);
      left_q <= 33'(pkt_q.msg_len) - 33'(open_q.bytes) - 33'(pkt_q.len);
      sum_q <= open_q.sum + cover_q.delta;
    end
  end

  // ---- judge ------------------------------------------------------------------------------------
  wire complete = left_q == '0;
  wire covered = sum_q == open_d.whole;
  wire bad = contradicts_q || left_q[32] || (complete && !covered);
  wire refused = ended_q || row_q.failed || pkt_q.mem_error || bad;
  wire counted = state_q == StJudge && !refused;
  wire fails = state_q == StJudge && !ended_q && !row_q.failed && (pkt_q.mem_error || bad);
  wire drains = counted && complete && oldest_q;
  wire sig_room = !sig_valid_o || sig_ready_i;
  wire drained = state_q == StDrainTest && !open_q.done;

  always_comb begin
    open_we = 1'b0;
    open_wa = {c, pkt_q.msg_no[WinW-1:0]};
    open_ra = {c, state_q == StRead ? pkt_q.msg_no[WinW-1:0] : row_q.head[WinW-1:0]};
    open_d = '{
        busy: 1'b1,
        done: complete,
        signal: pkt_q.signal,
        sem: pkt_q.sem,
        value: pkt_q.value,
        msg_len: pkt_q.msg_len,
        bytes: bytes_q,
        first: lowest_q ? pkt_q.va : open_q.first,
        sum: sum_q,
        whole: lowest_q ? cover_q.whole : open_q.whole
    };
    row_we = 1'b0;
    row_d  = '{failed: row_q.failed, head: row_q.head + 16'd1};
    unique case (state_q)
      StClear: begin
        open_we = 1'b1;
        open_wa = clear_q;
        open_d  = '0;
        row_we  = 1'b1;
        row_d   = '0;
      end
      StJudge: begin
        open_we = !refused;
        row_we  = fails;
        row_d   = '{failed: 1'b1, head: row_q.head};
      end
      StDrain: begin
        open_we = sig_room;
        open_wa = {c, row_q.head[WinW-1:0]};
        open_d  = '0;
        row_we  = sig_room;
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (open_we) open_mem[open_wa] <= open_d;
    if (state_q == StRead || state_q == StDrainRead) open_q <= open_mem[open_ra];
    if (state_q == StJudge) drain_q <= open_d;
    else if (state_q == StDrainTest) drain_q <= open_q;
    if (row_we) row_mem[state_q == StClear ? clear_q[WinW+:ConnW] : c] <= row_d;
    if (state_q == StRead) row_q <= row_mem[c];
    else if (state_q == StDrain && sig_room) row_q.head <= row_q.head + 16'd1;
    if (cfg_q && cfg_valid_q) life_mem[cfg_conn_q] <= cfg_incarnation_q;
    if (state_q == StRead) life_q <= life_mem[c];
    if (begin_packet) begin
      pkt_q   <= in.pkt;
      port_q  <= in.port;
      cover_q <= placed;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q <= StClear;
      all_q <= 1'b1;
      clear_q <= '0;
      sig_valid_o <= 1'b0;
    end else begin
      if (sig_ready_i) sig_valid_o <= 1'b0;
      unique case (state_q)
        StClear: begin
          clear_q <= clear_q + 1'b1;
          if (all_q ? clear_q == {ConnW'(NumConns - 1), WinW'(MSG_WINDOW - 1)} : &clear_q[WinW-1:0])
            state_q <= StIdle;
        end
        StIdle: begin
          all_q   <= 1'b0;
          clear_q <= {cfg_conn, WinW'(0)};
          if (cfg_take) state_q <= StClear;
          else if (begin_packet) state_q <= StRead;
        end
        StRead: state_q <= StCount;
        StCount: state_q <= StJudge;
        StJudge: state_q <= drains ? StDrain : StIdle;
        StDrain:
        if (sig_room) begin
          state_q <= StDrainRead;
          if (drain_q.signal) sig_valid_o <= 1'b1;
        end
        StDrainRead: state_q <= StDrainTest;
        StDrainTest: state_q <= open_q.done ? StDrain : StIdle;
        default: state_q <= StIdle;
      endcase
    end
    if (state_q == StDrain && sig_room) sig_o <= '{sem: drain_q.sem, value: drain_q.value};
  end

  // ---- verdict ----------------------------------------------------------------------------------
  wire decided = (state_q == StJudge && !drains) || drained;
  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < NumPorts; p++) begin
      verdict_valid_o[p] <= decided && port_q == pidx_t'(p) && !rst_i;
    end
    if (state_q == StJudge) begin
      verdict_o.refused <= refused;
      verdict_o.reason <= ended_q ? DropIncarnation : row_q.failed ? DropStream :
                          pkt_q.mem_error ? DropMem : DropMsg;
    end
    fail_valid_o <= fails && !rst_i;
    if (state_q == StJudge) begin
      fail_o <= '{conn: pkt_q.conn, status: pkt_q.mem_error ? ErrRemoteMem : ErrBadLength};
    end
  end

  assign evt_msg_o = state_q == StDrain && sig_room;
  assign evt_bad_o = state_q == StJudge && refused && !ended_q;
  assign idle_o = (state_q == StIdle || (state_q == StClear && !all_q)) && in_count == '0 &&
                  !(|commit_valid_i) && !sig_valid_o;

  `WEFT_NEXT(SigHolds, sig_valid_o && !sig_ready_i, sig_valid_o && $stable(sig_o));
  `WEFT_IMPLIES(KnownConn, begin_packet, 32'(in.pkt.conn) < NumConns);
  `WEFT_IMPLIES(ClearsNothingUnderWay, state_q == StClear, in_count == '0);
endmodule
`default_nettype wire
