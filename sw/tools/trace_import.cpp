// SPDX-License-Identifier: Apache-2.0
#include "sw/tools/trace_import.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sw/tools/command_line.h"
#include "sw/tools/place.h"
#include "sw/tools/printable.h"

namespace weft::tools {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostElements = std::uint64_t{1}
                                        << 40;  // as in a workload file; sums of them do not wrap

struct Call {
  std::string kind;
  std::string type;                       // of the input tensor
  std::uint64_t elements = 0;             // of the input tensors
  std::vector<std::uint64_t> pieces;      // of each, where a call has a list of them
  std::string bad;                        // why the tensors make no sense; matters if the kind is imported
  std::vector<std::uint64_t> send, recv;  // alltoallv: splits
  std::int64_t id = 0;                    // of the node, for messages
  std::int64_t rank = -1;                 // the number in front of the kind: whose call it is, or the root
  std::string group;                      // name of the process group; empty where it has none
};

struct RankTrace {
  std::string file;
  std::vector<Call> calls;
  std::size_t waits = 0;
  std::int64_t told_ranks = 0;  // size of the default group, where the trace tells it
};

// Text of a trace goes into messages and comments: one line, whatever it holds.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string shown(const json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return one_line(value.dump(-1, ' ', false, json::error_handler_t::replace)).substr(0, 40);
}

// A tensor is [id, storage, offset, elements, bytes an element, device]; an input is one or a list of them.
void read_tensors(const json& tensor, Call& c, int depth = 0) {
  constexpr std::size_t kElements = 3, kLeast = 5;
  if (!c.bad.empty()) return;
  if (!tensor.is_array() || tensor.empty() || depth > 2) {
    c.bad = fmt::format("expected a tensor or a list of them, not {}", shown(tensor));
  } else if (tensor[0].is_array()) {
    for (const json& t : tensor) read_tensors(t, c, depth + 1);
  } else if (tensor.size() < kLeast) {
    c.bad =
        fmt::format("a tensor of {} fields, expected id, storage, offset, elements, bytes", tensor.size());
  } else if (!tensor[kElements].is_number_unsigned() ||
             tensor[kElements].get<std::uint64_t>() > kMostElements - c.elements) {
    c.bad = fmt::format("a tensor of {} elements, expected 0 to 2^40 in all", shown(tensor[kElements]));
  } else {
    c.pieces.push_back(tensor[kElements].get<std::uint64_t>());
    c.elements += c.pieces.back();
  }
}

// "Tensor(float)", "GenericList[Tensor(float),Tensor(float)]". Tensors of several types: all their names.
std::string type_of(const json& types) {
  if (!types.is_array() || types.empty() || !types[0].is_string()) return {};
  const std::string t = types[0].get<std::string>();
  constexpr std::string_view kOpen = "Tensor(";
  std::vector<std::string> found;
  for (std::size_t at = t.find(kOpen); at != std::string::npos; at = t.find(kOpen, at + 1)) {
    const auto close = t.find(')', at);
    std::string name = one_line(t.substr(
        at + kOpen.size(), close == std::string::npos ? std::string::npos : close - at - kOpen.size()));
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(found, " and "));
}

// ["1", "tp"] is told as it is; a number is an address, another one in each process.
std::string group_of(const json& group, std::vector<std::int64_t>& numbers) {
  if (group.is_array() && !group.empty() && group[0].is_string()) {
    std::string text = one_line(group[0].get<std::string>());
    if (group.size() > 1 && group[1].is_string() && group[1] != "")
      text += fmt::format(" ({})", one_line(group[1].get<std::string>()));
    return text;
  }
  if (group.is_number_integer()) {
    const auto number = group.get<std::int64_t>();
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
  }
  return {};
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

Result<json> read_json(const std::string& file) {
  constexpr std::size_t kMost = std::size_t{1} << 32;
  auto read = read_file(file, kMost);
  if (!read.ok()) return Status::error(printable(read.error()));
  const std::string& text = read.value();
  try {
    return json::parse(text);
  } catch (const json::parse_error& e) {
    const std::size_t at = std::min<std::size_t>(e.byte == 0 ? 0 : e.byte - 1, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const bool ends =
        text.find_last_not_of(" \t\r\n") == std::string::npos || at > text.find_last_not_of(" \t\r\n");
    return Status::error(fmt::format("{}: no JSON: {} line {}", printable(file),
                                     ends ? "truncated in" : "not a trace of PyTorch: not understood from",
                                     line));
  }
}

// Inputs of a record_param_comms node: tensor(s), sequence number, process group, rank or root, kind, input
// splits, output splits. Schema 1.0.2 and later keep them, their shapes and types in one object. Empty: read.
std::string read_call(const json& node, std::vector<std::int64_t>& numbers, RankTrace& out) {
  static const json none =
      json::array();  // values are referred to, not copied: a copy recurses as deep as they nest
  const auto member = [](const json& o, const char* key) -> const json& {
    return o.is_object() && o.contains(key) ? o[key] : none;
  };
  Call c;
  c.id = node.contains("id") && node["id"].is_number_integer() ? node["id"].get<std::int64_t>() : -1;
  const json& all = member(node, "inputs");
  if (all.is_object() && !all.contains("values"))
    return fmt::format("node {}: inputs.values: absent, expected an array", c.id);
  const json& inputs = all.is_object() ? member(all, "values") : all;
  if (!inputs.is_array()) return fmt::format("node {}: inputs: expected an array", c.id);
  const auto kind = static_cast<std::size_t>(
      std::find_if(inputs.begin(), inputs.end(), [](const json& i) { return i.is_string(); }) -
      inputs.begin());
  if (kind == inputs.size()) return fmt::format("node {}: inputs: no collective named", c.id);
  c.kind = one_line(inputs[kind].get<std::string>());
  if (c.kind == "wait") {
    ++out.waits;
    return {};
  }
  read_tensors(inputs[0], c);
  c.type = type_of(all.is_object() ? member(all, "types") : member(node, "input_types"));
  if (kind >= 1 && inputs[kind - 1].is_number_integer()) c.rank = inputs[kind - 1].get<std::int64_t>();
  if (kind >= 2) c.group = group_of(inputs[kind - 2], numbers);
  if (c.kind == "all_to_allv" && inputs.size() > kind + 2 &&
      !(read_splits(inputs[kind + 1], c.send) && read_splits(inputs[kind + 2], c.recv)))
    return fmt::format("node {}: splits: expected lists of counts", c.id);
  const json& attrs = member(node, "attrs");
  if (attrs.is_array())
    for (const json& a : attrs)
      if (member(a, "name") == "group_size" || member(a, "name") == "pg_size")
        if (const json& value = member(a, "value"); value.is_number_unsigned())
          out.told_ranks = std::max(out.told_ranks, value.get<std::int64_t>());
  out.calls.push_back(std::move(c));
  return {};
}

Result<RankTrace> read_trace(const std::string& file) {
  auto root = read_json(file);
  if (!root.ok()) return root.status();
  const json& all = root.value();
  if (!all.is_object() || !all.contains("nodes") || !all["nodes"].is_array())
    return Status::error(
        printable(file) + ": nodes: absent, expected a PyTorch execution trace (an array of nodes)" +
        (all.is_object() && all.contains("traceEvents") ? ", not a profiler's trace (traceEvents)" : ""));
  RankTrace out;
  out.file = printable(file);
  std::vector<std::int64_t> numbers;
  for (const json& node : all["nodes"]) {
    if (!node.is_object() || !node.contains("name") || node["name"] != "record_param_comms") continue;
    if (std::string why = read_call(node, numbers, out); !why.empty())
      return Status::error(out.file + ": " + why);
  }
  if (out.calls.empty())
    return Status::error(out.file + ": nodes: no collective among them (record_param_comms)");
  // One number: the one group there is. Of several, nobody can say which of another rank's it is.
  if (numbers.size() > 1)
    for (Call& c : out.calls)
      if (c.group.empty()) c.group = "of several, told by address";
  return out;
}

// Whose number stands in front of the kind.
bool names_root(const std::string& kind) {
  for (const char* k : {"broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "scatter", "gather"})
    if (kind == k) return true;
  return false;
}
bool point_to_point(const std::string& kind) {
  for (const char* k : {"send", "recv", "recv_any_source", "recvAnysource", "batch_isend_irecv"})
    if (kind == k) return true;
  return false;
}

// Takes out what only some ranks did: calls of groups that are not of all traces, and sends and receives,
// which pair up otherwise than by their order. Told once a kind and group.
void keep_common(std::vector<RankTrace>& ranks, std::vector<std::string>& left_out) {
  std::map<std::string, std::set<std::size_t>> members;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const Call& c : ranks[r].calls) members[c.group].insert(r);
  std::map<std::pair<std::string, std::string>, std::size_t> gone;  // kind, why
  for (RankTrace& t : ranks)
    std::erase_if(t.calls, [&](const Call& c) {
      std::string why;
      if (point_to_point(c.kind))
        why = "moves data between two ranks, which no workload does";
      else if (c.group.starts_with("of several"))
        why = "its process group is told by address, and there are several";
      else if (const auto& of = members[c.group]; of.size() != ranks.size())
        why = fmt::format("group {} is of {} of the {} traces (those given as {})", c.group, of.size(),
                          ranks.size(), fmt::join(of, ", "));
      if (why.empty()) return false;
      ++gone[{c.kind, why}];
      return true;
    });
  for (const auto& [what, count] : gone)
    left_out.push_back(fmt::format("{} ({} calls of all ranks): {}", what.first, count, what.second));
}

// By the rank that each names; those that name none stay as they were given. Empty: done.
std::string sort_by_rank(std::vector<RankTrace>& ranks) {
  std::vector<std::int64_t> of;
  for (const RankTrace& t : ranks) {
    std::int64_t rank = -1;
    for (const Call& c : t.calls) {
      if (names_root(c.kind) || c.rank < 0) continue;
      if (rank >= 0 && rank != c.rank)
        return fmt::format("{}: node {}: rank {}, but {} before it", t.file, c.id, c.rank, rank);
      rank = c.rank;
    }
    of.push_back(rank);
  }
  if (std::all_of(of.begin(), of.end(), [](std::int64_t r) { return r < 0; })) return {};
  std::vector<const RankTrace*> seen(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (of[i] < 0 || static_cast<std::size_t>(of[i]) >= ranks.size())
      return fmt::format("{}: rank {}, expected 0 to {}: one trace of each rank", ranks[i].file,
                         of[i] < 0 ? "not told" : std::to_string(of[i]), ranks.size() - 1);
    const RankTrace*& other = seen[static_cast<std::size_t>(of[i])];
    if (other != nullptr)
      return fmt::format("{}: rank {}, which {} is already", ranks[i].file, of[i], other->file);
    other = &ranks[i];
  }
  std::vector<RankTrace> sorted;
  for (const RankTrace* t : seen) sorted.push_back(*t);
  ranks = std::move(sorted);
  return {};
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

// Kinds and how they are imported. Lists of tensors that are sent as one ("coalesced") become one operation
// of all their elements.
const struct Kind {
  const char* torch;
  wccl::Kind kind;
} kKinds[] = {{"allreduce", wccl::Kind::kAllReduce},
              {"allreduce_coalesced", wccl::Kind::kAllReduce},
              {"all_to_all", wccl::Kind::kAllToAll},
              {"all_to_allv", wccl::Kind::kAllToAllV},
              {"allgather", wccl::Kind::kAllGather},
              {"all_gather", wccl::Kind::kAllGather},
              {"_allgather_base", wccl::Kind::kAllGather},
              {"allgather_into_tensor_coalesced", wccl::Kind::kAllGather},
              {"reduce_scatter", wccl::Kind::kReduceScatter},
              {"_reduce_scatter_base", wccl::Kind::kReduceScatter},
              {"reduce_scatter_tensor_coalesced", wccl::Kind::kReduceScatter},
              {"broadcast", wccl::Kind::kBroadcast},
              {"_broadcast_oop", wccl::Kind::kBroadcast},
              {"barrier", wccl::Kind::kBarrier}};

// The rows that each rank sends to each, in elements. Empty: done.
std::string import_splits(const std::vector<RankTrace>& ranks, std::size_t i, wccl::Op& op) {
  const std::size_t n = ranks.size();
  std::uint64_t row = 0;  // elements
  for (const RankTrace& t : ranks) {
    const Call& mine = t.calls[i];
    if (mine.send.size() != n || mine.recv.size() != n)
      return fmt::format("{}: node {}: {} and {} splits, expected {} of each", t.file, mine.id,
                         mine.send.size(), mine.recv.size(), n);
    // Splits count rows of the tensor; a workload counts elements.
    const std::uint64_t rows = std::accumulate(mine.send.begin(), mine.send.end(), std::uint64_t{0});
    const std::uint64_t width = rows == 0 ? 0 : mine.elements / rows;
    if (width * rows != mine.elements)
      return fmt::format("{}: node {}: splits of {} rows in all, but a tensor of {} elements", t.file,
                         mine.id, rows, mine.elements);
    if (width != 0 && row != 0 && width != row)
      return fmt::format("{}: node {}: rows of {} elements, but of {} at another rank", t.file, mine.id,
                         width, row);
    if (width != 0) row = width;
    op.send_counts.push_back(mine.send);
    for (std::uint64_t& count : op.send_counts.back()) count *= width;
  }
  for (std::size_t s = 0; s < n; ++s)
    for (std::size_t r = 0; r < n; ++r)
      if (ranks[s].calls[i].send[r] != ranks[r].calls[i].recv[s])
        return fmt::format("{}: node {}: sends {} rows to rank {}, which expects {}", ranks[s].file,
                           ranks[s].calls[i].id, ranks[s].calls[i].send[r], r, ranks[r].calls[i].recv[s]);
  return {};
}

// Call i of all ranks, of one kind and type. Empty: imported, or left out and told.
std::string import_call(const std::vector<RankTrace>& ranks, std::size_t i, Imported& out) {
  const std::size_t n = ranks.size();
  const Call& c = ranks[0].calls[i];
  ImportedOp o;
  const auto skip = [&](const std::string& why) {
    out.left_out.push_back(fmt::format("{} {}: {}", i, c.kind, why));
    return std::string();
  };
  const auto known =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) { return c.kind == k.torch; });
  if (known == std::end(kKinds)) return skip("no such collective here");
  o.op.kind = known->kind;
  if (o.op.kind == wccl::Kind::kBarrier) {
    out.ops.push_back(o);
    return {};
  }
  if (!type_from(c.type, o.op.type)) return skip("type " + (c.type.empty() ? "unknown" : c.type));
  for (const RankTrace& t : ranks)
    if (const Call& mine = t.calls[i]; !mine.bad.empty())
      return fmt::format("{}: node {}: inputs[0]: {}", t.file, mine.id, mine.bad);
  const bool same_count = o.op.kind != wccl::Kind::kAllToAllV;
  for (const RankTrace& t : ranks)
    if (same_count && t.calls[i].elements != c.elements)
      return fmt::format("{}: node {}: {} of {} elements, but {} has {} there", t.file, t.calls[i].id, c.kind,
                         t.calls[i].elements, ranks[0].file, c.elements);
  o.op.count = c.elements;
  switch (o.op.kind) {
    case wccl::Kind::kAllReduce: o.op.in_place = true; break;  // PyTorch's all_reduce is
    case wccl::Kind::kAllToAll:
    case wccl::Kind::kReduceScatter:
      for (const std::uint64_t piece : c.pieces)
        if (piece % n != 0)
          return fmt::format("{}: node {}: {} of {} elements among {} ranks", ranks[0].file, c.id, c.kind,
                             piece, n);
      o.op.count = c.elements / n;
      break;
    case wccl::Kind::kAllToAllV:
      o.op.count = 0;
      if (std::string why = import_splits(ranks, i, o.op); !why.empty()) return why;
      break;
    case wccl::Kind::kBroadcast:
      o.op.in_place = true;
      if (c.rank < 0 || static_cast<std::size_t>(c.rank) >= n)
        return fmt::format("{}: node {}: root {}, expected 0 to {}", ranks[0].file, c.id, c.rank, n - 1);
      for (const RankTrace& t : ranks)
        if (t.calls[i].rank != c.rank)
          return fmt::format("{}: node {}: root {}, but {} has {} there", t.file, t.calls[i].id,
                             t.calls[i].rank, ranks[0].file, c.rank);
      o.op.root = static_cast<int>(c.rank);
      break;
    case wccl::Kind::kAllGather:
    case wccl::Kind::kBarrier: break;
  }
  if (c.pieces.size() > 1) o.comment = fmt::format("{}: {} tensors sent as one", c.kind, c.pieces.size());
  if (std::string why = wccl::check(o.op, out.ranks); !why.empty()) return skip(why);
  out.ops.push_back(std::move(o));
  return {};
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
    ranks.push_back(t.take());
  }
  Imported out;
  out.ranks = static_cast<int>(n);
  out.waits = ranks[0].waits;
  for (const RankTrace& t : ranks) out.told_ranks = std::max(out.told_ranks, t.told_ranks);
  keep_common(ranks, out.left_out);
  if (std::string why = sort_by_rank(ranks); !why.empty()) return Status::error(why);
  for (const RankTrace& t : ranks)
    if (t.calls.size() != ranks[0].calls.size())
      return Status::error(fmt::format("{}: {} collectives, but {} has {}", t.file, t.calls.size(),
                                       ranks[0].file, ranks[0].calls.size()));
  for (std::size_t i = 0; i < ranks[0].calls.size(); ++i) {
    const Call& c = ranks[0].calls[i];
    for (std::size_t r = 1; r < n; ++r)
      if (ranks[r].calls[i].kind != c.kind || ranks[r].calls[i].type != c.type)
        return Status::error(fmt::format("{}: node {}: {} of {}, but {} has {} of {} there", ranks[r].file,
                                         ranks[r].calls[i].id, ranks[r].calls[i].kind, ranks[r].calls[i].type,
                                         ranks[0].file, c.kind, c.type));
    if (std::string why = import_call(ranks, i, out); !why.empty()) return Status::error(why);
  }
  if (out.ops.empty())
    return Status::error(fmt::format("{}: nothing that a workload holds among its collectives; left out: {}",
                                     ranks[0].file, out.left_out[0]));
  return out;
}

std::string to_toml(const Imported& trace, const std::string& name, const std::string& source) {
  std::string s = "# Sizes and counts only.\n";
  if (!source.empty()) s += fmt::format("# From {}\n", source);
  s += fmt::format("name = \"{}\"\nranks = {}\n", name, trace.ranks);
  if (trace.told_ranks != 0 && trace.told_ranks != trace.ranks)
    s += fmt::format("# the traces tell of {} ranks\n", trace.told_ranks);
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
    if (o.op.root != 0) s += fmt::format("root = {}\n", o.op.root);
    if (o.op.in_place) s += "in_place = true\n";
  }
  return s;
}

int trace_command(int argc, char** argv) {
  CLI::App app{"Makes workload files out of recorded traces."};
  app.name("weft trace");
  app.require_subcommand(1);
  CLI::App* import = app.add_subcommand("import", "PyTorch execution traces, one a rank, to a workload file");
  std::vector<std::string> files;
  std::string output, name = "imported", source;
  import->add_option("traces", files, "JSON files, one of each rank")->required();
  import->add_option("-o,--output", output, "workload file to write (TOML)")->required();
  import->add_option("--name", name, "name of the workload")->capture_default_str();
  import->add_option("--source", source, "where the traces come from, for the file's head");
  if (const int end = parse(app, "weft trace", argc, argv); end >= 0) return end;
  const auto bad_input = [](const std::string& text) { return refuse("weft trace import", text); };
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
