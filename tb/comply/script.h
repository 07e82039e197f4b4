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
inline constexpr Bounds kBounds[] = {
    {"path", 0, 255},
    {"copies", 0, kMostSteps},
    {"grow", 0, 65'535},
    {"cut", 0, 65'535},
    {"rights", 0, ref::kRemoteRead | ref::kRemoteWrite | ref::kRemoteAtomic}};
inline constexpr Bounds kSetupBounds[] = {{"ports", 1, 8}, {"paths", 1, 256}};

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

/// Text of a file for a message: what is no printable ASCII as \xHH.
std::string printable(const std::string& text);

}  // namespace weft::comply
