// SPDX-License-Identifier: Apache-2.0
#include "tb/check/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tb/sim/rng.h"

namespace weft::tb {
namespace {

uint64_t pattern_word(uint64_t seed, uint64_t addr) {
  return mix64(seed + (addr & ~uint64_t{7}) * 0x9e3779b97f4a7c15u);
}

// Calls f(address, bytes of the pattern, count) over a range, word by word.
template <class F>
void for_pattern(uint64_t seed, uint64_t addr, uint64_t bytes, F&& f) {
  for (uint64_t a = addr; a < addr + bytes;) {
    const uint64_t word = pattern_word(seed, a);
    const uint64_t skip = a & 7;
    const uint64_t n = std::min<uint64_t>(8 - skip, addr + bytes - a);
    f(a, reinterpret_cast<const uint8_t*>(&word) + skip, n);
    a += n;
  }
}

}  // namespace

uint8_t MemoryGuard::pattern(uint64_t seed, uint64_t addr) {
  return static_cast<uint8_t>(pattern_word(seed, addr) >> 8 * (addr & 7));
}

void MemoryGuard::insert(Range range) {
  if (range.bytes == 0) return;
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), range.addr,
                                   [](const Range& r, uint64_t addr) { return r.addr < addr; });
  ranges_.insert(at, std::move(range));
}

void MemoryGuard::fill(uint64_t addr, uint64_t bytes) {
  for_pattern(seed_, addr, bytes,
              [&](uint64_t a, const uint8_t* p, uint64_t n) { std::memcpy(memory_.data(a), p, n); });
  insert({addr, bytes, {}});
}

void MemoryGuard::keep(uint64_t addr, uint64_t bytes) {
  const uint8_t* p = memory_.data(addr);
  insert({addr, bytes, std::vector<uint8_t>(p, p + bytes)});
}

void MemoryGuard::fill_rest() {
  std::vector<std::pair<uint64_t, uint64_t>> gaps;
  uint64_t at = memory_.base();
  for (const Range& r : ranges_) {
    if (r.addr > at) gaps.emplace_back(at, r.addr - at);
    at = r.addr + r.bytes;
  }
  const uint64_t end = memory_.base() + memory_.size();
  if (end > at) gaps.emplace_back(at, end - at);
  for (const auto& [addr, bytes] : gaps) fill(addr, bytes);
}

void MemoryGuard::release(uint64_t addr, uint64_t bytes) {
  const uint64_t end = addr + bytes;
  std::vector<Range> left;
  for (Range& r : ranges_) {
    const uint64_t r_end = r.addr + r.bytes;
    if (r_end <= addr || r.addr >= end) {
      left.push_back(std::move(r));
      continue;
    }
    const auto part = [&](uint64_t from, uint64_t to) {
      Range p{from, to - from, {}};
      if (!r.kept.empty()) {
        p.kept.assign(r.kept.begin() + static_cast<std::ptrdiff_t>(from - r.addr),
                      r.kept.begin() + static_cast<std::ptrdiff_t>(to - r.addr));
      }
      left.push_back(std::move(p));
    };
    if (r.addr < addr) part(r.addr, addr);
    if (r_end > end) part(end, r_end);
  }
  ranges_ = std::move(left);
}

MemoryGuard::Report MemoryGuard::check() const {
  Report report;
  const auto compare = [&](uint64_t addr, const uint8_t* expected, uint64_t bytes) {
    const uint8_t* got = memory_.data(addr);
    if (std::memcmp(expected, got, bytes) == 0) return;
    for (uint64_t i = 0; i < bytes; ++i) {
      if (expected[i] == got[i]) continue;
      if (report.wrong_bytes++ == 0) {
        report.first = addr + i;
        report.expected = expected[i];
        report.got = got[i];
      }
    }
  };
  for (const Range& r : ranges_) {
    if (r.kept.empty()) {
      for_pattern(seed_, r.addr, r.bytes, compare);
    } else {
      compare(r.addr, r.kept.data(), r.bytes);
    }
  }
  return report;
}

std::string MemoryGuard::Report::text() const {
  if (wrong_bytes == 0) return "";
  return fmt::format(
      "{} bytes changed outside the destinations, the first at {:#x}: expected {:#04x}, got {:#04x}",
      wrong_bytes, first, expected, got);
}

}  // namespace weft::tb
