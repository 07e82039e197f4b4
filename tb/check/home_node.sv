// SPDX-License-Identifier: Apache-2.0
`default_nettype none
bind weft_port weft_home u_home (
    .clk_i,
    .rst_i,
    .quiet_i(idle_o),
    .home_i(ahead_q == '0)
);
`default_nettype wire
