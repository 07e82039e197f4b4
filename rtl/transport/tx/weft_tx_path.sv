// SPDX-License-Identifier: Apache-2.0
//
// Frames out, of one port: jobs (data packets, probes) and acks become RoCEv2 frames for the MAC.
//
// job, ack: ready is a register; acks go first (weft_tx_seq). Payload is read over m_axi ahead of
// time, from any byte address. m_axis: tvalid does not drop inside a frame, and frames follow each
// other without a gap while there is work: 3/6/18/66 cycles for 64/256/1024/4096 bytes of payload,
// 2
// without. A packet whose payload cannot be read is not sent; err_valid_o pulses with its
// connection
// (a resend would only read again: the connection should fail with ErrMemError).
// Does not choose paths, check connections or keep anything for a resend.
`default_nettype none

module weft_tx_path
  import weft_pkg::*;
  import weft_tx_pkg::*;
#(
    parameter int unsigned Port         = 0,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned Jobs         = 256,   // jobs waiting for payload or turn
    parameter int unsigned BufBeats     = 1024,  // payload read ahead, 64-byte beats
    parameter int unsigned OutBeats     = 64     // beats between the sequencer and the MAC
) (
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire cfg_t        cfg_i,
    input  wire  [31:0]      now_i,
    // Data packets and probes, sent in order.
    input  wire              job_valid_i,
    output logic             job_ready_o,
    input  wire tx_job_t     job_i,
    // Acks.
    input  wire              ack_valid_i,
    output logic             ack_ready_o,
    input  wire ack_t        ack_i,
    // Memory, AXI4, in order.
    output logic [63:0]      m_axi_araddr,
    output logic [7:0]       m_axi_arlen,
    output logic             m_axi_arvalid,
    input  wire              m_axi_arready,
    input  wire  [DataW-1:0] m_axi_rdata,
    input  wire  [1:0]       m_axi_rresp,
    input  wire              m_axi_rlast,
    input  wire              m_axi_rvalid,
    output logic             m_axi_rready,
    // To the MAC.
    output logic [DataW-1:0] m_axis_tdata,
    output logic [KeepW-1:0] m_axis_tkeep,
    output logic             m_axis_tlast,
    output logic             m_axis_tvalid,
    input  wire              m_axis_tready,
    // A packet of this connection was not sent because reading its payload failed.
    output logic             err_valid_o,
    output conn_t            err_conn_o,
    output tx_cnt_t          cnt_o
);

  logic ack_frame_valid, ack_frame_ready, job_frame_valid, job_frame_ready;
  tx_frame_t ack_frame, job_frame;
  tx_fields_t fields;
  logic fields_pop, start, read, cnt_reads, room, beat_valid, hdr_first, hdr_second;
  tx_head_t head;
  tx_beat_t beat;
  tx_cnt_t seq_cnt;
  logic [DataW-1:0] mem_beat, hdr_beat, now_beat, before_beat;

  weft_tx_payload #(
      .Jobs    (Jobs),
      .BufBeats(BufBeats)
  ) u_payload (
      .clk_i,
      .rst_i,
      .job_valid_i,
      .job_ready_o,
      .job_i,
      .m_axi_araddr,
      .m_axi_arlen,
      .m_axi_arvalid,
      .m_axi_arready,
      .m_axi_rdata,
      .m_axi_rresp,
      .m_axi_rlast,
      .m_axi_rvalid,
      .m_axi_rready,
      .frame_valid_o(job_frame_valid),
      .frame_ready_i(job_frame_ready),
      .frame_o      (job_frame),
      .fields_o     (fields),
      .fields_pop_i (fields_pop),
      .read_i       (read),
      .beat_o       (mem_beat),
      .cnt_reads_o  (cnt_reads)
  );

  weft_tx_seq u_seq (
      .clk_i,
      .rst_i,
      .ack_valid_i (ack_frame_valid),
      .ack_ready_o (ack_frame_ready),
      .ack_i       (ack_frame),
      .job_valid_i (job_frame_valid),
      .job_ready_o (job_frame_ready),
      .job_i       (job_frame),
      .room_i      (room),
      .start_o     (start),
      .head_o      (head),
      .read_o      (read),
      .beat_valid_o(beat_valid),
      .beat_o      (beat),
      .err_valid_o,
      .err_conn_o,
      .cnt_o       (seq_cnt)
  );

  weft_tx_hdr #(
      .Port        (Port),
      .NumPorts    (NumPorts),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_hdr (
      .clk_i,
      .rst_i,
      .cfg_i,
      .now_i,
      .ack_valid_i,
      .ack_ready_o,
      .ack_i,
      .frame_valid_o(ack_frame_valid),
      .frame_ready_i(ack_frame_ready),
      .frame_o      (ack_frame),
      .start_i      (start),
      .head_i       (head),
      .first_i      (hdr_first),
      .second_i     (hdr_second),
      .fields_i     (fields),
      .fields_pop_o (fields_pop),
      .beat_o       (hdr_beat)
  );

  weft_tx_align u_align (
      .clk_i,
      .rst_i,
      .valid_i (beat_valid),
      .rotate_i(beat.rotate),
      .data_i  (mem_beat),
      .now_o   (now_beat),
      .before_o(before_beat)
  );

  weft_tx_frame #(
      .OutBeats(OutBeats)
  ) u_frame (
      .clk_i,
      .rst_i,
      .room_o      (room),
      .beat_valid_i(beat_valid),
      .beat_i      (beat),
      .hdr_first_o (hdr_first),
      .hdr_second_o(hdr_second),
      .hdr_i       (hdr_beat),
      .now_i       (now_beat),
      .before_i    (before_beat),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tlast,
      .m_axis_tvalid,
      .m_axis_tready
  );

  always_comb begin
    cnt_o       = seq_cnt;
    cnt_o.reads = cnt_reads;
  end

endmodule

`default_nettype wire
