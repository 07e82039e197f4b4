# SPDX-License-Identifier: Apache-2.0
# Address 0, where CPU-M starts: clear .bss, set up a stack, never return.
    .section .text.start
    .global _start
_start:
    la   sp, _stack
    la   t0, _bss_begin
    la   t1, _bss_end
1:  bgeu t0, t1, 2f
    sw   zero, 0(t0)
    addi t0, t0, 4
    j    1b
2:  call main
3:  j    3b
