// SPDX-License-Identifier: Apache-2.0
#include "tb/memory/memory.h"

#include <sys/mman.h>

#include <new>

namespace weft::tb {

Memory::Memory(uint64_t base, uint64_t bytes) : base_(base), bytes_(bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(p);
}

Memory::~Memory() {
  munmap(data_, bytes_);
}

}  // namespace weft::tb
