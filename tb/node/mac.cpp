// SPDX-License-Identifier: Apache-2.0
#include "tb/node/mac.h"

#include <fmt/format.h>

#include <algorithm>

#include "tb/fabric/fabric.h"

namespace weft::tb {

MacPort::MacPort(const MacPins& pins, uint32_t port, int64_t rate_mbps, FramePool& frames, FrameSink& sink)
    : pins_(pins), port_(port), rate_mbps_(rate_mbps), frames_(frames), sink_(sink), rx_(64) {
  fifo_ps_ = bytes_ps(kMacFifoBytes - kBeatBytes);
  const auto off = static_cast<uint8_t>(~(1u << port_));
  *pins_.tx_ready &= off;
  *pins_.rx_valid &= off;
  *pins_.rx_last &= off;
  *pins_.rx_user &= off;
}

void MacPort::refuse(const std::string& what) {
  if (error_.ok()) error_ = Status::error(fmt::format("MAC port {}: {}", port_, what));
}

void MacPort::beat(Ps now) {
  uint64_t keep;
  std::memcpy(&keep, pins_.tx_keep + size_t{port_} * 8, 8);
  const bool last = (*pins_.tx_last >> port_ & 1) != 0;
  const auto bytes = static_cast<uint32_t>(__builtin_popcountll(keep));
  const bool prefix = (keep & (keep + 1)) == 0;
  if (!prefix || bytes == 0 || (!last && bytes != kBeatBytes)) {
    refuse(fmt::format("tkeep {:#018x}{} at {} ps: only the last beat may be partial, from byte 0 up", keep,
                       last ? " with tlast" : "", now));
    return;
  }
  if (!tx_frame_) {
    tx_frame_ = frames_.make(kMaxFrameBytes);
    tx_bytes_ = 0;
    tx_start_ = std::max(now, wire_free_);
  } else if (tx_start_ + bytes_ps(kPreambleBytes + tx_bytes_) < now) {
    // The byte was due on the wire before the node handed it over.
    ++counts_.underruns;
    refuse(fmt::format("underrun at {} ps, byte {} of a frame", now, tx_bytes_));
  }
  if (tx_bytes_ + bytes > kMaxFrameBytes) {
    refuse(fmt::format("frame of more than {} bytes at {} ps", kMaxFrameBytes, now));
    return;
  }
  std::memcpy(tx_frame_->data() + tx_bytes_, pins_.tx_data + size_t{port_} * (kBeatBytes / 4), bytes);
  tx_bytes_ += bytes;
  backlog_until_ = tx_start_ + bytes_ps(tx_bytes_ + kWireOverheadBytes);
  if (!last) return;
  wire_free_ = backlog_until_ = std::max(tx_start_ + wire_ps(tx_bytes_, rate_mbps_), now);
  ++counts_.tx_frames;
  counts_.tx_bytes += tx_bytes_;
  FrameRef frame;
  if (tx_bytes_ <= 256) {
    frame = frames_.make(tx_frame_->data(), tx_bytes_);  // acks need no large buffer while they travel
    tx_frame_.reset();
  } else {
    tx_frame_->bytes = static_cast<uint16_t>(tx_bytes_);
    frame = std::move(tx_frame_);
  }
  tx_bytes_ = 0;
  sink_.send(port_, tx_start_, wire_free_, now, std::move(frame));
}

void MacPort::set_ready(bool ready) {
  ready_ = ready;
  const auto bit = static_cast<uint8_t>(1u << port_);
  *pins_.tx_ready = static_cast<uint8_t>(ready ? *pins_.tx_ready | bit : *pins_.tx_ready & ~bit);
}

void MacPort::drive_ready(Ps next_edge) {
  const bool room = backlog_until_ - next_edge <= fifo_ps_;
  if (room != ready_) set_ready(room);
}

void MacPort::receive(Ps first_bit, FrameRef frame) {
  if (rx_count_ == rx_.size()) {
    std::vector<Arriving> larger(2 * rx_.size());
    for (size_t i = 0; i < rx_count_; ++i) larger[i] = std::move(rx_[(rx_head_ + i) & (rx_.size() - 1)]);
    rx_.swap(larger);
    rx_head_ = 0;
  }
  rx_[(rx_head_ + rx_count_) & (rx_.size() - 1)] = {first_bit, std::move(frame)};
  ++rx_count_;
}

void MacPort::drive_rx(Ps next_edge) {
  const auto bit = static_cast<uint8_t>(1u << port_);
  if (rx_count_ != 0) {
    Arriving& a = rx_[rx_head_];
    if (rx_start_ < 0) rx_start_ = std::max(a.first_bit, rx_free_);
    const uint32_t bytes = std::min<uint32_t>(kBeatBytes, a.frame->bytes - rx_at_);
    if (rx_start_ + bytes_ps(kPreambleBytes + rx_at_ + bytes) <= next_edge) {
      uint8_t* data = reinterpret_cast<uint8_t*>(pins_.rx_data) + size_t{port_} * kBeatBytes;
      std::memcpy(data, a.frame->data() + rx_at_, bytes);
      const uint64_t keep = bytes == kBeatBytes ? ~uint64_t{0} : (uint64_t{1} << bytes) - 1;
      std::memcpy(pins_.rx_keep + size_t{port_} * 8, &keep, 8);
      rx_at_ += bytes;
      const bool last = rx_at_ == a.frame->bytes;
      const bool bad = last && (a.frame->flags & kFrameMacError) != 0;
      *pins_.rx_valid |= bit;
      *pins_.rx_last = static_cast<uint8_t>(last ? *pins_.rx_last | bit : *pins_.rx_last & ~bit);
      *pins_.rx_user = static_cast<uint8_t>(bad ? *pins_.rx_user | bit : *pins_.rx_user & ~bit);
      rx_offered_ = true;
      if (last) {
        ++counts_.rx_frames;
        counts_.rx_bytes += rx_at_;
        rx_free_ = rx_start_ + wire_ps(rx_at_, rate_mbps_);
        rx_start_ = -1;
        rx_at_ = 0;
        a.frame.reset();
        rx_head_ = (rx_head_ + 1) & (rx_.size() - 1);
        --rx_count_;
      }
      return;
    }
  }
  *pins_.rx_valid = static_cast<uint8_t>(*pins_.rx_valid & ~bit);
  rx_offered_ = false;
}

std::string MacPort::state() const {
  if (idle()) return "";
  return fmt::format("MAC {}: {} frames arriving, {} bytes of a frame to send collected", port_, rx_count_,
                     tx_bytes_);
}

}  // namespace weft::tb
