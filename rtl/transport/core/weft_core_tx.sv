// SPDX-License-Identifier: Apache-2.0
// Sender's side of the shared core: keeps the messages of every connection in posting order, hands
// the next packet of a connection to whichever port asks (lost packets first), and completes
// messages in order when all their packets are delivered. One operation at a time, 4 cycles each
// (a pull answers 3 cycles after its operation, in a pipeline of its own; every further message
// that completes takes 3), so the tables are plain synchronous RAMs without forwarding.
// A message lives in the slot its tag names: the engine's window bounds how many there are. Places
// in the resend lists cannot run out, because no new packet leaves while as many packets are
// outstanding as there are places.
// A CfgConn write ends the connection's life, whatever is open or outstanding: its messages
// complete with FLUSHED, and its next request waits until the port written has reported the new
// life and all ports have given back the packets of the old one.
// Does not: choose paths or ports, know windows, time anything. See docs/core.md.
`default_nettype none
`include "weft_assert.svh"
module weft_core_tx
  import weft_pkg::*;
  import weft_wire_pkg::*;
#(
    parameter int unsigned NumPorts  = 2,
    parameter int unsigned NumConns  = 64,
    parameter int unsigned NumMsgs   = 256,
    // packets outstanding at most, all connections together; power of two
    parameter int unsigned NumResend = 2048
) (
    input wire  clk_i,
    input wire  rst_i,
    input cfg_t cfg_i,

    // Messages to send. ready depends on valid; the request must hold until taken.
    input  wire     req_valid_i,
    output logic    req_ready_o,
    input  tx_req_t req_i,

    // Their completions, in posting order within a connection.
    output logic cpl_valid_o,
    input  wire  cpl_ready_i,
    output cpl_t cpl_o,

    // A connection that had nothing to send now has: one event to every port.
    output logic  [NumPorts-1:0] avail_valid_o,
    input  wire   [NumPorts-1:0] avail_ready_i,
    output conn_t [NumPorts-1:0] avail_conn_o,

    // The next packet of a connection. One pull outstanding a port; its answer is a pulse.
    input  wire       [NumPorts-1:0] pull_valid_i,
    output logic      [NumPorts-1:0] pull_ready_o,
    input  conn_t     [NumPorts-1:0] pull_conn_i,
    output logic      [NumPorts-1:0] pull_rsp_valid_o,
    output pull_rsp_t                pull_rsp_o,

    // What became of a packet. Those of a connection that failed or was configured come back too.
    input  wire     [NumPorts-1:0] settle_valid_i,
    output logic    [NumPorts-1:0] settle_ready_o,
    input  settle_t [NumPorts-1:0] settle_i,

    // A connection failed: all its messages complete with the status given, later ones at once.
    // Status ErrOk: the port serves the connection as its last CfgConn says; one for each CfgConn.
    // Behind the port's settled packets of the life before.
    input  wire        [NumPorts-1:0] fail_valid_i,
    output logic       [NumPorts-1:0] fail_ready_o,
    input  conn_fail_t [NumPorts-1:0] fail_i,

    output logic evt_done_o,    // a message completed
    output logic evt_failed_o,  // a message completed with an error
    output logic evt_limit_o,   // a pull was put off because too many packets are outstanding
    output logic idle_o         // no message open, no packet outstanding, tables walked
);
  localparam int unsigned ConnW = $clog2(NumConns);
  localparam int unsigned MsgW = $clog2(NumMsgs);
  localparam int unsigned ResW = $clog2(NumResend);
  localparam int unsigned PortW = (NumPorts > 1) ? $clog2(NumPorts) : 1;
  if (NumResend != 1 << ResW) begin : gen_bad_resend
    $error("weft_core_tx: NumResend must be a power of two");
  end
  if (NumConns != 1 << ConnW) begin : gen_bad_conns
    $error("weft_core_tx: NumConns must be a power of two");
  end

  typedef logic [ConnW-1:0] cidx_t;
  typedef logic [MsgW-1:0] midx_t;
  typedef logic [ResW-1:0] ridx_t;
  typedef logic [PortW-1:0] pidx_t;

  localparam int unsigned StartsW = 8;  // far more CfgConn than a port keeps waiting

  typedef struct packed {
    logic          failed;
    logic          closing;    // configured anew, but not all of the life before is back
    logic [StartsW-1:0] starts;  // CfgConn writes that their ports have not reported
    logic [ResW:0] out;        // packets at the ports
    err_e          status;
    logic [MsgW:0] open;       // messages not yet completed: the list head..tail
    midx_t         head;
    midx_t         tail;
    logic          cur_valid;  // cur is not sent out whole
    midx_t         cur;
    logic [23:0]   cur_pkt;    // its next packet
    logic [ResW:0] resends;    // packets in the resend list
    ridx_t         res_head;
    ridx_t         res_tail;
    logic [15:0]   msg_no;     // number of the next message
  } conn_st_t;

  typedef struct packed {
    logic [15:0] msg_no;
    logic [23:0] last_pkt;  // packets - 1
    logic        signal;
    sem_t        sem;
    logic [31:0] value;
    addr_t       laddr;
    addr_t       raddr;
    logic [31:0] rkey;
    logic [31:0] len;
  } msg_st_t;

  typedef enum logic [3:0] {
    StInit,       // after reset: connection states are cleared one by one
    StIdle,       // choose an operation
    StRead,       // its connection's state and its message's packet count are read
    StRead2,      // what that state points at is read
    StExec,       // compute and write back
    StComplete,   // the oldest message is delivered: complete it
    StNextRead,   // its successor is read
    StNextTest,   // and completes too if it is delivered
    StFlushRead,  // the end of a life: its oldest message and first resend are read
    StFlush       // and given up
  } state_e;

  typedef enum logic [2:0] {
    OpcCfg,
    OpcFail,
    OpcSettle,
    OpcPull,
    OpcReq
  } op_e;

  state_e               state_q;
  op_e                  op_q;
  pidx_t                port_q;
  cidx_t                c_q;
  midx_t                m_q;  // message of a settle or request
  tx_req_t              req_q;
  settle_t              set_q;
  err_e                 fail_status_q;
  cidx_t                init_q;
  logic        [ResW:0] out_q;  // packets outstanding: unsettled at a port, or in a resend list
  logic        [MsgW:0] open_q;  // messages open

  // ---- configuration ----------------------------------------------------------------------------
  logic cfg_pend, cfg_room;
  cidx_t cfg_conn;
  logic [3:0] mtu_q;
  wire cfg_conn_hit = cfg_i.valid && cfg_i.kind == CfgConn
      && 32'(cfg_i.index) < NumConns * NumPorts;
  wire cfg_take = state_q == StIdle && cfg_pend;
  cfg_global_t cfg_global;
  assign cfg_global = cfg_global_t'(cfg_i.data[$bits(cfg_global_t)-1:0]);

  always_ff @(posedge clk_i) begin
    if (rst_i) mtu_q <= 4'd12;
    else if (cfg_i.valid && cfg_i.kind == CfgGlobal) mtu_q <= cfg_global.mtu_log2;
  end

  // A flush waits for completions to be taken, but configuration does not wait: meanwhile every
  // connection may be written.
  weft_fifo #(
      .data_t(cidx_t),
      .Depth (2 * NumConns * NumPorts)
  ) u_cfg (
      .clk_i,
      .rst_i,
      .s_valid_i(cfg_conn_hit),
      .s_ready_o(cfg_room),
      .s_data_i (cidx_t'(cfg_i.index / 16'(NumPorts))),
      .m_valid_o(cfg_pend),
      .m_ready_i(cfg_take),
      .m_data_o (cfg_conn),
      .count_o  ()
  );

  // ---- choice: what frees resources first, then requests and pulls in turn ----------------------
  // flips with every operation: which end of the ports is looked at first
  logic                turn_q;
  logic                req_turn_q;  // the last of {request, pull} served was a pull
  logic [NumPorts-1:0] rsp_busy_q;  // this port's answer is on its way

  function automatic pidx_t pick(input logic [NumPorts-1:0] v, input logic from_top);
    pick = '0;
    for (int unsigned i = 0; i < NumPorts; i++) begin
      if (from_top) begin
        if (v[i]) pick = pidx_t'(i);
      end else begin
        if (v[NumPorts-1-i]) pick = pidx_t'(NumPorts - 1 - i);
      end
    end
  endfunction

  wire [NumPorts-1:0] pull_v = pull_valid_i & ~rsp_busy_q;
  wire pidx_t fail_p = pick(fail_valid_i, turn_q);
  wire pidx_t settle_p = pick(settle_valid_i, turn_q);
  wire pidx_t pull_p = pick(pull_v, turn_q);

  wire idle = state_q == StIdle && !cfg_pend;
  wire do_fail = idle && |fail_valid_i;
  wire do_settle = idle && !do_fail && |settle_valid_i;
  wire do_req = idle && !do_fail && !do_settle && req_valid_i && (req_turn_q || !(|pull_v));
  wire do_pull = idle && !do_fail && !do_settle && !do_req && |pull_v;

  for (genvar p = 0; p < NumPorts; p++) begin : gen_ready
    assign fail_ready_o[p]   = do_fail && fail_p == pidx_t'(p);
    assign settle_ready_o[p] = do_settle && settle_p == pidx_t'(p);
    assign pull_ready_o[p]   = do_pull && pull_p == pidx_t'(p);
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      fail_status_q <= fail_i[fail_p].status;
      set_q <= settle_i[settle_p];
      req_q <= req_i;
      m_q <= do_settle ? midx_t'(settle_i[settle_p].desc.msg) : midx_t'(req_i.tag);
      port_q <= pull_p;
      if (cfg_pend) begin
        op_q <= OpcCfg;
        c_q  <= cfg_conn;
      end else if (do_fail) begin
        op_q <= OpcFail;
        c_q  <= cidx_t'(fail_i[fail_p].conn);
      end else if (do_settle) begin
        op_q <= OpcSettle;
        c_q  <= cidx_t'(settle_i[settle_p].conn);
      end else if (do_req) begin
        op_q <= OpcReq;
        c_q  <= cidx_t'(req_i.conn);
      end else begin
        op_q <= OpcPull;
        c_q  <= cidx_t'(pull_conn_i[pull_p]);
      end
    end
  end

  // ---- tables: one write and one read port each -------------------------------------------------
  conn_st_t conn_mem[NumConns];
  // state of connection c_q: as read, then as the rounds of StComplete and StFlush leave it
  conn_st_t st_q;
  conn_st_t st_d;
  logic conn_we;
  always_ff @(posedge clk_i) begin
    if (state_q == StInit) conn_mem[init_q] <= '0;
    else if (conn_we) conn_mem[c_q] <= st_d;
    if (state_q == StRead) st_q <= conn_mem[c_q];
    else if (conn_we) st_q <= st_d;
  end

  // What StExec asks of the connection's state, worked out beside StRead2.
  logic started_q;  // it is no failure but a start
  logic over_q;     // this settled packet or start is the last that the old life waits for
  logic resend_q;   // there are resends
  logic flush_q;    // there is something to flush
  always_ff @(posedge clk_i) begin
    if (state_q == StRead2) begin
      started_q <= fail_status_q == ErrOk;
      over_q <= st_q.closing
          && st_q.starts == StartsW'(op_q == OpcFail) && st_q.out == (ResW + 1)'(op_q != OpcFail);
      resend_q <= st_q.resends != 0;
      flush_q <= st_q.open != 0 || st_q.resends != 0;
    end
  end

  logic [24:0] left_mem[NumMsgs];  // packets of a message not yet delivered
  logic [24:0] left_q, left_d;
  logic left_we;
  always_ff @(posedge clk_i) begin
    if (left_we) left_mem[m_q] <= left_d;
    if (state_q == StRead || state_q == StNextRead)
      left_q <= left_mem[state_q==StRead?m_q : st_q.head];
  end

  midx_t link_mem[NumMsgs];  // next message of the same connection
  midx_t link_q;
  logic  link_we;
  always_ff @(posedge clk_i) begin
    if (link_we) link_mem[st_q.tail] <= m_q;
    if (state_q == StRead2 || state_q == StNextRead || state_q == StFlushRead)
      link_q <= link_mem[state_q==StRead2&&op_q==OpcPull?st_q.cur : st_q.head];
  end

  msg_st_t msg_mem[NumMsgs];
  msg_st_t msg_q, msg_d;
  logic      msg_we;
  logic      rsp1_q;  // answer pipeline: its message is being read
  pkt_desc_t rsp_desc_q;
  always_ff @(posedge clk_i) begin
    if (msg_we) msg_mem[m_q] <= msg_d;
    if (state_q == StRead2 || rsp1_q) msg_q <= msg_mem[rsp1_q?midx_t'(rsp_desc_q.msg) : st_q.cur];
  end

  pkt_desc_t res_mem[NumResend];
  ridx_t res_link_mem[NumResend];  // next in a resend list, or in the stack of free places
  pkt_desc_t res_q;
  ridx_t res_link_q;
  logic res_push, res_pop;
  ridx_t               free_q;  // top of the stack of free places
  logic       [ResW:0] fresh_q;  // places never used yet start here: no initialisation walk
  wire                 fresh = !fresh_q[ResW];
  wire ridx_t          res_new = fresh ? fresh_q[ResW-1:0] : free_q;
  // A push links the old tail to the new place, a pop puts its place on the stack; never both at
  // once.
  wire                 res_link_we = res_pop || (res_push && resend_q);
  always_ff @(posedge clk_i) begin
    if (res_push) res_mem[res_new] <= set_q.desc;
    if (res_link_we)
      res_link_mem[res_pop?st_q.res_head : st_q.res_tail] <= res_pop ? free_q : res_new;
    if (state_q == StRead2 || state_q == StFlushRead) begin
      res_q <= res_mem[st_q.res_head];
      res_link_q <= res_link_mem[state_q==StRead2&&op_q==OpcSettle?free_q : st_q.res_head];
    end
    if (rst_i) fresh_q <= '0;
    else if (res_push && fresh) fresh_q <= fresh_q + 1'b1;
    if (res_pop) free_q <= st_q.res_head;
    else if (res_push && !fresh) free_q <= res_link_q;
  end

  // ---- execute ----------------------------------------------------------------------------------
  function automatic logic [23:0] shift_right(input logic [31:0] x, input logic [3:0] n);
    unique case (n)
      4'd8: shift_right = x[31:8];
      4'd9: shift_right = {1'b0, x[31:9]};
      4'd10: shift_right = {2'b0, x[31:10]};
      4'd11: shift_right = {3'b0, x[31:11]};
      default: shift_right = {4'b0, x[31:12]};
    endcase
  endfunction

  logic [31:0] len_m1_q;  // registered beside StRead: shortens the path into msg_mem
  always_ff @(posedge clk_i)
    if (state_q == StRead)
      len_m1_q <= req_q.len == 0 ? 32'd0 : req_q.len - 32'd1;
  wire [23:0] req_last = shift_right(len_m1_q, mtu_q);

  wire had_work = st_q.cur_valid || resend_q;
  wire cur_end = st_q.cur_pkt == msg_q.last_pkt;
  wire more_msgs = st_q.cur != st_q.tail;
  wire out_full = out_q[ResW];
  logic raise_avail, accept, reject, out_inc, out_dec, complete;
  pull_e rsp_kind;
  logic rsp_retx, rsp_more;

  logic cpl_valid_q;
  cpl_t cpl_q;
  wire  cpl_room = !cpl_valid_q || cpl_ready_i;

  always_comb begin
    st_d = st_q;
    conn_we = 1'b0;
    left_we = 1'b0;
    left_d = left_q - 25'd1;
    link_we = 1'b0;
    msg_we = 1'b0;
    msg_d = '{
        msg_no: st_q.msg_no,
        last_pkt: req_last,
        signal: req_q.signal,
        sem: req_q.sem,
        value: req_q.value,
        laddr: req_q.laddr,
        raddr: req_q.raddr,
        rkey: req_q.rkey,
        len: req_q.len
    };
    res_push = 1'b0;
    res_pop = 1'b0;
    raise_avail = 1'b0;
    accept = 1'b0;
    reject = 1'b0;
    complete = 1'b0;
    out_inc = 1'b0;
    out_dec = 1'b0;
    rsp_kind = PullNone;
    rsp_retx = 1'b0;
    rsp_more = 1'b0;
    unique case (state_q)
      StExec:
      unique case (op_q)
        OpcCfg: begin
          conn_we = 1'b1;
          st_d.failed = 1'b1;
          st_d.closing = 1'b1;
          st_d.starts = st_q.starts + 1'b1;
          st_d.status = ErrFlushed;
          st_d.cur_valid = 1'b0;
          st_d.msg_no = '0;  // the rest is empty behind the flush
        end
        OpcFail:
        if (started_q) begin
          conn_we = 1'b1;
          st_d.starts = st_q.starts - 1'b1;
          if (over_q) {st_d.failed, st_d.closing} = '0;
        end else begin
          conn_we = !st_q.failed;
          st_d.failed = 1'b1;
          st_d.status = fail_status_q;
          st_d.cur_valid = 1'b0;
        end
        OpcSettle: begin
          conn_we  = 1'b1;
          st_d.out = st_q.out - 1'b1;
          if (st_q.failed) begin
            out_dec = 1'b1;
            if (over_q) {st_d.failed, st_d.closing} = '0;
          end else if (set_q.lost) begin
            res_push = 1'b1;
            st_d.resends = st_q.resends + 1'b1;
            st_d.res_tail = res_new;
            if (!resend_q) st_d.res_head = res_new;
            raise_avail = !had_work;
          end else begin
            out_dec  = 1'b1;
            left_we  = 1'b1;
            complete = left_q == 25'd1 && st_q.head == m_q;
          end
        end
        OpcPull: begin
          st_d.out = st_q.out + 1'b1;  // written if a packet leaves
          if (resend_q) begin
            conn_we = 1'b1;
            res_pop = 1'b1;
            rsp_kind = PullPkt;
            rsp_retx = 1'b1;
            rsp_more = st_q.resends != 1 || st_q.cur_valid;
            st_d.resends = st_q.resends - 1'b1;
            st_d.res_head = res_link_q;
          end else if (st_q.cur_valid) begin
            rsp_kind = out_full ? PullRetry : PullPkt;
            rsp_more = !cur_end || more_msgs;
            conn_we = !out_full;
            out_inc = !out_full;
            st_d.cur_pkt = st_q.cur_pkt + 24'd1;
            if (cur_end) begin
              st_d.cur_pkt = '0;
              st_d.cur = link_q;
              st_d.cur_valid = more_msgs;
            end
          end
        end
        default: begin  // OpcReq
          reject = st_q.failed && !st_q.closing;
          accept = !st_q.failed || (reject && cpl_room);
          if (!st_q.failed) begin
            conn_we = 1'b1;
            msg_we = 1'b1;
            left_we = 1'b1;
            left_d = {1'b0, req_last} + 25'd1;
            link_we = st_q.open != 0;
            st_d.open = st_q.open + 1'b1;
            st_d.msg_no = st_q.msg_no + 16'd1;
            st_d.tail = m_q;
            if (st_q.open == 0) st_d.head = m_q;
            if (!st_q.cur_valid) begin
              st_d.cur_valid = 1'b1;
              st_d.cur = m_q;
              st_d.cur_pkt = '0;
            end
            raise_avail = !had_work;
          end
        end
      endcase
      StComplete:
      if (cpl_room) begin
        conn_we   = 1'b1;
        st_d.open = st_q.open - 1'b1;
        st_d.head = link_q;
      end
      StFlush:
      if (cpl_room) begin
        conn_we = 1'b1;
        if (st_q.resends != 0) begin
          res_pop = 1'b1;
          out_dec = 1'b1;
          st_d.resends = st_q.resends - 1'b1;
          st_d.res_head = res_link_q;
        end
        if (st_q.open != 0) begin
          st_d.open = st_q.open - 1'b1;
          st_d.head = link_q;
        end
      end
      default: ;
    endcase
  end

  assign req_ready_o = accept;
  wire cpl_flush = state_q == StFlush && st_q.open != 0;
  wire midx_t cpl_msg = reject ? m_q : st_q.head;
  wire cpl_put = cpl_room && (state_q == StComplete || cpl_flush || reject);
  assign cpl_valid_o = cpl_valid_q;
  assign cpl_o = cpl_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) cpl_valid_q <= 1'b0;
    else if (cpl_room) cpl_valid_q <= cpl_put;
    if (cpl_put)
      cpl_q <= '{tag: tag_t'(cpl_msg), status: state_q == StComplete ? ErrOk : st_q.status};
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q <= StInit;
      init_q <= '0;
      turn_q <= 1'b0;
      req_turn_q <= 1'b0;
      out_q <= '0;
      open_q <= '0;
    end else begin
      unique case (state_q)
        StInit: begin
          init_q <= init_q + 1'b1;
          if (init_q == cidx_t'(NumConns - 1)) state_q <= StIdle;
        end
        StIdle:
        if (cfg_pend || do_fail || do_settle || do_req || do_pull) begin
          state_q <= StRead;
          turn_q  <= !turn_q;
          if (do_req || do_pull) req_turn_q <= do_pull;
        end
        StRead: state_q <= StRead2;
        StRead2: state_q <= StExec;
        StExec:
        if (complete) state_q <= StComplete;
        else if (flush_q && (op_q == OpcCfg || (op_q == OpcFail && !started_q)))
          state_q <= StFlushRead;
        else if (!reject || cpl_room) state_q <= StIdle;
        StComplete: if (cpl_room) state_q <= st_q.open == 1 ? StIdle : StNextRead;
        StNextRead: state_q <= StNextTest;
        StNextTest: state_q <= left_q == 0 ? StComplete : StIdle;
        StFlushRead: state_q <= StFlush;
        StFlush:
        if (cpl_room) state_q <= st_q.open <= 1 && st_q.resends <= 1 ? StIdle : StFlushRead;
        default: state_q <= StIdle;
      endcase
      if (out_inc != out_dec) out_q <= out_inc ? out_q + 1'b1 : out_q - 1'b1;
      if (left_we && op_q == OpcReq) open_q <= open_q + 1'b1;
      else if (cpl_room && (state_q == StComplete || cpl_flush)) open_q <= open_q - 1'b1;
    end
  end

  assign idle_o = state_q != StInit && out_q == 0 && open_q == 0;
  assign evt_done_o = cpl_put && state_q == StComplete;
  assign evt_failed_o = cpl_put && state_q != StComplete;
  assign evt_limit_o = state_q == StExec && op_q == OpcPull && rsp_kind == PullRetry;

  // ---- the answer to a pull: read the message, then add the packet's offset ---------------------
  logic rsp2_q, rsp3_q;
  pidx_t rsp_port_q;
  pull_e rsp_kind_q;
  logic rsp_retx_q, rsp_more_q;
  logic [31:0] rsp_off_q;
  wire rsp_go = state_q == StExec && op_q == OpcPull;

  function automatic logic [31:0] shift_left(input logic [23:0] x, input logic [3:0] n);
    unique case (n)
      4'd8: shift_left = {x, 8'b0};
      4'd9: shift_left = {x[22:0], 9'b0};
      4'd10: shift_left = {x[21:0], 10'b0};
      4'd11: shift_left = {x[20:0], 11'b0};
      default: shift_left = {x[19:0], 12'b0};
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      rsp1_q <= 1'b0;
      rsp2_q <= 1'b0;
      rsp3_q <= 1'b0;
      rsp_busy_q <= '0;
    end else begin
      rsp1_q <= rsp_go;
      rsp2_q <= rsp1_q;
      rsp3_q <= rsp2_q;
      if (do_pull) rsp_busy_q[pull_p] <= 1'b1;
      if (rsp3_q) rsp_busy_q[rsp_port_q] <= 1'b0;
    end
    if (rsp_go) begin
      rsp_port_q <= port_q;
      rsp_kind_q <= rsp_kind;
      rsp_retx_q <= rsp_retx;
      rsp_more_q <= rsp_more;
      rsp_desc_q <= rsp_retx ? res_q : '{msg: msg_t'(st_q.cur), pkt: st_q.cur_pkt, len: '0};
    end
    if (rsp1_q) rsp_off_q <= shift_left(rsp_desc_q.pkt, mtu_q);
    if (rsp2_q) begin
      pull_rsp_o <= '{
          kind: rsp_kind_q,
          desc: '{
              msg: rsp_desc_q.msg,
              pkt: rsp_desc_q.pkt,
              len:
              rsp_desc_q.pkt
              ==
              msg_q.last_pkt
              ?
              plen_t'(msg_q.len - rsp_off_q)
              :
              plen_t
              '(
              1
              ) <<
              mtu_q
          },
          retx: rsp_retx_q,
          more: rsp_more_q,
          signal: msg_q.signal,
          laddr: msg_q.laddr + 64'(rsp_off_q),
          raddr: msg_q.raddr + 64'(rsp_off_q),
          rkey: msg_q.rkey,
          stream: 16'd0,
          msg_no: msg_q.msg_no,
          msg_len: msg_q.len,
          sem: msg_q.sem,
          value: msg_q.value
      };
    end
  end
  for (genvar p = 0; p < NumPorts; p++) begin : gen_rsp
    assign pull_rsp_valid_o[p] = rsp3_q && rsp_port_q == pidx_t'(p);
  end

  // ---- avail events: a queue a port, each connection in it once ---------------------------------
  for (genvar p = 0; p < NumPorts; p++) begin : gen_avail
    logic [NumConns-1:0] in_q;
    logic push, pop;
    cidx_t conn;
    assign push = raise_avail && (!in_q[c_q] || (pop && conn == c_q));
    assign pop = avail_valid_o[p] && avail_ready_i[p];
    assign avail_conn_o[p] = conn_t'(conn);
    always_ff @(posedge clk_i) begin
      if (rst_i) in_q <= '0;
      else begin
        if (pop) in_q[conn] <= 1'b0;
        if (push) in_q[c_q] <= 1'b1;
      end
    end
    logic room;
    weft_fifo #(
        .data_t(cidx_t),
        .Depth (2 * NumConns)
    ) u_queue (
        .clk_i,
        .rst_i,
        .s_valid_i(push),
        .s_ready_o(room),
        .s_data_i (c_q),
        .m_valid_o(avail_valid_o[p]),
        .m_ready_i(avail_ready_i[p]),
        .m_data_o (conn),
        .count_o  ()
    );
    `WEFT_ASSERT(AvailNeverLost, !push || room);
  end

  `WEFT_ASSERT(WindowKept,
               state_q != StExec || op_q != OpcReq || st_q.failed || 32'(st_q.open) < MSG_WINDOW);
  `WEFT_ASSERT(OutNeverBelowZero, !out_dec || out_q != 0);
  `WEFT_ASSERT(SettledWasOut, state_q != StExec || op_q != OpcSettle || st_q.out != 0);
  `WEFT_ASSERT(StartsCounted, state_q != StExec || op_q != OpcCfg || !(&st_q.starts));
  `WEFT_ASSERT(StartsAfterConfig,
               state_q != StExec || op_q != OpcFail || !started_q || st_q.starts != 0);
  `WEFT_IMPLIES(CfgQueueHolds, cfg_conn_hit, cfg_room);
  `WEFT_ASSERT(SettledWasOpen,
               state_q != StExec || op_q != OpcSettle || set_q.lost || st_q.failed || left_q != 0);
endmodule
`default_nettype wire
