// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: how a wrong command line is told, and files that are whole or absent.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sw/tools/commands.h"
#include "sw/tools/place.h"
#include "sw/tools/printable.h"
#include "sw/weft/result.h"

namespace weft::tools {

/// Tells what is wrong with what a command was given, in one line, and answers its exit status.
inline int refuse(const char* command, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", command, printable(text).c_str());
  return kBadInput;
}

/// A whole number of 0 to `most`, told by the text: what a program makes of "-1" is another number.
inline CLI::Validator whole_number(uint64_t most) {
  return CLI::Validator(
      [most](std::string& text) {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool good = error == std::errc{} && end == text.data() + text.size() && value <= most;
        return good ? std::string() : fmt::format("{}: expected at most {}, a whole number", text, most);
      },
      fmt::format("0 to {}", most));
}

/// The option that stands more often than it may, if that is what parsing stumbled over.
inline const CLI::Option* given_twice(const CLI::App& app) {
  for (const CLI::Option* o : app.get_options())
    if (o->get_expected_max() == 1 && o->count() > 1) return o;
  return nullptr;
}

/// Parses; answers -1 to go on, else the exit status. --help goes to standard output, an error is one line.
inline int parse(CLI::App& app, const char* command, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return -1;
  } catch (const CLI::ParseError& e) {
    if (const CLI::Option* twice = given_twice(app)) {
      return refuse(command, fmt::format("{}: given {} times, expected once", twice->get_name(),
                                         static_cast<int>(twice->count())));
    }
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(e);
      return kOk;
    }
    std::string why = e.what();
    for (char& c : why)
      if (c == '\n') c = ' ';
    // "--flag: value: expected ..." as everything else is told.
    if (const std::size_t colon = why.find(": ");
        e.get_name() == "ValidationError" && why.starts_with("-") && colon != std::string::npos)
      return refuse(command, why.substr(0, colon) + " = " + why.substr(colon + 2));
    return refuse(command, fmt::format("{} ({} --help tells the options)", why, command));
  }
}

/// A text file that a command promises to write. That it can be written is tried at once, so that a run of
/// minutes does not end at a folder that is not there; but until write() there is nothing at `path` nor
/// beside it, so that a command which is killed leaves nothing. What is no plain file (/dev/stdout) is
/// written as it is; "-" is standard output.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& flag, const std::string& path) {
    OutputFile f;
    f.flag_ = flag;
    f.path_ = path;
    if (path.empty()) return Status::error(flag + " = '': expected a path");
    if (is_stdout(path)) return f;
    f.target_ = followed(path);
    struct stat s {};
    const bool plain = ::stat(f.target_.c_str(), &s) != 0 || S_ISREG(s.st_mode);
    f.part_ = plain ? f.target_ + ".part" : f.target_;
    f.file_ = std::fopen(f.part_.c_str(), "w");
    if (f.file_ == nullptr) return f.refused(errno);
    if (plain) {
      std::fclose(f.file_);
      f.file_ = nullptr;
      std::remove(f.part_.c_str());
    }
    return f;
  }
  OutputFile(OutputFile&& other) noexcept { swap(other); }
  OutputFile& operator=(OutputFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OutputFile() {
    if (file_ != nullptr) std::fclose(file_);
  }

  /// Whether a path means standard output: what else a command tells goes to the other stream then.
  static bool is_stdout(const std::string& path) { return path == "-"; }

  Status write(const std::string& text) {
    if (is_stdout(path_)) {
      errno = 0;
      if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
        return {};
      return refused(errno);
    }
    if (file_ == nullptr) file_ = std::fopen(part_.c_str(), "w");
    if (file_ == nullptr) return refused(errno);
    errno = 0;
    const bool written =
        std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
    int error = errno;
    if (std::fclose(file_) == 0 && written) {
      if (part_ == target_ || std::rename(part_.c_str(), target_.c_str()) == 0)
        error = 0;
      else
        error = errno;
    }
    file_ = nullptr;
    if (error == 0 && written) return {};
    if (part_ != target_) std::remove(part_.c_str());
    return refused(error);
  }

 private:
  OutputFile() = default;
  void swap(OutputFile& other) {
    std::swap(flag_, other.flag_);
    std::swap(path_, other.path_);
    std::swap(target_, other.target_);
    std::swap(part_, other.part_);
    std::swap(file_, other.file_);
  }
  Status refused(int error) const {
    return Status::error(
        fmt::format("{} = {}: cannot be written: {}", flag_, path_, std::strerror(error ? error : EIO)));
  }

  std::string flag_, path_, target_, part_;  // target_: where a link leads
  std::FILE* file_ = nullptr;
};

/// The folders of a path that do not exist yet, innermost first. Those that a run made and left empty are
/// taken away again.
class NewFolders {
 public:
  explicit NewFolders(const std::string& path) {
    std::error_code none;
    for (std::filesystem::path p = std::filesystem::path(path).lexically_normal();
         !p.empty() && p != p.root_path() && !std::filesystem::exists(p, none); p = p.parent_path())
      folders_.push_back(p);
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() {
    std::error_code in_use;
    for (const std::filesystem::path& p : folders_) std::filesystem::remove(p, in_use);
  }

 private:
  std::vector<std::filesystem::path> folders_;
};

/// Refuses a place to write that is one of the files a command reads, or the place of another output.
inline Status check_places(
    const std::vector<std::string>& read,
    std::initializer_list<std::pair<const char*, std::optional<std::string>>> written) {
  namespace fs = std::filesystem;
  const auto same = [](const std::string& a, const std::string& b) {
    if (OutputFile::is_stdout(a) || OutputFile::is_stdout(b)) return a == b;
    std::error_code error;
    if (fs::exists(a, error) && !fs::is_regular_file(a, error)) return false;  // /dev/stdout takes both
    // A name that is not there yet would stay relative.
    return fs::weakly_canonical(fs::absolute(a, error), error) ==
           fs::weakly_canonical(fs::absolute(b, error), error);
  };
  for (auto it = written.begin(); it != written.end(); ++it) {
    const auto& [flag, path] = *it;
    if (!path) continue;
    for (const std::string& file : read)
      if (same(*path, file))
        return Status::error(fmt::format("{} = {}: expected no file that is read", flag, *path));
    for (auto other = written.begin(); other != it; ++other)
      if (other->second && same(*path, *other->second))
        return Status::error(
            fmt::format("{} = {}: expected another file than {}", flag, *path, other->first));
  }
  return {};
}

}  // namespace weft::tools
