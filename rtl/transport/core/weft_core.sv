// SPDX-License-Identifier: Apache-2.0
// Shared core of the transport: messages of all connections, above the port slices. Its halves are
// independent: weft_core_tx sends (segmenter, resend lists, completions), weft_core_rx receives
// (open-message counters, signals).
`default_nettype none
module weft_core
  import weft_pkg::*;
  import weft_wire_pkg::*;
#(
    parameter int unsigned NumPorts  = 2,
    parameter int unsigned NumConns  = 64,
    parameter int unsigned NumMsgs   = 256,
    parameter int unsigned NumResend = 2048
) (
    input wire  clk_i,
    input wire  rst_i,
    input cfg_t cfg_i,

    input  wire     req_valid_i,
    output logic    req_ready_o,
    input  tx_req_t req_i,
    output logic    cpl_valid_o,
    input  wire     cpl_ready_i,
    output cpl_t    cpl_o,

    output logic       [NumPorts-1:0] avail_valid_o,
    input  wire        [NumPorts-1:0] avail_ready_i,
    output conn_t      [NumPorts-1:0] avail_conn_o,
    input  wire        [NumPorts-1:0] pull_valid_i,
    output logic       [NumPorts-1:0] pull_ready_o,
    input  conn_t      [NumPorts-1:0] pull_conn_i,
    output logic       [NumPorts-1:0] pull_rsp_valid_o,
    output pull_rsp_t                 pull_rsp_o,
    input  wire        [NumPorts-1:0] settle_valid_i,
    output logic       [NumPorts-1:0] settle_ready_o,
    input  settle_t    [NumPorts-1:0] settle_i,
    input  wire        [NumPorts-1:0] fail_valid_i,
    output logic       [NumPorts-1:0] fail_ready_o,
    input  conn_fail_t [NumPorts-1:0] fail_i,

    input  wire        [NumPorts-1:0] commit_valid_i,
    output logic       [NumPorts-1:0] commit_ready_o,
    input  rx_commit_t [NumPorts-1:0] commit_i,
    output logic       [NumPorts-1:0] verdict_valid_o,
    output rx_verdict_t               verdict_o,
    output logic                      rx_fail_valid_o,
    output conn_fail_t                rx_fail_o,
    output logic                      sig_valid_o,
    input  wire                       sig_ready_i,
    output signal_t                   sig_o,

    // {bad packet, message received, pull put off, message failed, message sent}
    output logic [4:0] cnt_o,
    output logic       idle_o
);
  logic tx_idle, rx_idle;

  weft_core_tx #(
      .NumPorts(NumPorts),
      .NumConns(NumConns),
      .NumMsgs(NumMsgs),
      .NumResend(NumResend)
  ) u_tx (
      .clk_i,
      .rst_i,
      .cfg_i,
      .req_valid_i,
      .req_ready_o,
      .req_i,
      .cpl_valid_o,
      .cpl_ready_i,
      .cpl_o,
      .avail_valid_o,
      .avail_ready_i,
      .avail_conn_o,
      .pull_valid_i,
      .pull_ready_o,
      .pull_conn_i,
      .pull_rsp_valid_o,
      .pull_rsp_o,
      .settle_valid_i,
      .settle_ready_o,
      .settle_i,
      .fail_valid_i,
      .fail_ready_o,
      .fail_i,
      .evt_done_o  (cnt_o[0]),
      .evt_failed_o(cnt_o[1]),
      .evt_limit_o (cnt_o[2]),
      .idle_o      (tx_idle)
  );

  weft_core_rx #(
      .NumPorts(NumPorts),
      .NumConns(NumConns)
  ) u_rx (
      .clk_i,
      .rst_i,
      .cfg_i,
      .commit_valid_i,
      .commit_ready_o,
      .commit_i,
      .verdict_valid_o,
      .verdict_o,
      .fail_valid_o(rx_fail_valid_o),
      .fail_o      (rx_fail_o),
      .sig_valid_o,
      .sig_ready_i,
      .sig_o,
      .evt_msg_o(cnt_o[3]),
      .evt_bad_o(cnt_o[4]),
      .idle_o   (rx_idle)
  );

  assign idle_o = tx_idle && rx_idle;
endmodule
`default_nettype wire
