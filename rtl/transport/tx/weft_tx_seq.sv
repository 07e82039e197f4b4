// SPDX-License-Identifier: Apache-2.0
//
// Decides which frame goes next and deals out its beats, one a cycle while the output has room.
//
// An ack goes before data and probes and waits only for the frame that is being sent. Jobs do not
// starve: weft_tx_hdr holds one ack at a time and shows the next when this one's headers are built,
// well behind the start of the next frame. No gap between frames.
// start_o: a frame begins, head_o is stable from then until the next start_o (two cycles or more).
// beat_valid_o: one beat, in the same cycle the payload buffer is read (read_o).
// Does not know any data, and never stops once a beat is dealt out: the stages behind do not stall.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_seq
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_pkg::*;
(
    input  wire             clk_i,
    input  wire             rst_i,
    // Acks and jobs that could go now.
    input  wire             ack_valid_i,
    output logic            ack_ready_o,
    input  wire tx_frame_t  ack_i,
    input  wire             job_valid_i,
    output logic            job_ready_o,
    input  wire tx_frame_t  job_i,
    // The output has room for one more beat (a register).
    input  wire             room_i,
    // To the header builder, the payload buffer and the pipeline.
    output logic            start_o,
    output tx_head_t        head_o,
    output logic            read_o,
    output logic            beat_valid_o,
    output tx_beat_t        beat_o,
    // In the cycle of a frame's last beat: connection whose packet was thrown away.
    output logic            err_valid_o,
    output conn_t           err_conn_o,
    output tx_cnt_t         cnt_o  // all but reads
);

  localparam int unsigned PayloadLane = HDR_DATA_BYTES % KeepW;

  logic valid_q, start_q, first_q, second_q, spill_q, prime_q;
  tx_frame_t frame_q, frame_d;
  logic [10:0] words_q;
  logic [6:0] beat_q, reads_q;  // beat number; buffer beats still to take
  logic take, issue, crc_end, spills, last;

  assign take = (!valid_q || (issue && last)) && (ack_valid_i || job_valid_i);
  assign ack_ready_o = take && ack_valid_i;
  assign job_ready_o = take && !ack_valid_i;
  assign frame_d = ack_valid_i ? ack_i : job_i;

  // The ICRC starts at byte 4*words + 2. When that is byte 62 of a beat, two of its bytes spill
  // into
  // one more beat.
  assign issue = valid_q && room_i;
  assign crc_end = beat_q == words_q[10:4];
  assign spills = words_q[3:0] == 4'd15;
  assign last = spill_q || (crc_end && !spills);

  // Memory bytes move up to lane PayloadLane of beat 1. When they move down in truth, the payload's
  // first beat is read together with beat 0 of the frame (prime), because beat 1 needs two.
  assign read_o = issue && reads_q != '0 && (!first_q || prime_q);

  always_ff @(posedge clk_i) begin
    if (take) begin
      frame_q  <= frame_d;
      words_q  <= 11'((frame_d.last_byte + 13'd2) >> 2);
      prime_q  <= frame_d.offset > 6'(PayloadLane);
      reads_q  <= frame_d.reads;
      beat_q   <= '0;
      first_q  <= 1'b1;
      second_q <= 1'b0;
      spill_q  <= 1'b0;
    end else if (issue) begin
      beat_q   <= beat_q + 7'd1;
      first_q  <= 1'b0;
      second_q <= first_q;
      spill_q  <= crc_end && spills;
      if (read_o) reads_q <= reads_q - 7'd1;
    end
    if (rst_i) begin
      valid_q <= 1'b0;
      start_q <= 1'b0;
    end else begin
      if (take) valid_q <= 1'b1;
      else if (issue && last) valid_q <= 1'b0;
      start_q <= take;
    end
  end

  assign start_o = start_q;
  assign head_o = '{kind: frame_q.kind, conn: frame_q.conn, path: frame_q.path, words: words_q};

  assign beat_valid_o = issue;
  always_comb begin
    beat_o = '{
        first: first_q,
        second: second_q,
        kind: frame_q.kind,
        rotate: 6'(PayloadLane) - frame_q.offset,
        keep_all: beat_q < frame_q.last_byte[12:6],
        keep_part: beat_q == frame_q.last_byte[12:6],
        keep_lane: frame_q.last_byte[5:0],
        crc_end: crc_end,
        last: last,
        word: words_q[3:0],
        send: !frame_q.bad
    };
  end

  logic done, sent;
  assign done        = issue && last;
  assign sent        = done && !frame_q.bad;
  assign err_valid_o = done && frame_q.bad;
  assign err_conn_o  = frame_q.conn;
  always_comb begin
    cnt_o         = '0;
    cnt_o.frames  = sent;
    cnt_o.bytes   = sent ? {words_q, 2'b10} + 13'd4 : '0;
    cnt_o.data    = sent && frame_q.kind == TxData;
    cnt_o.probes  = sent && frame_q.kind == TxProbe;
    cnt_o.acks    = sent && frame_q.kind == TxAck;
    cnt_o.mem_err = err_valid_o;
    cnt_o.stalled = valid_q && !room_i;
  end

  `WEFT_IMPLIES(AllReadAtEnd, done, reads_q == 7'(read_o));
  `WEFT_IMPLIES(TwoBeatsAtLeast, done, !first_q);

endmodule

`default_nettype wire
