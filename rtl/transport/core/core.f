-f rtl/pkg/pkg.f
-f rtl/common/common.f
rtl/transport/core/weft_core_tx.sv
rtl/transport/core/weft_rx_cover.sv
rtl/transport/core/weft_core_rx.sv
rtl/transport/core/weft_core.sv
