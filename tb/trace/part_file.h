// SPDX-License-Identifier: Apache-2.0
// A file that is written beside its place ("<path>.part") and takes it when the run has ended well: what an
// earlier run left there stays until then, and a run that fails or is killed leaves nothing under the final
// name. What is no plain file (/dev/stdout) is written as it is, and never removed.
#pragma once

#include <cstdio>
#include <string>

#include "tb/sim/status.h"

namespace weft::tb {

class PartFile {
 public:
  explicit PartFile(std::string path);
  ~PartFile() { remove(); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  std::FILE* open();               // null on error, which is in errno
  Status keep();                   // the file is closed and complete: give it its name
  void remove();                   // unless kept
  Status error(int number) const;  // "<path>: cannot be written: ..."

 private:
  std::string path_, target_, part_;  // target_: where a link leads
  bool ours_ = false;                 // part_ was made by open()
};

}  // namespace weft::tb
