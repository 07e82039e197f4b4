// SPDX-License-Identifier: Apache-2.0
// Capture files with nanosecond timestamps. A file is complete or not there
// (part_file.h).
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tb/sim/frame.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"
#include "tb/trace/part_file.h"

struct pcap;
struct pcap_dumper;

namespace weft::tb {

// Removes waves that were not finished; devices and directories stay.
void remove_partial(const std::string& path);

class PcapFile {
 public:
  static Result<std::unique_ptr<PcapFile>> create(const std::string& path);
  ~PcapFile();  // removes the file unless keep() succeeded
  PcapFile(const PcapFile&) = delete;
  PcapFile& operator=(const PcapFile&) = delete;

  // Frames in any order; write_until() puts those with time < end into the file, ordered by time.
  void add(Ps time, FrameRef frame) { waiting_.push_back({time, std::move(frame)}); }
  Status write_until(Ps end);
  Status close();
  Status keep() { return place_.keep(); }  // after close(): the file takes its place

 private:
  struct Waiting {
    Ps time;
    FrameRef frame;
  };
  explicit PcapFile(const std::string& path) : place_(path) {}
  Status failed();
  void drop_file();

  PartFile place_;
  pcap* pcap_ = nullptr;
  pcap_dumper* dumper_ = nullptr;
  std::FILE* file_ = nullptr;  // owned by dumper_
  std::vector<Waiting> waiting_;
};

}  // namespace weft::tb
