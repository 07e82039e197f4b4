// SPDX-License-Identifier: Apache-2.0
// A verilated model together with the context it lives in. Every model of this repository is held by one of
// these: a model that is destroyed takes its scopes out of the context of the *thread*, which is that of the
// model made last, and that may be another's or be gone already. Programs with two models then corrupted the
// other's scopes or hung at their end.
#pragma once

#include <verilated.h>

#include <functional>
#include <memory>
#include <string>

namespace weft::tb {

template <class V>
class OwnedModel {
 public:
  /// `set_up` runs before the model is made: seeds, tracing.
  explicit OwnedModel(const std::string& name = "TOP",
                      const std::function<void(VerilatedContext&)>& set_up = {}) {
    if (set_up) set_up(context_);
    model_ = std::make_unique<V>(&context_, name.c_str());
  }
  OwnedModel(const OwnedModel&) = delete;
  OwnedModel& operator=(const OwnedModel&) = delete;
  ~OwnedModel() {
    VerilatedContext* const before = Verilated::threadContextp();
    Verilated::threadContextp(&context_);
    model_->final();
    model_.reset();
    // Nobody must find the context that goes now.
    Verilated::threadContextp(before == &context_ ? Verilated::defaultContextp() : before);
  }

  V& operator*() { return *model_; }
  V* operator->() { return model_.get(); }
  VerilatedContext& context() { return context_; }
  const VerilatedContext& context() const { return context_; }

 private:
  VerilatedContext context_;
  std::unique_ptr<V> model_;
};

}  // namespace weft::tb
