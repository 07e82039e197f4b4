// SPDX-License-Identifier: Apache-2.0
//
// Oracle of weft_rx_path: what each frame's verdict must be, what memory must hold, which path states
// an ack may report and from when on. Plain sequential C++; headers are judged by wire::parse(). Checks
// throw CheckFailed, so a test can also demand that a wrong receiver is found out.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "frame.h"

namespace rx {

namespace wire = weft::wire;

struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr unsigned kPort = 1, kPathsPerPort = 8, kNumConns = 64, kNumRegions = 64, kNumSems = 256;
inline constexpr std::uint32_t kPsnMask = 0xffffff;

struct Region {
  bool valid{};
  std::uint32_t key{};
  bool remote_write{};
  std::uint64_t base{}, limit{};
};

struct Conn {
  bool valid{};
  std::uint16_t incarnation{};
  std::uint32_t rx_psn{};
  std::uint16_t share{};
};

using Hist = std::bitset<wire::kHistBits>;  // bit i = PSN base-1-i

struct Ack {
  std::uint16_t conn{}, incarnation{};
  std::uint8_t path{}, epoch{};
  std::uint32_t base{};
  unsigned hist_words{};
  Hist hist;
  std::uint32_t ce_bytes{}, rx_bytes{}, echo{}, share{};
  std::uint16_t credits{};
  std::uint8_t status{};
  bool operator==(const Ack&) const = default;
};

struct Commit {
  std::uint16_t conn{}, incarnation{};
  bool mem_error{};
  std::uint16_t stream{}, msg_no{};
  std::uint32_t msg_len{};
  std::uint64_t va{};  // 33 bits
  std::uint16_t len{};
  bool signal{};
  std::uint16_t sem{};
  std::uint32_t value{};
  bool operator==(const Commit&) const = default;
};

/// What the core says of a packet; OVERFLOW, which it never says, stands for "counted".
struct CoreVerdict {
  wire::Drop reason = wire::Drop::OVERFLOW;
  bool refused() const { return reason != wire::Drop::OVERFLOW; }
};

enum class Kind { Data, Probe, Ack };

struct Verdict {
  std::optional<wire::Drop> drop;
  Kind kind{};
};

class Model {
 public:
  Model(std::uint64_t mac, std::uint32_t ip, std::uint64_t memory_base, std::size_t memory_bytes);

  /// CfgConn came in cycle `at`: what was accepted before is of a life that has ended.
  void end_life(unsigned conn, std::uint64_t at) {
    ++life_[conn];
    life_at_[conn] = at;
  }
  /// From now on frames are judged by the new configuration.
  void configure(unsigned conn, const Conn& c);
  void configure(const Region& r, unsigned index) { regions_[index] = r; }
  void mtu(unsigned bytes) { mtu_ = bytes; }

  /// The verdict on the next frame. `overflow`: the receiver said it had no room; believed if nothing
  /// else is wrong with the frame. `out_of_service`: it said so (CONN); believed of a connection that
  /// is just being configured.
  Verdict judge(wire::Bytes frame, bool mac_error, bool overflow, bool out_of_service, std::uint64_t cycle);
  /// A write response reached the receiver.
  void response(bool error);
  /// The receiver tells the core of a packet; what the core says of it if it finds no fault itself.
  CoreVerdict commit(const Commit& got);
  /// The core's verdict on the oldest packet told and not answered reaches the receiver.
  void answered(CoreVerdict verdict);
  /// The core tells all ports that a connection has failed.
  void fail(unsigned conn, std::uint8_t code, std::uint64_t cycle);
  /// The receiver committed the oldest packet that waits, or dropped it.
  void committed(bool probe, std::uint64_t cycle);
  void late_drop(wire::Drop reason, std::uint64_t cycle);
  void ack_received(const Ack& got);
  void ack_built(const Ack& got, std::uint64_t offered_cycle);
  /// Everything has come to rest: nothing is missing, and what was committed has been acked.
  void at_rest(const std::vector<std::uint8_t>& memory) const;

  /// Next PSN not claimed, for a generator that wants to stay in step.
  std::uint32_t next_psn(unsigned conn, unsigned path) const { return claims_[conn][path].next; }
  unsigned life(unsigned conn) const { return life_[conn]; }
  std::uint8_t status(unsigned conn) const { return status_[conn].code; }
  std::size_t waiting() const { return pending_.size(); }
  std::uint64_t bytes_waiting() const { return bytes_waiting_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint64_t acks_checked() const { return acks_checked_; }
  const std::array<std::uint64_t, wire::kDropCount>& drops() const { return drops_; }
  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t ce_packets() const { return ce_packets_; }
  /// Payload bytes of packets that were written but dropped behind their write.
  std::uint64_t not_committed() const { return not_committed_; }

 private:
  struct Claim {
    std::uint8_t epoch{};
    std::uint32_t next{};
  };
  struct State {  // of a path, behind one more committed packet
    std::uint32_t base{};
    Hist hist;
    std::uint32_t ce_bytes{}, rx_bytes{}, echo{};
  };
  struct Path {
    std::vector<State> states;  // [0] at the start
    std::size_t acked = 0;      // index of the latest state an ack showed
    bool ack_wanted = false;    // a stale probe or a failure asks for one
  };
  struct Pending {
    unsigned conn{}, path{};
    std::uint16_t incarnation{};
    unsigned life{};
    std::uint32_t psn{}, timestamp{};
    bool ce{}, probe{};
    unsigned responses{};  // still to come
    Commit commit;
    bool told = false;  // to the core
    std::optional<CoreVerdict> verdict;
  };
  struct Status {
    std::uint8_t code = 0;
    std::uint64_t since = 0;
  };

  std::optional<wire::Drop> content(const wire::Parsed& f, unsigned conn, std::uint8_t& status) const;
  Pending& oldest();
  bool configured_lately(unsigned conn, std::uint64_t cycle, std::uint64_t cycles) const {
    return life_[conn] != 0 && cycle < life_at_[conn] + cycles;
  }

  wire::RxPort port_;
  std::array<wire::RxConn, kNumConns> rx_conns_{};
  std::array<Conn, kNumConns> conns_{};
  std::array<Region, kNumRegions> regions_{};
  unsigned mtu_ = 4096;
  std::array<std::array<Claim, kPathsPerPort>, kNumConns> claims_{};
  std::array<std::array<Path, kPathsPerPort>, kNumConns> paths_{};
  std::array<Status, kNumConns> status_{};
  std::array<unsigned, kNumConns> life_{}, judged_{};  // times configured, as packets and frames see it
  std::array<std::uint64_t, kNumConns> life_at_{};     // cycle of the last time
  std::deque<Pending> pending_;
  std::deque<Ack> acks_;
  std::uint64_t memory_base_;
  std::vector<std::uint8_t> memory_;
  std::uint64_t bytes_waiting_ = 0, payload_bytes_ = 0, acks_checked_ = 0, accepted_ = 0, ce_packets_ = 0,
                not_committed_ = 0;
  std::array<std::uint64_t, wire::kDropCount> drops_{};
};

/// The bytes memory starts with: no two neighbours alike, so a byte written where none belongs shows.
std::vector<std::uint8_t> blank_memory(std::size_t bytes);

}  // namespace rx
