// SPDX-License-Identifier: Apache-2.0
// The `weft` command: chooses the subcommand.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "sw/tools/commands.h"
#include "sw/tools/printable.h"
#include "weft_version.h"

namespace {

struct Command {
  const char* name;
  int (*run)(int, char**);
  const char* help;
};

constexpr Command kCommands[] = {
    {"sim", weft::tools::sim_command, "run a workload on a simulated cluster and check every byte"},
    {"eval", weft::tools::eval_command, "compare transports at scale, with bounds, goals and plots"},
    {"comply", weft::tools::comply_command, "run scripted exchanges against an endpoint, ours or another"},
    {"nmc", weft::tools::nmc_command, "reduce files as the reducer does, and show what comes out"},
    {"trace", weft::tools::trace_command, "make a workload out of recorded traces"},
};

void usage(std::FILE* to) {
  std::fputs("usage: weft COMMAND [options]\n\n", to);
  for (const Command& c : kCommands) std::fprintf(to, "  %-7s %s\n", c.name, c.help);
  std::fputs("\n`weft COMMAND --help` tells the options of a command.\n", to);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    usage(stderr);
    return weft::tools::kBadInput;
  }
  for (const Command& c : kCommands)
    if (std::strcmp(argv[1], c.name) == 0) {
      try {
        return c.run(argc - 1, argv + 1);
      } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "weft %s: out of memory\n", c.name);
        return weft::tools::kBadInput;
      }
    }
  if (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0 ||
      std::strcmp(argv[1], "help") == 0) {
    usage(stdout);
    return weft::tools::kOk;
  }
  if (std::strcmp(argv[1], "--version") == 0) {
    std::printf("weft %s\n", weft::kVersion);
    return weft::tools::kOk;
  }
  std::fprintf(stderr, "weft: %s: unknown command, expected one of:", weft::printable(argv[1]).c_str());
  for (const Command& c : kCommands) std::fprintf(stderr, " %s", c.name);
  std::fputs(" (weft --help tells more)\n", stderr);
  return weft::tools::kBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  // A file opened later must not take the number of a standard stream that the caller has closed.
  int fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR);
  if (fd >= 0) ::close(fd);
  const int status = run(argc, argv);
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  pollfd out{STDOUT_FILENO, 0, 0};
  if (::poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0) return status;  // `| head` has read enough
  std::fprintf(stderr, "weft: standard output: cannot be written: %s\n",
               std::strerror(errno != 0 ? errno : EIO));
  return weft::tools::kBadInput;
}
