/* SPDX-License-Identifier: Apache-2.0
 *
 * What CPU-M sees: the memory map of rtl/me/weft_cpu_m.sv. Word access only outside of RAM.
 *
 *   0x00000000  32 KB  code, data, stack
 *   0x40000000         registers, below
 *   0x50000000   2 KB  the arithmetic of lines, below: of half h at + h * 1024, of line i of it at + i * 64
 *   0x50000800   2 KB  lines of memory, in the same order
 *   0x60000000         region table, 32 bytes a region, below
 *   0x70000000         connections, a word for each {connection, port}: bit 0 = valid
 */
#pragma once
#include <stdint.h>

#define CPU_M_REG(n) (*(volatile uint32_t*)(0x40000000u + 4u * (n)))

#define MBOX CPU_M_REG(0)         /* read: stands until a subgraph waits to be validated; its number */
#define MBOX_COUNT CPU_M_REG(1)   /* entries it has, as the doorbell says */
#define MBOX_ADDR_LO CPU_M_REG(2) /* address of its first entry */
#define MBOX_ADDR_HI CPU_M_REG(3)
#define VERDICT_ENTRY CPU_M_REG(4) /* write first: the entry that is wrong */
#define VERDICT CPU_M_REG(5)  /* write: error code; the subgraph leaves the mailbox, the host gets its CQE */
#define FETCH_LO CPU_M_REG(6) /* address of a line */
#define FETCH_HI CPU_M_REG(7)
#define FETCH_GO                                                                             \
  CPU_M_REG(8) /* write: lines - 1, all in one 1 KB block; they fill the two halves in turn, \
                  and no more than two fetches may be unread */
#define FETCH_WAIT                                                                                      \
  CPU_M_REG(9)               /* read: stands until the next half is full; bit i: reading line i failed, \
                                bit 16 + i: as an entry, line i has a reserved bit set */
#define STATUS CPU_M_REG(10) /* the host reads it as CPU_STATUS */
#define NUM_SEMS CPU_M_REG(11)
#define NUM_CONNS CPU_M_REG(12)
#define NUM_PORTS CPU_M_REG(13)
#define NUM_REGIONS CPU_M_REG(14)

#define LINES_PER_HALF 16u
#define LINES(half) ((const uint32_t*)(0x50000800u + 1024u * (half)))

/* What line w says as a REDUCE. Bits 7:0: error of its types, operation, flags or sources. Bits 15:8: the
 * mask that every address and the length must be clear of, if sources and result have elements of one size;
 * else 0xff. */
#define MATH(w) (((const volatile uint32_t*)(w))[-512])

#define REGION(r) ((const volatile uint32_t*)(0x60000000u + 32u * (r)))
enum { REGION_FLAGS = 0, REGION_BASE_LO = 2, REGION_BASE_HI = 3, REGION_LIMIT_LO = 4, REGION_LIMIT_HI = 5 };
enum { REGION_VALID = 1, REGION_LOCAL_READ = 2, REGION_LOCAL_WRITE = 4 }; /* bits of REGION_FLAGS */

#define LINK_VALID(conn, port) (((const volatile uint32_t*)0x70000000u)[(conn)*num_ports + (port)] & 1u)
