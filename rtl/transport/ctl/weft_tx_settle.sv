// SPDX-License-Identifier: Apache-2.0
//
// Settle engine of a port: the descriptors of unsettled packets, and what an ack says of them.
//
// Every path has a linked list of descriptors in PSN order. Its last element is allocated but
// empty: an append fills it and links a new one behind, so appends own the tails, settling owns the
// heads, and an empty list is no special case. The price is one descriptor a path, number = path
// key, which never leaves the list's end by anything but an append. An ack pops the list from the
// old base to the new one, one PSN a cycle, and looks at one history bit each. A probe takes a PSN
// but no descriptor: a PSN that the head descriptor does not name was a probe. So probes cannot run
// out of descriptors, and a pool full of data can always be recovered. The empty descriptor names
// the packet before it, and no more than one PSN follows that without a packet, so it is never
// taken for one.
//
// Acks: 5 + PSNs settled cycles. An ack of another epoch, below the base or of a connection that is
// down is dropped as old; one beyond what was sent, or for a path that is not there, as bad.
// Commands (flush) walk everything that is unsettled and hand it out as lost, then set the base.
// The first needs hold_i and quiet_o, each further one the end of the one before.
// Does not know windows, time or connections' state but `live`.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_settle
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_ctl_pkg::*;
#(
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    parameter  int unsigned PoolDepth    = 1024,
    localparam int unsigned ConnW        = (NumConns > 1) ? $clog2(NumConns) : 1,
    localparam int unsigned PathW        = (PathsPerPort > 1) ? $clog2(PathsPerPort) : 1,
    localparam int unsigned KeyW         = ConnW + PathW,  // {connection, path}
    localparam int unsigned DescW        = $clog2(PoolDepth)
) (
    input wire clk_i,
    input wire rst_i,

    // Acks. Ready leaves from registers (state, hold_i); taken acks are processed in order.
    input  wire  ack_valid_i,
    output logic ack_ready_o,
    input  ack_t ack_i,

    // No ack is accepted while hold_i is high; quiet_o: nothing in work and every settle_o taken.
    input  wire  hold_i,
    output logic quiet_o,

    // Settled data packets.
    output logic    settle_valid_o,
    input  wire     settle_ready_i,
    output settle_t settle_o,

    // What an accepted ack did; holds until taken. All zero after a flush.
    output logic        res_valid_o,
    input  wire         res_ready_i,
    output ack_result_t res_o,

    // Append, at most every third cycle and only after alloc_ok_o was seen: the packet goes into
    // tail_i, alloc_o becomes the path's new tail. append_psn_i stays for a cycle more.
    output logic                  alloc_ok_o,  // two descriptors at least are free
    output logic      [DescW-1:0] alloc_o,
    input  wire                   append_i,
    input  wire       [DescW-1:0] tail_i,
    input  wire psn_t             append_psn_i,
    input  pkt_desc_t             append_desc_i,

    // Next PSN of a path, whenever it changes (data or probe); 0 after reset.
    input wire             next_we_i,
    input wire  [KeyW-1:0] next_key_i,
    input psn_t            next_psn_i,

    // Flush: settle all as lost; cmd_psn_i is then the base, or the next PSN stays with cmd_keep_i.
    // Pulse; done pulses when it is over.
    input  wire             cmd_i,
    input  wire  [KeyW-1:0] cmd_key_i,
    input  wire             cmd_keep_i,
    input  wire             cmd_live_i,
    input  psn_t            cmd_psn_i,
    output logic            cmd_done_o,

    output logic lossy_o,      // at least 0.3 % of the packets settled of late were lost
    output logic idle_o,       // no data packet unsettled, nothing in work
    output logic evt_taken_o,
    output logic evt_old_o,
    output logic evt_bad_o,
    output logic evt_delivered_o,
    output logic evt_lost_o
);

  localparam int unsigned NumKeys = NumConns << PathW;
  localparam int unsigned NumFree = PoolDepth - NumKeys;  // descriptors that can hold data
  localparam int unsigned FreeW = $clog2(NumFree + 1);

  if (PoolDepth < NumKeys + 16) begin : gen_bad_pool
    $error("weft_tx_settle: PoolDepth must exceed NumConns * PathsPerPort by 16 at least");
  end

  typedef logic [KeyW-1:0] key_t;
  typedef logic [DescW-1:0] didx_t;

  typedef struct packed {
    logic       live;
    logic [7:0] epoch;
    psn_t       base;
    didx_t      head;
  } path_st_t;

  typedef struct packed {
    logic [7:0] psn;   // low bits: a path has 256 unsettled PSNs at most
    pkt_desc_t  desc;
  } slot_t;

  typedef enum logic [2:0] {
    StReset,  // every path gets its own descriptor as list
    StIdle,
    StRead,   // path state and next PSN are read
    StLook,   // ... and subtracted; the head descriptor is read
    StCheck,  // verdict on the ack
    StWalk,   // one PSN a cycle
    StDone    // the last packet is added up; then write back, hand out the result
  } state_e;

  state_e state_q;
  key_t key_q;
  logic is_cmd_q, keep_q, cmd_live_q;
  psn_t cmd_psn_q;
  ack_t ack_q;
  logic range_ok_q;

  // ---- path state -------------------------------------------------------------------------------
  path_st_t st_rd, st_wr;
  psn_t next_rd;
  logic st_we;
  key_t st_waddr;

  weft_sdpram #(
      .data_t(path_st_t),
      .Depth (NumKeys)
  ) u_state (
      .clk_i,
      .we_i   (st_we),
      .waddr_i(st_waddr),
      .wdata_i(st_wr),
      .re_i   (state_q == StRead),
      .raddr_i(key_q),
      .rdata_o(st_rd)
  );

  weft_sdpram #(
      .data_t(psn_t),
      .Depth (NumKeys)
  ) u_next (
      .clk_i,
      .we_i   (next_we_i),
      .waddr_i(next_key_i),
      .wdata_i(next_psn_i),
      .re_i   (state_q == StRead),
      .raddr_i(key_q),
      .rdata_o(next_rd)
  );

  // ---- descriptors ------------------------------------------------------------------------------
  slot_t slot_rd, slot_wr;
  didx_t link_rd;
  logic slot_re, slot_we;
  didx_t slot_raddr, slot_waddr;

  weft_sdpram #(
      .data_t(slot_t),
      .Depth (PoolDepth)
  ) u_slot (
      .clk_i,
      .we_i   (slot_we),
      .waddr_i(slot_waddr),
      .wdata_i(slot_wr),
      .re_i   (slot_re),
      .raddr_i(slot_raddr),
      .rdata_o(slot_rd)
  );

  weft_sdpram #(
      .data_t(didx_t),
      .Depth (PoolDepth)
  ) u_link (
      .clk_i,
      .we_i   (append_i),
      .waddr_i(tail_i),
      .wdata_i(alloc_o),
      .re_i   (slot_re),
      .raddr_i(slot_raddr),
      .rdata_o(link_rd)
  );

  // The new tail gets the PSN before it in the cycle after it was linked. The walk cannot be there
  // yet: it passes the packet before it only when that was acknowledged.
  logic clear_q;
  didx_t clear_idx_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) clear_q <= 1'b0;
    else clear_q <= append_i;
    if (append_i) clear_idx_q <= alloc_o;
  end

  didx_t reset_q;
  wire resetting = state_q == StReset;

  assign slot_we = append_i || clear_q;
  assign slot_waddr = append_i ? tail_i : clear_idx_q;
  assign slot_wr = '{psn: append_psn_i[7:0], desc: append_desc_i};

  // ---- free list: never used ones by a counter, then first in first out -------------------------
  logic free_push, fifo_valid, fifo_room;
  didx_t fifo_idx;
  didx_t fresh_q;
  logic fresh_left_q;
  logic [FreeW-1:0] free_cnt_q;
  didx_t head_q;
  logic [$clog2(NumFree+1)-1:0] fifo_count;

  weft_fifo #(
      .data_t(didx_t),
      .Depth (NumFree)
  ) u_free (
      .clk_i,
      .rst_i,
      .s_valid_i(free_push),
      .s_ready_o(fifo_room),
      .s_data_i (head_q),
      .m_valid_o(fifo_valid),
      .m_ready_i(append_i && !fresh_left_q),
      .m_data_o (fifo_idx),
      .count_o  (fifo_count)
  );

  assign alloc_o = fresh_left_q ? fresh_q : fifo_idx;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      fresh_q <= didx_t'(NumKeys);
      fresh_left_q <= 1'b1;
      free_cnt_q <= FreeW'(NumFree);
      alloc_ok_o <= 1'b0;
    end else begin
      if (append_i && fresh_left_q) begin
        fresh_q <= fresh_q + 1'b1;
        fresh_left_q <= fresh_q != didx_t'(PoolDepth - 1);
      end
      if (append_i != free_push) free_cnt_q <= append_i ? free_cnt_q - 1'b1 : free_cnt_q + 1'b1;
      alloc_ok_o <= free_cnt_q >= FreeW'(3);  // one may leave in this very cycle
    end
  end

  // ---- the walk ---------------------------------------------------------------------------------
  psn_t base_q;         // PSN the walk is at
  psn_t delta_q;        // new base - old base
  psn_t sent_q;         // next PSN - old base: unsettled PSNs
  logic epoch_old_q, epoch_new_q, live_q;
  logic [7:0] epoch_q;
  count_t left_q;       // PSNs still to walk
  count_t psns_q;       // PSNs this ack settles
  logic [7:0] idx_q;    // history bit of the PSN after this one
  logic hist_q;         // history bit of this PSN

  logic item_full;      // the settle queue has no room for sure
  wire is_data = slot_rd.psn == base_q[7:0];
  wire step = state_q == StWalk && !(is_data && item_full);
  wire pop = step && is_data;

  assign free_push = pop;
  assign slot_re = state_q == StLook || pop;
  assign slot_raddr = state_q == StLook ? st_rd.head : link_rd;

  // ---- settled packets, and the sums over them --------------------------------------------------
  logic item_valid_q, item_count_q;
  settle_t item_q;
  burst_t bytes_q, lost_bytes_q;
  logic [4:0] out_count;
  logic out_ready;
  wire burst_t item_bytes = burst_t'(item_q.desc.len) + burst_t'(WIN_OVERHEAD);

  weft_fifo #(
      .data_t(settle_t),
      .Depth (16)
  ) u_out (
      .clk_i,
      .rst_i,
      .s_valid_i(item_valid_q),
      .s_ready_o(out_ready),
      .s_data_i (item_q),
      .m_valid_o(settle_valid_o),
      .m_ready_i(settle_ready_i),
      .m_data_o (settle_o),
      .count_o  (out_count)
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      item_valid_q <= 1'b0;
      item_count_q <= 1'b0;
      item_full <= 1'b0;
    end else begin
      item_valid_q <= pop;
      item_count_q <= pop && !is_cmd_q;
      item_full <= out_count >= 5'd12;  // up to three more are on their way
    end
    if (pop)
      item_q <= '{
          conn: conn_t'(key_q[KeyW-1:PathW]),
          lost: is_cmd_q || !hist_q,
          desc: slot_rd.desc
      };
    if (state_q == StCheck) begin
      bytes_q <= '0;
      lost_bytes_q <= '0;
    end else if (item_count_q) begin
      bytes_q <= bytes_q + item_bytes;
      if (item_q.lost) lost_bytes_q <= lost_bytes_q + item_bytes;
    end
  end

  // ---- loss at this port: EWMA of 1/256 a packet, in units of 2^-24 -----------------------------
  localparam logic [23:0] LossyAt = 24'd50332;  // 0.3 %
  logic [23:0] loss_q;
  logic ewma_q, ewma_lost_q;
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      loss_q  <= '0;
      ewma_q  <= 1'b0;
      lossy_o <= 1'b0;
    end else begin
      ewma_q <= item_count_q;
      if (ewma_q) loss_q <= loss_q - 24'(loss_q[23:8]) + (ewma_lost_q ? 24'h00ffff : 24'h0);
      lossy_o <= loss_q >= LossyAt;
    end
    if (item_count_q) ewma_lost_q <= item_q.lost;
  end

  // ---- result -----------------------------------------------------------------------------------
  logic res_valid_q;
  wire res_room = !res_valid_q || res_ready_i;
  wire finish = state_q == StDone && !item_count_q && (is_cmd_q || res_room);
  assign res_valid_o = res_valid_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) res_valid_q <= 1'b0;
    else if (res_room) res_valid_q <= finish && !is_cmd_q;
    if (finish && is_cmd_q) res_o <= '0;
    else if (finish)
      res_o <= '{
          conn: ack_q.conn,
          path: ack_q.path,
          psns: psns_q,
          bytes: bytes_q,
          lost_bytes: lost_bytes_q,
          ce_bytes: bytes_t'(ack_q.ce_bytes),
          rx_bytes: bytes_t'(ack_q.rx_bytes),
          echo: ack_q.echo,
          status: ack_q.status
      };
  end

  assign st_we = resetting || finish;
  assign st_waddr = resetting ? key_t'(reset_q) : key_q;
  assign st_wr = '{
          live: !resetting && (is_cmd_q ? cmd_live_q : live_q),
          epoch: is_cmd_q ? 8'd0 : epoch_q,
          base: resetting ? '0 : is_cmd_q && !keep_q ? cmd_psn_q : base_q,
          head: resetting ? reset_q : head_q
      };

  // ---- control ----------------------------------------------------------------------------------
  wire too_old = !live_q || epoch_old_q || delta_q[23];
  wire beyond = epoch_new_q || !range_ok_q || delta_q > sent_q;
  wire ack_take = ack_valid_i && ack_ready_o;
  assign ack_ready_o = state_q == StIdle && !hold_i;
  wire [7:0] epoch_diff = ack_q.epoch - st_rd.epoch;

  always_ff @(posedge clk_i) begin
    evt_taken_o <= finish && !is_cmd_q && !rst_i;
    evt_old_o <= 1'b0;
    evt_bad_o <= 1'b0;
    evt_delivered_o <= item_valid_q && !item_q.lost && !rst_i;
    evt_lost_o <= item_valid_q && item_q.lost && !rst_i;
    cmd_done_o <= finish && is_cmd_q && !rst_i;
    if (rst_i) begin
      state_q <= StReset;
      reset_q <= '0;
    end else begin
      unique case (state_q)
        StReset: begin
          reset_q <= reset_q + 1'b1;
          if (reset_q == didx_t'(NumKeys - 1)) state_q <= StIdle;
        end
        StIdle: begin
          if (cmd_i || ack_take) state_q <= StRead;
          if (cmd_i) begin
            key_q <= cmd_key_i;
            is_cmd_q <= 1'b1;
            keep_q <= cmd_keep_i;
            cmd_live_q <= cmd_live_i;
            cmd_psn_q <= cmd_psn_i;
          end else if (ack_take) begin
            key_q <= {ack_i.conn[ConnW-1:0], ack_i.path[PathW-1:0]};
            is_cmd_q <= 1'b0;
            ack_q <= ack_i;
            range_ok_q <= 32'(ack_i.conn) < 32'(NumConns) && 32'(ack_i.path) < 32'(PathsPerPort);
          end
        end
        StRead: state_q <= StLook;
        StLook: begin
          state_q <= StCheck;
          live_q <= st_rd.live;
          epoch_q <= st_rd.epoch;
          epoch_old_q <= epoch_diff[7];
          epoch_new_q <= !epoch_diff[7] && epoch_diff != 8'd0;
          base_q <= st_rd.base;
          head_q <= st_rd.head;
          delta_q <= ack_q.base - st_rd.base;
          sent_q <= next_rd - st_rd.base;
          idx_q <= ~(st_rd.base[7:0] - ack_q.base[7:0]);  // delta - 1: the oldest PSN settled
        end
        StCheck: begin
          hist_q <= ack_q.hist[idx_q];
          idx_q <= idx_q - 8'd1;
          left_q <= is_cmd_q ? count_t'(sent_q) : count_t'(delta_q);
          psns_q <= count_t'(delta_q);
          state_q <= count_t'(is_cmd_q ? sent_q : delta_q) == '0 ? StDone : StWalk;
          if (!is_cmd_q && (too_old || beyond)) begin
            state_q <= StIdle;
            // A path that is not there is bad whatever the state of its namesake says.
            evt_bad_o <= !range_ok_q || !too_old;
            evt_old_o <= range_ok_q && too_old;
          end
        end
        StWalk: begin
          if (step) begin
            left_q <= left_q - 1'b1;
            base_q <= base_q + 1'b1;
            hist_q <= ack_q.hist[idx_q];
            idx_q  <= idx_q - 8'd1;
          end
          if (pop) head_q <= link_rd;
          if (step && left_q == count_t'(1)) state_q <= StDone;
        end
        StDone: if (finish) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
    end
  end

  assign quiet_o = state_q == StIdle && !res_valid_q && !item_valid_q && !settle_valid_o;
  assign idle_o = quiet_o && free_cnt_q == FreeW'(NumFree);

  `WEFT_IMPLIES(CommandWhileHeld, cmd_i, state_q == StIdle && hold_i);
  `WEFT_IMPLIES(WindowKept, state_q == StCheck, sent_q <= psn_t'(HIST_BITS));
  `WEFT_IMPLIES(AllocBacked, append_i, fresh_left_q || fifo_valid);
  `WEFT_IMPLIES(FreeListHolds, free_push, fifo_room);
  `WEFT_IMPLIES(SettleQueueHolds, item_valid_q, out_ready);
  `WEFT_IMPLIES(AppendSpaced, append_i, !clear_q && !resetting);
  `WEFT_IMPLIES(PsnStays, clear_q, append_psn_i == $past(append_psn_i));
  `WEFT_ASSERT(FreeCountInRange,
               free_cnt_q <= FreeW'(NumFree) && fifo_count <= FreeW'(free_cnt_q + 1'b1));
  `WEFT_HOLD(ResultHolds, res_valid_o, res_ready_i, res_o);

endmodule

`default_nettype wire
