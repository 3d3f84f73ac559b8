// The worker as a whole on a SQLite store.
#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "framework/mill/attempt.h"
#include "framework/store/sqlite/store.h"
#include "framework/threads/signal.h"
#include "tests/support/no_more_threads.h"
#include "worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class WorkerTest : public WorkerFixture {
 protected:
  WorkerTest() {
    store_ = *sqlite::OpenStore(*ParseStoreUrl("sqlite:" + folder_ + "/tasks.db"), {});
    EXPECT_TRUE(store_->OpenSchema()->Apply({}));
    operations_ = store_->OpenOperations();
    control_.shards.Set({{"main", store_}});
  }

  std::uint64_t Submit(const std::string& handler, const std::string& key = {}) {
    return SubmitTo(*store_, handler, key);
  }
  void SubmitMany(const std::string& handler, int count) {
    WorkerFixture::SubmitMany(*store_, handler, count);
  }
  TaskRecord Get(std::uint64_t id) { return WorkerFixture::Get(*store_, id); }
  // A handler that is given its tasks one after another: a row for each, and a refused statement for "bad".
  void NoteEffects(const std::string& type, std::function<Outcome(const Task&)> outcome_of) {
    plugins_.behaviours[type] = [outcome_of](std::span<const Task> tasks, CallContext& context) {
      std::vector<Outcome> outcomes;
      for (std::size_t i = 0; i < tasks.size() && context.BeginTask(i); ++i) {
        (void)context.Execute(
            "INSERT INTO millrace_audit (at, actor, action, subject, detail) "
            "VALUES ('2026-01-01 00:00:00.000000', 'test', 'sql', ?, '')",
            std::vector<SqlValue>{std::to_string(tasks[i].key.id)});
        if (tasks[i].biz_key == "bad") (void)context.Execute("INSERT INTO no_such_table VALUES (1)", {});
        outcomes.push_back(outcome_of(tasks[i]));
        context.EndTask(outcomes.back().kind == OutcomeKind::Done);
      }
      outcomes.resize(tasks.size());
      return outcomes;
    };
  }
  std::string Effects() {
    const auto rows = store_->OpenTransaction(seconds(5))
                          ->Execute("SELECT COUNT(*) FROM millrace_audit WHERE action = 'sql'", {});
    return rows ? rows->rows[0][0].value_or("") : rows.error().message;
  }
  std::optional<WorkerEnd> RunUntilIdle() { return Start(true)->WaitFor(seconds(20)); }

  std::shared_ptr<Store> store_;
  std::unique_ptr<TaskOperations> operations_;
};

TEST_F(WorkerTest, RunsEveryTaskOnceAndEndsWhenNothingIsLeft) {
  std::atomic<int> runs{0};
  plugins_.behaviours["count"] = [&](auto tasks, auto&) {
    ++runs;
    return std::vector<Outcome>(tasks.size());
  };
  SubmitMany("count", 3000);
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(runs, 3000);
  EXPECT_EQ(operations_->Totals()->at(0).succeeded, 3000u);
}

TEST_F(WorkerTest, OfATypeWithALimitOfOneOneRunsAtATime) {
  std::atomic<int> runs{0};
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::uint64_t last = 0;
  int early = 0;
  plugins_.behaviours["ledger"] = [&](auto tasks, auto&) {
    most = std::max(most.load(), ++inside);
    if (last != 0 && Get(last).task.state != TaskState::Succeeded) ++early;
    last = tasks[0].key.id;
    std::this_thread::sleep_for(milliseconds(1));
    --inside;
    ++runs;
    return std::vector<Outcome>(tasks.size());
  };
  config_.handlers["ledger"].limit = LimitConfig{.concurrency = 1};
  control_.shares.Set(std::make_shared<const LimitShares>(LimitShares{{"ledger", {.permits = 1}}}));
  SubmitMany("ledger", 50);
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(runs, 50);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(early, 0) << "the one before is settled when the next begins";
  const auto rows = store_->OpenPermits()->Permits(std::vector<std::string>{"ledger"});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_GE(rows->front().turn, 50u) << "each was bound to it";
}

TEST_F(WorkerTest, TellsWhichDatabaseItHasFound) {
  const auto identity = store_->OpenSchema()->Identity();
  ASSERT_TRUE(identity) << identity.error().message;
  auto worker = Start(false);
  EXPECT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.at(0).database == *identity; }));
}

TEST_F(WorkerTest, AFailedAttemptClimbsTheLadderAndEndsInTheFailedPoolWithTheReason) {
  plugins_.behaviours["fail"] = [](auto, auto&) {
    return std::vector{Make(OutcomeKind::Retry, "the partner is away")};
  };
  HandlerConfig& config = config_.handlers["fail"];
  config.retry = {{milliseconds(5), milliseconds(10)}, 3, 0.1};
  const auto id = Submit("fail");
  auto worker = Start(false);
  const auto deadline = clock_.Now() + seconds(20);
  while (Get(id).task.state != TaskState::Failed && clock_.Now() < deadline)
    worker->WaitFor(milliseconds(10));
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Failed);
  EXPECT_EQ(record.task.last_error, "the partner is away");
  EXPECT_EQ(record.attempts.size(), 3u);
}

TEST_F(WorkerTest, EveryOutcomeGoesWhereItBelongs) {
  plugins_.behaviours["fail"] = [](auto, auto&) { return std::vector{Make(OutcomeKind::Fail, "bad input")}; };
  plugins_.behaviours["skip"] = [](auto, auto&) {
    return std::vector{Make(OutcomeKind::Skip, "not needed")};
  };
  plugins_.behaviours["snooze"] = [](auto, auto&) {
    return std::vector{Make(OutcomeKind::Snooze, "later", std::chrono::hours(1))};
  };
  const auto fail = Submit("fail");
  const auto skip = Submit("skip");
  const auto snooze = Submit("snooze");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(fail).task.state, TaskState::Failed);
  EXPECT_EQ(Get(skip).task.state, TaskState::Cancelled);
  EXPECT_EQ(Get(snooze).task.state, TaskState::Waiting);
  EXPECT_EQ(Get(snooze).task.failures, 0u);
}

TEST_F(WorkerTest, AnExceptionMayFailAtOnceByConfiguration) {
  plugins_.behaviours["throw"] = [](auto, auto&) {
    Outcome outcome = Make(OutcomeKind::Retry, "it threw");
    outcome.error_class = "exception";
    return std::vector{outcome};
  };
  config_.handlers["throw"].on_exception = OnException::Fail;
  const auto id = Submit("throw");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(id).task.state, TaskState::Failed);
}

TEST_F(WorkerTest, AnExceptionMayHoldItsTaskForAPersonToReleaseIt) {
  plugins_.behaviours["throw"] = [](std::span<const Task> tasks, CallContext&) {
    Outcome outcome = Make(OutcomeKind::Retry, "it threw: no such column");
    outcome.error_class = "exception";
    return std::vector{tasks[0].failures == 0 ? outcome : Outcome()};
  };
  config_.handlers["throw"].on_exception = OnException::Hold;
  config_.handlers["throw"].retry.classes = {{"exception", true, {}}};
  const auto id = Submit("throw");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  const TaskRecord held = Get(id);
  EXPECT_EQ(held.task.state, TaskState::Held);
  EXPECT_EQ(held.task.last_error, "it threw: no such column");
  EXPECT_EQ(held.task.failures, 1u);
  ASSERT_EQ(held.attempts.size(), 1u);
  EXPECT_EQ(held.attempts[0].error_class, "exception");
  const std::uint64_t ids[] = {id};
  ASSERT_TRUE(operations_->Apply(TaskAction::Release, "tasks", ids, "test"));
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(id).task.state, TaskState::Succeeded);
}

TEST_F(WorkerTest, AnErrorClassHasItsLadderOrFailsAtOnce) {
  plugins_.behaviours["call"] = [](std::span<const Task> tasks, CallContext&) {
    Outcome outcome = Make(OutcomeKind::Retry, "no answer");
    outcome.error_class = tasks[0].biz_key == "gone" ? "http_404" : "timeout";
    return std::vector{tasks[0].failures < 2 ? outcome : Outcome()};
  };
  config_.handlers["call"].retry.classes = {{"http_4*", true, {}}, {"timeout", false, {Micros(1000)}}};
  const auto gone = Submit("call", "gone");
  const auto late = Submit("call", "late");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(gone).task.state, TaskState::Failed);
  EXPECT_EQ(Get(gone).task.failures, 1u);
  EXPECT_EQ(Get(late).task.state, TaskState::Succeeded);
  EXPECT_EQ(Get(late).task.failures, 2u);
}

TEST_F(WorkerTest, TheHandlersSqlCommitsWithItsTaskOrNotAtAll) {
  plugins_.behaviours["sql"] = [](std::span<const Task> tasks, CallContext& context) {
    const std::vector<SqlValue> values{std::string(tasks[0].params)};
    EXPECT_TRUE(
        context.Execute("INSERT INTO millrace_audit (at, actor, action, subject, detail) "
                        "VALUES ('2026-01-01 00:00:00.000000', 'test', 'sql', ?, '')",
                        values));
    return std::vector{tasks[0].biz_key == "good" ? Make(OutcomeKind::Done) : Make(OutcomeKind::Fail, "no")};
  };
  const auto good = Submit("sql", "good");
  const auto bad = Submit("sql", "bad");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(good).task.state, TaskState::Succeeded);
  EXPECT_EQ(Get(bad).task.state, TaskState::Failed);
  const auto rows = store_->OpenTransaction(seconds(5))
                        ->Execute("SELECT COUNT(*) FROM millrace_audit WHERE action = 'sql'", {});
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(*rows->rows[0][0], "1");
}

// Each run sends an UPDATE: that of the run which is done is the one that counts.
TEST_F(WorkerTest, SqlBesideTwoSnoozesAndADoneTakesEffectOnce) {
  NoteEffects("snooze", [](const Task& task) {
    return task.attempt < 3 ? Make(OutcomeKind::Snooze, "", milliseconds(1)) : Make(OutcomeKind::Done);
  });
  const auto id = Submit("snooze");
  auto worker = Start(false);
  EXPECT_TRUE(Eventually(*worker, [&] { return Get(id).task.state == TaskState::Succeeded; }));
  EXPECT_EQ(Effects(), "1");
}

// A snooze is settled long before anybody looks for what is to be written.
TEST_F(WorkerTest, WhatAHandlerSavesRightBeforeItsEndIsThereForItsNextRun) {
  std::atomic<int> missed{0};
  plugins_.behaviours["steps"] = [&](std::span<const Task> tasks, CallContext& context) {
    const Task& task = tasks[0];
    if (task.progress != (task.attempt == 1 ? "" : std::to_string(task.attempt - 1))) ++missed;
    EXPECT_TRUE(context.SaveProgress(0, "0"));
    EXPECT_TRUE(context.SaveProgress(0, std::to_string(task.attempt)));
    return std::vector{task.attempt < 10 ? Make(OutcomeKind::Snooze, "", Micros(1))
                                         : Make(OutcomeKind::Done)};
  };
  const auto id = Submit("steps");
  auto worker = Start(false);
  EXPECT_TRUE(Eventually(*worker, [&] { return Get(id).task.state == TaskState::Succeeded; }));
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(Get(id).task.progress, "10");
}

TEST_F(WorkerTest, WhatAHandlerSavesIsWrittenWithItsOwnTransactionOrWithoutIt) {
  plugins_.behaviours["sql"] = [](std::span<const Task> tasks, CallContext& context) {
    EXPECT_TRUE(context.SaveProgress(0, "all"));
    EXPECT_TRUE(context.Execute("DELETE FROM millrace_audit", {}));
    return std::vector{tasks[0].biz_key == "good" ? Make(OutcomeKind::Done) : Make(OutcomeKind::Fail, "no")};
  };
  const auto good = Submit("sql", "good");
  const auto bad = Submit("sql", "bad");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(good).task.progress, "all");
  EXPECT_EQ(Get(bad).task.progress, "all");
}

TEST_F(WorkerTest, OfTasksThatShareATransactionEachKeepsOrLosesItsOwnSql) {
  plugins_.batch = 200;
  NoteEffects("mixed", [](const Task& task) {
    return Make(task.key.id % 2 == 0 ? OutcomeKind::Done : OutcomeKind::Fail, "odd");
  });
  SubmitMany("mixed", 100);
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(operations_->Totals()->at(0).succeeded, 50u);
  EXPECT_EQ(Effects(), "50");
}

TEST_F(WorkerTest, SqlThatTheDatabaseRefusesCostsNoOtherTaskOfTheCallItsOwn) {
  plugins_.batch = 200;
  std::atomic<int> runs{0};
  NoteEffects("refused", [&](const Task&) {
    ++runs;
    return Make(OutcomeKind::Done);
  });
  SubmitMany("refused", 20);
  Submit("refused", "bad");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(operations_->Totals()->at(0).succeeded, 20u);
  EXPECT_EQ(Effects(), "20");
  EXPECT_EQ(runs, 21) << "nothing had to be run again";
}

TEST_F(WorkerTest, OneBadTaskOfABatchFailsAloneWhenItPoisonsTheTransaction) {
  plugins_.batch = 50;
  plugins_.behaviours["batch"] = [](std::span<const Task> tasks, CallContext& context) {
    for (const Task& task : tasks) {
      if (task.biz_key == "bad") (void)context.Execute("INSERT INTO no_such_table VALUES (1)", {});
    }
    (void)context.Execute("SELECT 1", {});
    return std::vector<Outcome>(tasks.size());
  };
  SubmitMany("batch", 20);
  const auto bad = Submit("batch", "bad");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(operations_->Totals()->at(0).succeeded, 20u);
  const TaskRecord record = Get(bad);
  EXPECT_EQ(record.task.state, TaskState::Waiting);
  EXPECT_EQ(record.task.failures, 1u);
  EXPECT_THAT(record.task.last_error, HasSubstr("nothing was committed"));
}

TEST_F(WorkerTest, WhatAHandlerBringsHoldsUnlessTheConfigurationNamesIt) {
  plugins_.behaviours["fail"] = [](auto, auto&) {
    return std::vector<Outcome>{Make(OutcomeKind::Retry, "as asked")};
  };
  plugins_.defaults.max_failures = 1;
  config_.handlers["patient"].uses = "fail";
  config_.handlers["patient"].given = {"uses", "retry.max_failures"};
  const auto by_code = Submit("fail");
  const auto by_config = Submit("patient");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(by_code).task.state, TaskState::Failed);
  EXPECT_EQ(Get(by_config).task.state, TaskState::Waiting);
}

TEST_F(WorkerTest, AHandlerThatDecidesWhenItIsRunAgainIsAskedUnlessTheConfigurationHasALadder) {
  plugins_.behaviours["fail"] = [](auto, auto&) {
    return std::vector<Outcome>{Make(OutcomeKind::Retry, "as asked")};
  };
  plugins_.defaults.next_retry = true;
  config_.handlers["patient"].uses = "fail";
  config_.handlers["patient"].given = {"uses", "retry.delays"};
  const auto by_code = Submit("fail");
  config_.handlers["classed"].uses = "fail";
  config_.handlers["classed"].retry.classes = {{"*", false, {std::chrono::hours(1)}}};
  const auto by_config = Submit("patient");
  const auto by_class = Submit("classed");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(by_code).task.state, TaskState::Failed);
  EXPECT_EQ(Get(by_class).task.state, TaskState::Waiting);
  EXPECT_EQ(Get(by_config).task.state, TaskState::Waiting);
}

TEST_F(WorkerTest, AHandlerThatIgnoresItsLimitLosesItsThreadAndTheLaneGoesOn) {
  // It never comes back, so what its thread uses is never destroyed: the rule for a process with lost
  // threads.
  static std::promise<void>& never = *new std::promise<void>;
  plugins_.behaviours["stuck"] = [](std::span<const Task> tasks, auto&) {
    if (tasks[0].biz_key == "stuck") never.get_future().wait();
    return std::vector<Outcome>(1);
  };
  HandlerConfig& config = config_.handlers["stuck"];
  config.concurrency = 1;
  config.timeout = milliseconds(50);
  const auto stuck = Submit("stuck", "stuck");
  const auto other = Submit("stuck");
  auto worker = Start(true);
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(Get(other).task.state, TaskState::Succeeded);
  const TaskRecord record = Get(stuck);
  EXPECT_EQ(record.task.failures, 1u);
  EXPECT_THAT(record.task.last_error, HasSubstr("ignored the request to stop"));
  static auto& outlives = *new std::vector<std::shared_ptr<Store>>;  // the thread that never ends
  outlives.push_back(store_);
}

TEST_F(WorkerTest, AHandlerThatStopsAtItsLimitFailsByTheLimitWhateverItSays) {
  const auto until_stopped = [](CallContext& context, Outcome outcome) {
    while (!context.ShouldStop()) std::this_thread::yield();
    return std::vector<Outcome>{std::move(outcome)};
  };
  plugins_.behaviours["polite"] = [&](auto, CallContext& context) {
    return until_stopped(context, {.kind = OutcomeKind::Retry, .text = "stopped", .error_class = "stopped"});
  };
  plugins_.behaviours["sure"] = [&](auto, CallContext& context) {
    return until_stopped(context, {.kind = OutcomeKind::Fail, .text = "no", .error_class = "declined"});
  };
  for (const char* type : {"polite", "sure"}) config_.handlers[type].timeout = milliseconds(50);
  const auto polite = Submit("polite");
  const auto sure = Submit("sure");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  const TaskRecord record = Get(polite);
  ASSERT_EQ(record.attempts.size(), 1u);
  EXPECT_EQ(record.attempts[0].error_class, "timeout");
  EXPECT_EQ(record.attempts[0].message, "ran over its time limit of 50ms: stopped");
  EXPECT_EQ(Get(sure).attempts.at(0).error_class, "declined");
}

TEST_F(WorkerTest, AStopGivesBackWhatHasNotStartedAndFinishesWhatRuns) {
  std::atomic<bool> release{false};
  std::atomic<int> started{0};
  plugins_.behaviours["slow"] = [&](auto, auto&) {
    ++started;
    while (!release) std::this_thread::yield();
    return std::vector<Outcome>(1);
  };
  config_.handlers["slow"].concurrency = 2;
  config_.handlers["slow"].queue = 50;
  SubmitMany("slow", 100);
  auto worker = Start(false);
  while (started < 2) worker->WaitFor(milliseconds(5));
  worker->Stop();
  EXPECT_FALSE(worker->WaitFor(milliseconds(200)));
  release = true;
  EXPECT_EQ(worker->WaitFor(seconds(10)), WorkerEnd::Stopped);
  EXPECT_EQ(started, 2);
  const std::vector<TableName> tables{"tasks"};
  EXPECT_EQ(store_->OpenOverview()->Waiting(tables)->handlers.at(0).waiting.count, 98u);
  const auto peers = store_->OpenIncarnations()->Peers();
  EXPECT_TRUE(peers->empty());
}

TEST_F(WorkerTest, AKeyTakenByAnotherTaskMakesThisOneADuplicate) {
  std::atomic<int> runs{0};
  plugins_.behaviours["count"] = [&](auto tasks, auto&) {
    ++runs;
    return std::vector<Outcome>(tasks.size());
  };
  auto sql = store_->OpenTransaction(seconds(5));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(sql->Execute("INSERT INTO tasks (handler, params, biz_key) VALUES ('count', '{}', 'k')", {}));
  }
  ASSERT_EQ(sql->Commit("nobody", {}).verdict, CommitVerdict::Committed);
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(operations_->Totals()->at(0).cancelled, 1u);
}

TEST_F(WorkerTest, TasksWithoutAHandlerStayWaitingAndHoldNobodyUp) {
  plugins_.behaviours["known"] = [](auto tasks, auto&) { return std::vector<Outcome>(tasks.size()); };
  const auto unknown = Submit("unknown");
  const auto known = Submit("known");
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(Get(known).task.state, TaskState::Succeeded);
  EXPECT_EQ(Get(unknown).task.state, TaskState::Waiting);
}

TEST_F(WorkerTest, ABacklogDelaysNoOtherGroup) {
  store_ = *sqlite::OpenStore(*ParseStoreUrl("sqlite:" + folder_ + "/two.db"), {});
  ASSERT_TRUE(store_->OpenSchema()->Apply({2, 1}));
  control_.shards.Set({{"main", store_}});
  control_.slices.Set({{"tasks_000", true, {}}, {"tasks_001", true, {}}});
  std::vector<TableName> ran;
  plugins_.behaviours["note"] = [&](auto tasks, auto&) {
    for (const Task& task : tasks) ran.push_back(task.key.table);
    return std::vector<Outcome>(tasks.size());
  };
  config_.handlers["note"].concurrency = 1;
  operations_ = store_->OpenOperations();
  NewTask old;
  old.handler = "note";
  old.run_at = WallTime(std::chrono::hours(24 * 365 * 50));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(operations_->Submit("tasks_000", std::vector<NewTask>(999, old)));
  NewTask fresh;
  fresh.handler = "note";
  ASSERT_TRUE(operations_->Submit("tasks_001", std::vector<NewTask>(10, fresh)));

  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  ASSERT_EQ(ran.size(), 4006u);
  const auto last = std::find(ran.rbegin(), ran.rend(), "tasks_001").base() - ran.begin();
  EXPECT_LT(last, 2 * 999) << "the ten wait for more than two claims";
}

TEST_F(WorkerTest, TasksThatADeadWorkerLeftRunningAreRescued) {
  std::atomic<int> runs{0};
  plugins_.behaviours["count"] = [&](auto tasks, auto&) {
    ++runs;
    return std::vector<Outcome>(tasks.size());
  };
  const auto incarnations = store_->OpenIncarnations();
  std::vector<std::uint64_t> ids;
  for (const char* name : {"dead.1", "dead.2"}) {
    Incarnation dead;
    dead.id = name;
    dead.worker = "dead";
    dead.lease = milliseconds(300);
    ASSERT_TRUE(incarnations->Register(dead));
    ids.push_back(Submit("count"));
    ASSERT_EQ(store_->OpenTasks()->Claim({"tasks", name, 0, {ids.back()}})->size(), 1u);
  }
  const auto person = store_->OpenTransaction(seconds(5));
  ASSERT_TRUE(person->Execute("DELETE FROM millrace_beats WHERE id='dead.2'", {}));
  ASSERT_EQ(person->Commit("", {}).verdict, CommitVerdict::Committed);
  config_.engine.lease = milliseconds(300);
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(runs, 2);
  for (const auto id : ids) EXPECT_EQ(Get(id).task.attempt, 2u);
  EXPECT_EQ(metrics_.GetCounter("millrace_tasks_rescued_total").Value(), 2u);
}

TEST_F(WorkerTest, WhatItTellsIsWhatTheTablesSay) {
  plugins_.behaviours["good"] = [](auto tasks, auto&) { return std::vector<Outcome>(tasks.size()); };
  plugins_.behaviours["bad"] = [](auto tasks, auto&) {
    return std::vector<Outcome>(tasks.size(), FailedForGood("no", "test"));
  };
  SubmitMany("good", 300);
  SubmitMany("bad", 20);
  auto worker = Start(true);
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->WaitFor(milliseconds(0)).has_value(); }));
  const auto settled = [this](const char* handler, const char* outcome) {
    return metrics_.GetCounter("millrace_tasks_settled_total", {{"handler", handler}, {"outcome", outcome}})
        .Value();
  };
  const auto totals = store_->OpenOperations()->Totals();
  ASSERT_TRUE(totals);
  std::map<std::string, TaskTotals> by_handler;
  for (const TaskTotals& part : *totals) by_handler[part.handler] = part;
  EXPECT_EQ(settled("good", "succeeded"), by_handler["good"].succeeded);
  EXPECT_EQ(settled("good", "succeeded"), 300U);
  EXPECT_EQ(settled("bad", "failed"), by_handler["bad"].failed);
  EXPECT_EQ(settled("bad", "failed"), 20U);
  Histogram& wait = metrics_.GetHistogram("millrace_task_wait_seconds", {{"handler", "good"}});
  EXPECT_EQ(wait.Count(), 300U);
  EXPECT_GT(wait.Sum(), Micros(0));
  EXPECT_LT(wait.Sum(), 300 * std::chrono::seconds(60));
  const Registry::Labels ran{{"handler", "bad"}, {"outcome", "failed"}};
  EXPECT_EQ(metrics_.GetHistogram("millrace_task_run_seconds", ran).Count(), 20U);
  EXPECT_GT(metrics_.GetHistogram("millrace_query_seconds", {{"shard", "main"}, {"kind", "claim"}}).Count(),
            0U);
}

TEST_F(WorkerTest, ItTellsOfItsLanesAndShardsAsLongAsItWorks) {
  Signal go;
  std::atomic<bool> runs{false};
  plugins_.behaviours["long"] = [&](auto tasks, auto&) {
    runs = true;
    go.WaitFor(seconds(20));
    return std::vector<Outcome>(tasks.size());
  };
  config_.handlers["long"].concurrency = 3;
  auto worker = Start(false);
  Submit("long");
  ASSERT_TRUE(Eventually(*worker, [&] { return runs && worker->Status().shards[0].reachable; }));
  EXPECT_THAT(metrics_.Text(),
              testing::AllOf(testing::HasSubstr("\nmillrace_lane_threads{handler=\"long\"} 3\n"),
                             testing::HasSubstr("\nmillrace_lane_busy{handler=\"long\"} 1\n"),
                             testing::HasSubstr("\nmillrace_config_refused 0\n"),
                             testing::HasSubstr("\nmillrace_shard_up{shard=\"main\"} 1\n")));
  go.Notify();
  worker->Stop();
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->WaitFor(milliseconds(0)).has_value(); }));
  EXPECT_THAT(metrics_.Text(), testing::Not(testing::HasSubstr("millrace_lane_threads")));
}

// With such a lease the next beat is far away: the refused claim tells.
TEST_F(WorkerTest, AClaimThatIsRefusedAsOneOfTheDeadBeginsANewLifeAtOnce) {
  std::atomic<int> runs{0};
  plugins_.behaviours["count"] = [&](auto tasks, auto&) {
    runs += static_cast<int>(tasks.size());
    return std::vector<Outcome>(tasks.size());
  };
  config_.engine.lease = std::chrono::minutes(10);
  auto worker = Start(false);
  Submit("count");
  ASSERT_TRUE(Eventually(*worker, [&] { return runs == 1; }));
  for (const char* sql : {"UPDATE millrace_incarnations SET dead=1", "DELETE FROM millrace_incarnations"}) {
    const std::string former = worker->Status().shards[0].incarnation;
    const auto person = store_->OpenTransaction(seconds(5));
    ASSERT_TRUE(person->Execute(sql, {}));
    ASSERT_EQ(person->Commit("", {}).verdict, CommitVerdict::Committed);
    const int before = runs;
    SubmitMany("count", 100);
    EXPECT_TRUE(Eventually(*worker, [&] { return runs == before + 100; })) << sql;
    EXPECT_NE(worker->Status().shards[0].incarnation, former) << sql;
  }
}

TEST_F(WorkerTest, WhoHostsItIsToldOnceItsEndIsKnown) {
  control_.config.Set(std::make_shared<const Config>(config_));
  std::unique_ptr<Worker> worker;
  std::atomic<bool> told{false};
  WorkerOptions options;
  options.id = "w";
  options.state_dir = folder_;
  options.ended = [&] { told = worker->WaitFor(Micros(0)).has_value(); };
  worker = std::make_unique<Worker>(Worker::Parts{clock_, control_, plugins_, metrics_}, options);
  ASSERT_TRUE(worker->Start());
  EXPECT_FALSE(told);
  worker->Stop();
  ASSERT_TRUE(worker->WaitFor(std::chrono::minutes(1)));
  EXPECT_TRUE(Eventually(*worker, [&] { return told.load(); }));
}

TEST_F(WorkerTest, AnIdInUseIsRefused) {
  auto first = Start(false);
  WorkerOptions options;
  options.id = "w";
  options.state_dir = folder_;
  Worker second({clock_, control_, plugins_, metrics_}, options);
  const Status started = second.Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::Conflict);
}

TEST_F(WorkerTest, AWorkerThatGetsNoThreadsSaysSoAndDoesNotStart) {
  control_.config.Set(std::make_shared<const Config>(config_));
  WorkerOptions options;
  options.id = "w";
  options.state_dir = folder_;
  for (const bool lanes : {true, false}) {
    if (lanes) config_.handlers["count"] = {};
    plugins_.behaviours["count"] = [](auto tasks, auto&) { return std::vector<Outcome>(tasks.size()); };
    control_.config.Set(std::make_shared<const Config>(lanes ? config_ : Config{}));
    Worker worker({clock_, control_, plugins_, metrics_}, options);
    const NoMoreThreads refused;
    const Status started = worker.Start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::Unavailable);
    // The configured lanes are asked for theirs first.
    EXPECT_THAT(started.error().message,
                HasSubstr(std::string("the system gives no thread for `") + (lanes ? "count/1`" : "")));
  }
}

TEST_F(WorkerTest, ATaskThatNobodyCanClaimFailsByNameAndHoldsUpNoOther) {
  std::atomic<int> runs{0};
  plugins_.behaviours["count"] = [&](auto tasks, auto&) {
    runs += static_cast<int>(tasks.size());
    return std::vector<Outcome>(tasks.size());
  };
  SubmitMany("count", 400);
  const auto producer = store_->OpenTransaction(seconds(5));
  ASSERT_TRUE(producer->Execute("UPDATE tasks SET attempt=4000000000 WHERE id<=300", {}));
  ASSERT_TRUE(producer->Execute("UPDATE tasks SET failures=4100000000 WHERE id>300 AND id<=310", {}));
  ASSERT_EQ(producer->Commit("", {}).verdict, CommitVerdict::Committed);
  EXPECT_EQ(RunUntilIdle(), WorkerEnd::Idle);
  EXPECT_EQ(runs, 90);
  EXPECT_EQ(operations_->Totals()->at(0).failed, 310u);
  EXPECT_EQ(Get(1).task.state, TaskState::Failed);
  EXPECT_THAT(Get(1).task.last_error, HasSubstr("attempt number is 4000000000"));
  EXPECT_EQ(Get(305).task.state, TaskState::Failed);
  EXPECT_THAT(Get(305).task.last_error, HasSubstr("failed 4100000000 times"));
}

}  // namespace
}  // namespace millrace::engine
