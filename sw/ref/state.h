// SPDX-License-Identifier: Apache-2.0
// What the endpoint remembers. Sizes matter: path state is there for every path of every connection
// (112 bytes, both directions; a test holds them there), the rest for what is in flight.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sw/ref/cover.h"
#include "sw/ref/endpoint.h"

namespace weft::ref {

inline constexpr std::uint32_t kNil = ~std::uint32_t{0};
inline constexpr std::uint32_t kPsnMask = 0xffffff;
inline constexpr double kLossGain = 1.0 / 256;  // of a port's EWMA, for each packet settled

/// a - b of 24-bit PSNs, in [-2^23, 2^23).
constexpr std::int32_t psn_diff(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}
/// a - b of 32-bit clocks.
constexpr std::int32_t clock_diff(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}

/// No wait for an answer, in ns, is longer: the clocks of paths are 32 bits of nanoseconds.
inline constexpr std::uint32_t kMaxWaitNs = 1'000'000'000;

/// An error that a peer names. What is not for a peer to tell is an operation that it does not know: FLUSHED
/// or RETRY_LIMIT out of its mouth would be a lie about this end.
constexpr wire::Err peers_error(std::uint32_t code) {
  using wire::Err;
  for (const Err e : {Err::OK, Err::BAD_LENGTH, Err::REMOTE_KEY, Err::REMOTE_BOUNDS, Err::REMOTE_RIGHTS,
                      Err::REMOTE_MEM, Err::RECV_LENGTH})
    if (code == static_cast<std::uint32_t>(e)) return e;
  return Err::REMOTE_OP;
}

/// Bytes in flight on such a path do not count in its port's cap: they may stay there for long (W-CC-001).
constexpr bool apart(PathState s) {
  return s == PathState::kSuspect || s == PathState::kFencing || s == PathState::kFailed;
}

/// Sending side of a path. Window and bytes in flight are in arrays of their own (Conn::cwnd, inflight): the
/// choice of a path scans them.
struct TxPath {
  std::uint32_t next : 24;  // PSN of the next packet
  std::uint32_t epoch : 8;
  std::uint32_t base : 24;       // everything below is settled
  std::uint32_t state : 3;       // PathState
  std::uint32_t confirmed : 1;   // the epoch has been acked
  std::uint32_t slow_start : 1;  // nothing marked yet
  std::uint32_t last_probe : 1;  // the packet before `next` is a probe
  std::uint32_t probe_out : 1;   // a probe waits for its answer; while fencing: a fence
  std::uint32_t probe_due : 1;   // a probe waits to be sent
  std::uint32_t head, tail;      // descriptors of unsettled data packets, in order of PSN
  std::uint32_t ce_seen : 24;    // receiver's counter in the last ack
  std::uint32_t wary : 8;        // data packets to be delivered before a tail probe follows at once again
  std::uint32_t deadline;        // ns: when the path's silence ends
  std::uint32_t armed;           // ns: when the timer looks at it
  std::uint32_t probe_ts;        // ns: when the last probe left; while fencing: the first fence
  std::uint32_t judged_ts;       // ns: when the oldest one left that nothing has contradicted
  std::uint16_t sport;
  std::uint16_t growth;  // bytes toward the next packet of window, in units of 64
  std::uint16_t fences;  // sent for the running epoch: whose turn it is to carry the next
  std::uint8_t in_timer : 1;
  std::uint8_t move : 1;        // fenced to change its source port, not because it failed
  std::uint8_t proven : 1;      // data of the epoch was delivered
  std::uint8_t unanswered : 5;  // probes, with evidence
  std::uint8_t timeouts;        // without evidence, in a row; fences and probes of a failed path
  std::uint8_t lost_row;        // data packets lost since one was delivered
  std::uint8_t setbacks;        // returns to probation since it was good
  std::uint8_t changes;         // of epoch, in the running packet life (W4)

  std::uint32_t unsettled() const { return (next - base) & kPsnMask; }
};

/// Receiving side of a path. Bit 0 of the history is PSN next-1.
struct RxPath {
  std::array<std::uint64_t, 4> hist;
  std::uint32_t next : 24;  // highest PSN seen + 1
  std::uint32_t epoch : 8;
  std::uint32_t ce_bytes, rx_bytes;
  std::uint32_t echo;
  std::uint16_t hold : 9;  // PSNs in [base, next), 256 at most: a hole is open at base (reorder distance > 0)
  std::uint16_t closed : 1;  // by a fence: the state is the answer to it
  std::uint16_t due : 1;     // an ack waits to be sent
  std::uint16_t gap : 1;     // and reports a loss for the first time
  std::uint16_t hole_timer : 1;
  std::uint16_t stream;     // of the last data packet: whose credits the ack carries
  std::uint32_t answering;  // ports at which an answer to a fence waits to leave

  std::uint32_t base() const { return (next - hold) & kPsnMask; }
};

/// A data packet that was sent or has to be sent again.
struct Desc {
  std::uint32_t next;
  std::uint32_t msg;
  std::uint32_t offset;
  std::uint16_t bytes : 15;
  std::uint16_t retx : 1;
  std::uint8_t psn;      // low bits
  std::uint8_t lost_on;  // retx: path that lost it last
};

/// A message to be sent, until it has completed and no descriptor names it.
struct TxMsg {
  std::uint32_t next;      // in its stream
  std::uint32_t length;    // bytes of data it sends
  std::uint32_t sent;      // bytes given to paths
  std::uint32_t left;      // packets not delivered
  std::uint32_t refs;      // descriptors
  std::uint32_t packets;   // not given to paths yet
  std::uint32_t answered;  // READ, atomics: bytes of the answer that came
  std::uint32_t answer;    // READ, atomics: bytes of the answer
  std::uint32_t conn;
  std::uint32_t rkey;
  std::uint32_t value;
  std::uint32_t local_rkey;
  std::uint64_t local_va, remote_va, id;
  Cover cover;            // READ: what of the answer came
  std::uint64_t operand;  // of an atomic; the old value in its reply
  std::uint64_t compare;
  std::uint32_t send_no;  // SEND, WRITE_IMM
  std::uint16_t stream;   // as on the wire
  std::uint16_t queue;    // the stream it is queued in: `stream`, or the one of replies
  std::uint16_t msg_no;
  std::uint16_t sem;
  wire::Opcode op;
  wire::Err status;
  bool answers;     // it has an answer: READ, atomics
  bool waits;       // for the rest of it
  bool completed;   // told, or nobody to tell
  bool internal;    // a reply, an error, credits: no completion
  bool unreadable;  // its memory failed, and the connection with it
};

/// A message that has begun to arrive.
struct RxMsg {
  std::uint32_t next;
  std::uint32_t length, got;
  Cover cover;
  std::uint32_t value;
  std::uint32_t rkey;
  std::uint64_t va;
  std::uint64_t reply_va, operand, compare;
  std::uint32_t reply_rkey;
  std::uint16_t msg_no, sem;
  wire::Opcode op;
  bool whole;
};

struct Recv {
  std::uint64_t id, va;
  std::uint32_t bytes;
};

/// Receives posted on a stream, numbered from 0 (modulo 2^32); a ring that grows.
class RecvRing {
 public:
  std::uint32_t posted() const { return first_ + count_; }
  std::uint32_t first() const { return first_; }
  bool holds(std::uint32_t number) const { return number - first_ < count_; }
  const Recv& at(std::uint32_t number) const { return ring_[number & (ring_.size() - 1)]; }
  void push(const Recv& r) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_) & (ring_.size() - 1)] = r;
    ++count_;
  }
  Recv pop() {
    const Recv r = at(first_);
    ++first_;
    --count_;
    return r;
  }
  bool empty() const { return count_ == 0; }

 private:
  void grow() {
    std::vector<Recv> larger(ring_.empty() ? 8 : 2 * ring_.size());
    for (std::uint32_t i = 0; i < count_; ++i) larger[(first_ + i) & (larger.size() - 1)] = at(first_ + i);
    ring_.swap(larger);
  }
  std::vector<Recv> ring_;
  std::uint32_t first_ = 0, count_ = 0;
};

struct Stream {
  // Sending.
  std::uint32_t oldest = kNil, newest = kNil;  // messages not completed
  std::uint32_t cursor = kNil;                 // first with packets to send
  std::uint32_t send_no = 0;                   // SENDs and WRITE_IMMs posted
  std::uint32_t credit = 0;                    // and how many may be sent
  std::uint32_t next_ready = kNil;             // list of streams that may send
  Ps stuck_since = 0;                          // when the first of lost_row was settled
  std::uint16_t lost_row = 0;                  // data packets lost since one was delivered
  std::uint16_t next_msg = 0;
  bool ready = false;
  bool failed = false;  // no new request
  // Receiving.
  bool rx_failed = false;
  wire::Err rx_status = wire::Err::OK;  // of the receive that the failed message took, if it took one
  bool credit_out = false;              // a CREDIT message is on its way
  std::uint16_t rx_next = 0;            // message that completes next
  std::uint16_t rx_error = 0;           // rx_failed: this and later ones are refused
  std::uint32_t rx_open = kNil;         // messages that have begun, any order
  std::uint32_t credit_told = 0;        // the peer is known to know
  std::uint32_t replies = 0;            // with packets that have not been sent once
  RecvRing recvs;
};

/// A connection's sending side at one port.
struct TxPort {
  std::uint64_t blocked = 0;                        // paths that take no data; bit = index at the port
  std::uint64_t tails = 0;                          // paths whose last packet is unsettled data
  Ps pace_at = 0;                                   // when the pacer's account is even
  std::uint32_t cap = 0;                            // bytes
  std::uint32_t inflight = 0;                       // bytes, suspect paths left out
  std::uint32_t min_rtt = 0, srtt = 0, rttvar = 0;  // ns; 0: no sample
  std::uint32_t share = 0;                          // granted, 2^-16 byte/ns
  std::uint32_t calm_bytes = 0;                     // acked since the last mark
  bool calm = false;
  std::uint16_t active = 0;  // paths in use
  bool queued = false;       // in the port's ready heap
  bool pace_timer = false;
};

/// A connection's receiving side at one port: what the share is made of.
struct RxPort {
  std::uint32_t bytes_now = 0, bytes_last = 0;  // in the share's epoch and the one before
  std::uint32_t grant = 0;                      // last told
  std::uint32_t leave_ts = 0;                   // clock of the packet that said so
  float reserve = 0;                            // byte/ns kept for it while limited
  bool active = false, fresh = false, leaving = false, limited = false;
  bool returned = false;  // with another message, after it said that it leaves
};

/// Paths of a port whose acks are owed: they wait a little for each other and leave in one frame.
struct AckPort {
  std::array<std::uint8_t, 1 + wire::kMaxAckBlocks> owed{};
  std::uint8_t count = 0;
  std::uint8_t main = 0;  // the path that the frame reports in full: the urgent one, else the latest
  bool urgent = false;
  bool queued = false;  // about to leave
  bool timer = false;
};

enum class ConnState : std::uint8_t { kClosed, kOffered, kOpen, kFailing, kFailed };

struct Conn {
  ConnState state = ConnState::kClosed;
  std::uint16_t incarnation = 0;
  Peer peer;
  std::uint32_t peer_conn = 0;
  std::uint32_t caps = 0;
  std::uint32_t mtu = 0;
  std::uint32_t distance = 0;  // reorder distance of what arrives
  std::uint32_t resend_head = kNil, resend_tail = kNil;
  std::uint32_t ready_head = kNil, ready_tail = kNil;  // streams
  std::uint32_t open_msgs = 0;                         // not completed
  bool keep_timer = false;
  std::uint32_t unsettled = 0;  // packets, probes too
  std::uint32_t turn = 0;       // bytes since it was given its age
  std::uint32_t scout = 0;      // where the next scout looks first
  std::uint32_t left = kNil;    // head of the resends, lost at the one port, left to others
  Ps left_until = 0;            // for so long
  std::uint32_t held = 0;       // ports that did not take what was left to them
  std::uint64_t age = 0;
  Ps acked = -1;      // when the youngest packet left that is known to have arrived
  Ps heard = 0;       // of the peer, or nothing was waiting
  Ps life_start = 0;  // of the packet life that `changes` count in
  Ps flush_at = kNever;
  wire::Err told = wire::Err::OK;  // in the status of its acks, to a peer without STREAM_ERROR
  wire::Err why = wire::Err::OK;   // it failed
  bool own_memory = false;         // by a request that is marked; not a fault of the others
  std::uint32_t start_psn = 0;
  std::vector<TxPath> tx;  // ports * paths
  std::vector<std::uint32_t> cwnd, inflight;
  std::vector<std::uint32_t> fence_at;  // of each path: ports at which a fence waits; empty before the first
  std::vector<RxPath> rx;
  std::vector<TxPort> tx_port;
  std::vector<RxPort> rx_port;
  std::vector<AckPort> ack_port;
  std::vector<Stream> streams;  // the last one is that of replies

  bool has_data() const { return resend_head != kNil || ready_head != kNil; }
};

/// Whether both ends can.
inline bool has_cap(const Conn& c, wire::Cap cap) {
  return (c.caps >> static_cast<unsigned>(cap) & 1) != 0;
}

/// Objects by number with a free list.
template <class T>
class Pool {
 public:
  std::uint32_t take() {
    if (free_.empty()) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t i = free_.back();
    free_.pop_back();
    return i;
  }
  void give(std::uint32_t i) { free_.push_back(i); }
  T& operator[](std::uint32_t i) { return items_[i]; }
  std::size_t used() const { return items_.size() - free_.size(); }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
};

/// FIFO that grows.
template <class T>
class Ring {
 public:
  bool empty() const { return count_ == 0; }
  void push(const T& t) {
    if (count_ == items_.size()) {
      std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
      for (std::size_t i = 0; i < count_; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
      items_.swap(larger);
      head_ = 0;
    }
    items_[(head_ + count_) & (items_.size() - 1)] = t;
    ++count_;
  }
  T pop() {
    const T t = items_[head_];
    head_ = (head_ + 1) & (items_.size() - 1);
    --count_;
    return t;
  }

 private:
  std::vector<T> items_;
  std::size_t head_ = 0, count_ = 0;
};

}  // namespace weft::ref
