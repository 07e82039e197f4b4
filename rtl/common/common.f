// Building blocks that every other folder uses.
+incdir+rtl/common
rtl/common/weft_skid.sv
rtl/common/weft_fifo.sv
rtl/common/weft_sdpram.sv
rtl/common/weft_rr_arb.sv
rtl/common/weft_once_queue.sv
rtl/common/weft_clk_gate.sv
rtl/common/weft_axi_isolate_rd.sv
rtl/common/weft_axi_isolate_wr.sv
rtl/common/weft_axis_isolate.sv
rtl/common/weft_axis_gate.sv
