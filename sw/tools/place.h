// SPDX-License-Identifier: Apache-2.0
// Files as users name them: read whole and within reason, written where a link leads.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "sw/weft/result.h"

namespace weft::tools {

/// What a symbolic link leads to, which need not be there yet: a file that is written beside its place and
/// renamed would take the link's place otherwise.
inline std::string followed(std::string path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as the kernel has it
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = (target.is_absolute() ? target : fs::path(path).parent_path() / target).string();
  }
  return path;
}

/// All bytes of a file, `most` at most; of what never ends (/dev/zero) no more than a text has. An error is
/// "path: cannot be read: why".
inline Result<std::string> read_file(const std::string& path, std::size_t most = std::size_t{1} << 24) {
  constexpr std::size_t kMostText = std::size_t{1} << 24;
  const auto refused = [&](const std::string& why) {
    return Status::error(fmt::format("{}: cannot be read: {}", path, why));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(std::strerror(errno));
  struct stat s {};
  const bool known = ::fstat(fd, &s) == 0;
  if (known && S_ISDIR(s.st_mode)) {
    ::close(fd);
    return refused("it is a folder");
  }
  if (known && !S_ISREG(s.st_mode)) most = std::min(most, kMostText);
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      ::close(fd);
      if (n < 0) return refused(std::strerror(error));
      return out;
    }
    if (out.size() + static_cast<std::size_t>(n) > most) {
      ::close(fd);
      return refused(fmt::format("more than {} MiB, expected a file of its kind", most >> 20));
    }
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace weft::tools
