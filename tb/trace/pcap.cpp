// SPDX-License-Identifier: Apache-2.0
#include "tb/trace/pcap.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace weft::tb {

void remove_partial(const std::string& path) {
  struct stat s {};
  if (lstat(path.c_str(), &s) == 0 && (S_ISREG(s.st_mode) || S_ISLNK(s.st_mode))) std::remove(path.c_str());
}

Result<std::unique_ptr<PcapFile>> PcapFile::create(const std::string& path) {
  std::unique_ptr<PcapFile> f(new PcapFile(path));
  f->file_ = f->place_.open();
  if (!f->file_) return f->place_.error(errno);
  std::setvbuf(f->file_, nullptr, _IOFBF, size_t{1} << 18);
  f->pcap_ = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, PCAP_TSTAMP_PRECISION_NANO);
  f->dumper_ = f->pcap_ ? pcap_dump_fopen(f->pcap_, f->file_) : nullptr;
  if (!f->dumper_) {
    const std::string why = f->pcap_ ? pcap_geterr(f->pcap_) : "out of memory";
    std::fclose(f->file_);
    f->file_ = nullptr;
    return Status::error(fmt::format("{}: cannot be written: {}", path, why));
  }
  return f;
}

PcapFile::~PcapFile() {
  drop_file();
}

void PcapFile::drop_file() {
  if (dumper_) pcap_dump_close(dumper_);
  if (pcap_) pcap_close(pcap_);
  dumper_ = nullptr;
  pcap_ = nullptr;
  file_ = nullptr;
}

Status PcapFile::failed() {
  const int error = errno;
  waiting_.clear();
  drop_file();
  place_.remove();
  return place_.error(error);
}

Status PcapFile::write_until(Ps end) {
  if (!dumper_ || waiting_.empty()) return {};
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Waiting& a, const Waiting& b) { return a.time < b.time; });
  size_t n = 0;
  errno = 0;
  for (; n < waiting_.size() && waiting_[n].time < end; ++n) {
    const Ps ns = waiting_[n].time / kNs;
    pcap_pkthdr header{};
    header.ts.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    header.ts.tv_usec =
        static_cast<suseconds_t>(ns % 1'000'000'000);  // nanoseconds in a file of this precision
    header.caplen = header.len = waiting_[n].frame->bytes;
    pcap_dump(reinterpret_cast<u_char*>(dumper_), &header, waiting_[n].frame->data());
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n));
  if (std::ferror(file_)) return failed();
  return {};
}

Status PcapFile::close() {
  if (!dumper_) return {};
  if (Status s = write_until(kNever); !s.ok()) return s;
  errno = 0;
  if (pcap_dump_flush(dumper_) != 0 || std::ferror(file_)) return failed();
  drop_file();
  return {};
}

}  // namespace weft::tb
