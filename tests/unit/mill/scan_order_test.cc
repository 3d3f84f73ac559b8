// In which order, how often and by whom due tasks are claimed: aging, weights, bands, the brake, and several
// scan strands. A worker's mill, on a real store, in a time that the test moves.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr Micros kTick = milliseconds(10);

class ScanOrderTest : public ::testing::Test {
 protected:
  void Submit(const std::string& type, std::uint32_t priority, std::size_t count,
              const TableName& table = "tasks") {
    NewTask task;
    task.handler = type;
    task.priority = priority;
    const auto operations = store_->OpenOperations();
    for (; count > 0;) {
      const std::size_t now = std::min<std::size_t>(count, 999);
      ASSERT_TRUE(operations->Submit(table, std::vector<NewTask>(now, task)));
      count -= now;
    }
    store_->Run("UPDATE " + std::string(table.text()) + " SET slice=1");
  }
  void NewStore(const SchemaSpec& spec) {
    worker_.reset();
    store_ = std::make_unique<ScratchStore>(clock_, spec);
  }
  RoundWorker& Start(EngineConfig engine = {}, ScanOrder order = {}, bool watch_idle = false) {
    worker_ = std::make_unique<RoundWorker>(clock_, *store_, "w", ScanRules{}, watch_idle);
    worker_->Configure(std::move(engine), std::move(order));
    return *worker_;
  }
  void Go(Micros span, const std::function<void()>& meanwhile = {}) {
    for (const BootTime end = clock_.Now() + span; clock_.Now() < end;) {
      if (meanwhile) meanwhile();
      worker_->Work();
      clock_.Advance(kTick);
    }
    worker_->Work();
  }
  // Of what was claimed, where the rest is urgent.
  double ShareOfIdle() const {
    const auto claimed = Claimed();
    return static_cast<double>(claimed.at("idle")) /
           static_cast<double>(claimed.at("idle") + claimed.at("urgent"));
  }
  // So many of each type were claimed.
  std::map<std::string, std::size_t> Claimed() const {
    std::map<std::string, std::size_t> claimed;
    for (const ClaimSeen& claim : worker_->scan.seen) {
      for (const Task& task : claim.tasks) ++claimed[task.handler];
    }
    return claimed;
  }
  std::vector<std::string> TypesInOrder() const {
    std::vector<std::string> types;
    for (const ClaimSeen& claim : worker_->scan.seen) {
      for (const Task& task : claim.tasks) {
        if (types.empty() || types.back() != task.handler) types.push_back(task.handler);
      }
    }
    return types;
  }
  std::int64_t Waiting(const std::string& where) {
    return store_->Ask("SELECT count(*) FROM tasks WHERE state=0 AND " + where);
  }
  static EngineConfig OneQueue() {
    EngineConfig engine;
    engine.queues.by = QueuesConfig::By::One;
    return engine;
  }
  static BandConfig Band(std::uint32_t priority_from, std::uint32_t priority_to, std::uint32_t failures_from,
                         std::uint32_t failures_to, Micros every, std::uint32_t most) {
    return {priority_from, priority_to, failures_from, failures_to, every, most};
  }

  ManualClock clock_;
  std::unique_ptr<ScratchStore> store_ = std::make_unique<ScratchStore>(clock_);
  std::unique_ptr<RoundWorker> worker_;
};

TEST_F(ScanOrderTest, TheMostUrgentTasksOfAllTypesAreClaimedFirst) {
  Submit("idle", 9, 100);
  Submit("idle", 3, 5);
  Submit("urgent", 0, 5);
  Submit("usual", 5, 5);
  Start();
  Go(kTick);
  EXPECT_THAT(TypesInOrder(), ElementsAre("urgent", "idle", "usual", "idle"));
}

TEST_F(ScanOrderTest, RoomThatComesInTheMiddleOfATurnIsForTheMostUrgent) {
  Submit("report", 0, 1);
  Submit("usual", 5, 1);
  Submit("report", 9, 1);
  RoundWorker& worker = Start();
  worker.runner.full_for = "report";
  worker.scan.at_page = [&] { worker.runner.full_for.clear(); };
  Go(milliseconds(100));
  std::vector<std::uint64_t> claimed;
  for (const ClaimSeen& claim : worker.scan.seen) claimed.push_back(claim.tasks.front().key.id);
  EXPECT_THAT(claimed, ElementsAre(2, 1, 3));
}

TEST_F(ScanOrderTest, ATypeThatNobodyElseComesBetweenIsClaimedAtOnceWhateverItsPriorities) {
  for (std::uint32_t priority = 0; priority < 10; ++priority) Submit("report", priority, 10);
  RoundWorker& worker = Start();
  Go(kTick);
  EXPECT_EQ(worker.scan.asked.claims, 1);
}

TEST_F(ScanOrderTest, TypesOfOneUrgencyHaveSharesOfACommonQueueByTheirWeights) {
  Submit("light", 5, 3000);
  Submit("heavy", 5, 3000);
  ScanOrder order;
  order.weights["heavy"] = 4;
  Start(OneQueue(), order);
  Go(milliseconds(400));
  const auto claimed = Claimed();
  const double share = static_cast<double>(claimed.at("heavy")) / static_cast<double>(claimed.at("light"));
  EXPECT_GT(share, 3) << claimed.at("heavy") << " to " << claimed.at("light");
  EXPECT_LT(share, 5.5) << claimed.at("heavy") << " to " << claimed.at("light");
}

TEST_F(ScanOrderTest, UnderAnEndlessStreamOfUrgentTasksTheOldestHaveOneTurnInEight) {
  Submit("idle", 9, 3000);
  clock_.Advance(seconds(1));
  Submit("urgent", 0, 6000);
  Start(OneQueue());
  Go(seconds(1));
  const double share = ShareOfIdle();
  EXPECT_GT(share, 0.08);
  EXPECT_LT(share, 0.2);
}

TEST_F(ScanOrderTest, WithAgingWhatHasWaitedTakesTurnsWithUrgentTasks) {
  Submit("idle", 9, 3000);
  clock_.Advance(minutes(10));
  Submit("urgent", 0, 6000);
  EngineConfig engine = OneQueue();
  engine.aging = minutes(1);
  Start(engine);
  Go(milliseconds(600));
  const double share = ShareOfIdle();
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.65);
}

TEST_F(ScanOrderTest, ABandIsLookedAtOnItsIntervalForSoManyRows) {
  Submit("mail", 7, 250);
  Submit("mail", 1, 50);
  ScanOrder order;
  order.bands["mail"] = {Band(5, 9, 0, 9, seconds(30), 100)};
  Start({}, order);
  Go(seconds(5));
  EXPECT_EQ(Waiting("priority=1"), 0) << "no band: without a pause";
  EXPECT_EQ(Waiting("priority=7"), 150);
  Go(seconds(24));
  EXPECT_EQ(Waiting("priority=7"), 150);
  Go(seconds(2));
  EXPECT_EQ(Waiting("priority=7"), 50);
  Go(seconds(30));
  EXPECT_EQ(Waiting("priority=7"), 0);
}

TEST_F(ScanOrderTest, WhatNeverFailedIsTakenAtOnceAndWhatHasLessAndLessOften) {
  Submit("mail", 5, 30);
  store_->Run("UPDATE tasks SET failures=CASE WHEN id<=10 THEN 0 WHEN id<=20 THEN 3 ELSE 8 END");
  ScanOrder order;
  order.bands["mail"] = {Band(0, 9, 1, 5, seconds(30), 5), Band(0, 9, 6, 9, seconds(60), 5)};
  Start({}, order);
  Go(seconds(2));
  EXPECT_EQ(Waiting("failures=0"), 0);
  EXPECT_EQ(Waiting("failures=3"), 5);
  EXPECT_EQ(Waiting("failures=8"), 5);
  Go(seconds(30));
  EXPECT_EQ(Waiting("failures=3"), 0);
  EXPECT_EQ(Waiting("failures=8"), 5);
  Go(seconds(30));
  EXPECT_EQ(Waiting("failures=8"), 0);
}

TEST_F(ScanOrderTest, WhatComesWhileItsBandIsClosedWaitsAndARestingWorkerWakesForIt) {
  ScanOrder order;
  order.bands["mail"] = {Band(0, 9, 0, 9, seconds(7), 0)};
  RoundWorker& worker = Start({}, order);
  worker.mill().SetAttended(true);
  Submit("mail", 5, 10);
  Go(seconds(3));
  EXPECT_EQ(Waiting("1=1"), 0) << "the first scan is not held back";
  Submit("mail", 5, 10);
  Go(milliseconds(3900));
  EXPECT_EQ(Waiting("1=1"), 10);
  Go(milliseconds(200));
  EXPECT_EQ(Waiting("1=1"), 0);
}

TEST_F(ScanOrderTest, ABandThatStaysKeepsItsIntervalWhereAnotherComes) {
  Submit("mail", 7, 300);
  ScanOrder order;
  order.bands["mail"] = {Band(5, 9, 0, 9, seconds(30), 100)};
  RoundWorker& worker = Start({}, order);
  Go(seconds(1));
  ASSERT_EQ(Claimed().at("mail"), 100u);
  order.bands["sms"] = {Band(5, 9, 0, 9, seconds(30), 100)};
  worker.Configure({}, order);
  Go(seconds(1));
  EXPECT_EQ(Claimed().at("mail"), 100u);
}

TEST_F(ScanOrderTest, WhatABandHoldsBackIsNotIdle) {
  Submit("mail", 5, 15);
  ScanOrder order;
  order.bands["mail"] = {Band(0, 9, 0, 9, seconds(10), 10)};
  RoundWorker& worker = Start({}, order, true);
  bool early = false;
  Go(seconds(9), [&] { early = early || worker.mill().Idle(); });
  EXPECT_FALSE(early);
  Go(seconds(4));
  EXPECT_TRUE(worker.mill().Idle());
}

TEST_F(ScanOrderTest, WhatAFailedClaimOfABandLeftBehindIsTakenAgainAtOnce) {
  Submit("mail", 5, 15);
  ScanOrder order;
  order.bands["mail"] = {Band(0, 9, 0, 9, minutes(10), 100)};
  RoundWorker& worker = Start({}, order);
  worker.scan.loses_a_claim = true;
  Go(seconds(5));
  EXPECT_EQ(Waiting("1=1"), 0);
}

TEST_F(ScanOrderTest, WhereClaimsTakeLongerThanTheLimitTheyBecomeSmallerAndRarer) {
  Submit("mail", 5, 9000);
  EngineConfig engine;
  engine.brake_latency = milliseconds(50);
  RoundWorker& worker = Start(engine);
  worker.runner.most = 5000;
  worker.scan.claim_takes = milliseconds(60);
  Go(seconds(3));
  EXPECT_LT(worker.mill().View().speed, 0.1);
  EXPECT_LT(worker.scan.seen.back().tasks.size(), 100u);
  EXPECT_LT(worker.scan.asked.claims, 15);
  worker.scan.claim_takes = milliseconds(1);
  Go(seconds(12));
  EXPECT_EQ(worker.mill().View().speed, 1);
  EXPECT_EQ(Waiting("1=1"), 0);
}

TEST_F(ScanOrderTest, WhatRunsAndIsUrgentHoldsUpNothingWhereTheBrakeIsOn) {
  Submit("urgent", 0, 4);
  EngineConfig engine;
  engine.brake_latency = milliseconds(20);
  RoundWorker& worker = Start(engine);
  worker.runner.takes = minutes(2);
  worker.scan.claim_takes = worker.scan.pages_take = milliseconds(60);
  Go(seconds(5));
  Submit("usual", 5, 300);
  Go(seconds(30));
  EXPECT_LT(worker.mill().View().speed, 0.1);
  EXPECT_LT(Waiting("handler='usual'"), 300 - 20);
}

TEST_F(ScanOrderTest, SmallGroupsAreReadByFewStatements) {
  Submit("report", 5, 64 * 24);
  store_->Run("UPDATE tasks SET slice=id%64");
  RoundWorker& worker = Start();
  worker.runner.most = 500;
  Go(milliseconds(300));
  EXPECT_EQ(worker.runner.took, 64 * 24);
  EXPECT_LE(worker.scan.asked.trips, 6) << worker.scan.asked.pages << " pages";
}

// However few of those that are joined a statement reaches.
TEST_F(ScanOrderTest, GroupsThatAStatementDoesNotReachAreReadByTheNext) {
  Submit("report", 5, 64 * 24);
  store_->Run("UPDATE tasks SET slice=id%64");
  RoundWorker& worker = Start();
  worker.runner.most = 64 * 24;
  worker.scan.joined_pages = 3;
  const int maps = worker.scan.asked.maps;
  while (worker.scan.asked.maps == maps) Go(kTick);
  EXPECT_EQ(worker.runner.took, 64 * 24) << "within one look";
  EXPECT_EQ(worker.scan.asked.joined, 2) << "after each that reached too few one reads pages";
}

TEST_F(ScanOrderTest, GroupsOfOneTaskEachAreReadAsManyAtOnceAsMayBe) {
  Submit("report", 5, 256);
  store_->Run("UPDATE tasks SET slice=id%64, priority=(id/64)%4");
  RoundWorker& worker = Start();
  worker.runner.most = 500;
  Go(milliseconds(300));
  EXPECT_EQ(worker.runner.took, 256u);
  EXPECT_LE(worker.scan.asked.trips, 6) << worker.scan.asked.pages << " pages";
  EXPECT_LE(worker.scan.asked.most, 2000) << "rows, if they were more than one each after all";
}

// Scattered rows of more groups lie on fewer pages of their table; neighbours are ranges anyway.
TEST_F(ScanOrderTest, GroupsWhoseRowsAreNeighboursGiveMoreEach) {
  const auto groups_of_a_claim = [&](const char* slice) {
    NewStore({});
    Submit("report", 5, 8000);
    store_->Run(std::string("UPDATE tasks SET slice=") + slice);
    RoundWorker& worker = Start();
    worker.runner.most = 999;
    worker.runner.takes = milliseconds(1);
    Go(milliseconds(50));
    std::set<std::uint32_t> slices;
    for (const Task& task : worker.scan.seen.at(2).tasks) slices.insert(task.slice);
    return slices.size();
  };
  EXPECT_EQ(groups_of_a_claim("id%16"), 8U);
  EXPECT_EQ(groups_of_a_claim("id/500"), 2U);
}

// Eight of one task each come first, and so others are taken for as small: more of them are read than is
// wanted.
TEST_F(ScanOrderTest, AGroupThatWasReadForNothingHasStillToHaveItsTurn) {
  Submit("report", 5, 8 + 10 * 400);
  store_->Run("UPDATE tasks SET slice=CASE WHEN id<=8 THEN id ELSE 20+id%10 END");
  RoundWorker& worker = Start();
  worker.runner.most = 100;
  worker.runner.takes = milliseconds(1);
  Go(milliseconds(100));
  const auto& seen = worker.scan.seen;
  ASSERT_GE(seen.size(), 4u);
  std::set<std::uint64_t> groups;
  for (std::size_t i = 0; i < 4; ++i) {
    for (const Task& task : seen[i].tasks) groups.insert(task.key.id <= 8 ? 10 : task.key.id % 10);
  }
  EXPECT_EQ(groups.size(), 5u);
}

TEST_F(ScanOrderTest, ATaskBehindThoseThatRunIsFoundByTheNextLook) {
  constexpr int kEach = 40;
  Submit("report", 5, 64 * kEach);
  store_->Run("UPDATE tasks SET slice=id%64");
  RoundWorker& worker = Start();
  worker.runner.most = 64 * kEach + 100;
  worker.runner.takes = minutes(1);
  Go(seconds(1));
  ASSERT_EQ(worker.runner.took, 64 * kEach);
  const int maps = worker.scan.asked.maps;
  NewTask task;
  task.handler = "report";
  ASSERT_TRUE(store_->OpenOperations()->Submit("tasks", std::vector<NewTask>(1, task)));
  while (worker.scan.asked.maps == maps) Go(kTick);
  EXPECT_EQ(worker.runner.took, 64 * kEach + 1);
}

TEST_F(ScanOrderTest, ATableThatIsLockedAsAWholeKeepsNoOtherWaiting) {
  NewStore({2, 8});
  Submit("a", 0, 300, "tasks_000");
  Submit("a", 5, 30, "tasks_001");
  Submit("b", 9, 30, "tasks_001");
  store_->Run("UPDATE tasks_000 SET attempt=id%20");
  RoundWorker& worker = Start();
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  worker.scan.unwritable = TableName("tasks_000");
  Go(seconds(10));
  EXPECT_THAT(Claimed(), UnorderedElementsAre(Pair("a", 30), Pair("b", 30)));
  EXPECT_LE(worker.scan.asked.claims, 6) << "it is tried again now and then";
  Go(seconds(5));
  EXPECT_THAT(worker.mill().View().resting, ElementsAre(Pair(TableName("tasks_000"), Not(IsEmpty()))));
  worker.scan.unwritable.reset();
  Go(seconds(11));
  EXPECT_EQ(Claimed().at("a"), 330u);
  Go(seconds(11));
  EXPECT_THAT(worker.mill().View().resting, IsEmpty());
}

TEST_F(ScanOrderTest, ATableThatCanNotBeReadIsLeftOutForAWhile) {
  NewStore({2, 8});
  Submit("a", 0, 30, "tasks_000");
  RoundWorker& worker = Start({}, {}, true);
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  worker.scan.unreadable = TableName("tasks_000");
  Go(seconds(3));
  Submit("b", 5, 30, "tasks_001");
  Go(seconds(3));
  EXPECT_THAT(Claimed(), UnorderedElementsAre(Pair("b", 30)));
  EXPECT_FALSE(worker.mill().Idle());
  Go(seconds(60));
  EXPECT_LE(worker.scan.asked.refused, 7);
  EXPECT_THAT(worker.mill().View().resting, ElementsAre(Pair(TableName("tasks_000"), Not(IsEmpty()))));
  worker.scan.unreadable.reset();
  Go(seconds(12));
  EXPECT_EQ(Claimed().at("a"), 30u);
}

TEST_F(ScanOrderTest, OfATableWhoseTasksCanNotBeSettledNoMoreAreClaimed) {
  NewStore({2, 8});
  Submit("a", 0, 2'000, "tasks_000");
  Submit("a", 5, 300, "tasks_001");
  RoundWorker& worker = Start();
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  worker.RefuseSettlesOf(TableName("tasks_000"));
  Go(seconds(20));
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks_001_done"), 300);
  EXPECT_GT(store_->Ask("SELECT count(*) FROM tasks_000 WHERE state=0"), 1'000);
  EXPECT_THAT(worker.mill().View().resting, ElementsAre(Pair(TableName("tasks_000"), Not(IsEmpty()))));
  worker.RefuseSettlesOf(std::nullopt);
  Go(seconds(20));
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks_000_done"), 2'000);
}

TEST_F(ScanOrderTest, EachTableIsScannedByItsOwnStrand) {
  NewStore({2, 8});
  Submit("a", 5, 20, "tasks_000");
  Submit("a", 5, 30, "tasks_001");
  EngineConfig engine;
  engine.scanners.by = ScannersConfig::By::Table;
  RoundWorker& worker = Start(engine);
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  EXPECT_EQ(worker.mill().WantedScans(), 2u);
  StoreScan& second = worker.AddScan();
  Go(seconds(1));
  EXPECT_THAT(Claimed(), ElementsAre(Pair("a", 20)));
  ASSERT_EQ(second.seen.size(), 1u);
  EXPECT_EQ(second.seen[0].tasks.size(), 30u);
}

TEST_F(ScanOrderTest, EachRangeOfPrioritiesIsScannedByItsOwnStrand) {
  Submit("a", 0, 20);
  Submit("a", 9, 30);
  EngineConfig engine;
  engine.scanners = {ScannersConfig::By::Priority, 2};
  RoundWorker& worker = Start(engine);
  StoreScan& second = worker.AddScan();
  Go(seconds(1));
  EXPECT_THAT(Claimed(), ElementsAre(Pair("a", 20)));
  ASSERT_EQ(second.seen.size(), 1u);
  EXPECT_EQ(second.seen[0].tasks.size(), 30u);
}

TEST_F(ScanOrderTest, ARoundIsTheFirstStrandsInAllTables) {
  NewStore({2, 8});
  Submit("a", 5, 20, "tasks_000");
  Submit("a", 5, 30, "tasks_001");
  EngineConfig engine;
  engine.scanners.by = ScannersConfig::By::Table;
  RoundWorker& worker = Start(engine);
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  worker.SetScans({{"a", {.after = minutes(10), .max_rows = 25}}});
  StoreScan& second = worker.AddScan();
  Go(seconds(3));
  EXPECT_THAT(Claimed(), ElementsAre(Pair("a", 25)));
  EXPECT_TRUE(second.seen.empty());
}

TEST_F(ScanOrderTest, WhatAStrandGivesUpIsTakenOverByTheOthers) {
  NewStore({2, 8});
  EngineConfig engine;
  engine.scanners.by = ScannersConfig::By::Table;
  RoundWorker& worker = Start(engine);
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  StoreScan& second = worker.AddScan();
  Go(seconds(1));
  worker.Configure({});  // by shard again
  Submit("a", 5, 20, "tasks_000");
  Submit("a", 5, 30, "tasks_001");
  Go(seconds(1));
  EXPECT_THAT(Claimed(), ElementsAre(Pair("a", 50)));
  EXPECT_TRUE(second.seen.empty());
}

// It has asked nobody: what the others have read of pauses holds.
TEST_F(ScanOrderTest, AStrandThatScansNothingLiftsNoPause) {
  NewStore({2, 8});
  EngineConfig engine;
  engine.scanners.by = ScannersConfig::By::Table;
  RoundWorker& worker = Start(engine);
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  worker.AddScan();
  Go(seconds(1));
  worker.Configure({});  // by shard again
  ASSERT_TRUE(store_->OpenOperations()->SetPause("handler:paused", "ann", true, ""));
  Go(seconds(1));
  worker.runner.most = 5;  // the first one works on what it has found, and looks seldom
  Submit("busy", 5, 2000, "tasks_000");
  Submit("paused", 5, 50, "tasks_000");
  Go(seconds(5));
  EXPECT_GT(Claimed()["busy"], 300u);
  EXPECT_EQ(Claimed().count("paused"), 0u);
}

TEST_F(ScanOrderTest, AStrandThatGetsATableIsNotIdleBeforeItHasLookedAtIt) {
  NewStore({2, 8});
  RoundWorker& worker = Start({}, {}, true);
  worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  Go(seconds(1));
  ASSERT_TRUE(worker.mill().Idle());
  EngineConfig engine;
  engine.scanners.by = ScannersConfig::By::Table;
  worker.Configure(engine);
  worker.AddScan();
  EXPECT_FALSE(worker.mill().Idle());
  Go(seconds(1));
  EXPECT_TRUE(worker.mill().Idle());
}

TEST_F(ScanOrderTest, ARingIsLookedAfterAlthoughTheLaneOfAnotherTypeIsFull) {
  Submit("slow", 5, 100);
  RoundWorker& worker = Start();
  worker.runner.full_for = "slow";
  Go(milliseconds(50));
  Submit("quick", 5, 1);
  worker.mill().Rung({});
  Go(kTick);
  EXPECT_EQ(Claimed()["quick"], 1u) << "the next look by the poll is 130 ms away";
}

TEST_F(ScanOrderTest, LooksThatRingsAskForBesideAFullLaneTakeATenthOfTheTime) {
  Submit("slow", 5, 100);
  RoundWorker& worker = Start();
  worker.scan.maps_take = milliseconds(2);
  worker.runner.full_for = "slow";
  Go(milliseconds(50));
  worker.scan.asked.maps = 0;
  Go(seconds(2), [&] { worker.mill().Rung({}); });
  EXPECT_GE(worker.scan.asked.maps, 90);
  EXPECT_LE(worker.scan.asked.maps, 115) << "and a credit of 20 ms";
}

// A wave of retries with jitter: to look for each of them by itself would keep the database busy with maps.
TEST_F(ScanOrderTest, LooksForWhatComesDueTakeAFifthOfTheTime) {
  NewStore({1, 1024});
  std::vector<NewTask> wave;
  for (int i = 1; i <= 300; ++i)
    wave.push_back({.handler = "retried", .run_at = clock_.WallNow() + i * milliseconds(4)});
  ASSERT_TRUE(store_->OpenOperations()->Submit("tasks", wave));
  store_->Run("UPDATE tasks SET slice=id");
  RoundWorker& worker = Start();
  worker.scan.maps_take = milliseconds(3);
  Go(seconds(2));
  EXPECT_EQ(Claimed()["retried"], 300u);
  EXPECT_LE(worker.scan.asked.maps, 2000 / 15);
}

TEST_F(ScanOrderTest, WhatComesDueIsLookedForAtOnceWhereThatIsCheap) {
  const NewTask soon{.handler = "retried", .run_at = clock_.WallNow() + milliseconds(60)};
  ASSERT_TRUE(store_->OpenOperations()->Submit("tasks", std::vector<NewTask>{soon}));
  Start();
  Go(milliseconds(60));
  EXPECT_EQ(Claimed()["retried"], 1u);
}

TEST_F(ScanOrderTest, AClaimThatCantBeResolvedKeepsNoOtherTableFromBeingClaimed) {
  NewStore({3, 8});
  const std::vector<TableName> tables{"tasks_000", "tasks_001", "tasks_002"};
  RoundWorker& worker = Start();
  worker.Own({{tables[0], true, {}}, {tables[1], true, {}}, {tables[2], true, {}}});
  worker.scan.lost_as = ErrorCode::Unknown;
  for (int i = 0; i < 2; ++i) {  // the newer of the two is locked
    worker.scan.locked = tables[static_cast<std::size_t>(i)];
    worker.scan.loses_a_claim = true;
    Submit("first", 5, 10, *worker.scan.locked);
    Go(milliseconds(300));
    ASSERT_FALSE(worker.scan.loses_a_claim);
  }
  Submit("second", 5, 10, tables[2]);
  worker.scan.asked.resolves = 0;
  Go(seconds(10));
  EXPECT_EQ(Claimed()["second"], 10u);
  EXPECT_EQ(Claimed()["first"], 10u) << "what is not locked is resolved";
  EXPECT_LE(worker.scan.asked.resolves, 5) << "each waits for a second, which no other table is to pay for";
  worker.scan.locked = std::nullopt;
  Go(seconds(10));
  EXPECT_EQ(Claimed()["first"], 20u);
}

TEST(ClaimLedgerTest, TwoThatSeeTheSameRoomDoNotBothFillIt) {
  ClaimLedger ledger;
  const ClaimLoad seen = ledger.Landed("a");
  const LaneRoom room{100};
  EXPECT_EQ(ledger.Grant("a", {60, 600}, room, seen), 60u);
  EXPECT_EQ(ledger.Grant("a", {60, 600}, room, seen), 40u);
  EXPECT_EQ(ledger.Grant("a", {60, 600}, room, ledger.Landed("a")), 0u) << "those are still on their way";
  EXPECT_EQ(ledger.Grant("b", {60, 600}, room, ledger.Landed("b")), 60u);
  ledger.Land("a", {60, 600});
  EXPECT_EQ(ledger.Grant("a", {60, 600}, room, seen), 0u) << "the room that it saw has been filled since";
  EXPECT_EQ(ledger.Grant("a", {60, 600}, room, ledger.Landed("a")), 60u);
}

TEST(ClaimLedgerTest, WhatIsOnItsWayHasAPlaceInTheRoom) {
  ClaimLedger ledger;
  const ClaimLoad seen = ledger.Landed("a");
  EXPECT_EQ(ledger.Grant("a", {60, 1100}, {100, 1000}, seen), 60u) << "one that is too large comes alone";
  ledger.Land("a", {60, 1100});
  const ClaimLoad landed = ledger.Landed("a");
  EXPECT_EQ(ledger.Grant("a", {60, 600}, {100, 1000}, landed), 60u);
  EXPECT_EQ(ledger.Grant("a", {10, 500}, {100, 1000}, landed), 0u) << "what is granted nothing holds nothing";
  EXPECT_EQ(ledger.Free("a", {100, 1000}, landed).tasks, 40u);
  EXPECT_EQ(ledger.Free("a", {100, 1000}, landed).bytes, 400u);
  EXPECT_EQ(ledger.Free("a", {50, 500}, landed).tasks, 0u);
  EXPECT_EQ(ledger.Free("a", {50, 500}, landed).bytes, 0u);
  EXPECT_EQ(ledger.Free("b", {100, 1000}, ledger.Landed("b")).tasks, 100u);
  ledger.Land("a", {60, 600});
  EXPECT_EQ(ledger.Free("a", {100, 1000}, ledger.Landed("a")).tasks, 100u);
  EXPECT_EQ(ledger.Free("a", {100, 1000}, ledger.Landed("a")).bytes, 1000u);
}

TEST_F(ScanOrderTest, ASuspectBesideALongTaskKeepsNobodyOutUntilThatIsDueToEndSoon) {
  RoundWorker& worker = Start();
  worker.runner.takes = std::chrono::hours(1);
  Submit("long", 0, 1);
  Go(milliseconds(50));
  ASSERT_EQ(worker.runner.took, 1u);
  worker.runner.takes = milliseconds(50);
  worker.runner.busy = std::chrono::hours(1);
  Submit("suspect", 0, 1);
  store_->Run("UPDATE tasks SET crashes=2 WHERE handler='suspect'");
  Go(seconds(2));
  Submit("mail", 0, 10);
  Go(seconds(2));
  EXPECT_EQ(worker.runner.took, 11u);
  EXPECT_FALSE(worker.gate().Wanted());
  worker.runner.busy = seconds(20);
  Go(seconds(2));
  EXPECT_TRUE(worker.gate().Wanted());
}

// A worker that rests beside a log in which somebody hears what is written.
class QuietLogTest : public ScanOrderTest {
 protected:
  QuietLogTest() {
    heard_.Begin(clock_.Now());
    heard_.Beat();
  }
  RoundWorker& StartResting(EngineConfig engine = {}) {
    scan_ = &Start(std::move(engine)).scan;
    scan_->heard = &heard_;
    worker_->mill().SetAttended(true);
    Go(seconds(10));
    GoToALook();
    return *worker_;
  }
  void GoToALook() {
    const int before = scan_->asked.maps;
    for (int i = 0; i < 1000 && scan_->asked.maps == before; ++i) Go(kTick);
    ASSERT_GT(scan_->asked.maps, before);
  }
  int MapsIn(Micros span) {
    const int before = scan_->asked.maps;
    Go(span);
    return scan_->asked.maps - before;
  }

  HeardWrites heard_;
  StoreScan* scan_ = nullptr;
};

TEST_F(QuietLogTest, WhereNothingIsWrittenARestingWorkerLooksEveryFourSeconds) {
  StartResting();
  EXPECT_EQ(MapsIn(seconds(40)), 10);
  heard_.End();
  EXPECT_EQ(MapsIn(seconds(40)), 20) << "every two seconds, where nobody hears what is written";
}

TEST_F(QuietLogTest, SoonerWithAShortLeaseSoThatItsConnectionStays) {
  EngineConfig engine;
  engine.lease = seconds(5);
  StartResting(engine);
  EXPECT_EQ(MapsIn(seconds(40)), 20);
}

TEST_F(QuietLogTest, WhatIsWrittenIsSeenAsSoonAsEver) {
  StartResting();
  Go(seconds(1));
  heard_.Write(clock_.Now());  // as one of a pause, which nobody rings for
  EXPECT_EQ(MapsIn(seconds(2)), 1);
  EXPECT_EQ(MapsIn(seconds(2)), 1) << "the look before may have come before its commit";
  EXPECT_EQ(MapsIn(seconds(2)), 0);
  EXPECT_EQ(MapsIn(seconds(2)), 1);
}

TEST_F(QuietLogTest, WhatNobodyHearsOfIsFoundAllTheSame) {
  StartResting();
  Submit("mail", 5, 10);
  Go(milliseconds(3800));
  EXPECT_EQ(Waiting("1=1"), 10);
  Go(milliseconds(400));
  EXPECT_EQ(Waiting("1=1"), 0);
}

TEST_F(QuietLogTest, WhatComesDueIsLookedForAtItsTime) {
  StartResting();
  const NewTask later{.handler = "mail", .run_at = clock_.WallNow() + milliseconds(17'300)};
  ASSERT_TRUE(store_->OpenOperations()->Submit("tasks", std::vector<NewTask>{later}));
  EXPECT_EQ(MapsIn(milliseconds(17'250)), 4);
  EXPECT_EQ(Waiting("1=1"), 1);
  Go(milliseconds(100));
  EXPECT_EQ(Waiting("1=1"), 0);
}

TEST_F(QuietLogTest, ARingAndOtherSlicesWakeIt) {
  RoundWorker& worker = StartResting();
  worker.mill().Rung({kDefaultTable, {1}});
  EXPECT_GE(MapsIn(kTick), 1);
  GoToALook();
  Go(seconds(5));
  GoToALook();
  worker.Own({{"tasks", false, {1}}});
  EXPECT_EQ(MapsIn(kTick), 1);
  Go(seconds(5));
  GoToALook();
  worker.mill().SetAttended(false);
  EXPECT_GE(MapsIn(seconds(2)), 10) << "and polls where nobody listens";
}

TEST_F(QuietLogTest, AHandlerThatOpensIsWrittenNowhere) {
  StartResting().runner.unopened = "mail";
  Submit("mail", 5, 10);
  GoToALook();
  EXPECT_EQ(MapsIn(seconds(20)), 10);
  worker_->runner.unopened.clear();
  Go(seconds(2));
  EXPECT_EQ(Waiting("1=1"), 0);
}

TEST_F(QuietLogTest, NorIsATableThatIsUnlocked) {
  NewStore({2, 8});
  StartResting().Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  scan_->unreadable = TableName("tasks_001");
  GoToALook();
  const int refused = scan_->asked.refused;
  EXPECT_GE(MapsIn(seconds(40)) + scan_->asked.refused - refused, 19) << "those of the locked table take two";
}

TEST_F(ScanOrderTest, ARingForSlicesOfOthersCostsNoLook) {
  RoundWorker& worker = Start();
  worker.Own({{"tasks", false, {1}}});
  worker.mill().SetAttended(true);
  Go(seconds(5));
  const int maps = worker.scan.asked.maps;
  worker.mill().Rung({kDefaultTable, {2}});
  Go(milliseconds(200));
  EXPECT_EQ(worker.scan.asked.maps, maps);
  worker.mill().Rung({kDefaultTable, {2, 1}});
  Go(milliseconds(200));
  EXPECT_GT(worker.scan.asked.maps, maps);
}

}  // namespace
}  // namespace millrace::engine
