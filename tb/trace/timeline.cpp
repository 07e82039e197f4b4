// SPDX-License-Identifier: Apache-2.0
#include "tb/trace/timeline.h"

#include <fmt/format.h>

#include <cerrno>
#include <iterator>

#include "weft_wire.h"

namespace weft::tb {
namespace {

// Track numbers of a node.
constexpr uint32_t kTx = 100, kRx = 200, kLost = 300, kLanes = 1000;

std::string us(Ps ps) {
  return fmt::format("{}.{:06}", ps / kUs, ps % kUs);
}

const char* frame_name(const WireRecord& r) {
  switch (r.info.kind) {
    case FrameKind::kData: return r.info.retx ? "resend" : "data";
    case FrameKind::kAck: return "ack";
    case FrameKind::kProbe: return "probe";
    case FrameKind::kAny: break;
  }
  return "other";
}

std::string op_name(uint8_t opcode) {
  const char* text = wire::name(static_cast<wire::WqeOp>(opcode));
  return text ? text : fmt::format("opcode {}", opcode);
}

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::create(const std::string& path, uint32_t nodes, uint32_t ports) {
  std::unique_ptr<Timeline> t(new Timeline(path));
  t->file_ = t->place_.open();
  if (!t->file_) return t->place_.error(errno);
  t->nodes_.resize(nodes);
  t->buffer_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (uint32_t n = 0; n < nodes; ++n) {
    const auto name = [&](const char* what, uint32_t track, const std::string& text) {
      t->line(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":"{}"}}}})", n, track,
                          what, text));
    };
    name("process_name", 0, fmt::format("node {}", n));
    for (uint32_t p = 0; p < ports; ++p) {
      name("thread_name", kTx + p, fmt::format("port {} sends", p));
      name("thread_name", kRx + p, fmt::format("port {} receives", p));
      name("thread_name", kLost + p, fmt::format("lost on the way to port {}", p));
    }
  }
  return t;
}

Timeline::~Timeline() {
  if (file_) std::fclose(file_);
}

void Timeline::line(const std::string& text) {
  if (!first_) buffer_ += ",\n";
  first_ = false;
  buffer_ += text;
}

void Timeline::frame(const WireRecord& r) {
  if (!file_ || r.node >= nodes_.size()) return;
  const std::string args =
      fmt::format(R"({{"bytes":{},"path":{},"psn":{},"conn":{},"msg":{},"ce":{}}})", r.bytes, r.info.path,
                  r.info.psn, r.info.dqpn, r.info.msg_no, r.info.ecn == kEcnCe ? 1 : 0);
  switch (r.what) {
    case WireWhat::kTx:
    case WireWhat::kRx: {
      const bool corrupt = (r.flags & kFrameCorrupt) != 0;
      line(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","args":{}}})", r.node,
                       (r.what == WireWhat::kTx ? kTx : kRx) + r.port, us(r.start), us(r.time - r.start),
                       corrupt ? "corrupt" : frame_name(r), args));
      break;
    }
    case WireWhat::kLost:
      line(fmt::format(R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"name":"lost {}: {}","args":{}}})",
                       r.node, kLost + r.port, us(r.time), frame_name(r), name(r.reason), args));
      break;
  }
}

void Timeline::engine(uint32_t node, const EngineEvent& e) {
  if (!file_) return;
  NodeState& n = nodes_[node];
  const auto key = std::make_pair(e.subgraph, e.entry);
  if (!e.done) {
    uint32_t lane = 0;
    while (lane < n.lanes.size() && n.lanes[lane]) ++lane;
    if (lane == n.lanes.size()) {
      n.lanes.push_back(false);
      line(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"engine {}"}}}})",
                       node, kLanes + lane, lane));
    }
    n.lanes[lane] = true;
    n.open[key] = {e.time, lane, e.opcode};
    return;
  }
  const auto it = n.open.find(key);
  // An entry may be done without having issued: refused or flushed.
  const Open open = it != n.open.end() ? it->second : Open{e.time, 0, e.opcode};
  const char* status = wire::name(static_cast<wire::Err>(e.status));
  span(node, open, e.time, e.subgraph, e.entry, status ? status : "?");
  if (it != n.open.end()) {
    n.lanes[open.lane] = false;
    n.open.erase(it);
  }
}

void Timeline::span(uint32_t node, const Open& open, Ps end, uint16_t subgraph, uint32_t entry,
                    const char* status) {
  line(fmt::format(
      R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","args":{{"subgraph":{},"entry":{},"status":"{}"}}}})",
      node, kLanes + open.lane, us(open.start), us(end - open.start), op_name(open.opcode), subgraph, entry,
      status));
}

Status Timeline::failed() {
  const int error = errno;
  std::fclose(file_);
  file_ = nullptr;
  buffer_.clear();
  place_.remove();
  return place_.error(error);
}

Status Timeline::flush() {
  if (!file_) return {};
  errno = 0;
  const size_t n = std::fwrite(buffer_.data(), 1, buffer_.size(), file_);
  if (n != buffer_.size() || std::ferror(file_)) return failed();
  buffer_.clear();
  return {};
}

Status Timeline::close(Ps now) {
  if (!file_) return {};
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    for (const auto& [key, open] : nodes_[n].open) span(n, open, now, key.first, key.second, "unfinished");
  }
  buffer_ += "\n]}\n";
  if (Status s = flush(); !s.ok()) return s;
  errno = 0;
  if (std::fflush(file_) != 0) return failed();
  const bool bad = std::fclose(file_) != 0;
  file_ = nullptr;
  if (bad) return place_.error(errno);
  return {};
}

}  // namespace weft::tb
