// SPDX-License-Identifier: Apache-2.0
//
// Builds the headers, Ethernet to WDH or WAH with history, as the first two beats of a frame.
//
// ack: held until its frame is built, then the next is taken (one in about 9 cycles). The history
// is
// cut behind its last zero: hist_words of ack_i is not looked at, whole words of ones are not sent.
// start_i with head_i (stable until the next start, 2 cycles or more): connection table, IP
// checksum and the rest are ready 3 cycles later, when first_i may come. In the cycle of first_i
// and
// of second_i fields_i is the job's; beat_o follows one cycle later. The WTH timestamp is now_i in
// the cycle of first_i, so neither memory nor the queue of jobs is part of an RTT.
// Tables: CfgPort of this port, CfgConn of this port (16 cycles from one to the next). An unknown
// connection is not noticed here: whoever makes jobs and acks knows which exist.
`default_nettype none
`include "weft_assert.svh"

module weft_tx_hdr
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_tx_pkg::*;
#(
    parameter int unsigned Port         = 0,
    parameter int unsigned NumPorts     = 2,
    parameter int unsigned NumConns     = 64,
    parameter int unsigned PathsPerPort = 8
) (
    input  wire               clk_i,
    input  wire               rst_i,
    input  wire cfg_t         cfg_i,
    input  wire  [31:0]       now_i,
    // Acks to build: ready is a register.
    input  wire               ack_valid_i,
    output logic              ack_ready_o,
    input  wire ack_t         ack_i,
    // The ack as a frame to send.
    output logic              frame_valid_o,
    input  wire               frame_ready_i,
    output tx_frame_t         frame_o,
    // The frame that begins.
    input  wire               start_i,
    input  wire tx_head_t     head_i,
    // Header beats.
    input  wire               first_i,
    input  wire               second_i,
    input  wire tx_fields_t   fields_i,
    output logic              fields_pop_o,
    output logic [DataW-1:0]  beat_o         // byte i in [8*i +: 8]
);

  localparam int unsigned ConnW = (NumConns > 1) ? $clog2(NumConns) : 1;
  localparam int unsigned PortW = (NumPorts > 1) ? $clog2(NumPorts) : 0;
  localparam int unsigned HistWords = HIST_BITS / 32;
  localparam logic [15:0] IpFlags = 16'h4000;  // do not fragment
  localparam logic [7:0] IpTtl = 8'd64, IpProto = 8'd17;

  if (2 ** PortW != NumPorts) begin : gen_bad_ports
    $error("weft_tx_hdr: NumPorts must be a power of two");
  end
  if (NumPorts * PathsPerPort > 256) begin : gen_bad_paths
    $error("weft_tx_hdr: NumPorts * PathsPerPort must fit the 8-bit path of the WTH");
  end

  // ---- configuration; the parts of the checksum that are known now are added up now -------------
  typedef struct packed {
    logic [47:0] rmac;
    logic [31:0] rip;
    logic [23:0] rconn;
    logic [15:0] incarnation;
    logic [15:0] sport;
    logic [15:0] ip_sum;  // of rip
  } conn_entry_t;

  function automatic logic [15:0] fold(logic [17:0] sum);
    logic [16:0] once = {1'b0, sum[15:0]} + {15'd0, sum[17:16]};
    return once[15:0] + {15'd0, once[16]};
  endfunction

  cfg_port_t port_q;
  logic [17:0] port_sum18_q;
  logic [15:0] port_sum_q;
  logic port_new_q, port_sum_new_q;

  logic conn_new_q, conn_sum_new_q;
  cfg_conn_t cfg_conn;
  logic [ConnW-1:0] conn_index_q;
  logic [16:0] conn_sum17_q;
  conn_entry_t conn_entry_q, conn_entry;

  assign cfg_conn = cfg_conn_t'(cfg_i.data[$bits(cfg_conn_t)-1:0]);

  always_ff @(posedge clk_i) begin
    if (cfg_i.valid && cfg_i.kind == CfgPort && cfg_i.index == 16'(Port)) begin
      port_q <= cfg_port_t'(cfg_i.data[$bits(cfg_port_t)-1:0]);
    end
    if (port_new_q) begin
      port_sum18_q <= 18'(port_q.ip[31:16]) + 18'(port_q.ip[15:0]) + 18'h4500 + 18'(IpFlags) +
          18'({IpTtl, IpProto});
    end
    if (port_sum_new_q) port_sum_q <= fold(port_sum18_q);

    if (cfg_i.valid && cfg_i.kind == CfgConn) begin
      conn_index_q <= ConnW'(cfg_i.index >> PortW);
      conn_entry_q <= '{
          rmac: cfg_conn.rmac,
          rip: cfg_conn.rip,
          rconn: cfg_conn.rconn,
          incarnation: cfg_conn.incarnation,
          sport: cfg_conn.sport,
          ip_sum: '0
      };
    end
    if (conn_new_q) conn_sum17_q <= 17'(conn_entry_q.rip[31:16]) + 17'(conn_entry_q.rip[15:0]);

    port_new_q <= cfg_i.valid && cfg_i.kind == CfgPort && cfg_i.index == 16'(Port) && !rst_i;
    port_sum_new_q <= port_new_q && !rst_i;
    conn_new_q <= cfg_i.valid && cfg_i.kind == CfgConn && !rst_i &&
        (cfg_i.index & 16'(NumPorts - 1)) == 16'(Port);
    conn_sum_new_q <= conn_new_q && !rst_i;
  end

  always_comb begin
    conn_entry        = conn_entry_q;
    conn_entry.ip_sum = fold({1'b0, conn_sum17_q});
  end

  // ---- the ack in hand --------------------------------------------------------------------------
  logic ack_valid_q, ack_counted_q, ack_taken_q, ack_built;
  ack_t ack_q;
  logic [3:0] hist_words_q;

  // The history as it leaves, oldest bit last: the word for base-1..base-32 is [HistWords-1].
  // Behind
  // the word with the last zero nothing is sent.
  logic [HistWords-1:0][31:0] hist_q, hist;
  logic [HistWords-1:0] hist_sent_q;

  function automatic logic [3:0] words_to_send(logic [HistWords-1:0][31:0] text);
    logic [3:0] words = '0;
    for (int w = int'(HistWords) - 1; w >= 0; w--) if (!(&text[w])) words = 4'(int'(HistWords) - w);
    return words;
  endfunction

  assign ack_ready_o   = !ack_valid_q;
  assign frame_valid_o = ack_counted_q && !ack_taken_q;
  assign frame_o       = '{
      kind: TxAck,
      conn: ack_q.conn,
      path: ack_q.path,
      last_byte: 13'(HDR_ACK_BYTES - 1) + 13'({hist_words_q, 2'b00}),
      reads: '0,
      offset: '0,
      bad: 1'b0
  };

  always_ff @(posedge clk_i) begin
    if (ack_valid_i && ack_ready_o) begin
      ack_q  <= ack_i;
      hist_q <= {<<{ack_i.hist}};
    end else if (ack_valid_q && !ack_counted_q) begin
      hist_words_q <= words_to_send(hist_q);
      for (int w = 0; w < int'(HistWords); w++) begin
        hist_sent_q[w] <= words_to_send(hist_q) >= 4'(int'(HistWords) - w);
      end
    end
    if (rst_i) begin
      ack_valid_q   <= 1'b0;
      ack_counted_q <= 1'b0;
      ack_taken_q   <= 1'b0;
    end else begin
      ack_valid_q   <= ack_ready_o ? ack_valid_i : !ack_built;
      ack_counted_q <= ack_valid_q && !ack_built;
      ack_taken_q   <= (ack_taken_q || (frame_valid_o && frame_ready_i)) && !ack_built;
    end
  end

  // ---- what follows from the head of the frame: 3 cycles ----------------------------------------
  // start     table read                               sum = port + length
  // start+1   entry there (until the next start + 1)    sum += connection; source port
  // start+2   entry_q, head_q, ... loaded               fold, invert
  // start+3   all there, until the next start + 3
  typedef struct packed {
    tx_kind_e    kind;
    path_t       path;
    logic [15:0] ip_len;
  } known_t;

  logic started_q, started2_q;
  conn_entry_t entry, entry_q;
  known_t known, known2_q, known_q;
  logic [16:0] sum17_q;
  logic [17:0] sum18_q;
  logic [15:0] csum_q, sport2_q, sport_q;

  weft_sdpram #(
      .data_t(conn_entry_t),
      .Depth (NumConns),
      .Style ("block")
  ) u_conns (
      .clk_i,
      .we_i   (conn_sum_new_q),
      .waddr_i(conn_index_q),
      .wdata_i(conn_entry),
      .re_i   (start_i),
      .raddr_i(ConnW'(head_i.conn)),
      .rdata_o(entry)
  );

  // From the IP header to the ICRC: 4*words + 2 bytes without it, minus the Ethernet header.
  assign known = '{
      kind: head_i.kind,
      path: head_i.path,
      ip_len: {3'd0, head_i.words - 11'd2, 2'b00}
  };

  always_ff @(posedge clk_i) begin
    // ECN, alone in its half of the first word, fits into the two free bits of the length.
    if (start_i) sum17_q <= 17'(port_sum_q) + 17'({known.ip_len[15:2], ecn_of(known.kind)});
    if (started_q) begin
      sum18_q  <= 18'(sum17_q) + 18'(entry.ip_sum);
      sport2_q <= entry.sport + 16'(known.path);
      known2_q <= known;
    end
    if (started2_q) begin
      csum_q  <= ~fold(sum18_q);
      sport_q <= sport2_q;
      known_q <= known2_q;
      entry_q <= entry;
    end
    started_q  <= start_i && !rst_i;
    started2_q <= started_q && !rst_i;
  end

  // ---- the two beats ----------------------------------------------------------------------------
  localparam int unsigned FixedBits = 8 * HDR_PROBE_BYTES;  // Ethernet .. WTH
  localparam int unsigned OwnBits = 8 * WAH_BYTES + HIST_BITS;  // WAH and history, or WDH

  function automatic logic [1:0] ecn_of(tx_kind_e kind);
    return (kind == TxData) ? ECN_ECT0 : 2'd0;
  endfunction

  hdr_probe_t fixed;
  wdh_t wdh;
  wah_t wah;
  logic [OwnBits-1:0] own;

  always_comb begin
    fixed                 = '0;
    fixed.eth.dst         = entry_q.rmac;
    fixed.eth.src         = port_q.mac;
    fixed.eth.ethertype   = 16'h0800;
    fixed.ipv4.ver_ihl    = 8'h45;
    fixed.ipv4.ecn        = ecn_of(known_q.kind);
    fixed.ipv4.len        = known_q.ip_len;
    fixed.ipv4.frag       = IpFlags;
    fixed.ipv4.ttl        = IpTtl;
    fixed.ipv4.proto      = IpProto;
    fixed.ipv4.csum       = csum_q;
    fixed.ipv4.src        = port_q.ip;
    fixed.ipv4.dst        = entry_q.rip;
    fixed.udp.sport       = sport_q;
    fixed.udp.dport       = 16'(UDP_DPORT);
    fixed.udp.len         = known_q.ip_len - 16'(IPV4_BYTES);
    fixed.bth.pkey        = PKEY;
    fixed.bth.dqpn        = entry_q.rconn;
    fixed.wth.path        = 8'(Port * PathsPerPort) + known_q.path;
    fixed.wth.incarnation = entry_q.incarnation;
    fixed.wth.timestamp   = now_i;
    unique case (known_q.kind)
      TxAck: begin
        fixed.bth.opcode = OpAck;
        fixed.wth.epoch  = ack_q.epoch;
      end
      TxProbe: begin
        fixed.bth.opcode = OpProbe;
        fixed.bth.psn    = fields_i.psn;
        fixed.wth.epoch  = fields_i.epoch;
      end
      default: begin
        fixed.bth.opcode = fields_i.signal ? OpWriteSignal : OpWrite;
        fixed.bth.pad    = fields_i.pad;
        fixed.bth.psn    = fields_i.psn;
        fixed.wth.epoch  = fields_i.epoch;
      end
    endcase
  end

  always_comb begin
    wdh = '{
        more: fields_i.more,
        retx: fields_i.retx,
        resv: '0,
        version: WEFT_VERSION,
        stream: fields_i.stream,
        va: fields_i.raddr,
        rkey: fields_i.rkey,
        msg_no: fields_i.msg_no,
        sem: fields_i.sem,
        msg_len: fields_i.msg_len,
        value: fields_i.value
    };
    wah = '{
        hist_words: hist_words_q,
        blocks: '0,
        base: ack_q.base,
        ce_bytes: ack_q.ce_bytes,
        rx_bytes: ack_q.rx_bytes,
        echo: ack_q.echo,
        share: ack_q.share,
        credits: ack_q.credits,
        status: ack_q.status,
        version: WEFT_VERSION
    };
    for (int w = 0; w < int'(HistWords); w++) hist[w] = hist_sent_q[w] ? hist_q[w] : '0;
    unique case (known_q.kind)
      TxData:  own = {wdh, {(OwnBits - $bits(wdh_t)) {1'b0}}};
      TxAck:   own = {wah, hist};
      default: own = '0;
    endcase
  end

  function automatic logic [DataW-1:0] to_lanes(logic [DataW-1:0] text);
    logic [DataW-1:0] lanes;
    for (int i = 0; i < int'(KeepW); i++) lanes[8*i+:8] = text[DataW-8*(i+1)+:8];
    return lanes;
  endfunction

  logic [DataW-1:0] beat_q;
  always_ff @(posedge clk_i) begin
    if (first_i || second_i) begin
      beat_q <= to_lanes(first_i ? {fixed, own[OwnBits-1-:DataW-FixedBits]} :
                         {own[OwnBits-(DataW-FixedBits)-1:0],
                          {(2 * DataW - FixedBits - OwnBits) {1'b0}}});
    end
  end

  assign beat_o       = beat_q;
  assign ack_built    = second_i && known_q.kind == TxAck;
  assign fields_pop_o = second_i && known_q.kind != TxAck;

  `WEFT_IMPLIES(ConnInTable, start_i, 32'(head_i.conn) < NumConns);
  `WEFT_IMPLIES(PathInPort, start_i, 32'(head_i.path) < PathsPerPort);
  `WEFT_IMPLIES(AckBuiltIsTaken, ack_built, ack_taken_q);

endmodule

`default_nettype wire
