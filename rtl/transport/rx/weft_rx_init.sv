// SPDX-License-Identifier: Apache-2.0
//
// What happens when a connection is configured (CfgConn of this port): it is taken out of service
// at once, frames that were accepted for it before drain from the pipelines, its paths start anew
// in the claim table, the state table and among those that owe acks, then it serves. One connection
// after the other, 8 + 3 x PathsPerPort cycles each at most; a connection that waits for its turn
// waits once, with what its last CfgConn said. So CfgConn may come as fast as they like, also of a
// connection that is just being started.
//
// Packets that wait for memory, for the core or for its verdict meanwhile are refused by the commit
// stage: its copy of the configuration counts lives, and theirs is over.
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
    // A path starts with base psn_o: once to the claim table, once to the state table, once to the
    // acks that are due.
    output logic                        claim_valid_o,
    input  wire                         claim_ready_i,
    output logic                        state_valid_o,
    input  wire                         state_ready_i,
    output logic                        due_valid_o,
    input  wire                         due_ready_i,
    output logic [ConnW+PathW-1:0]      idx_o,
    output psn_t                        psn_o,
    output logic                        busy_o
);

  // cycles from the valid bit's fall to the last effect of a frame
  localparam int unsigned Drain = 8;

  typedef enum logic [2:0] {
    StIdle,
    StTake,   // what the connection's last CfgConn said is read
    StDrain,
    StPaths
  } state_e;

  typedef struct packed {
    logic valid;
    psn_t psn;
  } start_t;

  cfg_conn_t cfg;
  logic cfg_hit;
  logic [15:0] cfg_conn;
  logic [ConnW-1:0] cfg_idx;
  assign cfg      = cfg_i.data[$bits(cfg_conn_t)-1:0];
  assign cfg_conn = cfg_i.index / 16'(NumPorts);
  assign cfg_idx  = cfg_conn[ConnW-1:0];
  assign cfg_hit  = cfg_i.valid && cfg_i.kind == CfgConn &&
                    cfg_i.index % 16'(NumPorts) == 16'(Port) && (cfg_conn >> ConnW) == '0;

  // ---- connections to be started
  state_e state_q, state_d;
  logic hit_q, waits, take;
  logic [ConnW-1:0] hit_idx_q, next_idx, conn_q;
  logic [NumConns-1:0] waiting;
  start_t start_mem[NumConns];
  start_t start_q;
  always_ff @(posedge clk_i) begin
    hit_q     <= cfg_hit && !rst_i;
    hit_idx_q <= cfg_idx;
    if (cfg_hit) start_mem[cfg_idx] <= '{valid: cfg.valid, psn: cfg.rx_psn};
    if (take) begin
      conn_q  <= next_idx;
      start_q <= start_mem[next_idx];
    end
  end
  weft_once_queue #(
      .NumIdx(NumConns)
  ) u_wait (
      .clk_i,
      .rst_i,
      .push_i    (hit_q),
      .push_idx_i(hit_idx_q),
      .valid_o   (waits),
      .idx_o     (next_idx),
      .pop_i     (take),
      .waits_o   (waiting)
  );
  assign take = state_q == StIdle && waits;

  // ---- start one
  logic [NumConns-1:0] valid_q;
  logic [$clog2(Drain)-1:0] drain_q;
  logic [PathW-1:0] path_q;
  logic claim_q, table_q, due_q;  // still to be written for this path

  logic path_done, done, again;
  assign path_done = (!claim_q || claim_ready_i) && (!table_q || state_ready_i) &&
                     (!due_q || due_ready_i);
  assign done      = state_q == StPaths && path_done && path_q == PathW'(PathsPerPort - 1);
  // configured again meanwhile: its turn comes again
  assign again     = waiting[conn_q] || (hit_q && hit_idx_q == conn_q) ||
                     (cfg_hit && cfg_idx == conn_q);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (take) state_d = StTake;
      StTake:  state_d = start_q.valid ? StDrain : StIdle;
      StDrain: if (drain_q == '0) state_d = StPaths;
      StPaths: if (done) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    drain_q <= (state_q == StDrain) ? drain_q - 1'b1 : $clog2(Drain)'(Drain - 1);
    if (state_q == StDrain) begin
      path_q  <= '0;
      claim_q <= 1'b1;
      table_q <= 1'b1;
      due_q   <= 1'b1;
    end else if (state_q == StPaths) begin
      if (path_done) begin
        path_q  <= path_q + 1'b1;
        claim_q <= 1'b1;
        table_q <= 1'b1;
        due_q   <= 1'b1;
      end else begin
        if (claim_ready_i) claim_q <= 1'b0;
        if (state_ready_i) table_q <= 1'b0;
        if (due_ready_i) due_q <= 1'b0;
      end
    end

    if (rst_i) begin
      state_q <= StIdle;
      valid_q <= '0;
    end else begin
      state_q <= state_d;
      if (done && !again) valid_q[conn_q] <= 1'b1;
      if (cfg_hit) valid_q[cfg_idx] <= 1'b0;
    end
  end

  // ---- lives are counted; what the count was at power-on does not matter
  life_t life_mem[NumConns];
  life_t life;
  assign life = life_mem[cfg_idx] + 1'b1;
  always_ff @(posedge clk_i) if (cfg_hit) life_mem[cfg_idx] <= life;

  assign conn_valid_o  = valid_q;
  assign info_we_o     = cfg_hit;
  assign info_idx_o    = cfg_idx;
  assign info_o        = '{cfg.incarnation, life, cfg.share};
  assign claim_valid_o = state_q == StPaths && claim_q;
  assign state_valid_o = state_q == StPaths && table_q;
  assign due_valid_o   = state_q == StPaths && due_q;
  assign idx_o         = {conn_q, path_q};
  assign psn_o         = start_q.psn;
  assign busy_o        = state_q != StIdle || waits || hit_q;

  // frames that were accepted before have had the time of their verdict
  `WEFT_IMPLIES(OutOfService, state_q == StPaths, !valid_q[conn_q]);

endmodule
`default_nettype wire
