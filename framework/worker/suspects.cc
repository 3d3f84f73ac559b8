#include "framework/worker/suspects.h"

#include <algorithm>

#include "framework/mill/engine_outcome.h"

namespace millrace::engine {
namespace {

constexpr std::uint32_t kSuspectCrashes = 2;
constexpr std::uint32_t kQuarantineCrashes = 3;
constexpr std::size_t kSuspectRescues = 5;
constexpr std::size_t kMostRecords = 10'000;
constexpr std::size_t kMostWaiting = 2'000;

bool HasCrashed(std::uint32_t crashes) { return crashes >= kSuspectCrashes && crashes < kQuarantineCrashes; }

}  // namespace

std::string Suspects::NameOf(const Place& place) const {
  return ToString(TaskName{shard_, {place.first, place.second}});
}

bool Suspects::IsSuspect(const DueGroup& group, const ScanRow& row) {
  const Place place{group.table, row.id};
  const auto record = records_.find(place);
  const bool often_rescued = record != records_.end() && record->second.rescues >= kSuspectRescues;
  if (!often_rescued && !HasCrashed(row.crashes)) return false;
  if (waiting_.size() < kMostWaiting && places_.insert(place).second) {
    waiting_.push_back({group, place, row.attempt});
  }
  return true;
}

Suspects::Waiting Suspects::TakeFirst() {
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  places_.erase(first.place);
  return first;
}

std::optional<ClaimRequest> Suspects::Turn(const std::string& incarnation, const MayClaim& may_claim) {
  while (!waiting_.empty() && !may_claim(waiting_.front().group)) gate_.Withdraw(NameOf(TakeFirst().place));
  if (waiting_.empty() || !gate_.EnterAlone(NameOf(waiting_.front().place))) return std::nullopt;
  const Waiting turn = TakeFirst();
  records_.erase(turn.place);  // if it comes back it is looked into again
  return ClaimRequest{turn.place.first, incarnation, turn.attempt, {turn.place.second}};
}

void Suspects::Forget() {
  if (!waiting_.empty()) gate_.Withdraw(NameOf(waiting_.front().place));
  waiting_.clear();
  places_.clear();
}

std::optional<Outcome> Suspects::Objection(const Task& task) {
  // Charged between its scan and its claim, or claimed by a statement whose reply was lost.
  if (HasCrashed(task.crashes)) return GivenBack();
  const std::size_t rescues = RescuesOf(task);
  if (rescues < kSuspectRescues) return std::nullopt;
  if (rescues == kSuspectRescues) return GivenBack();
  records_.erase({task.key.table, task.key.id});
  return FailedForGood("quarantined: " + std::to_string(rescues) + " workers died while they had it",
                       "crash");
}

// Each rescue cost the task an attempt that is no failure. So many claims without as many failures are looked
// into; a task that snoozes often is looked into again only once it may have been rescued often enough.
std::size_t Suspects::RescuesOf(const Task& task) {
  if (task.attempt <= task.failures + kSuspectRescues) return 0;
  const Place place{task.key.table, task.key.id};
  const auto known = records_.find(place);
  if (known != records_.end()) {
    const Record& record = known->second;
    if (record.rescues + (task.attempt - record.attempt) < kSuspectRescues) return record.rescues;
  }
  const auto found = desk_->Get(task.key);
  if (!found) return 0;
  const auto rescues = static_cast<std::size_t>(
      std::count_if(found->attempts.begin(), found->attempts.end(),
                    [](const AttemptRecord& attempt) { return attempt.kind == "rescued"; }));
  if (records_.size() >= kMostRecords) records_.clear();
  records_[place] = {task.attempt, rescues};
  return rescues;
}

}  // namespace millrace::engine
