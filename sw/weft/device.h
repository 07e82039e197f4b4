// SPDX-License-Identifier: Apache-2.0
// Driver of one node: registers, regions, connections, semaphores, subgraphs, completions. Knows the hardware
// only through weft::Hal, so the same code drives a simulated node and a board.
//
// Everything that the host must wait for arrives as a completion entry: post_*() rings a doorbell and returns
// at once, poll() hands out what has arrived. One thread at a time per Device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sw/weft/hal.h"
#include "sw/weft/result.h"
#include "weft_wire.h"

namespace weft {

// High half of CPU_STATUS once the firmware runs: 'W' and its version (sw/firmware/cpu_m.c).
inline constexpr std::uint32_t kFirmwareRuns = 0x5701;

struct Caps {
  unsigned num_ports = 0;
  unsigned paths_per_port = 0;
  unsigned num_conns = 0;
  unsigned num_regions = 0;
  unsigned num_sems = 0;
  unsigned num_subgraphs = 0;
  unsigned exact_sums = 0;  // of the reducer: 0 none, 1 of float16 and 8-bit floats, 2 of bfloat16 too
};

struct PortAddress {
  std::uint64_t mac = 0;  // 48 bits, first byte on the wire = most significant
  std::uint32_t ip = 0;   // first byte on the wire = most significant
};

// Times in microseconds of the node's clock.
struct TransportConfig {
  double clock_mhz = 322.265625;
  double line_gbps = 100;     // of one port
  unsigned mtu = 4096;        // payload bytes of a full packet: 256, 512, 1024, 2048 or 4096
  unsigned retry_limit = 24;  // unanswered probes of one path that fail its connection
  double probe_min_us = 2;    // shortest wait between probes
  double rtt_init_us = 20;    // assumed before the first sample
  double ack_hold_us = 2;     // an ack that nothing hurries may wait so long to coalesce
};

struct Rights {
  bool remote_write = false;
  bool local_read = false;
  bool local_write = false;
  bool operator==(const Rights&) const = default;
};

struct Region {
  unsigned index = 0;
  std::uint32_t key = 0;   // tell it to the peers that may write
  std::uint64_t base = 0;  // byte address
  std::uint64_t size = 0;  // bytes
  Rights rights;
};

// What one end of a connection tells the other, out of band.
struct ConnectionEnd {
  std::uint16_t conn = 0;         // its connection number
  std::uint16_t incarnation = 0;  // must be the same at both ends
  std::vector<PortAddress> ports;
  std::vector<std::uint32_t> psn;  // per port: first PSN it sends on every path, 24 bits
};

struct ConnectionConfig {
  unsigned paths_per_port = 0;        // 0: all the node has; a communicator: by the number of its peers
  std::uint16_t sport = 0xc000;       // UDP source port of path 0
  double share = 1.0;                 // of a port's line rate
  double init_cap_bytes = 64 * 1024;  // in flight on a port before its first ack
};

// What becomes of a node that does not come to rest by itself, as when the program that had it died while a
// plan waited for a peer.
enum class IfBusy {
  kRefuse,  // an error, and the node is left as it is
  kReset,   // it is reset in the middle of what it does; no completion of that is written any more
};

class Device {
 public:
  // Checks that the node is one this software knows, and resets it: everything set up before is forgotten.
  // By the end of it nothing of before is under way to or from memory.
  static Result<Device> open(Hal& hal, IfBusy busy = IfBusy::kRefuse);

  const Caps& caps() const { return caps_; }
  // The node's clock, in cycles, when it was opened: another one for each life of a node.
  std::uint64_t opened_at() const { return opened_at_; }
  Hal& hal() { return *hal_; }

  // Loads the image (bytes of little-endian 32-bit words) and starts CPU-M; waits until its firmware reports
  // that it runs. A CPU that traps, stays silent, or reports anything else is an error.
  Status load_firmware(std::span<const std::uint8_t> image);
  void set_port(unsigned port, const PortAddress& address);
  Status set_transport(const TransportConfig& config);
  const TransportConfig& transport() const { return transport_; }

  // Completion ring of `entries` (power of two) at `addr`, 64-byte aligned, 64 bytes each.
  Status set_completion_ring(std::uint64_t addr, unsigned entries);
  bool has_completion_ring() const { return ring_entries_ != 0; }

  Result<Region> add_region(std::uint64_t base, std::uint64_t size, const Rights& rights);
  void remove_region(const Region& region);

  void set_semaphore(unsigned index, std::uint32_t value);

  // Sets connection `local.conn` up towards `remote`. Both ends must be set up before either sends.
  Status connect(const ConnectionEnd& local, const ConnectionEnd& remote, const ConnectionConfig& config);

  // Doorbells; each makes one completion with the cookie.
  Status post_register(unsigned subgraph, std::uint64_t entries_addr, std::uint32_t count,
                       std::uint64_t cookie);
  // `group`: 1 to wire::kOrderGroups: it runs when every earlier launch of the group has ended; 0: at once.
  Status post_launch(unsigned subgraph, std::uint64_t cookie, unsigned group = 0);
  Status post_unregister(unsigned subgraph, std::uint64_t cookie);
  Status post_abort(unsigned subgraph, std::uint64_t cookie);

  // The next completion, if one has arrived.
  bool poll(wire::Cqe* out);

  // 64-bit counters, index as in weft_counters.h: the node's, then those of each port.
  std::uint64_t counter(unsigned index);

 private:
  explicit Device(Hal& hal) : hal_(&hal) {}
  void configure(unsigned table, unsigned index, const std::array<std::uint32_t, 16>& words);
  Status ring(wire::Doorbell d);

  Hal* hal_;
  Caps caps_;
  TransportConfig transport_;
  std::vector<bool> region_used_;
  std::uint32_t key_salt_ = 0;
  std::uint64_t opened_at_ = 0;
  std::uint64_t ring_addr_ = 0;
  unsigned ring_entries_ = 0;
  std::uint32_t next_seq_ = 1;
  unsigned outstanding_ = 0;  // doorbells whose completion has not been read
};

}  // namespace weft
