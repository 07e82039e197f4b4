// SPDX-License-Identifier: Apache-2.0
//
// The message engine without its processor: doorbells in, entries fetched, ordered and issued,
// completion entries out. CPU-M sits at the mailbox, verdict and line-read ports. docs/me.md.
//
// Doorbell -> request of an entry that waits for nothing: 21 cycles and the latency of memory.
// Completion -> request of the entry that waited for it: 7 cycles. An entry every other cycle.
`default_nettype none

module weft_me_core
  import weft_wire_pkg::*, weft_pkg::*, weft_me_pkg::*;
#(
    parameter int unsigned NumSems      = 256,
    parameter int unsigned NumSubgraphs = 64,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned NumRegions   = 64,
    parameter int unsigned WindowDepth  = 32,
    parameter int unsigned NumCtx       = 4,
    parameter int unsigned RingDepth    = 128
) (
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire cfg_t         cfg_i,
    input  wire       [ 63:0] now_i,
    // Doorbells.
    input  wire               db_valid_i,
    output logic              db_ready_o,
    input  wire       [511:0] db_i,
    // Transport.
    output logic              req_valid_o,
    input  wire               req_ready_i,
    output tx_req_t           req_o,
    input  wire               cpl_valid_i,
    output logic              cpl_ready_o,
    input  wire cpl_t         cpl_i,
    input  wire               sig_valid_i,
    output logic              sig_ready_o,
    input  wire signal_t      sig_i,
    // Reducer.
    output logic              nmc_req_valid_o,
    input  wire               nmc_req_ready_i,
    output nmc_req_t          nmc_req_o,
    input  wire               nmc_cpl_valid_i,
    output logic              nmc_cpl_ready_o,
    input  wire cpl_t         nmc_cpl_i,
    // CPU-M: subgraph to validate (stays until the verdict), verdict, reads of lines.
    output logic              mbox_valid_o,
    output mbox_t             mbox_o,
    input  wire               verdict_valid_i,
    output logic              verdict_ready_o,
    input  wire verdict_t     verdict_i,
    input  wire               cpu_valid_i,
    output logic              cpu_ready_o,
    input  wire line_t        cpu_line_i,
    input  wire       [  3:0] cpu_len_i,
    output logic              cpu_rvalid_o,
    output logic              cpu_rlast_o,
    output logic              cpu_rbad_o,
    output logic      [511:0] cpu_rdata_o,
    // Memory: AXI4, 512 bits.
    output logic      [ 63:0] m_axi_araddr,
    output logic      [  7:0] m_axi_arlen,
    output logic              m_axi_arvalid,
    input  wire               m_axi_arready,
    input  wire       [511:0] m_axi_rdata,
    input  wire       [  1:0] m_axi_rresp,
    input  wire               m_axi_rlast,
    input  wire               m_axi_rvalid,
    output logic              m_axi_rready,
    output logic      [ 63:0] m_axi_awaddr,
    output logic      [  7:0] m_axi_awlen,
    output logic              m_axi_awvalid,
    input  wire               m_axi_awready,
    output logic      [511:0] m_axi_wdata,
    output logic      [ 63:0] m_axi_wstrb,
    output logic              m_axi_wlast,
    output logic              m_axi_wvalid,
    input  wire               m_axi_wready,
    input  wire       [  1:0] m_axi_bresp,
    input  wire               m_axi_bvalid,
    output logic              m_axi_bready,
    // Observers.
    output me_trace_t         trace_o,
    output me_cnt_t           cnt_o,  // cpu_trap stays 0 here
    output logic              idle_o
);

  // Reserve: slots of the window that each context has for itself.
  localparam int unsigned Reserve = 2;
  localparam int unsigned CtxW = (NumCtx > 1) ? $clog2(NumCtx) : 1;
  localparam int unsigned SlotW = $clog2(WindowDepth);

  logic start_ready, start_valid, abort_valid, finish_valid, finish_ready;
  start_t start;
  logic [15:0] abort_subgraph;
  finish_t finish;
  logic cqe_valid, cqe_ready, cqe_in_valid, cqe_in_ready;
  cqe_req_t cqe, cqe_in;
  logic admin_idle, ctx_idle, sem_idle, cq_idle;

  weft_me_admin #(
      .NumSubgraphs(NumSubgraphs)
  ) u_admin (
      .clk_i,
      .rst_i,
      .db_valid_i,
      .db_ready_o,
      .db_i,
      .mbox_valid_o,
      .mbox_o,
      .verdict_valid_i,
      .verdict_ready_o,
      .verdict_i,
      .start_ready_i   (start_ready),
      .start_valid_o   (start_valid),
      .start_o         (start),
      .abort_valid_o   (abort_valid),
      .abort_subgraph_o(abort_subgraph),
      .finish_valid_i  (finish_valid),
      .finish_ready_o  (finish_ready),
      .finish_i        (finish),
      .cqe_valid_o     (cqe_valid),
      .cqe_ready_i     (cqe_ready),
      .cqe_o           (cqe),
      .doorbell_o      (cnt_o.doorbell),
      .refused_o       (cnt_o.refused),
      .register_ok_o   (cnt_o.register_ok),
      .register_bad_o  (cnt_o.register_bad),
      .idle_o          (admin_idle)
  );

  // A few completion entries may wait for memory without holding up the doorbells.
  weft_fifo #(
      .data_t(cqe_req_t),
      .Depth (16)
  ) u_cqes (
      .clk_i,
      .rst_i,
      .s_valid_i(cqe_valid),
      .s_ready_o(cqe_ready),
      .s_data_i (cqe),
      .m_valid_o(cqe_in_valid),
      .m_ready_i(cqe_in_ready),
      .m_data_o (cqe_in),
      .count_o  ()
  );

  weft_me_cq u_cq (
      .clk_i,
      .rst_i,
      .cfg_i,
      .now_i,
      .cqe_valid_i(cqe_in_valid),
      .cqe_ready_o(cqe_in_ready),
      .cqe_i      (cqe_in),
      .m_axi_awaddr,
      .m_axi_awlen,
      .m_axi_awvalid,
      .m_axi_awready,
      .m_axi_wdata,
      .m_axi_wstrb,
      .m_axi_wlast,
      .m_axi_wvalid,
      .m_axi_wready,
      .m_axi_bresp,
      .m_axi_bvalid,
      .m_axi_bready,
      .sent_o     (cnt_o.cqe),
      .error_o    (cnt_o.cqe_error),
      .idle_o     (cq_idle)
  );

  logic load_valid, pop;
  logic [CtxW-1:0] load_ctx, pop_ctx, retire_ctx;
  logic waits;
  line_t load_line;
  count_t load_count;
  logic [NumCtx-1:0] avail, quiet, kill;
  logic [NumCtx-1:0][15:0] subgraph;
  entry_t pop_entry;
  fetched_t fetched;
  retire_t retire;

  weft_me_ctx #(
      .NumCtx     (NumCtx),
      .WindowDepth(WindowDepth),
      .Reserve    (Reserve)
  ) u_ctx (
      .clk_i,
      .rst_i,
      .start_ready_o   (start_ready),
      .start_valid_i   (start_valid),
      .start_i         (start),
      .abort_valid_i   (abort_valid),
      .abort_subgraph_i(abort_subgraph),
      .finish_valid_o  (finish_valid),
      .finish_ready_i  (finish_ready),
      .finish_o        (finish),
      .load_valid_o    (load_valid),
      .load_ctx_o      (load_ctx),
      .load_line_o     (load_line),
      .load_count_o    (load_count),
      .avail_i         (avail),
      .quiet_i         (quiet),
      .pop_o           (pop),
      .pop_ctx_o       (pop_ctx),
      .pop_entry_o     (pop_entry),
      .retire_i        (retire),
      .retire_ctx_i    (retire_ctx),
      .waits_i         (waits),
      .kill_o          (kill),
      .subgraph_o      (subgraph),
      .stall_o         (cnt_o.window_stall),
      .idle_o          (ctx_idle)
  );

  weft_me_fetch #(
      .NumCtx   (NumCtx),
      .RingDepth(RingDepth)
  ) u_fetch (
      .clk_i,
      .rst_i,
      .load_valid_i(load_valid),
      .load_ctx_i  (load_ctx),
      .load_line_i (load_line),
      .load_count_i(load_count),
      .kill_i      (kill),
      .avail_o     (avail),
      .quiet_o     (quiet),
      .pop_i       (pop),
      .pop_ctx_i   (pop_ctx),
      .data_o      (fetched),
      .error_o     (cnt_o.fetch_error),
      .cpu_valid_i,
      .cpu_ready_o,
      .cpu_line_i,
      .cpu_len_i,
      .cpu_rvalid_o,
      .cpu_rlast_o,
      .cpu_rbad_o,
      .cpu_rdata_o,
      .m_axi_araddr,
      .m_axi_arlen,
      .m_axi_arvalid,
      .m_axi_arready,
      .m_axi_rdata,
      .m_axi_rresp,
      .m_axi_rlast,
      .m_axi_rvalid,
      .m_axi_rready
  );

  logic in_valid_q;
  logic [CtxW-1:0] in_ctx_q;
  entry_t in_entry_q;
  always_ff @(posedge clk_i) begin
    in_valid_q <= pop && !rst_i;
    if (pop) begin
      in_ctx_q   <= pop_ctx;
      in_entry_q <= pop_entry;
    end
  end

  logic op_valid, op_ready, op_done_valid;
  local_t op;
  logic [SlotW-1:0] op_slot, op_done_slot;
  err_e op_done_status;
  logic [WindowDepth-1:0] asleep, wake, freed;

  weft_me_window #(
      .WindowDepth(WindowDepth),
      .NumCtx     (NumCtx),
      .NumConns   (NumConns),
      .NumSems    (NumSems),
      .NumRegions (NumRegions)
  ) u_window (
      .clk_i,
      .rst_i,
      .cfg_i,
      .in_valid_i      (in_valid_q),
      .in_ctx_i        (in_ctx_q),
      .in_entry_i      (in_entry_q),
      .in_i            (fetched),
      .kill_i          (kill),
      .subgraph_i      (subgraph),
      .retire_o        (retire),
      .retire_ctx_o    (retire_ctx),
      .waits_o         (waits),
      .tx_valid_o      (req_valid_o),
      .tx_ready_i      (req_ready_i),
      .tx_o            (req_o),
      .tx_cpl_valid_i  (cpl_valid_i),
      .tx_cpl_ready_o  (cpl_ready_o),
      .tx_cpl_i        (cpl_i),
      .nmc_valid_o     (nmc_req_valid_o),
      .nmc_ready_i     (nmc_req_ready_i),
      .nmc_o           (nmc_req_o),
      .nmc_cpl_valid_i (nmc_cpl_valid_i),
      .nmc_cpl_ready_o (nmc_cpl_ready_o),
      .nmc_cpl_i       (nmc_cpl_i),
      .op_valid_o      (op_valid),
      .op_ready_i      (op_ready),
      .op_o            (op),
      .op_slot_o       (op_slot),
      .op_done_valid_i (op_done_valid),
      .op_done_slot_i  (op_done_slot),
      .op_done_status_i(op_done_status),
      .asleep_i        (asleep),
      .wake_i          (wake),
      .freed_o         (freed),
      .trace_o,
      .entered_o       (cnt_o.fetched),
      .issue_tx_o      (cnt_o.issue_tx),
      .issue_nmc_o     (cnt_o.issue_nmc),
      .issue_local_o   (cnt_o.issue_local)
  );

  weft_me_sem #(
      .NumSems    (NumSems),
      .WindowDepth(WindowDepth)
  ) u_sem (
      .clk_i,
      .rst_i,
      .cfg_i,
      .op_valid_i   (op_valid),
      .op_ready_o   (op_ready),
      .op_i         (op),
      .op_slot_i    (op_slot),
      .sig_valid_i,
      .sig_ready_o,
      .sig_i,
      .done_valid_o (op_done_valid),
      .done_slot_o  (op_done_slot),
      .done_status_o(op_done_status),
      .asleep_o     (asleep),
      .wake_o       (wake),
      .freed_i      (freed),
      .parked_o     (cnt_o.wait_parked),
      .woken_o      (cnt_o.wait_woken),
      .add_o        (cnt_o.sem_add),
      .saturated_o  (cnt_o.sem_saturated),
      .signal_bad_o (cnt_o.signal_bad),
      .idle_o       (sem_idle)
  );

  assign cnt_o.cpu_trap = 1'b0;
  always_ff @(posedge clk_i) begin
    cnt_o.launch     <= start_valid && !rst_i;
    cnt_o.finish_ok  <= finish_valid && finish_ready && finish.status == ErrOk && !rst_i;
    cnt_o.finish_bad <= finish_valid && finish_ready && finish.status != ErrOk && !rst_i;
    cnt_o.done       <= retire.valid && !rst_i;
    cnt_o.failed     <= retire.valid && retire.status != ErrOk && !retire.flushed && !rst_i;
    cnt_o.flushed    <= retire.valid && retire.flushed && !rst_i;
    idle_o           <= admin_idle && ctx_idle && sem_idle && cq_idle && !cqe_in_valid &&
        !db_valid_i && !rst_i;
  end

endmodule

`default_nettype wire
