// SPDX-License-Identifier: Apache-2.0
// The text form of an exchange, read into statements (docs/compliance.md describes it). Everything that can
// be told without running is told here: unknown words and keys, wrong numbers, names that nothing defines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tb/sim/status.h"
#include "tb/sim/time.h"

namespace weft::comply {

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
  int setup_line = 0;
  std::vector<Statement> steps;
};

Result<Script> parse_script(const std::string& file, const std::string& text);
Result<Script> load_script(const std::string& file);

/// "20us", "1.5ms", "300ns".
bool parse_time(const std::string& text, tb::Ps* out);

}  // namespace weft::comply
