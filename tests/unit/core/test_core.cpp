// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "Vcore_flat.h"
#include "weft_test.h"
#include "weft_wire.h"

using namespace weft::test;
using Core = Bench<Vcore_flat>;

namespace {

constexpr unsigned kConns = 8, kTags = 32, kResend = 64;
constexpr unsigned kErrOk = 0;
const unsigned kRetryLimit = static_cast<unsigned>(weft::wire::Err::RETRY_LIMIT);
const unsigned kFlushed = static_cast<unsigned>(weft::wire::Err::FLUSHED);

template <class T>
void set_field(T& bus, unsigned port, unsigned width,
               std::uint64_t v) {  // packed array of two in at most 64 bits
  const std::uint64_t mask = ((std::uint64_t{1} << width) - 1) << (port * width);
  bus = static_cast<T>((static_cast<std::uint64_t>(bus) & ~mask) | (v << (port * width) & mask));
}
template <class T>
unsigned get_field(const T& bus, unsigned port, unsigned width) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(bus) >> (port * width) &
                               ((std::uint64_t{1} << width) - 1));
}

void quiet(Vcore_flat& d) {  // inputs start with random values
  d.cfg_conn_i = d.cfg_global_i = 0;
  d.req_valid_i = d.pull_valid_i = d.settle_valid_i = d.fail_valid_i = 0;
  d.cpl_ready_i = 1;
  d.avail_ready_i = 3;
}

struct Message {
  unsigned conn, tag, len, msg_no;
  std::uint64_t laddr, raddr;
  unsigned rkey, sem, value;
  bool signal;
  unsigned packets;
  unsigned doom;                 // status it must complete with, if its connection ended
  std::set<unsigned> sent;       // packets pulled as new
  std::multiset<unsigned> lost;  // packets reported lost and not pulled again
  std::set<unsigned> delivered;
};

struct Unsettled {
  unsigned msg, pkt, len, tag;
  std::uint64_t key;
};

// Sending half against a plain model: two ports that pull at random and settle in any order.
struct SendBench {
  Core b{"core"};
  Rng rng;
  unsigned mtu_log2;
  double p_lost;
  Stall req_stall, cpl_stall, pull_stall[2], settle_stall[2], avail_stall[2];
  std::vector<std::deque<Message>> open =
      std::vector<std::deque<Message>>(kConns);  // by connection, posting order
  std::vector<unsigned> next_no = std::vector<unsigned>(kConns, 0);
  std::set<unsigned> free_tags;
  std::set<unsigned> work[2];
  std::deque<std::pair<unsigned, Unsettled>> unsettled[2];  // (conn, packet)
  int pulling[2] = {-1, -1};
  bool req_up = false;
  Message req{};
  int settling[2] = {-1, -1};
  bool settle_lost[2] = {false, false};
  std::vector<bool> failed = std::vector<bool>(kConns, false);
  // Configured anew: until the ports have given back the packets of the life before and said so.
  std::vector<bool> closing = std::vector<bool>(kConns, false);
  std::vector<std::uint64_t> configured = std::vector<std::uint64_t>(kConns, 0);  // cycle of the last write
  std::multiset<unsigned> to_start[2];
  std::uint64_t posted = 0, packets = 0, done = 0, errors = 0, resent = 0, lost_total = 0, retries = 0;
  bool swallow_loss = false;  // fault: a lost packet is reported as delivered
  bool forget_one = false;    // fault: a port keeps a packet of the life before

  SendBench(std::uint64_t seed, Profile profile, unsigned mtu, double lost)
      : b("core", seed),
        rng(seed, 3),
        mtu_log2(mtu),
        p_lost(lost),
        req_stall(profile, 1, seed),
        cpl_stall(profile, 2, seed),
        pull_stall{{profile, 3, seed}, {profile, 4, seed}},
        settle_stall{{profile, 5, seed}, {profile, 6, seed}},
        avail_stall{{profile, 7, seed}, {profile, 8, seed}} {
    for (unsigned t = 0; t < kTags; ++t) free_tags.insert(t);
    quiet(b.dut());
    b.reset();
    b->cfg_global_i = 1;
    b->cfg_mtu_i = static_cast<std::uint8_t>(mtu_log2);
    b.eval();
    b.tick();
    b->cfg_global_i = 0;
    for (unsigned i = 0; i < 100; ++i) idle_cycle();
  }
  void idle_cycle() {
    b.eval();
    b.tick();
  }

  std::string error;
  void expect(bool ok, const char* what) {
    if (!ok && error.empty()) error = what;
  }
  Message* find(unsigned conn, unsigned tag) {
    for (auto& m : open[conn])
      if (m.tag == tag) return &m;
    return nullptr;
  }
  bool has_work(unsigned conn) const {
    for (const auto& m : open[conn])
      if (m.sent.size() < m.packets || !m.lost.empty()) return true;
    return false;
  }

  void make_request() {
    if (req_up || free_tags.empty() || req_stall.stalled()) return;
    Message m{};
    m.conn = static_cast<unsigned>(rng.below(kConns));
    auto it = free_tags.begin();
    std::advance(it, static_cast<long>(rng.below(free_tags.size())));
    m.tag = *it;
    free_tags.erase(it);
    const unsigned mtu = 1U << mtu_log2;
    switch (rng.below(4)) {
      case 0: m.len = 0; break;
      case 1: m.len = static_cast<unsigned>(rng.below(mtu + 2)); break;
      case 2: m.len = mtu * static_cast<unsigned>(rng.range(1, 4)); break;
      default: m.len = static_cast<unsigned>(rng.below(8 * mtu)); break;
    }
    m.packets = m.len == 0 ? 1 : (m.len + mtu - 1) / mtu;
    m.laddr = rng();
    m.raddr = rng();
    m.rkey = static_cast<unsigned>(rng());
    m.sem = static_cast<unsigned>(rng.below(65536));
    m.value = static_cast<unsigned>(rng());
    m.signal = rng.chance(0.5);
    req = m;
    req_up = true;
    ++posted;
  }

  void cycle(bool more_requests) {
    if (more_requests) make_request();
    auto& d = b.dut();
    d.req_valid_i = req_up;
    d.req_conn_i = static_cast<std::uint16_t>(req.conn);
    d.req_tag_i = static_cast<std::uint8_t>(req.tag);
    d.req_signal_i = req.signal;
    d.req_sem_i = static_cast<std::uint16_t>(req.sem);
    d.req_value_i = req.value;
    d.req_laddr_i = req.laddr;
    d.req_raddr_i = req.raddr;
    d.req_rkey_i = req.rkey;
    d.req_len_i = req.len;
    d.cpl_ready_i = cpl_stall.go();
    d.avail_ready_i = static_cast<std::uint8_t>(avail_stall[0].go() | avail_stall[1].go() << 1);
    for (unsigned p = 0; p < 2; ++p) {
      const std::uint8_t bit = static_cast<std::uint8_t>(1U << p);
      if (!(d.pull_valid_i & bit) && pulling[p] < 0 && !work[p].empty() && pull_stall[p].go()) {
        auto it = work[p].begin();
        std::advance(it, static_cast<long>(rng.below(work[p].size())));
        d.pull_valid_i |= bit;
        set_field(d.pull_conn_i, p, 12, *it);
      }
      if (settling[p] < 0 && !unsettled[p].empty() && settle_stall[p].go()) {
        settling[p] = static_cast<int>(rng.below(unsettled[p].size()));
        const auto& [conn, u] = unsettled[p][static_cast<std::size_t>(settling[p])];
        settle_lost[p] = rng.chance(p_lost);
        d.settle_valid_i |= bit;
        set_field(d.settle_conn_i, p, 12, conn);
        set_field(d.settle_msg_i, p, 10, u.msg);
        set_field(d.settle_pkt_i, p, 24, u.pkt);
        set_field(d.settle_len_i, p, 13, u.len);
        set_field(d.settle_lost_i, p, 1, settle_lost[p] && !swallow_loss);
      }
    }
    for (unsigned p = 0; p < 2; ++p) offer_start(p);
    b.eval();
    // what this edge transfers
    const bool req_taken = d.req_valid_i && d.req_ready_o;
    const bool cpl_taken = d.cpl_valid_o && d.cpl_ready_i;
    const unsigned tag = d.cpl_tag_o, status = d.cpl_status_o;
    const unsigned avail = d.avail_valid_o & d.avail_ready_i;
    const unsigned pulls = d.pull_valid_i & d.pull_ready_o;
    const unsigned settles = d.settle_valid_i & d.settle_ready_o;
    const unsigned fails = d.fail_valid_i & d.fail_ready_o;
    for (unsigned p = 0; p < 2; ++p)
      if (d.rsp_valid_o >> p & 1) answer(p);
    for (unsigned p = 0; p < 2; ++p) {
      if (avail >> p & 1) work[p].insert(get_field(d.avail_conn_o, p, 12));
      if (pulls >> p & 1) pulling[p] = static_cast<int>(get_field(d.pull_conn_i, p, 12));
      if (settles >> p & 1) settled(p);
    }
    for (unsigned p = 0; p < 2; ++p)
      if (fails >> p & 1 && get_field(d.fail_status_i, p, 8) == kErrOk) started(p);
    if (req_taken) {
      b.progress();
      // One that had begun when the configuration came belongs to the life that ends.
      expect(!closing[req.conn] || failed[req.conn] || b.cycle() < configured[req.conn] + 8,
             "request taken before the connection's new life began");
      req.doom = failed[req.conn] ? kRetryLimit : closing[req.conn] ? kFlushed : kErrOk;
      req.msg_no = next_no[req.conn]++ & 0xffff;
      open[req.conn].push_back(req);
      req_up = false;
    }
    if (cpl_taken) complete(tag, status);
    const auto drop_pull = static_cast<std::uint8_t>(d.pull_valid_i & ~pulls);
    const auto drop_settle = static_cast<std::uint8_t>(d.settle_valid_i & ~settles);
    const auto drop_fail = static_cast<std::uint8_t>(d.fail_valid_i & ~fails);
    b.tick();
    d.pull_valid_i = drop_pull;
    d.settle_valid_i = drop_settle;
    d.fail_valid_i = drop_fail;
  }

  // A port reports the new life when the packets of the old one are back, and no pull is on its way.
  void offer_start(unsigned p) {
    auto& d = b.dut();
    const auto bit = static_cast<std::uint8_t>(1U << p);
    if ((d.fail_valid_i & bit) || to_start[p].empty() || !rng.chance(0.05)) return;
    const unsigned conn = *to_start[p].begin();
    if (b.cycle() < configured[conn] + 4) return;  // a port is not quicker than that
    if (pulling[p] == static_cast<int>(conn)) return;
    if ((d.pull_valid_i & bit) && get_field(d.pull_conn_i, p, 12) == conn) return;
    for (auto at = unsettled[p].begin(); at != unsettled[p].end(); ++at) {
      if (at->first != conn) continue;
      const auto n = static_cast<int>(at - unsettled[p].begin());
      if (!forget_one || n == settling[p]) return;
      forget_one = false;
      if (n < settling[p]) --settling[p];
      unsettled[p].erase(at);
      return;
    }
    d.fail_valid_i |= bit;
    set_field(d.fail_conn_i, p, 12, conn);
    set_field(d.fail_status_i, p, 8, kErrOk);
  }
  void started(unsigned p) {
    const unsigned conn = get_field(b->fail_conn_i, p, 12);
    to_start[p].erase(to_start[p].find(conn));
    work[p].erase(conn);
    if (to_start[0].count(conn) || to_start[1].count(conn)) return;
    closing[conn] = failed[conn] = false;
    next_no[conn] = 0;
  }
  /// CfgConn for the rows of a connection that `rows` names.
  void configure(unsigned conn, unsigned rows, bool more_requests) {
    for (unsigned p = 0; p < 2; ++p) {
      if (!(rows >> p & 1)) continue;
      for (auto& m : open[conn])
        if (!m.doom) m.doom = kFlushed;
      closing[conn] = true;
      to_start[p].insert(conn);
      configured[conn] = b.cycle();
      b->cfg_conn_i = 1;
      b->cfg_index_i = static_cast<std::uint16_t>(2 * conn + p);
      for (int i = 0; i < 64; ++i) {
        cycle(more_requests);
        b->cfg_conn_i = 0;
      }
    }
  }

  void answer(unsigned p) {
    auto& d = b.dut();
    expect(pulling[p] >= 0, "answer nobody asked for");
    if (pulling[p] < 0) return;
    const auto conn = static_cast<unsigned>(pulling[p]);
    pulling[p] = -1;
    b.progress();
    if (d.rsp_kind_o == 0) {
      work[p].erase(conn);
      return;
    }
    if (d.rsp_kind_o == 1) {
      ++retries;
      return;
    }
    Message* m = find(conn, d.rsp_msg_o);
    expect(m != nullptr, "packet of a message that is not open");
    if (!m) return;
    const unsigned pkt = d.rsp_pkt_o, mtu = 1U << mtu_log2;
    if (d.rsp_retx_o) {
      expect(m->lost.count(pkt) == 1, "resend of a packet that is not lost");
      m->lost.erase(pkt);
      ++resent;
    } else {
      expect(pkt == m->sent.size(), "new packet out of order");
      m->sent.insert(pkt);
      for (const auto& o : open[conn]) {
        if (&o == m) break;
        expect(o.sent.size() == o.packets, "message overtakes an earlier one");
      }
    }
    ++packets;
    const unsigned len = std::min(mtu, m->len - pkt * mtu);
    expect(d.rsp_len_o == len, "packet length");
    expect(d.rsp_laddr_o == m->laddr + std::uint64_t{pkt} * mtu, "local address");
    expect(d.rsp_raddr_o == m->raddr + std::uint64_t{pkt} * mtu, "remote address");
    expect(d.rsp_rkey_o == m->rkey && d.rsp_sem_o == m->sem && d.rsp_value_o == m->value,
           "key, semaphore or value");
    expect(d.rsp_signal_o == m->signal && d.rsp_msg_no_o == m->msg_no && d.rsp_msg_len_o == m->len,
           "message fields");
    if (!d.rsp_more_o) work[p].erase(conn);
    unsettled[p].push_back({conn, {d.rsp_msg_o, pkt, len, m->tag, 0}});
    expect(unsettled[0].size() + unsettled[1].size() + waiting() <= kResend, "more outstanding than places");
  }
  std::size_t waiting() const {
    std::size_t n = 0;
    for (unsigned c = 0; c < kConns; ++c)
      for (const auto& m : open[c])
        if (!m.doom) n += m.lost.size();
    return n;
  }

  void settled(unsigned p) {
    const auto at = unsettled[p].begin() + settling[p];
    const auto [conn, u] = *at;
    unsettled[p].erase(at);
    settling[p] = -1;
    b.progress();
    Message* m = find(conn, u.msg);
    if (!m) return;
    if (m->doom) {  // may still complete, if it is settled before its end
      if (!settle_lost[p]) m->delivered.insert(u.pkt);
    } else if (settle_lost[p]) {
      ++lost_total;
      m->lost.insert(u.pkt);
    } else {
      expect(m->delivered.insert(u.pkt).second, "packet delivered twice");
    }
  }

  void complete(unsigned tag, unsigned status) {
    b.progress();
    for (unsigned c = 0; c < kConns; ++c) {
      if (open[c].empty() || !find(c, tag)) continue;
      Message& m = open[c].front();
      expect(m.tag == tag, "completions of a connection out of order");
      if (m.doom && !(status == kErrOk && m.delivered.size() == m.packets)) {
        expect(status == m.doom, "status of a message whose connection ended");
        ++errors;
      } else {
        expect(status == kErrOk && m.delivered.size() == m.packets, "completed before it was delivered");
        ++done;
      }
      open[c].pop_front();
      free_tags.insert(tag);
      return;
    }
    expect(false, "completion of nothing");
  }

  // Runs `messages` messages; then everything must come to rest.
  std::string run(std::uint64_t messages) {
    const std::uint64_t until = posted + messages;
    for (std::uint64_t i = 0; error.empty() && i < 400 * messages; ++i) {
      cycle(posted < until);
      bool rest = posted >= until && !req_up && unsettled[0].empty() && unsettled[1].empty() &&
                  to_start[0].empty() && to_start[1].empty();
      for (const auto& q : open) rest &= q.empty();
      if (rest) break;
    }
    if (!error.empty()) return error;
    for (const auto& q : open)
      if (!q.empty()) return "messages left open";
    for (int i = 0; i < 20; ++i) cycle(false);
    if (!b->idle_o) return "not idle at rest";
    return error;
  }

  void fail(unsigned conn, unsigned port) {
    failed[conn] = true;
    for (auto& m : open[conn])
      if (!m.doom) m.doom = kRetryLimit;
    auto& d = b.dut();
    const auto bit = static_cast<std::uint8_t>(1U << port);
    while (d.fail_valid_i & bit) cycle(false);
    d.fail_valid_i |= bit;
    set_field(d.fail_conn_i, port, 12, conn);
    set_field(d.fail_status_i, port, 8, kRetryLimit);
    for (int i = 0; i < 2000 && (d.fail_valid_i & bit); ++i) cycle(false);
    expect(!(d.fail_valid_i & bit), "failure not taken");
  }
};

}  // namespace

TEST_CASE("core: every packet is sent, resent when lost and completed in order", "[core][random]") {
  for (Profile profile : kProfiles)
    for (double lost : {0.0, 0.1, 0.5}) {
      CAPTURE(name_of(profile), lost);
      SendBench s(seed() + static_cast<std::uint64_t>(profile), profile,
                  8 + static_cast<unsigned>(profile) % 5, lost);
      CHECK(s.run(400) == "");
      CHECK(s.done == 400);
      CHECK(s.resent == s.lost_total);
      CHECK((lost == 0.0) == (s.lost_total == 0));
    }
}

TEST_CASE("core: more packets than places are held back, not lost", "[core]") {
  SendBench s(seed(), Profile::None, 8, 0.3);
  for (auto& st : s.settle_stall) st = Stall(0.98, 9);
  CHECK(s.run(200) == "");
  CHECK(s.retries > 0);
}

TEST_CASE("core: the checker sees a lost packet reported as delivered", "[core]") {
  SendBench s(seed(), Profile::None, 8, 0.2);
  s.swallow_loss = true;
  CHECK(s.run(100) != "");
}

TEST_CASE(
    "core: a failed connection completes all its messages once with the status, others go on (case transport "
    "14)",
    "[core]") {
  Rng rng(seed(), 31);
  for (unsigned round = 0; round < 20; ++round) {
    SendBench s(rng(), kProfiles[round % 6], 8, 0.2);
    for (int i = 0; i < 300; ++i) s.cycle(true);
    const auto victim = static_cast<unsigned>(rng.below(kConns));
    s.fail(victim, round & 1);
    CHECK(s.run(200) == "");
    CHECK(s.free_tags.size() == kTags);
    // The connection set up anew numbers its messages from 0 and works.
    s.configure(victim, 3, false);
    const auto before = s.errors;
    CHECK(s.run(200) == "");
    CHECK(s.errors == before);
  }
}

TEST_CASE("core: a connection configured in the middle of its work starts anew and nothing leaks",
          "[core][random]") {
  Rng rng(seed(), 32);
  std::uint64_t ended = 0;
  for (unsigned round = 0; round < 12; ++round) {
    CAPTURE(round);
    SendBench s(rng(), kProfiles[round % 6], 8, 0.2);
    for (int i = 0; i < 300; ++i) s.cycle(true);
    for (unsigned n = 0; n < 6; ++n) {
      // Both rows, as a driver does, or one; sometimes of a connection that has just failed at one port.
      const auto victim = static_cast<unsigned>(rng.below(kConns));
      if (n % 3 == 2 && !s.failed[victim] && !s.closing[victim]) s.fail(victim, n & 1);
      s.configure(victim, static_cast<unsigned>(rng.range(1, 3)), true);
      for (int i = 0; i < 100; ++i) s.cycle(true);
    }
    CHECK(s.run(200) == "");  // at rest nothing is counted as outstanding
    ended += s.errors;
    const auto before = s.errors;
    CHECK(s.run(200) == "");
    CHECK(s.errors == before);
    CHECK(s.free_tags.size() == kTags);
  }
  CHECK(ended > 100);
}

TEST_CASE("core: the checker sees a packet that a port does not give back", "[core]") {
  SendBench s(seed(), Profile::None, 8, 0.2);
  for (auto& st : s.settle_stall) st = Stall(0.98, 9);  // so that there are some to give back
  s.b.patience(1'000'000);  // requests of that connection wait for ever, and all others behind them
  for (int i = 0; i < 300; ++i) s.cycle(true);
  s.forget_one = true;
  for (unsigned c = 0; c < kConns && s.forget_one; ++c) s.configure(c, 3, true);
  CHECK(s.run(200) != "");
}

TEST_CASE("core: a packet costs at most 12 cycles, its share of the message included", "[core]") {
  // Windows always open, packets settled at once: the core is the only limit. A packet is a pull and a settle
  // of 4 cycles each; messages of 4 packets on average add theirs.
  SendBench s(seed(), Profile::None, 8, 0.0);
  for (int i = 0; i < 500; ++i) s.cycle(true);
  const auto before = s.packets;
  for (int i = 0; i < 8000; ++i) s.cycle(true);
  CHECK(s.error == "");
  CHECK(s.packets - before > 8000 / 12);
}
