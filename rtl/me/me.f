// Message engine. picorv32.v (ISC) comes from its Python package: sw/firmware/CMakeLists.txt.
+incdir+rtl/common
-f rtl/common/common.f
build/gen/weft_wire_pkg.sv
rtl/pkg/weft_pkg.sv
rtl/pkg/weft_math_pkg.sv
rtl/me/weft_me_pkg.sv
rtl/me/weft_me_bits.sv
rtl/me/weft_me_cq.sv
rtl/me/weft_me_admin.sv
rtl/me/weft_me_fetch.sv
rtl/me/weft_me_ctx.sv
rtl/me/weft_me_sem.sv
rtl/me/weft_me_guard.sv
rtl/me/weft_me_window.sv
rtl/me/weft_me_core.sv
build/gen/picorv32.v
rtl/me/weft_cpu_m.sv
rtl/me/weft_me.sv
