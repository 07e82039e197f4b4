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
#include "weft_version.h"

namespace weft::tools {
namespace {

namespace fs = std::filesystem;
using namespace weft::tb;

struct Options {
  std::optional<std::string> config, workload, pcap, timeline, waves, json;
  std::optional<std::string> nodes, planes, body, loss, seed,
      threads;  // as the user wrote them: set_key() says what is wrong
  std::string inputs;
  bool counters = false, verbose = false;
  unsigned corrupt = 0, corrupt_outside = 0;
};

int bad_input(const std::string& text) {
  return refuse("weft sim", text);
}

std::string human(uint64_t bytes) {
  if (bytes >= 10 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 10 << 10) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{} B", bytes);
}

const char* kHeader =
    "op              size       algbw    busbw   time_us   line%    pkts   lost  resent  #wrong";

// Of an operation that did not finish nothing was measured.
void print_row(std::FILE* to, const OpReport& r) {
  const std::string head = fmt::format("{:<14} {:>10} ", wccl::name(r.op.kind), human(r.bytes));
  const std::string row = r.finished
                              ? fmt::format("{}{:8.2f} {:8.2f} {:9.2f} {:7.1f} {:7} {:6} {:7} {:7}", head,
                                            r.algbw_gbps, r.busbw_gbps, r.time_ns / 1000, r.line_pct,
                                            r.traffic.data_packets, r.traffic.lost, r.traffic.resent, r.wrong)
                              : fmt::format("{}{:>8} {:>8} {:>9} {:>7} {:>7} {:>6} {:>7} {:>7}", head, "-",
                                            "-", "-", "-", "-", "-", "-", "-");
  std::fprintf(to, "%s\n", row.c_str());
}

// Keys in the order in which people read them.
using Json = nlohmann::ordered_json;

Json row_json(const OpReport& r) {
  const bool reduces = r.op.kind == wccl::Kind::kAllReduce || r.op.kind == wccl::Kind::kReduceScatter;
  const auto measured = [&](auto value) { return r.finished ? Json(value) : Json(nullptr); };
  return {{"op", wccl::name(r.op.kind)},
          {"type", r.op.kind == wccl::Kind::kBarrier ? "" : wccl::name(r.op.type)},
          {"redop", reduces ? wccl::name(r.op.redop) : ""},
          {"count", r.op.count},
          {"bytes", r.bytes},
          {"time_ns", measured(r.time_ns)},
          {"algbw_gbps", measured(r.algbw_gbps)},
          {"busbw_gbps", measured(r.busbw_gbps)},
          {"line_pct", measured(r.line_pct)},
          {"data_packets", measured(r.traffic.data_packets)},
          {"lost", measured(r.traffic.lost)},
          {"resent", measured(r.traffic.resent)},
          {"needless_resent", measured(r.traffic.needless_resent)},
          {"wrong", measured(r.wrong)}};
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

// What a command line asks for, read and checked.
struct Job {
  std::string scenario_file, workload_file;
  SimConfig config;
  Workload workload;
};

Status check_paths(const Options& o) {
  const struct {
    const char* flag;
    const std::optional<std::string>& value;
  } paths[] = {{"--config", o.config},     {"--workload", o.workload}, {"--pcap", o.pcap},
               {"--timeline", o.timeline}, {"--waves", o.waves},       {"--json", o.json}};
  for (const auto& p : paths)
    if (p.value && p.value->empty()) return Status::error(fmt::format("{} = '': expected a path", p.flag));
  return {};
}

Status apply_flags(const Options& o, Job& job) {
  const struct {
    const char *flag, *key;
    const std::optional<std::string>& value;
  } flags[] = {{"--nodes", "cluster.nodes", o.nodes}, {"--planes", "cluster.planes", o.planes},
               {"--body", "cluster.body", o.body},    {"--loss", "faults.loss", o.loss},
               {"--seed", "cluster.seed", o.seed},    {"--threads", "cluster.threads", o.threads}};
  for (const auto& f : flags) {
    if (!f.value) continue;
    if (Status s = set_key(job.config.scenario, f.key, *f.value, f.flag); !s.ok()) return s;
    job.config.scenario.file =
        job.scenario_file + ", changed by flags";  // for messages about what only the sum of both shows
  }
  if (o.inputs == "random")
    job.config.inputs = Inputs::kRandom;
  else if (o.inputs == "exact")
    job.config.inputs = Inputs::kExact;
  return {};
}

// Whether this machine, and the datapath, can do what is asked; memory.size_mib as it is needed.
Status fit(Job& job) {
  Scenario& scenario = job.config.scenario;
  if (static_cast<uint32_t>(job.workload.ranks) > scenario.nodes)
    return Status::error(fmt::format("{}: ranks = {}: expected at most the {} nodes of the cluster",
                                     job.workload_file, job.workload.ranks, scenario.nodes));
  const uint64_t most = most_mib(scenario.nodes);
  if (most == 0)
    return Status::error(
        fmt::format("{}: cluster.nodes = {}: expected at most {} in the {} MiB of this machine",
                    scenario.file, scenario.nodes, machine_mib() / 2 / (kNodeMib + 2), machine_mib()));
  if (std::string why = too_large(job.workload, most); !why.empty()) return Status::error(why);
  const uint64_t need = std::max<uint64_t>(Runner::memory_mib(job.workload), 1);
  if (!job.config.memory_given) scenario.memory.size_mib = need;
  if (scenario.memory.size_mib < need || scenario.memory.size_mib > most)
    return Status::error(
        fmt::format("{}: memory.size_mib = {}: expected {} (what {} needs) to {} on this machine",
                    scenario.file, scenario.memory.size_mib, need, job.workload_file, most));
  if (scenario.body != Body::kRef && scenario.fabric.rate_gbps > kMostGbps)
    return Status::error(
        fmt::format("{}: fabric.rate_gbps = {}: expected at most {}: the datapath of a node "
                    "moves 64 bytes in {} ps",
                    scenario.file, scenario.fabric.rate_gbps, kMostGbps, kClockPs));
  if (Status s = check_scenario(scenario); !s.ok()) return s;
  const uint64_t frame = wire::kHdrDataBytes + job.config.transport.mtu + wire::kIcrcBytes + kFcsBytes;
  return check_frame_fits(scenario, frame, fmt::format("transport.mtu = {}", job.config.transport.mtu));
}

Result<Job> load(const Options& o) {
  if (Status s = check_paths(o); !s.ok()) return s;
  Job job;
  job.scenario_file = o.config.value_or(WEFT_SOURCE_DIR "/sw/scenarios/default.toml");
  auto config = load_sim_config(job.scenario_file);
  if (!config.ok()) return config.status();
  job.config = config.take();
  if (Status s = apply_flags(o, job); !s.ok()) return s;
  job.workload_file = o.workload.value_or("");
  if (!o.workload) {
    if (job.config.scenario.workload.empty())
      return Status::error(job.scenario_file + ": workload: absent, and no --workload given");
    job.workload_file = (fs::path(job.scenario_file).parent_path() / job.config.scenario.workload).string();
  }
  auto workload = load_workload(job.workload_file);
  if (!workload.ok()) return workload.status();
  job.workload = workload.take();
  if (Status s = fit(job); !s.ok()) return s;
  return job;
}

// Captures of an earlier run that this one would leave beside its own.
Status check_captures(const std::string& folder, uint32_t nodes, uint32_t ports) {
  std::error_code none;  // a folder that is not there yet
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    unsigned node = 0, port = 0;
    int end = 0;
    if (std::sscanf(name.c_str(), "node%u_port%u.pcap%n", &node, &port, &end) == 2 &&
        static_cast<size_t>(end) == name.size() && (node >= nodes || port >= ports))
      return Status::error(
          fmt::format("{}: {} is there, of a run with more nodes: expected a folder whose "
                      "captures this run replaces",
                      folder, name));
  }
  return {};
}

Result<TraceConfig> traces_of(const Options& o, const Scenario& scenario, uint32_t ports) {
  TraceConfig traces;
  traces.pcap_dir = o.pcap.value_or("");
  traces.timeline = o.timeline.value_or("");
  if (!traces.pcap_dir.empty())
    if (Status s = check_captures(traces.pcap_dir, scenario.nodes, ports); !s.ok())
      return Status::error("--pcap = " + s.text());
  if (!o.waves) return traces;
  auto w = parse_waves(*o.waves, scenario.nodes);
  if (!w.ok()) return w.status();
  traces.waves = w.take();
  if (is_reference(scenario, traces.waves.node))
    return Status::error(
        fmt::format("--waves = {}: node {} is a reference node, which has no signals: expected "
                    "a node of the RTL (--body)",
                    *o.waves, traces.waves.node));
  return traces;
}

// The simulation from set-up to rest, and what it says on the way.
struct Outcome {
  std::string reason;  // of a failure; empty and failed: wrong bytes
  std::string state;   // of every node then
  bool failed = false;
  std::vector<OpReport> reports;
  Json counters = Json::object();
  uint64_t cycles = 0, frames = 0;
  double wall_s = 0;
  void fail(const std::string& why) {
    failed = true;
    if (reason.empty()) reason = why;
  }
};

void progress(const std::string& text) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) std::fprintf(stderr, "\r\033[K%s", printable(text).c_str());
}

RunnerConfig runner_config(const Options& o, const SimConfig& config, std::vector<uint8_t> firmware) {
  RunnerConfig rc;
  rc.inputs = config.inputs;
  rc.transport = config.transport;
  rc.connection = config.connection;
  rc.start_psn = config.start_psn;
  rc.limit_us = config.limit_us;
  rc.seed = config.scenario.seed;
  rc.firmware = std::move(firmware);
  rc.corrupt_result = o.corrupt;
  rc.corrupt_outside = o.corrupt_outside;
  return rc;
}

void run_operations(Runner& runner, const Workload& workload, std::FILE* table, Outcome& out) {
  for (size_t i = 0; i < workload.ops.size() && !out.failed; ++i) {
    progress(fmt::format("operation {} of {}: {}", i + 1, workload.ops.size(),
                         wccl::name(workload.ops[i].op.kind)));
    auto report = runner.run(i);
    progress("");
    if (!report.ok()) return out.fail(report.error());
    out.reports.push_back(report.take());
    const OpReport& r = out.reports.back();
    print_row(table, r);
    std::fflush(table);
    if (!r.failure.empty() || r.wrong != 0) out.fail(r.failure);
  }
}

// Once all is at rest, so that frames in and out balance. After a failure that may never be, and what the
// nodes counted is wanted all the more: as it stands, of the nodes that still answer.
void read_counters(Runner& runner, Cluster& cluster, int ranks, Outcome& out) {
  if (!out.failed) {
    progress("coming to rest");
    if (Status s = runner.settle(); !s.ok()) out.fail(s.text());
  }
  for (int k = 0; k < ranks; ++k) {
    progress(fmt::format("reading the counters of node {}", k));
    for (const auto& [name, value] : runner.counters(static_cast<uint32_t>(k)))
      out.counters[name] = out.counters.value(name, uint64_t{0}) + value;
  }
  add_counts(out.counters, cluster.stats());
}

Outcome simulate(const Options& o, const Job& job, Cluster& cluster, std::vector<uint8_t> firmware,
                 std::FILE* table) {
  const Scenario& scenario = job.config.scenario;
  Outcome out;
  Runner runner(cluster, job.workload, runner_config(o, job.config, std::move(firmware)));
  const auto begun = std::chrono::steady_clock::now();
  progress("setting up");
  if (Status s = runner.setup(); !s.ok()) out.fail(s.text());
  const std::string made_of =
      scenario.body == Body::kRtl
          ? ""
          : fmt::format(" ({})", toml_choices(Body{})[static_cast<size_t>(scenario.body)]);
  std::fprintf(table, "%s: %d ranks, %u nodes%s, %u planes, loss %g %%, seed %llu\n%s\n",
               printable(job.workload.name).c_str(), job.workload.ranks, scenario.nodes, made_of.c_str(),
               scenario.planes, scenario.faults.loss * 100, static_cast<unsigned long long>(scenario.seed),
               kHeader);
  run_operations(runner, job.workload, table, out);
  read_counters(runner, cluster, o.json || o.counters ? job.workload.ranks : 0, out);
  if (interrupted != 0) return out;
  for (uint32_t k = 0; k < scenario.nodes; ++k) out.cycles += cluster.cycles(k);
  out.frames = cluster.fabric().in;
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (out.failed) {
    (void)cluster.finish();  // closes the traces; what failed first is what counts
  } else if (Status s = runner.finish(); !s.ok()) {
    out.fail(s.text());
  }
  out.state = runner.state();
  progress("");
  return out;
}

double kcycles_per_s(const Scenario& scenario, const Outcome& out) {
  const unsigned cores = std::max(
      1U, scenario.threads != 0 ? scenario.threads
                                : std::min<unsigned>(scenario.nodes, std::thread::hardware_concurrency()));
  return out.wall_s > 0 ? static_cast<double>(out.cycles) / out.wall_s / 1000 / cores : 0;
}

void print_end(std::FILE* table, const Options& o, const Scenario& scenario, const Outcome& out) {
  if (o.counters)
    for (const auto& [name, value] : out.counters.items())
      if (value.get<uint64_t>() != 0)
        std::fprintf(table, "  %-28s %llu\n", name.c_str(),
                     static_cast<unsigned long long>(value.get<uint64_t>()));
  uint64_t needless = 0;
  for (const OpReport& r : out.reports) needless += r.finished ? r.traffic.needless_resent : 0;
  if (needless != 0)
    std::fprintf(table, "%llu packets were resent although they had arrived\n",
                 static_cast<unsigned long long>(needless));
  if (scenario.body == Body::kRef)  // whose cycles nobody simulates
    std::fprintf(table, "%llu frames in %.1f s: %.0f k frames/s\n",
                 static_cast<unsigned long long>(out.frames), out.wall_s,
                 out.wall_s > 0 ? static_cast<double>(out.frames) / out.wall_s / 1000 : 0.0);
  else
    std::fprintf(table, "%llu node cycles in %.1f s: %.0f k cycles/s of one node on one core\n",
                 static_cast<unsigned long long>(out.cycles), out.wall_s, kcycles_per_s(scenario, out));
}

Json report_of(const Job& job, const Outcome& out, const std::string& command) {
  const Scenario& scenario = job.config.scenario;
  Json rows = Json::array();
  for (const OpReport& r : out.reports) rows.push_back(row_json(r));
  return {{"version", kVersion},
          {"command", printable(command)},
          {"scenario", printable(job.scenario_file)},
          {"workload", printable(job.workload_file)},
          {"body", toml_choices(Body{})[static_cast<size_t>(scenario.body)]},
          {"seed", scenario.seed},
          {"nodes", scenario.nodes},
          {"planes", scenario.planes},
          {"loss", scenario.faults.loss},
          {"ops", rows},
          {"counters", out.counters},
          {"sim",
           {{"cycles", out.cycles},
            {"wall_s", out.wall_s},
            {"kcycles_per_s_per_node", kcycles_per_s(scenario, out)}}},
          {"verdict", out.failed ? "failed" : "ok"},
          {"reason", printable(out.reason)}};
}

int run(const Options& o, int argc, char** argv) {
  auto loaded = load(o);
  if (!loaded.ok()) return bad_input(loaded.error());
  const Job job = loaded.take();
  auto traces = traces_of(o, job.config.scenario, RtlNode::kPorts);
  if (!traces.ok()) return bad_input(traces.error());
#ifndef WEFT_TRACING
  if (o.waves) return run_twin(*o.waves, argc, argv);
#endif
  auto firmware = read_firmware();
  if (!firmware.ok()) return bad_input(firmware.error());
  if (Status s = check_places({job.scenario_file, job.workload_file},
                              {{"--json", o.json}, {"--timeline", o.timeline}});
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
  const NewFolders folders(traces.value().pcap_dir);
  auto cluster = Cluster::create(job.config.scenario, bodies(make_verilated_node<Vnic100>), traces.value());
  if (!cluster.ok()) return bad_trace(cluster.error());
  std::FILE* const table = o.json && OutputFile::is_stdout(*o.json) ? stderr : stdout;
  const Outcome out = simulate(o, job, *cluster.value(), firmware.take(), table);
  if (interrupted != 0) {
    progress("");
    // Whoever closed the pipe has read enough.
    if (interrupted != SIGPIPE) std::fprintf(stderr, "weft sim: stopped by a signal; no file was written\n");
    return kFailed;
  }
  if (cluster.value()->trace_failed()) return bad_trace(cluster.value()->status().text());
  print_end(table, o, job.config.scenario, out);

  std::string command = quoted(program_invocation_name);
  for (int i = 0; i < argc; ++i) command += " " + quoted(argv[i]);
  if (!o.seed) command += fmt::format(" --seed {}", job.config.scenario.seed);
  if (json_file)
    if (Status s = json_file->write(report_of(job, out, command).dump(2) + "\n"); !s.ok())
      return bad_input(s.text());
  if (!out.failed) {
    std::fprintf(table, "ok\n");
    return kOk;
  }
  std::fprintf(table, "FAILED: %s\n", printable(out.reason).c_str());
  if (o.verbose && !out.state.empty()) std::fprintf(table, "%s\n", out.state.c_str());
  std::fprintf(table, "rerun: %s\n", command.c_str());
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
  app.add_option("--json", o.json,
                 "results, counters and speed (JSON); -: standard output, and the table to the other");
  app.add_flag("-v,--verbose", o.verbose, "print the state of every node when a run fails");
  app.add_flag("--counters", o.counters, "print what the hardware counted, summed over nodes");
  app.add_option("--corrupt-result", o.corrupt,
                 "flip bytes of each result before the check: shows that the check can fail")
      ->group("");
  app.add_option("--corrupt-outside", o.corrupt_outside,
                 "flip bytes outside of each result before the check: shows that the check can fail")
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
