// Tops that are there for the meter only.
-f rtl/nmc/nmc.f
sw/tools/synth/weft_nmc_fp32.sv
