// SPDX-License-Identifier: Apache-2.0
#include "tb/node/ref_host.h"

#include <fmt/format.h>

#include <cstring>

#include "tb/node/endpoint.h"
#include "weft_counters.h"
#include "weft_regs.h"

namespace weft::tb {

RefHost::RefHost(const RefSize& size, RefHostTarget& target)
    : size_(size), target_(target), reset_until_(kResetCycles * kClockPs) {}

void RefHost::write(uint32_t addr, uint32_t value) {
  ops_.push_back({Kind::kWrite, addr, value, {}});
}
void RefHost::read(uint32_t addr) {
  ops_.push_back({Kind::kRead, addr, 0, {}});
}
void RefHost::doorbell(const void* bytes64) {
  Op& op = ops_.emplace_back(Op{Kind::kDoorbell, 0, 0, {}});
  std::memcpy(op.bytes.data(), bytes64, op.bytes.size());
}

void RefHost::step(Ps now) {
  const Op op = ops_.front();
  // Doorbells and configuration hold the bus until the reset is over.
  if (now < reset_until_ && (op.kind == Kind::kDoorbell || op.addr == regs::kCfgCmd)) {
    free_ = reset_until_;
    return;
  }
  ops_.pop_front();
  free_ = now + kHostAccess;
  switch (op.kind) {
    case Kind::kWrite: answered(write_register(now, op.addr, op.value)); break;
    case Kind::kRead: {
      uint32_t value = 0;
      const bool ok = read_register(now, op.addr, value);
      answered_read(value, ok);
      break;
    }
    case Kind::kDoorbell:
      ++doorbells_;
      target_.doorbell(now, wire::Doorbell::unpack(op.bytes.data()));
      answered(true);
      break;
  }
}

bool RefHost::write_register(Ps now, uint32_t addr, uint32_t value) {
  if (addr >= regs::kCfgData && addr < regs::kCfgData + 4 * regs::kCfgDataCount && addr % 4 == 0) {
    data_[(addr - regs::kCfgData) / 4] = value;
    return true;
  }
  switch (addr) {
    case regs::kCtrl:
      if (regs::kCtrlSoftReset.get(value) != 0) {
        target_.soft_reset(now);
        reset_until_ = now + kResetCycles * kClockPs;
      }
      cpu_run_ = regs::kCtrlCpuRun.get(value) != 0;
      target_.run_cpu(now, cpu_run_);
      return true;
    case regs::kCntSel: counter_ = regs::kCntSelIndex.get(value); return true;
    case regs::kFwAddr: fw_addr_ = regs::kFwAddrAddr.get(value); return true;
    case regs::kFwData:  // there is no CPU to run it
      ++fw_writes_;
      fw_addr_ = regs::kFwAddrAddr.get(fw_addr_ + 1);
      return true;
    case regs::kCfgCmd:
      ++cfg_writes_;
      target_.configure(now, static_cast<cfg::Table>(regs::kCfgCmdKind.get(value)),
                        regs::kCfgCmdIndex.get(value), data_);
      return true;
    default: return false;
  }
}

bool RefHost::read_register(Ps now, uint32_t addr, uint32_t& value) {
  if (addr >= regs::kCfgData && addr < regs::kCfgData + 4 * regs::kCfgDataCount && addr % 4 == 0) {
    value = data_[(addr - regs::kCfgData) / 4];
    return true;
  }
  switch (addr) {
    case regs::kId: value = regs::kIdValueReads; return true;
    case regs::kVersion:
      value = regs::kVersionMajor.put(regs::kVersionMajorReads) |
              regs::kVersionMinor.put(regs::kVersionMinorReads);
      return true;
    case regs::kInterface: value = regs::kInterfaceHash; return true;
    case regs::kCaps0:
      value = regs::kCaps0NumPorts.put(size_.ports) | regs::kCaps0PathsPerPort.put(size_.paths_per_port) |
              regs::kCaps0NumConns.put(size_.conns);
      return true;
    case regs::kCaps1:
      value = regs::kCaps1NumRegions.put(size_.regions) | regs::kCaps1NumSems.put(size_.sems);
      return true;
    case regs::kCaps2:
      value = regs::kCaps2NumSubgraphs.put(size_.subgraphs) | regs::kCaps2NumMsgs.put(size_.messages);
      return true;
    case regs::kCaps3:
      value = regs::kCaps3NumCounters.put(static_cast<uint32_t>(counters::count(size_.ports))) |
              regs::kCaps3ExactSums.put(size_.parts().exact);
      return true;
    case regs::kCtrl: value = regs::kCtrlCpuRun.put(cpu_run_); return true;
    case regs::kCpuStatus: value = target_.cpu_status(); return true;
    case regs::kIdle:
      value = target_.idle_bits() | regs::kIdleResetDone.put(now >= reset_until_);
      return true;
    case regs::kCyclesLo: {
      const uint64_t cycles = target_.clock(now);
      value = static_cast<uint32_t>(cycles);
      cycles_hi_ = static_cast<uint32_t>(cycles >> 32);
      return true;
    }
    case regs::kCyclesHi: value = cycles_hi_; return true;
    case regs::kCntSel: value = regs::kCntSelIndex.put(counter_); return true;
    case regs::kCntLo: {
      uint64_t count = target_.counter(counter_);
      if (counter_ == counters::index(counters::Node::kHostDoorbells)) count = doorbells_;
      if (counter_ == counters::index(counters::Node::kHostCfgWrites)) count = cfg_writes_;
      if (counter_ == counters::index(counters::Node::kHostFwWrites)) count = fw_writes_;
      value = static_cast<uint32_t>(count);
      counter_hi_ = static_cast<uint32_t>(count >> 32);
      return true;
    }
    case regs::kCntHi: value = counter_hi_; return true;
    case regs::kFwAddr: value = regs::kFwAddrAddr.put(fw_addr_); return true;
    default: return false;
  }
}

std::string RefHost::state() const {
  return ops_.empty() ? "" : fmt::format("host: {} accesses waiting", ops_.size());
}

}  // namespace weft::tb
