// SPDX-License-Identifier: Apache-2.0
// The reference endpoint as a body, on links of fixed rate and latency: no simulator, no randomness.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tb/comply/body.h"

namespace weft::comply {

std::unique_ptr<Body> make_ref_body();

/// The endpoint's surroundings, for whoever drives it (the body, and the peer that answers at a socket):
/// memory with regions, semaphores, completions.
class RefHost final : public ref::Env {
 public:
  static constexpr std::uint64_t kBase = 0x10'0000'0000;
  static constexpr std::size_t kSems = 256;

  RefHost();
  bool read(std::uint64_t va, std::uint8_t* bytes, std::uint32_t count) override;
  bool write(std::uint64_t va, const std::uint8_t* bytes, std::uint32_t count) override;
  bool signal(std::uint16_t sem, std::uint32_t amount) override;
  void completed(const ref::Completion& c) override;

  Result<Address> region(ref::Endpoint& endpoint, std::uint64_t bytes, std::uint8_t rights);
  /// Completes when the semaphore has reached `value`; BAD_SEM: there is none of that number.
  wire::Err wait(std::uint16_t sem, std::uint32_t value, std::uint64_t id);
  std::vector<Completion> take_completions();

 private:
  struct Wait {
    std::uint16_t sem;
    std::uint32_t value;
    std::uint64_t id;
  };
  void look();

  struct Free {
    void operator()(std::uint8_t* p) const { std::free(p); }
  };
  std::unique_ptr<std::uint8_t[], Free> memory_;  // zeros that cost nothing until they are used
  std::uint64_t next_ = kBase;
  std::uint32_t next_key_ = 0x5eed0001;
  std::vector<std::uint64_t> sems_;
  std::vector<Wait> waits_;
  std::vector<Completion> completions_;
};

ref::Config ref_config(const BodySetup& setup);
/// As scripts write it.
std::string state_name(ref::PathState state);

}  // namespace weft::comply
