// SPDX-License-Identifier: Apache-2.0
//
// CPU-M: the processor that decides whether a subgraph may run. A PicoRV32 (rv32im) with 32 KB of
// memory for code and data, and registers through which it sees the mailbox, memory (64-byte
// lines), the region table and which connections exist. It is never on the path of a running entry.
// Lines are looked at as entries while they arrive: reserved bits, and the arithmetic of a REDUCE
// (weft_math_pkg), which take the processor long.
//
// Firmware is loaded through fw_* while cpu_run_i = 0, then cpu_run_i = 1 starts it at address 0. A
// subgraph stays in the mailbox until its verdict is taken, so the CPU may be stopped and loaded
// anew at any time: it begins again with the same subgraph. Reads of MBOX and FETCH_WAIT get no
// answer before there is one: the CPU then stands still, which costs nothing, in hardware or in
// simulation. Memory map: sw/firmware/cpu_m_map.h. Code and line buffer answer at once (look-ahead
// address), registers after 2 cycles.
`default_nettype none
`include "weft_assert.svh"

module weft_cpu_m
  import weft_wire_pkg::*, weft_pkg::*, weft_math_pkg::*, weft_me_pkg::*;
#(
    parameter int unsigned NumSems    = 256,
    parameter int unsigned NumConns   = 64,
    parameter int unsigned NumPorts   = 2,
    parameter int unsigned NumRegions = 64,
    parameter int unsigned Exact      = ExactNone  // of the reducer
) (
    input  wire              clk_i,
    input  wire              rst_i,
    input  wire cfg_t        cfg_i,
    // Firmware: a word a cycle, taken only while cpu_run_i = 0.
    input  wire              fw_we_i,
    input  wire       [15:0] fw_addr_i,       // of the word
    input  wire       [31:0] fw_data_i,
    input  wire              cpu_run_i,
    output logic      [31:0] status_o,        // of the firmware; 0xEE...... when the CPU trapped
    output logic             trap_o,          // pulse
    output logic             idle_o,          // stopped, trapped, or standing at an empty mailbox
    // Mailbox: valid until the verdict is taken.
    input  wire              mbox_valid_i,
    input  wire mbox_t       mbox_i,
    output logic             verdict_valid_o,
    input  wire              verdict_ready_i,
    output verdict_t         verdict_o,
    // Lines of memory.
    output logic             fetch_valid_o,
    input  wire              fetch_ready_i,
    output line_t            fetch_line_o,
    output logic      [ 3:0] fetch_len_o,     // lines - 1
    input  wire              fetch_rvalid_i,
    input  wire              fetch_rlast_i,
    input  wire              fetch_rbad_i,
    input  wire      [511:0] fetch_rdata_i
);

  localparam int unsigned RamAddrW = 13;  // of its words: 32 KB
  localparam int unsigned RegionW = (NumRegions > 1) ? $clog2(NumRegions) : 1;
  localparam int unsigned NumLinks = NumConns * NumPorts;  // index of CfgConn
  localparam int unsigned LinkW = (NumLinks > 1) ? $clog2(NumLinks) : 1;

  // ---- the map (cpu_m_map.h): addr[31:28] chooses
  localparam logic [3:0] PageRam = 4'h0, PageRegs = 4'h4, PageLines = 4'h5;
  localparam logic [3:0] PageRegions = 4'h6, PageLinks = 4'h7;
  typedef enum logic [3:0] {
    RegMbox         = 4'd0,   // read: stands until there is a subgraph; its number
    RegMboxCount    = 4'd1,
    RegMboxAddrLo   = 4'd2,
    RegMboxAddrHi   = 4'd3,
    RegVerdictEntry = 4'd4,
    RegVerdict      = 4'd5,   // write: status, ends the subgraph in the mailbox
    RegFetchLo      = 4'd6,
    RegFetchHi      = 4'd7,
    RegFetchGo      = 4'd8,   // write: lines - 1; they go to the two halves in turn
    RegFetchWait    = 4'd9,   // read: stands until the next half is full; flaws of its lines
    RegStatus       = 4'd10,
    RegNumSems      = 4'd11,
    RegNumConns     = 4'd12,
    RegNumPorts     = 4'd13,
    RegNumRegions   = 4'd14
  } reg_e;

  // ---- the core
  logic run_q, trap, trap_q;
  logic mem_valid, mem_ready, la_read, la_write;
  logic [31:0] mem_addr, mem_wdata, mem_rdata, la_addr, la_wdata;
  logic [3:0] mem_wstrb, la_wstrb;

  picorv32 #(
      .ENABLE_COUNTERS  (0),
      .ENABLE_COUNTERS64(0),
      .BARREL_SHIFTER   (1),
      .ENABLE_FAST_MUL  (1),
      .ENABLE_DIV       (1),
      .PROGADDR_RESET   (32'h0)
  ) u_cpu (
      .clk         (clk_i),
      .resetn      (run_q),
      .trap        (trap),
      .mem_valid   (mem_valid),
      .mem_instr   (),
      .mem_ready   (mem_ready),
      .mem_addr    (mem_addr),
      .mem_wdata   (mem_wdata),
      .mem_wstrb   (mem_wstrb),
      .mem_rdata   (mem_rdata),
      .mem_la_read (la_read),
      .mem_la_write(la_write),
      .mem_la_addr (la_addr),
      .mem_la_wdata(la_wdata),
      .mem_la_wstrb(la_wstrb),
      .pcpi_valid  (),
      .pcpi_insn   (),
      .pcpi_rs1    (),
      .pcpi_rs2    (),
      .pcpi_wr     (1'b0),
      .pcpi_rd     (32'b0),
      .pcpi_wait   (1'b0),
      .pcpi_ready  (1'b0),
      .irq         (32'b0),
      .eoi         (),
      .trace_valid (),
      .trace_data  ()
  );

  // ---- code and data
  (* ram_style = "block" *) logic [31:0] ram[2**RamAddrW];
  logic [31:0] ram_q;
  logic ram_answer_q;
  wire ram_here = la_addr[31:28] == PageRam && la_addr[27:RamAddrW+2] == '0;
  wire ram_load = !run_q && fw_we_i && fw_addr_i[15:RamAddrW] == '0;
  wire [RamAddrW-1:0] ram_addr = run_q ? la_addr[RamAddrW+1:2] : fw_addr_i[RamAddrW-1:0];
  wire [3:0] ram_we = ram_load ? 4'hf : (la_write && ram_here) ? la_wstrb : 4'h0;
  wire [31:0] ram_wdata = run_q ? la_wdata : fw_data_i;

  always_ff @(posedge clk_i) begin
    if (la_read || ram_we != '0) begin
      for (int b = 0; b < 4; ++b) if (ram_we[b]) ram[ram_addr][b*8+:8] <= ram_wdata[b*8+:8];
      ram_q <= ram[ram_addr];
    end
    ram_answer_q <= run_q && (la_read || la_write) && ram_here;
  end

  // ---- lines of memory: two halves of 16
  (* ram_style = "distributed" *) logic [511:0] lines[2*BurstMax];
  logic [31:0] line_q;
  logic line_answer_q;
  logic fill_half_q, wait_half_q;
  logic [3:0] fill_line_q;
  logic [1:0] full_q;                // halves full and not yet waited for, 0..2
  logic [1:0] open_q;                // reads under way or asked for, 0..2
  logic [1:0][BurstMax-1:0] bad_q;   // the read of the line failed
  logic [1:0][BurstMax-1:0] resv_q;  // as an entry, the line has a reserved bit set
  // A page of lines: the upper half of it the lines, the lower half what is known of each.
  wire line_here = la_addr[31:28] == PageLines && la_addr[11];
  wire [511:0] line_read = lines[la_addr[10:6]];
  wire half_full = fetch_rvalid_i && fetch_rlast_i;
  wqe_t fetched;
  assign fetched = fetch_rdata_i;

  // The arithmetic of each line as a REDUCE: {common_align, error}. Written one cycle behind
  // the line, before FETCH_WAIT can be answered.
  (* ram_style = "distributed" *) logic [15:0] maths[2*BurstMax];
  logic math_we_q;
  logic [4:0] math_line_q;
  math_t math_q;

  always_ff @(posedge clk_i) begin
    math_we_q   <= fetch_rvalid_i;
    math_line_q <= {fill_half_q, fill_line_q};
    math_q <= '{
        dtype: fetched.dtype,
        to: fetched.to,
        redop: fetched.redop,
        propagate_nan: fetched.propagate_nan,
        saturate: fetched.saturate,
        exact: fetched.exact,
        nsrc: fetched.nsrc,
        own: fetched.own,
        divisor_ok: divisor_ok(fetched.scalar)
    };
    if (math_we_q)
      maths[math_line_q] <= {common_align(math_q), math_error(math_q, served_with(Exact))};
  end

  always_ff @(posedge clk_i) begin
    if (fetch_rvalid_i) lines[{fill_half_q, fill_line_q}] <= fetch_rdata_i;
    if (la_read && line_here) line_q <= line_read[la_addr[5:2]*32+:32];
    line_answer_q <= run_q && la_read && line_here;
  end

  // ---- region table and connections; the first write may fall into the walk of the bits
  typedef struct packed {
    logic  local_write;
    logic  local_read;
    addr_t base;
    addr_t limit;
  } region_t;
  cfg_region_t cfg_region;
  cfg_conn_t cfg_conn;
  assign cfg_region = cfg_i.data[$bits(cfg_region_t)-1:0];
  assign cfg_conn   = cfg_i.data[$bits(cfg_conn_t)-1:0];
  wire region_here = cfg_i.valid && cfg_i.kind == CfgRegion && 32'(cfg_i.index) < 32'(NumRegions);
  wire link_here = cfg_i.valid && cfg_i.kind == CfgConn && 32'(cfg_i.index) < 32'(NumLinks);

  logic bits_ready, region_pend_q, link_pend_q, pend_bit_q;
  logic [15:0] pend_index_q;
  logic region_valid, link_valid;
  region_t region_q;

  weft_sdpram #(
      .data_t(region_t),
      .Depth (NumRegions)
  ) u_regions (
      .clk_i,
      .we_i   (region_here),
      .waddr_i(cfg_i.index[RegionW-1:0]),
      .wdata_i({cfg_region.local_write, cfg_region.local_read, cfg_region.base, cfg_region.limit}),
      .re_i   (mem_valid),
      .raddr_i(mem_addr[RegionW+4:5]),
      .rdata_o(region_q)
  );
  weft_me_bits #(
      .Size(NumRegions)
  ) u_region_valid (
      .clk_i,
      .rst_i,
      .ready_o (bits_ready),
      .we_i    (region_pend_q && bits_ready),
      .windex_i(pend_index_q[RegionW-1:0]),
      .wbit_i  (pend_bit_q),
      .rindex_i(mem_addr[RegionW+4:5]),
      .rbit_o  (region_valid)
  );
  weft_me_bits #(
      .Size(NumLinks)
  ) u_link_valid (
      .clk_i,
      .rst_i,
      .ready_o (),  // walks in step with the other table
      .we_i    (link_pend_q && bits_ready),
      .windex_i(pend_index_q[LinkW-1:0]),
      .wbit_i  (pend_bit_q),
      .rindex_i(mem_addr[LinkW+1:2]),
      .rbit_o  (link_valid)
  );

  always_ff @(posedge clk_i) begin
    if (region_here || link_here) begin
      pend_index_q <= cfg_i.index;
      pend_bit_q   <= region_here ? cfg_region.valid : cfg_conn.valid;
    end
    if (rst_i) begin
      region_pend_q <= 1'b0;
      link_pend_q   <= 1'b0;
    end else begin
      region_pend_q <= region_here || (region_pend_q && !bits_ready);
      link_pend_q   <= link_here || (link_pend_q && !bits_ready);
    end
  end

  // ---- registers: the answer is formed one cycle after the request, in the next it is given
  logic step_q, reg_answer_q, other_here;
  logic [31:0] reg_q, reg_d, status_q, fetch_lo_q, fetch_hi_q;
  logic fetch_valid_q, verdict_valid_q;
  logic reg_ok;
  wire reg_e addressed = reg_e'(mem_addr[5:2]);
  wire writing = mem_wstrb != '0;
  assign other_here = mem_valid && !mem_ready &&
      !(mem_addr[31:28] == PageLines && mem_addr[11]) &&
      !(mem_addr[31:28] == PageRam && mem_addr[27:RamAddrW+2] == '0);

  always_comb begin
    reg_d  = '0;
    reg_ok = 1'b1;
    unique case (mem_addr[31:28])
      PageRegs:
      unique case (addressed)
        RegMbox: begin
          reg_d  = 32'(mbox_i.subgraph);
          reg_ok = mbox_valid_i && !verdict_valid_q;
        end
        RegMboxCount:  reg_d = mbox_i.count;
        RegMboxAddrLo: reg_d = mbox_i.addr[31:0];
        RegMboxAddrHi: reg_d = mbox_i.addr[63:32];
        RegVerdict:    reg_ok = !verdict_valid_q;
        RegFetchGo:    reg_ok = !fetch_valid_q;
        RegFetchWait: begin
          reg_d  = {resv_q[wait_half_q], bad_q[wait_half_q]};
          reg_ok = full_q != '0;
        end
        RegStatus:     reg_d = status_q;
        RegNumSems:    reg_d = NumSems;
        RegNumConns:   reg_d = NumConns;
        RegNumPorts:   reg_d = NumPorts;
        RegNumRegions: reg_d = NumRegions;
        default:       ;
      endcase
      PageRegions:
      unique case (mem_addr[4:2])
        3'd0: reg_d = {29'b0, region_q.local_write, region_q.local_read, region_valid};
        3'd2: reg_d = region_q.base[31:0];
        3'd3: reg_d = region_q.base[63:32];
        3'd4: reg_d = region_q.limit[31:0];
        3'd5: reg_d = region_q.limit[63:32];
        default: ;
      endcase
      PageLines: reg_d = 32'(maths[mem_addr[10:6]]);
      PageLinks: reg_d = {31'b0, link_valid};
      default:   ;  // nothing there: reads 0
    endcase
  end
  wire acts = step_q && other_here && reg_ok;
  wire reg_write = acts && writing && mem_addr[31:28] == PageRegs;
  wire go = reg_write && addressed == RegFetchGo;
  wire stands = step_q && other_here && !writing && mem_addr[31:28] == PageRegs
      && addressed == RegMbox && !reg_ok;
  wire waited = acts && !writing && mem_addr[31:28] == PageRegs && addressed == RegFetchWait;

  assign mem_ready       = ram_answer_q || line_answer_q || reg_answer_q;
  assign mem_rdata       = ram_answer_q ? ram_q : line_answer_q ? line_q : reg_q;
  assign fetch_valid_o   = fetch_valid_q;
  assign fetch_line_o    = {fetch_hi_q, fetch_lo_q[31:6]};
  assign verdict_valid_o = verdict_valid_q;

  always_ff @(posedge clk_i) begin
    if (other_here && step_q) reg_q <= reg_d;
    if (reg_write && addressed == RegVerdictEntry) verdict_o.entry <= mem_wdata;
    if (reg_write && addressed == RegVerdict) verdict_o.status <= err_e'(mem_wdata[7:0]);
    if (reg_write && addressed == RegFetchLo) fetch_lo_q <= mem_wdata;
    if (reg_write && addressed == RegFetchHi) fetch_hi_q <= mem_wdata;
    if (go) fetch_len_o <= mem_wdata[3:0];
    if (fetch_rvalid_i) begin
      // A half begins without flaws, so lines beyond a short read have none.
      if (fill_line_q == '0) begin
        bad_q[fill_half_q]  <= '0;
        resv_q[fill_half_q] <= '0;
      end
      bad_q[fill_half_q][fill_line_q]  <= fetch_rbad_i;
      resv_q[fill_half_q][fill_line_q] <= fetched.resv0 != '0;
    end
    status_o <= {trap_q ? 8'hee : status_q[31:24], status_q[23:0]};

    idle_o <= !rst_i && ((!run_q && open_q == '0) || trap_q || stands);

    if (rst_i) begin
      run_q           <= 1'b0;
      step_q          <= 1'b0;
      reg_answer_q    <= 1'b0;
      fetch_valid_q   <= 1'b0;
      verdict_valid_q <= 1'b0;
      open_q          <= '0;
      full_q          <= '0;
      fill_half_q     <= 1'b0;
      fill_line_q     <= '0;
      wait_half_q     <= 1'b0;
      status_q        <= '0;
      trap_q          <= 1'b0;
      trap_o          <= 1'b0;
    end else begin
      // A stopped CPU starts again only when no line it asked for is on its way any more.
      run_q        <= cpu_run_i && (run_q || open_q == '0);
      step_q       <= other_here && !acts;
      reg_answer_q <= acts && run_q;
      trap_q       <= trap && run_q;
      trap_o       <= trap && run_q && !trap_q;

      if (go) fetch_valid_q <= 1'b1;
      else if (fetch_ready_i) fetch_valid_q <= 1'b0;
      open_q <= open_q + 2'(go) - 2'(half_full);
      if (reg_write && addressed == RegVerdict) verdict_valid_q <= 1'b1;
      else if (verdict_ready_i) verdict_valid_q <= 1'b0;

      if (fetch_rvalid_i) fill_line_q <= fetch_rlast_i ? '0 : fill_line_q + 1'b1;
      if (!run_q && open_q == '0) begin
        full_q      <= '0;
        fill_half_q <= 1'b0;
        wait_half_q <= 1'b0;
        status_q    <= '0;
      end else begin
        full_q <= full_q + 2'(half_full) - 2'(waited);
        if (half_full) fill_half_q <= !fill_half_q;
        if (waited) wait_half_q <= !wait_half_q;
        if (reg_write && addressed == RegStatus) status_q <= mem_wdata;
      end
    end
  end

  `WEFT_IMPLIES(TwoReadsAtMost, go, open_q + full_q < 2'd2 || half_full || waited);
  `WEFT_IMPLIES(LoadWhileStopped, fw_we_i, !run_q);
  `WEFT_HOLD(VerdictHolds, verdict_valid_o, verdict_ready_i, verdict_o);

endmodule

`default_nettype wire
