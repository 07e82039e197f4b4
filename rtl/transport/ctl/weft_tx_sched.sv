// SPDX-License-Identifier: Apache-2.0
//
// Scheduler of a port: which connection and which path the next packet takes (docs/congestion.md,
// "Scheduler"). Owns the bytes in flight, the PSNs, and the ready queue.
//
// One operation at a time, four cycles each (read, mux, calculate, write), so the tables are plain
// synchronous RAMs without forwarding: an answered pull, an applied ack, an expired timer, a tail
// probe, an avail event, the load of a connection. Of the connection being served, weft_tx_rows
// shows all paths and is always picking the one with most room: a pull needs one cycle and reserves
// a full packet; the answer corrects that. So the next pull leaves when the last is answered: 6
// cycles a packet with a core that answers in 3. Long operations (weft_tx_life: start, failure, new
// cap) stop the others. For the first two the settle engine is held and drained before, so no
// result of a connection's former life meets the new one. Configuration is in weft_tx_setup.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_sched
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_ctl_pkg::*;
#(
    parameter  int unsigned Port         = 0,
    parameter  int unsigned NumPorts     = 2,
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    parameter  int unsigned PoolDepth    = 1024,
    parameter  int unsigned QuotaBytes   = 16384,  // a connection's turn while others wait
    localparam int unsigned ConnW        = (NumConns > 1) ? $clog2(NumConns) : 1,
    localparam int unsigned PathW        = (PathsPerPort > 1) ? $clog2(PathsPerPort) : 1,
    localparam int unsigned KeyW         = ConnW + PathW,
    localparam int unsigned DescW        = $clog2(PoolDepth)
) (
    input  wire    clk_i,
    input  wire    rst_i,
    input  cfg_t   cfg_i,
    output full_t  pkt_o,
    output rtt_t   probe_min_o,
    output rtt_t   rtt_init_o,

    // A connection has something to send.
    input  wire   avail_valid_i,
    output logic  avail_ready_o,
    input  conn_t avail_conn_i,

    // Ask for its next packet. One answer a pull, 3 cycles later at least, taken at once.
    output logic      pull_valid_o,
    input  wire       pull_ready_i,
    output conn_t     pull_conn_o,
    input  wire       pull_rsp_valid_i,
    input  pull_rsp_t pull_rsp_i,

    output logic    job_valid_o,
    input  wire     job_ready_i,
    output tx_job_t job_o,

    // The builder could not read a packet's payload: its connection fails. A pulse may be missed
    // while the one before waits; the packet is lost then, is resent and read again.
    input wire   err_valid_i,
    input conn_t err_conn_i,

    output logic       fail_valid_o,
    input  wire        fail_ready_i,
    output conn_fail_t fail_o,

    // Settle engine.
    output logic                  hold_o,
    input  wire                   quiet_i,
    input  wire                   lossy_i,
    input  wire                   alloc_ok_i,
    input  wire       [DescW-1:0] alloc_i,
    output logic                  append_o,
    output logic      [DescW-1:0] tail_o,
    output psn_t                  append_psn_o,
    output pkt_desc_t             append_desc_o,
    output logic                  next_we_o,
    output logic       [KeyW-1:0] next_key_o,
    output psn_t                  next_psn_o,
    output logic                  cmd_o,
    output logic       [KeyW-1:0] cmd_key_o,
    output logic                  cmd_init_o,   // else the end of a failed connection
    output logic                  cmd_live_o,
    output psn_t                  cmd_psn_o,
    input  wire                   cmd_done_i,

    // Windows: the prepared ack, and the starts.
    input  wire         prep_valid_i,
    input  ack_result_t res_i,
    input  wire         prep_fresh_i,
    input  wire         prep_newmin_i,
    input  rtt_t        prep_rtt_i,
    input  bytes_t      prep_cwnd_i,
    input  bytes_t      prep_grown_i,
    input  bytes_t      prep_kept_i,
    output logic        apply_o,
    output logic        apply_drop_o,
    output logic        apply_limited_o,
    output bytes_t      apply_cwnd_o,
    output logic        init_path_o,
    output logic        init_zero_o,
    output logic        init_conn_o,
    output logic [KeyW-1:0] init_key_o,
    output bytes_t      init_cwnd_o,

    // Timers.
    output logic            set_o,
    output logic [KeyW-1:0] set_key_o,
    output logic            set_armed_o,
    output logic            set_probing_o,
    output logic     [ 1:0] set_backoff_o,
    input  wire             fire_valid_i,
    output logic            fire_ready_o,
    input  wire  [KeyW-1:0] fire_key_i,

    output logic  idle_o,
    output logic  evt_data_o,
    output plen_t evt_bytes_o,
    output logic  evt_retx_o,
    output logic  evt_probe_tail_o,
    output logic  evt_probe_timer_o,
    output logic  evt_probe_again_o,
    output logic  evt_probe_copy_o,
    output logic  evt_pull_none_o,
    output logic  evt_pull_retry_o,
    output logic  evt_fail_o
);

  localparam int unsigned NumKeys = NumConns << PathW;
  localparam int unsigned PickAge = (PathW > 2) ? PathW + 1 : 3;  // write to pick, with one read
  localparam int unsigned QuotaW = $clog2(QuotaBytes / 64) + 2;
  localparam int unsigned RetryWait = 16;  // cycles without pulls after one was put off
  // Initialisations wait while the tables are cleared after reset and while packets are given back
  // to the core, which takes one in 8 cycles; a connection is written every 64 cycles at most.
  localparam int unsigned InitDepth = (NumKeys + 8 * PoolDepth) / 64 + 16;

  if ((QuotaBytes & (QuotaBytes - 1)) != 0 || QuotaBytes < 4096) begin : gen_bad_quota
    $error("weft_tx_sched: QuotaBytes must be a power of two, 4096 at least");
  end

  typedef logic [ConnW-1:0] cidx_t;
  typedef logic [PathW-1:0] pidx_t;
  typedef logic [KeyW-1:0] key_t;

  typedef struct packed {       // of a path: what sending needs
    psn_t              next;
    logic [DescW-1:0]  tail;    // its list's empty descriptor
    logic [7:0]        epoch;
    logic              last_probe;  // the last PSN was a probe's
    logic              probed;  // a probe left since the path was last heard of
    logic [7:0]        unans;   // timeouts with a probe out since then
  } path_st_t;

  typedef struct packed {       // of a connection
    logic                    live;
    logic                    more;    // something to send, as far as known
    logic                    queued;  // waits in the ready queue
    logic [PathsPerPort-1:0] fresh;   // paths never used: they start with the window of that day
    logic [7:0]              active;
    bytes_t                  cap;
    bytes_t                  inflight;
  } hot_t;

  typedef enum logic [2:0] {
    StReset,  // every path gets its own descriptor, no connection is live
    StIdle,   // choose; the tables are read
    StMux,    // this path's part of what was read
    StCalc,
    StWrite,
    StLong    // weft_tx_life is at work
  } state_e;

  typedef enum logic [2:0] {
    OpcRsp,
    OpcAck,
    OpcTimer,
    OpcTail,
    OpcAvail,
    OpcLoad
  } op_e;

  // ---- configuration ----------------------------------------------------------------------------
  full_t mtu;
  logic [7:0] retry_less;
  logic init_valid, init_pop;
  cidx_t init_conn;
  setup_t setup_rd;
  logic lg_read;
  key_t lg_key;
  weft_tx_setup #(
      .Port        (Port),
      .NumPorts    (NumPorts),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort),
      .InitDepth   (InitDepth)
  ) u_setup (
      .clk_i,
      .rst_i,
      .cfg_i,
      .mtu_o       (mtu),
      .pkt_o,
      .retry_less_o(retry_less),
      .probe_min_o,
      .rtt_init_o,
      .init_valid_o(init_valid),
      .init_ready_i(init_pop),
      .init_conn_o (init_conn),
      .re_i        (lg_read),
      .conn_i      (lg_key[KeyW-1:PathW]),
      .setup_o     (setup_rd)
  );

  // ---- registers of the sequencer ---------------------------------------------------------------
  state_e state_q;
  op_e op_q;
  cidx_t conn_q;               // of the operation
  pidx_t path_q;
  logic is_cur_q;              // its connection is the one being served
  key_t reset_q;

  // The connection being served.
  logic cur_valid_q;
  cidx_t cur_conn_q;
  logic refresh_q;             // its rows were written in the last cycle, and are being read
  hot_t cur_q;
  logic cur_more_q;
  logic cur_avail_q;           // an avail event came while a pull was out: no "no more" from it
  logic reload_q;              // a load of the same connection: keep its turn
  logic [QuotaW-1:0] quota_q;  // in 64 bytes; negative: the turn is over
  logic [4:0] wait_q;          // cycles until pulls are allowed again
  logic [2:0] age_q;           // cycles until the pick reflects the registers
  logic [2:0] stale_q;         // cycles until a pull may trust it

  logic pull_busy_q;           // a pull is not answered
  pidx_t pull_path_q;
  logic rsp_valid_q;
  pidx_t rsp_path_q;
  pull_rsp_t rsp_q;
  wire rsp_pkt = rsp_q.kind == PullPkt;

  logic avail_valid_q;
  cidx_t avail_conn_q;
  logic err_valid_q, err_take;
  cidx_t err_conn_q;
  logic job_valid_q, job_again_q;
  tx_job_t job_q;

  logic cap_pend_q;            // the connection has a new smallest RTT
  cidx_t cap_conn_q;
  rtt_t cap_rtt_q;
  hot_t lg_hot_q;
  logic lg_was_cur_q;

  // ---- failures to serve ------------------------------------------------------------------------
  // Acks under way when the engine is held may add three.
  logic fail_push, fail_pend, fail_pop, fail_room;
  conn_fail_t fail_req;
  err_e fail_status;
  weft_fifo #(
      .data_t(conn_fail_t),
      .Depth (8)
  ) u_fail (
      .clk_i,
      .rst_i,
      .s_valid_i(fail_push),
      .s_ready_o(fail_room),
      .s_data_i ('{conn: err_take ? conn_t'(err_conn_q) : conn_t'(conn_q), status: fail_status}),
      .m_valid_o(fail_pend),
      .m_ready_i(fail_pop),
      .m_data_o (fail_req),
      .count_o  ()
  );

  // ---- ready queue ------------------------------------------------------------------------------
  logic ready_push, ready_pop, ready_valid, ready_room;
  cidx_t ready_conn, push_conn;
  weft_fifo #(
      .data_t(cidx_t),
      .Depth (NumConns)
  ) u_ready (
      .clk_i,
      .rst_i,
      .s_valid_i(ready_push),
      .s_ready_o(ready_room),
      .s_data_i (push_conn),
      .m_valid_o(ready_valid),
      .m_ready_i(ready_pop),
      .m_data_o (ready_conn),
      .count_o  ()
  );

  // ---- rows of the paths, and the pick ----------------------------------------------------------
  row_t row_rd, row_wr, win_row;
  logic row_we, do_op;
  key_t row_wkey;
  cidx_t rd_conn;
  pidx_t rd_path;
  logic cap_ok, win_ok, win_path_ok, tail_any;
  pidx_t win_path, tail_path;
  weft_tx_rows #(
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_rows (
      .clk_i,
      .we_i       (row_we),
      .wkey_i     (row_wkey),
      .wrow_i     (row_wr),
      .re_i       (do_op),
      .rkey_i     ({rd_conn, rd_path}),
      .row_o      (row_rd),
      .conn_i     (cur_conn_q),
      .refresh_i  (refresh_q),
      .pick_i     (age_q != '0),
      .active_i   (cur_q.active),
      .inflight_i (cur_q.inflight),
      .cap_i      (cur_q.cap),
      .pkt_i      (pkt_o),
      .cap_ok_o   (cap_ok),
      .ok_o       (win_ok),
      .path_o     (win_path),
      .path_row_o (win_row),
      .path_ok_o  (win_path_ok),
      .tail_o     (tail_any),
      .tail_path_o(tail_path)
  );

  // ---- choice -----------------------------------------------------------------------------------
  wire idle = state_q == StIdle && !reload_q;
  wire drain = fail_pend || init_valid;
  assign err_take = idle && !drain && err_valid_q;
  wire normal = idle && !drain && !cap_pend_q;
  wire job_free = !job_valid_q;
  wire picked = cur_valid_q && age_q == '0;    // the pick is exact
  // What it says may still be sent, if not on the best path.
  wire pickable = cur_valid_q && stale_q == '0 && !refresh_q;
  wire quota_out = quota_q[QuotaW-1];
  wire blocked = !win_ok || !cap_ok;

  wire do_pull = normal && pickable && cur_more_q && !blocked && alloc_ok_i && !pull_busy_q
      && (!rsp_valid_q || (job_free && rsp_pkt && rsp_q.more)) && wait_q == '0
      && !(quota_out && ready_valid);
  wire do_rsp = idle && !do_pull && rsp_valid_q && job_free;
  wire pull_idle = !pull_busy_q && !rsp_valid_q;
  wire do_cap = idle && cap_pend_q && pull_idle;
  wire do_long = idle && !cap_pend_q && drain && pull_idle && quiet_i && !prep_valid_i
      && !fail_valid_o;
  wire do_ack = idle && !do_pull && !do_rsp && !cap_pend_q && prep_valid_i;
  wire may_more = normal && !do_pull && !do_rsp && !do_ack;
  wire do_timer = may_more && fire_valid_i && job_free;
  wire do_tail = may_more && !do_timer && cur_valid_q && !cur_more_q && pull_idle && !refresh_q
      && tail_any && job_free;
  wire do_avail = may_more && !do_timer && !do_tail && avail_valid_q;
  wire turn_over = cur_more_q ? (blocked || quota_out) : !tail_any;
  wire may_turn = may_more && !do_timer && !do_tail && !do_avail && ready_valid;
  wire do_evict = may_turn && picked && pull_idle && turn_over;
  wire requeue = cur_more_q && !blocked;
  wire do_load = may_turn && !cur_valid_q;
  wire do_reload = state_q == StIdle && reload_q;

  assign fire_ready_o = do_timer;
  assign ready_pop = do_load;

  assign do_op = do_rsp || do_ack || do_timer || do_tail || do_avail || do_load || do_reload;
  always_comb begin
    rd_conn = cur_conn_q;
    rd_path = rsp_path_q;
    if (do_ack) begin
      rd_conn = cidx_t'(res_i.conn);
      rd_path = pidx_t'(res_i.path);
    end else if (do_timer) {rd_conn, rd_path} = fire_key_i;
    else if (do_tail) rd_path = tail_path;
    else if (do_avail) rd_conn = avail_conn_q;
    else if (do_load) rd_conn = ready_conn;
    if (state_q == StLong) {rd_conn, rd_path} = lg_key;
  end

  // ---- tables -----------------------------------------------------------------------------------
  logic rd_en;
  assign rd_en = do_op || lg_read || cmd_o;

  hot_t hot_rd, hot_wr;
  logic hot_we;
  cidx_t hot_wconn;
  weft_sdpram #(
      .data_t(hot_t),
      .Depth (NumConns),
      .Style ("block")
  ) u_hot (
      .clk_i,
      .we_i   (hot_we),
      .waddr_i(hot_wconn),
      .wdata_i(hot_wr),
      .re_i   (rd_en),
      .raddr_i(rd_conn),
      .rdata_o(hot_rd)
  );

  path_st_t st_rd, st_wr;
  logic st_we;
  key_t st_wkey;
  weft_sdpram #(
      .data_t(path_st_t),
      .Depth (NumKeys),
      .Style ("block")
  ) u_path (
      .clk_i,
      .we_i   (st_we),
      .waddr_i(st_wkey),
      .wdata_i(st_wr),
      .re_i   (rd_en),
      .raddr_i({rd_conn, rd_path}),
      .rdata_o(st_rd)
  );

  // ---- mux --------------------------------------------------------------------------------------
  row_t row_q;
  hot_t hot_q;
  path_st_t st_q;
  logic limited_q;
  bytes_t cand_q;              // window the ack wants
  room_t give_q;               // room given back, without the window
  bytes_t less_q;              // bytes no longer in flight
  wire full_t rsp_spare = rsp_pkt ? mtu - full_t'(rsp_q.desc.len) : pkt_o;  // reserved in vain

  // ---- calculate --------------------------------------------------------------------------------
  room_t room_q;               // room without the window
  bytes_t cwnd_q;              // window after an ack, 0 otherwise
  count_t open_q;
  bytes_t inflight_q;
  logic [7:0] unans_q;
  logic dead_q;                // retry limit
  logic act_q;                 // the operation finds what it came for
  psn_t psn_q;                 // PSN to use
  psn_t next_q;                // and the one after
  wire is_probe = op_q == OpcTimer || op_q == OpcTail;

  always_ff @(posedge clk_i) begin
    if (state_q == StMux) begin
      row_q <= row_rd;
      hot_q <= hot_rd;
      st_q <= st_rd;
      is_cur_q <= cur_valid_q && conn_q == cur_conn_q;
      limited_q <= row_rd.room[22];
      cand_q <= row_rd.room[22] ? prep_grown_i : prep_kept_i;
      give_q <= op_q == OpcRsp ? room_t'(rsp_spare)
          : op_q == OpcAck ? room_t'(res_i.bytes) - room_t'(prep_cwnd_i) : '0;
      less_q <= op_q == OpcRsp ? bytes_t'(rsp_spare) : bytes_t'(res_i.bytes);
    end
    if (state_q == StCalc) begin
      room_q <= row_q.room + give_q;
      cwnd_q <= op_q != OpcAck ? '0 : cand_q > hot_q.cap ? hot_q.cap : cand_q;
      inflight_q <= hot_q.inflight - less_q;
      // Below the limit of at most 255, so it cannot overflow.
      unans_q <= st_q.unans + 8'(op_q == OpcTimer && st_q.probed);
      dead_q <= op_q == OpcTimer && st_q.probed && st_q.unans >= retry_less;
      act_q <= hot_q.live && (op_q != OpcTimer || row_q.open != '0);
      psn_q <= st_q.next - psn_t'(is_probe && st_q.last_probe);
      next_q <= st_q.next + psn_t'(!(is_probe && st_q.last_probe));
      unique case (op_q)
        OpcRsp: open_q <= row_q.open - count_t'(!rsp_pkt);
        OpcAck: open_q <= row_q.open - res_i.psns;
        default: open_q <= row_q.open + count_t'(is_probe && !st_q.last_probe);
      endcase
    end
  end

  // ---- write ------------------------------------------------------------------------------------
  wire write = state_q == StWrite;
  wire send = write && op_q == OpcRsp && rsp_pkt;
  wire probe = write && is_probe && act_q && !dead_q;
  wire ack = write && op_q == OpcAck && act_q;
  wire avail = write && op_q == OpcAvail && act_q;
  wire push_other = (ack && hot_q.more && !hot_q.queued && !is_cur_q)
      || (avail && !hot_q.queued && !is_cur_q);
  wire room_t room_sum = room_q + room_t'(cwnd_q);

  // ---- long operations --------------------------------------------------------------------------
  logic lg_ends, lg_got, lg_path_we, lg_row_we, lg_hot_we;
  long_e lg_kind;
  setup_t lg_setup;
  bytes_t cap_value, cap_window;
  logic [7:0] cap_active;
  weft_tx_life #(
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_life (
      .clk_i,
      .rst_i,
      .start_i     (do_cap || do_long),
      .kind_i      (do_cap ? LgCap : fail_pend ? LgFail : LgInit),
      .conn_i      (cap_pend_q ? cap_conn_q : fail_pend ? cidx_t'(fail_req.conn) : init_conn),
      .status_i    (fail_req.status),
      .min_rtt_i   (cap_rtt_q),
      .pkt_i       (pkt_o),
      .ends_o      (lg_ends),
      .kind_o      (lg_kind),
      .key_o       (lg_key),
      .read_o      (lg_read),
      .got_o       (lg_got),
      .live_i      (hot_rd.live),
      .setup_i     (setup_rd),
      .fresh_i     (lg_hot_q.fresh),
      .cmd_o,
      .cmd_done_i,
      .quiet_i,
      .path_we_o   (lg_path_we),
      .row_we_o    (lg_row_we),
      .hot_we_o    (lg_hot_we),
      .setup_o     (lg_setup),
      .cap_o       (cap_value),
      .active_o    (cap_active),
      .window_o    (cap_window),
      .fail_valid_o,
      .fail_ready_i,
      .fail_o,
      .evt_fail_o
  );
  assign fail_pop = do_long && fail_pend;
  assign init_pop = do_long && !fail_pend;
  assign cmd_key_o = lg_key;
  assign cmd_init_o = lg_kind == LgInit;
  assign cmd_live_o = lg_kind == LgInit && lg_setup.valid;
  assign cmd_psn_o = lg_setup.psn;

  always_ff @(posedge clk_i) begin
    if (lg_got) begin
      lg_hot_q <= hot_rd;
      lg_was_cur_q <= cur_valid_q && cur_conn_q == lg_key[KeyW-1:PathW] && lg_kind != LgCap;
    end
  end

  // ---- what is written --------------------------------------------------------------------------
  always_comb begin
    row_we = (write && op_q == OpcRsp) || probe || ack;
    row_wkey = {conn_q, path_q};
    row_wr = '{
        tail: send || (row_q.tail && !probe && open_q != '0),
        open: open_q,
        room: room_sum
    };
    if (do_pull) begin
      row_we = 1'b1;
      row_wkey = {cur_conn_q, win_path};
      row_wr = '{
          tail: win_row.tail,
          open: win_row.open + count_t'(1),
          room: win_row.room - room_t'(pkt_o)
      };
    end
    if (lg_row_we) begin
      row_we = 1'b1;
      row_wkey = lg_key;
      row_wr = '{tail: 1'b0, open: '0, room: room_t'(cap_window) - room_t'(pkt_o)};
    end
  end

  always_comb begin
    hot_we = (write && op_q == OpcRsp) || ack || avail || (write && op_q == OpcLoad && !hot_q.live);
    hot_wconn = conn_q;
    hot_wr = hot_q;
    hot_wr.inflight = (op_q == OpcRsp || op_q == OpcAck) ? inflight_q : hot_q.inflight;
    hot_wr.more = hot_q.more || op_q == OpcAvail;
    hot_wr.queued = op_q == OpcLoad ? 1'b0 : (hot_q.queued || push_other);
    if (do_pull || do_evict) begin
      hot_we = 1'b1;
      hot_wconn = cur_conn_q;
      hot_wr = cur_q;
      hot_wr.more = cur_more_q;
      hot_wr.queued = requeue;
      if (do_pull) begin
        hot_wr.fresh[win_path] = 1'b0;
        hot_wr.inflight = cur_q.inflight + bytes_t'(pkt_o);
      end
    end
    if (lg_hot_we) begin
      hot_we = 1'b1;
      hot_wconn = lg_key[KeyW-1:PathW];
      hot_wr = lg_hot_q;
      hot_wr.queued = lg_hot_q.queued && !lg_was_cur_q;
      hot_wr.cap = cap_value;
      hot_wr.active = cap_active;
      if (lg_kind != LgCap) begin
        hot_wr.live = lg_kind == LgInit && lg_setup.valid;
        hot_wr.more = 1'b0;
        hot_wr.fresh = '1;
        hot_wr.inflight = '0;
      end
    end
    if (state_q == StReset) begin
      hot_we = 1'b1;
      hot_wconn = reset_q[KeyW-1:PathW];
      hot_wr = '0;
    end
  end

  always_comb begin
    st_we = send || probe || ack;
    st_wkey = {conn_q, path_q};
    st_wr = st_q;
    if (!ack) st_wr.next = next_q;
    if (send) st_wr.tail = alloc_i;
    if (!ack) st_wr.last_probe = probe;
    if (probe) begin
      st_wr.probed = 1'b1;
      st_wr.unans  = unans_q;
    end
    if (ack && prep_fresh_i) begin
      st_wr.probed = 1'b0;
      st_wr.unans  = '0;
    end
    if (lg_path_we) begin
      st_we = lg_kind == LgInit;
      st_wkey = lg_key;
      st_wr = '{next: lg_setup.psn, tail: st_rd.tail, default: '0};
    end
    if (state_q == StReset) begin
      st_we = 1'b1;
      st_wkey = reset_q;
      st_wr = '{tail: DescW'(reset_q), default: '0};
    end
  end

  assign ready_push = push_other || (do_evict && requeue);
  assign push_conn = write ? conn_q : cur_conn_q;

  // ---- settle engine, windows, timers -----------------------------------------------------------
  assign hold_o = drain || state_q == StReset || lg_kind != LgCap;
  assign append_o = send;
  assign tail_o = st_q.tail;
  assign append_psn_o = psn_q;
  assign append_desc_o = rsp_q.desc;
  assign next_we_o = send || probe || (lg_path_we && lg_kind == LgInit) || state_q == StReset;
  assign next_key_o = st_wkey;
  assign next_psn_o = st_wr.next;

  assign apply_o = write && op_q == OpcAck;
  assign apply_drop_o = !act_q;
  assign apply_limited_o = limited_q;
  assign apply_cwnd_o = cwnd_q;
  assign init_path_o = lg_row_we;
  assign init_zero_o = lg_kind == LgInit;
  assign init_conn_o = lg_hot_we && lg_kind == LgInit;
  assign init_key_o = lg_key;
  assign init_cwnd_o = cap_window;

  // Nothing is unsettled: disarm. (By an ack, a pull that came back empty, or found out late.)
  wire empty = (ack && open_q == '0) || (write && op_q == OpcRsp && !rsp_pkt && open_q == '0)
      || (write && op_q == OpcTimer && !act_q);
  wire rearm = ack && prep_fresh_i && st_q.unans != '0;
  assign set_o = send || probe || rearm || empty || lg_path_we;
  assign set_key_o = st_wkey;
  assign set_armed_o = send || probe || (rearm && !empty);
  assign set_probing_o = !send;
  assign set_backoff_o = (!probe || unans_q < 8'd4) ? 2'd0
      : unans_q >= 8'd6 ? 2'd3 : unans_q[1:0] + 2'd1;

  assign fail_push = (write && op_q == OpcTimer && act_q && dead_q)
      || (ack && res_i.status != ErrOk) || err_take;
  assign fail_status = err_take ? ErrMemError : op_q == OpcAck ? res_i.status : ErrRetryLimit;

  // ---- sequencer --------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q <= StReset;
      reset_q <= '0;
    end else begin
      unique case (state_q)
        StReset: begin
          reset_q <= reset_q + 1'b1;
          if (reset_q == key_t'(NumKeys - 1)) state_q <= StIdle;
        end
        StIdle: begin
          if (do_op) state_q <= StMux;
          if (do_cap || do_long) state_q <= StLong;
        end
        StMux: state_q <= StCalc;
        StCalc: state_q <= StWrite;
        StWrite: state_q <= StIdle;
        StLong: if (lg_ends) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
    end

    if (state_q == StIdle) begin
      op_q <= do_rsp ? OpcRsp : do_ack ? OpcAck : do_timer ? OpcTimer : do_tail ? OpcTail
          : do_avail ? OpcAvail : OpcLoad;
      conn_q <= rd_conn;
      path_q <= rd_path;
    end
  end

  // ---- the connection being served --------------------------------------------------------------
  wire loaded = write && op_q == OpcLoad;
  wire cur_write = do_pull || (write && is_cur_q);  // its state changes
  always_ff @(posedge clk_i) begin
    // The registers follow the table.
    if (loaded) cur_q <= hot_q;
    else if (hot_we && cur_write) begin
      cur_q.inflight <= hot_wr.inflight;
      cur_q.fresh <= hot_wr.fresh;
    end
    refresh_q <= loaded || cur_write;

    if (rst_i) begin
      cur_valid_q <= 1'b0;
      cur_more_q <= 1'b0;
      reload_q <= 1'b0;
      age_q <= '0;
      stale_q <= '0;
    end else begin
      if (do_load) cur_conn_q <= ready_conn;
      if (loaded) begin
        cur_valid_q <= hot_q.live;
        if (!reload_q) begin
          cur_more_q <= hot_q.more;
          quota_q <= QuotaW'(QuotaBytes / 64);
        end
        reload_q <= 1'b0;
      end
      if (do_evict || (lg_hot_we && lg_was_cur_q)) cur_valid_q <= 1'b0;
      if (lg_hot_we && lg_kind == LgCap && cur_valid_q) reload_q <= 1'b1;
      if (lg_hot_we && lg_was_cur_q) cur_more_q <= 1'b0;

      if (write && op_q == OpcRsp) begin
        cur_more_q <= (rsp_q.kind == PullRetry) || (rsp_pkt && rsp_q.more) || cur_avail_q;
        cur_avail_q <= 1'b0;
        if (rsp_q.kind == PullRetry) quota_q[QuotaW-1] <= 1'b1;
        else if (rsp_pkt && !quota_out)
          quota_q <= quota_q - QuotaW'(rsp_q.desc.len[12:6]) - QuotaW'(2);  // the headers: 96
      end
      if (do_pull && pull_idle) cur_avail_q <= 1'b0;
      if (avail && is_cur_q) begin
        cur_more_q  <= 1'b1;
        cur_avail_q <= !pull_idle;
      end

      // Most writes give room back: a path picked before may be sent on still. Not so after these.
      if (loaded || do_pull || (write && is_cur_q && (probe || room_sum[22])))
        stale_q <= 3'(PickAge);
      else if (stale_q != '0) stale_q <= stale_q - 1'b1;
      if (loaded || cur_write) age_q <= 3'(PickAge);
      else if (age_q != '0) age_q <= age_q - 1'b1;

      if (write && op_q == OpcRsp && rsp_q.kind == PullRetry) wait_q <= 5'(RetryWait);
      else if (wait_q != '0) wait_q <= wait_q - 1'b1;
    end
  end

  // ---- pull and its answer ----------------------------------------------------------------------
  assign pull_conn_o = conn_t'(cur_conn_q);
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      pull_valid_o <= 1'b0;
      pull_busy_q  <= 1'b0;
      rsp_valid_q  <= 1'b0;
    end else begin
      if (do_pull) pull_valid_o <= 1'b1;
      else if (pull_ready_i) pull_valid_o <= 1'b0;
      if (do_pull) pull_busy_q <= 1'b1;
      else if (pull_rsp_valid_i) pull_busy_q <= 1'b0;
      if (pull_rsp_valid_i) rsp_valid_q <= 1'b1;
      else if (write && op_q == OpcRsp) rsp_valid_q <= 1'b0;
    end
    if (do_pull) pull_path_q <= win_path;
    if (pull_rsp_valid_i) begin
      rsp_q <= pull_rsp_i;
      rsp_path_q <= pull_path_q;
    end
  end

  // ---- avail, jobs ------------------------------------------------------------------------------
  assign avail_ready_o = !avail_valid_q;
  assign job_valid_o = job_valid_q;
  assign job_o = job_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      avail_valid_q <= 1'b0;
      job_valid_q   <= 1'b0;
      job_again_q   <= 1'b0;
      cap_pend_q    <= 1'b0;
      err_valid_q   <= 1'b0;
    end else begin
      if (err_take) err_valid_q <= 1'b0;
      else if (err_valid_i) err_valid_q <= 1'b1;

      if (avail_valid_i && avail_ready_o) avail_valid_q <= 32'(avail_conn_i) < 32'(NumConns);
      else if (do_avail) avail_valid_q <= 1'b0;

      if (send || probe) begin
        job_valid_q <= 1'b1;
        job_again_q <= probe && op_q == OpcTail && lossy_i;
      end else if (job_ready_i) begin
        job_valid_q <= job_valid_q && job_again_q;
        job_again_q <= 1'b0;
      end

      if (ack && prep_newmin_i) cap_pend_q <= 1'b1;
      else if (do_cap) cap_pend_q <= 1'b0;
    end
    if (!err_valid_q) err_conn_q <= cidx_t'(err_conn_i);
    if (avail_valid_i && avail_ready_o) avail_conn_q <= cidx_t'(avail_conn_i);
    if (ack && prep_newmin_i) begin
      cap_conn_q <= conn_q;
      cap_rtt_q  <= prep_rtt_i;
    end
    if (send || probe)
      job_q <= '{
          probe: probe,
          conn: conn_t'(conn_q),
          path: path_t'(path_q),
          epoch: st_q.epoch,
          psn: psn_q,
          len: probe ? '0 : rsp_q.desc.len,
          retx: !probe && rsp_q.retx,
          more: !probe && rsp_q.more,
          signal: rsp_q.signal,
          laddr: rsp_q.laddr,
          raddr: rsp_q.raddr,
          rkey: rsp_q.rkey,
          stream: rsp_q.stream,
          msg_no: rsp_q.msg_no,
          msg_len: rsp_q.msg_len,
          sem: rsp_q.sem,
          value: rsp_q.value
      };
  end

  assign idle_o = idle && !drain && !cap_pend_q && !ready_valid && !avail_valid_q && !job_valid_q
      && pull_idle && !(cur_valid_q && cur_more_q) && !fail_valid_o && !err_valid_q;

  always_ff @(posedge clk_i) begin
    evt_data_o <= send && !rst_i;
    evt_bytes_o <= send && !rst_i ? rsp_q.desc.len : '0;
    evt_retx_o <= send && rsp_q.retx && !rst_i;
    evt_probe_tail_o <= probe && op_q == OpcTail && !rst_i;
    evt_probe_timer_o <= probe && op_q == OpcTimer && !rst_i;
    evt_probe_again_o <= probe && st_q.last_probe && !rst_i;
    evt_probe_copy_o <= job_valid_q && job_again_q && job_ready_i && !rst_i;
    evt_pull_none_o <= write && op_q == OpcRsp && rsp_q.kind == PullNone && !rst_i;
    evt_pull_retry_o <= write && op_q == OpcRsp && rsp_q.kind == PullRetry && !rst_i;
  end

  `WEFT_IMPLIES(FailQueueHolds, fail_push, fail_room);
  `WEFT_IMPLIES(ReadyQueueHolds, ready_push, ready_room);
  `WEFT_IMPLIES(OneAnswerAPull, pull_rsp_valid_i, pull_busy_q && !pull_valid_o);
  `WEFT_IMPLIES(AnswerHasRoom, pull_rsp_valid_i, !rsp_valid_q || (write && op_q == OpcRsp));
  `WEFT_IMPLIES(PacketFits, send, rsp_q.desc.len <= mtu);
  `WEFT_IMPLIES(ProbeHasPsn, probe && !st_q.last_probe, row_q.open < count_t'(HIST_BITS));
  `WEFT_IMPLIES(OpenBounded, row_we, row_wr.open <= count_t'(HIST_BITS));
  `WEFT_IMPLIES(PickHolds, do_pull, win_path_ok);
  `WEFT_IMPLIES(InflightNotNegative, ack || (write && op_q == OpcRsp), hot_q.inflight >= less_q);
  `WEFT_IMPLIES(SettledWasOpen, ack, row_q.open >= res_i.psns);
  `WEFT_HOLD(PullHolds, pull_valid_o, pull_ready_i, pull_conn_o);
  `WEFT_HOLD(JobHolds, job_valid_o, job_ready_i, job_o);

endmodule

`default_nettype wire
