// SPDX-License-Identifier: Apache-2.0
//
// All counters of a node: 64 bits each in one RAM, fed by the event amounts of every cycle.
//
// An amount is first added to a small pending sum of its own; a scan visits one counter a cycle,
// takes its pending sum and adds it to the RAM. A pending sum is wide enough for the largest amount
// in every cycle between two visits, so nothing is ever lost, whatever comes. Events count 5 cycles
// late. A read takes one counter at one moment, pending part included: about 12 cycles from
// rd_valid_i to rd_done_o, more behind another read or right behind reset, when the first round
// clears the RAM. Without events the scan stops behind its second round: a node at rest does not
// switch.
// Does not saturate (2^64 events at 322 MHz take 1800 years) and cannot be cleared but by reset.
// See docs/registers.md.
`default_nettype none
`include "weft_assert.svh"

module weft_counters
  import weft_counters_pkg::*;
#(
    parameter  int unsigned NumPorts = 2,
    localparam int unsigned Num      = CntNodeCount + NumPorts * CntPortCount,
    localparam int unsigned IndexW   = $clog2(Num)
) (
    input  wire                            clk_i,
    input  wire                            rst_i,
    // What happened in this cycle.
    input  wire cnt_node_t                 node_i,
    input  wire cnt_port_t  [NumPorts-1:0] port_i,
    // Read: rd_valid_i for one cycle, not again before rd_done_o, from which on rd_value_o holds.
    // An index beyond the last counter reads 0.
    input  wire                            rd_valid_i,
    input  wire             [        15:0] rd_index_i,
    output logic                           rd_done_o,
    output logic            [        63:0] rd_value_o
);

  // Two visits of a counter are less than 2 * Num cycles apart: a round has Num visits, and a read,
  // which costs ReadSlots cycles, waits for ReadSpacing visits since the one before.
  localparam int unsigned GapW = $clog2(2 * Num);
  localparam int unsigned ReadSpacing = 16;
  localparam int unsigned Stages = 4;  // visit to RAM written

  if (NumPorts < 1 || NumPorts > 16) begin : gen_bad_ports
    $error("weft_counters: NumPorts must be 1 to 16");
  end

  function automatic int unsigned bits_of(int unsigned i);
    return i < CntNodeCount ? CntNodeBits[i] : CntPortBits[(i-CntNodeCount)%CntPortCount];
  endfunction

  function automatic int unsigned widest();
    int unsigned w = 0;
    for (int unsigned i = 0; i < Num; i++) if (bits_of(i) > w) w = bits_of(i);
    return w;
  endfunction

  localparam int unsigned SumW = widest() + GapW;
  localparam int unsigned Groups = (Num + 15) / 16;

  typedef logic [IndexW-1:0] index_t;
  typedef logic [SumW-1:0] sum_t;

  // ---- scan -------------------------------------------------------------------------------------
  // One visit a cycle. A read stops it until the RAM is settled, visits its counter, waits again.
  typedef enum logic [1:0] {
    StScan,   // visit the next counter
    StDrain,  // earlier visits are on their way to the RAM
    StVisit,  // visit the counter to be read
    StWait    // until it is written too
  } state_e;

  state_e state_q;
  index_t scan_q, rd_index_q;
  logic rd_wait_q;  // a read waits for its turn
  logic fresh_q;  // first round since reset: the RAM holds nothing yet
  logic [4:0] spacing_q;
  logic [2:0] wait_q;

  cnt_node_t node_q;
  cnt_port_t [NumPorts-1:0] port_q;

  // Cycles to scan on without events; any event may wait a round for its visit.
  localparam int unsigned LeftW = $clog2(2 * Num);
  logic [LeftW-1:0] left_q;
  logic run_q, event_q;

  index_t visit;
  logic visit_valid;
  assign visit       = state_q == StVisit ? rd_index_q : scan_q;
  assign visit_valid = (state_q == StScan && run_q) || state_q == StVisit;

  wire rd_in_range = rd_index_i < 16'(Num);
  wire may_read = rd_wait_q && !fresh_q && spacing_q == '0;

  always_ff @(posedge clk_i) begin
    if (rd_valid_i) rd_index_q <= rd_index_i[IndexW-1:0];

    if (rst_i) begin
      state_q   <= StScan;
      scan_q    <= '0;
      rd_wait_q <= 1'b0;
      fresh_q   <= 1'b1;
      spacing_q <= '0;
      wait_q    <= '0;
      event_q   <= 1'b0;
      run_q     <= 1'b1;
      left_q    <= LeftW'(2 * Num - 1);
    end else begin
      event_q <= node_q != '0 || port_q != '0;
      if (event_q) begin
        run_q  <= 1'b1;
        left_q <= LeftW'(2 * Num - 1);
      end else if (run_q && state_q == StScan) begin
        run_q  <= left_q != '0;
        left_q <= left_q - 1'b1;
      end
      if (rd_valid_i && rd_in_range) rd_wait_q <= 1'b1;
      if (wait_q != '0) wait_q <= wait_q - 1'b1;

      unique case (state_q)
        StScan: begin
          if (run_q) scan_q <= scan_q + 1'b1;
          if (run_q && scan_q == index_t'(Num - 1)) begin
            scan_q  <= '0;
            fresh_q <= 1'b0;
          end
          if (spacing_q != '0) spacing_q <= spacing_q - 1'b1;
          if (may_read) begin
            state_q <= StDrain;
            wait_q  <= 3'(Stages);
          end
        end
        StDrain: if (wait_q == '0) state_q <= StVisit;
        StVisit: begin
          rd_wait_q <= 1'b0;
          spacing_q <= 5'(ReadSpacing);
          state_q   <= StWait;
          wait_q    <= 3'(Stages);
        end
        StWait:  if (wait_q == '0) state_q <= StScan;
      endcase
    end
  end

  // ---- stage 1: the visited pending sum is taken, by groups of 16
  logic [Groups*16-1:0][SumW-1:0] pending;
  sum_t group_q[Groups];
  index_t index1_q, index2_q, index3_q;
  logic valid1_q, valid2_q, valid3_q;
  logic read1_q, read2_q, read3_q;
  logic fresh1_q, fresh2_q;

  always_ff @(posedge clk_i) begin
    node_q <= node_i;
    port_q <= port_i;
    if (rst_i) begin
      node_q <= '0;
      port_q <= '0;
    end
  end

  for (genvar i = 0; i < Groups * 16; i++) begin : gen_counter
    if (i < Num) begin : gen_used
      localparam int unsigned Bits = bits_of(i);
      localparam int unsigned W = Bits + GapW;
      logic [Bits-1:0] amount;
      logic [W-1:0] pending_q;

      if (i < CntNodeCount) begin : gen_node
        assign amount = node_q[CntNodeLsb[i]+:Bits];
      end else begin : gen_port
        localparam int unsigned Port = (i - CntNodeCount) / CntPortCount;
        localparam int unsigned Event = (i - CntNodeCount) % CntPortCount;
        assign amount = port_q[Port][CntPortLsb[Event]+:Bits];
      end

      always_ff @(posedge clk_i) begin
        if (rst_i) pending_q <= '0;
        else pending_q <= (visit_valid && visit == index_t'(i) ? '0 : pending_q) + W'(amount);
      end
      assign pending[i] = sum_t'(pending_q);
    end else begin : gen_unused
      assign pending[i] = '0;
    end
  end

  for (genvar g = 0; g < Groups; g++) begin : gen_group
    always_ff @(posedge clk_i) group_q[g] <= pending[16*g+int'(visit[3:0])];
  end

  // ---- stage 2: one group; the counter is read beside it
  // ---- stage 3: add; stage 4: write back
  localparam int unsigned GroupW = Groups > 1 ? $clog2(Groups) : 1;
  sum_t amount_q;
  logic [63:0] old, sum_q;

  weft_sdpram #(
      .Width(64),
      .Depth(Num),
      .Style("block")
  ) u_ram (
      .clk_i,
      .we_i   (valid3_q),
      .waddr_i(index3_q),
      .wdata_i(sum_q),
      .re_i   (valid1_q),
      .raddr_i(index1_q),
      .rdata_o(old)
  );

  always_ff @(posedge clk_i) begin
    index1_q <= visit;
    index2_q <= index1_q;
    index3_q <= index2_q;
    fresh1_q <= fresh_q;
    fresh2_q <= fresh1_q;
    amount_q <= group_q[GroupW'(index1_q>>4)];
    sum_q    <= (fresh2_q ? '0 : old) + 64'(amount_q);
    if (read3_q) rd_value_o <= sum_q;
    if (rd_valid_i && !rd_in_range) rd_value_o <= '0;

    if (rst_i) begin
      valid1_q  <= 1'b0;
      valid2_q  <= 1'b0;
      valid3_q  <= 1'b0;
      read1_q   <= 1'b0;
      read2_q   <= 1'b0;
      read3_q   <= 1'b0;
      rd_done_o <= 1'b0;
    end else begin
      valid1_q  <= visit_valid;
      valid2_q  <= valid1_q;
      valid3_q  <= valid2_q;
      read1_q   <= state_q == StVisit;
      read2_q   <= read1_q;
      read3_q   <= read2_q;
      rd_done_o <= read3_q || (rd_valid_i && !rd_in_range);
    end
  end

  `WEFT_IMPLIES(OneReadAtATime, rd_valid_i, !rd_wait_q);
  // The scan and a read never work on one counter at once: its visits are Stages cycles apart.
  `WEFT_IMPLIES(NoOverlap, valid1_q && valid3_q, index1_q != index3_q);
  `WEFT_IMPLIES(NoOverlapNear, valid1_q && valid2_q, index1_q != index2_q);

endmodule

`default_nettype wire
