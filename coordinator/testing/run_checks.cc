#include "coordinator/testing/run_checks.h"

#include <algorithm>

#include "coordinator/testing/simulated_work.h"

namespace millrace::engine {
namespace {

// A worker that goes on after it was stopped looks at its clocks within its watch's tick.
constexpr Micros kToLook = std::chrono::milliseconds(200);
// A write that binds a permit may have been carried out so long before its reply is known.
constexpr Micros kReply = std::chrono::seconds(2);
// Beats that a failover brings back to numbers seen before may let a live worker be marked dead.
constexpr Micros kLeftAlone = 2 * kSimulatedLease;

}  // namespace

std::uint64_t RunChecks::Began(Run run) {
  std::erase_if(runs_, [this](const auto& entry) { return entry.second.returned && !Holds(entry.second); });
  const std::uint64_t id = ++last_;
  Entry& mine = runs_[id] = {std::move(run)};
  if (mine.run.concurrency == 0) return id;
  ++limited_;
  std::size_t all = 0;
  std::size_t counted = 0;
  std::string names;
  for (const auto& [number, other] : runs_) {
    if (other.run.type != mine.run.type || !Holds(other)) continue;
    ++all;
    if (IsExcused(other)) continue;
    ++counted;
    names += (names.empty() ? "" : ", ") + ToString(other.run.task) + " of shard " +
             std::to_string(other.run.shard) + " by " + other.run.process->name +
             (other.returned ? " (not settled)" : "");
  }
  if (all > mine.run.concurrency) ++overlaps_;
  if (counted > mine.run.concurrency) {
    journal_.Violation("of " + mine.run.type + ", which is limited to " +
                       std::to_string(mine.run.concurrency) + " at once, these run: " + names);
  }
  return id;
}

void RunChecks::Returned(std::uint64_t run) {
  if (const auto entry = runs_.find(run); entry != runs_.end()) entry->second.returned = true;
}

void RunChecks::GivenUp(std::uint64_t run) {
  if (const auto entry = runs_.find(run); entry != runs_.end()) entry->second.given_up = true;
}

void RunChecks::Died(const ModelledProcess& process) {
  std::erase_if(runs_, [&](const auto& entry) { return entry.second.run.process == &process; });
}

bool RunChecks::Alive(const std::string& home) const {
  return std::any_of(databases_.begin(), databases_.end(),
                     [&](const ModelledDatabase& database) { return database.shard().IsAlive(home); });
}

// A permit that was lost with its holder's life in the home is free, whatever its task's row says.
bool RunChecks::Holds(const Entry& entry) const {
  if (!entry.returned) return true;
  const Run& run = entry.run;
  const CompactShard& shard = databases_.at(run.shard).shard();
  const CompactRow* row = shard.Find(run.task);
  const bool runs = row != nullptr && row->state == TaskState::Running && row->claimed_by == run.life &&
                    row->attempt == run.attempt;
  return runs && shard.IsAlive(run.life) && Alive(run.home);
}

bool RunChecks::FailedOver(const Run& run) const {
  return std::any_of(databases_.begin(), databases_.end(), [&](const ModelledDatabase& database) {
    const BootTime at = database.checked().FailedOver();
    return at != BootTime{} && (at >= run.handed - kReply || timeline_.Now() - at < kLeftAlone);
  });
}

bool RunChecks::IsExcused(const Entry& entry) const {
  const auto& threads = entry.run.process->threads;
  const BootTime watched = threads[static_cast<std::size_t>(ThreadName::Watch)].held_until;
  return entry.given_up || timeline_.Now() - watched < kToLook || FailedOver(entry.run);
}

}  // namespace millrace::engine
