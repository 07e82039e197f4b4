// SPDX-License-Identifier: Apache-2.0
#include "sw/weft/device.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "weft_cfg.h"
#include "weft_regs.h"

namespace weft {
namespace {

constexpr std::uint32_t kGone = 0xffffffff;  // how a register of a node reads that cannot answer
constexpr int kPolls = 100'000;              // rounds of a wait that a working node ends long before

// Highest byte of CPU_STATUS when the CPU has trapped.
constexpr std::uint32_t kTrapped = 0xee;

std::uint32_t cycles(double us, double mhz) {
  return static_cast<std::uint32_t>(std::lround(us * mhz));
}

wire::Doorbell simple(wire::DbOp op, unsigned subgraph, std::uint64_t cookie) {
  wire::Doorbell d;
  d.op = op;
  d.subgraph = static_cast<std::uint16_t>(subgraph);
  d.cookie = cookie;
  return d;
}

void write_doorbell(Hal& hal, const wire::Doorbell& d) {
  std::uint8_t bytes[wire::Doorbell::kBytes];
  d.pack(bytes);
  hal.doorbell(bytes);
}

// Whether the engine comes to rest. The bits of IDLE lag behind the blocks, so a doorbell on its way from one
// block to the next may show in none of them for a cycle; but not in two reads, which are further apart.
bool comes_to_rest(Hal& hal) {
  constexpr std::uint32_t kRest = regs::kIdleMe.put(1) | regs::kIdleHost.put(1);
  unsigned seen = 0;
  for (int i = 0; i < kPolls; ++i) {
    if ((hal.csr_read(regs::kIdle) & kRest) == kRest) {
      if (++seen == 2) return true;
      continue;
    }
    seen = 0;
    hal.relax();
  }
  return false;
}

}  // namespace

Result<Device> Device::open(Hal& hal, IfBusy busy) {
  Device d(hal);
  const auto there = [&hal]() -> Status {
    if (const auto id = hal.csr_read(regs::kId); id != regs::kIdValueReads)
      return Status::error(fmt::format("ID register: {:#010x}, expected {:#010x}: no Weft node there", id,
                                       regs::kIdValueReads));
    return {};
  };
  if (Status s = there(); !s.ok()) return s;
  const auto version = regs::kVersionMajor.get(hal.csr_read(regs::kVersion));
  if (version != regs::kVersionMajorReads)
    return Status::error(
        fmt::format("VERSION register: {}, this driver knows {}", version, regs::kVersionMajorReads));
  if (const auto hash = hal.csr_read(regs::kInterface); hash != regs::kInterfaceHash)
    return Status::error(fmt::format(
        "INTERFACE register: {:#010x}, expected {:#010x}: node and driver are of different builds", hash,
        regs::kInterfaceHash));
  if (busy == IfBusy::kRefuse && !comes_to_rest(hal))
    return Status::error(
        fmt::format("IDLE: {:#010x} after {} reads, bits me and host are not both 1: the node still works "
                    "for whoever had it before",
                    hal.csr_read(regs::kIdle), kPolls));
  hal.csr_write(regs::kCtrl, regs::kCtrlSoftReset.put(1));
  // The node waits for whatever it is owed, without a bound; who waits for the node has one, and says for
  // what.
  for (int i = 0;; ++i) {
    const auto idle = hal.csr_read(regs::kIdle);
    if (regs::kIdleResetDone.get(idle) != 0) break;
    if (i == kPolls)
      return Status::error(
          regs::kIdleDraining.get(idle) != 0
              ? fmt::format(
                    "IDLE.draining: 1 after {} reads, the soft reset waits: memory owes an answer to a "
                    "read or write of before, or a MAC does not take the rest of a frame",
                    kPolls)
              : fmt::format("IDLE.reset_done: 0 after {} reads, the soft reset does not end", kPolls));
    hal.relax();
  }
  const auto c0 = hal.csr_read(regs::kCaps0), c1 = hal.csr_read(regs::kCaps1),
             c2 = hal.csr_read(regs::kCaps2), c3 = hal.csr_read(regs::kCaps3);
  d.caps_.num_subgraphs = regs::kCaps2NumSubgraphs.get(c2);
  d.caps_.num_ports = regs::kCaps0NumPorts.get(c0);
  d.caps_.paths_per_port = regs::kCaps0PathsPerPort.get(c0);
  d.caps_.num_conns = regs::kCaps0NumConns.get(c0);
  d.caps_.num_regions = regs::kCaps1NumRegions.get(c1);
  d.caps_.num_sems = regs::kCaps1NumSems.get(c1);
  d.caps_.exact_sums = regs::kCaps3ExactSums.get(c3);
  d.region_used_.assign(d.caps_.num_regions, false);
  // Keys of before this reset are not used again ...
  d.key_salt_ = hal.csr_read(regs::kCyclesLo);
  d.opened_at_ = d.key_salt_ | std::uint64_t{hal.csr_read(regs::kCyclesHi)} << 32;
  // All that was read counts only if the node is still there: one that goes away reads as all ones.
  if (Status s = there(); !s.ok()) return s;
  return d;
}

Status Device::load_firmware(std::span<const std::uint8_t> image) {
  if (image.empty() || image.size() % 4 != 0)
    return Status::error(fmt::format("firmware image: {} bytes, expected a multiple of 4", image.size()));
  hal_->csr_write(regs::kCtrl, 0);
  hal_->csr_write(regs::kFwAddr, 0);
  for (std::size_t i = 0; i < image.size(); i += 4)
    hal_->csr_write(regs::kFwData, image[i] | image[i + 1] << 8 | image[i + 2] << 16 |
                                       static_cast<std::uint32_t>(image[i + 3]) << 24);
  hal_->csr_write(regs::kCtrl, regs::kCtrlCpuRun.put(1));
  std::uint32_t status;
  for (int i = 0; (status = hal_->csr_read(regs::kCpuStatus)) == 0; ++i) {
    if (i == kPolls)
      return Status::error(fmt::format("CPU_STATUS: 0 after {} reads, the firmware does not start", kPolls));
    hal_->relax();
  }
  if (status >> 16 == kFirmwareRuns) return {};
  const char* why = "not what this driver's firmware reports";
  if (status == kGone)
    why = "the node does not answer any more";
  else if (status >> 24 == kTrapped)
    why = "CPU-M trapped, on an illegal instruction or access of the firmware";
  return Status::error(fmt::format("CPU_STATUS: {:#010x}: {}", status, why));
}

void Device::configure(unsigned table, unsigned index, const std::array<std::uint32_t, 16>& words) {
  for (unsigned i = 0; i < words.size(); ++i) hal_->csr_write(regs::kCfgData + 4 * i, words[i]);
  hal_->csr_write(regs::kCfgCmd, regs::kCfgCmdKind.put(table) | regs::kCfgCmdIndex.put(index));
}

namespace {
template <class T>
constexpr unsigned table_of(const T&) {
  return static_cast<unsigned>(T::kTable);
}
}  // namespace

void Device::set_port(unsigned port, const PortAddress& address) {
  // ... nor are those of another node: a write that goes astray, or a plan that takes one rank's key for
  // another's, must not fit.
  key_salt_ = (key_salt_ ^ static_cast<std::uint32_t>(address.mac)) * 0x9e3779b1u ^
              static_cast<std::uint32_t>(address.mac >> 32);
  const cfg::Port c{.mac = address.mac, .ip = address.ip};
  configure(table_of(c), port, c.words());
}

Status Device::set_transport(const TransportConfig& config) {
  if (!std::has_single_bit(config.mtu) || config.mtu < 256 || config.mtu > wire::kMaxPayload)
    return Status::error(fmt::format("mtu: {}, expected 256, 512, 1024, 2048 or 4096", config.mtu));
  if (config.retry_limit < 1 || config.retry_limit > 255)
    return Status::error(fmt::format("retry_limit: {}, expected 1 to 255", config.retry_limit));
  transport_ = config;
  const cfg::Global c{.mtu_log2 = static_cast<std::uint8_t>(std::countr_zero(config.mtu)),
                      .retry_limit = static_cast<std::uint8_t>(config.retry_limit),
                      .probe_min = cycles(config.probe_min_us, config.clock_mhz),
                      .rtt_init = cycles(config.rtt_init_us, config.clock_mhz),
                      .ack_hold = cycles(config.ack_hold_us, config.clock_mhz)};
  configure(table_of(c), 0, c.words());
  return {};
}

Status Device::set_completion_ring(std::uint64_t addr, unsigned entries) {
  if (!std::has_single_bit(entries) || entries < 2)
    return Status::error(fmt::format("completion ring: {} entries, expected a power of two", entries));
  if (addr % 64 != 0)
    return Status::error(fmt::format("completion ring: address {:#x} is no multiple of 64", addr));
  const std::vector<std::uint8_t> zero(std::size_t{64} * entries, 0);
  hal_->mem_write(addr, zero.data(), zero.size());
  const cfg::Cq c{.last = entries - 1, .base = addr};
  configure(table_of(c), 0, c.words());
  ring_addr_ = addr;
  ring_entries_ = entries;
  next_seq_ = 1;
  outstanding_ = 0;
  return {};
}

Result<Region> Device::add_region(std::uint64_t base, std::uint64_t size, const Rights& rights) {
  if (size == 0 || base + size < base)
    return Status::error(
        fmt::format("region: {} bytes at {:#x}, expected at least one and no wrap", size, base));
  unsigned index = 0;
  while (index < region_used_.size() && region_used_[index]) ++index;
  if (index == region_used_.size())
    return Status::error(fmt::format("region: all {} of the node are in use", region_used_.size()));
  region_used_[index] = true;
  // Keys are not reused, so that a late packet for a removed region does not fit its successor.
  key_salt_ = key_salt_ * 1664525 + 1013904223;
  const std::uint32_t low = std::bit_ceil(caps_.num_regions) - 1;
  Region r{index, (key_salt_ & ~low) | index, base, size, rights};
  const cfg::Region c{.valid = true,
                      .key = r.key,
                      .remote_write = rights.remote_write,
                      .local_read = rights.local_read,
                      .local_write = rights.local_write,
                      .base = base,
                      .limit = base + size};
  configure(table_of(c), index, c.words());
  return r;
}

void Device::remove_region(const Region& region) {
  const cfg::Region c{};
  configure(table_of(c), region.index, c.words());
  region_used_[region.index] = false;
}

void Device::set_semaphore(unsigned index, std::uint32_t value) {
  const cfg::Sem c{.value = value};
  configure(table_of(c), index, c.words());
}

Status Device::connect(const ConnectionEnd& local, const ConnectionEnd& remote,
                       const ConnectionConfig& config) {
  if (local.conn >= caps_.num_conns)
    return Status::error(fmt::format("connection: {}, expected 0 to {}", local.conn, caps_.num_conns - 1));
  if (local.incarnation != remote.incarnation)
    return Status::error(fmt::format("connection {}: incarnation {} here, {} at the peer", local.conn,
                                     local.incarnation, remote.incarnation));
  const std::size_t ports = caps_.num_ports;
  if (local.ports.size() != ports || remote.ports.size() != ports || local.psn.size() != ports ||
      remote.psn.size() != ports)
    return Status::error(
        fmt::format("connection {}: the peer has {} ports, this node {}: they must be as many", local.conn,
                    remote.ports.size(), ports));
  const unsigned paths = config.paths_per_port == 0 ? caps_.paths_per_port : config.paths_per_port;
  if (paths > caps_.paths_per_port)
    return Status::error(fmt::format("connection {}: {} paths a port, the node has {}", local.conn, paths,
                                     caps_.paths_per_port));
  const double most_cap = 0xffffff;  // 24 bits
  if (!(config.init_cap_bytes >= 0) || config.init_cap_bytes > most_cap)
    return Status::error(fmt::format("connection {}: init_cap_bytes {}, expected 0 to {}", local.conn,
                                     config.init_cap_bytes, most_cap));
  if (config.share <= 0 || config.share > 1)
    return Status::error(
        fmt::format("connection {}: share {}, expected more than 0 and at most 1", local.conn, config.share));
  const double line = transport_.line_gbps * 1000 / 8 / transport_.clock_mhz;  // bytes a cycle
  for (unsigned p = 0; p < ports; ++p) {
    const cfg::Conn c{.valid = true,
                      .rmac = remote.ports[p].mac,
                      .rip = remote.ports[p].ip,
                      .rconn = remote.conn,
                      .incarnation = local.incarnation,
                      .sport = static_cast<std::uint16_t>(config.sport + p * caps_.paths_per_port),
                      .num_paths = static_cast<std::uint8_t>(paths),
                      .tx_psn = local.psn[p] & 0xffffff,
                      .rx_psn = remote.psn[p] & 0xffffff,
                      .share = static_cast<std::uint16_t>(std::lround(config.share * line * 256)),
                      .init_cap = static_cast<std::uint32_t>(config.init_cap_bytes)};
    configure(table_of(c), local.conn * caps_.num_ports + p, c.words());
  }
  return {};
}

Status Device::ring(wire::Doorbell d) {
  if (d.subgraph >= caps_.num_subgraphs)
    return Status::error(fmt::format("subgraph: {}, expected 0 to {}", d.subgraph, caps_.num_subgraphs - 1));
  if (outstanding_ >= ring_entries_)  // the engine has no consumer index: never more than the ring holds
    return Status::error(
        fmt::format("doorbell: {} completions are unread, the ring holds no more", outstanding_));
  write_doorbell(*hal_, d);
  ++outstanding_;
  return {};
}

Status Device::post_register(unsigned subgraph, std::uint64_t entries_addr, std::uint32_t count,
                             std::uint64_t cookie) {
  wire::Doorbell d;
  d.op = wire::DbOp::REGISTER;
  d.subgraph = static_cast<std::uint16_t>(subgraph);
  d.addr = entries_addr;
  d.count = count;
  d.cookie = cookie;
  return ring(d);
}

Status Device::post_launch(unsigned subgraph, std::uint64_t cookie, unsigned group) {
  if (group > wire::kOrderGroups)
    return Status::error(fmt::format("group: {}, expected 0 to {}", group, wire::kOrderGroups));
  wire::Doorbell d = simple(wire::DbOp::LAUNCH, subgraph, cookie);
  d.group = static_cast<std::uint8_t>(group);
  return ring(d);
}
Status Device::post_unregister(unsigned subgraph, std::uint64_t cookie) {
  return ring(simple(wire::DbOp::UNREGISTER, subgraph, cookie));
}
Status Device::post_abort(unsigned subgraph, std::uint64_t cookie) {
  return ring(simple(wire::DbOp::ABORT, subgraph, cookie));
}

bool Device::poll(wire::Cqe* out) {
  if (ring_entries_ == 0) return false;
  std::uint8_t bytes[wire::Cqe::kBytes];
  hal_->mem_read(ring_addr_ + std::uint64_t{(next_seq_ - 1) % ring_entries_} * wire::Cqe::kBytes, bytes,
                 sizeof bytes);
  const wire::Cqe e = wire::Cqe::unpack(bytes);
  if (e.seq != next_seq_) return false;
  ++next_seq_;
  --outstanding_;
  *out = e;
  return true;
}

std::uint64_t Device::counter(unsigned index) {
  hal_->csr_write(regs::kCntSel, regs::kCntSelIndex.put(index));
  const std::uint64_t low = hal_->csr_read(regs::kCntLo);
  return low | static_cast<std::uint64_t>(hal_->csr_read(regs::kCntHi)) << 32;
}

}  // namespace weft
