// Host side: registers, counters, configuration bus, express window.
+incdir+rtl/common
-f rtl/pkg/pkg.f
build/gen/weft_counters_pkg.sv
build/gen/weft_interface_pkg.sv
build/gen/weft_regs_pkg.sv
build/gen/weft_regs.sv
-f rtl/common/common.f
rtl/host/weft_counters.sv
rtl/host/weft_host_cfg.sv
rtl/host/weft_host_db.sv
rtl/host/weft_host.sv
