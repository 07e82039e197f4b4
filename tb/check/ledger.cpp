// SPDX-License-Identifier: Apache-2.0
#include "tb/check/ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::tb {
namespace {

bool has_ip(const Watch* node, uint32_t ip) {
  for (uint32_t p = 0; node && p < node->ports(); ++p) {
    if (node->ip(p) == ip) return true;
  }
  return false;
}

}  // namespace

Status compare_ends(const std::vector<const Watch*>& nodes) {
  for (size_t from = 0; from < nodes.size(); ++from) {
    if (!nodes[from]) continue;
    for (const Watch::Life& sent : nodes[from]->lives()) {
      if (sent.sent_ok == 0) continue;
      const auto peer =
          std::find_if(nodes.begin(), nodes.end(), [&](const Watch* node) { return has_ip(node, sent.rip); });
      if (peer == nodes.end()) continue;
      uint32_t received = 0;
      for (const Watch::Life& there : (*peer)->lives()) {
        if (there.conn == sent.rconn && there.incarnation == sent.incarnation) {
          received = std::max(received, there.received);
        }
      }
      if (received < sent.sent_ok) {
        return Status::error(fmt::format(
            "node {}: {} messages of connection {} (incarnation {}) completed OK, {} are received at node {}",
            from, sent.sent_ok, sent.conn, sent.incarnation, received, peer - nodes.begin()));
      }
    }
  }
  return {};
}

}  // namespace weft::tb
