// SPDX-License-Identifier: Apache-2.0
#include "tb/node/rtl_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tb/fabric/fabric.h"
#include "tb/trace/pcap.h"
#include "weft_trace.h"

namespace weft::tb {

nlohmann::json Endpoint::stats() const {
  return nlohmann::json::object();
}

NodeFactory rtl_nodes(ModelFactory make_model) {
  return [make_model = std::move(make_model)](const NodeEnv& env) -> std::unique_ptr<Endpoint> {
    return std::make_unique<RtlNode>(env, make_model);
  };
}

namespace {

AxiTiming timing(const MemoryConfig& m) {
  return {m.latency_min_cycles, m.latency_max_cycles, m.bandwidth_bytes_per_cycle, m.stall};
}

}  // namespace

RtlNode::RtlNode(const NodeEnv& env, const ModelFactory& make_model)
    : env_(env),
      model_(make_model(fmt::format("node{}", env.node), env.seed, !env.waves.file.empty())),
      pins_(model_->pins()),
      memory_(memory_base(env.node), env.scenario->memory.size_mib << 20),
      axi_(memory_, timing(env.scenario->memory)),
      host_(pins_.csr, pins_.doorbell),
      // Nodes do not share a clock edge: a phase of its own for each.
      next_edge_(static_cast<Ps>(mix64(env.seed) % kClockPs)) {
  for (const MemoryErrorFault& e : env.scenario->memory.error) {
    if (e.node == env.node) memory_.fail_at(e.addr, e.bytes);
  }
  uint64_t seed = env.seed;
  for (uint32_t p = 0; p < kPorts; ++p) {
    macs_.emplace_back(pins_.mac, p, to_mbps(host_rate_gbps(*env.scenario, env.node)), *env.frames,
                       *env.sink);
    reads_.emplace_back(axi_, pins_.tx_read[p], kBeatBytes, fmt::format("tx{}", p), ++seed);
    writes_.emplace_back(axi_, pins_.rx_write[p], kBeatBytes, fmt::format("rx{}", p), ++seed);
  }
  reads_.emplace_back(axi_, pins_.me_read, kBeatBytes, "me", ++seed);
  writes_.emplace_back(axi_, pins_.me_write, kBeatBytes, "me", ++seed);
  reads_.emplace_back(axi_, pins_.nmc_a, kNmcBeatBytes, "nmc_a", ++seed);
  reads_.emplace_back(axi_, pins_.nmc_b, kNmcBeatBytes, "nmc_b", ++seed);
  writes_.emplace_back(axi_, pins_.nmc_w, kNmcBeatBytes, "nmc_w", ++seed);
  // Random stalls are drawn in every cycle, and move pins.
  may_skip_ = env.scenario->skip_rest && env.scenario->memory.stall == 0;
  *pins_.clk = 0;
  *pins_.rst = 1;
  if (!env.waves.file.empty()) {
    if (!model_->can_trace()) {
      wave_error_ = Status::error(fmt::format("{}: this program is built without waves", env.waves.file));
    } else if (std::FILE* f = std::fopen(env.waves.file.c_str(), "wb"); !f) {
      // The wave library reports nothing: try first.
      wave_error_ =
          Status::error(fmt::format("{}: cannot be written: {}", env.waves.file, std::strerror(errno)));
    } else {
      std::fclose(f);
      waves_ = model_->open_waves(env.waves.file.c_str());
      if (!waves_) wave_error_ = Status::error(fmt::format("{}: cannot be written", env.waves.file));
    }
  }
  // Settle with clock low: assertions look at values from before the edge, and the first edge must find
  // reset.
  model_->enter();
  model_->eval(0);
  watch_ = take_watch();
}

RtlNode::~RtlNode() {
  if (waves_) (void)finish();
}

void RtlNode::on_frame(uint32_t port, Ps first_bit, FrameRef frame) {
  macs_[port].receive(first_bit, std::move(frame));
}

void RtlNode::sample(Ps now) {
  for (MacPort& mac : macs_) mac.sample(now);
  for (AxiReadSlave& s : reads_) s.sample();
  for (AxiWriteSlave& s : writes_) s.sample();
  host_.sample();
  if (trace::issue(pins_.me_trace) || trace::done(pins_.me_trace)) trace_engine(now);
}

void RtlNode::drive(Ps next_edge) {
  for (MacPort& mac : macs_) mac.drive(next_edge);
  axi_.next_cycle();
  // Readers take turns at being first to the bandwidth that is left.
  const size_t n = reads_.size();
  size_t i = axi_.cycle % n;
  for (size_t k = 0; k < n; ++k) {
    reads_[i].drive();
    if (++i == n) i = 0;
  }
  for (AxiWriteSlave& s : writes_) s.drive();
  host_.drive();
}

bool RtlNode::at_rest() const {
  return idle() && std::all_of(macs_.begin(), macs_.end(), [](const MacPort& m) { return m.at_rest(); });
}

void RtlNode::advance_to(Ps end) {
  model_->enter();
  for (; next_edge_ < end && !rtl_failed_; next_edge_ += kClockPs, ++cycle_) {
    const Ps now = next_edge_;
    const bool live = cycle_ >= kResetCycles;
    const bool dump = waves_ && now >= env_.waves.from_ps && now <= env_.waves.to_ps;
    rested_ = at_rest() ? rested_ + 1 : 0;
    if (rested_ > kSettleCycles && may_skip_ && !dump) {
      const Ps until = waves_ && now < env_.waves.from_ps ? std::min(end, env_.waves.from_ps) : end;
      const auto cycles = static_cast<uint64_t>((until - now + kClockPs - 1) / kClockPs);
      if ((may_skip_ = model_->advance(cycles))) {
        axi_.skip_cycles(cycles);
        next_edge_ += static_cast<Ps>(cycles - 1) * kClockPs;  // the loop adds the last
        cycle_ += cycles - 1;
        continue;
      }
    }
    if (live) sample(now);
    *pins_.clk = 1;
    rtl_failed_ = !model_->eval(now);
    if (dump) model_->dump_waves(now);
    if (live) {
      drive(now + kClockPs);
    } else if (cycle_ + 1 == kResetCycles) {
      *pins_.rst = 0;
    }
    *pins_.clk = 0;
    rtl_failed_ |= !model_->eval(now + kClockPs / 2);
    if (dump) model_->dump_waves(now + kClockPs / 2);
  }
}

void RtlNode::trace_engine(Ps now) {
  ++engine_activity_;
  if (!env_.engine_trace) return;
  const uint32_t* w = pins_.me_trace;
  if (trace::done(w))
    events_.push_back(
        {now, true, trace::done_subgraph(w), trace::done_entry(w), trace::done_opcode(w), trace::status(w)});
  if (trace::issue(w))
    events_.push_back({now, false, trace::subgraph(w), trace::entry(w), trace::opcode(w), 0});
}

bool RtlNode::idle() const {
  if (cycle_ <= kResetCycles || !*pins_.idle || !host_.empty()) return false;
  for (const MacPort& mac : macs_) {
    if (!mac.idle()) return false;
  }
  for (const AxiReadSlave& s : reads_) {
    if (!s.idle()) return false;
  }
  for (const AxiWriteSlave& s : writes_) {
    if (!s.idle()) return false;
  }
  return true;
}

uint64_t RtlNode::activity() const {
  uint64_t sum = axi_.activity + engine_activity_ + host_.done();
  for (const MacPort& mac : macs_) sum += mac.counts().rx_frames + mac.counts().tx_frames;
  return sum;
}

uint64_t RtlNode::rx_bytes_written() const {
  uint64_t sum = 0;
  for (uint32_t p = 0; p < kPorts; ++p) sum += writes_[p].counts().bytes;
  return sum;
}

Status RtlNode::status() const {
  const auto in_node = [&](const std::string& what) {
    return Status::error(fmt::format("node {}: {}", env_.node, what));
  };
  if (!wave_error_.ok()) return wave_error_;
  if (watch_ && !watch_->fault().empty()) return in_node(watch_->fault());
  if (rtl_failed_)
    return in_node(
        fmt::format("an assertion of the RTL failed in cycle {} (its message is above)", cycle_ - 1));
  if (!axi_.error.ok()) return in_node(axi_.error.text());
  for (const MacPort& mac : macs_) {
    if (!mac.error().ok()) return in_node(mac.error().text());
  }
  return {};
}

std::string RtlNode::state() const {
  std::string text = fmt::format("cycle {}, idle_o {}", cycle_, *pins_.idle);
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += "; " + part;
  };
  add(host_.state());
  for (const MacPort& mac : macs_) add(mac.state());
  for (const AxiReadSlave& s : reads_) add(s.state());
  for (const AxiWriteSlave& s : writes_) add(s.state());
  return text;
}

nlohmann::json RtlNode::stats() const {
  nlohmann::json j;
  j["cycles"] = cycle_;
  j["host_accesses"] = host_.done();
  j["host_errors"] = host_.errors();
  for (const MacPort& mac : macs_) {
    const MacCounts& c = mac.counts();
    j["mac"].push_back({{"tx_frames", c.tx_frames},
                        {"tx_bytes", c.tx_bytes},
                        {"rx_frames", c.rx_frames},
                        {"rx_bytes", c.rx_bytes},
                        {"tx_stall_cycles", c.tx_stall_cycles},
                        {"underruns", c.underruns}});
  }
  const auto axi = [](const AxiCounts& c) {
    return nlohmann::json{{"bursts", c.bursts}, {"beats", c.beats}, {"bytes", c.bytes}, {"errors", c.errors}};
  };
  for (const AxiReadSlave& s : reads_) j["axi_read"][s.name()] = axi(s.counts());
  for (const AxiWriteSlave& s : writes_) j["axi_write"][s.name()] = axi(s.counts());
  return j;
}

Status RtlNode::finish() {
  if (!waves_) return {};
  waves_ = false;
  if (model_->close_waves()) return {};
  remove_partial(env_.waves.file);
  return Status::error(fmt::format("{}: cannot be written (disk full?)", env_.waves.file));
}

}  // namespace weft::tb
