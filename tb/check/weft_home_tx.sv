// SPDX-License-Identifier: Apache-2.0
// weft_tx_path says of itself nothing about rest, so it is what its borders show: nothing offered,
// nothing on its way out, every read answered.
`default_nettype none
module weft_home_tx (
    input wire clk_i,
    input wire rst_i,
    input wire busy_i,
    input wire ask_i,
    input wire [7:0] arlen_i,
    input wire answer_i,
    input wire home_i
);
  logic [31:0] owed_q;  // beats of reads
  always_ff @(posedge clk_i) begin
    if (rst_i) owed_q <= '0;
    else owed_q <= owed_q + (ask_i ? 32'(arlen_i) + 32'd1 : '0) - 32'(answer_i);
  end
  weft_home u_home (
      .clk_i,
      .rst_i,
      .quiet_i(!busy_i && owed_q == '0),
      .home_i
  );
endmodule

bind weft_tx_path weft_home_tx u_home (
    .clk_i,
    .rst_i,
    .busy_i(job_valid_i || ack_valid_i || m_axis_tvalid || m_axi_arvalid || m_axi_rvalid),
    .ask_i(m_axi_arvalid && m_axi_arready),
    .arlen_i(m_axi_arlen),
    .answer_i(m_axi_rvalid && m_axi_rready),
    .home_i(int'(u_payload.room_q) == u_payload.BufBeats && u_frame.used_q == '0)
);
`default_nettype wire
