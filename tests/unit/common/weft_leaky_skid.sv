// SPDX-License-Identifier: Apache-2.0
//
// A skid buffer with a fault: it is always ready, so an item that comes while the output is stuck
// overwrites the one inside. The stream checker of test_streams.cpp must notice.
`default_nettype none

module weft_leaky_skid (
    input  wire         clk_i,
    input  wire         rst_i,
    input  wire         s_valid_i,
    output logic        s_ready_o,
    input  wire  [31:0] s_data_i,
    output logic        m_valid_o,
    input  wire         m_ready_i,
    output logic [31:0] m_data_o
);

  assign s_ready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (s_valid_i) m_data_o <= s_data_i;
    m_valid_o <= !rst_i && (s_valid_i || (m_valid_o && !m_ready_i));
  end

endmodule

`default_nettype wire
