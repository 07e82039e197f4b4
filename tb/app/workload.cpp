// SPDX-License-Identifier: Apache-2.0
#include "tb/app/workload.h"

#include <fmt/format.h>

#include "tb/sim/toml_file.h"

namespace weft::tb {
namespace {

template <class Enum>
bool parse(TomlTable& t, const char* key, Enum& value, std::initializer_list<Enum> all) {
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

constexpr int64_t kMaxCount = int64_t{1} << 40;  // elements; whether memory holds them is looked at later

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
    parse(t, "kind", o.op.kind,
          {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kAllToAll, Kind::kAllToAllV,
           Kind::kBroadcast, Kind::kBarrier});
    if (o.op.kind != Kind::kBarrier && !t.has("type")) t.error("type", "the elements' type");
    parse(t, "type", o.op.type,
          {wccl::Type::kFloat32, wccl::Type::kBfloat16, wccl::Type::kInt32, wccl::Type::kInt64});
    parse(t, "redop", o.op.redop, {wccl::RedOp::kSum, wccl::RedOp::kMax, wccl::RedOp::kMin});
    parse(t, "algo", o.op.algo, {wccl::Algo::kAuto, wccl::Algo::kDirect, wccl::Algo::kRing});
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
    if (std::string why = wccl::check(o.op, w.ranks); !why.empty() && w.ranks != 0) {
      const auto colon = why.find_first_of("[:");
      t.error(why.substr(0, colon).c_str(), why);
    }
    w.ops.push_back(std::move(o));
  }
  if (Status s = file.value().done(); !s.ok()) return s;
  if (w.ops.empty()) return Status::error(path + ": op: none, expected at least one [[op]]");
  return w;
}

}  // namespace weft::tb
