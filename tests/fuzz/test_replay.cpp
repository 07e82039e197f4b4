// SPDX-License-Identifier: Apache-2.0
// Inputs that the fuzzers found worth keeping, and some thousand random ones, under the sanitizers.
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/common/weft_test.h"
#include "tests/fuzz/targets.h"

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Lines of hexadecimal digits; '#' begins a comment.
std::vector<Bytes> corpus(const std::string& name) {
  const std::string path = WEFT_SOURCE_DIR "/tests/fuzz/corpus/" + name + ".txt";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Bytes> inputs;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(line.substr(i, 2), nullptr, 16)));
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

}  // namespace

TEST_CASE("fuzz: the parser takes its corpus", "[fuzz]") {
  const auto inputs = corpus("parser");
  REQUIRE(inputs.size() > 5);
  for (const Bytes& b : inputs) weft::fuzz::parser(b.data(), b.size());
}

TEST_CASE("fuzz: the endpoint takes its corpus", "[fuzz]") {
  const auto inputs = corpus("endpoint");
  REQUIRE(inputs.size() > 5);
  for (const Bytes& b : inputs) weft::fuzz::endpoint(b.data(), b.size());
}

TEST_CASE("fuzz: the endpoint takes random inputs", "[fuzz][random]") {
  weft::test::Rng rng;
  for (unsigned i = 0; i < 1000; ++i) {
    Bytes b(rng.range(1, 300));
    rng.fill(b);
    weft::fuzz::endpoint(b.data(), b.size());
  }
  SUCCEED();
}

TEST_CASE("fuzz: the script player and the peer behind a socket take random inputs", "[fuzz][random]") {
  weft::test::Rng rng(weft::test::seed(), 1);
  for (unsigned i = 0; i < 1500; ++i) {
    Bytes b(rng.range(1, 80));
    rng.fill(b);
    weft::fuzz::comply(b.data(), b.size());
  }
  SUCCEED();
}
