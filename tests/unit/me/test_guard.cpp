// SPDX-License-Identifier: Apache-2.0
//
// Entries that somebody rewrites after CPU-M has seen them: no byte outside of the regions is read or
// written (the bench complains of any request that would), and nothing hangs.
#include "engine.h"

using namespace me;
using weft::test::Profile;
using weft::test::Rng;

namespace {

constexpr uint64_t kReadEnd = kReadBase + kRegionBytes, kWriteEnd = kWriteBase + kRegionBytes;

std::string status_of(const Cqe& cqe) {
  return weft::wire::name(cqe.status);
}

Wqe reduce_of(Dtype from, Dtype to, uint8_t sources, uint32_t length) {
  Wqe w = reduce(0, 3);
  w.dtype = from;
  w.to = to;
  w.redop = Redop::SUM;
  w.nsrc = sources;
  w.own = 0;
  w.length = length;
  w.stride = 0;
  w.src0 = kReadBase;
  w.src1 = kReadBase;
  return w;
}

struct Case {
  const char* what;
  std::function<void(Wqe&)> change;
  const char* status;
};

// Each field of each kind of entry that says which bytes are touched, on both sides of the edge. The dst of
// entry 3's REDUCE tells the bench which entry it is, so those that pass keep it.
std::vector<Case> cases() {
  return {
      {"WRITE: before the region", [](Wqe& w) { w.src0 = kReadBase - 1; }, "BAD_ADDR"},
      {"WRITE: nowhere", [](Wqe& w) { w.src0 = 0; }, "BAD_ADDR"},
      {"WRITE: up to the end", [](Wqe& w) { w.src0 = kReadEnd - w.length; }, "OK"},
      {"WRITE: past the end", [](Wqe& w) { w.src0 = kReadEnd - w.length + 1; }, "BAD_ADDR"},
      {"WRITE: of what may only be written", [](Wqe& w) { w.src0 = kWriteBase + 64; }, "BAD_ADDR"},
      {"WRITE: around the end of addresses", [](Wqe& w) { w.src0 = ~uint64_t{0}; }, "BAD_ADDR"},
      {"WRITE: longer than the region", [](Wqe& w) { w.src0 = kBothBase, w.length = kBothBytes + 1; },
       "BAD_ADDR"},
      {"WRITE: as long as the region", [](Wqe& w) { w.src0 = kBothBase, w.length = kBothBytes; }, "OK"},
      {"WRITE: of two regions", [](Wqe& w) { w.src0 = kReadEnd - 4, w.length = 8; }, "BAD_ADDR"},
      {"WRITE: of nothing, anywhere", [](Wqe& w) { w.src0 = 0, w.length = 0; }, "OK"},
      {"REDUCE: src0", [](Wqe& w) { w = reduce(0, 3), w.src0 = kReadBase - 4; }, "BAD_ADDR"},
      {"REDUCE: src0 past the end", [](Wqe& w) { w = reduce(0, 3), w.src0 = kReadEnd - w.length + 4; },
       "BAD_ADDR"},
      {"REDUCE: src0 up to the end", [](Wqe& w) { w = reduce(0, 3), w.src0 = kReadEnd - w.length; }, "OK"},
      {"REDUCE: src0 may not be read", [](Wqe& w) { w = reduce(0, 3), w.src0 = kWriteBase; }, "BAD_ADDR"},
      {"REDUCE: src1", [](Wqe& w) { w = reduce(0, 3), w.src1 = 0x1000; }, "BAD_ADDR"},
      {"REDUCE: src1 unused",
       [](Wqe& w) { w = reduce(0, 3), w.redop = Redop::COPY, w.nsrc = 1, w.src1 = 0x1000; }, "OK"},
      {"REDUCE: src1 past the end", [](Wqe& w) { w = reduce(0, 3), w.src1 = kReadEnd - w.length + 4; },
       "BAD_ADDR"},
      {"REDUCE: stride", [](Wqe& w) { w = reduce(0, 3), w.src1 = kReadBase, w.stride = 0xfffffffc; },
       "BAD_ADDR"},
      {"REDUCE: stride up to the end",
       [](Wqe& w) { w = reduce(0, 3), w.src1 = kReadBase, w.stride = static_cast<uint32_t>(0u - w.length); },
       "OK"},
      {"REDUCE: more sources",
       [](Wqe& w) { w = reduce(0, 3), w.src1 = kReadBase, w.stride = 0x8000'0000, w.nsrc = 4; }, "BAD_ADDR"},
      {"REDUCE: 64 sources up to the end",
       [](Wqe& w) {
         w = reduce(0, 3), w.stride = 0x100'0000, w.nsrc = 64;
         w.src1 = kReadEnd - w.length - 63 * uint64_t{0x100'0000};
       },
       "OK"},
      {"REDUCE: 64 sources past the end",
       [](Wqe& w) {
         w = reduce(0, 3), w.stride = 0x100'0000, w.nsrc = 64;
         w.src1 = kReadEnd - w.length - 63 * uint64_t{0x100'0000} + 4;
       },
       "BAD_ADDR"},
      {"REDUCE: dst", [](Wqe& w) { w = reduce(0, 3), w.dst = kWriteBase - 4; }, "BAD_ADDR"},
      {"REDUCE: dst may not be written", [](Wqe& w) { w = reduce(0, 3), w.dst = kReadBase; }, "BAD_ADDR"},
      {"REDUCE: dst past the end", [](Wqe& w) { w = reduce(0, 3), w.dst = kWriteEnd - w.length + 4; },
       "BAD_ADDR"},
      {"REDUCE: length", [](Wqe& w) { w = reduce(0, 3), w.src0 = kReadEnd - 64, w.length = 68; }, "BAD_ADDR"},
      {"REDUCE: wider sources",
       [](Wqe& w) { w = reduce_of(Dtype::FLOAT32, Dtype::BFLOAT16, 2, 64), w.src0 = kReadEnd - 124; },
       "BAD_ADDR"},
      {"REDUCE: wider sources up to the end",
       [](Wqe& w) { w = reduce_of(Dtype::FLOAT32, Dtype::BFLOAT16, 2, 64), w.src0 = kReadEnd - 128; }, "OK"},
      {"REDUCE: narrower sources up to the end",
       [](Wqe& w) { w = reduce_of(Dtype::BFLOAT16, Dtype::FLOAT32, 2, 64), w.src0 = kReadEnd - 32; }, "OK"},
      {"REDUCE: blocks and their scales up to the end",
       [](Wqe& w) {
         w = reduce_of(Dtype::MXFP8_E4M3, Dtype::FLOAT32, 2, 128 * 32);
         w.src0 = w.src1 = kReadEnd - 32 * 33;
       },
       "OK"},
      {"REDUCE: the last scale past the end",
       [](Wqe& w) {
         w = reduce_of(Dtype::MXFP8_E4M3, Dtype::FLOAT32, 2, 128 * 32);
         w.src0 = kReadEnd - 32 * 33 + 1;
       },
       "BAD_ADDR"},
      {"REDUCE: half bytes and their scales up to the end",
       [](Wqe& w) {
         w = reduce_of(Dtype::MXFP4_E2M1, Dtype::FLOAT32, 2, 128 * 32);
         w.src0 = w.src1 = kReadEnd - 32 * 17;
       },
       "OK"},
      {"REDUCE: the last scale of half bytes past the end",
       [](Wqe& w) {
         w = reduce_of(Dtype::MXFP4_E2M1, Dtype::FLOAT32, 2, 128 * 32);
         w.src1 = kReadEnd - 32 * 17 + 1;
       },
       "BAD_ADDR"},
  };
}

Graph writes(uint32_t n) {
  Graph g;
  for (uint32_t i = 0; i < n; ++i) g.push_back(write(0, i));
  return g;
}

}  // namespace

TEST_CASE("guard: an entry that was changed after its registration touches no byte outside of regions",
          "[me][guard]") {
  Engine e;
  e.set_up();
  const Graph g = writes(8);
  e.add_good(0, g);
  for (const Case& c : cases()) {
    CAPTURE(c.what);
    e.runs[0].graph = g;
    c.change(e.runs[0].graph[3]);
    e.runs[0].graph[3].pack(e.line(Engine::address_of(0) + 3 * 64).data());
    const Cqe cqe = e.wait(e.launch(0));
    CHECK(status_of(cqe) == c.status);
    CHECK(cqe.entry == (cqe.status == Err::OK ? 8U : 3U));
  }
}

TEST_CASE("guard: an entry that is changed while its subgraph runs touches none either", "[me][guard]") {
  // Far more entries than are read ahead; one is changed when the first has been issued.
  constexpr uint32_t kEntries = 400, kVictim = 390;
  Options options;
  options.memory = {40, 90};
  Engine e(options);
  e.set_up();
  const Graph g = writes(kEntries);
  e.add_good(0, g);
  for (const Case& c : cases()) {
    CAPTURE(c.what);
    e.runs[0].graph = g;
    g[kVictim].pack(e.line(Engine::address_of(0) + kVictim * 64).data());
    const uint64_t cookie = e.launch(0);
    while (e.runs[0].issued.empty() || !e.runs[0].issued[0]) e.step();
    Wqe& victim = e.runs[0].graph[kVictim];
    c.change(victim);
    if (victim.opcode == WqeOp::REDUCE && std::string(c.status) == "OK")
      victim.dst = kWriteBase + uint64_t{16} * id_of(0, kVictim);
    victim.rkey = id_of(0, kVictim);
    victim.pack(e.line(Engine::address_of(0) + kVictim * 64).data());
    const Cqe cqe = e.wait(cookie);
    CHECK(status_of(cqe) == c.status);
    CHECK(cqe.entry == (cqe.status == Err::OK ? kEntries : kVictim));
  }
}

TEST_CASE("guard: random bits of random entries, under all stalls", "[me][guard][random]") {
  Rng rng(weft::test::seed(), 41);
  constexpr uint32_t kEntries = 60;
  for (Profile profile : {Profile::None, Profile::Half}) {
    Options options;
    options.stall = profile;
    Engine e(options);
    e.set_up();
    Graph g;
    for (uint32_t i = 0; i < kEntries; ++i) g.push_back(i % 2 != 0 ? reduce(0, i) : write(0, i));
    e.add_good(0, g);
    unsigned refused = 0;
    for (int round = 0; round < 120; ++round) {
      Graph& now = e.runs[0].graph;
      now = g;
      for (uint64_t k = 1 + rng.below(2); k > 0; --k) {
        Wqe& w = now[rng.below(kEntries)];
        uint64_t* const fields[] = {&w.src0, &w.src1};
        switch (rng.below(6)) {
          case 0:
          case 1: *fields[rng.below(2)] ^= uint64_t{1} << rng.below(64); break;
          case 2: w.length ^= 1u << rng.below(32); break;
          case 3: w.stride ^= 1u << rng.below(32); break;
          case 4: w.nsrc = static_cast<uint8_t>(w.nsrc ^ 1u << rng.below(8)); break;
          // The low bits of dst tell the bench which entry it is.
          default: w.dst ^= uint64_t{1} << (36 + rng.below(28)); break;
        }
      }
      for (uint32_t i = 0; i < kEntries; ++i) now[i].pack(e.line(Engine::address_of(0) + i * 64).data());
      refused += e.wait(e.launch(0)).status != Err::OK;
    }
    CHECK(refused > 20);
    CHECK(refused < 120);
  }
}

TEST_CASE("guard: regions are those of the moment an entry enters, wherever in the table", "[me][guard]") {
  Engine e;
  e.set_up();
  const Graph g = writes(8);
  e.add_good(0, g);
  weft::cfg::Region region;
  for (unsigned at : {63U, 5U, 62U, 0U}) {
    CAPTURE(at);
    region = {};
    e.configure(weft::cfg::Table::kRegion, 0, region.words());  // taken away, as no driver would
    e.steps(100);
    Cqe cqe = e.wait(e.launch(0));
    CHECK(status_of(cqe) == "BAD_ADDR");
    CHECK(cqe.entry == 0);
    region.valid = region.local_read = true;
    region.base = kReadBase;
    region.limit = kReadBase + kRegionBytes;
    e.configure(weft::cfg::Table::kRegion, at, region.words());
    e.steps(100);
    CHECK(status_of(e.wait(e.launch(0))) == "OK");
    region.valid = false;
    e.configure(weft::cfg::Table::kRegion, at, region.words());
    e.steps(100);
    CHECK(status_of(e.wait(e.launch(0))) == "BAD_ADDR");
  }
}
