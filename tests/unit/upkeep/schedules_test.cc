#include "coordinator/upkeep/schedules.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "framework/base/random.h"
#include "framework/base/time_text.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using Role = ScheduleDuty::Role;
using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A server that is away at one in so many calls, or has done what it was told and its reply is lost.
class LossyStore final : public ScheduleStore {
 public:
  LossyStore(std::unique_ptr<ScheduleStore> store, Random& random, const std::uint64_t& one_in,
             const bool& read_only, const bool& hides_lasts, int& lasts)
      : store_(std::move(store)),
        random_(random),
        one_in_(one_in),
        read_only_(read_only),
        hides_lasts_(hides_lasts),
        lasts_(lasts) {}

  Result<ScheduleRows> Rows() override {
    return Try([&] { return store_->Rows(); });
  }
  Result<LastTask> Last(const ScheduleRow& row) override {
    ++lasts_;
    if (hides_lasts_) return Fail(ErrorCode::Unavailable, "the table can't be read");
    return Try([&] { return store_->Last(row); });
  }
  Result<bool> Make(const ScheduleRow& row) override {
    return Write([&] { return store_->Make(row); });
  }
  Result<ScheduleStepped> Step(const ScheduleRow& seen, const ScheduleStep& step) override {
    return Write([&] { return store_->Step(seen, step); });
  }
  Status NoteLapsed(const std::string& name, const std::vector<Lapse>& told) override {
    return Write([&] { return store_->NoteLapsed(name, told); });
  }
  Result<bool> Move(const ScheduleRow& seen, const std::string& to, std::uint64_t config) override {
    return Write([&] { return store_->Move(seen, to, config); });
  }
  Result<bool> Remove(const ScheduleRow& seen) override {
    return Write([&] { return store_->Remove(seen); });
  }
  Result<TaskKey> RunNow(const std::string& name, const ScheduledFiring& firing,
                         const std::string& actor) override {
    return store_->RunNow(name, firing, actor);
  }

 private:
  template <class Call>
  std::invoke_result_t<Call> Write(Call call) {
    if (read_only_) return Fail(ErrorCode::Unavailable, "the server is read-only");
    return Try(call);
  }
  template <class Call>
  std::invoke_result_t<Call> Try(Call call) {
    const bool fails = one_in_ > 0 && random_.Below(one_in_) == 0;
    if (fails && random_.Below(2) == 0) return Fail(ErrorCode::Unavailable, "the server is away");
    auto answer = call();
    if (fails) return Fail(ErrorCode::Unknown, "the reply is lost");
    return answer;
  }

  const std::unique_ptr<ScheduleStore> store_;
  Random& random_;
  const std::uint64_t& one_in_;
  const bool& read_only_;
  const bool& hides_lasts_;
  int& lasts_;
};

// What one process knows, and its hands in each shard.
class Process {
 public:
  explicit Process(const std::map<std::string, std::shared_ptr<ScratchStore>>& stores, std::uint64_t seed = 1)
      : random_(seed) {
    for (const auto& [name, store] : stores) {
      auto lossy = std::make_unique<LossyStore>(store->OpenSchedules(), random_, fails_one_in, read_only,
                                                hides_lasts, lasts);
      shards_.emplace(name, std::make_unique<ShardSchedules>(name, store->OpenSchema(), std::move(lossy),
                                                             store->OpenIncarnations(), board_));
      duty.shards.push_back(name);
    }
    duty.role = Role::Keeps;
    duty.removes = true;
    duty.number = 1;
  }

  void Configure(const std::string& schedules, std::uint64_t number) {
    auto config = ParseConfig("{\"schedules\":" + schedules + "}", "m.json", UnknownZones::Contained);
    ASSERT_TRUE(config) << config.error().message;
    duty.config = std::make_shared<const Config>(std::move(*config));
    duty.number = number;
  }
  Micros Look(const std::string& shard) { return shards_.at(shard)->Look(duty, BootClock::now() + later); }
  // Every shard, until none has anything to do at once.
  void LookAll() {
    bool again = true;
    for (int turn = 0; again && turn < 20; ++turn) {
      again = false;
      for (const auto& [name, shard] : shards_) again = Look(name) < 500ms || again;
    }
  }
  std::vector<std::string> Troubles() const {
    std::vector<std::string> all;
    for (const auto& [name, shard] : shards_)
      all.insert(all.end(), shard->troubles().begin(), shard->troubles().end());
    return all;
  }

  ScheduleDuty duty;
  Micros later{0};                 // than it is
  std::uint64_t fails_one_in = 0;  // calls; 0: none
  bool read_only = false;          // its servers refuse what it writes
  bool hides_lasts = false;        // no last task can be read
  int lasts = 0;                   // so often a last task was asked for

 private:
  Random random_;
  ScheduleBoard board_;
  std::map<std::string, std::unique_ptr<ShardSchedules>> shards_;
};

class SchedulesTest : public testing::Test {
 protected:
  SchedulesTest() { Shards({"main"}); }

  void Shards(const std::vector<std::string>& names) {
    stores_.clear();
    for (const std::string& name : names) {
      stores_[name] = std::make_shared<ScratchStore>(clock_, SchemaSpec{.tables = 1, .slices = 4});
    }
  }
  ScratchStore& Main() { return *stores_.begin()->second; }
  // The times of the firings whose tasks are in any pool, sorted.
  std::vector<std::string> Fired(ScratchStore& store, const std::string& name = "nightly") {
    std::vector<std::string> times;
    const std::string prefix = "schedule/" + name + "/";
    const auto keyed = store.OpenAlerts()->Keyed("noop", prefix, 10'000);
    for (const KeyedTask& entry : *keyed) {
      times.push_back(entry.key.substr(prefix.size()));
    }
    std::reverse(times.begin(), times.end());
    return times;
  }
  std::vector<std::string> Fired() { return Fired(Main()); }
  std::int64_t Tasks(ScratchStore& store) { return store.Ask("SELECT COUNT(*) FROM tasks_all"); }
  // What waits goes to the finished pool.
  void EndTasks() {
    std::vector<std::uint64_t> ids;
    const auto operations = Main().OpenOperations();
    const auto page = operations->List("tasks", {}, "", 1000);
    for (const TaskRecord& record : page->records) {
      ids.push_back(record.task.key.id);
    }
    ASSERT_TRUE(operations->Apply(TaskAction::Cancel, "tasks", ids, "ann"));
  }
  ScheduleRow Row(const std::string& shard = "main") {
    const auto rows = stores_.at(shard)->OpenSchedules()->Rows();
    return rows->rows.size() == 1 ? rows->rows.front() : ScheduleRow();
  }
  void Pass(Process& process, int seconds) {
    for (int second = 0; second < seconds; ++second) {
      clock_.Advance(1s);
      process.later += 1s;
      process.LookAll();
    }
  }
  // Of the rows of the audit that tell of what lapsed for this reason.
  std::int64_t Told(const std::string& what, const std::string& why = "the last firing''s task was in work") {
    return Main().Ask("SELECT " + what +
                      " FROM millrace_audit WHERE action='schedule_lapsed' AND detail LIKE '%: " + why +
                      "%'");
  }

  ManualClock clock_{std::chrono::sys_days(std::chrono::year(2026) / 11 / 22) + hours(12)};
  std::map<std::string, std::shared_ptr<ScratchStore>> stores_;
};

constexpr const char* kHourly = R"({"nightly":{"cron":"0 * * * *","handler":"noop","params":{"a":1}}})";

TEST_F(SchedulesTest, FiresAtItsTimeAndSaysWhenItIsToLookAgain) {
  Process process(stores_);
  process.Configure(kHourly, 1);
  process.LookAll();
  EXPECT_THAT(Fired(), ElementsAre("2026-11-22T12:00:00Z"));
  clock_.Advance(hours(1) - 300ms);
  const Micros wait = process.Look("main");
  EXPECT_LE(wait, 300ms);
  EXPECT_GT(wait, 0ms);
  EXPECT_EQ(Fired().size(), 1U);
  clock_.Advance(300ms);
  process.Look("main");
  process.Look("main");
  EXPECT_THAT(Fired(), ElementsAre("2026-11-22T12:00:00Z", "2026-11-22T13:00:00Z"));
  EXPECT_THAT(process.Troubles(), IsEmpty());
}

TEST_F(SchedulesTest, OfTwoWhoLookEachFiringIsOneTask) {
  Process first(stores_);
  Process second(stores_);
  for (Process* process : {&first, &second}) process->Configure(kHourly, 1);
  for (int hour = 0; hour < 10; ++hour) {
    first.LookAll();
    second.LookAll();
    clock_.Advance(hours(1));
  }
  EXPECT_EQ(Fired().size(), 10U);
  EXPECT_EQ(Tasks(Main()), 10);
}

TEST_F(SchedulesTest, AnOutageIsCaughtUpAsItsKeySays) {
  const std::pair<const char*, std::size_t> ways[] = {{"none", 0}, {"one", 1}, {"all", 5}};
  for (const auto& [way, made_up] : ways) {
    Shards({"main"});
    Process process(stores_);
    process.Configure(
        R"({"nightly":{"cron":"0 * * * *","handler":"noop","catch_up":")" + std::string(way) + R"("}})", 1);
    process.LookAll();
    const std::size_t before = Fired().size();
    clock_.Advance(hours(5) + 30min);
    process.LookAll();
    EXPECT_EQ(Fired().size(), before + made_up) << way;
    EXPECT_EQ(Row().lapsed, 5 - made_up) << way;
    clock_.Advance(30min);
  }
}

TEST_F(SchedulesTest, WhatComesDueInAPauseLapses) {
  Process process(stores_);
  process.Configure(kHourly, 1);
  process.LookAll();
  process.Configure(R"({"nightly":{"cron":"0 * * * *","handler":"noop","paused":true}})", 2);
  process.LookAll();
  clock_.Advance(hours(3) + 1min);
  process.LookAll();
  EXPECT_EQ(Fired().size(), 1U);
  process.Configure(kHourly, 3);
  process.LookAll();
  EXPECT_EQ(Fired().size(), 1U);
  EXPECT_EQ(Row().lapsed, 3U);
  clock_.Advance(hours(1));
  process.LookAll();
  EXPECT_THAT(Fired(), ElementsAre("2026-11-22T12:00:00Z", "2026-11-22T16:00:00Z"));
}

TEST_F(SchedulesTest, WhatIsDueWhenTheRuleChangesLapsesAndTheAuditSaysWhy) {
  Process process(stores_);
  process.Configure(kHourly, 1);
  process.LookAll();
  clock_.Advance(hours(1));
  process.Configure(R"({"nightly":{"cron":"30 * * * *","handler":"noop"}})", 2);
  process.LookAll();
  EXPECT_EQ(Fired().size(), 1U) << "a change is no firing";
  EXPECT_EQ(Row().lapsed, 1U);
  EXPECT_EQ(Main().Ask("SELECT COUNT(*) FROM millrace_audit WHERE action='schedule_lapsed' AND "
                       "detail LIKE '%1: its rule was changed%'"),
            1);
}

TEST_F(SchedulesTest, AFixedDelayCountsFromWhenItsTaskReachedAPool) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"after":"10m","handler":"noop"}})", 1);
  process.LookAll();
  ASSERT_EQ(Tasks(Main()), 1);
  clock_.Advance(hours(2));
  process.LookAll();
  EXPECT_EQ(Tasks(Main()), 1);
  EndTasks();
  clock_.Advance(9min);
  process.LookAll();
  EXPECT_EQ(Tasks(Main()), 1);
  clock_.Advance(1min);
  process.LookAll();
  EXPECT_EQ(Tasks(Main()), 2);
}

TEST_F(SchedulesTest, AFixedDelayCountsFromTheEndOfATaskThatWasRunByHand) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"after":"10m","handler":"noop"}})", 1);
  process.LookAll();
  EndTasks();
  NewTask task;
  task.handler = "noop";
  ASSERT_TRUE(Main().OpenSchedules()->RunNow("nightly", {clock_.WallNow(), "tasks", task}, "ann"));
  clock_.Advance(10min);
  process.LookAll();
  EXPECT_EQ(Tasks(Main()), 2);
  EndTasks();
  clock_.Advance(10min);
  process.LookAll();
  EXPECT_EQ(Tasks(Main()), 3);
}

TEST_F(SchedulesTest, WhatOverlapsLapsesWhereItIsToBeSkipped) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"cron":"0 * * * *","handler":"noop","overlap":"skip"}})", 1);
  process.LookAll();
  clock_.Advance(hours(1));
  process.LookAll();
  EXPECT_EQ(Fired().size(), 1U);
  EXPECT_EQ(Row().lapsed, 1U);
  EndTasks();
  clock_.Advance(hours(1));
  process.LookAll();
  EXPECT_EQ(Tasks(Main()), 2);  // the key of the first was freed, since it never started
}

// Of a schedule each second it would else soon hold nothing else.
TEST_F(SchedulesTest, TheAuditIsToldOfWhatOverlapsOnceAMinute) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"every":"1s","handler":"noop","overlap":"skip"}})", 1);
  process.LookAll();
  ASSERT_EQ(Fired().size(), 1U);
  Pass(process, 1);
  EXPECT_EQ(Told("COUNT(*)"), 1) << "the first at once";
  Pass(process, 128);
  EXPECT_EQ(Row().lapsed, 129U);
  EXPECT_EQ(Told("COUNT(*)"), 3);
  process.Configure(R"({"nightly":{"every":"1s","handler":"noop"}})", 2);
  Pass(process, 60);
  EXPECT_EQ(Told("COUNT(*)"), 4) << "what is left of the overlap, too";
  EXPECT_EQ(Told("SUM(CAST(detail AS INTEGER))"), 129);
  EXPECT_EQ(Row().lapsed, 129U);
}

TEST_F(SchedulesTest, WhatOverlapsIsToldWithinAMinuteWithItsOwnReason) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"every":"1s","handler":"noop","overlap":"skip"}})", 1);
  process.LookAll();
  Pass(process, 5);
  process.Configure(R"({"nightly":{"every":"2s","handler":"noop","overlap":"skip"}})", 2);
  clock_.Advance(1s);
  process.LookAll();
  EXPECT_EQ(Told("SUM(CAST(detail AS INTEGER))", "its rule was changed"), 1);
  EXPECT_EQ(Told("SUM(CAST(detail AS INTEGER))"), 1) << "the first at once";
  process.Configure(R"({"nightly":{"every":"2s","handler":"noop","overlap":"skip","paused":true}})", 3);
  process.LookAll();
  process.fails_one_in = 1;
  (void)process.Look("main");
  process.fails_one_in = 0;
  Pass(process, 60);
  EXPECT_EQ(Told("COUNT(*)"), 2) << "nothing is due, and the shard was away";
  EXPECT_EQ(Told("SUM(CAST(detail AS INTEGER))"), 5);
  EXPECT_EQ(Row().lapsed, 6U);
}

TEST_F(SchedulesTest, ATimeThatAPersonWroteInAnotherFormFiresAsItReads) {
  Process process(stores_);
  process.Configure(kHourly, 1);
  process.LookAll();
  Main().Run("UPDATE millrace_schedules SET next_at='2026-11-22 12:30:00', last_at='2026-11-22T12:00:00Z'");
  clock_.Advance(30min);
  EXPECT_GE(process.Look("main"), 500ms);
  EXPECT_THAT(Fired(), ElementsAre("2026-11-22T12:00:00Z", "2026-11-22T12:30:00Z"));
  clock_.Advance(30min);
  process.LookAll();
  EXPECT_EQ(Fired().size(), 3U);
}

TEST_F(SchedulesTest, ItsLastTaskIsAskedForOnlyWhereThatCounts) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"every":"1h","handler":"noop","overlap":"skip"}})", 1);
  process.LookAll();
  process.lasts = 0;
  process.LookAll();
  EXPECT_EQ(process.lasts, 0) << "nothing is due";
  clock_.Advance(hours(1));
  process.LookAll();
  EXPECT_EQ(process.lasts, 1);
  EXPECT_EQ(Row().lapsed, 1U);
}

TEST_F(SchedulesTest, TheEndOfAFixedDelaysLastTaskIsAskedForOnce) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"after":"1h","handler":"noop"}})", 1);
  process.LookAll();
  EndTasks();
  process.LookAll();
  process.LookAll();
  process.lasts = 0;
  process.LookAll();
  EXPECT_EQ(process.lasts, 0);
  NewTask task;
  task.handler = "noop";
  ASSERT_TRUE(Main().OpenSchedules()->RunNow("nightly", {clock_.WallNow(), "tasks", task}, "ann"));
  process.LookAll();
  EXPECT_EQ(process.lasts, 1);
  EXPECT_FALSE(Row().state.next) << "it waits for the end of the task that was run by hand";
}

TEST_F(SchedulesTest, AOneShotFiresOnce) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"at":"2026-11-22T12:30:00Z","handler":"noop"}})", 1);
  process.LookAll();
  EXPECT_THAT(Fired(), IsEmpty());
  for (int hour = 0; hour < 3; ++hour) {
    clock_.Advance(30min);
    process.LookAll();
  }
  EXPECT_THAT(Fired(), ElementsAre("2026-11-22T12:30:00Z"));
}

TEST_F(SchedulesTest, WhoKnowsAnOlderDocumentLeavesTheRowAlone) {
  Process older(stores_);
  Process newer(stores_);
  older.Configure(kHourly, 1);
  newer.Configure(R"({"nightly":{"cron":"30 * * * *","handler":"noop"}})", 2);
  older.LookAll();
  newer.LookAll();
  const std::size_t before = Fired().size();
  clock_.Advance(hours(1));
  older.LookAll();
  EXPECT_EQ(Row().state.rhythm, "cron 30 * * * * UTC");
  EXPECT_EQ(Fired().size(), before);
  older.Configure("{}", 1);
  older.LookAll();
  EXPECT_EQ(Row().name, "nightly");
  newer.LookAll();
  EXPECT_EQ(Fired().size(), before + 1);
}

TEST_F(SchedulesTest, ALeaderTakesWhatHasANumberThatNoDocumentReachesAgain) {
  Process before(stores_);
  before.Configure(kHourly, 7);
  before.LookAll();
  Process leader(stores_);
  leader.Configure(kHourly, 1);  // the ensemble was set up anew
  clock_.Advance(hours(1));
  leader.LookAll();
  leader.later = 59s;
  leader.LookAll();
  EXPECT_EQ(Fired().size(), 1U);
  leader.later = 61s;
  leader.LookAll();
  EXPECT_EQ(Fired().size(), 2U);
  EXPECT_EQ(Row().config, 1U);
}

// Its own document may be an old one.
TEST_F(SchedulesTest, AStandInLeavesANewerRowAloneHoweverLongItLooks) {
  Process before(stores_);
  before.Configure(kHourly, 7);
  before.LookAll();
  Process stand_in(stores_);
  stand_in.Configure(kHourly, 1);
  stand_in.duty.role = Role::StandsIn;
  clock_.Advance(hours(1));
  stand_in.LookAll();
  stand_in.later = hours(1);
  stand_in.LookAll();
  EXPECT_EQ(Fired().size(), 1U);
  EXPECT_EQ(Row().config, 7U);
}

// Nothing of the row but its number says that the document is another.
TEST_F(SchedulesTest, AStandInFiresNothingByADocumentThatIsNoLongerInForce) {
  Process leader(stores_);
  leader.Configure(kHourly, 1);
  leader.LookAll();
  Process stand_in(stores_);
  stand_in.Configure(kHourly, 1);
  stand_in.duty.role = Role::StandsIn;
  leader.Configure(R"({"nightly":{"cron":"0 * * * *","handler":"noop","params":{"a":2}}})", 2);
  leader.LookAll();
  clock_.Advance(hours(1));
  stand_in.LookAll();
  EXPECT_EQ(Fired().size(), 1U);
  leader.LookAll();
  EXPECT_EQ(Fired().size(), 2U);
  EXPECT_EQ(Main().Ask("SELECT COUNT(*) FROM tasks WHERE params='{\"a\":2}'"), 1);
}

// Until somebody has brought the document back.
TEST_F(SchedulesTest, AnEnsembleThatWasWipedTakesNoRowsAwayForADay) {
  Process before(stores_);
  before.Configure(kHourly, 7);
  before.LookAll();
  Process leader(stores_);
  leader.Configure("{}", 1);
  leader.LookAll();
  leader.later = hours(23);
  leader.LookAll();
  EXPECT_EQ(Row().name, "nightly");
  leader.later = hours(25);
  leader.LookAll();
  EXPECT_TRUE(Main().OpenSchedules()->Rows()->rows.empty());
}

TEST_F(SchedulesTest, RowsOfSchedulesThatTheDocumentDoesNotHaveGoWhereItIsEverybodys) {
  Process process(stores_);
  process.Configure(kHourly, 1);
  process.LookAll();
  process.Configure("{}", 2);
  process.duty.removes = false;
  process.LookAll();
  EXPECT_EQ(Row().name, "nightly");
  process.duty.removes = true;
  process.LookAll();
  EXPECT_TRUE(Main().OpenSchedules()->Rows()->rows.empty());
}

// ---- without a cluster

// Two processes, each with a file of its own.
class TwoFilesTest : public SchedulesTest {
 protected:
  static constexpr const char* kHalfPast = R"({"nightly":{"cron":"30 * * * *","handler":"noop"}})";

  TwoFilesTest() {
    for (Process* process : {&first_, &second_}) process->duty.removes = false;
    first_.Configure(kHourly, 0);
    second_.Configure(kHalfPast, 0);
    first_.LookAll();
    first_.LookAll();
    second_.LookAll();
  }
  // With each step both look, or the first alone.
  void Pass(Micros time, bool both = true, Micros step = 1min) {
    for (Micros passed{0}; passed < time; passed += step) {
      clock_.Advance(step);
      for (Process* process : {&first_, &second_}) process->later += step;
      first_.LookAll();
      if (both) second_.LookAll();
    }
  }
  // As a worker's beat does it.
  void Register(const std::string& id, std::int64_t pid, const std::string& host = HostName()) {
    ASSERT_TRUE(lives_->Register({.id = id, .worker = id, .host = host, .pid = pid, .lease = 10s}));
  }

  Process first_{stores_};
  Process second_{stores_};
  const std::unique_ptr<IncarnationStore> lives_ = Main().OpenIncarnations();
};

TEST_F(TwoFilesTest, TheLastToComeKeepsTheRuleAndTheOtherSaysSo) {
  ASSERT_EQ(Fired().size(), 1U);
  Pass(hours(5));
  EXPECT_EQ(Fired().size(), 6U);
  EXPECT_EQ(Fired().back(), "2026-11-22T16:30:00Z");
  EXPECT_EQ(Row().lapsed, 0U);
  EXPECT_THAT(first_.Troubles(), ElementsAre("schedule nightly: another process has another rule for it: "
                                             "give all processes the same file"));
  EXPECT_THAT(second_.Troubles(), IsEmpty());
  second_.Configure(kHourly, 0);
  Pass(hours(1));
  EXPECT_THAT(first_.Troubles(), IsEmpty());
  EXPECT_EQ(Fired().back(), "2026-11-22T18:00:00Z");
}

// Each reads it within three seconds.
TEST_F(TwoFilesTest, AFileThatAllHaveIsChangedForOneAfterTheOtherWithoutAWord) {
  first_.Configure(kHalfPast, 0);
  first_.LookAll();
  ASSERT_THAT(first_.Troubles(), IsEmpty());
  second_.Configure(kHourly, 0);
  second_.LookAll();
  first_.LookAll();
  EXPECT_THAT(first_.Troubles(), IsEmpty());
  first_.Configure(kHourly, 0);
  Pass(hours(2));
  EXPECT_EQ(Fired().size(), 3U);
  EXPECT_EQ(Row().lapsed, 0U);
}

TEST_F(TwoFilesTest, WhatNobodyServesAnyMoreIsTakenOver) {
  Pass(31min);
  Pass(hours(1), false);
  EXPECT_EQ(Row().state.rhythm, "cron 30 * * * * UTC") << "it is a minute late at most";
  Pass(2min, false);
  EXPECT_EQ(Row().state.rhythm, "cron 0 * * * * UTC");
  EXPECT_EQ(Row().lapsed, 1U);
  Pass(hours(2), false);
  EXPECT_EQ(Fired().size(), 4U);
  EXPECT_THAT(first_.Troubles(), IsEmpty());
}

TEST_F(TwoFilesTest, WhatHasNoNextFiringIsTakenOverOnceItHasStoodForAMinute) {
  second_.Configure(R"({"nightly":{"at":"2026-11-22T12:05:00Z","handler":"noop"}})", 0);
  second_.LookAll();
  Pass(6min);
  EXPECT_EQ(Fired().size(), 2U);
  EXPECT_EQ(Row().state.next, std::nullopt);
  Pass(hours(1));
  EXPECT_EQ(Fired().back(), "2026-11-22T13:00:00Z");
}

TEST_F(TwoFilesTest, APauseInOneOfThemIsNotUndoneEachSecond) {
  second_.Configure(R"({"nightly":{"cron":"0 * * * *","handler":"noop","paused":true}})", 0);
  second_.LookAll();
  Pass(30min);
  EXPECT_TRUE(Row().state.paused);
  Pass(hours(3));
  EXPECT_EQ(Row().state.paused, false) << "who is not paused serves it, and the other leaves it alone";
  EXPECT_EQ(Row().lapsed, 1U);
  EXPECT_EQ(Fired().size(), 3U);
  EXPECT_EQ(second_.Troubles().size(), 1U);
}

TEST_F(TwoFilesTest, WhoIsLeftAloneInTheShardTakesTheRowSoon) {
  Register("own.1", getpid());
  Register("other.1", getpid() + 1);
  second_.Configure(R"({"nightly":{"cron":"0 0 1 1 *","handler":"noop"}})", 0);
  second_.LookAll();
  Pass(hours(1));
  EXPECT_EQ(Row().state.rhythm, "cron 0 0 1 1 * UTC") << "somebody lives who may serve it";
  EXPECT_EQ(first_.Troubles().size(), 1U);
  ASSERT_TRUE(lives_->Retire("other.1"));
  Pass(11s, false, 1s);
  EXPECT_EQ(Row().state.rhythm, "cron 0 * * * * UTC");
  EXPECT_THAT(first_.Troubles(), IsEmpty());
  Pass(hours(2), false);
  EXPECT_EQ(Fired().size(), 3U);
}

TEST_F(TwoFilesTest, WhoIsAloneWaitsForTheRowToStandForTenSeconds) {
  Register("own.1", getpid());
  Pass(9s, false, 1s);
  EXPECT_EQ(Row().state.rhythm, "cron 30 * * * * UTC");
  Pass(3s, false, 1s);
  EXPECT_EQ(Row().state.rhythm, "cron 0 * * * * UTC");
}

TEST_F(TwoFilesTest, WhoIsAloneBringsItsPauseToo) {
  first_.Configure(R"({"nightly":{"cron":"30 * * * *","handler":"noop","paused":true}})", 0);
  first_.LookAll();
  second_.LookAll();
  second_.Configure(kHourly, 0);
  second_.LookAll();
  ASSERT_FALSE(Row().state.paused);
  Register("own.1", getpid());
  Pass(2min, false);
  EXPECT_TRUE(Row().state.paused);
}

TEST_F(TwoFilesTest, ALifeThatMayBeAnothersLeavesNobodyAlone) {
  Register("other.1", getpid(), HostName() + "x");
  Pass(10min, false);
  EXPECT_EQ(Row().state.rhythm, "cron 30 * * * * UTC") << "of this process's own no more is known";
  Register("own.1", getpid());
  ASSERT_TRUE(lives_->Retire("other.1"));
  Register("twin.1", getpid());
  Pass(10min, false);
  EXPECT_EQ(Row().state.rhythm, "cron 30 * * * * UTC") << "two containers of one host name";
}

// Who leads a cluster need not live in the shard.
TEST_F(TwoFilesTest, WhoIsAloneLeavesTheRowOfAClusterAlone) {
  second_.Configure(kHalfPast, 7);
  second_.LookAll();
  second_.Configure(R"({"nightly":{"cron":"45 * * * *","handler":"noop"}})", 8);
  second_.LookAll();
  Register("own.1", getpid());
  Pass(10min, false);
  EXPECT_EQ(Row().state.rhythm, "cron 45 * * * * UTC");
}

TEST_F(TwoFilesTest, AFixedDelayWhoseTaskIsInWorkIsServed) {
  EndTasks();
  second_.Configure(R"({"nightly":{"after":"10m","handler":"noop"}})", 0);
  second_.LookAll();
  Pass(11min);
  ASSERT_EQ(Tasks(Main()), 2);
  ASSERT_EQ(Row().state.next, std::nullopt);
  const int before = first_.lasts;
  Pass(10min, true, 1s);
  EXPECT_EQ(Row().state.rhythm, "after 10m");
  EXPECT_LE(first_.lasts - before, 10) << "it is asked for once a minute";
  first_.hides_lasts = true;
  EndTasks();
  Pass(5min, false);
  EXPECT_EQ(Row().state.rhythm, "after 10m") << "it may be in work";
  first_.hides_lasts = false;
  second_.LookAll();
  Pass(4min);
  EXPECT_EQ(Tasks(Main()), 2) << "it is not due yet";
  EXPECT_EQ(Row().state.rhythm, "after 10m");
}

TEST_F(TwoFilesTest, AFixedDelayWhoseTaskHasEndedIsTakenOverAMinuteLater) {
  EndTasks();
  second_.Configure(R"({"nightly":{"after":"10m","handler":"noop"}})", 0);
  second_.LookAll();
  Pass(15min);
  ASSERT_EQ(Row().state.next, std::nullopt);
  EndTasks();
  first_.LookAll();
  EXPECT_EQ(Row().state.rhythm, "after 10m") << "who serves it has not looked yet";
  Pass(3min, false);
  EXPECT_EQ(Row().state.rhythm, "cron 0 * * * * UTC");
}

TEST_F(TwoFilesTest, AnOutageOfTheShardIsNobodysAbsence) {
  Pass(20min);
  for (Process* process : {&first_, &second_}) process->fails_one_in = 1;
  Pass(30min);
  for (Process* process : {&first_, &second_}) process->fails_one_in = 0;
  first_.LookAll();
  second_.LookAll();
  EXPECT_EQ(Row().state.rhythm, "cron 30 * * * * UTC");
  EXPECT_EQ(Row().lapsed, 0U);
  EXPECT_EQ(Fired().back(), "2026-11-22T12:30:00Z");
}

TEST_F(SchedulesTest, AStandInFiresByRowsThatAreThereAndMakesNone) {
  Process stand_in(stores_);
  stand_in.Configure(kHourly, 1);
  stand_in.duty.role = Role::StandsIn;
  stand_in.LookAll();
  EXPECT_TRUE(Main().OpenSchedules()->Rows()->rows.empty());
  Process leader(stores_);
  leader.Configure(kHourly, 1);
  leader.LookAll();
  clock_.Advance(hours(1));
  stand_in.LookAll();
  EXPECT_EQ(Fired().size(), 2U);
  stand_in.Configure("{}", 1);
  stand_in.LookAll();
  EXPECT_EQ(Row().name, "nightly");
}

TEST_F(SchedulesTest, AFaultOfOneScheduleIsToldAndTheOthersGoOn) {
  Process process(stores_);
  process.Configure(R"({"a":{"cron":"0 * * * *","handler":"noop","table":"elsewhere"},
      "b":{"cron":"0 * * * *","handler":"noop","shard":"moon"},
      "c":{"cron":"0 * * * *","handler":"noop","zone":"Mars/Base"},
      "nightly":{"cron":"0 * * * *","handler":"noop"}})",
                    1);
  process.LookAll();
  EXPECT_EQ(Fired().size(), 1U);
  EXPECT_THAT(process.Troubles(),
              ElementsAre(HasSubstr("schedule a can't fire: shard main has no table elsewhere"),
                          "schedule b does not fire: there is no shard moon",
                          HasSubstr("schedule c does not fire by this process: zone: ")));
  process.Configure(kHourly, 2);
  process.LookAll();
  EXPECT_THAT(process.Troubles(), IsEmpty());
}

TEST_F(SchedulesTest, AServerThatRefusesWhatIsWrittenIsNotAskedAgainAtOnce) {
  Process process(stores_);
  process.Configure(kHourly, 1);
  process.read_only = true;
  for (int look = 0; look < 3; ++look) EXPECT_GT(process.Look("main"), 500ms);
  EXPECT_THAT(process.Troubles(), ElementsAre(HasSubstr("the server is read-only")));
  process.read_only = false;
  process.LookAll();
  EXPECT_EQ(Row().name, "nightly");
}

TEST_F(SchedulesTest, AShardThatIsAwayOrLosesItsRepliesCostsNoFiringAndDoublesNone) {
  Process process(stores_);
  process.Configure(R"({"nightly":{"cron":"0 * * * *","handler":"noop","catch_up":"all"}})", 1);
  process.fails_one_in = 2;
  for (int hour = 0; hour < 50; ++hour) {
    process.Look("main");
    clock_.Advance(20min);
  }
  process.fails_one_in = 0;
  process.LookAll();
  const std::vector<std::string> fired = Fired();
  ASSERT_FALSE(fired.empty());
  const auto expected = std::chrono::floor<hours>(clock_.WallNow()) - *ParseTime(fired.front());
  EXPECT_EQ(fired.size(), static_cast<std::size_t>(expected / hours(1)) + 1);
  EXPECT_EQ(Tasks(Main()), static_cast<std::int64_t>(fired.size()));
}

// ---- several shards

std::string In(const std::string& shard) {
  return R"({"nightly":{"cron":"0 * * * *","handler":"noop","catch_up":"all","shard":")" + shard + R"("}})";
}

TEST_F(SchedulesTest, AScheduleMovesToAnotherShardAndFiresOnThere) {
  Shards({"de", "eu"});
  Process process(stores_);
  process.Configure(In("de"), 1);
  for (int look = 0; look < 5; ++look) process.LookAll();
  clock_.Advance(hours(1));
  process.LookAll();
  process.Configure(In("eu"), 2);
  clock_.Advance(hours(1));
  for (int look = 0; look < 5; ++look) process.LookAll();
  EXPECT_THAT(Fired(*stores_["de"]), ElementsAre("2026-11-22T12:00:00Z", "2026-11-22T13:00:00Z"));
  EXPECT_THAT(Fired(*stores_["eu"]), ElementsAre("2026-11-22T14:00:00Z"));
  EXPECT_EQ(Row("de").name, "");
  EXPECT_EQ(Row("eu").fired, 3U);
}

// Where its end is found.
TEST_F(SchedulesTest, AScheduleWhoseLastTaskCountsMovesOnceThatHasEnded) {
  Shards({"de", "eu"});
  Process process(stores_);
  const auto place = [&](const std::string& shard, std::uint64_t number) {
    process.Configure(
        R"({"nightly":{"cron":"0 * * * *","handler":"noop","overlap":"skip","shard":")" + shard + R"("}})",
        number);
    for (int look = 0; look < 5; ++look) process.LookAll();
  };
  place("de", 1);
  ASSERT_EQ(Tasks(*stores_["de"]), 1);
  place("eu", 2);
  EXPECT_EQ(Row("de").name, "nightly");
  EXPECT_EQ(Row("de").moved_to, "");
  EXPECT_EQ(Row("eu").name, "");
  EndTasks();
  place("eu", 3);
  EXPECT_EQ(Row("de").name, "");
  EXPECT_EQ(Row("eu").name, "nightly");
  clock_.Advance(hours(1));
  process.LookAll();
  EXPECT_EQ(Tasks(*stores_["eu"]), 1);
}

TEST_F(SchedulesTest, ANewScheduleWaitsForAShardThatCannotBeReadAndSaysSo) {
  Shards({"de", "eu"});
  stores_["eu"]->Run("ALTER TABLE millrace_schedules RENAME TO away");
  Process process(stores_);
  process.Configure(In("de"), 1);
  process.LookAll();
  EXPECT_TRUE(stores_["de"]->OpenSchedules()->Rows()->rows.empty());
  EXPECT_THAT(
      process.Troubles(),
      testing::Contains("schedule nightly does not fire yet: shard eu, where it may stand, can't be read"));
  stores_["eu"]->Run("ALTER TABLE away RENAME TO millrace_schedules");
  for (int look = 0; look < 5; ++look) process.LookAll();
  EXPECT_EQ(Fired(*stores_["de"]).size(), 1U);
  // Once it has its row, it fires whatever is away.
  stores_["eu"]->Run("ALTER TABLE millrace_schedules RENAME TO away");
  clock_.Advance(hours(1));
  process.LookAll();
  EXPECT_EQ(Fired(*stores_["de"]).size(), 2U);
}

// Three shards; processes that end and begin at any step, each with the newest document; a document that
// moves the schedule about.
TEST_F(SchedulesTest, HoweverItIsMovedAboutEachFiringIsOneTaskInOneShard) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Shards({"de", "eu", "us"});
    Random random(seed);
    const char* names[] = {"de", "eu", "us"};
    std::vector<std::unique_ptr<Process>> processes;
    for (int i = 0; i < 2; ++i) processes.push_back(std::make_unique<Process>(stores_, random.Next()));
    std::string document = In("de");
    std::uint64_t number = 1;
    for (auto& process : processes) process->Configure(document, number);
    for (int look = 0; look < 5; ++look) processes.front()->LookAll();
    const WallTime begun = clock_.WallNow();
    for (auto& process : processes) process->fails_one_in = 10;
    for (int step = 0; step < 300; ++step) {
      auto& process = processes[random.Below(processes.size())];
      switch (random.Below(12)) {
        case 0:
          document = In(names[random.Below(3)]);
          ++number;
          break;
        case 1:
          process = std::make_unique<Process>(stores_, random.Next());
          process->Configure(document, number);
          process->fails_one_in = 10;
          break;
        case 2:
          process->Configure(document, number);
          break;
        case 3:
          clock_.Advance(20min);
          break;
        default:
          process->Look(names[random.Below(3)]);
      }
    }
    for (auto& process : processes) {
      process->Configure(document, number);
      process->fails_one_in = 0;
    }
    for (int look = 0; look < 10; ++look) {
      for (auto& process : processes) process->LookAll();
    }
    std::vector<std::string> all;
    for (const auto& [name, store] : stores_) {
      for (std::string& time : Fired(*store)) all.push_back(std::move(time));
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "seed " << seed;
    // None is missing from the first on.
    ASSERT_FALSE(all.empty());
    const WallTime first = *ParseTime(all.front());
    EXPECT_LE(first - begun, hours(3)) << "seed " << seed;
    const auto expected = std::chrono::floor<hours>(clock_.WallNow()) - std::chrono::floor<hours>(first);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(expected / hours(1)) + 1) << "seed " << seed;
  }
}

// ---- clocks

TEST_F(SchedulesTest, AClockThatIsSteppedBackAndForthLosesAndDoublesNothingBeyondWhatCatchUpSays) {
  for (const char* way : {"none", "one", "all"}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Shards({"main"});
      Random random(seed);
      Process first(stores_);
      Process second(stores_);
      for (Process* process : {&first, &second}) {
        process->Configure(
            R"({"nightly":{"cron":"*/5 * * * *","handler":"noop","catch_up":")" + std::string(way) + R"("}})",
            1);
      }
      first.LookAll();
      WallTime latest = clock_.WallNow();
      const WallTime begun = latest;
      for (int step = 0; step < 200; ++step) {
        clock_.Advance(std::chrono::seconds(random.Below(240)));
        if (random.Below(10) == 0) clock_.StepWall(random.Below(2) == 0 ? hours(1) : -hours(1));
        latest = std::max(latest, clock_.WallNow());
        (random.Below(2) == 0 ? first : second).LookAll();
      }
      const std::vector<std::string> fired = Fired();
      EXPECT_EQ(std::adjacent_find(fired.begin(), fired.end()), fired.end());
      const auto marks = [](WallTime until) { return until.time_since_epoch() / 5min; };
      const auto grid = static_cast<std::size_t>(marks(latest) - marks(begun - Micros(1)));
      EXPECT_EQ(static_cast<std::size_t>(Tasks(Main())), fired.size());
      EXPECT_EQ(Row().fired, fired.size());
      EXPECT_EQ(Row().fired + Row().lapsed, grid) << way << ", seed " << seed;
      const bool every = std::string(way) == "all";
      EXPECT_TRUE(!every || fired.size() == grid) << fired.size() << " of " << grid << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace millrace::engine
