// SPDX-License-Identifier: Apache-2.0
//
// Judges the headers of a frame: everything that needs neither path state nor a region.
//
// A frame's header comes in S1, its verdict leaves in S4; one frame a cycle. The order of the
// reasons is that of docs/rx.md (and of parse() in sw/wire/frame.cpp): the first that fits is the
// one given. A frame with an operation of the data layout that is not served, but otherwise in
// order, is refused AND asks to claim its PSN (claims_o), so that its stream can be failed.
`default_nettype none
`include "weft_assert.svh"

module weft_rx_header
  import weft_wire_pkg::*;
  import weft_pkg::*;
  import weft_rx_pkg::*;
#(
    parameter int unsigned Port = 0,
    parameter int unsigned NumConns = 64,
    parameter int unsigned PathsPerPort = 8
) (
    input  wire                     clk_i,
    input  wire cfg_port_t          port_i,
    input  wire  [NumConns-1:0]     conn_valid_i,
    // S1
    input  wire                     valid_i,
    input  wire head_t              head_i,
    input  wire flen_t              len_i,
    input  wire                     mac_error_i,
    input  wire                     data_full_i,  // no room: payload, or the queues behind it
    input  wire                     ack_full_i,   // no room for a received ack
    // S2: what is configured for the connection of the frame that was in S1
    input  wire  [15:0]             incarnation_i,
    // S3
    input  wire                     icrc_good_i,
    // S4
    output logic                    refused_o,
    output drop_e                   reason_o,
    output logic                    claims_o,
    output logic                    is_data_o,
    output logic                    is_probe_o,
    output logic                    is_ack_o
);

  localparam int unsigned ConnW = $clog2(NumConns);
  localparam int unsigned PathW = $clog2(PathsPerPort);
  localparam flen_t Before = flen_t'(ETH_BYTES);  // of a frame's bytes, those before the IP header
  localparam flen_t BeforeUdp = flen_t'(ETH_BYTES + IPV4_BYTES);

  // ---- S1: the header as each layout reads it
  hdr_probe_t h;
  wdh_t wdh;
  wah_t wah;
  ext_t ext;
  assign h   = head_i[$bits(head_t)-1-:$bits(hdr_probe_t)];
  assign ext = head_i[$bits(ext_t)-1:0];
  assign wdh = ext[$bits(ext_t)-1-:$bits(wdh_t)];
  assign wah = ext[$bits(ext_t)-1-:$bits(wah_t)];

  logic served_data, served_ack, served_probe, unserved_data;
  assign served_data   = h.bth.opcode == OpWrite || h.bth.opcode == OpWriteSignal;
  assign served_ack    = h.bth.opcode == OpAck;
  assign served_probe  = h.bth.opcode == OpProbe;
  assign unserved_data = h.bth.opcode >= OpSend && h.bth.opcode <= OpCredit && !served_data;

  logic [12:0] path_off;
  assign path_off = 13'(h.wth.path >> PathW);

  // ---- S2
  typedef struct packed {
    logic mac, too_short, too_long, ethertype, ip_form, protocol, destination;
    logic bth_version, opcode, ext_short, ext_version, pad, ack_bad, conn, path, overflow;
    logic is_data, is_ack, is_probe, unserved;
  } flags_t;
  flags_t s2_q;
  logic [4:0][16:0] pairs_q;  // words of the IP header, added in pairs
  logic [15:0] inc2_q;
  logic valid2_q, valid3_q;  // S2, S3 hold a frame: nothing moves without one
  logic [15:0] ip_len_q, udp_len_q;
  flen_t from_ip_q, from_udp_q;  // bytes of the frame from that header on

  always_ff @(posedge clk_i) begin
    valid2_q <= valid_i;
    if (valid_i) begin
      s2_q.mac         <= mac_error_i;
      s2_q.too_short   <= len_i < flen_t'(MinFrame);
      s2_q.too_long    <= len_i > flen_t'(MaxFrame);
      s2_q.ethertype   <= h.eth.ethertype != 16'h0800;
      s2_q.ip_form     <= h.ipv4.ver_ihl != 8'h45 || (h.ipv4.frag & 16'hbfff) != '0;
      s2_q.protocol    <= h.ipv4.proto != 8'd17 || h.udp.dport != 16'(UDP_DPORT);
      s2_q.destination <= h.eth.dst != port_i.mac || h.ipv4.dst != port_i.ip;
      s2_q.bth_version <= h.bth.tver != '0;
      s2_q.opcode      <= !(served_data || served_ack || served_probe);
      s2_q.ext_short   <= (served_data && len_i < flen_t'(HDR_DATA_BYTES + IcrcBytes)) ||
                          (served_ack && len_i < flen_t'(HDR_ACK_BYTES + IcrcBytes));
      s2_q.ext_version <= (served_data && wdh.version != WEFT_VERSION) ||
                          (served_ack && wah.version != WEFT_VERSION);
      // Bytes from the IP header on are a multiple of 4, or the pad was not right.
      s2_q.pad         <= (served_data && (len_i[1:0] != Before[1:0] ||
                           (len_i == flen_t'(HDR_DATA_BYTES + IcrcBytes) && h.bth.pad != '0))) ||
                          (served_ack && h.bth.pad != '0) ||
                          (served_probe && (h.bth.pad != '0 || len_i != flen_t'(MinFrame)));
      s2_q.ack_bad     <= served_ack && (wah.hist_words > 4'(HIST_BITS / 32) || wah.blocks != '0 ||
                          len_i != flen_t'(HDR_ACK_BYTES + IcrcBytes) +
                                   flen_t'({wah.hist_words, 2'd0}));
      s2_q.conn        <= (h.bth.dqpn >> ConnW) != '0 || !conn_valid_i[h.bth.dqpn[ConnW-1:0]];
      s2_q.path        <= path_off != 13'(Port);
      s2_q.overflow    <= served_ack ? ack_full_i : data_full_i;
      s2_q.is_data     <= served_data;
      s2_q.is_ack      <= served_ack;
      s2_q.is_probe    <= served_probe;
      s2_q.unserved    <= unserved_data;
      for (int i = 0; i < 5; i++) pairs_q[i] <= 17'(h.ipv4[32*i+:16]) + 17'(h.ipv4[32*i+16+:16]);
      inc2_q           <= h.wth.incarnation;
      ip_len_q         <= h.ipv4.len;
      udp_len_q        <= h.udp.len;
      from_ip_q        <= len_i - Before;
      from_udp_q       <= len_i - BeforeUdp;
    end
  end

  // ---- S3: three groups of reasons, with the IP checksum between the first and the second and the
  // ICRC between the second and the third
  typedef struct packed {
    logic  yes;
    drop_e code;
  } reason_t;

  function automatic reason_t first_group(flags_t f);
    reason_t r;
    r.yes  = f.mac || f.too_short || f.too_long || f.ethertype || f.ip_form;
    r.code = f.mac ? DropMac : f.too_short ? DropShort : f.too_long ? DropLong :
             f.ethertype ? DropEthertype : DropIpHeader;
    return r;
  endfunction

  function automatic reason_t second_group(flags_t f, logic lengths);
    reason_t r;
    r.yes  = f.protocol || lengths || f.destination;
    r.code = f.protocol ? DropProtocol : lengths ? DropLength : DropDestination;
    return r;
  endfunction

  function automatic reason_t third_group(flags_t f, logic incarnation);
    reason_t r;
    r.yes  = f.bth_version || f.opcode || f.ext_short || f.ext_version || f.pad || f.ack_bad ||
             f.conn || incarnation || f.path || f.overflow;
    r.code = f.bth_version ? DropVersion : f.opcode ? DropOpcode : f.ext_short ? DropShort :
             f.ext_version ? DropVersion : f.pad ? DropPad : f.ack_bad ? DropAckBad :
             f.conn ? DropConn : incarnation ? DropIncarnation : f.path ? DropPath : DropOverflow;
    return r;
  endfunction

  reason_t first_q, second_q, third_q;
  logic claims3_q, data3_q, ack3_q, probe3_q;
  logic [19:0] sum_q;
  logic other_incarnation, other_length;
  assign other_incarnation = incarnation_i != inc2_q;
  assign other_length      = ip_len_q != 16'(from_ip_q) || udp_len_q != 16'(from_udp_q);

  always_ff @(posedge clk_i) begin
    valid3_q <= valid2_q;
    if (valid2_q) begin
      first_q   <= first_group(s2_q);
      second_q  <= second_group(s2_q, other_length);
      third_q   <= third_group(s2_q, other_incarnation);
      claims3_q <= s2_q.unserved && !s2_q.bth_version && !s2_q.conn && !other_incarnation &&
                   !s2_q.path;
      data3_q   <= s2_q.is_data;
      ack3_q    <= s2_q.is_ack;
      probe3_q  <= s2_q.is_probe;
      sum_q     <= 20'(pairs_q[0]) + 20'(pairs_q[1]) + 20'(pairs_q[2]) + 20'(pairs_q[3]) +
                   20'(pairs_q[4]);
    end
  end

  // The sum of ten words folds to ffff exactly if its low half is ffff minus its carries.
  logic checksum_good;
  assign checksum_good = sum_q[15:4] == '1 && sum_q[3:0] == ~sum_q[19:16];

  // ---- S4
  logic refused_q, claims_q, data_q, ack_q, probe_q;
  drop_e reason_q;
  always_ff @(posedge clk_i) begin
    if (valid3_q) begin
      refused_q <= first_q.yes || !checksum_good || second_q.yes || !icrc_good_i || third_q.yes;
      reason_q  <= first_q.yes ? first_q.code : !checksum_good ? DropIpHeader :
                   second_q.yes ? second_q.code : !icrc_good_i ? DropIcrc : third_q.code;
      claims_q  <= !first_q.yes && checksum_good && !second_q.yes && icrc_good_i && claims3_q;
      data_q    <= data3_q;
      ack_q     <= ack3_q;
      probe_q   <= probe3_q;
    end
  end

  assign refused_o  = refused_q;
  assign reason_o   = reason_q;
  assign claims_o   = claims_q;
  assign is_data_o  = data_q;
  assign is_ack_o   = ack_q;
  assign is_probe_o = probe_q;

endmodule
`default_nettype wire
