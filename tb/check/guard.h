// SPDX-License-Identifier: Apache-2.0
// Proves that memory changed only where it should. Guard zones are filled with bytes that depend on the
// address and a seed, so a block copied to the wrong place does not look right by chance; contents to be kept
// are remembered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tb/memory/memory.h"

namespace weft::tb {

class MemoryGuard {
 public:
  MemoryGuard(Memory& memory, uint64_t seed) : memory_(memory), seed_(seed) {}

  // Fills [addr, addr + bytes) with the pattern and guards it. Ranges lie in the memory and do not overlap
  // guarded ones.
  void fill(uint64_t addr, uint64_t bytes);
  // Guards what is there now (inputs).
  void keep(uint64_t addr, uint64_t bytes);
  // Everything that is not guarded yet, from the memory's first to its last byte: fills the gaps.
  void fill_rest();
  // No longer guarded: any part of guarded ranges.
  void release(uint64_t addr, uint64_t bytes);

  struct Report {
    uint64_t wrong_bytes = 0;
    uint64_t first = 0;  // address
    uint8_t expected = 0, got = 0;
    std::string text() const;  // one line; empty when nothing is wrong
  };
  Report check() const;

  // Byte of the pattern at an address.
  static uint8_t pattern(uint64_t seed, uint64_t addr);

 private:
  struct Range {
    uint64_t addr, bytes;
    std::vector<uint8_t> kept;  // empty: the pattern
  };
  void insert(Range range);

  Memory& memory_;
  uint64_t seed_;
  std::vector<Range> ranges_;  // by address
};

}  // namespace weft::tb
