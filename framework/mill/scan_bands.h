// The bands of handlers whose tasks are looked at less often (`handlers.H.bands`): which of them may be
// claimed now. Of one shard in one worker, for all of its scan strands. Time comes from outside.
//
// A band opens with the first look that shows something due in it, and no sooner than its interval after it
// has opened last. Each of its groups is then gone through once, from its beginning to its end, for as many
// rows of them all as the band takes each time; where it has no interval, with each look. A group in no band
// is scanned without a pause.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/mill/live_engine.h"
#include "framework/mill/scan_cursors.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// A band as it is, for people.
struct BandView {
  std::string handler;
  BandConfig rule;
  std::size_t claimed = 0;  // since it has opened last
  BootTime next;            // when it may open again
};

class ScanBands {
 public:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  // The rules in force. A band that stays as it is keeps its interval.
  void Follow(std::shared_ptr<const ScanOrder> order);
  bool Any() const { return any_.load(std::memory_order_relaxed); }

  // A look shows these groups: bands open.
  void Look(BootTime now, const DueMap& map);
  // When the next band may open; max(): all may that have something due, or there is none.
  BootTime Next(BootTime now) const;
  // How the cursor of a group is to be set with this look. Once for each opening: now.
  Rewinding RewindingOf(const DueGroup& group);
  // How many rows of the group may be claimed now, as far as its band says.
  std::size_t Left(const DueGroup& group) const;
  // A page of the group was read, and so many of its rows are about to be claimed; `more`: there may be more
  // behind it.
  void Read(const DueGroup& group, std::size_t taken, bool more);
  // So many of these rows are not claimed after all: the group is gone through again, from where its cursor
  // is set.
  void GiveBack(const DueGroup& group, std::size_t rows);
  // Others may not have been: open bands go through their groups again from the next look on, with what is
  // left.
  void Again();

  std::vector<BandView> Views() const;

 private:
  struct Place {
    bool rewound = false;  // since the band has opened
    bool gone = false;     // gone through to its end
  };
  struct Band {
    BandConfig rule;
    std::optional<BootTime> opened = {};
    std::size_t taken = 0;
    std::map<UrgencyGroup, Place> places = {};
  };
  using Bands = std::vector<Band>;

  std::atomic<bool> any_{false};
  mutable Mutex mutex_;
  std::shared_ptr<const ScanOrder> order_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, Bands> bands_ MILLRACE_GUARDED_BY(mutex_);  // by task type
};

}  // namespace millrace::engine
