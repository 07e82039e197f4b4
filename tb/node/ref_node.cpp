// SPDX-License-Identifier: Apache-2.0
#include "tb/node/ref_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sw/weft/device.h"
#include "tb/fabric/fabric.h"
#include "weft_counters.h"
#include "weft_regs.h"

namespace weft::tb {
namespace {

using NodeEvent = counters::Node;
using PortEvent = counters::Port;

constexpr uint32_t kPsnMask = 0xffffff;

constexpr uint32_t at(PortEvent e) {
  return static_cast<uint32_t>(e);
}

}  // namespace

NodeFactory ref_nodes() {
  return [](const NodeEnv& env) -> std::unique_ptr<Endpoint> { return std::make_unique<RefNode>(env); };
}

NodeFactory bodies(ModelFactory make_model) {
  return [rtl = rtl_nodes(std::move(make_model)), ref = ref_nodes()](const NodeEnv& env) {
    return is_reference(*env.scenario, env.node) ? ref(env) : rtl(env);
  };
}

// What the endpoint sees of the node.
struct RefNode::TransportEnv final : ref::Env {
  explicit TransportEnv(RefNode& n) : node(n) {}
  bool read(uint64_t va, uint8_t* bytes, uint32_t count) override {
    if (!node.memory_.contains(va, count) || node.memory_.faulty(va, count)) return false;
    std::memcpy(bytes, node.memory_.data(va), count);
    return true;
  }
  bool write(uint64_t va, const uint8_t* bytes, uint32_t count) override {
    if (!node.memory_.contains(va, count) || node.memory_.faulty(va, count)) return false;
    std::memcpy(node.memory_.data(va), bytes, count);
    node.rx_bytes_written_ += count;
    return true;
  }
  bool signal(uint16_t sem, uint32_t amount) override {
    node.pending_.push_back({true, wire::Err::OK, sem, amount, 0});
    return sem < node.size_.sems;
  }
  void completed(const ref::Completion& c) override {
    if (c.what != ref::Completed::kRequest) return;
    ++(c.status == wire::Err::OK ? node.messages_sent_ : node.messages_failed_);
    node.pending_.push_back({false, c.status, 0, 0, c.id});
  }
  RefNode& node;
};

// What the engine sees of it.
struct RefNode::EngineIo final : ref::EngineEnv {
  explicit EngineIo(RefNode& n) : node(n) {}
  bool read(uint64_t va, uint8_t* bytes, uint32_t count) override {
    return node.transport_env_->read(va, bytes, count);
  }
  bool write(uint64_t va, const uint8_t* bytes, uint32_t count) override {
    if (!node.memory_.contains(va, count) || node.memory_.faulty(va, count)) return false;
    std::memcpy(node.memory_.data(va), bytes, count);
    return true;
  }
  wire::Err post_write(Ps now, uint64_t tag, const wire::Wqe& entry) override {
    return node.post_write(now, tag, entry);
  }
  uint64_t clock(Ps now) override { return node.clock(now); }
  void trace(Ps now, bool done, uint16_t subgraph, uint32_t entry, wire::WqeOp opcode,
             wire::Err status) override {
    if (!node.env_.engine_trace) return;
    node.events_.push_back(
        {now, done, subgraph, entry, static_cast<uint8_t>(opcode), static_cast<uint8_t>(status)});
  }
  RefNode& node;
};

RefNode::RefNode(const NodeEnv& env)
    : env_(env),
      rate_mbps_(to_mbps(host_rate_gbps(*env.scenario, env.node))),
      memory_(memory_base(env.node), env.scenario->memory.size_mib << 20),
      host_(size_, *this),
      engine_io_(std::make_unique<EngineIo>(*this)),
      engine_(size_, *engine_io_),
      transport_env_(std::make_unique<TransportEnv>(*this)),
      regions_(size_.regions),
      links_(size_.conns, Link{std::vector<cfg::Conn>(size_.ports)}),
      rx_conns_(size_.conns),
      ports_(size_.ports) {
  for (const MemoryErrorFault& e : env.scenario->memory.error) {
    if (e.node == env.node) memory_.fail_at(e.addr, e.bytes);
  }
  for (Mac& p : ports_) {
    p.rx.resize(64);
    p.counts.assign(counters::kPortCount, 0);
  }
  if (!env.waves.file.empty()) {
    error_ = Status::error(
        fmt::format("{}: node {} is a reference node, which has no waves", env.waves.file, env.node));
  }
}

RefNode::~RefNode() = default;

// ---- time

void RefNode::on_frame(uint32_t port, Ps first_bit, FrameRef frame) {
  Mac& p = ports_[port];
  if (p.rx_count == p.rx.size()) {
    std::vector<Arrival> larger(2 * p.rx.size());
    for (size_t i = 0; i < p.rx_count; ++i) larger[i] = std::move(p.rx[(p.rx_head + i) & (p.rx.size() - 1)]);
    p.rx.swap(larger);
    p.rx_head = 0;
  }
  // The inter-frame gap is part of wire_ps; the difference does not matter here.
  const Ps taken = first_bit + wire_ps(frame->bytes, rate_mbps_) + kRefReceive;
  p.rx[(p.rx_head + p.rx_count) & (p.rx.size() - 1)] = {taken, std::move(frame)};
  ++p.rx_count;
}

Ps RefNode::next_event() const {
  Ps next = std::min(host_.next(now_), engine_.next_timer());
  for (const Mac& p : ports_)
    if (p.rx_count != 0) next = std::min(next, p.rx[p.rx_head].at);
  if (transport_) {
    next = std::min(next, transport_->next_timer());
    for (uint32_t ready = transport_->ready_ports(), p = 0; ready != 0; ready >>= 1, ++p)
      if ((ready & 1) != 0) next = std::min(next, ports_[p].wire_free);
  }
  return std::max(next, now_);
}

void RefNode::advance_to(Ps end) {
  for (Ps t = next_event(); t < end; t = next_event()) {
    now_ = t;
    run(t);
  }
  now_ = end;
}

// Everything that is due; what that causes at once is due again.
void RefNode::run(Ps now) {
  for (uint32_t p = 0; p < ports_.size(); ++p) {
    Mac& port = ports_[p];
    while (port.rx_count != 0 && port.rx[port.rx_head].at <= now) {
      const FrameRef frame = std::move(port.rx[port.rx_head].frame);
      port.rx_head = (port.rx_head + 1) & (port.rx.size() - 1);
      --port.rx_count;
      receive(now, p, *frame);
    }
  }
  if (host_.next(now) <= now) host_.step(now);
  if (transport_ && transport_->next_timer() <= now) {
    transport_->on_timer(now);
    settle(now);
  }
  if (engine_.next_timer() <= now) engine_.on_timer(now);
  if (!transport_) return;
  for (uint32_t p = 0; p < ports_.size(); ++p)
    if ((transport_->ready_ports() >> p & 1) != 0 && ports_[p].wire_free <= now) transmit(now, p);
}

void RefNode::settle(Ps now) {
  // The engine only looks and plans here; it posts from its timer.
  for (const Pending& p : pending_) {
    if (p.signal)
      engine_.signal(now, p.sem, p.amount);
    else
      engine_.written(now, p.tag, p.status);
  }
  pending_.clear();
}

// ---- the wire

void RefNode::receive(Ps now, uint32_t port, const Frame& frame) {
  ++frames_;
  ++count(port, at(PortEvent::kRxFrames));
  const wire::RxPort rx{.mac = ports_[port].address.mac,
                        .ip = ports_[port].address.ip,
                        .conns = rx_conns_,
                        .port = port,
                        .paths_per_port = size_.paths_per_port,
                        .whole_protocol = true};
  const wire::ParseResult parsed =
      wire::parse({frame.data(), frame.bytes}, rx, (frame.flags & kFrameMacError) != 0);
  const auto refuse = [&](wire::Drop why) {
    ++count(port, at(PortEvent::kDropShort) + static_cast<uint32_t>(why));
  };
  if (!parsed) return refuse(*parsed.drop);
  ref::Packet p = ref::decode(parsed.frame);
  const Link& link = links_[p.conn];
  const uint32_t paths = transport_->config().paths, per_port = size_.paths_per_port;
  const auto known = [&](uint8_t path) { return path / per_port < size_.ports && path % per_port < paths; };
  bool good = known(p.path);
  if (p.is_ack())
    for (uint32_t i = 0; i < p.ack.block_count; ++i) good = good && known(p.ack.blocks[i].path);
  if (!good) return refuse(wire::Drop::PATH);
  p.conn = link.number;
  const cfg::Conn& first = link.rows[0];
  const auto path_in = [&](uint8_t& path, uint8_t epoch, uint32_t& psn, bool ack) {
    const cfg::Conn& row = link.rows[path / per_port];
    if (epoch == 0) psn = (psn + (ack ? first.tx_psn - row.tx_psn : first.rx_psn - row.rx_psn)) & kPsnMask;
    path = static_cast<uint8_t>(path / per_port * paths + path % per_port);
  };
  path_in(p.path, p.epoch, p.is_ack() ? p.ack.base : p.psn, p.is_ack());
  if (p.is_ack())
    for (uint32_t i = 0; i < p.ack.block_count; ++i)
      path_in(p.ack.blocks[i].path, p.ack.blocks[i].epoch, p.ack.blocks[i].base, true);
  const uint64_t bytes = rx_bytes_written_;
  transport_->on_packet(now, port, p);
  count(port, at(PortEvent::kRxBytes)) += rx_bytes_written_ - bytes;
  attribute(port);
  settle(now);
}

void RefNode::transmit(Ps now, uint32_t port) {
  ref::Packet p;
  const bool any = transport_->next_packet(now, port, p);
  attribute(port);
  settle(now);  // a payload that cannot be read fails its message
  if (!any) return;
  const Link& link = links_[conn_of_[p.peer]];
  const uint32_t paths = transport_->config().paths;
  const cfg::Conn& first = link.rows[0];
  const auto path_out = [&](uint8_t& path, uint8_t epoch, uint32_t& psn, bool ack) {
    const cfg::Conn& row = link.rows[path / paths];
    if (epoch == 0) psn = (psn + (ack ? row.rx_psn - first.rx_psn : row.tx_psn - first.tx_psn)) & kPsnMask;
    path = static_cast<uint8_t>(path / paths * size_.paths_per_port + path % paths);
  };
  path_out(p.path, p.epoch, p.is_ack() ? p.ack.base : p.psn, p.is_ack());
  if (p.is_ack())
    for (uint32_t i = 0; i < p.ack.block_count; ++i)
      path_out(p.ack.blocks[i].path, p.ack.blocks[i].epoch, p.ack.blocks[i].base, true);
  const wire::Route route{.smac = ports_[port].address.mac,
                          .dmac = link.rows[port].rmac,
                          .sip = ports_[port].address.ip,
                          .dip = link.rows[port].rip};
  FrameRef frame = env_.frames->make(ref::frame_bytes(p));
  ref::encode(frame->data(), route, p);
  ++frames_;
  ++count(port, at(PortEvent::kTxFrames));
  count(port, at(PortEvent::kTxBytes)) += frame->bytes;
  if (p.is_data()) {
    ++count(port, at(PortEvent::kTxData));
    ++count(port, at(PortEvent::kCtlData));
    count(port, at(PortEvent::kCtlDataBytes)) += p.payload_bytes;
  } else {
    ++count(port, at(p.is_ack() ? PortEvent::kTxAcks : PortEvent::kTxProbes));
  }
  Ps& free = ports_[port].wire_free;
  free = now + wire_ps(frame->bytes, rate_mbps_);
  env_.sink->send(port, now, free, now, std::move(frame));
}

void RefNode::attribute(uint32_t port) {
  const ref::Counters& c = transport_->counters();
  const auto move = [&](uint64_t now, uint64_t& seen, PortEvent event) {
    count(port, at(event)) += now - seen;
    seen = now;
  };
  move(c.resent, seen_.resent, PortEvent::kCtlRetx);
  move(c.tail_probes, seen_.tail_probes, PortEvent::kCtlProbeTail);
  move(c.timer_probes, seen_.timer_probes, PortEvent::kCtlProbeTimer);
  move(c.delivered, seen_.delivered, PortEvent::kCtlDelivered);
  move(c.lost, seen_.lost, PortEvent::kCtlLost);
  move(c.conn_failed, seen_.conn_failed, PortEvent::kCtlFail);
  move(c.data_taken, seen_.data_taken, PortEvent::kRxData);
  move(c.probes_taken, seen_.probes_taken, PortEvent::kRxProbes);
  count(port, at(PortEvent::kCtlAckTaken)) += c.acks_taken - seen_.acks_taken;
  move(c.acks_taken, seen_.acks_taken, PortEvent::kRxAcks);
  count(port, at(PortEvent::kRxAcksAgain)) += c.acks_doubled - seen_.acks_doubled;
  seen_.acks_doubled = c.acks_doubled;
  move(c.acks_sent, seen_.acks_sent, PortEvent::kRxAcksSent);
  for (uint32_t d = at(PortEvent::kDropShort); d < counters::kPortCount; ++d) {
    const uint32_t reason = d - at(PortEvent::kDropShort);
    count(port, d) += c.drop[reason] - seen_.drop[reason];
    seen_.drop[reason] = c.drop[reason];
  }
}

// ---- what the host sets up

void RefNode::configure(Ps now, cfg::Table table, uint32_t index, const cfg::Words& words) {
  switch (table) {
    case cfg::Table::kPort:
      if (index < size_.ports) ports_[index].address = cfg::Port::from_words(words);
      break;
    case cfg::Table::kConn:
      if (index / size_.ports < size_.conns)
        configure_link(now, index / size_.ports, index % size_.ports, cfg::Conn::from_words(words));
      break;
    case cfg::Table::kRegion: {
      if (index >= size_.regions) break;
      const cfg::Region r = cfg::Region::from_words(words);
      if (transport_ && regions_[index].valid) transport_->remove_region(regions_[index].key);
      regions_[index] = r;
      if (transport_ && r.valid)
        transport_->add_region(r.key, r.base, r.limit - r.base, r.remote_write ? ref::kRemoteWrite : 0);
      engine_.set_region(index, {r.valid, r.local_read, r.local_write, r.base, r.limit});
      break;
    }
    case cfg::Table::kSem: engine_.set_semaphore(now, index, cfg::Sem::from_words(words).value); break;
    case cfg::Table::kCq: {
      const cfg::Cq q = cfg::Cq::from_words(words);
      engine_.set_ring(now, q.base, q.last);
      break;
    }
    case cfg::Table::kGlobal: global_ = cfg::Global::from_words(words); break;
  }
}

// The first write of a row ends the connection's life; the next begins when every port has its row.
void RefNode::configure_link(Ps now, uint32_t conn, uint32_t port, const cfg::Conn& row) {
  Link& link = links_[conn];
  if (link.open) {
    link.open = false;
    rx_conns_[conn].valid = false;
    transport_->close(link.number, now);
    settle(now);
  }
  link.rows[port] = row;
  link.written |= 1u << port;
  engine_.set_link(conn, port, row.valid);
  const bool all =
      std::all_of(link.rows.begin(), link.rows.end(), [](const cfg::Conn& r) { return r.valid; });
  if (all && link.written == (1u << size_.ports) - 1) open_link(now, conn);
}

void RefNode::make_transport(uint32_t paths) {
  ref::Config c;
  c.ports = size_.ports;
  c.line_mbps = static_cast<uint32_t>(rate_mbps_);
  c.paths = paths;
  c.mtu = 1u << global_.mtu_log2;
  c.rtt_init = Ps{global_.rtt_init} * kClockPs;
  c.tuning.probe_min = Ps{global_.probe_min} * kClockPs;
  c.tuning.retry_limit = global_.retry_limit;
  // What as many probes of a path take when their waits have doubled to eight times the first one: a
  // reference node gives a peer up about when a Verilated one does.
  c.tuning.give_up = std::max<Ps>(Ps{8} * global_.retry_limit * 3 * c.rtt_init, 4 * kMs);
  c.seed = env_.seed;
  transport_ = std::make_unique<ref::Endpoint>(c, *transport_env_);
  for (const cfg::Region& r : regions_)
    if (r.valid)
      transport_->add_region(r.key, r.base, r.limit - r.base, r.remote_write ? ref::kRemoteWrite : 0);
}

void RefNode::open_link(Ps now, uint32_t conn) {
  Link& link = links_[conn];
  const cfg::Conn& row = link.rows[0];
  link.written = 0;
  const auto refuse = [&](const std::string& why) {
    if (error_.ok()) error_ = Status::error(fmt::format("node {}: connection {}: {}", env_.node, conn, why));
  };
  if (!transport_) make_transport(row.num_paths);
  for (const cfg::Conn& r : link.rows)
    if (r.num_paths != transport_->config().paths)
      return refuse(
          fmt::format("num_paths = {}: expected {}, as the connection opened first: the reference "
                      "endpoint has one number for all",
                      r.num_paths, transport_->config().paths));
  // Both ends have been told everything: each makes the other's record itself.
  wire::Hello mine = transport_->offer();
  mine.incarnation = row.incarnation;
  mine.psn = row.tx_psn;
  wire::Hello theirs = mine;
  theirs.conn = row.rconn;
  theirs.psn = row.rx_psn;
  const uint32_t peer = row.rip & 0xffff;  // see node_ip()
  if (!is_reference(*env_.scenario, peer)) theirs.caps = 1u << static_cast<unsigned>(wire::Cap::WRITE);
  const wire::Refusal why =
      transport_->connect(mine, theirs, ref::Peer{static_cast<uint16_t>(mine.conn)}, now);
  if (why != wire::Refusal::NONE) return refuse(fmt::format("refused: {}", wire::name(why)));
  link.number = mine.conn;
  link.open = true;
  if (conn_of_.size() <= link.number) conn_of_.resize(link.number + 1);
  conn_of_[link.number] = conn;
  rx_conns_[conn] = {true, row.incarnation};
}

void RefNode::doorbell(Ps now, const wire::Doorbell& d) {
  engine_.doorbell(now, d);
}

void RefNode::soft_reset(Ps) {
  engine_.reset();
  transport_.reset();
  seen_ = {};
  pending_.clear();
  global_ = {};
  regions_.assign(size_.regions, {});
  links_.assign(size_.conns, Link{std::vector<cfg::Conn>(size_.ports)});
  rx_conns_.assign(size_.conns, {});
}

void RefNode::run_cpu(Ps now, bool run) {
  cpu_run_ = run;
  engine_.run_cpu(now, run);
}

uint32_t RefNode::cpu_status() const {
  return cpu_run_ ? kFirmwareRuns << 16 | (engine_.served() & 0xffff) : 0;
}

uint32_t RefNode::idle_bits() const {
  const bool quiet = !transport_ || transport_->idle();
  return regs::kIdleMe.put(engine_.idle()) | regs::kIdleCore.put(quiet) | regs::kIdleHost.put(1) |
         regs::kIdlePorts.put(quiet ? (1u << size_.ports) - 1 : 0);
}

uint64_t RefNode::clock(Ps now) const {
  return static_cast<uint64_t>(std::max<Ps>(now / kClockPs - kResetCycles, 0));
}

uint64_t RefNode::counter(uint32_t index) const {
  if (index >= counters::count(size_.ports)) return 0;
  if (index >= counters::kNodeCount) {
    const uint32_t i = index - counters::kNodeCount;
    return ports_[i / counters::kPortCount].counts[i % counters::kPortCount];
  }
  const ref::EngineCounters& e = engine_.counters();
  switch (static_cast<NodeEvent>(index)) {
    case NodeEvent::kMeDoorbell: return e.doorbell;
    case NodeEvent::kMeRefused: return e.refused;
    case NodeEvent::kMeRegisterOk: return e.register_ok;
    case NodeEvent::kMeRegisterBad: return e.register_bad;
    case NodeEvent::kMeLaunch: return e.launch;
    case NodeEvent::kMeFinishOk: return e.finish_ok;
    case NodeEvent::kMeFinishBad: return e.finish_bad;
    case NodeEvent::kMeFetched: return e.fetched;
    case NodeEvent::kMeFetchError: return e.fetch_error;
    case NodeEvent::kMeIssueTx: return e.issue_tx;
    case NodeEvent::kMeIssueNmc: return e.issue_nmc;
    case NodeEvent::kMeIssueLocal: return e.issue_local;
    case NodeEvent::kMeDone: return e.done;
    case NodeEvent::kMeFailed: return e.failed;
    case NodeEvent::kMeFlushed: return e.flushed;
    case NodeEvent::kMeSemAdd: return e.sem_add;
    case NodeEvent::kMeSemSaturated: return e.sem_saturated;
    case NodeEvent::kMeSignalBad: return e.signal_bad;
    case NodeEvent::kMeCqe: return e.cqe;
    case NodeEvent::kMeCqeError: return e.cqe_error;
    case NodeEvent::kNmcBeat: return e.nmc_beat;
    case NodeEvent::kNmcRequest: return e.issue_nmc;
    case NodeEvent::kNmcDone: return e.nmc_done;
    case NodeEvent::kNmcError: return e.nmc_error;
    case NodeEvent::kCoreMsgSent: return messages_sent_;
    case NodeEvent::kCoreMsgFailed: return messages_failed_;
    default: return 0;  // how the RTL works inside
  }
}

wire::Err RefNode::post_write(Ps now, uint64_t tag, const wire::Wqe& w) {
  const Link& link = links_[w.conn];
  if (!link.open) return wire::Err::BAD_CONN;
  ref::WorkRequest r;
  r.op = w.signal ? ref::WrOp::kWriteSignal : ref::WrOp::kWrite;
  r.id = tag;
  r.local_va = w.src0;
  r.length = w.length;
  r.remote_va = w.dst;
  r.rkey = w.rkey;
  r.value = w.value;
  r.sem = w.sem;
  return transport_->post(link.number, 0, r, now);
}

// ---- to look at

ref::PathState RefNode::path_state(uint32_t conn, uint32_t port, uint32_t index) const {
  return transport_->path_state(links_[conn].number, port * transport_->config().paths + index);
}

bool RefNode::idle() const {
  if (!host_.empty() || !engine_.idle() || !pending_.empty()) return false;
  if (std::any_of(ports_.begin(), ports_.end(), [](const Mac& p) { return p.rx_count != 0; })) return false;
  return !transport_ || (transport_->idle() && transport_->ready_ports() == 0);
}

uint64_t RefNode::activity() const {
  const ref::EngineCounters& e = engine_.counters();
  uint64_t sum = host_.done() + frames_ + e.done + e.cqe;
  // A long validation or reduction is one event of the model.
  if (engine_.next_timer() != kNever) sum += static_cast<uint64_t>(now_ / kUs);
  return sum;
}

std::string RefNode::state() const {
  std::string text = fmt::format("cycle {}", cycles());
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += "; " + part;
  };
  add(host_.state());
  add(engine_.state());
  for (size_t conn = 0; conn < links_.size(); ++conn)
    if (transport_ && !transport_->idle() && links_[conn].open)
      add(fmt::format("to connection {}: {}", conn, transport_->state(links_[conn].number)));
  return text;
}

nlohmann::json RefNode::stats() const {
  nlohmann::json j;
  j["body"] = "ref";
  j["cycles"] = cycles();
  j["host_accesses"] = host_.done();
  j["host_errors"] = host_.errors();
  for (const Mac& p : ports_) {
    j["mac"].push_back({{"tx_frames", p.counts[at(PortEvent::kTxFrames)]},
                        {"tx_bytes", p.counts[at(PortEvent::kTxBytes)]},
                        {"rx_frames", p.counts[at(PortEvent::kRxFrames)]}});
  }
  return j;
}

}  // namespace weft::tb
