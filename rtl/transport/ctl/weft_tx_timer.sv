// SPDX-License-Identifier: Apache-2.0
//
// Deadlines of the paths with unsettled packets. A ring of the connections that have any is walked
// for ever, one path a cycle: no timer a packet, and nothing moves while the ring is empty.
//
// A path is armed at a moment of time, silent or probing:
//   silent   expires 2 srtt after it            (nothing heard of data sent then)
//   probing  expires max(probe_min, srtt + 4 rttvar) << backoff after it
// The RTT estimate is read when the deadline is examined, so it is always the current one. An
// expired path is offered on fire_*; arming or disarming that path meanwhile withdraws the offer.
// Whoever takes the offer must arm or disarm the path, or it fires again in the next round.
// Resolution: one round = connections in the ring x (PathsPerPort + 6) cycles, waits for
// fire_ready_i added. set_i may come every third cycle.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_timer
  import weft_tx_ctl_pkg::*;
#(
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    localparam int unsigned ConnW        = (NumConns > 1) ? $clog2(NumConns) : 1,
    localparam int unsigned PathW        = (PathsPerPort > 1) ? $clog2(PathsPerPort) : 1,
    localparam int unsigned KeyW         = ConnW + PathW
) (
    input wire        clk_i,
    input wire        rst_i,
    input wire [31:0] now_i,
    input rtt_t       probe_min_i,

    // Arm (from now on) or disarm a path.
    input wire            set_i,
    input wire [KeyW-1:0] set_key_i,
    input wire            set_armed_i,
    input wire            set_probing_i,
    input wire [     1:0] set_backoff_i,

    // RTT estimate of a connection, the cycle after the read.
    output logic                   rtt_re_o,
    output logic       [ConnW-1:0] rtt_conn_o,
    input  rtt_state_t             rtt_i,

    // An expired path.
    output logic            fire_valid_o,
    input  wire             fire_ready_i,
    output logic [KeyW-1:0] fire_key_o,

    output logic idle_o  // nothing is armed
);

  localparam int unsigned NumKeys = NumConns << PathW;

  typedef logic [ConnW-1:0] cidx_t;
  typedef logic [PathW-1:0] pidx_t;
  typedef logic [27:0] clock_t;  // the longest wait is below 2^26 cycles

  typedef struct packed {
    logic        armed;
    logic        probing;
    logic [1:0]  backoff;
    clock_t      since;
  } entry_t;

  typedef enum logic [2:0] {
    StReset,  // nobody is in the ring
    StIdle,
    StRtt,    // the connection's RTT is read
    StLimit,  // srtt + 4 rttvar
    StScan,   // one path a cycle
    StDrain,  // the last paths are compared
    StAgain   // back into the ring, or out of it
  } state_e;

  state_e state_q;
  cidx_t conn_q;               // being examined
  pidx_t path_q;               // read in this cycle

  // Stages of the examination (below).
  logic read_q, aged_q, armed_q, any_q;
  pidx_t read_path_q, aged_path_q;
  logic fire_q;
  pidx_t fire_path_q;
  logic [22:0] rto_q, rto_sum_q;
  logic [20:0] silent_q;
  clock_t age_q;
  logic [25:0] limit_q;

  wire pidx_t set_path = set_key_i[PathW-1:0];
  wire set_here = set_i && set_key_i[KeyW-1:PathW] == conn_q;
  wire expired = aged_q && armed_q && age_q >= clock_t'(limit_q)
      && !(set_here && set_path == aged_path_q);
  wire go = !fire_q && !expired;  // the stages move; they wait while an expired path is offered

  // ---- arming: the entry, and the connection into the ring unless it is there -------------------
  entry_t entry_rd;
  weft_sdpram #(
      .data_t(entry_t),
      .Depth (NumKeys)
  ) u_entry (
      .clk_i,
      .we_i   (set_i),
      .waddr_i(set_key_i),
      .wdata_i('{
          armed: set_armed_i,
          probing: set_probing_i,
          backoff: set_backoff_i,
          since: clock_t'(now_i)
      }),
      .re_i   (state_q == StScan && go),
      .raddr_i({conn_q, path_q}),
      .rdata_o(entry_rd)
  );

  wire set_arm = set_i && set_armed_i;
  logic arm_q;                 // an arming whose connection may have to enter the ring
  cidx_t arm_conn_q, init_q;
  logic in_ring;
  logic leave;                 // the connection examined leaves the ring
  wire enter = arm_q && !in_ring;

  weft_sdpram #(
      .Width(1),
      .Depth(NumConns)
  ) u_in_ring (
      .clk_i,
      .we_i   (enter || leave || state_q == StReset),
      .waddr_i(state_q == StReset ? init_q : enter ? arm_conn_q : conn_q),
      .wdata_i(enter),
      .re_i   (set_arm),
      .raddr_i(set_key_i[KeyW-1:PathW]),
      .rdata_o(in_ring)
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) arm_q <= 1'b0;
    else arm_q <= set_arm;
    if (set_arm) arm_conn_q <= set_key_i[KeyW-1:PathW];
  end

  // ---- the ring ---------------------------------------------------------------------------------
  logic ring_valid, ring_room, stay;
  cidx_t ring_conn;
  logic [$clog2(NumConns+1)-1:0] ring_count;

  weft_fifo #(
      .data_t(cidx_t),
      .Depth (NumConns)
  ) u_ring (
      .clk_i,
      .rst_i,
      .s_valid_i(enter || stay),
      .s_ready_o(ring_room),
      .s_data_i (enter ? arm_conn_q : conn_q),
      .m_valid_o(ring_valid),
      .m_ready_i(state_q == StIdle),
      .m_data_o (ring_conn),
      .count_o  (ring_count)
  );

  // ---- examine: read, age and limit, compare ----------------------------------------------------
  // A path armed or disarmed on its way through the stages is looked at in the next round.
  wire touched = set_here && set_armed_i;

  assign rtt_re_o = state_q == StIdle && ring_valid;
  assign rtt_conn_o = ring_conn;
  assign fire_valid_o = fire_q;
  assign fire_key_o = {conn_q, fire_path_q};
  assign idle_o = ring_count == '0 && (state_q == StIdle) && !arm_q;

  assign leave = state_q == StAgain && !any_q && !touched && !enter;
  assign stay = state_q == StAgain && any_q && !enter;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q <= StReset;
      init_q <= '0;
      read_q <= 1'b0;
      aged_q <= 1'b0;
      fire_q <= 1'b0;
    end else begin
      unique case (state_q)
        StReset: begin
          init_q <= init_q + 1'b1;
          if (init_q == cidx_t'(NumConns - 1)) state_q <= StIdle;
        end
        StIdle: if (ring_valid) state_q <= StRtt;
        StRtt: state_q <= StLimit;
        StLimit: state_q <= StScan;
        StScan: if (go && path_q == pidx_t'(PathsPerPort - 1)) state_q <= StDrain;
        StDrain: if (go && !read_q && !aged_q) state_q <= StAgain;
        StAgain: if (leave || stay) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase

      if (go) begin
        read_q <= state_q == StScan && !(set_here && set_path == path_q);
        aged_q <= read_q && !(set_here && set_path == read_path_q);
      end else if (set_here && set_path == read_path_q) read_q <= 1'b0;
      if (expired) begin
        fire_q <= 1'b1;
        aged_q <= 1'b0;
      end else if (fire_ready_i || (set_here && set_path == fire_path_q)) fire_q <= 1'b0;
    end

    if (state_q == StIdle) begin
      conn_q <= ring_conn;
      path_q <= '0;
      any_q  <= 1'b0;
    end else begin
      if (state_q == StScan && go) path_q <= path_q + 1'b1;
      // Armed since it entered the scan counts too: else it could leave the ring armed.
      if (touched || (go && read_q && entry_rd.armed)) any_q <= 1'b1;
    end
    if (state_q == StRtt) begin
      silent_q <= {rtt_i.srtt8[22:3], 1'b0};
      rto_sum_q <= 23'(rtt_i.srtt8[22:3]) + 23'(rtt_i.var4);
    end
    if (state_q == StLimit) rto_q <= rto_sum_q > 23'(probe_min_i) ? rto_sum_q : 23'(probe_min_i);
    if (go && state_q == StScan) read_path_q <= path_q;
    if (go && read_q) begin
      aged_path_q <= read_path_q;
      armed_q <= entry_rd.armed;
      age_q <= clock_t'(now_i) - entry_rd.since;
      limit_q <= entry_rd.probing ? 26'(rto_q) << entry_rd.backoff : 26'(silent_q);
    end
    if (expired) fire_path_q <= aged_path_q;
  end

  `WEFT_IMPLIES(RingHolds, enter || stay, ring_room);
  `WEFT_IMPLIES(SetSpaced, set_arm, !arm_q);
  `WEFT_IMPLIES(SetAfterReset, set_arm, state_q != StReset);

endmodule

`default_nettype wire
