// SPDX-License-Identifier: Apache-2.0
// One rank of a fabric under load:
//
//   mpirun -n 2 fabric_ranks NODES PLANES MICROSECONDS [THREADS]
//
// Rank 0 prints a line: a hash of everything that came anywhere, packets that came, events handled, seconds.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "load_host.h"
#include "tb/sim/mpi_ranks.h"

using namespace weft::tb;

int main(int argc, char** argv) {
  MpiRanks ranks(&argc, &argv);
  const auto number = [&](int i, unsigned otherwise) {
    return i < argc ? static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  const unsigned nodes = number(1, 0), planes = number(2, 0), us = number(3, 0), threads = number(4, 1);
  if (nodes == 0 || nodes > 4096 || planes == 0 || planes > 16 || us == 0 || threads == 0) {
    if (ranks.rank() == 0) std::fprintf(stderr, "usage: fabric_ranks NODES PLANES MICROSECONDS [THREADS]\n");
    return 2;
  }
  LoadedFabric f(ranked_scenario(nodes, planes, threads), {}, {}, &ranks);
  const auto start = std::chrono::steady_clock::now();
  f.run_until(us * kUs);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  uint64_t events = f.kernel.events();
  ranks.sum({&events, 1});
  const uint64_t hash = f.hash(), got = f.got();
  if (ranks.rank() == 0)
    std::printf("%016" PRIx64 " %" PRIu64 " %" PRIu64 " %.3f\n", hash, got, events, seconds);
  return f.kernel.status().ok() ? 0 : 1;
}
