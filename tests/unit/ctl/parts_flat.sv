// SPDX-License-Identifier: Apache-2.0
//
// The parts of the transmit control on their own, structs taken apart: windows, cap, timers.
`default_nettype none

module parts_flat
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_ctl_pkg::*;
(
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire  [31:0] now_i,
    input  wire  [12:0] pkt_i,
    input  wire  [19:0] rtt_init_i,
    // Windows, 4 connections of 2 paths.
    input  wire         res_valid_i,
    output logic        res_ready_o,
    input  wire  [ 1:0] res_conn_i,
    input  wire         res_path_i,
    input  wire  [ 8:0] res_psns_i,
    input  wire  [20:0] res_bytes_i,
    input  wire  [20:0] res_lost_i,
    input  wire  [21:0] res_ce_i,
    input  wire  [21:0] res_rx_i,
    input  wire  [31:0] res_echo_i,
    output logic        prep_valid_o,
    output logic        prep_fresh_o,
    output logic        prep_newmin_o,
    output logic [19:0] prep_rtt_o,
    output logic [21:0] prep_cwnd_o,
    output logic [21:0] prep_grown_o,
    output logic [21:0] prep_kept_o,
    output logic        prep_cut_o,
    input  wire         apply_i,
    input  wire         apply_drop_i,
    input  wire         apply_limited_i,
    input  wire  [21:0] apply_cwnd_i,
    input  wire         init_path_i,
    input  wire         init_conn_i,
    input  wire  [ 2:0] init_key_i,
    input  wire  [21:0] init_cwnd_i,
    input  wire         rtt_re_i,
    input  wire  [ 1:0] rtt_conn_i,
    output logic [65:0] rtt_o,
    // Cap.
    input  wire         cap_start_i,
    input  wire         cap_sampled_i,
    input  wire  [15:0] cap_share_i,
    input  wire  [19:0] cap_rtt_i,
    input  wire  [21:0] cap_init_i,
    input  wire  [ 7:0] cap_paths_i,
    output logic        cap_done_o,
    output logic [21:0] cap_o,
    output logic [ 7:0] cap_active_o,
    output logic [21:0] cap_window_o,
    // Timers, 4 connections of 2 paths, all with the same round trip.
    input  wire  [19:0] probe_min_i,
    input  wire  [19:0] srtt_i,
    input  wire  [21:0] var4_i,
    input  wire         set_i,
    input  wire  [ 2:0] set_key_i,
    input  wire         set_armed_i,
    input  wire         set_probing_i,
    input  wire  [ 1:0] set_backoff_i,
    output logic        fire_valid_o,
    input  wire         fire_ready_i,
    output logic [ 2:0] fire_key_o,
    output logic        timer_idle_o
);

  ack_result_t res;
  assign res = '{
          conn: conn_t'(res_conn_i),
          path: path_t'(res_path_i),
          psns: res_psns_i,
          bytes: res_bytes_i,
          lost_bytes: res_lost_i,
          ce_bytes: res_ce_i,
          rx_bytes: res_rx_i,
          echo: res_echo_i,
          status: ErrOk
      };

  weft_tx_window #(
      .NumConns    (4),
      .PathsPerPort(2)
  ) u_window (
      .clk_i,
      .rst_i,
      .now_i,
      .pkt_i,
      .rtt_init_i,
      .res_valid_i,
      .res_ready_o,
      .res_i      (res),
      .prep_valid_o,
      .prep_fresh_o,
      .prep_newmin_o,
      .prep_rtt_o,
      .prep_cwnd_o,
      .prep_grown_o,
      .prep_kept_o,
      .prep_cut_o,
      .apply_i,
      .apply_drop_i,
      .apply_limited_i,
      .apply_cwnd_i,
      .init_path_i,
      .init_zero_i(1'b1),
      .init_conn_i,
      .init_key_i,
      .init_cwnd_i,
      .rtt_re_i,
      .rtt_conn_i,
      .rtt_o
  );

  weft_tx_cap u_cap (
      .clk_i,
      .rst_i,
      .start_i    (cap_start_i),
      .sampled_i  (cap_sampled_i),
      .share_i    (cap_share_i),
      .min_rtt_i  (cap_rtt_i),
      .init_cap_i (cap_init_i),
      .num_paths_i(cap_paths_i),
      .pkt_i,
      .done_o     (cap_done_o),
      .cap_o,
      .active_o   (cap_active_o),
      .window_o   (cap_window_o)
  );

  weft_tx_timer #(
      .NumConns    (4),
      .PathsPerPort(2)
  ) u_timer (
      .clk_i,
      .rst_i,
      .now_i,
      .probe_min_i,
      .set_i,
      .set_key_i,
      .set_armed_i,
      .set_probing_i,
      .set_backoff_i,
      .rtt_re_o    (),
      .rtt_conn_o  (),
      .rtt_i       ('{sampled: 1'b1, min: srtt_i, srtt8: {srtt_i, 3'b0}, var4: var4_i}),
      .fire_valid_o,
      .fire_ready_i,
      .fire_key_o,
      .idle_o      (timer_idle_o)
  );

endmodule

`default_nettype wire
