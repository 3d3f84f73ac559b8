// What the scan strands of one shard have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "framework/base/mutex.h"
#include "framework/mill/attempt.h"
#include "framework/mill/resting_tables.h"
#include "framework/mill/scan_bands.h"

namespace millrace::engine {

// What tasks take of a lane: their number, and their bytes (MemoryBudget::Of).
struct ClaimLoad {
  std::uint64_t tasks = 0;
  std::uint64_t bytes = 0;
};

// What of each type the strands are about to claim, so that two which see the same room in a lane do not both
// fill it, nor one that has sent a claim ahead. Thread-safe.
class ClaimLedger {
 public:
  // What has come to the lane by now, or has not been claimed after all. To be asked before the room is.
  ClaimLoad Landed(const std::string& type) const {
    MutexLock lock(mutex_);
    const auto counts = counts_.find(type);
    return counts == counts_.end() ? ClaimLoad{} : counts->second.landed;
  }
  // What is left of a room that was seen when so much had landed: it has no place for what was granted and
  // had not landed then.
  LaneRoom Free(const std::string& type, LaneRoom room, const ClaimLoad& landed) const {
    MutexLock lock(mutex_);
    const auto counts = counts_.find(type);
    return counts == counts_.end() ? room : Without(room, counts->second.granted, landed);
  }
  // How many of the wanted tasks may be claimed in such a room; none where their bytes have no place beside
  // those of others. Whoever asks is granted them, until they land.
  std::size_t Grant(const std::string& type, const ClaimLoad& wanted, const LaneRoom& room,
                    const ClaimLoad& landed) {
    MutexLock lock(mutex_);
    Counts& counts = counts_[type];
    const LaneRoom free = Without(room, counts.granted, landed);
    const bool fits = counts.granted.bytes == landed.bytes || wanted.bytes <= free.bytes;
    const std::size_t grant = fits ? std::min<std::uint64_t>(wanted.tasks, free.tasks) : 0;
    counts.granted.tasks += grant;
    if (grant > 0) counts.granted.bytes += wanted.bytes;
    return grant;
  }
  void Land(const std::string& type, const ClaimLoad& granted) {
    MutexLock lock(mutex_);
    Counts& counts = counts_[type];
    counts.landed.tasks += granted.tasks;
    counts.landed.bytes += granted.bytes;
  }

 private:
  struct Counts {
    ClaimLoad granted;
    ClaimLoad landed;
  };
  static LaneRoom Without(LaneRoom room, const ClaimLoad& granted, const ClaimLoad& landed) {
    room.tasks -= std::min<std::uint64_t>(room.tasks, granted.tasks - landed.tasks);
    room.bytes -= std::min<std::uint64_t>(room.bytes, granted.bytes - landed.bytes);
    return room;
  }

  mutable Mutex mutex_;
  std::map<std::string, Counts> counts_ MILLRACE_GUARDED_BY(mutex_);
};

// Thread-safe.
struct ScanShared {
  ScanBands bands;
  ClaimLedger claims;
  RestingTables unwritable;  // no claim of theirs was taken
  RestingTables unreadable;  // no map has them
};

}  // namespace millrace::engine
