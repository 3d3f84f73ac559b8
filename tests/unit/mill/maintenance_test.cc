#include "framework/mill/maintenance.h"

#include <gmock/gmock.h>

#include <numeric>

#include "driven_port.h"
#include "framework/mill/beat.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr Micros kLongest = seconds(2);  // between two sweeps

// A group that is due in each slice from 1 on.
DueMap GroupsIn(std::uint32_t slices) {
  DueMap map;
  for (std::uint32_t slice = 1; slice <= slices; ++slice) {
    map.groups.push_back({"tasks", slice, "other", 50, {}});
  }
  return map;
}

// A shard of groups that are due; of it all is asked that a sweep asks, and the map of all slices takes its
// time.
class TendedShard final : public Driven<TendPort> {
 public:
  explicit TendedShard(ManualClock& clock) : Driven(clock), clock_(clock) {}

  Reply<Result<DueMap>> Due(const std::vector<TableSlices>& tables) override {
    ++maps;
    asked = tables.size();
    clock_.Advance(takes);
    DueMap map = GroupsIn(doubted);
    map.refused = refused;
    return Result<DueMap>(std::move(map));
  }
  Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(
      const std::vector<ScanRequest>& requests) override {
    trips.push_back(requests.size());
    clock_.Advance(trip_takes);
    if (at_trip) at_trip();
    if (requests.front().group.slice == unreadable) {
      return Result<std::vector<std::vector<ScanRow>>>(Fail(ErrorCode::Unavailable, "the shard is away"));
    }
    std::vector<std::vector<ScanRow>> read;
    for (const ScanRequest& request : requests) read.push_back(PageOf(request));
    return Result<std::vector<std::vector<ScanRow>>>(std::move(read));
  }
  Reply<Result<std::vector<Task>>> Adopt(const ClaimRequest& request) override {
    adopted.push_back(request.attempt);
    if (away) return Result<std::vector<Task>>(Fail(*away, "the connection was lost"));
    std::vector<Task> tasks;
    for (const std::uint64_t id : request.ids) {
      Task task;
      task.key = {request.table, id};
      task.attempt = request.attempt + 1;
      if (request.attempt == runs_as) tasks.push_back(task);
    }
    return Result<std::vector<Task>>(std::move(tasks));
  }
  Reply<Result<std::vector<std::uint64_t>>> Rescue(const RescueRequest& request) override {
    if (locks_rescues) return Result<std::vector<std::uint64_t>>();
    rescued.push_back(request.claimed_by);
    return Result<std::vector<std::uint64_t>>(request.ids);
  }
  Reply<Result<std::vector<TaskKey>>> Cancelled(const std::string&,
                                                const std::vector<TaskKey>& asked) override {
    running = asked;
    return Result<std::vector<TaskKey>>(cancelled);
  }
  Reply<Result<std::vector<TaskKey>>> SaveProgress(const std::string&,
                                                   const std::vector<TaskProgress>& progress) override {
    for (const TaskProgress& each : progress) saved.push_back(each.progress);
    if (when_saving) std::exchange(when_saving, {})();
    return Result<std::vector<TaskKey>>(std::exchange(locked, {}));
  }
  Reply<Result<std::size_t>> ChargeCrashes(const std::string&, const std::vector<Crash>& crashes) override {
    if (keeps_charges) return Result<std::size_t>(Fail(ErrorCode::Unavailable, "the shard is away"));
    charged.push_back(crashes.size());
    return Result<std::size_t>(crashes.size());
  }
  Reply<Result<bool>> Retire(const std::string& incarnation) override {
    if (keeps_lives) return Result<bool>(Fail(ErrorCode::Unavailable, "the shard is away"));
    retired.push_back(incarnation);
    return Result<bool>(true);
  }
  std::vector<Burial> Burials() override {
    looked.push_back(clock_.Now());
    return burials;
  }
  void Done(const Burial&) override { burials.clear(); }
  void LookAtPeers(const std::vector<Incarnation>&) override {}

  int maps = 0;               // of all slices
  std::uint32_t doubted = 0;  // so many slices are in them
  std::size_t asked = 0;      // the last of them, for so many tables
  std::map<TableName, std::string> refused;
  Micros takes{0};
  Micros trip_takes{0};
  std::function<void()> at_trip;
  std::vector<ScanRow> rows;  // of the slice `slice`
  std::uint32_t slice = 1;
  std::optional<std::uint32_t> unreadable;  // the first slice of a trip that fails
  std::vector<std::size_t> trips;           // of how many groups each was
  std::vector<std::size_t> pages;           // how many rows were asked for
  std::vector<std::uint32_t> adopted;       // the attempts that were seen
  std::uint32_t runs_as = 0;                // the number that the rows have in truth
  std::optional<ErrorCode> away;
  bool locks_rescues = false;  // somebody has locked the rows
  std::vector<std::string> rescued;
  std::vector<TaskKey> running;  // of which it was asked last whether they are cancelled
  std::vector<TaskKey> cancelled;
  std::vector<BootTime> looked;  // for burials
  std::vector<TaskKey> locked;
  std::vector<std::string> saved;
  std::function<void()> when_saving;
  std::vector<Burial> burials;
  bool keeps_charges = false;  // it can't charge a crash
  bool keeps_lives = false;    // it can't end a life
  std::vector<std::size_t> charged;
  std::vector<std::string> retired;

 private:
  std::vector<ScanRow> PageOf(const ScanRequest& request) {
    pages.push_back(request.limit);
    std::vector<ScanRow> page;
    if (request.group.slice != slice) return page;
    std::size_t read = 0;
    for (const ScanRow& row : rows) {
      const ScanPosition at{row.run_at, row.id};
      if (at <= request.after || ++read > request.limit) continue;
      if (!request.running_only || row.state == TaskState::Running) page.push_back(row);
    }
    return page;
  }

  ManualClock& clock_;
};

// Of the other strands only the map is wanted that the scan has read.
class ScannedShard final : public Driven<ScanPort> {
 public:
  ScannedShard(ManualClock& clock, std::uint32_t slices) : Driven(clock), slices_(slices) {}
  Reply<Result<DueMap>> Due(const std::vector<TableSlices>&, const DueWanted&) override {
    return Result<DueMap>(GroupsIn(slices_));
  }
  Reply<Result<std::vector<std::vector<ScanRow>>>> ScanEach(
      const std::vector<ScanRequest>& requests) override {
    return Result<std::vector<std::vector<ScanRow>>>(std::vector<std::vector<ScanRow>>(requests.size()));
  }
  Reply<Result<std::vector<std::uint64_t>>> GreatestIds(const std::vector<TableName>&) override {
    return Result<std::vector<std::uint64_t>>();
  }
  bool UnchangedSince(BootTime, BootTime) const override { return false; }
  Reply<Claimed> Claim(ClaimRequest&, bool) override { return Claimed{}; }
  bool HasLanded() const override { return true; }
  Reply<bool> Landed() override { return true; }
  Reply<Result<std::vector<std::uint64_t>>> FailUnclaimed(const ClaimRequest&, const std::string&) override {
    return Result<std::vector<std::uint64_t>>();
  }
  Reply<Result<std::vector<Task>>> Resolve(const ClaimRequest&) override {
    return Result<std::vector<Task>>();
  }
  Reply<Result<std::vector<KeyVerdict>>> ConfirmKeys(const std::string&, const std::vector<Task>&) override {
    return Result<std::vector<KeyVerdict>>();
  }
  Reply<Result<RescueCounts>> RescuesOf(const TableName&, const std::vector<std::uint64_t>&) override {
    return Result<RescueCounts>(RescueCounts());
  }

 private:
  const std::uint32_t slices_;
};

class Unsettled final : public Driven<SettlePort> {
 public:
  using Driven::Driven;
  Reply<Result<SettleReport>> Settle(const std::string&, std::span<const Settlement>) override {
    return Result<SettleReport>();
  }
  Reply<Result<std::vector<bool>>> StillRunning(const std::string&, std::span<const Settlement>) override {
    return Result<std::vector<bool>>();
  }
};

class Unbeaten final : public Driven<BeatPort> {
 public:
  using Driven::Driven;
  Reply<Status> Register(const Incarnation&) override { return Status(); }
  Reply<Result<bool>> Renew(const std::string&) override { return Result<bool>(true); }
  Reply<Result<std::vector<PeerBeat>>> Peers() override { return Result<std::vector<PeerBeat>>(); }
  Reply<Result<bool>> MarkDead(const std::string&, std::optional<std::uint64_t>) override {
    return Result<bool>(false);
  }
  Reply<Result<bool>> Retire(const std::string&) override { return Result<bool>(true); }
};

// It can run nothing.
class IdleRunner final : public Runner {
 public:
  bool Runs(const std::string&) override { return false; }
  LaneRoom Room(const std::string&, const AttemptHost&, std::uint32_t) override { return {}; }
  Micros BusyFor() override { return Micros(0); }
  bool Take(const std::string&, std::vector<AttemptPtr>&) override { return false; }
};

class MaintenanceTest : public testing::Test {
 protected:
  explicit MaintenanceTest(std::uint32_t slices = 1, bool scans = true) : scan_port_(clock_, slices) {
    scope_.Follow({{"tasks", true, {}}}, std::make_shared<const Pauses>());
    lives_.SetOwn(life_);
    Incarnation self;
    self.id = "w.1";
    lives_.Found({self});
    attempts_.in_flight().Leave("tasks", attempts_.in_flight().Enter("tasks", std::vector<std::uint64_t>{1}));
    if (scans) BeginScan();
  }

  void BeginScan() { scan_ = std::make_unique<Step<>>(scans_.Run(0)); }

  void Doubt() { life_->DoubtWhatRuns(); }
  // So many that wait, with the ids from 1 on, and then this one.
  static std::vector<ScanRow> Behind(std::uint64_t waiting, const ScanRow& last) {
    std::vector<ScanRow> rows;
    for (std::uint64_t id = 1; id <= waiting; ++id) rows.push_back({id, {}, TaskState::Waiting, 0, 0, ""});
    rows.push_back(last);
    return rows;
  }
  static std::vector<std::uint64_t> Ids(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> ids(last - first + 1);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }
  static ScanRow Running(std::uint64_t id, const std::string& claimer, std::uint32_t attempt) {
    return {id, {}, TaskState::Running, attempt, 0, claimer};
  }

  ManualClock clock_;
  const LiveEngine engine_{EngineConfig{}};
  const std::string name_ = "main";
  const std::shared_ptr<Lease> life_ = std::make_shared<Lease>("w.1", std::chrono::hours(1), clock_.Now());
  Registry metrics_;
  MillCounters counters_{metrics_};
  SoloGate gate_{clock_};
  MemoryBudget memory_;
  IdleRunner runner_;
  Scope scope_{name_};
  Lives lives_;
  Admission admission_{clock_};
  Unsettled settle_port_{clock_};
  ScannedShard scan_port_;
  Unbeaten beat_port_{clock_};
  TendedShard shard_{clock_};
  Settler settler_{
      clock_, {settle_port_, settle_port_}, engine_, [](std::span<const SettledAttempt>) {}, [](Attempt&) {}};
  Attempts attempts_{
      {name_, scope_, runner_, gate_, memory_, counters_, admission_, clock_, settler_, [] {}, {}}};
  ScanStrands scans_{{clock_, name_, scope_, lives_, attempts_, runner_, gate_, engine_, counters_,
                      admission_, beat_port_, false},
                     scan_port_};
  Maintenance maintenance_{{clock_, name_, scope_, lives_, attempts_, scans_, counters_, engine_}, shard_};
  std::unique_ptr<Step<>> scan_;
  Step<> strand_ = maintenance_.Run();
};

TEST_F(MaintenanceTest, DoubtsThatComeOneByOneWaitForTheSweepThatIsDue) {
  Doubt();
  shard_.Wake();
  shard_.Go(Micros(0));
  EXPECT_EQ(shard_.maps, 1);
  for (int i = 0; i < 10; ++i) {
    Doubt();
    shard_.Wake();
    shard_.Go(Micros(0));
  }
  EXPECT_EQ(shard_.maps, 1);
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 2);
}

TEST_F(MaintenanceTest, DearLooksAtAllSlicesTakeATenthOfTheTimeAtMost) {
  shard_.Go(kLongest);
  shard_.takes = seconds(3);
  Doubt();
  shard_.Go(kLongest);
  Doubt();
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 2);
  Doubt();
  shard_.Go(seconds(25));
  EXPECT_EQ(shard_.maps, 2);
  shard_.Go(seconds(5));
  EXPECT_EQ(shard_.maps, 3);
}

TEST_F(MaintenanceTest, ADearFirstSweepTakesATenthOfTheTimeAtMostAsWell) {
  shard_.takes = seconds(1);
  Doubt();
  shard_.Go(kLongest);
  Doubt();
  shard_.Go(seconds(8));
  EXPECT_EQ(shard_.maps, 1);
  shard_.Go(seconds(3));
  EXPECT_EQ(shard_.maps, 2);
}

TEST_F(MaintenanceTest, ASweepThatWasHeldUpOnceHoldsUpNoOther) {
  shard_.Go(kLongest);
  shard_.takes = std::chrono::minutes(20);  // its process was stopped meanwhile
  Doubt();
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 1);
  shard_.takes = Micros(0);
  Doubt();
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 2);
}

TEST_F(MaintenanceTest, SweepsThatAreHeldUpHoldUpTheNextForAMinuteAtMost) {
  shard_.Go(kLongest);
  shard_.takes = seconds(30);
  Doubt();
  shard_.Go(kLongest);
  Doubt();
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 2);
  shard_.takes = Micros(0);
  Doubt();
  shard_.Go(seconds(25));
  EXPECT_EQ(shard_.maps, 2);
  shard_.Go(seconds(10));
  EXPECT_EQ(shard_.maps, 3);
}

TEST_F(MaintenanceTest, WhatTheDeadLeftIsRescuedAndWhatTheLivingRunIsNot) {
  shard_.rows = {Running(1, "dead.1", 4), Running(2, "w.2", 1)};
  Incarnation self;
  self.id = "w.1";
  Incarnation other;
  other.id = "w.2";
  lives_.Found({self, other});
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

TEST_F(MaintenanceTest, OfAGroupWhoseHeadWaitsLittleIsRead) {
  for (std::uint64_t id = 1; id <= 2000; ++id) shard_.rows.push_back({id, {}, TaskState::Waiting, 0, 0, ""});
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.pages, ElementsAre(10));
}

TEST_F(MaintenanceTest, BehindAPageOfWhichSomeWaitNoLargerOneIsRead) {
  for (std::uint64_t id = 1; id <= 30; ++id) shard_.rows.push_back(Running(id, "dead.1", 1));
  for (std::uint64_t id = 31; id <= 2000; ++id) shard_.rows.push_back({id, {}, TaskState::Waiting, 0, 0, ""});
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.pages, ElementsAre(10, 40, 40));
}

TEST_F(MaintenanceTest, WhileRowsAtTheHeadRunMoreIsReadInLargerPages) {
  for (std::uint64_t id = 1; id <= 600; ++id) shard_.rows.push_back(Running(id, "dead.1", 1));
  for (std::uint64_t id = 601; id <= 2000; ++id)
    shard_.rows.push_back({id, {}, TaskState::Waiting, 0, 0, ""});
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.pages, ElementsAre(10, 40, 160, 640, 640));
}

// A worker that claims from it and settles for as long as its rows are read.
class BusyGroup : public MaintenanceTest {
 protected:
  BusyGroup() {
    for (const std::uint64_t id : Ids(1, 2000)) shard_.rows.push_back(Running(id, "w.1", 1));
  }
  void Claim(std::uint64_t first, std::uint64_t last) {
    attempts_.in_flight().Enter("tasks", Ids(first, last));
  }
  void Settle(std::uint64_t first, std::uint64_t last) {
    attempts_.in_flight().Leave("tasks", Ids(first, last));
  }
};

TEST_F(BusyGroup, IsNotFollowedWhileItIsWorkedOff) {
  Claim(1, 5);
  shard_.at_trip = [&] {
    Settle(1, 5);
    Claim(6, 2000);
  };
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.pages, ElementsAre(10));
  EXPECT_THAT(shard_.adopted, SizeIs(0)) << "what was settled meanwhile is nobody's";
}

TEST_F(BusyGroup, IsReadOnBehindARowThatHasRunForLonger) {
  Claim(1, 1);
  shard_.rows.resize(10);
  shard_.rows.push_back(Running(11, "dead.1", 1));
  shard_.at_trip = [&] { Claim(2, 10); };
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

// The dead one was this worker, before its new life: what waited in its lanes leaves its hands all at once.
TEST_F(BusyGroup, IsReadOnBehindWhatADeadLifeHadInHand) {
  Claim(1, 10);
  for (std::size_t i = 0; i < 10; ++i) shard_.rows[i].claimed_by = "w.0";
  shard_.rows.resize(10);
  shard_.rows.push_back(Running(11, "dead.1", 1));
  shard_.at_trip = [&] { Settle(1, 10); };
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("w.0", "dead.1"));
}

TEST_F(BusyGroup, IsNotFollowedFromAPageThatSomebodyHasLockedInPart) {
  Claim(1, 9);
  shard_.rows[9].claimed_by = "dead.1";
  shard_.locks_rescues = true;
  shard_.Go(seconds(1));
  shard_.pages.clear();
  shard_.at_trip = [&] { Claim(11, 2000); };
  shard_.Go(kLongest);
  shard_.pages.resize(3);
  EXPECT_THAT(shard_.pages, ElementsAre(10, 40, 10))
      << "what follows on a page that ran as a whole, and a sweep";
}

// The server that was asked may know less than the one that settled.
TEST_F(BusyGroup, WhatHasLeftIsAdoptedOnceItIsShownAsRunningStill) {
  Claim(1, 10);
  shard_.rows.resize(10);
  shard_.runs_as = 1;
  shard_.at_trip = [&] {
    if (shard_.trips.size() == 1) Settle(1, 10);
  };
  shard_.Go(kLongest);
  EXPECT_EQ(counters_.adopted.Value(), 0U);
  shard_.Go(kLongest);
  EXPECT_EQ(counters_.adopted.Value(), 10U);
}

class BeforeTheFirstMap : public MaintenanceTest {
 protected:
  BeforeTheFirstMap() : MaintenanceTest(1, false) {}
};

TEST_F(BeforeTheFirstMap, ALookAfterADeathIsMadeUpForOnceThereIsOne) {
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  shard_.Wake();
  shard_.Go(Micros(0));
  BeginScan();
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

TEST_F(MaintenanceTest, WhatSomebodyHadLockedWhenItWasToBeRescuedIsRescuedOnceItIsFree) {
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  shard_.locks_rescues = true;
  shard_.Wake();
  shard_.Go(kLongest);
  shard_.Go(kLongest);
  shard_.locks_rescues = false;
  shard_.trips.clear();
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
  EXPECT_THAT(shard_.trips, ElementsAre(1, 1, 1)) << "the page, what is behind it, and a sweep";
}

TEST_F(MaintenanceTest, OfALockedPageThatWasReadTwiceTheLargerIsReadAgain) {
  shard_.rows = Behind(500, Running(501, "dead.2", 1));
  shard_.rows[0] = Running(1, "dead.1", 1);
  shard_.locks_rescues = true;
  shard_.Go(kLongest);
  shard_.Wake();
  shard_.Go(kLongest);
  shard_.locks_rescues = false;
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, Contains("dead.2"));
}

// It has no part in the shard, or another one: what the dead one left comes to it later.
TEST_F(BeforeTheFirstMap, SlicesThatComeAfterADeathAreLookedAtAsAfterIt) {
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  scope_.Follow({}, std::make_shared<const Pauses>());
  BeginScan();
  shard_.Wake();
  shard_.Go(seconds(20));
  EXPECT_THAT(shard_.rescued, SizeIs(0));
  scope_.Follow({{"tasks", true, {}}}, std::make_shared<const Pauses>());
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.rescued, SizeIs(0)) << "no map shows them yet";
  scans_.Follow(true);
  scan_port_.Go(seconds(1));
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

TEST_F(BeforeTheFirstMap, WhatIsDoubtedIsReadToTheEndOfWhatRuns) {
  for (const std::uint64_t id : Ids(1, 2000)) shard_.rows.push_back(Running(id, "w.1", 1));
  shard_.doubted = 1;
  shard_.at_trip = [&] { attempts_.in_flight().Enter("tasks", Ids(1, 2000)); };
  Doubt();
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.pages, ElementsAre(999, 999, 999, 999)) << "the last of them is empty";
}

TEST_F(BeforeTheFirstMap, SlicesThatGoOweNothing) {
  scope_.Follow({{"tasks", false, {1, 2}}}, std::make_shared<const Pauses>());
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  BeginScan();
  shard_.slice = 2;
  shard_.Wake();
  shard_.Go(kLongest);
  shard_.slice = 1;
  scope_.Follow({{"tasks", false, {1}}}, std::make_shared<const Pauses>());
  scans_.Follow(true);
  scan_port_.Go(seconds(1));
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, SizeIs(0));
}

// Its tables can't be read: they are altered, say.
TEST_F(BeforeTheFirstMap, AStrandWithoutAMapKeepsTheOthersGroupsWaitingForTenSecondsAtMost) {
  ScannedShard hanging(clock_, 1);
  scans_.Add(hanging);  // and is not run
  BeginScan();
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  shard_.trip_takes = milliseconds(600);
  shard_.Wake();
  shard_.Go(seconds(9));
  EXPECT_THAT(shard_.rescued, SizeIs(0));
  shard_.Go(seconds(3));
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

class Saving : public MaintenanceTest {
 protected:
  AttemptPtr Run(std::uint32_t attempt) {
    Task task;
    task.key = {"tasks", 1};
    task.attempt = attempt;
    return std::make_shared<Attempt>(nullptr, "main", task, life_, false);
  }
  const AttemptPtr first_ = Run(1);
};

TEST_F(Saving, IsWrittenOnceAndTheNewestOfIt) {
  attempts_.SaveProgress(*first_, "a");
  attempts_.SaveProgress(*first_, "b");
  EXPECT_EQ(attempts_.UnsavedProgress(*first_), "b");
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.saved, ElementsAre("b"));
  EXPECT_EQ(attempts_.UnsavedProgress(*first_), std::nullopt);
}

TEST_F(Saving, IsTriedAgainWhereSomebodyHadLockedTheRow) {
  attempts_.SaveProgress(*first_, "a");
  shard_.locked = {first_->task.key};
  shard_.Go(seconds(1));
  EXPECT_EQ(attempts_.UnsavedProgress(*first_), "a");
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.saved, ElementsAre("a", "a"));
}

TEST_F(Saving, StaysUnsavedWhileItIsWrittenSinceItsTaskMayEndBefore) {
  attempts_.SaveProgress(*first_, "a");
  shard_.when_saving = [&] {
    EXPECT_EQ(attempts_.UnsavedProgress(*first_), "a");
    attempts_.SaveProgress(*first_, "b");
  };
  shard_.Go(seconds(1));
  EXPECT_EQ(attempts_.UnsavedProgress(*first_), "b") << "newer than what was written";
}

// A row that somebody has locked holds up what is saved.
TEST_F(Saving, ComesAfterTheWordThatSomebodyWantsTheTaskNoMore) {
  shard_.cancelled = {first_->task.key};
  attempts_.in_flight().Claimed(std::span(&first_, 1));
  attempts_.SaveProgress(*first_, "a");
  bool told = false;
  shard_.when_saving = [&] { told = first_->cancel; };
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.saved, ElementsAre("a"));
  EXPECT_TRUE(told);
}

class Cancelling : public Saving {
 protected:
  Cancelling() {
    shard_.Go(seconds(1));
    attempts_.in_flight().Enter("tasks", std::vector<std::uint64_t>{1});
    attempts_.in_flight().Claimed(std::span(&first_, 1));
  }
};

TEST_F(Cancelling, IsAskedForFromATasksSecondLookOn) {
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.running, SizeIs(0));
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.running, ElementsAre(first_->task.key));
}

TEST_F(Cancelling, IsAskedForAtOnceWhereALookIsLate) {
  clock_.Advance(seconds(20));
  shard_.Go(Micros(0));
  EXPECT_THAT(shard_.running, ElementsAre(first_->task.key));
}

TEST_F(Saving, OfARunThatWasGivenUpIsNotThatOfTheNext) {
  const AttemptPtr next = Run(2);
  attempts_.SaveProgress(*first_, "old");
  EXPECT_EQ(attempts_.UnsavedProgress(*next), std::nullopt);
  attempts_.SaveProgress(*next, "new");
  attempts_.SaveProgress(*first_, "old, still at it");
  EXPECT_EQ(attempts_.UnsavedProgress(*next), "new");
  EXPECT_EQ(attempts_.UnsavedProgress(*first_), std::nullopt);
}

TEST_F(Saving, GoesWithTheEndOfItsTask) {
  attempts_.SaveProgress(*first_, "a");
  attempts_.Ended({first_, {}});
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.saved, SizeIs(0));
}

// More than two trips, and not a whole number of them.
class ManyGroups : public MaintenanceTest {
 protected:
  ManyGroups() : MaintenanceTest(70) {}
};

TEST_F(ManyGroups, AreReadThirtyTwoATripAndThoseWithRunningRowsOnceMore) {
  shard_.slice = 40;
  shard_.rows = {Running(1, "dead.1", 4)};
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
  EXPECT_THAT(shard_.trips, ElementsAre(32, 32, 1, 6));
}

TEST_F(ManyGroups, OfAShardThatDoesNotAnswerNoMoreIsAskedUntilTheNextSweep) {
  shard_.unreadable = 1;
  shard_.slice = 70;
  shard_.rows = {Running(1, "dead.1", 4)};
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.trips, ElementsAre(32));
  shard_.unreadable.reset();
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

TEST_F(ManyGroups, ALookAfterADeathThatFailedIsMadeUpFor) {
  shard_.slice = 70;
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  shard_.unreadable = 65;
  shard_.Wake();
  shard_.Go(Micros(0));
  EXPECT_THAT(shard_.rescued, SizeIs(0));
  shard_.unreadable.reset();
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, SizeIs(1)) << "the next is a small one again";
}

TEST_F(ManyGroups, AreSweptInTurnsOfATenthOfEachSecond) {
  shard_.trip_takes = milliseconds(60);
  shard_.slice = 70;
  shard_.rows = {Running(1, "dead.1", 4)};
  shard_.Go(milliseconds(1500));
  EXPECT_THAT(shard_.trips, ElementsAre(32));
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.trips, ElementsAre(32, 32));
  EXPECT_THAT(shard_.rescued, SizeIs(0));
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
  shard_.trip_takes = milliseconds(30);
  shard_.trips.clear();
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.trips, ElementsAre(32, 32, 6, 1)) << "as many as fit";
}

TEST_F(ManyGroups, TripsThatTakeLongerThanATurnAreMadeOneByOneInATenthOfTheTime) {
  shard_.trip_takes = milliseconds(400);
  shard_.Go(milliseconds(4900));
  EXPECT_THAT(shard_.trips, ElementsAre(32));
  shard_.Go(seconds(4));
  EXPECT_THAT(shard_.trips, ElementsAre(32, 32));
}

// What one of them has its doubts about is seen to as before.
TEST_F(ManyGroups, WhereThreeWorkersLiveAreSweptInAThirdOfThatTime) {
  std::vector<Incarnation> peers(3);
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i].id = "w." + std::to_string(i + 1);
  lives_.Found(peers);
  shard_.trip_takes = milliseconds(400);
  shard_.Go(milliseconds(4900));
  EXPECT_THAT(shard_.trips, ElementsAre(32));
  Doubt();
  shard_.Go(seconds(4));
  EXPECT_EQ(shard_.maps, 1);
  EXPECT_EQ(std::count(shard_.trips.begin(), shard_.trips.end(), 32), 1);
  shard_.Go(seconds(8));
  EXPECT_EQ(std::count(shard_.trips.begin(), shard_.trips.end(), 32), 2);
}

TEST_F(ManyGroups, AfterADeathAreSweptInOneGoButForWhatIsSeenToEachSecond) {
  shard_.trip_takes = milliseconds(600);
  shard_.slice = 70;
  shard_.rows = {Running(1, "dead.1", 4)};
  const BootTime began = clock_.Now();
  shard_.Wake();
  shard_.Go(milliseconds(1800));
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
  EXPECT_THAT(shard_.looked, ElementsAre(began, began + milliseconds(600), began + milliseconds(1200)));
}

TEST_F(ManyGroups, WhoDiesWhileTheyAreSweptIsLookedForInAllOfThemAfterARest) {
  shard_.rows = Behind(900, Running(901, "dead.1", 4));
  shard_.slice = 71;
  shard_.at_trip = [&] {
    if (shard_.trips.size() != 2) return;
    shard_.slice = 1;  // which the first trip has seen
    shard_.Wake();
  };
  shard_.trip_takes = milliseconds(600);
  shard_.Wake();
  shard_.Go(seconds(7));
  EXPECT_THAT(shard_.rescued, SizeIs(0));
  shard_.Go(seconds(2));
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

TEST_F(ManyGroups, ThatAreSweptInAHurryInVainAreSoAQuarterOfTheTimeAtMost) {
  shard_.trip_takes = milliseconds(600);
  shard_.unreadable = 65;
  shard_.Wake();
  shard_.Go(std::chrono::minutes(1));
  EXPECT_THAT(shard_.trips, SizeIs(testing::Lt(40)));
  EXPECT_THAT(shard_.trips, SizeIs(testing::Gt(20)));
}

TEST_F(ManyGroups, ASweepInAHurryKeepsNothingLockedWaiting) {
  shard_.trip_takes = milliseconds(600);
  shard_.slice = 70;
  shard_.rows = {Running(1, "dead.1", 4)};
  shard_.locks_rescues = true;
  shard_.Wake();
  shard_.Go(milliseconds(2400));
  shard_.locks_rescues = false;
  shard_.trip_takes = Micros(0);
  shard_.Go(seconds(2));
  EXPECT_THAT(shard_.rescued, Contains("dead.1"));
}

TEST_F(ManyGroups, AfterADeathAreSweptWhateverSweepIsUnderWay) {
  shard_.trip_takes = milliseconds(60);
  shard_.Go(milliseconds(1500));
  shard_.slice = 70;
  shard_.rows = {Running(1, "dead.1", 4)};
  shard_.Wake();
  shard_.Go(milliseconds(300));
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
}

TEST_F(ManyGroups, AreLeftAloneOnceTheLifeHasEnded) {
  shard_.rows = Behind(900, Running(901, "dead.1", 1));  // of several pages
  shard_.at_trip = [&] {
    life_->MarkDead();
    lives_.SetOwn(nullptr);
  };
  shard_.Wake();
  shard_.Go(seconds(5));
  EXPECT_THAT(shard_.trips, ElementsAre(32));
}

TEST_F(ManyGroups, AreLeftAloneOnceItIsToStop) {
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  shard_.at_trip = [&] { maintenance_.Stop(); };
  shard_.Wake();
  shard_.Go(seconds(5));
  EXPECT_THAT(shard_.trips, ElementsAre(32));
  EXPECT_TRUE(strand_.Done());
}

TEST_F(ManyGroups, WhatIsDoubtedStaysSoWhereNotAllCouldBeRead) {
  shard_.doubted = 70;
  shard_.unreadable = 33;
  Doubt();
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 1);
  shard_.unreadable.reset();
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 2);
  shard_.Go(kLongest);
  EXPECT_EQ(shard_.maps, 2);
}

TEST_F(MaintenanceTest, ATableThatCanNotBeReadStaysInDoubtAndKeepsNoOtherSo) {
  attempts_.in_flight().Enter("tasks_001", std::vector<std::uint64_t>{1});
  shard_.refused.emplace(TableName("tasks_001"), "it is locked");
  shard_.doubted = 3;
  shard_.slice = 3;  // of which the scan knows nothing
  shard_.rows = {Running(1, "w.1", 4)};
  Doubt();
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.adopted, ElementsAre(4U));
  EXPECT_EQ(shard_.asked, 2U);
  shard_.Go(seconds(12));
  EXPECT_EQ(shard_.asked, 1U);
  shard_.refused.clear();
  shard_.Go(seconds(25));
  EXPECT_EQ(shard_.maps, 3);
}

TEST_F(MaintenanceTest, WhatTheDeadLeftBehindRowsThatWaitIsFoundAtOnceWhereOneWasMarkedDeadAndSoonOtherwise) {
  shard_.rows = Behind(900, Running(901, "dead.1", 1));
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.rescued, SizeIs(0));
  shard_.Wake();
  shard_.Go(Micros(0));
  EXPECT_THAT(shard_.rescued, ElementsAre("dead.1"));
  shard_.Go(kLongest * 5);
  EXPECT_THAT(shard_.rescued, SizeIs(2));
}

TEST_F(MaintenanceTest, ALostAdoptionIsTriedWithEveryNumberThatTheRowMayHaveByNow) {
  shard_.rows = {Running(1, "w.1", 4)};
  shard_.away = ErrorCode::Unknown;
  shard_.Wake();
  shard_.Go(Micros(0));
  EXPECT_THAT(shard_.adopted, ElementsAre(4U));
  shard_.rows.clear();
  shard_.away.reset();
  shard_.runs_as = 5;  // the lost statement has raised it
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.adopted, ElementsAre(4U, 4U, 5U));
  EXPECT_EQ(counters_.adopted.Value(), 1U);
}

TEST_F(MaintenanceTest, AProcessOfThisHostThatDiedIsMarkedDeadAtOnce) {
  shard_.rows = {Running(1, "w.0", 1)};
  Incarnation self;
  self.id = "w.1";
  Incarnation before;
  before.id = "w.0";
  lives_.Found({self, before});
  shard_.burials = {{"w.0.flight", "w.0", {}}};
  shard_.Go(kLongest);
  EXPECT_THAT(shard_.burials, SizeIs(0));
  EXPECT_FALSE(lives_.Live()->contains("w.0"));
  EXPECT_EQ(shard_.rescued.at(0), "w.0");
}

TEST_F(MaintenanceTest, ADeathIsKeptInMindUntilItWasChargedAndMarked) {
  shard_.burials = {{"w.0.flight", "w.0", {{{"tasks", 1}, 1}}}};
  shard_.keeps_charges = true;
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.retired, SizeIs(0)) << "a rescue would hide what it is charged by";
  EXPECT_THAT(shard_.burials, SizeIs(1));
  shard_.keeps_charges = false;
  shard_.keeps_lives = true;
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.charged, ElementsAre(1U));
  EXPECT_THAT(shard_.burials, SizeIs(1));
  shard_.keeps_lives = false;
  shard_.Go(seconds(1));
  EXPECT_THAT(shard_.charged, ElementsAre(1U, 1U));
  EXPECT_THAT(shard_.retired, ElementsAre("w.0"));
  EXPECT_THAT(shard_.burials, SizeIs(0));
}

}  // namespace
}  // namespace millrace::engine
