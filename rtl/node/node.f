-f rtl/pkg/pkg.f
-f rtl/common/common.f
-f rtl/host/host.f
-f rtl/me/me.f
-f rtl/nmc/nmc.f
-f rtl/transport/core/core.f
-f rtl/transport/crc/crc.f
-f rtl/transport/tx/tx.f
-f rtl/transport/rx/rx.f
-f rtl/transport/ctl/ctl.f
rtl/node/weft_port.sv
rtl/node/weft_node.sv
rtl/node/weft_nic100.sv
