// SPDX-License-Identifier: Apache-2.0
//
// Behind the lanes of the reducer: the results of jobs with blocks of OCP MX, as blocks or as
// floats that blocks have become, into result beats. Takes of all results only those.
//
// No handshake. A result with valid_i in cycle t is in its beat in t+1 if it is floats, in
// t + MxPackLatency if it is a block; who feeds the lanes keeps the two kinds apart. The elements
// of a block are the tops of the words. Flags come in one cycle behind their result; ends_o is with
// a job's last beat, and then flags_o what its steps have raised, those to the accumulator too.
`default_nettype none

module weft_nmc_mx
  import weft_pkg::*;
  import weft_nmc_pkg::*;
(
    input  wire                clk_i,
    input  wire                rst_i,
    // Results.
    input  wire                valid_i,
    input  wire lane_tag_t     tag_i,
    input  wire  [NmcW-1:0]    wide_i,
    input  wire  [NmcW-1:0]    window_i,  // the same, as floats: weft_nmc_gather's
    input  wire mx_scale_t     scale_i,
    input  wire float_flags_t  flags_i,
    // Beats.
    output logic               beat_valid_o,
    output logic [NmcW-1:0]    beat_data_o,
    output logic               beat_err_o,
    output logic               ends_o,
    output float_flags_t       flags_o
);


  wire leaves = valid_i && !tag_i.to_acc && !tag_i.to_kept;
  wire block = leaves && tag_i.layout.to_block;
  wire window = leaves && tag_i.layout.from_block && !tag_i.layout.to_block;

  // ---- blocks -----------------------------------------------------------------------------------
  mx_block_t made;
  always_comb begin
    made = '0;
    for (int unsigned i = 0; i < MxElements; i++) made[8+8*i+:8] = wide_i[32*i+24+:8];
    if (tag_i.layout.mx == MxE2m1) begin
      for (int unsigned i = 0; i < MxElements; i++)
        made[8+4*i+:4] = wide_i[32*i+28+:4] & {4{!scale_i.none}};
    end
    made[7:0] = scale_i.scale | {8{scale_i.none}};
  end

  weft_nmc_mx_pack u_pack (
      .clk_i,
      .rst_i,
      .block_valid_i (block),
      .block_place_i (tag_i.place),
      .block_whole_i (tag_i.whole),
      .block_i       (made),
      .window_valid_i(window),
      .window_place_i(tag_i.place),
      .window_whole_i(tag_i.whole),
      .window_i,
      .beat_valid_o,
      .beat_o        (beat_data_o)
  );

  // ---- what goes with the beats -----------------------------------------------------------------
  logic         block_out_q, block_ends_q, block_err_q;  // a cycle behind a block
  logic         to_block_q;     // the result before was of a job that makes blocks ...
  logic         from_block_q;   // ... or floats of them
  float_flags_t late_q;         // flags of the former
  float_flags_t flags_q;

  assign flags_o = flags_q | late_q | (from_block_q ? flags_i : '0);

  always_ff @(posedge clk_i) begin
    if (block) block_err_q <= tag_i.err;
    if (window || block_out_q) beat_err_o <= window ? tag_i.err : block_err_q;
    if (rst_i) begin
      block_out_q  <= 1'b0;
      to_block_q   <= 1'b0;
      from_block_q <= 1'b0;
      block_ends_q <= 1'b0;
      ends_o       <= 1'b0;
      late_q       <= '0;
      flags_q      <= '0;
    end else begin
      block_out_q  <= block;
      to_block_q   <= valid_i && tag_i.layout.to_block;
      from_block_q <= valid_i && tag_i.layout.from_block && !tag_i.layout.to_block;
      block_ends_q <= block && tag_i.ends;
      ends_o       <= block_ends_q || (window && tag_i.ends);
      late_q       <= to_block_q ? flags_i : '0;
      flags_q      <= ends_o ? '0 : flags_o;
    end
  end

endmodule

`default_nettype wire
