#include "framework/mill/suspects.h"

#include <algorithm>

#include "framework/mill/attempt.h"

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

std::optional<ClaimRequest> Suspects::Turn(const std::string& incarnation, const MayClaim& may_claim,
                                           Micros others_take) {
  while (!waiting_.empty() && !may_claim(waiting_.front().group)) gate_.Withdraw(NameOf(TakeFirst().place));
  if (waiting_.empty() || !gate_.EnterAlone(NameOf(waiting_.front().place), others_take)) return std::nullopt;
  const Waiting turn = TakeFirst();
  records_.erase(turn.place);  // if it comes back it is looked into again
  return ClaimRequest{turn.place.first, incarnation, turn.attempt, {turn.place.second}};
}

void Suspects::Forget() {
  if (!waiting_.empty()) gate_.Withdraw(NameOf(waiting_.front().place));
  waiting_.clear();
  places_.clear();
}

// Each rescue cost the task an attempt that is no failure. So many claims without as many failures are looked
// into.
bool Suspects::MayObject(const Task& task) const {
  return HasCrashed(task.crashes) || task.attempt > task.failures + kSuspectRescues;
}

const Suspects::Record* Suspects::RecordOf(const Task& task) const {
  const auto known = records_.find({task.key.table, task.key.id});
  return known == records_.end() ? nullptr : &known->second;
}

// A task that snoozes often is looked into again only once it may have been rescued often enough.
bool Suspects::WantsRecord(const Task& task) const {
  if (HasCrashed(task.crashes)) return false;
  const Record* known = RecordOf(task);
  return known == nullptr || known->rescues + (task.attempt - known->attempt) >= kSuspectRescues;
}

void Suspects::Note(const Task& task, std::size_t rescues) {
  if (records_.size() >= kMostRecords) records_.clear();
  records_[{task.key.table, task.key.id}] = {task.attempt, rescues};
}

std::optional<Outcome> Suspects::Objection(const Task& task) {
  // Charged between its scan and its claim, or claimed by a statement whose reply was lost.
  if (HasCrashed(task.crashes)) return GivenBack();
  const Record* known = RecordOf(task);
  const std::size_t rescues = known == nullptr ? 0 : known->rescues;
  if (rescues < kSuspectRescues) return std::nullopt;
  if (rescues == kSuspectRescues) return GivenBack();
  records_.erase({task.key.table, task.key.id});
  return FailedForGood("quarantined: " + std::to_string(rescues) + " workers died while they had it",
                       "crash");
}

}  // namespace millrace::engine
