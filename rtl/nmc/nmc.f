// Near-memory reducer.
+incdir+rtl/nmc
-f rtl/common/common.f
build/gen/weft_wire_pkg.sv
rtl/pkg/weft_pkg.sv
rtl/pkg/weft_math_pkg.sv
rtl/nmc/weft_nmc_pkg.sv
rtl/nmc/weft_nmc_float.sv
rtl/nmc/weft_nmc_double.sv
rtl/nmc/weft_nmc_int.sv
rtl/nmc/weft_nmc_mx_in.sv
rtl/nmc/weft_nmc_mx_out.sv
rtl/nmc/weft_nmc_mx_pack.sv
rtl/nmc/weft_nmc_mx.sv
rtl/nmc/weft_nmc_acc.sv
rtl/nmc/weft_nmc_lanes.sv
rtl/nmc/weft_nmc_rot.sv
rtl/nmc/weft_nmc_live.sv
rtl/nmc/weft_nmc_gather.sv
rtl/nmc/weft_nmc_check.sv
rtl/nmc/weft_nmc_decode.sv
rtl/nmc/weft_nmc_pass.sv
rtl/nmc/weft_nmc_buf.sv
rtl/nmc/weft_nmc_read.sv
rtl/nmc/weft_nmc_seq.sv
rtl/nmc/weft_nmc_write.sv
rtl/nmc/weft_nmc_done.sv
rtl/nmc/weft_nmc.sv
