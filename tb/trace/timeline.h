// SPDX-License-Identifier: Apache-2.0
// Timeline in the Chrome trace format (ui.perfetto.dev, chrome://tracing): a process per node; tracks for the
// entries of the engine's window, for what each port sends and receives, and for what was lost on the way to
// it. The file is complete or not there (part_file.h).
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tb/check/traffic.h"
#include "tb/node/endpoint.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"
#include "tb/trace/part_file.h"

namespace weft::tb {

class Timeline {
 public:
  static Result<std::unique_ptr<Timeline>> create(const std::string& path, uint32_t nodes, uint32_t ports);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void frame(const WireRecord& record);
  void engine(uint32_t node, const EngineEvent& event);
  Status flush();
  Status close(Ps now);                    // entries still open end at `now`
  Status keep() { return place_.keep(); }  // after close(): the file takes its place

 private:
  struct Open {
    Ps start;
    uint32_t lane;
    uint8_t opcode;
  };
  struct NodeState {
    std::map<std::pair<uint16_t, uint32_t>, Open> open;  // by subgraph and entry; at most a window of them
    std::vector<bool> lanes;
  };
  explicit Timeline(const std::string& path) : place_(path) {}
  void span(uint32_t node, const Open& open, Ps end, uint16_t subgraph, uint32_t entry, const char* status);
  void line(const std::string& text);
  Status failed();

  PartFile place_;
  std::FILE* file_ = nullptr;
  std::string buffer_;
  bool first_ = true;
  std::vector<NodeState> nodes_;
};

}  // namespace weft::tb
