// SPDX-License-Identifier: Apache-2.0
//
// What an ack does to its path's window and to its connection's round-trip estimate (docs/congestion.md,
// "Windows" and "Round trip"). Owns both tables.
//
// An ack is prepared in 6 cycles beside whatever the scheduler does: both outcomes (path was limited
// by its window, or not) are worked out, because only the scheduler knows which is true. It takes the
// result by apply_i, in a cycle of its choice while prep_valid_o, with the window it settled on; the
// tables are written then (not with apply_drop_i). One ack at a time, 8 cycles an ack at least.
// Does not know bytes in flight, caps, or which paths are active.
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
    input wire bytes_t pkt_i,     // bytes of a full packet, WIN_OVERHEAD included
    input rtt_t        rtt_init_i,

    // What acks settled; taken when its result is applied.
    input  wire         res_valid_i,
    output logic        res_ready_o,
    input  ack_result_t res_i,

    // The prepared result. Stays while prep_valid_o; a new one not before apply_i.
    output logic   prep_valid_o,
    output logic   prep_fresh_o,    // the ack settled something or carries a new echo: the path is alive
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

    // Start of a path (its window), start of a connection (its round trip).
    input wire             init_path_i,
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
    logic        slow;      // slow start: nothing was marked yet
    bytes_t      cwnd;
    logic [24:0] acc;       // unmarked bytes since the last packet of growth
    logic [31:0] ce_bytes;  // counters and echo of the last ack
    logic [31:0] rx_bytes;
    logic [31:0] echo;
  } win_t;

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
  rtt_state_t rtt_rd, rtt_q, rtt_wr;
  wire [KeyW-1:0] key = {res_i.conn[ConnW-1:0], res_i.path[PathW-1:0]};
  wire apply = apply_i && !apply_drop_i;

  weft_sdpram #(
      .data_t(win_t),
      .Depth (NumKeys)
  ) u_win (
      .clk_i,
      .we_i   (init_path_i || apply),
      .waddr_i(init_path_i ? init_key_i : key),
      .wdata_i(win_wr),
      .re_i   (state_q == StIdle && res_valid_i),
      .raddr_i(key),
      .rdata_o(win_rd)
  );

  // Two copies: one is read for acks, one for the timers and caps.
  weft_sdpram #(
      .data_t(rtt_state_t),
      .Depth (NumConns)
  ) u_rtt (
      .clk_i,
      .we_i   (init_conn_i || apply),
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
      .we_i   (init_conn_i || apply),
      .waddr_i(init_conn_i ? init_key_i[KeyW-1:PathW] : key[KeyW-1:PathW]),
      .wdata_i(rtt_wr),
      .re_i   (rtt_re_i),
      .raddr_i(rtt_conn_i),
      .rdata_o(rtt_o)
  );

  // A counter difference as a window takes it: never negative (a late copy of an ack), saturated.
  function automatic bytes_t grown_by(logic [31:0] diff);
    return diff[31] ? '0 : (diff[30:24] != '0) ? '1 : diff[23:0];
  endfunction

  logic [31:0] ce_diff_q, rx_diff_q, echo_diff_q, age_q;
  logic fresh_q, sample_q, newmin_q;
  bytes_t marked_q, unmarked_q, cut_q, grow_q;
  logic [25:0] rtt3_q;               // three times the smallest RTT
  logic [26:0] srtt8_q;              // estimate after this ack
  logic [25:0] var4_q;
  logic signed [24:0] err_q;
  logic [24:0] acc_q, acc_left_q;
  logic acc_full_q;

  wire bytes_t ce_bytes = grown_by(ce_diff_q);
  wire bytes_t rx_bytes = grown_by(rx_diff_q);
  wire rtt_t rtt = age_q[23:0];
  // Loss is a mark only while the queues are long. (Unsampled: the smallest RTT reads as the largest.)
  wire [24:0] marked_sum = {1'b0, marked_q} + ((sample_q && {2'b0, rtt} > rtt3_q)
                                               ? 25'(res_i.lost_bytes) : 25'd0);
  wire [24:0] grow_sum = {1'b0, cut_q} + {1'b0, win_q.slow ? unmarked_q : pkt_i};
  wire [23:0] err_abs = err_q[24] ? 24'(-err_q) : err_q[23:0];

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
      ce_diff_q <= res_i.ce_bytes - win_rd.ce_bytes;
      rx_diff_q <= res_i.rx_bytes - win_rd.rx_bytes;
      echo_diff_q <= res_i.echo - win_rd.echo;
      age_q <= now_i - res_i.echo;
    end
    if (state_q == StDiff) begin
      fresh_q <= res_i.psns != '0 || (!echo_diff_q[31] && echo_diff_q != '0);
      marked_q <= ce_bytes;
      unmarked_q <= rx_bytes > ce_bytes ? rx_bytes - ce_bytes : '0;
      rtt3_q <= {2'b0, rtt_q.min} + {1'b0, rtt_q.min, 1'b0};
      err_q <= $signed({1'b0, rtt}) - $signed({1'b0, rtt_q.srtt8[26:3]});
    end
    if (state_q == StMark) begin
      // A sample of 2^24 cycles or more is no round trip but an echo of something ancient.
      sample_q <= fresh_q && age_q[31:24] == '0;
      newmin_q <= !rtt_q.sampled || rtt < rtt_q.min;
      if (!rtt_q.sampled) begin
        srtt8_q <= {rtt, 3'b0};
        var4_q <= {1'b0, rtt, 1'b0};
      end else begin
        srtt8_q <= rtt_q.srtt8 + 27'(err_q);
        var4_q <= rtt_q.var4 - {2'b0, rtt_q.var4[25:2]} + 26'(err_abs);
      end
    end
    if (state_q == StCut) begin
      marked_q <= marked_sum[24] ? '1 : marked_sum[23:0];
      newmin_q <= newmin_q && sample_q;
    end
    if (state_q == StFloor) begin
      cut_q <= win_q.cwnd > {2'b0, marked_q[23:2]} ? win_q.cwnd - {2'b0, marked_q[23:2]} : '0;
      acc_q <= (marked_q != '0 ? 25'd0 : win_q.acc) + {1'b0, unmarked_q};
    end
    if (state_q == StGrow) begin
      // Growth counts only without marks; then nothing was cut and the floor is kept anyway.
      if (cut_q < pkt_i) cut_q <= pkt_i;
      grow_q <= grow_sum[24] ? '1 : grow_sum[23:0];
      acc_full_q <= acc_q >= {1'b0, cut_q};
      acc_left_q <= acc_q - {1'b0, cut_q};
    end
  end

  wire marked = marked_q != '0;
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

  always_comb begin
    win_wr = '{
        slow: slow,
        cwnd: apply_cwnd_i,
        acc: !apply_limited_i ? (marked ? '0 : win_q.acc)
            : slow ? '0 : (acc_full_q && !marked) ? acc_left_q : acc_q,
        ce_bytes: ce_diff_q[31] ? win_q.ce_bytes : res_i.ce_bytes,
        rx_bytes: rx_diff_q[31] ? win_q.rx_bytes : res_i.rx_bytes,
        echo: fresh_q ? res_i.echo : win_q.echo
    };
    if (init_path_i) win_wr = '{slow: 1'b1, cwnd: init_cwnd_i, default: '0};

    rtt_wr = rtt_q;
    if (sample_q)
      rtt_wr = '{sampled: 1'b1, min: newmin_q ? rtt : rtt_q.min, srtt8: srtt8_q, var4: var4_q};
    if (init_conn_i)
      rtt_wr = '{
          sampled: 1'b0,
          min: '1,
          srtt8: {rtt_init_i, 3'b0},
          var4: {1'b0, rtt_init_i, 1'b0}
      };
  end

  `WEFT_IMPLIES(AppliedWhenReady, apply_i, state_q == StReady);
  `WEFT_IMPLIES(OneWriter, apply_i, !init_path_i && !init_conn_i);
  `WEFT_IMPLIES(NeverBelowOnePacket, apply, apply_cwnd_i >= pkt_i);

endmodule

`default_nettype wire
