// SPDX-License-Identifier: Apache-2.0
// Receiver's side of the shared core: counts the bytes of every open message, and lets signals act
// in message order, so that a flag never overtakes the data of an earlier message whatever path
// brought it. 64 open messages a stream (the sender keeps within that). One packet every 4 cycles,
// and 3 more for every message that completes in order behind it.
// Does not: look at addresses or keys (weft_rx_path did), acknowledge. See docs/core.md.
`default_nettype none
`include "weft_assert.svh"
module weft_core_rx
  import weft_pkg::*;
  import weft_wire_pkg::*;
#(
    parameter int unsigned NumPorts = 2,
    parameter int unsigned NumConns = 64
) (
    input wire  clk_i,
    input wire  rst_i,
    input cfg_t cfg_i,

    // Packets whose bytes are ordered in memory. ready depends on valid.
    input  wire        [NumPorts-1:0] commit_valid_i,
    output logic       [NumPorts-1:0] commit_ready_o,
    input  rx_commit_t [NumPorts-1:0] commit_i,

    // Signals of completed messages, in stream order.
    output logic    sig_valid_o,
    input  wire     sig_ready_i,
    output signal_t sig_o,

    // Pulses: a message completed in order; a packet was ignored because its message number or
    // length contradicts what came before.
    output logic evt_msg_o,
    output logic evt_bad_o,

    output logic idle_o  // no packet being counted, tables walked since reset
);
  localparam int unsigned ConnW = $clog2(NumConns);
  localparam int unsigned WinW = $clog2(MSG_WINDOW);
  localparam int unsigned PortW = (NumPorts > 1) ? $clog2(NumPorts) : 1;
  typedef logic [ConnW-1:0] cidx_t;
  typedef logic [PortW-1:0] pidx_t;

  typedef struct packed {
    logic        done;
    logic        signal;
    sem_t        sem;
    logic [31:0] value;
    logic [31:0] bytes;
  } open_t;

  typedef enum logic [2:0] {
    StClear,      // entries of one connection (after reset: of all) are cleared
    StIdle,
    StRead,       // entry and head are read
    StCount,      // the packet's bytes are added
    StExec,       // does it fit, is the message complete, is it the oldest?
    StDrain,      // the head message is complete: signal, clear its entry, move on
    StDrainRead,  // the next entry is read
    StDrainTest   // and completes too if it is done
  } state_e;

  state_e                      state_q;
  logic                        all_q;  // StClear covers every connection
  logic       [ConnW+WinW-1:0] clear_q;
  logic                        turn_q;
  rx_commit_t                  pkt_q;

  logic                        cfg_pend_q;
  cidx_t                       cfg_conn_q;
  wire                         cfg_hit = cfg_i.valid && cfg_i.kind == CfgConn;
  always_ff @(posedge clk_i) begin
    if (rst_i) cfg_pend_q <= 1'b0;
    else if (cfg_hit) cfg_pend_q <= 1'b1;
    else if (state_q == StIdle) cfg_pend_q <= 1'b0;
    if (cfg_hit) cfg_conn_q <= cidx_t'(cfg_i.index / 16'(NumPorts));
  end

  function automatic pidx_t pick(input logic [NumPorts-1:0] v, input logic from_top);
    pick = '0;
    for (int unsigned i = 0; i < NumPorts; i++) begin
      if (from_top) begin
        if (v[i]) pick = pidx_t'(i);
      end else begin
        if (v[NumPorts-1-i]) pick = pidx_t'(NumPorts - 1 - i);
      end
    end
  endfunction
  wire pidx_t port = pick(commit_valid_i, turn_q);
  wire take = state_q == StIdle && !cfg_pend_q && |commit_valid_i;
  for (genvar p = 0; p < NumPorts; p++) begin : gen_ready
    assign commit_ready_o[p] = take && port == pidx_t'(p);
  end

  // ---- tables -----------------------------------------------------------------------------------
  (* ram_style = "block" *) open_t open_mem[NumConns*MSG_WINDOW];
  // as read; nothing else loads open_q, so that it is the RAM's output register
  open_t open_q, open_d;
  open_t drain_q;  // the message that completes
  logic  open_we;
  logic [ConnW+WinW-1:0] open_wa, open_ra;
  logic [15:0] head_mem[NumConns];  // oldest message not yet complete
  logic [15:0] head_q;
  logic head_we;
  wire cidx_t c = cidx_t'(pkt_q.conn);

  wire [15:0] ahead = pkt_q.msg_no - head_q;
  logic far_q, oldest_q;
  logic [31:0] bytes_q;
  logic [32:0] left_q;  // bytes of the message still to come; negative: more than it has
  always_ff @(posedge clk_i) begin
    if (state_q == StCount) begin
      far_q <= |ahead[15:WinW];
      oldest_q <= pkt_q.msg_no == head_q;
      bytes_q <= open_q.bytes + 32'(pkt_q.len);
      left_q <= 33'(pkt_q.msg_len) - 33'(open_q.bytes) - 33'(pkt_q.len);
    end
  end
  wire bad = far_q || open_q.done || left_q[32];
  wire done = left_q == '0;
  wire sig_room = !sig_valid_o || sig_ready_i;

  always_comb begin
    open_we = 1'b0;
    open_wa = {c, pkt_q.msg_no[WinW-1:0]};
    open_ra = {c, state_q == StRead ? pkt_q.msg_no[WinW-1:0] : head_q[WinW-1:0]};
    open_d = '{
        done: done,
        signal: pkt_q.signal,
        sem: pkt_q.sem,
        value: pkt_q.value,
        bytes: bytes_q
    };
    head_we = 1'b0;
    unique case (state_q)
      StClear: begin
        open_we = 1'b1;
        open_wa = clear_q;
        open_d  = '0;
        head_we = 1'b1;
      end
      StExec:  open_we = !bad;
      StDrain: begin
        open_we = sig_room;
        open_wa = {c, head_q[WinW-1:0]};
        open_d  = '0;
        head_we = sig_room;
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (open_we) open_mem[open_wa] <= open_d;
    if (state_q == StRead || state_q == StDrainRead) open_q <= open_mem[open_ra];
    if (state_q == StExec) drain_q <= open_d;
    else if (state_q == StDrainTest) drain_q <= open_q;
    if (head_we)
      head_mem[state_q == StClear ? clear_q[ConnW+WinW-1:WinW] : c] <=
          state_q == StClear ? 16'd0 : head_q + 16'd1;
    if (state_q == StRead) head_q <= head_mem[c];
    else if (state_q == StDrain && sig_room) head_q <= head_q + 16'd1;
    if (state_q == StIdle) pkt_q <= commit_i[port];
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      state_q <= StClear;
      all_q <= 1'b1;
      clear_q <= '0;
      turn_q <= 1'b0;
      sig_valid_o <= 1'b0;
    end else begin
      if (sig_ready_i) sig_valid_o <= 1'b0;
      unique case (state_q)
        StClear: begin
          clear_q <= clear_q + 1'b1;
          if (all_q ? &clear_q : &clear_q[WinW-1:0]) state_q <= StIdle;
        end
        StIdle: begin
          all_q   <= 1'b0;
          clear_q <= {cfg_conn_q, WinW'(0)};
          if (cfg_pend_q) state_q <= StClear;
          else if (take) begin
            state_q <= StRead;
            turn_q  <= !turn_q;
          end
        end
        StRead: state_q <= StCount;
        StCount: state_q <= StExec;
        StExec: state_q <= !bad && done && oldest_q ? StDrain : StIdle;
        StDrain:
        if (sig_room) begin
          state_q <= StDrainRead;
          if (drain_q.signal) sig_valid_o <= 1'b1;
        end
        StDrainRead: state_q <= StDrainTest;
        StDrainTest: state_q <= open_q.done ? StDrain : StIdle;
        default: state_q <= StIdle;
      endcase
    end
    if (state_q == StDrain && sig_room) sig_o <= '{sem: drain_q.sem, value: drain_q.value};
  end

  assign evt_msg_o = state_q == StDrain && sig_room;
  assign evt_bad_o = state_q == StExec && bad;
  assign idle_o = (state_q == StIdle || (state_q == StClear && !all_q)) && !(|commit_valid_i) &&
      !sig_valid_o;

  `WEFT_NEXT(SigHolds, sig_valid_o && !sig_ready_i, sig_valid_o && $stable(sig_o));
endmodule
`default_nettype wire
