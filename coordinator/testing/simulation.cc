#include "coordinator/testing/simulation.h"

#include <deque>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/testing/fault_injector.h"
#include "coordinator/testing/longest_wait.h"
#include "coordinator/testing/tree_checks.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMany = 8;                 // enough for a mass loss; in one of eight clusters
constexpr std::uint64_t kKeys = 8;               // of each handler; a fifth of the tasks have one
constexpr Micros kLongestPatience = seconds(3);  // of who cancels a task after submitting it
constexpr std::uint32_t kManyCalls = 8;          // enough for a breaker to tell by
constexpr int kFloods = 2;
constexpr std::uint32_t kFlood = 12;  // seconds' worth of a rate
constexpr std::uint32_t kLongFlood =
    40;  // in one of four clusters: as long as starts are counted, and longer
constexpr Micros kBeforeFaults = seconds(4);
constexpr Micros kFaultSpan = seconds(42);
constexpr Micros kAfterFaults = seconds(4);
constexpr Micros kLeave = seconds(5);
constexpr Micros kLeastLength = seconds(60);
constexpr Micros kLook = milliseconds(500);
// After the last fault: an outage's hold and a flapping worker's probation run out.
constexpr Micros kLongestRecovery = seconds(90);
// Until then what is due may wait for its slice to be owned, and its claimer to be marked dead.
constexpr Micros kTasksFlow = seconds(40);
constexpr Micros kLongestProbation = seconds(6);
// Without a change, before the plan is called stable: longer than anything waits for its time to come.
constexpr Micros kStable = kLongestProbation + seconds(3);
constexpr Micros kLongestUnfollowed = kReadAgain + seconds(6);
constexpr Micros kLongestUnowned = seconds(15);  // while somebody healthy could see to it

// The times of a real cluster, scaled down so that a minute has room for some twenty faults.
CalmOptions Calm(Random& random) {
  CalmOptions calm;
  calm.session_timeout = seconds(3);
  calm.quiet = milliseconds(1'500);
  calm.hold = seconds(6);
  calm.probation = random.Below(2) == 0 ? Micros(0) : seconds(2);
  calm.longest_probation = kLongestProbation;
  return calm;
}

// And every third may start only so many a second; more than that come now and then.
void LimitRates(SimulatedWork& work, Random& random) {
  for (const std::string& handler : work.handlers) {
    if (random.Below(3) == 0) work.rates[handler] = 2u << random.Below(2);
  }
}

// Every third task type calls somebody who fails for a while.
void BreakPartners(SimulatedWork& work, Random& random) {
  for (const std::string& handler : work.handlers) {
    if (random.Below(3) != 0) continue;
    const BootTime from = Timeline::kBeginning + kBeforeFaults + seconds(random.Below(25));
    work.outages[handler] = {from, from + seconds(4 + random.Below(12))};
  }
}

// In some clusters a worker takes only some of the task types, so that each type's slices have owners of
// their own; in some a worker is to have more of them. Each of the handlers makes a group of its own then.
SimulatedWork Work(Random& random) {
  SimulatedWork work;
  work.slices = 4 + static_cast<std::uint32_t>(random.Below(7));
  work.handlers = {"pay"};
  if (random.Below(2) == 0) work.shards = {"main", "north"};
  if (random.Below(2) == 0) work.tables = {"tasks_000", "tasks_001"};
  if (random.Below(8) == 0) {
    work.workers = kMany;
    work.slices *= 2;
  }
  // So small that a plan takes several pages a worker, and several multis.
  if (random.Below(2) == 0) {
    work.bounds.longest_page = 350;
    work.bounds.longest_multi = 1'100;
    work.bounds.most_pages = 6;
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
  BreakPartners(work, random);
  LimitRates(work, random);
  return work;
}

ShardGuards GuardsFor(PlantedBug bug) {
  ShardGuards guards;
  guards.claim_needs_life = bug != PlantedBug::ClaimWithoutDeadCheck && bug != PlantedBug::ClaimWithoutLock;
  guards.settle_needs_claimer = bug != PlantedBug::SettleWithoutClaimer;
  guards.settle_needs_attempt = bug != PlantedBug::SettleWithoutAttempt;
  guards.rescue_needs_death = bug != PlantedBug::RescueFromTheLiving;
  guards.permit_needs_life = bug != PlantedBug::PermitWithoutDeadCheck;
  guards.mark_needs_beat = bug != PlantedBug::MarkDeadWithoutBeat;
  return guards;
}

ModelledDatabase::Bugs DatabaseFor(PlantedBug bug) {
  ModelledDatabase::Bugs bugs{.guards = GuardsFor(bug),
                              .keys_without_lock = bug == PlantedBug::KeyWithoutLock};
  bugs.permits_without_check = bug == PlantedBug::PermitWithoutDeadCheck;
  if (bug == PlantedBug::ClaimWithoutDeadCheck) bugs.claim_check = ClaimCheck::None;
  if (bug == PlantedBug::ClaimWithoutLock) bugs.claim_check = ClaimCheck::Unlocked;
  return bugs;
}

// Every other simulation has claims so small that a run stage has room for two: one is sent ahead then.
constexpr std::size_t kSmallBatch = 2;

MillSettings MillFor(PlantedBug bug, std::uint64_t seed) {
  MillSettings settings;
  if (seed % 2 == 0) settings.batch = kSmallBatch;
  settings.bugs.marks_without_watching = bug == PlantedBug::MarkDeadWithoutWatching;
  settings.bugs.watches_through_outages = bug == PlantedBug::WatchesThroughOutages;
  settings.handlers.snooze_commits = bug == PlantedBug::SnoozeCommits;
  settings.handlers.charges_failures = bug == PlantedBug::BreakerCharges;
  settings.handlers.frees_before_settle = bug == PlantedBug::PermitBeforeSettle;
  settings.bugs.rescues_from_the_living = bug == PlantedBug::RescueFromTheLiving;
  settings.bugs.ends_with_tasks_in_hand = bug == PlantedBug::EndsWithTasksInHand;
  settings.bugs.never_ages = bug == PlantedBug::AgingNeverRises;
  settings.bugs.limits_undivided = bug == PlantedBug::LimitUndivided;
  settings.handlers.forgets_in_flight = bug == PlantedBug::ForgetsInFlight;
  settings.handlers.gives_up_early = bug == PlantedBug::GivesUpEarly;
  settings.bugs.exceeds_rates = bug == PlantedBug::RateExceeded;
  settings.bugs.hours_unheeded = bug == PlantedBug::HoursUnheeded;
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
        mill_(MillFor(options.bug, options.seed)),
        ensemble_(timeline_),
        runs_(timeline_, ensemble_, databases_, journal_),
        cluster_{timeline_, ensemble_, databases_, journal_, mill_, calm_, work_, runs_, options.bug},
        times_(timeline_, journal_),
        operator_(cluster_, workers_, times_),
        checks_(
            timeline_, ensemble_, journal_, work_, [this](std::size_t shard) { return TablesOf(shard); },
            [this](const std::string& worker) { return WellSince(worker); }),
        faults_(cluster_, workers_, times_, operator_,
                {[this](std::size_t shard) { AddSome(shard); },
                 [this](std::size_t shard, const std::string& handler, const std::string& key,
                        Micros patience) { AddKeyed(shard, handler, key, patience); }}) {
    for (const std::string& shard : work_.shards) {
      databases_.emplace_back(timeline_, journal_, DatabaseFor(options.bug),
                              CheckedShard::Schema{shard, work_.tables, work_.slices});
    }
  }

  SimulationReport Run() {
    for (const FixedNode& node : kFixedNodes) {
      ensemble_.WriteNow({{TreeWrite::Kind::Create, std::string(node.path), std::string(node.data)}});
    }
    operator_.SetUp();
    for (std::size_t i = 1; i <= work_.workers; ++i) {
      workers_.emplace_back(cluster_, "w" + std::to_string(i)).Start();
    }
    Produce();
    for (const auto& [handler, outage] : work_.outages) {
      timeline_.After(outage.from - timeline_.Now(), [this, type = handler] {
        journal_.Trace("whom " + type + " calls is broken from now on");
        AddMany(type, kManyCalls);
      });
    }
    Flood();
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

  std::vector<TableInfo> TablesOf(std::size_t shard) const {
    const bool served = shard < databases_.size() && operator_.Serves(shard);
    return served ? databases_[shard].shard().Tables() : std::vector<TableInfo>();
  }

  BootTime WellSince(const std::string& name) {
    for (SimulatedWorker& worker : workers_) {
      if (worker.name() == name) return std::max(ensemble_.WellSince(), worker.process().WellSince());
    }
    return timeline_.Now();
  }

  void Flood() {
    for (const auto& [handler, rate] : work_.rates) {
      std::uint32_t worth = timeline_.random().Below(4) == 0 ? kLongFlood : kFlood;
      for (int flood = 0; flood < kFloods; ++flood) {
        timeline_.After(kBeforeFaults + Between(kFaultSpan),
                        [this, type = handler, tasks = worth * rate] { AddMany(type, tasks); });
        worth = kFlood;
      }
    }
  }

  // Tasks come until the faults end, now and then several at once.
  void Produce() {
    if (Elapsed() > kBeforeFaults + kFaultSpan) return;
    for (std::uint64_t i = timeline_.random().Below(3); i > 0; --i)
      Add(timeline_.random().Below(databases_.size()));
    timeline_.After(milliseconds(200 + static_cast<std::int64_t>(timeline_.random().Below(1'600))),
                    [this] { Produce(); });
  }

  void AddSome(std::size_t shard) {
    for (std::uint64_t i = 2 + timeline_.random().Below(4); i > 0; --i) Add(shard);
  }

  void Add(std::size_t shard) {
    if (!databases_[shard].Up()) return;
    const CompactTable& table = AnyTable(shard);
    const std::uint32_t slice = AnySlice(table);
    const std::string& handler = work_.handlers[timeline_.random().Below(work_.handlers.size())];
    const std::uint64_t dice = timeline_.random().Below(5 * kKeys);
    const TaskKey task =
        Insert(shard, table, slice, handler, dice < kKeys ? "key " + std::to_string(dice) : "");
    if (timeline_.random().Below(20) == 0) Cancel(shard, task, Between(kLongestPatience));
  }

  Micros Between(Micros longest) {
    return Micros(static_cast<std::int64_t>(timeline_.random().Below(longest.count())));
  }

  void AddMany(const std::string& handler, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t shard = timeline_.random().Below(databases_.size());
      if (!databases_[shard].Up()) continue;
      const CompactTable& table = AnyTable(shard);
      Insert(shard, table, AnySlice(table), handler, "");
    }
  }

  void AddKeyed(std::size_t shard, const std::string& handler, const std::string& key, Micros patience) {
    if (!databases_[shard].Up()) return;
    const CompactTable& table = AnyTable(shard);
    const TaskKey task = Insert(shard, table, AnySlice(table), handler, key);
    if (patience > Micros(0)) Cancel(shard, task, patience);
  }

  const CompactTable& AnyTable(std::size_t shard) {
    return databases_[shard].shard().tables()[timeline_.random().Below(work_.tables.size())];
  }

  std::uint32_t AnySlice(const CompactTable& table) {
    return static_cast<std::uint32_t>(timeline_.random().Below(table.slices));
  }

  TaskKey Insert(std::size_t shard, const CompactTable& table, std::uint32_t slice,
                 const std::string& handler, const std::string& key) {
    ModelledDatabase& database = databases_[shard];
    ++added_;
    const auto priority = static_cast<std::uint32_t>(timeline_.random().Below(10));
    return {table.name,
            database.shard().Insert(table.name, slice, handler, database.clock().WallNow(), key, priority)};
  }

  void Cancel(std::size_t shard, const TaskKey& task, Micros patience) {
    timeline_.After(patience, [this, shard, task] {
      if (databases_[shard].Up()) databases_[shard].shard().Cancel(task);
    });
  }

  void Look() {
    bool possible = false;
    for (const SimulatedWorker& worker : workers_) possible = possible || worker.Healthy();
    for (const ModelledDatabase& database : databases_) possible = possible && database.Up();
    possible = possible && faults_.EnsembleHealthy();
    operator_.CheckFollowed(faults_.EnsembleHealthy(), kLongestUnfollowed);
    checks_.LookAtTables();
    checks_.CheckOwned(possible, kLongestUnowned);
    timeline_.After(kLook, [this] { Look(); });
  }

  // Empty: all is as it should be.
  std::string Unfinished() const {
    if (checks_.Members().size() < work_.workers) return "not every worker has come back";
    const std::string unowned = checks_.FirstUnowned();
    if (!unowned.empty()) return unowned + " has no owner";
    if (const std::string behind = operator_.FirstBehind(); !behind.empty())
      return behind + " does not go by the configuration in force";
    std::string open;
    EachOpen([&](std::size_t shard, const TableName& table, const CompactRow& row) {
      if (open.empty()) open = WordsOf(shard, table, row);
    });
    if (!open.empty()) return open;
    if (timeline_.Now() - checks_.QuietSince() < kStable) return "the plan is not stable";
    for (const SimulatedWorker& worker : workers_) {
      if (worker.LeadsSettled()) return {};
    }
    return "nobody leads, or the leader has moves that wait";
  }

  // Tasks that have not ended.
  template <class Told>
  void EachOpen(Told told) const {
    for (std::size_t shard = 0; shard < databases_.size(); ++shard) {
      const CheckedShard& checked = databases_[shard].checked();
      for (const CompactTable& table : checked.shard().tables()) {
        for (const std::uint64_t id : table.open) {
          if (!checked.MayRest({table.name, id})) told(shard, table.name, table.rows[id - 1]);
        }
      }
    }
  }

  std::string WordsOf(std::size_t shard, const TableName& table, const CompactRow& row) const {
    return "task " + work_.shards[shard] + "/" + ToString(TaskKey{table, row.id}) + " of slice " +
           std::to_string(row.slice) + ", a " + row.handler + ", is " + ToString(row.state) + " under '" +
           row.claimed_by + "', attempt " + std::to_string(row.attempt);
  }

  // By task type: when the last of its tasks has ended, by what the configuration says.
  std::map<std::string, BootTime> LatestEnds() const {
    std::map<std::string, std::size_t> open;
    std::size_t all = 0;
    EachOpen([&](std::size_t, const TableName&, const CompactRow& row) {
      ++open[row.handler];
      ++all;
    });
    std::map<std::string, BootTime> latest;
    for (const std::string& type : work_.handlers) {
      const HandlerConfig& handler = operator_.Truth()->HandlerFor(type);
      const Micros wait =
          LongestWait(handler, open[type], all, mill_.handlers, TimelineClock(timeline_).WallNow());
      latest[type] = timeline_.Now() + kTasksFlow + wait;
    }
    return latest;
  }

  void CheckWaits(const std::map<std::string, BootTime>& latest) {
    EachOpen([&](std::size_t shard, const TableName& table, const CompactRow& row) {
      if (timeline_.Now() <= latest.at(row.handler)) return;
      journal_.Violation("longer than by its type's configuration " + WordsOf(shard, table, row));
    });
  }

  // In fair weather a leave moves the leaver's slices alone, and a join the fewest that balance takes.
  void LeaveAndRejoin() {
    if (Failed() || timeline_.random().Below(4) != 0) return;
    SimulatedWorker& worker = workers_[timeline_.random().Below(workers_.size())];
    worker.EndBy(timeline_.random().Below(3));
    Go(kLeave);
    worker.Start();
  }

  void Recover() {
    const std::map<std::string, BootTime> ends = LatestEnds();
    BootTime latest = timeline_.Now() + kLongestRecovery;
    for (const auto& [type, end] : ends) latest = std::max(latest, end + kStable);
    while (!Failed() && timeline_.Now() < latest && (!Unfinished().empty() || Elapsed() < kLeastLength)) {
      Go(kLook);
      CheckWaits(ends);
    }
    if (Failed()) return;
    if (const std::string what = Unfinished(); !what.empty()) {
      journal_.Violation("long after the last fault: " + what);
      return;
    }
    checks_.CheckBalanced();
    // A worker on probation gets its share in a step of its own, so that the steps are not one plan; nor are
    // those of a leader that was not told who is back, and reads it later.
    const bool told = checks_.MembershipSince() > faults_.NewsLostUntil() + kReadAgain;
    if (calm_.probation == Micros(0) && told) checks_.CheckFewestMoves();
  }

  SimulationReport Report() {
    SimulationReport report{.violation = journal_.FirstViolation(),
                            .simulated = Elapsed(),
                            .steps = timeline_.Steps(),
                            .faults = faults_.Faults(),
                            .tasks = added_,
                            .moves = checks_.Moves(),
                            .multis = checks_.Multis(),
                            .changes = operator_.Changes(),
                            .terms = checks_.Epoch(),
                            .longest_unowned = checks_.LongestUnowned(),
                            .limited = runs_.Limited(),
                            .overlaps = runs_.Overlaps(),
                            .paced = runs_.Paced()};
    for (ModelledDatabase& database : databases_) {
      report.ahead += database.ClaimsAhead();
      report.parts += database.Parts();
      report.rescued += database.checked().Rescued();
      report.refused += database.checked().Refused();
      report.marked_dead += database.checked().MarkedDead();
    }
    return report;
  }

  const SimulationOptions& options_;
  Timeline timeline_;
  Journal journal_;
  const SimulatedWork work_;
  const CalmOptions calm_;
  const MillSettings mill_;
  ModelledEnsemble ensemble_;
  std::deque<ModelledDatabase> databases_;  // one for each shard
  RunChecks runs_;
  const SimulatedCluster cluster_;
  FaultTimes times_;
  SimulatedOperator operator_;
  TreeChecks checks_;
  std::deque<SimulatedWorker> workers_;
  FaultInjector faults_;
  std::size_t added_ = 0;
};

}  // namespace

SimulationReport Simulate(const SimulationOptions& options) { return Simulation(options).Run(); }

}  // namespace millrace::engine
