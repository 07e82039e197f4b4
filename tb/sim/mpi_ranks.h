// SPDX-License-Identifier: Apache-2.0
// Ranks over MPI (CMake option WEFT_MPI). All ranks run the same binary on machines of one architecture:
// structs travel as they are.
#pragma once

#include "tb/sim/ranks.h"

namespace weft::tb {

class MpiRanks final : public Ranks {
 public:
  // Initialises MPI, and finalises it at the end: one object in a program.
  MpiRanks(int* argc, char*** argv);
  ~MpiRanks() override;
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  unsigned rank() const override { return rank_; }
  unsigned count() const override { return count_; }
  Ps minimum(Ps mine) override;
  void sum(std::span<uint64_t> values) override;
  void exchange(const std::vector<std::vector<uint8_t>>& outgoing, std::vector<uint8_t>& incoming) override;

 private:
  unsigned rank_ = 0, count_ = 1;
  std::vector<int> send_bytes_, send_at_, get_bytes_, get_at_;
  std::vector<uint8_t> packed_;
};

}  // namespace weft::tb
