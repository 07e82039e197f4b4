// Packages of every build, in order of use. build/gen is made by sw/wire/gen.py.
build/gen/weft_wire_pkg.sv
rtl/pkg/weft_pkg.sv
rtl/pkg/weft_math_pkg.sv
