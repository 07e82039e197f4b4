// SPDX-License-Identifier: Apache-2.0
// `weft sim`: a workload on a cluster of Verilated or reference nodes.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "Vnic100.h"
#include "sw/tools/command_line.h"
#include "tb/app/runner.h"
#include "tb/app/sim_config.h"
#include "tb/app/workload.h"
#include "tb/cluster.h"
#include "tb/fabric/fabric.h"
#include "tb/node/ref_node.h"
#include "tb/node/verilated_model.h"
#include "tb/sim/interrupt.h"

namespace weft::tools {
namespace {

namespace fs = std::filesystem;
using namespace weft::tb;

struct Options {
  std::optional<std::string> config, workload, pcap, timeline, waves, json;
  std::optional<std::string> nodes, planes, body, loss, seed,
      threads;  // as the user wrote them: set_key() says what is wrong
  std::string inputs;
  bool counters = false;
  unsigned corrupt = 0;
};

int bad_input(const std::string& text) {
  std::fprintf(stderr, "weft sim: %s\n", text.c_str());
  return kBadInput;
}

std::string human(uint64_t bytes) {
  if (bytes >= 10 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 10 << 10) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{} B", bytes);
}

const char* kHeader =
    "op              size       algbw    busbw   time_us   line%    pkts   lost  resent  #wrong";

void print_row(const OpReport& r) {
  std::printf("%-14s %10s %8.2f %8.2f %9.2f %7.1f %7llu %6llu %7llu %7llu\n", wccl::name(r.op.kind),
              human(r.bytes).c_str(), r.algbw_gbps, r.busbw_gbps, r.time_ns / 1000, r.line_pct,
              static_cast<unsigned long long>(r.traffic.data_packets),
              static_cast<unsigned long long>(r.traffic.lost),
              static_cast<unsigned long long>(r.traffic.resent), static_cast<unsigned long long>(r.wrong));
}

// Keys in the order in which people read them.
using Json = nlohmann::ordered_json;

Json row_json(const OpReport& r) {
  const bool reduces = r.op.kind == wccl::Kind::kAllReduce || r.op.kind == wccl::Kind::kReduceScatter;
  return {{"op", wccl::name(r.op.kind)},
          {"type", r.op.kind == wccl::Kind::kBarrier ? "" : wccl::name(r.op.type)},
          {"redop", reduces ? wccl::name(r.op.redop) : ""},
          {"count", r.op.count},
          {"bytes", r.bytes},
          {"time_ns", r.time_ns},
          {"algbw_gbps", r.algbw_gbps},
          {"busbw_gbps", r.busbw_gbps},
          {"line_pct", r.line_pct},
          {"data_packets", r.traffic.data_packets},
          {"lost", r.traffic.lost},
          {"resent", r.traffic.resent},
          {"needless_resent", r.traffic.needless_resent},
          {"wrong", r.wrong}};
}

// What the fabric and the observers counted, named like the hardware's counters: "fabric.drop_loss",
// "traffic.acks".
void add_counts(Json& counters, const nlohmann::json& stats) {
  for (const char* group : {"fabric", "traffic"})
    for (const auto& [name, value] : stats.at(group).items())
      counters[fmt::format("{}.{}", group, name)] = value;
}

// MiB that this process may use: what the machine has, or less by `ulimit -v`.
uint64_t machine_mib() {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)),
             pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  uint64_t mib = page * pages >> 20;
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    mib = std::min<uint64_t>(mib, space.rlim_cur >> 20);
  return mib;
}

// A MAC that drains frames faster than the datapath fills them runs dry.
constexpr double kMostGbps = 64 * 8 * 1000 / kClockPs;  // a whole number, rounded down

// What a node takes beside its memory: the model, its MACs, its ports in the switches.
constexpr uint64_t kNodeMib = 3;

// MiB of memory that each of so many nodes may have. Half of the machine is for them; the other half holds
// copies of inputs, guard zones and everything else.
uint64_t most_mib(uint32_t nodes) {
  const uint64_t each = machine_mib() / 2 / nodes;
  return std::min<uint64_t>(4096, each > kNodeMib ? (each - kNodeMib) / 2 : 0);
}

// The first operation that needs more, as the user wrote it; empty when all fit.
std::string too_large(const Workload& workload, uint64_t most) {
  for (size_t i = 0; i < workload.ops.size(); ++i) {
    Workload one{workload.file, workload.name, workload.ranks, {workload.ops[i]}};
    const uint64_t need = Runner::memory_mib(one);
    if (need <= most) continue;
    const bool v = one.ops[0].op.kind == wccl::Kind::kAllToAllV;
    return fmt::format(
        "{}: op[{}].{}: its buffers take {} MiB a node, expected at most {} on this machine", workload.file,
        i, v ? std::string("send_counts") : fmt::format("count = {}", one.ops[0].op.count), need, most);
  }
  return {};
}

Result<std::vector<uint8_t>> read_firmware() {
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "firmware" / "cpu_m.bin";
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return Status::error(path.string() +
                         ": cannot be opened: the firmware is not built (make sim builds it)");
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {});
}

// The first signal asks the simulation to stop and clean up; the second ends the program as usual.
void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { interrupted.store(signal, std::memory_order_relaxed); };
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    // A pipe without a reader signals at every write; all of them are survived until everything is cleaned
    // up.
    action.sa_flags = signal == SIGPIPE ? 0 : static_cast<int>(SA_RESETHAND);
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup stays
  }
}

// As a shell would have to be given it.
std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

#ifndef WEFT_TRACING
// Waves come from a program of its own, whose model can trace: it is slower.
int run_twin(const std::string& waves, int argc, char** argv) {
  std::string program = (fs::read_symlink("/proc/self/exe").parent_path() / "weft_fst").string();
  if (!fs::exists(program))
    return bad_input(
        fmt::format("--waves = {}: {} is not built (make weft ARGS=--waves builds it)", waves, program));
  std::vector<char*> args{program.data()};
  args.insert(args.end(), argv, argv + argc);
  args.push_back(nullptr);
  ::execv(program.c_str(), args.data());
  return bad_input(fmt::format("--waves = {}: {} does not start", waves, program));
}
#endif

int run(const Options& o, int argc, char** argv) {
  const struct {
    const char* flag;
    const std::optional<std::string>& value;
  } paths[] = {{"--config", o.config},     {"--workload", o.workload}, {"--pcap", o.pcap},
               {"--timeline", o.timeline}, {"--waves", o.waves},       {"--json", o.json}};
  for (const auto& p : paths)
    if (p.value && p.value->empty()) return bad_input(fmt::format("{} = '': expected a path", p.flag));

  const std::string scenario_file = o.config.value_or(WEFT_SOURCE_DIR "/sw/scenarios/default.toml");
  auto loaded = load_sim_config(scenario_file);
  if (!loaded.ok()) return bad_input(loaded.error());
  SimConfig config = loaded.take();
  const struct {
    const char *flag, *key;
    const std::optional<std::string>& value;
  } flags[] = {{"--nodes", "cluster.nodes", o.nodes}, {"--planes", "cluster.planes", o.planes},
               {"--body", "cluster.body", o.body},    {"--loss", "faults.loss", o.loss},
               {"--seed", "cluster.seed", o.seed},    {"--threads", "cluster.threads", o.threads}};
  for (const auto& f : flags) {
    if (!f.value) continue;
    if (Status s = set_key(config.scenario, f.key, *f.value, f.flag); !s.ok()) return bad_input(s.text());
    config.scenario.file =
        scenario_file + ", changed by flags";  // for messages about what only the sum of both shows
  }
  Scenario& scenario = config.scenario;
  if (o.inputs == "random")
    config.inputs = Inputs::kRandom;
  else if (o.inputs == "exact")
    config.inputs = Inputs::kExact;

  std::string workload_file = o.workload.value_or("");
  if (!o.workload) {
    if (scenario.workload.empty())
      return bad_input(scenario_file + ": workload: absent, and no --workload given");
    workload_file = (fs::path(scenario_file).parent_path() / scenario.workload).string();
  }
  auto workload = load_workload(workload_file);
  if (!workload.ok()) return bad_input(workload.error());
  if (static_cast<uint32_t>(workload.value().ranks) > scenario.nodes)
    return bad_input(fmt::format("{}: ranks = {}: expected at most the {} nodes of the cluster",
                                 workload_file, workload.value().ranks, scenario.nodes));
  const uint64_t most = most_mib(scenario.nodes);
  if (most == 0)
    return bad_input(fmt::format("{}: cluster.nodes = {}: expected at most {} in the {} MiB of this machine",
                                 scenario.file, scenario.nodes, machine_mib() / 2 / (kNodeMib + 2),
                                 machine_mib()));
  if (std::string why = too_large(workload.value(), most); !why.empty()) return bad_input(why);
  const uint64_t need = std::max<uint64_t>(Runner::memory_mib(workload.value()), 1);
  if (!config.memory_given) scenario.memory.size_mib = need;
  if (scenario.memory.size_mib < need || scenario.memory.size_mib > most)
    return bad_input(
        fmt::format("{}: memory.size_mib = {}: expected {} (what {} needs) to {} on this machine",
                    scenario.file, scenario.memory.size_mib, need, workload_file, most));
  if (scenario.body != Body::kRef && scenario.fabric.rate_gbps > kMostGbps)
    return bad_input(
        fmt::format("{}: fabric.rate_gbps = {}: expected at most {}: the datapath of a node "
                    "moves 64 bytes in {} ps",
                    scenario.file, scenario.fabric.rate_gbps, kMostGbps, kClockPs));
  if (Status s = check_scenario(scenario); !s.ok()) return bad_input(s.text());
  const uint64_t frame = wire::kHdrDataBytes + config.transport.mtu + wire::kIcrcBytes + kFcsBytes;
  if (Status s = check_frame_fits(scenario, frame, fmt::format("transport.mtu = {}", config.transport.mtu));
      !s.ok())
    return bad_input(s.text());

  TraceConfig traces;
  traces.pcap_dir = o.pcap.value_or("");
  traces.timeline = o.timeline.value_or("");
  if (o.waves) {
    auto w = parse_waves(*o.waves, scenario.nodes);
    if (!w.ok()) return bad_input(w.error());
#ifndef WEFT_TRACING
    return run_twin(*o.waves, argc, argv);
#endif
    traces.waves = w.take();
  }
  auto firmware = read_firmware();
  if (!firmware.ok()) return bad_input(firmware.error());
  if (Status s =
          check_places({scenario_file, workload_file}, {{"--json", o.json}, {"--timeline", o.timeline}});
      !s.ok())
    return bad_input(s.text());
  std::optional<OutputFile> json_file;
  if (o.json) {
    auto file = OutputFile::create("--json", *o.json);
    if (!file.ok()) return bad_input(file.error());
    json_file.emplace(file.take());
  }
  // "path: why", with the flag that gave the path.
  const auto bad_trace = [&](const std::string& text) {
    if (o.pcap && text.starts_with(*o.pcap)) return bad_input("--pcap: " + text);
    if (o.timeline && text.starts_with(*o.timeline)) return bad_input("--timeline: " + text);
    return bad_input(text);
  };

  stop_on_signals();
  const NewFolders folders(traces.pcap_dir);
  auto cluster = Cluster::create(scenario, bodies(make_verilated_node<Vnic100>), traces);
  if (!cluster.ok()) return bad_trace(cluster.error());

  RunnerConfig rc;
  rc.inputs = config.inputs;
  rc.transport = config.transport;
  rc.connection = config.connection;
  rc.start_psn = config.start_psn;
  rc.limit_us = config.limit_us;
  rc.seed = scenario.seed;
  rc.firmware = firmware.take();
  rc.corrupt_result = o.corrupt;
  Runner runner(*cluster.value(), workload.value(), rc);

  const bool terminal = isatty(STDERR_FILENO) != 0;
  auto progress = [&](const std::string& text) {
    if (terminal) std::fprintf(stderr, "\r\033[K%s", text.c_str());
  };
  const auto wall0 = std::chrono::steady_clock::now();
  progress("setting up");
  std::string failure;
  bool failed = false;
  auto fail = [&](const std::string& text) {
    failed = true;
    if (failure.empty()) failure = text;
  };
  if (Status s = runner.setup(); !s.ok()) fail(s.text());

  const std::string made_of =
      scenario.body == Body::kRtl
          ? ""
          : fmt::format(" ({})", toml_choices(Body{})[static_cast<size_t>(scenario.body)]);
  std::printf("%s: %d ranks, %u nodes%s, %u planes, loss %g %%, seed %llu\n", workload.value().name.c_str(),
              workload.value().ranks, scenario.nodes, made_of.c_str(), scenario.planes,
              scenario.faults.loss * 100, static_cast<unsigned long long>(scenario.seed));
  std::printf("%s\n", kHeader);
  std::vector<OpReport> reports;
  for (size_t i = 0; i < workload.value().ops.size() && !failed; ++i) {
    progress(fmt::format("operation {} of {}: {}", i + 1, workload.value().ops.size(),
                         wccl::name(workload.value().ops[i].op.kind)));
    auto report = runner.run(i);
    progress("");
    if (!report.ok()) {
      fail(report.error());
      break;
    }
    reports.push_back(report.take());
    const OpReport& r = reports.back();
    print_row(r);
    std::fflush(stdout);
    if (!r.failure.empty() || r.wrong != 0) fail(r.failure);
    if (r.traffic.needless_resent != 0)
      fail(fmt::format("{}: {} packets were resent although they had arrived", wccl::name(r.op.kind),
                       r.traffic.needless_resent));
  }

  Json counters = Json::object();
  if (json_file || o.counters) {
    // Once all is at rest, so that frames in and out balance. After a failure that may never be, and what the
    // nodes counted is wanted all the more: as it stands, of the nodes that still answer.
    if (!failed) {
      progress("coming to rest");
      if (const RunResult r = cluster.value()->settle(static_cast<Ps>(rc.limit_us * 1e6)); !r.ok())
        fail("coming to rest: " + r.text);
    }
    for (int k = 0; k < workload.value().ranks; ++k) {
      progress(fmt::format("reading the counters of node {}", k));
      for (const auto& [name, value] : runner.counters(static_cast<uint32_t>(k))) {
        const uint64_t sum = counters.value(name, uint64_t{0}) + value;
        counters[name] = sum;
      }
    }
  }
  if (interrupted != 0) {
    progress("");
    std::fprintf(stderr, "weft sim: stopped by a signal; no file was written\n");
    return kFailed;
  }
  uint64_t cycles = 0;
  for (uint32_t k = 0; k < scenario.nodes; ++k) cycles += cluster.value()->cycles(k);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall0).count();
  const TrafficCounts traffic = cluster.value()->traffic();
  if (traffic.redelivered != 0) fail(fmt::format("{} packets arrived twice", traffic.redelivered));
  add_counts(counters, cluster.value()->stats());
  if (failed) {
    (void)cluster.value()->finish();  // closes the traces; what failed first is what counts
  } else if (Status s = runner.finish(); !s.ok()) {
    fail(s.text());
  }
  progress("");
  if (cluster.value()->trace_failed()) return bad_trace(cluster.value()->status().text());

  if (o.counters)
    for (const auto& [name, value] : counters.items())
      if (value.get<uint64_t>() != 0)
        std::printf("  %-28s %llu\n", name.c_str(), static_cast<unsigned long long>(value.get<uint64_t>()));
  const unsigned cores = std::max(
      1U, scenario.threads != 0 ? scenario.threads
                                : std::min<unsigned>(scenario.nodes, std::thread::hardware_concurrency()));
  const double speed = wall > 0 ? static_cast<double>(cycles) / wall / 1000 / cores : 0;
  if (scenario.body == Body::kRef) {  // whose cycles nobody simulates
    const auto frames = cluster.value()->fabric().in;
    std::printf("%llu frames in %.1f s: %.0f k frames/s\n", static_cast<unsigned long long>(frames), wall,
                wall > 0 ? static_cast<double>(frames) / wall / 1000 : 0.0);
  } else {
    std::printf("%llu node cycles in %.1f s: %.0f k cycles/s of one node on one core\n",
                static_cast<unsigned long long>(cycles), wall, speed);
  }

  if (json_file) {
    Json rows = Json::array();
    for (const OpReport& r : reports) rows.push_back(row_json(r));
    const Json out = {{"seed", scenario.seed},
                      {"nodes", scenario.nodes},
                      {"planes", scenario.planes},
                      {"loss", scenario.faults.loss},
                      {"ops", rows},
                      {"counters", counters},
                      {"sim", {{"cycles", cycles}, {"wall_s", wall}, {"kcycles_per_s_per_node", speed}}},
                      {"verdict", failed ? "failed" : "ok"}};
    if (Status s = json_file->write(out.dump(2) + "\n"); !s.ok()) return bad_input(s.text());
  }
  if (!failed) {
    std::printf("ok\n");
    return kOk;
  }
  std::printf("FAILED: %s\n", failure.c_str());
  std::string again = quoted(program_invocation_name);
  for (int i = 0; i < argc; ++i) again += " " + quoted(argv[i]);
  if (!o.seed) again += fmt::format(" --seed {}", scenario.seed);
  std::printf("rerun: %s\n", again.c_str());
  return kFailed;
}

}  // namespace

int sim_command(int argc, char** argv) {
  Options o;
  CLI::App app{
      "Runs a workload on a cluster of Verilated or reference nodes over a lossy multi-plane fabric; "
      "compares every byte "
      "of every result.\n"
      "Without options: a DLRM training iteration on 8 nodes, 2 planes, 1 % loss."};
  app.name("weft sim");
  app.add_option("--config", o.config, "scenario: cluster, fabric, faults (TOML; docs/simulation.md)");
  app.add_option("--workload", o.workload,
                 "collectives to run (TOML; docs/workloads.md); default: the scenario's");
  app.add_option("--nodes", o.nodes, "nodes of the cluster");
  app.add_option("--planes", o.planes, "planes of the fabric; port p of a node is in plane p mod planes");
  app.add_option("--body", o.body,
                 "rtl (Verilated nodes), ref (reference nodes) or mixed (every second one)");
  app.add_option("--loss", o.loss, "probability that a frame is lost, 0 to 1");
  app.add_option("--seed", o.seed, "seed of everything random; same seed, same bits");
  app.add_option("--threads", o.threads, "worker threads (0: one a core); does not change results");
  app.add_option("--inputs", o.inputs,
                 "exact (sums are exact in any order) or random (bits follow the plan's order)")
      ->check(CLI::IsMember({"exact", "random"}));
  app.add_option("--pcap", o.pcap, "folder for node<k>_port<p>.pcap");
  app.add_option("--timeline", o.timeline,
                 "Chrome/Perfetto timeline of entries, packets, losses and resends (JSON)");
  app.add_option("--waves", o.waves,
                 "FST waves: F[:node[:from_us:to_us]]; runs build/weft_fst, which make sim builds when ARGS "
                 "has --waves");
  app.add_option("--json", o.json, "results, counters and speed (JSON)");
  app.add_flag("--counters", o.counters, "print what the hardware counted, summed over nodes");
  app.add_option("--corrupt-result", o.corrupt,
                 "flip bytes of each result before the check: shows that the check can fail")
      ->group("");
  if (const int end = parse(app, "weft sim", argc, argv); end >= 0) return end;
  const int status = run(o, argc, argv);
  if (const int signal = interrupted; signal != 0) {  // everything is cleaned up: end as the signal would
    std::fflush(stdout);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  return status;
}

}  // namespace weft::tools
