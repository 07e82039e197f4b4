// SPDX-License-Identifier: Apache-2.0
//
// The world around one weft_nmc: memory behind its three AXI masters, requests and completions, and
// the check of everything it does. Tests and benchmarks use it; what goes wrong is thrown as
// std::runtime_error.
//
//   World<Vnmc_top> world(dut, settings);
//   world.push(request) ...                 expected memory is updated here
//   while (!world.idle()) { world.drive(); dut.eval(); world.look(); <clock edge> }
//   world.compare();                        every byte of memory, guard bytes included
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sw/ref/nmc_steps.h"
#include "sw/ref/numerics.h"

namespace weft::nmc {

struct NmcRequest {
  uint8_t tag = 0;
  num::Job job;
  unsigned nsrc = 1, own = 0;
  uint64_t src0 = 0, src1 = 0, dst = 0;
  uint32_t stride = 0, len = 0;

  uint64_t source(unsigned k) const { return k == own ? src0 : src1 + uint64_t{k} * stride; }
  /// Bytes of each source.
  uint64_t source_len() const { return num::footprint(job.from, num::elements_of(job.to, len)); }
  /// Bytes of the result: `len`, and the scales of blocks.
  uint64_t result_len() const { return num::footprint(job.to, num::elements_of(job.to, len)); }
  bool copies() const { return num::copies(job, nsrc); }
  /// The read port of source k of a reducer of these parts: 0 or 1.
  unsigned port(unsigned k, num::Parts parts = {}) const {
    const bool scaled = num::scales(job) && num::kind_of(job.from) == num::Kind::Float;
    const bool fp64 = job.from == wire::Dtype::FLOAT64 || job.to == wire::Dtype::FLOAT64;
    return k != 0 && (!scaled || (parts.multipliers == 2 && !fp64));
  }
};

/// Whether hardware of these parts has the reduction; else its error.
inline wire::Err served(const NmcRequest& r, num::Parts parts) {
  return num::check(r.job, r.nsrc, r.own, parts);
}

/// What docs/nmc.md says of a request before any memory is touched.
inline wire::Err verdict(const NmcRequest& r, num::Parts parts = {}) {
  if (const wire::Err e = served(r, parts); e != wire::Err::OK) return e;
  const uint64_t from = num::bytes_of(r.job.from), to = num::bytes_of(r.job.to);
  if (r.src0 % from || r.dst % to || r.len % num::length_unit(r.job.from, r.job.to))
    return wire::Err::BAD_ALIGN;
  if (r.nsrc > 1 && (r.src1 % from || r.stride % from)) return wire::Err::BAD_ALIGN;
  if (r.len == 0) return wire::Err::OK;
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kEnd = Wide{1} << 64;
  bool over = Wide{r.dst} + r.result_len() > kEnd;
  for (unsigned k = 0; k < r.nsrc; ++k) {
    const Wide at = k == r.own ? Wide{r.src0} : Wide{r.src1} + Wide{k} * r.stride;
    over |= at + r.source_len() > kEnd;
  }
  return over ? wire::Err::BAD_LENGTH : wire::Err::OK;
}

inline constexpr uint64_t kPageBytes = 4096;

struct NmcSettings {
  uint64_t base = 0x7f00'0000'0000;    ///< address of the first byte of memory, page-aligned
  uint64_t size = 1 << 20;             ///< bytes, whole pages
  unsigned latency = 40;               ///< cycles from address to first data or response
  unsigned jitter = 0;                 ///< up to so many more, by burst
  std::function<bool(unsigned)> hold;  ///< true: stream `which` (0..8) is held back this cycle
  bool aw_waits_for_w = false;         ///< memory takes an address only when data is on offer ...
  bool w_waits_for_aw = false;         ///< ... or data only when its address has been taken
  bool read_early = false;             ///< reads look at memory when asked, not when answered
  uint64_t random = 1;                 ///< for the jitter
  num::Parts parts;                    ///< what the reducer was built with
};

template <class Dut>
class World {
 public:
  enum Stream { kReq, kCpl, kArA, kRA, kArB, kRB, kAw, kW, kB };

  struct Completion {
    NmcRequest request;
    wire::Err status;
    uint64_t cycle;
    uint64_t took;  // cycles, as the reducer counts them
  };

  World(Dut& dut, NmcSettings settings) : dut_(dut), set_(std::move(settings)), memory_(set_.size) {
    if (!set_.hold) set_.hold = [](unsigned) { return false; };
    dut_.req_valid_i = dut_.cpl_ready_i = 0;
    dut_.m_axi_a_arready = dut_.m_axi_a_rvalid = dut_.m_axi_b_arready = dut_.m_axi_b_rvalid = 0;
    dut_.m_axi_w_awready = dut_.m_axi_w_wready = dut_.m_axi_w_bvalid = 0;
  }

  std::vector<uint8_t>& memory() { return memory_; }
  uint8_t* at(uint64_t address) { return &memory_[address - set_.base]; }
  const NmcSettings& settings() const { return set_; }
  /// Beats (by address) that read port 0 or 1 answers with an error; pages whose write response is one.
  std::set<uint64_t> bad_reads[2], bad_writes;

  /// Makes the memory as it is now what is expected; then push() changes the expectation. A byte may
  /// be written by one request only from here to the next call if that request meets an error.
  void expect_as_is() { expected_ = before_ = memory_; }

  void push(const NmcRequest& request) {
    waiting_.push_back(request);
    Expect e{request, verdict(request, set_.parts), false, ~uint64_t{0}, {}};
    if (e.status == wire::Err::OK && request.len != 0) {
      uint64_t bad = ~uint64_t{0};
      for (unsigned k = 0; k < request.nsrc; ++k) bad = std::min(bad, first_bad_byte(request, k));
      const uint64_t first = request.dst & ~(kPageBytes - 1);
      for (uint64_t page = first; page < request.dst + request.result_len(); page += kPageBytes) {
        e.write_error |= bad_writes.count(page) != 0;
      }
      e.read_error_at = bad;
      if (bad != ~uint64_t{0} || e.write_error) e.status = wire::Err::MEM_ERROR;
      e.flags = apply(request);
    }
    expect_.push_back(e);
  }

  bool idle() const {
    return waiting_.empty() && expect_.empty() && writes_.empty() && w_beats_.empty() && responses_.empty();
  }
  const std::deque<Completion>& completions() const { return completions_; }
  uint64_t cycle() const { return cycle_; }
  uint64_t beats_written() const { return beats_written_; }
  uint64_t bursts_read() const { return bursts_read_; }
  uint64_t bursts_written() const { return bursts_written_; }
  bool touched() const { return bursts_read_ + bursts_written_ + beats_written_ != 0; }
  struct Counters {
    uint64_t busy = 0, active = 0, stall_read = 0, stall_write = 0, beats = 0, requests = 0, done = 0,
             errors = 0, invalid = 0, overflow = 0, inexact = 0;
  };
  const Counters& counters() const { return counters_; }

  /// Sets the inputs of this cycle. Offers once made stay.
  void drive() {
    if (req_done_) dut_.req_valid_i = 0;
    if (r_done_[0]) dut_.m_axi_a_rvalid = 0;
    if (r_done_[1]) dut_.m_axi_b_rvalid = 0;
    if (b_done_) dut_.m_axi_w_bvalid = 0;
    req_done_ = r_done_[0] = r_done_[1] = b_done_ = false;
    if (!dut_.req_valid_i && !waiting_.empty() && !set_.hold(kReq)) {
      dut_.req_valid_i = 1;
      pack(waiting_.front());
    }
    dut_.cpl_ready_i = !set_.hold(kCpl);
    dut_.m_axi_a_arready = !set_.hold(kArA);
    dut_.m_axi_b_arready = !set_.hold(kArB);
    drive_read(reads_[0], kRA, dut_.m_axi_a_rvalid, dut_.m_axi_a_rlast, dut_.m_axi_a_rresp,
               dut_.m_axi_a_rdata);
    drive_read(reads_[1], kRB, dut_.m_axi_b_rvalid, dut_.m_axi_b_rlast, dut_.m_axi_b_rresp,
               dut_.m_axi_b_rdata);
    if (!dut_.m_axi_w_bvalid && !responses_.empty() && responses_.front().due <= cycle_ && !set_.hold(kB)) {
      dut_.m_axi_w_bvalid = 1;
      dut_.m_axi_w_bresp = responses_.front().error ? 2 : 0;
    }
    dut_.m_axi_w_awready = !set_.hold(kAw);
    dut_.m_axi_w_wready = !set_.hold(kW) && (!set_.w_waits_for_aw || writes_.size() > w_bursts_);
    if (set_.aw_waits_for_w && w_beats_.empty()) {  // AXI allows a memory to wait for both valids
      dut_.eval();
      dut_.m_axi_w_awready &= dut_.m_axi_w_wvalid;
    }
  }

  /// Takes what the coming clock edge transfers; call after eval().
  void look() {
    check_holds();
    if (dut_.req_valid_i && dut_.req_ready_o) {
      waiting_.pop_front();
      req_done_ = true;
      accepted_.push_back(cycle_);
    }
    if (dut_.cpl_valid_o && !offered_at_) offered_at_ = cycle_;
    look_read(0, dut_.m_axi_a_arvalid && dut_.m_axi_a_arready, dut_.m_axi_a_araddr, dut_.m_axi_a_arlen,
              dut_.m_axi_a_rvalid, dut_.m_axi_a_rready);
    look_read(1, dut_.m_axi_b_arvalid && dut_.m_axi_b_arready, dut_.m_axi_b_araddr, dut_.m_axi_b_arlen,
              dut_.m_axi_b_rvalid, dut_.m_axi_b_rready);
    if (dut_.m_axi_w_awvalid && dut_.m_axi_w_awready) {
      check_burst(dut_.m_axi_w_awaddr, dut_.m_axi_w_awlen);
      writes_.push_back({dut_.m_axi_w_awaddr, dut_.m_axi_w_awlen + 1u, 0, 0});
      ++bursts_written_;
    }
    if (dut_.m_axi_w_wvalid && dut_.m_axi_w_wready) {
      const uint64_t offered = writes_.size() + (dut_.m_axi_w_awvalid && !dut_.m_axi_w_awready);
      if (offered <= w_bursts_) fail("write data before its address was offered");
      WBeat beat;
      std::memcpy(beat.data, &dut_.m_axi_w_wdata[0], kBeatBytes);
      std::memcpy(beat.strobe, &dut_.m_axi_w_wstrb[0], kBeatBytes / 8);
      beat.last = dut_.m_axi_w_wlast;
      w_bursts_ += beat.last;
      w_beats_.push_back(beat);
      ++beats_written_;
    }
    write_memory();
    if (dut_.m_axi_w_bvalid && dut_.m_axi_w_bready) {
      responses_.pop_front();
      b_done_ = true;
    }
    if (dut_.cpl_valid_o && dut_.cpl_ready_i) complete();
    count(dut_.cnt_o);
    ++cycle_;
  }

  /// Whether something moved in the last cycle that was looked at; resets it.
  bool moved() {
    const uint64_t now = beats_written_ + bursts_read_ + completions_.size();
    const bool yes = now != moved_;
    moved_ = now;
    return yes;
  }

  /// Every byte of memory must be as expected. Throws with the first that is not.
  void compare() const {
    if (memory_ == expected_) return;
    const auto [got, want] = std::mismatch(memory_.begin(), memory_.end(), expected_.begin());
    fail("byte " + std::to_string(got - memory_.begin()) + " of memory is " + std::to_string(*got) +
         ", not " + std::to_string(*want));
  }
  /// The expectation, for tests that spoil it on purpose.
  std::vector<uint8_t>& expected() { return expected_; }

 private:
  struct Expect {
    NmcRequest request;
    wire::Err status;
    bool write_error;
    uint64_t read_error_at;  // first byte of the result that a read error covers
    num::Flags flags;
  };
  struct Read {
    uint64_t address;
    unsigned beats, done;
    uint64_t due;
    std::vector<uint8_t> early;
  };
  struct Write {
    uint64_t address;
    unsigned beats, done;
    uint64_t due;
  };
  struct WBeat {
    uint8_t data[kBeatBytes], strobe[kBeatBytes / 8];
    bool last;
  };
  struct Response {
    uint64_t due;
    bool error;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("cycle " + std::to_string(cycle_) + ": " + what);
  }

  // First byte of the result that needs a bad beat of source k.
  uint64_t first_bad_byte(const NmcRequest& r, unsigned k) const {
    const std::set<uint64_t>& bad = bad_reads[r.port(k, set_.parts)];
    const uint64_t src = r.source(k);
    const auto beat = bad.lower_bound(src & ~(kBeatBytes - 1));
    if (beat == bad.end()) return ~uint64_t{0};
    if (*beat < src) return 0;
    if (*beat - src >= r.source_len()) return ~uint64_t{0};
    // Of blocks the whole one.
    const bool blocks =
        num::kind_of(r.job.from) == num::Kind::Block || num::kind_of(r.job.to) == num::Kind::Block;
    const uint64_t unit = blocks ? num::kMxElements : 1;
    return (*beat - src) / num::footprint(r.job.from, unit) * num::footprint(r.job.to, unit);
  }

  num::Flags apply(const NmcRequest& r) {
    uint8_t* const e = expected_.data();
    sources_.resize(r.nsrc);
    std::vector<std::span<const uint8_t>> spans;
    for (unsigned k = 0; k < r.nsrc; ++k) {
      const uint8_t* const from = e + (r.source(k) - set_.base);
      sources_[k].assign(from, from + r.source_len());
      spans.emplace_back(sources_[k]);
    }
    return num::reduce(r.job, std::span<uint8_t>(e + (r.dst - set_.base), r.result_len()), spans);
  }

  // nmc_req_t, most significant first: tag dtype to redop propagate_nan saturate exact nsrc own src0 src1
  // stride dst len scalar.
  void pack(const NmcRequest& r) {
    const uint64_t head = uint64_t{r.own & 0xff} | uint64_t{r.nsrc & 0xff} << 8 |
                          uint64_t{r.job.exact} << 16 | uint64_t{r.job.saturate} << 17 |
                          uint64_t{r.job.propagate_nan} << 18 | static_cast<uint64_t>(r.job.op) << 19 |
                          static_cast<uint64_t>(r.job.to) << 27 | static_cast<uint64_t>(r.job.from) << 35 |
                          uint64_t{r.tag} << 43;
    const uint32_t words[12] = {static_cast<uint32_t>(r.job.scalar),
                                static_cast<uint32_t>(r.job.scalar >> 32),
                                r.len,
                                static_cast<uint32_t>(r.dst),
                                static_cast<uint32_t>(r.dst >> 32),
                                r.stride,
                                static_cast<uint32_t>(r.src1),
                                static_cast<uint32_t>(r.src1 >> 32),
                                static_cast<uint32_t>(r.src0),
                                static_cast<uint32_t>(r.src0 >> 32),
                                static_cast<uint32_t>(head),
                                static_cast<uint32_t>(head >> 32)};
    for (unsigned i = 0; i < 12; ++i) dut_.req_i[i] = words[i];
  }

  uint64_t random(uint64_t n) {
    set_.random = set_.random * 6364136223846793005u + 1442695040888963407u;
    return n == 0 ? 0 : (set_.random >> 33) % n;
  }

  // What the reducer offers and nobody takes must still be there, unchanged, in the next cycle.
  void check_holds() {
    const auto check = [&](unsigned which, bool valid, bool ready, auto... fields) {
      uint64_t hash = 0;
      ((hash = (hash ^ static_cast<uint64_t>(fields)) * 0x9e3779b97f4a7c15u + 1), ...);
      if (offered_[which].pending && (!valid || hash != offered_[which].hash))
        fail("an offer of stream " + std::to_string(which) + " did not hold");
      offered_[which] = {valid && !ready, hash};
    };
    uint64_t beat = 0;
    if (dut_.m_axi_w_wvalid && (offered_[kW].pending || !dut_.m_axi_w_wready)) {  // else nothing to compare
      for (unsigned i = 0; i < 32; ++i) beat = (beat ^ dut_.m_axi_w_wdata[i]) * 0x9e3779b97f4a7c15u + 1;
      for (unsigned i = 0; i < 4; ++i) beat = (beat ^ dut_.m_axi_w_wstrb[i]) * 0x9e3779b97f4a7c15u + 1;
    }
    check(kArA, dut_.m_axi_a_arvalid, dut_.m_axi_a_arready, dut_.m_axi_a_araddr, dut_.m_axi_a_arlen);
    check(kArB, dut_.m_axi_b_arvalid, dut_.m_axi_b_arready, dut_.m_axi_b_araddr, dut_.m_axi_b_arlen);
    check(kAw, dut_.m_axi_w_awvalid, dut_.m_axi_w_awready, dut_.m_axi_w_awaddr, dut_.m_axi_w_awlen);
    check(kCpl, dut_.cpl_valid_o, dut_.cpl_ready_i, dut_.cpl_o);
    check(kW, dut_.m_axi_w_wvalid, dut_.m_axi_w_wready, beat, dut_.m_axi_w_wlast);
  }

  void check_burst(uint64_t address, unsigned len) const {
    if (address % kBeatBytes) fail("burst at no beat address");
    if (address % kPageBytes + (len + 1) * kBeatBytes > kPageBytes) fail("burst across 4 KB");
    if (address - set_.base >= set_.size || address - set_.base + (len + 1) * kBeatBytes > set_.size)
      fail("burst outside memory");
  }

  template <class Valid, class Last, class Resp, class Data>
  void drive_read(std::deque<Read>& reads, unsigned stream, Valid& valid, Last& last, Resp& resp,
                  Data& data) {
    if (valid || reads.empty() || reads.front().due > cycle_ || set_.hold(stream)) return;
    Read& read = reads.front();
    const uint64_t address = read.address + read.done * kBeatBytes;
    valid = 1;
    last = read.done + 1 == read.beats;
    const bool bad = bad_reads[stream == kRB].count(address) != 0;
    resp = bad ? 2 : 0;
    if (bad) {  // what comes with an error is garbage
      std::memset(&data[0], 0xa5, kBeatBytes);
    } else {
      std::memcpy(&data[0], read.early.empty() ? at(address) : &read.early[read.done * kBeatBytes],
                  kBeatBytes);
    }
  }

  void look_read(unsigned port, bool taken, uint64_t address, unsigned len, bool valid, bool ready) {
    if (taken) {
      check_burst(address, len);
      Read read{address, len + 1, 0, cycle_ + set_.latency + random(set_.jitter + 1), {}};
      if (set_.read_early) read.early.assign(at(address), at(address) + read.beats * kBeatBytes);
      reads_[port].push_back(std::move(read));
      ++bursts_read_;
    }
    if (valid && ready) {
      Read& read = reads_[port].front();
      if (++read.done == read.beats) reads_[port].pop_front();
      r_done_[port] = true;
    }
  }

  void write_memory() {
    while (!writes_.empty() && !w_beats_.empty()) {
      Write& write = writes_.front();
      const WBeat& beat = w_beats_.front();
      uint8_t* const to = at(write.address + write.done * kBeatBytes);
      for (unsigned i = 0; i < kBeatBytes; ++i) {
        if (beat.strobe[i / 8] >> (i % 8) & 1) to[i] = beat.data[i];
      }
      if (beat.last != (++write.done == write.beats)) fail("wlast does not agree with awlen");
      if (beat.last) {
        const uint64_t page = write.address & ~(kPageBytes - 1);
        responses_.push_back({cycle_ + set_.latency + random(set_.jitter + 1), bad_writes.count(page) != 0});
        writes_.pop_front();
        --w_bursts_;
      }
      w_beats_.pop_front();
    }
  }

  void complete() {
    if (expect_.empty()) fail("completion of nothing");
    const Expect e = expect_.front();
    expect_.pop_front();
    const auto tag = static_cast<uint8_t>(dut_.cpl_o >> 8);
    const auto status = static_cast<wire::Err>(dut_.cpl_o & 0xff);
    if (tag != e.request.tag) fail("completion out of order");
    if (status != e.status) {
      fail("status " + std::to_string(static_cast<int>(status)) + ", not " +
           std::to_string(static_cast<int>(e.status)));
    }
    if (status == wire::Err::MEM_ERROR) {
      accept_partly(e);
    } else {
      const unsigned want = e.flags.invalid << 2 | e.flags.overflow << 1 | e.flags.inexact;
      if ((dut_.cnt_o & 7) != want) {
        fail("request " + std::to_string(tag) + ": flags (invalid, overflow, inexact) " +
             std::to_string(dut_.cnt_o & 7) + ", not " + std::to_string(want));
      }
    }
    // From the request or the completion before it, whichever is later, to the completion on offer.
    const uint64_t took = *offered_at_ - std::max(accepted_.front(), done_at_) - 1;
    if (dut_.cpl_cycles_o != took)
      fail("a request of " + std::to_string(dut_.cpl_cycles_o) + " cycles, not " + std::to_string(took));
    accepted_.pop_front();
    offered_at_.reset();
    done_at_ = cycle_;
    completions_.push_back({e.request, status, cycle_, took});
  }

  // A request that failed half-way has written some of the right bytes and left the others; behind
  // a read error nothing is written.
  void accept_partly(const Expect& e) {
    for (uint64_t i = 0; i < e.request.result_len(); ++i) {
      const uint64_t at_byte = e.request.dst - set_.base + i;
      const bool written = memory_[at_byte] == expected_[at_byte] && memory_[at_byte] != before_[at_byte];
      if (written && i >= e.read_error_at) fail("byte written behind a read error");
      if (memory_[at_byte] != expected_[at_byte] && memory_[at_byte] != before_[at_byte])
        fail("byte of a failed request is neither old nor new");
      expected_[at_byte] = memory_[at_byte];
    }
  }

  // nmc_cnt_t, least significant bit first.
  void count(unsigned events) {
    uint64_t* const by_bit[] = {&counters_.inexact, &counters_.overflow,    &counters_.invalid,
                                &counters_.errors,  &counters_.done,        &counters_.requests,
                                &counters_.beats,   &counters_.stall_write, &counters_.stall_read,
                                &counters_.active,  &counters_.busy};
    for (unsigned i = 0; i < 11; ++i) *by_bit[i] += events >> i & 1;
  }

  Dut& dut_;
  NmcSettings set_;
  std::vector<uint8_t> memory_, expected_, before_;
  std::vector<std::vector<uint8_t>> sources_;
  std::deque<NmcRequest> waiting_;
  std::deque<Expect> expect_;
  std::deque<Completion> completions_;
  std::deque<Read> reads_[2];
  std::deque<Write> writes_;
  std::deque<WBeat> w_beats_;
  std::deque<Response> responses_;
  struct Offer {
    bool pending = false;
    uint64_t hash = 0;
  } offered_[9];
  uint64_t w_bursts_ = 0;  // bursts whose last beat is in w_beats_
  uint64_t cycle_ = 0, beats_written_ = 0, bursts_read_ = 0, bursts_written_ = 0, moved_ = 0;
  std::deque<uint64_t> accepted_;  // when, of requests without a completion
  std::optional<uint64_t> offered_at_;
  uint64_t done_at_ = 0;
  bool req_done_ = false, r_done_[2] = {}, b_done_ = false;  // offers that the last edge took
  Counters counters_;
};

}  // namespace weft::nmc
