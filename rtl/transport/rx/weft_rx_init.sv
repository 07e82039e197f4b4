// SPDX-License-Identifier: Apache-2.0
//
// What happens when a connection is configured (CfgConn of this port): it is taken out of service
// at once, frames that were accepted for it before drain from the pipelines, its paths start anew
// in the claim and in the state table, then it serves. About 8 + 3 x PathsPerPort cycles.
//
// Writes whose queue entry waits for memory meanwhile are refused by the commit stage, which
// compares the incarnation. No other CfgConn of this port may come before this one is done.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_init
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter  int unsigned Port         = 0,
    parameter  int unsigned NumPorts     = 2,
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    localparam int unsigned ConnW        = $clog2(NumConns),
    localparam int unsigned PathW        = $clog2(PathsPerPort)
) (
    input  wire                         clk_i,
    input  wire                         rst_i,
    input  wire cfg_t                   cfg_i,
    output logic [NumConns-1:0]         conn_valid_o,
    // One pulse a CfgConn: the copies of the connection's configuration take info_o.
    output logic                        info_we_o,
    output logic [ConnW-1:0]            info_idx_o,
    output rx_conn_t                    info_o,
    // A path starts with base psn_o: once to the claim table, once to the state table.
    output logic                        claim_valid_o,
    input  wire                         claim_ready_i,
    output logic                        state_valid_o,
    input  wire                         state_ready_i,
    output logic [ConnW+PathW-1:0]      idx_o,
    output psn_t                        psn_o
);

  // cycles from the valid bit's fall to the last effect of a frame
  localparam int unsigned Drain = 8;

  typedef enum logic [1:0] {
    StIdle,
    StDrain,
    StPaths
  } state_e;

  cfg_conn_t cfg;
  logic cfg_hit;
  logic [15:0] cfg_conn;
  assign cfg      = cfg_i.data[$bits(cfg_conn_t)-1:0];
  assign cfg_conn = cfg_i.index / 16'(NumPorts);
  assign cfg_hit  = cfg_i.valid && cfg_i.kind == CfgConn &&
                    cfg_i.index % 16'(NumPorts) == 16'(Port) && (cfg_conn >> ConnW) == '0;

  state_e state_q, state_d;
  logic [NumConns-1:0] valid_q;
  logic [ConnW-1:0] conn_q;
  psn_t psn_q;

  logic [$clog2(Drain)-1:0] drain_q;
  logic [PathW-1:0] path_q;
  logic claim_q, table_q;  // still to be written for this path

  logic path_done, done;
  assign path_done = (!claim_q || claim_ready_i) && (!table_q || state_ready_i);
  assign done      = state_q == StPaths && path_done && path_q == PathW'(PathsPerPort - 1);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (cfg_hit && cfg.valid) state_d = StDrain;
      StDrain: if (drain_q == '0) state_d = StPaths;
      StPaths: if (done) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (cfg_hit) begin
      conn_q <= cfg_conn[ConnW-1:0];
      psn_q  <= cfg.rx_psn;
    end
    drain_q <= (state_q == StDrain) ? drain_q - 1'b1 : $clog2(Drain)'(Drain - 1);
    if (state_q == StDrain) begin
      path_q  <= '0;
      claim_q <= 1'b1;
      table_q <= 1'b1;
    end else if (state_q == StPaths) begin
      if (path_done) begin
        path_q  <= path_q + 1'b1;
        claim_q <= 1'b1;
        table_q <= 1'b1;
      end else begin
        if (claim_ready_i) claim_q <= 1'b0;
        if (state_ready_i) table_q <= 1'b0;
      end
    end

    if (rst_i) begin
      state_q <= StIdle;
      valid_q <= '0;
    end else begin
      state_q <= state_d;
      if (done) valid_q[conn_q] <= 1'b1;
      if (cfg_hit) valid_q[cfg_conn[ConnW-1:0]] <= 1'b0;
    end
  end

  assign conn_valid_o  = valid_q;
  assign info_we_o     = cfg_hit;
  assign info_idx_o    = cfg_conn[ConnW-1:0];
  assign info_o        = '{cfg.incarnation, cfg.share};
  assign claim_valid_o = state_q == StPaths && claim_q;
  assign state_valid_o = state_q == StPaths && table_q;
  assign idx_o         = {conn_q, path_q};
  assign psn_o         = psn_q;

  `WEFT_IMPLIES(OneAtATime, cfg_hit, state_q == StIdle);

endmodule
`default_nettype wire
