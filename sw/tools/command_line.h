// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: how a wrong command line is told, and files that are whole or absent.
#pragma once

#include <sys/stat.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sw/tools/commands.h"
#include "sw/weft/result.h"

namespace weft::tools {

/// Parses; answers -1 to go on, else the exit status. --help goes to standard output, an error is one line.
inline int parse(CLI::App& app, const char* command, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return -1;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(e);
      return kOk;
    }
    std::string why = e.what();
    for (char& c : why)
      if (c == '\n') c = ' ';
    std::fprintf(stderr, "%s: %s (%s --help tells the options)\n", command, why.c_str(), command);
    return kBadInput;
  }
}

/// A text file that a command promises to write. It is opened at once, so that a run of minutes does not end
/// at a folder that is not there, but beside its place: until write() there is nothing at `path`, and without
/// it nothing stays. What is no plain file (/dev/stdout) is written as it is.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& flag, const std::string& path) {
    OutputFile f;
    f.flag_ = flag;
    f.path_ = path;
    struct stat s {};
    const bool plain = ::stat(path.c_str(), &s) != 0 || S_ISREG(s.st_mode);
    f.part_ = plain ? path + ".part" : path;
    f.file_ = std::fopen(f.part_.c_str(), "w");
    if (f.file_ == nullptr) return f.refused();
    return f;
  }
  OutputFile(OutputFile&& other) noexcept { swap(other); }
  OutputFile& operator=(OutputFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OutputFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    if (part_ != path_) std::remove(part_.c_str());
  }

  Status write(const std::string& text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    if (written && closed && (part_ == path_ || std::rename(part_.c_str(), path_.c_str()) == 0)) return {};
    if (part_ != path_) std::remove(part_.c_str());
    return refused();
  }

 private:
  OutputFile() = default;
  void swap(OutputFile& other) {
    std::swap(flag_, other.flag_);
    std::swap(path_, other.path_);
    std::swap(part_, other.part_);
    std::swap(file_, other.file_);
  }
  Status refused() const {
    return Status::error(fmt::format("{} = {}: cannot be written: expected a path of a file", flag_, path_));
  }

  std::string flag_, path_, part_;
  std::FILE* file_ = nullptr;
};

}  // namespace weft::tools
