// Checkers bound to the modules of a node, in every simulation of one: C++ side in watch.cpp.
-f tb/check/home_tx.f
-f tb/check/home_rx.f
-f tb/check/home_me.f
tb/check/home_node.sv
tb/check/weft_watch.sv
