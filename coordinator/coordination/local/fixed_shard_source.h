// The shards of a process without a cluster: those of its start, for its whole life.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "framework/worker/ports.h"

namespace millrace::engine {

// Immutable, so thread-safe.
class FixedShardSource final : public ShardSource {
 public:
  explicit FixedShardSource(std::map<std::string, std::shared_ptr<Store>> shards)
      : shards_(std::move(shards)) {}
  std::map<std::string, std::shared_ptr<Store>> Shards() override { return shards_; }

 private:
  const std::map<std::string, std::shared_ptr<Store>> shards_;
};

}  // namespace millrace::engine
