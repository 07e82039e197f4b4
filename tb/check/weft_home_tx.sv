// SPDX-License-Identifier: Apache-2.0
// weft_tx_path says of itself nothing about rest, so it is what its borders show: nothing offered,
// nothing on its way out, every read answered, every job built or given up (one whose payload could
// not be read is thrown away beat by beat, and nothing shows meanwhile).
`default_nettype none
module weft_home_tx (
    input wire clk_i,
    input wire rst_i,
    input wire busy_i,
    input wire job_i,
    input wire built_i,
    input wire ask_i,
    input wire [7:0] arlen_i,
    input wire answer_i,
    input wire home_i
);
  logic [31:0] owed_q, jobs_q;  // beats of reads; jobs inside
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      owed_q <= '0;
      jobs_q <= '0;
    end else begin
      owed_q <= owed_q + (ask_i ? 32'(arlen_i) + 32'd1 : '0) - 32'(answer_i);
      jobs_q <= jobs_q + 32'(job_i) - 32'(built_i);
    end
  end
  weft_home u_home (
      .clk_i,
      .rst_i,
      .quiet_i(!busy_i && owed_q == '0 && jobs_q == '0),
      .home_i
  );
endmodule

bind weft_tx_path weft_home_tx u_home (
    .clk_i,
    .rst_i,
    .busy_i(job_valid_i || ack_valid_i || m_axis_tvalid || m_axi_arvalid || m_axi_rvalid),
    .job_i(job_valid_i && job_ready_o),
    .built_i(cnt_o.data || cnt_o.probes || cnt_o.mem_err),
    .ask_i(m_axi_arvalid && m_axi_arready),
    .arlen_i(m_axi_arlen),
    .answer_i(m_axi_rvalid && m_axi_rready),
    .home_i(int'(u_payload.room_q) == u_payload.BufBeats && u_frame.used_q == '0)
);
`default_nettype wire
