// SPDX-License-Identifier: Apache-2.0
// What travels between the parts of a message engine, and the events it counts. docs/me.md.
`default_nettype none
package weft_me_pkg;
  import weft_wire_pkg::*;
  import weft_pkg::*;

  typedef logic [15:0] entry_t;  // index of an entry in its subgraph, 0..65535
  typedef logic [16:0] count_t;  // entries of a subgraph, 1..65536
  typedef logic [57:0] line_t;   // address of 64 bytes: address >> 6

  localparam int unsigned BurstMax = 16;  // entries of one read: 1 KB, so none crosses 4 KB

  typedef struct packed {  // a CQE to post; the queue adds clock and sequence number
    logic [63:0] cookie;
    logic [15:0] subgraph;
    db_op_e      op;
    err_e        status;
    logic [31:0] entry;
    logic [15:0] conn;
  } cqe_req_t;

  typedef struct packed {  // a subgraph to validate
    logic [15:0] subgraph;
    logic [31:0] count;
    addr_t       addr;
  } mbox_t;

  typedef struct packed {  // what CPU-M thinks of it
    err_e        status;
    logic [31:0] entry;
  } verdict_t;

  typedef struct packed {  // a launch for a free context
    logic [15:0] subgraph;
    line_t       line;
    count_t      count;
    logic        aborted;  // given up while it was queued: runs nothing, completes with FLUSHED
  } start_t;

  typedef struct packed {  // a context has ended
    logic [15:0] subgraph;
    err_e        status;
    logic [31:0] entry;
    logic [15:0] conn;
  } finish_t;

  typedef struct packed {  // a work-queue entry as it came from memory
    logic bad;             // the read failed, the bits mean nothing
    wqe_t wqe;
  } fetched_t;

  typedef enum logic [1:0] {
    LocWait  = 2'd0,
    LocSet   = 2'd1,
    LocNop   = 2'd2  // done at once with `status`: NOP, and entries that cannot be run
  } local_e;

  typedef struct packed {  // an entry that the engine itself performs
    local_e      kind;
    logic        consume;
    sem_t        sem;
    logic [31:0] value;
    err_e        status;
  } local_t;

  typedef struct packed {  // an entry left the window
    logic        valid;
    logic        flushed;  // it never ran to its end: its subgraph was given up
    entry_t      entry;
    logic [15:0] conn;
    err_e        status;
  } retire_t;

  typedef struct packed {  // one pulse an event
    logic doorbell;        // doorbell taken
    logic refused;         // doorbell answered with an error by the engine itself
    logic register_ok;     // CPU-M accepted a subgraph
    logic register_bad;    // CPU-M refused a subgraph
    logic launch;          // a context started
    logic finish_ok;       // a subgraph completed
    logic finish_bad;      // a subgraph completed with an error
    logic fetched;         // entry entered the window
    logic fetch_error;     // entry whose read failed
    logic window_stall;    // cycle in which an entry waited for a window slot
    logic issue_tx;        // WRITE handed to the transport
    logic issue_nmc;       // REDUCE handed to the reducer
    logic issue_local;     // WAIT, SET or NOP looked at, re-checks of a WAIT included
    logic done;            // entry left the window, done or failed
    logic failed;          // ... failed
    logic flushed;         // entry given up because its subgraph was
    logic wait_parked;     // a WAIT was not met and sleeps until its semaphore changes
    logic wait_woken;      // cycle in which an update woke one or more WAITs
    logic sem_add;         // SET or remote signal
    logic sem_saturated;   // ... that would have passed 2^32-1
    logic signal_bad;      // remote signal to a semaphore that does not exist
    logic cqe;             // completion entry sent to memory
    logic cqe_error;       // memory answered its write with an error
    logic cpu_trap;        // CPU-M stopped on an illegal instruction or access
  } me_cnt_t;
endpackage
`default_nettype wire
