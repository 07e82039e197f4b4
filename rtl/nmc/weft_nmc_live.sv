// SPDX-License-Identifier: Apache-2.0
//
// Which lanes work on elements of the request. The first and last window of a source may reach
// beyond it; what is there is computed and not written, and must not raise a flag.
//
// No handshake: masks in the cycle behind valid_i. A bit for each wide word, half and byte lane; of
// 64-bit elements both words.
`default_nettype none

module weft_nmc_live
  import weft_nmc_pkg::*;
#(
    localparam int unsigned Words = NmcBytes / 4
) (
    input  wire                  clk_i,
    input  wire                  valid_i,
    input  wire nmc_layout_t     layout_i,
    input  wire                  edge_i,   // else all live
    input  wire offs_t           lo_i,     // first and last byte of the window inside
    input  wire offs_t           hi_i,
    output logic [  Words-1:0]   wide_o,
    output logic [  Words-1:0]   half_o,
    output logic [2*Words-1:0]   byte_o
);

  // The word a lane gets its element from is known by that element's first byte in the window.
  function automatic logic [Words-1:0] wide_of(logic [NmcBytes-1:0] bytes, nmc_layout_t x);
    logic [Words-1:0] on;
    for (int unsigned w = 0; w < Words; w++) begin
      unique case (x.shape)
        Native:  on[w] = bytes[4*w+3];
        Wide32:  on[w] = bytes[OffsW'(w<<x.from)];
        default: on[w] = bytes[OffsW'((w/2)<<x.from)];
      endcase
    end
    return on;
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      if (!edge_i) begin
        wide_o <= '1;
        half_o <= '1;
        byte_o <= '1;
      end else begin
        automatic logic [NmcBytes-1:0] inside_bytes;
        for (int unsigned i = 0; i < NmcBytes; i++)
          inside_bytes[i] = OffsW'(i) >= lo_i && OffsW'(i) <= hi_i;
        wide_o <= wide_of(inside_bytes, layout_i);
        for (int unsigned w = 0; w < Words; w++) begin
          half_o[w]       <= inside_bytes[4*w+1];
          byte_o[2*w+:2] <= {inside_bytes[4*w+2], inside_bytes[4*w]};
        end
      end
    end
  end

endmodule

`default_nettype wire
