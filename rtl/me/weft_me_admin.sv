// SPDX-License-Identifier: Apache-2.0
//
// Keeps the life of every subgraph and answers every doorbell with exactly one completion entry.
//
// One operation at a time, three cycles each and one more for an answer: end of a context, verdict
// of CPU-M, start of a launch, next subgraph for CPU-M, doorbell; earlier in this list goes first.
// Since all changes of a subgraph's state pass here one after another, no two can race. A launch
// waits in the queue of its order group, and starts when no other of that group runs; group 0 has
// no such rule. The groups take turns. There are no more groups than contexts, so one group never
// keeps another waiting for ever. A subgraph is queued once at most for a context and once at most
// for CPU-M, so no queue can overflow. While memory does not
// take completion entries, operations wait, and with them doorbells (ready). Does not look at
// entries; does not touch memory. docs/me.md, "Life of a subgraph".
`default_nettype none
`include "weft_assert.svh"

module weft_me_admin
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
#(
    parameter int unsigned NumSubgraphs = 64
) (
    input  wire                  clk_i,
    input  wire                  rst_i,
    // Doorbells: taken in a cycle with valid and ready; ready is a register.
    input  wire                  db_valid_i,
    output logic                 db_ready_o,
    input  wire          [511:0] db_i,
    // Subgraph to validate: stays until a verdict was taken.
    output logic                 mbox_valid_o,
    output mbox_t                mbox_o,
    input  wire                  verdict_valid_i,
    output logic                 verdict_ready_o,
    input  wire verdict_t        verdict_i,
    // Start: a pulse, only after start_ready_i (a context is free) was seen.
    input  wire                  start_ready_i,
    output logic                 start_valid_o,
    output start_t               start_o,
    // Abort of a running subgraph: a pulse.
    output logic                 abort_valid_o,
    output logic          [15:0] abort_subgraph_o,
    // Contexts that ended.
    input  wire                  finish_valid_i,
    output logic                 finish_ready_o,
    input  wire finish_t         finish_i,
    // Completion entries.
    output logic                 cqe_valid_o,
    input  wire                  cqe_ready_i,
    output cqe_req_t             cqe_o,
    // Events and state.
    output logic                 doorbell_o,
    output logic                 refused_o,
    output logic                 register_ok_o,
    output logic                 register_bad_o,
    output logic                 idle_o
);

  localparam int unsigned SubgraphW = (NumSubgraphs > 1) ? $clog2(NumSubgraphs) : 1;
  localparam int unsigned QueueDepth = (NumSubgraphs > 1) ? NumSubgraphs : 2;
  localparam int unsigned NumQueues = ORDER_GROUPS + 1;  // queue 0: launches of no group
  localparam int unsigned GroupW = $clog2(NumQueues);
  typedef logic [SubgraphW-1:0] index_t;
  typedef logic [GroupW-1:0] group_t;

  typedef enum logic [2:0] {
    SgEmpty,        // not registered
    SgRegistering,  // CPU-M has it or will get it
    SgReady,        // may be launched
    SgQueued,       // launched, waits for a context
    SgGivenUp,      // aborted while queued
    SgRunning
  } subgraph_e;

  typedef enum logic [2:0] {
    StWalk,  // clear the states behind reset
    StPick,  // choose an operation
    StRead,  // read what is known of its subgraph
    StAct,   // decide and write back
    StCqe    // hand over the completion entry
  } state_e;

  typedef enum logic [2:0] {
    OpFinish,
    OpVerdict,
    OpStart,
    OpMail,
    OpDoorbell
  } op_e;

  typedef struct packed {
    logic [31:0] count;
    addr_t       addr;
  } table_t;

  // ---- doorbell register: only the fields that mean something, the rest as "was there a one"
  doorbell_t db_in;
  logic db_full_q;
  db_op_e db_op_q;
  logic [15:0] db_subgraph_q;
  table_t db_table_q;
  logic [7:0] db_group_q;
  logic [63:0] db_cookie_q;
  logic [7:0] db_resv_q;

  assign db_in      = db_i;
  assign db_ready_o = !db_full_q;

  // ---- state of the subgraphs
  state_e state_q;
  op_e op_q;
  logic [15:0] sg_q;
  logic [SubgraphW-1:0] walk_q;

  (* ram_style = "distributed" *) subgraph_e life_mem[NumSubgraphs];
  subgraph_e life_q, life_d;
  logic life_we, table_we, cookie_we;
  wire index_t index = sg_q[SubgraphW-1:0];

  table_t table_q;
  logic [63:0] cookie_q;  // of the LAUNCH or REGISTER under way
  weft_sdpram #(
      .data_t(table_t),
      .Depth (NumSubgraphs)
  ) u_table (
      .clk_i,
      .we_i   (table_we),
      .waddr_i(index),
      .wdata_i(db_table_q),
      .re_i   (state_q == StRead),
      .raddr_i(index),
      .rdata_o(table_q)
  );
  weft_sdpram #(
      .data_t(logic [63:0]),
      .Depth (NumSubgraphs)
  ) u_cookie (
      .clk_i,
      .we_i   (cookie_we),
      .waddr_i(index),
      .wdata_i(db_cookie_q),
      .re_i   (state_q == StRead),
      .raddr_i(index),
      .rdata_o(cookie_q)
  );
  (* ram_style = "distributed" *) group_t group_mem[NumSubgraphs];  // of the LAUNCH under way
  group_t group_q;

  // ---- the queues
  logic launch_push, launch_pop, mail_push, mail_valid, mail_pop;
  logic mail_room;  // always: see the header; watched by assertions
  index_t mail_index;
  logic [NumQueues-1:0] launch_valid, launch_room;
  index_t [NumQueues-1:0] launch_index;
  logic [NumQueues-1:0] group_busy_q;  // one of the group has a context
  for (genvar g = 0; g < NumQueues; ++g) begin : gen_launches
    weft_fifo #(
        .data_t(index_t),
        .Depth (QueueDepth)
    ) u_launches (
        .clk_i,
        .rst_i,
        .s_valid_i(launch_push && db_group_q[GroupW-1:0] == group_t'(g)),
        .s_ready_o(launch_room[g]),
        .s_data_i (index),
        .m_valid_o(launch_valid[g]),
        .m_ready_i(launch_pop && group_q == group_t'(g)),
        .m_data_o (launch_index[g]),
        .count_o  ()
    );
    `WEFT_IMPLIES(LaunchHasRoom, launch_push && db_group_q[GroupW-1:0] == group_t'(g),
                  launch_room[g]);
  end
  weft_fifo #(
      .data_t(index_t),
      .Depth (QueueDepth)
  ) u_mail (
      .clk_i,
      .rst_i,
      .s_valid_i(mail_push),
      .s_ready_o(mail_room),
      .s_data_i (index),
      .m_valid_o(mail_valid),
      .m_ready_i(mail_pop),
      .m_data_o (mail_index),
      .count_o  ()
  );

  // ---- next launch: the first that may start behind the group served last; chosen a cycle ahead,
  // but not from what an operation is just changing.
  wire [NumQueues-1:0] launch_may = launch_valid & ~group_busy_q;
  group_t launch_last_q, launch_group;
  logic launch_ready_q;
  index_t launch_next_q;
  logic [NumQueues-1:0] launch_behind;
  always_comb begin
    for (int g = 0; g < NumQueues; ++g) launch_behind[g] = group_t'(g) > launch_last_q;
    launch_group = '0;
    for (int g = NumQueues - 1; g >= 0; --g) if (launch_may[g]) launch_group = group_t'(g);
    if ((launch_may & launch_behind) != '0) begin
      for (int g = NumQueues - 1; g >= 0; --g) begin
        if (launch_may[g] && launch_behind[g]) launch_group = group_t'(g);
      end
    end
  end

  // ---- choose
  logic mbox_valid_q;
  mbox_t mbox_q;
  op_e pick_op;
  logic pick_any;
  logic [15:0] pick_sg;

  always_comb begin
    pick_any = 1'b1;
    pick_op  = OpDoorbell;
    pick_sg  = db_subgraph_q;
    if (finish_valid_i) begin
      pick_op = OpFinish;
      pick_sg = finish_i.subgraph;
    end else if (verdict_valid_i && mbox_valid_q) begin
      pick_op = OpVerdict;
      pick_sg = mbox_q.subgraph;
    end else if (launch_ready_q && start_ready_i) begin
      pick_op = OpStart;
      pick_sg = 16'(launch_next_q);
    end else if (mail_valid && !mbox_valid_q) begin
      pick_op = OpMail;
      pick_sg = 16'(mail_index);
    end else if (!db_full_q) begin
      pick_any = 1'b0;
    end
  end

  // ---- decide
  wire  acting = state_q == StAct;
  logic answer;  // a completion entry follows
  err_e answer_status;

  logic db_exists_q, db_dirty_q;  // subgraph number in range; a reserved bit is set

  always_comb begin
    life_d        = life_q;
    answer        = 1'b0;
    answer_status = ErrOk;
    unique case (op_q)
      OpFinish: begin
        life_d        = SgReady;
        answer        = 1'b1;
        answer_status = finish_i.status;
      end
      OpVerdict: begin
        life_d        = (verdict_i.status == ErrOk) ? SgReady : SgEmpty;
        answer        = 1'b1;
        answer_status = verdict_i.status;
      end
      OpStart: life_d = SgRunning;
      OpMail:  ;
      default: begin  // OpDoorbell: refused unless a case below finds it in order
        answer        = 1'b1;
        answer_status = ErrBadSubgraph;
        if (db_dirty_q) answer_status = ErrBadFlags;
        else begin
          unique case (db_op_q)
            DbLaunch:
            if (db_exists_q && life_q == SgReady) begin
              life_d = SgQueued;
              answer = 1'b0;
            end
            DbRegister:
            if (db_exists_q && (life_q == SgEmpty || life_q == SgReady)) begin
              life_d = SgRegistering;
              answer = 1'b0;
            end
            DbUnregister:
            if (db_exists_q && life_q == SgReady) begin
              life_d        = SgEmpty;
              answer_status = ErrOk;
            end
            DbAbort:
            if (db_exists_q && (life_q inside {SgQueued, SgGivenUp, SgRunning})) begin
              if (life_q == SgQueued) life_d = SgGivenUp;
              answer_status = ErrOk;
            end
            default: answer_status = ErrBadOpcode;
          endcase
        end
      end
    endcase
  end

  wire by_db = acting && op_q == OpDoorbell;

  assign life_we          = acting;
  assign table_we         = by_db && !answer && db_op_q == DbRegister;
  assign cookie_we        = by_db && !answer;
  assign launch_push      = by_db && !answer && db_op_q == DbLaunch;
  assign mail_push        = by_db && !answer && db_op_q == DbRegister;
  assign launch_pop       = acting && op_q == OpStart;
  assign mail_pop         = acting && op_q == OpMail;
  assign finish_ready_o   = acting && op_q == OpFinish;
  assign verdict_ready_o  = acting && op_q == OpVerdict;

  assign start_valid_o    = launch_pop;
  assign start_o.subgraph = sg_q;
  assign start_o.line     = table_q.addr[63:6];
  assign start_o.count    = table_q.count[16:0];
  assign start_o.aborted  = life_q == SgGivenUp;

  assign abort_valid_o    = by_db && db_op_q == DbAbort && answer_status == ErrOk &&
      life_q == SgRunning;
  assign abort_subgraph_o = sg_q;

  assign mbox_valid_o     = mbox_valid_q;
  assign mbox_o           = mbox_q;
  assign cqe_valid_o      = state_q == StCqe;

  always_ff @(posedge clk_i) begin
    // Only the walk and the operation in hand write a state, and one that is out of range does not
    // exist; it reads as whatever its low bits name and is refused by db_exists_q.
    if (state_q == StWalk) life_mem[walk_q] <= SgEmpty;
    else if (life_we && (op_q != OpDoorbell || db_exists_q)) life_mem[index] <= life_d;
    if (cookie_we) group_mem[index] <= db_group_q[GroupW-1:0];
    if (state_q == StRead) begin
      group_q     <= group_mem[index];
      life_q      <= life_mem[index];
      db_exists_q <= 32'(sg_q) < 32'(NumSubgraphs);
      db_dirty_q  <= db_resv_q != '0 || (db_op_q == DbLaunch && db_group_q > 8'(ORDER_GROUPS));
    end
    launch_next_q <= launch_index[launch_group];

    if (db_valid_i && db_ready_o) begin
      db_op_q       <= db_in.op;
      db_subgraph_q <= db_in.subgraph;
      db_table_q    <= '{count: db_in.count, addr: db_in.addr};
      db_group_q    <= db_in.group;
      db_cookie_q   <= db_in.cookie;
      for (int i = 0; i < 8; ++i) db_resv_q[i] <= db_in.resv1[i*40+:40] != '0;
    end

    if (state_q == StPick && pick_any) begin
      op_q <= pick_op;
      sg_q <= pick_sg;
    end
    if (mail_pop) begin
      mbox_q <= '{subgraph: sg_q, count: table_q.count, addr: table_q.addr};
    end

    if (acting) begin
      cqe_o <= '{
          cookie: cookie_q,
          subgraph: sg_q,
          op: DbLaunch,
          status: answer_status,
          entry: '0,
          conn: '0
      };
      unique case (op_q)
        OpFinish: begin
          cqe_o.entry <= finish_i.entry;
          cqe_o.conn  <= finish_i.conn;
        end
        OpVerdict: begin
          cqe_o.op    <= DbRegister;
          cqe_o.entry <= (verdict_i.status == ErrOk) ? mbox_q.count : verdict_i.entry;
        end
        default: begin
          cqe_o.op     <= db_op_q;
          cqe_o.cookie <= db_cookie_q;
        end
      endcase
    end

    doorbell_o     <= db_valid_i && db_ready_o && !rst_i;
    refused_o      <= by_db && answer && answer_status != ErrOk && !rst_i;
    register_ok_o  <= acting && op_q == OpVerdict && verdict_i.status == ErrOk && !rst_i;
    register_bad_o <= acting && op_q == OpVerdict && verdict_i.status != ErrOk && !rst_i;

    if (rst_i) begin
      state_q      <= StWalk;
      walk_q       <= '0;
      db_full_q    <= 1'b1;  // not ready before the walk is over
      mbox_valid_q <= 1'b0;
      idle_o       <= 1'b0;
      group_busy_q   <= '0;
      launch_ready_q <= 1'b0;
      launch_last_q  <= '0;
    end else begin
      idle_o <= state_q == StPick && !pick_any && !(|launch_valid) && !mail_valid && !mbox_valid_q;
      launch_ready_q <= launch_may != '0 && state_q != StAct;
      if (launch_pop) launch_last_q <= group_q;
      for (int g = 1; g < NumQueues; ++g) begin
        if (launch_pop && group_q == group_t'(g)) group_busy_q[g] <= 1'b1;
        else if (finish_ready_o && group_q == group_t'(g)) group_busy_q[g] <= 1'b0;
      end
      if (mail_pop) mbox_valid_q <= 1'b1;
      else if (verdict_ready_o) mbox_valid_q <= 1'b0;

      if (db_valid_i && db_ready_o) db_full_q <= 1'b1;
      else if (by_db) db_full_q <= 1'b0;

      unique case (state_q)
        StWalk: begin
          walk_q <= walk_q + 1'b1;
          if (walk_q == SubgraphW'(NumSubgraphs - 1)) begin
            state_q   <= StPick;
            db_full_q <= 1'b0;
          end
        end
        StPick: if (pick_any) state_q <= StRead;
        StRead: state_q <= StAct;
        StAct:  state_q <= answer ? StCqe : StPick;
        StCqe:  if (cqe_ready_i) state_q <= StPick;
        default: state_q <= StPick;
      endcase
    end
  end

  `WEFT_IMPLIES(MailHasRoom, mail_push, mail_room);
  `WEFT_IMPLIES(StartIsQueued, start_valid_o, life_q inside {SgQueued, SgGivenUp});
  `WEFT_IMPLIES(FinishRuns, finish_ready_o, life_q == SgRunning);
  `WEFT_IMPLIES(OneOfAGroup, launch_pop, !group_busy_q[group_q]);
  `WEFT_IMPLIES(GroupWasBusy, finish_ready_o && group_q != '0, group_busy_q[group_q]);
  `WEFT_IMPLIES(VerdictAwaited, verdict_ready_o, life_q == SgRegistering);
  `WEFT_HOLD(CqeHolds, cqe_valid_o, cqe_ready_i, cqe_o);

endmodule

`default_nettype wire
