// SPDX-License-Identifier: Apache-2.0
// The reference endpoint: all of the Weft protocol (docs/protocol.md) without I/O. No thread, no clock, no
// socket: packets, time and requests come in by calls, packets and completions go out by calls.
//
//     post()  post_recv()                         Env::completed()
//        |        |                                    ^
//     +--v--------v------------------------------------+--+
//     | streams: messages in order, credits               |    Env::read(), write(), signal(): memory
//     | connections: resend list, cap, share, pacer       |
//     | paths: PSN, window, history, epoch, probes        |
//     +--^--------------------------------------------+---+
//        |                                            |
//     on_packet(now, port, packet)            next_packet(now, port, out)
//
// The caller keeps time: after every call it asks ready_ports() which ports have something to say, and
// next_timer() when on_timer() is wanted. One endpoint is used by one thread at a time. Nothing is allocated
// per packet once tables have grown to what the run needs.
//
// Time is picoseconds in 64 bits from a zero of the caller's choice and ends 106 days later: who runs on a
// real clock takes the start of the program for zero, and restarts the endpoint before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sw/ref/config.h"
#include "sw/ref/packet.h"

namespace weft::ref {

enum class WrOp : std::uint8_t {
  kSend,
  kSendImm,
  kWrite,
  kWriteImm,
  kWriteSignal,
  kRead,
  kFetchAdd,
  kCompareSwap
};

/// A work request. Lengths in bytes, 0 is legal; atomics work on 8 bytes, remote_va a multiple of 8.
struct WorkRequest {
  WrOp op = WrOp::kWrite;
  std::uint64_t id = 0;          // comes back in the completion
  std::uint64_t local_va = 0;    // source; READ and atomics: where the answer goes
  std::uint32_t local_rkey = 0;  // READ and atomics: key of the region of local_va
  std::uint32_t length = 0;
  std::uint64_t remote_va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t value = 0;    // immediate, or amount of the signal
  std::uint16_t sem = 0;      // semaphore of the signal
  std::uint64_t operand = 0;  // amount added, or value to be stored
  std::uint64_t compare = 0;
};

enum class Completed : std::uint8_t { kRequest, kRecv, kConnection };

/// Each request and each posted receive completes exactly once, those of a stream in order. After an error
/// the later ones of the stream complete with FLUSHED. kConnection: the connection itself has failed, told
/// once, after its requests.
struct Completion {
  Completed what = Completed::kRequest;
  wire::Err status = wire::Err::OK;
  std::uint32_t conn = 0;
  std::uint16_t stream = 0;
  bool has_imm = false;
  std::uint32_t imm = 0;
  std::uint32_t bytes = 0;  // received
  std::uint64_t id = 0;
};

/// The endpoint's surroundings. Calls come from inside the endpoint's methods and must not call it back,
/// except post() and post_recv() out of completed().
class Env {
 public:
  virtual ~Env() = default;
  /// DMA. False: memory answered with an error. `bytes` is null when Config::payload is false.
  virtual bool read(std::uint64_t va, std::uint8_t* bytes, std::uint32_t count) = 0;
  virtual bool write(std::uint64_t va, const std::uint8_t* bytes, std::uint32_t count) = 0;
  /// Adds to a semaphore. False: there is no such one.
  virtual bool signal(std::uint16_t sem, std::uint32_t amount) {
    (void)sem;
    (void)amount;
    return false;
  }
  virtual void completed(const Completion& c) = 0;
};

enum Rights : std::uint8_t { kRemoteRead = 1, kRemoteWrite = 2, kRemoteAtomic = 4 };

/// Where a peer is: a number the caller routes by, copied into every packet.
struct Peer {
  std::uint16_t id = 0;
};

enum class PathState : std::uint8_t { kGood, kSuspect, kFencing, kFailed, kProbation };

/// Counters, since the start. What they mean is in wire.yaml (drops) or in the names.
struct Counters {
  std::uint64_t data_sent, data_bytes, resent, acks_sent, acks_doubled, probes_sent, fences_sent,
      answers_sent;
  std::uint64_t data_taken, probes_taken, acks_taken, delivered, lost, marked_bytes;
  std::uint64_t stale_data;  // data of drop[STALE]: settled as lost, or taken, before it came
  std::uint64_t tail_probes, timer_probes, scouts, path_failed, path_back, conn_failed, stream_failed;
  std::uint64_t drop[32];                         // by wire::Drop
  std::uint64_t refused_share, refused_counters;  // lies of a peer that were contained
};

class Endpoint {
 public:
  /// The configuration must be possible().
  Endpoint(const Config& config, Env& env);
  ~Endpoint();
  Endpoint(Endpoint&&) noexcept;

  /// Whether an endpoint can be what `config` says: what it would divide by, count or wait for. That a line
  /// sends fewer than 2^23 frames in the life of a packet is part of it (W11). The ranges in docs/protocol.md
  /// are narrower: outside of them it works, but not well.
  static bool possible(const Config& config);

  // Regions. A key is never 0. Replaces a region of the same key.
  void add_region(std::uint32_t rkey, std::uint64_t va, std::uint64_t bytes, std::uint8_t rights);
  void remove_region(std::uint32_t rkey);

  // Connections: A offers, B accepts or refuses, A connects with B's answer. `refusal` says why not; the
  // connection then does not exist. Numbers are small and dense. Each record is given once: an offer accepted
  // twice opens two connections. When an answer does not come, A closes what it offered and offers anew.
  wire::Hello offer();                                                // reserves a connection
  wire::Hello accept(const wire::Hello& offered, Peer peer, Ps now);  // the answer, perhaps a refusal
  wire::Refusal connect(const wire::Hello& mine, const wire::Hello& answer, Peer peer, Ps now);
  /// Forgets the connection: every request and receive still posted completes with FLUSHED. Its number is
  /// used again with a larger incarnation only.
  void close(std::uint32_t conn, Ps now);

  // Work. OK, BAD_CONN, BAD_OPCODE (not a capability of the connection), BAD_LENGTH, BAD_ALIGN; after a
  // failure FLUSHED at once (and no completion).
  wire::Err post(std::uint32_t conn, std::uint16_t stream, const WorkRequest& request, Ps now);
  wire::Err post_recv(std::uint32_t conn, std::uint16_t stream, std::uint64_t id, std::uint64_t va,
                      std::uint32_t bytes, Ps now);

  // The wire.
  void on_packet(Ps now, std::uint32_t port, const Packet& packet);
  /// A packet that was dropped before it was a packet (parse refused it).
  void on_drop(wire::Drop reason);
  /// The next packet of a port that is free, or false. Its payload is valid until the next call.
  bool next_packet(Ps now, std::uint32_t port, Packet& out);
  /// Ports that may have something to send since next_packet last answered false; bit n is port n.
  std::uint32_t ready_ports() const;

  Ps next_timer() const;
  void on_timer(Ps now);

  /// Moves a path to another UDP source port (a new epoch, fenced). False: there is no such path, or no
  /// FENCE; or its epoch is not confirmed yet, or changed too often (W4): it may be asked again later.
  bool change_sport(std::uint32_t conn, std::uint32_t path, Ps now);

  // To look at.
  const Counters& counters() const;
  const Config& config() const;
  bool idle() const;           // nothing unsettled but probes of failed paths, nothing to send
  std::size_t in_use() const;  // packets and messages remembered, of all connections; idle and told: 0
  PathState path_state(std::uint32_t conn, std::uint32_t path) const;
  std::uint16_t path_sport(std::uint32_t conn, std::uint32_t path) const;
  double share_of_line(std::uint32_t conn, std::uint32_t port) const;  // as granted to this end
  std::size_t bytes_per_connection() const;     // of state, messages in flight not included
  std::string state(std::uint32_t conn) const;  // a few lines for people

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::ref
