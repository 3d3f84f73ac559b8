#include "framework/task/table_name.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "framework/task/task.h"

namespace millrace::engine {
namespace {

// Nothing but the parse makes one of a text that is not a literal, and there is no empty one.
static_assert(!std::is_default_constructible_v<TableName>);
static_assert(!std::is_constructible_v<TableName, std::string>);
static_assert(!std::is_constructible_v<TableName, std::string_view>);
static_assert(std::is_trivially_copyable_v<TableName>);
static_assert(kDefaultTable.text() == "tasks");

TEST(TableNameTest, TheParseTakesWhatMayStandInSqlAndNothingElse) {
  for (const std::string& good : {std::string("tasks"), std::string("t"), std::string("tasks_000"),
                                  std::string("a0__9"), std::string(TableName::kMaxSize, 'z')}) {
    const auto table = ParseTableName(good);
    ASSERT_TRUE(table) << good;
    EXPECT_EQ(table->text(), good);
  }
  for (const std::string& bad :
       {std::string(), std::string("Tasks"), std::string("0tasks"), std::string("_tasks"),
        std::string("tasks; DROP TABLE tasks"), std::string("tasks`"), std::string("tasks'"),
        std::string("tasks "), std::string("a.b"), std::string("a-b"), std::string("a/b"),
        std::string("t\xc3\xa4sks"), std::string("tasks\0", 6), std::string(TableName::kMaxSize + 1, 'z')}) {
    EXPECT_FALSE(ParseTableName(bad)) << bad;
  }
}

TEST(TableNameTest, IsOrderedLikeItsText) {
  const std::vector<std::string> texts{"a", "aa", "a0", "a_", "ab", "b", "tasks", "tasks_000", "tasks_001"};
  for (const std::string& left : texts) {
    for (const std::string& right : texts) {
      const TableName a = *ParseTableName(left);
      const TableName b = *ParseTableName(right);
      EXPECT_EQ(a < b, left < right) << left << " " << right;
      EXPECT_EQ(a == b, left == right) << left << " " << right;
      EXPECT_EQ(a == right, left == right) << left << " " << right;
    }
  }
}

TEST(TableNameTest, EqualNamesAreOneInASet) {
  std::unordered_set<TableName> names{"tasks", "tasks_000"};
  names.insert(*ParseTableName(std::string("ta") + "sks"));
  EXPECT_EQ(names.size(), 2u);
}

TEST(TableNameTest, StandsInTextsAsItIs) {
  const TableName table = "tasks_007";
  EXPECT_EQ("SELECT id FROM " + table + " WHERE 1", "SELECT id FROM tasks_007 WHERE 1");
  EXPECT_EQ(table + "_done", "tasks_007_done");
  std::string text = "main/";
  text += table;
  EXPECT_EQ(text, "main/tasks_007");
  EXPECT_EQ(ToString(TaskKey{table, 5}), "tasks_007/5");
}

}  // namespace
}  // namespace millrace::engine
