// SPDX-License-Identifier: Apache-2.0
//
// Synchronous first-in first-out queue of `Depth` entries (2 or more, any number).
//
// Ready leaves from a register: the queue says ready while fewer than Depth entries are in it, and
// a pop makes room one cycle later. Throughput 1 item a cycle. The oldest item is shown as soon as
// m_valid_o is up (no read command). Latency, push to visible: 1 cycle in LUT RAM, 2 in block RAM.
// Block RAM is taken for more than 64 entries unless `BlockRam` says otherwise; there the data
// leaves straight from the RAM's output register, so put little logic behind it.
// Does not bypass (an empty queue still costs its latency) and has no almost-full: read count_o.
`default_nettype none
`include "weft_assert.svh"

module weft_fifo #(
    parameter  int unsigned Width    = 8,
    parameter  int unsigned Depth    = 16,
    parameter  type         data_t   = logic [Width-1:0],
    parameter  bit          BlockRam = Depth > 64,
    localparam int unsigned CountW   = $clog2(Depth + 1)
) (
    input  wire                     clk_i,
    input  wire                     rst_i,
    // In: taken in a cycle with valid and ready; ready never depends on valid.
    input  wire                     s_valid_i,
    output logic                    s_ready_o,
    input  wire data_t              s_data_i,
    // Out: once valid, valid and data hold until ready.
    output logic                    m_valid_o,
    input  wire                     m_ready_i,
    output data_t                   m_data_o,
    // Entries inside, the shown one included; a push or pop counts from the next cycle on.
    output logic       [CountW-1:0] count_o
);

  localparam int unsigned AddrW = $clog2(Depth);

  if (Depth < 2) begin : gen_bad_depth
    $error("weft_fifo: Depth must be 2 or more");
  end

  function automatic logic [AddrW-1:0] next_addr(logic [AddrW-1:0] addr);
    return (addr == AddrW'(Depth - 1)) ? '0 : addr + 1'b1;
  endfunction

  logic [AddrW-1:0] wr_addr_q, rd_addr_q;
  logic [CountW-1:0] count_q;
  logic ready_q;

  wire  push = s_valid_i && ready_q;
  wire  pop = m_valid_o && m_ready_i;

  assign s_ready_o = ready_q;
  assign count_o   = count_q;

  // A push comes late in most designs: it only enables the counters, one level, and the sign of
  // their step is the pop's. The flags compare the present count, not the adder's result.
  function automatic logic [CountW-1:0] stepped(logic [CountW-1:0] count, logic down);
    return count + {{(CountW - 1) {down}}, 1'b1};
  endfunction

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      wr_addr_q <= '0;
      count_q   <= '0;
      ready_q   <= 1'b0;
    end else begin
      if (push) wr_addr_q <= next_addr(wr_addr_q);
      if (push != pop) count_q <= stepped(count_q, pop);
      ready_q <= pop || !(count_q == CountW'(Depth) || (count_q == CountW'(Depth - 1) && push));
    end
  end

  if (BlockRam) begin : gen_block
    // The RAM's output register is the shown entry; whenever it is free or being taken, the next
    // written entry is fetched into it.
    (* ram_style = "block" *) data_t mem[Depth];
    data_t shown_q;
    logic shown_valid_q;
    logic written_q;  // an entry lies in the RAM that is not yet shown
    logic [CountW-1:0] in_ram_q;

    wire fetch = written_q && (!shown_valid_q || m_ready_i);

    always_ff @(posedge clk_i) begin
      if (push) mem[wr_addr_q] <= s_data_i;
      if (fetch) shown_q <= mem[rd_addr_q];

      if (rst_i) begin
        rd_addr_q     <= '0;
        in_ram_q      <= '0;
        written_q     <= 1'b0;
        shown_valid_q <= 1'b0;
      end else begin
        if (fetch) rd_addr_q <= next_addr(rd_addr_q);
        if (push != fetch) in_ram_q <= stepped(in_ram_q, fetch);
        written_q <= push || !(in_ram_q == '0 || (in_ram_q == CountW'(1) && fetch));
        if (fetch) shown_valid_q <= 1'b1;
        else if (m_ready_i) shown_valid_q <= 1'b0;
      end
    end

    assign m_valid_o = shown_valid_q;
    assign m_data_o  = shown_q;

    `WEFT_ASSERT(CountsAgree, count_q == in_ram_q + CountW'(shown_valid_q));
    `WEFT_HOLD(OutHolds, m_valid_o, m_ready_i, shown_q);
  end else begin : gen_lut
    (* ram_style = "distributed" *) data_t mem[Depth];
    logic valid_q;

    always_ff @(posedge clk_i) begin
      if (push) mem[wr_addr_q] <= s_data_i;

      if (rst_i) begin
        rd_addr_q <= '0;
        valid_q   <= 1'b0;
      end else begin
        if (pop) rd_addr_q <= next_addr(rd_addr_q);
        valid_q <= push || !(count_q == '0 || (count_q == CountW'(1) && pop));
      end
    end

    assign m_valid_o = valid_q;
    assign m_data_o  = mem[rd_addr_q];

    // What is shown stays, because neither its address changes nor what is there. Said so, and not
    // of the data, because the simulator would keep a second copy of the RAM to compare it.
    `WEFT_HOLD(OutHolds, m_valid_o, m_ready_i, rd_addr_q);
    `WEFT_IMPLIES(ShownIsKept, push && m_valid_o, wr_addr_q != rd_addr_q);
  end

  `WEFT_ASSERT(CountInRange, count_q <= CountW'(Depth));
  `WEFT_IMPLIES(ReadyHasRoom, ready_q, count_q < CountW'(Depth));
  `WEFT_NEXT(RoomIsReady, 1'b1, ready_q == (count_q < CountW'(Depth)));
  `WEFT_IMPLIES(ShownIsCounted, m_valid_o, count_q != '0);

endmodule

`default_nettype wire
