// All that the mill knows of a cluster: which slices are its own, and the configuration in force.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/config/config.h"
#include "framework/store/task_store.h"

namespace millrace {

// Thread-safe. Cheap enough to be asked before every poll.
class SliceSource {
 public:
  virtual ~SliceSource() = default;
  // The slices of a shard that this worker should scan now.
  virtual std::vector<TableSlices> Slices(const std::string& shard) = 0;
};

// Thread-safe.
class ConfigSource {
 public:
  virtual ~ConfigSource() = default;
  // The configuration in force; immutable. A later call may return another.
  virtual std::shared_ptr<const Config> Current() = 0;
};

}  // namespace millrace
