// SPDX-License-Identifier: Apache-2.0
#include "tb/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "tb/check/ledger.h"
#include "tb/check/traffic.h"
#include "tb/fabric/fabric.h"
#include "tb/memory/memory.h"
#include "tb/node/endpoint.h"
#include "tb/node/host_access.h"
#include "tb/sim/kernel.h"
#include "tb/trace/pcap.h"
#include "tb/trace/timeline.h"

namespace weft::tb {
namespace {

constexpr Ps kReadPatience = kMs;  // a register read that takes longer is answered as by a dead device
constexpr Ps kHostPoll = kUs;      // a host that waits looks so often at least: it may have clocks of its own

// One node's process: passes frames between its endpoint and the fabric, watched by capture and log.
class HostProcess final : public FabricHost, public FrameSink {
 public:
  explicit HostProcess(uint32_t node) : node_(node) {}

  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::unique_ptr<PcapFile>> captures;  // per port, or empty
  WireLog log;
  uint64_t sent = 0, delivered = 0, injected = 0;
  bool capture_failed = false;

  void advance_to(Ps end) override {
    endpoint->advance_to(end);
    for (auto& capture : captures) {
      if (Status s = capture->write_until(end); !s.ok()) {
        capture_failed = true;
        fail(s);
      }
    }
    if (Status s = endpoint->status(); !s.ok()) fail(s);
  }

  Ps wants_at() const override { return endpoint->wants_at(); }

  void send(uint32_t port, Ps first_bit, Ps last_bit, Ps known, FrameRef frame) override {
    ++sent;
    describe(*frame);
    note(WireWhat::kTx, port, first_bit, last_bit, frame);
    // A frame whose head left before its end was known reaches a cut-through switch late: no event may go
    // back in time.
    if (!transmit(port, first_bit, last_bit, std::max(first_bit, known), std::move(frame))) {
      WireRecord lost = log.back();
      lost.what = WireWhat::kLost;
      lost.reason = LossReason::kDown;
      lost.node = lost.info.ipv4 ? lost.info.dst_ip & 0xffff : ~0u;
      lost.port = static_cast<uint8_t>(lost.info.dst_ip >> 16);
      log.push_back(lost);
    }
  }

 protected:
  void on_frame(uint32_t port, Ps first_bit, FrameRef frame) override {
    ++delivered;
    if ((frame->flags & kFrameInjected) != 0) ++injected;
    const Ps end = first_bit + uplink(port).rate.time(frame->meta.wire_bytes);
    note(WireWhat::kRx, port, first_bit, end, frame);
    endpoint->on_frame(port, first_bit, std::move(frame));
  }
  void on_timer(Ps, uint32_t) override {}  // an endpoint has none: it asks for time with wants_at()

 private:
  void note(WireWhat what, uint32_t port, Ps start, Ps end, const FrameRef& frame) {
    WireRecord r;
    r.time = end;
    r.start = start;
    r.info = inspect(*frame);
    r.node = node_;
    r.bytes = frame->meta.wire_bytes;
    r.port = static_cast<uint8_t>(port);
    r.flags = frame->flags;
    r.what = what;
    log.push_back(r);
    if (!captures.empty() && (frame->flags & kFrameDecoded) == 0) captures[port]->add(end, frame);
  }

  const uint32_t node_;
};

class NodeHal;

}  // namespace

struct Cluster::Impl {
  explicit Impl(const Scenario& s) : scenario(s) {}

  FramePool frames;  // first: everything else holds frames
  Scenario scenario;
  uint32_t ports = 0;
  std::unique_ptr<Kernel> kernel;
  std::vector<std::unique_ptr<HostProcess>> hosts;
  std::unique_ptr<Fabric> fabric;
  std::vector<std::unique_ptr<NodeHal>> hals;
  std::unique_ptr<Timeline> timeline;
  TrafficChecker checker;
  std::vector<WireLog*> logs;
  std::vector<const WireRecord*> merged;  // scratch of merge()
  Status status;
  bool timeline_failed = false;
  uint64_t last_activity = 0;
  Ps last_change = 0;

  void failed(const Status& s) {
    if (status.ok() && !s.ok()) status = s;
  }
  void trace(const Status& s) {
    if (!s.ok()) timeline_failed = true;
    failed(s);
  }
  bool trace_failed() const {
    return timeline_failed ||
           std::any_of(hosts.begin(), hosts.end(), [](const auto& h) { return h->capture_failed; });
  }
  Ps window(Ps limit) {
    kernel->run_window(limit);
    failed(kernel->status());
    return kernel->now();
  }
  void merge();
  bool quiet();
  std::string diagnosis() const;
  RunResult run(const std::function<bool()>* done, Ps limit, bool watch, const char* waiting_for);
};

namespace {

class NodeHal final : public weft::Hal {
 public:
  NodeHal(Cluster::Impl& impl, uint32_t node, HostAccess& host, Memory& memory)
      : impl_(impl), node_(node), host_(host), memory_(memory) {}

  void csr_write(uint32_t addr, uint32_t value) override { host_.write(addr, value); }
  void doorbell(const void* bytes64) override { host_.doorbell(bytes64); }
  uint64_t now_ns() override { return static_cast<uint64_t>(impl_.kernel->now() / kNs); }

  uint32_t csr_read(uint32_t addr) override {
    const uint64_t before = host_.reads_answered();
    const Ps deadline = impl_.kernel->now() + kReadPatience;
    host_.read(addr);
    while (host_.reads_answered() == before) {
      if (!impl_.status.ok() || impl_.kernel->now() >= deadline) return ~uint32_t{0};
      impl_.window(deadline);
    }
    return host_.last_read();
  }

  void mem_write(uint64_t addr, const void* bytes, size_t count) override {
    if (inside(addr, count)) std::memcpy(memory_.data(addr), bytes, count);
  }
  void mem_read(uint64_t addr, void* bytes, size_t count) override {
    if (inside(addr, count)) {
      std::memcpy(bytes, memory_.data(addr), count);
    } else {
      std::memset(bytes, 0xff, count);
    }
  }
  void relax() override { impl_.window(impl_.kernel->now() + impl_.kernel->lookahead()); }

 private:
  bool inside(uint64_t addr, size_t count) {
    if (memory_.contains(addr, count)) return true;
    impl_.failed(Status::error(
        fmt::format("node {}: the host accesses {} bytes at {:#x}, outside the memory of {} bytes at {:#x}",
                    node_, count, addr, memory_.size(), memory_.base())));
    return false;
  }

  Cluster::Impl& impl_;
  uint32_t node_;
  HostAccess& host_;
  Memory& memory_;
};

template <class T>
bool parse_number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<WaveConfig> parse_waves(const std::string& argument, uint32_t nodes) {
  std::vector<std::string> parts(1);
  for (char c : argument) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  const auto bad = [&](const std::string& expected) {
    return Status::error(fmt::format("--waves = {}: expected {}", argument, expected));
  };
  if (parts[0].empty() || parts.size() == 3 || parts.size() > 4) return bad("FILE[:node[:from_us:to_us]]");
  WaveConfig w;
  w.file = parts[0];
  if (parts.size() > 1 && (!parse_number(parts[1], w.node) || w.node >= nodes)) {
    return bad(fmt::format("a node below {}", nodes));
  }
  if (parts.size() == 4) {
    double from = 0, to = 0;
    if (!parse_number(parts[2], from) || !parse_number(parts[3], to) || !(from >= 0) || !(to > from) ||
        to > 1e9) {
      return bad("times in us, from before to");
    }
    w.from_ps = std::llround(from * 1e6);
    w.to_ps = std::llround(to * 1e6);
  }
  return w;
}

Cluster::Cluster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cluster::~Cluster() = default;

Result<std::unique_ptr<Cluster>> Cluster::create(const Scenario& scenario, const NodeFactory& make_node,
                                                 const TraceConfig& traces) {
  if (Status s = check_scenario(scenario); !s.ok()) return s;
  auto owned = std::make_unique<Impl>(scenario);
  Impl& impl = *owned;
  const Scenario& s = impl.scenario;
  uint32_t threads = s.threads ? s.threads : std::max(1u, std::thread::hardware_concurrency());
  threads = std::min(threads, s.nodes);
  impl.kernel = std::make_unique<Kernel>(std::llround(s.fabric.link_latency_ns * 1000), threads);
  if (!traces.waves.file.empty() && traces.waves.node >= s.nodes) {
    return Status::error(
        fmt::format("{}: node {}: expected a node below {}", traces.waves.file, traces.waves.node, s.nodes));
  }

  for (uint32_t k = 0; k < s.nodes; ++k) {
    auto host = std::make_unique<HostProcess>(k);
    NodeEnv env;
    env.node = k;
    env.seed = mix64(s.seed ^ mix64(k + 1));
    env.scenario = &s;
    env.frames = &impl.frames;
    env.sink = host.get();
    env.engine_trace = !traces.timeline.empty();
    if (traces.waves.node == k) env.waves = traces.waves;
    host->endpoint = make_node(env);
    if (Status st = host->endpoint->status(); !st.ok()) return st;
    const uint32_t ports = host->endpoint->ports();
    if (k != 0 && ports != impl.ports) {
      return Status::error(
          fmt::format("node {} has {} ports, node 0 has {}: expected the same", k, ports, impl.ports));
    }
    impl.ports = ports;
    impl.kernel->add(*host);
    impl.hosts.push_back(std::move(host));
  }
  const std::string where = s.file.empty() ? "scenario" : s.file;
  if (s.planes > impl.ports) {
    return Status::error(fmt::format("{}: cluster.planes = {}: expected at most the {} ports of a node",
                                     where, s.planes, impl.ports));
  }
  for (size_t i = 0; i < s.faults.drop.size(); ++i) {
    if (s.faults.drop[i].port >= impl.ports) {
      return Status::error(fmt::format("{}: faults.drop[{}].port = {}: expected below {}", where, i,
                                       s.faults.drop[i].port, impl.ports));
    }
  }
  const auto port_exists = [&](const char* list, size_t i, const LinkName& link) -> Status {
    if (link.port < static_cast<int>(impl.ports)) return {};
    return Status::error(
        fmt::format("{}: {}[{}].port = {}: expected below {}", where, list, i, link.port, impl.ports));
  };
  for (size_t i = 0; i < s.faults.down.size(); ++i) {
    if (Status st = port_exists("faults.down", i, s.faults.down[i]); !st.ok()) return st;
  }
  for (size_t i = 0; i < s.fabric.link.size(); ++i) {
    if (Status st = port_exists("fabric.link", i, s.fabric.link[i]); !st.ok()) return st;
  }
  if (s.fabric.pfc)
    return Status::error(
        fmt::format("{}: fabric.pfc = true: expected false: the MAC of a node does not stop", where));
  const FabricUse use{.log = true, .host_first_bit = true};
  impl.fabric = std::make_unique<Fabric>(*impl.kernel, impl.frames, s, impl.ports, use);

  for (uint32_t k = 0; k < s.nodes; ++k) {
    HostProcess& host = *impl.hosts[k];
    host.attach(*impl.fabric, k);
    impl.logs.push_back(&host.log);
    HostAccess* host_access = host.endpoint->host();
    Memory* memory = host.endpoint->memory();
    impl.hals.push_back(host_access && memory ? std::make_unique<NodeHal>(impl, k, *host_access, *memory)
                                              : nullptr);
  }
  for (WireLog* log : impl.fabric->logs()) impl.logs.push_back(log);

  if (!traces.pcap_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(traces.pcap_dir, error);
    if (error) return Status::error(fmt::format("{}: cannot be made: {}", traces.pcap_dir, error.message()));
    for (uint32_t k = 0; k < s.nodes; ++k) {
      for (uint32_t p = 0; p < impl.ports; ++p) {
        auto file = PcapFile::create(fmt::format("{}/node{}_port{}.pcap", traces.pcap_dir, k, p));
        if (!file.ok()) return Status::error(file.error());
        impl.hosts[k]->captures.push_back(file.take());
      }
    }
  }
  if (!traces.timeline.empty()) {
    auto file = Timeline::create(traces.timeline, s.nodes, impl.ports);
    if (!file.ok()) return Status::error(file.error());
    impl.timeline = file.take();
  }
  impl.kernel->on_window_end([&impl](Ps) { impl.merge(); });
  return std::unique_ptr<Cluster>(new Cluster(std::move(owned)));
}

// The records of a window in the order of time; those of one time in the order of the processes.
void Cluster::Impl::merge() {
  merged.clear();
  for (const WireLog* log : logs) {
    for (const WireRecord& r : *log) merged.push_back(&r);
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const WireRecord* a, const WireRecord* b) { return a->time < b->time; });
  for (const WireRecord* r : merged) {
    checker.record(*r);
    if (timeline) timeline->frame(*r);
  }
  for (WireLog* log : logs) log->clear();
  if (!timeline) return;
  for (uint32_t k = 0; k < hosts.size(); ++k) {
    std::vector<EngineEvent>* events = hosts[k]->endpoint->engine_events();
    if (!events) continue;
    for (const EngineEvent& e : *events) timeline->engine(k, e);
    events->clear();
  }
  trace(timeline->flush());
}

// Whether nothing useful has happened for the scenario's patience.
bool Cluster::Impl::quiet() {
  uint64_t activity = 0;
  for (const auto& host : hosts) activity += host->sent + host->delivered + host->endpoint->activity();
  if (activity != last_activity) {
    last_activity = activity;
    last_change = kernel->now();
  }
  return kernel->now() - last_change > static_cast<Ps>(scenario.watchdog_us * 1e6);
}

std::string Cluster::Impl::diagnosis() const {
  std::string text = fmt::format("  fabric: {} frames in flight", kernel->pending_events());
  for (uint32_t k = 0; k < hosts.size(); ++k) {
    const std::string state = hosts[k]->endpoint->state();
    text += fmt::format("\n  node {}: sent {}, received {}{}{}", k, hosts[k]->sent, hosts[k]->delivered,
                        state.empty() ? "" : "; ", state);
  }
  return text;
}

RunResult Cluster::Impl::run(const std::function<bool()>* done, Ps limit, bool watch,
                             const char* waiting_for) {
  const Ps start = kernel->now();
  const Ps deadline = limit > kNever - start ? kNever : start + limit;
  last_change = start;
  for (;;) {
    if (!status.ok())
      return {RunEnd::kFailed, fmt::format("at {} ns: {}", kernel->now() / kNs, status.text()), ""};
    if (done && (*done)()) return {};
    if (kernel->now() >= deadline) break;
    window(done ? std::min(deadline, kernel->now() + kHostPoll) : deadline);
    if (watch && quiet() && status.ok() && !(*done)()) {
      return {RunEnd::kHang,
              fmt::format("at {} ns: nothing has moved since {} ns while waiting for {}", kernel->now() / kNs,
                          last_change / kNs, waiting_for),
              diagnosis()};
    }
  }
  if (!done) return {};
  return {RunEnd::kLimit,
          fmt::format("at {} ns: gave up after {} ns of waiting for {}", kernel->now() / kNs, limit / kNs,
                      waiting_for),
          diagnosis()};
}

uint32_t Cluster::nodes() const {
  return impl_->scenario.nodes;
}
uint32_t Cluster::ports() const {
  return impl_->ports;
}
uint32_t Cluster::planes() const {
  return impl_->scenario.planes;
}
const Scenario& Cluster::scenario() const {
  return impl_->scenario;
}
uint64_t Cluster::mac(uint32_t node, uint32_t port) {
  return node_mac(node, port);
}
uint32_t Cluster::ip(uint32_t node, uint32_t port) {
  return node_ip(node, port);
}

bool Cluster::has_host(uint32_t node) const {
  return impl_->hals[node] != nullptr;
}
Hal& Cluster::hal(uint32_t node) {
  if (!impl_->hals[node]) std::abort();
  return *impl_->hals[node];
}
Memory& Cluster::memory(uint32_t node) {
  Memory* memory = impl_->hosts[node]->endpoint->memory();
  if (!memory) std::abort();
  return *memory;
}
Endpoint& Cluster::node(uint32_t node) {
  return *impl_->hosts[node]->endpoint;
}

Ps Cluster::now_ps() const {
  return impl_->kernel->now();
}
RunResult Cluster::run_until(const std::function<bool()>& done, Ps limit_ps) {
  return impl_->run(&done, limit_ps, true, "the predicate");
}
RunResult Cluster::run_for(Ps duration_ps) {
  return impl_->run(nullptr, duration_ps, false, "");
}
RunResult Cluster::settle(Ps limit_ps) {
  const std::function<bool()> settled = [this] {
    if (impl_->kernel->pending_events() != 0) return false;
    return std::all_of(impl_->hosts.begin(), impl_->hosts.end(),
                       [](const auto& host) { return host->endpoint->idle(); });
  };
  return impl_->run(&settled, limit_ps, true, "idle nodes and an empty fabric");
}

void Cluster::set_fault_rates(const FaultConfig& faults) {
  FaultConfig& f = impl_->scenario.faults;  // the switches look there for every frame
  f.loss = faults.loss;
  f.reorder = faults.reorder;
  f.duplicate = faults.duplicate;
  f.corrupt = faults.corrupt;
}

void Cluster::inject(uint32_t node, uint32_t port, const void* bytes, size_t count, bool mac_error) {
  if (count == 0) return;  // nothing came
  // A MAC passes on no more of a frame than it can hold: what is longer comes cut, and still far too long.
  FrameRef frame = impl_->frames.make(bytes, std::min(count, kMaxFrameBytes));
  frame->flags = static_cast<uint8_t>(kFrameInjected | (mac_error ? kFrameMacError : 0));
  describe(*frame);
  impl_->kernel->post(node, impl_->kernel->now(), port, std::move(frame));
}

TrafficCounts Cluster::traffic() const {
  TrafficCounts t = impl_->checker.counts();
  for (const auto& host : impl_->hosts) t.written_payload_bytes += host->endpoint->rx_bytes_written();
  return t;
}

FabricCounts Cluster::fabric() const {
  FabricCounts c = impl_->fabric->counts();
  for (const auto& host : impl_->hosts) {
    c.in += host->sent;
    c.delivered += host->delivered;
    c.injected += host->injected;
  }
  c.in_flight = impl_->kernel->pending_frames();
  return c;
}

uint64_t Cluster::cycles(uint32_t node) const {
  return impl_->hosts[node]->endpoint->cycles();
}
const Status& Cluster::status() const {
  return impl_->status;
}
bool Cluster::trace_failed() const {
  return impl_->trace_failed();
}

nlohmann::json Cluster::stats() const {
  const TrafficCounts t = traffic();
  const FabricCounts f = fabric();
  nlohmann::json j;
  j["now_ns"] = static_cast<double>(now_ps()) / 1000;
  j["traffic"] = {{"data_packets", t.data_packets},
                  {"data_bytes", t.data_bytes},
                  {"acks", t.acks},
                  {"probes", t.probes},
                  {"other", t.other},
                  {"lost", t.lost},
                  {"acks_lost", t.acks_lost},
                  {"ce_marked", t.ce_marked},
                  {"resent", t.resent},
                  {"needless_resent", t.needless_resent},
                  {"redelivered", t.redelivered},
                  {"unique_payload_bytes", t.unique_payload_bytes},
                  {"written_payload_bytes", t.written_payload_bytes}};
  j["fabric"] = {{"in", f.in},
                 {"duplicated", f.duplicated},
                 {"injected", f.injected},
                 {"delivered", f.delivered},
                 {"corrupted", f.corrupted},
                 {"ce_marked", f.ce_marked},
                 {"drop_loss", f.drop_loss},
                 {"drop_listed", f.drop_listed},
                 {"drop_queue", f.drop_queue},
                 {"drop_down", f.drop_down},
                 {"drop_no_route", f.drop_no_route},
                 {"in_flight", f.in_flight}};
  struct Plane {
    uint64_t frames = 0, bytes = 0, ce_marked = 0, drops = 0;
  };
  std::vector<Plane> planes(impl_->scenario.planes);
  j["links"] = nlohmann::json::array();
  for (const LinkCounts* l : impl_->fabric->links()) {
    const uint64_t drops = l->drop_queue + l->drop_down + l->drop_loss + l->drop_listed;
    Plane& plane = planes[l->plane];
    plane.frames += l->frames;
    plane.bytes += l->bytes;
    plane.ce_marked += l->ce_marked;
    plane.drops += drops;
    if (l->frames == 0 && drops == 0) continue;
    j["links"].push_back({{"link", l->name},
                          {"frames", l->frames},
                          {"bytes", l->bytes},
                          {"ce_marked", l->ce_marked},
                          {"drop_queue", l->drop_queue},
                          {"drop_down", l->drop_down},
                          {"drop_loss", l->drop_loss},
                          {"drop_listed", l->drop_listed},
                          {"max_queue_bytes", l->max_queue_bytes}});
  }
  for (const Plane& p : planes) {
    j["planes"].push_back(
        {{"frames", p.frames}, {"bytes", p.bytes}, {"ce_marked", p.ce_marked}, {"drops", p.drops}});
  }
  for (const auto& [name, count] : impl_->fabric->no_route()) {
    if (count != 0) j["no_route"][name] = count;
  }
  for (const auto& host : impl_->hosts) j["nodes"].push_back(host->endpoint->stats());
  j["kernel"] = {{"windows", impl_->kernel->windows()}, {"threads", impl_->kernel->threads()}};
  return j;
}

Status Cluster::finish() {
  Impl& impl = *impl_;
  // A trace that could not be written takes the others with it: none of them would cover the run.
  for (auto& host : impl.hosts) {
    for (auto& capture : host->captures) {
      if (!impl.trace_failed()) impl.trace(capture->close());
    }
  }
  if (impl.timeline && !impl.trace_failed()) impl.trace(impl.timeline->close(now_ps()));
  if (!impl.trace_failed()) {
    for (auto& host : impl.hosts) {
      for (auto& capture : host->captures) impl.trace(capture->keep());
    }
    if (impl.timeline) impl.trace(impl.timeline->keep());
  }
  for (auto& host : impl.hosts) {
    host->captures.clear();
    impl.failed(host->endpoint->finish());
  }
  impl.timeline.reset();
  const FabricCounts f = fabric();
  if (!f.balanced()) {
    impl.failed(
        Status::error(fmt::format("frames do not add up: in {} + copies {} + injected {} != delivered {} + "
                                  "lost {} + listed {} + queue {} + down {} + no "
                                  "route {} + in flight {}",
                                  f.in, f.duplicated, f.injected, f.delivered, f.drop_loss, f.drop_listed,
                                  f.drop_queue, f.drop_down, f.drop_no_route, f.in_flight)));
  }
  const TrafficCounts t = traffic();
  if (t.written_payload_bytes > t.unique_payload_bytes && f.injected == 0) {
    impl.failed(Status::error(
        fmt::format("payload was delivered twice: {} bytes written to memory, {} bytes sent once",
                    t.written_payload_bytes, t.unique_payload_bytes)));
  }
  std::vector<const Watch*> watches;
  for (auto& host : impl.hosts) watches.push_back(host->endpoint->watch());
  impl.failed(compare_ends(watches));
  return impl.status;
}

}  // namespace weft::tb
