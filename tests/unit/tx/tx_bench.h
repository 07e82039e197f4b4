// SPDX-License-Identifier: Apache-2.0
//
// The surroundings of weft_tx_path for its tests and its benchmark: jobs and acks, an AXI memory with
// latency, a MAC, and a check of every frame that comes out. Whole frames are compared with weft::wire; ICRC
// (zlib) and IP checksum are worked out a second time here, from the bytes on the wire. Nothing here stops a
// test: what is wrong is counted and described in errors(), so that a test can also expect it.
//
// B is a bench of the model tx_flat with eval(), tick(), cycle(), progress() and -> (weft::test::Bench has
// them).
#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frame.h"
#include "weft_test.h"

namespace weft::tx {

inline constexpr unsigned kPort = 1, kNumPorts = 2, kNumConns = 64, kPathsPerPort = 8;  // of tx_flat
inline constexpr unsigned kBeat = 64;

struct Job {
  bool probe{};
  uint16_t conn{};
  uint8_t path{}, epoch{};
  uint32_t psn{};
  uint16_t len{};
  bool retx{}, more{}, signal{};
  uint64_t laddr{}, raddr{};
  uint32_t rkey{};
  uint16_t stream{}, msg_no{};
  uint32_t msg_len{};
  uint16_t sem{};
  uint32_t value{};
};

struct Ack {
  uint16_t conn{};
  uint8_t path{}, epoch{};
  uint32_t base{};
  uint8_t hist_words{};            // not looked at by the builder
  std::array<uint32_t, 8> hist{};  // bit i of the 256 = PSN base-1-i
  uint32_t ce_bytes{}, rx_bytes{}, echo{}, share{};
  uint16_t credits{};
  uint8_t status{};
};

/// One end of the wire as the tables know it.
struct Peer {
  uint64_t mac{};
  uint32_t ip{};
  uint32_t rconn{};
  uint16_t incarnation{}, sport{};
};

/// How often each stream is held back, and how slow memory is.
struct Stalls {
  double job{}, ack{}, axi_addr{}, axi_data{}, mac{};
  unsigned latency{40};  // cycles from a read's address to its first beat
};

inline Stalls all_stalls(double p, unsigned latency) {
  return {p, p, p, p, p, latency};
}

/// What a memory holds without holding it: each 64-byte line follows from its number.
struct Memory {
  uint64_t seed{};
  uint64_t error_one_in{};  // so many lines make one that answers SLVERR; 0: none

  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::array<uint64_t, 8> line(uint64_t number) const {
    std::array<uint64_t, 8> words{};
    for (unsigned i = 0; i < 8; ++i) words[i] = mix(seed + (number * 8 + i + 1) * 0x9e3779b97f4a7c15u);
    return words;
  }
  bool fails(uint64_t number) const { return error_one_in != 0 && mix(number ^ 0xe44) % error_one_in == 0; }
  std::vector<uint8_t> bytes(uint64_t addr, size_t len) const {
    std::vector<uint8_t> out(len);
    for (size_t done = 0; done < len;) {
      const auto words = line((addr + done) / kBeat);
      const size_t at = (addr + done) % kBeat, n = std::min<size_t>(kBeat - at, len - done);
      std::memcpy(out.data() + done, reinterpret_cast<const uint8_t*>(words.data()) + at, n);
      done += n;
    }
    return out;
  }
  bool any_fails(uint64_t addr, size_t len) const {
    if (len == 0) return false;
    for (uint64_t l = addr / kBeat; l <= (addr + len - 1) / kBeat; ++l) {
      if (fails(l)) return true;
    }
    return false;
  }
};

/// ICRC over a frame by zlib and the masks of the specification; independent of weft::wire.
inline uint32_t icrc_by_zlib(const uint8_t* frame, size_t bytes_without_icrc) {
  std::vector<uint8_t> seen(8, 0xff);
  seen.insert(seen.end(), frame + 14, frame + bytes_without_icrc);
  uint8_t* ip = seen.data() + 8;
  ip[1] = ip[8] = ip[10] = ip[11] = 0xff;  // TOS, TTL, checksum
  ip[20 + 6] = ip[20 + 7] = 0xff;          // UDP checksum
  ip[20 + 8 + 4] = 0xff;                   // FECN, BECN, resv6
  return static_cast<uint32_t>(::crc32(0, seen.data(), static_cast<uInt>(seen.size())));
}

template <class B>
class Surroundings {
 public:
  struct Counts {
    uint64_t frames{}, bytes{}, data{}, probes{}, acks{}, mem_errors{}, reads{}, stalled{};
    bool operator==(const Counts&) const = default;
  };

  Surroundings(B& bench, const Stalls& stalls, uint64_t seed)
      : b_(bench),
        stalls_(stalls),
        rng_(seed, 77),
        job_stall_(stalls.job, 11, seed),
        ack_stall_(stalls.ack, 12, seed),
        addr_stall_(stalls.axi_addr, 13, seed),
        data_stall_(stalls.axi_data, 14, seed),
        mac_stall_(stalls.mac, 15, seed) {
    memory.seed = seed;
    port_.mac = rng_() & 0xffffffffffff;
    port_.ip = static_cast<uint32_t>(rng_());
    for (auto& peer : peers_) {
      peer.mac = rng_() & 0xffffffffffff;
      peer.ip = static_cast<uint32_t>(rng_());
      peer.rconn = static_cast<uint32_t>(rng_()) & 0xffffff;
      peer.incarnation = static_cast<uint16_t>(rng_());
      peer.sport = static_cast<uint16_t>(rng_());
    }
  }

  Memory memory;
  /// Called when the next one is wanted; nothing: none for now.
  std::function<std::optional<Job>()> next_job;
  std::function<std::optional<Ack>()> next_ack;
  /// Called with each frame that was right or wrong: bytes, cycle of its last beat.
  std::function<void(const std::vector<uint8_t>&, uint64_t)> on_frame;
  /// Applied to what the MAC saw before it is checked: for tests of the check.
  std::function<void(std::vector<uint8_t>&)> corrupt;

  Peer& port() { return port_; }
  Peer& peer(unsigned conn) { return peers_[conn]; }

  /// Reset and write the tables.
  void start() {
    b_->job_valid_i = b_->ack_valid_i = 0;
    b_->m_axi_arready = b_->m_axi_rvalid = b_->m_axis_tready = 0;
    b_->cfg_port_i = b_->cfg_conn_i = 0;
    b_.reset();
    set_cfg(port_);
    b_->cfg_index_i = kPort;
    b_->cfg_port_i = 1;
    b_.tick();
    b_->cfg_port_i = 0;
    for (unsigned i = 0; i < 15; ++i) b_.tick();
    for (unsigned conn = 0; conn < kNumConns; ++conn) configure(conn);
    // Another port's table must not matter.
    Peer other{0x112233445566, 0x01020304, 5, 6, 7};
    set_cfg(other);
    b_->cfg_index_i = 3 * kNumPorts + (kPort ^ 1);
    b_->cfg_conn_i = 1;
    b_.tick();
    b_->cfg_conn_i = 0;
    for (unsigned i = 0; i < 15; ++i) b_.tick();
  }

  void configure(unsigned conn) {
    set_cfg(peers_[conn]);
    b_->cfg_index_i = static_cast<uint16_t>(conn * kNumPorts + kPort);
    b_->cfg_conn_i = 1;
    b_.tick();
    b_->cfg_conn_i = 0;
    for (unsigned i = 0; i < 15; ++i) b_.tick();
  }

  /// One clock cycle.
  void step() {
    const uint64_t now = b_.cycle();
    b_->now_i = static_cast<uint32_t>(now);
    offer_job();
    offer_ack();
    b_->m_axi_arready = addr_stall_.go();
    offer_read_data(now);
    b_->m_axis_tready = mac_stall_.go();
    b_.eval();

    if (b_->job_valid_i && b_->job_ready_o) {
      jobs_.push_back({job_, now, memory.any_fails(job_.laddr, job_.probe ? 0 : job_.len)});
      if (jobs_.back().bad) bad_conns_.push_back(job_.conn);
      if (!job_.probe && job_.len != 0) {
        const uint64_t first = job_.laddr / kBeat, last = (job_.laddr + job_.len - 1) / kBeat;
        for (uint64_t l = first; l <= last; ++l) lines_.push_back(l);
      }
      job_there_ = false;
    }
    if (b_->ack_valid_i && b_->ack_ready_o) {
      acks_.push_back({ack_, now});
      ack_there_ = false;
    }
    take_read_address(now);
    if (b_->m_axi_rvalid && b_->m_axi_rready) {
      if (++bursts_.front().done == bursts_.front().beats) bursts_.pop_front();
      read_there_ = false;
    }
    if (!b_->m_axi_rready) wrong("rready is low", 0, 0);
    take_beat(now);
    count();
    b_.tick();
  }

  /// Steps until `frames` frames have come out in all.
  void run(uint64_t frames) {
    while (seen_.frames < frames) step();
  }
  /// No new work; steps until all that was taken has come out, and compares the counters.
  void drain() {
    next_job = nullptr;
    next_ack = nullptr;
    while (!jobs_.empty() || !acks_.empty() || job_there_ || ack_there_) {
      step();
      while (!jobs_.empty() && jobs_.front().bad && bad_seen_ > bad_passed_) pass_bad();
    }
    for (unsigned i = 0; i < 100; ++i) step();
    seen_.reads = reads_;
    seen_.mem_errors = bad_seen_;
    seen_.stalled = counted_.stalled;  // not known from outside
    if (!(seen_ == counted_)) wrong("counters disagree", seen_.frames, counted_.frames);
    if (!lines_.empty()) wrong("payload not read", lines_.size(), 0);
    if (!bad_conns_.empty()) wrong("memory error not reported", bad_conns_.size(), 0);
  }

  uint64_t wrong_frames() const { return wrong_; }
  /// The first few things that were wrong, one a line.
  const std::string& errors() const { return errors_; }
  const Counts& seen() const { return seen_; }
  const Counts& counted() const { return counted_; }
  uint64_t max_ack_wait() const { return max_ack_wait_; }
  uint64_t max_flight() const { return max_flight_; }
  /// Longest time from a frame's timestamp to its first beat.
  uint64_t max_age() const { return max_age_; }
  /// Memory answers nothing before this cycle.
  void hold_memory(uint64_t until) { hold_until_ = until; }

 private:
  struct SentJob {
    Job job;
    uint64_t cycle;
    bool bad;
  };
  struct SentAck {
    Ack ack;
    uint64_t cycle;
  };
  struct Burst {
    uint64_t line;
    unsigned beats, done;
    uint64_t ready;
  };

  void set_cfg(const Peer& p) {
    b_->cfg_mac_i = p.mac;
    b_->cfg_ip_i = p.ip;
    b_->cfg_rconn_i = p.rconn;
    b_->cfg_incarnation_i = p.incarnation;
    b_->cfg_sport_i = p.sport;
  }

  void offer_job() {
    if (!job_there_ && next_job && job_stall_.go()) {
      if (const auto job = next_job()) {
        job_ = *job;
        job_there_ = true;
        b_->job_probe_i = job_.probe;
        b_->job_conn_i = job_.conn;
        b_->job_path_i = job_.path;
        b_->job_epoch_i = job_.epoch;
        b_->job_psn_i = job_.psn;
        b_->job_len_i = job_.len;
        b_->job_retx_i = job_.retx;
        b_->job_more_i = job_.more;
        b_->job_signal_i = job_.signal;
        b_->job_laddr_i = job_.laddr;
        b_->job_raddr_i = job_.raddr;
        b_->job_rkey_i = job_.rkey;
        b_->job_stream_i = job_.stream;
        b_->job_msg_no_i = job_.msg_no;
        b_->job_msg_len_i = job_.msg_len;
        b_->job_sem_i = job_.sem;
        b_->job_value_i = job_.value;
      }
    }
    b_->job_valid_i = job_there_;
  }

  void offer_ack() {
    if (!ack_there_ && next_ack && ack_stall_.go()) {
      if (const auto ack = next_ack()) {
        ack_ = *ack;
        ack_there_ = true;
        b_->ack_conn_i = ack_.conn;
        b_->ack_path_i = ack_.path;
        b_->ack_epoch_i = ack_.epoch;
        b_->ack_base_i = ack_.base;
        b_->ack_hist_words_i = ack_.hist_words;
        for (unsigned i = 0; i < 8; ++i) b_->ack_hist_i[i] = ack_.hist[i];
        b_->ack_ce_bytes_i = ack_.ce_bytes;
        b_->ack_rx_bytes_i = ack_.rx_bytes;
        b_->ack_echo_i = ack_.echo;
        b_->ack_share_i = ack_.share;
        b_->ack_credits_i = ack_.credits;
        b_->ack_status_i = ack_.status;
      }
    }
    b_->ack_valid_i = ack_there_;
  }

  void take_read_address(uint64_t now) {
    if (!b_->m_axi_arvalid || !b_->m_axi_arready) return;
    const uint64_t addr = b_->m_axi_araddr;
    const unsigned beats = b_->m_axi_arlen + 1u;
    if (addr % kBeat != 0) wrong("read address not aligned", addr, 0);
    if (addr / 4096 != (addr + uint64_t{beats} * kBeat - 1) / 4096) wrong("read crosses 4 KB", addr, beats);
    // Exactly the lines that hold payload, in order.
    for (unsigned i = 0; i < beats; ++i) {
      if (lines_.empty() || lines_.front() != addr / kBeat + i) {
        wrong("read of a line that no job needs now", addr / kBeat + i, 0);
        break;
      }
      lines_.pop_front();
    }
    bursts_.push_back({addr / kBeat, beats, 0, now + stalls_.latency});
    ++reads_;
    uint64_t flight = 0;
    for (const auto& burst : bursts_) flight += burst.beats - burst.done;
    max_flight_ = std::max(max_flight_, flight);
  }

  void offer_read_data(uint64_t now) {
    if (!read_there_ && !bursts_.empty() && bursts_.front().ready <= now && now >= hold_until_ &&
        data_stall_.go()) {
      const Burst& burst = bursts_.front();
      const auto words = memory.line(burst.line + burst.done);
      std::memcpy(&b_->m_axi_rdata[0], words.data(), kBeat);
      b_->m_axi_rlast = burst.done + 1 == burst.beats;
      b_->m_axi_rresp = memory.fails(burst.line + burst.done) ? 2 : 0;
      read_there_ = true;
    }
    b_->m_axi_rvalid = read_there_;
  }

  void take_beat(uint64_t now) {
    if (in_frame_ && !b_->m_axis_tvalid) wrong("tvalid dropped inside a frame", now, 0);
    if (!b_->m_axis_tvalid) return;
    if (!shown_) {
      shown_ = true;
      if (!in_frame_) first_cycle_ = now;
    }
    if (!b_->m_axis_tready) return;
    shown_ = false;
    const uint64_t keep = b_->m_axis_tkeep;
    unsigned bytes = kBeat;
    if (b_->m_axis_tlast) {
      bytes = static_cast<unsigned>(__builtin_popcountll(keep));
      if (bytes != kBeat && keep != (uint64_t{1} << bytes) - 1) wrong("tkeep has holes", keep, 0);
    } else if (keep != ~uint64_t{0}) {
      wrong("tkeep not full inside a frame", keep, 0);
    }
    const auto* data = reinterpret_cast<const uint8_t*>(&b_->m_axis_tdata[0]);
    frame_.insert(frame_.end(), data, data + bytes);
    in_frame_ = !b_->m_axis_tlast;
    if (in_frame_) return;
    b_.progress();
    if (corrupt) corrupt(frame_);
    check();
    if (on_frame) on_frame(frame_, now);
    frame_.clear();
  }

  void count() {
    counted_.frames += b_->cnt_frames_o;
    counted_.bytes += b_->cnt_bytes_o;
    counted_.data += b_->cnt_data_o;
    counted_.probes += b_->cnt_probes_o;
    counted_.acks += b_->cnt_acks_o;
    counted_.mem_errors += b_->cnt_mem_err_o;
    counted_.reads += b_->cnt_reads_o;
    counted_.stalled += b_->cnt_stalled_o;
    if (!b_->err_valid_o) return;
    b_.progress();
    ++bad_seen_;
    if (bad_conns_.empty() || bad_conns_.front() != b_->err_conn_o) {
      wrong("memory error reported for the wrong connection", b_->err_conn_o, bad_seen_);
    }
    if (!bad_conns_.empty()) bad_conns_.pop_front();
  }

  void pass_bad() {
    ++bad_passed_;
    jobs_.pop_front();
  }

  wire::Route route(uint16_t conn, uint8_t path, uint8_t ecn) const {
    const Peer& p = peers_[conn];
    wire::Route r;
    r.smac = port_.mac;
    r.dmac = p.mac;
    r.sip = port_.ip;
    r.dip = p.ip;
    r.sport = static_cast<uint16_t>(p.sport + path);
    r.ecn = ecn;
    return r;
  }

  /// The frame that should have come, but for its timestamp; nothing: no such frame was asked.
  std::vector<uint8_t> expected(bool ack, uint32_t timestamp, uint64_t& asked) {
    wire::Wth wth;
    wth.timestamp = timestamp;
    if (ack) {
      if (acks_.empty()) return {};
      const Ack a = acks_.front().ack;
      asked = acks_.front().cycle;
      acks_.pop_front();
      ++seen_.acks;
      max_ack_wait_ = std::max(max_ack_wait_, first_cycle_ - asked);
      wire::Wah wah;
      std::array<uint32_t, wire::kHistWords> words{};
      for (unsigned w = 0; w < 8; ++w) {
        if (a.hist[w] != ~0u) wah.hist_words = static_cast<uint8_t>(w + 1);
        for (unsigned i = 0; i < 32; ++i) words[w] |= ((a.hist[w] >> i) & 1u) << (31 - i);
      }
      wah.base = a.base;
      wah.ce_bytes = a.ce_bytes;
      wah.rx_bytes = a.rx_bytes;
      wah.echo = a.echo;
      wah.share = a.share;
      wah.credits = a.credits;
      wah.status = a.status;
      wth.path = static_cast<uint8_t>(kPort * kPathsPerPort + a.path);
      wth.epoch = a.epoch;
      wth.incarnation = peers_[a.conn].incarnation;
      return wire::build_ack(route(a.conn, a.path, 0),
                             wire::make_bth(wire::Opcode::ACK, peers_[a.conn].rconn, 0), wth, wah, words);
    }
    while (!jobs_.empty() && jobs_.front().bad) pass_bad();
    if (jobs_.empty()) return {};
    const Job j = jobs_.front().job;
    asked = jobs_.front().cycle;
    jobs_.pop_front();
    wth.path = static_cast<uint8_t>(kPort * kPathsPerPort + j.path);
    wth.epoch = j.epoch;
    wth.incarnation = peers_[j.conn].incarnation;
    const uint32_t rconn = peers_[j.conn].rconn;
    if (j.probe) {
      ++seen_.probes;
      return wire::build_probe(route(j.conn, j.path, 0), wire::make_bth(wire::Opcode::PROBE, rconn, j.psn),
                               wth);
    }
    ++seen_.data;
    wire::Wdh wdh;
    wdh.more = j.more;
    wdh.retx = j.retx;
    wdh.stream = j.stream;
    wdh.va = j.raddr;
    wdh.rkey = j.rkey;
    wdh.msg_no = j.msg_no;
    wdh.sem = j.sem;
    wdh.msg_len = j.msg_len;
    wdh.value = j.value;
    const auto opcode = j.signal ? wire::Opcode::WRITE_SIGNAL : wire::Opcode::WRITE;
    return wire::build_data(route(j.conn, j.path, wire::kEcnEct0), wire::make_bth(opcode, rconn, j.psn), wth,
                            wdh, memory.bytes(j.laddr, j.len));
  }

  void check() {
    ++seen_.frames;
    seen_.bytes += frame_.size();
    if (frame_.size() < wire::kMinFrameBytes || frame_.size() > wire::kMaxFrameBytes) {
      wrong("impossible length", frame_.size(), 0);
      return;
    }
    uint32_t timestamp = 0;
    for (unsigned i = 58; i < 62; ++i) timestamp = timestamp << 8 | frame_[i];
    uint64_t asked = 0;
    const bool ack = frame_[42] == static_cast<uint8_t>(wire::Opcode::ACK);
    const auto want = expected(ack, timestamp, asked);
    if (want.empty()) {
      wrong("nobody asked for this frame", frame_.size(), frame_[42]);
      return;
    }
    if (want != frame_) {
      size_t at = 0;
      while (at < std::min(want.size(), frame_.size()) && want[at] == frame_[at]) ++at;
      wrong("differs at this byte, of so many", at, frame_.size());
      return;
    }
    const size_t covered = frame_.size() - 4;
    uint32_t icrc = 0;
    for (unsigned i = 0; i < 4; ++i) icrc |= uint32_t{frame_[covered + i]} << (8 * i);
    if (icrc != icrc_by_zlib(frame_.data(), covered)) wrong("ICRC is not zlib's", icrc, 0);
    uint32_t sum = 0;
    for (unsigned i = 14; i < 34; i += 2) sum += uint32_t{frame_[i]} << 8 | frame_[i + 1];
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    if (sum != 0xffff) wrong("IP checksum", sum, 0);
    if (timestamp < asked || timestamp >= first_cycle_) wrong("timestamp", timestamp, first_cycle_);
    max_age_ = std::max(max_age_, first_cycle_ - timestamp);
  }

  void wrong(const char* what, uint64_t a, uint64_t c) {
    ++wrong_;
    note(what, a, c);
  }
  void note(const char* what, uint64_t a, uint64_t c) {
    if constexpr (requires { b_.event(what, a, c); }) b_.event(what, a, c);
    if (errors_.size() > 2000) return;
    char text[200];
    std::snprintf(text, sizeof text, "cycle %llu, frame %llu: %s [%llx, %llx]\n",
                  static_cast<unsigned long long>(b_.cycle()), static_cast<unsigned long long>(seen_.frames),
                  what, static_cast<unsigned long long>(a), static_cast<unsigned long long>(c));
    errors_ += text;
  }

  B& b_;
  Stalls stalls_;
  weft::test::Rng rng_;
  weft::test::Stall job_stall_, ack_stall_, addr_stall_, data_stall_, mac_stall_;
  Peer port_;
  std::array<Peer, kNumConns> peers_{};

  Job job_{};
  Ack ack_{};
  bool job_there_ = false, ack_there_ = false, read_there_ = false;
  std::deque<SentJob> jobs_;
  std::deque<SentAck> acks_;
  std::deque<uint16_t> bad_conns_;
  std::deque<uint64_t> lines_;  // to be read for the jobs taken
  std::deque<Burst> bursts_;
  uint64_t hold_until_ = 0;

  std::vector<uint8_t> frame_;
  bool in_frame_ = false, shown_ = false;
  uint64_t first_cycle_ = 0;

  Counts seen_, counted_;
  uint64_t reads_ = 0, bad_seen_ = 0, bad_passed_ = 0, wrong_ = 0;
  uint64_t max_ack_wait_ = 0, max_flight_ = 0, max_age_ = 0;
  std::string errors_;
};

// ---- random work --------------------------------------------------------------------------------

/// Payload length with the interesting ones often: none, one beat more or less, full packets.
inline uint16_t random_len(weft::test::Rng& rng) {
  switch (rng.below(8)) {
    case 0: return static_cast<uint16_t>(rng.below(6));
    case 1: return static_cast<uint16_t>(rng.range(20, 110));
    case 2: return static_cast<uint16_t>(64u << rng.below(7));
    case 3: return static_cast<uint16_t>(rng.range(4000, 4096));
    case 4: return static_cast<uint16_t>(rng.below(4097));
    default: return static_cast<uint16_t>(rng.below(600));
  }
}

inline uint64_t random_addr(weft::test::Rng& rng, uint16_t len) {
  const uint64_t addr = rng() & 0x0000'ffff'ffff'ffff;
  if (rng.below(3) == 0)
    return (addr & ~uint64_t{4095}) - rng.below(uint64_t{len} + 64);  // about a 4 KB boundary
  return rng.below(4) == 0 ? addr & ~uint64_t{63} : addr;
}

inline Job random_job(weft::test::Rng& rng) {
  Job j;
  j.probe = rng.below(8) == 0;
  j.conn = static_cast<uint16_t>(rng.below(kNumConns));
  j.path = static_cast<uint8_t>(rng.below(kPathsPerPort));
  j.epoch = static_cast<uint8_t>(rng());
  j.psn = static_cast<uint32_t>(rng()) & 0xffffff;
  j.len = j.probe ? static_cast<uint16_t>(rng.below(4097)) : random_len(rng);  // a probe's len means nothing
  j.retx = rng.below(2);
  j.more = rng.below(2);
  j.signal = rng.below(2);
  j.laddr = random_addr(rng, j.len);
  j.raddr = rng();
  j.rkey = static_cast<uint32_t>(rng());
  j.stream = static_cast<uint16_t>(rng());
  j.msg_no = static_cast<uint16_t>(rng());
  j.msg_len = static_cast<uint32_t>(rng());
  j.sem = static_cast<uint16_t>(rng());
  j.value = static_cast<uint32_t>(rng());
  return j;
}

inline Ack random_ack(weft::test::Rng& rng) {
  Ack a;
  a.conn = static_cast<uint16_t>(rng.below(kNumConns));
  a.path = static_cast<uint8_t>(rng.below(kPathsPerPort));
  a.epoch = static_cast<uint8_t>(rng());
  a.base = static_cast<uint32_t>(rng()) & 0xffffff;
  a.hist_words = static_cast<uint8_t>(rng.below(9));
  a.hist.fill(~0u);
  const uint64_t holes = rng.below(4);  // losses, mostly few; now and then a history full of them
  const uint64_t reach = rng.range(1, 256);
  for (uint64_t i = 0; i < holes; ++i) {
    const uint64_t bit = rng.below(reach);
    a.hist[bit / 32] &= ~(1u << (bit % 32));
  }
  if (rng.below(16) == 0) {
    for (auto& word : a.hist) word = static_cast<uint32_t>(rng());
  }
  a.ce_bytes = static_cast<uint32_t>(rng());
  a.rx_bytes = static_cast<uint32_t>(rng());
  a.echo = static_cast<uint32_t>(rng());
  a.share = static_cast<uint32_t>(rng());
  a.credits = static_cast<uint16_t>(rng());
  a.status = static_cast<uint8_t>(rng.below(20));
  return a;
}

}  // namespace weft::tx
