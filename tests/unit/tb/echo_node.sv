// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for a node in tests of the simulator: the ports of weft_nic100 and just enough behind
// them.
// - a frame received on a port is written to memory at RxBase + port * 64 KB + count * 8 KB
// (m_axi_rx*), when register 1
//   holds that base (0: off);
// - doorbell "send" {op 1, port, addr, bytes} reads a frame from memory (m_axi_tx*) and sends it;
// it gathers it first, so
//   the MAC cannot underrun, unless register 2 asks for gaps;
// - doorbell "copy" {op 2, src, dst, beats} reads by m_axi_nmc_a and writes by m_axi_nmc_w, then
// writes a completion
//     beat through m_axi_me; register 3 = 1 makes it not wait for the write response before it
//   reads the destination back
//   by m_axi_nmc_b into register 4 (the mistake that a strict memory shows);
// - registers (AXI4-Lite, word address): 0 constant, 1..3 scratch as above, 4 read back, 5 frames
// received, 6 last
//   m_axi_me response, 7 cycles.
// No flow control beyond that; one doorbell at a time.
`default_nettype none

module echo_node #(
    parameter int unsigned NumPorts = 2
) (
    input wire logic clk_i,
    input wire logic rst_i,

    input  wire logic [15:0] s_axil_awaddr,
    input  wire logic [2:0]  s_axil_awprot,
    input  wire logic        s_axil_awvalid,
    output logic             s_axil_awready,
    input  wire logic [31:0] s_axil_wdata,
    input  wire logic [3:0]  s_axil_wstrb,
    input  wire logic        s_axil_wvalid,
    output logic             s_axil_wready,
    output logic [1:0]       s_axil_bresp,
    output logic             s_axil_bvalid,
    input  wire logic        s_axil_bready,
    input  wire logic [15:0] s_axil_araddr,
    input  wire logic [2:0]  s_axil_arprot,
    input  wire logic        s_axil_arvalid,
    output logic             s_axil_arready,
    output logic [31:0]      s_axil_rdata,
    output logic [1:0]       s_axil_rresp,
    output logic             s_axil_rvalid,
    input  wire logic        s_axil_rready,

    input  wire logic [63:0]  s_axi_db_awaddr,
    input  wire logic [7:0]   s_axi_db_awlen,
    input  wire logic         s_axi_db_awvalid,
    output logic              s_axi_db_awready,
    input  wire logic [511:0] s_axi_db_wdata,
    input  wire logic [63:0]  s_axi_db_wstrb,
    input  wire logic         s_axi_db_wlast,
    input  wire logic         s_axi_db_wvalid,
    output logic              s_axi_db_wready,
    output logic [1:0]        s_axi_db_bresp,
    output logic              s_axi_db_bvalid,
    input  wire logic         s_axi_db_bready,

    output logic [NumPorts*512-1:0]     m_axis_tx_tdata,
    output logic [NumPorts*64-1:0]      m_axis_tx_tkeep,
    output logic [NumPorts-1:0]         m_axis_tx_tvalid,
    input  wire logic [NumPorts-1:0]    m_axis_tx_tready,
    output logic [NumPorts-1:0]         m_axis_tx_tlast,
    input  wire logic [NumPorts*512-1:0] s_axis_rx_tdata,
    input  wire logic [NumPorts*64-1:0] s_axis_rx_tkeep,
    input  wire logic [NumPorts-1:0]    s_axis_rx_tvalid,
    input  wire logic [NumPorts-1:0]    s_axis_rx_tlast,
    input  wire logic [NumPorts-1:0]    s_axis_rx_tuser,

    output logic [63:0]       m_axi_tx0_araddr,
    output logic [7:0]        m_axi_tx0_arlen,
    output logic              m_axi_tx0_arvalid,
    input  wire logic         m_axi_tx0_arready,
    input  wire logic [511:0] m_axi_tx0_rdata,
    input  wire logic [1:0]   m_axi_tx0_rresp,
    input  wire logic         m_axi_tx0_rlast,
    input  wire logic         m_axi_tx0_rvalid,
    output logic              m_axi_tx0_rready,
    output logic [63:0]       m_axi_tx1_araddr,
    output logic [7:0]        m_axi_tx1_arlen,
    output logic              m_axi_tx1_arvalid,
    input  wire logic         m_axi_tx1_arready,
    input  wire logic [511:0] m_axi_tx1_rdata,
    input  wire logic [1:0]   m_axi_tx1_rresp,
    input  wire logic         m_axi_tx1_rlast,
    input  wire logic         m_axi_tx1_rvalid,
    output logic              m_axi_tx1_rready,

    output logic [63:0]     m_axi_rx0_awaddr,
    output logic [7:0]      m_axi_rx0_awlen,
    output logic            m_axi_rx0_awvalid,
    input  wire logic       m_axi_rx0_awready,
    output logic [511:0]    m_axi_rx0_wdata,
    output logic [63:0]     m_axi_rx0_wstrb,
    output logic            m_axi_rx0_wlast,
    output logic            m_axi_rx0_wvalid,
    input  wire logic       m_axi_rx0_wready,
    input  wire logic [1:0] m_axi_rx0_bresp,
    input  wire logic       m_axi_rx0_bvalid,
    output logic            m_axi_rx0_bready,
    output logic [63:0]     m_axi_rx1_awaddr,
    output logic [7:0]      m_axi_rx1_awlen,
    output logic            m_axi_rx1_awvalid,
    input  wire logic       m_axi_rx1_awready,
    output logic [511:0]    m_axi_rx1_wdata,
    output logic [63:0]     m_axi_rx1_wstrb,
    output logic            m_axi_rx1_wlast,
    output logic            m_axi_rx1_wvalid,
    input  wire logic       m_axi_rx1_wready,
    input  wire logic [1:0] m_axi_rx1_bresp,
    input  wire logic       m_axi_rx1_bvalid,
    output logic            m_axi_rx1_bready,

    output logic [63:0]       m_axi_me_araddr,
    output logic [7:0]        m_axi_me_arlen,
    output logic              m_axi_me_arvalid,
    input  wire logic         m_axi_me_arready,
    input  wire logic [511:0] m_axi_me_rdata,
    input  wire logic [1:0]   m_axi_me_rresp,
    input  wire logic         m_axi_me_rlast,
    input  wire logic         m_axi_me_rvalid,
    output logic              m_axi_me_rready,
    output logic [63:0]       m_axi_me_awaddr,
    output logic [7:0]        m_axi_me_awlen,
    output logic              m_axi_me_awvalid,
    input  wire logic         m_axi_me_awready,
    output logic [511:0]      m_axi_me_wdata,
    output logic [63:0]       m_axi_me_wstrb,
    output logic              m_axi_me_wlast,
    output logic              m_axi_me_wvalid,
    input  wire logic         m_axi_me_wready,
    input  wire logic [1:0]   m_axi_me_bresp,
    input  wire logic         m_axi_me_bvalid,
    output logic              m_axi_me_bready,

    output logic [63:0]        m_axi_nmc_a_araddr,
    output logic [7:0]         m_axi_nmc_a_arlen,
    output logic               m_axi_nmc_a_arvalid,
    input  wire logic          m_axi_nmc_a_arready,
    input  wire logic [1023:0] m_axi_nmc_a_rdata,
    input  wire logic [1:0]    m_axi_nmc_a_rresp,
    input  wire logic          m_axi_nmc_a_rlast,
    input  wire logic          m_axi_nmc_a_rvalid,
    output logic               m_axi_nmc_a_rready,
    output logic [63:0]        m_axi_nmc_b_araddr,
    output logic [7:0]         m_axi_nmc_b_arlen,
    output logic               m_axi_nmc_b_arvalid,
    input  wire logic          m_axi_nmc_b_arready,
    input  wire logic [1023:0] m_axi_nmc_b_rdata,
    input  wire logic [1:0]    m_axi_nmc_b_rresp,
    input  wire logic          m_axi_nmc_b_rlast,
    input  wire logic          m_axi_nmc_b_rvalid,
    output logic               m_axi_nmc_b_rready,
    output logic [63:0]        m_axi_nmc_w_awaddr,
    output logic [7:0]         m_axi_nmc_w_awlen,
    output logic               m_axi_nmc_w_awvalid,
    input  wire logic          m_axi_nmc_w_awready,
    output logic [1023:0]      m_axi_nmc_w_wdata,
    output logic [127:0]       m_axi_nmc_w_wstrb,
    output logic               m_axi_nmc_w_wlast,
    output logic               m_axi_nmc_w_wvalid,
    input  wire logic          m_axi_nmc_w_wready,
    input  wire logic [1:0]    m_axi_nmc_w_bresp,
    input  wire logic          m_axi_nmc_w_bvalid,
    output logic               m_axi_nmc_w_bready,

    output weft_pkg::me_trace_t me_trace_o,
    output logic                idle_o
);

  // ---- registers --------------------------------------------------------------------------------
  logic [31:0] reg_q[4];
  logic [31:0] readback_q, frames_q, cycles_q;
  logic [1:0]  me_resp_q;

  assign s_axil_awready = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
  assign s_axil_wready  = s_axil_awready;
  assign s_axil_arready = !s_axil_rvalid;

  always_ff @(posedge clk_i) begin
    if (s_axil_awready) begin
      if (s_axil_awaddr[15:2] < 14'd4 && s_axil_wstrb == 4'hf) reg_q[s_axil_awaddr[3:2]] <=
          s_axil_wdata;
      s_axil_bresp  <= s_axil_awaddr[15:2] < 14'd8 ? 2'd0 : 2'd2;
      s_axil_bvalid <= 1'b1;
    end else if (s_axil_bready) begin
      s_axil_bvalid <= 1'b0;
    end
    if (s_axil_arvalid && s_axil_arready) begin
      s_axil_rvalid <= 1'b1;
      s_axil_rresp  <= 2'd0;
      unique case (s_axil_araddr[15:2])
        14'd0:   s_axil_rdata <= 32'h6563_686f;
        14'd1:   s_axil_rdata <= reg_q[1];
        14'd2:   s_axil_rdata <= reg_q[2];
        14'd3:   s_axil_rdata <= reg_q[3];
        14'd4:   s_axil_rdata <= readback_q;
        14'd5:   s_axil_rdata <= frames_q;
        14'd6:   s_axil_rdata <= 32'(me_resp_q);
        14'd7:   s_axil_rdata <= cycles_q;
        default: s_axil_rdata <= 32'hffff_ffff;
      endcase
    end else if (s_axil_rready) begin
      s_axil_rvalid <= 1'b0;
    end
    cycles_q <= cycles_q + 1;
    if (rst_i) begin
      s_axil_bvalid <= 1'b0;
      s_axil_rvalid <= 1'b0;
      cycles_q      <= '0;
      for (int i = 0; i < 4; i++) reg_q[i] <= '0;
    end
  end

  // ---- doorbells --------------------------------------------------------------------------------
  typedef enum logic [3:0] {
    StIdle, StRead, StGather, StSend, StCopyRead, StCopyData, StCopyWrite, StCopyResp,
        StCopyCheck, StMe, StMeResp
  } state_e;
  state_e state_q;
  logic [7:0]   op_q;
  logic         port_q;
  logic [63:0]  src_q, dst_q;
  logic [15:0]  bytes_q;
  logic [511:0] gather_q[160];
  logic [7:0]   at_q, beats_q, asked_q;
  logic [3:0]   gap_q;
  logic [1023:0] copy_q;
  logic         aw_done_q, w_done_q, check_open_q;

  assign s_axi_db_awready = state_q == StIdle && s_axi_db_awvalid && s_axi_db_wvalid &&
      !s_axi_db_bvalid;
  assign s_axi_db_wready  = s_axi_db_awready;
  assign s_axi_db_bresp   = 2'd0;

  wire logic [511:0] rdata = port_q ? m_axi_tx1_rdata : m_axi_tx0_rdata;
  wire logic rvalid = port_q ? m_axi_tx1_rvalid : m_axi_tx0_rvalid;
  wire logic arready = port_q ? m_axi_tx1_arready : m_axi_tx0_arready;
  wire logic [7:0] left = beats_q - asked_q;
  wire logic last_beat = at_q == beats_q - 8'd1;
  wire logic [6:0] tail = bytes_q[5:0] == '0 ? 7'd64 : {1'b0, bytes_q[5:0]};
  wire logic tx_go = gap_q == '0;

  assign m_axi_tx0_araddr = src_q + {50'd0, asked_q, 6'd0};
  assign m_axi_tx1_araddr = m_axi_tx0_araddr;
  assign m_axi_tx0_arlen  = (left > 8'd64 ? 8'd64 : left) - 8'd1;
  assign m_axi_tx1_arlen  = m_axi_tx0_arlen;
  assign m_axi_tx0_arvalid = state_q == StRead && !port_q;
  assign m_axi_tx1_arvalid = state_q == StRead && port_q;
  assign m_axi_tx0_rready = 1'b1;
  assign m_axi_tx1_rready = 1'b1;

  always_comb begin
    m_axis_tx_tdata  = {NumPorts{gather_q[at_q]}};
    m_axis_tx_tkeep  = {NumPorts{last_beat ? ~64'd0 >> (7'd64 - tail) : ~64'd0}};
    m_axis_tx_tvalid = '0;
    m_axis_tx_tvalid[port_q] = state_q == StSend && tx_go;
    m_axis_tx_tlast  = {NumPorts{last_beat}};
  end

  assign m_axi_nmc_a_araddr = src_q;
  assign m_axi_nmc_a_arlen  = 8'd0;
  assign m_axi_nmc_a_arvalid = state_q == StCopyRead;
  assign m_axi_nmc_a_rready = state_q == StCopyData;
  assign m_axi_nmc_w_awaddr = dst_q;
  assign m_axi_nmc_w_awlen  = 8'd0;
  assign m_axi_nmc_w_awvalid = state_q == StCopyWrite && !aw_done_q;
  assign m_axi_nmc_w_wdata  = copy_q;
  assign m_axi_nmc_w_wstrb  = reg_q[2][31:0] == 32'd7 ? 128'h7 : '1;
  assign m_axi_nmc_w_wlast  = reg_q[2] != 32'd9;
  assign m_axi_nmc_w_wvalid = state_q == StCopyWrite && !w_done_q;
  assign m_axi_nmc_w_bready = 1'b1;
  assign m_axi_nmc_b_araddr = dst_q;
  assign m_axi_nmc_b_arlen  = 8'd0;
  assign m_axi_nmc_b_arvalid = state_q == StCopyCheck && check_open_q;
  assign m_axi_nmc_b_rready = 1'b1;

  assign m_axi_me_araddr = '0;
  assign m_axi_me_arlen = '0;
  assign m_axi_me_arvalid = 1'b0;
  assign m_axi_me_rready = 1'b1;
  assign m_axi_me_awaddr = {dst_q[63:12] + 52'd1, 12'd0};
  assign m_axi_me_awlen = 8'd0;
  assign m_axi_me_awvalid = state_q == StMe && !aw_done_q;
  assign m_axi_me_wdata = {480'd0, 32'h600d_600d};
  assign m_axi_me_wstrb = '1;
  assign m_axi_me_wlast = 1'b1;
  assign m_axi_me_wvalid = state_q == StMe && !w_done_q;
  assign m_axi_me_bready = 1'b1;

  always_ff @(posedge clk_i) begin
    s_axi_db_bvalid <= s_axi_db_bvalid && !s_axi_db_bready;
    if (gap_q != '0) gap_q <= gap_q - 4'd1;
    unique case (state_q)
      StIdle:
      if (s_axi_db_awready) begin
        s_axi_db_bvalid <= 1'b1;
        op_q    <= s_axi_db_wdata[7:0];
        port_q  <= s_axi_db_wdata[8];
        bytes_q <= s_axi_db_wdata[31:16];
        src_q   <= s_axi_db_wdata[127:64];
        dst_q   <= s_axi_db_wdata[191:128];
        beats_q <= 8'((s_axi_db_wdata[31:16] + 16'd63) >> 6);
        asked_q <= '0;
        at_q    <= '0;
        aw_done_q <= 1'b0;
        w_done_q  <= 1'b0;
        state_q <= s_axi_db_wdata[7:0] == 8'd1 ? StRead : StCopyRead;
      end
      StRead:  // bursts of up to 4 KB from a 4 KB boundary, asked one after the other
      if (arready) begin
        asked_q <= asked_q + (left > 8'd64 ? 8'd64 : left);
        state_q <= StGather;
      end
      StGather:
      if (rvalid) begin
        gather_q[at_q] <= rdata;
        at_q <= at_q + 8'd1;
        if (at_q + 8'd1 == beats_q) begin
          at_q    <= '0;
          state_q <= StSend;
        end else if (at_q + 8'd1 == asked_q) begin
          state_q <= StRead;
        end
      end
      StSend:
      if (tx_go && m_axis_tx_tready[port_q]) begin
        at_q  <= at_q + 8'd1;
        gap_q <= reg_q[2][3:0];
        if (last_beat) state_q <= StIdle;
      end
      StCopyRead: if (m_axi_nmc_a_arready) state_q <= StCopyData;
      StCopyData:
      if (m_axi_nmc_a_rvalid) begin
        copy_q  <= m_axi_nmc_a_rdata;
        state_q <= StCopyWrite;
      end
      StCopyWrite: begin
        if (m_axi_nmc_w_awvalid && m_axi_nmc_w_awready) aw_done_q <= 1'b1;
        if (m_axi_nmc_w_wvalid && m_axi_nmc_w_wready) w_done_q <= 1'b1;
        check_open_q <= 1'b1;
        if (aw_done_q && w_done_q) state_q <= reg_q[3][0] ? StCopyCheck : StCopyResp;
      end
      StCopyResp: if (m_axi_nmc_w_bvalid) state_q <= StCopyCheck;
      StCopyCheck: begin
        aw_done_q <= 1'b0;
        w_done_q  <= 1'b0;
        if (m_axi_nmc_b_arvalid && m_axi_nmc_b_arready) check_open_q <= 1'b0;
        if (m_axi_nmc_b_rvalid) begin
          readback_q <= m_axi_nmc_b_rdata[31:0];
          state_q    <= StMe;
        end
      end
      StMe: begin
        if (m_axi_me_awvalid && m_axi_me_awready) aw_done_q <= 1'b1;
        if (m_axi_me_wvalid && m_axi_me_wready) w_done_q <= 1'b1;
        if (aw_done_q && w_done_q) state_q <= StMeResp;
      end
      StMeResp:
      if (m_axi_me_bvalid) begin
        me_resp_q <= m_axi_me_bresp;
        state_q   <= StIdle;
      end
      default: state_q <= StIdle;
    endcase
    if (rst_i) begin
      state_q         <= StIdle;
      s_axi_db_bvalid <= 1'b0;
      gap_q           <= '0;
      me_resp_q       <= '0;
    end
  end

  // A copy shows as the entry of a subgraph: issued when read, done when the completion is written.
  always_comb begin
    me_trace_o             = '0;
    me_trace_o.issue       = m_axi_nmc_a_arvalid && m_axi_nmc_a_arready;
    me_trace_o.subgraph    = 16'h1234;
    me_trace_o.entry       = 32'h89ab_cdef;
    me_trace_o.opcode      = weft_wire_pkg::WqeReduce;
    me_trace_o.done        = state_q == StMeResp && m_axi_me_bvalid;
    me_trace_o.done_subgraph = 16'h1234;
    me_trace_o.done_entry  = 32'h89ab_cdef;
    me_trace_o.done_opcode = weft_wire_pkg::WqeReduce;
    me_trace_o.status      = weft_wire_pkg::ErrBadAlign;
  end

  // ---- receive: one burst a frame, straight from the stream -------------------------------------
  // Beats come one in two cycles at most and frames of a port are counted; a FIFO of 256 beats
  // stands for the buffer.
  logic [NumPorts-1:0] rx_empty;
  logic [NumPorts-1:0] rx_done;
  logic [NumPorts-1:0][63:0] rx_awaddr;
  logic [NumPorts-1:0] rx_awvalid, rx_awready, rx_wvalid, rx_wready, rx_wlast, rx_bvalid;
  logic [NumPorts-1:0][511:0] rx_wdata;
  logic [NumPorts-1:0][63:0] rx_wstrb;

  for (genvar p = 0; p < NumPorts; p++) begin : gen_rx
    logic [576:0] fifo_q[512];
    logic [9:0]   in_q, out_q;
    logic [6:0]   frame_q;
    logic [7:0]   awaits_q;
    wire logic [576:0] head = fifo_q[out_q[8:0]];
    logic         address_q, data_q;  // of the beat at the head: taken
    wire logic address = address_q || (rx_awvalid[p] && rx_awready[p]);
    wire logic data = data_q || (rx_wvalid[p] && rx_wready[p]);
    wire logic pop = address && data;

    // Single-beat bursts, one at a time: the simplest legal writer.
    assign rx_awaddr[p]  = 64'(reg_q[1]) << 12 | 64'(p) << 19 | 64'(frame_q[5:0]) << 13 |
        64'(awaits_q) << 6;
    assign rx_awvalid[p] = in_q != out_q && !address_q;
    assign rx_wvalid[p]  = in_q != out_q && !data_q;
    assign rx_wdata[p]   = head[511:0];
    assign rx_wstrb[p]   = head[575:512];
    assign rx_wlast[p]   = 1'b1;
    assign rx_empty[p]   = in_q == out_q;

    always_ff @(posedge clk_i) begin
      rx_done[p] <= s_axis_rx_tvalid[p] && s_axis_rx_tlast[p];
      if (s_axis_rx_tvalid[p] && reg_q[1] != '0) begin
        fifo_q[in_q[8:0]] <= {s_axis_rx_tlast[p], s_axis_rx_tkeep[64*p+:64],
            s_axis_rx_tdata[512*p+:512]};
        in_q <= in_q + 10'd1;
      end
      address_q <= address && !pop;
      data_q    <= data && !pop;
      if (pop) begin
        out_q    <= out_q + 10'd1;
        awaits_q <= head[576] ? '0 : awaits_q + 8'd1;
        if (head[576]) frame_q <= frame_q + 7'd1;
      end
      if (rst_i) begin
        in_q     <= '0;
        out_q    <= '0;
        frame_q  <= '0;
        awaits_q <= '0;
        address_q <= 1'b0;
        data_q <= 1'b0;
        rx_done[p] <= 1'b0;
      end
    end
  end
  assign {m_axi_rx1_awaddr, m_axi_rx0_awaddr} = rx_awaddr;
  assign {m_axi_rx1_awvalid, m_axi_rx0_awvalid} = rx_awvalid;
  assign rx_awready = {m_axi_rx1_awready, m_axi_rx0_awready};
  assign {m_axi_rx1_wdata, m_axi_rx0_wdata} = rx_wdata;
  assign {m_axi_rx1_wstrb, m_axi_rx0_wstrb} = rx_wstrb;
  assign {m_axi_rx1_wvalid, m_axi_rx0_wvalid} = rx_wvalid;
  assign {m_axi_rx1_wlast, m_axi_rx0_wlast} = rx_wlast;
  assign rx_wready = {m_axi_rx1_wready, m_axi_rx0_wready};
  assign rx_bvalid = {m_axi_rx1_bvalid, m_axi_rx0_bvalid};
  assign m_axi_rx0_awlen = '0;
  assign m_axi_rx1_awlen = '0;
  assign m_axi_rx0_bready = 1'b1;
  assign m_axi_rx1_bready = 1'b1;

  logic [9:0] open_q;  // writes of the receive side without their response
  always_ff @(posedge clk_i) begin
    frames_q <= frames_q + 32'($countones(rx_done));
    open_q   <= open_q + 10'($countones(rx_wvalid & rx_wready)) - 10'($countones(rx_bvalid));
    if (rst_i) begin
      frames_q <= '0;
      open_q   <= '0;
    end
  end
  assign idle_o = state_q == StIdle && &rx_empty && open_q == '0;

  // An RTL assertion that a test can trip: register 0 written with 0xdead.
  a_poison : assert property (@(posedge clk_i) disable iff (rst_i) (reg_q[0] != 32'hdead));

  logic unused;
  assign unused = &{1'b0, s_axil_awprot, s_axil_arprot, s_axil_araddr, s_axil_awaddr,
      s_axi_db_awaddr, s_axi_db_awlen,
                    s_axi_db_wstrb, s_axi_db_wlast, s_axi_db_wdata, m_axi_tx0_rresp,
                        m_axi_tx1_rresp, m_axi_tx0_rlast,
                    m_axi_tx1_rlast, m_axi_rx0_bresp, m_axi_rx1_bresp, m_axi_me_arready,
                        m_axi_me_rdata, m_axi_me_rresp,
                    m_axi_me_rlast, m_axi_me_rvalid, m_axi_nmc_a_rresp, m_axi_nmc_a_rlast,
                        m_axi_nmc_b_rdata,
                    m_axi_nmc_b_rresp, m_axi_nmc_b_rlast, m_axi_nmc_w_bresp, s_axis_rx_tuser,
                        op_q, 1'b0};
endmodule
`default_nettype wire
