// SPDX-License-Identifier: Apache-2.0
//
// weft_tx_ctl with its structs taken apart, for the bench. `rsp_tag_i` fills the fields that the
// control only carries from answer to job; `job_tag_o` is 0 when they did not all arrive.
`default_nettype none

module ctl_flat
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_ctl_pkg::*;
#(
    parameter int unsigned Port         = 1,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned PoolDepth    = 1024,
    parameter int unsigned QuotaBytes   = 32768
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire  [31:0] now_i,
    input  wire         cfg_valid_i,
    input  wire  [ 3:0] cfg_kind_i,
    input  wire  [15:0] cfg_index_i,
    input  wire         conn_valid_i,
    input  wire  [ 7:0] conn_paths_i,
    input  wire  [23:0] conn_psn_i,
    input  wire  [15:0] conn_share_i,
    input  wire  [23:0] conn_cap_i,
    input  wire  [ 3:0] mtu_log2_i,
    input  wire  [ 7:0] retry_limit_i,
    input  wire  [31:0] probe_min_i,
    input  wire  [31:0] rtt_init_i,
    input  wire         avail_valid_i,
    output logic        avail_ready_o,
    input  wire  [11:0] avail_conn_i,
    output logic        pull_valid_o,
    input  wire         pull_ready_i,
    output logic [11:0] pull_conn_o,
    input  wire         rsp_valid_i,
    input  wire  [ 1:0] rsp_kind_i,
    input  wire  [ 9:0] rsp_msg_i,
    input  wire  [23:0] rsp_pkt_i,
    input  wire  [12:0] rsp_len_i,
    input  wire         rsp_retx_i,
    input  wire         rsp_more_i,
    input  wire  [31:0] rsp_tag_i,
    output logic        settle_valid_o,
    input  wire         settle_ready_i,
    output logic [11:0] settle_conn_o,
    output logic        settle_lost_o,
    output logic [ 9:0] settle_msg_o,
    output logic [23:0] settle_pkt_o,
    output logic [12:0] settle_len_o,
    output logic        fail_valid_o,
    input  wire         fail_ready_i,
    output logic [11:0] fail_conn_o,
    output logic [ 7:0] fail_status_o,
    input  wire         ack_valid_i,
    output logic        ack_ready_o,
    input  wire  [11:0] ack_conn_i,
    input  wire  [15:0] ack_incarnation_i,
    input  wire  [ 7:0] ack_path_i,
    input  wire  [ 7:0] ack_epoch_i,
    input  wire  [23:0] ack_base_i,
    input  wire  [255:0] ack_hist_i,
    input  wire  [31:0] ack_ce_i,
    input  wire  [31:0] ack_rx_i,
    input  wire  [31:0] ack_echo_i,
    input  wire  [ 7:0] ack_status_i,
    output logic        job_valid_o,
    input  wire         job_ready_i,
    output logic        job_probe_o,
    output logic [11:0] job_conn_o,
    output logic [ 7:0] job_path_o,
    output logic [ 7:0] job_epoch_o,
    output logic [23:0] job_psn_o,
    output logic [12:0] job_len_o,
    output logic        job_retx_o,
    output logic        job_more_o,
    output logic [31:0] job_tag_o,
    input  wire         err_valid_i,
    input  wire  [11:0] err_conn_i,
    output logic [14:0] events_o,  // tx_ctl_cnt_t without the byte count
    output logic [12:0] event_bytes_o,
    output logic        idle_o
);

  cfg_t cfg;
  cfg_conn_t cfg_conn;
  cfg_global_t cfg_global;
  pull_rsp_t rsp;
  settle_t settle;
  conn_fail_t fail;
  ack_t ack;
  tx_job_t job, job_want;
  tx_ctl_cnt_t cnt;

  always_comb begin
    cfg_conn = '0;
    cfg_conn.valid = conn_valid_i;
    cfg_conn.num_paths = conn_paths_i;
    cfg_conn.tx_psn = conn_psn_i;
    cfg_conn.share = conn_share_i;
    cfg_conn.init_cap = conn_cap_i;
    cfg_global = '0;
    cfg_global.mtu_log2 = mtu_log2_i;
    cfg_global.retry_limit = retry_limit_i;
    cfg_global.probe_min = probe_min_i;
    cfg_global.rtt_init = rtt_init_i;
    cfg = '0;
    cfg.valid = cfg_valid_i;
    cfg.kind = cfg_table_e'(cfg_kind_i);
    cfg.index = cfg_index_i;
    if (cfg_kind_i == CfgGlobal) cfg.data[$bits(cfg_global_t)-1:0] = cfg_global;
    else cfg.data[$bits(cfg_conn_t)-1:0] = cfg_conn;

    rsp = '{
        kind: pull_e'(rsp_kind_i),
        desc: '{msg: rsp_msg_i, pkt: rsp_pkt_i, len: rsp_len_i},
        retx: rsp_retx_i,
        more: rsp_more_i,
        signal: rsp_tag_i[0],
        laddr: {rsp_tag_i, ~rsp_tag_i},
        raddr: {~rsp_tag_i, rsp_tag_i},
        rkey: rsp_tag_i ^ 32'h1,
        stream: rsp_tag_i[15:0] ^ 16'h2,
        msg_no: rsp_tag_i[15:0] ^ 16'h3,
        msg_len: rsp_tag_i ^ 32'h4,
        sem: rsp_tag_i[15:0] ^ 16'h5,
        value: rsp_tag_i
    };
    ack = '{
        conn: ack_conn_i,
        incarnation: ack_incarnation_i,
        path: ack_path_i,
        epoch: ack_epoch_i,
        base: ack_base_i,
        hist_words: 4'd8,
        hist: ack_hist_i,
        ce_bytes: ack_ce_i,
        rx_bytes: ack_rx_i,
        echo: ack_echo_i,
        share: '0,
        credits: '0,
        status: err_e'(ack_status_i)
    };

    job_want = job;
    job_want.signal = job.value[0];
    job_want.laddr = {job.value, ~job.value};
    job_want.raddr = {~job.value, job.value};
    job_want.rkey = job.value ^ 32'h1;
    job_want.stream = job.value[15:0] ^ 16'h2;
    job_want.msg_no = job.value[15:0] ^ 16'h3;
    job_want.msg_len = job.value ^ 32'h4;
    job_want.sem = job.value[15:0] ^ 16'h5;
  end

  weft_tx_ctl #(
      .Port        (Port),
      .NumPorts    (NumPorts),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort),
      .PoolDepth   (PoolDepth),
      .QuotaBytes  (QuotaBytes)
  ) u_dut (
      .clk_i,
      .rst_i,
      .cfg_i           (cfg),
      .now_i,
      .avail_valid_i,
      .avail_ready_o,
      .avail_conn_i,
      .pull_valid_o,
      .pull_ready_i,
      .pull_conn_o,
      .pull_rsp_valid_i(rsp_valid_i),
      .pull_rsp_i      (rsp),
      .settle_valid_o,
      .settle_ready_i,
      .settle_o        (settle),
      .fail_valid_o,
      .fail_ready_i,
      .fail_o          (fail),
      .ack_valid_i,
      .ack_ready_o,
      .ack_i           (ack),
      .job_valid_o,
      .job_ready_i,
      .job_o           (job),
      .err_valid_i,
      .err_conn_i,
      .cnt_o           (cnt),
      .idle_o
  );

  assign settle_conn_o = settle.conn;
  assign settle_lost_o = settle.lost;
  assign settle_msg_o = settle.desc.msg;
  assign settle_pkt_o = settle.desc.pkt;
  assign settle_len_o = settle.desc.len;
  assign fail_conn_o = fail.conn;
  assign fail_status_o = fail.status;
  assign job_probe_o = job.probe;
  assign job_conn_o = job.conn;
  assign job_path_o = job.path;
  assign job_epoch_o = job.epoch;
  assign job_psn_o = job.psn;
  assign job_len_o = job.len;
  assign job_retx_o = job.retx;
  assign job_more_o = job.more;
  assign job_tag_o = job == job_want ? job.value : '0;
  assign events_o = {
    cnt.fail,
    cnt.pull_retry,
    cnt.pull_none,
    cnt.cut,
    cnt.lost,
    cnt.delivered,
    cnt.ack_bad,
    cnt.ack_old,
    cnt.ack_taken,
    cnt.probe_copy,
    cnt.probe_again,
    cnt.probe_timer,
    cnt.probe_tail,
    cnt.retx,
    cnt.data
  };
  assign event_bytes_o = cnt.data_bytes;

endmodule

`default_nettype wire
