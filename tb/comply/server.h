// SPDX-License-Identifier: Apache-2.0
// The peer of `weft comply --serve`: the reference endpoint behind datagrams, one connection at a time. It
// neither owns a socket nor looks at a clock, so that a test may hand it anything. It belongs to whoever
// began (weft-comply, begin, or a set-up record); of others it takes neither packets nor lines.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tb/comply/datagram.h"
#include "tb/comply/ref_body.h"

namespace weft::comply {

class Server {
 public:
  using Send = std::function<void(const sockaddr_in& to, const void* bytes, std::size_t count, int tos)>;
  explicit Server(Send send);

  void came(const Datagram& d, Ps now);
  /// What is due: timers, packets, completions.
  void advance(Ps now);
  Ps next_timer() const { return endpoint_->next_timer(); }

 private:
  struct Refused {
    std::string why;  // "key=value least=N most=N"
  };

  void begin(const BodySetup& s);
  void packet(const Datagram& d);
  std::string obey(const Line& l);
  std::string obey_begin(const Line& l);
  std::string obey_post(const Line& l);
  static std::uint64_t number(const Line& l, const char* key, std::uint64_t most, std::uint64_t least = 0);
  std::uint32_t path(const Line& l) const;
  std::uint16_t stream(const Line& l) const;
  void say(const sockaddr_in& to, const std::string& text) const;
  void transmit();

  Send send_;
  Ps now_ = 0;
  sockaddr_in tester_{};  // port 0: nobody began yet
  BodySetup setup_;
  std::unique_ptr<RefHost> host_;
  std::unique_ptr<ref::Endpoint> endpoint_;
  std::uint32_t conn_ = 0;
  bool connected_ = false;
};

}  // namespace weft::comply
