// SPDX-License-Identifier: Apache-2.0
// The frames that a script sends: right ones, and such as are made wrong in one place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tb/comply/numbers.h"

namespace weft::comply {

class FrameMaker : public Numbers {
 protected:
  using Numbers::Numbers;

  /// The frame of a `send`, and the port that it arrives at.
  std::pair<std::uint32_t, wire::Frame> make(const Statement& s);
  /// What `auto ack` answers: the state of the packet's path as a receiver of reorder distance 0 keeps it.
  /// Nothing: the frame asks for no ack.
  std::optional<wire::Frame> acknowledge(const Seen& s);

  BodySetup setup_;
  wire::Hello offer_, hello_;
  std::uint16_t auto_credits_ = 0;
  std::optional<std::uint64_t> auto_path_;  // nothing: all

 private:
  // The tester as a receiver.
  struct RxPath {
    std::uint32_t base = 0;
    std::array<std::uint32_t, wire::kHistWords> hist{};
    std::uint32_t ce_bytes = 0, rx_bytes = 0, echo = 0;
    std::uint8_t epoch = 0;
    bool open = false;
  };

  std::uint32_t line_share() const;
  wire::Frame make_data(const Statement& s, const wire::Route& route, const wire::Bth& bth,
                        const wire::Wth& wth);
  wire::Frame make_ack(const Statement& s, const wire::Route& route, wire::Bth bth,
                       const wire::Wth& wth) const;
  std::vector<wire::Wab> blocks_of(const Statement& s) const;
  std::vector<std::uint8_t> payload_of(const Statement& s, wire::Opcode op);
  void spoil(const Statement& s, wire::Layout layout, wire::Frame& f) const;

  std::map<std::uint8_t, RxPath> rx_;
};

}  // namespace weft::comply
