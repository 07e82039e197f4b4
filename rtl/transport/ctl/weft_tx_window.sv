// SPDX-License-Identifier: Apache-2.0
//
// What an ack does to its path's window and to its connection's round-trip estimate
// (docs/congestion.md, "Windows" and "Round trip"). Owns both tables.
//
// An ack is prepared in 6 cycles beside whatever the scheduler does: both outcomes (path was
// limited by its window, or not) are worked out, because only the scheduler knows which is true. It
// takes the result by apply_i, in a cycle of its choice while prep_valid_o, with the window it
// settled on; the tables are written then (not with apply_drop_i). One ack at a time, 8 cycles an
// ack at least. Does not know bytes in flight, caps, or which paths are active.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_window
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
    input wire         clk_i,
    input wire         rst_i,
    input wire  [31:0] now_i,
    input full_t       pkt_i,
    input rtt_t        rtt_init_i,

    // What acks settled; taken when its result is applied.
    input  wire         res_valid_i,
    output logic        res_ready_o,
    input  ack_result_t res_i,

    // The prepared result. Stays while prep_valid_o; a new one not before apply_i.
    output logic   prep_valid_o,
    output logic   prep_fresh_o,    // it settled something or carries a new echo: the path is alive
    output logic   prep_newmin_o,   // it holds the connection's first or smallest RTT so far
    output rtt_t   prep_rtt_o,
    output bytes_t prep_cwnd_o,     // window before
    output bytes_t prep_grown_o,    // window after, if the path was limited by it
    output bytes_t prep_kept_o,     // window after, if not
    output logic   prep_cut_o,      // bytes were marked
    input  wire    apply_i,
    input  wire    apply_drop_i,    // the connection is down: forget it
    input  wire    apply_limited_i,
    input  bytes_t apply_cwnd_i,

    // Start of a path: its window, and with init_zero_i its counters (res_i is zero then). Start of
    // a connection: its round trip; two cycles at least after the last result was applied.
    input wire             init_path_i,
    input wire             init_zero_i,
    input wire             init_conn_i,
    input wire  [KeyW-1:0] init_key_i,   // {connection, path}
    input bytes_t          init_cwnd_i,

    // Round-trip state of a connection, the cycle after the read.
    input  wire              rtt_re_i,
    input  wire  [ConnW-1:0] rtt_conn_i,
    output rtt_state_t       rtt_o
);

  localparam int unsigned NumKeys = NumConns << PathW;

  typedef struct packed {
    logic   slow;           // slow start: nothing was marked yet
    bytes_t cwnd;
    bytes_t acc;            // unmarked bytes since the last packet of growth
  } win_t;

  typedef struct packed {   // of the last ack that taught something
    bytes_t      ce_bytes;
    bytes_t      rx_bytes;
    logic [31:0] echo;
  } seen_t;

  typedef enum logic [2:0] {
    StIdle,
    StRead,   // tables are read
    StDiff,   // counter differences, RTT sample
    StMark,   // is the sample usable, is loss a mark
    StCut,    // marked part
    StFloor,  // never below one packet
    StGrow,   // unmarked part
    StReady   // both outcomes stand
  } state_e;

  state_e state_q;
  win_t win_rd, win_q, win_wr;
  seen_t seen_rd;
  rtt_state_t rtt_rd, rtt_q, rtt_wr;
  wire [KeyW-1:0] key = {res_i.conn[ConnW-1:0], res_i.path[PathW-1:0]};
  wire apply = apply_i && !apply_drop_i;

  weft_sdpram #(
      .data_t(win_t),
      .Depth (NumKeys)
  ) u_win (
      .clk_i,
      .we_i   (init_path_i || (apply && prep_fresh_o)),
      .waddr_i(init_path_i ? init_key_i : key),
      .wdata_i(win_wr),
      .re_i   (state_q == StIdle && res_valid_i),
      .raddr_i(key),
      .rdata_o(win_rd)
  );

  weft_sdpram #(
      .data_t(seen_t),
      .Depth (NumKeys)
  ) u_seen (
      .clk_i,
      .we_i   ((init_path_i && init_zero_i) || (apply && prep_fresh_o)),
      .waddr_i(init_path_i ? init_key_i : key),
      .wdata_i('{ce_bytes: res_i.ce_bytes, rx_bytes: res_i.rx_bytes, echo: res_i.echo}),
      .re_i   (state_q == StIdle && res_valid_i),
      .raddr_i(key),
      .rdata_o(seen_rd)
  );

  logic rtt_we;
  // Two copies: one is read for acks, one for the timers and caps.
  weft_sdpram #(
      .data_t(rtt_state_t),
      .Depth (NumConns)
  ) u_rtt (
      .clk_i,
      .we_i   (rtt_we),
      .waddr_i(init_conn_i ? init_key_i[KeyW-1:PathW] : key[KeyW-1:PathW]),
      .wdata_i(rtt_wr),
      .re_i   (state_q == StIdle && res_valid_i),
      .raddr_i(key[KeyW-1:PathW]),
      .rdata_o(rtt_rd)
  );
  weft_sdpram #(
      .data_t(rtt_state_t),
      .Depth (NumConns)
  ) u_rtt_copy (
      .clk_i,
      .we_i   (rtt_we),
      .waddr_i(init_conn_i ? init_key_i[KeyW-1:PathW] : key[KeyW-1:PathW]),
      .wdata_i(rtt_wr),
      .re_i   (rtt_re_i),
      .raddr_i(rtt_conn_i),
      .rdata_o(rtt_o)
  );

  logic [31:0] echo_diff_q, age_q;
  bytes_t ce_diff_q, rx_diff_q;
  logic fresh_q, sample_q, newmin_q;
  bytes_t marked_q, unmarked_q, cut_q, grow_q;
  logic behind_q, below_q;           // the difference was negative
  logic [21:0] rtt3_q;               // three times the smallest RTT
  logic [22:0] srtt8_q;              // estimate after this ack
  logic [21:0] var4_q, calm4_q;      // deviation after it, and what is left of the old one
  logic signed [20:0] err_q;
  bytes_t acc_q, acc_left_q;
  logic acc_full_q;

  wire marked = marked_q != '0;
  wire rtt_t rtt = age_q[19:0];
  // While nothing is prepared the estimate stands at what a new connection starts with.
  wire rtt_t seed_rtt = state_q == StIdle ? rtt_init_i : rtt;
  // Loss is a mark only while the queues are long. (Unsampled: the smallest RTT reads as the
  // largest.)
  wire bytes_t lost_mark = (sample_q && 22'(rtt) > rtt3_q) ? bytes_t'(res_i.lost_bytes) : '0;
  wire [22:0] grow_sum = {1'b0, cut_q} + {1'b0, win_q.slow ? unmarked_q : bytes_t'(pkt_i)};
  wire [22:0] acc_rest = {1'b0, acc_q} - {1'b0, cut_q};
  // calm4 + |err|: one adder, its carry in completes the negation.
  wire [22:0] var4_sum = {calm4_q, 1'b1} + {22'(err_q) ^ {22{err_q[20]}}, err_q[20]};

  always_ff @(posedge clk_i) begin
    if (rst_i) state_q <= StIdle;
    else
      unique case (state_q)
        StIdle:  if (res_valid_i) state_q <= StRead;
        StRead:  state_q <= StDiff;
        StDiff:  state_q <= StMark;
        StMark:  state_q <= StCut;
        StCut:   state_q <= StFloor;
        StFloor: state_q <= StGrow;
        StGrow:  state_q <= StReady;
        StReady: if (apply_i) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase

    if (state_q == StRead) begin
      win_q <= win_rd;
      rtt_q <= rtt_rd;
      ce_diff_q <= res_i.ce_bytes - seen_rd.ce_bytes;
      rx_diff_q <= res_i.rx_bytes - seen_rd.rx_bytes;
      echo_diff_q <= res_i.echo - seen_rd.echo;
      age_q <= now_i - res_i.echo;
    end
    if (state_q == StDiff) begin
      fresh_q <= res_i.psns != '0 || (!echo_diff_q[31] && echo_diff_q != '0);
      {behind_q, unmarked_q} <= {1'b0, rx_diff_q} - {1'b0, ce_diff_q};
      rtt3_q <= {2'b0, rtt_q.min} + {1'b0, rtt_q.min, 1'b0};
      err_q <= {1'b0, rtt} - {1'b0, rtt_q.srtt8[22:3]};
      calm4_q <= rtt_q.var4 - {2'b0, rtt_q.var4[21:2]};
    end
    if (state_q == StMark) begin
      // A copy or a late ack teaches nothing; its counters may even lie behind.
      if (!fresh_q) ce_diff_q <= '0;
      if (!fresh_q || behind_q) unmarked_q <= '0;
      // A sample of 2^20 cycles or more is no round trip but an echo of something ancient.
      sample_q <= fresh_q && age_q[31:20] == '0;
      newmin_q <= !rtt_q.sampled || rtt < rtt_q.min;
    end
    if (state_q == StMark || state_q == StIdle) begin
      if (state_q == StIdle || !rtt_q.sampled) begin
        srtt8_q <= {seed_rtt, 3'b0};
        var4_q  <= {1'b0, seed_rtt, 1'b0};
      end else begin
        srtt8_q <= rtt_q.srtt8 + 23'(err_q);
        var4_q  <= var4_sum[22:1];
      end
    end
    if (state_q == StCut) begin
      marked_q <= ce_diff_q + lost_mark;
      newmin_q <= newmin_q && sample_q;
    end
    if (state_q == StFloor) begin
      {below_q, cut_q} <= {1'b0, win_q.cwnd} - {3'b0, marked_q[21:2]};  // a quarter of the marked
      acc_q <= (marked ? '0 : win_q.acc) + unmarked_q;
    end
    if (state_q == StGrow) begin
      // Growth counts only without marks; then nothing was cut and the floor is kept anyway.
      if (below_q || cut_q < bytes_t'(pkt_i)) cut_q <= bytes_t'(pkt_i);
      grow_q <= grow_sum[22] ? '1 : grow_sum[21:0];
      acc_full_q <= !acc_rest[22];
      acc_left_q <= acc_rest[21:0];
    end
  end

  wire slow = win_q.slow && !marked;

  assign prep_valid_o = state_q == StReady;
  assign res_ready_o = state_q == StReady && apply_i;
  assign prep_fresh_o = fresh_q;
  assign prep_newmin_o = newmin_q;
  assign prep_rtt_o = rtt;
  assign prep_cwnd_o = win_q.cwnd;
  assign prep_kept_o = cut_q;
  assign prep_cut_o = marked;
  assign prep_grown_o = (slow || acc_full_q) && !marked ? grow_q : cut_q;

  assign win_wr = '{
          slow: init_path_i || slow,
          cwnd: init_path_i ? init_cwnd_i : apply_cwnd_i,
          acc: init_path_i ? '0 : !apply_limited_i ? win_q.acc
              : (acc_full_q && !marked) ? acc_left_q : acc_q
      };

  assign rtt_we = init_conn_i || (apply && sample_q);
  assign rtt_wr = '{
          sampled: !init_conn_i,
          min: init_conn_i ? '1 : newmin_q ? rtt : rtt_q.min,
          srtt8: srtt8_q,
          var4: var4_q
      };

  `WEFT_IMPLIES(AppliedWhenReady, apply_i, state_q == StReady);
  `WEFT_IMPLIES(OneWriter, apply_i, !init_path_i && !init_conn_i);
  `WEFT_IMPLIES(NeverBelowOnePacket, apply, apply_cwnd_i >= bytes_t'(pkt_i));
  `WEFT_IMPLIES(StartsFromZero, init_path_i && init_zero_i, res_i == '0);
  `WEFT_IMPLIES(StartsFromSeed, init_conn_i, state_q == StIdle && srtt8_q == {rtt_init_i, 3'b0});

endmodule

`default_nettype wire
