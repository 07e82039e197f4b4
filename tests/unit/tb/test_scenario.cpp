// SPDX-License-Identifier: Apache-2.0
// Scenario files: what is read, and the one line that every mistake gets.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "soft_node.h"
#include "tb/app/sim_config.h"
#include "tb/scenario.h"
#include "tb/sim/toml_file.h"

using namespace weft::tb;

namespace {

class TempFile {
 public:
  explicit TempFile(const std::string& text) {
    path = std::string(WEFT_BUILD_DIR) + "/tests/tb_scenario_" + std::to_string(getpid()) + "_" +
           std::to_string(++number) + ".toml";
    std::ofstream(path) << text;
  }
  ~TempFile() { std::remove(path.c_str()); }
  std::string path;

 private:
  static inline int number = 0;
};

// Message without the directory of the file.
std::string error_of(const std::string& text, const std::vector<std::string>& own = {}) {
  TempFile f(text);
  const auto s = load_scenario(f.path, own);
  if (s.ok()) return "";
  std::string message = s.error();
  CHECK(message.find('\n') == std::string::npos);
  const size_t at = message.find(f.path);
  REQUIRE(at == 0);
  return message.substr(f.path.size());
}

}  // namespace

TEST_CASE("scenario: every key is read", "[tb][scenario]") {
  TempFile f(R"(
name = "n"
workload = "w.toml"
[cluster]
nodes = 3
planes = 1
seed = 99
threads = 2
watchdog_us = 55.5
skip_rest = false
[fabric]
hosts_per_leaf = 7
spines = 2
rate_gbps = 25
uplink_rate_gbps = 400
link_latency_ns = 250.5
cut_through = true
switch_latency_ns = 300
queue_bytes = 100000
ecn_kmin_bytes = 1
ecn_kmax_bytes = 2
ecn_pmax = 0.25
[faults]
loss = 0.01
jitter_ns = 10
reorder = 0.1
reorder_delay_ns = 20
duplicate = 0.2
corrupt = 0.3
[[faults.down]]
plane = 0
from_us = 1.5
to_us = 2
[[faults.down]]
node = 1
port = 0
[[faults.drop]]
node = 2
port = 0
kind = "ack"
n = 17
[memory]
size_mib = 5
latency_min_cycles = 3
latency_max_cycles = 4
bandwidth_bytes_per_cycle = 128
stall = 0.5
[[memory.error]]
node = 1
addr = 0x200000000
bytes = 128
[extra]
mine = [1, { a = 2 }]
)");
  const auto r = load_scenario(f.path, {"extra"});
  INFO(r.error());
  REQUIRE(r.ok());
  const Scenario& s = r.value();
  CHECK(s.name == "n");
  CHECK(s.workload == "w.toml");
  CHECK(s.nodes == 3);
  CHECK(s.planes == 1);
  CHECK(s.seed == 99);
  CHECK(s.threads == 2);
  CHECK(s.watchdog_us == 55.5);
  CHECK(!s.skip_rest);
  CHECK(s.fabric.hosts_per_leaf == 7);
  CHECK(s.fabric.spines == 2);
  CHECK(s.fabric.rate_gbps == 25);
  CHECK(s.fabric.uplink_rate_gbps == 400);
  CHECK(s.fabric.link_latency_ns == 250.5);
  CHECK(s.fabric.cut_through);
  CHECK(s.fabric.switch_latency_ns == 300);
  CHECK(s.fabric.queue_bytes == 100000);
  CHECK(s.fabric.ecn_kmin_bytes == 1);
  CHECK(s.fabric.ecn_kmax_bytes == 2);
  CHECK(s.fabric.ecn_pmax == 0.25);
  CHECK(s.faults.loss == 0.01);
  CHECK(s.faults.jitter_ns == 10);
  CHECK(s.faults.reorder == 0.1);
  CHECK(s.faults.reorder_delay_ns == 20);
  CHECK(s.faults.duplicate == 0.2);
  CHECK(s.faults.corrupt == 0.3);
  REQUIRE(s.faults.down.size() == 2);
  CHECK(s.faults.down[0].plane == 0);
  CHECK(s.faults.down[0].from_ps == 1'500'000);
  CHECK(s.faults.down[0].to_ps == 2'000'000);
  CHECK(s.faults.down[1].node == 1);
  CHECK(s.faults.down[1].to_ps == kNever);
  REQUIRE(s.faults.drop.size() == 1);
  CHECK(s.faults.drop[0].kind == FrameKind::kAck);
  CHECK(s.faults.drop[0].n == 17);
  CHECK(s.memory.size_mib == 5);
  CHECK(s.memory.latency_max_cycles == 4);
  CHECK(s.memory.stall == 0.5);
  REQUIRE(s.memory.error.size() == 1);
  CHECK(s.memory.error[0].addr == 0x200000000);
}

TEST_CASE("scenario: a fat tree and links that differ are read", "[tb][scenario]") {
  TempFile f(R"(
[cluster]
nodes = 50
[fabric]
topology = "fat_tree"
radix = 5
spray = "packet"
pfc = true
pfc_xoff_bytes = 3000
pfc_xon_bytes = 2000
slow_core_links = 7
slow_core_factor = 0.5
slow_core_place = "together"
[[fabric.link]]
plane = 1
tor = 3
agg = 4
rate_factor = 0.25
extra_latency_ns = 10
[[fabric.host]]
node = 3
last = 7
rate_gbps = 25
extra_latency_ns = 20
[[fabric.host]]
node = 9
[[fabric.pods]]
a = 0
b = 1
extra_latency_ns = 1e5
[[faults.down]]
plane = 0
agg = 6
core = 5
)");
  const auto r = load_scenario(f.path);
  INFO(r.error());
  REQUIRE(r.ok());
  const FabricConfig& c = r.value().fabric;
  CHECK(c.topology == Topology::kFatTree);
  CHECK(c.radix == 5);
  CHECK(c.spray == Spray::kPacket);
  CHECK(c.pfc);
  CHECK(c.pfc_xoff_bytes == 3000);
  CHECK(c.pfc_xon_bytes == 2000);
  CHECK(c.slow_core_links == 7);
  CHECK(c.slow_core_factor == 0.5);
  CHECK(c.slow_core_place == SlowPlace::kTogether);
  REQUIRE(c.link.size() == 1);
  CHECK(c.link[0].plane == 1);
  CHECK(c.link[0].tor == 3);
  CHECK(c.link[0].agg == 4);
  CHECK(c.link[0].rate_factor == 0.25);
  CHECK(c.link[0].extra_latency_ns == 10);
  REQUIRE(c.host.size() == 2);
  CHECK(host_rate_gbps(r.value(), 2) == 100);
  CHECK(host_rate_gbps(r.value(), 3) == 25);
  CHECK(host_rate_gbps(r.value(), 7) == 25);
  CHECK(host_rate_gbps(r.value(), 8) == 100);
  CHECK(c.host[0].extra_latency_ns == 20);
  CHECK(c.host[1].last == 9);
  REQUIRE(c.pods.size() == 1);
  CHECK(c.pods[0].extra_latency_ns == 1e5);
  CHECK(r.value().faults.down[0].core == 5);
  CHECK(pod_count(r.value()) == 2);
  CHECK(leaf_count(r.value()) == 10);
}

TEST_CASE("scenario: a link or pod that the fabric does not have is refused", "[tb][scenario]") {
  const std::string tree = "[fabric]\ntopology = \"fat_tree\"\n";  // 8 nodes: one pod of 4 ToRs
  const std::string two_pods = "[cluster]\nnodes = 32\n" + tree;
  CHECK(error_of("[fabric]\ntopology = \"torus\"\n") ==
        ":2: fabric.topology = 'torus': expected leaf_spine or fat_tree");
  CHECK(error_of("[fabric]\nspray = \"some\"\n") == ":2: fabric.spray = 'some': expected flow or packet");
  Scenario flag;
  CHECK(set_key(flag, "fabric.topology", "fat_tree", "--topology").ok());
  CHECK(flag.fabric.topology == Topology::kFatTree);
  CHECK(set_key(flag, "fabric.topology", "ring", "--topology").text() ==
        "--topology = ring: expected leaf_spine or fat_tree");
  CHECK(error_of("[[fabric.link]]\nplane = 0\ntor = 1\nagg = 0\n") ==
        ": fabric.link[0].tor = 1: expected nothing: a leaf_spine fabric has no such switch");
  CHECK(error_of(tree + "[[fabric.link]]\nplane = 0\nleaf = 1\nspine = 0\n") ==
        ": fabric.link[0].leaf = 1: expected nothing: a fat_tree fabric has no such switch");
  CHECK(error_of(tree + "[[fabric.link]]\nplane = 0\nagg = 1\ncore = 5\n") ==
        ": fabric.link[0].core = 5: expected nothing: one pod holds every node, there are no cores");
  CHECK(error_of(two_pods + "[[fabric.link]]\nplane = 0\nagg = 4\ncore = 5\n") ==
        ": fabric.link[0].core = 5: expected a core that is joined to the aggregation switch");
  CHECK(error_of(two_pods + "[[faults.down]]\nplane = 0\ntor = 4\nagg = 3\n") ==
        ": faults.down[0].agg = 3: expected an aggregation switch of the pod of the ToR");
  CHECK(error_of(two_pods + "[[faults.down]]\nplane = 0\ntor = 8\nagg = 3\n") ==
        ": faults.down[0].tor = 8: expected below the number of ToRs, 8");
  CHECK(error_of(two_pods + "[[fabric.link]]\nplane = 0\ntor = 1\n")
            .find("fabric.link[0].plane = 0: expected one of: plane; plane, leaf") != std::string::npos);
  CHECK(error_of(two_pods + "[[fabric.pods]]\na = 0\nb = 2\nextra_latency_ns = 1\n") ==
        ": fabric.pods[0].b = 2: expected below 2, the number of pods");
  CHECK(error_of(two_pods + "[[fabric.pods]]\na = 0\nb = 1\n") ==
        ": fabric.pods[0].extra_latency_ns: expected a time");
  CHECK(error_of("[[fabric.pods]]\na = 0\nb = 1\nextra_latency_ns = 1\n") ==
        ": fabric.pods[0].a = 0: expected fabric.topology = fat_tree");
  CHECK(error_of("[[fabric.host]]\nnode = 8\n") == ": fabric.host[0].last = 8: expected below nodes = 8");
  CHECK(error_of("[[fabric.host]]\nnode = 3\nlast = 2\n") ==
        ":3: fabric.host[0].last = 2: expected a node not below node");
  CHECK(error_of("[fabric]\nslow_core_links = 1\n") ==
        ": fabric.slow_core_links = 1: expected fabric.topology = fat_tree");
  CHECK(error_of(two_pods + "slow_core_links = 33\n") ==
        ": fabric.slow_core_links = 33: expected at most 32, the aggregation-core links of a plane");
  CHECK(error_of("[fabric]\npfc_xoff_bytes = 5000\npfc_xon_bytes = 5000\n") ==
        ": fabric.pfc_xon_bytes = 5000: expected less than pfc_xoff_bytes = 5000");
  CHECK(error_of("[fabric]\npfc = true\ncut_through = true\n") ==
        ": fabric.pfc = true: expected false with cut_through");
  Scenario s = two_nodes();
  s.fabric.pfc = true;
  CHECK(Cluster::create(s, soft_nodes(1)).error() ==
        "scenario: fabric.pfc = true: expected false: the MAC of a node does not stop");
}

TEST_CASE("scenario: every mistake gets one line with file, key, value and what was expected",
          "[tb][scenario]") {
  CHECK(error_of("nodes = 3\n") == ":1: nodes = 3: unknown key");
  CHECK(error_of("[fabric]\nrates_gbps = 3\n") == ":2: fabric.rates_gbps = 3: unknown key");
  CHECK(error_of("[extra]\na = 1\n") == ":1: extra = {...}: unknown key");
  CHECK(error_of("[extra]\na = 1\n", {"extra"}) == "");
  CHECK(error_of("[faults]\nloss = 1.5\n") == ":2: faults.loss = 1.5: expected a number from 0 to 1");
  CHECK(error_of("[faults]\nloss = -0.1\n") == ":2: faults.loss = -0.1: expected a number from 0 to 1");
  CHECK(error_of("[faults]\nloss = nan\n") == ":2: faults.loss = nan: expected a number from 0 to 1");
  CHECK(error_of("[faults]\nloss = \"1%\"\n") == ":2: faults.loss = '1%': expected a number from 0 to 1");
  CHECK(error_of("[cluster]\nnodes = 0\n") == ":2: cluster.nodes = 0: expected an integer from 1 to 4096");
  CHECK(error_of("[cluster]\nnodes = 2.5\n") ==
        ":2: cluster.nodes = 2.5: expected an integer from 1 to 4096");
  CHECK(error_of("[cluster]\nnodes = 99999999999999\n") ==
        ":2: cluster.nodes = 99999999999999: expected an integer from 1 to 4096");
  CHECK(error_of("cluster = 3\n") == ":1: cluster = 3: expected a table");
  CHECK(error_of("name = 3\n") == ":1: name = 3: expected a string");
  CHECK(error_of("[memory]\nstall = 1\n") == ":2: memory.stall = 1: expected a number from 0 to 0.95");
  CHECK(error_of("[fabric]\necn_kmin_bytes = 9\necn_kmax_bytes = 8\n") ==
        ": fabric.ecn_kmax_bytes = 8: expected at least ecn_kmin_bytes = 9");
  CHECK(error_of("[[faults.down]]\nplane = 0\nfrom_us = 5\nto_us = 4\n") ==
        ":4: faults.down[0].to_us = 4: expected a time after from_us");
  CHECK(error_of("[[faults.down]]\nleaf = 0\n")
            .find("faults.down[0].plane: expected one of: plane; plane, leaf") != std::string::npos);
  CHECK(error_of("[[faults.down]]\nplane = 2\n") == ": faults.down[0].plane = 2: expected below planes = 2");
  CHECK(error_of("[[faults.down]]\nplane = 0\nwhen = 2\n") == ":3: faults.down[0].when = 2: unknown key");
  const std::string drop = "[[faults.drop]]\nport = 0\nn = 0\n";
  CHECK(error_of(drop + "node = 0\nkind = \"dat\"\n") ==
        ":5: faults.drop[0].kind = 'dat': expected any, data, ack or probe");
  CHECK(error_of(drop + "node = 8\n") == ": faults.drop[0].node = 8: expected below nodes = 8");
  CHECK(error_of(drop) == ": faults.drop[0].node: expected the node that does not get the frame");
  CHECK(error_of("[[faults.drop]]\n") ==
        ": faults.drop[0].node: expected the node that does not get the frame");
  CHECK(error_of("[[faults.drop]]\nnode = 0\nport = 0\n") ==
        ": faults.drop[0].n: expected the number of a frame, from 0");
  CHECK(error_of("[[memory.error]]\nnode = 0\nbytes = 64\n") ==
        ": memory.error[0].addr: expected an address");
  CHECK(error_of("[[memory.error]]\nnode = 0\naddr = 64\n") ==
        ": memory.error[0].bytes: expected a number of bytes");
  CHECK(error_of("[faults]\ndrop = 3\n") == ":2: faults.drop = 3: expected an array of tables: [[...]]");
  CHECK(error_of("[faults\n").find(":1: not TOML: ") == 0);
  CHECK(error_of("[faults]\nloss = 0.1\nloss = 0.2\n").find(":3: not TOML: ") == 0);
  CHECK(error_of("") == "");
  CHECK(load_scenario("/dev/null").ok());  // empty, but it can be read
  CHECK(load_scenario("/nowhere/x.toml").error() ==
        "/nowhere/x.toml: cannot be read: No such file or directory");
}

TEST_CASE("scenario: flags set the same keys with the same ranges", "[tb][scenario]") {
  Scenario s;
  CHECK(set_key(s, "faults.loss", "0.01", "--loss").ok());
  CHECK(s.faults.loss == 0.01);
  CHECK(set_key(s, "cluster.nodes", "12", "--nodes").ok());
  CHECK(s.nodes == 12);
  CHECK(set_key(s, "faults.loss", "1.5", "--loss").text() == "--loss = 1.5: expected a number from 0 to 1");
  CHECK(set_key(s, "faults.loss", "x", "--loss").text() == "--loss = x: expected a number from 0 to 1");
  CHECK(set_key(s, "faults.loss", "", "--loss").text() == "--loss = : expected a number from 0 to 1");
  CHECK(set_key(s, "cluster.nodes", "-1", "--nodes").text() ==
        "--nodes = -1: expected an integer from 1 to 4096");
  CHECK(set_key(s, "cluster.nodes", "3x", "--nodes").text() ==
        "--nodes = 3x: expected an integer from 1 to 4096");
  CHECK(!set_key(s, "cluster.node", "3", "--node").ok());
  CHECK(s.faults.loss == 0.01);
  CHECK(s.nodes == 12);
}

TEST_CASE("scenario: a queue holds a full frame", "[tb][scenario]") {
  Scenario s;
  s.file = "x.toml";
  s.fabric.queue_bytes = 3000;
  CHECK(check_frame_fits(s, 3000, "transport.mtu = 2902").ok());
  CHECK(check_frame_fits(s, 3001, "transport.mtu = 2903").text() ==
        "x.toml: fabric.queue_bytes = 3000: expected at least 3001, a full frame of transport.mtu = 2903");
}

TEST_CASE("scenario: a memory error lies in the memory of its node", "[tb][scenario]") {
  Scenario s;
  s.memory.size_mib = 1;
  const auto message = [&](uint64_t addr, uint64_t bytes) {
    s.memory.error = {{1, addr, bytes}};
    return check_scenario(s).text();
  };
  const uint64_t base = memory_base(1), end = base + (1 << 20);
  CHECK(message(base, 1 << 20).empty());
  CHECK(message(end - 1, 1).empty());
  CHECK(message(0, 64) ==
        "scenario: memory.error[0].addr = 0x0: expected an address in the 1 MiB at 0x200000000 of node 1");
  CHECK(message(end, 1).find("memory.error[0].addr = 0x200100000: expected") != std::string::npos);
  CHECK(message(end - 1, 2) ==
        "scenario: memory.error[0].bytes = 2: expected at most the 1 to the end of the memory");
}

TEST_CASE("scenario: what only the nodes can tell is refused at the start", "[tb][scenario]") {
  Scenario s;
  s.planes = 3;
  CHECK(Cluster::create(s, soft_nodes(2)).error() ==
        "scenario: cluster.planes = 3: expected at most the 2 ports of a node");
  s.planes = 1;
  s.faults.drop.push_back({0, 2, FrameKind::kAny, 0});
  CHECK(Cluster::create(s, soft_nodes(2)).error() == "scenario: faults.drop[0].port = 2: expected below 2");
}

TEST_CASE("scenario: arrays and matrices of a workload are checked element by element", "[tb][scenario]") {
  auto f = TomlFile::parse("a = [1, 2, -3]\nm = [[1, 2], [3, \"x\"]]\nok = [[5], []]\nb = true\n", "w.toml");
  REQUIRE(f.ok());
  std::vector<int64_t> a;
  std::vector<std::vector<int64_t>> m;
  bool b = false;
  CHECK(f.value().root().matrix("ok", m, 0, 10));
  CHECK(m == std::vector<std::vector<int64_t>>{{5}, {}});
  CHECK(f.value().root().boolean("b", b));
  CHECK(b);
  CHECK_FALSE(f.value().root().matrix("m", m, 0, 10, "rows of counts"));
  CHECK_FALSE(f.value().root().integers("a", a, 0, 10));
  CHECK(f.value().done().text() ==
        "w.toml:2: m[1][1] = 'x': expected rows of counts");  // the first error sticks
}

TEST_CASE("scenario: the key table names every key with its default and stands in the docs",
          "[tb][scenario]") {
  const std::string table = scenario_key_table(), more = sim_key_table();
  std::ostringstream docs;
  docs << std::ifstream(WEFT_SOURCE_DIR "/docs/simulation.md").rdbuf();
  CHECK(docs.str().find(table) != std::string::npos);
  INFO(more);
  CHECK(docs.str().find(more) != std::string::npos);
  CHECK(more.find("| `transport.paths_per_port` | 0 | 0 .. 8 |") != std::string::npos);
  CHECK(table.find("| `faults.loss` | 0 | 0 .. 1 |") != std::string::npos);
  CHECK(table.find("| `cluster.nodes` | 8 | 1 .. 4096 |") != std::string::npos);
}
