// SPDX-License-Identifier: Apache-2.0
//
// Fetches the entries of the running subgraphs ahead of need, and lines of memory for CPU-M.
//
// Each context owns a ring of RingDepth entries in block RAM. Bursts of up to 16 entries (1 KB, so
// none crosses 4 KB) go out while a whole burst fits, round robin over the contexts and CPU-M;
// space is reserved when the read is sent, so data is always taken. RingDepth = 128 keeps one
// context at an entry every 4 cycles with memory that takes 400 cycles. pop_i reads the next entry
// of a context: data one cycle later; a pop every other cycle at most, because avail_o follows a
// pop two cycles later. A killed context sends no further reads; those on the way are awaited
// (quiet_o) before the context may be loaded again.
`default_nettype none
`include "weft_assert.svh"

module weft_me_fetch
  import weft_pkg::*, weft_me_pkg::*;
#(
    parameter  int unsigned NumCtx    = 4,
    parameter  int unsigned RingDepth = 128,
    localparam int unsigned CtxW      = (NumCtx > 1) ? $clog2(NumCtx) : 1
) (
    input  wire                          clk_i,
    input  wire                          rst_i,
    // Load a context that is quiet: a pulse.
    input  wire                          load_valid_i,
    input  wire             [  CtxW-1:0] load_ctx_i,
    input  wire line_t                   load_line_i,
    input  wire count_t                  load_count_i,
    input  wire             [NumCtx-1:0] kill_i,
    // Entries that wait; no read of the context under way (and none to come, if killed).
    output logic            [NumCtx-1:0] avail_o,
    output logic            [NumCtx-1:0] quiet_o,
    input  wire                          pop_i,
    input  wire             [  CtxW-1:0] pop_ctx_i,
    output fetched_t                     data_o,
    output logic                         error_o,
    // CPU-M: lines of one 1 KB block; beats come back in order and are always taken.
    input  wire                          cpu_valid_i,
    output logic                         cpu_ready_o,
    input  wire line_t                   cpu_line_i,
    input  wire             [       3:0] cpu_len_i,      // lines - 1
    output logic                         cpu_rvalid_o,
    output logic                         cpu_rlast_o,
    output logic                         cpu_rbad_o,
    output logic            [     511:0] cpu_rdata_o,
    // Out: AXI4 read.
    output logic            [      63:0] m_axi_araddr,
    output logic            [       7:0] m_axi_arlen,
    output logic                         m_axi_arvalid,
    input  wire                          m_axi_arready,
    input  wire             [     511:0] m_axi_rdata,
    input  wire             [       1:0] m_axi_rresp,
    input  wire                          m_axi_rlast,
    input  wire                          m_axi_rvalid,
    output logic                         m_axi_rready
);

  localparam int unsigned PtrW = $clog2(RingDepth);
  // A context has RingDepth / 16 full bursts and two short ones under way at most, CPU-M two.
  localparam int unsigned MaxReads = NumCtx * (RingDepth / BurstMax + 2) + 2;

  if (RingDepth < 2 * BurstMax || (RingDepth & (RingDepth - 1)) != 0) begin : gen_bad_ring
    $error("weft_me_fetch: RingDepth must be a power of two, 32 or more");
  end

  typedef logic [CtxW-1:0] ctx_t;
  typedef struct packed {
    line_t  line;
    count_t left;
  } row_t;
  typedef struct packed {
    logic cpu;
    ctx_t ctx;
  } reader_t;
  typedef enum logic [2:0] {
    StPick,   // choose who reads next
    StRead,   // read what the context has left
    StSize,   // cut the burst
    StStore,  // write back what is left then, reserve the space
    StSend    // until memory takes the address
  } state_e;

  // ---- what each context still has to read
  (* ram_style = "distributed" *) row_t rows[NumCtx];
  logic [NumCtx-1:0] more_q, space_q;
  logic [NumCtx-1:0][PtrW:0] reserved_q;  // entries in the ring or on their way
  logic [NumCtx-1:0][PtrW:0] present_q;   // entries in the ring
  logic [NumCtx-1:0][PtrW-1:0] wr_q, rd_q;

  state_e state_q;
  reader_t reader_q;
  ctx_t last_q;
  logic [CtxW:0] turn_q;  // NumCtx: CPU-M's turn
  line_t ar_line_q;
  logic [3:0] ar_len_q;
  logic ar_valid_q;

  // Round robin: the first context behind the last one that wants, else the first that wants.
  wire [NumCtx-1:0] want = more_q & space_q & ~kill_i;
  logic [NumCtx-1:0] behind;
  ctx_t pick;
  always_comb begin
    for (int c = 0; c < NumCtx; ++c) behind[c] = ctx_t'(c) > last_q;
    pick = '0;
    for (int c = NumCtx - 1; c >= 0; --c) if (want[c]) pick = ctx_t'(c);
    if ((want & behind) != '0) begin
      for (int c = NumCtx - 1; c >= 0; --c) if (want[c] && behind[c]) pick = ctx_t'(c);
    end
  end
  wire cpu_first = cpu_valid_i && (turn_q == (CtxW + 1)'(NumCtx) || want == '0);

  row_t row_q;
  logic [4:0] burst_q;
  logic last_burst_q;
  wire [4:0] to_edge = 5'd16 - 5'(row_q.line[3:0]);
  wire last_burst = row_q.left <= count_t'(to_edge);

  // A load has the write port; the store waits a cycle then.
  wire storing = state_q == StStore && !load_valid_i;
  logic order_ready, order_valid;
  wire ar_go = ar_valid_q && m_axi_arready;
  reader_t order;

  weft_fifo #(
      .data_t  (reader_t),
      .Depth   (MaxReads),
      .BlockRam(1'b0)
  ) u_order (
      .clk_i,
      .rst_i,
      .s_valid_i(ar_go),
      .s_ready_o(order_ready),
      .s_data_i (reader_q),
      .m_valid_o(order_valid),
      .m_ready_i(m_axi_rvalid && m_axi_rlast),
      .m_data_o (order),
      .count_o  ()
  );

  assign m_axi_araddr  = {ar_line_q, 6'b0};
  assign m_axi_arlen   = 8'(ar_len_q);
  assign m_axi_arvalid = ar_valid_q;
  assign m_axi_rready  = order_valid;
  assign cpu_ready_o   = state_q == StPick && cpu_first;

  // ---- data comes back: one register, then the ring or CPU-M
  logic beat_valid_q, beat_last_q;
  reader_t beat_reader_q;
  fetched_t beat_q;
  wire ring_we = beat_valid_q && !beat_reader_q.cpu;

  assign cpu_rvalid_o = beat_valid_q && beat_reader_q.cpu;
  assign cpu_rlast_o  = beat_last_q;
  assign cpu_rbad_o   = beat_q.bad;
  assign cpu_rdata_o  = beat_q.wqe;

  weft_sdpram #(
      .data_t(fetched_t),
      .Depth (NumCtx * RingDepth),
      .Style ("block")
  ) u_ring (
      .clk_i,
      .we_i   (ring_we),
      .waddr_i({beat_reader_q.ctx, wr_q[beat_reader_q.ctx]}),
      .wdata_i(beat_q),
      .re_i   (pop_i),
      .raddr_i({pop_ctx_i, rd_q[pop_ctx_i]}),
      .rdata_o(data_o)
  );

  always_ff @(posedge clk_i) begin
    if (load_valid_i) begin
      rows[load_ctx_i] <= '{line: load_line_i, left: load_count_i};
    end else if (storing) begin
      rows[reader_q.ctx] <= '{
          line: row_q.line + 58'(burst_q),
          left: row_q.left - count_t'(burst_q)
      };
    end

    if (state_q == StRead) row_q <= rows[reader_q.ctx];
    if (state_q == StSize) begin
      last_burst_q <= last_burst;
      burst_q      <= last_burst ? row_q.left[4:0] : to_edge;
    end
    if (storing) begin
      ar_line_q <= row_q.line;
      ar_len_q  <= 4'(burst_q - 1'b1);
    end
    if (state_q == StPick) begin
      reader_q <= '{cpu: cpu_first, ctx: pick};
      if (cpu_first) begin
        ar_line_q <= cpu_line_i;
        ar_len_q  <= cpu_len_i;
      end
    end

    if (m_axi_rvalid && m_axi_rready) begin
      beat_q        <= '{bad: m_axi_rresp != 2'b00, wqe: m_axi_rdata};
      beat_last_q   <= m_axi_rlast;
      beat_reader_q <= order;
    end

    if (rst_i) begin
      state_q      <= StPick;
      ar_valid_q   <= 1'b0;
      beat_valid_q <= 1'b0;
      error_o      <= 1'b0;
      last_q       <= '0;
      turn_q       <= '0;
    end else begin
      beat_valid_q <= m_axi_rvalid && m_axi_rready;
      error_o      <= m_axi_rvalid && m_axi_rready && m_axi_rresp != 2'b00;

      unique case (state_q)
        StPick:
        if (cpu_first) begin
          state_q    <= StSend;
          ar_valid_q <= 1'b1;
          turn_q     <= '0;
        end else if (want != '0) begin
          state_q <= StRead;
          last_q  <= pick;
          // CPU-M waits for one round of the contexts at most.
          if (turn_q != (CtxW + 1)'(NumCtx)) turn_q <= turn_q + 1'b1;
        end
        StRead:  state_q <= StSize;
        StSize:  state_q <= StStore;
        StStore:
        if (storing) begin
          state_q    <= StSend;
          ar_valid_q <= 1'b1;
        end
        StSend:
        if (ar_go) begin
          ar_valid_q <= 1'b0;
          state_q    <= StPick;
        end
        default: state_q <= StPick;
      endcase
    end

    for (int c = 0; c < NumCtx; ++c) begin
      space_q[c] <= reserved_q[c] <= (PtrW + 1)'(RingDepth - BurstMax);
      avail_o[c] <= present_q[c] != '0;
      quiet_o[c] <= reserved_q[c] == present_q[c] && !(more_q[c] && !kill_i[c]) &&
          !(state_q != StPick && !reader_q.cpu && reader_q.ctx == ctx_t'(c));
      if (rst_i || (load_valid_i && load_ctx_i == ctx_t'(c))) begin
        reserved_q[c] <= '0;
        present_q[c]  <= '0;
        wr_q[c]       <= '0;
        rd_q[c]       <= '0;
        more_q[c]     <= load_count_i != '0 && !rst_i;
        space_q[c]    <= 1'b1;
        avail_o[c]    <= 1'b0;
        quiet_o[c]    <= rst_i;
      end else begin
        reserved_q[c] <= reserved_q[c] +
            ((storing && reader_q.ctx == ctx_t'(c)) ? (PtrW + 1)'(burst_q) : '0) -
            (PtrW + 1)'(pop_i && pop_ctx_i == ctx_t'(c));
        present_q[c] <= present_q[c] + (PtrW + 1)'(ring_we && beat_reader_q.ctx == ctx_t'(c)) -
            (PtrW + 1)'(pop_i && pop_ctx_i == ctx_t'(c));
        if (ring_we && beat_reader_q.ctx == ctx_t'(c)) wr_q[c] <= wr_q[c] + 1'b1;
        if (pop_i && pop_ctx_i == ctx_t'(c)) rd_q[c] <= rd_q[c] + 1'b1;
        if (storing && reader_q.ctx == ctx_t'(c)) more_q[c] <= !last_burst_q;
      end
    end
  end

  for (genvar c = 0; c < NumCtx; ++c) begin : gen_checks
    `WEFT_ASSERT(RingInRange,
                 reserved_q[c] <= (PtrW + 1)'(RingDepth) && present_q[c] <= reserved_q[c]);
    `WEFT_IMPLIES(PopHasData, pop_i && pop_ctx_i == ctx_t'(c), present_q[c] != '0);
    `WEFT_IMPLIES(LoadIsQuiet, load_valid_i && load_ctx_i == ctx_t'(c), quiet_o[c]);
  end
  `WEFT_IMPLIES(OrderHasRoom, ar_go, order_ready);
  `WEFT_IMPLIES(CpuStaysInBlock, cpu_ready_o, 5'(cpu_line_i[3:0]) + 5'(cpu_len_i) < 5'd16);
  `WEFT_HOLD(ArHolds, m_axi_arvalid, m_axi_arready, {m_axi_araddr, m_axi_arlen});

endmodule

`default_nettype wire
