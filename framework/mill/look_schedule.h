// When the scan asks for its next due map, and from where on. Pure.
//
// A map reads the head of every group. While somebody holds an old snapshot of the database (a dump, a
// forgotten transaction) the index keeps an entry of each task that was settled since, and a map wades
// through all of them. So where full maps are so dear that they are taken less often than configured, there
// are maps of the groups that are known in between, each from a floor on: what the last map showed of it, or
// a few seconds ago. A row that appears behind the floor (a commit that came late, a task that was held), or
// in a group that had none for a minute, waits for the next full map: these take a fiftieth of the time, and
// are ten seconds apart at most where they were not dear before, thirty in any case.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// Not thread-safe.
class LookSchedule {
 public:
  // From where on the map is to be asked for that is taken now; empty: all of it. What was never looked at is
  // looked at as a whole, and so are other slices than the last time.
  DueFloor Floor(BootTime now, const std::vector<TableSlices>& slices);

  // This map came. `bound` is the configured interval; of `tables` it told.
  void Looked(BootTime asked, Micros cost, const DueFloor& floor, const DueMap& map, Micros bound,
              std::size_t tables);

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

  void Know(BootTime asked, const DueMap& map, bool dear);
  bool FloorHelps() const;
  static Micros Early(Micros interval) { return interval * 9 / 10; }

  std::vector<TableSlices> slices_;
  DueFloor floor_;
  std::map<std::tuple<TableName, std::uint32_t, std::string, std::uint32_t>, BootTime> seen_;  // by group
  Costs full_;
  Costs floored_;
  Micros tried_at_{0};  // what a full map took when a floor was tried last; zero: none was
  bool dear_ = false;   // full maps are taken less often than configured
  BootTime full_due_{};
  std::optional<BootTime> full_at_;  // the last one was asked for
  Micros between_full_{0};           // the last two
  Micros interval_{0};
  BootTime next_{};
};

}  // namespace millrace::engine
