// SPDX-License-Identifier: Apache-2.0
//
// Puts headers and payload together, adds the ICRC, and offers the frame to the MAC.
//
// beat: what weft_tx_seq dealt out; its header beat is on hdr_i and its payload on now_i/before_i
// four
// cycles later. Nothing stalls behind the sequencer: room_o (a register) keeps the beats on their
// way below OutBeats, which is what the frame RAM holds. The ICRC runs beside the RAM and joins on
// the way out; a beat becomes visible when an ICRC that starts in it is known, so a frame that
// was begun goes on to its end: tvalid does not drop inside a frame.
// Latency from beat_valid_i to m_axis: 11 cycles. One beat a cycle, no gap between frames.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_frame
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_pkg::*;
#(
    parameter int unsigned OutBeats = 64  // frame RAM; how far an ack may queue up behind data
) (
    input  wire              clk_i,
    input  wire              rst_i,
    // Beats from the sequencer.
    output logic             room_o,
    input  wire              beat_valid_i,
    input  wire tx_beat_t    beat_i,
    // Header builder: first and second beat of a frame are wanted; hdr_i one cycle later.
    output logic             hdr_first_o,
    output logic             hdr_second_o,
    input  wire  [DataW-1:0] hdr_i,
    // Payload, rotated to its lanes.
    input  wire  [DataW-1:0] now_i,
    input  wire  [DataW-1:0] before_i,
    // To the MAC.
    output logic [DataW-1:0] m_axis_tdata,
    output logic [KeepW-1:0] m_axis_tkeep,
    output logic             m_axis_tlast,
    output logic             m_axis_tvalid,
    input  wire              m_axis_tready
);
  import weft_crc32_pkg::*;

  localparam int unsigned AddrW = $clog2(OutBeats);
  localparam int unsigned PayloadLane = HDR_DATA_BYTES % KeepW;

  if (OutBeats < 32 || 2 ** AddrW != OutBeats) begin : gen_bad_out
    $error("weft_tx_frame: OutBeats must be a power of two, 32 or more (16 are in the pipeline)");
  end

  // ---- beats on their way, stage by stage -------------------------------------------------------
  // 1 buffer read    2, 3, 4 rotated; 4 header built    5 whole beat, goes into the frame RAM
  // 6 CRC parities   7 CRC state   8, 9 zeros behind it undone   10 ICRC in its queue
  logic [8:1] valid_q;
  tx_beat_t b1_q, b2_q, b3_q, b4_q, b5_q, b6_q, b7_q;
  logic send8_q;

  always_ff @(posedge clk_i) begin
    if (beat_valid_i) b1_q <= beat_i;
    if (valid_q[1]) b2_q <= b1_q;
    if (valid_q[2]) b3_q <= b2_q;
    if (valid_q[3]) b4_q <= b3_q;
    if (valid_q[4]) b5_q <= b4_q;
    if (valid_q[5]) b6_q <= b5_q;
    if (valid_q[6]) b7_q <= b6_q;
    if (valid_q[7]) send8_q <= b7_q.send;
    valid_q <= rst_i ? '0 : {valid_q[7:1], beat_valid_i};
  end

  assign hdr_first_o  = valid_q[3] && b3_q.first;
  assign hdr_second_o = valid_q[3] && b3_q.second;

  // ---- stage 4: each lane is header, this memory beat, the one before, or zero ------------------
  typedef struct packed {
    logic             head_low;   // lanes below PayloadLane are header
    logic             head_high;  // the others are
    logic [KeepW-1:0] keep;       // lane holds payload, if no header
    logic [KeepW-1:0] newer;      // of now_i, else of before_i
  } lanes_t;

  function automatic logic [DataW-1:0] assemble(lanes_t lanes, logic [DataW-1:0] head,
                                                logic [DataW-1:0] newer, logic [DataW-1:0] older);
    logic [DataW-1:0] text;
    for (int i = 0; i < int'(KeepW); i++) begin
      if ((i < int'(PayloadLane)) ? lanes.head_low : lanes.head_high) text[8*i+:8] = head[8*i+:8];
      else if (!lanes.keep[i]) text[8*i+:8] = '0;
      else text[8*i+:8] = lanes.newer[i] ? newer[8*i+:8] : older[8*i+:8];
    end
    return text;
  endfunction

  // The ICRC does not cover Ethernet and counts as ones: IPv4 DSCP, ECN, TTL and checksum, UDP
  // checksum, BTH byte 4. All of it in the first CoverBytes of beat 0.
  localparam int unsigned CoverBytes = ETH_BYTES + IPV4_BYTES + UDP_BYTES + 5;

  lanes_t lanes_q;
  logic [DataW-1:0] data_q;
  logic [8*CoverBytes-1:0] cover_q;  // the front of data_q as the ICRC sees it

  always_ff @(posedge clk_i) begin
    if (valid_q[3]) begin
      lanes_q.head_low  <= b3_q.first || (b3_q.second && b3_q.kind != TxProbe);
      lanes_q.head_high <= b3_q.first || (b3_q.second && b3_q.kind == TxAck);
      if (b3_q.keep_all) lanes_q.keep <= '1;
      else lanes_q.keep <= b3_q.keep_part ? ~(~KeepW'(1) << b3_q.keep_lane) : '0;
      lanes_q.newer     <= ~KeepW'(0) << b3_q.rotate;
    end
    if (valid_q[4]) begin
      data_q <= assemble(lanes_q, hdr_i, now_i, before_i);
      cover_q <= ($bits(cover_q))'(assemble(lanes_q, hdr_i, now_i, before_i));
      if (b4_q.first) begin
        // Constants wherever possible: they cost a reset input instead of a LUT a bit.
        cover_q[0+:8*ETH_BYTES]                     <= '0;
        cover_q[8*ETH_BYTES+:16]                    <= 16'hff45 ^ IcrcSeed[15:0];
        cover_q[8*(ETH_BYTES+2)+:16]                <= hdr_i[8*(ETH_BYTES+2)+:16] ^ IcrcSeed[31:16];
        cover_q[8*(ETH_BYTES+8)+:8]                 <= '1;
        cover_q[8*(ETH_BYTES+10)+:16]               <= '1;
        cover_q[8*(ETH_BYTES+IPV4_BYTES+6)+:16]     <= '1;
        cover_q[8*(CoverBytes-1)+:8]                <= '1;
      end
    end
  end

  // ---- ICRC -------------------------------------------------------------------------------------
  logic [DataW-1:0] crc_data;
  logic crc_state_valid, icrc_valid, icrc_ready, icrc_there, icrc_pop;
  crc_t crc_state, icrc_new, icrc;

  assign crc_data = {data_q[DataW-1:$bits(cover_q)], cover_q};

  weft_crc32_beat u_crc (
      .clk_i,
      .rst_i,
      .valid_i      (valid_q[5]),
      .first_i      (b5_q.first),
      .data_i       (crc_data),
      .state_valid_o(crc_state_valid),
      .state_o      (crc_state)
  );

  weft_crc32_undo u_undo (
      .clk_i,
      .rst_i,
      .valid_i   (crc_state_valid && b7_q.crc_end && b7_q.send),
      .end_word_i(b7_q.word),
      .state_i   (crc_state),
      .valid_o   (icrc_valid),
      .crc_o     (icrc_new)
  );

  // A frame has two beats or more, so this never fills.
  weft_fifo #(
      .data_t  (crc_t),
      .Depth   (OutBeats / 2),
      .BlockRam(1'b0)
  ) u_icrcs (
      .clk_i,
      .rst_i,
      .s_valid_i(icrc_valid),
      .s_ready_o(icrc_ready),
      .s_data_i (icrc_new),
      .m_valid_o(icrc_there),
      .m_ready_i(icrc_pop),
      .m_data_o (icrc),
      .count_o  ()
  );

  // ---- frame RAM --------------------------------------------------------------------------------
  typedef struct packed {
    logic       crc_end;
    logic       last;
    logic [3:0] word;
    logic [DataW-1:0] data;
  } out_t;

  logic [AddrW-1:0] wr_addr_q, rd_addr_q;
  logic [AddrW:0] used_q, used_d;  // dealt out and not yet read (or read in the cycle before)
  logic [AddrW:0] seen_q, seen_d;  // visible and not yet read
  logic room_q, write, read, read_q, visible, any_seen_q, ram_valid_q, skid_valid_q;
  out_t ram_in, ram_out;

  assign room_o  = room_q;
  assign write   = valid_q[5] && b5_q.send;
  assign visible = valid_q[8] && send8_q;
  assign read    = any_seen_q && (!ram_valid_q || !skid_valid_q);
  assign used_d  = used_q + (AddrW + 1)'(beat_valid_i && beat_i.send) - (AddrW + 1)'(read_q);
  assign seen_d  = seen_q + (AddrW + 1)'(visible) - (AddrW + 1)'(read);
  assign ram_in  = '{crc_end: b5_q.crc_end, last: b5_q.last, word: b5_q.word, data: data_q};

  weft_sdpram #(
      .data_t(out_t),
      .Depth (OutBeats),
      .Style ("block")
  ) u_ram (
      .clk_i,
      .we_i   (write),
      .waddr_i(wr_addr_q),
      .wdata_i(ram_in),
      .re_i   (read),
      .raddr_i(rd_addr_q),
      .rdata_o(ram_out)
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wr_addr_q   <= '0;
      rd_addr_q   <= '0;
      used_q      <= '0;
      seen_q      <= '0;
      any_seen_q  <= 1'b0;
      read_q      <= 1'b0;
      room_q      <= 1'b0;
      ram_valid_q <= 1'b0;
    end else begin
      if (write) wr_addr_q <= wr_addr_q + 1'b1;
      if (read) rd_addr_q <= rd_addr_q + 1'b1;
      used_q      <= used_d;
      read_q      <= read;
      seen_q      <= seen_d;
      any_seen_q  <= seen_d != '0;
      room_q      <= !used_d[AddrW];
      ram_valid_q <= read || (ram_valid_q && skid_valid_q);
    end
  end

  // ---- out: a skid buffer whose multiplexer also puts the ICRC in -------------------------------
  logic out_valid_q, next_valid, move;
  out_t skid_q, next;
  logic [DataW-1:0] next_data, out_data_q;
  logic [KeepW-1:0] next_keep, out_keep_q;
  logic out_last_q;

  assign next       = skid_valid_q ? skid_q : ram_out;
  assign next_valid = skid_valid_q || ram_valid_q;
  assign move       = !out_valid_q || m_axis_tready;
  assign icrc_pop   = move && next_valid && next.last;

  // Covered bytes end 2 mod 4, so byte i can only ever be ICRC byte (i - 2) mod 4. Bytes 0 and 1
  // are
  // the end of an ICRC that began in bytes 62 and 63 of the beat before.
  always_comb begin
    next_data = next.data;
    for (int i = 0; i < int'(KeepW); i++) begin
      if ((i < 2) ? next.last && next.word == 4'd15
                    : next.crc_end && next.word == 4'((i - 2) / 4)) begin
        next_data[8*i+:8] = icrc[8*((i+2)%4)+:8];
      end
      next_keep[i] = !next.last || i < 2 || (next.word != 4'd15 && 4'((i - 2) / 4) <= next.word);
    end
  end

  always_ff @(posedge clk_i) begin
    if (move && next_valid) begin
      out_data_q <= next_data;
      out_keep_q <= next_keep;
      out_last_q <= next.last;
    end
    if (ram_valid_q && !skid_valid_q) skid_q <= ram_out;
    if (rst_i) begin
      out_valid_q  <= 1'b0;
      skid_valid_q <= 1'b0;
    end else begin
      if (move) out_valid_q <= next_valid;
      skid_valid_q <= next_valid && !move;
    end
  end

  assign m_axis_tdata  = out_data_q;
  assign m_axis_tkeep  = out_keep_q;
  assign m_axis_tlast  = out_last_q;
  assign m_axis_tvalid = out_valid_q;

  `WEFT_HOLD(OutHolds, m_axis_tvalid, m_axis_tready, {m_axis_tdata, m_axis_tkeep, m_axis_tlast});
  `WEFT_NEXT(NoGapInFrame, m_axis_tvalid && m_axis_tready && !m_axis_tlast, m_axis_tvalid);
  `WEFT_IMPLIES(IcrcKnown, next_valid && (next.crc_end || next.last), icrc_there);
  `WEFT_IMPLIES(IcrcHasEntry, icrc_valid, icrc_ready);
  `WEFT_ASSERT(UsedInRange, used_q <= (AddrW + 1)'(OutBeats) && seen_q <= used_q);

endmodule

`default_nettype wire
