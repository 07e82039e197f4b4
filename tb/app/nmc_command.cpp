// SPDX-License-Identifier: Apache-2.0
// `weft nmc`: reduces files as the reducer does, on its Verilated model or by its rules alone, and tells what
// came out bit for bit.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "Vnmc_top.h"
#include "sw/ref/numerics.h"
#include "sw/tools/command_line.h"
#include "tb/nmc/world.h"
#include "tb/sim/owned_model.h"

namespace weft::tools {
namespace {

namespace fs = std::filesystem;
using num::Kind;
using wire::Dtype;
using wire::Err;
using wire::Redop;

struct Options {
  std::string op, type, body = "rtl";
  std::optional<std::string> to, scalar, out, json;
  bool propagate_nan = false, saturate = false, exact = false;
  std::optional<unsigned> own;
  unsigned latency = 40, jitter = 0, corrupt = 0;
  double stall = 0;
  uint64_t seed = 1, dump = 0;
  std::vector<std::string> files;
};

// What fits into a run of minutes, and into memory. Bytes of all files and the result.
constexpr uint64_t kMostRtl = 64 << 20, kMostRef = 1 << 30;
constexpr uint64_t kMostDump = 100'000;    // elements
constexpr uint64_t kMostCycles = 100'000;  // of latency or jitter

int bad_input(const std::string& text) {
  return refuse("weft nmc", text);
}

// ---- names

constexpr Dtype kTypes[] = {Dtype::FLOAT64,     Dtype::FLOAT32,     Dtype::FLOAT16,    Dtype::BFLOAT16,
                            Dtype::FLOAT8_E4M3, Dtype::FLOAT8_E5M2, Dtype::INT8,       Dtype::INT16,
                            Dtype::INT32,       Dtype::INT64,       Dtype::UINT8,      Dtype::UINT16,
                            Dtype::UINT32,      Dtype::UINT64,      Dtype::MXFP8_E4M3, Dtype::MXFP8_E5M2,
                            Dtype::MXFP4_E2M1};
constexpr Redop kOps[] = {Redop::SUM,        Redop::PROD, Redop::MIN, Redop::MAX, Redop::AVG,
                          Redop::PREMUL_SUM, Redop::AND,  Redop::OR,  Redop::XOR, Redop::COPY};

std::string lower(const char* text) {
  std::string out = text;
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}
std::string name_of(Dtype t) {
  return t == Dtype::MXFP4_E2M1 ? "mxfp4" : lower(wire::name(t));
}
std::string name_of(Redop r) {
  return lower(wire::name(r));
}

template <class Value, size_t kCount, class Accept>
std::string names(const Value (&all)[kCount], Accept accept) {
  std::string out;
  for (Value v : all)
    if (accept(v)) out += (out.empty() ? "" : ", ") + name_of(v);
  return out;
}

template <class Value, size_t kCount>
Status parse_name(const char* flag, const std::string& text, const Value (&all)[kCount], Value& value) {
  for (Value v : all)
    if (name_of(v) == text) {
      value = v;
      return {};
    }
  return Status::error(
      fmt::format("{} = {}: expected one of {}", flag, text, names(all, [](Value) { return true; })));
}

// ---- what is asked for

// The accumulator: float64 if the sources or the result are, else float32.
bool accumulates_in_64(const num::Job& job) {
  return job.from == Dtype::FLOAT64 || job.to == Dtype::FLOAT64;
}

uint64_t scalar_of(const num::Job& job, double x) {
  return accumulates_in_64(job) ? std::bit_cast<uint64_t>(x)
                                : uint64_t{std::bit_cast<uint32_t>(static_cast<float>(x))};
}

Status parse_scalar(const std::string& text, num::Job& job) {
  const char* const end = text.data() + text.size();
  char* stop = nullptr;
  errno = 0;
  if (num::kind_of(job.from) == Kind::Integer) {
    job.scalar = text.starts_with('-') ? static_cast<uint64_t>(std::strtoll(text.c_str(), &stop, 0))
                                       : std::strtoull(text.c_str(), &stop, 0);
    if (text.empty() || stop != end || errno != 0)
      return Status::error(fmt::format("--scalar = {}: expected an integer of 64 bits", text));
    // What the type does not hold would wrap.
    const auto type = static_cast<unsigned>(job.from);
    const unsigned bits = 8U << (type & 3);
    const bool is_signed = (type & 4) != 0;
    const bool low = text.starts_with('-') &&
                     (!is_signed || static_cast<int64_t>(job.scalar) < -(int64_t{1} << (bits - 1)));
    if (low || (!text.starts_with('-') && job.scalar >> (bits - 1) >> (is_signed ? 0 : 1) != 0))
      return Status::error(fmt::format("--scalar = {}: expected {} integer of {} bits", text,
                                       is_signed ? "a signed" : "an unsigned", bits));
    return {};
  }
  const double x = std::strtod(text.c_str(), &stop);
  if (text.empty() || stop != end)
    return Status::error(fmt::format("--scalar = {}: expected a number", text));
  job.scalar = scalar_of(job, x);
  return {};
}

// What num::check() refuses, said of the flags.
Status refusal(const num::Job& job, Err error, unsigned nsrc, unsigned own) {
  const auto is = [&](num::Job changed) {
    changed.scalar = 1;
    return num::check(changed, 1, 0);
  };
  switch (error) {
    case Err::BAD_TYPE:
      return Status::error(fmt::format("--to = {}: expected what {} converts to: {}", name_of(job.to),
                                       name_of(job.from), names(kTypes, [&](Dtype t) {
                                         return is({.from = job.from, .to = t, .op = Redop::COPY}) == Err::OK;
                                       })));
    case Err::BAD_REDOP:
      return Status::error(fmt::format(
          "--op = {}: expected what {}{} has: {}", name_of(job.op), name_of(job.from),
          job.to == job.from ? "" : fmt::format(" to {}", name_of(job.to)),
          names(kOps, [&](Redop r) { return is({.from = job.from, .to = job.to, .op = r}) == Err::OK; })));
    case Err::BAD_FLAGS:
      if (job.propagate_nan && job.op != Redop::MIN && job.op != Redop::MAX)
        return Status::error(
            fmt::format("--propagate-nan: expected with min or max, not {}", name_of(job.op)));
      if (is({.from = job.from, .to = job.to, .op = job.op, .saturate = job.saturate}) != Err::OK)
        return Status::error(fmt::format(
            "--saturate: expected with a result of 8-bit floats or integers, not {}", name_of(job.to)));
      return Status::error("--exact: expected with sum of 16- or 8-bit floats without --to");
    default: break;
  }
  if (own >= nsrc) return Status::error(fmt::format("--own = {}: expected 0 to {}", own, nsrc - 1));
  if (job.op == Redop::COPY && nsrc > 1)
    return Status::error(fmt::format("--op = copy: {} files, expected one", nsrc));
  if (nsrc >= 1 && nsrc <= num::kMaxSources && num::divides(job))
    return Status::error(fmt::format("--scalar = {}: expected what to divide the sum by, 1 to {}",
                                     static_cast<int64_t>(job.scalar), num::kMaxSources));
  return Status::error(fmt::format("{} files, expected 1 to {}", nsrc, num::kMaxSources));
}

Result<num::Job> parse_job(const Options& o) {
  num::Job job;
  if (Status s = parse_name("--op", o.op, kOps, job.op); !s.ok()) return s;
  if (Status s = parse_name("--type", o.type, kTypes, job.from); !s.ok()) return s;
  job.to = job.from;
  if (o.to)
    if (Status s = parse_name("--to", *o.to, kTypes, job.to); !s.ok()) return s;
  job.propagate_nan = o.propagate_nan;
  job.saturate = o.saturate;
  job.exact = o.exact;
  const auto nsrc = static_cast<unsigned>(std::min<size_t>(o.files.size(), 255));
  if (job.op == Redop::AVG) job.scalar = num::divides(job) ? nsrc : scalar_of(job, 1.0 / std::max(nsrc, 1u));
  if (o.scalar && (job.op == Redop::AVG || job.op == Redop::PREMUL_SUM))
    if (Status s = parse_scalar(*o.scalar, job); !s.ok()) return s;
  if (const Err e = num::check(job, nsrc, o.own.value_or(0)); e != Err::OK)
    return refusal(job, e, static_cast<unsigned>(o.files.size()), o.own.value_or(0));
  const bool scales = job.op == Redop::AVG || job.op == Redop::PREMUL_SUM;
  if (o.scalar && !scales)
    return Status::error(
        fmt::format("--scalar = {}: expected with avg or premul_sum, not {}", *o.scalar, o.op));
  if (job.op == Redop::PREMUL_SUM && !o.scalar)
    return Status::error("--op = premul_sum: expected a --scalar with it");
  return job;
}

// ---- files

using Bytes = std::vector<uint8_t>;

// All of the files, whose sizes must be those of whole elements (or blocks) of both types.
Result<std::vector<Bytes>> read_sources(const Options& o, const num::Job& job) {
  const uint64_t most = o.body == "rtl" ? kMostRtl : kMostRef;
  std::vector<uint64_t> sizes;
  uint64_t total = 0;
  for (const std::string& path : o.files) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status) || ::access(path.c_str(), R_OK) != 0)
      return Status::error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (!fs::is_regular_file(status))
      return Status::error(fmt::format("{}: expected a file of elements", path));
    sizes.push_back(fs::file_size(path, error));
    total += std::min(sizes.back(), most + 1);
  }
  for (size_t k = 1; k < sizes.size(); ++k)
    if (sizes[k] != sizes[0])
      return Status::error(
          fmt::format("{}: {} bytes, expected the {} of {}", o.files[k], sizes[k], sizes[0], o.files[0]));
  const size_t unit = num::kind_of(job.from) == Kind::Block || num::kind_of(job.to) == Kind::Block
                          ? num::footprint(job.from, num::kMxElements)
                          : num::bytes_of(job.from);
  if (sizes[0] % unit != 0)
    return Status::error(
        fmt::format("{}: {} bytes, expected a multiple of the {} of {}", o.files[0], sizes[0], unit,
                    unit == num::bytes_of(job.from) ? name_of(job.from)
                                                    : fmt::format("a block of 32 {}", name_of(job.from))));
  total += sizes[0] / num::bytes_of(job.from) * num::bytes_of(job.to);
  if (total > most)
    return Status::error(fmt::format(
        "{}: {} bytes with all files and the result, expected at most {} MiB{}", o.files[0], total,
        most >> 20, o.body == "rtl" ? fmt::format(" (--body ref takes {})", kMostRef >> 20) : ""));
  std::vector<Bytes> out;
  for (size_t k = 0; k < sizes.size(); ++k) {
    Bytes bytes(sizes[k]);
    std::ifstream in(o.files[k], std::ios::binary);
    errno = 0;
    if (!in || !in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
      return Status::error(
          fmt::format("{}: cannot be read: {}", o.files[k], std::strerror(errno != 0 ? errno : EIO)));
    out.push_back(std::move(bytes));
  }
  return out;
}

// ---- numbers as people read them

template <class Bits>
Bits bits_at(const uint8_t* data) {
  Bits b;
  std::memcpy(&b, data, sizeof b);
  return b;
}

template <num::IsFloat F>
std::string float_text(typename F::bits_type x) {
  const int digits = F::kFrac > 23 ? 17 : F::kFrac > 10 ? 9 : F::kFrac > 7 ? 5 : 4;
  if (F::is_nan(x)) return "nan";
  return fmt::format("{:.{}g}", std::bit_cast<double>(num::convert<F, num::Float64>(x)), digits);
}

// Element i of data of a type: bits, then the number. Of a block the bits are "scale:element".
std::string element_text(Dtype type, const Bytes& data, uint64_t i) {
  const size_t size = num::bytes_of(type);
  switch (num::kind_of(type)) {
    case Kind::Integer:
      return num::with_int(type, [&](auto f) {
        using Format = decltype(f);
        const auto b = bits_at<typename Format::bits_type>(&data[i * size]);
        return fmt::format("0x{:0{}x} {}", b, 2 * size, static_cast<typename Format::value_type>(b));
      });
    case Kind::Float:
      return num::with_float(type, [&](auto f) {
        using Format = decltype(f);
        const auto b = bits_at<typename Format::bits_type>(&data[i * size]);
        return fmt::format("0x{:0{}x} {}", b, 2 * size, float_text<Format>(b));
      });
    default: break;
  }
  return num::with_block(type, [&](auto e) {
    using Block = num::Mx<decltype(e)>;
    const uint8_t* const block = &data[i / num::kMxElements * Block::kBytes];
    const size_t at = i % num::kMxElements;
    std::array<uint32_t, num::kMxElements> values;
    Block::dequantise(std::span<const uint8_t, Block::kBytes>(block, Block::kBytes), values);
    const unsigned code = Block::kHalfBytes ? block[1 + at / 2] >> (at % 2 * 4) & 15u : block[1 + at];
    return fmt::format("{:02x}:{:0{}x} {}", block[0], code, Block::kHalfBytes ? 1 : 2,
                       float_text<num::Float32>(values[at]));
  });
}

void dump(std::FILE* to, const num::Job& job, const std::vector<Bytes>& sources, const Bytes& result,
          uint64_t count) {
  std::vector<std::vector<std::string>> rows(1);
  rows[0].push_back("element");
  for (size_t k = 0; k < sources.size(); ++k) rows[0].push_back(fmt::format("source {}", k));
  rows[0].push_back("result");
  for (uint64_t i = 0; i < count; ++i) {
    rows.emplace_back(1, std::to_string(i));
    for (const Bytes& s : sources) rows.back().push_back(element_text(job.from, s, i));
    rows.back().push_back(element_text(job.to, result, i));
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      size_t width = 0;
      for (const auto& r : rows) width = std::max(width, r[c].size());
      line += c + 1 == row.size() ? row[c] : fmt::format("{:<{}}  ", row[c], width);
    }
    std::fprintf(to, "%s\n", line.c_str());
  }
}

// ---- the simulated unit

struct Measured {
  uint64_t cycles = 0, stall_read = 0, stall_write = 0;
};

// Lays the sources out in memory (the own one apart, the others at one stride), runs one request and takes
// the result.
Result<Measured> run_unit(const Options& o, const num::Job& job, const std::vector<Bytes>& sources,
                          uint64_t elements, const Bytes& want, Bytes& result) {
  using World = nmc::World<Vnmc_top>;
  const auto up = [](uint64_t x) { return (x + nmc::kPageBytes - 1) / nmc::kPageBytes * nmc::kPageBytes; };
  const uint64_t room = up(sources[0].size()) + nmc::kPageBytes;
  nmc::NmcSettings settings;
  settings.latency = o.latency;
  settings.jitter = o.jitter;
  settings.random = o.seed;
  settings.size = (sources.size() + 1) * room + up(result.size()) + nmc::kPageBytes;
  uint64_t random = o.seed * 0x9e3779b97f4a7c15u + 1;
  if (o.stall > 0)
    settings.hold = [&random, &o](unsigned) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      return static_cast<double>(random >> 11) * 0x1p-53 < o.stall;
    };

  tb::OwnedModel<Vnmc_top> dut;
  World world(*dut, settings);
  nmc::NmcRequest request;
  request.job = job;
  request.nsrc = static_cast<unsigned>(sources.size());
  request.own = o.own.value_or(0);
  request.src0 = settings.base + nmc::kPageBytes;
  request.src1 = request.src0 + room;
  request.stride = static_cast<uint32_t>(room);
  request.dst = request.src1 + sources.size() * room;
  const size_t unit = num::length_unit(job.from, job.to);
  request.len = static_cast<uint32_t>(elements / num::elements_of(job.to, unit) * unit);
  for (unsigned k = 0; k < request.nsrc; ++k)
    std::copy(sources[k].begin(), sources[k].end(), world.at(request.source(k)));
  if (nmc::verdict(request) != Err::OK)
    return Status::error(
        fmt::format("--body = rtl: the reducer of this build refuses {} of {} to {} ({}), expected ref",
                    name_of(job.op), name_of(job.from), name_of(job.to), wire::name(nmc::verdict(request))));
  world.expect_as_is();
  world.push(request);

  const auto edge = [&] {
    dut->clk_i = 1;
    dut->eval();
    dut->clk_i = 0;
    dut->eval();
  };
  dut->rst_i = 1;
  for (int i = 0; i < 4; ++i) edge();
  dut->rst_i = 0;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  uint64_t last_move = 0;
  while (!world.idle()) {
    world.drive();
    dut->eval();
    world.look();
    edge();
    if (world.moved()) last_move = world.cycle();
    if (world.cycle() - last_move > 100'000 + 100 * uint64_t{o.latency + o.jitter})
      throw std::runtime_error(fmt::format("cycle {}: the reducer stands still", world.cycle()));
    if (terminal && world.cycle() % (1 << 16) == 0)
      std::fprintf(stderr, "\r\033[K%.0f %%",
                   100.0 * static_cast<double>(world.beats_written()) * nmc::kBeatBytes /
                       static_cast<double>(result.size()));
  }
  if (terminal) std::fprintf(stderr, "\r\033[K");
  if (!result.empty()) std::copy_n(world.at(request.dst), result.size(), result.begin());
  if (result == want) world.compare();  // all of memory; a wrong result is told in elements
  return Measured{world.completions().back().cycle + 1, world.counters().stall_read,
                  world.counters().stall_write};
}

// ---- all together

std::string flags_text(const num::Flags& f) {
  std::string out;
  for (const auto& [name, raised] :
       {std::pair{"invalid", f.invalid}, {"overflow", f.overflow}, {"inexact", f.inexact}})
    if (raised) out += std::string(out.empty() ? "" : " ") + name;
  return out.empty() ? "none" : out;
}

// A reduction, and what came out of it.
struct Work {
  num::Job job;
  std::vector<Bytes> sources;
  uint64_t elements = 0;
  Bytes want, result;  // by the rules, by the body
  num::Flags flags;
  std::optional<Measured> measured;  // of the RTL
  uint64_t wrong = 0;                // elements or blocks
  std::string failure;
  double rate() const {
    return measured ? static_cast<double>(result.size()) / static_cast<double>(measured->cycles) : 0;
  }
};

Status check_options(const Options& o) {
  if (o.body != "rtl" && o.body != "ref")
    return Status::error(fmt::format("--body = {}: expected rtl or ref", o.body));
  if (!(o.stall >= 0 && o.stall <= 0.95))
    return Status::error(fmt::format("--stall = {}: expected a probability from 0 to 0.95", o.stall));
  return check_places(o.files, {{"-o", o.out}, {"--json", o.json}});
}

// By the rules, and by the simulated unit if it is asked for. An error is bad input.
Status reduce(const Options& o, Work& w) {
  const size_t bytes = w.sources[0].size();
  w.elements = num::kind_of(w.job.from) == Kind::Block
                   ? bytes / num::footprint(w.job.from, num::kMxElements) * num::kMxElements
                   : bytes / num::bytes_of(w.job.from);
  w.want.resize(num::footprint(w.job.to, w.elements));
  std::vector<std::span<const uint8_t>> spans(w.sources.begin(), w.sources.end());
  w.flags = num::reduce(w.job, w.want, spans);
  w.result = w.want;
  if (o.body == "rtl") {
    std::fill(w.result.begin(), w.result.end(), uint8_t{0});
    try {
      auto m = run_unit(o, w.job, w.sources, w.elements, w.want, w.result);
      if (!m.ok()) return m.status();
      w.measured = m.take();
    } catch (const std::runtime_error& e) {
      w.failure = e.what();
    }
  }
  for (unsigned i = 0; i < o.corrupt && !w.result.empty(); ++i) w.result[i * 7919 % w.result.size()] ^= 1;
  return {};
}

void compare(Work& w) {
  const bool blocks = num::kind_of(w.job.to) == Kind::Block;
  const size_t unit = blocks ? num::footprint(w.job.to, num::kMxElements) : num::bytes_of(w.job.to);
  const uint64_t units = blocks ? w.elements / num::kMxElements : w.elements;
  uint64_t first = 0;
  for (uint64_t i = 0; i < units && w.failure.empty(); ++i)
    if (std::memcmp(&w.result[i * unit], &w.want[i * unit], unit) != 0 && w.wrong++ == 0) first = i;
  if (w.wrong == 0) return;
  const uint64_t at = first * (w.elements / units);
  w.failure = fmt::format("{} of {} {} differ; element {} is {}, expected {}", w.wrong, units,
                          blocks ? "blocks" : "elements", at, element_text(w.job.to, w.result, at),
                          element_text(w.job.to, w.want, at));
}

void print(std::FILE* to, const Options& o, const Work& w) {
  std::fprintf(to, "%s of %zu x %s -> %s, %llu elements, %zu bytes of result\n", name_of(w.job.op).c_str(),
               w.sources.size(), name_of(w.job.from).c_str(), name_of(w.job.to).c_str(),
               static_cast<unsigned long long>(w.elements), w.result.size());
  if (o.dump != 0) dump(to, w.job, w.sources, w.result, std::min(o.dump, w.elements));
  if (w.measured)
    std::fprintf(
        to,
        "rtl: %llu cycles, %.1f B/cycle with memory of %u cycles; stood %llu for reads, %llu for writes\n",
        static_cast<unsigned long long>(w.measured->cycles), w.rate(), o.latency,
        static_cast<unsigned long long>(w.measured->stall_read),
        static_cast<unsigned long long>(w.measured->stall_write));
  std::fprintf(to, "raised: %s\n", flags_text(w.flags).c_str());
  if (w.measured && w.failure.empty())
    std::fprintf(to, "num::reduce: all %zu bytes equal\n", w.result.size());
}

nlohmann::ordered_json json_of(const Options& o, const Work& w) {
  nlohmann::ordered_json j = {
      {"op", name_of(w.job.op)},
      {"type", name_of(w.job.from)},
      {"to", name_of(w.job.to)},
      {"sources", w.sources.size()},
      {"elements", w.elements},
      {"result_bytes", w.result.size()},
      {"body", o.body},
      {"raised",
       {{"invalid", w.flags.invalid}, {"overflow", w.flags.overflow}, {"inexact", w.flags.inexact}}}};
  if (w.measured) {
    j["cycles"] = w.measured->cycles;
    j["bytes_per_cycle"] = w.rate();
    j["stall_read"] = w.measured->stall_read;
    j["stall_write"] = w.measured->stall_write;
  }
  j["differ"] = w.wrong;
  j["result"] = w.failure.empty() ? "ok" : "failed";
  return j;
}

int run(const Options& o) {
  Work w;
  auto parsed = parse_job(o);
  if (!parsed.ok()) return bad_input(parsed.error());
  w.job = parsed.take();
  if (Status s = check_options(o); !s.ok()) return bad_input(s.text());
  auto read = read_sources(o, w.job);
  if (!read.ok()) return bad_input(read.error());
  w.sources = read.take();
  std::optional<OutputFile> out_file, json_file;
  std::FILE* table = stdout;
  for (auto [flag, path, file] : {std::tuple{"-o", &o.out, &out_file}, {"--json", &o.json, &json_file}}) {
    if (!*path) continue;
    auto made = OutputFile::create(flag, **path);
    if (!made.ok()) return bad_input(made.error());
    file->emplace(made.take());
    if (OutputFile::is_stdout(**path)) table = stderr;
  }
  if (Status s = reduce(o, w); !s.ok()) return bad_input(s.text());
  compare(w);
  print(table, o, w);
  if (out_file && w.failure.empty())
    if (Status s = out_file->write(std::string(w.result.begin(), w.result.end())); !s.ok())
      return bad_input(s.text());
  if (json_file)
    if (Status s = json_file->write(json_of(o, w).dump(2) + "\n"); !s.ok()) return bad_input(s.text());
  if (w.failure.empty()) return kOk;
  std::fprintf(table, "FAILED: %s\n", w.failure.c_str());
  return kFailed;
}

}  // namespace

int nmc_command(int argc, char** argv) {
  Options o;
  CLI::App app{
      "Reduces files of elements as the near-memory reducer does, bit for bit, and tells cycles, flags and "
      "whether its Verilated model and its rules (sw/ref/numerics.h) agree.\n"
      "Files are raw and little-endian; file k is source k. MX types: blocks of a byte of scale and 32 "
      "elements.\n"
      "  weft nmc --op sum --type bfloat16 a.bin b.bin c.bin --dump 4"};
  app.name("weft nmc");
  app.add_option("--op", o.op, names(kOps, [](Redop) { return true; }))->required();
  app.add_option("--type", o.type, "of the files: " + names(kTypes, [](Dtype) { return true; }))->required();
  app.add_option("--to", o.to, "type of the result; default: as the files");
  app.add_option("--scalar", o.scalar,
                 "factor of each source in premul_sum and avg (default there: 1 / files); what an avg of "
                 "integers divides their sum by (default: files)");
  app.add_flag("--propagate-nan", o.propagate_nan,
               "min, max: any NaN gives NaN; default: a number beats NaN");
  app.add_flag("--saturate", o.saturate, "8-bit floats, integers: clamp what is out of range");
  app.add_flag("--exact", o.exact,
               "sum of 16- and 8-bit floats: one rounding in all, any order the same bits");
  app.add_option("--own", o.own, "the file that lies apart, as a rank's own data does; changes no result")
      ->check(whole_number(64));
  app.add_option("--body", o.body, "rtl (the Verilated reducer) or ref (its rules alone)");
  app.add_option("--latency", o.latency, "cycles that memory takes to answer")
      ->check(whole_number(kMostCycles));
  app.add_option("--jitter", o.jitter, "up to so many cycles more, at random")
      ->check(whole_number(kMostCycles));
  app.add_option("--stall", o.stall, "probability that a channel is held back in a cycle, 0 to 0.95");
  app.add_option("--seed", o.seed, "of jitter and stalls")->check(whole_number(~uint64_t{0}));
  app.add_option("--dump", o.dump, "print so many elements of sources and result, bits and numbers")
      ->check(whole_number(kMostDump));
  app.add_option("-o", o.out, "file for the result");
  app.add_option("--json", o.json, "file for figures (JSON)");
  app.add_option("--corrupt-result", o.corrupt, "flip bits of the result: shows that the comparison can fail")
      ->check(whole_number(kMostDump))
      ->group("");
  app.add_option("files", o.files, "1 to 64 files of equal size")->required();
  if (const int end = parse(app, "weft nmc", argc, argv); end >= 0) return end;
  return run(o);
}

}  // namespace weft::tools
