// SPDX-License-Identifier: Apache-2.0
#include "tb/app/workload.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "tb/sim/toml_file.h"

namespace weft::tb {
namespace {

template <class Enum, class All>
bool parse(TomlTable& t, const char* key, Enum& value, const All& all) {
  std::string text;
  if (!t.text(key, text)) return false;
  std::string names;
  for (Enum e : all) {
    if (text == wccl::name(e)) {
      value = e;
      return true;
    }
    names += (names.empty() ? "" : ", ") + std::string(wccl::name(e));
  }
  t.error(key, "one of " + names);
  return false;
}

constexpr wccl::Kind kKinds[] = {wccl::Kind::kAllReduce, wccl::Kind::kReduceScatter, wccl::Kind::kAllGather,
                                 wccl::Kind::kAllToAll,  wccl::Kind::kAllToAllV,     wccl::Kind::kBroadcast,
                                 wccl::Kind::kBarrier};
constexpr wccl::Algo kAlgos[] = {wccl::Algo::kAuto, wccl::Algo::kDirect, wccl::Algo::kRing};

constexpr int64_t kMaxCount = int64_t{1} << 40;  // elements; whether memory holds them is looked at later

// A key that means nothing for the kind is a mistake of the user's, whatever its value.
void refuse_inapplicable(TomlTable& t, wccl::Kind kind) {
  using enum wccl::Kind;
  const struct {
    const char* key;
    std::initializer_list<wccl::Kind> kinds;
  } keys[] = {{"type", {kAllReduce, kReduceScatter, kAllGather, kAllToAll, kAllToAllV, kBroadcast}},
              {"redop", {kAllReduce, kReduceScatter}},
              {"scalar", {kAllReduce, kReduceScatter}},
              {"count", {kAllReduce, kReduceScatter, kAllGather, kAllToAll, kBroadcast}},
              {"send_counts", {kAllToAllV}},
              {"root", {kBroadcast}},
              {"in_place", {kAllReduce, kReduceScatter, kAllGather, kBroadcast}},
              {"algo", {kAllReduce}}};
  for (const auto& k : keys)
    if (t.has(k.key) && std::find(k.kinds.begin(), k.kinds.end(), kind) == k.kinds.end())
      t.refuse(k.key, fmt::format("the key means nothing for {}", wccl::name(kind)));
}

// The factor of a premul_sum, a whole number that the type holds for integers.
void read_scalar(TomlTable& t, wccl::Op& op) {
  constexpr double kMost = 1e30;
  const bool wants = op.redop == wccl::RedOp::kPremulSum;
  if (!wants && t.has("scalar")) {
    t.refuse("scalar", "the key means nothing without redop = \"premul_sum\"");
    return;
  }
  if (!wants) return;
  if (!t.has("scalar")) t.error("scalar", "the factor of premul_sum");
  double x = 1;
  if (!t.number("scalar", x, -kMost, kMost)) return;
  if (std::string expected = wccl::check_scalar(op.type, x); !expected.empty())
    t.error("scalar", expected);
  else
    op.scalar = wccl::scalar_bits(op.type, x);
}

// What wccl::check() says, "key: what is there, expected ...", as a message about the file: that names key
// and value itself.
void refuse(TomlTable& t, const wccl::Op& op, const std::string& why) {
  const size_t colon = why.find(": ");
  std::string key = why.substr(0, colon);
  if (key == "count" && op.kind == wccl::Kind::kAllToAllV) key = "send_counts";  // that holds them there
  const std::string_view mark = ", expected ";
  const size_t at = why.rfind(mark);
  std::string expected = why.substr(at == std::string::npos ? colon + 2 : at + mark.size());
  if (key == "type" && expected.find(" for ") == std::string::npos)
    expected += fmt::format(" for {}", wccl::name(op.kind));
  if (key.starts_with("send_counts") && expected.starts_with("one for"))  // a list too long to be shown
    expected += ", not " + why.substr(colon + 2, at - colon - 2);
  t.error(key.c_str(), expected);
}

}  // namespace

Result<Workload> load_workload(const std::string& path) {
  using wccl::Kind;
  auto file = TomlFile::read(path);
  if (!file.ok()) return Status::error(file.error());
  TomlTable root = file.value().root();
  Workload w;
  w.file = path;
  root.text("name", w.name);
  if (!root.has("ranks")) root.error("ranks", fmt::format("an integer from 1 to {}", wccl::kMaxRanks));
  root.integer("ranks", w.ranks, 1, wccl::kMaxRanks);
  for (TomlTable& t : root.tables("op")) {
    WorkloadOp o;
    if (!t.has("kind")) t.error("kind", "the collective's name");
    parse(t, "kind", o.op.kind, kKinds);
    if (o.op.kind != Kind::kBarrier && !t.has("type")) t.error("type", "the elements' type");
    parse(t, "type", o.op.type, wccl::all_types());
    parse(t, "redop", o.op.redop, wccl::all_redops());
    parse(t, "algo", o.op.algo, kAlgos);
    read_scalar(t, o.op);
    int64_t count = 0;
    const bool counted = o.op.kind != Kind::kBarrier && o.op.kind != Kind::kAllToAllV;
    if (counted && !t.has("count")) t.error("count", "elements");
    t.integer("count", count, 0, kMaxCount, "elements, 0 to 2^40");
    o.op.count = static_cast<uint64_t>(count);
    t.integer("root", o.op.root, 0, wccl::kMaxRanks - 1);
    t.boolean("in_place", o.op.in_place);
    std::vector<std::vector<int64_t>> rows;
    t.matrix("send_counts", rows, 0, kMaxCount, "elements, 0 to 2^40");
    for (const auto& row : rows) o.op.send_counts.emplace_back(row.begin(), row.end());
    t.integer("repeat", o.repeat, 1, 100'000);
    t.number("gap_us", o.gap_us, 0, 1e6);
    if (t.has("kind")) refuse_inapplicable(t, o.op.kind);
    if (std::string why = wccl::check(o.op, w.ranks); !why.empty() && w.ranks != 0) refuse(t, o.op, why);
    w.ops.push_back(std::move(o));
  }
  if (Status s = file.value().done(); !s.ok()) return s;
  if (w.ops.empty()) return Status::error(path + ": op: none, expected at least one [[op]]");
  return w;
}

}  // namespace weft::tb
