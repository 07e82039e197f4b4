// SPDX-License-Identifier: Apache-2.0
//
// What the arrays of float lanes raise, by the results that it belongs to. Flags come a cycle
// behind what the lanes show. Those of the first array of a chain wait for those of the second one,
// which come SecondMul cycles behind them, or SecondTo, or SecondSum; with a third array, another
// SecondSum behind, both wait for that. Flags of sums that stay in the accumulator wait for the
// next step of their kind that goes on, which is of the same job.
`default_nettype none

module weft_nmc_flags
  import weft_nmc_pkg::*;
(
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire chain_marks_t marks_i,
    input  wire float_flags_t wide_i,
    input  wire float_flags_t result_i,     // the same of the wide lanes' results
    input  wire float_flags_t half_i,       // with those of the blocks that its operands were
    input  wire float_flags_t pair_i,       // of products beside the wide lanes'
    input  wire float_flags_t converted_i,  // of the third array
    output float_flags_t      flags_o
);

  localparam int unsigned SecondMul = MxScaleLatency + FloatMulLatency;
  localparam int unsigned SecondTo = MxScaleLatency + FloatLatency;
  localparam int unsigned SecondSum = FloatLatency;

  // The last one of each belongs to what the second array, or the third one, shows.
  float_flags_t [SecondMul-1:0] first_q;
  float_flags_t [SecondSum-1:0] second_q;
  float_flags_t stayed_q;

  wire float_flags_t sum = half_i | stayed_q;
  wire float_flags_t mul_sum = sum | first_q[SecondMul-1];
  wire mul_sum_waits = marks_i.mul_sum_goes_on || marks_i.mul_sum_stayed;
  wire half_waits = marks_i.sum_goes_on || marks_i.sum_stayed || mul_sum_waits;

  always_comb begin
    flags_o = converted_i | second_q[SecondSum-1];
    if (!mul_sum_waits) flags_o = flags_o | first_q[SecondMul-1];
    if (!half_waits) flags_o = flags_o | half_i;
    if (!marks_i.mul_goes_on) flags_o = flags_o | result_i;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      first_q  <= '0;
      second_q <= '0;
      stayed_q <= '0;
    end else begin
      first_q  <= first_q << $bits(float_flags_t);
      second_q <= second_q << $bits(float_flags_t);
      if (marks_i.sum_goes_on) begin
        if (marks_i.sum_to) first_q[SecondMul-SecondTo] <= sum;
        else first_q[0] <= sum;
      end
      if (marks_i.mul_goes_on) first_q[SecondMul-SecondSum] <= wide_i | pair_i;
      if (marks_i.mul_sum_goes_on) second_q[0] <= mul_sum;
      if (marks_i.sum_goes_on || marks_i.mul_sum_goes_on) stayed_q <= '0;
      else if (marks_i.sum_stayed) stayed_q <= sum;
      else if (marks_i.mul_sum_stayed) stayed_q <= mul_sum;
    end
  end

endmodule

`default_nettype wire
