// SPDX-License-Identifier: Apache-2.0
// Entry for libFuzzer; WEFT_TARGET names the target.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::WEFT_TARGET(data, size);
  return 0;
}
