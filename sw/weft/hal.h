// SPDX-License-Identifier: Apache-2.0
// Hardware access: all that the driver needs of a node. The simulator implements it over a Verilated node, a
// board over PCIe; the driver knows neither.
//
// Order: csr_write and doorbell are posted and reach the node in the order of the calls, whatever the mix.
// csr_read comes after every earlier csr_write and doorbell and returns when the node has answered (all ones
// when it cannot, as a dead PCIe function reads). Memory accesses take effect at once: what mem_write wrote
// is seen by every read that the node starts afterwards; mem_read sees every write that the node's memory has
// acknowledged. One thread at a time per node.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft {

struct Hal {
  virtual ~Hal() = default;

  virtual void csr_write(uint32_t addr, uint32_t value) = 0;  // byte address, multiple of 4
  virtual uint32_t csr_read(uint32_t addr) = 0;
  virtual void doorbell(const void* bytes64) = 0;  // one 64-byte write to the express window
  virtual void mem_write(uint64_t addr, const void* bytes, size_t count) = 0;
  virtual void mem_read(uint64_t addr, void* bytes, size_t count) = 0;

  // Nanoseconds of a clock that never goes back, for what is given up after a while.
  virtual uint64_t now_ns() {
    using namespace std::chrono;
    return static_cast<uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
  }

  // A poll loop calls it once a round. The simulator lets model time pass; a board may pause the core.
  virtual void relax() {}
};

}  // namespace weft
