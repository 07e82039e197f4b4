// SPDX-License-Identifier: Apache-2.0
// The memory of one node: plain bytes at [base, base + size), allocated when touched, zero at first. The host
// reads and writes it directly (Hal, tests); the node through AXI (tb/memory/axi.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::tb {

class Memory {
 public:
  Memory(uint64_t base, uint64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint64_t base() const { return base_; }
  uint64_t size() const { return bytes_; }
  bool contains(uint64_t addr, uint64_t count) const {
    return addr >= base_ && count <= bytes_ && addr - base_ <= bytes_ - count;
  }
  // The caller has checked contains().
  uint8_t* data(uint64_t addr) { return data_ + (addr - base_); }
  const uint8_t* data(uint64_t addr) const { return data_ + (addr - base_); }

  // Accesses that touch [addr, addr + count) answer an AXI error and change nothing.
  void fail_at(uint64_t addr, uint64_t count) { faults_.push_back({addr, count}); }
  bool faulty(uint64_t addr, uint64_t count) const {
    for (const Range& f : faults_) {
      if (addr < f.addr + f.bytes && f.addr < addr + count) return true;
    }
    return false;
  }

 private:
  struct Range {
    uint64_t addr, bytes;
  };
  uint64_t base_;
  uint64_t bytes_;
  uint8_t* data_ = nullptr;
  std::vector<Range> faults_;
};

}  // namespace weft::tb
