// SPDX-License-Identifier: Apache-2.0
// `weft eval`: transports compared in scenarios.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sw/tools/command_line.h"
#include "sw/tools/commands.h"
#include "tb/eval/report.h"

namespace weft::tools {
namespace {

namespace fs = std::filesystem;
using namespace weft::eval;

struct Options {
  std::vector<std::string> scenarios;
  std::optional<std::string> loss, seed, planes, paths, size, threads, body;
  std::optional<std::string> json, csv, plots;
};

int bad_input(const std::string& text) {
  std::fprintf(stderr, "weft eval: %s\n", text.c_str());
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
    values.push_back(v);
    at = comma + 1;
  }
  return values;
}

// Draws what a report says. The script is Python and looks for matplotlib there.
Status draw(const std::string& json, const std::string& folder) {
  const std::string python = WEFT_VENV_PYTHON, script = WEFT_SOURCE_DIR "/sw/tools/eval_plots.py";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(python.c_str(), python.c_str(), script.c_str(), json.c_str(), folder.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Status::error(fmt::format("--plots = {}: {} {} failed", folder, python, script));
  return {};
}

int run(const Options& o, int argc, char** argv) {
  Overrides over;
  const struct {
    const char* flag;
    const std::optional<std::string>& text;
    std::optional<std::vector<double>>& values;
    double low, high;
    bool whole;
    const char* expected;
  } lists[] = {
      {"--loss", o.loss, over.loss, 0, 0.999999, false, "probabilities from 0 to below 1: 0,0.01"},
      {"--planes", o.planes, over.planes, 1, 16, true, "integers from 1 to 16: 1,2,4"},
      {"--paths", o.paths, over.paths, 1, 256, true, "integers from 1 to 256: 16,64"},
      {"--size", o.size, over.bytes, 0, 2147483648.0, true, "bytes from 0 to 2^31: 65536,1000000"},
  };
  for (const auto& l : lists) {
    if (!l.text) continue;
    auto values = list_of(l.flag, *l.text, l.low, l.high, l.whole, l.expected);
    if (!values.ok()) return bad_input(values.error());
    l.values = values.take();
  }
  if (o.seed) {
    auto values = list_of("--seed", *o.seed, 0, 9007199254740992.0, true, "integers from 0: 1,2,3");
    if (!values.ok()) return bad_input(values.error());
    over.seeds.emplace(values.value().begin(), values.value().end());
  }
  if (o.body) {
    over.bodies.emplace();
    for (size_t at = 0; at <= o.body->size();) {
      const size_t comma = std::min(o.body->find(',', at), o.body->size());
      auto body = parse_body(o.body->substr(at, comma - at));
      if (!body.ok())
        return bad_input(fmt::format("--body = {}: expected some of {}", *o.body, body.error()));
      over.bodies->push_back(body.value());
      at = comma + 1;
    }
  }
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  if (o.threads) {
    auto values = list_of("--threads", *o.threads, 1, 256, true, "an integer from 1 to 256");
    if (!values.ok() || values.value().size() != 1)
      return bad_input(fmt::format("--threads = {}: expected an integer from 1 to 256", *o.threads));
    threads = static_cast<unsigned>(values.value()[0]);
  }

  std::vector<EvalConfig> configs;
  for (const std::string& file : o.scenarios) {
    auto config = load_eval(file, over);
    if (!config.ok()) return bad_input(config.error());
    configs.push_back(config.take());
  }
  std::optional<OutputFile> json, csv;
  for (const auto& [flag, path, file] :
       {std::tuple{"--json", &o.json, &json}, std::tuple{"--csv", &o.csv, &csv}}) {
    if (!*path) continue;
    auto created = OutputFile::create(flag, **path);
    if (!created.ok()) return bad_input(created.error());
    file->emplace(created.take());
  }
  if (o.plots) {
    std::error_code error;
    fs::create_directories(*o.plots, error);
    if (error) return bad_input(fmt::format("--plots = {}: cannot be made: {}", *o.plots, error.message()));
  }

  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto results = run_all(std::move(configs), threads, [&](size_t done, size_t all) {
    if (terminal) std::fprintf(stderr, "\r\033[K%zu of %zu runs", done, all);
  });
  if (terminal) std::fputs("\r\033[K", stderr);
  const std::vector<Row> rows = rows_of(results);
  std::fputs(table_of(results, rows).c_str(), stdout);

  std::string command = "weft";
  for (int i = 0; i < argc; ++i) command += std::string(" ") + argv[i];
  const std::string text = json_of(results, rows, command);
  if (json)
    if (Status s = json->write(text); !s.ok()) return bad_input(s.text());
  if (csv)
    if (Status s = csv->write(csv_of(results)); !s.ok()) return bad_input(s.text());
  if (o.plots) {
    auto data = OutputFile::create("--plots", (fs::path(*o.plots) / "eval.json").string());
    if (!data.ok()) return bad_input(data.error());
    OutputFile file = data.take();
    if (Status s = file.write(text); !s.ok()) return bad_input(s.text());
    std::fflush(stdout);
    if (Status s = draw((fs::path(*o.plots) / "eval.json").string(), *o.plots); !s.ok()) {
      std::fprintf(stderr, "weft eval: %s\n", s.text().c_str());
      return kFailed;
    }
  }
  if (const std::string why = failure_of(results); !why.empty()) {
    std::printf("FAILED: %s\nrerun: %s\n", why.c_str(), command.c_str());
    return kFailed;
  }
  std::printf("ok\n");
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
  app.add_option("--scenario", o.scenarios, "scenario file (TOML; sw/scenarios/eval; docs/evaluation.md)")
      ->required()
      ->take_all();
  app.add_option("--loss", o.loss, "probabilities that a frame is lost at the receiving port");
  app.add_option("--seed", o.seed, "seeds; same seed, same bits");
  app.add_option("--planes", o.planes, "planes of the fabric, one port each");
  app.add_option("--paths", o.paths, "paths of a Weft connection at each port");
  app.add_option("--size", o.size, "bytes of a flow or message");
  app.add_option("--body", o.body, "some of weft, rocev2, rocev2_pfc");
  app.add_option("--threads", o.threads, "runs at a time; does not change results");
  app.add_option("--json", o.json, "all figures (JSON)");
  app.add_option("--csv", o.csv, "all figures, a line each (CSV)");
  app.add_option("--plots", o.plots, "folder for PNG and SVG plots, and the figures they show");
  if (const int end = parse(app, "weft eval", argc, argv); end >= 0) return end;
  return run(o, argc, argv);
}

}  // namespace weft::tools
