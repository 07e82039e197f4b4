// CRC-32 over 64-byte beats: senders and receivers of frames.
+incdir+rtl/common
rtl/transport/crc/weft_crc32_pkg.sv
rtl/transport/crc/weft_crc32_beat.sv
rtl/transport/crc/weft_crc32_undo.sv
