// SPDX-License-Identifier: Apache-2.0
//
// Cap of a connection at a port, the number of paths it spreads over, and the window a path starts
// with (docs/congestion.md, "Cap"):
//   cap    = share * 2.5 * min RTT + 1 packet    (share in 1/256 byte a cycle)
//            or init_cap before the first RTT sample; at least 1 packet, at most 2^22 - 1
//   active = cap / 3 packets (2 packets before the first sample), 1 .. num_paths
//   window = cap / active, at least 1 packet
//
// Bit-serial: one adder does it all, because it runs only when a connection starts or finds a
// smaller RTT. start_i takes the operands, done_o pulses 50 + num_paths cycles later or earlier;
// results stay.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_cap
  import weft_tx_ctl_pkg::*;
(
    input  wire           clk_i,
    input  wire           rst_i,
    input  wire           start_i,      // not while one is running
    input  wire           sampled_i,
    input  wire    [15:0] share_i,
    input  rtt_t          min_rtt_i,
    input  bytes_t        init_cap_i,
    input  wire    [ 7:0] num_paths_i,  // 1 at least
    input  full_t         pkt_i,
    output logic          done_o,
    output bytes_t        cap_o,
    output logic   [ 7:0] active_o,
    output bytes_t        window_o
);

  typedef enum logic [2:0] {
    StIdle,
    StMul,     // 5 * share * RTT, one bit of 5 * share a cycle
    StCap,     // shift, add the packet
    StClamp,   // at least one packet
    StCount,   // subtract the bytes a path deserves until none is left
    StDivide,  // cap / active, one bit a cycle
    StFloor
  } state_e;

  state_e state_q;
  logic sampled_q;
  logic [18:0] mul_q;        // 5 * share, shifted out from the top
  logic [38:0] acc_q;        // product
  logic [4:0] step_q;
  bytes_t rest_q;            // cap not yet given to a path; then the dividend and quotient
  logic [8:0] part_q;        // partial remainder
  logic [7:0] active_q;
  logic [14:0] unit_q;       // bytes that justify a path

  wire [38:0] acc_next = {acc_q[37:0], 1'b0} + (mul_q[18] ? 39'(min_rtt_i) : 39'd0);
  // 5 * share * rtt / 2 / 256
  wire [30:0] cap_sum = {1'b0, acc_q[38:9]} + 31'(pkt_i);
  wire [22:0] rest_next = {1'b0, rest_q} - 23'(unit_q);
  wire [8:0] part_shift = {part_q[7:0], rest_q[21]};
  wire part_fits = part_shift >= {1'b0, active_q};

  assign active_o = active_q;
  assign window_o = rest_q;

  always_ff @(posedge clk_i) begin
    done_o <= state_q == StFloor && !rst_i;
    if (rst_i) state_q <= StIdle;
    else
      unique case (state_q)
        StIdle: if (start_i) state_q <= sampled_i ? StMul : StClamp;
        StMul: if (step_q == 5'd18) state_q <= StCap;
        StCap: state_q <= StClamp;
        StClamp: state_q <= StCount;
        StCount: if (rest_next[22] || active_q == num_paths_i) state_q <= StDivide;
        StDivide: if (step_q == 5'd21) state_q <= StFloor;
        StFloor: state_q <= StIdle;
        default: state_q <= StIdle;
      endcase

    unique case (state_q)
      StIdle:
      if (start_i) begin
        sampled_q <= sampled_i;
        mul_q <= {1'b0, share_i, 2'b0} + {3'b0, share_i};
        acc_q <= '0;
        step_q <= '0;
        cap_o <= init_cap_i;
      end
      StMul: begin
        acc_q <= acc_next;
        mul_q <= {mul_q[17:0], 1'b0};
        step_q <= step_q + 5'd1;
      end
      StCap: cap_o <= cap_sum[30:22] != '0 ? '1 : cap_sum[21:0];
      StClamp: begin
        if (cap_o < bytes_t'(pkt_i)) cap_o <= bytes_t'(pkt_i);
        rest_q <= cap_o;
        active_q <= '0;
        unit_q <= {1'b0, pkt_i, 1'b0} + (sampled_q ? 15'(pkt_i) : 15'd0);
      end
      StCount: begin
        if (!rest_next[22] && active_q != num_paths_i) begin
          rest_q <= rest_next[21:0];
          active_q <= active_q + 8'd1;
        end else begin
          if (active_q == '0) active_q <= 8'd1;
          rest_q <= cap_o;
          part_q <= '0;
          step_q <= '0;
        end
      end
      StDivide: begin
        part_q <= part_fits ? part_shift - {1'b0, active_q} : part_shift;
        rest_q <= {rest_q[20:0], part_fits};
        step_q <= step_q + 5'd1;
      end
      StFloor: if (rest_q < bytes_t'(pkt_i)) rest_q <= bytes_t'(pkt_i);
      default: ;
    endcase
  end

  `WEFT_IMPLIES(OneAtATime, start_i, state_q == StIdle);

endmodule

`default_nettype wire
