#include "framework/mill/look_schedule.h"

#include <algorithm>

#include "framework/policy/poll_interval.h"

namespace millrace::engine {
namespace {

// Each group's floor costs the database as much as a small query. One for all together would save nothing:
// the server finds the next group by wading through this one.
constexpr std::size_t kMostGroups = 256;
constexpr Micros kKnown = std::chrono::minutes(1);  // a group without rows
// A commit that comes so late is still seen by every map.
constexpr Micros kLateCommits = std::chrono::seconds(5);
// A map from a floor on is worth its while where it takes this part of a full one.
constexpr int kWorth = 4;
constexpr int kFullShare = 50;  // full ones take so small a part of the time, where others stand in for them
// But not at once: what made them dear may be over, and only they show what is behind the floor. So long at
// first, then at most twice as long as between the last two.
constexpr Micros kLongestAtFirst = std::chrono::seconds(10);
constexpr Micros kLongest = std::chrono::seconds(30);  // and then, whatever it costs: new groups wait for it

}  // namespace

DueFloor LookSchedule::Floor(BootTime now, const std::vector<TableSlices>& slices) {
  if (slices != slices_) {
    full_due_ = BootTime{};
    seen_.clear();
  }
  slices_ = slices;
  return now < full_due_ && dear_ && FloorHelps() ? floor_ : DueFloor{};
}

void LookSchedule::Looked(BootTime asked, Micros cost, const DueFloor& floor, const DueMap& map, Micros bound,
                          std::size_t tables) {
  if (floor.Empty()) {
    full_.Add(cost);
    between_full_ = full_at_ ? asked - *full_at_ : Micros(0);
    full_at_ = asked;
  } else {
    floored_.Add(cost);
    tried_at_ = full_.Least();
  }
  Micros full = PollInterval(bound, full_.Least(), tables);
  Know(asked, map, full > bound);
  const Micros longest = std::clamp(2 * between_full_, kLongestAtFirst, kLongest);
  if (FloorHelps()) full = std::max(full, std::min(full_.Least() * kFullShare, longest));
  dear_ = full > bound;
  if (floor.Empty()) full_due_ = asked + Early(full);
  interval_ = FloorHelps() ? PollInterval(bound, std::min(floored_.Least(), full_.Least()), tables) : full;
  next_ = asked + Early(interval_);
  if (asked < full_due_) next_ = std::min(next_, full_due_);
}

void LookSchedule::Know(BootTime asked, const DueMap& map, bool dear) {
  floor_ = {};
  if (!dear || map.groups.size() > kMostGroups) return seen_.clear();
  const WallTime late = map.now - kLateCommits;
  floor_.from = WallTime::max();
  for (const DueGroup& group : map.groups) {
    seen_[{group.table, group.slice, group.handler, group.urgency}] = asked;
    floor_.earlier.push_back(group);
    floor_.earlier.back().first_run_at = std::min(group.first_run_at, late);
  }
  std::erase_if(seen_, [asked](const auto& known) { return asked - known.second > kKnown; });
  for (const auto& [group, at] : seen_) {
    const auto& [table, slice, handler, urgency] = group;
    if (at != asked) floor_.earlier.push_back({table, slice, handler, urgency, late});
  }
  if (floor_.earlier.size() > kMostGroups) floor_ = {};
}

// One that did not help is tried again once full maps take twice as long.
bool LookSchedule::FloorHelps() const {
  if (floor_.Empty()) return false;
  return full_.Least() >= 2 * tried_at_ || floored_.Least() * kWorth <= full_.Least();
}

}  // namespace millrace::engine
