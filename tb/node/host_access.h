// SPDX-License-Identifier: Apache-2.0
// The host's way into a node: register accesses and doorbells, posted between windows and carried out by the
// node in the order of the calls, one at a time.
#pragma once

#include <cstdint>

namespace weft::tb {

class HostAccess {
 public:
  virtual ~HostAccess() = default;
  virtual void write(uint32_t addr, uint32_t value) = 0;
  virtual void doorbell(const void* bytes64) = 0;
  virtual void read(uint32_t addr) = 0;  // its answer becomes last_read() when reads_answered() has grown

  uint64_t reads_answered() const { return reads_answered_; }
  uint32_t last_read() const { return last_read_; }
  uint64_t done() const { return done_; }
  uint64_t errors() const { return errors_; }  // answers other than OKAY

 protected:
  void answered(bool ok) {
    if (!ok) ++errors_;
    ++done_;
  }
  void answered_read(uint32_t value, bool ok) {
    last_read_ = value;
    ++reads_answered_;
    answered(ok);
  }

 private:
  uint64_t done_ = 0, reads_answered_ = 0, errors_ = 0;
  uint32_t last_read_ = 0;
};

}  // namespace weft::tb
