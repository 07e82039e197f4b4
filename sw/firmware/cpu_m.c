/* SPDX-License-Identifier: Apache-2.0
 *
 * Firmware of CPU-M: validates a subgraph entry by entry before the engine may run it.
 *
 * An entry passes when everything it names exists and every byte it touches here lies in one region
 * that grants the right. The first entry that does not is reported with its number; docs/me.md lists
 * the checks in their order. What the peer's memory allows is the peer's to check.
 * While entries of one block (up to 16) are looked at, the next block is on its way.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cpu_m_map.h"
#include "weft_wire_c.h"

/* A field of the entry at w: a word, shift and mask known at compile time. */
#define BIT(name)    (WEFT_WQE_##name##_BIT)
#define WORD(name)   (w[BIT(name) / 32u])
#define FLAG(name)   (1u << (BIT(name) % 32u)) /* in word 0 */
#define FIELD16(name) ((WORD(name) >> (BIT(name) % 32u)) & 0xffffu)
#define FIELD8(name)  ((WORD(name) >> (BIT(name) % 32u)) & 0xffu)
#define LOW(name)    (w[BIT(name) / 32u])
#define HIGH(name)   (w[BIT(name) / 32u + 1u])

_Static_assert(BIT(OPCODE) == 0 && BIT(INDIRECT) < 16 && BIT(DEP0) == 16, "word 0 holds opcode, flags and dep0");
_Static_assert(BIT(NSRC) % 32 == 0 && BIT(RESV0) == BIT(NSRC) + 8 && BIT(RESV1) == BIT(NSRC) + 64,
               "nsrc and the reserved fields fill words 12 to 15");
_Static_assert(BIT(SRC0) % 32 == 0 && BIT(SRC1) % 32 == 0 && BIT(DST) % 32 == 0 && BIT(LENGTH) % 32 == 0,
               "addresses and length are whole words");

/* Flags that an opcode does not take. */
static const uint32_t bad_flags[] = {
    [WEFT_WQE_OP_NOP] = FLAG(SIGNAL) | FLAG(CONSUME) | FLAG(INDIRECT),
    [WEFT_WQE_OP_WRITE] = FLAG(CONSUME) | FLAG(INDIRECT),
    [WEFT_WQE_OP_REDUCE] = FLAG(SIGNAL) | FLAG(CONSUME) | FLAG(INDIRECT),
    [WEFT_WQE_OP_WAIT] = FLAG(SIGNAL) | FLAG(INDIRECT),
    [WEFT_WQE_OP_SET] = FLAG(SIGNAL) | FLAG(CONSUME) | FLAG(INDIRECT),
};
#define NUM_OPS (sizeof bad_flags / sizeof bad_flags[0])

/* Element size - 1 of a dtype. */
static const uint8_t align_mask[] = {
    [WEFT_DTYPE_FLOAT32] = 3,
    [WEFT_DTYPE_BFLOAT16] = 1,
    [WEFT_DTYPE_INT32] = 3,
};
#define NUM_DTYPES (sizeof align_mask / sizeof align_mask[0])

/* What the table said last for each kind of address: the part of a region in one 4 GB page of
 * addresses. Within it a range is checked with two comparisons of 32 bits. Empty: size 0. */
typedef struct {
  uint32_t page; /* high half of the addresses */
  uint32_t low;
  uint32_t size;
} Window;
typedef enum { SOURCE0, SOURCE1, TARGET, NUM_WINDOWS } Role;

static Window windows[NUM_WINDOWS];
static uint32_t last_conn; /* a connection known to exist, or none: ~0 */
static uint32_t num_sems, num_conns, num_ports, num_regions;

/* Looks for a region that has [address, address + length) and the right, and remembers it. */
static uint32_t search_regions(Role role, uint32_t low, uint32_t high, uint32_t length) {
  const uint64_t address = (uint64_t)high << 32 | low;
  const uint64_t end = address + length;
  const uint32_t need = REGION_VALID | (role == TARGET ? REGION_LOCAL_WRITE : REGION_LOCAL_READ);
  if (end < address) return WEFT_ERR_BAD_LENGTH;
  for (uint32_t r = 0; r < num_regions; ++r) {
    const volatile uint32_t* region = REGION(r);
    if ((region[REGION_FLAGS] & need) != need) continue;
    const uint64_t base = (uint64_t)region[REGION_BASE_HI] << 32 | region[REGION_BASE_LO];
    const uint64_t limit = (uint64_t)region[REGION_LIMIT_HI] << 32 | region[REGION_LIMIT_LO];
    if (address < base || end > limit) continue;
    /* The part of the region in the page of `address`; a whole page is kept one byte short. */
    const uint64_t page_begin = (uint64_t)high << 32, page_last = page_begin | 0xffffffffu;
    const uint64_t begin = base > page_begin ? base : page_begin;
    const uint64_t stop = limit > page_last ? page_last : limit;
    windows[role] = (Window){.page = high, .low = (uint32_t)begin, .size = (uint32_t)(stop - begin)};
    return WEFT_ERR_OK;
  }
  return WEFT_ERR_BAD_ADDR;
}

static inline uint32_t check_range(Role role, uint32_t low, uint32_t high, uint32_t length) {
  if (length == 0) return WEFT_ERR_OK; /* touches nothing */
  const Window* window = &windows[role];
  const uint32_t offset = low - window->low;
  if (high == window->page && offset <= window->size && length <= window->size - offset) return WEFT_ERR_OK;
  return search_regions(role, low, high, length);
}

static bool exists(uint32_t conn) {
  if (conn >= num_conns) return false;
  for (uint32_t port = 0; port < num_ports; ++port) {
    if (LINK_VALID(conn, port)) {
      last_conn = conn;
      return true;
    }
  }
  return false;
}

static uint32_t check_write(const volatile uint32_t* w) {
  const uint32_t length = LOW(LENGTH);
  if (length > WEFT_MAX_WQE_LENGTH) return WEFT_ERR_BAD_LENGTH;
  const uint32_t conn = FIELD16(CONN);
  if (conn != last_conn && !exists(conn)) return WEFT_ERR_BAD_CONN;
  const uint32_t low = LOW(DST);
  if (low + length < low && HIGH(DST) == ~0u) return WEFT_ERR_BAD_LENGTH;
  return check_range(SOURCE0, LOW(SRC0), HIGH(SRC0), length);
}

static uint32_t check_reduce(const volatile uint32_t* w) {
  const uint32_t types = WORD(DTYPE); /* dep1, dtype, redop */
  const uint32_t dtype = (types >> (BIT(DTYPE) % 32u)) & 0xffu;
  const uint32_t redop = (types >> (BIT(REDOP) % 32u)) & 0xffu;
  const uint32_t sources = FIELD8(NSRC);
  if (dtype >= NUM_DTYPES || redop > WEFT_REDOP_COPY) return WEFT_ERR_BAD_TYPE;
  if (sources - 1u > 1u || (sources == 2 && redop == WEFT_REDOP_COPY)) return WEFT_ERR_BAD_TYPE;
  const uint32_t length = LOW(LENGTH), source0 = LOW(SRC0), target = LOW(DST);
  const uint32_t source1 = sources == 2 ? LOW(SRC1) : 0;
  if ((length | source0 | source1 | target) & align_mask[dtype]) return WEFT_ERR_BAD_ALIGN;
  if (length > WEFT_MAX_WQE_LENGTH) return WEFT_ERR_BAD_LENGTH;
  uint32_t error = check_range(SOURCE0, source0, HIGH(SRC0), length);
  if (error == WEFT_ERR_OK && sources == 2) error = check_range(SOURCE1, source1, HIGH(SRC1), length);
  if (error == WEFT_ERR_OK) error = check_range(TARGET, target, HIGH(DST), length);
  return error;
}

static uint32_t check_entry(const volatile uint32_t* w, uint32_t index) {
  const uint32_t first = w[0];
  const uint32_t opcode = first & 0xffu;
  if (opcode >= NUM_OPS) return WEFT_ERR_BAD_OPCODE;
  if (first & bad_flags[opcode]) return WEFT_ERR_BAD_FLAGS;
  if ((w[12] >> 8 | w[13] | w[14] | w[15]) != 0) return WEFT_ERR_BAD_FLAGS;
  if ((first & FLAG(HAS_DEP0)) && first >> 16 >= index) return WEFT_ERR_BAD_DEP;
  if ((first & FLAG(HAS_DEP1)) && FIELD16(DEP1) >= index) return WEFT_ERR_BAD_DEP;
  if (opcode == WEFT_WQE_OP_WRITE) return check_write(w);
  if (opcode == WEFT_WQE_OP_REDUCE) return check_reduce(w);
  if (opcode != WEFT_WQE_OP_NOP && FIELD16(SEM) >= num_sems) return WEFT_ERR_BAD_SEM;
  return WEFT_ERR_OK;
}

/* The lines still to be asked for. */
typedef struct {
  uint32_t low, high, left;
} Reader;

/* Asks for the rest of the 1 KB block that the reader stands in; returns the lines asked for. */
static uint32_t fetch_block(Reader* reader) {
  uint32_t lines = LINES_PER_HALF - (reader->low >> 6 & (LINES_PER_HALF - 1u));
  if (lines > reader->left) lines = reader->left;
  if (lines == 0) return 0;
  FETCH_LO = reader->low;
  FETCH_HI = reader->high;
  FETCH_GO = lines - 1u;
  const uint32_t next = reader->low + 64u * lines;
  if (next < reader->low) ++reader->high;
  reader->low = next;
  reader->left -= lines;
  return lines;
}

int main(void) {
  uint32_t half = 0, served = 0;
  num_sems = NUM_SEMS;
  num_conns = NUM_CONNS;
  num_ports = NUM_PORTS;
  num_regions = NUM_REGIONS;

  for (;;) {
    /* 'W', version 1, requests served: says that the CPU lives, whatever it waits for. */
    STATUS = 0x57010000u | (served++ & 0xffffu);
    (void)MBOX; /* stands here until there is something to do */
    const uint32_t count = MBOX_COUNT;
    Reader reader = {.low = MBOX_ADDR_LO, .high = MBOX_ADDR_HI, .left = count};

    uint32_t error = WEFT_ERR_OK, index = 0;
    if (count == 0 || count > WEFT_MAX_WQES) {
      error = WEFT_ERR_BAD_SUBGRAPH;
      reader.left = 0;
    } else if (reader.low & 63u) {
      error = WEFT_ERR_BAD_ALIGN;
      reader.left = 0;
    }
    /* Regions and connections may have changed since the last subgraph. */
    for (unsigned i = 0; i < NUM_WINDOWS; ++i) windows[i].size = 0;
    last_conn = ~0u;

    uint32_t here = fetch_block(&reader);
    while (here != 0) {
      const uint32_t next = error == WEFT_ERR_OK ? fetch_block(&reader) : 0;
      const uint32_t failed = FETCH_WAIT;
      const volatile uint32_t* w = LINES(half);
      for (uint32_t i = 0; i < here && error == WEFT_ERR_OK; ++i, w += 16) {
        error = failed >> i & 1u ? WEFT_ERR_MEM_ERROR : check_entry(w, index);
        if (error == WEFT_ERR_OK) ++index;
      }
      half ^= 1u;
      here = next; /* after an error: what was on its way is still read to its end */
    }
    VERDICT_ENTRY = index;
    VERDICT = error;
  }
}
