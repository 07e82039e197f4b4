// SPDX-License-Identifier: Apache-2.0
//
// Frames for weft_rx_path: what a peer, a bad switch and an attacker might send. It follows the model
// loosely so that enough of it is accepted, and never tells anybody what the verdict should be.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "frame.h"
#include "rx_model.h"
#include "weft_test.h"

namespace rx {

inline constexpr std::uint64_t kMac = 0x02005e10a1b2, kMemoryBase = 0x00007f3a12340000;
inline constexpr std::uint32_t kIp = 0x0a010203;
inline constexpr std::size_t kMemoryBytes = 1 << 18;

/// Regions of every test: two large ones with odd edges, a small one, one that a peer may not write, one
/// that is not valid, one that ends at the top of the address space.
std::vector<Region> test_regions();
inline constexpr unsigned kGoodRegions = 3, kReadOnlyRegion = 3, kInvalidRegion = 4, kTopRegion = 5;

struct Sent {
  wire::Frame frame;
  bool mac_error = false;
};

struct Mix {  // weights
  unsigned data = 60, probe = 8, ack = 10, repeat = 4, malformed = 12, garbage = 2, forbidden = 2;
  double gap = 0.05;  // PSNs passed over
  double ce = 0.1;
  unsigned max_len = 4096;
  unsigned conns = 3;  // used by good traffic: 0..conns-1; others are for what fails a connection
};

class Traffic {
 public:
  Traffic(const Model& model, Mix mix, std::uint64_t stream);

  Sent next();

  /// A data packet / probe / ack that is in order on its path, with everything as in the tables.
  wire::Frame data(unsigned conn, unsigned path, std::uint64_t va, std::size_t len, std::uint32_t rkey,
                   bool more = false);
  wire::Frame random_data(unsigned conn);
  wire::Frame probe(unsigned conn, unsigned path);
  wire::Frame ack(unsigned conn, unsigned path, unsigned words);

  /// Connections as configured; set by the bench.
  std::array<Conn, kNumConns> conns{};

  weft::test::Rng rng;

  /// PSNs follow what the receiver has claimed when refused frames have left them behind. Off: they
  /// count on, whatever becomes of the frames.
  bool follow = false;

 private:
  std::uint32_t take_psn(unsigned conn, unsigned path);
  wire::Route route();
  wire::Wth wth(unsigned conn, unsigned path);
  std::size_t random_len();
  wire::Frame malformed();
  wire::Frame forbidden();
  wire::Frame garbage();

  const Model& model_;
  Mix mix_;
  std::array<std::array<std::uint32_t, kPathsPerPort>, kNumConns> psn_{};
  std::array<std::array<bool, kPathsPerPort>, kNumConns> started_{};
  std::deque<wire::Frame> recent_;
  unsigned victim_ = kNumConns - 1;  // next connection to be failed
};

}  // namespace rx
