// SPDX-License-Identifier: Apache-2.0
//
// Long operations of the scheduler, one at a time, while it does nothing else: a connection starts
// as configured, fails, or gets a new cap (docs/congestion.md, "Life of a connection" and "Cap").
//
//   start, fail   every path is flushed: its packets go back to the core as lost, its timer stops;
//                 when all of them were taken, fail_o reports it (ErrOk: started)
//   start, cap    cap, active paths and window are worked out; rows of paths that were never used
//                 get that window
//
// start_i: the settle engine is held and quiet (but for a cap), fail_valid_o is low. read_o: the
// tables are to be read for the connection of key_o, live_i and setup_i belong to the cycle after.
// A connection that failed before fails no more: that ends at once.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_life
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_ctl_pkg::*;
#(
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    localparam int unsigned ConnW        = (NumConns > 1) ? $clog2(NumConns) : 1,
    localparam int unsigned PathW        = (PathsPerPort > 1) ? $clog2(PathsPerPort) : 1,
    localparam int unsigned KeyW         = ConnW + PathW
) (
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire              start_i,
    input  long_e            kind_i,
    input  wire  [ConnW-1:0] conn_i,
    input  err_e             status_i,    // of a failure
    input  rtt_t             min_rtt_i,   // for a cap
    input  full_t            pkt_i,
    output logic             ends_o,      // in its last cycle
    output long_e            kind_o,      // of the operation under way; LgCap when there is none
    output logic [KeyW-1:0]  key_o,       // its connection, and the path it is at

    // What the tables say of the connection.
    output logic             read_o,
    output logic             got_o,       // it is there: keep what you need
    input  wire              live_i,
    input  setup_t           setup_i,
    input  wire  [PathsPerPort-1:0] fresh_i,  // paths never used; kept since got_o

    // Settle engine; the path's state is to be read too, path_we_o comes later.
    output logic             cmd_o,
    input  wire              cmd_done_i,
    input  wire              quiet_i,

    // What is to be written.
    output logic             path_we_o,   // the path was flushed; a start gives it a new state
    output logic             row_we_o,    // the path starts with window_o
    output logic             hot_we_o,    // the connection
    output setup_t           setup_o,
    output bytes_t           cap_o,
    output logic       [7:0] active_o,
    output bytes_t           window_o,

    output logic             fail_valid_o,
    input  wire              fail_ready_i,
    output conn_fail_t       fail_o,
    output logic             evt_fail_o
);

  typedef enum logic [3:0] {
    StIdle,
    StRead,
    StGot,
    StFlush,  // each path: settle what is unsettled
    StPath,   // ... and start it anew
    StCap,    // wait for cap, active paths, window
    StRow,    // each unused path: window of the day
    StHot,    // write the connection back
    StReport  // every packet went back to the core: tell it
  } state_e;

  state_e state_q;
  long_e kind_q;
  logic [ConnW-1:0] conn_q;
  logic [PathW:0] path_q;
  err_e status_q;
  setup_t setup_q;
  logic first_q;  // first cycle of a path, or of the cap

  wire last_path = path_q == (PathW + 1)'(PathsPerPort - 1);
  wire gone = state_q == StGot && kind_q == LgFail && !live_i;  // it failed already
  wire reported = state_q == StReport && quiet_i;

  assign ends_o = gone || reported || (state_q == StHot && kind_q == LgCap);
  assign kind_o = kind_q;
  assign key_o = {conn_q, path_q[PathW-1:0]};
  assign read_o = state_q == StRead;
  assign got_o = state_q == StGot;
  assign cmd_o = state_q == StFlush && first_q;
  assign path_we_o = state_q == StPath;
  assign row_we_o = state_q == StRow && (kind_q == LgInit || fresh_i[path_q[PathW-1:0]]);
  assign hot_we_o = state_q == StHot;
  assign setup_o = setup_q;

  logic cap_done;
  weft_tx_cap u_cap (
      .clk_i,
      .rst_i,
      .start_i    (state_q == StCap && first_q),
      .sampled_i  (kind_q == LgCap),
      .share_i    (setup_q.share),
      .min_rtt_i,
      .init_cap_i (setup_q.init_cap),
      .num_paths_i(setup_q.num_paths),
      .pkt_i,
      .done_o     (cap_done),
      .cap_o,
      .active_o,
      .window_o
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q <= StIdle;
      kind_q <= LgCap;
      fail_valid_o <= 1'b0;
    end else begin
      first_q <= 1'b0;
      unique case (state_q)
        StIdle:
        if (start_i) begin
          state_q <= StRead;
          kind_q  <= kind_i;
        end
        StRead: state_q <= StGot;
        StGot: begin
          first_q <= 1'b1;
          state_q <= gone ? StIdle : kind_q == LgCap ? StCap : StFlush;
        end
        StFlush: if (cmd_done_i) state_q <= StPath;
        StPath: begin
          first_q <= 1'b1;
          state_q <= !last_path ? StFlush : kind_q == LgInit ? StCap : StHot;
        end
        StCap: if (cap_done) state_q <= StRow;
        StRow: if (last_path) state_q <= StHot;
        StHot: state_q <= kind_q == LgCap ? StIdle : StReport;
        StReport: if (quiet_i) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
      if (ends_o) kind_q <= LgCap;

      if (reported) fail_valid_o <= 1'b1;
      else if (fail_ready_i) fail_valid_o <= 1'b0;
    end
    if (state_q == StIdle) begin
      conn_q   <= conn_i;
      status_q <= status_i;
    end
    if (state_q == StGot) setup_q <= setup_i;
    if (state_q == StIdle || state_q == StCap) path_q <= '0;
    else if (state_q == StPath || state_q == StRow) path_q <= path_q + 1'b1;
    if (state_q == StReport)
      fail_o <= '{conn: conn_t'(conn_q), status: kind_q == LgFail ? status_q : ErrOk};
    evt_fail_o <= reported && kind_q == LgFail && !rst_i;
  end

  `WEFT_IMPLIES(OneAtATime, start_i, state_q == StIdle && !(fail_valid_o && kind_i != LgCap));
  `WEFT_HOLD(FailHolds, fail_valid_o, fail_ready_i, fail_o);

endmodule

`default_nettype wire
