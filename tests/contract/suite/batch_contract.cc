#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using To = Settlement::To;

const BatchPart kHome{"main", "tasks"};

template <class T>
T Good(Result<T> answer) {
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? std::move(*answer) : T();
}

BatchRecord Found(BatchStore& batches, const std::string& name = "june") {
  const auto found = Good(batches.Find(name));
  EXPECT_TRUE(found) << "there is no batch " << name;
  return found.value_or(BatchRecord());
}

// Open, with so many announced.
void Make(BatchStore& batches, std::int64_t added, const std::string& name = "june") {
  EXPECT_TRUE(Good(batches.Make({.name = name, .home = kHome, .on_end = "{}", .made_by = "me@here"})));
  if (added > 0) {
    EXPECT_TRUE(Good(batches.Announce(name, kHome, added)));
  }
}

BatchEnd EndOf(BatchSums sums, const std::string& name = "june") {
  NewTask success{.handler = "told"};
  success.biz_key = SuccessKey(name);
  NewTask end{.handler = "told"};
  end.biz_key = EndKey(name);
  return {name, "tasks", sums, {success}, {end}};
}

TEST_P(StoreContract, ABatchGrowsWhileItIsOpenAndNoLonger) {
  const auto batches = store().OpenBatches();
  EXPECT_FALSE(Good(batches->Find("june")));
  Make(*batches, 7);
  EXPECT_FALSE(Good(batches->Make({.name = "june", .home = kHome, .made_by = "you"}))) << "it is there";
  EXPECT_TRUE(Good(batches->Announce("june", {"two", "tasks"}, 5)));
  EXPECT_TRUE(Good(batches->Announce("june", kHome, -3)));
  BatchRecord june = Found(*batches);
  EXPECT_EQ(june.state, BatchState::Open);
  EXPECT_EQ(june.added, 9U);
  EXPECT_EQ(june.made_by, "me@here");
  EXPECT_THAT(june.parts, ElementsAre(kHome, BatchPart{"two", "tasks"}));
  EXPECT_TRUE(Good(batches->Close("june", "me")));
  EXPECT_FALSE(Good(batches->Close("june", "me"))) << "it is closed";
  EXPECT_FALSE(Good(batches->Announce("june", kHome, 1))) << "nothing is added to a closed one";
  EXPECT_TRUE(Good(batches->Announce("june", kHome, -1))) << "what was not added is taken back";
  june = Found(*batches);
  EXPECT_EQ(june.state, BatchState::Closed);
  EXPECT_EQ(june.added, 8U);
  EXPECT_TRUE(june.closed_at);
  EXPECT_FALSE(Good(batches->Announce("july", kHome, 1))) << "there is none";
  EXPECT_FALSE(Good(batches->Close("july", "me")));
}

TEST_P(StoreContract, WhatATransactionAnnouncesComesWithItsTasks) {
  const auto batches = store().OpenBatches();
  Make(*batches, 7);
  NewTask task{.handler = "told", .batch = "june"};
  const auto add = [&](TaskTransaction& transaction) {
    EXPECT_TRUE(transaction.Submit("tasks", std::span(&task, 1)));
    return Good(transaction.Announce("june", {"two", "tasks"}, 1));
  };
  const auto transaction = store().OpenLongTransaction(std::chrono::minutes(1));
  EXPECT_TRUE(add(*transaction));
  transaction->Rollback();
  EXPECT_EQ(Found(*batches).added, 7U);
  EXPECT_TRUE(add(*transaction));
  EXPECT_EQ(transaction->Commit("", {}).verdict, CommitVerdict::Committed);
  EXPECT_EQ(Found(*batches).added, 8U);
  EXPECT_THAT(ScanAll(), SizeIs(1));
  EXPECT_TRUE(Good(batches->Close("june", "")));
  EXPECT_FALSE(add(*transaction)) << "it is closed";
  transaction->Rollback();
}

TEST_P(StoreContract, ABatchIsTakenAwayOnlyWhereNothingWasAnnounced) {
  const auto batches = store().OpenBatches();
  Make(*batches, 0);
  EXPECT_TRUE(Good(batches->Unmake("june")));
  EXPECT_FALSE(Good(batches->Unmake("june")));
  Make(*batches, 1);
  EXPECT_FALSE(Good(batches->Unmake("june")));
}

TEST_P(StoreContract, BatchesAreListedByNameAndThoseThatAreClosedByThemselves) {
  const auto batches = store().OpenBatches();
  for (const char* name : {"c", "a", "b"}) Make(*batches, 1, name);
  EXPECT_TRUE(Good(batches->Close("b", "")));
  using Which = BatchStore::Which;
  EXPECT_THAT(Good(batches->List(Which::All, "", 2)), SizeIs(2));
  EXPECT_THAT(Good(batches->List(Which::All, "b", 2)), SizeIs(1));
  const auto closed = Good(batches->List(Which::Closed, "", 10));
  ASSERT_THAT(closed, SizeIs(1));
  EXPECT_EQ(closed.front().name, "b");
}

TEST_P(StoreContract, TheSumsOfABatchAreWhatItsSettlesCounted) {
  Register("w.2");
  std::vector<std::uint64_t> ids;
  for (const char* batch : {"june", "june", "june", "july"}) {
    PlainRow row;
    row.batch = batch;
    row.slice = 1;
    row.handler = ids.size() % 2 == 0 ? "noop" : "other";
    row.run_at = Now() - std::chrono::hours(1);
    ids.push_back(Add(row));
  }
  Settle({End(ClaimOne(ids[0]), To::Succeeded), End(ClaimOne(ids[1]), To::Failed, "no")});
  Settle({End(ClaimOne(ids[2], 0, "w.2"), To::Cancelled), End(ClaimOne(ids[3], 0, "w.2"), To::Succeeded)},
         "w.2");
  const auto batches = store().OpenBatches();
  const TableName tables[] = {"tasks"};
  const std::string names[] = {"june", "july", "august"};
  EXPECT_THAT(Good(batches->Sums(tables, names)),
              UnorderedElementsAre(Pair("june", BatchSums{1, 1, 1}), Pair("july", BatchSums{1, 0, 0})));
  Good(operations().Apply(TaskAction::Retry, "tasks", std::span(&ids[1], 1), "me"));
  EXPECT_EQ(Good(batches->Sums(tables, names))["june"], (BatchSums{1, 1, 0})) << "it is to be run again";
  EXPECT_THAT(Good(batches->Sums(tables, {})), IsEmpty());
}

// Plain SQL and older programs have brought such names.
TEST_P(StoreContract, ANameWithASpaceBehindItIsOneBatchWithTheOtherInTheCountsAndInAWalkOrInNeither) {
  std::vector<std::uint64_t> ids;
  for (const char* batch : {"june ", "june", "june "}) {
    PlainRow row;
    row.batch = batch;
    row.run_at = Now() - std::chrono::hours(1);
    ids.push_back(Add(row));
  }
  Settle({End(ClaimOne(ids[0]), To::Succeeded)});
  Settle({End(ClaimOne(ids[1]), To::Failed, "no")});
  const auto batches = store().OpenBatches();
  const TableName tables[] = {"tasks"};
  const std::string names[] = {"june"};
  const BatchSums sums = Good(batches->Sums(tables, names))["june"];
  EXPECT_EQ(sums.failed, 1U) << "whoever settled first has its name in the row of the counters";
  const auto waits = std::ranges::count(Good(batches->Walk("tasks", 0, 10)).rows, "june", &BatchRow::batch);
  EXPECT_EQ(waits, std::ssize(Good(batches->Still("tasks", "june", ids))));
  EXPECT_EQ(sums.succeeded, static_cast<std::uint64_t>(waits)) << "one of two `june `";
}

TEST_P(SqlStoreContract, TheSumsOfABatchAreThoseOfAllItsTypesHoweverMany) {
  constexpr int kTypes = 2 * static_cast<int>(kMaxBatchRows) + 1;
  std::string rows;
  for (int i = 0; i < kTypes; ++i) {
    const bool last = i == kTypes - 1;
    rows += (i == 0 ? "('tasks','t" : ",('tasks','t") + std::to_string(10'000 + i) + "','june','w.1'," +
            (last ? "0,0,1,0)" : "1,0,0,0)");
  }
  Good(sql().NewClient()->Run(
      "INSERT INTO millrace_counters (task_table,handler,batch,incarnation,succeeded,cancelled,failed,"
      "attempts_failed) VALUES " +
      rows));
  const TableName tables[] = {"tasks"};
  const std::string names[] = {"june"};
  EXPECT_THAT(Good(store().OpenBatches()->Sums(tables, names)),
              ElementsAre(Pair("june", BatchSums{kTypes - 1, 0, 1})));
}

TEST_P(StoreContract, AWalkFindsTheRowsOfBatchesThatWaitRunOrAreHeld) {
  std::vector<std::uint64_t> ids;
  for (const char* batch : {"june", "", "june", "july", "june"}) {
    PlainRow row;
    if (*batch != '\0') row.batch = batch;
    row.run_at = Now() - std::chrono::hours(1);
    ids.push_back(Add(row));
  }
  ClaimOne(ids[2]);
  Good(operations().Apply(TaskAction::Hold, "tasks", std::span(&ids[4], 1), "me"));
  const auto batches = store().OpenBatches();
  std::vector<std::pair<std::string, TaskState>> found;
  std::optional<std::uint64_t> after = 0;
  for (int steps = 0; after && steps < 10; ++steps) {
    const BatchPage page = Good(batches->Walk("tasks", *after, 2));
    for (const BatchRow& row : page.rows) found.emplace_back(row.batch, row.state);
    after = page.next;
  }
  EXPECT_FALSE(after) << "the walk has an end";
  EXPECT_THAT(found, ElementsAre(Pair("june", TaskState::Waiting), Pair("june", TaskState::Running),
                                 Pair("july", TaskState::Waiting), Pair("june", TaskState::Held)));
  const auto still = Good(batches->Still("tasks", "june", ids));
  EXPECT_THAT(still, SizeIs(3)) << "those of the others are not meant";
  Settle({End(Get(ids[2]).task, To::Succeeded)});
  EXPECT_THAT(Good(batches->Still("tasks", "june", ids)), SizeIs(2));
}

TEST_P(StoreContract, TheEndOfABatchAddsItsCallbacksAndIsFinal) {
  const auto batches = store().OpenBatches();
  Make(*batches, 2);
  EXPECT_FALSE(Good(batches->End(EndOf({2, 0, 0})))) << "it is open";
  EXPECT_TRUE(Good(batches->Close("june", "")));
  EXPECT_TRUE(Good(batches->End(EndOf({2, 0, 0}))));
  const BatchRecord june = Found(*batches);
  EXPECT_EQ(june.state, BatchState::Ended);
  EXPECT_TRUE(june.success);
  EXPECT_EQ(june.at_end, (BatchSums{2, 0, 0}));
  EXPECT_EQ(Good(operations().Find("tasks", "told", SuccessKey("june"))),
            ParseTaskName(june.success_task, {"here", {}})->key);
  EXPECT_EQ(Good(operations().Find("tasks", "told", EndKey("june"))),
            ParseTaskName(june.end_task, {"here", {}})->key);
  EXPECT_FALSE(Good(batches->End(EndOf({2, 0, 0})))) << "one whose COMMIT had no answer asks again";
  EXPECT_THAT(ScanAll(), SizeIs(2));
  EXPECT_FALSE(Good(batches->Announce("june", kHome, 1)));
}

TEST_P(StoreContract, ABatchWithAFailedTaskEndsWithoutSuccess) {
  const auto batches = store().OpenBatches();
  Make(*batches, 2);
  EXPECT_TRUE(Good(batches->Close("june", "")));
  EXPECT_TRUE(Good(batches->End(EndOf({1, 0, 1}))));
  const BatchRecord june = Found(*batches);
  EXPECT_FALSE(june.success);
  EXPECT_EQ(june.success_task, "");
  EXPECT_NE(june.end_task, "");
  EXPECT_THAT(ScanAll(), SizeIs(1));
}

TEST_P(StoreContract, OfTwoWhoEndABatchAtOnceOneAddsItsCallback) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = "june-" + std::to_string(round);
    Make(*store().OpenBatches(), 1, name);
    EXPECT_TRUE(Good(store().OpenBatches()->Close(name, "")));
    std::atomic<int> decided{0};
    const auto decide = [&] {
      const auto batches = store().OpenBatches();
      for (int tries = 0; tries < 100; ++tries) {
        const auto ended = batches->End(EndOf({1, 0, 0}, name));
        if (ended && *ended) ++decided;
        if (ended) return;
        EXPECT_EQ(ended.error().code, ErrorCode::Conflict) << ended.error().message;
      }
    };
    std::thread other(decide);
    decide();
    other.join();
    EXPECT_EQ(decided, 1);
    EXPECT_THAT(ScanAll(), SizeIs(2 * (round + 1)));
  }
}

// A failover that lost the row's change and kept the task, or a person who set it back.
TEST_P(SqlStoreContract, TheLedgerIsASecondGuardOfACallback) {
  const auto batches = store().OpenBatches();
  Make(*batches, 1);
  EXPECT_TRUE(Good(batches->Close("june", "")));
  EXPECT_TRUE(Good(batches->End(EndOf({1, 0, 0}))));
  const std::string task = Found(*batches).success_task;
  Good(sql().NewClient()->Run(
      "UPDATE millrace_batches SET state='closed', success_task='', end_task='' WHERE name='june'"));
  EXPECT_TRUE(Good(batches->End(EndOf({1, 0, 0}))));
  EXPECT_EQ(Found(*batches).success_task, task) << "the one that has the key";
  EXPECT_THAT(ScanAll(), SizeIs(2));
}

}  // namespace
}  // namespace millrace::engine
