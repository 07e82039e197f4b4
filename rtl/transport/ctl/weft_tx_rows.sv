// SPDX-License-Identifier: Apache-2.0
//
// What picking needs of every path (row_t), and the pick: of the connection being served, the path
// with the most room, and whether its cap lets a packet go (docs/congestion.md, "Scheduler").
//
// The rows are kept twice, behind one write port: to read one of them for an operation, and all of
// the served connection at once. These follow a write when refresh_i is given in the cycle after
// it; the pick follows them $clog2(PathsPerPort) cycles after that, while pick_i is up (and rests
// else, so that an idle port costs nothing). Whoever writes counts these cycles.
`default_nettype none

module weft_tx_rows
  import weft_wire_pkg::*;
  import weft_tx_ctl_pkg::*;
#(
    parameter  int unsigned NumConns     = 64,
    parameter  int unsigned PathsPerPort = 8,
    localparam int unsigned ConnW        = (NumConns > 1) ? $clog2(NumConns) : 1,
    localparam int unsigned PathW        = (PathsPerPort > 1) ? $clog2(PathsPerPort) : 1,
    localparam int unsigned KeyW         = ConnW + PathW
) (
    input  wire             clk_i,
    input  wire             we_i,
    input  wire  [KeyW-1:0] wkey_i,
    input  row_t            wrow_i,
    // One row, the cycle after the read.
    input  wire             re_i,
    input  wire  [KeyW-1:0] rkey_i,
    output row_t            row_o,
    // The connection being served.
    input  wire [ConnW-1:0] conn_i,
    input  wire             refresh_i,   // read its rows
    input  wire             pick_i,
    input  wire       [7:0] active_i,    // paths it may use
    input  bytes_t          inflight_i,
    input  bytes_t          cap_i,
    input  full_t           pkt_i,
    output logic            cap_ok_o,    // another full packet fits its cap
    output logic            ok_o,        // there is a path that may send, this one:
    output logic [PathW-1:0] path_o,
    output row_t            path_row_o,  // as it stands now
    output logic            path_ok_o,   // it may send now too
    output logic            tail_o,      // a path's last PSN is unsettled data: the first such one
    output logic [PathW-1:0] tail_path_o
);

  localparam int unsigned NumKeys = NumConns << PathW;

  row_t [PathsPerPort-1:0] rows;
  logic [PathsPerPort-1:0] may_send, tails;
  room_t [PathsPerPort-1:0] rooms;

  weft_sdpram #(
      .data_t(row_t),
      .Depth (NumKeys),
      .Style ("block")
  ) u_row (
      .clk_i,
      .we_i,
      .waddr_i(wkey_i),
      .wdata_i(wrow_i),
      .re_i,
      .raddr_i(rkey_i),
      .rdata_o(row_o)
  );

  for (genvar k = 0; k < PathsPerPort; k++) begin : gen_row
    weft_sdpram #(
        .data_t(row_t),
        .Depth (NumConns),
        .Style ("block")
    ) u_served (
        .clk_i,
        .we_i   (we_i && wkey_i[PathW-1:0] == PathW'(k)),
        .waddr_i(wkey_i[KeyW-1:PathW]),
        .wdata_i(wrow_i),
        .re_i   (refresh_i),
        .raddr_i(conn_i),
        .rdata_o(rows[k])
    );
    assign rooms[k] = rows[k].room;
    assign tails[k] = rows[k].tail;
    assign may_send[k] = 8'(k) < active_i && !rows[k].room[22]
        && rows[k].open < count_t'(MAX_UNSETTLED);
  end

  weft_tx_pick #(
      .PathsPerPort(PathsPerPort)
  ) u_pick (
      .clk_i,
      .en_i  (pick_i),
      .ok_i  (may_send),
      .room_i(rooms),
      .ok_o,
      .path_o
  );
  assign path_row_o = rows[path_o];
  assign path_ok_o = may_send[path_o];

  logic [22:0] cap_sum_q;
  always_ff @(posedge clk_i) begin
    if (pick_i) begin
      cap_sum_q <= {1'b0, inflight_i} + 23'(pkt_i);
      cap_ok_o  <= cap_sum_q <= {1'b0, cap_i};
    end
  end

  assign tail_o = tails != '0;
  always_comb begin
    tail_path_o = '0;
    for (int k = PathsPerPort - 1; k >= 0; k--) if (tails[k]) tail_path_o = PathW'(k);
  end

endmodule

`default_nettype wire
