// SPDX-License-Identifier: Apache-2.0
// A judge of one RTL node that knows the protocol and nothing of the node's insides. weft_watch.sv, bound to
// every weft_node, tells it what crosses the node's borders: table writes, requests of the engine and their
// completions, signals, and each frame, both ways. It holds the node to this:
//
//   once     a signal is raised, and a message counts as received, only when packets of this life that cover
//            all of it have come in, the messages before it included; no signal twice
//   told     a message completes OK only when acks of this life have told all of it delivered
//   ended    no data of a connection leaves behind its error completion, and none of a life configured away;
//            none is sent again before acks have told it lost, since its path may yet deliver it
//   refused  no ack tells a packet delivered that fits no message: outside of the window, of another length
//            than the packets of its message before, or with a semaphore that is not there; and what is told
//            delivered is received once the node is at rest
//
// and keeps for each life what tb/check/ledger.h compares with the other end. It is generous where only the
// inside knows: a frame that the node dropped counts as come in, so what it reports is wrong for certain.
// Nothing is allocated for a packet once a path has been used.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sw/wire/frame.h"

namespace weft::tb {

// The address space that packets of a message have covered: few pieces, since messages are sent in order.
class Cover {
 public:
  void clear() { pieces_.clear(); }
  void add(uint64_t first, uint64_t bytes);
  bool whole(uint64_t bytes) const;  // one piece of so many bytes

 private:
  struct Piece {
    uint64_t first, last;  // behind the piece
  };
  std::vector<Piece> pieces_;
};

struct WatchRules {
  bool ended = true;
  bool refused = true;
};

class Watch {
 public:
  // What a life of a connection came to.
  struct Life {
    uint32_t conn = 0;
    uint32_t rip = 0;  // of the peer, behind the port written last
    uint32_t rconn = 0;
    uint16_t incarnation = 0;
    bool current = true;
    uint32_t sent_ok = 0;      // messages completed OK: the first so many of the life
    uint32_t sent_failed = 0;  // completed with an error
    uint32_t sent_open = 0;
    uint32_t received = 0;  // messages that packets cover, in order: the first so many
  };

  Watch(uint32_t ports, uint32_t conns, uint32_t paths_per_port, uint32_t sems);

  // Each returns whether all is well; fault() says what is not.
  void reset();
  void configure_port(uint32_t port, uint32_t ip);
  void configure_conn(uint32_t port, uint32_t conn, bool valid, uint32_t rip, uint32_t rconn,
                      uint16_t incarnation, uint32_t cycle);
  bool request(uint32_t conn, uint8_t tag, uint64_t raddr, uint32_t bytes);
  bool completion(uint8_t tag, uint8_t status);
  bool signal(uint16_t sem, uint32_t value, uint32_t cycle);
  bool received();
  bool beat_out(uint32_t port, const uint8_t* data, uint64_t keep, bool last);
  bool beat_in(uint32_t port, const uint8_t* data, uint64_t keep, bool last, bool mac_error);
  bool at_rest();

  const std::string& fault() const { return fault_; }
  uint32_t ip(uint32_t port) const { return ips_[port]; }
  uint32_t ports() const { return ports_; }
  std::vector<Life> lives() const;  // those ended first
  WatchRules& rules() { return rules_; }

 private:
  static constexpr uint32_t kRing = 512;    // PSNs a path may have in question, and more
  static constexpr uint32_t kWindow = 64;   // open messages at a receiver
  static constexpr uint32_t kAcked = 256;   // messages between the last told delivered whole and the newest
  static constexpr uint32_t kInside = 128;  // beats that a port may still hold of a life configured away
  static constexpr uint32_t kDecided = 64;  // cycles from the last packet of a message to its signal

  struct Packet {
    bool there = false;
    uint8_t epoch = 0;
    bool signal = false;
    uint16_t msg_no = 0, sem = 0;
    uint32_t psn = 0, bytes = 0, msg_len = 0;
    uint64_t va = 0;
  };
  struct Path {
    std::array<Packet, kRing> packets;
    uint32_t base = 0;  // below it all is told
    uint8_t epoch = 0;
    bool any = false;
  };
  struct Row {  // of a connection on a port
    bool valid = false;
    uint32_t rip = 0, rconn = 0;
    uint16_t incarnation = 0;
    uint64_t beats = 0;  // that had left the port when it was written
  };
  struct Message {  // coming in
    bool open = false, signal = false;
    uint16_t sem = 0;
    uint32_t value = 0, bytes = 0;
    Cover cover;
  };
  struct Sending {
    bool open = false, seen = false;  // a frame of it
    uint16_t msg_no = 0;
    uint32_t conn = 0, bytes = 0;
    uint64_t raddr = 0, life = 0;
    Cover delivered;
  };
  struct Conn {
    Life life;
    uint64_t number = 0;                                   // of its lives
    bool ended = false;                                    // an error completion was given
    std::vector<uint8_t> tags;                             // of its open messages, oldest first
    uint16_t posted = 0;                                   // messages of this life
    uint16_t next = 0;                                     // first message not covered by packets
    std::array<std::array<Message, 2>, kWindow> messages;  // two lengths at most: one of them lies
    uint16_t told = 0;                                     // first message not told delivered whole
    std::array<Message, kAcked> acked;
    std::vector<std::unique_ptr<Path>> in, out;  // by path
  };
  struct Signal {
    uint32_t conn = 0, value = 0, until = 0;
    uint16_t sem = 0;
    bool late = false;  // its life is over
  };
  struct Assembly {
    std::array<uint8_t, wire::kMaxFrameBytes + 64> bytes;
    uint32_t count = 0;
    bool wrong = false;  // begun when nothing of its connection may leave
  };

  bool bad(const char* format, ...) __attribute__((format(printf, 2, 3)));
  Row& row(uint32_t port, uint32_t conn) { return rows_[port * conns_ + conn]; }
  Path& path(std::vector<std::unique_ptr<Path>>& paths, uint8_t path);
  int32_t conn_of(uint32_t port, uint32_t dip, uint32_t dqpn);
  bool begins(uint32_t port, const uint8_t* beat, bool* wrong);
  bool data_out(uint32_t port, const wire::Parsed& frame);
  bool ack_out(uint32_t port, const wire::Parsed& frame);
  void data_in(uint32_t port, const wire::Parsed& frame);
  void ack_in(uint32_t port, const wire::Parsed& frame);
  void advance(Conn& conn);
  bool told(Conn& conn, const Packet& packet);
  template <class Each>
  bool settle(Path& path, const wire::Parsed& ack, const Each& each);

  uint32_t ports_, conns_, paths_per_port_, sems_;
  WatchRules rules_;
  std::vector<Row> rows_;
  std::vector<uint32_t> ips_;
  std::vector<Conn> state_;
  std::array<Sending, 256> sending_;
  std::vector<Signal> signals_;  // of messages covered, not raised
  std::vector<Assembly> out_, in_;
  std::vector<uint64_t> beats_;  // that left, by port
  std::vector<Life> ended_;
  uint64_t covered_ = 0, received_ = 0, acked_ = 0;
  std::string fault_;
};

// The watch of the model that was last settled for the first time on this thread; null if it has none.
std::unique_ptr<Watch> take_watch();

}  // namespace weft::tb
