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
// They live in simulation. Each is an immediate assertion in a clocked block of its own, not a
// property: for properties Verilator copies every signal they read in every evaluation of the
// model, which cost an idle reducer a fifth of its speed. The data of an offer is copied only while
// it waits. Synthesis reads the source with --ignore-assertions and drops the registers that only
// they read, so no module needs an ifdef for them.
`ifndef WEFT_ASSERT_SVH
`define WEFT_ASSERT_SVH

`define WEFT_ASSERT(name, expr) \
  always_ff @(posedge clk_i) if (!rst_i) name : assert (expr)

`define WEFT_IMPLIES(name, a, b) \
  always_ff @(posedge clk_i) if (!rst_i) name : assert (!(a) || (b))

`define WEFT_NEXT(name, a, b) \
  logic name``_past; \
  always_ff @(posedge clk_i) name``_past <= (a) && !rst_i; \
  `WEFT_IMPLIES(name, name``_past, b)

`define WEFT_HOLD(name, valid, ready, data) \
  logic [$bits(data)-1:0] name``_held; \
  always_ff @(posedge clk_i) if ((valid) && !(ready)) name``_held <= data; \
  `WEFT_NEXT(name, (valid) && !(ready), (valid) && (data) == name``_held)

`endif
