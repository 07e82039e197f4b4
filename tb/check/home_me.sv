// SPDX-License-Identifier: Apache-2.0
`default_nettype none
bind weft_me_core weft_home u_home (
    .clk_i,
    .rst_i,
    .quiet_i(idle_o),
    .home_i(u_window.valid_q == '0 && u_ctx.used_q == '0)
);
`default_nettype wire
