// SPDX-License-Identifier: Apache-2.0
#include "tb/node/host_queue.h"

#include <fmt/format.h>

#include <cstring>

namespace weft::tb {

HostQueue::HostQueue(const AxiLitePins& csr, const DoorbellPins& doorbell) : csr_(csr), db_(doorbell) {
  *csr_.awaddr = 0;
  *csr_.awvalid = *csr_.awprot = 0;
  *csr_.wdata = 0;
  *csr_.wstrb = *csr_.wvalid = 0;
  *csr_.araddr = 0;
  *csr_.arvalid = *csr_.arprot = 0;
  *csr_.bready = *csr_.rready = 1;
  *db_.awaddr = 0;
  *db_.awlen = *db_.awvalid = 0;
  std::memset(db_.wdata, 0, kBeatBytes);
  std::memset(db_.wstrb, 0, kBeatBytes / 8);
  *db_.wlast = *db_.wvalid = 0;
  *db_.bready = 1;
}

void HostQueue::write(uint32_t addr, uint32_t value) {
  ops_.push_back({Kind::kWrite, addr, value, {}});
}
void HostQueue::read(uint32_t addr) {
  ops_.push_back({Kind::kRead, addr, 0, {}});
}
void HostQueue::doorbell(const void* bytes64) {
  Op& op = ops_.emplace_back(Op{Kind::kDoorbell, 0, 0, {}});
  std::memcpy(op.bytes.data(), bytes64, op.bytes.size());
}

void HostQueue::sample_busy() {
  switch (state_) {
    case State::kWrite:
      address_taken_ |= *csr_.awvalid && *csr_.awready;
      data_taken_ |= *csr_.wvalid && *csr_.wready;
      if (!*csr_.bvalid) break;
      answered(*csr_.bresp == 0);
      state_ = State::kIdle;
      break;
    case State::kRead:
      address_taken_ |= *csr_.arvalid && *csr_.arready;
      if (!*csr_.rvalid) break;
      answered_read(*csr_.rdata, *csr_.rresp == 0);
      state_ = State::kIdle;
      break;
    case State::kDoorbell:
      address_taken_ |= *db_.awvalid && *db_.awready;
      data_taken_ |= *db_.wvalid && *db_.wready;
      if (!*db_.bvalid) break;
      answered(*db_.bresp == 0);
      state_ = State::kIdle;
      break;
    case State::kIdle: break;
  }
}

void HostQueue::drive_busy() {
  if (state_ == State::kIdle) {
    *csr_.awvalid = *csr_.wvalid = *csr_.arvalid = *db_.awvalid = *db_.wvalid = 0;
    if (ops_.empty()) return;
    const Op op = ops_.front();
    ops_.pop_front();
    address_taken_ = data_taken_ = false;
    switch (op.kind) {
      case Kind::kWrite:
        state_ = State::kWrite;
        *csr_.awaddr = static_cast<uint16_t>(op.addr);
        *csr_.wdata = op.value;
        *csr_.wstrb = 0xf;
        *csr_.awvalid = *csr_.wvalid = 1;
        break;
      case Kind::kRead:
        state_ = State::kRead;
        *csr_.araddr = static_cast<uint16_t>(op.addr);
        *csr_.arvalid = 1;
        break;
      case Kind::kDoorbell:
        state_ = State::kDoorbell;
        *db_.awaddr = 0;
        *db_.awlen = 0;
        std::memcpy(db_.wdata, op.bytes.data(), op.bytes.size());
        std::memset(db_.wstrb, 0xff, kBeatBytes / 8);
        *db_.wlast = 1;
        *db_.awvalid = *db_.wvalid = 1;
        break;
    }
    return;
  }
  if (address_taken_) *csr_.awvalid = *csr_.arvalid = *db_.awvalid = 0;
  if (data_taken_) *csr_.wvalid = *db_.wvalid = 0;
}

std::string HostQueue::state() const {
  if (empty()) return "";
  static const char* const kNames[] = {"idle", "register write", "register read", "doorbell"};
  return fmt::format("host: {} under way, {} waiting", kNames[static_cast<size_t>(state_)], ops_.size());
}

}  // namespace weft::tb
