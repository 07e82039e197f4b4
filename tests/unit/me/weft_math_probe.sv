// SPDX-License-Identifier: Apache-2.0
//
// For tests only: what weft_math_pkg says of a REDUCE, by reducers of several kinds. Combinational.
`default_nettype none

module weft_math_probe
  import weft_wire_pkg::*, weft_math_pkg::*;
(
    input  wire  [7:0] dtype_i,
    input  wire  [7:0] to_i,
    input  wire  [7:0] redop_i,
    input  wire  [2:0] flags_i,      // exact, saturate, propagate_nan, the last in bit 0
    input  wire  [7:0] nsrc_i,
    input  wire  [7:0] own_i,
    input  wire [63:0] scalar_i,
    output logic [7:0] all_o,
    output logic [7:0] no_exact_o,
    output logic [7:0] small_exact_o,
    output logic [7:0] no_blocks_o,
    output logic [7:0] no_products_o,
    output logic [7:0] served_o,
    output logic [7:0] served_exact_o,
    output logic [7:0] align_o
);
  math_t m;
  assign m = '{
      dtype: dtype_e'(dtype_i),
      to: dtype_e'(to_i),
      redop: redop_e'(redop_i),
      propagate_nan: flags_i[0],
      saturate: flags_i[1],
      exact: flags_i[2],
      nsrc: nsrc_i,
      own: own_i,
      divisor_ok: divisor_ok(scalar_i)
  };
  localparam math_parts_t NoExact = '{products: 1'b1, blocks: 1'b1, exact: 2'(ExactNone)};
  localparam math_parts_t SmallExact = '{products: 1'b1, blocks: 1'b1, exact: 2'(ExactSmall)};
  localparam math_parts_t NoBlocks = '{products: 1'b1, blocks: 1'b0, exact: 2'(ExactAll)};
  localparam math_parts_t NoProducts = '{products: 1'b0, blocks: 1'b1, exact: 2'(ExactAll)};
  assign all_o          = math_error(m, MathAll);
  assign no_exact_o     = math_error(m, NoExact);
  assign small_exact_o  = math_error(m, SmallExact);
  assign no_blocks_o    = math_error(m, NoBlocks);
  assign no_products_o  = math_error(m, NoProducts);
  assign served_o       = math_error(m, served_with(ExactNone));
  assign served_exact_o = math_error(m, served_with(ExactAll));
  assign align_o        = common_align(m);
endmodule

`default_nettype wire
