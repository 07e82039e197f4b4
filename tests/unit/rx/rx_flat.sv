// SPDX-License-Identifier: Apache-2.0
// weft_rx_path with flat ports for the bench, so that it needs no bit offsets of our structs.
`default_nettype none
module rx_flat
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter int unsigned Port         = 1,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned NumRegions   = 64,
    parameter int unsigned Words        = 512,
    parameter int unsigned QueueDepth   = 512
) (
    input  wire          clk_i,
    input  wire          rst_i,
    input  wire  [31:0]  now_i,
    input  wire          cfg_valid_i,
    input  wire  [3:0]   cfg_kind_i,
    input  wire  [15:0]  cfg_index_i,
    input  wire  [511:0] cfg_data_i,

    input  wire  [511:0] s_axis_tdata,
    input  wire  [63:0]  s_axis_tkeep,
    input  wire          s_axis_tvalid,
    input  wire          s_axis_tlast,
    input  wire          s_axis_tuser,

    output logic [63:0]  m_axi_awaddr,
    output logic [7:0]   m_axi_awlen,
    output logic         m_axi_awvalid,
    input  wire          m_axi_awready,
    output logic [511:0] m_axi_wdata,
    output logic [63:0]  m_axi_wstrb,
    output logic         m_axi_wlast,
    output logic         m_axi_wvalid,
    input  wire          m_axi_wready,
    input  wire  [1:0]   m_axi_bresp,
    input  wire          m_axi_bvalid,
    output logic         m_axi_bready,

    output logic         commit_valid_o,
    input  wire          commit_ready_i,
    output logic [11:0]  commit_conn_o,
    output logic [15:0]  commit_incarnation_o,
    output logic         commit_mem_error_o,
    output logic [15:0]  commit_stream_o,
    output logic [15:0]  commit_msg_no_o,
    output logic [31:0]  commit_msg_len_o,
    output logic [32:0]  commit_va_o,
    output logic [12:0]  commit_len_o,
    output logic         commit_signal_o,
    output logic [15:0]  commit_sem_o,
    output logic [31:0]  commit_value_o,
    input  wire          verdict_valid_i,
    input  wire          verdict_refused_i,
    input  wire  [4:0]   verdict_reason_i,
    input  wire          fail_valid_i,
    input  wire  [11:0]  fail_conn_i,
    input  wire  [7:0]   fail_status_i,

    // [0] to build, [1] received
    output logic [1:0]         ack_valid_o,
    input  wire  [1:0]         ack_ready_i,
    output logic [1:0][11:0]   ack_conn_o,
    output logic [31:0]        ack_incarnation_o,
    output logic [1:0][7:0]    ack_path_o,
    output logic [1:0][7:0]    ack_epoch_o,
    output logic [47:0]        ack_base_o,
    output logic [7:0]         ack_hist_words_o,
    output logic [255:0]       ack_hist0_o,
    output logic [255:0]       ack_hist1_o,
    output logic [63:0]        ack_ce_bytes_o,
    output logic [63:0]        ack_rx_bytes_o,
    output logic [63:0]        ack_echo_o,
    output logic [63:0]        ack_share_o,
    output logic [31:0]        ack_credits_o,
    output logic [15:0]        ack_status_o,

    output logic [26:0]  drop_o,
    // a packet dropped behind its write, as it happens: on drop_o it may come later
    output logic         refused_o,  // the drop is of the frame judged in this cycle
    output logic         late_valid_o,
    output logic [4:0]   late_reason_o,
    output logic         evt_frames_o,
    output logic [12:0]  evt_bytes_o,
    output logic         evt_data_o,
    output logic         evt_probes_o,
    output logic         evt_acks_o,
    output logic         evt_ce_o,
    output logic         evt_gaps_o,
    output logic [7:0]   evt_lost_o,
    output logic         evt_acks_sent_o,
    output logic         evt_acks_again_o,
    output logic         evt_acks_void_o,
    output logic         idle_o
);

  cfg_t cfg;
  rx_commit_t commit;
  ack_t [1:0] ack;
  rx_evt_t evt;
  assign cfg = '{cfg_valid_i, cfg_table_e'(cfg_kind_i), cfg_index_i, cfg_data_i};

  weft_rx_path #(
      .Port(Port), .NumPorts(NumPorts), .NumConns(NumConns), .PathsPerPort(PathsPerPort),
      .NumRegions(NumRegions), .Words(Words), .QueueDepth(QueueDepth)
  ) u_dut (
      .clk_i, .rst_i, .cfg_i(cfg), .now_i,
      .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tlast, .s_axis_tuser,
      .m_axi_awaddr, .m_axi_awlen, .m_axi_awvalid, .m_axi_awready,
      .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
      .m_axi_bresp, .m_axi_bvalid, .m_axi_bready,
      .commit_valid_o, .commit_ready_i, .commit_o(commit),
      .verdict_valid_i, .verdict_i('{verdict_refused_i, drop_e'(verdict_reason_i)}),
      .fail_valid_i, .fail_i('{fail_conn_i, err_e'(fail_status_i)}),
      .ack_valid_o(ack_valid_o[0]), .ack_ready_i(ack_ready_i[0]), .ack_o(ack[0]),
      .ackin_valid_o(ack_valid_o[1]), .ackin_ready_i(ack_ready_i[1]), .ackin_o(ack[1]),
      .drop_o, .cnt_o(evt), .idle_o
  );

  always_ff @(posedge clk_i) refused_o <= u_dut.refused;
  assign late_valid_o  = u_dut.u_commit.drop_in;
  assign late_reason_o = u_dut.u_commit.reason;

  assign commit_conn_o    = commit.conn;
  assign commit_incarnation_o = commit.incarnation;
  assign commit_mem_error_o = commit.mem_error;
  assign commit_stream_o  = commit.stream;
  assign commit_msg_no_o  = commit.msg_no;
  assign commit_msg_len_o = commit.msg_len;
  assign commit_va_o      = commit.va;
  assign commit_len_o     = commit.len;
  assign commit_signal_o  = commit.signal;
  assign commit_sem_o     = commit.sem;
  assign commit_value_o   = commit.value;

  assign ack_hist0_o = ack[0].hist;
  assign ack_hist1_o = ack[1].hist;
  for (genvar i = 0; i < 2; i++) begin : gen_ack
    assign ack_conn_o[i]               = ack[i].conn;
    assign ack_incarnation_o[16*i+:16] = ack[i].incarnation;
    assign ack_path_o[i]               = ack[i].path;
    assign ack_epoch_o[i]              = ack[i].epoch;
    assign ack_base_o[24*i+:24]        = ack[i].base;
    assign ack_hist_words_o[4*i+:4]    = ack[i].hist_words;
    assign ack_ce_bytes_o[32*i+:32]    = ack[i].ce_bytes;
    assign ack_rx_bytes_o[32*i+:32]    = ack[i].rx_bytes;
    assign ack_echo_o[32*i+:32]        = ack[i].echo;
    assign ack_share_o[32*i+:32]       = ack[i].share;
    assign ack_credits_o[16*i+:16]     = ack[i].credits;
    assign ack_status_o[8*i+:8]        = ack[i].status;
  end

  assign evt_frames_o     = evt.frames;
  assign evt_bytes_o      = evt.bytes;
  assign evt_data_o       = evt.data;
  assign evt_probes_o     = evt.probes;
  assign evt_acks_o       = evt.acks;
  assign evt_ce_o         = evt.ce;
  assign evt_gaps_o       = evt.gaps;
  assign evt_lost_o       = evt.lost;
  assign evt_acks_sent_o  = evt.acks_sent;
  assign evt_acks_again_o = evt.acks_again;
  assign evt_acks_void_o  = evt.acks_void;

endmodule
`default_nettype wire
