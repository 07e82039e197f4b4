// SPDX-License-Identifier: Apache-2.0
//
// Ack builder: takes the next path that owes an ack when the one before has left, reads the path's
// state, and offers the ack. So under load one ack carries many packets. An ack every 6 cycles at
// most. History words behind the last one with a zero are not sent. An ack that reports a new gap
// on a lossy port is offered twice.
//
// Paths of a connection that is not configured are skipped, and so is what a connection owed when
// it was configured anew: a CfgConn ends an ack that is being built. One that is already offered
// stays, with the incarnation it was made for; the frame builder looks at that.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_ack
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    localparam int unsigned ConnW        = $clog2(NumConns),
    localparam int unsigned PathW        = $clog2(PathsPerPort),
    localparam int unsigned IdxW         = ConnW + PathW
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    // From weft_rx_init
    input  wire  [NumConns-1:0]  conn_valid_i,
    input  wire                  info_we_i,
    input  wire  [ConnW-1:0]     info_idx_i,
    input  wire rx_conn_t        info_i,
    // Paths that owe (weft_rx_due)
    input  wire                  owed_i,
    input  wire  [IdxW-1:0]      owed_idx_i,
    output logic                 pop_o,
    input  wire                  pop_ready_i,
    input  wire                  popped_i,
    input  wire                  popped_again_i,
    input  wire                  popped_void_i,
    // State of a path: one cycle after the grant
    output logic                 read_o,
    input  wire                  read_ready_i,
    output logic [IdxW-1:0]      read_idx_o,
    input  wire rx_state_t       read_state_i,
    // Status of a connection, same cycle
    output logic [ConnW-1:0]     status_conn_o,
    input  wire err_e            status_i,
    // The ack
    output logic                 ack_valid_o,
    input  wire                  ack_ready_i,
    output ack_t                 ack_o,
    output logic                 evt_sent_o,
    output logic                 evt_again_o,
    output logic                 evt_void_o
);

  typedef enum logic [2:0] {
    StIdle,
    StPopped,  // owed flag being cleared
    StRead,
    StState,   // state at hand
    StWords,   // history at hand: how much of it is worth sending
    StOffer
  } state_e;

  localparam int unsigned Words = HIST_BITS / 32;

  state_e state_q, state_d;
  logic [IdxW-1:0] idx_q;
  logic [ConnW-1:0] conn;
  logic again_q, known_q;
  logic ended;  // the life that owes the ack being built
  ack_t ack_q;
  logic [Words-1:0] holes_q;  // history words with a zero
  rx_conn_t info;

  assign conn = idx_q[PathW+:ConnW];

  weft_sdpram #(
      .data_t(rx_conn_t),
      .Depth (NumConns)
  ) u_conns (
      .clk_i,
      .we_i   (info_we_i),
      .waddr_i(info_idx_i),
      .wdata_i(info_i),
      .re_i   (state_q == StRead),
      .raddr_i(conn),
      .rdata_o(info)
  );

  assign ended = (state_q == StPopped && popped_i && popped_void_i) ||
                 (state_q != StIdle && state_q != StOffer && info_we_i && info_idx_i == conn);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:   if (owed_i && pop_ready_i) state_d = StPopped;
      StPopped: if (popped_i) state_d = StRead;
      StRead:   if (read_ready_i) state_d = StState;
      StState:  state_d = known_q ? StWords : StIdle;
      StWords:  state_d = StOffer;
      StOffer:  if (ack_ready_i && !again_q) state_d = StIdle;
      default:  state_d = StIdle;
    endcase
    if (ended) state_d = StIdle;
  end

  function automatic logic [3:0] words_to_send(logic [Words-1:0] holes);
    words_to_send = '0;
    for (int i = 0; i < int'(Words); i++) if (holes[i]) words_to_send = 4'(i + 1);
  endfunction

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) idx_q <= owed_idx_i;
    if (state_q == StPopped) again_q <= popped_again_i;
    else if (state_q == StOffer && ack_ready_i) again_q <= 1'b0;
    if (state_q == StRead) known_q <= conn_valid_i[conn];
    if (state_q == StState) begin
      ack_q.conn     <= conn_t'(conn);
      ack_q.incarnation <= info.incarnation;
      ack_q.path     <= path_t'(idx_q[PathW-1:0]);
      ack_q.epoch    <= read_state_i.epoch;
      ack_q.base     <= read_state_i.base;
      ack_q.hist     <= read_state_i.hist;
      ack_q.ce_bytes <= read_state_i.ce_bytes;
      ack_q.rx_bytes <= read_state_i.rx_bytes;
      ack_q.echo     <= read_state_i.echo;
      ack_q.share    <= 32'(info.share);
      ack_q.credits  <= '0;
      ack_q.status   <= status_i;
      for (int i = 0; i < int'(Words); i++) holes_q[i] <= read_state_i.hist[32*i+:32] != '1;
    end
    if (state_q == StWords) ack_q.hist_words <= words_to_send(holes_q);
    if (rst_i) state_q <= StIdle;
    else state_q <= state_d;
  end

  assign pop_o         = state_q == StIdle && owed_i;
  assign read_o        = state_q == StRead;
  assign read_idx_o    = idx_q;
  assign status_conn_o = conn;
  assign ack_valid_o   = state_q == StOffer;
  assign ack_o         = ack_q;
  assign evt_sent_o    = ack_valid_o && ack_ready_i;
  assign evt_again_o   = evt_sent_o && again_q;
  assign evt_void_o    = ended || (state_q == StState && !known_q);

  `WEFT_HOLD(AckHolds, ack_valid_o && again_q, ack_ready_i, ack_o);

endmodule
`default_nettype wire
