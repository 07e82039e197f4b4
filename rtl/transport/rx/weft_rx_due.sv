// SPDX-License-Identifier: Apache-2.0
//
// Which paths owe an ack. A path is owed at most once, however many packets came: the ack is built
// from its state when it leaves. Owed at once on now_i, on the second packet since the last ack, or
// when the first has waited ack_hold cycles.
//
// A path that is configured anew (forget_i) owes nothing: an entry of its in the queue of owed ones
// stays there, dead, until the new life owes an ack or the entry's turn comes.
//
// One operation a cycle in the order commit, mark, forget, pop, timer; a commit at most every
// second cycle, a mark too, so a mark waits one cycle at most. Two queues of one entry a path each:
// owed, and held (in order of time, as the hold is the same for all). Not up for one cycle a path
// behind reset: nothing may be committed by then, and marks are forgotten. A held entry that an ack
// overtook may fire early for a later packet: harmless. docs/rx.md.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_due
  import weft_pkg::*;
#(
    parameter  int unsigned NumPaths = 512,
    localparam int unsigned IdxW     = $clog2(NumPaths)
) (
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire cfg_t        cfg_i,
    input  wire  [31:0]      now_i,
    output logic             up_o,
    // A packet was committed
    input  wire              commit_i,
    input  wire              commit_now_i,
    input  wire              commit_again_i,  // its ack goes twice
    input  wire  [IdxW-1:0]  commit_idx_i,
    // An ack is owed at once for another reason
    input  wire              mark_i,
    input  wire  [IdxW-1:0]  mark_idx_i,
    // A path starts anew; taken in a cycle with ready
    input  wire              forget_i,
    output logic             forget_ready_o,
    input  wire  [IdxW-1:0]  forget_idx_i,
    // Next path to ack; popped_o tells two cycles after pop_i && pop_ready_o: nothing that is
    // committed from then on is forgotten
    output logic             owed_o,
    output logic [IdxW-1:0]  owed_idx_o,
    input  wire              pop_i,
    output logic             pop_ready_o,
    output logic             popped_o,
    output logic             popped_again_o,
    output logic             popped_void_o,  // it was owed by a life that has ended
    output logic             held_o          // an ack is held back
);

  typedef enum logic [2:0] {
    OpNone,
    OpWalk,    // behind reset: no path owes
    OpCommit,
    OpMark,
    OpForget,
    OpPop,
    OpTimer
  } op_e;

  typedef struct packed {
    logic queued;  // in the queue of owed ones
    logic dead;    // and that entry is of a life that has ended
    logic held;    // in the queue of held ones
    logic one;     // a packet came since the last ack
    logic again;
  } flags_t;

  typedef struct packed {
    logic [IdxW-1:0] idx;
    logic [31:0]     due;
  } held_t;

  cfg_global_t cfg_global;
  logic [23:0] ack_hold_q;
  assign cfg_global = cfg_i.data[$bits(cfg_global_t)-1:0];
  always_ff @(posedge clk_i) begin
    if (rst_i) ack_hold_q <= '0;
    else if (cfg_i.valid && cfg_i.kind == CfgGlobal) ack_hold_q <= cfg_global.ack_hold;
  end

  // ---- choose
  logic [IdxW:0] walk_q;
  logic up;
  logic mark_q;
  logic [IdxW-1:0] mark_idx_q;
  logic mark_take, forget_take, pop_take, timer_take;
  logic expired_q, held_valid, held_take;
  held_t held_head;
  op_e op_q;
  logic [IdxW-1:0] idx_q;
  logic now_q, again_q;

  assign up         = walk_q[IdxW];
  assign mark_take  = mark_q && !commit_i;
  assign forget_ready_o = up && !commit_i && !mark_q;
  assign forget_take = forget_i && forget_ready_o;
  assign pop_ready_o = up && !commit_i && !mark_q && !forget_i;
  assign pop_take   = pop_i && pop_ready_o;
  assign timer_take = up && expired_q && held_valid && !commit_i && !mark_q && !forget_i && !pop_i;
  assign held_take  = timer_take;

  always_ff @(posedge clk_i) begin
    if (mark_i) mark_idx_q <= mark_idx_i;
    idx_q   <= !up ? walk_q[IdxW-1:0] : commit_i ? commit_idx_i : mark_q ? mark_idx_q :
               forget_i ? forget_idx_i : pop_i ? owed_idx_o : held_head.idx;
    now_q   <= commit_now_i;
    again_q <= commit_again_i;
    // One cycle late, so look at the entry behind a taken one afresh.
    expired_q <= held_valid && !timer_take && !$signed(now_i - held_head.due)[31];
    if (rst_i) begin
      op_q   <= OpNone;
      walk_q <= '0;
      mark_q <= 1'b0;
    end else begin
      if (!up) walk_q <= walk_q + 1'b1;
      mark_q <= (mark_i && up) || (mark_q && !mark_take);
      op_q   <= !up ? OpWalk : commit_i ? OpCommit : mark_q ? OpMark : forget_take ? OpForget :
                pop_take ? OpPop : timer_take ? OpTimer : OpNone;
    end
  end
  assign up_o = up;

  // ---- act: read, decide and write in one cycle, so operations never meet
  (* ram_style = "distributed" *) flags_t flags_mem[NumPaths];
  flags_t old, next;
  logic wants, owe, hold;
  // pushed one cycle later: reading, deciding and counting is too much for one
  logic owe_q, hold_q;
  logic [IdxW-1:0] push_idx_q;
  logic popped_q, popped_again_q, popped_void_q;

  assign old = flags_mem[idx_q];
  always_comb begin
    next  = old;
    wants = 1'b0;
    hold  = 1'b0;
    unique case (op_q)
      OpWalk: next = '0;
      OpCommit: begin
        wants      = now_q || old.one;
        hold       = !wants && !old.held && (!old.queued || old.dead);
        next.one   = 1'b1;
        next.again = old.again || again_q;
      end
      OpMark: wants = 1'b1;
      OpForget: begin
        next.dead  = old.queued;
        next.one   = 1'b0;
        next.again = 1'b0;
      end
      OpPop: begin
        next.queued = 1'b0;
        next.dead   = 1'b0;
        if (!old.dead) begin  // else they are of the new life, which does not owe yet
          next.one   = 1'b0;
          next.again = 1'b0;
        end
      end
      OpTimer: begin
        wants     = old.one;
        next.held = 1'b0;
      end
      default: ;
    endcase
    owe = wants && !old.queued;
    if (wants) begin
      next.queued = 1'b1;
      next.dead   = 1'b0;
    end
    if (hold) next.held = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (op_q != OpNone) flags_mem[idx_q] <= next;
    owe_q          <= owe && !rst_i;
    hold_q         <= hold && !rst_i;
    push_idx_q     <= idx_q;
    popped_q       <= op_q == OpPop && !rst_i;
    popped_again_q <= old.again;
    popped_void_q  <= old.dead;
  end
  assign popped_o       = popped_q;
  assign popped_again_o = popped_again_q;
  assign popped_void_o  = popped_void_q;
  assign held_o         = held_valid;

  logic owed_ready, held_ready;
  weft_fifo #(
      .Width   (IdxW),
      .Depth   (NumPaths),
      .BlockRam(1'b1)
  ) u_owed (
      .clk_i,
      .rst_i,
      .s_valid_i(owe_q),
      .s_ready_o(owed_ready),
      .s_data_i (push_idx_q),
      .m_valid_o(owed_o),
      .m_ready_i(pop_take),
      .m_data_o (owed_idx_o),
      .count_o  ()
  );

  weft_fifo #(
      .data_t  (held_t),
      .Depth   (NumPaths),
      .BlockRam(1'b1)
  ) u_held (
      .clk_i,
      .rst_i,
      .s_valid_i(hold_q),
      .s_ready_o(held_ready),
      .s_data_i ('{push_idx_q, now_i + 32'(ack_hold_q)}),
      .m_valid_o(held_valid),
      .m_ready_i(held_take),
      .m_data_o (held_head),
      .count_o  ()
  );

  `WEFT_IMPLIES(OwedFits, owe_q, owed_ready);
  `WEFT_IMPLIES(HeldFits, hold_q, held_ready);
  `WEFT_IMPLIES(NoMarkLost, mark_i, !mark_q || mark_take);
  `WEFT_IMPLIES(NoCommitBeforeUp, !up, !commit_i);

endmodule
`default_nettype wire
