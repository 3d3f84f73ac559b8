// What the scan strands of one shard have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "framework/base/mutex.h"
#include "framework/mill/scan_bands.h"

namespace millrace::engine {

// How many tasks of each type the strands are about to claim, so that two which see the same room in a lane
// do not both fill it. Thread-safe.
class ClaimLedger {
 public:
  // How many have come to the lane by now, or have not been claimed after all. To be asked before the room
  // is.
  std::uint64_t Landed(const std::string& type) const {
    MutexLock lock(mutex_);
    const auto count = counts_.find(type);
    return count == counts_.end() ? 0 : count->second.landed;
  }
  // How many of `wanted` may be claimed in a room that was seen when so many had landed: it has no place for
  // what others were granted and had not landed then. Whoever asks is granted them, until they land.
  std::size_t Grant(const std::string& type, std::size_t wanted, std::size_t room, std::uint64_t landed) {
    MutexLock lock(mutex_);
    Counts& counts = counts_[type];
    const std::size_t free = room - std::min<std::uint64_t>(room, counts.granted - landed);
    const std::size_t grant = std::min(wanted, free);
    counts.granted += grant;
    return grant;
  }
  void Land(const std::string& type, std::size_t granted) {
    MutexLock lock(mutex_);
    counts_[type].landed += granted;
  }

 private:
  struct Counts {
    std::uint64_t granted = 0;
    std::uint64_t landed = 0;
  };

  mutable Mutex mutex_;
  std::map<std::string, Counts> counts_ MILLRACE_GUARDED_BY(mutex_);
};

// Thread-safe.
struct ScanShared {
  ScanBands bands;
  ClaimLedger claims;
};

}  // namespace millrace::engine
