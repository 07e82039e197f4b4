// SPDX-License-Identifier: Apache-2.0
// What is fuzzed. Each takes any bytes and aborts when it finds something wrong; `make fuzz` gives the first
// two to libFuzzer, the program `fuzz` replays the corpus in every `make test`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::fuzz {

/// A frame: parse, decode, and what is good must survive encoding.
void parser(const std::uint8_t* data, std::size_t size);

/// Two endpoints and the network between them, driven by the bytes.
void endpoint(const std::uint8_t* data, std::size_t size);

/// A compliance script against the reference endpoint, or datagrams to the peer behind a socket.
void comply(const std::uint8_t* data, std::size_t size);

}  // namespace weft::fuzz
