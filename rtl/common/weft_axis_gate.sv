// SPDX-License-Identifier: Apache-2.0
//
// Keeps a sink that is being reset from frames of a source that cannot wait. Shuts at once when
// shut_i rises, opens only between two frames, so that the sink never sees the tail of a frame
// without its head. Every frame of which it kept the end is one pulse of dropped_o. Only the
// valid signal passes through here; no latency.
`default_nettype none
`include "weft_assert.svh"

module weft_axis_gate (
    input  wire  clk_i,
    input  wire  rst_i,
    input  wire  shut_i,
    output logic dropped_o,
    input  wire  s_axis_tvalid,
    input  wire  s_axis_tlast,
    output logic m_axis_tvalid
);

  logic open_q, inside_q;

  wire amid = s_axis_tvalid ? !s_axis_tlast : inside_q;
  assign m_axis_tvalid = s_axis_tvalid && open_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      open_q    <= 1'b0;
      inside_q  <= 1'b0;
      dropped_o <= 1'b0;
    end else begin
      open_q    <= !shut_i && (open_q || !amid);
      inside_q  <= amid;
      dropped_o <= s_axis_tvalid && s_axis_tlast && !open_q;
    end
  end

  `WEFT_NEXT(OpensBetweenFrames, !open_q && amid, !open_q);

endmodule

`default_nettype wire
