// SPDX-License-Identifier: Apache-2.0
// How fast frames move: a permutation over fat trees, every host sending at line rate and acknowledging every
// packet, with hosts that do next to nothing. An event is a frame that a switch or a host handles, or a
// timer. Threads must not change a bit, or the program ends with status 1.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "load_host.h"
#include "weft_bench.h"

using namespace weft::tb;
using weft::bench::Good;
using weft::bench::report;

namespace {

struct Measured {
  double wall_s = 0, cpu_s = 0;  // processor time of all threads
  uint64_t events = 0;
  uint64_t hash = 0;
  double bytes_per_host = 0;  // everything the simulator holds
  double rate_gbps = 0;       // mean a host and plane, on the wire
};

size_t heap_bytes() {
  const auto m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

Measured run(Scenario s, unsigned threads, Ps duration) {
  s.threads = threads;
  const size_t before = heap_bytes();
  const Load load;
  LoadedFabric f(s, load);
  const Ps warm_up = duration / 4;
  f.run_until(warm_up);  // queues and pools grow to their size
  const uint64_t events = f.kernel.events(), got = f.got();
  const auto wall = std::chrono::steady_clock::now();
  const auto cpu = std::clock();
  f.run_until(duration);
  Measured m;
  m.cpu_s = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  m.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  m.events = f.kernel.events() - events;
  m.hash = f.hash();
  m.bytes_per_host = static_cast<double>(heap_bytes() - before) / s.nodes;
  m.rate_gbps = static_cast<double>(f.got() - got) * (load.data_bytes + kWireOverheadBytes) * 8000 /
                static_cast<double>(duration - warm_up) / s.nodes / s.planes;
  return m;
}

}  // namespace

int main() {
  const auto speed = [](const Measured& m) { return static_cast<double>(m.events) / m.cpu_s / 1e6; };
  const Measured one = run(f100(), 1, 4 * kMs);
  std::printf("F100: %.1f Gb/s a host\n", one.rate_gbps);
  report("fabric_f100_mevents_per_s", speed(one), Good::AtLeast, 8, "M events/s of one core");
  report("fabric_f100_bytes_per_host", one.bytes_per_host, Good::AtMost, 1 << 20, "bytes");
  const Measured two = run(f100(), 2, 4 * kMs);
  if (two.hash != one.hash) {
    std::fprintf(stderr, "bench_fabric: two threads give other bits than one\n");
    return 1;
  }
  report("fabric_f100_two_threads", one.wall_s / two.wall_s, Good::AtLeast, 1.5, "times one thread");
  report("fabric_f100_8_planes_mevents_per_s", speed(run(f100(128, 8), 1, kMs)), Good::AtLeast, 6,
         "M events/s of one core");
  const Measured large = run(f100(1024), 1, kMs);
  report("fabric_1024_mevents_per_s", speed(large), Good::AtLeast, 6, "M events/s of one core");
  report("fabric_1024_bytes_per_host", large.bytes_per_host, Good::AtMost, 1 << 20, "bytes");
  return 0;
}
