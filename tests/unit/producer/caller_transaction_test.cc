// What the caller's function is asked to run, text by text, and what is made of its answers. That the
// statements do what they should is the contract suite's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/producer.h>

#include <map>
#include <set>

namespace millrace::producer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A connection that answers each statement by the first words that it begins with, and keeps what it was
// asked.
class FakeConnection {
 public:
  RunSql Function() {
    return [this](const std::string& sql, std::span<const SqlValue> values) {
      texts.push_back(sql);
      all_values.emplace_back(values.begin(), values.end());
      for (const auto& [begin, answer] : answers) {
        if (sql.starts_with(begin)) return answer;
      }
      return SqlAnswer{};
    };
  }

  std::map<std::string, SqlAnswer> answers;
  std::vector<std::string> texts;
  std::vector<std::vector<SqlValue>> all_values;
};

SqlAnswer OneRow(std::vector<std::optional<std::string>> cells) { return {.rows = {std::move(cells)}}; }
SqlAnswer Affected(std::uint64_t rows) { return {.affected = rows}; }

// The last value of an INSERT that says its slice.
std::int64_t SliceOf(const std::vector<SqlValue>& values) { return std::get<std::int64_t>(values.back()); }

class CallerTransactionTest : public testing::Test {
 protected:
  Result<Report> Submit(Dialect dialect, const std::vector<NewTask>& tasks,
                        const SubmitOptions& options = {}) {
    return SubmitInTransaction(dialect, db_.Function(), tasks, options);
  }
  std::string ErrorOf(const NewTask& task) {
    const auto report = SubmitInTransaction(Dialect::Mysql, db_.Function(), task);
    if (report) return "none";
    EXPECT_EQ(report.error().kind, ErrorKind::Invalid);
    EXPECT_THAT(db_.texts, IsEmpty()) << "nothing is sent for a task that can't be";
    return report.error().message;
  }

  FakeConnection db_;
};

TEST_F(CallerTransactionTest, OneTaskOnMysql) {
  db_.answers["SELECT LAST_INSERT_ID()"] = OneRow({"17", "1"});
  const auto task = SubmitInTransaction(Dialect::Mysql, db_.Function(), {.handler = "noop", .batch = "b"});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(task->id, 17u);
  EXPECT_THAT(db_.texts, ElementsAre("INSERT INTO tasks (handler,params,biz_key,batch,priority,run_at,state,"
                                     "created_at) VALUES (?,?,?,?,?,UTC_TIMESTAMP(6),?,UTC_TIMESTAMP(6))",
                                     "SELECT LAST_INSERT_ID(),@@auto_increment_increment"));
  EXPECT_THAT(db_.all_values[0],
              ElementsAre(SqlValue("noop"), SqlValue("{}"), SqlValue(nullptr), SqlValue("b"),
                          SqlValue(std::int64_t{5}), SqlValue(std::int64_t{0})));
}

TEST_F(CallerTransactionTest, OneTaskOnSqlite) {
  db_.answers["SELECT last_insert_rowid()"] = OneRow({"17", "1"});
  const auto task = SubmitInTransaction(Dialect::Sqlite, db_.Function(),
                                        {.handler = "noop", .priority = 0, .delay = std::chrono::seconds(1)},
                                        {.table = "tasks_007"});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(task->id, 17u);
  EXPECT_THAT(
      db_.texts,
      ElementsAre("INSERT INTO tasks_007 (handler,params,biz_key,batch,priority,run_at,state,created_at)"
                  " VALUES (?,?,?,?,?,(strftime('%Y-%m-%d %H:%M:%f','now',((?)/1000000.0)||' seconds')"
                  "||'000'),?,(strftime('%Y-%m-%d %H:%M:%f','now')||'000'))",
                  "SELECT last_insert_rowid(),1"));
  EXPECT_THAT(db_.all_values[0][5], SqlValue(std::int64_t{1'000'000}));
}

TEST_F(CallerTransactionTest, AKeyIsEnteredAfterItsTask) {
  db_.answers["SELECT LAST_INSERT_ID()"] = OneRow({"17", "1"});
  db_.answers["INSERT IGNORE"] = Affected(1);
  const auto task = SubmitInTransaction(Dialect::Mysql, db_.Function(), {.handler = "noop", .key = "k"});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_TRUE(task->added());
  ASSERT_THAT(db_.texts, SizeIs(3));
  EXPECT_EQ(db_.texts[2],
            "INSERT IGNORE INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES "
            "(?,?,?,?,UTC_TIMESTAMP(6))");
  EXPECT_THAT(db_.all_values[2],
              ElementsAre(SqlValue("noop"), SqlValue("k"), SqlValue("tasks"), SqlValue(std::int64_t{17})));
}

TEST_F(CallerTransactionTest, ATaskWhoseKeyIsTakenIsDeletedAgainAndTheHolderTold) {
  db_.answers["SELECT LAST_INSERT_ID()"] = OneRow({"17", "1"});
  db_.answers["SELECT handler,biz_key,task_table"] = OneRow({"noop", "k", "tasks", "5", "1", "0"});
  const auto task = SubmitInTransaction(Dialect::Mysql, db_.Function(), {.handler = "noop", .key = "k"});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_FALSE(task->added());
  EXPECT_EQ(task->duplicate_of, "tasks/5");
  ASSERT_THAT(db_.texts, SizeIs(5));
  EXPECT_THAT(db_.texts[3], HasSubstr(" LOCK IN SHARE MODE"));
  EXPECT_EQ(db_.texts[4], "DELETE tasks FROM tasks FORCE INDEX (PRIMARY) WHERE id IN (17)");
}

TEST_F(CallerTransactionTest, TheIdsOfOneInsertRiseByTheServersStep) {
  db_.answers["SELECT LAST_INSERT_ID()"] = OneRow({"10", "3"});
  db_.answers["SELECT handler,biz_key,params FROM tasks FORCE INDEX (PRIMARY) WHERE id=?"] =
      OneRow({"noop", std::nullopt, R"({"n":2})"});
  const auto report = Submit(
      Dialect::Mysql,
      {{.handler = "noop"}, {.handler = "noop", .held = true}, {.handler = "noop", .params = R"({"n":2})"}});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->added, 3u);
  EXPECT_EQ(report->tasks[1].id, 13u);
  EXPECT_EQ(report->tasks[2].id, 16u);
  EXPECT_EQ(db_.all_values.back()[0], SqlValue(std::int64_t{16}));
}

TEST_F(CallerTransactionTest, IdsThatDoNotRiseByItAreFoundByWhatTheRowsHold) {
  db_.answers["SELECT LAST_INSERT_ID()"] = OneRow({"10", "1"});
  db_.answers["SELECT id,handler"] = {.rows = {{"10", "noop", std::nullopt, "{}"},
                                               {"12", "other", std::nullopt, "{}"},
                                               {"14", "noop", "", "{}"}}};
  const auto report = Submit(Dialect::Mysql, {{.handler = "noop"}, {.handler = "noop"}});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->tasks[0].id, 10u);
  EXPECT_EQ(report->tasks[1].id, 14u);
}

TEST_F(CallerTransactionTest, ManyTasksHaveSlicesByTheTablesNumberOfThem) {
  db_.answers["SELECT slices"] = OneRow({"4"});
  db_.answers["SELECT last_insert_rowid()"] = OneRow({"1", "1"});
  std::vector<NewTask> tasks(64, {.handler = "noop"});
  tasks[63].slice_key = "123456789";
  ASSERT_TRUE(Submit(Dialect::Sqlite, tasks));
  EXPECT_EQ(db_.all_values[0], std::vector<SqlValue>{SqlValue("tasks")});
  std::map<std::int64_t, int> share;
  int changes = 0;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < 63; ++i) {
    const std::int64_t slice = SliceOf(db_.all_values[1 + 2 * i]);
    ++share[slice];
    changes += last != slice;
    last = slice;
  }
  EXPECT_THAT(share, SizeIs(4));
  EXPECT_LE(changes, 33) << "runs of two";
  EXPECT_EQ(SliceOf(db_.all_values[1 + 2 * 63]), 0xCBF43926 % 4);
}

TEST_F(CallerTransactionTest, FewTasksLeaveTheirSlicesToTheTableUnlessTheyAreToBeSpread) {
  db_.answers["SELECT slices"] = OneRow({"64"});
  db_.answers["SELECT last_insert_rowid()"] = OneRow({"1", "1"});
  const std::vector<NewTask> tasks(15, {.handler = "noop"});
  ASSERT_TRUE(Submit(Dialect::Sqlite, tasks));
  for (const std::string& text : db_.texts) EXPECT_EQ(text.find("slice"), text.npos) << text;
  ASSERT_TRUE(Submit(Dialect::Sqlite, tasks, {.slices = Slices::Spread}));
  std::set<std::int64_t> slices;
  for (std::size_t i = db_.texts.size() - 30; i < db_.texts.size(); i += 2)
    slices.insert(SliceOf(db_.all_values[i]));
  EXPECT_THAT(slices, SizeIs(15));
}

TEST_F(CallerTransactionTest, ATableThatTheDatabaseDoesNotHaveIsNamed) {
  const auto report =
      Submit(Dialect::Mysql, std::vector<NewTask>(20, {.handler = "noop"}), {.table = "none"});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Invalid);
  EXPECT_THAT(report.error().message, HasSubstr("has no task table 'none'"));
}

TEST_F(CallerTransactionTest, WhatTheCallersFunctionRefusesIsToldWithTheStatement) {
  db_.answers["INSERT INTO"] = {.error = "deadlock found"};
  const auto report = Submit(Dialect::Mysql, {{.handler = "noop"}});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Failed);
  EXPECT_THAT(report.error().message, HasSubstr("the caller's connection: deadlock found"));
  EXPECT_THAT(report.error().message, HasSubstr("INSERT INTO tasks"));
  EXPECT_THAT(report.error().message, HasSubstr("; roll the transaction back"));
}

TEST_F(CallerTransactionTest, WhatCanBeNoTaskIsRefusedBeforeAnythingIsSent) {
  using namespace std::chrono_literals;
  EXPECT_THAT(ErrorOf({.handler = "Not A Name"}), HasSubstr("'Not A Name' is not a handler name"));
  EXPECT_THAT(ErrorOf({.handler = "a", .key = std::string(191, 'k')}), HasSubstr("longer than 190 bytes"));
  EXPECT_THAT(ErrorOf({.handler = "a", .priority = 10}), HasSubstr("priority 10"));
  EXPECT_THAT(ErrorOf({.handler = "a", .priority = -1}), HasSubstr("priority -1"));
  EXPECT_THAT(ErrorOf({.handler = "a", .delay = -1s}), HasSubstr("delay"));
  EXPECT_THAT(ErrorOf({.handler = "a", .run_at = Time{}, .delay = 1s}),
              HasSubstr("either a run_at or a delay"));
  EXPECT_THAT(ErrorOf({.handler = "a", .params = "{\"x\":\"\xFF\"}"}), HasSubstr("must be UTF-8"));
  const auto report = Submit(Dialect::Mysql, {{.handler = "a"}, {.handler = ""}});
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("task 2 of the batch: "));
  EXPECT_FALSE(Submit(Dialect::Mysql, std::vector<NewTask>(kMostTasks + 1, {.handler = "a"})));
  EXPECT_FALSE(Submit(Dialect::Mysql, {{.handler = "a"}}, {.table = "no'table"}));
  EXPECT_THAT(db_.texts, IsEmpty());
}

TEST_F(CallerTransactionTest, NoTasksAreNoStatements) {
  const auto report = Submit(Dialect::Mysql, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->added, 0u);
  EXPECT_THAT(db_.texts, IsEmpty());
}

TEST(ProducerResultTest, AskedForWhatItDoesNotHaveItEndsTheProgram) {
  const Result<int> refused = Error{ErrorKind::Invalid, "no"};
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no");
  EXPECT_DEATH((void)refused.value(), "");
  EXPECT_DEATH((void)Result<int>(1).error(), "");
}

}  // namespace
}  // namespace millrace::producer
