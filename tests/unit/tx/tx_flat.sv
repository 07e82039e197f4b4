// SPDX-License-Identifier: Apache-2.0
// weft_tx_path with flat ports for the bench. The configuration words are put together here, so the
// bench needs no bit offsets.
`default_nettype none
module tx_flat
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_pkg::*;
#(
    parameter int unsigned Port         = 1,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned Jobs         = 256,
    parameter int unsigned BufBeats     = 1024,
    parameter int unsigned OutBeats     = 64
) (
    input wire        clk_i,
    input wire        rst_i,
    input wire [31:0] now_i,

    input wire        cfg_port_i,
    input wire        cfg_conn_i,
    input wire [15:0] cfg_index_i,
    input wire [47:0] cfg_mac_i,
    input wire [31:0] cfg_ip_i,
    input wire [23:0] cfg_rconn_i,
    input wire [15:0] cfg_incarnation_i,
    input wire [15:0] cfg_sport_i,

    input  wire         job_valid_i,
    output logic        job_ready_o,
    input  wire         job_probe_i,
    input  wire  [11:0] job_conn_i,
    input  wire  [7:0]  job_path_i,
    input  wire  [7:0]  job_epoch_i,
    input  wire  [23:0] job_psn_i,
    input  wire  [12:0] job_len_i,
    input  wire         job_retx_i,
    input  wire         job_more_i,
    input  wire         job_signal_i,
    input  wire  [63:0] job_laddr_i,
    input  wire  [63:0] job_raddr_i,
    input  wire  [31:0] job_rkey_i,
    input  wire  [15:0] job_stream_i,
    input  wire  [15:0] job_msg_no_i,
    input  wire  [31:0] job_msg_len_i,
    input  wire  [15:0] job_sem_i,
    input  wire  [31:0] job_value_i,

    input  wire          ack_valid_i,
    output logic         ack_ready_o,
    input  wire  [11:0]  ack_conn_i,
    input  wire  [15:0]  ack_incarnation_i,
    input  wire  [7:0]   ack_path_i,
    input  wire  [7:0]   ack_epoch_i,
    input  wire  [23:0]  ack_base_i,
    input  wire  [3:0]   ack_hist_words_i,
    input  wire  [255:0] ack_hist_i,
    input  wire  [31:0]  ack_ce_bytes_i,
    input  wire  [31:0]  ack_rx_bytes_i,
    input  wire  [31:0]  ack_echo_i,
    input  wire  [31:0]  ack_share_i,
    input  wire  [15:0]  ack_credits_i,
    input  wire  [7:0]   ack_status_i,

    output logic [63:0]  m_axi_araddr,
    output logic [7:0]   m_axi_arlen,
    output logic         m_axi_arvalid,
    input  wire          m_axi_arready,
    input  wire  [511:0] m_axi_rdata,
    input  wire  [1:0]   m_axi_rresp,
    input  wire          m_axi_rlast,
    input  wire          m_axi_rvalid,
    output logic         m_axi_rready,

    output logic [511:0] m_axis_tdata,
    output logic [63:0]  m_axis_tkeep,
    output logic         m_axis_tlast,
    output logic         m_axis_tvalid,
    input  wire          m_axis_tready,

    output logic         err_valid_o,
    output logic [11:0]  err_conn_o,
    output logic         cnt_frames_o,
    output logic [12:0]  cnt_bytes_o,
    output logic         cnt_data_o,
    output logic         cnt_probes_o,
    output logic         cnt_acks_o,
    output logic         cnt_mem_err_o,
    output logic         cnt_reads_o,
    output logic         cnt_stalled_o
);

  cfg_t cfg;
  cfg_port_t cfg_port;
  cfg_conn_t cfg_conn;
  always_comb begin
    cfg_port             = '{mac: cfg_mac_i, ip: cfg_ip_i};
    cfg_conn             = '0;
    cfg_conn.valid       = 1'b1;
    cfg_conn.rmac        = cfg_mac_i;
    cfg_conn.rip         = cfg_ip_i;
    cfg_conn.rconn       = cfg_rconn_i;
    cfg_conn.incarnation = cfg_incarnation_i;
    cfg_conn.sport       = cfg_sport_i;
    cfg                  = '0;
    cfg.valid            = cfg_port_i || cfg_conn_i;
    cfg.kind             = cfg_port_i ? CfgPort : CfgConn;
    cfg.index            = cfg_index_i;
    cfg.data             = cfg_port_i ? 512'(cfg_port) : 512'(cfg_conn);
  end

  tx_job_t job;
  assign job = '{
      probe: job_probe_i,
      conn: job_conn_i,
      path: job_path_i,
      epoch: job_epoch_i,
      psn: job_psn_i,
      len: job_len_i,
      retx: job_retx_i,
      more: job_more_i,
      signal: job_signal_i,
      laddr: job_laddr_i,
      raddr: job_raddr_i,
      rkey: job_rkey_i,
      stream: job_stream_i,
      msg_no: job_msg_no_i,
      msg_len: job_msg_len_i,
      sem: job_sem_i,
      value: job_value_i
  };

  ack_t ack;
  assign ack = '{
      conn: ack_conn_i,
      incarnation: ack_incarnation_i,
      path: ack_path_i,
      epoch: ack_epoch_i,
      base: ack_base_i,
      hist_words: ack_hist_words_i,
      hist: ack_hist_i,
      ce_bytes: ack_ce_bytes_i,
      rx_bytes: ack_rx_bytes_i,
      echo: ack_echo_i,
      share: ack_share_i,
      credits: ack_credits_i,
      status: err_e'(ack_status_i)
  };

  tx_cnt_t cnt;
  assign cnt_frames_o  = cnt.frames;
  assign cnt_bytes_o   = cnt.bytes;
  assign cnt_data_o    = cnt.data;
  assign cnt_probes_o  = cnt.probes;
  assign cnt_acks_o    = cnt.acks;
  assign cnt_mem_err_o = cnt.mem_err;
  assign cnt_reads_o   = cnt.reads;
  assign cnt_stalled_o = cnt.stalled;

  weft_tx_path #(
      .Port        (Port),
      .NumPorts    (NumPorts),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort),
      .Jobs        (Jobs),
      .BufBeats    (BufBeats),
      .OutBeats    (OutBeats)
  ) u_dut (
      .clk_i,
      .rst_i,
      .cfg_i      (cfg),
      .now_i,
      .job_valid_i,
      .job_ready_o,
      .job_i      (job),
      .ack_valid_i,
      .ack_ready_o,
      .ack_i      (ack),
      .m_axi_araddr,
      .m_axi_arlen,
      .m_axi_arvalid,
      .m_axi_arready,
      .m_axi_rdata,
      .m_axi_rresp,
      .m_axi_rlast,
      .m_axi_rvalid,
      .m_axi_rready,
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tlast,
      .m_axis_tvalid,
      .m_axis_tready,
      .err_valid_o,
      .err_conn_o,
      .cnt_o      (cnt)
  );

endmodule
`default_nettype wire
