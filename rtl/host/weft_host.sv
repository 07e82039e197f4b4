// SPDX-License-Identifier: Apache-2.0
//
// The node as software sees it: registers on AXI4-Lite, the express window for doorbells, the
// configuration bus, the firmware port of CPU-M, the counters and the cycle counter.
//
// A register access takes about 6 cycles; CFG_CMD, CNT_LO and FW_DATA hold the bus until they are
// done. A soft reset first takes the node's masters and transmit streams off the outside
// (isolate_o) and waits, for as long as it takes, until nothing is owed any more (drained_i); then
// it resets everything but this module. After reset, hard or soft, doorbells, configuration, CPU-M
// and arriving frames wait until all blocks have been idle for a while: a block whose table
// is being cleared is not. The register map is sw/wire/weft_regs.rdl, the rules of use are in
// docs/registers.md.
`default_nettype none
`include "weft_assert.svh"

module weft_host
  import weft_pkg::*;
  import weft_counters_pkg::*;
  import weft_regs_pkg::*;
  import weft_interface_pkg::*;
#(
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,
    parameter int unsigned NumRegions   = 64,
    parameter int unsigned NumSems      = 256,
    parameter int unsigned NumSubgraphs = 64,
    parameter int unsigned NumMsgs      = 256,
    parameter int unsigned Exact        = 0  // of the reducer, see weft_math_pkg
) (
    input  wire                            clk_i,
    input  wire                            rst_i,
    // Registers, AXI4-Lite.
    input  wire             [        15:0] s_axil_awaddr,
    input  wire                            s_axil_awvalid,
    output logic                           s_axil_awready,
    input  wire             [        31:0] s_axil_wdata,
    input  wire             [         3:0] s_axil_wstrb,
    input  wire                            s_axil_wvalid,
    output logic                           s_axil_wready,
    output logic            [         1:0] s_axil_bresp,
    output logic                           s_axil_bvalid,
    input  wire                            s_axil_bready,
    input  wire             [        15:0] s_axil_araddr,
    input  wire                            s_axil_arvalid,
    output logic                           s_axil_arready,
    output logic            [        31:0] s_axil_rdata,
    output logic            [         1:0] s_axil_rresp,
    output logic                           s_axil_rvalid,
    input  wire                            s_axil_rready,
    // Express window, AXI4 write only: see weft_host_db.
    input  wire             [        63:0] s_axi_db_awaddr,
    input  wire             [         7:0] s_axi_db_awlen,
    input  wire                            s_axi_db_awvalid,
    output logic                           s_axi_db_awready,
    input  wire             [       511:0] s_axi_db_wdata,
    input  wire             [        63:0] s_axi_db_wstrb,
    input  wire                            s_axi_db_wlast,
    input  wire                            s_axi_db_wvalid,
    output logic                           s_axi_db_wready,
    output logic            [         1:0] s_axi_db_bresp,
    output logic                           s_axi_db_bvalid,
    input  wire                            s_axi_db_bready,
    // To all blocks: configuration writes, reset, time in cycles since reset.
    output cfg_t                           cfg_o,
    output logic                           soft_rst_o,
    output logic                           isolate_o,   // masters and transmit streams: off the bus
    input  wire                            drained_i,   // ... they are, and nothing is owed to them
    output logic                           ready_o,     // no reset, all tables walked
    output logic            [        63:0] now_o,
    // To the message engine: doorbells (valid and data hold until ready), firmware words, control.
    output logic                           db_valid_o,
    input  wire                            db_ready_i,
    output logic            [       511:0] db_o,
    output logic                           fw_we_o,
    output logic            [        15:0] fw_addr_o,
    output logic            [        31:0] fw_data_o,
    output logic                           cpu_run_o,
    input  wire             [        31:0] cpu_status_i,
    // Events and states of all blocks.
    input  wire cnt_me_t                   cnt_me_i,
    input  wire cnt_nmc_t                  cnt_nmc_i,
    input  wire cnt_core_t                 cnt_core_i,
    input  wire cnt_port_t  [NumPorts-1:0] cnt_port_i,
    input  wire                            idle_me_i,
    input  wire                            idle_core_i,
    input  wire             [NumPorts-1:0] idle_ports_i,
    // No doorbell or configuration write inside, and no reset under way.
    output logic                           idle_o
);

  localparam int unsigned NumCounters = CntNodeCount + NumPorts * CntPortCount;
  localparam int unsigned SoftCycles = 16;  // length of a soft reset
  // Cycles in a row in which every block must be idle behind a reset. More than any block's idle
  // signal may lag behind the begin of its walk.
  localparam int unsigned RestCycles = 32;
  // What the slowest block needs to take a connection in: the receive path walks its paths in two
  // tables that others write to at the same time, the core clears the window of its messages.
  localparam int unsigned WalkPaths = 32 + 4 * PathsPerPort;
  localparam int unsigned WalkWindow = 16 + weft_wire_pkg::MSG_WINDOW;
  localparam int unsigned ConnGap = WalkPaths > WalkWindow ? WalkPaths : WalkWindow;

  if (NumPorts > 16) begin : gen_bad_ports
    $error("weft_host: NumPorts must be 1 to 16");
  end
  if (NumConns > 65535 || PathsPerPort > 255 || NumRegions > 65535 || NumSems > 65535
      || NumSubgraphs > 65535 || NumMsgs > 65535) begin : gen_bad_caps
    $error("weft_host: a size does not fit its field in CAPS0..CAPS2");
  end

  weft_regs__in_t  hwif_in;
  weft_regs__out_t hwif_out;

  // ---- reset and time
  typedef enum logic [1:0] {
    StInit,   // until every block is at rest: tables are walked
    StRun,
    StDrain,  // nothing new goes out, what is owed comes in
    StReset   // all blocks in reset, still off the bus
  } state_e;

  state_e state_q;
  logic [$clog2(SoftCycles)-1:0] soft_q;  // cycles of reset so far
  logic [$clog2(RestCycles)-1:0] rest_q;  // cycles of rest so far
  logic soft_rst_q, isolate_q, ready_q;
  logic blocks_rest_q;
  logic [63:0] now_q  /* verilator public_flat_rw */;  // a simulator at rest sets it forward

  always_ff @(posedge clk_i) begin
    blocks_rest_q <= idle_me_i && idle_core_i && (&idle_ports_i);
    if (rst_i) begin
      state_q    <= StInit;
      soft_q     <= '0;
      rest_q     <= '0;
      soft_rst_q <= 1'b0;
      isolate_q  <= 1'b0;
      ready_q    <= 1'b0;
      now_q      <= '0;
    end else begin
      now_q      <= now_q + 1'b1;
      soft_rst_q <= state_q == StReset;
      isolate_q  <= state_q == StDrain || state_q == StReset;
      ready_q    <= state_q == StRun && !hwif_out.CTRL.soft_reset.value;
      soft_q     <= state_q == StReset ? soft_q + 1'b1 : '0;
      rest_q     <= state_q == StInit && blocks_rest_q ? rest_q + 1'b1 : '0;
      unique case (state_q)
        StInit:  if (rest_q == '1) state_q <= StRun;
        StRun:   ;
        StDrain: if (isolate_q && drained_i) state_q <= StReset;
        StReset: if (soft_q == '1) state_q <= StInit;
        default: state_q <= StInit;
      endcase
      // Also behind a reset that is not over yet. One that drains or resets is the one asked for.
      if (hwif_out.CTRL.soft_reset.value && (state_q == StInit || state_q == StRun)) begin
        state_q <= StDrain;
      end
    end
  end

  assign soft_rst_o = soft_rst_q;
  assign isolate_o  = isolate_q;
  assign ready_o    = ready_q;
  assign now_o      = now_q;
  assign cpu_run_o  = hwif_out.CTRL.cpu_run.value && ready_q;

  // ---- configuration bus
  logic [511:0] cfg_data;
  logic cfg_busy_q;
  wire cfg_cmd = hwif_out.CFG_CMD.req && hwif_out.CFG_CMD.req_is_wr;

  for (genvar i = 0; i < 16; i++) begin : gen_cfg_data
    assign cfg_data[32*i+:32] = hwif_out.CFG_DATA[i].value.value;
  end

  weft_host_cfg #(
      .ConnGap(ConnGap)
  ) u_cfg (
      .clk_i,
      .rst_i,
      .hold_i     (!ready_q),
      .cmd_valid_i(cfg_cmd),
      .cmd_kind_i (hwif_out.CFG_CMD.wr_data.kind),
      .cmd_index_i(hwif_out.CFG_CMD.wr_data.index),
      .data_i     (cfg_data),
      .cmd_done_o (hwif_in.CFG_CMD.wr_ack),
      .cfg_o
  );

  always_ff @(posedge clk_i) begin
    if (rst_i || cfg_o.valid) cfg_busy_q <= 1'b0;
    else if (cfg_cmd) cfg_busy_q <= 1'b1;
  end

  // ---- doorbells
  logic db_idle, db_taken, db_refused;

  weft_host_db u_db (
      .clk_i,
      .rst_i,
      .flush_i      (!ready_q),
      .s_axi_awaddr (s_axi_db_awaddr),
      .s_axi_awlen  (s_axi_db_awlen),
      .s_axi_awvalid(s_axi_db_awvalid),
      .s_axi_awready(s_axi_db_awready),
      .s_axi_wdata  (s_axi_db_wdata),
      .s_axi_wstrb  (s_axi_db_wstrb),
      .s_axi_wlast  (s_axi_db_wlast),
      .s_axi_wvalid (s_axi_db_wvalid),
      .s_axi_wready (s_axi_db_wready),
      .s_axi_bresp  (s_axi_db_bresp),
      .s_axi_bvalid (s_axi_db_bvalid),
      .s_axi_bready (s_axi_db_bready),
      .db_valid_o,
      .db_ready_i,
      .db_o,
      .idle_o       (db_idle),
      .taken_o      (db_taken),
      .refused_o    (db_refused)
  );

  // ---- firmware words
  logic fw_we_q;
  logic [31:0] fw_data_q;

  always_ff @(posedge clk_i) begin
    if (hwif_out.FW_DATA.req) fw_data_q <= hwif_out.FW_DATA.wr_data.value;
    if (rst_i) fw_we_q <= 1'b0;
    else fw_we_q <= hwif_out.FW_DATA.req && hwif_out.FW_DATA.req_is_wr;
  end

  assign fw_we_o                   = fw_we_q;
  assign fw_data_o                 = fw_data_q;
  assign fw_addr_o                 = hwif_out.FW_ADDR.addr.value;
  assign hwif_in.FW_DATA.wr_ack    = fw_we_q;
  assign hwif_in.FW_ADDR.addr.we   = fw_we_q;
  assign hwif_in.FW_ADDR.addr.next = hwif_out.FW_ADDR.addr.value + 1'b1;

  // ---- counters
  cnt_node_t cnt_node;
  logic [63:0] cnt_value;
  logic cnt_done;

  assign cnt_node.host.doorbells         = db_taken;
  assign cnt_node.host.doorbells_refused = db_refused;
  assign cnt_node.host.cfg_writes        = cfg_o.valid;
  assign cnt_node.host.fw_writes         = fw_we_q;
  assign cnt_node.me                     = cnt_me_i;
  assign cnt_node.nmc                    = cnt_nmc_i;
  assign cnt_node.core                   = cnt_core_i;

  weft_counters #(
      .NumPorts(NumPorts)
  ) u_counters (
      .clk_i,
      .rst_i,
      .node_i    (cnt_node),
      .port_i    (cnt_port_i),
      .rd_valid_i(hwif_out.CNT_LO.req && !hwif_out.CNT_LO.req_is_wr),
      .rd_index_i(hwif_out.CNT_SEL.index.value),
      .rd_done_o (cnt_done),
      .rd_value_o(cnt_value)
  );

  assign hwif_in.CNT_LO.rd_ack        = cnt_done;
  assign hwif_in.CNT_LO.rd_data.value = cnt_value[31:0];
  assign hwif_in.CNT_HI.value.next    = cnt_value[63:32];

  // ---- what can only be read
  logic [31:0] cycles_hi_q;
  logic idle_me_q, idle_core_q, idle_host_q;
  logic [15:0] idle_ports_q;
  logic [31:0] cpu_status_q;

  always_ff @(posedge clk_i) begin
    if (hwif_out.CYCLES_LO.value.swacc) cycles_hi_q <= now_q[63:32];
    idle_me_q    <= idle_me_i;
    idle_core_q  <= idle_core_i;
    idle_host_q  <= db_idle && !cfg_busy_q;
    idle_ports_q <= 16'(idle_ports_i);
    cpu_status_q <= cpu_status_i;
  end

  assign hwif_in.INTERFACE.hash.next       = InterfaceHash;
  assign hwif_in.CAPS0.num_ports.next      = 8'(NumPorts);
  assign hwif_in.CAPS0.paths_per_port.next = 8'(PathsPerPort);
  assign hwif_in.CAPS0.num_conns.next      = 16'(NumConns);
  assign hwif_in.CAPS1.num_regions.next    = 16'(NumRegions);
  assign hwif_in.CAPS1.num_sems.next       = 16'(NumSems);
  assign hwif_in.CAPS2.num_subgraphs.next  = 16'(NumSubgraphs);
  assign hwif_in.CAPS2.num_msgs.next       = 16'(NumMsgs);
  assign hwif_in.CAPS3.num_counters.next   = 16'(NumCounters);
  assign hwif_in.CAPS3.exact_sums.next     = 2'(Exact);
  assign hwif_in.CPU_STATUS.value.next     = cpu_status_q;
  assign idle_o = idle_host_q && ready_q;

  assign hwif_in.IDLE.me.next              = idle_me_q;
  assign hwif_in.IDLE.core.next            = idle_core_q;
  assign hwif_in.IDLE.host.next            = idle_host_q;
  assign hwif_in.IDLE.reset_done.next      = ready_q;
  assign hwif_in.IDLE.draining.next        = state_q == StDrain;
  assign hwif_in.IDLE.ports.next           = idle_ports_q;
  assign hwif_in.CYCLES_LO.value.next      = now_q[31:0];
  assign hwif_in.CYCLES_HI.value.next      = cycles_hi_q;

  weft_regs u_regs (
      .clk          (clk_i),
      .rst          (rst_i),
      .s_axil_awprot(3'b000),
      .s_axil_arprot(3'b000),
      .s_axil_awready,
      .s_axil_awvalid,
      .s_axil_awaddr,
      .s_axil_wready,
      .s_axil_wvalid,
      .s_axil_wdata,
      .s_axil_wstrb,
      .s_axil_bready,
      .s_axil_bvalid,
      .s_axil_bresp,
      .s_axil_arready,
      .s_axil_arvalid,
      .s_axil_araddr,
      .s_axil_rready,
      .s_axil_rvalid,
      .s_axil_rdata,
      .s_axil_rresp,
      .hwif_in,
      .hwif_out
  );

  `WEFT_IMPLIES(ResetOffTheBus, soft_rst_o, isolate_o && drained_i);
  `WEFT_NEXT(DoorbellHolds, db_valid_o && !db_ready_i && ready_q,
             !ready_q || (db_valid_o && $stable(db_o)));

endmodule

`default_nettype wire
