// SPDX-License-Identifier: Apache-2.0
// The text form of an exchange, read into statements (docs/compliance.md describes it). Everything that can
// be told without running is told here: unknown words and keys, wrong numbers, names that nothing defines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sw/ref/endpoint.h"
#include "sw/tools/printable.h"
#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::comply {

/// What one run of a script may cost, whatever it computes: a slip of the finger must not turn into hours or
/// fill a machine. A step is a statement, a round of a repeat, a frame either way, a completion, or a
/// microsecond of the body's time. Bytes are those of frames, of regions, and of memory filled or checked.
inline constexpr std::uint64_t kMostSteps = 100'000;
inline constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

/// Between what a key may be. A number that stands in the script is held to it when it is read, one that is
/// computed when it is used.
struct Bounds {
  const char* key;
  std::uint64_t least, most;
};
/// Every key of fewer than 64 bits but the clocks and counters that wrap by their nature (psn, base, ts,
/// echo), and `len`, which is of a frame's or a memory's bytes or of a request.
inline constexpr std::uint64_t kMost8 = 0xff, kMost16 = 0xffff, kMost24 = 0xffffff, kMost32 = 0xffffffff,
                               kMost64 = ~std::uint64_t{0};
inline constexpr Bounds kBounds[] = {
    {"path", 0, kMost8},
    {"epoch", 0, kMost8},
    {"incarnation", 0, kMost16},
    {"conn", 0, kMost24},
    {"port", 0, 7},
    {"sport", 0, kMost16},
    {"ecn", 0, 3},
    {"stream", 0, kMost16},
    {"rkey", 0, kMost32},
    {"msg", 0, kMost16},
    {"msg_len", 0, kMost32},
    {"value", 0, kMost32},
    {"sem", 0, kMost16},
    {"more", 0, 1},
    {"retx", 0, 1},
    {"to_key", 0, kMost32},
    {"local_key", 0, kMost32},
    {"key", 0, kMost32},
    {"ce_bytes", 0, kMost32},
    {"pN.ce_bytes", 0, kMost24},
    {"rx_bytes", 0, kMost32},
    {"share", 0, kMost32},
    {"credits", 0, kMost16},
    {"imm", 0, kMost32},
    {"bytes_in", 0, kMost32},
    {"opcode", 0, kMost8},
    {"pad", 0, 3},
    {"tver", 0, 15},
    {"version", 0, kMost8},
    {"words", 0, 15},
    {"blocks", 0, 15},
    {"mac_error", 0, 1},
    {"copies", 0, kMostSteps},
    {"grow", 0, 65'535},
    {"cut", 0, 65'535},
    {"rights", 0, ref::kRemoteRead | ref::kRemoteWrite | ref::kRemoteAtomic}};
inline constexpr Bounds kSetupBounds[] = {
    {"ports", 1, 8},      {"paths", 1, kMost8}, {"streams", 1, kMost16},
    {"mtu", 1, kMost16},  {"distance", 0, 128}, {"incarnation", 0, kMost16},
    {"conn", 0, kMost24}, {"line", 1, kMost32}, {"retries", 1, 255}};

/// That of a key as it stands in a step, "p3.epoch" too; nothing: 64 bits, or one that wraps.
const Bounds* bounds_of(const std::string& key);

/// A sum of products of numbers and names: "body.psn+3", "r0+i*1024".
struct Expr {
  struct Factor {
    bool literal = true;
    std::uint64_t value = 0;
    std::string name;
  };
  struct Term {
    bool minus = false;
    std::vector<Factor> factors;
  };
  std::vector<Term> terms;
  bool relative = false;  // began with a sign: counts from the first PSN of its sender
};

/// What stands behind a key's '='.
struct Value {
  enum class Kind {
    kAny,      // ?
    kNumber,   // lo
    kNot,      // !lo
    kRange,    // lo..hi
    kPattern,  // lo@hi: bytes hi, hi+1, ... of the pattern of seed lo
    kWord      // text: the name of a status, a string of bits, hex
  };
  Kind kind = Kind::kNumber;
  Expr lo, hi;
  std::string text;
};

struct Arg {
  std::string key;
  Value value;
};

enum class Do {
  kRegion,
  kFill,
  kCheck,
  kLet,
  kWait,
  kAt,
  kSend,
  kSendHex,
  kExpect,
  kExpectNone,
  kExpectCompletion,
  kUnordered,
  kRepeat,
  kAuto,
  kPost,
  kRecv,
  kBodyWait,
  kClose,
  kSport,
  kState,
  kCounters,
  kRefuse,
  kIgnore
};

struct Statement {
  Do what = Do::kWait;
  int line = 0;
  std::string word;  // kind of frame, operation, state, name defined
  Expr where;        // kFill, kCheck, kLet, kRepeat
  std::vector<Arg> args;
  tb::Ps time = 0;  // within, for, or how long
  bool strict = false;
  std::string as;
  std::vector<std::uint8_t> bytes;  // kSendHex
  std::vector<Statement> inner;     // kUnordered, kRepeat

  const Value* arg(const char* key) const {
    for (const Arg& a : args)
      if (a.key == key) return &a.value;
    return nullptr;
  }
};

struct Script {
  std::string file, name;            // name: of the file, without its folder and ".script"
  std::string title;                 // the first comment
  std::vector<std::string> rules;    // what it holds a body to: R3, W2, ...
  std::vector<std::string> catches;  // wrong bodies (fault.h) that it must find
  std::uint32_t caps = 0;            // capabilities the connection has to have
  std::uint32_t abilities = 0;       // of enum Ability, told or implied by what it does
  std::vector<Arg> setup;
  int setup_line = 1;  // of the line `setup`; without one the first stands for it
  std::vector<Statement> steps;
};

Result<Script> parse_script(const std::string& file, const std::string& text);
Result<Script> load_script(const std::string& file);

/// "20us", "1.5ms", "300ns".
bool parse_time(const std::string& text, tb::Ps* out);

/// A key that tells of a block, "p3.base": path 3, and "base". Nothing: another key.
std::optional<std::pair<std::uint8_t, std::string>> block_key(const std::string& key);

}  // namespace weft::comply
