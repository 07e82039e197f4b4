// SPDX-License-Identifier: Apache-2.0
// The sending half of weft_core with flat ports for the bench: two ports, structs taken apart.
`default_nettype none
module core_flat
  import weft_pkg::*;
  import weft_wire_pkg::*;
#(
    parameter int unsigned NumConns  = 8,
    parameter int unsigned NumMsgs   = 32,
    parameter int unsigned NumResend = 64
) (
    input wire        clk_i,
    input wire        rst_i,
    input wire        cfg_conn_i,
    input wire        cfg_global_i,
    input wire [15:0] cfg_index_i,
    input wire [ 3:0] cfg_mtu_i,

    input  wire         req_valid_i,
    output logic        req_ready_o,
    input  wire  [11:0] req_conn_i,
    input  wire  [ 7:0] req_tag_i,
    input  wire         req_signal_i,
    input  wire  [15:0] req_sem_i,
    input  wire  [31:0] req_value_i,
    input  wire  [63:0] req_laddr_i,
    input  wire  [63:0] req_raddr_i,
    input  wire  [31:0] req_rkey_i,
    input  wire  [31:0] req_len_i,
    output logic        cpl_valid_o,
    input  wire         cpl_ready_i,
    output logic [ 7:0] cpl_tag_o,
    output logic [ 7:0] cpl_status_o,

    output logic [ 1:0]       avail_valid_o,
    input  wire  [ 1:0]       avail_ready_i,
    output logic [ 1:0][11:0] avail_conn_o,
    input  wire  [ 1:0]       pull_valid_i,
    output logic [ 1:0]       pull_ready_o,
    input  wire  [ 1:0][11:0] pull_conn_i,
    output logic [ 1:0]       rsp_valid_o,
    output logic [ 1:0]       rsp_kind_o,
    output logic [ 9:0]       rsp_msg_o,
    output logic [23:0]       rsp_pkt_o,
    output logic [12:0]       rsp_len_o,
    output logic              rsp_retx_o,
    output logic              rsp_more_o,
    output logic              rsp_signal_o,
    output logic [63:0]       rsp_laddr_o,
    output logic [63:0]       rsp_raddr_o,
    output logic [31:0]       rsp_rkey_o,
    output logic [15:0]       rsp_msg_no_o,
    output logic [31:0]       rsp_msg_len_o,
    output logic [15:0]       rsp_sem_o,
    output logic [31:0]       rsp_value_o,
    input  wire  [ 1:0]       settle_valid_i,
    output logic [ 1:0]       settle_ready_o,
    input  wire  [ 1:0][11:0] settle_conn_i,
    input  wire  [ 1:0]       settle_lost_i,
    input  wire  [ 1:0][ 9:0] settle_msg_i,
    input  wire  [ 1:0][23:0] settle_pkt_i,
    input  wire  [ 1:0][12:0] settle_len_i,
    input  wire  [ 1:0]       fail_valid_i,
    output logic [ 1:0]       fail_ready_o,
    input  wire  [ 1:0][11:0] fail_conn_i,
    input  wire  [ 1:0][ 7:0] fail_status_i,

    output logic [ 4:0]       cnt_o,
    output logic              idle_o
);
  cfg_t cfg;
  cfg_global_t globals;
  tx_req_t req;
  cpl_t cpl;
  conn_t [1:0] avail_conn, pull_conn;
  pull_rsp_t rsp;
  settle_t [1:0] settle;
  conn_fail_t [1:0] fail;

  always_comb begin
    globals = '0;
    globals.mtu_log2 = cfg_mtu_i;
    cfg = '0;
    cfg.valid = cfg_conn_i || cfg_global_i;
    cfg.kind = cfg_conn_i ? CfgConn : CfgGlobal;
    cfg.index = cfg_index_i;
    cfg.data = 512'(globals);
    req = '{
        conn: req_conn_i,
        tag: req_tag_i,
        signal: req_signal_i,
        sem: req_sem_i,
        value: req_value_i,
        laddr: req_laddr_i,
        raddr: req_raddr_i,
        rkey: req_rkey_i,
        len: req_len_i
    };
    for (int p = 0; p < 2; p++) begin
      settle[p] = '{
          conn: settle_conn_i[p],
          lost: settle_lost_i[p],
          desc: '{msg: settle_msg_i[p], pkt: settle_pkt_i[p], len: settle_len_i[p]}
      };
      fail[p] = '{conn: fail_conn_i[p], status: err_e'(fail_status_i[p])};
    end
  end
  assign {cpl_tag_o, cpl_status_o} = {cpl.tag, cpl.status};
  assign pull_conn = pull_conn_i;
  assign avail_conn_o = avail_conn;
  assign rsp_kind_o = rsp.kind;
  assign {rsp_msg_o, rsp_pkt_o, rsp_len_o} = rsp.desc;
  assign {rsp_retx_o, rsp_more_o, rsp_signal_o} = {rsp.retx, rsp.more, rsp.signal};
  assign {rsp_laddr_o, rsp_raddr_o, rsp_rkey_o} = {rsp.laddr, rsp.raddr, rsp.rkey};
  assign {rsp_msg_no_o, rsp_msg_len_o, rsp_sem_o, rsp_value_o} = {
    rsp.msg_no, rsp.msg_len, rsp.sem, rsp.value
  };

  weft_core #(
      .NumPorts (2),
      .NumConns (NumConns),
      .NumMsgs  (NumMsgs),
      .NumResend(NumResend)
  ) u_core (
      .clk_i,
      .rst_i,
      .cfg_i(cfg),
      .req_valid_i,
      .req_ready_o,
      .req_i(req),
      .cpl_valid_o,
      .cpl_ready_i,
      .cpl_o(cpl),
      .avail_valid_o,
      .avail_ready_i,
      .avail_conn_o(avail_conn),
      .pull_valid_i,
      .pull_ready_o,
      .pull_conn_i(pull_conn),
      .pull_rsp_valid_o(rsp_valid_o),
      .pull_rsp_o(rsp),
      .settle_valid_i,
      .settle_ready_o,
      .settle_i(settle),
      .fail_valid_i,
      .fail_ready_o,
      .fail_i(fail),
      // the receiving half has a bench of its own
      .commit_valid_i('0),
      .commit_ready_o(),
      .commit_i('0),
      .verdict_valid_o(),
      .verdict_o(),
      .rx_fail_valid_o(),
      .rx_fail_o(),
      .sig_valid_o(),
      .sig_ready_i(1'b1),
      .sig_o(),
      .cnt_o,
      .idle_o
  );
endmodule
`default_nettype wire
