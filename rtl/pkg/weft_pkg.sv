// SPDX-License-Identifier: Apache-2.0
// Types shared by the blocks of a node: what travels on the internal wires. What two machines must
// agree on (headers, WQE, error codes) is in weft_wire_pkg, generated from sw/wire/wire.yaml.
// Index types are as wide as the largest configuration asks for; a block uses as many low bits as
// its parameters need.
`default_nettype none
package weft_pkg;
  import weft_wire_pkg::*;

  localparam int unsigned DataW = 512;  // datapath bits
  localparam int unsigned KeepW = DataW / 8;
  localparam int unsigned NmcW = 1024;  // near-memory reducer bits

  typedef logic [11:0] conn_t;  // connection index at this node
  typedef logic [7:0] path_t;  // path of a connection within one port, 0..PathsPerPort-1
  typedef logic [23:0] psn_t;
  typedef logic [9:0] msg_t;  // message slot of the shared core
  typedef logic [63:0] addr_t;
  typedef logic [12:0] plen_t;  // payload bytes of a packet, 0..4096
  typedef logic [15:0] sem_t;
  typedef logic [7:0] tag_t;  // window slot of the engine that asked

  // ---- configuration: table writes broadcast by the register block ------------------------------
  // The driver packs these structs into CFG_DATA, from its low bits up: sw/wire/gen.py reads
  // cfg_table_e and the cfg_*_t of the tables from this file and makes weft_cfg.h of them.
  // A write of CfgConn (re)initialises the connection on that port.
  typedef enum logic [3:0] {
    CfgPort     = 4'd0,  // index = port;                    data = cfg_port_t
    CfgConn     = 4'd1,  // index = conn * NumPorts + port;  data = cfg_conn_t
    CfgRegion   = 4'd2,  // index = region;                  data = cfg_region_t
    CfgSem      = 4'd3,  // index = semaphore;               data = cfg_sem_t
    CfgCq       = 4'd4,  //                                  data = cfg_cq_t
    CfgGlobal   = 4'd5   //                                  data = cfg_global_t
  } cfg_table_e;

  typedef struct packed {
    logic         valid;
    cfg_table_e   kind;
    logic [15:0]  index;
    logic [511:0] data;
  } cfg_t;

  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
  } cfg_port_t;

  typedef struct packed {
    logic        valid;
    logic [47:0] rmac;        // peer's MAC behind this port
    logic [31:0] rip;         // peer's IPv4 behind this port
    logic [23:0] rconn;       // connection number at the peer (BTH DQPN)
    logic [15:0] incarnation;
    logic [15:0] sport;       // UDP source port of path 0; path k uses sport + k
    logic [7:0]  num_paths;   // paths in use on this port, 1..PathsPerPort
    logic [23:0] tx_psn;      // first PSN sent on every path of this port
    logic [23:0] rx_psn;      // first PSN expected on every path of this port
    logic [15:0] share;       // bandwidth share, 1/256 byte a cycle (until the receiver grants it)
    logic [23:0] init_cap;    // bytes in flight on this port before the first ack
  } cfg_conn_t;

  typedef struct packed {
    logic        valid;
    logic [31:0] key;         // low bits = region index, the rest random
    logic        remote_write;
    logic        local_read;
    logic        local_write;
    logic [63:0] base;
    logic [63:0] limit;       // first byte behind the region
  } cfg_region_t;

  typedef struct packed {
    logic [31:0] value;
  } cfg_sem_t;

  typedef struct packed {
    logic [31:0] last;        // entries - 1 (power of two - 1)
    logic [63:0] base;        // address, 64-byte aligned
  } cfg_cq_t;

  typedef struct packed {
    logic [3:0]  mtu_log2;    // payload bytes of a full packet: 8..12
    logic [7:0]  retry_limit; // unanswered probes that fail a connection
    logic [31:0] probe_min;   // shortest wait between probes, cycles
    logic [31:0] rtt_init;    // RTT assumed before the first sample, cycles
    logic [23:0] ack_hold;    // cycles an ack that nothing hurries may wait to coalesce
  } cfg_global_t;

  // ---- engine -> core -> port slice: sending ----------------------------------------------------
  typedef struct packed {     // one WRITE asked of the transport
    conn_t       conn;
    tag_t        tag;
    logic        signal;
    sem_t        sem;
    logic [31:0] value;
    addr_t       laddr;
    addr_t       raddr;
    logic [31:0] rkey;
    logic [31:0] len;
  } tx_req_t;

  typedef struct packed {     // its completion: in posting order within a connection
    tag_t tag;
    err_e status;
  } cpl_t;

  // what a descriptor keeps of an unsettled packet (all that a resend needs)
  typedef struct packed {
    msg_t        msg;
    logic [23:0] pkt;         // packet number in the message; offset = pkt << mtu_log2
    plen_t       len;
  } pkt_desc_t;

  typedef enum logic [1:0] {
    // the connection has nothing to send; an avail event will tell when it has
    PullNone  = 2'd0,
    PullRetry = 2'd1,         // it has, but a shared limit holds it back: ask again later
    PullPkt   = 2'd2
  } pull_e;

  typedef struct packed {     // answer to a port that asked for the next packet of a connection
    pull_e       kind;
    pkt_desc_t   desc;
    logic        retx;
    logic        more;        // the connection has more to send after this packet
    logic        signal;      // WRITE_SIGNAL, else WRITE
    addr_t       laddr;       // of this packet
    addr_t       raddr;       // of this packet
    logic [31:0] rkey;
    logic [15:0] stream;
    logic [15:0] msg_no;
    logic [31:0] msg_len;
    sem_t        sem;
    logic [31:0] value;
  } pull_rsp_t;

  typedef struct packed {     // one data packet settled: delivered, or lost and to be sent again
    conn_t     conn;
    logic      lost;
    pkt_desc_t desc;
  } settle_t;

  typedef struct packed {     // a connection has failed (retry limit, or the peer's ack said so),
    conn_t conn;              // or with ErrOk: the port serves it as the last CfgConn says
    err_e  status;
  } conn_fail_t;

  // ---- port slice: control -> frame builder -----------------------------------------------------
  typedef struct packed {     // a data packet or a probe to build
    logic        probe;
    conn_t       conn;
    path_t       path;
    logic [7:0]  epoch;
    psn_t        psn;
    plen_t       len;
    logic        retx;
    logic        more;
    logic        signal;
    addr_t       laddr;
    addr_t       raddr;
    logic [31:0] rkey;
    logic [15:0] stream;
    logic [15:0] msg_no;
    logic [31:0] msg_len;
    sem_t        sem;
    logic [31:0] value;
  } tx_job_t;

  typedef struct packed {     // an ack, to build or as received; path is local to the port
    conn_t        conn;
    logic [15:0]  incarnation;  // life of the connection that it was made in, or that it named
    path_t        path;
    logic [7:0]   epoch;
    psn_t         base;
    // when built: words to send; when received: hist is already filled up with ones
    logic [3:0]   hist_words;
    logic [255:0] hist;       // bit i = PSN base-1-i was delivered
    logic [31:0]  ce_bytes;
    logic [31:0]  rx_bytes;
    logic [31:0]  echo;
    logic [31:0]  share;
    logic [15:0]  credits;
    err_e         status;
  } ack_t;

  // ---- receiving --------------------------------------------------------------------------------
  typedef struct packed {     // a data packet whose bytes are ordered in memory, or could not be
    conn_t       conn;
    logic [15:0] incarnation;
    logic        mem_error;
    logic [15:0] stream;
    logic [15:0] msg_no;
    logic [31:0] msg_len;
    logic [32:0] va;          // low bits: two packets of a message are less than 2^32 apart
    plen_t       len;
    logic        signal;
    sem_t        sem;
    logic [31:0] value;
  } rx_commit_t;

  typedef struct packed {     // the core's answer to it, in order
    logic  refused;           // it was not counted, and must not be acked
    drop_e reason;            // why
  } rx_verdict_t;

  typedef struct packed {     // semaphore += value
    sem_t        sem;
    logic [31:0] value;
  } signal_t;

  // ---- reducer ----------------------------------------------------------------------------------
  typedef struct packed {
    tag_t        tag;
    dtype_e      dtype;       // of the sources
    dtype_e      to;          // of the result
    redop_e      redop;
    logic        propagate_nan;
    logic        saturate;
    logic        exact;
    logic [7:0]  nsrc;        // source k lies at src1 + k * stride ...
    logic [7:0]  own;         // ... but source `own` at src0
    addr_t       src0;
    addr_t       src1;
    logic [31:0] stride;
    addr_t       dst;
    logic [31:0] len;         // bytes of the result's elements
    logic [63:0] scalar;
  } nmc_req_t;

  // ---- what observers (timeline, waves) want to know; no logic depends on it --------------------
  typedef struct packed {     // an issue and a completion may fall into the same cycle
    logic        issue;
    logic        done;
    logic [15:0] subgraph;    // of the entry that issues
    logic [31:0] entry;
    wqe_op_e     opcode;
    err_e        status;      // of the entry that is done
    logic [15:0] done_subgraph;
    logic [31:0] done_entry;
    wqe_op_e     done_opcode;
  } me_trace_t;
endpackage
`default_nettype wire
