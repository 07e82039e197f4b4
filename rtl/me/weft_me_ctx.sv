// SPDX-License-Identifier: Apache-2.0
//
// The running subgraphs: which one's entry enters the window next, and when one has ended.
//
// Entries enter every other cycle at most, round robin over the contexts that have one waiting and
// may take a slot. Slots: `Reserve` of every context are its own; the rest is shared, and a context
// takes no more of it than a fair part among those active now. So one subgraph that sleeps in WAITs
// can never keep another from running, not even the one whose SET it waits for.
// A lone context fills what is reserved for the others too, as long as no WAIT is in the window:
// all that entered before a WAIT ends by itself and gives its slots back. A WAIT is noticed once it
// is in its slot; the two that may have entered behind it by then fit the context's own part.
// An entry that fails kills its context: it sends no more entries, the window flushes those not yet
// issued, and the context ends when its last outstanding entry is done. The first error is kept. A
// context killed by the host reports FLUSHED and its oldest unfinished entry instead.
`default_nettype none
`include "weft_assert.svh"

module weft_me_ctx
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
#(
    parameter  int unsigned NumCtx      = 4,
    parameter  int unsigned WindowDepth = 32,
    parameter  int unsigned Reserve     = 2,
    localparam int unsigned CtxW        = (NumCtx > 1) ? $clog2(NumCtx) : 1
) (
    input  wire                     clk_i,
    input  wire                     rst_i,
    // Start: a pulse, only while start_ready_o.
    output logic                    start_ready_o,
    input  wire                     start_valid_i,
    input  wire start_t             start_i,
    input  wire                     abort_valid_i,
    input  wire          [    15:0] abort_subgraph_i,
    // Finish: holds until taken.
    output logic                    finish_valid_o,
    input  wire                     finish_ready_i,
    output finish_t                 finish_o,
    // Fetch.
    output logic                    load_valid_o,
    output logic         [CtxW-1:0] load_ctx_o,
    output line_t                   load_line_o,
    output count_t                  load_count_o,
    input  wire          [NumCtx-1:0] avail_i,
    input  wire          [NumCtx-1:0] quiet_i,
    // Next entry into the window: pop_o reads it, the window sees it two cycles later.
    output logic                    pop_o,
    output logic         [CtxW-1:0] pop_ctx_o,
    output entry_t                  pop_entry_o,
    // From the window.
    input  wire retire_t            retire_i,
    input  wire          [CtxW-1:0] retire_ctx_i,
    input  wire                     waits_i,      // a WAIT is in the window
    output logic         [NumCtx-1:0] kill_o,
    output logic         [NumCtx-1:0][15:0] subgraph_o,
    output logic                    stall_o,
    output logic                    idle_o
);

  localparam int unsigned CountW = $clog2(WindowDepth + 1);
  localparam int unsigned Shared = WindowDepth - Reserve * NumCtx;
  typedef logic [CtxW-1:0] ctx_t;
  typedef logic [CountW-1:0] slots_t;
  typedef struct packed {
    err_e        status;
    count_t      entry;
    logic [15:0] conn;
  } fault_t;

  function automatic slots_t stepped(slots_t count, logic down);
    return count + {{(CountW - 1) {down}}, 1'b1};
  endfunction

  if (Reserve < 1 || WindowDepth < (Reserve + 1) * NumCtx) begin : gen_bad_reserve
    $error("weft_me_ctx: WindowDepth must be at least (Reserve + 1) * NumCtx, Reserve 1 or more");
  end

  logic [NumCtx-1:0] active_q, kill_q, by_host_q, allowed_q, ended_q;
  logic [NumCtx-1:0][15:0] subgraph_q;
  count_t [NumCtx-1:0] count_q, next_q;     // entries; index of the next one to enter
  slots_t [NumCtx-1:0] used_q;              // window slots held or on the way to be
  slots_t shared_q;                         // of them, beyond the Reserve of each
  slots_t held_q;                           // of them, by all contexts
  slots_t quota_q;                          // slots a context may hold now, and keep in a WAIT
  logic   lone_q;                           // one context is active
  fault_t [NumCtx-1:0] fault_q;

  // ---- start
  logic start_ready_q;
  ctx_t free_q;
  assign start_ready_o = start_ready_q;
  assign load_valid_o  = start_valid_i;
  assign load_ctx_o    = free_q;
  assign load_line_o   = start_i.line;
  assign load_count_o  = start_i.aborted ? '0 : start_i.count;

  // ---- next entry: round robin behind the context served last
  logic pop_q;
  ctx_t last_q, pick;
  wire [NumCtx-1:0] ready = avail_i & ~kill_q;
  wire [NumCtx-1:0] want = ready & allowed_q;
  logic [NumCtx-1:0] behind;
  always_comb begin
    for (int c = 0; c < NumCtx; ++c) behind[c] = ctx_t'(c) > last_q;
    pick = '0;
    for (int c = NumCtx - 1; c >= 0; --c) if (want[c]) pick = ctx_t'(c);
    if ((want & behind) != '0) begin
      for (int c = NumCtx - 1; c >= 0; --c) if (want[c] && behind[c]) pick = ctx_t'(c);
    end
  end
  assign pop_o       = want != '0 && !pop_q;
  assign pop_ctx_o   = pick;
  assign pop_entry_o = next_q[pick][15:0];
  assign kill_o      = kill_q;
  assign subgraph_o  = subgraph_q;

  // ---- finish
  logic finish_valid_q;
  ctx_t end_ctx;
  always_comb begin
    end_ctx = '0;
    for (int c = NumCtx - 1; c >= 0; --c) if (ended_q[c]) end_ctx = ctx_t'(c);
  end
  wire end_take = ended_q != '0 && !finish_valid_q;
  assign finish_valid_o = finish_valid_q;

  // A pop and a retirement of one context in one cycle leave its slots as they are.
  wire same = pop_o && retire_i.valid && pick == retire_ctx_i;
  // The next slot it takes is a shared one; so is the one it gives back.
  logic [NumCtx-1:0] next_shared, last_shared;
  always_comb begin
    for (int c = 0; c < NumCtx; ++c) begin
      next_shared[c] = used_q[c] >= slots_t'(Reserve);
      last_shared[c] = used_q[c] > slots_t'(Reserve);
    end
  end
  wire shared_up = pop_o && !same && next_shared[pick];
  wire shared_down = retire_i.valid && !same && last_shared[retire_ctx_i];
  wire failed = retire_i.valid && retire_i.status != ErrOk && !retire_i.flushed;

  logic [$clog2(NumCtx + 1)-1:0] num_active;
  always_comb begin
    num_active = '0;
    for (int c = 0; c < NumCtx; ++c) num_active = num_active + ($clog2(NumCtx + 1))'(active_q[c]);
  end

  always_ff @(posedge clk_i) begin
    if (pop_o) last_q <= pick;
    lone_q <= 32'(num_active) == 32'd1;
    // Fair part of the shared slots, plus the context's own.
    quota_q <= slots_t'(Reserve + Shared);
    for (int n = 2; n <= NumCtx; ++n) begin
      if (32'(num_active) == 32'(n)) quota_q <= slots_t'(Reserve + Shared / n);
    end
    free_q <= '0;
    for (int c = NumCtx - 1; c >= 0; --c) if (!active_q[c]) free_q <= ctx_t'(c);

    if (end_take) begin
      finish_o <= '{
          subgraph: subgraph_q[end_ctx],
          status: kill_q[end_ctx] ? fault_q[end_ctx].status : ErrOk,
          entry: kill_q[end_ctx] ? 32'(fault_q[end_ctx].entry) : 32'(count_q[end_ctx]),
          conn: kill_q[end_ctx] ? fault_q[end_ctx].conn : '0
      };
    end

    for (int c = 0; c < NumCtx; ++c) begin
      allowed_q[c] <= held_q < slots_t'(WindowDepth) &&
          (used_q[c] < slots_t'(Reserve) || (used_q[c] < quota_q && shared_q < slots_t'(Shared)) ||
           (lone_q && !waits_i));
      ended_q[c] <= active_q[c] && !(end_take && end_ctx == ctx_t'(c)) && used_q[c] == '0 &&
          quiet_i[c] && (kill_q[c] || next_q[c] == count_q[c]);

      if (start_valid_i && free_q == ctx_t'(c)) begin
        active_q[c]   <= 1'b1;
        kill_q[c]     <= start_i.aborted;
        by_host_q[c]  <= start_i.aborted;
        subgraph_q[c] <= start_i.subgraph;
        count_q[c]    <= start_i.count;
        next_q[c]     <= '0;
        ended_q[c]    <= 1'b0;
        fault_q[c]    <= '{status: ErrFlushed, entry: '0, conn: '0};
      end else begin
        if (end_take && end_ctx == ctx_t'(c)) active_q[c] <= 1'b0;
        if (pop_o && pick == ctx_t'(c)) next_q[c] <= next_q[c] + 1'b1;
        if (abort_valid_i && active_q[c] && subgraph_q[c] == abort_subgraph_i && !kill_q[c]) begin
          kill_q[c]    <= 1'b1;
          by_host_q[c] <= 1'b1;
          fault_q[c]   <= '{status: ErrFlushed, entry: next_q[c], conn: '0};
        end
        if (retire_i.valid && retire_ctx_i == ctx_t'(c)) begin
          if (failed && !kill_q[c]) begin
            kill_q[c]    <= 1'b1;
            by_host_q[c] <= 1'b0;
            fault_q[c]   <= '{
                status: retire_i.status,
                entry: count_t'(retire_i.entry),
                conn: retire_i.conn
            };
          end else if (kill_q[c] && by_host_q[c] &&
                       count_t'(retire_i.entry) < fault_q[c].entry) begin
            fault_q[c].entry <= count_t'(retire_i.entry);
            fault_q[c].conn  <= retire_i.conn;
          end
        end
      end

      used_q[c] <= used_q[c] + slots_t'(pop_o && pick == ctx_t'(c)) -
          slots_t'(retire_i.valid && retire_ctx_i == ctx_t'(c));
      if (rst_i) begin
        active_q[c] <= 1'b0;
        kill_q[c]   <= 1'b0;
        ended_q[c]  <= 1'b0;
        used_q[c]   <= '0;
      end
    end

    stall_o <= ready != '0 && (ready & allowed_q) == '0 && !rst_i;
    idle_o  <= active_q == '0 && !finish_valid_q && !rst_i;

    if (rst_i) begin
      pop_q          <= 1'b0;
      start_ready_q  <= 1'b0;
      finish_valid_q <= 1'b0;
      shared_q       <= '0;
      held_q         <= '0;
    end else begin
      pop_q          <= pop_o;
      start_ready_q  <= active_q != '1 && !start_valid_i;
      finish_valid_q <= end_take || (finish_valid_q && !finish_ready_i);
      // Pop and retirement come late: they enable the counts.
      if (shared_up != shared_down) shared_q <= stepped(shared_q, shared_down);
      if (pop_o != retire_i.valid) held_q <= stepped(held_q, retire_i.valid);
    end
  end

  for (genvar c = 0; c < NumCtx; ++c) begin : gen_checks
    `WEFT_IMPLIES(SlotsAreActive, used_q[c] != '0, active_q[c]);
    `WEFT_IMPLIES(StartIsFree, start_valid_i && free_q == ctx_t'(c), !active_q[c]);
    `WEFT_IMPLIES(PopInSubgraph, pop_o && pick == ctx_t'(c), next_q[c] < count_q[c]);
  end
  `WEFT_ASSERT(HeldInWindow, held_q <= slots_t'(WindowDepth));
  `WEFT_IMPLIES(OnlyALoneOneBorrows, shared_up && shared_q >= slots_t'(Shared),
                $past(lone_q && !waits_i));
  `WEFT_HOLD(FinishHolds, finish_valid_o, finish_ready_i, finish_o);

endmodule

`default_nettype wire
