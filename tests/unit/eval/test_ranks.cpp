// SPDX-License-Identifier: Apache-2.0
// `weft eval` in one program and over MPI ranks. Built with WEFT_MPI only.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "weft_test.h"

namespace {

constexpr const char* kFile = WEFT_SOURCE_DIR "/sw/scenarios/eval/speed-1024.toml";

struct Outcome {
  int status = -1;
  std::string output;  // both streams
};

// ranks 0: without mpirun.
Outcome weft_eval(unsigned ranks, const std::string& arguments) {
  if (geteuid() == 0) {  // mpirun asks root to say twice that it means it
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  std::string command = WEFT_BUILD_DIR "/weft eval " + arguments + " 2>&1";
  if (ranks != 0) command = "mpirun --oversubscribe -n " + std::to_string(ranks) + " " + command;
  INFO(command);
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  Outcome o;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) o.output += static_cast<char>(c);
  const int status = pclose(pipe);
  o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return o;
}

// Everything but how it was called, times and memory.
std::string figures(unsigned ranks, const std::string& arguments) {
  const std::string json = WEFT_BUILD_DIR "/tests/eval_ranks.json";
  std::remove(json.c_str());
  const Outcome o =
      weft_eval(ranks, std::string("--scenario ") + kFile + " --size 20000 --json " + json + " " + arguments);
  INFO(o.output);
  REQUIRE(o.status == 0);
  std::ifstream file(json);
  std::stringstream text;
  text << file.rdbuf();
  return std::regex_replace(text.str(), std::regex("\"(command|cpu_s|value)\": [^\n]*"), "");
}

}  // namespace

TEST_CASE("eval ranks: two ranks write the file of one program", "[eval]") {
  const std::string one = figures(0, "");
  CHECK(one.size() > 10'000);
  CHECK((figures(2, "") == one));
  CHECK((figures(2, "--sim-threads 2") == one));
  CHECK_FALSE((figures(2, "--seed 2") == one));
}

TEST_CASE("eval ranks: bad input is told once", "[eval]") {
  const Outcome o = weft_eval(2, std::string("--scenario ") + kFile + " --json /no/such/folder/x.json");
  CHECK(o.status == 2);
  const std::string line = "weft eval: --json = /no/such/folder/x.json: cannot be written";
  const size_t at = o.output.find(line);
  REQUIRE(at != std::string::npos);
  CHECK(o.output.find("weft eval: ", at + 1) == std::string::npos);
}
