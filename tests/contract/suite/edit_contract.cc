// What people change of tasks that wait, are held or have failed, by which filter, and what the audit keeps
// of it.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "framework/store/sql/acts.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;
using To = Settlement::To;
using Ids = std::vector<std::uint64_t>;

Ids Edited(StoreTest& test, const TaskEdit& edit, Ids ids, const Author& author = "me") {
  auto changed = test.operations().Edit(edit, "tasks", ids, author);
  EXPECT_TRUE(changed) << changed.error().message;
  return changed ? IdsOf(*changed) : Ids{};
}

Ids Listed(StoreTest& test, const TaskFilter& filter) {
  auto page = test.operations().List("tasks", filter, "", 100);
  EXPECT_TRUE(page) << page.error().message;
  Ids ids;
  for (const TaskRecord& record : page->records) ids.push_back(record.task.key.id);
  return ids;
}

TEST_P(StoreContract, AnEditChangesWhatItNamesAndNothingElse) {
  const auto id = AddDue(1)[0];
  const Task before = Get(id).task;
  EXPECT_EQ(Edited(*this, {.priority = 1}, {id}), Ids{id});
  const Task task = Get(id).task;
  EXPECT_EQ(task.priority, 1U);
  EXPECT_EQ(task.run_at, before.run_at);
  EXPECT_EQ(task.params, before.params);
  EXPECT_EQ(task.state, TaskState::Waiting);
  const WallTime at = Now() + hours(2);
  EXPECT_EQ(Edited(*this, {.run_at = at, .params = R"({"x":2})"}, {id}), Ids{id});
  EXPECT_EQ(Get(id).task.run_at, at);
  EXPECT_EQ(Get(id).task.params, R"({"x":2})");
  EXPECT_EQ(Get(id).task.priority, 1U);
  EXPECT_EQ(Edited(*this, {.delay = hours(1)}, {id}), Ids{id});
  EXPECT_LE(Get(id).task.run_at, Now() + hours(1));
  EXPECT_GT(Get(id).task.run_at, Now() + std::chrono::minutes(59));
}

TEST_P(StoreContract, AnEditMovesAWaitingTaskInTheOrder) {
  const auto ids = AddDue(2);
  Edited(*this, {.priority = 0}, {ids[1]});
  const DueMap map = Due();
  ASSERT_EQ(map.groups.size(), 2U);
  EXPECT_EQ(std::min(map.groups[0].urgency, map.groups[1].urgency), 0U);
}

TEST_P(StoreContract, AFailedTaskIsEditedWithoutADueTime) {
  const auto id = AddDue(1)[0];
  Settle({End(ClaimOne(id), To::Failed, "no")});
  EXPECT_EQ(Edited(*this, {.priority = 2, .params = R"({"mended":1})"}, {id}), Ids{id});
  EXPECT_EQ(StateOf(id), TaskState::Failed);
  EXPECT_EQ(Edited(*this, {.delay = hours(1)}, {id}), Ids{}) << "a failed task is due when it is retried";
  ASSERT_TRUE(operations().Apply(TaskAction::Retry, "tasks", Ids{id}, "me"));
  EXPECT_EQ(Get(id).task.params, R"({"mended":1})");
  EXPECT_EQ(Get(id).task.priority, 2U);
}

TEST_P(StoreContract, AnEditLeavesWhatRunsOrHasEndedAlone) {
  const auto ids = AddDue(2);
  ClaimOne(ids[0]);
  Settle({End(ClaimOne(ids[1]), To::Succeeded)});
  EXPECT_EQ(Edited(*this, {.priority = 1}, ids), Ids{});
  EXPECT_EQ(Get(ids[0]).task.priority, 5U);
}

TEST_P(StoreContract, AnEditThatIsTrueAlreadyChangesNothing) {
  const auto ids = AddDue(2);
  Edited(*this, {.priority = 1}, {ids[0]});
  EXPECT_EQ(Edited(*this, {.priority = 1}, ids), Ids{ids[1]}) << "so that it may be repeated";
}

TEST_P(StoreContract, NoEditLetsATaskExpireBeforeItIsDue) {
  const auto ids = AddDue(2);
  const WallTime soon = Now() + hours(1);
  EXPECT_EQ(Edited(*this, {.expires_at = soon}, {ids[0]}), Ids{ids[0]});
  EXPECT_EQ(Get(ids[0]).task.expires_at, soon);
  EXPECT_EQ(Edited(*this, {.delay = hours(2)}, ids), Ids{ids[1]}) << "the first would expire before";
  EXPECT_EQ(Edited(*this, {.run_at = soon}, {ids[0]}), Ids{}) << "at that moment it is expired";
  EXPECT_EQ(Edited(*this, {.expires_in = hours(1)}, {ids[1]}), Ids{});
  EXPECT_EQ(Edited(*this, {.delay = hours(2), .expires_in = hours(3)}, ids), ids) << "both at once";
}

TEST_P(StoreContract, AWrongEditIsRefused) {
  const auto id = AddDue(1)[0];
  for (const TaskEdit& wrong :
       {TaskEdit{}, TaskEdit{.priority = 10}, TaskEdit{.params = "{"}, TaskEdit{.params = "[]"},
        TaskEdit{.params = "{\"x\":\"" + std::string(kMaxParams, 'x') + "\"}"}}) {
    auto changed = operations().Edit(wrong, "tasks", Ids{id}, "me");
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().code, ErrorCode::Invalid) << changed.error().message;
  }
  EXPECT_EQ(Get(id).task.params, "{}");
}

TEST_P(StoreContract, FiltersOfTimeAndPriorityAreExact) {
  const WallTime now = Now();
  const auto soon = Add({.slice = 1, .priority = 1, .run_at = now + hours(1)});
  const auto late = Add({.slice = 1, .priority = 2, .run_at = now + hours(3)});
  EXPECT_EQ(Listed(*this, {.priority = 2}), Ids{late});
  EXPECT_EQ(Listed(*this, {.due_before = now + hours(1)}), Ids{});
  EXPECT_EQ(Listed(*this, {.due_before = now + hours(1) + Micros(1)}), Ids{soon});
  EXPECT_EQ(Listed(*this, {.until = now - hours(1)}), Ids{});
  EXPECT_EQ(Listed(*this, {.since = now - hours(1), .until = Now() + hours(1)}), (Ids{soon, late}));
}

TEST_P(StoreContract, WhatComesBeforeATaskIsCountedByPriority) {
  const WallTime due = Now() - hours(1);
  for (int i = 0; i < 3; ++i) Add({.slice = 1, .priority = 3, .run_at = due});
  Add({.slice = 1, .priority = 3, .run_at = Now() + hours(1)});  // not due
  Add({.slice = 2, .priority = 3, .run_at = due});               // another slice
  Add({.handler = "other", .slice = 1, .priority = 3, .run_at = due});
  Add({.slice = 1, .state = 3, .priority = 3, .run_at = due});  // held
  Add({.slice = 1, .priority = 5, .run_at = due - hours(1)});
  const auto twin = Add({.slice = 1, .priority = 5, .run_at = due});
  const auto id = Add({.slice = 1, .priority = 5, .run_at = due});
  Add({.slice = 1, .priority = 5, .run_at = due + Micros(1)});
  Add({.slice = 1, .priority = 6, .run_at = due - hours(1)});
  auto ahead = operations().Ahead(Get(id).task);
  ASSERT_TRUE(ahead) << ahead.error().message;
  EXPECT_THAT(ahead->of_priority, ElementsAre(Pair(3, 3), Pair(5, 2)));
  EXPECT_FALSE(ahead->more);
  ClaimOne(twin);
  EXPECT_EQ(operations().Ahead(Get(id).task)->Sum(), 4U) << "what runs is in nobody's way";
}

TEST_P(StoreContract, TheAuditTellsWhoActedOnATaskAloneOrAmongMany) {
  const auto ids = AddDue(4);
  EXPECT_FALSE(operations().LastAct(TaskAction::Hold, {"tasks", ids[0]})->has_value());
  ASSERT_TRUE(operations().Apply(TaskAction::Hold, "tasks", Ids{ids[0]}, "ann"));
  ASSERT_TRUE(operations().Apply(TaskAction::Hold, "tasks", Ids{ids[1], ids[3]},
                                 {"bob", "all that match handler noop"}));
  const auto who = [&](std::uint64_t id) {
    auto act = operations().LastAct(TaskAction::Hold, {"tasks", id});
    EXPECT_TRUE(act) << act.error().message;
    return act && *act ? (*act)->actor : "nobody";
  };
  EXPECT_EQ(who(ids[0]), "ann");
  EXPECT_EQ(who(ids[1]), "bob");
  EXPECT_EQ(who(ids[3]), "bob");
  EXPECT_EQ(who(ids[2]), "nobody") << "between the ids of the others, and none of them";
  ASSERT_TRUE(operations().Apply(TaskAction::Release, "tasks", Ids{ids[1]}, "cid"));
  ASSERT_TRUE(operations().Apply(TaskAction::Hold, "tasks", Ids{ids[1]}, "dan"));
  EXPECT_EQ(who(ids[1]), "dan") << "the last one";
}

TEST_P(StoreContract, APauseKeepsItsReasonUntilItIsLifted) {
  ASSERT_TRUE(operations().SetPause("handler:a", "ann", true, "the partner is down"));
  ASSERT_TRUE(operations().SetPause("worker:w1", "ann", true));
  auto pauses = operations().Pauses();
  ASSERT_TRUE(pauses) << pauses.error().message;
  ASSERT_EQ(pauses->size(), 2U);
  EXPECT_EQ(pauses->at(0).reason, "the partner is down");
  EXPECT_EQ(pauses->at(1).reason, "");
  ASSERT_TRUE(operations().SetPause("handler:a", "ann", false));
  ASSERT_TRUE(operations().SetPause("handler:a", "bob", true));
  EXPECT_EQ(operations().Pauses()->at(0).reason, "") << "that was of another pause";
}

TEST_P(SqlStoreContract, AnEditIsInTheAuditWithBeforeAndAfter) {
  const auto id = AddDue(1)[0];
  const std::string large = R"({"x":")" + std::string(5000, 'y') + R"("})";
  Edited(*this, {.priority = 1, .params = large}, {id}, "anna");
  const std::string detail =
      sql().Ask("SELECT detail FROM millrace_audit WHERE action='edit' AND actor='anna'").value_or("?");
  EXPECT_THAT(detail, HasSubstr("was waiting, priority 5, params {}; now priority 1, params {\"x\""));
  EXPECT_LT(detail.size(), 1200U);
}

// By which a claim sees it, and from which a hold counts.
TEST_P(SqlStoreContract, AnEditMovesTheTimeOfTheLastChange) {
  const auto id = AddDue(1)[0];
  ASSERT_TRUE(sql().NewClient()->Run("UPDATE tasks SET updated_at='2020-01-01 00:00:00.000000'"));
  ASSERT_EQ(Edited(*this, {.priority = 1}, {id}), Ids{id});
  EXPECT_GT(sql().Ask("SELECT updated_at FROM tasks").value_or("?"), "2021");
}

TEST_P(SqlStoreContract, AnActOnManyIsOneRowOfTheAudit) {
  const auto ids = AddDue(3);
  Edited(*this, {.priority = 1}, {ids[0]});
  Edited(*this, {.priority = 2}, ids, {"anna", "all that match handler noop"});
  EXPECT_EQ(sql().Ask("SELECT COUNT(*) FROM millrace_audit WHERE actor='anna'").value_or("?"), "1");
  EXPECT_THAT(sql().Ask("SELECT detail FROM millrace_audit WHERE actor='anna'").value_or("?"),
              AllOf(HasSubstr("3 tasks; were waiting (3), priority 1 (1), priority 5 (2); now priority 2"),
                    HasSubstr("all that match handler noop; ids " + std::to_string(ids[0]) + "-")));
}

TEST(IdRangesTest, IdsInARowAreTheirFirstAndLast) {
  EXPECT_EQ(sql::IdRanges(Ids{}), "");
  EXPECT_EQ(sql::IdRanges(Ids{7}), "7");
  EXPECT_EQ(sql::IdRanges(Ids{1, 2, 3, 7, 9, 10}), "1-3,7,9-10");
}

TEST_P(ScannedContract, AnEditBetweenTheScanAndTheClaimIsNeverOverrun) {
  const auto ids = AddDue(3);
  const auto rows = Scan();
  Edited(*this, {.params = R"({"edited":1})"}, {ids[0]});
  Edited(*this, {.delay = hours(1)}, {ids[1]});
  const auto claimed = ClaimedParams(rows);
  EXPECT_THAT(claimed, UnorderedElementsAre(Pair(ids[0], R"({"edited":1})"), Pair(ids[2], "{}")))
      << "as it is by now, and not what was put off";
}

// Both ways round, as they come: the attempt runs with what the edit left, or the edit comes too late.
TEST_P(ScannedContract, EachMeetingOfAnEditAndAClaimHasOneWinner) {
  const auto ids = AddDue(40);
  const auto rows = Scan();
  const auto operations = store().OpenOperations();
  Ids edited;
  std::thread editor([&] {
    for (const std::uint64_t id : ids) {
      auto done = operations->Edit({.params = R"({"edited":1})"}, "tasks", Ids{id}, "me");
      if (!done) continue;
      for (const ChangedTask& task : *done) edited.push_back(task.id);
    }
  });
  std::map<std::uint64_t, std::string> claimed;
  for (std::size_t i = 0; i < rows.size(); i += 4) {
    auto some = ClaimScanned({rows.begin() + static_cast<std::ptrdiff_t>(i),
                              rows.begin() + static_cast<std::ptrdiff_t>(std::min(i + 4, rows.size()))});
    if (!some) continue;  // a lock wait
    for (const Task& task : *some) claimed[task.key.id] = task.params;
  }
  editor.join();
  for (const auto& [id, params] : claimed) {
    const bool was_edited = std::find(edited.begin(), edited.end(), id) != edited.end();
    EXPECT_EQ(params, was_edited ? R"({"edited":1})" : "{}") << id;
    EXPECT_EQ(Get(id).task.params, params) << id;
  }
}

}  // namespace
}  // namespace millrace::engine
