// The permits of a compact shard.
#include <algorithm>

#include "coordinator/testing/compact_shard.h"

namespace millrace::engine {

Result<std::vector<Permit>> CompactShard::Permits(std::span<const std::string> handlers) const {
  std::vector<Permit> permits;
  for (const auto& [place, row] : state_.permits) {
    if (std::find(handlers.begin(), handlers.end(), place.first) == handlers.end()) continue;
    permits.push_back(row);
    permits.back().lapsed = !row.holder.empty() && !IsAlive(row.holder);
  }
  return permits;
}

Status CompactShard::Make(const std::string& handler, std::uint32_t count) {
  for (std::uint32_t number = 1; number <= count; ++number) {
    state_.permits.try_emplace({handler, number}, Permit{.handler = handler, .number = number});
  }
  return {};
}

bool CompactShard::Write(const std::string& incarnation, const PermitChange& change) {
  const auto found = state_.permits.find({change.handler, change.number});
  if (found == state_.permits.end() || found->second.turn != change.turn) return false;
  Permit& row = found->second;
  const bool mine = row.holder == (Knows(incarnation) ? incarnation : "");  // the store's number of nobody
  if (change.to == PermitChange::To::Held) {
    if (guards_.permit_needs_life && !IsAlive(incarnation)) return false;
    if (!mine && !row.holder.empty() && IsAlive(row.holder)) return false;
    row.holder = incarnation;
    row.task = change.task;
    row.attempt = change.attempt;
  } else if (change.to == PermitChange::To::Free) {
    if (!mine) return false;
    row.holder.clear();
    row.task.clear();
    row.attempt = 0;
  }
  ++row.turn;
  return true;
}

Result<std::vector<PermitAnswer>> CompactShard::Change(const std::string& incarnation,
                                                       std::span<const PermitChange> changes) {
  std::vector<PermitAnswer> answers;
  for (const PermitChange& change : changes)
    answers.push_back(Write(incarnation, change) ? PermitAnswer::Done : PermitAnswer::Refused);
  return answers;
}

Status CompactShard::NameHome(const std::string& home) {
  if (state_.home.empty()) state_.home = home;
  return {};
}

}  // namespace millrace::engine
