// SPDX-License-Identifier: Apache-2.0
//
// Types that travel between the modules of the transmit control (docs/congestion.md), and the
// events it counts. Widths bound what is useful: a connection has less than 4 MB in flight at a
// port (340 us at 100G), a round trip is below 2^20 cycles (3 ms at 322 MHz), and the data a path
// may have unsettled is MAX_UNSETTLED packets of at most 8 KB.
`default_nettype none

package weft_tx_ctl_pkg;
  import weft_wire_pkg::*;
  import weft_pkg::*;

  typedef logic [21:0] bytes_t;         // windows, caps
  typedef logic signed [22:0] room_t;   // cwnd - inflight - one full packet; >= 0: may send
  typedef logic [20:0] burst_t;         // bytes settled by one ack
  typedef logic [8:0] count_t;          // unsettled PSNs of a path, 0..256
  typedef logic [19:0] rtt_t;           // cycles
  typedef logic [12:0] full_t;          // bytes of a full packet, WIN_OVERHEAD included

  typedef struct packed {   // of a path: what picking needs
    logic   tail;           // the last PSN sent is unsettled data: the end of a burst
    count_t open;           // unsettled PSNs
    room_t  room;
  } row_t;

  typedef struct packed {   // of a connection: configuration
    logic        valid;
    logic [7:0]  num_paths;
    psn_t        psn;
    logic [15:0] share;
    bytes_t      init_cap;
  } setup_t;

  typedef enum logic [1:0] {
    LgInit,                 // start as configured
    LgFail,
    LgCap                   // new cap
  } long_e;

  // What one ack settled, with the fields of the ack that the windows need.
  typedef struct packed {
    conn_t       conn;
    path_t       path;
    count_t      psns;        // PSNs settled, probes included
    burst_t      bytes;       // of the data packets among them, WIN_OVERHEAD each included
    burst_t      lost_bytes;  // the part of them that was lost
    bytes_t      ce_bytes;    // low bits: less than 4 MB lies between two acks of a path
    bytes_t      rx_bytes;
    logic [31:0] echo;
    err_e        status;
  } ack_result_t;

  // Round-trip estimate of a connection. Scaled so that every update is a shift and an add.
  typedef struct packed {
    logic        sampled;
    rtt_t        min;
    logic [22:0] srtt8;       // 8 x smoothed RTT
    logic [21:0] var4;        // 4 x mean deviation
  } rtt_state_t;

  // One-cycle pulses. data_bytes counts with data.
  typedef struct packed {
    logic  data;         // data packet handed to the frame builder
    plen_t data_bytes;   // its payload
    logic  retx;         // ... and it is a resend
    logic  probe_tail;   // probe right behind a burst
    logic  probe_timer;  // probe of a silent path
    logic  probe_again;  // the latter repeats the PSN of the last probe
    logic  probe_copy;   // second copy of a tail probe, on a lossy port
    logic  ack_taken;
    logic  ack_old;      // settled before, or another epoch's, or the connection is down
    logic  ack_bad;      // acknowledges what was never sent, or a path that does not exist
    logic  delivered;    // packet settled as delivered
    logic  lost;         // packet settled as lost
    logic  cut;          // an ack made a window smaller
    logic  pull_none;    // a pull found nothing to send
    logic  pull_retry;   // a pull was put off
    logic  fail;         // connection failed
  } tx_ctl_cnt_t;

endpackage

`default_nettype wire
