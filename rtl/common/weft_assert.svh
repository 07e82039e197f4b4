// SPDX-License-Identifier: Apache-2.0
//
// The assertion macros of every Weft module. One boolean form serves the simulator and the
// synthesis front end, which refuses `|->` and `##`. Clock and reset are `clk_i` and `rst_i` of the
// module around; nothing is checked while reset is active, nor at its last edge.
//
//   `WEFT_ASSERT(name, expr)        expr holds in every cycle
//   `WEFT_IMPLIES(name, a, b)       in a cycle with a, b holds too
//   `WEFT_NEXT(name, a, b)          in the cycle after one with a, b holds
//   `WEFT_HOLD(name, valid, ready, data)   an offer stays and does not change until it is taken
//
// They live in simulation (about 3 % of its speed). Synthesis reads the source with
// --ignore-assertions, so no module needs an ifdef for them.
`ifndef WEFT_ASSERT_SVH
`define WEFT_ASSERT_SVH

`define WEFT_ASSERT(name, expr) \
  name : assert property (@(posedge clk_i) disable iff (rst_i) (expr))

`define WEFT_IMPLIES(name, a, b) \
  name : assert property (@(posedge clk_i) disable iff (rst_i) (!(a) || (b)))

`define WEFT_NEXT(name, a, b) \
  name : assert property (@(posedge clk_i) disable iff (rst_i) (!$past((a) && !rst_i) || (b)))

`define WEFT_HOLD(name, valid, ready, data) \
  name : assert property (@(posedge clk_i) disable iff (rst_i) \
      (!$past((valid) && !(ready) && !rst_i) || ((valid) && $stable(data))))

`endif
