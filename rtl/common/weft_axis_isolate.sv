// SPDX-License-Identifier: Apache-2.0
//
// Takes the source of a frame stream off it at the end of a frame: a frame begun goes on to its
// last beat, none begins while isolate_i is up. drained_o tells that the stream is shut; the source
// must not be reset before. Handshakes pass through here, data goes past. Adds no latency and one
// gate to each handshake. Waits for a sink that never takes the rest of a frame: half a frame must
// not become the beginning of another one. docs/registers.md, Soft reset.
`default_nettype none
`include "weft_assert.svh"

module weft_axis_isolate (
    input  wire  clk_i,
    input  wire  rst_i,
    input  wire  isolate_i,
    output logic drained_o,
    input  wire  s_axis_tvalid,
    output logic s_axis_tready,
    input  wire  s_axis_tlast,
    output logic m_axis_tvalid,
    input  wire  m_axis_tready
);

  logic open_q, inside_q;

  assign m_axis_tvalid = s_axis_tvalid && open_q;
  assign s_axis_tready = m_axis_tready && open_q;

  wire amid = m_axis_tvalid ? !(m_axis_tready && s_axis_tlast) : inside_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      open_q    <= 1'b1;
      inside_q  <= 1'b0;
      drained_o <= 1'b0;
    end else begin
      open_q    <= !isolate_i || (open_q && amid);
      inside_q  <= amid;
      drained_o <= isolate_i && !open_q;
    end
  end

  `WEFT_IMPLIES(ShutBetweenFrames, !open_q, !inside_q);
  `WEFT_NEXT(BeatHolds, m_axis_tvalid && !m_axis_tready, m_axis_tvalid);

endmodule

`default_nettype wire
