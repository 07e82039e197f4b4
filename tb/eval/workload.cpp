// SPDX-License-Identifier: Apache-2.0
#include "tb/eval/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "tb/sim/rng.h"

namespace weft::eval {
namespace {

class Maker {
 public:
  explicit Maker(Flows& flows) : flows_(flows) {}
  Flow& add(uint32_t src, uint32_t dst, uint64_t bytes) {
    Flow& f = flows_.list.emplace_back();
    f.id = static_cast<uint32_t>(flows_.list.size() - 1);
    f.src = static_cast<uint16_t>(src);
    f.dst = static_cast<uint16_t>(dst);
    f.bytes = bytes;
    return f;
  }
  // A connection of its own between two hosts.
  uint16_t lane(uint32_t src, uint32_t dst) {
    const uint16_t lane = used_[{src, dst}]++;
    flows_.lanes = std::max<uint32_t>(flows_.lanes, lane + 1u);
    return lane;
  }
  // `count` messages of which `depth` are under way; the first ones start at `start`.
  void stream(uint32_t src, uint32_t dst, uint64_t bytes, uint32_t count, uint32_t depth, Ps start,
              uint16_t group) {
    const uint16_t lane = this->lane(src, dst);
    for (uint32_t i = 0; i < count; ++i) {
      Flow& f = add(src, dst, bytes);
      f.lane = lane;
      f.group = group;
      f.not_before = start;
      if (i >= depth) f.after_sent = f.id - depth;
    }
  }

 private:
  Flows& flows_;
  std::map<std::pair<uint32_t, uint32_t>, uint16_t> used_;
};

Ps from_us(double us) {
  return static_cast<Ps>(std::llround(us * 1e6));
}

}  // namespace

std::vector<std::string> groups_of(const Workload& w) {
  if (w.pattern == Pattern::kIncast && w.victim_bytes != 0) return {"incast", "victim"};
  std::vector<std::string> names;
  for (const FlowSpec& f : w.flow)
    if (std::find(names.begin(), names.end(), f.group) == names.end()) names.push_back(f.group);
  if (names.empty()) names.emplace_back();
  return names;
}

tb::Status check_workload(const Workload& w, uint32_t hosts) {
  const auto bad = [](const std::string& key, auto value, const std::string& what) {
    return tb::Status::error(fmt::format("{} = {}: expected {}", key, value, what));
  };
  if (hosts < 2) return bad("cluster.nodes", hosts, "at least 2, a flow goes from one host to another");
  if (w.pattern == Pattern::kIncast && w.victim_bytes != 0 && hosts < 4)
    return bad("cluster.nodes", hosts, "at least 4: receiver, sender, and two hosts of the victim flow");
  for (size_t i = 0; i < w.flow.size(); ++i) {
    const FlowSpec& f = w.flow[i];
    const auto key = [&](const char* name) { return fmt::format("traffic.flow[{}].{}", i, name); };
    if (f.src >= hosts) return bad(key("src"), f.src, fmt::format("below cluster.nodes = {}", hosts));
    if (f.dst >= hosts) return bad(key("dst"), f.dst, fmt::format("below cluster.nodes = {}", hosts));
    if (f.src == f.dst) return bad(key("dst"), f.dst, "another host than src");
  }
  return {};
}

Flows make_flows(const Workload& w, uint32_t hosts, uint32_t planes, uint64_t seed) {
  Flows flows;
  Maker make(flows);
  tb::Rng rng(seed, 0x776f726b);
  const uint64_t bytes = w.per_plane ? w.bytes * planes : w.bytes;
  switch (w.pattern) {
    case Pattern::kFlows: {
      const std::vector<std::string> names = groups_of(w);
      for (const FlowSpec& f : w.flow) {
        const auto group = std::find(names.begin(), names.end(), f.group) - names.begin();
        make.stream(f.src, f.dst, f.bytes, f.count, f.depth, from_us(f.start_us),
                    static_cast<uint16_t>(group));
      }
      break;
    }
    case Pattern::kPermutation: {
      // One cycle through all hosts, so nobody sends to itself.
      std::vector<uint32_t> to(hosts);
      std::iota(to.begin(), to.end(), 0);
      for (uint32_t i = hosts - 1; i > 0; --i) std::swap(to[i], to[rng.below(i)]);
      for (uint32_t i = 0; i < hosts; ++i) make.add(i, to[i], bytes);
      break;
    }
    case Pattern::kAllToAll:
      flows.at_a_time = w.at_a_time;
      for (uint32_t i = 0; i < hosts; ++i)
        for (uint32_t k = 1; k < hosts; ++k) make.add(i, (i + k) % hosts, bytes).queued = true;
      break;
    case Pattern::kRing:
      for (uint32_t step = 0; step < w.steps; ++step) {
        for (uint32_t i = 0; i < hosts; ++i) {
          Flow& f = make.add(i, (i + 1) % hosts, bytes);
          if (step == 0) continue;
          (w.on_delivery ? f.after_got : f.after_told) = (step - 1) * hosts + (i + hosts - 1) % hosts;
        }
      }
      break;
    case Pattern::kIncast: {
      const uint32_t first = w.victim_bytes != 0 ? 2 : 1, last = w.victim_bytes != 0 ? hosts - 2 : hosts - 1;
      std::vector<uint32_t> senders(last - first + 1);
      std::iota(senders.begin(), senders.end(), first);
      for (size_t i = senders.size() - 1; i > 0; --i) std::swap(senders[i], senders[rng.below(i + 1)]);
      for (uint32_t i = 0; i < w.fan_in; ++i)
        make.stream(senders[i % senders.size()], 0, bytes, w.rounds, 1, 0, 0);
      if (w.victim_bytes != 0) make.stream(hosts - 1, 1, w.victim_bytes, 1, 1, 0, 1);
      break;
    }
    case Pattern::kRpc:
      for (uint32_t i = 0; i < hosts; ++i) {
        const uint32_t server = static_cast<uint32_t>((i + 1 + rng.below(hosts - 1)) % hosts);
        const uint16_t there = make.lane(i, server), back = make.lane(server, i);
        for (uint32_t n = 0; n < w.rounds; ++n) {
          Flow& request = make.add(i, server, bytes);
          request.lane = there;
          if (n != 0) request.after_got = request.id - 1;
          const uint32_t asked = request.id;
          Flow& answer = make.add(server, i, w.answer_bytes);
          answer.lane = back;
          answer.after_got = asked;
        }
      }
      break;
    case Pattern::kMany:
      for (uint32_t i = 0; i < w.connections; ++i) make.stream(0, 1 + i % (hosts - 1), bytes, 1, 1, 0, 0);
      break;
  }
  flows.records.resize(flows.list.size());
  return flows;
}

}  // namespace weft::eval
