// When the scan asks for its next due map, and whether for a whole one. Pure.
//
// Where whole maps are so dear that they are taken less often than configured, there are parts of them in
// between (mill/known_groups.h says what they bring). Then whole ones take a fiftieth of the time, and are
// ten seconds apart at most where they were not dear before, thirty in any case.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// Not thread-safe.
class LookSchedule {
 public:
  // Whether a part is enough for the map that is taken now. What was never looked at is looked at as a whole,
  // and so are other slices than the last time.
  bool TakesPart(BootTime now, const std::vector<TableSlices>& slices);
  // A whole map is to begin parts.
  bool WantsParts(BootTime now) const;
  // The next map is a whole one.
  void Forget() { full_due_ = {}; }

  // A map came that took `cost`. `bound` is the configured interval; of `tables` it told. `begun`: parts may
  // follow.
  void Looked(BootTime asked, Micros cost, bool part, Micros bound, std::size_t tables, bool begun);

  // The interval that is kept now, and when the next look is due: a little earlier, since the bound is to
  // hold for the claim and the start too.
  Micros Interval() const { return interval_; }
  BootTime Next() const { return next_; }

 private:
  // The cheaper of the last two counts: one may have had to connect, or to wait for a database that was away.
  struct Costs {
    Micros last{0};
    Micros before{0};
    void Add(Micros cost) { before = std::exchange(last, cost); }
    Micros Least() const { return last < before ? last : before; }
  };

  // None was for some time.
  bool TriesParts(BootTime now) const;
  bool PartsHelp(BootTime now) const { return begun_ && WantsParts(now); }
  static Micros Early(Micros interval) { return interval * 9 / 10; }

  std::vector<TableSlices> slices_;
  Costs full_;
  Costs part_;
  BootTime tried_{};    // the last part was asked for
  bool dear_ = false;   // whole maps alone are taken less often than configured
  bool begun_ = false;  // parts may be asked for
  BootTime full_due_{};
  std::optional<BootTime> full_at_;  // the last one was asked for
  Micros between_full_{0};           // the last two
  Micros interval_{0};
  BootTime next_{};
};

}  // namespace millrace::engine
