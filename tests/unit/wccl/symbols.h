// SPDX-License-Identifier: Apache-2.0
// A memory too large to hold, for the engine model: of each range it knows which ranks' inputs were folded
// into it, in which order, and from which offset. So a plan over terabytes is run in milliseconds, and every
// byte of it is still accounted for.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine_model.h"

namespace wccl::model {

// Bytes [a, a + n) hold, at a + i: fold of inputs term.rank[term.offset + i] for all terms, leftmost first.
struct Term {
  int rank;
  std::uint64_t offset;
  bool operator==(const Term&) const = default;
};
struct Range {
  std::uint64_t bytes;
  std::vector<Term> terms;
};

class Symbols {
 public:
  // Memory that exists, with nothing known in it.
  void allow(std::uint64_t addr, std::uint64_t bytes) {
    if (bytes != 0) allowed_.push_back({addr, bytes});
  }
  bool inside(std::uint64_t addr, std::uint64_t bytes) const {
    for (const auto& [base, size] : allowed_)
      if (addr >= base && addr - base <= size && bytes <= size - (addr - base)) return true;
    return false;
  }
  void write(std::uint64_t addr, const std::vector<Range>& ranges) {
    std::uint64_t total = 0;
    for (const Range& r : ranges) total += r.bytes;
    if (total == 0) return;
    cut(addr);
    cut(addr + total);
    known_.erase(known_.lower_bound(addr), known_.lower_bound(addr + total));
    for (const Range& r : ranges) {
      if (r.bytes == 0) continue;
      if (!r.terms.empty()) known_[addr] = r;
      addr += r.bytes;
    }
  }
  // What [addr, addr + bytes) holds, in order; ranges of unknown content have no terms.
  std::vector<Range> read(std::uint64_t addr, std::uint64_t bytes) const {
    std::vector<Range> out;
    const std::uint64_t end = addr + bytes;
    auto at = known_.upper_bound(addr);
    if (at != known_.begin() && std::prev(at)->first + std::prev(at)->second.bytes > addr) --at;
    while (addr < end) {
      if (at == known_.end() || at->first >= end) {
        out.push_back({end - addr, {}});
        break;
      }
      if (at->first > addr) {
        out.push_back({at->first - addr, {}});
        addr = at->first;
      }
      const std::uint64_t skip = addr - at->first;
      Range r{std::min(at->second.bytes - skip, end - addr), at->second.terms};
      for (Term& t : r.terms) t.offset += skip;
      addr += r.bytes;
      out.push_back(std::move(r));
      ++at;
    }
    return out;
  }

 private:
  // Makes `addr` the start of a range, if it lies inside one.
  void cut(std::uint64_t addr) {
    auto at = known_.lower_bound(addr);
    if (at == known_.begin()) return;
    --at;
    const std::uint64_t left = addr - at->first;
    if (left >= at->second.bytes) return;
    Range right{at->second.bytes - left, at->second.terms};
    for (Term& t : right.terms) t.offset += left;
    at->second.bytes = left;
    known_[addr] = std::move(right);
  }

  std::vector<std::pair<std::uint64_t, std::uint64_t>> allowed_;  // address, bytes
  std::map<std::uint64_t, Range> known_;                          // by address; they do not overlap
};

inline bool inside(const Symbols& m, std::uint64_t addr, std::uint64_t bytes) {
  return m.inside(addr, bytes);
}
inline void copy(Symbols& to, std::uint64_t dst, const Symbols& from, std::uint64_t src,
                 std::uint64_t bytes) {
  to.write(dst, from.read(src, bytes));
}
// The ranges of `left`, each folded with what `right` has in its place, a single input.
inline std::string fold(std::vector<Range>& left, const std::vector<Range>& right) {
  std::vector<Range> out;
  std::uint64_t skip_l = 0, skip_r = 0;
  for (std::size_t l = 0, r = 0; l < left.size() && r < right.size();) {
    if (left[l].terms.empty() || right[r].terms.size() != 1)
      return "a fold of what has not arrived, or of a second operand that is itself a sum";
    Range both{std::min(left[l].bytes - skip_l, right[r].bytes - skip_r), left[l].terms};
    for (Term& t : both.terms) t.offset += skip_l;
    both.terms.push_back({right[r].terms[0].rank, right[r].terms[0].offset + skip_r});
    skip_l += both.bytes;
    skip_r += both.bytes;
    if (skip_l == left[l].bytes) ++l, skip_l = 0;
    if (skip_r == right[r].bytes) ++r, skip_r = 0;
    out.push_back(std::move(both));
  }
  left = std::move(out);
  return {};
}
inline std::string reduce(Symbols& m, const Wqe& w) {
  std::vector<Range> all = m.read(weft::ref::source_of(w, 0), w.length);
  for (unsigned k = 1; k < w.nsrc; ++k)
    if (std::string why = fold(all, m.read(weft::ref::source_of(w, k), w.length)); !why.empty()) return why;
  m.write(w.dst, all);
  return {};
}

}  // namespace wccl::model
