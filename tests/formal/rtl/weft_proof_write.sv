// SPDX-License-Identifier: Apache-2.0
//
// What weft_nmc_write promises, as assertions about it and assumptions about who uses it. Proved
// for small types (docs/formal.md): the runner narrows the packages and makes JobW as wide as
// ghost_t.
//
// Ghost state: the write engine hands the index of a job through without looking at it, so the
// index that the proof gives a job is its number and a copy of its fields. note_idx_o then tells
// for each beat which job the engine takes it for. That jobs come in order, each with its number of
// beats, is proved; what the beats of a job have to look like is worked out here, from bytes.
//
// One beat and one burst, any ones (pick_*_i are free), are followed to the AXI channels: how many
// are ahead of it is counted when it is pushed, and it is compared when none is left.
`default_nettype none
`include "weft_assert.svh"

module weft_proof_write
  import weft_pkg::*;
  import weft_nmc_pkg::*;
#(
    parameter int unsigned Depth = 2,
    localparam int unsigned SeqW = 3
) (
    input wire                 clk_i,
    // All free.
    input wire                 job_valid_i,
    input wire beat_addr_t     job_addr_i,
    input wire offs_t          job_first_i,
    input wire offs_t          job_last_i,
    input wire beats_t         job_beats_i,
    input wire                 beat_valid_i,
    input wire      [NmcW-1:0] beat_data_i,
    input wire                 beat_err_i,
    input wire float_flags_t   beat_flags_i,
    input wire                 b_err_i,
    input wire      [JobW-1:0] b_err_idx_i,
    input wire                 awready_i,
    input wire                 wready_i,
    input wire                 pick_beat_i,
    input wire                 pick_burst_i
);

  typedef struct packed {
    logic [SeqW-1:0] seq;
    beat_addr_t      addr;
    offs_t           first;
    offs_t           last;
    beats_t          beats;
  } ghost_t;

  if (JobW != $bits(ghost_t)) begin : gen_bad_index
    $error("weft_proof_write: JobW must be the width of ghost_t");
  end

  logic started_q = 1'b0;
  wire  rst_i = !started_q;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  logic                job_ready, credit;
  nmc_note_t           note;
  logic   [JobW-1:0]   note_idx;
  logic   [63:0]       awaddr;
  logic   [7:0]        awlen;
  logic                awvalid, wvalid, wlast;
  logic [NmcW-1:0]     wdata;
  logic [NmcBytes-1:0] wstrb;
  logic   [SeqW-1:0]   seq_in_q, seq_out_q;  // next job in, next job to get its first beat

  wire ghost_t ghost_in = '{
      seq: seq_in_q, addr: job_addr_i, first: job_first_i, last: job_last_i, beats: job_beats_i
  };
  wire nmc_write_job_t job_in = '{
      idx: ghost_in, addr: job_addr_i, first: job_first_i, last: job_last_i, beats: job_beats_i
  };

  weft_nmc_write #(
      .Depth(Depth)
  ) u_write (
      .clk_i,
      .rst_i,
      .job_valid_i,
      .job_ready_o  (job_ready),
      .job_i        (job_in),
      .beat_valid_i,
      .beat_data_i,
      .beat_err_i,
      .beat_flags_i,
      .credit_o     (credit),
      .b_err_i,
      .b_err_idx_i,
      .note_o       (note),
      .note_idx_o   (note_idx),
      .m_axi_awaddr (awaddr),
      .m_axi_awlen  (awlen),
      .m_axi_awvalid(awvalid),
      .m_axi_awready(awready_i),
      .m_axi_wdata  (wdata),
      .m_axi_wstrb  (wstrb),
      .m_axi_wlast  (wlast),
      .m_axi_wvalid (wvalid),
      .m_axi_wready (wready_i)
  );

  // ---- the job at work, by its bytes ------------------------------------------------------------
  wire ghost_t job = note_idx;
  beats_t      n_q;       // beats pushed for it
  logic        errors_q;  // a beat pushed for it, or a response to one, carried an error
  logic [JobW-1:0] idx_q; // of the last beat

  typedef logic [LenW+OffsW-1:0] byte_t;  // byte counted from the start of the job's first beat
  function automatic byte_t byte_of(beats_t beat, offs_t offs);
    return {beat, offs};
  endfunction

  logic [NmcBytes-1:0] mine;  // bytes of this beat that are of [dst, dst + len)
  always_comb begin
    for (int unsigned i = 0; i < NmcBytes; i++)
      mine[i] = byte_of(n_q, offs_t'(i)) >= byte_of('0, job.first) &&
                  byte_of(n_q, offs_t'(i)) <= byte_of(job.beats - 1'b1, job.last);
  end

  wire beat_addr_t addr = job.addr + beat_addr_t'(n_q);
  wire             ends = beat_valid_i && n_q == job.beats - 1'b1;
  wire             burst_starts = beat_valid_i && (n_q == '0 || addr[PageW-1:0] == '0);
  wire             burst_ends = beat_valid_i && (n_q == job.beats - 1'b1 || addr[PageW-1:0] == '1);
  logic [7:0]      burst_left_q;  // beats of the begun burst still to be pushed, by its length
  logic [7:0]      len;           // beats - 1 of a burst from here: as far as job and page go
  beats_t          behind;
  always_comb begin
    behind = job.beats - 1'b1 - n_q;
    len    = '0;
    for (int unsigned i = 1; i < PageBeats; i++)
      if (i <= 32'(behind) && 32'(addr[PageW-1:0]) + i < PageBeats) len = 8'(i);
  end

  wire b_hits = b_err_i && b_err_idx_i == note_idx;

  // ---- who uses it ------------------------------------------------------------------------------
  localparam int unsigned Early = 3;  // cycles from a job to its first beat; weft_nmc needs more
  logic [Early-1:0] accepted_q;
  logic [SeqW-1:0]  jobs_q;    // jobs that may get beats
  logic [7:0]       credits_q;
  wire              accept = job_valid_i && job_ready;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      accepted_q <= '0;
      jobs_q     <= '0;
      credits_q  <= 8'(Depth);
      seq_in_q   <= '0;
      seq_out_q  <= '0;
      n_q        <= '0;
      errors_q   <= 1'b0;
    end else begin
      accepted_q <= {accepted_q[Early-2:0], accept};
      jobs_q     <= jobs_q + SeqW'(accepted_q[Early-2]) - SeqW'(ends);
      credits_q  <= credits_q + 8'(credit) - 8'(beat_valid_i);
      seq_in_q   <= seq_in_q + SeqW'(accept);
      seq_out_q  <= seq_out_q + SeqW'(beat_valid_i && n_q == '0);
      if (beat_valid_i) n_q <= ends ? '0 : n_q + 1'b1;
      errors_q   <= !ends && (errors_q || (beat_valid_i && beat_err_i) || b_hits);
    end
    if (beat_valid_i) idx_q <= note_idx;
    if (burst_starts) burst_left_q <= len;
    else if (beat_valid_i) burst_left_q <= burst_left_q - 1'b1;
  end

  JobHasBeats : assume property (@(posedge clk_i) !job_valid_i || job_beats_i != '0);
  JobHasBytes : assume property (@(posedge clk_i)
      !job_valid_i || job_beats_i != beats_t'(1) || job_first_i <= job_last_i);
  BeatHasCredit : assume property (@(posedge clk_i) !beat_valid_i || credits_q != '0);
  BeatComesBehindJob : assume property (@(posedge clk_i) !beat_valid_i || jobs_q != '0);
  ResponseComesBehindBeat : assume property (@(posedge clk_i) !b_hits || n_q != '0);
  NothingInReset : assume property (@(posedge clk_i) !rst_i || !(job_valid_i || beat_valid_i));

  // ---- jobs -------------------------------------------------------------------------------------
  `WEFT_IMPLIES(JobsInOrder, beat_valid_i && n_q == '0, job.seq == seq_out_q);
  `WEFT_IMPLIES(JobUntilItsEnd, beat_valid_i && n_q != '0, note_idx == idx_q);
  `WEFT_IMPLIES(BurstEndsAfterLength, beat_valid_i,
                burst_ends == ((burst_starts ? len : burst_left_q - 1'b1) == '0));
  `WEFT_IMPLIES(ReadErrorIsTold, beat_valid_i && beat_err_i, note.err);

  // ---- one beat, to the write channel -----------------------------------------------------------
  logic                beat_q, beat_gone_q;
  logic [7:0]          beats_ahead_q;
  logic [NmcBytes-1:0] mine_q;
  logic [NmcW-1:0]     data_q;
  logic                beat_last_q, beat_bad_q;

  wire take_beat = beat_valid_i && pick_beat_i && !beat_q;
  wire w_done = wvalid && wready_i;
  wire beat_is_here = beat_q && !beat_gone_q && beats_ahead_q == '0 && wvalid;

  always_ff @(posedge clk_i) begin
    if (take_beat) begin
      mine_q    <= mine;
      data_q      <= beat_data_i;
      beat_last_q <= burst_ends;
      beat_bad_q  <= errors_q || beat_err_i;
    end
    if (rst_i) begin
      beat_q        <= 1'b0;
      beat_gone_q   <= 1'b0;
      beats_ahead_q <= '0;
    end else begin
      if (take_beat) beat_q <= 1'b1;
      if (beat_is_here && w_done) beat_gone_q <= 1'b1;
      if (!beat_gone_q && !beat_is_here)
        beats_ahead_q <= beats_ahead_q + 8'(beat_valid_i && !beat_q && !take_beat) - 8'(w_done);
    end
  end

  `WEFT_IMPLIES(NoByteOutside, beat_is_here, (wstrb & ~mine_q) == '0);
  `WEFT_IMPLIES(EveryByteInside, beat_is_here && !beat_bad_q, wstrb == mine_q);
  `WEFT_IMPLIES(NothingAfterError, beat_is_here && beat_bad_q, wstrb == '0);
  `WEFT_IMPLIES(DataIsItsOwn, beat_is_here, wdata == data_q);
  `WEFT_IMPLIES(LastIsItsOwn, beat_is_here, wlast == beat_last_q);

  // ---- one burst, to the address channel --------------------------------------------------------
  logic       burst_q, burst_gone_q;
  logic [7:0] bursts_ahead_q;
  beat_addr_t burst_addr_q;
  logic [7:0] burst_len_q;

  wire take_burst = burst_starts && pick_burst_i && !burst_q;
  wire aw_done = awvalid && awready_i;
  wire burst_is_here = burst_q && !burst_gone_q && bursts_ahead_q == '0 && awvalid;

  always_ff @(posedge clk_i) begin
    if (take_burst) begin
      burst_addr_q <= addr;
      burst_len_q  <= len;
    end
    if (rst_i) begin
      burst_q        <= 1'b0;
      burst_gone_q   <= 1'b0;
      bursts_ahead_q <= '0;
    end else begin
      if (take_burst) burst_q <= 1'b1;
      if (burst_is_here && aw_done) burst_gone_q <= 1'b1;
      if (!burst_gone_q && !burst_is_here)
        bursts_ahead_q <= bursts_ahead_q + 8'(burst_starts && !burst_q && !take_burst) -
                          8'(aw_done);
    end
  end

  `WEFT_IMPLIES(AddressIsItsOwn, burst_is_here, awaddr == 64'({burst_addr_q, OffsW'(0)}));
  `WEFT_IMPLIES(LengthIsItsOwn, burst_is_here, awlen == burst_len_q);

  // ---- AXI --------------------------------------------------------------------------------------
  logic signed [7:0] lead_q;  // addresses taken less bursts whose data has left
  always_ff @(posedge clk_i) begin
    if (rst_i) lead_q <= '0;
    else lead_q <= lead_q + 8'(aw_done) - 8'(w_done && wlast);
  end

  `WEFT_HOLD(AddressHolds, awvalid, awready_i, {awaddr, awlen});
  `WEFT_HOLD(DataHolds, wvalid, wready_i, {wdata, wstrb, wlast});
  `WEFT_IMPLIES(DataBehindAddress, wvalid, lead_q > 0 || (lead_q == 0 && awvalid));
  `WEFT_IMPLIES(InsidePage, awvalid, 32'(awaddr[OffsW+:PageW]) + 32'(awlen) < PageBeats);

  // ---- inside: what makes the above inductive, itself proved ------------------------------------
  // Jobs: the queue, the one prepared behind the one at work, and that one.
  localparam int unsigned JobQW = $clog2(NmcJobs);
  localparam int unsigned BufW = $clog2(Depth);
  localparam int unsigned AwDepth = Depth + 2;

  function automatic logic is_ghost(nmc_write_job_t x);
    ghost_t g;
    g = x.idx;
    return g.addr == x.addr && g.first == x.first && g.last == x.last && g.beats == x.beats &&
           x.beats != '0 && (x.beats != beats_t'(1) || x.first <= x.last);
  endfunction

  function automatic logic [SeqW-1:0] seq_of(nmc_write_job_t x);
    ghost_t g;
    g = x.idx;
    return g.seq;
  endfunction

  wire [SeqW-1:0] queued = SeqW'(u_write.u_jobs.count_q);
  wire next = u_write.next_valid_q;
  wire active = u_write.active_q;
  wire [SeqW-1:0] oldest_queued = seq_in_q - queued;
  logic queue_ok;
  always_comb begin
    queue_ok = 1'b1;
    for (int unsigned k = 0; k < NmcJobs; k++) begin
      automatic logic [JobQW-1:0] behind_head = JobQW'(k) - u_write.u_jobs.rd_addr_q;
      if (SeqW'(behind_head) < queued)
        queue_ok &= is_ghost(u_write.u_jobs.gen_lut.mem[k]) &&
                    seq_of(u_write.u_jobs.gen_lut.mem[k]) == oldest_queued + SeqW'(behind_head);
    end
  end
  `WEFT_ASSERT(QueueIsRing, u_write.u_jobs.wr_addr_q - u_write.u_jobs.rd_addr_q == JobQW'(queued));
  `WEFT_ASSERT(QueueShowsOldest, u_write.u_jobs.gen_lut.valid_q == (queued != '0));
  `WEFT_ASSERT(QueueHoldsJobs, queue_ok);
  `WEFT_IMPLIES(NextIsJob, next,
                is_ghost(u_write.next_q) && seq_of(u_write.next_q) == oldest_queued - 1'b1);
  `WEFT_IMPLIES(ActiveIsJob, active, job.beats != '0 && n_q < job.beats &&
                (job.beats != beats_t'(1) || job.first <= job.last) &&
                job.seq == oldest_queued - 1'b1 - SeqW'(next));
  `WEFT_ASSERT(FirstIsNext, seq_out_q == oldest_queued - SeqW'(next) - SeqW'(active && n_q == '0));
  `WEFT_IMPLIES(IdleHasNoBeats, !active, n_q == '0);
  `WEFT_ASSERT(JobsAreCounted, 4'(jobs_q) + 4'(accepted_q[0]) + 4'(accepted_q[1]) ==
               4'(queued) + 4'(next) + 4'(active));
  `WEFT_IMPLIES(JobIsThereInTime, jobs_q != '0, active);
  `WEFT_IMPLIES(QueuesBehindNext, !next, queued == SeqW'(accepted_q[0]));
  `WEFT_IMPLIES(NextBehindActive, !active, next == accepted_q[1]);
  `WEFT_IMPLIES(AtAddress, active, u_write.addr_q == addr);
  `WEFT_IMPLIES(LeftOfJob, active, u_write.left_q == job.beats - n_q);
  `WEFT_IMPLIES(FirstAndLast, active, u_write.first_q == (n_q == '0) &&
                u_write.last_q == (u_write.left_q == beats_t'(1)));
  `WEFT_IMPLIES(SameJob, active && n_q != '0, note_idx == idx_q);
  `WEFT_IMPLIES(Mute, active, u_write.mute_q == errors_q);
  `WEFT_IMPLIES(NoErrorYet, n_q == '0, !errors_q);
  logic masks_ok;
  always_comb begin
    masks_ok = 1'b1;
    for (int unsigned i = 0; i < NmcBytes; i++)
      masks_ok &= u_write.from_q[i] == (i >= 32'(job.first)) &&
                    u_write.to_q[i] == (i <= 32'(job.last));
  end
  `WEFT_IMPLIES(MasksOfJob, active, masks_ok);
  wire open = n_q != '0 && addr[PageW-1:0] != '0;  // the next beat is of a burst that has begun
  `WEFT_IMPLIES(OpenBurst, open, burst_left_q == len + 1'b1);

  // Beats.
  typedef struct packed {
    logic                last;
    logic [NmcBytes-1:0] strb;
    logic [NmcW-1:0]     data;
  } w_t;
  wire [BufW:0] in_ram = u_write.u_w.inside_q;
  wire shown = u_write.u_w.valid_q;
  wire [7:0] buffered = 8'(in_ram) + 8'(shown);
  wire w_t tracked = '{last: beat_last_q, strb: beat_bad_q ? '0 : mine_q, data: data_q};
  wire w_t shown_beat = {wlast, wstrb, wdata};
  logic ram_ok;
  logic [7:0] lasts;  // of bursts, in the buffer
  always_comb begin
    ram_ok = 1'b1;
    lasts  = 8'(shown && wlast);
    for (int unsigned k = 0; k < Depth; k++) begin
      automatic logic [BufW-1:0] behind_head = BufW'(k) - u_write.u_w.rd_addr_q;
      automatic w_t x = u_write.u_w.u_ram.mem[k];
      if ((BufW + 1)'(behind_head) < in_ram) begin
        if (8'(behind_head) + 8'(shown) == beats_ahead_q) ram_ok &= x == tracked;
        lasts += 8'(x.last);
      end
    end
  end
  wire follow = beat_q && !beat_gone_q;
  `WEFT_ASSERT(BufferIsRing, u_write.u_w.wr_addr_q - u_write.u_w.rd_addr_q == BufW'(in_ram));
  `WEFT_ASSERT(BufferHasRoom, credits_q <= 8'(Depth) && credits_q + buffered == 8'(Depth));
  `WEFT_IMPLIES(GoneWasThere, beat_gone_q, beat_q);
  `WEFT_IMPLIES(AllAreAhead, !beat_q, beats_ahead_q == buffered);
  `WEFT_IMPLIES(BeatIsBuffered, follow, beats_ahead_q < buffered);
  `WEFT_IMPLIES(BeatIsKept, follow, ram_ok);
  `WEFT_IMPLIES(BeatIsShown, follow && shown && beats_ahead_q == '0, shown_beat == tracked);

  // Addresses.
  localparam int unsigned AwQW = $clog2(AwDepth);
  wire [7:0] aws = 8'(u_write.u_aw.count_q);
  logic aw_ok, pages_ok;
  always_comb begin
    aw_ok    = 1'b1;
    pages_ok = 1'b1;
    for (int unsigned k = 0; k < AwDepth; k++) begin
      automatic logic [AwQW-1:0] behind_head = AwQW'(k) - u_write.u_aw.rd_addr_q;
      automatic logic [BeatAddrW+PageW-1:0] x = u_write.u_aw.gen_lut.mem[k];
      if (8'(behind_head) == bursts_ahead_q) aw_ok &= x == {burst_addr_q, PageW'(burst_len_q)};
      if (8'(behind_head) < aws) pages_ok &= 32'(x[PageW+:PageW]) + 32'(x[PageW-1:0]) < PageBeats;
    end
  end
  wire follow_aw = burst_q && !burst_gone_q;
  `WEFT_ASSERT(AddressesAreRing, u_write.u_aw.wr_addr_q - u_write.u_aw.rd_addr_q == AwQW'(aws));
  `WEFT_ASSERT(AddressIsShown, awvalid == (aws != '0));
  `WEFT_IMPLIES(BurstGoneWasThere, burst_gone_q, burst_q);
  `WEFT_IMPLIES(AllBurstsAreAhead, !burst_q, bursts_ahead_q == aws);
  `WEFT_IMPLIES(BurstIsQueued, follow_aw, bursts_ahead_q < aws && burst_len_q < 8'(PageBeats));
  `WEFT_ASSERT(QueuedInsidePage, pages_ok);
  `WEFT_IMPLIES(BurstIsKept, follow_aw, aw_ok);
  `WEFT_ASSERT(BurstsAreCounted, aws + 8'(lead_q) == lasts + 8'(open));
  `WEFT_ASSERT(LeadIsLead, 8'(u_write.lead_q) == 8'(lead_q) + 8'd1);

endmodule

`default_nettype wire
