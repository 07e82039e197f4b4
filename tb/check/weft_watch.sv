// SPDX-License-Identifier: Apache-2.0
// Bound to every weft_node of a simulation: tells tb/check/watch.h what crosses the node's borders,
// and stops the simulation when that says no. It judges nothing itself, drives nothing, and is in
// no list for synthesis. Told in the order in which it happens; what falls into one cycle in the
// order causes have to precede effects: tables, requests, frames in, then what they bring about.
`default_nettype none
module weft_watch
  import weft_pkg::*;
#(
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned NumSems      = 256
) (
    input wire clk_i,
    input wire rst_i,
    input wire cfg_t cfg_i,
    input wire [31:0] now_i,
    input wire idle_i,

    input wire req_valid_i,
    input wire req_ready_i,
    input wire tx_req_t req_i,
    input wire cpl_valid_i,
    input wire cpl_ready_i,
    input wire cpl_t cpl_i,
    input wire sig_valid_i,
    input wire sig_ready_i,
    input wire signal_t sig_i,
    input wire received_i,

    input wire [NumPorts-1:0][DataW-1:0] tx_tdata_i,
    input wire [NumPorts-1:0][KeepW-1:0] tx_tkeep_i,
    input wire [NumPorts-1:0] tx_tlast_i,
    input wire [NumPorts-1:0] tx_tvalid_i,
    input wire [NumPorts-1:0] tx_tready_i,
    input wire [NumPorts-1:0][DataW-1:0] rx_tdata_i,
    input wire [NumPorts-1:0][KeepW-1:0] rx_tkeep_i,
    input wire [NumPorts-1:0] rx_tlast_i,
    input wire [NumPorts-1:0] rx_tvalid_i,
    input wire [NumPorts-1:0] rx_tuser_i
);
  import "DPI-C" function chandle weft_watch_new(
    input int ports, input int conns, input int paths, input int sems
  );
  import "DPI-C" function void weft_watch_reset(input chandle w);
  import "DPI-C" function void weft_watch_port(
    input chandle w, input int port, input int unsigned ip
  );
  import "DPI-C" function void weft_watch_conn(
    input chandle w, input int port, input int conn, input bit valid, input int unsigned rip,
    input int unsigned rconn, input int unsigned incarnation, input int unsigned cycle
  );
  import "DPI-C" function bit weft_watch_request(
    input chandle w, input int conn, input int tag, input longint unsigned raddr,
    input int unsigned bytes
  );
  import "DPI-C" function bit weft_watch_completion(
    input chandle w, input int tag, input int status
  );
  import "DPI-C" function bit weft_watch_signal(
    input chandle w, input int sem, input int unsigned value, input int unsigned cycle
  );
  import "DPI-C" function bit weft_watch_received(input chandle w);
  import "DPI-C" function bit weft_watch_out(
    input chandle w, input int port, input bit [511:0] data, input bit [63:0] keep, input bit last
  );
  import "DPI-C" function bit weft_watch_in(
    input chandle w, input int port, input bit [511:0] data, input bit [63:0] keep, input bit last,
    input bit error
  );
  import "DPI-C" function bit weft_watch_rest(input chandle w);

  localparam logic [5:0] Rest = 6'd40;  // cycles until the last event has been counted

  chandle watch;
  initial watch = weft_watch_new(NumPorts, NumConns, PathsPerPort, NumSems);

  logic rst_q, sig_told_q;
  logic [5:0] rest_q;

  cfg_port_t cfg_port;
  cfg_conn_t cfg_conn;
  assign cfg_port = cfg_port_t'(cfg_i.data[$bits(cfg_port_t)-1:0]);
  assign cfg_conn = cfg_conn_t'(cfg_i.data[$bits(cfg_conn_t)-1:0]);

  always @(posedge clk_i) begin : tell
    automatic logic good = 1'b1;
    rst_q <= rst_i;
    rest_q <= rst_i || !idle_i ? '0 : rest_q == '1 ? rest_q : rest_q + 6'd1;
    sig_told_q <= !rst_i && sig_valid_i && !sig_ready_i;
    if (rst_i) begin
      if (!rst_q) weft_watch_reset(watch);
    end else begin
      if (cfg_i.valid && cfg_i.kind == CfgPort) begin
        weft_watch_port(watch, 32'(cfg_i.index), cfg_port.ip);
      end
      if (cfg_i.valid && cfg_i.kind == CfgConn) begin
        weft_watch_conn(watch, 32'(cfg_i.index) % NumPorts, 32'(cfg_i.index) / NumPorts,
                        cfg_conn.valid, cfg_conn.rip, 32'(cfg_conn.rconn),
                        32'(cfg_conn.incarnation), now_i);
      end
      for (int p = 0; p < int'(NumPorts); p++) begin
        if (rx_tvalid_i[p]) begin
          good &= weft_watch_in(watch, p, rx_tdata_i[p], rx_tkeep_i[p], rx_tlast_i[p],
                                rx_tuser_i[p]);
        end
      end
      if (received_i) good &= weft_watch_received(watch);
      // When it is offered: a signal that waits for the engine has been decided.
      if (sig_valid_i && !sig_told_q) begin
        good &= weft_watch_signal(watch, 32'(sig_i.sem), sig_i.value, now_i);
      end
      if (cpl_valid_i && cpl_ready_i) begin
        good &= weft_watch_completion(watch, 32'(cpl_i.tag), 32'(cpl_i.status));
      end
      if (req_valid_i && req_ready_i) begin
        good &= weft_watch_request(watch, 32'(req_i.conn), 32'(req_i.tag), req_i.raddr, req_i.len);
      end
      for (int p = 0; p < int'(NumPorts); p++) begin
        if (tx_tvalid_i[p] && tx_tready_i[p]) begin
          good &= weft_watch_out(watch, p, tx_tdata_i[p], tx_tkeep_i[p], tx_tlast_i[p]);
        end
      end
      if (rest_q == Rest) good &= weft_watch_rest(watch);
      SeenFromOutside : assert (good);
    end
  end
endmodule

bind weft_node weft_watch #(
    .NumPorts(NumPorts),
    .NumConns(NumConns),
    .PathsPerPort(PathsPerPort),
    .NumSems(NumSems)
) u_watch (
    .clk_i,
    .rst_i(core_rst),
    .cfg_i(cfg),
    .now_i(now[31:0]),
    .idle_i(idle_o),
    .req_valid_i(req_valid),
    .req_ready_i(req_ready),
    .req_i(req),
    .cpl_valid_i(cpl_valid),
    .cpl_ready_i(cpl_ready),
    .cpl_i(cpl),
    .sig_valid_i(sig_valid),
    .sig_ready_i(sig_ready),
    .sig_i(sig),
    .received_i(cnt_core.msg_received),
    .tx_tdata_i(m_axis_tx_tdata),
    .tx_tkeep_i(m_axis_tx_tkeep),
    .tx_tlast_i(m_axis_tx_tlast),
    .tx_tvalid_i(m_axis_tx_tvalid),
    .tx_tready_i(m_axis_tx_tready),
    .rx_tdata_i(s_axis_rx_tdata),
    .rx_tkeep_i(s_axis_rx_tkeep),
    .rx_tlast_i(s_axis_rx_tlast),
    .rx_tvalid_i(s_axis_rx_tvalid),
    .rx_tuser_i(s_axis_rx_tuser)
);
`default_nettype wire
