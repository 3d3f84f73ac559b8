// Bugs that are planted on purpose, to show that the simulator finds them: in the models, or round the
// machines; never in the product's code.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "coordinator/coordination/machine.h"

namespace millrace::engine {

enum class PlantedBug {
  None,
  ClaimWithoutDeadCheck,    // the claim's EXISTS is left out
  ClaimWithoutLock,         // the EXISTS looks at the flag without locking it
  SettleWithoutAttempt,     // the settle asks for the task and its claimer alone
  SettleWithoutClaimer,     // the settle asks for the task and its attempt alone
  KeyWithoutLock,           // the row whose key is entered may end in between
  MarkDeadWithoutBeat,      // the DELETE of the beat does not ask for the beat that was seen
  MarkDeadWithoutWatching,  // one look at a beat that stands still is enough
  WriteWithoutEpochCheck,   // the leader's multi does not begin with a check of its term
  PlanFromStaleMembers,     // the leader goes on with the workers that it saw first
  RescueFromTheLiving,      // a rescue takes from whoever else runs the row
  SnoozeCommits,            // the SQL of a handler that snoozes is committed
  StaleAfterReconnect,      // what was read before a reconnect is taken for fresh
  StaleAfterNewSession,     // so it is with a new session
  MoveInTwoMultis,          // what slices leave and what they join is written one after the other
  GoesOnAfterLoss,          // `stop` on the loss of ZooKeeper is not heeded
  EndsWithTasksInHand,      // a stop in good order does not wait for what is in hand
  ConfigUnheard,            // a process goes on with the configuration that it saw first
  AgingNeverRises,          // what waits gains no urgency, whatever is configured
  PermitBeforeSettle,       // a permit is free for others before its task is settled
  BreakerCharges,           // a failure is charged whatever the breaker says
  PermitWithoutDeadCheck,   // who takes a permit may be marked dead
  LimitUndivided,           // each worker has the whole of a rate
  HoursUnheeded,            // tasks start outside their hours
  ForgetsInFlight,          // what a thread starts leaves the in-flight set
  GivesUpEarly,             // the first failure of a task is its last
  WatchesThroughOutages,    // an outage in which nobody can beat counts as time without a beat
  RateExceeded,             // a third more starts than a share lets
  PauseUnheeded,            // a process never hears of the red button
  DrainUnheeded,            // the leader never hears that a worker is drained
};

struct PlantedBugName {
  PlantedBug bug;
  std::string_view name;
};
inline constexpr std::array kPlantedBugs{
    PlantedBugName{PlantedBug::ClaimWithoutDeadCheck, "claim-without-dead-check"},
    PlantedBugName{PlantedBug::ClaimWithoutLock, "claim-without-lock"},
    PlantedBugName{PlantedBug::SettleWithoutAttempt, "settle-without-attempt"},
    PlantedBugName{PlantedBug::SettleWithoutClaimer, "settle-without-claimer"},
    PlantedBugName{PlantedBug::KeyWithoutLock, "key-without-lock"},
    PlantedBugName{PlantedBug::MarkDeadWithoutBeat, "mark-dead-without-beat"},
    PlantedBugName{PlantedBug::MarkDeadWithoutWatching, "mark-dead-without-watching"},
    PlantedBugName{PlantedBug::WriteWithoutEpochCheck, "write-without-epoch-check"},
    PlantedBugName{PlantedBug::PlanFromStaleMembers, "plan-from-stale-members"},
    PlantedBugName{PlantedBug::RescueFromTheLiving, "rescue-from-the-living"},
    PlantedBugName{PlantedBug::SnoozeCommits, "snooze-commits"},
    PlantedBugName{PlantedBug::StaleAfterReconnect, "stale-after-reconnect"},
    PlantedBugName{PlantedBug::StaleAfterNewSession, "stale-after-new-session"},
    PlantedBugName{PlantedBug::MoveInTwoMultis, "move-in-two-multis"},
    PlantedBugName{PlantedBug::GoesOnAfterLoss, "goes-on-after-loss"},
    PlantedBugName{PlantedBug::EndsWithTasksInHand, "ends-with-tasks-in-hand"},
    PlantedBugName{PlantedBug::ConfigUnheard, "config-unheard"},
    PlantedBugName{PlantedBug::AgingNeverRises, "aging-never-rises"},
    PlantedBugName{PlantedBug::PermitBeforeSettle, "permit-before-settle"},
    PlantedBugName{PlantedBug::BreakerCharges, "breaker-charges"},
    PlantedBugName{PlantedBug::PermitWithoutDeadCheck, "permit-without-dead-check"},
    PlantedBugName{PlantedBug::LimitUndivided, "limit-undivided"},
    PlantedBugName{PlantedBug::HoursUnheeded, "hours-unheeded"},
    PlantedBugName{PlantedBug::ForgetsInFlight, "forgets-in-flight"},
    PlantedBugName{PlantedBug::GivesUpEarly, "gives-up-early"},
    PlantedBugName{PlantedBug::WatchesThroughOutages, "watches-through-outages"},
    PlantedBugName{PlantedBug::RateExceeded, "rate-exceeded"},
    PlantedBugName{PlantedBug::PauseUnheeded, "pause-unheeded"},
    PlantedBugName{PlantedBug::DrainUnheeded, "drain-unheeded"},
};

// One that any machine may have, and not only the leader.
inline bool IsOfAMirror(PlantedBug bug) {
  return bug == PlantedBug::StaleAfterReconnect || bug == PlantedBug::StaleAfterNewSession;
}

// One of the member alone.
inline bool IsOfAMember(PlantedBug bug) {
  return bug == PlantedBug::ConfigUnheard || bug == PlantedBug::PauseUnheeded;
}

// A machine round another, which spoils what that one asks or hears. Not thread-safe.
class SpoiledMachine final : public TreeMachine {
 public:
  SpoiledMachine(TreeMachine& inner, PlantedBug bug) : inner_(inner), bug_(bug) {}

  void Event(const TreeEvent& event, BootTime now) override;
  std::optional<TreeRequest> Next(BootTime now) override;
  void Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) override;
  BootTime WakeAt(BootTime now) const override { return inner_.WakeAt(now); }

 private:
  std::optional<TreeRequest> Split(TreeRequest write);
  // What the machine hears of a read.
  const TreeReply& Spoiled(const TreeRequest& request, const TreeReply& reply);

  TreeMachine& inner_;
  const PlantedBug bug_;
  std::optional<TreeRequest> second_;  // half of a write
  std::int64_t session_ = 0;
  std::map<std::string, TreeReply> heard_;  // by what was read
  std::set<std::string> stuck_;             // of these, what is told again until a watch says otherwise
  TreeRequest written_;                     // what the inner machine asked to write last
};

}  // namespace millrace::engine
