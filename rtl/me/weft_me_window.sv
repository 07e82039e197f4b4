// SPDX-License-Identifier: Apache-2.0
//
// The window: WindowDepth entries of all running subgraphs, each issued once what it waits for is
// done. A row of the dependency matrix holds the slots an entry waits for; it is worked out once,
// when the entry enters, by comparing its dep0 and dep1 with {context, index} of every slot and by
// its sync, rx_sync and the fences before it. An entry that is not in the window any more is done,
// so nothing has to be remembered. When a slot is done its column is cleared.
//
//   new entry            in_i t   decoded t+1   in its slot t+2   ready t+3   grant, queue, request
//   one that waited      completion taken t   done t+2   row clear t+3   ready t+4   t+5, t+6, t+7
//
// Oldest ready entry first (age matrix), over all targets that have room: transport, reducer, and
// the semaphore unit, which also does NOP. "Issued" means granted; up to 4 granted entries wait in
// the queue of each target. One grant a cycle, one completion a cycle. An entry enters every other
// cycle, so the semaphore unit's results (always taken) leave half of the cycles to the others.
// Entries that cannot be run (an opcode, type, connection or semaphore that does not exist, a
// length beyond what transport and reducer count to, a failed read, local bytes in no region) are
// completed with the error instead. weft_me_guard looks the addresses up while the entry waits: no
// entry that touches memory is ready before, or flushed, so a verdict always finds its own entry.
`default_nettype none
`include "weft_assert.svh"

module weft_me_window
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
#(
    parameter  int unsigned WindowDepth = 32,
    parameter  int unsigned NumCtx      = 4,
    parameter  int unsigned NumConns    = 64,
    parameter  int unsigned NumSems     = 256,
    parameter  int unsigned NumRegions  = 64,
    localparam int unsigned CtxW        = (NumCtx > 1) ? $clog2(NumCtx) : 1,
    localparam int unsigned SlotW       = $clog2(WindowDepth)
) (
    input  wire                           clk_i,
    input  wire                           rst_i,
    input  wire cfg_t                     cfg_i,
    // A fetched entry: at most every other cycle; the contexts see to it that a slot is free.
    input  wire                           in_valid_i,
    input  wire         [       CtxW-1:0] in_ctx_i,
    input  wire entry_t                   in_entry_i,
    input  wire fetched_t                 in_i,
    // Contexts.
    input  wire         [     NumCtx-1:0] kill_i,
    input  wire         [NumCtx-1:0][15:0] subgraph_i,
    output retire_t                       retire_o,
    output logic        [       CtxW-1:0] retire_ctx_o,
    output logic                          waits_o,       // a WAIT is in the window (2 cycles late)
    // Transport and reducer: valid and request hold until ready; tag = slot.
    output logic                          tx_valid_o,
    input  wire                           tx_ready_i,
    output tx_req_t                       tx_o,
    input  wire                           tx_cpl_valid_i,
    output logic                          tx_cpl_ready_o,
    input  wire cpl_t                     tx_cpl_i,
    output logic                          nmc_valid_o,
    input  wire                           nmc_ready_i,
    output nmc_req_t                      nmc_o,
    input  wire                           nmc_cpl_valid_i,
    output logic                          nmc_cpl_ready_o,
    input  wire cpl_t                     nmc_cpl_i,
    // Semaphore unit.
    output logic                          op_valid_o,
    input  wire                           op_ready_i,
    output local_t                        op_o,
    output logic        [      SlotW-1:0] op_slot_o,
    input  wire                           op_done_valid_i,
    input  wire         [      SlotW-1:0] op_done_slot_i,
    input  wire err_e                     op_done_status_i,
    input  wire         [WindowDepth-1:0] asleep_i,
    input  wire         [WindowDepth-1:0] wake_i,
    output logic        [WindowDepth-1:0] freed_o,
    // Observers.
    output me_trace_t                     trace_o,
    output logic                          entered_o,
    output logic                          issue_tx_o,
    output logic                          issue_nmc_o,
    output logic                          issue_local_o
);

  typedef logic [CtxW-1:0] ctx_t;
  typedef logic [SlotW-1:0] slot_t;
  typedef logic [WindowDepth-1:0] set_t;  // a set of slots

  if (WindowDepth < 4 || WindowDepth > 256) begin : gen_bad_depth
    $error("weft_me_window: WindowDepth must be 4 to 256, tags have 8 bits");
  end

  function automatic slot_t index_of(set_t one);
    index_of = '0;
    for (int s = 0; s < WindowDepth; ++s) if (one[s]) index_of = index_of | slot_t'(s);
  endfunction

  // ---- decode: who performs it, and whether it can be run at all
  typedef enum logic [1:0] {
    ToTx,
    ToNmc,
    ToLocal
  } target_e;
  typedef struct packed {
    ctx_t    ctx;
    entry_t  entry;
    wqe_op_e opcode;
    target_e target;
    logic    has_dep0;
    logic    has_dep1;
    logic    fence;
    logic    rx_sync;
    logic    sync;
    entry_t  dep0;
    entry_t  dep1;
    logic    waits;        // a WAIT, for rx_sync
    logic [15:0] conn;     // of a WRITE, else 0
  } decoded_t;

  wqe_t wqe;
  err_e error;
  local_e local_kind;
  target_e target;
  assign wqe = in_i.wqe;
  wire wqe_len_good = wqe.length <= MAX_WQE_LENGTH;
  wire wqe_conn_good = 32'(wqe.conn) < 32'(NumConns);
  wire wqe_sem_good = 32'(wqe.sem) < 32'(NumSems);
  always_comb begin
    error      = ErrOk;
    local_kind = LocNop;
    unique case (wqe.opcode)
      WqeNop:    ;
      WqeWrite: begin
        if (!wqe_len_good) error = ErrBadLength;
        else if (!wqe_conn_good) error = ErrBadConn;
      end
      WqeReduce: if (!wqe_len_good) error = ErrBadLength;  // the reducer judges the rest
      WqeWait, WqeSet: begin
        if (!wqe_sem_good) error = ErrBadSem;
        else local_kind = (wqe.opcode == WqeWait) ? LocWait : LocSet;
      end
      default:   error = ErrBadOpcode;
    endcase
    if (in_i.bad) error = ErrMemError;
    target = ToLocal;
    if (error == ErrOk && wqe.opcode == WqeWrite) target = ToTx;
    if (error == ErrOk && wqe.opcode == WqeReduce) target = ToNmc;
  end

  logic dec_valid_q;
  decoded_t dec_q;
  tx_req_t dec_tx_q;
  nmc_req_t dec_nmc_q;
  local_t dec_local_q;

  always_ff @(posedge clk_i) begin
    if (in_valid_i) begin
      dec_q <= '{
          ctx: in_ctx_i,
          entry: in_entry_i,
          opcode: in_i.bad ? WqeNop : wqe.opcode,
          target: target,
          has_dep0: wqe.has_dep0 && !in_i.bad,
          has_dep1: wqe.has_dep1 && !in_i.bad,
          fence: wqe.fence && !in_i.bad,
          rx_sync: wqe.rx_sync && !in_i.bad,
          sync: wqe.sync && !in_i.bad,
          dep0: wqe.dep0,
          dep1: wqe.dep1,
          waits: local_kind == LocWait,
          conn: (wqe.opcode == WqeWrite) ? wqe.conn : '0
      };
      dec_tx_q <= '{
          conn: conn_t'(wqe.conn),
          tag: '0,
          signal: wqe.signal,
          sem: wqe.sem,
          value: wqe.value,
          laddr: wqe.src0,
          raddr: wqe.dst,
          rkey: wqe.rkey,
          len: wqe.length
      };
      dec_nmc_q <= '{
          tag: '0,
          dtype: wqe.dtype,
          to: wqe.to,
          redop: wqe.redop,
          propagate_nan: wqe.propagate_nan,
          saturate: wqe.saturate,
          exact: wqe.exact,
          nsrc: wqe.nsrc,
          own: wqe.own,
          src0: wqe.src0,
          src1: wqe.src1,
          stride: wqe.stride,
          dst: wqe.dst,
          len: wqe.length,
          scalar: wqe.scalar
      };
      dec_local_q <= '{
          kind: (in_i.bad) ? LocNop : local_kind,
          consume: wqe.consume,
          sem: wqe.sem,
          value: wqe.value,
          status: error
      };
    end
    dec_valid_q <= in_valid_i && !rst_i;
  end

  // ---- slots
  set_t valid_q, issued_q, seen_q;            // seen: the trace has shown its issue
  set_t fence_q, waits_q, to_tx_q, to_nmc_q;
  set_t unjudged_q, astray_q;                 // addresses not looked up yet; in no region
  ctx_t ctx_q[WindowDepth];
  entry_t entry_q[WindowDepth];
  set_t [WindowDepth-1:0] waits_for_q;        // the dependency matrix
  set_t [WindowDepth-1:0] older_q;            // the age matrix: slots that entered before
  set_t free_q;                               // one-hot: the slot that the next entry gets
  set_t ready_q, grant_q, done_q;             // grant and done: one-hot

  // What observers and the contexts want to know of a slot.
  typedef struct packed {
    ctx_t        ctx;
    entry_t      entry;
    wqe_op_e     opcode;
    logic [15:0] conn;
  } info_t;
  (* ram_style = "distributed" *) info_t info_mem[WindowDepth];
  (* ram_style = "distributed" *) tx_req_t tx_mem[WindowDepth];
  (* ram_style = "distributed" *) nmc_req_t nmc_mem[WindowDepth];
  (* ram_style = "distributed" *) local_t local_mem[WindowDepth];

  slot_t free_slot;
  set_t kills, free_d;  // slots whose context is killed
  assign free_slot = index_of(free_q);
  assign free_d    = ~valid_q & (valid_q + 1'b1);  // lowest free slot
  always_comb begin
    for (int s = 0; s < WindowDepth; ++s) kills[s] = kill_i[ctx_q[s]];
  end

  // Every slot the entry in decode waits for. One that is done in this very cycle resets its column
  // below, the new row included.
  set_t row;
  always_comb begin
    row = '0;
    if (dec_valid_q) begin
      for (int s = 0; s < WindowDepth; ++s) begin
        row[s] = valid_q[s] && ctx_q[s] == dec_q.ctx &&
            (dec_q.sync || fence_q[s] || (dec_q.rx_sync && waits_q[s]) ||
             (dec_q.has_dep0 && entry_q[s] == dec_q.dep0) ||
             (dec_q.has_dep1 && entry_q[s] == dec_q.dep1));
      end
    end
  end

  // ---- addresses
  logic judged, judged_good, dec_touches;
  slot_t judged_slot;
  assign dec_touches = dec_valid_q && dec_q.target != ToLocal && dec_nmc_q.len != '0;

  weft_me_guard #(
      .NumRegions(NumRegions),
      .Depth     (WindowDepth)
  ) u_guard (
      .clk_i,
      .rst_i,
      .cfg_i,
      .put_i       (dec_touches),
      .put_slot_i  (free_slot),
      .put_reduce_i(dec_q.target == ToNmc),
      .put_entry_i (dec_nmc_q),
      .done_o      (judged),
      .done_slot_o (judged_slot),
      .done_good_o (judged_good)
  );

  // ---- grant: the oldest ready slot whose target has room
  logic tx_room, nmc_room, local_room;
  set_t candidates, grant_d;
  assign candidates = ready_q & ~grant_q &
      ((to_tx_q & {WindowDepth{tx_room}}) | (to_nmc_q & {WindowDepth{nmc_room}}) |
       (~to_tx_q & ~to_nmc_q & {WindowDepth{local_room}}));
  always_comb begin
    grant_d = '0;
    if (ready_q != '0) begin
      for (int s = 0; s < WindowDepth; ++s) begin
        grant_d[s] = candidates[s] && (older_q[s] & candidates) == '0;
      end
    end
  end

  // ---- completion: semaphore unit always; transport and reducer in turn; then what a killed
  // context leaves behind, a slot every five cycles, because the set it is chosen from is that
  // late. Nothing else can end a slot of that set, so the choice stays right while it waits.
  logic tx_cpl_valid, tx_cpl_ready, nmc_cpl_valid, nmc_cpl_ready;
  cpl_t tx_cpl, nmc_cpl;
  weft_skid #(
      .data_t(cpl_t)
  ) u_tx_cpl (
      .clk_i,
      .rst_i,
      .s_valid_i(tx_cpl_valid_i),
      .s_ready_o(tx_cpl_ready_o),
      .s_data_i (tx_cpl_i),
      .m_valid_o(tx_cpl_valid),
      .m_ready_i(tx_cpl_ready),
      .m_data_o (tx_cpl)
  );
  weft_skid #(
      .data_t(cpl_t)
  ) u_nmc_cpl (
      .clk_i,
      .rst_i,
      .s_valid_i(nmc_cpl_valid_i),
      .s_ready_o(nmc_cpl_ready_o),
      .s_data_i (nmc_cpl_i),
      .m_valid_o(nmc_cpl_valid),
      .m_ready_i(nmc_cpl_ready),
      .m_data_o (nmc_cpl)
  );

  set_t flush_q, flush_lowest_q;
  logic nmc_turn_q, flush_pick, flush_have_q;
  logic [1:0] flush_wait_q;
  slot_t flush_slot_q;
  wire nmc_first = nmc_cpl_valid && (nmc_turn_q || !tx_cpl_valid);
  assign nmc_cpl_ready = !op_done_valid_i && nmc_first;
  assign tx_cpl_ready  = !op_done_valid_i && !nmc_first;
  assign flush_pick    = !op_done_valid_i && !tx_cpl_valid && !nmc_cpl_valid && flush_have_q;
  wire flush_choose = !flush_have_q && flush_wait_q == '0 && flush_lowest_q != '0;

  logic done_d;
  slot_t done_slot_d;
  err_e done_status_d;
  always_comb begin
    done_d = op_done_valid_i || tx_cpl_valid || nmc_cpl_valid || flush_pick;
    if (op_done_valid_i) begin
      done_slot_d   = op_done_slot_i;
      done_status_d = op_done_status_i;
    end else if (nmc_first) begin
      done_slot_d   = slot_t'(nmc_cpl.tag);
      done_status_d = nmc_cpl.status;
    end else if (tx_cpl_valid) begin
      done_slot_d   = slot_t'(tx_cpl.tag);
      done_status_d = tx_cpl.status;
    end else begin
      done_slot_d   = flush_slot_q;
      done_status_d = ErrFlushed;
    end
  end

  logic done_valid_q, done_flushed_q;
  slot_t done_slot_q;
  err_e done_status_q;
  info_t done_info;
  assign done_info        = info_mem[done_slot_q];
  assign retire_o.valid   = done_valid_q;
  assign retire_o.flushed = done_flushed_q;
  assign retire_o.entry   = done_info.entry;
  assign retire_o.conn    = done_info.conn;
  assign retire_o.status  = done_status_q;
  assign retire_ctx_o     = done_info.ctx;
  assign freed_o          = done_q;

  always_ff @(posedge clk_i) begin
    if (dec_valid_q) begin
      info_mem[free_slot] <= '{
          ctx: dec_q.ctx,
          entry: dec_q.entry,
          opcode: dec_q.opcode,
          conn: dec_q.conn
      };
      tx_mem[free_slot]    <= dec_tx_q;
      nmc_mem[free_slot]   <= dec_nmc_q;
      local_mem[free_slot] <= dec_local_q;
      for (int s = 0; s < WindowDepth; ++s) begin
        if (free_q[s]) begin
          ctx_q[s]    <= dec_q.ctx;
          entry_q[s]  <= dec_q.entry;
          fence_q[s]  <= dec_q.fence;
          waits_q[s]  <= dec_q.waits;
          to_tx_q[s]  <= dec_q.target == ToTx;
          to_nmc_q[s] <= dec_q.target == ToNmc;
          astray_q[s] <= 1'b0;
        end
      end
    end
    // What names bytes that it may not touch goes to nobody but the unit that does nothing.
    if (judged && !judged_good) begin
      to_tx_q[judged_slot]  <= 1'b0;
      to_nmc_q[judged_slot] <= 1'b0;
      astray_q[judged_slot] <= 1'b1;
    end

    // The matrices, bit by bit: a new slot enables its row and resets or sets its column, a done
    // slot resets its column. Written so, each bit is a flip-flop with enable and reset and no LUT.
    if (dec_valid_q) begin
      for (int s = 0; s < WindowDepth; ++s) begin
        if (free_q[s]) begin
          waits_for_q[s] <= row;
          older_q[s]     <= '1;
          for (int t = 0; t < WindowDepth; ++t) older_q[t][s] <= 1'b0;
        end
      end
    end
    for (int s = 0; s < WindowDepth; ++s) begin
      if (done_q[s]) begin
        for (int t = 0; t < WindowDepth; ++t) waits_for_q[t][s] <= 1'b0;
      end
    end

    flush_lowest_q <= flush_q & (~flush_q + 1'b1);
    if (flush_choose) flush_slot_q <= index_of(flush_lowest_q);
    if (done_d) begin
      done_slot_q    <= done_slot_d;
      done_status_q  <= done_status_d;
      done_flushed_q <= flush_pick;
    end

    if (rst_i) begin
      valid_q      <= '0;
      issued_q     <= '0;
      seen_q       <= '0;
      unjudged_q   <= '0;
      free_q       <= set_t'(1);
      ready_q      <= '0;
      grant_q      <= '0;
      done_q       <= '0;
      done_valid_q <= 1'b0;
      flush_q      <= '0;
      flush_wait_q <= '0;
      flush_have_q <= 1'b0;
      nmc_turn_q   <= 1'b0;
    end else begin
      free_q <= free_d;
      done_valid_q <= done_d;
      done_q <= done_d ? set_t'(1) << done_slot_d : '0;
      flush_have_q <= flush_choose || (flush_have_q && !flush_pick);
      if (flush_pick) flush_wait_q <= '1;
      else if (flush_wait_q != '0) flush_wait_q <= flush_wait_q - 1'b1;
      if (nmc_cpl_valid && nmc_cpl_ready) nmc_turn_q <= 1'b0;
      else if (tx_cpl_valid && tx_cpl_ready) nmc_turn_q <= 1'b1;

      grant_q <= grant_d;
      if (judged) unjudged_q[judged_slot] <= 1'b0;
      if (dec_touches) unjudged_q[free_slot] <= 1'b1;
      if (dec_valid_q || valid_q != '0) begin
        valid_q  <= (valid_q & ~done_q) | (dec_valid_q ? free_q : '0);
        issued_q <= (issued_q | grant_q) & ~wake_i & ~(dec_valid_q ? free_q : '0);
        seen_q   <= (seen_q | grant_q) & ~(dec_valid_q ? free_q : '0);
        flush_q  <= valid_q & kills & ~done_q & ~ready_q & ~grant_q & ~unjudged_q &
            (~issued_q | asleep_i);
        for (int s = 0; s < WindowDepth; ++s) begin
          ready_q[s] <= valid_q[s] && !issued_q[s] && !grant_q[s] && !kills[s] &&
              !unjudged_q[s] && waits_for_q[s] == '0;
        end
      end else begin
        flush_q <= '0;
        ready_q <= '0;
      end
    end
  end

  // ---- queues of granted slots and the requests
  slot_t grant_slot;
  assign grant_slot = index_of(grant_q);
  wire granted = grant_q != '0;
  wire grant_tx = (grant_q & to_tx_q) != '0;
  wire grant_nmc = (grant_q & to_nmc_q) != '0;

  logic tx_have, tx_pop, nmc_have, nmc_pop, local_pop;
  slot_t tx_slot, nmc_slot;
  logic [2:0] tx_count, nmc_count, local_count;
  logic tx_fits, nmc_fits, local_fits;

  weft_fifo #(
      .data_t(slot_t),
      .Depth (4)
  ) u_tx_queue (
      .clk_i,
      .rst_i,
      .s_valid_i(grant_tx),
      .s_ready_o(tx_fits),
      .s_data_i (grant_slot),
      .m_valid_o(tx_have),
      .m_ready_i(tx_pop),
      .m_data_o (tx_slot),
      .count_o  (tx_count)
  );
  weft_fifo #(
      .data_t(slot_t),
      .Depth (4)
  ) u_nmc_queue (
      .clk_i,
      .rst_i,
      .s_valid_i(grant_nmc),
      .s_ready_o(nmc_fits),
      .s_data_i (grant_slot),
      .m_valid_o(nmc_have),
      .m_ready_i(nmc_pop),
      .m_data_o (nmc_slot),
      .count_o  (nmc_count)
  );
  weft_fifo #(
      .data_t(slot_t),
      .Depth (4)
  ) u_local_queue (
      .clk_i,
      .rst_i,
      .s_valid_i(granted && !grant_tx && !grant_nmc),
      .s_ready_o(local_fits),
      .s_data_i (grant_slot),
      .m_valid_o(op_valid_o),
      .m_ready_i(op_ready_i),
      .m_data_o (op_slot_o),
      .count_o  (local_count)
  );

  // Two grants may be on their way into a queue when its count is looked at.
  assign tx_room    = tx_count <= 3'd1;
  assign nmc_room   = nmc_count <= 3'd1;
  assign local_room = local_count <= 3'd1;
  assign tx_pop     = !tx_valid_o || tx_ready_i;
  assign nmc_pop    = !nmc_valid_o || nmc_ready_i;
  assign local_pop  = op_valid_o && op_ready_i;
  always_comb begin
    op_o = local_mem[op_slot_o];
    if (astray_q[op_slot_o]) begin
      op_o.kind   = LocNop;
      op_o.status = ErrBadAddr;
    end
  end

  info_t grant_info;
  assign grant_info = info_mem[grant_slot];

  always_ff @(posedge clk_i) begin
    if (tx_pop && tx_have) begin
      tx_o     <= tx_mem[tx_slot];
      tx_o.tag <= tag_t'(tx_slot);
    end
    if (nmc_pop && nmc_have) begin
      nmc_o     <= nmc_mem[nmc_slot];
      nmc_o.tag <= tag_t'(nmc_slot);
    end
    if (rst_i) begin
      tx_valid_o  <= 1'b0;
      nmc_valid_o <= 1'b0;
    end else begin
      if (tx_pop) tx_valid_o <= tx_have;
      if (nmc_pop) nmc_valid_o <= nmc_have;
    end

    waits_o       <= (valid_q & waits_q) != '0;
    entered_o     <= dec_valid_q && !rst_i;
    issue_tx_o    <= tx_pop && tx_have && !rst_i;
    issue_nmc_o   <= nmc_pop && nmc_have && !rst_i;
    issue_local_o <= local_pop && !rst_i;

    trace_o.issue <= granted && (grant_q & seen_q) == '0 && !rst_i;
    trace_o.done  <= done_valid_q && !rst_i;
    if (granted) begin
      trace_o.subgraph <= subgraph_i[grant_info.ctx];
      trace_o.entry    <= 32'(grant_info.entry);
      trace_o.opcode   <= grant_info.opcode;
    end
    if (done_valid_q) begin
      trace_o.status        <= done_status_q;
      trace_o.done_subgraph <= subgraph_i[done_info.ctx];
      trace_o.done_entry    <= 32'(done_info.entry);
      trace_o.done_opcode   <= done_info.opcode;
    end
  end

  `WEFT_IMPLIES(OnlyJudgedIssue, granted, (grant_q & unjudged_q) == '0);
  `WEFT_IMPLIES(VerdictIsAwaited, judged, unjudged_q[judged_slot] && valid_q[judged_slot]);
  `WEFT_IMPLIES(EntryFindsSlot, dec_valid_q, (free_q & ~valid_q) != '0);
  `WEFT_IMPLIES(EntriesApart, dec_valid_q, !in_valid_i);
  `WEFT_ASSERT(GrantOneHot, $onehot0(grant_q));
  `WEFT_ASSERT(GrantIsReady, (grant_q & ~(valid_q & ~issued_q)) == '0);
  `WEFT_ASSERT(DoneIsValid, (done_q & ~valid_q) == '0);
  `WEFT_IMPLIES(DoneIsIssued, done_valid_q && !done_flushed_q, (done_q & issued_q) != '0);
  `WEFT_IMPLIES(QueuesHaveRoom, granted,
                (!grant_tx || tx_fits) && (!grant_nmc || nmc_fits) &&
                (grant_tx || grant_nmc || local_fits));
  `WEFT_IMPLIES(TagInWindow, tx_cpl_valid, 32'(tx_cpl.tag) < 32'(WindowDepth));
  `WEFT_HOLD(TxHolds, tx_valid_o, tx_ready_i, tx_o);
  `WEFT_HOLD(NmcHolds, nmc_valid_o, nmc_ready_i, nmc_o);

endmodule

`default_nettype wire
