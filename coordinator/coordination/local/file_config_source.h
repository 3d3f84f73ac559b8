// The configuration of a process without a cluster: what was loaded at its start, for its whole life.
#pragma once

#include <memory>

#include "framework/worker/ports.h"

namespace millrace::engine {

// Immutable, so thread-safe.
class FileConfigSource final : public ConfigSource {
 public:
  explicit FileConfigSource(Config config);
  std::shared_ptr<const Config> Current() override { return config_; }

 private:
  std::shared_ptr<const Config> config_;
};

}  // namespace millrace::engine
