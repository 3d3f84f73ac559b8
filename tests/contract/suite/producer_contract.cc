#include "tests/contract/suite/producer_contract.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

namespace millrace::engine {

producer::RunSql ProducerContract::On(TaskTransaction& transaction) {
  return [&transaction](const std::string& sql, std::span<const producer::SqlValue> values) {
    std::vector<SqlValue> bound;
    for (const producer::SqlValue& value : values) {
      const auto* number = std::get_if<std::int64_t>(&value);
      const auto* text = std::get_if<std::string>(&value);
      bound.push_back(number != nullptr ? SqlValue(*number) : text != nullptr ? SqlValue(*text) : SqlValue());
    }
    auto answer = transaction.Execute(sql, bound);
    if (!answer) return producer::SqlAnswer{.error = answer.error().message};
    return producer::SqlAnswer{.rows = std::move(answer->rows), .affected = answer->affected};
  };
}

producer::Report ProducerContract::Submit(const std::vector<producer::NewTask>& tasks) {
  auto report = producer::SubmitInTransaction(dialect(), On(*transaction_), tasks);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : producer::Report{.tasks = std::vector<producer::SubmittedTask>(tasks.size())};
}

void ProducerContract::CommitAll() {
  const CommitReport done = transaction_->Commit("", {});
  EXPECT_EQ(done.verdict, CommitVerdict::Committed) << done.message;
}

std::string ProducerContract::HolderOf(const std::string& key) {
  const NewTask task{.handler = "ship", .biz_key = key};
  auto report = operations().Submit("tasks", std::span(&task, 1));
  EXPECT_TRUE(report) << report.error().message;
  return report ? report->duplicates[0] : "?";
}

std::string ProducerContract::Tasks() {
  return sql().Ask("SELECT COUNT(*) FROM tasks WHERE handler='ship'").value_or("?");
}

namespace {

using testing::HasSubstr;

TEST_P(ProducerContract, AnOrderAndItsTaskCommitTogether) {
  Execute("INSERT INTO account (id) VALUES (1)");
  const auto report = Submit({{.handler = "ship", .params = R"({"name":"ü'\"\\?"})", .key = "order-1"}});
  CommitAll();
  EXPECT_EQ(Accounts(), "1");
  ASSERT_TRUE(report.tasks[0].added());
  const Task task = Get(report.tasks[0].id).task;
  EXPECT_EQ(task.params, R"({"name":"ü'\"\\?"})");
  EXPECT_EQ(task.biz_key, "order-1");
  EXPECT_LE(task.run_at, Now());
  EXPECT_EQ(HolderOf("order-1"), TaskName(task.key.id));
}

TEST_P(ProducerContract, AnOrderAndItsTaskRollBackTogether) {
  Execute("INSERT INTO account (id) VALUES (1)");
  ASSERT_TRUE(Submit({{.handler = "ship", .key = "order-1"}}).tasks[0].added());
  transaction_->Rollback();
  EXPECT_EQ(Accounts(), "0");
  EXPECT_EQ(Tasks(), "0");
  EXPECT_EQ(HolderOf("order-1"), "") << "the key went with the task";
}

TEST_P(ProducerContract, EveryMemberIsTaken) {
  using namespace std::chrono;
  const producer::Time at = Now() + hours(3) + Micros(7);
  const auto report = Submit({{.handler = "ship", .batch = "b", .priority = 0, .run_at = at, .held = true},
                              {.handler = "ship", .delay = hours(1)},
                              {.handler = "ship", .slice_key = "123456789"}});
  CommitAll();
  const Task first = Get(report.tasks[0].id).task;
  EXPECT_EQ(first.batch, "b");
  EXPECT_EQ(first.priority, 0u);
  EXPECT_EQ(first.run_at, at);
  EXPECT_EQ(first.state, TaskState::Held);
  const Task second = Get(report.tasks[1].id).task;
  EXPECT_GT(second.run_at, Now() + minutes(59));
  EXPECT_LE(second.run_at, Now() + hours(1));
  EXPECT_EQ(Get(report.tasks[2].id).task.slice, 0xCBF43926u % 4);
}

TEST_P(ProducerContract, ADuplicateIsToldAndTheOrderGoesOn) {
  const NewTask before{.handler = "ship", .biz_key = "order-1"};
  const auto holder = operations().Submit("tasks", std::span(&before, 1));
  ASSERT_TRUE(holder);
  Execute("INSERT INTO account (id) VALUES (1)");
  const auto report = Submit({{.handler = "ship", .key = "order-1"},
                              {.handler = "ship", .key = "order-2"},
                              {.handler = "ship", .key = "order-2"},
                              {.handler = "ship"}});
  CommitAll();
  EXPECT_EQ(report.added, 2u);
  EXPECT_EQ(report.tasks[0].duplicate_of, TaskName(holder->ids[0]));
  EXPECT_EQ(report.tasks[2].duplicate_of, TaskName(report.tasks[1].id));
  EXPECT_TRUE(report.tasks[3].added());
  EXPECT_EQ(Accounts(), "1");
  EXPECT_EQ(Tasks(), "3") << "of the duplicates nothing is left";
}

TEST_P(ProducerContract, AKeyOfALostTaskIsTakenOver) {
  const NewTask before{.handler = "ship", .biz_key = "k"};
  const auto lost = operations().Submit("tasks", std::span(&before, 1));
  ASSERT_TRUE(lost);
  ASSERT_TRUE(fixture().Remove("tasks", lost->ids[0]));
  const auto report = Submit({{.handler = "ship", .key = "a"}, {.handler = "ship", .key = "k"}});
  CommitAll();
  EXPECT_EQ(report.added, 2u);
  EXPECT_EQ(HolderOf("k"), TaskName(report.tasks[1].id));
}

TEST_P(ProducerContract, ABatchOfThousandsHasItsIdsAndSlicesInRuns) {
  const auto numbered = [](std::size_t i) { return "{\"n\":" + std::to_string(i) + "}"; };
  std::vector<producer::NewTask> tasks;
  for (std::size_t i = 0; i < 2'500; ++i)
    tasks.push_back({.handler = "ship", .params = numbered(i), .key = "k" + std::to_string(i % 2'400)});
  const auto report = Submit(tasks);
  CommitAll();
  EXPECT_EQ(report.added, 2'400u);
  std::set<std::uint64_t> ids;
  for (const producer::SubmittedTask& task : report.tasks) ids.insert(task.id);
  EXPECT_EQ(ids.size(), 2'401u);
  for (const std::size_t i : {0U, 998U, 999U, 2'399U})
    EXPECT_EQ(Get(report.tasks[i].id).task.params, numbered(i));
  EXPECT_EQ(report.tasks[2'400].duplicate_of, TaskName(report.tasks[0].id)) << "by a key of the same call";
  EXPECT_EQ(sql().Ask("SELECT COUNT(DISTINCT slice) FROM tasks WHERE handler='ship'").value_or("?"), "4");
  EXPECT_LE(std::stoi(*sql().Ask("SELECT COUNT(*) FROM tasks a JOIN tasks b ON b.id=a.id+1 WHERE "
                                 "a.handler='ship' AND b.handler='ship' AND a.slice<>b.slice")),
            40);
}

// The second meets the first's key in a transaction that is open, and waits for its end.
TEST_P(ProducerContract, OfTwoProducersOfOneKeyTheSecondIsToldTheFirst) {
  for (const bool first_commits : {true, false}) {
    const std::string key = first_commits ? "kept" : "given up";
    const auto first = Submit({{.handler = "ship", .key = key}});
    ASSERT_TRUE(first.tasks[0].added());
    std::string holder = "?";
    std::thread second([&] { holder = HolderOf(key); });
    if (first_commits) {
      CommitAll();
    } else {
      transaction_->Rollback();
    }
    second.join();
    EXPECT_EQ(holder, first_commits ? TaskName(first.tasks[0].id) : "");
    EXPECT_EQ(sql().Ask("SELECT COUNT(*) FROM tasks WHERE biz_key='" + key + "'").value_or("?"), "1");
  }
}

TEST_P(ProducerContract, WhatTheDatabaseRefusesIsToldAndLeavesTheRollback) {
  Execute("INSERT INTO account (id) VALUES (1)");
  const auto report =
      producer::SubmitInTransaction(dialect(), On(*transaction_), {.handler = "ship", .params = "{"});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, producer::ErrorKind::Failed);
  EXPECT_THAT(report.error().message, HasSubstr("roll the transaction back"));
  transaction_->Rollback();
  EXPECT_EQ(Accounts(), "0");
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProducerContract);

}  // namespace
}  // namespace millrace::engine
