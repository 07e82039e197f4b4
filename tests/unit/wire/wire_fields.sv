// SPDX-License-Identifier: Apache-2.0
//
// For tests only: shows chosen fields of the generated structs, so that a test can ask whether
// SystemVerilog finds a field where C++ put it. Combinational.
`default_nettype none

module wire_fields
  import weft_wire_pkg::*;
  import weft_pkg::*;
(
    input  wire                           clk_i,
    input  wire                           rst_i,
    input  wire  [                 511:0] record_i,  // byte 0 in [7:0]
    input  wire  [8*HDR_ACK_BYTES-1:0]    ack_i,     // first byte on top
    input  wire  [8*HDR_DATA_BYTES-1:0]   data_i,
    output logic [                   7:0] wqe_opcode_o,
    output logic [                   7:0] wqe_flags_o,  // has_dep0 .. indirect, first in bit 0
    output logic [                  15:0] wqe_dep1_o,
    output logic [                   7:0] wqe_redop_o,
    output logic [                  31:0] wqe_length_o,
    output logic [                  15:0] wqe_sem_o,
    output logic [                  63:0] wqe_src1_o,
    output logic [                  63:0] wqe_dst_o,
    output logic [                  31:0] wqe_value_o,
    output logic [                   7:0] wqe_nsrc_o,
    output logic [                  15:0] db_subgraph_o,
    output logic [                  31:0] db_count_o,
    output logic [                  63:0] db_cookie_o,
    output logic [                   7:0] cqe_status_o,
    output logic [                  63:0] cqe_cycles_o,
    output logic [                  31:0] cqe_seq_o,
    output logic [                  47:0] eth_src_o,
    output logic [                   1:0] ecn_o,
    output logic [                   1:0] pad_o,
    output logic [                  23:0] dqpn_o,
    output logic [                  23:0] psn_o,
    output logic [                  15:0] incarnation_o,
    output logic                          retx_o,
    output logic [                  63:0] va_o,
    output logic [                  31:0] value_o,
    output logic [                   3:0] hist_words_o,
    output logic [                  23:0] base_o,
    output logic [                   7:0] status_o,
    // record_i as the data of a configuration write
    output logic [                  47:0] port_mac_o,
    output logic [                  31:0] port_ip_o,
    output logic                          conn_valid_o,
    output logic [                  47:0] conn_rmac_o,
    output logic [                  23:0] conn_rconn_o,
    output logic [                   7:0] conn_num_paths_o,
    output logic [                  23:0] conn_tx_psn_o,
    output logic [                  23:0] conn_init_cap_o,
    output logic                          region_valid_o,
    output logic [                  31:0] region_key_o,
    // remote_write, local_read, local_write
    output logic [                   2:0] region_rights_o,
    output logic [                  63:0] region_base_o,
    output logic [                  63:0] region_limit_o,
    output logic [                  31:0] sem_value_o,
    output logic [                  31:0] cq_last_o,
    output logic [                  63:0] cq_base_o,
    output logic [                   3:0] global_mtu_log2_o,
    output logic [                  31:0] global_rtt_init_o,
    output logic [                  23:0] global_ack_hold_o
);

  wqe_t wqe;
  doorbell_t db;
  cqe_t cqe;
  hdr_ack_t ack;
  hdr_data_t data;
  assign wqe  = wqe_t'(record_i);
  assign db   = doorbell_t'(record_i);
  assign cqe  = cqe_t'(record_i);
  assign ack  = hdr_ack_t'(ack_i);
  assign data = hdr_data_t'(data_i);

  assign wqe_opcode_o = wqe.opcode;
  assign wqe_flags_o = {
    wqe.indirect, wqe.consume, wqe.signal, wqe.sync,
    wqe.rx_sync, wqe.fence, wqe.has_dep1, wqe.has_dep0
  };
  assign wqe_dep1_o    = wqe.dep1;
  assign wqe_redop_o   = wqe.redop;
  assign wqe_length_o  = wqe.length;
  assign wqe_sem_o     = wqe.sem;
  assign wqe_src1_o    = wqe.src1;
  assign wqe_dst_o     = wqe.dst;
  assign wqe_value_o   = wqe.value;
  assign wqe_nsrc_o    = wqe.nsrc;
  assign db_subgraph_o = db.subgraph;
  assign db_count_o    = db.count;
  assign db_cookie_o   = db.cookie;
  assign cqe_status_o  = cqe.status;
  assign cqe_cycles_o  = cqe.cycles;
  assign cqe_seq_o     = cqe.seq;
  assign eth_src_o     = data.eth.src;
  assign ecn_o         = data.ipv4.ecn;
  assign pad_o         = data.bth.pad;
  assign dqpn_o        = data.bth.dqpn;
  assign psn_o         = data.bth.psn;
  assign incarnation_o = data.wth.incarnation;
  assign retx_o        = data.wdh.retx;
  assign va_o          = data.wdh.va;
  assign value_o       = data.wdh.value;
  assign hist_words_o  = ack.wah.hist_words;
  assign base_o        = ack.wah.base;
  assign status_o      = ack.wah.status;

  cfg_port_t port;
  cfg_conn_t conn;
  cfg_region_t region;
  cfg_sem_t sem;
  cfg_cq_t cq;
  cfg_global_t glob;
  assign port              = record_i[$bits(port)-1:0];
  assign conn              = record_i[$bits(conn)-1:0];
  assign region            = record_i[$bits(region)-1:0];
  assign sem               = record_i[$bits(sem)-1:0];
  assign cq                = record_i[$bits(cq)-1:0];
  assign glob              = record_i[$bits(glob)-1:0];
  assign port_mac_o        = port.mac;
  assign port_ip_o         = port.ip;
  assign conn_valid_o      = conn.valid;
  assign conn_rmac_o       = conn.rmac;
  assign conn_rconn_o      = conn.rconn;
  assign conn_num_paths_o  = conn.num_paths;
  assign conn_tx_psn_o     = conn.tx_psn;
  assign conn_init_cap_o   = conn.init_cap;
  assign region_valid_o    = region.valid;
  assign region_key_o      = region.key;
  assign region_rights_o   = {region.remote_write, region.local_read, region.local_write};
  assign region_base_o     = region.base;
  assign region_limit_o    = region.limit;
  assign sem_value_o       = sem.value;
  assign cq_last_o         = cq.last;
  assign cq_base_o         = cq.base;
  assign global_mtu_log2_o = glob.mtu_log2;
  assign global_rtt_init_o = glob.rtt_init;
  assign global_ack_hold_o = glob.ack_hold;

endmodule

`default_nettype wire
