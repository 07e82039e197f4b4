// SPDX-License-Identifier: Apache-2.0
// An independent reader of our frames: tshark, with its own InfiniBand dissector and our generated one behind
// it.
#include <pcap.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <sstream>

#include "frames.h"

using namespace weft::wire;
using namespace weft::test;

namespace {

class Capture {
 public:
  explicit Capture(const std::string& test) {
    const auto dir = std::filesystem::path(WEFT_BUILD_DIR) / "tests" / "wire_pcap";
    std::filesystem::create_directories(dir);
    path_ = (dir / (test + ".pcap")).string();
    pcap_ = pcap_open_dead(DLT_EN10MB, 65535);
    dump_ = pcap_dump_open(pcap_, path_.c_str());
    REQUIRE(dump_ != nullptr);
  }
  ~Capture() { close(); }
  void add(const Frame& f) {
    pcap_pkthdr h{};
    h.ts.tv_usec = ++count_;
    h.caplen = h.len = static_cast<bpf_u_int32>(f.size());
    pcap_dump(reinterpret_cast<u_char*>(dump_), &h, f.data());
  }
  /// The chosen fields of every frame that passes `filter`; empty field = field absent.
  std::vector<std::vector<std::string>> fields(const std::vector<std::string>& names,
                                               const std::string& filter = "") {
    close();
    std::string command =
        "tshark -X lua_script:" WEFT_BUILD_DIR "/gen/weft.lua -r " + path_ + " -T fields -E separator=';'";
    for (const auto& n : names) command += " -e " + n;
    if (!filter.empty()) command += " -Y '" + filter + "'";
    FILE* pipe = popen((command + " 2>" + path_ + ".err").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    char buffer[4096];
    while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
    INFO("tshark, which sw/tools/setup/setup.sh test installs, failed: see " << path_ << ".err");
    REQUIRE(pclose(pipe) == 0);
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::vector<std::string> row;
      std::istringstream cells(line + ";");
      for (std::string cell; std::getline(cells, cell, ';');) row.push_back(cell);
      rows.push_back(row);
    }
    return rows;
  }

 private:
  void close() {
    if (dump_ == nullptr) return;
    pcap_dump_close(dump_);
    pcap_close(pcap_);
    dump_ = nullptr;
  }
  std::string path_;
  pcap_t* pcap_ = nullptr;
  pcap_dumper_t* dump_ = nullptr;
  int count_ = 0;
};

std::string dec(uint64_t v) {
  return std::to_string(v);
}
std::string flag(bool v) {
  return v ? "1" : "0";
}
std::string hex_number(uint64_t v, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(v));
  return text;
}

// PSNs an ack reports lost, newest first, as tshark prints a repeated field.
std::string lost_of(const Sample& s) {
  std::string out;
  for (unsigned i = 0; i < 32U * s.wah.hist_words; ++i) {
    if (s.hist[i / 32] >> (31 - i % 32) & 1) continue;
    out += (out.empty() ? "" : ",") + dec((s.wah.base - 1 - i) & 0xffffff);
  }
  return out;
}

}  // namespace

TEST_CASE("wire: tshark names the BTH and the dissector decodes what follows", "[wire][random]") {
  Rng rng;
  Capture capture("good");
  std::vector<Sample> sent;
  for (int i = 0; i < 200; ++i) {
    sent.push_back(
        make_sample(rng, kServed[i % 4], i < 40 ? static_cast<size_t>(i) : rng.below(kMaxPayload + 1)));
    capture.add(sent.back().frame);
  }
  const auto rows = capture.fields(
      {"infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.padcnt",
       "weft.opcode",           "weft.wth.path",         "weft.wth.epoch",     "weft.wth.incarnation",
       "weft.wth.timestamp",    "weft.icrc.status",      "weft.wdh.more",      "weft.wdh.retx",
       "weft.wdh.version",      "weft.wdh.stream",       "weft.wdh.va",        "weft.wdh.rkey",
       "weft.wdh.msg_no",       "weft.wdh.sem",          "weft.wdh.msg_len",   "weft.wdh.value",
       "weft.payload_len",      "weft.wah.hist_words",   "weft.wah.base",      "weft.wah.ce_bytes",
       "weft.wah.rx_bytes",     "weft.wah.echo",         "weft.wah.share",     "weft.wah.credits",
       "weft.wah.status",       "weft.wah.lost"});
  REQUIRE(rows.size() == sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    const Sample& s = sent[i];
    std::vector<std::string> expected = {dec(s.bth.opcode),
                                         hex_number(s.bth.dqpn, 6),
                                         dec(s.bth.psn),
                                         dec(-s.payload.size() & 3),
                                         hex_number(s.bth.opcode, 2),
                                         dec(s.wth.path),
                                         dec(s.wth.epoch),
                                         dec(s.wth.incarnation),
                                         dec(s.wth.timestamp),
                                         "Good"};
    const Layout layout = *layout_of(s.bth.opcode);
    if (layout == Layout::DATA) {
      for (const auto& x : {flag(s.wdh.more), flag(s.wdh.retx), dec(1), dec(s.wdh.stream),
                            hex_number(s.wdh.va, 16), hex_number(s.wdh.rkey, 8), dec(s.wdh.msg_no),
                            dec(s.wdh.sem), dec(s.wdh.msg_len), dec(s.wdh.value), dec(s.payload.size())}) {
        expected.push_back(x);
      }
    } else {
      expected.resize(expected.size() + 11);
    }
    if (layout == Layout::ACK) {
      for (const auto& x :
           {dec(s.wah.hist_words), dec(s.wah.base), dec(s.wah.ce_bytes), dec(s.wah.rx_bytes), dec(s.wah.echo),
            dec(s.wah.share), dec(s.wah.credits), dec(s.wah.status), lost_of(s)}) {
        expected.push_back(x);
      }
    } else {
      expected.resize(expected.size() + 9);
    }
    INFO("frame " << i + 1 << ", " << name(static_cast<Opcode>(s.bth.opcode)));
    REQUIRE(rows[i] == expected);
  }
  // 0x800000 is "error"
  const auto complaints = capture.fields({"frame.number", "_ws.expert.message"},
                                         "_ws.malformed || _ws.expert.group == \"Malformed\" || "
                                         "_ws.expert.severity >= 0x800000");
  for (const auto& row : complaints) UNSCOPED_INFO("frame " << row[0] << ": " << row[1]);
  CHECK(complaints.empty());
}

TEST_CASE("wire: the dissector flags frames that are wrong", "[wire][smoke]") {
  Rng rng;
  Capture capture("bad");
  struct Case {
    Opcode op;
    size_t at;
    uint8_t value;
    bool seal;
    const char *malformed, *icrc;
  };
  const Case cases[] = {
      {Opcode::WRITE, 63, 2, true, "Weft version 2, expected 1", "Good"},
      {Opcode::ACK, 85, 0, true, "Weft version 0, expected 1", "Good"},
      {Opcode::ACK, 62, 0xf0, true, "15 history words", "Good"},
      {Opcode::PROBE, 42, 0xff, true, "opcode unknown", "Good"},
      {Opcode::PROBE, 42, 0xc2, true, "shorter than its headers", "Good"},
      {Opcode::WRITE, 95, 0x5a, false, "", "Bad"},
  };
  for (const auto& c : cases) {
    Frame f = make_sample(rng, c.op, 64).frame;
    f[c.at] = static_cast<uint8_t>(f[c.at] == c.value ? ~c.value : c.value);
    if (c.seal) reseal(f);
    capture.add(f);
  }
  const auto rows = capture.fields({"weft.malformed", "weft.icrc.status"});
  REQUIRE(rows.size() == std::size(cases));
  for (size_t i = 0; i < rows.size(); ++i) {
    INFO("frame " << i + 1 << ": " << rows[i][0]);
    if (*cases[i].malformed == '\0') {
      CHECK(rows[i][0].empty());
    } else {
      CHECK(rows[i][0].find(cases[i].malformed) == 0);
    }
    CHECK(rows[i][1] == cases[i].icrc);
  }
  CHECK(capture.fields({"frame.number"}, "_ws.expert.group == \"Malformed\"").size() == 5);
}

TEST_CASE("wire: the dissector leaves RoCEv2 frames of others alone (case rtl 31)", "[wire][smoke]") {
  Capture capture("roce");
  Frame f =
      hex("020000000002 020000000001 0800 45c2003c718c4000401191610a0011010a001201 000012b700280000"
          "8100ffff4000011800000000 00000000000000000000000000000000 82fd002a");
  capture.add(f);
  const auto rows = capture.fields({"infiniband.bth.opcode", "weft.opcode"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0] == std::vector<std::string>{"129", ""});
}
