#include <thread>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using To = Settlement::To;

// Later than every row of the test, whatever the clock of the store.
constexpr Micros kNoTime = -hours(1);

// Walks to the end in steps of `limit`; returns how many rows went.
template <class Step>
std::size_t Walk(Step step) {
  std::size_t removed = 0;
  std::string after;
  for (int steps = 0; steps < 100; ++steps) {
    Result<PruneStep> done = step(after);
    EXPECT_TRUE(done) << done.error().message;
    if (!done) return removed;
    removed += done->removed;
    after = done->next;
    if (after.empty()) return removed;
  }
  ADD_FAILURE() << "the walk has no end";
  return removed;
}

TEST_P(StoreContract, PruningTakesFinishedTasksThatAreKeptNoLonger) {
  const auto gone = AddDue(5, "brief");
  const auto kept = AddDue(2, "long");
  const auto others = AddDue(1, "other");
  for (const auto& ids : {gone, kept, others}) {
    for (const Task& task : Claim(ids)) {
      Settlement first = End(task, To::Waiting, "once more");
      first.failed_attempt = true;
      Settle({first});
      Settle({End(ClaimOne(task.key.id, 1), To::Succeeded)});
    }
  }
  const auto failed = AddDue(1, "brief");
  Settle({End(ClaimOne(failed[0]), To::Failed, "no")});
  const auto waiting = AddDue(1, "brief");
  const auto pruning = store().OpenPruning();
  const KeepRule rule{.table = "tasks", .by_handler = {{"brief", kNoTime}, {"long", hours(1)}}};
  EXPECT_EQ(Walk([&](const std::string& after) { return pruning->PruneEnded(rule, after, 2); }), 5U);
  EXPECT_EQ(Walk([&](const std::string& after) { return pruning->PruneEnded(rule, after, 2); }), 0U);
  for (const auto id : gone) EXPECT_EQ(operations().Get({"tasks", id}).error().code, ErrorCode::NotFound);
  for (const auto id : kept) EXPECT_EQ(Get(id).attempts.size(), 1U) << "its history stays with it";
  EXPECT_EQ(StateOf(others[0]), TaskState::Succeeded) << "no rule is for ever";
  EXPECT_EQ(StateOf(failed[0]), TaskState::Failed);
  EXPECT_EQ(StateOf(waiting[0]), TaskState::Waiting);
  const KeepRule all{.table = "tasks", .otherwise = kNoTime};
  EXPECT_EQ(Walk([&](const std::string& after) { return pruning->PruneEnded(all, after, 1000); }), 3U);
}

TEST_P(StoreContract, WhatIsHandedOutBeforeItGoesStaysWhereNobodyTakesIt) {
  const auto exported = AddDue(3, "exported");
  const auto others = AddDue(2, "other");
  Settlement first = End(ClaimOne(exported[1]), To::Waiting, "once more");
  first.failed_attempt = true;
  Settle({first});
  Settle({End(ClaimOne(exported[1], 1), To::Succeeded, "fine")});
  for (const auto& ids : {std::vector{exported[0], exported[2]}, others}) {
    for (const Task& task : Claim(ids)) Settle({End(task, To::Succeeded, "fine")});
  }
  const auto pruning = store().OpenPruning();
  std::vector<std::uint64_t> taken;
  bool takes = false;
  KeepRule rule{.table = "tasks", .otherwise = kNoTime, .handed_out = {"exported"}};
  rule.hand_out = [&](const std::string& handler, std::span<const TaskRecord> tasks) {
    EXPECT_EQ(handler, "exported");
    for (const TaskRecord& record : tasks) {
      if (takes) taken.push_back(record.task.key.id);
      EXPECT_EQ(record.task.handler, "exported");
      EXPECT_EQ(record.task.state, TaskState::Succeeded);
      EXPECT_EQ(record.result, "fine");
      EXPECT_EQ(record.attempts.size(), record.task.key.id == exported[1] ? 1U : 0U) << "which go with it";
      EXPECT_TRUE(record.finished_at);
      EXPECT_EQ(StateOf(record.task.key.id), TaskState::Succeeded) << "it is there yet";
    }
    return takes;
  };
  EXPECT_EQ(Walk([&](const std::string& after) { return pruning->PruneEnded(rule, after, 2); }), 2U);
  for (const auto id : exported) EXPECT_EQ(StateOf(id), TaskState::Succeeded);
  takes = true;
  EXPECT_EQ(Walk([&](const std::string& after) { return pruning->PruneEnded(rule, after, 2); }), 3U);
  EXPECT_EQ(taken, exported);
  for (const auto id : exported) EXPECT_EQ(operations().Get({"tasks", id}).error().code, ErrorCode::NotFound);
}

TEST_P(StoreContract, WhatIsHeldForTooLongIsCancelledAndFreesItsKey) {
  std::vector<std::uint64_t> gone;
  for (int i = 0; i < 5; ++i) {
    gone.push_back(
        Add({.handler = "brief", .slice = i % 3, .state = 3, .run_at = Now() + hours(i % 2), .batch = "b"}));
  }
  const auto kept = Add({.handler = "long", .slice = 1, .state = 3});
  const auto other = Add({.handler = "other", .slice = 1, .state = 3});
  const auto waiting = Add({.handler = "brief", .slice = 1, .run_at = Now() + hours(5)});
  const NewTask keyed{.handler = "brief", .biz_key = "k", .held = true};
  const auto added = operations().Submit("tasks", std::span(&keyed, 1));
  ASSERT_TRUE(added) << added.error().message;
  gone.push_back(added->ids.at(0));
  const auto pruning = store().OpenPruning();
  const HoldRule rule{"tasks", {{"brief", kNoTime}, {"long", hours(1)}}};
  EXPECT_EQ(Walk([&](const std::string& after) { return pruning->EndHeld(rule, after, 2); }), gone.size());
  EXPECT_EQ(Walk([&](const std::string& after) { return pruning->EndHeld(rule, after, 2); }), 0U);
  for (const auto id : gone) {
    const TaskRecord record = Get(id);
    EXPECT_EQ(record.task.state, TaskState::Cancelled);
    EXPECT_TRUE(record.task.last_error.starts_with("held longer than ")) << record.task.last_error;
    EXPECT_TRUE(record.finished_at);
  }
  EXPECT_EQ(StateOf(kept), TaskState::Held);
  EXPECT_EQ(StateOf(other), TaskState::Held);
  EXPECT_EQ(StateOf(waiting), TaskState::Waiting);
  EXPECT_EQ(operations().Submit("tasks", std::span(&keyed, 1))->added, 1U) << "its key is free again";
  std::int64_t cancelled = 0;
  const auto totals = operations().Totals();
  ASSERT_TRUE(totals) << totals.error().message;
  for (const TaskTotals& total : *totals) {
    if (total.handler == "brief") cancelled += static_cast<std::int64_t>(total.cancelled);
  }
  EXPECT_EQ(cancelled, static_cast<std::int64_t>(gone.size()));
}

// Its id may stand in the finished pool already, after a restore that was none.
TEST_P(SqlStoreContract, AHeldTaskThatCanNotBeEndedHoldsUpNoOther) {
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 5; ++i)
    ids.push_back(Add({.handler = "brief", .slice = 1, .state = 3, .run_at = Now() - hours(1)}));
  ASSERT_TRUE(sql().NewClient()->Run(
      "INSERT INTO tasks_done (id,slice,state,handler,priority,run_at,params,failures,attempt,crashes,"
      "created_at,finished_at) SELECT id,slice,1,handler,priority,run_at,params,0,0,0,created_at,run_at FROM "
      "tasks WHERE id=" +
      std::to_string(ids[1])));
  const auto pruning = store().OpenPruning();
  const HoldRule rule{"tasks", {{"brief", kNoTime}}};
  std::size_t ended = 0;
  std::optional<Error> refused;
  std::string after;
  for (int steps = 0; steps < 10 && !refused; ++steps) {
    const auto step = pruning->EndHeld(rule, after, 4);
    if (!step) {
      refused = step.error();
      continue;
    }
    ended += step->removed;
    after = step->next;
    ASSERT_FALSE(after.empty()) << "the walk ends with why one is left";
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::Invalid);
  EXPECT_EQ(ended, 4U);
  for (const auto id : {ids[0], ids[2], ids[4]}) EXPECT_EQ(StateOf(id), TaskState::Cancelled);
}

// Both ways round, as they come: the task waits again, or the release comes too late.
TEST_P(StoreContract, EachMeetingOfAReleaseAndTheEndOfAHoldHasOneWinner) {
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 200; ++i)
    ids.push_back(Add({.handler = "brief", .slice = 1, .state = 3, .run_at = Now() + hours(1)}));
  const auto people = store().OpenOperations();
  std::vector<std::uint64_t> released;
  std::thread releaser([&] {
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      const auto done = people->Apply(TaskAction::Release, "tasks", std::span(&*id, 1), "me");
      if (!done) continue;
      for (const ChangedTask& task : *done) released.push_back(task.id);
    }
  });
  const auto pruning = store().OpenPruning();
  std::string after;
  bool more = true;
  for (int step = 0; more && step < 1000; ++step) {
    const auto done = pruning->EndHeld({"tasks", {{"brief", kNoTime}}}, after, 20);
    if (!done) continue;  // a lock wait
    after = done->next;
    more = !after.empty();
  }
  releaser.join();
  ASSERT_FALSE(more);
  for (const auto id : released) EXPECT_EQ(StateOf(id), TaskState::Waiting) << id;
  const auto rows = [&](TaskPool pool) {
    const auto counted =
        people->Count("tasks", pool, {.handler = "brief"}, 1000, BootClock::now() + hours(1));
    return counted ? counted->Sum() : 0;
  };
  EXPECT_EQ(rows(TaskPool::Hot), released.size());
  EXPECT_EQ(rows(TaskPool::Done), ids.size() - released.size()) << "no task is in two pools";
}

TEST_P(StoreContract, PruningTakesKeysWhoseRetentionHasPassed) {
  std::vector<NewTask> batch;
  for (int i = 0; i < 5; ++i)
    batch.push_back({.handler = i < 2 ? "a" : "b", .biz_key = "k:" + std::to_string(i)});
  auto added = operations().Submit("tasks", batch);
  ASSERT_TRUE(added) << added.error().message;
  std::vector<std::uint64_t> ended(added->ids.begin() + 1, added->ids.end());
  for (const Task& task : Claim(ended)) Settle({End(task, To::Succeeded)});
  const auto pruning = store().OpenPruning();
  const auto prune = [&] {
    return Walk([&](const std::string& after) { return pruning->PruneKeys(after, 2); });
  };
  EXPECT_EQ(prune(), 0U);
  ASSERT_TRUE(fixture().ExpireKeys());
  EXPECT_EQ(prune(), 4U);
  EXPECT_EQ(prune(), 0U);
  auto again = operations().Submit("tasks", batch);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->added, 4U) << "the one that waits still has its key";
}

TEST_P(StoreContract, PruningTakesDeadIncarnationsAndKeepsTheirSums) {
  Register("w.2");
  const auto ids = AddDue(3);
  Settle({End(ClaimOne(ids[0]), To::Succeeded)});
  Settle({End(ClaimOne(ids[1], 0, "w.2"), To::Succeeded)}, "w.2");
  ClaimOne(ids[2], 0, "w.2");
  ASSERT_TRUE(incarnations().Retire("w.2"));
  const auto pruning = store().OpenPruning();
  auto none = pruning->PruneIncarnations(hours(1), 10);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(*none, 0U) << "it began but now";
  std::size_t steps = 0;
  for (auto some = pruning->PruneIncarnations(kNoTime, 10); !some || *some > 0; ++steps) {
    ASSERT_TRUE(some) << some.error().message;
    some = pruning->PruneIncarnations(kNoTime, 10);
    ASSERT_LT(steps, 10U);
  }
  EXPECT_GE(steps, 1U);
  auto totals = operations().Totals();
  ASSERT_TRUE(totals);
  ASSERT_EQ(totals->size(), 1U);
  EXPECT_EQ(totals->front().succeeded, 2U);
  auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = "w.2", .attempt = 1, .ids = {ids[2]}});
  ASSERT_TRUE(rescued);
  EXPECT_EQ(rescued->size(), 1U);
  EXPECT_EQ(ClaimOne(ids[2], 1).attempt, 2U) << "the living one is still there";
  EXPECT_TRUE(incarnations().Register({.id = "w.2", .worker = "w"})) << "it is gone";
}

TEST_P(SqlStoreContract, TheSumsOfAllSessionsOfADeadIncarnationAreKept) {
  Register("w.2");
  const auto client = sql().NewClient();
  for (const char* owner : {"w.2", "w.2+1", "w.2+7", "w.1+1"}) {
    const auto added = client->Run(
        std::string("INSERT INTO millrace_counters (task_table,handler,batch,incarnation,succeeded,cancelled,"
                    "failed,attempts_failed) VALUES ('tasks','noop','','") +
        owner + "',5,0,0,0)");
    ASSERT_TRUE(added) << added.error().message;
  }
  ASSERT_TRUE(incarnations().Retire("w.2"));
  const auto pruning = store().OpenPruning();
  for (int steps = 0; steps < 10; ++steps) {
    const auto removed = pruning->PruneIncarnations(kNoTime, 10);
    ASSERT_TRUE(removed) << removed.error().message;
  }
  EXPECT_EQ(sql().Ask("SELECT succeeded FROM millrace_counters WHERE incarnation=''").value_or("?"), "15");
  EXPECT_EQ(sql().Ask("SELECT incarnation FROM millrace_counters WHERE incarnation<>''").value_or("?"),
            "w.1+1")
      << "the living one's";
}

}  // namespace
}  // namespace millrace::engine
