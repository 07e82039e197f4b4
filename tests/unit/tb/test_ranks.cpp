// SPDX-License-Identifier: Apache-2.0
// The same simulation in one program and over MPI ranks. Built with WEFT_MPI only.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "load_host.h"

using namespace weft::tb;

namespace {

struct Outcome {
  uint64_t hash = 0, got = 0, events = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome over_ranks(unsigned ranks, const std::string& arguments) {
  if (geteuid() == 0) {  // mpirun asks root to say twice that it means it
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  const std::string command = "mpirun --oversubscribe -n " + std::to_string(ranks) +
                              " " WEFT_BUILD_DIR "/tests/bin/fabric_ranks " + arguments;
  INFO(command);
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  Outcome o;
  const int fields = std::fscanf(pipe, "%" SCNx64 " %" SCNu64 " %" SCNu64, &o.hash, &o.got, &o.events);
  while (std::fgetc(pipe) != EOF) {}
  CHECK(pclose(pipe) == 0);
  REQUIRE(fields == 3);
  return o;
}

}  // namespace

TEST_CASE("ranks: two and three ranks deliver the bits of one program", "[tb][fabric]") {
  LoadedFabric f(ranked_scenario(64, 2, 1), {});
  f.run_until(60 * kUs);
  const Outcome one{f.hash(), f.got(), f.kernel.events()};
  CHECK(one.got > 1000);
  CHECK(f.fabric->counts().drop_loss > 0);
  CHECK(over_ranks(2, "64 2 60") == one);
  CHECK(over_ranks(3, "64 2 60") == one);
  CHECK(over_ranks(2, "64 2 60 2") == one);  // each with two threads
  CHECK_FALSE(over_ranks(2, "64 2 59") == one);
}
