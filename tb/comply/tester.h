// SPDX-License-Identifier: Apache-2.0
// Plays a script against a body: sends what it says, compares what comes, keeps time.
#pragma once

#include <string>

#include "tb/comply/body.h"
#include "tb/comply/script.h"

namespace weft::comply {

enum class Verdict {
  kPass,
  kFail,    // the body does something else than the script says
  kNotYet,  // the body has no capability that the script needs
  kBroken   // the body itself cannot be used any further
};

struct Outcome {
  Verdict verdict = Verdict::kPass;
  std::string text;  // kFail: "file:line: ..." and the last frames; kNotYet: what is missing; kBroken: why
  Ps took = 0;       // time of the body
};

struct TestOptions {
  bool log = false;  // collect every frame into Outcome::text, a passing script's too
};

Outcome run_script(Body& body, const Script& script, const TestOptions& options = {});

/// One line for people: time, direction, kind and fields of a frame.
std::string describe(wire::Bytes frame);

}  // namespace weft::comply
