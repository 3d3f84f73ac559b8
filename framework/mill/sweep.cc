#include "framework/mill/sweep.h"

namespace millrace::engine {

std::vector<ScanRequest> Sweep::Next(std::size_t most) {
  std::vector<ScanRequest> pages;
  while (!Through() && pages.size() < most) {
    const DueGroup& group = maps_[map_]->groups[group_++];
    pages.push_back({.group = group, .after = HeadOf(group), .limit = page_, .running_only = true});
    GoToDue();
  }
  return pages;
}

void Sweep::GoToDue() {
  for (; !Through(); ++map_, group_ = 0) {
    const DueMap& map = *maps_[map_];
    while (group_ < map.groups.size() && map.groups[group_].first_run_at > map.now) ++group_;
    if (group_ < map.groups.size()) return;
  }
}

}  // namespace millrace::engine
