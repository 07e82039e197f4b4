// SPDX-License-Identifier: Apache-2.0
#include "tb/memory/axi.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::tb {
namespace {

constexpr uint8_t kOkay = 0, kSlvErr = 2, kDecErr = 3;
constexpr uint64_t kPage = 4096;

uint64_t latency(AxiShared& s, Rng& rng) {
  const uint32_t spread = s.timing.latency_max_cycles - s.timing.latency_min_cycles;
  return s.timing.latency_min_cycles + (spread ? rng.below(spread + 1) : 0);
}

void refuse(AxiShared& s, const std::string& name, const std::string& what) {
  if (s.error.ok()) s.error = Status::error(fmt::format("AXI master {}, cycle {}: {}", name, s.cycle, what));
}

// Whether AXI allows the burst at all; else the run has failed.
bool legal(AxiShared& s, const std::string& name, uint64_t addr, uint64_t bytes, uint32_t beat_bytes) {
  if (addr % beat_bytes != 0) {
    refuse(s, name, fmt::format("address {:#x} is no multiple of the {} bytes of a beat", addr, beat_bytes));
    return false;
  }
  if (addr / kPage != (addr + bytes - 1) / kPage) {
    refuse(s, name, fmt::format("burst of {} bytes at {:#x} crosses a 4 KB boundary", bytes, addr));
    return false;
  }
  return true;
}

uint8_t response(const Memory& m, uint64_t addr, uint64_t bytes) {
  if (!m.contains(addr, bytes)) return kDecErr;
  return m.faulty(addr, bytes) ? kSlvErr : kOkay;
}

}  // namespace

AxiReadSlave::AxiReadSlave(AxiShared& shared, const AxiReadPins& pins, uint32_t beat_bytes, std::string name,
                           uint64_t seed)
    : shared_(shared),
      pins_(pins),
      beat_bytes_(beat_bytes),
      name_(std::move(name)),
      rng_(seed, 0xa1),
      stalls_(shared.timing.stall > 0),
      data_(size_t{kBeats} * beat_bytes),
      bursts_(kBursts) {
  *pins_.arready = 0;
  *pins_.rvalid = 0;
  *pins_.rlast = 0;
  *pins_.rresp = 0;
  std::memset(pins_.rdata, 0, beat_bytes_);
}

void AxiReadSlave::still_offered() {
  waits_ = false;
  if (!*pins_.arvalid || *pins_.araddr != held_addr_ || *pins_.arlen != held_len_)
    refuse(shared_, name_, fmt::format("address {:#x} of a read withdrawn before it was taken", held_addr_));
}

void AxiReadSlave::accept() {
  const uint64_t addr = *pins_.araddr;
  const uint32_t beats = uint32_t{*pins_.arlen} + 1;
  const uint64_t bytes = uint64_t{beats} * beat_bytes_;
  uint8_t resp = kDecErr;
  if (legal(shared_, name_, addr, bytes, beat_bytes_)) resp = response(shared_.memory, addr, bytes);
  if (resp != kOkay) ++counts_.errors;
  for (uint32_t i = 0; i < beats; ++i) {
    uint8_t* beat = &data_[size_t{(first_beat_ + beats_ + i) % kBeats} * beat_bytes_];
    if (resp == kOkay) {
      std::memcpy(beat, shared_.memory.data(addr + uint64_t{i} * beat_bytes_), beat_bytes_);
    } else {
      std::memset(beat, 0xee, beat_bytes_);
    }
  }
  beats_ += beats;
  bursts_[(first_burst_ + open_) % kBursts] = {shared_.cycle + latency(shared_, rng_), beats, resp};
  ++open_;
  ++counts_.bursts;
}

void AxiReadSlave::taken() {
  offered_ = false;
  ++shared_.activity;
  ++counts_.beats;
  counts_.bytes += beat_bytes_;
  first_beat_ = (first_beat_ + 1) % kBeats;
  --beats_;
  if (++sent_ == bursts_[first_burst_].beats) {
    sent_ = 0;
    first_burst_ = (first_burst_ + 1) % kBursts;
    --open_;
  }
}

void AxiReadSlave::drive_busy() {
  // A burst has at most 256 beats; one may be accepted per cycle of arready.
  const bool room = open_ < kBursts && beats_ + 256 <= kBeats;
  *pins_.arready = room && !(stalls_ && rng_.chance(shared_.timing.stall));
  if (offered_) return;
  if (open_ && shared_.cycle >= bursts_[first_burst_].ready_cycle && shared_.tokens > 0 &&
      !(stalls_ && rng_.chance(shared_.timing.stall))) {
    const Burst& burst = bursts_[first_burst_];
    std::memcpy(pins_.rdata, &data_[size_t{first_beat_} * beat_bytes_], beat_bytes_);
    *pins_.rresp = burst.resp;
    *pins_.rlast = sent_ + 1 == burst.beats;
    *pins_.rvalid = 1;
    offered_ = true;
    shared_.tokens -= beat_bytes_;
  } else {
    *pins_.rvalid = 0;
  }
}

std::string AxiReadSlave::state() const {
  return open_ ? fmt::format("{}: {} reads open{}", name_, open_, offered_ ? ", data offered" : "") : "";
}

AxiWriteSlave::AxiWriteSlave(AxiShared& shared, const AxiWritePins& pins, uint32_t beat_bytes,
                             std::string name, uint64_t seed)
    : shared_(shared),
      pins_(pins),
      beat_bytes_(beat_bytes),
      strobe_bytes_(beat_bytes / 8),
      name_(std::move(name)),
      rng_(seed, 0xa2),
      stalls_(shared.timing.stall > 0),
      data_(size_t{kBeats} * beat_bytes),
      strobes_(size_t{kBeats} * beat_bytes / 8),
      bursts_(kBursts),
      lengths_(kBeats),
      held_beat_(size_t{beat_bytes} * 9 / 8) {
  *pins_.awready = 0;
  *pins_.wready = 0;
  *pins_.bvalid = 0;
  *pins_.bresp = 0;
}

void AxiWriteSlave::address_still_offered() {
  aw_waits_ = false;
  if (!*pins_.awvalid || *pins_.awaddr != held_addr_ || *pins_.awlen != held_len_)
    refuse(shared_, name_, fmt::format("address {:#x} of a write withdrawn before it was taken", held_addr_));
}

void AxiWriteSlave::hold_beat() {
  w_waits_ = true;
  held_last_ = *pins_.wlast;
  std::memcpy(held_beat_.data(), pins_.wdata, beat_bytes_);
  std::memcpy(&held_beat_[beat_bytes_], pins_.wstrb, strobe_bytes_);
}

void AxiWriteSlave::beat_still_offered() {
  w_waits_ = false;
  if (!*pins_.wvalid || *pins_.wlast != held_last_ ||
      std::memcmp(held_beat_.data(), pins_.wdata, beat_bytes_) != 0 ||
      std::memcmp(&held_beat_[beat_bytes_], pins_.wstrb, strobe_bytes_) != 0)
    refuse(shared_, name_, "beat of a write withdrawn or changed before it was taken");
}

void AxiWriteSlave::accept_address() {
  bursts_[(first_burst_ + open_) % kBursts] = {*pins_.awaddr, 0, uint32_t{*pins_.awlen} + 1};
  ++open_;
  ++counts_.bursts;
  match();
}

void AxiWriteSlave::accept_data() {
  const uint32_t at = (first_beat_ + beats_) % kBeats;
  std::memcpy(&data_[size_t{at} * beat_bytes_], pins_.wdata, beat_bytes_);
  std::memcpy(&strobes_[size_t{at} * strobe_bytes_], pins_.wstrb, strobe_bytes_);
  ++beats_;
  ++partial_;
  ++counts_.beats;
  ++shared_.activity;
  shared_.tokens -= beat_bytes_;
  if (*pins_.wlast) {
    lengths_[(first_length_ + waiting_lengths_) % kBeats] = partial_;
    ++waiting_lengths_;
    partial_ = 0;
    match();
  }
}

// Addresses and data come on their own channels; a burst is complete when both have come.
void AxiWriteSlave::match() {
  while (waiting_lengths_ && complete_ < open_) {
    Burst& burst = bursts_[(first_burst_ + complete_) % kBursts];
    const uint32_t beats = lengths_[first_length_];
    first_length_ = (first_length_ + 1) % kBeats;
    --waiting_lengths_;
    if (beats != burst.beats) {
      refuse(shared_, name_,
             fmt::format("wlast after {} beats of a burst of {} at {:#x}", beats, burst.beats, burst.addr));
      burst.beats = beats;
    }
    legal(shared_, name_, burst.addr, uint64_t{burst.beats} * beat_bytes_, beat_bytes_);
    burst.ready_cycle = shared_.cycle + latency(shared_, rng_);
    ++complete_;
  }
}

void AxiWriteSlave::taken() {
  offered_ = false;
  ++shared_.activity;
  first_burst_ = (first_burst_ + 1) % kBursts;
  --open_;
  --complete_;
}

uint8_t AxiWriteSlave::apply(const Burst& burst) {
  const uint8_t resp = response(shared_.memory, burst.addr, uint64_t{burst.beats} * beat_bytes_);
  if (resp != kOkay) ++counts_.errors;
  for (uint32_t i = 0; i < burst.beats; ++i, first_beat_ = (first_beat_ + 1) % kBeats, --beats_) {
    if (resp != kOkay) continue;
    const uint8_t* from = &data_[size_t{first_beat_} * beat_bytes_];
    uint8_t* to = shared_.memory.data(burst.addr + uint64_t{i} * beat_bytes_);
    for (uint32_t w = 0; w < strobe_bytes_; w += 8, from += 64, to += 64) {
      uint64_t strobe;
      std::memcpy(&strobe, &strobes_[size_t{first_beat_} * strobe_bytes_ + w], 8);
      counts_.bytes += static_cast<uint64_t>(__builtin_popcountll(strobe));
      if (strobe == ~uint64_t{0}) {
        std::memcpy(to, from, 64);
        continue;
      }
      for (; strobe; strobe &= strobe - 1) {
        const int b = __builtin_ctzll(strobe);
        to[b] = from[b];
      }
    }
  }
  return resp;
}

void AxiWriteSlave::drive_busy() {
  *pins_.awready = open_ < kBursts && !(stalls_ && rng_.chance(shared_.timing.stall));
  *pins_.wready = beats_ < kBeats && shared_.tokens > 0 && !(stalls_ && rng_.chance(shared_.timing.stall));
  if (offered_) return;
  if (complete_ && shared_.cycle >= bursts_[first_burst_].ready_cycle &&
      !(stalls_ && rng_.chance(shared_.timing.stall))) {
    *pins_.bresp = apply(bursts_[first_burst_]);
    *pins_.bvalid = 1;
    offered_ = true;
  } else {
    *pins_.bvalid = 0;
  }
}

std::string AxiWriteSlave::state() const {
  if (idle()) return "";
  return fmt::format("{}: {} writes open, {} of them complete, {} beats held{}", name_, open_, complete_,
                     beats_, offered_ ? ", response offered" : "");
}

}  // namespace weft::tb
