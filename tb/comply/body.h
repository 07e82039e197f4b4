// SPDX-License-Identifier: Apache-2.0
// What a compliance script runs against: one end of one connection. The tester is the other end; it sees
// frames and time, and asks the body for what an application would ask of it. Bodies: the reference endpoint,
// a Verilated node, and whatever answers at a UDP socket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sw/ref/endpoint.h"
#include "sw/wire/frame.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::comply {

using tb::kMs, tb::kNs, tb::kUs;
using tb::Ps;

/// What a body can do beyond the capabilities of the protocol (which have the names of enum cap).
enum Ability : std::uint32_t {
  kFrames = 1,       // takes whole frames, wrong Ethernet, IP and UDP headers too
  kControl = 2,      // posts requests, makes regions, shows memory
  kCounters = 4,     // tells what it dropped and why
  kState = 8,        // tells the state of a path
  kStartPsn = 16,    // starts at a PSN of the script's choice
  kSetup = 32,       // answers set-up records
  kMac = 64,         // takes the MAC's word that a frame is bad
  kJointAcks = 128,  // acks several paths in one frame where BLOCKS lets it
};

/// The numbers of a set-up that concern the body; what a body has no use for it ignores.
struct BodySetup {
  std::uint32_t ports = 1;
  std::uint32_t paths = 1;  // of each port
  std::uint32_t streams = 1;
  std::uint32_t mtu = 1024;
  std::uint32_t distance = 0;
  std::optional<std::uint32_t> psn;   // first PSN of what the body sends
  std::optional<std::uint32_t> caps;  // nothing: all it has
  Ps rtt_init = 4 * kUs;              // round trip assumed before the first sample
  Ps probe_min = 2 * kUs;             // shortest wait between probes
  Ps give_up = 10'000 * kMs;          // silence that fails the connection
  Ps packet_life = 1 * kMs;           // longest time a packet is in the network
  std::uint32_t retries = 24;         // unanswered probes of a path that fail a body without failover
};

struct Address {
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
};

/// A request by the script's numbers. `wait`: completes when a semaphore has reached `value`.
struct Post {
  std::uint16_t stream = 0;
  bool wait = false;
  ref::WorkRequest request;
};

struct Completion {
  ref::Completed what = ref::Completed::kRequest;
  std::uint64_t id = 0;
  wire::Err status = wire::Err::OK;
  std::uint32_t bytes = 0;
  std::uint16_t stream = 0;
  std::optional<std::uint32_t> imm;
};

struct Event {
  Ps time = 0;
  bool is_frame = true;
  std::uint32_t port = 0;
  wire::Frame frame;
  Completion completion;
};

/// Where the two ends are in every exchange: the addresses of nodes 0 (body) and 1 (tester) of a cluster.
inline constexpr std::uint32_t kBodyNode = 0, kTesterNode = 1;

class Body {
 public:
  virtual ~Body() = default;

  virtual std::uint32_t caps() const = 0;       // bit n is capability n of enum cap
  virtual std::uint32_t abilities() const = 0;  // of enum Ability
  /// Paths between the first of a port and the first of the next, in path numbers. After open().
  virtual std::uint32_t stride(const BodySetup& s) const { return s.paths; }

  /// Starts afresh and sets the connection up with `offer`; the body's own record, perhaps a refusal. An
  /// error is a body that cannot be used.
  virtual Result<wire::Hello> open(const BodySetup& setup, const wire::Hello& offer) = 0;

  virtual Ps now() const = 0;
  /// The frame reaches the port now.
  virtual void send(std::uint32_t port, wire::Bytes frame, bool mac_error) = 0;
  /// Lets time pass to `until`, or to the first event; adds what happened.
  virtual Status run(Ps until, std::vector<Event>& out) = 0;

  // kControl.
  virtual Result<Address> region(std::uint64_t bytes, std::uint8_t rights) = 0;
  virtual Status write(std::uint64_t va, const std::vector<std::uint8_t>& bytes) = 0;
  virtual Result<std::vector<std::uint8_t>> read(std::uint64_t va, std::size_t count) = 0;
  /// Called for every request of the script before its first step, for bodies that need time for it.
  virtual Status prepare(const Post& post) {
    (void)post;
    return {};
  }
  virtual Result<wire::Err> post(const Post& post) = 0;
  virtual Result<wire::Err> post_recv(std::uint16_t stream, std::uint64_t id, Address at,
                                      std::uint32_t bytes) = 0;
  virtual Status close() = 0;
  virtual Status change_sport(std::uint32_t path) = 0;

  // kCounters, kState.
  virtual Result<std::vector<std::uint64_t>> drops() = 0;  // index = wire::Drop
  virtual Result<std::string> path_state(std::uint32_t path) = 0;
};

}  // namespace weft::comply
