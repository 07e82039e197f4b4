// Credits of this block are home at rest.
+incdir+rtl/common
tb/check/weft_home.sv
tb/check/weft_home_tx.sv
