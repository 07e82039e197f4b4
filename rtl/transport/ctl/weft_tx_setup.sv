// SPDX-License-Identifier: Apache-2.0
//
// Configuration of the transmit control: CfgGlobal as registers, CfgConn of this port as a table of
// connections, and the queue of connections that were written and must start anew
// (docs/congestion.md, "Life of a connection").
//
// init_*: one entry for each CfgConn, in order; the table holds it by then. What is out of range is
// cut to what the control can do: 1 to PathsPerPort paths, caps below 4 MB, times below 2^20
// cycles. Does not know whether a connection lives.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_setup
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_ctl_pkg::*;
#(
    parameter  int unsigned Port         = 0,
    parameter  int unsigned NumPorts     = 2,
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    parameter  int unsigned InitDepth    = 160,  // connections that wait to start at most
    localparam int unsigned ConnW        = (NumConns > 1) ? $clog2(NumConns) : 1
) (
    input  wire         clk_i,
    input  wire         rst_i,
    input  cfg_t        cfg_i,
    // CfgGlobal.
    output full_t       mtu_o,         // payload of a full packet: one of 256 .. 4096
    output full_t       pkt_o,         // and its bytes in a window
    output logic  [7:0] retry_less_o,  // retry limit - 1
    output rtt_t        probe_min_o,
    output rtt_t        rtt_init_o,
    // Connections to start.
    output logic             init_valid_o,
    input  wire              init_ready_i,
    output logic [ConnW-1:0] init_conn_o,
    // Their configuration, the cycle after the read.
    input  wire              re_i,
    input  wire  [ConnW-1:0] conn_i,
    output setup_t           setup_o
);

  localparam int unsigned PortBits = $clog2(NumPorts);

  if ((NumPorts & (NumPorts - 1)) != 0) begin : gen_bad_ports
    $error("weft_tx_setup: NumPorts must be a power of two");
  end

  cfg_conn_t cfg_conn;
  cfg_global_t cfg_global;
  assign cfg_conn = cfg_conn_t'(cfg_i.data[$bits(cfg_conn_t)-1:0]);
  assign cfg_global = cfg_global_t'(cfg_i.data[$bits(cfg_global_t)-1:0]);

  wire [15:0] cfg_row = cfg_i.index >> PortBits;
  wire cfg_mine = cfg_i.valid && cfg_i.kind == CfgConn && 32'(cfg_row) < 32'(NumConns)
      && (cfg_i.index & 16'(NumPorts - 1)) == 16'(Port);

  // Registered first: the configuration bus crosses the chip.
  logic cfg_conn_q;
  logic [ConnW-1:0] cfg_idx_q;
  setup_t cfg_setup_q;
  full_t mtu_q;
  assign mtu_o = mtu_q;
  assign pkt_o = mtu_q + full_t'(WIN_OVERHEAD);  // no carry: 96 is below 256
  always_ff @(posedge clk_i) begin
    if (rst_i) cfg_conn_q <= 1'b0;
    else cfg_conn_q <= cfg_mine;
    if (cfg_mine) begin
      cfg_idx_q <= cfg_row[ConnW-1:0];
      cfg_setup_q <= '{
          valid: cfg_conn.valid,
          num_paths: cfg_conn.num_paths == '0 ? 8'd1
              : cfg_conn.num_paths > 8'(PathsPerPort) ? 8'(PathsPerPort) : cfg_conn.num_paths,
          psn: cfg_conn.tx_psn,
          share: cfg_conn.share,
          init_cap: cfg_conn.init_cap[23:22] != '0 ? '1 : cfg_conn.init_cap[21:0]
      };
    end
    if (cfg_i.valid && cfg_i.kind == CfgGlobal) begin
      mtu_q <= {
        cfg_global.mtu_log2 >= 4'd12,
        cfg_global.mtu_log2 == 4'd11,
        cfg_global.mtu_log2 == 4'd10,
        cfg_global.mtu_log2 == 4'd9,
        cfg_global.mtu_log2 <= 4'd8,
        8'd0
      };
      retry_less_o <= cfg_global.retry_limit == '0 ? '0 : cfg_global.retry_limit - 8'd1;
      probe_min_o <= cfg_global.probe_min[31:20] != '0 ? '1 : cfg_global.probe_min[19:0];
      rtt_init_o <= cfg_global.rtt_init[31:20] != '0 ? '1 : cfg_global.rtt_init[19:0];
    end
  end

  weft_sdpram #(
      .data_t(setup_t),
      .Depth (NumConns)
  ) u_setup (
      .clk_i,
      .we_i   (cfg_conn_q),
      .waddr_i(cfg_idx_q),
      .wdata_i(cfg_setup_q),
      .re_i,
      .raddr_i(conn_i),
      .rdata_o(setup_o)
  );

  logic init_room;
  weft_fifo #(
      .Width(ConnW),
      .Depth(InitDepth)
  ) u_init (
      .clk_i,
      .rst_i,
      .s_valid_i(cfg_conn_q),
      .s_ready_o(init_room),
      .s_data_i (cfg_idx_q),
      .m_valid_o(init_valid_o),
      .m_ready_i(init_ready_i),
      .m_data_o (init_conn_o),
      .count_o  ()
  );

  `WEFT_IMPLIES(InitQueueHolds, cfg_conn_q, init_room);

endmodule

`default_nettype wire
