#include "framework/mill/known_groups.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace millrace::engine {
namespace {

constexpr std::size_t kMostAfter = 256;  // groups that one part asks for; each costs as much as a small query
constexpr Micros kBetweenMarks = std::chrono::seconds(1);
// What the greatest id was before anybody asked: at least so much less.
constexpr std::uint64_t kInFlight = 10'000;

}  // namespace

void KnownGroups::DropRead(const GroupKey& key, Known& known, ScanCursors& cursors) const {
  if (!known.first || *known.first > now_) return;
  const DueGroup group = GroupOf(key, *known.first);
  if (cursors.MayHaveMore(group)) {
    known.first = std::max(*known.first, cursors.Rank(group).waiting_since);
    return;
  }
  known.first.reset();
  cursors.Forget(group);
  const auto tie = std::exchange(known.tie, std::nullopt);
  if (std::exchange(known.more, false)) known.AskAfter(tie ? *tie - Micros(1) : now_);
}

DueWanted KnownGroups::Wanted(BootTime now, ScanCursors& cursors) {
  DueWanted wanted;
  for (auto known = known_.begin(); known != known_.end();) {
    Known& of = known->second;
    of.rows = 0;
    DropRead(known->first, of, cursors);
    if (of.again && now >= of.again->second) of.AskAfter(std::exchange(of.again, std::nullopt)->first);
    if (of.after) wanted.after.push_back(GroupOf(known->first, *of.after));
    known = of.first || of.after || of.again ? std::next(known) : known_.erase(known);
  }
  if (wanted.after.size() > kMostAfter) {
    const std::size_t first = (turn_ += kMostAfter) % wanted.after.size();
    std::rotate(wanted.after.begin(), wanted.after.begin() + static_cast<std::ptrdiff_t>(first),
                wanted.after.end());
    wanted.after.erase(wanted.after.begin() + kMostAfter, wanted.after.end());
  }
  AskForNewRows(now, wanted);
  return wanted;
}

// Not with one part after another, however far apart they are: the others bring what is newest.
void KnownGroups::AskForNewRows(BootTime now, DueWanted& wanted) {
  wanted.newer = greatest_;
  const bool is_due = earlier_.empty() || now - earlier_.back().first >= kBetweenMarks;
  asked_earlier_ = is_due && !asked_earlier_;
  if (!asked_earlier_) return;
  while (earlier_.size() > 1 && now - earlier_[1].first >= kLateCommits + kBetweenMarks) earlier_.pop_front();
  for (auto& [table, id] : wanted.newer) {
    const std::uint64_t before = id - std::min(id, kInFlight);
    if (earlier_.empty()) {
      id = before;
    } else {
      const auto marked = earlier_.front().second.find(table);
      id = std::min(id, marked == earlier_.front().second.end() ? before : marked->second);
    }
  }
  earlier_.emplace_back(now, earlier_.empty() ? wanted.newer : greatest_);
}

void KnownGroups::Return(const GroupKey& group, WallTime due) {
  if (Begun()) known_[group].AskAfter(due - Micros(1));
}

void KnownGroups::LookAgain(const GroupKey& group, WallTime due, BootTime when) {
  if (!Begun()) return;
  auto& again = known_[group].again;
  const WallTime from = due - Micros(1);
  again =
      again ? std::pair(std::min(again->first, from), std::min(again->second, when)) : std::pair(from, when);
}

void KnownGroups::Take(const DueWanted& wanted, DueMap& map, ScanCursors& cursors) {
  now_ = map.now;
  if (!wanted.IsPart()) {
    known_.clear();
    groups_ = map.groups.size();
    greatest_ = map.greatest;
    if (greatest_.empty()) return Forget();
    for (const DueGroup& group : map.groups)
      known_[GroupKeyOf(group)] = {group.first_run_at, 0, group.later || group.first_run_at > now_};
    return;
  }
  for (const auto& [table, id] : map.greatest) greatest_[table] = std::max(greatest_[table], id);
  for (const DueGroup& group : wanted.after) known_[GroupKeyOf(group)].after.reset();
  for (const DueGroup& group : map.after) {
    Known& known = known_[GroupKeyOf(group)];
    if (known.first == group.first_run_at) known.tie = group.first_run_at;
    Begin(group, known, cursors);
    known.more = true;
  }
  for (const DueGroup& group : map.groups) {
    Known& known = known_[GroupKeyOf(group)];
    const bool comes = known.first && *known.first > now_;
    known.rows = !known.first || comes ? group.rows : 0;
    known.more = known.more || comes || group.later;
    Begin(group, known, cursors);
  }
  Fill(map);
}

// Behind the place to which it has been read, perhaps.
void KnownGroups::Begin(const DueGroup& group, Known& known, ScanCursors& cursors) const {
  if (known.first && group.first_run_at >= *known.first) return;
  known.first = group.first_run_at;
  cursors.Forget(group);
}

void KnownGroups::Fill(DueMap& map) const {
  map.groups.clear();
  for (const auto& [key, known] : known_) {
    if (!known.first || map.refused.contains(std::get<TableName>(key))) continue;
    map.groups.push_back(GroupOf(key, *known.first));
    map.groups.back().rows = known.rows;
  }
}

}  // namespace millrace::engine
