// SPDX-License-Identifier: Apache-2.0
// Single losses, and what the user sees when a plane dies.
#include <pcap/pcap.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "frame.h"
#include "harness.h"

using namespace weft::test;
namespace tb = weft::tb;

namespace {

// Longest round trip that the acks of a capture tell, in ns: from the send timestamp they echo to their
// arrival at the node's port. That is what the node's own estimate is made of, but for the ack's way inside
// the node.
double longest_round_trip_ns(const std::filesystem::path& capture, std::uint64_t mac) {
  char error[PCAP_ERRBUF_SIZE] = {};
  pcap_t* p = pcap_open_offline_with_tstamp_precision(capture.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  INFO(error);
  REQUIRE(p != nullptr);
  double longest = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(p, &header, &data) == 1) {
    const auto frame = weft::wire::parse({data, header->caplen}).frame;
    if (frame.layout != weft::wire::Layout::ACK || frame.eth.dst != mac) continue;
    const double now = static_cast<double>(header->ts.tv_sec) * 1e9 + static_cast<double>(header->ts.tv_usec);
    // The node's clock starts when its reset ends.
    const double sent = (frame.wah.echo + tb::kResetCycles) * static_cast<double>(tb::kClockPs) / 1e3;
    longest = std::max(longest, now - sent);
  }
  pcap_close(p);
  return longest;
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace

TEST_CASE("system: any single packet may be lost (case rtl 10, case transport 1)", "[system]") {
  // Each frame of a short run that would reach one of `nodes` is lost in turn: data, ack, probe, first and
  // last of a message. Of three ranks, which all do the same in an all_to_all, one node's frames must do.
  struct Case {
    int ranks;
    std::uint32_t nodes;
    tb::WorkloadOp work;
  };
  for (const Case& c :
       {Case{2, 2, op(wccl::Kind::kAllReduce, 600)}, {3, 1, op(wccl::Kind::kAllToAll, 150)}}) {
    auto make = [&c] {
      Trial t;
      t.workload.ranks = c.ranks;
      t.workload.ops.push_back(c.work);
      t.config.transport.mtu = 512;
      t.config.transport.rtt_init_us = 3;  // a little above the round trip of this fabric
      return t;
    };
    const auto folder =
        std::filesystem::path(WEFT_BUILD_DIR) / "tests" / ("single_loss_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    Trial first = make();
    first.traces.pcap_dir = folder;
    const Outcome clean = first.run();
    REQUIRE(clean.error == "");
    double round_trip = 0;
    for (std::uint32_t node = 0; node < static_cast<std::uint32_t>(c.ranks); ++node)
      for (std::uint32_t port = 0; port < 2; ++port) {
        const std::string file = "node" + std::to_string(node) + "_port" + std::to_string(port) + ".pcap";
        round_trip = std::max(round_trip, longest_round_trip_ns(folder / file, tb::Cluster::mac(node, port)));
      }
    std::filesystem::remove_all(folder);
    REQUIRE(round_trip > 0);
    // A probe is sent at most max(probe_min, srtt + 4 deviations) behind another, and a first estimate is the
    // largest: srtt and half of it as deviation, from rtt_init or from the first sample. Its answer is a
    // round trip away.
    const weft::TransportConfig& transport = first.config.transport;
    const double wait =
        std::max(transport.probe_min_us * 1e3, 3 * std::max(transport.rtt_init_us * 1e3, round_trip));
    const double bound = wait + round_trip;

    std::uint64_t losses = 0;
    double worst = 0;
    for (std::uint32_t node = 0; node < c.nodes; ++node)
      for (std::uint32_t port = 0; port < 2; ++port)
        for (std::uint64_t n = 0;; ++n) {
          Trial t = make();
          t.scenario.faults.drop.push_back({node, port, tb::FrameKind::kAny, n});
          CAPTURE(c.ranks, node, port, n);
          const Outcome o = t.run();
          REQUIRE(o.error == "");
          if (o.fabric.drop_listed == 0) break;  // there is no n-th frame
          ++losses;
          CHECK(o.traffic.resent <= 1);
          const double cost = o.ops[0].time_ns - clean.ops[0].time_ns;
          CHECK(cost < bound);
          worst = std::max(worst, cost);
        }
    CHECK(losses > 15);
    std::printf("%s, %d ranks: %llu single losses, the worst costs %.0f ns (round trip %.0f, bound %.0f)\n",
                wccl::name(c.work.op.kind), c.ranks, static_cast<unsigned long long>(losses), worst,
                round_trip, bound);
    std::fflush(stdout);
  }
}

TEST_CASE("system: a plane that dies is a clean error, told once", "[system]") {
  // Until failover exists the connection fails, and says so.
  constexpr int kRanks = 4;
  Trial t;
  t.workload.ranks = kRanks;
  t.workload.ops.push_back(op(wccl::Kind::kAllReduce, 40'000));
  t.workload.ops.back().repeat = 50;
  tb::DownFault down;
  down.plane = 1;
  down.from_ps = 300 * tb::kUs;
  t.scenario.faults.down.push_back(down);
  t.config.transport.retry_limit = 6;
  bool looked = false;
  t.at_failure = [&](tb::Cluster&, tb::Runner& r) {
    looked = true;
    int silent = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      // Every rank's plan has ended: by a silent peer, or because the host took it back.
      const wccl::Communicator& comm = r.communicator(rank);
      CAPTURE(rank, comm.failure(0));
      CHECK(comm.state(0) == wccl::State::kFailed);
      CHECK(comm.failure(0).find("rank " + std::to_string(rank) + ": all_reduce: entry ") == 0);
      const bool gave_up = comm.failure(0).find("RETRY_LIMIT (6 probes unanswered)") != std::string::npos;
      CHECK((gave_up || comm.failure(0).find("FLUSHED") != std::string::npos));
      silent += gave_up;
      // Repeats that succeeded, this end, and what could not be told to peers whom the plane led to.
      std::map<std::string, std::uint64_t> count;
      for (const auto& [name, value] : r.counters(static_cast<std::uint32_t>(rank))) count[name] = value;
      CHECK(count.at("me.finish_bad") >= 1);
      CHECK(count.at("me.finish_bad") <= kRanks);
      CHECK(count.at("me.launch") == count.at("me.finish_ok") + count.at("me.finish_bad"));
      CHECK(count.at("me.finish_ok") > 0);
    }
    CHECK(silent > 0);
  };
  const Outcome o = t.run();
  CAPTURE(o.error);
  CHECK(looked);
  CHECK(times(o.error, "RETRY_LIMIT") == 1);
  CHECK(times(o.error, "rank ") == 2);  // whose plan, and to whom it wrote
  CHECK(times(o.error, "to rank ") == 1);
  CHECK(times(o.error, "\n") == 0);
  REQUIRE(o.ops.size() == 1);
  CHECK(o.ops[0].failure == o.error);
  CHECK(o.ops[0].wrong == 0);
}
