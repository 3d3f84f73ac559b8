#include "coordinator/testing/simulation.h"

#include <deque>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/testing/fault_injector.h"
#include "coordinator/testing/tree_checks.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMany = 8;                 // enough for a mass loss; in one of eight clusters
constexpr std::uint64_t kKeys = 8;               // of each handler; a fifth of the tasks have one
constexpr Micros kLongestPatience = seconds(3);  // of who cancels a task after submitting it
constexpr Micros kBeforeFaults = seconds(4);
constexpr Micros kFaultSpan = seconds(42);
constexpr Micros kAfterFaults = seconds(4);
constexpr Micros kLeave = seconds(5);
constexpr Micros kLeastLength = seconds(60);
constexpr Micros kLook = milliseconds(500);
// After the last fault: an outage's hold and a flapping worker's probation run out, tasks end.
constexpr Micros kLongestRecovery = seconds(60);
constexpr Micros kLongestProbation = seconds(6);
// Without a change, before the plan is called stable: longer than anything waits for its time to come.
constexpr Micros kStable = kLongestProbation + seconds(3);
constexpr Micros kLongestUnowned = seconds(15);  // while somebody healthy could see to it

// The times of a real cluster, scaled down so that a minute has room for twenty faults.
CalmOptions Calm(Random& random) {
  CalmOptions calm;
  calm.session_timeout = seconds(3);
  calm.quiet = milliseconds(1'500);
  calm.hold = seconds(6);
  calm.probation = random.Below(2) == 0 ? Micros(0) : seconds(2);
  calm.longest_probation = kLongestProbation;
  return calm;
}

// In some clusters a worker takes only some of the task types, so that each type's slices have owners of
// their own; in some a worker is to have more of them. Each of the handlers makes a group of its own then.
SimulatedWork Work(Random& random) {
  SimulatedWork work{4 + static_cast<std::uint32_t>(random.Below(7)), {"pay"}};
  if (random.Below(8) == 0) {
    work.workers = kMany;
    work.slices *= 3;
  }
  switch (random.Below(6)) {
    case 0:
      work.handlers = {"pay", "ship"};
      work.limits["w3"] = {"pay"};
      break;
    case 1:
      work.handlers = {"mail", "pay", "ship"};
      work.limits["w2"] = {"ship"};
      work.limits["w3"] = {"pay"};
      break;
    case 2:
      work.weights["w1"] = 2;
      break;
    default:
      break;
  }
  return work;
}

ShardGuards GuardsFor(PlantedBug bug) {
  ShardGuards guards;
  guards.claim_needs_life = bug != PlantedBug::ClaimWithoutDeadCheck && bug != PlantedBug::ClaimWithoutLock;
  guards.settle_needs_attempt = bug != PlantedBug::SettleWithoutAttempt;
  guards.rescue_needs_death = bug != PlantedBug::RescueFromTheLiving;
  guards.mark_needs_beat = bug != PlantedBug::MarkDeadWithoutBeat;
  return guards;
}

ClaimCheck CheckFor(PlantedBug bug) {
  if (bug == PlantedBug::ClaimWithoutDeadCheck) return ClaimCheck::None;
  return bug == PlantedBug::ClaimWithoutLock ? ClaimCheck::Unlocked : ClaimCheck::Locked;
}

MillSettings MillFor(PlantedBug bug) {
  MillSettings settings;
  settings.bugs.marks_without_watching = bug == PlantedBug::MarkDeadWithoutWatching;
  settings.handlers.snooze_commits = bug == PlantedBug::SnoozeCommits;
  settings.bugs.rescues_from_the_living = bug == PlantedBug::RescueFromTheLiving;
  return settings;
}

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        timeline_(options.seed),
        journal_(timeline_, options.trace),
        work_(Work(timeline_.random())),
        calm_(Calm(timeline_.random())),
        mill_(MillFor(options.bug)),
        ensemble_(timeline_),
        database_(timeline_, journal_, GuardsFor(options.bug), CheckFor(options.bug)),
        cluster_{timeline_, ensemble_, database_, journal_, mill_, calm_, work_, Catalog(), options.bug},
        checks_(timeline_, ensemble_, journal_, work_),
        faults_(cluster_, workers_) {}

  SimulationReport Run() {
    for (const FixedNode& node : kFixedNodes) {
      ensemble_.WriteNow({{TreeWrite::Kind::Create, std::string(node.path), std::string(node.data)}});
    }
    for (std::size_t i = 1; i <= work_.workers; ++i) {
      workers_.emplace_back(cluster_, "w" + std::to_string(i)).Start();
    }
    Produce();
    timeline_.After(kLook, [this] { Look(); });
    Go(kBeforeFaults);
    faults_.Schedule(options_.faults, kFaultSpan);
    Go(kFaultSpan);
    faults_.Heal();
    Go(kAfterFaults);
    checks_.CountMoves();
    LeaveAndRejoin();
    Recover();
    return Report();
  }

 private:
  Micros Elapsed() const { return timeline_.Now() - Timeline::kBeginning; }
  bool Failed() const { return !journal_.FirstViolation().empty(); }

  void Go(Micros span) {
    const BootTime end = timeline_.Now() + span;
    while (!Failed() && timeline_.Step(end)) {
    }
  }

  std::shared_ptr<const TableCatalog> Catalog() const {
    return std::make_shared<const TableCatalog>(
        TableCatalog{{{SimulatedWork::kShard, CompactShard::kTable, work_.slices}}});
  }

  // Tasks come until the faults end, now and then several at once.
  void Produce() {
    if (Elapsed() > kBeforeFaults + kFaultSpan) return;
    for (std::uint64_t i = timeline_.random().Below(3); database_.Up() && i > 0; --i) {
      const auto slice = static_cast<std::uint32_t>(timeline_.random().Below(work_.slices));
      const std::string& handler = work_.handlers[timeline_.random().Below(work_.handlers.size())];
      const std::uint64_t dice = timeline_.random().Below(5 * kKeys);
      const std::string key = dice < kKeys ? "key " + std::to_string(dice) : "";
      const std::uint64_t id = database_.shard().Insert(slice, handler, database_.clock().WallNow(), key);
      if (timeline_.random().Below(20) == 0) Cancel(id);
    }
    timeline_.After(milliseconds(200 + static_cast<std::int64_t>(timeline_.random().Below(1'600))),
                    [this] { Produce(); });
  }

  void Cancel(std::uint64_t id) {
    timeline_.After(Micros(static_cast<std::int64_t>(timeline_.random().Below(kLongestPatience.count()))),
                    [this, id] {
                      if (database_.Up()) database_.shard().Cancel(id);
                    });
  }

  void Look() {
    bool possible = false;
    for (const SimulatedWorker& worker : workers_) possible = possible || worker.Healthy();
    checks_.CheckOwned(possible && faults_.EnsembleHealthy(), kLongestUnowned);
    timeline_.After(kLook, [this] { Look(); });
  }

  // Empty: all is as it should be.
  std::string Unfinished() const {
    if (checks_.Members().size() < work_.workers) return "not every worker has come back";
    const std::string unowned = checks_.FirstUnowned();
    if (!unowned.empty()) return unowned + " has no owner";
    for (const CompactRow& row : database_.shard().rows()) {
      if (row.state != TaskState::Waiting && row.state != TaskState::Running) continue;
      return "task " + std::to_string(row.id) + " of slice " + std::to_string(row.slice) + " is " +
             ToString(row.state) + " under '" + row.claimed_by + "', attempt " + std::to_string(row.attempt);
    }
    if (timeline_.Now() - checks_.QuietSince() < kStable) return "the plan is not stable";
    for (const SimulatedWorker& worker : workers_) {
      if (worker.LeadsSettled()) return {};
    }
    return "nobody leads, or the leader has moves that wait";
  }

  // In fair weather a leave moves the leaver's slices alone, and a join the fewest that balance takes.
  void LeaveAndRejoin() {
    if (Failed() || timeline_.random().Below(4) != 0) return;
    SimulatedWorker& worker = workers_[timeline_.random().Below(workers_.size())];
    if (timeline_.random().Below(2) == 0) {
      worker.Leave();
    } else {
      worker.Crash();
    }
    Go(kLeave);
    worker.Start();
  }

  void Recover() {
    const BootTime latest = timeline_.Now() + kLongestRecovery;
    while (!Failed() && timeline_.Now() < latest && (!Unfinished().empty() || Elapsed() < kLeastLength)) {
      Go(kLook);
    }
    if (Failed()) return;
    if (const std::string what = Unfinished(); !what.empty()) {
      journal_.Violation("long after the last fault: " + what);
      return;
    }
    checks_.CheckBalanced();
    // A worker on probation gets its share in a step of its own, so that the steps are not one plan.
    if (calm_.probation == Micros(0)) checks_.CheckFewestMoves();
  }

  SimulationReport Report() {
    CheckedShard& shard = database_.checked();
    return {journal_.FirstViolation(),
            Elapsed(),
            timeline_.Steps(),
            faults_.Faults(),
            shard.shard().rows().size(),
            shard.Rescued(),
            shard.Refused(),
            shard.MarkedDead(),
            checks_.Moves(),
            checks_.Epoch(),
            checks_.LongestUnowned()};
  }

  const SimulationOptions& options_;
  Timeline timeline_;
  Journal journal_;
  const SimulatedWork work_;
  const CalmOptions calm_;
  const MillSettings mill_;
  ModelledEnsemble ensemble_;
  ModelledDatabase database_;
  const SimulatedCluster cluster_;
  TreeChecks checks_;
  std::deque<SimulatedWorker> workers_;
  FaultInjector faults_;
};

}  // namespace

SimulationReport Simulate(const SimulationOptions& options) { return Simulation(options).Run(); }

}  // namespace millrace::engine
