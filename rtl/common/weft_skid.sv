// SPDX-License-Identifier: Apache-2.0
//
// Skid buffer: cuts a ready/valid stream with registers in both directions.
//
// Ready, valid and data leave from registers, so no path crosses the block. Two entries deep.
// Latency 1 cycle, throughput 1 item a cycle under any back-pressure. Keeps order, drops nothing.
// Use it at the edge of a block; a queue that must hold more is weft_fifo.
`default_nettype none
`include "weft_assert.svh"

module weft_skid #(
    parameter int unsigned Width  = 8,
    parameter type         data_t = logic [Width-1:0]
) (
    input  wire        clk_i,
    input  wire        rst_i,
    // In: taken in a cycle with valid and ready; ready never depends on valid.
    input  wire        s_valid_i,
    output logic       s_ready_o,
    input  wire data_t s_data_i,
    // Out: once valid, valid and data hold until ready.
    output logic       m_valid_o,
    input  wire        m_ready_i,
    output data_t      m_data_o
);

  data_t skid_q;  // holds the item that arrived while the output was stuck
  logic out_valid_q, skid_valid_q;
  data_t out_q;

  assign s_ready_o = !skid_valid_q;
  assign m_valid_o = out_valid_q;
  assign m_data_o  = out_q;

  wire take = s_valid_i && s_ready_o;
  wire move = !out_valid_q || m_ready_i;  // the output register may load

  always_ff @(posedge clk_i) begin
    if (move) out_q <= skid_valid_q ? skid_q : s_data_i;
    if (take) skid_q <= s_data_i;

    if (rst_i) begin
      out_valid_q  <= 1'b0;
      skid_valid_q <= 1'b0;
    end else begin
      if (move) out_valid_q <= skid_valid_q || take;
      skid_valid_q <= (skid_valid_q || take) && !move;
    end
  end

  `WEFT_HOLD(OutHolds, m_valid_o, m_ready_i, m_data_o);
  `WEFT_IMPLIES(SkidBehindOut, skid_valid_q, out_valid_q);

endmodule

`default_nettype wire
