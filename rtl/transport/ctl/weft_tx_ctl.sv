// SPDX-License-Identifier: Apache-2.0
//
// Transmit control of a port: "what goes next". Chooses connection and path of every packet, keeps
// the windows, settles packets by acks, probes silent paths, gives up connections
// (docs/congestion.md).
//
// All streams are valid/ready; ready never depends on valid of the same stream. `pull_rsp_i` has no
// ready: an answer is always taken, one pull is outstanding at most. Latency avail -> pull about 15
// cycles, answer -> job 4. Throughput with open windows and a core that answers in 3: a packet
// every 6 cycles, every 8 with an ack for every second, every 11 with an ack for each. CfgGlobal
// comes before the first CfgConn and must not change the MTU while connections are live. Does not
// know addresses or messages, build frames, or fail over (a dead path fails its connection).
`default_nettype none

module weft_tx_ctl
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_ctl_pkg::*;
#(
    parameter int unsigned Port         = 0,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned PoolDepth    = 1024,  // NumConns * PathsPerPort of them hold no packet
    parameter int unsigned QuotaBytes   = 16384
) (
    input wire         clk_i,
    input wire         rst_i,
    input cfg_t        cfg_i,
    input wire  [31:0] now_i,

    // From the core: the connection has something to send (may repeat).
    input  wire   avail_valid_i,
    output logic  avail_ready_o,
    input  conn_t avail_conn_i,

    // To the core: its next packet, please. One answer a pull, 3 cycles later at least.
    output logic      pull_valid_o,
    input  wire       pull_ready_i,
    output conn_t     pull_conn_o,
    input  wire       pull_rsp_valid_i,
    input  pull_rsp_t pull_rsp_i,

    // To the core: what became of a data packet. Those of a connection that failed or was
    // configured anew come back as lost.
    output logic    settle_valid_o,
    input  wire     settle_ready_i,
    output settle_t settle_o,

    // To the core, when all of the connection's packets are back: it failed (once until it is
    // configured), or with ErrOk, it is what the last CfgConn says (once for each).
    output logic       fail_valid_o,
    input  wire        fail_ready_i,
    output conn_fail_t fail_o,

    // From the receiver: an ack, its connection and incarnation checked.
    input  wire  ack_valid_i,
    output logic ack_ready_o,
    input  ack_t ack_i,

    // To the frame builder.
    output logic    job_valid_o,
    input  wire     job_ready_i,
    output tx_job_t job_o,
    // From it, a pulse: the payload of a packet of this connection could not be read. Fails it.
    input  wire     err_valid_i,
    input  conn_t   err_conn_i,

    output tx_ctl_cnt_t cnt_o,
    output logic        idle_o   // nothing unsettled, nothing pending
);

  localparam int unsigned ConnW = (NumConns > 1) ? $clog2(NumConns) : 1;
  localparam int unsigned PathW = (PathsPerPort > 1) ? $clog2(PathsPerPort) : 1;
  localparam int unsigned KeyW = ConnW + PathW;
  localparam int unsigned DescW = $clog2(PoolDepth);

  if (PathsPerPort < 1 || PathsPerPort > 64) begin : gen_bad_paths
    $error("weft_tx_ctl: PathsPerPort must be 1 to 64");
  end

  full_t pkt;
  rtt_t probe_min, rtt_init;
  logic hold, quiet, lossy, alloc_ok, append, next_we, cmd, cmd_init, cmd_live, cmd_done;
  logic [DescW-1:0] alloc, tail;
  psn_t append_psn, next_psn, cmd_psn;
  pkt_desc_t append_desc;
  logic [KeyW-1:0] next_key, cmd_key, init_key, set_key, fire_key;
  logic res_valid, res_ready, prep_valid, prep_fresh, prep_newmin, prep_cut;
  ack_result_t res;
  rtt_t prep_rtt;
  bytes_t prep_cwnd, prep_grown, prep_kept, apply_cwnd, init_cwnd;
  logic apply, apply_drop, apply_limited, init_path, init_zero, init_conn;
  logic set, set_armed, set_probing, fire_valid, fire_ready;
  logic [1:0] set_backoff;
  logic rtt_re;
  logic [ConnW-1:0] rtt_conn;
  rtt_state_t rtt;
  logic sched_idle, settle_idle, timer_idle;

  weft_tx_sched #(
      .Port        (Port),
      .NumPorts    (NumPorts),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort),
      .PoolDepth   (PoolDepth),
      .QuotaBytes  (QuotaBytes)
  ) u_sched (
      .clk_i,
      .rst_i,
      .cfg_i,
      .pkt_o            (pkt),
      .probe_min_o      (probe_min),
      .rtt_init_o       (rtt_init),
      .avail_valid_i,
      .avail_ready_o,
      .avail_conn_i,
      .pull_valid_o,
      .pull_ready_i,
      .pull_conn_o,
      .pull_rsp_valid_i,
      .pull_rsp_i,
      .job_valid_o,
      .job_ready_i,
      .job_o,
      .err_valid_i,
      .err_conn_i,
      .fail_valid_o,
      .fail_ready_i,
      .fail_o,
      .hold_o           (hold),
      .quiet_i          (quiet),
      .lossy_i          (lossy),
      .alloc_ok_i       (alloc_ok),
      .alloc_i          (alloc),
      .append_o         (append),
      .tail_o           (tail),
      .append_psn_o     (append_psn),
      .append_desc_o    (append_desc),
      .next_we_o        (next_we),
      .next_key_o       (next_key),
      .next_psn_o       (next_psn),
      .cmd_o            (cmd),
      .cmd_key_o        (cmd_key),
      .cmd_init_o       (cmd_init),
      .cmd_live_o       (cmd_live),
      .cmd_psn_o        (cmd_psn),
      .cmd_done_i       (cmd_done),
      .prep_valid_i     (prep_valid),
      .res_i            (res),
      .prep_fresh_i     (prep_fresh),
      .prep_newmin_i    (prep_newmin),
      .prep_rtt_i       (prep_rtt),
      .prep_cwnd_i      (prep_cwnd),
      .prep_grown_i     (prep_grown),
      .prep_kept_i      (prep_kept),
      .apply_o          (apply),
      .apply_drop_o     (apply_drop),
      .apply_limited_o  (apply_limited),
      .apply_cwnd_o     (apply_cwnd),
      .init_path_o      (init_path),
      .init_zero_o      (init_zero),
      .init_conn_o      (init_conn),
      .init_key_o       (init_key),
      .init_cwnd_o      (init_cwnd),
      .set_o            (set),
      .set_key_o        (set_key),
      .set_armed_o      (set_armed),
      .set_probing_o    (set_probing),
      .set_backoff_o    (set_backoff),
      .fire_valid_i     (fire_valid),
      .fire_ready_o     (fire_ready),
      .fire_key_i       (fire_key),
      .idle_o           (sched_idle),
      .evt_data_o       (cnt_o.data),
      .evt_bytes_o      (cnt_o.data_bytes),
      .evt_retx_o       (cnt_o.retx),
      .evt_probe_tail_o (cnt_o.probe_tail),
      .evt_probe_timer_o(cnt_o.probe_timer),
      .evt_probe_again_o(cnt_o.probe_again),
      .evt_probe_copy_o (cnt_o.probe_copy),
      .evt_pull_none_o  (cnt_o.pull_none),
      .evt_pull_retry_o (cnt_o.pull_retry),
      .evt_fail_o       (cnt_o.fail)
  );

  weft_tx_settle #(
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort),
      .PoolDepth   (PoolDepth)
  ) u_settle (
      .clk_i,
      .rst_i,
      .ack_valid_i,
      .ack_ready_o,
      .ack_i,
      .hold_i         (hold),
      .quiet_o        (quiet),
      .settle_valid_o,
      .settle_ready_i,
      .settle_o,
      .res_valid_o    (res_valid),
      .res_ready_i    (res_ready),
      .res_o          (res),
      .alloc_ok_o     (alloc_ok),
      .alloc_o        (alloc),
      .append_i       (append),
      .tail_i         (tail),
      .append_psn_i   (append_psn),
      .append_desc_i  (append_desc),
      .next_we_i      (next_we),
      .next_key_i     (next_key),
      .next_psn_i     (next_psn),
      .cmd_i          (cmd),
      .cmd_key_i      (cmd_key),
      .cmd_keep_i     (!cmd_init),
      .cmd_live_i     (cmd_live),
      .cmd_psn_i      (cmd_psn),
      .cmd_done_o     (cmd_done),
      .lossy_o        (lossy),
      .idle_o         (settle_idle),
      .evt_taken_o    (cnt_o.ack_taken),
      .evt_old_o      (cnt_o.ack_old),
      .evt_bad_o      (cnt_o.ack_bad),
      .evt_delivered_o(cnt_o.delivered),
      .evt_lost_o     (cnt_o.lost)
  );

  weft_tx_window #(
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_window (
      .clk_i,
      .rst_i,
      .now_i,
      .pkt_i          (pkt),
      .rtt_init_i     (rtt_init),
      .res_valid_i    (res_valid),
      .res_ready_o    (res_ready),
      .res_i          (res),
      .prep_valid_o   (prep_valid),
      .prep_fresh_o   (prep_fresh),
      .prep_newmin_o  (prep_newmin),
      .prep_rtt_o     (prep_rtt),
      .prep_cwnd_o    (prep_cwnd),
      .prep_grown_o   (prep_grown),
      .prep_kept_o    (prep_kept),
      .prep_cut_o     (prep_cut),
      .apply_i        (apply),
      .apply_drop_i   (apply_drop),
      .apply_limited_i(apply_limited),
      .apply_cwnd_i   (apply_cwnd),
      .init_path_i    (init_path),
      .init_zero_i    (init_zero),
      .init_conn_i    (init_conn),
      .init_key_i     (init_key),
      .init_cwnd_i    (init_cwnd),
      .rtt_re_i       (rtt_re),
      .rtt_conn_i     (rtt_conn),
      .rtt_o          (rtt)
  );

  weft_tx_timer #(
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_timer (
      .clk_i,
      .rst_i,
      .now_i,
      .probe_min_i  (probe_min),
      .set_i        (set),
      .set_key_i    (set_key),
      .set_armed_i  (set_armed),
      .set_probing_i(set_probing),
      .set_backoff_i(set_backoff),
      .rtt_re_o     (rtt_re),
      .rtt_conn_o   (rtt_conn),
      .rtt_i        (rtt),
      .fire_valid_o (fire_valid),
      .fire_ready_i (fire_ready),
      .fire_key_o   (fire_key),
      .idle_o       (timer_idle)
  );

  assign cnt_o.cut = apply && !apply_drop && prep_cut;
  assign idle_o = sched_idle && settle_idle && timer_idle;

endmodule

`default_nettype wire
