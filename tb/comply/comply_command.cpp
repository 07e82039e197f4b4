// SPDX-License-Identifier: Apache-2.0
// `weft comply`: scripted exchanges against a body (docs/compliance.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "Vnic100.h"
#include "sw/tools/command_line.h"
#include "sw/tools/commands.h"
#include "tb/comply/fault.h"
#include "tb/comply/ref_body.h"
#include "tb/comply/rtl_body.h"
#include "tb/comply/tester.h"
#include "tb/comply/udp_body.h"
#include "tb/node/verilated_model.h"

namespace weft::tools {
namespace {

namespace fs = std::filesystem;
using comply::Verdict;

struct Options {
  std::string body;
  std::vector<std::string> scripts;
  std::optional<std::string> json;
  std::optional<unsigned> serve;
  bool list = false, verbose = false, wrong = false;
};

int bad_input(const std::string& text) {
  return refuse("weft comply", text);
}

Result<std::vector<std::uint8_t>> firmware() {
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "firmware" / "cpu_m.bin";
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return Status::error(path.string() +
                         ": cannot be opened: the firmware is not built (make comply builds it)");
  return std::vector<std::uint8_t>(std::istreambuf_iterator<char>(in), {});
}

Result<std::unique_ptr<comply::Body>> make_body(const std::string& which) {
  if (which == "ref") return comply::make_ref_body();
  if (which == "rtl") {
    auto image = firmware();
    if (!image.ok()) return image.status();
    return comply::make_rtl_body(tb::make_verilated_node<Vnic100>, image.take());
  }
  if (which.rfind("udp:", 0) == 0) return comply::make_udp_body(which.substr(4));
  return Status::error(fmt::format("--body = {}: expected ref, rtl or udp:HOST:PORT", which));
}

// The name of a file may be any bytes, JSON may not.
std::string dump(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The lines of a failure: names in them may be any bytes.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += (at == 0 ? "" : "\n") + printable(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

const char* text_of(Verdict v) {
  switch (v) {
    case Verdict::kPass: return "pass";
    case Verdict::kFail: return "fail";
    case Verdict::kNotYet: return "not yet";
    case Verdict::kBroken: return "broken";
  }
  return "";
}

int run(const Options& o) {
  if (o.serve) {
    if (!o.body.empty() || o.list || o.wrong || o.verbose || o.json || !o.scripts.empty())
      return bad_input("--serve: expected alone");
    const Status s = comply::serve(static_cast<std::uint16_t>(*o.serve));
    return s.ok() ? kOk : bad_input(s.text());
  }
  if (o.list && (!o.body.empty() || o.wrong || o.verbose || o.json))
    return bad_input("--list: expected alone or with --script: it runs nothing");
  std::vector<std::string> files = o.scripts;
  if (files.empty()) {
    const std::string folder = WEFT_SOURCE_DIR "/tests/compliance";
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".script") files.push_back(entry.path().string());
    if (error || files.empty()) return bad_input(folder + ": no scripts there");
    std::sort(files.begin(), files.end());
  }
  std::vector<comply::Script> scripts;
  for (const std::string& f : files) {
    auto s = comply::load_script(f);
    if (!s.ok()) return bad_input(s.error());
    scripts.push_back(s.take());
  }
  if (o.list) {
    for (const comply::Script& s : scripts) {
      std::string rules;
      for (const std::string& r : s.rules) rules += " " + r;
      std::printf("%-28s%-12s %s\n", printable(s.name).c_str(), rules.c_str(), s.title.c_str());
    }
    return kOk;
  }
  if (o.body.empty()) return bad_input("--body: absent: expected ref, rtl or udp:HOST:PORT");
  auto body = make_body(o.body);
  if (!body.ok()) return bad_input(body.error());
  if (Status s = check_places(files, {{"--json", o.json}}); !s.ok()) return bad_input(s.text());
  std::optional<OutputFile> json;
  if (o.json) {
    auto file = OutputFile::create("--json", *o.json);
    if (!file.ok()) return bad_input(file.error());
    json.emplace(file.take());
  }

  std::FILE* const table = o.json && OutputFile::is_stdout(*o.json) ? stderr : stdout;
  comply::TestOptions options;
  options.log = o.verbose;
  nlohmann::json rows = nlohmann::json::array();
  unsigned passed = 0, failed = 0, not_yet = 0;
  const auto count = [&](const comply::Outcome& out, const comply::Script& s, const std::string& name) {
    const bool ok = out.verdict == Verdict::kPass;
    ++(ok ? passed : out.verdict == Verdict::kNotYet ? not_yet : failed);
    std::fprintf(table, "%-8s %-28s %s%s\n", text_of(out.verdict), printable(name).c_str(), s.title.c_str(),
                 out.verdict == Verdict::kNotYet ? fmt::format(" (needs {})", out.text).c_str() : "");
    if (!out.text.empty() && out.verdict != Verdict::kNotYet)
      std::fprintf(table, "  %s\n", escaped(out.text).c_str());
    std::fflush(table);
    rows.push_back({{"script", name},
                    {"title", s.title},
                    {"rules", s.rules},
                    {"verdict", text_of(out.verdict)},
                    {"text", ok ? "" : out.text},
                    {"time_us", static_cast<double>(out.took) / 1e6}});
  };
  for (const comply::Script& s : scripts) {
    comply::Outcome out = comply::run_script(*body.value(), s, options);
    if (out.verdict == Verdict::kBroken) {
      // A body that is of no further use says so for this script; the next begins with a fresh one.
      body = make_body(o.body);
      if (!body.ok()) return bad_input(body.error());
    }
    if (!o.wrong || out.verdict != Verdict::kPass) {
      count(out, s, s.name);
      continue;
    }
    for (const std::string& fault : s.catches) {
      auto right = make_body(o.body);
      if (!right.ok()) return bad_input(right.error());
      const auto wrong = comply::make_wrong(right.take(), fault);
      comply::Outcome found = comply::run_script(*wrong, s, options);
      // To be found wrong is what passes here.
      if (found.verdict == Verdict::kFail) {
        found.verdict = Verdict::kPass;
        if (!o.verbose) found.text.clear();
      } else if (found.verdict == Verdict::kPass) {
        found.verdict = Verdict::kFail;
        found.text = fmt::format("{}: passes with a body that {}", s.file, comply::find_fault(fault)->what);
      }
      count(found, s, s.name + "/" + fault);
    }
    if (s.catches.empty()) {
      out.verdict = Verdict::kFail;
      out.text = s.file + ": names no wrong body that it catches";
      count(out, s, s.name);
    }
  }
  std::fprintf(table, "%s: %u passed, %u failed, %u not yet\n", o.body.c_str(), passed, failed, not_yet);
  if (json) {
    const nlohmann::json out = {
        {"body", o.body}, {"rows", rows}, {"passed", passed}, {"failed", failed}, {"not_yet", not_yet}};
    if (Status s = json->write(dump(out) + "\n"); !s.ok()) return bad_input(s.text());
  }
  return failed == 0 ? kOk : kFailed;
}

}  // namespace

int comply_command(int argc, char** argv) {
  Options o;
  CLI::App app{
      "Runs scripted exchanges against one end of a connection: the reference endpoint, a Verilated node, or "
      "whatever answers at a UDP socket (docs/compliance.md)."};
  app.name("weft comply");
  app.add_option("--body", o.body, "ref, rtl or udp:HOST:PORT");
  app.add_option("--script", o.scripts,
                 "script to run, may be given several times; default: all of tests/compliance");
  app.add_flag("--list", o.list, "list the scripts and run none");
  app.add_option("--json", o.json, "results (JSON)");
  app.add_flag("-v,--verbose", o.verbose, "print every frame");
  app.add_flag("--wrong", o.wrong, "run each script against the wrong bodies that it says it catches");
  app.add_option(
         "--serve", o.serve,
         "answer at a UDP port with the reference endpoint, for --body udp:... (0: a free one, printed)")
      ->check(whole_number(65535));
  if (const int end = parse(app, "weft comply", argc, argv); end >= 0) return end;
  return run(o);
}

}  // namespace weft::tools
