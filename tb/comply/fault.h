// SPDX-License-Identifier: Apache-2.0
// Wrong bodies: a body with one thing wrong at its border. A script names those it must find ("catches"), and
// `weft comply --wrong` runs it against each: a script that passes then proves nothing.
#pragma once

#include <memory>
#include <string>

#include "tb/comply/body.h"

namespace weft::comply {

struct Fault {
  const char* name;
  const char* what;
};

const Fault* find_fault(const std::string& name);
std::string fault_names();

/// `body` with the fault; the name is that of a fault.
std::unique_ptr<Body> make_wrong(std::unique_ptr<Body> body, const std::string& fault);

}  // namespace weft::comply
