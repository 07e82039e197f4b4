// SPDX-License-Identifier: Apache-2.0
//
// Types that travel between the parts of the receive path. docs/rx.md has the picture.
//
// The stages of a frame are counted from its last beat: S0 is the cycle in which that beat stands
// in the parser's input register, S1 the next one, and so on to S5, in which the verdict takes
// effect.
`default_nettype none
package weft_rx_pkg;
  import weft_wire_pkg::*;
  import weft_pkg::*;

  // The first bytes of a frame as a string, byte 0 in the most significant bits: every header, and
  // the longest history of an ack, lies in the first two beats.
  localparam int unsigned HeadBytes = HDR_ACK_BYTES + HIST_BITS / 8;
  typedef logic [8*HeadBytes-1:0] head_t;
  // what follows the WTH: WDH, or WAH + history
  typedef logic [8*(HeadBytes-HDR_PROBE_BYTES)-1:0] ext_t;

  localparam int unsigned IcrcBytes = 4;
  localparam int unsigned MinFrame = HDR_PROBE_BYTES + IcrcBytes;
  localparam int unsigned MaxFrame = HDR_DATA_BYTES + MAX_PAYLOAD + IcrcBytes;
  typedef logic [12:0] flen_t;  // bytes of a frame; longer ones read as something above MaxFrame

  // One beat in the parser's input register.
  typedef struct packed {
    logic         valid;
    logic         first;   // beat 0 of its frame
    logic         second;  // beat 1
    logic         last;
    logic [511:0] data;    // byte i in bits [8*i +: 8]
    logic [63:0]  keep;
  } beat_t;

  // Life of a connection at this port: counts its CfgConn. Beside the incarnation, which the peer
  // knows too, it tells two lives apart that were configured alike.
  typedef logic [3:0] life_t;

  // Facts about a data packet or probe that the path check lets through; waits for its write.
  typedef struct packed {
    logic        probe;
    logic        ce;
    logic        hurry;        // end of a message, as far as the packet tells: ack at once
    logic [1:0]  bursts;       // AXI write responses to wait for, 0..2
    conn_t       conn;
    path_t       path;
    logic [7:0]  epoch;
    logic [15:0] incarnation;
    life_t       life;
    psn_t        psn;
    logic [31:0] timestamp;
    logic [15:0] stream;
    logic [15:0] msg_no;
    logic [31:0] msg_len;
    logic [32:0] va;           // low bits
    plen_t       len;
    logic        signal;
    sem_t        sem;
    logic [31:0] value;
  } rx_pending_t;

  // What one path has received, as its acks report it.
  typedef struct packed {
    logic [7:0]   epoch;
    psn_t         base;        // every PSN below is settled
    logic [255:0] hist;        // bit i = PSN base-1-i was delivered
    logic [31:0]  ce_bytes;
    logic [31:0]  rx_bytes;
    logic [31:0]  echo;
    logic         ce;          // the last packet carried CE
  } rx_state_t;

  // What the receiver keeps of a connection's configuration.
  typedef struct packed {
    logic [15:0] incarnation;
    life_t       life;
    logic [15:0] share;
  } rx_conn_t;

  // Events of one cycle, for the counters (rx in sw/wire/counters.yaml); drops are apart.
  typedef struct packed {
    logic       frames;      // a frame was judged
    plen_t      bytes;       // payload bytes of the data packet committed
    logic       data;        // data packet committed
    logic       probes;      // probe committed
    logic       acks;        // ack accepted and handed on
    logic       ce;          // data packet committed that carried CE
    logic       gaps;        // packet committed that showed a gap
    logic [7:0] lost;        // PSNs that the gap settled as lost (255: or more)
    logic       acks_sent;   // ack handed to the frame builder
    logic       acks_again;  // that one was the second copy
    logic       acks_void;   // ack owed by a life that has ended: not sent
  } rx_evt_t;
endpackage
`default_nettype wire
