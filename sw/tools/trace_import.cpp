// SPDX-License-Identifier: Apache-2.0
#include "sw/tools/trace_import.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sw/tools/command_line.h"

namespace weft::tools {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostElements = std::uint64_t{1}
                                        << 40;  // as in a workload file; sums of them do not wrap

struct Call {
  std::string kind;
  std::string type;                       // of the input tensor
  std::uint64_t elements = 0;             // of the input tensor
  std::vector<std::uint64_t> send, recv;  // alltoallv: splits
  std::int64_t id = 0;                    // of the node, for messages
};

struct RankTrace {
  std::vector<Call> calls;
  std::size_t waits = 0;
};

// Inputs of a record_param_comms node: tensor(s), sequence number, process group, rank, kind, input splits,
// output splits. A tensor is [id, storage, offset, elements, bytes an element, device]; some collectives list
// several tensors.
std::uint64_t elements_of(const json& tensor, int depth = 0) {
  if (!tensor.is_array() || tensor.empty() || depth > 2) return 0;
  if (tensor[0].is_array()) {
    std::uint64_t n = 0;
    for (const json& t : tensor) n += elements_of(t, depth + 1);
    return n;
  }
  return tensor.size() >= 5 && tensor[3].is_number_unsigned()
             ? std::min(tensor[3].get<std::uint64_t>(), kMostElements + 1)
             : 0;
}

// Text of a trace goes into messages and comments: one line, whatever it holds.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string type_of(const json& types) {  // "Tensor(float)", "GenericList[Tensor(float)]"
  if (!types.is_array() || types.empty() || !types[0].is_string()) return {};
  std::string t = types[0].get<std::string>();
  const auto open = t.find("Tensor(");
  if (open == std::string::npos) return {};
  const auto close = t.find(')', open);
  return one_line(t.substr(open + 7, close == std::string::npos ? std::string::npos : close - open - 7));
}

// False when the list holds anything but counts.
bool read_splits(const json& list, std::vector<std::uint64_t>& out) {
  if (!list.is_array()) return true;  // other kinds have other inputs there
  for (const json& v : list) {
    if (!v.is_number_unsigned() || v.get<std::uint64_t>() > kMostElements) return false;
    out.push_back(v.get<std::uint64_t>());
  }
  return true;
}

Result<RankTrace> read_trace(const std::string& file) {
  std::ifstream in(file);
  (void)in.peek();  // a folder opens well, but does not read
  if (!in.is_open() || in.bad()) return Status::error(file + ": cannot be read");
  json root = json::parse(in, nullptr, false);
  if (root.is_discarded()) return Status::error(file + ": no JSON: truncated, or not a trace");
  if (!root.is_object() || !root.contains("nodes") || !root["nodes"].is_array())
    return Status::error(file + ": nodes: absent, expected a PyTorch execution trace (an array of nodes)");
  RankTrace out;
  static const json none =
      json::array();  // values are referred to, not copied: a copy recurses as deep as they nest
  for (const json& node : std::as_const(root)["nodes"]) {
    if (!node.is_object() || !node.contains("name") || node["name"] != "record_param_comms") continue;
    const json& inputs = node.contains("inputs") ? node["inputs"] : none;
    const std::int64_t id =
        node.contains("id") && node["id"].is_number_integer() ? node["id"].get<std::int64_t>() : -1;
    if (!inputs.is_array())
      return Status::error(fmt::format("{}: node {}: inputs: expected an array", file, id));
    std::size_t kind = 0;
    while (kind < inputs.size() && !inputs[kind].is_string()) ++kind;
    if (kind == inputs.size())
      return Status::error(fmt::format("{}: node {}: inputs: no collective named", file, id));
    Call c;
    c.id = id;
    c.kind = one_line(inputs[kind].get<std::string>());
    if (c.kind == "wait") {
      ++out.waits;
      continue;
    }
    c.elements = elements_of(inputs[0]);
    c.type = type_of(node.contains("input_types") ? node["input_types"] : none);
    if (c.kind == "all_to_allv" && inputs.size() > kind + 2 &&
        !(read_splits(inputs[kind + 1], c.send) && read_splits(inputs[kind + 2], c.recv)))
      return Status::error(fmt::format("{}: node {}: splits: expected lists of counts", file, id));
    out.calls.push_back(std::move(c));
  }
  if (out.calls.empty())
    return Status::error(file + ": nodes: no collective among them (record_param_comms)");
  return out;
}

bool type_from(const std::string& torch, wccl::Type& type) {
  using enum wccl::Type;
  static const struct {
    const char* torch;
    wccl::Type type;
  } names[] = {{"float", kFloat32},
               {"double", kFloat64},
               {"c10::Half", kFloat16},
               {"c10::BFloat16", kBfloat16},
               {"bfloat16", kBfloat16},
               {"c10::Float8_e4m3fn", kFloat8E4m3},
               {"c10::Float8_e5m2", kFloat8E5m2},
               {"signed char", kInt8},
               {"unsigned char", kUint8},
               {"short int", kInt16},
               {"int", kInt32},
               {"long int", kInt64},
               {"long", kInt64}};
  for (const auto& n : names)
    if (torch == n.torch) {
      type = n.type;
      return true;
    }
  return false;
}

}  // namespace

Result<Imported> import_pytorch(const std::vector<std::string>& files) {
  if (files.empty() || files.size() > static_cast<std::size_t>(wccl::kMaxRanks))
    return Status::error(
        fmt::format("traces: {} files, expected one a rank, 1 to {}", files.size(), wccl::kMaxRanks));
  const std::size_t n = files.size();
  std::vector<RankTrace> ranks;
  for (const std::string& f : files) {
    auto t = read_trace(f);
    if (!t.ok()) return t.status();
    if (!ranks.empty() && t.value().calls.size() != ranks[0].calls.size())
      return Status::error(fmt::format("{}: {} collectives, but {} has {}", f, t.value().calls.size(),
                                       files[0], ranks[0].calls.size()));
    ranks.push_back(t.take());
  }
  Imported out;
  out.ranks = static_cast<int>(n);
  out.waits = ranks[0].waits;
  for (std::size_t i = 0; i < ranks[0].calls.size(); ++i) {
    const Call& c = ranks[0].calls[i];
    for (std::size_t r = 1; r < n; ++r)
      if (ranks[r].calls[i].kind != c.kind || ranks[r].calls[i].type != c.type)
        return Status::error(fmt::format("{}: node {}: {} of {}, but {} has {} of {} there", files[r],
                                         ranks[r].calls[i].id, ranks[r].calls[i].kind, ranks[r].calls[i].type,
                                         files[0], c.kind, c.type));
    const bool same_count = c.kind != "all_to_allv" && c.kind != "broadcast";
    for (std::size_t r = 1; r < n && same_count; ++r)
      if (ranks[r].calls[i].elements != c.elements)
        return Status::error(fmt::format("{}: node {}: {} of {} elements, but {} has {} there", files[r],
                                         ranks[r].calls[i].id, c.kind, ranks[r].calls[i].elements, files[0],
                                         c.elements));
    ImportedOp o;
    auto skip = [&](const std::string& why) {
      out.left_out.push_back(fmt::format("{} {}: {}", i, c.kind, why));
    };
    if (c.kind == "barrier") {
      o.op.kind = wccl::Kind::kBarrier;
      out.ops.push_back(o);
      continue;
    }
    if (!type_from(c.type, o.op.type)) {
      skip("type " + (c.type.empty() ? "unknown" : c.type));
      continue;
    }
    o.op.count = c.elements;
    if (c.kind == "allreduce") {
      o.op.kind = wccl::Kind::kAllReduce;
      o.op.in_place = true;  // PyTorch's all_reduce is
    } else if (c.kind == "all_to_all") {
      o.op.kind = wccl::Kind::kAllToAll;
      if (c.elements % n != 0)
        return Status::error(fmt::format("{}: node {}: all_to_all of {} elements among {} ranks", files[0],
                                         c.id, c.elements, n));
      o.op.count = c.elements / n;
    } else if (c.kind == "all_to_allv") {
      o.op.kind = wccl::Kind::kAllToAllV;
      o.op.count = 0;
      std::uint64_t row = 0;  // elements
      for (std::size_t r = 0; r < n; ++r) {
        const Call& mine = ranks[r].calls[i];
        if (mine.send.size() != n || mine.recv.size() != n)
          return Status::error(fmt::format("{}: node {}: {} and {} splits, expected {} of each", files[r],
                                           mine.id, mine.send.size(), mine.recv.size(), n));
        // Splits count rows of the tensor; a workload counts elements.
        const std::uint64_t rows = std::accumulate(mine.send.begin(), mine.send.end(), std::uint64_t{0});
        const std::uint64_t width = rows == 0 ? 0 : mine.elements / rows;
        if (width * rows != mine.elements)
          return Status::error(
              fmt::format("{}: node {}: splits of {} rows in all, but a tensor of {} elements", files[r],
                          mine.id, rows, mine.elements));
        if (width != 0 && row != 0 && width != row)
          return Status::error(fmt::format("{}: node {}: rows of {} elements, but of {} at another rank",
                                           files[r], mine.id, width, row));
        if (width != 0) row = width;
        o.op.send_counts.push_back(mine.send);
        for (std::uint64_t& count : o.op.send_counts.back()) count *= width;
      }
      for (std::size_t s = 0; s < n; ++s)
        for (std::size_t r = 0; r < n; ++r)
          if (ranks[s].calls[i].send[r] != ranks[r].calls[i].recv[s])
            return Status::error(fmt::format("{}: node {}: sends {} rows to rank {}, which expects {}",
                                             files[s], ranks[s].calls[i].id, ranks[s].calls[i].send[r], r,
                                             ranks[r].calls[i].recv[s]));
    } else if (c.kind == "allgather" || c.kind == "all_gather" || c.kind == "_allgather_base") {
      o.op.kind = wccl::Kind::kAllGather;
    } else if (c.kind == "reduce_scatter" || c.kind == "_reduce_scatter_base") {
      o.op.kind = wccl::Kind::kReduceScatter;
      if (c.elements % n != 0)
        return Status::error(fmt::format("{}: node {}: reduce_scatter of {} elements among {} ranks",
                                         files[0], c.id, c.elements, n));
      o.op.count = c.elements / n;
    } else if (c.kind == "broadcast") {
      o.op.kind = wccl::Kind::kBroadcast;
      o.op.in_place = true;
      o.comment = "root 0 assumed: the trace does not tell it";
    } else {
      skip("no such collective here");
      continue;
    }
    if (std::string why = wccl::check(o.op, out.ranks); !why.empty()) {
      skip(why);
      continue;
    }
    out.ops.push_back(std::move(o));
  }
  return out;
}

std::string to_toml(const Imported& trace, const std::string& name, const std::string& source) {
  std::string s = "# Sizes and counts only.\n";
  if (!source.empty()) s += fmt::format("# From {}\n", source);
  s += fmt::format("name = \"{}\"\nranks = {}\n", name, trace.ranks);
  for (const std::string& l : trace.left_out) s += fmt::format("# left out: collective {}\n", l);
  for (const ImportedOp& o : trace.ops) {
    s += fmt::format("\n[[op]]\nkind = \"{}\"\n", wccl::name(o.op.kind));
    if (!o.comment.empty()) s += fmt::format("# {}\n", o.comment);
    if (o.op.kind == wccl::Kind::kBarrier) continue;
    s += fmt::format("type = \"{}\"\n", wccl::name(o.op.type));
    if (o.op.kind == wccl::Kind::kAllToAllV) {
      s += "send_counts = [\n";
      for (const auto& row : o.op.send_counts) s += fmt::format("  [{}],\n", fmt::join(row, ", "));
      s += "]\n";
      continue;
    }
    if (o.op.kind == wccl::Kind::kAllReduce || o.op.kind == wccl::Kind::kReduceScatter)
      s += fmt::format("redop = \"{}\"\n", wccl::name(o.op.redop));
    s += fmt::format("count = {}\n", o.op.count);
    if (o.op.in_place) s += "in_place = true\n";
  }
  return s;
}

int trace_command(int argc, char** argv) {
  CLI::App app{"Makes workload files out of recorded traces."};
  app.name("weft trace");
  app.require_subcommand(1);
  CLI::App* import =
      app.add_subcommand("import", "PyTorch execution traces, one a rank in rank order, to a workload file");
  std::vector<std::string> files;
  std::string output, name = "imported", source;
  import->add_option("traces", files, "JSON files, rank 0 first")->required();
  import->add_option("-o,--output", output, "workload file to write (TOML)")->required();
  import->add_option("--name", name, "name of the workload")->capture_default_str();
  import->add_option("--source", source, "where the traces come from, for the file's head");
  if (const int end = parse(app, "weft trace", argc, argv); end >= 0) return end;
  const auto bad_input = [](const std::string& text) {
    std::fprintf(stderr, "weft trace import: %s\n", text.c_str());
    return kBadInput;
  };
  for (const auto& [flag, text] : {std::pair("--name", name), std::pair("--source", source)})
    if (std::any_of(text.begin(), text.end(),
                    [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '"' || c == '\\'; }))
      return bad_input(
          fmt::format("{}: expected text without quotes, backslashes and control characters", flag));
  if (Status s = check_places(files, {{"--output", output}}); !s.ok()) return bad_input(s.text());
  auto trace = import_pytorch(files);
  if (!trace.ok()) return bad_input(trace.error());
  auto file = OutputFile::create("--output", output);
  if (!file.ok()) return bad_input(file.error());
  if (Status s = file.value().write(to_toml(trace.value(), name, source)); !s.ok())
    return bad_input(s.text());
  std::printf("%s: %d ranks, %zu operations, %zu waits ignored, %zu left out\n", output.c_str(),
              trace.value().ranks, trace.value().ops.size(), trace.value().waits,
              trace.value().left_out.size());
  return kOk;
}

}  // namespace weft::tools
