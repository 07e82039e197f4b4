// SPDX-License-Identifier: Apache-2.0
#include "tb/trace/part_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "sw/tools/place.h"

namespace weft::tb {

PartFile::PartFile(std::string path) : path_(std::move(path)), target_(tools::followed(path_)) {
  struct stat s {};
  const bool plain = ::stat(target_.c_str(), &s) != 0 || S_ISREG(s.st_mode);
  part_ = plain ? target_ + ".part" : target_;
}

std::FILE* PartFile::open() {
  std::FILE* file = std::fopen(part_.c_str(), "wb");
  ours_ = file != nullptr && part_ != target_;
  return file;
}

Status PartFile::keep() {
  if (!ours_) return {};
  if (std::rename(part_.c_str(), target_.c_str()) != 0) return error(errno);
  ours_ = false;
  return {};
}

void PartFile::remove() {
  if (ours_) std::remove(part_.c_str());
  ours_ = false;
}

Status PartFile::error(int number) const {
  return Status::error(fmt::format("{}: cannot be written: {}", path_, std::strerror(number ? number : EIO)));
}

}  // namespace weft::tb
