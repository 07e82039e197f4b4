// SPDX-License-Identifier: Apache-2.0
//
// Drives weft_rx_path (rx_flat) and holds it against the model: MAC, memory with latency and stalls,
// core, transmit path and transmit control around it. A test queues frames, runs, and asks at_rest().
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Vrx_flat.h"
#include "rx_model.h"
#include "rx_traffic.h"
#include "weft_cfg.h"
#include "weft_test.h"

namespace rx {

struct Stalls {
  weft::test::Profile mac{}, aw{}, w{}, b{}, commit{}, ack{}, ackin{};  // Profile{} is none
  unsigned b_min = 40, b_max = 60;            // cycles from a burst's last word to its response
  unsigned verdict_min = 1, verdict_max = 1;  // cycles from a packet told to the core to its verdict
  double refuse = 0;                          // packets that the core refuses (MSG)
};

/// A lie of the bench about what the receiver did, to show that the model notices.
enum class Lie { None, Strobe, WordBit, EarlyAck, LostCommit, Verdict, HistoryBit };

class Bench {
 public:
  explicit Bench(Stalls stalls = {}, std::uint64_t stream = 0)
      : model(kMac, kIp, kMemoryBase, kMemoryBytes),
        b("weft_rx_path"),
        memory(blank_memory(kMemoryBytes)),
        stalls_(stalls),
        mac_(stalls.mac, 10 + stream),
        aw_(stalls.aw, 11 + stream),
        w_(stalls.w, 12 + stream),
        bresp_(stalls.b, 13 + stream),
        commit_(stalls.commit, 14 + stream),
        ack_(stalls.ack, 15 + stream),
        ackin_(stalls.ackin, 16 + stream),
        rng_(weft::test::seed(), 0xbe + stream) {
    b->s_axis_tvalid = 0;
    b->cfg_valid_i = 0;
    b->m_axi_bvalid = 0;
    b->verdict_valid_i = b->fail_valid_i = 0;
    b->now_i = static_cast<std::uint32_t>(rng_());
    b.reset();
    run(kNumConns * kPathsPerPort + 4);  // deaf until the flags are clear
    configure(weft::cfg::Port{kMac, kIp}.words(), weft::cfg::Table::kPort, kPort);
    configure(weft::cfg::Port{1, 2}.words(), weft::cfg::Table::kPort, kPort - 1);  // somebody else's
    const auto regions = test_regions();
    for (unsigned i = 0; i < regions.size(); ++i) region(i, regions[i]);
    global(12, 200);
  }

  Model model;
  weft::test::Bench<Vrx_flat> b;
  std::vector<std::uint8_t> memory;
  Lie lie = Lie::None;
  bool hold_acks = false;    // no ack leaves
  bool refuse_next = false;  // the core refuses the next packet it is told of
  std::function<bool(std::uint64_t burst)> response_error = [](std::uint64_t) { return false; };
  std::function<void(const Ack&, std::uint64_t cycle)> on_ack = [](const Ack&, std::uint64_t) {};

  void configure(const weft::cfg::Words& words, weft::cfg::Table table, unsigned index) {
    put(words, table, index);
    run(16);
  }
  void global(unsigned mtu_log2, unsigned ack_hold) {
    weft::cfg::Global g;
    g.mtu_log2 = static_cast<std::uint8_t>(mtu_log2);
    g.ack_hold = ack_hold;
    configure(g.words(), weft::cfg::Table::kGlobal, 0);
    model.mtu(1U << mtu_log2);
  }
  void region(unsigned index, const Region& r) {
    weft::cfg::Region w;
    w.valid = r.valid;
    w.key = r.key;
    w.remote_write = r.remote_write;
    w.base = r.base;
    w.limit = r.limit;
    configure(w.words(), weft::cfg::Table::kRegion, index);
    model.configure(r, index);
  }
  /// CfgConn, and no longer.
  void reconnect(unsigned conn, const Conn& c) {
    weft::cfg::Conn w;
    w.valid = c.valid;
    w.incarnation = c.incarnation;
    w.rx_psn = c.rx_psn;
    w.share = c.share;
    const std::uint64_t at = cycle_;
    put(w.words(), weft::cfg::Table::kConn, conn * 2 + kPort);
    model.end_life(conn, at);
    core_failed_[conn] = false;
    run(kJudged);  // frames that the receiver has begun to judge are of the life before
    model.configure(conn, c);
  }
  /// ... and until it serves.
  void connect(unsigned conn, const Conn& c) {
    reconnect(conn, c);
    run(58);
  }

  /// The core fails a connection for a packet of another port.
  void core_fails(unsigned conn, wire::Err status) {
    core_failed_[conn] = true;
    failing_ = {conn, static_cast<std::uint8_t>(status)};
    cycle();
  }

  void send(Sent s) { to_send_.push_back(std::move(s)); }
  void send(wire::Frame f) { to_send_.push_back({std::move(f), false}); }
  std::size_t queued() const { return to_send_.size(); }
  /// All frames judged, and all that was accepted written and committed: the packet buffer is empty.
  bool quiet() const { return to_send_.empty() && offset_ == 0 && judging_.empty() && model.waiting() == 0; }
  std::uint64_t overflows() const { return model.drops()[static_cast<std::size_t>(wire::Drop::OVERFLOW)]; }
  std::uint64_t acks_sent() const { return acks_sent_; }
  std::uint64_t acks_again() const { return acks_again_; }
  std::uint64_t acks_void() const { return acks_void_; }
  std::uint64_t bursts() const { return bursts_; }
  unsigned max_outstanding() const { return max_outstanding_; }

  void run(std::uint64_t cycles) {
    for (std::uint64_t i = 0; i < cycles; ++i) cycle();
  }
  /// Until all frames are in, judged and committed, and every ack that waits has had time to leave.
  void drain(std::uint64_t settle = 1500) {
    while (!to_send_.empty() || offset_ != 0 || !judging_.empty() || model.waiting() != 0) cycle();
    run(settle);
  }
  void at_rest() {
    model.at_rest(memory);
    if (!b->idle_o) throw CheckFailed("not idle at rest");
    std::uint64_t drops = 0;
    for (std::size_t i = 0; i < wire::kDropCount; ++i) {
      if (model.drops()[i] != drop_pulses_[i])
        throw CheckFailed("drops counted differ: " + std::to_string(i));
      drops += drop_pulses_[i];
    }
    const std::uint64_t accepted = evt_data_ + evt_probes_ + evt_acks_;
    if (accepted != model.accepted()) throw CheckFailed("accepted frames counted differ");
    if (frames_ != accepted + drops) throw CheckFailed("frames in != accepted + dropped");
    if (frames_ != evt_frames_) throw CheckFailed("frames in counted differ");
    if (evt_bytes_ + model.not_committed() != model.payload_bytes())
      throw CheckFailed("bytes counted differ");
    if (strobed_ != model.payload_bytes()) throw CheckFailed("bytes strobed differ from payload bytes");
    if (evt_ce_ != model.ce_packets() || evt_sent_ != acks_sent_)
      throw CheckFailed("CE or acks counted differ");
  }
  void cycle() {
    drive();
    b.eval();
    observe();
    b.tick();
    ++b->now_i;
    ++cycle_;
    if (judging_.empty() && to_send_.empty()) b.progress();
  }
  std::uint64_t now() const { return cycle_; }

 private:
  // From the cycle in which a frame looks at its connection to the one in which its verdict is seen.
  static constexpr unsigned kJudged = 5;

  struct Answer {
    std::uint64_t ready_cycle;
    unsigned conn, life;
    CoreVerdict verdict;
  };
  struct Burst {
    std::uint64_t addr;
    unsigned beats;
  };
  struct Word {
    std::array<std::uint32_t, 16> data;
    std::uint64_t strobe;
    bool last;
  };
  struct Response {
    std::uint64_t ready_cycle;
    bool error;
  };

  void put(const weft::cfg::Words& words, weft::cfg::Table table, unsigned index) {
    b->cfg_valid_i = 1;
    b->cfg_kind_i = static_cast<std::uint8_t>(table);
    b->cfg_index_i = static_cast<std::uint16_t>(index);
    for (unsigned i = 0; i < words.size(); ++i) b->cfg_data_i[i] = words[i];
    cycle();
    b->cfg_valid_i = 0;
  }

  void fail(unsigned conn, std::uint8_t status) {
    b->fail_valid_i = 1;
    b->fail_conn_i = static_cast<std::uint16_t>(conn);
    b->fail_status_i = status;
    model.fail(conn, status, cycle_);
  }

  void drive() {
    answer();
    if (b_taken_) b->m_axi_bvalid = 0;
    b_taken_ = false;
    b->s_axis_tvalid = 0;
    if (!to_send_.empty() && mac_.go()) {
      const Sent& s = to_send_.front();
      const std::size_t n = std::min<std::size_t>(64, s.frame.size() - offset_);
      std::array<std::uint8_t, 64> beat;
      rng_.fill(beat);  // bytes behind the end are anything
      std::copy_n(s.frame.begin() + static_cast<std::ptrdiff_t>(offset_), n, beat.begin());
      std::memcpy(&b->s_axis_tdata[0], beat.data(), 64);
      b->s_axis_tkeep = n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
      b->s_axis_tlast = offset_ + n == s.frame.size();
      b->s_axis_tuser = b->s_axis_tlast ? s.mac_error : rng_.chance(0.5);  // counts in the last beat only
      b->s_axis_tvalid = 1;
      offset_ += n;
      if (b->s_axis_tlast) {
        offset_ = 0;
        ++frames_;
        judging_.push_back(std::move(to_send_.front()));
        to_send_.pop_front();
      }
    }
    b->m_axi_awready = aw_.go();
    b->m_axi_wready = w_.go();
    if (!b->m_axi_bvalid && !responses_.empty() && responses_.front().ready_cycle <= cycle_ && bresp_.go()) {
      b->m_axi_bvalid = 1;
      b->m_axi_bresp = responses_.front().error ? 2 : 0;
    }
    b->commit_ready_i = commit_.go();
    b->ack_ready_i = static_cast<std::uint8_t>((ack_.go() && !hold_acks) | ackin_.go() << 1);
  }

  // The core: a packet whose memory failed, or that `refuse` picks, fails its connection; then all are
  // refused.
  void answer() {
    b->verdict_valid_i = b->fail_valid_i = 0;
    if (failing_) {
      fail(failing_->first, failing_->second);
      failing_.reset();
      return;
    }
    if (answers_.empty() || answers_.front().ready_cycle > cycle_) return;
    Answer a = answers_.front();
    answers_.pop_front();
    if (a.life != model.life(a.conn)) {
      a.verdict = {wire::Drop::INCARNATION};
    } else if (core_failed_[a.conn]) {
      a.verdict = {wire::Drop::STREAM};
    } else if (a.verdict.refused()) {
      core_failed_[a.conn] = true;
      const auto status = static_cast<std::uint8_t>(
          a.verdict.reason == wire::Drop::MEM ? wire::Err::REMOTE_MEM : wire::Err::BAD_LENGTH);
      fail(a.conn, status);
    }
    b->verdict_valid_i = 1;
    b->verdict_refused_i = a.verdict.refused();
    b->verdict_reason_i = static_cast<std::uint8_t>(a.verdict.reason);
    model.answered(a.verdict);
  }

  void observe() {
    verdicts();
    memory_side();
    outputs();
  }

  void verdicts() {
    std::bitset<wire::kDropCount> drop(b->drop_o);
    evt_data_ += b->evt_data_o;
    evt_probes_ += b->evt_probes_o;
    evt_acks_ += b->evt_acks_o;
    evt_ce_ += b->evt_ce_o;
    evt_bytes_ += b->evt_bytes_o;
    evt_sent_ += b->evt_acks_sent_o;
    evt_frames_ += b->evt_frames_o;
    for (std::size_t i = 0; i < drop.size(); ++i) drop_pulses_[i] += drop[i];
    if (drop.count() > 1) throw CheckFailed("two drops in a cycle");
    if (b->evt_frames_o) {
      if (judging_.empty()) throw CheckFailed("a verdict without a frame");
      const Sent& s = judging_.front();
      const auto said = [&](wire::Drop d) { return b->refused_o && drop[static_cast<std::size_t>(d)]; };
      const Verdict v =
          model.judge(s.frame, s.mac_error, said(wire::Drop::OVERFLOW), said(wire::Drop::CONN), cycle_);
      if (v.drop && lie == Lie::Verdict && drop.any()) drop = 0;
      if (v.drop) {
        const auto want = static_cast<std::size_t>(*v.drop);
        b.event("frame of %llu bytes refused, reason %llu (want), %llx (got)", s.frame.size(), want,
                drop.to_ullong());
        if (!drop[want]) {
          std::string got;
          for (std::size_t i = 0; i < drop.size(); ++i) {
            if (drop[i]) got += wire::name(static_cast<wire::Drop>(i));
          }
          throw CheckFailed(std::string("verdict is ") + (got.empty() ? "accept" : got) + ", should be " +
                            wire::name(*v.drop));
        }
        drop = 0;
      } else {
        b.event("frame of %llu bytes accepted, kind %llu", s.frame.size(), static_cast<unsigned>(v.kind));
      }
      judging_.pop_front();
      b.progress();
    }
    if (b->evt_data_o || b->evt_probes_o) model.committed(b->evt_probes_o, cycle_);
    for (std::size_t i = 0; i < drop.size(); ++i) {
      if (!drop[i]) continue;
      if (late_.empty() || late_.front() != static_cast<wire::Drop>(i))
        throw CheckFailed("a drop of nothing");
      late_.pop_front();
    }
    if (b->late_valid_o) {
      late_.push_back(static_cast<wire::Drop>(b->late_reason_o));
      model.late_drop(late_.back(), cycle_);
    }
  }

  void memory_side() {
    if (b->m_axi_awvalid && b->m_axi_awready) {
      const Burst burst{b->m_axi_awaddr, b->m_axi_awlen + 1U};
      if (burst.addr % 64 != 0) throw CheckFailed("AXI address not aligned");
      if (burst.addr / 4096 != (burst.addr + 64 * burst.beats - 1) / 4096)
        throw CheckFailed("AXI burst crosses 4 KB");
      addresses_.push_back(burst);
      ++bursts_;
    }
    if (b->m_axi_wvalid && b->m_axi_wready) {
      Word w;
      for (unsigned i = 0; i < 16; ++i) w.data[i] = b->m_axi_wdata[i];
      w.strobe = b->m_axi_wstrb;
      w.last = b->m_axi_wlast;
      if (lie == Lie::Strobe && ++lies_ % 50 == 0) w.strobe ^= 1U << 7;
      if (lie == Lie::WordBit && ++lies_ % 50 == 0) {
        const auto byte = static_cast<unsigned>(std::countr_zero(w.strobe));
        w.data[byte / 4] ^= 1U << (byte % 4 * 8 + 3);
      }
      words_.push_back(w);
    }
    while (!addresses_.empty() && !words_.empty()) {
      Burst& burst = addresses_.front();
      write(burst.addr, words_.front());
      const bool last = words_.front().last;
      words_.pop_front();
      burst.addr += 64;
      if (last != (--burst.beats == 0)) throw CheckFailed("AXI wlast at the wrong word");
      if (!last) continue;
      addresses_.pop_front();
      std::uint64_t at = cycle_ + rng_.range(stalls_.b_min, stalls_.b_max);
      if (!responses_.empty()) at = std::max(at, responses_.back().ready_cycle);
      responses_.push_back({at, response_error(response_count_++)});
      max_outstanding_ = std::max<unsigned>(max_outstanding_, static_cast<unsigned>(responses_.size()));
    }
    if (lie == Lie::EarlyAck && b->m_axi_bvalid && b->m_axi_bready && ++lies_ == 50) {
      responses_.pop_front();  // the receiver takes a response that "never came"
      b_taken_ = true;
      return;
    }
    if (b->m_axi_bvalid && b->m_axi_bready) {
      model.response(responses_.front().error);
      responses_.pop_front();
      b_taken_ = true;
    }
  }

  void write(std::uint64_t addr, const Word& w) {
    for (unsigned i = 0; i < 64; ++i) {
      if (!(w.strobe >> i & 1)) continue;
      const std::uint64_t at = addr + i - kMemoryBase;
      if (at >= memory.size()) throw CheckFailed("write outside memory");
      memory[at] = static_cast<std::uint8_t>(w.data[i / 4] >> (8 * (i % 4)));
      ++strobed_;
    }
  }

  void outputs() {
    if (b->idle_o && (!judging_.empty() || model.waiting() != 0 || b->m_axi_awvalid || b->m_axi_wvalid ||
                      b->commit_valid_o || b->ack_valid_o || b->drop_o || b->evt_frames_o)) {
      throw CheckFailed("idle with something inside");
    }
    if (b->commit_valid_o && b->commit_ready_i) {
      if (!(lie == Lie::LostCommit && ++lies_ == 50)) {
        CoreVerdict v =
            model.commit({b->commit_conn_o, b->commit_incarnation_o, b->commit_mem_error_o != 0,
                          b->commit_stream_o, b->commit_msg_no_o, b->commit_msg_len_o, b->commit_va_o,
                          b->commit_len_o, b->commit_signal_o != 0, b->commit_sem_o, b->commit_value_o});
        if (!v.refused() && (refuse_next || rng_.chance(stalls_.refuse))) v = {wire::Drop::MSG};
        refuse_next = false;
        std::uint64_t at = cycle_ + rng_.range(stalls_.verdict_min, stalls_.verdict_max);
        if (!answers_.empty()) at = std::max(at, answers_.back().ready_cycle + 1);
        answers_.push_back({at, b->commit_conn_o, model.life(b->commit_conn_o), v});
      }
    }
    if ((b->ack_valid_o & 1) && !offered_) {  // looked at when first offered: it may not run ahead of memory
      Ack a = ack(0);
      if (lie == Lie::HistoryBit && ++lies_ == 20) a.hist.flip(0);
      b.event("ack conn %llu path %llu base %llx", a.conn, a.path, a.base);
      model.ack_built(a, cycle_);
      on_ack(a, cycle_);
      offered_ = true;
    }
    if ((b->ack_valid_o & 1) && (b->ack_ready_i & 1)) {
      ++acks_sent_;
      offered_ = false;
    }
    acks_again_ += b->evt_acks_again_o;
    acks_void_ += b->evt_acks_void_o;
    if ((b->ack_valid_o & 2) && (b->ack_ready_i & 2)) model.ack_received(ack(1));
  }

  Ack ack(unsigned i) {
    Ack a;
    const auto word = [](auto&& wide, unsigned at) -> std::uint32_t { return wide[at]; };
    a.conn = static_cast<std::uint16_t>(b->ack_conn_o >> (12 * i) & 0xfff);
    a.incarnation = static_cast<std::uint16_t>(b->ack_incarnation_o >> (16 * i));
    a.path = static_cast<std::uint8_t>(b->ack_path_o >> (8 * i));
    a.epoch = static_cast<std::uint8_t>(b->ack_epoch_o >> (8 * i));
    a.base = static_cast<std::uint32_t>(b->ack_base_o >> (24 * i)) & kPsnMask;
    a.hist_words = b->ack_hist_words_o >> (4 * i) & 0xf;
    for (unsigned k = 0; k < wire::kHistBits; ++k) {
      a.hist[k] = (i == 0 ? word(b->ack_hist0_o, k / 32) : word(b->ack_hist1_o, k / 32)) >> (k % 32) & 1;
    }
    a.ce_bytes = static_cast<std::uint32_t>(b->ack_ce_bytes_o >> (32 * i));
    a.rx_bytes = static_cast<std::uint32_t>(b->ack_rx_bytes_o >> (32 * i));
    a.echo = static_cast<std::uint32_t>(b->ack_echo_o >> (32 * i));
    a.share = static_cast<std::uint32_t>(b->ack_share_o >> (32 * i));
    a.credits = static_cast<std::uint16_t>(b->ack_credits_o >> (16 * i));
    a.status = static_cast<std::uint8_t>(b->ack_status_o >> (8 * i));
    return a;
  }

  Stalls stalls_;
  weft::test::Stall mac_, aw_, w_, bresp_, commit_, ack_, ackin_;
  weft::test::Rng rng_;
  std::deque<Sent> to_send_, judging_;
  std::size_t offset_ = 0;  // of the frame being sent
  std::deque<Burst> addresses_;
  std::deque<Word> words_;
  std::deque<Response> responses_;
  std::deque<Answer> answers_;
  std::deque<wire::Drop> late_;  // dropped behind their write, not on drop_o yet
  std::array<bool, kNumConns> core_failed_{};
  std::optional<std::pair<unsigned, std::uint8_t>> failing_;
  bool offered_ = false, b_taken_ = false;
  std::uint64_t cycle_ = 0, frames_ = 0, bursts_ = 0, response_count_ = 0, strobed_ = 0, lies_ = 0;
  std::uint64_t acks_sent_ = 0, acks_again_ = 0, acks_void_ = 0;
  std::uint64_t evt_frames_ = 0, evt_data_ = 0, evt_probes_ = 0, evt_acks_ = 0, evt_ce_ = 0, evt_bytes_ = 0,
                evt_sent_ = 0;
  unsigned max_outstanding_ = 0;
  std::array<std::uint64_t, wire::kDropCount> drop_pulses_{};
};

}  // namespace rx
