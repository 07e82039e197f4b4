// SPDX-License-Identifier: Apache-2.0
//
// The main program of every test: Catch2, plus the state behind weft_test.h and a listener that
// says, when a test case fails, where it was, what happened last and which line runs it again.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "weft_test.h"

namespace weft::test {
namespace {

struct Event {
  uint64_t cycle;
  const char* format;
  std::array<uint64_t, 4> values;
};

/// State of the running test case; one test case runs at a time in a program.
struct Running {
  std::string name;
  unsigned waves = 0;
  const char* module = nullptr;
  uint64_t cycle = 0;
  uint64_t events = 0;
  std::string wave;     // file being written
  bool failed = false;  // an assertion has failed; where:
  uint64_t failed_cycle = 0;
  std::string failed_wave;
  std::array<Event, 32> last{};
};
Running running;

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::string file_name(const std::string& test) {
  std::string out;
  for (char c : test) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.substr(0, 100);
}

class Reporter : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(Catch::TestCaseInfo const& info) override {
    running = Running{};
    running.name = info.name;
  }

  bool assertionEnded(Catch::AssertionStats const& stats) override {
    if (!stats.assertionResult.isOk() && !running.failed) {
      running.failed = true;
      running.failed_cycle = running.cycle;
      running.failed_wave = running.wave;
    }
    return true;
  }

  void testCaseEnded(Catch::TestCaseStats const& stats) override {
    if (stats.totals.assertions.failed == 0 && stats.totals.testCases.failed == 0) return;
    std::cout << "\n";
    if (running.module != nullptr) {
      std::cout << "failed at cycle " << running.failed_cycle << " of " << running.module << "\n";
    }
    if (!running.failed_wave.empty()) {  // `make wave` opens the file here
      std::ofstream(running.failed_wave + ".failed") << running.failed_cycle * kPeriod_ps << "\n";
    }
    const uint64_t first = running.events > 32 ? running.events - 32 : 0;
    if (running.events > 0) std::cout << "last " << running.events - first << " events:\n";
    for (uint64_t i = first; i < running.events; ++i) {
      const Event& e = running.last[i % 32];
      char text[256];
      std::snprintf(text, sizeof text, e.format, static_cast<unsigned long long>(e.values[0]),
                    static_cast<unsigned long long>(e.values[1]),
                    static_cast<unsigned long long>(e.values[2]),
                    static_cast<unsigned long long>(e.values[3]));
      std::cout << "  " << e.cycle << ": " << text << "\n";
    }
    std::cout << "seed " << seed() << "\nrerun: make test T=\"" << stats.testInfo.name << "\" SEED=" << seed()
              << " WAVES=1\n"
              << std::flush;
  }
};
CATCH_REGISTER_LISTENER(Reporter)

}  // namespace

uint64_t seed() {
  static const uint64_t value = [] {
    const std::string text = environment("SEED", "1");
    char* end = nullptr;
    const uint64_t number = std::strtoull(text.c_str(), &end, 0);
    if (end == text.c_str() || *end != '\0') {
      std::cerr << "SEED=" << text << ": expected a number\n";
      std::exit(2);
    }
    return number;
  }();
  return value;
}

bool waves_wanted() {
  static const bool wanted = environment("WAVES", "0") != "0";
  return wanted;
}

std::string next_wave_path() {
  const std::filesystem::path dir = environment("WEFT_WAVES_DIR", "build/waves");
  std::filesystem::create_directories(dir);
  std::string name = file_name(running.name.empty() ? "bench" : running.name);
  if (++running.waves > 1) name += "_" + std::to_string(running.waves);
  running.wave = (dir / (name + ".fst")).string();
  std::filesystem::remove(running.wave + ".failed");
  return running.wave;
}

void event(const char* format, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  running.last[running.events++ % 32] = Event{running.cycle, format, {a, b, c, d}};
}

void note_cycle(const char* module, uint64_t cycle) {
  running.module = module;
  running.cycle = cycle;
}

const char* name_of(Profile profile) {
  switch (profile) {
    case Profile::None: return "none";
    case Profile::Light: return "light";
    case Profile::Half: return "half";
    case Profile::Heavy: return "heavy";
    case Profile::Bursts: return "bursts";
    case Profile::Changing: return "changing";
  }
  return "?";
}

}  // namespace weft::test

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
