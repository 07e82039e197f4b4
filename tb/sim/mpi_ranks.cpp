// SPDX-License-Identifier: Apache-2.0
// An MPI call that fails ends the program with MPI's own message (MPI_ERRORS_ARE_FATAL, the default).
#include "tb/sim/mpi_ranks.h"

#include <mpi.h>

#include <numeric>

namespace weft::tb {

MpiRanks::MpiRanks(int* argc, char*** argv) {
  int value = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &value);  // only the caller's thread calls MPI
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  rank_ = static_cast<unsigned>(value);
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  count_ = static_cast<unsigned>(value);
  for (auto* v : {&send_bytes_, &send_at_, &get_bytes_, &get_at_}) v->resize(count_);
}

MpiRanks::~MpiRanks() {
  MPI_Finalize();
}

Ps MpiRanks::minimum(Ps mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
  return mine;
}

void MpiRanks::sum(std::span<uint64_t> values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_UINT64_T, MPI_SUM,
                MPI_COMM_WORLD);
}

void MpiRanks::exchange(const std::vector<std::vector<uint8_t>>& outgoing, std::vector<uint8_t>& incoming) {
  packed_.clear();
  for (unsigned r = 0; r < count_; ++r) {
    send_bytes_[r] = static_cast<int>(outgoing[r].size());
    packed_.insert(packed_.end(), outgoing[r].begin(), outgoing[r].end());
  }
  MPI_Alltoall(send_bytes_.data(), 1, MPI_INT, get_bytes_.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::exclusive_scan(send_bytes_.begin(), send_bytes_.end(), send_at_.begin(), 0);
  std::exclusive_scan(get_bytes_.begin(), get_bytes_.end(), get_at_.begin(), 0);
  incoming.resize(static_cast<size_t>(get_at_.back() + get_bytes_.back()));
  MPI_Alltoallv(packed_.data(), send_bytes_.data(), send_at_.data(), MPI_BYTE, incoming.data(),
                get_bytes_.data(), get_at_.data(), MPI_BYTE, MPI_COMM_WORLD);
}

}  // namespace weft::tb
