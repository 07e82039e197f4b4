// SPDX-License-Identifier: Apache-2.0
//
// Figures the design promises, in clock cycles, and one that is only printed: simulation speed.
#include <ctime>

#include "engine.h"

using namespace me;

namespace {

double cycles_per_entry(uint64_t memory_latency, const std::function<Wqe(unsigned, uint32_t)>& entry,
                        unsigned subgraphs, uint64_t target_latency = 10) {
  Options options;
  options.memory = {memory_latency, memory_latency};
  options.tx = options.nmc = {target_latency, target_latency};
  Engine e(options);
  e.set_up();
  constexpr uint32_t kEntries = 600;
  for (unsigned s = 0; s < subgraphs; ++s) {
    Graph g;
    for (uint32_t i = 0; i < kEntries; ++i) g.push_back(entry(s, i));
    e.b.patience(1'000'000);
    e.add_good(s, g);
  }
  const uint64_t begin = e.cycle();
  std::vector<uint64_t> cookies;
  for (unsigned s = 0; s < subgraphs; ++s) cookies.push_back(e.launch(s));
  for (uint64_t cookie : cookies) REQUIRE(e.wait(cookie).status == Err::OK);
  return static_cast<double>(e.cycle() - begin) / kEntries / subgraphs;
}

}  // namespace

TEST_CASE("me: at least an entry every four cycles", "[me][speed]") {
  struct Case {
    const char* what;
    std::function<Wqe(unsigned, uint32_t)> entry;
  };
  const Case cases[] = {
      {"NOP", [](unsigned, uint32_t) { return nop(); }},
      {"SET", [](unsigned, uint32_t i) { return set(i % 7, 1); }},
      {"WRITE", [](unsigned s, uint32_t i) { return write(s, i, i % kConnsUsed); }},
      {"REDUCE", [](unsigned s, uint32_t i) { return reduce(s, i); }},
      {"mixed",
       [](unsigned s, uint32_t i) {
         return i % 3 == 0 ? write(s, i) : i % 3 == 1 ? reduce(s, i) : set(1, 1);
       }},
  };
  for (const Case& c : cases) {
    for (uint64_t latency : {40u, 400u}) {
      for (unsigned subgraphs : {1u, 4u}) {
        const double cycles = cycles_per_entry(latency, c.entry, subgraphs);
        std::printf("me: %-6s memory %3llu cycles, %u subgraph(s): %.2f cycles an entry\n", c.what,
                    static_cast<unsigned long long>(latency), subgraphs, cycles);
        CAPTURE(c.what, latency, subgraphs);
        // A REDUCE names up to three ranges, which are looked up one a cycle.
        CHECK(cycles <= (c.what == std::string("REDUCE") ? 4.1 : 4.0));
      }
    }
  }
}

TEST_CASE("me: a lone subgraph has the whole window for its transfers", "[me][speed]") {
  // 5 us to the peer and back: what is in the window is what is in flight.
  constexpr uint64_t kRoundTrip = 1600;
  const double cycles = cycles_per_entry(
      40, [](unsigned s, uint32_t i) { return write(s, i, i % kConnsUsed); }, 1, kRoundTrip);
  std::printf("me: WRITE of a lone subgraph, transport %llu cycles: %.1f cycles an entry, %.1f in flight\n",
              static_cast<unsigned long long>(kRoundTrip), cycles, kRoundTrip / cycles);
  CHECK(kRoundTrip / cycles > kWindow - 2);
}

TEST_CASE("me: dependency met to issue within eight cycles", "[me][speed]") {
  Options options;
  options.tx = options.nmc = {50, 50};
  Engine e(options);
  e.set_up();
  Graph g{reduce(0, 0), write(0, 1)};
  after(g[1], 0);
  e.add_good(0, g);
  const uint64_t cookie = e.launch(0);
  e.first_request = 0;
  while (e.first_request == 0) e.step();
  const uint64_t latency = e.first_request - e.last_completion;
  std::printf("me: completion taken -> request of the entry that waited: %llu cycles\n",
              static_cast<unsigned long long>(latency));
  CHECK(latency <= 8);
  e.wait(cookie);

  // From a doorbell to the first request: what one relaunch costs, with memory of 40 cycles.
  e.add_good(1, {write(1, 0)});
  e.drain();
  e.first_request = 0;
  const uint64_t begin = e.cycle();
  const uint64_t launch = e.launch(1);
  while (e.first_request == 0) e.step();
  std::printf("me: doorbell -> first request: %llu cycles, of them 40 memory\n",
              static_cast<unsigned long long>(e.first_request - begin));
  CHECK(e.first_request - begin <= 40 + 32);
  e.wait(launch);

  // From a signal to the request of the entry behind the WAIT.
  Graph waiting{wait(5, 1, true), write(2, 1)};
  after(waiting[1], 0);
  e.add_good(2, waiting);
  const uint64_t third = e.launch(2);
  e.steps(200);
  e.first_request = 0;
  const uint64_t signalled = e.cycle();
  e.signal(5, 1);
  while (e.first_request == 0) e.step();
  std::printf("me: signal -> request of the entry behind the WAIT: %llu cycles\n",
              static_cast<unsigned long long>(e.first_request - signalled));
  CHECK(e.first_request - signalled <= 24);
  e.wait(third);
}

TEST_CASE("firmware: cycles to validate an entry", "[me][firmware][speed]") {
  Engine e;
  e.set_up();
  e.b.patience(1'000'000);
  struct Case {
    const char* what;
    std::function<Wqe(uint32_t)> entry;
    double most = 300;
  };
  const Case cases[] = {
      {"NOP", [](uint32_t) { return nop(); }},
      {"WAIT", [](uint32_t i) { return wait(i % kNumSems, 1, true); }},
      {"WRITE",
       [](uint32_t i) {
         Wqe w = write(0, i);
         if (i > 1) after(after(w, static_cast<uint16_t>(i - 1)), static_cast<uint16_t>(i - 2));
         return w;
       }},
      {"REDUCE of two",
       [](uint32_t i) {
         Wqe w = reduce(0, 2 * i + 1);
         if (i > 1) after(after(w, static_cast<uint16_t>(i - 1)), static_cast<uint16_t>(i - 2));
         return w;
       }},
      {"REDUCE of 16",  // in place of 15
       [](uint32_t i) {
         Wqe w = reduce(0, 2 * i + 1);
         w.nsrc = 16;
         w.own = static_cast<uint8_t>(i % 16);
         w.stride = 0x10000;
         return w;
       },
       450},
  };
  for (const Case& c : cases) {
    Graph g;
    for (uint32_t i = 0; i < 500; ++i) g.push_back(c.entry(i));
    const uint64_t begin = e.cycle();
    e.add_good(0, g);
    const double cycles = static_cast<double>(e.cycle() - begin) / 500;
    std::printf("firmware: %-14s %.0f cycles an entry\n", c.what, cycles);
    CAPTURE(c.what);
    CHECK(cycles < c.most);
  }
}

TEST_CASE("me: simulation speed, printed", "[me][speed]") {
  // Processor time: the machine may be busy with other things.
  auto seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  Options options;
  options.tx = options.nmc = {30, 30};
  Engine e(options);
  e.set_up();
  e.b.patience(10'000'000);
  for (unsigned s = 0; s < 4; ++s) {
    Graph g;
    for (uint32_t i = 0; i < 1000; ++i) {
      g.push_back(i % 2 == 0 ? write(s, i, s) : reduce(s, i));
      if (i > 3) after(g.back(), static_cast<uint16_t>(i - 4));
    }
    e.add_good(s, g);
  }
  auto speed = [&](uint64_t cycles, bool busy) {
    std::vector<uint64_t> cookies(4, 0);
    const auto begin = seconds();
    for (uint64_t i = 0; i < cycles; ++i) {
      if (busy) {
        for (unsigned s = 0; s < 4; ++s) {
          if (!e.runs[s].active) e.launch(s);
        }
        e.cqes.clear();
      }
      e.step();
    }
    return static_cast<double>(cycles) / (seconds() - begin) / 1000;
  };
  std::printf("me: bench, engine busy: %.0f kcycles/s\n", speed(100'000, true));
  e.drain();
  std::printf("me: bench, engine idle: %.0f kcycles/s\n", speed(200'000, false));
  // The model alone, its inputs at rest.
  const auto begin = seconds();
  for (int i = 0; i < 500'000; ++i) e.b.tick();
  std::printf("me: model alone, idle: %.0f kcycles/s\n", 500'000 / (seconds() - begin) / 1000);
}
