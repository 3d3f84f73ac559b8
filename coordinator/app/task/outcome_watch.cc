#include "coordinator/app/task/outcome_watch.h"

#include <algorithm>
#include <map>

namespace millrace::engine {

OutcomeWatch::OutcomeWatch(const std::vector<TaskKey>& tasks, BootTime now) : last_end_(now) {
  for (const TaskKey& key : tasks) open_.push_back({key});
}

bool OutcomeWatch::MissedAgain(const Open& one) {
  if (!one.missed) return false;
  ++totals_.gone;
  Keep(one.key, "gone", "it was removed, or has ended and nothing is kept of it: see its type's `keep`");
  return true;
}

bool OutcomeWatch::Ended(const TaskKey& key, const TaskOutcome& outcome) {
  switch (outcome.state) {
    case TaskState::Waiting:
    case TaskState::Running:
    case TaskState::Held:
      return false;
    case TaskState::Succeeded:
      ++totals_.succeeded;
      return true;
    case TaskState::Failed:
      ++totals_.failed;
      break;
    case TaskState::Cancelled:
      ++totals_.cancelled;
      break;
  }
  Keep(key, ToString(outcome.state), outcome.why);
  return true;
}

void OutcomeWatch::Keep(const TaskKey& key, const char* state, std::string why) {
  if (totals_.others.size() < kEndsKept) totals_.others.push_back({key, state, std::move(why)});
}

Status OutcomeWatch::Look(TaskOperations& operations, BootTime now) {
  if (open_.empty()) return {};
  const TableName table = open_.front().key.table;
  std::vector<std::uint64_t> ids;
  for (const Open& one : open_) {
    if (one.key.table != table || ids.size() == kMaxBatchRows) break;
    ids.push_back(one.key.id);
  }
  BOOST_OUTCOME_TRY(outcomes, operations.Outcomes(table, ids));
  std::map<std::uint64_t, const TaskOutcome*> by_id;
  for (const TaskOutcome& outcome : outcomes) by_id[outcome.id] = &outcome;
  const std::size_t before = open_.size();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Open one = open_.front();
    open_.pop_front();
    const auto found = by_id.find(one.key.id);
    if (found == by_id.end() ? MissedAgain(one) : Ended(one.key, *found->second)) continue;
    open_.push_back({one.key, found == by_id.end()});
  }
  if (open_.size() < before) last_end_ = now;
  all_ended_ = open_.size() + ids.size() == before;
  return {};
}

Micros OutcomeWatch::Pause(BootTime now) const {
  if (all_ended_) return Micros(0);
  const auto since = std::chrono::duration_cast<Micros>(now - last_end_);
  return std::clamp<Micros>(since / 10, std::chrono::milliseconds(50), std::chrono::seconds(2));
}

}  // namespace millrace::engine
