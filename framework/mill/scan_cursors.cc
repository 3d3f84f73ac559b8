#include "framework/mill/scan_cursors.h"

#include <algorithm>
#include <utility>

namespace millrace::engine {
namespace {

// The earliest that a text of a time can name.
constexpr WallTime kFirstTime{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}};

}  // namespace

void ScanCursors::Refresh(BootTime now, const std::vector<DueGroup>& groups, Micros rewind,
                          const RewindingOf& of) {
  const auto restarts = [&](const Place& place, const DueGroup& group) {
    const Rewinding rewinding = of ? of(group) : Rewinding::AsNeeded;
    if (rewinding != Rewinding::AsNeeded) return rewinding == Rewinding::Now;
    return (place.empty && place.read <= kSmallGroup) || group.first_run_at < place.head ||
           now - place.rewound >= rewind;
  };
  std::map<GroupKey, Place> next;
  for (const DueGroup& group : groups) {
    const GroupKey key = GroupKeyOf(group);
    const auto known = places_.find(key);
    Place place{HeadOf(group), group.first_run_at, now};
    if (known != places_.end()) {
      place.served = known->second.served;
      if (!restarts(known->second, group)) place = known->second;
      place.empty = false;
    }
    place.expected = group.rows;
    next.emplace(key, place);
  }
  places_ = std::move(next);
}

ScanPosition ScanCursors::At(const DueGroup& group) const {
  const auto place = places_.find(GroupKeyOf(group));
  return place == places_.end() ? ScanPosition{} : place->second.after;
}

GroupRank ScanCursors::Rank(const DueGroup& group) const {
  const auto place = places_.find(GroupKeyOf(group));
  if (place == places_.end()) return {group.urgency, 0, group.first_run_at};
  return {group.urgency, place->second.served, std::max(place->second.after.run_at, group.first_run_at)};
}

bool ScanCursors::MayHaveMore(const DueGroup& group) const {
  const auto place = places_.find(GroupKeyOf(group));
  return place != places_.end() && !place->second.empty;
}

std::size_t ScanCursors::Expected(const DueGroup& group) const {
  const auto place = places_.find(GroupKeyOf(group));
  return place == places_.end() ? 0 : place->second.expected;
}

// Where others stand between them nobody knows how many rows it takes to reach the last.
bool ScanCursors::Passed(const DueGroup& group, std::size_t rows, std::size_t waiting) {
  const auto place = places_.find(GroupKeyOf(group));
  if (place == places_.end() || place->second.expected == 0) return false;
  std::size_t& expected = place->second.expected;
  const bool all = waiting >= expected;
  expected = all || waiting < rows ? 0 : expected - waiting;
  return all;
}

void ScanCursors::Advance(const DueGroup& group, const ScanPosition& last, std::size_t rows, bool full) {
  const auto place = places_.find(GroupKeyOf(group));
  if (place == places_.end()) return;
  ScanPosition& after = place->second.after;
  // Some producers' time of nothing is of the year 1: less than no place at all.
  const bool is_first = after == ScanPosition{} && last.run_at >= kFirstTime;
  if (is_first || after < last) after = last;
  place->second.read += rows;
  place->second.empty = !full;
}

void ScanCursors::Rewind(const DueGroup& group) {
  const auto place = places_.find(GroupKeyOf(group));
  if (place == places_.end()) return;
  place->second.after = HeadOf(group);
  place->second.read = 0;
  place->second.expected = 0;
  place->second.empty = false;
}

void ScanCursors::Served(const DueGroup& group, std::uint64_t turn) {
  const auto place = places_.find(GroupKeyOf(group));
  if (place != places_.end()) place->second.served = turn;
}

}  // namespace millrace::engine
