// Handlers that are scanned in rounds: a worker's mill, on a real store, in a time that the test moves.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

constexpr Micros kRoundTick = milliseconds(10);
constexpr char kReport[] = "report";

ScanRules After(Micros delay, std::uint32_t max_rows, ScanScope scope = ScanScope::Created) {
  return {{kReport, {.after = delay, .max_rows = max_rows, .scope = scope}}};
}
ScanRules Every(Micros period, std::uint32_t max_rows = 0) {
  return {{kReport, {.every = period, .max_rows = max_rows}}};
}

struct SeenRound {
  BootTime began;  // its first claim
  WallTime mapped;
  std::vector<Task> tasks;
};

class RoundsTest : public ::testing::Test {
 protected:
  void Submit(std::size_t count, const TableName& table = "tasks", const std::string& type = kReport,
              std::uint32_t priority = 5) {
    NewTask task;
    task.handler = type;
    task.priority = priority;
    const auto operations = store_->OpenOperations();
    for (; count > 0;) {
      const std::size_t now = std::min<std::size_t>(count, 999);
      ASSERT_TRUE(operations->Submit(table, std::vector<NewTask>(now, task)));
      count -= now;
    }
  }
  void NewStore(const SchemaSpec& spec) {
    workers_.clear();
    store_ = std::make_unique<ScratchStore>(clock_, spec);
  }
  RoundWorker& Start(ScanRules rules, const std::string& name = "w", bool watch_idle = false) {
    workers_.push_back(std::make_unique<RoundWorker>(clock_, *store_, name, std::move(rules), watch_idle));
    return *workers_.back();
  }
  void Go(Micros span, const std::function<void()>& meanwhile = {}) {
    for (const BootTime end = clock_.Now() + span; clock_.Now() < end;) {
      if (meanwhile) meanwhile();
      for (const auto& worker : workers_) worker->Work();
      clock_.Advance(kRoundTick);
    }
    for (const auto& worker : workers_) worker->Work();
  }
  std::int64_t Waiting() { return store_->Ask("SELECT count(*) FROM tasks WHERE state=0"); }

  // What a worker has claimed, parted where it claimed nothing for longer than `pause`.
  static std::vector<SeenRound> Rounds(const RoundWorker& worker, Micros pause = seconds(1)) {
    std::vector<SeenRound> rounds;
    BootTime last{};
    for (const ClaimSeen& claim : worker.scan.seen) {
      if (claim.tasks.empty()) continue;
      if (rounds.empty() || claim.at - last > pause) rounds.push_back({claim.at, claim.mapped, {}});
      last = claim.at;
      std::vector<Task>& tasks = rounds.back().tasks;
      tasks.insert(tasks.end(), claim.tasks.begin(), claim.tasks.end());
    }
    return rounds;
  }
  static std::vector<std::size_t> Sizes(const std::vector<SeenRound>& rounds) {
    std::vector<std::size_t> sizes;
    for (const SeenRound& round : rounds) sizes.push_back(round.tasks.size());
    return sizes;
  }
  static std::vector<Micros> Begins(const std::vector<SeenRound>& rounds) {
    std::vector<Micros> begins;
    for (const SeenRound& round : rounds) begins.push_back(round.began - rounds.front().began);
    return begins;
  }

  ManualClock clock_;
  std::unique_ptr<ScratchStore> store_ = std::make_unique<ScratchStore>(clock_);
  std::vector<std::unique_ptr<RoundWorker>> workers_;
};

TEST_F(RoundsTest, TenThousandFiveHundredRowsAreElevenRoundsOfAThousand) {
  Submit(10'500);
  Go(seconds(1));
  const RoundWorker& worker = Start(After(seconds(5), 1000));
  Go(minutes(3));
  std::vector<std::size_t> sizes(10, 1000);
  sizes.push_back(500);
  EXPECT_THAT(Sizes(Rounds(worker)), ElementsAreArray(sizes));
  EXPECT_EQ(Waiting(), 0);
}

TEST_F(RoundsTest, NoRowThatWasCreatedAfterItsRoundBeganIsTakenThoughRowsComeAllTheWhile) {
  for (const ScanScope scope : {ScanScope::Created, ScanScope::Key}) {
    NewStore({});
    Submit(10'500);
    Go(seconds(1));
    const RoundWorker& worker = Start(After(seconds(5), 1000, scope));
    int tick = 0;
    Go(minutes(2), [&] {
      if (++tick % 5 == 0) Submit(3, "tasks", kReport, 9);  // less urgent: those that were there go before
    });
    const std::vector<SeenRound> rounds = Rounds(worker);
    ASSERT_THAT(rounds, SizeIs(Ge(11U)));
    EXPECT_THAT(Sizes(rounds), Each(Le(1000U)));
    std::size_t first = 0;  // of the rows that were there at first
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      for (const Task& task : rounds[i].tasks) {
        EXPECT_LE(task.created_at, rounds[i].mapped) << "round " << i << ", task " << task.key.id;
        first += task.key.id <= 10'500 ? 1 : 0;
      }
      EXPECT_EQ(first, std::min<std::size_t>(1000 * (i + 1), 10'500)) << "round " << i;
    }
  }
}

TEST_F(RoundsTest, HoweverManyTasksSnoozeOftenTheyAreLookedIntoWithOneStatementAClaim) {
  Submit(500);
  store_->Run("UPDATE tasks SET attempt=20");
  const RoundWorker& worker = Start(After(seconds(5), 1000));
  Go(seconds(2));
  EXPECT_EQ(Waiting(), 0);
  EXPECT_EQ(worker.scan.asked.rescues_of, 500);
  EXPECT_LE(worker.scan.asked.rescues, worker.scan.asked.claims);
  EXPECT_LT(worker.scan.asked.rescues, 10);
}

TEST_F(RoundsTest, AFixedDelayCountsFromTheEndOfTheLastTask) {
  Submit(600);
  RoundWorker& worker = Start(After(seconds(5), 300));
  worker.runner.takes = seconds(3);
  Go(seconds(20));
  const std::vector<SeenRound> rounds = Rounds(worker, seconds(4));
  ASSERT_THAT(Sizes(rounds), ElementsAre(300U, 300U));
  // Two stretches of three seconds, since there is room for 250; and a look until it is seen.
  EXPECT_THAT(Begins(rounds)[1], AllOf(Ge(seconds(11)), Le(milliseconds(11'300))));
}

TEST_F(RoundsTest, AFixedRateKeepsToItsGridHoweverLongARoundTakes) {
  Submit(1200);
  RoundWorker& worker = Start(Every(seconds(10), 300));
  worker.runner.takes = seconds(3);
  Go(seconds(45));
  const std::vector<SeenRound> rounds = Rounds(worker, seconds(4));
  ASSERT_THAT(Sizes(rounds), ElementsAre(300U, 300U, 300U, 300U));
  const std::vector<Micros> begins = Begins(rounds);
  for (int i = 0; i < 4; ++i)
    EXPECT_LE(begins[static_cast<std::size_t>(i)] - i * seconds(10), 2 * kRoundTick);
}

TEST_F(RoundsTest, ARoundThatTakesLongerThanItsPeriodIsFollowedAtOnceByOne) {
  Submit(1000);
  RoundWorker& worker = Start(Every(seconds(5), 400));
  worker.runner.most = 100;
  worker.runner.takes = seconds(3);
  Go(seconds(11));  // four stretches of three seconds are a round
  EXPECT_EQ(Waiting(), 600);
  Go(milliseconds(1500));
  EXPECT_EQ(Waiting(), 500) << "those of its grid that passed are one";
}

TEST_F(RoundsTest, ARingBeginsNoRoundAndAClosedHandlerIsNotAskedForAgainAndAgain) {
  Submit(1500);
  RoundWorker& worker = Start(After(minutes(1), 1000));
  worker.mill().SetAttended(true);
  Go(seconds(5));
  EXPECT_EQ(Waiting(), 500);
  const Asked before = worker.scan.asked;
  Go(seconds(50), [&] { worker.mill().Rung(Ring{}); });
  EXPECT_EQ(Waiting(), 500);
  EXPECT_EQ(worker.scan.asked.pages, before.pages);
  Go(seconds(2));
  const int rung = worker.scan.asked.maps;
  Go(seconds(3));
  EXPECT_LE(worker.scan.asked.maps - rung, 3) << "every two seconds, where somebody rings";
  Go(seconds(3));
  EXPECT_EQ(Waiting(), 0) << "and at its time";
}

TEST_F(RoundsTest, ARestingWorkerWakesWhenTheRoundBegins) {
  Submit(20);
  RoundWorker& worker = Start(Every(milliseconds(7300), 10));
  worker.mill().SetAttended(true);
  Go(seconds(12));
  EXPECT_THAT(Begins(Rounds(worker)),
              ElementsAre(Micros(0), AllOf(Ge(milliseconds(7300)), Le(milliseconds(7320)))));
}

TEST_F(RoundsTest, AClosedHandlerWithDueRowsIsNotIdle) {
  Submit(15);
  RoundWorker& worker = Start(After(seconds(10), 10), "w", true);
  bool early = false;
  Go(seconds(9), [&] { early = early || worker.mill().Idle(); });
  EXPECT_FALSE(early);
  Go(seconds(4));
  EXPECT_EQ(Waiting(), 0);
  EXPECT_TRUE(worker.mill().Idle());
}

TEST_F(RoundsTest, WhatIsPausedIsLeftAsideOnceNobodyRunsIt) {
  Submit(15);
  RoundWorker& other = Start({}, "other");
  other.runner.most = 5;
  other.runner.takes = seconds(3);
  Go(seconds(1));
  ASSERT_EQ(Waiting(), 10);
  other.Pause({"cluster"});
  RoundWorker& worker = Start({}, "w", true);
  worker.Pause({"handler:report"});
  bool early = false;
  Go(milliseconds(1500), [&] { early = early || worker.mill().Idle(); });
  EXPECT_FALSE(early) << "some of it is running elsewhere";
  Go(seconds(3));
  EXPECT_EQ(Waiting(), 10);
  EXPECT_TRUE(worker.mill().Idle());
  EXPECT_THAT(worker.mill().LeftAside(), ElementsAre("report is paused"));
}

TEST_F(RoundsTest, AChangeHoldsAtOnceAlsoInTheMiddleOfARound) {
  Submit(3000);
  RoundWorker& worker = Start(After(minutes(10), 600));
  Go(milliseconds(60));
  ASSERT_EQ(Waiting(), 2500) << "the round is under way";
  worker.SetScans(After(minutes(10), 300));
  Go(seconds(3));
  EXPECT_EQ(Waiting(), 2500);
  worker.SetScans(After(seconds(5), 300));
  Go(seconds(4));
  EXPECT_EQ(Waiting(), 2200) << "the time since its last end counts";
  worker.SetScans({});
  Go(seconds(2));
  EXPECT_EQ(Waiting(), 0) << "without a pause";
  worker.SetScans(After(minutes(10), 300));
  Submit(500);
  Go(seconds(2));
  EXPECT_EQ(Waiting(), 200);
}

TEST_F(RoundsTest, APauseInTheMiddleOfARoundIsWaitedFor) {
  Submit(2000);
  RoundWorker& worker = Start(After(minutes(10), 1000));
  worker.runner.takes = seconds(1);
  Go(milliseconds(500));
  EXPECT_EQ(Waiting(), 1750);
  worker.Pause({"handler:report"});
  Submit(10);
  Go(minutes(1));
  EXPECT_EQ(Waiting(), 1760);
  worker.Pause({});
  Go(seconds(10));
  EXPECT_EQ(Waiting(), 1010) << "the round goes on";
}

TEST_F(RoundsTest, WhatGoesBackBeforeItStartsIsTakenInTheSameRound) {
  for (const bool paused : {false, true}) {
    NewStore({});
    Submit(500);
    RoundWorker& worker = Start(After(minutes(10), 200));
    worker.runner.takes = seconds(1);
    Go(milliseconds(500));
    ASSERT_EQ(Waiting(), 300);
    if (paused) worker.Pause({"handler:report"});
    worker.runner.GiveAllBack();
    Submit(10);
    if (paused) Go(minutes(1));
    worker.Pause({});
    Go(seconds(10));
    EXPECT_EQ(Waiting(), 310);
    EXPECT_EQ(worker.mill().View().rounds.at(0).claimed, 200U);
  }
}

TEST_F(RoundsTest, WhatGoesBackToBeDueALittleLaterIsTakenInTheSameRoundToo) {
  for (const std::uint32_t max_rows : {0U, 200U}) {
    NewStore({});
    Submit(200);
    RoundWorker& worker = Start(After(minutes(10), max_rows));
    worker.runner.takes = seconds(1);
    Go(milliseconds(500));
    ASSERT_EQ(Waiting(), 0);
    worker.runner.GiveAllBack(seconds(1));
    Go(milliseconds(500));
    ASSERT_EQ(Waiting(), 200);
    Submit(10);
    Go(seconds(10));
    EXPECT_EQ(Waiting(), 10) << "and nothing that came after its beginning";
  }
}

TEST_F(RoundsTest, APausedSliceHoldsUpNoRoundOfTheOthers) {
  Submit(100);
  store_->Run("UPDATE tasks SET slice=CASE WHEN id<=50 THEN 1 ELSE 2 END");
  RoundWorker& worker = Start(Every(seconds(10), 20));
  worker.Pause({"slice:main:tasks:1"});
  Go(seconds(35));
  EXPECT_EQ(Waiting(), 50);
  worker.Pause({});
  Go(seconds(1));
  EXPECT_EQ(Waiting(), 30) << "the fourth of these rounds has found nothing yet";
}

TEST_F(RoundsTest, SlicesOfAllTablesShareOneRound) {
  NewStore({2, 8});
  Submit(900, "tasks_000");
  Submit(900, "tasks_001");
  for (const ScanScope scope : {ScanScope::Created, ScanScope::Key}) {
    RoundWorker& worker = Start(After(minutes(10), 500, scope));
    worker.Own({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
    Go(seconds(5));
    EXPECT_THAT(Sizes(Rounds(worker)), ElementsAre(500U));
    workers_.clear();
  }
}

TEST_F(RoundsTest, ASliceThatComesBelongsToTheOpenRoundAndElseToTheNext) {
  Submit(400);
  store_->Run("UPDATE tasks SET slice=id%4");
  RoundWorker& worker = Start(After(seconds(20), 300));
  worker.runner.takes = seconds(1);
  worker.runner.most = 100;
  worker.Own({{"tasks", false, {0, 1}}});
  Go(milliseconds(500));
  EXPECT_EQ(Waiting(), 300);
  worker.Own({{"tasks", false, {1, 2}}});  // one goes, one comes
  Go(seconds(5));
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks_done WHERE slice=2"), 100);
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks WHERE slice=1"), 0);
  worker.Own({{"tasks", true, {}}});
  Go(seconds(10));
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks WHERE slice=3"), 100) << "the round is over";
  Go(seconds(12));
  EXPECT_EQ(Waiting(), 0);
}

TEST_F(RoundsTest, ARetryThatComesDueBelongsToTheOpenRoundAndElseToTheNext) {
  for (const bool open : {true, false}) {
    NewStore({});
    Submit(300);
    store_->Run("UPDATE tasks SET slice=1");
    RoundWorker& worker = Start(Every(seconds(30)));
    Outcome again;
    again.kind = OutcomeKind::Retry;
    again.delay = milliseconds(500);
    worker.runner.outcomes[1] = again;
    worker.runner.takes = seconds(1);
    worker.runner.most = open ? 100 : 300;
    Go(seconds(10));
    EXPECT_EQ(Waiting(), open ? 0 : 1);
    Go(seconds(22));
    EXPECT_EQ(Waiting(), 0);
  }
}

TEST_F(RoundsTest, ARowBehindTheCursorWaitsForTheNextRound) {
  Submit(600);
  store_->Run("UPDATE tasks SET slice=1");
  RoundWorker& worker = Start(After(seconds(20), 0));
  worker.runner.most = 200;
  worker.runner.takes = seconds(2);
  Go(seconds(1));
  store_->Run(
      "INSERT INTO tasks (slice,handler,params,run_at,created_at) SELECT 1,handler,params,'2001-01-01 "
      "00:00:00.000000',"
      "'2001-01-01 00:00:00.000000' FROM tasks LIMIT 1");
  Go(seconds(15));
  EXPECT_EQ(Waiting(), 1);
  Go(seconds(15));
  EXPECT_EQ(Waiting(), 0);
}

TEST_F(RoundsTest, WhatAFailedClaimLeftBehindIsTakenInTheSameRound) {
  Submit(500);
  RoundWorker& worker = Start(After(minutes(10), 0));
  worker.scan.loses_a_claim = true;
  Go(seconds(10));
  EXPECT_EQ(Waiting(), 0);
}

TEST_F(RoundsTest, TwoWorkersHaveRoundsOfTheirOwn) {
  Submit(2000);
  store_->Run("UPDATE tasks SET slice=id%2");
  RoundWorker& one = Start(After(seconds(10), 200), "one");
  one.Own({{"tasks", false, {0}}});
  Go(seconds(4));
  RoundWorker& two = Start(After(seconds(10), 300), "two");
  two.Own({{"tasks", false, {1}}});
  Go(seconds(25));
  EXPECT_THAT(Sizes(Rounds(one)), ElementsAre(200U, 200U, 200U));
  EXPECT_THAT(Sizes(Rounds(two)), ElementsAre(300U, 300U, 300U));
}

TEST_F(RoundsTest, AWorkerWithoutSlicesBeginsNoRound) {
  Submit(10);
  RoundWorker& worker = Start(After(minutes(10), 0));
  worker.Own({});
  Go(seconds(5));
  worker.Own({{"tasks", true, {}}});
  Go(seconds(2));
  EXPECT_EQ(Waiting(), 0) << "its first begins when it has some";
}

TEST_F(RoundsTest, OtherHandlersAreAskedForAsWhereThereAreNoRounds) {
  std::vector<Asked> asked;
  for (const ScanRules& rules : {ScanRules{}, After(minutes(10), 1000)}) {
    NewStore({});
    Submit(3000, "tasks", "noop");
    store_->Run("UPDATE tasks SET slice=id%64");
    const RoundWorker& worker = Start(rules);
    Go(seconds(20));
    EXPECT_EQ(Waiting(), 0);
    asked.push_back(worker.scan.asked);
  }
  EXPECT_TRUE(asked[0] == asked[1]);
  EXPECT_EQ(asked[0].claims, 12);
  EXPECT_EQ(asked[0].created, 0);
  EXPECT_EQ(asked[0].greatest, 0);
}

}  // namespace
}  // namespace millrace::engine
