// SPDX-License-Identifier: Apache-2.0
//
// The fingerprint of a message's packets (sw/ref/cover.h): the gates compute the same, and no set of packets
// that looks like a message is taken for one, though most that senders get wrong have a pattern: they lie on
// a grid, one comes twice and its neighbour never, pairs differ in one bit of the address.
#include <algorithm>
#include <deque>
#include <vector>

#include "Vrx_cover.h"
#include "sw/ref/cover.h"
#include "weft_test.h"

using namespace weft::test;
using weft::ref::Cover;
using weft::ref::cover_mix;

namespace {

/// Mixing with one addition less: what the searches must find wanting.
std::uint32_t weaker(std::uint32_t x) {
  x ^= 0x9e3779b9;
  x ^= std::rotl(x, 5) ^ std::rotl(x, 11) ^ std::rotl(x, 17) ^ std::rotl(x, 26);
  x += std::rotl(x, 13);
  return x ^ std::rotl(x, 3) ^ std::rotl(x, 10) ^ std::rotl(x, 19) ^ std::rotl(x, 25);
}

struct Found {
  std::uint64_t pairs = 0, far_pairs = 0, sums = 0, squares = 0;
};

/// Wrong sets of packets of `mtu` bytes from `base` on that mix() does not tell from the right one.
template <class Mix>
Found search(Mix mix, std::uint32_t base, std::uint32_t mtu) {
  Found f;
  const auto packets = [&](unsigned n) {
    std::vector<std::uint32_t> v(n);
    for (unsigned k = 0; k < n; ++k) v[k] = mix(base + (k + 1) * mtu) - mix(base + k * mtu);
    return v;
  };
  const auto alike = [](std::vector<std::uint32_t> v) {
    std::sort(v.begin(), v.end());
    std::uint64_t n = 0;
    for (std::size_t i = 1; i < v.size(); ++i) n += v[i] == v[i - 1];
    return n;
  };
  f.pairs = alike(packets(4096));  // one twice, another never
  f.far_pairs = alike(packets(1 << 17));
  const unsigned n = 256;
  const std::vector<std::uint32_t> v = packets(n);
  std::vector<std::uint32_t> sums;  // two twice, two others never; or one three times
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = i; j < n; ++j) sums.push_back(v[i] + v[j]);
  f.sums = alike(sums);
  for (unsigned i = 0; i < n; ++i) {  // i, i^a, i^b, i^a^b: closed under exclusive or
    for (unsigned a = 1; a < n; ++a) {
      if ((i ^ a) < i) continue;
      for (unsigned b = a + 1; b < n; ++b) {
        const std::uint32_t w = v[i], x = v[i ^ a], y = v[i ^ b], z = v[i ^ a ^ b];
        f.squares += w + z == x + y || w + x == y + z;
      }
    }
  }
  return f;
}

template <class Mix>
Found search_all(Mix mix) {
  Found all;
  for (std::uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
    for (const std::uint32_t base : {0U, 0x1000U, 0x7fffff40U, 0x12345678U, 0xfffff000U}) {
      const Found f = search(mix, base, mtu);
      all.pairs += f.pairs;
      all.far_pairs += f.far_pairs;
      all.sums += f.sums;
      all.squares += f.squares;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("cover: no pattern of doubles and holes is taken for a whole message", "[core]") {
  const Found f = search_all(cover_mix);
  CAPTURE(f.pairs, f.far_pairs, f.sums, f.squares);
  // By chance, of 25 searches: 0.05, 50, 3.2 and 0.02.
  CHECK(f.pairs == 0);
  CHECK(f.squares == 0);
  CHECK(f.far_pairs < 90);
  CHECK(f.sums < 12);
  // One addition is not enough, and this search shows it.
  const Found w = search_all(weaker);
  CAPTURE(w.pairs, w.far_pairs, w.sums, w.squares);
  CHECK(w.far_pairs > 150);
}

TEST_CASE("cover: a message is whole in any order and cut, and only if each byte is there once",
          "[core][random]") {
  Rng rng(seed(), 60);
  for (unsigned round = 0; round < 2000; ++round) {
    const std::uint64_t va = rng.chance(0.2) ? 0xffffffffU - rng.below(5000) : rng();
    struct Piece {
      std::uint64_t va;
      std::uint32_t len;
    };
    std::vector<Piece> pieces;
    std::uint32_t len = 0;
    for (auto n = rng.range(1, 20); n != 0; --n) {
      pieces.push_back({va + len, static_cast<std::uint32_t>(rng.range(1, 4096))});
      len += pieces.back().len;
    }
    std::shuffle(pieces.begin(), pieces.end(), rng);
    Cover good;
    for (const Piece& p : pieces) good.add(p.va, p.len);
    REQUIRE(good.whole(len));
    if (pieces.size() == 1) continue;
    // One comes where another one should, cut to its length.
    Cover bad;
    const std::size_t lost = rng.below(pieces.size());
    const std::size_t twice = (lost + 1 + rng.below(pieces.size() - 1)) % pieces.size();
    for (std::size_t i = 0; i < pieces.size(); ++i) bad.add(pieces[i == lost ? twice : i].va, pieces[i].len);
    REQUIRE_FALSE(bad.whole(len));
  }
}

TEST_CASE("cover: weft_rx_cover computes what cover.h does, a packet every 4 cycles", "[core][random]") {
  Bench<Vrx_cover> b("weft_rx_cover");
  b->valid_i = 0;
  b.reset();
  Rng rng(seed(), 61);
  struct Want {
    std::uint32_t delta, whole;
    std::uint64_t at;
  };
  std::deque<Want> want;
  unsigned got = 0, since = 4;
  while (got < 3000) {
    b->valid_i = since >= 4 && rng.chance(0.8);
    b->va_i = static_cast<std::uint32_t>(rng());
    b->len_i = static_cast<std::uint16_t>(rng.below(4097));
    b->msg_len_i = static_cast<std::uint32_t>(rng());
    b.eval();
    ++since;
    if (b->valid_i) {
      since = 1;
      const std::uint32_t start = cover_mix(b->va_i);
      want.push_back(
          {cover_mix(b->va_i + b->len_i) - start, cover_mix(b->va_i + b->msg_len_i) - start, b.cycle() + 10});
    }
    if (b->valid_o) {
      REQUIRE_FALSE(want.empty());
      REQUIRE(b->delta_o == want.front().delta);
      REQUIRE(b->whole_o == want.front().whole);
      REQUIRE(b.cycle() == want.front().at);
      want.pop_front();
      ++got;
      b.progress();
    }
    b.tick();
  }
}
