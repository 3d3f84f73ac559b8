#include "framework/mill/look_schedule.h"

#include <algorithm>

#include "framework/policy/poll_interval.h"

namespace millrace::engine {
namespace {

// A floor of its own costs the database as much as a small query: beyond so many groups the rest share one.
constexpr std::size_t kOwnFloors = 32;
// A commit that comes so late is still seen by every map.
constexpr Micros kLateCommits = std::chrono::seconds(5);
// A map from a floor on is worth its while where it takes this part of a full one.
constexpr int kWorth = 4;
constexpr int kFullShare = 25;  // full ones take so small a part of the time, where others stand in for them
// But not at once: what made them dear may be over, and only they show what is behind the floor. So long at
// first, then at most twice as long as between the last two.
constexpr Micros kLongestAtFirst = std::chrono::seconds(10);

DueFloor FloorOf(const DueMap& map) {
  DueFloor floor{map.now - kLateCommits, {}};
  for (const DueGroup& group : map.groups) {
    if (group.first_run_at < floor.from) floor.earlier.push_back(group);
  }
  if (floor.earlier.size() <= kOwnFloors) return floor;
  const auto rest = floor.earlier.begin() + kOwnFloors;
  std::nth_element(floor.earlier.begin(), rest, floor.earlier.end(),
                   [](const DueGroup& a, const DueGroup& b) { return a.first_run_at < b.first_run_at; });
  floor.from = rest->first_run_at;
  floor.earlier.erase(rest, floor.earlier.end());
  return floor;
}

}  // namespace

DueFloor LookSchedule::Floor(BootTime now, const std::vector<TableSlices>& slices) {
  if (slices != slices_) full_due_ = BootTime{};
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
  floor_ = FloorOf(map);
  Micros full = PollInterval(bound, full_.Least(), tables);
  const Micros longest = std::max(kLongestAtFirst, 2 * between_full_);
  if (FloorHelps()) full = std::max(full, std::min(full_.Least() * kFullShare, longest));
  dear_ = full > bound;
  if (floor.Empty()) full_due_ = asked + Early(full);
  interval_ = FloorHelps() ? PollInterval(bound, std::min(floored_.Least(), full_.Least()), tables) : full;
  next_ = asked + Early(interval_);
  if (asked < full_due_) next_ = std::min(next_, full_due_);
}

// One that did not help is tried again once full maps take twice as long.
bool LookSchedule::FloorHelps() const {
  return full_.Least() >= 2 * tried_at_ || floored_.Least() * kWorth <= full_.Least();
}

}  // namespace millrace::engine
