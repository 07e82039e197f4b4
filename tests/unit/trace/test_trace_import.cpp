// SPDX-License-Identifier: Apache-2.0
// The importer on small traces written here: what it makes of them, and how it refuses what is not one
// sequence of collectives. What it writes must be read back by the simulator's own reader as the same
// operations.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "sw/tools/trace_import.h"
#include "tb/app/workload.h"
#include "weft_test.h"

using nlohmann::json;
using weft::tools::import_pytorch;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "weft_traceXXXXXX";
    if (mkdtemp(name.data()) == nullptr) FAIL("no temporary folder");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  // One file a rank; ranks[r] is the list of nodes of rank r.
  // Collectives but broadcasts get the rank, as each names it.
  std::vector<std::string> traces(std::vector<std::vector<json>> ranks) const {
    std::vector<std::string> files;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      for (json& node : ranks[r])
        if (node["name"] == "record_param_comms" && node["inputs"][4] != "broadcast") node["inputs"][3] = r;
      files.push_back(
          write("rank" + std::to_string(r) + ".json", json{{"schema", "1.0.1"}, {"nodes", ranks[r]}}.dump()));
    }
    return files;
  }

 private:
  fs::path path_;
};

json tensor(std::uint64_t elements) {
  return {7, 8, 0, elements, 4, "cuda:0"};
}

// As PyTorch writes a collective: tensor, sequence number, process group, rank, kind, splits in, splits out.
json call(const std::string& kind, std::uint64_t elements, const std::string& type = "float",
          const json& send = json::array(), const json& recv = json::array()) {
  return {{"name", "record_param_comms"},
          {"id", 41},
          {"inputs", {tensor(elements), 0, json::array({"0", ""}), 0, kind, send, recv, 0, 1, 2}},
          {"input_types", {"Tensor(" + type + ")", "Int"}},
          {"outputs", {tensor(elements)}}};
}

std::string error_of(const std::vector<std::string>& files) {
  const auto r = import_pytorch(files);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().find('\n') == std::string::npos);
  return r.error();
}

}  // namespace

TEST_CASE("trace_import: the workload that is written is read back as the same operations",
          "[trace_import][smoke]") {
  const Folder folder;
  std::vector<std::vector<json>> ranks;
  for (int r = 0; r < 2; ++r) {
    const json send = r == 0 ? json{10, 20} : json{0, 4097}, recv = r == 0 ? json{10, 0} : json{20, 4097};
    ranks.push_back({json{{"name", "aten::mm"}, {"id", 1}, {"inputs", {1}}},  // no collective: not looked at
                     call("all_to_allv", r == 0 ? 30 : 4097, "int", send, recv),  // uneven, with a zero
                     call("all_to_allv", 8, "float", {4, 4}, {4, 4}),             // even
                     call("wait", 0), call("all_to_all", 6, "long int"), call("allreduce", 394241),
                     call("_allgather_base", 5, "c10::BFloat16"), call("_reduce_scatter_base", 14),
                     call("broadcast", 9), call("barrier", 0)});
  }
  const auto trace = import_pytorch(folder.traces(ranks));
  REQUIRE(trace.ok());
  CHECK(trace.value().ranks == 2);
  CHECK(trace.value().waits == 1);
  CHECK(trace.value().left_out.empty());
  REQUIRE(trace.value().ops.size() == 8);

  const auto back =
      weft::tb::load_workload(folder.write("w.toml", to_toml(trace.value(), "two ranks", "this test")));
  REQUIRE(back.ok());
  CHECK(back.value().name == "two ranks");
  CHECK(back.value().ranks == 2);
  REQUIRE(back.value().ops.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    INFO("operation " << i);
    const wccl::Op &want = trace.value().ops[i].op, &got = back.value().ops[i].op;
    CHECK(got.kind == want.kind);
    if (want.kind != wccl::Kind::kBarrier) CHECK(got.type == want.type);
    CHECK(got.count == want.count);
    CHECK(got.in_place == want.in_place);
    CHECK(got.send_counts == want.send_counts);
  }
  const auto& ops = back.value().ops;
  CHECK(ops[0].op.send_counts == std::vector<std::vector<std::uint64_t>>{{10, 20}, {0, 4097}});
  CHECK(ops[0].op.type == wccl::Type::kInt32);
  CHECK(ops[2].op.type == wccl::Type::kInt64);
  CHECK(ops[2].op.count == 3);  // to each rank
  CHECK(ops[3].op.count == 394241);
  CHECK(ops[3].op.in_place);
  CHECK(ops[4].op.type == wccl::Type::kBfloat16);
  CHECK(ops[4].op.count == 5);  // sent
  CHECK(ops[5].op.count == 7);  // received
}

TEST_CASE("trace_import: splits that sender and receiver tell differently are refused", "[trace_import]") {
  const Folder folder;
  const auto files = folder.traces({{call("all_to_allv", 30, "float", {10, 20}, {10, 5})},
                                    {call("all_to_allv", 9, "float", {5, 4}, {21, 4})}});
  const std::string why = error_of(files);
  CHECK(why == files[0] + ": node 41: sends 20 rows to rank 1, which expects 21");
}

TEST_CASE("trace_import: splits that do not fit the number of ranks are refused", "[trace_import]") {
  const Folder folder;
  const auto files = folder.traces({{call("all_to_allv", 3, "float", {1, 1, 1}, {1, 1, 1})},
                                    {call("all_to_allv", 2, "float", {1, 1}, {1, 1})}});
  CHECK(error_of(files) == files[0] + ": node 41: 3 and 3 splits, expected 2 of each");
  // A split that is no count must not shift the others.
  const auto odd = folder.traces({{call("all_to_allv", 3, "float", {1, -1, 1}, {1, 1})},
                                  {call("all_to_allv", 2, "float", {1, 1}, {1, 1})}});
  CHECK(error_of(odd).find(odd[0] + ": node 41: ") == 0);
  // The splits are rows of the tensor that is sent.
  const auto more = folder.traces(
      {{call("all_to_allv", 3, "float", {1, 1}, {1, 1})}, {call("all_to_allv", 2, "float", {1, 1}, {1, 1})}});
  CHECK(error_of(more) == more[0] + ": node 41: splits of 2 rows in all, but a tensor of 3 elements");
}

TEST_CASE("trace_import: splits count rows, a workload elements", "[trace_import]") {
  const Folder folder;
  const auto trace = import_pytorch(folder.traces({{call("all_to_allv", 12, "float", {1, 2}, {1, 0})},
                                                   {call("all_to_allv", 4, "float", {0, 1}, {2, 1})}}));
  REQUIRE(trace.ok());
  CHECK(trace.value().ops.at(0).op.send_counts == std::vector<std::vector<std::uint64_t>>{{4, 8}, {0, 4}});
  const auto files = folder.traces({{call("all_to_allv", 12, "float", {1, 2}, {1, 0})},
                                    {call("all_to_allv", 5, "float", {0, 1}, {2, 1})}});
  CHECK(error_of(files) == files[1] + ": node 41: rows of 5 elements, but of 4 at another rank");
}

TEST_CASE("trace_import: ranks that do not call the same collectives are refused", "[trace_import]") {
  const Folder folder;
  const json a = call("allreduce", 8), b = call("broadcast", 8);
  auto files = folder.traces({{a, b}, {b, a}});
  CHECK(error_of(files) ==
        files[1] + ": node 41: broadcast of float, but " + files[0] + " has allreduce of float there");
  files = folder.traces({{a, b}, {a}});
  CHECK(error_of(files) == files[1] + ": 1 collectives, but " + files[0] + " has 2");
  files = folder.traces({{a}, {call("allreduce", 8, "int")}});
  CHECK(error_of(files).find("allreduce of int") != std::string::npos);
  files = folder.traces({{a}, {call("allreduce", 9)}});
  CHECK(error_of(files) == files[1] + ": node 41: allreduce of 9 elements, but " + files[0] + " has 8 there");
  files = folder.traces({{call("all_to_all", 7)}, {call("all_to_all", 7)}});
  CHECK(error_of(files) == files[0] + ": node 41: all_to_all of 7 elements among 2 ranks");
  files = folder.traces({{call("reduce_scatter", 7)}, {call("reduce_scatter", 7)}});
  CHECK(error_of(files) == files[0] + ": node 41: reduce_scatter of 7 elements among 2 ranks");
}

TEST_CASE("trace_import: what a workload cannot hold is left out and told", "[trace_import]") {
  const Folder folder;
  const std::vector<json> calls = {call("allreduce", 8, "c10::complex<float>"), call("send", 8),
                                   call("allreduce", 8, "long int"), call("allreduce", 8, "c10::Half")};
  const auto trace = import_pytorch(folder.traces({calls, calls}));
  REQUIRE(trace.ok());
  REQUIRE(trace.value().ops.size() == 2);
  CHECK(trace.value().ops[0].op.type == wccl::Type::kInt64);
  CHECK(trace.value().ops[1].op.type == wccl::Type::kFloat16);
  REQUIRE(trace.value().left_out.size() == 2);
  CHECK(trace.value().left_out[0] ==
        "send (2 calls of all ranks): moves data between two ranks, which no workload does");
  CHECK(trace.value().left_out[1] == "0 allreduce: type c10::complex<float>");
  const std::string toml = to_toml(trace.value(), "x", "");
  CHECK(toml.find("# left out: collective 0 allreduce: type c10::complex<float>") != std::string::npos);
}

TEST_CASE("trace_import: what is no trace is refused with its file", "[trace_import]") {
  const Folder folder;
  const std::string whole = json{{"nodes", json::array({call("allreduce", 8)})}}.dump();
  const struct {
    const char *text, *why;
  } cases[] = {{"", "no JSON"},
               {"not json", "no JSON"},
               {"[]", "nodes: absent"},
               {"{\"nodes\": 3}", "nodes: absent"},
               {"{\"nodes\": []}", "no collective"},
               {"{\"nodes\": [{\"name\": \"record_param_comms\", \"inputs\": {\"a\": 1}}]}", "inputs"},
               {"{\"nodes\": [{\"name\": \"record_param_comms\", \"inputs\": \"x\"}]}", "inputs"},
               {"{\"nodes\": [{\"name\": \"record_param_comms\", \"id\": 5}]}", "node 5: inputs"}};
  for (const auto& c : cases) {
    const std::string file = folder.write("x.json", c.text), why = error_of({file});
    INFO(c.text << " -> " << why);
    CHECK(why.find(file + ": ") == 0);
    CHECK(why.find(c.why) != std::string::npos);
  }
  for (std::size_t cut : {whole.size() / 3, whole.size() - 1}) {
    const std::string file = folder.write("cut.json", whole.substr(0, cut));
    CHECK(error_of({file}).find(file + ": no JSON") == 0);
  }
  CHECK(error_of({"/no/such.json"}).find("/no/such.json: cannot be") == 0);
  CHECK(error_of({fs::temp_directory_path().string()}).find(fs::temp_directory_path().string()) == 0);
  // A tensor nested without end takes no stack.
  const std::string deep = "{\"nodes\":[{\"name\":\"record_param_comms\",\"inputs\":[" +
                           std::string(200'000, '[') + std::string(200'000, ']') + ",\"allreduce\"]}]}";
  (void)import_pytorch({folder.write("deep.json", deep)});
}

TEST_CASE("trace_import: the number of traces is that of ranks a communicator can have", "[trace_import]") {
  CHECK(error_of({}) == "traces: 0 files, expected one a rank, 1 to 16");
  CHECK(error_of(std::vector<std::string>(17, "x")).find("17 files") != std::string::npos);
}

namespace {

// As schema 1.0.2 and later write it.
json nested(json call) {
  call["inputs"] = {{"values", call["inputs"]}, {"shapes", json::array()}, {"types", call["input_types"]}};
  call.erase("input_types");
  return call;
}
json with_group(json call, const char* name, const char* what, unsigned rank) {
  call["inputs"][2] = {name, what};
  call["inputs"][3] = rank;
  return call;
}

}  // namespace

TEST_CASE("trace_import: inputs with their shapes and types in one object are read the same",
          "[trace_import]") {
  const Folder folder;
  std::vector<std::string> files;
  for (unsigned r = 0; r < 2; ++r) {
    json node = nested(with_group(call("allreduce", 100), "0", "default_pg", r));
    node["attrs"] = {{{"name", "group_size"}, {"type", "uint64"}, {"value", 4}}};
    files.push_back(folder.write("n" + std::to_string(r) + ".json",
                                 json{{"schema", "1.1.1-chakra.0.0.4"}, {"nodes", {node}}}.dump()));
  }
  const auto trace = import_pytorch(files);
  REQUIRE(trace.ok());
  REQUIRE(trace.value().ops.size() == 1);
  CHECK(trace.value().ops[0].op.count == 100);
  CHECK(trace.value().ops[0].op.type == wccl::Type::kFloat32);
  CHECK(to_toml(trace.value(), "x", "").find("# the traces tell of 4 ranks") != std::string::npos);
  json odd = nested(call("allreduce", 100));
  odd["inputs"].erase("values");
  CHECK(error_of({folder.write("odd.json", json{{"nodes", {odd}}}.dump())})
            .find("node 41: inputs.values: absent") != std::string::npos);
}

TEST_CASE("trace_import: collectives of groups are left out and told, never made larger ones",
          "[trace_import]") {
  const Folder folder;
  std::vector<std::vector<json>> ranks;
  std::vector<std::string> files;
  for (unsigned r = 0; r < 4; ++r) {
    const std::vector<json> calls = {with_group(call("allreduce", 1000), r < 2 ? "1" : "2", "tp", r % 2),
                                     with_group(call("allreduce", 7), "0", "default_pg", r)};
    files.push_back(folder.write("g" + std::to_string(r) + ".json", json{{"nodes", calls}}.dump()));
    ranks.push_back({calls[0]});
  }
  const auto trace = import_pytorch(files);
  REQUIRE(trace.ok());
  REQUIRE(trace.value().ops.size() == 1);
  CHECK(trace.value().ops[0].op.count == 7);
  REQUIRE(trace.value().left_out.size() == 2);
  CHECK(trace.value().left_out[0] ==
        "allreduce (2 calls of all ranks): group 1 (tp) is of 2 of the 4 traces (those given as 0, 1)");
  files.clear();
  for (unsigned r = 0; r < 4; ++r)
    files.push_back(folder.write("h" + std::to_string(r) + ".json", json{{"nodes", ranks[r]}}.dump()));
  CHECK(error_of(files).find("nothing that a workload holds") != std::string::npos);
  // Addresses of groups say nothing to another process; of one group they need not.
  json a = call("allreduce", 8), b = call("allreduce", 9);
  b["inputs"][2] = 93891384002768;
  a["inputs"][2] = 93891384002767;
  CHECK(import_pytorch(folder.traces({{a}, {b}})).ok() == false);  // 8 and 9 elements
  CHECK(error_of(folder.traces({{a, b}, {a, b}})).find("told by address") != std::string::npos);
}

TEST_CASE("trace_import: a broadcast comes from the root that the ranks tell", "[trace_import]") {
  const Folder folder;
  json b = call("broadcast", 64);
  b["inputs"][3] = 1;
  const auto trace = import_pytorch(folder.traces({{b}, {b}}));
  REQUIRE(trace.ok());
  CHECK(trace.value().ops.at(0).op.root == 1);
  const auto back = weft::tb::load_workload(folder.write("w.toml", to_toml(trace.value(), "x", "")));
  REQUIRE(back.ok());
  CHECK(back.value().ops.at(0).op.root == 1);
  json other = b;
  other["inputs"][3] = 0;
  auto files = folder.traces({{b}, {other}});
  CHECK(error_of(files) == files[1] + ": node 41: root 0, but " + files[0] + " has 1 there");
  b["inputs"][3] = 2;
  files = folder.traces({{b}, {b}});
  CHECK(error_of(files) == files[0] + ": node 41: root 2, expected 0 to 1");
}

TEST_CASE("trace_import: a count that is none is refused with node and field", "[trace_import]") {
  const Folder folder;
  for (const json& bad : {json(-64), json("64"), json(1e30), json(nullptr), json(std::uint64_t{1} << 41)}) {
    json node = call("allreduce", 8);
    node["inputs"][0][3] = bad;
    const auto files = folder.traces({{node}});
    INFO(bad);
    CHECK(error_of(files).find(files[0] + ": node 41: inputs[0]: a tensor of ") == 0);
  }
  for (const json& bad : {json::array({3, 4}), json::array(), json(7), json::array({json::array({3, 4})})}) {
    json node = call("allreduce", 8);
    node["inputs"][0] = bad;
    const auto files = folder.traces({{node}});
    INFO(bad);
    CHECK(error_of(files).find(files[0] + ": node 41: inputs[0]: ") == 0);
  }
}

TEST_CASE("trace_import: each trace is the rank that it names, in whatever order they come",
          "[trace_import]") {
  const Folder folder;
  auto files = folder.traces(
      {{call("all_to_allv", 3, "float", {1, 2}, {1, 0})}, {call("all_to_allv", 1, "float", {0, 1}, {2, 1})}});
  const auto straight = import_pytorch(files), turned = import_pytorch({files[1], files[0]});
  REQUIRE(straight.ok());
  REQUIRE(turned.ok());
  CHECK(to_toml(straight.value(), "x", "") == to_toml(turned.value(), "x", ""));
  CHECK(error_of({files[0], files[0]}) == files[0] + ": rank 0, which " + files[0] + " is already");
  CHECK(error_of({files[1]}) == files[1] + ": rank 1, expected 0 to 0: one trace of each rank");
  // Eleven ranks in the order of a shell's glob: 0 1 10 2 ...
  std::vector<std::vector<json>> many;
  for (unsigned r = 0; r < 11; ++r) many.push_back({call("allreduce", 8)});
  files = folder.traces(many);
  std::sort(files.begin(), files.end());
  CHECK(import_pytorch(files).ok());
}

TEST_CASE(
    "trace_import: lists of tensors are one operation of all their elements; every kind is imported or told",
    "[trace_import]") {
  const Folder folder;
  json two = call("allreduce_coalesced", 8);
  two["inputs"][0] = {tensor(8), tensor(3)};
  two["input_types"][0] = "GenericList[Tensor(float),Tensor(float)]";
  json mixed = two;
  mixed["input_types"][0] = "GenericList[Tensor(float),Tensor(c10::Half)]";
  const std::vector<json> calls = {two,
                                   mixed,
                                   call("allgather_into_tensor_coalesced", 6),
                                   call("reduce_scatter_tensor_coalesced", 6),
                                   call("allreduce", 6, "bool"),
                                   call("allreduce", 6, "unsigned char"),
                                   call("gather_object", 5)};
  const auto trace = import_pytorch(folder.traces({calls, calls}));
  REQUIRE(trace.ok());
  REQUIRE(trace.value().ops.size() == 4);
  CHECK(trace.value().ops[0].op.count == 11);
  CHECK(trace.value().ops[0].comment == "allreduce_coalesced: 2 tensors sent as one");
  CHECK(trace.value().ops[1].op.kind == wccl::Kind::kAllGather);
  CHECK(trace.value().ops[2].op.count == 3);
  CHECK(trace.value().ops[3].op.type == wccl::Type::kUint8);
  CHECK(trace.value().left_out == std::vector<std::string>{"1 allreduce_coalesced: type float and c10::Half",
                                                           "4 allreduce: type bool",
                                                           "6 gather_object: no such collective here"});
}
