#include "framework/mill/scan_rounds.h"

#include <algorithm>
#include <limits>

namespace millrace::engine {
namespace {

bool CoversType(const std::vector<TableSlices>& slices, const std::string& handler) {
  return std::any_of(slices.begin(), slices.end(),
                     [&](const TableSlices& part) { return part.CoversHandler(handler); });
}

}  // namespace

bool ScanRounds::Follow(std::shared_ptr<const ScanRules> rules) {
  if (rules == rules_) return false;
  rules_ = std::move(rules);
  std::erase_if(rounds_, [&](const auto& round) { return !rules_->contains(round.first); });
  for (const auto& [handler, rule] : *rules_) {
    Round& round = rounds_[handler];
    if (rule.every != round.rule.every) round.anchor = round.began;
    round.rule = rule;
  }
  return true;
}

const ScanRounds::Round* ScanRounds::Of(const std::string& handler) const {
  const auto round = rounds_.find(handler);
  return round == rounds_.end() ? nullptr : &round->second;
}

// On a grid: one that was late, or took longer than the time between two, does not move those behind it.
std::optional<BootTime> ScanRounds::NextOf(const Round& round) {
  if (!round.begun) return BootTime{};
  if (round.rule.every > Micros(0)) {
    const auto past = (round.began - round.anchor) / round.rule.every;
    return round.anchor + (past + 1) * round.rule.every;
  }
  if (!round.ended) return std::nullopt;
  return *round.ended + round.rule.after;
}

// While it has something left to claim the next one waits.
bool ScanRounds::IsDue(const Round& round, BootTime now) {
  if (!round.covered || (round.open && round.left)) return false;
  const std::optional<BootTime> next = NextOf(round);
  return next && *next <= now;
}

BootTime ScanRounds::Next() const {
  BootTime first = BootTime::max();
  for (const auto& [handler, round] : rounds_) {
    if (!round.covered) continue;
    if (round.returns) first = std::min(first, *round.returns);
    if (round.open && round.left) continue;
    if (const auto next = NextOf(round)) first = std::min(first, *next);
  }
  return first;
}

// Whether there is something left the look has yet to show: so those of rounds that may be over, too.
std::vector<TableName> ScanRounds::Wanted(BootTime now, const std::vector<TableSlices>& slices) const {
  std::set<TableName> tables;
  for (const auto& [handler, round] : rounds_) {
    const std::optional<BootTime> next = NextOf(round);
    const bool due = round.rule.scope == ScanScope::Key && next && *next <= now;
    for (const TableSlices& part : slices) {
      if (due && part.CoversHandler(handler)) tables.insert(part.table);
    }
  }
  return {tables.begin(), tables.end()};
}

void ScanRounds::Look(BootTime now, const Shown& shown) {
  for (auto& [handler, round] : rounds_) {
    round.covered = CoversType(shown.slices, handler) && shown.runs(handler);
    const bool returned = round.returns && *round.returns <= now;
    if (returned) round.returns.reset();
    round.rewinds = std::exchange(round.again, false) || returned;
    if (round.rewinds) round.gone.clear();
    See(handler, round, shown);
    NoteEnd(handler, round, now, shown.in_hand);
    if (!IsDue(round, now)) continue;
    Begin(round, now, shown);
    See(handler, round, shown);
    NoteEnd(handler, round, now, shown.in_hand);
  }
}

void ScanRounds::Begin(Round& round, BootTime now, const Shown& shown) {
  if (!round.begun) round.anchor = now;
  round.begun = round.open = round.rewinds = true;
  round.began = now;
  round.ended.reset();
  round.scope = round.rule.scope;
  round.at = shown.map.now;
  round.greatest = shown.greatest;
  round.claimed = 0;
  round.gone.clear();
}

void ScanRounds::See(const std::string& handler, Round& round, const Shown& shown) {
  round.left = false;
  if (!round.open || !shown.runs(handler)) return;
  bool later = false;
  if (LeftOf(round) > 0) {
    later = round.returns.has_value();
    round.left = shown.waits(handler);
    for (const DueGroup& group : shown.map.groups) {
      if (group.handler != handler || group.first_run_at > shown.map.now) continue;
      if (round.gone.contains(UrgencyGroupOf(group))) continue;
      (shown.paused(group) ? later : round.left) = true;
    }
  }
  if (round.left) round.ended.reset();
  round.open = round.left || later;
}

void ScanRounds::NoteEnd(const std::string& handler, Round& round, BootTime now, const Asks& in_hand) {
  if (round.begun && !round.left && !round.ended && !in_hand(handler)) round.ended = now;
}

void ScanRounds::NoteEnded(BootTime now, const Asks& in_hand) {
  for (auto& [handler, round] : rounds_) NoteEnd(handler, round, now, in_hand);
}

Rewinding ScanRounds::RewindingOf(const DueGroup& group) const {
  const Round* round = Of(group.handler);
  if (round == nullptr) return Rewinding::AsNeeded;
  return round->rewinds ? Rewinding::Now : Rewinding::Never;
}

bool ScanRounds::Takes(const DueGroup& group) const {
  const Round* round = Of(group.handler);
  return round == nullptr || (LeftOf(*round) > 0 && !round->gone.contains(UrgencyGroupOf(group)));
}

std::size_t ScanRounds::LeftOf(const Round& round) {
  if (!round.open) return 0;
  if (round.rule.max_rows == 0) return std::numeric_limits<std::size_t>::max();
  return round.rule.max_rows - std::min<std::size_t>(round.claimed, round.rule.max_rows);
}

std::size_t ScanRounds::Left(const std::string& handler) const {
  const Round* round = Of(handler);
  return round == nullptr ? std::numeric_limits<std::size_t>::max() : LeftOf(*round);
}

bool ScanRounds::ByCreation(const std::string& handler) const {
  const Round* round = Of(handler);
  return round != nullptr && round->scope == ScanScope::Created;
}

bool ScanRounds::IsWithin(const DueGroup& group, const ScanRow& row) const {
  const Round* round = Of(group.handler);
  if (round == nullptr) return true;
  if (round->scope == ScanScope::Created) return row.created_at <= round->at;
  const auto greatest = round->greatest.find(group.table);
  return greatest != round->greatest.end() && row.id <= greatest->second;
}

// A page behind the beginning without a row of the round ends the group too: else a round would never end
// where rows come faster than they are passed over.
void ScanRounds::Read(const DueGroup& group, WallTime last, bool any, bool more) {
  const auto found = rounds_.find(group.handler);
  if (found == rounds_.end()) return;
  Round& round = found->second;
  if (!more || (!any && last > round.at)) round.gone.insert(UrgencyGroupOf(group));
}

void ScanRounds::Claimed(const std::string& handler, std::size_t rows) {
  const auto found = rounds_.find(handler);
  if (found == rounds_.end()) return;
  Round& round = found->second;
  round.claimed += rows;
  if (LeftOf(round) > 0) return;
  round.open = round.left = false;
}

void ScanRounds::GivenBack(const std::string& handler, std::size_t rows, BootTime due) {
  const auto found = rounds_.find(handler);
  if (found == rounds_.end() || !found->second.begun) return;
  Round& round = found->second;
  round.claimed -= std::min(round.claimed, rows);
  round.open = round.again = true;
  round.returns = std::max(round.returns.value_or(due), due);
}

void ScanRounds::Again() {
  for (auto& [handler, round] : rounds_) round.again = round.again || round.open;
}

std::vector<RoundView> ScanRounds::Views() const {
  std::vector<RoundView> views;
  for (const auto& [handler, round] : rounds_) {
    RoundView& view = views.emplace_back(RoundView{handler, round.open, round.claimed});
    if (round.begun) view.began = round.began;
    if (round.begun && round.covered) view.next = NextOf(round);
  }
  return views;
}

}  // namespace millrace::engine
