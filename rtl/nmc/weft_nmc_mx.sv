// SPDX-License-Identifier: Apache-2.0
//
// Behind the lanes of the reducer: the results of jobs with blocks of OCP MX, as blocks or as
// floats that blocks have become, into result beats. Takes of all results only those.
//
// No handshake. A result with valid_i in cycle t is in its beat in t+1 if it is floats, in
// t + MxOutLatency + MxPackLatency if it is a block; who feeds the lanes keeps the two kinds apart.
// Flags come in one cycle behind their result; ends_o is with a job's last beat, and then flags_o
// what its steps have raised, those to the accumulator too.
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
    input  wire float_flags_t  flags_i,
    // Beats.
    output logic               beat_valid_o,
    output logic [NmcW-1:0]    beat_data_o,
    output logic               beat_err_o,
    output logic               ends_o,
    output float_flags_t       flags_o
);

  localparam int unsigned Words = NmcW / 32;
  localparam int unsigned Behind = MxOutLatency + MxPackLatency;

  wire leaves = valid_i && !tag_i.to_acc && !tag_i.to_kept;
  wire block = leaves && tag_i.layout.to_block;
  wire window = leaves && tag_i.layout.from_block && !tag_i.layout.to_block;

  // ---- floats: the top bytes of the lanes, 16 bits twice, since either half may be the place ----
  logic [NmcW-1:0] floats;
  always_comb begin
    floats = wide_i;
    if (tag_i.layout.to != 2'd2) begin
      for (int unsigned i = 0; i < 2 * Words; i++)
        floats[16*i+:16] = wide_i[32*(i%Words)+16+:16];
    end
  end

  // ---- blocks -----------------------------------------------------------------------------------
  typedef struct packed {
    offs_t place;
    logic  whole;
    logic  spill;
    logic  ends;
    logic  err;
  } beside_t;

  logic         out_valid;
  mx_block_t    out_block;
  float_flags_t out_flags;
  beside_t      beside_q[MxOutLatency];
  wire beside_t beside = beside_q[MxOutLatency-1];

  weft_nmc_mx_out u_out (
      .clk_i,
      .rst_i,
      .valid_i (block),
      .fmt_i   (tag_i.layout.mx),
      .values_i(wide_i),
      .valid_o (out_valid),
      .block_o (out_block),
      .flags_o (out_flags)
  );

  always_ff @(posedge clk_i) begin
    beside_q[0] <= '{
        place: tag_i.place,
        whole: tag_i.whole,
        spill: tag_i.spill,
        ends: tag_i.ends,
        err: tag_i.err
    };
    for (int unsigned i = 1; i < MxOutLatency; i++) beside_q[i] <= beside_q[i-1];
  end

  weft_nmc_mx_pack u_pack (
      .clk_i,
      .rst_i,
      .block_valid_i (out_valid),
      .block_place_i (beside.place),
      .block_whole_i (beside.whole),
      .block_i       (out_block),
      .window_valid_i(window),
      .window_place_i(tag_i.place),
      .window_whole_i(tag_i.whole),
      .window_i      (floats),
      .beat_valid_o,
      .beat_o        (beat_data_o)
  );

  // ---- what goes with the beats -----------------------------------------------------------------
  logic         block_ends_q, block_err_q;   // a cycle behind `beside`
  float_flags_t out_flags_q, out_flags2_q;
  logic         from_block_q;                // the result before was to become a block ...
  logic         from_window_q;               // ... or was a window
  float_flags_t late_q[Behind-1];            // flags of such as become blocks
  float_flags_t flags_q;

  wire float_flags_t late_in = flags_i & {3{from_block_q}};
  wire float_flags_t now = late_q[Behind-2] | out_flags2_q | (flags_i & {3{from_window_q}});
  assign flags_o = flags_q | now;

  always_ff @(posedge clk_i) begin
    block_err_q <= beside.err;
    beat_err_o  <= window ? tag_i.err : block_err_q;
    if (rst_i) begin
      from_block_q  <= 1'b0;
      from_window_q <= 1'b0;
      block_ends_q  <= 1'b0;
      ends_o        <= 1'b0;
      out_flags_q   <= '0;
      out_flags2_q  <= '0;
      flags_q       <= '0;
      for (int unsigned i = 0; i < Behind - 1; i++) late_q[i] <= '0;
    end else begin
      from_block_q  <= valid_i && tag_i.layout.to_block;
      from_window_q <= valid_i && tag_i.layout.from_block && !tag_i.layout.to_block;
      block_ends_q  <= out_valid && beside.ends;
      ends_o        <= block_ends_q || (window && tag_i.ends);
      out_flags_q   <= (out_valid && !beside.spill) ? out_flags : '0;
      out_flags2_q  <= out_flags_q;
      flags_q       <= ends_o ? '0 : flags_o;
      late_q[0]     <= late_in;
      for (int unsigned i = 1; i < Behind - 1; i++) late_q[i] <= late_q[i-1];
    end
  end

endmodule

`default_nettype wire
