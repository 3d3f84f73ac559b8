// All that the mill knows of a cluster: which shards there are, which of their slices are its own, what is
// paused, and the configuration in force. Each is asked again and again, at least every tenth of a second:
// an answer is cheap, never waits for a server, and holds until the next.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/config.h"
#include "framework/policy/pauses.h"
#include "framework/store/store.h"

namespace millrace::engine {

// Thread-safe.
class SliceSource {
 public:
  virtual ~SliceSource() = default;
  // The slices of a shard that this worker should scan now; empty for a shard that it has no part in. What
  // leaves the answer is claimed no more, and what of it is queued is given back.
  virtual std::vector<TableSlices> Slices(const std::string& shard) = 0;
};

// Thread-safe.
class ConfigSource {
 public:
  virtual ~ConfigSource() = default;
  // The configuration in force; immutable. A later call may return another.
  virtual std::shared_ptr<const Config> Current() = 0;
};

// Thread-safe.
class PauseSource {
 public:
  virtual ~PauseSource() = default;
  // What operators have paused; immutable, never null. A later call may return another.
  virtual std::shared_ptr<const Pauses> Paused() = 0;
};

// Thread-safe.
class ShardSource {
 public:
  virtual ~ShardSource() = default;
  // The shards to serve, by name. A new one is served from now on; one that is gone is drained, and its store
  // kept until that is done. Another store under a known name is both.
  virtual std::map<std::string, std::shared_ptr<Store>> Shards() = 0;
};

}  // namespace millrace::engine
