// SPDX-License-Identifier: Apache-2.0
//
// Of the paths that may send, the one with the most room, to 64 bytes; the lowest number wins a
// tie. A tree of registered compares: the result belongs to the inputs of $clog2(PathsPerPort)
// cycles before, and moves only while en_i, so that an idle port costs nothing.
`default_nettype none

module weft_tx_pick
  import weft_tx_ctl_pkg::*;
#(
    parameter  int unsigned PathsPerPort = 8,
    localparam int unsigned PathW        = (PathsPerPort > 1) ? $clog2(PathsPerPort) : 1
) (
    input  wire                     clk_i,
    input  wire                     en_i,
    input  wire  [PathsPerPort-1:0] ok_i,
    input  room_t [PathsPerPort-1:0] room_i,  // not negative where ok_i
    output logic                    ok_o,
    output logic        [PathW-1:0] path_o
);

  localparam int unsigned Leaves = 1 << PathW;

  typedef struct packed {
    logic             ok;
    logic [PathW-1:0] path;
    logic [15:0]      room;
  } node_t;

  // A heap: node n has the children 2n and 2n + 1, node 1 is the winner, the last half are leaves.
  node_t node[2*Leaves];

  for (genvar k = 0; k < Leaves; k++) begin : gen_leaf
    if (k < PathsPerPort) begin : gen_path
      assign node[Leaves+k] = '{ok: ok_i[k], path: PathW'(k), room: room_i[k][21:6]};
    end else begin : gen_none
      assign node[Leaves+k] = '0;
    end
  end

  for (genvar n = 1; n < Leaves; n++) begin : gen_node
    // What may not send loses whatever its room says.
    wire take_high = node[2*n+1].ok && (!node[2*n].ok || node[2*n+1].room > node[2*n].room);
    always_ff @(posedge clk_i) if (en_i) node[n] <= take_high ? node[2*n+1] : node[2*n];
  end

  assign node[0] = '0;
  assign ok_o = node[1].ok;
  assign path_o = node[1].path;

endmodule

`default_nettype wire
