// SPDX-License-Identifier: Apache-2.0
//
// What travels between the parts of weft_tx_path. docs/tx.md.
`default_nettype none
package weft_tx_pkg;
  import weft_wire_pkg::*;
  import weft_pkg::*;

  typedef enum logic [1:0] {
    TxData,
    TxProbe,
    TxAck
  } tx_kind_e;

  // All that the order and the number of beats of a frame depend on.
  typedef struct packed {
    tx_kind_e    kind;
    conn_t       conn;
    path_t       path;
    logic [12:0] last_byte;  // last byte of headers and payload, counted from the Ethernet header
    logic [6:0]  reads;      // beats of the payload buffer it takes, 0..65
    logic [5:0]  offset;     // byte of the first of them at which the payload starts
    logic        bad;        // memory failed: take the beats, send nothing
  } tx_frame_t;

  // The rest of a job: header fields only, looked at when the frame's header is built.
  typedef struct packed {
    logic [1:0]  pad;
    logic [7:0]  epoch;
    psn_t        psn;
    logic        retx;
    logic        more;
    logic        signal;
    addr_t       raddr;
    logic [31:0] rkey;
    logic [15:0] stream;
    logic [15:0] msg_no;
    logic [31:0] msg_len;
    sem_t        sem;
    logic [31:0] value;
  } tx_fields_t;

  // The frame that is being sent, for the header builder.
  typedef struct packed {
    tx_kind_e    kind;
    conn_t       conn;
    path_t       path;
    logic [10:0] words;  // headers, payload and pad are 4*words + 2 bytes
  } tx_head_t;

  // One beat of a frame on its way through the pipeline. What a beat shows to payload bytes: lanes
  // up
  // to keep_lane if keep_part, all if keep_all, else none; the lanes behind are zero.
  typedef struct packed {
    logic       first;      // bytes 0..63 of the frame
    logic       second;     // bytes 64..127
    tx_kind_e   kind;
    logic [5:0] rotate;     // lanes by which memory bytes move up to reach their place in the frame
    logic       keep_all;
    logic       keep_part;
    logic [5:0] keep_lane;
    logic       crc_end;    // the ICRC starts in this beat, at byte 4*word + 2
    logic       last;       // the ICRC ends in this beat
    logic [3:0] word;
    logic       send;       // low: the frame is thrown away
  } tx_beat_t;

  // One-cycle events for the counters.
  typedef struct packed {
    logic        frames;   // a frame has been built ...
    logic [12:0] bytes;    // ... of so many bytes, Ethernet header to ICRC (0 when none was)
    logic        data;     // ... with data
    logic        probes;
    logic        acks;
    logic        mem_err;  // a data packet was not sent: reading its payload failed
    logic        reads;    // a burst was asked from memory
    logic        stalled;  // a frame wanted to go on in this cycle, but the MAC holds it up
  } tx_cnt_t;

endpackage
`default_nettype wire
