// SPDX-License-Identifier: Apache-2.0
//
// Verdict on every frame, in the order of arrival: header, epoch, PSN, stream, message, region. A
// frame's header comes in S1, its verdict leaves in S5; one frame a cycle, never stalls. Exactly
// one of pending, ack and drop answers each frame.
//
// Room for what an accepted frame needs is claimed by the caller through data_full_i and
// ack_full_i: while they are low, at least 8 more frames find room. A data packet that claims its
// PSN and is refused for what it asks (operation, stream, message, key, bounds, rights, semaphore)
// fails its connection, and so does the core for what shows behind the write: the first such error
// stays in the connection's status until it is configured again. docs/rx.md.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_check
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter  int unsigned Port         = 0,
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    parameter  int unsigned NumRegions   = 64,
    parameter  int unsigned NumSems      = 256,
    parameter  int unsigned PtrW         = 10,
    localparam int unsigned ConnW        = $clog2(NumConns),
    localparam int unsigned PathW        = $clog2(PathsPerPort)
) (
    input  wire                         clk_i,
    input  wire                         rst_i,
    input  wire cfg_t                   cfg_i,
    // From weft_rx_init
    input  wire  [NumConns-1:0]         conn_valid_i,
    input  wire                         info_we_i,
    input  wire  [ConnW-1:0]            info_idx_i,
    input  wire rx_conn_t               info_i,
    input  wire                         init_valid_i,
    output logic                        init_ready_o,
    input  wire  [ConnW+PathW-1:0]      init_idx_i,
    input  wire psn_t                   init_psn_i,
    // S1: a frame, and where the buffer keeps it
    input  wire                         head_valid_i,
    input  wire head_t                  head_i,
    input  wire flen_t                  len_i,
    input  wire                         mac_error_i,
    input  wire                         data_full_i,
    input  wire                         ack_full_i,
    input  wire  [PtrW-1:0]             start_i,
    input  wire  [PtrW-1:0]             end_i,
    // S3
    input  wire                         icrc_good_i,
    // S5: the verdict
    output logic                        done_o,           // any
    output logic [PtrW-1:0]             end_o,            // the buffer's end_i of the frame
    output logic                        pending_valid_o,  // accepted data or probe
    output rx_pending_t                 pending_o,
    output addr_t                       va_o,
    output logic [PtrW-1:0]             start_o,
    output logic                        ack_valid_o,      // accepted ack
    output ack_t                        ack_o,
    output logic                        drop_valid_o,
    output drop_e                       drop_o,
    output logic                        mark_valid_o,     // owe the path an ack at once
    output logic [ConnW+PathW-1:0]      mark_idx_o,
    // The core has failed a connection: once in its life
    input  wire                         fail_valid_i,
    input  wire conn_fail_t             fail_i,
    // Status of a connection for its acks, same cycle
    input  wire  [ConnW-1:0]            status_conn_i,
    output err_e                        status_o
);

  // ---- S1
  hdr_probe_t h;
  wdh_t wdh;
  ext_t ext;
  assign h   = head_i[$bits(head_t)-1-:$bits(hdr_probe_t)];
  assign ext = head_i[$bits(ext_t)-1:0];
  assign wdh = ext[$bits(ext_t)-1-:$bits(wdh_t)];

  logic [ConnW-1:0] conn1;
  logic [PathW-1:0] path1;
  assign conn1 = h.bth.dqpn[ConnW-1:0];
  assign path1 = h.wth.path[PathW-1:0];

  // What later stages need of the header.
  typedef struct packed {
    logic [ConnW-1:0] conn;
    logic [PathW-1:0] path;
    logic [7:0]       epoch;
    logic [15:0]      incarnation;
    psn_t             psn;
    logic [31:0]      timestamp;
    logic             ce;
    logic             signal;
    logic [PtrW-1:0]  start;
    logic [PtrW-1:0]  stop;
    ext_t             ext;
  } info_t;

  logic v2_q, v3_q, v4_q, v5_q;
  info_t s2_q, s3_q, s4_q, s5_q;
  plen_t len2_q, len3_q, len4_q, len5_q;
  life_t life3_q, life4_q, life5_q;  // of the connection, as it was in S1
  cfg_global_t cfg_global;
  plen_t mtu_q;
  cfg_port_t port_q;
  assign cfg_global = cfg_i.data[$bits(cfg_global_t)-1:0];

  always_ff @(posedge clk_i) begin
    if (rst_i) mtu_q <= plen_t'(MAX_PAYLOAD);
    else if (cfg_i.valid && cfg_i.kind == CfgGlobal) mtu_q <= plen_t'(1) << cfg_global.mtu_log2;
    if (cfg_i.valid && cfg_i.kind == CfgPort && cfg_i.index == 16'(Port)) begin
      port_q <= cfg_i.data[$bits(cfg_port_t)-1:0];
    end
  end

  rx_conn_t conn_info;  // in S2
  wdh_t wdh2, wdh3;
  assign wdh2 = s2_q.ext[$bits(ext_t)-1-:$bits(wdh_t)];
  assign wdh3 = s3_q.ext[$bits(ext_t)-1-:$bits(wdh_t)];

  // S3: content of the packet, as far as region and message do not matter
  logic longer3_q, hollow3_q, mtu3_q, short3_q, no_sem3_q;
  // S4
  logic bad_stream4_q, failed4_q, bad_msg4_q, no_sem4_q, hurry4_q, crosses4_q;
  err_e status3;
  logic crosses3;

  always_ff @(posedge clk_i) begin
    v2_q <= head_valid_i && !rst_i;
    v3_q <= v2_q && !rst_i;
    v4_q <= v3_q && !rst_i;
    v5_q <= v4_q && !rst_i;
    if (head_valid_i) begin
      s2_q.conn        <= conn1;
      s2_q.path        <= path1;
      s2_q.epoch       <= h.wth.epoch;
      s2_q.incarnation <= h.wth.incarnation;
      s2_q.psn         <= h.bth.psn;
      s2_q.timestamp   <= h.wth.timestamp;
      s2_q.ce          <= h.ipv4.ecn == ECN_CE;
      s2_q.signal      <= h.bth.opcode == OpWriteSignal;
      s2_q.start       <= start_i;
      s2_q.stop        <= end_i;
      s2_q.ext         <= ext;
      len2_q           <= plen_t'(len_i - flen_t'(HDR_DATA_BYTES + IcrcBytes) - flen_t'(h.bth.pad));
    end
    if (v2_q) begin
      s3_q      <= s2_q;
      life3_q   <= conn_info.life;
      len3_q    <= len2_q;
      longer3_q <= 32'(len2_q) > wdh2.msg_len;
      hollow3_q <= len2_q == '0 && wdh2.msg_len != '0;
      mtu3_q    <= len2_q > mtu_q;
      short3_q  <= len2_q < mtu_q;
      no_sem3_q <= s2_q.signal && 32'(wdh2.sem) >= NumSems;
    end
    if (v3_q) begin
      s4_q          <= s3_q;
      len4_q        <= len3_q;
      life4_q       <= life3_q;
      bad_stream4_q <= wdh3.stream != '0;
      failed4_q     <= status3 != ErrOk;
      bad_msg4_q    <= longer3_q || hollow3_q || mtu3_q;
      no_sem4_q     <= no_sem3_q;
      hurry4_q      <= short3_q || !wdh3.more;
      crosses4_q    <= crosses3;
    end
  end

  // ---- configuration of the connection: read in S1, compared in S2
  weft_sdpram #(
      .data_t(rx_conn_t),
      .Depth (NumConns)
  ) u_conns (
      .clk_i,
      .we_i   (info_we_i),
      .waddr_i(info_idx_i),
      .wdata_i(info_i),
      .re_i   (head_valid_i),
      .raddr_i(conn1),
      .rdata_o(conn_info)
  );

  logic refused, claims, is_data, is_probe, is_ack;
  drop_e reason;
  weft_rx_header #(
      .Port        (Port),
      .NumConns    (NumConns),
      .PathsPerPort(PathsPerPort)
  ) u_header (
      .clk_i,
      .port_i       (port_q),
      .conn_valid_i,
      .valid_i      (head_valid_i),
      .head_i,
      .len_i,
      .mac_error_i,
      .data_full_i,
      .ack_full_i,
      .incarnation_i(conn_info.incarnation),
      .icrc_good_i,
      .refused_o    (refused),
      .reason_o     (reason),
      .claims_o     (claims),
      .is_data_o    (is_data),
      .is_probe_o   (is_probe),
      .is_ack_o     (is_ack)
  );

  logic same_epoch, fresh, stale, claim, claim_ready;
  weft_rx_claim #(
      .NumPaths(NumConns * PathsPerPort)
  ) u_claim (
      .clk_i,
      .rst_i,
      .init_valid_i,
      .init_ready_o(claim_ready),
      .init_idx_i,
      .init_psn_i,
      .look_i      (head_valid_i),
      .look_idx_i  ({conn1, path1}),
      .idx_i       ({s3_q.conn, s3_q.path}),
      .psn_i       (s3_q.psn),
      .epoch_i     (s3_q.epoch),
      .same_epoch_o(same_epoch),
      .fresh_o     (fresh),
      .stale_o     (stale),
      .claim_i     (claim)
  );

  logic bad_key, bad_bounds, bad_rights;
  weft_rx_region #(
      .NumRegions(NumRegions)
  ) u_region (
      .clk_i,
      .rst_i,
      .cfg_i,
      .look_i      (head_valid_i),
      .key_i       (wdh.rkey),
      .va_i        (wdh.va),
      .len_i       (len2_q),
      .crosses_o   (crosses3),
      .bad_key_o   (bad_key),
      .bad_bounds_o(bad_bounds),
      .bad_rights_o(bad_rights)
  );

  // ---- S4: decision
  logic ordered, in_epoch, bad, fail;
  drop_e reason4;
  err_e error4;
  always_comb begin
    ordered  = v4_q && ((!refused && !is_ack) || claims);  // takes part in the path's sequence
    in_epoch = ordered && same_epoch;
    claim    = in_epoch && fresh;
    bad      = claims || (is_data && (failed4_q || bad_stream4_q || bad_msg4_q || bad_key ||
               bad_bounds || bad_rights || no_sem4_q));
    fail     = claim && bad && !failed4_q;
    reason4  = refused ? reason : !same_epoch ? DropEpoch : stale ? DropStale :
               !fresh ? DropFuture : (failed4_q || bad_stream4_q) ? DropStream :
               bad_msg4_q ? DropMsg : bad_key ? DropKey : bad_bounds ? DropBounds :
               bad_rights ? DropRights : DropBounds;
    error4   = (claims || bad_stream4_q) ? ErrRemoteOp : bad_msg4_q ? ErrBadLength :
               bad_key ? ErrRemoteKey : (bad_bounds || !bad_rights) ? ErrRemoteBounds :
               ErrRemoteRights;
  end

  // ---- status of the connections: what was refused here, and what the core has failed
  (* ram_style = "distributed" *) err_e status_mem[NumConns];
  (* ram_style = "distributed" *) err_e late_mem[NumConns];
  logic clear;  // a path of a connection starts: so does its status
  assign clear = init_valid_i && init_ready_o;
  assign init_ready_o = claim_ready && !fail_valid_i;

  function automatic err_e status_of(err_e refused_status, err_e late_status);
    return (refused_status != ErrOk) ? refused_status : late_status;
  endfunction
  assign status3  = status_of(status_mem[s3_q.conn], late_mem[s3_q.conn]);
  assign status_o = status_of(status_mem[status_conn_i], late_mem[status_conn_i]);

  logic [ConnW-1:0] status_waddr;
  logic [ConnW-1:0] late_waddr;
  assign status_waddr = fail ? s4_q.conn : init_idx_i[PathW+:ConnW];
  assign late_waddr   = fail_valid_i ? fail_i.conn[ConnW-1:0] : init_idx_i[PathW+:ConnW];
  always_ff @(posedge clk_i) begin
    if (fail || clear) status_mem[status_waddr] <= fail ? error4 : ErrOk;
    if (fail_valid_i || clear) late_mem[late_waddr] <= fail_valid_i ? fail_i.status : ErrOk;
  end

  // ---- S5
  logic pending5_q, ack5_q, drop5_q, mark5_q, probe5_q, hurry5_q;
  logic [1:0] bursts5_q;
  drop_e reason5_q;
  wah_t wah4;
  logic [HIST_BITS-1:0] hist5_q;  // bit 0 = first bit on the wire; ones behind what came
  assign wah4 = s4_q.ext[$bits(ext_t)-1-:$bits(wah_t)];
  always_ff @(posedge clk_i) begin
    if (v4_q) begin
      s5_q      <= s4_q;
      len5_q    <= is_probe ? '0 : len4_q;
      life5_q   <= life4_q;
      probe5_q  <= is_probe;
      hurry5_q  <= is_probe || hurry4_q;
      bursts5_q <= (is_probe || len4_q == '0) ? 2'd0 : crosses4_q ? 2'd2 : 2'd1;
      reason5_q <= reason4;
    end
    if (v4_q && is_ack) begin
      for (int i = 0; i < int'(HIST_BITS); i++) begin
        hist5_q[i] <= s4_q.ext[int'(HIST_BITS)-1-i] || 4'(i / 32) >= wah4.hist_words;
      end
    end
    pending5_q <= claim && !bad && !rst_i;
    ack5_q     <= v4_q && !refused && is_ack && !rst_i;
    drop5_q    <= v4_q && (refused || (!is_ack && !(claim && !bad))) && !rst_i;
    mark5_q    <= ((claim && bad) || (in_epoch && stale && is_probe)) && !rst_i;
  end

  wdh_t wdh5;
  wah_t wah5;
  assign wdh5 = s5_q.ext[$bits(ext_t)-1-:$bits(wdh_t)];
  assign wah5 = s5_q.ext[$bits(ext_t)-1-:$bits(wah_t)];

  assign done_o          = v5_q;
  assign end_o           = s5_q.stop;
  assign start_o         = s5_q.start;
  assign va_o            = wdh5.va;
  assign pending_valid_o = pending5_q;
  assign pending_o = '{
          probe: probe5_q,
          ce: s5_q.ce,
          hurry: hurry5_q,
          bursts: bursts5_q,
          conn: conn_t'(s5_q.conn),
          path: path_t'(s5_q.path),
          epoch: s5_q.epoch,
          incarnation: s5_q.incarnation,
          life: life5_q,
          psn: s5_q.psn,
          timestamp: s5_q.timestamp,
          stream: wdh5.stream,
          msg_no: wdh5.msg_no,
          msg_len: wdh5.msg_len,
          va: wdh5.va[32:0],
          len: len5_q,
          signal: s5_q.signal,
          sem: wdh5.sem,
          value: wdh5.value
      };
  assign ack_valid_o = ack5_q;
  assign ack_o = '{
          conn: conn_t'(s5_q.conn),
          incarnation: s5_q.incarnation,
          path: path_t'(s5_q.path),
          epoch: s5_q.epoch,
          base: wah5.base,
          hist_words: wah5.hist_words,
          hist: hist5_q,
          ce_bytes: wah5.ce_bytes,
          rx_bytes: wah5.rx_bytes,
          echo: wah5.echo,
          share: wah5.share,
          credits: wah5.credits,
          status: err_e'(wah5.status)
      };
  assign drop_valid_o = drop5_q;
  assign drop_o       = reason5_q;
  assign mark_valid_o = mark5_q;
  assign mark_idx_o   = {s5_q.conn, s5_q.path};

  `WEFT_ASSERT(OneAnswer, 2'(pending5_q) + 2'(ack5_q) + 2'(drop5_q) == 2'(v5_q));

endmodule
`default_nettype wire
