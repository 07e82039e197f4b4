// Frames out: headers, payload, ICRC.
+incdir+rtl/transport/tx
-f rtl/common/common.f
-f rtl/pkg/pkg.f
-f rtl/transport/crc/crc.f
rtl/transport/tx/weft_tx_pkg.sv
rtl/transport/tx/weft_tx_payload.sv
rtl/transport/tx/weft_tx_seq.sv
rtl/transport/tx/weft_tx_hdr.sv
rtl/transport/tx/weft_tx_align.sv
rtl/transport/tx/weft_tx_frame.sv
rtl/transport/tx/weft_tx_path.sv
