// SPDX-License-Identifier: Apache-2.0
// Waves of one node and one window of time; linked with the tracing twin of the model.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "echo.h"

using namespace weft::tb;
namespace fs = std::filesystem;

TEST_CASE("waves: an FST of the chosen node and time", "[tb][waves]") {
  const fs::path dir = fs::path(WEFT_BUILD_DIR) / "tests" / ("tb_waves_" + std::to_string(getpid()));
  fs::create_directories(dir);
  const auto run = [&](const std::string& file, Ps from, Ps to) {
    TraceConfig traces;
    traces.waves = {file, 1, from, to};
    auto c = Cluster::create(two_nodes(), echo::nodes(), traces);
    INFO(c.error());
    REQUIRE(c.ok());
    CHECK(c.value()->run_for(40 * kUs).ok());
    CHECK(c.value()->finish().ok());
    std::ifstream in(file, std::ios::binary);
    // FST header block: type 0, length 329, start and end time, big-endian.
    unsigned char header[25] = {};
    in.read(reinterpret_cast<char*>(header), sizeof header);
    CHECK(header[0] == 0);
    const auto be = [&](int at) {
      uint64_t v = 0;
      for (int i = 0; i < 8; ++i) v = v << 8 | header[at + i];
      return static_cast<Ps>(v);
    };
    return std::make_pair(be(9), be(17));
  };
  const auto window = run(dir / "window.fst", 10 * kUs, 20 * kUs);
  CHECK(window.first >= 10 * kUs);
  CHECK(window.first < 10 * kUs + kClockPs);
  CHECK(window.second <= 20 * kUs + kClockPs);
  CHECK(window.second > 20 * kUs - kClockPs);
  const auto all = run(dir / "all.fst", 0, kNever);
  CHECK(all.second > 39 * kUs);
  CHECK(fs::file_size(dir / "all.fst") > fs::file_size(dir / "window.fst"));
  TraceConfig traces;
  traces.waves = {"/nowhere/x.fst", 0, 0, kNever};
  CHECK(Cluster::create(two_nodes(), echo::nodes(), traces).error() ==
        "/nowhere/x.fst: cannot be written: No such file or directory");
  fs::remove_all(dir);
}
