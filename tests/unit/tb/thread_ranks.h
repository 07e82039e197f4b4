// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one program: for what MPI does not matter to.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include "tb/sim/ranks.h"

namespace weft::tb {

// Where the ranks meet: each leaves something, and looks at what the others left when all are there.
struct Meeting {
  explicit Meeting(unsigned count)
      : gate(static_cast<std::ptrdiff_t>(count)), least(count), sums(count), outgoing(count) {}
  std::barrier<> gate;
  std::vector<Ps> least;
  std::vector<std::vector<uint64_t>> sums;
  std::vector<std::vector<std::vector<uint8_t>>> outgoing;
};

class ThreadRank final : public Ranks {
 public:
  ThreadRank(Meeting& meeting, unsigned rank) : m_(meeting), rank_(rank) {}
  unsigned rank() const override { return rank_; }
  unsigned count() const override { return static_cast<unsigned>(m_.least.size()); }
  Ps minimum(Ps mine) override {
    m_.least[rank_] = mine;
    m_.gate.arrive_and_wait();
    mine = *std::min_element(m_.least.begin(), m_.least.end());
    m_.gate.arrive_and_wait();
    return mine;
  }
  void sum(std::span<uint64_t> values) override {
    m_.sums[rank_].assign(values.begin(), values.end());
    m_.gate.arrive_and_wait();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0;
      for (const auto& of_rank : m_.sums) values[i] += of_rank[i];
    }
    m_.gate.arrive_and_wait();
  }
  void exchange(const std::vector<std::vector<uint8_t>>& outgoing, std::vector<uint8_t>& incoming) override {
    m_.outgoing[rank_] = outgoing;
    m_.gate.arrive_and_wait();
    incoming.clear();
    for (const auto& of_rank : m_.outgoing)
      incoming.insert(incoming.end(), of_rank[rank_].begin(), of_rank[rank_].end());
    m_.gate.arrive_and_wait();
  }

 private:
  Meeting& m_;
  const unsigned rank_;
};

template <class Body>
void on_ranks(unsigned count, Body&& body) {
  Meeting meeting(count);
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < count; ++r) {
    threads.emplace_back([&, r] {
      ThreadRank rank(meeting, r);
      body(rank);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace weft::tb
