// SPDX-License-Identifier: Apache-2.0
// A frame of the body as a script looks at it: by names of kinds and fields.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sw/wire/frame.h"
#include "tb/sim/time.h"

namespace weft::comply {

inline constexpr std::uint64_t kMask24 = 0xffffff;

struct Seen {
  tb::Ps time = 0;
  std::uint32_t port = 0;
  wire::Frame bytes;
  wire::Parsed f;  // its payload points into bytes
  wire::Opcode op{};
};

/// The code of a name; 0 for a name that there is not.
template <class Enum>
Enum by_name(const std::string& text) {
  for (unsigned n = 0; n < 256; ++n)
    if (const char* is = wire::name(static_cast<Enum>(n)); is != nullptr && text == is)
      return static_cast<Enum>(n);
  return static_cast<Enum>(0);
}
/// Of a script's word: WRITE for "data", which stands for any of its layout.
wire::Opcode opcode_by_name(const std::string& small);
std::string name_of(wire::Opcode op);
std::string err_name(wire::Err e);
std::string err_name(std::uint8_t e);

/// History bits, newest first, without the ones behind the last 0.
std::string cut(std::string bits);
std::string hist_bits(std::span<const std::uint32_t> hist);

/// What an ack tells of a path, as its own or in a block.
struct Told {
  std::uint8_t epoch;
  std::uint32_t base, ce_bytes;
  std::string hist;
};
std::optional<Told> told(const Seen& s, std::uint8_t path);
/// A field by its name in a script; nothing: the frame has none of that name.
std::optional<std::uint64_t> field(const Seen& s, const std::string& key);
/// Of a field, as a mask.
std::uint64_t width(const std::string& name);

}  // namespace weft::comply
