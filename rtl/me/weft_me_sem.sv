// SPDX-License-Identifier: Apache-2.0
//
// The semaphores and everything that acts on them: WAIT and SET of the window, signals of the
// transport, values set by the host. NOP passes through too, since it is done at once.
//
// One updater: a pipeline of two stages (read, decide), one operation a cycle, the second stage
// forwarded to the first, so operations act one after another in the order they enter. Host before
// the rest, window and transport in turn. Result 3 cycles after an entry is taken.
// A WAIT that is not met sleeps: it is looked at again only when its semaphore is updated (wake_o
// tells the window to issue it again, oldest first like every entry). No update can fall between
// the failed comparison and the sleep.
// Values are 32 bits, compared as unsigned and never wrap: an addition stops at 2^32 - 1.
`default_nettype none
`include "weft_assert.svh"

module weft_me_sem
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
#(
    parameter  int unsigned NumSems     = 256,
    parameter  int unsigned WindowDepth = 32,
    localparam int unsigned SlotW       = $clog2(WindowDepth)
) (
    input  wire                           clk_i,
    input  wire                           rst_i,
    input  wire cfg_t                     cfg_i,
    // Entries of the window; the semaphore of a WAIT or SET exists.
    input  wire                           op_valid_i,
    output logic                          op_ready_o,
    input  wire local_t                   op_i,
    input  wire         [      SlotW-1:0] op_slot_i,
    // Signals of the transport.
    input  wire                           sig_valid_i,
    output logic                          sig_ready_o,
    input  wire signal_t                  sig_i,
    // Done: a pulse, always taken.
    output logic                          done_valid_o,
    output logic        [      SlotW-1:0] done_slot_o,
    output err_e                          done_status_o,
    // Slots that sleep; slots to issue again (a pulse); slots freed (asleep or not).
    output logic        [WindowDepth-1:0] asleep_o,
    output logic        [WindowDepth-1:0] wake_o,
    input  wire         [WindowDepth-1:0] freed_i,
    // Events and state.
    output logic                          parked_o,
    output logic                          woken_o,
    output logic                          add_o,
    output logic                          saturated_o,
    output logic                          signal_bad_o,
    output logic                          idle_o
);

  localparam int unsigned SemW = (NumSems > 1) ? $clog2(NumSems) : 1;
  typedef logic [SemW-1:0] index_t;
  typedef logic [SlotW-1:0] slot_t;
  typedef enum logic [1:0] {
    KindWait,
    KindAdd,
    KindPut,  // the host's value
    KindNone  // nothing to do with a semaphore
  } kind_e;
  typedef struct packed {
    kind_e       kind;
    logic        entry;    // of the window: answer to slot
    slot_t       slot;
    logic        consume;
    index_t      sem;
    logic [31:0] value;
    err_e        status;
  } op_t;

  // ---- the host's value waits here for its turn; two are at least 16 cycles apart
  logic put_valid_q;
  index_t put_sem_q;
  logic [31:0] put_value_q;
  wire put_here = cfg_i.valid && cfg_i.kind == CfgSem && 32'(cfg_i.index) < 32'(NumSems);

  // ---- stage 1: choose; `written` tells a value from what the RAM held at power-on
  logic bits_ready, written;
  logic turn_q;  // 1: the transport goes first
  wire take_put = put_valid_q && bits_ready;
  wire sig_first = sig_valid_i && (turn_q || !op_valid_i);
  wire sig_take = bits_ready && !put_valid_q && sig_first;
  wire op_take = bits_ready && !put_valid_q && !sig_first && op_valid_i;
  wire sig_good = 32'(sig_i.sem) < 32'(NumSems);
  assign sig_ready_o = bits_ready && !put_valid_q && sig_first;
  assign op_ready_o  = bits_ready && !put_valid_q && !sig_first;

  op_t op_d, op1_q, op2_q;
  logic op1_valid_q, op2_valid_q;
  always_comb begin
    op_d = '{
        kind: KindNone,
        entry: 1'b1,
        slot: op_slot_i,
        consume: op_i.consume,
        sem: index_t'(op_i.sem),
        value: op_i.value,
        status: op_i.status
    };
    if (op_i.kind == LocWait) op_d.kind = KindWait;
    if (op_i.kind == LocSet) op_d.kind = KindAdd;
    if (sig_first) begin
      op_d.kind  = KindAdd;
      op_d.entry = 1'b0;
      op_d.sem   = index_t'(sig_i.sem);
      op_d.value = sig_i.value;
    end
    if (put_valid_q) begin
      op_d.kind  = KindPut;
      op_d.entry = 1'b0;
      op_d.sem   = put_sem_q;
      op_d.value = put_value_q;
    end
  end

  // ---- stage 2: read, unless the operation ahead is just changing it
  (* ram_style = "distributed" *) logic [31:0] mem[NumSems];
  logic [31:0] value_q, next;
  logic we;
  wire forward = op2_valid_q && we && op2_q.sem == op1_q.sem;

  weft_me_bits #(
      .Size(NumSems)
  ) u_written (
      .clk_i,
      .rst_i,
      .ready_o (bits_ready),
      .we_i    (op2_valid_q && we),
      .windex_i(op2_q.sem),
      .wbit_i  (1'b1),
      .rindex_i(op1_q.sem),
      .rbit_o  (written)
  );

  // ---- stage 3: decide. One adder: for a WAIT it subtracts, and its carry says "met".
  logic waits_q;  // op2_q.kind == KindWait; a register, because the adder waits for it
  wire [32:0] sum = {1'b0, value_q} + {1'b0, waits_q ? ~op2_q.value : op2_q.value} + 33'(waits_q);
  wire met = sum[32];
  wire full = op2_q.kind == KindAdd && sum[32];
  assign we = (waits_q && met && op2_q.consume) || op2_q.kind == KindAdd || op2_q.kind == KindPut;
  always_comb begin
    next = sum[31:0];
    if (op2_q.kind == KindPut) next = op2_q.value;
    else if (full) next = '1;
    else if (waits_q && !met) next = value_q;
  end

  logic [WindowDepth-1:0] asleep_q, wake, slot2_q;  // slot2: op2_q.slot, one-hot
  index_t sleep_sem_q[WindowDepth];
  wire park = op2_valid_q && waits_q && !met;
  wire update = op2_valid_q && (op2_q.kind == KindAdd || op2_q.kind == KindPut);

  always_comb begin
    for (int s = 0; s < WindowDepth; ++s) wake[s] = asleep_q[s] && sleep_sem_q[s] == op2_q.sem;
  end
  assign asleep_o = asleep_q;

  always_ff @(posedge clk_i) begin
    if (put_here) begin
      put_sem_q   <= index_t'(cfg_i.index);
      put_value_q <= cfg_i.data[31:0];
    end
    op1_q <= op_d;
    if (op1_valid_q) begin
      op2_q   <= op1_q;
      waits_q <= op1_q.kind == KindWait;
      slot2_q <= WindowDepth'(1) << op1_q.slot;
      value_q <= forward ? next : written ? mem[op1_q.sem] : '0;
    end
    if (op2_valid_q) begin
      if (we) mem[op2_q.sem] <= next;
      done_slot_o   <= op2_q.slot;
      done_status_o <= (op2_q.kind == KindNone) ? op2_q.status : ErrOk;
    end

    if (rst_i) begin
      put_valid_q  <= 1'b0;
      turn_q       <= 1'b0;
      op1_valid_q  <= 1'b0;
      op2_valid_q  <= 1'b0;
      done_valid_o <= 1'b0;
      asleep_q     <= '0;
      wake_o       <= '0;
      parked_o     <= 1'b0;
      add_o        <= 1'b0;
      saturated_o  <= 1'b0;
      signal_bad_o <= 1'b0;
      idle_o       <= 1'b0;
    end else begin
      if (put_here) put_valid_q <= 1'b1;
      else if (take_put) put_valid_q <= 1'b0;
      if (sig_take) turn_q <= 1'b0;
      else if (op_take) turn_q <= 1'b1;

      op1_valid_q  <= take_put || op_take || (sig_take && sig_good);
      op2_valid_q  <= op1_valid_q;
      done_valid_o <= op2_valid_q && op2_q.entry && !park;

      // A freed slot sleeps no more; one slot parks at a time and is not freed then.
      asleep_q     <= (asleep_q & ~freed_i & ~(update ? wake : '0)) | (park ? slot2_q : '0);
      wake_o       <= update ? wake : '0;

      parked_o     <= park;
      add_o        <= op2_valid_q && op2_q.kind == KindAdd;
      saturated_o  <= op2_valid_q && full;
      signal_bad_o <= sig_take && !sig_good;
      idle_o       <= bits_ready && !put_valid_q && !op1_valid_q && !op2_valid_q && !sig_valid_i;
    end
    for (int s = 0; s < WindowDepth; ++s) if (park && slot2_q[s]) sleep_sem_q[s] <= op2_q.sem;
  end
  assign woken_o = wake_o != '0;

  `WEFT_IMPLIES(ParkIsAwake, park, !asleep_q[op2_q.slot] && !freed_i[op2_q.slot]);
  `WEFT_IMPLIES(SemExists, op_take && op_i.kind != LocNop, 32'(op_i.sem) < 32'(NumSems));
  `WEFT_IMPLIES(HostIsPatient, put_here && put_valid_q, take_put);

endmodule

`default_nettype wire
