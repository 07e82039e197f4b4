// SPDX-License-Identifier: Apache-2.0
//
// Simple dual-port RAM: one write port, one registered read port, one clock.
//
// Read latency 1 cycle; rdata_o holds while re_i is low. A read of the address being written in the
// same cycle returns the OLD content (forward outside where the new one is needed). The content is
// not reset. `Style` is the ram_style attribute: "auto", "block", "distributed" or "ultra".
`default_nettype none

module weft_sdpram #(
    parameter  int unsigned Width  = 8,
    parameter  int unsigned Depth  = 16,
    parameter  type         data_t = logic [Width-1:0],
    parameter               Style  = "auto",
    localparam int unsigned AddrW  = (Depth > 1) ? $clog2(Depth) : 1
) (
    input  wire                    clk_i,
    // Write: in the cycle of we_i.
    input  wire                    we_i,
    input  wire        [AddrW-1:0] waddr_i,
    input  wire data_t             wdata_i,
    // Read: data in the cycle after re_i.
    input  wire                    re_i,
    input  wire        [AddrW-1:0] raddr_i,
    output data_t                  rdata_o
);

  (* ram_style = Style *) data_t mem[Depth];
  data_t rdata_q;

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    if (re_i) rdata_q <= mem[raddr_i];
  end

  assign rdata_o = rdata_q;

endmodule

`default_nettype wire
