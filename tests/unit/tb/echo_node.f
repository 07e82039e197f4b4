+incdir+rtl/common
build/gen/weft_wire_pkg.sv
rtl/pkg/weft_pkg.sv
tests/unit/tb/echo_node.sv
