// Receive path of a port: frames in, to memory.
-f rtl/pkg/pkg.f
-f rtl/common/common.f
-f rtl/transport/crc/crc.f
rtl/transport/rx/weft_rx_pkg.sv
rtl/transport/rx/weft_rx_parse.sv
rtl/transport/rx/weft_rx_icrc.sv
rtl/transport/rx/weft_rx_header.sv
rtl/transport/rx/weft_rx_claim.sv
rtl/transport/rx/weft_rx_region.sv
rtl/transport/rx/weft_rx_init.sv
rtl/transport/rx/weft_rx_check.sv
rtl/transport/rx/weft_rx_buffer.sv
rtl/transport/rx/weft_rx_write.sv
rtl/transport/rx/weft_rx_state.sv
rtl/transport/rx/weft_rx_commit.sv
rtl/transport/rx/weft_rx_due.sv
rtl/transport/rx/weft_rx_ack.sv
rtl/transport/rx/weft_rx_path.sv
