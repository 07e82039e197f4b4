// SPDX-License-Identifier: Apache-2.0
// A Verilated node as a body: driver and firmware as in a real host, the tester on the other end of its
// links.
#pragma once

#include <memory>
#include <vector>

#include "tb/comply/body.h"
#include "tb/node/rtl_node.h"

namespace weft::comply {

std::unique_ptr<Body> make_rtl_body(tb::ModelFactory model, std::vector<std::uint8_t> firmware);

}  // namespace weft::comply
