// What the scan strands of one shard have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "framework/base/mutex.h"
#include "framework/mill/scan_bands.h"

namespace millrace::engine {

// How many tasks of each type the strands have claimed, so that two which saw the same room in a lane do not
// both fill it. Thread-safe.
class ClaimLedger {
 public:
  // All that were granted so far. Ask before the room is asked for.
  std::uint64_t Of(const std::string& type) const {
    MutexLock lock(mutex_);
    const auto granted = granted_.find(type);
    return granted == granted_.end() ? 0 : granted->second;
  }
  // How many of `wanted` may be claimed in a room that was seen when so many had been granted (`seen`): what
  // others got since is no longer free. They are granted.
  std::size_t Grant(const std::string& type, std::size_t wanted, std::size_t room, std::uint64_t seen) {
    MutexLock lock(mutex_);
    std::uint64_t& granted = granted_[type];
    const std::size_t free = room - std::min<std::uint64_t>(room, granted - seen);
    const std::size_t grant = std::min(wanted, free);
    granted += grant;
    return grant;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::uint64_t> granted_ MILLRACE_GUARDED_BY(mutex_);
};

// Thread-safe.
struct ScanShared {
  ScanBands bands;
  ClaimLedger claims;
};

}  // namespace millrace::engine
