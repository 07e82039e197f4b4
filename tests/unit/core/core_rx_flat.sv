// SPDX-License-Identifier: Apache-2.0
// weft_core_rx with flat ports for the bench, for any number of ports: structs taken apart.
`default_nettype none
module core_rx_flat
  import weft_pkg::*;
  import weft_wire_pkg::*;
#(
    parameter int unsigned NumPorts = 2,
    parameter int unsigned NumConns = 8
) (
    input wire        clk_i,
    input wire        rst_i,
    input wire        cfg_conn_i,
    input wire [15:0] cfg_index_i,
    input wire        cfg_valid_i,
    input wire [15:0] cfg_incarnation_i,

    input  wire  [NumPorts-1:0]       commit_valid_i,
    output logic [NumPorts-1:0]       commit_ready_o,
    input  wire  [NumPorts-1:0][11:0] commit_conn_i,
    input  wire  [NumPorts-1:0][15:0] commit_incarnation_i,
    input  wire  [NumPorts-1:0]       commit_mem_error_i,
    input  wire  [NumPorts-1:0][15:0] commit_msg_no_i,
    input  wire  [NumPorts-1:0][31:0] commit_msg_len_i,
    input  wire  [NumPorts-1:0][32:0] commit_va_i,
    input  wire  [NumPorts-1:0][12:0] commit_len_i,
    input  wire  [NumPorts-1:0]       commit_signal_i,
    input  wire  [NumPorts-1:0][15:0] commit_sem_i,
    input  wire  [NumPorts-1:0][31:0] commit_value_i,
    output logic [NumPorts-1:0]       verdict_valid_o,
    output logic                      verdict_refused_o,
    output logic [ 4:0]               verdict_reason_o,
    output logic                      fail_valid_o,
    output logic [11:0]               fail_conn_o,
    output logic [ 7:0]               fail_status_o,
    output logic                      sig_valid_o,
    input  wire                       sig_ready_i,
    output logic [15:0]               sig_sem_o,
    output logic [31:0]               sig_value_o,
    output logic                      evt_msg_o,
    output logic                      evt_bad_o,
    output logic                      idle_o
);
  cfg_t cfg;
  cfg_conn_t row;
  rx_commit_t [NumPorts-1:0] commit;
  rx_verdict_t verdict;
  conn_fail_t fail;
  signal_t sig;

  always_comb begin
    row = '0;
    row.valid = cfg_valid_i;
    row.incarnation = cfg_incarnation_i;
    cfg = '{valid: cfg_conn_i, kind: CfgConn, index: cfg_index_i, data: 512'(row)};
    for (int p = 0; p < int'(NumPorts); p++) begin
      commit[p] = '{
          conn: commit_conn_i[p],
          incarnation: commit_incarnation_i[p],
          mem_error: commit_mem_error_i[p],
          stream: 16'd0,
          msg_no: commit_msg_no_i[p],
          msg_len: commit_msg_len_i[p],
          va: commit_va_i[p],
          len: commit_len_i[p],
          signal: commit_signal_i[p],
          sem: commit_sem_i[p],
          value: commit_value_i[p]
      };
    end
  end
  assign {verdict_refused_o, verdict_reason_o} = verdict;
  assign {fail_conn_o, fail_status_o} = fail;
  assign {sig_sem_o, sig_value_o} = sig;

  weft_core_rx #(
      .NumPorts(NumPorts),
      .NumConns(NumConns)
  ) u_core_rx (
      .clk_i,
      .rst_i,
      .cfg_i(cfg),
      .commit_valid_i,
      .commit_ready_o,
      .commit_i(commit),
      .verdict_valid_o,
      .verdict_o(verdict),
      .fail_valid_o,
      .fail_o(fail),
      .sig_valid_o,
      .sig_ready_i,
      .sig_o(sig),
      .evt_msg_o,
      .evt_bad_o,
      .idle_o
  );
endmodule
`default_nettype wire
