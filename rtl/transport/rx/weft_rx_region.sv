// SPDX-License-Identifier: Apache-2.0
//
// Region check of a data packet: the low bits of the key name the region, the whole key must be the
// region's, [va, va + len) must lie in it, and it must be writable by a peer. An empty packet needs
// no region. In: S1 (key, address) and S2 (length); out: S4. One packet a cycle.
//
// Reads its own copy of the region table, filled by CfgRegion writes. A write takes effect for
// packets that come to S1 later.
`default_nettype none

module weft_rx_region
  import weft_pkg::*;
#(
    parameter int unsigned NumRegions = 64
) (
    input  wire          clk_i,
    input  wire          rst_i,
    input  wire cfg_t    cfg_i,
    // S1
    input  wire          look_i,
    input  wire  [31:0]  key_i,
    input  wire addr_t   va_i,
    // S2
    input  wire plen_t   len_i,
    // S3: the write crosses a 4 KB boundary
    output logic         crosses_o,
    // S4
    output logic         bad_key_o,
    output logic         bad_bounds_o,
    output logic         bad_rights_o
);

  localparam int unsigned RegionW = $clog2(NumRegions);

  typedef struct packed {
    logic [31:0] key;
    logic        remote_write;
    addr_t       base;
    addr_t       limit;
  } entry_t;

  cfg_region_t cfg;
  logic cfg_hit;
  assign cfg     = cfg_i.data[$bits(cfg_region_t)-1:0];
  assign cfg_hit = cfg_i.valid && cfg_i.kind == CfgRegion && (cfg_i.index >> RegionW) == '0;

  entry_t found;
  weft_sdpram #(
      .data_t(entry_t),
      .Depth (NumRegions)
  ) u_table (
      .clk_i,
      .we_i   (cfg_hit),
      .waddr_i(cfg_i.index[RegionW-1:0]),
      .wdata_i('{cfg.key, cfg.remote_write, cfg.base, cfg.limit}),
      .re_i   (look_i),
      .raddr_i(key_i[RegionW-1:0]),
      .rdata_o(found)
  );

  logic [NumRegions-1:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) valid_q <= '0;
    else if (cfg_hit) valid_q[cfg_i.index[RegionW-1:0]] <= cfg.valid;
  end

  // S2
  logic valid2_q;  // the region is
  logic look2_q, look3_q;
  logic [31:0] key2_q;
  addr_t va2_q;
  // S3
  logic empty3_q, bad_key3_q, below3_q, rights3_q, wraps3_q, crosses3_q;
  addr_t end3_q, limit3_q;  // first byte behind the packet; behind the region
  // S4
  logic bad_key_q, bad_bounds_q, bad_rights_q;

  // end of the packet counted from its first 4 KB page; above 4096: it crosses
  logic [12:0] in_page;
  assign in_page = 13'(va2_q[11:0]) + len_i;

  always_ff @(posedge clk_i) begin
    look2_q <= look_i;
    look3_q <= look2_q;
    if (look_i) begin
      valid2_q <= valid_q[key_i[RegionW-1:0]];
      key2_q   <= key_i;
      va2_q    <= va_i;
    end
    if (look2_q) begin
      empty3_q           <= len_i == '0;
      bad_key3_q         <= !valid2_q || found.key != key2_q;
      below3_q           <= va2_q < found.base;
      rights3_q          <= !found.remote_write;
      {wraps3_q, end3_q} <= {1'b0, va2_q} + 65'(len_i);
      limit3_q           <= found.limit;
      crosses3_q         <= in_page > 13'd4096;
    end
    if (look3_q) begin
      bad_key_q    <= bad_key3_q && !empty3_q;
      bad_bounds_q <= (below3_q || wraps3_q || end3_q > limit3_q) && !empty3_q;
      bad_rights_q <= rights3_q && !empty3_q;
    end
  end

  assign crosses_o    = crosses3_q;
  assign bad_key_o    = bad_key_q;
  assign bad_bounds_o = bad_bounds_q;
  assign bad_rights_o = bad_rights_q;

endmodule
`default_nettype wire
