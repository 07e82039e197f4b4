// SPDX-License-Identifier: Apache-2.0
//
// The rules of docs/congestion.md as plain arithmetic, against the modules that work them out.
#include <algorithm>

#include "Vctl_parts.h"
#include "weft_test.h"

using namespace weft::test;

namespace {

constexpr uint32_t kMax = (1u << 22) - 1;  // of byte counts

struct Window {
  bool slow = true;
  uint32_t cwnd = 0, acc = 0, ce = 0, rx = 0, echo = 0;
};
struct Rtt {
  bool sampled = false;
  uint32_t min = 0xfffff;
  int64_t srtt8 = 0, var4 = 0;
};
struct Result {
  uint32_t psns, lost, ce, rx, echo;
};
struct Outcome {
  bool fresh, sample, newmin, marked;
  uint32_t rtt, kept, grown, acc_kept, acc_grown;
};

Outcome prepare(const Window& w, const Rtt& r, const Result& a, uint32_t now, uint32_t pkt) {
  Outcome o{};
  const uint32_t ce = (a.ce - w.ce) & kMax, rx = (a.rx - w.rx) & kMax;
  const uint32_t age = now - a.echo;
  o.fresh = a.psns != 0 || static_cast<int32_t>(a.echo - w.echo) > 0;
  o.sample = o.fresh && age < (1u << 20);
  o.rtt = age & 0xfffff;
  o.newmin = o.sample && (!r.sampled || o.rtt < r.min);
  const uint32_t lost = o.sample && o.rtt > 3 * r.min ? a.lost : 0;
  const uint32_t marked = ((o.fresh ? ce : 0) + lost) & kMax;
  const uint32_t plain = o.fresh && rx >= ce ? rx - ce : 0;
  o.marked = marked != 0;
  o.kept = o.marked ? static_cast<uint32_t>(std::max<int64_t>(pkt, static_cast<int64_t>(w.cwnd) - marked / 4))
                    : w.cwnd;
  o.acc_kept = w.acc;
  o.acc_grown = ((o.marked ? 0 : w.acc) + plain) & kMax;
  o.grown = o.kept;
  if (!o.marked) {
    const bool whole = o.acc_grown >= w.cwnd;
    if (w.slow) {
      o.grown = std::min(w.cwnd + plain, kMax);
    } else if (whole) {
      o.grown = std::min(w.cwnd + pkt, kMax);
    }
    if (whole) o.acc_grown -= w.cwnd;
  }
  return o;
}

void quiet(Vctl_parts& d) {
  d.res_valid_i = d.apply_i = d.init_path_i = d.init_conn_i = d.rtt_re_i = d.cap_start_i = 0;
  d.set_i = d.fire_ready_i = 0;
}

}  // namespace

TEST_CASE("ctl: windows and round trips follow the rules bit by bit", "[ctl][random]") {
  Bench<Vctl_parts> b("parts");
  Rng rng(seed(), 300);
  const uint32_t pkt = 4192;
  b->pkt_i = pkt;
  quiet(b.dut());
  b.reset();
  Window windows[8];
  Rtt rtts[4];
  uint64_t cuts = 0, grows = 0, loss_marks = 0, stale = 0, dropped = 0;
  uint32_t now = 0xfff00000;
  const auto clear_result = [&] {
    b->res_conn_i = b->res_path_i = b->res_psns_i = b->res_bytes_i = b->res_lost_i = 0;
    b->res_ce_i = b->res_rx_i = b->res_echo_i = 0;
  };
  const auto start = [&](unsigned conn) {
    const uint32_t rtt_init = static_cast<uint32_t>(rng.range(100, 9000));
    b->rtt_init_i = rtt_init;
    clear_result();
    b.ticks(3);
    for (unsigned p = 0; p < 2; ++p) {
      const unsigned key = conn * 2 + p;
      windows[key] = Window{};
      windows[key].cwnd = static_cast<uint32_t>(rng.range(pkt, 300000));
      b->init_path_i = 1;
      b->init_key_i = key;
      b->init_cwnd_i = windows[key].cwnd;
      b.tick();
    }
    b->init_path_i = 0;
    rtts[conn] = Rtt{false, 0xfffff, int64_t{rtt_init} * 8, int64_t{rtt_init} * 2};
    b->init_conn_i = 1;
    b.tick();
    b->init_conn_i = 0;
  };
  for (unsigned c = 0; c < 4; ++c) start(c);

  for (unsigned n = 0; n < 60000; ++n) {
    if (rng.chance(0.002)) start(static_cast<unsigned>(rng.below(4)));
    const unsigned conn = static_cast<unsigned>(rng.below(4)), path = static_cast<unsigned>(rng.below(2));
    Window& w = windows[conn * 2 + path];
    Rtt& r = rtts[conn];
    now += static_cast<uint32_t>(rng.below(3000));
    // Mostly what a receiver would say, sometimes a late copy, sometimes nonsense.
    Result a{};
    const uint32_t bytes = static_cast<uint32_t>(rng.below(4)) * 4192 + static_cast<uint32_t>(rng.below(500));
    const uint32_t base_rtt = 1000 + conn * 500;
    a.psns = static_cast<uint32_t>(rng.below(4));
    a.lost = rng.chance(0.3) ? static_cast<uint32_t>(rng.below(3)) * 4192 : 0;
    a.rx = (w.rx + bytes) & kMax;
    a.ce = (w.ce + (rng.chance(0.15) ? static_cast<uint32_t>(rng.below(bytes + 1)) : 0)) & kMax;
    a.echo = now - base_rtt - static_cast<uint32_t>(rng.below(rng.chance(0.1) ? 20000 : 400));
    if (rng.chance(0.1)) {
      a.psns = 0;
      a.echo = w.echo - static_cast<uint32_t>(rng.below(2)) * 700;
      a.rx = (w.rx - static_cast<uint32_t>(rng.below(9000))) & kMax;
    }
    if (rng.chance(0.01))
      a = Result{a.psns, a.lost, uint32_t(rng() & kMax), uint32_t(rng() & kMax), uint32_t(rng())};
    const Outcome o = prepare(w, r, a, now, pkt);

    b->now_i = now;
    b->res_valid_i = 1;
    b->res_conn_i = conn;
    b->res_path_i = path;
    b->res_psns_i = a.psns;
    b->res_lost_i = a.lost;
    b->res_ce_i = a.ce;
    b->res_rx_i = a.rx;
    b->res_echo_i = a.echo;
    unsigned wait = 0;
    do {
      b.tick();
      b.eval();
      REQUIRE(++wait < 20);
    } while (!b->prep_valid_o);
    b.progress();
    INFO("ack " << n << ": slow " << w.slow << " cwnd " << w.cwnd << " acc " << w.acc << ", psns " << a.psns);
    REQUIRE(b->prep_fresh_o == o.fresh);
    REQUIRE(b->prep_newmin_o == o.newmin);
    if (o.newmin) REQUIRE(b->prep_rtt_o == o.rtt);
    REQUIRE(b->prep_cwnd_o == w.cwnd);
    REQUIRE(b->prep_cut_o == o.marked);
    REQUIRE(b->prep_kept_o == o.kept);
    REQUIRE(b->prep_grown_o == o.grown);

    const bool limited = rng.chance(0.6), drop = rng.chance(0.02);
    const uint32_t cap = static_cast<uint32_t>(rng.chance(0.9) ? 400000 : rng.range(pkt, 60000));
    const uint32_t cwnd = std::min(limited ? o.grown : o.kept, cap);
    b.ticks(rng.below(4));
    b->apply_i = 1;
    b->apply_drop_i = drop;
    b->apply_limited_i = limited;
    b->apply_cwnd_i = cwnd;
    b.eval();
    REQUIRE(b->res_ready_o);
    b.tick();
    b->apply_i = 0;
    b->res_valid_i = 0;
    cuts += o.marked;
    grows += o.grown > w.cwnd && limited;
    loss_marks += o.marked && a.ce == w.ce;
    stale += !o.fresh;
    dropped += drop;
    if (!drop && o.fresh) {
      w.slow = w.slow && !o.marked;
      w.cwnd = cwnd;
      w.acc = limited ? o.acc_grown : o.acc_kept;
      w.ce = a.ce;
      w.rx = a.rx;
      w.echo = a.echo;
    }
    if (!drop && o.sample) {
      if (!r.sampled) {
        r.srtt8 = int64_t{o.rtt} * 8;
        r.var4 = int64_t{o.rtt} * 2;
      } else {
        const int64_t err = int64_t{o.rtt} - r.srtt8 / 8;
        r.srtt8 += err;
        r.var4 += (err < 0 ? -err : err) - r.var4 / 4;
      }
      r.sampled = true;
      if (o.newmin) r.min = o.rtt;
    }
    // What timers and cap read.
    b->rtt_re_i = 1;
    b->rtt_conn_i = conn;
    b.tick();
    b->rtt_re_i = 0;
    b.eval();
    const uint64_t low = b->rtt_o[0] | uint64_t{b->rtt_o[1]} << 32;
    REQUIRE((low & 0x3fffff) == static_cast<uint64_t>(r.var4));
    REQUIRE(((low >> 22) & 0x7fffff) == static_cast<uint64_t>(r.srtt8));
    REQUIRE((((low >> 45) | (uint64_t{b->rtt_o[2]} << 19)) & 0xfffff) == r.min);
    REQUIRE(((b->rtt_o[2] >> 1) & 1) == r.sampled);
  }
  CHECK(cuts > 1000);
  CHECK(grows > 1000);
  CHECK(loss_marks > 20);
  CHECK(stale > 1000);
  CHECK(dropped > 100);
}

TEST_CASE("ctl: cap, active paths and first window are what the formula says", "[ctl][random]") {
  Bench<Vctl_parts> b("parts");
  Rng rng(seed(), 310);
  quiet(b.dut());
  b.reset();
  for (unsigned n = 0; n < 3000; ++n) {
    const bool sampled = rng.chance(0.7);
    const uint32_t pkt = (256u << rng.below(5)) + 96;
    const uint32_t share = static_cast<uint32_t>(rng() & (0xffff >> rng.below(17)));
    const uint32_t rtt = static_cast<uint32_t>(rng() & (0xfffff >> rng.below(21)));
    const uint32_t init = static_cast<uint32_t>(rng() & (kMax >> rng.below(23)));
    const uint32_t paths = static_cast<uint32_t>(rng.range(1, rng.chance(0.2) ? 64 : 8));
    b->pkt_i = pkt;
    b->cap_sampled_i = sampled;
    b->cap_share_i = share;
    b->cap_rtt_i = rtt;
    b->cap_init_i = init;
    b->cap_paths_i = paths;
    b->cap_start_i = 1;
    b.tick();
    b->cap_start_i = 0;
    b.eval();
    for (unsigned wait = 0; !b->cap_done_o; ++wait) {
      REQUIRE(wait < 50 + paths);
      b.tick();
      b.eval();
    }
    b.progress();
    const uint64_t raw = sampled ? uint64_t{share} * 5 * rtt / 512 + pkt : init;
    const uint64_t cap = std::clamp<uint64_t>(raw, pkt, kMax);
    const uint64_t active = std::clamp<uint64_t>(cap / ((sampled ? 3 : 2) * pkt), 1, paths);
    INFO("sampled " << sampled << " share " << share << " rtt " << rtt << " init " << init << " paths "
                    << paths);
    REQUIRE(b->cap_o == cap);
    REQUIRE(b->cap_active_o == active);
    REQUIRE(b->cap_window_o == std::max<uint64_t>(pkt, cap / active));
  }
}

TEST_CASE("ctl: a path fires when its deadline has passed, whatever is armed around it", "[ctl][random]") {
  constexpr uint32_t kSrtt = 40, kVar4 = 20, kProbeMin = 50;
  constexpr uint64_t kSlack = 200;  // a round of the ring and the offers that wait in it
  Bench<Vctl_parts> b("parts");
  Rng rng(seed(), 320);
  quiet(b.dut());
  b->probe_min_i = kProbeMin;
  b->srtt_i = kSrtt;
  b->var4_i = kVar4;
  b->now_i = 0xfffffe00;  // the clock wraps early
  b.reset();
  b.ticks(8);  // the ring is cleared
  struct Path {
    bool armed = false;
    uint64_t since = 0, wait = 0;
  };
  Path paths[8];
  uint64_t next_set = 0, fired = 0, idle = 0, t = 0;
  int taken = -1;  // its path must be armed or disarmed
  const auto set = [&](unsigned key, bool armed, bool probing = false) {
    const unsigned backoff = static_cast<unsigned>(rng.below(4));
    b->set_i = 1;
    b->set_key_i = static_cast<uint8_t>(key);
    b->set_armed_i = armed;
    b->set_probing_i = probing;
    b->set_backoff_i = static_cast<uint8_t>(backoff);
    paths[key] = {armed, t, probing ? std::max(kProbeMin, kSrtt + kVar4) << backoff : 2 * kSrtt};
    next_set = t + 3 + rng.below(rng.chance(0.5) ? 10 : 200);
  };
  const auto step = [&] {
    b->fire_ready_i = !b->set_i && taken < 0 && rng.chance(0.5);
    b.eval();
    if (b->fire_valid_o) {
      const Path& p = paths[b->fire_key_o];
      INFO("cycle " << t << " path " << unsigned{b->fire_key_o});
      if (!b->set_i) REQUIRE((p.armed && t - p.since >= p.wait));
      if (b->fire_ready_i) {
        taken = b->fire_key_o;
        next_set = t + 3;
        ++fired;
        b.progress();
      }
    }
    for (const Path& p : paths) REQUIRE((!p.armed || t - p.since < p.wait + kSlack));
    idle += b->timer_idle_o;
    b.tick();
    b->now_i = b->now_i + 1;
    b->set_i = 0;
    ++t;
  };
  const auto disarm_all = [&] {
    for (unsigned key = 0; key < 8; ++key) {
      set(key, false);
      for (unsigned i = 0; i < 3; ++i) step();
    }
    taken = -1;
  };
  disarm_all();  // as the start of a connection does
  // Alone in the ring, a path is disarmed and its neighbour armed at every distance from there to the cycle
  // in which the connection leaves the ring, and beyond.
  for (unsigned before = 3; before < 12; ++before) {
    for (unsigned behind = 3; behind < 30; ++behind) {
      set(0, true);
      for (unsigned i = 0; i < before; ++i) step();
      set(0, false);
      for (unsigned i = 0; i < behind; ++i) step();
      set(1, true);
      while (taken < 0) step();
      for (unsigned i = 0; i < 3; ++i) step();
      set(1, false);
      taken = -1;
      for (unsigned i = 0; i < 30; ++i) step();
      REQUIRE(b->timer_idle_o);
    }
  }
  // And at random. Mostly nothing is armed, so that connections leave the ring all the time.
  const uint64_t until = t + 300000;
  while (t < until) {
    if (t >= next_set) {
      set(taken >= 0 ? static_cast<unsigned>(taken) : static_cast<unsigned>(rng.below(8)), rng.chance(0.4),
          rng.chance(0.5));
      taken = -1;
    }
    step();
  }
  CHECK(fired > 1000);
  CHECK(idle > 10000);
  disarm_all();
  for (unsigned i = 0; i < 60; ++i) step();
  CHECK(b->timer_idle_o);
}
