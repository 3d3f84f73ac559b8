// Without a cluster nobody presses the red button from outside; what is paused stands in the shards alone.
#pragma once

#include <memory>

#include "framework/worker/ports.h"

namespace millrace::engine {

// Immutable, so thread-safe.
class NoPauses final : public PauseSource {
 public:
  std::shared_ptr<const Pauses> Paused() override { return none_; }

 private:
  const std::shared_ptr<const Pauses> none_ = std::make_shared<const Pauses>();
};

}  // namespace millrace::engine
