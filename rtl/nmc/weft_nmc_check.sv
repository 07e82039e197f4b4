// SPDX-License-Identifier: Apache-2.0
//
// What the reducer refuses by the looks of a request: what weft_math_pkg says of its types,
// operation, flags and sources, then its alignment. Combinational. Addresses that run over the end
// of the address space are weft_nmc_decode's part. Without Products there is no PROD, AVG and
// PREMUL_SUM, without Blocks no MX type.
`default_nettype none

module weft_nmc_check
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_math_pkg::*;
#(
    parameter bit          Products = 1'b1,
    parameter bit          Blocks   = 1'b1,
    parameter int unsigned Exact    = ExactNone
) (
    input  wire nmc_req_t req_i,
    output err_e          status_o
);

  // The low bits that an address or length must not have, by the size of the element.
  function automatic logic [2:0] unit(dtype_e t);
    unique case (t[1:0])
      2'd0: return 3'b000;
      2'd1: return 3'b001;
      2'd2: return 3'b011;
      2'd3: return 3'b111;
    endcase
  endfunction

  // The same of a length where sources or result are blocks: 32 elements.
  function automatic logic [6:0] block_unit(dtype_e to);
    if (to == DtMxfp4E2m1) return 7'h0f;
    return {to[1], to[1:0] != '0, 5'h1f};
  endfunction

  localparam math_parts_t Parts = '{products: Products, blocks: Blocks, exact: 2'(Exact)};

  wire math_t math = '{
      dtype: req_i.dtype,
      to: req_i.to,
      redop: req_i.redop,
      propagate_nan: req_i.propagate_nan,
      saturate: req_i.saturate,
      exact: req_i.exact,
      nsrc: req_i.nsrc,
      own: req_i.own,
      divisor_ok: divisor_ok(req_i.scalar)
  };

  wire one = req_i.nsrc == 8'd1;

  wire [2:0] source_bits = req_i.src0[2:0] | (one ? 3'd0 : req_i.src1[2:0] | req_i.stride[2:0]);
  wire [2:0] result_bits = req_i.dst[2:0] | req_i.len[2:0];
  wire blocks = kind_of(req_i.dtype) == KindBlock || kind_of(req_i.to) == KindBlock;
  wire aligned = (source_bits & unit(req_i.dtype)) == '0 && (result_bits & unit(req_i.to)) == '0 &&
      (!blocks || (req_i.len[6:0] & block_unit(req_i.to)) == '0);

  always_comb begin
    status_o = math_error(math, Parts);
    if (status_o == ErrOk && !aligned) status_o = ErrBadAlign;
  end

endmodule

`default_nettype wire
