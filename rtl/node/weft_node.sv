// SPDX-License-Identifier: Apache-2.0
// A whole node: host interface, message engine, reducer, shared core of the transport and a slice
// for each port. All memories are behind AXI masters; joining them is the business of the board or
// the simulator. One clock; soft reset by register, which first takes every master and every frame
// stream off the outside (weft_axi_isolate_*, weft_axis_*). See docs/architecture.md.
`default_nettype none
module weft_node
  import weft_pkg::*;
  import weft_wire_pkg::*;
  import weft_counters_pkg::*;
#(
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8,    // of each connection
    parameter int unsigned NumRegions   = 64,
    parameter int unsigned NumSems      = 256,
    parameter int unsigned NumSubgraphs = 64,
    parameter int unsigned NumMsgs      = 256,  // messages in flight
    parameter int unsigned PoolDepth    = 1024,  // unsettled packets a port
    parameter int unsigned Exact        = weft_math_pkg::ExactNone,  // the reducer's exact sums
    parameter int unsigned Multipliers  = 1  // ... and multipliers for each word, 1 or 2
) (
    input  wire  clk_i,
    input  wire  rst_i,
    // Registers, AXI4-Lite.
    input  wire  [15:0] s_axil_awaddr,
    input  wire  s_axil_awvalid,
    output logic s_axil_awready,
    input  wire  [31:0] s_axil_wdata,
    input  wire  [3:0] s_axil_wstrb,
    input  wire  s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  wire  s_axil_bready,
    input  wire  [15:0] s_axil_araddr,
    input  wire  s_axil_arvalid,
    output logic s_axil_arready,
    output logic [31:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid,
    input  wire  s_axil_rready,
    // Doorbells: 64-byte writes, AXI4.
    input  wire  [63:0] s_axi_db_awaddr,
    input  wire  [7:0] s_axi_db_awlen,
    input  wire  s_axi_db_awvalid,
    output logic s_axi_db_awready,
    input  wire  [511:0] s_axi_db_wdata,
    input  wire  [63:0] s_axi_db_wstrb,
    input  wire  s_axi_db_wlast,
    input  wire  s_axi_db_wvalid,
    output logic s_axi_db_wready,
    output logic [1:0] s_axi_db_bresp,
    output logic s_axi_db_bvalid,
    input  wire  s_axi_db_bready,
    // Payload reads and placement writes, AXI4, one each a port.
    output logic [NumPorts-1:0][63:0] m_axi_tx_araddr,
    output logic [NumPorts-1:0][7:0] m_axi_tx_arlen,
    output logic [NumPorts-1:0] m_axi_tx_arvalid,
    input  wire  [NumPorts-1:0] m_axi_tx_arready,
    input  wire  [NumPorts-1:0][511:0] m_axi_tx_rdata,
    input  wire  [NumPorts-1:0][1:0] m_axi_tx_rresp,
    input  wire  [NumPorts-1:0] m_axi_tx_rlast,
    input  wire  [NumPorts-1:0] m_axi_tx_rvalid,
    output logic [NumPorts-1:0] m_axi_tx_rready,
    output logic [NumPorts-1:0][63:0] m_axi_rx_awaddr,
    output logic [NumPorts-1:0][7:0] m_axi_rx_awlen,
    output logic [NumPorts-1:0] m_axi_rx_awvalid,
    input  wire  [NumPorts-1:0] m_axi_rx_awready,
    output logic [NumPorts-1:0][511:0] m_axi_rx_wdata,
    output logic [NumPorts-1:0][63:0] m_axi_rx_wstrb,
    output logic [NumPorts-1:0] m_axi_rx_wlast,
    output logic [NumPorts-1:0] m_axi_rx_wvalid,
    input  wire  [NumPorts-1:0] m_axi_rx_wready,
    input  wire  [NumPorts-1:0][1:0] m_axi_rx_bresp,
    input  wire  [NumPorts-1:0] m_axi_rx_bvalid,
    output logic [NumPorts-1:0] m_axi_rx_bready,
    // Work-queue entries and completions, AXI4.
    output logic [63:0] m_axi_me_araddr,
    output logic [7:0] m_axi_me_arlen,
    output logic m_axi_me_arvalid,
    input  wire  m_axi_me_arready,
    input  wire  [511:0] m_axi_me_rdata,
    input  wire  [1:0] m_axi_me_rresp,
    input  wire  m_axi_me_rlast,
    input  wire  m_axi_me_rvalid,
    output logic m_axi_me_rready,
    output logic [63:0] m_axi_me_awaddr,
    output logic [7:0] m_axi_me_awlen,
    output logic m_axi_me_awvalid,
    input  wire  m_axi_me_awready,
    output logic [511:0] m_axi_me_wdata,
    output logic [63:0] m_axi_me_wstrb,
    output logic m_axi_me_wlast,
    output logic m_axi_me_wvalid,
    input  wire  m_axi_me_wready,
    input  wire  [1:0] m_axi_me_bresp,
    input  wire  m_axi_me_bvalid,
    output logic m_axi_me_bready,
    // Reducer, AXI4: two sources, one destination.
    output logic [63:0] m_axi_nmc_a_araddr,
    output logic [7:0] m_axi_nmc_a_arlen,
    output logic m_axi_nmc_a_arvalid,
    input  wire  m_axi_nmc_a_arready,
    input  wire  [1023:0] m_axi_nmc_a_rdata,
    input  wire  [1:0] m_axi_nmc_a_rresp,
    input  wire  m_axi_nmc_a_rlast,
    input  wire  m_axi_nmc_a_rvalid,
    output logic m_axi_nmc_a_rready,
    output logic [63:0] m_axi_nmc_b_araddr,
    output logic [7:0] m_axi_nmc_b_arlen,
    output logic m_axi_nmc_b_arvalid,
    input  wire  m_axi_nmc_b_arready,
    input  wire  [1023:0] m_axi_nmc_b_rdata,
    input  wire  [1:0] m_axi_nmc_b_rresp,
    input  wire  m_axi_nmc_b_rlast,
    input  wire  m_axi_nmc_b_rvalid,
    output logic m_axi_nmc_b_rready,
    output logic [63:0] m_axi_nmc_w_awaddr,
    output logic [7:0] m_axi_nmc_w_awlen,
    output logic m_axi_nmc_w_awvalid,
    input  wire  m_axi_nmc_w_awready,
    output logic [1023:0] m_axi_nmc_w_wdata,
    output logic [127:0] m_axi_nmc_w_wstrb,
    output logic m_axi_nmc_w_wlast,
    output logic m_axi_nmc_w_wvalid,
    input  wire  m_axi_nmc_w_wready,
    input  wire  [1:0] m_axi_nmc_w_bresp,
    input  wire  m_axi_nmc_w_bvalid,
    output logic m_axi_nmc_w_bready,
    // MACs. The receiving side cannot be held back.
    output logic [NumPorts-1:0][511:0] m_axis_tx_tdata,
    output logic [NumPorts-1:0][63:0] m_axis_tx_tkeep,
    output logic [NumPorts-1:0] m_axis_tx_tlast,
    output logic [NumPorts-1:0] m_axis_tx_tvalid,
    input  wire  [NumPorts-1:0] m_axis_tx_tready,
    input  wire  [NumPorts-1:0][511:0] s_axis_rx_tdata,
    input  wire  [NumPorts-1:0][63:0] s_axis_rx_tkeep,
    input  wire  [NumPorts-1:0] s_axis_rx_tlast,
    input  wire  [NumPorts-1:0] s_axis_rx_tvalid,
    input  wire  [NumPorts-1:0] s_axis_rx_tuser,
    // For observers; no logic depends on them.
    output me_trace_t me_trace_o,
    output logic idle_o
);
  if (NumPorts < 1) begin : gen_bad_ports
    $error("weft_node: NumPorts must be 1 or more");
  end
  if (NumConns < 2 || NumConns > 4096 || NumConns != 2 ** $clog2(NumConns)) begin : gen_bad_conns
    $error("weft_node: NumConns must be a power of two, 2 to 4096");
  end
  if (PathsPerPort < 2 || PathsPerPort != 2 ** $clog2(PathsPerPort)) begin : gen_bad_paths
    $error("weft_node: PathsPerPort must be a power of two, 2 or more");
  end
  if (NumPorts * PathsPerPort > 256) begin : gen_bad_path_numbers
    $error("weft_node: NumPorts * PathsPerPort must be 256 at most, paths have 8 bits on the wire");
  end
  if (NumRegions < 2 || NumRegions != 2 ** $clog2(NumRegions)) begin : gen_bad_regions
    $error("weft_node: NumRegions must be a power of two, 2 or more");
  end
  if (NumSems < 1 || NumSems > 65536) begin : gen_bad_sems
    $error("weft_node: NumSems must be 1 to 65536, semaphores have 16 bits on the wire");
  end

  cfg_t cfg;
  logic soft_rst, isolate, drained_q, ready;
  logic [63:0] now;

  // The soft reset reaches every block but the registers.
  wire core_rst = rst_i || soft_rst;

  // ---- host interface ---------------------------------------------------------------------------
  logic db_valid, db_ready, fw_we, cpu_run;
  logic [511:0] db;
  logic [15:0] fw_addr;
  logic [31:0] fw_data, cpu_status;
  cnt_port_t [NumPorts-1:0] cnt_port;
  cnt_me_t cnt_me;
  cnt_nmc_t cnt_nmc;
  cnt_core_t cnt_core;
  logic me_idle, core_idle, host_idle;
  logic [NumPorts-1:0] port_idle;

  weft_host #(
      .NumPorts(NumPorts),
      .NumConns(NumConns),
      .PathsPerPort(PathsPerPort),
      .NumRegions(NumRegions),
      .NumSems(NumSems),
      .NumSubgraphs(NumSubgraphs),
      .NumMsgs(NumMsgs),
      .Exact(Exact)
  ) u_host (
      .clk_i,
      .rst_i,
      .s_axil_awaddr,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wdata,
      .s_axil_wstrb,
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready,
      .s_axil_araddr,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready,
      .s_axi_db_awaddr,
      .s_axi_db_awlen,
      .s_axi_db_awvalid,
      .s_axi_db_awready,
      .s_axi_db_wdata,
      .s_axi_db_wstrb,
      .s_axi_db_wlast,
      .s_axi_db_wvalid,
      .s_axi_db_wready,
      .s_axi_db_bresp,
      .s_axi_db_bvalid,
      .s_axi_db_bready,
      .cfg_o(cfg),
      .soft_rst_o(soft_rst),
      .isolate_o(isolate),
      .drained_i(drained_q),
      .ready_o(ready),
      .now_o(now),
      .db_valid_o(db_valid),
      .db_ready_i(db_ready),
      .db_o(db),
      .fw_we_o(fw_we),
      .fw_addr_o(fw_addr),
      .fw_data_o(fw_data),
      .cpu_run_o(cpu_run),
      .cpu_status_i(cpu_status),
      .cnt_me_i(cnt_me),
      .cnt_nmc_i(cnt_nmc),
      .cnt_core_i(cnt_core),
      .cnt_port_i(cnt_port),
      .idle_me_i(me_idle),
      .idle_core_i(core_idle),
      .idle_ports_i(port_idle),
      .idle_o(host_idle)
  );

  // ---- masters and streams between a block and the outside --------------------------------------
  logic [NumPorts-1:0] tx_arvalid, tx_arready, tx_rvalid, tx_rready;
  logic [NumPorts-1:0] rx_awvalid, rx_awready, rx_wvalid, rx_wready, rx_wlast, rx_bvalid, rx_bready;
  logic [NumPorts-1:0][KeepW-1:0] rx_wstrb;
  logic [NumPorts-1:0] mac_tvalid, mac_tready, arriving, shut_out;
  logic me_arvalid, me_arready, me_rvalid, me_rready;
  logic me_awvalid, me_awready, me_wvalid, me_wready, me_wlast, me_bvalid, me_bready, me_blank;
  logic [KeepW-1:0] me_wstrb;
  logic nmc_a_arvalid, nmc_a_arready, nmc_a_rvalid, nmc_a_rready;
  logic nmc_b_arvalid, nmc_b_arready, nmc_b_rvalid, nmc_b_rready;
  logic nmc_w_awvalid, nmc_w_awready, nmc_w_wvalid, nmc_w_wready, nmc_w_wlast;
  logic nmc_w_bvalid, nmc_w_bready, nmc_w_blank;
  logic [NmcW/8-1:0] nmc_w_wstrb;
  cnt_port_t [NumPorts-1:0] cnt_of_port;

  logic [NumPorts-1:0] tx_drained, rx_drained, mac_drained;
  logic me_rd_drained, me_wr_drained, nmc_a_drained, nmc_b_drained, nmc_w_drained;
  always_ff @(posedge clk_i) begin
    drained_q <= !rst_i && (&tx_drained) && (&rx_drained) && (&mac_drained) && me_rd_drained &&
        me_wr_drained && nmc_a_drained && nmc_b_drained && nmc_w_drained;
  end

  weft_axi_isolate_rd u_me_rd (
      .clk_i,
      .rst_i,
      .isolate_i(isolate),
      .drained_o(me_rd_drained),
      .s_axi_arvalid(me_arvalid),
      .s_axi_arready(me_arready),
      .s_axi_rvalid(me_rvalid),
      .s_axi_rready(me_rready),
      .m_axi_arvalid(m_axi_me_arvalid),
      .m_axi_arready(m_axi_me_arready),
      .m_axi_rvalid(m_axi_me_rvalid),
      .m_axi_rlast(m_axi_me_rlast),
      .m_axi_rready(m_axi_me_rready)
  );
  weft_axi_isolate_wr u_me_wr (
      .clk_i,
      .rst_i,
      .isolate_i(isolate),
      .drained_o(me_wr_drained),
      .blank_o(me_blank),
      .s_axi_awlen(m_axi_me_awlen),
      .s_axi_awvalid(me_awvalid),
      .s_axi_awready(me_awready),
      .s_axi_wlast(me_wlast),
      .s_axi_wvalid(me_wvalid),
      .s_axi_wready(me_wready),
      .s_axi_bvalid(me_bvalid),
      .s_axi_bready(me_bready),
      .m_axi_awvalid(m_axi_me_awvalid),
      .m_axi_awready(m_axi_me_awready),
      .m_axi_wlast(m_axi_me_wlast),
      .m_axi_wvalid(m_axi_me_wvalid),
      .m_axi_wready(m_axi_me_wready),
      .m_axi_bvalid(m_axi_me_bvalid),
      .m_axi_bready(m_axi_me_bready)
  );
  assign m_axi_me_wstrb = me_wstrb & {$bits(me_wstrb){!me_blank}};
  weft_axi_isolate_rd u_nmc_a (
      .clk_i,
      .rst_i,
      .isolate_i(isolate),
      .drained_o(nmc_a_drained),
      .s_axi_arvalid(nmc_a_arvalid),
      .s_axi_arready(nmc_a_arready),
      .s_axi_rvalid(nmc_a_rvalid),
      .s_axi_rready(nmc_a_rready),
      .m_axi_arvalid(m_axi_nmc_a_arvalid),
      .m_axi_arready(m_axi_nmc_a_arready),
      .m_axi_rvalid(m_axi_nmc_a_rvalid),
      .m_axi_rlast(m_axi_nmc_a_rlast),
      .m_axi_rready(m_axi_nmc_a_rready)
  );
  weft_axi_isolate_rd u_nmc_b (
      .clk_i,
      .rst_i,
      .isolate_i(isolate),
      .drained_o(nmc_b_drained),
      .s_axi_arvalid(nmc_b_arvalid),
      .s_axi_arready(nmc_b_arready),
      .s_axi_rvalid(nmc_b_rvalid),
      .s_axi_rready(nmc_b_rready),
      .m_axi_arvalid(m_axi_nmc_b_arvalid),
      .m_axi_arready(m_axi_nmc_b_arready),
      .m_axi_rvalid(m_axi_nmc_b_rvalid),
      .m_axi_rlast(m_axi_nmc_b_rlast),
      .m_axi_rready(m_axi_nmc_b_rready)
  );
  weft_axi_isolate_wr u_nmc_w (
      .clk_i,
      .rst_i,
      .isolate_i(isolate),
      .drained_o(nmc_w_drained),
      .blank_o(nmc_w_blank),
      .s_axi_awlen(m_axi_nmc_w_awlen),
      .s_axi_awvalid(nmc_w_awvalid),
      .s_axi_awready(nmc_w_awready),
      .s_axi_wlast(nmc_w_wlast),
      .s_axi_wvalid(nmc_w_wvalid),
      .s_axi_wready(nmc_w_wready),
      .s_axi_bvalid(nmc_w_bvalid),
      .s_axi_bready(nmc_w_bready),
      .m_axi_awvalid(m_axi_nmc_w_awvalid),
      .m_axi_awready(m_axi_nmc_w_awready),
      .m_axi_wlast(m_axi_nmc_w_wlast),
      .m_axi_wvalid(m_axi_nmc_w_wvalid),
      .m_axi_wready(m_axi_nmc_w_wready),
      .m_axi_bvalid(m_axi_nmc_w_bvalid),
      .m_axi_bready(m_axi_nmc_w_bready)
  );
  assign m_axi_nmc_w_wstrb = nmc_w_wstrb & {$bits(nmc_w_wstrb){!nmc_w_blank}};

  for (genvar p = 0; p < NumPorts; p++) begin : gen_edge
    logic rx_blank;
    weft_axi_isolate_rd u_tx (
        .clk_i,
        .rst_i,
        .isolate_i(isolate),
        .drained_o(tx_drained[p]),
        .s_axi_arvalid(tx_arvalid[p]),
        .s_axi_arready(tx_arready[p]),
        .s_axi_rvalid(tx_rvalid[p]),
        .s_axi_rready(tx_rready[p]),
        .m_axi_arvalid(m_axi_tx_arvalid[p]),
        .m_axi_arready(m_axi_tx_arready[p]),
        .m_axi_rvalid(m_axi_tx_rvalid[p]),
        .m_axi_rlast(m_axi_tx_rlast[p]),
        .m_axi_rready(m_axi_tx_rready[p])
    );
    weft_axi_isolate_wr u_rx (
        .clk_i,
        .rst_i,
        .isolate_i(isolate),
        .drained_o(rx_drained[p]),
        .blank_o(rx_blank),
        .s_axi_awlen(m_axi_rx_awlen[p]),
        .s_axi_awvalid(rx_awvalid[p]),
        .s_axi_awready(rx_awready[p]),
        .s_axi_wlast(rx_wlast[p]),
        .s_axi_wvalid(rx_wvalid[p]),
        .s_axi_wready(rx_wready[p]),
        .s_axi_bvalid(rx_bvalid[p]),
        .s_axi_bready(rx_bready[p]),
        .m_axi_awvalid(m_axi_rx_awvalid[p]),
        .m_axi_awready(m_axi_rx_awready[p]),
        .m_axi_wlast(m_axi_rx_wlast[p]),
        .m_axi_wvalid(m_axi_rx_wvalid[p]),
        .m_axi_wready(m_axi_rx_wready[p]),
        .m_axi_bvalid(m_axi_rx_bvalid[p]),
        .m_axi_bready(m_axi_rx_bready[p])
    );
    assign m_axi_rx_wstrb[p] = rx_wstrb[p] & {$bits(rx_wstrb[p]){!rx_blank}};
    weft_axis_isolate u_mac_tx (
        .clk_i,
        .rst_i,
        .isolate_i(isolate),
        .drained_o(mac_drained[p]),
        .s_axis_tvalid(mac_tvalid[p]),
        .s_axis_tready(mac_tready[p]),
        .s_axis_tlast(m_axis_tx_tlast[p]),
        .m_axis_tvalid(m_axis_tx_tvalid[p]),
        .m_axis_tready(m_axis_tx_tready[p])
    );
    // Shut while the blocks are reset and their tables walked; not while masters drain, since what
    // arrives then is judged as ever.
    weft_axis_gate u_mac_rx (
        .clk_i,
        .rst_i,
        .shut_i(soft_rst || (!ready && !isolate)),
        .dropped_o(shut_out[p]),
        .s_axis_tvalid(s_axis_rx_tvalid[p]),
        .s_axis_tlast(s_axis_rx_tlast[p]),
        .m_axis_tvalid(arriving[p])
    );
    // A frame kept out is one that found no buffer; the receive path drops nothing meanwhile.
    always_comb begin
      cnt_port[p] = cnt_of_port[p];
      cnt_port[p].rx.frames = cnt_of_port[p].rx.frames || shut_out[p];
      cnt_port[p].drop[DropOverflow] = cnt_of_port[p].drop[DropOverflow] || shut_out[p];
    end
  end

  // ---- message engine and reducer ---------------------------------------------------------------
  logic req_valid, req_ready, cpl_valid, cpl_ready, sig_valid, sig_ready;
  logic nmc_req_valid, nmc_req_ready, nmc_cpl_valid, nmc_cpl_ready;
  tx_req_t req;
  cpl_t cpl, nmc_cpl;
  signal_t sig;
  nmc_req_t nmc_req;

  weft_me #(
      .NumPorts(NumPorts),
      .NumConns(NumConns),
      .NumRegions(NumRegions),
      .NumSems(NumSems),
      .NumSubgraphs(NumSubgraphs),
      .Exact(Exact)
  ) u_me (
      .clk_i,
      .rst_i(core_rst),
      .cfg_i(cfg),
      .now_i(now),
      .db_valid_i(db_valid),
      .db_ready_o(db_ready),
      .db_i(db),
      .req_valid_o(req_valid),
      .req_ready_i(req_ready),
      .req_o(req),
      .cpl_valid_i(cpl_valid),
      .cpl_ready_o(cpl_ready),
      .cpl_i(cpl),
      .nmc_req_valid_o(nmc_req_valid),
      .nmc_req_ready_i(nmc_req_ready),
      .nmc_req_o(nmc_req),
      .nmc_cpl_valid_i(nmc_cpl_valid),
      .nmc_cpl_ready_o(nmc_cpl_ready),
      .nmc_cpl_i(nmc_cpl),
      .sig_valid_i(sig_valid),
      .sig_ready_o(sig_ready),
      .sig_i(sig),
      .m_axi_araddr(m_axi_me_araddr),
      .m_axi_arlen(m_axi_me_arlen),
      .m_axi_arvalid(me_arvalid),
      .m_axi_arready(me_arready),
      .m_axi_rdata(m_axi_me_rdata),
      .m_axi_rresp(m_axi_me_rresp),
      .m_axi_rlast(m_axi_me_rlast),
      .m_axi_rvalid(me_rvalid),
      .m_axi_rready(me_rready),
      .m_axi_awaddr(m_axi_me_awaddr),
      .m_axi_awlen(m_axi_me_awlen),
      .m_axi_awvalid(me_awvalid),
      .m_axi_awready(me_awready),
      .m_axi_wdata(m_axi_me_wdata),
      .m_axi_wstrb(me_wstrb),
      .m_axi_wlast(me_wlast),
      .m_axi_wvalid(me_wvalid),
      .m_axi_wready(me_wready),
      .m_axi_bresp(m_axi_me_bresp),
      .m_axi_bvalid(me_bvalid),
      .m_axi_bready(me_bready),
      .fw_we_i(fw_we),
      .fw_addr_i(fw_addr),
      .fw_data_i(fw_data),
      .cpu_run_i(cpu_run),
      .cpu_status_o(cpu_status),
      .trace_o(me_trace_o),
      .cnt_o(cnt_me),
      .idle_o(me_idle)
  );

  weft_nmc #(
      .Exact      (Exact),
      .Multipliers(Multipliers)
  ) u_nmc (
      .clk_i,
      .rst_i(core_rst),
      .req_valid_i(nmc_req_valid),
      .req_ready_o(nmc_req_ready),
      .req_i(nmc_req),
      .cpl_valid_o(nmc_cpl_valid),
      .cpl_ready_i(nmc_cpl_ready),
      .cpl_o(nmc_cpl),
      .cpl_cycles_o(),  // the engine's trace times entries
      .m_axi_a_araddr(m_axi_nmc_a_araddr),
      .m_axi_a_arlen(m_axi_nmc_a_arlen),
      .m_axi_a_arvalid(nmc_a_arvalid),
      .m_axi_a_arready(nmc_a_arready),
      .m_axi_a_rdata(m_axi_nmc_a_rdata),
      .m_axi_a_rresp(m_axi_nmc_a_rresp),
      .m_axi_a_rlast(m_axi_nmc_a_rlast),
      .m_axi_a_rvalid(nmc_a_rvalid),
      .m_axi_a_rready(nmc_a_rready),
      .m_axi_b_araddr(m_axi_nmc_b_araddr),
      .m_axi_b_arlen(m_axi_nmc_b_arlen),
      .m_axi_b_arvalid(nmc_b_arvalid),
      .m_axi_b_arready(nmc_b_arready),
      .m_axi_b_rdata(m_axi_nmc_b_rdata),
      .m_axi_b_rresp(m_axi_nmc_b_rresp),
      .m_axi_b_rlast(m_axi_nmc_b_rlast),
      .m_axi_b_rvalid(nmc_b_rvalid),
      .m_axi_b_rready(nmc_b_rready),
      .m_axi_w_awaddr(m_axi_nmc_w_awaddr),
      .m_axi_w_awlen(m_axi_nmc_w_awlen),
      .m_axi_w_awvalid(nmc_w_awvalid),
      .m_axi_w_awready(nmc_w_awready),
      .m_axi_w_wdata(m_axi_nmc_w_wdata),
      .m_axi_w_wstrb(nmc_w_wstrb),
      .m_axi_w_wlast(nmc_w_wlast),
      .m_axi_w_wvalid(nmc_w_wvalid),
      .m_axi_w_wready(nmc_w_wready),
      .m_axi_w_bresp(m_axi_nmc_w_bresp),
      .m_axi_w_bvalid(nmc_w_bvalid),
      .m_axi_w_bready(nmc_w_bready),
      .cnt_o(cnt_nmc)
  );

  // ---- transport --------------------------------------------------------------------------------
  logic [NumPorts-1:0] avail_valid, avail_ready, pull_valid, pull_ready, pull_rsp_valid;
  logic [NumPorts-1:0] settle_valid, settle_ready, fail_valid, fail_ready;
  logic [NumPorts-1:0] commit_valid, commit_ready;
  conn_t [NumPorts-1:0] avail_conn, pull_conn;
  pull_rsp_t pull_rsp;
  settle_t [NumPorts-1:0] settle;
  conn_fail_t [NumPorts-1:0] fail;
  rx_commit_t [NumPorts-1:0] commit;
  logic [NumPorts-1:0] verdict_valid;
  logic rx_fail_valid;
  rx_verdict_t verdict;
  conn_fail_t rx_fail;

  weft_core #(
      .NumPorts(NumPorts),
      .NumConns(NumConns),
      .NumMsgs(NumMsgs),
      .NumResend(2 ** $clog2(NumPorts * PoolDepth))  // a place for every packet that is out
  ) u_core (
      .clk_i,
      .rst_i(core_rst),
      .cfg_i(cfg),
      .req_valid_i(req_valid),
      .req_ready_o(req_ready),
      .req_i(req),
      .cpl_valid_o(cpl_valid),
      .cpl_ready_i(cpl_ready),
      .cpl_o(cpl),
      .avail_valid_o(avail_valid),
      .avail_ready_i(avail_ready),
      .avail_conn_o(avail_conn),
      .pull_valid_i(pull_valid),
      .pull_ready_o(pull_ready),
      .pull_conn_i(pull_conn),
      .pull_rsp_valid_o(pull_rsp_valid),
      .pull_rsp_o(pull_rsp),
      .settle_valid_i(settle_valid),
      .settle_ready_o(settle_ready),
      .settle_i(settle),
      .fail_valid_i(fail_valid),
      .fail_ready_o(fail_ready),
      .fail_i(fail),
      .commit_valid_i(commit_valid),
      .commit_ready_o(commit_ready),
      .commit_i(commit),
      .verdict_valid_o(verdict_valid),
      .verdict_o(verdict),
      .rx_fail_valid_o(rx_fail_valid),
      .rx_fail_o(rx_fail),
      .sig_valid_o(sig_valid),
      .sig_ready_i(sig_ready),
      .sig_o(sig),
      .cnt_o(cnt_core),
      .idle_o(core_idle)
  );

  for (genvar p = 0; p < NumPorts; p++) begin : gen_port
    weft_port #(
        .Port(p),
        .NumPorts(NumPorts),
        .NumConns(NumConns),
        .PathsPerPort(PathsPerPort),
        .NumRegions(NumRegions),
        .NumSems(NumSems),
        .PoolDepth(PoolDepth)
    ) u_port (
        .clk_i,
        .rst_i(core_rst),
        .cfg_i(cfg),
        .now_i(now[31:0]),
        .avail_valid_i(avail_valid[p]),
        .avail_ready_o(avail_ready[p]),
        .avail_conn_i(avail_conn[p]),
        .pull_valid_o(pull_valid[p]),
        .pull_ready_i(pull_ready[p]),
        .pull_conn_o(pull_conn[p]),
        .pull_rsp_valid_i(pull_rsp_valid[p]),
        .pull_rsp_i(pull_rsp),
        .settle_valid_o(settle_valid[p]),
        .settle_ready_i(settle_ready[p]),
        .settle_o(settle[p]),
        .fail_valid_o(fail_valid[p]),
        .fail_ready_i(fail_ready[p]),
        .fail_o(fail[p]),
        .commit_valid_o(commit_valid[p]),
        .commit_ready_i(commit_ready[p]),
        .commit_o(commit[p]),
        .verdict_valid_i(verdict_valid[p]),
        .verdict_i(verdict),
        .rx_fail_valid_i(rx_fail_valid),
        .rx_fail_i(rx_fail),
        .m_axi_tx_araddr(m_axi_tx_araddr[p]),
        .m_axi_tx_arlen(m_axi_tx_arlen[p]),
        .m_axi_tx_arvalid(tx_arvalid[p]),
        .m_axi_tx_arready(tx_arready[p]),
        .m_axi_tx_rdata(m_axi_tx_rdata[p]),
        .m_axi_tx_rresp(m_axi_tx_rresp[p]),
        .m_axi_tx_rlast(m_axi_tx_rlast[p]),
        .m_axi_tx_rvalid(tx_rvalid[p]),
        .m_axi_tx_rready(tx_rready[p]),
        .m_axi_rx_awaddr(m_axi_rx_awaddr[p]),
        .m_axi_rx_awlen(m_axi_rx_awlen[p]),
        .m_axi_rx_awvalid(rx_awvalid[p]),
        .m_axi_rx_awready(rx_awready[p]),
        .m_axi_rx_wdata(m_axi_rx_wdata[p]),
        .m_axi_rx_wstrb(rx_wstrb[p]),
        .m_axi_rx_wlast(rx_wlast[p]),
        .m_axi_rx_wvalid(rx_wvalid[p]),
        .m_axi_rx_wready(rx_wready[p]),
        .m_axi_rx_bresp(m_axi_rx_bresp[p]),
        .m_axi_rx_bvalid(rx_bvalid[p]),
        .m_axi_rx_bready(rx_bready[p]),
        .m_axis_tdata(m_axis_tx_tdata[p]),
        .m_axis_tkeep(m_axis_tx_tkeep[p]),
        .m_axis_tlast(m_axis_tx_tlast[p]),
        .m_axis_tvalid(mac_tvalid[p]),
        .m_axis_tready(mac_tready[p]),
        .s_axis_tdata(s_axis_rx_tdata[p]),
        .s_axis_tkeep(s_axis_rx_tkeep[p]),
        .s_axis_tlast(s_axis_rx_tlast[p]),
        .s_axis_tvalid(arriving[p]),
        .s_axis_tuser(s_axis_rx_tuser[p]),
        .cnt_o(cnt_of_port[p]),
        .idle_o(port_idle[p])
    );
  end

  assign idle_o = me_idle && core_idle && (&port_idle) && host_idle;
endmodule
`default_nettype wire
