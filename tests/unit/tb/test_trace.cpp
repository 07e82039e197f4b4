// SPDX-License-Identifier: Apache-2.0
// Captures and timelines: that others can read them, and that a full disk leaves an error and no file.
#include <catch2/catch.hpp>

#include <pcap/pcap.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "soft_node.h"
#include "tb/trace/pcap.h"
#include "tb/trace/timeline.h"

using namespace weft::tb;
namespace fs = std::filesystem;

namespace {

// An empty directory that goes away.
class TempDir {
 public:
  TempDir() {
    path = fs::path(WEFT_BUILD_DIR) / "tests" /
           ("tb_trace_" + std::to_string(getpid()) + "_" + std::to_string(++number));
    fs::create_directories(path);
  }
  ~TempDir() { fs::remove_all(path); }
  fs::path path;

 private:
  static inline int number = 0;
};

struct Captured {
  Ps ns;
  std::vector<uint8_t> bytes;
};

std::vector<Captured> read_pcap(const fs::path& path) {
  char error[PCAP_ERRBUF_SIZE] = {};
  pcap_t* p = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  INFO(error);
  REQUIRE(p != nullptr);
  CHECK(pcap_datalink(p) == DLT_EN10MB);
  std::vector<Captured> all;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(p, &header, &data) == 1) {
    all.push_back({header->ts.tv_sec * 1'000'000'000 + header->ts.tv_usec, {data, data + header->caplen}});
  }
  pcap_close(p);
  return all;
}

void link_to_full_disk(const fs::path& path) {
  fs::create_symlink("/dev/full", path);
}

}  // namespace

TEST_CASE("trace: captures hold both directions, in order, to the nanosecond", "[tb][trace]") {
  TempDir dir;
  Scenario s = two_nodes();
  s.faults.drop = {{1, 0, FrameKind::kAny, 1}};
  TraceConfig traces;
  traces.pcap_dir = dir.path / "new";
  auto made = Cluster::create(s, soft_nodes(2), traces);
  REQUIRE(made.ok());
  Cluster& c = *made.value();
  std::vector<std::vector<uint8_t>> frames;
  for (uint32_t i = 0; i < 3; ++i) frames.push_back(data_frame(route(0, 1, 0), 100 + i, {i, 0, i * 0x1000}));
  const auto back = ack_frame(route(1, 0, 0));
  for (const auto& f : frames) soft(c, 0).send_at(0, 0, f);
  soft(c, 1).send_at(0, 0, back);
  REQUIRE(c.settle(kMs).ok());
  REQUIRE(c.finish().ok());
  std::set<std::string> names;
  for (const auto& e : fs::directory_iterator(traces.pcap_dir)) names.insert(e.path().filename());
  CHECK(names == std::set<std::string>{"node0_port0.pcap", "node0_port1.pcap", "node1_port0.pcap",
                                       "node1_port1.pcap"});
  const auto zero = read_pcap(dir.path / "new/node0_port0.pcap");
  const auto one = read_pcap(dir.path / "new/node1_port0.pcap");
  REQUIRE(zero.size() == 4);
  CHECK(zero[0].bytes == frames[0]);
  CHECK(zero[1].bytes == frames[1]);
  CHECK(zero[2].bytes == frames[2]);
  CHECK(zero[3].bytes == back);
  const Ps wire = wire_ps(static_cast<uint32_t>(frames[0].size()), 100'000);
  CHECK(zero[0].ns == wire / kNs);
  REQUIRE(one.size() == 3);  // frame 1 was lost
  CHECK(one[0].bytes == back);
  CHECK(one[1].bytes == frames[0]);
  CHECK(one[2].bytes == frames[2]);
  CHECK(one[1].ns == (2 * wire + 2 * kUs) / kNs);
  CHECK(read_pcap(dir.path / "new/node1_port1.pcap").empty());
}

TEST_CASE("trace: tshark decodes a capture", "[tb][trace]") {
  TempDir dir;
  TraceConfig traces;
  traces.pcap_dir = dir.path;
  auto made = Cluster::create(two_nodes(), soft_nodes(2), traces);
  REQUIRE(made.ok());
  Cluster& c = *made.value();
  for (uint32_t i = 0; i < 5; ++i)
    soft(c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 1000 * i, {i, 0, i * 0x1000}));
  REQUIRE(c.settle(kMs).ok());
  REQUIRE(c.finish().ok());
  const std::string out = dir.path / "out";
  const std::string command =
      "tshark -n -r " + (dir.path / "node1_port0.pcap").string() +
      " -T fields -e infiniband.bth.psn -e frame.time_epoch -Y 'infiniband && !_ws.malformed' >" + out +
      " 2>" + out + ".err";
  INFO("tshark comes with sw/tools/setup/setup.sh test");
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream in(out);
  std::string line;
  uint32_t n = 0;
  while (std::getline(in, line)) CHECK(line.substr(0, line.find('\t')) == std::to_string(n++));
  CHECK(n == 5);
}

TEST_CASE("trace: a full disk is reported and leaves no capture", "[tb][trace]") {
  TempDir dir;
  link_to_full_disk(dir.path / "node1_port0.pcap");
  std::ofstream(dir.path / "node0_port0.pcap") << "older";
  TraceConfig traces;
  traces.pcap_dir = dir.path;
  traces.timeline = dir.path / "t.json";
  auto made = Cluster::create(two_nodes(), soft_nodes(2), traces);
  REQUIRE(made.ok());
  {
    auto c = made.take();
    for (uint32_t i = 0; i < 5; ++i)
      soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 4000, {i, 0, i * 0x1000}));
    const RunResult r = c->settle(kMs);
    const Status s = c->finish();
    CHECK_FALSE(s.ok());
    CHECK(s.text() ==
          (dir.path / "node1_port0.pcap").string() + ": cannot be written: No space left on device");
  }
  std::set<std::string> left;
  for (const auto& e : fs::directory_iterator(dir.path)) left.insert(e.path().filename());
  CHECK(left ==
        std::set<std::string>{"node0_port0.pcap", "node1_port0.pcap"});  // both are older than the run
  CHECK(fs::file_size(dir.path / "node0_port0.pcap") == 5);
  CHECK(fs::exists("/dev/full"));
}

TEST_CASE("trace: a long run into a full disk fails while it runs", "[tb][trace]") {
  TempDir dir;
  link_to_full_disk(dir.path / "node1_port0.pcap");
  TraceConfig traces;
  traces.pcap_dir = dir.path;
  auto made = Cluster::create(two_nodes(), soft_nodes(2), traces);
  REQUIRE(made.ok());
  auto c = made.take();
  for (uint32_t i = 0; i < 200; ++i)
    soft(*c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 4000, {i, 0, i * 0x1000}));
  const RunResult r = c->settle(kMs);
  CHECK(r.end == RunEnd::kFailed);
  CHECK(r.text.find("No space left on device") != std::string::npos);
}

TEST_CASE("trace: a place where no file can be is refused at once", "[tb][trace]") {
  TempDir dir;
  std::ofstream(dir.path / "file") << "x";
  TraceConfig traces;
  traces.pcap_dir = dir.path / "file";
  CHECK(Cluster::create(two_nodes(), soft_nodes(2), traces).error().find("file: cannot be made: ") !=
        std::string::npos);
  traces = {};
  traces.timeline = "/nowhere/t.json";
  CHECK(Cluster::create(two_nodes(), soft_nodes(2), traces).error() ==
        "/nowhere/t.json: cannot be written: No such file or directory");
  CHECK(fs::exists(dir.path / "file"));
}

TEST_CASE("trace: files of a run that nobody finished are removed", "[tb][trace]") {
  TempDir dir;
  TraceConfig traces;
  traces.pcap_dir = dir.path;
  traces.timeline = dir.path / "t.json";
  {
    auto c = Cluster::create(two_nodes(), soft_nodes(2), traces);
    REQUIRE(c.ok());
    CHECK(fs::exists(dir.path / "t.json.part"));
    CHECK_FALSE(fs::exists(dir.path / "t.json"));
  }
  CHECK(fs::is_empty(dir.path));
}

TEST_CASE("trace: the timeline shows packets, losses and resends", "[tb][trace]") {
  TempDir dir;
  Scenario s = two_nodes();
  s.faults.drop = {{1, 0, FrameKind::kAny, 0}};
  TraceConfig traces;
  traces.timeline = dir.path / "t.json";
  auto made = Cluster::create(s, soft_nodes(2), traces);
  REQUIRE(made.ok());
  Cluster& c = *made.value();
  soft(c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 100, {0, 0, 0x1000, false}));
  soft(c, 0).send_at(0, 0, data_frame(route(0, 1, 0), 100, {1, 0, 0x1000, true}));
  soft(c, 1).send_at(0, 1, ack_frame(route(1, 0, 1)));
  REQUIRE(c.settle(kMs).ok());
  REQUIRE(c.finish().ok());
  std::ifstream in(traces.timeline);
  const auto j = nlohmann::json::parse(in);
  std::multiset<std::string> names;
  for (const auto& e : j["traceEvents"]) {
    if (e["ph"] == "M") continue;
    names.insert(e["name"].get<std::string>() + "@" + std::to_string(e["pid"].get<int>()));
    if (e["name"] == "resend" && e["pid"] == 1) {
      CHECK(e["ts"].get<double>() == Approx(2.0 + 2e-6 * wire_ps(194, 100'000)).margin(1e-6));
      CHECK(e["args"]["psn"] == 1);
    }
  }
  CHECK(names == std::multiset<std::string>{"ack@0", "ack@1", "data@0", "lost data: listed@1", "resend@0",
                                            "resend@1"});
}

TEST_CASE("trace: engine entries become spans in lanes", "[tb][trace]") {
  TempDir dir;
  const std::string path = dir.path / "t.json";
  auto made = Timeline::create(path, 1, 1);
  REQUIRE(made.ok());
  Timeline& t = *made.value();
  t.engine(0, {1 * kUs, false, 5, 10, 1, 0});
  t.engine(0, {2 * kUs, false, 5, 11, 2, 0});
  t.engine(0, {3 * kUs, true, 5, 10, 1, 0});
  t.engine(0, {4 * kUs, false, 6, 10, 3, 0});  // takes the lane that is free
  t.engine(0, {5 * kUs, true, 5, 11, 2, 11});
  REQUIRE(t.close(9 * kUs).ok());
  REQUIRE(t.keep().ok());
  std::ifstream in(path);
  const auto j = nlohmann::json::parse(in);
  std::vector<nlohmann::json> spans;
  for (const auto& e : j["traceEvents"]) {
    if (e["ph"] == "X") spans.push_back(e);
  }
  REQUIRE(spans.size() == 3);
  CHECK(spans[0]["name"] == "WRITE");
  CHECK(spans[0]["ts"].get<double>() == 1.0);
  CHECK(spans[0]["dur"].get<double>() == 2.0);
  CHECK(spans[1]["name"] == "REDUCE");
  CHECK(spans[1]["args"]["status"] == "MEM_ERROR");
  CHECK(spans[1]["tid"] != spans[0]["tid"]);
  CHECK(spans[2]["name"] == "WAIT");
  CHECK(spans[2]["args"]["status"] == "unfinished");
  CHECK(spans[2]["dur"].get<double>() == 5.0);
  CHECK(spans[2]["tid"] == spans[0]["tid"]);
}

TEST_CASE("trace: the argument of --waves is read strictly", "[tb][trace]") {
  const auto ok = parse_waves("a.fst:3:1.5:20", 8);
  REQUIRE(ok.ok());
  CHECK(ok.value().file == "a.fst");
  CHECK(ok.value().node == 3);
  CHECK(ok.value().from_ps == 1'500'000);
  CHECK(ok.value().to_ps == 20'000'000);
  CHECK(parse_waves("a.fst", 8).value().node == 0);
  CHECK(parse_waves("a.fst", 8).value().to_ps == kNever);
  CHECK(parse_waves("a.fst:8", 8).error() == "--waves = a.fst:8: expected a node below 8");
  CHECK(parse_waves("a.fst:x", 8).error() == "--waves = a.fst:x: expected a node below 8");
  CHECK(parse_waves("", 8).error() == "--waves = : expected FILE[:node[:from_us:to_us]]");
  CHECK(parse_waves("a.fst:1:5", 8).error() == "--waves = a.fst:1:5: expected FILE[:node[:from_us:to_us]]");
  CHECK(parse_waves("a.fst:1:5:4", 8).error() ==
        "--waves = a.fst:1:5:4: expected times in us, from before to");
}
