/* SPDX-License-Identifier: Apache-2.0
 *
 * Firmware of CPU-M: validates a subgraph entry by entry before the engine may run it.
 *
 * An entry passes when everything it names exists and every byte it touches here lies in one region
 * that grants the right. The first entry that does not is reported with its number; docs/me.md lists
 * the checks in their order. What the peer's memory allows is the peer's to check.
 * While entries of one block (up to 16) are looked at, the next block is on its way.
 *
 * An instruction takes 3 to 5 cycles, so the path of a good entry counts them: the engine looks at the
 * reserved fields and at the arithmetic as a line arrives, the windows below live in registers, and each
 * opcode has its own straight path.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cpu_m_map.h"
#include "weft_wire_c.h"

/* A field of the entry at w: a word, shift and mask known at compile time. */
#define BIT(name)    (WEFT_WQE_##name##_BIT)
#define WORD(name)   (w[BIT(name) / 32u])
#define FLAG(name)   (1u << (BIT(name) % 32u)) /* in its word */
#define FIELD16(name) ((WORD(name) >> (BIT(name) % 32u)) & 0xffffu)
#define FIELD8(name)  ((WORD(name) >> (BIT(name) % 32u)) & 0xffu)
#define LOW(name)    (w[BIT(name) / 32u])
#define HIGH(name)   (w[BIT(name) / 32u + 1u])

_Static_assert(BIT(OPCODE) == 0 && BIT(INDIRECT) < 16 && BIT(DEP0) == 16, "word 0 holds opcode, flags and dep0");
_Static_assert(BIT(SRC0) % 32 == 0 && BIT(SRC1) % 32 == 0 && BIT(DST) % 32 == 0 && BIT(LENGTH) % 32 == 0,
               "addresses and length are whole words");

#define INLINE static inline __attribute__((always_inline))

/* What the region table said last for one kind of address: the part of a region in one 4 GB page of
 * addresses. Within it a range is checked by comparisons of 32 bits. Empty: size 0. */
typedef struct {
  uint32_t page; /* high half of the addresses */
  uint32_t low;
  uint32_t size;
} Window;

/* What is known while one subgraph is looked at. */
typedef struct {
  Window source0, source1, target;
  uint32_t conn; /* a connection known to exist, or none: ~0 */
} Known;

static uint32_t num_sems, num_conns, num_ports, num_regions;

/* Looks for a region that has [address, address + length) and the right; if there is one, `found` is
 * the part of it in the page of `address`. */
static __attribute__((noinline)) uint32_t search_regions(uint32_t right, uint32_t low, uint32_t high,
                                                         uint64_t length, Window* found) {
  const uint64_t address = (uint64_t)high << 32 | low;
  const uint64_t end = address + length;
  const uint32_t need = REGION_VALID | right;
  if (end < address) return WEFT_ERR_BAD_LENGTH;
  for (uint32_t r = 0; r < num_regions; ++r) {
    const volatile uint32_t* region = REGION(r);
    if ((region[REGION_FLAGS] & need) != need) continue;
    const uint64_t base = (uint64_t)region[REGION_BASE_HI] << 32 | region[REGION_BASE_LO];
    const uint64_t limit = (uint64_t)region[REGION_LIMIT_HI] << 32 | region[REGION_LIMIT_LO];
    if (address < base || end > limit) continue;
    /* A whole page is kept one byte short, so that its size fits. */
    const uint64_t page_begin = (uint64_t)high << 32, page_last = page_begin | 0xffffffffu;
    const uint64_t begin = base > page_begin ? base : page_begin;
    const uint64_t stop = limit > page_last ? page_last : limit;
    *found = (Window){.page = high, .low = (uint32_t)begin, .size = (uint32_t)(stop - begin)};
    return WEFT_ERR_OK;
  }
  return WEFT_ERR_BAD_ADDR;
}

INLINE uint32_t check_range(Window* window, uint32_t right, uint32_t low, uint32_t high, uint32_t length) {
  const uint32_t offset = low - window->low;
  if (high == window->page && offset <= window->size && length <= window->size - offset) return WEFT_ERR_OK;
  Window found;
  const uint32_t error = search_regions(right, low, high, length, &found);
  if (error == WEFT_ERR_OK) *window = found;
  return error;
}

static __attribute__((noinline)) bool exists(uint32_t conn) {
  if (conn >= num_conns) return false;
  for (uint32_t port = 0; port < num_ports; ++port) {
    if (LINK_VALID(conn, port)) return true;
  }
  return false;
}

/* Flags of an opcode that it does not take, and the dependencies. */
INLINE uint32_t check_order(const uint32_t* w, uint32_t index, uint32_t bad_flags) {
  const uint32_t first = w[0];
  if (first & bad_flags) return WEFT_ERR_BAD_FLAGS;
  if ((first & FLAG(HAS_DEP0)) && first >> 16 >= index) return WEFT_ERR_BAD_DEP;
  if ((first & FLAG(HAS_DEP1)) && FIELD16(DEP1) >= index) return WEFT_ERR_BAD_DEP;
  return WEFT_ERR_OK;
}

INLINE uint32_t check_write(const uint32_t* w, uint32_t index, Known* known) {
  const uint32_t error = check_order(w, index, FLAG(CONSUME) | FLAG(INDIRECT));
  if (error != WEFT_ERR_OK) return error;
  const uint32_t length = LOW(LENGTH);
  if (length > WEFT_MAX_WQE_LENGTH) return WEFT_ERR_BAD_LENGTH;
  const uint32_t conn = FIELD16(CONN);
  if (conn != known->conn) {
    if (!exists(conn)) return WEFT_ERR_BAD_CONN;
    known->conn = conn;
  }
  const uint32_t remote = LOW(DST);
  if (remote + length < remote && HIGH(DST) == ~0u) return WEFT_ERR_BAD_LENGTH;
  if (length == 0) return WEFT_ERR_OK; /* touches nothing */
  return check_range(&known->source0, REGION_LOCAL_READ, LOW(SRC0), HIGH(SRC0), length);
}

/* Elements of a type in bytes, as a power of two; blocks are laid out in bytes. */
INLINE uint32_t log2_bytes(uint32_t dtype) { return dtype < WEFT_DTYPE_MXFP8_E4M3 ? dtype & 3u : 0; }
INLINE bool is_block(uint32_t dtype) { return dtype >= WEFT_DTYPE_MXFP8_E4M3; }
/* Bits of an element of a type, as a power of two. */
INLINE uint32_t log2_bits(uint32_t dtype) { return dtype == WEFT_DTYPE_MXFP4_E2M1 ? 2u : 3u + log2_bytes(dtype); }
/* With their scales, elements of `dtype` that take `bytes` bytes without. */
INLINE uint64_t with_scales(uint32_t dtype, uint64_t bytes) {
  return !is_block(dtype) ? bytes : bytes + (dtype == WEFT_DTYPE_MXFP4_E2M1 ? bytes >> 4 : bytes >> 5);
}

/* From the first of the other sources to the end of the last, `bytes` each. */
static __attribute__((noinline)) uint32_t check_strided(const uint32_t* w, uint64_t bytes, Known* known) {
  const uint64_t span = (uint64_t)LOW(STRIDE) * (FIELD8(NSRC) - 1u) + bytes;
  if (span >> 32 == 0)
    return check_range(&known->source1, REGION_LOCAL_READ, LOW(SRC1), HIGH(SRC1), (uint32_t)span);
  return search_regions(REGION_LOCAL_READ, LOW(SRC1), HIGH(SRC1), span, &known->source1);
}

/* Sources of another size of element than the result, or blocks. */
static __attribute__((noinline)) uint32_t check_converting(const uint32_t* w, Known* known) {
  const uint32_t from = FIELD8(DTYPE), to = FIELD8(TO), sources = FIELD8(NSRC);
  const uint32_t length = LOW(LENGTH);
  uint32_t source_bits = LOW(SRC0);
  if (sources > 1) source_bits |= LOW(SRC1) | LOW(STRIDE);
  if (source_bits & ((1u << log2_bytes(from)) - 1u)) return WEFT_ERR_BAD_ALIGN;
  if (LOW(DST) & ((1u << log2_bytes(to)) - 1u)) return WEFT_ERR_BAD_ALIGN;
  /* Whole elements, or what a block of 32 takes. */
  const uint32_t unit = is_block(from) || is_block(to) ? 4u << log2_bits(to) : 1u << log2_bytes(to);
  if (length & (unit - 1u)) return WEFT_ERR_BAD_ALIGN;
  const uint64_t elements_bytes = (uint64_t)length << log2_bits(from) >> log2_bits(to);
  if (length > WEFT_MAX_WQE_LENGTH || elements_bytes > WEFT_MAX_WQE_LENGTH) return WEFT_ERR_BAD_LENGTH;
  if (length == 0) return WEFT_ERR_OK;

  const uint64_t bytes = with_scales(from, elements_bytes);
  uint32_t error = search_regions(REGION_LOCAL_READ, LOW(SRC0), HIGH(SRC0), bytes, &known->source0);
  if (error == WEFT_ERR_OK && sources > 1) error = check_strided(w, bytes, known);
  if (error != WEFT_ERR_OK) return error;
  return search_regions(REGION_LOCAL_WRITE, LOW(DST), HIGH(DST), with_scales(to, length), &known->target);
}

INLINE uint32_t check_reduce(const uint32_t* w, uint32_t index, Known* known) {
  uint32_t error = check_order(w, index, FLAG(SIGNAL) | FLAG(CONSUME) | FLAG(INDIRECT));
  if (error != WEFT_ERR_OK) return error;
  const uint32_t math = MATH(w);
  error = math & 0xffu;
  if (error != WEFT_ERR_OK) return error;
  const uint32_t align = math >> 8;
  if (align == 0xffu) return check_converting(w, known);
  const uint32_t length = LOW(LENGTH), source0 = LOW(SRC0), target = LOW(DST), sources = FIELD8(NSRC);
  uint32_t low_bits = length | source0 | target;
  if (sources > 1) low_bits |= LOW(SRC1) | LOW(STRIDE);
  if (low_bits & align) return WEFT_ERR_BAD_ALIGN;
  if (length - 1u >= WEFT_MAX_WQE_LENGTH) { /* or 0, which touches nothing */
    return length == 0 ? WEFT_ERR_OK : WEFT_ERR_BAD_LENGTH;
  }
  error = check_range(&known->source0, REGION_LOCAL_READ, source0, HIGH(SRC0), length);
  if (error != WEFT_ERR_OK) return error;
  if (sources > 1) {
    error = LOW(STRIDE) == 0 ? check_range(&known->source1, REGION_LOCAL_READ, LOW(SRC1), HIGH(SRC1), length)
                             : check_strided(w, length, known);
    if (error != WEFT_ERR_OK) return error;
  }
  return check_range(&known->target, REGION_LOCAL_WRITE, target, HIGH(DST), length);
}

INLINE uint32_t check_semaphore(const uint32_t* w, uint32_t index, uint32_t bad_flags) {
  const uint32_t error = check_order(w, index, bad_flags);
  if (error != WEFT_ERR_OK) return error;
  return FIELD16(SEM) < num_sems ? WEFT_ERR_OK : WEFT_ERR_BAD_SEM;
}

INLINE uint32_t check_entry(const uint32_t* w, uint32_t index, Known* known) {
  const uint32_t opcode = w[0] & 0xffu;
  if (opcode == WEFT_WQE_OP_REDUCE) return check_reduce(w, index, known);
  if (opcode == WEFT_WQE_OP_WRITE) return check_write(w, index, known);
  if (opcode == WEFT_WQE_OP_WAIT) return check_semaphore(w, index, FLAG(SIGNAL) | FLAG(INDIRECT));
  if (opcode == WEFT_WQE_OP_SET) return check_semaphore(w, index, FLAG(SIGNAL) | FLAG(CONSUME) | FLAG(INDIRECT));
  if (opcode == WEFT_WQE_OP_NOP) return check_order(w, index, FLAG(SIGNAL) | FLAG(CONSUME) | FLAG(INDIRECT));
  return WEFT_ERR_BAD_OPCODE;
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
    /* Nothing is known: regions and connections may have changed since the last subgraph. */
    Known known = {.conn = ~0u};

    uint32_t here = fetch_block(&reader);
    while (here != 0) {
      const uint32_t next = error == WEFT_ERR_OK ? fetch_block(&reader) : 0;
      const uint32_t flaws = FETCH_WAIT;
      __asm__ volatile("" ::: "memory"); /* from here on the lines are plain memory */
      const uint32_t* w = LINES(half);
      /* Entries before the first line with a flaw, then that line. */
      uint32_t sound = here;
      if (flaws != 0) {
        for (sound = 0; ((flaws | flaws >> LINES_PER_HALF) >> sound & 1u) == 0; ++sound) {}
      }
      for (const uint32_t* end = w + 16u * sound; w != end && error == WEFT_ERR_OK; w += 16) {
        error = check_entry(w, index, &known);
        if (error == WEFT_ERR_OK) ++index;
      }
      if (error == WEFT_ERR_OK && sound != here) {
        error = flaws >> sound & 1u ? WEFT_ERR_MEM_ERROR : WEFT_ERR_BAD_FLAGS;
      }
      half ^= 1u;
      here = next; /* after an error: what was on its way is still read to its end */
    }
    VERDICT_ENTRY = index;
    VERDICT = error;
  }
}
