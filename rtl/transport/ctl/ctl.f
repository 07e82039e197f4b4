// Transmit control of a port: scheduler, windows, settle engine, timers.
-f rtl/pkg/pkg.f
-f rtl/common/common.f
rtl/transport/ctl/weft_tx_ctl_pkg.sv
rtl/transport/ctl/weft_tx_settle.sv
rtl/transport/ctl/weft_tx_window.sv
rtl/transport/ctl/weft_tx_cap.sv
rtl/transport/ctl/weft_tx_timer.sv
rtl/transport/ctl/weft_tx_pick.sv
rtl/transport/ctl/weft_tx_setup.sv
rtl/transport/ctl/weft_tx_rows.sv
rtl/transport/ctl/weft_tx_life.sv
rtl/transport/ctl/weft_tx_sched.sv
rtl/transport/ctl/weft_tx_ctl.sv
