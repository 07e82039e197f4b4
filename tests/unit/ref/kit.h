// SPDX-License-Identifier: Apache-2.0
// What the tests of the reference endpoint share: small configurations, requests, and a watch that knows
// what has to be in memory when a WRITE completes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "tests/unit/ref/net.h"

namespace weft::ref::test {

/// Two planes with one path each: path 0 is port 0, path 1 is port 1.
inline Config two_paths() {
  Config c;
  c.ports = 2;
  c.paths = 1;
  c.streams = 2;
  c.mtu = 256;
  c.rtt_init = 5 * kUs;
  return c;
}

inline Config one_path() {
  Config c = two_paths();
  c.ports = 1;
  return c;
}

/// Two planes with four paths each: 0 to 3 are port 0, 4 to 7 port 1.
inline Config eight_paths() {
  Config c = two_paths();
  c.paths = 4;
  c.mtu = 1024;
  return c;
}

/// What leaves in [from, to) is lost, at every port or at one of them, of both nodes.
inline auto outage(Ps from, Ps to, std::optional<unsigned> port = std::nullopt) {
  return [=](const Sent& s) {
    Fate f;
    f.lost = s.now >= from && s.now < to && s.port == port.value_or(s.port);
    return f;
  };
}

inline WorkRequest work_of(WrOp op, std::uint64_t id, std::uint64_t local, std::uint64_t remote,
                           std::uint32_t length) {
  WorkRequest w;
  w.op = op;
  w.id = id;
  w.local_va = Host::kBase + local;
  w.local_rkey = Net::kKey;
  w.remote_va = Host::kBase + remote;
  w.rkey = Net::kKey;
  w.length = length;
  return w;
}

/// The 8 bytes at `at` of a host's memory.
inline std::uint64_t word(const Host& host, std::uint64_t at) {
  std::uint64_t v = 0;
  std::memcpy(&v, &host.memory[at], 8);
  return v;
}

inline WorkRequest write_of(std::uint64_t id, std::uint64_t from, std::uint64_t to, std::uint32_t length) {
  return work_of(WrOp::kWrite, id, from, to, length);
}

/// WRITEs from node 0 to node 1, number i to the i-th slot. Each completion with OK is held against the
/// target's memory at that moment: `early` counts those that were told before all bytes were there.
class Writes {
 public:
  Writes(Net& net, std::uint32_t conn, std::uint32_t bytes)
      : net_(net), conn_(conn), bytes_(bytes), slot_((bytes + 63) & ~63u) {
    weft::test::Rng rng;
    rng.fill(net.host(0).memory);
    net.host(0).on_done = [this](const Completion& c) {
      if (c.what != Completed::kRequest || c.status != wire::Err::OK) return;
      ++good;
      if (c.id != next_) ordered = false;
      next_ = c.id + 1;
      if (!there(c.id)) ++early;
    };
  }
  void post(unsigned count = 1, std::uint16_t stream = 0) {
    for (unsigned i = 0; i < count; ++i, ++posted) {
      const std::uint64_t at = std::uint64_t{posted} * slot_;
      REQUIRE(net_.end(0).post(conn_, stream, write_of(posted, at, at, bytes_), net_.now()) == wire::Err::OK);
    }
  }
  bool there(std::uint64_t id) const {
    const auto at = static_cast<std::ptrdiff_t>(id * slot_);
    const auto& from = net_.host(0).memory;
    return std::equal(from.begin() + at, from.begin() + at + bytes_, net_.host(1).memory.begin() + at);
  }
  bool done() const { return good == posted; }
  /// All of it completed, in order, with its bytes in place, each written once.
  void check() const {
    INFO(net_.end(0).state(conn_));
    CHECK(good == posted);
    CHECK(early == 0);
    CHECK(ordered);
    CHECK(net_.host(1).twice == 0);
  }
  unsigned posted = 0, good = 0, early = 0;
  bool ordered = true;

 private:
  Net& net_;
  std::uint32_t conn_, bytes_, slot_;
  std::uint64_t next_ = 0;
};

inline std::uint64_t drops(Net& net, unsigned node, wire::Drop why) {
  return net.end(node).counters().drop[static_cast<unsigned>(why)];
}

}  // namespace weft::ref::test
