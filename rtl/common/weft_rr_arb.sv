// SPDX-License-Identifier: Apache-2.0
//
// Round-robin arbiter of any number of requesters, one or not a power of two included. The grant is
// combinational, and goes to the next requester behind the last one served. So one that holds its
// request is served within NumReq grants taken, whatever the others do.
//
// A grant that is not taken may move on when requests change: nothing is remembered of it.
`default_nettype none
`include "weft_assert.svh"

module weft_rr_arb #(
    parameter  int unsigned NumReq = 2,
    localparam int unsigned IdxW   = (NumReq > 1) ? $clog2(NumReq) : 1
) (
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire  [NumReq-1:0] req_i,
    input  wire               take_i,  // the one granted is served; may depend on the grant
    output logic [NumReq-1:0] gnt_o,   // one-hot; none without a request
    output logic [  IdxW-1:0] idx_o    // of the one granted; 0 without
);

  if (NumReq < 1) begin : gen_bad_requesters
    $error("weft_rr_arb: NumReq must be 1 or more");
  end

  logic [NumReq-1:0] behind_q;  // requesters behind the one served last: they go first
  logic [NumReq-1:0] first, chosen, behind;
  assign first  = req_i & behind_q;
  assign chosen = (first != '0) ? first : req_i;

  always_comb begin
    automatic logic lower = 1'b0;  // a lower one is chosen too
    idx_o = '0;
    for (int unsigned i = 0; i < NumReq; i++) begin
      gnt_o[i]  = chosen[i] && !lower;
      behind[i] = lower;
      if (gnt_o[i]) idx_o = IdxW'(i);
      lower = lower || chosen[i];
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) behind_q <= '0;
    else if (take_i) behind_q <= behind;
  end

  `WEFT_ASSERT(OneGrant, $onehot0(gnt_o) && (gnt_o & ~req_i) == '0 && (|gnt_o == |req_i));
  `WEFT_IMPLIES(TakenIsGranted, take_i, req_i != '0);

endmodule

`default_nettype wire
