// SPDX-License-Identifier: Apache-2.0
// `weft eval`: transports compared in scenarios.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sw/tools/command_line.h"
#include "sw/tools/commands.h"
#include "tb/eval/report.h"
#include "weft_version.h"
#ifdef WEFT_MPI
#include "tb/sim/mpi_ranks.h"
#endif

namespace weft::tools {
namespace {

namespace fs = std::filesystem;
using namespace weft::eval;

struct Options {
  std::vector<std::string> scenarios;
  std::optional<std::string> loss, seed, planes, paths, size, threads, sim_threads, body;
  std::optional<std::string> json, csv, plots;
  bool speed = false;
};

constexpr const char* kScript = WEFT_SOURCE_DIR "/sw/tools/eval_plots.py";

std::atomic<bool> g_interrupted{false};  // by SIGINT, while runs go

/// A place for a report: a file, or "-" for standard output, where the tables then do not go.
class Report {
 public:
  static Result<Report> create(const char* flag, const std::string& path) {
    Report r;
    if (path == "-") return r;
    auto file = OutputFile::create(flag, path);
    if (!file.ok()) return file.status();
    r.file_.emplace(file.take());
    return r;
  }
  bool is_stdout() const { return !file_; }
  Status write(const std::string& text) {
    if (file_) return file_->write(text);
    std::fputs(text.c_str(), stdout);  // who started us looks whether it took it
    return {};
  }

 private:
  std::optional<OutputFile> file_;
};

/// All that is wanted, read and found good; files are open on the rank that writes them.
struct Work {
  std::vector<EvalConfig> configs;
  unsigned at_a_time = 1;
  Machine machine;
  std::optional<Report> json, csv;
};

int bad_input(const std::string& text) {
  std::fprintf(stderr, "weft eval: %s\n", escaped(text).c_str());
  return kBadInput;
}

// "a,b,c" between low and high.
Result<std::vector<double>> list_of(const char* flag, const std::string& text, double low, double high,
                                    bool whole, const char* expected) {
  const auto bad = [&] { return Status::error(fmt::format("{} = {}: expected {}", flag, text, expected)); };
  std::vector<double> values;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    double v = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + comma, v);
    if (error != std::errc{} || end != text.data() + comma || !(v >= low && v <= high) ||
        (whole && v != static_cast<double>(static_cast<uint64_t>(v))))
      return bad();
    if (std::count(values.begin(), values.end(), v) != 0)
      return Status::error(fmt::format("{} = {}: expected each value once", flag, text));
    values.push_back(v);
    at = comma + 1;
  }
  return values;
}

// Ends as a program ends that knows no handler, so that a shell sees it.
int interrupted() {
  std::fflush(nullptr);
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  return kFailed;
}

// Draws what a report says, and puts it beside the plots. The script is Python and looks for matplotlib
// there. It ends when this program does: else it would write its files into a folder that nobody waits for
// any more.
int draw(const std::string& json, const std::string& folder) {
  const std::string python = WEFT_VENV_PYTHON, script = kScript;
  const auto failed = [&](const std::string& what) {
    std::fprintf(stderr, "weft eval: --plots = %s: %s failed\n", folder.c_str(), what.c_str());
    return kFailed;
  };
  std::FILE* in = std::tmpfile();  // has no name to be left behind
  if (in == nullptr) return failed("a temporary file");
  if (std::fwrite(json.data(), 1, json.size(), in) != json.size() || std::fseek(in, 0, SEEK_SET) != 0) {
    std::fclose(in);
    return failed("a temporary file");
  }
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(::fileno(in), STDIN_FILENO);
    ::execl(python.c_str(), python.c_str(), script.c_str(), folder.c_str(), nullptr);
    ::_exit(127);
  }
  std::fclose(in);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
    return failed(python + " " + script);
  if (WEXITSTATUS(status) == kBadInput) return kBadInput;  // told by the script
  return WEXITSTATUS(status) == 0 ? kOk : failed(python + " " + script);
}

// Whether what draws is there: `make eval` installs it, `make weft` does not.
Status try_drawing(const std::string& folder) {
  const std::string python = WEFT_VENV_PYTHON;
  const pid_t child = ::fork();
  if (child == 0) {
    if (const int nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    ::execl(python.c_str(), python.c_str(), kScript, "--check", nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {};
  return Status::error(
      fmt::format("--plots = {}: {} has no matplotlib: expected it there, `make eval` or "
                  "`sw/tools/setup/setup.sh eval` installs it",
                  folder, python));
}

// Whether the folder of the plots can be made and written. Until they are drawn it is not there.
Status try_folder(const std::string& path) {
  if (path.empty()) return Status::error("--plots = '': expected a path");
  const NewFolders made(path);
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return Status::error(fmt::format("--plots = {}: cannot be made: {}", path, error.message()));
  return OutputFile::create("--plots", (fs::path(path) / "eval.json").string()).status();
}

Result<unsigned> threads_of(const char* flag, const std::string& text) {
  const auto values = list_of(flag, text, 1, 256, true, "an integer from 1 to 256");
  if (!values.ok() || values.value().size() != 1)
    return Status::error(fmt::format("{} = {}: expected an integer from 1 to 256", flag, text));
  return static_cast<unsigned>(values.value()[0]);
}

Result<Work> prepare(const Options& o, tb::Ranks* ranks) {
  Work work;
  work.machine.ranks = ranks;
  Overrides over;
  const struct {
    const char* flag;
    const std::optional<std::string>& text;
    std::optional<std::vector<double>>& values;
    double low, high;
    bool whole;
    const char* expected;
  } lists[] = {
      {"--loss", o.loss, over.loss, 0, kMostLoss, false, kLossRange},
      {"--planes", o.planes, over.planes, 1, 16, true, "integers from 1 to 16: 1,2,4"},
      {"--paths", o.paths, over.paths, 1, kMostPaths, true, kPathsRange},
      {"--size", o.size, over.bytes, 0, static_cast<double>(kMostBytes), true, kBytesRange},
  };
  for (const auto& l : lists) {
    if (!l.text) continue;
    auto values = list_of(l.flag, *l.text, l.low, l.high, l.whole, l.expected);
    if (!values.ok()) return values.status();
    l.values = values.take();
  }
  if (o.seed) {
    auto values =
        list_of("--seed", *o.seed, 0, 9007199254740991.0, true, "integers from 0 to 2^53 - 1: 1,2,3");
    if (!values.ok()) return values.status();
    over.seeds.emplace(values.value().begin(), values.value().end());
  }
  if (o.body) {
    over.bodies.emplace();
    for (size_t at = 0; at <= o.body->size();) {
      const size_t comma = std::min(o.body->find(',', at), o.body->size());
      auto body = parse_body(o.body->substr(at, comma - at));
      if (!body.ok())
        return Status::error(fmt::format("--body = {}: expected some of {}", *o.body, body.error()));
      if (std::count(over.bodies->begin(), over.bodies->end(), body.value()) != 0)
        return Status::error(fmt::format("--body = {}: expected each once", *o.body));
      over.bodies->push_back(body.value());
      at = comma + 1;
    }
  }
  if (o.sim_threads) {
    auto threads = threads_of("--sim-threads", *o.sim_threads);
    if (!threads.ok()) return threads.status();
    work.machine.threads = threads.value();
  }
  // All ranks make the same calls in the same order, so they do one run after the other.
  if (ranks == nullptr)
    work.at_a_time = std::max(1U, std::thread::hardware_concurrency() / work.machine.threads);
  if (o.threads) {
    auto threads = threads_of("--threads", *o.threads);
    if (!threads.ok()) return threads.status();
    if (ranks != nullptr && threads.value() != 1)
      return Status::error(fmt::format("--threads = {}: expected 1 with MPI ranks", *o.threads));
    work.at_a_time = threads.value();
  }

  for (const std::string& file : o.scenarios) {
    auto config = load_eval(file, over);
    if (!config.ok()) return config.status();
    for (const EvalConfig& other : work.configs)
      if (other.base.scenario.name == config.value().base.scenario.name)
        return Status::error(fmt::format("{}: name = {}: expected another name than that of {}", file,
                                         other.base.scenario.name, other.file));
    work.configs.push_back(config.take());
  }
  if (ranks != nullptr && ranks->rank() != 0) return work;
  const auto file = [](const std::optional<std::string>& path) { return path == "-" ? std::nullopt : path; };
  if (Status s = check_places(o.scenarios, {{"--json", file(o.json)}, {"--csv", file(o.csv)}}); !s.ok())
    return s;
  if (o.json == "-" && o.csv == "-") return Status::error("--csv = -: expected another place than --json");
  if (o.plots)
    if (Status s = try_drawing(*o.plots); !s.ok()) return s;
  for (const auto& [flag, path, file] :
       {std::tuple{"--json", &o.json, &work.json}, std::tuple{"--csv", &o.csv, &work.csv}}) {
    if (!*path) continue;
    auto created = Report::create(flag, **path);
    if (!created.ok()) return created.status();
    file->emplace(created.take());
  }
  if (o.plots) {
    if (Status s = try_folder(*o.plots); !s.ok()) return s;
  }
  return work;
}

int run(const Options& o, tb::Ranks* ranks, int argc, char** argv) {
  auto prepared = prepare(o, ranks);
  const bool first = ranks == nullptr || ranks->rank() == 0;
  if (ranks != nullptr) {  // nobody starts unless all can; the lowest that cannot tells why
    const tb::Ps refusing = ranks->minimum(prepared.ok() ? tb::kNever : ranks->rank());
    if (refusing != tb::kNever) return refusing == ranks->rank() ? bad_input(prepared.error()) : kBadInput;
  } else if (!prepared.ok()) {
    return bad_input(prepared.error());
  }
  Work work = prepared.take();

  const bool terminal = first && isatty(STDERR_FILENO) != 0;
  // Runs that have ended are not thrown away for those that have not. A second SIGINT ends it at once. Ranks
  // are ended by their mpirun, all alike.
  struct sigaction before {};
  if (ranks == nullptr) {
    struct sigaction action {};
    action.sa_handler = [](int) { g_interrupted = true; };
    action.sa_flags = SA_RESETHAND;
    ::sigaction(SIGINT, &action, &before);
    work.machine.stop = &g_interrupted;
  }
  size_t ended = 0, wanted = 0;
  const auto results = run_all(
      std::move(work.configs), work.at_a_time,
      [&](size_t done, size_t all) {
        ended = done;
        wanted = all;
        if (terminal) std::fprintf(stderr, "\r\033[K%zu of %zu runs", done, all);
      },
      work.machine);
  if (terminal) std::fputs("\r\033[K", stderr);
  if (ranks == nullptr) ::sigaction(SIGINT, &before, nullptr);
  if (g_interrupted && results.empty()) return interrupted();
  const std::vector<double> peaks = peak_gib(ranks);
  std::string why = failure_of(results);
  if (!first) return why.empty() ? kOk : kFailed;
  if (g_interrupted)
    why = fmt::format("interrupted: {} of {} runs ended{}", ended, wanted, why.empty() ? "" : "; " + why);
  const std::vector<Row> rows = rows_of(results, std::accumulate(peaks.begin(), peaks.end(), 0.0));
  std::FILE* const tables =
      (work.json && work.json->is_stdout()) || (work.csv && work.csv->is_stdout()) ? stderr : stdout;
  std::fputs(table_of(results, rows).c_str(), tables);
  if (o.speed) std::fputs(speed_of(results, peaks).c_str(), tables);

  std::string command = "weft";
  for (int i = 0; i < argc; ++i) command += std::string(" ") + argv[i];
  const std::string text = json_of(results, rows, {command, kVersion, why});
  if (work.json)
    if (Status s = work.json->write(text); !s.ok()) return bad_input(s.text());
  if (work.csv)
    if (Status s = work.csv->write(csv_of(results)); !s.ok()) return bad_input(s.text());
  if (o.plots) {
    std::fflush(stdout);
    if (const int end = draw(text, *o.plots); end != kOk) return end;
  }
  if (!why.empty()) {
    std::fprintf(tables, "FAILED: %s\nrerun: %s\n", why.c_str(), escaped(command).c_str());
    return g_interrupted ? interrupted() : kFailed;
  }
  std::fprintf(tables, "ok\n");
  return kOk;
}

}  // namespace

int eval_command(int argc, char** argv) {
  Options o;
  CLI::App app{
      "Runs scenarios with the Weft reference endpoint and the RoCEv2 baseline over a simulated fabric, and "
      "compares them with the ideal bound, with their goals and with recorded figures.\n"
      "Lists are written a,b,c; a flag replaces what the scenario file says."};
  app.name("weft eval");
  app.add_option("--scenario", o.scenarios, "scenario file (TOML; sw/scenarios/eval; docs/eval_scenarios.md)")
      ->required()
      ->take_all();
  app.add_option("--loss", o.loss, "probabilities that a frame is lost at the receiving port");
  app.add_option("--seed", o.seed, "seeds; same seed, same bits");
  app.add_option("--planes", o.planes, "planes of the fabric, one port each");
  app.add_option("--paths", o.paths, "paths of a Weft connection at each port, 1 to 64");
  app.add_option("--size", o.size, "bytes of a flow or message, to 2^40");
  app.add_option("--body", o.body, "some of weft, rocev2, rocev2_pfc");
  app.add_option("--threads", o.threads, "runs at a time; does not change results");
  app.add_option("--sim-threads", o.sim_threads, "threads of each run; does not change results");
  app.add_option("--json", o.json, "all figures (JSON); - is standard output");
  app.add_option("--csv", o.csv, "all figures, a line each (CSV); - is standard output");
  app.add_option(
      "--plots", o.plots,
      "folder for PNG and SVG plots, and the figures they show (needs matplotlib: make eval installs it)");
  app.add_flag("--speed", o.speed, "also tell hosts, events a second and peak memory");
  if (const int end = parse(app, "weft eval", argc, argv); end >= 0) return end;
#ifdef WEFT_MPI
  // What mpirun sets: Open MPI, and the PMI of others. Started by hand it is one program like any other.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr) {
    tb::MpiRanks ranks(&argc, &argv);
    return run(o, &ranks, argc, argv);
  }
#endif
  return run(o, nullptr, argc, argv);
}

}  // namespace weft::tools
