// SPDX-License-Identifier: Apache-2.0
//
// What weft_rr_arb promises, for several numbers of requesters and any requests: one grant when
// there is a request, to somebody who asks, and a requester that holds its request sees NumReq - 1
// grants to others at most before its own.
`default_nettype none
`include "weft_assert.svh"

module weft_proof_arb_of #(
    parameter int unsigned NumReq = 2
) (
    input wire              clk_i,
    input wire              rst_i,
    // All free.
    input wire [NumReq-1:0] req_i,
    input wire              ready_i
);

  localparam int unsigned IdxW = (NumReq > 1) ? $clog2(NumReq) : 1;
  localparam int unsigned CountW = $clog2(NumReq + 1) + 1;
  typedef logic [CountW-1:0] count_t;

  logic [NumReq-1:0] gnt;
  logic [IdxW-1:0]   idx;
  wire               take = ready_i && req_i != '0;
  weft_rr_arb #(
      .NumReq(NumReq)
  ) u_arb (
      .clk_i,
      .rst_i,
      .req_i,
      .take_i(take),
      .gnt_o (gnt),
      .idx_o (idx)
  );

  `WEFT_ASSERT(OneAsked, $onehot0(gnt) && (gnt & ~req_i) == '0);
  `WEFT_IMPLIES(NobodyWaitsIdle, req_i != '0, gnt != '0);
  `WEFT_IMPLIES(IndexIsGrant, req_i != '0, gnt == NumReq'(1) << idx);

  // Others that are served while one waits; how many more can be before it: those that stand
  // between the last one served and itself.
  count_t behind[NumReq];  // requesters that go first and stand before this one, or all others
  count_t served_q[NumReq];
  always_comb begin
    automatic count_t first = '0;  // lowest of those that go first; 0: all are equal
    for (int unsigned i = 0; i < NumReq; i++) begin
      if (u_arb.behind_q[NumReq-1-i]) first = count_t'(NumReq - 1 - i);
    end
    for (int unsigned i = 0; i < NumReq; i++) begin
      behind[i] = (count_t'(i) >= first) ? count_t'(i) - first
                                         : count_t'(i) + count_t'(NumReq) - first;
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < NumReq; i++) begin
      if (rst_i || !req_i[i] || gnt[i] && take) served_q[i] <= '0;
      else if (take) served_q[i] <= served_q[i] + 1'b1;
    end
  end

  // those that go first are the highest ones; the inside that makes the rest inductive, and is
  // itself proved
  `WEFT_ASSERT(HighestGoFirst,
               ((u_arb.behind_q ^ {NumReq{1'b1}}) &
                ((u_arb.behind_q ^ {NumReq{1'b1}}) + 1'b1)) == '0);
  for (genvar i = 0; i < NumReq; i++) begin : gen_requester
    `WEFT_ASSERT(Distance, served_q[i] < count_t'(NumReq) &&
                           served_q[i] + behind[i] < count_t'(NumReq));
    `WEFT_IMPLIES(ServedInTime, served_q[i] == count_t'(NumReq - 1) && take && req_i[i], gnt[i]);
  end

endmodule

module weft_proof_arb (
    input wire        clk_i,
    input wire [15:0] req_i,
    input wire        ready_i
);
  logic started_q = 1'b0;
  wire  rst = !started_q;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // one requester, powers of two, others
  localparam int unsigned Sizes[7] = '{1, 2, 3, 4, 5, 12, 16};
  for (genvar s = 0; s < 7; s++) begin : gen_size
    weft_proof_arb_of #(
        .NumReq(Sizes[s])
    ) u_of (
        .clk_i,
        .rst_i(rst),
        .req_i(req_i[Sizes[s]-1:0]),
        .ready_i
    );
  end
endmodule

`default_nettype wire
