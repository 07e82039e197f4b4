// SPDX-License-Identifier: Apache-2.0
//
// Takes jobs, reads their payload ahead of time and offers each, in order, when all of it is here.
//
// job: one every other cycle (no frame is shorter than two beats). Memory beats go into a buffer
// whose space is reserved before the read is asked for: rready is always 1, so a paused MAC never
// holds up a memory shared with others, and a frame, once begun, never waits for memory. The
// default
// sizes keep 64-byte and 4 KB packets gapless up to 750 cycles of memory latency (measured).
// frame: what to send, taken by weft_tx_seq; its `reads` beats are then fetched by read_i, in
// order,
// beat_o follows one cycle later. fields: header part of the same jobs, popped separately and
// later.
// Does not look at the data, nor check addresses (the engine did). Error answers set frame_o.bad.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_payload
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_pkg::*;
#(
    parameter int unsigned Jobs     = 256,  // jobs that wait for their payload or their turn
    parameter int unsigned BufBeats = 1024  // payload buffer
) (
    input  wire               clk_i,
    input  wire               rst_i,
    // Jobs: ready is a register.
    input  wire               job_valid_i,
    output logic              job_ready_o,
    input  wire tx_job_t      job_i,
    // AXI4 read address and data.
    output logic [63:0]       m_axi_araddr,
    output logic [7:0]        m_axi_arlen,
    output logic              m_axi_arvalid,
    input  wire               m_axi_arready,
    input  wire  [DataW-1:0]  m_axi_rdata,
    input  wire  [1:0]        m_axi_rresp,
    input  wire               m_axi_rlast,
    input  wire               m_axi_rvalid,
    output logic              m_axi_rready,
    // Frames whose payload is in the buffer.
    output logic              frame_valid_o,
    input  wire               frame_ready_i,
    output tx_frame_t         frame_o,
    // Header fields of the oldest job not popped yet.
    output tx_fields_t        fields_o,
    input  wire               fields_pop_i,
    // Next beat of the buffer: data in the next cycle, held until the next read.
    input  wire               read_i,
    output logic [DataW-1:0]  beat_o,
    // A burst was asked.
    output logic              cnt_reads_o
);

  localparam int unsigned BufW = $clog2(BufBeats);
  localparam int unsigned MaxBurst = 64;  // 4 KB

  if (BufBeats < 256 || 2 ** BufW != BufBeats) begin : gen_bad_buf
    $error("weft_tx_payload: BufBeats must be a power of two, 256 or more");
  end

  typedef logic [6:0] beats_t;  // 0..65

  // ---- a job comes in: how much to read ---------------------------------------------------------
  logic job_valid_q, job_move, read_valid_q, frames_ready, fields_ready;
  tx_job_t job_q;
  beats_t job_reads;
  tx_frame_t job_frame;
  tx_fields_t job_fields;

  assign job_ready_o = !job_valid_q;
  assign job_reads   = (job_q.probe || job_q.len == '0) ? '0 :
                       beats_t'((14'(job_q.len) + 14'(job_q.laddr[5:0]) + 14'd63) >> 6);

  always_comb begin
    job_frame = '{
        kind: job_q.probe ? TxProbe : TxData,
        conn: job_q.conn,
        path: job_q.path,
        last_byte: job_q.probe ? 13'(HDR_PROBE_BYTES - 1) : 13'(HDR_DATA_BYTES - 1) + job_q.len,
        reads: job_reads,
        offset: job_q.laddr[5:0],
        bad: 1'b0
    };
    job_fields = '{
        pad: job_q.probe ? 2'd0 : 2'd0 - job_q.len[1:0],
        epoch: job_q.epoch,
        psn: job_q.psn,
        retx: job_q.retx,
        more: job_q.more,
        signal: job_q.signal,
        raddr: job_q.raddr,
        rkey: job_q.rkey,
        stream: job_q.stream,
        msg_no: job_q.msg_no,
        msg_len: job_q.msg_len,
        sem: job_q.sem,
        value: job_q.value
    };
  end

  assign job_move = job_valid_q && !read_valid_q && frames_ready && fields_ready;

  always_ff @(posedge clk_i) begin
    if (job_valid_i && job_ready_o) job_q <= job_i;
    if (rst_i) job_valid_q <= 1'b0;
    else job_valid_q <= job_ready_o ? job_valid_i : !job_move;
  end

  // ---- bursts: split at 4 KB, asked for when the buffer has room for a whole one ----------------
  logic [57:0] line_q;  // address / 64
  beats_t left_q;       // beats still to ask for
  beats_t page_left_q;  // beats to the next 4 KB boundary, 1..64
  beats_t asked_q;      // asked for in the cycle before
  // beats of the buffer neither filled nor promised, asked_q not taken off yet
  logic [BufW:0] room_q;
  logic credit_q;
  logic arvalid_q;
  logic [57:0] arline_q;
  logic [5:0] arlen_q;
  logic ask, ask_last;
  beats_t ask_beats;

  assign ask       = read_valid_q && credit_q && (!arvalid_q || m_axi_arready);
  assign ask_last  = left_q <= page_left_q;
  assign ask_beats = ask_last ? left_q : page_left_q;

  always_ff @(posedge clk_i) begin
    if (job_move) begin
      line_q      <= job_q.laddr[63:6];
      left_q      <= job_reads;
      page_left_q <= 7'd64 - {1'b0, job_q.laddr[11:6]};
    end else if (ask) begin
      line_q      <= {line_q[57:6] + 52'd1, 6'd0};
      left_q      <= left_q - page_left_q;
      page_left_q <= 7'd64;
    end
    if (ask) begin
      arline_q <= line_q;
      arlen_q  <= 6'(ask_beats - 7'd1);
    end

    if (rst_i) begin
      read_valid_q <= 1'b0;
      arvalid_q    <= 1'b0;
      asked_q      <= '0;
      room_q       <= (BufW + 1)'(BufBeats);
      credit_q     <= 1'b0;
    end else begin
      if (job_move) read_valid_q <= job_reads != '0;
      else if (ask && ask_last) read_valid_q <= 1'b0;
      if (ask) arvalid_q <= 1'b1;
      else if (m_axi_arready) arvalid_q <= 1'b0;
      asked_q <= ask ? ask_beats : '0;
      room_q  <= room_q - (BufW + 1)'(asked_q) + (BufW + 1)'(read_i);
      // The next burst, the one perhaps asked for in this cycle and the one before must all fit.
      credit_q <= room_q >= (BufW + 1)'(3 * MaxBurst);
    end
  end

  assign m_axi_araddr  = {arline_q, 6'd0};
  assign m_axi_arlen   = {2'd0, arlen_q};
  assign m_axi_arvalid = arvalid_q;
  assign cnt_reads_o   = ask;

  // ---- answers: into the buffer; the last burst of a job makes it complete ----------------------
  logic rvalid_q, rlast_q, rerror_q, error_q;
  logic [DataW-1:0] rdata_q;
  logic [BufW-1:0] wr_addr_q, rd_addr_q;
  logic burst_valid, burst_ready, burst_ends_job, complete;
  logic done_valid, done_ready, done_bad;

  assign m_axi_rready = 1'b1;
  assign complete     = rvalid_q && rlast_q && burst_ends_job;

  always_ff @(posedge clk_i) begin
    if (m_axi_rvalid) begin
      rdata_q  <= m_axi_rdata;
      rlast_q  <= m_axi_rlast;
      rerror_q <= m_axi_rresp != 2'b00;
    end
    if (rst_i) begin
      rvalid_q  <= 1'b0;
      error_q   <= 1'b0;
      wr_addr_q <= '0;
      rd_addr_q <= '0;
    end else begin
      rvalid_q <= m_axi_rvalid;
      if (rvalid_q) begin
        error_q   <= (error_q || rerror_q) && !complete;
        wr_addr_q <= wr_addr_q + 1'b1;
      end
      if (read_i) rd_addr_q <= rd_addr_q + 1'b1;
    end
  end

  weft_sdpram #(
      .Width(DataW),
      .Depth(BufBeats),
      .Style("block")
  ) u_buf (
      .clk_i,
      .we_i   (rvalid_q),
      .waddr_i(wr_addr_q),
      .wdata_i(rdata_q),
      .re_i   (read_i),
      .raddr_i(rd_addr_q),
      .rdata_o(beat_o)
  );

  logic head_valid, fields_valid;
  tx_frame_t head;  // oldest job

  // Bursts on their way: is it the last of its job? Two for each job at most, so it never fills.
  weft_fifo #(
      .Width   (1),
      .Depth   (2 * Jobs),
      .BlockRam(1'b0)
  ) u_bursts (
      .clk_i,
      .rst_i,
      .s_valid_i(ask),
      .s_ready_o(burst_ready),
      .s_data_i (ask_last),
      .m_valid_o(burst_valid),
      .m_ready_i(rvalid_q && rlast_q),
      .m_data_o (burst_ends_job),
      .count_o  ()
  );

  // Complete payloads not taken yet: did memory fail?
  weft_fifo #(
      .Width   (1),
      .Depth   (Jobs),
      .BlockRam(1'b0)
  ) u_done (
      .clk_i,
      .rst_i,
      .s_valid_i(complete),
      .s_ready_o(done_ready),
      .s_data_i (error_q || rerror_q),
      .m_valid_o(done_valid),
      .m_ready_i(frame_valid_o && frame_ready_i && head.reads != '0),
      .m_data_o (done_bad),
      .count_o  ()
  );

  // ---- jobs in order ----------------------------------------------------------------------------

  weft_fifo #(
      .data_t  (tx_frame_t),
      .Depth   (Jobs),
      .BlockRam(1'b1)
  ) u_frames (
      .clk_i,
      .rst_i,
      .s_valid_i(job_move),
      .s_ready_o(frames_ready),
      .s_data_i (job_frame),
      .m_valid_o(head_valid),
      .m_ready_i(frame_valid_o && frame_ready_i),
      .m_data_o (head),
      .count_o  ()
  );

  weft_fifo #(
      .data_t  (tx_fields_t),
      .Depth   (Jobs),
      .BlockRam(1'b1)
  ) u_fields (
      .clk_i,
      .rst_i,
      .s_valid_i(job_move),
      .s_ready_o(fields_ready),
      .s_data_i (job_fields),
      .m_valid_o(fields_valid),
      .m_ready_i(fields_pop_i),
      .m_data_o (fields_o),
      .count_o  ()
  );

  assign frame_valid_o = head_valid && (head.reads == '0 || done_valid);
  always_comb begin
    frame_o     = head;
    frame_o.bad = head.reads != '0 && done_bad;
  end

  `WEFT_IMPLIES(JobFits, job_valid_i, job_i.len <= 13'(MAX_PAYLOAD));
  `WEFT_HOLD(ArHolds, m_axi_arvalid, m_axi_arready, {m_axi_araddr, m_axi_arlen});
  `WEFT_IMPLIES(ArInPage, m_axi_arvalid, 32'(m_axi_araddr[11:6]) + 32'(m_axi_arlen) < MaxBurst);
  `WEFT_IMPLIES(BurstHasEntry, ask, burst_ready);
  `WEFT_IMPLIES(AnswerWasAsked, rvalid_q, burst_valid);
  `WEFT_IMPLIES(DoneHasEntry, complete, done_ready);
  `WEFT_ASSERT(RoomInRange, room_q <= (BufW + 1)'(BufBeats));
  `WEFT_IMPLIES(FieldsThere, fields_pop_i, fields_valid);

endmodule

`default_nettype wire
