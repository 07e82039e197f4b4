// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/rtl_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "sw/weft/device.h"
#include "tb/cluster.h"
#include "tb/memory/memory.h"
#include "weft_cfg.h"
#include "weft_counters.h"
#include "weft_regs.h"

namespace weft::comply {
namespace {

constexpr std::uint32_t kConn = 3;  // the node's number of the connection
constexpr std::uint32_t kFirstPsn = 0x2000;
constexpr std::uint32_t kRingEntries = 256;
// The node's memory from its base: a page nobody uses, completion ring, entries, regions.
constexpr std::uint64_t kRing = 0x1000, kEntries = 0x10000, kHeap = 0x100000;
constexpr std::uint64_t kMemoryMib = 16;
constexpr std::uint64_t kAlign = 4096;
constexpr double kMostCap = 0xffffff;  // 24 bits
constexpr Ps kPatience = 20 * kMs;     // for what the host waits for while it sets up

// The tester's end of the links: frames that came, and the time of their last bit.
class Listener final : public tb::Endpoint {
 public:
  struct Arrival {
    Ps time;
    std::uint32_t port;
    wire::Frame bytes;
  };
  std::vector<Arrival> arrivals;

  std::uint32_t ports() const override { return tb::RtlNode::kPorts; }
  void on_frame(std::uint32_t port, Ps first_bit, tb::FrameRef frame) override {
    arrivals.push_back({first_bit, port, {frame->data(), frame->data() + frame->bytes}});
  }
  void advance_to(Ps) override {}
  Ps wants_at() const override { return tb::kNever; }
  bool idle() const override { return true; }
};

class RtlBody final : public Body {
 public:
  RtlBody(tb::ModelFactory model, std::vector<std::uint8_t> firmware)
      : model_(std::move(model)), firmware_(std::move(firmware)) {}

  std::uint32_t caps() const override { return 1u << static_cast<unsigned>(wire::Cap::WRITE); }
  std::uint32_t abilities() const override { return kFrames | kControl | kCounters | kStartPsn | kMac; }
  std::uint32_t stride(const BodySetup&) const override { return device_->caps().paths_per_port; }

  Result<wire::Hello> open(const BodySetup& setup, const wire::Hello& offer) override {
    if (setup.ports > tb::RtlNode::kPorts)
      return Status::error(
          fmt::format("rtl: ports = {}: expected at most {}", setup.ports, tb::RtlNode::kPorts));
    constexpr std::uint32_t kMostConn = std::numeric_limits<std::uint16_t>::max();  // that the driver holds
    if (offer.conn > kMostConn)
      return Status::error(fmt::format("rtl: conn = {}: expected at most {}", offer.conn, kMostConn));
    device_.reset();
    tb::Scenario s;
    s.nodes = 2;
    s.planes = 1;
    s.threads = 1;
    s.fabric.link_latency_ns = 100;
    s.memory.size_mib = kMemoryMib;
    listener_ = nullptr;
    const tb::NodeFactory rtl = tb::rtl_nodes(model_);
    auto cluster = tb::Cluster::create(s, [&](const tb::NodeEnv& env) -> std::unique_ptr<tb::Endpoint> {
      if (env.node == kBodyNode) return rtl(env);
      auto l = std::make_unique<Listener>();
      listener_ = l.get();
      return l;
    });
    if (!cluster.ok()) return cluster.status();
    cluster_ = cluster.take();
    base_ = cluster_->memory(kBodyNode).base();
    heap_ = base_ + kHeap;
    entries_ = base_ + kEntries;
    subgraph_ = 0;
    prepared_.clear();
    if (Status st = start(setup, offer); !st.ok()) return Status::error("rtl: " + st.text());

    wire::Hello mine = offer;
    mine.caps = caps();
    mine.needs = 0;
    mine.conn = kConn;
    mine.psn = setup.psn.value_or(kFirstPsn);
    mine.distance = 0;
    return mine;
  }

  Ps now() const override { return cluster_ ? cluster_->now_ps() : 0; }
  void send(std::uint32_t port, wire::Bytes frame, bool mac_error) override {
    cluster_->inject(kBodyNode, port, frame.data(), frame.size(), mac_error);
  }

  Status run(Ps until, std::vector<Event>& out) override {
    // In steps of a window, so that the tester answers as soon as it could.
    const Ps step = static_cast<Ps>(cluster_->scenario().fabric.link_latency_ns * kNs);
    do {
      if (const tb::RunResult r = cluster_->run_for(std::min(step, until - now())); !r.ok())
        return Status::error("rtl: " + r.text);
      collect(out);
    } while (out.empty() && now() < until);
    return {};
  }

  Result<Address> region(std::uint64_t bytes, std::uint8_t rights) override {
    const std::uint64_t at = heap_ + kAlign;
    if (bytes > (kMemoryMib << 20) || at + bytes + 2 * kAlign > base_ + (kMemoryMib << 20))
      return Status::error(
          fmt::format("rtl: region of {} bytes: the node's memory has {} MiB", bytes, kMemoryMib));
    heap_ = (at + bytes + kAlign - 1) / kAlign * kAlign;
    const auto r = device_->add_region(at, bytes, {(rights & ref::kRemoteWrite) != 0, true, true});
    if (!r.ok()) return r.status();
    // Writes are posted; a read comes behind them, so the region is known before a packet can name it.
    (void)cluster_->hal(kBodyNode).csr_read(regs::kId);
    return Address{at, r.value().key};
  }
  Status write(std::uint64_t va, const std::vector<std::uint8_t>& bytes) override {
    cluster_->hal(kBodyNode).mem_write(va, bytes.data(), bytes.size());
    return cluster_->status();
  }
  Result<std::vector<std::uint8_t>> read(std::uint64_t va, std::size_t count) override {
    std::vector<std::uint8_t> bytes(count);
    cluster_->hal(kBodyNode).mem_read(va, bytes.data(), count);
    if (!cluster_->status().ok()) return cluster_->status();
    return bytes;
  }

  // A request is a subgraph of one entry, registered beforehand because the firmware takes its time to check
  // it.
  Status prepare(const Post& post) override {
    wire::Wqe e{};
    const ref::WorkRequest& r = post.request;
    if (post.wait) {
      e.opcode = wire::WqeOp::WAIT;
    } else if (r.op == ref::WrOp::kWrite || r.op == ref::WrOp::kWriteSignal) {
      e.opcode = wire::WqeOp::WRITE;
      e.signal = r.op == ref::WrOp::kWriteSignal;
      e.length = r.length;
      e.conn = kConn;
      e.src0 = r.local_va;
      e.dst = r.remote_va;
      e.rkey = r.rkey;
    } else {
      return Status::error("rtl: body post: only write, write_signal and wait");
    }
    e.sem = r.sem;
    e.value = r.value;
    if (entries_ + wire::Wqe::kBytes > base_ + kHeap)
      return Status::error(fmt::format("rtl: body post id {}: expected at most {} requests", r.id,
                                       (kHeap - kEntries) / wire::Wqe::kBytes));
    std::uint8_t bytes[wire::Wqe::kBytes];
    e.pack(bytes);
    cluster_->hal(kBodyNode).mem_write(entries_, bytes, sizeof bytes);
    if (Status s = device_->post_register(subgraph_, entries_, 1, 0); !s.ok()) return s;
    std::optional<wire::Cqe> done;
    const auto r2 = cluster_->run_until(
        [&] {
          wire::Cqe c;
          if (device_->poll(&c)) done = c;
          return done.has_value();
        },
        kPatience);
    if (!r2.ok()) return Status::error("rtl: " + r2.text);
    if (done->status != wire::Err::OK)
      return Status::error(fmt::format("rtl: body post id {}: the firmware refuses the entry: {}", r.id,
                                       wire::name(done->status)));
    prepared_.push_back({r.id, subgraph_++});
    entries_ += wire::Wqe::kBytes;
    return {};
  }
  Result<wire::Err> post(const Post& post) override {
    if (prepared_.empty() || prepared_.front().first != post.request.id)
      return Status::error(fmt::format("rtl: body post id {}: not prepared", post.request.id));
    const unsigned subgraph = prepared_.front().second;
    prepared_.pop_front();
    if (Status s = device_->post_launch(subgraph, post.request.id); !s.ok()) return s;
    return wire::Err::OK;
  }
  Result<wire::Err> post_recv(std::uint16_t, std::uint64_t, Address, std::uint32_t) override {
    return wire::Err::BAD_OPCODE;
  }
  Status close() override { return Status::error("rtl: body close: the node has no such operation"); }
  Status change_sport(std::uint32_t) override {
    return Status::error("rtl: body sport: the node has no such operation");
  }

  Result<std::vector<std::uint64_t>> drops() override {
    std::vector<std::uint64_t> sum(wire::kDropCount);
    for (unsigned p = 0; p < device_->caps().num_ports; ++p)
      for (unsigned i = 0; i < counters::kPortCount; ++i)
        if (std::string(counters::kPortInfo[i].block) == "drop")
          sum[i - static_cast<unsigned>(counters::Port::kDropShort)] +=
              device_->counter(counters::index(static_cast<counters::Port>(i), p));
    // What the receiving side lets through and the sending side cannot use has counters of its own there.
    for (unsigned p = 0; p < device_->caps().num_ports; ++p) {
      sum[static_cast<unsigned>(wire::Drop::ACK_BAD)] +=
          device_->counter(counters::index(counters::Port::kCtlAckBad, p));
      sum[static_cast<unsigned>(wire::Drop::ACK_OLD)] +=
          device_->counter(counters::index(counters::Port::kCtlAckOld, p));
    }
    return sum;
  }
  Result<std::string> path_state(std::uint32_t) override {
    return Status::error("rtl: state: the node does not tell");
  }

 private:
  Status start(const BodySetup& setup, const wire::Hello& offer) {
    Hal& hal = cluster_->hal(kBodyNode);
    auto device = Device::open(hal);
    if (!device.ok()) return device.status();
    device_.emplace(device.take());
    Device& d = *device_;
    ConnectionEnd mine, peer;
    for (unsigned p = 0; p < d.caps().num_ports; ++p) {
      mine.ports.push_back({tb::Cluster::mac(kBodyNode, p), tb::Cluster::ip(kBodyNode, p)});
      peer.ports.push_back({tb::Cluster::mac(kTesterNode, p), tb::Cluster::ip(kTesterNode, p)});
      mine.psn.push_back(setup.psn.value_or(kFirstPsn));
      peer.psn.push_back(offer.psn);
      d.set_port(p, mine.ports.back());
    }
    TransportConfig t;
    t.mtu = setup.mtu;
    t.retry_limit = setup.retries;
    t.probe_min_us = static_cast<double>(setup.probe_min) / kUs;
    t.rtt_init_us = static_cast<double>(setup.rtt_init) / kUs;
    if (Status s = d.set_transport(t); !s.ok()) return s;
    if (Status s = d.set_completion_ring(base_ + kRing, kRingEntries); !s.ok()) return s;
    mine.conn = kConn;
    peer.conn = static_cast<std::uint16_t>(offer.conn);
    mine.incarnation = peer.incarnation = offer.incarnation;
    ConnectionConfig c;
    c.paths_per_port = setup.paths;
    // Before the first ack half a bandwidth-delay product, as the reference has it.
    c.init_cap_bytes = std::min(static_cast<double>(setup.rtt_init) / kNs * t.line_gbps / 8 / 2, kMostCap);
    if (Status s = d.connect(mine, peer, c); !s.ok()) return s;
    // The driver gives a connection every port; a script may ask for fewer.
    for (unsigned p = setup.ports; p < d.caps().num_ports; ++p) {
      const cfg::Conn none{};
      const auto words = none.words();
      for (unsigned i = 0; i < words.size(); ++i) hal.csr_write(regs::kCfgData + 4 * i, words[i]);
      hal.csr_write(regs::kCfgCmd, regs::kCfgCmdKind.put(static_cast<unsigned>(cfg::Conn::kTable)) |
                                       regs::kCfgCmdIndex.put(kConn * d.caps().num_ports + p));
    }
    return d.load_firmware(firmware_);
  }

  void collect(std::vector<Event>& out) {
    for (Listener::Arrival& a : listener_->arrivals) {
      Event e;
      e.time = a.time;
      e.port = a.port;
      e.frame = std::move(a.bytes);
      out.push_back(std::move(e));
    }
    listener_->arrivals.clear();
    wire::Cqe c;
    while (device_->poll(&c)) {
      if (c.op != wire::DbOp::LAUNCH) continue;
      Event e;
      e.time = now();
      e.is_frame = false;
      e.completion.id = c.cookie;
      e.completion.status = c.status;
      out.push_back(std::move(e));
    }
  }

  tb::ModelFactory model_;
  std::vector<std::uint8_t> firmware_;
  std::unique_ptr<tb::Cluster> cluster_;
  Listener* listener_ = nullptr;  // the cluster's
  std::optional<Device> device_;
  std::uint64_t base_ = 0, heap_ = 0, entries_ = 0;
  unsigned subgraph_ = 0;
  std::deque<std::pair<std::uint64_t, unsigned>> prepared_;  // id, subgraph
};

}  // namespace

std::unique_ptr<Body> make_rtl_body(tb::ModelFactory model, std::vector<std::uint8_t> firmware) {
  return std::make_unique<RtlBody>(std::move(model), std::move(firmware));
}

}  // namespace weft::comply
