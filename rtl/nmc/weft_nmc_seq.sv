// SPDX-License-Identifier: Apache-2.0
//
// Sequencer of the reducer: takes passes and the beats of the sources, and sends one step a cycle
// through rotators and lanes, pass after pass without a gap.
//
// Passes and source beats in by valid/ready. Nothing behind it can be stalled: the step that
// completes a result beat is taken only with a credit for a place in the write buffer (credit_i
// gives one back). Where a source starts in the middle of a beat, its pass may cost one step more,
// which only fills the rotators. A pass waits where its results would overtake those of the pass
// before, or where it would read a place of the accumulator that this has not yet written. A read
// error is carried from the step that takes the beat to the job's last step.
`default_nettype none
`include "weft_assert.svh"

module weft_nmc_seq
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Credits = 32
) (
    input  wire                 clk_i,
    input  wire                 rst_i,
    // Passes wait here in a queue.
    input  wire                 pass_valid_i,
    output logic                pass_ready_o,
    input  wire nmc_pass_t      pass_i,
    // Source beats; the data itself goes to the rotators.
    input  wire                 a_valid_i,
    output logic                a_ready_o,
    input  wire                 a_err_i,
    input  wire                 b_valid_i,
    output logic                b_ready_o,
    input  wire                 b_err_i,
    // One place of the write buffer has become free.
    input  wire                 credit_i,
    // To the rotators, in the cycle of the step. push is ready && valid.
    output logic                emit_a_o,
    output logic                emit_b_o,
    output offs_t               at_a_o,
    output offs_t               at_b_o,
    // One cycle later.
    output logic                look_o,       // there was a step
    output nmc_layout_t         layout_o,
    output logic [ChunkW-1:0]   acc_index_o,  // its place in the accumulator
    output logic                use_acc_o,    // it reads that
    output logic                use_kept_o,
    output logic                edge_o,       // bytes below lo or above hi are not of the sources
    output offs_t               lo_o,
    output offs_t               hi_o,
    // Two cycles behind the step, when the rotators show its windows.
    output logic                lane_valid_o,
    output lane_cmd_t           lane_cmd_o,
    output lane_tag_t           lane_tag_o,
    output logic [63:0]         lane_scalar_o,
    // A job is at work. Why no step is taken; both low when there is none, or it waits for the
    // lanes.
    output logic                active_o,
    output logic                stall_read_o,
    output logic                stall_write_o
);

  localparam int unsigned CreditW = $clog2(Credits + 1);
  logic      pass_valid, load;
  nmc_pass_t pass;

  weft_fifo #(
      .data_t(nmc_pass_t),
      .Depth (NmcJobs)
  ) u_passes (
      .clk_i,
      .rst_i,
      .s_valid_i(pass_valid_i),
      .s_ready_o(pass_ready_o),
      .s_data_i (pass_i),
      .m_valid_o(pass_valid),
      .m_ready_i(load),
      .m_data_o (pass),
      .count_o  ()
  );

  // ---- the pass at work -------------------------------------------------------------------------
  nmc_pass_t          pass_q;
  logic               active_q;
  steps_t             left_q;
  logic               fill_q;    // the next step only fills the rotators
  logic               first_q;   // no step but the filling one taken
  logic               last_q;    // the next step is the pass's last one
  logic               need_a_q, need_b_q;  // the next step takes a beat of this source
  offs_t              at_a_q, at_b_q;
  logic  [ChunkW-1:0] index_q;
  offs_t              place_q;   // of the next step's result in its beat
  logic               whole_q;   // the next step completes a result beat
  logic               err_q;     // a beat taken for this job carried an error
  logic               ended_q;   // the pass before was its job's last one

  // Waiting for the lanes: a step of another class must not overtake the steps so far, and the
  // first step of a pass comes when the pass before has left the accumulator ready for it.
  lane_wait_t out_q, acc_q;
  lane_wait_t wait_q;  // how long a pass behind this step would wait
  logic       acc_ok_q, class_ok_q;
  lane_wait_t later_q;  // of beats of this pass's class
  lane_wait_t limit_q;  // of results before, for its next step
  wire        go = class_ok_q && (acc_ok_q || !first_q);

  logic [CreditW-1:0] credits_q;
  logic               credit_q;  // there is one

  wire data_ok = (a_valid_i || !need_a_q) && (b_valid_i || !need_b_q);
  wire out_ok = fill_q || (go && (credit_q || !whole_q));
  wire step = active_q && data_ok && out_ok;
  wire emit = step && !fill_q;
  assign load = pass_valid && (!active_q || (emit && last_q));
  wire err_now = err_q || (need_a_q && a_err_i) || (need_b_q && b_err_i);
  wire take = emit && whole_q;

  assign a_ready_o     = step && need_a_q;
  assign b_ready_o     = step && need_b_q;
  assign emit_a_o      = emit && pass_q.a.on;
  assign emit_b_o      = emit && pass_q.b.on;
  assign at_a_o        = at_a_q;
  assign at_b_o        = at_b_q;
  assign active_o      = active_q;
  assign stall_read_o  = active_q && !data_ok;
  assign stall_write_o = active_q && data_ok && !fill_q && go && whole_q && !credit_q;

  // Whether the window behind the one at `at` takes a beat: window_takes() of where it starts,
  // without adding. It is the first of its beat if this one is the last, and the last if this one
  // is that but for the lowest bit, which `flip` turns over.
  function automatic logic takes_next(nmc_turn_t turn, offs_t at, offs_t mask, offs_t flip,
                                      logic last);
    logic takes;
    takes = pass_q.layout.from_block ? next_block_takes(at, pass_q.layout.mx) :
            ((at | mask) ^ flip) == '1;
    return last ? turn.last : turn.on && takes;
  endfunction

  function automatic offs_t flip_of(offs_t at, offs_t mask, offs_t step);
    return ((at & mask) == '0) ? '0 : step;
  endfunction

  // Whether a step completes its beat that reaches the beat's end or not.
  function automatic logic completes(nmc_pass_t p, logic reaches, logic last);
    return !p.cmd.to_acc && !p.cmd.to_kept && (reaches || (last && p.ends));
  endfunction

  // Bytes of a result, modulo a beat.
  function automatic offs_t result_step(nmc_layout_t x);
    return x.to_block ? offs_t'(mx_bytes(x.mx)) : offs_t'(8'd1 << x.result);
  endfunction

  // One less, but not below 0; without a carry chain.
  function automatic lane_wait_t less_one(lane_wait_t x);
    lane_wait_t flips;
    for (int unsigned i = 0; i < $bits(lane_wait_t); i++)
      flips[i] = x != '0 && (x & ((lane_wait_t'('1)) >> ($bits(lane_wait_t) - i))) == '0;
    return x ^ flips;
  endfunction

  wire lane_wait_t wait_next = less_one(wait_q);
  wire lane_wait_t out_next = less_one(out_q);

  // How late results before may be for a pass's first step: as late as its own. Behind a class that
  // uses lanes late another one waits until all are out. pass_q stays what it was behind its last
  // step.
  wire same = pass.cmd.which == pass_q.cmd.which;
  wire lane_wait_t limit = !pass_q.late ? pass.later : same ? '1 : '0;
  wire lane_wait_t waits = active_q ? later_q : out_next;
  wire load_ok = pass_q.late ? same || waits == '0 : waits <= pass.later;

  // Bytes of a window, less one or modulo a beat; see takes_next.
  offs_t mask_q, step_q, flip_a_q, flip_b_q;
  offs_t load_step, load_mask;
  offs_t result_q;  // bytes of a result, modulo a beat

  assign load_mask = ~(offs_t'('1) << pass.layout.window);
  assign load_step = pass.layout.from_block ? offs_t'(mx_bytes(pass.layout.mx)) :
      offs_t'(8'd1 << pass.layout.window);

  wire pass_fills = pass.a.fill || pass.b.fill;
  wire next_last = left_q == steps_t'(2);

  always_ff @(posedge clk_i) begin
    if (load) begin
      pass_q     <= pass;
      later_q    <= lane_beats_later(pass.cmd.which);
      limit_q    <= limit;
      left_q     <= pass.steps;
      first_q    <= 1'b1;
      fill_q     <= pass_fills;
      last_q     <= pass.single;
      need_a_q   <= pass_fills ? pass.a.fill : pass.a.first;
      need_b_q   <= pass_fills ? pass.b.fill : pass.b.first;
      at_a_q     <= pass.a.at;
      at_b_q     <= pass.b.at;
      mask_q     <= load_mask;
      step_q     <= load_step;
      flip_a_q   <= flip_of(pass.a.at, load_mask, load_step);
      flip_b_q   <= flip_of(pass.b.at, load_mask, load_step);
      index_q    <= '0;
      place_q    <= pass.place;
      result_q   <= result_step(pass.layout);
      whole_q    <= completes(pass, fills(pass.place, pass.layout), pass.single);
      err_q   <= !(active_q ? pass_q.ends : ended_q) && (active_q ? err_now : err_q);
    end else begin
      if (step) err_q <= err_now;
      if (step && fill_q) begin
        fill_q   <= 1'b0;
        need_a_q <= pass_q.a.first;
        need_b_q <= pass_q.b.first;
      end
      if (emit) begin
        left_q   <= left_q - 1'b1;
        first_q  <= 1'b0;
        last_q   <= next_last;
        need_a_q <= takes_next(pass_q.a, at_a_q, mask_q, flip_a_q, next_last);
        need_b_q <= takes_next(pass_q.b, at_b_q, mask_q, flip_b_q, next_last);
        at_a_q   <= at_a_q + step_q;
        at_b_q   <= at_b_q + step_q;
        limit_q  <= '1;  // its own
        index_q  <= index_q + 1'b1;
        place_q  <= place_q + result_q;
        whole_q  <= completes(pass_q, next_fills(place_q, pass_q.layout), next_last);
      end
    end

    if (rst_i) begin
      active_q  <= 1'b0;
      ended_q   <= 1'b1;
      credits_q <= CreditW'(Credits);
      credit_q  <= 1'b0;
      out_q      <= '0;
      acc_q      <= '0;
      class_ok_q <= 1'b1;
      acc_ok_q   <= 1'b1;
    end else begin
      if (emit) begin
        out_q      <= later_q;
        acc_q      <= wait_next;
        acc_ok_q   <= wait_next == '0;
      end else begin
        out_q <= out_next;
        if (acc_q != '0) acc_q <= acc_q - 1'b1;
        acc_ok_q <= acc_q <= lane_wait_t'(1);
      end
      // A load comes late: with it only the results before and the new class are compared.
      if (load) wait_q <= pass.acc_wait;
      else if (emit) wait_q <= wait_next;
      if (load) class_ok_q <= load_ok;
      else if (!emit) class_ok_q <= out_next <= limit_q;
      if (load) active_q <= 1'b1;
      else if (emit && last_q) active_q <= 1'b0;
      if (active_q) ended_q <= pass_q.ends;
      // A step is known late: it enables the count, and the flag looks at the count as it is.
      if (credit_i != take) credits_q <= take ? credits_q - 1'b1 : credits_q + 1'b1;
      credit_q <= credit_i || !(credits_q == '0 || (credits_q == CreditW'(1) && take));
    end
  end

  // ---- beside the rotators ----------------------------------------------------------------------
  typedef struct packed {
    lane_cmd_t   cmd;
    lane_tag_t   tag;
    logic [63:0] scalar;
  } beside_t;

  beside_t beside1_q, beside2_q;
  logic emit1_q, emit2_q;

  always_ff @(posedge clk_i) begin
    if (emit) begin
      beside1_q.cmd <= pass_q.cmd;
      beside1_q.tag <= '{
          layout: pass_q.layout,
          to_acc: pass_q.cmd.to_acc,
          to_kept: pass_q.cmd.to_kept,
          index: index_q,
          place: place_q,
          whole: whole_q,
          spill: last_q && pass_q.spill,
          ends: last_q && pass_q.ends,
          err: err_now
      };
      beside1_q.scalar <= pass_q.scalar;
      edge_o           <= first_q || last_q;
      // No byte of a step without a window.
      lo_o             <= first_q ? pass_q.lo : {OffsW{last_q && pass_q.spill}};
      hi_o             <= !last_q ? '1 : pass_q.spill ? '0 : pass_q.hi;
    end
    if (emit1_q) beside2_q <= beside1_q;
    if (rst_i) begin
      emit1_q <= 1'b0;
      emit2_q <= 1'b0;
    end else begin
      emit1_q <= emit;
      emit2_q <= emit1_q;
    end
  end

  assign look_o        = emit1_q;
  assign layout_o      = beside1_q.tag.layout;
  assign acc_index_o   = beside1_q.tag.index;
  assign use_acc_o     = emit1_q && beside1_q.cmd.use_acc;
  assign use_kept_o    = emit1_q && beside1_q.cmd.use_kept;
  assign lane_valid_o  = emit2_q;
  assign lane_cmd_o    = beside2_q.cmd;
  assign lane_tag_o    = beside2_q.tag;
  assign lane_scalar_o = beside2_q.scalar;

  `WEFT_ASSERT(CreditsInRange, credits_q <= CreditW'(Credits));
  `WEFT_NEXT(CreditIsOne, 1'b1, credit_q == (credits_q != '0));
  `WEFT_IMPLIES(ChunkFits,
                active_q && (pass_q.cmd.to_acc || pass_q.cmd.to_kept || pass_q.cmd.use_acc),
                pass_q.steps <= steps_t'(ChunkSteps) + steps_t'(pass_q.spill));

endmodule

`default_nettype wire
