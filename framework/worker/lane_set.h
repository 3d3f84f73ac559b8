// The lanes of a worker, one for each task type. A lane is opened when it is first needed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/plugin/plugin_set.h"
#include "framework/worker/lane.h"

namespace millrace {

// Thread-safe.
class LaneSet {
 public:
  // `concurrency` is used for every lane instead of the configuration's, where it is given.
  LaneSet(LaneParts parts, const PluginSet& plugins, std::shared_ptr<const Config> config,
          std::optional<std::uint32_t> concurrency);

  // Opens the lanes of all types that the configuration names. Invalid with what is wrong.
  Status OpenConfigured();
  // The lane of a type; null if no plugin has its handler, or the handler refused to open (logged once).
  Lane* For(const std::string& type);
  std::vector<Lane*> All() const;

 private:
  Result<std::unique_ptr<Lane>> Open(const std::string& type) const;

  const LaneParts parts_;
  const PluginSet& plugins_;
  const std::shared_ptr<const Config> config_;
  const std::optional<std::uint32_t> concurrency_;
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Lane>> lanes_ MILLRACE_GUARDED_BY(mutex_);  // null: can't be opened
};

}  // namespace millrace
